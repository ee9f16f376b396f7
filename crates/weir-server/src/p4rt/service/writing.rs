//! The Write RPC.

use super::{Shared, lock, notify};
use crate::batches::Room;
use crate::dataplane::{Effort, Gone, Length, Pace, check_at_once, gather_with};
use crate::decoding::{self, Bounds, MANY};
use crate::device::{Pipeline, Pipelines};
use crate::giving::Giving;
use crate::p4rt::apply::apply_all;
use crate::p4rt::arbitration::role_name;
use crate::p4rt::change::{self, Before, Change};
use crate::p4rt::config::Config;
use crate::p4rt::program::Loaded;
use crate::p4rt::read::Digests;
use crate::p4rt::refusal::{Refusal, batch_status};
use crate::p4rt::role::Scope;
use crate::p4rt::wire;
use std::sync::Arc;
use tonic::Status;
use tonic::metadata::MetadataMap;
use weir_proto::listed::EncodedList;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_proto::p4rt_raw::WriteRequest;
use weir_table::{EntryAction, ProfileOp};

/// Steps that are given to the switch while those before are done: some milliseconds, so that it
/// does not wait for the next ones.
const AHEAD: usize = 32;

/// Largest trailer for a request.
pub fn error_limit(config: &Config, metadata: &MetadataMap) -> usize {
    let said = metadata.get("weir-max-error-bytes").and_then(|v| v.to_str().ok());
    let said: Option<usize> = said.and_then(|text| text.parse().ok());
    said.unwrap_or(config.small_error_bytes).min(config.max_error_bytes)
}

/// What an update and a role make: a change, or why there is none.
fn resolve(loaded: &Loaded, scope: &Scope, update: &pb::Update) -> Result<Change, Refusal> {
    if let Some(entity) = &update.entity {
        scope.check_write(entity)?;
    }
    change::decode(&loaded.schema, &loaded.program.errors, update)
}

/// What a change costs the switch.
fn effort(change: &Result<Change, Refusal>) -> Effort {
    use Change::{DeleteEntry, InsertEntry, ModifyEntry};
    let (matches, priority, action) = match change {
        Err(_) => return Effort::Entry,
        Ok(InsertEntry(_, new, _)) => (&new.matches, new.priority, Some(&new.action)),
        Ok(ModifyEntry(_, matches, priority, state)) => (matches, *priority, state.action.as_ref()),
        Ok(DeleteEntry(_, matches, priority)) => (matches, *priority, None),
        Ok(Change::Group(before, _, group)) => {
            let length = group.as_ref().map_or(0, |g| g.replicas.len());
            return Effort::list(length, matches!(before, Before::Absent));
        }
        Ok(Change::Session(_, _, Some(session))) => return Effort::Parts(session.replicas.len()),
        Ok(Change::Profile(_, _, ProfileOp::InsertGroup(_, group))) => return Effort::list(group.members.len(), true),
        Ok(Change::Profile(_, _, ProfileOp::ModifyGroup(_, group))) => return Effort::list(group.members.len(), false),
        Ok(Change::ValueSet(_, members, _)) => return Effort::list(members.len(), false),
        Ok(_) => return Effort::Any,
    };
    let choices = match action {
        Some(EntryAction::OneShot(set)) => set.len(),
        _ => 0,
    };
    // Entries have a priority just where keys have masks.
    let of_entry = match priority {
        0 => Effort::entry(matches),
        _ => Effort::Ranked,
    };
    of_entry.with(choices)
}

/// Does what a request asks for. `limit`: largest trailer.
pub async fn write(shared: Arc<Shared>, request: WriteRequest, limit: usize) -> Result<pb::WriteResponse, Status> {
    let large = shared.config.max_error_bytes;
    match outcomes(&shared, request).await {
        Err(refusal) => Err(refusal.status()),
        Ok((outcomes, _)) if outcomes.iter().all(Result::is_ok) => Ok(pb::WriteResponse {}),
        Ok((outcomes, _room)) => {
            let tried = outcomes.len();
            let told = move || batch_status(&outcomes, "updates", limit, large);
            Err(decoding::aside(tried > MANY, told).await.unwrap_or_else(|e| e.status()))
        }
    }
}

/// The updates of a request, as they are given to the switch.
struct Batch {
    length: Length,
    /// What is done between two packet vectors each. Never none: an empty batch is an order too,
    /// which comes after those before it.
    steps: Vec<Vec<Result<Change, Refusal>>>,
}

impl Batch {
    /// `most`: entries as which what is done at once may cost.
    fn new(changes: Vec<Result<Change, Refusal>>, atomicity: Atomicity, most: usize) -> Result<Self, Refusal> {
        let pace = Pace::of(changes.iter().map(effort));
        // Packets need not wait for the whole of a batch whose parts may be seen.
        let pace = match atomicity {
            Atomicity::ContinueOnError => pace,
            _ => pace.at_once(most)?,
        };
        let mut changes = changes.into_iter();
        let steps = pace.steps.iter().map(|step| changes.by_ref().take(*step).collect());
        Ok(Batch {
            length: pace.length,
            steps: steps.collect(),
        })
    }

    fn has_digests(&self) -> bool {
        let mut changes = self.steps.iter().flatten();
        changes.any(|change| matches!(change, Ok(Change::Digest(..))))
    }
}

/// What becomes of every update, with the room that they have, or why none was looked at.
async fn outcomes(
    shared: &Arc<Shared>,
    request: WriteRequest,
) -> Result<(Vec<Result<(), Refusal>>, Option<Room<'_>>), Refusal> {
    let WriteRequest {
        rest: request,
        list: updates,
    } = request;
    Bounds::write(shared.config.max_updates).check(&updates)?;
    shared.check_device(request.device_id)?;
    shared.device.check_state()?;
    let role = role_name(&request.role, request.role_id);
    let election = request.election_id;
    let scope = lock(&shared.arbitration).check(&role, election.as_ref())?;
    let atomicity = Atomicity::try_from(request.atomicity)
        .map_err(|_| Refusal::malformed("there is no such atomicity; use CONTINUE_ON_ERROR or one of the others"))?;
    if atomicity != Atomicity::ContinueOnError {
        check_at_once(updates.len(), shared.config.max_atomic_updates)?;
    }
    let writer = Writer {
        role,
        election,
        atomicity,
    };
    let room = shared.device.batches.room(updates.len()).await;
    let updates = Arc::new(updates);
    // While updates are read nobody waits for a program. If another one has come meanwhile, they
    // are read again.
    let (_turn, mut pipelines, mut batch) = loop {
        let loaded = Arc::clone(&shared.device.pipelines.read().await.current()?.loaded);
        let batch = resolve_all(&loaded, &scope, &updates, (atomicity, shared.config.max_atomic_updates)).await?;
        let turn = shared.device.turns.write().await;
        if !batch.has_digests() {
            let pipelines = shared.device.pipelines.read().await;
            let pipeline = pipelines.current()?;
            if !Arc::ptr_eq(&pipeline.loaded, &loaded) {
                continue;
            }
            let outcomes = submit(shared, pipeline, batch, &writer).await?;
            shared.device.kept().await?;
            return Ok((outcomes, room));
        }
        let pipelines = shared.device.pipelines.write().await;
        if Arc::ptr_eq(&pipelines.current()?.loaded, &loaded) {
            break (turn, pipelines, batch);
        }
    };
    let pipeline = pipelines.current()?;
    let mut digests = Digests::clone(&pipeline.digests);
    configure(&mut digests, batch.steps.iter_mut().flatten());
    let outcomes = submit(shared, pipeline, batch, &writer).await?;
    let is_taken_back = atomicity != Atomicity::ContinueOnError && outcomes.iter().any(Result::is_err);
    if !is_taken_back {
        send_from_now_on(shared, &mut pipelines, digests).await?;
    }
    shared.device.kept().await?;
    Ok((outcomes, room))
}

/// Who writes, and how.
struct Writer {
    role: String,
    election: Option<pb::Uint128>,
    atomicity: Atomicity,
}

/// Gives a batch to the switch, some steps at a time, so that others come in between where it takes
/// long; what became of its updates.
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
    let give = |part: Vec<Vec<_>>| {
        // Who is primary at this moment may write: a new primary's writes come after everything
        // that is given here.
        let arbitration = lock(&shared.arbitration);
        match arbitration.check(&writer.role, writer.election.as_ref()) {
            Ok(_) => Ok(part.into_iter().map(one).collect::<Vec<_>>()),
            Err(refusal) => Err((refusal, part)),
        }
    };
    let mut steps = batch.steps.into_iter();
    let (mut outcomes, mut given) = (Vec::new(), None);
    let mut giving = Giving::begin(&shared.device.orders).await;
    loop {
        let next = give(steps.by_ref().take(AHEAD).collect());
        let (next, lost) = match (next, &given) {
            (Ok(next), _) => (next, None),
            (Err((refusal, _)), None) => return Err(refusal),
            // It is not any more, but a part of such a batch may be done.
            (Err((refusal, part)), Some(_)) => (Vec::new(), Some((refusal, part))),
        };
        if let Some(before) = given.replace(next) {
            outcomes.extend(outcome_of(before).await?);
        }
        if let Some((refusal, part)) = lost {
            let left: usize = part.into_iter().chain(steps).map(|step| step.len()).sum();
            outcomes.resize(outcomes.len() + left, Err(refusal));
            return Ok(outcomes);
        }
        if steps.len() == 0 {
            break;
        }
        giving.pause().await;
    }
    drop(giving);
    outcomes.extend(outcome_of(given.unwrap_or_default()).await?);
    Ok(outcomes)
}

/// The digests of the program that is written are these from now on.
async fn send_from_now_on(shared: &Arc<Shared>, pipelines: &mut Pipelines, digests: Digests) -> Result<(), Refusal> {
    let digests = Arc::new(digests);
    if let Some(saved) = &mut pipelines.saved {
        saved.digests = digests;
        return Ok(());
    }
    // What the switch has kept from before nobody has asked for.
    notify::send_digests(shared).await?;
    if let Some(committed) = &mut pipelines.committed {
        committed.digests = Arc::clone(&digests);
    }
    lock(&shared.digests).configure(&digests);
    shared.device.keep_digests(&digests);
    Ok(())
}

/// What has become of a batch that is done in steps, as the first replica says; all say the same.
async fn outcome_of<F>(steps: Vec<F>) -> Result<Vec<Result<(), Refusal>>, Refusal>
where
    F: Future<Output = Result<Vec<Vec<Result<(), Refusal>>>, Gone>>,
{
    let mut outcomes = Vec::new();
    for step in steps {
        outcomes.extend(step.await?.into_iter().next().unwrap_or_default());
    }
    Ok(outcomes)
}

/// Resolves a batch; a large one not on the threads that serve everybody.
async fn resolve_all(
    loaded: &Arc<Loaded>,
    scope: &Arc<Scope>,
    updates: &Arc<EncodedList>,
    (atomicity, most): (Atomicity, usize),
) -> Result<Batch, Refusal> {
    let is_large = decoding::is_large(updates);
    let (loaded, scope, updates) = (Arc::clone(loaded), Arc::clone(scope), Arc::clone(updates));
    // No message of more than one update is there at a time. One that is none makes the request
    // none.
    let resolve = move || {
        let one = |update| match wire::change(&loaded.schema, &scope, update) {
            Some(change) => Ok(Ok(change)),
            None => Ok(resolve(&loaded, &scope, &decoding::element(&updates, update)?)),
        };
        let changes: Result<_, Refusal> = updates.iter().map(one).collect();
        Batch::new(changes?, atomicity, most)
    };
    decoding::aside(is_large, resolve).await?
}

/// Digests are the server's own: what becomes of them is decided here, in order.
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
