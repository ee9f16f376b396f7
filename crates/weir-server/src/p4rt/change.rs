//! The changes that updates of a `WriteRequest` make: the request, resolved and checked as far as
//! the program alone allows.

use super::refusal::Refusal;
use super::schema::{Schema, Table};
use super::{action, custom_crc, data, extern_keys, matching};
use std::sync::Arc;
use weir_ir::{ActionCall, Bits, ExternId, KeyMatch, TableId, ValueSetId};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_proto::port_queues;
use weir_switch::{
    Cell, CloneSession, Count, CrcParameters, CrcScope, GroupReplica, KeyBytes, MeterConfig, MulticastGroup,
    QueueConfig, Rate, Replica,
};
use weir_table::{EntryAction, Group, GroupMember, Member, NewEntry, Note, PortForm, ProfileOp};

/// An entry by its match and priority, or the default entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// An entry.
    Entry(Vec<KeyMatch>, u32),
    /// The default entry.
    Default,
}

/// Values of the direct resources of an entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Direct {
    /// The counter's value, where it is to be set.
    pub counter: Option<(ExternId, Count)>,
    /// The meter's rates, where the table has one.
    pub meter: Option<(ExternId, Option<MeterConfig>)>,
}

/// A new state of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct NewState {
    /// The action; `None`: as it is.
    pub action: Option<EntryAction>,
    /// `controller_metadata`
    pub metadata: u64,
    /// `metadata`, and what belongs to a one-shot set.
    pub note: Note,
    /// After which it is idle; 0: never.
    pub idle_timeout_ns: u64,
    /// Its direct resources.
    pub direct: Direct,
}

/// Whether something is to be there before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// It must not be there.
    Absent,
    /// It must be there.
    Present,
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Adds an entry.
    InsertEntry(TableId, NewEntry, Direct),
    /// Gives an entry a new state.
    ModifyEntry(TableId, Vec<KeyMatch>, u32, NewState),
    /// Removes an entry.
    DeleteEntry(TableId, Vec<KeyMatch>, u32),
    /// Gives the default entry a new action and metadata, or resets it.
    ModifyDefault(TableId, Option<ActionCall>, u64, Note, Direct),
    /// Members and groups.
    Profile(ExternId, Arc<[TableId]>, ProfileOp),
    /// A counter of an array.
    Counter(ExternId, Cell, Count),
    /// A meter of an array.
    Meter(ExternId, Cell, Option<MeterConfig>),
    /// Direct resources of an entry that is there.
    Direct(TableId, Place, Direct),
    /// A register.
    Register(ExternId, Cell, Vec<Bits>),
    /// A multicast group; `None` removes it.
    Group(Before, u32, Option<MulticastGroup>),
    /// A clone session; `None` removes it.
    Session(Before, u32, Option<CloneSession>),
    /// All members of a value set.
    ValueSet(ValueSetId, Vec<Vec<KeyMatch>>, u64),
    /// Parameters of custom CRCs.
    CustomCrc(CrcScope, CrcParameters),
    /// Sets a key of an extern, by its number; an empty one removes it.
    Key(Before, ExternId, u64, KeyBytes),
    /// The queues of a port; `None`: as the switch was started.
    Queues(u32, Option<QueueConfig>),
    /// How a digest is sent; `None`: it is not.
    Digest(Before, u32, Option<pb::digest_entry::Config>),
    /// Nothing: what was given changes nothing.
    Nothing,
}

/// The change that an update makes.
///
/// # Errors
/// It is impossible in any state of the switch.
pub fn decode(schema: &Schema, errors: &[String], update: &pb::Update) -> Result<Change, Refusal> {
    let ty = Type::try_from(update.r#type).unwrap_or(Type::Unspecified);
    if ty == Type::Unspecified {
        return Err(Refusal::malformed(
            "the update has no type; use INSERT, MODIFY or DELETE",
        ));
    }
    let entity = update.entity.as_ref().and_then(|e| e.entity.as_ref());
    match entity.ok_or_else(|| Refusal::malformed("the update has no entity"))? {
        Entity::TableEntry(entry) => table_entry(schema, ty, entry),
        Entity::ActionProfileMember(member) => profile_member(schema, ty, member),
        Entity::ActionProfileGroup(group) => profile_group(schema, ty, group),
        Entity::CounterEntry(entry) => counter(schema, ty, entry),
        Entity::DirectCounterEntry(entry) => direct_counter(schema, ty, entry),
        Entity::MeterEntry(entry) => meter(schema, ty, entry),
        Entity::DirectMeterEntry(entry) => direct_meter(schema, ty, entry),
        Entity::RegisterEntry(entry) => register(schema, errors, ty, entry),
        Entity::ValueSetEntry(entry) => value_set(schema, ty, entry),
        Entity::DigestEntry(entry) => digest(schema, ty, entry),
        Entity::PacketReplicationEngineEntry(entry) => {
            use pb::packet_replication_engine_entry::Type as Kind;
            match &entry.r#type {
                Some(Kind::MulticastGroupEntry(group)) => multicast_group(ty, group),
                Some(Kind::CloneSessionEntry(session)) => clone_session(ty, session),
                None => Err(Refusal::malformed(
                    "the entry is neither a multicast group nor a clone session",
                )),
            }
        }
        Entity::ExternEntry(entry) => extern_entry(schema, ty, entry),
    }
}

/// Custom CRCs, keys and queues have no entity of their own.
fn extern_entry(schema: &Schema, ty: Type, entry: &pb::ExternEntry) -> Result<Change, Refusal> {
    if entry.extern_type_id == port_queues::EXTERN_TYPE {
        return super::port_queues::decode(ty, entry);
    }
    if extern_keys::is_type(schema, entry.extern_type_id) {
        return extern_keys::decode(schema, ty, entry);
    }
    let crc = custom_crc::of_type(schema, entry.extern_type_id)?;
    only_modify(ty, crc.name)?;
    let (scope, parameters) = custom_crc::decode(schema, entry)?;
    Ok(Change::CustomCrc(scope, parameters))
}

fn only_modify(ty: Type, what: &str) -> Result<(), Refusal> {
    if ty == Type::Modify {
        return Ok(());
    }
    Err(Refusal::malformed(format!("{what} can only be modified")))
}

/// The priority of an entry.
pub fn priority(table: &Table, given: i32) -> Result<u32, Refusal> {
    match (table.has_priority, u32::try_from(given)) {
        (true, Ok(p)) if p > 0 => Ok(p),
        (false, Ok(0)) => Ok(0),
        (true, _) => Err(Refusal::malformed(format!(
            "entries of `{}` have a priority of 1 or more, the larger wins; found {given}",
            table.name
        ))),
        (false, _) => Err(Refusal::malformed(format!(
            "entries of `{}` have no priority (it has no ternary, range or optional key); found {given}",
            table.name
        ))),
    }
}

/// The entry of its table to which an update refers.
pub fn place(table: &Table, entry: &pb::TableEntry) -> Result<Place, Refusal> {
    if entry.is_default_action {
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return Err(Refusal::malformed("the default entry has no match and no priority"));
        }
        return Ok(Place::Default);
    }
    let matches = matching::decode(&table.fields, &entry.r#match)?;
    Ok(Place::Entry(matches, priority(table, entry.priority)?))
}

fn table_entry(schema: &Schema, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    let table = schema.table(entry.table_id)?;
    let within = |e: Refusal| e.within(&format!("table `{}`", table.name));
    if entry.is_const {
        return Err(within(Refusal::malformed("no controller writes const entries")));
    }
    if table.const_entries && ty != Type::Modify && !entry.is_default_action {
        return Err(within(Refusal::forbidden("the entries are const in the program")));
    }
    match place(table, entry).map_err(within)? {
        Place::Default => default_entry(table, ty, entry).map_err(within),
        Place::Entry(matches, priority) if ty == Type::Delete => {
            Ok(Change::DeleteEntry(table.table, matches, priority))
        }
        Place::Entry(matches, priority) => {
            let state = new_state(schema, table, entry).map_err(within)?;
            if ty == Type::Modify {
                return modified(table, matches, priority, state).map_err(within);
            }
            if table.fields.is_empty() {
                return Err(within(Refusal::malformed(
                    "a table without keys has only the default entry",
                )));
            }
            let action = state
                .action
                .ok_or_else(|| within(Refusal::malformed("a new entry needs an action")))?;
            let entry = NewEntry {
                matches,
                priority,
                action,
                metadata: state.metadata,
                note: state.note,
                idle_timeout_ns: state.idle_timeout_ns,
            };
            Ok(Change::InsertEntry(table.table, entry, state.direct))
        }
    }
}

/// Of entries that are const in the program, only direct resources can be modified.
fn modified(table: &Table, matches: Vec<KeyMatch>, priority: u32, state: NewState) -> Result<Change, Refusal> {
    if !table.const_entries {
        return Ok(Change::ModifyEntry(table.table, matches, priority, state));
    }
    if state.action.is_some() {
        return Err(Refusal::forbidden(
            "the entries are const in the program; leave out the action",
        ));
    }
    Ok(Change::Direct(
        table.table,
        Place::Entry(matches, priority),
        state.direct,
    ))
}

fn default_entry(table: &Table, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    if ty != Type::Modify {
        return Err(Refusal::malformed("the default entry can only be modified"));
    }
    if entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some() {
        return Err(Refusal::malformed("the default entry does not time out"));
    }
    if table.const_default {
        return Err(Refusal::forbidden("the default action is const in the program"));
    }
    let direct = direct(table, entry)?;
    use pb::table_action::Type as Kind;
    let given = entry.action.as_ref().map(|a| &a.r#type);
    let action = match given {
        None => None,
        Some(Some(Kind::Action(given))) => Some(action::call(table, given)?),
        Some(_) => return Err(Refusal::malformed("the default entry takes an action")),
    };
    check_executed(table, entry)?;
    check_metadata(&entry.metadata)?;
    let note = action::note(action::Settings::default(), &entry.metadata);
    Ok(match action {
        None => Change::ModifyDefault(
            table.table,
            None,
            0,
            None,
            Direct {
                counter: None,
                ..direct
            },
        ),
        Some(call) => Change::ModifyDefault(table.table, Some(call), entry.controller_metadata, note, direct),
    })
}

/// The new state of an entry, apart from match and priority.
fn new_state(schema: &Schema, table: &Table, entry: &pb::TableEntry) -> Result<NewState, Refusal> {
    if entry.time_since_last_hit.is_some() {
        return Err(Refusal::malformed("time_since_last_hit is not written"));
    }
    let idle_timeout_ns = u64::try_from(entry.idle_timeout_ns)
        .map_err(|_| Refusal::malformed("idle_timeout_ns is negative; 0 means never"))?;
    if idle_timeout_ns > 0 && !table.idle_timeout {
        return Err(Refusal::malformed(
            "its entries do not time out; leave out idle_timeout_ns",
        ));
    }
    let decoded = entry
        .action
        .as_ref()
        .map(|a| action::decode(schema, table, a))
        .transpose()?;
    let (action, settings) = decoded.unzip();
    check_executed(table, entry)?;
    check_metadata(&entry.metadata)?;
    Ok(NewState {
        action,
        metadata: entry.controller_metadata,
        note: action::note(settings.unwrap_or_default(), &entry.metadata),
        idle_timeout_ns,
        direct: direct(table, entry)?,
    })
}

/// Bytes of `metadata` of an entry or a group: each Read of it takes them again.
const MOST_METADATA: usize = 64 << 10;

fn check_metadata(metadata: &[u8]) -> Result<(), Refusal> {
    match metadata.len() {
        0..=MOST_METADATA => Ok(()),
        found => Err(Refusal::exhausted(format!(
            "`metadata` has {found} bytes; at most {MOST_METADATA} are kept"
        ))),
    }
}

/// The direct resources that an entry is written with.
fn direct(table: &Table, entry: &pb::TableEntry) -> Result<Direct, Refusal> {
    if entry.meter_counter_data.is_some() {
        return Err(no_meter_counts());
    }
    let counter = match (&entry.counter_data, table.counter) {
        (None, _) => None,
        (Some(data), Some((_, instance))) => Some((instance, count(data)?)),
        (Some(_), None) => return Err(Refusal::malformed("it has no direct counter; leave out counter_data")),
    };
    let meter = match (&entry.meter_config, table.meter) {
        (None, None) => None,
        (config, Some((_, instance))) => Some((instance, rates(config.as_ref())?)),
        (Some(_), None) => return Err(Refusal::malformed("it has no direct meter; leave out meter_config")),
    };
    Ok(Direct { counter, meter })
}

/// A value for a direct resource is given only where some action of the entry executes it: else it
/// would do nothing.
fn check_executed(table: &Table, entry: &pb::TableEntry) -> Result<(), Refusal> {
    let given = [
        (
            entry.counter_data.is_some(),
            table.counter,
            "counter; leave out counter_data",
        ),
        (
            entry.meter_config.is_some(),
            table.meter,
            "meter; leave out meter_config",
        ),
    ];
    for (is_given, resource, what) in given {
        if is_given && resource.is_some_and(|(_, r)| !action::executes(table, entry.action.as_ref(), r)) {
            return Err(Refusal::malformed(format!(
                "the entry's action does not execute the table's direct {what}"
            )));
        }
    }
    Ok(())
}

/// Removes from an entry the data of direct resources that its action does not execute, and returns
/// updates of those resources.
pub fn take_dormant(schema: &Schema, entry: &mut pb::TableEntry) -> Vec<Entity> {
    let Ok(table) = schema.table(entry.table_id) else {
        return Vec::new();
    };
    let action = entry.action.clone();
    let is_dormant =
        |resource: Option<(u32, ExternId)>| resource.is_some_and(|(_, r)| !action::executes(table, action.as_ref(), r));
    let data = entry.counter_data.take_if(|_| is_dormant(table.counter));
    let config = entry.meter_config.take_if(|_| is_dormant(table.meter));
    let owner = || {
        Some(pb::TableEntry {
            table_id: entry.table_id,
            r#match: entry.r#match.clone(),
            priority: entry.priority,
            is_default_action: entry.is_default_action,
            ..pb::TableEntry::default()
        })
    };
    let counter = data.filter(|d| *d != pb::CounterData::default()).map(|d| {
        Entity::DirectCounterEntry(pb::DirectCounterEntry {
            table_entry: owner(),
            data: Some(d),
        })
    });
    let meter = config.map(|c| {
        Entity::DirectMeterEntry(pb::DirectMeterEntry {
            table_entry: owner(),
            config: Some(c),
            counter_data: None,
        })
    });
    counter.into_iter().chain(meter).collect()
}

/// Meters here do not count.
pub fn no_meter_counts() -> Refusal {
    Refusal::unsupported("meters do not count packets by colour; leave out the meter's counter data")
}

fn count(data: &pb::CounterData) -> Result<Count, Refusal> {
    let number = |n: i64| u64::try_from(n).map_err(|_| Refusal::malformed("a count is negative"));
    Ok(Count {
        packets: number(data.packet_count)?,
        bytes: number(data.byte_count)?,
    })
}

/// The rates of a meter of two rates and three colours.
fn rates(config: Option<&pb::MeterConfig>) -> Result<Option<MeterConfig>, Refusal> {
    let Some(config) = config else { return Ok(None) };
    if config.eburst != 0 {
        return Err(Refusal::malformed(
            "meters of two rates have no excess burst; leave out eburst",
        ));
    }
    let number = |n: i64| u64::try_from(n).map_err(|_| Refusal::malformed("a rate or burst is negative"));
    let rate = |n: i64| {
        let limit = Rate::from_tokens_per_second(u64::MAX).tokens_per_second();
        let rate = number(n)?;
        if rate > limit {
            return Err(Refusal::out_of_range(format!(
                "a rate of {rate} exceeds {limit} per second"
            )));
        }
        Ok(Rate::from_tokens_per_second(rate))
    };
    Ok(Some(MeterConfig {
        cir: rate(config.cir)?,
        cbs: number(config.cburst)?,
        pir: rate(config.pir)?,
        pbs: number(config.pburst)?,
    }))
}

fn profile_member(schema: &Schema, ty: Type, given: &pb::ActionProfileMember) -> Result<Change, Refusal> {
    let profile = schema.profile(given.action_profile_id)?;
    let id = given.member_id;
    if id == 0 {
        return Err(Refusal::malformed("the id of a member is not 0"));
    }
    let member = || {
        let action = action::profile_call(profile, given.action.as_ref())?;
        Ok::<_, Refusal>(Member { action })
    };
    let op = match ty {
        Type::Delete => ProfileOp::DeleteMember(id),
        Type::Modify => ProfileOp::ModifyMember(id, member()?),
        _ => ProfileOp::InsertMember(id, member()?),
    };
    Ok(Change::Profile(profile.instance, profile.tables.as_slice().into(), op))
}

fn profile_group(schema: &Schema, ty: Type, given: &pb::ActionProfileGroup) -> Result<Change, Refusal> {
    let profile = schema.profile(given.action_profile_id)?;
    let id = given.group_id;
    if id == 0 {
        return Err(Refusal::malformed("the id of a group is not 0"));
    }
    let tables: Arc<[TableId]> = profile.tables.as_slice().into();
    if ty == Type::Delete {
        return Ok(Change::Profile(profile.instance, tables, ProfileOp::DeleteGroup(id)));
    }
    let limit = u32::try_from(given.max_size).map_err(|_| Refusal::malformed("max_size is negative"))?;
    if profile.max_group_size > 0 && !(1..=profile.max_group_size).contains(&limit) {
        return Err(Refusal::malformed(format!(
            "max_size of a group of `{}` is 1 to {}; found {limit}",
            profile.name, profile.max_group_size
        )));
    }
    let mut members = Vec::with_capacity(given.members.len());
    for member in &given.members {
        use pb::action_profile_group::member::WatchKind;
        let (bytes, old) = match &member.watch_kind {
            Some(WatchKind::WatchPort(bytes)) => (Some(bytes.as_slice()), None),
            Some(WatchKind::Watch(number)) => (None, Some(*number)),
            None => (None, None),
        };
        members.push(GroupMember {
            watch: action::watch_port(bytes, old)?,
            ..GroupMember::new(member.member_id, action::weight(member.weight)?)
        });
    }
    action::check_size(profile, members.iter().map(|m| m.weight), 0)?;
    let group = Group {
        members,
        max_size: limit.into(),
    };
    let op = match ty {
        Type::Modify => ProfileOp::ModifyGroup(id, group),
        _ => ProfileOp::InsertGroup(id, group),
    };
    Ok(Change::Profile(profile.instance, tables, op))
}

/// A cell, or all where no index is given.
pub fn cell(index: Option<&pb::Index>) -> Result<Cell, Refusal> {
    match index {
        None => Ok(Cell::All),
        Some(index) => {
            let index = u64::try_from(index.index).map_err(|_| Refusal::malformed("the index is negative"))?;
            Ok(Cell::Index(index))
        }
    }
}

fn counter(schema: &Schema, ty: Type, given: &pb::CounterEntry) -> Result<Change, Refusal> {
    only_modify(ty, "a counter")?;
    let array = schema.counter(given.counter_id)?;
    let cell = cell(given.index.as_ref())?;
    match &given.data {
        Some(data) => Ok(Change::Counter(array.instance, cell, count(data)?)),
        None => Ok(Change::Nothing),
    }
}

fn meter(schema: &Schema, ty: Type, given: &pb::MeterEntry) -> Result<Change, Refusal> {
    only_modify(ty, "a meter")?;
    let array = schema.meter(given.meter_id)?;
    if given.counter_data.is_some() {
        return Err(no_meter_counts());
    }
    let cell = cell(given.index.as_ref())?;
    Ok(Change::Meter(array.instance, cell, rates(given.config.as_ref())?))
}

/// The entry that a direct resource belongs to.
pub fn owner<'a>(schema: &'a Schema, entry: Option<&pb::TableEntry>) -> Result<(&'a Table, Place), Refusal> {
    let entry = entry.ok_or_else(|| Refusal::malformed("the entry whose resource it is is missing"))?;
    let table = schema.table(entry.table_id)?;
    let place = place(table, entry).map_err(|e| e.within(&format!("table `{}`", table.name)))?;
    Ok((table, place))
}

fn direct_counter(schema: &Schema, ty: Type, given: &pb::DirectCounterEntry) -> Result<Change, Refusal> {
    only_modify(ty, "a direct counter")?;
    let (table, place) = owner(schema, given.table_entry.as_ref())?;
    let no_counter = || Refusal::malformed(format!("table `{}` has no direct counter", table.name));
    let (_, instance) = table.counter.ok_or_else(no_counter)?;
    let value = given.data.as_ref().map(count).transpose()?;
    let direct = Direct {
        counter: value.map(|v| (instance, v)),
        meter: None,
    };
    Ok(Change::Direct(table.table, place, direct))
}

fn direct_meter(schema: &Schema, ty: Type, given: &pb::DirectMeterEntry) -> Result<Change, Refusal> {
    only_modify(ty, "a direct meter")?;
    let (table, place) = owner(schema, given.table_entry.as_ref())?;
    let no_meter = || Refusal::malformed(format!("table `{}` has no direct meter", table.name));
    let (_, instance) = table.meter.ok_or_else(no_meter)?;
    if given.counter_data.is_some() {
        return Err(no_meter_counts());
    }
    let direct = Direct {
        counter: None,
        meter: Some((instance, rates(given.config.as_ref())?)),
    };
    Ok(Change::Direct(table.table, place, direct))
}

fn register(schema: &Schema, errors: &[String], ty: Type, given: &pb::RegisterEntry) -> Result<Change, Refusal> {
    only_modify(ty, "a register")?;
    let register = schema.register(given.register_id)?;
    let cell = cell(given.index.as_ref())?;
    let value = given.data.as_ref();
    let value = value.ok_or_else(|| Refusal::malformed("the value of the register is missing"))?;
    data::check_cell(&register.ty).map_err(|e| e.within(&format!("register `{}`", register.array.name)))?;
    let values = data::decode(&register.ty, value, errors)
        .map_err(|e| e.within(&format!("register `{}`", register.array.name)))?;
    Ok(Change::Register(register.array.instance, cell, values))
}

fn value_set(schema: &Schema, ty: Type, given: &pb::ValueSetEntry) -> Result<Change, Refusal> {
    only_modify(ty, "a value set")?;
    let set = schema.value_set(given.value_set_id)?;
    if given.members.len() as u64 > set.size {
        return Err(Refusal::exhausted(format!(
            "value set `{}` has room for {} members, found {}",
            set.name,
            set.size,
            given.members.len()
        )));
    }
    let members = given.members.iter().map(|m| matching::decode(&set.fields, &m.r#match));
    let members: Vec<Vec<KeyMatch>> = members.collect::<Result<_, _>>()?;
    Ok(Change::ValueSet(set.set, members, set.size))
}

fn digest(schema: &Schema, ty: Type, given: &pb::DigestEntry) -> Result<Change, Refusal> {
    let digest = schema.digest(given.digest_id)?;
    if ty == Type::Delete {
        return Ok(Change::Digest(Before::Present, digest.id, None));
    }
    let config = given.config.unwrap_or_default();
    if config.max_timeout_ns < 0 || config.ack_timeout_ns < 0 || config.max_list_size < 0 {
        return Err(Refusal::malformed("time-outs and sizes of digests are not negative"));
    }
    let before = before(ty);
    Ok(Change::Digest(before, digest.id, Some(config)))
}

fn before(ty: Type) -> Before {
    match ty {
        Type::Insert => Before::Absent,
        _ => Before::Present,
    }
}

fn replica(given: &pb::Replica) -> Result<Replica, Refusal> {
    use pb::replica::PortKind;
    let (port, form) = match &given.port_kind {
        Some(PortKind::Port(bytes)) => (action::port(bytes)?, PortForm::Bytes),
        Some(PortKind::EgressPort(port)) => (*port, PortForm::Number),
        None => return Err(Refusal::malformed("a replica has no port")),
    };
    Ok(Replica {
        port,
        rid: instance(given.instance)?,
        form,
    })
}

/// Programs have 16 bits for the number of a replica.
fn instance(instance: u32) -> Result<u32, Refusal> {
    if instance > 0xffff {
        return Err(Refusal::malformed(format!(
            "the instance {instance} of a replica exceeds 65535"
        )));
    }
    Ok(instance)
}

fn multicast_group(ty: Type, given: &pb::MulticastGroupEntry) -> Result<Change, Refusal> {
    let id = given.multicast_group_id;
    if id == 0 {
        return Err(Refusal::malformed("the id of a multicast group is not 0"));
    }
    if ty == Type::Delete {
        return Ok(Change::Group(Before::Present, id, None));
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut unique = |r: Replica| match seen.insert((r.port, r.rid)) {
        true => Ok(r),
        false => Err(Refusal::malformed(format!(
            "port {} and instance {} are in the group twice",
            r.port, r.rid
        ))),
    };
    let mut replicas = Vec::with_capacity(given.replicas.len());
    for one in &given.replicas {
        let first = unique(replica(one)?)?;
        let mut backups = Vec::new();
        let mut ports = std::collections::BTreeSet::from([first.port]);
        for backup in &one.backup_replicas {
            let backup = unique(Replica::new(action::port(&backup.port)?, instance(backup.instance)?))?;
            if !ports.insert(backup.port) {
                return Err(Refusal::malformed(format!(
                    "port {} is in a replica and its backups twice",
                    backup.port
                )));
            }
            backups.push(backup);
        }
        replicas.push(GroupReplica {
            replica: first,
            backups,
        });
    }
    check_metadata(&given.metadata)?;
    let group = MulticastGroup {
        replicas,
        note: given.metadata.clone(),
    };
    Ok(Change::Group(before(ty), id, Some(group)))
}

fn clone_session(ty: Type, given: &pb::CloneSessionEntry) -> Result<Change, Refusal> {
    let id = given.session_id;
    if id == 0 {
        return Err(Refusal::malformed("the id of a clone session is not 0"));
    }
    if ty == Type::Delete {
        return Ok(Change::Session(Before::Present, id, None));
    }
    if given.replicas.iter().any(|r| !r.backup_replicas.is_empty()) {
        return Err(Refusal::unsupported(
            "copies of clone sessions have no backups; clone to a multicast group's ports, or leave backup_replicas out",
        ));
    }
    let top = weir_switch::PRIORITIES - 1;
    let class_of_service = u8::try_from(given.class_of_service)
        .ok()
        .filter(|c| u64::from(*c) <= top as u64);
    let session = CloneSession {
        replicas: given.replicas.iter().map(replica).collect::<Result<_, _>>()?,
        group: None,
        truncate_bytes: u32::try_from(given.packet_length_bytes)
            .map_err(|_| Refusal::malformed("packet_length_bytes is negative; 0 means the whole packet"))?,
        class_of_service: class_of_service.ok_or_else(|| {
            Refusal::malformed(format!(
                "class_of_service is 0 to {top}; found {}",
                given.class_of_service
            ))
        })?,
    };
    Ok(Change::Session(before(ty), id, Some(session)))
}
