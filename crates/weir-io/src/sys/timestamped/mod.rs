//! Sockets whose packets are stamped where they leave and arrive.
//!
//! A sender's timestamps come from the error queue of its socket (`SO_TIMESTAMPING`), numbered as
//! packets were sent; a receiver's come with each packet.

mod messages;
mod port;

use super::{
    HEADER, bind, control_socket, drops, interface_error, interface_flags, interface_index, is_running, mtu, poll,
    receive_everything, set_option, socket,
};
use crate::error::IoError;
use messages::{Messages, TIMESTAMPING};
use port::HardwareStamps;
pub use port::{TimestampCapabilities, timestamp_capabilities};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Bytes of packets and timestamps that the kernel keeps for a socket.
const BUFFER: libc::c_int = 64 << 20;

/// The clock that stamps packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamping {
    /// The system's clock (`CLOCK_REALTIME`), by the driver and the kernel.
    Software,
    /// The clock of the network interface, as packets pass its MAC or PHY.
    Hardware,
}

impl Stamping {
    fn flags(self, software: libc::c_uint, hardware: libc::c_uint) -> libc::c_int {
        let flags = match self {
            Stamping::Software => software | libc::SOF_TIMESTAMPING_SOFTWARE,
            Stamping::Hardware => hardware | libc::SOF_TIMESTAMPING_RAW_HARDWARE,
        };
        flags as libc::c_int
    }

    fn of(self, info: &messages::Info) -> Option<u64> {
        match self {
            Stamping::Software => info.software,
            Stamping::Hardware => info.hardware,
        }
    }
}

/// Sends packets and gets the time at which each left.
#[derive(Debug)]
pub struct TimestampedSender {
    socket: OwnedFd,
    stamping: Stamping,
    /// The kernel's number of the next packet.
    next: u32,
    longest: usize,
    messages: Messages,
    _hardware: Option<HardwareStamps>,
}

impl TimestampedSender {
    /// Opens an interface to send Ethernet frames. It receives nothing.
    ///
    /// # Errors
    /// `CAP_NET_RAW` is missing, there is no such interface, it is down, or it does not stamp in
    /// hardware.
    pub fn open(name: &str, stamping: Stamping) -> Result<Self, IoError> {
        let port = Port::open(name, 0)?;
        let hardware = HardwareStamps::start(name, stamping)?;
        Self::new(port.socket, stamping, port.longest, hardware).map_err(|e| port_error(name, e))
    }

    /// Opens a UDP socket that sends payloads from one address to another, stamped by software.
    ///
    /// # Errors
    /// The address is in use, or not of this machine.
    pub fn udp(from: SocketAddr, to: SocketAddr) -> Result<Self, IoError> {
        let failed = |e| IoError::system(format!("sending from {from} to {to}"), "CAP_NET_RAW", e);
        let socket = UdpSocket::bind(from).map_err(failed)?;
        socket.connect(to).map_err(failed)?;
        Self::new(socket.into(), Stamping::Software, LONGEST_DATAGRAM, None).map_err(failed)
    }

    fn new(socket: OwnedFd, stamping: Stamping, longest: usize, hardware: Option<HardwareStamps>) -> io::Result<Self> {
        set_buffers(&socket)?;
        let common = libc::SOF_TIMESTAMPING_OPT_ID | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        let flags = stamping.flags(
            libc::SOF_TIMESTAMPING_TX_SOFTWARE | common,
            libc::SOF_TIMESTAMPING_TX_HARDWARE | common,
        );
        set_option(&socket, libc::SOL_SOCKET, TIMESTAMPING, &flags)?;
        Ok(TimestampedSender {
            socket,
            stamping,
            next: 0,
            longest,
            messages: Messages::new(),
            _hardware: hardware,
        })
    }

    /// Bytes of the longest packet that it sends.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Sends a packet. Its number, by which [`TimestampedSender::stamps`] names it; `None` where
    /// the kernel had no room for it.
    ///
    /// # Errors
    /// The interface has gone or is down.
    pub fn send(&mut self, packet: &[u8]) -> Result<Option<u32>, IoError> {
        let (fd, pointer) = (self.socket.as_raw_fd(), packet.as_ptr().cast());
        // SAFETY: the pointer is to bytes of this length, which live during the call.
        let sent = unsafe { libc::send(fd, pointer, packet.len(), libc::MSG_DONTWAIT) };
        if sent >= 0 {
            let number = self.next;
            self.next = number.wrapping_add(1);
            return Ok(Some(number));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN) => Ok(None),
            // The queue was full, and the kernel had counted the packet.
            Some(libc::ENOBUFS) => {
                self.next = self.next.wrapping_add(1);
                Ok(None)
            }
            _ => Err(IoError::system("sending a packet", "CAP_NET_RAW", error)),
        }
    }

    /// Takes the timestamps that are there, without waiting: number of a packet, and when it left,
    /// in ns. How many there were.
    ///
    /// # Errors
    /// The socket has failed.
    pub fn stamps(&mut self, mut take: impl FnMut(u32, u64)) -> Result<usize, IoError> {
        let taken = self.messages.take(&self.socket, libc::MSG_ERRQUEUE);
        let count = taken.map_err(|e| IoError::system("reading egress timestamps", "CAP_NET_RAW", e))?;
        for (_, info) in self.messages.iter() {
            if let (Some(number), Some(time)) = (info.sent, self.stamping.of(&info)) {
                take(number, time);
            }
        }
        Ok(count)
    }
}

/// Receives packets with the time at which each arrived.
#[derive(Debug)]
pub struct TimestampedReceiver {
    socket: OwnedFd,
    stamping: Stamping,
    messages: Messages,
    unstamped: u64,
    dropped: u64,
    /// The kernel's counter, which wraps.
    last_dropped: u32,
    _hardware: Option<HardwareStamps>,
}

impl TimestampedReceiver {
    /// Opens an interface to receive IPv4 in Ethernet frames, whatever their destination.
    ///
    /// # Errors
    /// `CAP_NET_RAW` is missing, there is no such interface, it is down, or it does not stamp in
    /// hardware.
    pub fn open(name: &str, stamping: Stamping) -> Result<Self, IoError> {
        let port = Port::open(name, libc::ETH_P_IP as u16)?;
        let hardware = HardwareStamps::start(name, stamping)?;
        let opened = receive_everything(&port.socket, port.index)
            .and_then(|()| set_option(&port.socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1))
            .and_then(|()| Self::new(port.socket, stamping, hardware));
        opened.map_err(|e| port_error(name, e))
    }

    /// Opens a UDP socket at an address, stamped by software; the address that it got.
    ///
    /// # Errors
    /// The address is in use, or not of this machine.
    pub fn udp(at: SocketAddr) -> Result<(Self, SocketAddr), IoError> {
        let failed = |e| IoError::system(format!("receiving at {at}"), "CAP_NET_RAW", e);
        let socket = UdpSocket::bind(at).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let receiver = Self::new(socket.into(), Stamping::Software, None).map_err(failed)?;
        Ok((receiver, address))
    }

    fn new(socket: OwnedFd, stamping: Stamping, hardware: Option<HardwareStamps>) -> io::Result<Self> {
        set_buffers(&socket)?;
        let flags = stamping.flags(libc::SOF_TIMESTAMPING_RX_SOFTWARE, libc::SOF_TIMESTAMPING_RX_HARDWARE);
        set_option(&socket, libc::SOL_SOCKET, TIMESTAMPING, &flags)?;
        Ok(TimestampedReceiver {
            socket,
            stamping,
            messages: Messages::new(),
            unstamped: 0,
            dropped: 0,
            last_dropped: 0,
            _hardware: hardware,
        })
    }

    /// Waits for packets, but not longer than a time, and takes those that are there: the bytes,
    /// and when they arrived, in ns. How many there were. With no time it does not wait.
    ///
    /// By software, the kernel begins to stamp a moment after the first receiver was opened: send
    /// packets that do not count before those that do.
    ///
    /// # Errors
    /// The socket has failed.
    pub fn receive(&mut self, longest: Duration, mut take: impl FnMut(&[u8], u64)) -> Result<usize, IoError> {
        if !longest.is_zero() && !poll(&[self.socket.as_fd()], longest)? {
            return Ok(0);
        }
        let taken = self.messages.take(&self.socket, 0);
        let count = taken.map_err(|e| IoError::system("receiving packets", "CAP_NET_RAW", e))?;
        for (bytes, info) in self.messages.iter() {
            match self.stamping.of(&info) {
                Some(time) => take(bytes, time),
                None => self.unstamped += 1,
            }
        }
        Ok(count)
    }

    /// Packets that came without a timestamp and were not given out.
    #[must_use]
    pub fn unstamped(&self) -> u64 {
        self.unstamped
    }

    /// Packets that the kernel dropped because the socket's buffer was full. The kernel's counter
    /// has 32 bits: it counts right if this is called once in 4 billion drops.
    ///
    /// # Errors
    /// The kernel does not say: it is older than 4.12.
    pub fn dropped(&mut self) -> io::Result<u64> {
        let now = drops(&self.socket)?;
        self.dropped += u64::from(now.wrapping_sub(self.last_dropped));
        self.last_dropped = now;
        Ok(self.dropped)
    }
}

/// How long an interface that is set up may be without a carrier.
const CARRIER: Duration = Duration::from_secs(2);
/// Bytes of the longest payload that UDP sockets of this module send.
const LONGEST_DATAGRAM: usize = 9000;
/// An interface with a raw socket.
struct Port {
    socket: OwnedFd,
    index: libc::c_int,
    longest: usize,
}

impl Port {
    /// Opens an interface for the packets of a protocol, or none with 0.
    fn open(name: &str, protocol: u16) -> Result<Self, IoError> {
        let failed = |e| port_error(name, e);
        let control = control_socket()?;
        let index = interface_index(&control, name)?;
        // No protocol: nothing is received before the socket is bound.
        let socket = socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(failed)?;
        if !comes_up(&control, name) {
            return Err(IoError::Down { name: name.to_owned() });
        }
        let longest = mtu(&control, name)? + HEADER;
        bind(&socket, index, protocol).map_err(failed)?;
        Ok(Port { socket, index, longest })
    }
}

/// Whether an interface is running, or is set up and runs soon: its carrier takes a moment.
fn comes_up(control: &OwnedFd, name: &str) -> bool {
    let is_up = || interface_flags(control, name).is_ok_and(|flags| flags & libc::IFF_UP as libc::c_short != 0);
    let end = Instant::now() + CARRIER;
    while !is_running(control, name) {
        if !is_up() || Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

fn port_error(name: &str, error: io::Error) -> IoError {
    interface_error(name, &format!("opening `{name}`"), "CAP_NET_RAW", error)
}

/// Enlarges both buffers, as far as the kernel permits: egress timestamps count as received.
fn set_buffers(socket: &OwnedFd) -> io::Result<()> {
    for (forced, normal) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        if set_option(socket, libc::SOL_SOCKET, forced, &BUFFER).is_err() {
            set_option(socket, libc::SOL_SOCKET, normal, &BUFFER)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_stamped_when_it_leaves_and_when_it_arrives() {
        const COUNT: u32 = 200;
        let any = "127.0.0.1:0".parse().unwrap();
        let (mut receiver, address) = TimestampedReceiver::udp(any).unwrap();
        let mut sender = TimestampedSender::udp(any, address).unwrap();
        let (mut left, mut arrived) = (vec![0; COUNT as usize], vec![0; COUNT as usize]);
        // The kernel begins to stamp a moment after the socket was opened.
        let (mut first, mut is_stamped) = (0, false);
        while !is_stamped {
            sender.send(&[]).unwrap();
            first += 1;
            let wait = Duration::from_secs(5);
            receiver.receive(wait, |_, _| is_stamped = true).unwrap();
            while sender.stamps(|_, _| {}).unwrap() > 0 {}
        }
        let unstamped = receiver.unstamped();
        let before = crate::now_ns();
        for number in 0..COUNT {
            assert_eq!(sender.send(&number.to_ne_bytes()).unwrap(), Some(first + number));
            while sender
                .stamps(|number: u32, time| left[(number - first) as usize] = time)
                .unwrap()
                > 0
            {}
            let wait = Duration::from_secs(5);
            let take = |bytes: &[u8], time| arrived[u32::from_ne_bytes(bytes.try_into().unwrap()) as usize] = time;
            receiver.receive(wait, take).unwrap();
        }
        let after = crate::now_ns();
        for (left, arrived) in left.iter().zip(&arrived) {
            let times = [before, *left, *arrived, after];
            assert!(times.is_sorted(), "{times:?}");
        }
        assert_eq!((receiver.unstamped(), receiver.dropped().unwrap()), (unstamped, 0));
    }

    #[test]
    fn interfaces_that_do_not_exist_are_refused() {
        for error in [
            timestamp_capabilities("no-such-if").unwrap_err(),
            TimestampedSender::open("no-such-if", Stamping::Software).unwrap_err(),
        ] {
            assert!(matches!(error, IoError::NoInterface { .. }), "{error}");
        }
    }

    #[test]
    fn the_loopback_interface_stamps_by_software() {
        let found = timestamp_capabilities("lo").unwrap();
        assert!(found.software_send && found.software_receive);
        assert_eq!(found.hardware_clock, None);
    }
}
