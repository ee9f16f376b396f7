//! Counts what arrives.
//!
//! `packet_counter DEVICE [--seconds N]`, with DEVICE as in `weir run`: `xdp:eth0`, `packet:eth0`,
//! …

use std::io::Write;
use std::time::{Duration, Instant};
use weir_io::{Batch, BusyPoll, DeviceSpec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut device, mut seconds) = (None, 10.0);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => seconds = words.next().ok_or("--seconds N")?.parse()?,
            _ => device = Some(word.parse::<DeviceSpec>()?),
        }
    }
    let mut device = weir_io::open(&device.ok_or("packet_counter DEVICE [--seconds N]")?)?;
    let (mut batch, mut idle) = (Batch::new(64), BusyPoll::default());
    let (started, time) = (Instant::now(), Duration::from_secs_f64(seconds));
    while started.elapsed() < time {
        batch.clear();
        match device.receive(&mut batch)? {
            0 => drop(idle.idle(&[device.as_ref()], Duration::from_millis(10))?),
            _ => idle.worked(),
        }
    }
    let (seconds, counters) = (started.elapsed().as_secs_f64(), device.counters());
    let text = format!(
        "{{\"device\":\"{}\",\"seconds\":{seconds:.3},\"received\":{},\"receive_dropped\":{},\"mpps\":{:.4}}}",
        device.description(),
        counters.received,
        counters.receive_dropped,
        counters.received as f64 / seconds / 1e6,
    );
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
