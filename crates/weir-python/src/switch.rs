//! A switch in process.

use crate::entries::{self, Given};
use crate::errors::{self, invalid, outside, refused};
use crate::packets::{self, Incoming};
use crate::{control, convert};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::{Arc, Mutex};
use weir_interp::Interpreter;
use weir_ir::TableId;
use weir_switch::{ControlError, PacketOrder, Restoring, SwitchConfig, Write, WriteResult};
use weir_table::{BatchMode, EntryRef, TableOp, TableSpec};

/// Packets that generators make at most in one call.
const MAX_GENERATED: usize = 100_000;

/// A program on ports. Threads may share it: each call sees the switch alone.
#[pyclass(frozen, module = "weir._weir")]
pub struct Switch {
    inner: Mutex<weir_switch::Switch>,
    program: Arc<weir_ir::Program>,
    lines: weir_show::lines::Lines,
    tables: Vec<(TableId, TableSpec)>,
    port_bits: u32,
    headroom: usize,
    /// Why packets are interpreted, in whole or in part.
    interpreted: Vec<String>,
}

fn config() -> SwitchConfig {
    SwitchConfig {
        externs: weir_externs::registry(),
        ..SwitchConfig::default()
    }
}

/// A switch, compiled if so wished, and why it is interpreted.
fn build(program: Arc<weir_ir::Program>, compiled: bool) -> Result<(weir_switch::Switch, Vec<String>), String> {
    let switch = weir_switch::Switch::with_engine(Arc::new(Interpreter::new(program)), config());
    let mut switch = switch.map_err(|error| error.to_string())?;
    switch.limit_generation(MAX_GENERATED);
    switch.set_packet_order(PacketOrder::Serial);
    let mut interpreted = Vec::new();
    if compiled {
        match switch.compile() {
            Ok(()) => interpreted.extend(switch.left_out().iter().map(ToString::to_string)),
            Err(error) => interpreted.push(error.to_string()),
        }
    }
    Ok((switch, interpreted))
}

impl Switch {
    /// Does something with the switch, without Python's lock.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut weir_switch::Switch) -> T + Send,
    ) -> PyResult<T> {
        let done = outside(py, || self.inner.lock().ok().map(|mut switch| work(&mut switch)))?;
        done.ok_or_else(|| {
            PyRuntimeError::new_err("the switch has failed by an internal error before; make another one")
        })
    }

    fn table(&self, place: usize) -> PyResult<&(TableId, TableSpec)> {
        let found = self.tables.get(place);
        found.ok_or_else(|| invalid(format!("the program has no table number {place}")))
    }

    fn change(&self, py: Python<'_>, write: Write) -> PyResult<WriteResult> {
        let done = self.with(py, |switch| switch.write(write))?;
        done.map_err(|error| errors::control(py, &error))
    }
}

#[pymethods]
impl Switch {
    #[new]
    #[pyo3(signature = (program, compiled))]
    fn new(py: Python<'_>, program: &crate::program::Program, compiled: bool) -> PyResult<Self> {
        let written = Arc::clone(&program.written);
        let made = outside(py, || build(program.optimized(), compiled))?;
        let (switch, interpreted) = made.map_err(|text| refused(py, "UNIMPLEMENTED", &text))?;
        let ids = written.tables.ids();
        let tables = ids
            .map(|id| Ok((id, entries::spec_of(&switch, id)?)))
            .collect::<PyResult<_>>()?;
        Ok(Switch {
            program: written,
            lines: program.lines.clone(),
            tables,
            port_bits: switch.port_bits(),
            headroom: switch.headroom(),
            interpreted,
            inner: Mutex::new(switch),
        })
    }

    /// Raises an error unless the architecture has a port of this number.
    fn check_port(&self, port: &Bound<'_, PyAny>) -> PyResult<()> {
        packets::port_of(port, self.port_bits).map(drop)
    }

    /// Executes a text of entries, in any format that weir reads. All or nothing.
    fn configure(&self, py: Python<'_>, text: &str, name: &str) -> PyResult<()> {
        let done = self.with(py, |switch| -> weir_entries::Result<()> {
            *switch = weir_entries::configure(switch.clone(), text, name)?;
            Ok(())
        })?;
        done.map_err(|error| refused(py, "INVALID_ARGUMENT", &error.to_string()))
    }

    /// Reasons why packets are interpreted.
    #[getter]
    fn interpreted(&self) -> Vec<String> {
        self.interpreted.clone()
    }

    // ------------------------------------------------------------------------------ packets

    /// Runs one packet; gives what leaves.
    fn send<'py>(
        &self,
        py: Python<'py>,
        port: &Bound<'py, PyAny>,
        data: &Bound<'py, PyAny>,
        at: Option<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let port = packets::port_of(port, self.port_bits)?;
        let data = packets::bytes_of(data)?;
        let bytes = data.as_bytes();
        let out = self.with(py, |switch| switch.inject(port, bytes, at.unwrap_or(switch.now_ns())))?;
        packets::sent(py, &out)
    }

    /// Runs many packets; gives for each what left because of it.
    fn send_many<'py>(
        &self,
        py: Python<'py>,
        packets: &Bound<'py, PyAny>,
        at: Option<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let incoming = Incoming::read(packets, self.headroom, self.port_bits)?;
        let out = self.with(py, |switch| {
            let now = at.unwrap_or(switch.now_ns());
            incoming.run(switch, now)
        })?;
        out.into_lists(py)
    }

    /// Takes a packet in and leaves what comes of it in the queues.
    fn receive(
        &self,
        py: Python<'_>,
        port: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        at: Option<u64>,
    ) -> PyResult<()> {
        let port = packets::port_of(port, self.port_bits)?;
        let data = packets::bytes_of(data)?;
        let bytes = data.as_bytes();
        self.with(py, |switch| switch.receive(port, bytes, at.unwrap_or(switch.now_ns())))
    }

    /// Gives what leaves until a time.
    fn advance<'py>(&self, py: Python<'py>, to: u64) -> PyResult<Bound<'py, PyList>> {
        let out = self.with(py, |switch| switch.advance(to))?;
        packets::departures(py, &out)
    }

    /// The clock in ns.
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |switch| switch.now_ns())
    }

    /// What one packet meets, on a copy of the switch that runs the program as it is written: what
    /// leaves, the tree as JSON, the text.
    fn trace<'py>(
        &self,
        py: Python<'py>,
        port: &Bound<'py, PyAny>,
        data: &Bound<'py, PyAny>,
        at: Option<u64>,
    ) -> PyResult<(Bound<'py, PyList>, String, String)> {
        let port = packets::port_of(port, self.port_bits)?;
        let data = packets::bytes_of(data)?;
        let bytes = data.as_bytes();
        let traced = self.with(py, |switch| -> Result<_, String> {
            let mut copy = copy_of(switch, &self.program)?;
            let (out, tree) = copy.inject_traced(port, bytes, at.unwrap_or(switch.now_ns()));
            let json = serde_json::to_string(&tree.nodes()).map_err(|error| error.to_string())?;
            Ok((out, json, weir_show::render(&tree, &self.lines, false)))
        })?;
        let (out, json, text) = traced.map_err(|text| refused(py, "FAILED_PRECONDITION", &text))?;
        Ok((packets::sent(py, &out)?, json, text))
    }

    // ------------------------------------------------------------------------------- tables

    /// Inserts entries, all or none; gives their handles.
    fn insert(&self, py: Python<'_>, table: usize, given: Vec<Given<'_>>) -> PyResult<Vec<u32>> {
        let (id, spec) = self.table(table)?;
        let new = given.into_iter().map(|g| entries::new_entry(spec, g));
        let writes = new.map(|entry| Ok(Write::Table(*id, TableOp::Insert(entry?))));
        let writes = writes.collect::<PyResult<Vec<Write>>>()?;
        let done = self.with(py, |switch| switch.write_all(writes, BatchMode::Rollback))?;
        match done {
            Ok(results) => results.into_iter().map(|r| entries::handle_of(py, Ok(r))).collect(),
            Err(error) => Err(match error.failures.as_slice() {
                [(_, only)] if error.total == 1 => errors::control(py, only),
                [(place, first), ..] => {
                    let text = format!("entry number {place}: {first}; none of {} was inserted", error.total);
                    errors::coded(py, first, &text)
                }
                [] => refused(py, "UNKNOWN", &error.to_string()),
            }),
        }
    }

    /// The handle of the entry with these keys.
    fn find(&self, py: Python<'_>, table: usize, keys: &Bound<'_, PyAny>, priority: u32) -> PyResult<Option<u32>> {
        let (id, spec) = self.table(table)?;
        let matches = entries::matches(spec, keys)?;
        self.with(py, |switch| {
            let state = switch.table_state(*id).ok()?;
            let found = state.table.get(&EntryRef::Key { matches, priority }).ok()?;
            Some(found.handle.get())
        })
    }

    /// Gives an entry another action.
    fn modify(
        &self,
        py: Python<'_>,
        table: usize,
        handle: u32,
        action: (String, usize, Vec<Bound<'_, PyAny>>),
    ) -> PyResult<()> {
        let (id, spec) = self.table(table)?;
        let action = entries::action(spec, action)?;
        let handle = entries::handle(py, handle)?;
        let done = self.with(py, |switch| -> Result<_, ControlError> {
            let before = switch.table_state(*id)?.table.entry(handle).cloned();
            let op = TableOp::Modify {
                entry: EntryRef::Handle(handle),
                action,
                metadata: before.as_ref().map_or(0, |e| e.metadata),
                note: before.as_ref().and_then(|e| e.note.clone()),
                idle_timeout_ns: before.as_ref().map_or(0, |e| e.idle_timeout_ns),
            };
            switch.write(Write::Table(*id, op))
        })?;
        entries::handle_of(py, done).map(|_| ())
    }

    /// Deletes an entry.
    fn delete(&self, py: Python<'_>, table: usize, handle: u32) -> PyResult<()> {
        let (id, _) = self.table(table)?;
        let handle = EntryRef::Handle(entries::handle(py, handle)?);
        self.change(py, Write::Table(*id, TableOp::Delete(handle))).map(|_| ())
    }

    /// Deletes all entries that are not const.
    fn clear(&self, py: Python<'_>, table: usize) -> PyResult<()> {
        let (id, _) = self.table(table)?;
        self.change(py, Write::Table(*id, TableOp::Clear)).map(|_| ())
    }

    /// Sets the default action; `None`: that of the program.
    fn set_default(
        &self,
        py: Python<'_>,
        table: usize,
        action: Option<(usize, Vec<Bound<'_, PyAny>>)>,
    ) -> PyResult<()> {
        let (id, spec) = self.table(table)?;
        let op = match action {
            None => TableOp::ResetDefault,
            Some((place, arguments)) => TableOp::SetDefault(entries::call(spec, place, &arguments)?),
        };
        self.change(py, Write::Table(*id, op)).map(|_| ())
    }

    /// The default action of a table.
    fn default_action<'py>(&self, py: Python<'py>, table: usize) -> PyResult<Bound<'py, PyTuple>> {
        let (id, _) = self.table(table)?;
        let call = self.with(py, |switch| -> Result<_, ControlError> {
            Ok(switch.table_state(*id)?.table.default_action().clone())
        })?;
        entries::call_value(py, &call.map_err(|error| errors::control(py, &error))?)
    }

    /// All entries of a table, oldest first.
    fn entries<'py>(&self, py: Python<'py>, table: usize) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let (id, _) = self.table(table)?;
        let all = self.with(py, |switch| -> Result<_, ControlError> {
            let table = &switch.table_state(*id)?.table;
            Ok(table.entries_by_age().into_iter().cloned().collect::<Vec<_>>())
        })?;
        let all = all.map_err(|error| errors::control(py, &error))?;
        all.iter().map(|entry| entries::entry(py, entry)).collect()
    }

    /// Number of entries, hits and misses of a table.
    fn table_counts(&self, py: Python<'_>, table: usize) -> PyResult<(usize, u64, u64)> {
        let (id, _) = self.table(table)?;
        let counts = self.with(py, |switch| -> Result<_, ControlError> {
            let state = switch.table_state(*id)?;
            Ok((state.table.len(), state.hits, state.misses))
        })?;
        counts.map_err(|error| errors::control(py, &error))
    }

    /// Entries with a time-out that were not hit for that long: tables and handles.
    fn idle_entries(&self, py: Python<'_>) -> PyResult<Vec<(usize, u32)>> {
        let idle = self.with(py, |switch| switch.idle_entries(switch.now_ns()))?;
        Ok(idle
            .iter()
            .map(|(table, handle)| (table.index(), handle.get()))
            .collect())
    }

    // ------------------------------------------------------------------- counters and the like

    /// A counter: packets and bytes.
    fn counter(&self, py: Python<'_>, name: &str, index: u64) -> PyResult<(u64, u64)> {
        control::counter(self, py, name, index)
    }

    /// Sets a counter; `None`: all of the array.
    fn set_counter(&self, py: Python<'_>, name: &str, index: Option<u64>, packets: u64, bytes: u64) -> PyResult<()> {
        control::set_counter(self, py, name, index, (packets, bytes))
    }

    /// A meter: rates in tokens per second and bucket sizes; `None`: no limit.
    fn meter(&self, py: Python<'_>, name: &str, index: u64) -> PyResult<Option<control::Rates>> {
        control::meter(self, py, name, index)
    }

    /// Sets a meter; rates of `None`: no limit; an index of `None`: all of the array.
    fn set_meter(&self, py: Python<'_>, name: &str, index: Option<u64>, rates: Option<control::Rates>) -> PyResult<()> {
        control::set_meter(self, py, name, index, rates)
    }

    /// A cell of a register: one number per scalar of its type.
    fn register<'py>(&self, py: Python<'py>, name: &str, index: u64) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let values = control::register(self, py, name, index)?;
        values.iter().map(|value| convert::number(py, value)).collect()
    }

    /// Sets a cell of a register; an index of `None`: all of the array.
    fn set_register(
        &self,
        py: Python<'_>,
        name: &str,
        index: Option<u64>,
        values: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        control::set_register(self, py, name, index, &values)
    }

    /// Sets a multicast group of `(port, instance)`; `None` removes it.
    fn set_group(&self, py: Python<'_>, group: u32, replicas: Option<Vec<(u32, u32)>>) -> PyResult<()> {
        self.change(py, control::group(group, replicas)).map(|_| ())
    }

    /// The copies of a multicast group.
    fn group(&self, py: Python<'_>, group: u32) -> PyResult<Option<Vec<(u32, u32)>>> {
        let found = self.with(py, |switch| switch.replication().replicas(group))?;
        Ok(found.map(|replicas| replicas.iter().map(|r| (r.port, r.rid)).collect()))
    }

    /// Sets a clone session: copies, group, longest clone; copies of `None` remove it.
    fn set_session(
        &self,
        py: Python<'_>,
        session: u32,
        replicas: Option<Vec<(u32, u32)>>,
        group: Option<u32>,
        truncate: u32,
    ) -> PyResult<()> {
        self.change(py, control::session(session, replicas, group, truncate))
            .map(|_| ())
    }

    /// Takes the digests that were made: name, fields, time.
    fn digests<'py>(&self, py: Python<'py>) -> PyResult<Vec<control::DigestValue<'py>>> {
        let all = self.with(py, |switch| {
            std::iter::from_fn(|| switch.next_digest()).collect::<Vec<_>>()
        })?;
        all.into_iter().map(|digest| control::digest(py, digest)).collect()
    }

    /// Takes the messages of `log_msg` and failed assertions: text and time.
    fn messages(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        let all = self.with(py, |switch| {
            std::iter::from_fn(|| switch.next_log()).collect::<Vec<_>>()
        })?;
        Ok(all.into_iter().map(|message| (message.text, message.time_ns)).collect())
    }

    // --------------------------------------------------------------------------------- ports

    /// Sets whether a port is up.
    fn set_port(&self, py: Python<'_>, port: &Bound<'_, PyAny>, up: bool) -> PyResult<()> {
        let port = packets::port_of(port, self.port_bits)?;
        self.change(py, Write::Port(port, up)).map(|_| ())
    }

    /// Whether a port is up.
    fn is_up(&self, py: Python<'_>, port: &Bound<'_, PyAny>) -> PyResult<bool> {
        let port = packets::port_of(port, self.port_bits)?;
        self.with(py, |switch| !switch.is_down(port))
    }

    /// Packets and bytes that ports received and sent: port, received, sent.
    fn ports(&self, py: Python<'_>) -> PyResult<Vec<control::PortCounts>> {
        self.with(py, |switch| control::ports(switch))
    }

    /// Drops: reason, place, packets.
    fn drops(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<String>, u64)>> {
        self.with(py, |switch| control::drops(switch))
    }
}

/// A switch with the same control state that interprets the program as it is written.
fn copy_of(switch: &weir_switch::Switch, program: &Arc<weir_ir::Program>) -> Result<weir_switch::Switch, String> {
    let (mut copy, _) = build(Arc::clone(program), false)?;
    let mut restoring = Restoring::new(&copy, 0);
    let mut failed = None;
    let mut transaction = copy.transaction();
    switch.keep(|piece| {
        if let Err(error) = restoring.apply(&mut transaction, piece) {
            failed.get_or_insert(error.to_string());
        }
    });
    transaction.commit();
    match failed {
        Some(text) => Err(format!("the switch cannot be copied for a trace: {text}")),
        None => {
            for (port, up) in control::known_ports(switch) {
                copy.set_port(port, up);
            }
            Ok(copy)
        }
    }
}
