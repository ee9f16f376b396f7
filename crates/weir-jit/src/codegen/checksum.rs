//! Emits the internet checksum (RFC 1071) over fields.
//!
//! It is a sum of numbers modulo 65535. So a field of any width may be added as a whole, once it is
//! shifted to its position within a 16-bit word. Bytes that are in the packet unchanged are summed
//! there, in the machine's byte order: swapping the bytes of that sum swaps those of all its terms.
//!
//! If the packet holds the checksum of the same fields before a change, only the difference is
//! summed (RFC 1624).

use super::SegmentBuilder;
use crate::analysis::{ChecksumUpdate, field_offsets};
use crate::runtime::RuntimeFunction;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use weir_ir::{Call, HeaderId, InLeaf, Operand, VarId};

/// Upper bound of a running sum ([`crate::analysis::Analysis::running_sums`]).
const MAX_RUNNING_SUM: u64 = 1 << 62;

/// A part of the data.
enum Part {
    /// Whole bytes of a header in the packet: header, first byte, number of bytes.
    Packet(HeaderId, u32, u32),
    /// A value of this many bits.
    Value(Operand),
}

/// The two halves of the sum.
#[derive(Default)]
struct Sum {
    /// The sum of values.
    values: Option<Value>,
    /// The sum of bytes in the machine's byte order.
    raw: Option<Value>,
    /// Whether values within one 16-bit word are byte-swapped and added to `raw`.
    swaps_small: bool,
}

/// Whether a value that begins at a bit of the data lies within a 16-bit word.
fn is_small(width: u32, at: u32) -> bool {
    width + word_shift(width, at) <= 16
}

/// The shift of the value within its word.
fn word_shift(width: u32, at: u32) -> u32 {
    (16 - (at + width) % 16) % 16
}

impl SegmentBuilder<'_, '_> {
    /// The checksum, or the plain sum if `is_checksum` is false.
    pub(super) fn internet_checksum(&mut self, call: &Call, is_checksum: bool) {
        let Some(&result) = call.results.first() else { return };
        if !is_checksum {
            let (so_far, data) = self.running_sum(call);
            let sum = self.sum_of(data);
            let mut sum = self.plain_sum(&sum);
            if let Some(so_far) = so_far {
                let so_far = self.get(so_far);
                let so_far = self.bounded(so_far, MAX_RUNNING_SUM);
                sum = self.add(so_far, sum);
            }
            self.set(result, sum);
            return;
        }
        let word = match self.cx.analysis.checksum_update(&self.state, call) {
            Some(change) => self.incremental_checksum(&change, call),
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

    /// The running sum to which data is added, and the data. A running sum cannot overflow, so it
    /// is not folded in between.
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
        // Parts that need a call come first, so that few values live across it.
        parts.sort_by_key(|(part, _)| !matches!(part, Part::Value(o) if self.is_varbit(o)));
        // Swapping a single word is cheaper than swapping the sum of all words in the packet.
        let small = |(part, at): &(Part, u32)| matches!(part, Part::Value(o) if is_small(self.width(o), *at));
        sum.swaps_small =
            parts.iter().filter(|p| small(p)).count() == 1 && parts.iter().any(|(p, _)| matches!(p, Part::Packet(..)));
        for (part, at) in parts {
            match part {
                Part::Packet(header, first, count) if at.is_multiple_of(8) => {
                    self.sum_packet(&mut sum, header, first, count, at / 8);
                }
                Part::Packet(header, first, count) => {
                    let (address, bit) = self.header_address(header);
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

    /// The checksum as a word in the machine's byte order, updated from the packet's own: RFC 1624,
    /// equation 3.
    fn incremental_checksum(&mut self, change: &ChecksumUpdate, call: &Call) -> Value {
        let program = self.cx.analysis.program();
        let (header, field) = change.checksum;
        let (address, bit) = self.header_address(header);
        let offset = bit + field_offsets(program, header)[field];
        let before = self.load_packet(2, address, (offset / 8) as i32);
        let ones = self.imm(u16::MAX.into());
        let before = self.b.ins().bxor(before, ones);
        let before = self.bounded(before, u16::MAX.into());
        let mut old = Sum {
            swaps_small: true,
            ..Sum::default()
        };
        let mut new = Sum {
            raw: Some(before),
            swaps_small: true,
            ..Sum::default()
        };
        for part in &change.parts {
            let (width, at) = (self.width(&part.now), part.at);
            let value = self.value(&part.now);
            self.sum_value(&mut new, value, width, at);
            let (header, field) = part.before;
            let (address, bit) = self.header_address(header);
            let before = self.load_bits(address, bit + field_offsets(program, header)[field], width);
            self.sum_value(&mut old, before, width, at);
        }
        let sum = Sum {
            values: self.minus(new.values, old.values),
            raw: self.minus(new.raw, old.raw),
            swaps_small: true,
        };
        let quick = self.inverted(&sum);
        // 0 and 65535 are equal modulo 65535. A sum is 0 only if all its terms are, which the
        // difference does not show. So this case is computed in full.
        let (whole, join) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(join, types::I16);
        self.b.set_cold_block(whole);
        self.b.ins().brif(quick, join, &[quick.into()], whole, &[]);
        self.enter_sealed(whole);
        let sum = self.sum_of(call.inputs(0));
        let word = self.inverted(&sum);
        self.b.ins().jump(join, &[word.into()]);
        self.enter_sealed(join);
        self.b.block_params(join)[0]
    }

    /// The difference of two sums modulo 65535, without going below 0.
    fn minus(&mut self, sum: Option<Value>, less: Option<Value>) -> Option<Value> {
        let Some(less) = less else { return sum };
        // A multiple of 65535 that is at least `less`.
        let multiple = match self.upper_bound(less) {
            0..=0xffff => 0xffff,
            0x1_0000..=0xffff_0000 => 0xffff_0000,
            // More than the sum of a few 32-bit fields shifted by up to 15.
            _ => 0xffff << 40,
        };
        let multiple_value = self.imm(multiple);
        let difference = self.b.ins().isub(multiple_value, less);
        let difference = self.bounded(difference, multiple);
        Some(self.add_optional(sum, difference))
    }

    /// A word in the machine's byte order as a number.
    fn in_network_order(&mut self, word: Value) -> Value {
        match cfg!(target_endian = "little") {
            true => self.b.ins().bswap(word),
            false => word,
        }
    }

    /// The complement of a sum, as a word in the machine's byte order.
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

    /// A number below 2^48 that equals the sum modulo 65535; 0 only for 0.
    fn plain_sum(&mut self, sum: &Sum) -> Value {
        let raw = sum.raw.map(|raw| {
            let half = self.fold_to_32(raw);
            // Swaps the bytes of each word, and the words, which does not matter.
            let swapped = self.b.ins().bswap(half);
            let number = self.b.ins().uextend(types::I64, swapped);
            self.bounded(number, u32::MAX.into())
        });
        let values = sum.values.map(|values| {
            if self.upper_bound(values) < 1 << 47 {
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

    /// Parts with their widths; adjacent fields in the packet are joined. Only the last varbit may
    /// have an unknown length; it counts as 0.
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
            let Some((header, field)) = cx.analysis.clean_field(&self.state, operand) else {
                parts.push((
                    Part::Value(operand.clone()),
                    if self.is_varbit(operand) { 0 } else { width },
                ));
                continue;
            };
            let begin = field_offsets(program, header)[field];
            // In bits for now; converted to whole bytes below.
            match parts.last_mut() {
                Some((Part::Packet(h, first, bits), w)) if *h == header && *first + *bits == begin => {
                    *bits += width;
                    *w += width;
                }
                _ => parts.push((Part::Packet(header, begin, width), width)),
            }
        }
        // A part that is not whole bytes is summed field by field, as values.
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
            sum.raw = Some(self.add_optional(sum.raw, value));
            return;
        }
        // A field that is in the packet, but not at whole bytes.
        if let Some((header, field)) = self.cx.analysis.clean_field(&self.state, operand) {
            let offset = field_offsets(self.cx.analysis.program(), header)[field];
            let (address, bit) = self.header_address(header);
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

    /// The sum of a varbit, which may be empty.
    fn add_varbit(&mut self, home: usize, at: u32, zero: Value) -> Value {
        let bits = self.load_row(home);
        let (some, join) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(join, types::I64);
        self.b.set_cold_block(some);
        self.b.ins().brif(bits, some, &[], join, &[zero.into()]);
        self.enter_sealed(some);
        let (from, at) = (self.load_row(home + 1), self.imm(at.into()));
        let value = self.call_for_value(RuntimeFunction::VarbitSum, &[from, bits, at]);
        self.b.ins().jump(join, &[value.into()]);
        self.enter_sealed(join);
        self.b.block_params(join)[0]
    }

    /// Adds a value that begins at bit `at` of the data.
    fn sum_value(&mut self, sum: &mut Sum, value: Value, width: u32, at: u32) {
        let shift = word_shift(width, at);
        if is_small(width, at) && sum.swaps_small && cfg!(target_endian = "little") {
            let word = self.swapped_word(value, width, shift);
            sum.raw = Some(self.add_optional(sum.raw, word));
        } else if width + shift <= 48 {
            let shifted = self.shl_imm(value, shift.into());
            sum.values = Some(self.add_optional(sum.values, shifted));
        } else {
            let low = self.mask(value, 32);
            let low = self.shl_imm(low, shift.into());
            let high = self.shr_imm(value, 32);
            let high = self.shl_imm(high, shift.into());
            let both = self.add(low, high);
            sum.values = Some(self.add_optional(sum.values, both));
        }
    }

    /// A value, shifted within its word, in the other byte order.
    fn swapped_word(&mut self, value: Value, width: u32, shift: u32) -> Value {
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

    fn add_optional(&mut self, sum: Option<Value>, value: Value) -> Value {
        match sum {
            None => value,
            Some(before) => self.add(before, value),
        }
    }

    /// Adds bytes of a header in the packet, which begin at byte `at` of the data.
    fn sum_packet(&mut self, sum: &mut Sum, header: HeaderId, first: u32, count: u32, at: u32) {
        let (address, bit) = self.header_address(header);
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
            sum.raw = Some(self.add_optional(sum.raw, value));
            odd = false;
            left -= size;
            offset += size as i32;
        }
    }

    /// Folds to 32 bits: equal modulo 2^32 - 1, and so modulo 65535.
    fn fold_to_32(&mut self, value: Value) -> Value {
        let thirty_two = self.imm(32);
        let swapped = self.b.ins().rotl(value, thirty_two);
        let sum = self.b.ins().iadd(value, swapped);
        let sum = self.shr_imm(sum, 32);
        self.b.ins().ireduce(types::I32, sum)
    }

    /// Folds to a number below 2^16: equal modulo 65535; 0 only for 0.
    ///
    /// Adding the halves with an end-around carry gives the upper half of the number plus itself
    /// rotated by half.
    fn fold(&mut self, value: Value) -> Value {
        let sum = match self.upper_bound(value) <= u32::MAX.into() {
            true => self.b.ins().ireduce(types::I32, value),
            false => self.fold_to_32(value),
        };
        let sixteen = self.imm(16);
        let swapped = self.b.ins().rotl(sum, sixteen);
        let sum = self.b.ins().iadd(sum, swapped);
        let sum = self.b.ins().uextend(types::I64, sum);
        self.shr_imm(sum, 16)
    }
}
