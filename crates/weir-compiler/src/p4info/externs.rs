//! Counters, meters, registers, action profiles and digests.

use super::annotations;
use super::symbols::Kind;
use super::{Generator, P4InfoError};
use rustc_hash::FxHashMap;
use weir_ir::target::{ControlSpec, ResourceKind as Resource};
use weir_ir::{Annotation, Call, ConstValue, ExternId, ExternInstance, InstKind, Loc, Program, TypeSpec};
use weir_proto::p4::config::v1 as pb;

/// Annotations of action profiles that become fields.
const PROFILE_ANNOTATIONS: [&str; 3] = ["max_group_size", "selector_size_semantics", "max_member_weight"];

/// What an instance is to the control plane; `None`: it is not told of it.
fn resource(control: ControlSpec, instance: &ExternInstance) -> Option<Resource> {
    if annotations::is_hidden(&instance.annotations) {
        return None;
    }
    Some(control.resource(&instance.type_name)?.kind)
}

/// The kind of object that an instance is described as. A direct resource that no table has is
/// none.
pub(super) fn kind(control: ControlSpec, program: &Program, owners: &Owners<'_>, id: ExternId) -> Option<Kind> {
    Some(match resource(control, &program.externs[id])? {
        Resource::Counter => Kind::Counter,
        Resource::DirectCounter => owners.get(&id).map(|_| Kind::DirectCounter)?,
        Resource::Meter => Kind::Meter,
        Resource::DirectMeter => owners.get(&id).map(|_| Kind::DirectMeter)?,
        Resource::Register => Kind::Register,
        Resource::ActionProfile | Resource::ActionSelector => Kind::ActionProfile,
        Resource::Digest => Kind::Digest,
        // P4Info has no place for these.
        Resource::DirectRegister
        | Resource::RegisterParameter
        | Resource::Filter
        | Resource::DirectFilter
        | Resource::EarlyDrop
        | Resource::DirectEarlyDrop => return None,
    })
}

/// The tables that each implementation has, by its name.
fn users(program: &Program) -> FxHashMap<&str, Vec<&str>> {
    let mut users: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    let tables = program.tables.iter().map(|(_, table)| table);
    for table in tables.filter(|t| !annotations::is_hidden(&t.annotations)) {
        if let Some(id) = table.implementation {
            users.entry(&program.externs[id].name).or_default().push(&table.name);
        }
    }
    users
}

/// The names of the tables that have direct resources.
pub(super) type Owners<'p> = FxHashMap<ExternId, &'p str>;

/// Which table has which direct resource. A hidden table has none, as far as the control plane
/// knows.
pub(super) fn owners(program: &Program) -> Owners<'_> {
    let mut owners = Owners::default();
    let tables = program.tables.iter().map(|(_, table)| table);
    for table in tables.filter(|t| !annotations::is_hidden(&t.annotations)) {
        for &id in &table.direct {
            owners.entry(id).or_insert(&table.name);
        }
    }
    owners
}

/// The types that the program sends by a call of the digest function, with their names and where. A
/// type without a name gets a number.
pub(crate) fn digest_calls(control: ControlSpec, program: &Program) -> Vec<(String, Loc, &TypeSpec)> {
    let mut found: Vec<(String, Loc, &TypeSpec)> = Vec::new();
    let mut unnamed = 0;
    let blocks = program.blocks.iter().flat_map(|b| b.body.blocks.iter());
    for inst in blocks.flat_map(|(_, b)| &b.insts) {
        let InstKind::Call(Call {
            instance: None,
            function,
            type_arguments,
            ..
        }) = &inst.kind
        else {
            continue;
        };
        let Some(ty) = type_arguments
            .first()
            .filter(|_| control.digest_function == Some(function.as_str()))
        else {
            continue;
        };
        let name = match ty {
            TypeSpec::Struct(name, _) | TypeSpec::Header(name, _) => name.clone(),
            _ => {
                unnamed += 1;
                format!("digest_{}", unnamed - 1)
            }
        };
        if !found.iter().any(|(known, ..)| *known == name) {
            found.push((name, inst.loc, ty));
        }
    }
    found
}

/// The first constructor argument with one of these names that is a number.
pub(crate) fn size(instance: &ExternInstance) -> u64 {
    let named = instance
        .arguments
        .iter()
        .find(|(name, _)| matches!(name.as_str(), "size" | "n_counters" | "n_meters"));
    match named.map(|(_, value)| value) {
        Some(ConstValue::Bits(bits)) => bits.to_u64_saturating(),
        Some(ConstValue::Int(int)) => u64::try_from(int).unwrap_or(u64::MAX),
        _ => 0,
    }
}

/// What a counter or meter counts: `Some((bytes, packets))`.
pub(crate) fn unit(instance: &ExternInstance) -> (bool, bool) {
    let member = instance.arguments.iter().find_map(|(_, value)| match value {
        ConstValue::Enum { member, .. } => Some(member.to_ascii_lowercase()),
        _ => None,
    });
    let member = member.unwrap_or_default();
    (member.contains("bytes"), member.contains("packets"))
}

fn counter_spec(instance: &ExternInstance) -> pb::CounterSpec {
    use pb::counter_spec::Unit;
    let unit = match unit(instance) {
        (true, true) => Unit::Both,
        (true, false) => Unit::Bytes,
        (false, true) => Unit::Packets,
        (false, false) => Unit::Unspecified,
    };
    pb::CounterSpec { unit: unit.into() }
}

fn meter_spec(instance: &ExternInstance) -> pb::MeterSpec {
    use pb::meter_spec::Unit;
    let unit = match unit(instance) {
        (true, _) => Unit::Bytes,
        (false, true) => Unit::Packets,
        (false, false) => Unit::Unspecified,
    };
    pb::MeterSpec {
        unit: unit.into(),
        ..pb::MeterSpec::default()
    }
}

impl Generator<'_> {
    /// The id of an instance that the control plane knows, else 0.
    pub(super) fn extern_id(&self, id: ExternId) -> u32 {
        let instance = &self.program.externs[id];
        let kind = kind(self.control, self.program, &self.owners, id);
        kind.map_or(0, |kind| self.symbols.id(kind, &instance.name))
    }

    pub(super) fn externs(&mut self) {
        let mut profiles = rustc_hash::FxHashSet::default();
        let users = users(self.program);
        for (id, instance) in self.program.externs.iter() {
            let known = resource(self.control, instance).zip(kind(self.control, self.program, &self.owners, id));
            let Some((resource, kind)) = known else { continue };
            match resource {
                Resource::Counter => self.counter(kind, instance),
                Resource::Meter => self.meter(kind, instance),
                Resource::DirectCounter | Resource::DirectMeter => self.direct(kind, id, instance),
                Resource::Register => self.register(kind, instance),
                Resource::ActionProfile | Resource::ActionSelector => {
                    // Two tables may construct a profile of one name in place: it is the same one.
                    if profiles.insert(instance.name.as_str()) {
                        let users = users.get(&*instance.name).cloned().unwrap_or_default();
                        self.action_profile(instance, resource == Resource::ActionSelector, users);
                    }
                }
                Resource::Digest => {
                    let type_spec = instance.type_arguments.first().map(|ty| self.data_type(ty));
                    let preamble = Some(self.preamble(kind, &instance.name, &instance.annotations));
                    self.info.digests.push(pb::Digest { preamble, type_spec });
                }
                // They have no kind there.
                Resource::DirectRegister
                | Resource::RegisterParameter
                | Resource::Filter
                | Resource::DirectFilter
                | Resource::EarlyDrop
                | Resource::DirectEarlyDrop => {}
            }
        }
    }

    fn counter(&mut self, kind: Kind, instance: &ExternInstance) {
        let described = pb::Counter {
            preamble: Some(self.preamble(kind, &instance.name, &instance.annotations)),
            spec: Some(counter_spec(instance)),
            size: self.int64(&instance.name, "the size", size(instance), instance.loc),
            index_type_name: self.index_type(instance),
        };
        self.info.counters.push(described);
    }

    fn meter(&mut self, kind: Kind, instance: &ExternInstance) {
        let described = pb::Meter {
            preamble: Some(self.preamble(kind, &instance.name, &instance.annotations)),
            spec: Some(meter_spec(instance)),
            size: self.int64(&instance.name, "the size", size(instance), instance.loc),
            index_type_name: self.index_type(instance),
        };
        self.info.meters.push(described);
    }

    fn direct(&mut self, kind: Kind, id: ExternId, instance: &ExternInstance) {
        let direct_table_id = self.owners.get(&id).map_or(0, |t| self.symbols.id(Kind::Table, t));
        let preamble = Some(self.preamble(kind, &instance.name, &instance.annotations));
        if kind == Kind::DirectCounter {
            let described = pb::DirectCounter {
                preamble,
                spec: Some(counter_spec(instance)),
                direct_table_id,
            };
            self.info.direct_counters.push(described);
        } else {
            let described = pb::DirectMeter {
                preamble,
                spec: Some(meter_spec(instance)),
                direct_table_id,
            };
            self.info.direct_meters.push(described);
        }
    }

    fn register(&mut self, kind: Kind, instance: &ExternInstance) {
        let described = pb::Register {
            preamble: Some(self.preamble(kind, &instance.name, &instance.annotations)),
            type_spec: instance.type_arguments.first().map(|ty| self.data_type(ty)),
            size: self.int32(&instance.name, "the size", size(instance), instance.loc),
            index_type_name: self.index_type(instance),
        };
        self.info.registers.push(described);
    }

    /// The name of the index's type, where it is a `type`.
    fn index_type(&mut self, instance: &ExternInstance) -> Option<pb::P4NamedType> {
        let position = self.control.resource(&instance.type_name)?.index?;
        let ty = instance.type_arguments.get(position)?;
        let TypeSpec::New(name, ..) = ty else {
            return None;
        };
        self.data_type(ty);
        Some(pb::P4NamedType { name: name.clone() })
    }

    fn action_profile(&mut self, instance: &ExternInstance, with_selector: bool, mut users: Vec<&str>) {
        users.sort_unstable();
        let mut preamble = self.preamble(Kind::ActionProfile, &instance.name, &instance.annotations);
        preamble.annotations = annotations::texts(&instance.annotations, &PROFILE_ANNOTATIONS);
        preamble.structured_annotations = annotations::structured(&instance.annotations, &PROFILE_ANNOTATIONS);
        // Without a selector there are no groups that the annotations could be about.
        let of_groups: &[Annotation] = if with_selector { &instance.annotations } else { &[] };
        let described = pb::ActionProfile {
            preamble: Some(preamble),
            table_ids: users.into_iter().map(|t| self.symbols.id(Kind::Table, t)).collect(),
            with_selector,
            size: self.int64(&instance.name, "the size", size(instance), instance.loc),
            max_group_size: self.profile_number(of_groups, "max_group_size").unwrap_or(0),
            selector_size_semantics: self.size_semantics(of_groups),
            ..pb::ActionProfile::default()
        };
        self.info.action_profiles.push(described);
    }

    fn profile_number(&mut self, list: &[Annotation], name: &'static str) -> Option<i32> {
        let annotation = annotations::find(list, name)?;
        let number = annotations::number(annotation).and_then(|n| i32::try_from(n).ok());
        if number.is_none() {
            self.errors.push(P4InfoError::BadAnnotation {
                annotation: name,
                expected: "a 31-bit number",
                loc: annotation.loc,
            });
        }
        number
    }

    fn size_semantics(&mut self, list: &[Annotation]) -> Option<pb::action_profile::SelectorSizeSemantics> {
        use pb::action_profile::SelectorSizeSemantics;
        let annotation = annotations::find(list, "selector_size_semantics")?;
        match annotations::string(annotation).as_deref() {
            Some("sum_of_weights") => Some(SelectorSizeSemantics::SumOfWeights(pb::action_profile::SumOfWeights {})),
            Some("sum_of_members") => {
                let max_member_weight = self.profile_number(list, "max_member_weight").unwrap_or(0);
                Some(SelectorSizeSemantics::SumOfMembers(pb::action_profile::SumOfMembers {
                    max_member_weight,
                }))
            }
            _ => {
                let expected = "\"sum_of_weights\" or \"sum_of_members\"";
                self.errors.push(P4InfoError::BadAnnotation {
                    annotation: "selector_size_semantics",
                    expected,
                    loc: annotation.loc,
                });
                None
            }
        }
    }

    /// Digests of architectures where a function sends them: named by the type of the message.
    pub(crate) fn digest_calls(&mut self) {
        for (name, _, ty) in digest_calls(self.control, self.program) {
            let type_spec = Some(self.data_type(ty));
            let preamble = Some(self.preamble(Kind::Digest, &name, &[]));
            self.info.digests.push(pb::Digest { preamble, type_spec });
        }
    }
}
