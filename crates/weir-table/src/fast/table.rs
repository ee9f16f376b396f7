//! [`FastTable`]: a table as the data plane reads it. This module publishes structures to readers
//! and serialises writers; the structures themselves are in the modules beside it.
//!
//! Readers take a [`TableView`] under an epoch guard. Writers hold the mutex of [`Writer`], change
//! a structure in place where that is safe, and otherwise publish a new [`StructureView`].
#![allow(unsafe_code)]

use crate::entry::Entry;
use crate::fast::count::Hits;
use crate::fast::epochs::{Epochs, Guard};
use crate::fast::layout::{KeyLayout, ResultLayout};
use crate::fast::mem::{Arena, RecordLayout};
use crate::fast::pending::PendingLookup;
use crate::fast::retired::Retired;
use crate::fast::rule::{Rule, RuleEncoder};
use crate::fast::structure::{Plan, Structure, StructureView};
use crate::fast::vector_lookup::{Dimensions, PrefetchQueue, VECTOR_SLOTS, VectorLookup};
use crate::spec::TableSpec;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_ir::ActionCall;

/// The state that only writers use, locked by [`FastTable::writer`].
#[derive(Debug)]
struct Writer {
    /// The records of entries.
    arena: Arena,
    /// The writer's side of the current structure.
    structure: Structure,
    /// Encodes entries to rules.
    encoder: RuleEncoder,
    plan: Plan,
    /// The layout of the arena's records.
    record: RecordLayout,
    /// Buffers, kept for their memory.
    rule: Rule,
    result: Vec<u64>,
    /// Structures are made for this number of entries at least.
    min_capacity: usize,
}

/// Packets that hit an entry, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HitCount {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl HitCount {
    /// The sum; wraps around.
    fn add(self, other: HitCount) -> Self {
        HitCount {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }
}

/// The fields that every lookup reads, in one cache line. Between two lookups of a table its lines
/// are evicted from the near caches, so each further line would be a miss.
#[derive(Debug)]
#[repr(align(64))]
struct LookupHeader {
    dimensions: Dimensions,
    /// The structure that readers use; it is owned and never null.
    structure: AtomicPtr<StructureView>,
    /// The first of [`default_len`] words.
    default: AtomicPtr<AtomicU64>,
    epochs: Arc<Epochs>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<LookupHeader>() == 64);

impl LookupHeader {
    /// Words of the default result.
    fn default_len(&self) -> usize {
        default_len(self.dimensions.record_words)
    }
}

/// A table as the data plane reads it. See the [module](crate::fast).
#[derive(Debug)]
pub struct FastTable {
    layout: TableLayout,
    header: LookupHeader,
    /// See [`FastTable::has_handles`].
    has_handles: bool,
    /// See [`FastTable::keeps_counts`].
    keeps_counts: bool,
    /// The number of entries, so that it can be read without the lock.
    entries: AtomicUsize,
    writer: Mutex<Writer>,
}

impl FastTable {
    /// An empty table with [`Epochs`] of its own. Its default action is that of the spec.
    #[must_use]
    pub fn new(spec: &TableSpec) -> Self {
        Self::with_epochs(spec, Arc::new(Epochs::new()))
    }

    /// An empty table with shared [`Epochs`].
    #[must_use]
    pub fn with_epochs(spec: &TableSpec, epochs: Arc<Epochs>) -> Self {
        let (keys, results) = (KeyLayout::new(spec), ResultLayout::new(spec));
        let plan = Plan::new(spec, keys.words, results.words);
        Self::planned(spec, plan, keys, results, false, epochs)
    }

    /// An empty table that counts hits itself, if its kind supports that: one LPM key of up to 32
    /// bits. [`FastTable::keeps_counts`] says so. Otherwise it is as with
    /// [`FastTable::with_epochs`]. The counts lie beside the result, in memory that the lookup has
    /// just read. Heads of hits hold a number for [`FastTable::count_hits`] in place of the handle.
    #[must_use]
    pub fn with_counts(spec: &TableSpec, epochs: Arc<Epochs>) -> Self {
        let (keys, results) = (KeyLayout::new(spec), ResultLayout::new(spec));
        let plan = Plan::new(spec, keys.words, results.words);
        let counts = matches!(plan, Plan::Lpm { .. });
        Self::planned(spec, plan, keys, results, counts, epochs)
    }

    /// An empty table whose results need no handles. It is smaller and faster where keys (of more
    /// bits than an array can be indexed by) and results have few bits. Heads of hits then have 0
    /// for a handle; [`FastTable::has_handles`] says so. Otherwise it is as with
    /// [`FastTable::with_epochs`], for instance if entries name members or groups. Entries that
    /// name members or groups although the table does not allow it are left out.
    #[must_use]
    pub fn without_handles(spec: &TableSpec, epochs: Arc<Epochs>) -> Self {
        let (keys, results) = (KeyLayout::new(spec), ResultLayout::new(spec));
        let plan = Plan::without_handles(spec, &keys, &results);
        Self::planned(spec, plan, keys, results, false, epochs)
    }

    /// The same table, whose structures are from now on made for `entries` entries at least.
    /// Entries that it has are dropped. Tests reach the structures of large tables by it, except
    /// for records near slots, which only entries beyond the first 16,384 have.
    #[must_use]
    pub fn with_min_capacity(self, entries: usize) -> Self {
        let mut writer = self.lock();
        writer.min_capacity = entries;
        writer.begin_bulk(&self.header.epochs, 0);
        self.publish(&mut writer);
        self.finish_update(&mut writer, false);
        drop(writer);
        self
    }

    /// An empty table with the structure of `plan`.
    fn planned(
        spec: &TableSpec,
        plan: Plan,
        key_layout: KeyLayout,
        result_layout: ResultLayout,
        keeps_counts: bool,
        epochs: Arc<Epochs>,
    ) -> Self {
        let encoder = RuleEncoder::new(spec, &key_layout);
        let record = plan.record(&encoder, result_layout.words, spec.idle_timeout);
        let record = if keeps_counts { record.with_counts() } else { record };
        let mut arena = Arena::new(record, Arc::clone(&epochs));
        let writer = Writer {
            structure: plan.structure(&encoder, &mut arena, 0),
            arena,
            encoder,
            plan,
            record,
            rule: Rule::default(),
            result: vec![0; result_layout.words],
            min_capacity: 0,
        };
        let table = FastTable {
            has_handles: !keeps_counts && !matches!(plan, Plan::Packed(_)),
            keeps_counts,
            header: LookupHeader {
                dimensions: Dimensions {
                    key_words: key_layout.words,
                    result_words: result_layout.words,
                    record_words: record.words,
                    stamp_word: record.stamp_word,
                },
                structure: AtomicPtr::new(Box::into_raw(Box::new(StructureView::Nothing))),
                default: AtomicPtr::new(
                    Box::into_raw(pack_default(&result_layout, record.words, &spec.default_action)).cast(),
                ),
                epochs,
            },
            layout: TableLayout {
                keys: key_layout,
                results: result_layout,
                is_array: is_array(spec),
                slot_shift: slot_shift(spec),
            },
            entries: AtomicUsize::new(0),
            writer: Mutex::new(writer),
        };
        table.publish(&mut table.lock());
        table
    }

    /// The layout that compiled code relies on.
    #[must_use]
    #[inline]
    pub fn layout(&self) -> &TableLayout {
        &self.layout
    }

    /// The layout of the key words.
    #[must_use]
    pub fn key_layout(&self) -> &KeyLayout {
        &self.layout.keys
    }

    /// Whether the table counts hits itself; see [`FastTable::with_counts`].
    #[must_use]
    #[inline]
    pub fn keeps_counts(&self) -> bool {
        self.keeps_counts
    }

    /// Whether the heads of hits hold the entry's handle; see [`FastTable::without_handles`].
    #[must_use]
    pub fn has_handles(&self) -> bool {
        self.has_handles
    }

    /// The layout of the result words.
    #[must_use]
    pub fn result_layout(&self) -> &ResultLayout {
        &self.layout.results
    }

    /// The epochs that readers register with.
    #[must_use]
    pub fn epochs(&self) -> &Arc<Epochs> {
        &self.header.epochs
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the structures, without memory that waits to be freed.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let writer = self.lock();
        size_of::<Self>() + writer.arena.bytes() + writer.structure.bytes()
    }

    // ------------------------------------------------------------------------------------ writers

    /// Sets the result of a miss: an action and its data, without handle and without [`head::HIT`].
    ///
    /// [`head::HIT`]: crate::fast::head::HIT
    pub fn set_default(&self, action: &ActionCall) {
        self.update_batch(|batch| batch.set_default(action));
    }

    /// Publishes a new default result, and retires the old one.
    fn publish_default(&self, action: &ActionCall) {
        let header = &self.header;
        let words = pack_default(&self.layout.results, header.dimensions.record_words, action);
        let old = header.default.swap(Box::into_raw(words).cast(), Ordering::AcqRel);
        let old = std::ptr::slice_from_raw_parts_mut(old, header.default_len());
        // SAFETY: `old` came from `Box::into_raw` of as many words and was unlinked by the swap,
        // once. It is retired after that.
        header.epochs.retire(Box::new(unsafe { Retired::new(old) }));
    }

    /// Adds an entry, or replaces the action of the entry with the same handle. Entries that do not
    /// fit the spec are left out: they could not match.
    pub fn insert(&self, entry: &Entry) {
        self.update_batch(|batch| batch.insert(entry));
    }

    /// Removes the entry with this handle and match, if it is there.
    pub fn remove(&self, entry: &Entry) {
        self.update_batch(|batch| batch.remove(entry));
    }

    /// Makes several changes under one lock. Structures that are replaced as a whole for each
    /// change (few prefixes) are replaced once. Readers may see some of the changes before others.
    /// `change` must not change the table by other means: that would deadlock.
    pub fn update_batch(&self, change: impl FnOnce(&mut UpdateBatch<'_>)) {
        let mut guard = self.lock();
        change(&mut UpdateBatch {
            table: self,
            writer: &mut guard,
            needs_view: false,
            removed: Vec::new(),
        });
    }

    /// Replaces all entries. Readers see the old ones, then the new ones. Counts of handles that
    /// stay are kept.
    pub fn bulk_load(&self, entries: &mut dyn Iterator<Item = &Entry>) {
        self.update_batch(|batch| batch.bulk_load(entries));
    }

    /// Ends an update: publishes a view if readers need one, and recycles retired records.
    fn finish_update(&self, writer: &mut Writer, needs_view: bool) {
        if needs_view {
            self.publish(writer);
        }
        writer.arena.flush();
        self.entries.store(writer.structure.len(), Ordering::Relaxed);
    }

    /// Publishes a new view of the structure, and retires the old one.
    fn publish(&self, writer: &mut Writer) {
        let view = Box::into_raw(Box::new(writer.structure.view(&mut writer.arena)));
        let old = self.header.structure.swap(view, Ordering::AcqRel);
        // SAFETY: `old` came from `Box::into_raw` and was unlinked by the swap, once. It is retired
        // after that.
        self.header.epochs.retire(Box::new(unsafe { Retired::new(old) }));
    }

    /// Locks the writer.
    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ------------------------------------------------------------------------------------ readers

    /// Looks up to 64 keys up. Bit `i` of `active` says that slot `i` has a key. Word `w` of the
    /// key of slot `i` is `keys[w * row_stride + i]`; word `r` of its result is written to
    /// `results[r * row_stride + i]`. Every active slot receives all words of its result that the
    /// chosen action has. Its other words are unspecified, and results of inactive slots stay as
    /// they are. Returns the mask of hits. With the spec's `idle_timeout`, entries that are hit get
    /// `now_ns` as the time of their last hit.
    ///
    /// # Panics
    /// `row_stride` or an array is too small for the active slots.
    pub fn lookup(&self, active: u64, keys: &[u64], results: &mut [u64], row_stride: usize, now_ns: u64) -> u64 {
        self.view(&self.header.epochs.enter())
            .lookup(active, keys, results, row_stride, now_ns)
    }

    /// The table's current state, for any number of lookups while the guard lives. The guard comes
    /// from [`Epochs::enter`] of the table's epochs, or from a [`Reader`](crate::fast::Reader) of
    /// them.
    ///
    /// # Panics
    /// The guard is of other epochs.
    #[inline]
    pub fn view<'a>(&'a self, guard: &'a Guard<'_>) -> TableView<'a> {
        let header = &self.header;
        assert!(
            guard.belongs_to(&header.epochs),
            "the guard must be of the table's epochs"
        );
        // SAFETY: the pointers in `structure` and `default` come from boxes, of that many words,
        // that are retired after they were unlinked, and the guard keeps retired ones alive.
        let (structure, default) = unsafe {
            (
                &*header.structure.load(Ordering::Acquire),
                std::slice::from_raw_parts(header.default.load(Ordering::Acquire), header.default_len()),
            )
        };
        TableView {
            dimensions: header.dimensions,
            structure,
            default,
            is_prefetched: false,
        }
    }

    /// Looks one key up: the words of the key, the words of the result.
    ///
    /// # Panics
    /// An array is too short.
    pub fn lookup_one(&self, key: &[u64], result: &mut [u64], now_ns: u64) -> bool {
        self.lookup(1, key, result, 1, now_ns) != 0
    }

    /// When the entry was hit last or inserted. `None`: no such entry, or the spec has no
    /// `idle_timeout`.
    #[must_use]
    pub fn last_hit_ns(&self, handle: u32) -> Option<u64> {
        let writer = self.lock();
        writer.record.stamp_word?;
        writer.structure.stamp(&writer.arena, handle)
    }
}

/// Hits that the table counts itself; see [`FastTable::with_counts`]. In other tables these methods
/// do nothing.
impl FastTable {
    /// Counts hits of a vector's slots, given their heads and the packets' lengths in bytes. A hit
    /// of an entry that was removed since the lookup is not counted, or counted for an entry that
    /// reuses its record. The table is locked during the call.
    #[inline]
    pub fn count_hits(&self, slots: u64, heads: &[u64; VECTOR_SLOTS], bytes: &[u64; VECTOR_SLOTS]) {
        self.lock().arena.count(Hits { heads, bytes, slots });
    }

    /// The hits counted for the entry with this handle.
    #[must_use]
    pub fn counted(&self, handle: u32) -> HitCount {
        self.lock().counted(handle)
    }

    /// The same, and resets the count to 0.
    pub fn take_counted(&self, handle: u32) -> HitCount {
        let writer = self.lock();
        let counted = writer.counted(handle);
        if let Some(number) = writer.structure.record_number(handle) {
            writer.arena.set_counted(number, HitCount::default());
        }
        counted
    }

    /// Handles and counts of all entries that were hit.
    #[must_use]
    pub fn all_counted(&self) -> Vec<(u32, HitCount)> {
        self.lock().all_counted()
    }
}

/// The properties of a table that compiled code relies on: the layout of words, and which
/// structures are possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableLayout {
    /// The layout of keys.
    pub keys: KeyLayout,
    /// The layout of results.
    pub results: ResultLayout,
    /// See [`is_array`].
    pub is_array: bool,
    /// See [`slot_shift`].
    pub slot_shift: Option<u32>,
}

impl TableLayout {
    /// The form of every table with this specification.
    #[must_use]
    pub fn new(spec: &TableSpec) -> Self {
        TableLayout {
            keys: KeyLayout::new(spec),
            results: ResultLayout::new(spec),
            is_array: is_array(spec),
            slot_shift: slot_shift(spec),
        }
    }
}

/// Whether a table is an array that compiled code may index directly: exact keys of few bits in
/// all, or none, without `idle_timeout`. [`TableView::array`] gives the array.
#[must_use]
pub fn is_array(spec: &TableSpec) -> bool {
    let plan = Plan::new(spec, KeyLayout::new(spec).words, ResultLayout::new(spec).words);
    !spec.idle_timeout && matches!(plan, Plan::Nothing | Plan::DirectIndex(_))
}

/// The right shift by which a key of one word becomes the number of the slot that its lookup reads
/// first ([`SlotAddressing`]). `None` for tables that never have [`SlotAddressing::COUNT`] slots.
#[must_use]
pub fn slot_shift(spec: &TableSpec) -> Option<u32> {
    match Plan::new(spec, KeyLayout::new(spec).words, ResultLayout::new(spec).words) {
        Plan::Lpm { width, .. } => width.checked_sub(24),
        _ => None,
    }
}

/// The addresses of a DIR-24-8 table's slots, for code that prefetches them before the lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotAddressing {
    /// The address of slot 0.
    pub base: usize,
    /// Slot `n` is at `base + 4 * (n + (n & skip_mask))`: the masked bits skip the records between
    /// runs of slots.
    pub skip_mask: usize,
}

impl SlotAddressing {
    /// Number of slots.
    pub const COUNT: usize = 1 << 24;
}

/// Changes of a table that are made under one lock ([`FastTable::update_batch`]).
///
/// Entries are identified by their handles. Updates may be reordered: the `insert` of a handle that
/// is reused may precede the `remove` of the handle's old entry. A
/// [count](FastTable::with_counts) therefore stays with its handle, also from `remove` to `insert`.
/// The caller resets it with [`FastTable::take_counted`] when an entry is gone for good, before its
/// handle is reused.
pub struct UpdateBatch<'a> {
    table: &'a FastTable,
    writer: &'a mut Writer,
    /// Readers need a new view.
    needs_view: bool,
    /// Counts of removed entries, which may be inserted again.
    removed: Vec<(u32, HitCount)>,
}

impl UpdateBatch<'_> {
    /// As [`FastTable::insert`].
    pub fn insert(&mut self, entry: &Entry) {
        if self.writer.encode(&self.table.layout.results, entry) {
            let needs_view = self.writer.insert_rule(entry.last_hit_ns);
            self.changed(needs_view);
        }
    }

    /// As [`FastTable::remove`]. The entry's count is kept if an entry with the same handle is
    /// inserted in this batch.
    pub fn remove(&mut self, entry: &Entry) {
        if self.writer.encoder.encode(entry, &mut self.writer.rule) {
            let handle = entry.handle.get();
            let counted = self.writer.counted(handle);
            let needs_view = self.writer.remove_rule();
            if counted != HitCount::default() && self.writer.structure.record_number(handle).is_none() {
                self.removed.push((handle, counted));
            }
            self.changed(needs_view);
        }
    }

    /// As [`FastTable::set_default`].
    pub fn set_default(&mut self, action: &ActionCall) {
        self.table.publish_default(action);
    }

    /// As [`FastTable::bulk_load`].
    pub fn bulk_load(&mut self, entries: &mut dyn Iterator<Item = &Entry>) {
        let counted = self.writer.all_counted();
        self.removed.extend(counted);
        self.writer.begin_bulk(&self.table.header.epochs, entries.size_hint().0);
        for entry in entries {
            if self.writer.encode(&self.table.layout.results, entry) {
                self.writer.insert_rule(entry.last_hit_ns);
            }
        }
        self.table.publish(self.writer);
        self.needs_view = false;
    }

    /// Publishes at once where a structure cannot wait: unlinked records are not reused before
    /// readers have another view.
    fn changed(&mut self, needs_view: bool) {
        self.needs_view |= needs_view;
        if self.needs_view && !self.writer.structure.can_postpone_view() {
            self.table.publish(self.writer);
            self.needs_view = false;
        }
    }
}

impl Drop for UpdateBatch<'_> {
    /// Runs also where the closure panicked.
    fn drop(&mut self) {
        for (handle, before) in self.removed.drain(..) {
            if let Some(number) = self.writer.structure.record_number(handle) {
                let counted = self.writer.arena.counted(number);
                self.writer.arena.set_counted(number, counted.add(before));
            }
        }
        self.table.finish_update(self.writer, self.needs_view);
    }
}

/// A table as an array of pointers to results, indexed by the key. Null stands for the default
/// result. All results live as long as the guard of the view.
///
/// Results may be read in whole pairs of words.
///
/// Compiled code reads both by plain loads of the machine. Rust's memory model does not apply
/// there; that of the processor does. On x86-64 a load of an aligned word is one load, and loads
/// are not reordered with each other. Elsewhere the second load depends on the address that the
/// first one gives. A record is immutable once published.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ResultArray {
    /// Indexed by the key. Null where there are no keys: there is only the default then.
    pub results: *const AtomicPtr<AtomicU64>,
    /// The result of a miss.
    pub default: *const AtomicU64,
}

/// The state of a [`FastTable`] while an epoch guard is held.
#[derive(Clone, Copy)]
pub struct TableView<'a> {
    dimensions: Dimensions,
    structure: &'a StructureView,
    default: &'a [AtomicU64],
    /// Whether the lines for the keys were prefetched.
    is_prefetched: bool,
}

impl<'a> TableView<'a> {
    /// As [`FastTable::lookup`].
    ///
    /// # Panics
    /// As there.
    #[inline]
    pub fn lookup(self, active: u64, keys: &[u64], results: &mut [u64], row_stride: usize, now_ns: u64) -> u64 {
        let mut vector = VectorLookup::new(self.dimensions, active, keys, results, row_stride, self.default, now_ns);
        vector.is_prefetched = self.is_prefetched;
        self.structure.lookup(&mut vector)
    }

    /// As [`TableView::lookup`], and prefetches the addresses in `queue` during the search, which
    /// [`TableView::prefetch`] of other tables has put there. The queue is empty afterwards.
    ///
    /// # Panics
    /// As there.
    #[inline(always)]
    pub fn lookup_and_prefetch(
        self,
        active: u64,
        keys: &[u64],
        results: &mut [u64],
        row_stride: usize,
        now_ns: u64,
        queue: &mut PrefetchQueue,
    ) -> u64 {
        let mut vector = VectorLookup::new(self.dimensions, active, keys, results, row_stride, self.default, now_ns);
        vector.is_prefetched = self.is_prefetched;
        vector.queue = (!queue.is_empty()).then_some(&*queue);
        let hits = self.structure.lookup(&mut vector);
        queue.clear();
        hits
    }

    /// Begins a lookup: locates the results and prefetches them, so that other work can be done
    /// before [`TableView::finish`] collects them. The slots that it reads should have been
    /// prefetched long before. Nothing happens if `pending` is in use, or if the structure has no
    /// two-part lookup.
    ///
    /// # Panics
    /// As [`FastTable::lookup`].
    #[inline]
    pub fn begin(self, active: u64, keys: &[u64], row_stride: usize, pending: &mut PendingLookup<'a>) {
        if !pending.is_pending() {
            let vector = VectorLookup::keys_only(self.dimensions, active, keys, row_stride, self.default);
            self.structure.begin(&vector, pending);
        }
    }

    /// Finishes the pending lookup. `None`: none is pending, or it belongs to another table, to
    /// another structure of this table, to other slots, or to keys at another address.
    ///
    /// The keys at that address must be those of `begin`. With other keys the results are
    /// unspecified, but they are results of this table.
    ///
    /// # Panics
    /// As [`FastTable::lookup`].
    #[inline(always)]
    pub fn finish(
        self,
        active: u64,
        keys: &[u64],
        results: &mut [u64],
        row_stride: usize,
        now_ns: u64,
        pending: &mut PendingLookup<'a>,
    ) -> Option<u64> {
        if !pending.is_pending() {
            return None;
        }
        let vector = VectorLookup::new(self.dimensions, active, keys, results, row_stride, self.default, now_ns);
        self.structure.finish(&vector, pending)
    }

    /// Prefetches the lines that a lookup of the same keys will read, so that fetches for several
    /// tables overlap. Nothing happens where these lines are cached anyway, are not known
    /// beforehand, or are prefetched by the lookup itself. Addresses that are better prefetched
    /// piece by piece are queued for the next [`TableView::lookup_and_prefetch`].
    ///
    /// # Panics
    /// As [`FastTable::lookup`].
    #[inline]
    pub fn prefetch(self, active: u64, keys: &[u64], row_stride: usize, queue: &mut PrefetchQueue) {
        let slots = self.dimensions.slots_with_keys(active, keys, row_stride);
        self.structure.prefetch(active, &keys[..slots], queue);
    }

    /// The array that the table consists of, if it does ([`is_array`]).
    #[must_use]
    #[inline]
    pub fn array(self) -> Option<ResultArray> {
        let results = match self.structure {
            StructureView::DirectIndex(direct) if self.dimensions.stamp_word.is_none() => direct.records(),
            StructureView::Nothing => std::ptr::null(),
            _ => return None,
        };
        Some(ResultArray {
            results,
            default: self.default.as_ptr(),
        })
    }

    #[cfg(test)]
    pub(super) fn structure(self) -> &'a StructureView {
        self.structure
    }

    /// The addresses of the table's slots ([`slot_shift`]), if it has enough entries that early
    /// prefetches pay.
    #[must_use]
    #[inline]
    pub fn slots(self) -> Option<SlotAddressing> {
        match self.structure {
            StructureView::Dir24_8(dir24) => dir24.slot_addressing(),
            _ => None,
        }
    }

    /// For lookups of keys that [`TableView::prefetch`] was called with: nothing is prefetched
    /// twice.
    #[must_use]
    pub fn assume_prefetched(self) -> Self {
        TableView {
            is_prefetched: true,
            ..self
        }
    }
}

impl Drop for FastTable {
    fn drop(&mut self) {
        let default = std::ptr::slice_from_raw_parts_mut(*self.header.default.get_mut(), self.header.default_len());
        // SAFETY: both came from `Box::into_raw`, and no reader can exist any more.
        unsafe {
            drop(Box::from_raw(*self.header.structure.get_mut()));
            drop(Box::from_raw(default));
        }
    }
}

/// Words of the default result. It has as many words as a record, since some structures compare
/// before they choose between the two, and a whole number of pairs.
fn default_len(record_words: usize) -> usize {
    record_words.next_multiple_of(2)
}

/// The result of a miss.
fn pack_default(layout: &ResultLayout, record_words: usize, action: &ActionCall) -> Box<[AtomicU64]> {
    let mut words = vec![0; default_len(record_words)];
    layout.pack_call(action, &mut words[..layout.words]);
    words.into_iter().map(AtomicU64::new).collect()
}

impl Writer {
    /// Fills `rule` and `result`.
    fn encode(&mut self, layout: &ResultLayout, entry: &Entry) -> bool {
        if !self.encoder.encode(entry, &mut self.rule) {
            return false;
        }
        layout.pack_entry(entry.handle.get(), &entry.action, &mut self.result);
        true
    }

    /// Replaces arena and structure by empty ones for about `expected` entries.
    fn begin_bulk(&mut self, epochs: &Arc<Epochs>, expected: usize) {
        self.arena = Arena::new(self.record, Arc::clone(epochs));
        let expected = expected.max(self.min_capacity);
        self.structure = self.plan.structure(&self.encoder, &mut self.arena, expected);
        self.structure.defer();
    }

    /// The hits counted for an entry.
    fn counted(&self, handle: u32) -> HitCount {
        let number = self.structure.record_number(handle);
        number.map_or(HitCount::default(), |number| self.arena.counted(number))
    }

    /// Counts of all entries that have counted something; none where records do not count.
    fn all_counted(&self) -> Vec<(u32, HitCount)> {
        if self.record.counts.is_none() {
            return Vec::new();
        }
        let counted = |(handle, number)| (handle, self.arena.counted(number));
        let all = self.structure.record_numbers().map(counted);
        all.filter(|(_, count)| *count != HitCount::default()).collect()
    }

    /// Inserts the rule; true if readers need a new view.
    fn insert_rule(&mut self, stamp: u64) -> bool {
        self.structure
            .insert_rule(&mut self.arena, &self.encoder, &self.rule, &self.result, stamp)
    }

    /// Removes the rule; true if readers need a new view.
    fn remove_rule(&mut self) -> bool {
        self.structure.remove_rule(&mut self.arena, &self.rule)
    }
}
