//! A collector of telemetry reports, fed with bad datagrams: its counts must add up.

use std::net::{IpAddr, Ipv4Addr};
use weir_collector::{Collector, Config, FlowSummary, Histogram, Interval, Limits, Unused, Watched};
use weir_int::Uint;
use weir_int::packet::{Detection, DscpMatch};
use weir_int::report::Decoder;

/// Small limits, so that all of them are reached.
const FEW: usize = 4;

fn config() -> Config {
    let limits = Some(Limits {
        rise: 1000,
        fall: 10,
        delta: Some(100),
    });
    Config {
        decoder: Decoder {
            detection: Detection {
                udp_ports: vec![5001],
                lab_ports: vec![5000],
                dscp: Some(DscpMatch::exactly(Uint::truncate(0x17))),
                ..Detection::default()
            },
            ..Decoder::default()
        },
        watched: Watched {
            flow_latency: limits,
            hop_latency: limits,
            queue_occupancy: limits,
            tx_utilisation: limits,
            keepalive: Some(50),
        },
        sequence_domain: Some(0x4e55),
        max_flows: FEW,
        max_paths: FEW,
        max_ports: FEW,
        max_links: FEW,
        max_exporters: FEW,
        max_events: FEW,
        ..Config::default()
    }
}

/// The bytes as a datagram, and variants of it with other sequence numbers, hops and lengths.
pub(crate) fn run(data: &[u8]) {
    let mut collector = Collector::new(config());
    let mut datagrams = 0;
    for interval in 0..3_u64 {
        let mut taken = 0;
        for step in 0..8_u64 {
            let mut variant = data.to_vec();
            // A byte of the sequence number, of an address, of the stack.
            for at in [3, 7, 31, 33, variant.len().saturating_sub(9)] {
                if let Some(byte) = variant.get_mut(at) {
                    *byte = byte.wrapping_add((step * interval) as u8);
                }
            }
            let end = variant.len() - variant.len() / 16 * (step as usize % 3);
            let from = IpAddr::V4(Ipv4Addr::from_bits((step % 5) as u32));
            collector.take(interval * 1000 + step * 40, from, &variant[..end]);
            taken += 1;
        }
        datagrams += taken;
        let mut flows = Vec::new();
        let result = collector.end_interval((interval + 1) * 1000, |flow| flows.push(flow));
        assert!(collector.flow_count() <= FEW, "more flows than the limit");
        check(&result, &flows, taken);
    }
    assert_eq!(datagrams, 24);
}

fn check(result: &Interval, flows: &[FlowSummary], taken: u64) {
    let totals = &result.totals;
    assert_eq!(totals.datagrams, taken);
    let without_flow = totals.unused[Unused::NoFlow as usize];
    let of_flows: u64 = flows.iter().map(|flow| flow.reports).sum();
    // Results of evicted flows are kept up to the limit.
    if totals.flows_evicted <= FEW as u64 {
        assert_eq!(of_flows + without_flow, totals.reports, "reports of flows");
    }
    assert!(result.events.len() <= FEW && result.paths.len() <= FEW);
    assert!(result.ports.len() <= FEW && result.links.len() <= FEW && result.exporters.len() <= FEW);
    let latencies = result.ports.values().map(|port| &port.latency);
    let latencies = latencies.chain(result.links.values().map(|link| &link.latency));
    for histogram in latencies.chain(result.paths.values().map(|path| &path.latency)) {
        let back = Histogram::from_bytes(&histogram.to_bytes()).expect("its own bytes");
        assert_eq!(back.count(), histogram.count());
        assert!(histogram.min() <= histogram.quantile(0.5) && histogram.quantile(0.5) <= histogram.max());
    }
    let mut twice = result.clone();
    twice.merge(result.clone());
    assert_eq!(twice.totals.reports, 2 * totals.reports);
    for (key, port) in &twice.ports {
        assert_eq!(port.latency.count(), 2 * result.ports[key].latency.count());
    }
}
