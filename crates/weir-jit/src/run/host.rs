//! The host of a pipeline: the callbacks of compiled code.

use super::suspended::Suspended;
use crate::layout::{ROW_STRIDE, VECTOR};
use crate::sites::CallArguments;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_ir::{Bits, TableId, ValueSetId};
use weir_table::fast::{ResultLayout, head};

/// The callbacks of compiled code: externs, counters, cells and direct resources.
pub trait Host {
    /// An extern call. `false` drops the packet, if the call may do that.
    fn call(&mut self, call: usize, slot: usize, packet: &[u8], arguments: &mut CallArguments) -> bool;

    /// Precedes [`Host::call_extern`] and [`Host::begin_extern`]: the packet before the call, whose
    /// payload begins at byte `consumed`.
    fn before_extern(&mut self, call: usize, slot: usize, packet: &[u8], consumed: usize) {
        let _ = (call, slot, packet, consumed);
    }

    /// A call of an extern that is not the architecture's
    /// ([`weir_ir::pipeline::CallKind::Extern`]). `words` are the scalars of all arguments in the
    /// order of the declaration, a header's validity before its fields, then those of the results.
    /// Each takes whole words, the lowest first. Outputs are written there; bits beyond a scalar's
    /// width are cut off. `payload` is the packet from the parser's position on. `false` drops the
    /// packet.
    fn call_extern(&mut self, call: usize, slot: usize, payload: &mut [u8], words: &mut [u64]) -> bool;

    /// Begins a call for which packets may wait
    /// ([`weir_ir::pipeline::CallKind::ExternBegin`]). `words` are the scalars of the arguments
    /// before the call. `payload` is the packet from byte `consumed` on. Returns whether the packet
    /// must wait: then [`Host::suspend`] follows for its slot, and otherwise
    /// [`Host::finish_extern`].
    fn begin_extern(&mut self, call: usize, slot: usize, consumed: usize, payload: &mut [u8], words: &[u64]) -> bool;

    /// Gives the outputs of a call: the scalars of `out` and `inout` arguments in
    /// the order of the declaration, then those of the results. `false` drops the packet.
    fn finish_extern(&mut self, call: usize, slot: usize, words: &mut [u64]) -> bool;

    /// Takes packets out of the vector, to continue them later: see
    /// [`LoadedVector::resume`](super::LoadedVector::resume).
    fn suspend(&mut self, suspended: Suspended<'_>);

    /// Counts the packet of a slot at an index of a counter
    /// ([`weir_ir::pipeline::CallKind::Count`]).
    fn count(&mut self, counter: usize, index: u64, slot: usize);

    /// Counts the packets of several slots, as [`Host::count`] does for one.
    fn count_all(&mut self, counter: usize, slots: u64, indexes: Indexes<'_>);

    /// Reads a scalar of a cell of an array ([`weir_ir::pipeline::CallKind::ReadCell`]).
    fn read_cell(&mut self, array: usize, scalar: usize, index: u64) -> u64;

    /// Writes a scalar of a cell of an array ([`weir_ir::pipeline::CallKind::WriteCell`]).
    fn write_cell(&mut self, array: usize, scalar: usize, index: u64, value: u64);

    /// All cells of an array with [`weir_ir::pipeline::FlatCells`], with at least as many words as
    /// that declares. They stay the same while a vector runs.
    fn cells(&mut self, array: usize) -> Option<&Arc<[AtomicU64]>>;

    /// Hashes bytes. Algorithms are numbered as in [`weir_ir::pipeline::CallKind::Hash`].
    fn hash(&mut self, algorithm: u32, data: &[u8]) -> u64;

    /// Whether values are a member of the set. One value per field, each in as many words as it
    /// needs and at least one, the lowest word first.
    fn value_set_contains(&mut self, set: ValueSetId, keys: &[u64]) -> bool;

    /// Reports that a table was looked up for some packets. The host counts, executes direct
    /// resources, and resolves entries that refer to members or groups.
    fn looked_up(&mut self, lookup: &mut LookedUp<'_>);

    /// Reports that [`Host::looked_up`] will follow for these packets, at once or at the end of the
    /// vector, perhaps for fewer of them. The host may prefetch the data that it will need.
    fn prefetch_hits(&mut self, _lookup: &LookedUp<'_>) {}
}

/// The indexes at which packets are counted.
#[derive(Debug, Clone, Copy)]
pub enum Indexes<'a> {
    /// All at the same index.
    Same(u64),
    /// Each slot at its own index.
    Each(&'a [u64]),
}

/// The outcome of a lookup for a vector of packets.
pub struct LookedUp<'a> {
    /// The table.
    pub table: TableId,
    /// Slots that were looked up.
    pub active: u64,
    /// Slots that hit.
    pub hits: u64,
    /// The keys: word `w` of slot `i` is at `w * ROW_STRIDE + i`. Selector keys follow the table's
    /// own, each in whole words. Empty for lookups that code did inline, in tables of
    /// [`Options::reorderable`](crate::Options::reorderable).
    pub keys: &'a [u64],
    pub(super) results: &'a mut [u64],
    pub(super) layout: &'a ResultLayout,
}

impl LookedUp<'_> {
    /// Result rows, as [`weir_table::fast::ResultLayout`] says; only heads for lookups that code
    /// did inline.
    #[must_use]
    #[inline(always)]
    pub fn results(&self) -> &[u64] {
        self.results
    }

    /// Replaces the result of a slot that hit: an action, by its index in the table, with its data.
    /// The handle stays that of the entry. For entries that refer to members or groups.
    ///
    /// # Panics
    /// There is no such slot or action, the data do not have the widths of the action's parameters,
    /// or code did the lookup inline.
    pub fn set_hit(&mut self, slot: usize, action: usize, data: &[Bits]) {
        assert!(slot < VECTOR, "a vector has {VECTOR} slots");
        let parameters = &self.layout.actions[action];
        let widths = parameters.iter().map(|p| p.width);
        assert!(
            widths.eq(data.iter().map(Bits::width)),
            "the data are not those of the action"
        );
        let words = self.layout.pack_hit(head::handle(self.results[slot]), action, data);
        for (row, word) in words.into_iter().enumerate() {
            self.results[row * ROW_STRIDE + slot] = word;
        }
    }
}
