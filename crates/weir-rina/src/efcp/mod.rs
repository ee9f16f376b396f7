//! EFCP PDUs: one type for all formats ([`Pci`], [`Pdu`]), one codec for each ([`Dialect`]).
//!
//! | Dialect | PCI of data PDUs | Byte order | Checksum |
//! |---|---|---|---|
//! | [`Paper`] | 20 bytes | network | Internet, PCI only |
//! | [`Irati`] | 19 bytes by default, widths from the DIF | host | none (a CRC by SDU protection) |
//! | [`Rlite`] | 28 bytes | host | none, or Internet over the PDU |

mod control;
pub mod delimiting;
mod irati;
mod paper;
pub mod protection;
mod rlite;

pub use control::{Control, ControlField, ControlFields, ControlType};
pub use irati::{Irati, Widths};
pub use paper::Paper;
pub use rlite::{Rlite, RliteChecksum};

use crate::error::{EncodeError, Expected, Reason, WireError};
use std::fmt;

/// The address of an IPC process within its DIF, at most 32 bits. 0 is no address: PDUs of layer
/// management to 0 are for the neighbour at the other end of an N-1 flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u32);

impl Address {
    /// No address: the IPC process that receives the PDU over an N-1 flow.
    pub const NEIGHBOUR: Address = Address(0);
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A connection endpoint, unique within its IPC process; at most 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CepId(pub u32);

/// A QoS cube of a DIF; at most 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QosId(pub u32);

/// The flags of a PCI; 8 bits in most formats, 16 in rlite's. Unknown bits are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// Explicit congestion notification: a router's queue exceeded its threshold.
    pub const ECN: Flags = Flags(0x01);
    /// Data run flag: the first PDU of a run, after which sequence numbers start anew.
    pub const DRF: Flags = Flags(0x80);

    /// Whether all of some flags are set.
    #[must_use]
    pub const fn contains(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These flags and others.
    #[must_use]
    pub const fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }
}

/// The kind of a PDU, with the fields that only this kind has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Layer management: the payload is a CDAP message.
    Management,
    /// Data transfer.
    Data,
    /// Control of a connection (DTCP).
    Control(Control),
}

impl Kind {
    /// The type of a PDU of this kind.
    #[must_use]
    pub const fn pdu_type(self) -> PduType {
        match self {
            Kind::Management => PduType::Management,
            Kind::Data => PduType::Data,
            Kind::Control(control) => PduType::Control(control.kind),
        }
    }
}

/// The type of a PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PduType {
    /// Layer management, 0x40 in all formats.
    Management,
    /// Data transfer, 0x80 in all formats.
    Data,
    /// Control; the codes differ between formats.
    Control(ControlType),
}

impl PduType {
    /// All types.
    pub fn all() -> impl Iterator<Item = PduType> {
        let control = ControlType::ALL.into_iter().map(PduType::Control);
        [PduType::Management, PduType::Data].into_iter().chain(control)
    }

    /// A name for metrics: lower case, words separated by `_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PduType::Management => "management",
            PduType::Data => "data",
            PduType::Control(kind) => kind.name(),
        }
    }
}

/// Protocol control information, independent of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pci {
    /// The IPC process that the PDU is for.
    pub destination: Address,
    /// The IPC process that has sent the PDU.
    pub source: Address,
    /// The QoS cube of the connection.
    pub qos: QosId,
    /// The destination's endpoint of the connection.
    pub destination_cep: CepId,
    /// The source's endpoint of the connection.
    pub source_cep: CepId,
    /// Flags.
    pub flags: Flags,
    /// The sequence number; of control PDUs the control sequence number, which counts on its own.
    pub sequence: u32,
    /// The hops that the PDU may still take. Only rlite's PCI has it: it sends 64 for `None`, the
    /// others omit it and decode as `None`.
    pub ttl: Option<u16>,
    /// The kind of the PDU.
    pub kind: Kind,
}

impl Pci {
    /// A PCI of layer management, without connection.
    #[must_use]
    pub const fn management(source: Address, destination: Address) -> Self {
        Pci {
            destination,
            source,
            qos: QosId(0),
            destination_cep: CepId(0),
            source_cep: CepId(0),
            flags: Flags::NONE,
            sequence: 0,
            ttl: None,
            kind: Kind::Management,
        }
    }
}

/// A PDU whose length, version, type and checksum have been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pdu<'a> {
    /// The PCI.
    pub pci: Pci,
    /// The bytes after the PCI up to the length of the PDU: user data, or a CDAP message.
    pub payload: &'a [u8],
}

/// A wire format of EFCP.
///
/// Decoding and encoding are inverse, except that fields of control PDUs that a format does not
/// transmit ([`Dialect::control_fields`]) decode as 0.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// A name for configuration and metrics.
    fn name(&self) -> &'static str;

    /// The code of a type; `None` if the format has no such PDU.
    fn code(&self, kind: PduType) -> Option<u8>;

    /// The fields that control PDUs of a type have after the control sequence number, in the order
    /// of the wire; `None` if the format has no such PDU.
    fn control_fields(&self, kind: ControlType) -> Option<&'static [ControlField]>;

    /// The bytes of the PCI of a type; `None` if the format has no such PDU.
    fn pci_bytes(&self, kind: PduType) -> Option<usize>;

    /// Reads a PDU. Bytes after the length of the PDU are ignored: Ethernet pads short frames.
    ///
    /// # Errors
    /// The PDU is truncated, its version, type or length is impossible, or its checksum is wrong.
    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Pdu<'a>, WireError>;

    /// Appends a PDU; computes version, length and checksum.
    ///
    /// # Errors
    /// A value exceeds its field, or the format has no PDU of this type. `out` is as before then.
    fn encode(&self, pci: &Pci, payload: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError>;
}

/// Runs an encoder; removes the bytes that it has appended if it fails.
fn all_or_nothing(
    out: &mut Vec<u8>,
    encode: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let before = out.len();
    let result = encode(out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

/// The type with a code of a dialect.
fn type_of(dialect: &dyn Dialect, code: u8, offset: usize) -> Result<PduType, WireError> {
    PduType::all()
        .find(|kind| dialect.code(*kind) == Some(code))
        .ok_or_else(|| {
            let expected = Expected::OneOf("a PDU type of the format");
            WireError::new(Reason::PduType, "EFCP type", offset, expected, code)
        })
}

fn no_such_pdu(dialect: &dyn Dialect, kind: PduType) -> EncodeError {
    EncodeError::NoSuchPdu {
        dialect: dialect.name(),
        kind: kind.name(),
    }
}

/// Checks the length field of a PDU: `least` bytes of PCI, `most` bytes in the frame.
fn check_length(length: u32, least: usize, most: usize, offset: usize) -> Result<usize, WireError> {
    let length = length as usize;
    let expected = if length < least {
        Expected::AtLeast(least as u64)
    } else if length > most {
        Expected::AtMost(most as u64)
    } else {
        return Ok(length);
    };
    let field = "EFCP length";
    Err(WireError::new(Reason::Length, field, offset, expected, length as u64))
}

/// The length field of a PDU of some bytes.
fn length_field(bytes: usize, limit: u32) -> Result<u32, EncodeError> {
    u32::try_from(bytes)
        .ok()
        .filter(|length| *length <= limit)
        .ok_or(EncodeError::TooLarge {
            field: "EFCP length",
            limit: limit.into(),
            found: bytes as u64,
        })
}
