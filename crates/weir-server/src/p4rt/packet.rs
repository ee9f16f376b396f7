//! Packets to and from the controller (specification, sections "ControllerPacketMetadata" and
//! "Packet I/O").

use super::refusal::Refusal;
use super::translation::{Codec, Dictionaries};
use weir_interp::BitBuffer;
use weir_ir::{AnnotationBody, Bits, HeaderType, Program};
use weir_proto::p4::config::v1 as config;
use weir_proto::p4::v1 as pb;

/// The header that the program puts before packets to the controller, or expects before those from
/// it.
#[derive(Debug)]
pub struct PacketHeader {
    fields: Vec<HeaderField>,
    bits: usize,
}

#[derive(Debug)]
struct HeaderField {
    name: String,
    width: u32,
    /// Id and values; a hidden field has none, and is 0 in packets from the controller.
    shown: Option<(u32, Codec)>,
    /// It fills up bytes: controllers may leave it out.
    is_padding: bool,
}

fn is_of(ty: &HeaderType, which: &str) -> bool {
    ty.annotations.iter().any(|a| {
        let text = match &a.body {
            AnnotationBody::Text { tokens, .. } => tokens.first().map(String::as_str),
            _ => None,
        };
        a.name == "controller_header" && text.is_some_and(|t| t.trim_matches('"') == which)
    })
}

impl PacketHeader {
    /// The header `which` (`packet_in` or `packet_out`), with its description in P4Info.
    pub(super) fn new(
        program: &Program,
        which: &str,
        described: &config::ControllerPacketMetadata,
        dictionaries: &mut Dictionaries,
    ) -> Option<Self> {
        let (_, ty) = program.header_types.iter().find(|(_, ty)| is_of(ty, which))?;
        let mut described = described.metadata.iter().peekable();
        let mut fields = Vec::new();
        for field in &ty.fields {
            let has = |name: &str| field.annotations.iter().any(|a| a.name == name);
            let width = field.ty.width();
            let shown = if has("hidden") { None } else { described.next() };
            fields.push(HeaderField {
                name: field.name.clone(),
                width,
                shown: shown.map(|d| (d.id, Codec::new(width, &field.control, dictionaries))),
                is_padding: has("padding"),
            });
        }
        let bits = fields.iter().map(|f| f.width as usize).sum();
        Some(PacketHeader { fields, bits })
    }

    /// The packet for the switch: the header and what follows it.
    ///
    /// # Errors
    /// The metadata is not exactly one value per field of the header.
    pub fn packet_out(&self, packet: &pb::PacketOut) -> Result<Vec<u8>, Refusal> {
        for (i, given) in packet.metadata.iter().enumerate() {
            let id = given.metadata_id;
            if !self.fields.iter().any(|f| f.shown.as_ref().is_some_and(|s| s.0 == id)) {
                return Err(Refusal::malformed(format!(
                    "`packet_out` has no field with the id {id}"
                )));
            }
            if packet.metadata[..i].iter().any(|m| m.metadata_id == id) {
                return Err(Refusal::malformed(format!("the field with the id {id} is given twice")));
            }
        }
        let mut buffer = BitBuffer::new();
        for field in &self.fields {
            let given = field.shown.as_ref().and_then(|(id, codec)| {
                let given = packet.metadata.iter().find(|m| m.metadata_id == *id)?;
                Some(codec.decode(&given.value).map_err(|e| e.within(&field.name)))
            });
            match given {
                Some(value) => buffer.push(&value?),
                None if field.shown.is_none() || field.is_padding => buffer.push(&Bits::zero(field.width)),
                None => return Err(Refusal::malformed(format!("the field `{}` is missing", field.name))),
            }
        }
        if !self.bits.is_multiple_of(8) {
            return Err(Refusal::unsupported("the header `packet_out` is not whole bytes"));
        }
        let mut bytes = buffer.into_bytes();
        bytes.extend_from_slice(&packet.payload);
        Ok(bytes)
    }

    /// The packet for the controller; `None` where it is shorter than the header.
    #[must_use]
    pub fn packet_in(&self, bytes: &[u8]) -> Option<pb::PacketIn> {
        if !self.bits.is_multiple_of(8) || bytes.len() * 8 < self.bits {
            return None;
        }
        let (header, payload) = bytes.split_at(self.bits / 8);
        let whole = Bits::from_bytes(u32::try_from(self.bits).ok()?, header);
        let mut left = whole.width();
        let mut metadata = Vec::new();
        for field in &self.fields {
            let value = match field.width {
                0 => Bits::zero(0),
                width => whole.slice(left - 1, left - width),
            };
            left -= field.width;
            if let Some((id, codec)) = &field.shown {
                metadata.push(pb::PacketMetadata {
                    metadata_id: *id,
                    value: codec.encode(&value),
                });
            }
        }
        Some(pb::PacketIn {
            payload: payload.to_vec(),
            metadata,
        })
    }
}
