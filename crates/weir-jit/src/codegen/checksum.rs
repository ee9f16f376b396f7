//! The internet checksum (RFC 1071) over fields.
//!
//! The sum is one of numbers modulo 65535, so a field of any width may be added as a whole once it is shifted to
//! where its last bit lies within a 16-bit word. What still is in the packet as it was received is summed up
//! there, word by word and in the machine's byte order; swapping the bytes of that sum swaps those of all its
//! terms.

use super::Segment;
use crate::analysis::field_offsets;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use weir_ir::{Call, HeaderId, InLeaf, Operand};

/// A part of what is summed up.
enum Part {
    /// Whole bytes of a header in the packet: header, first byte, number.
    Packet(HeaderId, u32, u32),
    /// A value of this many bits.
    Value(Operand),
}

/// The two halves of the sum.
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
        let mut sum = Sum {
            values: None,
            raw: None,
            turns_words: false,
        };
        let mut at = 0u32;
        let mut parts: Vec<(Part, u32)> = Vec::new();
        for (part, width) in self.parts(call.inputs(0)) {
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
        if !is_checksum {
            let sum = self.plain_sum(&sum);
            self.set(result, sum);
            return;
        }
        let folded = match (sum.values, sum.raw) {
            (None, None) => self.imm(0),
            (Some(values), None) => self.fold(values),
            (None, Some(raw)) => {
                let folded = self.fold(raw);
                let narrow = self.b.ins().ireduce(types::I16, folded);
                let swapped = self.b.ins().bswap(narrow);
                self.b.ins().uextend(types::I64, swapped)
            }
            (Some(_), Some(_)) => {
                let total = self.plain_sum(&sum);
                self.fold(total)
            }
        };
        let inverted = self.b.ins().bnot(folded);
        let width = self.cx.analysis.vars[result.index()].width;
        let value = self.mask(inverted, 16.min(width));
        self.set(result, value);
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
            sum.values = Some(self.add_to(sum.values, value));
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
        self.b.ins().brif(bits, some, &[], join, &[zero.into()]);
        self.b.switch_to_block(some);
        let (from, at) = (self.load_row(home + 1), self.imm(at.into()));
        let call = self.b.ins().call(self.helpers.varbit_sum, &[from, bits, at]);
        let value = self.b.inst_results(call)[0];
        self.b.ins().jump(join, &[value.into()]);
        self.b.switch_to_block(join);
        self.b.block_params(join)[0]
    }

    /// Adds a value whose first bit is bit `at` of what is summed up.
    fn sum_value(&mut self, sum: &mut Sum, value: Value, width: u32, at: u32) {
        let shift = word_shift(width, at);
        if is_small(width, at) && sum.turns_words && cfg!(target_endian = "little") {
            let shifted = self.shl_imm(value, shift.into());
            let narrow = self.b.ins().ireduce(types::I16, shifted);
            let swapped = self.b.ins().bswap(narrow);
            let word = self.b.ins().uextend(types::I64, swapped);
            let word = self.bounded(word, u16::MAX.into());
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
        let sum = self.halve(value);
        let sixteen = self.imm(16);
        let turned = self.b.ins().rotl(sum, sixteen);
        let sum = self.b.ins().iadd(sum, turned);
        let sum = self.b.ins().uextend(types::I64, sum);
        self.shr_imm(sum, 16)
    }
}
