//! The StreamChannel RPC: what controllers say there.

use super::{Shared, Stream, lock};
use crate::backlog::{self, Droppable, RESERVED_CAPACITY};
use crate::p4rt::arbitration::{Notice, StreamId};
use crate::p4rt::refusal::{Refusal, code};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::stream_message_request::Update;
use weir_proto::p4::v1::stream_message_response::Update as Answer;

type Outgoing = Result<pb::StreamMessageResponse, Status>;

/// Opens a stream.
///
/// # Errors
/// There are too many.
pub fn open(
    shared: &Arc<Shared>,
    incoming: Streaming<pb::StreamMessageRequest>,
) -> Result<ReceiverStream<Outgoing>, Refusal> {
    let (out, stream) = mpsc::channel(shared.config.stream_queue.max(1) + RESERVED_CAPACITY);
    let id = shared.next_stream();
    let end = Arc::new(Notify::new());
    {
        let mut streams = lock(&shared.streams);
        if streams.len() >= shared.config.max_streams {
            return Err(Refusal::exhausted(format!(
                "there are {} streams already",
                streams.len()
            )));
        }
        let stream = Stream {
            out: out.clone(),
            end: Arc::clone(&end),
        };
        streams.insert(id, stream);
    }
    let session = Session {
        shared: Arc::clone(shared),
        id,
        out,
    };
    tokio::spawn(session.run(incoming, end));
    Ok(ReceiverStream::new(stream))
}

struct Session {
    shared: Arc<Shared>,
    id: StreamId,
    out: mpsc::Sender<Outgoing>,
}

impl Session {
    /// Listens until the stream ends.
    async fn run(self, mut incoming: Streaming<pb::StreamMessageRequest>, end: Arc<Notify>) {
        let error = loop {
            let message = tokio::select! {
                message = incoming.next() => message,
                // The client is not there any more to hear answers.
                () = self.out.closed() => break None,
                () = end.notified() => break Some(Refusal::too_slow("the stream is too slow for arbitration").status()),
            };
            match message {
                Some(Ok(message)) => {
                    if let Err(refusal) = self.hear(message).await {
                        break Some(refusal.status());
                    }
                }
                // Of a message that is too long, for example.
                Some(Err(status)) => break Some(status),
                None => break None,
            }
        };
        lock(&self.shared.streams).remove(&self.id);
        let guard = self.shared.arbitration_order.lock().await;
        let notices = lock(&self.shared.arbitration).leave(self.id);
        send_notices(&self.shared, notices).await;
        drop(guard);
        if let Some(status) = error {
            let _ = self.out.try_send(Err(status));
        }
    }

    /// Deals with a message.
    ///
    /// # Errors
    /// The stream is to be ended.
    async fn hear(&self, message: pb::StreamMessageRequest) -> Result<(), Refusal> {
        match message.update {
            Some(Update::Arbitration(update)) => self.arbitrate(&update).await,
            Some(Update::Packet(packet)) => {
                if let Err(refusal) = self.packet_out(&packet) {
                    let details = pb::PacketOutError {
                        packet_out: Some(packet),
                    };
                    self.send_error(&refusal, pb::stream_error::Details::PacketOut(details));
                }
                Ok(())
            }
            Some(Update::DigestAck(ack)) => {
                if let Err(refusal) = self.acknowledge(ack) {
                    let details = pb::DigestListAckError {
                        digest_list_ack: Some(ack),
                    };
                    self.send_error(&refusal, pb::stream_error::Details::DigestListAck(details));
                }
                Ok(())
            }
            Some(Update::Other(other)) => {
                let refusal = Refusal::unsupported("there are no messages of other kinds");
                let details = pb::StreamOtherError { other: Some(other) };
                self.send_error(&refusal, pb::stream_error::Details::Other(details));
                Ok(())
            }
            None => {
                let refusal = Refusal::malformed("the message is empty, or of a kind this server does not know");
                let details = pb::StreamOtherError { other: None };
                self.send_error(&refusal, pb::stream_error::Details::Other(details));
                Ok(())
            }
        }
    }

    async fn arbitrate(&self, update: &pb::MasterArbitrationUpdate) -> Result<(), Refusal> {
        self.shared.check_device(update.device_id)?;
        // All notices of a change are sent before the next change.
        let _guard = self.shared.arbitration_order.lock().await;
        let notices = lock(&self.shared.arbitration).update(self.id, update)?;
        // Digest lists that were sent to the old primary do not concern the new one.
        if notices.iter().any(|n| n.after_writes) {
            lock(&self.shared.digests).forget();
        }
        send_notices(&self.shared, notices).await;
        Ok(())
    }

    fn packet_out(&self, packet: &pb::PacketOut) -> Result<(), Refusal> {
        lock(&self.shared.arbitration)
            .as_primary(self.id)?
            .check_packet(packet)?;
        let live = self.shared.device.live()?;
        let port = self.shared.device.plane.cpu_port();
        let port = port.ok_or_else(|| Refusal::precondition("the switch has no port for the control plane"))?;
        let bytes = match &live.schema.packet_out {
            Some(header) => header.packet_out(packet)?,
            None if packet.metadata.is_empty() => packet.payload.clone(),
            None => {
                return Err(Refusal::malformed(
                    "the program has no header `packet_out`, so packets have no metadata",
                ));
            }
        };
        self.shared.device.plane.inject(port, bytes);
        Ok(())
    }

    fn acknowledge(&self, ack: pb::DigestListAck) -> Result<(), Refusal> {
        lock(&self.shared.arbitration).as_primary(self.id)?;
        self.shared.device.live()?.schema.digest(ack.digest_id)?;
        lock(&self.shared.digests).acknowledge(ack.digest_id, ack.list_id);
        Ok(())
    }

    /// Sends the client an error about one of its messages, if the queue has room.
    fn send_error(&self, refusal: &Refusal, details: pb::stream_error::Details) {
        let error = pb::StreamError {
            canonical_code: code(refusal.cause) as i32,
            message: refusal.message.to_string(),
            space: "weir".to_string(),
            code: 0,
            details: Some(details),
        };
        offer(&self.shared, &self.out, Answer::Error(error));
    }
}

/// Sends a message that may be lost. Whether it was sent.
pub fn offer(shared: &Shared, out: &mpsc::Sender<Outgoing>, answer: Answer) -> bool {
    let kind = match answer {
        Answer::Digest(_) => Droppable::DigestList,
        _ => Droppable::Small,
    };
    let message = pb::StreamMessageResponse { update: Some(answer) };
    let is_sent = backlog::has_room(out, kind) && out.try_send(Ok(message)).is_ok();
    if !is_sent {
        shared.missed.fetch_add(1, Ordering::Relaxed);
    }
    is_sent
}

/// Sends notices of arbitration, in order.
async fn send_notices(shared: &Shared, notices: Vec<Notice>) {
    for notice in notices {
        if notice.after_writes {
            // Commands run in order: when this one is done, all earlier ones are.
            let written = Arc::clone(&*lock(&shared.device.written));
            let _ = written.submit(Arc::new(|_, _| {})).await;
        }
        let message = pb::StreamMessageResponse {
            update: Some(Answer::Arbitration(notice.update)),
        };
        let streams = lock(&shared.streams);
        let Some(stream) = streams.get(&notice.stream) else {
            continue;
        };
        if stream.out.try_send(Ok(message)).is_err() {
            stream.end.notify_one();
        }
    }
}
