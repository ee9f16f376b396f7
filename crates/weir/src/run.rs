//! `weir run`: the program as a switch between devices.

use crate::cli::{NO, Run};
use crate::{load, stats};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_io::{Batch, Device, DeviceSpec, Frame, PortSpec};
use weir_switch::{Output, PortRate, Switch, SwitchConfig};

/// Frames taken from one device before the others have their turn.
const BATCH: usize = 64;
/// Longest sleep: how soon a signal is noticed.
const PATIENCE: Duration = Duration::from_millis(100);

struct Port {
    number: u32,
    device: Box<dyn Device>,
    /// Frames that the device would not take and no other attempt will be made for.
    refused: u64,
    /// Why nothing more will be received.
    failure: Option<weir_io::IoError>,
}

/// Runs until the time is over, a signal comes, or every input has ended.
pub fn run(arguments: &Run) -> Result<u8> {
    let specs = port_specs(&arguments.interfaces)?;
    distinct_files(&specs)?;
    let program = match crate::compile::program(&arguments.source)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    for spec in &specs {
        load::check_port(&program, spec.port)?;
    }
    let config = SwitchConfig {
        explicit_ports: false,
        queue_capacity: arguments.queue_capacity as usize,
        ..SwitchConfig::default()
    };
    // Whoever wants to see every step gets every step.
    let traced = arguments.trace.is_some() || arguments.trace_port.is_some();
    let program = if traced { program } else { load::optimized(&program) };
    let mut switch = load::switch(program, config, arguments.entries.as_deref())?;
    if !traced {
        load::compile(&mut switch, arguments.engine);
    }
    for rate in &arguments.port_rate {
        let (port, bits) = port_rate(rate)?;
        switch.set_port_rate(
            port,
            PortRate {
                bits_per_second: Some(bits),
                ..PortRate::default()
            },
        );
    }
    let mut ports = Vec::new();
    for spec in &specs {
        let device = weir_io::open(&spec.device).with_context(|| format!("port {}", spec.port))?;
        eprintln!("port {}: {}", spec.port, device.description());
        ports.push(Port {
            number: spec.port,
            device,
            refused: 0,
            failure: None,
        });
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("cannot listen for signals")?;
    }
    eprintln!("running; stop with Ctrl-C");
    let mut runner = Runner {
        arguments,
        switch,
        ports,
        started: Instant::now(),
        received: 0,
        digests: 0,
        unconnected: BTreeMap::new(),
    };
    runner.until(&stop)?;
    runner.finish()?;
    let failed = runner.ports.iter().any(|p| p.failure.is_some());
    Ok(if failed { NO } else { 0 })
}

fn port_specs(texts: &[String]) -> Result<Vec<PortSpec>> {
    let mut specs: Vec<PortSpec> = Vec::new();
    for text in texts {
        let spec: PortSpec = text.parse()?;
        if specs.iter().any(|s| s.port == spec.port) {
            bail!("port {} has two devices", spec.port);
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// A capture that is written must be no capture that is read or written otherwise: opening it for writing
/// empties it.
fn distinct_files(specs: &[PortSpec]) -> Result<()> {
    let real = |path: &Path| {
        path.canonicalize()
            .unwrap_or_else(|_| match (path.parent().map(Path::canonicalize), path.file_name()) {
                (Some(Ok(folder)), Some(name)) => folder.join(name),
                _ => path.to_path_buf(),
            })
    };
    let mut read = Vec::new();
    let mut written = Vec::new();
    for spec in specs {
        if let DeviceSpec::Pcap { input, output } = &spec.device {
            read.push(real(input));
            written.extend(output.as_deref().map(real));
        }
    }
    for (i, path) in written.iter().enumerate() {
        if read.contains(path) || written[..i].contains(path) {
            bail!(
                "{} would be written over while it is in use; write to another file",
                path.display()
            );
        }
    }
    Ok(())
}

/// `2=10M`: port and bits per second.
fn port_rate(text: &str) -> Result<(u32, u64)> {
    let parsed = text.split_once('=').and_then(|(port, rate)| {
        let (digits, factor) = match rate.chars().last()? {
            'k' | 'K' => (&rate[..rate.len() - 1], 1e3),
            'M' => (&rate[..rate.len() - 1], 1e6),
            'G' => (&rate[..rate.len() - 1], 1e9),
            _ => (rate, 1.0),
        };
        let rate: f64 = digits.parse().ok()?;
        let bits = rate * factor;
        (1.0..1e15).contains(&bits).then_some((port.parse().ok()?, bits as u64))
    });
    parsed.with_context(|| {
        format!("`{text}` is no rate of a port; write for example 2=10M for ten million bits per second at port 2")
    })
}

struct Runner<'a> {
    arguments: &'a Run,
    switch: Switch,
    ports: Vec<Port>,
    started: Instant,
    received: u64,
    /// Digest messages that nobody was there to take.
    digests: u64,
    /// Packets for ports that no device is connected to.
    unconnected: BTreeMap<u32, u64>,
}

impl Runner<'_> {
    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn until(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut batch = Batch::new(BATCH);
        while !stop.load(Ordering::Relaxed) {
            let left = match self.arguments.time {
                Some(time) => match time.checked_sub(self.started.elapsed()) {
                    Some(left) => left,
                    None => break,
                },
                None => PATIENCE,
            };
            let mut busy = false;
            for index in 0..self.ports.len() {
                batch.clear();
                if self.ports[index].failure.is_some() {
                    continue;
                }
                // What came before a failure counts; the other ports go on.
                let received = self.ports[index].device.receive(&mut batch);
                if !batch.is_empty() {
                    busy = true;
                    self.take(index, &batch)?;
                }
                if let Err(error) = received {
                    eprintln!("port {}: {error}", self.ports[index].number);
                    self.ports[index].failure = Some(error);
                }
            }
            while self.switch.next_digest().is_some() {
                self.digests += 1;
            }
            let out = self.switch.advance(self.now());
            busy |= !out.is_empty();
            self.send(&out)?;
            let queued = self.switch.next_departure();
            if !busy
                && queued.is_none()
                && self
                    .ports
                    .iter()
                    .all(|p| p.failure.is_some() || p.device.is_exhausted())
            {
                break;
            }
            if !busy {
                let departure = queued.map_or(PATIENCE, |t| Duration::from_nanos(t.saturating_sub(self.now())));
                let working = self.ports.iter().filter(|p| p.failure.is_none());
                let devices: Vec<&dyn Device> = working.map(|p| p.device.as_ref()).collect();
                weir_io::wait(&devices, left.min(departure).min(PATIENCE))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, index: usize, batch: &Batch) -> Result<()> {
        let port = self.ports[index].number;
        for frame in batch.iter() {
            self.received += 1;
            let now = self.now();
            let sampled = self
                .arguments
                .trace
                .is_some_and(|n| n > 0 && self.received.is_multiple_of(n))
                || self.arguments.trace.is_none() && self.arguments.trace_port.is_some();
            if sampled && self.arguments.trace_port.is_none_or(|p| p == port) {
                let (out, tree) = self.switch.inject_traced(port, frame.data, now);
                eprint!(
                    "packet {} at port {port}\n{}",
                    self.received,
                    crate::trace::render(&tree, false)
                );
                self.send(&out)?;
            } else {
                self.switch.receive(port, frame.data, now);
            }
        }
        Ok(())
    }

    fn send(&mut self, out: &[Output]) -> Result<()> {
        for output in out {
            let Some(port) = self.ports.iter_mut().find(|p| p.number == output.port) else {
                *self.unconnected.entry(output.port).or_default() += 1;
                continue;
            };
            let frame = Frame {
                data: &output.bytes,
                time_ns: weir_io::now_ns(),
            };
            let mut attempts = 0;
            // The kernel's queue may be full for a moment.
            while port.device.transmit(&[frame])? == 0 {
                attempts += 1;
                if attempts == 1000 {
                    port.refused += 1;
                    break;
                }
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let out = self.switch.drain();
        self.send(&out)?;
        for port in &mut self.ports {
            port.device.flush()?;
        }
        let mut out = std::io::stdout().lock();
        let seconds = self.started.elapsed().as_secs_f64();
        if self.arguments.json {
            let mut value = stats::json(&self.switch);
            value["seconds"] = seconds.into();
            value["digests"] = self.digests.into();
            value["unconnected"] = self
                .unconnected
                .iter()
                .map(|(port, n)| serde_json::json!({ "port": port, "packets": n }))
                .collect();
            value["refused"] = self
                .ports
                .iter()
                .map(|p| serde_json::json!({ "port": p.number, "packets": p.refused }))
                .collect();
            writeln!(out, "{value}")?;
            return Ok(());
        }
        writeln!(
            out,
            "{} packets in {seconds:.1} s\n{}",
            self.received,
            stats::text(&self.switch)
        )?;
        if self.digests > 0 {
            writeln!(out, "{} digest messages had no control plane to go to", self.digests)?;
        }
        for (port, count) in &self.unconnected {
            writeln!(out, "{count} packets went to port {port}, which has no device")?;
        }
        for port in self.ports.iter().filter(|p| p.refused > 0) {
            writeln!(
                out,
                "{} packets were refused by the device of port {}",
                port.refused, port.number
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units() {
        assert_eq!(port_rate("2=10M").unwrap(), (2, 10_000_000));
        assert_eq!(port_rate("0=1.5k").unwrap(), (0, 1500));
        for wrong in ["10M", "2=", "2=fast", "2=0", "x=1"] {
            assert!(port_rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_port_has_one_device() {
        let texts = ["1@null".to_string(), "1@null".to_string()];
        assert!(port_specs(&texts).unwrap_err().to_string().contains("two devices"));
    }
}
