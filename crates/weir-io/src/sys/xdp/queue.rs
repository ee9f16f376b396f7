//! The socket of one receive queue.

use super::program::{self, Attach};
use super::ring::{Consumer, Producer, set_size};
use crate::pool::{FrameLayout, Memory, SPARE, Slot};
use crate::sys::{Plain, check, get_option, set_option, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Packets per `sendto` where the kernel copies; before Linux 6.17 it is 32 and cannot be set.
const SEND_BUDGET: libc::c_int = 256;
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// Where the offset within a frame begins in an address of unaligned chunks.
const OFFSET_SHIFT: u32 = 48;

// SAFETY: a C struct of plain numbers.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: a C struct of plain numbers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: a C struct of plain numbers.
unsafe impl Plain for libc::xdp_statistics {}

/// What the socket is to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    pub(super) interface: u32,
    pub(super) queue: u32,
    /// Entries of each ring, a power of two.
    pub(super) ring: u32,
    pub(super) zero_copy: bool,
    pub(super) busy_poll: Option<super::XdpBusyPoll>,
}

/// What became of an attempt to make the kernel send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kicked {
    /// Frames that the interface has thrown away.
    pub(super) dropped: u64,
    /// The interface is down.
    pub(super) down: bool,
}

/// A socket bound to a queue, with its rings.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) socket: OwnedFd,
    fill: Producer<u64>,
    completion: Consumer<u64>,
    received: Consumer<libc::xdp_desc>,
    send: Producer<libc::xdp_desc>,
    pub(super) memory: Arc<Memory>,
    /// Free frames in reserve.
    spare: Vec<u32>,
    ring: u32,
    zero_copy: bool,
    busy_poll: bool,
    /// Frames that were received but cannot be handed over.
    pub(super) damaged: u64,
}

fn register(socket: &OwnedFd, memory: &Memory) -> io::Result<()> {
    let mut region = libc::xdp_umem_reg::zeroed();
    region.addr = memory.base() as u64;
    region.len = memory.used() as u64;
    region.chunk_size = memory.chunk() as u32;
    if memory.layout() == FrameLayout::Packed {
        region.flags = libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG;
    }
    set_option(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)
}

fn bind(socket: &OwnedFd, setup: &Setup, flags: u16, sibling: Option<&OwnedFd>) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: setup.interface,
        sxdp_queue_id: setup.queue,
        sxdp_shared_umem_fd: sibling.map_or(0, |fd| fd.as_raw_fd() as u32),
    };
    let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    let pointer = std::ptr::from_ref(&address).cast();
    // SAFETY: the pointer is to an address of `size` bytes that lives during the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), pointer, size) })?;
    Ok(())
}

impl Queue {
    /// Opens the socket of a queue. With a `sibling`, the socket of another queue of the interface,
    /// the memory is registered once for both; where the kernel cannot (before 5.10), the memory is
    /// registered again, which costs only locked pages.
    pub(super) fn open(setup: &Setup, memory: &Arc<Memory>, sibling: Option<&OwnedFd>) -> io::Result<Self> {
        let shared = sibling.and_then(|fd| Self::try_open(setup, memory, Some(fd)).ok());
        shared.map_or_else(|| Self::try_open(setup, memory, None), Ok)
    }

    fn try_open(setup: &Setup, memory: &Arc<Memory>, sibling: Option<&OwnedFd>) -> io::Result<Self> {
        let socket = socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        if sibling.is_none() {
            register(&socket, memory)?;
        }
        for option in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set_size(&socket, option, setup.ring)?;
        }
        // Best effort: from Linux 6.17 on.
        let _ = set_option(&socket, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &SEND_BUDGET);
        if let Some(busy) = setup.busy_poll {
            let options = [
                (libc::SO_PREFER_BUSY_POLL, 1),
                (libc::SO_BUSY_POLL, busy.microseconds),
                (libc::SO_BUSY_POLL_BUDGET, busy.budget),
            ];
            for (option, value) in options {
                let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
                set_option(&socket, libc::SOL_SOCKET, option, &value)?;
            }
        }
        let offsets: libc::xdp_mmap_offsets = get_option(&socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let page = |offset: libc::off_t| offset as libc::c_ulonglong;
        let mut queue = Queue {
            fill: Producer::new(&socket, libc::XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, setup.ring)?,
            completion: Consumer::new(&socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr, setup.ring)?,
            received: Consumer::new(&socket, page(libc::XDP_PGOFF_RX_RING), &offsets.rx, setup.ring)?,
            send: Producer::new(&socket, page(libc::XDP_PGOFF_TX_RING), &offsets.tx, setup.ring)?,
            memory: memory.clone(),
            spare: Vec::with_capacity(SPARE * 4),
            ring: setup.ring,
            zero_copy: setup.zero_copy,
            busy_poll: setup.busy_poll.is_some(),
            damaged: 0,
            socket,
        };
        let flags = match (sibling, setup.zero_copy) {
            (Some(_), _) => libc::XDP_SHARED_UMEM,
            (None, true) => libc::XDP_USE_NEED_WAKEUP | libc::XDP_ZEROCOPY,
            (None, false) => libc::XDP_USE_NEED_WAKEUP | libc::XDP_COPY,
        };
        // The kernel frees a queue some time after its socket was closed.
        let mut patience = 60;
        while let Err(error) = bind(&queue.socket, setup, flags, sibling) {
            patience -= 1;
            if patience == 0 || error.raw_os_error() != Some(libc::EBUSY) {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        queue.refill();
        Ok(queue)
    }

    /// A free frame.
    fn frame(&mut self) -> Option<u32> {
        if self.spare.is_empty() {
            self.reap();
        }
        if self.spare.is_empty() {
            self.memory.take(&mut self.spare, SPARE);
        }
        self.spare.pop()
    }

    /// Takes back the frames that have been sent.
    pub(super) fn reap(&mut self) {
        let mut any = false;
        while let Some(address) = self.completion.pop() {
            any = true;
            if let Some((frame, _)) = self.memory.locate(address & ((1 << OFFSET_SHIFT) - 1)) {
                self.spare.push(frame);
            }
        }
        if any {
            self.completion.release();
        }
        if self.spare.len() > SPARE * 4 {
            self.memory.give(self.spare.drain(SPARE * 2..));
        }
    }

    /// Gives the kernel frames to receive into.
    pub(super) fn refill(&mut self) {
        let mut room = self.fill.room(self.ring / 4);
        // Not for a frame or two: the list of free frames is shared.
        if room >= (SPARE as u32).min(self.ring / 4) {
            while room > 0 {
                if self.spare.is_empty() {
                    self.memory.take(&mut self.spare, (room as usize).min(SPARE * 4));
                }
                let Some(frame) = self.spare.pop() else {
                    break;
                };
                self.fill.push(self.memory.address(frame));
                room -= 1;
            }
            self.fill.submit();
        }
        if self.busy_poll || (self.zero_copy && self.fill.needs_wakeup()) {
            let flags = libc::MSG_DONTWAIT;
            let fd = self.socket.as_raw_fd();
            let none = std::ptr::null_mut();
            // SAFETY: no buffer and no address are passed. Nothing is received this way; the call
            // makes the driver look at its rings, and whether it could is seen there.
            unsafe { libc::recvfrom(fd, none, 0, flags, none.cast(), none.cast()) };
        }
    }

    /// The next frame that has arrived, which is then ours. After the last, [`Self::received`].
    pub(super) fn next(&mut self, time_ns: u64) -> Option<Slot> {
        loop {
            let found = self.received.pop()?;
            let (base, offset) = match self.memory.layout() {
                FrameLayout::Packed => (found.addr & ((1 << OFFSET_SHIFT) - 1), found.addr >> OFFSET_SHIFT),
                FrameLayout::Aligned => (found.addr, 0),
            };
            let Some((frame, start)) = self.memory.locate(base.wrapping_add(offset)) else {
                self.damaged += 1;
                continue;
            };
            if found.len as usize > self.memory.longest() || start + found.len as usize > self.memory.stride() {
                self.spare.push(frame);
                self.damaged += 1;
                continue;
            }
            return Some(Slot {
                frame,
                start: start as u32,
                length: found.len,
                time_ns,
            });
        }
    }

    /// Leaves the frame that [`Self::next`] has just given for later.
    pub(super) fn put_back(&mut self, _: Slot) {
        self.received.unpop();
    }

    /// Says that frames have been taken out, and gives the kernel others.
    pub(super) fn taken(&mut self) {
        self.received.release();
        self.refill();
    }

    /// Takes a frame of ours that is not used any more.
    pub(super) fn give(&mut self, frame: u32) {
        self.spare.push(frame);
    }

    /// Queues a frame that is ours for sending. False where the ring is full.
    pub(super) fn queue(&mut self, slot: &Slot) -> bool {
        self.send.push(libc::xdp_desc {
            addr: self.memory.address(slot.frame) + u64::from(slot.start),
            len: slot.length,
            options: 0,
        })
    }

    /// Queues a copy of a packet for sending. False where there is no frame or the ring is full.
    pub(super) fn queue_copy(&mut self, data: &[u8]) -> bool {
        if self.send.room(1) == 0 {
            return false;
        }
        let Some(frame) = self.frame() else {
            return false;
        };
        const START: usize = super::Pool::HEADROOM;
        // SAFETY: the frame was free, and its number is with us only.
        let bytes = unsafe { self.memory.bytes(frame) };
        let Some(place) = bytes.get_mut(START..START + data.len()) else {
            self.spare.push(frame);
            return false;
        };
        place.copy_from_slice(data);
        self.queue(&Slot {
            frame,
            start: START as u32,
            length: data.len() as u32,
            time_ns: 0,
        })
    }

    /// Whether frames are waiting for [`Self::kick`] to be called again.
    pub(super) fn is_sending(&self) -> bool {
        self.send.is_pending()
    }

    /// Makes the kernel send what is queued. Where it copies, it sends a limited number per call,
    /// so that it is called until everything is sent or it gets no further.
    pub(super) fn kick(&mut self) -> io::Result<Kicked> {
        let mut kicked = Kicked::default();
        self.send.submit();
        let mut calls = 0;
        loop {
            let before = self.send.pending();
            if before == 0 || (self.zero_copy && !self.send.needs_wakeup()) || calls > self.ring + SPARE as u32 {
                break;
            }
            calls += 1;
            let answer = self.send_queued();
            self.reap();
            let moved = self.send.pending() != before;
            match answer.map_err(|e| (e.raw_os_error(), e)) {
                Ok(()) if self.zero_copy || !moved => break,
                Ok(()) => {}
                // Its limit per call, or a queue after it that is full.
                Err((Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM), _)) if moved => {}
                Err((Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM), _)) => break,
                Err((Some(libc::EINTR), _)) => {}
                Err((Some(libc::EBUSY), _)) if self.zero_copy => break,
                // The frame is done with but was not sent.
                Err((Some(libc::EBUSY), _)) => kicked.dropped += 1,
                Err((Some(libc::ENETDOWN), _)) => {
                    kicked.down = true;
                    break;
                }
                Err((_, error)) => return Err(error),
            }
        }
        Ok(kicked)
    }

    fn send_queued(&self) -> io::Result<()> {
        let fd = self.socket.as_raw_fd();
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: no buffer and no address are passed; what is sent is in the ring.
        let sent = unsafe { libc::sendto(fd, std::ptr::null(), 0, flags, std::ptr::null(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Whether the socket still belongs to an interface.
    pub(super) fn is_bound(&self) -> bool {
        !matches!(self.send_queued().map_err(|e| e.raw_os_error()), Err(Some(libc::ENXIO)))
    }

    pub(super) fn statistics(&self) -> libc::xdp_statistics {
        let read = get_option(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS);
        read.unwrap_or_else(|_| libc::xdp_statistics::zeroed())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // What the kernel has is not asked back: it may still read a frame that it is sending. In a
        // pool that lives on these frames are missing.
        self.reap();
        self.memory.give(self.spare.drain(..));
    }
}

/// The program of an interface with the sockets of its queues. Gone when this is dropped.
#[derive(Debug)]
pub(super) struct Link {
    _link: OwnedFd,
    _program: OwnedFd,
    _map: OwnedFd,
}

impl Link {
    pub(super) fn new(interface: u32, queues: &[Queue], how: Attach) -> io::Result<Self> {
        let map = program::socket_map(queues.len() as u32)?;
        for (number, queue) in queues.iter().enumerate() {
            program::set_socket(&map, number as u32, &queue.socket)?;
        }
        let program = program::redirect_program(&map)?;
        Ok(Link {
            _link: program::attach(&program, interface, how)?,
            _program: program,
            _map: map,
        })
    }
}
