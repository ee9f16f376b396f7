//! RINA: wire formats of EFCP, CDAP and shim DIFs, and the state machines of layer management.
//!
//! | Module | Content |
//! |---|---|
//! | [`efcp`] | EFCP PDUs of the P4 prototype, IRATI and rlite behind one trait; delimiting; SDU protection |
//! | [`cdap`] | CDAP messages and the objects of layer management, as IRATI and rlite have them |
//! | [`arp`] | ARP of shim DIFs over Ethernet |
//! | [`rib`] | the tree of objects on which CDAP operates |
//! | [`enrolment`] | both sides of the enrolment, without authentication or with a password |
//! | [`address`] | assignment of addresses |
//! | [`keepalive`] | keepalive of neighbours |
//! | [`link_state`] | the link-state database: flooding, ages, refusal of forged and old states |
//! | [`routing`] | shortest paths with ECMP, loop-free alternates, differences of tables |
//! | [`transport`] | one connection: fragmentation, flow control, retransmission, congestion control |
//!
//! The crate does no I/O, starts no threads and reads no clock: time is a parameter ([`Time`]).
//! Decoders do not panic, and take memory in proportion to their input. A [`WireError`] names the
//! field, its offset, the value that the format requires and the value that is there.
//!
//! An IPC process enrols with a CDAP message in an EFCP PDU of layer management:
//!
//! ```
//! use weir_rina::cdap::objects::{Enrolment, Object, WellKnown};
//! use weir_rina::cdap::{CdapDialect, Message, Opcode};
//! use weir_rina::efcp::{Address, Dialect, Paper, Pci};
//!
//! let dialect = CdapDialect::Rlite;
//! let id = WellKnown::Enrolment.id(dialect);
//! let enrolment = Enrolment { lower_difs: vec!["shim.300".into()], ..Enrolment::default() };
//! let start = Message {
//!     invoke_id: 1,
//!     ..Message::about(Opcode::Start, id.class, id.name, Some(enrolment.to_value(dialect)))
//! };
//!
//! let mut bytes = Vec::new();
//! let pci = Pci::management(Address(0), Address::NEIGHBOUR);
//! Paper.encode(&pci, &start.encode(), &mut bytes)?;
//!
//! let pdu = Paper.decode(&bytes)?;
//! assert_eq!(pdu.pci, pci);
//! let message = Message::decode(pdu.payload, dialect)?;
//! assert_eq!(message, start);
//!
//! // Damage on the way is noticed by the checksum of the PCI.
//! bytes[2] ^= 1;
//! let error = Paper.decode(&bytes).unwrap_err();
//! assert_eq!(error.to_string(), "EFCP checksum at byte 18: expected 48571, found 48827");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod address;
pub mod arp;
pub mod cdap;
pub mod checksum;
pub mod efcp;
pub mod enrolment;
mod error;
pub mod keepalive;
pub mod link_state;
mod name;
mod read;
pub mod rib;
pub mod routing;
mod time;
pub mod transport;

pub use error::{EncodeError, Expected, Reason, WireError};
pub use name::{ApplicationName, NameForm};
pub use read::{ByteOrder, Reader, Width};
pub use time::Time;
