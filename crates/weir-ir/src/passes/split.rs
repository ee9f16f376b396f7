//! Ways of their own for packets with different headers.
//!
//! Where ways meet that have added or taken away headers, it is forgotten which fields still are what the packet holds, and
//! the deparser has to put all of them together again. So what follows is copied, as long as it is short and looks nothing
//! up: each way then knows what it has done.

use super::VarSet;
use super::global::{Analysis, Scope, State, edge_states, states};
use crate::program::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Instructions and ends of blocks that are copied in all.
const LIMIT: usize = 2000;
/// Copies of one block.
const WAYS: usize = 4;

/// Places where ways are split.
const GOES: usize = 8;

/// Headers that ways must disagree on to be split: of one alone the deparser has to look anyway.
const LEAST: usize = 2;

/// Where ways meet, and those that are to go elsewhere.
struct Join {
    at: BlockId,
    tail: Vec<BlockId>,
    /// Of the tail.
    size: usize,
    others: Vec<Vec<BlockId>>,
    /// Headers that the ways disagree on.
    differing: usize,
}

/// What may still be copied, and in how many goes: the whole body is folded anew after each.
pub(super) struct Budget {
    instructions: usize,
    goes: usize,
}

impl Budget {
    pub fn new() -> Self {
        Budget {
            instructions: LIMIT,
            goes: GOES,
        }
    }
}

/// What is known of the validity of headers.
type Validity = Vec<Option<u64>>;

/// Splits the place where ways meet that differ in most headers; whether there was one that could be split.
pub(super) fn split_ways(scope: Scope<'_>, body: &mut Body, budget: &mut Budget) -> bool {
    if budget.goes == 0 {
        return false;
    }
    let mut valid = VarSet::new(scope.vars.len());
    scope.headers.iter().for_each(|(_, h)| valid.insert(h.valid));
    let Some(analysis) = Analysis::new(scope, body, Some(&valid)) else {
        return false;
    };
    let at = states(&analysis, body);
    // By block and way into it, in the order of blocks.
    let mut ways: BTreeMap<BlockId, Vec<(BlockId, State)>> = BTreeMap::new();
    for (id, _) in body.blocks.iter() {
        let Some(state) = &at[id.index()] else { continue };
        for (target, state) in edge_states(&analysis, body, id, state) {
            ways.entry(target).or_default().push((id, state));
        }
    }
    let mut best: Option<Join> = None;
    for (&at, ways) in &ways {
        let Some(tail) = tail(body, at) else { continue };
        let emitted: Vec<VarId> = emitted(body, &tail).map(|h| scope.headers[h].valid).collect();
        let validity = |state: &State| -> Validity { emitted.iter().map(|v| analysis.value(state, *v)).collect() };
        let mut groups: BTreeMap<Validity, Vec<BlockId>> = BTreeMap::new();
        for (from, state) in ways {
            groups.entry(validity(state)).or_default().push(*from);
        }
        let differing =
            (0..emitted.len()).filter(|i| groups.keys().any(|g| g[*i] != groups.keys().next().and_then(|f| f[*i])));
        let differing = differing.count();
        let size: usize = tail.iter().map(|b| body.blocks[*b].insts.len() + 1).sum();
        if groups.len() > WAYS || (groups.len() - 1) * size > budget.instructions {
            continue;
        }
        // A block with two edges to the join stays where it is.
        let lone = |from: &BlockId| ways.iter().filter(|(f, _)| f == from).count() == 1;
        let others = groups.into_values().skip(1);
        let others: Vec<Vec<BlockId>> = others
            .map(|group| group.into_iter().filter(lone).collect::<Vec<_>>())
            .filter(|group| !group.is_empty())
            .collect();
        let worth = best.as_ref().map_or(LEAST, |b| b.differing + 1);
        if differing >= worth && !others.is_empty() {
            best = Some(Join {
                at,
                tail,
                size,
                others,
                differing,
            });
        }
    }
    let Some(join) = best else { return false };
    budget.goes -= 1;
    for group in &join.others {
        budget.instructions -= join.size;
        copy(body, join.at, &join.tail, group);
    }
    true
}

/// All blocks from one on, if none of them parses, looks something up or is passed twice.
fn tail(body: &Body, start: BlockId) -> Option<Vec<BlockId>> {
    let (mut seen, mut order) = (HashSet::from([start]), vec![start]);
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        let block = &body.blocks[id];
        let parses = block.state.is_some() || block.can_fail();
        if parses || matches!(block.terminator, Terminator::Lookup(_)) {
            return None;
        }
        for target in block.terminator.targets() {
            if target == start {
                return None;
            }
            if seen.insert(target) {
                order.push(target);
            }
        }
    }
    Some(order)
}

/// Headers that blocks emit.
fn emitted<'a>(body: &'a Body, blocks: &'a [BlockId]) -> impl Iterator<Item = HeaderId> + 'a {
    let insts = blocks.iter().flat_map(|b| &body.blocks[*b].insts);
    let headers: BTreeSet<HeaderId> = insts
        .filter_map(|i| match i.kind {
            InstKind::Emit { header } => Some(header),
            _ => None,
        })
        .collect();
    headers.into_iter()
}

/// Gives some blocks a copy of what follows.
fn copy(body: &mut Body, join: BlockId, tail: &[BlockId], from: &[BlockId]) {
    let copies: HashMap<BlockId, BlockId> = tail
        .iter()
        .map(|id| {
            let block = body.blocks[*id].clone();
            (*id, body.blocks.push(block))
        })
        .collect();
    for copy in copies.values() {
        let terminator = &mut body.blocks[*copy].terminator;
        terminator.map_targets(|b| copies.get(&b).copied().unwrap_or(b));
    }
    for id in from {
        let terminator = &mut body.blocks[*id].terminator;
        terminator.map_targets(|b| if b == join { copies[&join] } else { b });
    }
}
