//! Limits: each with an error of its own.

use crate::common::{Bench, Client, NAME, Session, compile, source, update};
use std::sync::Arc;
use tonic::Code;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_server::bfrt::{self, BfRuntime, Config};
use weir_server::{Clock, Device, Standalone, Tls};

#[tokio::test]
async fn too_many_updates_entities_and_bytes_are_refused() {
    let config = Config {
        max_updates: 3,
        max_queries: 2,
        max_read_bytes: 100,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let inserts = |keys: std::ops::Range<u32>| {
        keys.map(|k| update(Type::Insert, Entity::TableEntry(bench.entry(k, k))))
            .collect()
    };
    let refused = bench.write(inserts(0..4)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(bench.write(inserts(0..3)).await.is_ok());
    let (_, status) = bench
        .read_all(vec![Entity::TableEntry(bench.exact("In.exact_keys", 1)); 3])
        .await;
    assert_eq!(status.map(|s| s.code()), Some(Code::ResourceExhausted));
    let (_, status) = bench
        .read_all(vec![Entity::TableEntry(bench.all("In.exact_keys"))])
        .await;
    assert_eq!(status.map(|s| s.code()), Some(Code::ResourceExhausted));
}

#[tokio::test]
async fn there_are_no_more_streams_than_the_limit() {
    let config = Config {
        max_streams: 1,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let _first: Session = bench.subscribed(1).await;
    let (_out, requests) = tokio::sync::mpsc::channel(1);
    let refused = bench
        .client
        .clone()
        .stream_channel(tokio_stream::wrappers::ReceiverStream::new(requests))
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::ResourceExhausted);
}

const CA: &str = include_str!("../p4runtime/tls/ca.pem");

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
    let request = weir_proto::bfrt_proto::GetForwardingPipelineConfigRequest::default();
    Client::new(channel)
        .get_forwarding_pipeline_config(request)
        .await
        .is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_mutual_tls_clients_need_a_certificate() {
    let program = compile(&source());
    for is_mutual in [false, true] {
        let config = Config {
            tls: Some(Tls {
                certificate: include_bytes!("../p4runtime/tls/server.pem").to_vec(),
                key: include_bytes!("../p4runtime/tls/server.key").to_vec(),
                client_authorities: is_mutual.then(|| CA.as_bytes().to_vec()),
            }),
            ..Config::default()
        };
        let switch = Standalone::new(Arc::clone(&program), None, Clock::manual()).expect("runs");
        let device = Device::new(Arc::new(switch), Some(Arc::clone(&program)), NAME, 16).expect("is described");
        let server = BfRuntime::on(&device, config);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(bfrt::serve_on(server, listener, std::future::pending()));
        let own = (
            include_str!("../p4runtime/tls/client.pem"),
            include_str!("../p4runtime/tls/client.key"),
        );
        assert!(is_answered(address, Some(own)).await);
        assert_eq!(is_answered(address, None).await, !is_mutual);
        // Without TLS nobody is answered.
        let plain = tonic::transport::Channel::from_shared(format!("http://{address}")).expect("a URI");
        let request = weir_proto::bfrt_proto::GetForwardingPipelineConfigRequest::default();
        let answer = Client::new(plain.connect_lazy())
            .get_forwarding_pipeline_config(request)
            .await;
        assert!(answer.is_err());
    }
}
