//! How the file is made of frames: length (32 bits, little-endian) and CRC-32 (the same) of what
//! follows, which is a byte for its kind, and its contents.
//!
//! The first frame says how many bytes were written before the file took its name. These are
//! complete, so damage there is damage; a frame that is cut off can stand only after them, where
//! batches are appended.

use std::ops::Range;

/// The first bytes of a file of any version.
pub const NAME: &[u8; 6] = b"weirst";

/// The first bytes of a file, with the version of its format.
pub const MAGIC: &[u8; 8] = b"weirst03";
/// The first bytes of a file of the version before, which has no [`Kind::Whole`].
pub const MAGIC_BEFORE: &[u8; 8] = b"weirst02";
/// Bytes in front of a frame's kind.
const HEAD: usize = 8;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first: which program.
    Begin = 1,
    /// Pieces of a switch's state, one after the other, that are valid together.
    Pieces = 2,
    /// Something that the caller keeps, by name.
    Setting = 3,
    /// How many bytes of the file were written at once, as 64 bits, little-endian.
    Whole = 4,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        [Kind::Begin, Kind::Pieces, Kind::Setting, Kind::Whole]
            .into_iter()
            .find(|k| *k as u8 == byte)
    }
}

/// Appends a frame.
pub fn append(to: &mut Vec<u8>, kind: Kind, contents: &[u8]) {
    let mut check = crc32fast::Hasher::new();
    check.update(&[kind as u8]);
    check.update(contents);
    let length = u32::try_from(contents.len() + 1).unwrap_or(u32::MAX);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(&check.finalize().to_le_bytes());
    to.push(kind as u8);
    to.extend_from_slice(contents);
}

/// The first bytes of a file of which so many bytes are written at once. Their number does not
/// depend on it.
pub fn start(whole: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    append(&mut bytes, Kind::Whole, &whole.to_le_bytes());
    bytes
}

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A frame: its kind, and where its contents are.
    Frame(Kind, Range<usize>),
    /// Nothing.
    End,
    /// The beginning of a frame whose end is missing, or was never written.
    Torn,
    /// Something else.
    Damaged,
}

/// The frame that begins at a place.
pub fn next(bytes: &[u8], at: usize) -> Next {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return Next::End;
    }
    // A file that was longer before the power went may end in zeros.
    let is_blank = || rest.iter().all(|b| *b == 0);
    let number = |from: usize| {
        rest.get(from..from + 4)
            .and_then(|b| b.try_into().ok())
            .map(u32::from_le_bytes)
    };
    let (Some(length), Some(check)) = (number(0), number(4)) else {
        return Next::Torn;
    };
    let Some(framed) = rest.get(HEAD..HEAD.saturating_add(length as usize)) else {
        return Next::Torn;
    };
    if crc32fast::hash(framed) != check || framed.is_empty() {
        let is_last = HEAD + length as usize == rest.len();
        return if is_last || is_blank() {
            Next::Torn
        } else {
            Next::Damaged
        };
    }
    match Kind::of(framed[0]) {
        Some(kind) => Next::Frame(kind, at + HEAD + 1..at + HEAD + framed.len()),
        None => Next::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_back_whole_and_torn_ones_are_told_from_damaged_ones() {
        let mut file = Vec::new();
        append(&mut file, Kind::Begin, b"one");
        let second = file.len();
        append(&mut file, Kind::Pieces, b"");
        assert_eq!(next(&file, 0), Next::Frame(Kind::Begin, 9..12));
        assert_eq!(next(&file, second), Next::Frame(Kind::Pieces, second + 9..second + 9));
        assert_eq!(next(&file, file.len()), Next::End);
        for cut in second + 1..file.len() {
            assert_eq!(next(&file[..cut], second), Next::Torn, "{cut}");
        }
        file[9] ^= 1;
        assert_eq!(next(&file, 0), Next::Damaged);
        let mut blank = file.clone();
        blank.extend([0; 100]);
        assert_eq!(next(&blank, file.len()), Next::Torn);
    }
}
