//! Finds a parser's loops, and the costs of its basic blocks in the interpreter's limits.

use std::collections::{BTreeMap, BTreeSet};
use weir_interp::{INSTRUCTION_BUDGET, PARSER_BUDGET};
use weir_ir::{BasicBlock, BlockId, Body, InstKind, Mark, Program, cost};

/// Basic blocks of a parser in loops that consume nothing of the packet, and blocks on paths
/// between two such loops.
pub(crate) fn non_consuming_loops(parser: &Body) -> BTreeSet<BlockId> {
    loops_of(parser, |block| !block.can_fail())
}

/// The costs of a parser's basic blocks in the interpreter's limit on blocks: 1, and more for an
/// expensive one. A packet whose costs are within that limit is within the limit on instructions,
/// too.
pub(crate) struct ParserCosts {
    /// By block, in loops and on paths between two loops.
    pub looped: BTreeMap<BlockId, u32>,
    /// All other blocks together. A packet passes each of them once at most.
    pub others: u64,
}

impl ParserCosts {
    /// The costs of a parser of a program.
    pub(crate) fn of(program: &Program, parser: &Body) -> Self {
        let unit = INSTRUCTION_BUDGET / PARSER_BUDGET;
        let cost = |id: BlockId| cost::block(program, &parser.blocks[id]).div_ceil(unit).max(1);
        let is_looped = loops_of(parser, |_| true);
        let others = parser.blocks.ids().filter(|id| !is_looped.contains(id));
        ParserCosts {
            others: others.map(|id| u64::from(cost(id))).sum(),
            looped: is_looped.into_iter().map(|id| (id, cost(id))).collect(),
        }
    }
}

/// The most that marks may add up to at a loop header of a pipeline. `others`: what a packet may
/// count without marks.
///
/// Between two loop headers, and from the last one to the end of the parser, no block of the
/// pipeline is executed twice. The marks on such a path add up to at most the sum of all marks of
/// the body.
pub(super) fn limit_at_header(body: &Body, others: u64) -> u32 {
    let insts = body.blocks.iter().flat_map(|(_, block)| &block.insts);
    let marks = insts.map(|inst| match inst.kind {
        InstKind::Mark(Mark::ParserBlocks(count)) => u64::from(count),
        _ => 0,
    });
    let rest = u64::from(PARSER_BUDGET).saturating_sub(others);
    u32::try_from(rest.saturating_sub(marks.sum())).unwrap_or(PARSER_BUDGET)
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

    #[test]
    fn blocks_of_loops_are_marked_and_others_count_once() {
        let costs = |blocks| ParserCosts::of(&Program::default(), &made(blocks));
        let none = costs(&[(&[1], true), (&[], false)]);
        assert_eq!((none.looped.len(), none.others), (0, 2));
        let three = costs(&[(&[1], true), (&[2], false), (&[0, 3], true), (&[], false)]);
        let looped: Vec<(usize, u32)> = three.looped.iter().map(|(id, cost)| (id.index(), *cost)).collect();
        assert_eq!((looped, three.others), (vec![(0, 1), (1, 1), (2, 1)], 1));
    }

    #[test]
    fn the_limit_leaves_room_for_one_pass() {
        let mut body = made(&[(&[0, 1], true), (&[], false)]);
        assert_eq!(limit_at_header(&body, 0), PARSER_BUDGET);
        let mark = Inst {
            kind: InstKind::Mark(Mark::ParserBlocks(3)),
            loc: Loc::default(),
        };
        body.blocks[BlockId::new(0)].insts.push(mark);
        assert_eq!(limit_at_header(&body, 4), PARSER_BUDGET - 7);
        assert_eq!(limit_at_header(&body, PARSER_BUDGET.into()), 0);
    }
}
