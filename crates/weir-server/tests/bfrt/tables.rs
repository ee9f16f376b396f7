//! Tests of match-action tables: keys, data, default entries, reads, handles.

use crate::common::{Bench, exact, lpm, number, range, stream, target, ternary, value, with_data};
use tonic::Code;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;

const EXACT: &str = "In.exact_keys";

#[tokio::test]
async fn inserting_an_existing_entry_is_already_exists_and_changing_a_missing_one_is_not_found() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 10)).await, Ok(()));
    assert_eq!(bench.insert(bench.entry(1, 11)).await, Err(Code::AlreadyExists));
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(10));
    assert_eq!(bench.modify(bench.entry(1, 12)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(12));
    assert_eq!(bench.modify(bench.entry(2, 12)).await, Err(Code::NotFound));
    assert_eq!(bench.delete(bench.exact(EXACT, 2)).await, Err(Code::NotFound));
    assert_eq!(bench.read(bench.exact(EXACT, 2)).await, Err(Code::NotFound));
    assert_eq!(bench.delete(bench.exact(EXACT, 1)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(0));
}

#[tokio::test]
async fn a_full_table_is_resource_exhausted() {
    let bench = Bench::new().await;
    let entry = |key| bench.answer("In.scoped_keys", key, "In.answer", 1);
    for key in 0..4 {
        assert_eq!(bench.insert(entry(key)).await, Ok(()));
    }
    assert_eq!(bench.insert(entry(4)).await, Err(Code::ResourceExhausted));
}

#[tokio::test]
async fn keys_of_every_kind_match_as_they_say() {
    let bench = Bench::new().await;
    let prefix = |length| {
        let key = vec![lpm(bench.key_id("In.lpm_keys", "key"), &[10, 1, 0, 0], length)];
        let entry = bench.keyed("In.lpm_keys", key);
        with_data(
            entry,
            bench.action("In.lpm_keys", "answer_lpm"),
            vec![stream(1, &[0, 0, 0, length as u8])],
        )
    };
    assert_eq!(bench.insert(prefix(8)).await, Ok(()));
    assert_eq!(bench.insert(prefix(16)).await, Ok(()));
    assert_eq!(bench.insert(prefix(33)).await, Err(Code::InvalidArgument));
    assert_eq!(
        (
            bench.answer_to_packet(2, 0, 0x0a01_0001),
            bench.answer_to_packet(2, 0, 0x0a02_0001)
        ),
        (Some(16), Some(8))
    );
    let id = bench.key_id("In.range_keys", "key[15:0]");
    let between = |low: u16, high: u16| {
        let port = exact(bench.key_id("In.range_keys", "port"), &[3]);
        let key = vec![port, range(id, &low.to_be_bytes(), &high.to_be_bytes())];
        let entry = bench.keyed("In.range_keys", key);
        with_data(
            entry,
            bench.action("In.range_keys", "In.answer"),
            vec![stream(1, &[0, 0, 0, 5])],
        )
    };
    assert_eq!(bench.insert(between(10, 20)).await, Ok(()));
    assert_eq!(bench.insert(between(20, 10)).await, Err(Code::InvalidArgument));
    assert_eq!(
        (
            bench.answer_to_packet(4, 3, 10),
            bench.answer_to_packet(4, 3, 20),
            bench.answer_to_packet(4, 3, 21)
        ),
        (Some(5), Some(5), Some(9))
    );
    let wrong = bench.keyed("In.range_keys", vec![exact(id, &[0, 1])]);
    assert_eq!(bench.read(wrong).await, Err(Code::InvalidArgument));
}

fn masked(bench: &Bench, mask: [u8; 4], priority: u32, value: u8) -> pb::TableEntry {
    let table = "In.ternary_keys";
    let key = vec![
        ternary(bench.key_id(table, "key"), &[10, 1, 0, 0], &mask),
        exact(bench.key_id(table, "$MATCH_PRIORITY"), &priority.to_be_bytes()),
    ];
    let entry = bench.keyed(table, key);
    with_data(
        entry,
        bench.action(table, "answer_metered"),
        vec![stream(1, &[0, 0, 0, value])],
    )
}

#[tokio::test]
async fn the_smaller_priority_wins_and_is_read_back() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(masked(&bench, [255, 0, 0, 0], 7, 1)).await, Ok(()));
    assert_eq!(bench.insert(masked(&bench, [255, 255, 0, 0], 3, 2)).await, Ok(()));
    assert_eq!(
        (
            bench.answer_to_packet(3, 0, 0x0a01_0000),
            bench.answer_to_packet(3, 0, 0x0a02_0000)
        ),
        (Some(2), Some(1))
    );
    let read = bench.read(masked(&bench, [255, 255, 0, 0], 3, 0)).await;
    // The request selects fields, so only those are returned.
    let Some(pb::table_entry::Value::Key(key)) = read.expect("is read")[0].value.clone() else {
        panic!("an entry has a key");
    };
    assert_eq!(
        key.fields[1],
        exact(bench.key_id("In.ternary_keys", "$MATCH_PRIORITY"), &[0, 0, 0, 3])
    );
    assert_eq!(
        bench.insert(masked(&bench, [255, 0, 0, 0], u32::MAX, 1)).await,
        Err(Code::InvalidArgument)
    );
}

#[tokio::test]
async fn values_have_exactly_the_bytes_of_their_width_in_reads_and_writes() {
    let bench = Bench::new().await;
    let id = bench.table(EXACT).key[0].id;
    let action = bench.action(EXACT, "answer_counted");
    for (key, data) in [
        (&[0u8, 0, 1][..], &[0u8, 0, 0, 1][..]),
        (&[0, 0, 0, 0, 1], &[0, 0, 0, 1]),
        (&[], &[0, 0, 0, 1]),
        (&[0, 0, 0, 1], &[1]),
        (&[0, 0, 0, 1], &[0, 0, 0, 0, 1]),
    ] {
        let entry = with_data(bench.keyed(EXACT, vec![exact(id, key)]), action, vec![stream(1, data)]);
        assert_eq!(
            bench.insert(entry).await,
            Err(Code::InvalidArgument),
            "{key:?} {data:?}"
        );
    }
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    let read = bench.entries(EXACT).await;
    assert_eq!(value(&read[0], 1), Wire::Stream(vec![0, 0, 0, 2].into()));
    assert_eq!(read[0].value, bench.exact(EXACT, 1).value);
}

#[tokio::test]
async fn the_default_entry_is_modified_read_and_reset_but_not_inserted() {
    let bench = Bench::new().await;
    let table = "In.range_keys";
    let entry = |value: u32| {
        let fields = vec![stream(1, &value.to_be_bytes())];
        with_data(bench.default_entry(table), bench.action(table, "In.answer"), fields)
    };
    assert_eq!(bench.insert(entry(5)).await, Err(Code::Unimplemented));
    assert_eq!(bench.modify(entry(5)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(4, 0, 0), Some(5));
    let read = bench.read(bench.default_entry(table)).await.expect("is read");
    assert_eq!(
        (read.len(), read[0].is_default_entry, number(&read[0], 1)),
        (1, true, 5)
    );
    let keyed = pb::TableEntry {
        value: bench.exact(EXACT, 1).value,
        ..entry(6)
    };
    assert_eq!(bench.modify(keyed).await, Err(Code::InvalidArgument));
    assert_eq!(bench.delete(bench.default_entry(table)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(4, 0, 0), Some(9));
}

#[tokio::test]
async fn deleting_without_a_key_clears_the_table_and_resets_the_default() {
    let bench = Bench::new().await;
    let table = "In.range_keys";
    let default = with_data(
        bench.default_entry(table),
        bench.action(table, "In.answer"),
        vec![stream(1, &[0, 0, 0, 5])],
    );
    assert_eq!(bench.modify(default).await, Ok(()));
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    assert_eq!(bench.delete(bench.all(table)).await, Ok(()));
    assert_eq!(bench.delete(bench.all(EXACT)).await, Ok(()));
    assert_eq!(
        (bench.answer_to_packet(4, 0, 0), bench.answer_to_packet(1, 0, 1)),
        (Some(9), Some(0))
    );
    assert!(bench.entries(EXACT).await.is_empty());
}

#[tokio::test]
async fn actions_have_scopes_and_const_tables_are_const() {
    let bench = Bench::new().await;
    let table = "In.scoped_keys";
    let entry = |name| with_data(bench.exact(table, 1), bench.action(table, name), Vec::new());
    assert_eq!(bench.insert(entry("only_default")).await, Err(Code::InvalidArgument));
    assert_eq!(bench.insert(entry("uncounted")).await, Ok(()));
    let default = with_data(bench.default_entry(table), bench.action(table, "uncounted"), Vec::new());
    assert_eq!(bench.modify(default).await, Err(Code::InvalidArgument));
    let fixed = "In.fixed_keys";
    let new = bench.answer(fixed, 2, "In.answer", 1);
    assert_eq!(bench.insert(new).await, Err(Code::InvalidArgument));
    assert_eq!(
        bench.modify(bench.answer(fixed, 1, "In.answer", 1)).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(bench.delete(bench.exact(fixed, 1)).await, Err(Code::InvalidArgument));
    assert_eq!(bench.delete(bench.all(fixed)).await, Err(Code::InvalidArgument));
    let default = with_data(bench.default_entry(fixed), bench.action(fixed, "uncounted"), Vec::new());
    assert_eq!(bench.modify(default).await, Err(Code::InvalidArgument));
    assert_eq!(bench.answer_to_packet(10, 0, 1), Some(11));
}

#[tokio::test]
async fn data_must_be_complete_known_and_given_once() {
    let bench = Bench::new().await;
    let action = bench.action(EXACT, "answer_counted");
    let entry = |action, fields| with_data(bench.exact(EXACT, 1), action, fields);
    let one = || stream(1, &[0, 0, 0, 1]);
    for wrong in [
        entry(action, Vec::new()),
        entry(action, vec![one(), one()]),
        entry(action, vec![one(), stream(99, &[1])]),
        entry(
            action,
            vec![pb::DataField {
                field_id: 1,
                value: None,
            }],
        ),
        entry(12345, vec![one()]),
        entry(0, vec![one()]),
        bench.exact(EXACT, 1),
        with_data(bench.all(EXACT), action, vec![one()]),
    ] {
        assert_eq!(
            bench.insert(wrong.clone()).await,
            Err(Code::InvalidArgument),
            "{wrong:?}"
        );
    }
    let unknown = pb::TableEntry {
        table_id: 1,
        ..entry(action, vec![one()])
    };
    assert_eq!(bench.insert(unknown).await, Err(Code::NotFound));
    assert!(bench.entries(EXACT).await.is_empty());
}

#[tokio::test]
async fn a_part_of_an_actions_fields_changes_that_part() {
    let bench = Bench::new().await;
    let table = "In.range_keys";
    let action = bench.action(table, "answer_both");
    let key = || bench.keyed(table, vec![exact(bench.key_id(table, "port"), &[3])]);
    let both = with_data(key(), action, vec![stream(1, &[0, 1]), stream(2, &[0, 2])]);
    assert_eq!(bench.insert(both).await, Ok(()));
    assert_eq!(
        bench.modify(with_data(key(), action, vec![stream(2, &[0, 7])])).await,
        Ok(())
    );
    assert_eq!(bench.answer_to_packet(4, 3, 0), Some(0x0001_0007));
    let other = with_data(key(), bench.action(table, "In.answer"), Vec::new());
    assert_eq!(bench.modify(other).await, Err(Code::InvalidArgument));
}

#[tokio::test]
async fn modifying_keeps_counters_and_times_unless_flags_reset_them() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    bench.answer_to_packet(1, 0, 1);
    let packets = bench.field(EXACT, "$COUNTER_SPEC_PKTS");
    assert_eq!(bench.modify(bench.entry(1, 3)).await, Ok(()));
    assert_eq!(number(&bench.entries(EXACT).await[0], packets), 1);
    let reset = pb::TableEntry {
        table_flags: Some(pb::TableFlags {
            reset_stats: true,
            ..pb::TableFlags::default()
        }),
        ..bench.entry(1, 4)
    };
    assert_eq!(bench.modify(reset).await, Ok(()));
    assert_eq!(number(&bench.entries(EXACT).await[0], packets), 0);
    bench.answer_to_packet(1, 0, 1);
    assert_eq!(
        bench.one(Type::Reset, Entity::TableEntry(bench.exact(EXACT, 1))).await,
        Ok(())
    );
    assert_eq!(number(&bench.entries(EXACT).await[0], packets), 0);

    let timed = "In.timed_keys";
    let ttl = bench.field(timed, "$ENTRY_TTL");
    let mut entry = bench.answer(timed, 1, "In.answer", 1);
    entry
        .data
        .as_mut()
        .expect("has data")
        .fields
        .push(stream(ttl, &1000u32.to_be_bytes()));
    assert_eq!(bench.insert(entry).await, Ok(()));
    bench.switch.clock().advance(400_000_000);
    assert_eq!(bench.modify(bench.answer(timed, 1, "In.answer", 2)).await, Ok(()));
    let left = async |bench: &Bench| {
        let query = pb::TableEntry {
            table_flags: Some(pb::TableFlags {
                from_hw: true,
                ..pb::TableFlags::default()
            }),
            ..bench.exact(timed, 1)
        };
        number(&bench.read(query).await.expect("is read")[0], ttl)
    };
    assert_eq!(left(&bench).await, 600);
    let reset = pb::TableEntry {
        table_flags: Some(pb::TableFlags {
            reset_ttl: true,
            ..pb::TableFlags::default()
        }),
        ..bench.answer(timed, 1, "In.answer", 3)
    };
    assert_eq!(bench.modify(reset).await, Ok(()));
    assert_eq!(left(&bench).await, 1000);
    let returned = bench.entries(timed).await;
    assert_eq!(
        value(&returned[0], bench.field(timed, "$ENTRY_HIT_STATE")),
        Wire::StrVal("ENTRY_ACTIVE".into())
    );
    bench.switch.clock().advance(1_000_000_000);
    let returned = bench.entries(timed).await;
    assert_eq!(
        value(&returned[0], bench.field(timed, "$ENTRY_HIT_STATE")),
        Wire::StrVal("ENTRY_IDLE".into())
    );
    assert_eq!(number(&returned[0], ttl), 1000);
}

#[tokio::test]
async fn insert_or_modify_says_which_it_was() {
    let bench = Bench::new().await;
    let upsert = |value| {
        vec![crate::common::update(
            Type::InsertOrModify,
            Entity::TableEntry(bench.entry(1, value)),
        )]
    };
    assert_eq!(bench.write(upsert(2)).await.expect("is inserted").status, []);
    let status = bench.write(upsert(3)).await.expect("is modified").status;
    assert_eq!((status.len(), status[0].code, status[0].canonical_code), (1, 6, 0));
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(3));
}

#[tokio::test]
async fn a_table_is_read_with_its_default_entry_at_the_end() {
    let bench = Bench::new().await;
    let all = bench.read(bench.all(EXACT)).await.expect("an empty table is no error");
    assert_eq!((all.len(), all[0].is_default_entry), (1, true));
    for key in 0..3 {
        assert_eq!(bench.insert(bench.entry(key, key)).await, Ok(()));
    }
    let all = bench.read(bench.all(EXACT)).await.expect("is read");
    let defaults: Vec<bool> = all.iter().map(|e| e.is_default_entry).collect();
    assert_eq!(defaults, [false, false, false, true]);
}

#[tokio::test]
async fn reads_filter_by_action_and_fields_and_may_leave_out_data() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    let uncounted = bench.action(EXACT, "uncounted");
    assert_eq!(
        bench
            .insert(with_data(bench.exact(EXACT, 2), uncounted, Vec::new()))
            .await,
        Ok(())
    );
    let of_action = with_data(bench.all(EXACT), bench.action(EXACT, "answer_counted"), Vec::new());
    assert_eq!(bench.read(of_action).await.expect("is read").len(), 1);
    let packets = bench.field(EXACT, "$COUNTER_SPEC_PKTS");
    let only = |of: pb::TableEntry, field_id| {
        let field = pb::DataField { field_id, value: None };
        with_data(of, 0, vec![field])
    };
    // One entry, and all: the former is encoded as a message, the latter directly.
    for which in [bench.exact(EXACT, 1), bench.all(EXACT)] {
        let returned = bench.read(only(which.clone(), packets)).await.expect("is read");
        let data = returned[0].data.as_ref().expect("has data");
        let fields: Vec<u32> = data.fields.iter().map(|f| f.field_id).collect();
        assert_eq!(fields, [packets]);
        assert_eq!(bench.read(only(which.clone(), 99)).await, Err(Code::InvalidArgument));
        let keys = pb::TableEntry {
            table_flags: Some(pb::TableFlags {
                key_only: true,
                ..pb::TableFlags::default()
            }),
            entry_tgt: Some(target(0xffff)),
            ..which
        };
        let returned = bench.read(keys).await.expect("is read");
        assert_eq!((returned[0].data.is_none(), returned[0].value.is_some()), (true, true));
        assert_eq!(returned[0].entry_tgt, Some(target(0xffff)));
    }
}

#[tokio::test]
async fn entries_have_handles() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    let Some(pb::table_entry::Value::Key(key)) = bench.exact(EXACT, 1).value else {
        panic!("is keyed");
    };
    let table_id = bench.table(EXACT).id;
    let by_key = pb::HandleId {
        table_id,
        value: Some(pb::handle_id::Value::Key(key.clone())),
    };
    let found = bench.read_entities(Entity::Handle(by_key)).await.expect("is found");
    let Entity::Handle(pb::HandleId {
        value: Some(pb::handle_id::Value::HandleId(handle)),
        ..
    }) = found[0]
    else {
        panic!("{found:?} is no handle");
    };
    let by_handle = |handle| pb::TableEntry {
        value: Some(pb::table_entry::Value::HandleId(handle)),
        ..bench.all(EXACT)
    };
    let returned = bench.read(by_handle(handle)).await.expect("is read");
    assert_eq!(returned[0].value, bench.exact(EXACT, 1).value);
    let changed = with_data(
        by_handle(handle),
        bench.action(EXACT, "answer_counted"),
        vec![stream(1, &[0, 0, 0, 9])],
    );
    assert_eq!(bench.modify(changed).await, Ok(()));
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(9));
    assert_eq!(bench.read(by_handle(handle + 1)).await, Err(Code::NotFound));
    assert_eq!(bench.delete(by_handle(handle)).await, Ok(()));
    let back = pb::HandleId {
        table_id,
        value: Some(pb::handle_id::Value::HandleId(handle)),
    };
    assert_eq!(bench.read_entities(Entity::Handle(back)).await, Err(Code::NotFound));
}

#[tokio::test]
async fn usage_counts_entries() {
    let bench = Bench::new().await;
    let usage = |table: &str| {
        Entity::TableUsage(pb::TableUsage {
            table_id: bench.table(table).id,
            ..pb::TableUsage::default()
        })
    };
    for key in 0..3 {
        assert_eq!(bench.insert(bench.entry(key, key)).await, Ok(()));
    }
    let found = bench.read_entities(usage(EXACT)).await.expect("is counted");
    assert!(matches!(&found[..], [Entity::TableUsage(u)] if u.usage == 3));
    assert_eq!(bench.read_entities(usage("In.by_kind")).await, Err(Code::Unimplemented));
}

#[tokio::test]
async fn names_are_found_by_object_ids() {
    use pb::object_id::table_object::Names;
    use pb::object_id::{ActionName, DataFieldName, KeyFieldName, LearnObject, Object, TableObject};
    let bench = Bench::new().await;
    let object_id = async |object| {
        let asked = pb::ObjectId {
            object: Some(object),
            id: 0,
        };
        let found = bench.read_entities(Entity::ObjectId(asked)).await?;
        match &found[..] {
            [Entity::ObjectId(found)] => Ok(found.id),
            other => panic!("{other:?} is no object"),
        }
    };
    let table = |names| {
        Object::TableObject(TableObject {
            table_name: "pipe.In.exact_keys".into(),
            names,
        })
    };
    assert_eq!(object_id(table(None)).await, Ok(bench.table(EXACT).id));
    let action = Names::ActionName(ActionName {
        action: "In.answer_counted".into(),
    });
    assert_eq!(
        object_id(table(Some(action))).await,
        Ok(bench.action(EXACT, "answer_counted"))
    );
    let key = Names::KeyFieldName(KeyFieldName {
        field: "hdr.question.key".into(),
    });
    assert_eq!(object_id(table(Some(key))).await, Ok(1));
    let data = |action: &str, field: &str| {
        Names::DataFieldName(DataFieldName {
            action: action.into(),
            field: field.into(),
        })
    };
    assert_eq!(object_id(table(Some(data("In.answer_counted", "value")))).await, Ok(1));
    assert_eq!(
        object_id(table(Some(data("", "$COUNTER_SPEC_PKTS")))).await,
        Ok(bench.field(EXACT, "$COUNTER_SPEC_PKTS"))
    );
    assert_eq!(object_id(table(Some(data("", "no")))).await, Err(Code::NotFound));
    let learn = Object::LearnObject(LearnObject {
        learn_name: "pipe.InDeparser.seen".into(),
        data_field_name: None,
    });
    assert_eq!(object_id(learn).await, Ok(bench.info.learn_filters[0].id));
}

/// TNA has no optional keys; programs for v1model do, and are served as well.
#[tokio::test]
async fn optional_keys_are_given_or_match_anything() {
    let source = include_str!("../p4/everything.p4");
    let bench = Bench::of(source, weir_server::bfrt::Config::default(), Clone::clone).await;
    let table = "I.optional_table";
    let optional = |name, value: Option<&[u8]>| pb::KeyField {
        field_id: bench.key_id(table, name),
        match_type: Some(pb::key_field::MatchType::Optional(pb::key_field::Optional {
            value: value.unwrap_or_default().to_vec().into(),
            is_valid: value.is_some(),
        })),
    };
    let entry = |key: Option<&[u8]>, hash: Option<&[u8]>, priority: u32, answer: u8| {
        let priority = exact(bench.key_id(table, "$MATCH_PRIORITY"), &priority.to_be_bytes());
        let key = vec![optional("key", key), optional("hash", hash), priority];
        let action = bench.action(table, "I.answer");
        with_data(bench.keyed(table, key), action, vec![stream(1, &[0, 0, 0, answer])])
    };
    let one = [0, 0, 0, 1];
    assert_eq!(bench.insert(entry(Some(&one), Some(&[7]), 1, 11)).await, Ok(()));
    assert_eq!(bench.insert(entry(Some(&one), None, 2, 22)).await, Ok(()));
    assert_eq!(bench.insert(entry(None, None, 3, 33)).await, Ok(()));
    assert_eq!(
        bench.insert(entry(Some(&one), None, 2, 5)).await,
        Err(Code::AlreadyExists)
    );
    assert_eq!(
        bench.insert(entry(Some(&[1]), None, 9, 5)).await,
        Err(Code::InvalidArgument)
    );
    let asked = [
        bench.answer_to_packet(5, 7, 1),
        bench.answer_to_packet(5, 8, 1),
        bench.answer_to_packet(5, 7, 2),
    ];
    assert_eq!(asked, [Some(11), Some(22), Some(33)]);
    // They are read as written: a key that matches anything has no value.
    let returned = bench.entries(table).await;
    let fields: Vec<_> = returned
        .iter()
        .map(|entry| match &entry.value {
            Some(pb::table_entry::Value::Key(key)) => key.fields[1].clone(),
            other => panic!("{other:?} is no key"),
        })
        .collect();
    assert!(fields.contains(&optional("hash", Some(&[7]))), "{fields:?}");
    assert!(fields.iter().any(|f| matches!(&f.match_type,
        Some(pb::key_field::MatchType::Optional(o)) if !o.is_valid)));
    assert_eq!(bench.delete(entry(None, None, 3, 0)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(5, 7, 2), None);
}
