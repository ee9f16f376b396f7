//! What is known at each point of a body on every way there: which headers lie in the packet, which fields still are what it
//! holds, where the parser is.

use super::checksums::Checksums;
use super::{Analysis, Step};
use weir_ir::{BlockId, InstKind, Operand, Rvalue, Terminator, VarId, VarKind};

/// What is known of a header at a point of the body. Fields are bits of a mask by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderState {
    /// Fields that may differ from what the packet holds at the header's place, if the header is valid.
    pub dirty: Vec<u64>,
    /// It has been extracted on every way here and is valid.
    pub extracted: bool,
    /// Nothing has touched it: it is invalid, its fields are zero.
    pub pristine: bool,
    /// Its validity may have been set by code.
    pub validated: bool,
}

/// What is known at a point of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub headers: Vec<HeaderState>,
    /// The bit the parser is at, if that is always the same.
    pub cursor: Option<u32>,
    pub checksums: Checksums,
    /// The deparser may have put headers into the scratch area.
    pub has_emitted: bool,
}

impl State {
    fn meet(&mut self, other: &State) -> bool {
        let before = self.clone();
        for (mine, theirs) in self.headers.iter_mut().zip(&other.headers) {
            for (a, b) in mine.dirty.iter_mut().zip(&theirs.dirty) {
                *a |= b;
            }
            mine.extracted &= theirs.extracted;
            mine.pristine &= theirs.pristine;
            mine.validated |= theirs.validated;
        }
        if self.cursor != other.cursor {
            self.cursor = None;
        }
        self.checksums.meet(&other.checksums);
        self.has_emitted |= other.has_emitted;
        *self != before
    }
}

impl HeaderState {
    pub fn is_dirty(&self, field: usize) -> bool {
        self.dirty[field / 64] >> (field % 64) & 1 == 1
    }

    fn soil(&mut self, field: usize) {
        self.dirty[field / 64] |= 1 << (field % 64);
        self.pristine = false;
    }

    fn soil_all(&mut self) {
        self.dirty.fill(u64::MAX);
        self.pristine = false;
    }
}

impl Analysis<'_> {
    fn entry_state(&self) -> State {
        let headers = self
            .program()
            .headers
            .iter()
            .map(|(_, h)| HeaderState {
                dirty: vec![0; h.fields.len().div_ceil(64).max(1)],
                extracted: false,
                pristine: true,
                validated: false,
            })
            .collect();
        State {
            headers,
            cursor: Some(0),
            checksums: Checksums::default(),
            has_emitted: false,
        }
    }

    /// Follows an instruction.
    fn step(&self, state: &mut State, step: Step<'_>) {
        let program = self.program();
        self.step_checksums(state, step);
        match step.inst {
            InstKind::Emit { .. } => state.has_emitted = true,
            InstKind::Extract { header, varbit_bits } => {
                let ty = &program.header_types[program.headers[*header].ty];
                let h = &mut state.headers[header.index()];
                h.dirty.fill(0);
                h.extracted = true;
                h.pristine = false;
                let width = ty.fixed_width();
                state.cursor = match (state.cursor, varbit_bits) {
                    (Some(at), None) => at.checked_add(width),
                    (Some(at), Some(Operand::Const(c))) => c
                        .to_u64()
                        .and_then(|v| u32::try_from(v).ok())
                        .and_then(|v| at.checked_add(width)?.checked_add(v)),
                    _ => None,
                };
            }
            InstKind::Advance { bits } => {
                state.cursor = match (state.cursor, bits) {
                    (Some(at), Operand::Const(c)) => c
                        .to_u64()
                        .and_then(|v| u32::try_from(v).ok())
                        .and_then(|v| at.checked_add(v)),
                    _ => None,
                };
            }
            InstKind::Assign { dst, value } => {
                let zero = matches!(value, Rvalue::Use(Operand::Const(c)) if c.is_zero());
                self.write(state, *dst, zero);
            }
            _ => step.written(&program.headers, &mut |v| self.write(state, v, false)),
        }
    }

    fn write(&self, state: &mut State, var: VarId, zero: bool) {
        let Some(v) = self.program().vars.get(var) else { return };
        match v.kind {
            VarKind::Field { header, index } => state.headers[header.index()].soil(index as usize),
            VarKind::Valid { header } => {
                let h = &mut state.headers[header.index()];
                if zero && h.pristine {
                    return;
                }
                h.extracted = false;
                h.validated = true;
                if !zero {
                    h.soil_all();
                }
            }
            _ => {}
        }
    }

    /// Headers that are certainly valid at the start of a block, and not by code, have been extracted; checksums whose comparison
    /// certainly told no difference are right.
    fn refine(&self, block: BlockId, state: &mut State) {
        let constants = &self.constants[block.index()];
        state.checksums.refine(|v| constants.get(&v).copied());
        let headers = self.program().headers.iter();
        for (h, (_, header)) in state.headers.iter_mut().zip(headers) {
            let valid = constants.get(&header.valid) == Some(&1);
            h.extracted |= valid && !h.validated;
        }
    }

    pub(super) fn flow(&self) -> Vec<Option<State>> {
        let body = &self.pipeline.body;
        let mut at: Vec<Option<State>> = vec![None; body.blocks.len()];
        at[0] = Some(self.entry_state());
        let mut changed = true;
        while changed {
            changed = false;
            for &id in &self.order {
                let Some(mut state) = at[id.index()].clone() else {
                    continue;
                };
                let mut arrive = |target: BlockId, mut state: State| {
                    self.refine(target, &mut state);
                    changed |= match &mut at[target.index()] {
                        Some(known) => known.meet(&state),
                        none => {
                            *none = Some(state);
                            true
                        }
                    };
                };
                let block = &body.blocks[id];
                for step in self.steps(id) {
                    if let (true, Some(on_error)) = (step.inst.can_fail(), body.on_error) {
                        arrive(on_error, state.clone());
                    }
                    self.step(&mut state, step);
                }
                if let Terminator::Branch {
                    condition: Operand::Var(v),
                    then,
                    otherwise,
                } = block.terminator
                    && then != otherwise
                {
                    for (target, value) in [(then, 1), (otherwise, 0)] {
                        let mut state = state.clone();
                        state.checksums.refine(|of| (of == v).then_some(value));
                        arrive(target, state);
                    }
                    continue;
                }
                let targets = block.terminator.targets().into_iter();
                targets.for_each(|t| arrive(t, state.clone()));
            }
        }
        at
    }

    /// Calls `f` with every instruction that is reached and what is known before it.
    pub(super) fn each_inst(&self, mut f: impl FnMut(&State, &InstKind)) {
        for &id in &self.order {
            let Some(mut state) = self.at[id.index()].clone() else {
                continue;
            };
            for step in self.steps(id) {
                f(&state, step.inst);
                self.step(&mut state, step);
            }
        }
    }

    /// What is known before each instruction of a block.
    pub fn states(&self, id: BlockId) -> Vec<State> {
        let Some(mut state) = self.at[id.index()].clone() else {
            return Vec::new();
        };
        let mut all = vec![state.clone()];
        for step in self.steps(id) {
            self.step(&mut state, step);
            all.push(state.clone());
        }
        all
    }
}
