//! Notifications of the switch to controllers: packets, digests, idle entries.

use super::{Shared, lock, stream};
use crate::dataplane::{Event, gather};
use crate::device::{Listener, ProgramChange};
use crate::p4rt::digest::{List, Message};
use crate::p4rt::program::LoadedProgram;
use crate::p4rt::read::{Digests, Reader};
use crate::p4rt::refusal::Refusal;
use crate::p4rt::{data, role::Scope};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use weir_ir::TableId;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::stream_message_response::Update as Answer;
use weir_switch::{Digest, Switch};

/// Idle entries in one notification.
const IDLE: usize = 256;

/// Starts the tasks that notify controllers; they end with the server.
pub fn start(shared: &Arc<Shared>) {
    let listener: Weak<Shared> = Arc::downgrade(shared);
    shared.device.listen(listener);
    tokio::spawn(digests(Arc::downgrade(shared), shared.config.digest_interval));
    tokio::spawn(idle(Arc::downgrade(shared), shared.config.idle_interval));
}

/// ns since 1970.
fn wall_clock() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Sends a message to every primary whose role it belongs to.
fn tell_primaries(shared: &Shared, is_for: impl Fn(&Scope) -> bool, answer: &Answer) -> bool {
    let primaries: Vec<_> = {
        let arbitration = lock(&shared.arbitration);
        arbitration
            .primaries()
            .filter(|(_, scope)| is_for(scope))
            .map(|(id, _)| id)
            .collect()
    };
    let streams = lock(&shared.streams);
    let mut is_sent = false;
    for id in primaries {
        if let Some(stream) = streams.get(&id) {
            is_sent |= stream::offer(shared, &stream.out, answer.clone());
        }
    }
    is_sent
}

impl Listener for Shared {
    fn event(&self, event: &Event) {
        // The switch itself chooses other members and backups when a port goes down.
        let Event::Packet(packet) = event else { return };
        let Ok(live) = self.device.live() else { return };
        let packet_in = match &live.schema.packet_in {
            // Packets shorter than the header are dropped.
            Some(header) => match header.packet_in(&packet.bytes) {
                Some(packet_in) => packet_in,
                None => return,
            },
            None => pb::PacketIn {
                payload: packet.bytes.clone(),
                metadata: Vec::new(),
            },
        };
        tell_primaries(self, |s| s.hears(&packet_in), &Answer::Packet(packet_in.clone()));
    }

    fn digests(&self, loaded: &LoadedProgram, digests: &[Digest], now_ns: u64) {
        let mut lists = Vec::new();
        {
            let mut machine = lock(&self.digests);
            for digest in digests {
                let known = loaded.schema.digests.values().find(|d| d.name == digest.name);
                let Some(known) = known else { continue };
                let message = Message {
                    scalars: digest.fields.iter().map(|(_, value)| value.clone()).collect(),
                    valid: digest.valid.clone(),
                };
                lists.extend(machine.message(known.id, message, now_ns));
            }
        }
        send_lists(self, loaded, lists);
    }

    fn program(&self, _change: ProgramChange) {
        let mut machine = lock(&self.digests);
        machine.forget();
        // After a commit by P4Runtime the digests that stay enabled are set again.
        machine.configure(&Digests::new());
    }
}

async fn digests(shared: Weak<Shared>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        if lock(&shared.digests).is_idle() {
            continue;
        }
        if send_digests(&shared).await.is_err() {
            return;
        }
    }
}

/// Reads the digests that the switch has queued and sends the enabled ones.
pub async fn send_digests(shared: &Shared) -> Result<(), Refusal> {
    shared.device.poll_digests().await?;
    let Ok(loaded) = shared.device.live() else {
        return Ok(());
    };
    let lists = lock(&shared.digests).tick(shared.device.plane.now_ns());
    send_lists(shared, &loaded, lists);
    Ok(())
}

fn send_lists(shared: &Shared, loaded: &LoadedProgram, lists: Vec<List>) {
    for list in lists {
        let id = list.digest;
        let answer = Answer::Digest(digest_list(loaded, list));
        tell_primaries(shared, |s| s.has(id), &answer);
    }
}

fn digest_list(loaded: &LoadedProgram, list: List) -> pb::DigestList {
    let ty = loaded.schema.digests.get(&list.digest).map(|d| &d.ty);
    let messages = list.messages.iter();
    let values = messages.filter_map(|m| Some(data::encode_message(ty?, m, &loaded.program.errors)));
    pb::DigestList {
        digest_id: list.digest,
        list_id: list.id,
        data: values.collect(),
        timestamp: wall_clock(),
    }
}

/// An idle entry of a replica.
struct Idle {
    ttl_ns: u64,
    last_hit_ns: u64,
    entry: pb::TableEntry,
}

type Handle = (TableId, u32);

async fn idle(shared: Weak<Shared>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The time of the notification per idle entry. As by bmv2, there is one for each time that an
    // entry becomes idle: controllers that delete entries on notification do not see one twice.
    let mut notified: FxHashMap<Handle, u64> = FxHashMap::default();
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        if send_idle(&shared, &mut notified).await.is_err() {
            return;
        }
    }
}

/// The idle entries of a replica.
fn idle_entries(loaded: &LoadedProgram, switch: &mut Switch, now_ns: u64) -> FxHashMap<Handle, Idle> {
    let none = Digests::new();
    let reader = Reader {
        schema: &loaded.schema,
        errors: &loaded.program.errors,
        digests: &none,
        switch,
        scope: None,
        with_dormant: false,
    };
    let entries = switch.idle_entries(now_ns).into_iter().filter_map(|(table, handle)| {
        let described = loaded.schema.table_of(table)?;
        let entry = switch.state().table(table)?.table.entry(handle)?;
        let idle = Idle {
            ttl_ns: entry.idle_timeout_ns,
            last_hit_ns: switch.last_hit_ns(table, handle).unwrap_or(0),
            entry: reader.key_of(described, entry),
        };
        Some(((table, handle.get()), idle))
    });
    entries.collect()
}

async fn send_idle(shared: &Shared, notified: &mut FxHashMap<Handle, u64>) -> Result<(), Refusal> {
    let Ok(loaded) = shared.device.live() else {
        return Ok(());
    };
    let can_idle = loaded.schema.tables.values().any(|t| t.idle_timeout);
    if !can_idle || lock(&shared.arbitration).primaries().next().is_none() {
        notified.clear();
        return Ok(());
    }
    let now = shared.device.plane.now_ns();
    let found = gather(&*shared.device.plane, move |_, switch: &mut Switch| {
        idle_entries(&loaded, switch, now)
    });
    let mut replicas = found.await?.into_iter();
    let mut idle = replicas.next().unwrap_or_default();
    // An entry is idle where it is so on all replicas.
    for other in replicas {
        idle.retain(|handle, entry| match other.get(handle) {
            Some(o) => {
                entry.last_hit_ns = entry.last_hit_ns.max(o.last_hit_ns);
                true
            }
            None => false,
        });
    }
    notified.retain(|handle, _| idle.contains_key(handle));
    let mut due: Vec<(Handle, Idle)> = idle
        .into_iter()
        .filter(|(handle, entry)| match notified.get(handle) {
            Some(at) if *at >= entry.last_hit_ns => false,
            _ => now.saturating_sub(entry.last_hit_ns) >= entry.ttl_ns,
        })
        .collect();
    due.sort_by_key(|(handle, _)| *handle);
    notified.extend(due.iter().map(|(handle, _)| (*handle, now)));
    // Entries of one table go together, so that a role hears of its own tables only.
    for of_table in due.chunk_by(|a, b| a.0.0 == b.0.0) {
        for part in of_table.chunks(IDLE) {
            let id = part[0].1.entry.table_id;
            let notification = pb::IdleTimeoutNotification {
                table_entry: part.iter().map(|(_, idle)| idle.entry.clone()).collect(),
                timestamp: wall_clock(),
            };
            tell_primaries(shared, |s| s.has(id), &Answer::IdleTimeoutNotification(notification));
        }
    }
    Ok(())
}
