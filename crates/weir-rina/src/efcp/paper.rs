//! The PCI of the P4 prototype: 20 bytes in network order, with a checksum of its own.

use super::control::{Control, ControlField, ControlFields, ControlType};
use super::{
    Address, CepId, Dialect, Flags, Kind, Pci, Pdu, PduType, QosId, all_or_nothing, check_length, length_field, type_of,
};
use crate::checksum;
use crate::error::{EncodeError, Expected, Reason, WireError};
use crate::read::{ByteOrder, Reader, Width, write_uint};

const VERSION: u8 = 1;
const TYPE_AT: usize = 10;
const LENGTH_AT: usize = 12;
const CHECKSUM_AT: usize = 18;

/// The format of "A P4-Enabled RINA Interior Router for Software-Defined Data Centers" (2020) and
/// of `p4/programs/rina_router`.
///
/// Version 8 (1) | destination 16 | source 16 | QoS 8 | destination CEP 16 | source CEP 16 |
/// type 8 | flags 8 | length 16 | sequence number 32 | checksum 16, in network order. The length is
/// that of the PDU; the checksum is the Internet checksum of the 18 bytes before it.
///
/// The paper has types of control PDUs but not their contents. weir sends IRATI's fields after the
/// PCI, each 32 bits wide, in network order; the checksum does not cover them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Paper;

impl Paper {
    /// Bytes of the PCI, without the fields of control PDUs.
    pub const BYTES: usize = 20;
}

fn width(_: ControlField) -> Width {
    Width::Four
}

impl Dialect for Paper {
    fn name(&self) -> &'static str {
        "paper"
    }

    fn code(&self, kind: PduType) -> Option<u8> {
        Some(match kind {
            PduType::Management => 0x40,
            PduType::Data => 0x80,
            PduType::Control(kind) => kind.irati_code(),
        })
    }

    fn control_fields(&self, kind: ControlType) -> Option<&'static [ControlField]> {
        Some(kind.irati_fields())
    }

    fn pci_bytes(&self, kind: PduType) -> Option<usize> {
        Some(match kind {
            PduType::Management | PduType::Data => Self::BYTES,
            PduType::Control(kind) => Self::BYTES + 4 * kind.irati_fields().len(),
        })
    }

    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Pdu<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        let header = reader.array::<{ Self::BYTES }>("EFCP PCI")?;
        let word = |at: usize| u32::from(u16::from_be_bytes([header[at], header[at + 1]]));
        if header[0] != VERSION {
            let expected = Expected::Exactly(VERSION.into());
            return Err(WireError::new(Reason::Version, "EFCP version", 0, expected, header[0]));
        }
        let sum = checksum::internet(&header[..CHECKSUM_AT]);
        // Both zeros of one's complement arithmetic are the same number.
        if checksum::internet(&header) != 0 {
            let (expected, found) = (Expected::Exactly(sum.into()), word(CHECKSUM_AT));
            return Err(WireError::new(
                Reason::Checksum,
                "EFCP checksum",
                CHECKSUM_AT,
                expected,
                found,
            ));
        }
        let kind = type_of(self, header[TYPE_AT], TYPE_AT)?;
        let length = check_length(word(LENGTH_AT), Self::BYTES, bytes.len(), LENGTH_AT)?;
        let mut body = reader.take(length - Self::BYTES, "EFCP payload")?;
        let kind = match kind {
            PduType::Management => Kind::Management,
            PduType::Data => Kind::Data,
            PduType::Control(kind) => Kind::Control(Control {
                kind,
                fields: ControlFields::read(&mut body, kind.irati_fields(), width, ByteOrder::Big)?,
            }),
        };
        let pci = Pci {
            destination: Address(word(1)),
            source: Address(word(3)),
            qos: QosId(header[5].into()),
            destination_cep: CepId(word(6)),
            source_cep: CepId(word(8)),
            flags: Flags(header[11].into()),
            sequence: word(14) << 16 | word(16),
            ttl: None,
            kind,
        };
        Ok(Pdu {
            pci,
            payload: body.rest(),
        })
    }

    fn encode(&self, pci: &Pci, payload: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        use Width::{Four, One, Two};
        let fields = match pci.kind {
            Kind::Management | Kind::Data => &[],
            Kind::Control(control) => control.kind.irati_fields(),
        };
        let code = match pci.kind {
            Kind::Management => 0x40,
            Kind::Data => 0x80,
            Kind::Control(control) => control.kind.irati_code(),
        };
        let length = length_field(Self::BYTES + 4 * fields.len() + payload.len(), u16::MAX.into())?;
        all_or_nothing(out, |out| {
            let start = out.len();
            let mut write = |value, width, field| write_uint(value, width, ByteOrder::Big, field, out);
            write(VERSION.into(), One, "EFCP version")?;
            write(pci.destination.0, Two, "EFCP destination")?;
            write(pci.source.0, Two, "EFCP source")?;
            write(pci.qos.0, One, "EFCP QoS id")?;
            write(pci.destination_cep.0, Two, "EFCP destination CEP id")?;
            write(pci.source_cep.0, Two, "EFCP source CEP id")?;
            write(code.into(), One, "EFCP type")?;
            write(pci.flags.0.into(), One, "EFCP flags")?;
            write(length, Two, "EFCP length")?;
            write(pci.sequence, Four, "EFCP sequence number")?;
            let sum = checksum::internet(&out[start..]);
            out.extend(sum.to_be_bytes());
            if let Kind::Control(control) = pci.kind {
                control.fields.write(fields, width, ByteOrder::Big, out)?;
            }
            out.extend(payload);
            Ok(())
        })
    }
}
