//! `weir int demo`: three switches, a slow hop, a lossy link, and a report that names both.

mod capture;
mod network;
mod traffic;

use super::arguments::Demo;
use super::report;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use capture::Captures;
pub use network::Random;
use network::{At, Link, Network, Node};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use traffic::{Delivered, Traffic};
use weir_collector::{Collector, Config};
use weir_int::Uint;
use weir_int::packet::{Detection, DscpMatch, PacketView};
use weir_int::report::Decoder;
use weir_ir::Program;
use weir_store::Store;
use weir_switch::{PortRate, Switch, SwitchConfig};

/// The switches, in a row.
const SWITCHES: usize = 3;
/// Port of a switch's host.
const HOST: u32 = 1;
/// Ports to the switches before and after.
const LEFT: u32 = 2;
const RIGHT: u32 = 3;
/// Port of the collector.
const COLLECTOR: u32 = 9;

/// INT domain whose packets are numbered.
const DOMAIN: u16 = 0x5745;
/// DSCP value of packets with INT.
const DSCP: u32 = 0x17;

/// The second switch sends to the third one slowly, in bits per second; all other ports are faster.
const SLOW: u64 = 20_000_000;
const FAST: u64 = 1_000_000_000;
/// Packets that fit in the queue before the slow port.
const LONG_QUEUE: usize = 4096;
/// Packets of a million that are lost from the first to the second switch.
const LOSS: u64 = 20_000;
/// Delay of each link, ns.
const DELAY: u64 = 30_000;
/// The third switch's clock is ahead by this, ns.
const CLOCK_AHEAD: u64 = 3_000_000;

/// How long an interval of the collector is, in virtual ns.
const INTERVAL: u64 = 200_000_000;
/// The virtual time at which it begins: clocks of switches do not begin at 0.
const BEGIN: u64 = 1_000_000_000;

/// Runs the network, collects its reports, and writes a page.
pub fn demo(arguments: &Demo, messages: &Messages) -> Result<u8> {
    let program = program()?;
    messages.line(format!(
        "{SWITCHES} switches run int_md; s2 sends to s3 at {} Mbit/s, s1 to s2 loses {} % of the packets, the clock of s3 is {} ms ahead",
        SLOW / 1_000_000,
        LOSS as f64 / 10_000.0,
        CLOCK_AHEAD / 1_000_000
    ));
    let folder = tempfile::tempdir().context("cannot make a folder for the results")?;
    let results = arguments
        .results
        .clone()
        .unwrap_or_else(|| folder.path().join("int.db"));
    let captures = Captures::create(arguments.captures.as_deref())?;
    let outcome = run(&program, arguments.duration, &results, captures, messages)?;
    let findings = report::write(&results, &arguments.output, None)?;
    let mut out = crate::output::stdout();
    if arguments.json {
        let value = serde_json::json!({
            "packets_sent": outcome.sent,
            "packets_delivered": outcome.delivered.whole,
            "packets_changed": outcome.delivered.changed,
            "packets_lost_by_link": outcome.lost,
            "reports": outcome.reports,
            "findings": findings,
            "page": arguments.output.display().to_string(),
        });
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(
            out,
            "{} packets sent, {} delivered as they were sent, {} changed, {} lost by the lossy link; {} reports",
            outcome.sent, outcome.delivered.whole, outcome.delivered.changed, outcome.lost, outcome.reports
        )?;
        writeln!(out, "What INT says, without knowing any of this:")?;
        for finding in &findings {
            writeln!(out, "  {finding}")?;
        }
        writeln!(out, "the whole report: {}", arguments.output.display())?;
    }
    Ok(0)
}

/// What became of the packets.
struct Outcome {
    sent: u64,
    delivered: Delivered,
    lost: u64,
    reports: u64,
}

fn program() -> Result<Arc<Program>> {
    let (name, text) = crate::bundled::PROGRAMS
        .iter()
        .find(|(name, _)| *name == "int_md.p4")
        .context("int_md is not bundled")?;
    let options = weir_compiler::Options::default();
    let included = crate::bundled::included();
    let compilation = weir_compiler::compile_bytes(
        name,
        text.as_bytes().to_vec(),
        &options,
        &included,
        weir_arch::targets(),
    )
    .started()?;
    match compilation.program {
        Some(program) => Ok(crate::load::optimized(&Arc::new(program))),
        None => bail!("the bundled int_md does not compile"),
    }
}

/// The state of a switch; `at` counts from 1, and is its node id.
fn entries(at: usize) -> String {
    let mut text = format!("setdefault node set_node(node_id:{at})\n");
    for to in 1..=SWITCHES {
        let port = match to.cmp(&at) {
            std::cmp::Ordering::Less => LEFT,
            std::cmp::Ordering::Equal => HOST,
            std::cmp::Ordering::Greater => RIGHT,
        };
        text += &format!(
            "add ipv4_lpm hdr.ipv4.dst_addr:10.0.{to}.0/24 route(src_mac:02-00-00-00-{at:02x}-0{port}, dst_mac:02-00-00-00-{to:02x}-10, port:{port})\n"
        );
    }
    text += &format!(
        "value_set outside_ports {HOST}\nvalue_set int_domains {DOMAIN:#x}\n\
         add sink_ports standard_metadata.egress_port:{HOST} sink()\n\
         add watchlist 10 hdr.ipv4.src_addr:10.0.{at}.0/24 hdr.ipv4.protocol:17 start_profile(profile:1)\n\
         add watchlist 10 hdr.ipv4.src_addr:10.0.{at}.0/24 hdr.ipv4.protocol:6 start_profile(profile:1)\n\
         add profiles meta.profile:1 start_int(hop_words:7, hop_count:8, instructions:0xDC00, domain_id:{DOMAIN:#x})\n\
         add source_metadata meta.profile:1 number_flow()\n\
         mirroring_add 1 {COLLECTOR}\n\
         setdefault collector report(src_mac:02-00-00-00-09-0{at}, dst_mac:02-00-00-00-09-90, src_addr:10.0.9.{at}, dst_addr:10.0.9.90, port:5900)\n"
    );
    text
}

fn network(program: &Arc<Program>) -> Result<Network> {
    let mut nodes = Vec::new();
    let mut links = BTreeMap::new();
    for at in 0..SWITCHES {
        let engine = Arc::new(weir_interp::Interpreter::new(Arc::clone(program)));
        let switch = Switch::with_engine(engine, SwitchConfig::default())?;
        let mut switch = crate::load::configure(switch, &entries(at + 1), "the demo's entries")?;
        for port in [HOST, LEFT, RIGHT] {
            let is_slow = (at, port) == (1, RIGHT);
            let rate = if is_slow { SLOW } else { FAST };
            let rate = PortRate {
                bits_per_second: Some(rate),
                packets_per_second: None,
            };
            switch.set_port_rate(port, rate);
            switch.set_queue_capacity(port, LONG_QUEUE);
        }
        nodes.push(Node {
            switch,
            clock_ahead: if at + 1 == SWITCHES { CLOCK_AHEAD } else { 0 },
        });
    }
    for left in 0..SWITCHES - 1 {
        let (from, to) = (
            At {
                switch: left,
                port: RIGHT,
            },
            At {
                switch: left + 1,
                port: LEFT,
            },
        );
        let loss = if left == 0 { LOSS } else { 0 };
        links.insert(from, Link { to, delay: DELAY, loss });
        links.insert(
            to,
            Link {
                to: from,
                delay: DELAY,
                loss: 0,
            },
        );
    }
    Ok(Network::new(nodes, links))
}

fn collector() -> Collector {
    let detection = Detection {
        dscp: Some(DscpMatch::exactly(Uint::truncate(DSCP))),
        ..Detection::default()
    };
    Collector::new(Config {
        decoder: Decoder {
            detection,
            ..Decoder::default()
        },
        sequence_domain: Some(DOMAIN),
        ..Config::default()
    })
}

fn run(
    program: &Arc<Program>,
    duration: Duration,
    results: &Path,
    mut captures: Captures,
    messages: &Messages,
) -> Result<Outcome> {
    let mut network = network(program)?;
    let mut traffic = Traffic::new();
    let mut collector = collector();
    let mut store = Store::create(results)?;
    let epoch = weir_io::now_ns();
    let mut outcome = Outcome {
        sent: 0,
        delivered: Delivered::default(),
        lost: 0,
        reports: 0,
    };
    let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let intervals = duration.div_ceil(INTERVAL) + 1;
    for interval in 1..=intervals {
        let until = BEGIN + interval * INTERVAL;
        // In the last interval what is on its way arrives.
        if interval < intervals {
            outcome.sent += traffic.send(&mut network, until - INTERVAL, until);
        }
        let last = if interval < intervals { until } else { u64::MAX };
        network.run(last, &mut captures.links, |from, time, packet| match from.port {
            COLLECTOR => {
                captures.reports.write(&packet, time);
                let view = PacketView::ethernet(&packet, &Detection::default());
                if let Some(flow) = view.flow {
                    collector.take(epoch + time - BEGIN, flow.source, view.payload);
                }
            }
            _ => {
                captures.hosts.write(&packet, time);
                outcome.delivered.count(&packet);
            }
        });
        let mut flows = Vec::new();
        let now = epoch + until - BEGIN;
        let result = collector.end_interval(now, |flow| flows.push(flow));
        outcome.reports += result.totals.reports;
        store.write(&result, &flows)?;
        messages.line(format!(
            "{:.1} s of traffic: {} packets sent, {} reports",
            ((until - BEGIN) as f64 / 1e9).min(duration as f64 / 1e9),
            outcome.sent,
            outcome.reports
        ));
    }
    outcome.lost = network.lost;
    captures.finish()?;
    Ok(outcome)
}
