//! How workers hand frames to each other: bounded rings of bundles that are made at the start and
//! come back empty. A frame changes hands without being copied.

use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_io::{Batch, Counters, Device, Frame, FrameBatch, IoError, Pool};

/// Frames of a bundle.
pub const BUNDLE: usize = 64;
/// Bundles of a ring.
const BUNDLES: usize = 32;
/// Frames that a ring can hold.
pub const RING: usize = BUNDLE * BUNDLES;
/// Bundles under way up to which one that is not full goes as well. Beyond it the other side is
/// behind, and gains nothing by many small ones.
const FEW: usize = 4;

/// Frames for another worker, each with a port: where it came in, or where it is to be sent.
pub struct Bundle {
    /// The frames; no holes while it is under way.
    pub frames: FrameBatch,
    /// A port for each.
    pub ports: Vec<u32>,
}

/// The end of a ring that frames are put in.
pub struct Outbox {
    filling: Option<Bundle>,
    free: Vec<Bundle>,
    full: SyncSender<Bundle>,
    empty: Receiver<Bundle>,
    to: Arc<Doorbell>,
    in_flight: Arc<AtomicUsize>,
}

/// The end of a ring that frames come out of.
pub struct Inbox {
    full: Receiver<Bundle>,
    empty: SyncSender<Bundle>,
}

/// A ring with all its bundles, to the worker with this bell. `in_flight` counts bundles that were
/// sent and whose frames have not been dealt with yet.
pub fn ring(pool: &Pool, to: &Arc<Doorbell>, in_flight: &Arc<AtomicUsize>) -> (Outbox, Inbox) {
    let (full, full_out) = sync_channel(BUNDLES);
    let (empty_in, empty) = sync_channel(BUNDLES);
    let bundle = || Bundle {
        frames: pool.batch(BUNDLE),
        ports: Vec::with_capacity(BUNDLE),
    };
    let outbox = Outbox {
        filling: None,
        free: std::iter::repeat_with(bundle).take(BUNDLES).collect(),
        full,
        empty,
        to: Arc::clone(to),
        in_flight: Arc::clone(in_flight),
    };
    let inbox = Inbox {
        full: full_out,
        empty: empty_in,
    };
    (outbox, inbox)
}

impl Outbox {
    /// The bundle to put frames in, if there is one with room.
    fn bundle(&mut self) -> Option<&mut Bundle> {
        if self.filling.as_ref().is_some_and(|b| b.ports.len() >= BUNDLE) {
            self.flush();
        }
        if self.filling.is_none() {
            self.collect();
            self.filling = self.free.pop();
        }
        self.filling.as_mut()
    }

    /// Takes back what has come back.
    fn collect(&mut self) {
        while let Ok(bundle) = self.empty.try_recv() {
            self.free.push(bundle);
        }
    }

    /// Whether so many frames have room, at most [`BUNDLE`].
    pub fn has_room(&mut self, frames: usize) -> bool {
        let left = self.filling.as_ref().map_or(0, |b| BUNDLE - b.ports.len());
        if left < frames && self.free.is_empty() {
            self.collect();
        }
        left >= frames || !self.free.is_empty()
    }

    /// Moves the frame at a position of a batch. False, and nothing has changed, where there is no
    /// room.
    pub fn push(&mut self, from: &mut FrameBatch, index: usize, port: u32) -> bool {
        let Some(bundle) = self.bundle() else { return false };
        let moved = from.move_to(index, &mut bundle.frames);
        if moved {
            bundle.ports.push(port);
        }
        moved
    }

    /// Adds a copy of a packet. False where there is no room or no frame for it.
    pub fn push_copy(&mut self, data: &[u8], port: u32) -> bool {
        let Some(bundle) = self.bundle() else { return false };
        let pushed = bundle.frames.push(data, 0);
        if pushed {
            bundle.ports.push(port);
        }
        pushed
    }

    /// Sends what has been put in, unless it is little and the other side is behind.
    pub fn flush_some(&mut self) {
        if self.filling.is_none() {
            return;
        }
        // One is being filled.
        if self.free.len() + 1 + FEW < BUNDLES {
            self.collect();
        }
        if self.free.len() + 1 + FEW >= BUNDLES {
            self.flush();
        }
    }

    /// Sends what has been put in.
    pub fn flush(&mut self) {
        let Some(bundle) = self.filling.take_if(|b| !b.ports.is_empty()) else {
            return;
        };
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        self.to.announce();
        // There is room: the ring holds as many bundles as there are. The other end lives as long
        // as its worker.
        if let Err(error) = self.full.try_send(bundle) {
            self.to.took();
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
            let (std::sync::mpsc::TrySendError::Full(mut bundle)
            | std::sync::mpsc::TrySendError::Disconnected(mut bundle)) = error;
            bundle.frames.clear();
            bundle.ports.clear();
            self.free.push(bundle);
        }
        self.to.ring();
    }
}

impl Inbox {
    /// Takes a bundle.
    pub fn next(&self, own: &Doorbell) -> Option<Bundle> {
        let bundle = self.full.try_recv().ok()?;
        own.took();
        Some(bundle)
    }

    /// Gives a bundle back; what is still in it goes back to the pool.
    pub fn give_back(&self, mut bundle: Bundle) {
        bundle.frames.put_away();
        bundle.ports.clear();
        let _ = self.empty.try_send(bundle);
    }
}

/// Wakes a worker that sleeps, and costs nothing while it does not.
///
/// The thread that clears `asleep` writes one byte, or the worker itself clears it and reads none.
/// So the pipe holds a byte exactly if another thread rang.
pub struct Doorbell {
    /// Bundles on their way to the worker.
    waiting: AtomicUsize,
    asleep: AtomicBool,
    writer: Mutex<std::io::PipeWriter>,
}

impl Doorbell {
    /// A bell, and what the worker waits for.
    pub fn new() -> Result<(Arc<Self>, Sleeper)> {
        let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
        let bell = Arc::new(Doorbell {
            waiting: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            writer: Mutex::new(writer),
        });
        Ok((Arc::clone(&bell), Sleeper { reader, bell }))
    }

    fn announce(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    fn took(&self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether there is nothing on its way to the worker.
    fn is_quiet(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) == 0
    }

    /// Whether the worker sleeps, or is about to, or to wake up by itself; false once it was rung.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Wakes the worker if it sleeps.
    pub fn ring(&self) {
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writer.write_all(&[1]);
        }
    }
}

/// A worker's own end of its bell: a device that has something when somebody rang.
pub struct Sleeper {
    reader: std::io::PipeReader,
    /// The bell.
    pub bell: Arc<Doorbell>,
}

impl Sleeper {
    /// Waits for one of the devices, the bell, or the end of the time. `is_due` is asked once more
    /// after it has been said that this worker sleeps: who changes its answer rings afterwards.
    pub fn sleep(
        &mut self,
        devices: &[&dyn Device],
        timeout: Duration,
        is_due: &dyn Fn() -> bool,
    ) -> Result<(), IoError> {
        self.bell.asleep.store(true, Ordering::SeqCst);
        let waited = if self.bell.is_quiet() && !is_due() {
            let all: Vec<&dyn Device> = devices.iter().copied().chain([&*self as &dyn Device]).collect();
            weir_io::wait(&all, timeout).map(|_| ())
        } else {
            Ok(())
        };
        if !self.bell.asleep.swap(false, Ordering::SeqCst) {
            let _ = self.reader.read(&mut [0]);
        }
        waited
    }
}

impl Device for Sleeper {
    fn receive(&mut self, _: &mut Batch) -> Result<usize, IoError> {
        Ok(0)
    }

    fn transmit(&mut self, frames: &[Frame<'_>]) -> Result<usize, IoError> {
        Ok(frames.len())
    }

    fn description(&self) -> String {
        "a bell".to_string()
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    #[cfg(unix)]
    fn poll_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(&self.reader))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use weir_io::FrameLayout;

    fn pool() -> Pool {
        Pool::new(2 * RING as u32, 1514, FrameLayout::Packed).unwrap()
    }

    fn new_ring(pool: &Pool) -> (Outbox, Inbox, Sleeper, Arc<AtomicUsize>) {
        let (bell, sleeper) = Doorbell::new().unwrap();
        let in_flight = Arc::default();
        let (outbox, inbox) = ring(pool, &bell, &in_flight);
        (outbox, inbox, sleeper, in_flight)
    }

    #[test]
    fn frames_come_out_in_order_and_a_full_ring_refuses() {
        let pool = pool();
        let (mut outbox, inbox, sleeper, in_flight) = new_ring(&pool);
        let mut sent = 0u32;
        while outbox.push_copy(&sent.to_be_bytes(), sent) {
            sent += 1;
        }
        assert_eq!(sent as usize, RING);
        assert!(!outbox.has_room(1) && in_flight.load(Ordering::SeqCst) == BUNDLES);
        let mut seen = 0u32;
        while let Some(bundle) = inbox.next(&sleeper.bell) {
            for (i, port) in bundle.ports.iter().enumerate() {
                assert_eq!((*port, bundle.frames.get(i)), (seen, Some(&seen.to_be_bytes()[..])));
                seen += 1;
            }
            inbox.give_back(bundle);
        }
        assert_eq!(seen, sent);
        assert!(sleeper.bell.is_quiet() && outbox.has_room(BUNDLE));
        drop((outbox, inbox));
        assert_eq!(pool.free(), pool.frames() as usize);
    }

    #[test]
    fn a_frame_that_finds_no_room_stays_where_it_is() {
        let pool = pool();
        let (mut outbox, _inbox, _sleeper, _) = new_ring(&pool);
        let mut batch = pool.batch(1);
        assert!(batch.push(&[5; 60], 0));
        while outbox.push_copy(&[0; 60], 0) {}
        assert!(!outbox.push(&mut batch, 0, 1));
        assert_eq!(batch.get(0), Some(&[5; 60][..]));
    }

    #[test]
    fn bundles_fill_up_while_the_other_side_is_behind() {
        let pool = pool();
        let (mut outbox, inbox, sleeper, _) = new_ring(&pool);
        for i in 0..20 {
            assert!(outbox.push_copy(&[0; 60], i));
            outbox.flush_some();
        }
        outbox.flush();
        let bundles: Vec<Bundle> = std::iter::from_fn(|| inbox.next(&sleeper.bell)).collect();
        assert!(bundles.len() <= FEW + 2, "{} bundles", bundles.len());
        let ports: Vec<u32> = bundles.into_iter().flat_map(|b| b.ports).collect();
        assert_eq!(ports, (0..20).collect::<Vec<u32>>());
    }

    #[test]
    fn a_bell_wakes_who_sleeps() {
        let (bell, mut sleeper) = Doorbell::new().unwrap();
        let started = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    while !bell.asleep.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                    bell.ring();
                }
            });
            for _ in 0..3 {
                let long = Duration::from_secs(60);
                sleeper.sleep(&[], long, &|| false).unwrap();
            }
        });
        assert!(started.elapsed() < Duration::from_secs(50));
    }
}
