//! Decides which loads from the packet Cranelift may move.
//!
//! If a load is marked as from read-only memory, Cranelift moves it to its uses, and removes it if
//! there are none. But a segment may write the packet, in the deparser. So values that are used
//! after the deparser has written the packet are *pinned*: they are loaded where the code says. All
//! other fields may be loaded early and freely.
//!
//! In loops of a parser no load may move: Cranelift would hoist it out of the loop, before the
//! check of the packet's length.

use super::Context;
use std::collections::BTreeSet;
use weir_ir::passes::VarSet;
use weir_ir::{BlockId, InstKind, Terminator};

/// The loads that must stay in place.
pub(super) struct Movable {
    /// Variables that are used, directly or through others, after the packet has been written.
    pinned: VarSet,
    /// Blocks in which the packet may have been written.
    after_write: BTreeSet<BlockId>,
}

impl Movable {
    /// The loads of the segment with this number.
    pub fn new(cx: &Context<'_>, index: usize) -> Self {
        let (analysis, region) = (cx.analysis, &cx.layout.regions[index]);
        let body = &analysis.pipeline.body;
        let mut movable = Movable {
            pinned: VarSet::new(analysis.vars.len()),
            after_write: BTreeSet::new(),
        };
        // Blocks that write, and all that follow them.
        let mut work: Vec<BlockId> = region.iter().copied().filter(|b| writes(cx, *b)).collect();
        while let Some(id) = work.pop() {
            if region.contains(&id) && movable.after_write.insert(id) {
                work.extend(body.blocks[id].terminator.targets());
            }
        }
        // The variables that they use.
        for &id in &movable.after_write {
            let block = &body.blocks[id];
            for (inst, state) in analysis.annotated_insts(id).zip(analysis.states(id)) {
                analysis.reads(&state, inst, &mut |v| movable.pinned.insert(v));
            }
            match block.terminator {
                Terminator::Exit(exit) => {
                    let kept = &cx.layout.points[cx.layout.exit_points[exit as usize]].saved;
                    kept.iter().for_each(|v| movable.pinned.insert(*v));
                }
                ref other => weir_ir::passes::read_by_terminator(other, &mut |v| movable.pinned.insert(v)),
            }
        }
        movable.add_sources(cx, region);
        movable
    }

    /// Adds the variables from which pinned ones are computed.
    fn add_sources(&mut self, cx: &Context<'_>, region: &[BlockId]) {
        let headers = &cx.analysis.program().headers;
        let mut changed = true;
        while changed {
            changed = false;
            for inst in region.iter().flat_map(|b| &cx.analysis.pipeline.body.blocks[*b].insts) {
                if !self.defines_pinned(cx, &inst.kind) {
                    continue;
                }
                let mut sources = Vec::new();
                weir_ir::passes::read_by_inst(&inst.kind, headers, &mut |v| sources.push(v));
                for v in sources {
                    changed |= !self.pinned.contains(v);
                    self.pinned.insert(v);
                }
            }
        }
    }

    /// Whether an instruction defines a pinned variable.
    fn defines_pinned(&self, cx: &Context<'_>, inst: &InstKind) -> bool {
        let mut pinned = false;
        weir_ir::passes::written(inst, &cx.analysis.program().headers, &mut |v| {
            pinned |= self.pinned.contains(v);
        });
        pinned
    }

    /// Whether the loads of an instruction may move.
    pub fn in_instruction(&self, cx: &Context<'_>, block: BlockId, inst: &InstKind) -> bool {
        self.at_end(cx, block) && (matches!(inst, InstKind::Extract { .. }) || !self.defines_pinned(cx, inst))
    }

    /// Whether the loads at the end of a block may move.
    pub fn at_end(&self, cx: &Context<'_>, block: BlockId) -> bool {
        !self.after_write.contains(&block) && !cx.analysis.repeated[block.index()]
    }

    /// Whether the load of a variable may move.
    pub fn variable(&self, var: weir_ir::VarId) -> bool {
        !self.pinned.contains(var)
    }
}

/// Whether a block writes the packet.
fn writes(cx: &Context<'_>, id: BlockId) -> bool {
    let (analysis, block) = (cx.analysis, &cx.analysis.pipeline.body.blocks[id]);
    if analysis.deparse != crate::analysis::Deparse::InPlace {
        // Rebuilt headers are copied to the packet at the end of the vector.
        return false;
    }
    let states = analysis.states(id);
    block.insts.iter().zip(&states).any(|(inst, state)| match inst.kind {
        InstKind::Emit { header } => {
            !state.headers[header.index()].pristine && !analysis.fields_to_write(state, header).is_empty()
        }
        _ => false,
    })
}
