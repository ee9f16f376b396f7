//! Neighbours are found by ARP.

use crate::config::{PortId, ms};
use crate::frame::{Frame, header};
use crate::neighbours::{KNOWN_FACTOR, Neighbour, NeighbourKey};
use crate::output::Refused;
use crate::process::IpcProcess;
use weir_rina::arp::{ArpPacket, MacAddress, Operation, ShimDialect};
use weir_rina::{ApplicationName, Time};

const SHIM: ShimDialect = ShimDialect::Rlite;

impl IpcProcess {
    pub(crate) fn receive_arp(&mut self, port: PortId, frame: &Frame<'_>, now: Time) {
        let Ok(packet) = ArpPacket::decode(frame.payload) else {
            return self.refuse_input(Refused::Malformed);
        };
        let Ok((sender, target)) = packet.names(SHIM) else {
            return self.refuse_input(Refused::Malformed);
        };
        if packet.sender_mac != frame.from || frame.from.0[0] & 1 != 0 {
            return self.refuse_input(Refused::Malformed);
        }
        let (own, dif) = (self.own_name(), ApplicationName::process(self.config.dif.clone()));
        match packet.operation {
            Operation::Request => {
                // Members answer for the DIF, so that others can enrol with them.
                let is_for_us = target == own || (target == dif && self.address.is_some());
                if !is_for_us || !self.is_expected(port, &sender) {
                    return;
                }
                if self.find_neighbour((port, frame.from), now) {
                    self.send_arp(port, &packet.reply(self.port_mac(port)), frame.from);
                }
            }
            Operation::Reply => {
                let key = (port, frame.from);
                if target == own && sender == dif && self.find_neighbour(key, now) {
                    self.set_member(key, now);
                }
            }
        }
    }

    fn set_member(&mut self, key: NeighbourKey, now: Time) {
        if let Some(neighbour) = self.neighbours.get_mut(&key)
            && !neighbour.is_member
        {
            neighbour.is_member = true;
            self.tick_neighbour(key, now);
        }
    }

    /// Whether the configuration permits a neighbour of this name.
    pub(crate) fn is_expected(&self, port: PortId, name: &ApplicationName) -> bool {
        let expected = self.config.ports.iter().find(|p| p.number == port);
        let expected = expected.and_then(|port| port.neighbour.as_ref());
        expected.is_none_or(|expected| name.process == *expected)
    }

    /// Adds a neighbour; false if there are too many.
    fn find_neighbour(&mut self, key: NeighbourKey, now: Time) -> bool {
        if let Some(neighbour) = self.neighbours.get_mut(&key) {
            neighbour.last_heard = now;
            return true;
        }
        let of_port = self.neighbours.keys().filter(|known| known.0 == key.0).count();
        if of_port >= self.config.limits.neighbours_per_port && !self.forget_stranger(key.0) {
            self.refuse_input(Refused::Limit);
            return false;
        }
        let neighbour = Neighbour {
            name: None,
            exchange: None,
            is_member: false,
            up: None,
            keepalive: None,
            retry: now,
            found: self.neighbours_found,
            last_heard: now,
        };
        self.neighbours_found += 1;
        self.neighbours.insert(key, neighbour);
        true
    }

    /// Forgets the stranger of a port that was found first: a table full of invented senders does
    /// not keep members out. Each new one stays until as many others were found as the table holds,
    /// whatever those send; an enrolment takes less. Returns whether there was a stranger.
    fn forget_stranger(&mut self, port: PortId) -> bool {
        let strangers = self.neighbours.iter();
        let strangers = strangers.filter(|(key, neighbour)| key.0 == port && neighbour.is_stranger());
        let first = strangers.min_by_key(|(_, neighbour)| neighbour.found);
        let first = first.map(|(key, _)| *key);
        first.is_some_and(|key| self.neighbours.remove(&key).is_some())
    }

    fn send_arp(&mut self, port: PortId, packet: &ArpPacket<'_>, to: MacAddress) {
        let Some(config) = self.config.ports.iter().find(|p| p.number == port) else {
            return;
        };
        let mut frame = header(config, to, SHIM.ether_type());
        if packet.encode(&mut frame).is_ok() {
            self.send_frame(port, frame);
        }
    }

    pub(crate) fn port_mac(&self, port: PortId) -> MacAddress {
        let config = self.config.ports.iter().find(|p| p.number == port);
        config.map_or(MacAddress::default(), |port| port.mac)
    }

    fn own_name(&self) -> ApplicationName {
        ApplicationName::process(self.config.name.clone())
    }

    /// Sends an ARP request at a port now, and enrols with its known neighbours without a pause.
    pub fn search(&mut self, port: PortId, now: Time) {
        if let Some(state) = self.ports.get_mut(&port) {
            state.next_request = now;
        }
        let of_port = self.neighbours.iter_mut().filter(|(key, _)| key.0 == port);
        of_port.for_each(|(_, neighbour)| neighbour.retry = now);
        self.tick(now);
    }

    /// Asks for neighbours on ports whose time has come.
    pub(crate) fn discover(&mut self, now: Time) {
        let due: Vec<PortId> = self
            .ports
            .iter()
            .filter(|(_, state)| state.is_up && state.next_request <= now)
            .map(|(port, _)| *port)
            .collect();
        for port in due {
            let is_known = self.neighbours.iter().any(|(key, n)| key.0 == port && n.up.is_some());
            let interval = ms(self.config.timers.discovery) * if is_known { KNOWN_FACTOR } else { 1 };
            if let Some(state) = self.ports.get_mut(&port) {
                state.next_request = now + interval;
            }
            let text = |name: &str| ApplicationName::process(name).to_text(SHIM.name_form());
            let (Ok(sender), Ok(target)) = (text(&self.config.name), text(&self.config.dif)) else {
                continue;
            };
            let packet = ArpPacket {
                operation: Operation::Request,
                sender_mac: self.port_mac(port),
                sender: sender.as_ref(),
                target_mac: MacAddress::default(),
                target: target.as_ref(),
            };
            self.send_arp(port, &packet, MacAddress::BROADCAST);
        }
    }
}
