//! Emits extern calls: inline where the kind of the call allows, otherwise through the host.

use super::{Form, SegmentBuilder, env, flags};
use crate::runtime::RuntimeFunction;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use std::sync::Arc;
use weir_ir::pipeline::{CallKind, FlatCells, MAGNITUDES};
use weir_ir::{ArgumentValue, Call, InLeaf, Operand, ValueSetId, VarId};

impl SegmentBuilder<'_, '_> {
    /// Emits the call with this number.
    pub(super) fn call(&mut self, call: &Call, index: usize, kind: &CallKind) {
        match kind {
            CallKind::Nothing => {}
            CallKind::InternetChecksum => self.checksum_call(call, index, true),
            CallKind::InternetSum => self.checksum_call(call, index, false),
            CallKind::Count(counter) => {
                let Some(operand) = call.input(0) else { return };
                match self.sites.tally_of_call[index] {
                    Some(tally) => self.tally_call(tally, operand),
                    None => {
                        let at = self.word(operand, 0);
                        let (counter, slot) = (self.imm(*counter as u64), self.slot());
                        self.call_runtime(RuntimeFunction::Count, &[counter, at, slot]);
                    }
                }
            }
            &CallKind::Hash {
                result,
                data,
                algorithm,
                base,
                max,
            } => {
                let hash = self.hash(call.inputs(data), algorithm);
                let value = self.scale_hash(hash, base, max);
                let width = self.cx.analysis.vars[result.index()].width;
                let value = self.mask(value, width);
                self.set(result, value);
            }
            CallKind::ByMagnitude(values) => {
                let (Some(number), Some(&result)) = (call.input(0), call.results.first()) else {
                    return;
                };
                let number = self.word(number, 0);
                let value = self.by_magnitude(number, values);
                let width = self.cx.analysis.vars[result.index()].width;
                let value = self.mask(value, width);
                self.set(result, value);
            }
            &CallKind::ReadCell {
                array,
                flat: Some(flat),
                ..
            } => {
                let (Some(at), Some(&result)) = (call.input(0), call.results.first()) else {
                    return;
                };
                let (address, offset) = self.flat_cell(array, flat, at, 0);
                let value = self.load(types::I64, address, offset);
                let value = self.xor_base(value, flat.base);
                let width = self.cx.analysis.vars[result.index()].width;
                let value = self.mask(value, width);
                self.set(result, value);
            }
            &CallKind::WriteCell {
                array,
                flat: Some(flat),
                ..
            } => {
                let (Some(at), Some(value)) = (call.input(0), call.input(1)) else {
                    return;
                };
                let value = self.word(value, 0);
                let value = self.xor_base(value, flat.base);
                let (address, offset) = self.flat_cell(array, flat, at, 1);
                self.store(value, address, offset);
            }
            &CallKind::ReadCell { array, scalar, .. } => {
                let Some(at) = call.input(0) else { return };
                let (which, at) = (self.cell(array, scalar), self.word(at, 0));
                let value = self.call_for_value(RuntimeFunction::ReadCell, &[which, at]);
                if let Some(&result) = call.results.first() {
                    // The host may return more bits than a cell has.
                    let width = self.cx.analysis.vars[result.index()].width;
                    let value = self.mask(value, width);
                    self.set(result, value);
                }
            }
            &CallKind::WriteCell { array, scalar, .. } => {
                let (Some(at), Some(value)) = (call.input(0), call.input(1)) else {
                    return;
                };
                let (which, at, value) = (self.cell(array, scalar), self.word(at, 0), self.word(value, 0));
                self.call_runtime(RuntimeFunction::WriteCell, &[which, at, value]);
            }
            CallKind::Host { writes, abort, .. } => self.host_call(call, index, writes, *abort),
            CallKind::Extern { abort, .. } | CallKind::ExternFinish { abort } => {
                self.host_call(call, index, &[], Some(*abort));
            }
            CallKind::ExternBegin => self.host_call(call, index, &[], None),
        }
    }

    /// The address and offset of a scalar of a cell. An index beyond the end selects the spare cell
    /// with number `spare` after the last, so that reads and writes there have no effect.
    fn flat_cell(&mut self, array: usize, flat: FlatCells, index: &Operand, spare: u64) -> (Value, i32) {
        let arrays = &self.sites.arrays;
        let number = arrays.iter().position(|known| known.array == array).unwrap_or(0);
        let fixed = flags().with_readonly().with_can_move();
        let arrays = self.b.ins().load(types::I64, fixed, self.env, env::CELLS);
        let known = (number * size_of::<[usize; 2]>()) as i32;
        let cells = self.b.ins().load(types::I64, fixed, arrays, known);
        let at = self.word(index, 0);
        let at = if !flat.grows && self.upper_bound(at) < flat.cells {
            at
        } else {
            let last = match flat.grows {
                true => self.b.ins().load(types::I64, fixed, arrays, known + 8),
                false => self.imm(flat.cells),
            };
            let behind = self.add_imm(last, spare);
            let is_beyond = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, at, last);
            self.b.ins().select(is_beyond, behind, at)
        };
        let bytes = u64::from(flat.stride) * 8;
        let at = if bytes.is_power_of_two() {
            self.shl_imm(at, bytes.trailing_zeros().into())
        } else {
            let bytes = self.imm(bytes);
            self.b.ins().imul(at, bytes)
        };
        (self.b.ins().iadd(cells, at), (flat.offset * 8) as i32)
    }

    /// The value of a function that is tabulated by magnitude. The table belongs to the pipeline,
    /// and lives as long as its code.
    fn by_magnitude(&mut self, number: Value, values: &Arc<[u64; MAGNITUDES]>) -> Value {
        let zeros = self.b.ins().clz(number);
        // The shift distance is taken modulo 64; zero stays zero.
        let high = self.b.ins().ishl(number, zeros);
        let high = self.shr_imm(high, 60);
        let behind = self.mask(high, 3);
        let bits = self.imm(64);
        let position = self.b.ins().isub(bits, zeros);
        let first = self.shl_imm(position, 3);
        let at = self.b.ins().bor(first, behind);
        let at = self.shl_imm(at, 3);
        let values = self.imm(values.as_ptr().expose_provenance() as u64);
        let place = self.b.ins().iadd(values, at);
        self.b.ins().load(types::I64, flags().with_readonly(), place, 0)
    }

    /// Converts between a cell's value and its word in memory: words are stored XORed with the
    /// initial value, so that fresh memory is all 0.
    fn xor_base(&mut self, word: Value, base: u64) -> Value {
        if base == 0 {
            return word;
        }
        let base = self.imm(base);
        self.b.ins().bxor(word, base)
    }

    /// An array and a scalar of its cells, as the runtime functions take them.
    fn cell(&mut self, array: usize, scalar: u32) -> Value {
        self.imm((array as u64) << 16 | u64::from(scalar))
    }

    /// The host's hash of scalars, which are packed in the argument area.
    fn hash(&mut self, leaves: &[InLeaf], algorithm: u32) -> Value {
        let operands: Vec<Operand> = leaves
            .iter()
            .filter_map(|leaf| match leaf {
                InLeaf::Value(o) => Some(o.clone()),
                InLeaf::Header(_) => None,
            })
            .collect();
        let bits: u32 = operands.iter().map(|o| self.width(o)).sum();
        self.sites.reserve_arguments(bits.div_ceil(64) as usize);
        let area = self.arguments();
        if !bits.is_multiple_of(8) {
            let zero = self.imm(0);
            let last = self.b.ins().ireduce(types::I8, zero);
            self.store(last, area, (bits / 8) as i32);
        }
        let mut at = 0;
        for operand in &operands {
            let width = self.width(operand);
            for i in (0..width.div_ceil(64)).rev() {
                let part = (width - 64 * i).min(64);
                let word = self.word(operand, i as usize);
                self.store_bits(area, at, part, word);
                at += part;
            }
        }
        let (algorithm, bytes) = (self.imm(algorithm.into()), self.imm(bits.div_ceil(8).into()));
        self.call_for_value(RuntimeFunction::Hash, &[algorithm, bytes])
    }

    /// `base + value % max`
    fn scale_hash(&mut self, value: Value, base: u64, max: u64) -> Value {
        let rest = if max.is_power_of_two() {
            self.mask(value, max.trailing_zeros())
        } else {
            let max = self.imm(max);
            self.b.ins().urem(value, max)
        };
        self.add_imm(rest, base)
    }

    /// Tallies the packet. The host counts the whole vector at its end.
    fn tally_call(&mut self, number: usize, at: &Operand) {
        let tally = self.sites.tallies[number];
        let column = self.set_tally_bit(number);
        if tally.index.is_none() {
            let index = self.word(at, 0);
            self.store(index, column, (tally.row * 8) as i32);
        }
    }

    /// Sets the packet's bit in a mask of the tally area. Returns the address of its column in the
    /// rows.
    pub(super) fn set_tally_bit(&mut self, mask: usize) -> Value {
        let bit = self.bit();
        let mask = (mask * 8) as i32;
        match self.form {
            // There the bits of eight packets are set at once.
            Form::Packet { tally_column, tallies } => {
                self.store(bit, tallies, mask);
                tally_column
            }
            Form::Loop { .. } => {
                let tallies = self.b.ins().load(types::I64, flags(), self.env, env::TALLY_AREA);
                let old = self.load(types::I64, tallies, mask);
                let new = self.b.ins().bor(old, bit);
                self.store(new, tallies, mask);
                let slot = self.slot();
                let slot = self.shl_imm(slot, 3);
                self.b.ins().iadd(tallies, slot)
            }
        }
    }

    /// Inline if the length of the data is known, otherwise by the host.
    fn checksum_call(&mut self, call: &Call, index: usize, is_checksum: bool) {
        if !self.cx.analysis.is_summed_inline(&self.state, call) {
            self.host_call(call, index, &[], None);
        } else {
            self.internet_checksum(call, is_checksum);
        }
    }

    /// Writes the words of an operand to the argument area; returns how many.
    fn put_argument(&mut self, area: Value, at: usize, operand: &Operand) -> usize {
        let words = match operand {
            Operand::Var(v) if !self.cx.analysis.vars[v.index()].is_narrow() => {
                self.cx.analysis.vars[v.index()].home_words()
            }
            other => self.width(other).div_ceil(64).max(1) as usize,
        };
        for i in 0..words {
            let word = self.word(operand, i);
            self.store(word, area, ((at + i) * 8) as i32);
        }
        words
    }

    fn take_output(&mut self, area: Value, at: usize, var: VarId) -> usize {
        let info = self.cx.analysis.vars[var.index()];
        if info.is_narrow() {
            let value = self.load(types::I64, area, (at * 8) as i32);
            self.set(var, value);
            return 1;
        }
        for i in 0..info.home_words() {
            let word = self.load(types::I64, area, ((at + i) * 8) as i32);
            if let Some(home) = self.cx.layout.rows[var.index()] {
                self.store_row(home + i, word);
            }
        }
        info.home_words()
    }

    /// A call that the host serves. The argument area holds, in this order: the cursor; the handle
    /// of the entry; the scalars of the arguments (a header's validity before its fields); the
    /// results; the call's further reads; its further writes.
    fn host_call(&mut self, call: &Call, index: usize, writes: &[VarId], abort: Option<u32>) {
        let cx = self.cx;
        let (function, reads) = match &cx.analysis.pipeline.calls[index] {
            CallKind::Host { reads, .. } => (RuntimeFunction::Call, reads.as_slice()),
            CallKind::Extern { .. } => (RuntimeFunction::CallExtern, &[][..]),
            CallKind::ExternBegin => (RuntimeFunction::BeginExtern, &[][..]),
            CallKind::ExternFinish { .. } => (RuntimeFunction::FinishExtern, &[][..]),
            _ => (RuntimeFunction::Call, &[][..]),
        };
        let area = self.arguments();
        let cursor = match self.state.cursor {
            Some(bit) => self.imm(bit.into()),
            None => self.get(cx.analysis.cursor),
        };
        self.store(cursor, area, 0);
        let entry = match call.entry {
            Some(v) => self.get(v),
            None => self.imm(0),
        };
        self.store(entry, area, 8);
        let mut at = 2;
        let mut back = Vec::new();
        for argument in &call.arguments {
            match &argument.value {
                ArgumentValue::In(leaves) => {
                    for leaf in leaves {
                        match leaf {
                            InLeaf::Value(o) => at += self.put_argument(area, at, o),
                            InLeaf::Header(h) => {
                                let header = &cx.analysis.program().headers[*h];
                                at += self.put_argument(area, at, &Operand::Var(header.valid));
                                for &f in &header.fields {
                                    at += self.put_argument(area, at, &Operand::Var(f));
                                }
                            }
                        }
                    }
                }
                ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) => {
                    for &v in vars {
                        back.push((at, v));
                        at += self.put_argument(area, at, &Operand::Var(v));
                    }
                }
                ArgumentValue::String(_) | ArgumentValue::Extern(_) | ArgumentValue::Packet => {}
            }
        }
        for &v in &call.results {
            back.push((at, v));
            let info = cx.analysis.vars[v.index()];
            at += if info.is_narrow() { 1 } else { info.home_words() };
        }
        for &v in reads {
            at += self.put_argument(area, at, &Operand::Var(v));
        }
        for &v in writes {
            back.push((at, v));
            at += self.put_argument(area, at, &Operand::Var(v));
        }
        self.sites.reserve_arguments(at);
        let (site, slot) = (self.imm(index as u64), self.slot());
        let stop = self.call_for_value(function, &[site, slot]);
        if let Some(exit) = abort {
            let (out, on) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(stop, out, &[], on, &[]);
            self.enter_sealed(out);
            self.suspend_at(cx.layout.exit_points[exit as usize]);
            self.enter_sealed(on);
        }
        for (at, var) in back {
            self.take_output(area, at, var);
        }
    }

    /// Whether keys are a member of a value set.
    pub(super) fn value_set(&mut self, set: ValueSetId, keys: &[Operand]) -> Value {
        if let ([key], Some(first)) = (keys, self.sites.members.first_word(set)) {
            // The set has a bit per value.
            let key = self.value(key);
            let members = self.b.ins().load(types::I64, flags(), self.env, env::MEMBERS);
            let word = self.shr_imm(key, 6);
            let offset = self.shl_imm(word, 3);
            let address = self.b.ins().iadd(members, offset);
            let word = self.b.ins().load(types::I64, flags(), address, (first * 8) as i32);
            // The shift distance is taken modulo 64.
            let shifted = self.b.ins().ushr(word, key);
            return self.mask(shifted, 1);
        }
        let area = self.arguments();
        let mut at = 0;
        for key in keys {
            at += self.put_argument(area, at, key);
        }
        self.sites.reserve_arguments(at);
        let set = self.imm(set.index() as u64);
        self.call_for_value(RuntimeFunction::ValueSet, &[set, area])
    }
}
