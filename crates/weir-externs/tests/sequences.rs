//! Sequence numbers and anti-replay windows, as objects.

mod common;

use common::{Arg, Called, instance, method};
use std::sync::Arc;
use weir_extern_api::Object;
use weir_externs::Status;

const OUT_STATUS: Arg<'_> = Arg::Out(8);

fn on_window(object: &Arc<dyn Object>, name: &str, association: u128, number: u128) -> Status {
    let arguments = [Arg::In(32, association), Arg::In(32, number), OUT_STATUS];
    method(object, name, &arguments, b"").status()
}

fn next(object: &Arc<dyn Object>, association: u128) -> Called {
    method(
        object,
        "next",
        &[Arg::In(32, association), Arg::Out(32), OUT_STATUS],
        b"",
    )
}

#[test]
fn windows_are_independent_and_a_check_changes_nothing() {
    let windows = instance("replay_window", 2);
    for number in [1, 2, 2, 1] {
        assert_eq!(on_window(&windows, "check", 0, number), Status::Ok);
    }
    assert_eq!(on_window(&windows, "commit", 0, 2), Status::Ok);
    assert_eq!(on_window(&windows, "commit", 0, 2), Status::Replayed);
    assert_eq!(on_window(&windows, "check", 0, 2), Status::Replayed);
    assert_eq!(on_window(&windows, "check", 0, 1), Status::Ok);
    assert_eq!(on_window(&windows, "commit", 1, 2), Status::Ok);
    assert_eq!(on_window(&windows, "check", 2, 2), Status::OutOfRange);
    assert_eq!(on_window(&windows, "commit", 0, 0xffff_ffff), Status::Ok);
    assert_eq!(on_window(&windows, "check", 0, 3), Status::Replayed);
    let keys = windows.keys().expect("to reset");
    keys.set(0, &[]).expect("a reset");
    assert_eq!(on_window(&windows, "commit", 0, 3), Status::Ok);
    assert_eq!(on_window(&windows, "check", 1, 2), Status::Replayed);
}

#[test]
fn numbers_count_from_1_per_association() {
    let numbers = instance("sequence", 2);
    for expected in 1..=3 {
        assert_eq!(next(&numbers, 0).outputs[0].to_u64(), Some(expected));
    }
    assert_eq!(next(&numbers, 1).outputs[0].to_u64(), Some(1));
    let beyond = next(&numbers, 2);
    assert_eq!(
        (beyond.status(), beyond.outputs[0].to_u64()),
        (Status::OutOfRange, Some(0))
    );
    numbers.keys().expect("to reset").set(0, &[]).expect("a reset");
    assert_eq!(next(&numbers, 0).outputs[0].to_u64(), Some(1));
}

#[test]
fn threads_get_different_numbers_and_one_commits_each() {
    let (numbers, windows) = (instance("sequence", 1), instance("replay_window", 1));
    let worker = || {
        let mine: Vec<u64> = (0..2000)
            .filter_map(|_| next(&numbers, 0).outputs[0].to_u64())
            .collect();
        let commits = (1..=2000).filter(|n| on_window(&windows, "commit", 0, *n) == Status::Ok);
        (mine, commits.count())
    };
    let (mut all, mut commits) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            let (mine, committed) = worker.join().expect("no panic");
            all.extend(mine);
            commits += committed;
        }
    });
    all.sort_unstable();
    assert_eq!(all, (1..=8000).collect::<Vec<u64>>());
    // A thread that falls behind the window skips numbers, but no number counts twice.
    assert!(commits <= 2000, "{commits}");
}
