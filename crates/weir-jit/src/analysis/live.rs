//! Liveness of variables.

use super::{Analysis, AnnotatedInst};
use weir_ir::passes::VarSet;
use weir_ir::pipeline::CallKind;
use weir_ir::{BlockId, InstKind, Terminator, VarId};

impl Analysis<'_> {
    /// By instruction of a block: the variables that are live after it.
    pub fn live_after(&self, id: BlockId) -> Vec<VarSet> {
        let body = &self.pipeline.body;
        let block = &body.blocks[id];
        let states = self.states(id);
        let mut live = VarSet::new(self.vars.len());
        for target in block.terminator.targets() {
            live.union(&self.live[target.index()]);
        }
        if let Some(last) = states.last() {
            self.terminator_reads(last, &block.terminator, &mut |v| live.insert(v));
        }
        let mut all = Vec::with_capacity(block.insts.len());
        let insts: Vec<AnnotatedInst<'_>> = self.annotated_insts(id).collect();
        for (i, inst) in insts.into_iter().enumerate().rev() {
            all.push(live.clone());
            if inst.is_dead(&live) {
                continue;
            }
            self.writes(inst, &mut |v| live.remove(v));
            if let (true, Some(on_error)) = (inst.kind.can_fail(), body.on_error) {
                live.union(&self.live[on_error.index()]);
            }
            if let Some(state) = states.get(i) {
                self.reads(state, inst, &mut |v| live.insert(v));
            }
        }
        all.reverse();
        all
    }

    /// Variables that are read by an instruction that is not dead.
    pub fn variables_read(&self) -> VarSet {
        let body = &self.pipeline.body;
        let mut read = VarSet::new(self.vars.len());
        for &id in &self.order {
            let (block, states, live) = (&body.blocks[id], self.states(id), self.live_after(id));
            for ((inst, state), live) in self.annotated_insts(id).zip(&states).zip(&live) {
                if !inst.is_dead(live) {
                    self.reads(state, inst, &mut |v| read.insert(v));
                }
            }
            if let Some(last) = states.last() {
                self.terminator_reads(last, &block.terminator, &mut |v| read.insert(v));
            }
        }
        read
    }

    pub(super) fn liveness(&self) -> Vec<VarSet> {
        let body = &self.pipeline.body;
        let mut live_in = vec![VarSet::new(self.vars.len()); body.blocks.len()];
        // The effects of an instruction, which are the same in each round of the iteration.
        struct Effect {
            reads: Vec<VarId>,
            writes: Vec<VarId>,
            fails: bool,
            /// It only computes what it writes.
            is_pure: bool,
        }
        let mut effects: Vec<Vec<Effect>> = (0..body.blocks.len()).map(|_| Vec::new()).collect();
        for &id in &self.order {
            let block = &body.blocks[id];
            let states = self.states(id);
            if states.is_empty() {
                continue;
            }
            for (inst, state) in self.annotated_insts(id).zip(&states) {
                let mut effect = Effect {
                    reads: Vec::new(),
                    writes: Vec::new(),
                    fails: inst.kind.can_fail(),
                    is_pure: inst.is_dead(&VarSet::new(self.vars.len())),
                };
                self.reads(state, inst, &mut |v| effect.reads.push(v));
                self.writes(inst, &mut |v| effect.writes.push(v));
                effects[id.index()].push(effect);
            }
            let mut effect = Effect {
                reads: Vec::new(),
                writes: Vec::new(),
                fails: false,
                is_pure: false,
            };
            let last = &states[states.len() - 1];
            self.terminator_reads(last, &block.terminator, &mut |v| effect.reads.push(v));
            if let Terminator::Lookup(l) = &block.terminator {
                effect.writes.extend([l.hit, l.action, l.entry]);
                let table = &self.program().tables[l.table];
                effect
                    .writes
                    .extend(table.actions.iter().flat_map(|a| a.parameters.iter().copied()));
            }
            effects[id.index()].push(effect);
        }
        let on_error = body.on_error.map(|b| b.index());
        loop {
            let mut changed = false;
            for &id in self.order.iter().rev() {
                let mut live = VarSet::new(self.vars.len());
                for target in body.blocks[id].terminator.targets() {
                    live.union(&live_in[target.index()]);
                }
                for effect in effects[id.index()].iter().rev() {
                    if effect.is_pure && !effect.writes.iter().any(|v| live.contains(*v)) {
                        continue;
                    }
                    effect.writes.iter().for_each(|&v| live.remove(v));
                    if let (true, Some(on_error)) = (effect.fails, on_error) {
                        // A failing operation writes the error, and nothing else. One that
                        // succeeds does not: a parser state that rejects reads what was there.
                        let error = body.error.filter(|error| !live.contains(*error));
                        live.union(&live_in[on_error]);
                        if let Some(error) = error {
                            live.remove(error);
                        }
                    }
                    effect.reads.iter().for_each(|&v| live.insert(v));
                }
                self.remat_inputs(id).for_each(|v| live.insert(v));
                // The cost is live in loops with suspension points only; elsewhere it begins at 0.
                match self.loops.values().any(|l| l.suspends && l.blocks.contains(&id)) {
                    true => live.insert(self.spent),
                    false => live.remove(self.spent),
                };
                for v in self.constant_inputs.iter() {
                    live.remove(v);
                }
                changed |= live_in[id.index()].union(&live);
            }
            if !changed {
                return live_in;
            }
        }
    }
}

impl AnnotatedInst<'_> {
    /// Whether the instruction is dead, if only these variables are live after it.
    pub fn is_dead(self, live: &VarSet) -> bool {
        match self.kind {
            InstKind::Assign { dst, .. } | InstKind::PacketLength { dst } => !live.contains(*dst),
            InstKind::Call(call) => {
                let results = match self.call_kind() {
                    Some(
                        CallKind::InternetChecksum
                        | CallKind::InternetSum
                        | CallKind::ReadCell { .. }
                        | CallKind::ByMagnitude(_),
                    ) => call.results.as_slice(),
                    Some(CallKind::Hash { result, .. }) => std::slice::from_ref(result),
                    _ => return false,
                };
                !results.iter().any(|v| live.contains(*v))
            }
            _ => false,
        }
    }
}
