//! Flooding in simulated networks: loss, restarts, replays and forged states.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_rina::Time;
use weir_rina::link_state::{Config, Database, Link, LinkState, MAX_SEQUENCE, Rejection};

type Node = u32;

fn config() -> Config {
    Config {
        refresh: Duration::from_secs(30),
        max_age: Duration::from_secs(90),
        hold: Duration::from_secs(60),
        retransmit: Some(Duration::from_millis(200)),
        batch: 3,
        window: 2,
        max_links_of_origin: 8,
        max_links: 200,
    }
}

/// A network without delays, whose messages may be lost.
struct Network {
    nodes: BTreeMap<Node, Database<Node>>,
    now: Time,
    /// State of a linear congruential generator that decides on losses.
    random: u64,
    /// Losses of 256 messages.
    loss: u64,
    messages: usize,
}

impl Network {
    fn new(nodes: u32, loss: u64) -> Self {
        let database = |node| (node, Database::new(node, config()));
        Network {
            nodes: (0..nodes).map(database).collect(),
            now: Time::ZERO,
            random: 1,
            loss,
            messages: 0,
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % 256 < self.loss
    }

    fn node(&mut self, node: Node) -> &mut Database<Node> {
        self.nodes.get_mut(&node).unwrap()
    }

    fn connect(&mut self, a: Node, b: Node, cost: u32) {
        let now = self.now;
        self.node(a).neighbour_up(b, cost, now);
        self.node(b).neighbour_up(a, cost, now);
    }

    fn cut(&mut self, a: Node, b: Node) {
        let now = self.now;
        self.node(a).neighbour_down(&b, now);
        self.node(b).neighbour_down(&a, now);
    }

    /// Delivers all that is to be sent; returns whether there was something.
    fn deliver(&mut self) -> bool {
        let mut any = false;
        let ids: Vec<Node> = self.nodes.keys().copied().collect();
        for from in ids {
            let neighbours: Vec<Node> = self.node(from).neighbours().copied().collect();
            for to in neighbours {
                while let Some(batch) = {
                    let now = self.now;
                    self.node(from).transmit(&to, now, |_| true)
                } {
                    any = true;
                    self.messages += 1;
                    assert!(self.messages < 200_000, "messages without end");
                    if self.is_lost() || !self.nodes.contains_key(&to) {
                        continue;
                    }
                    let now = self.now;
                    for state in batch.states {
                        let _ = self.node(to).receive(&from, state, now);
                    }
                    if !self.is_lost() {
                        assert!(self.node(from).acknowledge(&to, batch.id));
                    }
                }
            }
        }
        any
    }

    /// Runs until the time has passed.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            while self.deliver() {}
            let next = self.nodes.values().filter_map(Database::deadline).min();
            self.now = next.unwrap_or(end).clamp(self.now + Duration::from_millis(1), end);
            let now = self.now;
            self.nodes.values_mut().for_each(|database| database.tick(now));
        }
        while self.deliver() {}
    }

    #[track_caller]
    fn assert_links(&self, expected: &BTreeSet<(Node, Node, u32)>) {
        let expected: Vec<Link<Node>> = expected
            .iter()
            .map(|(from, to, cost)| Link {
                from: *from,
                to: *to,
                cost: *cost,
            })
            .collect();
        for (node, database) in &self.nodes {
            assert_eq!(database.links(), expected, "links as node {node} sees them");
        }
    }
}

fn links(pairs: &[(Node, Node, u32)]) -> BTreeSet<(Node, Node, u32)> {
    pairs
        .iter()
        .flat_map(|(a, b, c)| [(*a, *b, *c), (*b, *a, *c)])
        .collect()
}

const RING: [(Node, Node, u32); 4] = [(0, 1, 1), (1, 2, 2), (2, 3, 1), (3, 0, 1)];

fn ring(loss: u64) -> Network {
    let mut network = Network::new(4, loss);
    for (a, b, cost) in RING {
        network.connect(a, b, cost);
    }
    network.run(Duration::from_secs(10));
    network
}

fn state(origin: Node, neighbour: Node, sequence: u32) -> LinkState<Node> {
    LinkState {
        origin,
        neighbour,
        cost: 1,
        sequence,
        is_up: true,
        age: Duration::ZERO,
    }
}

#[test]
fn all_nodes_know_all_links_and_their_changes() {
    let mut network = ring(0);
    network.assert_links(&links(&RING));
    network.cut(1, 2);
    network.run(Duration::from_secs(1));
    network.assert_links(&links(&[RING[0], RING[2], RING[3]]));
    network.connect(1, 2, 5);
    network.run(Duration::from_secs(1));
    network.assert_links(&links(&[RING[0], (1, 2, 5), RING[2], RING[3]]));
    // Refreshed again and again, nothing expires.
    let revisions: Vec<u64> = network.nodes.values().map(Database::revision).collect();
    network.run(Duration::from_secs(400));
    let later: Vec<u64> = network.nodes.values().map(Database::revision).collect();
    assert_eq!(revisions, later);
    assert!(network.nodes.values().all(|d| d.summary().expired == 0));
}

#[test]
fn lost_messages_are_sent_again() {
    let network = ring(100);
    network.assert_links(&links(&RING));
    let sent_again = |d: &Database<Node>| d.summary().retransmissions > 0;
    assert!(network.nodes.values().any(sent_again));
}

#[test]
fn states_of_a_node_that_is_gone_expire_and_are_forgotten() {
    let mut network = ring(0);
    network.nodes.remove(&2);
    let now = network.now;
    // Node 1 notices; node 3 does not.
    network.node(1).neighbour_down(&2, now);
    network.run(Duration::from_secs(1));
    let without_1_2 = links(&[RING[0], RING[2], RING[3]]);
    network.assert_links(&without_1_2);
    network.run(Duration::from_secs(95));
    network.assert_links(&links(&[RING[0], RING[3]]));
    network.node(3).neighbour_down(&2, now + Duration::from_secs(96));
    network.run(Duration::from_secs(200));
    for database in network.nodes.values() {
        assert_eq!(database.summary().states, 4, "only the links of nodes 0, 1 and 3");
    }
}

#[test]
fn a_restarted_node_takes_its_sequence_numbers_up_again() {
    let mut network = ring(0);
    network.run(Duration::from_secs(65));
    let now = network.now;
    network.nodes.insert(2, Database::new(2, config()));
    for (neighbour, cost) in [(1, 7), (3, 1)] {
        network.node(2).neighbour_up(neighbour, cost, now);
        network.node(neighbour).synchronise(&2);
    }
    network.run(Duration::from_secs(1));
    let expected: BTreeSet<_> = [
        (0, 1, 1),
        (1, 0, 1),
        (1, 2, 2),
        (2, 1, 7),
        (2, 3, 1),
        (3, 2, 1),
        (3, 0, 1),
        (0, 3, 1),
    ]
    .into_iter()
    .collect();
    network.assert_links(&expected);
    let rejected = network.nodes[&2].summary().rejected;
    assert!(rejected[Rejection::OwnOrigin.index()] > 0);
}

/// Node 2 is away for some time, and starts again with its first sequence number.
fn return_after(away: u64) -> Network {
    let mut network = ring(0);
    // Several refreshes.
    network.run(Duration::from_secs(65));
    network.cut(1, 2);
    network.cut(2, 3);
    network.nodes.remove(&2);
    network.run(Duration::from_secs(away));
    let now = network.now;
    network.nodes.insert(2, Database::new(2, config()));
    network.node(2).neighbour_up(1, 2, now);
    network.node(1).neighbour_up(2, 2, now);
    network.node(2).neighbour_up(3, 1, now);
    network.node(3).neighbour_up(2, 1, now);
    network.run(Duration::from_secs(1));
    network
}

#[test]
fn a_node_that_returns_is_believed_whether_its_states_are_known_expired_or_forgotten() {
    for away in [10, 80, 100, 140, 160, 400] {
        return_after(away).assert_links(&links(&RING));
    }
}

#[test]
fn an_expired_state_reaches_its_origin_through_a_neighbour_that_has_restarted() {
    let mut network = ring(0);
    network.run(Duration::from_secs(65));
    network.nodes.remove(&2);
    network.nodes.remove(&3);
    let now = network.now;
    network.node(1).neighbour_down(&2, now);
    network.node(0).neighbour_down(&3, now);
    network.run(Duration::from_secs(100));
    // Only 0 and 1 know the numbers, and 2 is connected to 3 alone.
    let now = network.now;
    network.nodes.insert(2, Database::new(2, config()));
    network.nodes.insert(3, Database::new(3, config()));
    network.connect(2, 3, 1);
    network.run(Duration::from_secs(1));
    network.node(0).neighbour_up(3, 1, now);
    network.node(3).neighbour_up(0, 1, now);
    network.run(Duration::from_secs(1));
    network.assert_links(&links(&[RING[0], RING[2], RING[3]]));
}

#[test]
fn replayed_states_are_refused_also_after_they_have_expired() {
    let mut network = ring(0);
    let now = network.now;
    let recorded: Vec<LinkState<Node>> = network.nodes[&0].states(now).filter(|s| s.origin == 2).collect();
    network.cut(1, 2);
    network.cut(2, 3);
    network.run(Duration::from_secs(1));
    let expected = links(&[RING[0], RING[3]]);
    network.nodes.remove(&2);
    for seconds in [0, 80, 20, 20] {
        network.run(Duration::from_secs(seconds));
        let now = network.now;
        for state in &recorded {
            let refused = network.node(0).receive(&1, state.clone(), now);
            assert!(
                matches!(refused, Err(Rejection::Older | Rejection::Duplicate)),
                "{refused:?}"
            );
        }
        network.run(Duration::from_secs(1));
        network.assert_links(&expected);
    }
}

#[test]
fn states_in_the_name_of_others_are_answered_by_their_origins() {
    let mut network = ring(0);
    let now = network.now;
    // Node 3 says that node 1 has withdrawn its link to 2, and that it has one to 9.
    let withdrawal = LinkState {
        is_up: false,
        ..state(1, 2, 1000)
    };
    for forged in [withdrawal, state(1, 9, 7), state(9, 1, 7)] {
        assert_eq!(network.node(0).receive(&3, forged, now), Ok(()));
    }
    network.run(Duration::from_secs(1));
    network.assert_links(&links(&RING));
    let states: Vec<LinkState<Node>> = network.nodes[&0].states(now).collect();
    let of = |origin, neighbour| {
        states
            .iter()
            .find(|s| (s.origin, s.neighbour) == (origin, neighbour))
            .unwrap()
    };
    assert_eq!((of(1, 2).sequence, of(1, 2).is_up), (1001, true));
    assert_eq!((of(1, 9).sequence, of(1, 9).is_up), (8, false));
    let rejected = network.nodes[&1].summary().rejected;
    assert_eq!(rejected[Rejection::OwnOrigin.index()], 2);
}

#[test]
fn impossible_states_are_refused_by_reason() {
    let mut database = Database::new(
        0,
        Config {
            max_links: 6,
            max_links_of_origin: 2,
            ..config()
        },
    );
    let now = Time::from_secs(1);
    database.neighbour_up(1, 1, now);
    let mut refuse = |from, state, rejection: Rejection| {
        assert_eq!(database.receive(&from, state, now), Err(rejection));
        assert_eq!(database.summary().rejected[rejection.index()], 1, "{rejection}");
    };
    refuse(2, state(2, 0, 1), Rejection::NotNeighbour);
    refuse(1, state(1, 1, 1), Rejection::SelfLoop);
    refuse(
        1,
        LinkState {
            cost: 0,
            ..state(1, 0, 1)
        },
        Rejection::ZeroCost,
    );
    refuse(1, state(1, 0, MAX_SEQUENCE + 1), Rejection::SequenceRange);
    let age = Duration::from_secs(91);
    refuse(1, LinkState { age, ..state(1, 0, 1) }, Rejection::TooOld);

    let mut accept = |state| assert_eq!(database.receive(&1, state, now), Ok(()));
    accept(state(1, 0, 5));
    accept(state(1, 2, 5));
    accept(LinkState {
        cost: 3,
        ..state(1, 2, 5)
    });
    accept(state(3, 1, MAX_SEQUENCE));
    accept(state(4, 1, 1));
    accept(state(5, 1, 1));
    let mut refuse = |state, rejection: Rejection| {
        assert_eq!(database.receive(&1, state, now), Err(rejection));
    };
    refuse(state(1, 0, 4), Rejection::Older);
    refuse(state(1, 0, 5), Rejection::Duplicate);
    refuse(
        LinkState {
            cost: 2,
            ..state(1, 2, 5)
        },
        Rejection::Conflict,
    );
    refuse(state(1, 3, 1), Rejection::TooManyOfOrigin);
    refuse(state(6, 1, 1), Rejection::Full);
    refuse(state(0, 1, 9), Rejection::OwnOrigin);
    for rejection in Rejection::ALL {
        assert_eq!(Rejection::ALL[rejection.index()], rejection);
        assert!(database.summary().rejected[rejection.index()] > 0, "{rejection}");
    }
    assert_eq!(database.summary().states, 6);
}

#[test]
fn a_neighbour_that_does_not_acknowledge_holds_a_bounded_number_of_batches() {
    let mut database = Database::new(0, config());
    let now = Time::ZERO;
    database.neighbour_up(1, 1, now);
    for origin in 2..30 {
        database.receive(&1, state(origin, 1, 1), now).unwrap();
    }
    database.neighbour_up(2, 1, now);
    let sizes: Vec<usize> = std::iter::from_fn(|| database.transmit(&2, now, |_| true))
        .map(|b| b.states.len())
        .collect();
    assert_eq!(sizes, [3, 3]);
    assert_eq!(database.backlog(&2), (24, 2));
    assert_eq!(database.deadline(), Some(Time::from_millis(200)));
    database.tick(Time::from_millis(200));
    assert_eq!(database.backlog(&2), (30, 0));
    assert!(!database.acknowledge(&2, 1), "the batch has been given up");
}

#[test]
fn a_batch_ends_before_the_state_that_does_not_fit() {
    let mut database = Database::new(0, config());
    let now = Time::ZERO;
    database.neighbour_up(1, 1, now);
    for origin in 2..6 {
        database.receive(&1, state(origin, 1, 1), now).unwrap();
    }
    database.neighbour_up(2, 1, now);
    let of_two = |count: &mut u32| {
        *count += 1;
        *count <= 2
    };
    let mut count = 0;
    let batch = database.transmit(&2, now, |_| of_two(&mut count)).unwrap();
    assert_eq!((batch.states.len(), count), (2, 3));
    let batch = database.transmit(&2, now, |_| false).unwrap();
    assert_eq!(batch.states.len(), 1, "one is sent although it is too long");
    assert_eq!(database.backlog(&2), (3, 2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever happens to links, and although messages are lost, in the end all nodes of a
    /// component agree on its links.
    #[test]
    fn databases_converge(
        events in prop::collection::vec((0_u32..6, 0_u32..6, 1_u32..4, any::<bool>()), 1..25),
        loss in 0_u64..120,
        forged in prop::collection::vec((0_u32..6, 0_u32..6, 0_u32..40, any::<bool>()), 0..6),
    ) {
        let mut network = Network::new(6, loss);
        // A ring keeps the network connected.
        let mut current: BTreeMap<(Node, Node), u32> = BTreeMap::new();
        for node in 0..6 {
            let (a, b) = (node, (node + 1) % 6);
            network.connect(a, b, 1);
            current.insert((a.min(b), a.max(b)), 1);
        }
        for (a, b, cost, is_up) in events {
            let (a, b) = (a.min(b), a.max(b));
            if b - a < 2 || b - a == 5 {
                continue;
            }
            if is_up {
                network.connect(a, b, cost);
                current.insert((a, b), cost);
            } else {
                network.cut(a, b);
                current.remove(&(a, b));
            }
            network.deliver();
        }
        for (origin, neighbour, sequence, is_up) in forged {
            let now = network.now;
            let forged = LinkState { is_up, ..state(origin, neighbour, sequence) };
            let from = *network.nodes[&0].neighbours().next().unwrap();
            let _ = network.node(0).receive(&from, forged, now);
        }
        network.run(Duration::from_secs(20));
        let expected: Vec<(Node, Node, u32)> = current.into_iter().map(|((a, b), cost)| (a, b, cost)).collect();
        network.assert_links(&links(&expected));
        for database in network.nodes.values() {
            for neighbour in database.neighbours() {
                prop_assert_eq!(database.backlog(neighbour), (0, 0));
            }
        }
    }
}
