//! Tracks the known bytes of memory while a segment is lowered, to forward stores to loads and to
//! widen both.
//!
//! Packets are read sixteen bytes at a time, and no byte is read twice. Stores are recorded here
//! and emitted at the end of the block at the latest: as sixteen bytes if all of them are known.
//!
//! A *pair* is two adjacent words at a multiple of sixteen bytes, numbered from the address.
//! Relies on [`Region`] for aliasing. [`super::lower`] emits the loads and stores.

use super::address::Region;
use super::bytes::{Byte, Bytes};
use super::op::{RowArea, VectorReg};
use std::collections::BTreeMap;

/// The known contents of eight bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrackedWord {
    pub bytes: [Option<Byte>; 8],
    /// The bytes whose store is pending, a bit each.
    pub dirty: u8,
}

/// A word of which no byte is known.
const UNKNOWN: TrackedWord = TrackedWord {
    bytes: [None; 8],
    dirty: 0,
};

impl TrackedWord {
    /// The word, if all of its bytes are known.
    pub fn all_known(&self) -> Option<Bytes> {
        let mut bytes = [Byte::Zero; 8];
        for (byte, known) in bytes.iter_mut().zip(self.bytes) {
            *byte = known?;
        }
        Some(bytes)
    }
}

/// The known contents of memory that is accessed through one vector of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TrackedBase {
    pub base: VectorReg,
    pub region: Region,
    /// Word `i` begins `8 * i` bytes after the address.
    pub words: BTreeMap<i32, TrackedWord>,
}

/// The known contents of all memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MemoryState {
    pub tracked_bases: Vec<TrackedBase>,
    /// Rows whose words are in a vector. A load soon after a masked store of the same row would
    /// stall, as that store is not forwarded.
    pub rows: BTreeMap<(RowArea, i32), VectorReg>,
}

/// A store to be emitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PendingStore {
    /// The low and the high word of a pair.
    Pair(Bytes, Bytes),
    /// The lowest 1, 2, 4 or 8 bytes.
    Part(Bytes, u8),
}

/// Whether two regions may alias.
fn may_overlap(a: Region, b: Region) -> bool {
    let alias_class = |region| match region {
        Region::Packet | Region::PacketOrZeros => 0,
        Region::Scratch => 1,
        Region::ValueSetBits | Region::ArrayDescriptors | Region::RecordPointers | Region::Record => 2,
    };
    alias_class(a) == alias_class(b)
}

impl MemoryState {
    /// The known contents of memory at an address.
    pub fn tracked_base(&mut self, base: VectorReg, region: Region) -> &mut TrackedBase {
        let existing = self.tracked_bases.iter().position(|a| a.base == base);
        let index = existing.unwrap_or_else(|| {
            let words = BTreeMap::new();
            self.tracked_bases.push(TrackedBase { base, region, words });
            self.tracked_bases.len() - 1
        });
        &mut self.tracked_bases[index]
    }

    /// Other addresses with pending stores that may alias the region.
    pub fn dirty_aliases(&self, base: VectorReg, region: Region) -> Vec<VectorReg> {
        let others = self
            .tracked_bases
            .iter()
            .filter(|a| a.base != base && may_overlap(a.region, region));
        others.filter(|a| a.is_dirty()).map(|a| a.base).collect()
    }

    /// Forgets the contents of memory that a store through this address may have changed.
    pub fn invalidate_aliases(&mut self, base: VectorReg, region: Region) {
        self.tracked_bases
            .retain(|a| a.base == base || !may_overlap(a.region, region));
    }

    /// The meet with the state of another path: the bytes that are known, and the same, on both.
    pub fn meet(&mut self, other: &MemoryState) {
        self.rows.retain(|row, v| other.rows.get(row) == Some(v));
        for tracked in &mut self.tracked_bases {
            let there = other.tracked_bases.iter().find(|t| t.base == tracked.base);
            tracked.words.retain(|number, word| {
                let Some(there) = there.and_then(|a| a.words.get(number)) else {
                    return false;
                };
                debug_assert!(
                    word.dirty == 0 && there.dirty == 0,
                    "blocks end with everything written"
                );
                for (byte, there) in word.bytes.iter_mut().zip(there.bytes) {
                    if *byte != there {
                        *byte = None;
                    }
                }
                word.bytes.iter().any(Option::is_some)
            });
        }
        self.tracked_bases.retain(|a| !a.words.is_empty());
    }
}

impl TrackedBase {
    /// Whether stores are pending.
    fn is_dirty(&self) -> bool {
        self.words.values().any(|w| w.dirty != 0)
    }

    /// The word with a number.
    fn word(&self, number: i32) -> TrackedWord {
        self.words.get(&number).copied().unwrap_or(UNKNOWN)
    }

    /// The `count` bytes from an offset on, if all are known.
    pub fn known_bytes(&self, offset: i32, count: u32) -> Option<Bytes> {
        let mut bytes = [Byte::Zero; 8];
        for (byte, byte_offset) in bytes.iter_mut().zip(offset..).take(count as usize) {
            *byte = self.word(byte_offset / 8).bytes[byte_offset as usize % 8]?;
        }
        Some(bytes)
    }

    /// The numbers of the pairs to be loaded for `count` bytes from an offset on.
    pub fn missing_pairs(&self, offset: i32, count: u32) -> Vec<i32> {
        let mut pairs = Vec::new();
        for byte_offset in offset..offset + count as i32 {
            let pair = byte_offset / 16;
            if self.word(byte_offset / 8).bytes[byte_offset as usize % 8].is_none() && pairs.last() != Some(&pair) {
                pairs.push(pair);
            }
        }
        pairs
    }

    /// Records the load of a pair. Bytes that are already known take precedence, as their store may
    /// be pending.
    pub fn record_load(&mut self, pair: i32, words: [VectorReg; 2]) {
        for (number, v) in (pair * 2..).zip(words) {
            let mut word = self.word(number);
            for (i, byte) in word.bytes.iter_mut().enumerate() {
                byte.get_or_insert(Byte::OfVector(v, i as u8));
            }
            self.words.insert(number, word);
        }
    }

    /// Records a store of the lowest `count` bytes.
    pub fn record_store(&mut self, offset: i32, bytes: &Bytes, count: u32) {
        for (byte, byte_offset) in bytes.iter().zip(offset..).take(count as usize) {
            let word = self.words.entry(byte_offset / 8).or_insert(UNKNOWN);
            word.bytes[byte_offset as usize % 8] = Some(*byte);
            word.dirty |= 1 << (byte_offset % 8);
        }
    }

    /// Takes the pending stores, by byte offset.
    pub fn take_pending_stores(&mut self) -> Vec<(i32, PendingStore)> {
        let pairs: Vec<i32> = self
            .words
            .iter()
            .filter(|(_, w)| w.dirty != 0)
            .map(|(n, _)| n / 2)
            .collect();
        let mut stores = Vec::new();
        let mut previous = None;
        for pair in pairs {
            if previous.replace(pair) == Some(pair) {
                continue;
            }
            let words = [pair * 2, pair * 2 + 1].map(|n| self.word(n));
            let parts: Vec<(i32, PendingStore)> = (pair * 2..)
                .zip(&words)
                .flat_map(|(n, w)| narrow_stores(n * 8, w))
                .collect();
            match words.map(|w| w.all_known()) {
                [Some(low), Some(high)] if parts.len() > 1 => stores.push((pair * 16, PendingStore::Pair(low, high))),
                _ => stores.extend(parts),
            }
        }
        self.words.values_mut().for_each(|w| w.dirty = 0);
        stores
    }
}

/// The pending stores of a word, as few as possible.
fn narrow_stores(offset: i32, word: &TrackedWord) -> Vec<(i32, PendingStore)> {
    let mut parts = Vec::new();
    let mut first_byte = 0;
    while first_byte < 8 {
        if word.dirty >> first_byte & 1 == 0 {
            first_byte += 1;
            continue;
        }
        // The longest run of pending bytes that is a store width.
        let run = (word.dirty >> first_byte).trailing_ones() as usize;
        let count = 1 << run.ilog2();
        let mut bytes = [Byte::Zero; 8];
        for (byte, known) in bytes.iter_mut().zip(&word.bytes[first_byte..first_byte + count]) {
            *byte = known.unwrap_or(Byte::Zero);
        }
        parts.push((offset + first_byte as i32, PendingStore::Part(bytes, count as u8)));
        first_byte += count;
    }
    match word.all_known() {
        Some(bytes) if parts.len() > 1 => vec![(offset, PendingStore::Part(bytes, 8))],
        _ => parts,
    }
}

#[cfg(test)]
mod tests {
    use super::super::bytes::of_vector;
    use super::*;

    const BASE: VectorReg = VectorReg(0);

    fn tracked_base() -> TrackedBase {
        TrackedBase {
            base: BASE,
            region: Region::Packet,
            words: BTreeMap::new(),
        }
    }

    #[test]
    fn known_bytes_are_not_loaded_again() {
        let mut tracked = tracked_base();
        assert_eq!(tracked.missing_pairs(14, 8), [0, 1]);
        assert_eq!(tracked.missing_pairs(16, 8), [1]);
        tracked.record_load(0, [VectorReg(1), VectorReg(2)]);
        assert_eq!(tracked.missing_pairs(14, 8), [1]);
        assert_eq!(tracked.missing_pairs(8, 8), [0; 0]);
        assert_eq!(
            tracked.known_bytes(12, 2),
            Some(super::super::bytes::shift(&of_vector(VectorReg(2), 6), -4))
        );
        assert_eq!(tracked.known_bytes(12, 5), None);
    }

    #[test]
    fn stored_bytes_are_forwarded_to_loads() {
        let mut tracked = tracked_base();
        tracked.record_store(6, &of_vector(VectorReg(3), 8), 4);
        assert_eq!(tracked.known_bytes(6, 4), Some(of_vector(VectorReg(3), 4)));
        tracked.record_load(0, [VectorReg(1), VectorReg(2)]);
        let read = tracked.known_bytes(5, 2).expect("known");
        assert_eq!(
            read[..2],
            [Byte::OfVector(VectorReg(1), 5), Byte::OfVector(VectorReg(3), 0)]
        );
    }

    #[test]
    fn stores_are_widened_where_all_bytes_are_known() {
        let mut one = tracked_base();
        one.record_store(6, &of_vector(VectorReg(3), 8), 4);
        // No other bytes are known.
        let two = one.take_pending_stores();
        assert_eq!(two.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [6, 8]);
        assert!(matches!(two[0].1, PendingStore::Part(_, 2)) && matches!(two[1].1, PendingStore::Part(_, 2)));
        assert_eq!(one.take_pending_stores(), []);

        let mut all = tracked_base();
        all.record_load(0, [VectorReg(1), VectorReg(2)]);
        all.record_store(6, &of_vector(VectorReg(3), 8), 4);
        let [(0, PendingStore::Pair(low, high))] = &all.take_pending_stores()[..] else {
            panic!("one pair")
        };
        assert_eq!(
            low[5..],
            [
                Byte::OfVector(VectorReg(1), 5),
                Byte::OfVector(VectorReg(3), 0),
                Byte::OfVector(VectorReg(3), 1)
            ]
        );
        assert_eq!(
            high[..3],
            [
                Byte::OfVector(VectorReg(3), 2),
                Byte::OfVector(VectorReg(3), 3),
                Byte::OfVector(VectorReg(2), 2)
            ]
        );
        all.record_store(3, &of_vector(VectorReg(4), 8), 1);
        assert!(matches!(all.take_pending_stores()[..], [(3, PendingStore::Part(_, 1))]));
    }

    #[test]
    fn paths_that_join_keep_what_both_know() {
        let mut memory = MemoryState::default();
        memory
            .tracked_base(BASE, Region::Packet)
            .record_load(0, [VectorReg(1), VectorReg(2)]);
        let before = memory.clone();
        let mut other = memory.clone();
        other
            .tracked_base(BASE, Region::Packet)
            .record_store(0, &of_vector(VectorReg(3), 8), 2);
        other.tracked_base(BASE, Region::Packet).take_pending_stores();
        memory.meet(&other);
        let tracked = memory.tracked_base(BASE, Region::Packet);
        assert_eq!(tracked.missing_pairs(0, 4), [0]);
        assert_eq!(tracked.missing_pairs(2, 14), [0; 0]);
        let mut nothing = before;
        nothing.meet(&MemoryState::default());
        assert_eq!(nothing, MemoryState::default());
    }

    #[test]
    fn other_addresses_may_alias() {
        let mut memory = MemoryState::default();
        memory
            .tracked_base(VectorReg(5), Region::Packet)
            .record_store(0, &of_vector(VectorReg(3), 8), 2);
        memory
            .tracked_base(VectorReg(6), Region::Scratch)
            .record_store(0, &of_vector(VectorReg(3), 8), 2);
        assert_eq!(memory.dirty_aliases(BASE, Region::PacketOrZeros), [VectorReg(5)]);
        assert_eq!(memory.dirty_aliases(VectorReg(5), Region::Packet), []);
        memory.invalidate_aliases(BASE, Region::Packet);
        assert_eq!(memory.tracked_bases.len(), 1);
    }
}
