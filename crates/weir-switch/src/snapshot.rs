//! What control planes have made of a switch, as pieces that make another switch of the same
//! program like it.

use crate::control::{Cell, ControlError, Transaction, Write, WriteResult};
use crate::replication::Replication;
use crate::switch::Switch;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use weir_arch::{CUSTOM_CRC_WIDTHS, Cells, Count, GeneratorWrite, MASKS, Resource};
use weir_ir::{ExternId, TableId, ValueSetId};
use weir_table::{EntryHandle, EntryRef, NewEntry, OpResult, ProfileOp, Table, TableOp};

/// Bytes of a generator's buffer in a piece.
const BUFFER_PIECE: u32 = 1024;
/// Ports of all pipes of a device with packet generators.
const GENERATOR_PORTS: u32 = 512;

/// A piece of a switch's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Kept {
    /// A change, and the number of the entry that it made if it made one. Later pieces name entries
    /// and their direct resources by that number.
    Change(Write, Option<u32>),
    /// All groups, nodes and sessions.
    Replication(Box<Replication>),
}

/// What counters hold that have counted something: by instance and index, which of direct counters
/// is the entry's number.
pub type CounterValues = BTreeMap<(ExternId, u64), Count>;

impl Switch {
    /// The state as pieces, in an order in which [`Restoring`] takes them: tables with all entries,
    /// profiles, value sets, replication, packet generators, ports' metadata, rates and capacities
    /// of queues, parameters of custom CRCs, keys of externs, settings of meters and filters, and
    /// registers. Counters are left out ([`Switch::counter_values`]), and so is what packets leave
    /// in meters and filters.
    pub fn keep(&self, mut each: impl FnMut(Kept)) {
        each(Kept::Replication(Box::new(self.replication.clone())));
        let mut change = |write| each(Kept::Change(write, None));
        for (port, bytes) in &self.state.port_metadata {
            change(Write::PortMetadata(*port, Some(bytes.clone())));
        }
        for width in CUSTOM_CRC_WIDTHS {
            if let Some(parameters) = self.state.given_custom_crc(width) {
                change(Write::CustomCrc(width, Some(parameters)));
            }
        }
        for calculation in self.state.custom_calculations() {
            if let Some(parameters) = self.state.given_calculation(calculation.number) {
                change(Write::Calculation(calculation.number, Some(parameters)));
            }
        }
        for (port, config) in self.queue_configs() {
            change(Write::Queue(port, Some(config)));
        }
        for ((id, index), key) in &self.state.extern_keys {
            change(Write::Key(*id, *index, key.clone()));
        }
        self.keep_generators(&mut change);
        let program = self.program();
        for id in program.externs.ids() {
            if let Some(profile) = self.state.profile(id) {
                let members = profile
                    .members()
                    .map(|(m, what)| ProfileOp::InsertMember(m, what.clone()));
                let groups = profile
                    .groups()
                    .map(|(g, what)| ProfileOp::InsertGroup(g, what.clone()));
                members.chain(groups).for_each(|op| change(Write::Profile(id, op)));
            }
        }
        for id in program.tables.ids() {
            if let Some(state) = self.state.table(id) {
                keep_table(&state.table, |op, handle| {
                    each(Kept::Change(Write::Table(id, op), handle));
                });
            }
        }
        for id in program.value_sets.ids() {
            if let Some(set) = self.state.value_set(id) {
                keep_entries(set, |op, handle| each(Kept::Change(Write::ValueSet(id, op), handle)));
            }
        }
        for id in program.externs.ids() {
            self.keep_cells(id, &mut |write| each(Kept::Change(write, None)));
        }
    }

    /// What counters hold that have counted something.
    #[must_use]
    pub fn counter_values(&self) -> CounterValues {
        let mut values = CounterValues::new();
        for id in self.program().externs.ids() {
            if let Resource::Counter(_, cells) | Resource::DirectCounter(_, cells) = self.state.resource(id) {
                let counted = cells.written().filter(|(_, count)| **count != Count::default());
                values.extend(counted.map(|(index, count)| ((id, index), *count)));
            }
        }
        values.extend(self.all_counted_apart());
        values
    }

    fn keep_generators(&self, change: &mut impl FnMut(Write)) {
        let Some(generators) = self.generators() else { return };
        let mut change = |write| change(Write::Generator(write));
        let model = generators.model();
        for port in 0..GENERATOR_PORTS {
            let what = generators.port(port);
            if what != weir_arch::GeneratorPort::default() {
                change(GeneratorWrite::Port { port, what });
            }
        }
        for pipe in 0..model.pipes {
            for mask in 0..MASKS as u32 {
                if let Ok(ports) = generators.mask(pipe, mask)
                    && ports != 0
                {
                    change(GeneratorWrite::Mask { pipe, mask, ports });
                }
            }
            for offset in (0..weir_arch::BUFFER as u32).step_by(BUFFER_PIECE as usize) {
                let bytes = generators.buffer(pipe, offset, BUFFER_PIECE).unwrap_or_default();
                if bytes.iter().any(|b| *b != 0) {
                    change(GeneratorWrite::Buffer { pipe, offset, bytes });
                }
            }
            for app in 0..model.applications {
                if let Ok((what, counts)) = generators.application(pipe, app)
                    && *what != weir_arch::Application::default()
                {
                    let what = Box::new(what.clone());
                    change(GeneratorWrite::Application { pipe, app, what });
                    change(GeneratorWrite::Counts { pipe, app, counts });
                }
            }
        }
    }

    /// Settings of meters and filters, and registers.
    fn keep_cells(&self, id: ExternId, change: &mut impl FnMut(Write)) {
        match self.state.resource(id) {
            Resource::Meter(_, cells) | Resource::DirectMeter(_, cells) => {
                keep_settings(cells, weir_arch::Meter::config, |cell, config| {
                    change(Write::Meter(id, cell, config));
                });
            }
            Resource::Lpf(cells) => {
                keep_settings(cells, weir_arch::Lpf::config, |cell, config| {
                    change(Write::Lpf(id, cell, config));
                });
            }
            Resource::Wred(cells) => {
                keep_settings(cells, weir_arch::Wred::config, |cell, config| {
                    change(Write::Wred(id, cell, config));
                });
            }
            Resource::Register(register) => {
                change(Write::Register(id, Cell::All, register.initial()));
                for index in register.written() {
                    if let Some(values) = register.read(index) {
                        change(Write::Register(id, Cell::Index(index), values));
                    }
                }
            }
            Resource::None | Resource::Counter(..) | Resource::DirectCounter(..) | Resource::Profile(..) => {}
        }
    }
}

/// What cells are set to, where it is not what all are set to.
fn keep_settings<T: Clone + Default, C: PartialEq>(
    cells: &Cells<T>,
    config: impl Fn(&T) -> Option<C>,
    mut each: impl FnMut(Cell, Option<C>),
) {
    let all = config(cells.initial());
    let own: Vec<(u64, Option<C>)> = cells.written().map(|(index, cell)| (index, config(cell))).collect();
    let own = own.into_iter().filter(|(_, own)| *own != all).collect::<Vec<_>>();
    if all.is_some() {
        each(Cell::All, all);
    }
    for (index, config) in own {
        each(Cell::Index(index), config);
    }
}

fn keep_table(table: &Table, mut each: impl FnMut(TableOp, Option<u32>)) {
    let spec = table.spec();
    if !spec.const_entries {
        keep_entries(table, &mut each);
    }
    if !spec.const_default {
        each(TableOp::SetDefault(table.default_action().clone()), None);
    }
    let (metadata, note) = table.default_note();
    if *metadata != 0 || note.is_some() {
        each(TableOp::AnnotateDefault(*metadata, note.clone()), None);
    }
}

/// The entries that are not the program's for good, in place of those that a fresh table has.
fn keep_entries(table: &Table, mut each: impl FnMut(TableOp, Option<u32>)) {
    each(TableOp::Clear, None);
    for entry in table.entries_by_age().into_iter().filter(|e| !e.is_const) {
        let new = NewEntry {
            matches: entry.matches.clone(),
            priority: entry.priority,
            action: entry.action.clone(),
            metadata: entry.metadata,
            note: entry.note.clone(),
            idle_timeout_ns: entry.idle_timeout_ns,
        };
        each(TableOp::Insert(new), Some(entry.handle.get()));
    }
}

/// Whose entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Table(TableId),
    ValueSet(ValueSetId),
}

/// Makes a fresh switch of a program like one whose pieces were kept.
///
/// ```
/// use std::sync::Arc;
/// use weir_switch::{Cell, CloneSession, Restoring, Switch, Write, testing};
///
/// let program = Arc::new(testing::reflector());
/// let mut switch = Switch::new(Arc::clone(&program))?;
/// switch.write(Write::Session(5, Some(CloneSession::default())))?;
///
/// let mut other = Switch::new(program)?;
/// let mut restoring = Restoring::new(&other, 0);
/// let mut transaction = other.transaction();
/// switch.keep(|piece| restoring.apply(&mut transaction, piece).expect("of the same program"));
/// transaction.commit();
/// assert!(other.replication().session(5).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Restoring {
    replica: usize,
    /// Tables of direct resources.
    tables: HashMap<ExternId, TableId>,
    /// What entries' numbers have become.
    handles: HashMap<(Owner, u32), u32>,
}

impl Restoring {
    /// For a fresh switch, which is the replica of this number. Counters are restored in replica 0,
    /// as all of them are summed.
    #[must_use]
    pub fn new(switch: &Switch, replica: usize) -> Self {
        let program = switch.program();
        let direct = program
            .tables
            .iter()
            .flat_map(|(id, table)| table.direct.iter().map(move |r| (*r, id)));
        Restoring {
            replica,
            tables: direct.collect(),
            handles: HashMap::new(),
        }
    }

    /// Takes the next piece, as a part of what changed at once.
    ///
    /// # Errors
    /// It does not fit, so it is not of this program.
    pub fn apply(&mut self, to: &mut Transaction<'_>, piece: Kept) -> Result<(), ControlError> {
        let (write, handle) = match piece {
            Kept::Replication(kept) => {
                to.restore_replication(*kept);
                return Ok(());
            }
            Kept::Change(write, handle) => (write, handle),
        };
        let (write, owner) = match write {
            Write::Table(id, op) => {
                let owner = Owner::Table(id);
                (Write::Table(id, self.renamed(owner, op)), Some(owner))
            }
            Write::ValueSet(id, op) => {
                let owner = Owner::ValueSet(id);
                (Write::ValueSet(id, self.renamed(owner, op)), Some(owner))
            }
            Write::Counter(id, cell, value) => {
                let value = if self.replica == 0 { value } else { Count::default() };
                (Write::Counter(id, self.cell(id, cell), value), None)
            }
            Write::Meter(id, cell, config) => (Write::Meter(id, self.cell(id, cell), config), None),
            Write::Register(id, cell, values) => (Write::Register(id, self.cell(id, cell), values), None),
            Write::Lpf(id, cell, config) => (Write::Lpf(id, self.cell(id, cell), config), None),
            Write::Wred(id, cell, config) => (Write::Wred(id, self.cell(id, cell), config), None),
            other => (other, None),
        };
        let result = to.write(write)?;
        if let (Some(owner), Some(was), WriteResult::Table(OpResult::Handle(is))) = (owner, handle, result) {
            self.handles.insert((owner, was), is.get());
        }
        Ok(())
    }

    /// What the number of an entry has become; those of the program's own entries stay.
    fn handle(&self, owner: Owner, was: u32) -> u32 {
        self.handles.get(&(owner, was)).copied().unwrap_or(was)
    }

    fn renamed(&self, owner: Owner, op: TableOp) -> TableOp {
        let rename = |entry| match entry {
            EntryRef::Handle(was) => EntryRef::Handle(EntryHandle::new(self.handle(owner, was.get())).unwrap_or(was)),
            key @ EntryRef::Key { .. } => key,
        };
        match op {
            TableOp::Delete(entry) => TableOp::Delete(rename(entry)),
            TableOp::Modify {
                entry,
                action,
                metadata,
                note,
                idle_timeout_ns,
            } => TableOp::Modify {
                entry: rename(entry),
                action,
                metadata,
                note,
                idle_timeout_ns,
            },
            other => other,
        }
    }

    fn cell(&self, id: ExternId, cell: Cell) -> Cell {
        match (cell, self.tables.get(&id)) {
            (Cell::Index(was), Some(table)) => {
                let number = u32::try_from(was).map_or(was, |was| self.handle(Owner::Table(*table), was).into());
                Cell::Index(number)
            }
            (cell, _) => cell,
        }
    }
}
