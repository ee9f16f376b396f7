//! How the file is made of frames: length (32 bits, little-endian) and CRC-32 (the same) of what
//! follows, which is a byte for its kind, and its contents.
//!
//! The first frame says how many bytes were written before the file took its name. A damaged or
//! incomplete frame among these bytes is an error. Only after them, where batches are appended, may
//! the last frame be incomplete.

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

/// The header of a file whose first `whole` bytes are written before it gets its name. It has the
/// same length for every `whole`.
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
    // A file that was longer before the power went may end in zeros. A wrong length may point
    // beyond the frames that follow.
    let torn = || match rest.iter().any(|b| *b != 0) && ends_in_frames(rest) {
        true => Next::Damaged,
        false => Next::Torn,
    };
    let number = |from: usize| {
        rest.get(from..from + 4)
            .and_then(|b| b.try_into().ok())
            .map(u32::from_le_bytes)
    };
    let (Some(length), Some(check)) = (number(0), number(4)) else {
        return Next::Torn;
    };
    let Some(framed) = rest.get(HEAD..HEAD.saturating_add(length as usize)) else {
        return torn();
    };
    if crc32fast::hash(framed) != check || framed.is_empty() {
        let is_last = HEAD + length as usize == rest.len();
        let is_blank = rest.iter().all(|b| *b == 0);
        return if is_last || is_blank { torn() } else { Next::Damaged };
    }
    match Kind::of(framed[0]) {
        Some(kind) => Next::Frame(kind, at + HEAD + 1..at + HEAD + framed.len()),
        None => Next::Damaged,
    }
}

/// Whether the file's end is complete frames, one after the other, that begin at a later place of
/// `rest` than its first.
///
/// It hashes at most twice as many bytes as there are, and looks no further then: a place where a
/// frame may begin has the number of a kind and a length that fits.
fn ends_in_frames(rest: &[u8]) -> bool {
    let mut to_hash = rest.len().saturating_mul(2);
    (1..rest.len().saturating_sub(HEAD)).any(|start| {
        let mut at = start;
        while let Some((end, check)) = frame_ends(rest, at).filter(|(end, _)| end - at <= to_hash) {
            to_hash -= end - at;
            if crc32fast::hash(&rest[at + HEAD..end]) != check {
                return false;
            }
            at = end;
        }
        at == rest.len()
    })
}

/// Where a frame ends whose head may stand at a place, and its checksum.
fn frame_ends(bytes: &[u8], at: usize) -> Option<(usize, u32)> {
    let number = |from: usize| Some(u32::from_le_bytes(bytes.get(from..from + 4)?.try_into().ok()?));
    Kind::of(*bytes.get(at + HEAD)?)?;
    let end = (at + HEAD).checked_add(number(at)? as usize)?;
    (end > at + HEAD && end <= bytes.len()).then_some((end, number(at + 4)?))
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
        for bit in 0..8 * HEAD {
            let mut wrong = file.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(next(&wrong, 0), Next::Damaged, "{bit}: complete frames follow");
            wrong.truncate(file.len() - 1);
            assert_ne!(next(&wrong, 0), Next::End, "{bit}");
        }
        file[9] ^= 1;
        assert_eq!(next(&file, 0), Next::Damaged);
        let mut blank = file.clone();
        blank.extend([0; 100]);
        assert_eq!(next(&blank, file.len()), Next::Torn);
    }
}
