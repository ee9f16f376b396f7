//! Batches: atomicity, errors, serialisation (sections "Batch Atomicity", "Error Reporting", "Batch
//! Processing").

use crate::common::*;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_proto::p4::v1::write_request::Atomicity;

fn insert(bench: &Bench, key: u8) -> pb::Update {
    let entry = bench.entry("exact_table", vec![exact(1, &[key])], key.into());
    update(Type::Insert, Entity::TableEntry(entry))
}

async fn everything(bench: &Bench) -> Vec<Entity> {
    let queries = vec![
        Entity::TableEntry(pb::TableEntry::default()),
        Entity::ActionProfileMember(pb::ActionProfileMember::default()),
        Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry::default()),
        Entity::CounterEntry(pb::CounterEntry::default()),
        Entity::DigestEntry(pb::DigestEntry::default()),
    ];
    let (found, error) = bench.read_all(queries).await;
    assert!(error.is_none(), "{error:?}");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn continue_on_error_tries_every_update_and_tells_of_each_in_order() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let updates = vec![
        insert(&bench, 1),
        insert(&bench, 1),
        pb::Update::default(),
        update(
            Type::Delete,
            Entity::TableEntry(bench.entry("exact_table", vec![exact(1, &[9])], 0)),
        ),
        insert(&bench, 2),
    ];
    let status = bench.write(updates).await.expect_err("three fail");
    assert_eq!(status.code(), Code::Unknown);
    let expected = [
        Code::Ok,
        Code::AlreadyExists,
        Code::InvalidArgument,
        Code::NotFound,
        Code::Ok,
    ];
    assert_eq!(codes(&status), expected);
    assert_eq!(details(&status)[0], pb::Error::default());
    assert_eq!([bench.ask(1, 0, 1), bench.ask(1, 0, 2)], [Some(1), Some(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_atomicities_do_all_or_nothing_whatever_is_in_the_batch() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    bench.write(vec![insert(&bench, 1)]).await.expect("fits");
    let before = everything(&bench).await;
    let member = Entity::ActionProfileMember(pb::ActionProfileMember {
        action_profile_id: bench.id("profile"),
        member_id: 3,
        action: Some(bench.answer(3)),
    });
    let counter = Entity::CounterEntry(pb::CounterEntry {
        counter_id: bench.id("counts"),
        index: Some(pb::Index { index: 1 }),
        data: Some(pb::CounterData {
            packet_count: 1,
            byte_count: 1,
        }),
    });
    let digest = Entity::DigestEntry(pb::DigestEntry {
        digest_id: bench.id("seen_t"),
        config: None,
    });
    let delete = Entity::TableEntry(bench.entry("exact_table", vec![exact(1, &[1])], 0));
    let good = vec![
        insert(&bench, 5),
        update(Type::Insert, member),
        update(Type::Modify, counter),
        update(Type::Delete, delete),
        update(Type::Insert, digest),
    ];
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        // One failure depends on the state, the other does not.
        for bad in [insert(&bench, 5), pb::Update::default()] {
            let mut batch = good.clone();
            batch.push(bad);
            let status = bench.write_with(batch, atomicity).await.expect_err("one fails");
            let codes = codes(&status);
            assert_eq!(codes.len(), 6);
            assert!(
                codes[..5].iter().all(|c| *c == Code::Aborted) && codes[5] != Code::Aborted,
                "{codes:?}"
            );
            assert_eq!(everything(&bench).await, before);
        }
    }
    bench
        .write_with(good, Atomicity::DataplaneAtomic)
        .await
        .expect("all fit");
    assert_eq!([bench.ask(1, 0, 1), bench.ask(1, 0, 5)], [None, Some(5)]);
    assert_ne!(everything(&bench).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_meet_whole_batches_only() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    // Two entries that always say the same, changed together while packets ask both.
    let set = |value: u32, ty| {
        let entry = |key: u8| bench.entry("exact_table", vec![exact(1, &[key])], value);
        [1, 2].map(|key| update(ty, Entity::TableEntry(entry(key)))).to_vec()
    };
    bench.write(set(0, Type::Insert)).await.expect("fits");
    let switch = bench.switch.clone();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let asking = std::thread::spawn(move || {
        let value = |key| switch.send(1, &question(1, 0, key))[0].bytes[9];
        let mut rounds = 0;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            // A value is between those asked before and after it, as batches only go up.
            let (a, b, c) = (value(1), value(2), value(1));
            assert!(a <= b && b <= c, "{a} {b} {c}");
            rounds += 1;
        }
        rounds
    });
    for value in 1..=200 {
        bench
            .write_with(set(value, Type::Modify), Atomicity::DataplaneAtomic)
            .await
            .expect("are there");
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(asking.join().expect("no half batch") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_errors_arrive_where_the_client_takes_them() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    bench.write(vec![insert(&bench, 1)]).await.expect("fits");
    let status = bench
        .write(vec![insert(&bench, 1); 5000])
        .await
        .expect_err("all are there");
    assert_eq!(codes(&status), vec![Code::AlreadyExists; 5000]);
    // Few errors stay below what any client takes.
    let few = bench
        .write(vec![insert(&bench, 1); 100])
        .await
        .expect_err("all are there");
    assert!(few.details().len() < 8192 * 3 / 4 && codes(&few).len() == 100);
    // Who says so gets the messages in full.
    let mut request = tonic::Request::new(pb::WriteRequest {
        device_id: 1,
        election_id: Some(pb::Uint128 { high: 0, low: 1 }),
        updates: vec![insert(&bench, 1); 100],
        ..Default::default()
    });
    request
        .metadata_mut()
        .insert("weir-max-error-bytes", "1000000".parse().expect("a number"));
    let full = bench.client.clone().write(request).await.expect_err("all are there");
    assert!(details(&full).iter().all(|d| d.message.contains("modify it")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_gives_what_it_finds_and_then_the_errors_of_its_queries() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    bench.write(vec![insert(&bench, 1)]).await.expect("fits");
    let good = Entity::TableEntry(pb::TableEntry {
        table_id: bench.table("exact_table"),
        ..Default::default()
    });
    let bad = Entity::CounterEntry(pb::CounterEntry {
        counter_id: 1,
        ..Default::default()
    });
    let (found, error) = bench.read_all(vec![good.clone(), bad, good]).await;
    assert_eq!(found.len(), 2);
    assert_eq!(
        codes(&error.expect("one fails")),
        [Code::Ok, Code::InvalidArgument, Code::Ok]
    );
    let request = pb::ReadRequest {
        device_id: 1,
        entities: vec![pb::Entity::default()],
        ..Default::default()
    };
    let mut stream = bench.client.clone().read(request).await.expect("begins").into_inner();
    assert_eq!(
        codes(&stream.message().await.expect_err("no entity")),
        [Code::InvalidArgument]
    );
    let elsewhere = pb::ReadRequest {
        device_id: 2,
        ..Default::default()
    };
    let status = bench.client.clone().read(elsewhere).await.expect_err("no such device");
    assert_eq!(status.code(), Code::NotFound);
}
