//! How much was run.

use super::{Built, Tally, Trouble};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static PROGRAMS: AtomicU64 = AtomicU64::new(0);
static UNSUPPORTED: AtomicU64 = AtomicU64::new(0);
static REJECTED: AtomicU64 = AtomicU64::new(0);
static NOT_LOADED: AtomicU64 = AtomicU64::new(0);
static TESTS: AtomicU64 = AtomicU64::new(0);
static NO_TEST: AtomicU64 = AtomicU64::new(0);
static PACKETS: AtomicU64 = AtomicU64::new(0);
static OUTPUTS: AtomicU64 = AtomicU64::new(0);
static HITS: AtomicU64 = AtomicU64::new(0);

/// A program that runs.
pub(crate) fn program(built: &Built) {
    PROGRAMS.fetch_add(1, Relaxed);
    UNSUPPORTED.fetch_add(built.unsupported().is_some().into(), Relaxed);
}

/// A test that ran.
pub(crate) fn test(tally: &Tally) {
    TESTS.fetch_add(1, Relaxed);
    PACKETS.fetch_add(tally.packets, Relaxed);
    OUTPUTS.fetch_add(tally.outputs, Relaxed);
    HITS.fetch_add(tally.hits, Relaxed);
}

/// A case that could not be run.
pub(crate) fn trouble(trouble: &Trouble) {
    let counter = match trouble {
        Trouble::Rejected(_) => &REJECTED,
        Trouble::NotLoaded(_) => &NOT_LOADED,
        Trouble::NoTest(_) => &NO_TEST,
    };
    counter.fetch_add(1, Relaxed);
}

/// What both engines ran so far; empty if nothing.
#[must_use]
pub fn totals() -> String {
    let mut text = String::new();
    if PROGRAMS.load(Relaxed) + REJECTED.load(Relaxed) == 0 {
        return text;
    }
    let counters = [
        ("programs", &PROGRAMS),
        ("of them without machine code", &UNSUPPORTED),
        ("rejected by the front end", &REJECTED),
        ("not loaded", &NOT_LOADED),
        ("tests", &TESTS),
        ("not parsed", &NO_TEST),
        ("packets", &PACKETS),
        ("packets sent", &OUTPUTS),
        ("hits", &HITS),
    ];
    for (name, counter) in counters {
        let _ = write!(
            text,
            "{}{} {name}",
            if text.is_empty() { "" } else { ", " },
            counter.load(Relaxed)
        );
    }
    text
}
