//! A view of a packet: its flow, and the INT that it carries.
//!
//! [`PacketView`] reads Ethernet (with up to two VLAN tags), IPv4 with options or IPv6 with
//! extension headers, TCP or UDP, and INT where a [`Detection`] says that it is. Packets within
//! reports are truncated and may be malformed: a view has what could be read, and the first error.

mod detection;
mod int;
mod network;

pub use detection::{Detection, DomainSource, DscpMatch, VersionZero};
pub use int::{IntHeader, IntView};
pub use network::{Link, Network};

use crate::error::{Expected, Reason, WireError};
use crate::flow::{FlowKey, TCP, UDP};
use crate::read::Reader;
use int::{Original, Signal};
use network::Ip;

/// What could be read of a packet.
#[derive(Debug, Clone, Copy, Default)]
pub struct PacketView<'a> {
    /// The link layer; `None` for packets that begin with their IP header.
    pub link: Option<Link>,
    /// The network layer; `None` if it is not IP, or not complete.
    pub network: Option<Network>,
    /// The flow, as it is without INT; `None` if the packet ends before it is known.
    pub flow: Option<FlowKey>,
    /// INT headers and metadata.
    pub int: Option<IntView<'a>>,
    /// What follows the headers that could be read.
    pub payload: &'a [u8],
    /// Why the headers could not all be read; reports truncate packets, so that this is common.
    pub fault: Option<WireError>,
}

impl<'a> PacketView<'a> {
    /// A view of a frame that begins with its Ethernet header.
    #[must_use]
    pub fn ethernet(bytes: &'a [u8], detection: &Detection) -> Self {
        let mut view = Self::default();
        view.read(Reader::new(bytes), FirstHeader::Ethernet, Some(detection));
        view
    }

    /// A view of a packet that begins with its IPv4 header.
    #[must_use]
    pub fn ipv4(bytes: &'a [u8], detection: &Detection) -> Self {
        let mut view = Self::default();
        view.read(Reader::new(bytes), FirstHeader::Ipv4, Some(detection));
        view
    }

    /// A view of a packet that begins with its IPv6 header.
    #[must_use]
    pub fn ipv6(bytes: &'a [u8], detection: &Detection) -> Self {
        let mut view = Self::default();
        view.read(Reader::new(bytes), FirstHeader::Ipv6, Some(detection));
        view
    }

    /// Fills an empty view in place: it is too large to be moved for each report. Without a
    /// detection, INT is not searched.
    #[inline]
    pub(crate) fn read(&mut self, mut reader: Reader<'a>, first: FirstHeader, detection: Option<&Detection>) {
        let result = match first {
            FirstHeader::Ethernet => self.read_link(&mut reader, detection),
            FirstHeader::Ipv4 => self.read_ip(&mut reader, Ip::V4, detection),
            FirstHeader::Ipv6 => self.read_ip(&mut reader, Ip::V6, detection),
        };
        self.fault = result.err();
        self.payload = reader.rest();
    }

    /// The packet's bytes from its IP header by its length field, without INT. 0 if unknown.
    #[must_use]
    pub fn length_without_int(&self) -> u32 {
        let length = self.network.map_or(0, |n| n.length);
        length.saturating_sub(self.int.map_or(0, |i| i.bytes))
    }

    fn read_link(&mut self, reader: &mut Reader<'a>, detection: Option<&Detection>) -> Result<(), WireError> {
        let link = self.link.insert(Link::read(reader)?);
        match link.ip() {
            Some(ip) => self.read_ip(reader, ip, detection),
            None => Ok(()),
        }
    }

    #[inline]
    fn read_ip(&mut self, reader: &mut Reader<'a>, ip: Ip, detection: Option<&Detection>) -> Result<(), WireError> {
        let network = network::read(reader, ip, &mut self.network)?;
        self.read_transport(reader, &network, detection)
    }

    #[inline]
    fn read_transport(
        &mut self,
        reader: &mut Reader<'a>,
        network: &Network,
        detection: Option<&Detection>,
    ) -> Result<(), WireError> {
        let Some(protocol) = network.protocol else {
            return Ok(());
        };
        let mut flow = FlowKey {
            source: network.source,
            destination: network.destination,
            source_port: 0,
            destination_port: 0,
            protocol,
        };
        if network.is_later_fragment || !FlowKey::has_ports(protocol) {
            self.flow = Some(flow);
            return Ok(());
        }
        flow.source_port = reader.u16("transport source port")?;
        flow.destination_port = reader.u16("transport destination port")?;
        let signal = detection.and_then(|d| header_signal(d, network, &flow));
        // A port that signals INT is not the flow's: the flow is known only after INT.
        let is_final = !matches!(signal, Some(Signal::UdpPort | Signal::Lab));
        if is_final {
            self.flow = Some(flow);
        }
        let before_options = detection.is_some_and(|d| d.before_tcp_options);
        skip_transport(reader, protocol, before_options)?;
        let Some(detection) = detection else { return Ok(()) };
        let Some(signal) = payload_signal(reader, protocol, signal, detection) else {
            return Ok(());
        };
        let mut original = Original::Unknown;
        let result = int::read(reader, signal, detection, &mut self.int, &mut original);
        // The flow may be known although INT is truncated or malformed.
        match original {
            Original::Unknown => return result,
            Original::Unchanged => {}
            Original::DestinationPort(port) => flow.destination_port = port,
            Original::Inserted(original) => {
                self.flow = None;
                result?;
                return self.read_inserted(reader, flow, original);
            }
        }
        self.flow = Some(flow);
        result
    }

    /// Reads the original transport header after an inserted one and its INT.
    fn read_inserted(&mut self, reader: &mut Reader<'a>, outer: FlowKey, protocol: u8) -> Result<(), WireError> {
        let mut flow = FlowKey {
            source_port: 0,
            destination_port: 0,
            protocol,
            ..outer
        };
        if FlowKey::has_ports(protocol) {
            flow.source_port = reader.u16("original transport source port")?;
            flow.destination_port = reader.u16("original transport destination port")?;
        }
        self.flow = Some(flow);
        if FlowKey::has_ports(protocol) {
            skip_transport(reader, protocol, false)?;
        }
        Ok(())
    }
}

/// The header that begins a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstHeader {
    Ethernet,
    Ipv4,
    Ipv6,
}

/// The signal in the headers up to the ports.
#[inline]
fn header_signal(detection: &Detection, network: &Network, flow: &FlowKey) -> Option<Signal> {
    if flow.protocol == UDP && detection.lab_ports.contains(&flow.destination_port) {
        return Some(Signal::Lab);
    }
    if flow.protocol == UDP && detection.udp_ports.contains(&flow.destination_port) {
        return Some(Signal::UdpPort);
    }
    let is_marked = detection.dscp.is_some_and(|d| d.matches(network.dscp));
    (is_marked && matches!(flow.protocol, TCP | UDP)).then_some(Signal::Dscp)
}

/// The signal of the headers, or of a probe marker, which takes precedence over DSCP.
#[inline]
fn payload_signal(reader: &Reader<'_>, protocol: u8, signal: Option<Signal>, detection: &Detection) -> Option<Signal> {
    let Some(marker) = detection.probe_marker else {
        return signal;
    };
    let is_marked = reader.rest().first_chunk() == Some(&marker.to_be_bytes());
    match signal {
        Some(Signal::Lab | Signal::UdpPort) => signal,
        Some(Signal::Dscp | Signal::ProbeMarker) | None if is_marked && matches!(protocol, TCP | UDP) => {
            Some(Signal::ProbeMarker)
        }
        Some(Signal::Dscp | Signal::ProbeMarker) | None => signal,
    }
}

/// Skips a transport header after its ports.
#[inline]
fn skip_transport(reader: &mut Reader<'_>, protocol: u8, before_options: bool) -> Result<(), WireError> {
    match protocol {
        TCP => {
            let start = reader.offset();
            let [_, _, _, _, _, _, _, _, offset, ..] = *reader.array::<16>("TCP header")?;
            let words = u32::from(offset >> 4);
            let Some(options) = words.checked_sub(5) else {
                let expected = Expected::AtLeast(5);
                let field = "TCP data offset";
                return Err(WireError::new(Reason::HeaderLength, field, start + 8, expected, words));
            };
            if !before_options {
                reader.take(options as usize * 4, "TCP options")?;
            }
        }
        UDP => {
            reader.array::<4>("UDP header")?;
        }
        _ => {}
    }
    Ok(())
}
