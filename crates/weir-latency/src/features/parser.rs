//! Paths through a parser.
//!
//! A parser with loops and stacks has more paths than anybody can list. This module walks all of
//! them at once, one entered state at a time: packets that have come to the same place with the
//! same costs and the same knowledge are one *variant* with a count. Where a place has more than
//! [`MAX_VARIANTS`] of them, variants of equal cost are merged and keep only what all know; where
//! there are still too many, those with equally many states are merged and keep the range of their
//! bytes. The work is therefore bounded by states × depth × variants, whatever the paths.

use super::block::{Blocks, header_bits, intrinsic_headers};
use super::control::Controls;
use super::facts::{Facts, Initial};
use super::walk;
use super::{FeatureError, Place};
use serde::{Deserialize, Serialize};
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
pub(super) const BASE_HEADER_BYTES: u32 = 14;

/// A parser and the paths through it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParserFeatures {
    /// Its name.
    pub name: String,
    /// Its declaration.
    pub place: Place,
    /// Number of its states, those of sub-parsers included.
    pub states: u32,
    /// Number of paths that accept, as a floating-point number: it may be beyond any integer.
    pub accepting: f64,
    /// Some paths were merged, so that one listed path stands for several.
    pub is_merged: bool,
    /// Paths enter more states than are followed: more than 256, or fewer in a parser with very
    /// many paths. They are not among those listed.
    pub is_cut_off: bool,
    /// The paths, those that extract most first.
    pub paths: Vec<ParserPath>,
}

/// A path, or several that cost the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParserPath {
    /// Names of its headers with slashes between them, as `--path` takes it.
    pub name: String,
    /// Paths that it stands for.
    pub count: f64,
    /// The states that are entered, in order. Of merged paths those of the costliest.
    pub states: Vec<State>,
    /// States that extract, without the one that extracts Ethernet (`n` of the paper's model).
    pub extracting_states: u32,
    /// The most bytes that are extracted after Ethernet.
    pub header_bytes: u32,
    /// The least, where merged paths or variable-length headers make a difference.
    pub least_header_bytes: u32,
    /// The most bytes of the packet that headers take, Ethernet included.
    pub parsed_bytes: u32,
    /// The least, where variable-length headers or merged paths make a difference.
    pub least_parsed_bytes: u32,
    /// Reads ahead of the cursor.
    pub lookaheads: u32,
    /// States that select.
    pub selects: u32,
    /// Index into [`super::Features::controls`].
    pub control: usize,
}

/// A state on a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// The packet's headers that it extracts.
    pub headers: Vec<String>,
    /// The most bytes that it extracts; intrinsic metadata are not counted.
    pub bytes: u32,
    /// Bytes that it extracts at least.
    pub least_bytes: u32,
    /// Bytes of intrinsic metadata that it extracts.
    pub metadata_bytes: u32,
    /// Bytes that it reads ahead.
    pub lookahead_bytes: u32,
    /// It moves the cursor without extracting.
    pub advances: bool,
    /// Number of keys that it selects by.
    pub select_keys: u32,
    /// Windows of 32 bytes of the packet that it looks at: a Tofino's parser sees one per cycle.
    pub windows: u32,
}

/// What a state has done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Visit {
    block: Option<BlockId>,
    headers: Vec<HeaderId>,
    bits: u32,
    least_bits: u32,
    metadata_bits: u32,
    lookahead_bits: u32,
    lookaheads: u32,
    advances: bool,
    select_keys: u32,
}

/// Costs of a path so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Costs {
    extracting: u32,
    has_base: bool,
    bytes: u32,
    least_bytes: u32,
    parsed: u32,
    least_parsed: u32,
    lookaheads: u32,
    selects: u32,
}

/// A state that was left, and the one before it.
struct Link {
    visit: Visit,
    before: Option<usize>,
}

#[derive(Clone)]
struct Variant {
    facts: Facts,
    costs: Costs,
    visit: Visit,
    link: Option<usize>,
    count: f64,
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
    name: &'a str,
    body: &'a Body,
    loc: Loc,
    links: Vec<Link>,
    accepted: Vec<Variant>,
    is_merged: bool,
    is_cut_off: bool,
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
            costs: Costs::default(),
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
            self.count(&mut variant.visit, &variant.facts, &inst.kind);
            walk::step(self.program, self.initial, &mut variant.facts, &inst.kind);
        }
        if let Terminator::Select { keys, .. } = &block.terminator {
            variant.visit.select_keys += keys.len() as u32;
        }
        if matches!(block.terminator, Terminator::Accept) {
            let variant = self.leave_state(variant, id);
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

    fn count(&self, visit: &mut Visit, facts: &Facts, inst: &InstKind) {
        match inst {
            InstKind::Extract { header, varbit_bits } => {
                let (mut least, mut most) = header_bits(self.program, *header);
                let known = |o: &Operand| facts.operand(self.initial, o);
                if let Some(bits) = varbit_bits.as_ref().and_then(known) {
                    least = most.min(least.saturating_add(u32::try_from(bits).unwrap_or(u32::MAX)));
                    most = least;
                }
                if self.intrinsic.contains(header) {
                    visit.metadata_bits += most;
                } else {
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
            InstKind::Advance { .. } => visit.advances = true,
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
        costs.parsed += bytes;
        costs.least_parsed += least;
        if !visit.headers.is_empty() {
            let base = if costs.has_base { 0 } else { BASE_HEADER_BYTES };
            costs.extracting += u32::from(costs.has_base);
            costs.has_base = true;
            costs.bytes += bytes.saturating_sub(base);
            costs.least_bytes += least.saturating_sub(base);
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

impl Walked<'_> {
    /// The paths, with the controls that they lead to.
    pub(super) fn finish(self, program: &Program, initial: &Initial, controls: &mut Controls<'_>) -> ParserFeatures {
        let mut paths: Vec<ParserPath> = Vec::with_capacity(self.accepted.len());
        for variant in &self.accepted {
            let control = controls.reached_with(initial, &variant.facts);
            let path = self.path(program, variant, control);
            // Paths that differ only in what no table depends on are one to the reader.
            match paths
                .iter_mut()
                .find(|p| p.states == path.states && p.control == control)
            {
                Some(same) => same.count += path.count,
                None => paths.push(path),
            }
        }
        let key = |p: &ParserPath| (p.extracting_states, p.header_bytes);
        paths.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name)));
        name_apart(&mut paths);
        let is_state = |block: &&weir_ir::BasicBlock| block.state.is_some();
        ParserFeatures {
            name: self.name.to_owned(),
            place: Place::of(program, self.loc),
            states: self.body.blocks.iter().map(|(_, b)| b).filter(is_state).count() as u32,
            accepting: self.accepted.iter().map(|v| v.count).sum(),
            is_merged: self.is_merged,
            is_cut_off: self.is_cut_off,
            paths,
        }
    }

    fn path(&self, program: &Program, variant: &Variant, control: usize) -> ParserPath {
        let mut visits = Vec::new();
        let mut link = variant.link;
        while let Some(at) = link {
            visits.push(&self.links[at].visit);
            link = self.links[at].before;
        }
        visits.reverse();
        let states: Vec<State> = visits.into_iter().map(|v| self.state(program, v)).collect();
        let costs = &variant.costs;
        ParserPath {
            name: path_name(&states),
            count: variant.count,
            states,
            extracting_states: costs.extracting,
            header_bytes: costs.bytes,
            least_header_bytes: costs.least_bytes,
            parsed_bytes: costs.parsed,
            least_parsed_bytes: costs.least_parsed,
            lookaheads: costs.lookaheads,
            selects: costs.selects,
            control,
        }
    }

    fn state(&self, program: &Program, visit: &Visit) -> State {
        let block = visit.block.map(|id| &self.body.blocks[id]);
        let headers = visit.headers.iter().map(|h| program.headers[*h].name.clone());
        let bits = visit.bits + visit.metadata_bits;
        State {
            name: block.and_then(|b| b.state.clone()).unwrap_or_default(),
            place: block.map_or_else(Place::default, |b| Place::of(program, block_loc(b))),
            headers: headers.collect(),
            bytes: visit.bits.div_ceil(8),
            least_bytes: visit.least_bits / 8,
            metadata_bytes: visit.metadata_bits.div_ceil(8),
            lookahead_bytes: visit.lookahead_bits.div_ceil(8),
            advances: visit.advances,
            select_keys: visit.select_keys,
            windows: (bits.max(visit.lookahead_bits)).div_ceil(256).max(1),
        }
    }
}

/// Where a state begins: its first instruction, else what it ends with.
fn block_loc(block: &weir_ir::BasicBlock) -> Loc {
    block.insts.first().map_or(block.loc, |inst| inst.loc)
}

/// Headers without the name of the struct around them, with slashes between them.
fn path_name(states: &[State]) -> String {
    let headers = states.iter().flat_map(|s| &s.headers);
    let own = headers.map(|h| h.split_once('.').map_or(h.as_str(), |(_, own)| own));
    let name = own.collect::<Vec<_>>().join("/");
    if name.is_empty() {
        "(no header)".to_owned()
    } else {
        name
    }
}

/// Paths of the same headers get numbers.
fn name_apart(paths: &mut [ParserPath]) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for path in paths {
        let times = seen.entry(path.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            path.name = format!("{}#{times}", path.name);
        }
    }
}
