//! Decides which lookups are hoisted to an earlier suspension point.
//!
//! The key of a lookup often does not depend on the lookup before it. Then both are done at the
//! same suspension point, and the second one costs no segment of its own.
//!
//! A packet may leave before control reaches a hoisted lookup. Such a lookup is speculative, and
//! its effects must not be observable. So only tables whose lookups have no immediate side effects
//! qualify, and their hits are reported afterwards, for the packets that executed the lookup.
//!
//! Relies on the dataflow states of [`crate::analysis`]. Does not emit code:
//! [`crate::codegen`] does.

use crate::analysis::Analysis;
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::{BlockId, Lookup, Operand, TableId, Terminator, VarId};

/// A lookup that is done at the suspension point of another one, its anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HoistedLookup {
    /// The block that ends in the anchor.
    pub anchor: BlockId,
    /// Whether all packets at the anchor reach the hoisted lookup; otherwise it is speculative.
    pub is_certain: bool,
}

/// The inputs of the decision.
pub(super) struct Plan<'a> {
    pub analysis: &'a Analysis<'a>,
    /// By table number: whether it may be looked up for packets that do not reach the lookup.
    pub may_speculate: &'a [bool],
    /// By table number: whether compiled code looks it up inline, in an array.
    pub arrays: &'a [bool],
}

impl Plan<'_> {
    /// The hoisted lookups, by the blocks that end in them.
    pub fn find(&self) -> BTreeMap<BlockId, HoistedLookup> {
        let mut found = BTreeMap::new();
        while let Some((id, hoisted)) = self.find_next(&found) {
            found.insert(id, hoisted);
        }
        found
    }

    /// Whether the lookup of a block is done inline in an array. The outcome row holds one result
    /// per packet, so the block must not be in a loop.
    pub fn is_array_lookup(&self, id: BlockId) -> bool {
        self.lookup(id)
            .is_some_and(|l| self.arrays[l.table.index()] && !self.analysis.repeated[id.index()])
    }

    fn lookup(&self, id: BlockId) -> Option<&Lookup> {
        match &self.analysis.pipeline.body.blocks[id].terminator {
            Terminator::Lookup(lookup) => Some(lookup),
            _ => None,
        }
    }

    fn find_next(&self, found: &BTreeMap<BlockId, HoistedLookup>) -> Option<(BlockId, HoistedLookup)> {
        let order = &self.analysis.order;
        let suspends = |id: &BlockId| !found.contains_key(id) && !self.is_array_lookup(*id);
        let lookups: Vec<BlockId> = order.iter().copied().filter(|b| self.lookup(*b).is_some()).collect();
        let points: Vec<BlockId> = lookups.into_iter().filter(suspends).collect();
        let first: BTreeSet<BlockId> = self.blocks_until_suspension(BlockId::new(0), None, &suspends);
        // The result of an inline lookup at a suspension point is lost by a packet that waits for
        // an extern after that point.
        let waits = self.extern_waits();
        let after_waits = |id: &BlockId| {
            let mut waits = waits.iter();
            waits.any(|next| self.blocks_until_suspension(*next, None, &suspends).contains(id))
        };
        for &id in points.iter().filter(|b| !first.contains(*b) && !after_waits(b)) {
            let mut before = points.iter().filter(|anchor| {
                let next = self.lookup(**anchor).map(|l| l.next);
                next.is_some_and(|next| self.blocks_until_suspension(next, None, &suspends).contains(&id))
            });
            // All paths to the lookup must come from a single suspension point.
            if let (Some(&anchor), None) = (before.next(), before.next())
                && let Some(is_certain) = self.check_hoist(anchor, id, &suspends)
            {
                return Some((id, HoistedLookup { anchor, is_certain }));
            }
        }
        None
    }

    /// The blocks where packets continue that waited for an extern.
    fn extern_waits(&self) -> Vec<BlockId> {
        let blocks = self.analysis.order.iter();
        blocks
            .filter_map(|id| match self.analysis.pipeline.body.blocks[*id].terminator {
                Terminator::Suspend(next) => Some(next),
                _ => None,
            })
            .collect()
    }

    /// Blocks from `start` to the next suspension points or to `end`, inclusive.
    fn blocks_until_suspension(
        &self,
        start: BlockId,
        end: Option<BlockId>,
        suspends: &dyn Fn(&BlockId) -> bool,
    ) -> BTreeSet<BlockId> {
        let waits = |id| {
            matches!(
                self.analysis.pipeline.body.blocks[id].terminator,
                Terminator::Suspend(_)
            )
        };
        let is_end = |id: BlockId| Some(id) == end || waits(id) || (self.lookup(id).is_some() && suspends(&id));
        self.analysis.reachable(start, is_end)
    }

    /// Whether the lookup of `id` can be hoisted to `anchor`. `Some(true)`: all packets reach it.
    fn check_hoist(&self, anchor: BlockId, id: BlockId, suspends: &dyn Fn(&BlockId) -> bool) -> Option<bool> {
        let analysis = self.analysis;
        let (first, second) = (self.lookup(anchor)?, self.lookup(id)?);
        let ordered = analysis.pipeline.ordered_tables.get(second.table.index()) == Some(&true);
        if ordered && self.is_looked_up_elsewhere(id, second.table) {
            // Two lookups of a table with direct meters must not be reordered: the actions of the
            // first read the meters before the second executes them.
            return None;
        }
        let between = self.blocks_until_suspension(first.next, Some(id), suspends);
        let repeated = |b: &BlockId| analysis.repeated[b.index()];
        let waits = |b: &BlockId| *b != id && self.lookup(*b).is_some() && suspends(b);
        if repeated(&anchor) || between.iter().any(|b| repeated(b) || waits(b)) {
            return None;
        }
        let (state, later) = (analysis.states(anchor).pop()?, analysis.states(id).pop()?);
        let mut keys: BTreeSet<VarId> = BTreeSet::new();
        for key in &second.keys {
            if let Operand::Var(v) = key {
                // A key field that is read from the packet there must be in the packet at the
                // anchor already.
                let is_clean = |state| analysis.clean_narrow_field(state, *v).is_some();
                if is_clean(&later) && !is_clean(&state) {
                    return None;
                }
                keys.insert(*v);
            }
        }
        let mut changed = false;
        let mut write = |v: VarId| changed |= keys.contains(&v);
        self.written_by_lookup(first, &mut write);
        let mut is_certain = true;
        for &b in &between {
            let block = &analysis.pipeline.body.blocks[b];
            for inst in analysis.annotated_insts(b) {
                analysis.writes(inst, &mut write);
                if inst.kind.can_fail() {
                    analysis.pipeline.body.error.into_iter().for_each(&mut write);
                }
                // An extern call may drop the packet.
                is_certain &= inst.abort().is_none();
            }
            match &block.terminator {
                Terminator::Lookup(lookup) if b != id => self.written_by_lookup(lookup, &mut write),
                Terminator::Lookup(_) => {}
                other => is_certain &= !other.targets().is_empty(),
            }
        }
        if changed || !(is_certain || self.may_speculate[second.table.index()]) {
            return None;
        }
        Some(is_certain)
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
