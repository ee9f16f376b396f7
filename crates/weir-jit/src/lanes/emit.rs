//! Emits machine code for [`super::op`]: a function `(env, mask, context) -> mask`. It runs the
//! packets of a vector in groups of eight, and returns those that bailed out.
//!
//! Relies on [`super::allocate`] for the homes of vectors and masks, and on [`super::x64`] for
//! encodings. It reorders nothing. The submodule [`packets`] has the memory accesses through each
//! packet's own address.

mod packets;

use super::allocate::{Home, Homes, allocate};
use super::op::{Alu, Code, M, MaskAlu, Op, Relation, Rows, ShiftOp, Shuffle, Source, Unary, V};
use super::x64::{
    Assembler, Condition, Gpr, K, Label, MaskOp, Masked, Mem, Operand, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP,
    VMOVDQU64, VMOVDQU64_STORE, VPADDQ, VPANDNQ, VPANDQ, VPBLENDMQ, VPCMPQ, VPCMPUQ, VPLZCNTQ, VPMAXUQ, VPMINUQ,
    VPMULLQ, VPOPCNTQ, VPORQ, VPROLD, VPROLQ, VPROLVD, VPROLVQ, VPSHRDQ, VPSHUFB, VPSLLQ, VPSLLVQ, VPSRAQ, VPSRAVQ,
    VPSRLQ, VPSRLVQ, VPSUBQ, VPTESTMQ, VPTESTNMQ, VPXORQ, Vector, Zmm,
};
use crate::codegen::env;
use crate::layout::VECTOR;
use std::collections::HashMap;

/// Packets at a time.
pub(super) const LANES: usize = 8;

/// The smallest page size.
const PAGE: i32 = 4096;
/// Alignment of vectors in memory.
const ALIGNMENT: i32 = 64;

// Roles of registers. `rdi` is the environment. `rbx` points to the masks of suspension points, and
// `rbp` to those of tallies. These advance from one group of packets to the next: `rdx`, the
// group's columns of the context; `rsi`, its columns of the tally rows; `rcx`, the slot of its
// first packet. `r8` to `r15` are the current addresses of its packets.
const CONTEXT: Gpr = RDX;
const TALLY_ROWS: Gpr = RSI;
const PENDING: Gpr = RBX;
const TALLIES: Gpr = RBP;
const FIRST: Gpr = RCX;
const ADDRESSES: [Gpr; LANES] = [Gpr(8), Gpr(9), Gpr(10), Gpr(11), Gpr(12), Gpr(13), Gpr(14), Gpr(15)];
const SAVED: [Gpr; 6] = [RBX, RBP, Gpr(12), Gpr(13), Gpr(14), Gpr(15)];
/// Scratch registers: operands from memory, and intermediate values.
const SPARE: [Zmm; 4] = [Zmm(0), Zmm(1), Zmm(2), Zmm(3)];
/// The same for masks. The first cannot mask an instruction.
const SPARE_MASKS: [K; 2] = [K(0), K(1)];
/// The current block's mask, if its home is on the stack.
const BLOCK_MASK: K = K(2);
const VECTORS: std::ops::Range<u8> = 4..32;
const MASKS: std::ops::Range<u8> = 3..8;

/// A block is skipped if it is empty and has at least this many instructions. The test takes two,
/// and sometimes a branch misprediction.
const WORTH_SKIPPING: usize = 8;

/// Offsets in the stack frame, from the stack pointer, which is a multiple of 64.
struct StackFrame {
    /// Spilled masks, a byte each.
    masks: i32,
    /// The caller's stack pointer.
    stack: i32,
    /// The mask of packets to run.
    packets: i32,
    /// The mask of packets that bailed out.
    bailed_out: i32,
    /// The mask of the current group.
    entry: i32,
    /// Spilled vectors, 64 bytes each.
    vectors: i32,
    /// A vector whose words are accessed one by one.
    words: i32,
    size: i32,
}

impl StackFrame {
    fn new(homes: &Homes) -> Self {
        let masks = 0;
        let words = masks + (homes.mask_slots.next_multiple_of(8)) as i32;
        let vectors = (words + 32 + 63) & !63;
        StackFrame {
            masks,
            stack: words,
            packets: words + 8,
            bailed_out: words + 16,
            entry: words + 24,
            vectors,
            words: vectors + 64 * homes.vector_slots as i32,
            size: vectors + 64 * homes.vector_slots as i32 + 64,
        }
    }
}

struct Emitter {
    asm: Assembler,
    homes: Homes,
    frame: StackFrame,
    /// The current block's mask, and the register that holds it.
    block: Option<(M, K)>,
    /// By number of a block that may be skipped: the label at its end.
    end_labels: HashMap<usize, Label>,
    /// Code for rare cases, emitted behind the function.
    out_of_line: Vec<OutOfLine>,
    /// The end of the code for a group of packets.
    next_group: Label,
}

/// Code for the case that a mask does not have all packets of the group.
struct OutOfLine {
    begin: Label,
    resume: Label,
    body: PartialGroup,
    /// The current block's mask there.
    block: Option<(M, K)>,
}

enum PartialGroup {
    Addresses { from: V, mask: M },
    FindRecord { address: V, offset: i32, default: i32 },
    StoreRows(Vec<RowStore>),
}

/// A store to a row at a byte offset.
type RowStore = (Rows, i32, V);

/// The function's bytes, to be placed at a multiple of 64.
pub(super) fn emit(code: &Code) -> Vec<u8> {
    let homes = allocate(code, VECTORS, MASKS);
    let mut asm = Assembler::default();
    let mut emit = Emitter {
        next_group: asm.label(),
        asm,
        frame: StackFrame::new(&homes),
        homes,
        block: None,
        end_labels: HashMap::new(),
        out_of_line: Vec::new(),
    };
    emit.function(code);
    emit.asm.finish()
}

/// Approximate number of instructions of an operation.
fn cost(op: &Op) -> usize {
    match op {
        Op::LoadPair { .. } | Op::StorePair { .. } => 12,
        Op::StorePart { .. } | Op::Addresses { .. } => 12,
        Op::Gather { .. } => 16,
        Op::FindRecord { .. } => 32,
        Op::PrefetchSlots { .. } => 30,
        Op::End { .. } => 0,
        Op::Block { .. } => 0,
        Op::LoadUniform { .. } => 2,
        Op::Leave { .. } | Op::Tally { .. } | Op::BailOut => 3,
        _ => 1,
    }
}

/// Numbers of blocks that are worth skipping if empty, together with the blocks they dominate.
fn worth_skipping(code: &Code) -> Vec<usize> {
    let mut worth = Vec::new();
    let mut open = Vec::new();
    let mut so_far = 0;
    for op in &code.ops {
        match op {
            Op::Block { number, .. } => open.push((*number, so_far)),
            Op::End { number } => {
                if let Some((_, before)) = open.pop_if(|(n, _)| n == number)
                    && so_far - before >= WORTH_SKIPPING
                {
                    worth.push(*number);
                }
            }
            _ => {}
        }
        so_far += cost(op);
    }
    worth
}

impl Emitter {
    fn function(&mut self, code: &Code) {
        let asm = &mut self.asm;
        SAVED.iter().for_each(|r| asm.push(*r));
        asm.move_to(RAX, RSP);
        // Probes each page, so that a stack overflow hits the guard page.
        for page in (PAGE..self.frame.size + ALIGNMENT).step_by(PAGE as usize) {
            asm.store(RAX, Mem::At(RSP, -page));
        }
        asm.subtract(RSP, self.frame.size);
        asm.and(RSP, -ALIGNMENT);
        asm.store(RAX, Mem::At(RSP, self.frame.stack));
        asm.store(RSI, Mem::At(RSP, self.frame.packets));
        asm.zero(RAX);
        asm.store(RAX, Mem::At(RSP, self.frame.bailed_out));
        asm.load(PENDING, Mem::At(RDI, env::PENDING));
        asm.load(TALLIES, Mem::At(RDI, env::TALLIES));
        asm.move_to(TALLY_ROWS, TALLIES);
        asm.zero(FIRST);
        let (group, next) = (asm.label(), self.next_group);
        asm.place(group);
        asm.load(RAX, Mem::At(RSP, self.frame.packets));
        asm.shift_right(RAX, RAX, FIRST);
        asm.lowest_byte(RAX);
        asm.test(RAX);
        asm.jump_if(Condition::Equal, next);
        asm.store(RAX, Mem::At(RSP, self.frame.entry));
        if let Some(entry) = code.entry {
            match self.homes.masks[entry.0 as usize] {
                Home::Register(k) => asm.mask_from(K(k), RAX),
                Home::Stack(slot) => asm.store_byte(RAX, Mem::At(RSP, self.frame.masks + slot as i32)),
                Home::Row(..) | Home::Unused => {}
            }
        }
        self.operations(code);
        let asm = &mut self.asm;
        asm.place(next);
        asm.add(CONTEXT, 8 * LANES as i32);
        asm.add(TALLY_ROWS, 8 * LANES as i32);
        asm.add(FIRST, LANES as i32);
        asm.compare(FIRST, VECTOR as i32);
        asm.jump_if(Condition::NotEqual, group);
        asm.load(RAX, Mem::At(RSP, self.frame.bailed_out));
        asm.load(RSP, Mem::At(RSP, self.frame.stack));
        SAVED.iter().rev().for_each(|r| asm.pop(*r));
        asm.vzeroupper();
        asm.ret();
        for out_of_line in std::mem::take(&mut self.out_of_line) {
            self.asm.place(out_of_line.begin);
            self.block = out_of_line.block;
            match out_of_line.body {
                PartialGroup::Addresses { from, mask } => self.addresses_partial(from, mask),
                PartialGroup::FindRecord {
                    address,
                    offset,
                    default,
                } => self.find_partial(address, offset, default),
                PartialGroup::StoreRows(rows) => {
                    let here = Masked::Keep(self.block_mask());
                    rows.into_iter().for_each(|row| self.store_row(row, here));
                }
            }
            self.asm.jump(out_of_line.resume);
        }
    }

    fn operations(&mut self, code: &Code) {
        let worth_skipping = worth_skipping(code);
        let mut left: usize = code.ops.iter().map(cost).sum();
        let mut rows = Vec::new();
        for op in &code.ops {
            left -= cost(op);
            if let Op::StoreRow { rows: of, offset, from } = *op {
                rows.push((of, offset, from));
                continue;
            }
            self.store_rows(std::mem::take(&mut rows));
            match *op {
                Op::Block { number, mask, rare } => {
                    let register = self.mask(mask, BLOCK_MASK);
                    self.block = Some((mask, register));
                    if rare && Some(mask) != code.entry && worth_skipping.contains(&number) {
                        let end = self.asm.label();
                        self.asm.mask_test(register);
                        self.asm.jump_if(Condition::Equal, end);
                        self.end_labels.insert(number, end);
                    }
                }
                Op::End { number } => {
                    if let Some(end) = self.end_labels.remove(&number) {
                        self.asm.place(end);
                    }
                    self.block = None;
                }
                Op::Leave { point } => {
                    self.add_here(Mem::At(PENDING, 8 * point as i32));
                    if left >= WORTH_SKIPPING {
                        // Often all packets of the group leave here.
                        self.asm.mask_to(RAX, self.block_mask());
                        self.asm.compare_byte(RAX, Mem::At(RSP, self.frame.entry));
                        self.asm.jump_if(Condition::Equal, self.next_group);
                    }
                }
                _ => self.op(op),
            }
        }
    }

    // ------------------------------------------------------------------------- homes

    fn vector_slot(&self, slot: usize) -> Mem {
        Mem::At(RSP, self.frame.vectors + 64 * slot as i32)
    }

    fn mask_slot(&self, slot: usize) -> Mem {
        Mem::At(RSP, self.frame.masks + slot as i32)
    }

    fn home(&self, v: V) -> Home {
        self.homes.vectors[v.0 as usize]
    }

    /// The register of a vector; loaded into `spare` if it is spilled.
    fn register(&mut self, v: V, spare: Zmm) -> Zmm {
        match self.home(v) {
            Home::Register(r) => Zmm(r),
            Home::Stack(slot) => {
                let from = self.vector_slot(slot);
                self.asm.two(VMOVDQU64, spare, Operand::Memory(from));
                spare
            }
            Home::Row(rows, offset) => {
                self.asm.two(VMOVDQU64, spare, Operand::Memory(Self::row(rows, offset)));
                spare
            }
            Home::Unused => spare,
        }
    }

    /// The same, as the last operand of an instruction, which may be in memory.
    fn last(&mut self, source: Source) -> Operand {
        match source {
            Source::Constant(value) => Operand::Broadcast(self.word(value)),
            Source::V(v) => match self.home(v) {
                Home::Register(r) => Operand::Register(Zmm(r)),
                Home::Stack(slot) => Operand::Memory(self.vector_slot(slot)),
                Home::Row(rows, offset) => Operand::Memory(Self::row(rows, offset)),
                Home::Unused => Operand::Register(SPARE[0]),
            },
        }
    }

    fn word(&mut self, value: u64) -> Mem {
        Mem::Pool(self.asm.constant(&value.to_le_bytes()))
    }

    /// The register in which a vector is computed.
    fn target(&self, v: V) -> Zmm {
        match self.home(v) {
            Home::Register(r) => Zmm(r),
            _ => SPARE[3],
        }
    }

    /// Stores a computed vector to its stack slot, if it is spilled.
    fn write_back(&mut self, v: V, register: Zmm) {
        if let Home::Stack(slot) = self.home(v) {
            let to = self.vector_slot(slot);
            self.asm.two(VMOVDQU64_STORE, register, Operand::Memory(to));
        }
    }

    /// The register of a mask; loaded into `spare` if it is spilled.
    fn mask(&mut self, mask: M, spare: K) -> K {
        if let Some((current, register)) = self.block
            && current == mask
        {
            return register;
        }
        match self.homes.masks[mask.0 as usize] {
            Home::Register(k) => K(k),
            Home::Stack(slot) => {
                let from = self.mask_slot(slot);
                self.asm.mask_load(spare, from);
                spare
            }
            Home::Row(..) | Home::Unused => spare,
        }
    }

    fn mask_target(&self, mask: M) -> K {
        match self.homes.masks[mask.0 as usize] {
            Home::Register(k) => K(k),
            _ => SPARE_MASKS[0],
        }
    }

    fn write_back_mask(&mut self, mask: M, register: K) {
        if let Home::Stack(slot) = self.homes.masks[mask.0 as usize] {
            let to = self.mask_slot(slot);
            self.asm.mask_store(register, to);
        }
    }

    /// The register of the current block's mask.
    fn block_mask(&self) -> K {
        match self.block {
            Some((_, register)) => register,
            None => unreachable!("operations on packets of a block are inside a block"),
        }
    }

    fn row(rows: Rows, offset: i32) -> Mem {
        match rows {
            Rows::Context => Mem::At(CONTEXT, offset),
            Rows::Tallies => Mem::At(TALLY_ROWS, offset),
        }
    }

    // ------------------------------------------------------------------------- operations

    fn op(&mut self, op: &Op) {
        match *op {
            Op::Alu { op, dst, a, b } => self.alu(op, dst, a, b),
            Op::Shift { op, dst, a, by } => self.shift(op, dst, a, by),
            Op::Unary { op, dst, a } => {
                let (target, last) = (self.target(dst), self.last(Source::V(a)));
                let instruction = match op {
                    Unary::CountOnes => VPOPCNTQ,
                    Unary::CountLeadingZeros => VPLZCNTQ,
                };
                self.asm.two(instruction, target, last);
                self.write_back(dst, target);
            }
            Op::Shuffle { dst, a, bytes } => {
                let (a, target) = (self.register(a, SPARE[0]), self.target(dst));
                let table = Mem::Pool(self.asm.constant(&shuffle_table(bytes)));
                self.asm.three(VPSHUFB, target, a, Operand::Memory(table));
                self.write_back(dst, target);
            }
            Op::ShiftPair { dst, low, high, by } => {
                let (low, high) = (self.register(low, SPARE[0]), self.last(Source::V(high)));
                let target = self.target(dst);
                self.asm.three_with(VPSHRDQ, target, low, high, by);
                self.write_back(dst, target);
            }
            Op::Constant { dst, value } => self.copy(dst, Source::Constant(value)),
            Op::Copy { dst, from } => self.copy(dst, from),
            Op::CopyIf { dst, mask, from } => self.copy_if(dst, mask, from),
            Op::Blend { dst, mask, clear, set } => {
                let (clear, set) = (self.register(clear, SPARE[0]), self.last(set));
                let mask = self.mask(mask, SPARE_MASKS[1]);
                let target = self.target(dst);
                self.asm.three_masked(VPBLENDMQ, target, clear, set, Masked::Keep(mask));
                self.write_back(dst, target);
            }
            Op::FromMask { dst, mask } => {
                let (mask, target) = (self.mask(mask, SPARE_MASKS[1]), self.target(dst));
                let one = self.word(1);
                self.asm.broadcast(target, one, Masked::Zero(mask));
                self.write_back(dst, target);
            }
            Op::Compare {
                relation,
                signed,
                dst,
                a,
                b,
            } => {
                let instruction = if signed { VPCMPQ } else { VPCMPUQ };
                self.compare(instruction, dst, a, b, Some(predicate(relation)));
            }
            Op::Test { any, dst, a, b } => {
                let instruction = if any { VPTESTMQ } else { VPTESTNMQ };
                self.compare(instruction, dst, a, b, None);
            }
            Op::MaskAlu { op, dst, a, b } => {
                let (a, b) = (self.mask(a, SPARE_MASKS[0]), self.mask(b, SPARE_MASKS[1]));
                let target = self.mask_target(dst);
                let op = match op {
                    MaskAlu::And => MaskOp::And,
                    MaskAlu::AndNot => MaskOp::AndNot,
                    MaskAlu::Or => MaskOp::Or,
                    MaskAlu::Xor => MaskOp::Xor,
                };
                self.asm.mask_op(op, target, a, b);
                self.write_back_mask(dst, target);
            }
            Op::MaskNot { dst, a } => {
                let (a, target) = (self.mask(a, SPARE_MASKS[0]), self.mask_target(dst));
                self.asm.mask_not(target, a);
                self.write_back_mask(dst, target);
            }
            Op::LoadRow { dst, .. } if matches!(self.home(dst), Home::Row(..)) => {}
            Op::LoadRow { dst, rows, offset } => {
                let target = self.target(dst);
                self.asm
                    .two(VMOVDQU64, target, Operand::Memory(Self::row(rows, offset)));
                self.write_back(dst, target);
            }
            Op::LoadEnvironment { dst, offset } => {
                let target = self.target(dst);
                self.asm.broadcast(target, Mem::At(RDI, offset), Masked::No);
                self.write_back(dst, target);
            }
            Op::LoadUniform { dst, address, offset } => {
                let target = self.target(dst);
                self.asm.load(RAX, Mem::At(RDI, address));
                self.asm.broadcast(target, Mem::At(RAX, offset), Masked::No);
                self.write_back(dst, target);
            }
            Op::Addresses { from, mask, source } => self.addresses(from, mask, source),
            Op::LoadPair { low, high, offset } => self.load_pair(low, high, offset),
            Op::StorePair { low, high, offset } => self.store_pair(low, high, offset),
            Op::StorePart { from, bytes, offset } => self.store_part(from, bytes, offset),
            Op::Gather { dst, address, offset } => {
                let address = self.register(address, SPARE[0]);
                self.asm.mask_move(SPARE_MASKS[1], self.block_mask());
                self.asm.gather(SPARE[1], address, offset, SPARE_MASKS[1]);
                self.copy_register(dst, SPARE[1]);
            }
            Op::FindRecord {
                dst,
                address,
                offset,
                default,
            } => self.find_records(dst, address, offset, default),
            Op::PrefetchSlots { keys, prefetch } => self.prefetch_slots(keys, prefetch),
            Op::EmptyMask { mask } => {
                let target = self.mask_target(mask);
                self.asm.mask_op(MaskOp::Xor, target, target, target);
                self.write_back_mask(mask, target);
            }
            Op::Join { mask, from } => {
                let from = self.mask(from, SPARE_MASKS[0]);
                match self.homes.masks[mask.0 as usize] {
                    Home::Register(k) => self.asm.mask_op(MaskOp::Or, K(k), K(k), from),
                    Home::Stack(slot) => {
                        let to = self.mask_slot(slot);
                        self.asm.mask_to(RAX, from);
                        self.asm.or_byte(to, RAX);
                    }
                    Home::Row(..) | Home::Unused => {}
                }
            }
            Op::Tally { offset } => self.add_here(Mem::At(TALLIES, offset)),
            Op::BailOut => self.add_here(Mem::At(RSP, self.frame.bailed_out)),
            Op::Block { .. } | Op::End { .. } | Op::Leave { .. } | Op::StoreRow { .. } => {}
        }
    }

    /// Stores rows. A full group is stored without a mask: a masked store does not forward to a
    /// later load, which then waits until the store is in the cache.
    fn store_rows(&mut self, rows: Vec<RowStore>) {
        if rows.is_empty() {
            return;
        }
        self.if_full_group(self.block_mask(), PartialGroup::StoreRows(rows.clone()), |emit| {
            rows.iter().for_each(|row| emit.store_row(*row, Masked::No));
        });
    }

    /// Emits `full` for the common case that a mask has all packets of the group, and `partial` out
    /// of line for the other.
    fn if_full_group(&mut self, mask: K, partial: PartialGroup, full: impl FnOnce(&mut Self)) {
        let (begin, resume) = (self.asm.label(), self.asm.label());
        self.asm.mask_to(RAX, mask);
        self.asm.compare_byte_with(RAX, 0xff);
        self.asm.jump_if(Condition::NotEqual, begin);
        full(self);
        self.asm.place(resume);
        self.out_of_line.push(OutOfLine {
            begin,
            resume,
            body: partial,
            block: self.block,
        });
    }

    fn store_row(&mut self, (rows, offset, from): RowStore, masked: Masked) {
        let from = self.register(from, SPARE[0]);
        let to = Operand::Memory(Self::row(rows, offset));
        self.asm.two_masked(VMOVDQU64_STORE, from, to, masked);
    }

    /// Adds the block's packets to a mask of the vector. Always as a whole word: a later load of
    /// the word cannot forward from stores of single bytes.
    fn add_here(&mut self, to: Mem) {
        self.asm.mask_to(RAX, self.block_mask());
        self.asm.shift_left(RAX, RAX, FIRST);
        self.asm.or_word(to, RAX);
    }

    fn alu(&mut self, op: Alu, dst: V, a: V, b: Source) {
        let (a, b) = (self.register(a, SPARE[0]), self.last(b));
        let target = self.target(dst);
        let instruction = match op {
            Alu::Add => VPADDQ,
            Alu::Subtract => VPSUBQ,
            Alu::Multiply => VPMULLQ,
            Alu::And => VPANDQ,
            Alu::AndNot => VPANDNQ,
            Alu::Or => VPORQ,
            Alu::Xor => VPXORQ,
            Alu::Max => VPMAXUQ,
            Alu::Min => VPMINUQ,
            Alu::ShiftLeft => VPSLLVQ,
            Alu::ShiftRight => VPSRLVQ,
            Alu::ShiftRightSigned => VPSRAVQ,
            Alu::RotateLeft => VPROLVQ,
            Alu::RotateHalvesLeft => VPROLVD,
        };
        self.asm.three(instruction, target, a, b);
        self.write_back(dst, target);
    }

    fn shift(&mut self, op: ShiftOp, dst: V, a: V, by: u8) {
        let (a, target) = (self.register(a, SPARE[0]), self.target(dst));
        let instruction = match op {
            ShiftOp::Left => VPSLLQ,
            ShiftOp::Right => VPSRLQ,
            ShiftOp::RightSigned => VPSRAQ,
            ShiftOp::RotateLeft => VPROLQ,
            ShiftOp::RotateHalvesLeft => VPROLD,
        };
        self.asm.shift(instruction, target, a, by);
        self.write_back(dst, target);
    }

    fn copy(&mut self, dst: V, from: Source) {
        match from {
            Source::Constant(value) => {
                let (target, from) = (self.target(dst), self.word(value));
                self.asm.broadcast(target, from, Masked::No);
                self.write_back(dst, target);
            }
            Source::V(v) => {
                let from = self.register(v, SPARE[3]);
                self.copy_register(dst, from);
            }
        }
    }

    fn copy_register(&mut self, dst: V, from: Zmm) {
        match self.home(dst) {
            Home::Register(r) if Zmm(r) != from => self.asm.two(VMOVDQU64, Zmm(r), from.into()),
            _ => self.write_back(dst, from),
        }
    }

    fn copy_if(&mut self, dst: V, mask: M, from: Source) {
        let mask = self.mask(mask, SPARE_MASKS[1]);
        let to = match self.home(dst) {
            Home::Register(r) => Zmm(r),
            _ => self.register(dst, SPARE[3]),
        };
        match from {
            Source::Constant(value) => {
                let from = self.word(value);
                self.asm.broadcast(to, from, Masked::Keep(mask));
            }
            source @ Source::V(_) => {
                let from = self.last(source);
                self.asm.two_masked(VMOVDQU64, to, from, Masked::Keep(mask));
            }
        }
        self.write_back(dst, to);
    }

    fn compare(&mut self, instruction: Vector, dst: M, a: V, b: Source, immediate: Option<u8>) {
        let (a, b) = (self.register(a, SPARE[0]), self.last(b));
        let target = self.mask_target(dst);
        self.asm.compare_lanes(instruction, target, a, b, immediate);
        self.write_back_mask(dst, target);
    }
}

/// The predicate of a comparison instruction.
fn predicate(relation: Relation) -> u8 {
    match relation {
        Relation::Equal => 0,
        Relation::Less => 1,
        Relation::LessOrEqual => 2,
        Relation::NotEqual => 4,
        Relation::GreaterOrEqual => 5,
        Relation::Greater => 6,
    }
}

/// The control operand of a shuffle: for each byte, its source among sixteen.
fn shuffle_table(bytes: Shuffle) -> [u8; 64] {
    std::array::from_fn(|i| {
        let half = (i / 8 % 2 * 8) as u8;
        bytes[i % 8].map_or(0x80, |from| from + half)
    })
}
