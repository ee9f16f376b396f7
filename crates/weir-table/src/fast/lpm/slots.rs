//! The slots of DIR-24-8: beside records, or in memory of their own.
#![allow(unsafe_code)]

use crate::fast::mem::{Arena, Directory};
use crate::fast::pages;
use crate::fast::zeroed::Zeroed;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Slots, as many as a power of two.
#[derive(Debug)]
pub(super) struct Slots {
    start: NonNull<AtomicU32>,
    count: usize,
    /// The bits of a slot's number that are added to it once more, for the records between slots.
    gaps: usize,
    /// Of these all slots are, if not of a directory's pages.
    own: Option<Zeroed<AtomicU32>>,
    /// Keeps pages alive.
    _directory: Arc<Directory>,
}

// SAFETY: the pointer goes to atomics that `own` or `_directory` keep alive.
unsafe impl Send for Slots {}
// SAFETY: the pointer goes to atomics that `own` or `_directory` keep alive; atomics may be shared.
unsafe impl Sync for Slots {}

impl Slots {
    /// As many as numbers of so many bits; in the arena's pages if it has some for that many.
    pub(super) fn new(bits: u32, arena: &Arena) -> Self {
        let in_pages = arena.slots().filter(|_| bits == pages::SLOT_BITS);
        let (start, gaps, own) = match in_pages {
            Some((start, together)) => (start, !(together - 1), None),
            None => {
                let own = Zeroed::new(1 << bits);
                (own.start(), 0, Some(own))
            }
        };
        // Who looks up eight keys at a time has addresses as numbers.
        start.as_ptr().expose_provenance();
        Slots {
            start,
            count: 1 << bits,
            gaps,
            own,
            _directory: Arc::clone(arena.directory()),
        }
    }

    /// Bytes that are not a directory's.
    pub(super) fn bytes(&self) -> usize {
        self.own.as_ref().map_or(0, Zeroed::bytes)
    }

    /// Where they begin, and which bits of a slot's number are added to it once more before it is counted from there.
    #[inline(always)]
    pub(super) fn places(&self) -> (usize, usize) {
        (self.start.as_ptr().addr(), self.gaps)
    }

    /// Where a slot is.
    #[inline(always)]
    pub(super) fn address(&self, number: usize) -> *const AtomicU32 {
        self.start.as_ptr().wrapping_add(number + (number & self.gaps))
    }

    /// A slot; the first for numbers beyond the last.
    #[inline(always)]
    pub(super) fn get(&self, number: usize) -> &AtomicU32 {
        // SAFETY: there are so many slots, and they are not written but as atomics.
        unsafe { &*self.address(number & (self.count - 1)) }
    }

    /// Slots one after the other.
    pub(super) fn some(&self, numbers: Range<usize>) -> impl Iterator<Item = &AtomicU32> {
        numbers.map(|number| self.get(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::epochs::Epochs;
    use crate::fast::mem::Shape;
    use std::sync::atomic::Ordering;

    #[test]
    fn each_slot_has_a_place_of_its_own() {
        // Under Miri few: the others are of 64 MB and more.
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
            let mut arena = Arena::new(Shape::new(words, false, 0, 0), Arc::new(Epochs::new()));
            if pages {
                arena.make_pages();
            }
            let slots = Slots::new(bits, &arena);
            let (start, gaps) = slots.places();
            let some = (0..1 << bits).step_by(997);
            for number in some.clone() {
                let at = slots.address(number).addr();
                assert_eq!(at, start + (number + (number & gaps)) * size_of::<AtomicU32>());
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
