//! Epoch reclamation: when memory that readers may still access can be freed.
//!
//! The scheme is quiescent-state based. A thread that looks tables up continuously has a
//! [`Reader`], and announces between two vectors that it holds nothing. Memory unlinked from a
//! table is tagged with the number of the epoch that starts after that. It is freed once every
//! reader has announced that epoch. A thread without a [`Reader`] is a *guest*: each of its lookups
//! increments and decrements a counter (two atomic additions), and nothing is freed while the
//! counter is not 0.
//!
//! Correctness: the writer publishes the replacement first, and then begins a new epoch. A reader
//! that has *seen* this epoch can find the replacement only, since its load acquires what was
//! written before. It stores the seen epoch while it holds nothing, with release ordering, so its
//! earlier reads are over. A reader that was offline, and a guest, may still have found the old
//! memory. They announce themselves, execute a fence, and then read; the writer has a fence between
//! unlinking and checking for announcements. So either the reader finds the replacement, or the
//! writer sees the reader.

use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, fence};
use std::any::Any;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Value of a reader that is offline.
const OFFLINE: u64 = u64::MAX;

/// The epoch that a reader has seen, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct SeenEpoch(AtomicU64);

/// Number of guests' lookups in progress.
#[derive(Debug)]
#[repr(align(64))]
struct Guests(AtomicUsize);

/// The part of the domain that is locked.
#[derive(Debug, Default)]
struct Inner {
    readers: Vec<Arc<SeenEpoch>>,
    /// Unlinked memory by the epoch in which it was retired, the oldest first.
    limbo: VecDeque<(u64, Box<dyn Any + Send>)>,
}

/// The reclamation domain that the tables of a switch share.
#[derive(Debug)]
pub struct Epochs {
    /// The current epoch.
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
    /// A domain without readers.
    #[must_use]
    pub fn new() -> Self {
        Epochs {
            global: AtomicU64::new(1),
            guests: Guests(AtomicUsize::new(0)),
            inner: Mutex::default(),
        }
    }

    /// Registers a reader. While it exists and is online, [`Reader::quiescent`] must be called
    /// regularly: nothing is freed otherwise.
    #[must_use]
    pub fn reader(self: &Arc<Self>) -> Reader {
        let mut inner = self.lock();
        let seen = Arc::new(SeenEpoch(AtomicU64::new(self.global.load(Ordering::SeqCst))));
        inner.readers.push(Arc::clone(&seen));
        drop(inner);
        Reader {
            epochs: Arc::clone(self),
            seen,
        }
    }

    /// Number of unlinked allocations that are not freed yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().limbo.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins lookups as a guest; see [`crate::fast::FastTable::view`]. Nothing is freed while the
    /// guard lives, so keep it for one vector at most. [`Reader::enter`] is cheaper.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> Guard<'_> {
        self.guests.0.fetch_add(1, Ordering::SeqCst);
        // On x86-64 the addition is a fence already, but Rust's memory model does not say so.
        // Guests are not on the packet path.
        fence(Ordering::SeqCst);
        Guard {
            epochs: self,
            is_guest: true,
        }
    }

    /// Begins a new epoch after something was unlinked; returns its number. The unlinked memory can
    /// be freed when [`Epochs::safe_epoch`] gives this number or more.
    pub(crate) fn advance(&self) -> u64 {
        self.global.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The newest epoch that all readers have passed: what was retired up to it can be freed.
    pub(crate) fn safe_epoch(&self) -> u64 {
        self.safe_epoch_locked(&self.lock())
    }

    /// [`Epochs::safe_epoch`] with the lock held.
    fn safe_epoch_locked(&self, inner: &Inner) -> u64 {
        let now = self.global.load(Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.guests.0.load(Ordering::SeqCst) != 0 {
            return 0;
        }
        let seen = inner.readers.iter().map(|r| r.0.load(Ordering::Acquire)).min();
        seen.unwrap_or(now).min(now)
    }

    /// Takes ownership of something that readers may still access. Frees all that no reader can
    /// access any more.
    pub(crate) fn retire(&self, garbage: Box<dyn Any + Send>) {
        let epoch = self.advance();
        let mut inner = self.lock();
        inner.limbo.push_back((epoch, garbage));
        let free = self.take_free(&mut inner);
        drop(inner);
        drop(free);
    }

    /// Frees all that no reader can access any more. Tables call it when they are changed.
    pub fn collect(&self) {
        let mut inner = self.lock();
        let free = self.take_free(&mut inner);
        drop(inner);
        drop(free);
    }

    /// Removes from limbo what no reader can access any more. The caller drops it without the lock.
    fn take_free(&self, inner: &mut Inner) -> Vec<Box<dyn Any + Send>> {
        if inner.limbo.is_empty() {
            return Vec::new();
        }
        let safe_epoch = self.safe_epoch_locked(inner);
        let mut free = Vec::new();
        while inner.limbo.front().is_some_and(|(epoch, _)| *epoch <= safe_epoch) {
            free.extend(inner.limbo.pop_front().map(|(_, garbage)| garbage));
        }
        free
    }
}

/// Lookups in progress: memory that they can find is not freed while the guard lives.
#[derive(Debug)]
pub struct Guard<'a> {
    epochs: &'a Epochs,
    is_guest: bool,
}

impl Guard<'_> {
    /// Whether it guards the memory of these epochs.
    #[inline]
    pub fn belongs_to(&self, epochs: &Epochs) -> bool {
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

/// A registered reader. It may move between threads.
#[derive(Debug)]
pub struct Reader {
    epochs: Arc<Epochs>,
    seen: Arc<SeenEpoch>,
}

impl Reader {
    /// As [`Epochs::enter`], and almost free while the reader is online.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> Guard<'_> {
        // Only the owner of this reader changes the state.
        if !self.is_online() {
            return self.epochs.enter();
        }
        Guard {
            epochs: &self.epochs,
            is_guest: false,
        }
    }

    /// Announces that this reader is between lookups. It is cheap: call it about once per vector.
    /// No guard can exist during the call:
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

    /// Announces that this reader will not look anything up for a while, as before its thread
    /// blocks. [`Reader::quiescent`] ends that. Lookups before it are legal, but slower: they are a
    /// guest's.
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
