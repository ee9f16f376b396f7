//! How the deparser's work can be done.

use super::{Analysis, Deparse};
use crate::error::Unsupported;
use std::collections::BTreeSet;
use weir_ir::passes::written;
use weir_ir::{BlockId, HeaderId, InstKind, Operand, Rvalue, Terminator, VarId, VarKind};

impl Analysis<'_> {
    pub(super) fn plan(&self) -> Result<Deparse, Unsupported> {
        let program = self.program();
        // Most bytes that are emitted up to the end of each block; blocks come after those before them, and
        // loops do not emit.
        let mut most = vec![0; self.pipeline.body.blocks.len()];
        let mut emits: Vec<HeaderId> = Vec::new();
        let mut position = vec![usize::MAX; most.len()];
        for (i, &id) in self.order.iter().enumerate() {
            position[id.index()] = i;
            let block = &self.pipeline.body.blocks[id];
            for inst in &block.insts {
                if let InstKind::Emit { header } = inst.kind {
                    if !emits.contains(&header) {
                        emits.push(header);
                    }
                    let ty = &program.header_types[program.headers[header].ty];
                    most[id.index()] += ty.fields.iter().map(|f| f.ty.width()).sum::<u32>().div_ceil(8) as usize;
                    if self.repeated[id.index()] {
                        return Err(Unsupported::new("a deparser that emits in a loop"));
                    }
                }
            }
            let so_far = most[id.index()];
            for target in block.terminator.targets() {
                let is_back = position[target.index()] <= i;
                if !is_back {
                    let after = &mut most[target.index()];
                    *after = so_far.max(*after);
                }
            }
        }
        let most = most.into_iter().max().unwrap_or(0);
        Ok(match self.stays_in_place(&emits) {
            true => Deparse::InPlace,
            false => Deparse::Rebuild(most),
        })
    }

    /// Whether what is emitted is what was extracted, in the same order with nothing left out, on every way.
    fn stays_in_place(&self, emits: &[HeaderId]) -> bool {
        let program = self.program();
        let mut rank = vec![None; program.headers.len()];
        for (i, header) in emits.iter().enumerate() {
            rank[header.index()] = Some(i);
        }
        let body = &self.pipeline.body;
        // Every way to a deparsed exit passes all emits, in order.
        let mut passed: Vec<Option<Option<usize>>> = vec![None; body.blocks.len()];
        let mut last: Vec<Option<BTreeSet<usize>>> = vec![None; body.blocks.len()];
        passed[0] = Some(Some(0));
        last[0] = Some(BTreeSet::new());
        let mut changed = true;
        let mut good = true;
        while changed && good {
            changed = false;
            for &id in &self.order {
                let (Some(mut done), Some(mut before)) = (passed[id.index()], last[id.index()].clone()) else {
                    continue;
                };
                let block = &body.blocks[id];
                let states = self.states(id);
                if states.is_empty() {
                    continue;
                }
                let mut arrive = |target: BlockId, done: Option<usize>, before: &BTreeSet<usize>| {
                    match &mut passed[target.index()] {
                        Some(known) if *known != done => {
                            // Ways with different numbers of emits meet.
                            changed |= known.is_some();
                            *known = None;
                        }
                        Some(_) => {}
                        none => {
                            *none = Some(done);
                            changed = true;
                        }
                    }
                    match &mut last[target.index()] {
                        Some(known) => {
                            let n = known.len();
                            known.extend(before);
                            changed |= known.len() != n;
                        }
                        none => {
                            *none = Some(before.clone());
                            changed = true;
                        }
                    }
                };
                for (inst, state) in block.insts.iter().zip(&states) {
                    if let (true, Some(on_error)) = (inst.kind.can_fail(), body.on_error) {
                        arrive(on_error, done, &before);
                    }
                    match &inst.kind {
                        InstKind::Extract { header, .. } => match rank[header.index()] {
                            Some(r) if before.iter().all(|b| *b < r) => {
                                before = [r].into();
                            }
                            _ => good = false,
                        },
                        InstKind::Advance { bits } if !matches!(bits, Operand::Const(c) if c.is_zero()) => good = false,
                        InstKind::Emit { header } => {
                            good &= done == rank[header.index()];
                            done = done.map(|d| d + 1);
                        }
                        InstKind::Assign { dst, value } => {
                            // Another length moves everything behind it.
                            good &= !self.is_varbit_field(*dst);
                            if let Some(VarKind::Valid { header }) = program.vars.get(*dst).map(|v| v.kind) {
                                let zero = matches!(value, Rvalue::Use(Operand::Const(c)) if c.is_zero());
                                good &= zero && state.headers[header.index()].pristine;
                            }
                        }
                        InstKind::Call(call) => {
                            written(&InstKind::Call(call.clone()), &program.headers, &mut |v| {
                                good &= !self.is_validity(v);
                            });
                        }
                        _ => {}
                    }
                }
                match block.terminator {
                    Terminator::Exit(e) => {
                        if self.pipeline.exits[e as usize].deparsed {
                            good &= done == Some(emits.len());
                        }
                    }
                    ref other => other.targets().into_iter().for_each(|t| arrive(t, done, &before)),
                }
            }
        }
        good
    }

    fn is_varbit_field(&self, var: VarId) -> bool {
        let program = self.program();
        super::field_of(program, var).is_some() && matches!(program.vars[var].ty, weir_ir::Type::Varbit(_))
    }

    fn is_validity(&self, var: VarId) -> bool {
        matches!(
            self.program().vars.get(var).map(|v| v.kind),
            Some(VarKind::Valid { .. })
        )
    }
}
