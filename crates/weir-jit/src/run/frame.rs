//! Packets in memory.
#![allow(unsafe_code)]

use super::TAILROOM;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A packet in memory of its own, with room before and behind it.
///
/// Sixteen bytes: a vector's frames are read twice per vector, for asking for the packets and for taking them in, and are in nobody's cache where there
/// are many. So it has no slice of the memory and a place in it, only what is asked for.
#[derive(Debug)]
#[repr(C)]
pub struct Frame<'a> {
    packet: NonNull<u8>,
    /// Bytes of the memory before it, and in the upper half those of the packet. As one word beside another they can be taken apart for several frames at once,
    /// which two halves would not be.
    room_and_length: u64,
    memory: PhantomData<&'a mut [u8]>,
}

const _: () = assert!(size_of::<Frame<'_>>() == 16);

// SAFETY: it is memory borrowed as a whole, as `&mut [u8]` is.
unsafe impl Send for Frame<'_> {}
// SAFETY: nothing is written through a shared reference.
unsafe impl Sync for Frame<'_> {}

impl<'a> Frame<'a> {
    /// The packet at `start` of the memory. `None` where the memory does not hold it and [`TAILROOM`] behind
    /// it, or where it ends 4 GiB into the memory or later.
    #[must_use]
    #[inline]
    pub fn new(memory: &'a mut [u8], start: usize, length: usize) -> Option<Self> {
        let end = start.checked_add(length)?.checked_add(TAILROOM)?;
        if end > memory.len() {
            return None;
        }
        // So neither part is more, wherever in it the packet begins one day.
        u32::try_from(start + length).ok()?;
        // SAFETY: `start` is not behind the memory's end.
        let packet = unsafe { NonNull::from(memory).cast::<u8>().add(start) };
        Some(Frame {
            packet,
            room_and_length: together(start as u64, length as u64),
            memory: PhantomData,
        })
    }

    #[inline]
    fn length(&self) -> usize {
        (self.room_and_length >> 32) as usize
    }

    fn room(&self) -> u64 {
        self.room_and_length & u64::from(u32::MAX)
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: they are bytes of the memory that is borrowed.
        unsafe { std::slice::from_raw_parts(self.packet.as_ptr(), self.length()) }
    }

    /// Its bytes, to be changed.
    #[must_use]
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: they are bytes of the memory that is borrowed to be changed, and `self` is
        // borrowed so, too.
        unsafe { std::slice::from_raw_parts_mut(self.packet.as_ptr(), self.length()) }
    }

    /// Leaves out the first bytes.
    pub fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.length());
        let begin = self.packet.addr().get() + bytes;
        // SAFETY: these are bytes of the packet, or none where it ends.
        unsafe { self.put(begin as u64, (self.length() - bytes) as u64) };
    }

    /// It begins at this address now, and has so many bytes.
    ///
    /// # Safety
    /// They are bytes of the memory, and end less than 4 GiB into it.
    #[inline]
    pub(super) unsafe fn put(&mut self, begin: u64, length: u64) {
        let further = begin.wrapping_sub(self.packet.addr().get() as u64);
        // SAFETY: the caller's promise; where it lies before, further is less than 0.
        self.packet = unsafe { self.packet.offset(further as isize) };
        self.room_and_length = together(self.room().wrapping_add(further), length);
    }

    /// The address where it begins, and how long it is.
    #[must_use]
    #[inline]
    pub fn address(&self) -> (*const u8, usize) {
        (self.packet.as_ptr(), self.length())
    }

    /// The same, as code has it, which may write there.
    #[inline(always)]
    pub(super) fn words(&mut self) -> [u64; 2] {
        [self.packet.as_ptr() as u64, self.room_and_length >> 32]
    }

    /// Where it begins in its memory, and how long it is.
    #[must_use]
    #[inline]
    pub fn place(&self) -> (usize, usize) {
        (self.room() as usize, self.length())
    }
}

/// Both are less than 4 GiB.
#[inline(always)]
fn together(room: u64, length: u64) -> u64 {
    debug_assert!(room.max(length) <= u32::MAX.into());
    length << 32 | room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_keeps_its_place_in_memory() {
        let mut memory = vec![0; 8 + 6 + TAILROOM];
        memory[8..14].copy_from_slice(b"packet");
        assert!(Frame::new(&mut memory, 9, 6).is_none());
        assert!(Frame::new(&mut memory, usize::MAX, 6).is_none());
        let Some(mut frame) = Frame::new(&mut memory, 8, 6) else {
            panic!("there is room")
        };
        frame.skip(4);
        assert_eq!((frame.bytes(), frame.place()), (&b"et"[..], (12, 2)));
        frame.skip(9);
        assert_eq!((frame.bytes(), frame.place()), (&b""[..], (14, 0)));
        let begin = frame.address().0 as u64 - 14;
        // SAFETY: it is where the memory begins, which has as many bytes.
        unsafe { frame.put(begin, 14) };
        frame.bytes_mut()[..3].copy_from_slice(b"new");
        assert_eq!((frame.bytes(), frame.place()), (&b"new\0\0\0\0\0packet"[..], (0, 14)));
        assert_eq!(&memory[..8], b"new\0\0\0\0\0");
    }
}
