//! What is run one after the other.
//!
//! Everything that running it takes is side by side: while a vector is run, what is near the processor is used for packets and tables, so each line
//! that is read once per vector has to come from further away.

use super::calls::{LanesFunction, SegmentFunction};
use crate::lanes::Asks;
use crate::layout::{How, Layout, PITCH, PointKind, VECTOR};
use std::ops::Range;
use weir_ir::TableId;
use weir_table::fast::{KeyLayout, ResultLayout, SlotAddressing};

/// A segment, and the lookups before it.
#[derive(Debug)]
pub(crate) struct Step {
    pub function: SegmentFunction,
    /// The same for eight packets at a time, where there is such code.
    pub lanes: Option<LanesFunction>,
    /// Of [`Steps::lookups`]. The first is what packets wait for, the others are done ahead.
    pub lookups: Range<usize>,
    /// Whether code may have asked for what another one of them than the first reads.
    pub may_begin: bool,
}

/// A lookup to be done. Places are words of the context.
///
/// Of a lookup that is done ahead and that not all packets get to, `reached` is a number among [`Layout::reached`]. A segment sets the packet's bit of
/// mask [`Sites::reached`](crate::sites::Sites::reached), a word of the tallies, when the packet gets there; `look_up` keeps the hits of all, by the same number; when the vector has ended
/// `tell_of_late` tells the host of those of both, and takes the mask away.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub table: TableId,
    pub keys: usize,
    pub results: Range<usize>,
    /// The host is told when the vector has ended, of whom this mask says that they got there. `None`: at once, of all.
    pub reached: Option<usize>,
    /// Code for eight packets asks for what the lookup reads first, where it has the keys of a whole group: which of [`Steps::asked`] the table is.
    pub asked: Option<usize>,
}

impl Wanted {
    /// Whether code has asked for what a lookup of these packets will read first. It asks for groups of eight that are all there: where packets are missing, the lookup
    /// had better ask itself. `asks`: places of the slots of [`Steps::asked`], if the code before it has run to its end for eight packets at a time.
    #[inline(always)]
    pub fn is_fetched(&self, packets: u64, asks: &[SlotAddressing]) -> bool {
        let places = self.asked.and_then(|number| asks.get(number));
        packets == u64::MAX && places.is_some_and(|places| places.base != 0)
    }
}

/// All segments, in the order of control: the lowest that has packets is waited for by no other.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub steps: Vec<Step>,
    pub lookups: Vec<Wanted>,
    /// Where code looks into an array by itself: from this word of the context on are the heads of what it found, or [`crate::layout::NOT_LOOKED_UP`]. The
    /// host is told when the vector has ended.
    pub arrays: Vec<(TableId, Range<usize>)>,
    /// Of whose slots code asks for those that it has keys for.
    pub asked: Vec<TableId>,
}

impl Steps {
    /// The functions are those of the points at which packets go on: of the first points, for exits come last.
    ///
    /// # Panics
    /// There are not as many.
    pub fn new(
        layout: &Layout,
        tables: &[(KeyLayout, ResultLayout)],
        asks: Asks,
        functions: impl IntoIterator<Item = (SegmentFunction, Option<LanesFunction>)>,
    ) -> Self {
        let (going_on, exits) = layout.points.split_at(layout.points.len() - layout.of_exit.len());
        assert!(going_on.iter().all(|p| p.resume.is_some()) && exits.iter().all(|p| p.resume.is_none()));
        let wanted = |table: TableId, key_row, result_row, reached| {
            let first = result_row * PITCH;
            Wanted {
                table,
                keys: key_row * PITCH,
                results: first..first + tables[table.index()].1.words * PITCH,
                reached,
                asked: asks.by_row.get(&key_row).map(|ask| ask.number),
            }
        };
        let of_site = |site: usize| match layout.sites[site].how {
            How::Ahead {
                key_row,
                result_row,
                reached,
            } => Some(wanted(layout.sites[site].table, key_row, result_row, reached)),
            How::Array { .. } => None,
        };
        let mut all = Steps {
            asked: asks.tables.clone(),
            ..Steps::default()
        };
        for (point, (function, lanes)) in going_on.iter().zip(functions) {
            let first = all.lookups.len();
            if let PointKind::Lookup { table, .. } = point.kind {
                all.lookups.push(wanted(table, point.key_row, point.result_row, None));
                all.lookups.extend(point.ahead.iter().filter_map(|site| of_site(*site)));
            }
            all.steps.push(Step {
                function,
                lanes,
                may_begin: all.lookups.iter().skip(first + 1).any(|wanted| wanted.asked.is_some()),
                lookups: first..all.lookups.len(),
            });
        }
        assert_eq!(all.steps.len(), going_on.len(), "each point has a function of its own");
        for site in &layout.sites {
            if let How::Array { outcome_row, .. } = site.how {
                let first = outcome_row * PITCH;
                all.arrays.push((site.table, first..first + VECTOR));
            }
        }
        all
    }
}
