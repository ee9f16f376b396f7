//! A reliable flow over three routers whose links lose and reorder frames, beside UDP over the same
//! routers and links.

use super::frames::{self, FAR, IPV4_HEADERS, Protocol};
use super::line::ROUTERS;
use crate::rina::fabric::{Fabric, Topology, Wire};
use crate::rina::perf::{self, Outcome};
use crate::rina::size::Sizes;
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_io::{Batch, Device, Frame, UdpTunnel};
use weir_rina_host::{Ipcp, Qos};

/// The time for the routers, and for a flow.
const PATIENCE: Duration = Duration::from_secs(60);
/// After this time without a datagram none comes any more.
const SILENCE: Duration = Duration::from_millis(500);
const TOPOLOGY: &str = "dif = \"bench\"\nrouters = [\"r1\", \"r2\", \"r3\"]\nhosts = [\"sender\", \"receiver\"]\n\
     links = [[\"r1\", \"r2\"], [\"r2\", \"r3\"], [\"sender\", \"r1\"], [\"receiver\", \"r3\"]]\n";

/// The traffic of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// SDUs.
    pub count: u64,
    /// Their sizes.
    pub sizes: Sizes,
    /// Frames of a million that the first link between routers loses.
    pub loss: u32,
    /// Frames of a million that the second link between routers lets the next frame pass.
    pub reordering: u32,
}

/// The counts of UDP with the same payloads at the same rate.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Datagrams {
    /// Sent.
    pub sent: u64,
    /// Arrived.
    pub arrived: u64,
    /// Arrived after one that was sent later; those below 9 bytes carry no number.
    pub out_of_order: u64,
    /// With other bytes than were sent.
    pub damaged: u64,
    /// Bytes of payload that arrived.
    pub bytes: u64,
    /// From the first datagram to the last, in seconds.
    pub seconds: f64,
}

impl Datagrams {
    /// Counts a payload, of `count` that were sent.
    fn count(&mut self, payload: &[u8], count: u64, next: &mut u64, expected: &mut Vec<u8>) {
        self.arrived += 1;
        self.bytes += payload.len() as u64;
        let number = payload.get(1..9).and_then(|bytes| bytes.try_into().ok());
        let Some(number) = number.map(u64::from_be_bytes) else {
            self.damaged += u64::from(!perf::is_part(payload, count));
            return;
        };
        perf::fill(number, payload.len(), expected);
        if payload != *expected || number >= count {
            self.damaged += 1;
        } else {
            self.out_of_order += u64::from(number < *next);
            *next = (*next).max(number + 1);
        }
    }
}

/// Both.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Compared {
    /// The reliable flow.
    pub flow: Outcome,
    /// Frames that the links lost while the flow was used.
    pub frames_lost: u64,
    /// UDP.
    pub udp: Datagrams,
}

/// Measures both.
///
/// # Errors
/// The routers do not start, or the flow fails.
pub fn compare(plan: Plan, folder: &Path) -> Result<Compared> {
    let mut topology = Topology::parse(TOPOLOGY)?;
    let near = topology.add_socket("udp-sender", "r1")?;
    let far = topology.add_socket("udp-receiver", "r3")?;
    let entries = (0..ROUTERS).map(|router| Ok((router, ipv4_entries(&topology, router, far)?)));
    let entries: BTreeMap<usize, String> = entries.collect::<Result<_>>()?;
    let mut fabric = Fabric::start_with(topology, folder, entries)?;
    fabric.wait_until_converged(PATIENCE)?;
    let set = |a: &str, b: &str, set: &dyn Fn(&Wire)| -> Result<()> {
        fabric.wires(a, b)?.into_iter().for_each(|wire| set(wire));
        Ok(())
    };
    set("r1", "r2", &|wire| wire.set_loss(plan.loss))?;
    set("r2", "r3", &|wire| wire.set_reordering(plan.reordering))?;

    let before = fabric.lost();
    let flow = reliable(&fabric, plan)?;
    let frames_lost = fabric.lost() - before;
    let rate = flow.sent_bytes as f64 / flow.seconds;
    let (mut near, mut far) = (fabric.open_socket(near)?, fabric.open_socket(far)?);
    let udp = datagrams(&mut near, &mut far, plan, rate)?;
    Ok(Compared { flow, frames_lost, udp })
}

fn reliable(fabric: &Fabric, plan: Plan) -> Result<Outcome> {
    let connect = |name: &str| -> Result<Ipcp> { Ok(Ipcp::connect(&fabric.socket(fabric.node(name)?))?) };
    let there = connect("receiver")?;
    let registration = there.register("bench")?;
    let receiver = std::thread::Builder::new().name("receiver".to_owned()).spawn(move || {
        let incoming = registration.next(PATIENCE)?;
        if let Some(incoming) = incoming {
            perf::receive(&incoming.accept()?)?;
        }
        anyhow::Ok(())
    })?;
    let here = connect("sender")?;
    let flow = here.allocate("sender", "bench", Qos::RELIABLE, PATIENCE)?;
    let outcome = perf::measure(&flow, true, plan.count, None, |number| plan.sizes.of(number))?;
    drop(flow);
    receiver
        .join()
        .map_err(|_| anyhow::anyhow!("the receiver has failed"))??;
    Ok(outcome)
}

/// Sends the same payloads over UDP, at a rate in bytes of payload per second.
fn datagrams(near: &mut UdpTunnel, far: &mut UdpTunnel, plan: Plan, rate: f64) -> Result<Datagrams> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = std::thread::Builder::new()
            .name("receiver".to_owned())
            .spawn_scoped(scope, || take(far, plan.count, &is_over))
            .context("cannot start a thread")?;
        let sent = give(near, plan, rate);
        is_over.store(true, Ordering::Release);
        let received = receiver
            .join()
            .map_err(|_| anyhow::anyhow!("the receiver has failed"))??;
        let (sent, seconds) = sent?;
        Ok(Datagrams {
            sent,
            seconds,
            ..received
        })
    })
}

fn give(near: &mut UdpTunnel, plan: Plan, rate: f64) -> Result<(u64, f64)> {
    let start = Instant::now();
    let (mut sdu, mut frame, mut bytes) = (Vec::new(), Vec::new(), 0_u64);
    for number in 0..plan.count {
        perf::fill(number, plan.sizes.of(number), &mut sdu);
        frames::write(Protocol::Ipv4, [2, 0, 0, 0, 0, 1], &sdu, &mut frame);
        let due = start + Duration::from_secs_f64(bytes as f64 / rate);
        while Instant::now() < due {
            std::thread::yield_now();
        }
        while near.transmit(&[Frame {
            data: &frame,
            time_ns: 0,
        }])? == 0
        {
            std::thread::yield_now();
        }
        bytes += sdu.len() as u64;
    }
    Ok((plan.count, start.elapsed().as_secs_f64()))
}

fn take(far: &mut UdpTunnel, count: u64, is_over: &AtomicBool) -> Result<Datagrams> {
    let mut batch = Batch::new(64);
    let (mut seen, mut next, mut expected) = (Datagrams::default(), 0, Vec::new());
    let mut last = Instant::now();
    loop {
        batch.clear();
        if is_over.load(Ordering::Acquire) && last.elapsed() > SILENCE {
            return Ok(seen);
        }
        if far.receive(&mut batch)? == 0 {
            weir_io::wait(&[&*far as &dyn Device], Duration::from_millis(20))?;
            continue;
        }
        for frame in batch.iter() {
            // The router searches neighbours here, too.
            let Some(payload) = datagram(frame.data) else {
                continue;
            };
            last = Instant::now();
            seen.count(payload, count, &mut next, &mut expected);
        }
    }
}

/// The payload of a datagram. Frames may be padded: its length counts.
fn datagram(frame: &[u8]) -> Option<&[u8]> {
    let payload = frames::payload(Protocol::Ipv4, frame)?;
    let length = frame.get(IPV4_HEADERS - 4..IPV4_HEADERS - 2)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    payload.get(..length.checked_sub(8)?)
}

/// IPv4 on its way to the far socket: the port of a router towards it.
fn ipv4_entries(topology: &Topology, router: usize, far: usize) -> Result<String> {
    let towards = if router + 1 < ROUTERS { router + 1 } else { far };
    let port = topology.ports(router).into_iter().find(|(_, end)| end.node == towards);
    let (port, _) = port.context("the routers are not in a line")?;
    Ok(format!(
        "add ipv4_lpm hdr.ipv4.dst_addr:10.0.{FAR}.0/24 ipv4_forward(vlan_id:0, dst_mac:02-00-00-00-00-01, port:{port})\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_of_all_sizes_are_undamaged_whichever_are_lost() {
        let (mut seen, mut next, mut expected, mut sdu) = (Datagrams::default(), 0, Vec::new(), Vec::new());
        for number in (0..100_000_u64).filter(|number| number % 7 != 0) {
            perf::fill(number, 1 + (number % 30) as usize, &mut sdu);
            seen.count(&sdu, 100_000, &mut next, &mut expected);
        }
        assert_eq!((seen.damaged, seen.out_of_order), (0, 0));
        for damaged in [&[7, 0, 0][..], &[0, 1, 0, 0, 0, 0, 0, 1], &[0, 1]] {
            let before = seen.damaged;
            seen.count(damaged, 100_000, &mut next, &mut expected);
            assert_eq!(seen.damaged, before + 1);
        }
    }
}
