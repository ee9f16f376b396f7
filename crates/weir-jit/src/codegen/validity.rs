//! Packs validity bits of headers into words.
//!
//! A program that adds headers one by one has many validity variables, which are set on some paths
//! and tested at each checksum and emit. There are not enough registers for one each, but there are
//! for all of them packed.

use super::SegmentBuilder;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use std::collections::HashMap;
use weir_ir::VarId;

/// With fewer variables, each has a register.
const MIN_PACKED: usize = 8;

/// The variables that are packed, and their bits.
pub(super) struct Validity {
    words: Vec<Variable>,
    bits: HashMap<VarId, u32>,
}

impl Validity {
    pub fn none() -> Self {
        Validity {
            words: Vec::new(),
            bits: HashMap::new(),
        }
    }
}

impl SegmentBuilder<'_, '_> {
    /// Assigns bits to the validity variables that the segment writes, if there are enough.
    pub(super) fn gather_validity(&mut self) {
        let headers = self.cx.analysis.program().headers.iter();
        let written: Vec<VarId> = headers
            .map(|(_, h)| h.valid)
            .filter(|v| self.written.contains(*v))
            .collect();
        if written.len() < MIN_PACKED {
            return;
        }
        let words = written.len().div_ceil(64);
        self.validity = Validity {
            words: (0..words).map(|_| self.b.declare_var(types::I64)).collect(),
            bits: written.into_iter().zip(0..).collect(),
        };
    }

    /// Marks all headers as invalid.
    pub(super) fn clear_validity(&mut self) {
        let zero = self.imm(0);
        for word in &self.validity.words {
            self.b.def_var(*word, zero);
        }
    }

    fn validity_bit(&self, var: VarId) -> Option<(Variable, u32)> {
        let bit = *self.validity.bits.get(&var)?;
        Some((self.validity.words[bit as usize / 64], bit % 64))
    }

    /// Sets a variable that has a bit; returns whether it has one.
    pub(super) fn set_validity(&mut self, var: VarId, value: Value) -> bool {
        let Some((variable, bit)) = self.validity_bit(var) else {
            return false;
        };
        let word = self.b.use_var(variable);
        let new = if self.known(value) == Some(1) {
            let one = self.imm(1 << bit);
            self.b.ins().bor(word, one)
        } else {
            let others = self.imm(!(1 << bit));
            let rest = self.b.ins().band(word, others);
            match self.known(value) {
                Some(_) => rest,
                None => {
                    let shifted = self.shl_imm(value, bit.into());
                    self.b.ins().bor(rest, shifted)
                }
            }
        };
        self.b.def_var(variable, new);
        true
    }

    /// The value of a variable that has a bit: 0 or 1.
    pub(super) fn get_validity(&mut self, var: VarId) -> Option<Value> {
        let (variable, bit) = self.validity_bit(var)?;
        let word = self.b.use_var(variable);
        let low = self.shr_imm(word, bit.into());
        Some(self.mask(low, 1))
    }
}
