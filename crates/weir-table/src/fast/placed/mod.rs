//! A few exact keys that fit one word together with their results, each in a place of its own: a lookup reads one slot and no other.
//!
//! A slot is an entry, see [`Packing`]. A hash says which group a key belongs to, of four on average, and together with the group's turn, a
//! byte, which slot is its own. The writer chooses turns so that all keys of a group come to free slots; where there is none that does, it
//! makes a new array with another seed, in which it places the largest groups first. So nothing is searched, and what a slot does not hold
//! is nowhere. There are at most 256 groups and 2048 slots: so few that a processor with AVX-512 has a byte per group, and a bit per slot,
//! in registers during a lookup. Of slots there are 1.6 to 2.5 times as many as entries, so that an entry takes 13 to 20 bytes,
//! and its stamp 6 to 10 more; the writer has about 80 for each, 110 with stamps. The array does not shrink.
//!
//! Slots are written at once, so nothing that is found is torn. Keys that move are copied first and counted in `moves`, which readers look
//! at before they call a key missing, unless `writes` tells them that nothing changed.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod eight;
mod stamps;
mod writer;

pub(super) use writer::{MOST, Placed};

use crate::fast::batch::{Batch, each, ones};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::eight::has_eight;
use crate::fast::hash::Seed;
use crate::fast::packing::{Packing, step};
use crate::fast::writes::Writes;
use crate::fast::zeroed::Zeroed;
use stamps::Stamps;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

/// Most groups.
const GROUPS: usize = 256;
/// Most slots.
const SLOTS: usize = 2048;
/// A hash is multiplied by this and, above it, the turn: so another turn changes nearly all bits that are used then, the highest most.
const TURN_FACTOR: u64 = 0x0037_79b9;
const TURN_SHIFT: u32 = 24;

#[derive(Debug)]
struct Array {
    slots: Zeroed<AtomicU64>,
    /// If somebody wants to know.
    stamps: Option<Stamps>,
    /// The turn of each group; room for [`GROUPS`].
    turns: Zeroed<AtomicU8>,
    groups: u32,
    packing: Packing,
    seed: Seed,
    writes: Writes,
    /// Counts groups whose keys left their slots for others.
    moves: AtomicU64,
    /// Keys are looked up eight at a time.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    by_eights: bool,
}

/// What readers see.
#[derive(Debug)]
pub(super) struct PlacedShape(Arc<Array>);

/// A number below `count`, as likely as another, of 32 bits.
#[inline(always)]
fn scale(bits: u64, count: u64) -> usize {
    (((bits & 0xffff_ffff) * count) >> 32) as usize
}

impl Array {
    fn new(packing: Packing, slots: usize, groups: u32, stamps: bool) -> Self {
        Array {
            slots: Zeroed::new(slots),
            stamps: stamps.then(|| Stamps::new(slots)),
            turns: Zeroed::new(GROUPS),
            groups,
            packing,
            seed: Seed::random(),
            writes: Writes::default(),
            moves: AtomicU64::new(0),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            by_eights: has_eight(),
        }
    }

    /// The group of a hash.
    #[inline(always)]
    fn group(&self, hash: u64) -> usize {
        scale(hash >> 32, self.groups.into())
    }

    /// The slot of a hash whose group has this turn.
    #[inline(always)]
    fn place(&self, hash: u64, turn: u8) -> usize {
        let turned = (hash & 0xffff_ffff).wrapping_mul(u64::from(turn) << TURN_SHIFT | TURN_FACTOR);
        scale(turned >> 16, self.slots.len() as u64)
    }

    /// The slot of a key.
    #[inline(always)]
    fn place_of(&self, key: u64) -> usize {
        let hash = self.seed.one(key);
        self.place(hash, self.turns[self.group(hash)].load(Ordering::Acquire))
    }

    #[inline(always)]
    fn note_hit(&self, place: usize, step: u32) {
        if let Some(stamps) = &self.stamps {
            stamps.note(place, step);
        }
    }

    /// What the slot of a key holds, and which it is, whatever is written meanwhile.
    fn find(&self, key: u64) -> Option<(u64, usize)> {
        let (needle, significant) = (self.packing.needle(key), self.packing.significant());
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            let place = self.place_of(key);
            let slot = self.slots[place].load(Ordering::Acquire);
            if slot & significant == needle {
                return Some((slot, place));
            }
            fence(Ordering::Acquire);
            if self.moves.load(Ordering::Relaxed) == moves {
                return None;
            }
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn lookup(&self, batch: &Batch<'_>) -> u64 {
        if let Some(stamps) = &self.stamps {
            stamps.see(step(batch.now));
        }
        if let Some(quiet) = self.writes.quiet() {
            let hits = self.quiet(batch);
            if self.writes.is_quiet_since(quiet) {
                return hits;
            }
        }
        self.disturbed(*batch)
    }

    /// A lookup that is only right if nothing is written meanwhile.
    #[inline(always)]
    fn quiet(&self, batch: &Batch<'_>) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.by_eights {
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_eight(batch) };
        }
        self.one_by_one(*batch)
    }

    #[inline(always)]
    fn one_by_one(&self, batch: Batch<'_>) -> u64 {
        if let Some(fetches) = batch.meanwhile {
            fetches.all();
        }
        let (packing, significant) = (self.packing, self.packing.significant());
        // SAFETY: the default has the words of a result.
        let default = unsafe { batch.default.as_ref() }.load(Ordering::Relaxed);
        let now = step(batch.now) as u32;
        let mut hits = 0;
        each(batch.active, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { batch.key(0, slot) };
            let place = self.place_of(key);
            let value = self.slots[place].load(Ordering::Relaxed);
            let hit = value & significant == packing.needle(key);
            hits |= bit & ones(hit);
            // SAFETY: only active slots, and word 0 of results always exists.
            unsafe { batch.put(0, slot, if hit { packing.head(value) } else { default }) };
            if hit {
                self.note_hit(place, now);
            }
        });
        hits
    }

    /// A lookup that is right whatever is written meanwhile.
    #[cold]
    #[inline(never)]
    fn disturbed(&self, batch: Batch<'_>) -> u64 {
        if let Some(fetches) = batch.meanwhile {
            fetches.all();
        }
        let now = step(batch.now) as u32;
        let mut hits = 0;
        each(batch.active, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            match self.find(unsafe { batch.key(0, slot) }) {
                Some((value, place)) => {
                    hits |= bit;
                    // SAFETY: only active slots, and word 0 of results always exists.
                    unsafe { batch.put(0, slot, self.packing.head(value)) };
                    self.note_hit(place, now);
                }
                // SAFETY: only active slots, and the default's length was checked.
                None => unsafe { batch.give(slot, batch.default) },
            }
        });
        hits
    }
}

impl PlacedShape {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(super) fn is_by_eights(&self) -> bool {
        self.0.by_eights
    }

    #[inline(always)]
    pub(super) fn lookup(&self, batch: &mut Batch<'_>) -> u64 {
        self.0.lookup(batch)
    }
}
