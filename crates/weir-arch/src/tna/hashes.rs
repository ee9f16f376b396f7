//! `Hash` with its algorithms, and what a `CRCPolynomial` says of one.

use crate::hash::{Algorithm, CrcParameters, CustomPair};
use crate::load::{argument, member, number};
use crate::{error::LoadError, error::place, hash};
use weir_interp::BitBuffer;
use weir_ir::{Bits, ConstValue, ExternInstance, Program};

/// How an instance of `Hash` hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hashing {
    algorithm: Algorithm,
    /// Bits that the algorithm gives.
    width: u32,
    /// A wider result repeats them; otherwise its upper bits are zero.
    repeats: bool,
}

const CRC8: CrcParameters = CrcParameters {
    width: 8,
    polynomial: 0x07,
    initial: 0,
    reflect_in: false,
    reflect_out: false,
    xor_out: 0,
};

const CRC64: CrcParameters = CrcParameters {
    width: 64,
    polynomial: 0x42f0_e1eb_a9ea_3693,
    ..CRC8
};

impl Hashing {
    /// The function that the constructor's arguments specify.
    pub(crate) fn new(program: &Program, instance: &ExternInstance) -> Result<Self, LoadError> {
        let (algorithm, width) = match member(argument(instance, "algo", 0)) {
            "IDENTITY" => (Algorithm::Identity, 64),
            "RANDOM" => (Algorithm::Spread, 64),
            "XOR8" => (Algorithm::Xor8, 8),
            "XOR16" => (Algorithm::Xor16, 16),
            "XOR32" => (Algorithm::Xor32, 32),
            "CRC8" => (Algorithm::Crc(CRC8), 8),
            "CRC16" => (Algorithm::Crc16, 16),
            "CRC32" => (Algorithm::Crc32, 32),
            "CRC64" => (Algorithm::Crc(CRC64), 64),
            _ => return Self::custom(program, instance),
        };
        Ok(Hashing {
            algorithm,
            width,
            repeats: false,
        })
    }

    fn custom(program: &Program, instance: &ExternInstance) -> Result<Self, LoadError> {
        let polynomial = match argument(instance, "poly", 1) {
            Some(ConstValue::Extern(id)) => program.externs.get(*id),
            _ => None,
        };
        let refused = |problem: String| LoadError::BadExtern {
            problem,
            place: place(program, instance.loc),
        };
        let Some(polynomial) = polynomial else {
            return Err(refused(format!(
                "`{}` hashes by HashAlgorithm_t.CUSTOM, which needs a CRCPolynomial",
                instance.name
            )));
        };
        let coefficients = argument(polynomial, "coeff", 0);
        let width = match coefficients {
            Some(ConstValue::Bits(bits)) => bits.width(),
            _ => 0,
        };
        if !(1..=64).contains(&width) {
            return Err(refused(format!(
                "the polynomial of `{}` has {width} bits; 1 to 64 can be computed",
                instance.name
            )));
        }
        let is = |name, position| matches!(argument(polynomial, name, position), Some(ConstValue::Bool(true)));
        let reversed = is("reversed", 1);
        let xor = number(argument(polynomial, "xor", 5));
        Ok(Hashing {
            algorithm: Algorithm::Crc(CrcParameters {
                width,
                polynomial: number(coefficients),
                initial: number(argument(polynomial, "init", 4)),
                reflect_in: reversed,
                reflect_out: reversed,
                // The device adds it before it reverses the register, catalogues after.
                xor_out: if reversed {
                    xor.reverse_bits() >> (64 - width)
                } else {
                    xor
                },
            }),
            width,
            repeats: is("extended", 3),
        })
    }

    /// The algorithm for a selector.
    pub(crate) fn algorithm(self) -> Algorithm {
        self.algorithm
    }

    /// The hash of scalars, of the requested width.
    pub(crate) fn compute<'a>(self, scalars: impl Iterator<Item = &'a Bits> + Clone, width: u32) -> Bits {
        let bits: u32 = scalars.clone().map(Bits::width).sum();
        let mut buffer = BitBuffer::new();
        // Words of exclusive ors are counted from the front; all others take the input as a number.
        let aligns = matches!(self.algorithm, Algorithm::Xor8 | Algorithm::Xor16 | Algorithm::Xor32);
        if !aligns {
            buffer.push(&Bits::zero((8 - bits % 8) % 8));
        }
        scalars.for_each(|s| buffer.push(s));
        let bytes = buffer.into_bytes();
        if self.algorithm == Algorithm::Identity {
            return Bits::from_bytes(bytes.len() as u32 * 8, &bytes).zero_extend(width);
        }
        let hash = hash::compute(self.algorithm, &bytes, &CustomPair::DEFAULT);
        let value = Bits::new(self.width, hash.into());
        let mut all = value.clone();
        while self.repeats && all.width() < width {
            all = value.concat(&all);
        }
        all.zero_extend(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(algorithm: Algorithm, width: u32, repeats: bool) -> Hashing {
        Hashing {
            algorithm,
            width,
            repeats,
        }
    }

    #[test]
    fn check_values_of_the_catalogue() {
        let input = Bits::from_bytes(72, b"123456789");
        let of_input = |h: Hashing| h.compute(std::iter::once(&input), h.width).to_u64_saturating();
        assert_eq!(of_input(of(Algorithm::Crc(CRC8), 8, false)), 0xf4);
        assert_eq!(of_input(of(Algorithm::Crc16, 16, false)), 0xbb3d);
        assert_eq!(of_input(of(Algorithm::Crc(CRC64), 64, false)), 0x6c40_df5f_0b49_7347);
    }

    #[test]
    fn wide_results_repeat_or_are_filled_with_zeros() {
        let input = Bits::new(8, 0xa5);
        let of_input = |h: Hashing, width| h.compute(std::iter::once(&input), width).to_u64_saturating();
        assert_eq!(of_input(of(Algorithm::Xor8, 8, true), 20), 0x5_a5a5);
        assert_eq!(of_input(of(Algorithm::Xor8, 8, false), 20), 0xa5);
        assert_eq!(of_input(of(Algorithm::Identity, 64, false), 4), 5);
    }
}
