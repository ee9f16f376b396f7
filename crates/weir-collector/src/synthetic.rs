//! Reports of a network that does not exist: for benchmarks and tests, whose truth is known.

use std::net::IpAddr;
use weir_int::wire::report::Flags;
use weir_int::wire::report::v2::{self, GroupHeader, IndividualReport, InnerType, Main, MainPart};
use weir_int::wire::{Domain, HopLayout, MdHeader, NextProtocol, Shim, ShimType};
use weir_int::{FlowKey, Hop, Timestamp, TimestampWidth, Uint};

/// The DSCP value of packets with INT.
pub const DSCP: u8 = 0x17;

/// The INT domain of packets with numbers.
pub const DOMAIN: u16 = 0x4e55;

/// Node id, ports of level 1, queue, both timestamps.
const INSTRUCTIONS: u16 = 0xdc00;
/// Ports of level 1, queue, both timestamps.
const REPORT_METADATA: u16 = 0x5c00;

/// A packet on its way.
#[derive(Debug, Clone)]
pub struct Packet {
    /// Its flow: IPv4 and UDP.
    pub flow: FlowKey,
    /// Bytes of its IP packet.
    pub bytes: u16,
    /// Its hops, source first, as their nodes would report them.
    pub hops: Vec<Hop>,
    /// The number that its source gives it within its flow, in INT domain [`DOMAIN`].
    pub number: Option<u32>,
}

/// A hop with a queue and timestamps.
#[must_use]
pub fn hop(node: u32, ports: (u16, u16), queue: (u8, u32), ingress: u64, egress: u64) -> Hop {
    let at = |value| {
        Some(Timestamp {
            value,
            width: TimestampWidth::Bits64,
        })
    };
    Hop {
        node_id: Some(node),
        ingress_port: Some(ports.0),
        egress_port: Some(ports.1),
        queue_id: Some(queue.0),
        queue_occupancy: Some(queue.1),
        ingress_timestamp: at(ingress),
        egress_timestamp: at(egress),
        ..Hop::default()
    }
}

impl Packet {
    /// The headers of the packet up to the end of its INT stack; an empty stack without `hops`.
    fn headers(&self, with_int: bool) -> Vec<u8> {
        let layout = HopLayout::v2(INSTRUCTIONS, HopLayout::words_of_v2(INSTRUCTIONS));
        let mut stack = Vec::new();
        if let Some(layout) = layout.filter(|_| with_int) {
            for (at, hop) in self.hops.iter().enumerate().rev() {
                match self.number.filter(|_| at == 0) {
                    Some(number) => layout.write_source(hop, &number.to_be_bytes(), None, &mut stack),
                    None => layout.write(hop, &[], None, &mut stack),
                }
            }
        }
        let int = if with_int {
            Shim::BYTES + MdHeader::BYTES + stack.len()
        } else {
            0
        };
        let mut out = vec![0x45, if with_int { DSCP << 2 } else { 0 }];
        out.extend((self.bytes.saturating_add(int as u16)).to_be_bytes());
        out.extend([0, 1, 0x40, 0, 64, 17, 0, 0]);
        for address in [self.flow.source, self.flow.destination] {
            match address {
                IpAddr::V4(address) => out.extend(address.octets()),
                IpAddr::V6(_) => out.extend([0; 4]),
            }
        }
        out.extend(self.flow.source_port.to_be_bytes());
        out.extend(self.flow.destination_port.to_be_bytes());
        out.extend((self.bytes.saturating_add(int as u16).saturating_sub(20)).to_be_bytes());
        out.extend([0, 0]);
        if with_int {
            let shim = Shim {
                kind: ShimType::Md,
                next: NextProtocol::Unchanged { dscp: Uint::ZERO },
                length: ((MdHeader::BYTES + stack.len()) / 4) as u8,
            };
            let header = MdHeader {
                hop_words: Uint::truncate(HopLayout::words_of_v2(INSTRUCTIONS).into()),
                remaining_hops: 8,
                instructions: INSTRUCTIONS,
                domain: self.number.map_or(Domain::default(), |_| Domain {
                    id: DOMAIN,
                    instructions: 0x8000,
                    flags: 0,
                }),
                ..MdHeader::default()
            };
            out.extend(shim.to_bytes());
            out.extend(header.to_bytes());
            out.extend(stack);
        }
        out
    }

    /// The report of an INT-MD sink, which is the last hop: version 2.0, with all hops in the
    /// stack.
    #[must_use]
    pub fn sink_report(&self, sequence: u32) -> Vec<u8> {
        let flags = Flags {
            tracked_flow: true,
            ..Flags::default()
        };
        let part = MainPart::default();
        self.report(sequence, self.hops.last(), flags, part, true)
    }

    /// The report of one hop on its own (INT-XD): version 2.0.
    #[must_use]
    pub fn postcard(&self, at: usize, sequence: u32) -> Vec<u8> {
        let flags = Flags {
            tracked_flow: true,
            ..Flags::default()
        };
        let part = MainPart {
            metadata_bits: REPORT_METADATA,
            ..MainPart::default()
        };
        self.report(sequence, self.hops.get(at), flags, part, false)
    }

    /// The report of a hop that dropped the packet: version 2.0.
    #[must_use]
    pub fn drop_report(&self, at: usize, sequence: u32) -> Vec<u8> {
        let flags = Flags {
            dropped: true,
            ..Flags::default()
        };
        let part = MainPart {
            metadata_bits: REPORT_METADATA,
            ..MainPart::default()
        };
        self.report(sequence, self.hops.get(at), flags, part, false)
    }

    fn report(&self, sequence: u32, hop: Option<&Hop>, flags: Flags, part: MainPart, with_int: bool) -> Vec<u8> {
        let hop = hop.copied().unwrap_or_default();
        let group = GroupHeader {
            hw_id: Uint::ZERO,
            sequence: Uint::truncate(sequence),
            node_id: hop.node_id.unwrap_or(0),
        };
        let inner = self.headers(with_int);
        let report = IndividualReport {
            flags,
            main: Main::Int {
                part,
                hop,
                drop_reason: None,
                domain: &[],
            },
            inner_type: InnerType::Ipv4,
            inner: &inner,
        };
        v2::datagram(group, &[report]).unwrap_or_default()
    }
}
