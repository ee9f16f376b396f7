//! Writes of multicast groups, nodes and clone sessions: what a refused or abandoned batch leaves,
//! and how much there may be.

use proptest::prelude::*;
use std::sync::Arc;
use weir_switch::{
    CloneSession, ErrorKind, GroupReplica, MAX_ALL_REPLICAS, MAX_REPLICAS, MulticastGroup, Node, Replica, Replication,
    Switch, Write, testing,
};

fn switch() -> Switch {
    Switch::new(Arc::new(testing::reflector())).expect("is a program")
}

fn replica(n: u32) -> Replica {
    Replica::new(n % 500, n / 500)
}

fn group(size: usize) -> MulticastGroup {
    let size = u32::try_from(size).expect("is small");
    (0..size).map(replica).collect::<Vec<_>>().into()
}

fn replicas() -> impl Strategy<Value = Vec<Replica>> {
    prop::collection::vec((0u32..2000).prop_map(replica), 0..5)
}

fn multicast_group() -> impl Strategy<Value = MulticastGroup> {
    let of = |(replicas, backups, note): (Vec<Replica>, Vec<Replica>, Vec<u8>)| {
        let with_backups = |replica| GroupReplica {
            replica,
            backups: backups.clone(),
        };
        MulticastGroup {
            replicas: replicas.into_iter().map(with_backups).collect(),
            note,
        }
    };
    (replicas(), replicas(), prop::collection::vec(any::<u8>(), 0..2)).prop_map(of)
}

fn node() -> impl Strategy<Value = Node> {
    let numbers = || prop::collection::vec(0u32..8, 0..4);
    let of = |(rid, ports, lags)| Node {
        rid,
        ports,
        lags,
        ..Node::default()
    };
    (0u32..4, numbers(), numbers()).prop_map(of)
}

/// Few numbers, so that most writes are about what is there; some are refused.
fn write() -> impl Strategy<Value = Write> {
    let ids = || 0u32..5;
    let nodes = || prop::collection::vec((0u32..12, prop::option::of(0u32..3)), 0..5);
    let ports = || prop::collection::vec(0u32..8, 0..4);
    let session = replicas().prop_map(|replicas| CloneSession {
        replicas,
        ..CloneSession::default()
    });
    prop_oneof![
        3 => (ids(), prop::option::of(multicast_group())).prop_map(|(id, what)| Write::Group(id, what)),
        2 => (ids(), prop::option::of(nodes())).prop_map(|(id, what)| Write::GroupNodes(id, what)),
        3 => (ids(), nodes()).prop_map(|(id, what)| Write::JoinGroup(id, what)),
        2 => (ids(), prop::collection::vec(0u32..12, 0..4)).prop_map(|(id, what)| Write::LeaveGroup(id, what)),
        4 => (0u32..12, prop::option::of(node())).prop_map(|(id, what)| Write::Node(id, what)),
        1 => (ids(), prop::option::of(session)).prop_map(|(id, what)| Write::Session(id, what)),
        1 => (ids(), prop::option::of(ports())).prop_map(|(id, what)| Write::Lag(id, what)),
        1 => (ids(), ports()).prop_map(|(id, what)| Write::PortList(id, what)),
    ]
}

/// What is looked up instead of searched is what a search finds.
fn assert_is_consistent(replication: &Replication) {
    let mut again = replication.clone();
    again.restore(replication.clone());
    assert_eq!(&again, replication);
    for (group, nodes) in replication.groups() {
        for node in nodes {
            assert!(replication.node(*node).is_some(), "node {node} of group {group}");
            assert!(replication.groups_of(*node).any(|g| g == group));
        }
    }
}

proptest! {
    #[test]
    fn what_is_taken_back_leaves_what_was_there_before(
        before in prop::collection::vec(write(), 0..30),
        kept in prop::collection::vec(write(), 0..6),
        taken_back in prop::collection::vec(write(), 0..12),
    ) {
        let mut switch = switch();
        for write in before {
            let was = switch.replication().clone();
            if switch.write(write).is_err() {
                prop_assert_eq!(&was, switch.replication());
            }
            assert_is_consistent(switch.replication());
        }
        let at_first = switch.replication().clone();
        let mut transaction = switch.transaction();
        for write in kept {
            let _ = transaction.write(write);
        }
        let mark = transaction.mark();
        let at_mark = transaction.switch().replication().clone();
        for write in taken_back {
            let _ = transaction.write(write);
        }
        transaction.back_to(mark);
        prop_assert_eq!(&at_mark, transaction.switch().replication());
        drop(transaction);
        prop_assert_eq!(&at_first, switch.replication());
    }

    #[test]
    fn nodes_that_join_and_leave_are_those_of_the_whole_list(
        changes in prop::collection::vec((any::<bool>(), prop::collection::btree_map(0u32..20, prop::option::of(0u32..3), 0..8)), 0..20),
    ) {
        let mut switch = switch();
        for id in 0..20 {
            switch.write(Write::Node(id, Some(Node::default()))).expect("there is room");
        }
        switch.write(Write::GroupNodes(1, Some(Vec::new()))).expect("there is room");
        let mut list: Vec<(u32, Option<u32>)> = Vec::new();
        for (joins, nodes) in changes {
            if joins {
                list.retain(|(node, _)| !nodes.contains_key(node));
                list.extend(nodes.clone());
                switch.write(Write::JoinGroup(1, nodes.into_iter().collect())).expect("the nodes are there");
            } else {
                let nodes: Vec<u32> = nodes.into_keys().collect();
                let are_there = nodes.iter().all(|node| list.iter().any(|(n, _)| n == node));
                if are_there {
                    list.retain(|(node, _)| !nodes.contains(node));
                }
                prop_assert_eq!(switch.write(Write::LeaveGroup(1, nodes)).is_ok(), are_there);
            }
            let replication = switch.replication();
            let found = replication.group_nodes(1).expect("the group is there");
            let found: Vec<_> = found.iter().map(|n| (*n, replication.exclusion(1, *n))).collect();
            prop_assert_eq!(&found, &list);
        }
    }
}

#[test]
fn a_group_or_a_session_has_so_many_replicas_at_most() {
    let mut switch = switch();
    let was = switch.replication().clone();
    let (most, beyond) = (group(MAX_REPLICAS), group(MAX_REPLICAS + 1));
    let refused = switch.write(Write::Group(1, Some(beyond.clone())));
    assert_eq!(refused.map_err(|e| e.kind()), Err(ErrorKind::ResourceExhausted));
    let session = CloneSession {
        replicas: beyond.replicas.iter().map(|r| r.replica).collect(),
        ..CloneSession::default()
    };
    let refused = switch.write(Write::Session(1, Some(session)));
    assert_eq!(refused.map_err(|e| e.kind()), Err(ErrorKind::ResourceExhausted));
    assert_eq!(&was, switch.replication());
    switch.write(Write::Group(1, Some(most))).expect("there is room");
}

#[test]
fn all_groups_have_so_many_replicas_at_most_and_those_that_go_make_room() {
    let mut switch = switch();
    let count = u32::try_from(MAX_ALL_REPLICAS / MAX_REPLICAS).expect("is small");
    for id in 1..=count {
        let write = Write::Group(id, Some(group(MAX_REPLICAS)));
        switch.write(write).expect("there is room");
    }
    let one = || Write::Group(count + 1, Some(group(1)));
    let refused = switch.write(one()).map_err(|e| e.to_string());
    let expected = "the replicas of all multicast groups, backups included are 1048576 at most";
    assert_eq!(refused, Err(expected.to_owned()));
    assert!(switch.replication().group(count + 1).is_none());
    let smaller = Write::Group(1, Some(group(MAX_REPLICAS - 1)));
    switch.write(smaller).expect("it is smaller");
    switch.write(one()).expect("there is room now");
}

#[test]
fn a_node_is_in_a_group_once() {
    let mut switch = switch();
    switch
        .write(Write::Node(7, Some(Node::default())))
        .expect("there is room");
    let twice = Write::GroupNodes(1, Some(vec![(7, None), (7, Some(1))]));
    assert_eq!(
        switch.write(twice).map_err(|e| e.kind()),
        Err(ErrorKind::InvalidArgument)
    );
    assert_eq!(switch.replication().group_nodes(1), None);
}

#[test]
fn what_is_taken_back_gives_its_numbers_to_the_next_nodes() {
    let mut switch = switch();
    let node = || Node {
        ports: vec![1],
        ..Node::default()
    };
    for handle in (0..9).chain(11..12) {
        switch.write(Write::Node(handle, Some(node()))).expect("has room");
    }
    for _ in 0..2 {
        let mut transaction = switch.transaction();
        transaction.write(Write::Group(1, Some(group(3)))).expect("has room");
        let nodes = transaction.switch().replication().group_nodes(1);
        assert_eq!(nodes, Some([9, 10, 12].as_slice()));
    }
    switch.write(Write::Node(4, None)).expect("is there");
    switch.write(Write::Group(1, Some(group(3)))).expect("has room");
    let nodes = switch.replication().group_nodes(1);
    assert_eq!(nodes, Some([4, 9, 10].as_slice()));
}

#[test]
fn a_group_is_removed_however_full_it_is() {
    let mut switch = switch();
    // Nodes in several groups count where they are members, and so there is more of one sort than
    // of the other.
    let ports = |n: u32| Node {
        ports: (0..256).map(|port| 256 * n + port).collect(),
        ..Node::default()
    };
    for handle in 0..4096 {
        switch
            .write(Write::Node(handle, Some(ports(handle))))
            .expect("has room");
    }
    assert!(switch.write(Write::Group(1, Some(group(1)))).is_err());
    assert_eq!(switch.write(Write::Group(1, None)).err(), None);
}

#[test]
fn a_lag_is_in_a_node_once() {
    let mut switch = switch();
    let node = Node {
        lags: vec![7, 3, 7],
        ..Node::default()
    };
    switch.write(Write::Node(1, Some(node))).expect("has room");
    assert_eq!(switch.replication().node(1).map(|n| &*n.lags), Some([3, 7].as_slice()));
}

/// The sort of failure of changes that may go through so much together.
fn bounded(switch: &mut Switch, most: usize, writes: impl IntoIterator<Item = Write>) -> Result<(), ErrorKind> {
    let mut transaction = switch.transaction();
    transaction.bound(most);
    writes
        .into_iter()
        .try_for_each(|write| transaction.write(write).map(drop).map_err(|e| e.kind()))
}

#[test]
fn what_changes_go_through_is_bounded_whatever_they_bring() {
    let full = Err(ErrorKind::ResourceExhausted);
    let mut switch = switch();
    let node = |lags: u32| Node {
        lags: (0..lags).collect(),
        ..Node::default()
    };
    // A long list is replaced by one that is longer by one.
    switch.write(Write::Node(0, Some(node(64_000)))).expect("has room");
    let again = |count| (0..count).map(|n| Write::Node(0, Some(node(64_000 + n))));
    assert_eq!(bounded(&mut switch, 4008, again(4)), Ok(()));
    assert_eq!(bounded(&mut switch, 4002, again(4)), full);
    // Nodes leave a long group.
    for handle in 1..=10_240 {
        switch.write(Write::Node(handle, Some(node(1)))).expect("has room");
    }
    let nodes = (1..=10_240).map(|node| (node, None)).collect();
    switch.write(Write::GroupNodes(1, Some(nodes))).expect("are there");
    let gone = || (1..=100).map(|node| Write::Node(node, None));
    assert_eq!(bounded(&mut switch, 1100, gone()), Ok(()));
    assert_eq!(bounded(&mut switch, 900, gone()), full);
    // What is not said to be bounded is not.
    let mut transaction = switch.transaction();
    assert!(gone().all(|write| transaction.write(write).is_ok()));
}
