//! The client against weir's own P4Runtime server: everything that can be written is read back as
//! it was.

mod common;

use common::{bench, record};
use std::time::Duration;
use weir_client::{
    Atomicity, Client, Code, DigestConfig, Entry, Error, Match, Operation, Options, Overflow, Standing, Template, Value,
};
use weir_server::DataPlane;

/// The entry as the target has it, without what targets add.
async fn read_back(client: &Client, entry: &Entry) -> String {
    let found = client.entry(entry).await.expect("can be read");
    found.map_or_else(|| "nothing".to_owned(), |e| e.to_string())
}

#[tokio::test]
async fn entries_of_every_kind_are_read_back_as_they_were_written() {
    let client = bench().await.client().await;
    let of = |name: &str| Entry::of(&client.table(name).expect("exists"));
    let answer = |entry: Entry| entry.action("answer").data("value", 7_u8);
    let entries = [
        answer(of("exact_table").key("key", 5_u8)),
        of("lpm_table")
            .key("key", Match::lpm(0x0a00_0000_u32, 8))
            .action("metered")
            .data("value", 1_u8)
            .data("$METER_SPEC_CIR", 10_u8)
            .data("$METER_SPEC_CBS", 11_u8)
            .data("$METER_SPEC_PIR", 12_u8)
            .data("$METER_SPEC_PBS", 13_u8),
        answer(
            of("ternary_table")
                .key("key", Match::ternary(0x05_u8, 0x0f_u8))
                .key("hash", 3_u8)
                .priority(9),
        ),
        answer(of("range_table").key("key", Match::range(1_u8, 9_u8)).priority(1)),
        answer(of("optional_table").key("hash", 4_u8).priority(2)),
        answer(of("idle_table").key("key", 1_u8)).data("$IDLE_TIMEOUT_NS", 1_000_000_000_u64),
        answer(of("name_table").key("name", "green")),
        answer(of("wide_table").key("wide", 0x1234_u16)),
        answer(of("profile").key("$ACTION_MEMBER_ID", 1_u8)),
        of("profile_table").key("key", 1_u8).data("$ACTION_MEMBER_ID", 1_u8),
        answer(of("selector").key("$ACTION_MEMBER_ID", 2_u8)),
        of("selector.$GROUPS")
            .key("$SELECTOR_GROUP_ID", 3_u8)
            .data(
                "$MEMBERS",
                vec![record(&[("member_id", 2_u8.into()), ("weight", 2_u8.into())])],
            )
            .data("$MAX_GROUP_SIZE", 4_u8),
        of("selector_table").key("key", 1_u8).data("$SELECTOR_GROUP_ID", 3_u8),
        of("counts")
            .key("$COUNTER_INDEX", 3_u8)
            .data("$COUNTER_SPEC_BYTES", 64_u8)
            .data("$COUNTER_SPEC_PKTS", 1_u8),
        of("meters")
            .key("$METER_INDEX", 1_u8)
            .data("$METER_SPEC_CIR", 1_u8)
            .data("$METER_SPEC_CBS", 2_u8)
            .data("$METER_SPEC_PIR", 3_u8)
            .data("$METER_SPEC_PBS", 4_u8),
        of("words").key("$REGISTER_INDEX", 7_u8).data("value", 0xdead_beef_u32),
        of("cells")
            .key("$REGISTER_INDEX", 2_u8)
            .data("a", 0xfff_u16)
            .data("b", 1_u8),
        of("specials").data("members", vec![record(&[("value", "77".into())])]),
        of("$MULTICAST_GROUPS").key("$MULTICAST_GROUP_ID", 1_u8).data(
            "$REPLICAS",
            vec![record(&[("port", 3_u8.into()), ("instance", 1_u8.into())])],
        ),
        of("$CLONE_SESSIONS")
            .key("$SESSION_ID", 5_u8)
            .data(
                "$REPLICAS",
                vec![record(&[("port", 4_u8.into()), ("instance", 0_u8.into())])],
            )
            .data("class_of_service", 0_u8)
            .data("packet_length_bytes", 0_u8),
    ];
    for entry in entries {
        let shown = entry.to_string();
        client.insert(&entry).await.unwrap_or_else(|e| panic!("{shown}: {e}"));
        let read = read_back(&client, &entry).await;
        // Targets add counts and times.
        assert!(read.starts_with(&shown), "{read}\ndoes not begin with\n{shown}");
        let table = entry.table();
        let all = client.entries(table).await.expect("can be read");
        assert!(
            all.iter().any(|e| e.to_string() == read),
            "{read} is not among all of {}",
            table.name
        );
    }
}

#[tokio::test]
async fn action_sets_are_written_with_their_entry() {
    let client = bench().await.client().await;
    let set = Value::from(vec![
        record(&[
            ("action", "I.answer".into()),
            ("weight", 1_u8.into()),
            ("value", 1_u8.into()),
        ]),
        record(&[("action", "I.miss".into()), ("weight", 2_u8.into())]),
    ]);
    let table = client.table("selector_table").expect("exists");
    let entry = Entry::of(&table).key("key", 9_u8).data("$ACTION_SET", set.clone());
    client.insert(&entry).await.expect("is taken");
    let read = client.entry(&entry).await.expect("can be read").expect("is there");
    assert_eq!(read.get("$ACTION_SET"), Some(&set));
}

#[tokio::test]
async fn a_default_entry_is_changed_and_becomes_the_programs_own_again() {
    let client = bench().await.client().await;
    let table = client.table("exact_table").expect("exists");
    let own = client.default_entry(&table).await.expect("can be read");
    assert_eq!(
        own.expect("is there").chosen_action().map(|a| &a.name[..]),
        Some("I.miss")
    );
    let entry = Entry::default_of(&table).action("only_default");
    client.modify(&entry).await.expect("is taken");
    let changed = client.default_entry(&table).await.expect("can be read");
    assert_eq!(
        changed.expect("is there").chosen_action().map(|a| &a.name[..]),
        Some("I.only_default")
    );
    client.delete(&entry).await.expect("is taken");
    let own = client.default_entry(&table).await.expect("can be read");
    assert_eq!(
        own.expect("is there").chosen_action().map(|a| &a.name[..]),
        Some("I.miss")
    );
}

#[tokio::test]
async fn failed_updates_are_named_by_table_key_and_cause() {
    let client = bench().await.client().await;
    let table = client.table("exact_table").expect("exists");
    let entry = |key: u32| Entry::of(&table).key("key", key).action("answer").data("value", key);
    let mut batch = client.batch();
    for key in [1, 2, 1, 3] {
        batch.insert(&entry(key)).expect("fits");
    }
    batch.delete(&entry(9)).expect("fits");
    let Err(Error::Updates(errors)) = client.write(&batch).await else {
        panic!("two updates must fail");
    };
    let told: Vec<_> = errors
        .iter()
        .map(|e| (e.index, e.what, e.key.as_str(), e.code))
        .collect();
    assert_eq!(
        told,
        [
            (2, "insert", "key=1", Code::AlreadyExists),
            (4, "delete", "key=9", Code::NotFound)
        ]
    );
    assert_eq!(errors[0].table, "I.exact_table");
    assert_eq!(client.entries(&table).await.expect("can be read").len(), 3);

    let mut batch = client.batch().atomicity(Atomicity::Rollback);
    for key in [10, 11, 1] {
        batch.insert(&entry(key)).expect("fits");
    }
    let Err(Error::Updates(errors)) = client.write(&batch).await else {
        panic!("the batch must fail");
    };
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(client.entries(&table).await.expect("can be read").len(), 3);
}

#[tokio::test]
async fn what_exists_is_modified_and_what_does_not_is_inserted() {
    let client = bench().await.client().await;
    let table = client.table("exact_table").expect("exists");
    let entry = |key: u32, value: u32| Entry::of(&table).key("key", key).action("answer").data("value", value);
    client.insert(&entry(2, 1)).await.expect("is taken");
    let mut batch = client.batch();
    for key in 1..=3 {
        batch.insert_or_modify(&entry(key, 50)).expect("fits");
    }
    client.write(&batch).await.expect("all are taken");
    for key in 1..=3 {
        let read = client
            .entry(&entry(key, 0))
            .await
            .expect("can be read")
            .expect("is there");
        assert_eq!(read.get("value"), Some(&Value::from(50_u8)));
    }
}

#[tokio::test]
async fn a_pipeline_reports_failures_by_the_order_in_which_updates_were_added() {
    let client = bench().await.client().await;
    let table = client.table("exact_table").expect("exists");
    let template = Template::new(&table, Operation::Insert, Some("answer")).expect("fits");
    let mut pipeline = client.pipeline(7, 4);
    for key in 0..200_u128 {
        pipeline.push_numbers(&template, &[key, key]).await.expect("is sent");
    }
    let outcome = pipeline.finish().await.expect("all is answered");
    assert_eq!((outcome.done, outcome.failures), (200, 0));
    let mut pipeline = client.pipeline(7, 4);
    for key in 190..210_u128 {
        pipeline.push_numbers(&template, &[key, key]).await.expect("is sent");
    }
    let outcome = pipeline.finish().await.expect("all is answered");
    let indices: Vec<u64> = outcome.failed.iter().map(|e| e.index).collect();
    assert_eq!((outcome.done, indices), (10, (0..10).collect()));
    client.clear(&table).await.expect("is emptied");
    assert!(client.entries(&table).await.expect("can be read").is_empty());
}

#[tokio::test]
async fn digests_arrive_and_are_acknowledged() {
    let bench = bench().await;
    let client = bench.client().await;
    let digest = client.schema().digests[0].name.clone();
    // The switch's clock stands still: a list is complete when it has one element.
    let config = DigestConfig {
        max_list_size: 1,
        ..DigestConfig::default()
    };
    let mut digests = client
        .digests(&digest, config, 16, Overflow::Count)
        .await
        .expect("is taken");
    for key in 0..3_u8 {
        bench.switch.inject(2, vec![32, 0, 0, 0, 0, key, 0, 0, 0, 0]);
        let list = tokio::time::timeout(Duration::from_secs(5), digests.next()).await;
        let list = list.expect("comes in time").expect("the client is there");
        assert_eq!(list.data.len(), 1);
        assert_eq!(list.data[0].field("key"), Some(&Value::from(key)));
        assert_eq!(list.data[0].field("port"), Some(&Value::from(2_u8)));
    }
}

#[tokio::test]
async fn packets_go_both_ways() {
    let bench = bench().await;
    let client = bench.client().await;
    let mut packets = client.packets(16, Overflow::Count);
    // The port of the control plane is where the packet is sent, and so it comes back.
    let query = vec![33, 0, 0, 0, 0, 5, 0, 0, 0, 0];
    bench.switch.inject(3, query.clone());
    let packet = tokio::time::timeout(Duration::from_secs(5), packets.next()).await;
    let packet = packet.expect("comes in time").expect("the client is there");
    assert_eq!(packet.payload, query);
    let metadata: Vec<_> = packet.metadata.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
    assert_eq!(metadata, [("ingress_port", 3_u8.into()), ("reason", 5_u8.into())]);
    client
        .packet_out(query, &[("egress_port", 4_u8.into())])
        .await
        .expect("is sent");
    let error = client
        .packet_out(Vec::new(), &[("egress", 4_u8.into())])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("egress_port"), "{error}");
    let error = client
        .packet_out(Vec::new(), &[("egress_port", 512_u16.into())])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("9"), "{error}");
}

#[tokio::test]
async fn a_backup_may_not_write_and_takes_over_when_the_primary_goes() {
    let bench = bench().await;
    let primary = Client::connect(bench.options().election(10)).await.expect("connects");
    let backup = Client::connect(bench.options().election(5)).await.expect("connects");
    assert_eq!(backup.standing(), Standing::Backup(Some(10)));
    let table = backup.table("exact_table").expect("exists");
    let entry = Entry::of(&table).key("key", 1_u8).action("miss");
    let error = backup.insert(&entry).await.unwrap_err();
    assert!(matches!(error, Error::NotPrimary(Some(10))), "{error}");
    drop(primary);
    // As the specification says, a lower election id does not take over by itself.
    let third = Client::connect(bench.options().election(11)).await.expect("connects");
    third.primary().await.expect("is primary");
    third.insert(&entry).await.expect("is taken");
}

#[tokio::test]
async fn an_observer_reads_and_does_not_write() {
    let bench = bench().await;
    let observer = Client::connect(bench.options().observer()).await.expect("connects");
    let table = observer.table("const_table").expect("exists");
    assert_eq!(observer.entries(&table).await.expect("can be read").len(), 2);
    let exact = observer.table("exact_table").expect("exists");
    let error = observer
        .insert(&Entry::of(&exact).key("key", 1_u8).action("miss"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("only reads"), "{error}");
}

#[tokio::test]
async fn a_target_that_is_not_there_is_told_with_its_address() {
    let error = Client::connect(Options::p4runtime("127.0.0.1:1").expect("an address"))
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("127.0.0.1:1") && text.contains("refused"), "{text}");
    assert!(error.is_retryable());
}
