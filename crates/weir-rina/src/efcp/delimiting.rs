//! Delimiting as IRATI does it: fragments of SDUs, each after a byte of flags.
//!
//! 0x07 is a whole SDU, 0x05 the first fragment of one, 0x04 one in between, 0x06 the last. Bit
//! 0x08 (SDU sequence numbers) and the absence of bit 0x04 (lengths, concatenation) are refused, as
//! IRATI does. Fragments must arrive in order; the connection has to deliver them so.

use crate::error::{Expected, Reason, WireError};
use crate::read::Reader;

/// The place of a fragment in its SDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Position {
    /// The whole SDU.
    Whole,
    /// The first fragment of several.
    First,
    /// Neither the first nor the last fragment.
    Middle,
    /// The last fragment of several.
    Last,
}

impl Position {
    /// The byte of flags.
    #[must_use]
    pub const fn flags(self) -> u8 {
        match self {
            Position::Whole => 0x07,
            Position::First => 0x05,
            Position::Middle => 0x04,
            Position::Last => 0x06,
        }
    }

    /// The place that a byte of flags means.
    #[must_use]
    pub const fn from_flags(flags: u8) -> Option<Self> {
        match flags {
            0x07 => Some(Position::Whole),
            0x05 => Some(Position::First),
            0x04 => Some(Position::Middle),
            0x06 => Some(Position::Last),
            _ => None,
        }
    }
}

/// The fragments of an SDU: what each PDU carries after its byte of flags. An empty SDU is one
/// empty fragment.
///
/// `room` is the most bytes of a fragment, at least 1: the size of the largest PDU minus the PCI of
/// data PDUs minus 1.
pub fn fragments(sdu: &[u8], room: usize) -> impl Iterator<Item = (Position, &[u8])> {
    let room = room.max(1);
    let count = sdu.len().div_ceil(room).max(1);
    (0..count).map(move |index| {
        let fragment = &sdu[index * room..sdu.len().min((index + 1) * room)];
        let position = match (index == 0, index + 1 == count) {
            (true, true) => Position::Whole,
            (true, false) => Position::First,
            (false, true) => Position::Last,
            (false, false) => Position::Middle,
        };
        (position, fragment)
    })
}

/// Reads the byte of flags; returns the place of the fragment, and the fragment.
///
/// # Errors
/// No byte, or flags that IRATI refuses.
pub fn split(bytes: &[u8]) -> Result<(Position, &[u8]), WireError> {
    let mut reader = Reader::new(bytes);
    let flags = reader.u8("delimiting flags")?;
    let position = Position::from_flags(flags).ok_or_else(|| {
        let expected = Expected::OneOf("0x04, 0x05, 0x06 or 0x07");
        WireError::new(Reason::Delimiting, "delimiting flags", 0, expected, flags)
    })?;
    Ok((position, reader.rest()))
}

/// A fragment that belongs to no SDU; the parts of its SDU are discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// A fragment in between, or a last one, without a first one.
    #[error("a fragment without the first fragment of its SDU")]
    NoFirst,
    /// A first fragment or a whole SDU while an SDU was incomplete; the new one is kept.
    #[error("an SDU without its last fragment")]
    NoLast,
    /// The SDU is longer than the limit.
    #[error("an SDU of more bytes than the limit")]
    TooLong,
}

/// Puts fragments of SDUs together; bounded in memory.
#[derive(Debug, Clone)]
pub struct Reassembler {
    limit: usize,
    partial: Option<Vec<u8>>,
}

impl Reassembler {
    /// A reassembler for SDUs of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Reassembler { limit, partial: None }
    }

    /// The number of bytes that wait for more fragments.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.partial.as_ref().map_or(0, Vec::len)
    }

    /// Discards an incomplete SDU, such as after a gap in the sequence numbers.
    pub fn reset(&mut self) {
        self.partial = None;
    }

    /// Takes the next fragment. Returns the SDU, if it is complete, and whether an earlier one, or
    /// this one, was lost.
    pub fn push(&mut self, position: Position, fragment: &[u8]) -> (Option<Vec<u8>>, Option<Misplaced>) {
        let lost = match position {
            Position::Whole | Position::First => self.partial.take().map(|_| Misplaced::NoLast),
            Position::Middle | Position::Last if self.partial.is_none() => return (None, Some(Misplaced::NoFirst)),
            Position::Middle | Position::Last => None,
        };
        let mut sdu = self.partial.take().unwrap_or_default();
        if sdu.len() + fragment.len() > self.limit {
            return (None, Some(Misplaced::TooLong));
        }
        sdu.extend(fragment);
        match position {
            Position::Whole | Position::Last => (Some(sdu), lost),
            Position::First | Position::Middle => {
                self.partial = Some(sdu);
                (None, lost)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Misplaced, Position, Reassembler, fragments, split};
    use crate::error::Reason;

    #[test]
    fn fragments_make_up_the_sdu() {
        let sdu: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 9, 10, 11, 20, 21, 256] {
            for room in [0, 1, 10, 300] {
                let mut reassembler = Reassembler::new(256);
                let mut sdus = Vec::new();
                for (position, fragment) in fragments(&sdu[..length], room) {
                    let bytes = [&[position.flags()], fragment].concat();
                    let (position, fragment) = split(&bytes).unwrap();
                    let (complete, lost) = reassembler.push(position, fragment);
                    assert_eq!(lost, None);
                    sdus.extend(complete);
                }
                assert_eq!(sdus, [&sdu[..length]]);
                assert_eq!(reassembler.buffered(), 0);
            }
        }
    }

    #[test]
    fn other_flags_are_refused() {
        for flags in (0..=255).filter(|flags| !(4..=7).contains(flags)) {
            assert_eq!(split(&[flags, 1]).unwrap_err().reason, Reason::Delimiting);
        }
        assert_eq!(split(&[]).unwrap_err().reason, Reason::Truncated);
    }

    #[test]
    fn lost_fragments_lose_their_sdu_only() {
        let mut reassembler = Reassembler::new(4);
        let mut push = |position, fragment: &[u8]| reassembler.push(position, fragment);
        assert_eq!(push(Position::Last, b"x"), (None, Some(Misplaced::NoFirst)));
        assert_eq!(push(Position::First, b"ab"), (None, None));
        assert_eq!(push(Position::First, b"cd"), (None, Some(Misplaced::NoLast)));
        assert_eq!(push(Position::Last, b"ef"), (Some(b"cdef".to_vec()), None));
        assert_eq!(push(Position::First, b"ab"), (None, None));
        assert_eq!(push(Position::Last, b"cde"), (None, Some(Misplaced::TooLong)));
        assert_eq!(push(Position::Whole, b"x"), (Some(b"x".to_vec()), None));
    }
}
