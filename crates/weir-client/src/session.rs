//! The stream on which a client says who it is and hears what the target tells.

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

/// Messages for the target that wait to be sent.
const OUTGOING: usize = 1024;

/// What the stream and the requests share.
pub struct Shared {
    pub options: Options,
    pub transport: Transport,
    pub hub: Hub,
    /// The program's tables, replaced when there is another program.
    pub schema: Mutex<Arc<Schema>>,
    pub standing: watch::Sender<Standing>,
    /// Where messages for the target go while there is a stream.
    pub outgoing: Mutex<Option<mpsc::Sender<Bytes>>>,
    /// The client has said goodbye.
    pub closing: std::sync::atomic::AtomicBool,
    /// How often the stream has been opened.
    pub generation: watch::Sender<u64>,
}

impl Shared {
    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_schema(&self, schema: Schema) {
        *self.schema.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(schema);
    }

    /// Sends a message on the stream, waiting for room.
    pub async fn send(&self, message: Bytes) -> Result<(), Error> {
        let outgoing = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let outgoing = outgoing.ok_or(Error::Closed)?;
        outgoing.send(message).await.map_err(|_| Error::Closed)
    }

    pub fn set_outgoing(&self, sender: Option<mpsc::Sender<Bytes>>) {
        *self.outgoing.lock().unwrap_or_else(PoisonError::into_inner) = sender;
    }
}

/// Keeps the stream until nobody holds the client any more.
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

/// Opens a stream and listens until it ends; why it has.
async fn once(shared: &Arc<Shared>, wait: &mut Duration) -> String {
    let (sender, receiver) = mpsc::channel(OUTGOING);
    let (hello, path) = match shared.options.protocol {
        Protocol::P4Runtime => (p4rt::hello(&shared.options), "/p4.v1.P4Runtime/StreamChannel"),
        Protocol::BfRuntime => (bfrt::hello(&shared.options), "/bfrt_proto.BfRuntime/StreamChannel"),
    };
    // Many servers do not answer before the first message.
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

/// The next message; the stream ends, too, once only this task holds the client.
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
