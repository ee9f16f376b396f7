//! Two connections over a simulated link.

use super::*;
use crate::efcp::{Address, CepId, QosId};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Random numbers, the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What a link does to PDUs.
#[derive(Clone, Copy)]
struct Impairment {
    /// Per 1000 PDUs.
    loss: u64,
    duplication: u64,
    reordering: u64,
    marks: u64,
    delay: Duration,
}

const CLEAN: Impairment = Impairment {
    loss: 0,
    duplication: 0,
    reordering: 0,
    marks: 0,
    delay: Duration::from_millis(1),
};

struct Pair {
    ends: [Connection; 2],
    /// PDUs on the link: time of arrival, order, receiving end.
    link: BinaryHeap<Reverse<(Time, u64, usize)>>,
    pdus: std::collections::BTreeMap<u64, (Pci, Vec<u8>)>,
    count: u64,
    now: Time,
    random: Random,
    impairment: Impairment,
}

fn end(address: u32) -> Endpoint {
    Endpoint {
        address: Address(address),
        cep: CepId(address + 100),
    }
}

fn config(local: u32, remote: u32, policies: Policies, initial_sequence: u32) -> ConnectionConfig {
    ConnectionConfig {
        local: end(local),
        remote: end(remote),
        policies,
        max_pdu: 121,
        pci_bytes: 20,
        max_sdu: 5000,
        queue: 64,
        initial_sequence,
    }
}

impl Pair {
    fn new(policies: &Policies, impairment: Impairment) -> Self {
        let connection =
            |local, remote, initial| Connection::new(config(local, remote, policies.clone(), initial), Time::ZERO);
        Pair {
            // The numbers wrap soon.
            ends: [connection(1, 2, u32::MAX - 20), connection(2, 1, 77)],
            link: BinaryHeap::new(),
            pdus: std::collections::BTreeMap::new(),
            count: 0,
            now: Time::ZERO,
            random: Random(0x1234_5678),
            impairment,
        }
    }

    fn put(&mut self, to: usize, pci: Pci, payload: Vec<u8>) {
        let Impairment {
            loss,
            duplication,
            reordering,
            marks,
            delay,
        } = self.impairment;
        if self.random.below(1000) < loss {
            return;
        }
        let mut pci = pci;
        if self.random.below(1000) < marks {
            pci.flags = pci.flags.with(Flags::ECN);
        }
        let copies = 1 + u64::from(self.random.below(1000) < duplication);
        for _ in 0..copies {
            let is_late = self.random.below(1000) < reordering;
            let time = self.now + if is_late { delay * 3 } else { delay };
            self.count += 1;
            self.link.push(Reverse((time, self.count, to)));
            self.pdus.insert(self.count, (pci, payload.clone()));
        }
    }

    fn transmit(&mut self) {
        for from in 0..2 {
            while let Some((pci, payload)) = self.ends[from].poll_transmit(self.now) {
                self.put(1 - from, pci, payload);
            }
        }
    }

    /// Advances to the next event; false if there is none.
    fn step(&mut self) -> bool {
        self.transmit();
        let arrival = self.link.peek().map(|Reverse((time, ..))| *time);
        let deadlines = self.ends.iter().filter_map(|end| end.deadline(self.now));
        let Some(next) = deadlines.chain(arrival).min() else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(&Reverse((time, number, to))) = self.link.peek() {
            if time > self.now {
                break;
            }
            self.link.pop();
            let (pci, payload) = self.pdus.remove(&number).unwrap();
            let _ = self.ends[to].receive(&pci, &payload, self.now);
        }
        for end in &mut self.ends {
            end.tick(self.now);
        }
        self.transmit();
        true
    }

    /// Sends SDUs from the first to the second end, which reads at once; what it reads.
    fn carry(&mut self, sdus: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (mut at, mut seen) = (0, Vec::new());
        loop {
            while let Some(sdu) = sdus.get(at) {
                if self.ends[0].send(sdu, self.now).is_err() {
                    break;
                }
                at += 1;
            }
            while let Some(sdu) = self.ends[1].read(self.now) {
                seen.push(sdu);
            }
            assert!(self.now < Time::from_secs(100_000), "no progress");
            if !self.step() || (at == sdus.len() && self.ends[0].is_drained() && self.link.is_empty()) {
                break;
            }
        }
        while let Some(sdu) = self.ends[1].read(self.now) {
            seen.push(sdu);
        }
        seen
    }
}

fn sdus(count: usize, most: u64) -> Vec<Vec<u8>> {
    let mut random = Random(99);
    let sdu = |n: usize| {
        let length = random.below(most + 1) as usize;
        (0..length).map(|at| (n + at) as u8).collect()
    };
    (0..count).map(sdu).collect()
}

fn reliable() -> Policies {
    Policies::reliable(QosId(1))
}

#[test]
fn a_reliable_connection_survives_loss_reordering_and_duplication() {
    let impairment = Impairment {
        loss: 10,
        duplication: 10,
        reordering: 20,
        ..CLEAN
    };
    let all = sdus(20_000, 300);
    let mut pair = Pair::new(&reliable(), impairment);
    assert!(pair.carry(&all) == all);
    let statistics = pair.ends[0].statistics();
    // 1 % is lost, and some 2 % count as lost because of reordering.
    assert!(statistics.retransmitted * 20 < statistics.data_sent, "{statistics:?}");
}

#[test]
fn thirty_percent_loss_does_not_end_it() {
    let impairment = Impairment { loss: 300, ..CLEAN };
    let all = sdus(300, 1000);
    let mut pair = Pair::new(&reliable(), impairment);
    assert!(pair.carry(&all) == all);
}

#[test]
fn without_loss_nothing_is_retransmitted() {
    let all = sdus(5000, 2000);
    let mut pair = Pair::new(&reliable(), CLEAN);
    assert!(pair.carry(&all) == all);
    let statistics = pair.ends[0].statistics();
    assert_eq!(statistics.retransmitted, 0);
    assert_eq!(pair.ends[1].statistics().refused, [0; 8]);
    // Slow start has opened the window.
    assert!(pair.ends[0].congestion_window().0 > 100);
}

#[test]
fn marks_reduce_the_congestion_window_without_a_retransmission() {
    let window = |marks| {
        let mut pair = Pair::new(&reliable(), Impairment { marks, ..CLEAN });
        let all = sdus(5000, 100);
        assert!(pair.carry(&all) == all);
        assert_eq!(pair.ends[0].statistics().retransmitted, 0);
        pair.ends[0].congestion_window().0
    };
    assert!(window(0) > 4 * window(500), "{} {}", window(0), window(500));
}

#[test]
fn a_reader_that_stops_stops_the_sender_and_a_lost_update_does_no_harm() {
    let mut policies = reliable();
    policies.credit = Some(8);
    let mut pair = Pair::new(&policies, CLEAN);
    for _ in 0..40 {
        pair.ends[0].send(&[7; 50], pair.now).unwrap();
    }
    for _ in 0..200 {
        pair.step();
    }
    assert_eq!(pair.ends[1].readable(), 8);
    assert_eq!(pair.ends[0].statistics().data_sent, 8);
    // The update is lost, and so are the first probes.
    pair.impairment.loss = 1000;
    while pair.ends[1].read(pair.now).is_some() {}
    for _ in 0..4 {
        pair.step();
    }
    pair.impairment.loss = 0;
    let mut rest = 8;
    while rest < 40 {
        assert!(pair.step());
        while pair.ends[1].read(pair.now).is_some() {
            rest += 1;
        }
    }
}

#[test]
fn an_sdu_larger_than_the_window_arrives() {
    let mut policies = reliable();
    policies.credit = Some(2);
    let all = vec![vec![5; 5000], Vec::new(), vec![6; 4999]];
    let mut pair = Pair::new(&policies, Impairment { loss: 100, ..CLEAN });
    assert!(pair.carry(&all) == all);
}

#[test]
fn a_peer_that_is_gone_ends_the_connection() {
    let mut pair = Pair::new(&reliable(), Impairment { loss: 1000, ..CLEAN });
    pair.ends[0].send(b"x", pair.now).unwrap();
    while pair.step() {}
    assert_eq!(pair.ends[0].closed(), Some(Closed::GivenUp));
    assert_eq!(
        pair.ends[0].send(b"y", pair.now),
        Err(SendError::Closed(Closed::GivenUp))
    );
    assert!(pair.now < Time::from_secs(60));
}

#[test]
fn an_idle_connection_starts_a_new_run_and_continues() {
    let mut pair = Pair::new(&reliable(), CLEAN);
    let all = sdus(50, 200);
    assert!(pair.carry(&all) == all);
    while pair.step() {}
    pair.now = pair.now + Duration::from_secs(1000);
    pair.ends[0].send(b"again", pair.now).unwrap();
    let (pci, _) = pair.ends[0].poll_transmit(pair.now).unwrap();
    assert!(pci.flags.contains(Flags::DRF));
    // It is lost, and what follows arrives first.
    pair.ends[0].send(b"and again", pair.now).unwrap();
    while pair.step() {}
    assert_eq!(pair.ends[1].read(pair.now).unwrap(), b"again");
    assert_eq!(pair.ends[1].read(pair.now).unwrap(), b"and again");
}

#[test]
fn a_rate_is_kept() {
    let mut policies = reliable();
    policies.rate = Some(1_000_000);
    let all = vec![vec![1; 1000]; 2000];
    let mut pair = Pair::new(&policies, CLEAN);
    assert!(pair.carry(&all) == all);
    // Ten PDUs of 121 bytes or less for each SDU: 2.42 MB, a burst of 65 kB.
    let seconds = pair.now.since(Time::ZERO).as_secs_f64();
    assert!((2.2..2.6).contains(&seconds), "{seconds}");
}

#[test]
fn unordered_sdus_arrive_once_each_and_late_ones_too() {
    let impairment = Impairment {
        loss: 50,
        duplication: 100,
        reordering: 100,
        ..CLEAN
    };
    let mut pair = Pair::new(&Policies::unreliable(QosId(0)), impairment);
    let all: Vec<Vec<u8>> = (0..2000_u32).map(|n| n.to_be_bytes().to_vec()).collect();
    let mut seen = pair.carry(&all);
    assert!((1800..2000).contains(&seen.len()), "{}", seen.len());
    assert!(!seen.is_sorted());
    seen.sort();
    let count = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), count, "each once");
}

#[test]
fn ordered_sdus_arrive_in_order_and_lost_fragments_lose_only_their_sdu() {
    let impairment = Impairment {
        loss: 50,
        reordering: 50,
        ..CLEAN
    };
    let policies = Policies {
        delivery: Delivery::Ordered,
        ..Policies::unreliable(QosId(0))
    };
    let mut pair = Pair::new(&policies, impairment);
    let all: Vec<Vec<u8>> = (0..1000_u32).map(|n| n.to_be_bytes().repeat(60)).collect();
    let seen = pair.carry(&all);
    assert!((500..1000).contains(&seen.len()), "{}", seen.len());
    assert!(seen.is_sorted());
    assert!(seen.iter().all(|sdu| all.contains(sdu)), "whole");
    assert!(pair.ends[1].statistics().sdus_lost > 0);
}

#[test]
fn forged_pdus_are_refused_and_counted() {
    let mut pair = Pair::new(&reliable(), CLEAN);
    pair.ends[0].send(b"first", pair.now).unwrap();
    while pair.step() {}
    let [a, b] = &mut pair.ends;
    let now = pair.now;
    let pci = |kind, sequence, flags| Pci {
        destination_cep: CepId(102),
        source_cep: CepId(101),
        kind,
        sequence,
        flags,
        ..Pci::management(Address(1), Address(2))
    };
    let data = |sequence, flags| pci(Kind::Data, sequence, flags);
    let first = u32::MAX - 20;
    // A repeated first PDU, and one that pretends to begin anew.
    assert_eq!(b.receive(&data(first, Flags::DRF), b"\x07first", now), Ok(()));
    assert_eq!(
        b.receive(&data(12345, Flags::DRF), b"\x07forged", now),
        Err(Refused::BeyondWindow)
    );
    assert_eq!(
        b.receive(&data(first.wrapping_sub(9), Flags::NONE), b"\x07old", now),
        Err(Refused::BelowWindow)
    );
    let stranger = Pci {
        source: Address(9),
        ..data(first + 1, Flags::NONE)
    };
    assert_eq!(
        b.receive(&stranger, b"\x07stranger", now),
        Err(Refused::OtherConnection)
    );
    assert_eq!(b.read(now).as_deref(), Some(&b"first"[..]));
    assert_eq!(b.read(now), None);
    assert_eq!(b.statistics().duplicates, 2);

    let control = |acknowledged, new_right| {
        let fields = ControlFields {
            acknowledged,
            new_right,
            ..ControlFields::default()
        };
        let kind = ControlType::AckFlow;
        Pci {
            destination_cep: CepId(101),
            source_cep: CepId(102),
            kind: Kind::Control(Control { kind, fields }),
            ..Pci::management(Address(2), Address(1))
        }
    };
    assert_eq!(
        a.receive(&control(first + 5, first + 9), &[], now),
        Err(Refused::AcknowledgesUnsent)
    );
    let far = first.wrapping_add(1 << 30);
    assert_eq!(a.receive(&control(first, far), &[], now), Err(Refused::WindowTooLarge));
    assert_eq!(a.receive(&control(first, first), &[1, 2, 3], now), Err(Refused::Ranges));
    // The window does not shrink.
    assert_eq!(a.receive(&control(first, first), &[], now), Ok(()));
    a.send(b"second", now).unwrap();
    assert!(a.poll_transmit(now).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_the_link_does_a_reliable_connection_delivers_all_in_order(
        seed in 1_u64..,
        loss in 0_u64..400,
        duplication in 0_u64..200,
        reordering in 0_u64..500,
        marks in 0_u64..1000,
        credit in 1_u32..100,
        lengths in prop::collection::vec(0_usize..700, 1..60),
    ) {
        let impairment = Impairment { loss, duplication, reordering, marks, ..CLEAN };
        let policies = Policies { credit: Some(credit), ..reliable() };
        let mut pair = Pair::new(&policies, impairment);
        pair.random = Random(seed);
        let all: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(n, length)| vec![n as u8; *length]).collect();
        let seen = pair.carry(&all);
        prop_assert!(seen == all, "{} of {}", seen.len(), all.len());
        prop_assert!(pair.ends[1].buffered() <= credit as usize);
    }

    #[test]
    fn hostile_pdus_neither_panic_nor_grow(
        pdus in prop::collection::vec(
            (any::<u32>(), any::<u16>(), 0_usize..13, any::<u32>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..40)),
            0..200,
        ),
    ) {
        let mut pair = Pair::new(&Policies { credit: Some(16), ..reliable() }, CLEAN);
        for (sequence, flags, kind, acknowledged, new_right, payload) in pdus {
            let fields = ControlFields { acknowledged, new_right, ..ControlFields::default() };
            let kind = match kind.checked_sub(2).and_then(|at| ControlType::ALL.get(at)) {
                Some(kind) => Kind::Control(Control { kind: *kind, fields }),
                None => Kind::Data,
            };
            let pci = Pci {
                destination_cep: CepId(101),
                source_cep: CepId(102),
                kind,
                sequence,
                flags: Flags(flags),
                ..Pci::management(Address(2), Address(1))
            };
            let end = &mut pair.ends[0];
            let _ = end.receive(&pci, &payload, pair.now);
            let _ = end.send(b"data", pair.now);
            while end.poll_transmit(pair.now).is_some() {}
            end.tick(pair.now);
            prop_assert!(end.buffered() <= 16 && end.readable() <= 16);
            pair.now = pair.now + Duration::from_millis(1);
        }
    }
}
