//! `weir int measure --demo`: a device of known delay in this process, over UDP of this machine.

use super::Plan;
use super::device::{Behaviour, Device, Recorded, recorded_of};
use super::frame::HEADERS;
use super::path::Path;
use super::report::{PathResult, Report};
use super::table::nanoseconds;
use crate::output::Messages;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_io::{TimestampedReceiver, TimestampedSender};

/// The device's delay.
const BEHAVIOUR: Behaviour = Behaviour {
    fixed: Duration::from_micros(100),
    link: Some(1_000_000_000),
};

/// Any port of this machine alone.
const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Measures a loopback and the device; the results, and what the device recorded.
pub fn run(plan: &Plan, messages: &Messages, stop: &AtomicBool) -> Result<(Report, Vec<Recorded>)> {
    messages.line("the device: 100 us, then store-and-forward at 1 Gbit/s; all sockets are of this machine");
    let (sink, address) = TimestampedReceiver::udp(HERE)?;
    let mut loopback = Path::by_udp(sink, address)?;
    plan.check(&loopback)?;
    let cases = plan.run(&mut loopback, "Loopback", messages, stop)?;
    let baseline = result("Loopback", &loopback, cases);

    let (sink, address) = TimestampedReceiver::udp(HERE)?;
    let (entrance, first) = TimestampedReceiver::udp(HERE)?;
    let device = Device::new(entrance, TimestampedSender::udp(HERE, address)?, BEHAVIOUR, HEADERS);
    let mut path = Path::by_udp(sink, first)?;
    let end = AtomicBool::new(false);
    let (cases, recorded) = std::thread::scope(|scope| -> Result<_> {
        let device = std::thread::Builder::new()
            .name("device".to_owned())
            .spawn_scoped(scope, || device.run(&end))?;
        let cases = plan.run(&mut path, "Device", messages, stop);
        end.store(true, Ordering::Relaxed);
        let recorded = device.join().ok().context("the device has failed")??;
        Ok((cases?, recorded))
    })?;
    let device = result("Device", &path, cases);
    Ok((Report::new(device, Some(baseline)), recorded))
}

fn result(name: &str, path: &Path, cases: Vec<super::case::Measured>) -> PathResult {
    PathResult {
        name: name.to_owned(),
        source: "udp".to_owned(),
        sink: "udp".to_owned(),
        clocks: path.clocks,
        cases,
    }
}

/// What the device recorded beside what was measured; empty without a simulated device.
pub fn comparison(report: &Report, recorded: &[Recorded]) -> String {
    let mut text = String::new();
    for delay in &report.device_delay {
        let Some(own) = recorded_of(recorded, delay.case) else {
            continue;
        };
        let (measured, own) = (delay.median.value, own.delay.median.value);
        if text.is_empty() {
            text.push_str("\nThe simulated device's own record, by its median\n");
        }
        let _ = writeln!(
            text,
            "{:>5} B: measured {} ns, recorded {} ns, difference {} ns",
            delay.case.size,
            nanoseconds(measured),
            nanoseconds(own),
            nanoseconds(measured - own)
        );
    }
    text
}
