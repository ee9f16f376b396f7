//! A hash table of pointers to records. A bucket is a cache line of seven one-byte tags and seven
//! pointers.
//!
//! A record is in its first bucket, or in its second if the first is full. The first then counts
//! it, so that most misses end there. At most 60 % of the slots are used: 15 to 30 bytes per
//! record.
#![allow(unsafe_code)]

use crate::fast::cuckoo_path::{self, SlotIndex};
use crate::fast::hash::{first, second};
use crate::fast::mem::prefetch;
use crate::fast::zeroed::{Zeroable, Zeroed};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

/// Slots of a bucket.
const SLOTS_PER_BUCKET: usize = 7;
/// The highest bit of each tag, for SWAR comparisons of all seven.
const HIGH_BITS: u64 = 0x0080_8080_8080_8080;
/// The lowest bit of each tag.
const LOW_BITS: u64 = 0x0001_0101_0101_0101;
/// The bit at which the uppermost byte of `tags` begins. It counts records that are in their second
/// bucket; a saturated count stays.
const OVERFLOW_SHIFT: u32 = 56;

/// A cache line of seven slots, each a tag and a pointer.
#[derive(Debug)]
#[repr(C, align(64))]
struct Bucket {
    /// A byte per slot, 0 if it is free.
    tags: AtomicU64,
    records: [AtomicPtr<AtomicU64>; SLOTS_PER_BUCKET],
}

// SAFETY: only atomics: `Sync`, and none has a drop; the null pointer is all zeros.
unsafe impl Zeroable for Bucket {
    #[cfg(loom)]
    fn zero() -> Self {
        Bucket {
            tags: AtomicU64::default(),
            records: Default::default(),
        }
    }
}

/// The table: a cuckoo index of records, which it does not own.
#[derive(Debug)]
pub(super) struct CuckooIndex {
    buckets: Zeroed<Bucket>,
    mask: usize,
    /// Counts records that left a bucket for the other. A reader that missed a key retries if it
    /// changed.
    moves: AtomicU64,
}

/// The table is too full.
#[derive(Debug)]
pub(super) struct Full;

/// The tag of a hash: its upper seven bits, and the upper bit of the byte, which is set.
fn tag(hash: u64) -> u64 {
    hash >> 57 | 0x80
}

/// The high bits of the bytes that equal the tag: a zero-byte test by SWAR (H. Warren, "Hacker's
/// Delight", section 6-1).
#[inline(always)]
fn matches(tags: u64, tag: u64) -> u64 {
    let differ = (tags & (LOW_BITS * 0xff)) ^ (LOW_BITS * tag);
    !(((differ & !HIGH_BITS) + (LOW_BITS * 0x7f)) | differ) & HIGH_BITS
}

/// The result of probing the first bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// The record to compare, or null.
    pub(super) record: *mut AtomicU64,
    /// Whether there is certainly no record with the hash.
    pub(super) is_absent: bool,
}

/// The fields that probes of first buckets for many hashes need, to be held in registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstBucketProbe<'a> {
    buckets: &'a [Bucket],
    mask: usize,
}

impl FirstBucketProbe<'_> {
    /// Whether the first bucket alone proves that there is no such record.
    #[inline(always)]
    pub(super) fn is_absent(self, hash: u64) -> bool {
        // SAFETY: there are `mask + 1` buckets.
        let bucket = unsafe { self.buckets.get_unchecked(first(hash, self.mask)) };
        let tags = bucket.tags.load(Ordering::Acquire);
        (matches(tags, tag(hash)) | tags >> OVERFLOW_SHIFT) == 0
    }

    /// The first record of the first bucket with the hash's tag.
    #[inline(always)]
    pub(super) fn first_candidate(self, hash: u64) -> Candidate {
        // SAFETY: there are `mask + 1` buckets.
        let bucket = unsafe { self.buckets.get_unchecked(first(hash, self.mask)) };
        let tags = bucket.tags.load(Ordering::Acquire);
        let found = matches(tags, tag(hash));
        let position = (found | 1 << 55).trailing_zeros() as usize / 8;
        let record = bucket.records[position.min(SLOTS_PER_BUCKET - 1)].load(Ordering::Acquire);
        Candidate {
            record: std::hint::select_unpredictable(found == 0, null_mut(), record),
            is_absent: (found | tags >> OVERFLOW_SHIFT) == 0,
        }
    }
}

impl CuckooIndex {
    pub(super) fn new(records: usize) -> Self {
        let buckets = (records * 5 / (3 * SLOTS_PER_BUCKET) + 1).next_power_of_two().max(2);
        CuckooIndex {
            buckets: Zeroed::new(buckets),
            mask: buckets - 1,
            moves: AtomicU64::new(0),
        }
    }

    /// The number of records up to which it is filled.
    pub(super) fn capacity(&self) -> usize {
        (self.mask + 1) * SLOTS_PER_BUCKET * 3 / 5
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.bytes()
    }

    /// A bucket; the number is taken modulo the count.
    #[inline(always)]
    fn bucket(&self, number: usize) -> &Bucket {
        // SAFETY: there are `mask + 1` buckets.
        unsafe { self.buckets.get_unchecked(number & self.mask) }
    }

    /// Prefetches the first bucket of a hash.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(self.bucket(first(hash, self.mask)));
    }

    /// A [`FirstBucketProbe`] for this table.
    #[inline(always)]
    pub(super) fn first_bucket_probe(&self) -> FirstBucketProbe<'_> {
        FirstBucketProbe {
            buckets: self.buckets.as_slice(),
            mask: self.mask,
        }
    }

    /// The record with this hash for which `equal` is true.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, equal: impl Fn(NonNull<AtomicU64>) -> bool) -> Option<NonNull<AtomicU64>> {
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            let (a, b) = (first(hash, self.mask), second(hash, self.mask));
            let (found, overflow) = self.find_in(a, hash, &equal);
            if found.is_some() || overflow == 0 {
                return found;
            }
            if let (Some(found), _) = self.find_in(b, hash, &equal) {
                return Some(found);
            }
            fence(Ordering::Acquire);
            if self.moves.load(Ordering::Relaxed) == moves {
                return None;
            }
        }
    }

    /// Searches one bucket. Returns the record, if found. Else the second value is the bucket's
    /// overflow count.
    #[inline(always)]
    fn find_in(
        &self,
        number: usize,
        hash: u64,
        equal: &impl Fn(NonNull<AtomicU64>) -> bool,
    ) -> (Option<NonNull<AtomicU64>>, u64) {
        let bucket = self.bucket(number);
        let tags = bucket.tags.load(Ordering::Acquire);
        let mut found = matches(tags, tag(hash));
        while found != 0 {
            let position = found.trailing_zeros() as usize / 8;
            let record = NonNull::new(bucket.records[position].load(Ordering::Acquire));
            if let Some(record) = record.filter(|r| equal(*r)) {
                return (Some(record), 1);
            }
            found &= found - 1;
        }
        (None, tags >> OVERFLOW_SHIFT)
    }

    // ------------------------------------------------------------------------------------- writer

    /// The record in a slot, unless the slot is free.
    fn occupant(&self, (bucket, position): SlotIndex) -> Option<NonNull<AtomicU64>> {
        let bucket = self.bucket(bucket);
        let used = bucket.tags.load(Ordering::Relaxed) >> (8 * position) & 0xff != 0;
        NonNull::new(bucket.records[position].load(Ordering::Relaxed)).filter(|_| used)
    }

    /// Stores a record in a free slot: the pointer first, then the tag, which publishes it.
    fn fill(&self, (bucket, position): SlotIndex, hash: u64, record: NonNull<AtomicU64>) {
        if bucket != first(hash, self.mask) {
            self.count(first(hash, self.mask), true);
        }
        let bucket = self.bucket(bucket);
        bucket.records[position].store(record.as_ptr(), Ordering::Release);
        let tags = bucket.tags.load(Ordering::Relaxed) & !(0xff << (8 * position));
        bucket.tags.store(tags | tag(hash) << (8 * position), Ordering::Release);
    }

    /// Frees a slot.
    fn clear(&self, (bucket, position): SlotIndex, hash: u64) {
        let tags = &self.bucket(bucket).tags;
        tags.store(
            tags.load(Ordering::Relaxed) & !(0xff << (8 * position)),
            Ordering::Release,
        );
        if bucket != first(hash, self.mask) {
            self.count(first(hash, self.mask), false);
        }
    }

    /// Counts a record of this first bucket that is in its second one.
    fn count(&self, bucket: usize, more: bool) {
        let tags = &self.bucket(bucket).tags;
        let before = tags.load(Ordering::Relaxed);
        let after = match (before >> OVERFLOW_SHIFT, more) {
            (0xff, _) | (0, false) => before,
            (_, true) => before + (1 << OVERFLOW_SHIFT),
            (_, false) => before - (1 << OVERFLOW_SHIFT),
        };
        tags.store(after, Ordering::Release);
    }

    /// The home buckets of a hash.
    fn homes(&self, hash: u64) -> [usize; 2] {
        [first(hash, self.mask), second(hash, self.mask)]
    }

    /// All slots of a hash's home buckets.
    fn slot_indices(&self, hash: u64) -> impl Iterator<Item = SlotIndex> {
        self.homes(hash)
            .into_iter()
            .flat_map(|n| (0..SLOTS_PER_BUCKET).map(move |p| (n, p)))
    }

    /// Adds a record whose key is not there. `hash_of` gives the hash of those that are.
    pub(super) fn add(
        &self,
        hash: u64,
        record: NonNull<AtomicU64>,
        hash_of: impl Fn(NonNull<AtomicU64>) -> u64,
    ) -> Result<(), Full> {
        let homes = self.homes(hash);
        let is_free = |slot_index| self.occupant(slot_index).is_none();
        if let Some(slot_index) = cuckoo_path::free(homes, SLOTS_PER_BUCKET, is_free) {
            self.fill(slot_index, hash, record);
            return Ok(());
        }
        let other = |slot_index: SlotIndex| {
            let homes = self
                .occupant(slot_index)
                .map_or([slot_index.0; 2], |r| self.homes(hash_of(r)));
            homes[usize::from(homes[0] == slot_index.0)]
        };
        let path = cuckoo_path::path(homes, SLOTS_PER_BUCKET, is_free, other).ok_or(Full)?;
        for step in path.windows(2) {
            if let Some(occupant) = self.occupant(step[1]) {
                let hash = hash_of(occupant);
                self.fill(step[0], hash, occupant);
                self.moves.fetch_add(1, Ordering::Release);
                self.clear(step[1], hash);
            }
        }
        if let Some(slot_index) = path.last() {
            self.fill(*slot_index, hash, record);
        }
        Ok(())
    }

    /// The slot of a record with this hash.
    fn slot_of_record(&self, hash: u64, record: NonNull<AtomicU64>) -> Option<SlotIndex> {
        self.slot_indices(hash).find(|p| self.occupant(*p) == Some(record))
    }

    /// Replaces a record by another with the same hash.
    pub(super) fn replace(&self, hash: u64, old: NonNull<AtomicU64>, new: NonNull<AtomicU64>) {
        if let Some((bucket, position)) = self.slot_of_record(hash, old) {
            self.bucket(bucket).records[position].store(new.as_ptr(), Ordering::Release);
        }
    }

    /// Removes a record with this hash, if it is there.
    pub(super) fn remove(&self, hash: u64, record: NonNull<AtomicU64>) {
        if let Some(slot_index) = self.slot_of_record(hash, record) {
            self.clear(slot_index, hash);
        }
    }

    /// All records.
    pub(super) fn records(&self) -> impl Iterator<Item = NonNull<AtomicU64>> {
        let slot_indices = (0..=self.mask).flat_map(|b| (0..SLOTS_PER_BUCKET).map(move |p| (b, p)));
        slot_indices.filter_map(|p| self.occupant(p))
    }

    /// Adds a record whose key is not there, where there are `count_after` with it; to a larger
    /// table if this one has no room. True: the table was replaced, and readers need a new view.
    pub(super) fn insert(
        this: &mut Arc<Self>,
        count_after: usize,
        hash: u64,
        record: NonNull<AtomicU64>,
        hash_of: impl Fn(NonNull<AtomicU64>) -> u64,
    ) -> bool {
        if count_after <= this.capacity() && this.add(hash, record, &hash_of).is_ok() {
            return false;
        }
        loop {
            *this = Arc::new(this.grown(&hash_of));
            if this.add(hash, record, &hash_of).is_ok() {
                return true;
            }
        }
    }

    /// A table of at least twice the size with the same records.
    fn grown(&self, hash_of: impl Fn(NonNull<AtomicU64>) -> u64) -> Self {
        let mut records = self.capacity() * 2;
        'larger: loop {
            let larger = CuckooIndex::new(records);
            for record in self.records() {
                if larger.add(hash_of(record), record, &hash_of).is_err() {
                    records *= 2;
                    continue 'larger;
                }
            }
            return larger;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_match_exactly() {
        for tags in [0, 0x0080_8182_80ff_8081, 0xff80_8080_8080_8080, 0x0181_0000_0000_0080] {
            for tag in 0x80..=0xff_u64 {
                let expected = (0..7)
                    .filter(|i| tags >> (8 * i) & 0xff == tag)
                    .fold(0, |m, i| m | 0x80 << (8 * i));
                assert_eq!(matches(tags, tag), expected, "{tags:x} {tag:x}");
            }
        }
    }
}
