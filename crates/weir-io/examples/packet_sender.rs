//! Sends the same frames over and over, as fast as it goes or at a rate.
//!
//! `packet_sender DEVICE [--seconds N] [--size N | --pcap FILE] [--rate N] [--burst N]`, with
//! DEVICE as in `weir run`: `xdp:eth0`, `packet:eth0`, … At a rate (frames per second) a frame goes
//! when its time has come. Of those that are late because the sender was held up, at most `--burst`
//! (64) are made up for; the rest is left out.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use weir_io::pcap::PcapReader;
use weir_io::{Batch, Device, DeviceSpec, Frame, Generator};

type Error = Box<dyn std::error::Error>;

struct Arguments {
    device: DeviceSpec,
    seconds: f64,
    size: usize,
    capture: Option<String>,
    rate: Option<f64>,
    burst: usize,
}

fn arguments() -> Result<Arguments, Error> {
    let usage = "packet_sender DEVICE [--seconds N] [--size N | --pcap FILE] [--rate N] [--burst N]";
    let mut arguments = Arguments {
        device: DeviceSpec::Null,
        seconds: 10.0,
        size: 60,
        capture: None,
        rate: None,
        burst: 64,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(usage);
        match word.as_str() {
            "--seconds" => arguments.seconds = value()?.parse()?,
            "--size" => arguments.size = value()?.parse()?,
            "--pcap" => arguments.capture = Some(value()?),
            "--rate" => arguments.rate = Some(value()?.parse()?),
            "--burst" => arguments.burst = value()?.parse()?,
            _ => arguments.device = word.parse()?,
        }
    }
    if arguments.device == DeviceSpec::Null || arguments.burst == 0 {
        return Err(usage.into());
    }
    Ok(arguments)
}

/// Frames of a capture, or generated ones.
fn frames(arguments: &Arguments) -> Result<Batch, Error> {
    let mut batch = Batch::new(64);
    match &arguments.capture {
        Some(path) => {
            let mut reader = PcapReader::new(std::fs::File::open(Path::new(path))?)?;
            while let Some(packet) = reader.next_packet()? {
                if !batch.push(packet.data, 0) {
                    break;
                }
            }
        }
        None => {
            let mut generator = Generator::new(format!("size={},count=64,flows=16", arguments.size).parse()?);
            generator.receive(&mut batch)?;
        }
    }
    Ok(batch)
}

fn main() -> Result<(), Error> {
    let arguments = arguments()?;
    let mut device = weir_io::open(&arguments.device)?;
    let batch = frames(&arguments)?;
    let frames: Vec<Frame<'_>> = batch.iter().collect();
    if frames.is_empty() {
        return Err("there is nothing to send".into());
    }
    let time = Duration::from_secs_f64(arguments.seconds);
    let (started, mut next) = (Instant::now(), 0);
    // Frames whose time has come and that were sent or left out.
    let mut done = 0u64;
    while started.elapsed() < time {
        let due = match arguments.rate {
            Some(rate) => {
                let by_now = (started.elapsed().as_secs_f64() * rate) as u64;
                done = done.max(by_now.saturating_sub(arguments.burst as u64));
                by_now.saturating_sub(done) as usize
            }
            None => usize::MAX,
        };
        let end = frames.len().min(next + due.min(arguments.burst));
        if end == next {
            std::hint::spin_loop();
            continue;
        }
        let sent = device.transmit(&frames[next..end])?;
        done += sent as u64;
        next = (next + sent) % frames.len();
    }
    device.flush()?;
    let (seconds, counters) = (started.elapsed().as_secs_f64(), device.counters());
    let text = format!(
        "{{\"device\":\"{}\",\"seconds\":{seconds:.3},\"sent\":{},\"send_dropped\":{},\"mpps\":{:.4}}}",
        device.description(),
        counters.sent,
        counters.send_dropped,
        counters.sent as f64 / seconds / 1e6,
    );
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
