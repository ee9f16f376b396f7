//! Everything that outlives a packet: tables, counters, registers, meters, profiles, value sets,
//! digests, log messages and the generator of random numbers.
//!
//! It can be cloned, so that a test can run the same packet twice from the same state.

use crate::cells::Cells;
use crate::custom_crc::CustomCrcs;
use crate::filter::{Lpf, Wred};
use crate::generator::Generators;
use crate::hash::Algorithm;
use crate::key_bytes::KeyBytes;
use crate::meter::{Color, Meter};
use crate::register::RegisterArray;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_ir::{ActionCall, Bits, ExternId, Loc, TableId, TypeSpec, ValueSetId};
use weir_table::{ActionProfile, Table};

/// Digest messages and log messages that are kept for the control plane.
pub const MESSAGE_CAPACITY: usize = 4096;

/// Packets and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, as received.
    pub bytes: u64,
}

impl Count {
    /// Adds a packet; wraps around.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    /// Adds what was counted elsewhere; wraps around.
    pub fn join(&mut self, other: Count) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}

/// The unit of a counter or meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Both.
    Both,
}

/// An extern instance's state.
#[derive(Debug, Clone)]
pub enum Resource {
    /// It has none.
    None,
    /// An array of counters.
    Counter(Unit, Cells<Count>),
    /// A counter per table entry, by handle.
    DirectCounter(Unit, Cells<Count>),
    /// An array of meters.
    Meter(Unit, Cells<Meter>),
    /// A meter per table entry, by handle.
    DirectMeter(Unit, Cells<Meter>),
    /// An array of registers.
    Register(RegisterArray),
    /// An array of low-pass filters, or one per table entry, by handle.
    Lpf(Cells<Lpf>),
    /// An array of early random drops, or one per table entry, by handle.
    Wred(Cells<Wred>),
    /// An action profile, or an action selector with its hash.
    Profile(ActionProfile, Option<Algorithm>),
}

/// A message to the control plane that `digest` made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Name of the data's type, as in P4Info.
    pub name: String,
    /// Names (paths) and values of its scalars.
    pub fields: Vec<(String, Bits)>,
    /// For each header among the data in order whether it is valid.
    pub valid: Vec<bool>,
    /// When, on the switch's clock in ns.
    pub time_ns: u64,
}

/// A message that `log_msg` or a failed `assert` made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// The text.
    pub text: String,
    /// The call.
    pub loc: Loc,
    /// When, on the switch's clock in ns.
    pub time_ns: u64,
}

/// A queue that forgets its oldest messages when it is full, and counts them.
#[derive(Debug, Clone)]
pub struct Messages<T> {
    queue: VecDeque<T>,
    lost: u64,
}

impl<T> Default for Messages<T> {
    fn default() -> Self {
        Messages {
            queue: VecDeque::new(),
            lost: 0,
        }
    }
}

impl<T> Messages<T> {
    /// Adds a message.
    pub fn push(&mut self, message: T) {
        if self.queue.len() >= MESSAGE_CAPACITY {
            self.queue.pop_front();
            self.lost += 1;
        }
        self.queue.push_back(message);
    }

    /// Takes the oldest message.
    pub fn pop(&mut self) -> Option<T> {
        self.queue.pop_front()
    }

    /// All messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.queue.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many were forgotten.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl<T> IntoIterator for Messages<T> {
    type Item = T;
    type IntoIter = std::collections::vec_deque::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.queue.into_iter()
    }
}

/// A table and what the data plane keeps beside it.
#[derive(Debug, Clone)]
pub struct TableState {
    /// The table.
    pub table: Table,
    /// Lookups that hit.
    pub hits: u64,
    /// Lookups that missed.
    pub misses: u64,
    /// Direct counters and meters.
    pub direct: Vec<ExternId>,
    /// The action of an empty group, if it is not the default action.
    pub(crate) empty_group: Option<ActionCall>,
    /// For tables with a profile: per action of the profile its index in the table.
    pub(crate) profile_actions: Vec<Option<usize>>,
}

/// The state of a program.
#[derive(Debug, Clone)]
pub struct State {
    /// By [`TableId`].
    pub(crate) tables: Vec<TableState>,
    /// By [`ExternId`].
    pub(crate) resources: Vec<Resource>,
    /// By [`ValueSetId`]: tables whose entries all do the same.
    pub(crate) value_sets: Vec<Table>,
    /// Messages of `digest`.
    pub digests: Messages<Digest>,
    /// Messages of `log_msg` and of failed assertions.
    pub log: Messages<LogMessage>,
    /// Parameters of custom CRCs.
    pub(crate) custom_crcs: CustomCrcs,
    /// The port metadata that the control plane has configured, as the bytes that parsers read, if
    /// the architecture has any.
    pub port_metadata: BTreeMap<u32, Vec<u8>>,
    /// The keys that the control plane has given to externs, by instance and number: to give them
    /// again, not to show them.
    pub extern_keys: BTreeMap<(ExternId, u64), KeyBytes>,
    /// Packet generators, where the architecture has such.
    pub generators: Option<Box<Generators>>,
    /// Parser runs that ended with each member of `error` (not with NoError).
    pub parser_errors: BTreeMap<u32, u64>,
    /// Bytes of the frame check sequence: counts of bytes include them, packets do not have them.
    frame_check: u64,
    random: u64,
    /// A table or value set was lent to be changed, or members of selectors came or went with their
    /// ports.
    touched: bool,
}

impl State {
    /// Bytes after every packet that counters, meters and `pkt_length` include: the frame check
    /// sequence, which is 4 on a Tofino and 0 elsewhere.
    #[must_use]
    pub fn frame_check(&self) -> u64 {
        self.frame_check
    }

    /// Sets how many bytes after a packet are counted with it.
    pub fn set_frame_check(&mut self, bytes: u64) {
        self.frame_check = bytes;
    }

    pub(crate) fn new(tables: Vec<TableState>, resources: Vec<Resource>, value_sets: Vec<Table>) -> Self {
        State {
            tables,
            resources,
            value_sets,
            digests: Messages::default(),
            log: Messages::default(),
            custom_crcs: CustomCrcs::default(),
            frame_check: 0,
            port_metadata: BTreeMap::new(),
            extern_keys: BTreeMap::new(),
            generators: None,
            parser_errors: BTreeMap::new(),
            random: 0x9e37_79b9_7f4a_7c15,
            touched: true,
        }
    }

    /// A table of the program.
    #[must_use]
    pub fn table(&self, id: TableId) -> Option<&TableState> {
        self.tables.get(id.index())
    }

    /// A table of the program, to be changed.
    pub fn table_mut(&mut self, id: TableId) -> Option<&mut TableState> {
        self.touched = true;
        self.tables.get_mut(id.index())
    }

    /// Whether tables or value sets may have changed since the last call: one flag for all, so that
    /// [`Table::has_changed`] of each need be read only if it is set. The call clears the flag. It
    /// has one consumer: the engine that copies changes to compiled code's tables.
    #[inline]
    pub fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    /// An extern instance's state; [`Resource::None`] where there is none.
    #[must_use]
    pub fn resource(&self, id: ExternId) -> &Resource {
        self.resources.get(id.index()).unwrap_or(&Resource::None)
    }

    /// An extern instance's state, to be changed.
    pub fn resource_mut(&mut self, id: ExternId) -> Option<&mut Resource> {
        self.resources.get_mut(id.index())
    }

    /// The action profile or selector.
    #[must_use]
    pub fn profile(&self, id: ExternId) -> Option<&ActionProfile> {
        match self.resource(id) {
            Resource::Profile(profile, _) => Some(profile),
            _ => None,
        }
    }

    /// The action profile or selector, to be changed.
    pub fn profile_mut(&mut self, id: ExternId) -> Option<&mut ActionProfile> {
        match self.resource_mut(id) {
            Some(Resource::Profile(profile, _)) => Some(profile),
            _ => None,
        }
    }

    /// A parser value set: a table without actions, whose entries are the members.
    #[must_use]
    pub fn value_set(&self, id: ValueSetId) -> Option<&Table> {
        self.value_sets.get(id.index())
    }

    /// A parser value set, to be changed. The action of members is the one with index 0.
    pub fn value_set_mut(&mut self, id: ValueSetId) -> Option<&mut Table> {
        self.touched = true;
        self.value_sets.get_mut(id.index())
    }

    /// The cells of a counter; those of a direct one are by entry.
    fn counter(&mut self, id: ExternId) -> Option<&mut Cells<Count>> {
        match self.resources.get_mut(id.index()) {
            Some(Resource::Counter(_, cells) | Resource::DirectCounter(_, cells)) => Some(cells),
            _ => None,
        }
    }

    /// Adds a packet to a counter; nothing beyond its end.
    pub fn count(&mut self, id: ExternId, index: u64, bytes: u64) {
        if let Some(count) = self.counter(id).and_then(|cells| cells.get_mut(index)) {
            count.add(bytes);
        }
    }

    /// Adds packets to one index of a counter; nothing beyond its end.
    pub fn count_many(&mut self, id: ExternId, index: u64, packets: u64, bytes: u64) {
        if let Some(count) = self.counter(id).and_then(|cells| cells.get_mut(index)) {
            count.packets = count.packets.wrapping_add(packets);
            count.bytes = count.bytes.wrapping_add(bytes);
        }
    }

    /// Corrects a byte meter for a packet whose length differs from the one that was charged.
    pub fn correct_meter(&mut self, id: ExternId, index: u64, color: Color, taken: u64, bytes: u64) {
        if let Some(Resource::Meter(Unit::Bytes, cells) | Resource::DirectMeter(Unit::Bytes, cells)) =
            self.resources.get_mut(id.index())
            && let Some(meter) = cells.get_mut(index)
        {
            meter.correct(color, taken, bytes);
        }
    }

    /// Adds packets to a counter: indexes and bytes.
    pub fn count_each(&mut self, id: ExternId, packets: impl Iterator<Item = (u64, u64)> + Clone) {
        if let Some(cells) = self.counter(id) {
            cells.fetch(packets.clone().map(|(index, _)| index));
            cells.update(packets, Count::add);
        }
    }

    /// The register array of this number, if it is one.
    fn register_mut(&mut self, id: ExternId) -> Option<&mut RegisterArray> {
        match self.resources.get_mut(id.index()) {
            Some(Resource::Register(register)) => Some(register),
            _ => None,
        }
    }

    /// A scalar of a register's cell, the last 64 bits of it; 0 beyond the end.
    #[must_use]
    pub fn register_scalar(&self, id: ExternId, scalar: usize, index: u64) -> u64 {
        match self.resources.get(id.index()) {
            Some(Resource::Register(register)) => register.scalar(scalar, index),
            _ => 0,
        }
    }

    /// Sets a scalar of a register's cell, modulo its width; nothing beyond the end.
    pub fn set_register_scalar(&mut self, id: ExternId, scalar: usize, index: u64, value: u64) {
        if let Some(register) = self.register_mut(id) {
            register.set_scalar(scalar, index, value);
        }
    }

    /// The cells of a register where they lie, if it is small enough to lie in one place; of those
    /// of entries as many as there may be handles.
    pub fn register_cells(&mut self, id: ExternId) -> Option<&Arc<[AtomicU64]>> {
        let State { tables, resources, .. } = self;
        let Some(Resource::Register(register)) = resources.get_mut(id.index()) else {
            return None;
        };
        let handles = |table: &TableId| tables.get(table.index()).map_or(1, |t| t.table.handle_limit());
        register
            .cells
            .flat(register.tables.iter().map(handles).max().unwrap_or(1))
    }

    /// Notes lookups of a table.
    #[inline]
    pub fn looked_up(&mut self, table: TableId, hits: u32, misses: u32) {
        if let Some(state) = self.tables.get_mut(table.index()) {
            state.hits += u64::from(hits);
            state.misses += u64::from(misses);
        }
    }

    /// Adds packets to the direct counters of the entries they hit: handles and bytes.
    /// [`State::fetch_counts`] should come first.
    pub fn count_hits(&mut self, table: TableId, hits: impl Iterator<Item = (u32, u64)> + Clone) {
        let State { tables, resources, .. } = self;
        let Some(state) = tables.get(table.index()) else { return };
        for id in &state.direct {
            if let Some(Resource::DirectCounter(_, cells)) = resources.get_mut(id.index()) {
                let hits = hits.clone().map(|(handle, bytes)| (u64::from(handle), bytes));
                cells.update(hits, Count::add);
            }
        }
    }

    /// Adds hits of an entry that were counted elsewhere to its direct counters.
    pub fn add_hits(&mut self, table: TableId, handle: u32, hits: Count) {
        let State { tables, resources, .. } = self;
        let Some(state) = tables.get(table.index()) else { return };
        for id in &state.direct {
            if let Some(Resource::DirectCounter(_, cells)) = resources.get_mut(id.index())
                && let Some(cell) = cells.get_mut(handle.into())
            {
                cell.join(hits);
            }
        }
    }

    /// Prefetches the counters of entries whose hits are counted soon, if they may not be cached.
    pub fn fetch_counts(&self, table: TableId, handles: impl Iterator<Item = u32> + Clone) {
        let Some(state) = self.tables.get(table.index()) else {
            return;
        };
        for id in &state.direct {
            if let Some(Resource::DirectCounter(_, cells)) = self.resources.get(id.index()) {
                cells.fetch(handles.clone().map(u64::from));
            }
        }
    }

    /// A port came up or went down: what watches it takes part in the choices of selectors or does
    /// not.
    pub fn port_changed(&mut self, port: u32, is_down: bool) {
        self.touched = true;
        for resource in &mut self.resources {
            if let Resource::Profile(profile, _) = resource {
                profile.port_changed(port, is_down);
            }
        }
        // Entries have actions of their own to choose from only where there is a selector.
        for state in &mut self.tables {
            if matches!(
                state.table.spec().implementation,
                weir_table::Implementation::Selector(_)
            ) {
                state.table.port_changed(port, is_down);
            }
        }
    }

    /// Forgets the direct counters, meters, registers and filters of an entry that was deleted.
    pub fn forget_entry(&mut self, table: TableId, handle: u32) {
        let Some(state) = self.tables.get(table.index()) else {
            return;
        };
        for id in &state.direct {
            match self.resources.get_mut(id.index()) {
                Some(Resource::DirectCounter(_, cells)) => {
                    cells.get_mut(handle.into()).map(std::mem::take);
                }
                Some(Resource::DirectMeter(_, cells)) => {
                    cells.get_mut(handle.into()).map(std::mem::take);
                }
                Some(Resource::Register(register)) => register.cells.reset(handle.into()),
                Some(Resource::Lpf(cells)) => cells.reset(handle.into()),
                Some(Resource::Wred(cells)) => cells.reset(handle.into()),
                _ => {}
            }
        }
    }

    /// Starts the random numbers anew; equal seeds give equal numbers.
    pub fn seed(&mut self, seed: u64) {
        self.random = seed ^ 0x9e37_79b9_7f4a_7c15;
    }

    /// The next random number (SplitMix64).
    pub(crate) fn next_random(&mut self) -> u64 {
        split_mix(&mut self.random)
    }
}

/// The next random number after a state (SplitMix64).
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Names (paths below `prefix`) and widths of the scalars of a type, in order. A header has no
/// scalar for its validity here. A varbit counts with its largest width.
#[must_use]
pub fn scalars(ty: &TypeSpec, prefix: &str) -> Vec<(String, u32)> {
    let below = |name: &str| {
        if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}.{name}")
        }
    };
    match ty {
        TypeSpec::Opaque(_) | TypeSpec::Void | TypeSpec::String => Vec::new(),
        TypeSpec::Bool => vec![(prefix.to_owned(), 1)],
        TypeSpec::Bit(w) | TypeSpec::Int(w) | TypeSpec::Varbit(w) | TypeSpec::SerializableEnum(_, w, _) => {
            vec![(prefix.to_owned(), *w)]
        }
        TypeSpec::Error | TypeSpec::Enum(..) => vec![(prefix.to_owned(), 32)],
        TypeSpec::Tuple(fields) => fields
            .iter()
            .enumerate()
            .flat_map(|(i, t)| scalars(t, &below(&format!("f{i}"))))
            .collect(),
        TypeSpec::Struct(_, fields) | TypeSpec::Header(_, fields) | TypeSpec::HeaderUnion(_, fields) => {
            fields.iter().flat_map(|(name, t)| scalars(t, &below(name))).collect()
        }
        TypeSpec::Stack(element, n) => (0..*n)
            .flat_map(|i| scalars(element, &format!("{prefix}[{i}]")))
            .collect(),
        TypeSpec::New(_, inner, _) => scalars(inner, prefix),
    }
}
