//! The database itself.

use super::outbox::{Batch, Key, Outbox};
use super::{Config, LinkState, MAX_SEQUENCE, Rejection};
use crate::time::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// A link that both ends announce, in one direction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link<N> {
    /// The IPC process that sends over the link.
    pub from: N,
    /// The IPC process that receives.
    pub to: N,
    /// The cost in this direction, at least 1.
    pub cost: u32,
}

/// Numbers of a database, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// States in the database, expired ones included.
    pub states: usize,
    /// States that were newer than those in the database.
    pub accepted: u64,
    /// States that were refused, by [`Rejection::index`].
    pub rejected: [u64; Rejection::COUNT],
    /// States that have been sent.
    pub sent: u64,
    /// Batches that were not acknowledged in time.
    pub retransmissions: u64,
    /// States that have expired.
    pub expired: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    cost: u32,
    sequence: u32,
    is_up: bool,
    /// The age at `at`.
    age: Duration,
    at: Time,
    is_expired: bool,
}

impl Entry {
    fn age(&self, now: Time) -> Duration {
        self.age.saturating_add(now.since(self.at))
    }

    fn is_usable(&self) -> bool {
        self.is_up && !self.is_expired
    }

    /// Which of two states with the same sequence number stays: a withdrawal before a link that is
    /// up, then the higher cost. All databases decide alike.
    fn precedence(&self) -> (bool, u32) {
        (!self.is_up, self.cost)
    }
}

/// The link states that an IPC process knows, and what its neighbours have yet to receive.
#[derive(Debug, Clone)]
pub struct Database<N> {
    own: N,
    config: Config,
    entries: BTreeMap<Key<N>, Entry>,
    /// The number of entries of each origin.
    of_origin: BTreeMap<N, usize>,
    outboxes: BTreeMap<N, Outbox<N>>,
    /// When the first entry has to be looked at, or earlier: a refreshed entry moves its own time
    /// only.
    due: Option<Time>,
    revision: u64,
    summary: Summary,
}

impl<N: Ord + Clone> Database<N> {
    /// The database of an IPC process without neighbours.
    #[must_use]
    pub fn new(own: N, config: Config) -> Self {
        Database {
            own,
            config,
            entries: BTreeMap::new(),
            of_origin: BTreeMap::new(),
            outboxes: BTreeMap::new(),
            due: None,
            revision: 0,
            summary: Summary::default(),
        }
    }

    /// A number that changes whenever the usable links do: routes have to be computed again.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Numbers for metrics.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            states: self.entries.len(),
            ..self.summary
        }
    }

    /// The neighbours.
    pub fn neighbours(&self) -> impl Iterator<Item = &N> {
        self.outboxes.keys()
    }

    /// Announces a link to an enrolled neighbour, or a new cost of it. A new neighbour gets the
    /// whole database. A cost of 0 is announced as 1.
    pub fn neighbour_up(&mut self, neighbour: N, cost: u32, now: Time) {
        if neighbour == self.own {
            return;
        }
        if !self.outboxes.contains_key(&neighbour) {
            let mut outbox = Outbox::new();
            self.live_keys().for_each(|key| outbox.add(key));
            self.outboxes.insert(neighbour.clone(), outbox);
        }
        self.announce(neighbour, cost.max(1), true, now);
    }

    /// Withdraws the link to a neighbour. It receives no more states.
    pub fn neighbour_down(&mut self, neighbour: &N, now: Time) {
        if self.outboxes.remove(neighbour).is_some() {
            let cost = self.own_entry(neighbour).map_or(1, |entry| entry.cost);
            self.announce(neighbour.clone(), cost, false, now);
        }
    }

    /// Queues the whole database for a neighbour, such as after its restart.
    pub fn synchronise(&mut self, neighbour: &N) {
        let keys: Vec<Key<N>> = self.live_keys().collect();
        if let Some(outbox) = self.outboxes.get_mut(neighbour) {
            keys.into_iter().for_each(|key| outbox.add(key));
        }
    }

    /// Takes a state that a neighbour has sent.
    ///
    /// # Errors
    /// The state is refused, and counted. Duplicates are refused, too; they are part of flooding.
    pub fn receive(&mut self, from: &N, state: LinkState<N>, now: Time) -> Result<(), Rejection> {
        let result = self.check(from, &state).and_then(|()| self.store(from, state, now));
        match result {
            Ok(()) => self.summary.accepted += 1,
            Err(rejection) => self.summary.rejected[rejection.index()] += 1,
        }
        result
    }

    /// The next batch for a neighbour; `None` if it has all, or too much is unacknowledged.
    ///
    /// A batch has at least one state. It ends before the first other state that does not fit:
    /// `fits` is called once for each state, and counts, such as bytes of the message.
    pub fn transmit(
        &mut self,
        neighbour: &N,
        now: Time,
        mut fits: impl FnMut(&LinkState<N>) -> bool,
    ) -> Option<Batch<LinkState<N>>> {
        let window = self.config.retransmit.map(|_| self.config.window);
        let max_age = self.config.max_age;
        loop {
            let outbox = self.outboxes.get_mut(neighbour)?;
            let entries = &self.entries;
            let mut states = Vec::new();
            let id = outbox.take(self.config.batch, window, now, |key| {
                let Some(entry) = entries.get(key) else {
                    return true;
                };
                // Others refuse ages beyond it.
                let state = to_state(key.clone(), entry, entry.age(now).min(max_age));
                let is_in_batch = fits(&state) || states.is_empty();
                if is_in_batch {
                    states.push(state);
                }
                is_in_batch
            })?;
            if !states.is_empty() {
                self.summary.sent += states.len() as u64;
                return Some(Batch { id, states });
            }
            outbox.acknowledge(id);
        }
    }

    /// Notes that a neighbour has received a batch. Returns whether it was unacknowledged.
    pub fn acknowledge(&mut self, neighbour: &N, id: u32) -> bool {
        self.outboxes
            .get_mut(neighbour)
            .is_some_and(|outbox| outbox.acknowledge(id))
    }

    /// The numbers of states that wait for a neighbour, and of batches it has not acknowledged.
    #[must_use]
    pub fn backlog(&self, neighbour: &N) -> (usize, usize) {
        self.outboxes
            .get(neighbour)
            .map_or((0, 0), |outbox| (outbox.pending(), outbox.unacknowledged()))
    }

    /// Refreshes own states, expires others, and queues batches that were not acknowledged again.
    pub fn tick(&mut self, now: Time) {
        if let Some(timeout) = self.config.retransmit {
            for outbox in self.outboxes.values_mut() {
                self.summary.retransmissions += outbox.expire(timeout, now) as u64;
            }
        }
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        let keys: Vec<Key<N>> = self
            .entries
            .iter()
            .filter(|(key, entry)| self.deadline_of(key, entry) <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.entry_is_due(key, now);
        }
        let deadlines = self.entries.iter().map(|(key, entry)| self.deadline_of(key, entry));
        self.due = deadlines.min();
    }

    /// When [`Database::tick`] has something to do, or a little earlier.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let outboxes = self.outboxes.values().filter_map(|outbox| {
            let timeout = self.config.retransmit?;
            outbox.deadline(timeout)
        });
        outboxes.chain(self.due).min()
    }

    /// The links that both ends announce, sorted.
    #[must_use]
    pub fn links(&self) -> Vec<Link<N>> {
        let is_usable = |key: &Key<N>| self.entries.get(key).is_some_and(Entry::is_usable);
        self.entries
            .iter()
            .filter(|((from, to), entry)| entry.is_usable() && is_usable(&(to.clone(), from.clone())))
            .map(|((from, to), entry)| Link {
                from: from.clone(),
                to: to.clone(),
                cost: entry.cost,
            })
            .collect()
    }

    /// All states that have not expired, sorted by origin and neighbour.
    pub fn states(&self, now: Time) -> impl Iterator<Item = LinkState<N>> {
        self.entries
            .iter()
            .filter(|(_, entry)| !entry.is_expired)
            .map(move |(key, entry)| to_state(key.clone(), entry, entry.age(now)))
    }

    /// Whether there is a state of an origin, expired ones included.
    #[must_use]
    pub fn has_origin(&self, origin: &N) -> bool {
        self.of_origin.contains_key(origin)
    }

    fn live_keys(&self) -> impl Iterator<Item = Key<N>> {
        self.entries
            .iter()
            .filter(|(_, entry)| !entry.is_expired)
            .map(|(key, _)| key.clone())
    }

    fn own_entry(&self, neighbour: &N) -> Option<&Entry> {
        self.entries.get(&(self.own.clone(), neighbour.clone()))
    }

    /// Checks that need no entry of the database.
    fn check(&self, from: &N, state: &LinkState<N>) -> Result<(), Rejection> {
        if !self.outboxes.contains_key(from) {
            Err(Rejection::NotNeighbour)
        } else if state.origin == state.neighbour {
            Err(Rejection::SelfLoop)
        } else if state.is_up && state.cost == 0 {
            Err(Rejection::ZeroCost)
        } else if state.sequence > MAX_SEQUENCE {
            Err(Rejection::SequenceRange)
        } else if state.age > self.config.max_age {
            Err(Rejection::TooOld)
        } else {
            Ok(())
        }
    }

    fn store(&mut self, from: &N, state: LinkState<N>, now: Time) -> Result<(), Rejection> {
        let key = (state.origin, state.neighbour);
        let new = Entry {
            cost: state.cost,
            sequence: state.sequence,
            is_up: state.is_up,
            age: state.age,
            at: now,
            is_expired: state.age >= self.config.max_age,
        };
        if key.0 == self.own {
            return Err(self.defend(from, key, &new, now));
        }
        if let Some(old) = self.entries.get(&key) {
            let precedence = (old.sequence, old.precedence()).cmp(&(new.sequence, new.precedence()));
            let rejection = match (precedence, old.sequence == new.sequence) {
                (std::cmp::Ordering::Equal, _) => Rejection::Duplicate,
                (std::cmp::Ordering::Greater, true) => Rejection::Conflict,
                (std::cmp::Ordering::Greater, false) => Rejection::Older,
                (std::cmp::Ordering::Less, _) => {
                    self.replace(key, new, Some(from));
                    return Ok(());
                }
            };
            self.answer(from, key, rejection);
            return Err(rejection);
        }
        if new.is_expired {
            return Err(Rejection::TooOld);
        }
        self.room_for(&key.0)?;
        self.replace(key, new, Some(from));
        Ok(())
    }

    /// Has the sender of an old state learn the newer one; a duplicate shows that it has it.
    ///
    /// The newer one may have expired: its origin has to take its sequence number up again, such as
    /// after a restart, or all others refuse what it announces.
    fn answer(&mut self, from: &N, key: Key<N>, rejection: Rejection) {
        let Some(outbox) = self.outboxes.get_mut(from) else {
            return;
        };
        if rejection == Rejection::Duplicate {
            outbox.remove(&key);
        } else {
            outbox.add(key);
        }
    }

    /// Answers a state in the name of this IPC process.
    fn defend(&mut self, from: &N, key: Key<N>, forged: &Entry, now: Time) -> Rejection {
        let own = self.entries.get(&key).cloned();
        match own {
            Some(own) if own.sequence > forged.sequence => {
                self.answer(from, key, Rejection::Older);
                Rejection::Older
            }
            Some(own) if own.sequence == forged.sequence && own.precedence() == forged.precedence() => {
                self.answer(from, key, Rejection::Duplicate);
                Rejection::Duplicate
            }
            // There is no larger number: an answer would only bring the same state again.
            Some(own) if own.sequence >= MAX_SEQUENCE => Rejection::OwnOrigin,
            own => {
                if own.is_none() && self.room_for(&key.0).is_err() {
                    return Rejection::TooManyOfOrigin;
                }
                // Without a state of its own there is no such link: it is withdrawn.
                let (cost, is_up) = own.map_or((1, false), |own| (own.cost, own.is_up));
                let sequence = forged.sequence.saturating_add(1).min(MAX_SEQUENCE);
                self.replace(key, fresh(cost, sequence, is_up, now), None);
                Rejection::OwnOrigin
            }
        }
    }

    fn room_for(&self, origin: &N) -> Result<(), Rejection> {
        let of_origin = self.of_origin.get(origin).copied().unwrap_or(0);
        if of_origin >= self.config.max_links_of_origin {
            Err(Rejection::TooManyOfOrigin)
        } else if self.entries.len() >= self.config.max_links {
            Err(Rejection::Full)
        } else {
            Ok(())
        }
    }

    /// Announces a state of this IPC process with the next sequence number.
    fn announce(&mut self, neighbour: N, cost: u32, is_up: bool, now: Time) {
        let sequence = self
            .own_entry(&neighbour)
            .map_or(1, |entry| (entry.sequence + 1).min(MAX_SEQUENCE));
        let key = (self.own.clone(), neighbour);
        self.replace(key, fresh(cost, sequence, is_up, now), None);
    }

    /// Stores a state and queues it for all neighbours but its sender.
    fn replace(&mut self, key: Key<N>, new: Entry, from: Option<&N>) {
        for (neighbour, outbox) in &mut self.outboxes {
            if Some(neighbour) == from {
                outbox.remove(&key);
            } else {
                outbox.add(key.clone());
            }
        }
        let due = self.deadline_of(&key, &new);
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
        let usable = |entry: &Entry| entry.is_usable().then_some(entry.cost);
        let after = usable(&new);
        let origin = key.0.clone();
        let old = self.entries.insert(key, new);
        if old.is_none() {
            *self.of_origin.entry(origin).or_default() += 1;
        }
        if old.as_ref().and_then(usable) != after {
            self.revision += 1;
        }
    }

    fn deadline_of(&self, key: &Key<N>, entry: &Entry) -> Time {
        let is_current = self.outboxes.contains_key(&key.1);
        if key.0 == self.own && is_current {
            return entry.at + self.config.refresh;
        }
        let lifetime = if entry.is_expired {
            self.config.max_age + self.config.hold
        } else {
            self.config.max_age
        };
        entry.at + lifetime.saturating_sub(entry.age)
    }

    fn entry_is_due(&mut self, key: Key<N>, now: Time) {
        if key.0 == self.own && self.outboxes.contains_key(&key.1) {
            if let Some(cost) = self.entries.get(&key).map(|entry| entry.cost) {
                self.announce(key.1, cost, true, now);
            }
            return;
        }
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        if !entry.is_expired {
            self.revision += u64::from(entry.is_up);
            entry.is_expired = true;
            self.summary.expired += 1;
            self.outboxes.values_mut().for_each(|outbox| outbox.remove(&key));
        }
        if entry.age(now) >= self.config.max_age + self.config.hold {
            self.forget(&key);
        }
    }

    fn forget(&mut self, key: &Key<N>) {
        if self.entries.remove(key).is_none() {
            return;
        }
        if let Some(count) = self.of_origin.get_mut(&key.0) {
            *count -= 1;
            if *count == 0 {
                self.of_origin.remove(&key.0);
            }
        }
    }
}

fn fresh(cost: u32, sequence: u32, is_up: bool, now: Time) -> Entry {
    Entry {
        cost,
        sequence,
        is_up,
        age: Duration::ZERO,
        at: now,
        is_expired: false,
    }
}

fn to_state<N>((origin, neighbour): Key<N>, entry: &Entry, age: Duration) -> LinkState<N> {
    LinkState {
        origin,
        neighbour,
        cost: entry.cost,
        sequence: entry.sequence,
        is_up: entry.is_up,
        age,
    }
}
