//! A program as P4Runtime names it: the numbers of P4Info, resolved to the switch's tables and
//! externs once.

use super::custom_crc::{self, CrcInstance};
use super::packet::PacketHeader;
use super::refusal::Refusal;
use super::translation::{Codec, Dictionaries};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_ir::{ExternId, MatchKind, Program, TableId, TypeSpec, ValueSetId};
use weir_proto::p4::config::v1 as config;

/// A key of a table or a field of a value set.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its id in the table.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// How it is matched.
    pub kind: MatchKind,
    /// Its values.
    pub codec: Codec,
}

/// A parameter of an action.
#[derive(Debug, Clone)]
pub struct Param {
    /// Its id in the action.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its values.
    pub codec: Codec,
}

/// An action of a table.
#[derive(Debug, Clone)]
pub struct Action {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its parameters in order.
    pub params: Arc<[Param]>,
    /// The direct resources of its table that it executes.
    pub executes: Vec<ExternId>,
}

/// Where the actions of a table's entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    /// In the entries.
    Direct,
    /// In this action profile.
    Profile(u32),
    /// In this action selector.
    Selector(u32),
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The switch's table.
    pub table: TableId,
    /// Keys that entries match, in order.
    pub fields: Vec<Field>,
    /// Actions, by their number in the switch's table.
    pub actions: Vec<Action>,
    /// Where the actions of entries are.
    pub implementation: Implementation,
    /// Its direct counter, with its id.
    pub counter: Option<(u32, ExternId)>,
    /// Its direct meter, with its id.
    pub meter: Option<(u32, ExternId)>,
    /// Entries have priorities, and they must give one.
    pub has_priority: bool,
    /// The default action cannot be changed.
    pub const_default: bool,
    /// Entries cannot be changed.
    pub const_entries: bool,
    /// Entries can time out.
    pub idle_timeout: bool,
}

impl Table {
    /// The number of an action in the switch's table, by its id.
    ///
    /// # Errors
    /// The table does not list it.
    pub fn action(&self, id: u32) -> Result<(usize, &Action), Refusal> {
        let found = self.actions.iter().enumerate().find(|(_, a)| a.id == id && id != 0);
        found.ok_or_else(|| {
            let known: Vec<String> = self
                .actions
                .iter()
                .map(|a| format!("`{}` ({:#x})", a.name, a.id))
                .collect();
            Refusal::malformed(format!(
                "table `{}` lists no action with the id {id:#x}; it has {}",
                self.name,
                known.join(", ")
            ))
        })
    }
}

/// How the size of a selector's group is counted, with the largest weight of a member where members
/// are counted (0: no limit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeSemantics {
    /// Weights are added up.
    SumOfWeights,
    /// Members are counted.
    SumOfMembers(u32),
}

/// An action profile or selector.
#[derive(Debug)]
pub struct Profile {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The switch's instance.
    pub instance: ExternId,
    /// Largest size of a group; 0: no limit.
    pub max_group_size: u32,
    /// The unit of the size.
    pub semantics: SizeSemantics,
    /// Its actions, by their number in the switch's profile.
    pub actions: Vec<Action>,
    /// Tables that use it.
    pub tables: Vec<TableId>,
    /// The selector chooses by chance, not by a hash.
    pub is_random: bool,
}

/// A counter, meter or register array.
#[derive(Debug)]
pub struct Array {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The switch's instance.
    pub instance: ExternId,
}

/// A register array.
#[derive(Debug)]
pub struct Register {
    /// Id, name and instance.
    pub array: Array,
    /// The type of a cell.
    pub ty: TypeSpec,
}

/// A digest.
#[derive(Debug)]
pub struct Digest {
    /// Its id.
    pub id: u32,
    /// Its name, which identifies messages of the switch.
    pub name: String,
    /// The type of a message.
    pub ty: TypeSpec,
}

/// A parser value set.
#[derive(Debug)]
pub struct ValueSet {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The switch's set.
    pub set: ValueSetId,
    /// Its fields in order.
    pub fields: Vec<Field>,
    /// Room for members.
    pub size: u64,
}

/// A program as P4Runtime names it.
#[derive(Debug, Default)]
pub struct Schema {
    /// Tables by id.
    pub tables: BTreeMap<u32, Table>,
    /// Action profiles and selectors by id.
    pub profiles: BTreeMap<u32, Profile>,
    /// Counter arrays by id.
    pub counters: BTreeMap<u32, Array>,
    /// Meter arrays by id.
    pub meters: BTreeMap<u32, Array>,
    /// Register arrays by id.
    pub registers: BTreeMap<u32, Register>,
    /// Digests by id.
    pub digests: BTreeMap<u32, Digest>,
    /// Value sets by id.
    pub value_sets: BTreeMap<u32, ValueSet>,
    /// Custom CRCs that the program uses, and its calculations by them, by id.
    pub crcs: BTreeMap<u32, CrcInstance>,
    /// Extern instances with keys, by id.
    pub keyed: BTreeMap<u32, KeyedExtern>,
    /// The header of packets to the controller.
    pub packet_in: Option<PacketHeader>,
    /// The header of packets from the controller.
    pub packet_out: Option<PacketHeader>,
    /// Ids of P4Info's tables by the switch's number.
    table_ids: FxHashMap<TableId, u32>,
}

/// An extern instance with keys.
#[derive(Debug, Clone)]
pub struct KeyedExtern {
    /// The id of its type.
    pub type_id: u32,
    /// Its name.
    pub name: String,
    /// The switch's number.
    pub instance: ExternId,
}

/// Something of this id, or the refusal.
fn find<'a, T>(map: &'a BTreeMap<u32, T>, what: &str, id: u32) -> Result<&'a T, Refusal> {
    if id == 0 {
        return Err(Refusal::malformed(format!("the id of the {what} is missing")));
    }
    // INVALID_ARGUMENT is for ids that cannot be right, NOT_FOUND for things that could have been
    // inserted.
    map.get(&id)
        .ok_or_else(|| Refusal::malformed(format!("the program has no {what} with the id {id:#x}")))
}

impl Schema {
    /// The table with an id.
    ///
    /// # Errors
    /// There is none.
    pub fn table(&self, id: u32) -> Result<&Table, Refusal> {
        find(&self.tables, "table", id)
    }

    /// The switch's table as P4Runtime names it.
    #[must_use]
    pub fn table_of(&self, table: TableId) -> Option<&Table> {
        self.tables.get(self.table_ids.get(&table)?)
    }

    /// The action profile or selector with an id.
    ///
    /// # Errors
    /// There is none.
    pub fn profile(&self, id: u32) -> Result<&Profile, Refusal> {
        find(&self.profiles, "action profile", id)
    }

    /// The counter array with an id.
    ///
    /// # Errors
    /// There is none.
    pub fn counter(&self, id: u32) -> Result<&Array, Refusal> {
        find(&self.counters, "counter", id)
    }

    /// The meter array with an id.
    ///
    /// # Errors
    /// There is none.
    pub fn meter(&self, id: u32) -> Result<&Array, Refusal> {
        find(&self.meters, "meter", id)
    }

    /// The register array with an id.
    ///
    /// # Errors
    /// There is none.
    pub fn register(&self, id: u32) -> Result<&Register, Refusal> {
        find(&self.registers, "register", id)
    }

    /// The digest with an id.
    ///
    /// # Errors
    /// There is none.
    pub fn digest(&self, id: u32) -> Result<&Digest, Refusal> {
        find(&self.digests, "digest", id)
    }

    /// The value set with an id.
    ///
    /// # Errors
    /// There is none.
    pub fn value_set(&self, id: u32) -> Result<&ValueSet, Refusal> {
        find(&self.value_sets, "value set", id)
    }

    /// The names of a program's objects by its P4Info (made by weir of the same program).
    ///
    /// Objects that the P4Info does not have (`@hidden`) cannot be named.
    #[must_use]
    pub fn new(program: &Program, info: &config::P4Info) -> Self {
        Builder {
            program,
            info,
            dictionaries: Dictionaries::default(),
        }
        .build()
    }
}

/// Puts a schema together.
struct Builder<'a> {
    program: &'a Program,
    info: &'a config::P4Info,
    dictionaries: Dictionaries,
}

fn name(preamble: &Option<config::Preamble>) -> (u32, &str) {
    preamble.as_ref().map_or((0, ""), |p| (p.id, p.name.as_str()))
}

impl Builder<'_> {
    fn build(mut self) -> Schema {
        let mut schema = Schema::default();
        for described in &self.info.tables {
            let (id, name) = name(&described.preamble);
            if let Some(table) = self.table(id, name, described) {
                schema.table_ids.insert(table.table, id);
                schema.tables.insert(id, table);
            }
        }
        for described in &self.info.action_profiles {
            let (id, name) = name(&described.preamble);
            if let Some(profile) = self.profile(id, name, described) {
                schema.profiles.insert(id, profile);
            }
        }
        for described in &self.info.counters {
            let array = self.array(&described.preamble);
            schema.counters.extend(array.map(|a| (a.id, a)));
        }
        for described in &self.info.meters {
            let array = self.array(&described.preamble);
            schema.meters.extend(array.map(|a| (a.id, a)));
        }
        for described in &self.info.registers {
            let register = self.array(&described.preamble).map(|array| Register {
                ty: self.type_argument(array.instance),
                array,
            });
            schema.registers.extend(register.map(|r| (r.array.id, r)));
        }
        schema.crcs = custom_crc::instances(&self.info.externs);
        schema.keyed = self.keyed();
        self.digests(&mut schema);
        self.value_sets(&mut schema);
        let header = |s: &mut Self, which| {
            let described = s.info.controller_packet_metadata.iter();
            let described = described.clone().find(|c| name(&c.preamble).1 == which)?;
            PacketHeader::new(s.program, which, described, &mut s.dictionaries)
        };
        schema.packet_in = header(&mut self, "packet_in");
        schema.packet_out = header(&mut self, "packet_out");
        schema
    }

    fn keyed(&self) -> BTreeMap<u32, KeyedExtern> {
        let all = self.info.externs.iter().flat_map(|e| {
            let described = e.instances.iter().map(|i| name(&i.preamble));
            described.map(move |(id, name)| (e.extern_type_id, id, name))
        });
        let keyed = all.filter_map(|(type_id, id, name)| {
            let mut externs = self.program.externs.iter();
            let (instance, _) = externs.find(|(_, e)| e.name == name && e.key_count().is_some())?;
            let name = name.to_owned();
            let keyed = KeyedExtern {
                type_id,
                name,
                instance,
            };
            Some((id, keyed))
        });
        keyed.collect()
    }

    fn table(&mut self, id: u32, name: &str, described: &config::Table) -> Option<Table> {
        let (number, table) = self.program.tables.iter().find(|(_, t)| t.name == name)?;
        let keys = table.keys.iter().filter(|k| k.match_kind != MatchKind::Selector);
        let fields = keys.zip(&described.match_fields).map(|(key, field)| Field {
            id: field.id,
            name: key.name.clone(),
            kind: key.match_kind,
            codec: Codec::new(key.width, &key.control, &mut self.dictionaries),
        });
        let fields: Vec<Field> = fields.collect();
        let lpm = fields.iter().filter(|f| f.kind == MatchKind::Lpm).count();
        let masked = |f: &Field| matches!(f.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
        let has_priority = lpm > 1 || fields.iter().any(masked);
        let actions = table.actions.iter().map(|a| Action {
            executes: a.executes.clone(),
            ..self.action(a.action)
        });
        let actions = actions.collect();
        let direct = |list: &[(u32, &str)]| {
            table.direct.iter().find_map(|e| {
                let instance = self.program.externs.get(*e)?;
                let (id, _) = list.iter().find(|(_, n)| *n == instance.name)?;
                Some((*id, *e))
            })
        };
        let counters: Vec<_> = self
            .info
            .direct_counters
            .iter()
            .map(|c| self::name(&c.preamble))
            .collect();
        let meters: Vec<_> = self
            .info
            .direct_meters
            .iter()
            .map(|m| self::name(&m.preamble))
            .collect();
        let profile = self.info.action_profiles.iter();
        let profile = profile
            .clone()
            .find(|p| self::name(&p.preamble).0 == described.implementation_id);
        Some(Table {
            id,
            name: name.to_string(),
            table: number,
            actions,
            implementation: match profile.filter(|_| described.implementation_id != 0) {
                None => Implementation::Direct,
                Some(p) if p.with_selector => Implementation::Selector(described.implementation_id),
                Some(_) => Implementation::Profile(described.implementation_id),
            },
            counter: direct(&counters),
            meter: direct(&meters),
            has_priority,
            const_default: table.const_default,
            const_entries: table.const_entries,
            idle_timeout: table.idle_timeout,
            fields,
        })
    }

    /// An action as P4Info describes the one of its name.
    fn action(&mut self, id: weir_ir::ActionId) -> Action {
        let action = &self.program.actions[id];
        let described = self.info.actions.iter().find(|a| name(&a.preamble).1 == action.name);
        let ids: Vec<u32> = described.map_or(Vec::new(), |d| d.params.iter().map(|p| p.id).collect());
        let params = action.parameters.iter().zip(ids).map(|(parameter, id)| Param {
            id,
            name: parameter.name.clone(),
            codec: Codec::new(parameter.width, &parameter.control, &mut self.dictionaries),
        });
        Action {
            id: described.map_or(0, |d| name(&d.preamble).0),
            name: action.name.clone(),
            params: params.collect(),
            executes: Vec::new(),
        }
    }

    fn profile(&mut self, id: u32, name: &str, described: &config::ActionProfile) -> Option<Profile> {
        use config::action_profile::SelectorSizeSemantics as Semantics;
        let tables: Vec<_> = self.program.tables.iter().collect();
        // Two tables may construct a profile of one name in place; then the first one's is the one
        // that is meant.
        let users = tables.iter().filter(|(_, t)| {
            let instance = t.implementation.and_then(|e| self.program.externs.get(e));
            instance.is_some_and(|i| i.name == name)
        });
        let users: Vec<_> = users.collect();
        let of_user = users.first().and_then(|(_, t)| t.implementation);
        let by_name = || {
            self.program
                .externs
                .iter()
                .find(|(_, e)| e.name == name)
                .map(|(e, _)| e)
        };
        let instance = of_user.or_else(by_name)?;
        // The order of the switch's profile: actions for entries, each once.
        let mut numbers = Vec::new();
        let listed = users.iter().flat_map(|(_, t)| &t.actions).filter(|a| !a.default_only);
        for action in listed.map(|a| a.action) {
            if !numbers.contains(&action) {
                numbers.push(action);
            }
        }
        let random = |value: &weir_ir::ConstValue| matches!(value, weir_ir::ConstValue::Enum { member, .. } if member == "random");
        Some(Profile {
            id,
            name: name.to_string(),
            instance,
            max_group_size: u32::try_from(described.max_group_size).unwrap_or(0),
            semantics: match &described.selector_size_semantics {
                Some(Semantics::SumOfMembers(m)) => {
                    SizeSemantics::SumOfMembers(u32::try_from(m.max_member_weight).unwrap_or(0))
                }
                _ => SizeSemantics::SumOfWeights,
            },
            is_random: self.program.externs[instance].arguments.iter().any(|(_, v)| random(v)),
            tables: users.iter().map(|(id, _)| *id).collect(),
            actions: numbers.into_iter().map(|a| self.action(a)).collect(),
        })
    }

    fn array(&self, preamble: &Option<config::Preamble>) -> Option<Array> {
        let (id, name) = name(preamble);
        let (instance, _) = self.program.externs.iter().find(|(_, e)| e.name == name)?;
        Some(Array {
            id,
            name: name.to_string(),
            instance,
        })
    }

    fn type_argument(&self, instance: ExternId) -> TypeSpec {
        let instance = self.program.externs.get(instance);
        instance
            .and_then(|i| i.type_arguments.first())
            .cloned()
            .unwrap_or_default()
    }

    fn digests(&self, schema: &mut Schema) {
        for described in &self.info.digests {
            let (id, name) = name(&described.preamble);
            let instance = self.program.externs.iter().find(|(_, e)| e.name == name);
            let ty = match instance {
                Some((instance, _)) => self.type_argument(instance),
                // A digest that a call sends is called as its type is.
                None => named_type(self.program, name),
            };
            let name = name.to_string();
            schema.digests.insert(id, Digest { id, name, ty });
        }
    }

    fn value_sets(&mut self, schema: &mut Schema) {
        for described in &self.info.value_sets {
            let (id, name) = name(&described.preamble);
            let found = self.program.value_sets.iter().find(|(_, s)| s.name == name);
            let Some((set, declared)) = found else { continue };
            let fields = declared
                .fields
                .iter()
                .zip(&described.r#match)
                .map(|(key, field)| Field {
                    id: field.id,
                    name: key.name.clone(),
                    kind: key.match_kind,
                    codec: Codec::new(key.width, &key.control, &mut self.dictionaries),
                });
            let set = ValueSet {
                id,
                name: name.to_string(),
                set,
                fields: fields.collect(),
                size: declared.size,
            };
            schema.value_sets.insert(id, set);
        }
    }
}

/// The type that a call of the digest function sends, by its name.
fn named_type(program: &Program, name: &str) -> TypeSpec {
    let blocks = program.blocks.iter().flat_map(|b| b.body.blocks.iter());
    let calls = blocks.flat_map(|(_, b)| &b.insts).filter_map(|inst| match &inst.kind {
        weir_ir::InstKind::Call(call) if call.instance.is_none() => call.type_arguments.first(),
        _ => None,
    });
    let mut named = calls.filter(|ty| matches!(ty, TypeSpec::Struct(n, _) | TypeSpec::Header(n, _) if n == name));
    named.next().cloned().unwrap_or_default()
}
