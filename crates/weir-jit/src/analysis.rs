//! What is known of a pipeline before code is made: where headers lie in the packet, which fields still are
//! what the packet holds, how the deparser's work can be done, and what is live where.

mod checksums;
mod deparse;
mod live;
mod packet;

pub(crate) use checksums::Change;
pub(crate) use live::is_idle;

use crate::error::Unsupported;
use checksums::Checksums;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use weir_ir::passes::{Scope, VarSet, constants, written};
use weir_ir::pipeline::{CallKind, Pipeline};
use weir_ir::{
    BlockId, Call, HeaderId, InLeaf, Inst, InstKind, Operand, Pattern, Program, Rvalue, Terminator, Type, VarId,
    VarKind,
};

/// A variable as code generation sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VarInfo {
    /// Bits; of a varbit the most it can have.
    pub width: u32,
    /// It knows its length.
    pub varbit: bool,
}

impl VarInfo {
    /// It fits in a register.
    pub fn is_narrow(self) -> bool {
        !self.varbit && self.width <= 64
    }

    /// Words of its home in the context, where it is not narrow. A varbit's are its length in bits and the address of
    /// its first byte, in the packet: nothing is copied before the deparser.
    pub fn home_words(self) -> usize {
        if self.varbit {
            2
        } else {
            self.width.div_ceil(64) as usize
        }
    }
}

/// Where a header that was extracted begins in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this bit, whatever way the parser took.
    Fixed(u32),
    /// This variable holds the bit.
    Variable(VarId),
}

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

/// How the deparser's work is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deparse {
    /// The headers stay where they are; changed fields are written over.
    InPlace,
    /// Headers are put together elsewhere and copied before what the parser left. At most this many bytes.
    Rebuild(usize),
}

/// How a variable is had again after a suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It has this value.
    Constant(u64),
    /// The packet holds it, from this bit on.
    Packet(u32),
    /// If its header is valid the packet holds it, so many bits after where the header begins; else it is 0.
    IfValid(HeaderId, u32),
}

/// The result.
pub(crate) struct Analysis<'a> {
    pub pipeline: &'a Pipeline,
    pub vars: Vec<VarInfo>,
    /// The bit of the packet that the parser is at.
    pub cursor: VarId,
    /// Bytes that the deparser has made.
    pub emitted: VarId,
    /// Where each header lies that is extracted from whole bytes.
    pub places: Vec<Option<Place>>,
    /// What internet checksums are computed of, each once.
    checksum_data: Vec<Vec<InLeaf>>,
    /// What is known where each block begins; `None`: nothing gets there.
    pub at: Vec<Option<State>>,
    pub deparse: Deparse,
    /// Blocks that control can reach, each after those before it but for loops.
    pub order: Vec<BlockId>,
    /// Number of the first call of each block.
    pub first_call: Vec<usize>,
    /// What each exit hands over from variables.
    pub handed_over: Vec<Vec<VarId>>,
    /// What is live where each block begins.
    pub live: Vec<VarSet>,
    /// Headers whose fields are had again from the packet at the start of a block, should they be valid.
    pub had_if_valid: BTreeSet<(BlockId, HeaderId)>,
    /// Variables that have one value on every way to the start of a block.
    pub constants: Vec<HashMap<VarId, u64>>,
    /// Inputs that nothing writes.
    pub constant_inputs: VarSet,
    /// Narrow fields that are as the packet has them, at the same place, wherever somebody reads them.
    pub packet_only: VarSet,
    /// Blocks that a jump back leads to; whether the loop takes from the packet.
    pub loops: BTreeMap<BlockId, bool>,
    /// Blocks that a packet may pass more than once.
    pub repeated: Vec<bool>,
    /// Counts the turns of loops.
    pub turns: VarId,
}

/// The header and index that a variable is a field of.
pub(crate) fn field_of(program: &Program, var: VarId) -> Option<(HeaderId, usize)> {
    match program.vars.get(var)?.kind {
        VarKind::Field { header, index } => Some((header, index as usize)),
        _ => None,
    }
}

/// The bit within its header where each field begins.
pub(crate) fn field_offsets(program: &Program, header: HeaderId) -> Vec<u32> {
    let ty = &program.header_types[program.headers[header].ty];
    let mut at = 0;
    ty.fields
        .iter()
        .map(|f| {
            let begin = at;
            if let Type::Bits(w) = f.ty {
                at += w;
            }
            begin
        })
        .collect()
}

fn post_order(pipeline: &Pipeline) -> Vec<BlockId> {
    let body = &pipeline.body;
    let mut seen = vec![false; body.blocks.len()];
    let mut order = Vec::new();
    let mut stack = vec![(BlockId::new(0), 0)];
    seen[0] = true;
    let successors = |id: BlockId| -> Vec<BlockId> {
        let block = &body.blocks[id];
        let mut all = block.terminator.targets();
        if block.insts.iter().any(|i| can_fail(&i.kind)) {
            all.extend(body.on_error);
        }
        all
    };
    while let Some((id, next)) = stack.pop() {
        match successors(id).get(next) {
            Some(&target) => {
                stack.push((id, next + 1));
                if !std::mem::replace(&mut seen[target.index()], true) {
                    stack.push((target, 0));
                }
            }
            None => order.push(id),
        }
    }
    order.reverse();
    order
}

/// Whether an instruction can go to the body's `on_error` block.
pub(crate) fn can_fail(kind: &InstKind) -> bool {
    matches!(
        kind,
        InstKind::Extract { .. } | InstKind::Lookahead { .. } | InstKind::Advance { .. }
    )
}

impl<'a> Analysis<'a> {
    /// Looks a pipeline over.
    pub fn new(pipeline: &'a Pipeline) -> Result<Self, Unsupported> {
        let program = &*pipeline.program;
        let mut vars: Vec<VarInfo> = program
            .vars
            .iter()
            .map(|(_, v)| VarInfo {
                width: v.ty.width(),
                varbit: matches!(v.ty, Type::Varbit(_)),
            })
            .collect();
        let mut new = |width| {
            vars.push(VarInfo { width, varbit: false });
            VarId::new(vars.len() - 1)
        };
        let (cursor, emitted, turns) = (new(64), new(64), new(64));
        let mut analysis = Analysis {
            pipeline,
            cursor,
            emitted,
            turns,
            places: vec![None; program.headers.len()],
            checksum_data: Vec::new(),
            at: Vec::new(),
            deparse: Deparse::InPlace,
            order: post_order(pipeline),
            first_call: Vec::new(),
            handed_over: Vec::new(),
            live: Vec::new(),
            had_if_valid: BTreeSet::new(),
            constants: Vec::new(),
            constant_inputs: VarSet::new(0),
            packet_only: VarSet::new(0),
            loops: BTreeMap::new(),
            repeated: vec![false; pipeline.body.blocks.len()],
            vars: Vec::new(),
        };
        let mut calls = 0;
        for (_, block) in pipeline.body.blocks.iter() {
            analysis.first_call.push(calls);
            calls += block
                .insts
                .iter()
                .filter(|i| matches!(i.kind, InstKind::Call(_)))
                .count();
        }
        analysis.find_loops();
        analysis.constants = analysis.find_constants();
        analysis.checksum_data = analysis.find_checksum_data();
        analysis.at = analysis.flow();
        analysis.check_alignment()?;
        // Places: the same bit on every way, or a variable.
        let mut found: BTreeMap<HeaderId, Option<u32>> = BTreeMap::new();
        analysis.each_inst(|state, inst| {
            if let InstKind::Extract { header, .. } = inst {
                let here = state.cursor;
                found
                    .entry(*header)
                    .and_modify(|p| *p = p.filter(|p| Some(*p) == here))
                    .or_insert(here);
            }
        });
        for (header, place) in found {
            analysis.places[header.index()] = Some(match place {
                Some(bit) => Place::Fixed(bit),
                None => Place::Variable(new(64)),
            });
        }
        analysis.vars = vars;
        analysis.check_varbits()?;
        analysis.deparse = analysis.plan()?;
        analysis.constant_inputs = analysis.find_constant_inputs();
        analysis.handed_over = analysis.find_handed_over();
        analysis.live = analysis.liveness();
        analysis.had_if_valid = analysis.find_had_if_valid();
        if !analysis.had_if_valid.is_empty() {
            // Where the headers lie must be known there.
            analysis.live = analysis.liveness();
        }
        analysis.packet_only = analysis.find_packet_only();
        Ok(analysis)
    }

    pub fn program(&self) -> &'a Program {
        &self.pipeline.program
    }

    fn find_loops(&mut self) {
        let body = &self.pipeline.body;
        let mut position = vec![usize::MAX; body.blocks.len()];
        for (i, id) in self.order.iter().enumerate() {
            position[id.index()] = i;
        }
        for (i, &id) in self.order.iter().enumerate() {
            for target in body.blocks[id].terminator.targets() {
                let start = position[target.index()];
                if start <= i {
                    let takes = self.order[start..=i].iter().any(|b| {
                        let block = &body.blocks[*b];
                        block.insts.iter().any(|x| can_fail(&x.kind))
                            || matches!(block.terminator, Terminator::Select { .. })
                            || block.state.is_some()
                    });
                    *self.loops.entry(target).or_default() |= takes;
                    for b in &self.order[start..=i] {
                        self.repeated[b.index()] = true;
                    }
                }
            }
        }
    }

    // ------------------------------------------------------------------------- forward

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

    /// Follows the instruction at a position of a block.
    fn step(&self, state: &mut State, block: BlockId, position: usize) {
        let program = self.program();
        let kind = &self.pipeline.body.blocks[block].insts[position].kind;
        let call = matches!(kind, InstKind::Call(_)).then(|| self.kind_of_call(block, position));
        state.checksums = self.step_checksums(state, kind, call);
        match kind {
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
            other => written(other, &program.headers, &mut |v| self.write(state, v, false)),
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

    fn flow(&self) -> Vec<Option<State>> {
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
                for (i, inst) in block.insts.iter().enumerate() {
                    if let (true, Some(on_error)) = (can_fail(&inst.kind), body.on_error) {
                        arrive(on_error, state.clone());
                    }
                    self.step(&mut state, id, i);
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
    fn each_inst(&self, mut f: impl FnMut(&State, &InstKind)) {
        for &id in &self.order {
            let Some(mut state) = self.at[id.index()].clone() else {
                continue;
            };
            for (i, inst) in self.pipeline.body.blocks[id].insts.iter().enumerate() {
                f(&state, &inst.kind);
                self.step(&mut state, id, i);
            }
        }
    }

    /// Headers must begin and end at whole bytes.
    fn check_alignment(&self) -> Result<(), Unsupported> {
        let program = self.program();
        let mut result = Ok(());
        self.each_inst(|_, inst| {
            let header = match inst {
                InstKind::Extract { header, .. } | InstKind::Emit { header } => *header,
                InstKind::Advance {
                    bits: Operand::Const(c),
                } if c.to_u64().is_none_or(|v| !v.is_multiple_of(8)) => {
                    result = Err(Unsupported::new(
                        "the parser advances by something else than whole bytes",
                    ));
                    return;
                }
                _ => return,
            };
            let ty = &program.header_types[program.headers[header].ty];
            if !ty.fixed_width().is_multiple_of(8) {
                let name = &program.headers[header].name;
                result = Err(Unsupported::new(format!(
                    "header `{name}` is not a whole number of bytes"
                )));
            }
            if let Some(i) = ty.varbit_field() {
                let offsets = field_offsets(program, header);
                if i + 1 != ty.fields.len() || !offsets[i].is_multiple_of(8) {
                    let name = &program.headers[header].name;
                    let what = format!("the varbit field of header `{name}` is not its last, at a whole byte");
                    result = Err(Unsupported::new(what));
                }
            }
        });
        result
    }

    fn find_constants(&self) -> Vec<HashMap<VarId, u64>> {
        let program = self.program();
        let mut inputs = VarSet::new(program.vars.len());
        self.pipeline.inputs.iter().for_each(|&v| inputs.insert(v));
        // Not only what code reads: whether headers are valid says which fields are in the packet.
        let mut also = VarSet::new(program.vars.len());
        program.headers.iter().for_each(|(_, h)| also.insert(h.valid));
        for exit in &self.pipeline.exits {
            exit.live.iter().for_each(|&v| also.insert(v));
        }
        let scope = Scope {
            vars: &program.vars,
            headers: &program.headers,
            inputs: &inputs,
        };
        constants(scope, &self.pipeline.body, &also)
    }

    fn find_constant_inputs(&self) -> VarSet {
        let mut set = VarSet::new(self.vars.len());
        self.pipeline.inputs.iter().for_each(|&v| set.insert(v));
        for &id in &self.order {
            let block = &self.pipeline.body.blocks[id];
            for inst in &block.insts {
                written(&inst.kind, &self.program().headers, &mut |v| set.remove(v));
            }
            for (i, inst) in block.insts.iter().enumerate() {
                if let InstKind::Call(_) = &inst.kind
                    && let CallKind::Host { writes, .. } = self.kind_of_call(id, i)
                {
                    writes.iter().for_each(|&v| set.remove(v));
                }
            }
            if let Terminator::Lookup(l) = &block.terminator {
                [l.hit, l.action, l.entry].into_iter().for_each(|v| set.remove(v));
            }
        }
        set
    }

    /// What the call at position `inst` of a block is.
    pub fn kind_of_call(&self, block: BlockId, inst: usize) -> &'a CallKind {
        let before = self.pipeline.body.blocks[block].insts[..inst]
            .iter()
            .filter(|i| matches!(i.kind, InstKind::Call(_)))
            .count();
        &self.pipeline.calls[self.first_call[block.index()] + before]
    }

    /// Whether the packet may end its way at the call at position `inst` of a block.
    pub fn may_abort(&self, block: BlockId, inst: usize) -> bool {
        matches!(self.kind_of_call(block, inst), CallKind::Host { abort: Some(_), .. })
    }

    // ------------------------------------------------------------------------- backward

    /// Whether a scalar that is summed up can be taken from the packet: its header and field.
    pub fn in_packet(&self, state: &State, operand: &Operand) -> Option<(HeaderId, usize)> {
        let Operand::Var(v) = operand else { return None };
        let (header, field) = field_of(self.program(), *v)?;
        let h = &state.headers[header.index()];
        let clean = h.extracted && !h.is_dirty(field) && !self.vars[v.index()].varbit;
        (clean && self.places[header.index()].is_some()).then_some((header, field))
    }

    /// Whether a varbit is certainly empty.
    pub fn is_pristine(&self, state: &State, operand: &Operand) -> bool {
        let Operand::Var(v) = operand else { return false };
        field_of(self.program(), *v).is_some_and(|(h, _)| state.headers[h.index()].pristine)
    }

    /// Whether code can sum up what a checksum is over: whether it knows where everything lies in the sum.
    pub fn is_summed_inline(&self, state: &State, call: &Call) -> bool {
        let leaves = call.inputs(0);
        let varbit = |l: &InLeaf| matches!(l, InLeaf::Value(o @ Operand::Var(v)) if self.vars[v.index()].varbit && !self.is_pristine(state, o));
        !leaves.iter().any(|l| matches!(l, InLeaf::Header(_))) && !leaves.iter().rev().skip(1).any(varbit)
    }

    /// The variable that holds where a header lies, if it is not always the same place.
    pub fn place_variable(&self, header: HeaderId) -> Option<VarId> {
        match self.places[header.index()] {
            Some(Place::Variable(v)) => Some(v),
            _ => None,
        }
    }

    fn place_read(&self, header: HeaderId, f: &mut dyn FnMut(VarId)) {
        if let Some(Place::Variable(v)) = self.places[header.index()] {
            f(v);
        }
    }

    /// Fields of a header that `emit` must write from variables.
    pub fn fields_to_write(&self, state: &State, header: HeaderId) -> Vec<usize> {
        let h = &state.headers[header.index()];
        let all = self.places[header.index()].is_none();
        if all && self.deparse == Deparse::InPlace {
            // It was never in the packet, and as nothing comes into it either, it is not valid.
            return Vec::new();
        }
        let count = self.program().headers[header].fields.len();
        let varbit = |i: usize| self.vars[self.program().headers[header].fields[i].index()].varbit;
        (0..count)
            .filter(|&i| all || h.is_dirty(i) || (varbit(i) && self.deparse != Deparse::InPlace))
            .collect()
    }

    /// Calls `f` with every variable an instruction reads, given what is known before it.
    pub fn reads(&self, state: &State, kind: &InstKind, call_kind: Option<&CallKind>, f: &mut dyn FnMut(VarId)) {
        let program = self.program();
        match kind {
            InstKind::Emit { header } => {
                let fields = self.fields_to_write(state, *header);
                if self.deparse == Deparse::InPlace && fields.is_empty() {
                    return;
                }
                f(program.headers[*header].valid);
                fields.iter().for_each(|&i| f(program.headers[*header].fields[i]));
                self.place_read(*header, f);
                if self.deparse != Deparse::InPlace {
                    f(self.emitted);
                }
            }
            InstKind::Call(call) => self.call_reads(state, call, call_kind, f),
            other => {
                weir_ir::passes::read_by_inst(other, &program.headers, f);
                if can_fail(other) && state.cursor.is_none() {
                    f(self.cursor);
                }
            }
        }
    }

    fn call_reads(&self, state: &State, call: &Call, kind: Option<&CallKind>, f: &mut dyn FnMut(VarId)) {
        match kind {
            Some(CallKind::InternetChecksum | CallKind::InternetSum) if self.is_summed_inline(state, call) => {
                if let Some(change) = self.change_of_checksum(state, call) {
                    let changed = change.parts.iter().map(|part| part.before.0);
                    changed
                        .chain([change.checksum.0])
                        .for_each(|header| self.place_read(header, f));
                }
                for leaf in call.inputs(0) {
                    let InLeaf::Value(o) = leaf else { continue };
                    match (self.in_packet(state, o), o) {
                        (Some((header, _)), _) => self.place_read(header, f),
                        // An empty varbit adds nothing.
                        (None, Operand::Var(v)) if self.vars[v.index()].varbit && self.is_pristine(state, o) => {}
                        (None, Operand::Var(v)) => f(*v),
                        (None, Operand::Const(_)) => {}
                    }
                }
            }
            Some(CallKind::Nothing) => {}
            Some(CallKind::Count(_)) => {
                if let Some(Operand::Var(v)) = call.input(0) {
                    f(*v);
                }
            }
            Some(CallKind::ReadCell { .. } | CallKind::WriteCell { .. } | CallKind::ByMagnitude(_)) => {
                for at in 0..2 {
                    if let Some(Operand::Var(v)) = call.input(at) {
                        f(*v);
                    }
                }
            }
            _ => {
                weir_ir::passes::read_by_inst(&InstKind::Call(call.clone()), &self.program().headers, f);
                if let Some(CallKind::Host { reads, .. }) = kind {
                    reads.iter().for_each(|&v| f(v));
                }
                if state.cursor.is_none() {
                    f(self.cursor);
                }
            }
        }
    }

    /// What exits hand over from variables: all that they name but fields that are as the packet has them wherever control
    /// leaves.
    fn find_handed_over(&self) -> Vec<Vec<VarId>> {
        let mut all: Vec<BTreeSet<VarId>> = vec![BTreeSet::new(); self.pipeline.exits.len()];
        for &id in &self.order {
            let Terminator::Exit(exit) = self.pipeline.body.blocks[id].terminator else {
                continue;
            };
            let Some(state) = self.states(id).pop() else { continue };
            let in_packet = |v: &VarId| {
                field_of(self.program(), *v)
                    .is_some_and(|(header, field)| !state.headers[header.index()].is_dirty(field))
            };
            let live = self.pipeline.exits[exit as usize].live.iter();
            all[exit as usize].extend(live.filter(|v| !in_packet(v)));
        }
        all.into_iter().map(|vars| vars.into_iter().collect()).collect()
    }

    fn exit_reads(&self, state: &State, exit: u32, f: &mut dyn FnMut(VarId)) {
        self.handed_over[exit as usize].iter().for_each(|v| f(*v));
        if self.pipeline.exits[exit as usize].deparsed && self.deparse != Deparse::InPlace {
            if state.cursor.is_none() {
                f(self.cursor);
            }
            f(self.emitted);
        }
    }

    /// Calls `f` with every variable a terminator reads.
    pub fn terminator_reads(&self, state: &State, terminator: &Terminator, f: &mut dyn FnMut(VarId)) {
        if let Terminator::Exit(exit) = terminator {
            self.exit_reads(state, *exit, f);
        } else {
            weir_ir::passes::read_by_terminator(terminator, f);
            // A value set's values are keys that are read anyway.
            if let Terminator::Select { cases, .. } = terminator {
                debug_assert!(cases.iter().all(|c| {
                    c.patterns.iter().all(
                        |p| !matches!(p, Pattern::Range(a, ..) if matches!(a, Operand::Const(c) if c.width() == 0)),
                    )
                }));
            }
        }
    }

    /// Calls `f` with every variable an instruction writes, the cursor and so on included.
    pub fn writes(&self, inst: &Inst, kind: Option<&CallKind>, f: &mut dyn FnMut(VarId)) {
        written(&inst.kind, &self.program().headers, f);
        match &inst.kind {
            InstKind::Extract { header, .. } => {
                f(self.cursor);
                self.place_read(*header, f);
            }
            InstKind::Advance { .. } => f(self.cursor),
            InstKind::Emit { .. } if self.deparse != Deparse::InPlace => f(self.emitted),
            InstKind::Call(_) => {
                if let Some(CallKind::Host { writes, .. }) = kind {
                    writes.iter().for_each(|&v| f(v));
                }
            }
            _ => {}
        }
    }

    /// What is known before each instruction of a block.
    pub fn states(&self, id: BlockId) -> Vec<State> {
        let Some(mut state) = self.at[id.index()].clone() else {
            return Vec::new();
        };
        let mut all = vec![state.clone()];
        for i in 0..self.pipeline.body.blocks[id].insts.len() {
            self.step(&mut state, id, i);
            all.push(state.clone());
        }
        all
    }
}
