//! A text for Prometheus, served over HTTP.

use crate::output::Messages;
use crate::threads;
use anyhow::{Context, Result};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use weir_server::http::{Source, serve_on};

/// The server. Dropping this ends it.
pub struct Exposition {
    text: Arc<Text>,
    runtime: Option<tokio::runtime::Runtime>,
}

#[derive(Default)]
struct Text(Mutex<String>);

impl Source for Text {
    fn metrics(&self) -> Pin<Box<dyn Future<Output = Option<String>> + Send>> {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move { Some(text) })
    }

    fn is_ready(&self) -> bool {
        true
    }
}

impl Exposition {
    /// Starts the server; it listens when this returns.
    pub fn start(address: SocketAddr, messages: &Messages) -> Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("http").enable_all();
        let runtime = threads::runtime("HTTP", &mut builder)?;
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind(address))
            .with_context(|| format!("cannot listen at {address} for HTTP"))?;
        let bound = listener.local_addr().unwrap_or(address);
        let text = Arc::new(Text::default());
        let source: Arc<dyn Source> = Arc::clone(&text) as Arc<dyn Source>;
        runtime.spawn(serve_on(source, listener));
        messages.line(format!("metrics at http://{bound}/metrics"));
        Ok(Exposition {
            text,
            runtime: Some(runtime),
        })
    }

    /// Replaces the text.
    pub fn set(&self, text: String) {
        *self.text.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl Drop for Exposition {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
