//! The tables that packets may come to, given what the parser has found.

use super::block::header_of;
use super::facts::{Facts, Initial};
use super::operations::Operations;
use super::walk;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use weir_ir::passes::{VarSet, read_by_inst, read_by_terminator, written};
use weir_ir::{BasicBlock, Block, BlockId, Body, InstKind, Program, Terminator, VarId};

/// Times that a block of a control is looked at again because of loops.
const MAX_ROUNDS: usize = 8;

/// How packets get from table to table in a control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// The lookups that may happen, in order.
    pub steps: Vec<Step>,
    /// Steps that may be the first.
    pub first: Vec<usize>,
    /// A packet may pass without any lookup.
    pub may_be_empty: bool,
    /// What statements and actions do on the path with most lookups, all of which hit; where there
    /// are several, on that which does most.
    pub operations: Operations,
    /// Headers of which this path writes a field.
    pub rewritten: Vec<String>,
}

/// A lookup.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// Index into [`super::Features::tables`].
    pub table: usize,
    /// Steps that may be the next; all later than this one, but for loops of the control, which
    /// are counted once.
    pub next: Vec<usize>,
}

impl Control {
    /// Tables that are looked up on some path, each once, in order.
    #[must_use]
    pub fn tables(&self) -> Vec<usize> {
        let mut tables = Vec::new();
        for step in &self.steps {
            if !tables.contains(&step.table) {
                tables.push(step.table);
            }
        }
        tables
    }

    /// The costliest sequence of lookups: the sum of the tables' costs, and the tables.
    #[must_use]
    pub fn costliest(&self, cost: &dyn Fn(usize) -> f64) -> (f64, Vec<usize>) {
        let mut best: Vec<(f64, Option<usize>)> = vec![(0.0, None); self.steps.len()];
        for at in (0..self.steps.len()).rev() {
            let follow = costliest_of(&best, self.steps[at].next.iter().filter(|next| **next > at));
            let rest = follow.map_or(0.0, |next| best[next].0);
            best[at] = (cost(self.steps[at].table) + rest, follow);
        }
        let mut at = costliest_of(&best, self.first.iter());
        let total = at.map_or(0.0, |first| best[first].0);
        let mut tables = Vec::new();
        while let Some(step) = at {
            tables.push(self.steps[step].table);
            at = best[step].1;
        }
        (total, tables)
    }
}

fn costliest_of<'a>(best: &[(f64, Option<usize>)], among: impl Iterator<Item = &'a usize>) -> Option<usize> {
    among.copied().reduce(|a, b| if best[b].0 > best[a].0 { b } else { a })
}

/// The variables that branches of a body read, and those that these are computed from.
fn deciding(program: &Program, body: &Body) -> VarSet {
    let mut deciding = VarSet::new(program.vars.len());
    for (_, block) in body.blocks.iter() {
        if !matches!(block.terminator, Terminator::Lookup(_)) {
            read_by_terminator(&block.terminator, &mut |var| deciding.insert(var));
        }
    }
    loop {
        let mut added = VarSet::new(program.vars.len());
        for inst in body.blocks.iter().flat_map(|(_, block)| &block.insts) {
            if let InstKind::Assign { dst, .. } = &inst.kind
                && deciding.contains(*dst)
            {
                read_by_inst(&inst.kind, &program.headers, &mut |var| added.insert(var));
            }
        }
        if !deciding.union(&added) {
            return deciding;
        }
    }
}

/// Controls by what is known when they begin.
pub(super) struct Controls<'a> {
    program: &'a Program,
    block: &'a Block,
    /// Index into the features' tables, by the table's number in the program.
    tables: &'a [Option<usize>],
    order: Vec<BlockId>,
    /// Variables that branches depend on: of others nothing needs to be known.
    deciding: VarSet,
    by_facts: HashMap<Facts, usize>,
    controls: Vec<Control>,
}

impl<'a> Controls<'a> {
    pub(super) fn new(program: &'a Program, block: &'a Block, tables: &'a [Option<usize>]) -> Self {
        Controls {
            program,
            block,
            tables,
            order: walk::order(&block.body),
            deciding: deciding(program, &block.body),
            by_facts: HashMap::new(),
            controls: Vec::new(),
        }
    }

    /// The control that packets meet of which this is known: its number.
    pub(super) fn reached_with(&mut self, initial: &Initial, facts: &Facts) -> usize {
        let mut facts = facts.clone();
        facts.retain(|var| self.deciding.contains(var));
        if let Some(known) = self.by_facts.get(&facts) {
            return *known;
        }
        let mut control = self.steps(&self.reachable(initial, &facts, false));
        (control.operations, control.rewritten) = self.operations(&self.reachable(initial, &facts, true));
        let number = self.controls.iter().position(|known| *known == control);
        let number = number.unwrap_or_else(|| {
            self.controls.push(control);
            self.controls.len() - 1
        });
        self.by_facts.insert(facts, number);
        number
    }

    pub(super) fn finish(self) -> Vec<Control> {
        self.controls
    }

    /// Where control may go from each block that it may reach; if all lookups hit, or whatever
    /// they do.
    fn reachable(&self, initial: &Initial, facts: &Facts, all_hit: bool) -> Vec<Option<Vec<BlockId>>> {
        let body = &self.block.body;
        let mut known: Vec<Option<Facts>> = vec![None; body.blocks.len()];
        let mut next: Vec<Option<Vec<BlockId>>> = vec![None; body.blocks.len()];
        known[0] = Some(facts.clone());
        for _ in 0..MAX_ROUNDS {
            let mut has_changed = false;
            for id in &self.order {
                let Some(mut here) = known[id.index()].clone() else {
                    continue;
                };
                let block = &body.blocks[*id];
                for inst in &block.insts {
                    walk::step(self.program, initial, &mut here, &inst.kind);
                }
                self.forget_parameters(initial, &mut here, &block.terminator);
                here.retain(|var| self.deciding.contains(var));
                let mut follow = walk::successors(initial, here, block);
                if let (true, Terminator::Lookup(lookup)) = (all_hit, &block.terminator) {
                    follow
                        .iter_mut()
                        .for_each(|(_, facts)| facts.set(initial, lookup.hit, Some(1)));
                }
                next[id.index()] = Some(follow.iter().map(|(to, _)| *to).collect());
                for (to, there) in follow {
                    let met = match &known[to.index()] {
                        Some(old) => old.meet(initial, &there),
                        None => there,
                    };
                    if known[to.index()].as_ref() != Some(&met) {
                        known[to.index()] = Some(met);
                        has_changed = true;
                    }
                }
            }
            if !has_changed {
                return next;
            }
        }
        self.everything()
    }

    /// Where control may go whatever is known: of a body with more loops than are followed.
    fn everything(&self) -> Vec<Option<Vec<BlockId>>> {
        let body = &self.block.body;
        let mut next = vec![None; body.blocks.len()];
        for id in &self.order {
            next[id.index()] = Some(body.successors(*id));
        }
        next
    }

    /// The data of an entry are written by the lookup.
    fn forget_parameters(&self, initial: &Initial, facts: &mut Facts, terminator: &Terminator) {
        if let Terminator::Lookup(lookup) = terminator {
            let parameters = self.program.tables[lookup.table]
                .actions
                .iter()
                .flat_map(|a| &a.parameters);
            parameters.for_each(|var| facts.set(initial, *var, None));
        }
    }

    /// The lookups among the blocks that are reached, and which may follow which.
    fn steps(&self, next: &[Option<Vec<BlockId>>]) -> Control {
        let lookup = |id: BlockId| match &self.block.body.blocks[id].terminator {
            Terminator::Lookup(lookup) => self.tables[lookup.table.index()],
            _ => None,
        };
        let reached = |id: &&BlockId| next[id.index()].is_some() && lookup(**id).is_some();
        let sites: Vec<BlockId> = self.order.iter().filter(reached).copied().collect();
        let number = |id: BlockId| sites.iter().position(|site| *site == id);
        // Until the next lookup, from the successors of one or from the start.
        let following = |starts: &[BlockId]| {
            let mut seen = vec![false; next.len()];
            let mut stack = starts.to_vec();
            let (mut found, mut ends) = (Vec::new(), false);
            while let Some(id) = stack.pop() {
                if std::mem::replace(&mut seen[id.index()], true) {
                    continue;
                }
                match (number(id), &next[id.index()]) {
                    (Some(step), _) => found.push(step),
                    (None, Some(to)) if !to.is_empty() => stack.extend(to),
                    (None, _) => ends = true,
                }
            }
            found.sort_unstable();
            (found, ends)
        };
        let (first, may_be_empty) = following(&[BlockId::new(0)]);
        let step = |site: &BlockId| Step {
            table: lookup(*site).unwrap_or_default(),
            next: following(next[site.index()].as_deref().unwrap_or_default()).0,
        };
        Control {
            steps: sites.iter().map(step).collect(),
            first,
            may_be_empty,
            operations: Operations::default(),
            rewritten: Vec::new(),
        }
    }

    /// Operations on the path with most lookups, and the headers that it writes.
    fn operations(&self, next: &[Option<Vec<BlockId>>]) -> (Operations, Vec<String>) {
        let body = &self.block.body;
        let mut position = vec![usize::MAX; body.blocks.len()];
        self.order
            .iter()
            .enumerate()
            .for_each(|(i, id)| position[id.index()] = i);
        // The number of lookups and of operations, and the successor.
        let mut best: Vec<(u32, u32, Option<BlockId>)> = vec![(0, 0, None); body.blocks.len()];
        for (at, id) in self.order.iter().enumerate().rev() {
            let to = next[id.index()].iter().flatten().filter(|to| position[to.index()] > at);
            let follow = to.max_by_key(|to| (best[to.index()].0, best[to.index()].1));
            let (lookups, done, _) = follow.map_or((0, 0, None), |to| best[to.index()]);
            let block = &body.blocks[*id];
            let own = self.done_in(block).total();
            let is_lookup = matches!(block.terminator, Terminator::Lookup(_));
            best[id.index()] = (lookups + u32::from(is_lookup), done + own, follow.copied());
        }
        let (mut operations, mut rewritten) = (Operations::default(), Vec::new());
        let mut at = (!body.blocks.is_empty()).then(|| BlockId::new(0));
        while let Some(id) = at {
            for inst in &body.blocks[id].insts {
                operations.add(self.program, &inst.kind);
                written(&inst.kind, &self.program.headers, &mut |var| {
                    self.note_header(var, &mut rewritten)
                });
            }
            at = best[id.index()].2;
        }
        (operations, rewritten)
    }

    fn done_in(&self, block: &BasicBlock) -> Operations {
        let mut operations = Operations::default();
        block
            .insts
            .iter()
            .for_each(|inst| operations.add(self.program, &inst.kind));
        operations
    }

    fn note_header(&self, var: VarId, rewritten: &mut Vec<String>) {
        if let Some(header) = header_of(self.program, var) {
            let name = &self.program.headers[header].name;
            if !rewritten.contains(name) {
                rewritten.push(name.clone());
            }
        }
    }
}
