//! Finds a parser's loops, and bounds the passes through them that certainly keep the interpreter's
//! limits.

use std::collections::BTreeSet;
use weir_interp::{INSTRUCTION_BUDGET, PARSER_BUDGET};
use weir_ir::{BasicBlock, BlockId, Body, Program, cost};

/// Basic blocks of a parser in loops that consume nothing of the packet, and blocks on paths
/// between two such loops.
pub(crate) fn non_consuming_loops(parser: &Body) -> BTreeSet<BlockId> {
    loops_of(parser, |block| !block.can_fail())
}

/// The most passes of a parser's loop headers, in a pipeline, with which the interpreter certainly
/// does not time out. `None`: the parser has no loops. `origins`: for each block of the pipeline
/// that is a copy of a parser's block, the latter.
///
/// It is the interpreter's budget, divided by the highest cost of one pass: the way from a loop
/// header to the next. That cost is bounded as follows.
///
/// - Blocks that can fail are fixed points: folding removes and copies other blocks, but not these.
///   A pass executes no block of the pipeline twice. So it executes each of these at most as often
///   as the architecture has appended it.
/// - Every loop has such a block: [`PipelineBuilder::mark_as_parser`] makes all blocks of
///   [`non_consuming_loops`] able to fail.
/// - So between two executions of such blocks, each other block is executed once at most. The same
///   holds before the first one of a pass and after its last one.
///
/// [`PipelineBuilder::mark_as_parser`]: super::PipelineBuilder::mark_as_parser
pub(super) fn certain_iterations(
    program: &Program,
    parser: &Body,
    origins: impl Iterator<Item = BlockId>,
) -> Option<u32> {
    let (looped, non_consuming) = (loops_of(parser, |_| true), non_consuming_loops(parser));
    if looped.is_empty() {
        return None;
    }
    // Costs are numbers of blocks, as in the parser's budget. An expensive block counts as several,
    // so that the instruction budget is kept, too.
    let unit = INSTRUCTION_BUDGET / PARSER_BUDGET;
    let cost = |id: BlockId| u64::from(cost::block(program, &parser.blocks[id]).div_ceil(unit).max(1));
    let can_fail = |id: &BlockId| parser.blocks[*id].can_fail() || non_consuming.contains(id);
    let failing: Vec<BlockId> = origins.filter(|id| looped.contains(id) && can_fail(id)).collect();
    let others: u64 = looped.iter().filter(|id| !can_fail(id)).map(|id| cost(*id)).sum();
    let cost_of_pass =
        failing.iter().map(|id| cost(*id)).sum::<u64>() + (failing.len() as u64 + 1).saturating_mul(others);
    let outside: u64 = parser.blocks.ids().filter(|id| !looped.contains(id)).map(cost).sum();
    let rest = u64::from(PARSER_BUDGET).saturating_sub(outside);
    // The last pass may be incomplete.
    let iterations = (rest / cost_of_pass.max(1)).saturating_sub(1);
    Some(u32::try_from(iterations).unwrap_or(PARSER_BUDGET))
}

/// Basic blocks in the loops of an induced subgraph, and blocks on its paths between two such
/// loops. The subgraph has the blocks with `is_included`, and all edges between them.
fn loops_of(parser: &Body, is_included: impl Fn(&BasicBlock) -> bool) -> BTreeSet<BlockId> {
    let count = parser.blocks.len();
    let (mut after, mut before) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    let is_included = |id: BlockId| is_included(&parser.blocks[id]);
    for (id, block) in parser.blocks.iter().filter(|(id, _)| is_included(*id)) {
        for target in block.terminator.targets().into_iter().filter(|t| is_included(*t)) {
            after[id.index()].push(target);
            before[target.index()].push(id);
        }
    }
    // Removes blocks without a successor until there are none: those that lead to no loop. Then,
    // likewise, blocks without a predecessor: those that no loop leads to.
    let mut kept: Vec<bool> = parser.blocks.ids().map(is_included).collect();
    for (to, from) in [(&after, &before), (&before, &after)] {
        let mut open: Vec<usize> = to
            .iter()
            .map(|to| to.iter().filter(|t| kept[t.index()]).count())
            .collect();
        let mut work: Vec<BlockId> = parser.blocks.ids().filter(|id| open[id.index()] == 0).collect();
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut kept[id.index()], false) {
                for &next in &from[id.index()] {
                    open[next.index()] -= 1;
                    work.extend((open[next.index()] == 0).then_some(next));
                }
            }
        }
    }
    parser.blocks.ids().filter(|id| kept[id.index()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_ir::{BasicBlock, Bits, Inst, InstKind, Loc, Operand, Terminator};

    /// A parser. Each block has its successors and whether it takes bits.
    fn made(blocks: &[(&[usize], bool)]) -> Body {
        let mut body = Body::default();
        for (successors, takes) in blocks {
            let target = |n: usize| BlockId::new(successors[n]);
            let terminator = match successors.len() {
                0 => Terminator::Accept,
                1 => Terminator::Goto(target(0)),
                _ => Terminator::Branch {
                    condition: Operand::Const(Bits::new(1, 1)),
                    then: target(0),
                    otherwise: target(1),
                },
            };
            let bits = Operand::Const(Bits::new(32, 8));
            let advance = Inst {
                kind: InstKind::Advance { bits },
                loc: Loc::default(),
            };
            body.blocks.push(BasicBlock {
                state: None,
                insts: takes.then_some(advance).into_iter().collect(),
                terminator,
                loc: Loc::default(),
            });
        }
        body
    }

    /// The non-consuming loops of a parser.
    fn found(blocks: &[(&[usize], bool)]) -> Vec<usize> {
        non_consuming_loops(&made(blocks))
            .into_iter()
            .map(BlockId::index)
            .collect()
    }

    #[test]
    fn a_parser_without_loops_has_none() {
        assert_eq!(found(&[(&[1, 2], false), (&[2], true), (&[], false)]), [0; 0]);
    }

    #[test]
    fn a_block_may_be_a_loop_of_its_own() {
        assert_eq!(found(&[(&[1], true), (&[1, 2], false), (&[], false)]), [1]);
        assert_eq!(found(&[(&[0, 0], false)]), [0]);
    }

    #[test]
    fn what_takes_from_the_packet_breaks_its_loop_and_no_other() {
        // 1 and 2 are a loop, and so are 1 and 3, which takes.
        let both = [
            (&[1][..], false),
            (&[2, 3], false),
            (&[1, 4], false),
            (&[1], true),
            (&[], false),
        ];
        assert_eq!(found(&both), [1, 2]);
        let taking = [(&[1][..], false), (&[2], true), (&[1, 3], false), (&[], false)];
        assert_eq!(found(&taking), [0; 0]);
    }

    #[test]
    fn blocks_between_two_loops_count_and_those_beside_them_do_not() {
        let blocks = [
            (&[1, 5][..], false),
            (&[1, 2], false),
            (&[3], false),
            (&[3, 4], false),
            (&[], false),
            (&[4], false),
        ];
        assert_eq!(found(&blocks), [1, 2, 3]);
    }

    fn iterations(blocks: &[(&[usize], bool)], appended: &[usize]) -> Option<u32> {
        let appended = appended.iter().map(|n| BlockId::new(*n));
        certain_iterations(&Program::default(), &made(blocks), appended)
    }

    #[test]
    fn the_limit_is_what_the_interpreter_certainly_allows() {
        assert_eq!(iterations(&[(&[1], true), (&[], false)], &[0, 1]), None);
        // Of 65,536 blocks one is outside of the loop, and one pass may be cut.
        assert_eq!(iterations(&[(&[0, 1], true), (&[], false)], &[0, 1]), Some(65_534));
        // A block that cannot fail may be copied to both sides of each one that can.
        let three: &[(&[usize], bool)] = &[(&[1], true), (&[2], false), (&[0, 3], true), (&[], false)];
        assert_eq!(iterations(three, &[0, 1, 2, 3]), Some(65_535 / 5 - 1));
        // Blocks that the architecture has appended twice.
        assert_eq!(iterations(three, &[0, 1, 2, 3, 0, 1, 2]), Some(65_535 / 9 - 1));
        // Blocks of non-consuming loops are made ones that can fail.
        let non_consuming: &[(&[usize], bool)] = &[(&[1], false), (&[0, 2], false), (&[], false)];
        assert_eq!(iterations(non_consuming, &[0, 1, 2]), Some(65_535 / 2 - 1));
    }
}
