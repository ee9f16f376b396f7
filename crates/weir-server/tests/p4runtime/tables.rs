//! Table entries (section "TableEntry").

use crate::common::*;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity::{self, TableEntry};
use weir_proto::p4::v1::update::Type;

fn all_of(table_id: u32) -> pb::TableEntry {
    pb::TableEntry {
        table_id,
        ..pb::TableEntry::default()
    }
}

fn with_priority(entry: pb::TableEntry, priority: i32) -> pb::TableEntry {
    pb::TableEntry { priority, ..entry }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exact_entry_is_met_by_packets_and_read_back_as_it_was_written() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let entry = bench.entry("exact_table", vec![exact(1, &[0x12, 0x34])], 77);
    assert_eq!(bench.ask(1, 0, 0x1234), None);
    bench.insert(TableEntry(entry.clone())).await.expect("fits");
    assert_eq!(bench.ask(1, 0, 0x1234), Some(77));
    let all = all_of(entry.table_id);
    assert_eq!(bench.read(TableEntry(all.clone())).await, [TableEntry(entry.clone())]);
    assert_eq!(bench.insert(TableEntry(entry.clone())).await, Err(Code::AlreadyExists));
    // Any length of a number is taken.
    let other = bench.entry("exact_table", vec![exact(1, &[0, 0, 0x12, 0x34])], 78);
    bench.modify(TableEntry(other)).await.expect("is there");
    assert_eq!(bench.ask(1, 0, 0x1234), Some(78));
    // Only the key counts when an entry is deleted.
    let bare = pb::TableEntry {
        action: Some(pb::TableAction::default()),
        idle_timeout_ns: 5,
        ..entry.clone()
    };
    bench.delete(TableEntry(bare)).await.expect("is there");
    assert_eq!(bench.ask(1, 0, 0x1234), None);
    assert_eq!(bench.delete(TableEntry(entry.clone())).await, Err(Code::NotFound));
    assert_eq!(bench.modify(TableEntry(entry)).await, Err(Code::NotFound));
    assert!(bench.read(TableEntry(all)).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_every_match_kind_are_met_and_read_back() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let metered = |entry: pb::TableEntry| {
        let mut entry = entry;
        if let Some(pb::table_action::Type::Action(a)) = entry.action.as_mut().and_then(|a| a.r#type.as_mut()) {
            a.action_id = bench.action("metered");
        }
        entry
    };
    let ternary_key = vec![ternary(1, &[0x10], &[0xf0]), exact(2, &[9])];
    let entries = [
        metered(bench.entry("lpm_table", vec![lpm(1, &[0x0a, 0, 0, 0], 8)], 1)),
        metered(bench.entry("lpm_table", vec![], 2)),
        with_priority(bench.entry("ternary_table", ternary_key.clone(), 3), 10),
        with_priority(bench.entry("ternary_table", vec![exact(2, &[9])], 4), 5),
        with_priority(bench.entry("range_table", vec![range(1, &[5], &[9])], 5), 1),
        with_priority(bench.entry("optional_table", vec![optional(1, &[7])], 6), 2),
        with_priority(bench.entry("optional_table", vec![], 7), 1),
    ];
    for entry in &entries {
        bench.insert(TableEntry(entry.clone())).await.expect("fits");
    }
    assert_eq!([bench.ask(2, 0, 0x0a01_0203), bench.ask(2, 0, 1)], [Some(1), Some(2)]);
    // The larger priority wins.
    assert_eq!(
        [bench.ask(3, 9, 0x15), bench.ask(3, 9, 0x25), bench.ask(3, 8, 0x15)],
        [Some(3), Some(4), None]
    );
    assert_eq!(
        [bench.ask(4, 0, 5), bench.ask(4, 0, 9), bench.ask(4, 0, 10)],
        [Some(5), Some(5), None]
    );
    assert_eq!([bench.ask(5, 0, 7), bench.ask(5, 0, 8)], [Some(6), Some(7)]);
    for table in ["lpm_table", "ternary_table", "range_table", "optional_table"] {
        let id = bench.table(table);
        let written: Vec<Entity> = entries
            .iter()
            .filter(|e| e.table_id == id)
            .cloned()
            .map(TableEntry)
            .collect();
        assert_eq!(bench.read(TableEntry(all_of(id))).await, written);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn matches_that_are_not_canonical_are_refused() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let refused = [
        ("lpm_table", vec![lpm(1, &[0x0a, 0, 0, 1], 8)], 0, Code::InvalidArgument),
        ("lpm_table", vec![lpm(1, &[0], 0)], 0, Code::InvalidArgument),
        ("lpm_table", vec![lpm(1, &[1], 33)], 0, Code::InvalidArgument),
        ("lpm_table", vec![exact(1, &[1])], 0, Code::InvalidArgument),
        (
            "ternary_table",
            vec![ternary(1, &[1], &[2]), exact(2, &[1])],
            1,
            Code::InvalidArgument,
        ),
        (
            "ternary_table",
            vec![ternary(1, &[0], &[0]), exact(2, &[1])],
            1,
            Code::InvalidArgument,
        ),
        ("ternary_table", vec![ternary(1, &[1], &[1])], 1, Code::InvalidArgument),
        ("range_table", vec![range(1, &[2], &[1])], 1, Code::InvalidArgument),
        (
            "range_table",
            vec![range(1, &[0], &[0xff, 0xff, 0xff, 0xff])],
            1,
            Code::InvalidArgument,
        ),
        ("exact_table", vec![], 0, Code::InvalidArgument),
        ("exact_table", vec![exact(9, &[1])], 0, Code::InvalidArgument),
        (
            "exact_table",
            vec![exact(1, &[1]), exact(1, &[1])],
            0,
            Code::InvalidArgument,
        ),
        ("exact_table", vec![exact(1, &[])], 0, Code::OutOfRange),
        ("exact_table", vec![exact(1, &[1, 0, 0, 0, 0])], 0, Code::OutOfRange),
        // Priorities: one where there is something to decide, none elsewhere.
        ("exact_table", vec![exact(1, &[1])], 1, Code::InvalidArgument),
        ("range_table", vec![range(1, &[1], &[2])], 0, Code::InvalidArgument),
        ("range_table", vec![range(1, &[1], &[2])], -1, Code::InvalidArgument),
    ];
    for (table, matches, priority, code) in refused {
        let entry = with_priority(bench.entry(table, matches.clone(), 1), priority);
        assert_eq!(
            bench.insert(TableEntry(entry)).await,
            Err(code),
            "{table} {matches:?} {priority}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_must_be_the_tables_and_have_their_parameters() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let good = bench.entry("exact_table", vec![exact(1, &[1])], 1);
    let with = |action: pb::Action| pb::TableEntry {
        action: Some(pb::TableAction {
            r#type: Some(pb::table_action::Type::Action(action)),
        }),
        ..good.clone()
    };
    let answer = bench.answer(1);
    let no_params = pb::Action {
        params: vec![],
        ..answer.clone()
    };
    let twice = pb::Action {
        params: [answer.params.clone(), answer.params.clone()].concat(),
        ..answer.clone()
    };
    let mut extra = answer.clone();
    extra.params.push(pb::action::Param {
        param_id: 9,
        value: vec![1],
    });
    let mut wide = answer.clone();
    wide.params[0].value = vec![1; 5];
    let only_default = pb::Action {
        action_id: bench.action("only_default"),
        params: vec![],
    };
    let foreign = pb::Action {
        action_id: bench.action("metered"),
        ..answer.clone()
    };
    for (action, code) in [
        (no_params, Code::InvalidArgument),
        (twice, Code::InvalidArgument),
        (extra, Code::InvalidArgument),
        (wide, Code::OutOfRange),
        (foreign, Code::InvalidArgument),
        (only_default, Code::PermissionDenied),
    ] {
        assert_eq!(
            bench.insert(TableEntry(with(action.clone()))).await,
            Err(code),
            "{action:?}"
        );
    }
    let member = pb::TableEntry {
        action: Some(pb::TableAction {
            r#type: Some(pb::table_action::Type::ActionProfileMemberId(1)),
        }),
        ..good.clone()
    };
    assert_eq!(bench.insert(TableEntry(member)).await, Err(Code::InvalidArgument));
    let none = pb::TableEntry {
        action: None,
        ..good.clone()
    };
    assert_eq!(bench.insert(TableEntry(none.clone())).await, Err(Code::InvalidArgument));
    // Without an action, an entry that is modified keeps the one it has.
    bench.insert(TableEntry(good)).await.expect("fits");
    bench.modify(TableEntry(none)).await.expect("nothing changes");
    assert_eq!(bench.ask(1, 0, 1), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn default_entries_are_modified_and_reset_and_nothing_else() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let set = pb::TableEntry {
        is_default_action: true,
        metadata: b"mine".to_vec(),
        controller_metadata: 7,
        ..bench.entry("exact_table", vec![], 0xdef)
    };
    assert_eq!(bench.insert(TableEntry(set.clone())).await, Err(Code::InvalidArgument));
    assert_eq!(bench.delete(TableEntry(set.clone())).await, Err(Code::InvalidArgument));
    bench.modify(TableEntry(set.clone())).await.expect("may be changed");
    assert_eq!(bench.ask(1, 0, 99), Some(0xdef));
    let query = pb::TableEntry {
        is_default_action: true,
        ..all_of(set.table_id)
    };
    assert_eq!(bench.read(TableEntry(query.clone())).await, [TableEntry(set.clone())]);
    // Without is_default_action a query shows all others.
    assert!(bench.read(TableEntry(all_of(set.table_id))).await.is_empty());
    let with_match = pb::TableEntry {
        r#match: vec![exact(1, &[1])],
        ..set.clone()
    };
    assert_eq!(bench.modify(TableEntry(with_match)).await, Err(Code::InvalidArgument));
    let idle = pb::TableEntry {
        idle_timeout_ns: 1,
        ..set
    };
    assert_eq!(bench.modify(TableEntry(idle)).await, Err(Code::InvalidArgument));
    bench.modify(TableEntry(query.clone())).await.expect("is reset");
    assert_eq!(bench.ask(1, 0, 99), None);
    let reset = bench.read(TableEntry(query)).await;
    assert!(matches!(&reset[0], TableEntry(e) if e.metadata.is_empty() && e.controller_metadata == 0));
    let constant = pb::TableEntry {
        is_default_action: true,
        ..bench.entry("ternary_table", vec![], 1)
    };
    assert_eq!(bench.modify(TableEntry(constant)).await, Err(Code::PermissionDenied));
    // A table without keys has nothing but a default entry.
    let keyless = bench.entry("keyless_table", vec![], 5);
    assert_eq!(
        bench.insert(TableEntry(keyless.clone())).await,
        Err(Code::InvalidArgument)
    );
    let default = pb::TableEntry {
        is_default_action: true,
        ..keyless
    };
    bench.modify(TableEntry(default)).await.expect("may be changed");
    assert_eq!(bench.ask(11, 0, 0), Some(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn const_tables_and_entries_stay_as_they_are() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let constant = bench.entry("const_table", vec![exact(1, &[1])], 9);
    for ty in [Type::Insert, Type::Modify, Type::Delete] {
        assert_eq!(
            bench.one(ty, TableEntry(constant.clone())).await,
            Err(Code::PermissionDenied)
        );
    }
    let found = bench.read(TableEntry(all_of(constant.table_id))).await;
    let is_const = |e: &Entity| matches!(e, TableEntry(e) if e.is_const && e.action.is_some());
    assert!(found.len() == 2 && found.iter().all(is_const));
    let first = bench.entry("initial_table", vec![exact(1, &[1])], 9);
    assert_eq!(
        bench.modify(TableEntry(first.clone())).await,
        Err(Code::PermissionDenied)
    );
    assert_eq!(
        bench.delete(TableEntry(first.clone())).await,
        Err(Code::PermissionDenied)
    );
    let second = bench.entry("initial_table", vec![exact(1, &[2])], 9);
    bench.modify(TableEntry(second.clone())).await.expect("is not const");
    assert_eq!([bench.ask(8, 0, 1), bench.ask(8, 0, 2)], [Some(0x31), Some(9)]);
    bench.delete(TableEntry(second)).await.expect("is not const");
    let third = bench.entry("initial_table", vec![exact(1, &[3])], 3);
    bench.insert(TableEntry(third.clone())).await.expect("there is room");
    let said = pb::TableEntry {
        is_const: true,
        ..third
    };
    assert_eq!(bench.modify(TableEntry(said)).await, Err(Code::InvalidArgument));
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_resources_of_const_entries_are_modified_but_not_their_actions() {
    let source = EVERYTHING
        .replace(
            "const entries = { 1 : answer",
            "counters = of_const;\n        const entries = { 1 : answer",
        )
        .replace("entries = { const 1", "counters = of_initial;\n        entries = { const 1")
        .replace(
            "table const_table {",
            "direct_counter(CounterType.packets) of_const;\n    direct_counter(CounterType.packets) of_initial;\n    table const_table {",
        );
    let bench = Bench::new(Some(compile(&source)), Default::default()).await;
    let _primary = bench.primary().await;
    for (table, kind, told) in [("const_table", 7, 0x11), ("initial_table", 8, 0x31)] {
        let counted = |packet_count| {
            Some(pb::CounterData {
                byte_count: 0,
                packet_count,
            })
        };
        let with_action = pb::TableEntry {
            counter_data: counted(40),
            ..bench.entry(table, vec![exact(1, &[1])], 9)
        };
        let without = pb::TableEntry {
            action: None,
            ..with_action.clone()
        };
        assert_eq!(bench.modify(TableEntry(with_action)).await, Err(Code::PermissionDenied));
        bench.modify(TableEntry(without.clone())).await.expect("is no action");
        assert_eq!(bench.ask(kind, 0, 1), Some(told));
        let count = async || {
            let query = pb::DirectCounterEntry {
                table_entry: Some(without.clone()),
                data: None,
            };
            match &bench.read(Entity::DirectCounterEntry(query)).await[..] {
                [Entity::DirectCounterEntry(e)] => e.data.expect("has a value").packet_count,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(count().await, 41);
        let direct = Entity::DirectCounterEntry(pb::DirectCounterEntry {
            table_entry: Some(without.clone()),
            data: counted(7),
        });
        bench.modify(direct).await.expect("is a direct resource");
        assert_eq!(count().await, 7);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_keep_what_their_controller_gives_them() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let entry = pb::TableEntry {
        metadata: vec![0, 1, 2],
        controller_metadata: 42,
        ..bench.entry("exact_table", vec![exact(1, &[1])], 1)
    };
    bench.insert(TableEntry(entry.clone())).await.expect("fits");
    let other = bench.entry("exact_table", vec![exact(1, &[2])], 1);
    bench.insert(TableEntry(other)).await.expect("fits");
    let by_metadata = pb::TableEntry {
        metadata: vec![0, 1, 2],
        ..all_of(entry.table_id)
    };
    assert_eq!(bench.read(TableEntry(by_metadata)).await, [TableEntry(entry.clone())]);
    let by_number = pb::TableEntry {
        controller_metadata: 42,
        ..all_of(entry.table_id)
    };
    assert_eq!(bench.read(TableEntry(by_number)).await, [TableEntry(entry)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_filter_by_match_priority_and_action() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let one = with_priority(bench.entry("range_table", vec![range(1, &[1], &[2])], 1), 5);
    let two = with_priority(bench.entry("range_table", vec![range(1, &[1], &[2])], 2), 6);
    let mut drop = with_priority(bench.entry("range_table", vec![range(1, &[3], &[4])], 2), 5);
    drop.action = Some(pb::TableAction {
        r#type: Some(pb::table_action::Type::Action(pb::Action {
            action_id: bench.action("miss"),
            params: vec![],
        })),
    });
    for entry in [&one, &two, &drop] {
        bench.insert(TableEntry(entry.clone())).await.expect("fits");
    }
    let table = all_of(one.table_id);
    let by_match = pb::TableEntry {
        r#match: one.r#match.clone(),
        ..table.clone()
    };
    assert_eq!(bench.read(TableEntry(by_match.clone())).await.len(), 2);
    let by_key = with_priority(by_match, 6);
    assert_eq!(bench.read(TableEntry(by_key)).await, [TableEntry(two)]);
    assert_eq!(bench.read(TableEntry(with_priority(table.clone(), 5))).await.len(), 2);
    let by_action = pb::TableEntry {
        action: drop.action.clone(),
        ..table
    };
    assert_eq!(bench.read(TableEntry(by_action)).await, [TableEntry(drop)]);
    // All tables, const ones included; then there are no other filters.
    let everything = bench.read(TableEntry(all_of(0))).await;
    assert_eq!(everything.len(), 3 + 2 + 2);
    assert_eq!(
        bench.read_error(TableEntry(with_priority(all_of(0), 5))).await,
        Code::InvalidArgument
    );
    assert_eq!(
        bench.read_error(TableEntry(all_of(0x0200_0001))).await,
        Code::InvalidArgument
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_table_is_resource_exhausted() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let updates: Vec<_> = (0..257u32)
        .map(|i| {
            update(
                Type::Insert,
                TableEntry(bench.entry("exact_table", vec![exact(1, &shortest(i))], i)),
            )
        })
        .collect();
    let status = bench.write(updates).await.expect_err("there is room for 256");
    let codes = codes(&status);
    assert!(codes[..256].iter().all(|c| *c == Code::Ok));
    assert_eq!(codes[256], Code::ResourceExhausted);
}

#[tokio::test(flavor = "multi_thread")]
async fn translated_types_are_strings_or_numbers_of_another_width() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let number = bench.entry("name_table", vec![exact(1, b"17")], 17);
    let named = bench.entry("name_table", vec![exact(1, b"eth0")], 18);
    for entry in [&number, &named] {
        bench.insert(TableEntry(entry.clone())).await.expect("fits");
    }
    let found = bench.read(TableEntry(all_of(number.table_id))).await;
    assert_eq!(found, [TableEntry(number), TableEntry(named)]);
    assert_eq!([bench.ask(12, 0, 17), bench.ask(12, 0, 0xffff)], [Some(17), Some(18)]);
    let too_large = bench.entry("name_table", vec![exact(1, b"65536")], 1);
    assert_eq!(bench.insert(TableEntry(too_large)).await, Err(Code::OutOfRange));
    // 32 bits for the controller, 16 in the switch.
    let wide = bench.entry("wide_table", vec![exact(1, &[0, 0, 0x12, 0x34])], 19);
    bench.insert(TableEntry(wide)).await.expect("fits");
    assert_eq!(bench.ask(13, 0, 0x1234), Some(19));
    let too_wide = bench.entry("wide_table", vec![exact(1, &[1, 0, 0])], 1);
    assert_eq!(bench.insert(TableEntry(too_wide)).await, Err(Code::OutOfRange));
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_counters_and_meters_come_and_go_with_their_entries() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let data = |packets, bytes| {
        Some(pb::CounterData {
            packet_count: packets,
            byte_count: bytes,
        })
    };
    let entry = pb::TableEntry {
        counter_data: data(10, 100),
        ..bench.entry("exact_table", vec![exact(1, &[1])], 1)
    };
    bench.insert(TableEntry(entry.clone())).await.expect("fits");
    bench.ask(1, 0, 1);
    let query = pb::TableEntry {
        counter_data: data(0, 0),
        ..all_of(entry.table_id)
    };
    let count = |found: &[Entity]| match &found[0] {
        TableEntry(e) => e.counter_data,
        Entity::DirectCounterEntry(e) => e.data,
        other => panic!("{other:?}"),
    };
    assert_eq!(count(&bench.read(TableEntry(query)).await), data(11, 110));
    // Fields that a query does not select are not in the answer.
    assert_eq!(count(&bench.read(TableEntry(all_of(entry.table_id))).await), None);
    let key = pb::TableEntry {
        r#match: entry.r#match.clone(),
        ..all_of(entry.table_id)
    };
    let counter = |data| {
        Entity::DirectCounterEntry(pb::DirectCounterEntry {
            table_entry: Some(key.clone()),
            data,
        })
    };
    bench.modify(counter(data(1, 2))).await.expect("is there");
    bench.modify(counter(None)).await.expect("changes nothing");
    assert_eq!(bench.insert(counter(data(1, 2))).await, Err(Code::InvalidArgument));
    assert_eq!(count(&bench.read(counter(None)).await), data(1, 2));
    // Unset counter_data leaves the counter alone.
    let other = bench.entry("exact_table", vec![exact(1, &[1])], 2);
    bench.modify(TableEntry(other)).await.expect("is there");
    assert_eq!(count(&bench.read(counter(None)).await), data(1, 2));
    bench.delete(TableEntry(entry.clone())).await.expect("is there");
    assert_eq!(bench.read_error(counter(None)).await, Code::NotFound);
    assert_eq!(bench.modify(counter(data(1, 1))).await, Err(Code::NotFound));
    let plain = pb::TableEntry {
        counter_data: None,
        ..entry
    };
    bench.insert(TableEntry(plain)).await.expect("fits");
    assert_eq!(count(&bench.read(counter(None)).await), data(0, 0));
    // All direct counters of all tables.
    let all = Entity::DirectCounterEntry(pb::DirectCounterEntry::default());
    assert_eq!(bench.read(all).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_meter_is_what_its_entry_says_and_green_without() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let config = pb::MeterConfig {
        cir: 10,
        cburst: 20,
        pir: 30,
        pburst: 40,
        eburst: 0,
    };
    let mut entry = bench.entry("lpm_table", vec![lpm(1, &[1, 0, 0, 0], 8)], 1);
    entry.action = Some(pb::TableAction {
        r#type: Some(pb::table_action::Type::Action(pb::Action {
            action_id: bench.action("metered"),
            ..bench.answer(1)
        })),
    });
    let with = pb::TableEntry {
        meter_config: Some(config),
        ..entry.clone()
    };
    bench.insert(TableEntry(with.clone())).await.expect("fits");
    let query = pb::TableEntry {
        meter_config: Some(pb::MeterConfig::default()),
        ..all_of(entry.table_id)
    };
    assert_eq!(bench.read(TableEntry(query.clone())).await, [TableEntry(with)]);
    bench.modify(TableEntry(entry.clone())).await.expect("is there");
    assert_eq!(bench.read(TableEntry(query)).await, [TableEntry(entry.clone())]);
    let meter = |config| {
        Entity::DirectMeterEntry(pb::DirectMeterEntry {
            table_entry: Some(pb::TableEntry {
                action: None,
                ..entry.clone()
            }),
            config,
            counter_data: None,
        })
    };
    bench.modify(meter(Some(config))).await.expect("is there");
    assert_eq!(bench.read(meter(None)).await, [meter(Some(config))]);
    let excess = pb::MeterConfig { eburst: 1, ..config };
    assert_eq!(bench.modify(meter(Some(excess))).await, Err(Code::InvalidArgument));
    let counted = pb::TableEntry {
        meter_counter_data: Some(pb::MeterCounterData::default()),
        ..entry
    };
    assert_eq!(bench.modify(TableEntry(counted)).await, Err(Code::Unimplemented));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_entry_is_reported_to_the_primary_once_per_idle_period() {
    let bench = Bench::everything().await;
    let mut primary = bench.primary().await;
    let entry = pb::TableEntry {
        idle_timeout_ns: 1_000_000,
        metadata: b"m".to_vec(),
        ..bench.entry("idle_table", vec![exact(1, &[1])], 1)
    };
    bench.insert(TableEntry(entry.clone())).await.expect("fits");
    assert!(primary.is_silent().await);
    bench.switch.clock().advance(999_999);
    assert!(primary.is_silent().await);
    bench.switch.clock().advance(1);
    let told = |update| match update {
        pb::stream_message_response::Update::IdleTimeoutNotification(n) => n,
        other => panic!("{other:?}"),
    };
    let notification = told(primary.next().await.expect("a notification"));
    let expected = pb::TableEntry {
        action: None,
        ..entry.clone()
    };
    assert_eq!(notification.table_entry, [expected]);
    assert!(notification.timestamp > 0);
    assert!(primary.is_silent().await);
    // It stays idle: there is nothing new to report.
    bench.switch.clock().advance(1_000_000);
    assert!(primary.is_silent().await);
    // A hit starts the time anew.
    bench.ask(6, 0, 1);
    bench.switch.clock().advance(999_999);
    assert!(primary.is_silent().await);
    bench.switch.clock().advance(1);
    told(primary.next().await.expect("a notification"));
    bench.ask(6, 0, 1);
    bench.switch.clock().advance(500_000);
    assert!(primary.is_silent().await);
    let query = pb::TableEntry {
        time_since_last_hit: Some(pb::table_entry::IdleTimeout::default()),
        ..all_of(entry.table_id)
    };
    let found = bench.read(TableEntry(query)).await;
    let elapsed = pb::table_entry::IdleTimeout { elapsed_ns: 500_000 };
    assert!(matches!(&found[0], TableEntry(e) if e.time_since_last_hit == Some(elapsed)));
    let elsewhere = pb::TableEntry {
        idle_timeout_ns: 1,
        ..bench.entry("exact_table", vec![exact(1, &[1])], 1)
    };
    assert_eq!(bench.insert(TableEntry(elsewhere)).await, Err(Code::InvalidArgument));
}
