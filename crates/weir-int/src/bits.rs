//! Unsigned integers of a header field's width.

use std::fmt;

/// An unsigned integer of `BITS` bits (1 to 32), such as a 6-bit hardware id.
///
/// A value never exceeds its field, so that encoders need no masks and report no errors.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uint<const BITS: u32>(u32);

impl<const BITS: u32> Uint<BITS> {
    /// The largest value.
    pub const MAX: Self = Self(u32::MAX >> (32 - BITS));
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// A value; `None` if it exceeds the field.
    #[must_use]
    pub const fn new(value: u32) -> Option<Self> {
        if value <= Self::MAX.0 { Some(Self(value)) } else { None }
    }

    /// The low `BITS` bits of a value.
    #[must_use]
    pub const fn truncate(value: u32) -> Self {
        Self(value & Self::MAX.0)
    }

    /// The value.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// This value minus an earlier one, modulo 2^`BITS`: the distance of counters that wrap.
    #[must_use]
    pub const fn wrapping_sub(self, earlier: Self) -> Self {
        Self::truncate(self.0.wrapping_sub(earlier.0))
    }
}

impl<const BITS: u32> fmt::Debug for Uint<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<const BITS: u32> fmt::Display for Uint<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl<const BITS: u32> From<Uint<BITS>> for u32 {
    fn from(value: Uint<BITS>) -> u32 {
        value.0
    }
}

#[cfg(test)]
mod tests {
    use super::Uint;

    #[test]
    fn a_value_that_exceeds_the_field_is_refused() {
        assert_eq!(Uint::<6>::new(63).map(Uint::get), Some(63));
        assert_eq!(Uint::<6>::new(64), None);
        assert_eq!(Uint::<32>::MAX.get(), u32::MAX);
    }

    #[test]
    fn distances_wrap() {
        let distance = Uint::<22>::ZERO.wrapping_sub(Uint::MAX);
        assert_eq!(distance.get(), 1);
    }
}
