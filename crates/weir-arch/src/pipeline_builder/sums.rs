//! Emits incremental one's complement sums (RFC 1071): adding data to a checksum extern's sum, and
//! subtracting it.
//!
//! A sum becomes calls of `Pseudo::Sum` and `Pseudo::Checksum`; `join_sums` merges them later.

use super::{CHECKSUM, PipelineBuilder, SUM, SUM_WIDTH, constant, pseudo};
use weir_ir::{ArgumentValue, Bits, ExternId, InLeaf, Loc, Operand, Rvalue, Terminator, Type, UnaryOp, VarId};

impl PipelineBuilder {
    /// The variable that holds the sum of a checksum extern's instance.
    pub(crate) fn checksum_variable(&mut self, instance: ExternId) -> VarId {
        if let Some((_, sum)) = self.sums.iter().find(|(id, _)| *id == instance) {
            return *sum;
        }
        let sum = self.variable("$sum", 16);
        self.sums.push((instance, sum));
        sum
    }

    /// Adds data to a 16-bit sum, or subtracts it: `complement` adds the complement of each word.
    /// `None` if the alignment of the data to 16-bit words depends on the packet.
    pub(crate) fn add_leaves(&mut self, sum: VarId, data: &[InLeaf], complement: bool, loc: Loc) -> Option<()> {
        // Headers are summed first, each in a branch where it is valid.
        let mut parts = vec![InLeaf::Value(Operand::Var(sum))];
        let mut of_headers = None;
        let mut scalars = Vec::new();
        // Bits so far; `None` after data of variable length.
        let mut bit_offset = Some(0u32);
        for leaf in data {
            let begin = bit_offset?;
            match leaf {
                InLeaf::Value(operand) => {
                    let (operand, width) = self.summand(operand, complement)?;
                    bit_offset = width.map(|w| begin + w);
                    scalars.push(InLeaf::Value(operand));
                }
                InLeaf::Header(header) => {
                    let instance = self.header(*header).clone();
                    let ty = &self.program.header_types[instance.ty];
                    let (fixed, varbit) = (ty.fixed_width(), ty.varbit_field().is_some());
                    if !begin.is_multiple_of(16) || !fixed.is_multiple_of(16) {
                        return None;
                    }
                    bit_offset = (!varbit).then_some(begin + fixed);
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
                    self.jump_to(otherwise);
                }
            }
        }
        if complement {
            // The last word is padded with zeros before it is inverted.
            let missing = (16 - bit_offset? % 16) % 16;
            if missing > 0 {
                scalars.push(InLeaf::Value(Operand::Const(Bits::ones(missing))));
            }
        }
        // Before the scalars, the last of which may have a variable length.
        parts.extend(of_headers.map(|sum| InLeaf::Value(Operand::Var(sum))));
        parts.extend(scalars);
        let total = self.temporary(16);
        let checksum = pseudo(CHECKSUM, Some(ArgumentValue::In(parts)), Some(total));
        self.push(checksum, loc);
        self.assign(sum, Rvalue::Unary(UnaryOp::Not, Operand::Var(total)));
        Some(())
    }

    /// A sum with the value 0.
    pub(crate) fn begin_sum(&mut self) -> VarId {
        let sum = self.temporary(SUM_WIDTH);
        self.assign(sum, Rvalue::Use(constant(SUM_WIDTH, 0)));
        sum
    }

    /// Jumps to a basic block and moves the cursor there.
    pub(crate) fn jump_to(&mut self, to: weir_ir::BlockId) {
        self.terminate(Terminator::Goto(to));
        self.cursor = to;
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
