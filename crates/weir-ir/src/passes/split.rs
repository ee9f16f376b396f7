//! Tail duplication for paths whose headers differ.
//!
//! Where paths join that have added or removed different headers, the facts about fields that the
//! packet still holds are lost, and the deparser would have to rebuild all headers. Therefore the
//! blocks after the join are duplicated, if they are few and have no lookup.

use super::VarSet;
use super::global::{Analysis, Scope, edge_states, states};
use super::state::State;
use crate::program::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Instructions and ends of blocks that are copied in all.
const LIMIT: usize = 2000;
/// Copies of one block.
const WAYS: usize = 8;

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

/// By header: its validity, if known, and where its fields may come from. Paths are compared by
/// this.
type Headers = Vec<(Option<u64>, u8)>;

/// The header is what the parser made of it, or invalid.
const RECEIVED: u8 = 1;
/// Code has made it valid, so its fields are what code has written.
const MADE: u8 = 2;

/// Where each header may be from at the end of each block.
fn sources(scope: Scope<'_>, body: &Body) -> Vec<Vec<u8>> {
    let count = scope.headers.len();
    let header_of: HashMap<VarId, usize> = scope.headers.iter().map(|(id, h)| (h.valid, id.index())).collect();
    let (mut before, mut after) = (
        vec![vec![0; count]; body.blocks.len()],
        vec![vec![0; count]; body.blocks.len()],
    );
    before[0].fill(RECEIVED);
    let mut work = vec![BlockId::new(0)];
    while let Some(id) = work.pop() {
        let block = &body.blocks[id];
        let mut now = before[id.index()].clone();
        let mut arrive = |target: BlockId, from: &[u8]| {
            let known = &mut before[target.index()];
            if known.iter().zip(from).any(|(known, from)| known | from != *known) {
                known.iter_mut().zip(from).for_each(|(known, from)| *known |= from);
                work.push(target);
            }
        };
        for inst in &block.insts {
            if let (true, Some(on_error)) = (inst.kind.can_fail(), body.on_error) {
                arrive(on_error, &now);
            }
            match &inst.kind {
                InstKind::Extract { header, .. } => now[header.index()] = RECEIVED,
                InstKind::Assign { dst, value } => {
                    if let Some(header) = header_of.get(dst) {
                        let is_gone = matches!(value, Rvalue::Use(Operand::Const(c)) if c.is_zero());
                        now[*header] = if is_gone { RECEIVED } else { MADE };
                    }
                }
                _ => {}
            }
        }
        block.terminator.targets().into_iter().for_each(|b| arrive(b, &now));
        after[id.index()] = now;
    }
    after
}

/// Duplicates the tail after the join whose paths differ in most headers. Returns whether there
/// was such a join.
pub(super) fn tail_duplicate(scope: Scope<'_>, body: &mut Body, budget: &mut Budget) -> bool {
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
    let sources = sources(scope, body);
    let mut best: Option<Join> = None;
    for (&at, ways) in &ways {
        // Blocks with one predecessor, and long tails, cannot be duplicated.
        if ways.len() < 2 {
            continue;
        }
        let Some((tail, size)) = tail(body, at, budget.instructions) else {
            continue;
        };
        let emitted: Vec<HeaderId> = emitted(body, &tail).collect();
        let headers = |(from, state): &(BlockId, State), with_sources: bool| -> Headers {
            let known = emitted.iter().map(|h| {
                let valid = analysis.value(state, scope.headers[*h].valid);
                let source = match with_sources && valid != Some(0) {
                    true => sources[from.index()][h.index()],
                    false => RECEIVED,
                };
                (valid, source)
            });
            known.collect()
        };
        let grouped = |with_sources: bool| {
            let mut groups: BTreeMap<Headers, Vec<BlockId>> = BTreeMap::new();
            for way in ways {
                groups.entry(headers(way, with_sources)).or_default().push(way.0);
            }
            groups
        };
        let mut groups = grouped(true);
        if groups.len() > WAYS {
            groups = grouped(false);
        }
        let first = groups.keys().next();
        let differing = (0..emitted.len()).filter(|i| groups.keys().any(|g| first.is_some_and(|f| g[*i] != f[*i])));
        let differing = differing.count();
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

/// All blocks from one on and their size, if none of them parses, looks something up or is passed
/// twice, and the size is within a limit.
fn tail(body: &Body, start: BlockId, limit: usize) -> Option<(Vec<BlockId>, usize)> {
    let (mut seen, mut order) = (HashSet::from([start]), vec![start]);
    let (mut next, mut size) = (0, 0);
    while let Some(&id) = order.get(next) {
        next += 1;
        let block = &body.blocks[id];
        size += block.insts.len() + 1;
        if size > limit {
            return None;
        }
        let parses = block.state.is_some() || block.can_fail();
        if parses || matches!(block.terminator, Terminator::Lookup(_) | Terminator::Suspend(_)) {
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
    Some((order, size))
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
