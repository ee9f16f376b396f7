//! Digests on their way to the controller: a state machine that is given messages, acknowledgements
//! and the time, and answers with lists to send (specification, section "DigestEntry").

use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use weir_ir::Bits;
use weir_proto::p4::v1::digest_entry::Config;

/// The scalars of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Message {
    /// Its scalars, those of invalid headers too.
    pub scalars: Vec<Bits>,
    /// For each of its headers whether it is valid.
    pub valid: Vec<bool>,
}

/// Messages that wait for one list; further ones are lost.
const MAX_WAITING: usize = 1 << 14;
/// Lists of one digest that wait to be acknowledged; of older ones nothing is remembered.
const MAX_LISTS: usize = 1 << 10;

/// A list to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The digest.
    pub digest: u32,
    /// Its number, for the acknowledgement.
    pub id: u64,
    /// Its messages, all distinct.
    pub messages: Vec<Message>,
}

#[derive(Debug, Default)]
struct Digest {
    config: Config,
    waiting: Vec<Message>,
    /// The same, to be found.
    waits: FxHashSet<Message>,
    /// When the first of them came.
    since_ns: u64,
    /// Lists that were sent and are not acknowledged, with the time.
    sent: BTreeMap<u64, (u64, Vec<Message>)>,
    cached: FxHashSet<Message>,
}

/// All digests that are sent.
#[derive(Debug)]
pub struct Digests {
    digests: BTreeMap<u32, Digest>,
    next_list: u64,
}

impl Default for Digests {
    fn default() -> Self {
        Digests {
            digests: BTreeMap::new(),
            next_list: 1,
        }
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

impl Digests {
    /// Only these digests are sent from now on, and in this way.
    pub fn configure(&mut self, configs: &BTreeMap<u32, Config>) {
        self.digests.retain(|id, _| configs.contains_key(id));
        for (id, config) in configs {
            self.digests.entry(*id).or_default().config = *config;
        }
    }

    /// Forgets what was sent and what waits, as when the primary changes.
    pub fn forget(&mut self) {
        for digest in self.digests.values_mut() {
            *digest = Digest {
                config: digest.config,
                ..Digest::default()
            };
        }
    }

    /// Whether any digest is sent.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.digests.is_empty()
    }

    /// Adds a message of the switch. Returns a list that is to be sent at once.
    pub fn message(&mut self, digest: u32, message: Message, now_ns: u64) -> Option<List> {
        let state = self.digests.get_mut(&digest)?;
        if state.waits.contains(&message) || state.cached.contains(&message) {
            return None;
        }
        if state.waiting.len() >= MAX_WAITING {
            return None;
        }
        if state.waiting.is_empty() {
            state.since_ns = now_ns;
        }
        state.waits.insert(message.clone());
        state.waiting.push(message);
        let limit = unsigned(state.config.max_list_size.into());
        let is_full = limit > 0 && state.waiting.len() as u64 >= limit;
        let is_due = is_full || state.config.max_timeout_ns <= 0;
        is_due.then(|| self.send(digest, now_ns)).flatten()
    }

    fn send(&mut self, digest: u32, now_ns: u64) -> Option<List> {
        let state = self.digests.get_mut(&digest)?;
        let messages = std::mem::take(&mut state.waiting);
        state.waits.clear();
        if messages.is_empty() {
            return None;
        }
        let id = self.next_list;
        self.next_list += 1;
        if state.config.ack_timeout_ns > 0 {
            state.cached.extend(messages.iter().cloned());
            state.sent.insert(id, (now_ns, messages.clone()));
            while state.sent.len() > MAX_LISTS {
                state.forget_oldest();
            }
        }
        Some(List { digest, id, messages })
    }

    /// The controller has taken a list. Whether there is such a digest.
    pub fn acknowledge(&mut self, digest: u32, list: u64) -> bool {
        let Some(state) = self.digests.get_mut(&digest) else {
            return false;
        };
        state.forget_list(list);
        true
    }

    /// Returns the lists whose waiting time is over.
    pub fn tick(&mut self, now_ns: u64) -> Vec<List> {
        let mut due = Vec::new();
        for (id, state) in &mut self.digests {
            let ack_timeout_ns = unsigned(state.config.ack_timeout_ns);
            while state
                .sent
                .first_key_value()
                .is_some_and(|(_, (at, _))| now_ns.saturating_sub(*at) >= ack_timeout_ns)
            {
                state.forget_oldest();
            }
            let waited = now_ns.saturating_sub(state.since_ns);
            if !state.waiting.is_empty() && waited >= unsigned(state.config.max_timeout_ns) {
                due.push(*id);
            }
        }
        due.into_iter().filter_map(|id| self.send(id, now_ns)).collect()
    }
}

impl Digest {
    fn forget_oldest(&mut self) {
        if let Some(list) = self.sent.keys().next().copied() {
            self.forget_list(list);
        }
    }

    fn forget_list(&mut self, list: u64) {
        let (_, messages) = self.sent.remove(&list).unwrap_or_default();
        for message in messages {
            self.cached.remove(&message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(max_timeout_ns: i64, max_list_size: i32, ack_timeout_ns: i64) -> Digests {
        let config = Config {
            max_timeout_ns,
            max_list_size,
            ack_timeout_ns,
        };
        let mut digests = Digests::default();
        digests.configure(&BTreeMap::from([(1, config)]));
        digests
    }

    fn m(value: u128) -> Message {
        Message {
            scalars: vec![Bits::new(48, value)],
            valid: Vec::new(),
        }
    }

    #[test]
    fn a_list_is_sent_when_it_is_full() {
        let mut d = digests(1000, 2, 0);
        assert_eq!(d.message(1, m(1), 0), None);
        let list = d.message(1, m(2), 1).expect("full");
        assert_eq!((list.id, list.messages), (1, vec![m(1), m(2)]));
        assert_eq!(d.message(7, m(1), 0), None, "no list is configured");
    }

    #[test]
    fn a_list_is_sent_when_its_first_message_has_waited_long_enough() {
        let mut d = digests(1000, 0, 0);
        d.message(1, m(1), 10);
        d.message(1, m(2), 900);
        assert!(d.tick(1009).is_empty());
        assert_eq!(d.tick(1010)[0].messages.len(), 2);
        assert!(d.tick(5000).is_empty());
    }

    #[test]
    fn without_a_timeout_or_with_lists_of_one_every_message_is_sent_at_once() {
        assert!(digests(0, 100, 0).message(1, m(1), 0).is_some());
        assert!(digests(1000, 1, 0).message(1, m(1), 0).is_some());
    }

    #[test]
    fn the_messages_of_a_list_are_distinct() {
        let mut d = digests(1000, 2, 0);
        assert_eq!(d.message(1, m(1), 0), None);
        assert_eq!(d.message(1, m(1), 1), None);
        assert!(d.message(1, m(2), 2).is_some());
    }

    #[test]
    fn what_is_not_acknowledged_is_not_sent_again_until_its_time_is_over() {
        let mut d = digests(0, 1, 1000);
        let list = d.message(1, m(1), 0).expect("at once");
        assert_eq!(d.message(1, m(1), 500), None);
        assert!(d.acknowledge(1, list.id) && !d.acknowledge(2, list.id));
        assert!(d.message(1, m(1), 600).is_some());
        assert_eq!(d.message(1, m(1), 700), None);
        d.tick(1600);
        assert!(d.message(1, m(1), 1600).is_some());
    }

    #[test]
    fn without_an_acknowledgement_timeout_nothing_is_remembered() {
        let mut d = digests(0, 1, 0);
        assert!(d.message(1, m(1), 0).is_some() && d.message(1, m(1), 0).is_some());
    }
}
