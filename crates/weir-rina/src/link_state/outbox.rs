//! What a neighbour has yet to receive, and what it has not acknowledged.

use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A link: its origin, and the neighbour of that.
pub(super) type Key<N> = (N, N);

/// States for one neighbour, to be sent in one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<S> {
    /// Identifies the batch for [`super::Database::acknowledge`], such as an invoke id; at least 1.
    pub id: u32,
    /// The states.
    pub states: Vec<S>,
}

/// A batch that has been sent.
#[derive(Debug, Clone)]
struct Sent<N> {
    keys: Vec<Key<N>>,
    at: Time,
}

/// The states that wait for one neighbour. A state that changes while it waits is sent once.
#[derive(Debug, Clone)]
pub(super) struct Outbox<N> {
    pending: BTreeSet<Key<N>>,
    sent: BTreeMap<u32, Sent<N>>,
    last_id: u32,
}

impl<N: Ord + Clone> Outbox<N> {
    pub(super) fn new() -> Self {
        Outbox {
            pending: BTreeSet::new(),
            sent: BTreeMap::new(),
            last_id: 0,
        }
    }

    pub(super) fn add(&mut self, key: Key<N>) {
        self.pending.insert(key);
    }

    pub(super) fn remove(&mut self, key: &Key<N>) {
        self.pending.remove(key);
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn unacknowledged(&self) -> usize {
        self.sent.len()
    }

    /// Takes up to `limit` links for a batch, up to the first that does not belong to it; nothing
    /// while `window` batches are unacknowledged.
    pub(super) fn take(
        &mut self,
        limit: usize,
        window: Option<usize>,
        now: Time,
        mut belongs: impl FnMut(&Key<N>) -> bool,
    ) -> Option<u32> {
        if self.pending.is_empty() || window.is_some_and(|window| self.sent.len() >= window.max(1)) {
            return None;
        }
        let mut keys = Vec::new();
        while keys.len() < limit.max(1) {
            let Some(key) = self.pending.pop_first() else { break };
            if !belongs(&key) {
                self.pending.insert(key);
                break;
            }
            keys.push(key);
        }
        self.last_id = (self.last_id % (i32::MAX as u32)) + 1;
        if window.is_some() {
            self.sent.insert(self.last_id, Sent { keys, at: now });
        }
        Some(self.last_id)
    }

    /// Whether a batch of this id was unacknowledged.
    pub(super) fn acknowledge(&mut self, id: u32) -> bool {
        self.sent.remove(&id).is_some()
    }

    /// Returns links of batches that were not acknowledged in time to those that wait.
    pub(super) fn expire(&mut self, timeout: Duration, now: Time) -> usize {
        let due: Vec<u32> = self
            .sent
            .iter()
            .filter(|(_, sent)| now.since(sent.at) >= timeout)
            .map(|(id, _)| *id)
            .collect();
        for id in &due {
            if let Some(sent) = self.sent.remove(id) {
                self.pending.extend(sent.keys);
            }
        }
        due.len()
    }

    pub(super) fn deadline(&self, timeout: Duration) -> Option<Time> {
        self.sent.values().map(|sent| sent.at + timeout).min()
    }
}
