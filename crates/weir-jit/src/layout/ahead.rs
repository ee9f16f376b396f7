//! Lookups that are done before control gets to them.
//!
//! The key of a lookup often does not depend on the lookup before it. Then both are done in one suspension, and the second
//! costs no segment of its own. Where a packet may leave before it gets to the second, nobody must notice
//! that it was looked up all the same: the table is told afterwards, and has nothing that happens at lookups.

use crate::analysis::Analysis;
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::{BlockId, Lookup, Operand, TableId, Terminator, VarId};

/// A lookup that is done at the suspension of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ahead {
    /// The block that ends in the other lookup.
    pub with: BlockId,
    /// Whether all packets get there.
    pub certain: bool,
}

/// What is to be decided: which lookups suspend packets.
pub(super) struct Plan<'a> {
    pub analysis: &'a Analysis<'a>,
    /// Tables, by number, that may be looked up for packets that do not get there.
    pub may_waste: &'a [bool],
    /// Tables, by number, that code can look into by itself.
    pub arrays: &'a [bool],
}

impl Plan<'_> {
    /// The lookups that are done ahead, by their blocks.
    pub fn find(&self) -> BTreeMap<BlockId, Ahead> {
        let mut found = BTreeMap::new();
        while let Some((id, ahead)) = self.find_one(&found) {
            found.insert(id, ahead);
        }
        found
    }

    /// Whether the lookup of a block is one that code does by itself. What it comes to is told once per packet at the most.
    pub fn is_of_array(&self, id: BlockId) -> bool {
        self.lookup(id)
            .is_some_and(|l| self.arrays[l.table.index()] && !self.analysis.repeated[id.index()])
    }

    fn lookup(&self, id: BlockId) -> Option<&Lookup> {
        match &self.analysis.pipeline.body.blocks[id].terminator {
            Terminator::Lookup(lookup) => Some(lookup),
            _ => None,
        }
    }

    fn find_one(&self, found: &BTreeMap<BlockId, Ahead>) -> Option<(BlockId, Ahead)> {
        let order = &self.analysis.order;
        let suspends = |id: &BlockId| !found.contains_key(id) && !self.is_of_array(*id);
        let lookups: Vec<BlockId> = order.iter().copied().filter(|b| self.lookup(*b).is_some()).collect();
        let points: Vec<BlockId> = lookups.into_iter().filter(suspends).collect();
        let first: BTreeSet<BlockId> = self.reach(BlockId::new(0), None, &suspends);
        for &id in points.iter().filter(|b| !first.contains(*b)) {
            let mut before = points.iter().filter(|with| {
                let next = self.lookup(**with).map(|l| l.next);
                next.is_some_and(|next| self.reach(next, None, &suspends).contains(&id))
            });
            // There must be one suspension that all ways to it come from.
            if let (Some(&with), None) = (before.next(), before.next())
                && let Some(certain) = self.is_possible(with, id, &suspends)
            {
                return Some((id, Ahead { with, certain }));
            }
        }
        None
    }

    /// Blocks from `start` to the next suspensions or to `end`, these included.
    fn reach(&self, start: BlockId, end: Option<BlockId>, suspends: &dyn Fn(&BlockId) -> bool) -> BTreeSet<BlockId> {
        let is_end = |id: BlockId| Some(id) == end || (self.lookup(id).is_some() && suspends(&id));
        self.analysis.reach(start, is_end)
    }

    /// Whether the lookup of `id` can be done with that of `with`, and whether all packets get there.
    fn is_possible(&self, with: BlockId, id: BlockId, suspends: &dyn Fn(&BlockId) -> bool) -> Option<bool> {
        let analysis = self.analysis;
        let (first, second) = (self.lookup(with)?, self.lookup(id)?);
        let ordered = analysis.pipeline.ordered_tables.get(second.table.index()) == Some(&true);
        if ordered && self.is_looked_up_elsewhere(id, second.table) {
            // What the meters say of the one must not be there before the actions of the other have asked.
            return None;
        }
        let between = self.reach(first.next, Some(id), suspends);
        let repeated = |b: &BlockId| analysis.repeated[b.index()];
        let waits = |b: &BlockId| *b != id && self.lookup(*b).is_some() && suspends(b);
        if repeated(&with) || between.iter().any(|b| repeated(b) || waits(b)) {
            return None;
        }
        let (state, later) = (analysis.states(with).pop()?, analysis.states(id).pop()?);
        let mut keys: BTreeSet<VarId> = BTreeSet::new();
        for key in &second.keys {
            if let Operand::Var(v) = key {
                // What is taken from the packet must be there already.
                let held = |state| analysis.held_by_packet(state, *v).is_some();
                if held(&later) && !held(&state) {
                    return None;
                }
                keys.insert(*v);
            }
        }
        let mut changed = false;
        let mut write = |v: VarId| changed |= keys.contains(&v);
        self.written_by_lookup(first, &mut write);
        let mut certain = true;
        for &b in &between {
            let block = &analysis.pipeline.body.blocks[b];
            for step in analysis.steps(b) {
                analysis.writes(step, &mut write);
                if step.inst.can_fail() {
                    analysis.pipeline.body.error.into_iter().for_each(&mut write);
                }
                // A call may end the packet's way.
                certain &= step.abort().is_none();
            }
            match &block.terminator {
                Terminator::Lookup(lookup) if b != id => self.written_by_lookup(lookup, &mut write),
                Terminator::Lookup(_) => {}
                other => certain &= !other.targets().is_empty(),
            }
        }
        if changed || !(certain || self.may_waste[second.table.index()]) {
            return None;
        }
        Some(certain)
    }

    fn is_looked_up_elsewhere(&self, id: BlockId, table: TableId) -> bool {
        let mut others = self.analysis.order.iter().filter(|b| **b != id);
        others.any(|b| self.lookup(*b).is_some_and(|l| l.table == table))
    }

    fn written_by_lookup(&self, lookup: &Lookup, f: &mut dyn FnMut(VarId)) {
        let table = &self.analysis.program().tables[lookup.table];
        let parameters = table.actions.iter().flat_map(|a| &a.parameters);
        let results = [lookup.hit, lookup.action, lookup.entry];
        results.iter().chain(parameters).for_each(|v| f(*v));
    }
}
