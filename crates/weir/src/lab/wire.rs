//! Links with delay and loss for kernels without netem: a thread carries the frames.
//!
//! Each end of the link is a veth pair whose other interface is the wire's.

use super::shape::Shape;
use crate::int::Random;
use anyhow::{Context, Result};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weir_io::{Batch, Device, DeviceSpec, Frame, Sending};

/// Frames in flight in one direction; more are lost.
const MAX_FRAMES: usize = 10_000;
/// Frames that are taken at a time.
const BATCH: usize = 64;
/// How long a wire sleeps without frames.
const IDLE: Duration = Duration::from_secs(1);

/// Parts of all.
const MILLION: u64 = 1_000_000;

/// Starts a wire between two interfaces of the calling thread's namespace. It ends with the
/// process.
///
/// # Errors
/// The interfaces cannot be opened, or there is no thread.
pub fn start(interfaces: &[String; 2], shape: &Shape, number: usize) -> Result<()> {
    let open = |name: &String| {
        let spec = DeviceSpec::Packet(name.clone(), Sending::Queued);
        weir_io::open(&spec).with_context(|| format!("interface {name}"))
    };
    let devices = [open(&interfaces[0])?, open(&interfaces[1])?];
    let mut wire = Wire {
        devices,
        in_flight: [VecDeque::new(), VecDeque::new()],
        delay: shape.delay,
        loss: (shape.loss * MILLION as f64 / 100.0) as u64,
        // Each wire loses other frames; the same ones in every run.
        random: Random(number as u64 + 0x5745_4952),
    };
    std::thread::Builder::new()
        .name(format!("wire {number}"))
        .spawn(move || {
            // It fails when the interfaces are gone, and is of no use then.
            while wire.step().is_ok() {}
        })
        .context("cannot start a thread")?;
    Ok(())
}

struct Wire {
    devices: [Box<dyn Device>; 2],
    /// Frames that have come in at each end, with the time at which they leave the other one.
    in_flight: [VecDeque<(Instant, Vec<u8>)>; 2],
    delay: Duration,
    /// Frames of a million that are lost.
    loss: u64,
    random: Random,
}

impl Wire {
    fn step(&mut self) -> Result<(), weir_io::IoError> {
        let now = Instant::now();
        let next = self
            .in_flight
            .iter()
            .filter_map(|frames| frames.front())
            .map(|(due, _)| *due)
            .min();
        let timeout = next.map_or(IDLE, |due| due.saturating_duration_since(now));
        weir_io::wait(&[&*self.devices[0], &*self.devices[1]], timeout)?;
        let now = Instant::now();
        for end in 0..2 {
            let mut batch = Batch::new(BATCH);
            self.devices[end].receive(&mut batch)?;
            for frame in batch.iter() {
                let is_lost = self.random.below(MILLION) < self.loss;
                if !is_lost && self.in_flight[end].len() < MAX_FRAMES {
                    self.in_flight[end].push_back((now + self.delay, frame.data.to_vec()));
                }
            }
        }
        for end in 0..2 {
            self.deliver(end, now)?;
        }
        Ok(())
    }

    /// Sends what has come in at an end and is due.
    fn deliver(&mut self, end: usize, now: Instant) -> Result<(), weir_io::IoError> {
        let device = &mut self.devices[1 - end];
        while let Some((_, data)) = self.in_flight[end].front().filter(|(due, _)| *due <= now) {
            let frame = Frame { data, time_ns: 0 };
            if device.transmit(&[frame])? == 0 {
                // The interface is full.
                break;
            }
            self.in_flight[end].pop_front();
        }
        device.flush()
    }
}
