//! `weir demo`: the bundled router, with packets that really were on a wire.

use crate::cli::Demo;
use crate::graph::{self, Notes};
use crate::output::Messages;
use crate::{bundled, load, packets, stats};
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;
use weir_switch::{Output, Switch, SwitchConfig};

/// Port on which the router sends what its control plane should see.
const CPU_PORT: u32 = 64;

/// Compiles the router, pushes the captures through it and shows what happened.
pub fn demo(arguments: &Demo, messages: &Messages) -> Result<u8> {
    let started = Instant::now();
    let (name, text) = bundled::PROGRAMS
        .iter()
        .find(|(n, _)| *n == "ipv4_router.p4")
        .context("the router is not bundled")?;
    let compilation =
        weir_compiler::compile_source(name, text, &weir_compiler::Options::default(), weir_arch::targets())
            .started()?;
    let Some(program) = compilation.program else {
        bail!("the bundled router does not compile")
    };
    let program = Arc::new(program);
    let lines = crate::lines::Lines::new(compilation.sources);
    let compiled = started.elapsed();
    let switch = load::switch(program.clone(), SwitchConfig::default(), None, messages)?;
    let mut switch = load::configure(switch, bundled::DEMO_ENTRIES, "demo.entries")?;

    let mut arrivals: Vec<(u64, u32, Vec<u8>)> = Vec::new();
    for (port, capture) in bundled::DEMO_CAPTURES {
        arrivals.extend(
            packets::read_capture(*capture)?
                .into_iter()
                .map(|(time, bytes)| (time, *port, bytes)),
        );
    }
    arrivals.sort_by_key(|a| a.0);
    let first = arrivals.first().map_or(0, |a| a.0);
    let started = Instant::now();
    let mut sent: Vec<Output> = Vec::new();
    let mut example = None;
    for (time, port, bytes) in &arrivals {
        let now = time - first;
        // Traced, so that every drop is known by its place in the source.
        let (out, tree) = switch.inject_traced(*port, bytes, now);
        if example.is_none() && is_icmp(bytes) {
            example = Some(tree);
        }
        sent.extend(out);
    }
    let ran = started.elapsed();
    let checked = sent
        .iter()
        .filter(|o| o.port != CPU_PORT)
        .all(|o| header_checksum_is_right(&o.bytes));

    if let Some(path) = &arguments.svg {
        weir_files::write(path, picture(&switch).as_bytes())?;
    }

    let mut out = crate::output::stdout();
    if arguments.json {
        let mut value = stats::json(&switch);
        value["packets_in"] = arrivals.len().into();
        value["packets_out"] = sent.len().into();
        value["checksums_right"] = checked.into();
        value["svg"] = arguments.svg.as_ref().map(|path| path.display().to_string()).into();
        writeln!(out, "{value}")?;
        return Ok(0);
    }
    writeln!(
        out,
        "compiled {name} in {:.1} ms: {} tables, {} actions",
        compiled.as_secs_f64() * 1e3,
        program.tables.len(),
        program.actions.len()
    )?;
    writeln!(
        out,
        "{} captured packets in (ping, curl and iperf3 between two hosts), {} out, in {:.1} ms",
        arrivals.len(),
        sent.len(),
        ran.as_secs_f64() * 1e3
    )?;
    let verdict = if checked { "every" } else { "NOT every" };
    writeln!(
        out,
        "{verdict} forwarded packet has the right IPv4 header checksum after its TTL was lowered\n"
    )?;
    if let Some(tree) = example {
        writeln!(out, "what the first ping met (weir trace shows this for any packet):")?;
        write!(out, "{}", crate::trace::render(&tree, &lines, false))?;
        writeln!(out)?;
    }
    write!(out, "{}", stats::text(&switch))?;
    writeln!(
        out,
        "\nport {CPU_PORT} is the control plane's: ARP, expired TTLs, packets for the router itself"
    )?;
    match &arguments.svg {
        Some(path) => writeln!(out, "a picture of the pipeline is in {}", path.display())?,
        None => writeln!(out, "`weir demo --svg router.svg` saves a picture of the pipeline")?,
    }
    Ok(0)
}

/// The pipeline with what each table did.
fn picture(switch: &Switch) -> String {
    let program = switch.program();
    let mut notes = Notes::new();
    for (id, _) in program.tables.iter() {
        if let Ok(state) = switch.table_state(id) {
            notes.insert(id, format!("{} hits, {} misses", state.hits, state.misses));
        }
    }
    graph::svg(program, "ipv4_router.p4, after the demo", &notes, &footer(switch))
}

fn footer(switch: &Switch) -> Vec<String> {
    let mut lines: Vec<String> = switch
        .active_ports()
        .map(|(port, s)| format!("port {port}: {} packets in, {} out", s.rx.packets, s.tx.packets))
        .collect();
    for d in switch.drops() {
        lines.push(format!(
            "dropped, {}: {} {}",
            d.reason,
            d.packets,
            stats::place(switch.program(), d.loc)
        ));
    }
    lines
}

fn is_icmp(frame: &[u8]) -> bool {
    frame.len() > 34 && frame[12..14] == [8, 0] && frame[23] == 1
}

/// The one's complement sum over an IPv4 header is all ones (RFC 791).
fn header_checksum_is_right(frame: &[u8]) -> bool {
    if frame.len() < 34 || frame[12..14] != [8, 0] {
        return true;
    }
    let length = usize::from(frame[14] & 15) * 4;
    let Some(header) = frame.get(14..14 + length) else {
        return false;
    };
    let mut sum: u32 = header.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}
