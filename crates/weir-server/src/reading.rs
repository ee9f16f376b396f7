//! Executes Reads, for both protocols, in steps: each step is one command of the switch.
//!
//! A Read first tries a single step, between the commands of Writes. If that does not suffice, it
//! starts again in a phase of Reads ([`crate::phases`]), so that it never shows half of a Write. A
//! step is bounded in queries, results and visited entries ([`StepBudget`]), since packets wait for
//! it. A Read is aborted if it takes longer than its results justify, if a Write has waited too
//! long for it, or if its client has left. The step budget limits time, not memory as the other
//! budgets do.
//!
//! The protocols supply the queries ([`Queries`]) and send the results ([`EntitySink`]). This
//! module knows neither their messages nor their tables.

use crate::dataplane::{Gone, gather};
use crate::device::{Device, Pipeline};
use crate::refusal::Refusal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use tonic::Status;
use weir_switch::Switch;

/// The queries of a request, shared by the steps that read them.
pub(crate) trait Queries: Send + Sync + Sized + 'static {
    /// A result.
    type Entity: Send + 'static;
    /// A position within the results of one query.
    type Cursor: Copy + Default + Send + Sync + 'static;

    /// The number of queries.
    fn count(&self) -> usize;

    /// Whether results differ between replicas, as those with counters do.
    fn differ_between_replicas(&self) -> bool;

    /// One step on a replica: the queries from `from` to `end`, within the budget of a step.
    fn step(&self, switch: &Switch, from: Position<Self>, end: usize) -> ReadStep<Self>;

    /// Adds the results of another replica to those in `whole`.
    fn merge(&self, whole: &mut Vec<Self::Entity>, other: &[Self::Entity]);
}

/// Where the next step of a Read continues: the query, and the cursor within it.
pub(crate) type Position<Q> = (usize, <Q as Queries>::Cursor);

/// Refused queries: their numbers, and why.
pub(crate) type Refused = Vec<(usize, Refusal)>;

/// The result of one step.
pub(crate) struct ReadStep<Q: Queries> {
    /// The results.
    pub entities: Vec<Q::Entity>,
    /// The cost of the entities in plain entries.
    pub cost: usize,
    /// The queries that were refused in this step.
    pub refused: Refused,
    /// Where the next step continues; `None` after the last.
    pub next: Option<Position<Q>>,
}

/// Sends the entities that a Read finds.
pub(crate) trait EntitySink<E> {
    /// Adds entities that cost as much as `cost` plain entries.
    fn add(&mut self, entities: Vec<E>, cost: usize) -> impl Future<Output = Result<(), Refusal>> + Send;
}

/// The budget of one step: how much it may find, and how many entries it may visit. Packets wait
/// for a step, even if few of the visited entries match.
///
/// Both are counted in plain entries; a group counts as its members.
pub(crate) struct StepBudget {
    /// The cost of results at which the step ends.
    max_cost: usize,
    /// The cost of the results so far.
    charged: usize,
    /// Entries that may still be visited.
    visits_left: usize,
}

/// Bytes that cost as much as a plain entry.
const BYTES_PER_ENTRY: usize = 64;

/// The cost of bytes that are sent as they are stored.
pub(crate) fn cost_of_bytes(bytes: usize) -> usize {
    bytes / BYTES_PER_ENTRY
}

impl StepBudget {
    /// Entries that may be visited for each that may be found.
    pub const VISITS_PER_ENTRY: usize = 16;

    /// A budget of `max_cost` plain entries, at least one.
    pub fn with_max_cost(max_cost: usize) -> Self {
        let max_cost = max_cost.max(1);
        StepBudget {
            max_cost,
            charged: 0,
            visits_left: max_cost.saturating_mul(Self::VISITS_PER_ENTRY),
        }
    }

    /// Whether the step may find no more.
    pub fn is_full(&self) -> bool {
        self.charged >= self.max_cost
    }

    /// Charges a result. The last one may exceed the budget, since a result is not split.
    pub fn charge(&mut self, cost: usize) {
        self.charged = self.charged.saturating_add(cost);
    }

    /// The cost of all results.
    pub fn charged(&self) -> usize {
        self.charged
    }

    /// Charges a visit of an entry, whether or not it matches. False if no visits are left.
    pub fn visit(&mut self, cost: usize) -> bool {
        let may_visit = self.visits_left > 0;
        self.visits_left = self.visits_left.saturating_sub(cost);
        may_visit
    }
}

/// The most queries of one step.
const MAX_QUERIES_PER_STEP: usize = 256;

/// How long the steps of a Read may take without results. Each [`MIN_ENTRIES_PER_SECOND`] plain
/// entries found add a second.
const BASE_TIME_ALLOWANCE: Duration = Duration::from_secs(2);

/// Runs one query after the other with `read`, which adds results to `portion`, until the budget of
/// `portion` is used up. Returns the refused queries, and where to continue.
pub(crate) fn run_queries<C: Default, Portion: AsRef<StepBudget>>(
    (first, mut cursor): (usize, C),
    end: usize,
    portion: &mut Portion,
    mut read: impl FnMut(usize, C, &mut Portion) -> Result<Option<C>, Refusal>,
) -> (Refused, Option<(usize, C)>) {
    let mut refused = Vec::new();
    for number in first..end {
        if number - first == MAX_QUERIES_PER_STEP || (*portion).as_ref().is_full() {
            return (refused, Some((number, cursor)));
        }
        match read(number, cursor, portion) {
            Ok(None) => {}
            Ok(Some(more)) => return (refused, Some((number, more))),
            Err(refusal) => refused.push((number, refusal)),
        }
        cursor = C::default();
    }
    (refused, None)
}

/// A step on all replicas, merged. The command has been submitted when this returns.
fn step<Q: Queries>(
    queries: &Arc<Q>,
    pipeline: &Pipeline,
    from: Position<Q>,
) -> impl Future<Output = Result<ReadStep<Q>, Refusal>> + Send + use<Q> {
    // If the Read was dropped before the command is executed, nothing is read.
    let weak_queries = Arc::downgrade(queries);
    let steps = gather(&*pipeline.plane, move |replica, switch| {
        let queries = weak_queries.upgrade()?;
        // Results that do not differ are read from the first replica only.
        let end = if replica == 0 || queries.differ_between_replicas() {
            queries.count()
        } else {
            0
        };
        Some(queries.step(switch, from, end))
    });
    let queries = Arc::clone(queries);
    async move {
        let mut steps = steps.await?.into_iter().flatten();
        let mut whole = steps.next().ok_or(Gone)?;
        if queries.differ_between_replicas() {
            steps.for_each(|other| queries.merge(&mut whole.entities, &other.entities));
        }
        Ok(whole)
    }
}

/// Does work until it is done or the receiver of `out` is gone: `None`.
pub(crate) async fn until_closed<T, M>(out: &Sender<M>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = out.closed() => None,
        done = work => Some(done),
    }
}

/// Executes a Read and sends the results to `sink`. Returns the queries, resolved for the program
/// that was read, and those that were refused. `max_write_wait`: how long Writes may wait for the
/// Read before it is aborted.
pub(crate) async fn read<Q: Queries>(
    device: &Device,
    max_write_wait: Duration,
    resolve: impl Fn(&Pipeline) -> Result<Q, Refusal>,
    sink: &mut impl EntitySink<Q::Entity>,
) -> Result<(Arc<Q>, Refused), Refusal> {
    let begin = Position::<Q>::default();
    let (short, queries) = {
        let pipelines = device.pipelines.read().await;
        let pipeline = pipelines.current()?;
        let queries = Arc::new(resolve(pipeline)?);
        // Not between the commands of one Write.
        let guard = device.commands.lock().await;
        let short = step(&queries, pipeline, begin);
        drop(guard);
        (short.await?, queries)
    };
    if short.next.is_none() {
        sink.add(short.entities, short.cost).await?;
        return Ok((queries, short.refused));
    }
    // Start again, in a phase without Writes.
    let phase = device.phases.join_reads().await;
    tokio::select! {
        biased;
        done = read_long(device, resolve, sink) => done,
        () = device.phases.wait_until_overdue(&phase, max_write_wait) => Err(Refusal::too_slow(
            "others have waited to write for as long as a Read may keep them; ask for less at a time, or take the answer faster",
        )),
    }
}

/// Executes all steps of a Read, within a phase of Reads.
async fn read_long<Q: Queries>(
    device: &Device,
    resolve: impl Fn(&Pipeline) -> Result<Q, Refusal>,
    sink: &mut impl EntitySink<Q::Entity>,
) -> Result<(Arc<Q>, Refused), Refusal> {
    let pipelines = device.pipelines.read().await;
    let pipeline = pipelines.current()?;
    let queries = Arc::new(resolve(pipeline)?);
    let mut refused = Vec::new();
    let mut time_left = BASE_TIME_ALLOWANCE;
    let mut next_step = Some(step(&queries, pipeline, Position::<Q>::default()));
    while let Some(running) = next_step {
        let started = Instant::now();
        let finished = running.await?;
        time_left += Duration::from_secs_f64(finished.cost as f64 / MIN_ENTRIES_PER_SECOND);
        time_left = time_left.checked_sub(started.elapsed()).ok_or_else(|| {
            Refusal::too_slow(
                "the queries look at too many entries for the few they find, and others wait; ask for less at a time",
            )
        })?;
        // The switch executes the next step while this one is sent.
        next_step = finished.next.map(|from| step(&queries, pipeline, from));
        sink.add(finished.entities, finished.cost).await?;
        refused.extend(finished.refused);
        // Other clients share this thread, and reading is faster than sending.
        tokio::task::yield_now().await;
    }
    Ok((queries, refused))
}

/// The minimum rate of a Read: plain entries per second that it must find and its client accept.
const MIN_ENTRIES_PER_SECOND: f64 = 50_000.0;

/// Sends the messages of an answer to a client, which must accept them at a minimum rate.
///
/// A client may take `accept_timeout` to accept one message. For all messages it may take that
/// long, and a second per [`MIN_ENTRIES_PER_SECOND`] plain entries.
pub(crate) struct PacedSender<'a, T> {
    /// The queue to the transport.
    out: &'a Sender<Result<T, Status>>,
    /// How long the client may take to accept one message.
    accept_timeout: Duration,
    /// The time that is left for all messages.
    time_left: Duration,
}

impl<'a, T> PacedSender<'a, T> {
    /// Whether the client has disconnected.
    pub fn is_gone(&self) -> bool {
        self.out.is_closed()
    }

    pub fn new(out: &'a Sender<Result<T, Status>>, accept_timeout: Duration) -> Self {
        PacedSender {
            out,
            accept_timeout,
            time_left: accept_timeout,
        }
    }

    /// Sends a message that costs `cost` plain entries. It first waits until the queue has
    /// room for `capacity` messages, which is back-pressure for large ones.
    ///
    /// # Errors
    /// The client does not accept it in time, or has left.
    pub async fn send(&mut self, message: T, cost: usize, capacity: usize) -> Result<(), Refusal> {
        self.time_left += Duration::from_secs_f64(cost as f64 / MIN_ENTRIES_PER_SECOND);
        let begin = Instant::now();
        let capacity = capacity.clamp(1, self.out.max_capacity());
        let reserved =
            tokio::time::timeout(self.accept_timeout.min(self.time_left), self.out.reserve_many(capacity)).await;
        self.time_left = self.time_left.saturating_sub(begin.elapsed());
        match reserved {
            Ok(Ok(mut permits)) => {
                if let Some(permit) = permits.next() {
                    permit.send(Ok(message));
                }
                Ok(())
            }
            Ok(Err(_)) => Err(Refusal::unavailable("the client has gone")),
            Err(_) => Err(Refusal::too_slow("the reader is too slow; others wait to write")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Found(StepBudget);

    impl AsRef<StepBudget> for Found {
        fn as_ref(&self) -> &StepBudget {
            &self.0
        }
    }

    #[test]
    fn a_step_ends_with_the_query_that_fills_it() {
        let (mut position, mut steps) = ((0, 0_u64), Vec::new());
        loop {
            let mut found = Found(StepBudget::with_max_cost(10));
            let (_, next) = run_queries(position, 9, &mut found, |number, _, found| {
                // The query 3 finds more than a whole step may.
                found.0.charge(if number == 3 { 1000 } else { 4 });
                Ok(None)
            });
            steps.push(found.0.charged());
            let Some(next) = next else { break };
            position = next;
        }
        assert_eq!(steps, [12, 1000, 12, 8]);
    }

    #[test]
    fn a_step_has_a_limit_of_queries() {
        let (mut position, mut steps, mut read) = ((0, 0_u64), Vec::new(), Vec::new());
        loop {
            let mut found = Found(StepBudget::with_max_cost(1000));
            let (refused, next) = run_queries(position, 600, &mut found, |number, cursor, _| {
                read.push((number, cursor));
                match (number, cursor) {
                    (7, 0) => Ok(Some(3)),
                    (9, _) => Err(Refusal::not_found("nine")),
                    _ => Ok(None),
                }
            });
            steps.push((refused.len(), read.len()));
            let Some(next) = next else { break };
            position = next;
        }
        // Query 7 continues in a new step.
        assert_eq!(
            steps,
            [
                (0, 8),
                (1, 8 + MAX_QUERIES_PER_STEP),
                (0, 8 + 2 * MAX_QUERIES_PER_STEP),
                (0, 601)
            ]
        );
        assert_eq!(read[7..9], [(7, 0), (7, 3)]);
        assert_eq!(read[600], (599, 0));
    }

    #[tokio::test]
    async fn a_read_whose_client_has_left_holds_nothing_while_it_waits() {
        let phases = crate::phases::PhasedRwLock::default();
        let _others = phases.join_writes().await;
        let (out, taken) = tokio::sync::mpsc::channel::<()>(1);
        let request = Arc::new(());
        let kept = Arc::downgrade(&request);
        let read = tokio::spawn(async move {
            until_closed(&out, async {
                let _phase = phases.join_reads().await;
                drop(request);
            })
            .await
        });
        tokio::task::yield_now().await;
        assert!(kept.upgrade().is_some() && !read.is_finished());
        drop(taken);
        assert_eq!(read.await.ok(), Some(None));
        assert!(kept.upgrade().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn slow_clients_are_aborted_unless_they_read_many_entries() {
        for (entries, is_in_time) in [(1000, false), (100_000, true)] {
            let (out, mut taken) = tokio::sync::mpsc::channel(1);
            let reads = tokio::spawn(async move {
                let mut messages = 0;
                while taken.recv().await.is_some() {
                    messages += 1;
                    tokio::time::sleep(Duration::from_millis(1500)).await;
                }
                messages
            });
            let mut reader = PacedSender::new(&out, Duration::from_secs(2));
            for _ in 0..20 {
                if reader.send((), entries, 1).await.is_err() {
                    break;
                }
            }
            drop(out);
            let messages = reads.await.expect("reads");
            assert!(messages >= 2 && (messages == 20) == is_in_time, "{messages}");
        }
    }

    #[tokio::test]
    async fn a_large_message_waits_for_more_capacity() {
        let (out, mut taken) = tokio::sync::mpsc::channel(4);
        let mut reader = PacedSender::new(&out, Duration::from_secs(60));
        for number in 0..2 {
            assert_eq!(reader.send(number, 1, 1).await, Ok(()));
        }
        // It waits for the whole queue if it needs more than that.
        let mut large = std::pin::pin!(reader.send(2, 1, 9));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for number in 0..2 {
            assert!(large.as_mut().poll(&mut context).is_pending());
            assert_eq!(taken.recv().await.and_then(Result::ok), Some(number));
        }
        assert_eq!(large.await, Ok(()));
        assert_eq!(taken.recv().await.and_then(Result::ok), Some(2));
    }
}
