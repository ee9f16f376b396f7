//! Packets in memory. A frame's bytes lie in borrowed memory, with tailroom after them; this file
//! keeps that invariant.
#![allow(unsafe_code)]

use super::TAILROOM;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A packet in memory of its own, with room before and after it.
///
/// Sixteen bytes: a vector's frames are read twice per vector, to prefetch packets and to load
/// them, and with many frames each read misses the caches. So there is no slice, only the address,
/// the offset and the length.
#[derive(Debug)]
#[repr(C)]
pub struct Frame<'a> {
    packet: NonNull<u8>,
    /// The packet's offset in its memory, and its length in the upper half. As one word, beside
    /// another word, they can be split for several frames at once by vector instructions.
    offset_and_length: u64,
    memory: PhantomData<&'a mut [u8]>,
}

const _: () = assert!(size_of::<Frame<'_>>() == 16);

// SAFETY: a frame is exclusively borrowed memory, as `&mut [u8]` is.
unsafe impl Send for Frame<'_> {}
// SAFETY: nothing is written through a shared reference.
unsafe impl Sync for Frame<'_> {}

impl<'a> Frame<'a> {
    /// The packet at `start` of the memory. `None` if the memory is too short for it and
    /// [`TAILROOM`] after it, or if it ends 4 GiB into the memory or later.
    #[must_use]
    #[inline]
    pub fn new(memory: &'a mut [u8], start: usize, length: usize) -> Option<Self> {
        let end = start.checked_add(length)?.checked_add(TAILROOM)?;
        if end > memory.len() {
            return None;
        }
        // So offset and length fit in 32 bits each, also after the packet's start moves.
        u32::try_from(start + length).ok()?;
        // SAFETY: `start` is not beyond the memory's end.
        let packet = unsafe { NonNull::from(memory).cast::<u8>().add(start) };
        Some(Frame {
            packet,
            offset_and_length: pack(start as u64, length as u64),
            memory: PhantomData,
        })
    }

    /// Its length in bytes.
    #[must_use]
    #[inline]
    pub fn length(&self) -> usize {
        (self.offset_and_length >> 32) as usize
    }

    /// The packet's offset in its memory.
    pub(super) fn offset(&self) -> u64 {
        self.offset_and_length & u64::from(u32::MAX)
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: they are bytes of the borrowed memory.
        unsafe { std::slice::from_raw_parts(self.packet.as_ptr(), self.length()) }
    }

    /// Its bytes, mutable.
    #[must_use]
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: they are bytes of the exclusively borrowed memory, and `self` is borrowed
        // exclusively, too.
        unsafe { std::slice::from_raw_parts_mut(self.packet.as_ptr(), self.length()) }
    }

    /// Removes the first bytes.
    pub fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.length());
        let begin = self.packet.addr().get() + bytes;
        // SAFETY: these are bytes of the packet, or none at its end.
        unsafe { self.set_bounds(begin as u64, (self.length() - bytes) as u64) };
    }

    /// Sets the address where the packet begins, and its length.
    ///
    /// # Safety
    /// These are bytes of the memory, and end less than 4 GiB into it.
    #[inline]
    pub(super) unsafe fn set_bounds(&mut self, begin: u64, length: u64) {
        let distance = begin.wrapping_sub(self.packet.addr().get() as u64);
        // SAFETY: the caller's promise. If the address is lower than before, the distance is
        // negative.
        self.packet = unsafe { self.packet.offset(distance as isize) };
        self.offset_and_length = pack(self.offset().wrapping_add(distance), length);
    }

    /// Its address and length.
    #[must_use]
    #[inline]
    pub fn address(&self) -> (*const u8, usize) {
        (self.packet.as_ptr(), self.length())
    }

    /// Its address, for code that may write there, and its length, as words of the context.
    #[inline(always)]
    pub(super) fn address_and_length(&mut self) -> [u64; 2] {
        [self.packet.as_ptr() as u64, self.offset_and_length >> 32]
    }

    /// Its offset in its memory, and its length.
    #[must_use]
    #[inline]
    pub fn offset_and_length(&self) -> (usize, usize) {
        (self.offset() as usize, self.length())
    }
}

/// Packs an offset and a length below 4 GiB into a word.
#[inline(always)]
fn pack(offset: u64, length: u64) -> u64 {
    debug_assert!(offset.max(length) <= u32::MAX.into());
    length << 32 | offset
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
        assert_eq!((frame.bytes(), frame.offset_and_length()), (&b"et"[..], (12, 2)));
        frame.skip(9);
        assert_eq!((frame.bytes(), frame.offset_and_length()), (&b""[..], (14, 0)));
        let begin = frame.address().0 as u64 - 14;
        // SAFETY: it is where the memory begins, which has at least 14 bytes.
        unsafe { frame.set_bounds(begin, 14) };
        frame.bytes_mut()[..3].copy_from_slice(b"new");
        assert_eq!(
            (frame.bytes(), frame.offset_and_length()),
            (&b"new\0\0\0\0\0packet"[..], (0, 14))
        );
        assert_eq!(&memory[..8], b"new\0\0\0\0\0");
    }
}
