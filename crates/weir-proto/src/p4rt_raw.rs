//! Requests of P4Runtime as a server takes them: their long lists stay bytes.
//!
//! On the wire they are the messages of [`crate::p4::v1`] with the same names. With the feature
//! `server` there is `p4_runtime_server`, the service with these.

use crate::listed::Listed;
use crate::p4::v1 as pb;

/// A `WriteRequest`, each update as it came.
pub type WriteRequest = Listed<pb::WriteRequest, 4>;

/// A `ReadRequest`, each entity as it came.
pub type ReadRequest = Listed<pb::ReadRequest, 2>;

/// A `SetForwardingPipelineConfigRequest`, with the config, in one part or several, as it came.
pub type SetForwardingPipelineConfigRequest = Listed<pb::SetForwardingPipelineConfigRequest, 5>;

/// The service, for servers.
#[cfg(feature = "server")]
#[allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)]
mod service {
    include!(concat!(env!("OUT_DIR"), "/p4.v1.P4Runtime.rs"));
}

#[cfg(feature = "server")]
pub use service::p4_runtime_server;
