//! Raw sockets: an interface of this machine as a port.

use super::ethtool::{self, Merging};
use super::packet_ring::{PacketRing, Received, receive_copy};
use super::{
    Patrol, Plain, bind, check, control_socket, get_option, interface_error, interface_index, is_running, mtu,
    receive_everything, set_option, socket,
};
use crate::batch::{Batch, Frame};
use crate::device::{Counters, Device};
use crate::error::IoError;
use crate::offload::{Segmentation, Segments, finish_checksum};
use crate::pool::FrameBatch;
use crate::spec::Sending;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Messages per system call.
const BATCH: usize = 64;
/// A frame of the largest size that the kernel hands over in one piece.
const LONGEST: usize = 65_536 + 256;
/// Bytes of long packets that the kernel may keep for us.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
/// Bytes of packets that wait for the driver, where no queueing discipline is in between.
const SEND_BUFFER: libc::c_int = 4 << 20;

/// A raw socket on an interface, which is set to receive everything.
///
/// The interface's own merging of packets (GRO, LRO) is switched off while this exists, where the
/// driver lets it. Merged packets that still come, from virtual interfaces of this machine, are cut
/// into segments here; `ethtool -K PEER tso off gso off` at the sender spares that work.
///
/// Packets come through a ring of 8 MiB, without a system call; those longer than the MTU are read
/// with one call each. Up to 64 are sent per call, by the interface's queueing discipline or past
/// it ([`Sending`]).
#[derive(Debug)]
pub struct RawSocket {
    name: String,
    sending: Sending,
    /// Said after the name in its description.
    note: Option<String>,
    socket: OwnedFd,
    /// Another one to send by, which needs nothing before a packet and receives none.
    sender: OwnedFd,
    control: OwnedFd,
    merging: Merging,
    ring: PacketRing,
    /// A packet that was too long for the ring.
    long: Vec<u8>,
    /// The packet to go on with, its length in `long` where it is there, and its first segment that
    /// did not fit.
    current: Option<(Received, Option<usize>, usize)>,
    patrol: Patrol,
    counters: Counters,
    /// What the kernel has dropped; it forgets the number whenever it tells it.
    kernel_dropped: Cell<u64>,
}

impl RawSocket {
    /// Opens a socket on the interface of this name, which sends by the interface's queueing
    /// discipline.
    ///
    /// # Errors
    ///
    /// There is no such interface, or a right is missing.
    pub fn open(name: &str) -> Result<Self, IoError> {
        Self::with_ring(name, None, Sending::Queued)
    }

    /// Opens a socket on the interface of this name, with a ring for the given number of packets,
    /// 64 to 32,768. By default the ring takes 16 MiB: 7,936 packets for an MTU of 1500.
    ///
    /// # Errors
    ///
    /// As for [`RawSocket::open`].
    pub fn with_ring(name: &str, ring: Option<u32>, sending: Sending) -> Result<Self, IoError> {
        let control = control_socket()?;
        let index = interface_index(&control, name)?;
        let doing = format!("opening a raw socket on `{name}`");
        let failed = |e| interface_error(name, &doing, "CAP_NET_RAW", e);
        // No protocol yet: nothing arrives before everything is set.
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        let socket = socket(libc::AF_PACKET, kind, 0).map_err(failed)?;
        let on: libc::c_int = 1;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &on).map_err(failed)?;
        // Best effort: kernels before 4.20 do not know it, and what is sent is skipped below.
        let _ = set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &on);
        if set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER).is_err() {
            let _ = set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER);
        }
        let ring = PacketRing::new(&socket, mtu(&control, name)?, ring).map_err(failed)?;
        let sender = open_sender(index, sending).map_err(failed)?;
        bind(&socket, index, libc::ETH_P_ALL as u16).map_err(failed)?;
        receive_everything(&socket, index).map_err(failed)?;
        let merging = Merging::stop(&control, name);
        Ok(RawSocket {
            name: name.to_string(),
            sending,
            note: None,
            socket,
            sender,
            control,
            merging,
            ring,
            long: vec![0; LONGEST],
            current: None,
            patrol: Patrol::default(),
            counters: Counters::default(),
            kernel_dropped: Cell::new(0),
        })
    }

    /// Has something said after the name in the description.
    pub(super) fn set_note(&mut self, note: String) {
        self.note = Some(note);
    }

    fn failed(&self, doing: &str, error: io::Error) -> IoError {
        match error.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => IoError::Gone {
                name: self.name.clone(),
            },
            _ => IoError::system(format!("{doing} `{}`", self.name), "CAP_NET_RAW", error),
        }
    }

    /// Takes the next packet from the ring. False where there is none.
    fn fetch(&mut self) -> bool {
        while let Some(received) = self.ring.peek() {
            if !received.is_cut {
                self.current = Some((received, None, 0));
            } else if received.in_socket {
                // They are in the same order as in the ring.
                let length = receive_copy(&self.socket, &mut self.long).ok().flatten();
                self.current = length.map(|length| (received, Some(length), 0));
            }
            if self.current.is_some() && !received.outgoing {
                return true;
            }
            self.counters.receive_dropped += u64::from(self.current.is_none() && !received.outgoing);
            self.current = None;
            self.ring.release();
        }
        false
    }

    /// Receives into either kind of batch.
    fn receive_to(&mut self, batch: &mut impl Sink) -> Result<usize, IoError> {
        let before = batch.len();
        while self.deliver(batch) && batch.room() > 0 && self.fetch() {}
        let added = batch.len() - before;
        if self.patrol.is_due(added) {
            // That the link has gone down is no error; it may come back. While the error is
            // pending, waiting for the socket returns at once.
            let _ = get_option::<libc::c_int>(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR);
            if !is_bound(&self.socket) {
                return Err(IoError::Gone {
                    name: self.name.clone(),
                });
            }
        }
        Ok(added)
    }

    /// Delivers the packet that was fetched. False where the batch has no room for it.
    fn deliver(&mut self, batch: &mut impl Sink) -> bool {
        if let Some((received, long, segment)) = &mut self.current {
            let frame = match *long {
                Some(length) => self.long.get_mut(..length).unwrap_or_default(),
                None => self.ring.bytes(received),
            };
            if !deliver_one(frame, received, segment, batch, &mut self.counters) {
                return false;
            }
            self.current = None;
            self.ring.release();
        }
        true
    }
}

/// Where received packets go.
trait Sink {
    /// Packets in it.
    fn len(&self) -> usize;
    /// Packets that it still takes.
    fn room(&self) -> usize;
    /// Bytes of the longest packet that it ever takes.
    fn longest(&self) -> usize;
    /// Adds a packet in parts. False where there is no room now.
    fn push_parts(&mut self, parts: &[&[u8]], time_ns: u64) -> bool;
}

impl Sink for Batch {
    fn len(&self) -> usize {
        Batch::len(self)
    }

    fn room(&self) -> usize {
        Batch::room(self)
    }

    fn longest(&self) -> usize {
        crate::MAX_FRAME
    }

    fn push_parts(&mut self, parts: &[&[u8]], time_ns: u64) -> bool {
        Batch::push_parts(self, parts, time_ns)
    }
}

impl Sink for FrameBatch {
    fn len(&self) -> usize {
        FrameBatch::len(self)
    }

    fn room(&self) -> usize {
        FrameBatch::room(self)
    }

    fn longest(&self) -> usize {
        self.memory.longest()
    }

    fn push_parts(&mut self, parts: &[&[u8]], time_ns: u64) -> bool {
        FrameBatch::push_parts(self, parts, time_ns)
    }
}

/// Delivers a frame, finished and cut as its header says. `segment` is where to go on. False where
/// there is no room.
fn deliver_one(
    frame: &mut [u8],
    message: &mut Received,
    segment: &mut usize,
    batch: &mut impl Sink,
    counters: &mut Counters,
) -> bool {
    let vnet = message.vnet;
    if vnet.segmentation == Segmentation::None || vnet.segmentation == Segmentation::Unknown {
        if batch.room() == 0 {
            return false;
        }
        if vnet.needs_checksum {
            if !finish_checksum(frame, &vnet) {
                counters.receive_dropped += 1;
                return true;
            }
            // Once only, also where the frame has to wait for room.
            message.vnet.needs_checksum = false;
            counters.checksums_finished += 1;
        }
        return push(batch, frame, &[], message, counters);
    }
    let Some(segments) = Segments::new(frame, &vnet) else {
        counters.receive_dropped += 1;
        return true;
    };
    while let Some(part) = segments.get(*segment) {
        if !push(batch, part.headers(), part.payload, message, counters) {
            return false;
        }
        *segment += 1;
    }
    counters.segmented += 1;
    true
}

/// Adds a frame with its tag put back. False where there is no room.
fn push(batch: &mut impl Sink, head: &[u8], payload: &[u8], message: &Received, counters: &mut Counters) -> bool {
    let length = head.len() + payload.len();
    if length + message.tag.map_or(0, |tag| tag.len()) > batch.longest() {
        counters.receive_dropped += 1;
        return true;
    }
    let (added, length) = match &message.tag {
        Some(tag) if head.len() >= 12 => {
            let parts = [&head[..12], tag, &head[12..], payload];
            (batch.push_parts(&parts, message.time_ns), length + tag.len())
        }
        _ => (batch.push_parts(&[head, payload], message.time_ns), length),
    };
    if added {
        counters.count_received(length);
    }
    added
}

impl Drop for RawSocket {
    fn drop(&mut self) {
        self.merging.restore(&self.control, &self.name);
    }
}

impl Device for RawSocket {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, IoError> {
        self.receive_to(batch)
    }

    fn receive_into(&mut self, batch: &mut FrameBatch) -> Result<Option<usize>, IoError> {
        self.receive_to(batch).map(Some)
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        let mut done = 0;
        while done < frames.len() {
            let part = &frames[done..frames.len().min(done + BATCH)];
            match send_messages(&self.sender, part) {
                Ok(sent) => {
                    self.counters.count_sent(&part[..sent]);
                    done += sent;
                }
                Err(e) => match e.raw_os_error() {
                    // Past the queueing discipline, a link that is down looks like a driver that is
                    // busy. The discipline itself has dropped the packet, as it would drop another
                    // sender's.
                    Some(libc::ENOBUFS) if self.sending == Sending::Queued || !self.link_up() => {
                        self.counters.send_dropped += 1;
                        done += 1;
                    }
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => break,
                    Some(libc::EINTR) => {}
                    // Longer than the interface takes, no frame, or the link is down: the first of
                    // them is never to be sent.
                    Some(libc::EMSGSIZE | libc::EINVAL | libc::ENETDOWN) => {
                        self.counters.send_dropped += 1;
                        done += 1;
                    }
                    _ => return Err(self.failed("sending to", e)),
                },
            }
        }
        Ok(done)
    }

    fn description(&self) -> String {
        match &self.note {
            Some(note) => format!("{} ({note})", self.name),
            None => format!("packet:{}{}", self.name, self.sending.suffix()),
        }
    }

    fn speed(&self) -> Option<u64> {
        ethtool::speed(&self.control, &self.name)
    }

    fn link_up(&self) -> bool {
        is_running(&self.control, &self.name)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn ready_in(&self) -> Option<std::time::Duration> {
        // The rest of a packet that did not fit is here, not in the kernel.
        self.current.is_some().then_some(std::time::Duration::ZERO)
    }

    fn counters(&self) -> Counters {
        let stats = get_option::<libc::tpacket_stats>(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        let new = stats.map_or(0, |s| u64::from(s.tp_drops));
        self.kernel_dropped.set(self.kernel_dropped.get() + new);
        let receive_dropped = self.counters.receive_dropped + self.kernel_dropped.get();
        Counters {
            receive_dropped,
            ..self.counters
        }
    }
}

/// A socket that only sends.
fn open_sender(index: libc::c_int, sending: Sending) -> io::Result<OwnedFd> {
    let sender = socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0)?;
    if sending == Sending::Bypass {
        let on: libc::c_int = 1;
        // What is sent goes to the driver. Where its queue is full, that is an error and tried
        // again.
        set_option(&sender, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &on)?;
        if set_option(&sender, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER).is_err() {
            let _ = set_option(&sender, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER);
        }
    }
    // What waits in a queueing discipline counts for the socket that has sent it. With the system's
    // buffer (net.core.wmem_default) a shaped link is noticed after some hundred packets, and those
    // after them wait in the switch's own queues.
    bind(&sender, index, 0)?;
    Ok(sender)
}

/// Whether the interface of a socket is still there.
fn is_bound(socket: &OwnedFd) -> bool {
    let mut address = libc::sockaddr_ll::zeroed();
    let mut size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    let pointer = std::ptr::from_mut(&mut address).cast();
    // SAFETY: the pointers are to an address of `size` bytes and to its size, and live during the
    // call.
    let asked = check(unsafe { libc::getsockname(socket.as_raw_fd(), pointer, &mut size) });
    asked.is_err() || address.sll_ifindex > 0
}

fn empty_message() -> libc::mmsghdr {
    // SAFETY: a message of zeros has no address, no parts and no control data.
    unsafe { std::mem::zeroed() }
}

/// Sends up to `BATCH` frames; returns how many were.
fn send_messages(socket: &OwnedFd, frames: &[Frame<'_>]) -> io::Result<usize> {
    let empty = libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    };
    let mut parts = [empty; BATCH];
    let mut messages = [empty_message(); BATCH];
    let count = frames.len().min(BATCH);
    for (i, frame) in frames.iter().take(count).enumerate() {
        // The kernel only reads what is sent.
        parts[i] = libc::iovec {
            iov_base: frame.data.as_ptr().cast_mut().cast(),
            iov_len: frame.data.len(),
        };
        messages[i].msg_hdr.msg_iov = &raw mut parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    let fd = socket.as_raw_fd();
    // SAFETY: the first `count` messages point to a buffer each, which lives during the call and is
    // only read.
    let sent = check(unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count as libc::c_uint, 0) })?;
    Ok(sent as usize)
}
