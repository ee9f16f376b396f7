//! The slots of DIR-24-8: in the arena's pages between records, or in memory of their own.
#![allow(unsafe_code)]

use crate::fast::mem::{Arena, Directory};
use crate::fast::pages;
use crate::fast::zeroed::Zeroed;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Slots; their number is a power of two.
#[derive(Debug)]
pub(super) struct Slots {
    /// The first slot.
    start: NonNull<AtomicU32>,
    count: usize,
    /// The bits of a slot's number that are added to it once more, to skip the records between runs
    /// of slots.
    skip_mask: usize,
    /// The memory of the slots, if they are not in an arena's pages.
    memory: Option<Zeroed<AtomicU32>>,
    /// Keeps pages alive.
    _directory: Arc<Directory>,
}

// SAFETY: the pointer goes to atomics that `memory` or `_directory` keep alive.
unsafe impl Send for Slots {}
// SAFETY: the pointer goes to atomics that `memory` or `_directory` keep alive; atomics may be
// shared.
unsafe impl Sync for Slots {}

impl Slots {
    /// 2^`bits` slots; in the arena's pages if it has pages for as many.
    pub(super) fn new(bits: u32, arena: &Arena) -> Self {
        let in_pages = arena.slots().filter(|_| bits == pages::SLOT_BITS);
        let (start, skip_mask, memory) = match in_pages {
            Some((start, run)) => (start, !(run - 1), None),
            None => {
                let memory = Zeroed::new(1 << bits);
                (memory.start(), 0, Some(memory))
            }
        };
        // SIMD lookups hold addresses as integers.
        start.as_ptr().expose_provenance();
        Slots {
            start,
            count: 1 << bits,
            skip_mask,
            memory,
            _directory: Arc::clone(arena.directory()),
        }
    }

    /// Bytes that are not in the arena's pages.
    pub(super) fn bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, Zeroed::bytes)
    }

    /// The base address and the skip mask, see [`SlotAddressing`](crate::fast::SlotAddressing).
    #[inline(always)]
    pub(super) fn addressing(&self) -> (usize, usize) {
        (self.start.as_ptr().addr(), self.skip_mask)
    }

    /// The address of a slot.
    #[inline(always)]
    pub(super) fn address(&self, number: usize) -> *const AtomicU32 {
        self.start.as_ptr().wrapping_add(number + (number & self.skip_mask))
    }

    /// A slot; numbers wrap around beyond the last.
    #[inline(always)]
    pub(super) fn get(&self, number: usize) -> &AtomicU32 {
        // SAFETY: the masked number is below the count, and slots are only written as atomics.
        unsafe { &*self.address(number & (self.count - 1)) }
    }

    /// Consecutive slots.
    pub(super) fn range(&self, numbers: Range<usize>) -> impl Iterator<Item = &AtomicU32> {
        numbers.map(|number| self.get(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::epochs::Epochs;
    use crate::fast::mem::RecordLayout;
    use std::sync::atomic::Ordering;

    #[test]
    fn each_slot_has_a_place_of_its_own() {
        // Under Miri only the last: the others take 64 MB and more.
        for (words, bits, pages) in [
            (4, 24, true),
            (1, 24, true),
            (8, 24, true),
            (9, 24, true),
            (4, 24, false),
            (4, 13, true),
        ]
        .into_iter()
        .filter(|(_, bits, _)| !cfg!(miri) || *bits < 24)
        {
            let mut arena = Arena::new(RecordLayout::new(words, false, 0, 0), Arc::new(Epochs::new()));
            if pages {
                arena.allocate_pages();
            }
            let slots = Slots::new(bits, &arena);
            let (start, skip_mask) = slots.addressing();
            let some = (0..1 << bits).step_by(997);
            for number in some.clone() {
                let address = slots.address(number).addr();
                assert_eq!(
                    address,
                    start + (number + (number & skip_mask)) * size_of::<AtomicU32>()
                );
                slots.get(number).store(number as u32 + 1, Ordering::Relaxed);
            }
            assert!(
                some.into_iter()
                    .all(|n| slots.get(n).load(Ordering::Relaxed) == n as u32 + 1)
            );
            assert_eq!(slots.bytes() == 0, pages && words <= 8 && bits == 24);
        }
    }
}
