//! Operations on a table as values: single or in a batch, with undo records by which a failed batch
//! is rolled back.

use crate::entry::{Entry, EntryAction, EntryHandle, EntryRef, NewEntry, Note};
use crate::error::TableError;
use crate::table::Table;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use weir_ir::ActionCall;

/// A change of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableOp {
    /// [`Table::insert`]
    Insert(NewEntry),
    /// [`Table::modify`]
    Modify {
        /// Which entry.
        entry: EntryRef,
        /// Its new action.
        action: EntryAction,
        /// Its new metadata.
        metadata: u64,
        /// Its new note.
        note: Note,
        /// Its new time-out in ns.
        idle_timeout_ns: u64,
    },
    /// [`Table::delete`]
    Delete(EntryRef),
    /// [`Table::clear`]
    Clear,
    /// [`Table::set_default`]
    SetDefault(ActionCall),
    /// [`Table::reset_default`]
    ResetDefault,
    /// [`Table::annotate_default`]
    AnnotateDefault(u64, Note),
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpResult {
    /// The entry that was inserted or modified.
    Handle(EntryHandle),
    /// The entries that were removed.
    Removed(Vec<EntryHandle>),
    /// Nothing to report.
    Done,
}

/// The undo record of an operation, for [`Table::revert`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// Remove this entry.
    Insert(EntryHandle),
    /// Restore these entries to this state.
    Restore(Vec<Entry>),
    /// Restore this default action.
    Default(ActionCall),
    /// Restore this metadata and note of the default action.
    DefaultNote(u64, Note),
}

/// The handling of a batch when one of its changes fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchMode {
    /// The others are applied (`CONTINUE_ON_ERROR` of P4Runtime).
    #[default]
    Continue,
    /// None is applied (`ROLLBACK_ON_ERROR`, `DATAPLANE_ATOMIC`).
    Rollback,
}

/// Changes of a batch failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{} of {total} changes failed, {}; the first: {}", .failures.len(), if *.rolled_back { "none was applied" } else { "the others were applied" }, .failures.first().map(|(i, e)| format!("number {i}: {e}")).unwrap_or_default())]
pub struct BatchError {
    /// Position in the batch from 0, and the cause. With rollback only the first one.
    pub failures: Vec<(usize, TableError)>,
    /// Changes in the batch.
    pub total: usize,
    /// Whether the whole batch was rolled back.
    pub rolled_back: bool,
}

impl Table {
    /// Executes one operation, and returns its undo record.
    ///
    /// # Errors
    /// As the corresponding method.
    pub fn apply(&mut self, op: TableOp, now_ns: u64) -> Result<(OpResult, Undo), TableError> {
        match op {
            TableOp::Insert(entry) => {
                let handle = self.insert_at(entry, now_ns)?;
                Ok((OpResult::Handle(handle), Undo::Insert(handle)))
            }
            TableOp::Modify {
                entry,
                action,
                metadata,
                note,
                idle_timeout_ns,
            } => {
                let before = self.get(&entry)?.clone();
                let handle = self.modify(&entry, action, metadata, idle_timeout_ns)?;
                self.annotate(handle, note);
                Ok((OpResult::Handle(handle), Undo::Restore(vec![before])))
            }
            TableOp::Delete(entry) => {
                let removed = self.delete(&entry)?;
                Ok((OpResult::Removed(vec![removed.handle]), Undo::Restore(vec![removed])))
            }
            TableOp::Clear => {
                let removed = self.clear()?;
                Ok((
                    OpResult::Removed(removed.iter().map(|e| e.handle).collect()),
                    Undo::Restore(removed),
                ))
            }
            TableOp::SetDefault(action) => Ok((OpResult::Done, Undo::Default(self.set_default(action)?))),
            TableOp::AnnotateDefault(metadata, note) => {
                let (metadata, note) = self.annotate_default(metadata, note);
                Ok((OpResult::Done, Undo::DefaultNote(metadata, note)))
            }
            TableOp::ResetDefault => Ok((OpResult::Done, Undo::Default(self.reset_default()))),
        }
    }

    /// Executes several operations in order.
    ///
    /// # Errors
    /// Some failed; the error lists them, and says whether the others were applied.
    pub fn apply_batch(
        &mut self,
        ops: Vec<TableOp>,
        mode: BatchMode,
        now_ns: u64,
    ) -> Result<Vec<OpResult>, BatchError> {
        let total = ops.len();
        let (mut results, mut undo, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for (i, op) in ops.into_iter().enumerate() {
            match self.apply(op, now_ns) {
                Ok((result, back)) => {
                    results.push(result);
                    undo.push(back);
                }
                Err(error) => {
                    failures.push((i, error));
                    if mode == BatchMode::Rollback {
                        undo.into_iter().rev().for_each(|u| self.revert(u));
                        return Err(BatchError {
                            failures,
                            total,
                            rolled_back: true,
                        });
                    }
                }
            }
        }
        if failures.is_empty() {
            Ok(results)
        } else {
            Err(BatchError {
                failures,
                total,
                rolled_back: false,
            })
        }
    }
}
