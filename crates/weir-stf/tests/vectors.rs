//! Packets that machine code runs together come out as they would alone.

use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options, compile_file};
use weir_ir::{Bits, KeyMatch, TableId};
use weir_switch::{DropReason, Frame, Switch, TAILROOM, Verdict, Write};
use weir_table::{EntryAction, NewEntry, TableOp};

/// Bytes before packets in their memory.
const HEAD: usize = 512;

fn switch(name: &str) -> Switch {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let compiled = compile_file(&path, &Options::default(), weir_arch::targets());
    Switch::new(Arc::new(compiled.program.expect("it compiles"))).expect("loads")
}

/// One that interprets a program, and one that has compiled it.
fn switches(name: &str) -> (Switch, Switch) {
    let plain = switch(name);
    let mut fast = plain.clone();
    fast.compile().expect("it can be compiled");
    (plain, fast)
}

/// Runs a vector of packets, which leave by port 1, and each of them alone in the interpreter.
fn check<const LENGTH: usize>(name: &str, packets: &[[u8; LENGTH]; 64]) {
    let (plain, mut fast) = switches(name);
    check_in(&plain, &mut fast, packets);
}

/// The same in switches that are the same but that one is compiled.
fn check_in<const LENGTH: usize>(plain: &Switch, fast: &mut Switch, packets: &[[u8; LENGTH]]) {
    assert!(fast.headroom() <= HEAD);
    let mut memory = vec![vec![0; HEAD + LENGTH + TAILROOM]; packets.len()];
    for (memory, packet) in memory.iter_mut().zip(packets) {
        memory[HEAD..HEAD + LENGTH].copy_from_slice(packet);
    }
    let frames = memory
        .iter_mut()
        .map(|memory| Frame::new(memory, HEAD, LENGTH).expect("room"));
    let mut frames: Vec<Frame<'_>> = frames.collect();
    let verdicts = fast.forward(&vec![0; packets.len()], &mut frames, 0).to_vec();
    let mut plain = plain.clone();
    for ((packet, frame), verdict) in packets.iter().zip(&frames).zip(verdicts) {
        let alone = plain.inject(0, packet, 0);
        assert_eq!(verdict, Verdict::Transmit(1));
        assert_eq!(frame.bytes(), alone[0].bytes, "{packet:02x?}");
    }
}

/// Numbers without order, the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32
    }

    fn bytes<const LENGTH: usize>(&mut self) -> [u8; LENGTH] {
        std::array::from_fn(|_| (self.next() >> 8) as u8)
    }
}

#[test]
fn a_lookup_between_emits_does_not_mix_packets_up() {
    check(
        "lookup_between_emits.p4",
        &std::array::from_fn(|i| [i as u8 % 3, i as u8, 0xaa, 0xbb]),
    );
}

#[test]
fn what_is_read_again_by_an_address_that_is_computed_again_is_the_same() {
    let mut numbers = Numbers(5);
    for _ in 0..20 {
        check::<26>("behind_options.p4", &std::array::from_fn(|_| numbers.bytes()));
    }
}

/// The first bits of an address.
fn prefix(width: u32, length: u32, address: u32) -> KeyMatch {
    let value = Bits::new(width, (address >> (32 - width)).into());
    KeyMatch::Lpm {
        value: value.and(&Bits::prefix_mask(width, length)),
        prefix_length: length,
    }
}

/// Puts an entry with the table's first action into both switches, or into none where it is there
/// already.
fn insert(switches: [&mut Switch; 2], table: TableId, key: KeyMatch, value: u32) {
    let data = Bits::new(32, value.into());
    let new = NewEntry::new(vec![key], EntryAction::call(0, vec![data]));
    let results = switches.map(|switch| switch.write(Write::Table(table, TableOp::Insert(new.clone()))).is_ok());
    assert_eq!(results[0], results[1]);
}

/// Code prefetches slots of large prefix tables before their lookup: for complete groups of eight
/// packets, and for tables that have become large enough.
#[test]
fn prefixes_are_found_whether_they_are_few_or_many_and_whether_vectors_are_full() {
    let mut numbers = Numbers(7);
    // Prefixes lie within each other, and packets' addresses within them; but not the many that
    // make a table large.
    let close = |numbers: &mut Numbers| numbers.next() & numbers.next() & numbers.next() & 0x7fff_ffff;
    let mut known = Vec::new();
    let (mut plain, mut fast) = switches("many_routes.p4");
    for (routes, vectors, spread) in [(30, 4, false), (900, 4, false), (2500, 20, false), (66_000, 20, true)] {
        for name in ["I.wide", "I.narrow"] {
            let table = plain.table(name).expect("it is there");
            let width = plain.program().tables[table].keys[0].width;
            for _ in 0..routes {
                let (length, address) = match spread {
                    true => (width - numbers.next() % 4, numbers.next()),
                    false => (width - numbers.next() % (width - 3), close(&mut numbers)),
                };
                known.push(address);
                let prefix = prefix(width, length, address);
                insert([&mut plain, &mut fast], table, prefix, numbers.next());
            }
        }
        for count in [64, 64, 61, 24, 9, 1].into_iter().cycle().take(vectors) {
            let packets: Vec<[u8; 9]> = (0..count)
                .map(|_| {
                    let mut address = || match numbers.next() % 2 {
                        0 => close(&mut numbers),
                        _ => known[numbers.next() as usize % known.len()],
                    };
                    let ([a, b, c, d], [e, f, g, h]) = (address().to_be_bytes(), (address() >> 2).to_be_bytes());
                    [numbers.next() as u8, a, b, c, d, e, f, g, h]
                })
                .collect();
            check_in(&plain, &mut fast, &packets);
        }
    }
}

/// Both lookups are of the same table and the same packets, and done together; one is begun before
/// the other.
#[test]
fn a_table_is_looked_into_for_two_keys_at_once() {
    let mut numbers = Numbers(11);
    let (mut plain, mut fast) = switches("prefixes_of_two_keys.p4");
    let described = fast.compiled().expect("it was compiled").describe();
    assert!(described.contains("I.prefixes; one is started early"), "{described}");
    let table = plain.table("I.prefixes").expect("it is there");
    let known: Vec<u32> = (0..70_000).map(|_| numbers.next()).collect();
    for address in &known {
        let prefix = prefix(32, 32 - numbers.next() % 12, *address);
        insert([&mut plain, &mut fast], table, prefix, numbers.next());
    }
    for count in [64, 64, 61, 1] {
        let packets: Vec<[u8; 16]> = (0..count)
            .map(|_| {
                let mut packet = [0; 16];
                for bytes in packet[4..12].as_chunks_mut::<4>().0 {
                    *bytes = known[numbers.next() as usize % known.len()].to_be_bytes();
                }
                packet
            })
            .collect();
        check_in(&plain, &mut fast, &packets);
    }
}

/// Those that would walk on for ever are dropped, and nobody waits for them.
#[test]
fn packets_take_as_many_turns_of_a_loop_with_lookups_as_each_is_to() {
    let mut numbers = Numbers(17);
    let (plain, mut fast) = switches("loop_of_lookups.p4");
    // Or endless packets would be run for ever.
    let described = fast.compiled().expect("it was compiled").describe();
    assert!(described.contains("(cost of loops)"), "{described}");
    for count in [64, 64, 61, 8, 1] {
        let packets = (0..count).map(|_| {
            let mut packet: [u8; 8] = numbers.bytes();
            (packet[1], packet[2], packet[3]) = (packet[1] % 12, packet[2] % 3 + 1, packet[3] % 8);
            packet
        });
        check_in(&plain, &mut fast, &packets.collect::<Vec<_>>());
    }
    let (endless, other) = ([1, 10, 0, 0, 0, 0, 0, 0], [1, 10, 1, 0, 0, 0, 0, 0]);
    let mut memory = [endless, other].map(|packet: [u8; 8]| [&[0; HEAD], &packet[..], &[0; TAILROOM]].concat());
    let mut frames = memory
        .each_mut()
        .map(|memory| Frame::new(memory, HEAD, 8).expect("room"));
    assert_eq!(
        fast.forward(&[0, 0], &mut frames, 0),
        [Verdict::Gone, Verdict::Transmit(1)]
    );
    let mut plain = plain;
    assert!(plain.inject(0, &endless, 0).is_empty());
    let drops = |switch: &Switch| -> Vec<(DropReason, u64)> { switch.drops().map(|d| (d.reason, d.packets)).collect() };
    assert_eq!(drops(&fast), drops(&plain));
}

/// Where all packets of a vector leave as long as they came they are counted at both ports at once,
/// unless all come in at the same one.
#[test]
fn packets_are_counted_at_the_ports_where_they_come_in_and_leave() {
    let mut numbers = Numbers(13);
    let (mut plain, mut fast) = switches("ports_and_lengths.p4");
    assert!(fast.headroom() <= HEAD);
    // What packets may wish, where they come in, and how long they are.
    let kinds: [(&[u8], &[u32], u32); 8] = [
        (&[0], &[0, 1, 2], 60),
        (&[0], &[7], 60),
        (&[0], &[3, 1023, 1024, 70_000], 60),
        (&[0], &[0, 1], 100_000),
        (&[1], &[0, 1, 2], 60),
        (&[2], &[0, 1, 2], 60),
        (&[0, 3], &[0, 1, 2], 60),
        (&[0, 1, 2, 3], &[0, 1, 2], 60),
    ];
    for ((wishes, from, longest), count) in kinds
        .into_iter()
        .flat_map(|kind| [64, 64, 5, 1].map(|count| (kind, count)))
    {
        let mut below = |limit: usize| (numbers.next() >> 8) as usize % limit;
        let ports: Vec<u32> = (0..count).map(|_| from[below(from.len())]).collect();
        let packets = (0..count).map(|_| {
            let mut packet = vec![0; 2 + below(longest as usize)];
            (packet[0], packet[1]) = (wishes[below(wishes.len())], below(3) as u8);
            packet
        });
        let packets: Vec<Vec<u8>> = packets.collect();
        let with_room = |packet: &Vec<u8>| [&[0; HEAD], &packet[..], &[0; TAILROOM]].concat();
        let mut memory: Vec<Vec<u8>> = packets.iter().map(with_room).collect();
        let frames = memory.iter_mut().zip(&packets);
        let frames = frames.map(|(memory, packet)| Frame::new(memory, HEAD, packet.len()).expect("room"));
        fast.forward(&ports, &mut frames.collect::<Vec<_>>(), 0);
        for (port, packet) in ports.iter().zip(&packets) {
            plain.inject(*port, packet, 0);
        }
        for port in (0..10).chain([1023, 1024, 70_000]) {
            assert_eq!(
                fast.port_stats(port),
                plain.port_stats(port),
                "{wishes:?} {from:?} {count} port {port}"
            );
        }
    }
    assert_ne!(plain.port_stats(1).tx.packets, plain.port_stats(1).rx.packets);
}

#[test]
fn a_packet_that_its_parser_rejects_has_no_error_of_a_packet_before_it() {
    let (mut plain, mut fast) = switches("rejects.p4");
    let packets: [&[u8]; 4] = [&[1], &[0, 0, 0, 0, 0, 0, 7, 8], &[1, 2], &[0; 7]];
    let mut memory: Vec<Vec<u8>> = packets
        .iter()
        .map(|p| [&[0; HEAD][..], p, &[0; TAILROOM]].concat())
        .collect();
    let frames = memory.iter_mut().zip(packets);
    let mut frames: Vec<Frame<'_>> = frames
        .map(|(memory, packet)| Frame::new(memory, HEAD, packet.len()).expect("room"))
        .collect();
    let verdicts = fast.forward(&[0; 4], &mut frames, 0);
    assert_eq!(verdicts, [2, 1, 2, 1].map(Verdict::Transmit));
    let ports = packets.map(|packet| Verdict::Transmit(plain.inject(0, packet, 0)[0].port));
    assert_eq!(verdicts, ports);
    assert_eq!(fast.state().parser_errors, plain.state().parser_errors);
}
