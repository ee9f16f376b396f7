//! Liveness, and the removal of assignments whose result is not read.

use super::propagate::written;
use super::set::VarSet;
use crate::arena::Arena;
use crate::program::*;
use std::collections::BTreeSet;

/// Calls `f` with every variable an instruction reads.
pub fn read_by_inst(kind: &InstKind, headers: &Arena<Header>, f: &mut dyn FnMut(VarId)) {
    let mut operand = |o: &Operand| {
        if let Operand::Var(v) = o {
            f(*v);
        }
    };
    match kind {
        InstKind::Assign { value, .. } => value.operands().for_each(operand),
        InstKind::Extract {
            varbit_bits: Some(o), ..
        }
        | InstKind::Advance { bits: o } => operand(o),
        InstKind::Emit { header } => {
            let h = &headers[*header];
            f(h.valid);
            h.fields.iter().for_each(|&v| f(v));
        }
        InstKind::Call(call) => {
            for argument in &call.arguments {
                match &argument.value {
                    ArgumentValue::In(leaves) => {
                        for leaf in leaves {
                            match leaf {
                                InLeaf::Value(Operand::Var(v)) => f(*v),
                                InLeaf::Value(Operand::Const(_)) => {}
                                InLeaf::Header(h) => {
                                    f(headers[*h].valid);
                                    headers[*h].fields.iter().for_each(|&v| f(v));
                                }
                            }
                        }
                    }
                    // An extern may leave an `out` argument as it was (a register index out of
                    // range).
                    ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) => vars.iter().for_each(|&v| f(v)),
                    _ => {}
                }
            }
            call.entry.into_iter().for_each(f);
        }
        InstKind::Extract { .. } | InstKind::Lookahead { .. } | InstKind::PacketLength { .. } | InstKind::Mark(_) => {}
    }
}

/// Calls `f` with every variable a terminator reads.
pub fn read_by_terminator(terminator: &Terminator, f: &mut dyn FnMut(VarId)) {
    let mut operand = |o: &Operand| {
        if let Operand::Var(v) = o {
            f(*v);
        }
    };
    match terminator {
        Terminator::Branch { condition: o, .. } | Terminator::Switch { value: o, .. } => operand(o),
        Terminator::Select { keys, cases, .. } => {
            keys.iter().for_each(&mut operand);
            for pattern in cases.iter().flat_map(|c| &c.patterns) {
                match pattern {
                    Pattern::Exact(a) => operand(a),
                    Pattern::Mask(a, b) | Pattern::Range(a, b, _) => {
                        operand(a);
                        operand(b);
                    }
                    Pattern::Any | Pattern::ValueSet(_) => {}
                }
            }
        }
        Terminator::Lookup(l) => l.keys.iter().for_each(operand),
        Terminator::Goto(_)
        | Terminator::Accept
        | Terminator::Reject
        | Terminator::Return
        | Terminator::Exit(_)
        | Terminator::Suspend(_) => {}
    }
}

/// Calls `f` with every variable a body reads anywhere.
pub fn read_by(program: &Program, body: &Body, f: &mut dyn FnMut(VarId)) {
    for (_, block) in body.blocks.iter() {
        for inst in &block.insts {
            read_by_inst(&inst.kind, &program.headers, f);
        }
        read_by_terminator(&block.terminator, f);
    }
}

/// The variables that matter after a block of the program has ended: what other blocks read, and
/// what the architecture observes.
fn live_at_exit(program: &Program, observed: &VarSet) -> VarSet {
    let mut live = observed.clone();
    let mut add = VarSet::new(program.vars.len());
    for block in &program.blocks {
        read_by(program, &block.body, &mut |v| add.insert(v));
        if let Some(error) = block.body.error {
            add.insert(error);
        }
    }
    for (id, var) in program.vars.iter() {
        let crosses = matches!(
            var.kind,
            VarKind::Shared | VarKind::Field { .. } | VarKind::Valid { .. }
        );
        let is_error = program.blocks.iter().any(|b| b.body.error == Some(id));
        if add.contains(id) && (crosses || is_error) {
            live.insert(id);
        }
    }
    live
}

/// The variables that are live at the start of each basic block of a body, given what is live where
/// it ends and what the architecture observes.
#[must_use]
pub fn liveness(program: &Program, body: &Body, at_exit: &VarSet, observed: &VarSet) -> Vec<VarSet> {
    let mut live_in = vec![VarSet::new(program.vars.len()); body.blocks.len()];
    let order = backwards(body);
    let mut position = vec![usize::MAX; body.blocks.len()];
    order.iter().enumerate().for_each(|(i, id)| position[id.index()] = i);
    let mut waits_for: Vec<Vec<usize>> = vec![Vec::new(); body.blocks.len()];
    for (i, &id) in order.iter().enumerate() {
        for next in body.successors(id) {
            waits_for[next.index()].push(i);
        }
    }
    // Against the order of control: a block is then mostly seen when all that follow it have been.
    let mut work: BTreeSet<usize> = (0..order.len()).collect();
    while let Some(next) = work.pop_first() {
        let id = order[next];
        let mut live = live_out(program, body, id, &live_in, at_exit);
        for inst in body.blocks[id].insts.iter().rev() {
            step_back(program, body, &inst.kind, &live_in, observed, &mut live);
        }
        if live_in[id.index()].union(&live) {
            work.extend(&waits_for[id.index()]);
        }
    }
    live_in
}

/// Blocks that control can reach, mostly after those that follow them.
fn backwards(body: &Body) -> Vec<BlockId> {
    let mut order = match body.blocks.is_empty() {
        true => Vec::new(),
        false => body.in_order(),
    };
    let mut seen = vec![false; body.blocks.len()];
    order.iter().for_each(|id| seen[id.index()] = true);
    let others = super::reachable(body).into_iter().filter(|id| !seen[id.index()]);
    order.extend(others);
    order.reverse();
    order
}

fn live_out(program: &Program, body: &Body, id: BlockId, live_in: &[VarSet], at_exit: &VarSet) -> VarSet {
    let terminator = &body.blocks[id].terminator;
    let mut live = VarSet::new(program.vars.len());
    let targets = terminator.targets();
    if targets.is_empty() {
        live.union(at_exit);
    }
    for target in targets {
        live.union(&live_in[target.index()]);
    }
    if let Terminator::Lookup(l) = terminator {
        for var in [l.hit, l.action, l.entry] {
            live.remove(var);
        }
    }
    read_by_terminator(terminator, &mut |v| live.insert(v));
    live
}

fn step_back(
    program: &Program,
    body: &Body,
    kind: &InstKind,
    live_in: &[VarSet],
    observed: &VarSet,
    live: &mut VarSet,
) {
    let conditional = matches!(kind, InstKind::Call(_)) || kind.can_fail();
    if !conditional {
        written(kind, &program.headers, &mut |v| live.remove(v));
    }
    read_by_inst(kind, &program.headers, &mut |v| live.insert(v));
    // An extern with effects may read what the architecture observes.
    if matches!(kind, InstKind::Call(call) if !call.is_pure) {
        live.union(observed);
    }
    if let (true, Some(on_error)) = (kind.can_fail(), body.on_error) {
        live.union(&live_in[on_error.index()]);
    }
}

/// Removes assignments, and calls without effects, whose results are not read; returns whether any
/// was. `observed`: what the architecture reads of the program's variables.
pub fn eliminate_dead(program: &mut Program, observed: &VarSet) -> bool {
    let at_exit = live_at_exit(program, observed);
    let mut changed = false;
    for index in 0..program.blocks.len() {
        let body = program.blocks[index].body.clone();
        let live_in = liveness(program, &body, &at_exit, observed);
        let mut new = body.clone();
        for id in super::reachable(&body) {
            let mut live = live_out(program, &body, id, &live_in, &at_exit);
            let mut kept = Vec::with_capacity(body.blocks[id].insts.len());
            for inst in body.blocks[id].insts.iter().rev() {
                let dead = match &inst.kind {
                    InstKind::Assign { dst, value } => {
                        !live.contains(*dst) || *value == Rvalue::Use(Operand::Var(*dst))
                    }
                    InstKind::PacketLength { dst } => !live.contains(*dst),
                    InstKind::Call(call) => call.is_pure && no_result_is_live(call, &live),
                    _ => false,
                };
                if dead {
                    changed = true;
                    continue;
                }
                step_back(program, &body, &inst.kind, &live_in, observed, &mut live);
                kept.push(inst.clone());
            }
            kept.reverse();
            new.blocks[id].insts = kept;
        }
        program.blocks[index].body = new;
    }
    changed
}

fn no_result_is_live(call: &Call, live: &VarSet) -> bool {
    let outs = call.arguments.iter().flat_map(|a| match &a.value {
        ArgumentValue::Out(v) | ArgumentValue::InOut(v) => v.as_slice(),
        _ => &[],
    });
    outs.chain(&call.results).all(|&v| !live.contains(v))
}

/// Fields of headers that no code reads and no deparser emits: an engine need not extract them.
#[must_use]
pub fn unread_fields(program: &Program) -> VarSet {
    let mut read = VarSet::new(program.vars.len());
    for block in &program.blocks {
        read_by(program, &block.body, &mut |v| read.insert(v));
    }
    for (_, x) in program.externs.iter() {
        for m in &x.methods {
            read_by(program, &m.body, &mut |v| read.insert(v));
        }
    }
    let mut unread = VarSet::new(program.vars.len());
    for (id, var) in program.vars.iter() {
        if matches!(var.kind, VarKind::Field { .. }) && !read.contains(id) {
            unread.insert(id);
        }
    }
    unread
}
