//! rlite's PCI: 28 bytes in host byte order, with TTL and an optional checksum.

use super::control::{Control, ControlField, ControlFields, ControlType};
use super::{
    Address, CepId, Dialect, Flags, Kind, Pci, Pdu, PduType, QosId, all_or_nothing, check_length, length_field,
    no_such_pdu, type_of,
};
use crate::checksum;
use crate::error::{EncodeError, Expected, Reason, WireError};
use crate::read::{ByteOrder, Reader, Width, write_uint};

const TYPE_AT: usize = 1;
const CHECKSUM_AT: usize = 4;
const TTL_AT: usize = 6;
const LENGTH_AT: usize = 24;
const CONTROL_BYTES: usize = 24;

/// All control PDUs have the same fields.
const FIELDS: &[ControlField] = &[
    ControlField::LastControl,
    ControlField::Acknowledged,
    ControlField::NewRight,
    ControlField::NewLeft,
    ControlField::MyLeft,
    ControlField::MyRight,
];

/// The checksum of rlite's PDUs, a policy of the DIF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RliteChecksum {
    /// The field is 0 and is not checked (rlite's default).
    #[default]
    None,
    /// The Internet checksum over the whole PDU.
    Internet,
}

/// The format of rlite.
///
/// Version 8 (0 on sending, ignored on receipt) | type 8 | flags 16 | checksum 16 | TTL 16 |
/// sequence number 32 | destination 32 | source 32 | destination CEP 16 | source CEP 16 | length 16
/// (of the PDU) | QoS 16, in host order. Control PDUs have 24 bytes more: last control sequence
/// number, acknowledged, new right, new left, own left and own right window edge, 32 bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rlite {
    /// The checksum.
    pub checksum: RliteChecksum,
    /// The byte order of the hosts of the DIF.
    pub order: ByteOrder,
}

impl Default for Rlite {
    /// Without checksum, little-endian.
    fn default() -> Self {
        Rlite {
            checksum: RliteChecksum::None,
            order: ByteOrder::Little,
        }
    }
}

impl Rlite {
    /// Bytes of the PCI, without the fields of control PDUs.
    pub const BYTES: usize = 28;
    /// The TTL of a PDU that leaves its source.
    pub const TTL: u16 = 64;

    /// Decrements the TTL of an encoded PDU, as a router does, and patches the checksum.
    ///
    /// Returns the new TTL.
    ///
    /// # Errors
    /// The PDU is shorter than a PCI, or its TTL would become 0: the router drops it.
    pub fn decrement_ttl(&self, pdu: &mut [u8]) -> Result<u16, WireError> {
        let mut reader = Reader::new(pdu);
        let header = reader.array::<{ Self::BYTES }>("EFCP PCI")?;
        let ttl = [header[TTL_AT], header[TTL_AT + 1]];
        let value = match self.order {
            ByteOrder::Big => u16::from_be_bytes(ttl),
            ByteOrder::Little => u16::from_le_bytes(ttl),
        };
        if value <= 1 {
            let expected = Expected::AtLeast(2);
            return Err(WireError::new(Reason::Ttl, "EFCP TTL", TTL_AT, expected, value));
        }
        let new = match self.order {
            ByteOrder::Big => (value - 1).to_be_bytes(),
            ByteOrder::Little => (value - 1).to_le_bytes(),
        };
        pdu[TTL_AT..TTL_AT + 2].copy_from_slice(&new);
        if self.checksum == RliteChecksum::Internet {
            let old_sum = u16::from_be_bytes([header[CHECKSUM_AT], header[CHECKSUM_AT + 1]]);
            let sum = checksum::updated(old_sum, u16::from_be_bytes(ttl), u16::from_be_bytes(new));
            pdu[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        }
        Ok(value - 1)
    }

    fn check_sum(&self, pdu: &[u8], found: u32) -> Result<(), WireError> {
        if self.checksum == RliteChecksum::None || checksum::internet(pdu) == 0 {
            return Ok(());
        }
        let mut zeroed = pdu.to_vec();
        zeroed[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
        let expected = Expected::Exactly(checksum::internet(&zeroed).into());
        let (field, offset) = ("EFCP checksum", CHECKSUM_AT);
        Err(WireError::new(Reason::Checksum, field, offset, expected, found))
    }
}

fn width(_: ControlField) -> Width {
    Width::Four
}

impl Dialect for Rlite {
    fn name(&self) -> &'static str {
        "rlite"
    }

    fn code(&self, kind: PduType) -> Option<u8> {
        match kind {
            PduType::Management => Some(0x40),
            PduType::Data => Some(0x80),
            PduType::Control(ControlType::Ack) => Some(0xc4),
            PduType::Control(ControlType::Flow) => Some(0xc8),
            PduType::Control(ControlType::AckFlow) => Some(0xcc),
            PduType::Control(
                ControlType::ControlAck
                | ControlType::Nack
                | ControlType::NackFlow
                | ControlType::Sack
                | ControlType::Snack
                | ControlType::SackFlow
                | ControlType::SnackFlow
                | ControlType::Rendezvous,
            ) => None,
        }
    }

    fn control_fields(&self, kind: ControlType) -> Option<&'static [ControlField]> {
        self.code(PduType::Control(kind)).map(|_| FIELDS)
    }

    fn pci_bytes(&self, kind: PduType) -> Option<usize> {
        let control = match kind {
            PduType::Management | PduType::Data => 0,
            PduType::Control(_) => CONTROL_BYTES,
        };
        self.code(kind).map(|_| Self::BYTES + control)
    }

    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Pdu<'a>, WireError> {
        use Width::{Four, Two};
        let mut whole = Reader::new(bytes);
        let mut reader = whole.take(Self::BYTES, "EFCP PCI")?;
        reader.u8("EFCP version")?;
        let code = reader.u8("EFCP type")?;
        let mut read = |width, field| reader.uint(width, self.order, field);
        let flags = Flags(read(Two, "EFCP flags")? as u16);
        let sum = read(Two, "EFCP checksum")?;
        let ttl = read(Two, "EFCP TTL")? as u16;
        let sequence = read(Four, "EFCP sequence number")?;
        let destination = Address(read(Four, "EFCP destination")?);
        let source = Address(read(Four, "EFCP source")?);
        let destination_cep = CepId(read(Two, "EFCP destination CEP id")?);
        let source_cep = CepId(read(Two, "EFCP source CEP id")?);
        let length = read(Two, "EFCP length")?;
        let qos = QosId(read(Two, "EFCP QoS id")?);

        let pdu_type = type_of(self, code, TYPE_AT)?;
        let least = self.pci_bytes(pdu_type).unwrap_or(Self::BYTES);
        let length = check_length(length, least, bytes.len(), LENGTH_AT)?;
        self.check_sum(&bytes[..length], sum)?;
        let mut body = whole.take(length - Self::BYTES, "EFCP payload")?;
        let kind = match pdu_type {
            PduType::Management => Kind::Management,
            PduType::Data => Kind::Data,
            PduType::Control(kind) => Kind::Control(Control {
                kind,
                fields: ControlFields::read(&mut body, FIELDS, width, self.order)?,
            }),
        };
        let pci = Pci {
            destination,
            source,
            qos,
            destination_cep,
            source_cep,
            flags,
            sequence,
            ttl: Some(ttl),
            kind,
        };
        Ok(Pdu {
            pci,
            payload: body.rest(),
        })
    }

    fn encode(&self, pci: &Pci, payload: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        use Width::{Four, One, Two};
        let pdu_type = pci.kind.pdu_type();
        let (Some(code), Some(bytes)) = (self.code(pdu_type), self.pci_bytes(pdu_type)) else {
            return Err(no_such_pdu(self, pdu_type));
        };
        let length = length_field(bytes + payload.len(), u16::MAX.into())?;
        all_or_nothing(out, |out| {
            let start = out.len();
            let mut write = |value, width, field| write_uint(value, width, self.order, field, out);
            write(0, One, "EFCP version")?;
            write(code.into(), One, "EFCP type")?;
            write(pci.flags.0.into(), Two, "EFCP flags")?;
            write(0, Two, "EFCP checksum")?;
            write(pci.ttl.unwrap_or(Self::TTL).into(), Two, "EFCP TTL")?;
            write(pci.sequence, Four, "EFCP sequence number")?;
            write(pci.destination.0, Four, "EFCP destination")?;
            write(pci.source.0, Four, "EFCP source")?;
            write(pci.destination_cep.0, Two, "EFCP destination CEP id")?;
            write(pci.source_cep.0, Two, "EFCP source CEP id")?;
            write(length, Two, "EFCP length")?;
            write(pci.qos.0, Two, "EFCP QoS id")?;
            if let Kind::Control(control) = pci.kind {
                control.fields.write(FIELDS, width, self.order, out)?;
            }
            out.extend(payload);
            if self.checksum == RliteChecksum::Internet {
                let sum = checksum::internet(&out[start..]);
                let at = start + CHECKSUM_AT;
                out[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            }
            Ok(())
        })
    }
}
