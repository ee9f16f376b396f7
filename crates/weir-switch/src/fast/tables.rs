//! The tables of compiled code: what they are made of, and how they take over what changes.

use super::{FastPath, OnHit};
use std::sync::Arc;
use weir_arch::State;
use weir_ir::{Program, TableId, ValueSetId};
use weir_table::fast::{Epochs, FastTable};
use weir_table::{Table, TableChange, TableSpec};

/// Tables for the program, with the extern types that are selectors; of which the handles of hits
/// matter besides for
/// counting, `handles` says by number.
pub(super) fn fast_tables(
    program: &Program,
    selectors: &[&str],
    epochs: &Arc<Epochs>,
    handles: &[bool],
    on_hit: &[OnHit],
) -> impl Iterator<Item = FastTable> {
    program.tables.iter().map(|(id, _)| {
        let spec = TableSpec::from_program(program, id, selectors);
        let new = match (handles.get(id.index()), on_hit.get(id.index())) {
            (Some(false), Some(OnHit::Count | OnHit::CountInTable)) => FastTable::with_counts,
            (Some(false), _) => FastTable::without_handles,
            _ => FastTable::with_epochs,
        };
        new(&spec, Arc::clone(epochs))
    })
}

impl FastPath {
    /// Takes over what changed about the tables.
    #[inline]
    pub(super) fn sync(&mut self, state: &mut State) {
        if state.take_touched() || self.is_fresh {
            self.sync_tables(state);
        }
    }

    #[inline(never)]
    pub(super) fn sync_tables(&mut self, state: &mut State) {
        let is_fresh = std::mem::take(&mut self.is_fresh);
        if !self.carried_counts.is_empty() {
            for ((table, handle), hits) in std::mem::take(&mut self.carried_counts) {
                state.add_hits(table, handle, hits);
            }
        }
        for (index, fast) in self.tables.iter().enumerate() {
            if let Some(table) = state.table_mut(TableId::new(index)) {
                if is_fresh {
                    table.table.forget_changes();
                }
                if table.table.has_changed() {
                    // No lookup runs now, and the tables change nowhere else: what
                    // is taken out of them
                    // is freed at once.
                    self.reader.offline();
                    apply_changes(&mut table.table, fast);
                    self.reader.quiescent();
                }
            }
        }
        for (index, fast) in self.sets.iter().enumerate() {
            if let Some(set) = state.value_set_mut(ValueSetId::new(index)) {
                if is_fresh {
                    set.forget_changes();
                }
                if set.has_changed() {
                    apply_changes(set, fast);
                    let id = ValueSetId::new(index);
                    self.main_stage.machine.load_value_set(id, fast);
                    if let Some(egress) = &mut self.egress {
                        egress.machine.load_value_set(id, fast);
                    }
                }
            }
        }
        // The entries that were taken over have not changed since.
        state.take_touched();
    }
}

/// Does to the fast table what has been done to the other one.
#[cold]
fn apply_changes(table: &mut Table, fast: &FastTable) {
    fast.update_batch(|changes| {
        for change in table.take_changes() {
            match change {
                TableChange::Reload => {
                    changes.set_default(table.default_action());
                    changes.bulk_load(&mut table.entries());
                }
                TableChange::Put(handle) => {
                    if let Some(entry) = table.entry(handle) {
                        changes.insert(entry);
                    }
                }
                TableChange::Removed(entry) => changes.remove(&entry),
                TableChange::Default => changes.set_default(table.default_action()),
            }
        }
    });
}
