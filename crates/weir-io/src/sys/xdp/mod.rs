//! AF_XDP: an interface as a port, past most of the kernel.

mod program;
mod queue;
mod ring;

use super::ethtool::{self, Merging, TagStripping};
use super::{
    HEADER, Patrol, TAGS, check, control_socket, interface_error, interface_index, is_running, mtu, receive_everything,
    socket,
};
use crate::batch::{Batch, Frame};
use crate::device::{Counters, Device, ZeroCopy};
use crate::error::IoError;
use crate::now_ns;
use crate::pool::{FrameBatch, FrameLayout, Pool, Slot};
use crate::ports::{Needs, PortsOptions};
use program::Attach;
use queue::{Link, Queue, Setup};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

pub(crate) const RIGHTS: &str = "CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK (or enough of `ulimit -l`)";

/// How packets get from the driver to an [`XdpSocket`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum XdpMode {
    /// The first of the others that works; for veth [`Self::Generic`], which is faster there with
    /// ordinary senders than the driver's own way.
    #[default]
    Auto,
    /// The hardware writes into the frames.
    ZeroCopy,
    /// The driver runs the program and the kernel copies.
    Native,
    /// The kernel runs the program after the driver and copies. Works with every interface.
    Generic,
}

impl XdpMode {
    fn name(self) -> &'static str {
        match self {
            XdpMode::Auto => "auto",
            XdpMode::ZeroCopy => "zero-copy",
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        }
    }
}

/// Options of Linux for polling the hardware from the process instead of by interrupts (5.11 and
/// later). Worth it where the process spins; set `napi_defer_hard_irqs` and `gro_flush_timeout` of
/// the interface as well. Measured on veth: no gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XdpBusyPoll {
    /// How long a call may poll.
    pub microseconds: u32,
    /// Packets per poll.
    pub budget: u32,
}

/// How an [`XdpSocket`] is to be.
#[derive(Debug, Clone, Default)]
pub struct XdpOptions {
    /// The way through the kernel.
    pub mode: XdpMode,
    /// Entries of each ring, made a power of two from 64 to 32768. By default 8192, fewer where
    /// there are many queues.
    pub ring: Option<u32>,
    /// Where frames come from. By default a pool of its own with four frames per entry of a ring
    /// and queue, of [`XdpOptions::frames_for`]. A pool must be [`FrameLayout::Aligned`] for
    /// [`XdpMode::ZeroCopy`].
    pub pool: Option<Pool>,
    /// Poll the hardware from here.
    pub busy_poll: Option<XdpBusyPoll>,
}

impl XdpOptions {
    /// Frames that a pool should have for interfaces with this many queues in all: for full rings
    /// of `ring` entries, and as many again in other hands.
    #[must_use]
    pub fn frames_for(queues: u32, ring: u32) -> u32 {
        queues.saturating_mul(ring).saturating_mul(4).min(Pool::MAX_FRAMES)
    }
}

/// An interface through AF_XDP, with one socket for each of its receive queues.
///
/// Everything the interface receives comes here and nothing reaches the kernel's own network any
/// more: an address of this machine on the interface does not answer while this exists. (A
/// [`crate::RawSocket`] only gets copies.) The interface receives everything, and while this
/// exists, merging of packets (GRO, LRO) and VLAN offload are switched off. Linux 5.11 or later is
/// needed.
///
/// # What AF_XDP does not say
///
/// A frame comes as bare bytes, without the metadata that a raw socket gets. Between interfaces of
/// one machine, as on veth, that loses information:
///
/// - A local sender (a TCP or UDP socket behind the peer) leaves **checksums unfinished**. Nothing
///   says so; whether a wrong checksum was meant is not to be guessed, and it is passed on as it
///   is. The next kernel then drops the packet.
/// - A sender may leave cutting into segments to the interface; in generic mode the kernel makes
///   one long frame of it, which no frame of a pool takes. It is counted as dropped.
/// - A VLAN tag that a local sender keeps beside the packet is lost.
///
/// `ethtool -K PEER tx off tso off gso off txvlan off` at the other end avoids all three; from here
/// it cannot be seen or set. For this reason [`crate::open`] uses AF_XDP for plain names of real
/// interfaces only, and `xdp:NAME` for those who know. On the wire of real hardware none of this
/// exists.
///
/// # Threads
///
/// [`Self::into_queues`] gives a socket per queue, for as many threads. One socket sends with its
/// first queue, which keeps frames in order.
///
/// # Limits
///
/// Frames of more than [`Pool::MAX_FRAME`] bytes, and so an MTU above 3754, are not possible. What
/// is queued when the interface goes down is sent when it is up again. A frame that the interface
/// takes and throws away is counted as dropped, but its bytes stay in `sent_bytes`.
#[derive(Debug)]
pub struct XdpSocket {
    shared: Arc<Shared>,
    pool: Pool,
    queues: Vec<Queue>,
    /// Readable where one of the sockets is, if there are many.
    any: Option<OwnedFd>,
    /// The queue to receive from first.
    first: usize,
    longest: usize,
    mode: XdpMode,
    patrol: Patrol,
    /// It is time to look whether the interface is still there.
    is_due: bool,
    down: bool,
    counters: Counters,
}

/// What the sockets of an interface have in common.
#[derive(Debug)]
struct Shared {
    name: String,
    control: OwnedFd,
    merging: Merging,
    tags: TagStripping,
    _everything: OwnedFd,
    _link: Link,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.tags.restore(&self.control, &self.name);
        self.merging.restore(&self.control, &self.name);
    }
}

/// What there is to know about an interface before it is opened.
struct Interface<'n> {
    name: &'n str,
    index: libc::c_int,
    control: OwnedFd,
    queues: u32,
    mtu: usize,
    is_veth: bool,
}

impl<'n> Interface<'n> {
    fn new(name: &'n str) -> Result<Self, IoError> {
        let control = control_socket()?;
        let driver = ethtool::driver(&control, name);
        Ok(Interface {
            name,
            index: interface_index(&control, name)?,
            queues: ethtool::receive_queues(&control, name),
            mtu: mtu(&control, name)?,
            is_veth: driver.is_some_and(|(driver, _)| driver == "veth"),
            control,
        })
    }

    /// Longest frame, tags included, in bytes.
    fn longest(&self) -> usize {
        self.mtu + HEADER + TAGS
    }

    /// The ways to try, in this order.
    fn modes(&self, options: &XdpOptions) -> Vec<XdpMode> {
        let aligned = options.pool.as_ref().is_none_or(|p| p.layout() == FrameLayout::Aligned);
        match options.mode {
            XdpMode::Auto if self.is_veth => vec![XdpMode::Generic],
            XdpMode::Auto if aligned => vec![XdpMode::ZeroCopy, XdpMode::Native, XdpMode::Generic],
            XdpMode::Auto => vec![XdpMode::Native, XdpMode::Generic],
            mode => vec![mode],
        }
    }

    fn refused(&self, error: io::Error, what: &str) -> IoError {
        let why = match error.raw_os_error() {
            Some(libc::EBUSY) => "another program holds it (`ip link show` and `bpftool net` tell)".to_string(),
            Some(libc::EOPNOTSUPP) => format!("{what} is not supported by its driver"),
            Some(libc::EAFNOSUPPORT) => "this kernel was built without it".to_string(),
            Some(libc::ENOBUFS | libc::ENOMEM) => {
                format!("the kernel may not lock so much memory (`ulimit -l`, or CAP_IPC_LOCK): {error}")
            }
            Some(libc::ENODEV | libc::ENXIO | libc::EPERM | libc::EACCES) => {
                return interface_error(self.name, &format!("opening AF_XDP on `{}`", self.name), RIGHTS, error);
            }
            _ => format!("{what}: {error}"),
        };
        IoError::NoXdp {
            name: self.name.to_string(),
            why,
        }
    }

    /// Opens all queues and attaches the program.
    fn attach(&self, mode: XdpMode, options: &XdpOptions) -> Result<(Pool, Vec<Queue>, Link), IoError> {
        let ring = ring_of(options.ring, self.queues);
        let pool = match &options.pool {
            Some(pool) => pool.clone(),
            None => {
                let layout = match mode {
                    XdpMode::ZeroCopy => FrameLayout::Aligned,
                    _ => FrameLayout::Packed,
                };
                Pool::new(XdpOptions::frames_for(self.queues, ring), self.longest(), layout)?
            }
        };
        let mut queues: Vec<Queue> = Vec::new();
        for queue in 0..self.queues {
            let setup = Setup {
                interface: self.index as u32,
                queue,
                ring,
                zero_copy: mode == XdpMode::ZeroCopy,
                busy_poll: options.busy_poll,
            };
            let opened = Queue::open(&setup, &pool.memory, queues.first().map(|q| &q.socket));
            queues.push(opened.map_err(|e| self.refused(e, mode.name()))?);
        }
        let how = match mode {
            XdpMode::Generic => Attach::Generic,
            _ => Attach::Native,
        };
        let link = Link::new(self.index as u32, &queues, how);
        let link = link.map_err(|e| self.refused(e, "attaching a program"))?;
        Ok((pool, queues, link))
    }
}

/// Default number of entries of each ring. At a million packets per second it covers 8 ms: two
/// other threads on the core, with a time slice of 4 ms each.
fn usual_ring(queues: u32) -> u32 {
    (8192 / queues.max(1)).next_power_of_two().clamp(512, 8192)
}

/// Entries of each ring, for a number that the caller chose or by default.
fn ring_of(wanted: Option<u32>, queues: u32) -> u32 {
    let wanted = wanted.unwrap_or(usual_ring(queues));
    wanted.clamp(64, PortsOptions::MAX_RING).next_power_of_two()
}

/// What the interface of this name needs, with rings of this size.
pub(crate) fn needs(name: &str, ring: Option<u32>) -> Result<Needs, IoError> {
    let interface = Interface::new(name)?;
    Ok(Needs {
        queues: interface.queues,
        frames: XdpOptions::frames_for(interface.queues, ring_of(ring, interface.queues)),
        longest: interface.longest(),
        is_veth: interface.is_veth,
    })
}

impl XdpSocket {
    /// Opens an interface with all its receive queues.
    ///
    /// # Errors
    ///
    /// There is no such interface, a right is missing, or AF_XDP does not work with it; the message
    /// says why.
    pub fn open(name: &str, options: &XdpOptions) -> Result<Self, IoError> {
        let interface = Interface::new(name)?;
        let no = |why: String| IoError::NoXdp {
            name: name.to_string(),
            why,
        };
        let most = options.pool.as_ref().map_or(Pool::MAX_FRAME, Pool::frame_size);
        let most = most.min(Pool::MAX_FRAME);
        if options.pool.as_ref().is_some_and(|p| p.memory.chunk() > 4096) {
            return Err(no(format!(
                "its frames have {} bytes and the kernel takes 4096 (`Pool::MAX_FRAME`)",
                most
            )));
        }
        if interface.longest() > most {
            let (mtu, most) = (interface.mtu, most - HEADER - TAGS);
            return Err(no(format!(
                "its MTU is {mtu}, and a frame takes {most} (`ip link set {name} mtu {most}`)"
            )));
        }
        let mut failure = None;
        let attached = interface.modes(options).into_iter().find_map(|mode| {
            let attached = interface.attach(mode, options);
            attached.map(|a| (mode, a)).map_err(|e| failure = Some(e)).ok()
        });
        let Some((mode, (pool, queues, link))) = attached else {
            return Err(failure.unwrap_or_else(|| no("there is no way".to_string())));
        };
        let everything = socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
        let everything = everything.and_then(|s| receive_everything(&s, interface.index).map(|()| s));
        let control = interface.control;
        let shared = Shared {
            name: name.to_string(),
            merging: Merging::stop(&control, name),
            tags: TagStripping::stop(&control, name),
            control,
            _everything: everything.map_err(|e| interface_error(name, "receiving everything", RIGHTS, e))?,
            _link: link,
        };
        if shared.tags.goes_on {
            let why = "its driver takes VLAN tags off and cannot be told not to (`ethtool -k`, rx-vlan-offload)";
            return Err(no(why.to_string()));
        }
        Self::new(Arc::new(shared), pool, queues, interface.mtu + HEADER + 4, mode)
    }

    fn new(
        shared: Arc<Shared>,
        pool: Pool,
        queues: Vec<Queue>,
        longest: usize,
        mode: XdpMode,
    ) -> Result<Self, IoError> {
        let any = (queues.len() > 1).then(|| watch_all(&queues)).transpose();
        Ok(XdpSocket {
            any: any.map_err(|e| IoError::system("watching the queues", RIGHTS, e))?,
            shared,
            pool,
            queues,
            first: 0,
            longest,
            mode,
            patrol: Patrol::default(),
            is_due: false,
            down: false,
            counters: Counters::default(),
        })
    }

    /// A socket for each queue, in the order of their numbers. Together they are what this was; the
    /// program stays until the last is dropped. What arrives at a queue whose socket is dropped
    /// before goes to the kernel. What this has counted is counted by the first.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn into_queues(self) -> Result<Vec<XdpSocket>, IoError> {
        let mut counters = self.counters;
        let queues = self.queues.into_iter().map(|queue| {
            let mut one = Self::new(
                self.shared.clone(),
                self.pool.clone(),
                vec![queue],
                self.longest,
                self.mode,
            )?;
            one.counters = std::mem::take(&mut counters);
            Ok(one)
        });
        queues.collect()
    }

    /// Number of queues.
    #[must_use]
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// The way that packets take; never [`XdpMode::Auto`].
    #[must_use]
    pub fn mode(&self) -> XdpMode {
        self.mode
    }

    fn failed(&self, doing: &str, error: io::Error) -> IoError {
        match error.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => IoError::Gone {
                name: self.shared.name.clone(),
            },
            _ => IoError::system(format!("{doing} `{}`", self.shared.name), RIGHTS, error),
        }
    }

    /// Before receiving: what was left to send goes on its way. Now and then: is the interface
    /// still there?
    fn attend(&mut self) -> Result<(), IoError> {
        if self.is_sending() {
            self.kick()?;
        }
        if self.is_due {
            self.is_due = false;
            if !self.queues.iter().all(Queue::is_bound) {
                return Err(IoError::Gone {
                    name: self.shared.name.clone(),
                });
            }
        }
        Ok(())
    }

    fn count_round(&mut self, received: usize) {
        self.is_due = self.patrol.is_due(received);
        self.first = (self.first + 1) % self.queues.len().max(1);
    }

    /// Has the kernel send what is queued.
    fn kick(&mut self) -> Result<(), IoError> {
        let Some(queue) = self.queues.first_mut() else {
            return Ok(());
        };
        let kicked = queue.kick().map_err(|e| self.failed("sending to", e))?;
        self.down = kicked.down;
        // They were counted when they were queued.
        self.counters.sent = self.counters.sent.saturating_sub(kicked.dropped);
        self.counters.send_dropped += kicked.dropped;
        Ok(())
    }

    /// Whether nothing can be sent because the interface is down.
    fn is_down(&mut self) -> bool {
        self.down = self.down && !is_running(&self.shared.control, &self.shared.name);
        self.down
    }
}

/// A file that is readable where one of the sockets is.
fn watch_all(queues: &[Queue]) -> io::Result<OwnedFd> {
    // SAFETY: no pointer is passed.
    let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the call has just returned this file, and nobody else knows it.
    let any = unsafe { OwnedFd::from_raw_fd(fd) };
    for queue in queues {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        let (add, socket) = (libc::EPOLL_CTL_ADD, queue.socket.as_raw_fd());
        // SAFETY: the pointer is to an event that lives during the call.
        check(unsafe { libc::epoll_ctl(any.as_raw_fd(), add, socket, &mut event) })?;
    }
    Ok(any)
}

impl ZeroCopy for XdpSocket {
    fn pool(&self) -> Pool {
        self.pool.clone()
    }

    fn receive_frames(&mut self, batch: &mut FrameBatch) -> Result<usize, IoError> {
        self.attend()?;
        let own = Arc::ptr_eq(&batch.memory, &self.pool.memory);
        let (count, mut received, mut time_ns) = (self.queues.len(), 0, 0);
        for i in 0..count {
            let queue = &mut self.queues[(self.first + i) % count];
            let before = received;
            while batch.room() > 0 {
                let Some(slot) = queue.next(time_ns) else { break };
                time_ns = if time_ns == 0 { now_ns() } else { time_ns };
                let length = slot.length as usize;
                if own {
                    batch.put(Slot { time_ns, ..slot });
                } else {
                    if !push_copy(queue, &slot, |data| batch.push(data, time_ns)) {
                        queue.put_back(slot);
                        break;
                    }
                    queue.give(slot.frame);
                }
                self.counters.count_received(length);
                received += 1;
            }
            if received > before {
                queue.taken();
            } else {
                queue.refill();
            }
        }
        self.count_round(received);
        Ok(received)
    }

    fn transmit_frames(&mut self, batch: &mut FrameBatch) -> Result<usize, IoError> {
        let down = self.is_down();
        let own = Arc::ptr_eq(&batch.memory, &self.pool.memory);
        let most = self.longest.min(self.pool.memory.chunk());
        let Some(queue) = self.queues.first_mut() else {
            return Ok(0);
        };
        queue.reap();
        let (counters, mut done) = (&mut self.counters, 0);
        batch.drain_while(|slot, memory| {
            let length = slot.length as usize;
            let good = !down && (HEADER..=most).contains(&length);
            let queued = good
                && if own {
                    queue.queue(slot)
                } else {
                    // SAFETY: the batch owns the frame, and lends it for this call.
                    let bytes = unsafe { memory.read(slot.frame) };
                    let start = slot.start as usize;
                    queue.queue_copy(&bytes[start..start + length])
                };
            if good && !queued {
                return false;
            }
            if queued {
                counters.sent += 1;
                counters.sent_bytes += u64::from(slot.length);
            } else {
                counters.send_dropped += 1;
            }
            if !(queued && own) {
                memory.give([slot.frame]);
            }
            done += 1;
            true
        });
        if done > 0 {
            self.kick()?;
        }
        Ok(done)
    }
}

/// Reads a frame that a queue has just received.
fn push_copy(queue: &Queue, slot: &Slot, push: impl FnOnce(&[u8]) -> bool) -> bool {
    // SAFETY: the queue has just handed the frame over, and its number is with the caller only.
    let bytes = unsafe { queue.memory.read(slot.frame) };
    let start = slot.start as usize;
    push(&bytes[start..start + slot.length as usize])
}

impl Device for XdpSocket {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, IoError> {
        self.attend()?;
        let (count, mut received, mut time_ns) = (self.queues.len(), 0, 0);
        for i in 0..count {
            let queue = &mut self.queues[(self.first + i) % count];
            let before = received;
            while batch.room() > 0 {
                let Some(slot) = queue.next(0) else { break };
                time_ns = if time_ns == 0 { now_ns() } else { time_ns };
                if !push_copy(queue, &slot, |data| batch.push(data, time_ns)) {
                    queue.put_back(slot);
                    break;
                }
                self.counters.count_received(slot.length as usize);
                queue.give(slot.frame);
                received += 1;
            }
            if received > before {
                queue.taken();
            } else {
                queue.refill();
            }
        }
        self.count_round(received);
        Ok(received)
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        let down = self.is_down();
        let most = self.longest.min(self.pool.frame_size());
        let Some(queue) = self.queues.first_mut() else {
            return Ok(0);
        };
        queue.reap();
        let mut done = 0;
        for frame in frames {
            if down || !(HEADER..=most).contains(&frame.data.len()) {
                self.counters.send_dropped += 1;
            } else if queue.queue_copy(frame.data) {
                self.counters.count_sent(&[*frame]);
            } else {
                break;
            }
            done += 1;
        }
        self.kick()?;
        Ok(done)
    }

    fn flush(&mut self) -> Result<(), IoError> {
        self.kick()
    }

    fn is_sending(&self) -> bool {
        self.queues.first().is_some_and(Queue::is_sending)
    }

    fn description(&self) -> String {
        let queues = match self.queues.len() {
            1 => "1 queue".to_string(),
            n => format!("{n} queues"),
        };
        format!("xdp:{} ({}, {queues})", self.shared.name, self.mode.name())
    }

    fn speed(&self) -> Option<u64> {
        ethtool::speed(&self.shared.control, &self.shared.name)
    }

    fn link_up(&self) -> bool {
        is_running(&self.shared.control, &self.shared.name)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        let first = self.queues.first().map(|q| q.socket.as_fd());
        self.any.as_ref().map(AsFd::as_fd).or(first)
    }

    fn zero_copy(&mut self) -> Option<&mut dyn ZeroCopy> {
        Some(self)
    }

    fn counters(&self) -> Counters {
        let mut counters = self.counters;
        for queue in &self.queues {
            let kernel = queue.statistics();
            counters.receive_dropped += kernel.rx_dropped + kernel.rx_ring_full + queue.damaged;
            counters.send_dropped += kernel.tx_invalid_descs;
        }
        counters
    }
}
