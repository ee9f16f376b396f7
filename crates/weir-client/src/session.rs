//! The client's stream: it identifies the client and receives notifications. It is reopened when
//! the connection breaks.

mod bfrt;
mod p4rt;

pub use p4rt::election;

use crate::error::Error;
use crate::events::{Hub, Standing};
use crate::options::Options;
use crate::schema::{Protocol, Schema};
use crate::transport::Transport;
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Messages queued for the target.
const OUTGOING: usize = 1024;

/// State shared by the stream and the requests.
pub struct Shared {
    pub options: Options,
    pub transport: Transport,
    pub hub: Hub,
    /// The schema of the program, replaced when the program changes.
    pub schema: Mutex<Arc<Schema>>,
    pub standing: watch::Sender<Standing>,
    /// Queue of messages for the target, while there is a stream.
    pub outgoing: Mutex<Option<mpsc::Sender<Bytes>>>,
    /// The client is closing.
    pub closing: std::sync::atomic::AtomicBool,
    /// The number of times that the stream was opened.
    pub generation: watch::Sender<u64>,
}

impl Shared {
    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_schema(&self, schema: Schema) {
        *self.schema.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(schema);
    }

    /// Sends a message on the stream; waits while the queue is full.
    pub async fn send(&self, message: Bytes) -> Result<(), Error> {
        let outgoing = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let outgoing = outgoing.ok_or(Error::Closed)?;
        outgoing.send(message).await.map_err(|_| Error::Closed)
    }

    pub fn set_outgoing(&self, sender: Option<mpsc::Sender<Bytes>>) {
        *self.outgoing.lock().unwrap_or_else(PoisonError::into_inner) = sender;
    }
}

/// Keeps the stream open, and reopens it, until the client is dropped.
pub async fn run(shared: std::sync::Weak<Shared>) {
    let mut wait = Duration::ZERO;
    loop {
        let Some(strong) = shared.upgrade() else { return };
        let patience = strong.options.reconnect;
        let ended = once(&strong, &mut wait).await;
        strong.set_outgoing(None);
        strong.standing.send_replace(Standing::Lost(ended));
        let is_closing = strong.closing.load(std::sync::atomic::Ordering::Relaxed);
        let Some(first) = patience.filter(|_| !is_closing) else {
            return;
        };
        drop(strong);
        wait = if wait.is_zero() {
            first
        } else {
            (wait * 2).min(first * 30)
        };
        tokio::time::sleep(wait).await;
    }
}

/// Opens a stream and receives until it ends. Returns the reason.
async fn once(shared: &Arc<Shared>, wait: &mut Duration) -> String {
    let (sender, receiver) = mpsc::channel(OUTGOING);
    let (hello, path) = match shared.options.protocol {
        Protocol::P4Runtime => (p4rt::hello(&shared.options), "/p4.v1.P4Runtime/StreamChannel"),
        Protocol::BfRuntime => (bfrt::hello(&shared.options), "/bfrt_proto.BfRuntime/StreamChannel"),
    };
    // Many servers send no response headers before they receive the first message.
    let _ = sender.send(hello).await;
    let opened = shared.transport.duplex(path, ReceiverStream::new(receiver)).await;
    let mut incoming = match opened {
        Ok(incoming) => incoming,
        Err(status) => return text(&status),
    };
    shared.set_outgoing(Some(sender));
    loop {
        match next(&mut incoming, shared).await {
            Ok(Some(message)) => {
                *wait = Duration::ZERO;
                match shared.options.protocol {
                    Protocol::P4Runtime => p4rt::hear(shared, &message).await,
                    Protocol::BfRuntime => bfrt::hear(shared, &message).await,
                }
            }
            Ok(None) => return "the target has ended the stream".to_owned(),
            Err(status) => return text(&status),
        }
    }
}

/// The next message. The stream also ends when only this task still holds the client.
async fn next(incoming: &mut Streaming<Bytes>, shared: &Arc<Shared>) -> Result<Option<Bytes>, Status> {
    loop {
        tokio::select! {
            message = incoming.message() => return message,
            () = tokio::time::sleep(Duration::from_millis(200)) => {
                if Arc::strong_count(shared) == 1 {
                    return Ok(None);
                }
            }
        }
    }
}

fn text(status: &Status) -> String {
    let code = crate::error::code_name(status.code());
    if status.message().is_empty() {
        code.to_owned()
    } else {
        format!("{code}: {}", status.message())
    }
}
