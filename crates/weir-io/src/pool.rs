//! Frames in memory that the kernel can share, and batches of them that change hands without
//! copying.
#![allow(unsafe_code)]

use crate::error::IoError;
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How the frames of a [`Pool`] lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameLayout {
    /// An odd number of cache lines apart, so that the first bytes of many frames do not compete
    /// for the same few sets of a cache. The kernel calls it unaligned chunks; it is used wherever
    /// the kernel copies.
    #[default]
    Packed,
    /// A power of two apart and each within a page, as drivers want it that write into the frames
    /// themselves (zero-copy). The frames' beginnings share few cache sets.
    Aligned,
}

/// Frames for AF_XDP (a UMEM) or for any other use: a piece of memory cut into equal frames, each
/// with room in front of and after the packet.
///
/// Clones are the same pool. Frames are taken and given back through [`FrameBatch`]es and sockets;
/// the memory is freed when the last of all these is gone. Interfaces that are opened with the same
/// pool pass frames to each other without copying.
#[derive(Debug, Clone)]
pub struct Pool {
    pub(crate) memory: Arc<Memory>,
}

impl Pool {
    /// Bytes in front of a packet that has just been received: what the kernel leaves in every
    /// frame.
    pub const HEADROOM: usize = 256;
    /// Bytes after the longest packet.
    pub const TAILROOM: usize = 64;
    /// Longest packet that AF_XDP takes: the kernel wants a frame within a page of 4096 bytes.
    pub const MAX_FRAME: usize = 4096 - Self::HEADROOM - Self::TAILROOM;
    /// Longest packet that any pool takes.
    pub const LARGEST: usize = 1 << 18;
    /// Most frames of a pool.
    pub const MAX_FRAMES: u32 = 1 << 19;

    /// A pool of `frames` frames for packets of up to `frame_size` bytes, at most
    /// [`Self::MAX_FRAMES`] and [`Self::LARGEST`]. A frame takes 2 or 4 KiB; one for more than
    /// [`Self::MAX_FRAME`] takes what it needs, and is not for AF_XDP.
    ///
    /// # Errors
    ///
    /// There is not so much memory.
    pub fn new(frames: u32, frame_size: usize, layout: FrameLayout) -> Result<Self, IoError> {
        let memory = Memory::new(frames.clamp(1, Self::MAX_FRAMES), frame_size, layout);
        let doing = format!("taking memory for {frames} frames");
        let memory = memory.map_err(|e| IoError::system(doing, "CAP_IPC_LOCK", e))?;
        Ok(Pool {
            memory: Arc::new(memory),
        })
    }

    /// Number of frames, wherever they are.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.memory.count
    }

    /// Number of free frames. Sockets and batches keep a few dozen in reserve, which do
    /// not count.
    #[must_use]
    pub fn free(&self) -> usize {
        self.memory.free_list().len()
    }

    /// Longest packet that a frame takes.
    #[must_use]
    pub fn frame_size(&self) -> usize {
        self.memory.longest()
    }

    /// How the frames lie.
    #[must_use]
    pub fn layout(&self) -> FrameLayout {
        self.memory.layout
    }

    /// An empty batch of this pool's frames with room for `capacity` of them.
    #[must_use]
    pub fn batch(&self, capacity: usize) -> FrameBatch {
        FrameBatch {
            memory: self.memory.clone(),
            slots: Vec::with_capacity(capacity),
            capacity,
            held: 0,
            spare: Vec::with_capacity(SPARE * 2),
        }
    }

    /// Whether both are the same pool, so that frames go from one to the other without copying.
    #[must_use]
    pub fn is(&self, other: &Pool) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }
}

/// Frames that a batch or socket takes from the pool at once.
pub(crate) const SPARE: usize = 64;

/// The memory of a pool. The holder of a frame's number owns the frame. It is the free list, a
/// batch, a socket or the kernel, and never two of them.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    length: usize,
    /// Bytes from frame to frame.
    stride: usize,
    /// Bytes of a frame that the kernel may write to.
    chunk: usize,
    count: u32,
    layout: FrameLayout,
    free: Mutex<Vec<u32>>,
}

// SAFETY: the memory is plain bytes that live until this is dropped. Who may touch which frame is
// decided by who has its number, and numbers are handed over by value.
unsafe impl Send for Memory {}
// SAFETY: through a shared reference only the numbers of free frames are reached, behind the mutex;
// bytes of a frame only by who has its number.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(count: u32, frame_size: usize, layout: FrameLayout) -> io::Result<Self> {
        let needed = frame_size.min(Pool::LARGEST) + Pool::HEADROOM + Pool::TAILROOM;
        let chunk = match needed {
            ..=2048 => 2048,
            2049..=4096 => 4096,
            // An odd number of lines of 64 bytes, with the room after.
            _ => needed.next_multiple_of(128),
        };
        let stride = match layout {
            // 33 or 65 lines of 64 bytes: the room after, and the odd number.
            FrameLayout::Packed => chunk + Pool::TAILROOM,
            FrameLayout::Aligned => chunk,
        };
        let length = (stride * count as usize).next_multiple_of(65_536);
        Ok(Memory {
            base: pages::take(length)?,
            length,
            stride,
            chunk,
            count,
            layout,
            free: Mutex::new((0..count).rev().collect()),
        })
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes that hold frames.
    pub(crate) fn used(&self) -> usize {
        self.stride * self.count as usize
    }

    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    pub(crate) fn layout(&self) -> FrameLayout {
        self.layout
    }

    /// Bytes from frame to frame.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Longest packet that leaves the room promised in front and after.
    pub(crate) fn longest(&self) -> usize {
        self.stride - Pool::HEADROOM - Pool::TAILROOM
    }

    pub(crate) fn address(&self, frame: u32) -> u64 {
        u64::from(frame) * self.stride as u64
    }

    /// The frame that an address is in, and how far in. `None` outside.
    pub(crate) fn locate(&self, address: u64) -> Option<(u32, usize)> {
        let address = usize::try_from(address).ok()?;
        let (frame, offset) = (address / self.stride, address % self.stride);
        let frame = u32::try_from(frame).ok()?;
        (frame < self.count).then_some((frame, offset))
    }

    fn free_list(&self) -> MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves up to `most` free frames to the end of `to`.
    pub(crate) fn take(&self, to: &mut Vec<u32>, most: usize) {
        let mut free = self.free_list();
        let from = free.len().saturating_sub(most);
        to.extend(free.drain(from..));
    }

    /// Takes frames back.
    pub(crate) fn give(&self, frames: impl IntoIterator<Item = u32>) {
        self.free_list().extend(frames);
    }

    /// The bytes of a frame, to read.
    ///
    /// # Safety
    ///
    /// The caller owns the frame, as the type says, and nobody changes it meanwhile.
    pub(crate) unsafe fn read(&self, frame: u32) -> &[u8] {
        debug_assert!(frame < self.count);
        // SAFETY: frames are within the mapping, which is initialised with zeros and lives as long
        // as `self`; the caller guarantees that this one does not change.
        unsafe { std::slice::from_raw_parts(self.base().add(frame as usize * self.stride), self.stride) }
    }

    /// The bytes of a frame, to change.
    ///
    /// # Safety
    ///
    /// The caller owns the frame, as the type says, and has no other reference to its bytes.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn bytes(&self, frame: u32) -> &mut [u8] {
        debug_assert!(frame < self.count);
        // SAFETY: frames are within the mapping, which is initialised with zeros and lives as long
        // as `self`; the caller promises that nothing else accesses this one.
        unsafe { std::slice::from_raw_parts_mut(self.base().add(frame as usize * self.stride), self.stride) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the pages are ours, and whoever had a reference to them had an `Arc` of this.
        unsafe { pages::give(self.base, self.length) };
    }
}

/// Pages of memory, filled with zeros.
#[cfg(target_os = "linux")]
mod pages {
    use std::io;
    use std::ptr::NonNull;

    pub(super) fn take(length: usize) -> io::Result<NonNull<u8>> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new piece of memory anywhere; nothing that exists is changed.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Fewer entries of the TLB, where the system likes. Without them all works as well.
        // SAFETY: the range is the one just mapped; the advice changes no contents.
        let _ = unsafe { libc::madvise(base, length, libc::MADV_HUGEPAGE) };
        NonNull::new(base.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
    }

    /// # Safety
    ///
    /// [`take`] gave these pages, and nobody uses them any more.
    pub(super) unsafe fn give(base: NonNull<u8>, length: usize) {
        // SAFETY: the mapping is the caller's.
        unsafe { libc::munmap(base.as_ptr().cast(), length) };
    }
}

/// Pages of memory, filled with zeros.
#[cfg(not(target_os = "linux"))]
mod pages {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::io;
    use std::ptr::NonNull;

    fn layout(length: usize) -> io::Result<Layout> {
        Layout::from_size_align(length.max(1), 4096).map_err(io::Error::other)
    }

    pub(super) fn take(length: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc_zeroed(layout(length)?) };
        NonNull::new(base).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// # Safety
    ///
    /// [`take`] gave these pages, and nobody uses them any more.
    pub(super) unsafe fn give(base: NonNull<u8>, length: usize) {
        if let Ok(layout) = layout(length) {
            // SAFETY: they were taken with this layout, and are the caller's.
            unsafe { dealloc(base.as_ptr(), layout) };
        }
    }
}

/// A frame that somebody owns, and where the packet is in it.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) frame: u32,
    pub(crate) start: u32,
    pub(crate) length: u32,
    pub(crate) time_ns: u64,
}

/// Frames of a [`Pool`] that the holder owns: to be read, changed, grown to either side, moved to
/// other batches and sent, all in place.
///
/// Positions are kept when a frame is moved away; it leaves a hole. What is in the batch when it is
/// cleared or dropped goes back to the pool.
#[derive(Debug)]
pub struct FrameBatch {
    pub(crate) memory: Arc<Memory>,
    slots: Vec<Option<Slot>>,
    capacity: usize,
    /// Slots that are no holes.
    held: usize,
    /// Free frames in reserve.
    spare: Vec<u32>,
}

impl FrameBatch {
    /// Number of positions, holes among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no frame in it; there may be holes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Number of frames in it.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Number of frames it has room for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity - self.slots.len()
    }

    /// The pool whose frames these are.
    #[must_use]
    pub fn pool(&self) -> Pool {
        Pool {
            memory: self.memory.clone(),
        }
    }

    /// Gives all frames back to the pool.
    pub fn clear(&mut self) {
        if self.held > 0 {
            self.memory.give(self.slots.drain(..).flatten().map(|slot| slot.frame));
        }
        self.slots.clear();
        self.held = 0;
    }

    /// As [`Self::clear`], and gives the frames in reserve back too: for a batch that is put away.
    pub fn put_away(&mut self) {
        self.clear();
        if !self.spare.is_empty() {
            self.memory.give(self.spare.drain(..));
        }
    }

    /// The frame at a position. `None` for a hole or past the end.
    pub fn get_mut(&mut self, index: usize) -> Option<FrameMut<'_>> {
        let slot = self.slots.get_mut(index)?.as_mut()?;
        // SAFETY: the slot says that this batch owns the frame, and it is borrowed as long as the
        // bytes.
        let bytes = unsafe { self.memory.bytes(slot.frame) };
        Some(FrameMut { bytes, slot })
    }

    /// All frames with their positions, to be changed at the same time.
    pub fn frames_mut(&mut self) -> impl Iterator<Item = (usize, FrameMut<'_>)> {
        let memory = &self.memory;
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(move |(index, slot)| {
            let slot = slot.as_mut()?;
            // SAFETY: the slot says that this batch owns the frame; no other slot has the same one,
            // and the batch is borrowed as long as the bytes.
            let bytes = unsafe { memory.bytes(slot.frame) };
            Some((index, FrameMut { bytes, slot }))
        })
    }

    /// The bytes of the packet at a position.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let slot = self.slots.get(index)?.as_ref()?;
        // SAFETY: this batch owns the frame; while it is borrowed here, `get_mut` cannot be called.
        let bytes = unsafe { self.memory.read(slot.frame) };
        bytes.get(slot.start as usize..(slot.start + slot.length) as usize)
    }

    /// Adds a copy of a packet. False where there is no room, where the packet is longer than a
    /// frame takes, or where the pool has no frame left.
    pub fn push(&mut self, data: &[u8], time_ns: u64) -> bool {
        self.push_parts(&[data], time_ns)
    }

    /// As [`Self::push`], for a packet that comes in parts.
    pub fn push_parts(&mut self, parts: &[&[u8]], time_ns: u64) -> bool {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if self.room() == 0 || length > self.memory.longest() {
            return false;
        }
        if self.spare.is_empty() {
            self.memory.take(&mut self.spare, SPARE);
        }
        let Some(frame) = self.spare.pop() else {
            return false;
        };
        // SAFETY: the frame was free, and its number is with us only.
        let bytes = unsafe { self.memory.bytes(frame) };
        let mut end = Pool::HEADROOM;
        for part in parts {
            bytes[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        self.put(Slot {
            frame,
            start: Pool::HEADROOM as u32,
            length: length as u32,
            time_ns,
        });
        true
    }

    /// When the frame at a position arrived, in nanoseconds since 1970; 0 where there is none.
    #[must_use]
    pub fn time_ns(&self, index: usize) -> u64 {
        self.slots.get(index).and_then(|s| s.as_ref()).map_or(0, |s| s.time_ns)
    }

    /// Moves the frame at a position to the end of another batch and leaves a hole. Between batches
    /// of one pool no byte is touched; to another pool it is copied, and goes back to its own.
    ///
    /// False where the other batch has no room (or its pool no frame, or no frame so long), or
    /// there is nothing at the position; then nothing has changed.
    pub fn move_to(&mut self, index: usize, other: &mut FrameBatch) -> bool {
        if other.room() == 0 {
            return false;
        }
        if !Arc::ptr_eq(&self.memory, &other.memory) {
            let time_ns = self.time_ns(index);
            let copied = self.get(index).is_some_and(|data| other.push(data, time_ns));
            if copied {
                self.remove(index);
            }
            return copied;
        }
        let Some(slot) = self.slots.get_mut(index).and_then(Option::take) else {
            return false;
        };
        self.held -= 1;
        other.put(slot);
        true
    }

    /// Adds a copy of the frame at a position to another batch, as for a packet to many ports.
    /// False as for [`Self::push`].
    pub fn copy_to(&self, index: usize, other: &mut FrameBatch) -> bool {
        let time_ns = self.time_ns(index);
        self.get(index).is_some_and(|data| other.push(data, time_ns))
    }

    /// Gives the frame at a position back to the pool and leaves a hole.
    pub fn remove(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index).and_then(Option::take) {
            self.held -= 1;
            self.spare.push(slot.frame);
            if self.spare.len() >= SPARE * 2 {
                self.memory.give(self.spare.drain(SPARE..));
            }
        }
    }

    /// Gives the frames at the first positions back to the pool; the others move up.
    pub fn remove_front(&mut self, count: usize) {
        let count = count.min(self.slots.len());
        self.held -= self.slots[..count].iter().flatten().count();
        // At once, so that whoever takes frames next gets those that are still in a cache.
        self.memory
            .give(self.slots.drain(..count).flatten().map(|slot| slot.frame));
    }

    /// Adds a frame that is owned. The caller has seen to it that there is room.
    pub(crate) fn put(&mut self, slot: Slot) {
        self.slots.push(Some(slot));
        self.held += 1;
    }

    /// Hands frames over, from the front, while `take` wants them; those it does not want stay.
    /// Holes go.
    pub(crate) fn drain_while(&mut self, mut take: impl FnMut(&Slot, &Memory) -> bool) {
        let mut done = 0;
        for slot in &self.slots {
            if let Some(slot) = slot
                && !take(slot, &self.memory)
            {
                break;
            }
            done += 1;
        }
        self.slots.drain(..done);
        self.held = self.slots.iter().flatten().count();
    }
}

impl Drop for FrameBatch {
    fn drop(&mut self) {
        self.put_away();
    }
}

/// A frame of a batch, to be changed in place.
#[derive(Debug)]
pub struct FrameMut<'b> {
    bytes: &'b mut [u8],
    slot: &'b mut Slot,
}

impl<'b> FrameMut<'b> {
    /// The packet.
    #[must_use]
    pub fn data(&mut self) -> &mut [u8] {
        let (start, length) = (self.slot.start as usize, self.slot.length as usize);
        &mut self.bytes[start..start + length]
    }

    /// Length of the packet.
    #[must_use]
    pub fn length(&self) -> usize {
        self.slot.length as usize
    }

    /// When it arrived, in nanoseconds since 1970.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.slot.time_ns
    }

    /// Bytes free in front of the packet.
    #[must_use]
    pub fn headroom(&self) -> usize {
        self.slot.start as usize
    }

    /// Bytes free after the packet.
    #[must_use]
    pub fn tailroom(&self) -> usize {
        self.bytes.len() - self.headroom() - self.length()
    }

    /// All bytes of the frame as [`Self::whole`], for as long as the batch is borrowed; where the
    /// packet begins and how long it is.
    #[must_use]
    pub fn into_whole(self) -> (&'b mut [u8], usize, usize) {
        let (start, length) = (self.slot.start as usize, self.slot.length as usize);
        (self.bytes, start, length)
    }

    /// All bytes of the frame: the room in front, the packet and the room after. The packet begins
    /// at [`Self::headroom`]; [`Self::set_packet`] says where it is after a change.
    #[must_use]
    pub fn whole(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Says where in [`Self::whole`] the packet is. False, and no change, where that is outside.
    pub fn set_packet(&mut self, start: usize, length: usize) -> bool {
        let inside = start.checked_add(length).is_some_and(|end| end <= self.bytes.len());
        if inside {
            (self.slot.start, self.slot.length) = (start as u32, length as u32);
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(frames: u32) -> Pool {
        Pool::new(frames, 1514, FrameLayout::Packed).unwrap()
    }

    #[test]
    fn frames_keep_their_bytes_while_they_change_hands() {
        let pool = pool(8);
        let (mut a, mut b) = (pool.batch(8), pool.batch(2));
        for i in 0..3u8 {
            assert!(a.push(&[i; 60], u64::from(i)));
        }
        assert!(a.move_to(1, &mut b) && a.move_to(0, &mut b));
        assert!(!a.move_to(0, &mut b), "a hole");
        assert!(!a.move_to(2, &mut b), "no room");
        assert_eq!((a.len(), a.held(), b.held()), (3, 1, 2));
        assert_eq!((b.get(0), b.get(1)), (Some(&[1; 60][..]), Some(&[0; 60][..])));
        let mut frame = b.get_mut(0).unwrap();
        assert!(frame.headroom() >= 128 && frame.tailroom() >= 64);
        assert_eq!((frame.time_ns(), frame.length()), (1, 60));
        let start = frame.headroom() - 4;
        frame.whole()[start..start + 4].fill(9);
        assert!(frame.set_packet(start, 64) && !frame.set_packet(start, 4000));
        assert_eq!(frame.data()[..5], [9, 9, 9, 9, 1]);
        drop((a, b));
        assert_eq!(pool.free(), 8);
    }

    #[test]
    fn a_pool_gives_no_more_than_it_has_and_takes_everything_back() {
        let pool = pool(5);
        let mut batch = pool.batch(10);
        assert!(!batch.push(&[0; 4000], 0), "longer than a frame");
        assert!(batch.push_parts(&[&[1, 2], &[], &[3]], 0) && batch.get(0) == Some(&[1, 2, 3]));
        batch.clear();
        assert_eq!((0..10).filter(|_| batch.push(&[7; 1514], 0)).count(), 5);
        batch.remove(3);
        assert!(batch.push(&[8; 60], 0) && !batch.push(&[8; 60], 0));
        batch.remove_front(2);
        assert_eq!((batch.held(), batch.len(), batch.get(3)), (3, 4, Some(&[8; 60][..])));
        batch.remove_front(99);
        assert!(batch.is_empty() && batch.room() == 10);
        batch.clear();
        assert!(batch.is_empty() && batch.push(&[1], 0));
        drop(batch);
        assert_eq!(pool.free(), 5);
    }

    #[test]
    fn between_pools_a_frame_is_copied_and_goes_home() {
        let (one, two) = (pool(4), Pool::new(4, 3000, FrameLayout::Aligned).unwrap());
        assert!(!one.is(&two) && one.is(&one.clone()));
        let (mut a, mut b) = (one.batch(4), two.batch(4));
        assert!(b.push(&[5; 2500], 0) && b.push(&[5; 100], 3));
        assert!(!b.move_to(0, &mut a), "longer than the other pool's frames");
        assert!(b.move_to(1, &mut a) && a.copy_to(0, &mut b));
        assert_eq!((a.get(0), b.get(2)), (Some(&[5; 100][..]), Some(&[5; 100][..])));
        drop((a, b));
        assert_eq!((one.free(), two.free()), (4, 4));
    }

    #[test]
    fn the_largest_packet_leaves_the_room_that_is_promised() {
        for layout in [FrameLayout::Packed, FrameLayout::Aligned] {
            for size in [
                60,
                1728,
                1729,
                Pool::MAX_FRAME,
                Pool::MAX_FRAME + 1,
                9022,
                Pool::LARGEST,
            ] {
                let pool = Pool::new(2, size, layout).unwrap();
                assert!(pool.frame_size() >= size);
                let mut batch = pool.batch(1);
                assert!(batch.push(&vec![0; pool.frame_size()], 0));
                assert!(batch.get_mut(0).unwrap().tailroom() >= Pool::TAILROOM);
            }
        }
    }
}
