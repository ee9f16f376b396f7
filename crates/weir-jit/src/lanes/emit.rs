//! Emits machine code for [`super::op`]: a function `(env, mask, context) -> mask`. It runs the
//! packets of a vector in groups of eight, and returns those that bailed out.
//!
//! Relies on [`super::allocate`] for the homes of vectors and masks, and on [`super::x64`] for
//! encodings. It reorders nothing, except that code for partial groups lies after the function.
//! The submodule [`packets`] has the memory accesses through address registers.

mod packets;

use super::allocate::{Home, Homes, allocate};
use super::op::{Alu, Code, MaskAlu, MaskReg, Op, Relation, RowArea, ShiftOp, Shuffle, Source, Test, Unary, VectorReg};
use super::x64::{
    Assembler, Condition, Gpr, KReg, Label, MaskOp, Masking, Mem, Operand, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP,
    VMOVDQU64, VMOVDQU64_STORE, VPADDQ, VPANDNQ, VPANDQ, VPBLENDMQ, VPCMPQ, VPCMPUQ, VPLZCNTQ, VPMAXUQ, VPMINUQ,
    VPMULLQ, VPOPCNTQ, VPORQ, VPROLD, VPROLQ, VPROLVD, VPROLVQ, VPSHRDQ, VPSHUFB, VPSLLQ, VPSLLVQ, VPSRAQ, VPSRAVQ,
    VPSRLQ, VPSRLVQ, VPSUBQ, VPTESTMQ, VPTESTNMQ, VPXORQ, VectorInstruction, Zmm,
};
use crate::codegen::env;
use crate::layout::VECTOR;
use std::collections::HashMap;

/// Packets that run at a time.
pub(super) const LANES: usize = 8;

/// The smallest page size.
const PAGE: i32 = 4096;
/// Alignment of vectors in memory.
const ALIGNMENT: i32 = 64;

// Roles of general registers. `CONTEXT`, `TALLY_INDEX_ROWS` and `FIRST_SLOT` advance from one group
// of packets to the next. `rax` is a scratch register.

/// Points to the environment.
const ENVIRONMENT: Gpr = RDI;
/// Points to the group's columns of the context.
const CONTEXT: Gpr = RDX;
/// Points to the group's columns of the tally area's index rows.
const TALLY_INDEX_ROWS: Gpr = RSI;
/// Points to the masks of suspension points.
const POINT_MASKS: Gpr = RBX;
/// Points to the masks of tallies.
const TALLY_MASKS: Gpr = RBP;
/// The slot of the group's first packet.
const FIRST_SLOT: Gpr = RCX;
/// See [`super::op`].
const ADDRESS_REGISTERS: [Gpr; LANES] = [Gpr(8), Gpr(9), Gpr(10), Gpr(11), Gpr(12), Gpr(13), Gpr(14), Gpr(15)];
const CALLEE_SAVED: [Gpr; 6] = [RBX, RBP, Gpr(12), Gpr(13), Gpr(14), Gpr(15)];
/// Registers that are not allocated: for operands from memory, and intermediate values.
const SCRATCH_VECTORS: [Zmm; 4] = [Zmm(0), Zmm(1), Zmm(2), Zmm(3)];
/// The same for masks. The first cannot be the mask of an instruction.
const SCRATCH_MASKS: [KReg; 2] = [KReg(0), KReg(1)];
/// The current block's mask, if its home is on the stack.
const BLOCK_MASK: KReg = KReg(2);
/// The vector and mask registers that are allocated.
const ALLOCATED_VECTORS: std::ops::Range<u8> = 4..32;
const ALLOCATED_MASKS: std::ops::Range<u8> = 3..8;

/// A block is skipped if its mask is empty and it costs at least this many instructions. The test
/// takes two, and sometimes a branch misprediction.
const MIN_SKIPPED_COST: usize = 8;

/// Offsets in the stack frame, from the stack pointer, which is a multiple of 64.
struct StackFrame {
    /// Spilled masks, a byte each.
    spilled_masks: i32,
    /// The caller's stack pointer.
    caller_rsp: i32,
    /// The mask of the vector's packets to run.
    vector_mask: i32,
    /// The mask of the vector's packets that bailed out.
    bailed_out: i32,
    /// The mask of the current group's packets to run.
    group_mask: i32,
    /// Spilled vectors, 64 bytes each.
    spilled_vectors: i32,
    /// A vector that is stored as a whole and loaded word by word, or the other way round.
    word_buffer: i32,
    /// The frame's size.
    size: i32,
}

impl StackFrame {
    fn new(homes: &Homes) -> Self {
        let spilled_masks = 0;
        let scalars = spilled_masks + (homes.mask_slots.next_multiple_of(8)) as i32;
        let spilled_vectors = (scalars + 32 + 63) & !63;
        StackFrame {
            spilled_masks,
            caller_rsp: scalars,
            vector_mask: scalars + 8,
            bailed_out: scalars + 16,
            group_mask: scalars + 24,
            spilled_vectors,
            word_buffer: spilled_vectors + 64 * homes.vector_slots as i32,
            size: spilled_vectors + 64 * homes.vector_slots as i32 + 64,
        }
    }
}

/// The state of emission.
struct Emitter {
    asm: Assembler,
    homes: Homes,
    frame: StackFrame,
    /// The current block's mask, and the register that holds it.
    current_mask: Option<(MaskReg, KReg)>,
    /// By number of a block that may be skipped: the label at its end.
    end_labels: HashMap<usize, Label>,
    /// Code for partial groups, emitted after the function.
    out_of_line: Vec<OutOfLine>,
    /// The end of the code for a group of packets.
    next_group: Label,
}

/// Out-of-line code for the case that a mask does not have all eight packets.
struct OutOfLine {
    /// The start of this code.
    begin: Label,
    /// The instruction after the in-line code for a full group, to which this code jumps back.
    resume: Label,
    body: PartialGroup,
    /// The current block's mask, and the register that holds it.
    current_mask: Option<(MaskReg, KReg)>,
}

/// An operation to emit for a partial group.
enum PartialGroup {
    SetAddressRegisters {
        from: VectorReg,
        mask: MaskReg,
    },
    LoadRecordAddresses {
        address: VectorReg,
        offset: i32,
        default_offset: i32,
    },
    StoreRows(Vec<RowStore>),
}

/// A store of a vector to a row at a byte offset.
type RowStore = (RowArea, i32, VectorReg);

/// The function's bytes, to be placed at a multiple of 64.
pub(super) fn emit(code: &Code) -> Vec<u8> {
    let homes = allocate(code, ALLOCATED_VECTORS, ALLOCATED_MASKS);
    let mut asm = Assembler::default();
    let mut emit = Emitter {
        next_group: asm.label(),
        asm,
        frame: StackFrame::new(&homes),
        homes,
        current_mask: None,
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
        Op::StorePart { .. } | Op::SetAddressRegisters { .. } => 12,
        Op::Gather { .. } => 16,
        Op::LoadRecordAddresses { .. } => 32,
        Op::PrefetchSlots { .. } => 30,
        Op::SubtreeEnd { .. } => 0,
        Op::BlockStart { .. } => 0,
        Op::LoadUniform { .. } => 2,
        Op::Suspend { .. } | Op::Tally { .. } | Op::BailOut => 3,
        _ => 1,
    }
}

/// Numbers of blocks to skip if their mask is empty, together with the blocks they dominate.
fn skippable_blocks(code: &Code) -> Vec<usize> {
    let mut skippable = Vec::new();
    let mut open = Vec::new();
    let mut cost_so_far = 0;
    for op in &code.ops {
        match op {
            Op::BlockStart { number, .. } => open.push((*number, cost_so_far)),
            Op::SubtreeEnd { number } => {
                if let Some((_, cost_before)) = open.pop_if(|(n, _)| n == number)
                    && cost_so_far - cost_before >= MIN_SKIPPED_COST
                {
                    skippable.push(*number);
                }
            }
            _ => {}
        }
        cost_so_far += cost(op);
    }
    skippable
}

impl Emitter {
    /// Emits the prologue, the loop over groups, the epilogue and the out-of-line code.
    fn function(&mut self, code: &Code) {
        let asm = &mut self.asm;
        CALLEE_SAVED.iter().for_each(|r| asm.push(*r));
        asm.move_register(RAX, RSP);
        // Probes each page, so that a stack overflow hits the guard page.
        for page in (PAGE..self.frame.size + ALIGNMENT).step_by(PAGE as usize) {
            asm.store(RAX, Mem::At(RSP, -page));
        }
        asm.subtract(RSP, self.frame.size);
        asm.and(RSP, -ALIGNMENT);
        asm.store(RAX, Mem::At(RSP, self.frame.caller_rsp));
        asm.store(RSI, Mem::At(RSP, self.frame.vector_mask));
        asm.zero(RAX);
        asm.store(RAX, Mem::At(RSP, self.frame.bailed_out));
        asm.load(POINT_MASKS, Mem::At(ENVIRONMENT, env::POINT_MASKS));
        asm.load(TALLY_MASKS, Mem::At(ENVIRONMENT, env::TALLY_AREA));
        // Offsets of index rows count from the start of the tally area, where the masks are.
        asm.move_register(TALLY_INDEX_ROWS, TALLY_MASKS);
        asm.zero(FIRST_SLOT);
        let (group, next_group) = (asm.label(), self.next_group);
        asm.bind(group);
        asm.load(RAX, Mem::At(RSP, self.frame.vector_mask));
        asm.shift_right(RAX, RAX, FIRST_SLOT);
        asm.zero_extend_byte(RAX);
        asm.test(RAX);
        asm.jump_if(Condition::Equal, next_group);
        asm.store(RAX, Mem::At(RSP, self.frame.group_mask));
        if let Some(entry_mask) = code.entry_mask {
            match self.homes.masks[entry_mask.0 as usize] {
                Home::Register(k) => asm.mask_from_gpr(KReg(k), RAX),
                Home::Stack(slot) => asm.store_byte(RAX, Mem::At(RSP, self.frame.spilled_masks + slot as i32)),
                Home::Row(..) | Home::Unused => {}
            }
        }
        self.operations(code);
        let asm = &mut self.asm;
        asm.bind(next_group);
        asm.add(CONTEXT, 8 * LANES as i32);
        asm.add(TALLY_INDEX_ROWS, 8 * LANES as i32);
        asm.add(FIRST_SLOT, LANES as i32);
        asm.compare(FIRST_SLOT, VECTOR as i32);
        asm.jump_if(Condition::NotEqual, group);
        asm.load(RAX, Mem::At(RSP, self.frame.bailed_out));
        asm.load(RSP, Mem::At(RSP, self.frame.caller_rsp));
        CALLEE_SAVED.iter().rev().for_each(|r| asm.pop(*r));
        asm.vzeroupper();
        asm.ret();
        for out_of_line in std::mem::take(&mut self.out_of_line) {
            self.asm.bind(out_of_line.begin);
            self.current_mask = out_of_line.current_mask;
            match out_of_line.body {
                PartialGroup::SetAddressRegisters { from, mask } => self.set_address_registers_partial(from, mask),
                PartialGroup::LoadRecordAddresses {
                    address,
                    offset,
                    default_offset,
                } => self.load_record_addresses_partial(address, offset, default_offset),
                PartialGroup::StoreRows(rows) => {
                    let masking = Masking::Merge(self.block_mask());
                    rows.into_iter().for_each(|row| self.store_row(row, masking));
                }
            }
            self.asm.jump(out_of_line.resume);
        }
    }

    /// Emits the operations for one group. Adjacent stores to rows share a test for a full group.
    fn operations(&mut self, code: &Code) {
        let skippable_blocks = skippable_blocks(code);
        let mut remaining_cost: usize = code.ops.iter().map(cost).sum();
        let mut row_stores = Vec::new();
        for op in &code.ops {
            remaining_cost -= cost(op);
            if let Op::StoreRow { area, offset, from } = *op {
                row_stores.push((area, offset, from));
                continue;
            }
            self.store_rows(std::mem::take(&mut row_stores));
            match *op {
                Op::BlockStart {
                    number,
                    mask,
                    is_often_empty,
                } => {
                    let register = self.mask(mask, BLOCK_MASK);
                    self.current_mask = Some((mask, register));
                    if is_often_empty && Some(mask) != code.entry_mask && skippable_blocks.contains(&number) {
                        let end = self.asm.label();
                        self.asm.mask_test(register);
                        self.asm.jump_if(Condition::Equal, end);
                        self.end_labels.insert(number, end);
                    }
                }
                Op::SubtreeEnd { number } => {
                    if let Some(end) = self.end_labels.remove(&number) {
                        self.asm.bind(end);
                    }
                    self.current_mask = None;
                }
                Op::Suspend { point } => {
                    self.add_block_packets(Mem::At(POINT_MASKS, 8 * point as i32));
                    if remaining_cost >= MIN_SKIPPED_COST {
                        // Often all packets of the group suspend here.
                        self.asm.mask_to_gpr(RAX, self.block_mask());
                        self.asm.compare_byte(RAX, Mem::At(RSP, self.frame.group_mask));
                        self.asm.jump_if(Condition::Equal, self.next_group);
                    }
                }
                _ => self.operation(op),
            }
        }
    }

    // ------------------------------------------------------------------------- homes

    /// A vector's stack slot.
    fn vector_stack_slot(&self, slot: usize) -> Mem {
        Mem::At(RSP, self.frame.spilled_vectors + 64 * slot as i32)
    }

    /// A mask's stack slot.
    fn mask_stack_slot(&self, slot: usize) -> Mem {
        Mem::At(RSP, self.frame.spilled_masks + slot as i32)
    }

    /// The home of a vector.
    fn home(&self, v: VectorReg) -> Home {
        self.homes.vectors[v.0 as usize]
    }

    /// The register of a vector; loaded into `scratch` if it is spilled.
    fn register(&mut self, v: VectorReg, scratch: Zmm) -> Zmm {
        match self.home(v) {
            Home::Register(r) => Zmm(r),
            Home::Stack(slot) => {
                let from = self.vector_stack_slot(slot);
                self.asm.unary(VMOVDQU64, scratch, Operand::Memory(from));
                scratch
            }
            Home::Row(area, offset) => {
                self.asm
                    .unary(VMOVDQU64, scratch, Operand::Memory(Self::row(area, offset)));
                scratch
            }
            Home::Unused => scratch,
        }
    }

    /// A source as the last operand of an instruction, which may be in memory.
    fn operand(&mut self, source: Source) -> Operand {
        match source {
            Source::Constant(value) => Operand::Broadcast(self.pool_word(value)),
            Source::Vector(v) => match self.home(v) {
                Home::Register(r) => Operand::Register(Zmm(r)),
                Home::Stack(slot) => Operand::Memory(self.vector_stack_slot(slot)),
                Home::Row(area, offset) => Operand::Memory(Self::row(area, offset)),
                Home::Unused => Operand::Register(SCRATCH_VECTORS[0]),
            },
        }
    }

    /// A word in the constant pool.
    fn pool_word(&mut self, value: u64) -> Mem {
        Mem::Pool(self.asm.constant(&value.to_le_bytes()))
    }

    /// The register in which a vector is computed: a scratch register if it is spilled.
    fn result_register(&self, v: VectorReg) -> Zmm {
        match self.home(v) {
            Home::Register(r) => Zmm(r),
            _ => SCRATCH_VECTORS[3],
        }
    }

    /// Stores a computed vector to its stack slot, if it is spilled.
    fn store_if_spilled(&mut self, v: VectorReg, register: Zmm) {
        if let Home::Stack(slot) = self.home(v) {
            let to = self.vector_stack_slot(slot);
            self.asm.unary(VMOVDQU64_STORE, register, Operand::Memory(to));
        }
    }

    /// The register of a mask; loaded into `scratch` if it is spilled.
    fn mask(&mut self, mask: MaskReg, scratch: KReg) -> KReg {
        if let Some((current, register)) = self.current_mask
            && current == mask
        {
            return register;
        }
        match self.homes.masks[mask.0 as usize] {
            Home::Register(k) => KReg(k),
            Home::Stack(slot) => {
                let from = self.mask_stack_slot(slot);
                self.asm.mask_load(scratch, from);
                scratch
            }
            Home::Row(..) | Home::Unused => scratch,
        }
    }

    /// The register in which a mask is computed: a scratch register if it is spilled.
    fn result_mask(&self, mask: MaskReg) -> KReg {
        match self.homes.masks[mask.0 as usize] {
            Home::Register(k) => KReg(k),
            _ => SCRATCH_MASKS[0],
        }
    }

    /// Stores a computed mask to its stack slot, if it is spilled.
    fn store_mask_if_spilled(&mut self, mask: MaskReg, register: KReg) {
        if let Home::Stack(slot) = self.homes.masks[mask.0 as usize] {
            let to = self.mask_stack_slot(slot);
            self.asm.mask_store(register, to);
        }
    }

    /// The register of the current block's mask.
    fn block_mask(&self) -> KReg {
        match self.current_mask {
            Some((_, register)) => register,
            None => unreachable!("operations on packets of a block are inside a block"),
        }
    }

    /// The current group's words of a row.
    fn row(area: RowArea, offset: i32) -> Mem {
        match area {
            RowArea::Context => Mem::At(CONTEXT, offset),
            RowArea::TallyIndexes => Mem::At(TALLY_INDEX_ROWS, offset),
        }
    }

    // ------------------------------------------------------------------------- operations

    /// Emits an operation, other than those that [`Self::operations`] handles.
    fn operation(&mut self, op: &Op) {
        match *op {
            Op::Alu { op, dst, a, b } => self.alu(op, dst, a, b),
            Op::Shift { op, dst, a, by } => self.shift(op, dst, a, by),
            Op::Unary { op, dst, a } => {
                let (target, last) = (self.result_register(dst), self.operand(Source::Vector(a)));
                let instruction = match op {
                    Unary::CountOnes => VPOPCNTQ,
                    Unary::CountLeadingZeros => VPLZCNTQ,
                };
                self.asm.unary(instruction, target, last);
                self.store_if_spilled(dst, target);
            }
            Op::Shuffle { dst, a, bytes } => {
                let (a, target) = (self.register(a, SCRATCH_VECTORS[0]), self.result_register(dst));
                let table = Mem::Pool(self.asm.constant(&shuffle_table(bytes)));
                self.asm.binary(VPSHUFB, target, a, Operand::Memory(table));
                self.store_if_spilled(dst, target);
            }
            Op::FunnelShiftRight { dst, low, high, by } => {
                let (low, high) = (
                    self.register(low, SCRATCH_VECTORS[0]),
                    self.operand(Source::Vector(high)),
                );
                let target = self.result_register(dst);
                self.asm.binary_with_immediate(VPSHRDQ, target, low, high, by);
                self.store_if_spilled(dst, target);
            }
            Op::Constant { dst, value } => self.copy(dst, Source::Constant(value)),
            Op::Move { dst, from } => self.copy(dst, from),
            Op::MaskedMove { dst, mask, from } => self.copy_masked(dst, mask, from),
            Op::Blend { dst, mask, clear, set } => {
                let (clear, set) = (self.register(clear, SCRATCH_VECTORS[0]), self.operand(set));
                let mask = self.mask(mask, SCRATCH_MASKS[1]);
                let target = self.result_register(dst);
                self.asm
                    .binary_masked(VPBLENDMQ, target, clear, set, Masking::Merge(mask));
                self.store_if_spilled(dst, target);
            }
            Op::FromMask { dst, mask } => {
                let (mask, target) = (self.mask(mask, SCRATCH_MASKS[1]), self.result_register(dst));
                let one = self.pool_word(1);
                self.asm.broadcast(target, one, Masking::Zero(mask));
                self.store_if_spilled(dst, target);
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
            Op::Test { test, dst, a, b } => {
                let instruction = match test {
                    Test::Nonzero => VPTESTMQ,
                    Test::Zero => VPTESTNMQ,
                };
                self.compare(instruction, dst, a, b, None);
            }
            Op::MaskAlu { op, dst, a, b } => {
                let (a, b) = (self.mask(a, SCRATCH_MASKS[0]), self.mask(b, SCRATCH_MASKS[1]));
                let target = self.result_mask(dst);
                let op = match op {
                    MaskAlu::And => MaskOp::And,
                    MaskAlu::AndNot => MaskOp::AndNot,
                    MaskAlu::Or => MaskOp::Or,
                    MaskAlu::Xor => MaskOp::Xor,
                };
                self.asm.mask_op(op, target, a, b);
                self.store_mask_if_spilled(dst, target);
            }
            Op::MaskNot { dst, a } => {
                let (a, target) = (self.mask(a, SCRATCH_MASKS[0]), self.result_mask(dst));
                self.asm.mask_not(target, a);
                self.store_mask_if_spilled(dst, target);
            }
            Op::LoadRow { dst, .. } if matches!(self.home(dst), Home::Row(..)) => {}
            Op::LoadRow { dst, area, offset } => {
                let target = self.result_register(dst);
                self.asm
                    .unary(VMOVDQU64, target, Operand::Memory(Self::row(area, offset)));
                self.store_if_spilled(dst, target);
            }
            Op::LoadEnvironment { dst, offset } => {
                let target = self.result_register(dst);
                self.asm.broadcast(target, Mem::At(ENVIRONMENT, offset), Masking::None);
                self.store_if_spilled(dst, target);
            }
            Op::LoadUniform {
                dst,
                pointer_offset,
                offset,
            } => {
                let target = self.result_register(dst);
                self.asm.load(RAX, Mem::At(ENVIRONMENT, pointer_offset));
                self.asm.broadcast(target, Mem::At(RAX, offset), Masking::None);
                self.store_if_spilled(dst, target);
            }
            Op::SetAddressRegisters { from, mask, source } => self.set_address_registers(from, mask, source),
            Op::LoadPair { low, high, offset } => self.load_pair(low, high, offset),
            Op::StorePair { low, high, offset } => self.store_pair(low, high, offset),
            Op::StorePart { from, bytes, offset } => self.store_part(from, bytes, offset),
            Op::Gather { dst, address, offset } => {
                let address = self.register(address, SCRATCH_VECTORS[0]);
                self.asm.mask_move(SCRATCH_MASKS[1], self.block_mask());
                self.asm.gather(SCRATCH_VECTORS[1], address, offset, SCRATCH_MASKS[1]);
                self.copy_register(dst, SCRATCH_VECTORS[1]);
            }
            Op::LoadRecordAddresses {
                dst,
                address,
                offset,
                default_offset,
            } => self.load_record_addresses(dst, address, offset, default_offset),
            Op::PrefetchSlots { keys, prefetch } => self.prefetch_slots(keys, prefetch),
            Op::ClearMask { mask } => {
                let target = self.result_mask(mask);
                self.asm.mask_op(MaskOp::Xor, target, target, target);
                self.store_mask_if_spilled(mask, target);
            }
            Op::AddToMask { mask, from } => {
                let from = self.mask(from, SCRATCH_MASKS[0]);
                match self.homes.masks[mask.0 as usize] {
                    Home::Register(k) => self.asm.mask_op(MaskOp::Or, KReg(k), KReg(k), from),
                    Home::Stack(slot) => {
                        let to = self.mask_stack_slot(slot);
                        self.asm.mask_to_gpr(RAX, from);
                        self.asm.or_byte(to, RAX);
                    }
                    Home::Row(..) | Home::Unused => {}
                }
            }
            Op::Tally { offset } => self.add_block_packets(Mem::At(TALLY_MASKS, offset)),
            Op::BailOut => self.add_block_packets(Mem::At(RSP, self.frame.bailed_out)),
            Op::BlockStart { .. } | Op::SubtreeEnd { .. } | Op::Suspend { .. } | Op::StoreRow { .. } => {}
        }
    }

    /// Stores rows. A full group is stored without a mask: a masked store is not forwarded to a
    /// later load, which then waits until the store is in the cache.
    fn store_rows(&mut self, stores: Vec<RowStore>) {
        if stores.is_empty() {
            return;
        }
        self.if_full_group(self.block_mask(), PartialGroup::StoreRows(stores.clone()), |emit| {
            stores.iter().for_each(|row| emit.store_row(*row, Masking::None));
        });
    }

    /// Emits `full` in line, for the common case that a mask has all eight packets, and `partial`
    /// out of line for the other.
    fn if_full_group(&mut self, mask: KReg, partial: PartialGroup, full: impl FnOnce(&mut Self)) {
        let (begin, resume) = (self.asm.label(), self.asm.label());
        self.asm.mask_to_gpr(RAX, mask);
        self.asm.compare_byte_immediate(RAX, 0xff);
        self.asm.jump_if(Condition::NotEqual, begin);
        full(self);
        self.asm.bind(resume);
        self.out_of_line.push(OutOfLine {
            begin,
            resume,
            body: partial,
            current_mask: self.current_mask,
        });
    }

    /// Stores a vector to a row.
    fn store_row(&mut self, (area, offset, from): RowStore, masking: Masking) {
        let from = self.register(from, SCRATCH_VECTORS[0]);
        let to = Operand::Memory(Self::row(area, offset));
        self.asm.unary_masked(VMOVDQU64_STORE, from, to, masking);
    }

    /// Adds the block's packets to a mask of the vector in memory. Always as a whole word: stores
    /// of single bytes are not forwarded to a later load of the word.
    fn add_block_packets(&mut self, to: Mem) {
        self.asm.mask_to_gpr(RAX, self.block_mask());
        self.asm.shift_left(RAX, RAX, FIRST_SLOT);
        self.asm.or_word(to, RAX);
    }

    /// Emits an operation on two vectors.
    fn alu(&mut self, op: Alu, dst: VectorReg, a: VectorReg, b: Source) {
        let (a, b) = (self.register(a, SCRATCH_VECTORS[0]), self.operand(b));
        let target = self.result_register(dst);
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
        self.asm.binary(instruction, target, a, b);
        self.store_if_spilled(dst, target);
    }

    /// Emits a shift by a constant.
    fn shift(&mut self, op: ShiftOp, dst: VectorReg, a: VectorReg, by: u8) {
        let (a, target) = (self.register(a, SCRATCH_VECTORS[0]), self.result_register(dst));
        let instruction = match op {
            ShiftOp::Left => VPSLLQ,
            ShiftOp::Right => VPSRLQ,
            ShiftOp::RightSigned => VPSRAQ,
            ShiftOp::RotateLeft => VPROLQ,
            ShiftOp::RotateHalvesLeft => VPROLD,
        };
        self.asm.shift(instruction, target, a, by);
        self.store_if_spilled(dst, target);
    }

    /// Copies a vector or broadcasts a constant.
    fn copy(&mut self, dst: VectorReg, from: Source) {
        match from {
            Source::Constant(value) => {
                let (target, from) = (self.result_register(dst), self.pool_word(value));
                self.asm.broadcast(target, from, Masking::None);
                self.store_if_spilled(dst, target);
            }
            Source::Vector(v) => {
                let from = self.register(v, SCRATCH_VECTORS[3]);
                self.copy_register(dst, from);
            }
        }
    }

    /// Copies a register to a vector's home.
    fn copy_register(&mut self, dst: VectorReg, from: Zmm) {
        match self.home(dst) {
            Home::Register(r) if Zmm(r) != from => self.asm.unary(VMOVDQU64, Zmm(r), from.into()),
            _ => self.store_if_spilled(dst, from),
        }
    }

    /// Copies a vector, or broadcasts a constant, in the lanes of a mask.
    fn copy_masked(&mut self, dst: VectorReg, mask: MaskReg, from: Source) {
        let mask = self.mask(mask, SCRATCH_MASKS[1]);
        let to = match self.home(dst) {
            Home::Register(r) => Zmm(r),
            _ => self.register(dst, SCRATCH_VECTORS[3]),
        };
        match from {
            Source::Constant(value) => {
                let from = self.pool_word(value);
                self.asm.broadcast(to, from, Masking::Merge(mask));
            }
            source @ Source::Vector(_) => {
                let from = self.operand(source);
                self.asm.unary_masked(VMOVDQU64, to, from, Masking::Merge(mask));
            }
        }
        self.store_if_spilled(dst, to);
    }

    /// Emits an instruction whose result is a mask.
    fn compare(
        &mut self,
        instruction: VectorInstruction,
        dst: MaskReg,
        a: VectorReg,
        b: Source,
        immediate: Option<u8>,
    ) {
        let (a, b) = (self.register(a, SCRATCH_VECTORS[0]), self.operand(b));
        let target = self.result_mask(dst);
        self.asm.compare_lanes(instruction, target, a, b, immediate);
        self.store_mask_if_spilled(dst, target);
    }
}

/// The predicate of a comparison instruction, as its immediate byte.
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

/// The control operand of a shuffle: for each byte, the number of its source byte among sixteen.
fn shuffle_table(bytes: Shuffle) -> [u8; 64] {
    std::array::from_fn(|i| {
        let half = (i / 8 % 2 * 8) as u8;
        bytes[i % 8].map_or(0x80, |from| from + half)
    })
}
