//! What the Read RPCs of both protocols share.
//!
//! What fits into one chunk is read in one step of the switch, whatever else goes on. What does not
//! is read chunk by chunk, and no Write begins meanwhile, so that a Read never shows half of one.
//! Writes do not wait for ever: a Read that keeps one waiting has little time, however fast it is.

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
    /// What they cost.
    pub cost: usize,
    pub refused: Refused,
    pub next: Option<Position<Q>>,
}

/// Where the entities go.
pub(crate) trait Answer<E> {
    /// Adds entities that cost so much.
    fn add(&mut self, entities: Vec<E>, cost: usize) -> impl Future<Output = Result<(), Refusal>> + Send;
}

/// What one step of the switch may find, and look at: where few entries are wanted, packets wait
/// for the looking.
///
/// Both are counted in plain entries: a group costs what its members would.
pub(crate) struct Room {
    most: usize,
    taken: usize,
    looks: usize,
}

/// Bytes that cost as much as a plain entry.
const BYTES: usize = 64;

/// What so many bytes cost that are told as they are.
pub(crate) fn cost_of_bytes(bytes: usize) -> usize {
    bytes / BYTES
}

impl Room {
    /// Entries that may be looked at for each that there is room for.
    pub const LOOKS: usize = 16;

    /// For so many plain entries, at least one.
    pub fn for_entities(most: usize) -> Self {
        let most = most.max(1);
        Room {
            most,
            taken: 0,
            looks: most.saturating_mul(Self::LOOKS),
        }
    }

    /// Whether there is none for more than was found.
    pub fn is_full(&self) -> bool {
        self.taken >= self.most
    }

    /// Takes room for what was found. The last may take more than there is: what it finds is told
    /// as a whole.
    pub fn take(&mut self, cost: usize) {
        self.taken = self.taken.saturating_add(cost);
    }

    /// What all cost that was found.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Looks at an entry, wanted or not, which costs so much; false where enough has been looked
    /// at.
    pub fn look(&mut self, cost: usize) -> bool {
        let is_room = self.looks > 0;
        self.looks = self.looks.saturating_sub(cost);
        is_room
    }
}

/// Queries of one step: each looks for something.
const QUERIES: usize = 256;

/// How long a Read may have the state to itself without finding anything; a second more for each
/// 50,000 plain entries that it finds.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads one query after the other until there is no more room in what is `found`; `read` says
/// where one goes on then.
pub(crate) fn each<P: Default, F: AsRef<Room>>(
    (first, mut place): (usize, P),
    end: usize,
    found: &mut F,
    mut read: impl FnMut(usize, P, &mut F) -> Result<Option<P>, Refusal>,
) -> (Refused, Option<(usize, P)>) {
    let mut refused = Vec::new();
    for number in first..end {
        if number - first == QUERIES || (*found).as_ref().is_full() {
            return (refused, Some((number, place)));
        }
        match read(number, place, found) {
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

/// Does the work of a Read as long as somebody waits for what goes `out`; `None`: nobody does any
/// more.
pub(crate) async fn while_wanted<T, M>(out: &Sender<M>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = out.closed() => None,
        done = work => Some(done),
    }
}

/// Reads all, and adds it to an answer. What was asked of the program that was read, and which of
/// it was refused. `patience`: how long others may wait for it.
pub(crate) async fn read<Q: Queries>(
    device: &Device,
    patience: Duration,
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
        answer.add(short.entities, short.cost).await?;
        return Ok((asked, short.refused));
    }
    // From the beginning again, while nobody writes.
    let turn = device.turns.read().await;
    tokio::select! {
        biased;
        done = read_long(device, queries, answer) => done,
        () = device.turns.is_overdue(&turn, patience) => Err(Refusal::too_slow(
            "others have waited to write for as long as a Read may keep them; ask for less at a time, or take the answer faster",
        )),
    }
}

/// Reads all, step by step, while nobody writes.
async fn read_long<Q: Queries>(
    device: &Device,
    queries: impl Fn(&Pipeline) -> Result<Q, Refusal>,
    answer: &mut impl Answer<Q::Entity>,
) -> Result<(Arc<Q>, Refused), Refusal> {
    let pipelines = device.pipelines.read().await;
    let pipeline = pipelines.current()?;
    let asked = Arc::new(queries(pipeline)?);
    let mut refused = Vec::new();
    let mut left = PATIENCE;
    let mut coming = Some(step(&asked, pipeline, Position::<Q>::default()));
    while let Some(found) = coming {
        let asked_at = Instant::now();
        let found = found.await?;
        left += Duration::from_secs_f64(found.cost as f64 / RATE);
        left = left.checked_sub(asked_at.elapsed()).ok_or_else(|| {
            Refusal::too_slow(
                "the queries look at too many entries for the few they find, and others wait; ask for less at a time",
            )
        })?;
        // The switch reads on while this is sent.
        coming = found.next.map(|from| step(&asked, pipeline, from));
        answer.add(found.entities, found.cost).await?;
        refused.extend(found.refused);
        // The thread is everybody's, and what was found is found faster than it is told.
        tokio::task::yield_now().await;
    }
    Ok((asked, refused))
}

/// Entries that a reader has to take in a second, once its patience is used up.
const RATE: f64 = 50_000.0;

/// Where messages of an answer go.
///
/// A reader may take so long for one message, and in all as long again and a second for each 50,000
/// plain entries.
pub(crate) struct Recipient<'a, T> {
    out: &'a Sender<Result<T, Status>>,
    patience: Duration,
    /// What is left of the time in all.
    left: Duration,
}

impl<'a, T> Recipient<'a, T> {
    /// Whether nobody waits for the answer any more.
    pub fn is_gone(&self) -> bool {
        self.out.is_closed()
    }

    pub fn new(out: &'a Sender<Result<T, Status>>, patience: Duration) -> Self {
        Recipient {
            out,
            patience,
            left: patience,
        }
    }

    /// Sends a message that costs so much, once so many others would have room beside those that
    /// wait.
    ///
    /// # Errors
    /// The reader does not take it in time, or has gone.
    pub async fn send(&mut self, message: T, cost: usize, places: usize) -> Result<(), Refusal> {
        self.left += Duration::from_secs_f64(cost as f64 / RATE);
        let begin = Instant::now();
        let places = places.clamp(1, self.out.max_capacity());
        let room = tokio::time::timeout(self.patience.min(self.left), self.out.reserve_many(places)).await;
        self.left = self.left.saturating_sub(begin.elapsed());
        match room {
            Ok(Ok(mut room)) => {
                if let Some(place) = room.next() {
                    place.send(Ok(message));
                }
                Ok(())
            }
            Ok(Err(_)) => Err(Refusal::gone("the client has gone")),
            Err(_) => Err(Refusal::too_slow("the reader is too slow; others wait to write")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Found(Room);

    impl AsRef<Room> for Found {
        fn as_ref(&self) -> &Room {
            &self.0
        }
    }

    #[test]
    fn a_step_ends_with_the_query_that_fills_it() {
        let (mut position, mut steps) = ((0, 0_u64), Vec::new());
        loop {
            let mut found = Found(Room::for_entities(10));
            let (_, next) = each(position, 9, &mut found, |number, _, found| {
                // The third finds as much as many.
                found.0.take(if number == 3 { 1000 } else { 4 });
                Ok(None)
            });
            steps.push(found.0.taken());
            let Some(next) = next else { break };
            position = next;
        }
        assert_eq!(steps, [12, 1000, 12, 8]);
    }

    #[test]
    fn a_step_has_so_many_queries() {
        let (mut position, mut steps, mut read) = ((0, 0_u64), Vec::new(), Vec::new());
        loop {
            let mut found = Found(Room::for_entities(1000));
            let (refused, next) = each(position, 600, &mut found, |number, place, _| {
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
        let turns = crate::turns::Turns::default();
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
            let mut reader = Recipient::new(&out, Duration::from_secs(2));
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
    async fn a_large_message_waits_for_the_place_of_many() {
        let (out, mut taken) = tokio::sync::mpsc::channel(4);
        let mut reader = Recipient::new(&out, Duration::from_secs(60));
        for number in 0..2 {
            assert_eq!(reader.send(number, 1, 1).await, Ok(()));
        }
        // As much as there is in all, where it wants more.
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
