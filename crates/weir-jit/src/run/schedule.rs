//! The stages of a pipeline in the order in which they run, with the lookups of each.
//!
//! All of it is contiguous in memory. It is read once per vector, when the caches are full of
//! packets and tables, so each further cache line costs a miss.

use super::calls::{LaneFunction, SegmentFunction};
use super::suspended::ContextRows;
use crate::analysis::Analysis;
use crate::lanes::SlotPrefetches;
use crate::layout::{How, Layout, PointKind, ROW_STRIDE, VECTOR};
use std::ops::Range;
use weir_ir::TableId;
use weir_table::fast::{KeyLayout, ResultLayout, SlotAddressing};

/// A segment, and the lookups before it.
#[derive(Debug)]
pub(crate) struct Stage {
    pub function: SegmentFunction,
    /// The same for eight packets at a time, if it could be compiled so.
    pub lane_function: Option<LaneFunction>,
    /// Range of [`Schedule::lookups`]. The first is the one that packets wait for; the others are
    /// hoisted.
    pub lookups: Range<usize>,
    /// Packets leave the vector before the segment, to wait for an extern.
    pub suspends: bool,
    /// Whether a lookup other than the first may be started before the ones before it finish: code
    /// may have prefetched its slots.
    pub may_overlap: bool,
}

/// A lookup to be done. Offsets are in words of the context.
///
/// `executed` is set for speculative hoisted lookups: the number of a mask, below
/// [`Layout::executed_masks`]. A segment sets the packet's bit in the tally word
/// [`Sites::executed_mask`](crate::sites::Sites::executed_mask) when the packet executes the
/// lookup. `look_up` saves the hits of all packets under the same number. At the end of the vector,
/// `report_deferred_lookups` reports the intersection to the host and clears the mask.
#[derive(Debug, Clone)]
pub(crate) struct PlannedLookup {
    pub table: TableId,
    /// The first row of the keys.
    pub keys: usize,
    /// The rows of the results.
    pub results: Range<usize>,
    /// The executed mask that limits the report at the end of the vector. `None`: the lookup is
    /// reported at once, for all packets.
    pub executed: Option<usize>,
    /// The table's number in [`Schedule::prefetched_tables`], if code for eight packets prefetches
    /// its slots when it stores the keys of a full group.
    pub slot_table: Option<usize>,
}

impl PlannedLookup {
    /// Whether code has prefetched the first reads of a lookup of these packets. It does so for
    /// full groups of eight only, so a partial vector prefetches in the lookup instead.
    /// `slot_addressing`: the slots of [`Schedule::prefetched_tables`], empty unless all packets of
    /// the last segment ran in lanes.
    #[inline(always)]
    pub fn is_prefetched(&self, packets: u64, slot_addressing: &[SlotAddressing]) -> bool {
        let addressing = self.slot_table.and_then(|number| slot_addressing.get(number));
        packets == u64::MAX && addressing.is_some_and(|addressing| addressing.base != 0)
    }
}

/// All stages, in the order of control. Outside of loops, no packet ever returns to an earlier
/// stage.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub stages: Vec<Stage>,
    pub lookups: Vec<PlannedLookup>,
    /// Inline array lookups: the table, and the words of the context with the heads of the results,
    /// or [`crate::layout::NOT_LOOKED_UP`]. Reported at the end of the vector.
    pub arrays: Vec<(TableId, Range<usize>)>,
    /// Tables whose slots code prefetches when it stores keys.
    pub prefetched_tables: Vec<TableId>,
    /// By point: the context of packets that wait there for an extern.
    pub contexts: Vec<ContextRows>,
}

impl Schedule {
    /// The functions are those of the points that resume: all but the exits, which come last.
    ///
    /// # Panics
    /// The number of functions differs.
    pub fn new(
        analysis: &Analysis<'_>,
        layout: &Layout,
        tables: &[(KeyLayout, ResultLayout)],
        slot_prefetches: SlotPrefetches,
        functions: impl IntoIterator<Item = (SegmentFunction, Option<LaneFunction>)>,
    ) -> Self {
        let (resuming, exits) = layout.points.split_at(layout.points.len() - layout.exit_points.len());
        assert!(resuming.iter().all(|p| p.resume.is_some()) && exits.iter().all(|p| p.resume.is_none()));
        let planned = |table: TableId, key_row, result_row, executed| {
            let first = result_row * ROW_STRIDE;
            PlannedLookup {
                table,
                keys: key_row * ROW_STRIDE,
                results: first..first + tables[table.index()].1.words * ROW_STRIDE,
                executed,
                slot_table: slot_prefetches.by_row.get(&key_row).map(|prefetch| prefetch.table),
            }
        };
        let hoisted = |site: usize| match layout.inline_lookups[site].how {
            How::Hoisted {
                key_row,
                result_row,
                executed,
            } => Some(planned(
                layout.inline_lookups[site].table,
                key_row,
                result_row,
                executed,
            )),
            How::Array { .. } => None,
        };
        let mut schedule = Schedule {
            prefetched_tables: slot_prefetches.tables.clone(),
            contexts: (0..layout.points.len())
                .map(|point| ContextRows::new(analysis, layout, point))
                .collect(),
            ..Schedule::default()
        };
        for (point, (function, lane_function)) in resuming.iter().zip(functions) {
            let first = schedule.lookups.len();
            if let PointKind::Lookup { table, .. } = point.kind {
                schedule
                    .lookups
                    .push(planned(table, point.key_row, point.result_row, None));
                schedule
                    .lookups
                    .extend(point.hoisted.iter().filter_map(|site| hoisted(*site)));
            }
            schedule.stages.push(Stage {
                function,
                lane_function,
                may_overlap: schedule
                    .lookups
                    .iter()
                    .skip(first + 1)
                    .any(|planned| planned.slot_table.is_some()),
                lookups: first..schedule.lookups.len(),
                suspends: matches!(point.kind, PointKind::Suspend { .. }),
            });
        }
        assert_eq!(
            schedule.stages.len(),
            resuming.len(),
            "each point has a function of its own"
        );
        for site in &layout.inline_lookups {
            if let How::Array { outcome_row, .. } = site.how {
                let first = outcome_row * ROW_STRIDE;
                schedule.arrays.push((site.table, first..first + VECTOR));
            }
        }
        schedule
    }
}
