//! The [`Runtime`] of PSA bodies: it serves their lookups and extern calls.

use super::driver::{PORT_RECIRCULATE, Psa};
use super::externs::Op;
use crate::fused::FusedArguments;
use crate::hash::{self, Algorithm};
use crate::meter::Color;
use crate::service::{Service, all_scalars, digest_fields, digest_headers, hash_input, slot};
use crate::state::Digest;
use weir_interp::{ArgValue, BitBuffer, CallContext, CallEffect, LookupDetail, LookupOutcome, PacketState, Runtime};
use weir_ir::{Bits, ExternId, Loc, TableId, ValueSetId};

/// The state of instances of `Checksum` and `InternetChecksum` while one programmable block runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checksums {
    data: Vec<(ExternId, BitBuffer)>,
    sums: Vec<(ExternId, u16)>,
}

impl Checksums {
    fn data(&mut self, id: ExternId) -> &mut BitBuffer {
        slot(&mut self.data, id)
    }

    fn sum(&mut self, id: ExternId) -> &mut u16 {
        slot(&mut self.sums, id)
    }
}

/// Serves one packet in one programmable block.
pub(crate) struct PsaRuntime<'a> {
    pub arch: &'a Psa,
    /// The state; its bytes are those that the parser of this pipeline got.
    pub service: Service<'a>,
    pub checksums: Checksums,
}

impl Runtime for PsaRuntime<'_> {
    fn lookup(&mut self, table: TableId, keys: &[Bits]) -> LookupOutcome {
        // Direct resources do nothing but what actions call for.
        self.service.lookup(table, keys, |_, _| {})
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

impl PsaRuntime<'_> {
    fn perform(&mut self, op: &Op, context: &mut CallContext<'_>) -> CallEffect {
        match op {
            Op::Hash(algorithm) => {
                let value = self.hash(*algorithm, context, 0);
                give(context, &Bits::new(64, value.into()));
            }
            Op::HashRange(algorithm) => self.hash_range(*algorithm, context),
            Op::ChecksumClear(id) => *self.checksums.data(*id) = BitBuffer::new(),
            Op::ChecksumUpdate(id) => {
                let buffer = self.checksums.data(*id);
                let scalars = context.args.first().into_iter().flat_map(ArgValue::scalars);
                scalars.for_each(|s| buffer.push(s));
            }
            Op::ChecksumGet(id, algorithm) => {
                let custom = *self.service.state.custom_crcs.in_effect(None);
                let value = hash::compute(*algorithm, self.checksums.data(*id).as_bytes(), &custom);
                give(context, &Bits::new(64, value.into()));
            }
            Op::InternetClear(id) => *self.checksums.sum(*id) = 0,
            Op::InternetAdd(id) => self.add(*id, context, false),
            Op::InternetSubtract(id) => self.add(*id, context, true),
            Op::InternetGet(id) => {
                let sum = !*self.checksums.sum(*id);
                give(context, &Bits::new(16, sum.into()));
            }
            Op::InternetState(id) => {
                let sum = *self.checksums.sum(*id);
                give(context, &Bits::new(16, sum.into()));
            }
            Op::InternetSetState(id) => *self.checksums.sum(*id) = context.number(0) as u16,
            Op::Count(id) => self.service.count(*id, context.number(0)),
            Op::DirectCount(id) => self.service.count(*id, context.entry.into()),
            Op::Meter(id) => self.meter(*id, context.number(0), 1, context),
            Op::DirectMeter(id) => self.meter(*id, context.entry.into(), 0, context),
            Op::RegisterRead(id) => {
                // Beyond the end results stay zero.
                let cell = self.service.register_read(*id, context.number(0)).unwrap_or_default();
                for (slot, value) in context.results.iter_mut().zip(&cell) {
                    *slot = value.zero_extend(slot.width());
                }
            }
            Op::RegisterWrite(id) => self.service.register_write(*id, context.number(0), context.args.get(1)),
            Op::Random { min, max } => {
                if let Some(number) = self.service.random(min, max) {
                    give(context, &number);
                }
            }
            Op::Digest { name, fields } => {
                let digest = Digest {
                    name: name.clone(),
                    fields: digest_fields(fields, context.args.first()),
                    valid: digest_headers(context.args.first()),
                    time_ns: self.service.now_ns,
                };
                self.service.state.digests.push(digest);
            }
            Op::Flags {
                set,
                clear,
                recirculates,
            } => {
                let holds = flags(context, set, clear, *recirculates);
                give(context, &Bits::bool(holds));
            }
            Op::Assert(what) => {
                if context.number(0) == 0 {
                    self.service.log(format!("{what} failed"), context.loc);
                    return CallEffect::Abort;
                }
            }
            Op::Registered(call) => return call.perform(context),
        }
        CallEffect::Continue
    }

    /// A call of a packet in a pipeline: there is no frame, only what the pipeline handed over.
    pub(crate) fn operate(&mut self, op: &Op, loc: Loc, call: FusedArguments<'_>) -> bool {
        let mut packet = PacketState::default();
        let effect = call.with(loc, &mut packet, |context| self.perform(op, context));
        effect == CallEffect::Continue
    }

    fn hash(&self, algorithm: Algorithm, context: &CallContext<'_>, argument: usize) -> u64 {
        let scalars = || context.args.get(argument).into_iter().flat_map(ArgValue::scalars);
        let bits: u32 = scalars().map(|s| s.width() % 8).sum();
        // psa_switch fills up to whole bytes in front.
        let mut buffer = BitBuffer::new();
        buffer.push(&Bits::zero((8 - bits % 8) % 8));
        scalars().for_each(|s| buffer.push(s));
        hash::compute(
            algorithm,
            buffer.as_bytes(),
            self.service.state.custom_crcs.in_effect(None),
        )
    }

    /// `base + H % max`, where a `max` of 0 counts as 1.
    fn hash_range(&self, algorithm: Algorithm, context: &mut CallContext<'_>) {
        let hash = self.hash(algorithm, context, 1) % context.number(2).max(1);
        let width = context.results.first().map_or(0, Bits::width);
        if let Some(base) = context.scalar(0) {
            let value = base
                .zero_extend(width)
                .add(&Bits::new(64, hash.into()).zero_extend(width));
            give(context, &value);
        }
    }

    /// Adds the words of the first argument to a one's complement sum, or takes them away.
    fn add(&mut self, id: ExternId, context: &CallContext<'_>, subtract: bool) {
        let data = hash_input(context.args.first(), None);
        let sum = self.checksums.sum(id);
        *sum = hash::ones_sum(*sum, &data, subtract);
    }

    /// Runs a meter; argument `before` is the colour that an earlier one gave, if it is there.
    /// Beyond the meter's end nothing vouches for the packet: it is red.
    fn meter(&mut self, id: ExternId, index: u64, before: usize, context: &mut CallContext<'_>) {
        let colors = &self.arch.colors;
        let before = match context.scalar(before) {
            Some(value) => colors.color(value.to_u64_saturating()),
            None => Color::Green,
        };
        let color = self.service.meter(id, index, before).unwrap_or(Color::Red);
        give(context, &Bits::new(32, colors.value(color).into()));
    }
}

/// The first scalar of the result, modulo its width.
fn give(context: &mut CallContext<'_>, value: &Bits) {
    if let Some(result) = context.results.first_mut() {
        *result = value.zero_extend(result.width());
    }
}

fn flags(context: &CallContext<'_>, set: &[usize], clear: &[usize], recirculates: Option<usize>) -> bool {
    let scalars = |index: usize| context.args.get(index).map_or(Vec::new(), all_scalars);
    let metadata = scalars(0);
    let is_set = |index: &usize| metadata.get(*index).is_some_and(|v| !v.is_zero());
    let is_recirculated = || match recirculates {
        Some(index) => scalars(1).get(index).is_some_and(is_recirculation),
        None => true,
    };
    set.iter().all(is_set) && !clear.iter().any(is_set) && is_recirculated()
}

/// Whether a port is that of recirculation, as many bits as it has.
pub(crate) fn is_recirculation(port: &Bits) -> bool {
    *port == Bits::new(port.width(), PORT_RECIRCULATE.into())
}
