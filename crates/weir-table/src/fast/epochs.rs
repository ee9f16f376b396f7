//! When memory that readers may still look at can be freed.
//!
//! Quiescent states: whoever reads tables again and again has a [`Reader`] and says between two vectors
//! that it holds nothing. Memory taken out of a table gets the number of the current epoch; it is
//! freed once every reader has said so in a later one. Who has no [`Reader`] may look tables up
//! too: each of their lookups counts itself in and out (two atomic additions), and nothing is freed
//! while one is under way.
//!
//! Why that is right: who takes something out has put something else in its place first, and then begins a new epoch. A reader that has *seen* this epoch
//! (its load acquires what was written before) can find what is in place now only, and it has written what it has seen when it held nothing (a release, so its reads are over). A reader
//! that was offline, and a guest, may have found what was in place before: so they say that they are looking, then a fence, then they look, and who wants to free
//! something has a fence between taking it out and asking who is looking. Either they find the new one, or they are seen.

use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, fence};
use std::any::Any;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Value of a reader that looks at nothing.
const OFFLINE: u64 = u64::MAX;

/// The epoch a reader has seen, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Seen(AtomicU64);

/// Guests in the middle of a lookup.
#[derive(Debug)]
#[repr(align(64))]
struct Guests(AtomicUsize);

#[derive(Debug, Default)]
struct Inner {
    readers: Vec<Arc<Seen>>,
    limbo: VecDeque<(u64, Box<dyn Any + Send>)>,
}

/// The reclamation domain that the tables of a switch share.
#[derive(Debug)]
pub struct Epochs {
    global: AtomicU64,
    guests: Guests,
    inner: Mutex<Inner>,
}

impl Default for Epochs {
    fn default() -> Self {
        Self::new()
    }
}

impl Epochs {
    /// Without readers.
    #[must_use]
    pub fn new() -> Self {
        Epochs {
            global: AtomicU64::new(1),
            guests: Guests(AtomicUsize::new(0)),
            inner: Mutex::default(),
        }
    }

    /// Registers a reader. While it exists and is online [`Reader::quiescent`] must be called now and then, else nothing is freed.
    #[must_use]
    pub fn reader(self: &Arc<Self>) -> Reader {
        let mut inner = self.lock();
        let seen = Arc::new(Seen(AtomicU64::new(self.global.load(Ordering::SeqCst))));
        inner.readers.push(Arc::clone(&seen));
        drop(inner);
        Reader {
            epochs: Arc::clone(self),
            seen,
        }
    }

    /// Pieces of memory that wait to be freed.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().limbo.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the begin of lookups, see [`crate::fast::FastTable::present`]. While the guard is there nothing is
    /// freed, so keep it for a vector, not longer. [`Reader::enter`] takes less time.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> Guard<'_> {
        self.guests.0.fetch_add(1, Ordering::SeqCst);
        // A processor of x86-64 would do without it, as the addition is a fence there. The memory
        // model has no such rule, and guests are not on the path of packets.
        fence(Ordering::SeqCst);
        Guard {
            epochs: self,
            is_guest: true,
        }
    }

    /// Begins a new epoch after something was taken out; returns its number. What was taken out can
    /// be freed when [`Epochs::passed`] gives this or more.
    pub(crate) fn advance(&self) -> u64 {
        self.global.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The epoch up to which everything can be freed.
    pub(crate) fn passed(&self) -> u64 {
        self.passed_locked(&self.lock())
    }

    fn passed_locked(&self, inner: &Inner) -> u64 {
        let now = self.global.load(Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.guests.0.load(Ordering::SeqCst) != 0 {
            return 0;
        }
        let seen = inner.readers.iter().map(|r| r.0.load(Ordering::Acquire)).min();
        seen.unwrap_or(now).min(now)
    }

    /// Takes over something that readers may still look at, and frees what no one looks at any more.
    pub(crate) fn retire(&self, garbage: Box<dyn Any + Send>) {
        let epoch = self.advance();
        let mut inner = self.lock();
        inner.limbo.push_back((epoch, garbage));
        let free = self.take_free(&mut inner);
        drop(inner);
        drop(free);
    }

    /// Frees what no one looks at any more. Tables do so when they are changed.
    pub fn collect(&self) {
        let mut inner = self.lock();
        let free = self.take_free(&mut inner);
        drop(inner);
        drop(free);
    }

    fn take_free(&self, inner: &mut Inner) -> Vec<Box<dyn Any + Send>> {
        if inner.limbo.is_empty() {
            return Vec::new();
        }
        let passed = self.passed_locked(inner);
        let mut free = Vec::new();
        while inner.limbo.front().is_some_and(|(epoch, _)| *epoch <= passed) {
            free.extend(inner.limbo.pop_front().map(|(_, garbage)| garbage));
        }
        free
    }
}

/// Lookups under way.
#[derive(Debug)]
pub struct Guard<'a> {
    epochs: &'a Epochs,
    is_guest: bool,
}

impl Guard<'_> {
    /// Whether it is one of these epochs.
    #[inline]
    pub fn is_of(&self, epochs: &Epochs) -> bool {
        ptr::eq(self.epochs, epochs)
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_guest {
            self.epochs.guests.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Who reads again and again. It may go from thread to thread.
#[derive(Debug)]
pub struct Reader {
    epochs: Arc<Epochs>,
    seen: Arc<Seen>,
}

impl Reader {
    /// As [`Epochs::enter`], and hardly costs anything while the reader is online.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> Guard<'_> {
        // Nobody but this reader's owner changes that.
        if !self.is_online() {
            return self.epochs.enter();
        }
        Guard {
            epochs: &self.epochs,
            is_guest: false,
        }
    }

    /// Says that this reader is between lookups. Cheap: call it once per vector or so. No guard can be left over:
    ///
    /// ```compile_fail,E0502
    /// # let epochs = std::sync::Arc::new(weir_table::fast::Epochs::new());
    /// let mut reader = epochs.reader();
    /// let guard = reader.enter();
    /// reader.quiescent();
    /// drop(guard);
    /// ```
    #[inline]
    pub fn quiescent(&mut self) {
        let now = self.epochs.global.load(Ordering::Acquire);
        let before = self.seen.0.load(Ordering::Relaxed);
        if before != now {
            self.seen.0.store(now, Ordering::Release);
            if before == OFFLINE {
                fence(Ordering::SeqCst);
            }
        }
    }

    /// Whether it is not [`Reader::offline`].
    #[must_use]
    #[inline]
    pub fn is_online(&self) -> bool {
        self.seen.0.load(Ordering::Relaxed) != OFFLINE
    }

    /// Says that this reader will not look anything up for a while, as before its thread blocks. Ended by
    /// [`Reader::quiescent`]; lookups before that are legal, but slower.
    #[inline]
    pub fn offline(&mut self) {
        self.seen.0.store(OFFLINE, Ordering::Release);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = self.epochs.lock();
        inner.readers.retain(|r| !Arc::ptr_eq(r, &self.seen));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Noisy(Arc<AtomicUsize>);

    impl Drop for Noisy {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn readers_may_go_from_thread_to_thread() {
        let epochs = Arc::new(Epochs::new());
        let mut reader = epochs.reader();
        let reader = std::thread::spawn(move || {
            drop(reader.enter());
            reader.quiescent();
            reader
        });
        drop(reader.join().map(|reader| drop(reader.enter())));
        assert_eq!(epochs.lock().readers.len(), 0);
    }

    #[test]
    fn freed_when_all_readers_have_passed() {
        let epochs = Arc::new(Epochs::new());
        let dropped = Arc::new(AtomicUsize::new(0));
        let noisy = || Box::new(Noisy(Arc::clone(&dropped)));
        let count = || dropped.load(Ordering::SeqCst);
        epochs.retire(noisy());
        assert_eq!(count(), 1, "no reader, freed at once");
        let mut reader = epochs.reader();
        epochs.retire(noisy());
        epochs.collect();
        assert_eq!((count(), epochs.waiting()), (1, 1));
        reader.quiescent();
        epochs.collect();
        assert_eq!(count(), 2);
        reader.offline();
        epochs.retire(noisy());
        assert_eq!(count(), 3, "nobody is looking");
        let guard = reader.enter();
        epochs.retire(noisy());
        assert_eq!(count(), 3, "who is offline looks as a guest");
        drop(guard);
        epochs.collect();
        assert_eq!(count(), 4);
        reader.quiescent();
        let guard = reader.enter();
        epochs.retire(noisy());
        drop(guard);
        epochs.collect();
        assert_eq!(count(), 4, "a reader may be looking until it says that it is not");
        drop(reader);
        epochs.collect();
        assert_eq!(count(), 5);
        let guest = epochs.enter();
        epochs.retire(noisy());
        assert_eq!(count(), 5, "a guest is looking");
        drop(guest);
        epochs.collect();
        assert_eq!(count(), 6);
    }
}
