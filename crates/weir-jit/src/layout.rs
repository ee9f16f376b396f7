//! Segments, and the context that a packet leaves behind where one ends.
//!
//! A context is a column of a matrix of 64-bit words: row `r` of slot `i` is word `r * PITCH + i`. So the keys of all
//! packets that wait for a lookup lie side by side, and a segment reaches any variable of its packet at a
//! constant distance from one address.

mod ahead;

use crate::analysis::Analysis;
use ahead::Plan;
use std::collections::BTreeMap;
use weir_ir::passes::VarSet;
use weir_ir::{BlockId, Lookup, MatchKind, TableId, Terminator, VarId};
use weir_table::fast::{KeyLayout, ResultLayout};

/// Packets of a vector.
pub const VECTOR: usize = 64;
/// Words from one row of the context to the next: whole cache lines, so that eight slots of a row are in one. Only rows that are a multiple of
/// 64 apart agree in the lowest 12 bits of their addresses: processors take a load for one of what has just been stored if those are
/// the same, and wait.
pub const PITCH: usize = 88;

/// Row of the address of the packet's first byte.
pub(crate) const ROW_PACKET: usize = 0;
/// Row of the packet's length in bytes.
pub(crate) const ROW_LENGTH: usize = 1;
/// Row of the bytes that the deparser has made, of packets that have left.
pub(crate) const ROW_EMITTED: usize = 2;
/// Row of the addresses where headers are put together: always the same.
pub(crate) const ROW_SCRATCH: usize = 3;
const FIRST_ROW: usize = 4;

/// Why packets wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PointKind {
    /// The start.
    Start,
    /// A lookup; the block that ends in it.
    Lookup { table: TableId, block: BlockId },
    /// They are done.
    Exit(u32),
}

/// A suspension point.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub kind: PointKind,
    /// Where control goes on; none at exits.
    pub resume: Option<BlockId>,
    /// Narrow variables that are kept in the context.
    pub kept: Vec<VarId>,
    /// Narrow variables that are live and had again without having been kept.
    pub again: Vec<VarId>,
    /// At exits: everything that whoever gets the packet finds in the context, wide variables and inputs that nothing
    /// writes included.
    pub handed_over: Vec<VarId>,
    /// First row of the keys, of selector keys after them, and of the results.
    pub key_row: usize,
    pub selector_row: usize,
    pub result_row: usize,
    /// Lookups that are done here for later.
    pub ahead: Vec<usize>,
}

/// What no head of a result is.
pub(crate) const NOT_LOOKED_UP: u64 = u64::MAX;

/// A lookup in the middle of a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    pub table: TableId,
    pub how: How,
}

/// How a lookup is done where no packet waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    /// It has been done at the suspension before.
    Ahead {
        /// Rows of the key and the result.
        key_row: usize,
        result_row: usize,
        /// The mask, of [`Layout::reached`], of packets that get here: the host is told of those when the vector has ended. `None`: all do.
        reached: Option<usize>,
    },
    /// Code looks into an array.
    Array {
        /// Which of [`Layout::arrays`].
        number: usize,
        /// Says afterwards which slots were looked up and what they hit: of others it is [`NOT_LOOKED_UP`].
        outcome_row: usize,
    },
}

/// The segments of a pipeline and their contexts.
#[derive(Debug)]
pub(crate) struct Layout {
    pub points: Vec<Point>,
    /// The point of the lookup that ends a block.
    pub of_block: BTreeMap<BlockId, usize>,
    /// The lookups that are no suspension points.
    pub sites: Vec<Site>,
    /// The number of that of a block.
    pub site_of_block: BTreeMap<BlockId, usize>,
    /// Tables that code looks into by itself.
    pub arrays: Vec<TableId>,
    /// How many masks there are of packets that got to a lookup which was done ahead.
    pub reached: usize,
    /// The point of an exit: the last points, one for each exit, in their order.
    pub of_exit: Vec<usize>,
    /// Row of a variable: narrow ones that are kept somewhere, inputs, and the homes of wide ones.
    pub rows: Vec<Option<usize>>,
    /// Rows of a context.
    pub row_count: usize,
    /// Blocks of the segment that begins at each point.
    pub regions: Vec<Vec<BlockId>>,
}

/// Blocks from `start` to the next suspension points, in order.
fn region(analysis: &Analysis<'_>, sites: &BTreeMap<BlockId, usize>, start: BlockId) -> Vec<BlockId> {
    let is_lookup = |id| matches!(analysis.pipeline.body.blocks[id].terminator, Terminator::Lookup(_));
    let seen = analysis.reach(start, |id| is_lookup(id) && !sites.contains_key(&id));
    let mut blocks: Vec<BlockId> = analysis.order.iter().copied().filter(|b| seen.contains(b)).collect();
    blocks.retain(|b| *b != start);
    blocks.insert(0, start);
    blocks
}

impl Layout {
    /// The point of the first exit.
    #[inline]
    pub fn first_exit(&self) -> usize {
        self.points.len() - self.of_exit.len()
    }

    /// The lookup of a site, and the block that ends in it.
    pub fn lookup_of<'a>(&self, analysis: &'a Analysis<'_>, site: usize) -> Option<(BlockId, &'a Lookup)> {
        let (&block, _) = self.site_of_block.iter().find(|(_, s)| **s == site)?;
        match &analysis.pipeline.body.blocks[block].terminator {
            Terminator::Lookup(lookup) => Some((block, lookup)),
            _ => None,
        }
    }

    /// Tables that are looked up for vectors, with the first row of their keys.
    pub fn lookups(&self) -> impl Iterator<Item = (TableId, usize)> {
        let waited_for = self.points.iter().filter_map(|point| match point.kind {
            PointKind::Lookup { table, .. } => Some((table, point.key_row)),
            _ => None,
        });
        let ahead = self.sites.iter().filter_map(|site| match site.how {
            How::Ahead { key_row, .. } => Some((site.table, key_row)),
            How::Array { .. } => None,
        });
        waited_for.chain(ahead)
    }

    /// `may_waste` says which tables may be looked up for packets that do not get there, and `arrays` which code can look into by itself.
    pub fn new(
        analysis: &Analysis<'_>,
        tables: &[(KeyLayout, ResultLayout)],
        may_waste: &[bool],
        arrays: &[bool],
    ) -> Self {
        let body = &analysis.pipeline.body;
        let point = |kind, resume| Point {
            kind,
            resume,
            kept: Vec::new(),
            again: Vec::new(),
            handed_over: Vec::new(),
            key_row: 0,
            selector_row: 0,
            result_row: 0,
            ahead: Vec::new(),
        };
        let mut points = vec![point(PointKind::Start, Some(BlockId::new(0)))];
        let plan = Plan {
            analysis,
            may_waste,
            arrays,
        };
        let ahead = plan.find();
        let (mut of_block, mut sites, mut site_of_block) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let (mut looked_into, mut reached) = (Vec::<TableId>::new(), 0..);
        for &id in &analysis.order {
            if let Terminator::Lookup(l) = &body.blocks[id].terminator {
                let how = if plan.is_of_array(id) {
                    let known = looked_into.iter().position(|t| *t == l.table);
                    let number = known.unwrap_or_else(|| {
                        looked_into.push(l.table);
                        looked_into.len() - 1
                    });
                    Some(How::Array { number, outcome_row: 0 })
                } else {
                    ahead.get(&id).map(|ahead| How::Ahead {
                        key_row: 0,
                        result_row: 0,
                        reached: if ahead.certain { None } else { reached.next() },
                    })
                };
                if let Some(how) = how {
                    site_of_block.insert(id, sites.len());
                    sites.push(Site { table: l.table, how });
                    continue;
                }
                of_block.insert(id, points.len());
                let kind = PointKind::Lookup {
                    table: l.table,
                    block: id,
                };
                points.push(point(kind, Some(l.next)));
            }
        }
        for (id, ahead) in &ahead {
            let point: usize = of_block[&ahead.with];
            points[point].ahead.push(site_of_block[id]);
        }
        let of_exit = (0..analysis.pipeline.exits.len())
            .map(|e| {
                points.push(point(PointKind::Exit(e as u32), None));
                points.len() - 1
            })
            .collect();
        let mut layout = Layout {
            points,
            of_block,
            sites,
            site_of_block,
            arrays: looked_into,
            reached: reached.start,
            of_exit,
            rows: vec![None; analysis.vars.len()],
            row_count: FIRST_ROW,
            regions: Vec::new(),
        };
        layout.keep(analysis);
        layout.give_rows(analysis, tables);
        layout.regions = layout
            .points
            .iter()
            .map(|p| {
                p.resume
                    .map_or(Vec::new(), |b| region(analysis, &layout.site_of_block, b))
            })
            .collect();
        debug_assert!(
            layout
                .of_exit
                .iter()
                .copied()
                .eq(layout.first_exit()..layout.points.len()),
            "exits are the last points, in their order"
        );
        layout
    }

    /// What is live across each point.
    fn keep(&mut self, analysis: &Analysis<'_>) {
        let body = &analysis.pipeline.body;
        let narrow = |v: &VarId| analysis.vars[v.index()].is_narrow() && !analysis.constant_inputs.contains(*v);
        for point in &mut self.points {
            match &point.kind {
                PointKind::Start => {}
                PointKind::Lookup { block, .. } => {
                    let Terminator::Lookup(l) = &body.blocks[*block].terminator else {
                        continue;
                    };
                    let mut live = analysis.live[l.next.index()].clone();
                    for v in [l.hit, l.action, l.entry] {
                        live.remove(v);
                    }
                    let table = &analysis.program().tables[l.table];
                    for a in &table.actions {
                        a.parameters.iter().for_each(|&v| live.remove(v));
                    }
                    let again = |v: &VarId| analysis.again(l.next, *v).is_some();
                    point.kept = live.iter().filter(|v| narrow(v) && !again(v)).collect();
                    point.again = live.iter().filter(|v| narrow(v) && again(v)).collect();
                }
                PointKind::Exit(exit) => {
                    let mut all = VarSet::new(analysis.vars.len());
                    analysis.handed_over[*exit as usize].iter().for_each(|v| all.insert(*v));
                    point.kept = all.iter().filter(narrow).collect();
                    point.handed_over = all.iter().collect();
                }
            }
        }
    }

    fn give_rows(&mut self, analysis: &Analysis<'_>, tables: &[(KeyLayout, ResultLayout)]) {
        let mut next = FIRST_ROW;
        for &input in &analysis.pipeline.inputs {
            self.rows[input.index()] = Some(next);
            next += 1;
        }
        let named = named(analysis);
        for (index, var) in analysis.vars.iter().enumerate() {
            if !var.is_narrow() && named.contains(VarId::new(index)) {
                self.rows[index] = Some(next);
                next += var.home_words();
            }
        }
        // Narrow variables share rows where no point keeps both.
        let words = self.points.len().div_ceil(64);
        let mut at: BTreeMap<VarId, Vec<u64>> = BTreeMap::new();
        for (i, point) in self.points.iter().enumerate() {
            for &v in &point.kept {
                at.entry(v).or_insert_with(|| vec![0; words])[i / 64] |= 1 << (i % 64);
            }
        }
        let mut taken: Vec<Vec<u64>> = Vec::new();
        for (v, points) in at {
            if self.rows[v.index()].is_some() {
                continue;
            }
            let free = taken
                .iter()
                .position(|t| t.iter().zip(&points).all(|(a, b)| a & b == 0));
            let row = free.unwrap_or_else(|| {
                taken.push(vec![0; words]);
                taken.len() - 1
            });
            taken[row].iter_mut().zip(&points).for_each(|(a, b)| *a |= b);
            self.rows[v.index()] = Some(next + row);
        }
        next += taken.len();
        self.row_count = next;
        for point in &mut self.points {
            let PointKind::Lookup { table, .. } = point.kind else {
                continue;
            };
            let (keys, results) = &tables[table.index()];
            let top = point
                .kept
                .iter()
                .filter_map(|v| self.rows[v.index()])
                .max()
                .unwrap_or(0);
            // After what this point keeps, but never among inputs and homes.
            let fixed = next - taken.len();
            point.key_row = fixed.max(top + 1);
            point.selector_row = point.key_row + keys.words;
            point.result_row = point.selector_row + selector_words(analysis, table);
            self.row_count = self.row_count.max(point.result_row + results.words);
        }
        for site in &mut self.sites {
            let (keys, results) = &tables[site.table.index()];
            match &mut site.how {
                How::Ahead {
                    key_row, result_row, ..
                } => {
                    *key_row = self.row_count;
                    // Selector keys follow the table's own.
                    *result_row = *key_row + keys.words + selector_words(analysis, site.table);
                    self.row_count = *result_row + results.words;
                }
                How::Array { outcome_row, .. } => {
                    *outcome_row = self.row_count;
                    self.row_count += 1;
                }
            }
        }
    }
}

/// Words of the selector keys of a table.
fn selector_words(analysis: &Analysis<'_>, table: TableId) -> usize {
    let keys = analysis.program().tables[table].keys.iter();
    keys.filter(|k| k.match_kind == MatchKind::Selector)
        .map(|k| k.width.div_ceil(64).max(1) as usize)
        .sum()
}

/// Variables that the body names.
fn named(analysis: &Analysis<'_>) -> VarSet {
    let mut used = VarSet::new(analysis.vars.len());
    let headers = &analysis.program().headers;
    for &id in &analysis.order {
        let block = &analysis.pipeline.body.blocks[id];
        for inst in &block.insts {
            weir_ir::passes::read_by_inst(&inst.kind, headers, &mut |v| used.insert(v));
            weir_ir::passes::written(&inst.kind, headers, &mut |v| used.insert(v));
        }
        weir_ir::passes::read_by_terminator(&block.terminator, &mut |v| used.insert(v));
        if let Terminator::Lookup(l) = &block.terminator {
            let table = &analysis.program().tables[l.table];
            table
                .actions
                .iter()
                .flat_map(|a| &a.parameters)
                .for_each(|&v| used.insert(v));
        }
        if let Terminator::Exit(e) = block.terminator {
            analysis.pipeline.exits[e as usize]
                .live
                .iter()
                .for_each(|&v| used.insert(v));
        }
    }
    used
}
