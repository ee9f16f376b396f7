//! What a running body of v1model asks for: tables and externs.

use super::driver::V1Model;
use super::externs::{Keep, Op};
use super::fields::{get, set};
use crate::choices::{ChoiceKind, Choices};
use crate::fused::FusedArguments;
use crate::hash::{self, Algorithm};
use crate::meter::{Color, Meter};
use crate::state::{Digest, LogMessage, Resource, State, Unit};
use std::sync::Arc;
use weir_interp::{
    Abort, ArgValue, BitBuffer, CallContext, CallEffect, Frame, InValue, LookupDetail, LookupOutcome, MethodEngine,
    Outcome, PacketState, Runtime, SiteId,
};
use weir_ir::{Bits, Call, ExternId, KeyMatch, Loc, MatchKind, TableId, ValueSetId, VarId};
use weir_table::{Entry, EntryAction, EntryHandle, TableSpec};

/// A clone that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct CloneMark {
    pub session: u32,
    pub keep: Arc<[VarId]>,
}

/// What a packet has asked for by calling externs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    pub clone: Option<CloneMark>,
    pub resubmit: Option<Arc<[VarId]>>,
    pub recirculate: Option<Arc<[VarId]>>,
    pub truncate: Option<u32>,
    pub digests: Vec<Digest>,
    pub checksum_error: bool,
    /// Colours of the direct meters of each table, of the last hit there.
    colors: Vec<(ExternId, Color)>,
}

/// Serves one packet.
pub(crate) struct V1Runtime<'a> {
    pub arch: &'a V1Model,
    pub state: &'a mut State,
    pub now_ns: u64,
    pub choices: &'a mut dyn Choices,
    pub marks: &'a mut Marks,
    /// Bytes received.
    pub received_bytes: u64,
}

impl Runtime for V1Runtime<'_> {
    fn lookup(&mut self, table: TableId, keys: &[Bits]) -> LookupOutcome {
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
        self.direct(table, handle);
        let (action, arguments) = self.resolve_action(table, &action, keys);
        LookupOutcome {
            hit: true,
            action,
            arguments,
            entry: handle.get(),
        }
    }

    fn describe(&self, table: TableId, keys: &[Bits], outcome: &LookupOutcome) -> LookupDetail {
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

    fn value_set_contains(&mut self, set: ValueSetId, keys: &[Bits]) -> bool {
        self.state
            .value_sets
            .get(set.index())
            .is_some_and(|s| s.lookup(keys).is_some())
    }

    fn call(&mut self, mut context: CallContext<'_>) -> CallEffect {
        match self.arch.op(context.site) {
            Some(op) => self.perform(op, &mut context),
            None => CallEffect::Continue,
        }
    }
}

impl V1Runtime<'_> {
    /// Does what a call asks for.
    fn perform(&mut self, op: &Op, context: &mut CallContext<'_>) -> CallEffect {
        let arch = self.arch;
        match op {
            Op::CounterCount(id) => self.count(*id, context.number(0)),
            Op::DirectCounterCount => {}
            Op::MeterExecute(id) => {
                let color = self.meter(*id, context.number(0));
                if let Some(color) = color {
                    context.set(1, &Bits::new(32, color as u128));
                }
            }
            Op::DirectMeterRead(id) => {
                if let Some((_, color)) = self.marks.colors.iter().find(|(m, _)| m == id) {
                    context.set(0, &Bits::new(32, *color as u128));
                }
            }
            Op::RegisterRead(id) => self.register_read(*id, context),
            Op::RegisterWrite(id) => self.register_write(*id, context),
            Op::Random => self.random(context),
            Op::Digest { name, fields } => self.digest(name, fields, context),
            Op::Hash => self.hash(context),
            Op::MarkToDrop => {
                let fields = &arch.fields;
                set(&mut context.packet.frame, fields.egress_spec, 511);
                set(&mut context.packet.frame, fields.mcast_grp, 0);
            }
            Op::VerifyChecksum { payload, header } => self.verify_checksum(*payload, *header, context),
            Op::UpdateChecksum { payload, header } => self.update_checksum(*payload, *header, context),
            Op::Checksum16Get => {
                let data = hash_input(context.args.first(), None);
                if let Some(result) = context.results.first_mut() {
                    *result = Bits::new(result.width(), hash::csum16(&data).into());
                }
            }
            Op::Clone(keep) => {
                let session = (context.number(1) & 0x7fff) as u32;
                self.marks.clone = Some(CloneMark {
                    session,
                    keep: self.keep(keep, context),
                });
            }
            Op::Resubmit(keep) => self.marks.resubmit = Some(self.keep(keep, context)),
            Op::Recirculate(keep) => self.marks.recirculate = Some(self.keep(keep, context)),
            Op::Truncate => self.marks.truncate = Some(u32::try_from(context.number(0)).unwrap_or(u32::MAX)),
            Op::Assert(what) => {
                if context.number(0) == 0 {
                    self.log(format!("{what} failed"), context.loc);
                    return CallEffect::Abort;
                }
            }
            Op::User(function) => return function(context),
            Op::Log(text) => self.log(fill_in(text, context.args.get(1)), context.loc),
        }
        CallEffect::Continue
    }

    /// A call of a packet in a pipeline: there is no frame, only what the pipeline handed over.
    pub(crate) fn operate(&mut self, op: &Op, loc: Loc, call: FusedArguments<'_>) -> bool {
        let mut packet = PacketState {
            cursor: call.cursor,
            ..PacketState::default()
        };
        // Checksums look at the payload and at the validity of a header.
        if let Op::VerifyChecksum { payload, .. } | Op::UpdateChecksum { payload, .. } = op {
            packet.frame = Frame::new(&self.arch.program);
            for (var, value) in call.reads {
                packet.frame.set(*var, value.clone());
            }
            if *payload {
                packet.bytes = call.packet.to_vec();
            }
        }
        let effect = self.perform(
            op,
            &mut CallContext {
                site: SiteId::default(),
                call: &NO_CALL,
                loc,
                args: call.arguments,
                results: call.results,
                entry: call.entry,
                packet: &mut packet,
                engine: &mut NoMethods,
            },
        );
        effect == CallEffect::Continue
    }

    /// Runs the direct resources of an entry and finds its action.
    pub(crate) fn fused_hit(&mut self, table: TableId, handle: u32, keys: &[Bits]) -> Option<(usize, Arc<[Bits]>)> {
        let handle = EntryHandle::new(handle)?;
        self.direct(table, handle);
        let action = self
            .state
            .tables
            .get(table.index())?
            .table
            .entry(handle)?
            .action
            .clone();
        Some(self.resolve_action(table, &action, keys))
    }

    // --------------------------------------------------------------------------------- tables

    /// Direct counters count and direct meters run on every hit, whatever the action does. What meters of other tables said
    /// stays: compiled code may be in one of their actions still.
    fn direct(&mut self, table: TableId, handle: EntryHandle) {
        let State { tables, resources, .. } = &mut *self.state;
        let Some(state) = tables.get(table.index()) else {
            return;
        };
        self.marks.colors.retain(|(meter, _)| !state.direct.contains(meter));
        for id in &state.direct {
            match resources.get_mut(id.index()) {
                Some(Resource::DirectCounter(_, cells)) => {
                    if let Some(count) = cells.get_mut(handle.get().into()) {
                        count.add(self.received_bytes);
                    }
                }
                Some(Resource::DirectMeter(unit, cells)) => {
                    if let Some(meter) = cells.get_mut(handle.get().into()) {
                        let tokens = if *unit == Unit::Bytes { self.received_bytes } else { 1 };
                        let color = execute(meter, tokens, self.now_ns, self.choices);
                        self.marks.colors.push((*id, color));
                    }
                }
                _ => {}
            }
        }
    }

    /// The action an entry leads to. A member or group that is gone, or an empty group, leads to the
    /// table's default action.
    fn resolve_action(&mut self, table: TableId, action: &EntryAction, keys: &[Bits]) -> (usize, Arc<[Bits]>) {
        let member = match action {
            EntryAction::Call(call) => return (call.action, call.arguments.as_slice().into()),
            EntryAction::OneShot(set) => {
                let total = set.iter().map(|m| u64::from(m.weight)).sum();
                let mut at = self.select(table, keys, total);
                for m in set {
                    if at < u64::from(m.weight) {
                        return (m.action.action, m.action.arguments.as_slice().into());
                    }
                    at -= u64::from(m.weight);
                }
                None
            }
            EntryAction::Member(id) => Some(*id),
            EntryAction::Group(id) => {
                let total = self
                    .profile(table)
                    .and_then(|p| p.group(*id))
                    .map_or(0, weir_table::Group::weight);
                let at = if total > 0 { self.select(table, keys, total) } else { 0 };
                self.profile(table).and_then(|p| p.group(*id)?.at(at))
            }
        };
        let state = &self.state.tables[table.index()];
        let call = member.and_then(|id| self.profile(table)?.member(id)).map(|m| &m.action);
        let resolved = call.and_then(|c| Some((state.profile_actions.get(c.action).copied()??, &c.arguments)));
        let default = state.table.default_action();
        let (action, arguments) = resolved.unwrap_or((default.action, &default.arguments));
        (action, arguments.as_slice().into())
    }

    fn profile(&self, table: TableId) -> Option<&weir_table::ActionProfile> {
        let spec = self.state.tables.get(table.index())?.table.spec();
        match spec.implementation {
            weir_table::Implementation::Profile(id) | weir_table::Implementation::Selector(id) => {
                self.state.profile(id)
            }
            weir_table::Implementation::Direct => None,
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
            weir_table::Implementation::Selector(id) => match self.state.resource(id) {
                Resource::Profile(_, algorithm) => *algorithm,
                _ => None,
            },
            _ => None,
        };
        let algorithm = algorithm.unwrap_or(Algorithm::Crc16);
        let value = match algorithm {
            Algorithm::Random => self.state.next_random(),
            _ => hash::compute(algorithm, buffer.as_bytes(), &self.state.custom_crc),
        };
        let outcomes = outcomes.max(1);
        self.choices.choose(ChoiceKind::Selector, outcomes, value % outcomes)
    }

    // -------------------------------------------------------------------------- stateful externs

    fn count(&mut self, id: ExternId, index: u64) {
        if let Some(Resource::Counter(_, cells)) = self.state.resource_mut(id)
            && let Some(count) = cells.get_mut(index)
        {
            count.add(self.received_bytes);
        }
    }

    fn meter(&mut self, id: ExternId, index: u64) -> Option<Color> {
        let Some(Resource::Meter(unit, cells)) = self.state.resources.get_mut(id.index()) else {
            return None;
        };
        let tokens = if *unit == Unit::Bytes { self.received_bytes } else { 1 };
        let meter = cells.get_mut(index)?;
        Some(execute(meter, tokens, self.now_ns, self.choices))
    }

    fn register_read(&mut self, id: ExternId, context: &mut CallContext<'_>) {
        let index = context.number(1);
        let Resource::Register(register) = self.state.resource(id) else {
            return;
        };
        let Some(cell) = register.read(index) else {
            return;
        };
        if let Some(ArgValue::Out(values)) = context.args.first_mut() {
            for (slot, value) in values.iter_mut().zip(&cell) {
                *slot = value.zero_extend(slot.width());
            }
        }
    }

    fn register_write(&mut self, id: ExternId, context: &CallContext<'_>) {
        let index = context.number(0);
        let values: Vec<Bits> = context
            .args
            .get(1)
            .map_or(Vec::new(), |a| a.scalars().cloned().collect());
        if let Some(Resource::Register(register)) = self.state.resource_mut(id) {
            register.write(index, &values);
        }
    }

    fn digest(&mut self, name: &str, fields: &[String], context: &CallContext<'_>) {
        let values = context.args.get(1).map_or(Vec::new(), all_scalars);
        let name_of = |i: usize| fields.get(i).cloned().unwrap_or_else(|| format!("f{i}"));
        let fields = values.into_iter().enumerate().map(|(i, v)| (name_of(i), v)).collect();
        self.marks.digests.push(Digest {
            name: name.to_owned(),
            fields,
            time_ns: self.now_ns,
        });
    }

    fn log(&mut self, text: String, loc: Loc) {
        self.state.log.push(LogMessage {
            text,
            loc,
            time_ns: self.now_ns,
        });
    }

    // ------------------------------------------------------------------------- stateless externs

    fn keep(&self, keep: &Keep, context: &CallContext<'_>) -> Arc<[VarId]> {
        match keep {
            Keep::List(argument) => self.arch.groups.field_list(context.number(*argument)),
            Keep::Vars(vars) => Arc::clone(vars),
        }
    }

    /// `random(result, lo, hi)`: leaves the result alone where lo > hi. Ranges are taken modulo 2^64.
    fn random(&mut self, context: &mut CallContext<'_>) {
        let (Some(low), Some(high)) = (context.scalar(1).cloned(), context.scalar(2)) else {
            return;
        };
        if low.cmp_unsigned(high).is_gt() {
            return;
        }
        let span = high.sub(&low).to_u64_saturating();
        let random = self.state.next_random();
        let (outcomes, default) = match span.checked_add(1) {
            Some(outcomes) => (outcomes, random % outcomes),
            None => (u64::MAX, random.min(u64::MAX - 1)),
        };
        let offset = self.choices.choose(ChoiceKind::Random, outcomes, default);
        context.set(0, &low.add(&Bits::new(low.width(), offset.into())));
    }

    fn algorithm(&self, context: &CallContext<'_>, argument: usize) -> Algorithm {
        let index = usize::try_from(context.number(argument)).unwrap_or(usize::MAX);
        self.arch
            .algorithms
            .get(index)
            .copied()
            .flatten()
            .unwrap_or(Algorithm::Crc32)
    }

    /// `hash(result, algo, base, data, max)`: `base + H % max`, where a `max` of 0 counts as 1.
    fn hash(&mut self, context: &mut CallContext<'_>) {
        let algorithm = self.algorithm(context, 1);
        let (base, max) = (context.number(2), context.number(4).max(1));
        let value = if algorithm == Algorithm::Random {
            let random = self.state.next_random();
            self.choices.choose(ChoiceKind::RandomHash, max, random % max)
        } else {
            let data = hash_input(context.args.get(3), None);
            hash::compute(algorithm, &data, &self.state.custom_crc) % max
        };
        context.set(0, &Bits::new(64, base.wrapping_add(value).into()));
    }

    /// The checksum of `(condition, data, checksum, algo)`, unless the condition is false or the header
    /// it belongs in is invalid.
    fn checksum(&self, payload: bool, header: Option<VarId>, context: &CallContext<'_>) -> Option<u64> {
        let frame: &Frame = &context.packet.frame;
        if context.number(0) == 0 || header.is_some_and(|valid| !frame.is_set(valid)) {
            return None;
        }
        let rest = payload.then_some((context.packet.bytes.as_slice(), context.packet.cursor));
        let data = hash_input(context.args.get(1), rest);
        Some(hash::compute(self.algorithm(context, 3), &data, &self.state.custom_crc))
    }

    fn verify_checksum(&mut self, payload: bool, header: Option<VarId>, context: &CallContext<'_>) {
        if let (Some(computed), Some(found)) = (self.checksum(payload, header, context), context.scalar(2))
            && Bits::new(found.width(), computed.into()) != *found
        {
            self.marks.checksum_error = true;
        }
    }

    fn update_checksum(&mut self, payload: bool, header: Option<VarId>, context: &mut CallContext<'_>) {
        if let Some(computed) = self.checksum(payload, header, context) {
            context.set(2, &Bits::new(64, computed.into()));
        }
    }
}

fn execute(meter: &mut Meter, tokens: u64, now_ns: u64, choices: &mut dyn Choices) -> Color {
    meter.execute(tokens, now_ns, |color| {
        match choices.choose(ChoiceKind::Meter, 3, color as u64) {
            0 => Color::Green,
            1 => Color::Yellow,
            _ => Color::Red,
        }
    })
}

/// The bytes a hash runs over: scalars one after the other, invalid headers left out, the last byte
/// filled up with zeros, then the packet's bytes from a bit on.
fn hash_input(argument: Option<&ArgValue>, rest: Option<(&[u8], usize)>) -> Vec<u8> {
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
fn all_scalars(argument: &ArgValue) -> Vec<Bits> {
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

/// A message with each `{}` replaced by the next scalar, in decimal.
fn fill_in(text: &str, argument: Option<&ArgValue>) -> String {
    let values = argument.map_or(Vec::new(), all_scalars);
    let mut values = values.iter();
    let mut parts = text.split("{}");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        match values.next() {
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str("{}"),
        }
        out.push_str(part);
    }
    out
}

/// The internet checksum of an argument's scalars.
pub(crate) fn internet_checksum(argument: Option<&ArgValue>) -> u64 {
    hash::csum16(&hash_input(argument, None)).into()
}

/// The call of an operation that looks at no call.
static NO_CALL: Call = Call {
    instance: None,
    function: String::new(),
    type_arguments: Vec::new(),
    arguments: Vec::new(),
    results: Vec::new(),
    entry: None,
    is_pure: false,
};

/// Pipelines hold no externs with methods of the program's.
struct NoMethods;

impl MethodEngine for NoMethods {
    fn run_method(&mut self, _: ExternId, _: usize, _: &mut PacketState, _: &mut dyn Runtime) -> Outcome {
        Outcome::Abort(Abort::NoSuchBody)
    }
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

/// The value of `egress_spec` that means drop.
pub(crate) const DROP_PORT: u64 = 511;

/// Whether the packet is to be dropped.
pub(crate) fn is_drop(arch: &V1Model, frame: &Frame) -> bool {
    arch.fields.egress_spec.is_some() && get(frame, arch.fields.egress_spec) == DROP_PORT
}
