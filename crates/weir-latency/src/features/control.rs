//! The execution paths through a control, given the headers that the parser has found.

use super::block::header_of;
use super::effects::Effects;
use super::facts::{Facts, Initial};
use super::operations::Operations;
use super::sequence::{Control, Piece};
use super::walk;
use std::collections::HashMap;
use weir_ir::passes::{VarSet, read_by_inst, read_by_terminator, written};
use weir_ir::{Block, BlockId, Body, InstKind, Program, Terminator};

/// Times that a block of a control is looked at again because of loops.
const MAX_ROUNDS: usize = 8;

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
    /// What each block does, and the headers of which it writes a field.
    done: Vec<(Operations, Vec<String>)>,
    by_facts: HashMap<Facts, usize>,
    controls: Vec<Control>,
}

impl<'a> Controls<'a> {
    pub(super) fn new(program: &'a Program, block: &'a Block, effects: &Effects, tables: &'a [Option<usize>]) -> Self {
        Controls {
            program,
            block,
            tables,
            order: walk::order(&block.body),
            deciding: deciding(program, &block.body),
            done: done(program, &block.body, effects),
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
        let control = self.pieces(&self.reachable(initial, &facts));
        let number = self.controls.iter().position(|known| *known == control);
        let number = number.unwrap_or_else(|| {
            self.controls.push(control);
            self.controls.len() - 1
        });
        self.by_facts.insert(facts, number);
        number
    }

    /// The control of this number.
    pub(super) fn control(&self, number: usize) -> &Control {
        &self.controls[number]
    }

    pub(super) fn finish(self) -> Vec<Control> {
        self.controls
    }

    /// Where control may go from each block that it may reach, whatever lookups find.
    fn reachable(&self, initial: &Initial, facts: &Facts) -> Vec<Option<Vec<BlockId>>> {
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
                let follow = walk::successors(initial, here, block);
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

    /// The blocks that are reached, each chain of them as one piece.
    fn pieces(&self, next: &[Option<Vec<BlockId>>]) -> Control {
        let lookup = |id: BlockId| match &self.block.body.blocks[id].terminator {
            Terminator::Lookup(lookup) => self.tables[lookup.table.index()],
            Terminator::Goto(_)
            | Terminator::Suspend(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Select { .. }
            | Terminator::Accept
            | Terminator::Reject
            | Terminator::Return
            | Terminator::Exit(_) => None,
        };
        let mut entries = vec![0_u32; next.len()];
        for to in next.iter().flatten().flatten() {
            entries[to.index()] += 1;
        }
        let mut piece_of: Vec<Option<usize>> = vec![None; next.len()];
        let mut pieces: Vec<Piece> = Vec::new();
        let mut last: Vec<BlockId> = Vec::new();
        for id in &self.order {
            let Some(to) = &next[id.index()] else { continue };
            let at = piece_of[id.index()].unwrap_or_else(|| {
                pieces.push(Piece::default());
                last.push(*id);
                pieces.len() - 1
            });
            piece_of[id.index()] = Some(at);
            last[at] = *id;
            let (operations, rewritten) = &self.done[id.index()];
            pieces[at].add(operations, rewritten);
            pieces[at].table = lookup(*id);
            if let [only] = &to[..]
                && entries[only.index()] == 1
                && piece_of[only.index()].is_none()
                && pieces[at].table.is_none()
                && *only != BlockId::new(0)
            {
                piece_of[only.index()] = Some(at);
            }
        }
        for (piece, last) in pieces.iter_mut().zip(&last) {
            let to = next[last.index()].iter().flatten();
            piece.next = to.filter_map(|to| piece_of[to.index()]).collect();
            piece.next.sort_unstable();
            piece.next.dedup();
        }
        Control { pieces }
    }
}

/// What each block of a body does, and the headers of which it writes a field.
fn done(program: &Program, body: &Body, effects: &Effects) -> Vec<(Operations, Vec<String>)> {
    let mut done = vec![(Operations::default(), Vec::new()); body.blocks.len()];
    for (id, block) in body.blocks.iter() {
        let (operations, rewritten) = &mut done[id.index()];
        for (at, inst) in block.insts.iter().enumerate() {
            if !effects.has_effect(id, at) {
                continue;
            }
            operations.add(program, &inst.kind);
            written(&inst.kind, &program.headers, &mut |var| {
                if let Some(header) = header_of(program, var) {
                    let name = &program.headers[header].name;
                    if !rewritten.contains(name) {
                        rewritten.push(name.clone());
                    }
                }
            });
        }
    }
    done
}
