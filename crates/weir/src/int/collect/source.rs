//! Where reports come from.

use crate::int::arguments::Collect;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::BufReader;
use std::net::IpAddr;
use std::time::Duration;
use weir_int::packet::{Detection, PacketView};
use weir_io::pcap::{Packet, PcapReader};
use weir_io::{Batch, Device, UdpReceiver, now_ns};

/// Frames of an interface that are taken at a time, and packets of a capture.
const BATCH: usize = 64;

/// Protocol number of UDP.
const UDP: u8 = 17;

/// Link types of captures: Ethernet, IP without a link header (three numbers), and what `tcpdump -i
/// any` writes, in two versions.
const ETHERNET: u16 = 1;
const RAW_IP: [u16; 3] = [101, 228, 229];
const LINUX_COOKED: u16 = 113;
const LINUX_COOKED_2: u16 = 276;

/// Where reports come from.
pub enum Source {
    /// A UDP socket.
    Udp(Box<UdpReceiver>),
    /// Frames of a device.
    Device(Box<dyn Device>, Batch, ReportPorts),
    /// A capture.
    Capture(Box<PcapReader<BufReader<File>>>, ReportPorts, String),
}

/// What was taken.
pub enum Taken {
    /// Datagrams.
    Some,
    /// None, at this time (ns since the Unix epoch).
    Nothing(u64),
    /// There will be no more.
    End,
}

/// UDP destination ports of reports.
pub struct ReportPorts(Vec<u16>);

impl ReportPorts {
    /// The address that a frame with reports comes from, and its payload.
    fn reports<'a>(&self, frame: &'a [u8]) -> Option<(IpAddr, &'a [u8])> {
        self.reports_of(PacketView::ethernet(frame, &Detection::default()))
    }

    /// The same of a captured packet; an error where its link type is not known.
    fn captured<'a>(&self, packet: &Packet<'a>) -> Result<Option<(IpAddr, &'a [u8])>> {
        let data = packet.data;
        let link = packet.link_type;
        let ip = match link {
            ETHERNET => return Ok(self.reports(data)),
            LINUX_COOKED => data.get(16..),
            LINUX_COOKED_2 => data.get(20..),
            _ if RAW_IP.contains(&link) => Some(data),
            _ => bail!("link type {link}: expected Ethernet, raw IP or Linux cooked capture"),
        };
        let ip = ip.unwrap_or_default();
        let view = match ip.first().map_or(0, |byte| byte >> 4) {
            6 => PacketView::ipv6(ip, &Detection::default()),
            _ => PacketView::ipv4(ip, &Detection::default()),
        };
        Ok(self.reports_of(view))
    }

    fn reports_of<'a>(&self, view: PacketView<'a>) -> Option<(IpAddr, &'a [u8])> {
        let flow = view.flow.filter(|flow| flow.protocol == UDP)?;
        let is_fragment = view.network.is_none_or(|network| network.is_later_fragment);
        let is_chosen = self.0.is_empty() || self.0.contains(&flow.destination_port);
        (is_chosen && !is_fragment).then_some((flow.source, view.payload))
    }
}

impl Source {
    /// Opens what the command line names.
    pub fn open(arguments: &Collect, messages: &Messages) -> Result<Self> {
        let ports = ReportPorts(arguments.report_port.clone());
        if let Some(address) = arguments.listen {
            let bytes = arguments.buffer as usize * 1024 * 1024;
            let receiver = UdpReceiver::bind(address, bytes);
            let receiver = receiver.with_context(|| format!("cannot take reports from UDP at {address}"))?;
            messages.line(format!("reports from UDP at {}", receiver.address()));
            return Ok(Source::Udp(Box::new(receiver)));
        }
        if let Some(spec) = &arguments.interface {
            let device = weir_io::open(spec).with_context(|| format!("cannot open {spec}"))?;
            messages.line(format!("reports from {spec}"));
            return Ok(Source::Device(device, Batch::new(BATCH), ports));
        }
        let path = arguments.capture.as_deref().context("no source of reports")?;
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let reader = PcapReader::new(BufReader::new(file)).with_context(|| path.display().to_string())?;
        Ok(Source::Capture(Box::new(reader), ports, path.display().to_string()))
    }

    /// Takes datagrams, waiting for them no longer than a time: `each` gets them with the time at
    /// which they came.
    pub fn take(
        &mut self,
        longest: Duration,
        mut each: impl FnMut(u64, &[(IpAddr, &[u8])]) -> Result<()>,
    ) -> Result<Taken> {
        match self {
            Source::Udp(receiver) => {
                let got = receiver.receive(longest).context("cannot take reports from UDP")?;
                let now = now_ns();
                if got == 0 {
                    return Ok(Taken::Nothing(now));
                }
                let datagrams: Vec<_> = receiver.datagrams().collect();
                each(now, &datagrams)?;
                Ok(Taken::Some)
            }
            Source::Device(device, batch, ports) => {
                if device.is_exhausted() {
                    return Ok(Taken::End);
                }
                batch.clear();
                if device.receive(batch)? == 0 {
                    weir_io::wait(&[device.as_ref()], longest)?;
                    return Ok(Taken::Nothing(now_ns()));
                }
                let datagrams: Vec<_> = batch.iter().filter_map(|frame| ports.reports(frame.data)).collect();
                each(now_ns(), &datagrams)?;
                Ok(Taken::Some)
            }
            Source::Capture(reader, ports, name) => match reader.next_packet().with_context(|| name.clone())? {
                Some(packet) => {
                    let reports = ports.captured(&packet)?;
                    each(packet.time_ns, reports.as_slice())?;
                    Ok(Taken::Some)
                }
                None => Ok(Taken::End),
            },
        }
    }

    /// Datagrams that the kernel or the device dropped, and those that were too long.
    pub fn dropped(&mut self) -> Result<u64> {
        match self {
            Source::Udp(receiver) => Ok(receiver.dropped()? + receiver.truncated()),
            Source::Device(device, ..) => Ok(device.counters().receive_dropped),
            Source::Capture(..) => Ok(0),
        }
    }
}
