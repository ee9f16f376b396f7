//! Builds a schema from a P4Info.
//!
//! Keys and data of the objects for which P4Runtime has messages of their own:
//!
//! | Kind | Key | Data |
//! |---|---|---|
//! | match | as in the program | parameters of the action; [`COUNTER_BYTES`], [`COUNTER_PACKETS`], [`METER_CIR`] …, [`IDLE_TIMEOUT_NS`], [`SINCE_LAST_HIT_NS`], [`METADATA`] where the table has them |
//! | match, indirect | as in the program | [`MEMBER_ID`], [`GROUP_ID`] or [`ACTION_SET`]: a list of records with `action`, `weight`, `watch_port` and the parameters |
//! | members | [`MEMBER_ID`] | parameters of the action |
//! | groups | [`GROUP_ID`] | [`MEMBERS`]: a list of records with `member_id`, `weight`, `watch_port`; [`MAX_GROUP_SIZE`] |
//! | counter | [`COUNTER_INDEX`] | [`COUNTER_BYTES`], [`COUNTER_PACKETS`] |
//! | meter | [`METER_INDEX`] | [`METER_CIR`] … in bytes or packets (per second) |
//! | register | [`REGISTER_INDEX`] | `value`, or the fields of the struct |
//! | value set | none | `members`: a list of records, with the keys as texts are written by [`crate::notation`] |
//! | multicast groups | [`MULTICAST_GROUP_ID`] | [`REPLICAS`]: a list of records with `port`, `instance`; [`METADATA`] |
//! | clone sessions | [`SESSION_ID`] | [`REPLICAS`], `class_of_service`, `packet_length_bytes` |
//! | custom CRC | none | `polynomial`, `initial`, `xor_out`, `reflect_in`, `reflect_out` |

use super::types::{resolve, scalar};
use super::{Action, Digest, Field, Key, Kind, MatchKind, Protocol, Schema, Scope, Table, Type};
use super::{custom_crc, extern_keys};
use std::collections::HashMap;
use weir_proto::p4::config::v1 as pb;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident, $id:ident = $number:literal, $text:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $text;)*
        /// Ids of the fields above.
        pub(crate) mod id {
            $(pub const $id: u32 = $number;)*
        }
    };
}
names! {
    /// A member of an action profile.
    MEMBER_ID, MEMBER = 65539, "$ACTION_MEMBER_ID";
    /// A group of members.
    GROUP_ID, GROUP = 65540, "$SELECTOR_GROUP_ID";
    /// Byte count.
    COUNTER_BYTES, BYTES = 65553, "$COUNTER_SPEC_BYTES";
    /// Packet count.
    COUNTER_PACKETS, PACKETS = 65554, "$COUNTER_SPEC_PKTS";
    /// Index in an array of counters.
    COUNTER_INDEX, COUNTER = 65556, "$COUNTER_INDEX";
    /// Index in an array of meters.
    METER_INDEX, METER = 65557, "$METER_INDEX";
    /// Index in an array of registers.
    REGISTER_INDEX, REGISTER = 65558, "$REGISTER_INDEX";
    /// Committed rate, per second.
    METER_CIR, CIR = 1, "$METER_SPEC_CIR";
    /// Committed burst.
    METER_CBS, CBS = 2, "$METER_SPEC_CBS";
    /// Peak rate, per second.
    METER_PIR, PIR = 3, "$METER_SPEC_PIR";
    /// Peak burst.
    METER_PBS, PBS = 4, "$METER_SPEC_PBS";
    /// Ns without a hit after which an entry is reported as idle; 0: never.
    IDLE_TIMEOUT_NS, IDLE = 5, "$IDLE_TIMEOUT_NS";
    /// Ns since the entry was last hit.
    SINCE_LAST_HIT_NS, HIT = 6, "$SINCE_LAST_HIT_NS";
    /// Bytes that the controller keeps with an entry.
    METADATA, METADATA_ID = 7, "$METADATA";
    /// Actions of an entry, one of which is selected per packet.
    ACTION_SET, SET = 8, "$ACTION_SET";
    /// Members of a group.
    MEMBERS, MEMBERS_ID = 9, "$MEMBERS";
    /// Most members of a group; 0 if not specified.
    MAX_GROUP_SIZE, MAX_SIZE = 10, "$MAX_GROUP_SIZE";
    /// A multicast group.
    MULTICAST_GROUP_ID, MULTICAST = 11, "$MULTICAST_GROUP_ID";
    /// Copies.
    REPLICAS, REPLICAS_ID = 12, "$REPLICAS";
    /// A clone session.
    SESSION_ID, SESSION = 13, "$SESSION_ID";
}

/// The table of multicast groups.
pub const MULTICAST_GROUPS: &str = "$MULTICAST_GROUPS";
/// The table of clone sessions.
pub const CLONE_SESSIONS: &str = "$CLONE_SESSIONS";

/// Ids of the tables that have none in P4Runtime: P4Info never uses the prefix 0.
pub(crate) const MULTICAST_TABLE: u32 = 1;
pub(crate) const CLONE_TABLE: u32 = 2;

impl Schema {
    /// The schema of a P4Runtime target.
    #[must_use]
    pub fn from_p4info(info: &pb::P4Info) -> Schema {
        let none = pb::P4TypeInfo::default();
        let from = Source {
            info,
            types: info.type_info.as_ref().unwrap_or(&none),
            actions: info.actions.iter().map(|a| (id_of(&a.preamble), a)).collect(),
        };
        let mut tables: Vec<Table> = info.tables.iter().map(|t| from.match_table(t)).collect();
        for profile in &info.action_profiles {
            tables.push(from.members(profile));
            if profile.with_selector {
                tables.push(groups(profile));
            }
        }
        tables.extend(info.counters.iter().map(counter));
        tables.extend(info.meters.iter().map(meter));
        tables.extend(info.registers.iter().map(|r| from.register(r)));
        tables.extend(info.value_sets.iter().map(|s| from.value_set(s)));
        tables.extend(info.externs.iter().flat_map(custom_crc::tables));
        tables.extend(info.externs.iter().flat_map(extern_keys::tables));
        tables.push(multicast_groups());
        tables.push(clone_sessions());
        let digests = info.digests.iter().map(|d| Digest {
            id: id_of(&d.preamble),
            name: name_of(&d.preamble),
            ty: resolve(d.type_spec.as_ref(), from.types),
        });
        let package = info.pkg_info.clone().unwrap_or_default();
        let mut schema = Schema::new(Protocol::P4Runtime, package.name, tables, digests.collect());
        schema.architecture = package.arch;
        for header in &info.controller_packet_metadata {
            let fields = header.metadata.iter().map(|m| {
                let ty = scalar(m.bitwidth, m.type_name.as_ref(), from.types);
                Field::new(m.id, &m.name, ty)
            });
            match name_of(&header.preamble).as_str() {
                "packet_in" => schema.packet_in = fields.collect(),
                "packet_out" => schema.packet_out = fields.collect(),
                _ => {}
            }
        }
        schema
    }
}

fn id_of(preamble: &Option<pb::Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |p| p.id)
}

fn name_of(preamble: &Option<pb::Preamble>) -> String {
    preamble.as_ref().map(|p| p.name.clone()).unwrap_or_default()
}

struct Source<'a> {
    info: &'a pb::P4Info,
    types: &'a pb::P4TypeInfo,
    actions: HashMap<u32, &'a pb::Action>,
}

/// A table without keys, actions and data.
fn table(id: u32, name: String, kind: Kind, size: i64) -> Table {
    Table {
        protocol: Protocol::P4Runtime,
        id,
        name,
        kind,
        size: u64::try_from(size).unwrap_or(0),
        keys: Vec::new(),
        priority: None,
        actions: Vec::new(),
        data: Vec::new(),
        elements: Vec::new(),
        is_const: false,
        has_const_default: false,
        const_default_action: None,
        operations: Vec::new(),
        attributes: Vec::new(),
    }
}

impl Source<'_> {
    fn match_table(&self, source: &pb::Table) -> Table {
        let kind = if source.implementation_id == 0 {
            Kind::Match
        } else {
            Kind::MatchIndirect
        };
        let mut table = table(id_of(&source.preamble), name_of(&source.preamble), kind, source.size);
        table.keys = source.match_fields.iter().map(|f| self.key(f)).collect();
        let has_priority = table
            .keys
            .iter()
            .any(|k| matches!(k.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        table.priority = has_priority.then_some(0);
        table.is_const = source.is_const_table;
        table.has_const_default = source.const_default_action_id != 0;
        let const_default = self.actions.get(&source.const_default_action_id);
        table.const_default_action = const_default.map(|action| name_of(&action.preamble));
        let actions = source.action_refs.iter().filter_map(|reference| {
            let scope = match reference.scope() {
                pb::action_ref::Scope::TableOnly => Scope::Entries,
                pb::action_ref::Scope::DefaultOnly => Scope::Default,
                _ => Scope::Both,
            };
            self.action(reference.id, scope)
        });
        table.actions = actions.collect();
        if table.kind == Kind::MatchIndirect {
            let set = ["action", "weight", "watch_port"];
            let set = set.iter().zip(0..).map(|(name, id)| {
                let ty = if id == 0 {
                    Type::Text(Vec::new())
                } else {
                    Type::Bits(32)
                };
                Field::new(id, name, ty)
            });
            table.data.extend([
                Field::new(id::MEMBER, MEMBER_ID, Type::Bits(32)),
                Field::new(id::GROUP, GROUP_ID, Type::Bits(32)),
                Field::new(id::SET, ACTION_SET, Type::Record(set.collect())).list(),
            ]);
        }
        for resource in &source.direct_resource_ids {
            let counter = self
                .info
                .direct_counters
                .iter()
                .find(|c| id_of(&c.preamble) == *resource);
            if let Some(counter) = counter {
                table.data.extend(counts(counter.spec.as_ref()));
            }
            if self.info.direct_meters.iter().any(|m| id_of(&m.preamble) == *resource) {
                table.data.extend(rates());
            }
        }
        if source.idle_timeout_behavior() == pb::table::IdleTimeoutBehavior::NotifyControl {
            table.data.push(Field::new(id::IDLE, IDLE_TIMEOUT_NS, Type::Bits(63)));
            let mut hit = Field::new(id::HIT, SINCE_LAST_HIT_NS, Type::Bits(63));
            hit.is_read_only = true;
            table.data.push(hit);
        }
        table.data.push(Field::new(id::METADATA_ID, METADATA, Type::Bytes));
        table
    }

    fn key(&self, field: &pb::MatchField) -> Key {
        use pb::match_field::{Match, MatchType};
        let kind = match &field.r#match {
            Some(Match::MatchType(kind)) => match MatchType::try_from(*kind) {
                Ok(MatchType::Lpm) => MatchKind::Lpm,
                Ok(MatchType::Ternary) => MatchKind::Ternary,
                Ok(MatchType::Range) => MatchKind::Range,
                Ok(MatchType::Optional) => MatchKind::Optional,
                _ => MatchKind::Exact,
            },
            _ => MatchKind::Exact,
        };
        Key {
            id: field.id,
            name: field.name.clone(),
            kind,
            ty: scalar(field.bitwidth, field.type_name.as_ref(), self.types),
        }
    }

    fn action(&self, id: u32, scope: Scope) -> Option<Action> {
        let action = self.actions.get(&id)?;
        let params = action.params.iter().map(|p| {
            let ty = scalar(p.bitwidth, p.type_name.as_ref(), self.types);
            let mut field = Field::new(p.id, &p.name, ty);
            field.is_mandatory = true;
            field
        });
        Some(Action {
            id,
            name: name_of(&action.preamble),
            scope,
            params: params.collect(),
        })
    }

    fn members(&self, profile: &pb::ActionProfile) -> Table {
        let id = id_of(&profile.preamble);
        let mut table = table(id, name_of(&profile.preamble), Kind::Members, profile.size);
        table.keys = vec![index(id::MEMBER, MEMBER_ID, 32)];
        // Members can have any action that a table of the profile allows in entries.
        let tables = self.info.tables.iter().filter(|t| t.implementation_id == id);
        for reference in tables.flat_map(|t| &t.action_refs) {
            let is_known = table.actions.iter().any(|a| a.id == reference.id);
            if !is_known && reference.scope() != pb::action_ref::Scope::DefaultOnly {
                table.actions.extend(self.action(reference.id, Scope::Entries));
            }
        }
        table
    }

    fn register(&self, register: &pb::Register) -> Table {
        let mut table = table(
            id_of(&register.preamble),
            name_of(&register.preamble),
            Kind::Register,
            i64::from(register.size),
        );
        table.keys = vec![index(id::REGISTER, REGISTER_INDEX, 63)];
        table.data = match resolve(register.type_spec.as_ref(), self.types) {
            Type::Record(fields) => fields,
            ty => vec![Field::new(0, "value", ty)],
        };
        table
    }

    fn value_set(&self, set: &pb::ValueSet) -> Table {
        let mut table = table(
            id_of(&set.preamble),
            name_of(&set.preamble),
            Kind::ValueSet,
            i64::from(set.size),
        );
        table.elements = set.r#match.iter().map(|m| self.key(m)).collect();
        // Fields of a type other than a struct have no names.
        let unnamed = table.elements.iter_mut().filter(|k| k.name.is_empty());
        unnamed.for_each(|k| k.name.push_str("value"));
        let fields = table
            .elements
            .iter()
            .map(|k| Field::new(k.id, &k.name, Type::Text(Vec::new())));
        table.data = vec![Field::new(0, "members", Type::Record(fields.collect())).list()];
        table
    }
}

fn index(id: u32, name: &str, width: u32) -> Key {
    Key {
        id,
        name: name.to_owned(),
        kind: MatchKind::Exact,
        ty: Type::Bits(width),
    }
}

fn counts(spec: Option<&pb::CounterSpec>) -> Vec<Field> {
    use pb::counter_spec::Unit;
    let unit = spec.map_or(Unit::Unspecified, pb::CounterSpec::unit);
    let bytes = (unit != Unit::Packets).then(|| Field::new(id::BYTES, COUNTER_BYTES, Type::Bits(63)));
    let packets = (unit != Unit::Bytes).then(|| Field::new(id::PACKETS, COUNTER_PACKETS, Type::Bits(63)));
    bytes.into_iter().chain(packets).collect()
}

fn rates() -> [Field; 4] {
    [
        (id::CIR, METER_CIR),
        (id::CBS, METER_CBS),
        (id::PIR, METER_PIR),
        (id::PBS, METER_PBS),
    ]
    .map(|(id, name)| Field::new(id, name, Type::Bits(63)))
}

/// The id of a table of groups is that of its profile with the top bit set, which P4Info never
/// uses.
pub(crate) const GROUPS: u32 = 1 << 31;

fn groups(profile: &pb::ActionProfile) -> Table {
    let name = format!("{}.$GROUPS", name_of(&profile.preamble));
    let mut table = table(id_of(&profile.preamble) | GROUPS, name, Kind::Groups, profile.size);
    table.keys = vec![index(id::GROUP, GROUP_ID, 32)];
    let member = ["member_id", "weight", "watch_port"].iter().zip(0..);
    let member = member.map(|(name, id)| Field::new(id, name, Type::Bits(32)));
    table.data = vec![
        Field::new(id::MEMBERS_ID, MEMBERS, Type::Record(member.collect())).list(),
        Field::new(id::MAX_SIZE, MAX_GROUP_SIZE, Type::Bits(31)),
    ];
    table
}

fn counter(counter: &pb::Counter) -> Table {
    let mut table = table(
        id_of(&counter.preamble),
        name_of(&counter.preamble),
        Kind::Counter,
        counter.size,
    );
    table.keys = vec![index(id::COUNTER, COUNTER_INDEX, 63)];
    table.data = counts(counter.spec.as_ref());
    table
}

fn meter(meter: &pb::Meter) -> Table {
    let mut table = table(
        id_of(&meter.preamble),
        name_of(&meter.preamble),
        Kind::Meter,
        meter.size,
    );
    table.keys = vec![index(id::METER, METER_INDEX, 63)];
    table.data = rates().to_vec();
    table
}

fn replicas() -> Field {
    let copy = ["port", "instance"].iter().zip(0..);
    let copy = copy.map(|(name, id)| Field::new(id, name, Type::Bits(32)));
    Field::new(id::REPLICAS_ID, REPLICAS, Type::Record(copy.collect())).list()
}

fn multicast_groups() -> Table {
    let mut table = table(MULTICAST_TABLE, MULTICAST_GROUPS.to_owned(), Kind::MulticastGroups, 0);
    table.keys = vec![index(id::MULTICAST, MULTICAST_GROUP_ID, 32)];
    table.data = vec![replicas(), Field::new(id::METADATA_ID, METADATA, Type::Bytes)];
    table
}

fn clone_sessions() -> Table {
    let mut table = table(CLONE_TABLE, CLONE_SESSIONS.to_owned(), Kind::CloneSessions, 0);
    table.keys = vec![index(id::SESSION, SESSION_ID, 32)];
    table.data = vec![
        replicas(),
        Field::new(1, "class_of_service", Type::Bits(32)),
        Field::new(2, "packet_length_bytes", Type::Bits(31)),
    ];
    table
}
