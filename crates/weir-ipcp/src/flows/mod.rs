//! Flows: allocation between applications, and the connections that carry them.

mod allocation;

use crate::MESSAGES;
use crate::config::ms;
use crate::output::{FlowEvent, FlowId, Output, Refused};
use crate::process::IpcProcess;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_rina::cdap::objects::{QosRequest, WellKnown};
use weir_rina::cdap::{Message, Opcode};
use weir_rina::efcp::{Address, CepId, Dialect, Paper, Pdu, QosId};
use weir_rina::transport::{Connection, ConnectionConfig, Delivery, Endpoint, Policies, SendError, Statistics};
use weir_rina::{ApplicationName, Time};

/// PDUs that wait in a connection.
const QUEUE: usize = 512;
/// How long a flow that is deallocated may still send what it has.
const LINGER: Duration = Duration::from_secs(30);
/// A flow whose peer has no route for this long is closed.
const UNREACHABLE: Duration = Duration::from_secs(30);
/// Attempts to tell the peer that a flow is deallocated.
const DELETE_ATTEMPTS: u32 = 5;

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

#[derive(Debug)]
pub(crate) struct Flow {
    local: ApplicationName,
    remote: ApplicationName,
    qos: QosRequest,
    cep: CepId,
    state: State,
    since: Time,
    unreachable_since: Option<Time>,
    /// The owner knows that there is something to read, or waits for room.
    is_told: bool,
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
    /// Another application has registered the name here.
    #[error("the name is registered already")]
    Registered,
}

#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub all: BTreeMap<FlowId, Flow>,
    pub by_cep: BTreeMap<CepId, FlowId>,
    next: u32,
    pub directory_revision: u64,
    next_check: Time,
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
    /// The name is registered here already, or there are too many.
    pub fn register(&mut self, name: &ApplicationName, now: Time) -> Result<(), RequestError> {
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
    /// This IPC process is no member of the DIF, or has too many flows.
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
        let id = loop {
            self.flows.next = self.flows.next.wrapping_add(1).max(1);
            let id = FlowId(self.flows.next);
            if !self.flows.all.contains_key(&id) {
                break id;
            }
        };
        // CEP ids cannot be guessed; there are more of them than flows.
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
            unreachable_since: None,
            is_told: false,
            waits_for_room: false,
        };
        self.flows.all.insert(id, flow);
        Ok(id)
    }

    fn remove_flow(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.all.remove(&id) {
            self.flows.by_cep.remove(&flow.cep);
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
        if let Some(address) = self.directory.find(&flow.remote) {
            let invoke_id = self.next_invoke_id();
            self.set_flow_state(
                id,
                State::Requesting {
                    address,
                    invoke_id,
                    next: now,
                },
            );
            self.tick_flow(id, now);
        }
    }

    fn set_flow_state(&mut self, id: FlowId, state: State) {
        if let Some(flow) = self.flows.all.get_mut(&id) {
            flow.state = state;
        }
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
                flow.is_told = false;
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

    /// Takes a data or control PDU for this IPC process.
    pub(crate) fn receive_pdu(&mut self, pdu: &Pdu<'_>, now: Time) {
        self.counters.pdus_received += 1;
        let Some(&id) = self.flows.by_cep.get(&pdu.pci.destination_cep) else {
            return self.refuse_input(Refused::NoConnection);
        };
        let Some(connection) = self.flows.all.get_mut(&id).and_then(Flow::connection) else {
            return self.refuse_input(Refused::NoConnection);
        };
        if connection.receive(&pdu.pci, pdu.payload, now).is_err() {
            self.refuse_input(Refused::Connection);
        }
        self.pump(id, now);
    }

    /// Sends what a connection may send, and tells its owner what has changed.
    fn pump(&mut self, id: FlowId, now: Time) {
        loop {
            let Some(connection) = self.flows.all.get_mut(&id).and_then(Flow::connection) else {
                return;
            };
            let Some((pci, payload)) = connection.poll_transmit(now) else {
                break;
            };
            self.send_connection_pdu(&pci, &payload, now);
        }
        let Some(flow) = self.flows.all.get_mut(&id) else {
            return;
        };
        let Some(connection) = flow.connection() else {
            return;
        };
        let (is_readable, is_writable) = (connection.readable() > 0, connection.is_writable());
        let closed = connection.closed();
        if is_readable && !flow.is_told {
            flow.is_told = true;
            self.outputs.push_back(Output::Flow(id, FlowEvent::Readable));
        }
        if is_writable && flow.waits_for_room {
            flow.waits_for_room = false;
            self.outputs.push_back(Output::Flow(id, FlowEvent::Writable));
        }
        match closed {
            Some(closed) => self.close_flow(id, &closed.to_string()),
            None => self.finish_draining(id, now),
        }
    }

    /// Tells the peer that a flow is deallocated once all is sent, or the time is over.
    fn finish_draining(&mut self, id: FlowId, now: Time) {
        let Some(State::Draining {
            peer,
            connection,
            until,
        }) = self.flows.all.get(&id).map(|flow| &flow.state)
        else {
            return;
        };
        if !connection.is_drained() && connection.closed().is_none() && now < *until {
            return;
        }
        let peer = *peer;
        let invoke_id = self.next_invoke_id();
        let state = State::Deleting {
            peer,
            invoke_id,
            attempts: 0,
            next: now,
        };
        self.set_flow_state(id, state);
        self.tick_flow(id, now);
    }

    /// Ends a flow from this side of the network: what has arrived can still be read.
    fn close_flow(&mut self, id: FlowId, reason: &str) {
        let Some(flow) = self.flows.all.get_mut(&id) else {
            return;
        };
        match std::mem::replace(&mut flow.state, State::Closed { connection: None }) {
            State::Open { connection, .. } => {
                flow.state = State::Closed {
                    connection: Some(connection),
                };
                let event = FlowEvent::Closed(reason.to_owned());
                self.outputs.push_back(Output::Flow(id, event));
            }
            State::Locating | State::Requesting { .. } => {
                self.remove_flow(id);
                let event = FlowEvent::Refused(reason.to_owned());
                self.outputs.push_back(Output::Flow(id, event));
            }
            State::Requested { .. } => {
                let event = FlowEvent::Closed(reason.to_owned());
                self.outputs.push_back(Output::Flow(id, event));
            }
            State::Draining { .. } | State::Deleting { .. } => self.remove_flow(id),
            state @ State::Closed { .. } => flow.state = state,
        }
    }

    /// This IPC process has another address: connections do not survive that.
    pub(crate) fn close_all_flows(&mut self, reason: &str) {
        let ids: Vec<FlowId> = self.flows.all.keys().copied().collect();
        ids.into_iter().for_each(|id| self.close_flow(id, reason));
    }

    /// Runs the timers of flows.
    pub(crate) fn tick_flows(&mut self, now: Time) {
        if self.flows.directory_revision != self.directory.revision {
            self.flows.directory_revision = self.directory.revision;
            let ids: Vec<FlowId> = self.flows.all.keys().copied().collect();
            ids.into_iter().for_each(|id| self.locate(id, now));
        }
        let is_due = |flow: &Flow| flow.deadline(now).is_some_and(|at| at <= now);
        let due: Vec<FlowId> = self
            .flows
            .all
            .iter()
            .filter(|(_, flow)| is_due(flow))
            .map(|(id, _)| *id)
            .collect();
        due.into_iter().for_each(|id| self.tick_flow(id, now));
        if now >= self.flows.next_check {
            self.flows.next_check = now + Duration::from_secs(1);
            self.check_flows(now);
        }
    }

    /// Requests that take too long, and peers without a route.
    fn check_flows(&mut self, now: Time) {
        let limit = ms(self.config.timers.allocation_limit);
        let mut ended = Vec::new();
        for (id, flow) in &mut self.flows.all {
            let age = now.since(flow.since);
            match &flow.state {
                State::Locating if age >= limit => ended.push((*id, "no IPC process has registered the application")),
                State::Requesting { .. } if age >= limit => ended.push((*id, "the other IPC process does not answer")),
                State::Open { peer, .. } => {
                    let is_reachable = Some(peer.address) == self.address || self.table.contains_key(&peer.address);
                    if is_reachable {
                        flow.unreachable_since = None;
                    } else if now.since(*flow.unreachable_since.get_or_insert(now)) >= UNREACHABLE {
                        ended.push((*id, "there is no route to the other side"));
                    }
                }
                State::Locating
                | State::Requesting { .. }
                | State::Requested { .. }
                | State::Draining { .. }
                | State::Deleting { .. }
                | State::Closed { .. } => {}
            }
        }
        ended.into_iter().for_each(|(id, reason)| self.close_flow(id, reason));
    }

    fn tick_flow(&mut self, id: FlowId, now: Time) {
        let Some(flow) = self.flows.all.get_mut(&id) else {
            return;
        };
        if let Some(connection) = flow.connection() {
            connection.tick(now);
            self.pump(id, now);
        }
        let Some(flow) = self.flows.all.get_mut(&id) else {
            return;
        };
        match &mut flow.state {
            State::Requesting {
                address,
                invoke_id,
                next,
            } => {
                let (address, invoke_id) = (*address, *invoke_id);
                *next = now + ms(self.config.timers.allocation);
                self.send_request(id, address, invoke_id, now);
            }
            State::Deleting {
                peer,
                invoke_id,
                attempts,
                next,
            } => {
                let (peer, invoke_id) = (*peer, *invoke_id);
                if *attempts >= DELETE_ATTEMPTS {
                    return self.remove_flow(id);
                }
                *attempts += 1;
                *next = now + ms(self.config.timers.allocation);
                let object = WellKnown::Flows.id(MESSAGES);
                let message = Message {
                    invoke_id,
                    ..Message::about(
                        Opcode::Delete,
                        object.class,
                        &format!("{}/{}", object.name, peer.port),
                        None,
                    )
                };
                self.send_remote(peer.address, &message, now);
            }
            State::Locating
            | State::Requested { .. }
            | State::Open { .. }
            | State::Draining { .. }
            | State::Closed { .. } => {}
        }
    }

    pub(crate) fn flow_deadline(&self, now: Time) -> Option<Time> {
        let check = (!self.flows.all.is_empty()).then_some(self.flows.next_check);
        let flows = self.flows.all.values().filter_map(|flow| flow.deadline(now));
        flows.chain(check).min()
    }

    fn send_connection_pdu(&mut self, pci: &weir_rina::efcp::Pci, payload: &[u8], now: Time) {
        self.counters.pdus_sent += 1;
        self.send_pdu(pci, payload, now);
    }
}

/// The dialect of PDUs.
pub(crate) fn paper() -> &'static dyn Dialect {
    &Paper
}
