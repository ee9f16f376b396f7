//! The StreamChannel RPC: subscriptions of clients, and notifications to them.

use super::{Shared, Stream};
use crate::backlog::{self, Droppable, RESERVED_CAPACITY};
use crate::bfrt::clients::StreamId;
use crate::bfrt::errors;
use crate::device::lock;
use crate::refusal::Refusal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::stream_message_request::Update;
use weir_proto::bfrt_proto::stream_message_response::Update as Answer;
use weir_proto::google::rpc;

type Outgoing = Result<pb::StreamMessageResponse, Status>;

/// Opens a stream.
///
/// # Errors
/// The limit of streams is exhausted.
pub fn open(
    shared: &Arc<Shared>,
    incoming: Streaming<pb::StreamMessageRequest>,
) -> Result<ReceiverStream<Outgoing>, Refusal> {
    let (out, stream) = mpsc::channel(shared.config.stream_queue.max(1) + RESERVED_CAPACITY);
    let id = shared.next_stream();
    {
        let mut streams = lock(&shared.streams);
        if streams.len() >= shared.config.max_streams {
            return Err(Refusal::exhausted(format!(
                "there are {} streams already",
                streams.len()
            )));
        }
        streams.insert(id, Stream { out: out.clone() });
    }
    let session = Session {
        shared: Arc::clone(shared),
        id,
        out,
    };
    tokio::spawn(session.run(incoming));
    Ok(ReceiverStream::new(stream))
}

struct Session {
    shared: Arc<Shared>,
    id: StreamId,
    out: mpsc::Sender<Outgoing>,
}

impl Session {
    /// Handles messages until the stream ends.
    async fn run(self, mut incoming: Streaming<pb::StreamMessageRequest>) {
        let error = loop {
            let message = tokio::select! {
                message = incoming.next() => message,
                // The client has closed its side.
                () = self.out.closed() => break None,
            };
            match message {
                Some(Ok(message)) => {
                    if let Err(refusal) = self.handle(&message) {
                        break Some(errors::status(&refusal));
                    }
                }
                // For example, because a message was too long.
                Some(Err(status)) => break Some(status),
                None => break None,
            }
        };
        lock(&self.shared.streams).remove(&self.id);
        lock(&self.shared.clients).leave(self.id);
        if let Some(status) = error {
            let _ = self.out.try_send(Err(status));
        }
    }

    /// Handles a message.
    ///
    /// # Errors
    /// The stream must end.
    fn handle(&self, message: &pb::StreamMessageRequest) -> Result<(), Refusal> {
        match &message.update {
            Some(Update::Subscribe(subscribe)) => {
                self.shared.check_device(subscribe.device_id)?;
                let notifications = subscribe.notifications.unwrap_or_default();
                if lock(&self.shared.clients).subscribe(self.id, message.client_id, notifications)? {
                    let answer = Answer::Subscribe(pb::Subscribe {
                        status: Some(rpc::Status::default()),
                        ..subscribe.clone()
                    });
                    let _ = self
                        .out
                        .try_send(Ok(pb::StreamMessageResponse { update: Some(answer) }));
                }
                Ok(())
            }
            Some(Update::DigestAck(_)) => Err(Refusal::unsupported(
                "digests are not acknowledged: the server does so itself",
            )),
            None => Err(Refusal::malformed(
                "the message is empty, or of a kind this server does not know",
            )),
        }
    }
}

impl Shared {
    /// Sends a notification to clients. If `may_be_lost`, a slow stream loses it; every loss is
    /// counted.
    pub(super) fn notify(&self, to: &[StreamId], answer: &Answer, may_be_lost: bool) {
        let streams = lock(&self.streams);
        for id in to {
            let Some(stream) = streams.get(id) else { continue };
            let message = pb::StreamMessageResponse {
                update: Some(answer.clone()),
            };
            let kind = match answer {
                Answer::Digest(_) => Droppable::DigestList,
                _ => Droppable::Small,
            };
            let has_room = !may_be_lost || backlog::has_room(&stream.out, kind);
            if !has_room || stream.out.try_send(Ok(message)).is_err() {
                self.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
