//! The stream of P4Runtime: arbitration, packets, digests, idle entries.

use super::Shared;
use crate::encode::p4data;
use crate::events::{DigestList, IdleEntry, PacketIn, Standing};
use crate::options::Options;
use crate::value::Value;
use bytes::Bytes;
use prost::Message;
use std::sync::Arc;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::stream_message_request::Update as Request;
use weir_proto::p4::v1::stream_message_response::Update;

pub fn election(id: u128) -> pb::Uint128 {
    pb::Uint128 {
        high: (id >> 64) as u64,
        low: id as u64,
    }
}

/// The arbitration message.
pub fn hello(options: &Options) -> Bytes {
    let role = (!options.role.is_empty()).then(|| pb::Role {
        name: options.role.clone(),
        ..pb::Role::default()
    });
    let arbitration = pb::MasterArbitrationUpdate {
        device_id: options.device_id,
        role,
        election_id: Some(election(options.election_id)),
        status: None,
    };
    request(Request::Arbitration(arbitration))
}

pub fn request(update: Request) -> Bytes {
    pb::StreamMessageRequest { update: Some(update) }.encode_to_vec().into()
}

pub async fn hear(shared: &Arc<Shared>, message: &[u8]) {
    // A malformed message does not end the stream.
    let Ok(message) = pb::StreamMessageResponse::decode(message) else {
        return;
    };
    match message.update {
        Some(Update::Arbitration(update)) => {
            let id = update
                .election_id
                .map(|id| u128::from(id.high) << 64 | u128::from(id.low));
            let is_primary = update.status.as_ref().is_none_or(|s| s.code == 0);
            let standing = if is_primary {
                Standing::Primary
            } else {
                Standing::Backup(id.filter(|id| *id != 0))
            };
            shared.standing.send_replace(standing);
            shared.generation.send_modify(|g| *g += 1);
        }
        Some(Update::Packet(packet)) => {
            let schema = shared.schema();
            let metadata = packet.metadata.iter().map(|m| {
                let field = schema.packet_in.iter().find(|f| f.id == m.metadata_id);
                let name = field.map_or_else(|| m.metadata_id.to_string(), |f| f.name.clone());
                let value = match field.map(|f| &f.ty) {
                    Some(crate::schema::Type::Text(_)) => Value::Text(String::from_utf8_lossy(&m.value).into_owned()),
                    _ => Value::from_bytes(&m.value),
                };
                (name, value)
            });
            let metadata = metadata.collect();
            let event = PacketIn {
                payload: packet.payload,
                metadata,
            };
            shared.hub.packets.tell(0, event).await;
        }
        Some(Update::Digest(list)) => digest(shared, &list).await,
        Some(Update::IdleTimeoutNotification(idle)) => {
            let schema = shared.schema();
            for entry in &idle.table_entry {
                if let Ok(entry) = crate::decode::p4rt_entry(&schema, &entry.encode_to_vec()) {
                    let id = entry.table().id;
                    shared
                        .hub
                        .idle
                        .tell(
                            id,
                            IdleEntry {
                                entry,
                                is_active: false,
                            },
                        )
                        .await;
                }
            }
        }
        Some(Update::Error(_) | Update::Other(_)) | None => {}
    }
}

async fn digest(shared: &Arc<Shared>, list: &pb::DigestList) {
    let schema = shared.schema();
    let Some(digest) = schema.digests.iter().find(|d| d.id == list.digest_id) else {
        return;
    };
    let data = list.data.iter().filter_map(|d| p4data::decode(&digest.ty, d).ok());
    let data: Vec<_> = data.collect();
    shared
        .hub
        .digests
        .lose(digest.id, (list.data.len() - data.len()) as u64);
    let event = DigestList {
        name: digest.name.clone(),
        data,
        timestamp_ns: list.timestamp,
    };
    // The target repeats an unacknowledged list, so one that was not queued is not acknowledged.
    if shared.hub.digests.tell(digest.id, event).await {
        let ack = pb::DigestListAck {
            digest_id: list.digest_id,
            list_id: list.list_id,
        };
        let _ = shared.send(request(Request::DigestAck(ack))).await;
    }
}
