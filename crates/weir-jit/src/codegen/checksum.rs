//! The internet checksum (RFC 1071) over fields.
//!
//! The sum is one of numbers modulo 65535, so a field of any width may be added as a whole once it is shifted to
//! where its last bit lies within a 16-bit word. What still is in the packet as it was received is summed up
//! there, word by word and in the machine's byte order; swapping the bytes of that sum swaps those of all its
//! terms.

use super::Segment;
use crate::analysis::{Change, field_offsets};
use crate::runtime::RuntimeFunction;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use weir_ir::{Call, HeaderId, InLeaf, Operand, VarId};

/// What a running sum stays below ([`crate::analysis::Analysis::running_sums`]).
const MOST_RUNNING: u64 = 1 << 62;

/// A part of what is summed up.
enum Part {
    /// Whole bytes of a header in the packet: header, first byte, number.
    Packet(HeaderId, u32, u32),
    /// A value of this many bits.
    Value(Operand),
}

/// The two halves of the sum.
#[derive(Default)]
struct Sum {
    /// Of values.
    values: Option<Value>,
    /// Of bytes in the machine's order.
    raw: Option<Value>,
    /// Values within a word are added to those in the machine's order.
    turns_words: bool,
}

/// Whether a value of this width that begins at a bit of what is summed up is within a 16-bit word.
fn is_small(width: u32, at: u32) -> bool {
    width + word_shift(width, at) <= 16
}

/// By how much the value is shifted within its word.
fn word_shift(width: u32, at: u32) -> u32 {
    (16 - (at + width) % 16) % 16
}

impl Segment<'_, '_> {
    /// The checksum, or the sum as it is before it is made one.
    pub(super) fn internet_checksum(&mut self, call: &Call, is_checksum: bool) {
        let Some(&result) = call.results.first() else { return };
        if !is_checksum {
            let (so_far, data) = self.running_sum(call);
            let sum = self.sum_of(data);
            let mut sum = self.plain_sum(&sum);
            if let Some(so_far) = so_far {
                let so_far = self.get(so_far);
                let so_far = self.bounded(so_far, MOST_RUNNING);
                sum = self.add(so_far, sum);
            }
            self.set(result, sum);
            return;
        }
        let word = match self.cx.analysis.change_of_checksum(&self.state, call) {
            Some(change) => self.changed_checksum(&change, call),
            None => {
                let sum = self.sum_of(call.inputs(0));
                self.inverted(&sum)
            }
        };
        let swapped = self.in_network_order(word);
        let value = self.b.ins().uextend(types::I64, swapped);
        let value = self.bounded(value, u16::MAX.into());
        let width = self.cx.analysis.vars[result.index()].width;
        let value = self.mask(value, 16.min(width));
        self.set(result, value);
    }

    /// The sum that data is added to, and the data. There is always room for what is added: it is not folded between.
    fn running_sum<'c>(&self, call: &'c Call) -> (Option<VarId>, &'c [InLeaf]) {
        match call.inputs(0) {
            [InLeaf::Value(Operand::Var(v)), data @ ..] if self.cx.analysis.running_sums.contains(*v) => {
                (Some(*v), data)
            }
            data => (None, data),
        }
    }

    fn sum_of(&mut self, data: &[InLeaf]) -> Sum {
        let mut sum = Sum::default();
        let mut at = 0u32;
        let mut parts: Vec<(Part, u32)> = Vec::new();
        for (part, width) in self.parts(data) {
            parts.push((part, at));
            at += width;
        }
        // First what takes a call: then little has to be kept across it.
        parts.sort_by_key(|(part, _)| !matches!(part, Part::Value(o) if self.is_varbit(o)));
        // A single word is sooner turned round than the sum of all that are in the packet.
        let small = |(part, at): &(Part, u32)| matches!(part, Part::Value(o) if is_small(self.width(o), *at));
        sum.turns_words =
            parts.iter().filter(|p| small(p)).count() == 1 && parts.iter().any(|(p, _)| matches!(p, Part::Packet(..)));
        for (part, at) in parts {
            match part {
                Part::Packet(header, first, count) if at.is_multiple_of(8) => {
                    self.sum_packet(&mut sum, header, first, count, at / 8);
                }
                Part::Packet(header, first, count) => {
                    let (address, bit) = self.at_header(header);
                    for i in 0..count {
                        let byte = self.load_bits(address, bit + (first + i) * 8, 8);
                        self.sum_value(&mut sum, byte, 8, at + i * 8);
                    }
                }
                Part::Value(operand) => self.sum_operand(&mut sum, &operand, at),
            }
        }
        sum
    }

    /// The checksum, as a word in the machine's order, by way of the one that the packet has: RFC 1624, equation 3.
    fn changed_checksum(&mut self, change: &Change, call: &Call) -> Value {
        let program = self.cx.analysis.program();
        let (header, field) = change.checksum;
        let (address, bit) = self.at_header(header);
        let offset = bit + field_offsets(program, header)[field];
        let before = self.load_packet(2, address, (offset / 8) as i32);
        let ones = self.imm(u16::MAX.into());
        let before = self.b.ins().bxor(before, ones);
        let before = self.bounded(before, u16::MAX.into());
        let mut old = Sum {
            turns_words: true,
            ..Sum::default()
        };
        let mut new = Sum {
            raw: Some(before),
            turns_words: true,
            ..Sum::default()
        };
        for part in &change.parts {
            let (width, at) = (self.width(&part.now), part.at);
            let value = self.value(&part.now);
            self.sum_value(&mut new, value, width, at);
            let (header, field) = part.before;
            let (address, bit) = self.at_header(header);
            let before = self.load_bits(address, bit + field_offsets(program, header)[field], width);
            self.sum_value(&mut old, before, width, at);
        }
        let sum = Sum {
            values: self.minus(new.values, old.values),
            raw: self.minus(new.raw, old.raw),
            turns_words: true,
        };
        let quick = self.inverted(&sum);
        // Of 0 and 65535, which are the same modulo 65535, a sum is 0 only if all of its terms are, which the difference does not tell.
        let (whole, join) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(join, types::I16);
        self.b.set_cold_block(whole);
        self.b.ins().brif(quick, join, &[quick.into()], whole, &[]);
        self.enter(whole);
        let sum = self.sum_of(call.inputs(0));
        let word = self.inverted(&sum);
        self.b.ins().jump(join, &[word.into()]);
        self.enter(join);
        self.b.block_params(join)[0]
    }

    /// A sum less another one, which is not above what may be subtracted, modulo 65535.
    fn minus(&mut self, sum: Option<Value>, less: Option<Value>) -> Option<Value> {
        let Some(less) = less else { return sum };
        // A multiple of 65535 that is not below it.
        let multiple = match self.most(less) {
            0..=0xffff => 0xffff,
            0x1_0000..=0xffff_0000 => 0xffff_0000,
            // More than a few fields of 32 bits that are shifted by 15 come to.
            _ => 0xffff << 40,
        };
        let multiple_value = self.imm(multiple);
        let difference = self.b.ins().isub(multiple_value, less);
        let difference = self.bounded(difference, multiple);
        Some(self.add_to(sum, difference))
    }

    /// A word in the machine's order as a number.
    fn in_network_order(&mut self, word: Value) -> Value {
        match cfg!(target_endian = "little") {
            true => self.b.ins().bswap(word),
            false => word,
        }
    }

    /// The complement of a sum, as a word in the machine's order.
    fn inverted(&mut self, sum: &Sum) -> Value {
        match (sum.values, sum.raw) {
            (None, Some(raw)) => self.folded_complement(raw),
            _ => {
                let total = self.plain_sum(sum);
                let word = self.folded_complement(total);
                self.in_network_order(word)
            }
        }
    }

    fn folded_complement(&mut self, sum: Value) -> Value {
        let folded = self.fold(sum);
        let word = self.b.ins().ireduce(types::I16, folded);
        self.b.ins().bnot(word)
    }

    /// A number below 2^48 that is the sum modulo 65535; 0 only for 0.
    fn plain_sum(&mut self, sum: &Sum) -> Value {
        let raw = sum.raw.map(|raw| {
            let half = self.halve(raw);
            // Turns the bytes of each word round, and the words, which does not matter.
            let turned = self.b.ins().bswap(half);
            let number = self.b.ins().uextend(types::I64, turned);
            self.bounded(number, u32::MAX.into())
        });
        let values = sum.values.map(|values| {
            if self.most(values) < 1 << 47 {
                return values;
            }
            let low = self.mask(values, 32);
            let high = self.shr_imm(values, 32);
            self.add(low, high)
        });
        match (values, raw) {
            (None, None) => self.imm(0),
            (Some(v), None) | (None, Some(v)) => v,
            (Some(a), Some(b)) => self.add(a, b),
        }
    }

    /// Parts with their widths, neighbours in the packet joined. Of varbits only the last may have a length that is
    /// not known; it counts as 0.
    fn parts(&mut self, leaves: &[InLeaf]) -> Vec<(Part, u32)> {
        let cx = self.cx;
        let program = cx.analysis.program();
        let mut parts: Vec<(Part, u32)> = Vec::new();
        for leaf in leaves {
            let InLeaf::Value(operand) = leaf else { continue };
            let width = self.width(operand);
            if cx.analysis.is_pristine(&self.state, operand) && !self.is_narrow(operand) && self.is_varbit(operand) {
                continue;
            }
            let Some((header, field)) = cx.analysis.in_packet(&self.state, operand) else {
                parts.push((
                    Part::Value(operand.clone()),
                    if self.is_varbit(operand) { 0 } else { width },
                ));
                continue;
            };
            let begin = field_offsets(program, header)[field];
            // In bits for now; made whole bytes below.
            match parts.last_mut() {
                Some((Part::Packet(h, first, bits), w)) if *h == header && *first + *bits == begin => {
                    *bits += width;
                    *w += width;
                }
                _ => parts.push((Part::Packet(header, begin, width), width)),
            }
        }
        // What does not begin and end at bytes is summed up as a value.
        parts
            .into_iter()
            .flat_map(|(part, width)| match part {
                Part::Packet(h, first, bits) if first.is_multiple_of(8) && bits.is_multiple_of(8) => {
                    vec![(Part::Packet(h, first / 8, bits / 8), width)]
                }
                Part::Packet(h, first, bits) => {
                    let offsets = field_offsets(program, h);
                    let vars = &program.headers[h].fields;
                    let inside = |o: u32| o >= first && o < first + bits;
                    let fields = vars.iter().zip(offsets).filter(|(_, o)| inside(*o));
                    fields
                        .map(|(&v, _)| (Part::Value(Operand::Var(v)), cx.analysis.vars[v.index()].width))
                        .collect()
                }
                other => vec![(other, width)],
            })
            .collect()
    }

    fn is_varbit(&self, operand: &Operand) -> bool {
        matches!(operand, Operand::Var(v) if self.cx.analysis.vars[v.index()].varbit)
    }

    fn sum_operand(&mut self, sum: &mut Sum, operand: &Operand, at: u32) {
        if self.is_varbit(operand) {
            let Operand::Var(v) = operand else { return };
            let Some(home) = self.cx.layout.rows[v.index()] else {
                return;
            };
            let zero = self.imm(0);
            let value = self.add_varbit(home, at, zero);
            sum.raw = Some(self.add_to(sum.raw, value));
            return;
        }
        // A field that is in the packet but not at whole bytes.
        if let Some((header, field)) = self.cx.analysis.in_packet(&self.state, operand) {
            let offset = field_offsets(self.cx.analysis.program(), header)[field];
            let (address, bit) = self.at_header(header);
            let width = self.width(operand);
            let mut done = 0;
            while done < width {
                let part = (width - done).min(32);
                let value = self.load_bits(address, bit + offset + done, part);
                self.sum_value(sum, value, part, at + done);
                done += part;
            }
            return;
        }
        let width = self.width(operand);
        let words = width.div_ceil(64) as usize;
        for i in 0..words {
            let below = 64 * i as u32;
            let bits = (width - below).min(64);
            let word = self.word(operand, i);
            self.sum_value(sum, word, bits, at + width - below - bits);
        }
    }

    /// The sum of a varbit that may be empty.
    fn add_varbit(&mut self, home: usize, at: u32, zero: Value) -> Value {
        let bits = self.load_row(home);
        let (some, join) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(join, types::I64);
        self.b.set_cold_block(some);
        self.b.ins().brif(bits, some, &[], join, &[zero.into()]);
        self.enter(some);
        let (from, at) = (self.load_row(home + 1), self.imm(at.into()));
        let value = self.call_for_value(RuntimeFunction::VarbitSum, &[from, bits, at]);
        self.b.ins().jump(join, &[value.into()]);
        self.enter(join);
        self.b.block_params(join)[0]
    }

    /// Adds a value whose first bit is bit `at` of what is summed up.
    fn sum_value(&mut self, sum: &mut Sum, value: Value, width: u32, at: u32) {
        let shift = word_shift(width, at);
        if is_small(width, at) && sum.turns_words && cfg!(target_endian = "little") {
            let word = self.turned_word(value, width, shift);
            sum.raw = Some(self.add_to(sum.raw, word));
        } else if width + shift <= 48 {
            let shifted = self.shl_imm(value, shift.into());
            sum.values = Some(self.add_to(sum.values, shifted));
        } else {
            let low = self.mask(value, 32);
            let low = self.shl_imm(low, shift.into());
            let high = self.shr_imm(value, 32);
            let high = self.shl_imm(high, shift.into());
            let both = self.add(low, high);
            sum.values = Some(self.add_to(sum.values, both));
        }
    }

    /// A value that is to be shifted within a word, in the other order of bytes.
    fn turned_word(&mut self, value: Value, width: u32, shift: u32) -> Value {
        if shift >= 8 {
            return self.shl_imm(value, u64::from(shift - 8));
        }
        if shift + width <= 8 {
            return self.shl_imm(value, u64::from(shift + 8));
        }
        let shifted = self.shl_imm(value, shift.into());
        let narrow = self.b.ins().ireduce(types::I16, shifted);
        let swapped = self.b.ins().bswap(narrow);
        let word = self.b.ins().uextend(types::I64, swapped);
        self.bounded(word, u16::MAX.into())
    }

    fn add_to(&mut self, sum: Option<Value>, value: Value) -> Value {
        match sum {
            None => value,
            Some(before) => self.add(before, value),
        }
    }

    /// Adds bytes of a header where it lies in the packet; byte `at` of what is summed up comes first.
    fn sum_packet(&mut self, sum: &mut Sum, header: HeaderId, first: u32, count: u32, at: u32) {
        let (address, bit) = self.at_header(header);
        let mut offset = (bit / 8 + first) as i32;
        let mut left = count;
        let mut odd = at % 2 == 1;
        while left > 0 {
            let size = match left {
                _ if odd => 1,
                4.. => 4,
                2 | 3 => 2,
                _ => 1,
            };
            let mut value = self.load_packet(size, address, offset);
            if cfg!(target_endian = "little") == odd && size == 1 {
                value = self.shl_imm(value, 8);
            }
            sum.raw = Some(self.add_to(sum.raw, value));
            odd = false;
            left -= size;
            offset += size as i32;
        }
    }

    /// The same of 32 bits, modulo 2^32 - 1 and so modulo 65535.
    fn halve(&mut self, value: Value) -> Value {
        let thirty_two = self.imm(32);
        let turned = self.b.ins().rotl(value, thirty_two);
        let sum = self.b.ins().iadd(value, turned);
        let sum = self.shr_imm(sum, 32);
        self.b.ins().ireduce(types::I32, sum)
    }

    /// A sum as a number below 2^16 that is equal to it modulo 65535; 0 only for 0.
    ///
    /// A half added to the other with the carry coming in again is the upper half of the number added to itself
    /// turned round.
    fn fold(&mut self, value: Value) -> Value {
        let sum = match self.most(value) <= u32::MAX.into() {
            true => self.b.ins().ireduce(types::I32, value),
            false => self.halve(value),
        };
        let sixteen = self.imm(16);
        let turned = self.b.ins().rotl(sum, sixteen);
        let sum = self.b.ins().iadd(sum, turned);
        let sum = self.b.ins().uextend(types::I64, sum);
        self.shr_imm(sum, 16)
    }
}
