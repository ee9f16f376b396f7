//! Batches of messages with the control data that the kernel attaches to them.

use super::super::check;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Messages per system call.
const BATCH: usize = 64;
/// Bytes of the longest message: what jumbo frames carry.
const LONGEST: usize = 9216;
/// `SO_TIMESTAMPING_NEW` (`asm-generic/socket.h`), also the type of the control message: times of
/// 64 bits on every machine.
pub(super) const TIMESTAMPING: libc::c_int = 65;
/// `PACKET_TX_TIMESTAMP` (`linux/if_packet.h`).
const PACKET_TX_TIMESTAMP: libc::c_int = 16;
/// `SO_EE_ORIGIN_TIMESTAMPING` and `SCM_TSTAMP_SND` (`linux/errqueue.h`).
const ORIGIN_TIMESTAMPING: u8 = 4;
const STAMPED_WHEN_SENT: u32 = 0;

/// Control data of a message, aligned as the kernel's structures in it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 256]);

/// What the kernel says about a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Info {
    /// By the system's clock, in ns since 1970.
    pub(super) software: Option<u64>,
    /// By the clock of the interface, in ns.
    pub(super) hardware: Option<u64>,
    /// Of an egress timestamp: the number of its packet, modulo 2^32.
    pub(super) sent: Option<u32>,
}

/// Buffers of a socket's messages.
pub(super) struct Messages {
    bytes: Vec<u8>,
    controls: Vec<Control>,
    /// Of each message of the batch: its length, and what the kernel says.
    batch: Vec<(usize, Info)>,
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("batch", &self.batch).finish()
    }
}

impl Messages {
    pub(super) fn new() -> Self {
        Messages {
            bytes: vec![0; BATCH * LONGEST],
            controls: vec![Control([0; 256]); BATCH],
            batch: Vec::with_capacity(BATCH),
        }
    }

    /// Takes the messages that are there, without waiting; `flags` may name the error queue. The
    /// number of messages.
    pub(super) fn take(&mut self, socket: &OwnedFd, flags: libc::c_int) -> io::Result<usize> {
        self.batch.clear();
        let empty = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let mut parts = [empty; BATCH];
        // SAFETY: messages of zeros are valid: no address, no parts, no control data.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let buffers = self.bytes.chunks_exact_mut(LONGEST).zip(&mut self.controls);
        for ((part, message), (bytes, control)) in parts.iter_mut().zip(&mut messages).zip(buffers) {
            part.iov_base = bytes.as_mut_ptr().cast();
            part.iov_len = bytes.len();
            message.msg_hdr.msg_iov = std::ptr::from_mut(part);
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = control.0.len() as _;
        }
        let flags = flags | libc::MSG_DONTWAIT;
        let (fd, no_time) = (socket.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: each message points to a part and control data of the lengths it says, and the
        // part to its own bytes of the buffer; all live during the call.
        let got = unsafe { libc::recvmmsg(fd, messages.as_mut_ptr(), BATCH as libc::c_uint, flags as _, no_time) };
        let got = match check(got) {
            Ok(got) => got as usize,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        for message in &messages[..got] {
            let is_whole = message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
            let length = if is_whole { message.msg_len as usize } else { 0 };
            // SAFETY: the kernel has filled in this message and its control data, which still live.
            self.batch.push((length, unsafe { info(&message.msg_hdr) }));
        }
        Ok(got)
    }

    /// The messages of the batch; those longer than 9216 bytes are empty.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Info)> {
        let bytes = self.bytes.chunks_exact(LONGEST);
        let all = self.batch.iter().zip(bytes);
        all.map(|((length, info), bytes)| (bytes.get(..*length).unwrap_or_default(), *info))
    }
}

/// Reads the control data of a message.
///
/// # Safety
///
/// The header must be one that the kernel has filled in, and its control data must live, aligned to
/// 8 bytes.
unsafe fn info(header: &libc::msghdr) -> Info {
    let mut info = Info::default();
    // SAFETY: control data lives, says the caller.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !at.is_null() {
        // SAFETY: the pointer is within control data, which is aligned for this structure.
        let control = unsafe { &*at };
        // SAFETY: only a number is computed.
        let before = unsafe { libc::CMSG_LEN(0) } as usize;
        let length = (control.cmsg_len as usize).saturating_sub(before);
        // SAFETY: this length, which the kernel has written, is within control data.
        let bytes = unsafe { std::slice::from_raw_parts(libc::CMSG_DATA(at), length) };
        info.read(control.cmsg_level, control.cmsg_type, bytes);
        // SAFETY: the pointer came from the same control data.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
    info
}

impl Info {
    fn read(&mut self, level: libc::c_int, kind: libc::c_int, bytes: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, TIMESTAMPING) => {
                self.software = time(bytes, 0);
                self.hardware = time(bytes, 2);
            }
            (libc::SOL_PACKET, PACKET_TX_TIMESTAMP)
            | (libc::SOL_IP, libc::IP_RECVERR)
            | (libc::SOL_IPV6, libc::IPV6_RECVERR) => self.sent = sent(bytes),
            // The kernel attaches other data, too.
            _ => {}
        }
    }
}

/// The time of `struct scm_timestamping64` at a place, in ns; zero is none.
fn time(bytes: &[u8], at: usize) -> Option<u64> {
    let number = |at: usize| {
        let bytes = bytes.get(at * 8..)?.first_chunk()?;
        u64::try_from(i64::from_ne_bytes(*bytes)).ok()
    };
    let (seconds, nanoseconds) = (number(2 * at)?, number(2 * at + 1)?);
    let time = seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    (time > 0).then_some(time)
}

/// The number of the packet that `struct sock_extended_err` is about, if it is a timestamp of its
/// departure.
fn sent(bytes: &[u8]) -> Option<u32> {
    let number = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let is_stamp = *bytes.get(4)? == ORIGIN_TIMESTAMPING && number(8)? == STAMPED_WHEN_SENT;
    is_stamp.then_some(number(12)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_data_is_read_as_the_kernel_lays_it_out() {
        let mut info = Info::default();
        let times: Vec<u8> = [1_i64, 5, 0, 0, 2, 7].iter().flat_map(|n| n.to_ne_bytes()).collect();
        info.read(libc::SOL_SOCKET, TIMESTAMPING, &times);
        assert_eq!(
            (info.software, info.hardware),
            (Some(1_000_000_005), Some(2_000_000_007))
        );
        let mut error = [0_u8; 16];
        error[4] = ORIGIN_TIMESTAMPING;
        error[12..].copy_from_slice(&77_u32.to_ne_bytes());
        info.read(libc::SOL_PACKET, PACKET_TX_TIMESTAMP, &error);
        assert_eq!(info.sent, Some(77));
    }

    #[test]
    fn truncated_or_negative_control_data_is_no_stamp() {
        let mut info = Info::default();
        info.read(libc::SOL_SOCKET, TIMESTAMPING, &[0; 15]);
        info.read(libc::SOL_SOCKET, TIMESTAMPING, &(-1_i64).to_ne_bytes().repeat(6));
        info.read(libc::SOL_IP, libc::IP_RECVERR, &[4; 11]);
        assert_eq!(info, Info::default());
    }
}
