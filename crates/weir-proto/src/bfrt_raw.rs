//! Requests and answers of BF Runtime whose long lists stay bytes: whoever reads or writes a million entries makes no message of each.
//!
//! On the wire they are the messages of [`crate::bfrt_proto`] with the same names. With the feature `server` there is
//! `bf_runtime_server`, the service with these.

use crate::bfrt_proto::{Error, TargetDevice};
use prost::bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{
    DecodeContext, WireType, bytes, check_wire_type, decode_key, decode_varint, encode_key, encode_varint,
    encoded_len_varint, int32, key_len, message, skip_field, string, uint32,
};
use prost::{DecodeError, Message};
use std::ops::Range;

/// A `WriteRequest`, each update as it came.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WriteRequest {
    /// Which part of the device is meant by updates that do not say it themselves.
    pub target: Option<TargetDevice>,
    /// The client.
    pub client_id: u32,
    /// The updates.
    pub updates: Updates,
    /// What becomes of a batch of which some updates fail.
    pub atomicity: i32,
    /// The program.
    pub p4_name: String,
}

/// Encoded [`crate::bfrt_proto::Update`]s within the message that they came in: none is copied, or counted by itself as part of it.
#[derive(Debug, Clone, Default)]
pub struct Updates {
    message: Bytes,
    /// Where each begins, and its length. Messages have less than 4 GiB.
    places: Vec<(u32, u32)>,
}

impl Updates {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.within(0..self.len())
    }

    /// Those with these numbers, as far as there are such.
    pub fn within(&self, numbers: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let end = numbers.end.min(self.len());
        let places = self.places.get(numbers.start..end).unwrap_or_default();
        places
            .iter()
            .map(|(start, length)| &self.message[*start as usize..][..*length as usize])
    }

    /// One of them as bytes that keep the message.
    #[must_use]
    pub fn bytes(&self, update: &[u8]) -> Bytes {
        self.message.slice_ref(update)
    }

    /// Takes all that a whole message has.
    fn take(&mut self, message: Bytes, places: Vec<(u32, u32)>) {
        if self.is_empty() {
            *self = Updates { message, places };
            return;
        }
        let mut all = BytesMut::new();
        let mut joined = Vec::with_capacity(self.len() + places.len());
        let taken = Updates { message, places };
        for update in self.iter().chain(taken.iter()) {
            joined.push((all.len() as u32, update.len() as u32));
            all.extend_from_slice(update);
        }
        *self = Updates {
            message: all.freeze(),
            places: joined,
        };
    }
}

impl PartialEq for Updates {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// Numbers of the fields.
const TARGET: u32 = 1;
const CLIENT_ID: u32 = 2;
const UPDATES: u32 = 3;
const ATOMICITY: u32 = 4;
const P4_NAME: u32 = 5;

impl Message for WriteRequest {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        if let Some(target) = &self.target {
            message::encode(TARGET, target, buf);
        }
        if self.client_id != 0 {
            uint32::encode(CLIENT_ID, &self.client_id, buf);
        }
        for update in self.updates.iter() {
            encode_key(UPDATES, WireType::LengthDelimited, buf);
            encode_varint(update.len() as u64, buf);
            buf.put_slice(update);
        }
        if self.atomicity != 0 {
            int32::encode(ATOMICITY, &self.atomicity, buf);
        }
        if !self.p4_name.is_empty() {
            string::encode(P4_NAME, &self.p4_name, buf);
        }
    }

    fn merge(&mut self, mut buf: impl Buf) -> Result<(), DecodeError> {
        let message = buf.copy_to_bytes(buf.remaining());
        let mut rest: &[u8] = &message;
        let mut places = Vec::new();
        while !rest.is_empty() {
            let (tag, wire_type) = decode_key(&mut rest)?;
            if tag != UPDATES {
                self.merge_field(tag, wire_type, &mut rest, DecodeContext::default())?;
                continue;
            }
            check_wire_type(WireType::LengthDelimited, wire_type)?;
            let length = decode_varint(&mut { rest })?;
            skip_field(wire_type, tag, &mut rest, DecodeContext::default())?;
            let end = message.len() - rest.len();
            places.push(((end - length as usize) as u32, length as u32));
        }
        self.updates.take(message, places);
        Ok(())
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            TARGET => message::merge(wire_type, self.target.get_or_insert_with(Default::default), buf, ctx),
            CLIENT_ID => uint32::merge(wire_type, &mut self.client_id, buf, ctx),
            UPDATES => {
                let mut update = Bytes::new();
                bytes::merge(wire_type, &mut update, buf, ctx)?;
                let length = update.len() as u32;
                self.updates.take(update, vec![(0, length)]);
                Ok(())
            }
            ATOMICITY => int32::merge(wire_type, &mut self.atomicity, buf, ctx),
            P4_NAME => string::merge(wire_type, &mut self.p4_name, buf, ctx),
            _ => skip_field(wire_type, tag, buf, ctx),
        }
    }

    fn encoded_len(&self) -> usize {
        let lengths = self.updates.places.iter().map(|(_, length)| *length as usize);
        let updates: usize = lengths
            .map(|n| key_len(UPDATES) + encoded_len_varint(n as u64) + n)
            .sum();
        let target = self.target.as_ref().map_or(0, |t| message::encoded_len(TARGET, t));
        let of = |is_there: bool, length: usize| if is_there { length } else { 0 };
        updates
            + target
            + of(self.client_id != 0, uint32::encoded_len(CLIENT_ID, &self.client_id))
            + of(self.atomicity != 0, int32::encoded_len(ATOMICITY, &self.atomicity))
            + of(!self.p4_name.is_empty(), string::encoded_len(P4_NAME, &self.p4_name))
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A `ReadResponse`, encoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadResponse(Bytes);

/// A [`ReadResponse`] that is being put together.
#[derive(Debug, Default)]
pub struct ReadResponseBuilder(BytesMut);

impl ReadResponseBuilder {
    /// Adds an entity.
    pub fn entity(&mut self, entity: &crate::bfrt_proto::Entity) {
        message::encode(1, entity, &mut self.0);
    }

    /// Adds entities that are encoded already, each as a field `1` of the response.
    pub fn entities(&mut self, encoded: BytesMut) {
        if self.0.is_empty() {
            self.0 = encoded;
        } else {
            self.0.extend_from_slice(&encoded);
        }
    }

    /// Adds what became of an entity of the request.
    pub fn status(&mut self, status: &Error) {
        message::encode(2, status, &mut self.0);
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The response.
    #[must_use]
    pub fn build(self) -> ReadResponse {
        ReadResponse(self.0.freeze())
    }
}

impl Message for ReadResponse {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        // Servers only write it.
        skip_field(wire_type, tag, buf, ctx)
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The service, for servers.
#[cfg(feature = "server")]
#[allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)]
mod service {
    include!(concat!(env!("OUT_DIR"), "/bfrt_proto.BfRuntime.rs"));
}

#[cfg(feature = "server")]
pub use service::bf_runtime_server;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfrt_proto as pb;

    #[test]
    fn they_are_the_same_messages_on_the_wire() {
        let update = pb::Update {
            r#type: 1,
            entity: None,
        };
        let whole = pb::WriteRequest {
            client_id: 7,
            updates: vec![update, pb::Update::default()],
            atomicity: 2,
            p4_name: "p".to_owned(),
            target: Some(TargetDevice::default()),
        };
        let raw = WriteRequest::decode(whole.encode_to_vec().as_slice()).unwrap();
        assert_eq!(raw.encode_to_vec(), whole.encode_to_vec());
        assert_eq!(raw.encoded_len(), whole.encoded_len());
        let updates: Vec<&[u8]> = raw.updates.iter().collect();
        assert_eq!(updates, [&[8, 1][..], &[]]);
        assert_eq!(raw.updates.within(1..9).count(), 1);
        assert_eq!(raw.updates.bytes(updates[0]).as_ref(), [8, 1]);

        let entity = pb::Entity {
            entity: Some(pb::entity::Entity::TableUsage(pb::TableUsage::default())),
        };
        let status = Error {
            canonical_code: 5,
            ..Error::default()
        };
        let mut builder = ReadResponseBuilder::default();
        builder.entity(&entity);
        let mut encoded = BytesMut::new();
        message::encode(1, &entity, &mut encoded);
        builder.entities(encoded.clone());
        builder.status(&status);
        let mut of_encoded = ReadResponseBuilder::default();
        of_encoded.entities(encoded.clone());
        assert_eq!(of_encoded.build().encode_to_vec(), encoded);
        let read = pb::ReadResponse {
            entities: vec![entity.clone(), entity],
            status: vec![status],
        };
        assert_eq!(builder.build().encode_to_vec(), read.encode_to_vec());
    }

    #[test]
    fn messages_in_parts_are_one_and_broken_ones_are_refused() {
        let update = |ty| pb::Update {
            r#type: ty,
            entity: None,
        };
        let part = |client_id, types: &[i32]| pb::WriteRequest {
            client_id,
            updates: types.iter().map(|ty| update(*ty)).collect(),
            ..pb::WriteRequest::default()
        };
        let mut raw = WriteRequest::decode(part(1, &[1, 2]).encode_to_vec().as_slice()).unwrap();
        raw.merge(part(2, &[3]).encode_to_vec().as_slice()).unwrap();
        assert_eq!(raw.encode_to_vec(), part(2, &[1, 2, 3]).encode_to_vec());

        let whole = part(7, &[1, 2]).encode_to_vec();
        for length in 0..whole.len() {
            let (raw, known) = (
                WriteRequest::decode(&whole[..length]),
                pb::WriteRequest::decode(&whole[..length]),
            );
            assert_eq!(raw.is_ok(), known.is_ok(), "{length}");
        }
        // An update that is a number, and one that is longer than everything.
        for wrong in [
            &[3 << 3, 1][..],
            &[3 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            assert!(WriteRequest::decode(wrong).is_err());
        }
    }
}
