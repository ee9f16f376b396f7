//! Counts the fields of an encoded message before it is decoded.
//!
//! A field of two bytes may take hundreds in memory. A server for untrusted peers therefore counts
//! fields first, and refuses messages with too many.

use crate::POOL;
use prost::Name;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_reflect::{Kind, MessageDescriptor};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Nesting depth that is counted; prost refuses deeper messages.
const DEPTH: usize = 100;

/// The contents of a length-delimited field.
#[derive(Debug, Clone, Copy)]
enum Within {
    /// A message; its index in [`Shapes`].
    Message(usize),
    /// Packed varints: only the last byte of each is below 128.
    Varints,
    /// Packed numbers of this size in bytes.
    Fixed(usize),
}

/// For each message type of weir's `.proto` files, the fields with nested contents, by number.
struct Shapes {
    names: FxHashMap<String, usize>,
    messages: Vec<Vec<(u32, Within)>>,
}

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let all: Vec<MessageDescriptor> = POOL.all_messages().collect();
    let names: FxHashMap<String, usize> = all
        .iter()
        .enumerate()
        .map(|(at, m)| (m.full_name().to_owned(), at))
        .collect();
    let within = |message: &MessageDescriptor| {
        let fields = message.fields().filter_map(|field| {
            let within = match field.kind() {
                Kind::Message(of) => Within::Message(*names.get(of.full_name())?),
                Kind::String | Kind::Bytes => return None,
                _ if !field.is_list() => return None,
                Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => Within::Fixed(4),
                Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => Within::Fixed(8),
                _ => Within::Varints,
            };
            Some((field.number(), within))
        });
        fields.collect()
    };
    Shapes {
        messages: all.iter().map(within).collect(),
        names,
    }
});

/// Why a message must not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// It exceeds the limit of fields.
    Fields,
    /// It has a group, which none of the message types has; prost would traverse it.
    Group,
}

/// Counts the fields of an encoded message and of all messages in it.
///
/// Each element of a packed list counts as one. If the bytes are malformed, the fields before that
/// position are counted.
///
/// # Errors
/// There are more than `most` fields, or there is a group.
///
/// ```
/// use weir_proto::{budget, p4::v1::Entity, p4::v1::TableEntry, prost::Message};
///
/// let entity = Entity::decode(&[2 << 3 | 2, 4, 2 << 3 | 2, 0, 2 << 3 | 2, 0][..])?;
/// assert_eq!(budget::fields::<Entity>(&entity.encode_to_vec(), 100), Ok(3));
/// assert_eq!(budget::fields::<Entity>(&entity.encode_to_vec(), 2), Err(budget::Excess::Fields));
/// # Ok::<(), weir_proto::prost::DecodeError>(())
/// ```
pub fn fields<M: Name>(bytes: &[u8], most: usize) -> Result<usize, Excess> {
    let mut left = most;
    if let Some(shape) = SHAPES.names.get(&M::full_name()) {
        match count(*shape, bytes, DEPTH, &mut left) {
            Ok(()) | Err(Stop::Broken) => {}
            Err(Stop::Excess(excess)) => return Err(excess),
        }
    }
    Ok(most - left)
}

/// Why counting stops before the end of the message.
enum Stop {
    Excess(Excess),
    /// The bytes are malformed.
    Broken,
}

/// Subtracts the fields of a message from what is left.
fn count(shape: usize, mut bytes: &[u8], depth: usize, left: &mut usize) -> Result<(), Stop> {
    let broken = |_| Stop::Broken;
    let messages = SHAPES.messages.get(shape).ok_or(Stop::Broken)?;
    while bytes.has_remaining() {
        let (tag, wire_type) = decode_key(&mut bytes).map_err(broken)?;
        take(1, left)?;
        match wire_type {
            WireType::LengthDelimited => {
                let length = decode_varint(&mut bytes).map_err(broken)?;
                let length = usize::try_from(length).map_err(|_| Stop::Broken)?;
                let (field, rest) = bytes.split_at_checked(length).ok_or(Stop::Broken)?;
                match messages.iter().find(|(number, _)| *number == tag) {
                    Some((_, Within::Message(shape))) => {
                        count(*shape, field, depth.checked_sub(1).ok_or(Stop::Broken)?, left)?;
                    }
                    // One has been subtracted for the field itself.
                    Some((_, Within::Varints)) => {
                        take(field.iter().filter(|b| **b < 0x80).count().saturating_sub(1), left)?;
                    }
                    Some((_, Within::Fixed(size))) => take((field.len() / size).saturating_sub(1), left)?,
                    None => {}
                }
                bytes = rest;
            }
            WireType::StartGroup | WireType::EndGroup => return Err(Stop::Excess(Excess::Group)),
            _ => skip_field(wire_type, tag, &mut bytes, DecodeContext::default()).map_err(broken)?,
        }
    }
    Ok(())
}

/// Subtracts fields from what is left.
fn take(fields: usize, left: &mut usize) -> Result<(), Stop> {
    *left = left.checked_sub(fields).ok_or(Stop::Excess(Excess::Fields))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfrt_proto as bfrt;
    use crate::p4::config::v1::{P4Info, Table};
    use crate::p4::v1 as p4;
    use prost::Message;

    #[test]
    fn fields_are_counted_at_any_depth() {
        let info = P4Info {
            tables: vec![Table::default(); 9],
            ..P4Info::default()
        };
        let config = p4::ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: vec![0xff; 100],
            cookie: None,
        };
        let bytes = config.encode_to_vec();
        assert_eq!(fields::<p4::ForwardingPipelineConfig>(&bytes, 100), Ok(11));
        assert_eq!(fields::<p4::ForwardingPipelineConfig>(&bytes, 11), Ok(11));
        assert_eq!(fields::<p4::ForwardingPipelineConfig>(&bytes, 10), Err(Excess::Fields));
        assert_eq!(fields::<p4::ForwardingPipelineConfig>(&[], 5), Ok(0));
        let entity = bfrt::Entity {
            entity: Some(bfrt::entity::Entity::TableEntry(bfrt::TableEntry {
                table_id: 7,
                data: Some(bfrt::TableData {
                    action_id: 1,
                    fields: vec![bfrt::DataField::default(); 3],
                }),
                ..bfrt::TableEntry::default()
            })),
        };
        assert_eq!(fields::<bfrt::Entity>(&entity.encode_to_vec(), 100), Ok(7));
    }

    #[test]
    fn each_element_of_a_packed_list_is_a_field() {
        let config = |ids| crate::weir::v1::RoleConfig {
            ids,
            replication: true,
            ..Default::default()
        };
        for (ids, counted) in [(vec![], 1), (vec![7], 2), (vec![1, 1 << 31, 3], 4)] {
            let bytes = config(ids).encode_to_vec();
            assert_eq!(fields::<crate::weir::v1::RoleConfig>(&bytes, 100), Ok(counted));
        }
        let bytes = config(vec![u32::MAX; 100]).encode_to_vec();
        assert_eq!(fields::<crate::weir::v1::RoleConfig>(&bytes, 100), Err(Excess::Fields));
        let flags = bfrt::data_field::BoolArray { val: vec![false; 9] };
        assert_eq!(fields::<bfrt::data_field::BoolArray>(&flags.encode_to_vec(), 9), Ok(9));
    }

    /// An element of P4Data nested in `depth` others.
    fn nested(depth: usize) -> Vec<u8> {
        let mut data = p4::P4Data::default();
        for _ in 0..depth {
            data = p4::P4Data {
                data: Some(p4::p4_data::Data::Tuple(p4::P4StructLike { members: vec![data] })),
            };
        }
        data.encode_to_vec()
    }

    #[test]
    fn what_is_no_message_or_nested_without_end_is_counted_as_far_as_prost_reads_it() {
        assert_eq!(fields::<p4::P4Data>(&nested(20), 100), Ok(40));
        let deep = nested(5000);
        assert!(p4::P4Data::decode(deep.as_slice()).is_err());
        assert!(fields::<p4::P4Data>(&deep, 101).is_ok());
        // A length beyond the end; field number 0; a group.
        for (wrong, counted) in [
            (&[10, 9, 1][..], Ok(1)),
            (&[0, 1], Ok(0)),
            (&[8, 1, 3 << 3 | 3], Err(Excess::Group)),
        ] {
            assert_eq!(fields::<p4::P4Data>(wrong, 100), counted, "{wrong:?}");
        }
    }

    #[test]
    fn all_messages_that_servers_take_are_known() {
        let named = [
            p4::StreamMessageRequest::full_name(),
            p4::Update::full_name(),
            p4::Entity::full_name(),
            p4::ForwardingPipelineConfig::full_name(),
            bfrt::StreamMessageRequest::full_name(),
            bfrt::Update::full_name(),
            bfrt::ForwardingPipelineConfig::full_name(),
            crate::weir::v1::RoleConfig::full_name(),
        ];
        for name in named {
            let shape = SHAPES.names.get(&name).copied();
            let has_messages = shape.is_some_and(|s| !SHAPES.messages[s].is_empty());
            assert!(has_messages, "{name}");
        }
    }
}
