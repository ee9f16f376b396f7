//! Other variables and headers in place of those that an instruction names.

use super::operands::replace_in_terminator;
use crate::program::*;
use std::collections::HashMap;

/// A substitution of variables and headers.
#[derive(Debug, Clone, Default)]
pub struct Renaming {
    vars: HashMap<VarId, VarId>,
    headers: HashMap<HeaderId, HeaderId>,
}

impl Renaming {
    /// Header `to`, with its validity and its fields, stands for `from`. They must have equal
    /// layouts.
    pub fn header(&mut self, program: &Program, from: HeaderId, to: HeaderId) {
        let (a, b) = (&program.headers[from], &program.headers[to]);
        self.headers.insert(from, to);
        self.vars.insert(a.valid, b.valid);
        self.vars.extend(a.fields.iter().copied().zip(b.fields.iter().copied()));
    }

    /// The substitute of a variable.
    #[must_use]
    pub fn var(&self, var: VarId) -> VarId {
        self.vars.get(&var).copied().unwrap_or(var)
    }

    /// The substitute of a header.
    #[must_use]
    pub fn header_of(&self, header: HeaderId) -> HeaderId {
        self.headers.get(&header).copied().unwrap_or(header)
    }

    fn operand(&self, operand: &mut Operand) {
        if let Operand::Var(v) = operand {
            *v = self.var(*v);
        }
    }

    fn argument(&self, value: &mut ArgumentValue) {
        match value {
            ArgumentValue::In(leaves) => {
                for leaf in leaves {
                    match leaf {
                        InLeaf::Value(o) => self.operand(o),
                        InLeaf::Header(h) => *h = self.header_of(*h),
                    }
                }
            }
            ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) => vars.iter_mut().for_each(|v| *v = self.var(*v)),
            ArgumentValue::String(_) | ArgumentValue::Extern(_) | ArgumentValue::Packet => {}
        }
    }

    /// The instruction with other names.
    #[must_use]
    pub fn inst(&self, kind: &InstKind) -> InstKind {
        let mut kind = kind.clone();
        match &mut kind {
            InstKind::Assign { dst, value } => {
                *dst = self.var(*dst);
                value.operands_mut().for_each(|o| self.operand(o));
            }
            InstKind::Extract { header, varbit_bits } => {
                *header = self.header_of(*header);
                varbit_bits.iter_mut().for_each(|o| self.operand(o));
            }
            InstKind::Emit { header } => *header = self.header_of(*header),
            InstKind::Lookahead { dst, .. } | InstKind::PacketLength { dst } => *dst = self.var(*dst),
            InstKind::Advance { bits } => self.operand(bits),
            InstKind::Call(call) => {
                call.arguments.iter_mut().for_each(|a| self.argument(&mut a.value));
                call.results.iter_mut().for_each(|v| *v = self.var(*v));
                call.entry = call.entry.map(|v| self.var(v));
            }
            InstKind::Mark(_) => {}
        }
        kind
    }

    /// The end of a block with other names.
    #[must_use]
    pub fn terminator(&self, terminator: &Terminator) -> Terminator {
        let mut terminator = terminator.clone();
        replace_in_terminator(&mut terminator, |operand| {
            self.operand(operand);
            true
        });
        terminator
    }
}
