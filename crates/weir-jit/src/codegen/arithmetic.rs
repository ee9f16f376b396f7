//! Short forms of instructions.

use super::{Segment, flags};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};

impl Segment<'_, '_> {
    pub fn imm(&mut self, value: u64) -> Value {
        self.b.ins().iconst(types::I64, value as i64)
    }

    pub fn add_imm(&mut self, value: Value, by: u64) -> Value {
        if by == 0 {
            return value;
        }
        let by = self.imm(by);
        self.b.ins().iadd(value, by)
    }

    pub fn shl_imm(&mut self, value: Value, by: u64) -> Value {
        if by == 0 {
            return value;
        }
        let by = self.imm(by);
        self.b.ins().ishl(value, by)
    }

    pub fn shr_imm(&mut self, value: Value, by: u64) -> Value {
        if by == 0 {
            return value;
        }
        let by = self.imm(by);
        self.b.ins().ushr(value, by)
    }

    /// The lowest bits.
    pub fn mask(&mut self, value: Value, width: u32) -> Value {
        if width >= 64 {
            return value;
        }
        let ones = self.imm((1u64 << width) - 1);
        self.b.ins().band(value, ones)
    }

    /// A comparison as 0 or 1.
    pub fn compare(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        let flag = self.b.ins().icmp(cc, a, b);
        self.b.ins().uextend(types::I64, flag)
    }

    pub fn load(&mut self, ty: Type, address: Value, offset: i32) -> Value {
        self.b.ins().load(ty, flags(), address, offset)
    }

    pub fn store(&mut self, value: Value, address: Value, offset: i32) {
        self.b.ins().store(flags(), value, address, offset);
    }
}
