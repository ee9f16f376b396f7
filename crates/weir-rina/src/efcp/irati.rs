//! IRATI's PCI: widths from the constants of the DIF, host byte order.

use super::control::{Control, ControlField, ControlFields, ControlType};
use super::{
    Address, CepId, Dialect, Flags, Kind, Pci, Pdu, PduType, QosId, all_or_nothing, check_length, length_field, type_of,
};
use crate::error::{EncodeError, Expected, Reason, WireError};
use crate::read::{ByteOrder, Reader, Width, write_uint};

const VERSION: u8 = 1;

/// The widths of a DIF's fields (IRATI's data transfer constants).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// Addresses.
    pub address: Width,
    /// Connection endpoint ids.
    pub cep: Width,
    /// QoS ids.
    pub qos: Width,
    /// The length of the PDU.
    pub length: Width,
    /// Sequence numbers of data PDUs, acknowledged sequence numbers and window edges.
    pub sequence: Width,
    /// Sequence numbers of control PDUs.
    pub control_sequence: Width,
    /// Rates.
    pub rate: Width,
    /// Time units of rates.
    pub time_unit: Width,
}

impl Default for Widths {
    /// IRATI's defaults: 2 bytes for address, CEP id, QoS id and length, 4 for the others.
    fn default() -> Self {
        Widths {
            address: Width::Two,
            cep: Width::Two,
            qos: Width::Two,
            length: Width::Two,
            sequence: Width::Four,
            control_sequence: Width::Four,
            rate: Width::Four,
            time_unit: Width::Four,
        }
    }
}

/// The format of IRATI.
///
/// Version 8 (1) | destination | source | QoS | destination CEP | source CEP | type 8 | flags 8 |
/// length | sequence number, then the fields of control PDUs. Host byte order, no checksum, no TTL
/// ([`super::protection`] has both).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Irati {
    /// The widths of the DIF.
    pub widths: Widths,
    /// The byte order of the hosts of the DIF.
    pub order: ByteOrder,
}

impl Default for Irati {
    /// IRATI's default widths, little-endian.
    fn default() -> Self {
        Irati {
            widths: Widths::default(),
            order: ByteOrder::Little,
        }
    }
}

impl Irati {
    fn length_at(&self) -> usize {
        let w = &self.widths;
        1 + 2 * w.address.bytes() + w.qos.bytes() + 2 * w.cep.bytes() + 2
    }

    fn field_width(&self, field: ControlField) -> Width {
        match field {
            ControlField::LastControl => self.widths.control_sequence,
            ControlField::Rate => self.widths.rate,
            ControlField::TimeUnit => self.widths.time_unit,
            ControlField::Acknowledged
            | ControlField::NewLeft
            | ControlField::NewRight
            | ControlField::MyLeft
            | ControlField::MyRight => self.widths.sequence,
        }
    }

    fn bytes(&self, kind: PduType) -> usize {
        let common = self.length_at() + self.widths.length.bytes();
        common
            + match kind {
                PduType::Management | PduType::Data => self.widths.sequence.bytes(),
                PduType::Control(kind) => {
                    let fields = kind.irati_fields().iter();
                    let tail: usize = fields.map(|field| self.field_width(*field).bytes()).sum();
                    self.widths.control_sequence.bytes() + tail
                }
            }
    }
}

impl Dialect for Irati {
    fn name(&self) -> &'static str {
        "irati"
    }

    fn code(&self, kind: PduType) -> Option<u8> {
        super::Paper.code(kind)
    }

    fn control_fields(&self, kind: ControlType) -> Option<&'static [ControlField]> {
        Some(kind.irati_fields())
    }

    fn pci_bytes(&self, kind: PduType) -> Option<usize> {
        Some(self.bytes(kind))
    }

    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Pdu<'a>, WireError> {
        let (widths, order) = (&self.widths, self.order);
        let mut reader = Reader::new(bytes);
        let version = reader.u8("EFCP version")?;
        if version != VERSION {
            let expected = Expected::Exactly(VERSION.into());
            return Err(WireError::new(Reason::Version, "EFCP version", 0, expected, version));
        }
        let mut read = |width, field| reader.uint(width, order, field);
        let destination = Address(read(widths.address, "EFCP destination")?);
        let source = Address(read(widths.address, "EFCP source")?);
        let qos = QosId(read(widths.qos, "EFCP QoS id")?);
        let destination_cep = CepId(read(widths.cep, "EFCP destination CEP id")?);
        let source_cep = CepId(read(widths.cep, "EFCP source CEP id")?);
        let code_at = reader.offset();
        let code = reader.u8("EFCP type")?;
        let flags = Flags(reader.u8("EFCP flags")?.into());
        let length_at = reader.offset();
        let length = reader.uint(widths.length, order, "EFCP length")?;
        let pdu_type = type_of(self, code, code_at)?;
        let length = check_length(length, self.bytes(pdu_type), bytes.len(), length_at)?;
        let mut body = reader.take(length - reader.offset(), "EFCP payload")?;
        let sequence_width = match pdu_type {
            PduType::Management | PduType::Data => widths.sequence,
            PduType::Control(_) => widths.control_sequence,
        };
        let sequence = body.uint(sequence_width, order, "EFCP sequence number")?;
        let kind = match pdu_type {
            PduType::Management => Kind::Management,
            PduType::Data => Kind::Data,
            PduType::Control(kind) => Kind::Control(Control {
                kind,
                fields: ControlFields::read(&mut body, kind.irati_fields(), |f| self.field_width(f), order)?,
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
            ttl: None,
            kind,
        };
        Ok(Pdu {
            pci,
            payload: body.rest(),
        })
    }

    fn encode(&self, pci: &Pci, payload: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let (widths, order) = (&self.widths, self.order);
        let pdu_type = pci.kind.pdu_type();
        let (code, sequence_width) = match pdu_type {
            PduType::Management => (0x40, widths.sequence),
            PduType::Data => (0x80, widths.sequence),
            PduType::Control(kind) => (kind.irati_code(), widths.control_sequence),
        };
        let length = length_field(self.bytes(pdu_type) + payload.len(), widths.length.max())?;
        all_or_nothing(out, |out| {
            let mut write = |value, width, field| write_uint(value, width, order, field, out);
            write(VERSION.into(), Width::One, "EFCP version")?;
            write(pci.destination.0, widths.address, "EFCP destination")?;
            write(pci.source.0, widths.address, "EFCP source")?;
            write(pci.qos.0, widths.qos, "EFCP QoS id")?;
            write(pci.destination_cep.0, widths.cep, "EFCP destination CEP id")?;
            write(pci.source_cep.0, widths.cep, "EFCP source CEP id")?;
            write(u32::from(code), Width::One, "EFCP type")?;
            write(pci.flags.0.into(), Width::One, "EFCP flags")?;
            write(length, widths.length, "EFCP length")?;
            write(pci.sequence, sequence_width, "EFCP sequence number")?;
            if let Kind::Control(control) = pci.kind {
                let fields = control.kind.irati_fields();
                control.fields.write(fields, |f| self.field_width(f), order, out)?;
            }
            out.extend(payload);
            Ok(())
        })
    }
}
