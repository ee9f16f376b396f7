//! The switch.

use crate::control::NotedKeys;
use crate::fast::onward::Onward;
use crate::fast::{FastPath, MessageOrder, Verdict};
use crate::journal::Slot;
use crate::queues::{DEFAULT_CAPACITY, Refused, TrafficManager};
use crate::replication::Replication;
use crate::stats::{DropCount, PortStats, Stats};
use crate::waiting::AsyncCalls;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use weir_arch::{
    Action, Architecture, Choices, Defaults, Drop, DropReason, EgressPacket, Enumeration, Env, IngressPacket,
    LoadError, Origin, PRIORITIES, QueueInfo, State, enumerate,
};
use weir_extern_api::Registry;
use weir_interp::{Event, Executable, Interpreter, NoTrace, PacketTag, TraceTree, Tracer};
use weir_ir::{Loc, Program};

/// How a switch is set up.
#[derive(Debug, Clone)]
pub struct SwitchConfig {
    /// Only ports that were added with [`Switch::set_port`] exist. Otherwise every port does.
    pub explicit_ports: bool,
    /// Packets per queue.
    pub queue_capacity: usize,
    /// Longest packet that is taken in, in bytes.
    pub max_packet_bytes: usize,
    /// Egress runs that one received packet may cause; beyond it packets are dropped as
    /// [`DropReason::Loop`].
    pub work_limit: u32,
    /// What programs may call besides the externs of their architecture.
    pub externs: Registry,
}

impl Default for SwitchConfig {
    /// Every port exists, 64 packets per queue, packets to 16 KiB, 65,536 egress runs.
    fn default() -> Self {
        SwitchConfig {
            explicit_ports: false,
            queue_capacity: DEFAULT_CAPACITY,
            max_packet_bytes: 16 * 1024,
            work_limit: 65_536,
            externs: Registry::default(),
        }
    }
}

/// A packet that left the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The port.
    pub port: u32,
    /// The packet.
    pub bytes: Vec<u8>,
    /// When it began to leave, in ns on the switch's clock.
    pub time_ns: u64,
}

/// What is decided and heard while packets run.
pub(crate) struct Context<'a> {
    pub choices: &'a mut dyn Choices,
    pub tracer: &'a mut dyn Tracer,
}

/// The order in which packets given to [`Switch::forward`] together access registers and other
/// state, if packets reenter ingress or run through egress after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PacketOrder {
    /// In order of arrival, as on a chip: packets that reenter ingress, copies and the like come
    /// after all those that were received together.
    #[default]
    Arrival,
    /// One by one, as in the interpreter: a packet and all that results from it, then the next. The
    /// outcome does not depend on which packets are received together. It costs time only if the
    /// program has such packets and state.
    Serial,
}

/// A program on ports. It can be cloned: the clone goes on from the same state on its own.
#[derive(Clone)]
pub struct Switch {
    pub(crate) arch: Arc<dyn Architecture>,
    /// See [`Switch::observes_queues`].
    pub(crate) program_observes_queues: bool,
    pub(crate) state: State,
    pub(crate) replication: Replication,
    pub(crate) config: SwitchConfig,
    pub(crate) queues: TrafficManager,
    /// Packets that begin at ingress before anything else happens.
    waiting: VecDeque<IngressPacket>,
    /// Whether ports are up; only listed ports exist where ports are explicit.
    pub(crate) ports: BTreeMap<u32, bool>,
    /// Whether all of them are up.
    pub(crate) all_up: bool,
    pub(crate) stats: Stats,
    pub(crate) now_ns: u64,
    /// When the packet left its queue that is on its way out.
    departing_ns: u64,
    /// Egress runs left for what was received.
    pub(crate) work: u64,
    /// How often egress was run out of a queue.
    pub(crate) egress_runs: u64,
    /// The compiled way of plain packets.
    pub(crate) fast: Option<Box<FastPath>>,
    /// Packets on their way within the switch while that runs.
    pub(crate) onward: Onward,
    /// Where packets go that ask for it when their queue is full.
    pub(crate) deflection: Option<u32>,
    /// Ports that take in what they send.
    pub(crate) loopback: BTreeSet<u32>,
    pub(crate) packet_order: PacketOrder,
    /// What compiled code has sent and nobody has taken yet.
    pub(crate) ready: Vec<Output>,
    /// What became of the packets that were forwarded last.
    pub(crate) verdicts: Vec<Verdict>,
    /// Packets that are generated at most in one [`Switch::advance`].
    pub(crate) generation_limit: usize,
    /// Who hears of changes that stay.
    pub(crate) journal: Slot,
    /// Calls of externs for which packets may wait.
    pub(crate) async_calls: AsyncCalls,
    pub(crate) messages: MessageOrder,
    /// Keys of externs that are to be set.
    pub(crate) noted_keys: NotedKeys,
}

impl Switch {
    /// A switch that interprets the program.
    ///
    /// # Errors
    /// The program cannot be run: [`LoadError`].
    pub fn new(program: Arc<Program>) -> Result<Self, LoadError> {
        Self::with_engine(Arc::new(Interpreter::new(program)), SwitchConfig::default())
    }

    /// A switch that runs its program by an engine.
    ///
    /// # Errors
    /// The program cannot be run: [`LoadError`].
    pub fn with_engine(engine: Arc<dyn Executable>, config: SwitchConfig) -> Result<Self, LoadError> {
        let arch: Arc<dyn Architecture> = Arc::from(weir_arch::load(engine, &config.externs)?);
        Ok(Self::with_architecture(arch, config))
    }

    /// A switch for a program of any architecture, also one that weir-arch does not know.
    #[must_use]
    pub fn with_architecture(arch: Arc<dyn Architecture>, config: SwitchConfig) -> Self {
        Switch {
            state: arch.initial_state(),
            replication: Replication::new(arch.replication()),
            program_observes_queues: arch.observes_queues(),
            queues: TrafficManager::new(config.queue_capacity),
            config,
            waiting: VecDeque::new(),
            ports: BTreeMap::new(),
            all_up: true,
            stats: Stats::default(),
            now_ns: 0,
            departing_ns: 0,
            work: 0,
            egress_runs: 0,
            deflection: None,
            loopback: BTreeSet::new(),
            packet_order: PacketOrder::default(),
            fast: None,
            onward: Onward::default(),
            ready: Vec::new(),
            verdicts: Vec::new(),
            generation_limit: usize::MAX,
            journal: Slot::default(),
            async_calls: AsyncCalls::new(arch.registered()),
            messages: MessageOrder::default(),
            noted_keys: NotedKeys::default(),
            arch,
        }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        self.arch.program()
    }

    /// How many bits the program has for a port, at most 32.
    #[must_use]
    pub fn port_bits(&self) -> u32 {
        weir_arch::port_bits(self.program())
    }

    /// How many bytes a port may be given for parsers to read; `None`: the architecture has nothing
    /// like that.
    #[must_use]
    pub fn port_metadata_bytes(&self) -> Option<usize> {
        weir_arch::port_metadata(self.program()).map(|spec| spec.width as usize / 8)
    }

    /// The program's state: tables, counters and so on. Of direct counters it has not all;
    /// [`Switch::counter`] knows.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The program's state, to be changed directly. [`Switch::write`] checks more.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Multicast groups and clone sessions.
    #[must_use]
    pub fn replication(&self) -> &Replication {
        &self.replication
    }

    /// Multicast groups and clone sessions, to be changed.
    pub fn replication_mut(&mut self) -> &mut Replication {
        &mut self.replication
    }

    /// The switch's clock in ns: the latest time it was told of or sent at.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Adds a port, or sets whether it is up.
    pub fn set_port(&mut self, port: u32, up: bool) {
        let was = self.ports.insert(port, up);
        self.all_up = self.ports.values().all(|up| *up);
        if let (false, true, Some(generators)) = (up, was != Some(false), &mut self.state.generators) {
            generators.port_down(port, self.now_ns);
        }
        self.state.port_changed(port, !up);
        self.replication.port_changed(port, !up);
    }

    /// Whether there is such a port. A number of more than [`Switch::port_bits`] is none; any other
    /// is one, unless ports are given one by one ([`SwitchConfig::explicit_ports`]).
    #[must_use]
    pub fn has_port(&self, port: u32) -> bool {
        let is_number = port.checked_shr(self.port_bits()).unwrap_or(0) == 0;
        is_number && (!self.config.explicit_ports || self.ports.contains_key(&port) || self.arch.is_internal(port))
    }

    /// Whether a port was said to be down.
    #[must_use]
    pub fn is_down(&self, port: u32) -> bool {
        self.ports.get(&port) == Some(&false)
    }

    /// Removes a port.
    pub fn remove_port(&mut self, port: u32) {
        self.ports.remove(&port);
        self.all_up = self.ports.values().all(|up| *up);
    }

    /// Where packets go that ask to be deflected and not dropped when their queue is full; `None`:
    /// they are dropped.
    pub fn set_deflection(&mut self, port: Option<u32>) {
        self.deflection = port;
    }

    /// Sets the order of packets from now on.
    pub fn set_packet_order(&mut self, order: PacketOrder) {
        self.packet_order = order;
    }

    /// Makes a port take in what it sends, and send nothing, or not.
    pub fn set_loopback(&mut self, port: u32, on: bool) {
        if on {
            self.loopback.insert(port);
        } else {
            self.loopback.remove(&port);
        }
    }

    /// Whether a port takes in what it sends.
    #[must_use]
    pub fn is_loopback(&self, port: u32) -> bool {
        self.loopback.contains(&port)
    }

    /// Whether what leaves by a port comes in again: it was said to take it in, or recirculates by
    /// its number.
    #[must_use]
    pub fn takes_in_again(&self, port: u32) -> bool {
        self.is_loopback(port) || self.arch.is_internal(port)
    }

    /// Whether any port takes in what it sends.
    #[must_use]
    pub fn has_loopback(&self) -> bool {
        !self.loopback.is_empty()
    }

    /// What a port received and sent.
    #[must_use]
    pub fn port_stats(&self, port: u32) -> PortStats {
        self.stats.port(port)
    }

    /// Ports that received or sent anything.
    pub fn active_ports(&self) -> impl Iterator<Item = (u32, PortStats)> {
        self.stats.active_ports()
    }

    /// Packets dropped, by reason and place.
    pub fn drops(&self) -> impl Iterator<Item = DropCount> {
        self.stats.drops()
    }

    /// Packets dropped for a reason, wherever.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops().filter(|d| d.reason == reason).map(|d| d.packets).sum()
    }

    // --------------------------------------------------------------------------------- packets

    /// Takes a packet at a port and runs it up to the queues. `now_ns` before the switch's clock
    /// counts as now.
    pub fn receive(&mut self, port: u32, bytes: &[u8], now_ns: u64) {
        self.receive_with(port, bytes, now_ns, &mut Defaults, &mut NoTrace);
    }

    /// As [`Switch::receive`], with choices made and events heard by others.
    pub fn receive_with(
        &mut self,
        port: u32,
        bytes: &[u8],
        now_ns: u64,
        choices: &mut dyn Choices,
        tracer: &mut dyn Tracer,
    ) {
        self.now_ns = self.now_ns.max(now_ns);
        self.allow_work();
        self.stats.received(port, bytes.len());
        let tag = if tracer.enabled() {
            tracer.begin_packet(
                PacketTag::NONE,
                &format!("packet of {} bytes on port {port}", bytes.len()),
            )
        } else {
            PacketTag::NONE
        };
        let mut context = Context { choices, tracer };
        if bytes.len() > self.config.max_packet_bytes {
            self.drop(
                Drop {
                    reason: DropReason::TooLong,
                    loc: None,
                    tag,
                },
                &mut context,
            );
            return;
        }
        if let Err(reason) = self.port_usable(port) {
            self.drop(Drop { reason, loc: None, tag }, &mut context);
            return;
        }
        self.waiting
            .push_back(IngressPacket::received(port, bytes.to_vec(), tag));
        self.run_ingress(&mut context);
    }

    /// Gives what leaves until `now_ns`.
    pub fn advance(&mut self, now_ns: u64) -> Vec<Output> {
        self.advance_with(now_ns, &mut Defaults, &mut NoTrace)
    }

    /// As [`Switch::advance`], with choices made and events heard by others.
    pub fn advance_with(&mut self, now_ns: u64, choices: &mut dyn Choices, tracer: &mut dyn Tracer) -> Vec<Output> {
        self.resume_waiting();
        let mut out = std::mem::take(&mut self.ready);
        let mut context = Context { choices, tracer };
        let mut left = self.generation_limit;
        loop {
            let departure = self.queues.next_departure().filter(|t| *t <= now_ns);
            let generated = self.next_generated().filter(|t| *t <= now_ns && left > 0);
            match (departure, generated) {
                (None, None) => break,
                (Some(departure), Some(generated)) if departure <= generated => self.step(&mut out, &mut context),
                (Some(_), None) => self.step(&mut out, &mut context),
                (_, Some(_)) => left -= self.generate(now_ns, left, &mut out, &mut context),
            }
        }
        self.now_ns = self.now_ns.max(now_ns);
        out
    }

    /// Takes outputs back, so that their memory is used again.
    pub fn recycle(&mut self, mut outputs: Vec<Output>) {
        self.onward.recycle(outputs.drain(..));
        if self.ready.capacity() < outputs.capacity() && self.ready.is_empty() {
            self.ready = outputs;
        }
    }

    /// Tells the switch what time it is, unless something leaves or is generated until then: false,
    /// and nothing has changed.
    #[inline]
    pub fn pass_time(&mut self, now_ns: u64) -> bool {
        let is_quiet =
            self.ready.is_empty() && !self.async_calls.poll() && self.next_timed().is_none_or(|t| t > now_ns);
        if is_quiet {
            self.now_ns = self.now_ns.max(now_ns);
        }
        is_quiet
    }

    /// When the next packet can leave or is to be generated, in ns: [`Switch::advance`] has
    /// something to do then.
    #[must_use]
    #[inline]
    pub fn next_departure(&self) -> Option<u64> {
        if self.async_calls.waiting() > 0 {
            return Some(self.now_ns);
        }
        self.next_timed()
    }

    /// The same, of queues and generators.
    #[inline]
    fn next_timed(&self) -> Option<u64> {
        let generated = self.next_generated().filter(|_| self.generation_limit > 0);
        match (self.queues.next_departure(), generated) {
            (Some(departure), Some(generated)) => Some(departure.min(generated)),
            (departure, generated) => departure.or(generated),
        }
    }

    /// Gives what leaves until all queues are empty. The clock goes on with the ports' rates.
    pub fn drain(&mut self) -> Vec<Output> {
        self.advance_all(&mut Context {
            choices: &mut Defaults,
            tracer: &mut NoTrace,
        })
    }

    /// Takes a packet at a port and gives everything that comes of it, at once.
    pub fn inject(&mut self, port: u32, bytes: &[u8], now_ns: u64) -> Vec<Output> {
        if !self.receive_fast(port, bytes, now_ns) {
            self.receive(port, bytes, now_ns);
        }
        self.drain()
    }

    /// As [`Switch::inject`], with choices made and events heard by others.
    pub fn inject_with(
        &mut self,
        port: u32,
        bytes: &[u8],
        now_ns: u64,
        choices: &mut dyn Choices,
        tracer: &mut dyn Tracer,
    ) -> Vec<Output> {
        self.receive_with(port, bytes, now_ns, choices, tracer);
        self.advance_all(&mut Context { choices, tracer })
    }

    /// As [`Switch::inject`], and records what happened.
    pub fn inject_traced(&mut self, port: u32, bytes: &[u8], now_ns: u64) -> (Vec<Output>, TraceTree) {
        let mut tree = TraceTree::new(Arc::clone(self.program()));
        let out = self.inject_with(port, bytes, now_ns, &mut Defaults, &mut tree);
        (out, tree)
    }

    /// Injects the packet once per combination of what the program leaves to chance, each time from
    /// the present state, at most `limit` times. The switch itself does not change.
    #[must_use]
    pub fn inject_all(&self, port: u32, bytes: &[u8], now_ns: u64, limit: usize) -> Enumeration<(Vec<Output>, Switch)> {
        enumerate(limit, |choices| {
            let mut switch = self.clone();
            let out = switch.inject_with(port, bytes, now_ns, choices, &mut NoTrace);
            (out, switch)
        })
    }

    /// As [`Switch::inject_all`], and records what happens in each run.
    #[must_use]
    pub fn trace_all(
        &self,
        port: u32,
        bytes: &[u8],
        now_ns: u64,
        limit: usize,
    ) -> Enumeration<(Vec<Output>, TraceTree)> {
        enumerate(limit, |choices| {
            let mut switch = self.clone();
            let mut tree = TraceTree::new(Arc::clone(self.program()));
            let out = switch.inject_with(port, bytes, now_ns, choices, &mut tree);
            (out, tree)
        })
    }

    // ---------------------------------------------------------------------------------- inside

    /// A received packet may cause so much work besides what others still cause.
    pub(crate) fn allow_work(&mut self) {
        let left = if self.queues.total() == 0 { 0 } else { self.work };
        self.work = left.saturating_add(self.config.work_limit.into());
    }

    /// A packet begins at ingress, after those that wait already.
    pub(crate) fn add_waiting(&mut self, packet: IngressPacket) {
        self.waiting.push_back(packet);
    }

    pub(crate) fn waiting_is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn advance_all(&mut self, context: &mut Context<'_>) -> Vec<Output> {
        self.settle_externs();
        self.empty_queues(context)
    }

    /// Gives what leaves until all queues are empty. Packets that wait for externs still do.
    pub(crate) fn empty_queues(&mut self, context: &mut Context<'_>) -> Vec<Output> {
        let mut out = std::mem::take(&mut self.ready);
        while self.queues.next_departure().is_some() {
            self.step(&mut out, context);
        }
        out
    }

    /// Runs one packet from its queue to the wire, and what comes of it up to the queues.
    fn step(&mut self, out: &mut Vec<Output>, context: &mut Context<'_>) {
        let Some(departure) = self.queues.pop() else {
            return;
        };
        self.now_ns = self.now_ns.max(departure.time_ns);
        self.departing_ns = departure.time_ns;
        self.tell_of_queue(departure.port, departure.priority, departure.depth, context);
        let tag = departure.packet.tag;
        let Some(work) = self.work.checked_sub(1) else {
            self.drop(
                Drop {
                    reason: DropReason::Loop,
                    loc: None,
                    tag,
                },
                context,
            );
            return;
        };
        self.work = work;
        self.egress_runs += 1;
        let queue = QueueInfo {
            port: departure.port,
            enqueued_ns: departure.enqueued_ns,
            depth: departure.depth,
            priority: departure.priority,
        };
        let arch = Arc::clone(&self.arch);
        let actions = arch.egress(&mut self.env(context), departure.packet, queue);
        for action in actions {
            if let Some(output) = self.act(action, context) {
                out.push(output);
            }
        }
        self.run_ingress(context);
        if self.queues.total() == 0 {
            self.work = 0;
        }
    }

    fn env<'a>(&'a mut self, context: &'a mut Context<'_>) -> Env<'a> {
        Env {
            state: &mut self.state,
            now_ns: self.now_ns,
            choices: &mut *context.choices,
            tracer: &mut *context.tracer,
        }
    }

    pub(crate) fn run_ingress(&mut self, context: &mut Context<'_>) {
        while let Some(packet) = self.waiting.pop_front() {
            let arch = Arc::clone(&self.arch);
            let actions = arch.ingress(&mut self.env(context), packet);
            for action in actions {
                self.act(action, context);
            }
        }
    }

    pub(crate) fn act(&mut self, action: Action, context: &mut Context<'_>) -> Option<Output> {
        match action {
            Action::Enqueue { port, packet } => self.enqueue(port, None, packet, context),
            Action::Multicast { group, packet } => self.multicast(group, None, &packet, context),
            Action::Clone { session, packet } => self.clone_to(session, packet, context),
            Action::Ingress(packet) => {
                if packet.origin == Origin::Recirculated && self.onward.takes_recirculated() {
                    self.onward.push_of_driver(packet.port, packet.passes, &packet.bytes);
                } else {
                    self.waiting.push_back(packet);
                }
            }
            Action::Transmit { port, bytes, tag } => {
                return self.transmit(port, bytes, tag, context);
            }
            Action::Drop(drop) => self.drop(drop, context),
        }
        None
    }

    pub(crate) fn port_usable(&self, port: u32) -> Result<(), DropReason> {
        match self.ports.get(&port) {
            Some(true) => Ok(()),
            Some(false) => Err(DropReason::PortDown),
            None if self.config.explicit_ports && !self.arch.is_internal(port) => Err(DropReason::NoSuchPort),
            None => Ok(()),
        }
    }

    fn enqueue(&mut self, port: u32, priority_of: Option<u8>, mut packet: EgressPacket, context: &mut Context<'_>) {
        if self.onward.takes_egress() {
            return self.enqueue_of_driver(port, &packet);
        }
        let tag = packet.tag;
        let priority = priority_of.map_or_else(|| self.arch.priority(&packet), u64::from);
        let admitted = self.port_usable(port).and_then(|()| {
            self.queues.admit(port, priority).map_err(|refused| match refused {
                Refused::Full => DropReason::QueueFull,
                Refused::NoSuchPriority => DropReason::NoSuchPriority,
            })
        });
        if let Err(reason) = admitted {
            let handling = &mut packet.handling;
            match self.deflection {
                Some(elsewhere) if reason == DropReason::QueueFull && handling.deflect && !handling.is_deflected => {
                    handling.is_deflected = true;
                    self.enqueue(elsewhere, priority_of, packet, context);
                }
                _ => self.drop(Drop { reason, loc: None, tag }, context),
            }
            return;
        }
        let depth = self.queues.queue_depth(port, priority);
        self.arch.enqueued(&mut packet, self.now_ns, depth);
        if context.tracer.enabled() {
            context.tracer.resume_packet(tag);
            let text = format!("queue of port {port}, priority {priority}, {depth} packets before it");
            context.tracer.event(&Event::Note { text: &text }, Loc::default());
        }
        self.queues.push(port, priority, packet, self.now_ns);
        self.tell_of_queue(port, priority, depth + 1, context);
    }

    /// Tells an architecture that wants to know that a queue has changed.
    fn tell_of_queue(&mut self, port: u32, priority: u64, depth: u64, context: &mut Context<'_>) {
        if self.arch.watches_queues() {
            let arch = Arc::clone(&self.arch);
            arch.queue_changed(&mut self.env(context), port, priority, depth);
        }
    }

    fn multicast(&mut self, group: u32, priority: Option<u8>, packet: &EgressPacket, context: &mut Context<'_>) {
        let exclusion = packet.handling.exclusion.as_ref();
        let replicas = self.replication.replicas_except(group, exclusion).unwrap_or_default();
        if replicas.is_empty() {
            self.drop(
                Drop {
                    reason: DropReason::EmptyGroup,
                    loc: None,
                    tag: packet.tag,
                },
                context,
            );
            return;
        }
        for (number, replica) in replicas.into_iter().enumerate() {
            let mut copy = self.arch.replica(packet, replica.rid);
            copy.handling.is_first_copy = number == 0;
            if context.tracer.enabled() {
                let what = format!("copy of group {group} for port {}, rid {}", replica.port, replica.rid);
                copy.tag = context.tracer.begin_packet(packet.tag, &what);
            }
            self.enqueue(replica.port, priority, copy, context);
        }
    }

    fn clone_to(&mut self, session: u32, mut packet: EgressPacket, context: &mut Context<'_>) {
        let Some(config) = self.replication.session(session).cloned() else {
            self.drop(
                Drop {
                    reason: DropReason::NoSuchSession,
                    loc: None,
                    tag: packet.tag,
                },
                context,
            );
            return;
        };
        if config.truncate_bytes > 0 {
            packet.truncate_to(config.truncate_bytes);
        }
        let top = (PRIORITIES - 1) as u8;
        let priority = (config.class_of_service > 0).then(|| config.class_of_service.min(top));
        if let Some(group) = config.group {
            self.multicast(group, priority, &packet, context);
        }
        for replica in &config.replicas {
            let copy = self.arch.replica(&packet, replica.rid);
            self.enqueue(replica.port, priority, copy, context);
        }
    }

    fn transmit(&mut self, port: u32, bytes: Vec<u8>, tag: PacketTag, context: &mut Context<'_>) -> Option<Output> {
        if let Err(reason) = self.port_usable(port) {
            self.drop(Drop { reason, loc: None, tag }, context);
            return None;
        }
        self.stats.sent(port, bytes.len());
        // The packet's departure, not the current time, which may be later: otherwise the port
        // would not reach its rate.
        self.queues.sent(port, bytes.len(), self.departing_ns);
        if context.tracer.enabled() {
            context.tracer.resume_packet(tag);
            let text = format!("port {port}, {} bytes", bytes.len());
            context.tracer.event(
                &Event::Fate {
                    text: &text,
                    dropped: false,
                },
                Loc::default(),
            );
        }
        if self.loopback.contains(&port) {
            self.stats.received(port, bytes.len());
            if self.onward.takes_ingress() {
                self.onward.push_of_driver(port, 0, &bytes);
            } else {
                self.waiting.push_back(IngressPacket::received(port, bytes, tag));
            }
            return None;
        }
        Some(Output {
            port,
            bytes,
            time_ns: self.now_ns,
        })
    }

    pub(crate) fn drop(&mut self, drop: Drop, context: &mut Context<'_>) {
        self.stats.dropped(drop.reason, drop.loc);
        if context.tracer.enabled() {
            context.tracer.resume_packet(drop.tag);
            let event = Event::Fate {
                text: drop.reason.name(),
                dropped: true,
            };
            context.tracer.event(&event, drop.loc.unwrap_or_default());
        }
    }
}
