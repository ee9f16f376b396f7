//! The Write RPC.
//!
//! A large batch is resolved piece by piece on a thread of its own, and each piece is given to the
//! switch as soon as it is resolved: one is applied while the next is resolved. Nobody else's
//! orders come in between for a second; then they do after so many pieces ([`Giving`]). A huge
//! batch, for which others would wait too long, is resolved before. Pieces are cut smaller where
//! the switch needs longer, since packets wait for what is done at once. Batches that must be all
//! or nothing are one piece.

use super::{Addressed, Options, Shared};
use crate::batches::Room;
use crate::bfrt::apply::{Done, Outcomes, apply_all};
use crate::bfrt::attribute::{self, Attributes};
use crate::bfrt::change::{self, Change, GroupState, Step, WriteMode};
use crate::bfrt::errors::{self, Reporter, batch_status};
use crate::bfrt::fixed::port;
use crate::bfrt::schema::{Kind, Schema};
use crate::bfrt::target::Scopes;
use crate::bfrt::wire;
use crate::dataplane::{DataPlane, Effort, Gone, Length, Pace, check_at_once, gather_with};
use crate::decoding::{self, Bounds, MANY};
use crate::device::lock;
use crate::giving::Giving;
use crate::ports::Settings;
use crate::refusal::Refusal;
use crate::state::ATTRIBUTES;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tonic::Status;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::write_request::Atomicity;
use weir_proto::bfrt_raw::WriteRequest;
use weir_proto::listed::EncodedList;
use weir_table::EntryRef;

/// Updates of a batch of which packets may meet a part that are resolved at a time.
const PIECE: usize = 256;

/// Pieces after which others may come in between.
const PART: usize = 64;

/// Bytes of a request from which on it is looked at before anybody waits for it: some milliseconds.
const LONG: usize = 1 << 20;

/// Bytes of a request from which on its updates are resolved before: some 0.2 s, or much more where
/// they are not plain.
const HUGE: usize = 16 << 20;

/// Updates from which on they are resolved before, however short they are.
const HUGE_BATCH: usize = 1 << 18;

/// An update that did not simply go well: its place in the batch, and what to tell of it.
struct UpdateStatus {
    at: usize,
    error: pb::Error,
}

/// What became of a piece of a batch.
struct Piece {
    statuses: Vec<UpdateStatus>,
    /// WriteMode many updates were tried.
    tried: usize,
}

type Pending = Pin<Box<dyn Future<Output = Result<Piece, Gone>> + Send>>;

/// Does what a request asks for.
pub async fn write(shared: Arc<Shared>, request: WriteRequest, options: Options) -> Result<pb::WriteResponse, Status> {
    let (pieces, _room) = outcomes(&shared, request, options)
        .await
        .map_err(|e| errors::status(&e))?;
    let tried: usize = pieces.iter().map(|p| p.tried).sum();
    let told = move || answer(pieces, tried, options);
    let told = decoding::aside(tried > MANY, told).await;
    told.map_err(|e| errors::status(&e))?
}

/// What is told of a batch of so many updates.
#[allow(clippy::result_large_err, reason = "the error is what gRPC sends")]
fn answer(pieces: Vec<Piece>, tried: usize, options: Options) -> Result<pb::WriteResponse, Status> {
    let statuses: Vec<UpdateStatus> = pieces.into_iter().flat_map(|p| p.statuses).collect();
    let has_failed = statuses.iter().any(|o| o.error.canonical_code != 0);
    if has_failed {
        let last = statuses.last().map_or(0, |o| o.at + 1);
        let most = errors::max_encoded(options.error_bytes);
        let first = statuses.iter().find(|o| o.error.canonical_code != 0);
        if let Some(first) = first.filter(|o| o.at >= most) {
            let error = errors::with_number(first.at, first.error.clone());
            return Err(batch_status("Write Error Status", vec![error], options.error_bytes));
        }
        let mut errors = vec![pb::Error::default(); last.min(most)];
        for one in statuses {
            if let Some(error) = errors.get_mut(one.at) {
                *error = one.error;
            }
        }
        return Err(batch_status("Write Error Status", errors, options.error_bytes));
    }
    if options.error_in_resp {
        let mut status = vec![pb::Error::default(); tried];
        for one in statuses {
            status[one.at] = one.error;
        }
        return Ok(pb::WriteResponse { status });
    }
    // Without the flag there are only statuses of updates that have become others.
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
/// `Error::code` of a deletion of what was not there, where that is no failure: that of NOT_FOUND.
const ABSENT: i32 = 5;

/// What is told of an outcome that is not plain success.
fn update_error(
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

/// Says what updates are, by the program.
struct Resolver {
    updates: Arc<EncodedList>,
    schema: Arc<Schema>,
    is_shared: bool,
    scopes: Scopes,
    target: Option<pb::TargetDevice>,
    /// Reads what a large batch mostly consists of.
    reader: wire::Reader,
}

/// What is known of a batch before anybody waits for it.
struct Prepared {
    resolver: Resolver,
    /// It may change ports or attributes.
    may_set: bool,
    /// What the updates are, of a huge batch.
    steps: Option<Vec<Step>>,
}

/// Resolves updates and gives them to the switch.
struct Submission {
    shared: Arc<Shared>,
    plane: Arc<dyn DataPlane>,
    resolver: Resolver,
    /// Those that were resolved before.
    resolved: Option<std::vec::IntoIter<Step>>,
    continue_on_error: bool,
    ignore_not_found: bool,
    settings: Settings,
    attributes: Attributes,
    reporter: Arc<Mutex<Reporter>>,
    /// Ports and attributes have been changed.
    has_settings: bool,
}

impl Resolver {
    /// What the updates with these numbers are.
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
        let mut step = match decoding::element::<pb::Update>(&self.updates, update) {
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

impl Prepared {
    /// Looks at a batch.
    fn new(mut resolver: Resolver) -> Self {
        let may_set = wire::may_any_change_settings(&resolver.schema, resolver.updates.iter());
        let many = resolver.updates.len();
        let is_huge = resolver.updates.message_len() > HUGE || many > HUGE_BATCH;
        let steps = is_huge.then(|| resolver.steps(0..many));
        Prepared {
            resolver,
            may_set,
            steps,
        }
    }
}

impl Submission {
    /// Resolves the updates with these numbers, unless that has been done, and gives them to the
    /// switch.
    ///
    /// # Errors
    /// They are to be done at once, and cost too much for that.
    fn submit(&mut self, numbers: Range<usize>) -> Result<Vec<Pending>, Refusal> {
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
        let pace = Pace::of(steps.iter().map(|s| effort(schema, s)));
        let pace = match self.continue_on_error {
            true => pace,
            false => pace.at_once(self.shared.config.max_atomic_updates)?,
        };
        let mut pending = Vec::with_capacity(pace.steps.len());
        for step in pace.steps {
            let rest = steps.split_off(step);
            pending.push(self.give(first, steps, pace.length));
            first += step;
            steps = rest;
        }
        Ok(pending)
    }

    /// Gives changes to the switch, the first of which has this number in the batch.
    fn give(&self, first: usize, steps: Vec<Step>, length: Length) -> Pending {
        let (schema, reporter) = (Arc::clone(&self.resolver.schema), Arc::clone(&self.reporter));
        let policy = (
            self.continue_on_error,
            self.ignore_not_found,
            self.shared.config.max_atomic_updates,
        );
        let done = gather_with(&*self.plane, length, steps, move |replica, switch, mut steps| {
            let outcomes: Outcomes = apply_all(switch, replica, &schema, &mut steps, policy);
            // All replicas say the same.
            if replica != 0 {
                return None;
            }
            let mut reporter = lock(&reporter);
            let statuses = outcomes
                .iter()
                .zip(steps.all())
                .enumerate()
                .filter_map(|(at, (outcome, step))| {
                    let error = update_error(&mut reporter, &schema, step, outcome)?;
                    Some(UpdateStatus { at: first + at, error })
                });
            Some(Piece {
                statuses: statuses.collect(),
                tried: outcomes.len(),
            })
        });
        Box::pin(async move { done.await?.into_iter().next().flatten().ok_or(Gone) })
    }
}

/// Members that a group is given.
fn members(state: &GroupState) -> usize {
    state.members.as_ref().map_or(0, Vec::len)
}

/// What a change costs the switch.
fn effort(schema: &Schema, step: &Step) -> Effort {
    use Change::{DeleteEntry, InsertEntry, ModifyEntry, UpsertEntry};
    let matches = match &step.change {
        Err(_) => return Effort::Entry,
        Ok(InsertEntry(new, _) | UpsertEntry(new, _)) => &*new.matches,
        Ok(ModifyEntry(EntryRef::Key { matches, .. }, _) | DeleteEntry(EntryRef::Key { matches, .. })) => matches,
        // By its handle, which says nothing of it.
        Ok(ModifyEntry(..) | DeleteEntry(_)) => &[],
        Ok(Change::Fixed(op, row)) => return row.effort(*op),
        Ok(Change::SetGroup(how, _, state)) => return Effort::list(members(state), *how == WriteMode::Insert),
        Ok(Change::GroupMembers(_, _, state)) => return Effort::list(members(state), false),
        Ok(_) => return Effort::Any,
    };
    let is_ranked = step.table.is_some_and(|at| match &schema.tables[at].kind {
        Kind::Match(of) => of.is_ranked,
        _ => false,
    });
    if is_ranked {
        Effort::Ranked
    } else {
        Effort::entry(matches)
    }
}

/// What became of the updates, and the room that they have.
type Tried<'a> = (Vec<Piece>, Option<Room<'a>>);

/// What becomes of every update, or why none was looked at.
async fn outcomes(shared: &Arc<Shared>, request: WriteRequest, options: Options) -> Result<Tried<'_>, Refusal> {
    let WriteRequest {
        rest: request,
        list: updates,
    } = request;
    Bounds::write(shared.config.max_updates).check(&updates)?;
    let atomicity = Atomicity::try_from(request.atomicity)
        .map_err(|_| Refusal::malformed("there is no such atomicity; use CONTINUE_ON_ERROR or one of the others"))?;
    if let Some(target) = &request.target {
        shared.check_device(target.device_id)?;
    }
    shared.device.check_state()?;
    let continue_on_error = atomicity == Atomicity::ContinueOnError;
    if !continue_on_error {
        check_at_once(updates.len(), shared.config.max_atomic_updates)?;
    }
    let room = shared.device.batches.room(updates.len()).await;
    let updates = Arc::new(updates);
    let (is_large, is_long) = (decoding::is_large(&updates), updates.message_len() > LONG);
    let mut prepared: Option<Prepared> = None;
    let (prepared, _turn, pipelines) = loop {
        let turn = shared.device.turns.write().await;
        let pipelines = shared.device.pipelines.read().await;
        let Addressed { program, is_shared } =
            shared.addressed(pipelines.current()?, &request.p4_name, request.client_id)?;
        // Another program may have come meanwhile.
        let is_same = |of: &Resolver| Arc::ptr_eq(&of.schema, &program.schema) && of.is_shared == is_shared;
        if let Some(prepared) = prepared.filter(|p| is_same(&p.resolver)) {
            break (prepared, turn, pipelines);
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
            break (Prepared::new(resolver), turn, pipelines);
        }
        drop((turn, pipelines));
        prepared = Some(decoding::aside(true, || Prepared::new(resolver)).await?);
    };
    let pipeline = pipelines.current()?;
    // Held where ports or attributes may be changed, so that nobody else changes them in between.
    let settings_lock = match prepared.may_set {
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
        .flat_map(|p: &Piece| &p.statuses)
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
    shared.device.kept().await?;
    Ok((pieces, room))
}

/// Resolves so many updates and gives them to the switch, some pieces at a time, so that others
/// come in between where it takes long. What became of them.
async fn submit(mut submission: Submission, many: usize, is_large: bool) -> Result<(Submission, Vec<Piece>), Refusal> {
    let shared = Arc::clone(&submission.shared);
    let size = if submission.continue_on_error {
        PIECE
    } else {
        many.max(1)
    };
    let starts: Vec<usize> = (0..many).step_by(size).collect();
    let mut parts = starts.chunks(PART).map(<[usize]>::to_vec);
    let mut pieces = Vec::with_capacity(starts.len());
    let mut given: Vec<Pending> = Vec::new();
    let mut giving = Giving::begin(&shared.device.orders).await;
    while let Some(part) = parts.next() {
        let resolve = move || {
            let mut pending = Vec::with_capacity(part.len());
            for start in part {
                pending.extend(submission.submit(start..many.min(start + size))?);
            }
            Ok((submission, pending))
        };
        let next;
        (submission, next) = decoding::aside_at_once::<Result<_, Refusal>>(is_large, resolve).await??;
        for piece in std::mem::replace(&mut given, next) {
            pieces.push(piece.await?);
        }
        if parts.len() > 0 {
            giving.pause().await;
        }
    }
    drop(giving);
    for piece in given {
        pieces.push(piece.await?);
    }
    Ok((submission, pieces))
}

/// Ports that come up or go down by new settings.
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
