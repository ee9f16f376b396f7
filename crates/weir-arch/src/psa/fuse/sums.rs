//! `InternetChecksum` as arithmetic: an instance is a variable that holds its one's complement sum.

use super::super::externs::Op;
use super::Builder;
use crate::weave::{constant, pseudo};
use weir_ir::{ArgumentValue, Bits, Call, ExternId, InLeaf, Loc, Operand, Rvalue, Type, UnaryOp, VarId};

impl Builder<'_> {
    /// The sum of an instance.
    fn sum_of(&mut self, instance: ExternId) -> VarId {
        if let Some((_, sum)) = self.sums.iter().find(|(id, _)| *id == instance) {
            return *sum;
        }
        let sum = self.variable("$sum", 16);
        self.sums.push((instance, sum));
        sum
    }

    /// Every block begins with sums of nothing.
    pub(super) fn clear_sums(&mut self) {
        for (_, sum) in self.sums.clone() {
            self.set(Some(sum), 0);
        }
    }

    /// What stands for a call of an instance; `None` where nothing can.
    pub(super) fn internet(&mut self, op: &Op, call: &Call, loc: Loc) -> Option<()> {
        let result = call.results.first().copied();
        match op {
            Op::InternetClear(id) => {
                let sum = self.sum_of(*id);
                self.set(Some(sum), 0);
            }
            Op::InternetSetState(id) => {
                let (sum, state) = (self.sum_of(*id), call.input(0)?.clone());
                self.assign(sum, Rvalue::Use(state));
            }
            Op::InternetState(id) => {
                let sum = self.sum_of(*id);
                self.assign(result?, Rvalue::Use(Operand::Var(sum)));
            }
            Op::InternetGet(id) => {
                let sum = self.sum_of(*id);
                self.assign(result?, Rvalue::Unary(UnaryOp::Not, Operand::Var(sum)));
            }
            Op::InternetAdd(id) => self.add(*id, call.inputs(0), false, loc)?,
            Op::InternetSubtract(id) => self.add(*id, call.inputs(0), true, loc)?,
            _ => return None,
        }
        Some(())
    }

    /// Adds data to a sum, or the complement of each of its words.
    fn add(&mut self, id: ExternId, data: &[InLeaf], complement: bool, loc: Loc) -> Option<()> {
        let sum = self.sum_of(id);
        // What headers add comes from sums of their own, which are made where they are valid.
        let mut parts = vec![InLeaf::Value(Operand::Var(sum))];
        let mut scalars = Vec::new();
        // Bits so far; `None` after something whose length only the packet knows.
        let mut at = Some(0u32);
        for leaf in data {
            let begin = at?;
            match leaf {
                InLeaf::Value(operand) => {
                    let (operand, width) = self.scalar(operand, complement)?;
                    at = width.map(|w| begin + w);
                    scalars.push(InLeaf::Value(operand));
                }
                InLeaf::Header(header) => {
                    let instance = self.header(*header).clone();
                    let ty = &self.program.header_types[instance.ty];
                    let (fixed, varbit) = (ty.fixed_width(), ty.varbit_field().is_some());
                    if !begin.is_multiple_of(16) || !fixed.is_multiple_of(16) {
                        return None;
                    }
                    at = (!varbit).then_some(begin + fixed);
                    // Of 48 bits, so that what comes after lies in the words of the sum as it did.
                    let part = self.temporary(48);
                    self.assign(part, Rvalue::Use(constant(48, 0)));
                    let otherwise = self.branch(Operand::Var(instance.valid));
                    let mut fields = Vec::new();
                    for field in &instance.fields {
                        let (operand, _) = self.scalar(&Operand::Var(*field), complement)?;
                        fields.push(InLeaf::Value(operand));
                    }
                    let sum = pseudo("$internet_sum", Some(ArgumentValue::In(fields)), Some(part));
                    self.push(sum, loc);
                    self.go(otherwise);
                    parts.push(InLeaf::Value(Operand::Var(part)));
                }
            }
        }
        // The words of a complement end with the data.
        if complement && !at?.is_multiple_of(16) {
            return None;
        }
        // Before the scalars, which may end with something whose length only the packet knows.
        parts.extend(scalars);
        let total = self.temporary(16);
        let checksum = pseudo("$internet_checksum", Some(ArgumentValue::In(parts)), Some(total));
        self.push(checksum, loc);
        self.assign(sum, Rvalue::Unary(UnaryOp::Not, Operand::Var(total)));
        Some(())
    }

    /// Goes on in a block, and from here there.
    fn go(&mut self, to: weir_ir::BlockId) {
        self.end(weir_ir::Terminator::Goto(to));
        self.at = to;
    }

    /// A scalar or its complement, with its width, which is `None` for a varbit.
    fn scalar(&mut self, operand: &Operand, complement: bool) -> Option<(Operand, Option<u32>)> {
        let width = match operand {
            Operand::Const(c) => Some(c.width()),
            Operand::Var(v) => match self.program.vars[*v].ty {
                Type::Bits(width) => Some(width),
                Type::Varbit(_) => None,
            },
        };
        if !complement {
            return Some((operand.clone(), width));
        }
        let inverted = match operand {
            Operand::Const(c) => Operand::Const(Bits::not(c)),
            Operand::Var(_) => {
                let inverted = self.temporary(width?);
                self.assign(inverted, Rvalue::Unary(UnaryOp::Not, operand.clone()));
                Operand::Var(inverted)
            }
        };
        Some((inverted, width))
    }
}
