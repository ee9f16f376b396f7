//! Writes of the control plane, alone or as transactions.

mod extent;
mod keys;
mod transaction;

pub(crate) use keys::NotedKeys;
pub use transaction::{Mark, Transaction};

use crate::queues::QueueConfig;
use crate::replication::{self, CloneSession, MulticastGroup, Node, ReplicationError};
use crate::switch::Switch;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;
use weir_arch::{
    Cells, Count, CrcScope, CustomCrcError, GeneratorError, GeneratorUndo, GeneratorWrite, KeyBytes, Lpf, LpfConfig,
    Meter, MeterConfig, Resource, State, WordCells, Wred, WredConfig, hash::CrcParameters,
};
use weir_extern_api::KeyError;
use weir_ir::{Bits, ExternId, Program, TableId, ValueSetId};
use weir_table::{
    BatchMode, EntryAction, EntryHandle, ErrorKind, NewEntry, OpResult, ProfileOp, ProfileUndo, TableError, TableOp,
    Undo,
};

/// Which cell of an indexed resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cell {
    /// The one at this index; of a direct resource the one of the entry with this handle.
    Index(u64),
    /// All of them.
    All,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Write {
    /// Entries and default action of a table.
    Table(TableId, TableOp),
    /// Members and groups of an action profile or selector.
    Profile(ExternId, ProfileOp),
    /// Members of a parser value set: entries with action 0 without data.
    ValueSet(ValueSetId, TableOp),
    /// Sets a counter.
    Counter(ExternId, Cell, Count),
    /// Sets the rates of a meter and fills its buckets; `None`: no limit.
    Meter(ExternId, Cell, Option<MeterConfig>),
    /// Sets a register: one value per scalar of its type.
    Register(ExternId, Cell, Vec<Bits>),
    /// Sets up a low-pass filter, at zero; `None`: it gives what it is given.
    Lpf(ExternId, Cell, Option<LpfConfig>),
    /// Sets up early random drop; `None`: it drops nothing.
    Wred(ExternId, Cell, Option<WredConfig>),
    /// Sets a multicast group; `None` removes it.
    Group(u32, Option<MulticastGroup>),
    /// Sets a clone session; `None` removes it.
    Session(u32, Option<CloneSession>),
    /// Sets a node of multicast groups; `None` removes it, also from the groups that it is in.
    Node(u32, Option<Node>),
    /// Sets the nodes of a multicast group, each with the number with which packets exclude it;
    /// `None` removes the group.
    GroupNodes(u32, Option<Vec<(u32, Option<u32>)>>),
    /// Sets which ports are one, as far as nodes with this number are concerned; `None`: there is
    /// no such number.
    Lag(u32, Option<Vec<u32>>),
    /// Sets the ports that packets exclude by a number; none: packets with the number get all
    /// copies.
    PortList(u32, Vec<u32>),
    /// An entry counts as hit now.
    Touch(TableId, EntryHandle),
    /// Sets what parsers see of a port; `None`: nothing.
    PortMetadata(u32, Option<Vec<u8>>),
    /// A port comes up or goes down.
    Port(u32, bool),
    /// A port takes in what it sends, or does not.
    Loopback(u32, bool),
    /// Changes the packet generators. Timers of applications begin now.
    Generator(GeneratorWrite),
    /// Puts nodes at the end of a multicast group, each with the number with which packets exclude
    /// it.
    JoinGroup(u32, Vec<(u32, Option<u32>)>),
    /// Takes nodes out of a multicast group.
    LeaveGroup(u32, Vec<u32>),
    /// Sets the parameters of the custom CRC of 16 or of 32 bits, for everything that has none of
    /// its own; `None`: they are those at first.
    // State files hold these by their places in the list: what is new comes last.
    CustomCrc(u32, Option<CrcParameters>),
    /// Sets a key of an extern instance, by its number; an empty one removes it.
    Key(ExternId, u64, KeyBytes),
    /// Sets rate and capacity of a port's queues; `None` restores the initial ones. A capacity of 0
    /// counts as 1.
    Queue(u32, Option<QueueConfig>),
    /// Sets the parameters of one calculation by a custom CRC, by its number; `None`: it has those
    /// of its width.
    Calculation(u32, Option<CrcParameters>),
}

impl Write {
    /// Sets the parameters of custom CRCs.
    #[must_use]
    pub fn crc(scope: CrcScope, parameters: Option<CrcParameters>) -> Self {
        match scope {
            CrcScope::Width(width) => Write::CustomCrc(width, parameters),
            CrcScope::Calculation(number) => Write::Calculation(number, parameters),
        }
    }
}

/// What a change gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteResult {
    /// Of a table or value set.
    Table(OpResult),
    /// Nothing to tell.
    Done,
}

/// A change was refused; nothing has changed by it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ControlError {
    /// By the table, value set or profile.
    #[error(transparent)]
    Table(#[from] TableError),
    /// By the replication engine.
    #[error(transparent)]
    Replication(#[from] ReplicationError),
    /// By the packet generators.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// By the custom CRC.
    #[error(transparent)]
    CustomCrc(#[from] CustomCrcError),
    /// By the extern that has the keys.
    #[error("`{name}`: {error}")]
    Key {
        /// The instance.
        name: String,
        /// Why.
        error: KeyError,
    },
    /// The program has no such thing.
    #[error("the program has no {what} number {id}")]
    NoSuchResource {
        /// `table`, `extern instance` or `value set`.
        what: &'static str,
        /// Its number.
        id: usize,
    },
    /// The instance is something else.
    #[error("`{name}` is a {found}, not a {expected}")]
    WrongResource {
        /// The instance.
        name: String,
        /// What the request takes it for.
        expected: &'static str,
        /// Its type.
        found: String,
    },
    /// What is to be made at once costs too much.
    #[error(
        "changes that are to be made at once, as packets wait for all of them, go through as much of what is there as {limit} plain entries are, \
         and more: make fewer at a time, or not all or none"
    )]
    TooMuch {
        /// The most that they may go through.
        limit: usize,
    },
    /// The index is beyond the end.
    #[error("`{name}` has {size} cells, index {index} is beyond its end")]
    IndexOutOfRange {
        /// The instance.
        name: String,
        /// Number of cells.
        size: u64,
        /// The index.
        index: u64,
    },
    /// A register's cell has another shape.
    #[error("a cell of `{name}` has {expected:?} bits, the value has {found:?}")]
    RegisterShape {
        /// The instance.
        name: String,
        /// Widths of its scalars.
        expected: Vec<u32>,
        /// Widths in the request.
        found: Vec<u32>,
    },
}

impl ControlError {
    /// The sort of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            ControlError::Table(error) => error.kind(),
            ControlError::Replication(ReplicationError::OutOfRange { .. } | ReplicationError::Twice { .. }) => {
                ErrorKind::InvalidArgument
            }
            ControlError::Replication(ReplicationError::Full { .. }) | ControlError::TooMuch { .. } => {
                ErrorKind::ResourceExhausted
            }
            ControlError::Replication(ReplicationError::NotFound { .. })
            | ControlError::CustomCrc(CustomCrcError::NoCalculation { .. })
            | ControlError::NoSuchResource { .. } => ErrorKind::NotFound,
            ControlError::Replication(ReplicationError::AlreadyExists { .. }) => ErrorKind::AlreadyExists,
            ControlError::Generator(GeneratorError::None) | ControlError::CustomCrc(CustomCrcError::Unused { .. }) => {
                ErrorKind::FailedPrecondition
            }
            ControlError::Generator(_)
            | ControlError::CustomCrc(CustomCrcError::Width { .. } | CustomCrcError::TooWide { .. })
            | ControlError::WrongResource { .. }
            | ControlError::Key { .. }
            | ControlError::IndexOutOfRange { .. }
            | ControlError::RegisterShape { .. } => ErrorKind::InvalidArgument,
        }
    }
}

/// Changes of a transaction were refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{} of {total} changes failed, {}; the first: {}", .failures.len(), if *.rolled_back { "none was applied" } else { "the others were applied" }, .failures.first().map(|(i, e)| format!("number {i}: {e}")).unwrap_or_default())]
pub struct WriteError {
    /// Position in the transaction from 0, and why. With rollback only the first one.
    pub failures: Vec<(usize, ControlError)>,
    /// Changes in the transaction.
    pub total: usize,
    /// Whether all was taken back.
    pub rolled_back: bool,
}

/// How to take a change back.
enum Back {
    Table(TableId, Undo),
    Profile(ExternId, ProfileUndo),
    ValueSet(ValueSetId, Undo),
    Counter(ExternId, Before<Count>),
    Meter(ExternId, Before<Meter>),
    Register(ExternId, BeforeRegister),
    Lpf(ExternId, Before<Lpf>),
    Wred(ExternId, Before<Wred>),
    Replication(Box<replication::Undo>),
    Port(u32, Option<bool>),
    Loopback(u32, bool),
    PortMetadata(u32, Option<Vec<u8>>),
    Generator(GeneratorUndo),
    CustomCrc(CrcScope, Option<CrcParameters>),
    Key(ExternId, u64, KeyBytes),
    Queue(u32, Option<QueueConfig>),
    Nothing,
}

impl Back {
    /// Boxed, as most changes are of entries, and a batch may have a million.
    fn replication(undo: replication::Undo) -> Self {
        Back::Replication(Box::new(undo))
    }
}

/// What cells were.
enum Before<T> {
    One(u64, T),
    All(Cells<T>),
}

/// What cells of a register were.
enum BeforeRegister {
    One(u64, Vec<Bits>),
    All(WordCells),
}

/// The outcome of a change, how to take it back, and the entries that are gone by it.
type Logged = (WriteResult, Back, Vec<(TableId, u32)>);

impl Switch {
    /// Makes one change.
    ///
    /// # Errors
    /// It does not fit; the error says why.
    pub fn write(&mut self, write: Write) -> Result<WriteResult, ControlError> {
        let (result, _, gone) = self.write_journaled(write)?;
        self.forget(&gone);
        self.set_noted_keys();
        if let Some(journal) = &mut self.journal.0 {
            journal.commit();
        }
        Ok(result)
    }

    /// Makes a change as [`Switch::write_logged`] does, and has the journal hear of it.
    fn write_journaled(&mut self, write: Write) -> Result<Logged, ControlError> {
        let Some(mut journal) = self.journal.0.take() else {
            return self.write_logged(write);
        };
        let mark = journal.mark();
        journal.note(&write);
        let logged = self.write_logged(write);
        match &logged {
            Ok((result, ..)) => journal.made(result),
            Err(_) => journal.back_to(mark),
        }
        self.journal.0 = Some(journal);
        logged
    }

    /// Makes several changes in order, all or nothing if so wished.
    ///
    /// # Errors
    /// Some do not fit; the error says which, and whether the others were applied.
    pub fn write_all(&mut self, writes: Vec<Write>, mode: BatchMode) -> Result<Vec<WriteResult>, WriteError> {
        let total = writes.len();
        let mut transaction = self.transaction();
        let (mut results, mut failures) = (Vec::new(), Vec::new());
        for (i, write) in writes.into_iter().enumerate() {
            match transaction.write(write) {
                Ok(result) => results.push(result),
                Err(error) => {
                    failures.push((i, error));
                    if mode == BatchMode::Rollback {
                        return Err(WriteError {
                            failures,
                            total,
                            rolled_back: true,
                        });
                    }
                }
            }
        }
        transaction.commit();
        if failures.is_empty() {
            Ok(results)
        } else {
            Err(WriteError {
                failures,
                total,
                rolled_back: false,
            })
        }
    }

    /// Direct counters and meters go with their entries.
    fn forget(&mut self, gone: &[(TableId, u32)]) {
        for (table, handle) in gone {
            self.state.forget_entry(*table, *handle);
            self.forget_counts(*table, *handle);
        }
        for (table, _) in gone.chunk_by(|a, b| a.0 == b.0).filter_map(<[_]>::first) {
            if let Some(state) = self.state.table_mut(*table) {
                state.table.reuse_handles();
            }
        }
    }

    fn take_back(&mut self, back: Back) {
        match back {
            Back::Table(id, undo) => {
                if let Some(state) = self.state.table_mut(id) {
                    state.table.revert(undo);
                }
            }
            Back::Profile(id, undo) => {
                if let Some(profile) = self.state.profile_mut(id) {
                    profile.revert(undo);
                }
            }
            Back::ValueSet(id, undo) => {
                if let Some(set) = self.state.value_set_mut(id) {
                    set.revert(undo);
                }
            }
            Back::Counter(id, before) => {
                if let Some(Resource::Counter(_, cells) | Resource::DirectCounter(_, cells)) =
                    self.state.resource_mut(id)
                {
                    restore(cells, before);
                }
            }
            Back::Meter(id, before) => {
                if let Some(Resource::Meter(_, cells) | Resource::DirectMeter(_, cells)) = self.state.resource_mut(id) {
                    restore(cells, before);
                }
            }
            Back::Register(id, before) => {
                if let Some(Resource::Register(register)) = self.state.resource_mut(id) {
                    match before {
                        BeforeRegister::All(was) => register.cells = was,
                        BeforeRegister::One(index, was) => {
                            register.write(index, &was);
                        }
                    }
                }
            }
            Back::Lpf(id, before) => {
                if let Some(Resource::Lpf(cells)) = self.state.resource_mut(id) {
                    restore(cells, before);
                }
            }
            Back::Wred(id, before) => {
                if let Some(Resource::Wred(cells)) = self.state.resource_mut(id) {
                    restore(cells, before);
                }
            }
            Back::Replication(undo) => self.replication.take_back(*undo),
            Back::Port(port, Some(up)) => self.set_port(port, up),
            Back::Port(port, None) => {
                self.set_port(port, true);
                self.remove_port(port);
            }
            Back::Loopback(port, was) => self.set_loopback(port, was),
            Back::PortMetadata(port, was) => {
                self.set_port_metadata(port, was);
            }
            Back::Generator(undo) => {
                if let Some(generators) = &mut self.state.generators {
                    generators.revert(undo);
                }
            }
            Back::CustomCrc(scope, was) => {
                // It was set before: what was there fits.
                let _ = self.state.set_custom_crc(scope, was);
            }
            Back::Key(id, index, was) => self.take_back_key(id, index, was),
            Back::Queue(port, was) => {
                let now_ns = self.now_ns();
                self.queues.configure(port, was, now_ns);
            }
            Back::Nothing => {}
        }
    }

    /// Makes a change; also says how to take it back, and which entries are gone.
    fn write_logged(&mut self, write: Write) -> Result<Logged, ControlError> {
        let now_ns = self.now_ns();
        match write {
            Write::Table(id, TableOp::Insert(entry)) => {
                let handle = self.insert_entry(id, entry)?;
                let result = WriteResult::Table(OpResult::Handle(handle));
                Ok((result, Back::Table(id, Undo::Insert(handle)), Vec::new()))
            }
            Write::Table(id, mut op) => {
                if let TableOp::Modify { action, .. } = &mut op {
                    check_references(&self.state, id, action)?;
                    self.watching(action);
                }
                let state = self.state.table_mut(id).ok_or_else(|| no_table(id))?;
                let (result, undo) = state.table.apply(op, now_ns)?;
                let gone = match &result {
                    OpResult::Removed(handles) => handles.iter().map(|h| (id, h.get())).collect(),
                    _ => Vec::new(),
                };
                Ok((WriteResult::Table(result), Back::Table(id, undo), gone))
            }
            Write::Profile(id, op) => {
                let undo = self.write_profile(id, op)?;
                Ok((WriteResult::Done, Back::Profile(id, undo), Vec::new()))
            }
            Write::ValueSet(id, op) => {
                let missing = ControlError::NoSuchResource {
                    what: "value set",
                    id: id.index(),
                };
                let (result, undo) = self.state.value_set_mut(id).ok_or(missing)?.apply(op, now_ns)?;
                Ok((WriteResult::Table(result), Back::ValueSet(id, undo), Vec::new()))
            }
            Write::Counter(id, cell, value) => {
                let back = self.write_counter(id, cell, value)?;
                Ok((WriteResult::Done, back, Vec::new()))
            }
            Write::Meter(id, cell, config) => {
                let back = self.write_meter(id, cell, configured(config, now_ns))?;
                Ok((WriteResult::Done, back, Vec::new()))
            }
            Write::Register(id, cell, values) => {
                let back = self.write_register(id, cell, values)?;
                Ok((WriteResult::Done, back, Vec::new()))
            }
            Write::Lpf(id, cell, config) => {
                let mut lpf = Lpf::default();
                lpf.configure(config, now_ns);
                let back = self.write_lpf(id, cell, lpf)?;
                Ok((WriteResult::Done, back, Vec::new()))
            }
            Write::Wred(id, cell, config) => {
                let mut wred = Wred::default();
                wred.configure(config, now_ns);
                let back = self.write_wred(id, cell, wred)?;
                Ok((WriteResult::Done, back, Vec::new()))
            }
            Write::Touch(id, handle) => {
                let state = self.state.table_mut(id).ok_or_else(|| no_table(id))?;
                state.table.touch(handle, now_ns);
                Ok((WriteResult::Done, Back::Nothing, Vec::new()))
            }
            device => Ok((WriteResult::Done, self.write_device(device)?, Vec::new())),
        }
    }

    fn set_crc(&mut self, scope: CrcScope, parameters: Option<CrcParameters>) -> Result<Back, ControlError> {
        let was = self.state.set_custom_crc(scope, parameters)?;
        Ok(Back::CustomCrc(scope, was))
    }

    /// Sets what parsers see of a port, and says what that was.
    fn set_port_metadata(&mut self, port: u32, bytes: Option<Vec<u8>>) -> Option<Vec<u8>> {
        match bytes {
            Some(bytes) => self.state.port_metadata.insert(port, bytes),
            None => self.state.port_metadata.remove(&port),
        }
    }

    /// Changes of what is beside tables and extern instances: ports, replication, generators and
    /// custom CRCs.
    fn write_device(&mut self, write: Write) -> Result<Back, ControlError> {
        match write {
            Write::Group(id, group) => Ok(Back::replication(self.replication.write_group(id, group)?)),
            Write::Session(id, session) => Ok(Back::replication(self.replication.write_session(id, session)?)),
            Write::Node(id, node) => Ok(Back::replication(self.replication.write_node(id, node)?)),
            Write::GroupNodes(id, nodes) => Ok(Back::replication(self.replication.write_group_nodes(id, nodes)?)),
            Write::JoinGroup(id, nodes) => Ok(Back::replication(self.replication.join_group(id, nodes)?)),
            Write::LeaveGroup(id, nodes) => Ok(Back::replication(self.replication.leave_group(id, &nodes)?)),
            Write::Lag(id, ports) => Ok(Back::replication(self.replication.write_lag(id, ports)?)),
            Write::PortList(id, ports) => Ok(Back::replication(self.replication.write_port_list(id, ports)?)),
            Write::Port(port, up) => {
                let was = self.ports.get(&port).copied();
                self.set_port(port, up);
                Ok(Back::Port(port, was))
            }
            Write::Loopback(port, on) => {
                let was = self.is_loopback(port);
                self.set_loopback(port, on);
                Ok(Back::Loopback(port, was))
            }
            Write::PortMetadata(port, bytes) => Ok(Back::PortMetadata(port, self.set_port_metadata(port, bytes))),
            Write::Generator(write) => {
                let now_ns = self.now_ns();
                Ok(Back::Generator(self.generators_mut()?.write(&write, now_ns)?))
            }
            Write::CustomCrc(width, parameters) => self.set_crc(CrcScope::Width(width), parameters),
            Write::Calculation(number, parameters) => self.set_crc(CrcScope::Calculation(number), parameters),
            Write::Key(id, index, key) => Ok(Back::Key(id, index, self.note_key(id, index, key)?)),
            Write::Queue(port, config) => {
                let config = config.map(|config| QueueConfig {
                    capacity: config.capacity.map(|packets| packets.max(1)),
                    ..config
                });
                let now_ns = self.now_ns();
                Ok(Back::Queue(port, self.queues.configure(port, config, now_ns)))
            }
            _ => Ok(Back::Nothing),
        }
    }

    fn write_profile(&mut self, id: ExternId, op: ProfileOp) -> Result<ProfileUndo, ControlError> {
        let wrong = wrong_resource(self.program(), id, "action profile");
        let user = match &op {
            ProfileOp::DeleteMember(member) => user_of(&self.state, id, &EntryAction::Member(*member)),
            ProfileOp::DeleteGroup(group) => user_of(&self.state, id, &EntryAction::Group(*group)),
            _ => None,
        };
        let op = self.watching_group(op);
        let profile = self.state.profile_mut(id).ok_or(wrong)?;
        match (&op, user) {
            (ProfileOp::DeleteMember(m), Some(user)) => {
                return Err(profile.in_use("member", *m, user).into());
            }
            (ProfileOp::DeleteGroup(g), Some(user)) => {
                return Err(profile.in_use("group", *g, user).into());
            }
            _ => {}
        }
        Ok(profile.apply(op)?)
    }

    /// Marks actions to choose from where the port they watch is down.
    fn watching(&self, action: &mut EntryAction) {
        if let EntryAction::OneShot(set) = action {
            for member in set {
                member.is_down = member.watch.is_some_and(|watched| self.is_down(watched.port));
            }
        }
    }

    fn insert_entry(&mut self, id: TableId, mut entry: NewEntry) -> Result<EntryHandle, ControlError> {
        check_references(&self.state, id, &entry.action)?;
        self.watching(&mut entry.action);
        let now_ns = self.now_ns();
        let state = self.state.table_mut(id).ok_or_else(|| no_table(id))?;
        Ok(state.table.insert_at(entry, now_ns)?)
    }

    /// As [`Switch::watching`], for groups.
    fn watching_group(&self, mut op: ProfileOp) -> ProfileOp {
        if let ProfileOp::InsertGroup(_, group) | ProfileOp::ModifyGroup(_, group) = &mut op {
            for member in &mut group.members {
                member.is_down = member.watch.is_some_and(|watched| self.is_down(watched.port));
            }
        }
        op
    }

    fn write_counter(&mut self, id: ExternId, cell: Cell, value: Count) -> Result<Back, ControlError> {
        let program = Arc::clone(self.program());
        self.settle_counts(id, &cell);
        match self.state.resource_mut(id) {
            Some(Resource::Counter(_, cells) | Resource::DirectCounter(_, cells)) => {
                Ok(Back::Counter(id, set_cell(&program, id, cells, cell, value)?))
            }
            _ => Err(wrong_resource(&program, id, "counter")),
        }
    }

    fn write_meter(&mut self, id: ExternId, cell: Cell, value: Meter) -> Result<Back, ControlError> {
        let program = Arc::clone(self.program());
        match self.state.resource_mut(id) {
            Some(Resource::Meter(_, cells) | Resource::DirectMeter(_, cells)) => {
                Ok(Back::Meter(id, set_cell(&program, id, cells, cell, value)?))
            }
            _ => Err(wrong_resource(&program, id, "meter")),
        }
    }

    fn write_lpf(&mut self, id: ExternId, cell: Cell, value: Lpf) -> Result<Back, ControlError> {
        let program = Arc::clone(self.program());
        match self.state.resource_mut(id) {
            Some(Resource::Lpf(cells)) => Ok(Back::Lpf(id, set_cell(&program, id, cells, cell, value)?)),
            _ => Err(wrong_resource(&program, id, "low-pass filter")),
        }
    }

    fn write_wred(&mut self, id: ExternId, cell: Cell, value: Wred) -> Result<Back, ControlError> {
        let program = Arc::clone(self.program());
        match self.state.resource_mut(id) {
            Some(Resource::Wred(cells)) => Ok(Back::Wred(id, set_cell(&program, id, cells, cell, value)?)),
            _ => Err(wrong_resource(&program, id, "early random drop")),
        }
    }

    fn write_register(&mut self, id: ExternId, cell: Cell, values: Vec<Bits>) -> Result<Back, ControlError> {
        let program = Arc::clone(self.program());
        match self.state.resource_mut(id) {
            Some(Resource::Register(register)) => {
                check_shape(&program, id, &register.widths, &values)?;
                let before = match cell {
                    Cell::All => {
                        let before = register.cells.clone();
                        register.fill(&values);
                        BeforeRegister::All(before)
                    }
                    Cell::Index(index) => {
                        let size = register.cells.size();
                        let before = register.read(index);
                        let before = before.ok_or_else(|| beyond(&program, id, size, index))?;
                        register.write(index, &values);
                        BeforeRegister::One(index, before)
                    }
                };
                Ok(Back::Register(id, before))
            }
            _ => Err(wrong_resource(&program, id, "register")),
        }
    }
}

/// Members and groups that an entry names must exist.
fn check_references(state: &State, table: TableId, action: &EntryAction) -> Result<(), ControlError> {
    let Some(table) = state.table(table) else {
        return Ok(());
    };
    let profile = match table.table.spec().implementation {
        weir_table::Implementation::Profile(id) | weir_table::Implementation::Selector(id) => state.profile(id),
        weir_table::Implementation::Direct => None,
    };
    match (profile, action) {
        (Some(profile), EntryAction::Member(id)) => Ok(profile.require("member", *id)?),
        (Some(profile), EntryAction::Group(id)) => Ok(profile.require("group", *id)?),
        _ => Ok(()),
    }
}

fn no_table(id: TableId) -> ControlError {
    ControlError::NoSuchResource {
        what: "table",
        id: id.index(),
    }
}

/// Name of a table with an entry that has this action.
fn user_of(state: &State, profile: ExternId, action: &EntryAction) -> Option<String> {
    use weir_table::Implementation::{Profile, Selector};
    let tables = (0..).map_while(|i| state.table(TableId::new(i)));
    tables
        .filter(|t| [Profile(profile), Selector(profile)].contains(&t.table.spec().implementation))
        .find(|t| t.table.entries().any(|e| e.action == *action))
        .map(|t| format!("an entry of table `{}`", t.table.spec().name))
}

fn instance_name(program: &Program, id: ExternId) -> String {
    program
        .externs
        .get(id)
        .map_or_else(|| "?".to_owned(), |e| e.name.clone())
}

/// The error for an instance that is something else.
pub(crate) fn wrong_resource(program: &Program, id: ExternId, expected: &'static str) -> ControlError {
    match program.externs.get(id) {
        Some(e) => ControlError::WrongResource {
            name: e.name.clone(),
            expected,
            found: e.type_name.clone(),
        },
        None => ControlError::NoSuchResource {
            what: "extern instance",
            id: id.index(),
        },
    }
}

/// The error for an index beyond the end.
pub(crate) fn beyond(program: &Program, id: ExternId, size: u64, index: u64) -> ControlError {
    ControlError::IndexOutOfRange {
        name: instance_name(program, id),
        size,
        index,
    }
}

/// Sets one cell or all, and says what was there.
fn set_cell<T: Clone + Default>(
    program: &Program,
    id: ExternId,
    cells: &mut Cells<T>,
    cell: Cell,
    value: T,
) -> Result<Before<T>, ControlError> {
    match cell {
        Cell::All => {
            let before = cells.clone();
            cells.fill(value);
            Ok(Before::All(before))
        }
        Cell::Index(index) => {
            let size = cells.size();
            let slot = cells.get_mut(index).ok_or_else(|| beyond(program, id, size, index))?;
            Ok(Before::One(index, std::mem::replace(slot, value)))
        }
    }
}

fn restore<T: Clone + Default>(cells: &mut Cells<T>, before: Before<T>) {
    match before {
        Before::All(was) => *cells = was,
        Before::One(index, was) => {
            if let Some(slot) = cells.get_mut(index) {
                *slot = was;
            }
        }
    }
}

/// The rates a meter is given, its buckets full.
fn configured(config: Option<MeterConfig>, now_ns: u64) -> Meter {
    let mut meter = Meter::default();
    meter.configure(config, now_ns);
    meter
}

fn check_shape(program: &Program, id: ExternId, expected: &[u32], values: &[Bits]) -> Result<(), ControlError> {
    let found: Vec<u32> = values.iter().map(Bits::width).collect();
    if found == expected {
        return Ok(());
    }
    Err(ControlError::RegisterShape {
        name: instance_name(program, id),
        expected: expected.to_vec(),
        found,
    })
}
