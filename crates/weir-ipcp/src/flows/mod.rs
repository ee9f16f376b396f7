//! Flows: allocation between applications, and the connections that carry them.

mod allocation;
mod timers;
mod transfer;

use crate::config::MAX_NAME;
use crate::directory::is_name;
use crate::output::FlowId;
use crate::process::IpcProcess;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_rina::cdap::objects::QosRequest;
use weir_rina::efcp::{Address, CepId, Dialect, Paper, QosId};
use weir_rina::transport::{Connection, ConnectionConfig, Delivery, Endpoint, Policies, SendError, Statistics};
use weir_rina::{ApplicationName, Time};

/// PDUs that wait in a connection.
const QUEUE: usize = 512;
/// How long a flow that is deallocated waits for a chance to send what it still has.
const LINGER: Duration = Duration::from_secs(30);
/// A flow whose peer has no route for this long is closed.
const UNREACHABLE: Duration = Duration::from_secs(30);
/// M_DELETEs that are sent until one is answered.
const DELETE_ATTEMPTS: u32 = 5;
/// Questions whether the peer has a flow, until it is closed because none is answered.
const CHECK_ATTEMPTS: u32 = 5;

/// The end at another IPC process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Peer {
    address: Address,
    /// The port-id there.
    port: u64,
    cep: CepId,
}

#[derive(Debug)]
enum State {
    /// The directory does not know the application yet.
    Locating,
    /// The request is sent.
    Requesting {
        address: Address,
        invoke_id: i32,
        next: Time,
    },
    /// The application here has to decide.
    Requested {
        peer: Peer,
        invoke_id: i32,
    },
    Open {
        peer: Peer,
        connection: Box<Connection>,
    },
    /// Deallocated here; what is queued is sent first.
    Draining {
        peer: Peer,
        connection: Box<Connection>,
        until: Time,
    },
    /// M_DELETE is sent to the peer.
    Deleting {
        peer: Peer,
        invoke_id: i32,
        attempts: u32,
        next: Time,
    },
    /// The other side has ended it; `None`: it never had a connection.
    Closed {
        connection: Option<Box<Connection>>,
    },
}

/// The question to the peer of an idle flow, whether it has the flow still: a peer that restarts
/// knows none of its flows any more.
#[derive(Debug, Clone, Copy)]
struct Check {
    invoke_id: i32,
    attempts: u32,
    next: Time,
}

#[derive(Debug)]
pub(crate) struct Flow {
    local: ApplicationName,
    remote: ApplicationName,
    qos: QosRequest,
    cep: CepId,
    state: State,
    since: Time,
    /// When the peer has last shown that it has the flow.
    heard: Time,
    check: Option<Check>,
    unreachable_since: Option<Time>,
    /// Its place in [`Flows::timers`].
    timer: Option<Time>,
    /// The owner has had an event that there is something to read.
    is_reported: bool,
    /// The owner waits for room.
    waits_for_room: bool,
}

/// A flow, for people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FlowView {
    /// The local end.
    pub flow: FlowId,
    /// The application here.
    #[serde(serialize_with = "crate::output::text")]
    pub local: ApplicationName,
    /// The application there.
    #[serde(serialize_with = "crate::output::text")]
    pub remote: ApplicationName,
    /// `locating`, `requesting`, `requested`, `open`, `draining`, `deleting` or `closed`.
    pub state: &'static str,
    /// Address of the other IPC process, once it is known.
    pub address: Option<u32>,
    /// Counters of the connection: SDUs sent and received, PDUs retransmitted, marks.
    pub sdus_sent: u64,
    /// SDUs given to the application.
    pub sdus_received: u64,
    /// PDUs sent again.
    pub retransmitted: u64,
    /// PDUs received with the ECN flag.
    pub marked: u64,
}

/// Why an SDU is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// There is no such flow.
    #[error("there is no such flow")]
    Unknown,
    /// It is not allocated yet, or not any more.
    #[error("the flow is not allocated")]
    NotOpen,
    /// The connection does not take the SDU.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// Why a request is refused at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// This IPC process is no member of the DIF yet.
    #[error("the IPC process is not enrolled yet")]
    NotMember,
    /// There are too many flows or names.
    #[error("there are too many flows or registrations")]
    Limit,
    /// A name is empty or too long.
    #[error("a name of an application has a process, and at most {MAX_NAME} bytes in all components")]
    Name,
    /// Another application has registered the name here.
    #[error("the name is registered already")]
    Registered,
}

#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub all: BTreeMap<FlowId, Flow>,
    by_cep: BTreeMap<CepId, FlowId>,
    /// When which flow has something to do.
    timers: BTreeSet<(Time, FlowId)>,
    /// The directory as of the last search for applications.
    directory_revision: u64,
    is_to_locate: bool,
    next_check: Time,
}

impl Flows {
    /// Routes have changed: flows that wait for an application look for it again.
    pub fn locate_again(&mut self) {
        self.is_to_locate = true;
    }

    /// Sets the timer of a flow; to be called whenever its deadline may have changed.
    fn reschedule(&mut self, id: FlowId, now: Time) {
        let Some(flow) = self.all.get_mut(&id) else {
            return;
        };
        let due = flow.deadline(now);
        if due == flow.timer {
            return;
        }
        if let Some(former) = std::mem::replace(&mut flow.timer, due) {
            self.timers.remove(&(former, id));
        }
        if let Some(due) = due {
            self.timers.insert((due, id));
        }
    }
}

fn policies(qos: &QosRequest) -> Policies {
    let policies = match (qos.max_gap, qos.in_order) {
        (0, _) => Policies::reliable(QosId(1)),
        (_, true) => Policies {
            delivery: Delivery::Ordered,
            ..Policies::unreliable(QosId(0))
        },
        (_, false) => Policies::unreliable(QosId(0)),
    };
    Policies {
        rate: (qos.average_bandwidth > 0).then_some(qos.average_bandwidth),
        ..policies
    }
}

impl Flow {
    fn connection(&mut self) -> Option<&mut Connection> {
        match &mut self.state {
            State::Open { connection, .. }
            | State::Draining { connection, .. }
            | State::Closed {
                connection: Some(connection),
            } => Some(connection),
            State::Locating
            | State::Requesting { .. }
            | State::Requested { .. }
            | State::Deleting { .. }
            | State::Closed { connection: None } => None,
        }
    }

    fn peer(&self) -> Option<Peer> {
        match &self.state {
            State::Requested { peer, .. }
            | State::Open { peer, .. }
            | State::Draining { peer, .. }
            | State::Deleting { peer, .. } => Some(*peer),
            State::Locating | State::Requesting { .. } | State::Closed { .. } => None,
        }
    }

    fn deadline(&self, now: Time) -> Option<Time> {
        match &self.state {
            State::Requesting { next, .. } | State::Deleting { next, .. } => Some(*next),
            State::Open { connection, .. } => connection.deadline(now),
            State::Draining { connection, until, .. } => {
                Some(connection.deadline(now).map_or(*until, |at| at.min(*until)))
            }
            State::Locating | State::Requested { .. } | State::Closed { .. } => None,
        }
    }

    fn state_name(&self) -> &'static str {
        match self.state {
            State::Locating => "locating",
            State::Requesting { .. } => "requesting",
            State::Requested { .. } => "requested",
            State::Open { .. } => "open",
            State::Draining { .. } => "draining",
            State::Deleting { .. } => "deleting",
            State::Closed { .. } => "closed",
        }
    }
}

impl IpcProcess {
    /// Registers an application, so that others find it.
    ///
    /// # Errors
    /// The name is registered here already, or too long, or there are too many.
    pub fn register(&mut self, name: &ApplicationName, now: Time) -> Result<(), RequestError> {
        if !is_name(name) {
            return Err(RequestError::Name);
        }
        if self.registrations.contains(name) {
            return Err(RequestError::Registered);
        }
        if self.registrations.len() >= self.config.limits.registrations {
            return Err(RequestError::Limit);
        }
        self.registrations.insert(name.clone());
        let address = self.address().unwrap_or(Address(0));
        self.directory.set_local(name, address, true, now);
        self.floods = true;
        self.flush(now);
        Ok(())
    }

    /// Withdraws an application. Its flows remain.
    pub fn unregister(&mut self, name: &ApplicationName, now: Time) {
        if self.registrations.remove(name) {
            self.directory.set_local(name, Address(0), false, now);
            self.floods = true;
            self.flush(now);
        }
    }

    /// Requests a flow to an application. Whether it is allocated follows as [`FlowEvent`].
    ///
    /// # Errors
    /// This IPC process is no member of the DIF, has too many flows, or a name is too long.
    pub fn allocate(
        &mut self,
        local: &ApplicationName,
        remote: &ApplicationName,
        qos: QosRequest,
        now: Time,
    ) -> Result<FlowId, RequestError> {
        if self.address().is_none() {
            return Err(RequestError::NotMember);
        }
        if !is_name(local) || !is_name(remote) {
            return Err(RequestError::Name);
        }
        let id = self.add_flow(local.clone(), remote.clone(), qos, State::Locating, now)?;
        self.locate(id, now);
        self.flush(now);
        Ok(id)
    }

    fn add_flow(
        &mut self,
        local: ApplicationName,
        remote: ApplicationName,
        qos: QosRequest,
        state: State,
        now: Time,
    ) -> Result<FlowId, RequestError> {
        if self.flows.all.len() >= self.config.limits.flows {
            return Err(RequestError::Limit);
        }
        // Neither port-ids nor CEP ids can be guessed: who knows one can end the flow, or send in
        // the name of the peer. There are more of them than flows.
        let id = loop {
            let id = FlowId(self.random_u32());
            if id.0 != 0 && !self.flows.all.contains_key(&id) {
                break id;
            }
        };
        let cep = loop {
            let cep = CepId(self.random_u32() & 0xffff);
            if cep.0 != 0 && !self.flows.by_cep.contains_key(&cep) {
                break cep;
            }
        };
        self.flows.by_cep.insert(cep, id);
        let flow = Flow {
            local,
            remote,
            qos,
            cep,
            state,
            since: now,
            heard: now,
            check: None,
            unreachable_since: None,
            timer: None,
            is_reported: false,
            waits_for_room: false,
        };
        self.flows.all.insert(id, flow);
        Ok(id)
    }

    fn remove_flow(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.all.remove(&id) {
            self.flows.by_cep.remove(&flow.cep);
            if let Some(timer) = flow.timer {
                self.flows.timers.remove(&(timer, id));
            }
        }
    }

    /// Sends the request of a flow once the directory knows where to.
    fn locate(&mut self, id: FlowId, now: Time) {
        let Some(flow) = self.flows.all.get_mut(&id) else {
            return;
        };
        if !matches!(flow.state, State::Locating) {
            return;
        }
        let Some(address) = self.directory.find(&flow.remote) else {
            return;
        };
        if !self.has_route(address) {
            return;
        }
        let state = State::Requesting {
            address,
            invoke_id: self.random_invoke_id(),
            next: now,
        };
        self.set_flow_state(id, state, now);
        self.tick_flow(id, now);
    }

    /// Whether PDUs to an address have a way: it is that of this IPC process, or there is a route.
    fn has_route(&self, address: Address) -> bool {
        Some(address) == self.address() || self.table.contains_key(&address)
    }

    fn set_flow_state(&mut self, id: FlowId, state: State, now: Time) {
        if let Some(flow) = self.flows.all.get_mut(&id) {
            flow.state = state;
        }
        self.flows.reschedule(id, now);
    }

    /// Accepts a requested flow.
    ///
    /// # Errors
    /// There is no such request.
    pub fn accept(&mut self, id: FlowId, now: Time) -> Result<(), FlowError> {
        let flow = self.flows.all.get(&id).ok_or(FlowError::Unknown)?;
        let State::Requested { peer, invoke_id } = flow.state else {
            return Err(FlowError::NotOpen);
        };
        self.open(id, peer, now);
        self.respond_to_request(id, peer, invoke_id, now);
        self.flush(now);
        Ok(())
    }

    /// Refuses a requested flow.
    ///
    /// # Errors
    /// There is no such request.
    pub fn refuse(&mut self, id: FlowId, reason: &str, now: Time) -> Result<(), FlowError> {
        let flow = self.flows.all.get(&id).ok_or(FlowError::Unknown)?;
        let State::Requested { peer, invoke_id } = flow.state else {
            return Err(FlowError::NotOpen);
        };
        self.remove_flow(id);
        self.send_refusal(peer.address, invoke_id, reason, now);
        self.flush(now);
        Ok(())
    }

    fn open(&mut self, id: FlowId, peer: Peer, now: Time) {
        let initial_sequence = self.random_u32();
        let (Some(own), Some(flow)) = (self.address(), self.flows.all.get_mut(&id)) else {
            return;
        };
        let config = ConnectionConfig {
            local: Endpoint {
                address: own,
                cep: flow.cep,
            },
            remote: Endpoint {
                address: peer.address,
                cep: peer.cep,
            },
            policies: policies(&flow.qos),
            max_pdu: self.config.max_pdu,
            pci_bytes: Paper::BYTES,
            max_sdu: self.config.max_sdu,
            queue: QUEUE,
            initial_sequence,
        };
        flow.state = State::Open {
            peer,
            connection: Box::new(Connection::new(config, now)),
        };
        (flow.heard, flow.check) = (now, None);
        self.flows.reschedule(id, now);
    }

    /// Deallocates a flow. What was sent before still arrives.
    pub fn deallocate(&mut self, id: FlowId, now: Time) {
        let Some(flow) = self.flows.all.get_mut(&id) else {
            return;
        };
        match std::mem::replace(&mut flow.state, State::Closed { connection: None }) {
            State::Open { peer, connection } => {
                let until = now + LINGER;
                flow.state = State::Draining {
                    peer,
                    connection,
                    until,
                };
                self.tick_flow(id, now);
            }
            State::Requested { peer, invoke_id } => {
                self.remove_flow(id);
                self.send_refusal(peer.address, invoke_id, "the application is gone", now);
            }
            state @ (State::Draining { .. } | State::Deleting { .. }) => flow.state = state,
            State::Locating | State::Requesting { .. } | State::Closed { .. } => self.remove_flow(id),
        }
        self.flush(now);
    }

    /// Takes an SDU.
    ///
    /// # Errors
    /// The flow is not allocated, the SDU is too long, or the queue is full:
    /// [`FlowEvent::Writable`] follows then.
    pub fn send(&mut self, id: FlowId, sdu: &[u8], now: Time) -> Result<(), FlowError> {
        let flow = self.flows.all.get_mut(&id).ok_or(FlowError::Unknown)?;
        let State::Open { connection, .. } = &mut flow.state else {
            return Err(FlowError::NotOpen);
        };
        let sent = connection.send(sdu, now);
        flow.waits_for_room |= sent == Err(SendError::Full);
        self.pump(id, now);
        Ok(sent?)
    }

    /// The next SDU, if there is one.
    pub fn read(&mut self, id: FlowId, now: Time) -> Option<Vec<u8>> {
        let flow = self.flows.all.get_mut(&id)?;
        let sdu = flow.connection()?.read(now);
        match sdu {
            Some(sdu) => {
                self.pump(id, now);
                Some(sdu)
            }
            None => {
                flow.is_reported = false;
                None
            }
        }
    }

    /// Counters of a flow's connection.
    #[must_use]
    pub fn flow_statistics(&self, id: FlowId) -> Option<Statistics> {
        match &self.flows.all.get(&id)?.state {
            State::Open { connection, .. }
            | State::Draining { connection, .. }
            | State::Closed {
                connection: Some(connection),
            } => Some(connection.statistics()),
            State::Locating
            | State::Requesting { .. }
            | State::Requested { .. }
            | State::Deleting { .. }
            | State::Closed { connection: None } => None,
        }
    }

    /// The flows.
    #[must_use]
    pub fn flows(&self) -> Vec<FlowView> {
        let view = |(id, flow): (&FlowId, &Flow)| {
            let statistics = self.flow_statistics(*id).unwrap_or_default();
            FlowView {
                flow: *id,
                local: flow.local.clone(),
                remote: flow.remote.clone(),
                state: flow.state_name(),
                address: flow.peer().map(|peer| peer.address.0),
                sdus_sent: statistics.sdus_sent,
                sdus_received: statistics.sdus_received,
                retransmitted: statistics.retransmitted,
                marked: statistics.marked,
            }
        };
        self.flows.all.iter().map(view).collect()
    }
}

/// The dialect of PDUs.
pub(crate) fn paper() -> &'static dyn Dialect {
    &Paper
}
