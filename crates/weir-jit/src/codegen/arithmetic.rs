//! Short forms of instructions, which track upper bounds of values to leave out masks.

use super::{SegmentBuilder, flags};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, types};
use weir_ir::Operand;

impl SegmentBuilder<'_, '_> {
    pub fn imm(&mut self, value: u64) -> Value {
        let constant = self.b.ins().iconst(types::I64, value as i64);
        self.bounded(constant, value)
    }

    /// The value, if it is a constant.
    pub fn known(&self, value: Value) -> Option<u64> {
        let inst = self.b.func.dfg.value_def(value).inst()?;
        match self.b.func.dfg.insts[inst] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => Some(imm.bits() as u64),
            _ => None,
        }
    }

    /// Notes an upper bound of a value.
    pub fn bounded(&mut self, value: Value, most: u64) -> Value {
        self.bounds.insert(value, most);
        value
    }

    /// The known upper bound of a value.
    pub fn upper_bound(&self, value: Value) -> u64 {
        self.bounds.get(&value).copied().unwrap_or(u64::MAX)
    }

    pub fn add(&mut self, a: Value, b: Value) -> Value {
        let most = self.upper_bound(a).checked_add(self.upper_bound(b));
        let sum = self.b.ins().iadd(a, b);
        self.bounded(sum, most.unwrap_or(u64::MAX))
    }

    pub fn add_imm(&mut self, value: Value, by: u64) -> Value {
        if by == 0 {
            return value;
        }
        let by = self.imm(by);
        self.add(value, by)
    }

    pub fn shl_imm(&mut self, value: Value, by: u64) -> Value {
        if by == 0 {
            return value;
        }
        let most = self.upper_bound(value);
        let fits = by < 64 && most.leading_zeros() >= by as u32;
        let by_value = self.imm(by);
        let shifted = self.b.ins().ishl(value, by_value);
        self.bounded(shifted, if fits { most << by } else { u64::MAX })
    }

    pub fn shr_imm(&mut self, value: Value, by: u64) -> Value {
        if by == 0 {
            return value;
        }
        let most = self.upper_bound(value);
        let by_value = self.imm(by);
        let shifted = self.b.ins().ushr(value, by_value);
        self.bounded(shifted, most.checked_shr(by as u32).unwrap_or(u64::MAX))
    }

    /// The lowest bits.
    pub fn mask(&mut self, value: Value, width: u32) -> Value {
        if width >= 64 {
            return value;
        }
        let ones = (1u64 << width) - 1;
        if self.upper_bound(value) <= ones {
            return value;
        }
        let mask = self.imm(ones);
        let masked = self.b.ins().band(value, mask);
        self.bounded(masked, ones)
    }

    /// A comparison as 0 or 1.
    pub fn compare(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        let (a, b) = match (cc, self.swapped(a), self.swapped(b)) {
            (IntCC::Equal | IntCC::NotEqual, Some(x), Some(y))
                if self.b.func.dfg.value_type(x) == self.b.func.dfg.value_type(y) =>
            {
                (x, y)
            }
            _ => self.without_mask(cc, a, b).unwrap_or((a, b)),
        };
        let flag = self.b.ins().icmp(cc, a, b);
        let number = self.b.ins().uextend(types::I64, flag);
        self.bounded(number, 1)
    }

    /// The operand of a byte swap and zero extension.
    fn swapped(&self, value: Value) -> Option<Value> {
        let operand = |value: Value, wanted: Opcode| {
            let inst = self.b.func.dfg.value_def(value).inst()?;
            match self.b.func.dfg.insts[inst] {
                InstructionData::Unary { opcode, arg } if opcode == wanted => Some(arg),
                _ => None,
            }
        };
        operand(operand(value, Opcode::Uextend).unwrap_or(value), Opcode::Bswap)
    }

    /// Replaces a comparison of masked low bytes with a constant by one of a narrower register.
    fn without_mask(&mut self, cc: IntCC, a: Value, b: Value) -> Option<(Value, Value)> {
        let unsigned = cc == cc.unsigned();
        let (whole, mask) = self.with_constant(a, Opcode::Band).filter(|_| unsigned)?;
        let constant = self.known(b).filter(|constant| *constant <= mask)?;
        let ty = match mask {
            0xff => types::I8,
            // A 16-bit immediate takes some processors long to decode.
            0xffff if constant < 0x80 => types::I16,
            0xffff_ffff => types::I32,
            _ => return None,
        };
        let narrow = self.b.ins().ireduce(ty, whole);
        Some((narrow, self.b.ins().iconst(ty, constant as i64)))
    }

    /// 1 for 0 and 0 for 1.
    pub fn invert(&mut self, bit: Value) -> Value {
        let zero = self.imm(0);
        self.compare(IntCC::Equal, bit, zero)
    }

    /// A condition: 0 or anything else. One bit of a value is tested there, which takes one
    /// instruction. Many conditions on bits of the same value (an instruction bitmap, packed
    /// validity) then need one register instead of one each.
    pub fn condition(&mut self, operand: &Operand) -> Value {
        let value = self.value(operand);
        let Some((from, bit)) = self.single_bit(value) else {
            return value;
        };
        let mask = self.imm(1 << bit);
        self.b.ins().band(from, mask)
    }

    /// The value of which this is a single bit, shifted down, and the bit's number.
    pub(super) fn single_bit(&self, value: Value) -> Option<(Value, u64)> {
        let shifted = match self.with_constant(value, Opcode::Band) {
            Some((masked, 1)) => masked,
            _ if self.upper_bound(value) == 1 => value,
            _ => return None,
        };
        let shift = self.with_constant(shifted, Opcode::Ushr)?;
        (shift.1 < 64).then_some(shift)
    }

    /// The operands of a value's instruction, if it is this one with a constant.
    pub(super) fn with_constant(&self, value: Value, opcode: Opcode) -> Option<(Value, u64)> {
        let inst = self.b.func.dfg.value_def(value).inst()?;
        match self.b.func.dfg.insts[inst] {
            InstructionData::Binary { opcode: o, args } if o == opcode => Some((args[0], self.known(args[1])?)),
            _ => None,
        }
    }

    pub fn load(&mut self, ty: Type, address: Value, offset: i32) -> Value {
        self.b.ins().load(ty, flags(), address, offset)
    }

    fn packet_flags(&self) -> MemFlagsData {
        match self.may_move {
            true => flags().with_readonly().with_can_move(),
            false => flags(),
        }
    }

    /// Bytes of the packet (1, 2, 4 or 8) as a number in the machine's byte order. The load does
    /// not move.
    pub fn load_packet(&mut self, size: u32, address: Value, offset: i32) -> Value {
        let flags = flags();
        let number = match size {
            8 => self.b.ins().load(types::I64, flags, address, offset),
            4 => self.b.ins().uload32(flags, address, offset),
            2 => self.b.ins().uload16(types::I64, flags, address, offset),
            _ => self.b.ins().uload8(types::I64, flags, address, offset),
        };
        self.bounded(number, u64::MAX >> (64 - 8 * size))
    }

    /// Bytes of the packet in network byte order. The load may move to its uses.
    pub fn load_packet_swapped(&mut self, size: u32, address: Value, offset: i32) -> Value {
        let ty = int_of(size);
        let flags = self.packet_flags();
        let raw = self.b.ins().load(ty, flags, address, offset);
        let swapped = if size == 1 { raw } else { self.b.ins().bswap(raw) };
        let number = match size {
            8 => swapped,
            _ => self.b.ins().uextend(types::I64, swapped),
        };
        self.bounded(number, u64::MAX >> (64 - 8 * size))
    }

    pub fn store(&mut self, value: Value, address: Value, offset: i32) {
        self.b.ins().store(flags(), value, address, offset);
    }
}

/// The type of this many bytes.
fn int_of(size: u32) -> Type {
    match size {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}
