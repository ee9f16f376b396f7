//! What is known after an instruction, and where control may go from a block.

use super::facts::{Facts, Initial};
use weir_ir::passes::written;
use weir_ir::{BasicBlock, Bits, BlockId, Body, InstKind, Operand, Pattern, Program, Rvalue, SelectCase, Terminator};

/// Blocks that control can reach, each after those before it but for loops; of a branch first what
/// the source has first.
pub(super) fn order(body: &Body) -> Vec<BlockId> {
    let backwards = |id: BlockId| {
        let mut next = body.successors(id);
        next.reverse();
        next.into_iter()
    };
    let mut order = Vec::with_capacity(body.blocks.len());
    if body.blocks.is_empty() {
        return order;
    }
    let mut seen = vec![false; body.blocks.len()];
    let mut stack = vec![(BlockId::new(0), backwards(BlockId::new(0)))];
    seen[0] = true;
    while let Some((id, next)) = stack.last_mut() {
        match next.next() {
            Some(to) if !std::mem::replace(&mut seen[to.index()], true) => stack.push((to, backwards(to))),
            Some(_) => {}
            None => {
                order.push(*id);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// Takes an instruction into account.
pub(super) fn step(program: &Program, initial: &Initial, facts: &mut Facts, inst: &InstKind) {
    if let InstKind::Assign { dst, value } = inst {
        let known = facts
            .rvalue(initial, program, *dst, value)
            .or_else(|| short_circuit(initial, facts, value));
        facts.set(initial, *dst, known);
        return;
    }
    written(inst, &program.headers, &mut |var| facts.set(initial, var, None));
    if let InstKind::Extract { header, .. } = inst {
        facts.set(initial, program.headers[*header].valid, Some(1));
    }
}

/// `0 & x`, and `1 | x` of booleans.
fn short_circuit(initial: &Initial, facts: &Facts, value: &Rvalue) -> Option<u64> {
    let Rvalue::Binary(op, a, b) = value else {
        return None;
    };
    let either = |wanted| [a, b].iter().any(|o| facts.operand(initial, o) == Some(wanted));
    let is_boolean = |o: &Operand| matches!(o, Operand::Const(c) if c.width() == 1);
    match op {
        weir_ir::BinaryOp::And if either(0) => Some(0),
        weir_ir::BinaryOp::Or if either(1) && (is_boolean(a) || is_boolean(b)) => Some(1),
        _ => None,
    }
}

/// Where control may go from a block, with what is known there.
pub(super) fn successors(initial: &Initial, facts: Facts, block: &BasicBlock) -> Vec<(BlockId, Facts)> {
    match &block.terminator {
        Terminator::Goto(to) | Terminator::Suspend(to) => vec![(*to, facts)],
        Terminator::Branch {
            condition,
            then,
            otherwise,
        } => match facts.operand(initial, condition) {
            Some(0) => vec![(*otherwise, facts)],
            Some(_) => vec![(*then, facts)],
            None => vec![
                (*then, learn(initial, &facts, condition, 1)),
                (*otherwise, learn(initial, &facts, condition, 0)),
            ],
        },
        Terminator::Switch { value, cases, default } => switch(initial, facts, value, cases, *default),
        Terminator::Select { keys, cases, default } => select(initial, facts, keys, cases, *default),
        Terminator::Lookup(lookup) => {
            let mut facts = facts;
            for var in [lookup.hit, lookup.action, lookup.entry] {
                facts.set(initial, var, None);
            }
            vec![(lookup.next, facts)]
        }
        Terminator::Accept | Terminator::Reject | Terminator::Return | Terminator::Exit(_) => Vec::new(),
    }
}

fn learn(initial: &Initial, facts: &Facts, operand: &Operand, value: u64) -> Facts {
    let mut facts = facts.clone();
    if let Operand::Var(var) = operand {
        facts.set(initial, *var, Some(value));
    }
    facts
}

fn switch(
    initial: &Initial,
    facts: Facts,
    value: &Operand,
    cases: &[(Bits, BlockId)],
    default: BlockId,
) -> Vec<(BlockId, Facts)> {
    if let Some(known) = facts.operand(initial, value) {
        let found = cases.iter().find(|(case, _)| case.to_u64() == Some(known));
        return vec![(found.map_or(default, |(_, to)| *to), facts)];
    }
    let mut all: Vec<(BlockId, Facts)> = Vec::with_capacity(cases.len() + 1);
    for (case, to) in cases {
        let learnt = case.to_u64().map(|c| learn(initial, &facts, value, c));
        all.push((*to, learnt.unwrap_or_else(|| facts.clone())));
    }
    all.push((default, facts));
    all
}

/// Whether a case of a select matches.
#[derive(PartialEq)]
enum Matches {
    Yes,
    No,
    Maybe,
}

fn select(
    initial: &Initial,
    facts: Facts,
    keys: &[Operand],
    cases: &[SelectCase],
    default: BlockId,
) -> Vec<(BlockId, Facts)> {
    let mut all = Vec::new();
    for case in cases {
        let verdict = matches(initial, &facts, keys, &case.patterns);
        if verdict == Matches::No {
            continue;
        }
        let mut learnt = facts.clone();
        for (key, pattern) in keys.iter().zip(&case.patterns) {
            if let (Operand::Var(var), Pattern::Exact(Operand::Const(value))) = (key, pattern)
                && keys.len() == case.patterns.len()
                && let Some(value) = value.to_u64()
            {
                learnt.set(initial, *var, Some(value));
            }
        }
        all.push((case.target, learnt));
        if verdict == Matches::Yes {
            return all;
        }
    }
    all.push((default, facts));
    all
}

fn matches(initial: &Initial, facts: &Facts, keys: &[Operand], patterns: &[Pattern]) -> Matches {
    let mut all = Matches::Yes;
    let is_aligned = keys.len() == patterns.len();
    for (i, pattern) in patterns.iter().enumerate() {
        let key = keys.get(i).filter(|_| is_aligned);
        let key = key.and_then(|key| facts.operand(initial, key));
        let known = |o: &Operand| facts.operand(initial, o);
        let one = match (pattern, key) {
            (Pattern::Any, _) => Matches::Yes,
            (Pattern::Exact(value), Some(key)) => known(value).map_or(Matches::Maybe, |v| sure(v == key)),
            (Pattern::Mask(value, mask), Some(key)) => match (known(value), known(mask)) {
                (Some(value), Some(mask)) => sure(value & mask == key & mask),
                _ => Matches::Maybe,
            },
            (Pattern::Range(low, high, false), Some(key)) => match (known(low), known(high)) {
                (Some(low), Some(high)) => sure((low..=high).contains(&key)),
                _ => Matches::Maybe,
            },
            (Pattern::Exact(_) | Pattern::Mask(..) | Pattern::Range(..) | Pattern::ValueSet(_), _) => Matches::Maybe,
        };
        match one {
            Matches::No => return Matches::No,
            Matches::Maybe => all = Matches::Maybe,
            Matches::Yes => {}
        }
    }
    all
}

fn sure(is_equal: bool) -> Matches {
    if is_equal { Matches::Yes } else { Matches::No }
}
