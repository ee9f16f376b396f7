//! The client of P4Runtime and BF Runtime.

mod events;
mod values;

use events::Source;
pub use events::Subscription;

use crate::bridge::{Gate, Runtime, Task};
use crate::errors::invalid;
use prost::Message;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;
use std::time::Duration;
use weir_client::bulk::{LoadOptions, entry_from_json};
use weir_client::{
    Atomicity, Config, ConfigAction, DigestConfig, Entry, Error, Operation, Options, Overflow, Query, ReadOptions,
    Schema, Standing, Tls, Value,
};

/// A client of one target.
#[pyclass(frozen, module = "weir._weir")]
pub struct Client {
    inner: weir_client::Client,
    runtime: Arc<Runtime>,
}

/// Certificate authorities, the name in the certificate, the client's certificate and key.
type TlsTexts = (Vec<u8>, Option<String>, Option<(Vec<u8>, Vec<u8>)>);

fn seconds(time: f64, what: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(time).map_err(|error| invalid(format!("{what}: {error}")))
}

/// Connects; the callback gets a [`Client`].
#[pyfunction]
#[pyo3(signature = (gate, callback, protocol, address, *, device_id, role, election_id, client_id, program, observer,
    deadline, connect_timeout, reconnect, tls))]
#[allow(clippy::too_many_arguments, reason = "Python names them all")]
pub fn connect(
    gate: &Gate,
    callback: Py<PyAny>,
    protocol: &str,
    address: &str,
    device_id: Option<u64>,
    role: &str,
    election_id: u128,
    client_id: u32,
    program: Option<String>,
    observer: bool,
    deadline: f64,
    connect_timeout: f64,
    reconnect: Option<f64>,
    tls: Option<TlsTexts>,
) -> PyResult<Task> {
    let options = match protocol {
        "p4runtime" => Options::p4runtime(address),
        "bfrt" => Options::bfrt(address),
        other => {
            return Err(invalid(format!(
                "expected the protocol p4runtime or bfrt, found {other}"
            )));
        }
    };
    let mut options = options.map_err(|error| invalid(error.to_string()))?;
    options.device_id = device_id.unwrap_or(options.device_id);
    options.role = role.to_owned();
    options.election_id = election_id;
    options.client_id = client_id;
    options.program = program;
    options.is_observer = observer;
    options.deadline = seconds(deadline, "deadline")?;
    options.connect_timeout = seconds(connect_timeout, "connect_timeout")?;
    options.reconnect = reconnect.map(|wait| seconds(wait, "reconnect")).transpose()?;
    options.tls = tls.map(|(authorities, domain, identity)| Tls {
        authorities,
        domain,
        identity,
    });
    let runtime = Runtime::new(gate)?;
    let own = Arc::clone(&runtime);
    runtime.start(callback, weir_client::Client::connect(options), move |py, inner| {
        Ok(Client { inner, runtime: own }.into_pyobject(py)?.into_any())
    })
}

/// Nothing, for callbacks.
fn nothing(py: Python<'_>, (): ()) -> PyResult<Bound<'_, PyAny>> {
    Ok(py.None().into_bound(py))
}

fn operation(name: &str) -> Result<Operation, Error> {
    match name {
        "insert" => Ok(Operation::Insert),
        "modify" => Ok(Operation::Modify),
        "insert_or_modify" => Ok(Operation::InsertOrModify),
        "delete" => Ok(Operation::Delete),
        other => Err(Error::Input(format!("`{other}` is no operation"))),
    }
}

fn entry_of(schema: &Schema, text: &str) -> Result<Entry, Error> {
    let json = serde_json::from_str(text).map_err(|error| Error::Input(error.to_string()))?;
    entry_from_json(schema, &json)
}

fn overflow(wait: bool) -> Overflow {
    if wait { Overflow::Wait } else { Overflow::Count }
}

fn action_of(name: &str) -> Result<ConfigAction, Error> {
    match name {
        "verify" => Ok(ConfigAction::Verify),
        "commit" => Ok(ConfigAction::Commit),
        "reconcile" => Ok(ConfigAction::Reconcile),
        other => Err(Error::Input(format!("`{other}` is none of verify, commit, reconcile"))),
    }
}

#[pymethods]
impl Client {
    /// Tables, digests and headers of the target's program, as JSON.
    fn schema(&self) -> String {
        values::schema(&self.inner.schema()).to_string()
    }

    /// The standing with the target, and a detail.
    fn standing(&self) -> (&'static str, String) {
        match self.inner.standing() {
            Standing::Connecting => ("connecting", String::new()),
            Standing::Primary => ("primary", String::new()),
            Standing::Backup(id) => ("backup", id.map_or_else(String::new, |id| id.to_string())),
            Standing::Observer => ("observer", String::new()),
            Standing::Lost(reason) => ("lost", reason),
        }
    }

    /// Waits until this client controls the target.
    fn primary(&self, callback: Py<PyAny>) -> PyResult<Task> {
        let client = self.inner.clone();
        self.runtime
            .start(callback, async move { client.primary().await }, nothing)
    }

    /// Reads the program's description again.
    fn refresh(&self, callback: Py<PyAny>) -> PyResult<Task> {
        let client = self.inner.clone();
        self.runtime
            .start(callback, async move { client.refresh().await }, nothing)
    }

    /// Writes updates in one request: an operation, and an entry as JSON.
    fn write(&self, callback: Py<PyAny>, updates: Vec<(String, String)>, atomicity: &str) -> PyResult<Task> {
        let atomicity = match atomicity {
            "continue" => Atomicity::Continue,
            "rollback" => Atomicity::Rollback,
            "atomic" => Atomicity::DataplaneAtomic,
            other => return Err(invalid(format!("`{other}` is none of continue, rollback, atomic"))),
        };
        let client = self.inner.clone();
        let write = async move {
            let schema = client.schema();
            let mut batch = client.batch().atomicity(atomicity);
            for (what, entry) in &updates {
                batch.push(operation(what)?, &entry_of(&schema, entry)?)?;
            }
            client.write(&batch).await
        };
        self.runtime.start(callback, write, nothing)
    }

    /// Writes many entries with several requests in flight; the callback gets the number of
    /// successes, that of failures, and the failures.
    fn load(
        &self,
        callback: Py<PyAny>,
        entries: Vec<String>,
        operation_name: String,
        batch_size: usize,
        in_flight: usize,
    ) -> PyResult<Task> {
        let client = self.inner.clone();
        let load = async move {
            let schema = client.schema();
            let options = LoadOptions {
                operation: operation(&operation_name)?,
                batch_size,
                in_flight,
            };
            let entries = entries.into_iter().map(move |text: String| entry_of(&schema, &text));
            client
                .load(entries, &options, |_| {})
                .await
                .map_err(|failed| failed.error)
        };
        self.runtime.start(callback, load, |py, outcome| {
            let failed = values::updates(&outcome.failed);
            Ok((outcome.done, outcome.failures, failed).into_pyobject(py)?.into_any())
        })
    }

    /// Makes a table hold these entries and no others: inserted, modified, deleted, unchanged,
    /// failed.
    fn resync(&self, callback: Py<PyAny>, table: String, entries: Vec<String>) -> PyResult<Task> {
        let client = self.inner.clone();
        let sync = async move {
            let schema = client.schema();
            let table = Arc::clone(schema.table(&table)?);
            let wanted = entries.iter().map(|text| entry_of(&schema, text));
            let wanted = wanted.collect::<Result<Vec<Entry>, Error>>()?;
            client.resync(&table, &wanted).await
        };
        self.runtime.start(callback, sync, |py, report| {
            let failed = values::updates(&report.failed);
            let counts = (report.inserted, report.modified, report.deleted, report.unchanged);
            Ok((counts.0, counts.1, counts.2, counts.3, failed)
                .into_pyobject(py)?
                .into_any())
        })
    }

    /// Reads a table: all entries, or the one with the key of `like`; with `default` the default
    /// entry.
    fn read(&self, callback: Py<PyAny>, table: String, like: Option<String>, default: bool) -> PyResult<Task> {
        let client = self.inner.clone();
        let read = async move {
            let schema = client.schema();
            let table = Arc::clone(schema.table(&table)?);
            if let Some(like) = like {
                let found = client.entry(&entry_of(&schema, &like)?).await?;
                return Ok(found.into_iter().collect());
            }
            if default {
                return Ok(client.default_entry(&table).await?.into_iter().collect());
            }
            let (queries, options) = ([Query::Table(table)], ReadOptions::default());
            let pages = client.read_pages(&queries, &options).await?;
            pages.collect().await
        };
        self.runtime.start(callback, read, |py, entries: Vec<Entry>| {
            let all: PyResult<Vec<_>> = entries.iter().map(|entry| values::entry(py, entry)).collect();
            Ok(PyList::new(py, all?)?.into_any())
        })
    }

    /// Deletes all entries of a table.
    fn clear(&self, callback: Py<PyAny>, table: String) -> PyResult<Task> {
        let client = self.inner.clone();
        let clear = async move {
            let table = client.table(&table)?;
            client.clear(&table).await
        };
        self.runtime.start(callback, clear, nothing)
    }

    /// An operation on a whole table (BF Runtime).
    fn operation(&self, callback: Py<PyAny>, table: String, name: String) -> PyResult<Task> {
        let client = self.inner.clone();
        let operation = async move {
            let table = client.table(&table)?;
            client.operation(&table, &name).await
        };
        self.runtime.start(callback, operation, nothing)
    }

    /// Loads a program by P4Runtime: P4Info and the program.
    fn set_p4runtime_program(
        &self,
        callback: Py<PyAny>,
        p4info: &[u8],
        device_config: Vec<u8>,
        cookie: Option<u64>,
        action: &str,
    ) -> PyResult<Task> {
        let info = weir_proto::p4::config::v1::P4Info::decode(p4info);
        let info = info.map_err(|error| invalid(format!("P4Info: {error}")))?;
        let config = Config::P4Runtime {
            p4info: Box::new(info),
            device_config,
            cookie,
        };
        self.set_program(callback, config, action)
    }

    /// Loads a program by BF Runtime: its name, its description, and name, context and binary of
    /// each profile.
    fn set_bfrt_program(
        &self,
        callback: Py<PyAny>,
        program: String,
        bfrt_json: Vec<u8>,
        profiles: Vec<(String, Vec<u8>, Vec<u8>)>,
        action: &str,
    ) -> PyResult<Task> {
        let config = Config::BfRuntime {
            program,
            bfrt_json,
            profiles,
        };
        self.set_program(callback, config, action)
    }

    /// Sends a packet from the controller; fields are numbers, as bytes.
    fn packet_out(&self, callback: Py<PyAny>, payload: Vec<u8>, fields: Vec<(String, Vec<u8>)>) -> PyResult<Task> {
        let client = self.inner.clone();
        let send = async move {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.as_str(), Value::from_bytes(value)));
            let fields: Vec<(&str, Value)> = fields.collect();
            client.packet_out(payload, &fields).await
        };
        self.runtime.start(callback, send, nothing)
    }

    /// Packets for the controller.
    fn packets(&self, capacity: usize, wait: bool) -> Subscription {
        let events = self.inner.packets(capacity, overflow(wait));
        Subscription::new(events, Arc::clone(&self.runtime))
    }

    /// Idle entries of a table, or of all; the callback gets a [`Subscription`].
    fn idle_entries(&self, callback: Py<PyAny>, table: Option<&str>, capacity: usize, wait: bool) -> PyResult<Task> {
        let table = table.map(|name| self.inner.table(name)).transpose();
        let table = table.map_err(|error| invalid(error.to_string()))?;
        let client = self.inner.clone();
        let subscribe = async move { client.idle_entries(table.as_deref(), capacity, overflow(wait)).await };
        self.subscription(callback, subscribe)
    }

    /// Ports that go up or down (BF Runtime); the callback gets a [`Subscription`].
    fn port_changes(&self, callback: Py<PyAny>, capacity: usize, wait: bool) -> PyResult<Task> {
        let client = self.inner.clone();
        let subscribe = async move { client.port_changes(capacity, overflow(wait)).await };
        self.subscription(callback, subscribe)
    }

    /// Digests of one kind; the callback gets a [`Subscription`].
    fn digests(
        &self,
        callback: Py<PyAny>,
        name: String,
        max_delay: f64,
        max_list: u32,
        capacity: usize,
        wait: bool,
    ) -> PyResult<Task> {
        let config = DigestConfig {
            max_timeout: seconds(max_delay, "max_delay")?,
            max_list_size: max_list,
            ..DigestConfig::default()
        };
        let client = self.inner.clone();
        let subscribe = async move { client.digests(&name, config, capacity, overflow(wait)).await };
        self.subscription(callback, subscribe)
    }

    /// Ends the stream.
    fn close(&self, callback: Py<PyAny>) -> PyResult<Task> {
        let client = self.inner.clone();
        let close = async move {
            client.close().await;
            Ok(())
        };
        self.runtime.start(callback, close, nothing)
    }
}

impl Client {
    /// Subscribes; the callback gets the [`Subscription`].
    fn subscription<T, F>(&self, callback: Py<PyAny>, subscribe: F) -> PyResult<Task>
    where
        T: Send + 'static,
        Source: From<weir_client::Subscription<T>>,
        F: Future<Output = Result<weir_client::Subscription<T>, Error>> + Send + 'static,
    {
        let runtime = Arc::clone(&self.runtime);
        self.runtime.start(callback, subscribe, move |py, events| {
            Ok(Subscription::new(events, runtime).into_pyobject(py)?.into_any())
        })
    }

    fn set_program(&self, callback: Py<PyAny>, config: Config, action: &str) -> PyResult<Task> {
        let action = action_of(action).map_err(|error| invalid(error.to_string()))?;
        let client = self.inner.clone();
        let set = async move { client.set_program(&config, action).await };
        self.runtime.start(callback, set, nothing)
    }
}
