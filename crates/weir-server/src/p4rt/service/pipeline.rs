//! The RPCs about forwarding pipeline configs.

use super::{Pipeline, Pipelines, Shared, lock};
use crate::dataplane::{DataPlane, LoadFailure, Order};
use crate::p4rt::arbitration::role_name;
use crate::p4rt::program::Loaded;
use crate::p4rt::refusal::Refusal;
use crate::p4rt::transfer::{self, Transfer};
use crate::standalone::{Clock, Standalone};
use std::sync::Arc;
use tonic::Status;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use weir_proto::p4::v1::set_forwarding_pipeline_config_request::Action;

/// Does what a request asks for.
pub async fn set(shared: Arc<Shared>, request: pb::SetForwardingPipelineConfigRequest) -> Result<(), Status> {
    set_config(&shared, request).await.map_err(|e| e.status())
}

async fn set_config(shared: &Shared, request: pb::SetForwardingPipelineConfigRequest) -> Result<(), Refusal> {
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
        Action::Commit if request.config.is_some() => {
            return Err(Refusal::malformed("COMMIT takes what was saved; leave out the config"));
        }
        Action::Commit => {
            let mut pipelines = shared.pipelines.write().await;
            check()?;
            return commit_saved(shared, &mut pipelines).await;
        }
        _ => {}
    }
    let loaded = verify(shared, request.config).await?;
    if action == Action::Verify {
        return Ok(());
    }
    let mut pipelines = shared.pipelines.write().await;
    check()?;
    match action {
        Action::VerifyAndSave => save(shared, &mut pipelines, loaded),
        Action::ReconcileAndCommit => reconcile(shared, &mut pipelines, loaded).await,
        _ => commit(shared, &mut pipelines, loaded, Arc::new(|_, _| {}), Arc::default()).await,
    }
}

/// Compiles and checks a config, not on the threads that serve everybody.
async fn verify(shared: &Shared, config: Option<pb::ForwardingPipelineConfig>) -> Result<Arc<Loaded>, Refusal> {
    let running = {
        let pipelines = shared.pipelines.read().await;
        pipelines.committed.as_ref().map(|p| Arc::clone(&p.loaded))
    };
    let work = move || Loaded::of_config(config, running.as_deref());
    let verified = tokio::task::spawn_blocking(work).await;
    let verified =
        verified.map_err(|_| Refusal::malformed("the program cannot be compiled: it meets a mistake in weir"))?;
    verified.map(Arc::new)
}

/// From now on the program is written and read on a switch without packets.
fn save(shared: &Shared, pipelines: &mut Pipelines, loaded: Arc<Loaded>) -> Result<(), Refusal> {
    let standalone = Standalone::new(Arc::clone(&loaded.program), None, Clock::real())
        .map_err(|e| Refusal::malformed(format!("the program cannot be run: {e}")))?;
    let plane: Arc<dyn DataPlane> = Arc::new(standalone);
    *lock(&shared.written) = Arc::clone(&plane);
    pipelines.saved = Some(Pipeline {
        plane,
        loaded,
        digests: Arc::default(),
    });
    Ok(())
}

/// Has the switch run a program whose state is made by `prepare`.
async fn commit(
    shared: &Shared,
    pipelines: &mut Pipelines,
    loaded: Arc<Loaded>,
    prepare: Order,
    digests: Arc<crate::p4rt::read::Digests>,
) -> Result<(), Refusal> {
    let done = shared.plane.load(Arc::clone(&loaded.program), prepare);
    done.await.map_err(|failure| match failure {
        LoadFailure::Refused(error) => Refusal::malformed(format!("the program cannot be run: {error}")),
        LoadFailure::Unfit(message) => Refusal::malformed(message),
        LoadFailure::Gone(gone) => gone.into(),
    })?;
    *lock(&shared.written) = Arc::clone(&shared.plane);
    *lock(&shared.live) = Some(Arc::clone(&loaded));
    let mut machine = lock(&shared.digests);
    machine.forget();
    machine.configure(&digests);
    drop(machine);
    *pipelines = Pipelines {
        committed: Some(Pipeline {
            plane: Arc::clone(&shared.plane),
            loaded,
            digests,
        }),
        saved: None,
    };
    Ok(())
}

/// Commits what was saved, with what was written since.
async fn commit_saved(shared: &Shared, pipelines: &mut Pipelines) -> Result<(), Refusal> {
    let saved = pipelines.saved.as_ref();
    let saved = saved.ok_or_else(|| Refusal::not_found("nothing was saved; VERIFY_AND_SAVE comes first"))?;
    let (loaded, digests) = (Arc::clone(&saved.loaded), Arc::clone(&saved.digests));
    let state = transfer::take(&*saved.plane, &saved.loaded).await?;
    let transfer = Arc::new(Transfer::new(&state, &saved.loaded, &loaded)?);
    let prepare: Order = Arc::new(move |replica, switch| {
        // It was made of the same program's state, so it fits.
        let _ = transfer.apply(replica, switch);
    });
    commit(shared, pipelines, loaded, prepare, digests).await
}

/// Commits a program with the state of the one that runs.
async fn reconcile(shared: &Shared, pipelines: &mut Pipelines, loaded: Arc<Loaded>) -> Result<(), Refusal> {
    let Some(running) = &pipelines.committed else {
        return commit(shared, pipelines, loaded, Arc::new(|_, _| {}), Arc::default()).await;
    };
    let state = transfer::take(&*running.plane, &running.loaded).await?;
    let transfer = Transfer::new(&state, &running.loaded, &loaded)?;
    // Tried first where no packet meets it.
    let program = Arc::clone(&loaded.program);
    let transfer = Arc::new(transfer);
    let tried = Arc::clone(&transfer);
    let work = move || -> Result<(), Refusal> {
        let mut switch = crate::standalone::load(&program)
            .map_err(|e| Refusal::malformed(format!("the program cannot be run: {e}")))?;
        tried.apply(0, &mut switch)
    };
    let outcome = tokio::task::spawn_blocking(work).await;
    outcome.map_err(|_| Refusal::malformed("the state cannot be kept: it meets a mistake in weir"))??;
    let digests = running
        .digests
        .iter()
        .filter(|(id, _)| loaded.schema.digests.contains_key(id));
    let digests = Arc::new(digests.map(|(id, c)| (*id, *c)).collect());
    let prepare: Order = Arc::new(move |replica, switch| {
        let _ = transfer.apply(replica, switch);
    });
    commit(shared, pipelines, loaded, prepare, digests).await
}

/// Tells what was asked of the config.
pub async fn get(
    shared: &Shared,
    request: pb::GetForwardingPipelineConfigRequest,
) -> Result<pb::GetForwardingPipelineConfigResponse, Refusal> {
    shared.check_device(request.device_id)?;
    let wanted = ResponseType::try_from(request.response_type)
        .map_err(|_| Refusal::malformed("there is no such response_type"))?;
    let pipelines = shared.pipelines.read().await;
    let Some(committed) = &pipelines.committed else {
        return Ok(pb::GetForwardingPipelineConfigResponse { config: None });
    };
    let whole = &committed.loaded.config;
    let with_info = matches!(wanted, ResponseType::All | ResponseType::P4infoAndCookie);
    let with_program = matches!(wanted, ResponseType::All | ResponseType::DeviceConfigAndCookie);
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
