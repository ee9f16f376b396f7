//! HTTP of a run: asks the thread that watches over it.

use super::control::Event;
use crate::output::Messages;
use crate::threads;
use anyhow::{Context, Result};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use weir_server::http::{Source, serve_on};

/// The server, on a thread and a runtime of its own, so that readers of counters do not delay a
/// control plane. Dropping this ends it.
pub struct Http {
    state: Arc<State>,
    runtime: Option<tokio::runtime::Runtime>,
}

struct State {
    // A `Sender` is not shared between threads by itself.
    events: Mutex<Sender<Event>>,
    is_ready: AtomicBool,
}

impl Source for State {
    fn metrics(&self) -> Pin<Box<dyn Future<Output = Option<String>> + Send>> {
        let (sender, receiver) = oneshot::channel();
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = events.send(Event::Metrics(sender)).is_ok();
        Box::pin(async move { if asked { receiver.await.ok() } else { None } })
    }

    fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }
}

/// The socket of the server and its thread, before the server starts.
pub struct Listening {
    runtime: tokio::runtime::Runtime,
    listener: TcpListener,
}

impl Listening {
    /// Listens. Clients that connect wait for [`Listening::serve`].
    pub fn open(address: SocketAddr) -> Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("http").enable_all();
        let runtime = threads::runtime("HTTP", &mut builder)?;
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .with_context(|| format!("cannot listen at {address} for HTTP"))?;
        Ok(Listening { runtime, listener })
    }

    /// Starts the server.
    pub fn serve(self, events: &Sender<Event>, messages: &Messages) -> Result<Http> {
        let Listening { runtime, listener } = self;
        let bound = listener.local_addr()?;
        let state = Arc::new(State {
            events: Mutex::new(events.clone()),
            is_ready: AtomicBool::new(true),
        });
        let source: Arc<dyn Source> = Arc::clone(&state) as Arc<dyn Source>;
        let events = events.clone();
        runtime.spawn(async move {
            let why = match serve_on(source, listener).await {
                Ok(()) => "it has ended".to_owned(),
                Err(error) => error.to_string(),
            };
            let _ = events.send(Event::Trouble(format!("HTTP: {why}")));
        });
        messages.line(format!("HTTP at {bound}"));
        Ok(Http {
            state,
            runtime: Some(runtime),
        })
    }
}

impl Http {
    /// Packets are not taken any more.
    pub fn stopping(&self) {
        self.state.is_ready.store(false, Ordering::Relaxed);
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
