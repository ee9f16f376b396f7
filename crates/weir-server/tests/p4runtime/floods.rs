//! One client that opens connections, claims bytes or says nothing takes nothing from the others.

use crate::common::*;
use crate::shared::claims::{claim, one_of_two_is_refused};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_server::p4rt::Config;

const WRITE: &str = "/p4.v1.P4Runtime/Write";

async fn bench(config: Config) -> Bench {
    Bench::new(Some(compile(EVERYTHING)), config).await
}

/// Whether the server ends a connection by itself.
async fn is_ended(mut connection: TcpStream) -> bool {
    let mut heard = Vec::new();
    let end = connection.read_to_end(&mut heard);
    tokio::time::timeout(Duration::from_secs(60), end).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_are_refused_and_others_go_on() {
    let bench = bench(Config {
        max_connections: 3,
        ..Config::default()
    })
    .await;
    let mut primary = bench.primary().await;
    // Each has a stream, and so a request in progress.
    let mut others = Vec::new();
    for id in [2, 3] {
        let mut other = Controller::open(&connect(bench.address).await).await;
        other.arbitrate(hello("other", Some(id))).await;
        assert_eq!(other.code().await, 0);
        others.push(other);
    }
    for _ in 0..9 {
        let beyond = TcpStream::connect(bench.address).await.expect("the kernel takes it");
        assert!(is_ended(beyond).await);
    }
    let capabilities = pb::CapabilitiesRequest::default();
    assert!(bench.client.clone().capabilities(capabilities).await.is_ok());
    primary.arbitrate(hello("", Some(1))).await;
    assert_eq!(primary.code().await, 0);
    // Whose place is free is for the next one.
    drop(others);
    let next = async {
        while !is_answered(bench.address).await {
            tokio::task::yield_now().await;
        }
    };
    let next = tokio::time::timeout(Duration::from_secs(60), next).await;
    assert!(next.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_do_nothing_keep_nobody_out() {
    let bench = bench(Config {
        max_connections: 3,
        ..Config::default()
    })
    .await;
    let mut primary = bench.primary().await;
    let mut idle = Vec::new();
    for _ in 0..9 {
        idle.push(connect(bench.address).await);
        idle.push(connect(bench.address).await);
        assert!(is_answered(bench.address).await);
    }
    // Who has a stream stays.
    primary.arbitrate(hello("", Some(1))).await;
    assert_eq!(primary.code().await, 0);
}

/// Whether a new connection is let in.
async fn is_answered(address: std::net::SocketAddr) -> bool {
    let channel = tonic::transport::Channel::from_shared(format!("http://{address}")).expect("a URI");
    let request = pb::CapabilitiesRequest::default();
    Client::new(channel.connect_lazy()).capabilities(request).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_peers_go_and_those_that_answer_pings_stay() {
    let bench = bench(Config {
        keepalive: Duration::from_secs(1),
        ..Config::default()
    })
    .await;
    let mut primary = bench.primary().await;
    for _ in 0..2 {
        let silent = TcpStream::connect(bench.address).await.expect("the kernel takes it");
        assert!(is_ended(silent).await);
    }
    primary.arbitrate(hello("", Some(1))).await;
    assert_eq!(primary.code().await, 0);
}

/// Answers a number of the server's pings, as an idle client does.
async fn answer_pings(connection: &mut TcpStream, mut pings: usize) -> std::io::Result<()> {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const PING: u8 = 6;
    connection.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
    connection.write_all(&SETTINGS).await?;
    while pings > 0 {
        let mut header = [0; 9];
        connection.read_exact(&mut header).await?;
        let [a, b, c, kind, flags, ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        connection.read_exact(&mut payload).await?;
        if (kind, flags) == (PING, 0) {
            header[4] = 1;
            connection.write_all(&[&header[..], &payload].concat()).await?;
            pings -= 1;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_the_protocol_and_asks_nothing_stays() {
    let bench = bench(Config {
        keepalive: Duration::from_millis(300),
        ..Config::default()
    })
    .await;
    let mut idle = TcpStream::connect(bench.address).await.expect("the kernel takes it");
    let answered = tokio::time::timeout(Duration::from_secs(60), answer_pings(&mut idle, 5)).await;
    assert!(answered.expect("is asked").is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_beyond_the_budget_are_refused_and_given_back_while_writes_go_on() {
    let bench = bench(Config {
        max_message_bytes: 4 << 20,
        max_request_bytes: 4 << 20,
        ..Config::default()
    })
    .await;
    let _primary = bench.primary().await;
    let claimed = one_of_two_is_refused(bench.address, WRITE, 3 << 20).await;
    let entry = |key: u8| pb::TableEntry {
        metadata: vec![7; 60_000],
        ..bench.entry("exact_table", vec![exact(1, &[key])], 1)
    };
    // More than two mebibytes.
    let batch = |key: u8| {
        let whole = update(Type::Insert, Entity::TableEntry(entry(key)));
        let again = update(Type::Modify, Entity::TableEntry(entry(key)));
        std::iter::once(whole)
            .chain(std::iter::repeat_n(again, 40))
            .collect::<Vec<_>>()
    };
    let short = pb::TableEntry {
        metadata: Vec::new(),
        ..entry(1)
    };
    assert_eq!(bench.insert(Entity::TableEntry(short)).await, Ok(()));
    let long = || bench.write(batch(2));
    let refused = long().await.expect_err("there is no room");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("may have 4194304 at a time"), "{refused}");
    // Who goes away gives back what it had.
    claimed.abort();
    let written = async {
        while let Err(status) = long().await {
            assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        }
    };
    let written = tokio::time::timeout(Duration::from_secs(60), written).await;
    assert!(written.is_ok());
    // As does a request that is done: together they would not fit.
    for key in 3..6 {
        let updates = batch(key);
        let mut written = bench.write(updates.clone()).await;
        while written.as_ref().is_err_and(|s| s.code() == Code::ResourceExhausted) {
            written = bench.write(updates.clone()).await;
        }
        assert!(written.is_ok(), "{written:?}");
    }
    // What is longer than any message takes nothing.
    let too_long = claim(bench.address, WRITE, 1 << 30).await;
    assert_eq!(too_long.expect("is answered"), Code::OutOfRange);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_which_nothing_comes_is_given_up() {
    let bench = bench(Config {
        receive_timeout: Duration::from_millis(200),
        ..Config::default()
    })
    .await;
    let claimed = claim(bench.address, WRITE, 1 << 20).await;
    assert_eq!(claimed.expect("is answered"), Code::DeadlineExceeded);
    // A stream says something when it likes.
    let mut controller = Controller::open(&bench.client).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    controller.arbitrate(hello("", Some(1))).await;
    assert_eq!(controller.code().await, 0);
}
