//! One case of a measurement: packets of one size at one rate.

use super::frame::Template;
use super::path::{Clocks, Path, Sink, Source};
use super::stats::Summary;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Below this time the source spins instead of sleeping.
const SPIN: Duration = Duration::from_micros(150);
/// The source reads egress timestamps if it has this much time, or this many packets later.
const TIME_TO_READ: Duration = Duration::from_micros(30);
const UNREAD: u64 = 32;
/// Packets that are behind their time by more than this do not catch up. Where the interval is at
/// least [`LONG_INTERVAL`], half of it is the limit: a burst would meet warm caches and a device
/// that is awake, as packets at this rate do not.
const MOST_BEHIND: Duration = Duration::from_millis(20);
const LONG_INTERVAL: Duration = Duration::from_micros(100);
/// Pause of the sink when nothing has come. Arrivals are stamped by the kernel or the hardware, so
/// that the sink does not disturb the device by waking for each packet.
const PAUSE: Duration = Duration::from_millis(1);

/// Packets of one size at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Bytes of a frame, without the checksum of Ethernet.
    pub size: u16,
    /// Packets per second.
    pub rate: u32,
}

/// How a case is measured.
#[derive(Debug, Clone, Copy)]
pub struct Conduct {
    /// Packets before those that count.
    pub warm_up: u64,
    /// Packets that count.
    pub samples: u64,
    /// How long the sink waits for packets after the last one was sent.
    pub patience: Duration,
    /// Cores of source and sink.
    pub cores: Option<(usize, usize)>,
}

/// What became of the packets that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Packets that the source sent.
    pub sent: u64,
    /// Packets that the sink received at least once.
    pub received: u64,
    /// Packets that the sink did not receive.
    pub lost: u64,
    /// Packets that came again.
    pub duplicated: u64,
    /// Packets with a smaller number than one that had come before (RFC 4737).
    pub reordered: u64,
    /// Received packets without an egress timestamp: they have no delay.
    pub unstamped: u64,
    /// Received packets that arrived before they were sent, because the clock was set.
    pub implausible: u64,
    /// Packets of all kinds that the sink's kernel dropped because its buffer was full.
    pub dropped_by_sink: u64,
}

impl Counts {
    /// Whether every packet came once, and in order.
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.duplicated == 0 && self.reordered == 0
    }
}

/// The results of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// Packets per second that the source sent.
    pub sent_rate: f64,
    /// What became of the packets.
    pub packets: Counts,
    /// Delays in ns, from egress at the source to ingress at the sink; `None` if there were none.
    pub delay: Option<Summary>,
    /// Samples that are kept: number of the packet, and delay in ns.
    #[serde(skip)]
    pub samples: Vec<(u64, i64)>,
    /// One sample of this number is kept.
    pub kept_every: u64,
}

impl Measured {
    /// A case of which no packet came back.
    fn unanswered(case: Case, probes: u64) -> Self {
        Measured {
            case,
            sent_rate: 0.0,
            packets: Counts {
                sent: probes,
                lost: probes,
                ..Counts::default()
            },
            delay: None,
            samples: Vec::new(),
            kept_every: 1,
        }
    }
}

/// Most samples that are kept of a case, for the file of samples and plots.
const KEPT: u64 = 100_000;

/// Measures a case.
///
/// # Errors
/// A socket fails, or a thread cannot be started.
pub fn measure(
    path: &mut Path,
    case: Case,
    conduct: &Conduct,
    measurement: u32,
    progress: &dyn Fn(u64, u64),
    stop: &AtomicBool,
) -> Result<Measured> {
    if let Some(probes) = path.probe(case.size.into(), measurement, stop)? {
        return Ok(Measured::unanswered(case, probes));
    }
    let dropped_before = path.sink.receiver.dropped().unwrap_or(0);
    let total = conduct.warm_up + conduct.samples;
    let template = Template::new(case.size.into(), &path.addresses, measurement);
    let (is_sent, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let (source, sink) = path.parts();
    let (sent, received) = std::thread::scope(|scope| -> Result<_> {
        let sending = std::thread::Builder::new()
            .name("source".to_owned())
            .spawn_scoped(scope, || {
                // Without its core the source works all the same.
                conduct.cores.map(|(core, _)| weir_io::pin_to_core(core));
                let sent = send(source, template, case.rate, total, &count, stop);
                is_sent.store(true, Ordering::Release);
                sent
            })?;
        let receiving = std::thread::Builder::new()
            .name("sink".to_owned())
            .spawn_scoped(scope, || {
                conduct.cores.map(|(_, core)| weir_io::pin_to_core(core));
                receive(sink, measurement, total, &is_sent, &count, conduct.patience)
            })?;
        while !receiving.is_finished() {
            std::thread::sleep(Duration::from_millis(50));
            progress(
                count.load(Ordering::Relaxed).saturating_sub(conduct.warm_up),
                conduct.samples,
            );
        }
        let sent = sending.join().ok().context("the source has failed")??;
        let received = receiving.join().ok().context("the sink has failed")??;
        Ok((sent, received))
    })?;
    let dropped = path.sink.receiver.dropped().unwrap_or(0);
    Ok(evaluate(case, conduct, &sent, &received, dropped - dropped_before))
}

/// What the source knows.
struct Sent {
    /// Egress of each packet, in ns; 0 if it is not known.
    egress: Vec<u64>,
    /// Packets that were handed to the kernel: the numbers below this.
    count: u64,
    /// Numbers of packets that the kernel dropped at once.
    refused: Vec<u64>,
    took: Duration,
}

fn send(
    mut source: Source<'_>,
    mut template: Template,
    rate: u32,
    total: u64,
    count: &AtomicU64,
    stop: &AtomicBool,
) -> Result<Sent> {
    let mut sent = Sent {
        egress: vec![0; usize::try_from(total)?],
        count: 0,
        refused: Vec::new(),
        took: Duration::ZERO,
    };
    let by_call = source.clocks == Clocks::SoftwareBeforeCall;
    // Numbers of the kernel count from the first packet of the socket.
    let mut first = None;
    let mut unread = 0;
    let interval = Duration::from_secs(1) / rate.max(1);
    let most_behind = if interval >= LONG_INTERVAL {
        interval / 2
    } else {
        MOST_BEHIND
    };
    let begin = Instant::now();
    let mut base = begin;
    let mut since_base = 0_u64;
    for number in 0..total {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let due = base + Duration::from_nanos(since_base * 1_000_000_000 / u64::from(rate.max(1)));
        since_base += 1;
        if due.saturating_duration_since(Instant::now()) > TIME_TO_READ || unread >= UNREAD {
            unread = read_stamps(&mut source, first, unread, &mut sent.egress)?;
        }
        wait_until(due);
        if Instant::now().saturating_duration_since(due) > most_behind {
            (base, since_base) = (Instant::now(), 1);
        }
        let now = weir_io::now_ns();
        match source.send(template.packet(number, now))? {
            Some(kernels) => {
                first.get_or_insert(kernels.wrapping_sub(number as u32));
                unread += 1;
                if by_call {
                    sent.egress[number as usize] = now;
                }
            }
            None => sent.refused.push(number),
        }
        sent.count = number + 1;
        count.store(sent.count, Ordering::Relaxed);
    }
    sent.took = begin.elapsed();
    let end = Instant::now() + Duration::from_millis(500);
    while !by_call && unread > 0 && Instant::now() < end {
        unread = read_stamps(&mut source, first, unread, &mut sent.egress)?;
    }
    Ok(sent)
}

/// Reads the egress timestamps that are there; how many packets are still without one.
fn read_stamps(source: &mut Source<'_>, first: Option<u32>, mut unread: u64, egress: &mut [u64]) -> Result<u64> {
    let by_call = source.clocks == Clocks::SoftwareBeforeCall;
    loop {
        let count = source.sender.stamps(|kernels, time| {
            let number = first.map(|first| kernels.wrapping_sub(first) as usize);
            if let Some(place) = number.and_then(|number| egress.get_mut(number)).filter(|_| !by_call) {
                *place = time;
            }
        })?;
        if count == 0 || by_call {
            return Ok(if by_call { 0 } else { unread });
        }
        unread = unread.saturating_sub(count as u64);
    }
}

fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > SPIN {
            std::thread::sleep(left - SPIN);
        } else {
            std::hint::spin_loop();
        }
    }
}

/// What the sink knows.
#[derive(Default)]
struct Received {
    /// First arrival of each packet, in ns; 0 if it did not come.
    ingress: Vec<u64>,
    /// Numbers of packets that came again, or behind a greater one.
    duplicated: Vec<u64>,
    reordered: Vec<u64>,
}

fn receive(
    sink: &mut Sink,
    measurement: u32,
    total: u64,
    is_sent: &AtomicBool,
    sent: &AtomicU64,
    patience: Duration,
) -> Result<Received> {
    let mut received = Received {
        ingress: vec![0; usize::try_from(total)?],
        ..Received::default()
    };
    let (mut count, mut greatest) = (0, 0);
    let mut last = Instant::now();
    loop {
        let was_sent = is_sent.load(Ordering::Acquire);
        let before = count;
        let taken = sink.take(Duration::ZERO, measurement, |number, time| {
            let place = usize::try_from(number).ok().and_then(|at| received.ingress.get_mut(at));
            let Some(place) = place else { return };
            if *place != 0 {
                received.duplicated.push(number);
                return;
            }
            *place = time.max(1);
            count += 1;
            if number < greatest {
                received.reordered.push(number);
            }
            greatest = greatest.max(number);
        })?;
        if !was_sent || count > before {
            last = Instant::now();
        }
        // Frames of others, too, end here: they may not end.
        if was_sent && (count >= sent.load(Ordering::Relaxed) || last.elapsed() > patience) {
            return Ok(received);
        }
        if taken == 0 {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Delays and counts of the packets after the warm-up.
fn evaluate(case: Case, conduct: &Conduct, sent: &Sent, received: &Received, dropped_by_sink: u64) -> Measured {
    let counts = |number: u64| number >= conduct.warm_up;
    let of = |numbers: &[u64]| numbers.iter().filter(|number| counts(**number)).count() as u64;
    let mut packets = Counts {
        sent: sent.count.saturating_sub(conduct.warm_up) - of(&sent.refused),
        duplicated: of(&received.duplicated),
        reordered: of(&received.reordered),
        dropped_by_sink,
        ..Counts::default()
    };
    let mut delays = Vec::with_capacity(packets.sent as usize);
    let mut samples = Vec::new();
    let kept_every = packets.sent.div_ceil(KEPT).max(1);
    for (number, (egress, ingress)) in (0..).zip(sent.egress.iter().zip(&received.ingress)) {
        if !counts(number) || *ingress == 0 {
            continue;
        }
        packets.received += 1;
        let delay = ingress.wrapping_sub(*egress) as i64;
        match (*egress, delay) {
            (0, _) => packets.unstamped += 1,
            (_, ..0) => packets.implausible += 1,
            (_, delay) => {
                if (delays.len() as u64).is_multiple_of(kept_every) {
                    samples.push((number - conduct.warm_up, delay));
                }
                delays.push(delay);
            }
        }
    }
    packets.lost = packets.sent.saturating_sub(packets.received);
    Measured {
        case,
        sent_rate: sent.count as f64 / sent.took.as_secs_f64().max(1e-9),
        packets,
        delay: Summary::of(&delays),
        samples,
        kept_every,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_the_warm_up_do_not_count() {
        let conduct = Conduct {
            warm_up: 2,
            samples: 6,
            patience: Duration::ZERO,
            cores: None,
        };
        let sent = Sent {
            egress: vec![10, 10, 10, 10, 0, 10, 10, 10],
            count: 8,
            refused: vec![7],
            took: Duration::from_secs(2),
        };
        let received = Received {
            ingress: vec![15, 0, 20, 30, 40, 0, 5, 0],
            duplicated: vec![0, 3],
            reordered: vec![1, 2],
        };
        let case = Case { size: 106, rate: 4 };
        let found = evaluate(case, &conduct, &sent, &received, 3);
        let expected = Counts {
            sent: 5,
            received: 4,
            lost: 1,
            duplicated: 1,
            reordered: 1,
            unstamped: 1,
            implausible: 1,
            dropped_by_sink: 3,
        };
        assert_eq!(found.packets, expected);
        assert_eq!(found.samples, [(0, 10), (1, 20)]);
        assert_eq!(found.delay.unwrap().mean.value, 15.0);
        assert_eq!(found.sent_rate, 4.0);
    }
}
