//! The RPCs about programs: SetForwardingPipelineConfig and GetForwardingPipelineConfig.
//!
//! A program is compiled and checked before any lock is acquired. Loading it needs the write phase
//! and exclusive access to the programs.

use super::Shared;
use crate::bfrt::program::{self, Program};
use crate::bfrt::{SHARED, errors};
use crate::decoding::{self, ListLimits};
use crate::device::lock;
use crate::p4rt::program::{LoadedProgram, program as compile};
use crate::refusal::Refusal;
use std::sync::Arc;
use tonic::Status;
use weir_compiler::Cancellation;
use weir_extern_api::Registry;
use weir_proto::bfrt_info::BfrtInfo;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use weir_proto::bfrt_raw::SetForwardingPipelineConfigRequest;

/// Executes a SetForwardingPipelineConfig request.
pub async fn set(
    shared: Arc<Shared>,
    request: SetForwardingPipelineConfigRequest,
    cancellation: Cancellation,
) -> Result<pb::SetForwardingPipelineConfigResponse, Status> {
    let set = async {
        ListLimits::program(MAX_CONFIGS, "configs").check(&request.list)?;
        shared.check_device(request.rest.device_id)?;
        let config = decoding::decode_all(request.list, ()).await?;
        let complete = pb::SetForwardingPipelineConfigRequest { config, ..request.rest };
        set_config(&shared, complete, cancellation).await
    };
    set.await.map_err(|e| errors::status(&e))
}

/// The most configs of a request that are decoded. Only one is accepted; up to this number the
/// error states the count.
const MAX_CONFIGS: usize = 16;

async fn set_config(
    shared: &Shared,
    request: pb::SetForwardingPipelineConfigRequest,
    cancellation: Cancellation,
) -> Result<pb::SetForwardingPipelineConfigResponse, Refusal> {
    use pb::SetForwardingPipelineConfigResponseType::{WarmInitFinished, WarmInitStarted};
    let action = Action::try_from(request.action).map_err(|_| Refusal::malformed("there is no such action"))?;
    let answer = |ty: pb::SetForwardingPipelineConfigResponseType| pb::SetForwardingPipelineConfigResponse {
        set_forwarding_pipeline_config_response_type: ty.into(),
    };
    match action {
        Action::Bind => bind(shared, &request)
            .await
            .map(|()| pb::SetForwardingPipelineConfigResponse::default()),
        Action::Verify => {
            verify(shared, &request, cancellation).await?;
            Ok(pb::SetForwardingPipelineConfigResponse::default())
        }
        Action::VerifyAndWarmInitBegin => {
            let loaded = verify(shared, &request, cancellation).await?;
            let _phase = shared.device.phases.join_writes().await;
            let mut pipelines = shared.device.pipelines.write().await;
            shared.device.save(&mut pipelines, loaded)?;
            Ok(answer(WarmInitStarted))
        }
        Action::VerifyAndWarmInitBeginAndEnd => {
            let loaded = verify(shared, &request, cancellation).await?;
            let _phase = shared.device.phases.join_writes().await;
            let mut pipelines = shared.device.pipelines.write().await;
            let fresh = Arc::new(|_: usize, _: &mut weir_switch::Switch| {});
            shared
                .device
                .load(&mut pipelines, loaded, fresh, Arc::default())
                .await?;
            Ok(answer(WarmInitFinished))
        }
        Action::WarmInitEnd | Action::ReconcileAndWarmInitEnd if !request.config.is_empty() => Err(Refusal::malformed(
            "the program is the one that was begun with; leave out the config",
        )),
        // Checked before the write phase is acquired, which would block all other requests.
        Action::WarmInitEnd | Action::ReconcileAndWarmInitEnd
            if shared.device.pipelines.read().await.saved.is_none() =>
        {
            Err(no_warm_init())
        }
        Action::WarmInitEnd => {
            let _phase = shared.device.phases.join_writes().await;
            let mut pipelines = shared.device.pipelines.write().await;
            if pipelines.saved.is_none() {
                return Err(no_warm_init());
            }
            shared.device.commit_saved(&mut pipelines).await?;
            Ok(answer(WarmInitFinished))
        }
        Action::ReconcileAndWarmInitEnd => {
            let _phase = shared.device.phases.join_writes().await;
            let mut pipelines = shared.device.pipelines.write().await;
            let Some(saved) = &pipelines.saved else {
                return Err(no_warm_init());
            };
            let loaded = Arc::clone(&saved.loaded);
            shared.device.reconcile(&mut pipelines, loaded).await?;
            Ok(answer(WarmInitFinished))
        }
    }
}

fn no_warm_init() -> Refusal {
    Refusal::malformed("no warm init was begun")
}

async fn bind(shared: &Shared, request: &pb::SetForwardingPipelineConfigRequest) -> Result<(), Refusal> {
    let [config] = request.config.as_slice() else {
        return Err(Refusal::malformed(format!(
            "BIND takes one config, which says the p4_name; found {}",
            request.config.len()
        )));
    };
    let is_first = {
        let pipelines = shared.device.pipelines.read().await;
        let current = pipelines.current().ok().and_then(|p| p.loaded.bfrt.clone().ok());
        let name = current.as_ref().map(|p| p.name.as_str());
        let clients = lock(&shared.clients);
        // An unknown client is reported before an unknown program.
        clients.require(request.client_id)?;
        if config.p4_name != SHARED && name != Some(config.p4_name.as_str()) {
            return Err(Refusal::not_found(format!("there is no program `{}`", config.p4_name)));
        }
        clients
            .all()
            .all(|c| c.bound.is_none() || !c.notifications.enable_learn_notifications)
    };
    if is_first {
        // The first subscriber does not receive digests from before its binding.
        shared.device.poll_digests().await?;
    }
    lock(&shared.clients).bind(request.client_id, &config.p4_name)
}

/// Compiles and checks the program of a request, outside of the threads that serve requests.
async fn verify(
    shared: &Shared,
    request: &pb::SetForwardingPipelineConfigRequest,
    cancellation: Cancellation,
) -> Result<Arc<LoadedProgram>, Refusal> {
    let [config] = request.config.as_slice() else {
        return Err(Refusal::malformed(format!(
            "the device runs one program; found {} configs",
            request.config.len()
        )));
    };
    if config.p4_name.is_empty() || config.p4_name == SHARED {
        return Err(Refusal::malformed("the p4_name is missing"));
    }
    let config = config.clone();
    let running = {
        let pipelines = shared.device.pipelines.read().await;
        pipelines.committed.as_ref().map(|p| Arc::clone(&p.loaded))
    };
    let externs = shared.device.plane.externs();
    let work = move || load_config(config, running, &externs, &cancellation);
    shared.device.verify(work).await
}

/// Loads the program of a config.
///
/// Hardware receives the output of its own compiler, which weir cannot run. Such a config selects
/// the running program, if that has the same name.
fn load_config(
    config: pb::ForwardingPipelineConfig,
    running: Option<Arc<LoadedProgram>>,
    externs: &Registry,
    cancellation: &Cancellation,
) -> Result<Arc<LoadedProgram>, Refusal> {
    if !config.bfruntime_info.is_empty() {
        let text = std::str::from_utf8(&config.bfruntime_info).ok();
        let parsed = text.map(BfrtInfo::from_json);
        if !matches!(parsed, Some(Ok(_))) {
            return Err(Refusal::malformed("bfruntime_info is no bfrt.json"));
        }
    }
    let binary = config.profiles.first().map_or(&[][..], |p| p.binary.as_ref());
    let is_named = |loaded: &LoadedProgram| loaded.bfrt.as_ref().is_ok_and(|b| b.name == config.p4_name);
    let program = if is_source(binary) {
        compile(binary, None, cancellation)?
    } else if let Some(running) = running.filter(|r| is_named(r)) {
        Arc::clone(&running.program)
    } else {
        return Err(Refusal::malformed(format!(
            "weir runs P4 source, or what `weir build` saves: give one of them as the first profile's binary (the switch does not \
             run `{}`, whose name would do)",
            config.p4_name
        )));
    };
    let mut loaded = LoadedProgram::running(program, &config.p4_name)?;
    crate::standalone::load(&loaded.program, externs)
        .map_err(|e| Refusal::malformed(format!("the program cannot be run: {e}")))?;
    let described = Program::new(&loaded.program, &config.p4_name)?;
    loaded.bfrt = Ok(Arc::new(described.with_profiles(config.profiles)));
    Ok(Arc::new(loaded))
}

/// Whether the bytes are P4 source or a saved weir program.
fn is_source(binary: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(binary) else {
        return false;
    };
    let start = text.trim_start();
    start.starts_with("weir ") || (!start.starts_with('{') && text.contains("main"))
}

/// Returns the current program, its description and that of the device.
pub async fn get(
    shared: &Shared,
    request: pb::GetForwardingPipelineConfigRequest,
) -> Result<pb::GetForwardingPipelineConfigResponse, Refusal> {
    shared.check_device(request.device_id)?;
    let pipelines = shared.device.pipelines.read().await;
    let program = match pipelines.current() {
        Ok(pipeline) => Some(pipeline.loaded.bfrt.clone()?),
        Err(_) => None,
    };
    let device = program.as_ref().map_or_else(program::device_json, |p| p.device());
    Ok(pb::GetForwardingPipelineConfigResponse {
        config: program.iter().map(|p| p.config()).collect(),
        non_p4_config: Some(pb::NonP4Config { bfruntime_info: device }),
    })
}
