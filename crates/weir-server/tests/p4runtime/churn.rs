//! Two hundred connections that open and die while others write: who is primary stays right, and nothing is left of them.

use crate::common::*;
use crate::shared::{Memory, Numbers, long_churn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_server::p4rt::Config;

const CONNECTIONS: u64 = 200;
/// The election id of who is primary of the role without a name all the time; nobody has a higher one.
const STEADY: u64 = 1 << 40;

/// What all connections share.
struct Churn {
    bench: Bench,
    elections: AtomicU64,
    over: AtomicBool,
    /// Streams that were told who is primary.
    lives: AtomicU64,
}

fn entry(bench: &Bench, key: u8, value: u32) -> Entity {
    Entity::TableEntry(bench.entry("exact_table", vec![exact(1, &[key])], value))
}

async fn write(client: &mut Client, role: &str, election: u64, of: Entity, ty: Type) -> Result<(), Code> {
    let request = pb::WriteRequest {
        device_id: 1,
        role: role.to_owned(),
        election_id: Some(pb::Uint128 { high: 0, low: election }),
        updates: vec![update(ty, of)],
        ..pb::WriteRequest::default()
    };
    client.write(request).await.map(|_| ()).map_err(|s| s.code())
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
    let channel = tonic::transport::Channel::from_shared(format!("http://{}", churn.bench.address)).expect("a URI");
    let mut client = Client::new(channel.connect().await.expect("connects"));
    let mut controller = Controller::open(&client).await;
    if n.below(8) == 0 {
        return;
    }
    let is_steady_role = n.below(3) == 0;
    let role = match is_steady_role {
        true => String::new(),
        false => format!("role{}", n.below(4)),
    };
    let own = churn.elections.fetch_add(1, Ordering::Relaxed);
    controller.arbitrate(hello(&role, Some(own))).await;
    if n.below(8) == 0 {
        return;
    }
    let told = tokio::time::timeout(Duration::from_secs(60), controller.incoming.message()).await;
    let told = told
        .expect("nobody stalls")
        .expect("the stream is good")
        .expect("goes on");
    let Some(pb::stream_message_response::Update::Arbitration(told)) = told.update else {
        panic!("{told:?} is not about who is primary")
    };
    churn.lives.fetch_add(1, Ordering::Relaxed);
    let highest = told.election_id.map_or(0, |e| e.low);
    let code = told.status.map_or(-1, |s| s.code);
    match code {
        0 => assert!(highest == own && !is_steady_role, "{highest} {own} {role}"),
        // There is a higher one, whose stream lives or does not.
        5 | 6 => assert!(
            highest > own && (!is_steady_role || code == 6),
            "{highest} {own} {role} {code}"
        ),
        code => panic!("the status is {code}"),
    }
    assert!(!is_steady_role || highest == STEADY);
    let key = 100 + n.below(100) as u8;
    let ty = [Type::Insert, Type::Modify, Type::Delete][n.below(3) as usize];
    let written = write(&mut client, &role, own, entry(&churn.bench, key, 1), ty).await;
    // Who was not primary then is not now: ids that have been seen only grow.
    let may = code == 0 && matches!(written, Ok(()) | Err(Code::Unknown | Code::PermissionDenied));
    assert!(
        may || written == Err(Code::PermissionDenied),
        "{written:?} with status {code}"
    );
    if n.below(2) == 0 {
        tokio::time::sleep(Duration::from_millis(n.below(20))).await;
    }
}

async fn churn(duration: Duration) -> Memory {
    let config = Config {
        max_streams: 1000,
        max_streams_per_role: 1000,
        ..Config::default()
    };
    let churn = Arc::new(Churn {
        bench: Bench::new(Some(compile(EVERYTHING)), config).await,
        elections: AtomicU64::new(1),
        over: AtomicBool::new(false),
        lives: AtomicU64::new(0),
    });
    let mut steady = Controller::open(&churn.bench.client).await;
    steady.arbitrate(hello("", Some(STEADY))).await;
    assert_eq!(steady.code().await, 0);
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
    let mut client = churn.bench.client.clone();
    let first = write(&mut client, "", STEADY, entry(&churn.bench, 1, 0), Type::Insert).await;
    first.expect("the steady one writes");
    let begin = Instant::now();
    let mut memory = Memory::default();
    let mut value = 0;
    while begin.elapsed() < duration {
        value += 1;
        let written = write(&mut client, "", STEADY, entry(&churn.bench, 1, value), Type::Modify).await;
        assert_eq!(written, Ok(()), "the steady primary is primary all the time");
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
    drop(steady);
    for _ in 0..1000 {
        if churn.bench.server.streams() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(churn.bench.server.streams(), 0);
    // What was seen is remembered: a lower id is not primary, where there is none.
    for role in ["", "role0", "role1", "role2", "role3"] {
        let mut last = Controller::open(&churn.bench.client).await;
        last.arbitrate(hello(role, Some(0))).await;
        assert_eq!(last.code().await, 5);
        last.arbitrate(hello(role, Some(STEADY + 1))).await;
        assert_eq!(last.code().await, 0);
    }
    memory.lives = churn.lives.load(Ordering::Relaxed);
    memory
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn while_connections_come_and_go_the_primary_writes_and_nothing_is_left() {
    let memory = churn(Duration::from_secs(3)).await;
    assert!(memory.lives >= CONNECTIONS, "{memory:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes ten minutes, or WEIR_CHURN_SECONDS"]
async fn while_connections_come_and_go_for_long_memory_stays() {
    churn(long_churn()).await.is_flat();
}
