//! Notifications to clients: digests, idle entries, port status, new programs.
//!
//! Two tasks poll the switch for digests and for idle entries, only while a client subscribes to
//! them. Port and program events come from the device. A slow stream loses notifications, which are
//! counted; nothing here blocks on a client.

use super::Shared;
use crate::bfrt::fixed::Fixed;
use crate::bfrt::program::Program;
use crate::bfrt::read;
use crate::bfrt::schema::Kind;
use crate::bfrt::value;
use crate::dataplane::{Event, gather};
use crate::device::{Listener, ProgramChange, lock};
use crate::p4rt::program::LoadedProgram;
use crate::refusal::Refusal;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use weir_ir::TableId;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::idle_timeout_notification::NotificationType;
use weir_proto::bfrt_proto::stream_message_response::Update as Answer;
use weir_switch::{Digest, Switch};
use weir_table::{EntryHandle, EntryRef};

/// Starts the polling tasks; they end with the server.
pub fn start(shared: &Arc<Shared>) {
    let listener: Weak<Shared> = Arc::downgrade(shared);
    shared.device.listen(listener);
    tokio::spawn(digests(Arc::downgrade(shared), shared.config.digest_interval));
    tokio::spawn(idle(Arc::downgrade(shared), shared.config.idle_interval));
}

impl Listener for Shared {
    fn event(&self, event: &Event) {
        let Event::Port { port, up } = event else { return };
        self.port_changed(*port, *up);
    }

    fn digests(&self, loaded: &LoadedProgram, digests: &[Digest], _now_ns: u64) {
        let Ok(program) = &loaded.bfrt else { return };
        let to = lock(&self.clients).subscribers(&program.name, |w| w.enable_learn_notifications);
        if to.is_empty() {
            return;
        }
        let mut lists: BTreeMap<u32, Vec<pb::TableData>> = BTreeMap::new();
        for digest in digests {
            let learn = program.schema.learns.iter().find(|l| l.digest == digest.name);
            let Some(learn) = learn else { continue };
            let fields = learn
                .fields
                .iter()
                .zip(&digest.fields)
                .map(|((id, _), (_, bits))| pb::DataField {
                    field_id: *id,
                    value: Some(pb::data_field::Value::Stream(value::bytes(bits))),
                });
            let data = pb::TableData {
                action_id: 0,
                fields: fields.collect(),
            };
            lists.entry(learn.id).or_default().push(data);
        }
        for (digest_id, data) in lists {
            let list = pb::DigestList {
                digest_id,
                list_id: 0,
                data,
                target: Some(self.whole_device()),
            };
            self.notify(&to, &Answer::Digest(list), true);
        }
    }

    fn program(&self, change: ProgramChange) {
        *lock(&self.attributes) = Arc::default();
        let name = self.device.current_name();
        let to: Vec<_> = {
            let mut clients = lock(&self.clients);
            clients.program_changed(name.as_deref().unwrap_or_default());
            clients.all().map(|c| c.stream).collect()
        };
        use pb::SetForwardingPipelineConfigResponseType::{WarmInitFinished, WarmInitStarted};
        let steps: &[_] = match change {
            ProgramChange::Saved => &[WarmInitStarted],
            ProgramChange::Committed { was_saved: true } => &[WarmInitFinished],
            ProgramChange::Committed { was_saved: false } => &[WarmInitStarted, WarmInitFinished],
        };
        for step in steps {
            let notice = pb::SetForwardingPipelineConfigResponse {
                set_forwarding_pipeline_config_response_type: (*step).into(),
            };
            self.notify(&to, &Answer::SetForwardingPipelineConfigResponse(notice), false);
        }
    }
}

impl Shared {
    /// The target of notifications: the whole device.
    fn whole_device(&self) -> pb::TargetDevice {
        pb::TargetDevice {
            device_id: self.config.device_id,
            pipe_id: 0,
            direction: 0xff,
            prsr_id: 0xff,
        }
    }

    /// Notifies clients that a port went up or down.
    pub(super) fn port_changed(&self, port: u32, up: bool) {
        if !lock(&self.attributes).port_status {
            return;
        }
        let Ok(loaded) = self.device.live() else { return };
        let Ok(program) = &loaded.bfrt else { return };
        let mut tables = program.schema.tables.iter();
        let Some(table) = tables.find(|t| matches!(t.kind, Kind::Fixed(Fixed::Port))) else {
            return;
        };
        let key = table.keys.first().map(|key| pb::KeyField {
            field_id: key.id,
            match_type: Some(pb::key_field::MatchType::Exact(pb::key_field::Exact {
                value: value::number_bytes(key.width, port.into()),
            })),
        });
        let key = pb::TableKey {
            fields: key.into_iter().collect(),
        };
        let notice = pb::PortStatusChgNotification {
            table_entry: Some(pb::TableEntry {
                table_id: table.id,
                value: Some(pb::table_entry::Value::Key(key)),
                ..pb::TableEntry::default()
            }),
            port_up: up,
        };
        let to: Vec<_> = {
            let clients = lock(&self.clients);
            let subscribers = clients
                .all()
                .filter(|c| c.notifications.enable_port_status_change_notifications);
            subscribers.map(|c| c.stream).collect()
        };
        self.notify(&to, &Answer::PortStatusChangeNotification(notice), true);
    }
}

async fn digests(shared: Weak<Shared>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        let has_subscriber = lock(&shared.clients)
            .all()
            .any(|c| c.bound.is_some() && c.notifications.enable_learn_notifications);
        if has_subscriber && shared.device.poll_digests().await.is_err() {
            return;
        }
    }
}

type Handle = (TableId, u32);

/// An idle entry of a replica.
struct Idle {
    last_hit_ns: u64,
    entry: pb::TableEntry,
}

async fn idle(shared: Weak<Shared>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Entries reported as idle and not yet reported as active again.
    let mut notified: FxHashMap<Handle, pb::TableEntry> = FxHashMap::default();
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        if send_idle(&shared, &mut notified).await.is_err() {
            return;
        }
    }
}

/// The idle entries of a replica, in tables that notify.
fn idle_entries(program: &Program, tables: &[TableId], switch: &Switch, now_ns: u64) -> FxHashMap<Handle, Idle> {
    let found = switch.idle_entries(now_ns).into_iter();
    let found = found.filter(|(table, _)| tables.contains(table));
    let entries = found.filter_map(|(table, handle)| {
        let described = program.schema.for_switch_table(table)?;
        let entry = read::key_of(described, switch, &EntryRef::Handle(handle))?;
        let last_hit_ns = switch.last_hit_ns(table, handle).unwrap_or(0);
        Some(((table, handle.get()), Idle { last_hit_ns, entry }))
    });
    entries.collect()
}

async fn send_idle(shared: &Shared, notified: &mut FxHashMap<Handle, pb::TableEntry>) -> Result<(), Refusal> {
    let Ok(loaded) = shared.device.live() else {
        return Ok(());
    };
    let Ok(program) = loaded.bfrt.clone() else {
        return Ok(());
    };
    let attributes = Arc::clone(&lock(&shared.attributes));
    let tables: Vec<TableId> = program
        .schema
        .tables
        .iter()
        .filter_map(|t| match &t.kind {
            Kind::Match(match_table) if attributes.notifies(t.id) => Some(match_table.table),
            _ => None,
        })
        .collect();
    let (idle_clients, active_clients) = {
        let clients = lock(&shared.clients);
        (
            clients.subscribers(&program.name, |w| w.enable_idletimeout_notifications),
            clients.subscribers(&program.name, |w| w.enable_entry_active_notifications),
        )
    };
    if tables.is_empty() || (idle_clients.is_empty() && active_clients.is_empty()) {
        notified.clear();
        return Ok(());
    }
    let now = shared.device.plane.now_ns();
    let known = notified.keys().copied().collect::<Vec<_>>();
    let found = gather(&*shared.device.plane, move |_, switch: &mut Switch| {
        // Reported entries that still exist.
        let existing = known.iter().filter(|(table, handle)| {
            let handle = EntryHandle::new(*handle);
            handle.is_some_and(|h| switch.state().table(*table).is_some_and(|t| t.table.entry(h).is_some()))
        });
        let existing: Vec<Handle> = existing.copied().collect();
        (idle_entries(&program, &tables, switch, now), existing)
    });
    let mut replicas = found.await?.into_iter();
    let (mut idle, existing) = replicas.next().unwrap_or_default();
    // An entry is idle if it is idle on every replica.
    for (other, _) in replicas {
        idle.retain(|handle, entry| match other.get(handle) {
            Some(o) => {
                entry.last_hit_ns = entry.last_hit_ns.max(o.last_hit_ns);
                true
            }
            None => false,
        });
    }
    notified.retain(|handle, _| existing.contains(handle));
    let active: Vec<Handle> = notified.keys().filter(|h| !idle.contains_key(h)).copied().collect();
    for handle in active {
        if let Some(entry) = notified.remove(&handle) {
            shared.notify_idle(&active_clients, entry, NotificationType::EntryActive);
        }
    }
    let mut due: Vec<(Handle, Idle)> = idle.into_iter().filter(|(h, _)| !notified.contains_key(h)).collect();
    due.sort_by_key(|(handle, _)| *handle);
    for (handle, found) in due {
        notified.insert(handle, found.entry.clone());
        shared.notify_idle(&idle_clients, found.entry, NotificationType::EntryIdle);
    }
    Ok(())
}

impl Shared {
    fn notify_idle(&self, to: &[u64], entry: pb::TableEntry, ty: NotificationType) {
        let notice = pb::IdleTimeoutNotification {
            target: Some(self.whole_device()),
            table_entry: Some(entry),
            r#type: ty.into(),
        };
        self.notify(to, &Answer::IdleTimeoutNotification(notice), true);
    }
}
