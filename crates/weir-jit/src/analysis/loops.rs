//! Finds natural loops, and what they may cost a packet.

use std::collections::{BTreeMap, BTreeSet};
use weir_ir::pipeline::Pipeline;
use weir_ir::{BasicBlock, BlockId, Body, InstKind, Mark, Terminator, cost};

/// A loop: the blocks on paths from its head back to the head, inclusive.
#[derive(Debug, Default)]
pub(crate) struct Loop {
    pub blocks: BTreeSet<BlockId>,
    /// It belongs to a parser: blocks of it are marked.
    pub is_parser: bool,
    /// Packets suspend in it at lookups.
    pub suspends: bool,
}

impl Loop {
    fn add(&mut self, body: &Body, blocks: BTreeSet<BlockId>) {
        for &id in &blocks {
            let block = &body.blocks[id];
            self.is_parser |= parser_blocks(block) > 0;
            self.suspends |= matches!(block.terminator, Terminator::Lookup(_) | Terminator::Suspend(_));
        }
        self.blocks.extend(blocks);
    }

    /// The most that a packet's loops may have cost at this one's head.
    pub fn limit(&self, pipeline: &Pipeline) -> u32 {
        match self.is_parser {
            true => pipeline.parser_block_limit,
            false => weir_interp::INSTRUCTION_BUDGET,
        }
    }

    /// The exit of packets whose loops have cost more.
    pub fn exit(&self, pipeline: &Pipeline) -> u32 {
        match self.is_parser {
            true => pipeline.punt_from_start,
            false => pipeline.instruction_budget_drop,
        }
    }
}

/// The loops by their heads. `order` has each block after its predecessors except for back edges
/// ([`Body::in_order`]).
pub(super) fn loops(body: &Body, order: &[BlockId]) -> BTreeMap<BlockId, Loop> {
    let mut position = vec![usize::MAX; body.blocks.len()];
    let mut before = vec![Vec::new(); body.blocks.len()];
    for (i, &id) in order.iter().enumerate() {
        position[id.index()] = i;
        body.successors(id).iter().for_each(|to| before[to.index()].push(id));
    }
    let mut loops: BTreeMap<BlockId, Loop> = BTreeMap::new();
    for &id in order {
        // Edges of failing packet operations may lead back, too.
        for head in body.successors(id) {
            // A back edge.
            if position[head.index()] <= position[id.index()] {
                let blocks = loop_body(body, head, id, &before);
                loops.entry(head).or_default().add(body, blocks);
            }
        }
    }
    loops
}

/// By block: what it adds to the cost of a packet's loops. Of parsers the marks count, which may be
/// in copies of blocks outside of loops, too.
pub(super) fn costs(pipeline: &Pipeline, loops: &BTreeMap<BlockId, Loop>) -> Vec<u32> {
    let program = &pipeline.program;
    let blocks = &pipeline.body.blocks;
    if loops.is_empty() {
        return vec![0; blocks.len()];
    }
    let mut costs: Vec<u32> = blocks.iter().map(|(_, block)| parser_blocks(block)).collect();
    let others = loops.values().filter(|looped| !looped.is_parser);
    for &id in others.flat_map(|looped| &looped.blocks) {
        costs[id.index()] = cost::block(program, &blocks[id]);
    }
    costs
}

/// The sum of the marks of a block.
fn parser_blocks(block: &BasicBlock) -> u32 {
    let marks = block.insts.iter().map(|inst| match inst.kind {
        InstKind::Mark(Mark::ParserBlocks(count)) => count,
        _ => 0,
    });
    marks.fold(0, u32::saturating_add)
}

/// Blocks on paths from `head` to `last` that do not pass `head` again, inclusive. `before` has the
/// predecessors of each block.
fn loop_body(body: &Body, head: BlockId, last: BlockId, before: &[Vec<BlockId>]) -> BTreeSet<BlockId> {
    let leading = reachable(BTreeSet::from([head]), last, |id| before[id.index()].clone());
    // A loop with two heads can be entered at either. Blocks that only lead to the other head are
    // not part of it.
    let after = reachable(BTreeSet::new(), head, |id| body.successors(id));
    leading.intersection(&after).copied().collect()
}

/// Blocks reachable from `start`, besides those already seen.
fn reachable(mut seen: BTreeSet<BlockId>, start: BlockId, next: impl Fn(BlockId) -> Vec<BlockId>) -> BTreeSet<BlockId> {
    let mut work = vec![start];
    while let Some(id) = work.pop() {
        if seen.insert(id) {
            work.extend(next(id));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_ir::{Bits, HeaderId, Inst, Loc, Operand};

    /// Blocks with two successors, one, or none.
    fn body(targets: &[&[usize]]) -> Body {
        let mut body = Body::default();
        for targets in targets {
            let terminator = match targets {
                [then, otherwise] => Terminator::Branch {
                    condition: Operand::Const(Bits::new(1, 1)),
                    then: BlockId::new(*then),
                    otherwise: BlockId::new(*otherwise),
                },
                [to] => Terminator::Goto(BlockId::new(*to)),
                _ => Terminator::Exit(0),
            };
            body.blocks.push(BasicBlock {
                state: None,
                insts: Vec::new(),
                terminator,
                loc: Loc::default(),
            });
        }
        body
    }

    /// Heads and blocks of all loops.
    fn found(body: &Body) -> Vec<(usize, Vec<usize>)> {
        let numbers = |blocks: &BTreeSet<BlockId>| blocks.iter().map(|b| b.index()).collect();
        let loops = loops(body, &body.in_order());
        loops
            .iter()
            .map(|(head, l)| (head.index(), numbers(&l.blocks)))
            .collect()
    }

    #[test]
    fn blocks_after_a_loop_are_not_part_of_it() {
        // The loop's entry is the first target of 1, then the second.
        assert_eq!(found(&body(&[&[1], &[2, 3], &[1], &[]])), [(1, vec![1, 2])]);
        assert_eq!(found(&body(&[&[1], &[3, 2], &[1], &[]])), [(1, vec![1, 2])]);
        // A loop that also exits from its middle.
        let left_twice = body(&[&[1], &[2, 4], &[4, 3], &[1], &[]]);
        assert_eq!(found(&left_twice), [(1, vec![1, 2, 3])]);
    }

    #[test]
    fn nested_loops_have_separate_heads() {
        let within = body(&[&[1], &[2, 5], &[3, 4], &[2], &[1], &[]]);
        assert_eq!(found(&within), [(1, vec![1, 2, 3, 4]), (2, vec![2, 3])]);
        assert_eq!(found(&body(&[&[0, 1], &[]])), [(0, vec![0])]);
    }

    #[test]
    fn paths_to_a_second_head_are_not_part_of_the_loop() {
        // 0 branches to 1 or, by 3, to 2; 1 and 2 jump to each other.
        let two_heads = body(&[&[1, 3], &[2], &[1, 4], &[2], &[]]);
        let [(_, blocks)] = &found(&two_heads)[..] else {
            panic!("one jump back");
        };
        assert_eq!(*blocks, [1, 2]);
    }

    #[test]
    fn edges_of_failures_are_followed() {
        let mut failing = body(&[&[1], &[2], &[]]);
        failing.on_error = Some(BlockId::new(1));
        failing.blocks[BlockId::new(1)].insts.push(Inst {
            kind: InstKind::Extract {
                header: HeaderId::new(0),
                varbit_bits: None,
            },
            loc: Loc::default(),
        });
        assert_eq!(found(&failing), [(1, vec![1])]);
    }

    #[test]
    fn acyclic_bodies_have_no_loops() {
        assert_eq!(found(&body(&[&[1, 2], &[3], &[3], &[]])), []);
    }
}
