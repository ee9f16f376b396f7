//! What the Read RPCs of both protocols share.
//!
//! What fits into one chunk is read in one step of the switch, whatever else goes on. What does not is read chunk by chunk, and no
//! Write begins meanwhile, so that a Read never shows half of one. Writes do not wait for ever: a Read that keeps one waiting has
//! little time.

use crate::dataplane::{Gone, gather};
use crate::device::{Device, Pipeline};
use crate::refusal::Refusal;
use crate::turns::Turns;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use tonic::Status;
use weir_switch::Switch;

/// The queries of a request, shared by the steps that read them.
pub(crate) trait Queries: Send + Sync + Sized + 'static {
    /// What they find.
    type Entity: Send + 'static;
    /// A place in what one asks for.
    type Place: Copy + Default + Send + Sync + 'static;

    fn count(&self) -> usize;

    /// Whether replicas of the switch differ in what is found.
    fn differ(&self) -> bool;

    /// One step of a replica: the queries before `end`, as far as there is room for what they find.
    fn step(&self, switch: &Switch, from: Position<Self>, end: usize) -> Step<Self>;

    /// Adds what another replica has found.
    fn merge(&self, whole: &mut Vec<Self::Entity>, other: &[Self::Entity]);
}

/// Where a Read goes on: the query, and the place in what it asks for.
pub(crate) type Position<Q> = (usize, <Q as Queries>::Place);

/// Queries that were refused.
pub(crate) type Refused = Vec<(usize, Refusal)>;

/// What one step has read.
pub(crate) struct Step<Q: Queries> {
    pub entities: Vec<Q::Entity>,
    /// How many that are, where one holds several.
    pub count: usize,
    pub refused: Refused,
    pub next: Option<Position<Q>>,
}

/// Where the entities go.
pub(crate) trait Answer<E> {
    fn add(&mut self, entities: Vec<E>) -> impl Future<Output = Result<(), Refusal>> + Send;
}

/// What one step of the switch may find, and look at: where few entries are wanted, packets wait for the looking.
pub(crate) struct Room {
    most: usize,
    looks: usize,
}

impl Room {
    /// Entries that may be looked at for each that there is room for.
    const LOOKS: usize = 16;

    /// For so many, at least one.
    pub fn for_entities(most: usize) -> Self {
        let most = most.max(1);
        Room {
            most,
            looks: most.saturating_mul(Self::LOOKS),
        }
    }

    /// Whether there is none for more than were found.
    pub fn is_full(&self, found: usize) -> bool {
        found >= self.most
    }

    /// Looks at an entry, wanted or not; false where enough have been looked at.
    pub fn look(&mut self) -> bool {
        let left = self.looks.checked_sub(1);
        self.looks = left.unwrap_or(0);
        left.is_some()
    }
}

/// Queries of one step: each looks for something.
const QUERIES: usize = 256;

/// How long a Read may have the state to itself without finding anything; a second more for each 50,000 entities that it finds.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads one query after the other until there is no more room; `read` says where one goes on then.
pub(crate) fn each<P: Default>(
    (first, mut place): (usize, P),
    end: usize,
    mut read: impl FnMut(usize, P) -> Result<Option<P>, Refusal>,
) -> (Refused, Option<(usize, P)>) {
    let mut refused = Vec::new();
    for number in first..end {
        if number - first == QUERIES {
            return (refused, Some((number, place)));
        }
        match read(number, place) {
            Ok(None) => {}
            Ok(Some(more)) => return (refused, Some((number, more))),
            Err(refusal) => refused.push((number, refusal)),
        }
        place = P::default();
    }
    (refused, None)
}

/// A step of all replicas, as one. The replicas have been asked when this returns.
fn step<Q: Queries>(
    queries: &Arc<Q>,
    pipeline: &Pipeline,
    from: Position<Q>,
) -> impl Future<Output = Result<Step<Q>, Refusal>> + Send + use<Q> {
    // What nobody waits for any more when its turn comes is not read.
    let asked = Arc::downgrade(queries);
    let steps = gather(&*pipeline.plane, move |replica, switch| {
        let asked = asked.upgrade()?;
        // The first replica has everything that does not differ.
        let end = if replica == 0 || asked.differ() {
            asked.count()
        } else {
            0
        };
        Some(asked.step(switch, from, end))
    });
    let queries = Arc::clone(queries);
    async move {
        let mut steps = steps.await?.into_iter().flatten();
        let mut whole = steps.next().ok_or(Gone)?;
        if queries.differ() {
            steps.for_each(|other| queries.merge(&mut whole.entities, &other.entities));
        }
        Ok(whole)
    }
}

/// Does the work of a Read as long as somebody waits for what goes `out`; `None`: nobody does any more.
pub(crate) async fn while_wanted<T, M>(out: &Sender<M>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = out.closed() => None,
        done = work => Some(done),
    }
}

/// Reads all, and adds it to an answer. What was asked of the program that was read, and which of it was refused.
pub(crate) async fn read<Q: Queries>(
    device: &Device,
    queries: impl Fn(&Pipeline) -> Result<Q, Refusal>,
    answer: &mut impl Answer<Q::Entity>,
) -> Result<(Arc<Q>, Refused), Refusal> {
    let begin = Position::<Q>::default();
    let (short, asked) = {
        let pipelines = device.pipelines.read().await;
        let pipeline = pipelines.current()?;
        let asked = Arc::new(queries(pipeline)?);
        // Not between the orders of somebody else's Write.
        let turn = device.orders.lock().await;
        let short = step(&asked, pipeline, begin);
        drop(turn);
        (short.await?, asked)
    };
    if short.next.is_none() {
        answer.add(short.entities).await?;
        return Ok((asked, short.refused));
    }
    // From the beginning again, while nobody writes.
    let _turn = device.turns.read().await;
    let pipelines = device.pipelines.read().await;
    let pipeline = pipelines.current()?;
    let asked = Arc::new(queries(pipeline)?);
    let mut refused = Vec::new();
    let mut left = PATIENCE;
    let mut coming = Some(step(&asked, pipeline, begin));
    while let Some(found) = coming {
        let asked_at = Instant::now();
        let found = found.await?;
        left += Duration::from_secs_f64(found.count as f64 / RATE);
        left = left.checked_sub(asked_at.elapsed()).ok_or_else(|| {
            Refusal::too_slow(
                "the queries look at too many entries for the few they find, and others wait; ask for less at a time",
            )
        })?;
        // The switch reads on while this is sent.
        coming = found.next.map(|from| step(&asked, pipeline, from));
        answer.add(found.entities).await?;
        refused.extend(found.refused);
    }
    Ok((asked, refused))
}

/// Entries that a reader has to take in a second, once its patience is used up.
const RATE: f64 = 50_000.0;

/// Where messages of an answer go.
///
/// A reader may take so long for one message, and in all as long again and a second for each 50,000 entries; while others wait to
/// write, in all just so long.
pub(crate) struct Recipient<'a, T> {
    out: &'a Sender<Result<T, Status>>,
    turns: &'a Turns,
    patience: Duration,
    /// What is left of the time in all.
    left: Duration,
    /// What is left of the time in which others wait.
    left_to_others: Duration,
}

/// How often it is seen whether others wait.
const LOOK: Duration = Duration::from_millis(50);

impl<'a, T> Recipient<'a, T> {
    /// Whether nobody waits for the answer any more.
    pub fn is_gone(&self) -> bool {
        self.out.is_closed()
    }

    pub fn new(out: &'a Sender<Result<T, Status>>, turns: &'a Turns, patience: Duration) -> Self {
        Recipient {
            out,
            turns,
            patience,
            left: patience,
            left_to_others: patience,
        }
    }

    /// Sends a message with so many entries.
    ///
    /// # Errors
    /// The reader does not take it in time, or has gone.
    pub async fn send(&mut self, message: T, entries: usize) -> Result<(), Refusal> {
        self.left += Duration::from_secs_f64(entries as f64 / RATE);
        let mut of_this = self.patience;
        loop {
            let begin = Instant::now();
            let slice = LOOK.min(of_this).min(self.left).min(self.left_to_others);
            let room = tokio::time::timeout(slice, self.out.reserve()).await;
            let took = begin.elapsed();
            self.left = self.left.saturating_sub(took);
            of_this = of_this.saturating_sub(took);
            if self.turns.is_waited_for() {
                self.left_to_others = self.left_to_others.saturating_sub(took);
            }
            match room {
                Ok(Ok(room)) => {
                    room.send(Ok(message));
                    return Ok(());
                }
                Ok(Err(_)) => return Err(Refusal::gone("the client has gone")),
                Err(_) if of_this.min(self.left).min(self.left_to_others).is_zero() => {
                    return Err(Refusal::too_slow("the reader is too slow; others wait to write"));
                }
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_so_many_queries() {
        let (mut position, mut steps, mut read) = ((0, 0_u64), Vec::new(), Vec::new());
        loop {
            let (refused, next) = each(position, 600, |number, place| {
                read.push((number, place));
                match (number, place) {
                    (7, 0) => Ok(Some(3)),
                    (9, _) => Err(Refusal::not_found("nine")),
                    _ => Ok(None),
                }
            });
            steps.push((refused.len(), read.len()));
            let Some(next) = next else { break };
            position = next;
        }
        // The seventh goes on in a step of its own.
        assert_eq!(steps, [(0, 8), (1, 8 + QUERIES), (0, 8 + 2 * QUERIES), (0, 601)]);
        assert_eq!(read[7..9], [(7, 0), (7, 3)]);
        assert_eq!(read[600], (599, 0));
    }

    #[tokio::test]
    async fn a_read_whose_client_has_gone_keeps_nothing_while_it_waits() {
        let turns = Turns::default();
        let _others = turns.write().await;
        let (out, taken) = tokio::sync::mpsc::channel::<()>(1);
        let request = Arc::new(());
        let held = Arc::downgrade(&request);
        let read = tokio::spawn(async move {
            while_wanted(&out, async {
                let _turn = turns.read().await;
                drop(request);
            })
            .await
        });
        tokio::task::yield_now().await;
        assert!(held.upgrade().is_some() && !read.is_finished());
        drop(taken);
        assert_eq!(read.await.ok(), Some(None));
        assert!(held.upgrade().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn readers_who_take_each_message_late_are_ended_and_those_with_many_entries_are_not() {
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
            let turns = Turns::default();
            let mut reader = Recipient::new(&out, &turns, Duration::from_secs(2));
            for _ in 0..20 {
                if reader.send((), entries).await.is_err() {
                    break;
                }
            }
            drop(out);
            let messages = reads.await.expect("reads");
            assert!(messages >= 2 && (messages == 20) == is_in_time, "{messages}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_of_many_entries_has_little_time_while_others_wait_to_write() {
        for is_waited_for in [false, true] {
            let turns = Turns::default();
            let _reads = turns.read().await;
            let (out, mut taken) = tokio::sync::mpsc::channel(1);
            tokio::spawn(async move {
                while taken.recv().await.is_some() {
                    tokio::time::sleep(Duration::from_millis(700)).await
                }
            });
            let mut reader = Recipient::new(&out, &turns, Duration::from_secs(2));
            let mut sent = 0;
            let sends = async {
                while sent < 20 && reader.send((), 100_000).await.is_ok() {
                    sent += 1;
                }
            };
            match is_waited_for {
                true => tokio::select! { () = sends => {}, _ = turns.write() => {} },
                false => sends.await,
            }
            assert_eq!(sent, if is_waited_for { 4 } else { 20 });
        }
    }
}
