//! `weir int bench`: what the collector can take, without switches.

use super::arguments::Bench;
use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_collector::synthetic::{DSCP, Packet, hop};
use weir_collector::{Collector, Config};
use weir_compiler::NoThread;
use weir_int::packet::{Detection, DscpMatch};
use weir_int::report::{Decoder, Report};
use weir_int::{FlowKey, Uint};
use weir_io::UdpReceiver;

/// Datagrams that are taken at a time.
const BATCH: usize = 32;
/// Different paths of the flows.
const PATHS: u32 = 20;
/// Runs; their median counts.
const RUNS: usize = 5;
/// Bytes of the socket's buffer.
const BUFFER: usize = 64 << 20;
/// Without a datagram for this time, all have come.
const SILENCE: Duration = Duration::from_millis(300);

const SINK: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9));

/// Measures, and prints the rates.
pub fn bench(arguments: &Bench) -> Result<u8> {
    let datagrams = datagrams(arguments);
    let decode = median(|| time_decode(&datagrams, false));
    let hops = median(|| time_decode(&datagrams, true));
    let mut collector = Collector::new(config(arguments.flows as usize));
    let whole = median(|| time_whole(&datagrams, &mut collector));
    let udp = arguments
        .udp
        .then(|| over_udp(&datagrams, arguments.flows as usize))
        .transpose()?;
    let mut out = crate::output::stdout();
    if arguments.json {
        let value = serde_json::json!({
            "hops": arguments.hops,
            "flows": collector.flow_count(),
            "ns_per_report": whole,
            "reports_per_second": 1e9 / whole,
            "ns_decode": decode,
            "ns_hops": hops - decode,
            "ns_analysis": whole - hops,
            "udp": udp,
        });
        writeln!(out, "{value:#}")?;
        return Ok(0);
    }
    let share = |part: f64| 100.0 * part / whole;
    writeln!(
        out,
        "{} hops, {} flows: {:.2} M reports/s ({whole:.0} ns each), one thread, from memory, median of {RUNS}",
        arguments.hops,
        collector.flow_count(),
        1e3 / whole
    )?;
    writeln!(
        out,
        "  {:5.1} %  headers of the report and its packet ({decode:.0} ns)",
        share(decode)
    )?;
    writeln!(
        out,
        "  {:5.1} %  values of the hops ({:.0} ns)",
        share(hops - decode),
        hops - decode
    )?;
    writeln!(
        out,
        "  {:5.1} %  sequence, flow, path, ports, queues, links ({:.0} ns)",
        share(whole - hops),
        whole - hops
    )?;
    if let Some(udp) = udp {
        writeln!(
            out,
            "UDP on loopback: {} sent, {} taken at {:.2} M reports/s, {} dropped by the kernel, {} not accounted for",
            udp.sent,
            udp.taken,
            udp.rate / 1e6,
            udp.dropped,
            udp.sent as i64 - udp.taken as i64 - udp.dropped as i64
        )?;
    }
    Ok(0)
}

fn config(flows: usize) -> Config {
    let detection = Detection {
        dscp: Some(DscpMatch::exactly(Uint::truncate(DSCP.into()))),
        ..Detection::default()
    };
    Config {
        decoder: Decoder {
            detection,
            ..Decoder::default()
        },
        max_flows: flows.max(1),
        ..Config::default()
    }
}

/// Reports of flows in a random order.
fn datagrams(arguments: &Bench) -> Vec<Vec<u8>> {
    let mut random = super::demo::Random(0x0020_2611);
    let mut make = |number: u32| {
        let flow = random.below(arguments.flows.into()) as u32;
        let key = FlowKey {
            source: Ipv4Addr::from_bits(0x0a00_0000 | (flow & 0x00ff_ffff)).into(),
            destination: [10, 200, 0, 1].into(),
            source_port: 4000,
            destination_port: 5000,
            protocol: 17,
        };
        let start = u64::from(number) * 1000;
        let first = arguments.hops * (flow % PATHS);
        let hop_at = |at: u32| {
            let time = start + u64::from(at) * 1200 + random.below(100);
            hop(first + at, (1, 2), (0, random.below(200) as u32), time, time + 1000)
        };
        let packet = Packet {
            flow: key,
            bytes: 1000,
            hops: (0..arguments.hops).map(hop_at).collect(),
            number: None,
        };
        packet.sink_report(number)
    };
    (0..arguments.reports).map(&mut make).collect()
}

/// ns per report.
fn median(mut run: impl FnMut() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    all.sort_by(f64::total_cmp);
    all[RUNS / 2]
}

fn per_report(start: Instant, datagrams: &[Vec<u8>]) -> f64 {
    start.elapsed().as_nanos() as f64 / datagrams.len() as f64
}

fn time_decode(datagrams: &[Vec<u8>], with_hops: bool) -> f64 {
    let decoder = config(1).decoder;
    let start = Instant::now();
    let mut seen = 0_u64;
    let mut report = Report::empty();
    for datagram in datagrams {
        let mut reports = decoder.decode(datagram);
        while let Some(result) = reports.next_into(&mut report) {
            seen += u64::from(result.is_ok()) + u64::from(report.flow().is_some());
            if with_hops {
                seen += report
                    .hops()
                    .iter()
                    .map(|hop| u64::from(hop.latency.unwrap_or(1)))
                    .sum::<u64>();
            }
        }
    }
    std::hint::black_box(seen);
    per_report(start, datagrams)
}

fn time_whole(datagrams: &[Vec<u8>], collector: &mut Collector) -> f64 {
    let start = Instant::now();
    let mut now = 1_000_000_000;
    for batch in datagrams.chunks(BATCH) {
        let batch: Vec<(IpAddr, &[u8])> = batch.iter().map(|datagram| (SINK, &datagram[..])).collect();
        collector.take_batch(now, &batch);
        now += 1000;
    }
    per_report(start, datagrams)
}

/// What came over UDP.
#[derive(serde::Serialize)]
struct Udp {
    sent: u64,
    taken: u64,
    dropped: u64,
    /// Reports per second.
    rate: f64,
}

/// Sends as fast as a thread can, and takes with another one.
fn over_udp(datagrams: &[Vec<u8>], flows: usize) -> Result<Udp> {
    let mut receiver = UdpReceiver::bind("127.0.0.1:0".parse()?, BUFFER).context("cannot bind a socket")?;
    let sender = UdpSocket::bind("127.0.0.1:0").context("cannot bind a socket")?;
    sender.connect(receiver.address())?;
    let mut collector = Collector::new(config(flows));
    let is_sent = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let done = Arc::clone(&is_sent);
        let thread = std::thread::Builder::new().name("sender".to_owned());
        let sending = thread.spawn_scoped(scope, move || {
            // What cannot be sent is not counted as sent.
            let sent = datagrams
                .iter()
                .filter(|datagram| sender.send(datagram).is_ok())
                .count();
            done.store(true, Ordering::Release);
            sent as u64
        });
        let sending = sending.map_err(|error| NoThread::new("sending", &error))?;
        let (start, mut last, mut taken) = (Instant::now(), Instant::now(), 0);
        loop {
            let got = receiver.receive(SILENCE)? as u64;
            if got == 0 && is_sent.load(Ordering::Acquire) {
                break;
            }
            if got > 0 {
                let batch: Vec<_> = receiver.datagrams().collect();
                collector.take_batch(weir_io::now_ns(), &batch);
                last = Instant::now();
            }
            taken += got;
        }
        let sent = sending.join().ok().context("the sender's thread has failed")?;
        let interval = collector.end_interval(weir_io::now_ns(), |_| ());
        ensure!(
            interval.totals.datagrams == taken,
            "the collector counts {}",
            interval.totals.datagrams
        );
        Ok(Udp {
            sent,
            taken,
            dropped: receiver.dropped()?,
            rate: taken as f64 / last.duration_since(start).as_secs_f64().max(1e-9),
        })
    })
}
