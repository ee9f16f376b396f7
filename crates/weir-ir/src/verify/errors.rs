//! What follows a failing packet operation ends: it takes nothing from the packet, and has no loop.
//!
//! Engines rely on this: they bound the steps of a parser by what it takes.

use super::Verifier;
use crate::program::*;

/// How far the search has come with a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Unseen,
    /// It is on the path that is searched.
    Open,
    Done,
}

impl Verifier<'_> {
    pub(super) fn errors_end(&mut self, body: &Body, on_error: BlockId) {
        let mut progress = vec![Progress::Unseen; body.blocks.len()];
        // Blocks of the path, each with those of its successors that are not yet searched.
        let mut path: Vec<(BlockId, Vec<BlockId>)> = Vec::new();
        let mut next = Some(on_error);
        loop {
            if let Some(id) = next.take()
                && let Some(block) = body.blocks.get(id)
            {
                match progress[id.index()] {
                    Progress::Open => {
                        return self.error(format!("there is a loop at b{}, behind an error", id.index()));
                    }
                    Progress::Done => {}
                    Progress::Unseen => {
                        if block.insts.iter().any(|inst| inst.kind.can_fail()) {
                            let text = format!("b{} takes from the packet, but follows an error", id.index());
                            return self.error(text);
                        }
                        progress[id.index()] = Progress::Open;
                        path.push((id, block.terminator.targets()));
                    }
                }
            }
            let Some((id, successors)) = path.last_mut() else {
                return;
            };
            next = successors.pop();
            if next.is_none() {
                progress[id.index()] = Progress::Done;
                path.pop();
            }
        }
    }
}
