//! Which structure a table has, and the one interface to all of them.
#![allow(unsafe_code)]

use crate::fast::batch::{Batch, Fetches, is_dense};
use crate::fast::begun::Begun;
use crate::fast::direct::{self, Direct, DirectShape};
use crate::fast::exact::{Exact, ExactShape};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::inline::Avx2;
use crate::fast::inline::{Compare, Four, Inline, InlineShape, Portable, Two};
use crate::fast::layout::{KeyLayout, ResultLayout};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::lpm::Ranges;
use crate::fast::lpm::{Dir, Intervals, Lpm, LpmShape};
use crate::fast::mem::{Arena, Shape as RecordShape};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::packed::Avx512;
use crate::fast::packed::{Packed, PackedShape, Plain, Search, Stamped};
use crate::fast::packing::Packing;
use crate::fast::placed::{self, Placed, PlacedShape};
use crate::fast::rule::{Keys, Rule};
use crate::fast::scan::{Scan, ScanShape};
use crate::fast::tuple::{self, Tuple, TupleShape};
use crate::spec::TableSpec;
use std::sync::Arc;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::LazyLock;
use weir_ir::MatchKind;

/// Most rules that are compared one after the other.
const SCAN: usize = 16;

/// Which structures a table can have; given by its keys and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// No keys: always a miss.
    Nothing,
    /// Exact keys of so many bits in all.
    Direct(u32),
    /// Exact keys of one word, results of one.
    Dense,
    /// The same in one word together, without handles.
    Packed(Packing),
    /// Exact keys of one word, results of two.
    Inline,
    Exact,
    /// One LPM key of so many bits, up to 32.
    Lpm {
        width: u32,
        /// The program says that there may be [many](crate::fast::lpm::MANY) entries.
        many: bool,
    },
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
                _ if bits <= direct::MOST_BITS => Plan::Direct(bits),
                (1, 1) => Plan::Dense,
                (1, 2) => Plan::Inline,
                (1, _) if bits <= direct::MOST_BITS_FOR_RECORDS => Plan::Direct(bits),
                _ => Plan::Exact,
            }
        } else {
            match keys.as_slice() {
                [key] if key.kind == MatchKind::Lpm && (1..=32).contains(&key.width) => Plan::Lpm {
                    width: key.width,
                    many: spec.size >= crate::fast::lpm::MANY,
                },
                _ => Plan::General,
            }
        }
    }

    /// The plan for a table that need not give handles.
    pub(super) fn without_handles(spec: &TableSpec, keys: &KeyLayout, results: &ResultLayout) -> Self {
        match Self::new(spec, keys.words, results.words) {
            Plan::Dense => Packing::new(spec, results).map_or(Plan::Dense, Plan::Packed),
            plan => plan,
        }
    }

    /// What records hold.
    pub(super) fn record(self, keys: &Keys, result_words: usize, stamp: bool) -> RecordShape {
        match self {
            Plan::Nothing | Plan::Dense | Plan::Packed(_) | Plan::Inline | Plan::Lpm { .. } => {
                RecordShape::new(result_words, stamp, 0, 0)
            }
            Plan::Direct(_) => RecordShape::new(result_words, stamp, 0, 1),
            Plan::Exact => RecordShape::new(result_words, stamp, keys.words, 1),
            Plan::General => RecordShape::new(result_words, stamp, keys.words, tuple::EXTRA + keys.bound_words()),
        }
    }

    /// An empty structure for about so many entries.
    pub(super) fn structure(self, keys: &Keys, arena: &mut Arena, expected: usize) -> Structure {
        let stamps = arena.shape().stamp.is_some();
        match self {
            Plan::Nothing => Structure::Nothing,
            Plan::Direct(bits) => Structure::Direct(Direct::new(bits, stamps)),
            Plan::Dense => Structure::Dense(Inline::new(stamps, expected)),
            Plan::Packed(packing) if expected <= placed::MOST => Structure::Placed(Placed::new(packing, stamps)),
            Plan::Packed(packing) if stamps => Structure::Stamped(Packed::new(packing, expected)),
            Plan::Packed(packing) => Structure::Packed(Packed::new(packing, expected)),
            Plan::Inline => Structure::Inline(Inline::new(stamps, expected)),
            Plan::Exact => Structure::Exact(Exact::new(stamps, expected)),
            Plan::Lpm { width, many } => Structure::Lpm(Lpm::new(width, many, expected, arena)),
            Plan::General if expected > SCAN => Structure::Tuple(Tuple::new(keys.clone(), stamps)),
            Plan::General => Structure::Scan(Scan::new(keys.clone())),
        }
    }
}

/// What readers see of a structure.
#[derive(Debug)]
pub(super) enum Shape {
    Nothing,
    Direct(DirectShape),
    Dense(InlineShape<Four>),
    Placed(PlacedShape),
    Packed(PackedShape<Plain>),
    Stamped(PackedShape<Stamped>),
    Inline(InlineShape<Two>),
    Exact(ExactShape),
    Intervals(Intervals),
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Ranges(Ranges),
    Dir(Arc<Dir>),
    Scan(ScanShape),
    Tuple(TupleShape),
}

impl Shape {
    /// Looks the vector up; the mask of hits.
    #[inline]
    pub(super) fn lookup(&self, batch: &mut Batch<'_>) -> u64 {
        // These have functions for what the processor can do and need none of those below.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        match self {
            Shape::Placed(shape) if shape.is_by_eights() => return shape.lookup(batch),
            Shape::Ranges(shape) => {
                batch.ask_meanwhile();
                return shape.lookup(batch);
            }
            Shape::Dir(shape) if shape.is_by_eights() => {
                batch.ask_meanwhile();
                return shape.lookup(batch);
            }
            _ => {}
        }
        let asks_meanwhile = match self {
            Shape::Placed(_) => true,
            Shape::Packed(shape) => shape.asks_meanwhile(),
            Shape::Stamped(shape) => shape.asks_meanwhile(),
            _ => false,
        };
        if !asks_meanwhile {
            batch.ask_meanwhile();
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_wide() {
            let hashes_many = matches!(
                self,
                Shape::Dense(_) | Shape::Packed(_) | Shape::Stamped(_) | Shape::Inline(_) | Shape::Tuple(_)
            );
            if hashes_many && is_widest() {
                // SAFETY: the processor has these features.
                return unsafe { self.lookup_widest(batch) };
            }
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_wide(batch) };
        }
        self.lookup_here::<Portable>(batch)
    }

    /// [`Present::begin`](super::Present::begin): nothing is begun yet.
    #[inline]
    #[cfg_attr(
        not(all(target_arch = "x86_64", not(miri))),
        expect(unused_variables, reason = "no structure looks eight keys up at a time")
    )]
    pub(super) fn begin<'a>(&'a self, batch: &Batch<'_>, begun: &mut Begun<'a>) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Shape::Dir(dir) = self {
            dir.begin(batch, begun);
        }
    }

    /// [`Present::finish`](super::Present::finish).
    #[inline]
    #[cfg_attr(
        not(all(target_arch = "x86_64", not(miri))),
        expect(unused_variables, reason = "no structure looks eight keys up at a time")
    )]
    pub(super) fn finish(&self, batch: &Batch<'_>, begun: &mut Begun<'_>) -> Option<u64> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Shape::Dir(dir) = self {
            return dir.finish(batch, begun);
        }
        None
    }

    /// Those whose keys are hashed all at once, with AVX-512, which multiplies words of 64 bits.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt")]
    fn lookup_widest(&self, batch: &mut Batch<'_>) -> u64 {
        match self {
            Shape::Dense(shape) => shape.lookup::<Avx2>(batch),
            Shape::Packed(shape) => shape.lookup::<Avx512>(batch),
            Shape::Stamped(shape) => shape.lookup::<Avx512>(batch),
            Shape::Inline(shape) => shape.lookup::<Avx2>(batch),
            Shape::Tuple(shape) => shape.lookup(batch),
            other => other.lookup(batch),
        }
    }

    /// The same with AVX2 and the bit-manipulation instructions.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
    fn lookup_wide(&self, batch: &mut Batch<'_>) -> u64 {
        self.lookup_here::<Avx2>(batch)
    }

    #[inline(always)]
    fn lookup_here<C: Compare + Search>(&self, batch: &mut Batch<'_>) -> u64 {
        match self {
            Shape::Nothing => {
                batch.miss_all();
                0
            }
            Shape::Direct(shape) => shape.lookup(batch),
            Shape::Dense(shape) => shape.lookup::<C>(batch),
            Shape::Placed(shape) => shape.lookup(batch),
            Shape::Packed(shape) => shape.lookup::<C>(batch),
            Shape::Stamped(shape) => shape.lookup::<C>(batch),
            Shape::Inline(shape) => shape.lookup::<C>(batch),
            Shape::Exact(shape) => shape.lookup(batch),
            Shape::Intervals(shape) => shape.lookup(batch),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Shape::Ranges(shape) => shape.lookup(batch),
            Shape::Dir(shape) => shape.lookup(batch),
            Shape::Scan(shape) => shape.lookup(batch),
            Shape::Tuple(shape) => shape.lookup(batch),
        }
    }

    /// Fetches what a lookup of these keys, each of one word, will read, if that is not in the cache anyway; or says what should be fetched
    /// during the next lookup.
    #[inline]
    pub(super) fn prepare(&self, active: u64, keys: &[u64], later: &mut Fetches) {
        let gains = match self {
            Shape::Dir(shape) => shape.is_staged(),
            Shape::Dense(shape) => shape.is_staged(),
            Shape::Packed(shape) => shape.gains_by_prepare(),
            Shape::Stamped(shape) => shape.gains_by_prepare(),
            Shape::Inline(shape) => shape.is_staged(),
            _ => false,
        };
        if !gains {
            return;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_widest() {
            // SAFETY: the processor has these features.
            return unsafe { self.prepare_widest(active, keys, later) };
        }
        self.prepare_here(active, keys, later);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt")]
    fn prepare_widest(&self, active: u64, keys: &[u64], later: &mut Fetches) {
        self.prepare_here(active, keys, later);
    }

    #[inline(always)]
    fn prepare_here(&self, active: u64, keys: &[u64], later: &mut Fetches) {
        if let Shape::Dir(_) = self {
            later.all();
        }
        match (self, is_dense(active)) {
            (Shape::Dir(shape), false) => shape.addresses::<false>(active, keys, later),
            (Shape::Dir(shape), true) => shape.addresses::<true>(active, keys, later),
            (Shape::Dense(shape), false) => shape.prepare::<false>(active, keys),
            (Shape::Dense(shape), true) => shape.prepare::<true>(active, keys),
            (Shape::Packed(shape), false) => shape.prepare::<false>(active, keys),
            (Shape::Stamped(shape), false) => shape.prepare::<false>(active, keys),
            (Shape::Packed(shape), true) => shape.prepare::<true>(active, keys),
            (Shape::Stamped(shape), true) => shape.prepare::<true>(active, keys),
            (Shape::Inline(shape), false) => shape.prepare::<false>(active, keys),
            (Shape::Inline(shape), true) => shape.prepare::<true>(active, keys),
            _ => {}
        }
    }
}

/// Whether the processor has AVX2 and the bit-manipulation instructions.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn is_wide() -> bool {
    // Asked once, not feature by feature for every vector.
    static HAS: LazyLock<bool> = LazyLock::new(|| {
        use std::arch::is_x86_feature_detected as has;
        has!("bmi2") && has!("bmi1") && has!("lzcnt") && has!("avx2")
    });
    *HAS
}

/// Whether the processor has AVX-512, and what [`is_wide`] asks for.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn is_widest() -> bool {
    static HAS: LazyLock<bool> = LazyLock::new(|| {
        use std::arch::is_x86_feature_detected as has;
        is_wide() && has!("avx512f") && has!("avx512dq") && has!("avx512vl")
    });
    *HAS
}

/// The writer's side of a structure.
#[derive(Debug)]
pub(super) enum Structure {
    Nothing,
    Direct(Direct),
    Dense(Inline<Four>),
    Placed(Placed),
    Packed(Packed<Plain>),
    Stamped(Packed<Stamped>),
    Inline(Inline<Two>),
    Exact(Exact),
    Lpm(Lpm),
    Scan(Scan),
    Tuple(Tuple),
}

impl Structure {
    /// Readers see nothing of what follows until [`Structure::shape`].
    pub(super) fn defer(&mut self) {
        match self {
            Structure::Lpm(lpm) => lpm.defer(),
            Structure::Placed(placed) => placed.defer(),
            _ => {}
        }
    }

    /// Whether readers may go on with an old shape while more is changed.
    pub(super) fn may_wait(&self) -> bool {
        match self {
            Structure::Lpm(lpm) => lpm.is_replaced_as_a_whole(),
            _ => false,
        }
    }

    /// Puts a rule in, or its action in place of that of the same entry. True: readers need a new
    /// shape.
    pub(super) fn put(&mut self, arena: &mut Arena, keys: &Keys, rule: &Rule, result: &[u64], stamp: u64) -> bool {
        match self {
            Structure::Nothing => false,
            Structure::Direct(direct) => {
                direct.put(arena, rule, result, stamp);
                false
            }
            Structure::Dense(dense) => dense.put(rule, result, stamp),
            Structure::Placed(placed) => {
                if placed.len() < placed::MOST || placed.has(rule) || Placed::leaves_out(result) {
                    return placed.put(rule, result, stamp);
                }
                *self = if arena.shape().stamp.is_some() {
                    Structure::Stamped(Packed::with(placed.packing(), placed.entries()))
                } else {
                    Structure::Packed(Packed::with(placed.packing(), placed.entries()))
                };
                self.put(arena, keys, rule, result, stamp);
                true
            }
            Structure::Packed(packed) => packed.put(rule, result, stamp),
            Structure::Stamped(packed) => packed.put(rule, result, stamp),
            Structure::Inline(inline) => inline.put(rule, result, stamp),
            Structure::Exact(exact) => exact.put(arena, rule, result, stamp),
            Structure::Lpm(lpm) => lpm.put(arena, rule, result, stamp),
            Structure::Scan(scan) => {
                let stamp = scan.find(rule.handle).map_or(stamp, |r| arena.stamp(r).max(stamp));
                let Some(rec) = tuple::record(arena, rule, result, stamp) else {
                    return false;
                };
                scan.put(arena, rule, rec);
                if scan.len() > SCAN {
                    let mut tuple = Tuple::new(keys.clone(), arena.shape().stamp.is_some());
                    for (_, rule, rec) in scan.drain() {
                        tuple.put(arena, &rule, rec);
                    }
                    *self = Structure::Tuple(tuple);
                }
                true
            }
            Structure::Tuple(tuple) => {
                let stamp = match tuple.find(arena, rule) {
                    Some(rec) => arena.stamp(rec).max(stamp),
                    None => stamp,
                };
                tuple::record(arena, rule, result, stamp).is_some_and(|rec| tuple.put(arena, rule, rec))
            }
        }
    }

    /// Takes a rule out. True: readers need a new shape.
    pub(super) fn take(&mut self, arena: &mut Arena, rule: &Rule) -> bool {
        match self {
            Structure::Nothing => false,
            Structure::Direct(direct) => {
                direct.take(arena, rule);
                false
            }
            Structure::Dense(dense) => dense.take(rule),
            Structure::Placed(placed) => placed.take(rule),
            Structure::Packed(packed) => {
                packed.take(rule);
                false
            }
            Structure::Stamped(packed) => {
                packed.take(rule);
                false
            }
            Structure::Inline(inline) => inline.take(rule),
            Structure::Exact(exact) => {
                exact.take(arena, rule);
                false
            }
            Structure::Lpm(lpm) => lpm.take(arena, rule),
            Structure::Scan(scan) => scan.take(arena, rule),
            Structure::Tuple(tuple) => tuple.take(arena, rule),
        }
    }

    /// What readers are to see from now on.
    pub(super) fn shape(&mut self, arena: &mut Arena) -> Shape {
        match self {
            Structure::Nothing => Shape::Nothing,
            Structure::Direct(direct) => Shape::Direct(direct.shape(arena)),
            Structure::Dense(dense) => Shape::Dense(dense.shape()),
            Structure::Placed(placed) => Shape::Placed(placed.shape()),
            Structure::Packed(packed) => Shape::Packed(packed.shape()),
            Structure::Stamped(packed) => Shape::Stamped(packed.shape()),
            Structure::Inline(inline) => Shape::Inline(inline.shape()),
            Structure::Exact(exact) => Shape::Exact(exact.shape(arena)),
            Structure::Lpm(lpm) => match lpm.shape(arena) {
                LpmShape::Intervals(shape) => Shape::Intervals(shape),
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                LpmShape::Ranges(shape) => Shape::Ranges(shape),
                LpmShape::Dir(shape) => Shape::Dir(shape),
            },
            Structure::Scan(scan) => Shape::Scan(scan.shape(arena)),
            Structure::Tuple(tuple) => Shape::Tuple(tuple.shape(arena)),
        }
    }

    /// The number of the record of an entry, where records count.
    pub(super) fn number_of(&self, handle: u32) -> Option<u32> {
        match self {
            Structure::Lpm(lpm) => lpm.number_of(handle),
            _ => None,
        }
    }

    /// Handles and numbers of records, where records count.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (u32, u32)> {
        let lpm = match self {
            Structure::Lpm(lpm) => Some(lpm),
            _ => None,
        };
        lpm.into_iter().flat_map(Lpm::numbers)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Structure::Nothing => 0,
            Structure::Direct(direct) => direct.len(),
            Structure::Dense(dense) => dense.len(),
            Structure::Placed(placed) => placed.len(),
            Structure::Packed(packed) => packed.len(),
            Structure::Stamped(packed) => packed.len(),
            Structure::Inline(inline) => inline.len(),
            Structure::Exact(exact) => exact.len(),
            Structure::Lpm(lpm) => lpm.len(),
            Structure::Scan(scan) => scan.len(),
            Structure::Tuple(tuple) => tuple.len(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Structure::Nothing => 0,
            Structure::Direct(direct) => direct.bytes(),
            Structure::Dense(dense) => dense.bytes(),
            Structure::Placed(placed) => placed.bytes(),
            Structure::Packed(packed) => packed.bytes(),
            Structure::Stamped(packed) => packed.bytes(),
            Structure::Inline(inline) => inline.bytes(),
            Structure::Exact(exact) => exact.bytes(),
            Structure::Lpm(lpm) => lpm.bytes(),
            Structure::Scan(scan) => scan.bytes(),
            Structure::Tuple(tuple) => tuple.bytes(),
        }
    }

    /// When an entry was hit last.
    pub(super) fn stamp(&self, arena: &Arena, handle: u32) -> Option<u64> {
        match self {
            Structure::Nothing => None,
            Structure::Direct(direct) => direct.stamp(arena, handle),
            Structure::Dense(dense) => dense.stamp(handle),
            Structure::Placed(placed) => placed.stamp(handle),
            Structure::Packed(packed) => packed.stamp(handle),
            Structure::Stamped(packed) => packed.stamp(handle),
            Structure::Inline(inline) => inline.stamp(handle),
            Structure::Exact(exact) => exact.stamp(arena, handle),
            Structure::Lpm(lpm) => lpm.stamp(arena, handle),
            Structure::Scan(scan) => scan.find(handle).map(|r| arena.stamp(r)),
            Structure::Tuple(tuple) => tuple.stamp(arena, handle),
        }
    }
}
