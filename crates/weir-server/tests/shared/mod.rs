//! What the tests of both protocols share: numbers, packets that look at batches, histories of several clients.
#![allow(dead_code, reason = "either protocol uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_server::Standalone;

/// Five tables that one packet looks up.
pub const FLIPS: &str = include_str!("../p4/flips.p4");
/// Entries of each of the exact, LPM and ternary tables of [`FLIPS`], and members of its profile.
pub const ENTRIES: u16 = 400;
pub const MEMBERS: u16 = 20;
/// Packets that a proof of atomicity sends at least.
pub const PACKETS: u64 = 10_000;
/// What batches that fail would have written.
pub const NEVER: u32 = u32::MAX;

/// Numbers that are the same on every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

// ------------------------------------------------------------------------------------------------------------- memory

/// Bytes of memory that the process has.
pub fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("is Linux");
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.expect("the second number is that of resident pages") * 4096
}

/// How long connections come and go where that is measured.
pub fn long_churn() -> Duration {
    let said = std::env::var("WEIR_CHURN_SECONDS").ok();
    Duration::from_secs(said.map_or(600, |s| s.parse().expect("WEIR_CHURN_SECONDS is a number")))
}

/// Memory that the process has while time goes on.
#[derive(Debug, Default)]
pub struct Memory {
    /// Connections that have lived.
    pub lives: u64,
    /// Bytes at the end of each tenth of the time.
    tenths: Vec<u64>,
}

impl Memory {
    /// Notes what there is, once per tenth of the time.
    pub fn look(&mut self, elapsed: Duration, whole: Duration, lives: u64) {
        if elapsed.as_secs_f64() * 10.0 >= whole.as_secs_f64() * (self.tenths.len() + 1) as f64 {
            self.tenths.push(resident_bytes());
            eprintln!("{elapsed:.1?}: {lives} connections, {} KiB", resident_bytes() / 1024);
        }
    }

    /// Checks that memory has not grown: the least of the second half is at most 4 MiB above the least of the first, whose first
    /// tenth warms up. In between it goes up and down with the connections that are open.
    pub fn is_flat(&self) {
        let least = |tenths: &[u64]| tenths.iter().copied().min().expect("there are ten");
        let (early, late) = self.tenths[1..].split_at(4);
        assert!(least(late) < least(early) + (4 << 20), "memory has grown: {self:?}");
    }
}

// ------------------------------------------------------------------------------------------------------------ packets

/// What packets have seen.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen {
    pub packets: u64,
    /// How often the value was another than before.
    pub changes: u64,
    pub last: u32,
}

/// Packets that look at batches as they come, on a thread of their own.
pub struct Watcher {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<Seen>,
}

impl Watcher {
    /// Sends packets until it is stopped. Each looks up five tables, with keys at random: all five must have answered with the same, and
    /// never with what is older than what the packet before was told.
    pub fn start(switch: Arc<Standalone>) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = std::thread::spawn(move || {
            let mut n = Numbers(7);
            let mut seen = Seen::default();
            while !stopped.load(Ordering::Relaxed) {
                let mut packet = Vec::with_capacity(64);
                for end in [ENTRIES, ENTRIES, ENTRIES, MEMBERS] {
                    packet.extend((n.below(end.into()) as u16).to_be_bytes());
                }
                packet.resize(64, 0);
                let out = switch.send(1, &packet);
                assert_eq!(out.len(), 1, "an entry is missing: {packet:?}");
                let answers: Vec<u32> = out[0].bytes[8..28]
                    .chunks(4)
                    .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
                    .collect();
                let value = answers[0];
                assert!(answers.iter().all(|a| *a == value), "half of a batch: {answers:?}");
                assert!(value >= seen.last && value < NEVER - 1, "{value} after {}", seen.last);
                seen.changes += u64::from(value != seen.last);
                seen.last = value;
                seen.packets += 1;
                count.store(seen.packets, Ordering::Relaxed);
            }
            seen
        });
        Watcher { stop, sent, thread }
    }

    /// Whether enough packets were sent, or the thread has met what must not be.
    pub fn is_done(&self) -> bool {
        self.sent.load(Ordering::Relaxed) >= PACKETS || self.thread.is_finished()
    }

    /// Stops it; what its packets have seen.
    pub fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no packet has met half of a batch")
    }
}

// ---------------------------------------------------------------------------------------------------------- histories

/// One write of a value to all cells, or one read that found it in all of them.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub value: u32,
    pub is_write: bool,
    pub begin: Instant,
    pub end: Instant,
}

/// Whether some order of all operations that respects real time has every read find what was written last. Every value is written
/// once, so this is decided value by value (Gibbons and Korach): the time in which a value is the current one at least, from the
/// first end to the last begin of the operations with it, must not overlap another such, nor hold all operations of another value.
///
/// # Errors
/// There is no such order; says between which operations.
pub fn serialisable(history: &[Operation]) -> Result<(), String> {
    let mut by_value: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
    for operation in history {
        by_value.entry(operation.value).or_default().push(*operation);
    }
    // (first end, last begin, value): where the end is first, the value is current in between.
    let mut zones = Vec::new();
    for (value, operations) in &by_value {
        let writes: Vec<_> = operations.iter().filter(|o| o.is_write).collect();
        let [write] = writes[..] else {
            return Err(format!("{value} was written {} times", writes.len()));
        };
        if let Some(read) = operations.iter().find(|o| o.end < write.begin) {
            return Err(format!("{read:?} is before its {write:?}"));
        }
        let first_end = operations.iter().map(|o| o.end).min().expect("there is one");
        let last_begin = operations.iter().map(|o| o.begin).max().expect("there is one");
        zones.push((first_end, last_begin, *value));
    }
    let (mut current, others): (Vec<_>, Vec<_>) = zones.into_iter().partition(|(end, begin, _)| end < begin);
    current.sort();
    for pair in current.windows(2) {
        if pair[1].0 < pair[0].1 {
            return Err(format!("values {} and {} are both current", pair[0].2, pair[1].2));
        }
    }
    for (first_end, last_begin, value) in others {
        if let Some(around) = current.iter().find(|c| c.0 < last_begin && first_end < c.1) {
            return Err(format!("{value} was written and gone while {} was current", around.2));
        }
    }
    Ok(())
}

mod tests {
    use super::{Operation, serialisable};
    use std::time::{Duration, Instant};

    fn history(of: &[(u32, bool, u64, u64)]) -> Vec<Operation> {
        let zero = Instant::now();
        let at = |n: u64| zero + Duration::from_secs(n);
        let operation = |(value, is_write, begin, end): &(u32, bool, u64, u64)| Operation {
            value: *value,
            is_write: *is_write,
            begin: at(*begin),
            end: at(*end),
        };
        of.iter().map(operation).collect()
    }

    #[test]
    fn histories_without_an_order_are_told_from_those_that_have_one() {
        let (write, read) = (true, false);
        let fine = [
            (1, write, 0, 1),
            (2, write, 2, 6),
            (1, read, 3, 4),
            (2, read, 5, 7),
            (3, write, 0, 8),
        ];
        assert_eq!(serialisable(&history(&fine)), Ok(()));
        // A value that was overwritten before the read began.
        let stale = [(1, write, 0, 1), (2, write, 2, 3), (1, read, 4, 5)];
        assert!(serialisable(&history(&stale)).is_err());
        // Two reads see two writes in different orders.
        let crossed = [
            (1, write, 0, 20),
            (2, write, 0, 20),
            (1, read, 1, 2),
            (2, read, 3, 4),
            (1, read, 5, 6),
        ];
        assert!(serialisable(&history(&crossed)).is_err());
        let early = [(1, read, 0, 1), (1, write, 2, 3)];
        assert!(serialisable(&history(&early)).is_err());
        let from_nowhere = [(1, read, 0, 1)];
        assert!(serialisable(&history(&from_nowhere)).is_err());
    }
}
