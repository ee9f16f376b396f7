//! Divides a pipeline into segments, and lays out the context of a packet between them.
//!
//! A context is a column of a matrix of 64-bit words: word `r * ROW_STRIDE + i` is row `r` of
//! slot `i`. So the keys of all waiting packets lie side by side, and a segment reaches each
//! variable of its packet at a constant distance from one address.
//!
//! Relies on [`crate::analysis`] for liveness and rematerialisation, and on [`hoist`] for the
//! lookups that need no suspension point. It emits no code.

mod hoist;

use crate::analysis::Analysis;
use hoist::Plan;
use std::collections::BTreeMap;
use weir_ir::passes::VarSet;
use weir_ir::{BlockId, Lookup, MatchKind, TableId, Terminator, VarId};
use weir_table::fast::{KeyLayout, ResultLayout};

/// Packets of a vector.
pub const VECTOR: usize = 64;
/// Words from one row of the context to the next: whole cache lines, so that eight slots of a row
/// share one. With this stride only rows a multiple of 64 apart have the same lowest 12 address
/// bits. A load with the same 12 bits as a recent store stalls (4K aliasing).
pub const ROW_STRIDE: usize = 88;

/// Row of the address of the packet's first byte.
pub(crate) const ROW_PACKET: usize = 0;
/// Row of the packet's length in bytes.
pub(crate) const ROW_LENGTH: usize = 1;
/// Row of the number of bytes that the deparser emitted, of packets that have left.
pub(crate) const ROW_EMITTED: usize = 2;
/// Row of the addresses of the scratch areas, where headers are rebuilt. Constant.
pub(crate) const ROW_SCRATCH: usize = 3;
const FIRST_ROW: usize = 4;

/// Why packets wait at a suspension point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PointKind {
    /// The start of the pipeline.
    Start,
    /// A lookup, and the block that ends in it.
    Lookup { table: TableId, block: BlockId },
    /// The packet waits for an extern, outside of the vector; the block before.
    Suspend { block: BlockId },
    /// The packet has left by this exit.
    Exit(u32),
}

/// A suspension point.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub kind: PointKind,
    /// The block where control resumes; `None` at exits.
    pub resume: Option<BlockId>,
    /// Narrow variables that are saved in the context.
    pub saved: Vec<VarId>,
    /// Narrow variables that are live, and rematerialised instead of saved.
    pub remat: Vec<VarId>,
    /// At exits: all variables that the caller finds in the context, including wide variables and
    /// inputs that are never written.
    pub handed_over: Vec<VarId>,
    /// First row of the keys, of the selector keys after them, and of the results.
    pub key_row: usize,
    pub selector_row: usize,
    pub result_row: usize,
    /// The lookups that are hoisted to this point, by number of [`Layout::inline_lookups`].
    pub hoisted: Vec<usize>,
}

/// A value that no head of a result has: the slot was not looked up.
pub(crate) const NOT_LOOKED_UP: u64 = u64::MAX;

/// A lookup in the middle of a segment, at which no packet waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InlineLookup {
    pub table: TableId,
    pub how: How,
}

/// How an inline lookup gets its result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    /// It was hoisted to the suspension point before.
    Hoisted {
        /// First rows of the key and of the result.
        key_row: usize,
        result_row: usize,
        /// The number of its executed mask, of [`Layout::executed_masks`]: the lookup is reported
        /// for those packets at the end of the vector. `None`: all packets execute it.
        executed: Option<usize>,
    },
    /// Code looks the key up in an array.
    Array {
        /// Number of the table in [`Layout::arrays`].
        number: usize,
        /// Row of the heads of the results, for the deferred report. [`NOT_LOOKED_UP`] in slots
        /// that did not execute the lookup.
        outcome_row: usize,
    },
}

/// The segments of a pipeline and their contexts.
#[derive(Debug)]
pub(crate) struct Layout {
    pub points: Vec<Point>,
    /// The point of the lookup that ends a block.
    pub point_of_block: BTreeMap<BlockId, usize>,
    /// The lookups that are not suspension points.
    pub inline_lookups: Vec<InlineLookup>,
    /// The number of the inline lookup that ends a block.
    pub inline_of_block: BTreeMap<BlockId, usize>,
    /// Tables that code looks up inline, in arrays.
    pub arrays: Vec<TableId>,
    /// The number of executed masks: one per speculative hoisted lookup.
    pub executed_masks: usize,
    /// The points of the exits, in their order. They are the last points.
    pub exit_points: Vec<usize>,
    /// First row of a variable: saved narrow ones, inputs, and the homes of wide ones.
    pub rows: Vec<Option<usize>>,
    /// Rows of a context.
    pub row_count: usize,
    /// The blocks of the segment that begins at each point.
    pub regions: Vec<Vec<BlockId>>,
}

/// Blocks from `start` to the next suspension points, in order.
fn region(analysis: &Analysis<'_>, inline_lookups: &BTreeMap<BlockId, usize>, start: BlockId) -> Vec<BlockId> {
    let suspends = |id| match analysis.pipeline.body.blocks[id].terminator {
        Terminator::Lookup(_) => !inline_lookups.contains_key(&id),
        Terminator::Suspend(_) => true,
        _ => false,
    };
    let seen = analysis.reachable(start, suspends);
    let mut blocks: Vec<BlockId> = analysis.order.iter().copied().filter(|b| seen.contains(b)).collect();
    blocks.retain(|b| *b != start);
    blocks.insert(0, start);
    blocks
}

impl Layout {
    /// The point of the first exit.
    #[inline]
    pub fn first_exit(&self) -> usize {
        self.points.len() - self.exit_points.len()
    }

    /// The block that ends in an inline lookup, and the lookup.
    pub fn lookup_of_inline<'a>(&self, analysis: &'a Analysis<'_>, site: usize) -> Option<(BlockId, &'a Lookup)> {
        let (&block, _) = self.inline_of_block.iter().find(|(_, s)| **s == site)?;
        match &analysis.pipeline.body.blocks[block].terminator {
            Terminator::Lookup(lookup) => Some((block, lookup)),
            _ => None,
        }
    }

    /// Tables that are looked up for whole vectors, with the first row of their keys.
    pub fn lookups(&self) -> impl Iterator<Item = (TableId, usize)> {
        let waited_for = self.points.iter().filter_map(|point| match point.kind {
            PointKind::Lookup { table, .. } => Some((table, point.key_row)),
            _ => None,
        });
        let hoisted = self.inline_lookups.iter().filter_map(|site| match site.how {
            How::Hoisted { key_row, .. } => Some((site.table, key_row)),
            How::Array { .. } => None,
        });
        waited_for.chain(hoisted)
    }

    /// By table number: `may_speculate` says which may be looked up speculatively, and `arrays`
    /// which code looks up inline.
    pub fn new(
        analysis: &Analysis<'_>,
        tables: &[(KeyLayout, ResultLayout)],
        may_speculate: &[bool],
        arrays: &[bool],
    ) -> Self {
        let body = &analysis.pipeline.body;
        let point = |kind, resume| Point {
            kind,
            resume,
            saved: Vec::new(),
            remat: Vec::new(),
            handed_over: Vec::new(),
            key_row: 0,
            selector_row: 0,
            result_row: 0,
            hoisted: Vec::new(),
        };
        let mut points = vec![point(PointKind::Start, Some(BlockId::new(0)))];
        let plan = Plan {
            analysis,
            may_speculate,
            arrays,
        };
        let hoisted = plan.find();
        let (mut point_of_block, mut inline_lookups, mut inline_of_block) =
            (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let (mut arrays_used, mut executed) = (Vec::<TableId>::new(), 0..);
        for &id in &analysis.order {
            if let Terminator::Suspend(next) = body.blocks[id].terminator {
                point_of_block.insert(id, points.len());
                points.push(point(PointKind::Suspend { block: id }, Some(next)));
            }
            if let Terminator::Lookup(l) = &body.blocks[id].terminator {
                let how = if plan.is_array_lookup(id) {
                    let known = arrays_used.iter().position(|t| *t == l.table);
                    let number = known.unwrap_or_else(|| {
                        arrays_used.push(l.table);
                        arrays_used.len() - 1
                    });
                    Some(How::Array { number, outcome_row: 0 })
                } else {
                    hoisted.get(&id).map(|hoisted| How::Hoisted {
                        key_row: 0,
                        result_row: 0,
                        executed: if hoisted.is_certain { None } else { executed.next() },
                    })
                };
                if let Some(how) = how {
                    inline_of_block.insert(id, inline_lookups.len());
                    inline_lookups.push(InlineLookup { table: l.table, how });
                    continue;
                }
                point_of_block.insert(id, points.len());
                let kind = PointKind::Lookup {
                    table: l.table,
                    block: id,
                };
                points.push(point(kind, Some(l.next)));
            }
        }
        for (id, hoisted) in &hoisted {
            let point: usize = point_of_block[&hoisted.anchor];
            points[point].hoisted.push(inline_of_block[id]);
        }
        let exit_points = (0..analysis.pipeline.exits.len())
            .map(|e| {
                points.push(point(PointKind::Exit(e as u32), None));
                points.len() - 1
            })
            .collect();
        let mut layout = Layout {
            points,
            point_of_block,
            inline_lookups,
            inline_of_block,
            arrays: arrays_used,
            executed_masks: executed.start,
            exit_points,
            rows: vec![None; analysis.vars.len()],
            row_count: FIRST_ROW,
            regions: Vec::new(),
        };
        layout.find_saved(analysis);
        layout.assign_rows(analysis, tables);
        layout.regions = layout
            .points
            .iter()
            .map(|p| {
                p.resume
                    .map_or(Vec::new(), |b| region(analysis, &layout.inline_of_block, b))
            })
            .collect();
        debug_assert!(
            layout
                .exit_points
                .iter()
                .copied()
                .eq(layout.first_exit()..layout.points.len()),
            "exits are the last points, in their order"
        );
        layout
    }

    /// Finds the variables to save and to rematerialise at each point.
    fn find_saved(&mut self, analysis: &Analysis<'_>) {
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
                    let remat = |v: &VarId| analysis.remat(l.next, *v).is_some();
                    point.saved = live.iter().filter(|v| narrow(v) && !remat(v)).collect();
                    point.remat = live.iter().filter(|v| narrow(v) && remat(v)).collect();
                }
                PointKind::Suspend { block } => {
                    for next in body.blocks[*block].terminator.targets() {
                        let live = &analysis.live[next.index()];
                        let remat = |v: &VarId| analysis.remat(next, *v).is_some();
                        point.saved = live.iter().filter(|v| narrow(v) && !remat(v)).collect();
                        point.remat = live.iter().filter(|v| narrow(v) && remat(v)).collect();
                        // How much of the packet must be there when it comes back.
                        let state = analysis.entry_states[next.index()].as_ref();
                        let varies = state.is_some_and(|state| state.cursor.is_none());
                        if varies && !point.saved.contains(&analysis.cursor) {
                            point.saved.push(analysis.cursor);
                        }
                    }
                }
                PointKind::Exit(exit) => {
                    let mut all = VarSet::new(analysis.vars.len());
                    analysis.handed_over[*exit as usize].iter().for_each(|v| all.insert(*v));
                    point.saved = all.iter().filter(narrow).collect();
                    point.handed_over = all.iter().collect();
                }
            }
        }
    }

    fn assign_rows(&mut self, analysis: &Analysis<'_>, tables: &[(KeyLayout, ResultLayout)]) {
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
        // Narrow variables share a row if no point saves both.
        let words = self.points.len().div_ceil(64);
        let mut points_of_var: BTreeMap<VarId, Vec<u64>> = BTreeMap::new();
        for (i, point) in self.points.iter().enumerate() {
            for &v in &point.saved {
                points_of_var.entry(v).or_insert_with(|| vec![0; words])[i / 64] |= 1 << (i % 64);
            }
        }
        let mut in_use: Vec<Vec<u64>> = Vec::new();
        for (v, points) in points_of_var {
            if self.rows[v.index()].is_some() {
                continue;
            }
            let free = in_use
                .iter()
                .position(|t| t.iter().zip(&points).all(|(a, b)| a & b == 0));
            let row = free.unwrap_or_else(|| {
                in_use.push(vec![0; words]);
                in_use.len() - 1
            });
            in_use[row].iter_mut().zip(&points).for_each(|(a, b)| *a |= b);
            self.rows[v.index()] = Some(next + row);
        }
        next += in_use.len();
        self.row_count = next;
        for point in &mut self.points {
            let PointKind::Lookup { table, .. } = point.kind else {
                continue;
            };
            let (keys, results) = &tables[table.index()];
            let top = point
                .saved
                .iter()
                .filter_map(|v| self.rows[v.index()])
                .max()
                .unwrap_or(0);
            // After the rows that this point saves, but never among inputs and homes.
            let fixed = next - in_use.len();
            point.key_row = fixed.max(top + 1);
            point.selector_row = point.key_row + keys.words;
            point.result_row = point.selector_row + selector_words(analysis, table);
            self.row_count = self.row_count.max(point.result_row + results.words);
        }
        for site in &mut self.inline_lookups {
            let (keys, results) = &tables[site.table.index()];
            match &mut site.how {
                How::Hoisted {
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

/// Variables that occur in the body.
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
