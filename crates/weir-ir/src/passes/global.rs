//! Constants across basic blocks: what is the same on every way that control can take, and branches
//! that the way here has already decided.
//!
//! A body that was put together from several blocks is full of both: a header that this path has
//! not extracted is invalid, metadata that was not written is zero. The propagation is
//! conditional (an edge that cannot be taken contributes nothing) and learns from the branches it
//! passes.

use super::VarSet;
use super::dead::{read_by_inst, read_by_terminator};
use super::operands::{Stands, replace_in_inst, replace_in_terminator};
use super::propagate::{basic_block, written};
use super::simplify_control_flow;
use super::split::{Budget, tail_duplicate};
use super::state::{RELATED, State};
use crate::arena::Arena;
use crate::bits::Bits;
use crate::program::*;
use std::collections::{BTreeSet, HashMap};

/// States (variables times basic blocks) that the analysis keeps at most; beyond it the body stays
/// as it is.
const STATE_BUDGET: usize = 8 << 20;
/// Instructions that a block may have to be copied to a predecessor that knows how it ends.
const COPY_LIMIT: usize = 24;
/// Paths that are duplicated per round, per block of the body.
const COPIES_PER_BLOCK: usize = 2;
/// Limit of duplicated instructions over all rounds, beyond the body's own size.
const COPIED_BESIDES: usize = 50_000;
/// Instructions and ends of blocks that are copied for packets that failed in the parser.
const ERROR_PATH_LIMIT: usize = 400;

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

/// Folds what is constant at a point of the body, removes branches that are decided, and lets a
/// block that knows how its successor ends go straight to that end. Ends when nothing changes any
/// more, after `rounds` rounds at the latest.
pub fn fold_paths(scope: Scope<'_>, body: &mut Body, rounds: usize) {
    split_error_path(body);
    let size: usize = body.blocks.iter().map(|(_, block)| block.insts.len()).sum();
    let mut to_copy = size + COPIED_BESIDES;
    fold_rounds(scope, body, rounds, &mut to_copy);
    let mut budget = Budget::new();
    while tail_duplicate(scope, body, &mut budget) {
        fold_rounds(scope, body, rounds, &mut to_copy);
    }
}

/// Repeats [`fold`] until nothing changes, for at most `rounds` rounds. `to_copy` is the number of
/// instructions that may still be duplicated.
fn fold_rounds(scope: Scope<'_>, body: &mut Body, rounds: usize, to_copy: &mut usize) {
    for _ in 0..rounds {
        let mut changed = false;
        for (_, block) in body.blocks.iter_mut() {
            changed |= basic_block(block, scope.vars, scope.headers);
        }
        changed |= fold(scope, body, to_copy);
        simplify_control_flow(body);
        if !changed {
            return;
        }
    }
}

/// Variables of up to 64 bits with a value that is the same on every way to the start of each
/// block, besides those that code reads also the ones in `also`. Empty for bodies that are too
/// large.
#[must_use]
pub fn constants(scope: Scope<'_>, body: &Body, also: &VarSet) -> Vec<HashMap<VarId, u64>> {
    let Some(analysis) = Analysis::new(scope, body, Some(also)) else {
        return vec![HashMap::new(); body.blocks.len()];
    };
    states(&analysis, body)
        .into_iter()
        .map(|state| match state {
            Some(state) => {
                let known = analysis.tracked.iter().enumerate();
                known
                    .filter_map(|(i, &v)| state.get(i).map(|value| (v, value)))
                    .collect()
            }
            None => HashMap::new(),
        })
        .collect()
}

/// Gives packets that failed in the parser a path of their own up to the next lookup, so that facts
/// about all others (valid headers, no error) are not lost where the paths join.
fn split_error_path(body: &mut Body) {
    let Some(on_error) = body.on_error else { return };
    let (mut copies, mut order, mut insts) = (HashMap::new(), vec![on_error], 0);
    copies.insert(on_error, on_error);
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        for target in body.blocks[id].terminator.targets() {
            let block = &body.blocks[target];
            let parses = block.state.is_some() || block.can_fail();
            // Lookups stay one: a vector is the fuller the more ways lead there.
            if copies.contains_key(&target)
                || parses
                || matches!(block.terminator, Terminator::Lookup(_) | Terminator::Suspend(_))
            {
                continue;
            }
            insts += block.insts.len() + 1;
            copies.insert(target, target);
            order.push(target);
        }
    }
    if insts > ERROR_PATH_LIMIT {
        return;
    }
    for &id in &order[1..] {
        let copy = body.blocks[id].clone();
        copies.insert(id, body.blocks.push(copy));
    }
    for id in order {
        let terminator = &mut body.blocks[copies[&id]].terminator;
        terminator.map_targets(|b| copies.get(&b).copied().unwrap_or(b));
    }
}

pub(super) struct Analysis<'a> {
    scope: Scope<'a>,
    /// Position of a variable in states.
    index: HashMap<VarId, usize>,
    /// First the validity of headers.
    tracked: Vec<VarId>,
    /// Of so many headers it is tracked what their validity says of each other.
    related: usize,
}

fn narrow(var: &Var) -> bool {
    matches!(var.ty, Type::Bits(w) if w <= 64)
}

/// Constants known within a block: the state, and variables of the block alone.
struct Local<'a> {
    analysis: &'a Analysis<'a>,
    state: State,
    here: HashMap<VarId, u64>,
    /// What follows for other variables from one bit that was computed from them.
    follows: HashMap<VarId, Follows>,
}

/// What is known of other variables where a bit is 1, and where it is 0.
#[derive(Debug, Clone, Default)]
struct Follows {
    one: Vec<(VarId, u64)>,
    zero: Vec<(VarId, u64)>,
}

impl<'a> Analysis<'a> {
    pub fn new(scope: Scope<'a>, body: &Body, also: Option<&VarSet>) -> Option<Self> {
        // Only what is read before it is written in some block crosses from block to block.
        let mut crossing = VarSet::new(scope.vars.len());
        // By variable: the last block that defines it so far.
        let mut defined = vec![None; scope.vars.len()];
        for (id, block) in body.blocks.iter() {
            for inst in &block.insts {
                read_by_inst(&inst.kind, scope.headers, &mut |v| {
                    if defined[v.index()] != Some(id) {
                        crossing.insert(v);
                    }
                });
                written(&inst.kind, scope.headers, &mut |v| defined[v.index()] = Some(id));
            }
            read_by_terminator(&block.terminator, &mut |v| {
                if defined[v.index()] != Some(id) {
                    crossing.insert(v);
                }
            });
        }
        if let Some(also) = also {
            crossing.union(also);
        }
        let is_validity = |v: &VarId| matches!(scope.vars[*v].kind, VarKind::Valid { .. });
        let mut tracked: Vec<VarId> = crossing.iter().filter(|&v| narrow(&scope.vars[v])).collect();
        tracked.sort_by_key(|v| !is_validity(v));
        let related = tracked.iter().take_while(|v| is_validity(v)).count().min(RELATED);
        if tracked.len().saturating_mul(body.blocks.len()) > STATE_BUDGET {
            return None;
        }
        Some(Analysis {
            scope,
            index: tracked.iter().enumerate().map(|(i, &v)| (v, i)).collect(),
            tracked,
            related,
        })
    }

    /// The value of a variable, if it is tracked and known.
    pub fn value(&self, state: &State, var: VarId) -> Option<u64> {
        state.get(*self.index.get(&var)?)
    }

    fn entry(&self) -> State {
        let mut state = State::unknown(self.tracked.len(), self.related);
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
            follows: HashMap::new(),
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
        self.follows.remove(&var);
        for follows in self.follows.values_mut() {
            follows.one.retain(|(v, _)| *v != var);
            follows.zero.retain(|(v, _)| *v != var);
        }
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
                    if let Some(unequal) = self.compared_to_zero(value) {
                        return Some(Bits::new(1, u64::from(unequal).into()));
                    }
                    if let Some(absorbed) = self.absorbed(value, vars[*dst].ty.width()) {
                        return Some(absorbed);
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
            let follows = self.follow(value, *dst);
            let nonzero = matches!(value, Rvalue::Use(o) if self.is_nonzero(o));
            self.set(*dst, result);
            if let (true, Some(&i)) = (nonzero, self.analysis.index.get(dst)) {
                self.state.set_nonzero(i);
            }
            if let Some(follows) = follows {
                self.follows.insert(*dst, follows);
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
            // A failing extraction leaves the header as it was; after one that succeeded it is
            // valid.
            InstKind::Extract { header, .. } => self.set(headers[*header].valid, Some(1)),
            InstKind::Call(call) if !call.is_pure => {
                for (i, &v) in self.analysis.tracked.iter().enumerate() {
                    if vars[v].kind == VarKind::Shared {
                        self.state.set(i, None);
                    }
                }
                self.here.retain(|&v, _| vars[v].kind != VarKind::Shared);
                let private = |(v, _): &(VarId, u64)| vars[*v].kind != VarKind::Shared;
                for follows in self.follows.values_mut() {
                    follows.one.retain(private);
                    follows.zero.retain(private);
                }
            }
            _ => {}
        }
    }

    fn is_nonzero(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Const(c) => !c.is_zero(),
            Operand::Var(v) => self.analysis.index.get(v).is_some_and(|&i| self.state.is_nonzero(i)),
        }
    }

    /// What comes out whatever the other operand is: anything or'ed with ones, and'ed with or
    /// multiplied by zero.
    fn absorbed(&self, value: &Rvalue, width: u32) -> Option<Bits> {
        let Rvalue::Binary(op, a, b) = value else { return None };
        let absorbing = match op {
            BinaryOp::Or => Bits::ones(width),
            BinaryOp::And | BinaryOp::Mul => Bits::zero(width),
            _ => return None,
        };
        [a, b]
            .into_iter()
            .any(|o| self.get(o).as_ref() == Some(&absorbing))
            .then_some(absorbing)
    }

    /// The outcome of comparing something that is not zero with zero.
    fn compared_to_zero(&self, value: &Rvalue) -> Option<bool> {
        let Rvalue::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) = value else {
            return None;
        };
        let zero = |o: &Operand| matches!(o, Operand::Const(c) if c.is_zero());
        let differ = (zero(a) && self.is_nonzero(b)) || (zero(b) && self.is_nonzero(a));
        differ.then_some(*op == BinaryOp::Ne)
    }

    /// What follows from a bit that is computed so and kept in `dst`.
    fn follow(&self, value: &Rvalue, dst: VarId) -> Option<Follows> {
        let vars = self.analysis.scope.vars;
        let bit = |v: VarId| vars[v].ty.width() == 1 && narrow(&vars[v]);
        let of = |operand: &Operand, one: bool| -> Vec<(VarId, u64)> {
            let Operand::Var(v) = operand else { return Vec::new() };
            let more = self.follows.get(v).map(|f| if one { &f.one } else { &f.zero });
            std::iter::once((*v, u64::from(one)))
                .chain(more.into_iter().flatten().copied())
                .collect()
        };
        let both = |a: &Operand, b: &Operand, one: bool| of(a, one).into_iter().chain(of(b, one)).collect();
        if !bit(dst) {
            return None;
        }
        let mut follows = match value {
            Rvalue::Use(a) => Follows {
                one: of(a, true),
                zero: of(a, false),
            },
            Rvalue::Unary(UnaryOp::Not, a) => Follows {
                one: of(a, false),
                zero: of(a, true),
            },
            Rvalue::Binary(BinaryOp::And, a, b) => Follows {
                one: both(a, b, true),
                zero: Vec::new(),
            },
            Rvalue::Binary(BinaryOp::Or, a, b) => Follows {
                one: Vec::new(),
                zero: both(a, b, false),
            },
            Rvalue::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), Operand::Var(v), Operand::Const(c))
            | Rvalue::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), Operand::Const(c), Operand::Var(v)) => {
                let constant = c.to_u64()?;
                let other = if bit(*v) {
                    of(&Operand::Var(*v), constant == 0)
                } else {
                    Vec::new()
                };
                let same = if bit(*v) {
                    of(&Operand::Var(*v), constant == 1)
                } else {
                    vec![(*v, constant)]
                };
                match op {
                    BinaryOp::Eq => Follows { one: same, zero: other },
                    _ => Follows { one: other, zero: same },
                }
            }
            _ => return None,
        };
        follows.one.retain(|(v, _)| *v != dst);
        follows.zero.retain(|(v, _)| *v != dst);
        Some(follows)
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
                    state.learn(i, *value);
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
                if let Some(follows) = self.follows.get(c) {
                    yes.extend(&follows.one);
                    no.extend(&follows.zero);
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
            Terminator::Select { keys, cases, default } => {
                let exact = |case: &SelectCase| {
                    let facts = keys.iter().zip(&case.patterns).filter_map(|(k, p)| match (k, p) {
                        (Operand::Var(v), Pattern::Exact(Operand::Const(c))) => Some((*v, c.to_u64()?)),
                        _ => None,
                    });
                    // A value set stands for several keys.
                    let plain = case.patterns.len() == keys.len();
                    if plain { facts.collect() } else { Vec::new() }
                };
                let taken = cases.iter().map(|c| (c.target, with(&exact(c))));
                taken.chain([(*default, self.state.clone())]).collect()
            }
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

/// Where control goes from the end of a block with a known start, and what is known there.
pub(super) fn edge_states(analysis: &Analysis<'_>, body: &Body, id: BlockId, state: &State) -> Vec<(BlockId, State)> {
    let mut local = analysis.local(state.clone());
    let block = &body.blocks[id];
    block.insts.iter().for_each(|i| local.step(&i.kind));
    local.edges(&block.terminator)
}

/// Known states at the start of blocks that control can reach.
pub(super) fn states(analysis: &Analysis<'_>, body: &Body) -> Vec<Option<State>> {
    let mut at: Vec<Option<State>> = vec![None; body.blocks.len()];
    let order = body.in_order();
    let mut position = vec![usize::MAX; body.blocks.len()];
    order.iter().enumerate().for_each(|(i, id)| position[id.index()] = i);
    // In the order of control: a block is then mostly seen when all that lead there have been.
    let mut work = BTreeSet::from([0]);
    at[0] = Some(analysis.entry());
    let arrive = |at: &mut Vec<Option<State>>, work: &mut BTreeSet<usize>, block: BlockId, state: State| {
        let changed = match &mut at[block.index()] {
            Some(known) => known.meet(&state),
            none => {
                *none = Some(state);
                true
            }
        };
        if changed {
            work.insert(position[block.index()]);
        }
    };
    while let Some(next) = work.pop_first() {
        let id = order[next];
        let Some(state) = at[id.index()].clone() else { continue };
        let block = &body.blocks[id];
        let mut local = analysis.local(state);
        for inst in &block.insts {
            if inst.kind.can_fail()
                && let Some(on_error) = body.on_error
            {
                let mut failed = local.state.clone();
                if let Some(i) = body.error.and_then(|e| analysis.index.get(&e)) {
                    // Whatever it is, it is not `NoError`.
                    failed.set(*i, None);
                    failed.set_nonzero(*i);
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

/// Folds each block once; `to_copy` is how many instructions may still be copied. Returns whether
/// anything changed.
fn fold(scope: Scope<'_>, body: &mut Body, to_copy: &mut usize) -> bool {
    let Some(analysis) = Analysis::new(scope, body, None) else {
        return false;
    };
    let at = states(&analysis, body);
    let mut changed = false;
    let (mut copies, budget) = (0, body.blocks.len() * COPIES_PER_BLOCK);
    for id in body.blocks.ids().collect::<Vec<_>>() {
        let Some(state) = at[id.index()].clone() else { continue };
        let mut block = body.blocks[id].clone();
        let mut local = analysis.local(state);
        for inst in &mut block.insts {
            changed |= replace_in_inst(&mut inst.kind, scope.vars, |o, stands| {
                replace_but_fields(&local, o, stands)
            });
            local.step(&inst.kind);
        }
        if let Some(target) = local.decided(&block.terminator) {
            if !matches!(block.terminator, Terminator::Goto(_)) {
                block.terminator = Terminator::Goto(target);
                changed = true;
            }
        } else {
            changed |= replace_in_terminator(&mut block.terminator, |o| replace(&local, o));
        }
        // Straight on through blocks that end in a way that is known from here.
        if let Terminator::Goto(next) = block.terminator {
            if copies < budget
                && next != id
                && let Some((insts, target)) = thread(body, local, next, *to_copy)
            {
                copies += 1;
                *to_copy -= insts.len();
                changed = true;
                block.insts.extend(insts);
                block.terminator = Terminator::Goto(target);
            }
        } else if !matches!(block.terminator, Terminator::Lookup(_) | Terminator::Suspend(_)) {
            let edges = local.edges(&block.terminator);
            let mut redirected: HashMap<BlockId, BlockId> = HashMap::new();
            let mut count: HashMap<BlockId, usize> = HashMap::new();
            edges.iter().for_each(|(t, _)| *count.entry(*t).or_default() += 1);
            for (target, state) in &edges {
                // An edge that is there twice may be two states.
                if count.get(target) == Some(&1)
                    && copies < budget
                    && let Some((insts, end)) = thread(body, analysis.local(state.clone()), *target, *to_copy)
                {
                    copies += 1;
                    *to_copy -= insts.len();
                    changed = true;
                    let split = body.blocks.push(BasicBlock {
                        state: None,
                        insts,
                        terminator: Terminator::Goto(end),
                        loc: block.loc,
                    });
                    redirected.insert(*target, split);
                }
            }
            block
                .terminator
                .map_targets(|b| redirected.get(&b).copied().unwrap_or(b));
        }
        body.blocks[id] = block;
    }
    changed
}

/// Follows control from a block whose start is known: the instructions on the way and where it
/// ends, if at least one branch on the way is decided. Returns at most `to_copy`
/// instructions.
fn thread(body: &Body, mut local: Local<'_>, start: BlockId, to_copy: usize) -> Option<(Vec<Inst>, BlockId)> {
    let limit = COPY_LIMIT.min(to_copy);
    let (mut at, mut insts, mut best) = (start, Vec::new(), None);
    // As long as there is a block to copy; loops end at the limit of instructions, empty ones at
    // that of steps.
    for _ in 0..COPY_LIMIT {
        let block = body.blocks.get(at)?;
        let plain = block.state.is_none() && !block.can_fail();
        if !plain || insts.len() + block.insts.len() > limit {
            break;
        }
        block.insts.iter().for_each(|i| local.step(&i.kind));
        insts.extend(block.insts.iter().cloned());
        let is_branch = matches!(
            block.terminator,
            Terminator::Branch { .. } | Terminator::Switch { .. } | Terminator::Select { .. }
        );
        match block.terminator {
            Terminator::Goto(next) => at = next,
            _ if is_branch => {
                let Some(target) = local.decided(&block.terminator) else {
                    break;
                };
                at = target;
                best = Some((insts.clone(), at));
            }
            _ => break,
        }
    }
    best
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

/// As [`replace`], but fields in calls stay: code that sums them up recognises the header by them.
fn replace_but_fields(local: &Local<'_>, operand: &mut Operand, stands: Stands) -> bool {
    let vars = local.analysis.scope.vars;
    let is_field = matches!(operand, Operand::Var(v) if matches!(vars[*v].kind, VarKind::Field { .. }));
    !(stands == Stands::InCall && is_field) && replace(local, operand)
}
