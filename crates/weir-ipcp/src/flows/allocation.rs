//! Messages of flow allocation.

use super::{Flow, Peer, State, policies};
use crate::output::{FlowEvent, FlowId, Output, Refused};
use crate::process::IpcProcess;
use crate::{MESSAGES, VALUES};
use weir_rina::Time;
use weir_rina::cdap::objects::{ConnectionId, FlowRequest, Node, Object, WellKnown};
use weir_rina::cdap::{Message, Opcode, result};
use weir_rina::efcp::{Address, CepId};

impl IpcProcess {
    pub(super) fn flow_request(&self, id: FlowId, flow: &Flow, peer: Option<Peer>) -> FlowRequest {
        FlowRequest {
            source_application: flow.local.clone(),
            destination_application: flow.remote.clone(),
            source_port: id.0.into(),
            destination_port: peer.map_or(0, |peer| peer.port),
            source: Node::Address(self.address().unwrap_or(Address(0)).0.into()),
            destination: None,
            connections: vec![ConnectionId {
                qos: policies(&flow.qos).qos.0,
                source_cep: flow.cep.0,
                destination_cep: peer.map_or(0, |peer| peer.cep.0),
            }],
            current_connection: 0,
            state: 0,
            qos: Some(flow.qos),
        }
    }

    pub(super) fn respond_to_request(&mut self, id: FlowId, peer: Peer, invoke_id: i32, now: Time) {
        let Some(flow) = self.flows.all.get(&id) else {
            return;
        };
        let request = self.flow_request(id, flow, Some(peer));
        let object = WellKnown::Flows.id(MESSAGES);
        let message = Message {
            invoke_id,
            result: result::SUCCESS,
            ..Message::about(
                Opcode::CreateR,
                object.class,
                object.name,
                Some(request.to_value(VALUES)),
            )
        };
        self.send_remote(peer.address, &message, now);
    }

    pub(super) fn send_refusal(&mut self, to: Address, invoke_id: i32, reason: &str, now: Time) {
        let object = WellKnown::Flows.id(MESSAGES);
        let message = Message {
            invoke_id,
            result: result::REFUSED,
            result_reason: reason.to_owned(),
            ..Message::about(Opcode::CreateR, object.class, object.name, None)
        };
        self.send_remote(to, &message, now);
    }

    /// Takes a message of flow allocation.
    pub(crate) fn receive_flow_message(&mut self, source: Address, message: &Message, now: Time) {
        match message.opcode {
            Opcode::Create => self.flow_requested(source, message, now),
            Opcode::CreateR => self.flow_answered(source, message, now),
            Opcode::Delete => self.flow_deleted(source, message, now),
            Opcode::DeleteR => {
                let is_ours = |flow: &Flow| {
                    matches!(flow.state, State::Deleting { peer, invoke_id, .. }
                        if peer.address == source && invoke_id == message.invoke_id)
                };
                let id = self.flows.all.iter().find(|(_, flow)| is_ours(flow)).map(|(id, _)| *id);
                if let Some(id) = id {
                    self.remove_flow(id);
                }
            }
            Opcode::Read => self.flow_read(source, message, now),
            Opcode::ReadR => self.flow_checked(source, message, now),
            Opcode::Connect
            | Opcode::ConnectR
            | Opcode::Release
            | Opcode::ReleaseR
            | Opcode::CancelRead
            | Opcode::CancelReadR
            | Opcode::Write
            | Opcode::WriteR
            | Opcode::Start
            | Opcode::StartR
            | Opcode::Stop
            | Opcode::StopR => self.refuse_input(Refused::UnexpectedMessage),
        }
    }

    /// The request or answer in a message, and the end of the flow at its sender.
    fn read_request(&mut self, source: Address, message: &Message) -> Option<(FlowRequest, Peer)> {
        let bytes = message.value.as_ref().and_then(|value| value.as_bytes());
        let request = bytes.and_then(|bytes| FlowRequest::decode(bytes, VALUES).ok());
        let found = request.and_then(|request| {
            let peer = Peer {
                address: source,
                port: request.source_port,
                cep: CepId(request.connections.first()?.source_cep),
            };
            Some((request, peer))
        });
        if found.is_none() {
            self.refuse_input(Refused::MalformedMessage);
        }
        found
    }

    fn flow_requested(&mut self, source: Address, message: &Message, now: Time) {
        let Some((request, peer)) = self.read_request(source, message) else {
            return;
        };
        // The response may have been lost.
        let known = self.flows.all.iter().find(|(_, flow)| {
            flow.peer() == Some(peer) && !matches!(flow.state, State::Deleting { .. } | State::Draining { .. })
        });
        if let Some((&id, flow)) = known {
            if matches!(flow.state, State::Open { .. }) {
                self.respond_to_request(id, peer, message.invoke_id, now);
            }
            return;
        }
        let local = request.destination_application;
        if !self.registrations.contains(&local) {
            return self.send_refusal(source, message.invoke_id, "the application is not registered", now);
        }
        // A source that cannot be answered is invented, or tries again once there is a route.
        if !self.has_route(source) {
            return self.refuse_input(Refused::NoRoute);
        }
        let is_pending = |flow: &&Flow| matches!(flow.state, State::Requested { .. });
        if self.flows.all.values().filter(is_pending).count() >= self.config.limits.requests() {
            self.refuse_input(Refused::Limit);
            return self.send_refusal(source, message.invoke_id, "too many requests", now);
        }
        let (remote, qos) = (request.source_application, request.qos.unwrap_or_default());
        let state = State::Requested {
            peer,
            invoke_id: message.invoke_id,
        };
        match self.add_flow(local.clone(), remote.clone(), qos, state, now) {
            Ok(id) => {
                let event = FlowEvent::Requested { local, remote, qos };
                self.outputs.push_back(Output::Flow(id, event));
            }
            Err(_) => {
                self.refuse_input(Refused::Limit);
                self.send_refusal(source, message.invoke_id, "too many flows", now);
            }
        }
    }

    fn flow_answered(&mut self, source: Address, message: &Message, now: Time) {
        let is_ours = |flow: &Flow| {
            matches!(flow.state, State::Requesting { address, invoke_id, .. }
                if address == source && invoke_id == message.invoke_id)
        };
        let Some(id) = self.flows.all.iter().find(|(_, flow)| is_ours(flow)).map(|(id, _)| *id) else {
            return self.unknown_answer(source, message, now);
        };
        if message.result != result::SUCCESS {
            let reason = if message.result_reason.is_empty() {
                format!("result {}", message.result)
            } else {
                printable(&message.result_reason)
            };
            return self.close_flow(id, &reason, now);
        }
        let Some((_, peer)) = self.read_request(source, message) else {
            return;
        };
        self.open(id, peer, now);
        self.outputs.push_back(Output::Flow(id, FlowEvent::Allocated));
    }

    /// An answer to a request that is over, such as by its timeout: the other side has opened a
    /// flow that has no end here.
    fn unknown_answer(&mut self, source: Address, message: &Message, now: Time) {
        self.refuse_input(Refused::UnexpectedMessage);
        if message.result != result::SUCCESS {
            return;
        }
        let Some((_, peer)) = self.read_request(source, message) else {
            return;
        };
        // An answer may be repeated.
        if self.flows.all.values().any(|flow| flow.peer() == Some(peer)) {
            return;
        }
        let object = WellKnown::Flows.id(MESSAGES);
        let name = format!("{}/{}", object.name, peer.port);
        let message = Message {
            invoke_id: self.random_invoke_id(),
            ..Message::about(Opcode::Delete, object.class, &name, None)
        };
        self.send_remote(source, &message, now);
    }

    /// The flow that the name of an object has, if its peer is at an address.
    fn flow_of_peer(&self, name: &str, peer: Address) -> Option<FlowId> {
        let id = FlowId(name.rsplit('/').next()?.parse().ok()?);
        let is_peer = self.flows.all.get(&id)?.peer()?.address == peer;
        is_peer.then_some(id)
    }

    /// The peer of an idle flow asks whether it is still here.
    fn flow_read(&mut self, source: Address, message: &Message, now: Time) {
        let is_here = self.flow_of_peer(&message.object_name, source).is_some();
        let (code, reason) = match is_here {
            true => (result::SUCCESS, ""),
            false => (result::NO_SUCH_OBJECT, "there is no such flow"),
        };
        if let Some(response) = message.response(code, reason) {
            self.send_remote(source, &response, now);
        }
    }

    /// The peer of an idle flow has answered whether it has it.
    fn flow_checked(&mut self, source: Address, message: &Message, now: Time) {
        let is_asked = |flow: &Flow| {
            flow.check.is_some_and(|check| check.invoke_id == message.invoke_id)
                && flow.peer().is_some_and(|peer| peer.address == source)
        };
        let flow = self.flows.all.iter_mut().find(|(_, flow)| is_asked(flow));
        let Some((&id, flow)) = flow else {
            return self.refuse_input(Refused::UnexpectedMessage);
        };
        (flow.heard, flow.check) = (now, None);
        if message.result != result::SUCCESS {
            self.close_flow(id, "the other side has lost it, such as by a restart", now);
        }
    }

    fn flow_deleted(&mut self, source: Address, message: &Message, now: Time) {
        match self.flow_of_peer(&message.object_name, source) {
            Some(id) => self.close_flow(id, "deallocated by the other side", now),
            // The answer to an earlier M_DELETE was lost, or this one is forged.
            None => self.refuse_input(Refused::UnexpectedMessage),
        }
        if let Some(response) = message.response(result::SUCCESS, "") {
            self.send_remote(source, &response, now);
        }
    }

    pub(super) fn send_request(&mut self, id: FlowId, address: Address, invoke_id: i32, now: Time) {
        let Some(flow) = self.flows.all.get(&id) else {
            return;
        };
        let request = self.flow_request(id, flow, None);
        let object = WellKnown::Flows.id(MESSAGES);
        let name = format!("{}/key={}-{}", object.name, request_key(&request.source), id.0);
        let message = Message {
            invoke_id,
            ..Message::about(Opcode::Create, object.class, &name, Some(request.to_value(VALUES)))
        };
        self.send_remote(address, &message, now);
    }
}

/// The other side chooses the reason, and people read it: control characters are replaced.
fn printable(reason: &str) -> String {
    let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    reason.chars().map(shown).collect()
}

fn request_key(node: &Node) -> u64 {
    match node {
        Node::Address(address) => *address,
        Node::Name(_) => 0,
    }
}
