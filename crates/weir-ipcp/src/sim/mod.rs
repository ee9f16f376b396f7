//! Networks of IPC processes in one thread, in virtual time: for tests, examples and measurements
//! of convergence.
//!
//! Every node forwards by itself ([`Role::SoftwareRouter`]) or is a host. Links have a delay, and
//! may lose frames; they can be cut, and nodes killed and restarted.

pub mod convergence;

use crate::config::{Config, Limits, Port, PortId, Role, Timers};
use crate::output::{Event, FlowEvent, FlowId, Output};
use crate::process::{IpcProcess, Random};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;
use weir_rina::Time;
use weir_rina::arp::MacAddress;

/// A node of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node(pub usize);

/// A link of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub usize);

/// Numbers that look random, the same in every run (xorshift). Not for real networks.
#[derive(Debug, Clone)]
pub struct Pseudo(pub u64);

impl Pseudo {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

impl Random for Pseudo {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.number().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
    }
}

#[derive(Debug)]
struct Link {
    ends: [(Node, PortId); 2],
    is_cut: bool,
    /// Frames of a million that are lost.
    loss: u64,
    lost: u64,
}

#[derive(Debug)]
struct Member {
    config: Config,
    process: Option<IpcProcess>,
    /// Its deadline, as of its last use.
    deadline: Option<Time>,
    links: BTreeMap<PortId, LinkId>,
}

/// A network.
#[derive(Debug)]
pub struct Simulation {
    members: Vec<Member>,
    links: Vec<Link>,
    /// Frames on links: arrival, order, node, port.
    arrivals: BinaryHeap<Reverse<(Time, u64, Node, PortId)>>,
    frames: BTreeMap<u64, Vec<u8>>,
    count: u64,
    now: Time,
    random: Pseudo,
    /// The delay of links.
    pub delay: Duration,
    /// The timers that new nodes get.
    pub timers: Timers,
    /// The password that new nodes get.
    pub password: Option<String>,
    /// What nodes reported, oldest first.
    pub events: Vec<(Time, Node, Event)>,
    /// How many of the first frames that a node receives are kept, for [`Simulation::recorded`].
    pub records: usize,
    recorded: BTreeMap<Node, Vec<(PortId, Vec<u8>)>>,
    /// News of flows, oldest first.
    pub flow_events: Vec<(Node, FlowId, FlowEvent)>,
}

impl Simulation {
    /// An empty network. `seed`: of random numbers, not 0.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Simulation {
            members: Vec::new(),
            links: Vec::new(),
            arrivals: BinaryHeap::new(),
            frames: BTreeMap::new(),
            count: 0,
            now: Time::ZERO,
            random: Pseudo(seed.max(1)),
            delay: Duration::from_micros(50),
            timers: Timers {
                keepalive: 50,
                ..Timers::default()
            },
            password: None,
            events: Vec::new(),
            records: 1000,
            recorded: BTreeMap::new(),
            flow_events: Vec::new(),
        }
    }

    /// Adds a node that forwards. The first node bootstraps the DIF.
    pub fn router(&mut self, name: &str) -> Node {
        self.add(name, Role::SoftwareRouter)
    }

    /// Adds a host.
    pub fn host(&mut self, name: &str) -> Node {
        self.add(name, Role::Host)
    }

    fn add(&mut self, name: &str, role: Role) -> Node {
        let config = Config {
            name: name.to_owned(),
            dif: "sim".to_owned(),
            role,
            first: self.members.is_empty(),
            address: 0,
            address_range: (1, 65_535),
            address_table: BTreeMap::new(),
            password: self.password.clone(),
            max_pdu: 1400,
            max_sdu: 1 << 16,
            ethertype: weir_rina::arp::ETHERTYPE_EFCP,
            timers: self.timers,
            limits: Limits::default(),
            ports: Vec::new(),
        };
        self.members.push(Member {
            config,
            process: None,
            deadline: None,
            links: BTreeMap::new(),
        });
        Node(self.members.len() - 1)
    }

    /// Links two nodes.
    pub fn link(&mut self, a: Node, b: Node) -> LinkId {
        let id = LinkId(self.links.len());
        let ends = [a, b].map(|node| (node, self.add_port(node, id)));
        self.links.push(Link {
            ends,
            is_cut: false,
            loss: 0,
            lost: 0,
        });
        id
    }

    fn add_port(&mut self, node: Node, link: LinkId) -> PortId {
        let member = &mut self.members[node.0];
        let number = PortId(member.config.ports.len() as u32 + 1);
        let [high, low] = (node.0 as u16).to_be_bytes();
        member.config.ports.push(Port {
            number,
            mac: MacAddress([2, 0, high, low, 0, number.0 as u8]),
            vlan: 0,
            neighbour: None,
            cost: 1,
        });
        member.links.insert(number, link);
        number
    }

    /// The configuration of a node, to change it before it starts.
    pub fn config(&mut self, node: Node) -> &mut Config {
        &mut self.members[node.0].config
    }

    /// Starts all nodes.
    pub fn start(&mut self) {
        (0..self.members.len()).for_each(|at| self.restart(Node(at)));
    }

    /// Starts a node, without any memory of the time before.
    ///
    /// # Panics
    /// Its configuration contradicts itself.
    pub fn restart(&mut self, node: Node) {
        let random = Box::new(Pseudo(self.random.number() | 1));
        let member = &mut self.members[node.0];
        let process = IpcProcess::new(member.config.clone(), random, self.now);
        member.process = Some(process.unwrap_or_else(|error| panic!("{error}")));
        self.collect(node);
    }

    /// Ends a node, as `kill -9` does.
    pub fn kill(&mut self, node: Node) {
        let member = &mut self.members[node.0];
        (member.process, member.deadline) = (None, None);
    }

    /// Cuts or mends a link. Nodes notice it by keepalive only.
    pub fn set_cut(&mut self, link: LinkId, is_cut: bool) {
        self.links[link.0].is_cut = is_cut;
    }

    /// Sets the share of frames that a link loses, per million.
    pub fn set_loss(&mut self, link: LinkId, per_million: u64) {
        self.links[link.0].loss = per_million;
    }

    /// Frames that links have lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.links.iter().map(|link| link.lost).sum()
    }

    /// The IPC process of a node; `None` while it is dead.
    #[must_use]
    pub fn process(&self, node: Node) -> Option<&IpcProcess> {
        self.members[node.0].process.as_ref()
    }

    /// The nodes.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + use<> {
        (0..self.members.len()).map(Node)
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Uses the IPC process of a node, and sends what follows.
    ///
    /// # Panics
    /// It is dead.
    pub fn with<T>(&mut self, node: Node, use_it: impl FnOnce(&mut IpcProcess, Time) -> T) -> T {
        let now = self.now;
        let process = self.members[node.0].process.as_mut();
        let result = use_it(process.expect("a living node"), now);
        self.collect(node);
        result
    }

    /// Sends a frame into a node's port, as if its neighbour had sent it.
    pub fn inject(&mut self, node: Node, port: PortId, frame: Vec<u8>) {
        self.count += 1;
        self.arrivals.push(Reverse((self.now, self.count, node, port)));
        self.frames.insert(self.count, frame);
    }

    /// The first frames that a node has received, at most as many as [`Simulation::records`] says.
    #[must_use]
    pub fn recorded(&self, node: Node) -> Vec<(PortId, Vec<u8>)> {
        self.recorded.get(&node).cloned().unwrap_or_default()
    }

    fn collect(&mut self, node: Node) {
        while let Some(output) = self.members[node.0].process.as_mut().and_then(IpcProcess::next_output) {
            match output {
                Output::Frame { port, frame } => self.transmit(node, port, frame),
                Output::ForwardingChanged => {}
                Output::Flow(id, event) => self.flow_events.push((node, id, event)),
                Output::Event(event) => self.events.push((self.now, node, event)),
            }
        }
        let now = self.now;
        let member = &mut self.members[node.0];
        member.deadline = member.process.as_ref().and_then(|process| process.deadline(now));
    }

    fn transmit(&mut self, node: Node, port: PortId, frame: Vec<u8>) {
        let Some(link) = self.members[node.0].links.get(&port) else {
            return;
        };
        let link = &mut self.links[link.0];
        let is_lost = link.is_cut || (link.loss > 0 && self.random.number() % 1_000_000 < link.loss);
        if is_lost {
            link.lost += 1;
            return;
        }
        let other = link.ends.iter().find(|end| **end != (node, port));
        if let Some(&(to, port)) = other {
            self.count += 1;
            self.arrivals
                .push(Reverse((self.now + self.delay, self.count, to, port)));
            self.frames.insert(self.count, frame);
        }
    }

    /// The time of the next event.
    fn next_event(&self) -> Option<Time> {
        let arrival = self.arrivals.peek().map(|Reverse((time, ..))| *time);
        let deadlines = self.members.iter().filter_map(|member| member.deadline);
        deadlines.chain(arrival).min()
    }

    /// Runs until a time.
    pub fn run_until(&mut self, end: Time) {
        while self.step(end) {}
        self.now = self.now.max(end);
    }

    /// Runs until a condition holds, at most until a time. Whether it holds.
    pub fn run_while(&mut self, end: Time, is_to_run: impl Fn(&Simulation) -> bool) -> bool {
        while is_to_run(self) {
            if !self.step(end) {
                return !is_to_run(self);
            }
        }
        true
    }

    fn step(&mut self, end: Time) -> bool {
        let Some(next) = self.next_event().filter(|next| *next <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(&Reverse((time, number, node, port))) = self.arrivals.peek() {
            if time > self.now {
                break;
            }
            self.arrivals.pop();
            let frame = self.frames.remove(&number).unwrap_or_default();
            let recorded = self.recorded.entry(node).or_default();
            if recorded.len() < self.records {
                recorded.push((port, frame.clone()));
            }
            if let Some(process) = &mut self.members[node.0].process {
                process.receive_frame(port, &frame, self.now);
                self.collect(node);
            }
        }
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            if let Some(process) = &mut member.process
                && member.deadline.is_some_and(|deadline| deadline <= self.now)
            {
                process.tick(self.now);
                self.collect(Node(at));
            }
        }
        true
    }
}
