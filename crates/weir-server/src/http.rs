//! HTTP for whoever watches a switch: `/metrics` for Prometheus, `/healthz`, `/readyz`.
//!
//! It only reads. What the switch says of itself comes from a [`Source`]; this module speaks HTTP and knows no switch.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// The format of `/metrics`: Prometheus' text, version 0.0.4.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long the switch may take to tell its counters.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a switch tells of itself.
pub trait Source: Send + Sync + 'static {
    /// All counters as Prometheus' text; `None`: the switch is stopping.
    fn metrics(&self) -> Pin<Box<dyn Future<Output = Option<String>> + Send>>;

    /// Whether packets are processed.
    fn is_ready(&self) -> bool;
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
        .with_state(source);
    axum::serve(listener, router).await
}

async fn index() -> &'static str {
    "weir: /metrics for Prometheus, /healthz (the process is there), /readyz (packets are processed)\n"
}

async fn metrics(State(source): State<Arc<dyn Source>>) -> Response {
    match tokio::time::timeout(PATIENCE, source.metrics()).await {
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
