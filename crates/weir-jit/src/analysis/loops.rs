//! Which blocks a packet may pass more than once.

use std::collections::{BTreeMap, BTreeSet};
use weir_ir::pipeline::Pipeline;
use weir_ir::{BlockId, Body, Terminator, cost};

/// A loop: the blocks between jumps back to its head and that head, these included.
#[derive(Debug, Default)]
pub(crate) struct Loop {
    pub blocks: BTreeSet<BlockId>,
    /// It is one of a parser, which takes from the packet in each turn. Known by what is only in parsers: blocks that are states, that select, or that may find the
    /// packet too short.
    pub takes: bool,
    /// Packets wait in it for lookups.
    pub waits: bool,
}

impl Loop {
    fn add(&mut self, body: &Body, blocks: BTreeSet<BlockId>) {
        for &id in &blocks {
            let block = &body.blocks[id];
            self.takes |=
                block.can_fail() || block.state.is_some() || matches!(block.terminator, Terminator::Select { .. });
            self.waits |= matches!(block.terminator, Terminator::Lookup(_));
        }
        self.blocks.extend(blocks);
    }
}

/// The loops by their heads; `order` has each block after those before it but for loops ([`Body::in_order`]).
pub(super) fn loops(body: &Body, order: &[BlockId]) -> BTreeMap<BlockId, Loop> {
    let mut position = vec![usize::MAX; body.blocks.len()];
    let mut before = vec![Vec::new(); body.blocks.len()];
    for (i, &id) in order.iter().enumerate() {
        position[id.index()] = i;
        body.successors(id).iter().for_each(|to| before[to.index()].push(id));
    }
    let mut loops: BTreeMap<BlockId, Loop> = BTreeMap::new();
    for &id in order {
        for head in body.blocks[id].terminator.targets() {
            // A jump back.
            if position[head.index()] <= position[id.index()] {
                let blocks = between(body, head, id, &before);
                loops.entry(head).or_default().add(body, blocks);
            }
        }
    }
    loops
}

/// Cost of one iteration of a parser's loop.
const PARSER_TURN: u32 = weir_interp::INSTRUCTION_BUDGET / weir_interp::PARSER_BUDGET;
/// What a packet's loops may cost in a parser: as many iterations as the interpreter runs blocks.
pub(crate) const PARSER_LIMIT: u32 = PARSER_TURN * weir_interp::PARSER_BUDGET;

/// Per block, what it adds to the cost of a packet's loops. In a parser's loop iterations count,
/// and blocks that cost more than one.
pub(super) fn costs(pipeline: &Pipeline, loops: &BTreeMap<BlockId, Loop>) -> Vec<u32> {
    let program = &pipeline.program;
    let blocks = &pipeline.body.blocks;
    let mut costs = vec![0; blocks.len()];
    for (head, looped) in loops.iter().filter(|(_, looped)| looped.takes) {
        for &id in &looped.blocks {
            let cost = cost::block(program, &blocks[id]);
            costs[id.index()] = if cost > PARSER_TURN { cost } else { 0 };
        }
        let of_head = &mut costs[head.index()];
        *of_head = (*of_head).max(PARSER_TURN);
    }
    let others = loops.values().filter(|looped| !looped.takes);
    for &id in others.flat_map(|looped| &looped.blocks) {
        costs[id.index()] = cost::block(program, &blocks[id]);
    }
    costs
}

/// Blocks on ways from `head` to `last` that do not pass `head` again, both included. `before` are those before each block.
fn between(body: &Body, head: BlockId, last: BlockId, before: &[Vec<BlockId>]) -> BTreeSet<BlockId> {
    let leading = reached(BTreeSet::from([head]), last, |id| before[id.index()].clone());
    // A loop with two heads can be entered at either, and what leads to the other is no part of it.
    let after = reached(BTreeSet::new(), head, |id| body.successors(id));
    leading.intersection(&after).copied().collect()
}

/// Blocks that are gone through from `start` on, besides those that have been already.
fn reached(mut seen: BTreeSet<BlockId>, start: BlockId, next: impl Fn(BlockId) -> Vec<BlockId>) -> BTreeSet<BlockId> {
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
    use weir_ir::{BasicBlock, Bits, Loc, Operand};

    /// Blocks that go on to one or two others, or end.
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
    fn what_follows_a_loop_is_no_part_of_it_wherever_it_stands() {
        // The way into the loop is the first target of 1, then the second.
        assert_eq!(found(&body(&[&[1], &[2, 3], &[1], &[]])), [(1, vec![1, 2])]);
        assert_eq!(found(&body(&[&[1], &[3, 2], &[1], &[]])), [(1, vec![1, 2])]);
        // It is left from its middle as well.
        let left_twice = body(&[&[1], &[2, 4], &[4, 3], &[1], &[]]);
        assert_eq!(found(&left_twice), [(1, vec![1, 2, 3])]);
    }

    #[test]
    fn loops_within_each_other_have_heads_of_their_own() {
        let within = body(&[&[1], &[2, 5], &[3, 4], &[2], &[1], &[]]);
        assert_eq!(found(&within), [(1, vec![1, 2, 3, 4]), (2, vec![2, 3])]);
        assert_eq!(found(&body(&[&[0, 1], &[]])), [(0, vec![0])]);
    }

    #[test]
    fn what_leads_to_the_other_head_is_no_part_of_a_loop_with_two() {
        // 0 goes to 1 or, by 3, to 2; they go to each other.
        let two_heads = body(&[&[1, 3], &[2], &[1, 4], &[2], &[]]);
        let [(_, blocks)] = &found(&two_heads)[..] else {
            panic!("one jump back");
        };
        assert_eq!(*blocks, [1, 2]);
    }

    #[test]
    fn without_jumps_back_there_are_none() {
        assert_eq!(found(&body(&[&[1, 2], &[3], &[3], &[]])), []);
    }
}
