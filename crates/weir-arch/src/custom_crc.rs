//! Programs that hash by CRCs whose parameters the control plane sets.

use crate::error::place;
use crate::state::State;
use weir_ir::{ArgumentValue, Body, ConstValue, InLeaf, InstKind, Loc, Operand, Program};

/// A place where a program hashes by `crc16_custom` or `crc32_custom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomCrc {
    /// 16 or 32.
    pub width: u32,
    /// The call, or the instance.
    pub loc: Loc,
}

/// Where a program hashes by a custom CRC, in its order: calls of v1model's functions, instances of
/// PSA's externs and
/// selectors.
#[must_use]
pub fn custom_crcs(program: &Program) -> Vec<CustomCrc> {
    let mut found = Vec::new();
    for (_, instance) in program.externs.iter() {
        for (_, argument) in &instance.arguments {
            if let ConstValue::Enum { member, .. } = argument
                && let Some(width) = width_of(member)
            {
                let loc = instance.loc;
                found.push(CustomCrc { width, loc });
            }
        }
    }
    let algorithms = program.enums.iter().find(|(_, e)| e.name == "HashAlgorithm");
    if let Some((_, algorithms)) = algorithms {
        let methods = program.externs.iter().flat_map(|(_, e)| &e.methods).map(|m| &m.body);
        for body in program.blocks.iter().map(|b| &b.body).chain(methods) {
            of_body(body, &algorithms.members, &mut found);
        }
    }
    found
}

/// Warnings for a program that hashes by custom CRCs without parameters: one line for each place.
#[must_use]
pub fn unset_custom_crcs(program: &Program, state: &State) -> Vec<String> {
    let unset = custom_crcs(program)
        .into_iter()
        .filter(|c| !state.has_custom_crc(c.width));
    let line = |CustomCrc { width, loc }| {
        let place = place(program, loc);
        format!(
            "{place}: crc{width}_custom has the parameters of crc{width}: a test or --entries sets others by \
             `set_crc{width}_parameters crc{width}_custom POLYNOMIAL INITIAL XOR_OUT REFLECT_IN REFLECT_OUT`"
        )
    };
    unset.map(line).collect()
}

fn of_body(body: &Body, algorithms: &[String], found: &mut Vec<CustomCrc>) {
    for inst in body.blocks.iter().flat_map(|(_, block)| &block.insts) {
        let InstKind::Call(call) = &inst.kind else { continue };
        let argument = call.arguments.iter().find(|a| a.name == "algo");
        let Some(ArgumentValue::In(leaves)) = argument.map(|a| &a.value) else {
            continue;
        };
        if let [InLeaf::Value(Operand::Const(value))] = leaves.as_slice()
            && let Some(member) = value.to_u64().and_then(|v| algorithms.get(v as usize))
            && let Some(width) = width_of(member)
        {
            found.push(CustomCrc { width, loc: inst.loc });
        }
    }
}

fn width_of(algorithm: &str) -> Option<u32> {
    match algorithm {
        "crc16_custom" | "CRC16_CUSTOM" => Some(16),
        "crc32_custom" | "CRC32_CUSTOM" => Some(32),
        _ => None,
    }
}
