//! Several changes as one.

use super::{Back, ControlError, Write, WriteResult};
use crate::replication::{self, Replication};
use crate::switch::Switch;
use weir_ir::TableId;
use weir_table::{EntryHandle, NewEntry, OpResult, TableOp, Undo};

/// Changes that take effect at once and can be undone, all or those since a mark, until
/// [`Transaction::commit`]. Dropping it undoes all. The exclusive borrow hides the switch from
/// others in between.
pub struct Transaction<'a> {
    switch: &'a mut Switch,
    log: Vec<Back>,
    /// Entries that are deleted; their direct counters and meters go when that is sure.
    gone: Vec<(TableId, u32)>,
    /// The most that changes may go through, and what is left of it.
    bound: Option<(usize, usize)>,
}

/// A point in a [`Transaction`].
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    log: usize,
    gone: usize,
    journal: usize,
}

impl Switch {
    /// Begins a series of changes that can be taken back.
    pub fn transaction(&mut self) -> Transaction<'_> {
        Transaction {
            switch: self,
            log: Vec::new(),
            gone: Vec::new(),
            bound: None,
        }
    }
}

impl Transaction<'_> {
    /// The switch with the changes so far.
    #[must_use]
    pub fn switch(&self) -> &Switch {
        self.switch
    }

    /// Bounds the existing state that further changes may visit: cleared or replaced objects, and
    /// searched lists. A change does not say how long these are. `most` is in plain entries whose
    /// insertion takes as long.
    pub fn bound(&mut self, most: usize) {
        self.bound = Some((most, most));
    }

    /// Makes a change.
    ///
    /// # Errors
    /// It does not fit, or goes beyond the [bound](Transaction::bound); the error says why. The
    /// changes before it stay.
    pub fn write(&mut self, write: Write) -> Result<WriteResult, ControlError> {
        if let Some((most, left)) = &mut self.bound {
            let extent = self.switch.extent(&write);
            *left = left.checked_sub(extent).ok_or(ControlError::TooMuch { limit: *most })?;
        }
        let (result, back, gone) = self.switch.write_journaled(write)?;
        self.log.push(back);
        self.gone.extend(gone);
        Ok(result)
    }

    /// Inserts an entry, as [`Transaction::write`] does it of a [`Write`].
    ///
    /// Large batches are insertions, and moving each through the types of all changes takes as long
    /// as the rest. A journal hears of changes as [`Write`]s: with one there is no such shortcut.
    ///
    /// # Errors
    /// As for [`Transaction::write`].
    pub fn insert(&mut self, table: TableId, entry: NewEntry) -> Result<EntryHandle, ControlError> {
        if self.switch.journal.0.is_some() {
            return match self.write(Write::Table(table, TableOp::Insert(entry)))? {
                WriteResult::Table(OpResult::Handle(handle)) => Ok(handle),
                _ => unreachable!("an insertion gives a handle"),
            };
        }
        let handle = self.switch.insert_entry(table, entry)?;
        self.log.push(Back::Table(table, Undo::Insert(handle)));
        Ok(handle)
    }

    /// Groups and sessions become those that were kept of a switch of the same program.
    pub(crate) fn restore_replication(&mut self, kept: Replication) {
        let was = self.switch.replication.restore(kept);
        self.log.push(Back::replication(replication::Undo::All(Box::new(was))));
    }

    /// This point.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            log: self.log.len(),
            gone: self.gone.len(),
            journal: self.switch.journal.0.as_ref().map_or(0, |j| j.mark()),
        }
    }

    /// Takes back what was changed since then.
    pub fn back_to(&mut self, mark: Mark) {
        for back in self.log.drain(mark.log.min(self.log.len())..).rev() {
            self.switch.take_back(back);
        }
        self.gone.truncate(mark.gone);
        if let Some(journal) = &mut self.switch.journal.0 {
            journal.back_to(mark.journal);
        }
    }

    /// Takes everything back.
    pub fn back_to_start(&mut self) {
        self.back_to(Mark {
            log: 0,
            gone: 0,
            journal: 0,
        });
    }

    /// The changes stay.
    pub fn commit(mut self) {
        self.log.clear();
        self.switch.forget(&self.gone);
        self.switch.set_noted_keys();
        if let Some(journal) = &mut self.switch.journal.0 {
            journal.commit();
        }
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.back_to_start();
    }
}
