//! The [`Runtime`] of TNA's programmable blocks: it serves their lookups and extern calls.

use super::driver::Tna;
use super::externs::ExternOp;
use super::fields::{Direction, Gress};
use super::registers::cell_index;
use crate::fused::FusedArguments;
use crate::hash;
use crate::meter::Color;
use crate::service::{Service, all_scalars, digest_fields, digest_headers, hash_input, slot};
use crate::state::{Digest, State};
use weir_interp::{
    ArgValue, BitBuffer, CallContext, CallEffect, LookupDetail, LookupOutcome, PacketState, Runtime, read_bits,
};
use weir_ir::{ArgumentValue, Bits, ExternId, Loc, TableId, ValueSetId, VarId};

/// The requests of a deparser.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    /// A mirrored copy: the session, and the header to prepend.
    pub mirror: Option<(u32, Vec<u8>)>,
    /// The packet once more, with these bytes in front of it.
    pub resubmit: Option<Vec<u8>>,
    /// Packets of the generator, with these bytes.
    pub generate: Option<Vec<u8>>,
}

/// A deferred count of a packet that is yet to be sent: the counter or meter, its index, and bytes
/// that do not count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeferredCount {
    pub id: ExternId,
    pub index: u64,
    pub byte_adjustment: u64,
    /// Of a meter: its result, and the bytes that it has taken.
    pub metered: Option<(Color, u64)>,
}

impl DeferredCount {
    /// Counts the packet, of which `sent` bytes are sent.
    pub(super) fn count(self, state: &mut State, sent: u64) {
        let bytes = adjusted(sent + state.frame_check(), self.byte_adjustment);
        match self.metered {
            Some((color, taken)) => state.correct_meter(self.id, self.index, color, taken, bytes),
            None => state.count(self.id, self.index, bytes),
        }
    }
}

/// A residual checksum that the parser has deposited: the sum so far, the bit from which extracted
/// headers are subtracted, and the variables that receive the result.
#[derive(Debug, Clone)]
struct Deposit {
    sum: u16,
    from: usize,
    to: Vec<VarId>,
}

/// A number on the stack of a parser's counter.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    value: i8,
    /// It changes by what the last one changes by.
    follows: bool,
}

/// Serves one packet in one programmable block.
pub(crate) struct TnaRuntime<'a> {
    pub arch: &'a Tna,
    /// The gress of the programmable block.
    pub gress: &'a Gress,
    /// The state; its bytes are those of the packet without the headers in front of it.
    pub service: Service<'a>,
    pub requests: Requests,
    pub deferred: Vec<DeferredCount>,
    /// Cells that register actions run on now, the innermost last.
    pub indices: Vec<u64>,
    sums: Vec<(ExternId, u16)>,
    counters: Vec<(ExternId, Vec<Counted>)>,
    deposits: Vec<Deposit>,
}

impl<'a> TnaRuntime<'a> {
    pub(crate) fn new(arch: &'a Tna, gress: &'a Gress, service: Service<'a>) -> Self {
        TnaRuntime {
            arch,
            gress,
            service,
            requests: Requests::default(),
            deferred: Vec::new(),
            indices: Vec::new(),
            sums: Vec::new(),
            counters: Vec::new(),
            deposits: Vec::new(),
        }
    }

    /// Says what residual checksums are, when the parser is done.
    pub(crate) fn settle(&mut self, packet: &mut PacketState) {
        for deposit in std::mem::take(&mut self.deposits) {
            let extracted = packet
                .bytes
                .get(deposit.from / 8..packet.cursor / 8)
                .unwrap_or_default();
            let sum = hash::ones_sum(deposit.sum, extracted, true);
            for var in deposit.to {
                packet.frame.set_u64(var, sum.into());
            }
        }
    }
}

impl Runtime for TnaRuntime<'_> {
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
        let arch = self.arch;
        match arch.op(context.site) {
            Some(op) => self.perform(op, &mut context),
            None => CallEffect::Continue,
        }
    }
}

impl TnaRuntime<'_> {
    pub(super) fn perform(&mut self, op: &ExternOp, context: &mut CallContext<'_>) -> CallEffect {
        match op {
            ExternOp::Register(call) => return self.register(call, context),
            ExternOp::Registered(call) => return call.perform(context),
            ExternOp::Read { id, index_source } => self.read(*id, cell_index(*index_source, context), context),
            ExternOp::Write {
                id,
                index_source,
                value,
            } => {
                let index = cell_index(*index_source, context);
                self.service.register_write(*id, index, context.args.get(*value));
            }
            ExternOp::Clear(id) => self.fill(*id, context),
            ExternOp::Predicate(comparisons) => predicate(comparisons, context),
            ExternOp::Address => {
                let index = self.indices.last().copied().unwrap_or(0);
                give(context, &Bits::new(64, index.into()));
            }
            ExternOp::PartsExtremum(extremum) => self.extremum(*extremum, context),
            ExternOp::Math(unit) => {
                let value = context.scalar(0).map(|x| unit.execute(x));
                give_some(context, value);
            }
            ExternOp::Count { .. } | ExternOp::Meter { .. } | ExternOp::Lpf { .. } | ExternOp::Wred { .. } => {
                self.measure(op, context);
            }
            ExternOp::ChecksumAdd(_)
            | ExternOp::ChecksumSubtract(_)
            | ExternOp::ChecksumVerify(_)
            | ExternOp::ChecksumGet(_)
            | ExternOp::ChecksumDeposit(_)
            | ExternOp::ChecksumUpdate { .. } => self.checksum(op, context),
            ExternOp::CounterSet(..)
            | ExternOp::CounterPop(_)
            | ExternOp::CounterIsZero(_)
            | ExternOp::CounterIsNegative(_)
            | ExternOp::CounterAdd(..)
            | ExternOp::Priority => self.parser_counter(op, context),
            ExternOp::Mirror { .. } | ExternOp::Resubmit { .. } | ExternOp::Digest { .. } | ExternOp::Generate => {
                self.emit(op, context)
            }
            ExternOp::Hash(_)
            | ExternOp::Random
            | ExternOp::PortMetadata
            | ExternOp::MinMax { .. }
            | ExternOp::FunnelShift
            | ExternOp::Invalidate
            | ExternOp::SizeOf { .. } => self.value(op, context),
        }
        CallEffect::Continue
    }

    /// A call of a packet in a pipeline: there is no frame, only what the pipeline handed over.
    pub(super) fn operate(&mut self, op: &ExternOp, loc: Loc, call: FusedArguments<'_>) -> bool {
        let mut packet = PacketState::default();
        let effect = call.with(loc, &mut packet, |context| self.perform(op, context));
        effect == CallEffect::Continue
    }

    /// Performs pure functions of their arguments, and the like.
    fn value(&mut self, op: &ExternOp, context: &mut CallContext<'_>) {
        let width = context.results.first().map_or(0, Bits::width);
        match op {
            ExternOp::Hash(hashing) => {
                let scalars: Vec<Bits> = context
                    .args
                    .first()
                    .map_or(Vec::new(), |a| a.scalars().cloned().collect());
                give(context, &hashing.compute(scalars.iter(), width));
            }
            ExternOp::Random => {
                let number = self.service.random(&Bits::zero(width), &Bits::ones(width));
                give_some(context, number);
            }
            ExternOp::PortMetadata => self.port_metadata(context),
            ExternOp::MinMax { signed, is_min } => {
                let (Some(a), Some(b)) = (context.scalar(0).cloned(), context.scalar(1).cloned()) else {
                    return;
                };
                let order = if *signed { a.cmp_signed(&b) } else { a.cmp_unsigned(&b) };
                give(context, if order.is_lt() == *is_min { &a } else { &b });
            }
            ExternOp::FunnelShift => {
                let (Some(high), Some(low)) = (context.scalar(1).cloned(), context.scalar(2).cloned()) else {
                    return;
                };
                let shifted = high.concat(&low).shr(context.number(3));
                context.set(0, &shifted);
            }
            ExternOp::Invalidate => self.invalidate(context),
            ExternOp::SizeOf { bytes } => {
                let scalars = context.args.first().map_or(Vec::new(), all_scalars);
                let bits: u32 = scalars.iter().map(Bits::width).sum();
                let size = if *bytes { bits.div_ceil(8) } else { bits };
                give(context, &Bits::new(32, size.into()));
            }
            _ => {}
        }
    }

    /// A field of the traffic manager or the deparser becomes unset; others become zero.
    fn invalidate(&self, context: &mut CallContext<'_>) {
        let Some(ArgumentValue::InOut(vars)) = context.call.arguments.first().map(|a| &a.value) else {
            return;
        };
        let unset = |var: &VarId| {
            let known = self.gress.unset_values.iter().find(|(v, _)| v == var);
            known.map_or(0, |(_, value)| *value)
        };
        if let Some(ArgValue::Out(values)) = context.args.first_mut() {
            for (slot, var) in values.iter_mut().zip(vars) {
                *slot = Bits::new(slot.width(), unset(var).into());
            }
        }
    }

    /// Reads the port's metadata and moves the cursor past it, whatever the type is.
    fn port_metadata(&self, context: &mut CallContext<'_>) {
        let packet = &mut *context.packet;
        let mut bit_offset = packet.cursor;
        for slot in context.results.iter_mut() {
            if let Some(value) = read_bits(&packet.bytes, bit_offset, slot.width()) {
                *slot = value;
            }
            bit_offset += slot.width() as usize;
        }
        let end = packet.cursor + self.arch.chip().port_metadata * 8;
        packet.cursor = end.min(packet.bytes.len() * 8);
    }

    /// Counters, meters and filters.
    fn measure(&mut self, op: &ExternOp, context: &mut CallContext<'_>) {
        match op {
            ExternOp::Count {
                id,
                index_source,
                byte_adjustment,
                uses_sent_length,
            } => {
                let (index, byte_adjustment) = (
                    cell_index(*index_source, context),
                    byte_adjustment.map_or(0, |a| context.number(a)),
                );
                if *uses_sent_length && self.gress.direction == Direction::Egress {
                    let metered = None;
                    self.deferred.push(DeferredCount {
                        id: *id,
                        index,
                        byte_adjustment,
                        metered,
                    });
                } else {
                    self.without(byte_adjustment, |service| service.count(*id, index));
                }
            }
            ExternOp::Meter {
                id,
                index_source,
                color,
                byte_adjustment,
                results,
                uses_sent_length,
            } => {
                let (index, byte_adjustment) = (
                    cell_index(*index_source, context),
                    byte_adjustment.map_or(0, |a| context.number(a)),
                );
                let before = match color.map_or(0, |a| context.number(a)) {
                    0 => Color::Green,
                    1 => Color::Yellow,
                    _ => Color::Red,
                };
                // Beyond the meter's end nothing vouches for the packet.
                let taken = adjusted(self.service.bytes, byte_adjustment);
                let color = self.without(byte_adjustment, |service| service.meter(*id, index, before));
                if let (true, Direction::Egress, Some(color)) = (*uses_sent_length, self.gress.direction, color) {
                    self.deferred.push(DeferredCount {
                        id: *id,
                        index,
                        byte_adjustment,
                        metered: Some((color, taken)),
                    });
                }
                let [green, yellow, red] = *results;
                let result = match color.unwrap_or(Color::Red) {
                    Color::Green => green,
                    Color::Yellow => yellow,
                    Color::Red => red,
                };
                give(context, &Bits::new(8, result.into()));
            }
            ExternOp::Lpf { id, index_source } => {
                let (index, sample) = (cell_index(*index_source, context), context.number(0));
                let value = self.service.smooth(*id, index, sample).unwrap_or(0);
                give_saturated(context, value);
            }
            ExternOp::Wred {
                id,
                index_source,
                drop,
                pass,
            } => {
                let (index, value) = (cell_index(*index_source, context), context.number(0));
                let drops = self.service.drops_early(*id, index, value);
                give(context, &Bits::new(8, if drops { *drop } else { *pass }.into()));
            }
            _ => {}
        }
    }

    /// Performs an operation that excludes a number of the packet's bytes. The number has 32 bits
    /// and may be negative.
    fn without<R>(&mut self, byte_adjustment: u64, action: impl FnOnce(&mut Service<'_>) -> R) -> R {
        let all = self.service.bytes;
        self.service.bytes = adjusted(all, byte_adjustment);
        let result = action(&mut self.service);
        self.service.bytes = all;
        result
    }

    fn checksum(&mut self, op: &ExternOp, context: &mut CallContext<'_>) {
        let data = hash_input(context.args.first(), None);
        match op {
            ExternOp::ChecksumAdd(id) => self.add(*id, &data, false),
            ExternOp::ChecksumSubtract(id) => self.add(*id, &data, true),
            ExternOp::ChecksumVerify(id) => {
                let sum = *slot(&mut self.sums, *id);
                give(context, &Bits::bool(sum != 0xffff));
            }
            ExternOp::ChecksumGet(id) => {
                let sum = *slot(&mut self.sums, *id);
                give(context, &Bits::new(16, sum.into()));
            }
            ExternOp::ChecksumDeposit(id) => {
                let sum = *slot(&mut self.sums, *id);
                let to = context.call.outputs(0).to_vec();
                context.set(0, &Bits::new(16, sum.into()));
                self.deposits.push(Deposit {
                    sum,
                    from: context.packet.cursor,
                    to,
                });
            }
            ExternOp::ChecksumUpdate { zeros_as_ones } => {
                let checksum = !hash::ones_sum(0, &data, false);
                let as_ones = zeros_as_ones.is_some_and(|a| context.number(a) != 0);
                let checksum = if as_ones && checksum == 0 { 0xffff } else { checksum };
                give(context, &Bits::new(16, checksum.into()));
            }
            _ => {}
        }
    }

    fn add(&mut self, id: ExternId, data: &[u8], subtract: bool) {
        let sum = slot(&mut self.sums, id);
        *sum = hash::ones_sum(*sum, data, subtract);
    }

    /// A stack of numbers of eight bits, of which all but `push` and `pop` see the last.
    fn parser_counter(&mut self, op: &ExternOp, context: &mut CallContext<'_>) {
        let number = |context: &CallContext<'_>, argument: usize| context.number(argument) as u8;
        match op {
            ExternOp::CounterSet(id, push) => {
                let value = match context.call.arguments.len() {
                    5.. => {
                        let [max, rotate, mask, add] = [1, 2, 3, 4].map(|argument| number(context, argument));
                        let kept = u16::MAX
                            .checked_shr(15u32.saturating_sub(mask.into()))
                            .unwrap_or(u16::MAX);
                        let turned = number(context, 0).min(max).rotate_right(u32::from(rotate) % 8);
                        (turned & kept as u8).wrapping_add(add)
                    }
                    _ => number(context, 0),
                } as i8;
                let follows =
                    push.is_some_and(|argument| argument.is_some_and(|argument| context.number(argument) != 0));
                let stack = slot(&mut self.counters, *id);
                if push.is_none() {
                    stack.pop();
                }
                stack.push(Counted { value, follows });
            }
            ExternOp::CounterPop(id) => {
                slot(&mut self.counters, *id).pop();
            }
            ExternOp::CounterIsZero(id) => {
                let value = self.counter(*id);
                give(context, &Bits::bool(value == 0));
            }
            ExternOp::CounterIsNegative(id) => {
                let value = self.counter(*id);
                give(context, &Bits::bool(value < 0));
            }
            ExternOp::CounterAdd(id, up) => {
                let by = number(context, 0) as i8;
                let stack = slot(&mut self.counters, *id);
                if stack.is_empty() {
                    stack.push(Counted::default());
                }
                let last = stack.len() - 1;
                for (position, counter) in stack.iter_mut().enumerate() {
                    if position == last || counter.follows {
                        counter.value = match up {
                            true => counter.value.wrapping_add(by),
                            false => counter.value.wrapping_sub(by),
                        };
                    }
                }
            }
            _ => {}
        }
    }

    fn counter(&mut self, id: ExternId) -> i8 {
        slot(&mut self.counters, id).last().map_or(0, |c| c.value)
    }

    /// Emits a deparser's mirror, digest or resubmission, if it was made for the packet's type.
    fn emit(&mut self, op: &ExternOp, context: &mut CallContext<'_>) {
        let frame = &context.packet.frame;
        let is_requested = |kind: Option<u64>, field: Option<VarId>| match (kind, field) {
            (Some(kind), Some(field)) => frame.get_u64(field) == kind,
            _ => true,
        };
        match op {
            ExternOp::Mirror { kind } if is_requested(*kind, self.gress.mirror_type) => {
                let session = context.number(0) as u32;
                self.requests.mirror = Some((session, header(context.args.get(1))));
            }
            ExternOp::Resubmit { kind } if is_requested(*kind, self.gress.resubmit_type) => {
                self.requests.resubmit = Some(header(context.args.first()));
            }
            ExternOp::Generate => self.requests.generate = Some(header(context.args.first())),
            ExternOp::Digest { name, fields, kind } if is_requested(*kind, self.gress.digest_type) => {
                let digest = Digest {
                    name: name.clone(),
                    fields: digest_fields(fields, context.args.first()),
                    valid: digest_headers(context.args.first()),
                    time_ns: self.service.now_ns,
                };
                self.service.state.digests.push(digest);
            }
            _ => {}
        }
    }
}

/// A packet's bytes without some, which may be a negative number of 32 bits.
pub(crate) fn adjusted(bytes: u64, byte_adjustment: u64) -> u64 {
    let byte_adjustment = i64::from(byte_adjustment as u32 as i32);
    bytes.saturating_add_signed(-byte_adjustment)
}

/// The bytes of a header or struct that is emitted with a copy; fields of headers that are not
/// valid count as well.
fn header(argument: Option<&ArgValue>) -> Vec<u8> {
    let mut buffer = BitBuffer::new();
    argument
        .map_or(Vec::new(), all_scalars)
        .iter()
        .for_each(|s| buffer.push(s));
    buffer.into_bytes()
}

/// The bit of the result that the comparisons name.
fn predicate(comparisons: &[Option<usize>; 4], context: &mut CallContext<'_>) {
    let holds = |argument: &Option<usize>| argument.is_some_and(|argument| context.number(argument) != 0);
    let bits = comparisons.iter().enumerate().filter(|(_, argument)| holds(argument));
    let number: u32 = bits.map(|(bit, _)| 1 << bit).sum();
    give(context, &Bits::new(16, 1 << number));
}

/// The first scalar of the result, modulo its width.
pub(super) fn give(context: &mut CallContext<'_>, value: &Bits) {
    if let Some(result) = context.results.first_mut() {
        *result = value.zero_extend(result.width());
    }
}

fn give_some(context: &mut CallContext<'_>, value: Option<Bits>) {
    if let Some(value) = value {
        give(context, &value);
    }
}

/// The same; what does not fit is all ones.
fn give_saturated(context: &mut CallContext<'_>, value: u64) {
    if let Some(result) = context.results.first_mut() {
        let ones = Bits::ones(result.width());
        let most = ones.to_u64_saturating();
        *result = if value > most {
            ones
        } else {
            Bits::new(result.width(), value.into())
        };
    }
}
