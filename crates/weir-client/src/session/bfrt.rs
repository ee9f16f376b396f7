//! The stream of BF Runtime: subscription, digests, idle entries, ports.

use super::Shared;
use crate::events::{DigestList, IdleEntry, PortChange, Standing};
use crate::options::Options;
use bytes::Bytes;
use prost::Message;
use std::sync::Arc;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::stream_message_request::Update as Request;
use weir_proto::bfrt_proto::stream_message_response::Update;

/// The message that subscribes.
pub fn hello(options: &Options) -> Bytes {
    let notifications = pb::subscribe::Notifications {
        enable_learn_notifications: true,
        enable_idletimeout_notifications: true,
        enable_port_status_change_notifications: true,
        enable_entry_active_notifications: true,
        ..pb::subscribe::Notifications::default()
    };
    let subscribe = pb::Subscribe {
        device_id: u32::try_from(options.device_id).unwrap_or(u32::MAX),
        notifications: Some(notifications),
        ..pb::Subscribe::default()
    };
    let request = pb::StreamMessageRequest {
        client_id: options.client_id,
        update: Some(Request::Subscribe(subscribe)),
    };
    request.encode_to_vec().into()
}

pub async fn hear(shared: &Arc<Shared>, message: &[u8]) {
    let Ok(message) = pb::StreamMessageResponse::decode(message) else {
        return;
    };
    match message.update {
        Some(Update::Subscribe(subscribe)) => {
            let code = subscribe.status.as_ref().map_or(0, |s| s.code);
            let standing = match subscribe.status {
                Some(status) if code != 0 => {
                    Standing::Lost(format!("the target refuses the client: {}", status.message))
                }
                _ => Standing::Primary,
            };
            let is_accepted = standing == Standing::Primary;
            // A binding ends with the stream on which it was made.
            if is_accepted
                && *shared.generation.borrow() > 0
                && let Err(error) = crate::client::bind(shared).await
            {
                shared.standing.send_replace(Standing::Lost(error.to_string()));
                return;
            }
            shared.standing.send_replace(standing);
            shared.generation.send_modify(|g| *g += 1);
        }
        Some(Update::Digest(list)) => {
            let schema = shared.schema();
            let Some(digest) = schema.digests.iter().find(|d| d.id == list.digest_id) else {
                return;
            };
            let data = list.data.iter();
            let data = data.filter_map(|d| crate::decode::bfrt_record(&digest.ty, &d.encode_to_vec()).ok());
            let data: Vec<_> = data.collect();
            shared
                .hub
                .digests
                .lose(digest.id, (list.data.len() - data.len()) as u64);
            let event = DigestList {
                name: digest.name.clone(),
                data,
                timestamp_ns: 0,
            };
            shared.hub.digests.tell(digest.id, event).await;
        }
        Some(Update::IdleTimeoutNotification(idle)) => {
            let schema = shared.schema();
            let Some(entry) = &idle.table_entry else { return };
            if let Ok(entry) = crate::decode::bfrt_entry(&schema, &entry.encode_to_vec()) {
                let id = entry.table().id;
                let is_active = idle.r#type() == pb::idle_timeout_notification::NotificationType::EntryActive;
                shared.hub.idle.tell(id, IdleEntry { entry, is_active }).await;
            }
        }
        Some(Update::PortStatusChangeNotification(change)) => {
            let schema = shared.schema();
            let Some(entry) = &change.table_entry else { return };
            let entry = crate::decode::bfrt_entry(&schema, &entry.encode_to_vec());
            let port = entry
                .ok()
                .and_then(|e| e.matches().first().and_then(|m| m.exact()?.as_u64()));
            if let Some(port) = port.and_then(|p| u32::try_from(p).ok()) {
                let is_up = change.port_up;
                shared.hub.ports.tell(0, PortChange { port, is_up }).await;
            }
        }
        _ => {}
    }
}
