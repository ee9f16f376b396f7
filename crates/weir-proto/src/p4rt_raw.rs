//! Requests of P4Runtime as a server reads them: their long lists stay encoded.
//!
//! On the wire they are the messages of [`crate::p4::v1`] with the same names. The feature `server`
//! adds `p4_runtime_server`, the service with these types.

use crate::listed::Listed;
use crate::p4::v1 as pb;

/// A `WriteRequest`, whose updates stay encoded.
pub type WriteRequest = Listed<pb::WriteRequest, 4>;

/// A `ReadRequest`, whose entities stay encoded.
pub type ReadRequest = Listed<pb::ReadRequest, 2>;

/// A `SetForwardingPipelineConfigRequest`, whose config stays encoded, in one part or several.
pub type SetForwardingPipelineConfigRequest = Listed<pb::SetForwardingPipelineConfigRequest, 5>;

/// The service, for servers.
#[cfg(feature = "server")]
#[allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)]
mod service {
    include!(concat!(env!("OUT_DIR"), "/p4.v1.P4Runtime.rs"));
}

#[cfg(feature = "server")]
pub use service::p4_runtime_server;
