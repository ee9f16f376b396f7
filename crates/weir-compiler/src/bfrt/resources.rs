//! Profiles, selectors, counters, meters, registers, filters, digests and port metadata.

use super::fields::{self, Index};
use super::ids::{Kind, get_member, made_profile};
use super::{Generator, listed, with_pipe};
use crate::p4info::externs::{digest_calls, size, unit};
use std::collections::BTreeSet;
use weir_ir::target::{ControlSpec, PortMetadataSpec, ResourceKind};
use weir_ir::{Block, ConstValue, ExternInstance, InstKind, Loc, Program, Table, TypeSpec};
use weir_proto::bfrt_info as info;

/// The parsers that read port metadata, with the name of the variables that hold the port.
pub(super) fn port_metadata_parsers(control: ControlSpec, program: &Program) -> Vec<(&Block, String)> {
    let Some(spec) = control.port_metadata else {
        return Vec::new();
    };
    let mut names = BTreeSet::new();
    let parsers = spec.parsers.iter().zip(spec.keys).flat_map(|(role, key)| {
        let shared = program.shared.iter().find(|s| s.role == *key);
        // A pipe may have several, with numbers.
        let is_it =
            move |found: &str| (found.strip_prefix(role)).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let blocks = program.blocks.iter().filter(move |b| is_it(&b.role));
        shared
            .into_iter()
            .flat_map(move |s| blocks.clone().map(|b| (b, s.name.clone())))
    });
    // Two pipes may have one parser.
    parsers.filter(|(block, _)| names.insert(block.name.clone())).collect()
}

/// The name of the table of a parser's port metadata.
pub(super) fn port_metadata_name(parser: &str) -> String {
    format!("{parser}.$PORT_METADATA")
}

impl Generator<'_> {
    /// Fields that direct resources add to a table; `next_id` is for those without a number of
    /// their own.
    pub(super) fn direct_resources(&mut self, table: &Table, mut next_id: u32, described: &mut info::Table) {
        for &id in &table.direct {
            let instance = &self.program.externs[id];
            let operation = match self.resource_kind(id) {
                Some(ResourceKind::DirectCounter) => {
                    described.data.extend(fields::counter_data(unit(instance)));
                    Some("SyncCounters")
                }
                Some(ResourceKind::DirectMeter) => {
                    described.data.extend(fields::meter_data(unit(instance).0));
                    described.attributes.push("MeterByteCountAdjust".to_owned());
                    None
                }
                Some(ResourceKind::DirectRegister) => {
                    let data = self.register_data(instance, next_id);
                    next_id += data.len() as u32;
                    described.data.extend(data);
                    Some("SyncRegisters")
                }
                Some(ResourceKind::DirectFilter) => {
                    described.data.extend(fields::filter_data());
                    None
                }
                Some(ResourceKind::DirectEarlyDrop) => {
                    described.data.extend(fields::early_drop_data());
                    None
                }
                _ => None,
            };
            described.supported_operations.extend(operation.map(str::to_owned));
        }
    }

    /// Tables of extern instances, in the order of the source.
    pub(super) fn resources(&mut self) {
        let program = self.program;
        for (id, instance) in program.externs.iter() {
            let Some(kind) = self.resource_kind(id) else { continue };
            match kind {
                ResourceKind::ActionProfile => self.profile(&instance.name, size(instance), instance),
                ResourceKind::ActionSelector => self.selector(instance),
                ResourceKind::Counter => {
                    let data = fields::counter_data(unit(instance));
                    self.array(Kind::Counter, "Counter", Index::Counter, instance, data);
                }
                ResourceKind::Meter => {
                    let data = fields::meter_data(unit(instance).0);
                    self.array(Kind::Meter, "Meter", Index::Meter, instance, data);
                }
                ResourceKind::Register => {
                    let data = self.register_data(instance, 1);
                    self.array(Kind::Register, "Register", Index::Register, instance, data);
                }
                ResourceKind::Filter => {
                    self.array(Kind::Filter, "Lpf", Index::Filter, instance, fields::filter_data());
                }
                ResourceKind::EarlyDrop => {
                    let data = fields::early_drop_data();
                    self.array(Kind::EarlyDrop, "Wred", Index::EarlyDrop, instance, data);
                }
                ResourceKind::RegisterParameter => self.register_parameter(instance),
                ResourceKind::Digest => {
                    if let Some(ty) = instance.type_arguments.first() {
                        self.digest(&instance.name, ty, listed(&instance.annotations), instance.loc);
                    }
                }
                // They are fields of their table.
                ResourceKind::DirectCounter
                | ResourceKind::DirectMeter
                | ResourceKind::DirectRegister
                | ResourceKind::DirectFilter
                | ResourceKind::DirectEarlyDrop => {}
            }
        }
    }

    /// Something that is found by an index.
    fn array(
        &mut self,
        kind: Kind,
        table_type: &str,
        index: Index,
        instance: &ExternInstance,
        data: Vec<info::TableData>,
    ) {
        let mut table = self.table(kind, &instance.name, table_type, size(instance), &instance.annotations);
        table.key = vec![fields::index_key(index)];
        table.data = data;
        match index {
            Index::Counter | Index::Register => table.supported_operations.push("Sync".to_owned()),
            Index::Meter => table.attributes.push("MeterByteCountAdjust".to_owned()),
            Index::Filter | Index::EarlyDrop => {}
        }
        self.push(table);
    }

    /// An action profile of this name; its actions are those of the first table that uses it.
    fn profile(&mut self, name: &str, size: u64, instance: &ExternInstance) {
        if self.named.contains(&with_pipe(self.program, name)) {
            // Two tables may construct a profile of one name in place: it is the same one.
            return;
        }
        let user = self.users.get(name).copied();
        let mut table = self.table(Kind::ActionProfile, name, "Action", size, &instance.annotations);
        table.key = vec![fields::member_key()];
        table.action_specs = Some(user.map(|t| self.action_specs(t)).unwrap_or_default());
        self.push(table);
    }

    fn selector(&mut self, instance: &ExternInstance) {
        let name = with_pipe(self.program, &instance.name);
        if self.named.contains(&name) {
            return;
        }
        let (profile, profile_id) = self.profile_of(instance);
        if profile == made_profile(&instance.name) && !self.named.contains(&with_pipe(self.program, &profile)) {
            self.profile(&profile, size(instance), instance);
        }
        let number = |wanted: &str| {
            let found = instance.arguments.iter().find(|(name, _)| name == wanted)?;
            match &found.1 {
                ConstValue::Bits(bits) => Some(bits.to_u64_saturating()),
                ConstValue::Int(int) => u64::try_from(int).ok(),
                _ => None,
            }
        };
        // A selector without these has as many groups as members, and groups of as many.
        let groups = number("num_groups").unwrap_or_else(|| size(instance));
        let largest = number("max_group_size").unwrap_or_else(|| size(instance));
        let list = &instance.annotations;
        let mut table = self.table(Kind::ActionSelector, &instance.name, "Selector", groups, list);
        table.depends_on = vec![profile_id];
        table.key = vec![fields::group_key()];
        table.data = fields::group_data(largest);
        let selector_id = table.id;
        self.push(table);
        let mut asks = self.table(Kind::SelectorGetMember, &instance.name, "SelectorGetMember", 1, list);
        asks.name = with_pipe(self.program, &get_member(&instance.name));
        asks.depends_on = vec![selector_id];
        asks.key = fields::get_member_keys();
        asks.data = vec![fields::get_member_data()];
        self.push(asks);
    }

    fn register_data(&mut self, instance: &ExternInstance, first_id: u32) -> Vec<info::TableData> {
        let Some(ty) = instance.type_arguments.first() else {
            return Vec::new();
        };
        let leaves = self.leaves(ty, &instance.name, instance.loc);
        let fields = (first_id..).zip(leaves).map(|(id, (leaf, ty))| {
            let name = format!("{}.{leaf}", instance.name);
            fields::register_field(fields::value(id, &name, ty))
        });
        fields.collect()
    }

    fn register_parameter(&mut self, instance: &ExternInstance) {
        let list = &instance.annotations;
        let mut table = self.table(Kind::RegisterParameter, &instance.name, "RegisterParam", 1, list);
        let ty = instance.type_arguments.first();
        let Some((_, ty)) = ty.and_then(|ty| self.leaves(ty, &instance.name, instance.loc).pop()) else {
            return;
        };
        let initial = instance.arguments.iter().find_map(|(_, value)| match value {
            ConstValue::Bits(bits) => Some(bits.to_u64_saturating()),
            ConstValue::Int(int) => u64::try_from(int).ok(),
            _ => None,
        });
        table.data = vec![fields::one(
            true,
            fields::value(1, "value", ty.or(initial.unwrap_or(0))),
        )];
        self.push(table);
    }

    fn digest(&mut self, name: &str, ty: &TypeSpec, annotations: Vec<info::Annotation>, loc: Loc) {
        let leaves = self.leaves(ty, name, loc);
        let fields = (1..).zip(leaves).map(|(id, (leaf, ty))| fields::value(id, &leaf, ty));
        self.info.learn_filters.push(info::LearnFilter {
            name: with_pipe(self.program, name),
            id: self.ids.id(Kind::Digest, name),
            annotations,
            fields: fields.collect(),
        });
    }

    /// Digests of architectures where a function sends them: named by the type of the message.
    pub(super) fn digest_calls(&mut self) {
        for (name, loc, ty) in digest_calls(self.control, self.program) {
            self.digest(&name, ty, Vec::new(), loc);
        }
    }

    pub(super) fn port_metadata(&mut self) {
        let Some(spec) = self.control.port_metadata else { return };
        for (parser, key) in port_metadata_parsers(self.control, self.program) {
            let name = port_metadata_name(&parser.name);
            let mut table = self.table(Kind::PortMetadata, &name, "PortMetadata", spec.ports, &[]);
            table.key = vec![fields::port_key(&key, spec.port_width)];
            table.data = match unpacked(spec, parser) {
                Some((ty, loc)) => {
                    let leaves = self.leaves(ty, &name, loc);
                    let fields = (1..).zip(leaves).map(|(id, (leaf, ty))| fields::value(id, &leaf, ty));
                    fields.map(|field| fields::one(true, field)).collect()
                }
                None => vec![fields::port_default(spec.width)],
            };
            self.push(table);
        }
    }

    /// The values that a type consists of: names below it and types. A value without a name is
    /// `f1`, parts of a tuple are `f1`, `f2` and so on.
    fn leaves(&mut self, ty: &TypeSpec, of: &str, loc: Loc) -> Vec<(String, info::FieldType)> {
        let mut found = Vec::new();
        if gather(ty, "", &mut found) {
            return found;
        }
        self.too_complex(of, loc);
        Vec::new()
    }
}

/// The type that a parser has port metadata unpacked as, and where.
fn unpacked(spec: PortMetadataSpec, parser: &Block) -> Option<(&TypeSpec, Loc)> {
    let insts = parser.body.blocks.iter().flat_map(|(_, b)| &b.insts);
    let mut calls = insts.filter_map(|inst| match &inst.kind {
        InstKind::Call(call) if call.instance.is_none() && call.function == spec.function => {
            Some((call.type_arguments.first()?, inst.loc))
        }
        _ => None,
    });
    calls.next()
}

/// Adds the values below a path; false where one has no form.
fn gather(ty: &TypeSpec, path: &str, found: &mut Vec<(String, info::FieldType)>) -> bool {
    let leaf = |path: &str| {
        if path.is_empty() {
            "f1".to_owned()
        } else {
            path.to_owned()
        }
    };
    let below = |name: &str| match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    };
    match ty {
        TypeSpec::Bit(width) | TypeSpec::Int(width) | TypeSpec::SerializableEnum(_, width, _) => {
            found.push((leaf(path), info::FieldType::bytes(*width)));
            true
        }
        TypeSpec::Varbit(width) => {
            found.push((leaf(path), info::FieldType::bytes(*width)));
            true
        }
        TypeSpec::Bool => {
            found.push((leaf(path), info::FieldType::named("bool").or(true)));
            true
        }
        TypeSpec::New(_, original, _) => gather(original, path, found),
        TypeSpec::Struct(_, fields) | TypeSpec::Header(_, fields) => {
            fields.iter().all(|(name, ty)| gather(ty, &below(name), found))
        }
        TypeSpec::Tuple(parts) => {
            let mut numbered = parts.iter().zip(1..);
            numbered.all(|(ty, n)| gather(ty, &below(&format!("f{n}")), found))
        }
        TypeSpec::Opaque(_)
        | TypeSpec::Void
        | TypeSpec::Error
        | TypeSpec::String
        | TypeSpec::HeaderUnion(..)
        | TypeSpec::Stack(..)
        | TypeSpec::Enum(..) => false,
    }
}
