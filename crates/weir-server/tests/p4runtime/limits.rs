//! What the server bounds, and transport security.

use crate::common::*;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_server::p4rt::Config;

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
async fn a_reader_that_does_not_read_is_ended_and_writers_go_on() {
    let config = Config {
        read_chunk: 16,
        read_ahead: 1,
        read_patience: std::time::Duration::from_millis(300),
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
    let stalled = bench.client.clone().read(query).await.expect("begins").into_inner();
    let entry = bench.entry("exact_table", vec![exact(1, &[1])], 1);
    let written = bench.insert(Entity::TableEntry(entry));
    let written = tokio::time::timeout(std::time::Duration::from_secs(10), written).await;
    written.expect("in time").expect("fits");
    drop(stalled);
}
