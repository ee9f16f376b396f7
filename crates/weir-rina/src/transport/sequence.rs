//! Sequence numbers: 32 bits on the wire, 64 bits inside, so that they never wrap here.

/// Counts PDUs from the initial sequence number of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbering {
    initial: u32,
}

impl Numbering {
    pub fn new(initial: u32) -> Self {
        Numbering { initial }
    }

    /// A number as it is on the wire.
    pub fn wire(self, number: u64) -> u32 {
        self.initial.wrapping_add(number as u32)
    }

    /// The number of a sequence number on the wire: that next to `near` of all that it may be.
    /// `None`: it would precede the first one.
    pub fn number(self, wire: u32, near: u64) -> Option<u64> {
        let distance = wire.wrapping_sub(self.wire(near)) as i32;
        near.checked_add_signed(distance.into())
    }
}

#[cfg(test)]
mod tests {
    use super::Numbering;

    #[test]
    fn numbers_continue_behind_the_end_of_the_wire_format() {
        let numbering = Numbering::new(u32::MAX - 1);
        assert_eq!((numbering.wire(0), numbering.wire(3)), (u32::MAX - 1, 1));
        assert_eq!(numbering.number(1, 0), Some(3));
        assert_eq!(numbering.number(u32::MAX, 3), Some(1));
        assert_eq!(numbering.number(u32::MAX - 5, 3), None);
        let far = (1 << 40) + 7;
        assert_eq!(numbering.number(numbering.wire(far - 9), far), Some(far - 9));
    }
}
