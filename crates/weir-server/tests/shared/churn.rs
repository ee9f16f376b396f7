//! Two hundred connections that open and die while one that stays writes.

use super::Numbers;
use super::memory::Memory;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Connections at a time.
const CONNECTIONS: u64 = 200;
/// How long they come and go where nothing else is said.
const SHORT: Duration = Duration::from_secs(3);
/// From how long on memory is looked at: before that it may still warm up.
const LONG: Duration = Duration::from_secs(60);

/// A server whose connections come and go, and what is done by them.
pub trait Churn: Send + Sync + 'static {
    fn address(&self) -> SocketAddr;

    /// One connection, which is dropped at a random moment. Returns whether its stream was
    /// answered.
    fn live(&self, n: &mut Numbers) -> impl Future<Output = bool> + Send;

    /// The client that stays writes a value. That succeeds all the time.
    fn write(&self, value: u32) -> impl Future<Output = ()> + Send;

    /// The value that a packet finds.
    fn written(&self) -> Option<u32>;

    /// Clients that the server knows of.
    fn clients(&self) -> usize;
}

/// A connection that sends no gRPC, or only the start of it.
async fn no_grpc(address: SocketAddr, n: &mut Numbers) {
    use tokio::io::AsyncWriteExt;
    let mut raw = tokio::net::TcpStream::connect(address).await.expect("connects");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let _ = raw.write_all(&preface[..n.below(preface.len() as u64) as usize]).await;
}

/// How long connections come and go: `WEIR_CHURN_SECONDS` makes it longer.
fn duration() -> Duration {
    let said = std::env::var("WEIR_CHURN_SECONDS").ok();
    let said = said.map(|s| Duration::from_secs(s.parse().expect("WEIR_CHURN_SECONDS is a number")));
    said.map_or(SHORT, |said| said.max(SHORT))
}

/// Lets connections come and go while the client that stays writes. What it writes arrives, and
/// when all have gone, it too, nothing is left of them. Memory stays what it is if there is time to
/// see that. `stays` is the stream of the client that stays.
pub async fn come_and_go<C: Churn, S>(churn: &Arc<C>, stays: S) {
    let duration = duration();
    let (over, lives) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let connection = |number| {
        let (churn, over, lives) = (Arc::clone(churn), Arc::clone(&over), Arc::clone(&lives));
        tokio::spawn(async move {
            let mut n = Numbers(number);
            while !over.load(Ordering::Relaxed) {
                if n.below(8) == 0 {
                    no_grpc(churn.address(), &mut n).await;
                } else if churn.live(&mut n).await {
                    lives.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    };
    let connections: Vec<_> = (0..CONNECTIONS).map(connection).collect();
    let begin = Instant::now();
    let mut memory = Memory::default();
    let mut value = 0;
    while begin.elapsed() < duration {
        value += 1;
        churn.write(value).await;
        memory.look(begin.elapsed(), duration, lives.load(Ordering::Relaxed));
        assert!(
            connections.iter().all(|c| !c.is_finished()),
            "a connection has met what must not be"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    over.store(true, Ordering::Relaxed);
    for connection in connections {
        connection.await.expect("no connection has met what must not be");
    }
    assert_eq!(churn.written(), Some(value));
    drop(stays);
    for _ in 0..1000 {
        if churn.clients() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(churn.clients(), 0);
    let lives = lives.load(Ordering::Relaxed);
    assert!(lives >= CONNECTIONS, "only {lives} streams were answered");
    if duration >= LONG {
        memory.is_flat();
    }
}
