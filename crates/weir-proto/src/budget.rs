//! How much a message is, told from its bytes before anything is made of it.
//!
//! A field of two bytes may become hundreds in memory. Whoever takes messages from anybody counts their fields first, and takes no more
//! than make sense.

use crate::POOL;
use prost::Name;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_reflect::{Kind, MessageDescriptor};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Messages within messages that are looked into; prost refuses more.
const DEPTH: usize = 100;

/// For each message of ours, the fields that are messages.
struct Shapes {
    names: FxHashMap<String, usize>,
    /// The number of a field and the place of its message here.
    messages: Vec<Vec<(u32, usize)>>,
}

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let all: Vec<MessageDescriptor> = POOL.all_messages().collect();
    let names: FxHashMap<String, usize> = all
        .iter()
        .enumerate()
        .map(|(at, m)| (m.full_name().to_owned(), at))
        .collect();
    let within = |message: &MessageDescriptor| {
        let fields = message.fields().filter_map(|field| match field.kind() {
            Kind::Message(of) => Some((field.number(), *names.get(of.full_name())?)),
            _ => None,
        });
        fields.collect()
    };
    Shapes {
        messages: all.iter().map(within).collect(),
        names,
    }
});

/// Fields of an encoded message and of all messages in it, at most one more than `most`.
///
/// Elements of a packed list are no fields of their own. Where the bytes are no such message, those before that are counted.
///
/// ```
/// use weir_proto::{budget, p4::v1::Entity, p4::v1::TableEntry, prost::Message};
///
/// let entity = Entity::decode(&[2 << 3 | 2, 4, 2 << 3 | 2, 0, 2 << 3 | 2, 0][..])?;
/// assert_eq!(budget::fields::<Entity>(&entity.encode_to_vec(), 100), 3);
/// # Ok::<(), weir_proto::prost::DecodeError>(())
/// ```
#[must_use]
pub fn fields<M: Name>(bytes: &[u8], most: usize) -> usize {
    let mut left = most + 1;
    if let Some(shape) = SHAPES.names.get(&M::full_name()) {
        let _ = count(*shape, bytes, DEPTH, &mut left);
    }
    most + 1 - left
}

/// Takes the fields of a message off what is left; `None`: there is no more to count.
fn count(shape: usize, mut bytes: &[u8], depth: usize, left: &mut usize) -> Option<()> {
    let messages = SHAPES.messages.get(shape)?;
    while bytes.has_remaining() {
        let (tag, wire_type) = decode_key(&mut bytes).ok()?;
        *left = left.checked_sub(1)?;
        if *left == 0 {
            return None;
        }
        let within = messages.iter().find(|(number, _)| *number == tag);
        match (wire_type, within) {
            (WireType::LengthDelimited, within) => {
                let length = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
                let (message, rest) = bytes.split_at_checked(length)?;
                if let Some((_, shape)) = within {
                    count(*shape, message, depth.checked_sub(1)?, left)?;
                }
                bytes = rest;
            }
            // None of our messages has groups, and prost walks through them.
            (WireType::StartGroup | WireType::EndGroup, _) => {
                *left = 0;
                return None;
            }
            _ => skip_field(wire_type, tag, &mut bytes, DecodeContext::default()).ok()?,
        }
    }
    Some(())
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
        assert_eq!(fields::<p4::ForwardingPipelineConfig>(&bytes, 100), 11);
        assert_eq!(fields::<p4::ForwardingPipelineConfig>(&bytes, 11), 11);
        assert_eq!(fields::<p4::ForwardingPipelineConfig>(&bytes, 5), 6);
        assert_eq!(fields::<p4::ForwardingPipelineConfig>(&[], 5), 0);
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
        assert_eq!(fields::<bfrt::Entity>(&entity.encode_to_vec(), 100), 7);
    }

    /// An element of P4Data within as many others.
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
        assert_eq!(fields::<p4::P4Data>(&nested(20), 100), 40);
        let deep = nested(5000);
        assert!(p4::P4Data::decode(deep.as_slice()).is_err());
        assert!(fields::<p4::P4Data>(&deep, 1 << 20) <= 101);
        // A length beyond the end; a field of no number; a group.
        for (wrong, counted) in [(&[10, 9, 1][..], 1), (&[0, 1], 0), (&[8, 1, 3 << 3 | 3], 101)] {
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
