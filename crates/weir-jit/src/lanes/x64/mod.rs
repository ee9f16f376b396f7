//! An assembler for the subset of x86-64 and AVX-512 that [`super::emit`] uses: instructions as
//! bytes, labels, and constants behind the code.
//!
//! Encodings are those of the Intel manual, volume 2: EVEX (2.7) for vectors, VEX (2.3) for mask
//! registers. It checks no features of the processor.

mod instructions;
#[cfg(test)]
mod tests;

pub(super) use instructions::*;
use std::collections::HashMap;

/// A vector register, `zmm0` to `zmm31`; also its lower parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Zmm(pub u8);

/// A mask register, `k0` to `k7`. As the mask of an instruction, `k0` means all lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct K(pub u8);

/// A general register.
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
    /// A constant behind the code.
    Pool(Constant),
}

/// A constant behind the code, by the offset of its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Constant(usize);

/// The last operand of a vector instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Register(Zmm),
    /// As many bytes as the vector has.
    Memory(Mem),
    /// Eight bytes, broadcast to all lanes.
    Broadcast(Mem),
}

impl From<Zmm> for Operand {
    fn from(register: Zmm) -> Self {
        Operand::Register(register)
    }
}

/// The target of a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Label(usize);

/// Operations on mask registers, by their opcodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskOp {
    And = 0x41,
    /// The second operand, without the bits of the first.
    AndNot = 0x42,
    Or = 0x45,
    Xor = 0x47,
}

/// The bytes of a vector that an instruction works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Xmm = 0,
    Ymm = 1,
    Zmm = 2,
}

/// The effect of an instruction on lanes that its mask leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Masked {
    No,
    /// They keep their value.
    Keep(K),
    /// They become 0.
    Zero(K),
}

/// Conditions of jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Equal = 4,
    NotEqual = 5,
}

/// The fields of an EVEX instruction.
struct Fields {
    /// "ModRM.reg", 5 bits.
    reg: u8,
    /// "vvvv", 5 bits.
    second: u8,
    last: Operand,
    length: Length,
    masked: Masked,
    /// Size of the memory operand, which scales short displacements.
    unit: i32,
    immediate: Option<u8>,
}

/// Machine code under construction.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<u8>,
    labels: Vec<Option<usize>>,
    /// Offsets where the distance to a label is to be written.
    jumps: Vec<(usize, Label)>,
    pool: Vec<u8>,
    /// Constants of the pool by their bytes.
    known: HashMap<Vec<u8>, Constant>,
    /// Offsets where the distance to a constant is to be written, and the end of the instruction.
    uses: Vec<(usize, usize, Constant)>,
}

/// Alignment of the pool, so that no constant crosses a cache line.
const ALIGNMENT: usize = 64;

impl Assembler {
    /// The code, followed by its constants. To be placed at a multiple of 64.
    ///
    /// # Panics
    /// A label was jumped to and never placed.
    pub fn finish(mut self) -> Vec<u8> {
        for (at, label) in std::mem::take(&mut self.jumps) {
            let Some(target) = self.labels[label.0] else {
                unreachable!("every label is placed")
            };
            self.put_distance(at, at + 4, target);
        }
        while !self.code.len().is_multiple_of(ALIGNMENT) {
            self.code.push(0xcc);
        }
        let begin = self.code.len();
        for (at, end, constant) in std::mem::take(&mut self.uses) {
            self.put_distance(at, end, begin + constant.0);
        }
        self.code.extend_from_slice(&self.pool);
        self.code
    }

    fn put_distance(&mut self, at: usize, from: usize, to: usize) {
        let distance = to as i64 - from as i64;
        self.code[at..at + 4].copy_from_slice(&(distance as i32).to_le_bytes());
    }

    /// A constant of 8 or 64 bytes.
    pub fn constant(&mut self, bytes: &[u8]) -> Constant {
        if let Some(known) = self.known.get(bytes) {
            return *known;
        }
        while !self.pool.len().is_multiple_of(bytes.len()) {
            self.pool.push(0);
        }
        let constant = Constant(self.pool.len());
        self.pool.extend_from_slice(bytes);
        self.known.insert(bytes.to_vec(), constant);
        constant
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    // ------------------------------------------------------------------------- vectors

    /// `first = second op last`
    pub fn three(&mut self, op: Vector, first: Zmm, second: Zmm, last: Operand) {
        self.three_masked(op, first, second, last, Masked::No);
    }

    /// The same, masked.
    pub fn three_masked(&mut self, op: Vector, first: Zmm, second: Zmm, last: Operand, masked: Masked) {
        self.evex(op, first.0, second.0, last, masked, None);
    }

    /// The same, with an immediate byte.
    pub fn three_with(&mut self, op: Vector, first: Zmm, second: Zmm, last: Operand, byte: u8) {
        self.evex(op, first.0, second.0, last, Masked::No, Some(byte));
    }

    /// `first = op last`
    pub fn two(&mut self, op: Vector, first: Zmm, last: Operand) {
        self.two_masked(op, first, last, Masked::No);
    }

    /// The same, masked. In a store, `last` is the destination.
    pub fn two_masked(&mut self, op: Vector, first: Zmm, last: Operand, masked: Masked) {
        self.evex(op, first.0, 0, last, masked, None);
    }

    /// Broadcasts a constant to all lanes, or to those of a mask.
    pub fn broadcast(&mut self, first: Zmm, from: Mem, masked: Masked) {
        self.write_evex(
            VPBROADCASTQ,
            &Fields {
                reg: first.0,
                second: 0,
                last: Operand::Memory(from),
                length: Length::Zmm,
                masked,
                unit: 8,
                immediate: None,
            },
        );
    }

    /// Loads the lower half of a vector from two places of 16 bytes; the upper half becomes 0.
    pub fn load_half(&mut self, first: Zmm, from: [Mem; 2]) {
        self.half([VMOVDQU64, VINSERTI64X2], first, first.0, from);
    }

    /// Stores the lower half of a vector to two places of 16 bytes.
    pub fn store_half(&mut self, first: Zmm, to: [Mem; 2]) {
        self.half([VMOVDQU64_STORE, VEXTRACTI64X2], first, 0, to);
    }

    /// Emits an instruction on the lowest quarter of a vector and memory, and one on the next
    /// quarter; the latter may have a second operand.
    fn half(&mut self, [lowest, next]: [Vector; 2], first: Zmm, second: u8, [low, high]: [Mem; 2]) {
        for (op, second, at, length, immediate) in [
            (lowest, 0, low, Length::Xmm, None),
            (next, second, high, Length::Ymm, Some(1)),
        ] {
            let fields = Fields {
                reg: first.0,
                second,
                last: Operand::Memory(at),
                length,
                masked: Masked::No,
                unit: 16,
                immediate,
            };
            self.write_evex(op, &fields);
        }
    }

    /// Replaces the upper half of a vector by the lower half of another.
    pub fn set_upper_half(&mut self, first: Zmm, from: Zmm) {
        self.three_with(VINSERTI64X4, first, first, from.into(), 1);
    }

    /// Moves the upper half of a vector to the lower half of another, whose upper half becomes 0.
    pub fn upper_half(&mut self, to: Zmm, from: Zmm) {
        self.evex(VEXTRACTI64X4, from.0, 0, to.into(), Masked::No, Some(1));
    }

    /// Moves a quarter of a vector to the lowest quarter of another, whose other quarters become 0.
    pub fn quarter_to(&mut self, to: Zmm, from: Zmm, quarter: u8) {
        self.evex(VEXTRACTI64X2, from.0, 0, to.into(), Masked::No, Some(quarter));
    }

    /// Stores some bytes of the lowest quarter, by an instruction with a memory destination.
    pub fn store_part(&mut self, op: Vector, first: Zmm, to: Mem, bytes: i32, byte: Option<u8>) {
        self.write_evex(
            op,
            &Fields {
                reg: first.0,
                second: 0,
                last: Operand::Memory(to),
                length: Length::Xmm,
                masked: Masked::No,
                unit: bytes,
                immediate: byte,
            },
        );
    }

    /// `first = second op by`
    pub fn shift(&mut self, op: ShiftBy, first: Zmm, second: Zmm, by: u8) {
        self.evex(op.vector, op.extension, first.0, second.into(), Masked::No, Some(by));
    }

    /// Compares or tests lanes.
    pub fn compare_lanes(&mut self, op: Vector, first: K, second: Zmm, last: Operand, byte: Option<u8>) {
        self.evex(op, first.0, second.0, last, Masked::No, byte);
    }

    /// Gathers eight bytes at `offset` from each address of a vector, for lanes of a mask. The mask
    /// is 0 afterwards.
    pub fn gather(&mut self, first: Zmm, addresses: Zmm, offset: i32, mask: K) {
        let (r, r2) = (first.0 >> 3 & 1 ^ 1, first.0 >> 4 & 1 ^ 1);
        let (x, v2) = (addresses.0 >> 3 & 1 ^ 1, addresses.0 >> 4 & 1 ^ 1);
        let op = VPGATHERQQ;
        self.code.push(0x62);
        self.code.push(r << 7 | x << 6 | 1 << 5 | r2 << 4 | op.map as u8);
        self.code.push(1 << 7 | 0xf << 3 | 1 << 2 | op.prefix as u8);
        self.code.push((Length::Zmm as u8) << 5 | v2 << 3 | mask.0);
        self.code.push(op.opcode);
        // No base: a scaled index and a displacement of four bytes.
        self.code.push((first.0 & 7) << 3 | 4);
        self.code.push((addresses.0 & 7) << 3 | 5);
        self.code.extend_from_slice(&offset.to_le_bytes());
    }

    /// Moves the lowest word of a vector.
    pub fn word_to(&mut self, to: Gpr, from: Zmm) {
        self.move_word(VMOVQ_TO, to, from, None);
    }

    /// Moves the second word of a vector.
    pub fn upper_word_to(&mut self, to: Gpr, from: Zmm) {
        self.move_word(VPEXTRQ, to, from, Some(1));
    }

    fn move_word(&mut self, op: Vector, to: Gpr, from: Zmm, immediate: Option<u8>) {
        self.write_evex(
            op,
            &Fields {
                reg: from.0,
                second: 0,
                last: Operand::Register(Zmm(to.0)),
                length: Length::Xmm,
                masked: Masked::No,
                unit: 8,
                immediate,
            },
        );
    }

    fn evex(&mut self, op: Vector, reg: u8, second: u8, last: Operand, masked: Masked, immediate: Option<u8>) {
        let unit = match last {
            Operand::Broadcast(_) => 8,
            _ => 64,
        };
        self.write_evex(
            op,
            &Fields {
                reg,
                second,
                last,
                length: Length::Zmm,
                masked,
                unit,
                immediate,
            },
        );
    }

    fn write_evex(&mut self, op: Vector, fields: &Fields) {
        let &Fields { reg, second, last, .. } = fields;
        let inverted = |number: u8, bit: u8| number >> bit & 1 ^ 1;
        let (x, b) = match last {
            Operand::Register(Zmm(register)) => (inverted(register, 4), inverted(register, 3)),
            Operand::Memory(mem) | Operand::Broadcast(mem) => match mem {
                Mem::At(base, _) => (1, inverted(base.0, 3)),
                Mem::Pool(_) => (1, 1),
            },
        };
        let (zeroing, mask) = match fields.masked {
            Masked::No => (0, 0),
            Masked::Keep(k) => (0, k.0),
            Masked::Zero(k) => (1, k.0),
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
        self.last_operand(reg, last, fields.unit, fields.immediate.is_some());
        self.code.extend(fields.immediate);
    }

    /// "ModRM", and the bytes that follow it.
    fn last_operand(&mut self, reg: u8, last: Operand, unit: i32, immediate: bool) {
        match last {
            Operand::Register(Zmm(register)) => self.code.push(0xc0 | (reg & 7) << 3 | register & 7),
            Operand::Memory(mem) | Operand::Broadcast(mem) => self.memory(reg, mem, unit, usize::from(immediate)),
        }
    }

    /// "ModRM", "SIB" and displacement of a memory operand. `behind`: bytes of the instruction that
    /// follow.
    fn memory(&mut self, reg: u8, mem: Mem, unit: i32, behind: usize) {
        let reg = (reg & 7) << 3;
        let (base, displacement) = match mem {
            Mem::Pool(constant) => {
                self.code.push(reg | 5);
                let at = self.code.len();
                self.uses.push((at, at + 4 + behind, constant));
                self.code.extend_from_slice(&[0; 4]);
                return;
            }
            Mem::At(base, displacement) => (base, displacement),
        };
        let short = (displacement % unit == 0)
            .then_some(displacement / unit)
            .and_then(|units| i8::try_from(units).ok());
        let mode = match short {
            // With these bases the encoding means another address.
            Some(0) if base.0 & 7 != RBP.0 => 0,
            Some(_) => 1,
            None => 2,
        };
        let needs_sib = base.0 & 7 == RSP.0;
        self.code.push(mode << 6 | reg | if needs_sib { 4 } else { base.0 & 7 });
        if needs_sib {
            self.code.push((RSP.0 & 7) << 3 | base.0 & 7);
        }
        match (mode, short) {
            (0, _) => {}
            (1, Some(units)) => self.code.push(units as u8),
            _ => self.code.extend_from_slice(&displacement.to_le_bytes()),
        }
    }

    /// Clears the upper halves of registers. Otherwise later SSE code is slow.
    pub fn vzeroupper(&mut self) {
        self.code.extend_from_slice(&[0xc5, 0xf8, 0x77]);
    }

    // ------------------------------------------------------------------------- masks

    /// `first = second op third`, on eight bits.
    pub fn mask_op(&mut self, op: MaskOp, first: K, second: K, third: K) {
        self.vex_register(true, second.0, op as u8, first.0, third.0);
    }

    /// `first = !second`, on eight bits.
    pub fn mask_not(&mut self, first: K, second: K) {
        self.vex_register(false, 0, 0x44, first.0, second.0);
    }

    pub fn mask_move(&mut self, first: K, second: K) {
        self.vex_register(false, 0, 0x90, first.0, second.0);
    }

    /// From the lowest byte of a general register.
    pub fn mask_from(&mut self, first: K, from: Gpr) {
        debug_assert!(from.0 < 8, "as the encoding here");
        self.vex_register(false, 0, 0x92, first.0, from.0);
    }

    /// To the lowest byte of a general register; its other bytes become 0.
    pub fn mask_to(&mut self, to: Gpr, from: K) {
        debug_assert!(to.0 < 8, "as the encoding here");
        self.vex_register(false, 0, 0x93, to.0, from.0);
    }

    pub fn mask_load(&mut self, first: K, from: Mem) {
        self.vex_memory(0x90, first.0, from);
    }

    pub fn mask_store(&mut self, from: K, to: Mem) {
        self.vex_memory(0x91, from.0, to);
    }

    /// Tests whether all bits are clear, for [`Condition::Equal`].
    pub fn mask_test(&mut self, mask: K) {
        self.vex_register(false, 0, 0x98, mask.0, mask.0);
    }

    /// An instruction with a two-byte VEX prefix, with prefix 66 and "W" 0.
    fn vex_register(&mut self, long: bool, second: u8, opcode: u8, reg: u8, rm: u8) {
        self.vex(long, second);
        self.code.push(opcode);
        self.code.push(0xc0 | (reg & 7) << 3 | rm & 7);
    }

    fn vex_memory(&mut self, opcode: u8, reg: u8, mem: Mem) {
        if let Mem::At(base, _) = mem {
            debug_assert!(base.0 < 8, "as the encoding here");
        }
        self.vex(false, 0);
        self.code.push(opcode);
        self.memory(reg, mem, 1, 0);
    }

    fn vex(&mut self, long: bool, second: u8) {
        self.code.push(0xc5);
        self.code
            .push(1 << 7 | (!second & 0xf) << 3 | u8::from(long) << 2 | Prefix::P66 as u8);
    }

    // ------------------------------------------------------------------------- general registers

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
        self.shift_general(Prefix::P66, to, from, by);
    }

    /// `to = from >> by`
    pub fn shift_right(&mut self, to: Gpr, from: Gpr, by: Gpr) {
        self.shift_general(Prefix::Pf2, to, from, by);
    }

    fn shift_general(&mut self, prefix: Prefix, to: Gpr, from: Gpr, by: Gpr) {
        debug_assert!(to.0 < 8 && from.0 < 8 && by.0 < 8, "as the encoding here");
        self.code.push(0xc4);
        self.code.push(7 << 5 | Map::M0f38 as u8);
        self.code.push(1 << 7 | (!by.0 & 0xf) << 3 | prefix as u8);
        self.code.push(0xf7);
        self.code.push(0xc0 | to.0 << 3 | from.0);
    }

    /// Zero-extends the lowest byte of a register.
    pub fn lowest_byte(&mut self, register: Gpr) {
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

    pub fn move_to(&mut self, to: Gpr, from: Gpr) {
        self.code.push(0x48 | (from.0 >> 3) << 2 | to.0 >> 3);
        self.code.push(0x89);
        self.code.push(0xc0 | (from.0 & 7) << 3 | to.0 & 7);
    }

    pub fn zero(&mut self, register: Gpr) {
        debug_assert!(register.0 < 8, "as the encoding here");
        self.code.push(0x31);
        self.code.push(0xc0 | register.0 << 3 | register.0);
    }

    /// An operation on a register and an immediate, by its opcode extension: 0 adds, 4 is `and`, 5
    /// subtracts, 7 compares.
    fn with_immediate(&mut self, extension: u8, register: Gpr, value: i32) {
        self.code.push(0x48 | register.0 >> 3);
        match i8::try_from(value) {
            Ok(short) => {
                self.code.push(0x83);
                self.code.push(0xc0 | extension << 3 | register.0 & 7);
                self.code.push(short as u8);
            }
            Err(_) => {
                self.code.push(0x81);
                self.code.push(0xc0 | extension << 3 | register.0 & 7);
                self.code.extend_from_slice(&value.to_le_bytes());
            }
        }
    }

    pub fn add(&mut self, register: Gpr, value: i32) {
        self.with_immediate(0, register, value);
    }

    pub fn and(&mut self, register: Gpr, value: i32) {
        self.with_immediate(4, register, value);
    }

    pub fn subtract(&mut self, register: Gpr, value: i32) {
        self.with_immediate(5, register, value);
    }

    pub fn compare(&mut self, register: Gpr, value: i32) {
        self.with_immediate(7, register, value);
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

    /// Compares the lowest byte of `rax` with a constant.
    pub fn compare_byte_with(&mut self, register: Gpr, value: u8) {
        debug_assert_eq!(register, RAX, "as the encoding here");
        self.code.extend_from_slice(&[0x3c, value]);
    }

    pub fn jump(&mut self, to: Label) {
        self.code.push(0xe9);
        self.distance(to);
    }

    pub fn jump_if(&mut self, condition: Condition, to: Label) {
        self.code.extend_from_slice(&[0x0f, 0x80 | condition as u8]);
        self.distance(to);
    }

    fn distance(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
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
