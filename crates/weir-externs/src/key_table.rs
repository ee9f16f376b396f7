//! The keys of an instance, ready for use.

use arc_swap::{ArcSwapOption, Guard};
use std::fmt;
use std::hint::black_box;
use std::sync::Arc;
use weir_extern_api::{KeyError, Keys};

/// The key of a call, for as long as the call lasts.
pub(crate) struct InUse<K>(Guard<Option<Arc<K>>>);

impl<K> InUse<K> {
    pub(crate) fn get(&self) -> Option<&K> {
        self.0.as_deref()
    }
}

/// Keys by number, each in the form in which calls use it: key schedules are made when a key is
/// set, not per packet.
///
/// Calls read a slot without a lock and without a write to memory that other threads read, so
/// threads that share a key do not slow each other down. A key that is replaced is dropped when the
/// last call that uses it ends.
pub(crate) struct KeyTable<K> {
    slots: Box<[ArcSwapOption<K>]>,
    /// The lengths in bytes that keys can have, for error messages.
    lengths: &'static str,
    /// Makes a key; `None`: it has the wrong length.
    parse: fn(&[u8]) -> Option<K>,
}

impl<K> KeyTable<K> {
    pub(crate) fn new(count: usize, lengths: &'static str, parse: fn(&[u8]) -> Option<K>) -> Arc<Self> {
        Arc::new(KeyTable {
            slots: (0..count).map(|_| ArcSwapOption::empty()).collect(),
            lengths,
            parse,
        })
    }

    /// The key of a number. It is empty if the key is not set or there is none of this number.
    pub(crate) fn get(&self, index: u64) -> InUse<K> {
        let slot = usize::try_from(index).ok().and_then(|i| self.slots.get(i));
        InUse(slot.map_or_else(|| Guard::from_inner(None), ArcSwapOption::load))
    }

    fn slot(&self, index: u64) -> Result<&ArcSwapOption<K>, KeyError> {
        let slot = usize::try_from(index).ok().and_then(|i| self.slots.get(i));
        slot.ok_or_else(|| no_such_key(index, self.slots.len()))
    }

    /// The key of these bytes; `None`: there are none, which removes a key.
    fn parsed(&self, key: &[u8]) -> Result<Option<Arc<K>>, KeyError> {
        if key.is_empty() {
            return Ok(None);
        }
        let made = self.make(key);
        clear_stack();
        let error = || KeyError::Length {
            found: key.len(),
            expected: self.lengths.to_owned(),
        };
        made.map(Some).ok_or_else(error)
    }

    /// Apart from its caller, whose frame `clear_stack` does not reach.
    #[inline(never)]
    fn make(&self, key: &[u8]) -> Option<Arc<K>> {
        (self.parse)(key).map(Arc::new)
    }
}

/// The error for a number beyond the last one.
pub(crate) fn no_such_key(index: u64, count: usize) -> KeyError {
    KeyError::Index {
        index,
        last: (count as u64).saturating_sub(1),
    }
}

impl<K: Send + Sync> Keys for KeyTable<K> {
    fn count(&self) -> u64 {
        self.slots.len() as u64
    }

    fn check(&self, index: u64, key: &[u8]) -> Result<(), KeyError> {
        self.slot(index)?;
        self.parsed(key).map(|_| ())
    }

    fn set(&self, index: u64, key: &[u8]) -> Result<(), KeyError> {
        let slot = self.slot(index)?;
        slot.store(self.parsed(key)?);
        Ok(())
    }

    fn is_set(&self, index: u64) -> Result<bool, KeyError> {
        Ok(self.slot(index)?.load().is_some())
    }
}

impl<K> fmt::Debug for KeyTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.slots.iter().filter(|slot| slot.load().is_some()).count();
        write!(f, "KeyTable({} keys, {set} set)", self.slots.len())
    }
}

/// Overwrites the part of the stack that functions called before have used: key schedules are
/// moved through it.
#[inline(never)]
fn clear_stack() {
    black_box(&mut [0u8; 8192]);
}

/// A key schedule of a library that leaves it in memory. It is overwritten with that of another
/// key before the memory is freed.
pub(crate) struct Wiped<K> {
    key: K,
    /// Makes a key of the same kind from bytes that are 0.
    blank: fn(&K) -> Option<K>,
}

impl<K> Wiped<K> {
    pub(crate) fn new(key: K, blank: fn(&K) -> Option<K>) -> Self {
        Wiped { key, blank }
    }

    pub(crate) fn get(&self) -> &K {
        &self.key
    }
}

impl<K> Drop for Wiped<K> {
    fn drop(&mut self) {
        if let Some(blank) = (self.blank)(&self.key) {
            self.key = blank;
        }
        // The compiler must assume that the new value is read, and cannot omit the store.
        black_box(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static BLANKS: AtomicUsize = AtomicUsize::new(0);

    fn wiped(key: &[u8]) -> Option<Wiped<u8>> {
        let blank = |_: &u8| {
            BLANKS.fetch_add(1, Ordering::Relaxed);
            Some(0)
        };
        (key.len() == 1).then(|| Wiped::new(key[0], blank))
    }

    #[test]
    fn a_key_is_wiped_when_it_is_replaced_but_not_under_a_call() {
        let table = KeyTable::new(2, "1", wiped);
        table.set(1, &[7]).expect("one byte");
        let in_use = table.get(1);
        table.set(1, &[8]).expect("one byte");
        assert_eq!(BLANKS.load(Ordering::Relaxed), 0);
        assert_eq!(in_use.get().map(|k| *k.get()), Some(7));
        drop(in_use);
        assert_eq!(BLANKS.load(Ordering::Relaxed), 1);
        table.set(1, &[]).expect("removal");
        assert_eq!(BLANKS.load(Ordering::Relaxed), 2);
        assert!(table.get(1).get().is_none() && table.get(2).get().is_none());
    }

    #[test]
    fn numbers_and_lengths_are_checked_and_nothing_shows_a_key() {
        let table = KeyTable::new(2, "1", wiped);
        assert_eq!(table.set(2, &[1]), Err(KeyError::Index { index: 2, last: 1 }));
        let wrong = KeyError::Length {
            found: 2,
            expected: "1".into(),
        };
        assert_eq!(table.set(0, &[1, 2]), Err(wrong));
        assert_eq!((table.is_set(0), table.count()), (Ok(false), 2));
        assert_eq!(format!("{table:?}"), "KeyTable(2 keys, 0 set)");
    }
}
