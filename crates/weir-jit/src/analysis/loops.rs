//! Which blocks a packet may pass more than once.

use super::Analysis;
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::{BlockId, Body, Terminator};

/// A loop: the blocks between jumps back to its head and that head, these included.
#[derive(Debug, Default)]
pub(crate) struct Loop {
    pub blocks: BTreeSet<BlockId>,
    /// It takes from the packet.
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

impl Analysis<'_> {
    /// The loops by their heads.
    pub(super) fn find_loops(&self) -> BTreeMap<BlockId, Loop> {
        let body = &self.pipeline.body;
        let mut position = vec![usize::MAX; body.blocks.len()];
        let mut before = vec![Vec::new(); body.blocks.len()];
        for (i, &id) in self.order.iter().enumerate() {
            position[id.index()] = i;
            body.successors(id).iter().for_each(|to| before[to.index()].push(id));
        }
        let mut loops: BTreeMap<BlockId, Loop> = BTreeMap::new();
        for &id in &self.order {
            for head in body.blocks[id].terminator.targets() {
                // A jump back, as blocks come after those before them.
                if position[head.index()] <= position[id.index()] {
                    let blocks = self.between(head, id, &before);
                    loops.entry(head).or_default().add(body, blocks);
                }
            }
        }
        loops
    }

    /// Blocks on ways from `head` to `last` that do not pass `head` again, both included. `before` are those before each block.
    fn between(&self, head: BlockId, last: BlockId, before: &[Vec<BlockId>]) -> BTreeSet<BlockId> {
        let (mut blocks, mut work) = (BTreeSet::from([head]), vec![last]);
        while let Some(id) = work.pop() {
            if blocks.insert(id) {
                work.extend(&before[id.index()]);
            }
        }
        // A loop with two heads can be entered at either, and what leads to the other is no part of it.
        let after = self.reach(head, |_| false);
        blocks.intersection(&after).copied().collect()
    }
}
