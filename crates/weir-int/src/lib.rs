//! In-band Network Telemetry (INT): wire formats, and reports decoded to one type.
//!
//! Switches put telemetry into packets (INT-MD) or send it to a collector at each hop (INT-MX,
//! INT-XD). A collector gets telemetry reports, whose versions (0.5, 1.0, 2.0) and embedded INT
//! headers (0.4, 0.5, 1.0, 2.x, and the lab format of `p4/programs/int_lab`) differ. This crate
//!
//! - encodes and decodes all of these headers ([`wire`]);
//! - finds flow and INT of a packet, even of a truncated one ([`packet`]);
//! - decodes datagrams to [`Report`]s that are independent of the version ([`report`]).
//!
//! It knows no switch and does no I/O. Decoding neither panics nor allocates, whatever the bytes;
//! a [`WireError`] names the field, its offset, and what was expected and found. Multi-byte fields
//! are in network order on the wire; bit 0 is the most significant one, as in the specifications.
//!
//! ```
//! use weir_int::packet::{Detection, DscpMatch};
//! use weir_int::report::Decoder;
//! use weir_int::{Hop, Uint};
//! use weir_int::wire::report::Flags;
//! use weir_int::wire::report::v2::{self, GroupHeader, IndividualReport, InnerType, Main, MainPart};
//!
//! // A node reports ports and queue of an IPv4 packet, without its payload.
//! let packet = [
//!     0x45, 0, 5, 220, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
//!     0x0f, 0xa0, 0, 53, 5, 200, 0, 0, // UDP
//! ];
//! let hop = Hop {
//!     ingress_port: Some(1),
//!     egress_port: Some(2),
//!     queue_id: Some(0),
//!     queue_occupancy: Some(4096),
//!     ..Hop::default()
//! };
//! let part = MainPart { metadata_bits: 0x5000, ..MainPart::default() };
//! let report = IndividualReport {
//!     flags: Flags { tracked_flow: true, ..Flags::default() },
//!     main: Main::Int { part, hop, drop_reason: None, domain: &[] },
//!     inner_type: InnerType::Ipv4,
//!     inner: &packet,
//! };
//! let group = GroupHeader { hw_id: Uint::ZERO, sequence: Uint::truncate(7), node_id: 81 };
//! let datagram = v2::datagram(group, &[report])?;
//!
//! let detection = Detection {
//!     dscp: Some(DscpMatch::exactly(Uint::truncate(0x17))),
//!     ..Detection::default()
//! };
//! let decoder = Decoder { detection, ..Decoder::default() };
//! for report in decoder.decode(&datagram) {
//!     let report = report?;
//!     assert_eq!(report.flow().unwrap().to_string(), "udp 10.0.0.1:4000 -> 10.0.0.2:53");
//!     assert_eq!(report.packet.length_without_int(), 1500);
//!     let hops: Vec<Hop> = report.hops().iter().collect();
//!     assert_eq!(hops, [Hop { node_id: Some(81), ..hop }]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod bits;
mod error;
mod flow;
mod hop;
pub mod packet;
mod read;
pub mod report;
pub mod wire;

pub use bits::Uint;
pub use error::{Expected, Reason, TooLong, WireError};
pub use flow::FlowKey;
pub use hop::{Hop, Timestamp, TimestampWidth};
pub use read::Reader;
pub use report::Report;
