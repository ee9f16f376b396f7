//! An assembler for the subset of x86-64 and AVX-512 that [`super::emit`] uses: instructions as
//! bytes, labels, and constants after the code.
//!
//! Encodings are those of the Intel manual, volume 2: EVEX (2.7) for vectors, VEX (2.3) for mask
//! registers. It checks no features of the processor, and chooses no instructions: each method
//! emits one, or the few that its description names.
//!
//! Operands are in the order of Intel syntax: `first` is the destination, except in stores.

mod encodings;
#[cfg(test)]
mod tests;

pub(super) use encodings::*;
use std::collections::HashMap;

/// A vector register, `zmm0` to `zmm31`; also its lower parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Zmm(pub u8);

/// A mask register, `k0` to `k7`. In an instruction's mask field, 0 means no mask instead of `k0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct KReg(pub u8);

/// A 64-bit general register, by its number in encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Gpr(pub u8);

pub(super) const RAX: Gpr = Gpr(0);
pub(super) const RCX: Gpr = Gpr(1);
pub(super) const RDX: Gpr = Gpr(2);
pub(super) const RBX: Gpr = Gpr(3);
pub(super) const RSP: Gpr = Gpr(4);
pub(super) const RBP: Gpr = Gpr(5);
pub(super) const RSI: Gpr = Gpr(6);
pub(super) const RDI: Gpr = Gpr(7);

/// A memory operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mem {
    /// An offset from the address in a register.
    At(Gpr, i32),
    /// A constant in the pool.
    Pool(Constant),
}

/// A constant in the pool after the code, by its offset in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Constant(usize);

/// The last operand of a vector instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Register(Zmm),
    /// Memory, as many bytes as the vector has.
    Memory(Mem),
    /// Eight bytes of memory, broadcast to all lanes.
    Broadcast(Mem),
}

impl From<Zmm> for Operand {
    fn from(register: Zmm) -> Self {
        Operand::Register(register)
    }
}

/// The target of jumps, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Label(usize);

/// Operations on mask registers, by their opcodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskOp {
    And = 0x41,
    /// `!second & third`.
    AndNot = 0x42,
    Or = 0x45,
    Xor = 0x47,
}

/// The length of the vectors that an instruction works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VectorLength {
    Xmm = 0,
    Ymm = 1,
    Zmm = 2,
}

/// The effect of an instruction on lanes outside of its mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Masking {
    /// There is no mask.
    None,
    /// They keep their value: merging-masking.
    Merge(KReg),
    /// They become 0: zeroing-masking.
    Zero(KReg),
}

/// Conditions of jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Equal = 4,
    NotEqual = 5,
}

/// The fields of an EVEX instruction.
struct EvexFields {
    /// "ModRM.reg", 5 bits.
    reg: u8,
    /// "vvvv" and "V'", 5 bits.
    second: u8,
    /// "ModRM.rm", or a memory operand.
    last: Operand,
    length: VectorLength,
    masking: Masking,
    /// Size of the memory operand, by which one-byte displacements are scaled ("disp8*N").
    disp8_scale: i32,
    immediate: Option<u8>,
}

/// Machine code under construction.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<u8>,
    /// The offsets to which labels are bound.
    labels: Vec<Option<usize>>,
    /// Offsets of displacements that depend on a label.
    jump_fixups: Vec<(usize, Label)>,
    /// Constants, to be placed after the code.
    pool: Vec<u8>,
    /// Constants in the pool, by their bytes.
    pool_constants: HashMap<Vec<u8>, Constant>,
    /// Offsets of displacements that depend on a constant, with the end of the instruction.
    pool_fixups: Vec<(usize, usize, Constant)>,
}

/// Alignment of the pool, so that no constant crosses a cache line.
const ALIGNMENT: usize = 64;

impl Assembler {
    /// The code, followed by its constants. To be placed at a multiple of 64.
    ///
    /// # Panics
    /// A label was jumped to and never bound.
    pub fn finish(mut self) -> Vec<u8> {
        for (displacement_offset, label) in std::mem::take(&mut self.jump_fixups) {
            let Some(target) = self.labels[label.0] else {
                unreachable!("every label is bound")
            };
            self.patch_displacement(displacement_offset, displacement_offset + 4, target);
        }
        while !self.code.len().is_multiple_of(ALIGNMENT) {
            self.code.push(0xcc);
        }
        let begin = self.code.len();
        for (displacement_offset, end, constant) in std::mem::take(&mut self.pool_fixups) {
            self.patch_displacement(displacement_offset, end, begin + constant.0);
        }
        self.code.extend_from_slice(&self.pool);
        self.code
    }

    /// Writes a displacement relative to the end of its instruction.
    fn patch_displacement(&mut self, displacement_offset: usize, instruction_end: usize, target: usize) {
        let displacement = target as i64 - instruction_end as i64;
        self.code[displacement_offset..displacement_offset + 4].copy_from_slice(&(displacement as i32).to_le_bytes());
    }

    /// A constant of 8 or 64 bytes.
    pub fn constant(&mut self, bytes: &[u8]) -> Constant {
        if let Some(known) = self.pool_constants.get(bytes) {
            return *known;
        }
        while !self.pool.len().is_multiple_of(bytes.len()) {
            self.pool.push(0);
        }
        let constant = Constant(self.pool.len());
        self.pool.extend_from_slice(bytes);
        self.pool_constants.insert(bytes.to_vec(), constant);
        constant
    }

    /// A new label.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Binds a label to the next instruction.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    // ------------------------------------------------------------------------- vectors

    /// `first = second op last`
    pub fn binary(&mut self, op: VectorInstruction, first: Zmm, second: Zmm, last: Operand) {
        self.binary_masked(op, first, second, last, Masking::None);
    }

    /// The same, masked.
    pub fn binary_masked(&mut self, op: VectorInstruction, first: Zmm, second: Zmm, last: Operand, masking: Masking) {
        self.evex(op, first.0, second.0, last, masking, None);
    }

    /// The same, with an immediate byte.
    pub fn binary_with_immediate(&mut self, op: VectorInstruction, first: Zmm, second: Zmm, last: Operand, byte: u8) {
        self.evex(op, first.0, second.0, last, Masking::None, Some(byte));
    }

    /// `first = op last`
    pub fn unary(&mut self, op: VectorInstruction, first: Zmm, last: Operand) {
        self.unary_masked(op, first, last, Masking::None);
    }

    /// The same, masked. In a store, `last` is the destination.
    pub fn unary_masked(&mut self, op: VectorInstruction, first: Zmm, last: Operand, masking: Masking) {
        self.evex(op, first.0, 0, last, masking, None);
    }

    /// Broadcasts eight bytes to all lanes, or to those of a mask.
    pub fn broadcast(&mut self, first: Zmm, from: Mem, masking: Masking) {
        self.write_evex(
            VPBROADCASTQ,
            &EvexFields {
                reg: first.0,
                second: 0,
                last: Operand::Memory(from),
                length: VectorLength::Zmm,
                masking,
                disp8_scale: 8,
                immediate: None,
            },
        );
    }

    /// Loads the lower half of a vector from two places of 16 bytes; the upper half becomes 0.
    pub fn load_half(&mut self, first: Zmm, from: [Mem; 2]) {
        self.access_half([VMOVDQU64, VINSERTI64X2], first, first.0, from);
    }

    /// Stores the lower half of a vector to two places of 16 bytes.
    pub fn store_half(&mut self, first: Zmm, to: [Mem; 2]) {
        self.access_half([VMOVDQU64_STORE, VEXTRACTI64X2], first, 0, to);
    }

    /// Emits an instruction on the lowest quarter of a vector and memory, and one on the next
    /// quarter; the latter may have a second operand.
    fn access_half(&mut self, [lowest, next]: [VectorInstruction; 2], first: Zmm, second: u8, [low, high]: [Mem; 2]) {
        for (op, second, memory, length, immediate) in [
            (lowest, 0, low, VectorLength::Xmm, None),
            (next, second, high, VectorLength::Ymm, Some(1)),
        ] {
            let fields = EvexFields {
                reg: first.0,
                second,
                last: Operand::Memory(memory),
                length,
                masking: Masking::None,
                disp8_scale: 16,
                immediate,
            };
            self.write_evex(op, &fields);
        }
    }

    /// Replaces the upper half of a vector by the lower half of another.
    pub fn insert_upper_half(&mut self, first: Zmm, from: Zmm) {
        self.binary_with_immediate(VINSERTI64X4, first, first, from.into(), 1);
    }

    /// Moves the upper half of a vector to the lower half of another, whose upper half becomes 0.
    pub fn extract_upper_half(&mut self, to: Zmm, from: Zmm) {
        self.evex(VEXTRACTI64X4, from.0, 0, to.into(), Masking::None, Some(1));
    }

    /// Moves a quarter of a vector to the lowest quarter of another, whose other quarters become 0.
    pub fn extract_quarter(&mut self, to: Zmm, from: Zmm, quarter: u8) {
        self.evex(VEXTRACTI64X2, from.0, 0, to.into(), Masking::None, Some(quarter));
    }

    /// Stores some bytes of the lowest quarter, by an instruction with a memory destination.
    pub fn store_part(&mut self, op: VectorInstruction, first: Zmm, to: Mem, bytes: i32, byte: Option<u8>) {
        self.write_evex(
            op,
            &EvexFields {
                reg: first.0,
                second: 0,
                last: Operand::Memory(to),
                length: VectorLength::Xmm,
                masking: Masking::None,
                disp8_scale: bytes,
                immediate: byte,
            },
        );
    }

    /// `first = second op by`
    pub fn shift(&mut self, op: ShiftInstruction, first: Zmm, second: Zmm, by: u8) {
        self.evex(op.vector, op.extension, first.0, second.into(), Masking::None, Some(by));
    }

    /// Compares or tests lanes, with a mask as the result.
    pub fn compare_lanes(&mut self, op: VectorInstruction, first: KReg, second: Zmm, last: Operand, byte: Option<u8>) {
        self.evex(op, first.0, second.0, last, Masking::None, byte);
    }

    /// Gathers eight bytes at `offset` from each address of a vector, for lanes of a mask. The mask
    /// is 0 afterwards.
    pub fn gather(&mut self, first: Zmm, addresses: Zmm, offset: i32, mask: KReg) {
        let (r, r2) = (first.0 >> 3 & 1 ^ 1, first.0 >> 4 & 1 ^ 1);
        let (x, v2) = (addresses.0 >> 3 & 1 ^ 1, addresses.0 >> 4 & 1 ^ 1);
        let op = VPGATHERQQ;
        self.code.push(0x62);
        self.code.push(r << 7 | x << 6 | 1 << 5 | r2 << 4 | op.map as u8);
        self.code.push(1 << 7 | 0xf << 3 | 1 << 2 | op.prefix as u8);
        self.code.push((VectorLength::Zmm as u8) << 5 | v2 << 3 | mask.0);
        self.code.push(op.opcode);
        // No base: a scaled index and a displacement of four bytes.
        self.code.push((first.0 & 7) << 3 | 4);
        self.code.push((addresses.0 & 7) << 3 | 5);
        self.code.extend_from_slice(&offset.to_le_bytes());
    }

    /// Moves the lowest word of a vector.
    pub fn extract_lowest_word(&mut self, to: Gpr, from: Zmm) {
        self.extract_word(VMOVQ_TO_GPR, to, from, None);
    }

    /// Moves the second word of a vector.
    pub fn extract_second_word(&mut self, to: Gpr, from: Zmm) {
        self.extract_word(VPEXTRQ, to, from, Some(1));
    }

    /// Moves a word of the lowest quarter of a vector.
    fn extract_word(&mut self, op: VectorInstruction, to: Gpr, from: Zmm, immediate: Option<u8>) {
        self.write_evex(
            op,
            &EvexFields {
                reg: from.0,
                second: 0,
                last: Operand::Register(Zmm(to.0)),
                length: VectorLength::Xmm,
                masking: Masking::None,
                disp8_scale: 8,
                immediate,
            },
        );
    }

    /// An EVEX instruction on whole vectors.
    fn evex(
        &mut self,
        op: VectorInstruction,
        reg: u8,
        second: u8,
        last: Operand,
        masking: Masking,
        immediate: Option<u8>,
    ) {
        let disp8_scale = match last {
            Operand::Broadcast(_) => 8,
            _ => 64,
        };
        self.write_evex(
            op,
            &EvexFields {
                reg,
                second,
                last,
                length: VectorLength::Zmm,
                masking,
                disp8_scale,
                immediate,
            },
        );
    }

    /// An EVEX instruction.
    fn write_evex(&mut self, op: VectorInstruction, fields: &EvexFields) {
        let &EvexFields { reg, second, last, .. } = fields;
        let inverted = |number: u8, bit: u8| number >> bit & 1 ^ 1;
        let (x, b) = match last {
            Operand::Register(Zmm(register)) => (inverted(register, 4), inverted(register, 3)),
            Operand::Memory(mem) | Operand::Broadcast(mem) => match mem {
                Mem::At(base, _) => (1, inverted(base.0, 3)),
                Mem::Pool(_) => (1, 1),
            },
        };
        let (zeroing, mask) = match fields.masking {
            Masking::None => (0, 0),
            Masking::Merge(k) => (0, k.0),
            Masking::Zero(k) => (1, k.0),
        };
        let broadcast = u8::from(matches!(last, Operand::Broadcast(_)));
        self.code.push(0x62);
        self.code
            .push(inverted(reg, 3) << 7 | x << 6 | b << 5 | inverted(reg, 4) << 4 | op.map as u8);
        self.code
            .push(u8::from(op.wide) << 7 | (!second & 0xf) << 3 | 1 << 2 | op.prefix as u8);
        self.code
            .push(zeroing << 7 | (fields.length as u8) << 5 | broadcast << 4 | inverted(second, 4) << 3 | mask);
        self.code.push(op.opcode);
        self.last_operand(reg, last, fields.disp8_scale, fields.immediate.is_some());
        self.code.extend(fields.immediate);
    }

    /// "ModRM", and the bytes of the instruction after it up to the immediate.
    fn last_operand(&mut self, reg: u8, last: Operand, disp8_scale: i32, has_immediate: bool) {
        match last {
            Operand::Register(Zmm(register)) => self.code.push(0xc0 | (reg & 7) << 3 | register & 7),
            Operand::Memory(mem) | Operand::Broadcast(mem) => {
                self.memory(reg, mem, disp8_scale, usize::from(has_immediate))
            }
        }
    }

    /// "ModRM", "SIB" and displacement of a memory operand. `immediate_bytes` follow them.
    fn memory(&mut self, reg: u8, mem: Mem, disp8_scale: i32, immediate_bytes: usize) {
        let reg = (reg & 7) << 3;
        let (base, displacement) = match mem {
            Mem::Pool(constant) => {
                self.code.push(reg | 5);
                let displacement_offset = self.code.len();
                self.pool_fixups
                    .push((displacement_offset, displacement_offset + 4 + immediate_bytes, constant));
                self.code.extend_from_slice(&[0; 4]);
                return;
            }
            Mem::At(base, displacement) => (base, displacement),
        };
        let disp8 = (displacement % disp8_scale == 0)
            .then_some(displacement / disp8_scale)
            .and_then(|scaled| i8::try_from(scaled).ok());
        let mode = match disp8 {
            // With these bases, mode 0 has another meaning.
            Some(0) if base.0 & 7 != RBP.0 => 0,
            Some(_) => 1,
            None => 2,
        };
        let needs_sib = base.0 & 7 == RSP.0;
        self.code.push(mode << 6 | reg | if needs_sib { 4 } else { base.0 & 7 });
        if needs_sib {
            self.code.push((RSP.0 & 7) << 3 | base.0 & 7);
        }
        match (mode, disp8) {
            (0, _) => {}
            (1, Some(disp8)) => self.code.push(disp8 as u8),
            _ => self.code.extend_from_slice(&displacement.to_le_bytes()),
        }
    }

    /// Clears the upper halves of registers. Otherwise later SSE code is slow.
    pub fn vzeroupper(&mut self) {
        self.code.extend_from_slice(&[0xc5, 0xf8, 0x77]);
    }

    // ------------------------------------------------------------------------- masks

    /// `first = second op third`, on eight bits.
    pub fn mask_op(&mut self, op: MaskOp, first: KReg, second: KReg, third: KReg) {
        self.vex_register(true, second.0, op as u8, first.0, third.0);
    }

    /// `first = !second`, on eight bits.
    pub fn mask_not(&mut self, first: KReg, second: KReg) {
        self.vex_register(false, 0, 0x44, first.0, second.0);
    }

    pub fn mask_move(&mut self, first: KReg, second: KReg) {
        self.vex_register(false, 0, 0x90, first.0, second.0);
    }

    /// Moves the lowest byte of a general register to a mask register.
    pub fn mask_from_gpr(&mut self, first: KReg, from: Gpr) {
        debug_assert!(from.0 < 8, "as the encoding here");
        self.vex_register(false, 0, 0x92, first.0, from.0);
    }

    /// Moves a mask register to the lowest byte of a general register; its other bytes become 0.
    pub fn mask_to_gpr(&mut self, to: Gpr, from: KReg) {
        debug_assert!(to.0 < 8, "as the encoding here");
        self.vex_register(false, 0, 0x93, to.0, from.0);
    }

    pub fn mask_load(&mut self, first: KReg, from: Mem) {
        self.vex_memory(0x90, first.0, from);
    }

    pub fn mask_store(&mut self, from: KReg, to: Mem) {
        self.vex_memory(0x91, from.0, to);
    }

    /// Tests whether all bits are clear, for [`Condition::Equal`].
    pub fn mask_test(&mut self, mask: KReg) {
        self.vex_register(false, 0, 0x98, mask.0, mask.0);
    }

    /// An instruction on registers with a two-byte VEX prefix, with prefix 66 and "W" 0.
    fn vex_register(&mut self, long: bool, second: u8, opcode: u8, reg: u8, rm: u8) {
        self.vex(long, second);
        self.code.push(opcode);
        self.code.push(0xc0 | (reg & 7) << 3 | rm & 7);
    }

    /// The same with a memory operand.
    fn vex_memory(&mut self, opcode: u8, reg: u8, mem: Mem) {
        if let Mem::At(base, _) = mem {
            debug_assert!(base.0 < 8, "as the encoding here");
        }
        self.vex(false, 0);
        self.code.push(opcode);
        self.memory(reg, mem, 1, 0);
    }

    /// The two-byte VEX prefix. `long`: "L"; `second`: "vvvv".
    fn vex(&mut self, long: bool, second: u8) {
        self.code.push(0xc5);
        self.code
            .push(1 << 7 | (!second & 0xf) << 3 | u8::from(long) << 2 | Prefix::P66 as u8);
    }

    // ------------------------------------------------------------------------- general registers

    /// The REX prefix, if it is needed or forced. Forced, it makes byte registers `spl` to `dil`.
    fn rex(&mut self, wide: bool, reg: Gpr, mem: Mem, force: bool) {
        let base = match mem {
            Mem::At(base, _) => base.0,
            Mem::Pool(_) => 0,
        };
        let byte = 0x40 | u8::from(wide) << 3 | (reg.0 >> 3) << 2 | base >> 3;
        if byte != 0x40 || force {
            self.code.push(byte);
        }
    }

    pub fn load(&mut self, to: Gpr, from: Mem) {
        self.rex(true, to, from, false);
        self.code.push(0x8b);
        self.memory(to.0, from, 1, 0);
    }

    /// Prefetches a cache line.
    pub fn prefetch(&mut self, line: Mem) {
        self.rex(false, Gpr(0), line, false);
        self.code.extend_from_slice(&[0x0f, 0x18]);
        self.memory(1, line, 1, 0);
    }

    pub fn store(&mut self, from: Gpr, to: Mem) {
        self.rex(true, from, to, false);
        self.code.push(0x89);
        self.memory(from.0, to, 1, 0);
    }

    /// Stores the lowest byte of a register.
    pub fn store_byte(&mut self, from: Gpr, to: Mem) {
        self.rex(false, from, to, true);
        self.code.push(0x88);
        self.memory(from.0, to, 1, 0);
    }

    /// Sets bits of eight bytes of memory.
    pub fn or_word(&mut self, to: Mem, bits: Gpr) {
        self.rex(true, bits, to, false);
        self.code.push(0x09);
        self.memory(bits.0, to, 1, 0);
    }

    /// `to = from << by`
    pub fn shift_left(&mut self, to: Gpr, from: Gpr, by: Gpr) {
        self.bmi2_shift(Prefix::P66, to, from, by);
    }

    /// `to = from >> by`
    pub fn shift_right(&mut self, to: Gpr, from: Gpr, by: Gpr) {
        self.bmi2_shift(Prefix::Pf2, to, from, by);
    }

    /// A BMI2 shift: left with prefix 66, right with F2.
    fn bmi2_shift(&mut self, prefix: Prefix, to: Gpr, from: Gpr, by: Gpr) {
        debug_assert!(to.0 < 8 && from.0 < 8 && by.0 < 8, "as the encoding here");
        self.code.push(0xc4);
        self.code.push(7 << 5 | Map::M0f38 as u8);
        self.code.push(1 << 7 | (!by.0 & 0xf) << 3 | prefix as u8);
        self.code.push(0xf7);
        self.code.push(0xc0 | to.0 << 3 | from.0);
    }

    /// Zero-extends the lowest byte of a register.
    pub fn zero_extend_byte(&mut self, register: Gpr) {
        debug_assert!(register.0 < 4, "as the encoding here");
        self.code
            .extend_from_slice(&[0x0f, 0xb6, 0xc0 | register.0 << 3 | register.0]);
    }

    /// Sets bits of a byte of memory.
    pub fn or_byte(&mut self, to: Mem, bits: Gpr) {
        self.rex(false, bits, to, true);
        self.code.push(0x08);
        self.memory(bits.0, to, 1, 0);
    }

    pub fn move_register(&mut self, to: Gpr, from: Gpr) {
        self.code.push(0x48 | (from.0 >> 3) << 2 | to.0 >> 3);
        self.code.push(0x89);
        self.code.push(0xc0 | (from.0 & 7) << 3 | to.0 & 7);
    }

    pub fn zero(&mut self, register: Gpr) {
        debug_assert!(register.0 < 8, "as the encoding here");
        self.code.push(0x31);
        self.code.push(0xc0 | register.0 << 3 | register.0);
    }

    /// An operation on a register and an immediate, by its opcode extension: 0 is `add`, 4 `and`, 5
    /// `sub`, 7 `cmp`.
    fn alu_immediate(&mut self, extension: u8, register: Gpr, value: i32) {
        self.code.push(0x48 | register.0 >> 3);
        match i8::try_from(value) {
            Ok(byte) => {
                self.code.push(0x83);
                self.code.push(0xc0 | extension << 3 | register.0 & 7);
                self.code.push(byte as u8);
            }
            Err(_) => {
                self.code.push(0x81);
                self.code.push(0xc0 | extension << 3 | register.0 & 7);
                self.code.extend_from_slice(&value.to_le_bytes());
            }
        }
    }

    pub fn add(&mut self, register: Gpr, value: i32) {
        self.alu_immediate(0, register, value);
    }

    pub fn and(&mut self, register: Gpr, value: i32) {
        self.alu_immediate(4, register, value);
    }

    pub fn subtract(&mut self, register: Gpr, value: i32) {
        self.alu_immediate(5, register, value);
    }

    pub fn compare(&mut self, register: Gpr, value: i32) {
        self.alu_immediate(7, register, value);
    }

    /// Tests whether a register is 0, for [`Condition::Equal`].
    pub fn test(&mut self, register: Gpr) {
        self.code.push(0x48 | (register.0 >> 3) << 2 | register.0 >> 3);
        self.code.push(0x85);
        self.code.push(0xc0 | (register.0 & 7) << 3 | register.0 & 7);
    }

    /// `to = from`, if the last test found 0.
    pub fn move_if_zero(&mut self, to: Gpr, from: Gpr) {
        self.code.push(0x48 | (to.0 >> 3) << 2 | from.0 >> 3);
        self.code.extend_from_slice(&[0x0f, 0x44]);
        self.code.push(0xc0 | (to.0 & 7) << 3 | from.0 & 7);
    }

    /// Compares the lowest byte of a register with one in memory.
    pub fn compare_byte(&mut self, register: Gpr, with: Mem) {
        self.rex(false, register, with, true);
        self.code.push(0x3a);
        self.memory(register.0, with, 1, 0);
    }

    /// Compares the lowest byte of `rax` with an immediate.
    pub fn compare_byte_immediate(&mut self, register: Gpr, value: u8) {
        debug_assert_eq!(register, RAX, "as the encoding here");
        self.code.extend_from_slice(&[0x3c, value]);
    }

    pub fn jump(&mut self, to: Label) {
        self.code.push(0xe9);
        self.jump_displacement(to);
    }

    pub fn jump_if(&mut self, condition: Condition, to: Label) {
        self.code.extend_from_slice(&[0x0f, 0x80 | condition as u8]);
        self.jump_displacement(to);
    }

    /// A four-byte displacement to a label, at the end of an instruction.
    fn jump_displacement(&mut self, to: Label) {
        self.jump_fixups.push((self.code.len(), to));
        self.code.extend_from_slice(&[0; 4]);
    }

    pub fn push(&mut self, register: Gpr) {
        if register.0 > 7 {
            self.code.push(0x41);
        }
        self.code.push(0x50 | register.0 & 7);
    }

    pub fn pop(&mut self, register: Gpr) {
        if register.0 > 7 {
            self.code.push(0x41);
        }
        self.code.push(0x58 | register.0 & 7);
    }

    pub fn ret(&mut self) {
        self.code.push(0xc3);
    }
}
