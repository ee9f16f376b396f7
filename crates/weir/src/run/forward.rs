//! What a worker does with frames: through the switch, and to the ports that they are for.

use super::control::HeldSwitch;
use super::end::{End, Lost, Removed};
use super::live::CpuPort;
use super::plan::{Route, Routes};
use super::plug::NewPort;
use super::pressure::Pressure;
use super::recording::{self, Recording};
use super::report::Report;
use super::ring::Outbox;
use crate::lines::Lines;
use crate::output::Messages;
use crate::stats::Snapshot;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use weir_arch::Defaults;
use weir_io::{FrameBatch, Pool};
use weir_switch::{Frame, Output, PacketOrder, Switch, TAILROOM, VECTOR, Verdict};

/// Packets that are generated at a time, so that others have their turn.
const GENERATED: usize = 256;

/// What a worker says when the signal USR1 has switched traces on, and off.
pub const TRACING: &str = "tracing begins";
pub const NOT_TRACING: &str = "tracing ends";

/// Which packets are shown on their way.
#[derive(Debug, Clone)]
pub struct Sampling {
    /// Whether any are.
    pub is_on: bool,
    /// Every so many.
    pub every: u64,
    /// Only those of this port.
    pub port: Option<u32>,
    /// Source lines of the program that runs.
    pub lines: Lines,
}

impl Sampling {
    /// Whether the packet of this number, which came in at a port, is shown.
    fn includes(&self, number: u64, port: u32) -> bool {
        self.is_on && number.is_multiple_of(self.every) && self.port.is_none_or(|only| only == port)
    }
}

/// Where what is not forwarded goes.
pub struct Upward {
    /// The port of the control plane.
    pub cpu: Arc<CpuPort>,
    /// A control plane takes digest messages; else they are counted and forgotten.
    pub keeps_digests: bool,
    /// Where messages and traces go.
    pub messages: Messages,
}

/// A switch with the devices of its worker and the rings to the others.
pub struct Forwarder {
    /// The program with its state.
    pub switch: HeldSwitch,
    /// Devices of this worker.
    pub ends: Vec<End>,
    /// Rings to the workers that own other ports.
    pub outboxes: Vec<Option<Outbox>>,
    /// Where packets for a port go.
    pub routes: Routes,
    /// What of queues may leave for devices that fall behind.
    pressure: Pressure,
    /// Frames are prepared for this much room in front.
    headroom: usize,
    started: Instant,
    sampling: Sampling,
    /// What `--pcap` records. `None`: nothing.
    recording: Option<Recording>,
    seen: u64,
    /// What was counted by switches before this one.
    before: Snapshot,
    /// Digest messages that nobody was there to take.
    digests: u64,
    /// Packets for ports that no device is connected to.
    unconnected: BTreeMap<u32, u64>,
    lost: Lost,
    /// What the devices of ports have done that were removed, and whose places others have.
    removed: BTreeMap<u32, Removed>,
    /// Where packets for the control plane go.
    cpu: Arc<CpuPort>,
    /// A control plane takes digest messages; else they are counted and forgotten.
    keeps_digests: bool,
    /// Which worker this is.
    number: usize,
    /// Where traces go.
    messages: Messages,
}

impl Forwarder {
    /// A forwarder whose switch's clock began at `started`.
    pub fn new(
        switch: HeldSwitch,
        ends: Vec<End>,
        outboxes: Vec<Option<Outbox>>,
        (routes, mut pressure): (Routes, Pressure),
        started: Instant,
        (sampling, recording): (Sampling, Option<Recording>),
        upward: Upward,
    ) -> Self {
        pressure.change(&switch);
        let mut forwarder = Forwarder {
            pressure,
            headroom: switch.headroom(),
            switch,
            ends,
            outboxes,
            routes,
            started,
            sampling,
            recording,
            seen: 0,
            before: Snapshot::default(),
            digests: 0,
            unconnected: BTreeMap::new(),
            lost: Lost::default(),
            removed: BTreeMap::new(),
            cpu: upward.cpu,
            keeps_digests: upward.keeps_digests,
            number: 0,
            messages: upward.messages,
        };
        forwarder.order_packets();
        forwarder
    }

    /// If packets come from a capture, the outcome must not depend on which are received together.
    fn order_packets(&mut self) {
        let replays = self.ends.iter().any(|end| end.device.is_replay());
        self.switch.set_packet_order(match replays {
            true => PacketOrder::Serial,
            false => PacketOrder::Arrival,
        });
    }

    /// Says which worker this is: only the first has timers of packet generators, as all have the
    /// same applications.
    pub fn set_number(&mut self, number: usize) {
        self.number = number;
        self.prepare_generators();
    }

    fn prepare_generators(&mut self) {
        if let Ok(generators) = self.switch.generators_mut() {
            generators.set_leader(self.number == 0);
        }
        self.switch.limit_generation(GENERATED);
    }

    /// Owns another port from now on.
    pub fn add_port(&mut self, NewPort { end, recorder }: NewPort) {
        let port = end.port;
        // The slot of a port that was removed, if there is one.
        let slot = self.ends.iter().position(End::is_removed);
        let slot = slot.unwrap_or(self.ends.len());
        self.routes.set(port, Route::Own(slot));
        match self.ends.get_mut(slot) {
            Some(removed) => {
                let old = std::mem::replace(removed, end).report();
                self.removed.entry(old.port).or_default().add(&old);
            }
            None => {
                self.pressure.add_own();
                self.ends.push(end);
            }
        }
        // So that control planes see its queues.
        let capacity = self.switch.queue_capacity(port);
        self.switch.set_queue_capacity(port, capacity);
        if let Some((recording, recorder)) = self.recording.as_mut().zip(recorder) {
            recording.add(port, recorder);
        }
        self.order_packets();
    }

    /// Closes the device of a port. Packets for it are counted as unconnected from now on.
    pub fn remove_port(&mut self, port: u32) {
        self.routes.remove(port);
        self.ends
            .iter_mut()
            .filter(|end| end.port == port)
            .for_each(End::remove);
        if let Some(recording) = &mut self.recording {
            recording.remove(port);
        }
    }

    /// Shows packets on their way from now on, or no longer.
    pub fn set_tracing(&mut self, is_on: bool) {
        self.sampling.is_on = is_on;
        self.messages.line(if is_on { TRACING } else { NOT_TRACING });
    }

    /// Generates no packets until the program changes.
    pub fn stop_generating(&mut self) {
        self.switch.limit_generation(0);
    }

    /// Nanoseconds on the switch's clock.
    pub fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Goes on with another program, of which traces show these lines. What the old one has counted
    /// of ports and drops stays counted.
    pub fn change(&mut self, switch: Box<Switch>, lines: Lines) {
        self.sampling.lines = lines;
        // Packets that wait for externs finish in the program that they began in.
        self.settle_externs();
        let old = std::mem::replace(&mut *self.switch, switch);
        self.headroom = self.switch.headroom();
        self.prepare_generators();
        self.order_packets();
        self.pressure.change(&self.switch);
        self.before.add(&Snapshot::of(&old).lasting());
    }

    /// Runs up to [`VECTOR`] frames through the switch, each from its port, and empties the batch.
    pub fn process(&mut self, frames: &mut FrameBatch, ports: &[u32]) {
        if self.sampling.is_on || self.recording.is_some() {
            return self.process_singly(frames, ports);
        }
        let now = self.now();
        let (mut verdicts, mut places) = ([Verdict::Gone; VECTOR], [(0, 0); VECTOR]);
        let mut indices: SmallVec<[u8; VECTOR]> = SmallVec::new();
        if self.headroom > Pool::HEADROOM {
            self.prepare(frames, ports);
        }
        {
            let mut vector: SmallVec<[Frame<'_>; VECTOR]> = SmallVec::new();
            let mut from: SmallVec<[u32; VECTOR]> = SmallVec::new();
            for (index, frame) in frames.frames_mut() {
                let (bytes, start, length) = frame.into_whole();
                if let Some(frame) = Frame::new(bytes, start, length) {
                    vector.push(frame);
                    from.push(ports[index]);
                    indices.push(index as u8);
                }
            }
            let count = vector.len();
            verdicts[..count].copy_from_slice(self.switch.forward(&from, &mut vector, now));
            for (place, frame) in places.iter_mut().zip(&vector) {
                *place = frame.offset_and_length();
            }
        }
        let out = self.switch.advance(now);
        let mut copies = out.iter();
        for (slot, index) in indices.iter().map(|i| usize::from(*i)).enumerate() {
            match verdicts[slot] {
                Verdict::Transmit(port) => {
                    if let Some(mut frame) = frames.get_mut(index) {
                        frame.set_packet(places[slot].0, places[slot].1);
                    }
                    self.send(frames, index, port);
                }
                Verdict::Copies(count) => {
                    for output in copies.by_ref().take(count as usize) {
                        self.emit(output);
                    }
                }
                Verdict::Gone => {}
            }
        }
        for output in copies {
            self.emit(output);
        }
        self.switch.recycle(out);
        frames.clear();
        self.take_digests();
    }

    /// Moves packets so that there is room before them for all headers that the program may add.
    /// Where a frame is too small for that, the switch has the packet in memory of its own.
    fn prepare(&mut self, frames: &mut FrameBatch, ports: &[u32]) {
        for (index, port) in ports.iter().enumerate() {
            let has_room = frames
                .get_mut(index)
                .is_none_or(|mut f| make_room(&mut f, self.headroom));
            if !has_room {
                if let Some(data) = frames.get(index) {
                    let now = self.now();
                    self.switch.take(*port, data, now);
                }
                frames.remove(index);
                self.poll();
            }
        }
    }

    fn process_singly(&mut self, frames: &mut FrameBatch, ports: &[u32]) {
        for (index, port) in ports.iter().enumerate() {
            if let Some(data) = frames.get(index) {
                let time_ns = frames.time_ns(index);
                self.take(*port, weir_io::Frame { data, time_ns });
            }
        }
        frames.clear();
    }

    /// Takes a packet that lies anywhere.
    pub fn take(&mut self, port: u32, frame: weir_io::Frame<'_>) {
        self.seen += 1;
        match &self.recording {
            None => self.take_once(port, frame.data),
            Some(_) if self.counters_tell(port) => {
                let before = recording::drops(&self.switch);
                self.take_once(port, frame.data);
                let note = recording::note_since(&before, &self.switch);
                if let Some(recording) = &self.recording {
                    recording.received(port, frame, &note);
                }
            }
            Some(_) => self.take_watched(port, frame),
        }
        self.take_digests();
    }

    /// Whether the counters of drops, before and after the next packet, tell what becomes of it: it
    /// leaves at once, and runs as machine code or is traced. Otherwise a watcher tells more.
    fn counters_tell(&self, port: u32) -> bool {
        let is_traced = self.sampling.includes(self.seen, port);
        self.switch.leaves_at_once() && (is_traced || self.switch.compiled().is_some())
    }

    fn take_once(&mut self, port: u32, data: &[u8]) {
        let now = self.now();
        if self.sampling.includes(self.seen, port) {
            let (out, tree) = self.switch.inject_traced(port, data, now);
            let text = crate::trace::render(&tree, &self.sampling.lines, false);
            self.messages
                .line(format!("packet {} at port {port}\n{}", self.seen, text.trim_end()));
            out.iter().for_each(|output| self.emit(output));
        } else {
            self.switch.take(port, data, now);
            self.poll();
        }
    }

    /// Takes a packet that may wait in a queue and is recorded.
    fn take_watched(&mut self, port: u32, frame: weir_io::Frame<'_>) {
        if self.sampling.includes(self.seen, port) {
            self.take_once(port, frame.data);
            if let Some(recording) = &self.recording {
                recording.received(port, frame, "");
            }
            return;
        }
        let now = self.now();
        if let Some(recording) = &mut self.recording {
            let watcher = recording.watcher();
            watcher.expect(port, frame.data);
            self.switch.receive_with(port, frame.data, now, &mut Defaults, watcher);
            let out = self.switch.advance_with(now, &mut Defaults, watcher);
            let program = Arc::clone(self.switch.program());
            recording.watched(port, frame, &program);
            out.iter().for_each(|output| self.emit(output));
            self.switch.recycle(out);
        }
    }

    /// Tells the switch what time it is.
    pub fn tick(&mut self) {
        self.poll();
    }

    /// Sends what may leave the queues by now. Whether there was anything.
    pub fn poll(&mut self) -> bool {
        let now = self.now();
        if self.switch.waiting_for_externs() > 0 {
            self.switch.check_externs(Instant::now());
        }
        let out = self.advance(now);
        out.iter().for_each(|output| self.emit(output));
        let is_any = !out.is_empty();
        self.switch.recycle(out);
        is_any
    }

    /// Gives what leaves the queues until a time.
    fn advance(&mut self, now: u64) -> Vec<Output> {
        let Some(recording) = self.recording.as_mut().filter(|_| self.switch.queued() > 0) else {
            return self.switch.advance(now);
        };
        let out = self.switch.advance_with(now, &mut Defaults, recording.watcher());
        let program = Arc::clone(self.switch.program());
        recording.left_queues(&program);
        out
    }

    /// Waits until no packet waits for an extern any more, and sends them.
    pub fn settle_externs(&mut self) {
        self.switch.settle_externs();
        self.poll();
    }

    /// Sends everything that is in the queues, whatever the ports' rates are.
    pub fn drain(&mut self) {
        let out = self.switch.drain();
        out.iter().for_each(|output| self.emit(output));
    }

    fn take_digests(&mut self) {
        while !self.keeps_digests && self.switch.next_digest().is_some() {
            self.digests += 1;
        }
    }

    /// Has a frame sent to a port.
    pub fn send(&mut self, frames: &mut FrameBatch, index: usize, port: u32) {
        match self.routes.to(port) {
            Route::Own(end) => self.ends[end].take(frames, index),
            Route::Worker { worker, .. } => {
                let outbox = self.outboxes[worker].as_mut();
                if !outbox.is_some_and(|o| o.push(frames, index, port)) {
                    self.lost.ring_full += 1;
                }
            }
            Route::Nowhere => {
                let data = frames.get(index).unwrap_or_default();
                self.send_nowhere(port, data);
            }
        }
    }

    /// A packet for a port without a device: the control plane's, or an unconnected one.
    fn send_nowhere(&mut self, port: u32, data: &[u8]) {
        if self.cpu.port != Some(port) {
            *self.unconnected.entry(port).or_default() += 1;
            return;
        }
        if let Some(recording) = &self.recording {
            recording.sent(port, data);
        }
        if !self.cpu.packet(data) {
            self.lost.control_plane += 1;
        }
    }

    fn emit(&mut self, output: &Output) {
        match self.routes.to(output.port) {
            Route::Own(end) => self.ends[end].take_copy(&output.bytes, &mut self.lost),
            Route::Worker { worker, .. } => {
                let Some(outbox) = &mut self.outboxes[worker] else {
                    return;
                };
                if !outbox.has_room(1) {
                    self.lost.ring_full += 1;
                } else if !outbox.push_copy(&output.bytes, output.port) {
                    self.lost.no_frame += 1;
                }
            }
            Route::Nowhere => self.send_nowhere(output.port, &output.bytes),
        }
    }

    /// Has the devices take what they can, and the other workers what is worth it.
    pub fn flush(&mut self) {
        self.ends.iter_mut().for_each(End::transmit);
        let now = if self.pressure.is_on() { self.now() } else { 0 };
        self.pressure.update(&self.ends, &mut self.switch, now);
        self.outboxes.iter_mut().flatten().for_each(Outbox::flush_some);
    }

    /// Has the other workers take everything.
    pub fn flush_rings(&mut self) {
        self.outboxes.iter_mut().flatten().for_each(Outbox::flush);
    }

    /// Whether frames wait for a device, or within one.
    pub fn is_sending(&self) -> bool {
        self.ends.iter().any(End::is_sending)
    }

    /// Whether a batch would find room wherever it goes: before the devices of this worker, and in
    /// queues for those that fall behind.
    pub fn devices_have_room(&self) -> bool {
        self.ends.iter().all(End::has_room) && !self.pressure.is_on()
    }

    /// Whether packets may wait in queues for a device that falls behind.
    pub fn is_held_back(&self) -> bool {
        self.pressure.is_on()
    }

    /// Whether a batch would find room on the way to whichever other worker's devices it goes.
    pub fn others_have_room(&mut self) -> bool {
        self.outboxes.iter_mut().flatten().all(|o| o.has_room(VECTOR))
    }

    /// A packet could not be handed to the worker that has to process it.
    pub fn lose_one(&mut self) {
        self.lost.ring_full += 1;
    }

    /// What devices have not taken is not sent.
    pub fn give_up(&mut self) {
        self.ends.iter_mut().for_each(End::give_up);
        self.lift_pressure();
    }

    /// Lifts back-pressure: all queued packets may leave.
    pub fn lift_pressure(&mut self) {
        let now = self.now();
        self.pressure.lift(&self.ends, &mut self.switch, now);
    }

    /// Has devices write out what they hold back, and send what is within them.
    pub fn flush_devices(&mut self) {
        self.ends.iter_mut().for_each(End::flush);
        if let Some(recording) = &self.recording {
            recording.flush();
        }
    }

    /// What has been counted.
    pub fn report(&self, worker: usize) -> Report {
        let mut counts = self.before.clone();
        let mut now = Snapshot::of(&self.switch);
        now.set_worker(worker);
        counts.add(&now);
        if self.lost.ring_full > 0 {
            counts.add_drops("ring-full", "", self.lost.ring_full);
        }
        if self.lost.no_frame > 0 {
            counts.add_drops("no-frame", "", self.lost.no_frame);
        }
        if self.lost.control_plane > 0 {
            counts.add_drops("control-plane-full", "", self.lost.control_plane);
        }
        // Worker 0 takes what the control plane sends.
        if worker == 0 && self.cpu.lost() > 0 {
            counts.add_drops("packet-out-full", "", self.cpu.lost());
        }
        Report {
            workers: vec![(worker, counts.total().rx.packets)],
            counts,
            ends: {
                let removed = self.removed.iter().map(|(port, removed)| removed.report(*port));
                self.ends.iter().map(End::report).chain(removed).collect()
            },
            digests: self.digests,
            unconnected: self.unconnected.clone(),
        }
    }
}

/// Moves a packet within its frame so that there are `headroom` bytes before it. Whether they are
/// there.
fn make_room(frame: &mut weir_io::FrameMut<'_>, headroom: usize) -> bool {
    let (start, length) = (frame.headroom(), frame.length());
    if start >= headroom {
        return true;
    }
    let fits = headroom + length + TAILROOM <= frame.whole().len();
    if fits {
        frame.whole().copy_within(start..start + length, headroom);
        frame.set_packet(headroom, length);
    }
    fits
}
