//! The IPC process: what arrives, what leaves, and when.

use crate::MESSAGES;
use crate::config::{Config, ConfigError, PortId, Role, ms};
use crate::directory::Directory;
use crate::flows::{Flows, paper};
use crate::frame::{Frame, header};
use crate::neighbours::{Neighbour, NeighbourKey, PortState};
use crate::output::{Counters, Event, Forwarding, NextHop, Output, Refused};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weir_rina::address::Addresses;
use weir_rina::arp::{MacAddress, ShimDialect};
use weir_rina::cdap::Message;
use weir_rina::cdap::objects::WellKnown;
use weir_rina::efcp::{Address, Kind, Pci, Pdu};
use weir_rina::link_state::{Config as LinkStateConfig, Database, LinkState, Summary};
use weir_rina::routing::{Graph, Route};
use weir_rina::{ApplicationName, Time};

/// The most PDUs of this IPC process to its own address that wait.
const LOOPBACK: usize = 4096;

/// A source of random bytes. They decide nonces, CEP ids and initial sequence numbers: others must
/// not be able to guess them.
pub trait Random: Send {
    /// Fills a buffer.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// An IPC process of one DIF.
pub struct IpcProcess {
    pub(crate) config: Config,
    random: Box<dyn Random>,
    pub(crate) address: Option<Address>,
    pub(crate) ports: BTreeMap<PortId, PortState>,
    pub(crate) neighbours: BTreeMap<NeighbourKey, Neighbour>,
    pub(crate) addresses: Addresses,
    /// Addresses of members by name: of those that links of both ends connect, and of neighbours.
    pub(crate) names: BTreeMap<String, Address>,
    /// Addresses that link states have announced, by their origins, each with the time of its first
    /// announcement. An origin may be invented: its address counts once a member and the origin
    /// both announce the link between them.
    pub(crate) claims: BTreeMap<String, (Address, Time)>,
    /// When the next of them counts.
    pub(crate) next_claim: Option<Time>,
    /// The address to propose when it enrols.
    pub(crate) proposal: Address,
    /// Another member has the address of this one, which has to change.
    has_conflict: bool,
    pub(crate) links: Database<String>,
    pub(crate) routes_dirty: bool,
    /// Neighbours may have to receive states.
    pub(crate) floods: bool,
    /// Neighbours that were found so far.
    pub(crate) neighbours_found: u64,
    computed_revision: u64,
    pub(crate) next_routes: Time,
    routes: BTreeMap<String, Route<String>>,
    pub(crate) table: BTreeMap<Address, BTreeSet<NextHop>>,
    pub(crate) directory: Directory,
    pub(crate) registrations: BTreeSet<ApplicationName>,
    pub(crate) flows: Flows,
    pub(crate) outputs: VecDeque<Output>,
    loopback: VecDeque<Vec<u8>>,
    pub(crate) counters: Counters,
    invoke_id: i32,
}

impl std::fmt::Debug for IpcProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpcProcess")
            .field("name", &self.config.name)
            .field("address", &self.address)
            .field("neighbours", &self.neighbours.len())
            .finish_non_exhaustive()
    }
}

impl IpcProcess {
    /// An IPC process whose ports send ARP requests from now on.
    ///
    /// # Errors
    /// The configuration contradicts itself.
    pub fn new(config: Config, random: Box<dyn Random>, now: Time) -> Result<Self, ConfigError> {
        config.check()?;
        let timers = config.timers;
        let link_states = LinkStateConfig {
            refresh: ms(timers.refresh),
            max_age: ms(timers.max_age),
            hold: ms(timers.max_age),
            retransmit: Some(ms(timers.flooding)),
            max_links: config.limits.links,
            ..LinkStateConfig::default()
        };
        let table = config
            .address_table
            .iter()
            .map(|(name, address)| (name.clone(), Address(*address)));
        let mut process = IpcProcess {
            random,
            address: None,
            ports: config
                .ports
                .iter()
                .map(|port| (port.number, PortState::new(now)))
                .collect(),
            neighbours: BTreeMap::new(),
            addresses: Addresses::new(table.collect(), Some(config.address_range)),
            names: BTreeMap::new(),
            claims: BTreeMap::new(),
            next_claim: None,
            proposal: proposal(&config),
            has_conflict: false,
            links: Database::new(config.name.clone(), link_states),
            routes_dirty: false,
            floods: false,
            neighbours_found: 0,
            computed_revision: 0,
            next_routes: now,
            routes: BTreeMap::new(),
            table: BTreeMap::new(),
            directory: Directory::new(timers, &config.limits, now),
            registrations: BTreeSet::new(),
            flows: Flows::default(),
            outputs: VecDeque::new(),
            loopback: VecDeque::new(),
            counters: Counters::default(),
            invoke_id: 0,
            config,
        };
        if process.config.first {
            let (name, proposed) = (process.config.name.clone(), process.proposal);
            if let Ok(address) = process.addresses.assign(&name, proposed) {
                process.become_member(address, now);
            }
        }
        Ok(process)
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its address, once it is a member of the DIF.
    #[must_use]
    pub fn address(&self) -> Option<Address> {
        self.address
    }

    /// The addresses of members, by name.
    #[must_use]
    pub fn members(&self) -> &BTreeMap<String, Address> {
        &self.names
    }

    /// Routes by the name of the destination.
    #[must_use]
    pub fn routes(&self) -> &BTreeMap<String, Route<String>> {
        &self.routes
    }

    /// Applications, and the addresses of the IPC processes that they are registered at.
    pub fn directory(&self) -> impl Iterator<Item = (&ApplicationName, Address)> {
        self.directory.iter()
    }

    /// The link states that are not expired.
    pub fn link_states(&self, now: Time) -> impl Iterator<Item = LinkState<String>> {
        self.links.states(now)
    }

    /// Counters of the link-state database.
    #[must_use]
    pub fn link_state_summary(&self) -> Summary {
        self.links.summary()
    }

    /// Counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What a switch has to know: all of it, such as after a reconnection.
    #[must_use]
    pub fn forwarding(&self) -> Forwarding {
        Forwarding {
            own: self.address,
            routes: self.table.clone(),
            macs: self.config.ports.iter().map(|port| (port.number, port.mac)).collect(),
        }
    }

    /// The next output, in order.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub(crate) fn refuse_input(&mut self, reason: Refused) {
        self.counters.refused[reason as usize] += 1;
    }

    pub(crate) fn random_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.random.fill(&mut bytes);
        u32::from_ne_bytes(bytes)
    }

    pub(crate) fn random_nonce(&mut self) -> [u8; 16] {
        let mut nonce = [0; 16];
        self.random.fill(&mut nonce);
        nonce
    }

    /// An invoke id of a request to a member that is no neighbour: answers cannot be guessed.
    pub(crate) fn random_invoke_id(&mut self) -> i32 {
        (self.random_u32() >> 1).max(1) as i32
    }

    pub(crate) fn next_invoke_id(&mut self) -> i32 {
        self.invoke_id = self.invoke_id.checked_add(1).unwrap_or(1);
        self.invoke_id
    }

    pub(crate) fn become_member(&mut self, address: Address, now: Time) {
        self.address = Some(address);
        let name = self.config.name.clone();
        self.note_name(&name, address);
        self.directory.readdress(address, now);
        self.floods = true;
        self.outputs.push_back(Output::ForwardingChanged);
        self.event(Event::Joined { address: address.0 });
    }

    /// Notes the address of a member.
    pub(crate) fn note_name(&mut self, name: &str, address: Address) {
        if self.names.get(name) == Some(&address) {
            return;
        }
        // As many as there can be origins; names that a member invents cost it nothing.
        if self.names.len() >= self.config.limits.links && !self.names.contains_key(name) {
            return self.refuse_input(Refused::Limit);
        }
        self.names.insert(name.to_owned(), address);
        self.routes_dirty = true;
        if let Some(conflict) = self.addresses.observe(name, address) {
            self.has_conflict |= conflict.changes == self.config.name;
            self.names.remove(&conflict.changes);
            self.claims.remove(&conflict.changes);
            self.event(Event::AddressConflict {
                address: address.0,
                changes: conflict.changes,
            });
        }
    }

    /// Takes a frame that has arrived at a port.
    pub fn receive_frame(&mut self, port: PortId, frame: &[u8], now: Time) {
        self.counters.frames_received += 1;
        let Some(config) = self.config.ports.iter().find(|p| p.number == port) else {
            return self.refuse_input(Refused::NotOurs);
        };
        let Some(frame) = Frame::read(frame, config) else {
            return self.refuse_input(Refused::NotOurs);
        };
        let is_for_us = frame.to == config.mac || frame.to == MacAddress::BROADCAST;
        if !is_for_us || !self.ports.get(&port).is_some_and(|state| state.is_up) {
            return self.refuse_input(Refused::NotOurs);
        }
        if frame.ethertype == self.config.ethertype {
            self.receive_efcp(Some((port, frame.from)), frame.payload, now);
        } else if frame.ethertype == ShimDialect::Rlite.ether_type() {
            self.receive_arp(port, &frame, now);
        } else {
            return self.refuse_input(Refused::NotOurs);
        }
        self.flush(now);
    }

    /// `from`: the neighbour that has sent it; `None`: this IPC process itself.
    fn receive_efcp(&mut self, from: Option<NeighbourKey>, bytes: &[u8], now: Time) {
        let Ok(pdu) = paper().decode(bytes) else {
            return self.refuse_input(Refused::Malformed);
        };
        let destination = pdu.pci.destination;
        let is_ours = destination == Address::NEIGHBOUR || Some(destination) == self.address;
        match pdu.pci.kind {
            Kind::Management if is_ours => self.receive_management(from, &pdu, now),
            Kind::Data | Kind::Control(_) if is_ours && self.is_enrolled(from) => self.receive_pdu(&pdu, now),
            Kind::Management | Kind::Data | Kind::Control(_) => self.forward(from, &pdu),
        }
    }

    pub(crate) fn is_enrolled(&self, from: Option<NeighbourKey>) -> bool {
        from.is_none_or(|key| self.neighbours.get(&key).is_some_and(|n| n.up.is_some()))
    }

    /// A PDU of others.
    fn forward(&mut self, from: Option<NeighbourKey>, pdu: &Pdu<'_>) {
        if !self.is_enrolled(from) {
            return self.refuse_input(Refused::NotEnrolled);
        }
        match self.config.role {
            Role::SoftwareRouter => {
                self.counters.pdus_forwarded += 1;
                self.route(&pdu.pci, pdu.payload);
            }
            Role::Router | Role::Host => self.refuse_input(Refused::NotOurs),
        }
    }

    fn receive_management(&mut self, from: Option<NeighbourKey>, pdu: &Pdu<'_>, now: Time) {
        self.counters.messages_received += 1;
        let Ok(message) = Message::decode(pdu.payload, MESSAGES) else {
            return self.refuse_input(Refused::MalformedMessage);
        };
        if let Some(key) = from
            && !self.neighbours.contains_key(&key)
        {
            return self.refuse_input(Refused::NotEnrolled);
        }
        let is_of_flow = message.object_class == WellKnown::Flows.id(MESSAGES).class;
        let is_of_neighbour = pdu.pci.destination == Address::NEIGHBOUR;
        match (is_of_flow, is_of_neighbour) {
            (true, false) if self.is_enrolled(from) => {
                return self.receive_flow_message(pdu.pci.source, &message, now);
            }
            (true, false) => return self.refuse_input(Refused::NotEnrolled),
            (true, true) => return self.refuse_input(Refused::UnexpectedMessage),
            // Routers forward PDUs to addresses of members, and put their own MAC address into the
            // frame: such a PDU may come from any station behind them.
            (false, false) => return self.refuse_input(Refused::Routed),
            (false, true) => {}
        }
        let Some(key) = from else {
            return self.refuse_input(Refused::UnexpectedMessage);
        };
        self.heard(key, now);
        let name = message.object_name.as_str();
        let is_for_members = [WellKnown::Keepalive, WellKnown::LinkStates, WellKnown::Directory]
            .iter()
            .any(|object| object.id(MESSAGES).name == name);
        if is_for_members && !self.is_enrolled(from) {
            // One that does not know yet that this IPC process enrols again.
            return self.refuse_input(Refused::NotEnrolled);
        }
        if IpcProcess::is_keepalive(&message) {
            self.receive_keepalive(key, &message);
        } else if name == WellKnown::LinkStates.id(MESSAGES).name {
            self.receive_link_states(key, &message, now);
        } else if name == WellKnown::Directory.id(MESSAGES).name {
            self.receive_directory(key, &message, now);
        } else {
            self.receive_enrolment(key, &message, now);
        }
    }

    pub(crate) fn neighbour_name(&self, key: NeighbourKey) -> Option<String> {
        self.neighbours.get(&key)?.name.clone()
    }

    /// Runs all timers.
    pub fn tick(&mut self, now: Time) {
        self.tick_neighbours(now);
        self.floods |= self.links.deadline().is_some_and(|due| due <= now) || self.directory.deadline() <= now;
        self.links.tick(now);
        if self.directory.tick(now) {
            self.forget_members();
            self.announce_again(now);
        }
        if self.next_claim.is_some_and(|due| due <= now) {
            self.next_claim = None;
            self.routes_dirty = true;
        }
        self.flush(now);
    }

    /// When [`IpcProcess::tick`] has something to do, at the latest.
    #[must_use]
    pub fn deadline(&self, now: Time) -> Option<Time> {
        let is_dirty = self.routes_dirty || self.links.revision() != self.computed_revision;
        let routes = is_dirty.then_some(self.next_routes);
        let all = [
            self.neighbour_deadline(now),
            self.links.deadline(),
            Some(self.directory.deadline()),
            self.flow_deadline(),
            self.next_claim,
            routes,
        ];
        all.into_iter().flatten().min()
    }

    /// What follows from any input: routes, flooding, flows, PDUs for this IPC process itself.
    pub(crate) fn flush(&mut self, now: Time) {
        self.compute_routes(now);
        if std::mem::take(&mut self.has_conflict) && self.address.is_some() {
            self.change_address(now);
        }
        if std::mem::take(&mut self.floods) {
            self.flood(now);
        }
        self.tick_flows(now);
        for _ in 0..LOOPBACK {
            let Some(pdu) = self.loopback.pop_front() else {
                break;
            };
            self.receive_efcp(None, &pdu, now);
        }
    }

    /// Enrols again with another address.
    fn change_address(&mut self, now: Time) {
        let (first, last) = self.config.address_range;
        let span = u64::from(last - first) + 1;
        self.proposal = Address(first + (u64::from(self.random_u32()) % span) as u32);
        self.leave(now);
        if self.config.first {
            let name = self.config.name.clone();
            if let Ok(address) = self.addresses.assign(&name, self.proposal) {
                self.become_member(address, now);
            }
        }
    }

    /// Computes routes if links have changed: at once after a quiet time, else at its interval.
    fn compute_routes(&mut self, now: Time) {
        let revision = self.links.revision();
        if (!self.routes_dirty && revision == self.computed_revision) || now < self.next_routes {
            return;
        }
        self.next_routes = now + ms(self.config.timers.routing);
        self.computed_revision = revision;
        self.routes_dirty = false;
        self.counters.route_computations += 1;
        let links = self.links.links();
        self.take_claims(&links, now);
        self.routes = Graph::new(&links).routes(&self.config.name);
        let hops = |route: &Route<String>| -> BTreeSet<NextHop> {
            let links = route.next_hops.iter().flat_map(|name| self.best_links_to(name));
            links.filter_map(|(port, mac)| self.next_hop(port, mac)).collect()
        };
        let table: BTreeMap<Address, BTreeSet<NextHop>> = self
            .routes
            .iter()
            .filter_map(|(name, route)| Some((*self.names.get(name)?, hops(route))))
            .filter(|(_, hops)| !hops.is_empty())
            .collect();
        if table != self.table {
            let destinations = table.len();
            self.table = table;
            self.flows.locate_again();
            self.outputs.push_back(Output::ForwardingChanged);
            self.event(Event::Routes { destinations });
        }
    }

    fn next_hop(&self, port: PortId, mac: MacAddress) -> Option<NextHop> {
        let config = self.config.ports.iter().find(|p| p.number == port)?;
        Some(NextHop {
            port,
            vlan: config.vlan,
            mac,
        })
    }

    /// Sends a message of layer management to a neighbour.
    pub(crate) fn send_to_neighbour(&mut self, key: NeighbourKey, message: &Message) {
        self.counters.messages_sent += 1;
        let pci = Pci::management(self.address.unwrap_or(Address(0)), Address::NEIGHBOUR);
        self.send_over(key, &pci, &message.encode());
    }

    /// Sends a message of layer management to any member.
    pub(crate) fn send_remote(&mut self, to: Address, message: &Message, now: Time) {
        self.counters.messages_sent += 1;
        let pci = Pci::management(self.address.unwrap_or(Address(0)), to);
        self.send_pdu(&pci, &message.encode(), now);
    }

    /// Sends a PDU of this IPC process.
    pub(crate) fn send_pdu(&mut self, pci: &Pci, payload: &[u8], _now: Time) {
        if Some(pci.destination) != self.address {
            return self.route(pci, payload);
        }
        let mut pdu = Vec::with_capacity(payload.len() + 64);
        if self.loopback.len() < LOOPBACK && paper().encode(pci, payload, &mut pdu).is_ok() {
            self.loopback.push_back(pdu);
        } else {
            self.refuse_input(Refused::QueueFull);
        }
    }

    /// Sends a PDU by the table; a connection keeps its next hop.
    fn route(&mut self, pci: &Pci, payload: &[u8]) {
        let Some(hops) = self.table.get(&pci.destination) else {
            return self.refuse_input(Refused::NoRoute);
        };
        let hash = [pci.source.0, pci.destination_cep.0, pci.source_cep.0, pci.qos.0];
        let hash = hash
            .iter()
            .fold(0_u32, |hash, value| hash.wrapping_mul(31).wrapping_add(*value));
        let hop = hops.iter().nth(hash as usize % hops.len().max(1)).copied();
        match hop {
            Some(hop) => self.send_over((hop.port, hop.mac), pci, payload),
            None => self.refuse_input(Refused::NoRoute),
        }
    }

    fn send_over(&mut self, (port, mac): NeighbourKey, pci: &Pci, payload: &[u8]) {
        let Some(config) = self.config.ports.iter().find(|p| p.number == port) else {
            return;
        };
        let mut frame = header(config, mac, self.config.ethertype);
        match paper().encode(pci, payload, &mut frame) {
            Ok(()) => self.send_frame(port, frame),
            Err(_) => self.refuse_input(Refused::Malformed),
        }
    }

    pub(crate) fn send_frame(&mut self, port: PortId, frame: Vec<u8>) {
        if self.outputs.len() >= self.config.limits.outputs {
            return self.refuse_input(Refused::QueueFull);
        }
        self.counters.frames_sent += 1;
        self.counters.bytes_sent += frame.len() as u64;
        self.outputs.push_back(Output::Frame { port, frame });
    }
}

/// The configured address, or one that depends on the name: members that enrol at the same time
/// through different neighbours rarely get the same.
fn proposal(config: &Config) -> Address {
    if config.address != 0 {
        return Address(config.address);
    }
    let (first, last) = config.address_range;
    let span = u64::from(last - first) + 1;
    // FNV-1a
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = config.name.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
    Address(first + (hash % span) as u32)
}
