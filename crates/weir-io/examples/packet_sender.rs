//! Sends one frame over and over, as fast as it goes.
//!
//! `packet_sender DEVICE [--seconds N] [--size N]`, with DEVICE as in `weir run`: `xdp:eth0`,
//! `packet:eth0`, …

use std::io::Write;
use std::time::{Duration, Instant};
use weir_io::{Batch, Device, DeviceSpec, Frame, Generator};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut device, mut seconds, mut size) = (None, 10.0, 60);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => seconds = words.next().ok_or("--seconds N")?.parse()?,
            "--size" => size = words.next().ok_or("--size N")?.parse()?,
            _ => device = Some(word.parse::<DeviceSpec>()?),
        }
    }
    let mut device = weir_io::open(&device.ok_or("packet_sender DEVICE [--seconds N] [--size N]")?)?;
    let mut generator = Generator::new(format!("size={size},count=64,flows=16").parse()?);
    let mut batch = Batch::new(64);
    generator.receive(&mut batch)?;
    let frames: Vec<Frame<'_>> = batch.iter().collect();
    let (started, mut next) = (Instant::now(), 0);
    let time = Duration::from_secs_f64(seconds);
    while started.elapsed() < time {
        next = (next + device.transmit(&frames[next..])?) % frames.len();
    }
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
