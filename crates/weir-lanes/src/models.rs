//! Models of parking: the code that lane threads run, in every order of its loads and stores that
//! the memory model allows. `cargo xtask loom` runs them. A lost wake-up is a deadlock to loom.

use crate::signal::Signal;
use loom::sync::atomic::AtomicUsize;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// Publishes jobs one after the other beside a thread that parks while there are none.
fn publish_beside_a_parking_thread(jobs: usize) {
    model(move || {
        let shared = Arc::new((Signal::new(), AtomicUsize::new(0)));
        let parking = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (signal, published) = &*shared;
                for taken in 0..jobs {
                    while published.load(Ordering::Acquire) == taken {
                        signal.park(|| published.load(Ordering::Acquire) == taken, thread::park);
                    }
                }
            }
        });
        let (signal, published) = &*shared;
        for job in 1..=jobs {
            published.store(job, Ordering::Release);
            signal.wake_fenced(|| parking.thread().unpark());
        }
        parking.join().expect("takes every job");
    });
}

#[test]
fn loom_a_job_wakes_a_parking_thread() {
    publish_beside_a_parking_thread(1);
}

#[test]
fn loom_each_job_wakes_a_parking_thread() {
    publish_beside_a_parking_thread(2);
}

#[test]
fn loom_two_workers_wake_a_parking_thread() {
    model(|| {
        let shared = Arc::new((Signal::new(), [AtomicUsize::new(0), AtomicUsize::new(0)]));
        let parking = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (signal, published) = &*shared;
                let count = || published.iter().map(|jobs| jobs.load(Ordering::Acquire)).sum::<usize>();
                let mut taken = 0;
                while taken < 2 {
                    match count() {
                        found if found == taken => signal.park(|| count() == taken, thread::park),
                        found => taken = found,
                    }
                }
            }
        });
        let submit = |worker: usize| {
            let (shared, thread) = (Arc::clone(&shared), parking.thread().clone());
            move || {
                let (signal, published) = &*shared;
                published[worker].store(1, Ordering::Release);
                signal.wake_fenced(|| thread.unpark());
            }
        };
        let other = thread::spawn(submit(1));
        submit(0)();
        other.join().expect("submits");
        parking.join().expect("takes every job");
    });
}
