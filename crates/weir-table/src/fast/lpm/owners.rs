//! The entries that own records, in tables with counts. There a record's head does not contain the
//! entry's handle.

use crate::fast::mem::Arena;

/// Handles of entries by record number.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Indexed by record number, for records outside of pages.
    ordinary: Vec<u32>,
    /// Indexed by the record's index in pages. It has its full length as soon as one such record
    /// has an owner; parts that were never written take no memory.
    in_pages: Vec<u32>,
}

impl Owners {
    /// Sets the owner of a record.
    pub(super) fn set(&mut self, arena: &Arena, number: u32, handle: u32) {
        let (owners, index, min_len) = match arena.index_in_pages(number) {
            Some((index, all)) => (&mut self.in_pages, index, all),
            None => (&mut self.ordinary, number as usize, number as usize + 1),
        };
        if owners.is_empty() {
            *owners = vec![0; min_len];
        } else if owners.len() < min_len {
            owners.resize(min_len, 0);
        }
        owners[index] = handle;
    }

    /// The owner of a record; 0 if it has none.
    pub(super) fn get(&self, arena: &Arena, number: u32) -> u32 {
        let owner = match arena.index_in_pages(number) {
            Some((index, _)) => self.in_pages.get(index),
            None => self.ordinary.get(number as usize),
        };
        owner.copied().unwrap_or(0)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<u32>() * (self.ordinary.capacity() + self.in_pages.len())
    }
}
