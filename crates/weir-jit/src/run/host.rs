//! The host of a pipeline: the callbacks of compiled code.

use crate::layout::{PITCH, VECTOR};
use crate::sites::CallArguments;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_ir::{Bits, TableId, ValueSetId};
use weir_table::fast::{ResultLayout, head};

/// The callbacks of compiled code: externs, counters, cells and direct resources.
pub trait Host {
    /// An extern call. `false` ends the packet's way, where the call may do that.
    fn call(&mut self, call: usize, slot: usize, packet: &[u8], arguments: &mut CallArguments) -> bool;

    /// Counts the packet of a slot at an index of a counter
    /// ([`weir_ir::pipeline::CallKind::Count`]).
    fn count(&mut self, counter: usize, index: u64, slot: usize);

    /// Counts the packets of many slots, as [`Host::count`] does for one.
    fn count_all(&mut self, counter: usize, slots: u64, at: Indexes<'_>);

    /// A scalar of a cell of an array ([`weir_ir::pipeline::CallKind::ReadCell`]).
    fn read_cell(&mut self, array: usize, scalar: usize, index: u64) -> u64;

    /// Sets a scalar of a cell of an array ([`weir_ir::pipeline::CallKind::WriteCell`]).
    fn write_cell(&mut self, array: usize, scalar: usize, index: u64, value: u64);

    /// All cells of an array that [`weir_ir::pipeline::FlatCells`] are in, in as many words as it
    /// says. They stay the same while a vector is run.
    fn cells(&mut self, array: usize) -> Option<&Arc<[AtomicU64]>>;

    /// Hashes bytes; the number of the algorithm is that of [`weir_ir::pipeline::CallKind::Hash`].
    fn hash(&mut self, algorithm: u32, data: &[u8]) -> u64;

    /// Whether values are a member of the set: one per field, each in as many words as it needs and
    /// at least one, the lowest first.
    fn value_set_contains(&mut self, set: ValueSetId, keys: &[u64]) -> bool;

    /// A table was looked up for some packets. The host counts, runs direct resources, and resolves
    /// entries that name no action.
    fn looked_up(&mut self, lookup: &mut LookedUp<'_>);

    /// A table was looked up for some packets: [`Host::looked_up`] follows, at once or when it is
    /// certain who got there. What it reads then can be asked for now.
    fn will_be_told(&mut self, _lookup: &LookedUp<'_>) {}
}

/// Where packets are counted.
#[derive(Debug, Clone, Copy)]
pub enum Indexes<'a> {
    /// All at the same index.
    Same(u64),
    /// Each slot at its own.
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
    /// From the first key row on; word `w` of slot `i` is at `w * PITCH + i`. Selector keys follow
    /// the table's own, each in whole words. Nothing where code has looked into the table by
    /// itself, which it does with those of [`Options::plain`](crate::Options::plain) only.
    pub keys: &'a [u64],
    pub(super) results: &'a mut [u64],
    pub(super) layout: &'a ResultLayout,
}

impl LookedUp<'_> {
    /// Result rows, as [`weir_table::fast::ResultLayout`] says; heads only, of tables that code has
    /// looked into by itself.
    #[must_use]
    #[inline(always)]
    pub fn results(&self) -> &[u64] {
        self.results
    }

    /// Gives a slot that hit another result: an action, by its index in the table, with its data.
    /// The handle stays that of the entry. It is for entries that name members or groups.
    ///
    /// # Panics
    /// There is no such slot or action, the data do not have the widths of the action's parameters,
    /// or code has looked into the table by itself.
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
            self.results[row * PITCH + slot] = word;
        }
    }
}
