//! The Write RPC: resolves updates, submits them to the switch, and reports statuses.
//!
//! A large batch is resolved in pieces on a blocking thread. Each piece is submitted as soon as it
//! is resolved, so that one is applied while the next is resolved. For a second, no commands of
//! other requests come between the pieces; after that the batch yields after every
//! [`PIECES_PER_YIELD`] pieces.
//!
//! A huge batch is resolved before it acquires the phase, because others would wait too long.
//! Pieces that are expensive for the switch are split further, since packets wait while a command
//! is executed. An atomic batch is one piece.

use super::{AddressedProgram, Options, Shared};
use crate::batches::BatchPermit;
use crate::bfrt::apply::{Done, Outcomes, apply_all};
use crate::bfrt::attribute::{self, Attributes};
use crate::bfrt::change::{self, Change, GroupState, Step, WriteMode};
use crate::bfrt::errors::{self, Reporter, batch_status};
use crate::bfrt::fixed::port;
use crate::bfrt::schema::{Kind, Schema};
use crate::bfrt::target::Scopes;
use crate::bfrt::wire;
use crate::dataplane::{Chunking, Cost, DataPlane, Gone, Length, check_atomic_cost, gather_with};
use crate::decoding::{self, ListLimits, OFFLOAD_OUTCOMES};
use crate::device::lock;
use crate::ports::Settings;
use crate::refusal::Refusal;
use crate::state::ATTRIBUTES;
use crate::yielding::YieldingGuard;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tonic::Status;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::write_request::Atomicity;
use weir_proto::bfrt_raw::WriteRequest;
use weir_proto::listed::EncodedList;
use weir_table::EntryRef;

/// Updates of a non-atomic batch that are resolved together.
const PIECE_UPDATES: usize = 256;

/// Pieces submitted before the batch may yield to commands of others.
const PIECES_PER_YIELD: usize = 64;

/// Bytes of a request from which on it is prepared before it acquires the phase: preparation takes
/// some milliseconds.
const LONG_BYTES: usize = 1 << 20;

/// Bytes of a request from which on all its updates are resolved before it acquires the phase: some
/// 0.2 s, or much more for updates that are not plain.
const HUGE_BYTES: usize = 16 << 20;

/// Number of updates with the same effect as [`HUGE_BYTES`], however short they are.
const HUGE_UPDATES: usize = 1 << 18;

/// The status of an update that was not plainly successful: its index in the batch, and the error
/// or remark.
struct UpdateStatus {
    index: usize,
    error: pb::Error,
}

/// The outcome of a piece of a batch.
struct PieceOutcome {
    statuses: Vec<UpdateStatus>,
    /// The number of updates that were tried.
    tried: usize,
}

type PendingPiece = Pin<Box<dyn Future<Output = Result<PieceOutcome, Gone>> + Send>>;

/// Executes a Write.
pub async fn write(shared: Arc<Shared>, request: WriteRequest, options: Options) -> Result<pb::WriteResponse, Status> {
    let (pieces, _permit) = outcomes(&shared, request, options)
        .await
        .map_err(|e| errors::status(&e))?;
    let tried: usize = pieces.iter().map(|p| p.tried).sum();
    let answer = move || answer(pieces, tried, options);
    let answer = decoding::offload_if(tried > OFFLOAD_OUTCOMES, answer).await;
    answer.map_err(|e| errors::status(&e))?
}

/// The answer to a batch of which `tried` updates were tried.
#[allow(clippy::result_large_err, reason = "the error is what gRPC sends")]
fn answer(pieces: Vec<PieceOutcome>, tried: usize, options: Options) -> Result<pb::WriteResponse, Status> {
    let statuses: Vec<UpdateStatus> = pieces.into_iter().flat_map(|p| p.statuses).collect();
    let has_failed = statuses.iter().any(|o| o.error.canonical_code != 0);
    if has_failed {
        let last = statuses.last().map_or(0, |o| o.index + 1);
        let most = errors::max_encoded(options.error_bytes);
        let first = statuses.iter().find(|o| o.error.canonical_code != 0);
        if let Some(first) = first.filter(|o| o.index >= most) {
            let error = errors::with_number(first.index, first.error.clone());
            return Err(batch_status("Write Error Status", vec![error], options.error_bytes));
        }
        let mut errors = vec![pb::Error::default(); last.min(most)];
        for one in statuses {
            if let Some(error) = errors.get_mut(one.index) {
                *error = one.error;
            }
        }
        return Err(batch_status("Write Error Status", errors, options.error_bytes));
    }
    if options.error_in_resp {
        let mut status = vec![pb::Error::default(); tried];
        for one in statuses {
            status[one.index] = one.error;
        }
        return Ok(pb::WriteResponse { status });
    }
    // Without `error_in_resp` the response lists only insertions that became modifications.
    Ok(pb::WriteResponse {
        status: statuses
            .into_iter()
            .filter(|o| o.error.code == MODIFIED)
            .map(|o| o.error)
            .collect(),
    })
}

/// `Error::code` of an insertion that became a modification: that of ALREADY_EXISTS.
const MODIFIED: i32 = 6;
/// `Error::code` of a deletion of a missing entry that succeeds: that of NOT_FOUND.
const ABSENT: i32 = 5;

/// The status of an outcome that is not plain success.
fn update_status(
    reporter: &mut Reporter,
    schema: &Schema,
    step: &Step,
    outcome: &Result<Done, Refusal>,
) -> Option<pb::Error> {
    match outcome {
        Ok(Done::Made) => None,
        Ok(Done::Modified) => Some(pb::Error {
            message: "the entry was there already, and was modified".to_owned(),
            code: MODIFIED,
            ..pb::Error::default()
        }),
        Ok(Done::Absent) => Some(pb::Error {
            message: "the entry was not there".to_owned(),
            code: ABSENT,
            ..pb::Error::default()
        }),
        Err(refusal) => Some(reporter.for_step(schema, step, refusal)),
    }
}

/// Resolves updates to steps by the schema of the program.
struct Resolver {
    updates: Arc<EncodedList>,
    schema: Arc<Schema>,
    is_shared: bool,
    scopes: Scopes,
    target: Option<pb::TargetDevice>,
    /// The fast path for plain updates, of which a large batch mostly consists.
    reader: wire::Reader,
}

/// A batch as prepared before it acquires the phase.
struct PreparedBatch {
    resolver: Resolver,
    /// It may change ports or attributes.
    may_change_settings: bool,
    /// The resolved updates of a huge batch.
    steps: Option<Vec<Step>>,
}

/// Resolves updates and submits them to the switch.
struct Submission {
    shared: Arc<Shared>,
    plane: Arc<dyn DataPlane>,
    resolver: Resolver,
    /// Updates that were resolved during preparation.
    resolved: Option<std::vec::IntoIter<Step>>,
    continue_on_error: bool,
    ignore_not_found: bool,
    settings: Settings,
    attributes: Attributes,
    reporter: Arc<Mutex<Reporter>>,
    /// The batch has changed `settings` or `attributes`, which are copies.
    has_settings: bool,
}

impl Resolver {
    /// Resolves the updates with these indexes.
    fn steps(&mut self, numbers: Range<usize>) -> Vec<Step> {
        let updates = Arc::clone(&self.updates);
        updates.within(numbers).map(|update| self.step(update)).collect()
    }

    fn step(&mut self, update: &[u8]) -> Step {
        if !self.is_shared
            && let Some(step) = self
                .reader
                .step(&self.schema, &self.scopes, self.target.as_ref(), update)
        {
            return step;
        }
        let mut step = match decoding::decode_element::<pb::Update>(&self.updates, update) {
            Ok(update) => change::decode(&self.schema, &self.scopes, self.target.as_ref(), &update),
            Err(refusal) => Step {
                table: None,
                verb: "Write failed",
                change: Err(refusal),
            },
        };
        if self.is_shared
            && let Some(at) = step.table
            && !matches!(self.schema.tables[at].kind, Kind::Fixed(_))
        {
            step.change = Err(Refusal::not_found("`$SHARED` has only the tables of the device"));
        }
        step
    }
}

impl PreparedBatch {
    /// Prepares a batch.
    fn new(mut resolver: Resolver) -> Self {
        let may_change_settings = wire::may_any_change_settings(&resolver.schema, resolver.updates.iter());
        let count = resolver.updates.len();
        let is_huge = resolver.updates.message_len() > HUGE_BYTES || count > HUGE_UPDATES;
        let steps = is_huge.then(|| resolver.steps(0..count));
        PreparedBatch {
            resolver,
            may_change_settings,
            steps,
        }
    }
}

impl Submission {
    /// Resolves the updates with these indexes, unless preparation has done so, and submits them.
    ///
    /// # Errors
    /// The batch is atomic and exceeds the cost limit.
    fn submit(&mut self, numbers: Range<usize>) -> Result<Vec<PendingPiece>, Refusal> {
        let mut first = numbers.start;
        let mut steps: Vec<Step> = match &mut self.resolved {
            Some(resolved) => resolved.by_ref().take(numbers.len()).collect(),
            None => self.resolver.steps(numbers),
        };
        let (schema, scopes) = (&self.resolver.schema, &self.resolver.scopes);
        if steps
            .iter()
            .any(|s| attribute::is_attribute(s) || port::is_about_ports(schema, s))
        {
            self.has_settings = true;
            attribute::configure(schema, scopes, &mut self.attributes, &mut steps);
            port::configure(schema, &self.shared.device.ports, &mut self.settings, &mut steps);
        }
        let chunking = Chunking::new(steps.iter().map(|s| cost(schema, s)));
        let chunking = match self.continue_on_error {
            true => chunking,
            false => chunking.atomic(self.shared.config.max_atomic_updates)?,
        };
        let mut pending = Vec::with_capacity(chunking.steps.len());
        for step in chunking.steps {
            let rest = steps.split_off(step);
            pending.push(self.submit_steps(first, steps, chunking.length));
            first += step;
            steps = rest;
        }
        Ok(pending)
    }

    /// Submits steps to the switch; `first` is the batch index of the first one.
    fn submit_steps(&self, first: usize, steps: Vec<Step>, length: Length) -> PendingPiece {
        let (schema, reporter) = (Arc::clone(&self.resolver.schema), Arc::clone(&self.reporter));
        let policy = (
            self.continue_on_error,
            self.ignore_not_found,
            self.shared.config.max_atomic_updates,
        );
        let done = gather_with(&*self.plane, length, steps, move |replica, switch, mut steps| {
            let outcomes: Outcomes = apply_all(switch, replica, &schema, &mut steps, policy);
            // All replicas have the same outcomes.
            if replica != 0 {
                return None;
            }
            let mut reporter = lock(&reporter);
            let statuses = outcomes
                .iter()
                .zip(steps.all())
                .enumerate()
                .filter_map(|(offset, (outcome, step))| {
                    let error = update_status(&mut reporter, &schema, step, outcome)?;
                    Some(UpdateStatus {
                        index: first + offset,
                        error,
                    })
                });
            Some(PieceOutcome {
                statuses: statuses.collect(),
                tried: outcomes.len(),
            })
        });
        Box::pin(async move { done.await?.into_iter().next().flatten().ok_or(Gone) })
    }
}

/// The number of members given for a group.
fn members(state: &GroupState) -> usize {
    state.members.as_ref().map_or(0, Vec::len)
}

/// The cost of a change for the switch.
fn cost(schema: &Schema, step: &Step) -> Cost {
    use Change::{DeleteEntry, InsertEntry, ModifyEntry, UpsertEntry};
    let matches = match &step.change {
        Err(_) => return Cost::Entry,
        Ok(InsertEntry(new, _) | UpsertEntry(new, _)) => &*new.matches,
        Ok(ModifyEntry(EntryRef::Key { matches, .. }, _) | DeleteEntry(EntryRef::Key { matches, .. })) => matches,
        // Referenced by handle, so the matches are not known here.
        Ok(ModifyEntry(..) | DeleteEntry(_)) => &[],
        Ok(Change::Fixed(op, row)) => return row.cost(*op),
        Ok(Change::SetGroup(how, _, state)) => return Cost::list(members(state), *how == WriteMode::Insert),
        Ok(Change::GroupMembers(_, _, state)) => return Cost::list(members(state), false),
        Ok(_) => return Cost::Unbounded,
    };
    let is_ranked = step.table.is_some_and(|at| match &schema.tables[at].kind {
        Kind::Match(match_table) => match_table.is_ranked,
        _ => false,
    });
    if is_ranked { Cost::Ranked } else { Cost::entry(matches) }
}

/// The outcomes of a batch, and its permit of the budget for large batches.
type BatchOutcome<'a> = (Vec<PieceOutcome>, Option<BatchPermit<'a>>);

/// Executes a batch: the outcome of every update, or an error if none was tried.
///
/// Locks are acquired in the order of docs/internals/requests.md: budget, phase, programs,
/// settings, commands.
async fn outcomes(shared: &Arc<Shared>, request: WriteRequest, options: Options) -> Result<BatchOutcome<'_>, Refusal> {
    let WriteRequest {
        rest: request,
        list: updates,
    } = request;
    ListLimits::write(shared.config.max_updates).check(&updates)?;
    let atomicity = Atomicity::try_from(request.atomicity)
        .map_err(|_| Refusal::malformed("there is no such atomicity; use CONTINUE_ON_ERROR or one of the others"))?;
    if let Some(target) = &request.target {
        shared.check_device(target.device_id)?;
    }
    shared.device.check_state()?;
    let continue_on_error = atomicity == Atomicity::ContinueOnError;
    if !continue_on_error {
        check_atomic_cost(updates.len(), shared.config.max_atomic_updates)?;
    }
    let permit = shared.device.batches.admit(updates.len()).await;
    let updates = Arc::new(updates);
    let (is_large, is_long) = (decoding::is_large(&updates), updates.message_len() > LONG_BYTES);
    let mut prepared: Option<PreparedBatch> = None;
    let (prepared, _phase, pipelines) = loop {
        let phase = shared.device.phases.join_writes().await;
        let pipelines = shared.device.pipelines.read().await;
        let AddressedProgram { program, is_shared } =
            shared.addressed(pipelines.current()?, &request.p4_name, request.client_id)?;
        // A new program may have been loaded during preparation.
        let is_same =
            |resolver: &Resolver| Arc::ptr_eq(&resolver.schema, &program.schema) && resolver.is_shared == is_shared;
        if let Some(prepared) = prepared.filter(|p| is_same(&p.resolver)) {
            break (prepared, phase, pipelines);
        }
        let resolver = Resolver {
            updates: Arc::clone(&updates),
            schema: Arc::clone(&program.schema),
            is_shared,
            scopes: shared.scopes(),
            target: request.target,
            reader: wire::Reader::default(),
        };
        if !is_long {
            break (PreparedBatch::new(resolver), phase, pipelines);
        }
        drop((phase, pipelines));
        prepared = Some(decoding::offload_if(true, || PreparedBatch::new(resolver)).await?);
    };
    let pipeline = pipelines.current()?;
    // Held if the batch may change ports or attributes, to serialise such batches.
    let settings_lock = match prepared.may_change_settings {
        true => Some(shared.settings_lock.lock().await),
        false => None,
    };
    let submission = Submission {
        shared: Arc::clone(shared),
        plane: Arc::clone(&pipeline.plane),
        resolver: prepared.resolver,
        resolved: prepared.steps.map(Vec::into_iter),
        continue_on_error,
        ignore_not_found: options.ignore_not_found,
        settings: shared.device.ports.settings(),
        attributes: Attributes::clone(&lock(&shared.attributes)),
        reporter: Arc::new(Mutex::new(Reporter::new())),
        has_settings: false,
    };
    let (submission, pieces) = submit(submission, updates.len(), is_large).await?;
    let has_failed = pieces
        .iter()
        .flat_map(|p: &PieceOutcome| &p.statuses)
        .any(|o| o.error.canonical_code != 0);
    if submission.has_settings && (submission.continue_on_error || !has_failed) {
        let before = changed_ports(shared, &submission.settings);
        shared.device.keep_ports(&submission.settings);
        if pipelines.saved.is_none() {
            shared.device.keep(ATTRIBUTES, || submission.attributes.to_saved());
        }
        shared.device.ports.replace(submission.settings);
        *lock(&shared.attributes) = Arc::new(submission.attributes);
        for (port, up) in before {
            shared.port_changed(port, up);
        }
    }
    drop(settings_lock);
    shared.device.persisted().await?;
    Ok((pieces, permit))
}

/// Resolves `count` updates and submits them piece by piece, yielding to others in long batches.
/// Returns the outcomes.
async fn submit(
    mut submission: Submission,
    count: usize,
    is_large: bool,
) -> Result<(Submission, Vec<PieceOutcome>), Refusal> {
    let shared = Arc::clone(&submission.shared);
    let size = if submission.continue_on_error {
        PIECE_UPDATES
    } else {
        count.max(1)
    };
    let starts: Vec<usize> = (0..count).step_by(size).collect();
    let mut parts = starts.chunks(PIECES_PER_YIELD).map(<[usize]>::to_vec);
    let mut pieces = Vec::with_capacity(starts.len());
    let mut in_flight: Vec<PendingPiece> = Vec::new();
    let mut guard = YieldingGuard::acquire(&shared.device.commands).await;
    while let Some(part) = parts.next() {
        let resolve = move || {
            let mut pending = Vec::with_capacity(part.len());
            for start in part {
                pending.extend(submission.submit(start..count.min(start + size))?);
            }
            Ok((submission, pending))
        };
        let next;
        (submission, next) = decoding::offload_if_unqueued::<Result<_, Refusal>>(is_large, resolve).await??;
        for piece in std::mem::replace(&mut in_flight, next) {
            pieces.push(piece.await?);
        }
        if parts.len() > 0 {
            guard.yield_if_due().await;
        }
    }
    drop(guard);
    for piece in in_flight {
        pieces.push(piece.await?);
    }
    Ok((submission, pieces))
}

/// Ports that go up or down with new settings.
fn changed_ports(shared: &Shared, settings: &Settings) -> Vec<(u32, bool)> {
    let ports = &shared.device.ports;
    let before = ports.settings();
    let all: std::collections::BTreeSet<u32> = before.added.keys().chain(settings.added.keys()).copied().collect();
    let was = |port| before.added.contains_key(&port) && ports.setting(&before, port).up;
    let is = |port| settings.added.contains_key(&port) && ports.setting(settings, port).up;
    all.into_iter()
        .filter(|p| was(*p) != is(*p))
        .map(|p| (p, is(p)))
        .collect()
}
