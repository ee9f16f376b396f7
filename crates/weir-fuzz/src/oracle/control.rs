//! What the control plane of a packet test does to tables, profiles, registers and value sets.

use super::machine::Machine;
use super::stop::{Eval, unknown};
use super::table::{Chosen, Entry, EntryAction, Match, TableAction, fits};
use super::value::{Value, signed};
use num_bigint::BigUint;
use weir_compiler::tools::{DefKind, Ty, TyKind};
use weir_ir::{KeyMatch, MatchKind};
use weir_stf::{ActionUse, Directive, KeyValue};
use weir_syntax::ast::{AnnotationBody, Name};

/// A value set of an instance.
#[derive(Debug)]
pub(super) struct ValueSet {
    /// What the control plane calls it.
    pub name: String,
    /// How its fields match, and their bits.
    pub fields: Vec<(MatchKind, u32)>,
    /// Its members.
    pub members: Vec<Vec<Match>>,
}

/// Whether what something is called fits what a test calls it: one may be the end of the other.
fn is_called(full: &str, wanted: &str) -> bool {
    let ends = |a: &str, b: &str| a.strip_suffix(b).is_some_and(|rest| rest.ends_with('.'));
    full == wanted || ends(full, wanted) || ends(wanted, full)
}

/// The position of what a test calls so: what has exactly the name goes first.
fn find<'n>(wanted: &str, names: impl Iterator<Item = &'n str> + Clone) -> Option<usize> {
    let wanted = wanted.strip_prefix('.').unwrap_or(wanted);
    let mut exact = names.clone();
    exact
        .position(|n| n == wanted)
        .or_else(|| names.clone().position(|n| is_called(n, wanted)))
}

/// A name of a key as tests may write it, in the form that keys have here.
fn key_called(written: &str) -> String {
    let mut name = String::new();
    let mut rest = written;
    while let Some(at) = rest.find('$') {
        let after = &rest[at + 1..];
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        name.push_str(&rest[..at]);
        match digits {
            0 => name.push('$'),
            _ => name.push_str(&format!("[{}]", &after[..digits])),
        }
        rest = &after[digits..];
    }
    name.push_str(rest);
    let header = name.strip_suffix(".valid").or_else(|| name.strip_suffix(".isValid()"));
    header.map_or(name.clone(), |h| format!("{h}.$valid$"))
}

fn matched(found: KeyMatch) -> Match {
    match found {
        KeyMatch::Exact(value) | KeyMatch::Optional(Some(value)) => Match::Exact(value.to_biguint()),
        KeyMatch::Lpm { value, prefix_length } => Match::Prefix(value.to_biguint(), prefix_length),
        KeyMatch::Ternary { value, mask } => Match::Masked(value.to_biguint(), mask.to_biguint()),
        KeyMatch::Range { low, high } => Match::Range(low.to_biguint(), high.to_biguint()),
        KeyMatch::Optional(None) => Match::Any,
    }
}

impl Machine<'_> {
    /// Does what a directive says that the switch has accepted.
    pub fn directive(&mut self, directive: &Directive) -> Eval<()> {
        match directive {
            Directive::Add {
                table,
                priority,
                keys,
                action,
                id,
            } => {
                let table = self.table_called(table)?;
                let entry = Entry {
                    id: id.clone(),
                    matches: self.matches(table, keys)?,
                    priority: priority.unwrap_or(0),
                    action: self.entry_action(table, action)?,
                    is_const: false,
                };
                self.tables[table].entries.push(entry);
                Ok(())
            }
            Directive::SetDefault { table, action } => {
                let table = self.table_called(table)?;
                let actions = self.tables[table].actions.clone();
                self.tables[table].default = Some(self.used(&actions, action)?);
                Ok(())
            }
            Directive::Modify { table, id, action } => {
                let table = self.table_called(table)?;
                let action = self.entry_action(table, action)?;
                match self.tables[table]
                    .entries
                    .iter_mut()
                    .rfind(|e| e.id.as_ref() == Some(id))
                {
                    Some(entry) => entry.action = action,
                    None => return unknown("an entry that is not there"),
                }
                Ok(())
            }
            Directive::Delete { table, id } => {
                let table = self.table_called(table)?;
                let entries = &mut self.tables[table].entries;
                match entries.iter().rposition(|e| e.id.as_ref() == Some(id)) {
                    Some(at) => drop(entries.remove(at)),
                    None => return unknown("an entry that is not there"),
                }
                Ok(())
            }
            Directive::RemoveAll => {
                for table in &mut self.tables {
                    table.entries.retain(|e| e.is_const);
                }
                Ok(())
            }
            other => self.state_directive(other),
        }
    }

    fn state_directive(&mut self, directive: &Directive) -> Eval<()> {
        match directive {
            Directive::Member { profile, id, action } => {
                let profile = self.extern_called(profile)?;
                self.externs[profile].members.insert(*id, action.clone());
                Ok(())
            }
            Directive::SelectorGroup { profile, id, members } => {
                let profile = self.extern_called(profile)?;
                let mut members = members.clone();
                members.sort_by_key(|m| m.0);
                self.externs[profile].groups.insert(*id, members);
                Ok(())
            }
            Directive::RegisterWrite { name, index, values } => {
                let register = self.extern_called(name)?;
                let [value] = values.as_slice() else {
                    return unknown("a register with several parts");
                };
                let Some(&ty) = self.externs[register].types.first() else {
                    return unknown("a register without a type");
                };
                let value = self.value_of(value, ty)?;
                self.externs[register].cells.insert(*index, value);
                Ok(())
            }
            Directive::RegisterReset { name } => {
                let register = self.extern_called(name)?;
                self.externs[register].cells.clear();
                Ok(())
            }
            Directive::ValueSet { name, values } => {
                let Some(at) = find(name, self.value_sets.iter().map(|s| s.name.as_str())) else {
                    return unknown("a value set that is not there");
                };
                let fields = self.value_sets[at].fields.clone();
                let mut member = Vec::new();
                for (value, (kind, width)) in values.iter().zip(fields) {
                    match value.key_match(kind, width, "") {
                        Ok(found) => member.push(matched(found)),
                        Err(_) => return unknown("a member of a value set that is none"),
                    }
                }
                self.value_sets[at].members.push(member);
                Ok(())
            }
            // They do not change packets.
            Directive::CounterWrite { .. }
            | Directive::CheckCounter { .. }
            | Directive::RegisterRead { .. }
            | Directive::MeterGetRates { .. }
            | Directive::MeterSetRates { .. }
            | Directive::MeterArraySetRates { .. }
            | Directive::Wait
            | Directive::Now { .. }
            | Directive::Expect(_)
            | Directive::NoPacket
            | Directive::ExpectDrop { .. }
            | Directive::ExpectDigest { .. }
            | Directive::Drain => Ok(()),
            other => {
                let text = format!("{other:?}");
                let name = text.split([' ', '(']).next().unwrap_or_default();
                unknown(format!("the directive {name}"))
            }
        }
    }

    fn table_called(&self, name: &str) -> Eval<usize> {
        find(name, self.tables.iter().map(|t| t.name.as_str())).map_or_else(|| unknown("a table that is not there"), Ok)
    }

    fn extern_called(&self, name: &str) -> Eval<usize> {
        let found = find(name, self.externs.iter().map(|e| e.path.as_str()));
        found.map_or_else(|| unknown("an extern that is not there"), Ok)
    }

    /// Matches of an entry; what a test leaves out matches anything, but an exact key 0.
    fn matches(&mut self, table: usize, given: &[KeyValue]) -> Eval<Vec<Match>> {
        let keys: Vec<(String, MatchKind, u32)> = self.tables[table]
            .matched_keys()
            .map(|k| (k.name.clone(), k.kind, k.width))
            .collect();
        let omitted = |kind: MatchKind| match kind {
            MatchKind::Exact | MatchKind::Selector => Match::Exact(BigUint::default()),
            MatchKind::Lpm | MatchKind::Ternary | MatchKind::Range | MatchKind::Optional => Match::Any,
        };
        let mut matches: Vec<Match> = keys.iter().map(|k| omitted(k.1)).collect();
        for key in given {
            let names = keys.iter().map(|k| k.0.as_str());
            let Some(at) = find(&key.name, names.clone()).or_else(|| find(&key_called(&key.name), names)) else {
                return unknown("a key that is not there");
            };
            match key.value.key_match(keys[at].1, keys[at].2, "") {
                Ok(found) => matches[at] = matched(found),
                Err(_) => return unknown("a key that cannot be matched"),
            }
        }
        Ok(matches)
    }

    fn entry_action(&mut self, table: usize, used: &ActionUse) -> Eval<EntryAction> {
        if self.tables[table].profile.is_some() {
            let number = used.arguments.first().and_then(|a| a.value.single());
            let number = number.and_then(|n| u32::try_from(n).ok());
            match (used.name.as_str(), number) {
                ("member", Some(number)) => return Ok(EntryAction::Member(number)),
                ("group", Some(number)) => return Ok(EntryAction::Group(number)),
                _ => {}
            }
        }
        let actions = self.tables[table].actions.clone();
        self.used(&actions, used).map(EntryAction::Run)
    }

    /// An action with its data as a test gives them.
    pub fn used(&mut self, actions: &[TableAction<'_>], used: &ActionUse) -> Eval<Chosen> {
        let Some(action) = find(&used.name, actions.iter().map(|a| a.name.as_str())) else {
            return unknown("an action that is not there");
        };
        let parameters = &actions[action].data;
        let mut data = vec![Value::Void; parameters.len()];
        for (at, argument) in used.arguments.iter().enumerate() {
            let by_name = argument
                .name
                .as_ref()
                .map(|n| find(n, parameters.iter().map(|p| p.0.as_str())));
            let Some(at) = by_name.unwrap_or(Some(at)).filter(|&at| at < data.len()) else {
                return unknown("a parameter that is not there");
            };
            data[at] = self.value_of(&argument.value, parameters[at].1)?;
        }
        if data.contains(&Value::Void) {
            return unknown("an action without data");
        }
        Ok(Chosen { action, data })
    }

    /// The value of a type that a test writes as a number.
    fn value_of(&mut self, value: &weir_stf::Value, ty: Ty) -> Eval<Value> {
        let Some(number) = value.single() else {
            return unknown("several values where there is one");
        };
        Ok(match self.kind(ty) {
            TyKind::Bit(width) => Value::bit(width, number),
            TyKind::Int(width) => Value::Int {
                width,
                value: signed(&number.into(), width),
            },
            TyKind::Bool => Value::Bool(number == BigUint::from(1u8)),
            _ => return unknown("a value of another type from the control plane"),
        })
    }

    // ---------------------------------------------------------------------------------- value sets

    /// How the fields of members of a value set match.
    pub fn value_set_fields(&mut self, ty: Ty) -> Eval<Vec<(MatchKind, u32)>> {
        let concrete = self.concrete(ty);
        let TyKind::Struct(def, _) = self.checked.types.get(concrete).clone() else {
            let types = match self.kind(ty) {
                TyKind::Tuple(types) => types.to_vec(),
                _ => vec![ty],
            };
            let widths = types.into_iter().map(|t| Ok((MatchKind::Exact, self.width(t)?)));
            return widths.collect();
        };
        let kinds: Vec<MatchKind> = match self.def(def) {
            DefKind::Struct { fields, .. } => fields.iter().map(|f| match_annotation(f.annotations)).collect(),
            _ => Vec::new(),
        };
        let fields: Vec<(Name, Ty)> = self.fields(ty);
        fields
            .into_iter()
            .zip(kinds)
            .map(|((_, t), k)| Ok((k, self.width(t)?)))
            .collect()
    }

    fn width(&mut self, ty: Ty) -> Eval<u32> {
        self.zero(ty)?
            .bits()
            .map_or_else(|| unknown("a key without bits"), |b| Ok(b.0))
    }

    /// Whether a value set has these values.
    pub fn in_value_set(&mut self, set: usize, values: &[Value]) -> Eval<bool> {
        let mut parts = Vec::new();
        for value in values {
            let inner: Vec<Value> = match value {
                Value::Struct(fields) => fields.iter().map(|f| f.1.clone()).collect(),
                Value::Tuple(parts) => parts.clone(),
                other => vec![other.clone()],
            };
            for value in inner {
                match value.bits() {
                    Some(bits) => parts.push(bits),
                    None => return unknown("a key without bits"),
                }
            }
        }
        Ok(self.value_sets[set].members.iter().any(|m| fits(m, &parts)))
    }
}

fn match_annotation(annotations: &[weir_syntax::ast::Annotation]) -> MatchKind {
    let annotation = annotations.iter().find(|a| &*a.name.name == "match");
    let kind = annotation.and_then(|a| match &a.body {
        AnnotationBody::Unstructured(tokens) => tokens.first().and_then(|t| MatchKind::from_name(&t.text)),
        AnnotationBody::Empty | AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_) => None,
    });
    kind.unwrap_or(MatchKind::Exact)
}
