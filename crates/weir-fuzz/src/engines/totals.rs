//! How much was run.

use super::{Built, Tally, Trouble};
use crate::oracle::Verdict;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
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
static JUDGED_TESTS: AtomicU64 = AtomicU64::new(0);
static JUDGED_WHOLE: AtomicU64 = AtomicU64::new(0);
static ORACLE_PACKETS: AtomicU64 = AtomicU64::new(0);
static JUDGED_PACKETS: AtomicU64 = AtomicU64::new(0);
/// What the oracle did not know, and how often.
static UNKNOWN: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

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

/// A test that the oracle has judged, or given up.
pub(crate) fn judged(verdict: &Verdict) {
    JUDGED_TESTS.fetch_add(1, Relaxed);
    JUDGED_WHOLE.fetch_add(verdict.is_full().into(), Relaxed);
    ORACLE_PACKETS.fetch_add(verdict.packets, Relaxed);
    JUDGED_PACKETS.fetch_add(verdict.judged, Relaxed);
    if let (Some(unknown), Ok(mut reasons)) = (&verdict.unknown, UNKNOWN.lock()) {
        *reasons.entry(unknown.to_string()).or_default() += 1;
    }
}

/// What the oracle has judged so far, and what it did not know; empty if nothing.
#[must_use]
pub fn judgements() -> String {
    let tests = JUDGED_TESTS.load(Relaxed);
    if tests == 0 {
        return String::new();
    }
    let mut text = format!(
        "{tests} tests, {} of them judged whole; {} packets, {} of them judged",
        JUDGED_WHOLE.load(Relaxed),
        ORACLE_PACKETS.load(Relaxed),
        JUDGED_PACKETS.load(Relaxed)
    );
    let reasons = UNKNOWN.lock().map(|r| r.clone()).unwrap_or_default();
    let mut reasons: Vec<(String, u64)> = reasons.into_iter().collect();
    reasons.sort_by_key(|r| std::cmp::Reverse(r.1));
    for (reason, count) in reasons {
        let _ = write!(text, "\n  not known in {count}: {reason}");
    }
    text
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
