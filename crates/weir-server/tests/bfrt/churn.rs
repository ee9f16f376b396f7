//! Two hundred connections that open and die while others write: ids and bonds stay right, and nothing is left of them.

use crate::common::*;
use crate::shared::{Memory, Numbers, long_churn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tonic::Code;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use weir_proto::bfrt_proto::update::Type;
use weir_server::bfrt::Config;

const CONNECTIONS: u64 = 200;
/// Numbers of clients, fewer than connections: some are taken.
const IDS: u64 = 150;

/// What all connections share.
struct Churn {
    bench: Bench,
    over: AtomicBool,
    /// Streams that were answered.
    lives: AtomicU64,
    /// Clients that hold the program.
    holders: AtomicU64,
    /// How often one has held it.
    held: AtomicU64,
}

async fn bind(client: &mut Client, id: u32) -> Result<(), Code> {
    let request = pb::SetForwardingPipelineConfigRequest {
        client_id: id,
        action: Action::Bind.into(),
        config: vec![pb::ForwardingPipelineConfig {
            p4_name: NAME.to_owned(),
            ..pb::ForwardingPipelineConfig::default()
        }],
        ..pb::SetForwardingPipelineConfigRequest::default()
    };
    let answer = client.set_forwarding_pipeline_config(request).await;
    answer.map(|_| ()).map_err(|s| s.code())
}

/// One connection, from its beginning to a death at a moment that nobody knows.
async fn live(churn: &Churn, n: &mut Numbers) {
    if n.below(8) == 0 {
        // One that is no gRPC, or has just begun to be.
        use tokio::io::AsyncWriteExt;
        let mut raw = tokio::net::TcpStream::connect(churn.bench.address)
            .await
            .expect("connects");
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let _ = raw.write_all(&preface[..n.below(preface.len() as u64) as usize]).await;
        return;
    }
    let mut client = connect(churn.bench.address).await;
    let id = n.below(IDS) as u32 + 1;
    let mut session = Session::open(&client, id).await;
    if n.below(8) == 0 {
        return;
    }
    session.subscribe(everything()).await;
    if n.below(8) == 0 {
        return;
    }
    let told = tokio::time::timeout(Duration::from_secs(60), session.incoming.message()).await;
    match told.expect("nobody stalls") {
        // The number is taken.
        Err(status) => return assert_eq!(status.code(), Code::InvalidArgument),
        Ok(message) => assert!(message.is_some_and(|m| m.update.is_some())),
    }
    churn.lives.fetch_add(1, Ordering::Relaxed);
    match bind(&mut client, id).await {
        Ok(()) => {
            assert_eq!(churn.holders.fetch_add(1, Ordering::SeqCst), 0, "two hold the program");
            churn.held.fetch_add(1, Ordering::Relaxed);
            let key = 100 + n.below(100) as u32;
            let mut request = write_request(
                vec![update(
                    Type::InsertOrModify,
                    Entity::TableEntry(churn.bench.entry(key, 1)),
                )],
                pb::write_request::Atomicity::ContinueOnError,
            );
            // By the bond, not by the name.
            request.p4_name.clear();
            request.client_id = id;
            let written = client.write(request).await;
            assert!(written.is_ok(), "{written:?}");
            churn.holders.fetch_sub(1, Ordering::SeqCst);
        }
        Err(code) => assert_eq!(code, Code::AlreadyExists),
    }
    if n.below(2) == 0 {
        tokio::time::sleep(Duration::from_millis(n.below(20))).await;
    }
}

async fn churn(duration: Duration) -> Memory {
    let config = Config {
        max_streams: 1000,
        ..Config::default()
    };
    let churn = Arc::new(Churn {
        bench: Bench::with(config).await,
        over: AtomicBool::new(false),
        lives: AtomicU64::new(0),
        holders: AtomicU64::new(0),
        held: AtomicU64::new(0),
    });
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            let churn = Arc::clone(&churn);
            tokio::spawn(async move {
                let mut n = Numbers(number);
                while !churn.over.load(Ordering::Relaxed) {
                    live(&churn, &mut n).await;
                }
            })
        })
        .collect();
    let begin = Instant::now();
    let mut memory = Memory::default();
    let mut value = 0;
    assert_eq!(churn.bench.insert(churn.bench.entry(1, 0)).await, Ok(()));
    while begin.elapsed() < duration {
        value += 1;
        assert_eq!(churn.bench.modify(churn.bench.entry(1, value)).await, Ok(()));
        memory.look(begin.elapsed(), duration, churn.lives.load(Ordering::Relaxed));
        assert!(
            connections.iter().all(|c| !c.is_finished()),
            "a connection has met what must not be"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    churn.over.store(true, Ordering::Relaxed);
    for connection in connections {
        connection.await.expect("no connection has met what must not be");
    }
    assert_eq!(churn.bench.ask(1, 0, 1), Some(value));
    for _ in 0..1000 {
        if churn.bench.server.clients() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(churn.bench.server.clients(), 0);
    assert!(churn.held.load(Ordering::Relaxed) > 0);
    let _last = churn.bench.bound(1).await;
    memory.lives = churn.lives.load(Ordering::Relaxed);
    memory
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn while_connections_come_and_go_others_write_and_nothing_is_left() {
    let memory = churn(Duration::from_secs(3)).await;
    assert!(memory.lives >= CONNECTIONS, "{memory:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes ten minutes, or WEIR_CHURN_SECONDS"]
async fn while_connections_come_and_go_for_long_memory_stays() {
    churn(long_churn()).await.is_flat();
}
