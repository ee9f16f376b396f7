//! CRCs whose parameters control planes set, and where a program uses them.

use crate::{ArgumentValue, Body, ConstValue, InLeaf, InstKind, Loc, Operand, Program};

/// How programs name CRCs whose parameters control planes set.
#[derive(Debug, Clone, Copy)]
pub struct CustomCrcSpec {
    /// The enum of the algorithms that extern functions take.
    pub algorithms: &'static str,
    /// The parameter of extern functions that takes one of them.
    pub parameter: &'static str,
    /// Members of enums of hash algorithms that are such CRCs, each with its width.
    pub members: &'static [(&'static str, u32)],
}

/// A place where a program hashes by a CRC whose parameters control planes set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomCrc {
    /// Its width in bits.
    pub width: u32,
    /// The call, or the instance.
    pub loc: Loc,
}

impl CustomCrcSpec {
    /// Where a program uses such CRCs, in its order: instances of externs that are given one, then
    /// calls of extern functions.
    #[must_use]
    pub fn uses(&self, program: &Program) -> Vec<CustomCrc> {
        let mut found = Vec::new();
        for (_, instance) in program.externs.iter() {
            for (_, argument) in &instance.arguments {
                if let ConstValue::Enum { member, .. } = argument
                    && let Some(width) = self.width_of(member)
                {
                    let loc = instance.loc;
                    found.push(CustomCrc { width, loc });
                }
            }
        }
        let algorithms = program.enums.iter().find(|(_, e)| e.name == self.algorithms);
        if let Some((_, algorithms)) = algorithms {
            let methods = program.externs.iter().flat_map(|(_, e)| &e.methods).map(|m| &m.body);
            for body in program.blocks.iter().map(|b| &b.body).chain(methods) {
                self.of_body(body, &algorithms.members, &mut found);
            }
        }
        found
    }

    /// The widths of such CRCs that a program uses, each once, in ascending order.
    #[must_use]
    pub fn widths(&self, program: &Program) -> Vec<u32> {
        let mut widths: Vec<u32> = self.uses(program).iter().map(|c| c.width).collect();
        widths.sort_unstable();
        widths.dedup();
        widths
    }

    fn of_body(&self, body: &Body, algorithms: &[String], found: &mut Vec<CustomCrc>) {
        for inst in body.blocks.iter().flat_map(|(_, block)| &block.insts) {
            let InstKind::Call(call) = &inst.kind else { continue };
            let argument = call.arguments.iter().find(|a| a.name == self.parameter);
            let Some(ArgumentValue::In(leaves)) = argument.map(|a| &a.value) else {
                continue;
            };
            if let [InLeaf::Value(Operand::Const(value))] = leaves.as_slice()
                && let Some(member) = value.to_u64().and_then(|v| algorithms.get(v as usize))
                && let Some(width) = self.width_of(member)
            {
                found.push(CustomCrc { width, loc: inst.loc });
            }
        }
    }

    fn width_of(&self, algorithm: &str) -> Option<u32> {
        let found = self.members.iter().find(|(member, _)| *member == algorithm);
        found.map(|(_, width)| *width)
    }
}
