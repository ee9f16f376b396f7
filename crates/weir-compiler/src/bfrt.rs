//! What a BF Runtime client can name in a program: the document `bfrt.json`.
//!
//! Names, numbers, kinds of tables and reserved fields are those of the reference compiler for
//! Tofino, so that a client written for its output finds everything; programs of other
//! architectures are described by the same rules. Names begin with `pipe.`, or with the pipeline's
//! name where a switch has several (but for actions).
//!
//! What is there whatever the program (ports, replication, mirror sessions, …) is described by
//! [`fixed_info`].
//!
//! Custom CRCs of v1model and PSA have tables of weir's own, and so have externs with keys.
//!
//! What this module does not describe: snapshots and debug counters of match-action stages, which
//! weir does not have, and the reference's tables that configure hashes at run time.
//!
//! ```
//! let info = weir_compiler::bfrt::bfrt_info(&weir_ir::Program::default(), &[]).unwrap();
//! assert_eq!(info.schema_version, "1.0.0");
//! ```

mod custom_crc;
mod extern_keys;
mod fields;
mod fixed;
mod ids;
mod resources;

pub use fixed::{Chip, fixed_info};

use crate::p4info::annotations::{self, Field, is_hidden};
use crate::p4info::{P4InfoError, control};
use ids::{Ids, Kind};
use rustc_hash::{FxHashMap, FxHashSet};
use weir_ir::target::{ControlSpec, ResourceKind, Target};
use weir_ir::{Action, Annotation, ExternId, ExternInstance, Key, Loc, MatchKind, Program, Table, TableAction};
use weir_proto::bfrt_info as info;

/// The description of a program; `targets`, among them its own, say what externs are to a control
/// plane.
///
/// # Errors
///
/// Everything that is wrong with the names, ids and annotations of the program, and types that the
/// document has no form for.
pub fn bfrt_info(program: &Program, targets: &[Target]) -> Result<info::BfrtInfo, Vec<P4InfoError>> {
    let control = control(program, targets);
    let mut errors = Vec::new();
    let ids = ids::of_program(control, program, &mut errors);
    let mut generator = Generator {
        program,
        control,
        ids,
        info: info::BfrtInfo::default(),
        named: FxHashSet::default(),
        users: FxHashMap::default(),
        errors,
    };
    generator.users = generator.first_users();
    generator.match_tables();
    generator.resources();
    generator.digest_calls();
    generator.value_sets();
    generator.port_metadata();
    generator.custom_crcs();
    generator.extern_keys();
    if generator.errors.is_empty() {
        Ok(generator.info)
    } else {
        Err(generator.errors)
    }
}

/// What one run knows.
struct Generator<'p> {
    program: &'p Program,
    control: ControlSpec,
    ids: Ids,
    info: info::BfrtInfo,
    /// Names in `info.tables`.
    named: FxHashSet<String>,
    /// The first table that uses an implementation, by the name of that or of its profile.
    users: FxHashMap<String, &'p Table>,
    errors: Vec<P4InfoError>,
}

/// The name of a table-like object. Where a switch has several pipelines, names begin with theirs
/// already.
fn with_pipe(program: &Program, name: &str) -> String {
    if program.pipelines.is_empty() {
        format!("pipe.{name}")
    } else {
        name.to_owned()
    }
}

/// Annotations as the document has them: the name with its `@`, and what is in parentheses.
fn listed(list: &[Annotation]) -> Vec<info::Annotation> {
    let texts = annotations::texts(list, &[]).into_iter();
    texts
        .map(|text| match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
            Some((name, value)) => info::Annotation {
                name: name.to_owned(),
                value: Some(value.to_owned()),
            },
            None => info::Annotation {
                name: text,
                value: None,
            },
        })
        .collect()
}

impl<'p> Generator<'p> {
    /// A table with nothing in it.
    fn table(&self, kind: Kind, name: &str, table_type: &str, size: u64, list: &[Annotation]) -> info::Table {
        info::Table {
            name: with_pipe(self.program, name),
            id: self.ids.id(kind, name),
            table_type: table_type.to_owned(),
            size,
            annotations: listed(list),
            depends_on: Vec::new(),
            has_const_default_action: None,
            key: Vec::new(),
            action_specs: None,
            data: Vec::new(),
            supported_operations: Vec::new(),
            attributes: Vec::new(),
            supported_apis: None,
            read_only: None,
        }
    }

    /// What an instance is to control planes, if they are told of it.
    fn resource_kind(&self, id: ExternId) -> Option<ResourceKind> {
        let instance = &self.program.externs[id];
        let kind = self.control.resource(&instance.type_name)?.kind;
        (!is_hidden(&instance.annotations)).then_some(kind)
    }

    /// Tables that control planes are told of.
    fn shown_tables(&self) -> impl Iterator<Item = &'p Table> + use<'p> {
        let tables = self.program.tables.iter().map(|(_, t)| t);
        tables.filter(|t| !is_hidden(&t.annotations))
    }

    fn first_users(&self) -> FxHashMap<String, &'p Table> {
        let mut users = FxHashMap::default();
        for table in self.shown_tables() {
            let Some(id) = table.implementation else { continue };
            let used = &self.program.externs[id];
            for name in [used.name.clone(), self.profile_of(used).0] {
                users.entry(name).or_insert(table);
            }
        }
        users
    }

    fn push(&mut self, table: info::Table) {
        self.named.insert(table.name.clone());
        self.info.tables.push(table);
    }

    fn match_tables(&mut self) {
        for table in self.shown_tables() {
            let described = self.match_table(table);
            self.push(described);
        }
    }

    fn match_table(&mut self, table: &Table) -> info::Table {
        let implementation = table
            .implementation
            .and_then(|id| self.resource_kind(id).map(|kind| (id, kind)));
        let (table_type, depends_on) = match implementation {
            Some((id, ResourceKind::ActionSelector)) => {
                let selector = &self.program.externs[id];
                let ids = [
                    self.ids.id(Kind::ActionSelector, &selector.name),
                    self.profile_of(selector).1,
                ];
                ("MatchAction_Indirect_Selector", ids.to_vec())
            }
            Some((id, _)) => {
                let name = &self.program.externs[id].name;
                ("MatchAction_Indirect", vec![self.ids.id(Kind::ActionProfile, name)])
            }
            None => ("MatchAction_Direct", Vec::new()),
        };
        let size = table.capacity();
        let mut described = self.table(Kind::Table, &table.name, table_type, size, &table.annotations);
        described.depends_on = depends_on;
        described.has_const_default_action = Some(table.const_default);
        described.key = self.keys(table);
        let mut next_id = 1;
        match table_type {
            "MatchAction_Indirect" => described.data.push(fields::member(true)),
            "MatchAction_Indirect_Selector" => described.data.push(fields::member_or_group()),
            _ => {
                let specs = self.action_specs(table);
                next_id += specs.iter().flat_map(|s| &s.data).map(|d| d.id).max().unwrap_or(0);
                described.action_specs = Some(specs);
            }
        }
        self.direct_resources(table, next_id, &mut described);
        described.attributes.push("EntryScope".to_owned());
        if table.const_entries {
            described.attributes.push("ConstTable".to_owned());
        }
        if table.idle_timeout {
            described.supported_operations.push("UpdateHitState".to_owned());
            described.attributes.push("IdleTimeout".to_owned());
            described.data.extend(fields::idle_time());
        }
        described
    }

    fn keys(&mut self, table: &Table) -> Vec<info::KeyField> {
        let fields: Vec<_> = table.keys.iter().map(|k| Field(&k.annotations)).collect();
        let ids = annotations::field_ids(&fields, &mut self.errors);
        let matched = (table.keys.iter().zip(ids)).filter(|(k, _)| k.match_kind != MatchKind::Selector);
        let mut keys: Vec<info::KeyField> = matched.map(|(key, id)| key_field(key, id)).collect();
        let has_priority = |k: &info::KeyField| matches!(k.match_type.as_str(), "Ternary" | "Range" | "Optional");
        if keys.iter().any(has_priority) {
            keys.push(fields::priority());
        }
        keys
    }

    /// The actions of a table.
    fn action_specs(&mut self, table: &Table) -> Vec<info::ActionSpec> {
        let actions = table.actions.iter();
        actions.map(|listed| self.action_spec(table, listed)).collect()
    }

    fn action_spec(&mut self, table: &Table, of: &TableAction) -> info::ActionSpec {
        let action = &self.program.actions[of.action];
        let scope = match (of.table_only, of.default_only) {
            (false, false) => "TableAndDefault",
            (true, false) => "TableOnly",
            (false, true) => "DefaultOnly",
            (true, true) => {
                self.errors.push(P4InfoError::NoScope {
                    table: table.name.clone(),
                    action: action.name.clone(),
                    loc: table.loc,
                });
                "TableAndDefault"
            }
        };
        let mut annotations = listed(&of.annotations);
        if of.default_only && !annotations.iter().any(|a| a.name == "@defaultonly") {
            // The compiler has added it to the list.
            annotations.push(info::Annotation {
                name: "@defaultonly".to_owned(),
                value: None,
            });
        }
        info::ActionSpec {
            id: self.ids.id(Kind::Action, &action.name),
            name: action.name.clone(),
            action_scope: scope.to_owned(),
            annotations,
            data: self.action_data(action),
        }
    }

    fn action_data(&mut self, action: &Action) -> Vec<info::ActionData> {
        let fields: Vec<_> = action.parameters.iter().map(|p| Field(&p.annotations)).collect();
        let ids = annotations::field_ids(&fields, &mut self.errors);
        let parameters = action.parameters.iter().zip(ids);
        parameters
            .map(|(parameter, id)| info::ActionData {
                id,
                name: parameter.name.clone(),
                repeated: false,
                mandatory: true,
                read_only: false,
                annotations: listed(&parameter.annotations),
                ty: info::FieldType::bytes(parameter.width),
            })
            .collect()
    }

    fn value_sets(&mut self) {
        let sets = self.program.value_sets.iter().map(|(_, s)| s);
        for set in sets.filter(|s| !is_hidden(&s.annotations)) {
            let mut described = self.table(Kind::ValueSet, &set.name, "ParserValueSet", set.size, &set.annotations);
            let is_plain = set.fields.len() == 1 && !set.fields[0].name.contains('.');
            described.key = (set.fields.iter().zip(1..))
                .map(|(field, id)| info::KeyField {
                    // The one value of a plain set has no name in the source.
                    name: if is_plain { "f1".to_owned() } else { field.name.clone() },
                    match_type: "Ternary".to_owned(),
                    ..key_field(field, id)
                })
                .collect();
            described.attributes.push("EntryScope".to_owned());
            self.push(described);
        }
    }

    /// What something is whose type the document has no form for.
    fn too_complex(&mut self, instance: &str, loc: Loc) {
        self.errors.push(P4InfoError::TooComplex {
            name: instance.to_owned(),
            loc,
        });
    }
}

impl Generator<'_> {
    /// The name and the number of an action profile: that which a selector is given, or the one
    /// made for it.
    fn profile_of(&self, selector: &ExternInstance) -> (String, u32) {
        let given = selector.arguments.iter().find_map(|(_, value)| match value {
            weir_ir::ConstValue::Extern(id) => {
                let is_profile = self.resource_kind(*id) == Some(ResourceKind::ActionProfile);
                is_profile.then(|| self.program.externs[*id].name.clone())
            }
            _ => None,
        });
        let name = given.unwrap_or_else(|| ids::made_profile(&selector.name));
        let id = self.ids.id(Kind::ActionProfile, &name);
        (name, id)
    }
}

/// A key as the document has it.
fn key_field(key: &Key, id: u32) -> info::KeyField {
    let mut annotations = listed(&key.annotations);
    if is_slice(&key.name) {
        annotations.push(info::Annotation {
            name: "isFieldSlice".to_owned(),
            value: Some("true".to_owned()),
        });
    }
    let match_type = match (&key.own_kind, key.match_kind) {
        (Some(shown), _) => shown,
        (None, MatchKind::Lpm) => "LPM",
        (None, MatchKind::Ternary) => "Ternary",
        (None, MatchKind::Range) => "Range",
        (None, MatchKind::Optional) => "Optional",
        (None, MatchKind::Exact | MatchKind::Selector) => "Exact",
    };
    let mut ty = info::FieldType::bytes(key.width);
    if key.match_kind == MatchKind::Exact {
        ty.mask = key.name.split_once(" & ").map(|(_, mask)| mask.to_owned());
    }
    info::KeyField {
        id,
        name: key_name(&key.name),
        repeated: false,
        annotations,
        mandatory: false,
        match_type: match_type.to_owned(),
        ty,
    }
}

/// A slice: `hdr.f[7:0]`.
fn is_slice(name: &str) -> bool {
    let inside = name.split('[').skip(1).filter_map(|part| part.split_once(']'));
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    inside
        .filter_map(|(inside, _)| inside.split_once(':'))
        .any(|(high, low)| is_number(high) && is_number(low))
}

/// Validity is `$valid`, an element of a stack `stack$1`.
fn key_name(name: &str) -> String {
    let name = name
        .strip_suffix('$')
        .filter(|n| n.ends_with(".$valid"))
        .unwrap_or(name);
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        match after.split_once(']') {
            Some((index, later)) if !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()) => {
                out.push('$');
                out.push_str(index);
                rest = later;
            }
            _ => {
                out.push('[');
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests;
