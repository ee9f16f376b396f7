//! Which loads from the packet may be moved.
//!
//! Cranelift moves a load to where its value is needed, and leaves it out if that is nowhere, once it is told that nothing
//! writes the memory. In a segment the deparser does: so loads of what is used when it has begun stay where they are. Of
//! everything else a segment may take from the packet whatever somebody might need.
//!
//! In loops of a parser nothing may be moved: Cranelift would take a load out of the loop, to before the check that the packet
//! is that long.

use super::Context;
use std::collections::BTreeSet;
use weir_ir::passes::VarSet;
use weir_ir::{BlockId, InstKind, Terminator};

/// What must not be loaded later than the code says.
pub(super) struct Movable {
    /// Variables that are used, or something that is made of them, after the packet has been written.
    late: VarSet,
    /// Blocks in which the packet may have been written.
    after: BTreeSet<BlockId>,
}

impl Movable {
    /// Of the segment with this number.
    pub fn new(cx: &Context<'_>, index: usize) -> Self {
        let (analysis, region) = (cx.analysis, &cx.layout.regions[index]);
        let body = &analysis.pipeline.body;
        let mut movable = Movable {
            late: VarSet::new(analysis.vars.len()),
            after: BTreeSet::new(),
        };
        // Blocks that write, and all behind them.
        let mut work: Vec<BlockId> = region.iter().copied().filter(|b| writes(cx, *b)).collect();
        while let Some(id) = work.pop() {
            if region.contains(&id) && movable.after.insert(id) {
                work.extend(body.blocks[id].terminator.targets());
            }
        }
        // What they use.
        for &id in &movable.after {
            let block = &body.blocks[id];
            for (step, state) in analysis.steps(id).zip(analysis.states(id)) {
                analysis.reads(&state, step, &mut |v| movable.late.insert(v));
            }
            match block.terminator {
                Terminator::Exit(exit) => {
                    let kept = &cx.layout.points[cx.layout.of_exit[exit as usize]].kept;
                    kept.iter().for_each(|v| movable.late.insert(*v));
                }
                ref other => weir_ir::passes::read_by_terminator(other, &mut |v| movable.late.insert(v)),
            }
        }
        movable.add_sources(cx, region);
        movable
    }

    /// Adds what the variables are made of.
    fn add_sources(&mut self, cx: &Context<'_>, region: &[BlockId]) {
        let headers = &cx.analysis.program().headers;
        let mut changed = true;
        while changed {
            changed = false;
            for inst in region.iter().flat_map(|b| &cx.analysis.pipeline.body.blocks[*b].insts) {
                if !self.makes_late(cx, &inst.kind) {
                    continue;
                }
                let mut sources = Vec::new();
                weir_ir::passes::read_by_inst(&inst.kind, headers, &mut |v| sources.push(v));
                for v in sources {
                    changed |= !self.late.contains(v);
                    self.late.insert(v);
                }
            }
        }
    }

    /// Whether an instruction makes something that is used late.
    fn makes_late(&self, cx: &Context<'_>, inst: &InstKind) -> bool {
        let mut late = false;
        weir_ir::passes::written(inst, &cx.analysis.program().headers, &mut |v| {
            late |= self.late.contains(v);
        });
        late
    }

    /// Whether what an instruction of a block loads may be loaded later.
    pub fn in_instruction(&self, cx: &Context<'_>, block: BlockId, inst: &InstKind) -> bool {
        self.at_end(cx, block) && (matches!(inst, InstKind::Extract { .. }) || !self.makes_late(cx, inst))
    }

    /// Whether what the end of a block loads may be loaded later.
    pub fn at_end(&self, cx: &Context<'_>, block: BlockId) -> bool {
        !self.after.contains(&block) && !cx.analysis.repeated[block.index()]
    }

    /// Whether a variable may be loaded later.
    pub fn variable(&self, var: weir_ir::VarId) -> bool {
        !self.late.contains(var)
    }
}

/// Whether a block writes the packet.
fn writes(cx: &Context<'_>, id: BlockId) -> bool {
    let (analysis, block) = (cx.analysis, &cx.analysis.pipeline.body.blocks[id]);
    if analysis.deparse != crate::analysis::Deparse::InPlace {
        // That is done when the vector has ended.
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
