//! Packets that look at batches while these are written.

use super::Numbers;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use weir_server::Standalone;

/// Five tables that one packet looks up.
pub const FLIPS: &str = include_str!("../p4/flips.p4");
/// Entries of each of the exact, LPM and ternary tables of [`FLIPS`], and members of its profile.
pub const ENTRIES: u16 = 400;
pub const MEMBERS: u16 = 20;
/// Packets that a proof of atomicity sends at least.
const PACKETS: u64 = 10_000;
/// What batches that fail would have written.
pub const NEVER: u32 = u32::MAX;

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
    /// Sends packets until it is stopped. Each looks up five tables with random keys. All five must
    /// give the same value, and never one older than the previous packet's.
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
