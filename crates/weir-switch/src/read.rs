//! What the control plane reads, and the names it uses.

use crate::control::{ControlError, beyond, wrong_resource};
use crate::names::{NameError, resolve};
use crate::switch::Switch;
use weir_arch::{Cells, Count, Digest, LogMessage, MeterConfig, Resource, TableState};
use weir_ir::{Bits, ExternId, TableId, ValueSetId};
use weir_table::EntryHandle;

/// A sort of extern instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// Indexed or direct counter.
    Counter,
    /// Indexed or direct meter.
    Meter,
    /// Register array.
    Register,
    /// Action profile or selector.
    Profile,
    /// A low-pass filter.
    Lpf,
    /// Early random drop.
    Wred,
}

impl ResourceKind {
    fn name(self) -> &'static str {
        match self {
            ResourceKind::Counter => "counter",
            ResourceKind::Meter => "meter",
            ResourceKind::Register => "register",
            ResourceKind::Profile => "action profile",
            ResourceKind::Lpf => "low-pass filter",
            ResourceKind::Wred => "early random drop",
        }
    }

    fn is(self, resource: &Resource) -> bool {
        match resource {
            Resource::None => false,
            Resource::Counter(..) | Resource::DirectCounter(..) => self == ResourceKind::Counter,
            Resource::Meter(..) | Resource::DirectMeter(..) => self == ResourceKind::Meter,
            Resource::Register(_) => self == ResourceKind::Register,
            Resource::Profile(..) => self == ResourceKind::Profile,
            Resource::Lpf(_) => self == ResourceKind::Lpf,
            Resource::Wred(_) => self == ResourceKind::Wred,
        }
    }
}

impl Switch {
    /// The table with this name or unique suffix of a name.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn table(&self, name: &str) -> Result<TableId, NameError> {
        resolve(
            "table",
            name,
            self.program().tables.iter().map(|(id, t)| (t.name.as_str(), id)),
        )
    }

    /// The action of a table with this name or unique suffix: its index in the table.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn action(&self, table: TableId, name: &str) -> Result<usize, NameError> {
        let program = self.program();
        let actions = program.tables.get(table).map_or(&[][..], |t| t.actions.as_slice());
        let names = actions
            .iter()
            .map(|a| program.actions.get(a.action).map_or("?", |a| a.name.as_str()));
        resolve("action of the table", name, names.zip(0..))
    }

    /// The extern instance of this kind with this name or unique suffix.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn resource(&self, kind: ResourceKind, name: &str) -> Result<ExternId, NameError> {
        let instances = self
            .program()
            .externs
            .iter()
            .filter(|(id, _)| kind.is(self.state.resource(*id)));
        resolve(kind.name(), name, instances.map(|(id, e)| (e.name.as_str(), id)))
    }

    /// The extern instance that has keys ([`Write::Key`](crate::Write::Key)), with this name or
    /// unique suffix.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn extern_with_keys(&self, name: &str) -> Result<ExternId, NameError> {
        let has_keys = |id| {
            let object = self.arch.registered().and_then(|externs| externs.object(id));
            object.is_some_and(|object| object.keys().is_some())
        };
        let instances = self.program().externs.iter().filter(|(id, _)| has_keys(*id));
        resolve("extern with keys", name, instances.map(|(id, e)| (e.name.as_str(), id)))
    }

    /// The parser value set with this name or unique suffix.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn value_set(&self, name: &str) -> Result<ValueSetId, NameError> {
        resolve(
            "value set",
            name,
            self.program().value_sets.iter().map(|(id, s)| (s.name.as_str(), id)),
        )
    }

    /// A table's entries, default action, hits and misses.
    ///
    /// # Errors
    /// The program has no such table.
    pub fn table_state(&self, table: TableId) -> Result<&TableState, ControlError> {
        self.state.table(table).ok_or(ControlError::NoSuchResource {
            what: "table",
            id: table.index(),
        })
    }

    fn cell<T: Clone + Default>(&self, id: ExternId, cells: &Cells<T>, index: u64) -> Result<T, ControlError> {
        cells
            .get(index)
            .ok_or_else(|| beyond(self.program(), id, cells.size(), index))
    }

    /// A counter; of a direct counter that of the entry with handle `index`.
    ///
    /// # Errors
    /// It is no counter, or the index is beyond its end.
    pub fn counter(&self, id: ExternId, index: u64) -> Result<Count, ControlError> {
        match self.state.resource(id) {
            Resource::Counter(_, cells) => self.cell(id, cells, index),
            Resource::DirectCounter(_, cells) => {
                let mut count = self.cell(id, cells, index)?;
                count.join(self.counted_apart(id, index));
                Ok(count)
            }
            _ => Err(wrong_resource(self.program(), id, "counter")),
        }
    }

    /// Rates of a meter; of a direct meter those of the entry with handle `index`. `None`: no
    /// limit.
    ///
    /// # Errors
    /// It is no meter, or the index is beyond its end.
    pub fn meter(&self, id: ExternId, index: u64) -> Result<Option<MeterConfig>, ControlError> {
        match self.state.resource(id) {
            Resource::Meter(_, cells) | Resource::DirectMeter(_, cells) => Ok(self.cell(id, cells, index)?.config()),
            _ => Err(wrong_resource(self.program(), id, "meter")),
        }
    }

    /// A register: one value per scalar of its type.
    ///
    /// # Errors
    /// It is no register, or the index is beyond its end.
    pub fn register(&self, id: ExternId, index: u64) -> Result<Vec<Bits>, ControlError> {
        match self.state.resource(id) {
            Resource::Register(register) => register
                .read(index)
                .ok_or_else(|| beyond(self.program(), id, register.cells.size(), index)),
            _ => Err(wrong_resource(self.program(), id, "register")),
        }
    }

    /// What every cell of a register holds at first: one value per scalar of its type.
    ///
    /// # Errors
    /// It is no register.
    pub fn register_initial(&self, id: ExternId) -> Result<Vec<Bits>, ControlError> {
        match self.state.resource(id) {
            Resource::Register(register) => Ok(register.declared()),
            _ => Err(wrong_resource(self.program(), id, "register")),
        }
    }

    /// Takes the oldest digest message.
    pub fn next_digest(&mut self) -> Option<Digest> {
        self.state.digests.pop()
    }

    /// Takes the oldest log message.
    pub fn next_log(&mut self) -> Option<LogMessage> {
        self.state.log.pop()
    }

    /// When an entry was hit last, or inserted, in ns on the switch's clock; `None`: no such entry.
    /// Known only for tables whose entries can time out.
    #[must_use]
    pub fn last_hit_ns(&self, table: TableId, handle: EntryHandle) -> Option<u64> {
        let entry = self.state.table(table)?.table.entry(handle)?;
        let fast = self.fast.as_ref().and_then(|f| f.last_hit_ns(table, handle.get()));
        Some(entry.last_hit_ns.max(fast.unwrap_or(0)))
    }

    /// Entries with a time-out that were not hit for that long at `now_ns`.
    #[must_use]
    pub fn idle_entries(&self, now_ns: u64) -> Vec<(TableId, EntryHandle)> {
        let tables = self
            .program()
            .tables
            .ids()
            .filter_map(|id| Some((id, self.state.table(id)?)));
        tables
            .flat_map(|(id, t)| t.table.idle(now_ns).map(move |e| (id, e)))
            .filter(|(id, e)| {
                let last = self.fast.as_ref().and_then(|f| f.last_hit_ns(*id, e.handle.get()));
                last.is_none_or(|last| now_ns.saturating_sub(last) >= e.idle_timeout_ns)
            })
            .map(|(id, e)| (id, e.handle))
            .collect()
    }
}
