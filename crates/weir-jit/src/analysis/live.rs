//! What is live where.

use super::{Analysis, Step};
use weir_ir::passes::VarSet;
use weir_ir::pipeline::CallKind;
use weir_ir::{BlockId, InstKind, Terminator, VarId};

impl Analysis<'_> {
    /// What is live after each instruction of a block.
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
        let steps: Vec<Step<'_>> = self.steps(id).collect();
        for (i, step) in steps.into_iter().enumerate().rev() {
            all.push(live.clone());
            if step.is_idle(&live) {
                continue;
            }
            self.writes(step, &mut |v| live.remove(v));
            if let (true, Some(on_error)) = (step.inst.can_fail(), body.on_error) {
                live.union(&self.live[on_error.index()]);
            }
            if let Some(state) = states.get(i) {
                self.reads(state, step, &mut |v| live.insert(v));
            }
        }
        all.reverse();
        all
    }

    /// Variables that are read by something that is not idle.
    pub fn variables_read(&self) -> VarSet {
        let body = &self.pipeline.body;
        let mut read = VarSet::new(self.vars.len());
        for &id in &self.order {
            let (block, states, live) = (&body.blocks[id], self.states(id), self.live_after(id));
            for ((step, state), live) in self.steps(id).zip(&states).zip(&live) {
                if !step.is_idle(live) {
                    self.reads(state, step, &mut |v| read.insert(v));
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
        // What each block does does not change from round to round.
        struct Effect {
            reads: Vec<VarId>,
            writes: Vec<VarId>,
            fails: bool,
            /// It does nothing but compute what it writes.
            is_pure: bool,
        }
        let mut effects: Vec<Vec<Effect>> = (0..body.blocks.len()).map(|_| Vec::new()).collect();
        for &id in &self.order {
            let block = &body.blocks[id];
            let states = self.states(id);
            if states.is_empty() {
                continue;
            }
            for (step, state) in self.steps(id).zip(&states) {
                let mut effect = Effect {
                    reads: Vec::new(),
                    writes: Vec::new(),
                    fails: step.inst.can_fail(),
                    is_pure: step.is_idle(&VarSet::new(self.vars.len())),
                };
                self.reads(state, step, &mut |v| effect.reads.push(v));
                self.writes(step, &mut |v| effect.writes.push(v));
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
                        live.union(&live_in[on_error]);
                        // A failing operation has written nothing but the error.
                        if let Some(error) = body.error {
                            live.remove(error);
                        }
                    }
                    effect.reads.iter().for_each(|&v| live.insert(v));
                }
                self.read_to_have(id).for_each(|v| live.insert(v));
                // So much is kept of what was counted where packets wait, and nothing elsewhere.
                match self.loops.values().any(|l| l.waits && l.blocks.contains(&id)) {
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

impl Step<'_> {
    /// Whether the instruction does nothing where only these variables are live after it.
    pub fn is_idle(self, live: &VarSet) -> bool {
        match self.inst {
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
