//! Forward dataflow: facts that hold at a point of a body on all paths to it. They are which
//! headers lie in the packet, which of their fields are unchanged, where the parser is, and which
//! checksums are verified.

use super::checksums::Checksums;
use super::{Analysis, AnnotatedInst};
use weir_ir::{BlockId, InstKind, Operand, Rvalue, Terminator, VarId, VarKind};

/// The facts about a header. Sets of fields are bit masks by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderState {
    /// Fields that may differ from what the packet holds at the header's offset, if the header is
    /// valid.
    pub dirty: Vec<u64>,
    /// It has been extracted on all paths, and is valid.
    pub extracted: bool,
    /// It is untouched: invalid, and its fields are zero.
    pub pristine: bool,
    /// The program may have set its validity, other than by extracting it.
    pub validated: bool,
}

/// The facts at a point of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub headers: Vec<HeaderState>,
    /// The parser's position in bits, if it is the same on all paths.
    pub cursor: Option<u32>,
    pub checksums: Checksums,
    /// The deparser may have emitted to the scratch area.
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

    fn mark_dirty(&mut self, field: usize) {
        self.dirty[field / 64] |= 1 << (field % 64);
        self.pristine = false;
    }

    fn mark_all_dirty(&mut self) {
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

    /// Transfer function of an instruction.
    fn transfer(&self, state: &mut State, inst: AnnotatedInst<'_>) {
        let program = self.program();
        self.transfer_checksums(state, inst);
        match inst.kind {
            InstKind::Emit { .. } => state.has_emitted = true,
            InstKind::Extract { header, varbit_bits } => {
                let ty = &program.header_types[program.headers[*header].ty];
                let h = &mut state.headers[header.index()];
                h.dirty.fill(0);
                h.extracted = true;
                h.pristine = false;
                let width = ty.fixed_width();
                state.cursor = match (state.cursor, varbit_bits) {
                    (Some(cursor), None) => cursor.checked_add(width),
                    (Some(cursor), Some(Operand::Const(c))) => c
                        .to_u64()
                        .and_then(|v| u32::try_from(v).ok())
                        .and_then(|v| cursor.checked_add(width)?.checked_add(v)),
                    _ => None,
                };
            }
            InstKind::Advance { bits } => {
                state.cursor = match (state.cursor, bits) {
                    (Some(cursor), Operand::Const(c)) => c
                        .to_u64()
                        .and_then(|v| u32::try_from(v).ok())
                        .and_then(|v| cursor.checked_add(v)),
                    _ => None,
                };
            }
            InstKind::Assign { dst, value } => {
                let zero = matches!(value, Rvalue::Use(Operand::Const(c)) if c.is_zero());
                self.write(state, *dst, zero);
            }
            _ => inst.written(&program.headers, &mut |v| self.write(state, v, false)),
        }
    }

    fn write(&self, state: &mut State, var: VarId, zero: bool) {
        let Some(v) = self.program().vars.get(var) else { return };
        match v.kind {
            VarKind::Field { header, index } => state.headers[header.index()].mark_dirty(index as usize),
            VarKind::Valid { header } => {
                let h = &mut state.headers[header.index()];
                if zero && h.pristine {
                    return;
                }
                h.extracted = false;
                h.validated = true;
                if !zero {
                    h.mark_all_dirty();
                }
            }
            _ => {}
        }
    }

    /// Refines the state by constants at the start of a block. A header that is certainly valid,
    /// and not made so by the program, has been extracted. A checksum whose comparison certainly
    /// found no difference is right.
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
        let mut entry_states: Vec<Option<State>> = vec![None; body.blocks.len()];
        entry_states[0] = Some(self.entry_state());
        let mut changed = true;
        while changed {
            changed = false;
            for &id in &self.order {
                let Some(mut state) = entry_states[id.index()].clone() else {
                    continue;
                };
                let mut propagate = |target: BlockId, mut state: State| {
                    self.refine(target, &mut state);
                    changed |= match &mut entry_states[target.index()] {
                        Some(known) => known.meet(&state),
                        none => {
                            *none = Some(state);
                            true
                        }
                    };
                };
                let block = &body.blocks[id];
                for inst in self.annotated_insts(id) {
                    if let (true, Some(on_error)) = (inst.kind.can_fail(), body.on_error) {
                        propagate(on_error, state.clone());
                    }
                    self.transfer(&mut state, inst);
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
                        propagate(target, state);
                    }
                    continue;
                }
                let targets = block.terminator.targets().into_iter();
                targets.for_each(|t| propagate(t, state.clone()));
            }
        }
        entry_states
    }

    /// Calls `f` with every reachable instruction, and the state before it.
    pub(super) fn for_each_inst(&self, mut f: impl FnMut(&State, &InstKind)) {
        for &id in &self.order {
            let Some(mut state) = self.entry_states[id.index()].clone() else {
                continue;
            };
            for inst in self.annotated_insts(id) {
                f(&state, inst.kind);
                self.transfer(&mut state, inst);
            }
        }
    }

    /// The states before each instruction of a block, and at its end.
    pub fn states(&self, id: BlockId) -> Vec<State> {
        let Some(mut state) = self.entry_states[id.index()].clone() else {
            return Vec::new();
        };
        let mut all = vec![state.clone()];
        for inst in self.annotated_insts(id) {
            self.transfer(&mut state, inst);
            all.push(state.clone());
        }
        all
    }
}
