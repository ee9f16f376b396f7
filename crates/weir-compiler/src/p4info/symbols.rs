//! Ids and aliases: every object's number and short name.

use super::annotations::{id_annotation, is_hidden};
use super::{P4InfoError, tables};
use super::{extern_keys, externs};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use weir_ir::target::ControlSpec;
use weir_ir::{Action, ActionId, ActionParameter, Annotation, Loc, Program};
use weir_proto::p4::config::v1::p4_ids::Prefix;

/// What an object is; its id's top byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Action,
    Table,
    ValueSet,
    ControllerHeader,
    ActionProfile,
    Counter,
    DirectCounter,
    Meter,
    DirectMeter,
    Register,
    Digest,
    /// An instance of an extern type with keys; the type's id.
    Extern(u8),
}

impl Kind {
    fn prefix(self) -> u8 {
        let prefix = match self {
            Kind::Action => Prefix::Action,
            Kind::Table => Prefix::Table,
            Kind::ValueSet => Prefix::ValueSet,
            Kind::ControllerHeader => Prefix::ControllerHeader,
            Kind::ActionProfile => Prefix::ActionProfile,
            Kind::Counter => Prefix::Counter,
            Kind::DirectCounter => Prefix::DirectCounter,
            Kind::Meter => Prefix::Meter,
            Kind::DirectMeter => Prefix::DirectMeter,
            Kind::Register => Prefix::Register,
            Kind::Digest => Prefix::Digest,
            Kind::Extern(id) => return id,
        };
        prefix as u8
    }

    fn noun(self) -> &'static str {
        match self {
            Kind::Action => "action",
            Kind::Table => "table",
            Kind::ValueSet => "value set",
            Kind::ControllerHeader => "controller header",
            Kind::ActionProfile => "action profile",
            Kind::Counter => "counter",
            Kind::DirectCounter => "direct counter",
            Kind::Meter => "meter",
            Kind::DirectMeter => "direct meter",
            Kind::Register => "register",
            Kind::Digest => "digest",
            Kind::Extern(_) => "extern with keys",
        }
    }
}

/// Every object's number and short name.
#[derive(Default)]
pub(super) struct Symbols {
    ids: FxHashMap<(Kind, String), u32>,
    aliases: FxHashMap<String, String>,
}

impl Symbols {
    /// The id of an object; 0 for one that is not described.
    pub(super) fn id(&self, kind: Kind, name: &str) -> u32 {
        // The map's key owns its string; objects are few.
        self.ids.get(&(kind, name.to_string())).copied().unwrap_or(0)
    }

    /// The shortest part of the name from its end that no other object shares.
    pub(super) fn alias<'s>(&'s self, name: &'s str) -> &'s str {
        self.aliases.get(name).map_or(name, String::as_str)
    }
}

/// Gathers the objects of a program before they are numbered.
#[derive(Default)]
struct Collector {
    names: BTreeMap<Kind, BTreeMap<String, Option<u32>>>,
    places: FxHashMap<(Kind, String), Loc>,
    users: FxHashSet<u32>,
    errors: Vec<P4InfoError>,
}

impl Collector {
    /// An object. `unique`: another one of this kind and name is an error, not the same object.
    fn add(&mut self, kind: Kind, name: &str, list: &[Annotation], loc: Loc, unique: bool) {
        if self.names.get(&kind).is_some_and(|names| names.contains_key(name)) {
            if unique {
                self.errors.push(P4InfoError::DuplicateName {
                    kind: kind.noun(),
                    name: name.to_string(),
                    loc,
                    other: self.places.get(&(kind, name.to_string())).copied().unwrap_or_default(),
                });
            }
            return;
        }
        self.places.insert((kind, name.to_string()), loc);
        let id = match id_annotation(list) {
            Some(Ok((id, loc))) => self.user_id(kind, id, loc),
            Some(Err(loc)) => {
                self.errors.push(P4InfoError::BadId { loc });
                None
            }
            None => None,
        };
        self.names.entry(kind).or_default().insert(name.to_string(), id);
    }

    fn user_id(&mut self, kind: Kind, id: u32, loc: Loc) -> Option<u32> {
        let (given, expected) = ((id >> 24) as u8, kind.prefix());
        if given != 0 && given != expected {
            self.errors.push(P4InfoError::WrongPrefix { id, expected, loc });
            return None;
        }
        let full = u32::from(expected) << 24 | id;
        if !self.users.insert(full) {
            self.errors.push(P4InfoError::DuplicateId { id, loc });
        }
        Some(full)
    }

    fn number(self, errors: &mut Vec<P4InfoError>) -> Symbols {
        let mut symbols = Symbols::default();
        let mut taken = self.users;
        for (&kind, names) in &self.names {
            for (name, &user) in names {
                let id = user.unwrap_or_else(|| free_id(kind, name, &taken));
                taken.insert(id);
                symbols.ids.insert((kind, name.clone()), id);
            }
        }
        let names: FxHashSet<&str> = self
            .names
            .values()
            .flat_map(BTreeMap::keys)
            .map(String::as_str)
            .collect();
        let mut shared: FxHashMap<&str, usize> = FxHashMap::default();
        for name in &names {
            for suffix in suffixes(name) {
                *shared.entry(suffix).or_default() += 1;
            }
        }
        for name in names {
            let shortest = suffixes(name).filter(|s| shared[s] == 1).last();
            symbols
                .aliases
                .insert(name.to_string(), shortest.unwrap_or(name).to_string());
        }
        errors.extend(self.errors);
        symbols
    }
}

/// The name and what follows each of its dots, longest first.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    std::iter::once(name).chain(name.match_indices('.').map(|(dot, _)| &name[dot + 1..]))
}

/// The id that a name hashes to, or the next one that is free.
fn free_id(kind: Kind, name: &str, taken: &FxHashSet<u32>) -> u32 {
    const MASK: u32 = 0x00ff_ffff;
    let prefix = u32::from(kind.prefix()) << 24;
    let mut low = one_at_a_time(name.as_bytes()) & MASK;
    while taken.contains(&(prefix | low)) {
        low = (low + 1) & MASK;
    }
    prefix | low
}

/// Bob Jenkins's one-at-a-time hash.
pub(crate) fn one_at_a_time(bytes: &[u8]) -> u32 {
    let mut hash = 0u32;
    for &byte in bytes {
        hash = hash.wrapping_add(u32::from(byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// The symbols of a program.
pub(super) fn of_program(
    control: ControlSpec,
    program: &Program,
    owners: &externs::Owners<'_>,
    errors: &mut Vec<P4InfoError>,
) -> Symbols {
    let mut collector = Collector::default();
    for (_, table) in program.tables.iter().filter(|(_, t)| !is_hidden(&t.annotations)) {
        collector.add(Kind::Table, &table.name, &table.annotations, table.loc, true);
    }
    same_named_actions(program, errors);
    for action in tables::described_actions(program) {
        collector.add(Kind::Action, &action.name, &action.annotations, action.loc, false);
    }
    for (id, instance) in program.externs.iter() {
        if let Some(kind) = externs::kind(control, program, owners, id) {
            let (name, unique) = (instance.name.as_str(), kind != Kind::ActionProfile);
            collector.add(kind, name, &instance.annotations, instance.loc, unique);
        }
    }
    let types = extern_keys::types(control, program, errors);
    for (_, instance) in program.externs.iter() {
        if let Some(&id) = types
            .get(instance.type_name.as_str())
            .filter(|_| extern_keys::is_shown(control, instance))
        {
            let (name, list) = (instance.name.as_str(), instance.annotations.as_slice());
            collector.add(Kind::Extern(id), name, list, instance.loc, true);
        }
    }
    for (name, loc, _) in externs::digest_calls(control, program) {
        collector.add(Kind::Digest, &name, &[], loc, false);
    }
    for (_, set) in program.value_sets.iter().filter(|(_, s)| !is_hidden(&s.annotations)) {
        collector.add(Kind::ValueSet, &set.name, &set.annotations, set.loc, true);
    }
    for (ty, _, loc) in tables::controller_headers(program) {
        collector.add(Kind::ControllerHeader, &ty.name, &ty.annotations, loc, true);
    }
    collector.number(errors)
}

/// Actions of one name are one action to a control plane, if it need not tell them apart: they have
/// the same
/// parameters, and no table has two of them.
pub(crate) fn same_named_actions(program: &Program, errors: &mut Vec<P4InfoError>) {
    let mut refuse = |first: &Action, second: &Action| {
        errors.push(P4InfoError::DuplicateName {
            kind: Kind::Action.noun(),
            name: second.name.clone(),
            loc: second.loc,
            other: first.loc,
        });
    };
    let mut known: FxHashMap<&str, &Action> = FxHashMap::default();
    let used = tables::used_actions(program);
    let shown = |(id, a): &(ActionId, &Action)| used.contains(id) && !is_hidden(&a.annotations);
    for (_, action) in program.actions.iter().filter(shown) {
        let first = known.entry(&action.name).or_insert(action);
        let is_same = |(a, b): (&ActionParameter, &ActionParameter)| a.is_same_to_control_planes(b);
        let agree = first.parameters.len() == action.parameters.len()
            && first.parameters.iter().zip(&action.parameters).all(is_same)
            && user_id_of(first) == user_id_of(action);
        if !agree {
            refuse(first, action);
        }
    }
    for (_, table) in program.tables.iter() {
        let mut listed: FxHashMap<&str, &Action> = FxHashMap::default();
        for action in table.actions.iter().map(|a| &program.actions[a.action]) {
            if let Some(first) = listed.insert(&action.name, action) {
                refuse(first, action);
            }
        }
    }
}

fn user_id_of(action: &Action) -> Option<u32> {
    id_annotation(&action.annotations)
        .and_then(Result::ok)
        .map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_action_has_the_id_everyone_knows() {
        assert_eq!(free_id(Kind::Action, "NoAction", &FxHashSet::default()), 21_257_015);
    }

    #[test]
    fn a_taken_id_makes_room_for_the_next() {
        let taken = [21_257_015].into_iter().collect();
        assert_eq!(free_id(Kind::Action, "NoAction", &taken), 21_257_016);
    }

    #[test]
    fn an_alias_is_the_shortest_suffix_of_its_own() {
        let mut collector = Collector::default();
        for (kind, name) in [
            (Kind::Table, "c.a.t"),
            (Kind::Table, "c.b.t"),
            (Kind::Action, "c.act"),
            (Kind::Counter, "c.act"),
            (Kind::Action, "t"),
        ] {
            collector.add(kind, name, &[], Loc::default(), true);
        }
        let symbols = collector.number(&mut Vec::new());
        assert_eq!(symbols.alias("c.a.t"), "a.t");
        assert_eq!(symbols.alias("c.b.t"), "b.t");
        assert_eq!(symbols.alias("c.act"), "act");
        // Every suffix of it is one of another name too.
        assert_eq!(symbols.alias("t"), "t");
    }
}
