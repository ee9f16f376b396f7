//! Timers of flows.

use super::{CHECK_ATTEMPTS, Check, DELETE_ATTEMPTS, State, UNREACHABLE};
use crate::MESSAGES;
use crate::config::ms;
use crate::output::FlowId;
use crate::process::IpcProcess;
use std::time::Duration;
use weir_rina::Time;
use weir_rina::cdap::objects::WellKnown;
use weir_rina::cdap::{Message, Opcode};
use weir_rina::efcp::Address;

/// Between two questions to the peer of an idle flow.
const CHECK_PAUSE: Duration = Duration::from_secs(2);
const NOT_LOCATED: &str = "no IPC process that can be reached has registered the application";
const NO_ANSWER: &str = "the other IPC process does not answer";
const NOT_ACCEPTED: &str = "the application has not answered the request in time";
const NO_ROUTE: &str = "there is no route to the other side";

impl IpcProcess {
    /// This IPC process has another address: connections do not survive that.
    pub(crate) fn close_all_flows(&mut self, reason: &str, now: Time) {
        let ids: Vec<FlowId> = self.flows.all.keys().copied().collect();
        ids.into_iter().for_each(|id| self.close_flow(id, reason, now));
    }

    /// Runs the timers of flows.
    pub(crate) fn tick_flows(&mut self, now: Time) {
        let locates = std::mem::take(&mut self.flows.is_to_locate);
        if locates || self.flows.directory_revision != self.directory.revision {
            self.flows.directory_revision = self.directory.revision;
            let ids: Vec<FlowId> = self.flows.all.keys().copied().collect();
            ids.into_iter().for_each(|id| self.locate(id, now));
        }
        let due = self.flows.timers.range(..=(now, FlowId(u32::MAX)));
        let due: Vec<FlowId> = due.map(|(_, id)| *id).collect();
        due.into_iter().for_each(|id| self.tick_flow(id, now));
        if now >= self.flows.next_check {
            self.flows.next_check = now + Duration::from_secs(1);
            self.check_flows(now);
        }
    }

    /// Requests that take too long, peers without a route, and peers that may have restarted.
    fn check_flows(&mut self, now: Time) {
        let limit = ms(self.config.timers.allocation_limit);
        let (mut ended, mut idle) = (Vec::new(), Vec::new());
        for (id, flow) in &mut self.flows.all {
            let is_over = now.since(flow.since) >= limit;
            match &flow.state {
                State::Locating if is_over => ended.push((*id, NOT_LOCATED)),
                State::Requesting { .. } if is_over => ended.push((*id, NO_ANSWER)),
                State::Requested { .. } if is_over => ended.push((*id, NOT_ACCEPTED)),
                State::Open { peer, .. } => {
                    let is_reachable = Some(peer.address) == self.address || self.table.contains_key(&peer.address);
                    if is_reachable {
                        flow.unreachable_since = None;
                        let is_idle = now.since(flow.heard) >= ms(self.config.timers.flow_check);
                        idle.extend(is_idle.then_some((*id, peer.address, peer.port)));
                    } else if now.since(*flow.unreachable_since.get_or_insert(now)) >= UNREACHABLE {
                        ended.push((*id, NO_ROUTE));
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
        for (id, reason) in ended {
            self.close_flow(id, reason, now);
        }
        for (id, address, port) in idle {
            self.check_flow(id, address, port, now);
        }
    }

    /// Asks the peer of an idle flow whether it has the flow still.
    fn check_flow(&mut self, id: FlowId, address: Address, port: u64, now: Time) {
        let fresh = Check {
            invoke_id: self.random_invoke_id(),
            attempts: 0,
            next: now,
        };
        let Some(flow) = self.flows.all.get_mut(&id) else {
            return;
        };
        let check = flow.check.get_or_insert(fresh);
        if now < check.next {
            return;
        }
        if check.attempts >= CHECK_ATTEMPTS {
            return self.close_flow(id, NO_ANSWER, now);
        }
        check.attempts += 1;
        check.next = now + CHECK_PAUSE;
        let invoke_id = check.invoke_id;
        let object = WellKnown::Flows.id(MESSAGES);
        let name = format!("{}/{port}", object.name);
        let message = Message {
            invoke_id,
            ..Message::about(Opcode::Read, object.class, &name, None)
        };
        self.send_remote(address, &message, now);
    }

    /// Runs the timers of a flow.
    pub(super) fn tick_flow(&mut self, id: FlowId, now: Time) {
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
        self.flows.reschedule(id, now);
    }

    pub(crate) fn flow_deadline(&self) -> Option<Time> {
        let check = (!self.flows.all.is_empty()).then_some(self.flows.next_check);
        let first = self.flows.timers.first().map(|(due, _)| *due);
        [first, check].into_iter().flatten().min()
    }
}
