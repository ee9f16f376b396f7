//! The [`Runtime`] of v1model bodies: it serves their lookups and extern calls.

use super::driver::V1Model;
use super::externs::{Checksum, Keep, Op};
use super::fields::{get, set};
use crate::choices::ChoiceKind;
use crate::fused::FusedArguments;
use crate::hash::{self, Algorithm};
use crate::meter::Color;
use crate::pipeline_builder::Pseudo;
use crate::service::{Service, all_scalars, digest_fields, digest_headers, execute, hash_input};
use crate::state::{Digest, Resource, State, Unit};
use std::sync::Arc;
use weir_interp::{ArgValue, CallContext, CallEffect, Frame, LookupDetail, LookupOutcome, PacketState, Runtime};
use weir_ir::{Bits, ExternId, Loc, TableId, ValueSetId, VarId};
use weir_table::EntryHandle;

/// A requested clone.
#[derive(Debug, Clone)]
pub(crate) struct CloneMark {
    pub session: u32,
    pub keep: Arc<[VarId]>,
}

/// The requests that a packet has made by extern calls.
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

/// A call of a pipeline.
pub(crate) enum FusedCall {
    /// An extern of the architecture.
    Op(Op, Loc),
    /// A call that fusing has inserted.
    Pseudo(Pseudo),
    /// Whether a checksum was wrong.
    ChecksumError,
}

/// Serves one packet.
pub(crate) struct V1Runtime<'a> {
    pub arch: &'a V1Model,
    /// The state; its bytes are those received.
    pub service: Service<'a>,
    pub marks: &'a mut Marks,
}

impl Runtime for V1Runtime<'_> {
    fn lookup(&mut self, table: TableId, keys: &[Bits]) -> LookupOutcome {
        let marks = &mut *self.marks;
        self.service
            .lookup(table, keys, |service, handle| direct(service, marks, table, handle))
    }

    fn describe(&self, table: TableId, keys: &[Bits], outcome: &LookupOutcome) -> LookupDetail {
        self.service.describe(table, keys, outcome)
    }

    fn value_set_contains(&mut self, set: ValueSetId, keys: &[Bits]) -> bool {
        self.service.value_set_contains(set, keys)
    }

    fn call(&mut self, mut context: CallContext<'_>) -> CallEffect {
        match self.arch.op(context.site) {
            Some(op) => self.perform(op, &mut context),
            None => CallEffect::Continue,
        }
    }
}

impl V1Runtime<'_> {
    /// Performs a call.
    fn perform(&mut self, op: &Op, context: &mut CallContext<'_>) -> CallEffect {
        let arch = self.arch;
        match op {
            Op::CounterCount(id) => self.service.count(*id, context.number(0)),
            Op::DirectCounterCount => {}
            Op::MeterExecute(id) => {
                let color = self.service.meter(*id, context.number(0), Color::Green);
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
            Op::RegisterWrite(id) => self.service.register_write(*id, context.number(0), context.args.get(1)),
            Op::Random => self.random(context),
            Op::Digest { name, fields } => self.digest(name, fields, context),
            Op::Hash(calculation) => self.hash(*calculation, context),
            Op::MarkToDrop => {
                let fields = &arch.fields;
                set(&mut context.packet.frame, fields.egress_spec, 511);
                set(&mut context.packet.frame, fields.mcast_grp, 0);
            }
            Op::VerifyChecksum(checksum) => self.verify_checksum(*checksum, context),
            Op::UpdateChecksum(checksum) => self.update_checksum(*checksum, context),
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
                    self.service.log(format!("{what} failed"), context.loc);
                    return CallEffect::Abort;
                }
            }
            Op::Registered(call) => return call.perform(context),
            Op::Log(text) => self.service.log(fill_in(text, context.args.get(1)), context.loc),
        }
        CallEffect::Continue
    }

    /// A call of a packet in a pipeline: there is no frame, only what the pipeline handed over.
    pub(crate) fn operate(&mut self, op: &Op, loc: Loc, call: FusedArguments<'_>) -> bool {
        let mut packet = PacketState {
            cursor: call.cursor,
            ..PacketState::default()
        };
        // Checksums read the payload and the validity of a header.
        if let Op::VerifyChecksum(checksum) | Op::UpdateChecksum(checksum) = op {
            packet.frame = Frame::new(&self.arch.program);
            for (var, value) in call.reads {
                packet.frame.set(*var, value.clone());
            }
            if checksum.payload {
                packet.bytes = call.packet.to_vec();
            }
        }
        let effect = call.with(loc, &mut packet, |context| self.perform(op, context));
        effect == CallEffect::Continue
    }

    /// Runs the direct resources of an entry and finds its action.
    pub(crate) fn fused_hit(&mut self, table: TableId, handle: u32, keys: &[Bits]) -> Option<(usize, Arc<[Bits]>)> {
        let handle = EntryHandle::new(handle)?;
        direct(&mut self.service, self.marks, table, handle);
        self.service.action_of_hit(table, handle, keys)
    }

    // -------------------------------------------------------------------------- stateful externs

    fn register_read(&mut self, id: ExternId, context: &mut CallContext<'_>) {
        let Some(cell) = self.service.register_read(id, context.number(1)) else {
            return;
        };
        if let Some(ArgValue::Out(values)) = context.args.first_mut() {
            for (slot, value) in values.iter_mut().zip(&cell) {
                *slot = value.zero_extend(slot.width());
            }
        }
    }

    fn digest(&mut self, name: &str, fields: &[String], context: &CallContext<'_>) {
        self.marks.digests.push(Digest {
            name: name.to_owned(),
            fields: digest_fields(fields, context.args.get(1)),
            valid: digest_headers(context.args.get(1)),
            time_ns: self.service.now_ns,
        });
    }

    // ------------------------------------------------------------------------- stateless externs

    fn keep(&self, keep: &Keep, context: &CallContext<'_>) -> Arc<[VarId]> {
        match keep {
            Keep::List(argument) => self.arch.groups.field_list(context.number(*argument)),
            Keep::Vars(vars) => Arc::clone(vars),
        }
    }

    /// `random(result, lo, hi)`: leaves the result alone where lo > hi.
    fn random(&mut self, context: &mut CallContext<'_>) {
        if let (Some(low), Some(high)) = (context.scalar(1), context.scalar(2))
            && let Some(number) = self.service.random(low, high)
        {
            context.set(0, &number);
        }
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
    fn hash(&mut self, calculation: Option<u32>, context: &mut CallContext<'_>) {
        let algorithm = self.algorithm(context, 1);
        let (base, max) = (context.number(2), context.number(4).max(1));
        let value = if algorithm == Algorithm::Random {
            let random = self.service.state.next_random();
            self.service.choices.choose(ChoiceKind::RandomHash, max, random % max)
        } else {
            let data = hash_input(context.args.get(3), None);
            let custom = self.service.state.custom_crcs.in_effect(calculation);
            hash::compute(algorithm, &data, custom) % max
        };
        context.set(0, &Bits::new(64, base.wrapping_add(value).into()));
    }

    /// The checksum of `(condition, data, checksum, algo)`, unless the condition is false or the
    /// header it belongs in is invalid.
    fn checksum(&self, checksum: Checksum, context: &CallContext<'_>) -> Option<u64> {
        let frame: &Frame = &context.packet.frame;
        if context.number(0) == 0 || checksum.header.is_some_and(|valid| !frame.is_set(valid)) {
            return None;
        }
        let rest = checksum
            .payload
            .then_some((context.packet.bytes.as_slice(), context.packet.cursor));
        let data = hash_input(context.args.get(1), rest);
        let custom = self.service.state.custom_crcs.in_effect(checksum.calculation);
        Some(hash::compute(self.algorithm(context, 3), &data, custom))
    }

    fn verify_checksum(&mut self, checksum: Checksum, context: &CallContext<'_>) {
        if let (Some(computed), Some(found)) = (self.checksum(checksum, context), context.scalar(2))
            && Bits::new(found.width(), computed.into()) != *found
        {
            self.marks.checksum_error = true;
        }
    }

    fn update_checksum(&mut self, checksum: Checksum, context: &mut CallContext<'_>) {
        if let Some(computed) = self.checksum(checksum, context) {
            context.set(2, &Bits::new(64, computed.into()));
        }
    }
}

/// Direct counters count and direct meters run on every hit, whatever the action does. The
/// results of other tables' meters stay: compiled code may still execute one of their actions.
fn direct(service: &mut Service<'_>, marks: &mut Marks, table: TableId, handle: EntryHandle) {
    let State { tables, resources, .. } = &mut *service.state;
    let Some(state) = tables.get(table.index()) else {
        return;
    };
    marks.colors.retain(|(meter, _)| !state.direct.contains(meter));
    for id in &state.direct {
        match resources.get_mut(id.index()) {
            Some(Resource::DirectCounter(_, cells)) => {
                if let Some(count) = cells.get_mut(handle.get().into()) {
                    count.add(service.bytes);
                }
            }
            Some(Resource::DirectMeter(unit, cells)) => {
                if let Some(meter) = cells.get_mut(handle.get().into()) {
                    let tokens = if *unit == Unit::Bytes { service.bytes } else { 1 };
                    let color = execute(meter, tokens, service.now_ns, Color::Green, service.choices);
                    marks.colors.push((*id, color));
                }
            }
            _ => {}
        }
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

/// The value of `egress_spec` that means drop.
pub(crate) const DROP_PORT: u64 = 511;

/// Whether the packet is to be dropped.
pub(crate) fn is_drop(arch: &V1Model, frame: &Frame) -> bool {
    arch.fields.egress_spec.is_some() && get(frame, arch.fields.egress_spec) == DROP_PORT
}
