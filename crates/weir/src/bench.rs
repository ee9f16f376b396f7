//! `weir bench`: packets per second of the engine, with packets in memory and no I/O.

use crate::cli::Bench;
use crate::{load, packets};
use anyhow::{Result, bail};
use std::io::Write;
use std::time::{Duration, Instant};
use weir_io::{Batch, Device, Generator, GeneratorSpec};
use weir_switch::{Switch, SwitchConfig};

/// Measures.
pub fn bench(arguments: &Bench) -> Result<u8> {
    if arguments.runs == 0 || !(arguments.seconds > 0.0 && arguments.seconds < 3600.0) {
        bail!("--runs must be at least 1 and --seconds between 0 and 3600");
    }
    let pool = pool(arguments)?;
    let program = match crate::compile::program(&arguments.source)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    load::check_port(&program, arguments.port)?;
    let mut switch = load::switch(
        load::optimized(&program),
        SwitchConfig::default(),
        arguments.entries.as_deref(),
    )?;
    // One round warms caches and shows where the packets go.
    let mut sent = 0usize;
    for packet in &pool {
        sent += switch.inject(arguments.port, packet, 0).len();
    }
    let mut rates: Vec<f64> = (0..arguments.runs)
        .map(|_| run(&mut switch, arguments, &pool))
        .collect();
    rates.sort_by(f64::total_cmp);
    let median = rates[rates.len() / 2];
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let value = serde_json::json!({
            "engine": "interp", "packets_per_second": median, "runs": rates, "packets_in_pool": pool.len(), "sent_per_packet": sent as f64 / pool.len() as f64,
        });
        writeln!(out, "{value}")?;
    } else {
        writeln!(
            out,
            "engine interp, {} different packets, {:.2} sent for each",
            pool.len(),
            sent as f64 / pool.len() as f64
        )?;
        writeln!(
            out,
            "{:.0} packets per second, {:.2} µs per packet (median of {} runs of {} s; lowest {:.0}, highest {:.0})",
            median,
            1e6 / median,
            rates.len(),
            arguments.seconds,
            rates[0],
            rates[rates.len() - 1]
        )?;
    }
    Ok(0)
}

fn pool(arguments: &Bench) -> Result<Vec<Vec<u8>>> {
    if let Some(packet) = &arguments.packet {
        let packets = packets::all(packet)?;
        if packets.is_empty() {
            bail!("{packet} holds no packet");
        }
        return Ok(packets);
    }
    let count = u64::from(arguments.flows.max(1));
    let text = format!("size={},flows={count},count={count}", arguments.size);
    let spec: GeneratorSpec = text.parse()?;
    let mut generator = Generator::new(spec);
    let mut packets = Vec::new();
    let mut batch = Batch::new(256);
    while !generator.is_exhausted() {
        batch.clear();
        if generator.receive(&mut batch)? == 0 {
            break;
        }
        packets.extend(batch.iter().map(|f| f.data.to_vec()));
    }
    Ok(packets)
}

fn run(switch: &mut Switch, arguments: &Bench, pool: &[Vec<u8>]) -> f64 {
    let limit = Duration::from_secs_f64(arguments.seconds);
    let started = Instant::now();
    let mut count = 0u64;
    loop {
        for packet in pool.iter().cycle().take(256) {
            let now = started.elapsed().as_nanos() as u64;
            std::hint::black_box(switch.inject(arguments.port, packet, now));
            count += 1;
        }
        let elapsed = started.elapsed();
        if elapsed >= limit {
            return count as f64 / elapsed.as_secs_f64();
        }
    }
}
