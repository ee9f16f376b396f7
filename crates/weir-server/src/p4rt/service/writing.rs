//! The Write RPC.

use super::{Shared, lock, notify};
use crate::batches::BatchPermit;
use crate::dataplane::{Chunking, Cost, Gone, Length, check_atomic_cost, gather_with};
use crate::decoding::{self, ListLimits, OFFLOAD_OUTCOMES};
use crate::device::{Pipeline, Pipelines};
use crate::p4rt::apply::apply_all;
use crate::p4rt::arbitration::role_name;
use crate::p4rt::change::{self, Before, Change};
use crate::p4rt::config::Config;
use crate::p4rt::program::LoadedProgram;
use crate::p4rt::read::Digests;
use crate::p4rt::refusal::{Refusal, batch_status};
use crate::p4rt::role::Scope;
use crate::p4rt::wire;
use crate::yielding::YieldingGuard;
use std::sync::Arc;
use tonic::Status;
use tonic::metadata::MetadataMap;
use weir_proto::listed::EncodedList;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_proto::p4rt_raw::WriteRequest;
use weir_table::{EntryAction, ProfileOp};

/// Steps of a part of a batch. A part is submitted to the switch while the part before is executed,
/// so that the switch never waits for the next one. They take some milliseconds.
const STEPS_PER_PART: usize = 32;

/// The most bytes of the trailer with a request's errors: the client's `weir-max-error-bytes`, up
/// to the configured maximum. Without it a small limit, which the default settings of clients
/// accept.
pub fn error_limit(config: &Config, metadata: &MetadataMap) -> usize {
    let requested = metadata.get("weir-max-error-bytes").and_then(|v| v.to_str().ok());
    let requested: Option<usize> = requested.and_then(|text| text.parse().ok());
    requested
        .unwrap_or(config.small_error_bytes)
        .min(config.max_error_bytes)
}

/// Resolves an update within the permissions of a role.
fn resolve(loaded: &LoadedProgram, scope: &Scope, update: &pb::Update) -> Result<Change, Refusal> {
    if let Some(entity) = &update.entity {
        scope.check_write(entity)?;
    }
    change::decode(&loaded.schema, &loaded.program.errors, update)
}

/// The cost of a change for the switch.
fn cost(change: &Result<Change, Refusal>) -> Cost {
    use Change::{DeleteEntry, InsertEntry, ModifyEntry};
    let (matches, priority, action) = match change {
        Err(_) => return Cost::Entry,
        Ok(InsertEntry(_, new, _)) => (&new.matches, new.priority, Some(&new.action)),
        Ok(ModifyEntry(_, matches, priority, state)) => (matches, *priority, state.action.as_ref()),
        Ok(DeleteEntry(_, matches, priority)) => (matches, *priority, None),
        Ok(Change::Group(before, _, group)) => {
            let length = group.as_ref().map_or(0, |g| g.replicas.len());
            return Cost::list(length, matches!(before, Before::Absent));
        }
        Ok(Change::Session(_, _, Some(session))) => return Cost::Parts(session.replicas.len()),
        Ok(Change::Profile(_, _, ProfileOp::InsertGroup(_, group))) => return Cost::list(group.members.len(), true),
        Ok(Change::Profile(_, _, ProfileOp::ModifyGroup(_, group))) => return Cost::list(group.members.len(), false),
        Ok(Change::ValueSet(_, members, _)) => return Cost::list(members.len(), false),
        Ok(_) => return Cost::Unbounded,
    };
    let choices = match action {
        Some(EntryAction::OneShot(set)) => set.len(),
        _ => 0,
    };
    // Entries have a priority just where keys have masks.
    let of_entry = match priority {
        0 => Cost::entry(matches),
        _ => Cost::Ranked,
    };
    of_entry.plus(choices)
}

/// Executes a Write. `limit`: the most bytes of the trailer with errors.
pub async fn write(shared: Arc<Shared>, request: WriteRequest, limit: usize) -> Result<pb::WriteResponse, Status> {
    let large = shared.config.max_error_bytes;
    match outcomes(&shared, request).await {
        Err(refusal) => Err(refusal.status()),
        Ok((outcomes, _)) if outcomes.iter().all(Result::is_ok) => Ok(pb::WriteResponse {}),
        Ok((outcomes, _permit)) => {
            let tried = outcomes.len();
            let status = move || batch_status(&outcomes, "updates", limit, large);
            Err(decoding::offload_if(tried > OFFLOAD_OUTCOMES, status)
                .await
                .unwrap_or_else(|e| e.status()))
        }
    }
}

/// The updates of a request, split into commands.
struct Batch {
    length: Length,
    /// The changes of each command. There is at least one: even an empty batch is a command, which
    /// completes after those submitted before it.
    steps: Vec<Vec<Result<Change, Refusal>>>,
}

impl Batch {
    /// `most`: the most that an atomic batch may cost, in plain entries.
    fn new(changes: Vec<Result<Change, Refusal>>, atomicity: Atomicity, most: usize) -> Result<Self, Refusal> {
        let chunking = Chunking::new(changes.iter().map(cost));
        // Packets need not wait for a whole batch that is not atomic.
        let chunking = match atomicity {
            Atomicity::ContinueOnError => chunking,
            _ => chunking.atomic(most)?,
        };
        let mut changes = changes.into_iter();
        let steps = chunking.steps.iter().map(|step| changes.by_ref().take(*step).collect());
        Ok(Batch {
            length: chunking.length,
            steps: steps.collect(),
        })
    }

    fn has_digests(&self) -> bool {
        let mut changes = self.steps.iter().flatten();
        changes.any(|change| matches!(change, Ok(Change::Digest(..))))
    }
}

/// Executes all updates. Returns their outcomes and the batch's permit, or why the request was
/// refused as a whole.
async fn outcomes(
    shared: &Arc<Shared>,
    request: WriteRequest,
) -> Result<(Vec<Result<(), Refusal>>, Option<BatchPermit<'_>>), Refusal> {
    let WriteRequest {
        rest: request,
        list: updates,
    } = request;
    ListLimits::write(shared.config.max_updates).check(&updates)?;
    shared.check_device(request.device_id)?;
    shared.device.check_state()?;
    let role = role_name(&request.role, request.role_id);
    let election = request.election_id;
    let scope = lock(&shared.arbitration).check(&role, election.as_ref())?;
    let atomicity = Atomicity::try_from(request.atomicity)
        .map_err(|_| Refusal::malformed("there is no such atomicity; use CONTINUE_ON_ERROR or one of the others"))?;
    if atomicity != Atomicity::ContinueOnError {
        check_atomic_cost(updates.len(), shared.config.max_atomic_updates)?;
    }
    let writer = Writer {
        role,
        election,
        atomicity,
    };
    let permit = shared.device.batches.admit(updates.len()).await;
    let updates = Arc::new(updates);
    // No lock on the programs is held while updates are decoded. If the program has changed by
    // then, they are decoded again.
    let (_phase, mut pipelines, mut batch) = loop {
        let loaded = Arc::clone(&shared.device.pipelines.read().await.current()?.loaded);
        let batch = resolve_all(&loaded, &scope, &updates, (atomicity, shared.config.max_atomic_updates)).await?;
        let phase = shared.device.phases.join_writes().await;
        if !batch.has_digests() {
            let pipelines = shared.device.pipelines.read().await;
            let pipeline = pipelines.current()?;
            if !Arc::ptr_eq(&pipeline.loaded, &loaded) {
                continue;
            }
            let outcomes = submit(shared, pipeline, batch, &writer).await?;
            shared.device.persisted().await?;
            return Ok((outcomes, permit));
        }
        let pipelines = shared.device.pipelines.write().await;
        if Arc::ptr_eq(&pipelines.current()?.loaded, &loaded) {
            break (phase, pipelines, batch);
        }
    };
    let pipeline = pipelines.current()?;
    let mut digests = Digests::clone(&pipeline.digests);
    configure(&mut digests, batch.steps.iter_mut().flatten());
    let outcomes = submit(shared, pipeline, batch, &writer).await?;
    let is_rolled_back = atomicity != Atomicity::ContinueOnError && outcomes.iter().any(Result::is_err);
    if !is_rolled_back {
        replace_digests(shared, &mut pipelines, digests).await?;
    }
    shared.device.persisted().await?;
    Ok((outcomes, permit))
}

/// The client of a Write, and its atomicity.
struct Writer {
    role: String,
    election: Option<pb::Uint128>,
    atomicity: Atomicity,
}

/// Submits a batch to the switch, some steps at a time, so that other requests may come in between
/// if it takes long. Returns the outcomes of its updates.
async fn submit(
    shared: &Arc<Shared>,
    pipeline: &Pipeline,
    batch: Batch,
    writer: &Writer,
) -> Result<Vec<Result<(), Refusal>>, Refusal> {
    let (plane, length) = (&*pipeline.plane, batch.length);
    let how = (writer.atomicity, shared.config.max_atomic_updates);
    let one = |changes| {
        gather_with(plane, length, changes, move |replica, switch, changes| {
            apply_all(switch, replica, changes, how)
        })
    };
    let submit_part = |part: Vec<Vec<_>>| {
        // The client must be primary at this moment. Since the arbitration stays locked, a new
        // primary's Writes come after everything that is submitted here.
        let arbitration = lock(&shared.arbitration);
        match arbitration.check(&writer.role, writer.election.as_ref()) {
            Ok(_) => Ok(part.into_iter().map(one).collect::<Vec<_>>()),
            Err(refusal) => Err((refusal, part)),
        }
    };
    let mut steps = batch.steps.into_iter();
    let (mut outcomes, mut given) = (Vec::new(), None);
    let mut guard = YieldingGuard::acquire(&shared.device.commands).await;
    loop {
        let next = submit_part(steps.by_ref().take(STEPS_PER_PART).collect());
        let (next, lost) = match (next, &given) {
            (Ok(next), _) => (next, None),
            (Err((refusal, _)), None) => return Err(refusal),
            // It is not primary any more. Earlier steps of a non-atomic batch stay.
            (Err((refusal, part)), Some(_)) => (Vec::new(), Some((refusal, part))),
        };
        if let Some(before) = given.replace(next) {
            outcomes.extend(outcomes_of(before).await?);
        }
        if let Some((refusal, part)) = lost {
            let left: usize = part.into_iter().chain(steps).map(|step| step.len()).sum();
            outcomes.resize(outcomes.len() + left, Err(refusal));
            return Ok(outcomes);
        }
        if steps.len() == 0 {
            break;
        }
        guard.yield_if_due().await;
    }
    drop(guard);
    outcomes.extend(outcomes_of(given.unwrap_or_default()).await?);
    Ok(outcomes)
}

/// Replaces the enabled digests of the current program.
async fn replace_digests(shared: &Arc<Shared>, pipelines: &mut Pipelines, digests: Digests) -> Result<(), Refusal> {
    let digests = Arc::new(digests);
    if let Some(saved) = &mut pipelines.saved {
        saved.digests = digests;
        return Ok(());
    }
    // Digests that the switch has queued belong to the old settings: send them by these.
    notify::send_digests(shared).await?;
    if let Some(committed) = &mut pipelines.committed {
        committed.digests = Arc::clone(&digests);
    }
    lock(&shared.digests).configure(&digests);
    shared.device.keep_digests(&digests);
    Ok(())
}

/// The outcomes of several steps, from the first replica: all replicas have the same.
async fn outcomes_of<F>(steps: Vec<F>) -> Result<Vec<Result<(), Refusal>>, Refusal>
where
    F: Future<Output = Result<Vec<Vec<Result<(), Refusal>>>, Gone>>,
{
    let mut outcomes = Vec::new();
    for step in steps {
        outcomes.extend(step.await?.into_iter().next().unwrap_or_default());
    }
    Ok(outcomes)
}

/// Resolves a batch; a large one on the blocking pool.
async fn resolve_all(
    loaded: &Arc<LoadedProgram>,
    scope: &Arc<Scope>,
    updates: &Arc<EncodedList>,
    (atomicity, most): (Atomicity, usize),
) -> Result<Batch, Refusal> {
    let is_large = decoding::is_large(updates);
    let (loaded, scope, updates) = (Arc::clone(loaded), Arc::clone(scope), Arc::clone(updates));
    // Only one update is decoded at a time. A malformed update makes the request malformed.
    let resolve = move || {
        let one = |update| match wire::change(&loaded.schema, &scope, update) {
            Some(change) => Ok(Ok(change)),
            None => Ok(resolve(&loaded, &scope, &decoding::decode_element(&updates, update)?)),
        };
        let changes: Result<_, Refusal> = updates.iter().map(one).collect();
        Batch::new(changes?, atomicity, most)
    };
    decoding::offload_if(is_large, resolve).await?
}

/// Applies the changes of digests, in order: digests are state of the server, not of the switch.
fn configure<'a>(digests: &mut Digests, changes: impl Iterator<Item = &'a mut Result<Change, Refusal>>) {
    for change in changes {
        let Ok(Change::Digest(before, id, config)) = change else {
            continue;
        };
        let refusal = match (before, digests.contains_key(id)) {
            (Before::Absent, true) => Refusal::exists("the digest is configured already; modify it instead"),
            (Before::Present, false) => Refusal::not_found("the digest is not configured; insert it first"),
            _ => {
                match config {
                    Some(config) => digests.insert(*id, *config),
                    None => digests.remove(id),
                };
                continue;
            }
        };
        *change = Err(refusal);
    }
}
