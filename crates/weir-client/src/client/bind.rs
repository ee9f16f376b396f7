//! BF Runtime: clients are bound to a program.

use crate::error::Error;
use crate::session::Shared;
use prost::Message;
use std::sync::Arc;
use weir_proto::bfrt_proto as pb;

/// Binds the client to its program.
pub async fn bind(shared: &Arc<Shared>) -> Result<(), Error> {
    let program = shared.schema().program.clone();
    let request = pb::SetForwardingPipelineConfigRequest {
        device_id: u32::try_from(shared.options.device_id).unwrap_or(u32::MAX),
        client_id: shared.options.client_id,
        action: pb::set_forwarding_pipeline_config_request::Action::Bind.into(),
        config: vec![pb::ForwardingPipelineConfig {
            p4_name: program,
            ..pb::ForwardingPipelineConfig::default()
        }],
        ..pb::SetForwardingPipelineConfigRequest::default()
    };
    let path = "/bfrt_proto.BfRuntime/SetForwardingPipelineConfig";
    let bound = shared.transport.unary(path, request.encode_to_vec().into()).await;
    bound.map(|_| ()).map_err(|status| Error::rpc("bind", &status))
}
