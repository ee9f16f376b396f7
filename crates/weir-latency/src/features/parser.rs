//! Paths through a parser.
//!
//! A parser with loops and stacks has more paths than anybody can list. This module walks all of
//! them at once, one entered state at a time: packets that have come to the same place with the
//! same costs and the same knowledge are one *variant* with a count. Where a place has more than
//! [`MAX_VARIANTS`] of them, variants of equal cost are merged and keep only what all know; where
//! there are still too many, those with equally many states are merged and keep the range of their
//! bytes. The work is therefore bounded by states × depth × variants, whatever the paths.

use super::block::{Blocks, header_bits, intrinsic_headers, is_ethernet, metadata_bits};
use super::facts::{Facts, Initial};
use super::walk;
use super::{FeatureError, Place};
use std::collections::{BTreeMap, HashMap};
use weir_ir::passes::{VarSet, liveness, read_by};
use weir_ir::{BlockId, Body, HeaderId, InstKind, Loc, Operand, Program, Terminator, VarKind};

/// Variants that are kept apart at one place.
const MAX_VARIANTS: usize = 96;
/// Variants that were added in all, and how many are kept apart at one place from then on.
const TIGHTER: [(u64, usize); 2] = [(300_000, 12), (600_000, 2)];
/// Variants that are added in all. Paths that are longer by then are cut off.
const MAX_ADDED: u64 = 1_000_000;
/// States that a path may enter. Longer paths are counted as cut off.
const MAX_DEPTH: usize = 256;
/// Bytes of the header that every model has in its baseline: Ethernet's.
const BASE_HEADER_BYTES: u32 = 14;

/// What a state has done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Visit {
    pub(super) block: Option<BlockId>,
    pub(super) headers: Vec<HeaderId>,
    pub(super) bits: u32,
    pub(super) least_bits: u32,
    pub(super) metadata_bits: u32,
    pub(super) lookahead_bits: u32,
    lookaheads: u32,
    pub(super) advances: bool,
    /// Bits of the packet that it skips, as far as that is known.
    pub(super) advanced_bits: u32,
    pub(super) select_keys: u32,
}

/// Costs of a path so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Costs {
    pub(super) extracting: u32,
    /// The header that every model has in its baseline was extracted.
    has_base: bool,
    /// The most and the least bytes of the first state that extracts.
    first: Option<(u32, u32)>,
    /// Bits of metadata in front of the packet that are still ahead of the cursor.
    metadata_left: u32,
    pub(super) bytes: u32,
    pub(super) least_bytes: u32,
    pub(super) parsed: u32,
    pub(super) least_parsed: u32,
    pub(super) lookaheads: u32,
    pub(super) selects: u32,
}

impl Costs {
    /// Adds a state that extracts headers of the packet.
    fn extract(&mut self, bytes: u32, least: u32, has_ethernet: bool) {
        self.first = self.first.or(Some((bytes, least)));
        self.bytes += bytes;
        self.least_bytes += least;
        if has_ethernet && !self.has_base {
            self.has_base = true;
            self.leave_out(bytes, least);
        } else {
            self.extracting += 1;
        }
    }

    /// On a path without Ethernet the first header stands for it.
    fn settle(&mut self) {
        if let (false, Some((bytes, least))) = (self.has_base, self.first) {
            self.has_base = true;
            self.extracting -= 1;
            self.leave_out(bytes, least);
        }
    }

    fn leave_out(&mut self, bytes: u32, least: u32) {
        self.bytes -= bytes.min(BASE_HEADER_BYTES);
        self.least_bytes -= least.min(BASE_HEADER_BYTES);
    }
}

/// A state that was left, and the one before it.
pub(super) struct Link {
    pub(super) visit: Visit,
    pub(super) before: Option<usize>,
}

/// Packets that have come to the same place with the same costs and the same knowledge.
#[derive(Clone)]
pub(super) struct Variant {
    pub(super) facts: Facts,
    pub(super) costs: Costs,
    visit: Visit,
    pub(super) link: Option<usize>,
    pub(super) count: f64,
}

/// Variants at a place, merged as far as they must be.
#[derive(Default)]
struct Crowd {
    variants: Vec<Variant>,
    by_knowledge: HashMap<(Costs, Visit, Facts), usize>,
}

impl Crowd {
    /// Adds a variant; gives whether variants with different knowledge or costs were merged.
    fn add(&mut self, initial: &Initial, limit: usize, variant: Variant) -> bool {
        let key = (variant.costs.clone(), variant.visit.clone(), variant.facts.clone());
        if let Some(&at) = self.by_knowledge.get(&key) {
            self.variants[at].count += variant.count;
            return false;
        }
        if self.variants.len() < limit {
            self.by_knowledge.insert(key, self.variants.len());
            self.variants.push(variant);
            return false;
        }
        self.merge(initial, variant);
        true
    }

    /// Merges a variant into the one that it resembles most: of equal costs, else of equally many
    /// states, else of the nearest number of states.
    fn merge(&mut self, initial: &Initial, new: Variant) {
        let unlikeness = |old: &Variant| {
            let states = old.costs.extracting.abs_diff(new.costs.extracting);
            (
                states,
                old.costs != new.costs,
                old.costs.bytes.abs_diff(new.costs.bytes),
            )
        };
        let nearest = (0..self.variants.len()).min_by_key(|at| unlikeness(&self.variants[*at]));
        let Some(at) = nearest else { return };
        let old = &self.variants[at];
        let facts = old.facts.meet(initial, &new.facts);
        let least_bytes = old.costs.least_bytes.min(new.costs.least_bytes);
        let least_parsed = old.costs.least_parsed.min(new.costs.least_parsed);
        let count = old.count + new.count;
        let is_costlier = (new.costs.extracting, new.costs.bytes) > (old.costs.extracting, old.costs.bytes);
        let mut merged = if is_costlier { new } else { old.clone() };
        (merged.facts, merged.count) = (facts, count);
        (merged.costs.least_bytes, merged.costs.least_parsed) = (least_bytes, least_parsed);
        self.variants[at] = merged;
        self.by_knowledge.retain(|_, i| *i != at);
    }
}

/// All accepting paths.
pub(super) struct Walked<'a> {
    pub(super) name: &'a str,
    pub(super) body: &'a Body,
    pub(super) loc: Loc,
    pub(super) links: Vec<Link>,
    pub(super) accepted: Vec<Variant>,
    pub(super) is_merged: bool,
    pub(super) is_cut_off: bool,
}

/// Walks the paths of the parser of a direction.
pub(super) fn walk<'a>(
    program: &'a Program,
    blocks: &Blocks<'a>,
    initial: &'a Initial,
) -> Result<Walked<'a>, FeatureError> {
    let walked = Walk::new(program, blocks, initial).run(blocks);
    if walked.accepted.is_empty() {
        return Err(FeatureError::NothingAccepted {
            name: blocks.parser.name.clone(),
            place: Place::of(program, blocks.parser.loc).to_string(),
        });
    }
    Ok(walked)
}

struct Walk<'a> {
    program: &'a Program,
    initial: &'a Initial,
    body: &'a Body,
    /// Position of each block in the order of control.
    position: Vec<usize>,
    order: Vec<BlockId>,
    live: Vec<VarSet>,
    /// What the control reads, and the validity of headers.
    observed: VarSet,
    intrinsic: Vec<HeaderId>,
    links: Vec<Link>,
    accepted: Crowd,
    is_merged: bool,
    is_cut_off: bool,
    added: u64,
}

impl<'a> Walk<'a> {
    /// How many variants are kept apart at one place: fewer the more there were.
    fn limit(&mut self) -> usize {
        self.added += 1;
        let tighter = TIGHTER.iter().rev().find(|(from, _)| self.added > *from);
        tighter.map_or(MAX_VARIANTS, |(_, limit)| *limit)
    }

    fn new(program: &'a Program, blocks: &Blocks<'a>, initial: &'a Initial) -> Self {
        let body = &blocks.parser.body;
        let mut observed = VarSet::new(program.vars.len());
        read_by(program, &blocks.control.body, &mut |var| observed.insert(var));
        for (id, var) in program.vars.iter() {
            if matches!(var.kind, VarKind::Valid { .. }) {
                observed.insert(id);
            }
        }
        let order = walk::order(body);
        let mut position = vec![usize::MAX; body.blocks.len()];
        order.iter().enumerate().for_each(|(i, id)| position[id.index()] = i);
        Walk {
            program,
            initial,
            body,
            position,
            order,
            live: liveness(program, body, &observed, &observed),
            observed,
            intrinsic: intrinsic_headers(program),
            links: Vec::new(),
            accepted: Crowd::default(),
            is_merged: false,
            is_cut_off: false,
            added: 0,
        }
    }

    fn run(mut self, blocks: &Blocks<'a>) -> Walked<'a> {
        let first = Variant {
            facts: Facts::default(),
            costs: Costs {
                metadata_left: metadata_bits(self.program, blocks),
                ..Costs::default()
            },
            visit: Visit::default(),
            link: None,
            count: 1.0,
        };
        let mut entered = BTreeMap::from([(BlockId::new(0), vec![first])]);
        for _ in 0..MAX_DEPTH {
            if entered.is_empty() || self.added > MAX_ADDED {
                break;
            }
            entered = self.level(entered);
        }
        Walked {
            name: &blocks.parser.name,
            body: self.body,
            loc: blocks.parser.loc,
            links: self.links,
            accepted: self.accepted.variants,
            is_merged: self.is_merged,
            is_cut_off: self.is_cut_off || !entered.is_empty(),
        }
    }

    /// Takes the variants that have entered states to the next states. A jump back counts as the
    /// entry of a state, so that every loop is followed at most [`MAX_DEPTH`] times.
    fn level(&mut self, entered: BTreeMap<BlockId, Vec<Variant>>) -> BTreeMap<BlockId, Vec<Variant>> {
        let mut pending: BTreeMap<usize, Crowd> = BTreeMap::new();
        for (block, variants) in entered {
            for mut variant in variants {
                variant.visit.block = self.body.blocks[block].state.as_ref().map(|_| block);
                let limit = self.limit();
                self.is_merged |= crowd(&mut pending, self.position[block.index()]).add(self.initial, limit, variant);
            }
        }
        let mut next: BTreeMap<BlockId, Crowd> = BTreeMap::new();
        while let Some((at, here)) = pending.pop_first() {
            if self.added > MAX_ADDED {
                self.is_cut_off = true;
                break;
            }
            let id = self.order[at];
            for variant in here.variants {
                for (to, variant) in self.through(id, variant) {
                    let is_state = self.body.blocks[to].state.is_some();
                    if is_state || self.position[to.index()] <= at {
                        let variant = self.leave_state(variant, to);
                        let limit = self.limit();
                        self.is_merged |= next.entry(to).or_default().add(self.initial, limit, variant);
                    } else {
                        let place = crowd(&mut pending, self.position[to.index()]);
                        let limit = self.limit();
                        self.is_merged |= place.add(self.initial, limit, variant);
                    }
                }
            }
        }
        next.into_iter().map(|(id, crowd)| (id, crowd.variants)).collect()
    }

    /// Runs a block.
    fn through(&mut self, id: BlockId, mut variant: Variant) -> Vec<(BlockId, Variant)> {
        let block = &self.body.blocks[id];
        for inst in &block.insts {
            self.count(&mut variant, &inst.kind);
            walk::step(self.program, self.initial, &mut variant.facts, &inst.kind);
        }
        if let Terminator::Select { keys, .. } = &block.terminator {
            variant.visit.select_keys += keys.len() as u32;
        }
        if matches!(block.terminator, Terminator::Accept) {
            let mut variant = self.leave_state(variant, id);
            variant.costs.settle();
            let limit = self.limit();
            self.is_merged |= self.accepted.add(self.initial, limit, variant);
            return Vec::new();
        }
        let facts = std::mem::take(&mut variant.facts);
        let all = walk::successors(self.initial, facts, block);
        let follow = |(to, facts)| {
            (
                to,
                Variant {
                    facts,
                    ..variant.clone()
                },
            )
        };
        all.into_iter().map(follow).collect()
    }

    fn count(&self, variant: &mut Variant, inst: &InstKind) {
        let Variant {
            facts, costs, visit, ..
        } = variant;
        let known = |o: &Operand| {
            let bits = facts.operand(self.initial, o)?;
            Some(u32::try_from(bits).unwrap_or(u32::MAX))
        };
        match inst {
            InstKind::Extract { header, varbit_bits } => {
                let (mut least, mut most) = header_bits(self.program, *header);
                if let Some(bits) = varbit_bits.as_ref().and_then(known) {
                    least = most.min(least.saturating_add(bits));
                    most = least;
                }
                // Metadata in front of the packet may be extracted as a header of the program's.
                if self.intrinsic.contains(header) || most <= costs.metadata_left {
                    costs.metadata_left = costs.metadata_left.saturating_sub(most);
                    visit.metadata_bits += most;
                } else {
                    costs.metadata_left = 0;
                    visit.headers.push(*header);
                    visit.bits += most;
                    visit.least_bits += least;
                }
            }
            InstKind::Lookahead { dst, offset } => {
                visit.lookaheads += 1;
                let end = offset.saturating_add(self.program.vars[*dst].ty.width());
                visit.lookahead_bits = visit.lookahead_bits.max(end);
            }
            InstKind::Advance { bits } => {
                visit.advances = true;
                let bits = known(bits).unwrap_or(0);
                let metadata = bits.min(costs.metadata_left);
                costs.metadata_left -= metadata;
                visit.advanced_bits = visit.advanced_bits.saturating_add(bits - metadata);
            }
            InstKind::Assign { .. }
            | InstKind::PacketLength { .. }
            | InstKind::Emit { .. }
            | InstKind::Call(_)
            | InstKind::Mark(_) => {}
        }
    }

    /// Adds the costs of the state that the variant is in, on its way to a block.
    fn leave_state(&mut self, mut variant: Variant, to: BlockId) -> Variant {
        let visit = std::mem::take(&mut variant.visit);
        let costs = &mut variant.costs;
        costs.lookaheads += visit.lookaheads;
        costs.selects += u32::from(visit.select_keys > 0);
        let (bytes, least) = (visit.bits.div_ceil(8), visit.least_bits / 8);
        let skipped = visit.advanced_bits;
        costs.parsed = costs
            .parsed
            .saturating_add(visit.bits.saturating_add(skipped).div_ceil(8));
        costs.least_parsed = costs
            .least_parsed
            .saturating_add(visit.least_bits.saturating_add(skipped) / 8);
        if !visit.headers.is_empty() {
            let has_ethernet = visit.headers.iter().any(|h| is_ethernet(self.program, *h));
            costs.extract(bytes, least, has_ethernet);
        }
        if visit != Visit::default() {
            self.links.push(Link {
                visit,
                before: variant.link,
            });
            variant.link = Some(self.links.len() - 1);
        }
        let (live, observed) = (&self.live[to.index()], &self.observed);
        let is_end = self.body.blocks[to].terminator == Terminator::Accept;
        variant.facts.retain(|var| {
            if is_end {
                observed.contains(var)
            } else {
                live.contains(var)
            }
        });
        variant
    }
}

fn crowd(places: &mut BTreeMap<usize, Crowd>, at: usize) -> &mut Crowd {
    places.entry(at).or_default()
}
