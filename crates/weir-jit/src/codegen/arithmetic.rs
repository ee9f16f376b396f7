//! Short forms of instructions.

use super::{Segment, flags};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, types};

impl Segment<'_, '_> {
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

    /// Notes that a value is at most this.
    pub fn bounded(&mut self, value: Value, most: u64) -> Value {
        self.bounds.insert(value, most);
        value
    }

    /// The most that a value can be, as far as is known.
    pub fn most(&self, value: Value) -> u64 {
        self.bounds.get(&value).copied().unwrap_or(u64::MAX)
    }

    pub fn add(&mut self, a: Value, b: Value) -> Value {
        let most = self.most(a).checked_add(self.most(b));
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
        let most = self.most(value);
        let fits = by < 64 && most.leading_zeros() >= by as u32;
        let by_value = self.imm(by);
        let shifted = self.b.ins().ishl(value, by_value);
        self.bounded(shifted, if fits { most << by } else { u64::MAX })
    }

    pub fn shr_imm(&mut self, value: Value, by: u64) -> Value {
        if by == 0 {
            return value;
        }
        let most = self.most(value);
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
        if self.most(value) <= ones {
            return value;
        }
        let mask = self.imm(ones);
        let masked = self.b.ins().band(value, mask);
        self.bounded(masked, ones)
    }

    /// A comparison as 0 or 1.
    pub fn compare(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        let flag = self.b.ins().icmp(cc, a, b);
        let number = self.b.ins().uextend(types::I64, flag);
        self.bounded(number, 1)
    }

    /// 1 for 0 and 0 for 1.
    pub fn invert(&mut self, bit: Value) -> Value {
        let zero = self.imm(0);
        self.compare(IntCC::Equal, bit, zero)
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

    /// Bytes of the packet (1, 2, 4 or 8) as a number in the machine's order, for what needs it at once.
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

    /// Bytes of the packet in the order of the network, whoever needs them.
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

/// The type of so many bytes.
fn int_of(size: u32) -> Type {
    match size {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}
