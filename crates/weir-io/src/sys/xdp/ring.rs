//! The four rings that an AF_XDP socket shares with the kernel. Each has one producer and one
//! consumer, who tell each other how far they are with a pair of counters.

use crate::sys::{Plain, check};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

// SAFETY: a C struct of plain numbers.
unsafe impl Plain for libc::xdp_desc {}
// SAFETY: a plain number.
unsafe impl Plain for u64 {}

/// A ring in memory shared with the kernel.
#[derive(Debug)]
struct Ring<T> {
    map: NonNull<u8>,
    length: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
}

// SAFETY: the pointers are into a mapping that this owns; it can be used from any thread, by one at
// a time.
unsafe impl<T: Plain> Send for Ring<T> {}

impl<T: Plain> Ring<T> {
    /// Maps a ring of `size` entries, a power of two, that the socket has been told to have.
    fn map(
        socket: &OwnedFd,
        page_offset: libc::c_ulonglong,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let wrong = || io::Error::from_raw_os_error(libc::EINVAL);
        let place = |offset: u64, bytes: usize, alignment: usize| {
            let offset = usize::try_from(offset).ok().filter(|o| o.is_multiple_of(alignment));
            offset.and_then(|o| Some((o, o.checked_add(bytes)?))).ok_or_else(wrong)
        };
        let word = size_of::<AtomicU32>();
        let (entries, end) = place(offsets.desc, size as usize * size_of::<T>(), align_of::<T>())?;
        let (producer, end_1) = place(offsets.producer, word, word)?;
        let (consumer, end_2) = place(offsets.consumer, word, word)?;
        let (flags, end_3) = place(offsets.flags, word, word)?;
        let length = end.max(end_1).max(end_2).max(end_3);
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_POPULATE;
        let page_offset = libc::off_t::try_from(page_offset).map_err(|_| wrong())?;
        // SAFETY: a new mapping anywhere; nothing that exists is changed.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                rights,
                kind,
                socket.as_raw_fd(),
                page_offset,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = NonNull::new(map.cast::<u8>()).ok_or_else(wrong)?;
        // SAFETY: all four are within the mapping and aligned, as checked above.
        unsafe {
            Ok(Ring {
                map,
                length,
                producer: map.add(producer).cast(),
                consumer: map.add(consumer).cast(),
                flags: map.add(flags).cast(),
                entries: map.add(entries).cast(),
                size,
            })
        }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: the pointer is into the mapping, which lives as long as `self`; the kernel
        // changes it with atomic operations only.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: the pointer is into the mapping, which lives as long as `self`; the kernel
        // changes it with atomic operations only.
        unsafe { self.consumer.as_ref() }
    }

    fn needs_wakeup(&self) -> bool {
        // SAFETY: the pointer is into the mapping, which lives as long as `self`; the kernel
        // changes it with atomic operations only.
        let flags = unsafe { self.flags.as_ref() };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Where the entry with this number is.
    fn entry(&self, number: u32) -> *mut T {
        // SAFETY: the mask keeps the entry within the ring.
        unsafe { self.entries.as_ptr().add((number & (self.size - 1)) as usize) }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nobody has a reference into it any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.length) };
    }
}

/// Sets the size of a ring of a socket.
pub(super) fn set_size(socket: &OwnedFd, option: libc::c_int, size: u32) -> io::Result<()> {
    let length = size_of::<u32>() as libc::socklen_t;
    let pointer = std::ptr::from_ref(&size).cast();
    // SAFETY: the pointer is to a number of `length` bytes that lives during the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, pointer, length) })?;
    Ok(())
}

/// The end of a ring that we write to: the fill ring and the one to send.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// How far we have written.
    written: u32,
    /// How far the kernel had read when we last looked.
    read: u32,
}

impl<T: Plain> Producer<T> {
    pub(super) fn new(
        socket: &OwnedFd,
        page_offset: libc::c_ulonglong,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let ring = Ring::map(socket, page_offset, offsets, size)?;
        Ok(Producer {
            written: ring.producer().load(Ordering::Relaxed),
            read: ring.consumer().load(Ordering::Acquire),
            ring,
        })
    }

    /// Number of entries that can be written; reads the kernel's counter if fewer than `wanted` are
    /// known.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let mut used = self.written.wrapping_sub(self.read);
        if self.ring.size.saturating_sub(used) < wanted {
            // Acquire: the kernel has read the entries before it counted them.
            self.read = self.ring.consumer().load(Ordering::Acquire);
            used = self.written.wrapping_sub(self.read);
        }
        self.ring.size.saturating_sub(used)
    }

    /// Writes an entry, which the kernel sees after [`Self::submit`]. False where the ring is full.
    pub(super) fn push(&mut self, value: T) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        // SAFETY: the entry is within the ring, and there is room, so the kernel does not read it
        // now.
        unsafe { self.ring.entry(self.written).write(value) };
        self.written = self.written.wrapping_add(1);
        true
    }

    /// Shows the kernel what has been written.
    pub(super) fn submit(&mut self) {
        // Release: the entries are written before they are counted.
        self.ring.producer().store(self.written, Ordering::Release);
    }

    /// Entries that the kernel has not read yet.
    pub(super) fn pending(&mut self) -> u32 {
        self.read = self.ring.consumer().load(Ordering::Acquire);
        self.written.wrapping_sub(self.read)
    }

    /// Whether there are any.
    pub(super) fn is_pending(&self) -> bool {
        self.ring.consumer().load(Ordering::Acquire) != self.written
    }

    /// Whether the kernel only looks when it is called.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// The end of a ring that we read from: what was received, and what has been sent.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// How far the kernel had written when we last looked.
    written: u32,
    /// How far we have read.
    read: u32,
}

impl<T: Plain> Consumer<T> {
    pub(super) fn new(
        socket: &OwnedFd,
        page_offset: libc::c_ulonglong,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let ring = Ring::map(socket, page_offset, offsets, size)?;
        Ok(Consumer {
            written: ring.producer().load(Ordering::Acquire),
            read: ring.consumer().load(Ordering::Relaxed),
            ring,
        })
    }

    /// Reads the next entry. `None` where there is none. The kernel writes no other in its place
    /// before [`Self::release`].
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.read == self.written {
            // Acquire: the entries are written before they are counted.
            self.written = self.ring.producer().load(Ordering::Acquire);
            if self.read == self.written {
                return None;
            }
        }
        // SAFETY: the entry is within the ring, the kernel has written it and does not touch it
        // until it is released; any bytes make a `T`.
        let value = unsafe { self.ring.entry(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(value)
    }

    /// Puts the entry read last back, to be read again.
    pub(super) fn unpop(&mut self) {
        self.read = self.read.wrapping_sub(1);
    }

    /// Lets the kernel write over what has been read.
    pub(super) fn release(&mut self) {
        // Release: we have read the entries before they are given back.
        self.ring.consumer().store(self.read, Ordering::Release);
    }
}
