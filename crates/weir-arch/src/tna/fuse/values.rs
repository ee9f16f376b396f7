//! Functions of their arguments as arithmetic.

use super::super::externs::Op;
use super::super::math::MathUnit;
use super::Builder;
use crate::pipeline_builder::{constant, pseudo};
use std::sync::Arc;
use weir_ir::{Argument, ArgumentValue, BinaryOp, Call, InLeaf, InstKind, Loc, Operand, Rvalue, VarId};

/// Bits of a machine word.
const WORD: u32 = 64;

/// A call that stands for that of a `MathUnit`; its last argument is the number of its table among
/// those of the pipeline.
pub(super) const MATH: &str = "$math";

impl Builder<'_> {
    fn width_of(&self, operand: &Operand) -> u32 {
        match operand {
            Operand::Var(var) => self.width(*var),
            Operand::Const(value) => value.width(),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: Operand, b: Operand) -> Operand {
        let width = match op {
            BinaryOp::Concat => self.width_of(&a) + self.width_of(&b),
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::LtSigned | BinaryOp::LeSigned => 1,
            _ => self.width_of(&a),
        };
        Operand::Var(self.compute(width, Rvalue::Binary(op, a, b)))
    }

    fn select(&mut self, condition: Operand, then: Operand, otherwise: Operand) -> Operand {
        let width = self.width_of(&then);
        let value = Rvalue::Mux {
            condition,
            then,
            otherwise,
        };
        Operand::Var(self.compute(width, value))
    }

    pub(super) fn extended(&mut self, operand: Operand, width: u32) -> Operand {
        match self.width_of(&operand) == width {
            true => operand,
            false => Operand::Var(self.compute(width, Rvalue::ZeroExtend(operand))),
        }
    }

    fn give(&mut self, call: &Call, value: Operand) {
        if let Some(&result) = call.results.first() {
            let value = match self.width(result) == self.width_of(&value) {
                true => Rvalue::Use(value),
                false => Rvalue::ZeroExtend(value),
            };
            self.assign(result, value);
        }
    }

    /// What such a call gives, where that is arithmetic on words; `None` where the host has to do
    /// it.
    pub(super) fn function(&mut self, op: &Op, call: &Call, loc: Loc) -> Option<()> {
        let value = match op {
            Op::Predicate(comparisons) => self.predicate(comparisons, call)?,
            Op::Math(unit) => self.math(unit, call, loc)?,
            Op::Larger { signed, smaller } => self.larger(*signed, *smaller, call)?,
            Op::Size { bytes } => self.size(*bytes, call)?,
            _ => return None,
        };
        self.give(call, value);
        Some(())
    }

    /// The bit that the comparisons, as bits of a number, are the position of.
    fn predicate(&mut self, comparisons: &[Option<usize>; 4], call: &Call) -> Option<Operand> {
        let mut number = None;
        for at in comparisons {
            let bit = match at {
                Some(at) => call.input(*at)?.clone(),
                None => constant(1, 0),
            };
            number = Some(match number {
                Some(lower) => self.binary(BinaryOp::Concat, bit, lower),
                None => bit,
            });
        }
        Some(self.binary(BinaryOp::Shl, constant(16, 1), number?))
    }

    fn larger(&mut self, signed: bool, smaller: bool, call: &Call) -> Option<Operand> {
        let (a, b) = (call.input(0)?.clone(), call.input(1)?.clone());
        if self.width_of(&a) > WORD || self.width_of(&a) != self.width_of(&b) {
            return None;
        }
        let op = if signed { BinaryOp::LtSigned } else { BinaryOp::Lt };
        let is_less = self.binary(op, a.clone(), b.clone());
        let (then, otherwise) = if smaller { (a, b) } else { (b, a) };
        Some(self.select(is_less, then, otherwise))
    }

    fn size(&mut self, bytes: bool, call: &Call) -> Option<Operand> {
        let leaves = call.inputs(0).iter().map(|leaf| match leaf {
            InLeaf::Value(operand) => Some(self.width_of(operand)),
            InLeaf::Header(_) => None,
        });
        let bits = leaves.sum::<Option<u32>>()?;
        Some(constant(32, if bytes { bits.div_ceil(8) } else { bits }.into()))
    }

    /// What a unit says is in a table, as its argument has no more than four bits that count.
    fn math(&mut self, unit: &MathUnit, call: &Call, loc: Loc) -> Option<Operand> {
        let x = call.input(0)?.clone();
        let width = self.width_of(&x);
        if width > WORD {
            return None;
        }
        let number = self.units.len() as u64;
        self.units.push(Arc::new(unit.values(width)));
        let argument = |operand| Argument {
            name: "data".to_owned(),
            value: ArgumentValue::In(vec![InLeaf::Value(operand)]),
        };
        let result = self.temporary(width);
        if let InstKind::Call(mut math) = pseudo(MATH, None, Some(result)) {
            math.arguments = vec![argument(x), argument(constant(32, number))];
            self.push(InstKind::Call(math), loc);
        }
        Some(Operand::Var(result))
    }

    /// A variable of a counter, moved by what wraps around.
    pub(super) fn moved(&mut self, var: VarId, by: Operand, up: bool) -> Operand {
        let op = if up { BinaryOp::Add } else { BinaryOp::Sub };
        let by = self.extended(by, self.width(var));
        self.binary(op, Operand::Var(var), by)
    }
}
