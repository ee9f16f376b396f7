//! The cost of code, for limits on the work that one packet causes.
//!
//! The unit is an instruction on values of up to 64 bits. Costs are rough. Engines stop a packet
//! after about the same work, not at the same instruction: they run different code.

use crate::arena::Arena;
use crate::program::*;

/// The cost of an instruction: 1; on wider values the number of their 64-bit words, or its square
/// for a product, a quotient or a remainder. A call costs as many units as its inputs have words,
/// an instruction on a header one for each eight fields.
#[must_use]
pub fn instruction(program: &Program, kind: &InstKind) -> u32 {
    match kind {
        InstKind::Assign { dst, value } => {
            let operands = value.operands().map(|o| operand_width(&program.vars, o));
            let words = words(operands.fold(program.vars[*dst].ty.width(), u32::max));
            match value {
                Rvalue::Binary(BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod, ..) => words.saturating_mul(words),
                _ => words,
            }
        }
        InstKind::Call(call) => {
            let leaves = call.arguments.iter().filter_map(|argument| match &argument.value {
                ArgumentValue::In(leaves) => Some(leaves),
                _ => None,
            });
            let costs = leaves.flatten().map(|leaf| match leaf {
                InLeaf::Value(operand) => words(operand_width(&program.vars, operand)),
                InLeaf::Header(header) => {
                    let fields = program.headers[*header].fields.iter();
                    fields.map(|field| words(program.vars[*field].ty.width())).sum()
                }
            });
            costs.fold(0, u32::saturating_add).max(1)
        }
        InstKind::Extract { header, .. } | InstKind::Emit { header } => {
            let fields = program.headers[*header].fields.len();
            1 + u32::try_from(fields / 8).unwrap_or(u32::MAX - 1)
        }
        InstKind::Lookahead { dst, .. } => words(program.vars[*dst].ty.width()),
        InstKind::Advance { .. } | InstKind::PacketLength { .. } | InstKind::Mark(_) => 1,
    }
}

/// The cost of the end of a basic block: 1; for a `select` one more for each eight words of its
/// patterns, for a lookup one for each word of its keys and, if these have masks or ranges, one for
/// each 64 entries that the table has room for, up to [`MOST_PER_LOOKUP`].
#[must_use]
pub fn terminator(program: &Program, terminator: &Terminator) -> u32 {
    let of_keys = |keys: &[Operand]| {
        let widths = keys.iter().map(|key| words(operand_width(&program.vars, key)));
        widths.fold(0, u32::saturating_add)
    };
    match terminator {
        Terminator::Select { keys, cases, .. } => {
            let cases = u32::try_from(cases.len()).unwrap_or(u32::MAX);
            1 + of_keys(keys).saturating_mul(cases) / 8
        }
        Terminator::Lookup(lookup) => {
            let entries = searched_entries(&program.tables[lookup.table]);
            of_keys(&lookup.keys).max(1)
                + u32::try_from(entries / 64).map_or(MOST_PER_LOOKUP, |n| n.min(MOST_PER_LOOKUP))
        }
        Terminator::Goto(_)
        | Terminator::Branch { .. }
        | Terminator::Switch { .. }
        | Terminator::Accept
        | Terminator::Reject
        | Terminator::Return
        | Terminator::Suspend(_)
        | Terminator::Exit(_) => 1,
    }
}

/// The most that the entries of a table add to the cost of a lookup.
pub const MOST_PER_LOOKUP: u32 = 1000;

/// Entries that a lookup may have to compare one by one: all that a table with masks or ranges has
/// room for.
fn searched_entries(table: &Table) -> u64 {
    let is_searched = |key: &Key| match key.match_kind {
        MatchKind::Ternary | MatchKind::Range | MatchKind::Optional => true,
        MatchKind::Exact | MatchKind::Lpm | MatchKind::Selector => false,
    };
    match table.keys.iter().any(is_searched) {
        true => table.capacity().max(table.entries.len() as u64),
        false => 0,
    }
}

/// The cost of a basic block: of its instructions and of its end.
#[must_use]
pub fn block(program: &Program, block: &BasicBlock) -> u32 {
    let costs = block.insts.iter().map(|inst| instruction(program, &inst.kind));
    costs.fold(terminator(program, &block.terminator), u32::saturating_add)
}

/// 64-bit words of patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PatternWords {
    /// Of exact patterns.
    pub exact: u64,
    /// Of masks and ranges, as many as their keys have.
    pub masked: u64,
}

/// The size of the patterns of a body's `select`s.
#[must_use]
pub fn pattern_words(program: &Program, body: &Body) -> PatternWords {
    let mut found = PatternWords::default();
    for (_, block) in body.blocks.iter() {
        let Terminator::Select { keys, cases, .. } = &block.terminator else {
            continue;
        };
        for (key, pattern) in cases.iter().flat_map(|case| keys.iter().zip(&case.patterns)) {
            let words = u64::from(words(operand_width(&program.vars, key)));
            match pattern {
                Pattern::Exact(_) => found.exact += words,
                Pattern::Mask(..) | Pattern::Range(..) => found.masked += words,
                Pattern::Any | Pattern::ValueSet(_) => {}
            }
        }
    }
    found
}

/// The additional cost of arithmetic on more than 64 bits and of long lists of patterns in a basic
/// block.
#[must_use]
pub fn wide(program: &Program, block: &BasicBlock) -> u32 {
    let costs = block.insts.iter().map(|inst| instruction(program, &inst.kind) - 1);
    costs.fold(terminator(program, &block.terminator) - 1, u32::saturating_add)
}

fn operand_width(vars: &Arena<Var>, operand: &Operand) -> u32 {
    match operand {
        Operand::Var(var) => vars[*var].ty.width(),
        Operand::Const(bits) => bits.width(),
    }
}

/// 64-bit words of a value; 1 at least.
fn words(width: u32) -> u32 {
    width.div_ceil(64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    #[test]
    fn wide_arithmetic_costs_its_words_and_products_their_square() {
        let text = r#"weir 2 target "none"
var %0 "narrow" : bits<64> unsigned local
var %1 "wide" : bits<257> unsigned local
main
block "ingress" control "I" {
  b0:
    %0:narrow = mul %0:narrow, %0:narrow
    %1:wide = add %1:wide, %1:wide
    %1:wide = mul %1:wide, %1:wide
    return
}
"#;
        let program = parse(text).unwrap();
        let code = &program.blocks[0].body.blocks[BlockId::new(0)];
        let costs: Vec<u32> = code.insts.iter().map(|i| instruction(&program, &i.kind)).collect();
        assert_eq!(costs, [1, 5, 25]);
        assert_eq!((block(&program, code), wide(&program, code)), (32, 28));
    }
}
