//! A UDP socket that takes many datagrams with one call, and counts those that the kernel dropped.

use super::{check, drops};
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// Most datagrams of one call.
const BATCH: usize = 64;
/// Bytes of the longest datagram: what jumbo frames carry.
const LONGEST: usize = 9216;

/// Takes datagrams in batches.
///
/// The kernel drops datagrams where the socket's buffer is full; [`UdpReceiver::dropped`] counts
/// them.
#[derive(Debug)]
pub struct UdpReceiver {
    socket: OwnedFd,
    address: SocketAddr,
    buffer: Vec<u8>,
    /// Of each datagram of the batch: from where, and how many bytes.
    batch: Vec<(IpAddr, usize)>,
    dropped: u64,
    /// The kernel's counter, which wraps.
    last_dropped: u32,
    truncated: u64,
}

impl UdpReceiver {
    /// Binds a socket to an address. `buffer`: bytes of its buffer in the kernel, as far as the
    /// kernel permits; without the privilege to exceed it, that is `net.core.rmem_max`.
    ///
    /// # Errors
    /// The address is in use, or not of this machine.
    pub fn bind(address: SocketAddr, buffer: usize) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let address = socket.local_addr()?;
        let socket = OwnedFd::from(socket);
        let bytes = libc::c_int::try_from(buffer).unwrap_or(libc::c_int::MAX);
        if set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes).is_err() {
            set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)?;
        }
        Ok(UdpReceiver {
            socket,
            address,
            buffer: vec![0; BATCH * LONGEST],
            batch: Vec::with_capacity(BATCH),
            dropped: 0,
            last_dropped: 0,
            truncated: 0,
        })
    }

    /// The address that it is bound to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Datagrams that the kernel dropped because the buffer was full.
    ///
    /// The kernel's counter has 32 bits: it counts right if this is called once in 4 billion drops.
    ///
    /// # Errors
    /// The kernel does not say: it is older than 4.12.
    pub fn dropped(&mut self) -> io::Result<u64> {
        let now = drops(&self.socket)?;
        self.dropped += u64::from(now.wrapping_sub(self.last_dropped));
        self.last_dropped = now;
        Ok(self.dropped)
    }

    /// Datagrams that were longer than 9216 bytes and are not given out.
    #[must_use]
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Waits for a datagram, but not longer than a time, and takes those that are there. Their
    /// number may be 0.
    ///
    /// # Errors
    /// The socket has failed.
    pub fn receive(&mut self, longest: Duration) -> io::Result<usize> {
        self.batch.clear();
        if !self.is_ready(longest)? {
            return Ok(0);
        }
        let mut parts = [EMPTY_PART; BATCH];
        // SAFETY: an address of zeros is one of no family.
        let mut addresses: [libc::sockaddr_storage; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: a message of zeros has no address, no parts and no control data.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (at, bytes) in self.buffer.chunks_exact_mut(LONGEST).enumerate().take(BATCH) {
            parts[at] = libc::iovec {
                iov_base: bytes.as_mut_ptr().cast(),
                iov_len: bytes.len(),
            };
            let header = &mut messages[at].msg_hdr;
            header.msg_name = (&raw mut addresses[at]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_iov = &raw mut parts[at];
            header.msg_iovlen = 1;
        }
        let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        let no_time = std::ptr::null_mut();
        // SAFETY: each message points to an address and a part of the lengths it says, and the part
        // to its own bytes of the buffer; all live during the call.
        let got = unsafe { libc::recvmmsg(fd, messages.as_mut_ptr(), BATCH as libc::c_uint, flags, no_time) };
        let got = match check(got) {
            Ok(got) => got as usize,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        for at in 0..got {
            self.take(&messages[at], &addresses[at]);
        }
        Ok(got)
    }

    /// The datagrams of the last batch.
    pub fn datagrams(&self) -> impl Iterator<Item = (IpAddr, &[u8])> {
        let bytes = self.buffer.chunks_exact(LONGEST);
        let all = self.batch.iter().zip(bytes);
        all.map(|((from, length), bytes)| (*from, bytes.get(..*length).unwrap_or_default()))
            .filter(|(_, bytes)| !bytes.is_empty())
    }

    fn take(&mut self, message: &libc::mmsghdr, address: &libc::sockaddr_storage) {
        let is_whole = message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        self.truncated += u64::from(!is_whole);
        let length = if is_whole { message.msg_len as usize } else { 0 };
        self.batch.push((ip(address), length));
    }

    fn is_ready(&self, longest: Duration) -> io::Result<bool> {
        let mut poll = libc::pollfd {
            fd: self.socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let time = libc::c_int::try_from(longest.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: the pointer is to one entry, which lives during the call.
        match check(unsafe { libc::poll(&raw mut poll, 1, time) }) {
            Ok(count) => Ok(count > 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }
}

const EMPTY_PART: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

fn set(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer is to a number of `size` bytes, which lives during the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size) })?;
    Ok(())
}

fn ip(address: &libc::sockaddr_storage) -> IpAddr {
    let pointer = std::ptr::from_ref(address);
    match libc::c_int::from(address.ss_family) {
        libc::AF_INET6 => {
            // SAFETY: the storage is larger than an address of this family, and aligned for all.
            let address = unsafe { &*pointer.cast::<libc::sockaddr_in6>() };
            IpAddr::from(address.sin6_addr.s6_addr).to_canonical()
        }
        _ => {
            // SAFETY: the storage is larger than an address of this family, and aligned for all; a
            // socket of UDP has no other families.
            let address = unsafe { &*pointer.cast::<libc::sockaddr_in>() };
            IpAddr::from(address.sin_addr.s_addr.to_ne_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, UdpReceiver};
    use std::net::{IpAddr, Ipv4Addr, UdpSocket};
    use std::time::Duration;

    const WAIT: Duration = Duration::from_secs(5);

    fn pair(buffer: usize) -> (UdpReceiver, UdpSocket) {
        let receiver = UdpReceiver::bind("127.0.0.1:0".parse().unwrap(), buffer).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.address()).unwrap();
        (receiver, sender)
    }

    #[test]
    fn datagrams_come_in_order_with_their_source() {
        let (mut receiver, sender) = pair(1 << 20);
        let mut seen = Vec::new();
        for n in 0..200_u8 {
            sender.send(&[n; 40]).unwrap();
        }
        while seen.len() < 200 {
            let got = receiver.receive(WAIT).unwrap();
            assert!((1..=BATCH).contains(&got));
            for (from, bytes) in receiver.datagrams() {
                assert_eq!((from, bytes.len()), (IpAddr::V4(Ipv4Addr::LOCALHOST), 40));
                seen.push(bytes[0]);
            }
        }
        assert_eq!(seen, (0..200).collect::<Vec<u8>>());
        assert_eq!((receiver.dropped().unwrap(), receiver.truncated()), (0, 0));
    }

    #[test]
    fn what_the_kernel_drops_is_counted() {
        const SENT: u64 = 5000;
        let (mut receiver, sender) = pair(1);
        for _ in 0..SENT {
            sender.send(&[0; 1000]).unwrap();
        }
        let mut got = 0;
        while let count @ 1.. = receiver.receive(Duration::from_millis(50)).unwrap() {
            got += count as u64;
        }
        let dropped = receiver.dropped().unwrap();
        assert!(dropped > 0);
        assert_eq!(got + dropped, SENT);
    }

    #[test]
    fn datagrams_that_are_too_long_are_counted_and_left_out() {
        let (mut receiver, sender) = pair(1 << 20);
        sender.send(&[7; 20_000]).unwrap();
        sender.send(&[8; 9216]).unwrap();
        let mut lengths = Vec::new();
        while lengths.is_empty() {
            receiver.receive(WAIT).unwrap();
            lengths.extend(receiver.datagrams().map(|(_, bytes)| bytes.len()));
        }
        assert_eq!((lengths, receiver.truncated()), (vec![9216], 1));
    }

    #[test]
    fn without_datagrams_the_wait_ends() {
        let (mut receiver, _sender) = pair(1 << 20);
        assert_eq!(receiver.receive(Duration::from_millis(1)).unwrap(), 0);
        assert_eq!(receiver.datagrams().count(), 0);
    }
}
