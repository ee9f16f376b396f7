//! The entries that own records, in tables with counts. There a record's head does not contain the
//! entry's handle.

use crate::fast::mem::Arena;

/// Handles of entries by record number.
#[derive(Debug, Default)]
pub(super) struct Owners {
    ordinary: Vec<u32>,
    /// Indexed by the record's index in pages. It has its full length as soon as one such record
    /// has an owner; parts that were never written take no memory.
    in_pages: Vec<u32>,
}

impl Owners {
    pub(super) fn set(&mut self, arena: &Arena, number: u32, handle: u32) {
        let (owners, place, least) = match arena.index_in_pages(number) {
            Some((place, all)) => (&mut self.in_pages, place, all),
            None => (&mut self.ordinary, number as usize, number as usize + 1),
        };
        if owners.is_empty() {
            *owners = vec![0; least];
        } else if owners.len() < least {
            owners.resize(least, 0);
        }
        owners[place] = handle;
    }

    pub(super) fn get(&self, arena: &Arena, number: u32) -> u32 {
        let owner = match arena.index_in_pages(number) {
            Some((place, _)) => self.in_pages.get(place),
            None => self.ordinary.get(number as usize),
        };
        owner.copied().unwrap_or(0)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<u32>() * (self.ordinary.capacity() + self.in_pages.len())
    }
}
