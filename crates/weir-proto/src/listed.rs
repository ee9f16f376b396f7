//! Requests whose one long list stays encoded, so that a million updates can be read or refused
//! without decoding them all first.
//!
//! A message of two bytes takes some two hundred as a Rust value. A request that is small on the
//! wire could exhaust the memory and block its thread for seconds, before its element count or its
//! sender could be checked.

use prost::bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{
    DecodeContext, WireType, bytes, check_wire_type, decode_key, decode_varint, encode_key, encode_varint,
    encoded_len_varint, key_len, skip_field,
};
use prost::{DecodeError, Message};
use std::ops::Range;

/// A message `T` whose repeated field with this number is in [`Listed::list`], encoded, and not in
/// [`Listed::rest`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listed<T, const FIELD: u32> {
    /// All other fields.
    pub rest: T,
    /// The elements. If there is an [`EncodedList::excess`], neither they nor the rest are
    /// complete.
    pub list: EncodedList,
}

/// The exceeded limit, at which reading a message stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// More than [`EncodedList::MAX_ELEMENTS`] elements.
    Elements,
    /// Other fields take more than [`EncodedList::MAX_OTHER_BYTES`] bytes.
    OtherFields,
    /// There is a group, which none of the message types has.
    Group,
}

/// Encoded elements as ranges of the message in which they were received: none is copied or
/// reference-counted by itself.
#[derive(Debug, Clone, Default)]
pub struct EncodedList {
    message: Bytes,
    /// Offset and length of each. Messages have less than 4 GiB.
    places: Vec<(u32, u32)>,
    excess: Option<Excess>,
}

impl EncodedList {
    /// The most elements that are read; a message with more has one more than this.
    pub const MAX_ELEMENTS: usize = 1 << 23;

    /// The most bytes of all other fields of a message. They name a device, a role and a target,
    /// and are decoded when they are received.
    pub const MAX_OTHER_BYTES: usize = 64 << 10;

    /// The exceeded limit, if any.
    #[must_use]
    pub fn excess(&self) -> Option<Excess> {
        self.excess
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of the longest element.
    #[must_use]
    pub fn max_element_len(&self) -> usize {
        self.places
            .iter()
            .map(|(_, length)| *length as usize)
            .max()
            .unwrap_or(0)
    }

    /// Bytes of the message that contains them.
    #[must_use]
    pub fn message_len(&self) -> usize {
        self.message.len()
    }

    /// All elements in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.within(0..self.len())
    }

    /// The elements in a range of indexes, clipped to the list.
    pub fn within(&self, numbers: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let end = numbers.end.min(self.len());
        let places = self.places.get(numbers.start..end).unwrap_or_default();
        places
            .iter()
            .map(|(start, length)| &self.message[*start as usize..][..*length as usize])
    }

    /// An element as a slice that keeps the message alive.
    #[must_use]
    pub fn bytes(&self, element: &[u8]) -> Bytes {
        self.message.slice_ref(element)
    }

    /// Merges all elements to one message; `None` if the list is empty.
    ///
    /// # Errors
    /// An element is malformed.
    pub fn join<M: Message + Default>(&self) -> Result<Option<M>, DecodeError> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut joined = M::default();
        self.iter().try_for_each(|part| joined.merge(part))?;
        Ok(Some(joined))
    }

    /// Appends the elements of another part of the message.
    fn take(&mut self, taken: EncodedList) {
        if self.is_empty() {
            let excess = self.excess.or(taken.excess);
            *self = EncodedList { excess, ..taken };
            return;
        }
        let mut all = BytesMut::new();
        let mut joined = Vec::with_capacity(self.len() + taken.len());
        for element in self.iter().chain(taken.iter()) {
            joined.push((all.len() as u32, element.len() as u32));
            all.extend_from_slice(element);
        }
        *self = EncodedList {
            message: all.freeze(),
            places: joined,
            excess: self.excess.or(taken.excess),
        };
    }
}

impl PartialEq for EncodedList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Message + Default, const FIELD: u32> Message for Listed<T, FIELD> {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.rest.encode_raw(buf);
        for element in self.list.iter() {
            encode_key(FIELD, WireType::LengthDelimited, buf);
            encode_varint(element.len() as u64, buf);
            buf.put_slice(element);
        }
    }

    fn merge(&mut self, mut buf: impl Buf) -> Result<(), DecodeError> {
        let message = buf.copy_to_bytes(buf.remaining());
        let mut rest: &[u8] = &message;
        let (mut places, mut others, mut excess) = (Vec::new(), 0, None);
        while !rest.is_empty() && excess.is_none() {
            let before = rest.len();
            let (tag, wire_type) = decode_key(&mut rest)?;
            if matches!(wire_type, WireType::StartGroup | WireType::EndGroup) {
                excess = Some(Excess::Group);
            } else if tag != FIELD {
                let mut field = rest;
                skip_field(wire_type, tag, &mut rest, DecodeContext::default())?;
                others += before - rest.len();
                match others > EncodedList::MAX_OTHER_BYTES {
                    true => excess = Some(Excess::OtherFields),
                    false => self
                        .rest
                        .merge_field(tag, wire_type, &mut field, DecodeContext::default())?,
                }
            } else {
                check_wire_type(WireType::LengthDelimited, wire_type)?;
                let length = decode_varint(&mut { rest })?;
                skip_field(wire_type, tag, &mut rest, DecodeContext::default())?;
                let end = message.len() - rest.len();
                places.push(((end - length as usize) as u32, length as u32));
                excess = (places.len() > EncodedList::MAX_ELEMENTS).then_some(Excess::Elements);
            }
        }
        self.list.take(EncodedList {
            message,
            places,
            excess,
        });
        Ok(())
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != FIELD {
            return self.rest.merge_field(tag, wire_type, buf, ctx);
        }
        let mut element = Bytes::new();
        bytes::merge(wire_type, &mut element, buf, ctx)?;
        let places = vec![(0, element.len() as u32)];
        self.list.take(EncodedList {
            message: element,
            places,
            excess: None,
        });
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        let lengths = self.list.places.iter().map(|(_, length)| *length as usize);
        let list: usize = lengths.map(|n| key_len(FIELD) + encoded_len_varint(n as u64) + n).sum();
        self.rest.encoded_len() + list
    }

    fn clear(&mut self) {
        self.rest.clear();
        self.list = EncodedList::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfrt_proto as pb;

    type WriteRequest = Listed<pb::WriteRequest, 3>;

    fn updates(types: &[i32]) -> Vec<pb::Update> {
        let update = |ty: &i32| pb::Update {
            r#type: *ty,
            entity: None,
        };
        types.iter().map(update).collect()
    }

    #[test]
    fn it_is_the_same_message_on_the_wire() {
        let whole = pb::WriteRequest {
            client_id: 7,
            updates: updates(&[1, 0]),
            atomicity: 2,
            p4_name: "p".to_owned(),
            target: Some(pb::TargetDevice::default()),
        };
        let listed = WriteRequest::decode(whole.encode_to_vec().as_slice()).unwrap();
        let encoded = listed.encode_to_vec();
        assert_eq!(pb::WriteRequest::decode(encoded.as_slice()).unwrap(), whole);
        assert_eq!(listed.encoded_len(), encoded.len());
        assert!(listed.rest.updates.is_empty() && listed.rest.p4_name == "p");
        let elements: Vec<&[u8]> = listed.list.iter().collect();
        assert_eq!(elements, [&[8, 1][..], &[]]);
        assert_eq!(listed.list.within(1..9).count(), 1);
        assert_eq!(listed.list.bytes(elements[0]).as_ref(), [8, 1]);
        assert_eq!(
            (listed.list.max_element_len(), listed.list.message_len()),
            (2, encoded.len())
        );
    }

    #[test]
    fn messages_in_parts_are_one_and_broken_ones_are_refused() {
        let part = |client_id, types: &[i32]| pb::WriteRequest {
            client_id,
            updates: updates(types),
            ..pb::WriteRequest::default()
        };
        let mut listed = WriteRequest::decode(part(1, &[1, 2]).encode_to_vec().as_slice()).unwrap();
        listed.merge(part(2, &[3]).encode_to_vec().as_slice()).unwrap();
        let joined = pb::WriteRequest::decode(listed.encode_to_vec().as_slice());
        assert_eq!(joined.unwrap(), part(2, &[1, 2, 3]));
        assert_eq!(listed.list.join::<pb::Update>().unwrap(), updates(&[3]).pop());
        assert_eq!(EncodedList::default().join::<pb::Update>(), Ok(None));

        let whole = part(7, &[1, 2]).encode_to_vec();
        for length in 0..whole.len() {
            let (listed, known) = (
                WriteRequest::decode(&whole[..length]),
                pb::WriteRequest::decode(&whole[..length]),
            );
            assert_eq!(listed.is_ok(), known.is_ok(), "{length}");
        }
        // An update encoded as a number, and one longer than the message.
        for wrong in [
            &[3 << 3, 1][..],
            &[3 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            assert!(WriteRequest::decode(wrong).is_err());
        }
    }

    #[test]
    fn of_too_many_elements_no_more_are_looked_for() {
        let mut wire = [3 << 3 | 2, 0].repeat(EncodedList::MAX_ELEMENTS + 9);
        wire.push(0xff);
        let listed = WriteRequest::decode(wire.as_slice()).unwrap();
        assert_eq!(listed.list.len(), EncodedList::MAX_ELEMENTS + 1);
        assert_eq!(listed.list.excess(), Some(Excess::Elements));
    }

    /// The name of the message type, and the number of its list field.
    fn list_of<T: prost::Name, const FIELD: u32>(_: &Listed<T, FIELD>) -> (String, u32) {
        (T::full_name(), FIELD)
    }

    #[test]
    fn lists_have_the_numbers_of_the_proto_files() {
        use crate::{bfrt_raw, p4rt_raw};
        for ((message, number), field) in [
            (list_of(&p4rt_raw::WriteRequest::default()), "updates"),
            (list_of(&p4rt_raw::ReadRequest::default()), "entities"),
            (
                list_of(&p4rt_raw::SetForwardingPipelineConfigRequest::default()),
                "config",
            ),
            (list_of(&bfrt_raw::WriteRequest::default()), "updates"),
            (list_of(&bfrt_raw::ReadRequest::default()), "entities"),
            (
                list_of(&bfrt_raw::SetForwardingPipelineConfigRequest::default()),
                "config",
            ),
        ] {
            let described = crate::POOL.get_message_by_name(&message).unwrap();
            assert_eq!(
                described.get_field_by_name(field).unwrap().number(),
                number,
                "{message}"
            );
        }
    }

    #[test]
    fn of_too_many_other_fields_no_more_are_looked_for() {
        // An unknown field; a message field that is merged each time; a group; a long field.
        let long = [vec![5 << 3 | 2, 0xff, 0xff, 0x7f], vec![7; (1 << 21) - 1]].concat();
        for (others, excess) in [
            ([9 << 3, 1].repeat(40_000), Excess::OtherFields),
            ([10, 0].repeat(40_000), Excess::OtherFields),
            (vec![9 << 3 | 3, 9 << 3 | 4], Excess::Group),
            (long, Excess::OtherFields),
        ] {
            let wire = [&others[..], &[3 << 3 | 2, 0, 0xff]].concat();
            let listed = WriteRequest::decode(wire.as_slice()).unwrap();
            assert_eq!(listed.list.excess(), Some(excess));
            assert!(listed.list.is_empty() && listed.rest.p4_name.is_empty());
        }
        let few = [[9 << 3, 1].repeat(30_000), vec![3 << 3 | 2, 0]].concat();
        let listed = WriteRequest::decode(few.as_slice()).unwrap();
        assert_eq!((listed.list.len(), listed.list.excess()), (1, None));
    }
}
