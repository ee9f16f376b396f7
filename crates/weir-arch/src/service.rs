//! Lookups and stateful externs, as all architectures share them: counters, meters, registers,
//! selectors, hashes over data. Architectures map their externs to these operations.

use crate::choices::{ChoiceKind, Choices};
use crate::hash::{self, Algorithm};
use crate::meter::{Color, Meter};
use crate::state::{LogMessage, Resource, State, Unit};
use std::sync::Arc;
use weir_interp::{ArgValue, BitBuffer, InValue, LookupDetail, LookupOutcome};
use weir_ir::{Bits, ExternId, KeyMatch, Loc, MatchKind, TableId, ValueSetId};
use weir_table::{Entry, EntryAction, EntryHandle, Implementation, TableSpec};

/// The state of a program, lent for one packet.
pub struct Service<'a> {
    /// The state.
    pub state: &'a mut State,
    /// The time in ns since the switch started.
    pub now_ns: u64,
    /// Decides outcomes that are random or unspecified.
    pub choices: &'a mut dyn Choices,
    /// Bytes of the packet: what counters and meters count.
    pub bytes: u64,
}

impl Service<'_> {
    // --------------------------------------------------------------------------------- tables

    /// Looks a table up. `on_hit` is called with the entry before its action is chosen.
    pub fn lookup(
        &mut self,
        table: TableId,
        keys: &[Bits],
        on_hit: impl FnOnce(&mut Self, EntryHandle),
    ) -> LookupOutcome {
        let Some(state) = self.state.tables.get_mut(table.index()) else {
            return LookupOutcome {
                hit: false,
                action: 0,
                arguments: Arc::new([]),
                entry: 0,
            };
        };
        let Some(entry) = state.table.lookup(keys) else {
            state.misses += 1;
            let default = state.table.default_action();
            let arguments = default.arguments.as_slice().into();
            return LookupOutcome {
                hit: false,
                action: default.action,
                arguments,
                entry: 0,
            };
        };
        let (handle, action) = (entry.handle, entry.action.clone());
        state.hits += 1;
        if state.table.spec().idle_timeout {
            state.table.touch(handle, self.now_ns);
        }
        on_hit(self, handle);
        let (action, arguments) = self.resolve_action(table, &action, keys);
        LookupOutcome {
            hit: true,
            action,
            arguments,
            entry: handle.get(),
        }
    }

    /// The action of an entry that was hit, if the entry refers to a member or group instead of an
    /// action.
    pub fn action_of_hit(
        &mut self,
        table: TableId,
        handle: EntryHandle,
        keys: &[Bits],
    ) -> Option<(usize, Arc<[Bits]>)> {
        let entry = self.state.tables.get(table.index())?.table.entry(handle)?;
        let action = entry.action.clone();
        Some(self.resolve_action(table, &action, keys))
    }

    /// Describes a lookup for a trace.
    #[must_use]
    pub fn describe(&self, table: TableId, keys: &[Bits], outcome: &LookupOutcome) -> LookupDetail {
        let Some(state) = self.state.tables.get(table.index()) else {
            return LookupDetail::default();
        };
        let mut detail = LookupDetail {
            entries: state.table.len(),
            ..LookupDetail::default()
        };
        match EntryHandle::new(outcome.entry).and_then(|h| state.table.entry(h)) {
            Some(entry) => {
                detail.matched = Some((entry.matches.clone(), entry.priority));
                detail.member = match &entry.action {
                    EntryAction::Call(_) => None,
                    EntryAction::Member(id) => Some(format!("member {id}")),
                    EntryAction::Group(id) => Some(format!("from group {id}")),
                    EntryAction::OneShot(set) => Some(format!("one of {} actions of the entry", set.len())),
                };
            }
            None => detail.nearest = nearest(state.table.spec(), state.table.entries(), keys),
        }
        detail
    }

    /// Whether the values are a member of the set.
    #[must_use]
    pub fn value_set_contains(&self, set: ValueSetId, keys: &[Bits]) -> bool {
        let set = self.state.value_sets.get(set.index());
        set.is_some_and(|s| s.lookup(keys).is_some())
    }

    /// The action an entry leads to. A member or group that is gone leads to the table's default
    /// action, an empty group to the table's action for empty groups, if it has one.
    fn resolve_action(&mut self, table: TableId, action: &EntryAction, keys: &[Bits]) -> (usize, Arc<[Bits]>) {
        let mut empty = false;
        let member = match action {
            EntryAction::Call(call) => return (call.action, call.arguments.as_slice().into()),
            EntryAction::OneShot(set) => {
                let total = set.iter().map(|m| u64::from(m.live_weight())).sum();
                empty = total == 0;
                let mut weight_left = if total > 0 { self.select(table, keys, total) } else { 0 };
                for m in set {
                    if weight_left < u64::from(m.live_weight()) {
                        return (m.action.action, m.action.arguments.as_slice().into());
                    }
                    weight_left -= u64::from(m.live_weight());
                }
                None
            }
            EntryAction::Member(id) => Some(*id),
            EntryAction::Group(id) => {
                let weight = self
                    .profile(table)
                    .and_then(|p| p.group(*id))
                    .map(weir_table::Group::live_weight);
                empty = weight == Some(0);
                let total = weight.unwrap_or(0);
                let choice = if total > 0 { self.select(table, keys, total) } else { 0 };
                self.profile(table).and_then(|p| p.group(*id)?.at(choice))
            }
        };
        let state = &self.state.tables[table.index()];
        let call = member.and_then(|id| self.profile(table)?.member(id)).map(|m| &m.action);
        let resolved = call.and_then(|c| Some((state.profile_actions.get(c.action).copied()??, &c.arguments)));
        let of_empty = state.empty_group.as_ref().filter(|_| empty);
        let default = of_empty.unwrap_or_else(|| state.table.default_action());
        let (action, arguments) = resolved.unwrap_or((default.action, &default.arguments));
        (action, arguments.as_slice().into())
    }

    fn profile(&self, table: TableId) -> Option<&weir_table::ActionProfile> {
        let spec = self.state.tables.get(table.index())?.table.spec();
        match spec.implementation {
            Implementation::Profile(id) | Implementation::Selector(id) => self.state.profile(id),
            Implementation::Direct => None,
        }
    }

    /// One of `outcomes` positions by the selector's hash over the selector keys.
    fn select(&mut self, table: TableId, keys: &[Bits], outcomes: u64) -> u64 {
        let spec = self.state.tables[table.index()].table.spec();
        let mut buffer = BitBuffer::new();
        for (key, value) in spec.keys.iter().zip(keys) {
            if key.kind == MatchKind::Selector {
                buffer.push(value);
            }
        }
        let algorithm = match spec.implementation {
            Implementation::Selector(id) => match self.state.resource(id) {
                Resource::Profile(_, algorithm) => *algorithm,
                _ => None,
            },
            _ => None,
        };
        let algorithm = algorithm.unwrap_or(Algorithm::Crc16);
        let value = match algorithm {
            Algorithm::Random => self.state.next_random(),
            _ => hash::compute(algorithm, buffer.as_bytes(), self.state.custom_crcs.in_effect(None)),
        };
        let outcomes = outcomes.max(1);
        self.choices.choose(ChoiceKind::Selector, outcomes, value % outcomes)
    }

    // -------------------------------------------------------------------------- stateful externs

    /// Counts the packet at an index of a counter, or for an entry of a direct one.
    pub fn count(&mut self, id: ExternId, index: u64) {
        self.state.count(id, index, self.bytes);
    }

    /// The colour of the packet at an index of a meter, or for an entry of a direct one; `before`
    /// is the colour that an earlier meter gave it. `None` beyond its end.
    pub fn meter(&mut self, id: ExternId, index: u64, before: Color) -> Option<Color> {
        let Some(Resource::Meter(unit, cells) | Resource::DirectMeter(unit, cells)) =
            self.state.resources.get_mut(id.index())
        else {
            return None;
        };
        let tokens = if *unit == Unit::Bytes { self.bytes } else { 1 };
        let (now_ns, choices) = (self.now_ns, &mut *self.choices);
        let meter = cells.get_mut(index)?;
        Some(execute(meter, tokens, now_ns, before, choices))
    }

    /// A sample smoothed by a filter at an index, or for an entry of a direct one; `None` beyond
    /// its end.
    pub fn smooth(&mut self, id: ExternId, index: u64, sample: u64) -> Option<u64> {
        match self.state.resources.get_mut(id.index()) {
            Some(Resource::Lpf(cells)) => Some(cells.get_mut(index)?.execute(sample, self.now_ns)),
            _ => None,
        }
    }

    /// Whether early random drop at an index, or for an entry of a direct one, drops the packet;
    /// not beyond its end.
    pub fn drops_early(&mut self, id: ExternId, index: u64, value: u64) -> bool {
        let Some(Resource::Wred(cells)) = self.state.resources.get_mut(id.index()) else {
            return false;
        };
        let share = cells.get_mut(index).map_or(0, |c| c.execute(value, self.now_ns));
        match share {
            0 => false,
            10_000.. => true,
            share => {
                let default = u64::from(self.state.next_random() % 10_000 < share.into());
                self.choices.choose(ChoiceKind::Wred, 2, default) == 1
            }
        }
    }

    /// A register's scalars; `None` beyond its end.
    #[must_use]
    pub fn register_read(&self, id: ExternId, index: u64) -> Option<Vec<Bits>> {
        match self.state.resource(id) {
            Resource::Register(register) => register.read(index),
            _ => None,
        }
    }

    /// Writes a register's scalars; nothing beyond its end.
    pub fn register_write(&mut self, id: ExternId, index: u64, value: Option<&ArgValue>) {
        let values: Vec<Bits> = value.map_or(Vec::new(), |a| a.scalars().cloned().collect());
        if let Some(Resource::Register(register)) = self.state.resource_mut(id) {
            register.write(index, &values);
        }
    }

    /// A number from `low` to `high`, both included, of the width of `low`; `None` where there is
    /// none. Ranges are taken modulo 2^64.
    pub fn random(&mut self, low: &Bits, high: &Bits) -> Option<Bits> {
        if low.cmp_unsigned(high).is_gt() {
            return None;
        }
        let span = high.sub(low).to_u64_saturating();
        let random = self.state.next_random();
        let (outcomes, default) = match span.checked_add(1) {
            Some(outcomes) => (outcomes, random % outcomes),
            None => (u64::MAX, random.min(u64::MAX - 1)),
        };
        let offset = self.choices.choose(ChoiceKind::Random, outcomes, default);
        Some(low.add(&Bits::new(low.width(), offset.into())))
    }

    /// Keeps a message for the control plane.
    pub fn log(&mut self, text: String, loc: Loc) {
        self.state.log.push(LogMessage {
            text,
            loc,
            time_ns: self.now_ns,
        });
    }
}

/// Runs a meter; `choices` may override the colour.
pub(crate) fn execute(meter: &mut Meter, tokens: u64, now_ns: u64, before: Color, choices: &mut dyn Choices) -> Color {
    meter.execute(tokens, now_ns, before, |color| {
        match choices.choose(ChoiceKind::Meter, 3, color as u64) {
            0 => Color::Green,
            1 => Color::Yellow,
            _ => Color::Red,
        }
    })
}

/// The bytes a hash runs over: scalars one after the other, invalid headers left out, the last byte
/// padded with zeros, then the packet's bytes from a bit on.
#[must_use]
pub fn hash_input(argument: Option<&ArgValue>, rest: Option<(&[u8], usize)>) -> Vec<u8> {
    let mut buffer = BitBuffer::new();
    if let Some(argument) = argument {
        argument.scalars().for_each(|s| buffer.push(s));
    }
    let mut bytes = buffer.into_bytes();
    if let Some((packet, cursor)) = rest {
        let mut payload = BitBuffer::new();
        payload.push_rest(packet, cursor);
        bytes.extend_from_slice(payload.as_bytes());
    }
    bytes
}

/// All scalars of an argument, those of invalid headers too.
#[must_use]
pub fn all_scalars(argument: &ArgValue) -> Vec<Bits> {
    match argument {
        ArgValue::In(values) => values
            .iter()
            .flat_map(|v| match v {
                InValue::Scalar(bits) => vec![bits.clone()],
                InValue::Header { fields, .. } => fields.clone(),
            })
            .collect(),
        ArgValue::Out(values) => values.clone(),
        ArgValue::Static => Vec::new(),
    }
}

/// The fields of a digest with their names; those without get a number.
#[must_use]
pub fn digest_fields(names: &[String], argument: Option<&ArgValue>) -> Vec<(String, Bits)> {
    let values = argument.map_or(Vec::new(), all_scalars);
    let name_of = |i: usize| names.get(i).cloned().unwrap_or_else(|| format!("f{i}"));
    values.into_iter().enumerate().map(|(i, v)| (name_of(i), v)).collect()
}

/// For each header of a digest's data in order whether it is valid.
#[must_use]
pub fn digest_headers(argument: Option<&ArgValue>) -> Vec<bool> {
    let Some(ArgValue::In(values)) = argument else {
        return Vec::new();
    };
    let validity = values.iter().filter_map(|value| match value {
        InValue::Header { valid, .. } => Some(*valid),
        InValue::Scalar(_) => None,
    });
    validity.collect()
}

/// The entry that differs from the keys in the fewest places, and those keys' names.
fn nearest<'a>(
    spec: &TableSpec,
    entries: impl Iterator<Item = &'a Entry>,
    keys: &[Bits],
) -> Option<(u32, Vec<String>)> {
    let matched: Vec<_> = spec
        .keys
        .iter()
        .zip(keys)
        .filter(|(k, _)| k.kind != MatchKind::Selector)
        .collect();
    entries
        .map(|entry| {
            let differing: Vec<String> = entry
                .matches
                .iter()
                .zip(&matched)
                .filter(|(m, (_, value))| !covers(m, value))
                .map(|(_, (key, _))| key.name.clone())
                .collect();
            (entry.handle.get(), differing)
        })
        .min_by_key(|(_, differing)| differing.len())
}

fn covers(m: &KeyMatch, value: &Bits) -> bool {
    match m {
        KeyMatch::Exact(v) => v == value,
        KeyMatch::Lpm {
            value: v,
            prefix_length,
        } => value.and(&Bits::prefix_mask(v.width(), *prefix_length)) == *v,
        KeyMatch::Ternary { value: v, mask } => value.and(mask) == *v,
        KeyMatch::Range { low, high } => low.cmp_unsigned(value).is_le() && value.cmp_unsigned(high).is_le(),
        KeyMatch::Optional(v) => v.as_ref().is_none_or(|v| v == value),
    }
}

/// The per-packet state of an instance; the default at its first use.
pub(crate) fn slot<T: Default>(all: &mut Vec<(ExternId, T)>, id: ExternId) -> &mut T {
    let index = all.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
        all.push((id, T::default()));
        all.len() - 1
    });
    &mut all[index].1
}
