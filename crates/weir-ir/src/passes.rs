//! Passes over the IR that pay for every engine: constant folding, copy propagation, removal of
//! dead code and of unread fields, and simplification of the control-flow graph. The compiler has
//! inlined actions and sub-blocks before.

mod dead;
mod global;
mod operands;
mod propagate;
mod rename;
mod set;
mod split;
mod state;

pub use dead::{eliminate_dead, liveness, read_by, read_by_inst, read_by_terminator, unread_fields};
pub use global::{Scope, constants, fold_paths};
pub use propagate::{propagate, written};
pub use rename::Renaming;
pub use set::VarSet;

use crate::arena::Arena;
use crate::program::{BasicBlock, BlockId, Body, Program, SharedLeaf, Terminator};

/// How often the passes run over a program before they are content with it.
const ROUNDS: usize = 4;

/// Runs all passes. `observes` says of a leaf of a shared group (by the group's role) whether the
/// architecture reads it; a program's code is never asked about.
///
/// The result does the same to every packet, but not step by step: a trace should run the
/// program as it was. In debug builds the program is verified after each pass.
pub fn optimize(program: &mut Program, observes: &dyn Fn(&str, &SharedLeaf) -> bool) {
    let mut observed = VarSet::new(program.vars.len());
    for group in &program.shared {
        for leaf in &group.leaves {
            if observes(&group.role, leaf) {
                observed.insert(leaf.var);
            }
        }
    }
    // Bodies of abstract methods run within calls: what they touch is out of sight.
    for (_, instance) in program.externs.iter() {
        for method in &instance.methods {
            read_by(program, &method.body, &mut |v| observed.insert(v));
        }
    }
    let hidden = program.externs.iter().any(|(_, x)| !x.methods.is_empty());
    for _ in 0..ROUNDS {
        // A method may also write: no value is known across a call that may run one.
        let mut changed = !hidden && propagate(program);
        check(program, "propagate");
        for block in &mut program.blocks {
            simplify_control_flow(&mut block.body);
        }
        check(program, "simplify_control_flow");
        changed |= !hidden && eliminate_dead(program, &observed);
        check(program, "eliminate_dead");
        if !changed {
            break;
        }
    }
}

/// A pass must leave what it was given: a program.
fn check(program: &Program, pass: &str) {
    if cfg!(debug_assertions)
        && let Err(errors) = crate::verify::verify(program)
    {
        panic!("after the pass {pass}: {}", errors[0]);
    }
}

impl Terminator {
    /// The successors.
    pub fn targets(&self) -> Vec<BlockId> {
        match self {
            Terminator::Goto(b) => vec![*b],
            Terminator::Branch { then, otherwise, .. } => vec![*then, *otherwise],
            Terminator::Switch { cases, default, .. } => cases.iter().map(|(_, b)| *b).chain([*default]).collect(),
            Terminator::Select { cases, default, .. } => cases.iter().map(|c| c.target).chain([*default]).collect(),
            Terminator::Lookup(l) => vec![l.next],
            Terminator::Suspend(next) => vec![*next],
            Terminator::Accept | Terminator::Reject | Terminator::Return | Terminator::Exit(_) => Vec::new(),
        }
    }

    /// Changes where control may go.
    pub fn map_targets(&mut self, mut f: impl FnMut(BlockId) -> BlockId) {
        match self {
            Terminator::Goto(b) => *b = f(*b),
            Terminator::Branch { then, otherwise, .. } => {
                *then = f(*then);
                *otherwise = f(*otherwise);
            }
            Terminator::Switch { cases, default, .. } => {
                for (_, b) in cases {
                    *b = f(*b);
                }
                *default = f(*default);
            }
            Terminator::Select { cases, default, .. } => {
                for case in cases {
                    case.target = f(case.target);
                }
                *default = f(*default);
            }
            Terminator::Lookup(l) => l.next = f(l.next),
            Terminator::Suspend(next) => *next = f(*next),
            Terminator::Accept | Terminator::Reject | Terminator::Return | Terminator::Exit(_) => {}
        }
    }
}

/// Skips empty blocks, joins a block with its only successor where that has no other
/// predecessor, and drops what nothing reaches. Parser states keep their own blocks.
pub fn simplify_control_flow(body: &mut Body) {
    if body.blocks.is_empty() {
        return;
    }
    thread_jumps(body);
    join_blocks(body);
    drop_unreachable(body);
}

/// An empty block with one successor is skipped.
fn thread_jumps(body: &mut Body) {
    let is_skipped = |id: BlockId| match body.blocks[id].terminator {
        Terminator::Goto(next) if next != id => {
            let block = &body.blocks[id];
            (block.insts.is_empty() && block.state.is_none()).then_some(next)
        }
        _ => None,
    };
    // Where control ends up from each block, as far as that is known.
    let mut forward: Vec<Option<BlockId>> = vec![None; body.blocks.len()];
    let mut on_way = vec![false; body.blocks.len()];
    for start in body.blocks.ids() {
        let (mut at, mut way) = (start, Vec::new());
        let end = loop {
            if let Some(end) = forward[at.index()] {
                break end;
            }
            // A cycle of empty blocks ends where it was entered.
            if std::mem::replace(&mut on_way[at.index()], true) {
                break at;
            }
            way.push(at);
            match is_skipped(at) {
                Some(next) => at = next,
                None => break at,
            }
        };
        way.into_iter().for_each(|id| forward[id.index()] = Some(end));
    }
    for (_, block) in body.blocks.iter_mut() {
        block.terminator.map_targets(|b| forward[b.index()].unwrap_or(b));
    }
}

fn join_blocks(body: &mut Body) {
    let mut predecessors = vec![0u32; body.blocks.len()];
    predecessors[0] += 1;
    if let Some(on_error) = body.on_error {
        predecessors[on_error.index()] += 1;
    }
    for id in reachable(body) {
        for target in body.blocks[id].terminator.targets() {
            predecessors[target.index()] += 1;
        }
    }
    for id in reachable(body) {
        while let Terminator::Goto(next) = body.blocks[id].terminator {
            if next == id || predecessors[next.index()] != 1 || body.blocks[next].state.is_some() {
                break;
            }
            let insts = std::mem::take(&mut body.blocks[next].insts);
            let terminator = body.blocks[next].terminator.clone();
            let loc = body.blocks[next].loc;
            let block = &mut body.blocks[id];
            block.insts.extend(insts);
            block.terminator = terminator;
            block.loc = loc;
            // The joined block is left behind as an unreachable stub.
            predecessors[next.index()] = 0;
            body.blocks[next].terminator = Terminator::Return;
        }
    }
}

/// Blocks that control can reach, in depth-first order from the entry.
#[must_use]
pub fn reachable(body: &Body) -> Vec<BlockId> {
    let mut seen = vec![false; body.blocks.len()];
    let mut order = Vec::new();
    let mut work: Vec<BlockId> = body.on_error.into_iter().collect();
    if !body.blocks.is_empty() {
        work.push(BlockId::new(0));
    }
    while let Some(id) = work.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        order.push(id);
        let mut targets = body.blocks[id].terminator.targets();
        targets.reverse();
        work.extend(targets);
    }
    order
}

fn drop_unreachable(body: &mut Body) {
    let order = reachable(body);
    let mut new_ids: Vec<Option<BlockId>> = vec![None; body.blocks.len()];
    for (i, id) in order.iter().enumerate() {
        new_ids[id.index()] = Some(BlockId::new(i));
    }
    let map = |b: BlockId| new_ids[b.index()].unwrap_or(b);
    let mut blocks: Arena<BasicBlock> = Arena::default();
    for id in order {
        let mut block = body.blocks[id].clone();
        block.terminator.map_targets(map);
        blocks.push(block);
    }
    body.on_error = body.on_error.map(map);
    body.blocks = blocks;
}
