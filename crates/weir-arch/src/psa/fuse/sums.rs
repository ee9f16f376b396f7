//! `InternetChecksum` as arithmetic: an instance is a variable that holds its one's complement sum.

use super::super::externs::Op;
use super::Builder;
use weir_ir::{Call, Loc, Operand, Rvalue, UnaryOp};

impl Builder<'_> {
    /// Resets all sums, as every programmable block begins with empty ones.
    pub(super) fn clear_sums(&mut self) {
        for (_, sum) in self.sums.clone() {
            self.set(Some(sum), 0);
        }
    }

    /// Lowers a call of an instance; `None` if it cannot be lowered.
    pub(super) fn internet(&mut self, op: &Op, call: &Call, loc: Loc) -> Option<()> {
        let result = call.results.first().copied();
        match op {
            Op::InternetClear(id) => {
                let sum = self.checksum_variable(*id);
                self.set(Some(sum), 0);
            }
            Op::InternetSetState(id) => {
                let (sum, state) = (self.checksum_variable(*id), call.input(0)?.clone());
                self.assign(sum, Rvalue::Use(state));
            }
            Op::InternetState(id) => {
                let sum = self.checksum_variable(*id);
                self.assign(result?, Rvalue::Use(Operand::Var(sum)));
            }
            Op::InternetGet(id) => {
                let sum = self.checksum_variable(*id);
                self.assign(result?, Rvalue::Unary(UnaryOp::Not, Operand::Var(sum)));
            }
            Op::InternetAdd(id) => {
                let sum = self.checksum_variable(*id);
                self.add_leaves(sum, call.inputs(0), false, loc)?;
            }
            Op::InternetSubtract(id) => {
                let sum = self.checksum_variable(*id);
                self.add_leaves(sum, call.inputs(0), true, loc)?;
            }
            _ => return None,
        }
        Some(())
    }
}
