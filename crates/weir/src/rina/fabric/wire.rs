//! The links of a fabric: frames between UDP sockets, which can be cut, lose and reorder.

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of the longest frame.
const LONGEST: usize = 65_536;
/// Frames of a socket that are taken before the next one's.
const BURST: usize = 64;
/// How often the thread looks whether it has to end.
const WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A link: a socket towards each end.
#[derive(Debug)]
pub struct Wire {
    sockets: [UdpSocket; 2],
    /// The address of each end, once it is connected.
    ends: [RwLock<Option<SocketAddr>>; 2],
    is_cut: AtomicBool,
    /// Frames of a million that are lost.
    loss: AtomicU32,
    /// Frames of a million that are passed by the next one.
    reordering: AtomicU32,
    carried: AtomicU64,
    lost: AtomicU64,
}

/// What a link has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireCounters {
    /// Frames that it carried.
    pub carried: u64,
    /// Frames that it lost: because it was cut, or by the configured share.
    pub lost: u64,
}

impl Wire {
    /// A link between two ends on loopback.
    ///
    /// # Errors
    /// There is no socket.
    pub fn new() -> Result<Self> {
        let socket = || -> Result<UdpSocket> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("a link")?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        Ok(Wire {
            sockets: [socket()?, socket()?],
            ends: [RwLock::new(None), RwLock::new(None)],
            is_cut: AtomicBool::new(false),
            loss: AtomicU32::new(0),
            reordering: AtomicU32::new(0),
            carried: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        })
    }

    /// The address to which an end (0 or 1) sends.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self, end: usize) -> Result<SocketAddr> {
        Ok(self.sockets[end].local_addr()?)
    }

    /// Sets the address of an end; frames of others are not taken.
    pub fn connect(&self, end: usize, address: SocketAddr) {
        *self.ends[end].write().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    /// Nothing is at an end any more: frames to it are lost.
    pub fn disconnect(&self, end: usize) {
        *self.ends[end].write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Cuts or mends the link.
    pub fn set_cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Whether it is cut.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Sets the share of frames, per million, that are lost.
    pub fn set_loss(&self, per_million: u32) {
        self.loss.store(per_million, Ordering::Relaxed);
    }

    /// Sets the share of frames, per million, that the next one passes.
    pub fn set_reordering(&self, per_million: u32) {
        self.reordering.store(per_million, Ordering::Relaxed);
    }

    /// What it has done.
    pub fn counters(&self) -> WireCounters {
        WireCounters {
            carried: self.carried.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }

    fn end(&self, end: usize) -> Option<SocketAddr> {
        *self.ends[end].read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries what has arrived from an end.
    fn carry(&self, from: usize, buffer: &mut [u8], held: &mut Option<Vec<u8>>, random: &mut Random) {
        let to = 1 - from;
        for _ in 0..BURST {
            let (length, sender) = match self.sockets[from].recv_from(buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // About a frame that was sent to an end that is not there.
                Err(_) => continue,
            };
            if self.end(from) != Some(sender) {
                continue;
            }
            if self.is_cut() || random.is_hit(self.loss.load(Ordering::Relaxed)) {
                self.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let frame = &buffer[..length];
            if held.is_none() && random.is_hit(self.reordering.load(Ordering::Relaxed)) {
                *held = Some(frame.to_vec());
                continue;
            }
            self.send(to, frame);
            if let Some(frame) = held.take() {
                self.send(to, &frame);
            }
        }
    }

    fn send(&self, to: usize, frame: &[u8]) {
        let sent = self.end(to).map(|end| self.sockets[to].send_to(frame, end));
        match sent {
            Some(Ok(_)) => self.carried.fetch_add(1, Ordering::Relaxed),
            Some(Err(_)) | None => self.lost.fetch_add(1, Ordering::Relaxed),
        };
    }
}

/// The thread that carries frames; it ends when this is dropped.
#[derive(Debug)]
pub struct Wires {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Wires {
    /// Starts it.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(wires: Vec<Arc<Wire>>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("wires".to_owned())
            .spawn(move || carry_all(&wires, &flag))
            .context("cannot start a thread")?;
        Ok(Wires {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry_all(wires: &[Arc<Wire>], stop: &AtomicBool) {
    let sockets: Vec<(usize, usize)> = (0..wires.len()).flat_map(|at| [(at, 0), (at, 1)]).collect();
    let mut files: Vec<PollFd<'_>> = sockets
        .iter()
        .map(|(at, end)| PollFd::new(&wires[*at].sockets[*end], PollFlags::IN))
        .collect();
    let mut held: Vec<Option<Vec<u8>>> = vec![None; sockets.len()];
    let mut buffer = vec![0; LONGEST];
    let mut random = Random(0x5249_4e41);
    while !stop.load(Ordering::Relaxed) {
        if poll(&mut files, Some(&WAIT)).is_err() {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        for (file, ((at, end), held)) in files.iter().zip(sockets.iter().zip(&mut held)) {
            if !file.revents().is_empty() {
                wires[*at].carry(*end, &mut buffer, held, &mut random);
            } else if let Some(frame) = held.take() {
                // No frame follows that could pass it.
                wires[*at].send(1 - end, &frame);
            }
        }
    }
}

/// Random numbers (xorshift).
struct Random(u64);

impl Random {
    fn is_hit(&mut self, per_million: u32) -> bool {
        if per_million == 0 {
            return false;
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % 1_000_000 < u64::from(per_million)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Link {
        wire: Arc<Wire>,
        ends: [UdpSocket; 2],
        _wires: Wires,
    }

    fn link() -> Link {
        let wire = Arc::new(Wire::new().unwrap());
        let end = |at: usize| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(wire.address(at).unwrap()).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            wire.connect(at, socket.local_addr().unwrap());
            socket
        };
        Link {
            ends: [end(0), end(1)],
            _wires: Wires::start(vec![Arc::clone(&wire)]).unwrap(),
            wire,
        }
    }

    fn receive(socket: &UdpSocket) -> u8 {
        let mut byte = [0];
        socket.recv(&mut byte).unwrap();
        byte[0]
    }

    #[test]
    fn frames_cross_in_both_directions_unless_the_link_is_cut() {
        let link = link();
        let [a, b] = &link.ends;
        a.send(&[1]).unwrap();
        b.send(&[2]).unwrap();
        assert_eq!((receive(b), receive(a)), (1, 2));
        link.wire.set_cut(true);
        a.send(&[3]).unwrap();
        while link.wire.counters().lost == 0 {
            std::thread::yield_now();
        }
        link.wire.set_cut(false);
        a.send(&[4]).unwrap();
        assert_eq!(receive(b), 4);
        // A frame is counted after it is sent.
        while link.wire.counters().carried < 3 {
            std::thread::yield_now();
        }
        assert_eq!(link.wire.counters(), WireCounters { carried: 3, lost: 1 });
    }

    #[test]
    fn loss_and_reordering_are_counted_and_nothing_is_invented() {
        let link = link();
        let [a, b] = &link.ends;
        link.wire.set_loss(300_000);
        link.wire.set_reordering(300_000);
        for n in 0..100 {
            a.send(&[n]).unwrap();
        }
        let mut seen = Vec::new();
        b.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        while seen.len() as u64 + link.wire.counters().lost < 100 {
            let mut byte = [0];
            // The rest may be lost.
            if b.recv(&mut byte).is_ok() {
                seen.push(byte[0]);
            }
        }
        let lost = link.wire.counters().lost;
        assert!((5..70).contains(&lost), "{lost}");
        assert!(!seen.is_sorted(), "reordered");
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u64 + lost, 100);
    }

    #[test]
    fn others_cannot_send_into_a_link() {
        let link = link();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(&[9], link.wire.address(0).unwrap()).unwrap();
        link.ends[0].send(&[1]).unwrap();
        assert_eq!(receive(&link.ends[1]), 1);
    }
}
