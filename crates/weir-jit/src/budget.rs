//! Limits the memory and time of a compilation, and the work of a packet outside of loops, so that
//! a program pushed by a control plane cannot put the running switch at risk.
//!
//! The need is estimated from the fused and folded body, before the analyses and the code generator
//! allocate what they keep per block, instruction and header. The factors are measurements rounded
//! up (docs/internals/lab-notes.md). Folding itself copies no more than the body has
//! ([`weir_ir::passes::fold_paths`]). Time is not limited: register allocation takes time
//! quadratic in the number of values live in one block.

use crate::error::CompileError;
use weir_ir::cost;
use weir_ir::pipeline::Pipeline;

/// Most bytes that a compilation may need, as estimated.
pub(crate) const LIMIT: u64 = 512 << 20;

/// Per instruction: code generation, twice (for one packet, and for eight).
const PER_INSTRUCTION: u64 = 6 << 10;
/// Per block of instructions.
const PER_BLOCK: u64 = 45 << 10;
/// Per header and block: the header's dataflow state.
const PER_HEADER_AND_BLOCK: u64 = 650;
/// Per 64-bit word of the exact patterns of `select`, which are constants in the code.
const PER_EXACT_WORD: u64 = 8 << 10;
/// The same of masks and ranges, each of which is a comparison of its own.
const PER_MASK_WORD: u64 = 52 << 10;
/// Per word beyond the first of an operation on wide values, which is unrolled.
const PER_WIDE_WORD: u64 = 1 << 10;
/// Per variable and block: sets of variables, and the code generator's values.
const PER_VARIABLE_AND_BLOCK: u64 = 6;

/// The size of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    blocks: u64,
    instructions: u64,
    headers: u64,
    variables: u64,
    /// 64-bit words of exact patterns.
    exact_words: u64,
    /// 64-bit words of masks and ranges.
    mask_words: u64,
    /// Instructions that wide values add.
    wide_words: u64,
}

impl Size {
    fn of(pipeline: &Pipeline) -> Self {
        let blocks = &pipeline.body.blocks;
        let instructions: usize = blocks.iter().map(|(_, block)| block.insts.len()).sum();
        let pattern_words = cost::pattern_words(&pipeline.program, &pipeline.body);
        Size {
            blocks: blocks.len() as u64,
            instructions: instructions as u64,
            headers: pipeline.program.headers.len() as u64,
            variables: pipeline.program.vars.len() as u64,
            exact_words: pattern_words.exact,
            mask_words: pattern_words.masked,
            wide_words: wide_arithmetic(pipeline).into(),
        }
    }

    /// Estimated bytes that compiling needs.
    fn bytes(self) -> u64 {
        let parts = [
            self.exact_words.saturating_mul(PER_EXACT_WORD),
            self.mask_words.saturating_mul(PER_MASK_WORD),
            self.wide_words.saturating_mul(PER_WIDE_WORD),
            self.instructions.saturating_mul(PER_INSTRUCTION),
            self.blocks.saturating_mul(PER_BLOCK),
            (self.blocks.saturating_mul(self.headers)).saturating_mul(PER_HEADER_AND_BLOCK),
            (self.blocks.saturating_mul(self.variables)).saturating_mul(PER_VARIABLE_AND_BLOCK),
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// The most that wide arithmetic (over 64 bits) may cost a packet beyond its number of
/// instructions, if it passes every block once. Code outside of loops is not charged at run time.
fn wide_arithmetic(pipeline: &Pipeline) -> u32 {
    let blocks = pipeline.body.blocks.iter();
    let costs = blocks.map(|(_, block)| cost::wide(&pipeline.program, block));
    costs.fold(0, u32::saturating_add)
}

/// Refuses a pipeline that is too large, or in which a packet may cause too much work outside of
/// loops.
///
/// # Errors
/// The pipeline is refused; the error says how large it is.
pub(crate) fn check(pipeline: &Pipeline) -> Result<(), CompileError> {
    let wide = wide_arithmetic(pipeline);
    if wide > weir_interp::INSTRUCTION_BUDGET {
        return Err(CompileError::TooMuchWork { words: wide });
    }
    let size = Size::of(pipeline);
    if size.bytes() <= LIMIT {
        return Ok(());
    }
    Err(CompileError::TooLarge {
        blocks: size.blocks,
        instructions: size.instructions,
        headers: size.headers,
        patterns: size.exact_words.saturating_add(size.mask_words),
        megabytes: size.bytes() >> 20,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_programs_are_far_below_the_limit_and_products_do_not_overflow() {
        // switch.p4 with its 84 headers, the largest in common use.
        let switch = Size {
            blocks: 759,
            instructions: 9000,
            headers: 84,
            variables: 2313,
            exact_words: 2000,
            mask_words: 100,
            wide_words: 500,
        };
        assert!(switch.bytes() * 2 < LIMIT);
        let two_stacks_of_4096 = Size {
            blocks: 8500,
            headers: 8192,
            ..switch
        };
        assert!(two_stacks_of_4096.bytes() > LIMIT);
        let select_of_ten_thousand_masks_of_two_fields = Size {
            mask_words: 20_000,
            ..switch
        };
        assert!(select_of_ten_thousand_masks_of_two_fields.bytes() > LIMIT);
        let huge = Size {
            blocks: u64::MAX,
            ..switch
        };
        assert_eq!(huge.bytes(), u64::MAX);
    }
}
