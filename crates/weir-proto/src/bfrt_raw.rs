//! Requests and responses of BF Runtime whose long lists stay encoded: reading or writing a million
//! entries needs no message per entry.
//!
//! On the wire they are the messages of [`crate::bfrt_proto`] with the same names. The feature
//! `server` adds `bf_runtime_server`, the service with these types.

use crate::bfrt_proto::{self as pb, Error};
use crate::listed::Listed;
use prost::bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{DecodeContext, WireType, message, skip_field};
use prost::{DecodeError, Message};

/// A `WriteRequest`, whose updates stay encoded.
pub type WriteRequest = Listed<pb::WriteRequest, 3>;

/// A `ReadRequest`, whose entities stay encoded.
pub type ReadRequest = Listed<pb::ReadRequest, 3>;

/// A `SetForwardingPipelineConfigRequest`, whose configs stay encoded.
pub type SetForwardingPipelineConfigRequest = Listed<pb::SetForwardingPipelineConfigRequest, 6>;

/// A `ReadResponse`, encoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadResponse(Bytes);

/// Builds a [`ReadResponse`].
#[derive(Debug, Default)]
pub struct ReadResponseBuilder(BytesMut);

impl ReadResponseBuilder {
    /// Adds an entity.
    pub fn entity(&mut self, entity: &pb::Entity) {
        message::encode(1, entity, &mut self.0);
    }

    /// Adds entities that are encoded already, each as field `1` of the response.
    pub fn entities(&mut self, encoded: BytesMut) {
        if self.0.is_empty() {
            self.0 = encoded;
        } else {
            self.0.extend_from_slice(&encoded);
        }
    }

    /// Adds the status of an entity of the request.
    pub fn status(&mut self, status: &Error) {
        message::encode(2, status, &mut self.0);
    }

    /// The number of bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
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
        // Servers only encode it.
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

    #[test]
    fn an_answer_is_the_same_message_on_the_wire() {
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
}
