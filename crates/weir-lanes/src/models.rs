//! Models of parking: the code that lane threads run, in every order of its loads and stores that
//! the memory model allows. `cargo xtask loom` runs them. A lost wake-up is a deadlock to loom.

use crate::signal::Signal;
use loom::sync::atomic::AtomicUsize;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Publishes jobs one after the other beside a thread that parks while there are none.
fn publish_beside_a_parking_thread(jobs: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
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
            signal.settle(|| parking.thread().unpark());
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
