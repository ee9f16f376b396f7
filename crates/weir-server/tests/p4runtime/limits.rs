//! What the server bounds, and transport security.

use crate::common::*;
use crate::shared::tls::clients_need_a_certificate;
use std::sync::Arc;
use tonic::{Code, Request};
use weir_proto::p4::config::v1::{P4Info, Table};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_proto::p4rt_raw::{self, p4_runtime_server::P4Runtime as _};
use weir_proto::prost::Message;
use weir_server::p4rt::{self, Config, P4Runtime};
use weir_server::{Clock, Standalone};

#[tokio::test(flavor = "multi_thread")]
async fn batches_queries_and_streams_are_limited() {
    let config = Config {
        max_updates: 2,
        max_queries: 2,
        max_streams: 2,
        ..Config::default()
    };
    let bench = Bench::new(Some(compile(EVERYTHING)), config).await;
    let _primary = bench.primary().await;
    let entry = bench.entry("exact_table", vec![exact(1, &[1])], 1);
    let updates = vec![update(Type::Insert, Entity::TableEntry(entry)); 3];
    assert_eq!(
        bench.write(updates).await.expect_err("too many").code(),
        Code::ResourceExhausted
    );
    let (_, error) = bench
        .read_all(vec![Entity::TableEntry(pb::TableEntry::default()); 3])
        .await;
    assert_eq!(error.expect("too many").code(), Code::ResourceExhausted);
    let _second = Controller::open(&bench.client).await;
    let mut client = bench.client.clone();
    let third = client.stream_channel(tokio_stream::empty()).await;
    assert_eq!(third.expect_err("too many").code(), Code::ResourceExhausted);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_do_not_read_are_ended_and_writers_go_on() {
    let config = Config {
        read_chunk: 16,
        read_ahead: 1,
        read_timeout: std::time::Duration::from_millis(300),
        ..Config::default()
    };
    let bench = Bench::new(Some(compile(EVERYTHING)), config).await;
    let _primary = bench.primary().await;
    let query = pb::ReadRequest {
        device_id: 1,
        entities: vec![entity(Entity::RegisterEntry(pb::RegisterEntry {
            register_id: bench.id("bits"),
            ..Default::default()
        }))],
        ..Default::default()
    };
    let mut stalled = Vec::new();
    for _ in 0..5 {
        // What a client does not take holds up its own connection.
        let read = connect(bench.address).await.read(query.clone()).await;
        stalled.push(read.expect("begins").into_inner());
    }
    stalled[0].message().await.expect("is read").expect("has begun");
    let entry = bench.entry("exact_table", vec![exact(1, &[1])], 1);
    // A Read of one step does not wait; a Write waits until the long Read is aborted.
    let short = Entity::TableEntry(pb::TableEntry {
        table_id: entry.table_id,
        ..pb::TableEntry::default()
    });
    tokio::select! {
        biased;
        found = bench.read(short) => assert!(found.is_empty()),
        written = bench.insert(Entity::TableEntry(entry.clone())) => panic!("{written:?} before the Read has ended"),
    }
    let written = bench.insert(Entity::TableEntry(entry));
    let written = tokio::time::timeout(std::time::Duration::from_secs(10), written).await;
    // The first has gone on, too: a batch is done whether or not its client waits.
    assert!(matches!(written.expect("in time"), Ok(()) | Err(Code::AlreadyExists)));
    drop(stalled);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_four_mebibytes_and_more_are_taken() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let entry = |key: u8| pb::TableEntry {
        metadata: (0..60_000).map(|n: u32| (n % 251) as u8 ^ key).collect(),
        ..bench.entry("exact_table", vec![exact(1, &[key])], 1)
    };
    let entries: Vec<Entity> = (1..100).map(|key| Entity::TableEntry(entry(key))).collect();
    let updates = entries.iter().map(|e| update(Type::Insert, e.clone()));
    bench.write(updates.collect()).await.expect("is taken");
    let query = pb::TableEntry {
        table_id: bench.table("exact_table"),
        ..pb::TableEntry::default()
    };
    assert!(bench.read(Entity::TableEntry(query)).await == entries);
}

#[tokio::test]
async fn metadata_has_a_limit_of_its_own() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let group = |metadata: usize| {
        use pb::packet_replication_engine_entry::Type as Kind;
        let group = pb::MulticastGroupEntry {
            multicast_group_id: 7,
            metadata: vec![1; metadata],
            ..pb::MulticastGroupEntry::default()
        };
        Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry {
            r#type: Some(Kind::MulticastGroupEntry(group)),
        })
    };
    let entry = |metadata: usize| {
        Entity::TableEntry(pb::TableEntry {
            metadata: vec![1; metadata],
            ..bench.entry("exact_table", vec![exact(1, &[1])], 1)
        })
    };
    for (too_long, whole) in [(group(65_537), group(65_536)), (entry(65_537), entry(65_536))] {
        assert_eq!(bench.insert(too_long).await, Err(Code::ResourceExhausted));
        assert_eq!(bench.insert(whole).await, Ok(()));
    }
}

#[tokio::test]
async fn a_message_has_as_much_as_its_entities_cost() {
    use pb::packet_replication_engine_entry::Type as Kind;
    let config = Config {
        read_chunk: 10,
        ..Config::default()
    };
    let bench = Bench::new(Some(compile(EVERYTHING)), config).await;
    let _primary = bench.primary().await;
    let group = |multicast_group_id, replicas: u32| {
        let replica = |instance| pb::Replica {
            port_kind: Some(pb::replica::PortKind::Port(vec![1])),
            instance,
            ..pb::Replica::default()
        };
        let group = pb::MulticastGroupEntry {
            multicast_group_id,
            replicas: (0..replicas).map(replica).collect(),
            ..pb::MulticastGroupEntry::default()
        };
        Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry {
            r#type: Some(Kind::MulticastGroupEntry(group)),
        })
    };
    for id in 1..=7 {
        assert_eq!(bench.insert(group(id, 8)).await, Ok(()));
    }
    let request = pb::ReadRequest {
        device_id: 1,
        entities: vec![entity(group(0, 0)); 20],
        ..pb::ReadRequest::default()
    };
    let stream = bench.client.clone().read(request).await.expect("begins");
    let mut stream = stream.into_inner();
    let mut found = 0;
    while let Some(message) = stream.message().await.expect("goes on") {
        // Groups of nine each: the second is beyond what a message has.
        assert!((1..=2).contains(&message.entities.len()), "{message:?}");
        found += message.entities.len();
    }
    assert_eq!(found, 7 * 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_is_taken_quickly_does_not_keep_writes_out_either() {
    let config = Config {
        read_chunk: 1,
        read_timeout: std::time::Duration::from_millis(300),
        ..Config::default()
    };
    let bench = Bench::new(Some(compile(EVERYTHING)), config).await;
    let _primary = bench.primary().await;
    let entry = |key: u8| Entity::TableEntry(bench.entry("exact_table", vec![exact(1, &[key])], 1));
    let updates = (1..=200).map(|key| update(Type::Insert, entry(key)));
    bench.write(updates.collect()).await.expect("there is room");
    let all = Entity::TableEntry(pb::TableEntry {
        table_id: bench.table("exact_table"),
        ..pb::TableEntry::default()
    });
    let request = pb::ReadRequest {
        device_id: 1,
        entities: vec![entity(all); 10_000],
        ..pb::ReadRequest::default()
    };
    let stream = connect(bench.address).await.read(request).await.expect("begins");
    let mut stream = stream.into_inner();
    stream.message().await.expect("goes on").expect("has begun");
    let takes = tokio::spawn(async move {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return Code::Ok,
                Err(status) => return status.code(),
            }
        }
    });
    let written = tokio::time::timeout(std::time::Duration::from_secs(60), bench.insert(entry(201)));
    assert_eq!(written.await, Ok(Ok(())));
    assert_eq!(takes.await.expect("no panic"), Code::Aborted);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_small_on_the_wire_and_large_in_memory_is_refused() {
    let bench = Bench::everything().await;
    let entry = |metadata| pb::TableEntry {
        metadata: vec![7; metadata],
        ..bench.entry("exact_table", vec![exact(1, &[1])], 1)
    };
    // From a stranger; two bytes each.
    let empty = vec![pb::Update::default(); 1_000_001];
    let refused = bench.write(empty).await.expect_err("too many");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().starts_with("1000001 updates"), "{refused}");
    let mut controller = bench.primary().await;
    let long = vec![update(Type::Insert, Entity::TableEntry(entry(9 << 20)))];
    let refused = bench.write(long).await.expect_err("too long");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let queries = vec![Entity::TableEntry(pb::TableEntry::default()); 10_001];
    let (_, error) = bench.read_all(queries).await;
    assert_eq!(error.expect("too many").code(), Code::ResourceExhausted);
    let set = async |config| {
        let request = pb::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: Some(pb::Uint128 { high: 0, low: 1 }),
            action: pb::set_forwarding_pipeline_config_request::Action::Verify.into(),
            config: Some(config),
            ..Default::default()
        };
        let set = bench.client.clone().set_forwarding_pipeline_config(request).await;
        set.expect_err("is refused").code()
    };
    let objects = |tables| pb::ForwardingPipelineConfig {
        p4info: Some(P4Info {
            tables: vec![Table::default(); tables],
            ..P4Info::default()
        }),
        ..Default::default()
    };
    // Empty ones: two bytes each, some 400 in memory.
    assert_eq!(set(objects(1 << 20)).await, Code::ResourceExhausted);
    assert_eq!(set(objects(1000)).await, Code::InvalidArgument);
    let long = pb::ForwardingPipelineConfig {
        p4info: Some(P4Info::default()),
        p4_device_config: vec![0xff; 20 << 20],
        ..Default::default()
    };
    // Programs for hardware are that long: it is no text.
    assert_eq!(set(long).await, Code::InvalidArgument);
    bench
        .insert(Entity::TableEntry(entry(9)))
        .await
        .expect("still the primary");
    let packet = pb::PacketOut {
        payload: vec![0; 5 << 20],
        metadata: Vec::new(),
    };
    controller.say(pb::stream_message_request::Update::Packet(packet)).await;
    assert_eq!(controller.next().await.expect_err("too long").code(), Code::OutOfRange);
    let mut another = Controller::open(&bench.client).await;
    let packet = pb::PacketOut {
        payload: Vec::new(),
        metadata: vec![pb::PacketMetadata::default(); 1 << 14],
    };
    another.say(pb::stream_message_request::Update::Packet(packet)).await;
    assert_eq!(
        another.next().await.expect_err("too many").code(),
        Code::ResourceExhausted
    );
    let request = pb::WriteRequest {
        role: "r".repeat(70_000),
        ..Default::default()
    };
    let refused = bench.client.clone().write(request).await.expect_err("too long");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
}

#[tokio::test]
async fn what_few_of_many_entries_match_is_found_in_steps() {
    let config = Config {
        read_chunk: 2,
        ..Config::default()
    };
    let bench = Bench::new(Some(compile(EVERYTHING)), config).await;
    let _primary = bench.primary().await;
    let entry = |key: u8| pb::TableEntry {
        controller_metadata: key.into(),
        ..bench.entry("exact_table", vec![exact(1, &[key])], 1)
    };
    let updates = (1..=200).map(|key| update(Type::Insert, Entity::TableEntry(entry(key))));
    bench.write(updates.collect()).await.expect("there is room");
    let with = |controller_metadata| {
        Entity::TableEntry(pb::TableEntry {
            table_id: bench.table("exact_table"),
            controller_metadata,
            ..pb::TableEntry::default()
        })
    };
    assert_eq!(bench.read(with(150)).await, [Entity::TableEntry(entry(150))]);
    assert_eq!(bench.read(with(1000)).await, []);
    assert_eq!(bench.read(with(0)).await.len(), 200);
    let (found, error) = bench.read_all([150, 1000, 3, 0].map(with).to_vec()).await;
    assert!(error.is_none() && found.len() == 202, "{error:?}");
    // Many queries, each of which finds something.
    let one = Entity::TableEntry(pb::TableEntry {
        action: None,
        controller_metadata: 0,
        ..entry(7)
    });
    let (found, error) = bench.read_all(vec![one; 3000]).await;
    assert!(error.is_none() && found.len() == 3000, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_an_update_that_is_no_message_is_refused_as_a_whole() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let key = |key| Entity::TableEntry(bench.entry("exact_table", vec![exact(1, &[key])], 1));
    let request = write_request(vec![update(Type::Insert, key(1))], Atomicity::ContinueOnError);
    let mut wire = request.encode_to_vec();
    // An update whose entity is longer than it.
    wire.extend([4 << 3 | 2, 2, 2 << 3 | 2, 9]);
    wire.extend(write_request(vec![update(Type::Insert, key(2))], Atomicity::ContinueOnError).encode_to_vec());
    let request = p4rt_raw::WriteRequest::decode(wire.as_slice()).expect("whole as a list");
    let written = bench.server.write(Request::new(request)).await;
    let status = written.expect_err("one is no message");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let table_id = bench.table("exact_table");
    let all = Entity::TableEntry(pb::TableEntry {
        table_id,
        ..pb::TableEntry::default()
    });
    assert!(bench.read(all).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_mutual_tls_clients_need_a_certificate() {
    let program = compile(EVERYTHING);
    let serve = |tls, listener| {
        let config = Config {
            tls: Some(tls),
            ..Config::default()
        };
        let switch = Standalone::new(Arc::clone(&program), None, Clock::manual()).expect("runs");
        let server = P4Runtime::new(Arc::new(switch), None, config).expect("starts");
        tokio::spawn(p4rt::serve_on(server, listener, std::future::pending()));
    };
    let is_answered = async |channel| {
        let request = pb::CapabilitiesRequest::default();
        Client::new(channel).capabilities(request).await.is_ok()
    };
    clients_need_a_certificate(serve, is_answered).await;
}

#[tokio::test]
async fn a_batch_that_packets_would_wait_long_for_is_refused() {
    let config = Config {
        max_atomic_updates: 2,
        ..Config::default()
    };
    let bench = Bench::new(Some(compile(EVERYTHING)), config).await;
    let _primary = bench.primary().await;
    let batch = |keys: [u8; 3]| {
        let entry = |key| bench.entry("exact_table", vec![exact(1, &[key])], 1);
        keys.map(|key| update(Type::Insert, Entity::TableEntry(entry(key))))
            .to_vec()
    };
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let refused = bench.write_with(batch([1, 2, 3]), atomicity).await;
        assert_eq!(refused.expect_err("too many").code(), Code::ResourceExhausted);
    }
    bench.write(batch([1, 2, 3])).await.expect("nothing was written");
    let two = batch([4, 5, 6])[..2].to_vec();
    let written = bench.write_with(two, Atomicity::DataplaneAtomic).await;
    written.expect("as many as are taken");
}

#[tokio::test]
async fn a_batch_in_many_parts_is_tried_in_order() {
    let bench = Bench::new(Some(compile(EVERYTHING)), Config::default()).await;
    let _primary = bench.primary().await;
    let insert = |key| {
        let entry = bench.entry("exact_table", vec![exact(1, &[key])], 1);
        update(Type::Insert, Entity::TableEntry(entry))
    };
    // More than are given to the switch at a time.
    let mut updates = vec![insert(1); 20_000];
    updates.push(insert(2));
    updates.push(insert(2));
    let refused = bench.write(updates).await.expect_err("most are there already");
    let said = "20000 of 20002 updates failed; the first is number 1:";
    assert!(refused.message().starts_with(said), "{refused}");
    assert!(bench.write(vec![insert(3)]).await.is_ok());
    assert_eq!(
        bench.write(vec![insert(2)]).await.map_err(|s| s.code()),
        Err(Code::Unknown)
    );
}
