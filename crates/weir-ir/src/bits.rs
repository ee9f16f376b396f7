//! Fixed-width bit strings of any width, with the arithmetic of P4.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::fmt;

/// `width` bits. The value is unsigned; operations that read it as two's complement say so. Width 0
/// is legal and has the one value 0.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Bits(Inside);

/// Up to 128 bits in place, else a big integer. Always reduced to the width, so equality is
/// derived.
///
/// Tables hold millions of them, so they are small: a `u128` would be aligned to 16 bytes and make
/// it 48 bytes, not 24.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Inside {
    /// Low half, high half.
    Small {
        width: u32,
        halves: [u64; 2],
    },
    Big {
        width: u32,
        value: Box<BigUint>,
    },
}

/// The value, to look at.
enum Value<'a> {
    Small(u128),
    Big(&'a BigUint),
}

const SMALL: u32 = 128;

fn small_mask(width: u32) -> u128 {
    if width >= SMALL {
        u128::MAX
    } else {
        (1u128 << width) - 1
    }
}

impl Bits {
    /// The value modulo 2^width.
    #[must_use]
    pub fn new(width: u32, value: u128) -> Self {
        if width <= SMALL {
            let value = value & small_mask(width);
            Bits(Inside::Small {
                width,
                halves: [value as u64, (value >> 64) as u64],
            })
        } else {
            Self::big(width, BigUint::from(value))
        }
    }

    /// All zeros.
    #[must_use]
    pub fn zero(width: u32) -> Self {
        Self::new(width, 0)
    }

    /// All ones.
    #[must_use]
    pub fn ones(width: u32) -> Self {
        if width <= SMALL {
            Self::new(width, u128::MAX)
        } else {
            Self::from_biguint(width, &((BigUint::one() << width) - 1u32))
        }
    }

    /// One bit.
    #[must_use]
    pub fn bool(value: bool) -> Self {
        Self::new(1, u128::from(value))
    }

    /// The value modulo 2^width.
    #[must_use]
    pub fn from_biguint(width: u32, value: &BigUint) -> Self {
        if width <= SMALL {
            let low = value
                .iter_u64_digits()
                .take(2)
                .enumerate()
                .fold(0u128, |a, (i, d)| a | (u128::from(d) << (64 * i)));
            Self::new(width, low)
        } else if value.bits() > u64::from(width) {
            Self::big(width, value % (BigUint::one() << width))
        } else {
            Self::big(width, value.clone())
        }
    }

    /// The value modulo 2^width; negative numbers in two's complement.
    #[must_use]
    pub fn from_bigint(width: u32, value: &BigInt) -> Self {
        let modulus = BigInt::one() << width;
        let reduced = ((value % &modulus) + &modulus) % &modulus;
        Self::from_biguint(width, reduced.magnitude())
    }

    /// From bytes in network order; the value modulo 2^width.
    #[must_use]
    pub fn from_bytes(width: u32, bytes: &[u8]) -> Self {
        if bytes.len() <= 16 {
            Self::from_biguint_or_small(width, bytes)
        } else {
            Self::from_biguint(width, &BigUint::from_bytes_be(bytes))
        }
    }

    fn from_biguint_or_small(width: u32, bytes: &[u8]) -> Self {
        Self::new(width, bytes.iter().fold(0u128, |a, &b| (a << 8) | u128::from(b)))
    }

    /// Number of bits.
    #[must_use]
    #[inline]
    pub fn width(&self) -> u32 {
        match &self.0 {
            Inside::Small { width, .. } | Inside::Big { width, .. } => *width,
        }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        match &self.0 {
            Inside::Small {
                halves: [low, high], ..
            } => Value::Small(u128::from(*high) << 64 | u128::from(*low)),
            Inside::Big { value, .. } => Value::Big(value),
        }
    }

    /// A value of more than 128 bits, which fits.
    fn big(width: u32, value: BigUint) -> Self {
        let value = Box::new(value);
        Bits(Inside::Big { width, value })
    }

    /// The unsigned value.
    #[must_use]
    pub fn to_biguint(&self) -> BigUint {
        match self.value() {
            Value::Small(v) => BigUint::from(v),
            Value::Big(v) => v.clone(),
        }
    }

    /// The value read as two's complement.
    #[must_use]
    pub fn to_signed_bigint(&self) -> BigInt {
        let value = BigInt::from_biguint(Sign::Plus, self.to_biguint());
        if self.bit(self.width().wrapping_sub(1)) {
            value - (BigInt::one() << self.width())
        } else {
            value
        }
    }

    /// The unsigned value if it fits.
    #[must_use]
    pub fn to_u64(&self) -> Option<u64> {
        match self.value() {
            Value::Small(v) => u64::try_from(v).ok(),
            Value::Big(v) => v.to_u64(),
        }
    }

    /// The unsigned value if it fits.
    #[must_use]
    pub fn to_u128(&self) -> Option<u128> {
        match self.value() {
            Value::Small(v) => Some(v),
            Value::Big(v) => v.to_u128(),
        }
    }

    /// The unsigned value, or `u64::MAX` where it is larger.
    #[must_use]
    pub fn to_u64_saturating(&self) -> u64 {
        self.to_u64().unwrap_or(u64::MAX)
    }

    /// Bytes in network order, ⌈width / 8⌉ of them, padded with zeros at the front.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = self.width().div_ceil(8) as usize;
        match self.value() {
            Value::Small(v) => v.to_be_bytes()[16 - length..].to_vec(),
            Value::Big(v) => {
                let bytes = v.to_bytes_be();
                let mut padded = vec![0; length.saturating_sub(bytes.len())];
                padded.extend_from_slice(&bytes);
                padded
            }
        }
    }

    /// The 64-bit words that hold a value of this width in bits: at least one.
    #[must_use]
    #[inline]
    pub fn words_of(width: u32) -> usize {
        width.div_ceil(64).max(1) as usize
    }

    /// The value in these 64-bit words, the least significant first. Missing words are 0, bits
    /// beyond the width are cut off.
    #[must_use]
    pub fn from_words(width: u32, words: &[u64]) -> Self {
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        if width <= SMALL {
            return Bits::new(width, u128::from(word(0)) | u128::from(word(1)) << 64);
        }
        let count = width.div_ceil(64) as usize;
        let bytes: Vec<u8> = (0..count).rev().flat_map(|at| word(at).to_be_bytes()).collect();
        Bits::from_bytes(count as u32 * 64, &bytes).zero_extend(width)
    }

    /// Writes the value into 64-bit words, the least significant first. Words beyond it become 0.
    pub fn to_words(&self, words: &mut [u64]) {
        words.fill(0);
        if let Some(small) = self.to_u128() {
            for (word, half) in words.iter_mut().zip([small as u64, (small >> 64) as u64]) {
                *word = half;
            }
            return;
        }
        for (word, chunk) in words.iter_mut().zip(self.to_bytes().rchunks(8)) {
            let mut bytes = [0; 8];
            bytes[8 - chunk.len()..].copy_from_slice(chunk);
            *word = u64::from_be_bytes(bytes);
        }
    }

    /// Writes what [`Bits::to_bytes`] gives into a place of as many bytes.
    ///
    /// # Panics
    /// The place has another length.
    #[inline]
    pub fn copy_to(&self, place: &mut [u8]) {
        match self.value() {
            Value::Small(v) => {
                let length = self.width().div_ceil(8) as usize;
                place.copy_from_slice(&v.to_be_bytes()[16 - length..]);
            }
            Value::Big(_) => place.copy_from_slice(&self.to_bytes()),
        }
    }

    /// Whether all bits are 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match self.value() {
            Value::Small(v) => v == 0,
            Value::Big(v) => v.is_zero(),
        }
    }

    /// Whether all bits are 1.
    #[must_use]
    pub fn is_ones(&self) -> bool {
        *self == Self::ones(self.width())
    }

    /// Bit `index`, counted from 0 at the least significant; false beyond the width.
    #[must_use]
    pub fn bit(&self, index: u32) -> bool {
        match self.value() {
            Value::Small(v) => index < SMALL && (v >> index) & 1 == 1,
            Value::Big(v) => v.bit(u64::from(index)),
        }
    }

    fn map2(
        &self,
        other: &Self,
        small: impl Fn(u128, u128) -> u128,
        big: impl Fn(BigUint, BigUint) -> BigUint,
    ) -> Self {
        match (self.value(), other.value()) {
            (Value::Small(a), Value::Small(b)) => Self::new(self.width(), small(a, b)),
            _ => Self::from_biguint(self.width(), &big(self.to_biguint(), other.to_biguint())),
        }
    }

    /// Wrapping sum.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        self.map2(other, u128::wrapping_add, |a, b| a + b)
    }

    /// Wrapping difference.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        self.map2(other, u128::wrapping_sub, |a, b| {
            a + (BigUint::one() << self.width()) - b
        })
    }

    /// Wrapping product.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        self.map2(other, u128::wrapping_mul, |a, b| a * b)
    }

    /// Unsigned quotient; 0 for a zero divisor.
    #[must_use]
    pub fn div(&self, other: &Self) -> Self {
        self.map2(
            other,
            |a, b| a.checked_div(b).unwrap_or(0),
            |a, b| if b.is_zero() { b } else { a / b },
        )
    }

    /// Unsigned remainder; 0 for a zero divisor.
    #[must_use]
    pub fn rem(&self, other: &Self) -> Self {
        self.map2(
            other,
            |a, b| a.checked_rem(b).unwrap_or(0),
            |a, b| if b.is_zero() { b } else { a % b },
        )
    }

    /// Unsigned saturating sum.
    #[must_use]
    pub fn add_saturating(&self, other: &Self) -> Self {
        let sum = self.to_biguint() + other.to_biguint();
        if sum.bits() > u64::from(self.width()) {
            Self::ones(self.width())
        } else {
            Self::from_biguint(self.width(), &sum)
        }
    }

    /// Unsigned saturating difference.
    #[must_use]
    pub fn sub_saturating(&self, other: &Self) -> Self {
        if self.cmp_unsigned(other) == Ordering::Less {
            Self::zero(self.width())
        } else {
            self.sub(other)
        }
    }

    fn clamp_signed(width: u32, value: &BigInt) -> Self {
        if width == 0 {
            return Self::zero(0);
        }
        let limit = BigInt::one() << (width - 1);
        if *value >= limit {
            Self::from_bigint(width, &(limit - 1))
        } else if *value < -&limit {
            Self::from_bigint(width, &-limit)
        } else {
            Self::from_bigint(width, value)
        }
    }

    /// Signed saturating sum.
    #[must_use]
    pub fn add_saturating_signed(&self, other: &Self) -> Self {
        Self::clamp_signed(self.width(), &(self.to_signed_bigint() + other.to_signed_bigint()))
    }

    /// Signed saturating difference.
    #[must_use]
    pub fn sub_saturating_signed(&self, other: &Self) -> Self {
        Self::clamp_signed(self.width(), &(self.to_signed_bigint() - other.to_signed_bigint()))
    }

    /// Bitwise and.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.map2(other, |a, b| a & b, |a, b| a & b)
    }

    /// Bitwise or.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        self.map2(other, |a, b| a | b, |a, b| a | b)
    }

    /// Bitwise exclusive or.
    #[must_use]
    pub fn xor(&self, other: &Self) -> Self {
        self.map2(other, |a, b| a ^ b, |a, b| a ^ b)
    }

    /// Every bit inverted.
    #[must_use]
    pub fn not(&self) -> Self {
        self.xor(&Self::ones(self.width()))
    }

    /// Two's complement negation.
    #[must_use]
    pub fn neg(&self) -> Self {
        Self::zero(self.width()).sub(self)
    }

    /// Left shift; 0 once the distance reaches the width.
    #[must_use]
    pub fn shl(&self, distance: u64) -> Self {
        if distance >= u64::from(self.width()) {
            return Self::zero(self.width());
        }
        match self.value() {
            Value::Small(v) => Self::new(self.width(), v << distance),
            Value::Big(v) => Self::from_biguint(self.width(), &(v << distance)),
        }
    }

    /// Logical right shift.
    #[must_use]
    pub fn shr(&self, distance: u64) -> Self {
        if distance >= u64::from(self.width()) {
            return Self::zero(self.width());
        }
        match self.value() {
            Value::Small(v) => Self::new(self.width(), v >> distance),
            Value::Big(v) => Self::from_biguint(self.width(), &(v >> distance)),
        }
    }

    /// Arithmetic right shift.
    #[must_use]
    pub fn shr_signed(&self, distance: u64) -> Self {
        let distance = distance.min(u64::from(self.width()));
        let shifted = self.shr(distance);
        if self.bit(self.width().wrapping_sub(1)) {
            shifted.or(&Self::ones(self.width()).shl(u64::from(self.width()) - distance))
        } else {
            shifted
        }
    }

    /// Unsigned order.
    #[must_use]
    pub fn cmp_unsigned(&self, other: &Self) -> Ordering {
        match (self.value(), other.value()) {
            (Value::Small(a), Value::Small(b)) => a.cmp(&b),
            _ => self.to_biguint().cmp(&other.to_biguint()),
        }
    }

    /// Two's complement order.
    #[must_use]
    pub fn cmp_signed(&self, other: &Self) -> Ordering {
        self.to_signed_bigint().cmp(&other.to_signed_bigint())
    }

    /// These bits, then the other's.
    #[must_use]
    pub fn concat(&self, other: &Self) -> Self {
        let width = self.width() + other.width();
        if width <= SMALL {
            let high = if other.width() >= SMALL {
                0
            } else {
                self.to_u128().unwrap_or(0) << other.width()
            };
            Self::new(width, high | other.to_u128().unwrap_or(0))
        } else {
            Self::from_biguint(width, &((self.to_biguint() << other.width()) | other.to_biguint()))
        }
    }

    /// Bits `hi` down to `lo`, counted from 0 at the least significant. Bits beyond the width read
    /// as 0.
    #[must_use]
    pub fn slice(&self, hi: u32, lo: u32) -> Self {
        let width = hi + 1 - lo;
        match self.value() {
            Value::Small(v) => Self::new(width, if lo >= SMALL { 0 } else { v >> lo }),
            Value::Big(v) => Self::from_biguint(width, &(v >> lo)),
        }
    }

    /// This value with bits `hi` down to `lo` replaced.
    #[must_use]
    pub fn insert(&self, hi: u32, lo: u32, value: &Self) -> Self {
        let hole = Self::ones(hi + 1 - lo)
            .zero_extend(self.width())
            .shl(u64::from(lo))
            .not();
        self.and(&hole).or(&value.zero_extend(self.width()).shl(u64::from(lo)))
    }

    /// To another width: truncated, or extended with zeros.
    #[must_use]
    pub fn zero_extend(&self, width: u32) -> Self {
        match self.value() {
            Value::Small(v) => Self::new(width, v),
            Value::Big(v) => Self::from_biguint(width, v),
        }
    }

    /// To another width: truncated, or extended with the sign.
    #[must_use]
    pub fn sign_extend(&self, width: u32) -> Self {
        if width <= self.width() || !self.bit(self.width().wrapping_sub(1)) {
            return self.zero_extend(width);
        }
        self.zero_extend(width)
            .or(&Self::ones(width).shl(u64::from(self.width())))
    }

    /// The mask with `prefix_length` leading ones.
    #[must_use]
    pub fn prefix_mask(width: u32, prefix_length: u32) -> Self {
        Self::ones(width).shl(u64::from(width - prefix_length.min(width)))
    }
}

/// `8w0x2a`
impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}w{:#x}", self.width(), self)
    }
}

impl fmt::LowerHex for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Value::Small(v) => fmt::LowerHex::fmt(&v, f),
            Value::Big(v) => fmt::LowerHex::fmt(v, f),
        }
    }
}

/// The unsigned value in decimal.
impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Value::Small(v) => fmt::Display::fmt(&v, f),
            Value::Big(v) => fmt::Display::fmt(v, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reference: plain big integers reduced to the width.
    fn model(width: u32, value: &BigInt) -> Bits {
        Bits::from_bigint(width, value)
    }

    fn any_bits(width: u32) -> impl Strategy<Value = Bits> {
        proptest::collection::vec(any::<u8>(), width.div_ceil(8) as usize)
            .prop_map(move |b| Bits::from_bytes(width, &b))
    }

    fn pair() -> impl Strategy<Value = (Bits, Bits)> {
        prop_oneof![1u32..10, 60u32..70, 120u32..140, 250u32..260].prop_flat_map(|w| (any_bits(w), any_bits(w)))
    }

    proptest! {
        #[test]
        fn arithmetic_agrees_with_big_integers((a, b) in pair()) {
            let (w, x, y) = (a.width(), BigInt::from(a.to_biguint()), BigInt::from(b.to_biguint()));
            prop_assert_eq!(a.add(&b), model(w, &(&x + &y)));
            prop_assert_eq!(a.sub(&b), model(w, &(&x - &y)));
            prop_assert_eq!(a.mul(&b), model(w, &(&x * &y)));
            if !b.is_zero() {
                prop_assert_eq!(a.div(&b), model(w, &(&x / &y)));
                prop_assert_eq!(a.rem(&b), model(w, &(&x % &y)));
            }
            prop_assert_eq!(a.concat(&b), model(2 * w, &((&x << w) + &y)));
            prop_assert_eq!(a.neg(), model(w, &-x));
        }

        #[test]
        fn slices_put_together_again((a, b) in pair(), cut in 0u32..300) {
            let w = a.width();
            let cut = cut % w;
            if cut > 0 {
                prop_assert_eq!(a.slice(w - 1, cut).concat(&a.slice(cut - 1, 0)), a.clone());
                let low = b.slice(cut - 1, 0);
                prop_assert_eq!(a.insert(cut - 1, 0, &low), a.slice(w - 1, cut).concat(&low));
            }
            prop_assert_eq!(a.sign_extend(w + 9).to_signed_bigint(), a.to_signed_bigint());
            prop_assert_eq!(Bits::from_bytes(w, &a.to_bytes()), a.clone());
            let mut place = vec![0xee; w.div_ceil(8) as usize];
            a.copy_to(&mut place);
            prop_assert_eq!(place, a.to_bytes());
            let mut words = vec![u64::MAX; w.div_ceil(64) as usize + 1];
            a.to_words(&mut words);
            prop_assert_eq!(words.last(), Some(&0));
            prop_assert_eq!(Bits::from_words(w, &words), a.clone());
        }
    }

    #[test]
    fn they_are_three_words() {
        assert_eq!(size_of::<Bits>(), 24);
    }

    #[test]
    fn saturation_stops_at_the_ends() {
        let b = |v| Bits::new(8, v);
        assert_eq!(b(200).add_saturating(&b(100)), b(255));
        assert_eq!(b(3).sub_saturating(&b(4)), b(0));
        assert_eq!(b(100).add_saturating_signed(&b(100)), b(127));
        assert_eq!(b(0x80).sub_saturating_signed(&b(1)), b(0x80));
    }

    #[test]
    fn shifts_beyond_the_width_leave_nothing_but_the_sign() {
        assert_eq!(Bits::new(8, 0xff).shl(8), Bits::zero(8));
        assert_eq!(Bits::new(8, 0x80).shr_signed(100), Bits::ones(8));
        assert_eq!(Bits::new(8, 0x80).shr_signed(3), Bits::new(8, 0xf0));
        assert_eq!(Bits::zero(0).shr_signed(3), Bits::zero(0));
    }
}
