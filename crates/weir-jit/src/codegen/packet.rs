//! Emits the parser's and the deparser's accesses to the packet: extract, lookahead, advance, emit.
//!
//! The deparser either overwrites changed fields in place or rebuilds headers in the scratch area
//! ([`Deparse`]).

use super::SegmentBuilder;
use crate::analysis::{Deparse, HeaderOffset, field_offsets};
use crate::layout::{ROW_EMITTED, ROW_LENGTH, ROW_PACKET, ROW_SCRATCH};
use crate::runtime::RuntimeFunction;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use weir_ir::passes::VarSet;
use weir_ir::{HeaderId, Operand, Type, VarId};

impl SegmentBuilder<'_, '_> {
    /// The parser's position in bits.
    fn cursor(&mut self) -> Value {
        match self.state.cursor {
            Some(bit) => self.imm(bit.into()),
            None => self.get(self.cx.analysis.cursor),
        }
    }

    fn error_code(&mut self, name: &str, standard: u32) -> Value {
        let code = self.cx.analysis.program().error_code(name).unwrap_or(standard);
        self.imm(code.into())
    }

    /// Fails with this error if the condition holds.
    fn fail_if(&mut self, condition: Value, name: &str, standard: u32) {
        let (bad, good) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(condition, bad, &[], good, &[]);
        self.enter_sealed(bad);
        let code = self.error_code(name, standard);
        self.fail(code);
        self.enter_sealed(good);
    }

    /// Fails if the packet has fewer than `bits` bits after the cursor.
    fn require_bits(&mut self, bits: Value) {
        let length = self.load_row(ROW_LENGTH);
        let available = self.shl_imm(length, 3);
        let cursor = self.cursor();
        let end = self.b.ins().iadd(cursor, bits);
        let short = self.b.ins().icmp(IntCC::UnsignedGreaterThan, end, available);
        self.fail_if(short, "PacketTooShort", 1);
    }

    fn require_constant_bits(&mut self, bits: u32) {
        if bits == 0 {
            return;
        }
        if let Some(cursor) = self.state.cursor {
            // Lengths are whole bytes.
            let length = self.load_row(ROW_LENGTH);
            let least = self.imm(u64::from(cursor + bits).div_ceil(8));
            let short = self.b.ins().icmp(IntCC::UnsignedLessThan, length, least);
            self.fail_if(short, "PacketTooShort", 1);
        } else {
            let bits = self.imm(bits.into());
            self.require_bits(bits);
        }
    }

    /// The cursor's position: an address in the packet, and the bits after it.
    fn cursor_address(&mut self) -> (Value, u32) {
        let packet = self.packet();
        match self.state.cursor {
            Some(bit) => (packet, bit),
            None => {
                let cursor = self.cursor();
                let bytes = self.shr_imm(cursor, 3);
                (self.b.ins().iadd(packet, bytes), 0)
            }
        }
    }

    /// A header's position: an address in the packet, and the bits after it.
    pub(super) fn header_address(&mut self, header: HeaderId) -> (Value, u32) {
        let packet = self.packet();
        match self.cx.analysis.header_offsets[header.index()] {
            Some(HeaderOffset::Fixed(bit)) => (packet, bit),
            Some(HeaderOffset::Variable(v)) => {
                let at = self.get(v);
                let bytes = self.shr_imm(at, 3);
                (self.b.ins().iadd(packet, bytes), 0)
            }
            None => (packet, 0),
        }
    }

    fn move_cursor(&mut self, by: Value) {
        let cursor = self.cursor();
        let next = self.b.ins().iadd(cursor, by);
        self.set(self.cx.analysis.cursor, next);
    }

    pub(super) fn advance(&mut self, bits: &Operand) {
        let by = self.value(bits);
        match bits {
            // The position is never beyond the packet's end.
            Operand::Const(c) if c.is_zero() => return,
            Operand::Const(c) => self.require_constant_bits(c.to_u64_saturating().min(1 << 24) as u32),
            Operand::Var(_) => {
                self.require_bits(by);
                // Compiled code handles whole bytes only; other packets are restarted in the
                // interpreter.
                let seven = self.imm(7);
                let odd = self.b.ins().band(by, seven);
                let (out, on) = (self.b.create_block(), self.b.create_block());
                self.b.set_cold_block(out);
                self.b.ins().brif(odd, out, &[], on, &[]);
                self.enter_sealed(out);
                self.suspend_at(self.cx.layout.exit_points[self.cx.analysis.pipeline.punt_from_start as usize]);
                self.enter_sealed(on);
            }
        }
        self.move_cursor(by);
    }

    pub(super) fn lookahead(&mut self, dst: VarId, offset: u32) {
        let width = self.cx.analysis.vars[dst.index()].width;
        self.require_constant_bits(offset.saturating_add(width));
        let (address, bit) = self.cursor_address();
        self.read(dst, address, bit + offset);
    }

    /// Reads a variable's bits from memory.
    fn read(&mut self, var: VarId, address: Value, bit: u32) {
        let info = self.cx.analysis.vars[var.index()];
        if info.is_narrow() {
            let value = self.load_bits(address, bit, info.width);
            self.set(var, value);
            return;
        }
        let Some(home) = self.cx.layout.rows[var.index()] else {
            return;
        };
        let words = info.home_words();
        for i in 0..words {
            let below = 64 * i as u32;
            let width = (info.width - below).min(64);
            let value = self.load_bits(address, bit + info.width - below - width, width);
            self.store_row(home + i, value);
        }
    }

    pub(super) fn extract(&mut self, header: HeaderId, varbit: Option<&Operand>, live: &VarSet) {
        let cx = self.cx;
        let program = cx.analysis.program();
        let instance = &program.headers[header];
        let ty = &program.header_types[instance.ty];
        let fixed = ty.fixed_width();
        let varbit_bits = varbit.map(|o| self.value(o));
        match varbit_bits {
            None => self.require_constant_bits(fixed),
            Some(bits) => {
                let total = self.add_imm(bits, fixed.into());
                let seven = self.imm(7);
                let odd = self.b.ins().band(total, seven);
                self.fail_if(odd, "ParserInvalidArgument", 6);
                self.require_bits(total);
                let limit = ty.varbit_field().map_or(0, |i| ty.fields[i].ty.width());
                let limit = self.imm(limit.into());
                let long = self.b.ins().icmp(IntCC::UnsignedGreaterThan, bits, limit);
                self.fail_if(long, "HeaderTooShort", 4);
            }
        }
        if let Some(HeaderOffset::Variable(v)) = cx.analysis.header_offsets[header.index()] {
            let here = self.cursor();
            self.set(v, here);
        }
        let (address, bit) = self.cursor_address();
        // Only live fields are loaded from the packet.
        let may_move = self.may_move;
        for (i, (&field, offset)) in instance.fields.iter().zip(field_offsets(program, header)).enumerate() {
            if !live.contains(field) {
                continue;
            }
            if let Type::Bits(_) = ty.fields[i].ty {
                self.may_move = may_move && self.movable.variable(field);
                self.read(field, address, bit + offset);
            } else if let (Some(home), Some(bits)) = (cx.layout.rows[field.index()], varbit_bits) {
                let from = self.add_imm(address, u64::from((bit + offset) / 8));
                self.store_row(home, bits);
                self.store_row(home + 1, from);
            } else if let Some(home) = cx.layout.rows[field.index()] {
                let zero = self.imm(0);
                self.store_row(home, zero);
            }
        }
        if live.contains(instance.valid) {
            let one = self.imm(1);
            self.set(instance.valid, one);
        }
        let by = match varbit_bits {
            Some(bits) => self.add_imm(bits, fixed.into()),
            None => self.imm(fixed.into()),
        };
        self.move_cursor(by);
    }

    // ------------------------------------------------------------------------- memory

    /// `width` bits, at most 64, that begin `bit` bits after an address; most significant first.
    /// Reads up to 7 bytes beyond them.
    pub(super) fn load_bits(&mut self, address: Value, bit: u32, width: u32) -> Value {
        if width == 0 {
            return self.imm(0);
        }
        let (byte, lead) = ((bit / 8) as i32, bit % 8);
        let bytes = (lead + width).div_ceil(8);
        let size = bytes.next_power_of_two().min(8);
        let value = self.load_packet_swapped(size, address, byte);
        let size = size * 8;
        if bytes == 9 {
            // The lead of the first eight bytes is shifted out, and the ninth fills up.
            let rest = lead + width - 64;
            let last = self.load(types::I8, address, byte + 8);
            let last = self.b.ins().uextend(types::I64, last);
            let last = self.shr_imm(last, u64::from(8 - rest));
            let high = self.shl_imm(value, rest.into());
            let both = self.b.ins().bor(high, last);
            return self.mask(both, width);
        }
        let shifted = self.shr_imm(value, u64::from(size - lead - width));
        let field = self.mask(shifted, width);
        if self.may_move && address == self.packet() {
            self.origins.insert(field, (bit, width));
        }
        field
    }

    /// Whether the masked bits of a value equal those of a constant. If the value is from the
    /// packet, its bytes are compared in place, without a swap.
    pub(super) fn equal_in_packet(&mut self, value: Value, constant: u64, mask: u64) -> Option<Value> {
        let &(bit, width) = self.origins.get(&value).filter(|_| self.may_move)?;
        let (byte, lead) = ((bit / 8) as i32, bit % 8);
        let size = (lead + width).div_ceil(8).next_power_of_two();
        if size > 8 {
            return None;
        }
        // The value may have been zero-extended.
        let ones = u64::MAX >> (64 - width);
        if constant & mask & !ones != 0 {
            return Some(self.imm(0));
        }
        let mask = mask & ones;
        if mask == 0 {
            return Some(self.imm(1));
        }
        let shift = size * 8 - lead - width;
        let turn = |bits: u64| match cfg!(target_endian = "little") {
            true => (bits << shift).swap_bytes() >> (64 - 8 * size),
            false => bits << shift,
        };
        let (mask, constant) = (turn(mask), turn(constant & mask));
        let packet = self.packet();
        let raw = self.load_packet(size, packet, byte);
        let bits = if self.upper_bound(raw) == mask {
            raw
        } else {
            let mask = self.imm(mask);
            self.b.ins().band(raw, mask)
        };
        let constant = self.imm(constant);
        Some(self.compare(IntCC::Equal, bits, constant))
    }

    /// Writes bits; the other bits of their first and last byte stay.
    pub(super) fn store_bits(&mut self, address: Value, bit: u32, width: u32, value: Value) {
        if width == 0 {
            return;
        }
        let (byte, lead) = ((bit / 8) as i32, bit % 8);
        if lead == 0 && width.is_multiple_of(8) {
            self.store_bytes(address, byte, width / 8, value);
            return;
        }
        let bytes = (lead + width).div_ceil(8);
        if bytes > 8 || !matches!(bytes, 1 | 2 | 4 | 8) {
            // Up to the next byte, then the rest.
            let first = (8 - lead).min(width);
            let rest = width - first;
            let high = self.shr_imm(value, rest.into());
            let high = self.mask(high, first);
            self.store_bits(address, bit, first, high);
            let low = self.mask(value, rest);
            self.store_bits(address, bit + first, rest, low);
            return;
        }
        let ty = match bytes {
            1 => types::I8,
            2 => types::I16,
            4 => types::I32,
            _ => types::I64,
        };
        let shift = bytes * 8 - lead - width;
        let hole = (if width >= 64 { u64::MAX } else { (1u64 << width) - 1 }) << shift;
        let shifted = self.shl_imm(value, shift.into());
        let old = self.load(ty, address, byte);
        let old = if ty == types::I8 { old } else { self.b.ins().bswap(old) };
        let old = if ty == types::I64 {
            old
        } else {
            self.b.ins().uextend(types::I64, old)
        };
        let keep = self.imm(!hole);
        let kept = self.b.ins().band(old, keep);
        let new = self.b.ins().bor(kept, shifted);
        self.store_bytes(address, byte, bytes, new);
    }

    /// Writes the lowest bytes of a value, most significant first.
    fn store_bytes(&mut self, address: Value, byte: i32, count: u32, value: Value) {
        let mut left = count;
        let mut at = byte;
        while left > 0 {
            let (ty, size) = match left {
                8.. => (types::I64, 8),
                4..=7 => (types::I32, 4),
                2 | 3 => (types::I16, 2),
                _ => (types::I8, 1),
            };
            let part = self.shr_imm(value, u64::from(left - size) * 8);
            let part = if ty == types::I64 {
                part
            } else {
                self.b.ins().ireduce(ty, part)
            };
            let part = if ty == types::I8 {
                part
            } else {
                self.b.ins().bswap(part)
            };
            self.store(part, address, at);
            left -= size;
            at += size as i32;
        }
    }

    /// Writes a variable's bits to memory.
    fn write(&mut self, var: VarId, address: Value, bit: u32) {
        let info = self.cx.analysis.vars[var.index()];
        if info.is_narrow() {
            let value = self.get(var);
            self.store_bits(address, bit, info.width, value);
            return;
        }
        for i in 0..info.home_words() {
            let below = 64 * i as u32;
            let width = (info.width - below).min(64);
            let word = self.word(&Operand::Var(var), i);
            self.store_bits(address, bit + info.width - below - width, width, word);
        }
    }

    // ------------------------------------------------------------------------- the deparser

    /// Emits a header. `is_last`: nothing is emitted after it.
    pub(super) fn emit(&mut self, header: HeaderId, is_last: bool) {
        let cx = self.cx;
        let program = cx.analysis.program();
        let instance = &program.headers[header];
        let fields = cx.analysis.fields_to_write(&self.state, header);
        let in_place = cx.analysis.deparse == Deparse::InPlace;
        let h = &self.state.headers[header.index()];
        if h.pristine || in_place && fields.is_empty() {
            return;
        }
        let certain = h.extracted;
        if is_last && !in_place && program.header_types[instance.ty].varbit_field().is_some() {
            let parsed = self.parsed();
            let left = self.b.declare_var(types::I64);
            self.b.def_var(left, parsed);
            self.payload_from = Some(left);
        }
        let join = self.b.create_block();
        if !certain {
            let valid = self.condition(&Operand::Var(instance.valid));
            let body = self.b.create_block();
            self.b.ins().brif(valid, body, &[], join, &[]);
            self.enter_sealed(body);
        }
        let offsets = field_offsets(program, header);
        if in_place {
            let (address, bit) = self.header_address(header);
            let fields: Vec<(VarId, u32)> = fields.iter().map(|&i| (instance.fields[i], bit + offsets[i])).collect();
            self.write_merged(&fields, address);
        } else {
            self.emit_to_scratch(header, &fields, &offsets);
        }
        self.b.ins().jump(join, &[]);
        self.enter_sealed(join);
    }

    /// Appends a header to the scratch area.
    fn emit_to_scratch(&mut self, header: HeaderId, fields: &[usize], offsets: &[u32]) {
        let cx = self.cx;
        let program = cx.analysis.program();
        let instance = &program.headers[header];
        let ty = &program.header_types[instance.ty];
        let bytes = ty.fixed_width() / 8;
        let (scratch, emitted) = (self.load_row(ROW_SCRATCH), self.get(cx.analysis.emitted));
        let to = self.b.ins().iadd(scratch, emitted);
        let fixed: Vec<usize> = fields
            .iter()
            .copied()
            .filter(|&i| matches!(ty.fields[i].ty, Type::Bits(_)))
            .collect();
        let all = fixed.len() == ty.fields.len() - usize::from(ty.varbit_field().is_some());
        if !all {
            let (from, bit) = self.header_address(header);
            let mut at = 0;
            while at < bytes {
                // Up to 7 bytes too many: the next header overwrites them, or they are not copied.
                let word = self.load(types::I64, from, (bit / 8 + at) as i32);
                self.store(word, to, at as i32);
                at += 8;
            }
        }
        let fields: Vec<(VarId, u32)> = fixed.iter().map(|&i| (instance.fields[i], offsets[i])).collect();
        self.write_merged(&fields, to);
        let mut length = self.imm(bytes.into());
        if let Some(i) = ty.varbit_field()
            && let Some(home) = cx.layout.rows[instance.fields[i].index()]
        {
            let to = self.add_imm(to, u64::from(offsets[i] / 8));
            let more = self.emit_varbit(home, to);
            length = self.b.ins().iadd(length, more);
        }
        let next = self.b.ins().iadd(emitted, length);
        self.set(cx.analysis.emitted, next);
    }

    /// Appends a varbit; returns the bytes that it adds to the scratch area. If it is emitted last
    /// and was also parsed last, it stays in place, like the payload.
    fn emit_varbit(&mut self, home: usize, to: Value) -> Value {
        let (bits, from) = (self.load_row(home), self.load_row(home + 1));
        let [some, copy, join] = [(); 3].map(|()| self.b.create_block());
        self.b.append_block_param(join, types::I64);
        self.b.set_cold_block(copy);
        let nothing = self.imm(0);
        self.b.ins().brif(bits, some, &[], join, &[nothing.into()]);
        self.enter_sealed(some);
        let bytes = self.shr_imm(bits, 3);
        if let Some(left) = self.payload_from {
            let (packet, parsed) = (self.packet(), self.b.use_var(left));
            let at = self.b.ins().isub(from, packet);
            let end = self.b.ins().iadd(at, bytes);
            let is_at_payload = self.b.ins().icmp(IntCC::Equal, end, parsed);
            let stay = self.b.create_block();
            self.b.ins().brif(is_at_payload, stay, &[], copy, &[]);
            self.enter_sealed(stay);
            self.b.def_var(left, at);
            self.b.ins().jump(join, &[nothing.into()]);
        } else {
            self.b.set_cold_block(some);
            self.b.ins().jump(copy, &[]);
        }
        self.enter_sealed(copy);
        self.call_runtime(RuntimeFunction::VarbitStore, &[from, bits, to]);
        self.b.ins().jump(join, &[bytes.into()]);
        self.enter_sealed(join);
        self.b.block_params(join)[0]
    }

    /// The bytes that the parser has taken.
    fn parsed(&mut self) -> Value {
        let cursor = self.cursor();
        self.shr_imm(cursor, 3)
    }

    /// Writes variables at bit offsets after an address. Adjacent ones that make up whole bytes
    /// are written together.
    fn write_merged(&mut self, fields: &[(VarId, u32)], to: Value) {
        let cx = self.cx;
        let width = |var: VarId| cx.analysis.vars[var.index()].width;
        let mut rest = fields;
        while let Some(&(first, begin)) = rest.first() {
            // The longest run of adjacent fields that ends at a byte.
            let (mut end, mut bits, mut run) = (0, begin, None);
            while let Some(&(var, at)) = rest.get(end)
                && begin.is_multiple_of(8)
                && width(var) <= 64
                && at == bits
            {
                bits += width(var);
                end += 1;
                if bits.is_multiple_of(8) {
                    run = Some((end, bits));
                }
            }
            match run {
                Some((end, bits)) => {
                    self.write_run(&rest[..end], bits, to);
                    rest = &rest[end..];
                }
                None => {
                    self.write(first, to, begin);
                    rest = &rest[1..];
                }
            }
        }
    }

    /// Writes adjacent fields that begin and end at bytes, eight bytes at a time.
    fn write_run(&mut self, run: &[(VarId, u32)], end: u32, to: Value) {
        let mut next = run[0].1;
        while next < end {
            let (begin, stop) = (next, end.min(next + 64));
            let mut word = None;
            for &(var, at) in run {
                let width = self.cx.analysis.vars[var.index()].width;
                let last = at + width;
                if width == 0 || last <= begin || at >= stop {
                    continue;
                }
                // Bits above the word are cut off by the shift or the store.
                let value = self.get(var);
                let part = match last <= stop {
                    true => self.shl_imm(value, (stop - last).into()),
                    false => self.shr_imm(value, (last - stop).into()),
                };
                word = Some(match word {
                    None => part,
                    Some(word) => self.b.ins().bor(word, part),
                });
            }
            if let Some(word) = word {
                self.store_bytes(to, (begin / 8) as i32, (stop - begin) / 8, word);
            }
            next = stop;
        }
    }

    /// Sets the packet's new start and length. Emitted headers are copied there at the end of the
    /// vector ([`crate::run`]): loading them now, soon after they were stored in other pieces,
    /// would stall (store forwarding) for about ten instructions per piece.
    pub(super) fn finish_packet(&mut self) {
        if self.cx.analysis.deparse == Deparse::InPlace {
            return;
        }
        let packet = self.packet();
        let emitted = self.get(self.cx.analysis.emitted);
        let parsed = match self.payload_from {
            Some(left) => self.b.use_var(left),
            None => self.parsed(),
        };
        let removed = self.b.ins().isub(parsed, emitted);
        let start = self.b.ins().iadd(packet, removed);
        self.store_row(ROW_EMITTED, emitted);
        self.store_row(ROW_PACKET, start);
        let length = self.load_row(ROW_LENGTH);
        let length = self.b.ins().isub(length, removed);
        self.store_row(ROW_LENGTH, length);
    }
}
