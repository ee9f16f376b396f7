//! CRCs whose parameters control planes set, and where a program uses them.
//!
//! A *calculation* is one call, in the source, of a function that hashes. Lowering numbers the
//! calculations of a program, and [`calculation_name`] is what control planes call them.

use crate::{ArgumentValue, Body, Call, ConstValue, InLeaf, InstKind, Loc, Operand, Program};
use std::collections::{BTreeMap, BTreeSet};

/// How programs name CRCs whose parameters control planes set.
#[derive(Debug, Clone, Copy)]
pub struct CustomCrcSpec {
    /// The enum of the algorithms that extern functions take.
    pub algorithms: &'static str,
    /// The parameter of extern functions that takes one of them.
    pub parameter: &'static str,
    /// Members of enums of hash algorithms that are such CRCs, each with its width.
    pub members: &'static [(&'static str, u32)],
    /// The extern functions whose calls are calculations: those of the first group are numbered
    /// first. Within a group the order of the text counts.
    pub functions: &'static [&'static [&'static str]],
}

/// A place where a program hashes by a CRC whose parameters control planes set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomCrc {
    /// Its width in bits.
    pub width: u32,
    /// The calculation, where it is one.
    pub calculation: Option<u32>,
    /// The call, or the instance.
    pub loc: Loc,
}

/// A call that hashes, once for each call in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calculation<'p> {
    /// Its number.
    pub number: u32,
    /// The member of the enum of algorithms; `None` where a variable says it.
    pub algorithm: Option<&'p str>,
    /// Bits of the CRC, if its parameters are set by control planes.
    pub custom_width: Option<u32>,
}

/// The name of a calculation: `calc`, then `calc_0`, `calc_1` and so on.
#[must_use]
pub fn calculation_name(number: u32) -> String {
    match number.checked_sub(1) {
        None => "calc".to_owned(),
        Some(suffix) => format!("calc_{suffix}"),
    }
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
                    found.push(CustomCrc {
                        width,
                        calculation: None,
                        loc: instance.loc,
                    });
                }
            }
        }
        let algorithms = self.algorithms(program);
        for (call, loc) in bodies(program).flat_map(calls) {
            if let Some(member) = self.algorithm(call, algorithms)
                && let Some(width) = self.width_of(member)
            {
                found.push(CustomCrc {
                    width,
                    calculation: call.calculation,
                    loc,
                });
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

    /// The calculations of a program, in the order of their numbers.
    #[must_use]
    pub fn calculations<'p>(&self, program: &'p Program) -> Vec<Calculation<'p>> {
        let algorithms = self.algorithms(program);
        let mut found = BTreeMap::new();
        for (call, _) in bodies(program).flat_map(calls) {
            let Some(number) = call.calculation else { continue };
            let algorithm = self.algorithm(call, algorithms);
            found.entry(number).or_insert(Calculation {
                number,
                algorithm,
                custom_width: algorithm.and_then(|a| self.width_of(a)),
            });
        }
        found.into_values().collect()
    }

    /// Whether a call of an extern function is a calculation.
    #[must_use]
    pub fn is_calculation(&self, function: &str) -> bool {
        self.group(function).is_some()
    }

    /// Numbers the calculations of a program from 0 on, in place of numbers that are in the order
    /// of the text.
    pub fn number(&self, program: &mut Program) {
        let key = |call: &Call| Some((self.group(&call.function)?, call.calculation?));
        let keys: BTreeSet<_> = bodies(program)
            .flat_map(calls)
            .filter_map(|(call, _)| key(call))
            .collect();
        let numbers: BTreeMap<_, u32> = keys.into_iter().zip(0..).collect();
        let methods = program.externs.iter_mut().flat_map(|(_, e)| &mut e.methods);
        let bodies = program.blocks.iter_mut().map(|b| &mut b.body);
        for body in bodies.chain(methods.map(|m| &mut m.body)) {
            for inst in body.blocks.iter_mut().flat_map(|(_, block)| &mut block.insts) {
                if let InstKind::Call(call) = &mut inst.kind {
                    call.calculation = key(call).and_then(|key| numbers.get(&key).copied());
                }
            }
        }
    }

    fn group(&self, function: &str) -> Option<usize> {
        self.functions.iter().position(|group| group.contains(&function))
    }

    fn algorithms<'p>(&self, program: &'p Program) -> &'p [String] {
        let found = program.enums.iter().find(|(_, e)| e.name == self.algorithms);
        found.map_or(&[], |(_, e)| &e.members)
    }

    /// The algorithm that a call is given as a constant.
    fn algorithm<'p>(&self, call: &Call, algorithms: &'p [String]) -> Option<&'p str> {
        let argument = call.arguments.iter().find(|a| a.name == self.parameter);
        let ArgumentValue::In(leaves) = &argument?.value else {
            return None;
        };
        let [InLeaf::Value(Operand::Const(value))] = leaves.as_slice() else {
            return None;
        };
        let member = value.to_u64().and_then(|v| algorithms.get(v as usize));
        member.map(String::as_str)
    }

    fn width_of(&self, algorithm: &str) -> Option<u32> {
        let found = self.members.iter().find(|(member, _)| *member == algorithm);
        found.map(|(_, width)| *width)
    }
}

fn bodies(program: &Program) -> impl Iterator<Item = &Body> {
    let methods = program.externs.iter().flat_map(|(_, e)| &e.methods);
    let bodies = program.blocks.iter().map(|b| &b.body);
    bodies.chain(methods.map(|m| &m.body))
}

fn calls(body: &Body) -> impl Iterator<Item = (&Call, Loc)> {
    let insts = body.blocks.iter().flat_map(|(_, block)| &block.insts);
    insts.filter_map(|inst| Some((inst.kind.call()?, inst.loc)))
}
