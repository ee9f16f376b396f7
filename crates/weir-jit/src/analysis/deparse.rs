//! Decides how the deparser works: in place, or by rebuilding headers.

use super::{Analysis, Deparse};
use crate::error::Unsupported;
use std::collections::BTreeSet;
use weir_ir::passes::written;
use weir_ir::{BlockId, HeaderId, InstKind, Operand, Rvalue, Terminator, VarId, VarKind};

impl Analysis<'_> {
    pub(super) fn plan(&self) -> Result<Deparse, Unsupported> {
        let program = self.program();
        // By block: most bytes emitted up to its end. Blocks come after their predecessors, and
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

    /// Whether the emitted headers are the extracted ones, all of them and in the same order, on
    /// every path.
    fn stays_in_place(&self, emits: &[HeaderId]) -> bool {
        let program = self.program();
        let mut rank = vec![None; program.headers.len()];
        for (i, header) in emits.iter().enumerate() {
            rank[header.index()] = Some(i);
        }
        let body = &self.pipeline.body;
        // Every path to a deparsed exit passes all emits, in order.
        let mut emits_before: Vec<Option<Option<usize>>> = vec![None; body.blocks.len()];
        let mut extracted_before: Vec<Option<BTreeSet<usize>>> = vec![None; body.blocks.len()];
        emits_before[0] = Some(Some(0));
        extracted_before[0] = Some(BTreeSet::new());
        let mut changed = true;
        let mut in_place = true;
        while changed && in_place {
            changed = false;
            for &id in &self.order {
                let (Some(mut emitted), Some(mut last_extracted)) =
                    (emits_before[id.index()], extracted_before[id.index()].clone())
                else {
                    continue;
                };
                let block = &body.blocks[id];
                let states = self.states(id);
                if states.is_empty() {
                    continue;
                }
                let mut propagate = |target: BlockId, emitted: Option<usize>, last_extracted: &BTreeSet<usize>| {
                    match &mut emits_before[target.index()] {
                        Some(known) if *known != emitted => {
                            // Paths with different numbers of emits join here.
                            changed |= known.is_some();
                            *known = None;
                        }
                        Some(_) => {}
                        none => {
                            *none = Some(emitted);
                            changed = true;
                        }
                    }
                    match &mut extracted_before[target.index()] {
                        Some(known) => {
                            let n = known.len();
                            known.extend(last_extracted);
                            changed |= known.len() != n;
                        }
                        none => {
                            *none = Some(last_extracted.clone());
                            changed = true;
                        }
                    }
                };
                for (inst, state) in block.insts.iter().zip(&states) {
                    if let (true, Some(on_error)) = (inst.kind.can_fail(), body.on_error) {
                        propagate(on_error, emitted, &last_extracted);
                    }
                    match &inst.kind {
                        InstKind::Extract { header, .. } => match rank[header.index()] {
                            Some(r) if last_extracted.iter().all(|b| *b < r) => {
                                last_extracted = [r].into();
                            }
                            _ => in_place = false,
                        },
                        InstKind::Advance { bits } if !matches!(bits, Operand::Const(c) if c.is_zero()) => {
                            in_place = false
                        }
                        InstKind::Emit { header } => {
                            in_place &= emitted == rank[header.index()];
                            emitted = emitted.map(|d| d + 1);
                        }
                        InstKind::Assign { dst, value } => {
                            // A varbit of another length would move everything after it.
                            in_place &= !self.is_varbit_field(*dst);
                            if let Some(VarKind::Valid { header }) = program.vars.get(*dst).map(|v| v.kind) {
                                let zero = matches!(value, Rvalue::Use(Operand::Const(c)) if c.is_zero());
                                in_place &= zero && state.headers[header.index()].pristine;
                            }
                        }
                        InstKind::Call(call) => {
                            written(&InstKind::Call(call.clone()), &program.headers, &mut |v| {
                                in_place &= !self.is_validity(v);
                            });
                        }
                        _ => {}
                    }
                }
                match block.terminator {
                    Terminator::Exit(e) => {
                        if self.pipeline.exits[e as usize].deparsed {
                            in_place &= emitted == Some(emits.len());
                        }
                    }
                    ref other => other
                        .targets()
                        .into_iter()
                        .for_each(|t| propagate(t, emitted, &last_extracted)),
                }
            }
        }
        in_place
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
