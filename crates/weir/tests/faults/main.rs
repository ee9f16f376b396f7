//! Faults: a file system that fails at every call in turn, limits of threads and of files, output
//! without a reader, signals at random times. A switch ends with 0, 1 or 2 or by a signal, and has
//! every acknowledged write when it starts again.
//!
//! `WEIR_FAULT_RUNS` says how many runs there are; without it as many as a test suite has time for.
#![cfg(target_os = "linux")]

mod bench;
#[path = "../common/mod.rs"]
mod common;
mod starts;
mod threads;

use bench::{Bench, end, errno};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// More calls than a start with some writes makes.
const CALLS: u64 = 80;

/// Numbers by xorshift: a run that failed can be run again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// A stream that is read, closed, full, or stuck.
fn stream(dice: &mut Dice, stuck: &mut Vec<std::io::PipeReader>) -> Stdio {
    match dice.below(4) {
        0 => Stdio::null(),
        1 => File::options().write(true).open("/dev/full").unwrap().into(),
        2 => std::io::pipe().unwrap().1.into(),
        _ => {
            let (reader, writer) = std::io::pipe().unwrap();
            stuck.push(reader);
            writer.into()
        }
    }
}

/// Redirections that close some of the three streams.
fn closed(dice: &mut Dice) -> String {
    let streams = ["<&-", ">&-", "2>&-"];
    let some = streams.into_iter().filter(|_| dice.below(4) == 0);
    some.collect::<Vec<_>>().join(" ")
}

/// One run with a fault, whose first call is another one in each run.
async fn one(bench: &mut Bench, run: u64, dice: &mut Dice) {
    let mut stuck = Vec::new();
    let mut command = bench.redirected(&closed(dice));
    command.args(["--stats-interval", "10ms", "--trace", "1"]);
    if dice.below(2) == 0 {
        command.arg("--state-sync");
    }
    let errno = *dice.pick(&[errno::EIO, errno::ENOSPC, errno::EROFS]);
    let count = *dice.pick(&[1, 1, 3, 1_000_000]);
    let (at, count) = ((run % CALLS).to_string(), count.to_string());
    bench.fault(&mut command, errno, &[("FAULT_AT", &at), ("FAULT_COUNT", &count)]);
    command
        .stdout(stream(dice, &mut stuck))
        .stderr(stream(dice, &mut stuck));
    let mut child = command.spawn().unwrap();
    if let Some(client) = bench.client(&mut child).await {
        for _ in 0..dice.below(4) {
            bench.write(&client).await;
        }
        if dice.below(3) == 0 {
            // In the middle of a write.
            let pid = child.id().to_string();
            let kill = tokio::task::spawn_blocking(move || Command::new("kill").args(["-KILL", &pid]).status());
            bench.write(&client).await;
            drop(kill.await);
        }
    }
    let signal = *dice.pick(&["-TERM", "-INT", "-HUP", "-KILL"]);
    let status = end(&mut child, signal);
    let is_orderly = matches!(status.code(), Some(0..=2)) || status.signal().is_some_and(|s| s == 9);
    assert!(is_orderly, "run {run}: {status} after {signal}");
    // After a single fault every acknowledged write is there again at once, after many faults also
    // when further runs have met others.
    if count == "1" || run.is_multiple_of(8) {
        bench.check(run).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fault_costs_an_acknowledged_write_or_ends_a_switch_otherwise_than_it_should() {
    let runs = std::env::var("WEIR_FAULT_RUNS").ok().and_then(|n| n.parse().ok());
    let mut bench = Bench::new();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for run in 1..=runs.unwrap_or(80) {
        one(&mut bench, run, &mut dice).await;
    }
    bench.check(0).await;
    // Some writes met a fault, and others did not.
    assert!(bench.known.refused > 0 && !bench.known.there.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_files_that_a_killed_switch_did_not_finish() {
    let mut bench = Bench::new();
    std::fs::write(bench.path("data/.state.weir-abc123"), "half").unwrap();
    bench.check(0).await;
    assert_eq!(bench.names(), ["state"]);
}
