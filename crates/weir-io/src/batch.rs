//! Frames on their way from a device to a switch.

/// No frame is longer: the largest capture length that tcpdump writes.
pub const MAX_FRAME: usize = 256 * 1024;

/// A frame: Ethernet from the destination address on, without the checksum at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its bytes.
    pub data: &'a [u8],
    /// When it arrived (or was sent), in nanoseconds since 1970.
    pub time_ns: u64,
}

/// Frames that a device has received.
///
/// All memory is taken when the batch is made; filling it allocates nothing.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    /// End in `bytes` and time.
    frames: Vec<(usize, u64)>,
    max_frames: usize,
    max_bytes: usize,
}

impl Batch {
    /// Room for this many frames of usual size, and for one of any size.
    ///
    /// # Panics
    ///
    /// Where `max_frames` is 0.
    #[must_use]
    pub fn new(max_frames: usize) -> Self {
        assert!(max_frames > 0, "a batch must have room for a frame");
        let max_bytes = max_frames.saturating_mul(2048).max(MAX_FRAME);
        Batch {
            bytes: Vec::with_capacity(max_bytes),
            frames: Vec::with_capacity(max_frames),
            max_frames,
            max_bytes,
        }
    }

    /// Takes all frames out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }

    /// Number of frames in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Number of frames it has room for, if they are not too large.
    #[must_use]
    pub fn room(&self) -> usize {
        self.max_frames - self.frames.len()
    }

    /// Adds a frame. False where there is no room.
    pub fn push(&mut self, data: &[u8], time_ns: u64) -> bool {
        self.push_parts(&[data], time_ns)
    }

    /// Adds a frame that comes in parts. False where there is no room.
    pub fn push_parts(&mut self, parts: &[&[u8]], time_ns: u64) -> bool {
        let length: usize = parts.iter().map(|p| p.len()).sum();
        if self.room() == 0 || length > self.max_bytes - self.bytes.len() {
            return false;
        }
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.frames.push((self.bytes.len(), time_ns));
        true
    }

    /// The frame at a position.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Frame<'_>> {
        let &(end, time_ns) = self.frames.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.frames[before].0);
        Some(Frame {
            data: &self.bytes[start..end],
            time_ns,
        })
    }

    /// All frames in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        (0..self.len()).filter_map(|i| self.get(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut batch = Batch::new(2);
        assert!(batch.push(&[1, 2], 5));
        assert!(batch.push_parts(&[&[3], &[], &[4]], 6));
        assert!(!batch.push(&[], 7), "two is all it holds");
        let frames: Vec<_> = batch.iter().map(|f| (f.data.to_vec(), f.time_ns)).collect();
        assert_eq!(frames, [(vec![1, 2], 5), (vec![3, 4], 6)]);
        batch.clear();
        assert!(batch.is_empty() && batch.room() == 2);
    }

    #[test]
    fn one_frame_of_any_size_fits_and_memory_never_grows() {
        let mut batch = Batch::new(1);
        let before = batch.bytes.capacity();
        assert!(!batch.push(&vec![0; MAX_FRAME + 1], 0));
        assert!(batch.push(&vec![0; MAX_FRAME], 0));
        assert_eq!(batch.bytes.capacity(), before);
    }
}
