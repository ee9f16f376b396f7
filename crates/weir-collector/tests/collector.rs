//! What a collector says of a network whose truth is known.

use std::net::{IpAddr, Ipv4Addr};
use weir_collector::synthetic::{DOMAIN, DSCP, Packet, hop};
use weir_collector::{
    Clocks, Collector, Config, FlowSummary, Interval, Limits, LinkKey, Path, PortKey, Reception, Share, Subject,
    Unused, Watched, What, estimate_clocks,
};
use weir_int::packet::{Detection, DscpMatch};
use weir_int::report::Decoder;
use weir_int::{FlowKey, Uint};

const SINK: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9));

fn config() -> Config {
    let detection = Detection {
        dscp: Some(DscpMatch::exactly(Uint::truncate(DSCP.into()))),
        ..Detection::default()
    };
    Config {
        decoder: Decoder {
            detection,
            ..Decoder::default()
        },
        ..Config::default()
    }
}

fn flow(n: u32) -> FlowKey {
    FlowKey {
        source: Ipv4Addr::from_bits(0x0a00_0000 + n).into(),
        destination: [10, 200, 0, 1].into(),
        source_port: 4000,
        destination_port: 5000,
        protocol: 17,
    }
}

/// A packet over nodes, each of which keeps it for 1000 ns, over links of 200 ns, sent at `time`.
/// Clocks of nodes are ahead by 10,000 ns times their id if `has_offsets`.
fn packet(n: u32, nodes: &[u32], time: u64, has_offsets: bool) -> Packet {
    let hop_at = |(at, node): (usize, &u32)| {
        let clock = if has_offsets { u64::from(*node) * 10_000 } else { 0 };
        let ingress = time + at as u64 * 1200 + clock;
        hop(*node, (1, 2), (0, 5 + *node), ingress, ingress + 1000)
    };
    Packet {
        flow: flow(n),
        bytes: 1000,
        hops: nodes.iter().enumerate().map(hop_at).collect(),
        number: None,
    }
}

fn end(collector: &mut Collector, now: u64) -> (Interval, Vec<FlowSummary>) {
    let mut flows = Vec::new();
    let interval = collector.end_interval(now, |flow| flows.push(flow));
    flows.sort_by_key(|flow| flow.key);
    (interval, flows)
}

fn port(node: u32, port: u32) -> PortKey {
    PortKey {
        node: Some(node),
        port: Some(port),
    }
}

#[test]
fn a_flow_has_a_path_with_latencies_of_hops_links_and_the_whole() {
    let mut collector = Collector::new(config());
    for n in 0..100 {
        let packet = packet(1, &[1, 2, 3], 1_000_000 + u64::from(n), false);
        collector.take(u64::from(n), SINK, &packet.sink_report(n));
    }
    let (interval, flows) = end(&mut collector, 1000);
    let [seen] = &flows[..] else { panic!("{flows:?}") };
    assert_eq!((seen.key, seen.reports), (flow(1), 100));
    assert_eq!(seen.path.as_ref().unwrap().to_string(), "1(1>2) 2(1>2) 3(1>2)");
    assert_eq!(
        (seen.latency.min, seen.latency.max, seen.latency.count),
        (3400, 3400, 100)
    );
    assert_eq!(interval.ports[&port(2, 2)].latency.sum(), 100_000);
    let (from, to) = (port(2, 2), port(3, 1));
    assert_eq!(interval.links[&LinkKey { from, to }].latency.sum(), 20_000);
    assert_eq!(interval.ports[&port(3, 2)].queues[&0].sum(), 800);
    assert_eq!(interval.paths.values().next().unwrap().latency.count(), 100);
    assert_eq!((interval.totals.datagrams, interval.totals.reports), (100, 100));
    // Nothing of it is left for the next interval.
    let (next, flows) = end(&mut collector, 2000);
    assert!(next.paths.is_empty() && next.ports.is_empty() && flows.is_empty());
    assert_eq!(next.start, 1000);
}

#[test]
fn latencies_beyond_all_bounds_saturate() {
    let mut collector = Collector::new(config());
    let mut packet = packet(1, &[1, 2, 3, 4, 5], 0, false);
    for hop in &mut packet.hops {
        *hop = weir_collector::synthetic::hop(hop.node_id.unwrap(), (1, 2), (0, 0), 1, i64::MAX as u64);
    }
    // The last hop has no timestamps: the path's latency is the sum over its hops, as far as known.
    packet.hops[4].ingress_timestamp = None;
    packet.hops[4].egress_timestamp = None;
    collector.take(1, SINK, &packet.sink_report(1));
    let (interval, _) = end(&mut collector, 2);
    assert_eq!(interval.ports[&port(1, 2)].latency.count(), 1);
    assert_eq!(interval.paths.values().next().unwrap().reports, 1);
}

#[test]
fn another_path_is_an_event() {
    let mut collector = Collector::new(config());
    for (n, nodes) in [[1, 2, 3], [1, 2, 3], [1, 4, 3], [1, 4, 3]].iter().enumerate() {
        collector.take(n as u64, SINK, &packet(1, nodes, 1000, false).sink_report(n as u32));
    }
    let (interval, flows) = end(&mut collector, 10);
    assert_eq!(flows[0].path_changes, 1);
    let [event] = &interval.events[..] else {
        panic!("{:?}", interval.events)
    };
    let What::PathChanged { from, to } = &event.what else {
        panic!("{event:?}")
    };
    assert_eq!(
        (from.to_string(), to.to_string()),
        ("1(1>2) 2(1>2) 3(1>2)".into(), "1(1>2) 4(1>2) 3(1>2)".into())
    );
}

#[test]
fn offsets_of_clocks_are_removed_where_traffic_goes_both_ways() {
    let mut collector = Collector::new(config());
    for n in 0..300_u32 {
        // Some packets take longer: the fastest ones tell the offset.
        let time = 1_000_000_000 + u64::from(n) * 1_000_000;
        collector.take(time, SINK, &packet(1, &[1, 2, 3], time, true).sink_report(2 * n));
        collector.take(time, SINK, &packet(2, &[3, 2, 1], time, true).sink_report(n));
    }
    let (interval, flows) = end(&mut collector, 2_000_000_000);
    let offsets: Vec<(u32, i64, u64)> = interval
        .clocks
        .iter()
        .map(|c| (c.node, c.offset, c.uncertainty))
        .collect();
    assert_eq!(offsets, [(1, 0, 0), (2, 10_000, 200), (3, 20_000, 400)]);
    // Only what was measured before the first comparison is missing.
    for seen in &flows {
        assert_eq!((seen.latency.min, seen.latency.max), (3400, 3400));
        assert!(seen.latency.count > 150, "{seen:?}");
    }
    let (from, to) = (port(3, 2), port(2, 1));
    let link = &interval.links[&LinkKey { from, to }];
    assert_eq!(
        (link.latency.min(), link.latency.max(), link.clock_offset),
        (200, 200, -10_000)
    );
}

#[test]
fn reports_that_are_lost_late_or_doubled_are_counted_by_exporter() {
    let mut collector = Collector::new(config());
    for (time, sequence) in [1, 2, 5, 3, 3, 6].into_iter().enumerate() {
        collector.take(time as u64, SINK, &packet(1, &[7], 1000, false).sink_report(sequence));
    }
    let (interval, _) = end(&mut collector, 10);
    let counts = interval.exporters.values().next().unwrap();
    assert_eq!(
        (counts.received, counts.lost, counts.reordered, counts.duplicates),
        (5, 1, 1, 1)
    );
    assert!(
        interval
            .events
            .iter()
            .any(|e| e.what == What::ReportsLost { missing: 2 })
    );
    // Number 4 comes late, in the next interval.
    collector.take(11, SINK, &packet(1, &[7], 1000, false).sink_report(4));
    let (interval, _) = end(&mut collector, 20);
    assert_eq!(interval.exporters.values().next().unwrap().lost, -1);
}

#[test]
fn packets_of_a_flow_that_are_lost_or_overtaken_are_counted_by_their_numbers() {
    let mut collector = Collector::new(Config {
        sequence_domain: Some(DOMAIN),
        ..config()
    });
    for (time, number) in [0, 1, 4, 2, 5].into_iter().enumerate() {
        let packet = Packet {
            number: Some(number),
            ..packet(1, &[1, 2, 3], 1000, false)
        };
        collector.take(time as u64, SINK, &packet.sink_report(time as u32));
    }
    let (interval, flows) = end(&mut collector, 10);
    let counts = flows[0].sequence.unwrap();
    assert_eq!((counts.received, counts.lost, counts.reordered), (5, 1, 1));
    assert_eq!(flows[0].path.as_ref().unwrap().0.len(), 3);
    assert_eq!(interval.exporters.values().next().unwrap().lost, 0);
}

#[test]
fn what_is_not_used_is_counted_by_reason() {
    let mut collector = Collector::new(Config {
        max_exporters: 1,
        max_paths: 1,
        ..config()
    });
    let good = packet(1, &[1, 2], 1000, false).sink_report(1);
    collector.take(1, SINK, &good);
    collector.take(1, [10, 0, 0, 1].into(), &good);
    collector.take(1, SINK, &packet(1, &[1, 3], 1000, false).sink_report(2));
    // The datagram ends within its report; no version; nothing.
    for damaged in [&good[..good.len() - 28], &[0x90, 0, 0], &[]] {
        collector.take(1, SINK, damaged);
    }
    // The same report "to the end": its packet ends within the stack, then within its ports.
    let mut cut = good[..good.len() - 28].to_vec();
    cut[9] = 0xff;
    collector.take(1, SINK, &cut);
    collector.take(1, SINK, &cut[..8 + 4 + 8 + 21]);
    let (interval, _) = end(&mut collector, 10);
    let unused = |why: Unused| interval.totals.unused[Unused::ALL.iter().position(|u| *u == why).unwrap()];
    // Another address, and another node.
    assert_eq!(unused(Unused::ExportersFull), 2);
    assert_eq!(interval.totals.malformed.iter().sum::<u64>(), 3);
    assert_eq!((unused(Unused::NoFlow), unused(Unused::NoHops)), (1, 1));
    assert_eq!(unused(Unused::TruncatedStack), 1);
    // The path 1-3, and the one hop that the truncated stack has left.
    assert_eq!(unused(Unused::NetworkFull), 2);
}

#[test]
fn drops_and_bursts_are_events() {
    let watched = Watched {
        queue_occupancy: Some(Limits::at(100)),
        ..Watched::default()
    };
    let mut collector = Collector::new(Config { watched, ..config() });
    for (time, occupancy) in [10, 150, 400, 300, 20].into_iter().enumerate() {
        let mut packet = packet(time as u32, &[1], 1000, false);
        packet.hops[0].queue_occupancy = Some(occupancy);
        // The node's clock is what counts: reports may wait on their way.
        if let Some(timestamp) = &mut packet.hops[0].egress_timestamp {
            timestamp.value += time as u64 * 500;
        }
        collector.take(time as u64 * 1000, SINK, &packet.sink_report(time as u32));
    }
    collector.take(9000, SINK, &packet(9, &[1], 1000, false).drop_report(0, 5));
    let (interval, flows) = end(&mut collector, 10_000);
    let queue = Subject::Queue {
        port: port(1, 2),
        queue: 0,
    };
    let of_queue: Vec<&What> = interval
        .events
        .iter()
        .filter(|e| e.subject == queue)
        .map(|e| &e.what)
        .collect();
    assert!(matches!(
        of_queue[..],
        [
            What::Above { value: 150, .. },
            What::Below { peak: 400, .. },
            What::Microburst { .. }
        ]
    ));
    let burst = What::Microburst {
        duration: 1500,
        peak: 400,
        reports: 3,
        flow: Some(flow(2)),
    };
    assert_eq!(of_queue[2], &burst);
    let dropped = What::Dropped {
        node: Some(1),
        reason: None,
    };
    assert!(interval.events.iter().any(|event| event.what == dropped));
    assert_eq!(flows.iter().map(|flow| flow.dropped).sum::<u64>(), 1);
}

#[test]
fn postcards_of_several_nodes_are_one_path_that_does_not_change() {
    let mut collector = Collector::new(config());
    for n in 0..30 {
        let packet = packet(1, &[3, 1, 2], 1000, false);
        for at in [1, 0, 2] {
            collector.take(n, SINK, &packet.postcard(at, n as u32));
        }
    }
    let (interval, flows) = end(&mut collector, 100);
    assert_eq!(flows[0].path_changes, 0);
    assert_eq!(flows[0].path.as_ref().unwrap().to_string(), "1(1>2) 2(1>2) 3(1>2)");
    assert_eq!(interval.ports[&port(3, 2)].latency.count(), 30);
    assert!(interval.events.is_empty(), "{:?}", interval.events);
}

#[test]
fn a_bounded_number_of_flows_is_kept_and_all_are_told() {
    let mut collector = Collector::new(Config {
        max_flows: 50,
        ..config()
    });
    for n in 0..1000 {
        collector.take(u64::from(n), SINK, &packet(n, &[1], 1000, false).sink_report(n));
    }
    let (interval, flows) = end(&mut collector, 2000);
    assert_eq!((collector.flow_count(), interval.totals.flows_evicted), (50, 950));
    assert_eq!(flows.len(), 1000);
    assert_eq!(flows.iter().map(|flow| flow.reports).sum::<u64>(), 1000);
}

#[test]
fn parts_by_flow_merge_to_the_whole() {
    const PARTS: usize = 3;
    let paths: [&[u32]; 3] = [&[1, 2, 3], &[1, 4, 3], &[3, 2, 1]];
    let mut whole = Collector::new(config());
    let shares = Share::of(PARTS);
    let mut reception = Reception::new(&config(), shares[0].clone());
    let part = |share: Share| {
        Collector::new(Config {
            share: Some(share),
            clocks: Clocks::Given,
            ..config()
        })
    };
    let mut parts: Vec<Collector> = shares.into_iter().map(part).collect();
    for n in (0..3000_u32).filter(|n| n % 50 != 7) {
        let key = n * 7919 % 40;
        let packet = packet(key, paths[key as usize % 3], 1_000_000 + u64::from(n) * 13, false);
        let report = packet.sink_report(n);
        whole.take(n.into(), SINK, &report);
        let owners = reception.take(n.into(), SINK, &report);
        for (at, part) in parts.iter_mut().enumerate() {
            if owners >> at & 1 == 1 {
                part.take(n.into(), SINK, &report);
            }
        }
    }
    let (whole, whole_flows) = end(&mut whole, 5000);
    let mut merged = reception.end_interval(0, 5000);
    let mut flows = Vec::new();
    for part in &mut parts {
        let (interval, of_part) = end(part, 5000);
        assert!(!of_part.is_empty());
        merged.merge(interval);
        flows.extend(of_part);
    }
    flows.sort_by_key(|flow| flow.key);
    assert_eq!(flows, whole_flows);
    assert_eq!((merged.start, merged.end), (whole.start, whole.end));
    assert_eq!(merged.ports, whole.ports);
    assert_eq!(merged.links, whole.links);
    assert_eq!(merged.paths, whole.paths);
    assert_eq!(merged.exporters, whole.exporters);
    assert_eq!(merged.events, whole.events);
    assert_eq!(merged.totals, whole.totals);
    assert_eq!(estimate_clocks(&merged.minima), whole.clocks);
}

#[test]
fn full_lists_of_the_network_make_room_in_the_next_interval() {
    let mut collector = Collector::new(Config {
        max_paths: 8,
        ..config()
    });
    for n in 0..8 {
        collector.take(1, SINK, &packet(n, &[1, n + 2], 1000, false).sink_report(n));
    }
    let (interval, _) = end(&mut collector, 10);
    assert_eq!(interval.paths.len(), 8);
    collector.take(11, SINK, &packet(9, &[1, 99], 1000, false).sink_report(8));
    let (interval, flows) = end(&mut collector, 20);
    let paths: Vec<&Path> = interval.paths.keys().collect();
    assert_eq!(paths.len(), 1);
    assert_eq!(flows[0].path.as_ref(), Some(paths[0]));
}
