//! Links over UDP: a frame per datagram, without a header, as QEMU's `-netdev socket,udp=` and
//! `-netdev dgram` have it.

use crate::batch::{Batch, Frame};
use crate::device::{Counters, Device};
use crate::error::IoError;
use crate::now_ns;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;

#[cfg(target_os = "linux")]
use crate::sys::datagrams::{self, BATCH};
#[cfg(not(target_os = "linux"))]
use single::{self as datagrams, BATCH};

/// Bytes of the longest datagram.
const LONGEST: usize = 65_536;

/// One end of a link over UDP.
///
/// The kernel takes datagrams of the remote address only. Datagrams may be lost without a trace, as
/// on a wire; where the kernel reports that the other end is not there, they are counted as
/// dropped.
#[derive(Debug)]
pub struct UdpTunnel {
    socket: UdpSocket,
    local: SocketAddr,
    remote: SocketAddr,
    /// Room for the datagrams of one call.
    buffer: Vec<u8>,
    /// Their lengths.
    lengths: [usize; BATCH],
    /// Those that have arrived, and have had no room in a batch yet.
    held: Range<usize>,
    /// When they arrived.
    time_ns: u64,
    counters: Counters,
}

impl UdpTunnel {
    /// Binds a socket to `local` and connects it to `remote`.
    ///
    /// # Errors
    ///
    /// `local` is in use or not of this machine, or there is no route to `remote`.
    pub fn open(local: SocketAddr, remote: SocketAddr) -> Result<Self, IoError> {
        let doing = || format!("opening udp:{local},{remote}");
        let open = || -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind(local)?;
            socket.connect(remote)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|source| IoError::System { doing: doing(), source })?;
        Ok(UdpTunnel {
            socket,
            local,
            remote,
            buffer: vec![0; BATCH * LONGEST],
            lengths: [0; BATCH],
            held: 0..0,
            time_ns: 0,
            counters: Counters::default(),
        })
    }

    /// What a failed call means: `None` where the socket can still be used.
    fn failure(&self, doing: &str, source: io::Error) -> Option<IoError> {
        match source.kind() {
            // The other end is not there yet, or there is no route at the moment.
            ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::PermissionDenied => None,
            _ => Some(IoError::System {
                doing: format!("{doing} {}", self.description()),
                source,
            }),
        }
    }
}

/// One datagram with each call, where the system has no call for several.
#[cfg(not(target_os = "linux"))]
mod single {
    use crate::batch::Frame;
    use std::io;
    use std::net::UdpSocket;

    pub(super) const BATCH: usize = 1;

    pub(super) fn send(socket: &UdpSocket, frames: &[Frame<'_>]) -> io::Result<usize> {
        let first = frames.first().map(|frame| socket.send(frame.data));
        first.transpose().map(|sent| usize::from(sent.is_some()))
    }

    pub(super) fn receive(
        socket: &UdpSocket,
        buffer: &mut [u8],
        _: usize,
        lengths: &mut [usize; BATCH],
        _: usize,
    ) -> io::Result<usize> {
        lengths[0] = socket.recv(buffer)?;
        Ok(1)
    }
}

impl Device for UdpTunnel {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, IoError> {
        let mut added = 0;
        while batch.room() > 0 {
            if self.held.is_empty() {
                match datagrams::receive(&self.socket, &mut self.buffer, LONGEST, &mut self.lengths, batch.room()) {
                    Ok(count) => (self.held, self.time_ns) = (0..count, now_ns()),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    Err(e) => match self.failure("receiving from", e) {
                        // About a datagram that was sent: the kernel reports it with the next call.
                        None => {
                            self.counters.send_dropped += 1;
                            continue;
                        }
                        Some(error) => return Err(error),
                    },
                }
            }
            let at = self.held.start;
            let length = self.lengths[at];
            if !batch.push(&self.buffer[at * LONGEST..][..length], self.time_ns) {
                break;
            }
            self.held.start += 1;
            self.counters.received += 1;
            self.counters.received_bytes += length as u64;
            added += 1;
        }
        Ok(added)
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        let mut done = 0;
        while done < frames.len() {
            match datagrams::send(&self.socket, &frames[done..]) {
                Ok(count) => {
                    self.counters.count_sent(&frames[done..done + count]);
                    done += count;
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock || e.kind() == ErrorKind::Interrupted => {
                    return Ok(done);
                }
                // Longer than a datagram.
                #[cfg(unix)]
                Err(e) if e.raw_os_error() == Some(libc::EMSGSIZE) => {}
                Err(e) => {
                    if let Some(error) = self.failure("sending to", e) {
                        return Err(error);
                    }
                }
            }
            self.counters.send_dropped += 1;
            done += 1;
        }
        Ok(done)
    }

    fn description(&self) -> String {
        format!("udp:{},{}", self.local, self.remote)
    }

    #[cfg(unix)]
    fn poll_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        Some(self.socket.as_fd())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Two ends of a link, with ports that were free a moment before.
    fn link() -> (UdpTunnel, UdpTunnel) {
        let free = || UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (a, b) = (free(), free());
        (UdpTunnel::open(a, b).unwrap(), UdpTunnel::open(b, a).unwrap())
    }

    fn frame(data: &[u8]) -> Frame<'_> {
        Frame { data, time_ns: 0 }
    }

    fn receive(from: &mut UdpTunnel, count: usize) -> Vec<Vec<u8>> {
        let mut batch = Batch::new(2);
        let mut all = Vec::new();
        let end = Instant::now() + Duration::from_secs(10);
        while all.len() < count && Instant::now() < end {
            batch.clear();
            from.receive(&mut batch).unwrap();
            all.extend(batch.iter().map(|frame| frame.data.to_vec()));
        }
        all
    }

    #[test]
    fn frames_arrive_as_they_were_sent() {
        let (mut a, mut b) = link();
        let frames: Vec<Vec<u8>> = (1..=9_u8).map(|n| vec![n; usize::from(n) * 1000]).collect();
        let sent: Vec<Frame<'_>> = frames.iter().map(|data| frame(data)).collect();
        assert_eq!(a.transmit(&sent).unwrap(), 9);
        assert_eq!(receive(&mut b, 9), frames);
        assert_eq!(b.counters().received_bytes, 45_000);
        assert_eq!(b.transmit(&sent[..1]).unwrap(), 1);
        assert_eq!(receive(&mut a, 1), frames[..1]);
    }

    #[test]
    fn an_end_that_is_not_there_costs_frames_but_not_the_link() {
        let (mut a, b) = link();
        let address = b.local;
        drop(b);
        for _ in 0..4 {
            assert_eq!(a.transmit(&[frame(b"x")]).unwrap(), 1);
            assert_eq!(a.receive(&mut Batch::new(1)).unwrap(), 0);
        }
        let dropped = a.counters().send_dropped;
        assert!(dropped > 0);
        let mut b = UdpTunnel::open(address, a.local).unwrap();
        assert_eq!(a.transmit(&[frame(b"y")]).unwrap(), 1);
        assert_eq!(receive(&mut b, 1), [b"y"]);
    }

    #[test]
    fn others_cannot_send_into_a_link() {
        let (mut a, mut b) = link();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(b"forged", b.local).unwrap();
        a.transmit(&[frame(b"real")]).unwrap();
        assert_eq!(receive(&mut b, 1), [b"real"]);
    }

    #[test]
    fn a_frame_longer_than_a_datagram_is_counted_as_dropped() {
        let (mut a, _b) = link();
        assert_eq!(a.transmit(&[frame(&[0; 70_000])]).unwrap(), 1);
        assert_eq!(a.counters().send_dropped, 1);
    }
}
