//! The lookup structures of the control plane's table: one per set of match kinds.
//!
//! - exact keys only: a hash map;
//! - one LPM key and exact keys: a hash map per prefix length, longest first;
//! - everything else: tuple-space search. Entries with equal masks form a group, a hash map from
//!   the masked key to the entries with that value. Groups are visited by falling rank of their
//!   best entry, and the search ends when no remaining group can hold a better entry. Range keys
//!   have no mask: they are compared one by one within the bucket.

use crate::entries::{Entries, HandleMap};
use crate::entry::{Entry, EntryHandle, Rank};
use crate::spec::TableSpec;
use rustc_hash::{FxHashMap, FxHasher};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use weir_ir::{Bits, KeyMatch, MatchKind};

type Key = Box<[u8]>;

/// The structure for a table.
#[derive(Debug, Clone)]
pub(crate) enum Index {
    Exact(HandleMap),
    Lpm(Lpm),
    Tuples(TupleSpace),
}

impl Index {
    /// The structure for the match kinds of these keys.
    pub(crate) fn new(spec: &TableSpec) -> Self {
        let kinds: Vec<_> = spec.match_keys().map(|k| k.kind).collect();
        let lpm: Vec<_> = (0..kinds.len()).filter(|&i| kinds[i] == MatchKind::Lpm).collect();
        let others = kinds.iter().any(|k| !matches!(k, MatchKind::Lpm | MatchKind::Exact));
        match (others, lpm.as_slice()) {
            (false, []) => Index::Exact(HandleMap::default()),
            (false, &[position]) => Index::Lpm(Lpm {
                position,
                by_length: BTreeMap::new(),
            }),
            _ => Index::Tuples(TupleSpace::default()),
        }
    }

    /// The entry with this match and priority.
    pub(crate) fn find(&self, matches: &[KeyMatch], priority: u32, entries: &Entries) -> Option<EntryHandle> {
        let is_it = |handle| {
            let entry: Option<&Entry> = entries.get(handle);
            entry.is_some_and(|e| e.priority == priority && e.matches == matches)
        };
        match self {
            Index::Exact(map) => map.find(hash_of(matches), is_it),
            Index::Lpm(lpm) => lpm.by_length.get(&lpm.length(matches))?.find(hash_of(matches), is_it),
            Index::Tuples(tuples) => tuples.find(matches, is_it),
        }
    }

    /// Adds an entry whose match the table does not hold yet.
    pub(crate) fn insert(&mut self, entry: &Entry) {
        match self {
            Index::Exact(map) => {
                map.insert(hash_of(&entry.matches), entry.handle);
            }
            Index::Lpm(lpm) => lpm.insert(entry),
            Index::Tuples(tuples) => tuples.insert(entry),
        }
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, entry: &Entry) {
        match self {
            Index::Exact(map) => {
                map.remove(hash_of(&entry.matches), entry.handle);
            }
            Index::Lpm(lpm) => lpm.remove(entry),
            Index::Tuples(tuples) => tuples.remove(entry),
        }
    }

    /// The winning entry for these values, one per matched key.
    pub(crate) fn lookup(&self, keys: &[&Bits], entries: &Entries) -> Option<EntryHandle> {
        match self {
            Index::Exact(map) => {
                let is_it = |handle| {
                    let same = |(m, key): (&KeyMatch, &&Bits)| matches!(m, KeyMatch::Exact(value) if value == *key);
                    entries
                        .get(handle)
                        .is_some_and(|e| e.matches.iter().zip(keys).all(same))
                };
                map.find(hash_values(keys.iter().copied()), is_it)
            }
            Index::Lpm(lpm) => lpm.lookup(keys, entries),
            Index::Tuples(tuples) => tuples.lookup(keys, entries),
        }
    }
}

fn push(key: &mut Vec<u8>, value: &Bits) {
    key.extend_from_slice(&value.to_bytes());
}

/// A hash of the values of exact and LPM matches. Other kinds contribute nothing.
fn hash_of(matches: &[KeyMatch]) -> u64 {
    hash_values(matches.iter().filter_map(|m| match m {
        KeyMatch::Exact(value) | KeyMatch::Lpm { value, .. } => Some(value),
        _ => None,
    }))
}

fn hash_values<'a>(values: impl Iterator<Item = &'a Bits>) -> u64 {
    let mut hasher = FxHasher::default();
    values.for_each(|v| v.hash(&mut hasher));
    hasher.finish()
}

/// One LPM key, at `position` among the matched keys; the others are exact.
#[derive(Debug, Clone)]
pub(crate) struct Lpm {
    position: usize,
    by_length: BTreeMap<Reverse<u32>, HandleMap>,
}

impl Lpm {
    fn length(&self, matches: &[KeyMatch]) -> Reverse<u32> {
        match matches.get(self.position) {
            Some(KeyMatch::Lpm { prefix_length, .. }) => Reverse(*prefix_length),
            _ => Reverse(0),
        }
    }

    fn insert(&mut self, entry: &Entry) {
        let length = self.length(&entry.matches);
        let map = self.by_length.entry(length).or_default();
        map.insert(hash_of(&entry.matches), entry.handle);
    }

    fn remove(&mut self, entry: &Entry) {
        let length = self.length(&entry.matches);
        if let Some(map) = self.by_length.get_mut(&length) {
            map.remove(hash_of(&entry.matches), entry.handle);
            if map.is_empty() {
                self.by_length.remove(&length);
            }
        }
    }

    fn lookup(&self, keys: &[&Bits], entries: &Entries) -> Option<EntryHandle> {
        let whole = *keys.get(self.position)?;
        for (Reverse(length), map) in &self.by_length {
            let prefix = whole.and(&Bits::prefix_mask(whole.width(), *length));
            let key_of = |i: usize| if i == self.position { &prefix } else { keys[i] };
            let is_it = |handle| {
                let same = |(i, m): (usize, &KeyMatch)| match m {
                    KeyMatch::Exact(value) | KeyMatch::Lpm { value, .. } => value == key_of(i),
                    _ => false,
                };
                entries
                    .get(handle)
                    .is_some_and(|e| e.matches.iter().enumerate().all(same))
            };
            if let Some(handle) = map.find(hash_values((0..keys.len()).map(key_of)), is_it) {
                return Some(handle);
            }
        }
        None
    }
}

/// The share of a key's bits that a group compares by hashing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum KeyPart {
    /// The bits under the mask.
    Mask(Bits),
    /// Nothing: ranges are compared in the bucket.
    Range,
}

fn parts(matches: &[KeyMatch]) -> Vec<KeyPart> {
    matches
        .iter()
        .map(|m| match m {
            KeyMatch::Exact(value) | KeyMatch::Optional(Some(value)) => KeyPart::Mask(Bits::ones(value.width())),
            KeyMatch::Optional(None) => KeyPart::Mask(Bits::zero(0)),
            KeyMatch::Lpm { value, prefix_length } => KeyPart::Mask(Bits::prefix_mask(value.width(), *prefix_length)),
            KeyMatch::Ternary { mask, .. } => KeyPart::Mask(mask.clone()),
            KeyMatch::Range { .. } => KeyPart::Range,
        })
        .collect()
}

/// The bits of an entry that its group hashes.
fn group_key(matches: &[KeyMatch]) -> Key {
    let mut key = Vec::new();
    for m in matches {
        match m {
            KeyMatch::Exact(value)
            | KeyMatch::Optional(Some(value))
            | KeyMatch::Lpm { value, .. }
            | KeyMatch::Ternary { value, .. } => push(&mut key, value),
            KeyMatch::Optional(None) | KeyMatch::Range { .. } => {}
        }
    }
    key.into_boxed_slice()
}

/// Entries with equal masks.
#[derive(Debug, Clone)]
struct Group {
    parts: Vec<KeyPart>,
    /// The handles in each bucket, by falling rank.
    buckets: FxHashMap<Key, Vec<(Rank, EntryHandle)>>,
    /// All entries by rank; the last is the group's best.
    ranks: BTreeMap<Rank, EntryHandle>,
}

impl Group {
    fn best(&self) -> Option<Rank> {
        self.ranks.last_key_value().map(|(rank, _)| *rank)
    }
}

/// Groups, indexed by their masks and by the rank of their best entries.
#[derive(Debug, Clone, Default)]
pub(crate) struct TupleSpace {
    /// Indices of removed groups are reused.
    groups: Vec<Option<Group>>,
    free: Vec<usize>,
    indices: FxHashMap<Vec<KeyPart>, usize>,
    /// Ranks are unique.
    by_best: BTreeMap<Rank, usize>,
}

impl TupleSpace {
    fn group(&self, parts: &[KeyPart]) -> Option<&Group> {
        self.groups[*self.indices.get(parts)?].as_ref()
    }

    fn find(&self, matches: &[KeyMatch], is_it: impl Fn(EntryHandle) -> bool) -> Option<EntryHandle> {
        let bucket = self.group(&parts(matches))?.buckets.get(&group_key(matches))?;
        bucket.iter().map(|(_, handle)| *handle).find(|h| is_it(*h))
    }

    /// The index of the group with these masks, which is created if there is none.
    fn find_or_create(&mut self, parts: Vec<KeyPart>) -> usize {
        if let Some(index) = self.indices.get(&parts) {
            return *index;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.groups.push(None);
            self.groups.len() - 1
        });
        self.groups[index] = Some(Group {
            parts: parts.clone(),
            buckets: FxHashMap::default(),
            ranks: BTreeMap::new(),
        });
        self.indices.insert(parts, index);
        index
    }

    fn insert(&mut self, entry: &Entry) {
        let (index, rank) = (self.find_or_create(parts(&entry.matches)), entry.rank());
        let Some(group) = &mut self.groups[index] else {
            return;
        };
        let best = group.best();
        group.ranks.insert(rank, entry.handle);
        let bucket = group.buckets.entry(group_key(&entry.matches)).or_default();
        let position = bucket.partition_point(|(r, _)| *r > rank);
        bucket.insert(position, (rank, entry.handle));
        self.reorder(index, best);
    }

    fn remove(&mut self, entry: &Entry) {
        let Some(index) = self.indices.get(&parts(&entry.matches)).copied() else {
            return;
        };
        let Some(group) = &mut self.groups[index] else {
            return;
        };
        let best = group.best();
        group.ranks.remove(&entry.rank());
        let key = group_key(&entry.matches);
        if let Some(bucket) = group.buckets.get_mut(&key) {
            bucket.retain(|(_, handle)| *handle != entry.handle);
            if bucket.is_empty() {
                group.buckets.remove(&key);
            }
        }
        self.reorder(index, best);
        if let Some(gone) = self.groups[index].take_if(|g| g.ranks.is_empty()) {
            self.indices.remove(&gone.parts);
            self.free.push(index);
        }
    }

    /// Updates the position of a group whose best rank was `before`.
    fn reorder(&mut self, index: usize, before: Option<Rank>) {
        let best = self.groups[index].as_ref().and_then(Group::best);
        if best == before {
            return;
        }
        if let Some(before) = before {
            self.by_best.remove(&before);
        }
        if let Some(best) = best {
            self.by_best.insert(best, index);
        }
    }

    fn lookup(&self, keys: &[&Bits], entries: &Entries) -> Option<EntryHandle> {
        let mut best: Option<(Rank, EntryHandle)> = None;
        let mut key = Vec::new();
        for (limit, index) in self.by_best.iter().rev() {
            if best.is_some_and(|(rank, _)| rank > *limit) {
                break;
            }
            let Some(group) = &self.groups[*index] else { continue };
            key.clear();
            for (value, part) in keys.iter().zip(&group.parts) {
                match part {
                    KeyPart::Mask(mask) if mask.width() == 0 && value.width() != 0 => {}
                    KeyPart::Mask(mask) => push(&mut key, &value.and(mask)),
                    KeyPart::Range => {}
                }
            }
            let found = group.buckets.get(key.as_slice()).and_then(|bucket| {
                bucket
                    .iter()
                    .find(|(_, handle)| entries.get(*handle).is_some_and(|e| in_ranges(&e.matches, keys)))
            });
            if let Some(candidate) = found
                && best.is_none_or(|b| candidate.0 > b.0)
            {
                best = Some(*candidate);
            }
        }
        best.map(|(_, handle)| handle)
    }
}

fn in_ranges(matches: &[KeyMatch], keys: &[&Bits]) -> bool {
    matches.iter().zip(keys).all(|(m, key)| match m {
        KeyMatch::Range { low, high } => low.cmp_unsigned(key).is_le() && key.cmp_unsigned(high).is_le(),
        _ => true,
    })
}
