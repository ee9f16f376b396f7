//! What code costs to run, for limits on the work that one packet causes.
//!
//! The unit is an instruction on values of up to 64 bits. Costs are rough, and the same for every
//! engine: an engine that charges them stops a packet after about the same work as any other.

use crate::arena::Arena;
use crate::program::*;

/// The cost of an instruction: 1; on wider values the number of their 64-bit words, or its square for
/// a product, a quotient or a remainder. A call costs as many units as its inputs have words.
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
        InstKind::Extract { .. }
        | InstKind::Lookahead { .. }
        | InstKind::Advance { .. }
        | InstKind::PacketLength { .. }
        | InstKind::Emit { .. }
        | InstKind::Mark(_) => 1,
    }
}

/// The cost of a basic block: of its instructions, and 1 for its end.
#[must_use]
pub fn block(program: &Program, block: &BasicBlock) -> u32 {
    let costs = block.insts.iter().map(|inst| instruction(program, &inst.kind));
    costs.fold(1, u32::saturating_add)
}

/// What wide arithmetic adds to the cost of a basic block.
#[must_use]
pub fn wide(program: &Program, block: &BasicBlock) -> u32 {
    let costs = block.insts.iter().map(|inst| instruction(program, &inst.kind) - 1);
    costs.fold(0, u32::saturating_add)
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
        let text = r#"weir 1 target "none"
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
