//! Constants across basic blocks: what is the same on every way that control can take, and branches that
//! the way here has already decided.
//!
//! A body that was put together from several blocks is full of both: a header that this path has not
//! extracted is invalid, metadata that nobody has written is zero. The propagation is conditional (an edge that
//! cannot be taken contributes nothing) and learns from the branches it passes.

use super::dead::{VarSet, read_by_inst, read_by_terminator};
use super::propagate::{basic_block, written};
use super::simplify_control_flow;
use crate::arena::Arena;
use crate::bits::Bits;
use crate::program::*;
use std::collections::HashMap;

/// States (variables times basic blocks) that the analysis keeps at most; beyond it the body stays as it is.
const STATE_BUDGET: usize = 8 << 20;
/// Instructions that a block may have to be copied to a predecessor that knows how it ends.
const COPY_LIMIT: usize = 12;
/// Copies of blocks per body.
const COPY_BUDGET: usize = 256;

/// The body and what its variables are.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Variables of the program.
    pub vars: &'a Arena<Var>,
    /// Headers of the program.
    pub headers: &'a Arena<Header>,
    /// Variables that hold something else than zero where the body begins.
    pub inputs: &'a VarSet,
}

/// Folds what is constant at a point of the body, removes branches that are decided, and lets a block that
/// knows how its successor ends go straight to that end. Ends when nothing changes any more, after
/// `rounds` rounds at the latest.
pub fn fold_paths(scope: Scope<'_>, body: &mut Body, rounds: usize) {
    for _ in 0..rounds {
        let mut changed = false;
        for (_, block) in body.blocks.iter_mut() {
            changed |= basic_block(block, scope.vars, scope.headers);
        }
        changed |= fold(scope, body);
        simplify_control_flow(body);
        if !changed {
            return;
        }
    }
}

/// Values of the tracked variables at one point.
#[derive(Debug, Clone, PartialEq)]
struct State {
    values: Vec<u64>,
    known: Vec<u64>,
}

impl State {
    fn get(&self, index: usize) -> Option<u64> {
        (self.known[index / 64] >> (index % 64) & 1 == 1).then(|| self.values[index])
    }

    fn set(&mut self, index: usize, value: Option<u64>) {
        let bit = 1 << (index % 64);
        match value {
            Some(v) => {
                self.values[index] = v;
                self.known[index / 64] |= bit;
            }
            None => self.known[index / 64] &= !bit,
        }
    }

    /// Keeps what both agree on; whether that is less than before.
    fn meet(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (word, (mine, theirs)) in self.known.iter_mut().zip(&other.known).enumerate() {
            let mut keep = *mine & *theirs;
            let mut bits = keep;
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let index = word * 64 + bit;
                if self.values[index] != other.values[index] {
                    keep &= !(1 << bit);
                }
            }
            changed |= keep != *mine;
            *mine = keep;
        }
        changed
    }
}

struct Analysis<'a> {
    scope: Scope<'a>,
    /// Position of a variable in states.
    index: HashMap<VarId, usize>,
    tracked: Vec<VarId>,
}

fn narrow(var: &Var) -> bool {
    matches!(var.ty, Type::Bits(w) if w <= 64)
}

/// Constants known within a block: the state, and variables of the block alone.
struct Local<'a> {
    analysis: &'a Analysis<'a>,
    state: State,
    here: HashMap<VarId, u64>,
    /// Variables that are the outcome of comparing another one to a constant.
    tests: HashMap<VarId, (VarId, u64, bool)>,
}

impl<'a> Analysis<'a> {
    fn new(scope: Scope<'a>, body: &Body) -> Option<Self> {
        // Only what is read before it is written in some block crosses from block to block.
        let mut crossing = VarSet::new(scope.vars.len());
        for (_, block) in body.blocks.iter() {
            let mut defined = VarSet::new(scope.vars.len());
            for inst in &block.insts {
                read_by_inst(&inst.kind, scope.headers, &mut |v| {
                    if !defined.contains(v) {
                        crossing.insert(v);
                    }
                });
                written(&inst.kind, scope.headers, &mut |v| defined.insert(v));
            }
            read_by_terminator(&block.terminator, &mut |v| {
                if !defined.contains(v) {
                    crossing.insert(v);
                }
            });
        }
        let tracked: Vec<VarId> = crossing.iter().filter(|&v| narrow(&scope.vars[v])).collect();
        if tracked.len().saturating_mul(body.blocks.len()) > STATE_BUDGET {
            return None;
        }
        Some(Analysis {
            scope,
            index: tracked.iter().enumerate().map(|(i, &v)| (v, i)).collect(),
            tracked,
        })
    }

    fn entry(&self) -> State {
        let mut state = State {
            values: vec![0; self.tracked.len()],
            known: vec![0; self.tracked.len().div_ceil(64)],
        };
        for (i, &var) in self.tracked.iter().enumerate() {
            if !self.scope.inputs.contains(var) {
                state.set(i, Some(0));
            }
        }
        state
    }

    fn local(&'a self, state: State) -> Local<'a> {
        Local {
            analysis: self,
            state,
            here: HashMap::new(),
            tests: HashMap::new(),
        }
    }
}

impl Local<'_> {
    fn get(&self, operand: &Operand) -> Option<Bits> {
        match operand {
            Operand::Const(c) => Some(c.clone()),
            Operand::Var(v) => {
                let value = match self.analysis.index.get(v) {
                    Some(&i) => self.state.get(i),
                    None => self.here.get(v).copied(),
                }?;
                Some(Bits::new(self.analysis.scope.vars[*v].ty.width(), value.into()))
            }
        }
    }

    fn set(&mut self, var: VarId, value: Option<u64>) {
        self.tests.retain(|&v, (of, _, _)| v != var && *of != var);
        match (self.analysis.index.get(&var), value) {
            (Some(&i), value) => self.state.set(i, value),
            (None, Some(value)) => {
                self.here.insert(var, value);
            }
            (None, None) => {
                self.here.remove(&var);
            }
        }
    }

    fn step(&mut self, kind: &InstKind) {
        let vars = self.analysis.scope.vars;
        if let InstKind::Assign { dst, value } = kind {
            let result = (narrow(&vars[*dst]))
                .then(|| {
                    if matches!(value, Rvalue::VarbitEq(..)) {
                        return None;
                    }
                    if let Rvalue::Mux {
                        condition,
                        then,
                        otherwise,
                    } = value
                        && let Some(c) = self.get(condition)
                    {
                        return self.get(if c.is_zero() { otherwise } else { then });
                    }
                    if !value.operands().all(|o| self.get(o).is_some()) {
                        return None;
                    }
                    let zero = || Bits::zero(0);
                    Some(crate::eval::rvalue(value, vars[*dst].ty.width(), |o| {
                        self.get(o).unwrap_or_else(zero)
                    }))
                })
                .flatten()
                .and_then(|b| b.to_u64());
            let test = match value {
                Rvalue::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) => match (a, b) {
                    (Operand::Var(v), Operand::Const(c)) | (Operand::Const(c), Operand::Var(v)) if *v != *dst => {
                        c.to_u64().map(|c| (*v, c, *op == BinaryOp::Eq))
                    }
                    _ => None,
                },
                Rvalue::Unary(UnaryOp::Not, Operand::Var(v)) if vars[*v].ty.width() == 1 && *v != *dst => {
                    Some(self.tests.get(v).map_or((*v, 0, true), |&(of, c, eq)| (of, c, !eq)))
                }
                _ => None,
            };
            self.set(*dst, result);
            if let Some(test) = test {
                self.tests.insert(*dst, test);
            }
            return;
        }
        let headers = self.analysis.scope.headers;
        let mut changed = Vec::new();
        written(kind, headers, &mut |v| changed.push(v));
        for v in changed {
            self.set(v, None);
        }
        match kind {
            // A failing extraction leaves the header as it was; after one that succeeded it is valid.
            InstKind::Extract { header, .. } => self.set(headers[*header].valid, Some(1)),
            InstKind::Call(call) if !call.is_pure => {
                for (i, &v) in self.analysis.tracked.iter().enumerate() {
                    if vars[v].kind == VarKind::Shared {
                        self.state.set(i, None);
                    }
                }
                self.here.retain(|&v, _| vars[v].kind != VarKind::Shared);
                self.tests.retain(|_, (of, _, _)| vars[*of].kind != VarKind::Shared);
            }
            _ => {}
        }
    }

    /// Where control goes, if that is certain.
    fn decided(&self, terminator: &Terminator) -> Option<BlockId> {
        match terminator {
            Terminator::Branch {
                condition,
                then,
                otherwise,
            } => {
                let c = self.get(condition)?;
                Some(if c.is_zero() { *otherwise } else { *then })
            }
            Terminator::Switch { value, cases, default } => {
                let v = self.get(value)?;
                Some(cases.iter().find(|(c, _)| *c == v).map_or(*default, |(_, b)| *b))
            }
            Terminator::Select { keys, cases, default } => {
                let keys: Vec<Bits> = keys.iter().map(|k| self.get(k)).collect::<Option<_>>()?;
                for case in cases {
                    if case.patterns.len() != keys.len() {
                        return None;
                    }
                    let mut all = true;
                    for (pattern, key) in case.patterns.iter().zip(&keys) {
                        all &= match pattern {
                            Pattern::Any => true,
                            Pattern::Exact(v) => self.get(v)? == *key,
                            Pattern::Mask(v, m) => {
                                let m = self.get(m)?;
                                key.and(&m) == self.get(v)?.and(&m)
                            }
                            Pattern::Range(..) | Pattern::ValueSet(_) => return None,
                        };
                    }
                    if all {
                        return Some(case.target);
                    }
                }
                Some(*default)
            }
            _ => None,
        }
    }

    /// Where control may go, and what is known on each way.
    fn edges(&self, terminator: &Terminator) -> Vec<(BlockId, State)> {
        if let Some(target) = self.decided(terminator) {
            return vec![(target, self.state.clone())];
        }
        let with = |facts: &[(VarId, u64)]| {
            let mut state = self.state.clone();
            for (v, value) in facts {
                if let Some(&i) = self.analysis.index.get(v) {
                    state.set(i, Some(*value));
                }
            }
            state
        };
        match terminator {
            Terminator::Branch {
                condition: Operand::Var(c),
                then,
                otherwise,
            } => {
                let (mut yes, mut no) = (vec![(*c, 1)], vec![(*c, 0)]);
                if let Some(&(v, constant, eq)) = self.tests.get(c) {
                    let one_bit = self.analysis.scope.vars[v].ty.width() == 1;
                    let (same, other) = if eq { (&mut yes, &mut no) } else { (&mut no, &mut yes) };
                    same.push((v, constant));
                    if one_bit {
                        other.push((v, constant ^ 1));
                    }
                }
                vec![(*then, with(&yes)), (*otherwise, with(&no))]
            }
            Terminator::Switch {
                value: Operand::Var(v),
                cases,
                default,
            } => cases
                .iter()
                .map(|(c, b)| (*b, c.to_u64().map_or_else(|| self.state.clone(), |c| with(&[(*v, c)]))))
                .chain([(*default, self.state.clone())])
                .collect(),
            Terminator::Lookup(lookup) => {
                let mut state = self.state.clone();
                let vars = self.analysis.scope.vars;
                let mut forget = |v: VarId| {
                    if let Some(&i) = self.analysis.index.get(&v) {
                        state.set(i, None);
                    }
                };
                [lookup.hit, lookup.action, lookup.entry]
                    .into_iter()
                    .for_each(&mut forget);
                // Which parameters are written depends on the action.
                for &v in &self.analysis.tracked {
                    if vars[v].kind == VarKind::ActionParameter {
                        forget(v);
                    }
                }
                vec![(lookup.next, state)]
            }
            other => other.targets().into_iter().map(|b| (b, self.state.clone())).collect(),
        }
    }
}

fn can_fail(kind: &InstKind) -> bool {
    matches!(
        kind,
        InstKind::Extract { .. } | InstKind::Lookahead { .. } | InstKind::Advance { .. }
    )
}

/// Known states at the start of blocks that control can reach.
fn states(analysis: &Analysis<'_>, body: &Body) -> Vec<Option<State>> {
    let mut at: Vec<Option<State>> = vec![None; body.blocks.len()];
    let mut work = vec![BlockId::new(0)];
    at[0] = Some(analysis.entry());
    let arrive = |at: &mut Vec<Option<State>>, work: &mut Vec<BlockId>, block: BlockId, state: State| {
        let changed = match &mut at[block.index()] {
            Some(known) => known.meet(&state),
            none => {
                *none = Some(state);
                true
            }
        };
        if changed && !work.contains(&block) {
            work.push(block);
        }
    };
    while let Some(id) = work.pop() {
        let Some(state) = at[id.index()].clone() else { continue };
        let block = &body.blocks[id];
        let mut local = analysis.local(state);
        for inst in &block.insts {
            if can_fail(&inst.kind)
                && let Some(on_error) = body.on_error
            {
                let mut failed = local.state.clone();
                if let Some(i) = body.error.and_then(|e| analysis.index.get(&e)) {
                    failed.set(*i, None);
                }
                arrive(&mut at, &mut work, on_error, failed);
            }
            local.step(&inst.kind);
        }
        for (target, state) in local.edges(&block.terminator) {
            arrive(&mut at, &mut work, target, state);
        }
    }
    at
}

fn fold(scope: Scope<'_>, body: &mut Body) -> bool {
    let Some(analysis) = Analysis::new(scope, body) else {
        return false;
    };
    let at = states(&analysis, body);
    let mut changed = false;
    let mut copies = 0;
    for id in body.blocks.ids().collect::<Vec<_>>() {
        let Some(state) = at[id.index()].clone() else { continue };
        let mut block = body.blocks[id].clone();
        let mut local = analysis.local(state);
        for inst in &mut block.insts {
            changed |= replace_in_inst(&local, &mut inst.kind);
            local.step(&inst.kind);
        }
        if let Some(target) = local.decided(&block.terminator) {
            if !matches!(block.terminator, Terminator::Goto(_)) {
                block.terminator = Terminator::Goto(target);
                changed = true;
            }
        } else {
            changed |= replace_in_terminator(&local, &mut block.terminator);
        }
        // Straight on through blocks that end in a way that is known from here.
        while copies < COPY_BUDGET
            && let Terminator::Goto(next) = block.terminator
            && next != id
        {
            let following = &body.blocks[next];
            let plain = following.state.is_none()
                && following.insts.len() <= COPY_LIMIT
                && following.insts.iter().all(|i| !can_fail(&i.kind))
                && matches!(
                    following.terminator,
                    Terminator::Branch { .. } | Terminator::Switch { .. } | Terminator::Select { .. }
                );
            if !plain {
                break;
            }
            let mut ahead = analysis.local(local.state.clone());
            following.insts.iter().for_each(|i| ahead.step(&i.kind));
            let Some(target) = ahead.decided(&following.terminator) else {
                break;
            };
            block.insts.extend(following.insts.iter().cloned());
            block.terminator = Terminator::Goto(target);
            local = ahead;
            copies += 1;
            changed = true;
        }
        body.blocks[id] = block;
    }
    changed
}

fn replace(local: &Local<'_>, operand: &mut Operand) -> bool {
    if let Operand::Var(_) = operand
        && let Some(value) = local.get(operand)
    {
        *operand = Operand::Const(value);
        return true;
    }
    false
}

fn replace_in_inst(local: &Local<'_>, kind: &mut InstKind) -> bool {
    let mut changed = false;
    match kind {
        InstKind::Assign { value, .. } => {
            for operand in value.operands_mut() {
                changed |= replace(local, operand);
            }
        }
        InstKind::Extract {
            varbit_bits: Some(o), ..
        }
        | InstKind::Advance { bits: o } => changed |= replace(local, o),
        InstKind::Call(call) => {
            for argument in &mut call.arguments {
                if let ArgumentValue::In(leaves) = &mut argument.value {
                    for leaf in leaves {
                        // Fields stay what they are: whoever sums them up wants to see the header.
                        if let InLeaf::Value(o) = leaf
                            && !matches!(o, Operand::Var(v) if matches!(local.analysis.scope.vars[*v].kind, VarKind::Field { .. }))
                        {
                            changed |= replace(local, o);
                        }
                    }
                }
            }
        }
        _ => {}
    }
    changed
}

fn replace_in_terminator(local: &Local<'_>, terminator: &mut Terminator) -> bool {
    let mut changed = false;
    match terminator {
        Terminator::Select { keys, cases, .. } => {
            for key in keys {
                changed |= replace(local, key);
            }
            for pattern in cases.iter_mut().flat_map(|c| &mut c.patterns) {
                match pattern {
                    Pattern::Exact(a) => changed |= replace(local, a),
                    Pattern::Mask(a, b) | Pattern::Range(a, b, _) => {
                        changed |= replace(local, a);
                        changed |= replace(local, b);
                    }
                    Pattern::Any | Pattern::ValueSet(_) => {}
                }
            }
        }
        Terminator::Lookup(l) => {
            for key in &mut l.keys {
                changed |= replace(local, key);
            }
        }
        _ => {}
    }
    changed
}
