//! Requests and answers of BF Runtime whose long lists stay bytes: whoever reads or writes a million entries makes no message of each.
//!
//! On the wire they are the messages of [`crate::bfrt_proto`] with the same names. With the feature `server` there is
//! `bf_runtime_server`, the service with these.

use crate::bfrt_proto::{Error, TargetDevice, write_request};
use prost::bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{DecodeContext, WireType, message, skip_field};
use prost::{DecodeError, Message};

/// A `WriteRequest`, each update as it came.
#[derive(Clone, PartialEq, Message)]
pub struct WriteRequest {
    /// Which part of the device is meant by updates that do not say it themselves.
    #[prost(message, optional, tag = "1")]
    pub target: Option<TargetDevice>,
    /// The client.
    #[prost(uint32, tag = "2")]
    pub client_id: u32,
    /// An encoded [`crate::bfrt_proto::Update`] each.
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub updates: Vec<Bytes>,
    /// What becomes of a batch of which some updates fail.
    #[prost(enumeration = "write_request::Atomicity", tag = "4")]
    pub atomicity: i32,
    /// The program.
    #[prost(string, tag = "5")]
    pub p4_name: String,
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
        assert_eq!(raw.updates[0].as_ref(), update_bytes());

        let entity = pb::Entity {
            entity: Some(pb::entity::Entity::TableUsage(pb::TableUsage::default())),
        };
        let status = Error {
            canonical_code: 5,
            ..Error::default()
        };
        let mut builder = ReadResponseBuilder::default();
        builder.entity(&entity);
        builder.status(&status);
        let read = pb::ReadResponse {
            entities: vec![entity],
            status: vec![status],
        };
        assert_eq!(builder.build().encode_to_vec(), read.encode_to_vec());
    }

    fn update_bytes() -> &'static [u8] {
        &[8, 1]
    }
}
