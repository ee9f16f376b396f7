//! The choice of a table's structure ([`Plan`]), and one interface to all structures:
//! [`StructureView`] for readers, [`Structure`] for the writer.
//!
//! The vector lookups are compiled three times here (portable, AVX2, AVX-512), and the processor's
//! features select one. A new structure needs a variant in each of the three enums.
#![allow(unsafe_code)]

use crate::fast::cuckoo_records::{CuckooRecords, CuckooRecordsView};
use crate::fast::direct_index::{self, DirectIndex, DirectIndexView};
use crate::fast::displacement::{self, Displacement, DisplacementView};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::inline::Avx2;
use crate::fast::inline::{Compare, FourSlots, Inline, InlineView, Portable, TwoSlots};
use crate::fast::layout::{KeyLayout, ResultLayout};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::lpm::MultiwayRanges;
use crate::fast::lpm::{BinarySearchRanges, Dir24_8, Lpm, LpmView};
use crate::fast::mem::{Arena, RecordLayout};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::packed::Avx512;
use crate::fast::packed::{Packed, PackedView, Search, WithStamps, WithoutStamps};
use crate::fast::packing::Packing;
use crate::fast::pending::PendingLookup;
use crate::fast::rule::{Rule, RuleEncoder};
use crate::fast::scan::{Scan, ScanView};
use crate::fast::tuple_space::{self, TupleSpace, TupleSpaceView};
use crate::fast::vector_lookup::{PrefetchQueue, VectorLookup, is_contiguous};
use crate::spec::TableSpec;
use std::sync::Arc;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::LazyLock;
use weir_ir::MatchKind;

/// Most rules that are scanned one after the other.
const MAX_SCANNED: usize = 16;

/// The structures that a table can have, which its keys and results decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// No keys: always a miss.
    Nothing,
    /// Exact keys of this many bits in all, which index an array.
    DirectIndex(u32),
    /// Exact keys of one word, results of one: both in buckets of four slots.
    InlineOneWord,
    /// Exact keys and results in one word together, without handles.
    Packed(Packing),
    /// Exact keys of one word, results of two: both in buckets of two slots.
    InlineTwoWords,
    /// Other exact keys: a cuckoo hash table of pointers to records.
    CuckooRecords,
    /// One LPM key of `width` bits, 1 to 32.
    Lpm {
        width: u32,
        /// The program declares [`PAGED_MIN`](crate::fast::lpm::PAGED_MIN) entries or more: records
        /// may lie in pages.
        paged: bool,
    },
    /// Keys with masks or ranges, wider LPM keys, and LPM beside other keys.
    General,
}

impl Plan {
    pub(super) fn new(spec: &TableSpec, key_words: usize, result_words: usize) -> Self {
        let keys: Vec<_> = spec.match_keys().collect();
        let bits = keys.iter().fold(0_u32, |bits, key| bits.saturating_add(key.width));
        if spec.keys.is_empty() {
            Plan::Nothing
        } else if keys.iter().all(|k| k.kind == MatchKind::Exact) {
            match (key_words, result_words) {
                _ if bits <= direct_index::MAX_BITS => Plan::DirectIndex(bits),
                (1, 1) => Plan::InlineOneWord,
                (1, 2) => Plan::InlineTwoWords,
                (1, _) if bits <= direct_index::MAX_BITS_WITH_RECORDS => Plan::DirectIndex(bits),
                _ => Plan::CuckooRecords,
            }
        } else {
            match keys.as_slice() {
                [key] if key.kind == MatchKind::Lpm && (1..=32).contains(&key.width) => Plan::Lpm {
                    width: key.width,
                    paged: spec.size >= crate::fast::lpm::PAGED_MIN,
                },
                _ => Plan::General,
            }
        }
    }

    /// The plan for a table that need not give handles.
    pub(super) fn without_handles(spec: &TableSpec, keys: &KeyLayout, results: &ResultLayout) -> Self {
        match Self::new(spec, keys.words, results.words) {
            Plan::InlineOneWord => Packing::new(spec, results).map_or(Plan::InlineOneWord, Plan::Packed),
            plan => plan,
        }
    }

    /// The layout of records.
    pub(super) fn record(self, encoder: &RuleEncoder, result_words: usize, has_stamps: bool) -> RecordLayout {
        match self {
            Plan::Nothing | Plan::InlineOneWord | Plan::Packed(_) | Plan::InlineTwoWords | Plan::Lpm { .. } => {
                RecordLayout::new(result_words, has_stamps, 0, 0)
            }
            Plan::DirectIndex(_) => RecordLayout::new(result_words, has_stamps, 0, 1),
            Plan::CuckooRecords => RecordLayout::new(result_words, has_stamps, encoder.words, 1),
            Plan::General => RecordLayout::new(
                result_words,
                has_stamps,
                encoder.words,
                tuple_space::RANK_AND_NEXT_WORDS + encoder.bound_words(),
            ),
        }
    }

    /// An empty structure for about `expected` entries.
    pub(super) fn structure(self, encoder: &RuleEncoder, arena: &mut Arena, expected: usize) -> Structure {
        let stamps = arena.layout().stamp_word.is_some();
        match self {
            Plan::Nothing => Structure::Nothing,
            Plan::DirectIndex(bits) => Structure::DirectIndex(DirectIndex::new(bits, stamps)),
            Plan::InlineOneWord => Structure::InlineOneWord(Inline::new(stamps, expected)),
            Plan::Packed(packing) if expected <= displacement::MAX_ENTRIES => {
                Structure::Displacement(Displacement::new(packing, stamps))
            }
            Plan::Packed(packing) if stamps => Structure::PackedWithStamps(Packed::new(packing, expected)),
            Plan::Packed(packing) => Structure::Packed(Packed::new(packing, expected)),
            Plan::InlineTwoWords => Structure::InlineTwoWords(Inline::new(stamps, expected)),
            Plan::CuckooRecords => Structure::CuckooRecords(CuckooRecords::new(stamps, expected)),
            Plan::Lpm { width, paged } => Structure::Lpm(Lpm::new(width, paged, expected, arena)),
            Plan::General if expected > MAX_SCANNED => Structure::TupleSpace(TupleSpace::new(encoder.clone(), stamps)),
            Plan::General => Structure::Scan(Scan::new(encoder.clone())),
        }
    }
}

/// Readers' view of a structure.
#[derive(Debug)]
pub(super) enum StructureView {
    Nothing,
    DirectIndex(DirectIndexView),
    InlineOneWord(InlineView<FourSlots>),
    Displacement(DisplacementView),
    Packed(PackedView<WithoutStamps>),
    PackedWithStamps(PackedView<WithStamps>),
    InlineTwoWords(InlineView<TwoSlots>),
    CuckooRecords(CuckooRecordsView),
    BinarySearchRanges(BinarySearchRanges),
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    MultiwayRanges(MultiwayRanges),
    Dir24_8(Arc<Dir24_8>),
    Scan(ScanView),
    TupleSpace(TupleSpaceView),
}

impl StructureView {
    /// Looks the vector up; returns the mask of hits.
    #[inline]
    pub(super) fn lookup(&self, vector: &mut VectorLookup<'_>) -> u64 {
        // These have functions for specific processors inside, and need none of the versions below.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        match self {
            StructureView::Displacement(view) if view.uses_simd() => return view.lookup(vector),
            StructureView::MultiwayRanges(view) => {
                vector.prefetch_queued();
                return view.lookup(vector);
            }
            StructureView::Dir24_8(view) if view.uses_simd() => {
                vector.prefetch_queued();
                return view.lookup(vector);
            }
            _ => {}
        }
        let prefetches_queue = match self {
            StructureView::Displacement(_) => true,
            StructureView::Packed(view) => view.prefetches_queue(),
            StructureView::PackedWithStamps(view) => view.prefetches_queue(),
            _ => false,
        };
        if !prefetches_queue {
            vector.prefetch_queued();
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if has_avx2() {
            let hashes_all_keys = matches!(
                self,
                StructureView::InlineOneWord(_)
                    | StructureView::Packed(_)
                    | StructureView::PackedWithStamps(_)
                    | StructureView::InlineTwoWords(_)
                    | StructureView::TupleSpace(_)
            );
            if hashes_all_keys && has_avx512_dq() {
                // SAFETY: the processor has these features.
                return unsafe { self.lookup_avx512(vector) };
            }
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_avx2(vector) };
        }
        self.dispatch_lookup::<Portable>(vector)
    }

    /// [`TableView::begin`](super::TableView::begin), if nothing is pending.
    #[inline]
    #[cfg_attr(
        not(all(target_arch = "x86_64", not(miri))),
        expect(unused_variables, reason = "no structure looks eight keys up at a time")
    )]
    pub(super) fn begin<'a>(&'a self, vector: &VectorLookup<'_>, pending: &mut PendingLookup<'a>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let StructureView::Dir24_8(dir24) = self {
            dir24.begin(vector, pending);
        }
    }

    /// [`TableView::finish`](super::TableView::finish).
    #[inline]
    #[cfg_attr(
        not(all(target_arch = "x86_64", not(miri))),
        expect(unused_variables, reason = "no structure looks eight keys up at a time")
    )]
    pub(super) fn finish(&self, vector: &VectorLookup<'_>, pending: &mut PendingLookup<'_>) -> Option<u64> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let StructureView::Dir24_8(dir24) = self {
            return dir24.finish(vector, pending);
        }
        None
    }

    /// For structures that hash all keys at once with AVX-512, which multiplies 64-bit words.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt")]
    fn lookup_avx512(&self, vector: &mut VectorLookup<'_>) -> u64 {
        match self {
            StructureView::InlineOneWord(view) => view.lookup::<Avx2>(vector),
            StructureView::Packed(view) => view.lookup::<Avx512>(vector),
            StructureView::PackedWithStamps(view) => view.lookup::<Avx512>(vector),
            StructureView::InlineTwoWords(view) => view.lookup::<Avx2>(vector),
            StructureView::TupleSpace(view) => view.lookup(vector),
            other => other.lookup(vector),
        }
    }

    /// The same with AVX2 and the bit-manipulation instructions.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn lookup_avx2(&self, vector: &mut VectorLookup<'_>) -> u64 {
        self.dispatch_lookup::<Avx2>(vector)
    }

    /// Looks the vector up with the comparisons `C`.
    #[inline(always)]
    fn dispatch_lookup<C: Compare + Search>(&self, vector: &mut VectorLookup<'_>) -> u64 {
        match self {
            StructureView::Nothing => {
                vector.miss_all();
                0
            }
            StructureView::DirectIndex(view) => view.lookup(vector),
            StructureView::InlineOneWord(view) => view.lookup::<C>(vector),
            StructureView::Displacement(view) => view.lookup(vector),
            StructureView::Packed(view) => view.lookup::<C>(vector),
            StructureView::PackedWithStamps(view) => view.lookup::<C>(vector),
            StructureView::InlineTwoWords(view) => view.lookup::<C>(vector),
            StructureView::CuckooRecords(view) => view.lookup(vector),
            StructureView::BinarySearchRanges(view) => view.lookup(vector),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            StructureView::MultiwayRanges(view) => view.lookup(vector),
            StructureView::Dir24_8(view) => view.lookup(vector),
            StructureView::Scan(view) => view.lookup(vector),
            StructureView::TupleSpace(view) => view.lookup(vector),
        }
    }

    /// Prefetches the lines that a lookup of these one-word keys will read, unless they are cached
    /// anyway; or queues them for the next lookup.
    #[inline]
    pub(super) fn prefetch(&self, active: u64, keys: &[u64], queue: &mut PrefetchQueue) {
        let pays = match self {
            StructureView::Dir24_8(view) => view.needs_prefetch(),
            StructureView::InlineOneWord(view) => view.needs_prefetch(),
            StructureView::Packed(view) => view.needs_prefetch(),
            StructureView::PackedWithStamps(view) => view.needs_prefetch(),
            StructureView::InlineTwoWords(view) => view.needs_prefetch(),
            _ => false,
        };
        if !pays {
            return;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if has_avx512_dq() {
            // SAFETY: the processor has these features.
            return unsafe { self.prefetch_avx512(active, keys, queue) };
        }
        self.dispatch_prefetch(active, keys, queue);
    }

    /// [`StructureView::dispatch_prefetch`], compiled for AVX-512.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt")]
    fn prefetch_avx512(&self, active: u64, keys: &[u64], queue: &mut PrefetchQueue) {
        self.dispatch_prefetch(active, keys, queue);
    }

    /// Prefetches or queues the lines for these keys.
    #[inline(always)]
    fn dispatch_prefetch(&self, active: u64, keys: &[u64], queue: &mut PrefetchQueue) {
        if let StructureView::Dir24_8(_) = self {
            queue.prefetch_all();
        }
        match (self, is_contiguous(active)) {
            (StructureView::Dir24_8(view), false) => view.queue_slots::<false>(active, keys, queue),
            (StructureView::Dir24_8(view), true) => view.queue_slots::<true>(active, keys, queue),
            (StructureView::InlineOneWord(view), false) => view.prefetch::<false>(active, keys),
            (StructureView::InlineOneWord(view), true) => view.prefetch::<true>(active, keys),
            (StructureView::Packed(view), false) => view.prefetch::<false>(active, keys),
            (StructureView::PackedWithStamps(view), false) => view.prefetch::<false>(active, keys),
            (StructureView::Packed(view), true) => view.prefetch::<true>(active, keys),
            (StructureView::PackedWithStamps(view), true) => view.prefetch::<true>(active, keys),
            (StructureView::InlineTwoWords(view), false) => view.prefetch::<false>(active, keys),
            (StructureView::InlineTwoWords(view), true) => view.prefetch::<true>(active, keys),
            _ => {}
        }
    }
}

/// Whether the processor has AVX2 and the bit-manipulation instructions.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn has_avx2() -> bool {
    // Cached in one flag: checks feature by feature would cost time for every vector.
    static HAS: LazyLock<bool> = LazyLock::new(|| {
        use std::arch::is_x86_feature_detected as has;
        has!("bmi2") && has!("bmi1") && has!("lzcnt") && has!("avx2")
    });
    *HAS
}

/// Whether the processor has AVX-512 (F, DQ, VL) in addition to the features of [`has_avx2`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn has_avx512_dq() -> bool {
    static HAS: LazyLock<bool> = LazyLock::new(|| {
        use std::arch::is_x86_feature_detected as has;
        has_avx2() && has!("avx512f") && has!("avx512dq") && has!("avx512vl")
    });
    *HAS
}

/// The writer's side of a structure.
#[derive(Debug)]
pub(super) enum Structure {
    Nothing,
    DirectIndex(DirectIndex),
    InlineOneWord(Inline<FourSlots>),
    Displacement(Displacement),
    Packed(Packed<WithoutStamps>),
    PackedWithStamps(Packed<WithStamps>),
    InlineTwoWords(Inline<TwoSlots>),
    CuckooRecords(CuckooRecords),
    Lpm(Lpm),
    Scan(Scan),
    TupleSpace(TupleSpace),
}

impl Structure {
    /// Readers see nothing of the changes that follow until [`Structure::view`].
    pub(super) fn defer(&mut self) {
        match self {
            Structure::Lpm(lpm) => lpm.defer(),
            Structure::Displacement(displacement) => displacement.defer(),
            _ => {}
        }
    }

    /// Whether readers may continue with the old view while more is changed.
    pub(super) fn can_postpone_view(&self) -> bool {
        match self {
            Structure::Lpm(lpm) => lpm.is_copy_on_write(),
            _ => false,
        }
    }

    /// Inserts a rule, or replaces the action of the same entry. True: readers need a new view.
    pub(super) fn insert_rule(
        &mut self,
        arena: &mut Arena,
        encoder: &RuleEncoder,
        rule: &Rule,
        result: &[u64],
        stamp: u64,
    ) -> bool {
        match self {
            Structure::Nothing => false,
            Structure::DirectIndex(direct) => {
                direct.insert_rule(arena, rule, result, stamp);
                false
            }
            Structure::InlineOneWord(inline) => inline.insert_rule(rule, result, stamp),
            Structure::Displacement(displacement) => {
                if displacement.len() < displacement::MAX_ENTRIES
                    || displacement.contains(rule)
                    || Displacement::is_left_out(result)
                {
                    return displacement.insert_rule(rule, result, stamp);
                }
                *self = if arena.layout().stamp_word.is_some() {
                    Structure::PackedWithStamps(Packed::with_entries(displacement.packing(), displacement.entries()))
                } else {
                    Structure::Packed(Packed::with_entries(displacement.packing(), displacement.entries()))
                };
                self.insert_rule(arena, encoder, rule, result, stamp);
                true
            }
            Structure::Packed(packed) => packed.insert_rule(rule, result, stamp),
            Structure::PackedWithStamps(packed) => packed.insert_rule(rule, result, stamp),
            Structure::InlineTwoWords(inline) => inline.insert_rule(rule, result, stamp),
            Structure::CuckooRecords(records) => records.insert_rule(arena, rule, result, stamp),
            Structure::Lpm(lpm) => lpm.insert_rule(arena, rule, result, stamp),
            Structure::Scan(scan) => {
                let stamp = scan.find(rule.handle).map_or(stamp, |r| arena.stamp(r).max(stamp));
                let Some(rec) = tuple_space::record(arena, rule, result, stamp) else {
                    return false;
                };
                scan.insert_rule(arena, rule, rec);
                if scan.len() > MAX_SCANNED {
                    let mut tuple_space = TupleSpace::new(encoder.clone(), arena.layout().stamp_word.is_some());
                    for (_, rule, rec) in scan.drain() {
                        tuple_space.insert_rule(arena, &rule, rec);
                    }
                    *self = Structure::TupleSpace(tuple_space);
                }
                true
            }
            Structure::TupleSpace(tuple_space) => {
                let stamp = match tuple_space.find(arena, rule) {
                    Some(rec) => arena.stamp(rec).max(stamp),
                    None => stamp,
                };
                tuple_space::record(arena, rule, result, stamp)
                    .is_some_and(|rec| tuple_space.insert_rule(arena, rule, rec))
            }
        }
    }

    /// Removes a rule. True: readers need a new view.
    pub(super) fn remove_rule(&mut self, arena: &mut Arena, rule: &Rule) -> bool {
        match self {
            Structure::Nothing => false,
            Structure::DirectIndex(direct) => {
                direct.remove_rule(arena, rule);
                false
            }
            Structure::InlineOneWord(inline) => inline.remove_rule(rule),
            Structure::Displacement(displacement) => displacement.remove_rule(rule),
            Structure::Packed(packed) => {
                packed.remove_rule(rule);
                false
            }
            Structure::PackedWithStamps(packed) => {
                packed.remove_rule(rule);
                false
            }
            Structure::InlineTwoWords(inline) => inline.remove_rule(rule),
            Structure::CuckooRecords(records) => {
                records.remove_rule(arena, rule);
                false
            }
            Structure::Lpm(lpm) => lpm.remove_rule(arena, rule),
            Structure::Scan(scan) => scan.remove_rule(arena, rule),
            Structure::TupleSpace(tuple_space) => tuple_space.remove_rule(arena, rule),
        }
    }

    /// The view that readers use from now on.
    pub(super) fn view(&mut self, arena: &mut Arena) -> StructureView {
        match self {
            Structure::Nothing => StructureView::Nothing,
            Structure::DirectIndex(direct) => StructureView::DirectIndex(direct.view(arena)),
            Structure::InlineOneWord(inline) => StructureView::InlineOneWord(inline.view()),
            Structure::Displacement(displacement) => StructureView::Displacement(displacement.view()),
            Structure::Packed(packed) => StructureView::Packed(packed.view()),
            Structure::PackedWithStamps(packed) => StructureView::PackedWithStamps(packed.view()),
            Structure::InlineTwoWords(inline) => StructureView::InlineTwoWords(inline.view()),
            Structure::CuckooRecords(exact) => StructureView::CuckooRecords(exact.view(arena)),
            Structure::Lpm(lpm) => match lpm.view(arena) {
                LpmView::BinarySearchRanges(view) => StructureView::BinarySearchRanges(view),
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                LpmView::MultiwayRanges(view) => StructureView::MultiwayRanges(view),
                LpmView::Dir24_8(view) => StructureView::Dir24_8(view),
            },
            Structure::Scan(scan) => StructureView::Scan(scan.view(arena)),
            Structure::TupleSpace(tuple_space) => StructureView::TupleSpace(tuple_space.view(arena)),
        }
    }

    /// The record number of an entry, in tables with counts.
    pub(super) fn record_number(&self, handle: u32) -> Option<u32> {
        match self {
            Structure::Lpm(lpm) => lpm.record_number(handle),
            _ => None,
        }
    }

    /// Handles and record numbers, in tables with counts.
    pub(super) fn record_numbers(&self) -> impl Iterator<Item = (u32, u32)> {
        let lpm = match self {
            Structure::Lpm(lpm) => Some(lpm),
            _ => None,
        };
        lpm.into_iter().flat_map(Lpm::record_numbers)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Structure::Nothing => 0,
            Structure::DirectIndex(direct) => direct.len(),
            Structure::InlineOneWord(inline) => inline.len(),
            Structure::Displacement(displacement) => displacement.len(),
            Structure::Packed(packed) => packed.len(),
            Structure::PackedWithStamps(packed) => packed.len(),
            Structure::InlineTwoWords(inline) => inline.len(),
            Structure::CuckooRecords(records) => records.len(),
            Structure::Lpm(lpm) => lpm.len(),
            Structure::Scan(scan) => scan.len(),
            Structure::TupleSpace(tuple_space) => tuple_space.len(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Structure::Nothing => 0,
            Structure::DirectIndex(direct) => direct.bytes(),
            Structure::InlineOneWord(inline) => inline.bytes(),
            Structure::Displacement(displacement) => displacement.bytes(),
            Structure::Packed(packed) => packed.bytes(),
            Structure::PackedWithStamps(packed) => packed.bytes(),
            Structure::InlineTwoWords(inline) => inline.bytes(),
            Structure::CuckooRecords(records) => records.bytes(),
            Structure::Lpm(lpm) => lpm.bytes(),
            Structure::Scan(scan) => scan.bytes(),
            Structure::TupleSpace(tuple_space) => tuple_space.bytes(),
        }
    }

    /// When an entry was hit last.
    pub(super) fn stamp(&self, arena: &Arena, handle: u32) -> Option<u64> {
        match self {
            Structure::Nothing => None,
            Structure::DirectIndex(direct) => direct.stamp(arena, handle),
            Structure::InlineOneWord(inline) => inline.stamp(handle),
            Structure::Displacement(displacement) => displacement.stamp(handle),
            Structure::Packed(packed) => packed.stamp(handle),
            Structure::PackedWithStamps(packed) => packed.stamp(handle),
            Structure::InlineTwoWords(inline) => inline.stamp(handle),
            Structure::CuckooRecords(records) => records.stamp(arena, handle),
            Structure::Lpm(lpm) => lpm.stamp(arena, handle),
            Structure::Scan(scan) => scan.find(handle).map(|r| arena.stamp(r)),
            Structure::TupleSpace(tuple_space) => tuple_space.stamp(arena, handle),
        }
    }
}
