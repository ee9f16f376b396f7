//! The storage of a table's entries, and maps from hashes to entries.

use crate::entry::{Entry, EntryHandle};
use hashbrown::HashTable;
use std::collections::VecDeque;

/// The entries of a table, in an array indexed by their handles, which start at 1.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries {
    slots: Vec<Option<Entry>>,
    len: usize,
    /// Handles of removed entries, the oldest first.
    free: VecDeque<EntryHandle>,
    /// Number of those, from the front, that may be reused.
    reusable: usize,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// One more than the largest handle.
    pub(crate) fn handle_limit(&self) -> u64 {
        self.slots.len() as u64 + 1
    }

    pub(crate) fn get(&self, handle: EntryHandle) -> Option<&Entry> {
        self.slots.get(index(handle))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, handle: EntryHandle) -> Option<&mut Entry> {
        self.slots.get_mut(index(handle))?.as_mut()
    }

    /// An unused handle; `None` if all numbers are taken.
    pub(crate) fn fresh_handle(&mut self) -> Option<EntryHandle> {
        if self.reusable > 0 {
            self.reusable -= 1;
            return self.free.pop_front();
        }
        let next = u32::try_from(self.slots.len()).ok()?.checked_add(1)?;
        let handle = EntryHandle::new(next)?;
        self.slots.push(None);
        Some(handle)
    }

    /// Stores an entry under its handle, which is [fresh](Self::fresh_handle) or that of a removed
    /// entry.
    pub(crate) fn put(&mut self, entry: Entry) {
        let handle = entry.handle;
        let Some(slot) = self.slots.get_mut(index(handle)) else {
            return;
        };
        *slot = Some(entry);
        self.len += 1;
    }

    /// Removes an entry. Its handle is not reused before [`Entries::reuse`].
    pub(crate) fn take(&mut self, handle: EntryHandle) -> Option<Entry> {
        let entry = self.slots.get_mut(index(handle))?.take()?;
        self.len -= 1;
        self.free.push_back(handle);
        Some(entry)
    }

    /// Restores an entry that was removed since the last [`Entries::reuse`].
    pub(crate) fn put_back(&mut self, entry: Entry) {
        // The search starts at the end: entries are restored in the reverse order of removal.
        if let Some(index) = self.free.iter().rposition(|h| *h == entry.handle) {
            self.free.remove(index);
            self.reusable -= usize::from(index < self.reusable);
        }
        self.put(entry);
    }

    /// Allows the reuse of all handles that are free now.
    pub(crate) fn reuse(&mut self) {
        self.reusable = self.free.len();
    }

    /// The entries from an index on, in the order of handles.
    pub(crate) fn iter_from(&self, index: u64) -> impl Iterator<Item = &Entry> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.slots.get(index..).unwrap_or_default().iter().flatten()
    }

    /// In any order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.slots.iter_mut().flatten()
    }

    /// In the order of handles.
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter {
            slots: self.slots.iter(),
            left: self.len,
        }
    }
}

/// All entries in the order of their handles. The exact length is known, so that copies can reserve
/// memory.
#[derive(Debug, Clone)]
pub(crate) struct Iter<'a> {
    slots: std::slice::Iter<'a, Option<Entry>>,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Entry;

    fn next(&mut self) -> Option<&'a Entry> {
        let entry = self.slots.find_map(Option::as_ref)?;
        self.left -= 1;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

fn index(handle: EntryHandle) -> usize {
    handle.get() as usize - 1
}

/// Handles by a hash of the entries' matches. Keys are not stored here: callers compare them.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandleMap(HashTable<Slot>);

/// The hash is stored so that growing need not access entries.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    handle: EntryHandle,
}

/// A slot's hash for the hash table, which uses bits from both ends.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl HandleMap {
    /// The handle with this hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(EntryHandle) -> bool) -> Option<EntryHandle> {
        let hash = fold(hash);
        let found = self
            .0
            .find(spread(hash), |slot| slot.hash == hash && is_it(slot.handle));
        found.map(|slot| slot.handle)
    }

    /// Adds a handle.
    pub(crate) fn insert(&mut self, hash: u64, handle: EntryHandle) {
        let slot = Slot {
            hash: fold(hash),
            handle,
        };
        self.0.insert_unique(spread(slot.hash), slot, |slot| spread(slot.hash));
    }

    /// Removes a handle.
    pub(crate) fn remove(&mut self, hash: u64, handle: EntryHandle) {
        if let Ok(found) = self.0.find_entry(spread(fold(hash)), |slot| slot.handle == handle) {
            found.remove();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn fold(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::EntryAction;

    fn entry(handle: EntryHandle) -> Entry {
        Entry {
            handle,
            matches: Vec::new(),
            priority: 0,
            action: EntryAction::call(0, Vec::new()),
            metadata: 0,
            note: None,
            idle_timeout_ns: 0,
            last_hit_ns: 0,
            is_const: false,
            sequence: 0,
        }
    }

    #[test]
    fn a_handle_is_given_again_only_when_that_is_allowed() {
        let mut entries = Entries::default();
        let first = entries.fresh_handle().unwrap();
        entries.put(entry(first));
        let taken = entries.take(first).unwrap();
        assert_ne!(entries.fresh_handle(), Some(first));
        entries.put_back(taken);
        assert_eq!((entries.len(), entries.get(first).is_some()), (1, true));
        entries.reuse();
        assert_ne!(entries.fresh_handle(), Some(first), "it is back");
        entries.take(first);
        entries.reuse();
        assert_eq!(entries.fresh_handle(), Some(first));
    }

    #[test]
    fn how_many_are_left_is_known_whatever_was_taken_out() {
        let mut entries = Entries::default();
        for _ in 0..5 {
            let handle = entries.fresh_handle().unwrap();
            entries.put(entry(handle));
        }
        let handles: Vec<_> = entries.iter().map(|e| e.handle).collect();
        entries.take(handles[0]);
        entries.take(handles[3]);
        let mut left = entries.iter();
        for (count, which) in [(3, 1), (2, 2), (1, 4)] {
            assert_eq!(left.len(), count);
            assert_eq!(left.next().map(|e| e.handle), Some(handles[which]));
        }
        assert_eq!((left.len(), left.next().is_none()), (0, true));
    }

    #[test]
    fn handles_with_equal_hashes_are_told_apart() {
        let mut map = HandleMap::default();
        let handles: Vec<_> = (1..=3).filter_map(EntryHandle::new).collect();
        handles.iter().for_each(|h| map.insert(7, *h));
        assert_eq!(map.find(7, |h| h == handles[1]), Some(handles[1]));
        map.remove(7, handles[1]);
        assert_eq!(map.find(7, |h| h == handles[1]), None);
        assert_eq!(map.find(7, |h| h == handles[2]), Some(handles[2]));
    }
}
