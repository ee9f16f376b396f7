//! Tables, actions, value sets and controller headers.

use super::annotations::{self, Field, is_hidden};
use super::symbols::Kind;
use super::{Generator, P4InfoError};
use rustc_hash::FxHashSet;
use weir_ir::{
    Action, ActionCall, ActionId, Annotation, BlockId, Body, ControlType, Display, HeaderType, InstKind, Key, Loc,
    Mark, MatchKind, Program, Table, TableAction, TypeSpec, ValueSet,
};
use weir_proto::p4::config::v1 as pb;

/// Actions described to the control plane, one per name: those of tables, and those that a control
/// calls directly. Actions that only other actions call were inlined there.
pub(crate) fn described_actions(program: &Program) -> impl Iterator<Item = &Action> {
    let used = used_actions(program);
    let mut seen = FxHashSet::default();
    let shown = program
        .actions
        .iter()
        .filter(move |(id, a)| used.contains(id) && !is_hidden(&a.annotations));
    shown.map(|(_, a)| a).filter(move |a| seen.insert(a.name.as_str()))
}

/// Actions of tables, and those that a control calls itself.
pub(super) fn used_actions(program: &Program) -> FxHashSet<ActionId> {
    let mut used: FxHashSet<ActionId> = program
        .tables
        .iter()
        .flat_map(|(_, t)| &t.actions)
        .map(|a| a.action)
        .collect();
    for block in &program.blocks {
        called_by_controls(&block.body, &mut used);
    }
    used
}

/// Adds the actions that are entered from outside of any action.
fn called_by_controls(body: &Body, found: &mut FxHashSet<ActionId>) {
    if body.blocks.is_empty() {
        return;
    }
    let mut reached = vec![false; body.blocks.len()];
    reached[0] = true;
    // Blocks to look at, with what they are nested in there: true for an action.
    let mut open: Vec<(BlockId, Vec<bool>)> = vec![(BlockId::new(0), Vec::new())];
    while let Some((id, mut nesting)) = open.pop() {
        let block = &body.blocks[id];
        for inst in &block.insts {
            match &inst.kind {
                InstKind::Mark(Mark::EnterAction(action)) => {
                    if !nesting.contains(&true) {
                        found.insert(*action);
                    }
                    nesting.push(true);
                }
                InstKind::Mark(Mark::Enter(_)) => nesting.push(false),
                InstKind::Mark(Mark::Leave) => {
                    nesting.pop();
                }
                _ => {}
            }
        }
        for target in block.terminator.targets() {
            if let Some(seen @ false) = reached.get_mut(target.index()) {
                *seen = true;
                open.push((target, nesting.clone()));
            }
        }
    }
}

/// Header types of packets to and from the controller, their names there, and where they are
/// declared.
pub(super) fn controller_headers(program: &Program) -> impl Iterator<Item = (&HeaderType, String, Loc)> {
    program.header_types.iter().filter_map(|(_, ty)| {
        let annotation = annotations::find(&ty.annotations, "controller_header")?;
        let shown = !is_hidden(&ty.annotations);
        shown.then(|| (ty, annotations::string(annotation).unwrap_or_default(), annotation.loc))
    })
}

impl Generator<'_> {
    pub(super) fn tables(&mut self) {
        for (_, table) in self.program.tables.iter().filter(|(_, t)| !is_hidden(&t.annotations)) {
            let described = self.table(table);
            self.info.tables.push(described);
        }
    }

    fn table(&mut self, table: &Table) -> pb::Table {
        let default = table.actions.get(table.default_action.action);
        let size = table.capacity();
        let const_default = default
            .filter(|_| table.const_default)
            .map(|a| self.action_id(a.action));
        pb::Table {
            preamble: Some(self.preamble(Kind::Table, &table.name, &table.annotations)),
            match_fields: self.match_fields(&table.keys),
            action_refs: table.actions.iter().map(|a| self.action_ref(table, a)).collect(),
            const_default_action_id: const_default.unwrap_or(0),
            initial_default_action: default.map(|a| self.action_call(a, &table.default_action)),
            implementation_id: table.implementation.map_or(0, |e| self.extern_id(e)),
            direct_resource_ids: self.direct_ids(table),
            size: self.int64(&table.name, "the size", size, table.loc),
            idle_timeout_behavior: i32::from(table.idle_timeout),
            is_const_table: table.const_entries,
            has_initial_entries: !table.entries.is_empty(),
            other_properties: None,
        }
    }

    /// Direct resources, counters first.
    fn direct_ids(&self, table: &Table) -> Vec<u32> {
        let ids = table.direct.iter().map(|&e| self.extern_id(e));
        let mut ids: Vec<u32> = ids.filter(|&id| id != 0).collect();
        ids.sort_by_key(|id| id >> 24);
        ids
    }

    /// The id of the described action with the name of this one.
    pub(super) fn action_id(&self, action: ActionId) -> u32 {
        self.symbols.id(Kind::Action, &self.program.actions[action].name)
    }

    fn action_ref(&mut self, table: &Table, listed: &TableAction) -> pb::ActionRef {
        use pb::action_ref::Scope;
        let scope = match (listed.table_only, listed.default_only) {
            (false, false) => Scope::TableAndDefault,
            (true, false) => Scope::TableOnly,
            (false, true) => Scope::DefaultOnly,
            (true, true) => {
                let action = self.program.actions[listed.action].name.clone();
                self.errors.push(P4InfoError::NoScope {
                    table: table.name.clone(),
                    action,
                    loc: table.loc,
                });
                Scope::TableAndDefault
            }
        };
        let mut texts = annotations::texts(&listed.annotations, &[]);
        if listed.default_only && annotations::find(&listed.annotations, "defaultonly").is_none() {
            // The compiler has added it to the list.
            texts.push("@defaultonly".to_string());
        }
        pb::ActionRef {
            id: self.action_id(listed.action),
            scope: scope.into(),
            annotations: texts,
            structured_annotations: annotations::structured(&listed.annotations, &[]),
            ..pb::ActionRef::default()
        }
    }

    fn action_call(&mut self, listed: &TableAction, call: &ActionCall) -> pb::TableActionCall {
        let action = &self.program.actions[listed.action];
        let fields: Vec<_> = action.parameters.iter().map(|p| Field(&p.annotations)).collect();
        // Whoever describes the action reports what is wrong with its ids.
        let ids = annotations::field_ids(&fields, &mut Vec::new());
        let argument = |(param_id, value): (u32, &weir_ir::Bits)| pb::table_action_call::Argument {
            param_id,
            value: value.to_bytes(),
        };
        pb::TableActionCall {
            action_id: self.action_id(listed.action),
            arguments: ids.into_iter().zip(&call.arguments).map(argument).collect(),
        }
    }

    fn match_fields(&mut self, keys: &[Key]) -> Vec<pb::MatchField> {
        let fields: Vec<_> = keys.iter().map(|k| Field(&k.annotations)).collect();
        let ids = self.field_ids(&fields);
        // A selector key has an id, but the control plane does not match on it.
        let matched = keys
            .iter()
            .zip(ids)
            .filter(|(key, _)| key.match_kind != MatchKind::Selector);
        matched.map(|(key, id)| self.match_field(key, id, &[])).collect()
    }

    fn match_field(&mut self, key: &Key, id: u32, except: &[&str]) -> pb::MatchField {
        pb::MatchField {
            id,
            name: key.name.clone(),
            annotations: annotations::texts(&key.annotations, except),
            bitwidth: self.bitwidth(&key.name, key.width, key.display, &key.control, key.loc),
            doc: annotations::documentation(&key.annotations),
            type_name: self.type_name(&key.control),
            structured_annotations: annotations::structured(&key.annotations, except),
            r#match: match_type(key.match_kind).map(|m| pb::match_field::Match::MatchType(m.into())),
            ..pb::MatchField::default()
        }
    }

    /// The width that the control plane sees: 0 for what it sees as a string.
    fn bitwidth(&mut self, name: &str, width: u32, display: Display, control: &ControlType, loc: Loc) -> i32 {
        let width = match (&control.translation, display) {
            (Some(translation), _) => translation.sdn_width.unwrap_or(0),
            (None, Display::Error) => 0,
            (None, _) => width,
        };
        self.int32(name, "the width", u64::from(width), loc)
    }

    /// The name of a `type`; serializable enums are numbers to the control plane. Either is
    /// described.
    fn type_name(&mut self, control: &ControlType) -> Option<pb::P4NamedType> {
        let name = control.type_name.as_ref()?;
        let program = self.program;
        let known = program
            .type_info
            .iter()
            .find(|known| known.name == *name)
            .map(|known| &known.spec);
        if let Some(spec) = known {
            self.data_type(spec);
        }
        // What is named but not listed can only be a `type`.
        let is_new = known.is_none_or(|spec| matches!(spec, TypeSpec::New(..)));
        is_new.then(|| pb::P4NamedType { name: name.clone() })
    }

    pub(super) fn actions(&mut self) {
        let in_tables: FxHashSet<&str> = self
            .program
            .tables
            .iter()
            .flat_map(|(_, t)| &t.actions)
            .map(|a| self.program.actions[a.action].name.as_str())
            .collect();
        for action in described_actions(self.program) {
            // Nobody gives data to an action that only the program calls.
            let mut described = pb::Action {
                preamble: Some(self.preamble(Kind::Action, &action.name, &action.annotations)),
                params: Vec::new(),
            };
            if in_tables.contains(action.name.as_str()) {
                described.params = self.params(action);
            }
            self.info.actions.push(described);
        }
    }

    fn params(&mut self, action: &Action) -> Vec<pb::action::Param> {
        let fields: Vec<_> = action.parameters.iter().map(|p| Field(&p.annotations)).collect();
        let ids = self.field_ids(&fields);
        let mut params = Vec::new();
        for (param, id) in action.parameters.iter().zip(ids) {
            let plain_enum = match param.display {
                Display::Enum(e) if param.control.type_name.is_none() => {
                    Some(&self.program.enums[e]).filter(|e| e.values.is_none())
                }
                _ => None,
            };
            params.push(pb::action::Param {
                id,
                name: param.name.clone(),
                annotations: annotations::texts(&param.annotations, &[]),
                bitwidth: match plain_enum {
                    Some(_) => 0,
                    None => self.bitwidth(&param.name, param.width, param.display, &param.control, action.loc),
                },
                doc: annotations::documentation(&param.annotations),
                type_name: match plain_enum {
                    Some(e) => {
                        self.data_type(&TypeSpec::Enum(e.name.clone(), e.members.clone()));
                        Some(pb::P4NamedType { name: e.name.clone() })
                    }
                    None => self.type_name(&param.control),
                },
                structured_annotations: annotations::structured(&param.annotations, &[]),
                ..pb::action::Param::default()
            });
        }
        params
    }

    pub(super) fn value_sets(&mut self) {
        for (_, set) in self
            .program
            .value_sets
            .iter()
            .filter(|(_, s)| !is_hidden(&s.annotations))
        {
            let described = self.value_set(set);
            self.info.value_sets.push(described);
        }
    }

    fn value_set(&mut self, set: &ValueSet) -> pb::ValueSet {
        let fields: Vec<_> = set.fields.iter().map(|f| Field(&f.annotations)).collect();
        let ids = self.field_ids(&fields);
        pb::ValueSet {
            preamble: Some(self.preamble(Kind::ValueSet, &set.name, &set.annotations)),
            r#match: set
                .fields
                .iter()
                .zip(ids)
                .map(|(field, id)| self.match_field(field, id, &["match"]))
                .collect(),
            size: self.int32(&set.name, "the size", set.size, set.loc),
        }
    }

    pub(super) fn controller_headers(&mut self) {
        for (ty, name, loc) in controller_headers(self.program) {
            let preamble = self.preamble(Kind::ControllerHeader, &ty.name, &ty.annotations);
            let preamble = pb::Preamble {
                alias: name.clone(),
                name,
                ..preamble
            };
            let fields: Vec<_> = ty.fields.iter().map(|f| Field(&f.annotations)).collect();
            let ids = self.field_ids(&fields);
            let mut metadata = Vec::new();
            for (field, id) in ty.fields.iter().zip(ids).filter(|(f, _)| !is_hidden(&f.annotations)) {
                metadata.push(pb::controller_packet_metadata::Metadata {
                    id,
                    name: field_name(&field.name, &field.annotations),
                    annotations: annotations::texts(&field.annotations, &[]),
                    bitwidth: self.bitwidth(&field.name, field.ty.width(), field.display, &field.control, loc),
                    type_name: self.type_name(&field.control),
                    structured_annotations: annotations::structured(&field.annotations, &[]),
                    ..pb::controller_packet_metadata::Metadata::default()
                });
            }
            let described = pb::ControllerPacketMetadata {
                preamble: Some(preamble),
                metadata,
            };
            self.info.controller_packet_metadata.push(described);
        }
    }
}

fn field_name(name: &str, list: &[Annotation]) -> String {
    annotations::find(list, "name")
        .and_then(annotations::string)
        .unwrap_or_else(|| name.to_string())
}

fn match_type(kind: MatchKind) -> Option<pb::match_field::MatchType> {
    use pb::match_field::MatchType;
    match kind {
        MatchKind::Exact => Some(MatchType::Exact),
        MatchKind::Lpm => Some(MatchType::Lpm),
        MatchKind::Ternary => Some(MatchType::Ternary),
        MatchKind::Range => Some(MatchType::Range),
        MatchKind::Optional => Some(MatchType::Optional),
        MatchKind::Selector => None,
    }
}
