//! Pure extern functions as arithmetic on words: predicates, `MathUnit`, minimum and maximum,
//! sizes.
//!
//! Functions with operands of more than 64 bits stay calls of the host.

use super::super::externs::ExternOp;
use super::super::math::MathUnit;
use super::Builder;
use crate::pipeline_builder::{constant, pseudo};
use std::sync::Arc;
use weir_ir::{Argument, ArgumentValue, BinaryOp, Call, InLeaf, InstKind, Loc, Operand, Rvalue, VarId};

/// Bits of a machine word.
const WORD_BITS: u32 = 64;

/// The function of calls that apply a `MathUnit`. The last argument is the index in
/// `Builder::math_tables`.
pub(super) const MATH: &str = "$math";

impl Builder<'_> {
    /// The width of an operand in bits.
    fn width_of(&self, operand: &Operand) -> u32 {
        match operand {
            Operand::Var(var) => self.width(*var),
            Operand::Const(value) => value.width(),
        }
    }

    /// A binary operation as an operand.
    fn binary(&mut self, op: BinaryOp, a: Operand, b: Operand) -> Operand {
        let width = match op {
            BinaryOp::Concat => self.width_of(&a) + self.width_of(&b),
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::LtSigned | BinaryOp::LeSigned => 1,
            _ => self.width_of(&a),
        };
        Operand::Var(self.compute(width, Rvalue::Binary(op, a, b)))
    }

    /// `then` if the condition is 1, else `otherwise`.
    fn select(&mut self, condition: Operand, then: Operand, otherwise: Operand) -> Operand {
        let width = self.width_of(&then);
        let value = Rvalue::Mux {
            condition,
            then,
            otherwise,
        };
        Operand::Var(self.compute(width, value))
    }

    /// The operand, zero-extended to `width` bits.
    pub(super) fn extended(&mut self, operand: Operand, width: u32) -> Operand {
        match self.width_of(&operand) == width {
            true => operand,
            false => Operand::Var(self.compute(width, Rvalue::ZeroExtend(operand))),
        }
    }

    /// Assigns a value to the call's result, if it has one.
    fn assign_result(&mut self, call: &Call, value: Operand) {
        if let Some(&result) = call.results.first() {
            let value = match self.width(result) == self.width_of(&value) {
                true => Rvalue::Use(value),
                false => Rvalue::ZeroExtend(value),
            };
            self.assign(result, value);
        }
    }

    /// Appends a call as arithmetic. `None`: it has to be a call of the host.
    pub(super) fn arithmetic_call(&mut self, op: &ExternOp, call: &Call, loc: Loc) -> Option<()> {
        let value = match op {
            ExternOp::Predicate(comparisons) => self.predicate(comparisons, call)?,
            ExternOp::Math(unit) => self.math_unit(unit, call, loc)?,
            ExternOp::MinMax { signed, is_min } => self.min_or_max(*signed, *is_min, call)?,
            ExternOp::SizeOf { bytes } => self.size(*bytes, call)?,
            _ => return None,
        };
        self.assign_result(call, value);
        Some(())
    }

    /// A 16-bit one-hot value. The comparisons' results, as a 4-bit number, are the position of its
    /// bit.
    fn predicate(&mut self, comparisons: &[Option<usize>; 4], call: &Call) -> Option<Operand> {
        let mut number = None;
        for argument in comparisons {
            let bit = match argument {
                Some(argument) => call.input(*argument)?.clone(),
                None => constant(1, 0),
            };
            number = Some(match number {
                Some(lower) => self.binary(BinaryOp::Concat, bit, lower),
                None => bit,
            });
        }
        Some(self.binary(BinaryOp::Shl, constant(16, 1), number?))
    }

    /// The larger of two arguments, or the smaller.
    fn min_or_max(&mut self, signed: bool, is_min: bool, call: &Call) -> Option<Operand> {
        let (a, b) = (call.input(0)?.clone(), call.input(1)?.clone());
        if self.width_of(&a) > WORD_BITS || self.width_of(&a) != self.width_of(&b) {
            return None;
        }
        let op = if signed { BinaryOp::LtSigned } else { BinaryOp::Lt };
        let is_less = self.binary(op, a.clone(), b.clone());
        let (then, otherwise) = if is_min { (a, b) } else { (b, a) };
        Some(self.select(is_less, then, otherwise))
    }

    /// The size of the argument in bits, or in bytes.
    fn size(&mut self, bytes: bool, call: &Call) -> Option<Operand> {
        let leaves = call.inputs(0).iter().map(|leaf| match leaf {
            InLeaf::Value(operand) => Some(self.width_of(operand)),
            InLeaf::Header(_) => None,
        });
        let bits = leaves.sum::<Option<u32>>()?;
        Some(constant(32, if bytes { bits.div_ceil(8) } else { bits }.into()))
    }

    /// Applies a `MathUnit` by a lookup table: at most four bits of an argument matter.
    fn math_unit(&mut self, unit: &MathUnit, call: &Call, loc: Loc) -> Option<Operand> {
        let x = call.input(0)?.clone();
        let width = self.width_of(&x);
        if width > WORD_BITS {
            return None;
        }
        let number = self.math_tables.len() as u64;
        self.math_tables.push(Arc::new(unit.values(width)));
        let argument = |operand| Argument {
            name: "data".to_owned(),
            value: ArgumentValue::In(vec![InLeaf::Value(operand)]),
        };
        let result = self.temporary(width);
        if let InstKind::Call(mut call) = pseudo(MATH, None, Some(result)) {
            call.arguments = vec![argument(x), argument(constant(32, number))];
            self.push(InstKind::Call(call), loc);
        }
        Some(Operand::Var(result))
    }

    /// A variable plus or minus an operand, modulo its width.
    pub(super) fn add_or_subtract(&mut self, var: VarId, by: Operand, is_addition: bool) -> Operand {
        let op = if is_addition { BinaryOp::Add } else { BinaryOp::Sub };
        let by = self.extended(by, self.width(var));
        self.binary(op, Operand::Var(var), by)
    }
}
