//! Whether memory grows.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::time::Duration;

/// Bytes of memory that the process has.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("is Linux");
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.expect("the second number is that of resident pages") * 4096
}

/// The memory of the process over time.
#[derive(Debug, Default)]
pub struct Memory {
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

    /// Checks that memory has not grown: the least of the second half is at most 4 MiB above the
    /// least of the first, whose first tenth warms up. In between it goes up and down with the
    /// connections that are open.
    pub fn is_flat(&self) {
        let least = |tenths: &[u64]| tenths.iter().copied().min().expect("there are ten");
        let (early, late) = self.tenths[1..].split_at(4);
        assert!(least(late) < least(early) + (4 << 20), "memory has grown: {self:?}");
    }
}
