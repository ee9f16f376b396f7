//! `weir rina perf`: throughput of a flow, where every SDU is checked.

use super::arguments::PerfArguments;
use crate::cli::NO;
use crate::output::Messages;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::time::{Duration, Instant};
use weir_rina_host::{Flow, HostError, Ipcp, Qos};

/// The time for the allocation of a flow.
const ALLOCATION: Duration = Duration::from_secs(10);
/// How long a receiver waits before it looks again.
const WAIT: Duration = Duration::from_secs(3600);
/// How long the sender waits for the result of a flow that loses SDUs.
const RESULT: Duration = Duration::from_secs(30);
/// SDUs without --count and --duration.
const COUNT: u64 = 100_000;
/// Bytes of the shortest SDU with a number.
const NUMBERED: usize = 9;
/// The first byte of the last SDU, of which a flow that loses SDUs gets several.
const END: u8 = 1;
const DATA: u8 = 0;

/// How long SDUs that were overtaken by the last one may take.
const STRAGGLERS: Duration = Duration::from_millis(200);

/// The counts of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Received {
    /// SDUs.
    pub sdus: u64,
    /// Their bytes.
    pub bytes: u64,
    /// SDUs that arrived after one that was sent later.
    pub out_of_order: u64,
    /// SDUs whose bytes differ from those that were sent.
    pub damaged: u64,
}

/// Sends, or receives.
pub fn perf(arguments: &PerfArguments, messages: &Messages) -> Result<u8> {
    let ipcp = Ipcp::connect(&arguments.socket.socket)?;
    match (&arguments.listen, &arguments.name) {
        (Some(name), _) => listen(&ipcp, name, messages),
        (None, Some(name)) => send(&ipcp, name, arguments),
        (None, None) => Ok(2),
    }
}

fn listen(ipcp: &Ipcp, name: &str, messages: &Messages) -> Result<u8> {
    let registration = ipcp.register(name)?;
    loop {
        if let Some(incoming) = registration.next(WAIT)? {
            let remote = incoming.remote().to_owned();
            let (flow, messages) = (incoming.accept()?, messages.clone());
            std::thread::Builder::new()
                .name("perf".to_owned())
                .spawn(move || match receive(&flow) {
                    Ok(received) => messages.line(format!(
                        "from {remote:?}: {} SDUs, {} bytes, {} out of order, {} damaged",
                        received.sdus, received.bytes, received.out_of_order, received.damaged
                    )),
                    Err(error) => messages.line(format!("from {remote:?}: {error}")),
                })?;
        }
    }
}

/// Writes the SDU of a number: its number, then bytes that follow from it.
pub fn fill(number: u64, size: usize, sdu: &mut Vec<u8>) {
    sdu.clear();
    sdu.push(DATA);
    sdu.extend(number.to_be_bytes());
    // A byte of an SDU that is shifted or belongs to another one is noticed.
    let start = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    sdu.extend((0..size.saturating_sub(9)).map(|at| (start.wrapping_add(at as u64) >> 3) as u8 ^ at as u8));
    sdu.truncate(size.max(1));
}

/// Whether the bytes of an SDU below 9 bytes can be those of one of `count`: they have the first
/// bytes of its number.
pub fn is_part(sdu: &[u8], count: u64) -> bool {
    let Some((&DATA, part)) = sdu.split_first() else {
        return false;
    };
    let value = part.iter().fold(0, |value: u64, byte| value << 8 | u64::from(*byte));
    let missing = 8 * (8_u32.saturating_sub(part.len() as u32));
    let last = count.saturating_sub(1).checked_shr(missing).unwrap_or(0);
    value <= last
}

/// No sender has as many SDUs.
const MOST: u64 = 1 << 60;

impl Received {
    /// Counts an SDU; `next` is the number after the largest so far.
    fn count(&mut self, sdu: &[u8], next: &mut u64, expected: &mut Vec<u8>) {
        // SDUs below 9 bytes have no number: those of a reliable flow are the next ones.
        let number = sdu
            .get(1..NUMBERED)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(*next, u64::from_be_bytes);
        fill(number, sdu.len(), expected);
        self.sdus += 1;
        self.bytes += sdu.len() as u64;
        if sdu != *expected || number > MOST {
            // Its number says nothing.
            self.damaged += 1;
        } else {
            self.out_of_order += u64::from(number < *next);
            *next = (*next).max(number + 1);
        }
    }
}

/// Receives until the last SDU, and sends the counts until the sender ends the flow.
pub fn receive(flow: &Flow) -> Result<Received, HostError> {
    let mut received = Received::default();
    let (mut next, mut expected) = (0, Vec::new());
    let (mut end, mut counted) = (None::<Instant>, Received::default());
    loop {
        let wait = end.map_or(WAIT, |end| RESULT.saturating_sub(end.elapsed()));
        let sdu = match flow.read_sdu(wait) {
            Ok(Some(sdu)) => sdu,
            Ok(None) if end.is_some_and(|end| end.elapsed() >= RESULT) => return Ok(counted),
            Ok(None) => continue,
            // It has the result.
            Err(HostError::Closed(_)) if end.is_some() => return Ok(counted),
            Err(error) => return Err(error),
        };
        if sdu.first() == Some(&END) {
            counted = received;
            end = Some(Instant::now());
            let text = serde_json::to_vec(&counted).unwrap_or_default();
            match flow.write_sdu(&text) {
                Ok(()) => {}
                Err(HostError::Closed(_)) => return Ok(counted),
                Err(error) => return Err(error),
            }
        } else {
            received.count(&sdu, &mut next, &mut expected);
        }
    }
}

/// The measurement of a sender.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Outcome {
    /// SDUs that were sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// SDUs that did not arrive.
    pub lost: u64,
    /// From the first SDU until all were sent, in seconds; on a reliable flow until the receiver
    /// had all.
    pub seconds: f64,
    /// The receiver's counts.
    pub received: Received,
}

impl Outcome {
    /// Whether all SDUs arrived, in order and undamaged.
    pub fn is_perfect(&self) -> bool {
        self.sent == self.received.sdus && self.received.out_of_order == 0 && self.received.damaged == 0
    }

    /// Bits per second that arrived.
    pub fn goodput(&self) -> f64 {
        self.received.bytes as f64 * 8.0 / self.seconds
    }
}

/// Sends SDUs, and waits for the result.
pub fn measure(
    flow: &Flow,
    is_reliable: bool,
    count: u64,
    longest: Option<Duration>,
    size: impl Fn(u64) -> usize,
) -> Result<Outcome> {
    let start = Instant::now();
    let (mut sdu, mut sent, mut sent_bytes) = (Vec::new(), 0, 0);
    while sent < count && longest.is_none_or(|longest| start.elapsed() < longest) {
        fill(sent, size(sent), &mut sdu);
        flow.write_sdu(&sdu)?;
        sent += 1;
        sent_bytes += sdu.len() as u64;
    }
    let sending = start.elapsed();
    if !is_reliable {
        std::thread::sleep(STRAGGLERS);
    }
    let end = Instant::now();
    let answer = loop {
        flow.write_sdu(&[END])?;
        let wait = if is_reliable {
            RESULT
        } else {
            Duration::from_millis(500)
        };
        if let Some(answer) = flow.read_sdu(wait)? {
            break answer;
        }
        ensure!(end.elapsed() < RESULT * 4, "the receiver does not answer");
    };
    let time = if is_reliable { start.elapsed() } else { sending };
    let received: Received = serde_json::from_slice(&answer).context("the receiver's answer is malformed")?;
    Ok(Outcome {
        sent,
        sent_bytes,
        lost: sent.saturating_sub(received.sdus),
        seconds: time.as_secs_f64(),
        received,
    })
}

/// A duration alone has no limit of SDUs.
fn count(arguments: &PerfArguments) -> u64 {
    let without = if arguments.duration.is_some() { u64::MAX } else { COUNT };
    arguments.count.unwrap_or(without)
}

fn send(ipcp: &Ipcp, name: &str, arguments: &PerfArguments) -> Result<u8> {
    ensure!(
        arguments.size.least() >= NUMBERED || !arguments.unreliable,
        "--size: expected at least {NUMBERED} bytes with --unreliable, for a number in each SDU, found {}",
        arguments.size.least()
    );
    let most = ipcp.max_sdu();
    ensure!(
        arguments.size.most() <= most,
        "--size: expected at most {most} bytes, found {}",
        arguments.size.most()
    );
    let qos = Qos {
        rate: arguments.rate,
        ..if arguments.unreliable {
            Qos::UNRELIABLE
        } else {
            Qos::RELIABLE
        }
    };
    let flow = ipcp.allocate("perf", name, qos, ALLOCATION)?;
    let outcome = measure(
        &flow,
        !arguments.unreliable,
        count(arguments),
        arguments.duration,
        |number| arguments.size.of(number),
    )?;
    let mut out = crate::output::stdout();
    if arguments.json {
        writeln!(out, "{:#}", serde_json::to_value(outcome)?)?;
    } else {
        let received = outcome.received;
        writeln!(
            out,
            "{} SDUs sent, {} lost, {} out of order, {} damaged; {:.2} s, {:.1} Mbit/s, {:.0} SDUs/s",
            outcome.sent,
            outcome.lost,
            received.out_of_order,
            received.damaged,
            outcome.seconds,
            outcome.goodput() / 1e6,
            received.sdus as f64 / outcome.seconds
        )?;
    }
    let is_good = outcome.is_perfect() || (arguments.unreliable && outcome.received.damaged == 0);
    Ok(if is_good { 0 } else { NO })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_lost_and_overtaken_sdus_are_out_of_order() {
        let mut received = Received::default();
        let (mut next, mut expected, mut sdu) = (0, Vec::new(), Vec::new());
        // 2 and 5 are lost, 3 arrives after 4.
        for number in [0, 1, 4, 3, 6, 7] {
            fill(number, 20, &mut sdu);
            received.count(&sdu, &mut next, &mut expected);
        }
        // Damaged, with a number beyond all others.
        sdu[1] = 0xff;
        received.count(&sdu, &mut next, &mut expected);
        fill(8, 20, &mut sdu);
        received.count(&sdu, &mut next, &mut expected);
        assert_eq!((received.sdus, received.out_of_order, received.damaged), (8, 1, 1));
    }
}
