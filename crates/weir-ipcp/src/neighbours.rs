//! Neighbours: found by ARP, enrolled, and watched by keepalive.

use crate::MESSAGES;
use crate::config::{PortId, ms};
use crate::output::{Down, Event, Output, Refused};
use crate::process::IpcProcess;
use std::time::Duration;
use weir_rina::arp::MacAddress;
use weir_rina::cdap::objects::WellKnown;
use weir_rina::cdap::{Message, Opcode};
use weir_rina::efcp::Address;
use weir_rina::enrolment::{
    Authenticator, Enrollee, EnrolleeConfig, Enroller, EnrollerConfig, Password, Retries, Step,
};
use weir_rina::keepalive::{Keepalive, KeepaliveAction, KeepaliveConfig};
use weir_rina::{ApplicationName, Time};

/// How much slower a port is searched once it has a neighbour.
pub(crate) const KNOWN_FACTOR: u32 = 20;
/// An M_CONNECT this long after the enrolment is that of a neighbour that has restarted; before, it
/// was delayed on its way.
const SETTLED: Duration = Duration::from_millis(50);
/// Attempts of each message of the enrolment.
const ATTEMPTS: u32 = 5;

/// A neighbour: its port and its MAC address there.
pub(crate) type NeighbourKey = (PortId, MacAddress);

#[derive(Debug)]
pub(crate) enum Exchange {
    Enrollee(Box<Enrollee>),
    Enroller(Box<Enroller>),
}

#[derive(Debug)]
pub(crate) struct Neighbour {
    /// Its name, once it is enrolled.
    pub name: Option<String>,
    pub exchange: Option<Exchange>,
    /// It has answered for the DIF: others can enrol with it.
    pub is_member: bool,
    /// Since when it is enrolled.
    pub up: Option<Time>,
    pub keepalive: Option<Keepalive>,
    /// When the next enrolment may start.
    pub retry: Time,
    /// When it was found: a place in the order of all that were.
    pub found: u64,
    pub last_heard: Time,
}

impl Neighbour {
    /// It has sent no more than frames that any station can invent or replay.
    pub fn is_stranger(&self) -> bool {
        let has_proved = match &self.exchange {
            Some(Exchange::Enroller(enroller)) => enroller.is_authenticated(),
            Some(Exchange::Enrollee(_)) | None => false,
        };
        self.up.is_none() && !has_proved
    }
}

#[derive(Debug)]
pub(crate) struct PortState {
    pub is_up: bool,
    pub next_request: Time,
}

impl PortState {
    pub fn new(now: Time) -> Self {
        PortState {
            is_up: true,
            next_request: now,
        }
    }
}

/// A neighbour, for people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NeighbourView {
    /// The port.
    pub port: PortId,
    /// Its MAC address.
    #[serde(serialize_with = "crate::output::text")]
    pub mac: MacAddress,
    /// Its name, once it is enrolled.
    pub name: Option<String>,
    /// Its address, once it is known.
    pub address: Option<u32>,
    /// `found`, `enrolling` or `enrolled`.
    pub state: &'static str,
}

impl IpcProcess {
    fn authenticator(&self) -> Authenticator {
        match &self.config.password {
            None => Authenticator::None,
            Some(password) => Authenticator::Password(Password::new(password.as_bytes())),
        }
    }

    fn retries(&self) -> Retries {
        Retries {
            timeout: ms(self.config.timers.enrolment),
            attempts: ATTEMPTS,
        }
    }

    /// The port is up: neighbours are searched.
    pub fn port_up(&mut self, port: PortId, now: Time) {
        if let Some(state) = self.ports.get_mut(&port) {
            state.is_up = true;
            state.next_request = now;
        }
        self.tick(now);
    }

    /// The port is down: links over it are withdrawn at once.
    pub fn port_down(&mut self, port: PortId, now: Time) {
        if let Some(state) = self.ports.get_mut(&port) {
            state.is_up = false;
        }
        let of_port: Vec<NeighbourKey> = self.neighbours.keys().filter(|key| key.0 == port).copied().collect();
        for key in of_port {
            self.neighbour_down(key, Down::Port, now);
            self.neighbours.remove(&key);
        }
        self.flush(now);
    }

    /// The neighbours.
    #[must_use]
    pub fn neighbours(&self) -> Vec<NeighbourView> {
        let view = |(key, neighbour): (&NeighbourKey, &Neighbour)| NeighbourView {
            port: key.0,
            mac: key.1,
            address: neighbour
                .name
                .as_ref()
                .and_then(|name| self.names.get(name))
                .map(|address| address.0),
            name: neighbour.name.clone(),
            state: match (neighbour.up, &neighbour.exchange) {
                (Some(_), _) => "enrolled",
                (None, Some(_)) => "enrolling",
                (None, None) => "found",
            },
        };
        self.neighbours.iter().map(view).collect()
    }

    /// The enrolled neighbours of a name.
    pub(crate) fn links_to<'a>(&'a self, name: &'a str) -> impl Iterator<Item = NeighbourKey> + 'a {
        let is_up = move |neighbour: &Neighbour| neighbour.up.is_some() && neighbour.name.as_deref() == Some(name);
        self.neighbours
            .iter()
            .filter(move |(_, neighbour)| is_up(neighbour))
            .map(|(key, _)| *key)
    }

    /// Those of the least cost, which carry PDUs.
    pub(crate) fn best_links_to<'a>(&'a self, name: &'a str) -> impl Iterator<Item = NeighbourKey> + 'a {
        let cost = self.cost_to(name);
        self.links_to(name)
            .filter(move |key| Some(self.port_cost(key.0)) == cost)
    }

    /// The cost of the cheapest link to an enrolled neighbour.
    fn cost_to(&self, name: &str) -> Option<u32> {
        self.links_to(name).map(|key| self.port_cost(key.0)).min()
    }

    fn port_cost(&self, port: PortId) -> u32 {
        let config = self.config.ports.iter().find(|known| known.number == port);
        config.map_or(1, |config| config.cost)
    }

    /// Starts an enrolment through a neighbour.
    fn enrol(&mut self, key: NeighbourKey, now: Time) {
        let config = EnrolleeConfig {
            name: self.config.name.clone(),
            dif: self.config.dif.clone(),
            proposed: self.address.unwrap_or(self.proposal),
            lower_difs: Vec::new(),
            authenticator: self.authenticator(),
            dialect: MESSAGES,
            retries: self.retries(),
            max_parameters: 16,
        };
        let nonce = self.random_nonce();
        let (enrollee, step) = Enrollee::new(config, nonce, now);
        if let Some(neighbour) = self.neighbours.get_mut(&key) {
            neighbour.exchange = Some(Exchange::Enrollee(Box::new(enrollee)));
        }
        self.take_step(key, step, now);
    }

    fn new_enroller(&mut self, now: Time) -> Enroller {
        let config = EnrollerConfig {
            name: self.config.name.clone(),
            dif: self.config.dif.clone(),
            lower_difs: Vec::new(),
            authenticator: self.authenticator(),
            dialect: MESSAGES,
            retries: self.retries(),
            parameters: Vec::new(),
        };
        let nonce = self.random_nonce();
        Enroller::new(config, nonce, now)
    }

    /// Takes a message of a neighbour that belongs to its enrolment.
    pub(crate) fn receive_enrolment(&mut self, key: NeighbourKey, message: &Message, now: Time) {
        if message.opcode == Opcode::Connect && !self.prepare_enroller(key, message, now) {
            return;
        }
        let Some(neighbour) = self.neighbours.get_mut(&key) else {
            return;
        };
        let step = match &mut neighbour.exchange {
            None => return self.refuse_input(Refused::NotEnrolled),
            Some(Exchange::Enrollee(enrollee)) => enrollee.receive(message, now),
            Some(Exchange::Enroller(enroller)) => enroller.receive(message, &mut self.addresses, now),
        };
        self.take_step(key, step, now);
    }

    /// Whether an M_CONNECT is for an enroller, which exists then.
    fn prepare_enroller(&mut self, key: NeighbourKey, message: &Message, now: Time) -> bool {
        if self.address.is_none() {
            self.refuse_input(Refused::NotEnrolled);
            return false;
        }
        if !self.is_expected(key.0, &message.source) {
            self.refuse_input(Refused::UnexpectedMessage);
            return false;
        }
        let Some(neighbour) = self.neighbours.get(&key) else {
            return false;
        };
        // An M_CONNECT may be replayed: the link stays until the new enrolment is complete.
        if neighbour.up.is_some_and(|up| now.since(up) < SETTLED) {
            return false;
        }
        let is_needed = match &neighbour.exchange {
            None => true,
            Some(Exchange::Enrollee(_)) if neighbour.up.is_some() => true,
            // Both sides have sent M_CONNECT: that with the smaller MAC address enrols.
            Some(Exchange::Enrollee(_)) => key.1 < self.port_mac(key.0),
            Some(Exchange::Enroller(enroller)) => enroller.deadline().is_none(),
        };
        if is_needed {
            let enroller = self.new_enroller(now);
            if let Some(neighbour) = self.neighbours.get_mut(&key) {
                neighbour.exchange = Some(Exchange::Enroller(Box::new(enroller)));
            }
            return true;
        }
        !matches!(
            self.neighbours.get(&key).and_then(|n| n.exchange.as_ref()),
            Some(Exchange::Enrollee(_))
        )
    }

    fn take_step(&mut self, key: NeighbourKey, step: Step, now: Time) {
        for message in &step.messages {
            self.send_to_neighbour(key, message);
        }
        match step.event {
            None => {}
            Some(weir_rina::enrolment::Event::Failed(failure)) => {
                self.counters.enrolments_failed[failure.index()] += 1;
                let port = key.0;
                self.event(Event::EnrolmentFailed { port, failure });
                let pause =
                    ms(self.config.timers.enrolment) + Duration::from_millis(u64::from(self.random_u32() % 200));
                if let Some(neighbour) = self.neighbours.get_mut(&key) {
                    neighbour.exchange = None;
                    neighbour.is_member = false;
                    neighbour.retry = now + pause;
                }
            }
            Some(weir_rina::enrolment::Event::Enrolled(enrolled)) => {
                let is_enrollee = matches!(
                    self.neighbours.get(&key).and_then(|n| n.exchange.as_ref()),
                    Some(Exchange::Enrollee(_))
                );
                if is_enrollee {
                    self.joined(enrolled.address, now);
                } else {
                    self.neighbour_restarted(key, now);
                    self.note_name(&enrolled.neighbour, enrolled.address);
                }
                let name = ApplicationName::process(enrolled.neighbour.clone());
                if self.is_expected(key.0, &name) {
                    self.neighbour_up(key, enrolled.neighbour, now);
                } else {
                    self.refuse_input(Refused::UnexpectedMessage);
                    self.neighbours.remove(&key);
                }
            }
        }
    }

    /// An enrolled neighbour has enrolled again: the link of before is withdrawn.
    fn neighbour_restarted(&mut self, key: NeighbourKey, now: Time) {
        let Some(neighbour) = self.neighbours.get_mut(&key).filter(|n| n.up.is_some()) else {
            return;
        };
        // It answers repeated messages of the enrolment.
        let exchange = neighbour.exchange.take();
        self.neighbour_down(key, Down::Restarted, now);
        if let Some(neighbour) = self.neighbours.get_mut(&key) {
            neighbour.exchange = exchange;
        }
    }

    fn neighbour_up(&mut self, key: NeighbourKey, name: String, now: Time) {
        if name == self.config.name {
            // A loop, or another process of the same name.
            self.refuse_input(Refused::UnexpectedMessage);
            self.neighbours.remove(&key);
            return;
        }
        let before = self.cost_to(&name);
        let config = KeepaliveConfig {
            interval: ms(self.config.timers.keepalive),
            misses: self.config.timers.keepalive_misses,
            dialect: MESSAGES,
        };
        if let Some(neighbour) = self.neighbours.get_mut(&key) {
            neighbour.name = Some(name.clone());
            neighbour.up = Some(now);
            neighbour.keepalive = Some(Keepalive::new(config, now));
        }
        self.counters.enrolments += 1;
        if before.is_none() {
            self.directory.neighbour_up(&name);
        }
        self.announce_cost(&name, before, now);
        // A second link of the same cost changes routes, too, but no link state.
        self.routes_dirty = true;
        self.floods = true;
        let port = key.0;
        self.event(Event::NeighbourUp { neighbour: name, port });
    }

    /// Announces the cost to a neighbour if the set of links to it has changed that.
    fn announce_cost(&mut self, name: &str, before: Option<u32>, now: Time) {
        let after = self.cost_to(name);
        match after {
            Some(cost) if after != before => self.links.neighbour_up(name.to_owned(), cost, now),
            Some(_) => {}
            None => self.links.neighbour_down(&name.to_owned(), now),
        }
    }

    /// A link is not used any more.
    pub(crate) fn neighbour_down(&mut self, key: NeighbourKey, reason: Down, now: Time) {
        let before = self.neighbour_name(key).and_then(|name| self.cost_to(&name));
        let Some(neighbour) = self.neighbours.get_mut(&key) else {
            return;
        };
        neighbour.exchange = None;
        neighbour.keepalive = None;
        neighbour.retry = now;
        let was_up = neighbour.up.take().is_some();
        let Some(name) = neighbour.name.take().filter(|_| was_up) else {
            return;
        };
        if let Some(state) = self.ports.get_mut(&key.0) {
            state.next_request = now;
        }
        self.announce_cost(&name, before, now);
        if self.links_to(&name).next().is_none() {
            self.directory.neighbour_down(&name);
        }
        // A failure of an own link does not wait for others.
        self.floods = true;
        self.routes_dirty = true;
        self.next_routes = now;
        let port = key.0;
        self.event(Event::NeighbourDown {
            neighbour: name,
            port,
            reason,
        });
    }

    /// Takes a keepalive message of an enrolled neighbour.
    pub(crate) fn receive_keepalive(&mut self, key: NeighbourKey, message: &Message) {
        let keepalive = self.neighbours.get(&key).and_then(|n| n.keepalive.as_ref());
        if let Some(response) = keepalive.and_then(|keepalive| keepalive.respond(message)) {
            self.send_to_neighbour(key, &response);
        }
    }

    /// Any message of a neighbour shows that it is alive.
    pub(crate) fn heard(&mut self, key: NeighbourKey, now: Time) {
        if let Some(neighbour) = self.neighbours.get_mut(&key) {
            neighbour.last_heard = now;
            if let Some(keepalive) = &mut neighbour.keepalive {
                keepalive.heard();
            }
        }
    }

    pub(crate) fn is_keepalive(message: &Message) -> bool {
        message.object_name == WellKnown::Keepalive.id(MESSAGES).name
    }

    pub(crate) fn tick_neighbours(&mut self, now: Time) {
        self.discover(now);
        let keys: Vec<NeighbourKey> = self.neighbours.keys().copied().collect();
        for key in keys {
            self.tick_neighbour(key, now);
        }
    }

    pub(crate) fn tick_neighbour(&mut self, key: NeighbourKey, now: Time) {
        let Some(neighbour) = self.neighbours.get_mut(&key) else {
            return;
        };
        let step = match &mut neighbour.exchange {
            Some(Exchange::Enrollee(enrollee)) => enrollee.tick(now),
            Some(Exchange::Enroller(enroller)) => enroller.tick(now),
            None => Step::default(),
        };
        self.take_step(key, step, now);
        let Some(neighbour) = self.neighbours.get_mut(&key) else {
            return;
        };
        if let Some(keepalive) = &mut neighbour.keepalive {
            match keepalive.tick(now) {
                KeepaliveAction::Wait => {}
                KeepaliveAction::Send(message) => self.send_to_neighbour(key, &message),
                KeepaliveAction::Dead => {
                    self.neighbour_down(key, Down::Keepalive, now);
                    // It is found again once it answers.
                    self.neighbours.remove(&key);
                }
            }
            return;
        }
        let is_free = neighbour.exchange.is_none() && neighbour.up.is_none() && neighbour.retry <= now;
        if !is_free {
            return;
        }
        if now.since(neighbour.last_heard) > ms(self.config.timers.discovery) * KNOWN_FACTOR * 2 {
            self.neighbours.remove(&key);
            return;
        }
        if self.may_enrol(key) {
            self.enrol(key, now);
        }
    }

    /// Only members can enrol others. Of two members the one with the smaller MAC address does it;
    /// an IPC process that is no member joins through one neighbour at a time.
    fn may_enrol(&self, key: NeighbourKey) -> bool {
        let is_member = self.neighbours.get(&key).is_some_and(|neighbour| neighbour.is_member);
        let is_free = match self.address {
            Some(_) => self.port_mac(key.0) < key.1,
            None => !self
                .neighbours
                .values()
                .any(|n| matches!(n.exchange, Some(Exchange::Enrollee(_)))),
        };
        is_member && is_free
    }

    pub(crate) fn neighbour_deadline(&self, now: Time) -> Option<Time> {
        let ports = self
            .ports
            .values()
            .filter(|state| state.is_up)
            .map(|state| state.next_request);
        let forgotten = ms(self.config.timers.discovery) * KNOWN_FACTOR * 2 + Duration::from_millis(1);
        let neighbours = self.neighbours.iter().filter_map(|(key, neighbour)| {
            let exchange = match &neighbour.exchange {
                Some(Exchange::Enrollee(enrollee)) => enrollee.deadline(),
                Some(Exchange::Enroller(enroller)) => enroller.deadline(),
                None if neighbour.up.is_none() && self.may_enrol(*key) => Some(neighbour.retry.max(now)),
                None if neighbour.up.is_none() => Some(neighbour.last_heard + forgotten),
                None => None,
            };
            let keepalive = neighbour.keepalive.as_ref().and_then(Keepalive::deadline);
            [exchange, keepalive].into_iter().flatten().min()
        });
        ports.chain(neighbours).min()
    }

    /// This IPC process is a member, with an address.
    fn joined(&mut self, address: Address, now: Time) {
        if self.address == Some(address) {
            return;
        }
        if self.address.is_some() {
            self.leave(now);
        }
        self.become_member(address, now);
    }

    /// All links are withdrawn: this IPC process gets another address.
    pub(crate) fn leave(&mut self, now: Time) {
        let up: Vec<NeighbourKey> = self
            .neighbours
            .iter()
            .filter(|(_, n)| n.up.is_some())
            .map(|(key, _)| *key)
            .collect();
        for key in up {
            self.neighbour_down(key, Down::AddressChanged, now);
        }
        self.close_all_flows("the IPC process has another address", now);
        self.names.remove(&self.config.name);
        self.address = None;
    }

    /// News for logs, which are dropped and counted if the owner does not take them.
    pub(crate) fn event(&mut self, event: Event) {
        if self.outputs.len() >= self.config.limits.outputs {
            return self.refuse_input(Refused::QueueFull);
        }
        self.outputs.push_back(Output::Event(event));
    }
}
