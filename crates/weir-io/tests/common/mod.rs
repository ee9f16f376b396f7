//! Networks for tests.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]
#![allow(dead_code, reason = "not every test needs everything")]

use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};
use weir_io::{Batch, Device, wait};

/// Runs a test on a thread with a network of its own.
pub fn in_namespace(test: impl FnOnce() + Send + 'static) {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        assert!(std::env::var_os("CI").is_none(), "these tests need root");
        eprintln!("skipped: network namespaces need root");
        return;
    }
    let thread = std::thread::spawn(|| {
        // SAFETY: takes no pointer; only this thread gets another network.
        let moved = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(moved, 0);
        ip("link set lo up");
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

pub fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.expect("iproute2 is installed").success(), "ip {arguments}");
}

/// A namespace by name, for the far end of a link.
pub struct Namespace(pub String);

impl Namespace {
    pub fn new(name: &str) -> Self {
        let name = format!("weir-{name}-{}", std::process::id());
        ip(&format!("netns add {name}"));
        Namespace(name)
    }

    pub fn ip(&self, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.0));
    }

    /// Runs something on a thread that is in the namespace.
    pub fn spawn<R: Send + 'static>(&self, f: impl FnOnce() -> R + Send + 'static) -> std::thread::JoinHandle<R> {
        let file = std::fs::File::open(format!("/run/netns/{}", self.0)).unwrap();
        std::thread::spawn(move || {
            // SAFETY: takes no pointer; only this thread gets another network.
            let moved = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(moved, 0);
            f()
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// Receives until there are as many frames that `wanted` likes, or ten seconds are over.
pub fn collect(device: &mut dyn Device, count: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let (mut batch, mut frames) = (Batch::new(16), Vec::new());
    let end = Instant::now() + Duration::from_secs(10);
    while frames.len() < count && Instant::now() < end {
        wait(&[&*device], Duration::from_millis(100)).unwrap();
        batch.clear();
        device.receive(&mut batch).unwrap();
        let now = weir_io::now_ns();
        for frame in batch.iter().filter(|f| wanted(f.data)) {
            assert!(now.abs_diff(frame.time_ns) < 60_000_000_000, "a time of today");
            frames.push(frame.data.to_vec());
        }
    }
    frames
}

/// Whether the checksum of an IPv4 UDP or TCP packet in a frame is right.
pub fn checksum_is_right(frame: &[u8]) -> bool {
    let length = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let l4 = &frame[34..14 + length];
    let mut sum = u32::from(frame[23]) + l4.len() as u32;
    for bytes in [&frame[26..34], l4] {
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}
