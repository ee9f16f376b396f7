//! Several datagrams of a connected socket with one call.

use super::check;
use crate::batch::Frame;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Most datagrams of one call.
pub(crate) const BATCH: usize = 32;

const EMPTY_PART: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// Sends frames from the front, at most [`BATCH`]; how many were sent, at least one.
///
/// # Errors
/// The first frame was not sent.
pub(crate) fn send(socket: &UdpSocket, frames: &[Frame<'_>]) -> io::Result<usize> {
    let count = frames.len().min(BATCH);
    if count == 0 {
        return Ok(0);
    }
    let mut parts = [EMPTY_PART; BATCH];
    // SAFETY: a message of zeros has no address, no parts and no control data.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    for (at, frame) in frames.iter().enumerate().take(BATCH) {
        parts[at] = libc::iovec {
            // The kernel only reads what is sent.
            iov_base: frame.data.as_ptr().cast_mut().cast(),
            iov_len: frame.data.len(),
        };
        messages[at].msg_hdr.msg_iov = &raw mut parts[at];
        messages[at].msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: the first `count` messages point to a part each, and the part to the bytes of a frame
    // with their length; all live during the call, which does not write to the bytes.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count as libc::c_uint, 0) };
    Ok(check(sent)? as usize)
}

/// Receives at most `most` datagrams, and [`BATCH`], without waiting, each into `longest` bytes of
/// the buffer; `lengths` gets their lengths. How many came.
///
/// # Errors
/// None came: as of `recv`.
///
/// # Panics
/// `buffer` has less than `longest` bytes for each of `lengths`.
pub(crate) fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
    longest: usize,
    lengths: &mut [usize; BATCH],
    most: usize,
) -> io::Result<usize> {
    assert!(buffer.len() >= BATCH * longest, "a buffer for each datagram");
    let count = most.min(BATCH);
    if count == 0 {
        return Ok(0);
    }
    let mut parts = [EMPTY_PART; BATCH];
    // SAFETY: a message of zeros has no address, no parts and no control data.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    for (at, bytes) in buffer.chunks_exact_mut(longest).enumerate().take(BATCH) {
        parts[at] = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        messages[at].msg_hdr.msg_iov = &raw mut parts[at];
        messages[at].msg_hdr.msg_iovlen = 1;
    }
    let (fd, no_time) = (socket.as_raw_fd(), std::ptr::null_mut());
    // SAFETY: the first `count` messages point to a part each, and the part to its own bytes of the
    // buffer with their length; all live during the call.
    let got = unsafe {
        libc::recvmmsg(
            fd,
            messages.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
            no_time,
        )
    };
    let got = check(got)? as usize;
    for (length, message) in lengths.iter_mut().zip(&messages).take(got) {
        *length = message.msg_len as usize;
    }
    Ok(got)
}
