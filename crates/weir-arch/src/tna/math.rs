//! `MathUnit`: functions by a table of sixteen values and shifts, as inexact as on the device.

use crate::load::{argument, member, number};
use weir_ir::pipeline::MAGNITUDES;
use weir_ir::{Bits, ConstValue, ExternInstance};

/// A function of a number `x`, which is taken as `m / 8 · 2^e`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MathUnit {
    /// The exponent of the result is negative where that of `x` is positive.
    invert: bool,
    /// It is halved (-1), as it is (0), or doubled (1).
    shift: i64,
    /// And this is added to it.
    scale: i64,
    /// The function of `m`.
    table: [u8; 16],
}

impl MathUnit {
    /// The function that the constructor's arguments specify.
    pub(crate) fn new(instance: &ExternInstance) -> Self {
        if let Some(ConstValue::Bool(invert)) = argument(instance, "invert", 0) {
            let mut table = [0; 16];
            if let Some(ConstValue::List(values)) = argument(instance, "data", 3) {
                // From the last to the first.
                for (slot, value) in table.iter_mut().rev().zip(values) {
                    *slot = number(Some(value)) as u8;
                }
            }
            return MathUnit {
                invert: *invert,
                shift: signed(argument(instance, "shift", 1)).clamp(-1, 1),
                scale: signed(argument(instance, "scale", 2)),
                table,
            };
        }
        let factor = match instance.arguments.len() {
            0..=2 => number(argument(instance, "factor", 1)) as f64,
            _ => number(argument(instance, "A", 1)) as f64 / (number(argument(instance, "B", 2)).max(1)) as f64,
        };
        let (invert, shift, function): (bool, i64, fn(f64) -> f64) = match member(argument(instance, "op", 0)) {
            "SQR" => (false, 1, |x| x * x),
            "SQRT" => (false, -1, f64::sqrt),
            "DIV" => (true, 0, |x| 1.0 / x),
            "RSQR" => (true, 1, |x| 1.0 / (x * x)),
            "RSQRT" => (true, -1, |x| 1.0 / x.sqrt()),
            _ => (false, 0, |x| x),
        };
        MathUnit::of(invert, shift, |x| factor * function(x))
    }

    /// The function, with the scale by which its values just fit into eight bits.
    fn of(invert: bool, shift: i64, function: impl Fn(f64) -> f64) -> Self {
        // An exponent that is halved must be even: then `m` begins at a half.
        let first = if shift < 0 { 4 } else { 8 };
        let values = |m: usize| function(m as f64 / 8.0);
        let largest = values(first).max(values(15));
        let scale = if largest > 0.0 {
            (largest.log2().floor() as i64 - 7).clamp(-32, 31)
        } else {
            0
        };
        let mut table = [0; 16];
        for (m, slot) in table.iter_mut().enumerate().skip(first) {
            // A cast from float saturates.
            *slot = (values(m) * (-scale as f64).exp2()).round_ties_even() as u8;
        }
        MathUnit {
            invert,
            shift,
            scale,
            table,
        }
    }

    /// The function of a number, in as many bits; what does not fit is all ones.
    pub(crate) fn execute(&self, x: &Bits) -> Bits {
        let number = x.to_u64_saturating();
        let exponent = i64::from(number.checked_ilog2().unwrap_or(0));
        // Four bits from the highest one on.
        let mantissa = ((u128::from(number) << 3) >> exponent) as usize & 0xf;
        self.value(mantissa, exponent, x.width())
    }

    /// The function of all numbers of a width, at most 64, that differ in the highest bit or
    /// the three after it, in the order of [`magnitude`](weir_ir::pipeline::magnitude).
    pub(crate) fn values(&self, width: u32) -> [u64; MAGNITUDES] {
        std::array::from_fn(|magnitude_index| {
            let (mantissa, exponent) = match magnitude_index / 8 {
                0 => (0, 0),
                position => (8 | (magnitude_index % 8), position as i64 - 1),
            };
            self.value(mantissa, exponent, width).to_u64_saturating()
        })
    }

    /// The function of a number with these four highest bits, the first at the position of the
    /// exponent, saturated to all ones.
    fn value(&self, mantissa: usize, exponent: i64, width: u32) -> Bits {
        let (mantissa, exponent) = match self.shift < 0 && exponent % 2 != 0 {
            true => (mantissa / 2, exponent + 1),
            false => (mantissa, exponent),
        };
        let doubled = match self.shift {
            1 => exponent * 2,
            -1 => exponent / 2,
            _ => exponent,
        };
        let shift = self.scale + if self.invert { -doubled } else { doubled };
        let value = u128::from(self.table[mantissa]);
        let result = match u32::try_from(shift) {
            Ok(left) if left < 120 => value << left,
            Ok(_) => {
                if value == 0 {
                    0
                } else {
                    u128::MAX
                }
            }
            Err(_) => value.checked_shr(shift.unsigned_abs() as u32).unwrap_or(0),
        };
        let ones = Bits::ones(width);
        match ones.to_u128() {
            Some(most) if result > most => ones,
            _ => Bits::new(width, result),
        }
    }
}

fn signed(value: Option<&ConstValue>) -> i64 {
    match value {
        Some(ConstValue::Bits(bits)) => i64::try_from(bits.to_signed_bigint()).unwrap_or(0),
        Some(ConstValue::Int(int)) => i64::try_from(int).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(unit: &MathUnit, x: u64) -> u64 {
        unit.execute(&Bits::new(32, x.into())).to_u64_saturating()
    }

    #[test]
    fn powers_of_two_are_exact() {
        let square = MathUnit::of(false, 1, |x| x * x);
        let root = MathUnit::of(false, -1, f64::sqrt);
        let double = MathUnit::of(false, 0, |x| 2.0 * x);
        for e in 0..15 {
            assert_eq!(run(&square, 1 << e), 1 << (2 * e));
            assert_eq!(run(&root, 1 << (2 * e)), 1 << e);
            assert_eq!(run(&double, 1 << e), 2 << e);
        }
        assert_eq!(run(&square, 0), 0);
        assert_eq!(run(&square, 1 << 31), u64::from(u32::MAX));
    }

    #[test]
    fn all_values_are_known_beforehand() {
        let units = [
            MathUnit::of(false, -1, f64::sqrt),
            MathUnit::of(false, 1, |x| x * x),
            MathUnit::of(true, 0, |x| 1000.0 / x),
        ];
        for unit in &units {
            for width in [3, 16, 32, 64] {
                let values = unit.values(width);
                for x in (0..64).flat_map(|e| [0, 1, 1 << e, (1 << e) + 1, (3 << e) / 2, (15u64 << e) / 8, !(1 << e)]) {
                    let x = Bits::new(width, x.into());
                    let expected = unit.execute(&x).to_u64_saturating();
                    let at = weir_ir::pipeline::magnitude(x.to_u64_saturating());
                    assert_eq!(values[at], expected, "{unit:?} {x}");
                }
            }
        }
    }

    #[test]
    fn others_are_within_an_eighth() {
        let root = MathUnit::of(false, -1, f64::sqrt);
        let quotient = MathUnit::of(true, 0, |x| 1_000_000.0 / x);
        for x in [3u64, 7, 10, 100, 1000, 54321] {
            let exact = [(x as f64).sqrt(), 1_000_000.0 / x as f64];
            let found = [run(&root, x) as f64, run(&quotient, x) as f64];
            for (exact, found) in exact.iter().zip(found) {
                assert!((found - exact).abs() <= exact / 8.0 + 1.0, "{x}: {found} for {exact}");
            }
        }
    }
}
