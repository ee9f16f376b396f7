//! Models of epoch reclamation and of the seqlocks: the code that tables run, in every order of its
//! loads and stores that the memory model allows. `cargo xtask loom` runs them.
//!
//! loom stops a model at a bound of preemptions; that is the one thing left out. Loads and stores
//! with `SeqCst` are as with `AcqRel` to loom, and only fences order more, so what holds here needs
//! no more than the fences that are there.
#![allow(unsafe_code)]

use crate::fast::epochs::{Epochs, Reader};
use crate::fast::seqlock::SeqLock;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, AtomicUsize};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs a model with a bound on preemptions; switches where a thread blocks do not count.
pub(super) fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(run);
}

// ------------------------------------------------------------------------------------------ epochs

/// Two pieces of memory, of which readers find one. loom reports a read and a free of the same
/// piece that are not ordered.
struct Published {
    current: AtomicUsize,
    memory: [UnsafeCell<bool>; 2],
}

/// Frees a piece when it is dropped.
struct Piece(Arc<Published>, usize);

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: loom reports any access that is not ordered with this one.
        self.0.memory[self.1].with_mut(|freed| unsafe { *freed = true });
    }
}

// SAFETY: this is what the models check: accesses that are not ordered are reported.
unsafe impl Send for Published {}
// SAFETY: this is what the models check: accesses that are not ordered are reported.
unsafe impl Sync for Published {}

impl Published {
    fn new() -> Arc<Self> {
        Arc::new(Published {
            current: AtomicUsize::new(0),
            memory: [UnsafeCell::new(false), UnsafeCell::new(false)],
        })
    }

    /// A reader's access between entering and leaving.
    fn read(&self) {
        let found = self.current.load(Ordering::Acquire);
        // SAFETY: loom reports any change that is not ordered with this.
        self.memory[found].with(|freed| assert!(!unsafe { *freed }, "it was freed before it was read"));
    }

    /// The writer's change: publishes the second piece in place of the first, which is retired.
    fn replace(self: &Arc<Self>, epochs: &Epochs) {
        let old = self.current.swap(1, Ordering::AcqRel);
        epochs.retire(Box::new(Piece(Arc::clone(self), old)));
    }
}

/// Runs a reader beside a writer that retires a piece and collects.
fn read_beside(prepare: fn(&mut Reader), read: fn(&Epochs, &mut Reader, &Published)) {
    model(3, move || {
        let (epochs, published) = (Arc::new(Epochs::new()), Published::new());
        let mut reader = epochs.reader();
        prepare(&mut reader);
        let reading = thread::spawn({
            let (epochs, published) = (Arc::clone(&epochs), Arc::clone(&published));
            move || read(&epochs, &mut reader, &published)
        });
        published.replace(&epochs);
        epochs.collect();
        reading.join().expect("reads what is there");
        epochs.collect();
        assert_eq!(epochs.waiting(), 0, "nobody looks any more");
    });
}

fn look(reader: &Reader, published: &Published) {
    let guard = reader.enter();
    published.read();
    drop(guard);
}

#[test]
fn loom_nothing_is_freed_under_a_reader_that_is_online() {
    read_beside(
        |_| {},
        |_, reader, published| {
            look(reader, published);
            reader.quiescent();
            look(reader, published);
        },
    );
}

#[test]
fn loom_nothing_is_freed_under_a_reader_that_comes_back() {
    read_beside(Reader::offline, |_, reader, published| {
        reader.quiescent();
        look(reader, published);
    });
}

#[test]
fn loom_nothing_is_freed_under_a_reader_that_goes_and_looks_as_a_guest() {
    read_beside(
        |_| {},
        |_, reader, published| {
            look(reader, published);
            reader.offline();
            look(reader, published);
        },
    );
}

#[test]
fn loom_nothing_is_freed_under_guests() {
    read_beside(Reader::offline, |epochs, _, published| {
        let guard = epochs.enter();
        published.read();
        drop(guard);
    });
}

#[test]
fn loom_nothing_is_freed_under_a_reader_that_registers_meanwhile() {
    model(3, || {
        let (epochs, published) = (Arc::new(Epochs::new()), Published::new());
        let reading = thread::spawn({
            let (epochs, published) = (Arc::clone(&epochs), Arc::clone(&published));
            move || {
                let mut reader = epochs.reader();
                look(&reader, &published);
                reader.quiescent();
                look(&reader, &published);
            }
        });
        published.replace(&epochs);
        reading.join().expect("reads what is there");
    });
}

// ---------------------------------------------------------------------------------------- seqlocks

#[test]
fn loom_a_validated_read_has_seen_one_version() {
    model(3, || {
        let shared = Arc::new((SeqLock::default(), [AtomicU64::new(0), AtomicU64::new(0)]));
        let writing = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (seqlock, words) = &*shared;
                for version in 1..=2 {
                    seqlock.write_begin();
                    words.iter().for_each(|word| word.store(version, Ordering::Relaxed));
                    seqlock.write_end();
                }
            }
        });
        let (seqlock, words) = &*shared;
        if let Some(version) = seqlock.read_begin() {
            let [first, second] = [0, 1].map(|at: usize| words[at].load(Ordering::Relaxed));
            if seqlock.validate(version) {
                assert_eq!(first, second, "torn");
            }
        }
        writing.join().expect("writes");
    });
}
