//! Raw sockets: an interface of this machine as a port.

use super::ethtool::{self, Merging};
use super::{
    Plain, check, control_socket, get_option, interface_error, interface_index, is_running, set_option, socket,
};
use crate::batch::{Batch, Frame};
use crate::device::{Counters, Device};
use crate::error::IoError;
use crate::now_ns;
use crate::offload::{Segmentation, Segments, VnetHeader, finish_checksum};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Messages per system call.
const BATCH: usize = 64;
/// A frame of the largest size that the kernel hands over in one piece.
const SLOT: usize = 65_536 + 256;
/// Bytes of packets that the kernel may keep for us.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;

/// Room for what the kernel says of a message.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 128]);

/// What the kernel said of a message.
#[derive(Debug, Clone, Copy, Default)]
struct Received {
    length: usize,
    time_ns: u64,
    vnet: VnetHeader,
    /// Type and contents of a tag that the kernel took off.
    tag: Option<[u8; 4]>,
    /// Not for us: sent by this machine, or damaged.
    skip: bool,
}

/// A raw socket on an interface, which is set to receive everything.
///
/// The interface's own merging of packets (GRO, LRO) is switched off while this exists, where the
/// driver lets it. Merged packets that still come, from virtual interfaces of this machine, are cut
/// into segments here; `ethtool -K PEER tso off gso off` at the sender spares that work.
#[derive(Debug)]
pub struct RawSocket {
    name: String,
    socket: OwnedFd,
    control: OwnedFd,
    merging: Merging,
    /// `BATCH` slots.
    slots: Vec<u8>,
    received: Vec<Received>,
    /// The message to deliver next, and its first segment that did not fit.
    next: (usize, usize),
    counters: Counters,
    /// What the kernel has dropped; it forgets the number whenever it tells it.
    kernel_dropped: Cell<u64>,
}

impl RawSocket {
    /// Opens a socket on the interface of this name.
    ///
    /// # Errors
    ///
    /// There is no such interface, or a right is missing.
    pub fn open(name: &str) -> Result<Self, IoError> {
        let control = control_socket()?;
        let index = interface_index(&control, name)?;
        let doing = format!("opening a raw socket on `{name}`");
        let failed = |e| interface_error(name, &doing, "CAP_NET_RAW", e);
        // No protocol yet: nothing arrives before everything is set.
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        let socket = socket(libc::AF_PACKET, kind, 0).map_err(failed)?;
        let on: libc::c_int = 1;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &on).map_err(failed)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &on).map_err(failed)?;
        // Best effort: kernels before 4.20 do not know it, and what is sent is skipped below.
        let _ = set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &on);
        let _ = set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on);
        if set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER).is_err() {
            let _ = set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER);
        }
        bind(&socket, index).map_err(failed)?;
        let mut membership = libc::packet_mreq::zeroed();
        membership.mr_ifindex = index;
        membership.mr_type = libc::PACKET_MR_PROMISC as libc::c_ushort;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership).map_err(failed)?;
        let merging = Merging::stop(&control, name);
        Ok(RawSocket {
            name: name.to_string(),
            socket,
            control,
            merging,
            slots: vec![0; BATCH * SLOT],
            received: Vec::with_capacity(BATCH),
            next: (0, 0),
            counters: Counters::default(),
            kernel_dropped: Cell::new(0),
        })
    }

    fn failed(&self, doing: &str, error: io::Error) -> IoError {
        match error.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => IoError::Gone {
                name: self.name.clone(),
            },
            _ => IoError::system(format!("{doing} `{}`", self.name), "CAP_NET_RAW", error),
        }
    }

    /// Takes what the kernel has, up to `most` messages. False where it has nothing.
    fn fetch(&mut self, most: usize) -> Result<bool, IoError> {
        self.received.clear();
        self.next = (0, 0);
        match receive_messages(&self.socket, &mut self.slots, most.min(BATCH), &mut self.received) {
            Ok(()) => Ok(true),
            Err(e) => match e.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(false),
                // The link has gone down; the socket works again when it is back.
                Some(libc::ENETDOWN) => Ok(false),
                // A packet that the header before it cannot describe.
                Some(libc::EINVAL) => {
                    self.counters.receive_dropped += 1;
                    Ok(true)
                }
                _ => Err(self.failed("receiving from", e)),
            },
        }
    }

    /// Delivers messages that have been fetched. False where the batch has no room for the next.
    fn deliver(&mut self, batch: &mut Batch) -> bool {
        while let Some(message) = self.received.get_mut(self.next.0) {
            let slot = self.next.0 * SLOT;
            let frame = &mut self.slots[slot..slot + message.length];
            if !message.skip && !deliver_one(frame, message, &mut self.next.1, batch, &mut self.counters) {
                return false;
            }
            self.next = (self.next.0 + 1, 0);
        }
        true
    }
}

/// Delivers a frame, finished and cut as its header says. `segment` is where to go on. False where
/// there is no room.
fn deliver_one(
    frame: &mut [u8],
    message: &mut Received,
    segment: &mut usize,
    batch: &mut Batch,
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
fn push(batch: &mut Batch, head: &[u8], payload: &[u8], message: &Received, counters: &mut Counters) -> bool {
    let length = head.len() + payload.len();
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
        let before = batch.len();
        loop {
            if !self.deliver(batch) || batch.room() == 0 {
                break;
            }
            // An error is reported when there is nothing else to report.
            match self.fetch(batch.room()) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if batch.len() == before => return Err(error),
                Err(_) => break,
            }
        }
        Ok(batch.len() - before)
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        let mut done = 0;
        while done < frames.len() {
            let part = &frames[done..frames.len().min(done + BATCH)];
            match send_messages(&self.socket, part) {
                Ok(sent) => {
                    self.counters.count_sent(&part[..sent]);
                    done += sent;
                }
                Err(e) => match e.raw_os_error() {
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
        self.name.clone()
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
        // Segments that did not fit are here, not in the kernel.
        (self.next.0 < self.received.len()).then_some(std::time::Duration::ZERO)
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

/// Binds to every protocol of an interface.
fn bind(socket: &OwnedFd, index: libc::c_int) -> io::Result<()> {
    let mut address = libc::sockaddr_ll::zeroed();
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to an address of `size` bytes that lives during the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) })?;
    Ok(())
}

fn empty_message() -> libc::mmsghdr {
    // SAFETY: a message of zeros has no address, no parts and no control data.
    unsafe { std::mem::zeroed() }
}

fn part(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    }
}

/// Receives up to `count` messages, each into its slot.
fn receive_messages(socket: &OwnedFd, slots: &mut [u8], count: usize, received: &mut Vec<Received>) -> io::Result<()> {
    let mut headers = [[0u8; VnetHeader::LENGTH]; BATCH];
    let mut controls = [Control([0; 128]); BATCH];
    let mut addresses = [libc::sockaddr_ll::zeroed(); BATCH];
    let mut parts: [[libc::iovec; 2]; BATCH] = [[part(&mut []), part(&mut [])]; BATCH];
    let mut messages = [empty_message(); BATCH];
    let count = count.min(slots.len() / SLOT).min(BATCH);
    for (i, slot) in slots.chunks_exact_mut(SLOT).take(count).enumerate() {
        parts[i] = [part(&mut headers[i]), part(slot)];
        let message = &mut messages[i].msg_hdr;
        message.msg_name = std::ptr::from_mut(&mut addresses[i]).cast();
        message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        message.msg_iov = parts[i].as_mut_ptr();
        message.msg_iovlen = 2;
        message.msg_control = controls[i].0.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>();
    }
    let fd = socket.as_raw_fd();
    // SAFETY: the first `count` messages point to two buffers, an address and control data, each of the
    // length that the message says; all of them live during the call and no two overlap.
    let got = check(unsafe {
        libc::recvmmsg(
            fd,
            messages.as_mut_ptr(),
            count as libc::c_uint,
            0,
            std::ptr::null_mut(),
        )
    })?;
    for i in 0..(got as usize).min(count) {
        let message = &messages[i];
        let length = (message.msg_len as usize).checked_sub(VnetHeader::LENGTH);
        let truncated = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        let outgoing = addresses[i].sll_pkttype == libc::PACKET_OUTGOING;
        let mut entry = Received {
            length: length.unwrap_or(0).min(SLOT),
            vnet: VnetHeader::parse(&headers[i]),
            skip: outgoing || truncated || length.is_none(),
            ..Received::default()
        };
        read_control(&message.msg_hdr, &mut entry);
        if entry.time_ns == 0 {
            entry.time_ns = now_ns();
        }
        received.push(entry);
    }
    Ok(())
}

/// Reads what the kernel said of a message: its time, and a tag that it took off.
fn read_control(message: &libc::msghdr, entry: &mut Received) {
    // SAFETY: the kernel has filled in the control data of this message and its length.
    let mut current = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !current.is_null() {
        // SAFETY: the macros return headers within the control data only.
        let header = unsafe { &*current };
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                if let Some(time) = control_data::<libc::timespec>(current) {
                    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
                    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
                    entry.time_ns = seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
                }
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                if let Some(data) = control_data::<libc::tpacket_auxdata>(current) {
                    entry.tag = tag(&data);
                }
            }
            _ => {}
        }
        // SAFETY: as for the first.
        current = unsafe { libc::CMSG_NXTHDR(message, current) };
    }
}

/// The value in a control message, where it is long enough.
fn control_data<T: Plain>(header: *const libc::cmsghdr) -> Option<T> {
    // SAFETY: the caller got the header from the control data of a message.
    let length = unsafe { (*header).cmsg_len };
    // SAFETY: computes a number.
    let needed = unsafe { libc::CMSG_LEN(size_of::<T>() as libc::c_uint) } as usize;
    if length < needed {
        return None;
    }
    // SAFETY: the message has room for a `T` behind its header, and any bytes make one.
    Some(unsafe { libc::CMSG_DATA(header).cast::<T>().read_unaligned() })
}

/// The tag that the kernel took off.
fn tag(data: &libc::tpacket_auxdata) -> Option<[u8; 4]> {
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let known = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if known { data.tp_vlan_tpid } else { 0x8100 };
    let (kind, contents) = (kind.to_be_bytes(), data.tp_vlan_tci.to_be_bytes());
    Some([kind[0], kind[1], contents[0], contents[1]])
}

/// Sends up to `BATCH` frames; returns how many were.
fn send_messages(socket: &OwnedFd, frames: &[Frame<'_>]) -> io::Result<usize> {
    // Nothing is left to the hardware.
    let header = [0u8; VnetHeader::LENGTH];
    let empty = libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    };
    let mut parts = [[empty; 2]; BATCH];
    let mut messages = [empty_message(); BATCH];
    let count = frames.len().min(BATCH);
    for (i, frame) in frames.iter().take(count).enumerate() {
        // The kernel only reads what is sent.
        let readable = |bytes: &[u8]| libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        parts[i] = [readable(&header), readable(frame.data)];
        messages[i].msg_hdr.msg_iov = parts[i].as_mut_ptr();
        messages[i].msg_hdr.msg_iovlen = 2;
    }
    let fd = socket.as_raw_fd();
    // SAFETY: the first `count` messages point to two buffers each, which live during the call and are
    // only read.
    let sent = check(unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count as libc::c_uint, 0) })?;
    Ok(sent as usize)
}
