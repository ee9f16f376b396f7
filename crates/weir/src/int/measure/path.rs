//! A path under measurement: the source's port, and the sink's.

use super::frame::{Addresses, HEADERS, Template, number_of_frame, number_of_payload};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_io::{Stamping, TimestampedReceiver, TimestampedSender};

/// Numbers of packets from here on are of probes.
const PROBES: u64 = 1 << 62;
/// Time between probes, and how many are sent until one comes back.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);
const MAX_PROBES: u64 = 60;

/// Which clocks stamp packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clocks {
    /// One hardware clock that both ports have.
    Hardware,
    /// The system's clock: the driver of the source's port, and the kernel at the sink's.
    Software,
    /// The system's clock: the source before its system call, and the kernel at the sink's port.
    /// The driver of the source's port stamps nothing.
    SoftwareBeforeCall,
}

impl Clocks {
    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Clocks::Hardware => "hardware timestamps of both ports, by one clock",
            Clocks::Software => "software timestamps of driver (egress) and kernel (ingress)",
            Clocks::SoftwareBeforeCall => "software timestamps of the source before its system call, and of the kernel",
        }
    }

    fn stamping(self) -> Stamping {
        match self {
            Clocks::Hardware => Stamping::Hardware,
            Clocks::Software | Clocks::SoftwareBeforeCall => Stamping::Software,
        }
    }
}

/// The clocks that are used where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ClockChoice {
    /// Hardware where both ports have the same clock, else software
    Auto,
    /// Hardware, or an error
    Hardware,
    /// Software
    Software,
}

/// The clocks for two ports.
///
/// # Errors
/// An interface does not exist, or hardware is required and the ports share no clock.
pub fn clocks(source: &str, sink: &str, choice: ClockChoice) -> Result<Clocks> {
    let (from, to) = (
        weir_io::timestamp_capabilities(source)?,
        weir_io::timestamp_capabilities(sink)?,
    );
    let is_shared = from.hardware_clock.is_some() && from.hardware_clock == to.hardware_clock;
    let software = if from.software_send {
        Clocks::Software
    } else {
        Clocks::SoftwareBeforeCall
    };
    Ok(match choice {
        ClockChoice::Software => software,
        ClockChoice::Auto | ClockChoice::Hardware if is_shared => Clocks::Hardware,
        ClockChoice::Auto => software,
        ClockChoice::Hardware => bail!(
            "`{source}` and `{sink}` have no common hardware clock that stamps every packet (`ethtool -T`): use ports of one card, or --stamps software"
        ),
    })
}

/// What a path carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Medium {
    /// Ethernet frames between interfaces.
    Frames,
    /// UDP payloads between sockets: frames without their headers.
    Payloads,
}

/// A path from the source's port to the sink's.
#[derive(Debug)]
pub struct Path {
    pub(super) sender: TimestampedSender,
    pub(super) sink: Sink,
    pub(super) addresses: Addresses,
    /// The clocks that it is measured by.
    pub clocks: Clocks,
    medium: Medium,
}

/// The end of a path: recognises packets of a measurement.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) receiver: TimestampedReceiver,
    medium: Medium,
    port: u16,
}

impl Path {
    /// Opens a path between two interfaces.
    ///
    /// # Errors
    /// They are one, or one does not exist, is down, or may not be used by this process.
    pub fn between(source: &str, sink: &str, addresses: Addresses, choice: ClockChoice) -> Result<Self> {
        if source == sink {
            bail!("`{source}` cannot be both ends: the device under test is between two ports");
        }
        let clocks = clocks(source, sink, choice)?;
        let receiver = TimestampedReceiver::open(sink, clocks.stamping())?;
        let path = Path {
            sender: TimestampedSender::open(source, clocks.stamping())?,
            sink: Sink {
                receiver,
                medium: Medium::Frames,
                port: addresses.port,
            },
            addresses,
            clocks,
            medium: Medium::Frames,
        };
        // A switch learns where the sink is, so that it does not flood.
        let mut announcement = Template::new(0, &addresses.reversed(), 0);
        TimestampedSender::open(sink, Stamping::Software)?.send(announcement.packet(PROBES, 0))?;
        Ok(path)
    }

    /// Opens a path from a new UDP socket to a receiver: to `first` if packets are to be forwarded
    /// there, else directly.
    ///
    /// # Errors
    /// There are no sockets.
    pub fn by_udp(receiver: TimestampedReceiver, first: SocketAddr) -> Result<Self> {
        let addresses = Addresses::default();
        Ok(Path {
            sender: TimestampedSender::udp(([127, 0, 0, 1], 0).into(), first)?,
            sink: Sink {
                receiver,
                medium: Medium::Payloads,
                port: addresses.port,
            },
            addresses,
            clocks: Clocks::Software,
            medium: Medium::Payloads,
        })
    }

    /// Bytes of the longest frame that the source sends, without the checksum of Ethernet.
    pub fn longest(&self) -> usize {
        match self.medium {
            Medium::Frames => self.sender.longest(),
            Medium::Payloads => self.sender.longest() + HEADERS,
        }
    }

    /// Sends probes until one comes back, or `stop` is set. How many were sent in vain, if none
    /// came back.
    ///
    /// # Errors
    /// A socket fails.
    pub(super) fn probe(&mut self, size: usize, measurement: u32, stop: &AtomicBool) -> Result<Option<u64>> {
        let mut template = Template::new(size, &self.addresses, measurement);
        let mut came_back = false;
        for number in 0..MAX_PROBES {
            let packet = template.packet(PROBES + number, weir_io::now_ns());
            self.sender.send(self.medium.part(packet))?;
            let end = Instant::now() + PROBE_INTERVAL;
            while !came_back && Instant::now() < end {
                let left = end.saturating_duration_since(Instant::now());
                self.sink.take(left, measurement, |_, _| came_back = true)?;
            }
            // Timestamps of probes are not used.
            while self.sender.stamps(|_, _| {})? > 0 {}
            if came_back || stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        Ok(Some(MAX_PROBES))
    }

    /// Where to look if no packet comes back.
    pub fn advice(&self) -> String {
        format!(
            "check the cables, that the device forwards {} to the sink (UDP port {}), and that it does not drop packets of this size",
            self.addresses.destination, self.addresses.port
        )
    }

    pub(super) fn parts(&mut self) -> (Source<'_>, &mut Sink) {
        let source = Source {
            sender: &mut self.sender,
            medium: self.medium,
            clocks: self.clocks,
        };
        (source, &mut self.sink)
    }
}

/// The begin of a path.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) sender: &'a mut TimestampedSender,
    medium: Medium,
    pub(super) clocks: Clocks,
}

impl Source<'_> {
    /// Sends a frame; its number, if it was not dropped at once.
    pub(super) fn send(&mut self, frame: &[u8]) -> Result<Option<u32>> {
        Ok(self.sender.send(self.medium.part(frame))?)
    }
}

impl Medium {
    /// The part of a frame that it carries.
    fn part(self, frame: &[u8]) -> &[u8] {
        match self {
            Medium::Frames => frame,
            Medium::Payloads => frame.get(HEADERS..).unwrap_or_default(),
        }
    }
}

impl Sink {
    /// Takes the packets of a measurement that are there: number and arrival, ns. How many packets
    /// came, of others too.
    pub(super) fn take(&mut self, wait: Duration, measurement: u32, mut take: impl FnMut(u64, u64)) -> Result<usize> {
        let (medium, port) = (self.medium, self.port);
        let count = self.receiver.receive(wait, |bytes, time| {
            let number = match medium {
                Medium::Frames => number_of_frame(bytes, port, measurement),
                Medium::Payloads => number_of_payload(bytes, true, measurement),
            };
            if let Some(number) = number {
                take(number, time);
            }
        })?;
        Ok(count)
    }
}
