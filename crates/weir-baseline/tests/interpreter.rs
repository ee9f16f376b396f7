//! The baseline does the same as the P4 programs, run by the interpreter: the same packets leave at
//! the same ports, and the same is counted.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use weir_baseline::{Count, DROP, FLOOD, Hop, L2Switch, Lookups, Neighbour, Route, Router};
use weir_switch::{ResourceKind, Switch};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 32) % bound
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn switch(program: &str, entries: &str) -> Switch {
    let path = format!("../../p4/programs/{program}/{program}.p4");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let options = weir_compiler::Options::default();
    let compiled = weir_compiler::compile_file(&path, &options, weir_arch::targets());
    let switch = Switch::new(Arc::new(compiled.program.unwrap())).unwrap();
    let (switch, failures) = weir_stf::configure(switch, entries).unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    switch
}

fn mac(address: u64) -> String {
    let bytes = &address.to_be_bytes()[2..];
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join("-")
}

/// Transmitted packets: ports in order, and the bytes.
type Sent = Vec<(u32, Vec<u8>)>;

fn inject(switch: &mut Switch, port: u32, packet: &[u8]) -> Sent {
    let out = switch.inject(port, packet, 0);
    let mut sent: Sent = out.into_iter().map(|o| (o.port, o.bytes)).collect();
    sent.sort();
    sent
}

fn lookups(switch: &Switch, table: &str) -> Lookups {
    let state = switch.table_state(switch.table(table).unwrap()).unwrap();
    Lookups {
        hits: state.hits,
        misses: state.misses,
    }
}

fn counter(switch: &Switch, name: &str, index: u64) -> Count {
    let id = switch.resource(ResourceKind::Counter, name).unwrap();
    let count = switch.counter(id, index).unwrap();
    Count {
        packets: count.packets,
        bytes: count.bytes,
    }
}

fn same_ports(switch: &Switch, received: impl Fn(usize) -> Count, sent: impl Fn(usize) -> Count) {
    for port in 0..weir_baseline::PORTS {
        let stats = switch.port_stats(port as u32);
        let of = |c: weir_switch::Count| Count {
            packets: c.packets,
            bytes: c.bytes,
        };
        assert_eq!(
            (received(port), sent(port)),
            (of(stats.rx), of(stats.tx)),
            "port {port}"
        );
    }
}

/// Vectors of packets, of different sizes.
fn vectors(random: &mut Random, mut packet: impl FnMut(&mut Random) -> (u32, Vec<u8>)) -> Vec<Vec<(u32, Vec<u8>)>> {
    let mut vectors = Vec::new();
    for size in [1, 7, 64, 32, 33, 64].into_iter().cycle().take(240) {
        vectors.push((0..size).map(|_| packet(random)).collect());
    }
    vectors
}

/// Runs a vector through the baseline; returns the verdicts, and the packets afterwards.
fn by_hand(
    vector: &[(u32, Vec<u8>)],
    run: impl FnOnce(&[u32], &mut [&mut [u8]], &mut [u32]),
) -> (Vec<u32>, Vec<Vec<u8>>) {
    let ports: Vec<u32> = vector.iter().map(|v| v.0).collect();
    let mut packets: Vec<Vec<u8>> = vector.iter().map(|v| v.1.clone()).collect();
    let mut frames: Vec<&mut [u8]> = packets.iter_mut().map(Vec::as_mut_slice).collect();
    let mut verdicts = vec![0; ports.len()];
    run(&ports, &mut frames, &mut verdicts);
    (verdicts, packets)
}

const PORTS: [u32; 4] = [1, 2, 3, 4];

#[test]
fn l2_switch() {
    l2_switch_as(|switch| switch);
    l2_switch_as(L2Switch::portable);
}

fn l2_switch_as(how: impl Fn(L2Switch) -> L2Switch) {
    let mut random = Random(1);
    let stations: Vec<(u64, u16)> = (0..200)
        .map(|_| (random.next() >> 16 & !(1 << 40), random.of(&PORTS) as u16))
        .collect();
    let mut entries = String::from("mc_mgrp_create 1\nmc_node_create 0 1 2 3 4\nmc_node_associate 1 0\n");
    for (address, port) in &stations {
        let address = mac(*address);
        writeln!(
            entries,
            "add source_macs hdr.ethernet.src_addr:{address} known(port:{port})"
        )
        .unwrap();
        writeln!(
            entries,
            "add destination_macs hdr.ethernet.dst_addr:{address} forward(port:{port})"
        )
        .unwrap();
    }
    let mut switch = switch("l2_switch", &entries);
    let mut hand = how(L2Switch::new(&stations));
    let vectors = vectors(&mut random, |random| {
        let from = random.of(&stations);
        let to = match random.below(10) {
            0 => 0xffff_ffff_ffff,
            1 => 0x0180_c200_0000 | random.below(32),
            2 | 3 => random.next() >> 16,
            _ => random.of(&stations).0,
        };
        let source = match random.below(20) {
            0 => random.next() >> 16,
            1 => from.0 | 1 << 40,
            _ => from.0,
        };
        let port = if random.is(90) {
            from.1.into()
        } else {
            random.of(&PORTS)
        };
        let mut packet = Vec::new();
        packet.extend_from_slice(&to.to_be_bytes()[2..]);
        packet.extend_from_slice(&source.to_be_bytes()[2..]);
        packet.extend_from_slice(&[8, 0, 1, 2, 3]);
        packet.truncate(if random.is(5) { random.below(16) as usize } else { 17 });
        (port, packet)
    });
    let mut flooded = [Count::default(); 5];
    for (time, vector) in vectors.iter().enumerate() {
        let now_ns = (time as u64) << 19;
        let (verdicts, packets) = by_hand(vector, |ports, frames, verdicts| {
            hand.forward(ports, frames, now_ns, verdicts)
        });
        for (((port, original), verdict), packet) in vector.iter().zip(verdicts).zip(packets) {
            let expected = inject(&mut switch, *port, original);
            let all = PORTS.iter().filter(|p| verdict == FLOOD && *p != port);
            for copy in all.clone() {
                flooded[*copy as usize].packets += 1;
                flooded[*copy as usize].bytes += packet.len() as u64;
            }
            let found: Sent = match verdict {
                DROP => Vec::new(),
                FLOOD => all.map(|p| (*p, packet.clone())).collect(),
                out => vec![(out, packet)],
            };
            assert_eq!(found, expected, "{original:02x?} at port {port}");
        }
        // The digests are those of the vector's unknown and moved stations, in order.
        for learned in hand.learned.drain(..) {
            let digest = switch.next_digest().unwrap();
            let fields: Vec<u64> = digest.fields.iter().map(|f| f.1.to_u64().unwrap()).collect();
            assert_eq!(fields, [learned.mac, learned.port.into()]);
        }
        assert!(switch.next_digest().is_none());
    }
    assert!(flooded[1].packets > 100);
    for i in 0..4 {
        assert_eq!(hand.refused[i], counter(&switch, "refused", i as u64), "refused {i}");
        assert!(hand.refused[i].packets > 10, "{i}");
    }
    assert_eq!(hand.source_lookups, lookups(&switch, "source_macs"));
    assert_eq!(hand.destination_lookups, lookups(&switch, "destination_macs"));
    // The caller counts the copies of flooded frames.
    let sent = |port: usize| {
        let (sent, copies) = (hand.sent(port), flooded.get(port).copied().unwrap_or_default());
        Count {
            packets: sent.packets + copies.packets,
            bytes: sent.bytes + copies.bytes,
        }
    };
    same_ports(&switch, |p| hand.received(p), sent);
}

fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

/// An IPv4 packet, sometimes with an error.
fn ipv4(random: &mut Random, macs: &[u64], routes: &[Route]) -> (u32, Vec<u8>) {
    let port = random.of(&PORTS);
    let own = if random.is(95) {
        macs[port as usize]
    } else {
        random.of(macs)
    };
    let route = random.of(routes);
    let free = u32::MAX.checked_shr(route.length).unwrap_or(0);
    let to = if random.is(80) {
        route.address | random.next() as u32 & free
    } else {
        random.next() as u32
    };
    let options = if random.is(10) { random.below(11) as usize } else { 0 };
    let mut packet = Vec::new();
    packet.extend_from_slice(&own.to_be_bytes()[2..]);
    packet.extend_from_slice(&[10, 0, 0, 0, 0, 1, 8]);
    packet.push(match random.below(20) {
        0 => 6,
        1 => 0xdd,
        _ => 0,
    });
    let ihl = if random.is(3) {
        random.below(16) as u8
    } else {
        5 + options as u8
    };
    packet.push(
        if random.is(97) {
            0x40
        } else {
            random.next() as u8 & 0xf0
        } | ihl,
    );
    packet.extend_from_slice(&random.next().to_be_bytes()[..7]);
    packet.push(if random.is(90) {
        random.next() as u8
    } else {
        random.below(3) as u8
    });
    packet.push(17);
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(&random.next().to_be_bytes()[..4]);
    packet.extend_from_slice(&to.to_be_bytes());
    for _ in 0..options {
        packet.extend_from_slice(&random.next().to_be_bytes()[..4]);
    }
    if random.is(2) {
        // A header whose checksum is 0, to also try all ones in its place.
        let rest = !checksum(&packet[14..34 + options * 4]);
        let id = u16::from_be_bytes([packet[18], packet[19]]);
        let sum = u32::from(id) + u32::from(!rest);
        packet[18..20].copy_from_slice(&((sum & 0xffff) as u16 + (sum >> 16) as u16).to_be_bytes());
        assert_eq!(checksum(&packet[14..34 + options * 4]), 0);
    }
    let sum = checksum(&packet[14..34 + options * 4]);
    let sum = match (random.below(20), sum) {
        (0, _) => sum ^ 1 << random.below(16),
        (0..10, 0) => 0xffff,
        _ => sum,
    };
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(&[1, 2, 3, 4, 5]);
    if random.is(5) {
        packet.truncate(random.below(packet.len() as u64 + 1) as usize);
    }
    (port, packet)
}

#[test]
fn ipv4_router() {
    ipv4_router_as(|router| router);
    ipv4_router_as(Router::portable);
}

fn ipv4_router_as(how: impl Fn(Router) -> Router) {
    let mut random = Random(2);
    let own = |port: u32| 0x0200_0000_0000 | u64::from(port);
    let macs: Vec<u64> = [0].into_iter().chain([1, 2, 3].map(own)).chain([0]).collect();
    let mut entries = String::new();
    for port in [1, 2, 3] {
        let mac = mac(own(port));
        writeln!(
            entries,
            "add own_macs standard_metadata.ingress_port:{port} hdr.ethernet.dst_addr:{mac} NoAction()"
        )
        .unwrap();
        writeln!(
            entries,
            "add port_macs standard_metadata.egress_port:{port} set_src_mac(mac:{mac})"
        )
        .unwrap();
    }
    let out = [1, 2, 3, 4, 64];
    let neighbours: Vec<Neighbour> = (0..40u32)
        .map(|i| Neighbour {
            port: out[i as usize % 5],
            address: 0x0a00_0000 + i,
            mac: 0x0600_0000_0000 | u64::from(i),
        })
        .collect();
    for n in &neighbours {
        let Neighbour { port, address, mac: to } = n;
        let to = mac(*to);
        writeln!(
            entries,
            "add neighbours standard_metadata.egress_spec:{port} meta.next_hop:{address} set_dst_mac(mac:{to})"
        )
        .unwrap();
    }
    let mut routes: Vec<Route> = (0..300)
        .map(|i| {
            let length = random.of(&[8, 12, 16, 20, 24, 24, 24, 26, 32]);
            let near = random.of(&neighbours);
            let hop = match random.below(12) {
                0 => Hop::Cpu,
                1 => Hop::Drop,
                2 => Hop::Via {
                    next_hop: near.address + 100,
                    port: near.port,
                },
                _ => Hop::Via {
                    next_hop: near.address,
                    port: near.port,
                },
            };
            let address = (0x2000_0000 + (i << 18) + random.below(1 << 18) as u32) & u32::MAX << (32 - length);
            Route { address, length, hop }
        })
        .collect();
    // The destination itself is the neighbour.
    for port in [1, 2, 4] {
        let hop = Hop::Via { next_hop: 0, port };
        routes.push(Route {
            address: 0x0a00_0000 + (u32::from(port) << 3),
            length: 29,
            hop,
        });
    }
    let mut seen = std::collections::HashSet::new();
    routes.retain(|r| seen.insert((r.address, r.length)));
    for (i, Route { address, length, hop }) in routes.iter().enumerate() {
        let action = match hop {
            Hop::Via { next_hop, port } => format!("route(next_hop:{next_hop}, port:{port})"),
            Hop::Cpu => "to_cpu()".to_owned(),
            Hop::Drop => "drop()".to_owned(),
        };
        writeln!(
            entries,
            "add ipv4_lpm hdr.ipv4.dst_addr:{address}/{length} {action} = route{i}"
        )
        .unwrap();
    }
    let mut switch = switch("ipv4_router", &entries);
    let mut hand = how(Router::new(&macs, &routes, &neighbours));
    let mut verdicts_seen = [0; 3];
    for vector in vectors(&mut random, |random| ipv4(random, &macs, &routes)) {
        let (verdicts, packets) = by_hand(&vector, |ports, frames, verdicts| hand.forward(ports, frames, verdicts));
        for (((port, original), verdict), packet) in vector.iter().zip(verdicts).zip(packets) {
            let expected = inject(&mut switch, *port, original);
            let found: Sent = if verdict == DROP {
                Vec::new()
            } else {
                vec![(verdict, packet)]
            };
            assert_eq!(found, expected, "{original:02x?} at port {port}");
            verdicts_seen[match verdict {
                DROP => 0,
                64 => 1,
                _ => 2,
            }] += 1;
        }
    }
    assert!(verdicts_seen.iter().all(|n| *n > 100), "{verdicts_seen:?}");
    for i in 0..4 {
        assert_eq!(hand.refused[i], counter(&switch, "refused", i as u64), "refused {i}");
        assert!(hand.refused[i].packets > 50, "{i}");
    }
    assert_eq!(hand.own_mac_lookups, lookups(&switch, "own_macs"));
    assert_eq!(hand.route_lookups, lookups(&switch, "ipv4_lpm"));
    assert_eq!(hand.neighbour_lookups, lookups(&switch, "neighbours"));
    assert_eq!(hand.port_mac_lookups, lookups(&switch, "port_macs"));
    // Handles count from 1, in the order of insertion.
    for i in 0..routes.len() {
        assert_eq!(
            hand.route_count(i),
            counter(&switch, "route_packets", i as u64 + 1),
            "route {i}"
        );
    }
    same_ports(&switch, |p| hand.received(p), |p| hand.sent(p));
}
