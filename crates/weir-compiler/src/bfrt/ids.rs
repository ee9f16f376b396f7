//! Numbers of tables, actions and digests.

use crate::p4info::P4InfoError;
use crate::p4info::annotations::{id_annotation, is_hidden};
use crate::p4info::extern_keys::is_shown;
use crate::p4info::externs::digest_calls;
use crate::p4info::symbols::one_at_a_time;
use crate::p4info::tables::described_actions;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use weir_ir::target::{ControlSpec, ResourceKind};
use weir_ir::{Annotation, ConstValue, Loc, Program};

/// What an object is: the top byte of its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(super) enum Kind {
    Action = 0x01,
    Table = 0x02,
    ActionProfile = 0x81,
    ActionSelector = 0x82,
    Counter = 0x83,
    Meter = 0x85,
    EarlyDrop = 0x87,
    Filter = 0x89,
    Register = 0x8b,
    RegisterParameter = 0x8d,
    Digest = 0x8e,
    PortMetadata = 0x90,
    SelectorGetMember = 0x9a,
    ExternKeys = 0xf1,
    ValueSet = 0xfe,
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Kind::Action => "action",
            Kind::Table => "table",
            Kind::ActionProfile => "action profile",
            Kind::ActionSelector => "action selector",
            Kind::Counter => "counter",
            Kind::Meter => "meter",
            Kind::EarlyDrop => "WRED",
            Kind::Filter => "low-pass filter",
            Kind::Register => "register",
            Kind::RegisterParameter => "register parameter",
            Kind::Digest => "digest",
            Kind::PortMetadata => "port metadata",
            Kind::SelectorGetMember => "selector",
            Kind::ExternKeys => "extern with keys",
            Kind::ValueSet => "value set",
        }
    }
}

/// Every object's number.
#[derive(Default)]
pub(super) struct Ids(FxHashMap<(Kind, String), u32>);

impl Ids {
    /// The number of an object; 0 for one that is not described.
    pub(super) fn id(&self, kind: Kind, name: &str) -> u32 {
        self.0.get(&(kind, name.to_owned())).copied().unwrap_or(0)
    }
}

/// The profile of a selector that is not given one.
pub(super) fn made_profile(selector: &str) -> String {
    format!("{selector}_ap")
}

/// The table that tells which member of a selector's group is chosen for a hash.
pub(super) fn get_member(selector: &str) -> String {
    format!("{selector}_get_member")
}

#[derive(Default)]
struct Collector {
    /// By kind and name, with what `@id` says.
    names: BTreeMap<(Kind, String), Option<u32>>,
    places: FxHashMap<(Kind, String), Loc>,
    errors: Vec<P4InfoError>,
}

impl Collector {
    fn add(&mut self, kind: Kind, name: &str, list: &[Annotation]) {
        let given = match id_annotation(list) {
            Some(Ok((id, _))) => Some(id & 0x00ff_ffff),
            Some(Err(loc)) => {
                self.errors.push(P4InfoError::BadId { loc });
                None
            }
            None => None,
        };
        self.names.entry((kind, name.to_owned())).or_insert(given);
    }

    /// An object that no other of its kind may share its name with.
    fn add_alone(&mut self, kind: Kind, name: &str, list: &[Annotation], loc: Loc) {
        if let Some(other) = self.places.insert((kind, name.to_owned()), loc) {
            self.errors.push(P4InfoError::DuplicateName {
                kind: kind.noun(),
                name: name.to_owned(),
                loc,
                other,
            });
        }
        self.add(kind, name, list);
    }
}

/// The numbers of all objects of a program.
pub(super) fn of_program(control: ControlSpec, program: &Program, errors: &mut Vec<P4InfoError>) -> Ids {
    let mut found = Collector::default();
    for (_, table) in program.tables.iter().filter(|(_, t)| !is_hidden(&t.annotations)) {
        found.add_alone(Kind::Table, &table.name, &table.annotations, table.loc);
    }
    crate::p4info::symbols::same_named_actions(program, errors);
    for action in described_actions(program) {
        found.add(Kind::Action, &action.name, &action.annotations);
    }
    for (_, set) in program.value_sets.iter().filter(|(_, s)| !is_hidden(&s.annotations)) {
        found.add_alone(Kind::ValueSet, &set.name, &set.annotations, set.loc);
    }
    for (_, instance) in program.externs.iter().filter(|(_, e)| !is_hidden(&e.annotations)) {
        let Some(spec) = control.resource(&instance.type_name) else {
            continue;
        };
        let (name, list, loc) = (instance.name.as_str(), instance.annotations.as_slice(), instance.loc);
        match spec.kind {
            ResourceKind::Counter => found.add_alone(Kind::Counter, name, list, loc),
            ResourceKind::Meter => found.add_alone(Kind::Meter, name, list, loc),
            ResourceKind::Register => found.add_alone(Kind::Register, name, list, loc),
            ResourceKind::RegisterParameter => found.add_alone(Kind::RegisterParameter, name, list, loc),
            ResourceKind::Filter => found.add_alone(Kind::Filter, name, list, loc),
            ResourceKind::EarlyDrop => found.add_alone(Kind::EarlyDrop, name, list, loc),
            ResourceKind::ActionProfile => found.add(Kind::ActionProfile, name, list),
            ResourceKind::Digest => found.add(Kind::Digest, name, list),
            ResourceKind::ActionSelector => {
                found.add(Kind::ActionSelector, name, list);
                found.add(Kind::SelectorGetMember, name, &[]);
                let is_given = (instance.arguments.iter()).any(|(_, v)| is_profile(control, program, v));
                if !is_given {
                    found.add(Kind::ActionProfile, &made_profile(name), &[]);
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
    for (_, instance) in program.externs.iter().filter(|(_, e)| is_shown(control, e)) {
        let (name, list) = (instance.name.as_str(), instance.annotations.as_slice());
        found.add_alone(Kind::ExternKeys, name, list, instance.loc);
    }
    for (name, ..) in digest_calls(control, program) {
        found.add(Kind::Digest, &name, &[]);
    }
    for parser in super::resources::port_metadata_parsers(control, program) {
        found.add(
            Kind::PortMetadata,
            &super::resources::port_metadata_name(&parser.0.name),
            &[],
        );
    }
    errors.append(&mut found.errors);
    number(program, found.names)
}

fn is_profile(control: ControlSpec, program: &Program, value: &ConstValue) -> bool {
    let ConstValue::Extern(id) = value else { return false };
    let spec = control.resource(&program.externs[*id].type_name);
    spec.is_some_and(|s| s.kind == ResourceKind::ActionProfile)
}

/// Numbers that are given first; the others are what names hash to, or the next that is free.
fn number(program: &Program, names: BTreeMap<(Kind, String), Option<u32>>) -> Ids {
    const MASK: u32 = 0x00ff_ffff;
    let full = |kind: Kind, low: u32| u32::from(kind as u8) << 24 | low;
    let given = names.iter().filter_map(|((kind, _), id)| Some(full(*kind, (*id)?)));
    let mut taken: FxHashSet<u32> = given.collect();
    let mut ids = Ids::default();
    for ((kind, name), given) in names {
        let id = match given {
            Some(low) => full(kind, low),
            None => {
                let mut low = one_at_a_time(hashed(program, kind, &name).as_bytes()) & MASK;
                while !taken.insert(full(kind, low)) {
                    low = (low + 1) & MASK;
                }
                full(kind, low)
            }
        };
        ids.0.insert((kind, name), id);
    }
    ids
}

/// What is hashed. The table of a selector that tells members has the selector's own hash.
fn hashed(program: &Program, kind: Kind, name: &str) -> String {
    match kind {
        Kind::Action => name.to_owned(),
        _ => super::with_pipe(program, name),
    }
}
