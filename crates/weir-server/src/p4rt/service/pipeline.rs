//! The RPCs about forwarding pipeline configs.

use super::{Shared, lock};
use crate::decoding::{self, ListLimits};
use crate::p4rt::arbitration::role_name;
use crate::p4rt::program::LoadedProgram;
use crate::p4rt::refusal::Refusal;
use std::sync::Arc;
use tonic::Status;
use weir_compiler::Cancellation;
use weir_proto::listed::EncodedList;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use weir_proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use weir_proto::p4rt_raw::SetForwardingPipelineConfigRequest;

/// Handles a SetForwardingPipelineConfig request; `cancellation` ends its compilation.
pub async fn set(
    shared: Arc<Shared>,
    request: SetForwardingPipelineConfigRequest,
    cancellation: Cancellation,
) -> Result<(), Status> {
    set_config(&shared, request, cancellation).await.map_err(|e| e.status())
}

/// Parts of a config, which are joined. Encoders write one.
const MOST_PARTS: usize = 1024;

async fn set_config(
    shared: &Shared,
    request: SetForwardingPipelineConfigRequest,
    cancellation: Cancellation,
) -> Result<(), Refusal> {
    let SetForwardingPipelineConfigRequest {
        rest: request,
        list: config,
    } = request;
    ListLimits::program(MOST_PARTS, "parts of the config").check(&config)?;
    shared.check_device(request.device_id)?;
    let role = role_name(&request.role, request.role_id);
    let election = request.election_id;
    let check = || lock(&shared.arbitration).check(&role, election.as_ref());
    check()?.check_pipeline()?;
    let action = Action::try_from(request.action).unwrap_or(Action::Unspecified);
    match action {
        Action::Unspecified => {
            return Err(Refusal::malformed(
                "the request has no action; use VERIFY_AND_COMMIT or another",
            ));
        }
        Action::Commit if !config.is_empty() => {
            return Err(Refusal::malformed("COMMIT takes what was saved; leave out the config"));
        }
        Action::Commit => {
            let _phase = shared.device.phases.join_writes().await;
            let mut pipelines = shared.device.pipelines.write().await;
            check()?;
            let digests = shared.device.commit_saved(&mut pipelines).await?;
            configure(shared, &digests);
            return Ok(());
        }
        _ => {}
    }
    let loaded = verify(shared, config, cancellation).await?;
    if action == Action::Verify {
        return Ok(());
    }
    let _phase = shared.device.phases.join_writes().await;
    let mut pipelines = shared.device.pipelines.write().await;
    check()?;
    match action {
        Action::VerifyAndSave => shared.device.save(&mut pipelines, loaded),
        Action::ReconcileAndCommit => {
            let digests = shared.device.reconcile(&mut pipelines, loaded).await?;
            configure(shared, &digests);
            Ok(())
        }
        _ => {
            let fresh = Arc::new(|_: usize, _: &mut weir_switch::Switch| {});
            shared.device.load(&mut pipelines, loaded, fresh, Arc::default()).await
        }
    }
}

/// Compiles and checks a config, not on the threads that serve everybody.
async fn verify(
    shared: &Shared,
    config: EncodedList,
    cancellation: Cancellation,
) -> Result<Arc<LoadedProgram>, Refusal> {
    let running = {
        let pipelines = shared.device.pipelines.read().await;
        pipelines.committed.as_ref().map(|p| Arc::clone(&p.loaded))
    };
    let externs = shared.device.plane.externs();
    let work = move || {
        let config = decoding::decode_joined(&config)?;
        LoadedProgram::of_config(config, running.as_deref(), &externs, &cancellation).map(Arc::new)
    };
    shared.device.verify(work).await
}

/// The switch runs another program: these digests are sent from now on.
fn configure(shared: &Shared, digests: &crate::p4rt::read::Digests) {
    let mut machine = lock(&shared.digests);
    machine.forget();
    machine.configure(digests);
}

/// Executes GetForwardingPipelineConfig.
pub async fn get(
    shared: &Shared,
    request: pb::GetForwardingPipelineConfigRequest,
) -> Result<pb::GetForwardingPipelineConfigResponse, Refusal> {
    shared.check_device(request.device_id)?;
    let response_type = ResponseType::try_from(request.response_type)
        .map_err(|_| Refusal::malformed("there is no such response_type"))?;
    let pipelines = shared.device.pipelines.read().await;
    let Some(committed) = &pipelines.committed else {
        return Ok(pb::GetForwardingPipelineConfigResponse { config: None });
    };
    let whole = &committed.loaded.config;
    let with_info = matches!(response_type, ResponseType::All | ResponseType::P4infoAndCookie);
    let with_program = matches!(response_type, ResponseType::All | ResponseType::DeviceConfigAndCookie);
    let config = pb::ForwardingPipelineConfig {
        p4info: whole.p4info.clone().filter(|_| with_info),
        p4_device_config: match with_program {
            true => whole.p4_device_config.clone(),
            false => Vec::new(),
        },
        cookie: whole.cookie,
    };
    Ok(pb::GetForwardingPipelineConfigResponse { config: Some(config) })
}
