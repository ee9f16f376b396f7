//! `weir rina ping`: round trips between applications.

use super::arguments::PingArguments;
use crate::cli::NO;
use anyhow::{Result, ensure};
use std::io::Write;
use std::time::{Duration, Instant};
use weir_rina_host::{Flow, HostError, Ipcp, Qos};

/// The time for the allocation of a flow.
const ALLOCATION: Duration = Duration::from_secs(10);
/// How long a responder waits before it looks again.
const WAIT: Duration = Duration::from_secs(3600);

/// Sends and receives, or answers.
pub fn ping(arguments: &PingArguments) -> Result<u8> {
    let ipcp = Ipcp::connect(&arguments.socket.socket)?;
    match (&arguments.listen, &arguments.name) {
        (Some(name), _) => listen(&ipcp, name),
        (None, Some(name)) => send(&ipcp, name, arguments),
        (None, None) => Ok(2),
    }
}

fn listen(ipcp: &Ipcp, name: &str) -> Result<u8> {
    let registration = ipcp.register(name)?;
    loop {
        if let Some(incoming) = registration.next(WAIT)? {
            let flow = incoming.accept()?;
            std::thread::Builder::new()
                .name("echo".to_owned())
                .spawn(move || echo(&flow))?;
        }
    }
}

/// Answers each SDU with itself until the flow ends.
pub fn echo(flow: &Flow) {
    while let Ok(sdu) = flow.read_sdu(WAIT) {
        if let Some(sdu) = sdu
            && flow.write_sdu(&sdu).is_err()
        {
            return;
        }
    }
}

fn send(ipcp: &Ipcp, name: &str, arguments: &PingArguments) -> Result<u8> {
    let most = ipcp.max_sdu();
    ensure!(
        (8..=most).contains(&arguments.size),
        "--size: expected 8 to {most} bytes, found {}",
        arguments.size
    );
    let flow = ipcp.allocate("ping", name, Qos::UNRELIABLE, ALLOCATION)?;
    let mut out = crate::output::stdout();
    let mut times = Vec::new();
    for number in 0..arguments.count {
        let start = Instant::now();
        match round_trip(&flow, u64::from(number), arguments) {
            Ok(Some(time)) => {
                times.push(time);
                if !arguments.json {
                    writeln!(
                        out,
                        "{} bytes from {name}: number {number}, {}",
                        arguments.size,
                        shown(time)
                    )?;
                }
            }
            Ok(None) if !arguments.json => writeln!(out, "number {number}: no answer")?,
            Ok(None) => {}
            Err(error) => return Err(error.into()),
        }
        if number + 1 < arguments.count {
            std::thread::sleep(arguments.interval.saturating_sub(start.elapsed()));
        }
    }
    times.sort_unstable();
    let lost = arguments.count as usize - times.len();
    let mean = times.iter().sum::<Duration>().checked_div(times.len() as u32);
    let microseconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e6);
    if arguments.json {
        let value = serde_json::json!({
            "sent": arguments.count,
            "lost": lost,
            "min_us": microseconds(times.first().copied()),
            "mean_us": microseconds(mean),
            "max_us": microseconds(times.last().copied()),
        });
        writeln!(out, "{value:#}")?;
    } else if let (Some(min), Some(mean), Some(max)) = (times.first(), mean, times.last()) {
        writeln!(
            out,
            "{} sent, {lost} lost; round trip {} to {}, mean {}",
            arguments.count,
            shown(*min),
            shown(*max),
            shown(mean)
        )?;
    } else {
        writeln!(out, "{} sent, {lost} lost", arguments.count)?;
    }
    Ok(if lost > 0 { NO } else { 0 })
}

/// The time until the answer to an SDU; answers to earlier ones are passed over.
fn round_trip(flow: &Flow, number: u64, arguments: &PingArguments) -> Result<Option<Duration>, HostError> {
    let mut sdu = number.to_be_bytes().to_vec();
    sdu.resize(arguments.size, 0x55);
    let start = Instant::now();
    flow.write_sdu(&sdu)?;
    loop {
        let left = arguments.timeout.saturating_sub(start.elapsed());
        match flow.read_sdu(left)? {
            Some(answer) if answer == sdu => return Ok(Some(start.elapsed())),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

/// A time for people.
pub fn shown(time: Duration) -> String {
    let microseconds = time.as_secs_f64() * 1e6;
    if microseconds < 1000.0 {
        format!("{microseconds:.0} µs")
    } else {
        format!("{:.2} ms", microseconds / 1000.0)
    }
}
