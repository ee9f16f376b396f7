//! One's complement sums as arithmetic: of what is added to a variable, and taken away from it.

use super::{CHECKSUM, SUM, SUM_WIDTH, Weaver, constant, pseudo};
use weir_ir::{ArgumentValue, Bits, ExternId, InLeaf, Loc, Operand, Rvalue, Terminator, Type, UnaryOp, VarId};

impl Weaver {
    /// The sum of an instance of a checksum.
    pub(crate) fn sum_of(&mut self, instance: ExternId) -> VarId {
        if let Some((_, sum)) = self.sums.iter().find(|(id, _)| *id == instance) {
            return *sum;
        }
        let sum = self.variable("$sum", 16);
        self.sums.push((instance, sum));
        sum
    }

    /// Adds data to a sum of 16 bits, or the complement of each of its words; `None` where it
    /// depends on the packet which bits make a word.
    pub(crate) fn sum_up(&mut self, sum: VarId, data: &[InLeaf], complement: bool, loc: Loc) -> Option<()> {
        // What headers add is summed up before, where they are valid.
        let mut parts = vec![InLeaf::Value(Operand::Var(sum))];
        let mut of_headers = None;
        let mut scalars = Vec::new();
        // Bits so far; `None` after something whose length only the packet knows.
        let mut at = Some(0u32);
        for leaf in data {
            let begin = at?;
            match leaf {
                InLeaf::Value(operand) => {
                    let (operand, width) = self.summand(operand, complement)?;
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
                    let so_far = match of_headers {
                        Some(so_far) => so_far,
                        None => self.begin_sum(),
                    };
                    of_headers = Some(so_far);
                    let otherwise = self.branch(Operand::Var(instance.valid));
                    let mut fields = vec![InLeaf::Value(Operand::Var(so_far))];
                    for field in &instance.fields {
                        let (operand, _) = self.summand(&Operand::Var(*field), complement)?;
                        fields.push(InLeaf::Value(operand));
                    }
                    let sum = pseudo(SUM, Some(ArgumentValue::In(fields)), Some(so_far));
                    self.push(sum, loc);
                    self.go_to(otherwise);
                }
            }
        }
        if complement {
            // The last word is filled up with zeros before it is inverted.
            let missing = (16 - at? % 16) % 16;
            if missing > 0 {
                scalars.push(InLeaf::Value(Operand::Const(Bits::ones(missing))));
            }
        }
        // Before the scalars, which may end with something whose length only the packet knows.
        parts.extend(of_headers.map(|sum| InLeaf::Value(Operand::Var(sum))));
        parts.extend(scalars);
        let total = self.temporary(16);
        let checksum = pseudo(CHECKSUM, Some(ArgumentValue::In(parts)), Some(total));
        self.push(checksum, loc);
        self.assign(sum, Rvalue::Unary(UnaryOp::Not, Operand::Var(total)));
        Some(())
    }

    /// A sum of nothing yet.
    pub(crate) fn begin_sum(&mut self) -> VarId {
        let sum = self.temporary(SUM_WIDTH);
        self.assign(sum, Rvalue::Use(constant(SUM_WIDTH, 0)));
        sum
    }

    /// Goes on in a block, and from here there.
    pub(crate) fn go_to(&mut self, to: weir_ir::BlockId) {
        self.end(Terminator::Goto(to));
        self.at = to;
    }

    /// A scalar or its complement, with its width, which is `None` for a varbit.
    fn summand(&mut self, operand: &Operand, complement: bool) -> Option<(Operand, Option<u32>)> {
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
            Operand::Var(_) => Operand::Var(self.compute(width?, Rvalue::Unary(UnaryOp::Not, operand.clone()))),
        };
        Some((inverted, width))
    }
}
