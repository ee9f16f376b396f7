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

const CA: &str = include_str!("tls/ca.pem");

/// Whether a client with this identity gets an answer by TLS.
async fn is_answered(address: std::net::SocketAddr, identity: Option<(&str, &str)>) -> bool {
    use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(CA))
        .domain_name("localhost");
    let tls = match identity {
        Some((certificate, key)) => tls.identity(Identity::from_pem(certificate, key)),
        None => tls,
    };
    let channel = Channel::from_shared(format!("https://{address}")).expect("a URI");
    let Ok(channel) = channel.tls_config(tls).expect("certificates").connect().await else {
        return false;
    };
    let mut client = weir_proto::p4::v1::p4_runtime_client::P4RuntimeClient::new(channel);
    client.capabilities(pb::CapabilitiesRequest::default()).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_mutual_tls_clients_need_a_certificate() {
    for is_mutual in [false, true] {
        let switch = weir_server::Standalone::new(compile(EVERYTHING), None, weir_server::Clock::manual());
        let config = Config {
            tls: Some(weir_server::p4rt::Tls {
                certificate: include_bytes!("tls/server.pem").to_vec(),
                key: include_bytes!("tls/server.key").to_vec(),
                client_authorities: is_mutual.then(|| CA.as_bytes().to_vec()),
            }),
            ..Config::default()
        };
        let switch = std::sync::Arc::new(switch.expect("runs"));
        let server = weir_server::p4rt::P4Runtime::new(switch, None, config).expect("starts");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(weir_server::p4rt::serve_on(server, listener, std::future::pending()));
        let own = (include_str!("tls/client.pem"), include_str!("tls/client.key"));
        assert!(is_answered(address, Some(own)).await);
        assert_eq!(is_answered(address, None).await, !is_mutual);
        // Without TLS nobody is answered.
        let plain = tonic::transport::Channel::from_shared(format!("http://{address}")).expect("a URI");
        let mut client = weir_proto::p4::v1::p4_runtime_client::P4RuntimeClient::new(plain.connect_lazy());
        assert!(client.capabilities(pb::CapabilitiesRequest::default()).await.is_err());
    }
}
