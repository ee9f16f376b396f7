//! Everything but tables: profiles, counters, meters, registers, value sets, replication.

use crate::common::*;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::p4_data::Data;

fn member(bench: &Bench, profile: &str, member_id: u32, value: u32) -> Entity {
    Entity::ActionProfileMember(pb::ActionProfileMember {
        action_profile_id: bench.id(profile),
        member_id,
        action: Some(bench.answer(value)),
    })
}

fn group(bench: &Bench, members: &[(u32, i32, Option<u8>)], max_size: i32) -> Entity {
    use pb::action_profile_group::{Member, member::WatchKind};
    let member = |&(member_id, weight, watch): &(u32, i32, Option<u8>)| Member {
        member_id,
        weight,
        watch_kind: watch.map(|port| WatchKind::WatchPort(vec![port])),
    };
    Entity::ActionProfileGroup(pb::ActionProfileGroup {
        action_profile_id: bench.id("selector"),
        group_id: 1,
        members: members.iter().map(member).collect(),
        max_size,
    })
}

fn entry_of(bench: &Bench, table: &str, key: u8, ty: pb::table_action::Type) -> Entity {
    Entity::TableEntry(pb::TableEntry {
        action: Some(pb::TableAction { r#type: Some(ty) }),
        ..bench.entry(table, vec![exact(1, &[key])], 0)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_an_action_profile_are_shared_by_entries() {
    use pb::table_action::Type::ActionProfileMemberId;
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let entry = entry_of(&bench, "profile_table", 1, ActionProfileMemberId(7));
    assert_eq!(bench.insert(entry.clone()).await, Err(Code::NotFound));
    bench.insert(member(&bench, "profile", 7, 70)).await.expect("fits");
    assert_eq!(
        bench.insert(member(&bench, "profile", 7, 70)).await,
        Err(Code::AlreadyExists)
    );
    bench.insert(entry.clone()).await.expect("fits");
    assert_eq!(bench.ask(9, 0, 1), Some(70));
    bench.modify(member(&bench, "profile", 7, 71)).await.expect("is there");
    assert_eq!(bench.ask(9, 0, 1), Some(71));
    assert_eq!(
        bench.delete(member(&bench, "profile", 7, 0)).await,
        Err(Code::FailedPrecondition)
    );
    let all = |id| {
        Entity::ActionProfileMember(pb::ActionProfileMember {
            action_profile_id: id,
            ..Default::default()
        })
    };
    assert_eq!(bench.read(all(0)).await, [member(&bench, "profile", 7, 71)]);
    assert_eq!(bench.read(all(bench.id("selector"))).await, []);
    bench.delete(entry).await.expect("is there");
    bench
        .delete(member(&bench, "profile", 7, 0))
        .await
        .expect("is not used");
    assert_eq!(bench.modify(member(&bench, "profile", 7, 1)).await, Err(Code::NotFound));
    let no_action = Entity::ActionProfileMember(pb::ActionProfileMember {
        action_profile_id: bench.id("profile"),
        member_id: 1,
        action: None,
    });
    assert_eq!(bench.insert(no_action).await, Err(Code::InvalidArgument));
    assert_eq!(
        bench.insert(member(&bench, "profile", 0, 1)).await,
        Err(Code::InvalidArgument)
    );
    for i in 1..=16 {
        bench
            .insert(member(&bench, "profile", i, i))
            .await
            .expect("there is room");
    }
    assert_eq!(
        bench.insert(member(&bench, "profile", 17, 17)).await,
        Err(Code::ResourceExhausted)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_choose_among_members_whose_watch_port_is_up() {
    use pb::table_action::Type::ActionProfileGroupId;
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    assert_eq!(
        bench.insert(group(&bench, &[(1, 1, None)], 8)).await,
        Err(Code::NotFound)
    );
    for i in [1, 2] {
        bench.insert(member(&bench, "selector", i, i * 10)).await.expect("fits");
    }
    // P4Info limits the size of groups, so groups must say how large they may get.
    assert_eq!(bench.insert(group(&bench, &[], 0)).await, Err(Code::InvalidArgument));
    assert_eq!(bench.insert(group(&bench, &[], 9)).await, Err(Code::InvalidArgument));
    assert_eq!(
        bench.insert(group(&bench, &[(1, 0, None)], 8)).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.insert(group(&bench, &[(1, 1, None), (1, 1, None)], 8)).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.insert(group(&bench, &[(1, 9, None)], 8)).await,
        Err(Code::ResourceExhausted)
    );
    let written = group(&bench, &[(1, 1, Some(4)), (2, 3, Some(5))], 8);
    bench.insert(written.clone()).await.expect("fits");
    assert_eq!(bench.insert(written.clone()).await, Err(Code::AlreadyExists));
    assert_eq!(
        bench.modify(group(&bench, &[(1, 1, None)], 7)).await,
        Err(Code::InvalidArgument)
    );
    let entry = entry_of(&bench, "selector_table", 1, ActionProfileGroupId(1));
    bench.insert(entry.clone()).await.expect("fits");
    let chosen = |bench: &Bench| (0..4).map(|hash| bench.ask(10, hash, 1)).collect::<Vec<_>>();
    assert_eq!(chosen(&bench), [Some(10), Some(20), Some(20), Some(20)]);
    bench.switch.set_port(5, false);
    assert_eq!(chosen(&bench), [Some(10); 4]);
    assert_eq!(bench.read(group(&bench, &[], 0)).await, [written.clone()]);
    bench.switch.set_port(5, true);
    assert_eq!(chosen(&bench)[1], Some(20));
    assert_eq!(
        bench.delete(member(&bench, "selector", 1, 0)).await,
        Err(Code::FailedPrecondition)
    );
    assert_eq!(bench.delete(written.clone()).await, Err(Code::FailedPrecondition));
    bench.delete(entry).await.expect("is there");
    bench.delete(written.clone()).await.expect("is not used");
    assert_eq!(bench.delete(written).await, Err(Code::NotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_all_of_whose_members_are_excluded_is_as_one_without_members() {
    use pb::table_action::Type::ActionProfileGroupId;
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    for i in [1, 2] {
        bench.insert(member(&bench, "selector", i, i * 10)).await.expect("fits");
    }
    let written = group(&bench, &[(1, 1, Some(4)), (2, 1, Some(5))], 8);
    bench.insert(written.clone()).await.expect("fits");
    let entry = entry_of(&bench, "selector_table", 1, ActionProfileGroupId(1));
    bench.insert(entry).await.expect("fits");
    let asked = || (0..4).map(|hash| bench.ask(10, hash, 1)).collect::<Vec<_>>();
    let full = asked();
    bench.switch.set_port(4, false);
    bench.switch.set_port(5, false);
    let excluded = asked();
    assert_eq!(bench.read(group(&bench, &[], 0)).await, [written.clone()]);
    bench.modify(group(&bench, &[], 8)).await.expect("may be empty");
    assert_eq!(excluded, asked());
    assert_ne!(excluded, full);
    bench.modify(written).await.expect("fits");
    bench.switch.set_port(4, true);
    assert_eq!(asked(), [Some(10); 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_members_are_counted_their_weights_have_a_limit_of_their_own() {
    let source = EVERYTHING.replace(
        "@max_group_size(8) action_selector",
        "@max_group_size(2) @selector_size_semantics(\"sum_of_members\") @max_member_weight(100) action_selector",
    );
    let bench = Bench::new(Some(compile(&source)), Default::default()).await;
    let _primary = bench.primary().await;
    for i in [1, 2, 3] {
        bench.insert(member(&bench, "selector", i, i * 10)).await.expect("fits");
    }
    let of = |members: &[(u32, i32, Option<u8>)]| group(&bench, members, 2);
    assert_eq!(bench.insert(of(&[(1, 101, None)])).await, Err(Code::InvalidArgument));
    let three = of(&[(1, 1, None), (2, 1, None), (3, 1, None)]);
    assert_eq!(bench.insert(three).await, Err(Code::ResourceExhausted));
    // Weights do not count: these are two.
    let two = of(&[(1, 100, None), (2, 50, None)]);
    bench.insert(two.clone()).await.expect("fits");
    assert_eq!(bench.read(group(&bench, &[], 0)).await, [two]);
}

fn one_shot(bench: &Bench, actions: &[(u32, i32)], mode: i32) -> pb::ActionProfileActionSet {
    let action = |&(value, weight): &(u32, i32)| pb::ActionProfileAction {
        action: Some(bench.answer(value)),
        weight,
        watch_kind: None,
    };
    pb::ActionProfileActionSet {
        action_profile_actions: actions.iter().map(action).collect(),
        action_selection_mode: mode,
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_shot_sets_come_back_as_they_were_and_do_not_mix_with_members() {
    use pb::table_action::Type::{ActionProfileActionSet as Set, ActionProfileMemberId};
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let entry = |set| entry_of(&bench, "selector_table", 1, Set(set));
    // The same action twice stays two actions; the selector's own mode may be named.
    let written = entry(one_shot(&bench, &[(5, 1), (6, 2), (5, 1)], 1));
    bench.insert(written.clone()).await.expect("fits");
    let chosen: Vec<_> = (0..4).map(|hash| bench.ask(10, hash, 1)).collect();
    assert_eq!(chosen, [Some(5), Some(6), Some(6), Some(5)]);
    let query = Entity::TableEntry(pb::TableEntry {
        table_id: bench.table("selector_table"),
        ..Default::default()
    });
    assert_eq!(bench.read(query).await, [written.clone()]);
    assert_eq!(
        bench.insert(member(&bench, "selector", 1, 1)).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.modify(entry(one_shot(&bench, &[(5, 0)], 0))).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.modify(entry(one_shot(&bench, &[(5, 9)], 0))).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.modify(entry(one_shot(&bench, &[(5, 1)], 2))).await,
        Err(Code::Unimplemented)
    );
    let with_group_action = pb::ActionProfileActionSet {
        group_action: Some(bench.answer(1)),
        ..one_shot(&bench, &[(5, 1)], 0)
    };
    assert_eq!(bench.modify(entry(with_group_action)).await, Err(Code::Unimplemented));
    bench.delete(written).await.expect("is there");
    bench.insert(member(&bench, "selector", 1, 1)).await.expect("fits");
    bench
        .insert(entry_of(&bench, "selector_table", 2, ActionProfileMemberId(1)))
        .await
        .expect("fits");
    assert_eq!(
        bench.insert(entry(one_shot(&bench, &[(5, 1)], 0))).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench
            .insert(entry_of(
                &bench,
                "profile_table",
                2,
                Set(one_shot(&bench, &[(1, 1)], 0))
            ))
            .await,
        Err(Code::InvalidArgument)
    );
}

fn index(index: i64) -> Option<pb::Index> {
    Some(pb::Index { index })
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_read_and_set_one_by_one_and_all_at_once() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let counter = |index, packets: Option<i64>| {
        Entity::CounterEntry(pb::CounterEntry {
            counter_id: bench.id("counts"),
            index,
            data: packets.map(|packet_count| pb::CounterData {
                packet_count,
                byte_count: packet_count * 10,
            }),
        })
    };
    bench.ask(20, 0, 3);
    bench.ask(20, 0, 3);
    assert_eq!(bench.read(counter(index(3), None)).await, [counter(index(3), Some(2))]);
    bench.modify(counter(index(4), Some(9))).await.expect("in range");
    bench.modify(counter(index(4), None)).await.expect("changes nothing");
    let all = bench.read(counter(None, None)).await;
    assert_eq!((all.len(), &all[4]), (8, &counter(index(4), Some(9))));
    bench.modify(counter(None, Some(1))).await.expect("sets all");
    let all = bench.read(Entity::CounterEntry(pb::CounterEntry::default())).await;
    assert!(all.len() == 8 && (0..8).all(|i| all[i as usize] == counter(index(i), Some(1))));
    assert_eq!(bench.modify(counter(index(8), Some(1))).await, Err(Code::OutOfRange));
    assert_eq!(
        bench.modify(counter(index(-1), Some(1))).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.insert(counter(index(1), Some(1))).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(bench.delete(counter(index(1), None)).await, Err(Code::InvalidArgument));
    assert_eq!(bench.read_error(counter(index(8), None)).await, Code::OutOfRange);
}

#[tokio::test(flavor = "multi_thread")]
async fn meters_color_packets_as_they_are_configured() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let meter = |index, config| {
        Entity::MeterEntry(pb::MeterEntry {
            meter_id: bench.id("meters"),
            index,
            config,
            counter_data: None,
        })
    };
    let rates = pb::MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 2,
        pburst: 2,
        eburst: 0,
    };
    let config = Some(rates);
    bench.modify(meter(index(2), config)).await.expect("in range");
    assert_eq!(
        [(); 4].map(|()| bench.ask(21, 0, 2)),
        [Some(0), Some(1), Some(2), Some(2)]
    );
    assert_eq!([(); 4].map(|()| bench.ask(21, 0, 3)), [Some(0); 4]);
    assert_eq!(bench.read(meter(index(2), None)).await, [meter(index(2), config)]);
    assert_eq!(bench.read(meter(None, None)).await.len(), 8);
    bench.modify(meter(index(2), None)).await.expect("green again");
    assert_eq!([(); 4].map(|()| bench.ask(21, 0, 2)), [Some(0); 4]);
    assert_eq!(bench.modify(meter(index(8), config)).await, Err(Code::OutOfRange));
    assert_eq!(bench.modify(meter(index(-2), config)).await, Err(Code::InvalidArgument));
    assert_eq!(bench.insert(meter(index(1), config)).await, Err(Code::InvalidArgument));
    let negative = Some(pb::MeterConfig { cir: -1, ..rates });
    assert_eq!(
        bench.modify(meter(index(1), negative)).await,
        Err(Code::InvalidArgument)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_are_read_and_written_whatever_their_type() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let register = |name, index, data: Option<Data>| {
        Entity::RegisterEntry(pb::RegisterEntry {
            register_id: bench.id(name),
            index,
            data: data.map(|data| pb::P4Data { data: Some(data) }),
        })
    };
    let word = |value: u32| Some(Data::Bitstring(shortest(value)));
    bench
        .modify(register("words", index(3), word(0x1234)))
        .await
        .expect("in range");
    // The program reads what was written, and writes what is read then.
    assert_eq!(bench.ask(22, 0, 3), Some(0x1234));
    assert_eq!(
        bench.read(register("words", index(3), None)).await,
        [register("words", index(3), word(0x1235))]
    );
    bench.modify(register("words", None, word(7))).await.expect("sets all");
    let all = bench.read(register("words", None, None)).await;
    assert!(all.len() == 8 && all[5] == register("words", index(5), word(7)));
    let members = vec![
        pb::P4Data {
            data: Some(Data::Bitstring(vec![0x0a, 0xbc])),
        },
        pb::P4Data {
            data: Some(Data::Bitstring(vec![0x9d])),
        },
    ];
    let cell = Some(Data::Struct(pb::P4StructLike { members }));
    bench
        .modify(register("cells", index(1), cell.clone()))
        .await
        .expect("in range");
    assert_eq!(bench.ask(23, 0, 1), Some(0xabc));
    assert_eq!(
        bench.read(register("cells", index(1), None)).await,
        [register("cells", index(1), cell.clone())]
    );
    for (name, place, data, code) in [
        ("words", index(8), word(1), Code::OutOfRange),
        ("words", index(-1), word(1), Code::InvalidArgument),
        ("words", index(0), Some(Data::Bitstring(vec![1; 5])), Code::OutOfRange),
        ("words", index(0), Some(Data::Bool(true)), Code::InvalidArgument),
        ("words", index(0), cell, Code::InvalidArgument),
        ("words", index(0), None, Code::InvalidArgument),
    ] {
        assert_eq!(
            bench.modify(register(name, place, data.clone())).await,
            Err(code),
            "{data:?}"
        );
    }
    assert_eq!(
        bench.insert(register("words", index(0), word(1))).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.read_error(register("words", index(8), None)).await,
        Code::OutOfRange
    );
    // A million cells come in chunks, and all of them.
    bench
        .modify(register("bits", index(0xfffff), word(1)))
        .await
        .expect("in range");
    let bits = bench.read(register("bits", None, None)).await;
    assert_eq!(bits.len(), 0x100000);
    assert_eq!(bits[0xfffff], register("bits", index(0xfffff), word(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_set_is_written_whole() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let set = |values: &[u8]| {
        let member = |v: &u8| pb::ValueSetMember {
            r#match: vec![exact(1, &[*v])],
        };
        Entity::ValueSetEntry(pb::ValueSetEntry {
            value_set_id: bench.id("specials"),
            members: values.iter().map(member).collect(),
        })
    };
    assert_eq!(bench.ask(0x70, 0, 0), None);
    bench.modify(set(&[0x70, 0x71])).await.expect("fits");
    assert_eq!([bench.ask(0x70, 0, 0), bench.ask(0x72, 0, 0)], [Some(0x5e), None]);
    assert_eq!(bench.read(set(&[])).await, [set(&[0x70, 0x71])]);
    assert_eq!(bench.modify(set(&[1, 2, 1])).await, Err(Code::AlreadyExists));
    assert_eq!(bench.modify(set(&[1, 2, 3, 4, 5])).await, Err(Code::ResourceExhausted));
    assert_eq!(bench.insert(set(&[1])).await, Err(Code::InvalidArgument));
    assert_eq!(bench.delete(set(&[1])).await, Err(Code::InvalidArgument));
    assert_eq!(
        bench.read(Entity::ValueSetEntry(pb::ValueSetEntry::default())).await,
        [set(&[0x70, 0x71])]
    );
    bench.modify(set(&[])).await.expect("is emptied");
    assert_eq!(bench.ask(0x70, 0, 0), None);
}

fn replica(port: u8, instance: u32, backups: &[(u8, u32)]) -> pb::Replica {
    let backup = |&(port, instance): &(u8, u32)| pb::BackupReplica {
        port: vec![port],
        instance,
    };
    pb::Replica {
        port_kind: Some(pb::replica::PortKind::Port(vec![port])),
        instance,
        backup_replicas: backups.iter().map(backup).collect(),
    }
}

fn replication(ty: pb::packet_replication_engine_entry::Type) -> Entity {
    Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry { r#type: Some(ty) })
}

fn mcast(id: u32, replicas: Vec<pb::Replica>) -> Entity {
    replication(pb::packet_replication_engine_entry::Type::MulticastGroupEntry(
        pb::MulticastGroupEntry {
            multicast_group_id: id,
            replicas,
            metadata: b"note".to_vec(),
        },
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn multicast_groups_copy_packets_and_fall_back_to_backups() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let written = mcast(5, vec![replica(2, 20, &[]), replica(3, 30, &[(4, 40)])]);
    bench.insert(written.clone()).await.expect("fits");
    let copies = |bench: &Bench| {
        let out = bench.switch.send(1, &question(30, 0, 5));
        let mut copies: Vec<_> = out.iter().map(|o| (o.port, o.bytes[9])).collect();
        copies.sort_unstable();
        copies
    };
    assert_eq!(copies(&bench), [(2, 20), (3, 30)]);
    bench.switch.set_port(3, false);
    assert_eq!(copies(&bench), [(2, 20), (4, 40)]);
    bench.switch.set_port(3, true);
    assert_eq!(copies(&bench), [(2, 20), (3, 30)]);
    assert_eq!(bench.read(mcast(0, vec![])).await, [written.clone()]);
    assert_eq!(bench.read(mcast(5, vec![])).await, [written.clone()]);
    assert_eq!(bench.insert(written.clone()).await, Err(Code::AlreadyExists));
    assert_eq!(bench.modify(mcast(6, vec![])).await, Err(Code::NotFound));
    for wrong in [
        mcast(0, vec![]),
        mcast(7, vec![replica(2, 1, &[]), replica(2, 1, &[])]),
        mcast(7, vec![replica(2, 1, &[(2, 2)])]),
        mcast(7, vec![replica(2, 0x1_0000, &[])]),
        mcast(7, vec![pb::Replica::default()]),
    ] {
        assert_eq!(bench.insert(wrong).await, Err(Code::InvalidArgument));
    }
    bench
        .modify(mcast(5, vec![replica(9, 9, &[])]))
        .await
        .expect("is there");
    assert_eq!(copies(&bench), [(9, 9)]);
    bench.delete(mcast(5, vec![])).await.expect("is there");
    assert_eq!(copies(&bench), []);
    assert_eq!(bench.delete(written).await, Err(Code::NotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn clone_sessions_copy_packets_and_cut_them() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let session = |session_id, replicas, packet_length_bytes, class_of_service| {
        replication(pb::packet_replication_engine_entry::Type::CloneSessionEntry(
            pb::CloneSessionEntry {
                session_id,
                replicas,
                class_of_service,
                packet_length_bytes,
            },
        ))
    };
    let written = session(100, vec![replica(6, 1, &[]), replica(7, 2, &[])], 12, 2);
    bench.insert(written.clone()).await.expect("fits");
    let mut packet = question(31, 0, 100);
    packet.extend_from_slice(&[0xee; 10]);
    let clones = bench.switch.send(1, &packet);
    assert_eq!(
        clones.iter().map(|c| (c.port, c.bytes.len())).collect::<Vec<_>>(),
        [(6, 12), (7, 12)]
    );
    assert_eq!(bench.read(session(0, vec![], 0, 0)).await, [written.clone()]);
    assert_eq!(bench.insert(written.clone()).await, Err(Code::AlreadyExists));
    assert_eq!(bench.modify(session(101, vec![], 0, 0)).await, Err(Code::NotFound));
    assert_eq!(bench.insert(session(0, vec![], 0, 0)).await, Err(Code::InvalidArgument));
    assert_eq!(
        bench.insert(session(9, vec![], 0, 99)).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.insert(session(9, vec![replica(1, 1, &[(2, 2)])], 0, 0)).await,
        Err(Code::Unimplemented)
    );
    // All of the replication engine.
    let everything = Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry::default());
    assert_eq!(bench.read(everything).await, [written.clone()]);
    bench.delete(written).await.expect("is there");
    assert!(bench.switch.send(1, &packet).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn externs_without_entities_of_their_own_are_not_there() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let entry = |extern_type_id| {
        Entity::ExternEntry(pb::ExternEntry {
            extern_type_id,
            ..Default::default()
        })
    };
    assert_eq!(bench.insert(entry(0x8100_0000)).await, Err(Code::InvalidArgument));
    assert_eq!(bench.read_error(entry(0x8100_0000)).await, Code::InvalidArgument);
    assert!(bench.read(entry(0)).await.is_empty());
}

/// A client reads back the form in which it wrote a port, old or new: one that knows only the old
/// form sees no port 0.
#[tokio::test(flavor = "multi_thread")]
async fn ports_come_back_in_the_form_in_which_they_were_written() {
    use pb::action_profile_group::member::WatchKind as GroupWatch;
    use pb::packet_replication_engine_entry::Type::CloneSessionEntry;
    use pb::replica::PortKind;
    use pb::table_action::Type::ActionProfileActionSet as Set;
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let numbered = |port, instance| pb::Replica {
        port_kind: Some(PortKind::EgressPort(port)),
        ..replica(0, instance, &[])
    };
    let both = vec![numbered(2, 20), replica(3, 30, &[(4, 40)])];
    let written = mcast(5, both.clone());
    bench.insert(written.clone()).await.expect("fits");
    assert_eq!(bench.read(mcast(5, vec![])).await, [written]);
    let twice = mcast(6, vec![numbered(2, 20), replica(2, 20, &[])]);
    assert_eq!(
        bench.insert(twice).await,
        Err(Code::InvalidArgument),
        "one port in two forms"
    );
    let session = |replicas| {
        replication(CloneSessionEntry(pb::CloneSessionEntry {
            session_id: 7,
            replicas,
            ..Default::default()
        }))
    };
    let written = session(vec![numbered(2, 1), replica(3, 2, &[])]);
    bench.insert(written.clone()).await.expect("fits");
    assert_eq!(bench.read(session(vec![])).await, [written]);

    for i in [1, 2] {
        bench.insert(member(&bench, "selector", i, i * 10)).await.expect("fits");
    }
    let Entity::ActionProfileGroup(mut of) = group(&bench, &[(1, 1, Some(9)), (2, 1, None)], 8) else {
        unreachable!("it is a group");
    };
    of.members[1].watch_kind = Some(GroupWatch::Watch(8));
    let written = Entity::ActionProfileGroup(of);
    bench.insert(written.clone()).await.expect("fits");
    assert_eq!(bench.read(group(&bench, &[], 0)).await, [written.clone()]);
    bench.delete(written).await.expect("is gone");
    // Sets and members do not mix.
    for i in [1, 2] {
        bench
            .delete(member(&bench, "selector", i, i * 10))
            .await
            .expect("is gone");
    }

    let mut set = one_shot(&bench, &[(5, 1), (6, 1)], 0);
    set.action_profile_actions[0].watch_kind = Some(pb::action_profile_action::WatchKind::Watch(8));
    set.action_profile_actions[1].watch_kind = Some(pb::action_profile_action::WatchKind::WatchPort(vec![9]));
    let written = entry_of(&bench, "selector_table", 1, Set(set));
    bench.insert(written.clone()).await.expect("fits");
    let all = Entity::TableEntry(pb::TableEntry {
        table_id: bench.table("selector_table"),
        ..Default::default()
    });
    assert_eq!(bench.read(all).await, [written]);
}
