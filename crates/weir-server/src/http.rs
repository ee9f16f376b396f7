//! The HTTP endpoint for monitoring: `/metrics` for Prometheus, `/healthz`, `/readyz`.
//!
//! It is read-only. The metrics come from a [`Source`]; this module knows no switch.

use crate::connections::{Connection, ConnectionLimits, Incoming};
use crate::peers::Peer;
use axum::Router;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::IncomingStream;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// The format of `/metrics`: Prometheus' text, version 0.0.4.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long the switch may take to report its counters.
const METRICS_TIMEOUT: Duration = Duration::from_secs(5);

/// The limits of connections. A scraper with longer intervals opens a new connection each time.
const CONNECTION_LIMITS: ConnectionLimits = ConnectionLimits {
    max_connections: 64,
    handshake_timeout: Duration::from_secs(30),
    idle_timeout: Duration::from_secs(120),
};

/// The source of a switch's metrics.
pub trait Source: Send + Sync + 'static {
    /// All counters as Prometheus' text; `None`: the switch is stopping.
    fn metrics(&self) -> Pin<Box<dyn Future<Output = Option<String>> + Send>>;

    /// Whether packets are processed.
    fn is_ready(&self) -> bool;
}

/// The listener, with limited connections.
struct Limited(Incoming<TcpListener>);

impl axum::serve::Listener for Limited {
    type Io = Connection<TcpStream>;
    type Addr = ();

    async fn accept(&mut self) -> (Connection<TcpStream>, ()) {
        let connection = poll_fn(|context| self.0.poll_connection(context)).await;
        (connection, ())
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The peer of a request.
#[derive(Clone)]
struct Asking(Arc<Peer>);

impl Connected<IncomingStream<'_, Limited>> for Asking {
    fn connect_info(stream: IncomingStream<'_, Limited>) -> Self {
        Asking(Arc::clone(stream.io().peer()))
    }
}

/// Marks the peer as busy until its answer is complete, so that it is not evicted.
async fn busy(ConnectInfo(Asking(peer)): ConnectInfo<Asking>, request: Request, next: Next) -> Response {
    let _busy = peer.busy();
    next.run(request).await
}

/// Serves until the future that this returns is dropped.
///
/// # Errors
/// The listener fails.
pub async fn serve_on(source: Arc<dyn Source>, listener: TcpListener) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/", get(index))
        .with_state(source)
        .layer(middleware::from_fn(busy));
    let listener = Limited(Incoming::new(listener, CONNECTION_LIMITS));
    axum::serve(listener, router.into_make_service_with_connect_info::<Asking>()).await
}

async fn index() -> &'static str {
    "weir: /metrics for Prometheus, /healthz (the process is there), /readyz (packets are processed)\n"
}

async fn metrics(State(source): State<Arc<dyn Source>>) -> Response {
    match tokio::time::timeout(METRICS_TIMEOUT, source.metrics()).await {
        Ok(Some(text)) => ([(header::CONTENT_TYPE, METRICS)], text).into_response(),
        Ok(None) => (StatusCode::SERVICE_UNAVAILABLE, "the switch is stopping\n").into_response(),
        Err(_) => (StatusCode::GATEWAY_TIMEOUT, "the switch does not tell its counters\n").into_response(),
    }
}

async fn ready(State(source): State<Arc<dyn Source>>) -> Response {
    if source.is_ready() {
        "ready\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    struct Silent;

    impl Source for Silent {
        fn metrics(&self) -> Pin<Box<dyn Future<Output = Option<String>> + Send>> {
            Box::pin(async { None })
        }

        fn is_ready(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn unfinished_requests_keep_no_client_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(serve_on(Arc::new(Silent), listener));
        let connect = || async move { TcpStream::connect(address).await.expect("the kernel takes it") };
        let mut unfinished = Vec::new();
        for _ in 0..CONNECTION_LIMITS.max_connections {
            let mut connection = connect().await;
            connection.write_all(b"G").await.expect("is sent");
            unfinished.push(connection);
        }
        for (path, code) in [("healthz", 200), ("readyz", 503)] {
            let mut asking = connect().await;
            let request = format!("GET /{path} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n");
            asking.write_all(request.as_bytes()).await.expect("is sent");
            let mut answer = String::new();
            let heard = asking.read_to_string(&mut answer);
            let heard = tokio::time::timeout(Duration::from_secs(60), heard).await;
            assert!(heard.is_ok_and(|h| h.is_ok()));
            assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
        }
    }
}
