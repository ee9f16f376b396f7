//! [`FastTable`]: which structure, publication, and the writer's lock.
#![allow(unsafe_code)]

use crate::entry::Entry;
use crate::fast::batch::{Batch, Dimensions, Fetches, SLOTS};
use crate::fast::begun::Begun;
use crate::fast::count::Hits;
use crate::fast::epochs::{Epochs, Guard};
use crate::fast::layout::{KeyLayout, ResultLayout};
use crate::fast::mem::{Arena, Shape as RecordShape};
use crate::fast::retired::Retired;
use crate::fast::rule::{Keys, Rule};
use crate::fast::structure::{Plan, Shape, Structure};
use crate::spec::TableSpec;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_ir::ActionCall;

#[derive(Debug)]
struct Writer {
    arena: Arena,
    structure: Structure,
    keys: Keys,
    plan: Plan,
    record: RecordShape,
    /// Kept for their memory.
    rule: Rule,
    result: Vec<u64>,
    /// For so many entries structures are made at least.
    least: usize,
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
    /// Both together; wraps around.
    fn and(self, other: HitCount) -> Self {
        HitCount {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }
}

/// What every lookup reads of a table, in one cache line: between two lookups of a table everything near the processor is used for something
/// else, so each line is one that has to come from further away.
#[derive(Debug)]
#[repr(align(64))]
struct Front {
    dimensions: Dimensions,
    shape: AtomicPtr<Shape>,
    /// The first of [`default_length`] words.
    default: AtomicPtr<AtomicU64>,
    epochs: Arc<Epochs>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Front>() == 64);

impl Front {
    fn default_length(&self) -> usize {
        default_length(self.dimensions.record_words)
    }
}

/// A table as the data plane reads it. See the [module](crate::fast).
#[derive(Debug)]
pub struct FastTable {
    form: TableForm,
    front: Front,
    has_handles: bool,
    keeps_counts: bool,
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

    /// An empty table that counts hits itself, if it is one of a kind that can ([`FastTable::keeps_counts`] tells; else it is as with
    /// [`FastTable::with_epochs`]): one LPM key of up to 32 bits. What was counted then lies beside the result, where the lookup has been
    /// anyway. Heads of hits have a number for [`FastTable::count_hits`] in place of the handle.
    #[must_use]
    pub fn with_counts(spec: &TableSpec, epochs: Arc<Epochs>) -> Self {
        let (keys, results) = (KeyLayout::new(spec), ResultLayout::new(spec));
        let plan = Plan::new(spec, keys.words, results.words);
        let counts = matches!(plan, Plan::Lpm { .. });
        Self::planned(spec, plan, keys, results, counts, epochs)
    }

    /// An empty table of which nobody wants to know the entries' handles: where keys (of more bits than an array is indexed by) and results are few bits it is smaller and
    /// faster, and heads of hits have 0 for a handle ([`FastTable::has_handles`] tells). Else it is as with
    /// [`FastTable::with_epochs`], so for tables whose entries name members or groups. Entries that should not do so and do
    /// are left out.
    #[must_use]
    pub fn without_handles(spec: &TableSpec, epochs: Arc<Epochs>) -> Self {
        let (keys, results) = (KeyLayout::new(spec), ResultLayout::new(spec));
        let plan = Plan::without_handles(spec, &keys, &results);
        Self::planned(spec, plan, keys, results, false, epochs)
    }

    /// The same table, whose structures are from now on those for at least so many entries, however few there are; entries that it has are gone. So
    /// tests get at what only large tables do, but for records beside slots, which only entries beyond the first 16,384 have.
    #[must_use]
    pub fn for_at_least(self, entries: usize) -> Self {
        let mut writer = self.lock();
        writer.least = entries;
        writer.begin_bulk(&self.front.epochs, 0);
        self.publish(&mut writer);
        self.finish(&mut writer, false);
        drop(writer);
        self
    }

    fn planned(
        spec: &TableSpec,
        plan: Plan,
        key_layout: KeyLayout,
        result_layout: ResultLayout,
        keeps_counts: bool,
        epochs: Arc<Epochs>,
    ) -> Self {
        let keys = Keys::new(spec, &key_layout);
        let record = plan.record(&keys, result_layout.words, spec.idle_timeout);
        let record = if keeps_counts { record.with_counts() } else { record };
        let mut arena = Arena::new(record, Arc::clone(&epochs));
        let writer = Writer {
            structure: plan.structure(&keys, &mut arena, 0),
            arena,
            keys,
            plan,
            record,
            rule: Rule::default(),
            result: vec![0; result_layout.words],
            least: 0,
        };
        let table = FastTable {
            has_handles: !keeps_counts && !matches!(plan, Plan::Packed(_)),
            keeps_counts,
            front: Front {
                dimensions: Dimensions {
                    key_words: key_layout.words,
                    result_words: result_layout.words,
                    record_words: record.words,
                    stamp: record.stamp,
                },
                shape: AtomicPtr::new(Box::into_raw(Box::new(Shape::Nothing))),
                default: AtomicPtr::new(
                    Box::into_raw(default_words(&result_layout, record.words, &spec.default_action)).cast(),
                ),
                epochs,
            },
            form: TableForm {
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

    /// What compiled code relies on.
    #[must_use]
    #[inline]
    pub fn form(&self) -> &TableForm {
        &self.form
    }

    /// Where the keys go.
    #[must_use]
    pub fn key_layout(&self) -> &KeyLayout {
        &self.form.keys
    }

    /// Whether the table counts hits itself; see [`FastTable::with_counts`].
    #[must_use]
    #[inline]
    pub fn keeps_counts(&self) -> bool {
        self.keeps_counts
    }

    /// Whether hits give the entry's handle; see [`FastTable::without_handles`].
    #[must_use]
    pub fn has_handles(&self) -> bool {
        self.has_handles
    }

    /// Where action data comes from.
    #[must_use]
    pub fn result_layout(&self) -> &ResultLayout {
        &self.form.results
    }

    /// The epochs that readers register with.
    #[must_use]
    pub fn epochs(&self) -> &Arc<Epochs> {
        &self.front.epochs
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

    /// Bytes of the structures, without what waits to be freed.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let writer = self.lock();
        size_of::<Self>() + writer.arena.bytes() + writer.structure.bytes()
    }

    // ------------------------------------------------------------------------------------ writers

    /// Sets what a miss gives: the action and its data, without handle and without [`head::HIT`].
    ///
    /// [`head::HIT`]: crate::fast::head::HIT
    pub fn set_default(&self, action: &ActionCall) {
        self.together(|changes| changes.set_default(action));
    }

    fn replace_default(&self, action: &ActionCall) {
        let front = &self.front;
        let words = default_words(&self.form.results, front.dimensions.record_words, action);
        let old = front.default.swap(Box::into_raw(words).cast(), Ordering::AcqRel);
        let old = std::ptr::slice_from_raw_parts_mut(old, front.default_length());
        // SAFETY: `old` came from `Box::into_raw` of as many words and was just taken out, once. It
        // is retired after that.
        front.epochs.retire(Box::new(unsafe { Retired::new(old) }));
    }

    /// Adds an entry, or replaces the action of the entry with the same handle. Entries that do not
    /// fit the spec are left out: they could not match.
    pub fn insert(&self, entry: &Entry) {
        self.together(|changes| changes.insert(entry));
    }

    /// Removes the entry with this handle and match, if it is there.
    pub fn remove(&self, entry: &Entry) {
        self.together(|changes| changes.remove(entry));
    }

    /// Makes many changes. Where few prefixes are replaced as a whole for each of them, that is done once; readers may see some of the changes before
    /// others. The table is locked meanwhile: nothing else may change it from within.
    pub fn together(&self, change: impl FnOnce(&mut Changes<'_>)) {
        let mut guard = self.lock();
        change(&mut Changes {
            table: self,
            writer: &mut guard,
            rebuild: false,
            removed: Vec::new(),
        });
    }

    /// Replaces all entries by these. Readers see the old ones, then the new ones. What the table has counted for handles that stay, it keeps.
    pub fn bulk_load(&self, entries: &mut dyn Iterator<Item = &Entry>) {
        self.together(|changes| changes.bulk_load(entries));
    }

    fn finish(&self, writer: &mut Writer, rebuild: bool) {
        if rebuild {
            self.publish(writer);
        }
        writer.arena.flush();
        self.entries.store(writer.structure.len(), Ordering::Relaxed);
    }

    fn publish(&self, writer: &mut Writer) {
        let shape = Box::into_raw(Box::new(writer.structure.shape(&mut writer.arena)));
        let old = self.front.shape.swap(shape, Ordering::AcqRel);
        // SAFETY: `old` came from `Box::into_raw` and was just taken out, once. It is retired after
        // that.
        self.front.epochs.retire(Box::new(unsafe { Retired::new(old) }));
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ------------------------------------------------------------------------------------ readers

    /// Looks up to 64 keys up. Bit `i` of `active`: slot `i` has a key. Word `w` of the key of slot
    /// `i` is `keys[w * pitch + i]`; word `r` of its result is written to `results[r * pitch + i]`.
    /// Every active slot gets all words of its result that the chosen action has; other words of it
    /// are unspecified, and results of slots that are not active stay as they are. Returns the mask of hits. With the spec's `idle_timeout`, entries that are
    /// hit get `now_ns` as the time of their last hit.
    ///
    /// # Panics
    /// `pitch` or an array is too small for the active slots.
    pub fn lookup(&self, active: u64, keys: &[u64], results: &mut [u64], pitch: usize, now_ns: u64) -> u64 {
        self.present(&self.front.epochs.enter())
            .lookup(active, keys, results, pitch, now_ns)
    }

    /// The table for many lookups in one go: the guard is from [`Epochs::enter`] of the table's epochs, or from a [`Reader`](crate::fast::Reader) of them, and what is looked up is what is
    /// there now.
    ///
    /// # Panics
    /// The guard is of other epochs.
    #[inline]
    pub fn present<'a>(&'a self, guard: &'a Guard<'_>) -> Present<'a> {
        let front = &self.front;
        assert!(guard.is_of(&front.epochs), "the guard must be of the table's epochs");
        // SAFETY: pointers in `shape` and `default` come from boxes, of that many words, that are retired after they were
        // taken out, and the guard keeps retired ones alive.
        let (shape, default) = unsafe {
            (
                &*front.shape.load(Ordering::Acquire),
                std::slice::from_raw_parts(front.default.load(Ordering::Acquire), front.default_length()),
            )
        };
        Present {
            dimensions: front.dimensions,
            shape,
            default,
            is_prepared: false,
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
        writer.record.stamp?;
        writer.structure.stamp(&writer.arena, handle)
    }
}

/// Hits that the table counts itself, see [`FastTable::with_counts`]. Where it does not, these do nothing.
impl FastTable {
    /// Counts hits of a vector's slots: a row of the heads that were looked up, and one of the packets' bytes. Of entries that have gone since they were hit nothing is counted,
    /// or it is counted for one that took their place. The table is locked meanwhile.
    #[inline]
    pub fn count_hits(&self, slots: u64, heads: &[u64; SLOTS], bytes: &[u64; SLOTS]) {
        self.lock().arena.count(Hits { heads, bytes, slots });
    }

    /// What was counted for the entry with this handle.
    #[must_use]
    pub fn counted(&self, handle: u32) -> HitCount {
        self.lock().counted(handle)
    }

    /// The same, and from now on it is counted from 0.
    pub fn take_counted(&self, handle: u32) -> HitCount {
        let writer = self.lock();
        let counted = writer.counted(handle);
        if let Some(number) = writer.structure.number_of(handle) {
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

/// What compiled code relies on in a table that it looks up: how words lie, and which structures
/// there can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableForm {
    /// Where keys go in the words of a lookup.
    pub keys: KeyLayout,
    /// What a lookup writes.
    pub results: ResultLayout,
    /// See [`is_array`].
    pub is_array: bool,
    /// See [`slot_shift`].
    pub slot_shift: Option<u32>,
}

impl TableForm {
    /// The form of every table with this specification.
    #[must_use]
    pub fn new(spec: &TableSpec) -> Self {
        TableForm {
            keys: KeyLayout::new(spec),
            results: ResultLayout::new(spec),
            is_array: is_array(spec),
            slot_shift: slot_shift(spec),
        }
    }
}

/// Whether a table is an array that compiled code may look into by itself: of exact keys of few bits in all, or none, where nobody wants to
/// know when entries were hit. [`Present::array`] gives it then.
#[must_use]
pub fn is_array(spec: &TableSpec) -> bool {
    let plan = Plan::new(spec, KeyLayout::new(spec).words, ResultLayout::new(spec).words);
    !spec.idle_timeout && matches!(plan, Plan::Nothing | Plan::Direct(_))
}

/// By how many bits a key, which is one word, is shifted to the right to be the number of the slot that its lookup reads first
/// ([`SlotPlaces`]); `None` for tables that never have [so many](SlotPlaces::COUNT) slots.
#[must_use]
pub fn slot_shift(spec: &TableSpec) -> Option<u32> {
    match Plan::new(spec, KeyLayout::new(spec).words, ResultLayout::new(spec).words) {
        Plan::Lpm { width, .. } => width.checked_sub(24),
        _ => None,
    }
}

/// Where slots are that somebody might ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotPlaces {
    /// The first one's address.
    pub start: usize,
    /// Slot `n` is `n + (n & gaps)` times four bytes behind it.
    pub gaps: usize,
}

impl SlotPlaces {
    /// How many slots there are.
    pub const COUNT: usize = 1 << 24;
}

/// Changes of a table that are made together ([`FastTable::together`]).
///
/// Entries are known by their handles. What is told of one may be what it has become by now: `insert` may give the entry that has got a handle since, before `remove` gives
/// the one that had it. So what a table [counts](FastTable::with_counts) for a handle stays with the handle, also from `remove` to `insert`, and whoever makes
/// the changes says with [`FastTable::take_counted`] when an entry is gone for good, before its handle is used again.
pub struct Changes<'a> {
    table: &'a FastTable,
    writer: &'a mut Writer,
    /// Readers need a new shape.
    rebuild: bool,
    /// What was counted for entries that were removed: they may come back.
    removed: Vec<(u32, HitCount)>,
}

impl Changes<'_> {
    /// As [`FastTable::insert`].
    pub fn insert(&mut self, entry: &Entry) {
        if self.writer.compile(&self.table.form.results, entry) {
            let rebuild = self.writer.put(entry.last_hit_ns);
            self.changed(rebuild);
        }
    }

    /// As [`FastTable::remove`]. What was counted for the entry is not lost if one with the same handle is inserted with these changes.
    pub fn remove(&mut self, entry: &Entry) {
        if self.writer.keys.compile(entry, &mut self.writer.rule) {
            let handle = entry.handle.get();
            let counted = self.writer.counted(handle);
            let rebuild = self.writer.take();
            if counted != HitCount::default() && self.writer.structure.number_of(handle).is_none() {
                self.removed.push((handle, counted));
            }
            self.changed(rebuild);
        }
    }

    /// As [`FastTable::set_default`].
    pub fn set_default(&mut self, action: &ActionCall) {
        self.table.replace_default(action);
    }

    /// As [`FastTable::bulk_load`].
    pub fn bulk_load(&mut self, entries: &mut dyn Iterator<Item = &Entry>) {
        let counted = self.writer.all_counted();
        self.removed.extend(counted);
        self.writer.begin_bulk(&self.table.front.epochs, entries.size_hint().0);
        for entry in entries {
            if self.writer.compile(&self.table.form.results, entry) {
                self.writer.put(entry.last_hit_ns);
            }
        }
        self.table.publish(self.writer);
        self.rebuild = false;
    }

    /// What was taken out is not used again before readers have another shape.
    fn changed(&mut self, rebuild: bool) {
        self.rebuild |= rebuild;
        if self.rebuild && !self.writer.structure.may_wait() {
            self.table.publish(self.writer);
            self.rebuild = false;
        }
    }
}

impl Drop for Changes<'_> {
    /// Also where whoever made the changes panicked.
    fn drop(&mut self) {
        for (handle, before) in self.removed.drain(..) {
            if let Some(number) = self.writer.structure.number_of(handle) {
                let counted = self.writer.arena.counted(number);
                self.writer.arena.set_counted(number, counted.and(before));
            }
        }
        self.table.finish(self.writer, self.rebuild);
    }
}

/// A table as an array of pointers to results, one for each possible key, of which null stands for the default's. All are there as long as the
/// guard that the table is present by.
///
/// Of results whole pairs of words may be read.
///
/// Compiled code reads both by plain loads of the machine. Rust's memory model does not reach
/// there; that of the processor does: on x86-64 a load of an aligned word is one load, and loads
/// are not reordered with each other; elsewhere the second depends on the address that the first
/// gives. A record is immutable once published.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Array {
    /// By key. Null where there are no keys: then there is only the default.
    pub places: *const AtomicPtr<AtomicU64>,
    /// The result of a miss.
    pub default: *const AtomicU64,
}

/// A [`FastTable`] as it is while a guard is there.
#[derive(Clone, Copy)]
pub struct Present<'a> {
    dimensions: Dimensions,
    shape: &'a Shape,
    default: &'a [AtomicU64],
    is_prepared: bool,
}

impl<'a> Present<'a> {
    /// As [`FastTable::lookup`].
    ///
    /// # Panics
    /// As there.
    #[inline]
    pub fn lookup(self, active: u64, keys: &[u64], results: &mut [u64], pitch: usize, now_ns: u64) -> u64 {
        let mut batch = Batch::new(self.dimensions, active, keys, results, pitch, self.default, now_ns);
        batch.is_fetched = self.is_prepared;
        self.shape.lookup(&mut batch)
    }

    /// As [`Present::lookup`], and meanwhile asks for what [`Present::prepare`] has found that others will read.
    ///
    /// # Panics
    /// As there.
    #[inline(always)]
    pub fn lookup_meanwhile(
        self,
        active: u64,
        keys: &[u64],
        results: &mut [u64],
        pitch: usize,
        now_ns: u64,
        fetches: &mut Fetches,
    ) -> u64 {
        let mut batch = Batch::new(self.dimensions, active, keys, results, pitch, self.default, now_ns);
        batch.is_fetched = self.is_prepared;
        batch.meanwhile = (!fetches.is_empty()).then_some(&*fetches);
        let hits = self.shape.lookup(&mut batch);
        fetches.clear();
        hits
    }

    /// Begins a lookup for which others can be done before its results are wanted: finds out where these are, and asks for them. Only where that may be far; what is
    /// read for it should have been asked for long ago. If one is begun already, or the structure is none for it, nothing happens.
    ///
    /// # Panics
    /// As [`FastTable::lookup`].
    #[inline]
    pub fn begin(self, active: u64, keys: &[u64], pitch: usize, begun: &mut Begun<'a>) {
        if !begun.is_some() {
            let batch = Batch::of_keys(self.dimensions, active, keys, pitch, self.default);
            self.shape.begin(&batch, begun);
        }
    }

    /// The rest of the lookup that was begun, which is none any more then. `None`: none was, or it was another one: of another table, or of this one before it
    /// became another structure, of other slots, or of keys at another place.
    ///
    /// Keys at that place are to be those that were there when it was begun; of others nothing is known but that results are some of this table's.
    ///
    /// # Panics
    /// As [`FastTable::lookup`].
    #[inline(always)]
    pub fn finish(
        self,
        active: u64,
        keys: &[u64],
        results: &mut [u64],
        pitch: usize,
        now_ns: u64,
        begun: &mut Begun<'a>,
    ) -> Option<u64> {
        if !begun.is_some() {
            return None;
        }
        let batch = Batch::new(self.dimensions, active, keys, results, pitch, self.default, now_ns);
        self.shape.finish(&batch, begun)
    }

    /// Asks the processor to fetch what a lookup of the same keys will read, so that it can do so
    /// for several tables at once. Where that is in the cache anyway, or not known beforehand, or the lookup asks for it while it searches, nothing happens. What is better
    /// asked for bit by bit is left for the next [`Present::lookup_meanwhile`].
    ///
    /// # Panics
    /// As [`FastTable::lookup`].
    #[inline]
    pub fn prepare(self, active: u64, keys: &[u64], pitch: usize, later: &mut Fetches) {
        let slots = self.dimensions.slots_with_keys(active, keys, pitch);
        self.shape.prepare(active, &keys[..slots], later);
    }

    /// The array that the table is, if it is one ([`is_array`]).
    #[must_use]
    #[inline]
    pub fn array(self) -> Option<Array> {
        let places = match self.shape {
            Shape::Direct(direct) if self.dimensions.stamp.is_none() => direct.places(),
            Shape::Nothing => std::ptr::null(),
            _ => return None,
        };
        Some(Array {
            places,
            default: self.default.as_ptr(),
        })
    }

    #[cfg(test)]
    pub(super) fn shape(self) -> &'a Shape {
        self.shape
    }

    /// Where the slots of a table are that [may have some](slot_shift), if it has so many entries that asking for them early is worth while.
    #[must_use]
    #[inline]
    pub fn slots(self) -> Option<SlotPlaces> {
        match self.shape {
            Shape::Dir(dir) => dir.slot_places(),
            _ => None,
        }
    }

    /// For lookups of keys that [`Present::prepare`] has been told of: nothing is asked for twice.
    #[must_use]
    pub fn prepared(self) -> Self {
        Present {
            is_prepared: true,
            ..self
        }
    }
}

impl Drop for FastTable {
    fn drop(&mut self) {
        let default = std::ptr::slice_from_raw_parts_mut(*self.front.default.get_mut(), self.front.default_length());
        // SAFETY: both came from `Box::into_raw`, and no reader can exist any more.
        unsafe {
            drop(Box::from_raw(*self.front.shape.get_mut()));
            drop(Box::from_raw(default));
        }
    }
}

/// Words of the result of a miss: as many as a record has, for some structures compare before they choose. Whoever reads pairs of words finds the last
/// one's second, too.
fn default_length(record_words: usize) -> usize {
    record_words.next_multiple_of(2)
}

/// The result of a miss.
fn default_words(layout: &ResultLayout, record_words: usize, action: &ActionCall) -> Box<[AtomicU64]> {
    let mut words = vec![0; default_length(record_words)];
    layout.pack_call(action, &mut words[..layout.words]);
    words.into_iter().map(AtomicU64::new).collect()
}

impl Writer {
    /// Fills `rule` and `result`.
    fn compile(&mut self, layout: &ResultLayout, entry: &Entry) -> bool {
        if !self.keys.compile(entry, &mut self.rule) {
            return false;
        }
        layout.pack_entry(entry.handle.get(), &entry.action, &mut self.result);
        true
    }

    fn begin_bulk(&mut self, epochs: &Arc<Epochs>, expected: usize) {
        self.arena = Arena::new(self.record, Arc::clone(epochs));
        let expected = expected.max(self.least);
        self.structure = self.plan.structure(&self.keys, &mut self.arena, expected);
        self.structure.defer();
    }

    fn counted(&self, handle: u32) -> HitCount {
        let number = self.structure.number_of(handle);
        number.map_or(HitCount::default(), |number| self.arena.counted(number))
    }

    /// Of all entries that have counted something. Nobody is asked where records do not count.
    fn all_counted(&self) -> Vec<(u32, HitCount)> {
        if self.record.counts.is_none() {
            return Vec::new();
        }
        let counted = |(handle, number)| (handle, self.arena.counted(number));
        let all = self.structure.numbers().map(counted);
        all.filter(|(_, count)| *count != HitCount::default()).collect()
    }

    /// Puts the rule in; true if readers need a new shape.
    fn put(&mut self, stamp: u64) -> bool {
        self.structure
            .put(&mut self.arena, &self.keys, &self.rule, &self.result, stamp)
    }

    /// Takes the rule out; true if readers need a new shape.
    fn take(&mut self) -> bool {
        self.structure.take(&mut self.arena, &self.rule)
    }
}
