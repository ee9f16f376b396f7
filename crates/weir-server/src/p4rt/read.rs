//! Queries of a `ReadRequest` (specification, sections "Wildcard Reads" and those of the
//! entities).
//!
//! A query is read in portions, each within one step of the switch: [`Reader::read`] continues
//! where the last portion ended.

mod cost;
mod entries;
mod externs;

use super::change::{self, no_meter_counts};
use super::refusal::Refusal;
use super::schema::{Array, Profile, Schema};
use super::{action, data, matching};
use crate::reading::StepBudget;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_switch::{Cell, Count, MeterConfig, Replica, Switch};
use weir_table::{ActionProfile, PortForm, WatchedPort};

/// Digests that are sent, and how.
pub type Digests = BTreeMap<u32, pb::digest_entry::Config>;

/// Where the next portion starts: the object of its kind (in the order of ids) and the place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// Smallest id that is not done.
    pub id: u32,
    /// Smallest place in it that is not done: an index, an id, or the sequence number of an entry.
    pub place: u64,
}

/// Reads entities from a replica.
pub struct Reader<'a> {
    /// The program.
    pub schema: &'a Schema,
    /// Members of `error`.
    pub errors: &'a [String],
    /// Digests that are sent.
    pub digests: &'a Digests,
    /// A replica of the switch.
    pub switch: &'a Switch,
    /// Objects that may be seen; `None`: all.
    pub scope: Option<&'a dyn Fn(u32) -> bool>,
    /// Entries include direct resources that their actions do not execute.
    pub with_dormant: bool,
}

/// The entities of one step, within its budget.
pub struct Portion {
    /// The entities.
    pub entities: Vec<pb::Entity>,
    budget: StepBudget,
}

impl Portion {
    /// An empty portion with a budget of `limit` plain entities, at least one.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Portion {
            entities: Vec::new(),
            budget: StepBudget::with_max_cost(limit),
        }
    }

    /// The cost of the entities.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.budget.charged()
    }

    fn is_full(&self) -> bool {
        self.budget.is_full()
    }

    fn push(&mut self, entity: Entity) {
        self.budget.charge(cost::of(&entity));
        self.entities.push(pb::Entity { entity: Some(entity) });
    }
}

impl AsRef<StepBudget> for Portion {
    fn as_ref(&self) -> &StepBudget {
        &self.budget
    }
}

/// Whether there is more, and where.
pub type Progress = Option<Cursor>;

/// Whether replicas differ in what this query finds: then [`merge`] makes one of what they give.
#[must_use]
pub fn differs_by_replica(query: &pb::Entity) -> bool {
    match &query.entity {
        Some(Entity::TableEntry(entry)) => entry.counter_data.is_some() || entry.time_since_last_hit.is_some(),
        Some(Entity::CounterEntry(_) | Entity::DirectCounterEntry(_)) => true,
        _ => false,
    }
}

/// Adds what another replica has counted to the same entities.
pub fn merge(into: &mut [pb::Entity], other: &[pb::Entity]) {
    let add = |into: &mut Option<pb::CounterData>, other: &Option<pb::CounterData>| {
        if let (Some(into), Some(other)) = (into, other) {
            into.byte_count = into.byte_count.wrapping_add(other.byte_count);
            into.packet_count = into.packet_count.wrapping_add(other.packet_count);
        }
    };
    for (into, other) in into.iter_mut().zip(other) {
        match (&mut into.entity, &other.entity) {
            (Some(Entity::CounterEntry(a)), Some(Entity::CounterEntry(b))) => add(&mut a.data, &b.data),
            (Some(Entity::DirectCounterEntry(a)), Some(Entity::DirectCounterEntry(b))) => add(&mut a.data, &b.data),
            (Some(Entity::TableEntry(a)), Some(Entity::TableEntry(b))) => {
                add(&mut a.counter_data, &b.counter_data);
                if let (Some(a), Some(b)) = (&mut a.time_since_last_hit, &b.time_since_last_hit) {
                    a.elapsed_ns = a.elapsed_ns.min(b.elapsed_ns);
                }
            }
            _ => {}
        }
    }
}

fn counter_data(count: Count) -> pb::CounterData {
    pb::CounterData {
        byte_count: count.bytes as i64,
        packet_count: count.packets as i64,
    }
}

fn meter_config(config: MeterConfig) -> pb::MeterConfig {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    pb::MeterConfig {
        cir: number(config.cir.tokens_per_second()),
        cburst: number(config.cbs),
        pir: number(config.pir.tokens_per_second()),
        pburst: number(config.pbs),
        eburst: 0,
    }
}

impl Reader<'_> {
    /// Reads a portion of a query's results.
    ///
    /// # Errors
    /// The query names an object that does not exist, or one that cannot be read.
    pub fn read(&self, query: &pb::Entity, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        let entity = query.entity.as_ref();
        match entity.ok_or_else(|| Refusal::malformed("the query has no entity"))? {
            Entity::TableEntry(entry) => self.table_entries(entry, from, out),
            Entity::DirectCounterEntry(entry) => self.direct_counters(entry, from, out),
            Entity::DirectMeterEntry(entry) => self.direct_meters(entry, from, out),
            Entity::CounterEntry(entry) => self.counters(entry, from, out),
            Entity::MeterEntry(entry) => self.meters(entry, from, out),
            Entity::RegisterEntry(entry) => self.registers(entry, from, out),
            Entity::ActionProfileMember(member) => self.members(member, from, out),
            Entity::ActionProfileGroup(group) => self.groups(group, from, out),
            Entity::ValueSetEntry(set) => self.value_sets(set, from, out),
            Entity::DigestEntry(digest) => self.digests(digest, from, out),
            Entity::PacketReplicationEngineEntry(entry) => {
                use pb::packet_replication_engine_entry::Type;
                match &entry.r#type {
                    Some(Type::MulticastGroupEntry(group)) => self.multicast_groups(group, from, out),
                    Some(Type::CloneSessionEntry(session)) => self.clone_sessions(session, from, out),
                    None => {
                        let more = self.multicast_groups(&pb::MulticastGroupEntry::default(), from, out)?;
                        match more {
                            // Cursors of groups have id 0, those of sessions do not.
                            Some(more) if more.id == 0 => Ok(Some(more)),
                            _ => self.clone_sessions(&pb::CloneSessionEntry::default(), sessions_from(from), out),
                        }
                    }
                }
            }
            Entity::ExternEntry(entry) => self.externs(entry, from, out),
        }
    }

    fn sees(&self, id: u32) -> bool {
        self.scope.is_none_or(|scope| scope(id))
    }

    /// Reads the cells of arrays: those at an index, or all.
    fn cells(
        &self,
        arrays: &mut dyn Iterator<Item = &Array>,
        index: Option<&pb::Index>,
        from: Cursor,
        out: &mut Portion,
        one: &mut dyn FnMut(&Array, u64) -> Result<Entity, Refusal>,
    ) -> Result<Progress, Refusal> {
        let cell = change::cell(index)?;
        for array in arrays.filter(|a| a.id >= from.id && self.sees(a.id)) {
            let (first, last) = match cell {
                Cell::Index(index) => (index, index),
                Cell::All => {
                    let size = self.size(array);
                    if size == 0 {
                        continue;
                    }
                    let first = if array.id == from.id { from.place } else { 0 };
                    (first, size - 1)
                }
            };
            for place in first..=last {
                if out.is_full() {
                    return Ok(Some(Cursor { id: array.id, place }));
                }
                out.push(one(array, place)?);
            }
        }
        Ok(None)
    }

    fn size(&self, array: &Array) -> u64 {
        use weir_arch::Resource;
        match self.switch.state().resource(array.instance) {
            Resource::Counter(_, cells) => cells.size(),
            Resource::Meter(_, cells) => cells.size(),
            Resource::Register(register) => register.cells.size(),
            _ => 0,
        }
    }

    fn counters(&self, query: &pb::CounterEntry, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        let one = match query.counter_id {
            0 => None,
            id => Some(self.schema.counter(id)?),
        };
        let all = self.schema.counters.values().filter(|_| one.is_none());
        let index = query.index.as_ref().filter(|_| one.is_some());
        self.cells(
            &mut one.into_iter().chain(all),
            index,
            from,
            out,
            &mut |array, index| {
                let count = self.switch.counter(array.instance, index)?;
                Ok(Entity::CounterEntry(pb::CounterEntry {
                    counter_id: array.id,
                    index: Some(pb::Index { index: index as i64 }),
                    data: Some(counter_data(count)),
                }))
            },
        )
    }

    fn meters(&self, query: &pb::MeterEntry, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        if query.counter_data.is_some() {
            return Err(no_meter_counts());
        }
        let one = match query.meter_id {
            0 => None,
            id => Some(self.schema.meter(id)?),
        };
        let all = self.schema.meters.values().filter(|_| one.is_none());
        let index = query.index.as_ref().filter(|_| one.is_some());
        self.cells(
            &mut one.into_iter().chain(all),
            index,
            from,
            out,
            &mut |array, index| {
                let config = self.switch.meter(array.instance, index)?;
                Ok(Entity::MeterEntry(pb::MeterEntry {
                    meter_id: array.id,
                    index: Some(pb::Index { index: index as i64 }),
                    config: config.map(meter_config),
                    counter_data: None,
                }))
            },
        )
    }

    fn registers(&self, query: &pb::RegisterEntry, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        let one = match query.register_id {
            0 => None,
            id => Some(self.schema.register(id)?),
        };
        let all = self.schema.registers.values().filter(|_| one.is_none());
        let index = query.index.as_ref().filter(|_| one.is_some());
        let mut arrays = one.into_iter().chain(all).map(|r| &r.array);
        self.cells(&mut arrays, index, from, out, &mut |array, index| {
            let register = self.schema.register(array.id)?;
            data::check_cell(&register.ty).map_err(|e| e.within(&format!("register `{}`", array.name)))?;
            let values = self.switch.register(array.instance, index)?;
            Ok(Entity::RegisterEntry(pb::RegisterEntry {
                register_id: array.id,
                index: Some(pb::Index { index: index as i64 }),
                data: Some(data::encode(&register.ty, &values, self.errors)),
            }))
        })
    }

    /// The members or groups (`what`) of action profiles that a query selects, by the ids of the
    /// profile and of the object, 0 for any. `get` finds one by its id; `all` lists all with their
    /// ids in ascending order.
    fn of_profiles<'s, T: 's, I: Iterator<Item = (u32, &'s T)>>(
        &'s self,
        (profile_id, id_or_wildcard, what): (u32, u32, &str),
        from: Cursor,
        out: &mut Portion,
        (get, all): (
            impl Fn(&'s ActionProfile, u32) -> Option<&'s T>,
            impl Fn(&'s ActionProfile) -> I,
        ),
        one: impl Fn(&Profile, u32, &T) -> Entity,
    ) -> Result<Progress, Refusal> {
        if profile_id != 0 {
            self.schema.profile(profile_id)?;
        }
        let profiles = self.schema.profiles.values();
        let profiles = profiles.filter(|p| profile_id == 0 || p.id == profile_id);
        let mut is_found = id_or_wildcard == 0 || profile_id == 0;
        for profile in profiles.filter(|p| p.id >= from.id && self.sees(p.id)) {
            let Some(state) = self.switch.state().profile(profile.instance) else {
                continue;
            };
            let first = if profile.id == from.id { from.place } else { 0 };
            let only = get(state, id_or_wildcard)
                .filter(|_| id_or_wildcard != 0)
                .map(|item| (id_or_wildcard, item));
            let any = (id_or_wildcard == 0).then(|| all(state)).into_iter().flatten();
            let there = only.into_iter().chain(any);
            for (id, item) in there.filter(|(id, _)| u64::from(*id) >= first) {
                if out.is_full() {
                    let (id, place) = (profile.id, id.into());
                    return Ok(Some(Cursor { id, place }));
                }
                is_found = true;
                out.push(one(profile, id, item));
            }
        }
        found(is_found, what, id_or_wildcard)
    }

    fn members(&self, query: &pb::ActionProfileMember, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        let selection = (query.action_profile_id, query.member_id, "member");
        self.of_profiles(
            selection,
            from,
            out,
            (ActionProfile::member, ActionProfile::members),
            |profile, member_id, member| {
                Entity::ActionProfileMember(pb::ActionProfileMember {
                    action_profile_id: profile.id,
                    member_id,
                    action: Some(action::encode_call(&profile.actions, &member.action)),
                })
            },
        )
    }

    fn groups(&self, query: &pb::ActionProfileGroup, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        let selection = (query.action_profile_id, query.group_id, "group");
        self.of_profiles(
            selection,
            from,
            out,
            (ActionProfile::group, ActionProfile::groups),
            |profile, group_id, group| {
                let members = group.members.iter().map(|m| pb::action_profile_group::Member {
                    member_id: m.member,
                    weight: i32::try_from(m.weight).unwrap_or(i32::MAX),
                    watch_kind: m.watch.map(watch),
                });
                Entity::ActionProfileGroup(pb::ActionProfileGroup {
                    action_profile_id: profile.id,
                    group_id,
                    members: members.collect(),
                    max_size: i32::try_from(group.max_size).unwrap_or(i32::MAX),
                })
            },
        )
    }

    fn value_sets(&self, query: &pb::ValueSetEntry, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        if query.value_set_id != 0 {
            self.schema.value_set(query.value_set_id)?;
        }
        let sets = self.schema.value_sets.values();
        let sets = sets.filter(|s| query.value_set_id == 0 || s.id == query.value_set_id);
        for set in sets.filter(|s| s.id >= from.id && self.sees(s.id)) {
            if out.is_full() {
                return Ok(Some(Cursor { id: set.id, place: 0 }));
            }
            let state = self.switch.state().value_set(set.set);
            let members = state.into_iter().flat_map(|s| s.entries());
            let members = members.map(|e| pb::ValueSetMember {
                r#match: matching::encode(&set.fields, &e.matches),
            });
            out.push(Entity::ValueSetEntry(pb::ValueSetEntry {
                value_set_id: set.id,
                members: members.collect(),
            }));
        }
        Ok(None)
    }

    fn digests(&self, query: &pb::DigestEntry, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        if query.digest_id != 0 {
            self.schema.digest(query.digest_id)?;
        }
        let sent = self.digests.iter();
        let sent = sent.filter(|(id, _)| query.digest_id == 0 || **id == query.digest_id);
        let mut is_found = query.digest_id == 0;
        for (id, config) in sent.filter(|(id, _)| **id >= from.id && self.sees(**id)) {
            if out.is_full() {
                return Ok(Some(Cursor { id: *id, place: 0 }));
            }
            is_found = true;
            out.push(Entity::DigestEntry(pb::DigestEntry {
                digest_id: *id,
                config: Some(*config),
            }));
        }
        found(is_found, "configuration of the digest", query.digest_id)
    }

    fn multicast_groups(
        &self,
        query: &pb::MulticastGroupEntry,
        from: Cursor,
        out: &mut Portion,
    ) -> Result<Progress, Refusal> {
        if from.id != 0 {
            return Ok(None);
        }
        let replication = self.switch.replication();
        let id_or_wildcard = query.multicast_group_id;
        let mut is_found = id_or_wildcard == 0;
        for (id, _) in replication.groups_in(numbers(id_or_wildcard, from)) {
            if out.is_full() {
                return Ok(Some(Cursor {
                    id: 0,
                    place: id.into(),
                }));
            }
            let Some(group) = replication.group(id) else { continue };
            is_found = true;
            let replicas = group.replicas.iter().map(|r| {
                let backups = r.backups.iter().map(|b| pb::BackupReplica {
                    port: action::encode_port(b.port),
                    instance: b.rid,
                });
                pb::Replica {
                    backup_replicas: backups.collect(),
                    ..replica(&r.replica)
                }
            });
            let entry = pb::MulticastGroupEntry {
                multicast_group_id: id,
                replicas: replicas.collect(),
                metadata: group.note,
            };
            out.push(replication_entity(
                pb::packet_replication_engine_entry::Type::MulticastGroupEntry(entry),
            ));
        }
        found(is_found, "multicast group", id_or_wildcard)
    }

    fn clone_sessions(
        &self,
        query: &pb::CloneSessionEntry,
        from: Cursor,
        out: &mut Portion,
    ) -> Result<Progress, Refusal> {
        let id_or_wildcard = query.session_id;
        let mut is_found = id_or_wildcard == 0;
        // Session 0 is the program's, not the control plane's: its number means all of them there.
        let sessions = self.switch.replication().sessions_in(numbers(id_or_wildcard, from));
        for (id, session) in sessions.filter(|(id, _)| *id != 0) {
            if out.is_full() {
                return Ok(Some(Cursor {
                    id: 1,
                    place: id.into(),
                }));
            }
            is_found = true;
            let entry = pb::CloneSessionEntry {
                session_id: id,
                replicas: session.replicas.iter().map(replica).collect(),
                class_of_service: session.class_of_service.into(),
                packet_length_bytes: i32::try_from(session.truncate_bytes).unwrap_or(i32::MAX),
            };
            out.push(replication_entity(
                pb::packet_replication_engine_entry::Type::CloneSessionEntry(entry),
            ));
        }
        found(is_found, "clone session", id_or_wildcard)
    }
}

/// The numbers of groups or sessions to visit, from a cursor on; 0 selects all.
fn numbers(id_or_wildcard: u32, from: Cursor) -> RangeInclusive<u32> {
    let from = u32::try_from(from.place).unwrap_or(u32::MAX);
    match id_or_wildcard {
        0 => from..=u32::MAX,
        _ => id_or_wildcard..=id_or_wildcard,
    }
}

/// The cursor of the sessions, which follow all groups.
fn sessions_from(from: Cursor) -> Cursor {
    if from.id == 0 { Cursor::default() } else { from }
}

fn found(is_found: bool, what: &str, id: u32) -> Result<Progress, Refusal> {
    match is_found {
        true => Ok(None),
        false => Err(Refusal::not_found(format!("there is no {what} {id}"))),
    }
}

/// A watched port in the form in which it was written.
fn watch(watched: WatchedPort) -> pb::action_profile_group::member::WatchKind {
    use pb::action_profile_group::member::WatchKind;
    match watched.form {
        PortForm::Bytes => WatchKind::WatchPort(action::encode_port(watched.port)),
        PortForm::Number => WatchKind::Watch(watched.port.cast_signed()),
    }
}

fn replica(replica: &Replica) -> pb::Replica {
    use pb::replica::PortKind;
    let port_kind = match replica.form {
        PortForm::Bytes => PortKind::Port(action::encode_port(replica.port)),
        PortForm::Number => PortKind::EgressPort(replica.port),
    };
    pb::Replica {
        port_kind: Some(port_kind),
        instance: replica.rid,
        backup_replicas: Vec::new(),
    }
}

fn replication_entity(ty: pb::packet_replication_engine_entry::Type) -> Entity {
    Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry { r#type: Some(ty) })
}
