//! Hits that tables of compiled code count themselves
//! ([`FastTable::with_counts`](weir_table::fast::FastTable::with_counts)). A direct counter is what
//! the state holds of it and what these tables do.

use super::FastPath;
use crate::control::Cell;
use crate::switch::Switch;
use rustc_hash::FxHashMap;
use weir_arch::{Count, Resource};
use weir_ir::{ExternId, TableId};
use weir_table::fast::HitCount;

/// Counts of entries, by handle.
pub(super) type Counted = FxHashMap<(TableId, u32), Count>;

fn count(hits: HitCount) -> Count {
    Count {
        packets: hits.packets,
        bytes: hits.bytes,
    }
}

impl FastPath {
    /// Hits of an entry that are not yet in the state.
    fn counted(&self, table: TableId, handle: u32) -> Count {
        let mut all = self.carried_counts.get(&(table, handle)).copied().unwrap_or_default();
        if let Some(there) = self.tables.get(table.index()) {
            all.join(count(there.counted(handle)));
        }
        all
    }

    /// The same; they are not known here any more.
    fn take_counted(&mut self, table: TableId, handle: u32) -> Count {
        let mut all = self.carried_counts.remove(&(table, handle)).unwrap_or_default();
        if let Some(there) = self.tables.get(table.index()) {
            all.join(count(there.take_counted(handle)));
        }
        all
    }

    /// All of them, of one table or of all.
    pub(super) fn all_counted(&self, of: Option<TableId>) -> Counted {
        let wanted = |table: TableId| of.is_none_or(|of| of == table);
        let carried_counts = self.carried_counts.iter().filter(|((id, _), _)| wanted(*id));
        let mut all: Counted = carried_counts.map(|(of, hits)| (*of, *hits)).collect();
        let tables = self.tables.iter().enumerate().map(|(i, t)| (TableId::new(i), t));
        for (id, table) in tables.filter(|(id, _)| wanted(*id)) {
            for (handle, hits) in table.all_counted() {
                all.entry((id, handle)).or_default().join(count(hits));
            }
        }
        all
    }
}

impl Switch {
    /// The table that a resource is direct to.
    fn table_of(&self, id: ExternId) -> Option<TableId> {
        let mut tables = self.program().tables.iter();
        tables
            .find(|(_, table)| table.direct.contains(&id))
            .map(|(table, _)| table)
    }

    /// Counts of a direct counter's entry that compiled code has and the state does not.
    pub(crate) fn counted_apart(&self, id: ExternId, handle: u64) -> Count {
        let found = self
            .fast
            .as_ref()
            .zip(self.table_of(id))
            .zip(u32::try_from(handle).ok());
        found.map_or(Count::default(), |((fast, table), handle)| fast.counted(table, handle))
    }

    /// The direct counters, with handles of entries, for which compiled code has counts that the
    /// state does not have; with their totals.
    pub(crate) fn all_counted_apart(&self) -> Vec<((ExternId, u64), Count)> {
        let all = self.fast.iter().flat_map(|fast| fast.all_counted(None));
        let mut counters: Vec<_> = all
            .flat_map(|((table, handle), hits)| {
                let direct = self.program().tables.get(table).map_or(&[][..], |t| &t.direct);
                direct.iter().filter_map(move |id| {
                    let Resource::DirectCounter(_, cells) = self.state.resource(*id) else {
                        return None;
                    };
                    let mut count = cells.get(handle.into())?;
                    count.join(hits);
                    Some(((*id, handle.into()), count))
                })
            })
            .collect();
        counters.sort_unstable_by_key(|(cell, _)| *cell);
        counters
    }

    /// Adds the counts of compiled code to cells of a direct counter.
    pub(crate) fn settle_counts(&mut self, id: ExternId, cell: &Cell) {
        let (Some(table), Some(fast)) = (self.table_of(id), &mut self.fast) else {
            return;
        };
        let handles = match cell {
            Cell::Index(handle) => u32::try_from(*handle).into_iter().collect(),
            Cell::All => fast
                .all_counted(Some(table))
                .into_keys()
                .map(|(_, handle)| handle)
                .collect::<Vec<_>>(),
        };
        for handle in handles {
            let counted = fast.take_counted(table, handle);
            // Cells that nobody has written take no memory.
            if counted != Count::default() {
                self.state.add_hits(table, handle, counted);
            }
        }
    }

    /// Has compiled code forget what it counted for an entry that is gone.
    pub(crate) fn forget_counts(&mut self, table: TableId, handle: u32) {
        if let Some(fast) = &mut self.fast {
            fast.take_counted(table, handle);
        }
    }
}
