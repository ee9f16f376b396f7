//! Whoever keeps a record of what control planes change.

use crate::control::{Write, WriteResult};
use crate::switch::Switch;
use std::fmt::Debug;

/// Hears of every change of a control plane that is made and stays: of [`Switch::write`] and
/// [`crate::Transaction`].
///
/// A change is [noted](Journal::note) before it is made, then either [made](Journal::made) or
/// [taken back](Journal::back_to); what was made by the next [commit](Journal::commit) stays, as
/// one.
pub trait Journal: Debug + Send + Sync {
    /// This is about to be tried.
    fn note(&mut self, change: &Write);

    /// It was made, with this result.
    fn made(&mut self, result: &WriteResult);

    /// How much was noted since the last commit, for [`Journal::back_to`].
    fn mark(&self) -> usize;

    /// What was noted after that was not made, or was taken back.
    fn back_to(&mut self, mark: usize);

    /// What was noted since the last commit stays.
    fn commit(&mut self);
}

/// A place for a journal. It is of one switch: a clone has none.
#[derive(Debug, Default)]
pub(crate) struct Slot(pub Option<Box<dyn Journal>>);

impl Clone for Slot {
    fn clone(&self) -> Self {
        Slot::default()
    }
}

impl Switch {
    /// Sets the journal that receives all further changes by control planes, in place of the one
    /// before; `None`: there is none.
    ///
    /// A clone of the switch has no journal.
    pub fn set_journal(&mut self, journal: Option<Box<dyn Journal>>) {
        self.journal = Slot(journal);
    }
}
