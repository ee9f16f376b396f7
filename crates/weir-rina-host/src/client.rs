//! The side of applications.

use crate::protocol::{
    Call, FlowNumber, Frame, ProtocolError, Qos, Reply, Request, VERSION, WINDOW, read_frame, sdu_header, write_message,
};
use std::collections::HashMap;
use std::collections::hash_map;
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time for an answer of the IPC process itself.
const ANSWER: Duration = Duration::from_secs(10);
/// SDUs that are read before the IPC process may send as many again.
const GRANT: u32 = WINDOW / 4;

/// An error of an application's call.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// There is no IPC process at this path.
    #[error("{path}: no IPC process listens there: start one with `weir rina ipcp`: {source}", path = .path.display())]
    NotRunning {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is one, but it does not answer.
    #[error(
        "{path}: the IPC process does not answer within {seconds} s: it is stopped or overloaded; continue it (`kill -CONT PID`) or start it again",
        path = .path.display(), seconds = .limit.as_secs()
    )]
    NotAnswering {
        /// The path.
        path: PathBuf,
        /// How long it had.
        limit: Duration,
    },
    /// The IPC process speaks another version.
    #[error("expected version {VERSION} of the protocol, found {0}")]
    Version(u32),
    /// The IPC process sends what is not understood.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The connection to the IPC process is lost.
    #[error("the IPC process is gone: {0}")]
    Gone(String),
    /// The IPC process, or the other application, refuses.
    #[error("{0}")]
    Refused(String),
    /// There was no answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The SDU is too long.
    #[error("expected an SDU of at most {limit} bytes, found {found}")]
    TooLong {
        /// The limit.
        limit: usize,
        /// Bytes of this one.
        found: usize,
    },
    /// The flow has ended.
    #[error("the flow has ended: {0}")]
    Closed(String),
}

enum Answer {
    Done(Result<(), String>),
    Allocated(Flow),
    Managed(Result<String, String>),
}

enum Delivered {
    Sdu(Vec<u8>),
    Closed(String),
}

/// A flow as the reading thread knows it.
struct Entry {
    sdus: Sender<Delivered>,
    credit: Arc<Credit>,
}

#[derive(Debug)]
struct Credit {
    /// SDUs that may be sent; `None`: the flow has ended.
    left: Mutex<Option<u32>>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    calls: HashMap<Call, Sender<Answer>>,
    flows: HashMap<FlowNumber, Entry>,
    servers: HashMap<String, Sender<Incoming>>,
    gone: Option<String>,
}

struct Shared {
    writer: Mutex<UnixStream>,
    state: Mutex<State>,
    next_call: AtomicU32,
    name: String,
    dif: String,
    max_sdu: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection to an IPC process. Clones share it.
#[derive(Clone)]
pub struct Ipcp(Arc<Shared>);

impl std::fmt::Debug for Ipcp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ipcp")
            .field("name", &self.0.name)
            .field("dif", &self.0.dif)
            .finish()
    }
}

impl Ipcp {
    /// Connects to the IPC process whose socket is at a path.
    ///
    /// # Errors
    /// There is none, or it speaks another version.
    pub fn connect(path: &Path) -> Result<Self, HostError> {
        Ipcp::connect_within(path, ANSWER)
    }

    /// The same, with another time for the answer.
    ///
    /// # Errors
    /// As for [`Ipcp::connect`].
    pub fn connect_within(path: &Path, limit: Duration) -> Result<Self, HostError> {
        let not_running = |source| HostError::NotRunning {
            path: path.to_owned(),
            source,
        };
        let mut stream = UnixStream::connect(path).map_err(not_running)?;
        let mut bytes = Vec::new();
        write_message(&Request::Hello { version: VERSION }, &mut bytes);
        stream.write_all(&bytes).map_err(gone)?;
        stream.set_read_timeout(Some(limit)).map_err(gone)?;
        let unanswered = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => HostError::NotAnswering {
                path: path.to_owned(),
                limit,
            },
            _ => gone(error),
        };
        let mut received = Vec::new();
        let (name, dif, max_sdu) = loop {
            let mut buffer = [0; 4096];
            let length = stream.read(&mut buffer).map_err(unanswered)?;
            if length == 0 {
                return Err(HostError::Gone("it has closed the connection".to_owned()));
            }
            received.extend_from_slice(&buffer[..length]);
            if let Some((frame, size)) = read_frame::<Reply>(&received)? {
                match frame {
                    Frame::Message(Reply::Welcome { version, .. }) if version != VERSION => {
                        return Err(HostError::Version(version));
                    }
                    Frame::Message(Reply::Welcome { name, dif, max_sdu, .. }) => {
                        received.drain(..size);
                        break (name, dif, max_sdu);
                    }
                    Frame::Message(Reply::Goodbye { reason }) => return Err(HostError::Gone(reason)),
                    Frame::Message(_) | Frame::Sdu(..) => {
                        return Err(HostError::Gone("it does not begin with a welcome".to_owned()));
                    }
                }
            }
        };
        stream.set_read_timeout(None).map_err(gone)?;
        let reader = stream.try_clone().map_err(gone)?;
        let shared = Arc::new(Shared {
            writer: Mutex::new(stream),
            state: Mutex::default(),
            next_call: AtomicU32::new(0),
            name,
            dif,
            max_sdu: max_sdu as usize,
        });
        let weak = Arc::downgrade(&shared);
        std::thread::Builder::new()
            .name("ipcp".to_owned())
            .spawn(move || read_all(reader, received, &weak))
            .map_err(gone)?;
        Ok(Ipcp(shared))
    }

    /// The name of the IPC process.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The name of the DIF.
    #[must_use]
    pub fn dif(&self) -> &str {
        &self.0.dif
    }

    /// Bytes of the longest SDU.
    #[must_use]
    pub fn max_sdu(&self) -> usize {
        self.0.max_sdu
    }

    /// Registers an application: others find it by this name.
    ///
    /// # Errors
    /// The name is registered already, or is no name.
    pub fn register(&self, name: &str) -> Result<Registration, HostError> {
        let (sender, incoming) = channel();
        // Empty components at the end are none.
        let name = name.trim_end_matches('|');
        match lock(&self.0.state).servers.entry(name.to_owned()) {
            hash_map::Entry::Vacant(place) => drop(place.insert(sender)),
            hash_map::Entry::Occupied(_) => {
                return Err(HostError::Refused("the name is registered already".to_owned()));
            }
        }
        let answer = self.0.call(ANSWER, |call| Request::Register {
            call,
            name: name.to_owned(),
        });
        match answer {
            Ok(_) => Ok(Registration {
                ipcp: self.clone(),
                name: name.to_owned(),
                incoming,
            }),
            Err(error) => {
                lock(&self.0.state).servers.remove(name);
                Err(error)
            }
        }
    }

    /// Allocates a flow to another application.
    ///
    /// # Errors
    /// The name is not registered, the application refuses, or there was no answer in time.
    pub fn allocate(&self, local: &str, remote: &str, qos: Qos, timeout: Duration) -> Result<Flow, HostError> {
        let answer = self.0.call(timeout, |call| Request::Allocate {
            call,
            local: local.to_owned(),
            remote: remote.to_owned(),
            qos,
        })?;
        match answer {
            Answer::Allocated(flow) => Ok(flow),
            Answer::Done(_) | Answer::Managed(_) => Err(HostError::Gone("it answers another call".to_owned())),
        }
    }

    /// Sends a command to the management agent; its answer is JSON.
    ///
    /// # Errors
    /// The command is unknown, or has failed.
    pub fn manage(&self, command: &str) -> Result<String, HostError> {
        let answer = self.0.call(ANSWER, |call| Request::Manage {
            call,
            command: command.to_owned(),
        })?;
        match answer {
            Answer::Managed(result) => result.map_err(HostError::Refused),
            Answer::Done(_) | Answer::Allocated(_) => Err(HostError::Gone("it answers another call".to_owned())),
        }
    }
}

impl Drop for Shared {
    /// Ends the reading thread, which holds the socket, too.
    fn drop(&mut self) {
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = writer.shutdown(std::net::Shutdown::Both);
    }
}

fn gone(error: io::Error) -> HostError {
    HostError::Gone(error.to_string())
}

impl Shared {
    fn write(&self, request: &Request) -> Result<(), HostError> {
        let mut bytes = Vec::new();
        write_message(request, &mut bytes);
        lock(&self.writer).write_all(&bytes).map_err(gone)
    }

    /// Sends a request, and waits for the answer.
    fn call(&self, timeout: Duration, request: impl FnOnce(Call) -> Request) -> Result<Answer, HostError> {
        let call = Call(self.next_call.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = channel();
        {
            let mut state = lock(&self.state);
            if let Some(reason) = &state.gone {
                return Err(HostError::Gone(reason.clone()));
            }
            state.calls.insert(call, sender);
        }
        let sent = self.write(&request(call));
        let answer = sent.and_then(|()| match answer.recv_timeout(timeout) {
            Ok(Answer::Done(Err(reason))) => Err(HostError::Refused(reason)),
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => Err(HostError::TimedOut(timeout)),
            Err(RecvTimeoutError::Disconnected) => Err(HostError::Gone("it has closed the connection".to_owned())),
        });
        lock(&self.state).calls.remove(&call);
        answer
    }
}

/// A registered application. It is withdrawn when this is dropped.
#[derive(Debug)]
pub struct Registration {
    ipcp: Ipcp,
    name: String,
    incoming: Receiver<Incoming>,
}

impl Registration {
    /// The next flow that another application requests; `None` if there is none in this time.
    ///
    /// # Errors
    /// The IPC process is gone.
    pub fn next(&self, timeout: Duration) -> Result<Option<Incoming>, HostError> {
        match self.incoming.recv_timeout(timeout) {
            Ok(incoming) => Ok(Some(incoming)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(HostError::Gone("it has closed the connection".to_owned())),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.ipcp.0.state).servers.remove(&self.name);
        let name = self.name.clone();
        let _ = self.ipcp.0.write(&Request::Unregister { name });
    }
}

/// A flow that another application requests. It is refused if this is dropped.
#[derive(Debug)]
pub struct Incoming {
    flow: Option<Flow>,
    remote: String,
    qos: Qos,
}

impl Incoming {
    /// The other application.
    #[must_use]
    pub fn remote(&self) -> &str {
        &self.remote
    }

    /// What it requires of the flow.
    #[must_use]
    pub fn qos(&self) -> Qos {
        self.qos
    }

    /// Accepts it.
    ///
    /// # Errors
    /// The IPC process is gone.
    pub fn accept(mut self) -> Result<Flow, HostError> {
        let flow = self
            .flow
            .take()
            .ok_or_else(|| HostError::Closed("it was answered".to_owned()))?;
        flow.shared.write(&Request::Accept { flow: flow.number })?;
        Ok(flow)
    }

    /// Refuses it.
    ///
    /// # Errors
    /// The IPC process is gone.
    pub fn refuse(mut self, reason: &str) -> Result<(), HostError> {
        self.answer(reason)
    }

    fn answer(&mut self, reason: &str) -> Result<(), HostError> {
        let Some(mut flow) = self.flow.take() else {
            return Ok(());
        };
        flow.is_ours = false;
        flow.shared.write(&Request::Refuse {
            flow: flow.number,
            reason: reason.to_owned(),
        })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let _ = self.answer("the application does not answer");
    }
}

/// A flow. It is deallocated when this is dropped; what was written before still arrives.
pub struct Flow {
    shared: Arc<Shared>,
    number: FlowNumber,
    sdus: Mutex<Receiver<Delivered>>,
    /// SDUs that were read since the last grant.
    read: AtomicU32,
    closed: Mutex<Option<String>>,
    credit: Arc<Credit>,
    is_ours: bool,
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Flow").field(&self.number).finish()
    }
}

impl Flow {
    /// Writes an SDU. Waits while the flow takes none.
    ///
    /// # Errors
    /// The flow has ended, or the SDU is too long.
    pub fn write_sdu(&self, sdu: &[u8]) -> Result<(), HostError> {
        let limit = self.shared.max_sdu;
        if sdu.len() > limit {
            return Err(HostError::TooLong {
                limit,
                found: sdu.len(),
            });
        }
        let mut left = lock(&self.credit.left);
        loop {
            match &mut *left {
                None => return Err(HostError::Closed(self.reason())),
                Some(0) => left = self.credit.changed.wait(left).unwrap_or_else(PoisonError::into_inner),
                Some(count) => {
                    *count -= 1;
                    break;
                }
            }
        }
        drop(left);
        let header = sdu_header(self.number, sdu.len());
        let mut writer = lock(&self.shared.writer);
        write_both(&mut writer, &header, sdu).map_err(gone)
    }

    /// The next SDU; `None` if there is none in this time.
    ///
    /// # Errors
    /// The flow has ended, and all SDUs are read.
    pub fn read_sdu(&self, timeout: Duration) -> Result<Option<Vec<u8>>, HostError> {
        let sdus = lock(&self.sdus);
        if let Some(reason) = &*lock(&self.closed) {
            return Err(HostError::Closed(reason.clone()));
        }
        // Mostly there is one.
        let delivered = match sdus.try_recv() {
            Err(TryRecvError::Empty) if !timeout.is_zero() => sdus.recv_timeout(timeout).map_err(|error| match error {
                RecvTimeoutError::Timeout => TryRecvError::Empty,
                RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            }),
            other => other,
        };
        match delivered {
            Ok(Delivered::Sdu(sdu)) => {
                self.grant()?;
                Ok(Some(sdu))
            }
            Ok(Delivered::Closed(reason)) => {
                *lock(&self.closed) = Some(reason.clone());
                Err(HostError::Closed(reason))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(HostError::Gone("it has closed the connection".to_owned())),
        }
    }

    fn grant(&self) -> Result<(), HostError> {
        let read = self.read.fetch_add(1, Ordering::Relaxed) + 1;
        if read < GRANT {
            return Ok(());
        }
        self.read.fetch_sub(read, Ordering::Relaxed);
        self.shared.write(&Request::Credit {
            flow: self.number,
            sdus: read,
        })
    }

    fn reason(&self) -> String {
        let closed = lock(&self.closed).clone();
        closed.unwrap_or_else(|| "it was closed by the other side".to_owned())
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        lock(&self.shared.state).flows.remove(&self.number);
        if self.is_ours {
            let _ = self.shared.write(&Request::Deallocate { flow: self.number });
        }
    }
}

fn write_both(writer: &mut UnixStream, header: &[u8], body: &[u8]) -> io::Result<()> {
    let written = writer.write_vectored(&[IoSlice::new(header), IoSlice::new(body)])?;
    match written.checked_sub(header.len()) {
        Some(of_body) => writer.write_all(&body[of_body..]),
        None => {
            writer.write_all(&header[written..])?;
            writer.write_all(body)
        }
    }
}

fn read_all(mut stream: UnixStream, mut received: Vec<u8>, shared: &std::sync::Weak<Shared>) {
    let mut buffer = vec![0; 256 * 1024];
    let reason = loop {
        let mut used = 0;
        let outcome = loop {
            match read_frame::<Reply>(&received[used..]) {
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.to_string()),
                Ok(Some((frame, size))) => {
                    used += size;
                    let Some(shared) = shared.upgrade() else {
                        return;
                    };
                    if let Some(reason) = dispatch(&shared, frame) {
                        break Err(reason);
                    }
                }
            }
        };
        received.drain(..used);
        if let Err(reason) = outcome {
            break reason;
        }
        match stream.read(&mut buffer) {
            Ok(0) => break "it has closed the connection".to_owned(),
            Ok(length) => received.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break error.to_string(),
        }
    };
    let Some(shared) = shared.upgrade() else {
        return;
    };
    let mut state = lock(&shared.state);
    state.calls.clear();
    state.servers.clear();
    for (_, entry) in state.flows.drain() {
        entry.close(reason.clone());
    }
    state.gone = Some(reason);
}

impl Entry {
    fn close(&self, reason: String) {
        let _ = self.sdus.send(Delivered::Closed(reason));
        *lock(&self.credit.left) = None;
        self.credit.changed.notify_all();
    }
}

/// Takes a frame; the reason if the IPC process ends the connection.
fn dispatch(shared: &Arc<Shared>, frame: Frame<'_, Reply>) -> Option<String> {
    let mut state = lock(&shared.state);
    match frame {
        Frame::Sdu(flow, sdu) => {
            if let Some(entry) = state.flows.get(&flow) {
                let _ = entry.sdus.send(Delivered::Sdu(sdu.to_vec()));
            }
        }
        Frame::Message(Reply::Done { call, result }) => {
            if let Some(waiting) = state.calls.remove(&call) {
                let _ = waiting.send(Answer::Done(result));
            }
        }
        Frame::Message(Reply::Managed { call, result }) => {
            if let Some(waiting) = state.calls.remove(&call) {
                let _ = waiting.send(Answer::Managed(result));
            }
        }
        Frame::Message(Reply::Allocated { call, flow }) => {
            let waiting = state.calls.remove(&call);
            let flow = add_flow(shared, &mut state, flow);
            // Dropping a flow takes the lock.
            drop(state);
            if let Some(waiting) = waiting {
                let _ = waiting.send(Answer::Allocated(flow));
            }
        }
        Frame::Message(Reply::Requested {
            flow,
            local,
            remote,
            qos,
        }) => {
            let server = state.servers.get(&local).cloned();
            let flow = add_flow(shared, &mut state, flow);
            drop(state);
            let incoming = Incoming {
                flow: Some(flow),
                remote,
                qos,
            };
            if let Some(server) = server {
                let _ = server.send(incoming);
            }
        }
        Frame::Message(Reply::Credit { flow, sdus }) => {
            if let Some(entry) = state.flows.get(&flow) {
                if let Some(left) = &mut *lock(&entry.credit.left) {
                    *left = left.saturating_add(sdus);
                }
                entry.credit.changed.notify_all();
            }
        }
        Frame::Message(Reply::Closed { flow, reason }) => {
            if let Some(entry) = state.flows.remove(&flow) {
                entry.close(reason);
            }
        }
        Frame::Message(Reply::Goodbye { reason }) => return Some(reason),
        Frame::Message(Reply::Welcome { .. }) => {}
    }
    None
}

fn add_flow(shared: &Arc<Shared>, state: &mut State, number: FlowNumber) -> Flow {
    let (sender, sdus) = channel();
    let credit = Arc::new(Credit {
        left: Mutex::new(Some(WINDOW)),
        changed: Condvar::new(),
    });
    state.flows.insert(
        number,
        Entry {
            sdus: sender,
            credit: Arc::clone(&credit),
        },
    );
    Flow {
        shared: Arc::clone(shared),
        number,
        sdus: Mutex::new(sdus),
        read: AtomicU32::new(0),
        closed: Mutex::new(None),
        credit,
        is_ours: true,
    }
}
