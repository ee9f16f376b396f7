//! The difference between two tables.

use std::collections::BTreeMap;

/// A write that a table needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change<K, V> {
    /// A key that the table lacks.
    Insert(K, V),
    /// A key with another value.
    Modify(K, V),
    /// A key that is no longer there.
    Delete(K),
}

/// The fewest writes that make one table the other: one for each key that differs.
///
/// Insertions and modifications precede deletions, each in the order of keys. A table that is full
/// needs the deletions first, unless the writes are one atomic batch.
#[must_use]
pub fn changes<K: Ord + Clone, V: PartialEq + Clone>(old: &BTreeMap<K, V>, new: &BTreeMap<K, V>) -> Vec<Change<K, V>> {
    let writes = new.iter().filter_map(|(key, value)| match old.get(key) {
        None => Some(Change::Insert(key.clone(), value.clone())),
        Some(before) if before != value => Some(Change::Modify(key.clone(), value.clone())),
        Some(_) => None,
    });
    let deletions = old.keys().filter(|key| !new.contains_key(*key));
    writes.chain(deletions.map(|key| Change::Delete(key.clone()))).collect()
}
