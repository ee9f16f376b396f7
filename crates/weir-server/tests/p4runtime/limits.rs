//! What the server bounds, and transport security.

use crate::common::*;
use crate::shared::tls::clients_need_a_certificate;
use std::sync::Arc;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
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

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_four_mebibytes_and_more_are_taken_and_given() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let entry = pb::TableEntry {
        metadata: (0..5 << 20).map(|n: u32| (n % 251) as u8).collect(),
        ..bench.entry("exact_table", vec![exact(1, &[1])], 1)
    };
    bench.insert(Entity::TableEntry(entry.clone())).await.expect("is taken");
    let query = pb::TableEntry {
        table_id: entry.table_id,
        ..pb::TableEntry::default()
    };
    assert!(bench.read(Entity::TableEntry(query)).await == [Entity::TableEntry(entry)]);
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
