//! PDUs of flows: to and from connections, and the end of flows.

use super::{Flow, LINGER, State};
use crate::output::{FlowEvent, FlowId, Output, Refused};
use crate::process::IpcProcess;
use weir_rina::Time;
use weir_rina::efcp::Pdu;

impl IpcProcess {
    /// Takes a data or control PDU for this IPC process.
    pub(crate) fn receive_pdu(&mut self, pdu: &Pdu<'_>, now: Time) {
        self.counters.pdus_received += 1;
        let Some(&id) = self.flows.by_cep.get(&pdu.pci.destination_cep) else {
            return self.refuse_input(Refused::NoConnection);
        };
        let Some(connection) = self.flows.all.get_mut(&id).and_then(Flow::connection) else {
            return self.refuse_input(Refused::NoConnection);
        };
        let received = connection.receive(&pdu.pci, pdu.payload, now);
        match (received, self.flows.all.get_mut(&id)) {
            (Ok(()), Some(flow)) => (flow.heard, flow.check) = (now, None),
            (Ok(()), None) => {}
            (Err(_), _) => self.refuse_input(Refused::Connection),
        }
        self.pump(id, now);
    }

    /// Sends what a connection may send, and reports to its owner what has changed.
    pub(super) fn pump(&mut self, id: FlowId, now: Time) {
        self.transmit_all(id, now);
        self.flows.reschedule(id, now);
    }

    fn transmit_all(&mut self, id: FlowId, now: Time) {
        loop {
            let Some(connection) = self.flows.all.get_mut(&id).and_then(Flow::connection) else {
                return;
            };
            let Some((pci, payload)) = connection.poll_transmit(now) else {
                break;
            };
            // As long as there is progress it may send what it has.
            if let Some(State::Draining { until, .. }) = self.flows.all.get_mut(&id).map(|flow| &mut flow.state) {
                *until = now + LINGER;
            }
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
        if is_readable && !flow.is_reported {
            flow.is_reported = true;
            self.outputs.push_back(Output::Flow(id, FlowEvent::Readable));
        }
        if is_writable && flow.waits_for_room {
            flow.waits_for_room = false;
            self.outputs.push_back(Output::Flow(id, FlowEvent::Writable));
        }
        match closed {
            Some(closed) => self.close_flow(id, &closed.to_string(), now),
            None => self.finish_draining(id, now),
        }
    }

    /// Starts to send M_DELETE to the peer once all is sent, or the time is over.
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
        let state = State::Deleting {
            peer: *peer,
            invoke_id: self.random_invoke_id(),
            attempts: 0,
            next: now,
        };
        self.set_flow_state(id, state, now);
        self.tick_flow(id, now);
    }

    /// Ends a flow from this side of the network: what has arrived can still be read.
    pub(super) fn close_flow(&mut self, id: FlowId, reason: &str, now: Time) {
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
        self.flows.reschedule(id, now);
    }

    fn send_connection_pdu(&mut self, pci: &weir_rina::efcp::Pci, payload: &[u8], now: Time) {
        self.counters.pdus_sent += 1;
        self.send_pdu(pci, payload, now);
    }
}
