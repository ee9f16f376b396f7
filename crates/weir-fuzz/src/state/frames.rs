//! The frames of a state file, as its format says and not as weir-state reads them.

use crate::rng::Rng;

/// Bytes before the first frame.
const MAGIC: usize = 8;
/// Bytes of a frame's length and check.
const HEAD: usize = 8;

/// A file taken apart.
#[derive(Debug, Clone)]
pub(super) struct Frames {
    magic: Vec<u8>,
    /// Kind and contents of each whole frame.
    frames: Vec<Vec<u8>>,
    tail: Vec<u8>,
}

impl Frames {
    pub(super) fn of(file: &[u8]) -> Self {
        let (magic, mut rest) = file.split_at(MAGIC.min(file.len()));
        let mut frames = Vec::new();
        while let Some((frame, after)) = whole_frame(rest) {
            frames.push(frame.to_vec());
            rest = after;
        }
        Frames {
            magic: magic.to_vec(),
            frames,
            tail: rest.to_vec(),
        }
    }

    /// Where the part of the file ends that is whole frames.
    pub(super) fn whole(&self) -> usize {
        self.magic.len() + self.frames.iter().map(|f| HEAD + f.len()).sum::<usize>()
    }

    /// The file with other frames, all with right checks.
    pub(super) fn changed(mut self, rng: &mut Rng, other: &Frames) -> Vec<u8> {
        let count = self.frames.len();
        let (a, b) = (rng.below(count), rng.below(count));
        match rng.below(7) {
            _ if count == 0 => {}
            0 => drop(self.frames.remove(a)),
            1 => self.frames.insert(a, self.frames[b].clone()),
            2 => self.frames.swap(a, b),
            3 => {
                if let Some(frame) = rng.pick(&other.frames) {
                    self.frames.insert(a, frame.clone());
                }
            }
            4 => {
                let moved = self.frames.remove(a);
                self.frames[b.min(count.saturating_sub(2))..]
                    .first_mut()
                    .into_iter()
                    .for_each(|f| f.extend(&moved[1..]));
            }
            // The first frames are the length of the part that was written at once, and the
            // program, which is long.
            _ => {
                let at = if rng.chance(90) { a.max(2).min(count - 1) } else { a };
                self.frames[at] = changed_bytes(rng, std::mem::take(&mut self.frames[at]));
            }
        }
        self.joined()
    }

    fn joined(&self) -> Vec<u8> {
        let mut file = self.magic.clone();
        for frame in &self.frames {
            file.extend((frame.len() as u32).to_le_bytes());
            file.extend(crc32fast::hash(frame).to_le_bytes());
            file.extend(frame);
        }
        file.extend(&self.tail);
        file
    }
}

fn whole_frame(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (check, after) = after.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (frame, after) = after.split_at_checked(length)?;
    let good = !frame.is_empty() && crc32fast::hash(frame) == u32::from_le_bytes(*check);
    good.then_some((frame, after))
}

fn changed_bytes(rng: &mut Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..rng.between(1, 3) {
        let at = rng.below(bytes.len());
        match rng.below(6) {
            _ if bytes.is_empty() => bytes.push(rng.number() as u8),
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.one([0, 1, 2, 0x7f, 0x80, 0xff]),
            2 => bytes[at] = rng.below(24) as u8,
            3 => bytes.insert(at, rng.number() as u8),
            4 => {
                // A number that is as long as it may be.
                let long = [0xff, 0xff, 0xff, 0xff, 0x0f];
                bytes.splice(at..at + 1, long);
            }
            _ => {
                let end = (at + rng.below(20)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = rng.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
    bytes
}
