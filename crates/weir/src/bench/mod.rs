//! `weir bench`: what a packet costs, with packets in memory and no I/O.

mod fill;
mod measure;
mod pool;
mod random;
mod rig;
mod workload;

use crate::cli::{Bench, Engine, MessageFormat, Source, Versus};
use crate::{load, packets};
use anyhow::{Result, bail};
use measure::{Measured, Plan};
use pool::{Packet, Pool};
use rig::{Rig, Side};
use std::io::Write;
use std::time::Duration;
use weir_io::{Batch, Device, Generator, GeneratorSpec};
use weir_switch::{StageCount, SwitchConfig};
use workload::{Spread, Wanted, Workload};

/// Measures.
pub fn bench(arguments: &Bench) -> Result<u8> {
    if !(arguments.seconds > 0.0 && arguments.seconds < 3600.0) {
        bail!("--seconds must be between 0 and 3600");
    }
    let Some(path) = &arguments.program else {
        bail!("give a program");
    };
    let source = Source {
        program: path.clone(),
        include: arguments.include.clone(),
        define: arguments.define.clone(),
        arch: arguments.arch.clone(),
        message_format: MessageFormat::Human,
    };
    let program = match crate::compile::program(&source)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    load::check_port(&program, arguments.port)?;
    let mut switch = load::switch(
        load::optimized(&program),
        SwitchConfig::default(),
        arguments.entries.as_deref(),
    )?;
    let mut by_hand = None;
    let packets = match arguments.table_entries {
        None => pool(arguments)?,
        Some(_) => {
            let name = path
                .file_stem()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            let workload = workload::bundled(&name, &wanted(arguments)?)?;
            workload.fill(&mut switch)?;
            if arguments.vs == Some(Versus::Ceiling) {
                by_hand = workload.by_hand();
            }
            workload.packets().to_vec()
        }
    };
    if arguments.vs == Some(Versus::Ceiling) && by_hand.is_none() {
        bail!("--vs ceiling goes with l2_switch or ipv4_router and --table-entries");
    }
    load::compile(&mut switch, arguments.engine);
    let engine = if switch.compiled().is_some() {
        Side::Jit
    } else {
        Side::Interp
    };
    let mut sides = vec![engine];
    match arguments.vs {
        Some(Versus::Interp) if engine == Side::Jit => sides.push(Side::Interp),
        Some(Versus::Ceiling) => sides.push(Side::Ceiling),
        _ => {}
    }
    let pool = Pool::new(&packets, switch.headroom());
    let compile_ms = switch.compile_time().map(|t| t.as_secs_f64() * 1e3);
    let mut rig = Rig::new(switch, by_hand, pool, arguments.vector as usize);
    let sent = rig.check(&sides)?;
    let plan = Plan {
        run: Duration::from_secs_f64(arguments.seconds),
        runs: arguments.runs as usize,
    };
    let (measured, frequency) = measure::measure(&mut rig, &sides, plan);
    let mut out = std::io::stdout().lock();
    for m in &measured {
        let (lowest, highest) = m.range();
        writeln!(
            out,
            "{:8} {:8.1} cycles per packet ({lowest:.1} to {highest:.1}), {:.2} Mpps",
            m.side.name(),
            m.median(),
            frequency / m.median() / 1e6
        )?;
    }
    if let [a, b] = measured.as_slice() {
        writeln!(out, "ratio {:.2}", a.median() / b.median())?;
    }
    writeln!(
        out,
        "{:.1} % of packets leave; compiled in {:.1} ms",
        sent * 100.0,
        compile_ms.unwrap_or(0.0)
    )?;
    if engine == Side::Jit {
        rig.switch.set_profiling(true);
        let rounds = 100;
        for _ in 0..rounds {
            rig.round(Side::Jit);
        }
        let packets = (rounds * rig.pool.len()) as f64;
        for (name, segment, lookup) in rig.switch.stages() {
            let fill = |s: &StageCount| s.packets as f64 / s.runs.max(1) as f64;
            writeln!(
                out,
                "  {name:40} code {:6.2} lookup {:6.2} cycles per packet, {:5.1} packets at a time",
                segment.cycles as f64 / packets,
                lookup.cycles as f64 / packets,
                fill(&segment)
            )?;
        }
    }
    Ok(0)
}

fn wanted(arguments: &Bench) -> Result<Wanted> {
    let spread = match arguments.distribution.split_once(':') {
        None if arguments.distribution == "uniform" => Spread::Uniform,
        None if arguments.distribution == "zipf" => Spread::Zipf(1.0),
        Some(("zipf", exponent)) => Spread::Zipf(exponent.parse()?),
        _ => bail!(
            "--distribution is uniform or zipf[:EXPONENT], not `{}`",
            arguments.distribution
        ),
    };
    let misses = match arguments.mix.as_deref().map(|m| m.split_once(':').unwrap_or((m, ""))) {
        None => 0,
        Some(("misses", percent)) => percent.parse()?,
        Some(_) => bail!("--mix is misses:PERCENT"),
    };
    Ok(Wanted {
        entries: arguments.table_entries.unwrap_or(0) as usize,
        pool: arguments.pool as usize,
        flows: arguments.flows.unwrap_or(arguments.pool) as usize,
        size: arguments.size as usize,
        spread,
        misses,
    })
}

/// Packets that are not made for the tables of a program.
fn pool(arguments: &Bench) -> Result<Vec<Packet>> {
    let given = match &arguments.packet {
        Some(packet) => packets::all(packet)?,
        None => generated(arguments)?,
    };
    if given.is_empty() {
        bail!("{} holds no packet", arguments.packet.as_deref().unwrap_or("the pool"));
    }
    let packets = given.iter().cycle().take(arguments.pool as usize);
    Ok(packets
        .map(|bytes| Packet {
            port: arguments.port,
            bytes: bytes.clone(),
        })
        .collect())
}

fn generated(arguments: &Bench) -> Result<Vec<Vec<u8>>> {
    let count = u64::from(arguments.flows.unwrap_or(arguments.pool));
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
