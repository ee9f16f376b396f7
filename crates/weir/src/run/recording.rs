//! `--pcap`: captures of what each port receives and sends, with the reason of each drop.
//!
//! A packet is recorded when it is processed, so that its record can say why it was dropped. Where
//! packets leave the switch at once, the counters of drops before and after a packet give the
//! reason. Where they may wait in queues, and where no code is compiled, a [`Watcher`] follows each
//! from where it came in: one that is dropped after a queue is recorded a second time, with the
//! reason. A drop of a packet that waited for an extern is counted, and not recorded.

use crate::cli::Run;
use crate::output::Messages;
use crate::stats;
use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_interp::{Event, PacketTag, Tracer};
use weir_io::{Frame, IoError, PortSpec, Recorder};
use weir_ir::{Loc, Program, VarId};
use weir_switch::{DropCount, Switch};

/// The most packets of which a [`Watcher`] knows where they came in. Older ones are forgotten.
const MAX_ORIGINS: usize = 16_384;

/// Endings of the files of a recording.
const FILES: [&str; 3] = [".pcapng", "_in.pcap", "_out.pcap"];

/// The name of a port's recordings: that of its interface, if it has one.
fn name_of(spec: &PortSpec) -> String {
    let interface = spec.device.interface().map(str::to_owned);
    interface.unwrap_or_else(|| format!("port{}", spec.port))
}

/// Ports with the names of their recordings, that of the control plane among them.
fn names(arguments: &Run, specs: &[PortSpec]) -> Vec<(u32, String)> {
    let ports = specs.iter().map(|spec| (spec.port, name_of(spec)));
    ports
        .chain(arguments.cpu_port.map(|port| (port, "cpu".to_owned())))
        .collect()
}

/// The files that a run records, if any.
///
/// # Errors
/// Two ports would be recorded in the same files.
pub fn files(arguments: &Run, specs: &[PortSpec]) -> Result<Vec<PathBuf>> {
    let Some(directory) = &arguments.pcap else {
        return Ok(Vec::new());
    };
    let names = names(arguments, specs);
    for (place, (port, name)) in names.iter().enumerate() {
        if let Some((other, _)) = names[..place].iter().find(|(_, other)| other == name) {
            bail!("ports {other} and {port} would both be recorded as {name}: rename the interface");
        }
    }
    let files = names
        .iter()
        .flat_map(|(_, name)| FILES.map(|file| directory.join(format!("{name}{file}"))));
    Ok(files.collect())
}

/// What records ports, by the names of their files.
pub struct Recorders {
    directory: PathBuf,
    /// Those of the ports at the start, by port.
    ports: Vec<(u32, Recorder)>,
    /// All that there were, by name: a port that is added again continues its recording.
    known: Mutex<HashMap<String, Recorder>>,
}

impl Recorders {
    /// The recorders of all ports, with `--pcap`.
    ///
    /// # Errors
    /// The files cannot be created.
    pub fn create(arguments: &Run, specs: &[PortSpec], messages: &Messages) -> Result<Option<Self>> {
        let Some(directory) = &arguments.pcap else {
            return Ok(None);
        };
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let (mut ports, mut known) = (Vec::new(), HashMap::new());
        for (port, name) in names(arguments, specs) {
            let recorder = create(directory, port, &name, messages)?;
            ports.push((port, recorder.clone()));
            known.insert(name, recorder);
        }
        Ok(Some(Recorders {
            directory: directory.clone(),
            ports,
            known: Mutex::new(known),
        }))
    }

    /// The recorder of a port that there was at the start.
    pub fn of(&self, port: u32) -> Option<Recorder> {
        let found = self.ports.iter().find(|(number, _)| *number == port);
        found.map(|(_, recorder)| recorder.clone())
    }

    /// What a worker records.
    pub fn recording(&self) -> Recording {
        Recording::new(self.ports.clone())
    }

    /// The recorder of a port that is added beside others.
    ///
    /// # Errors
    /// The files cannot be created, or another port is recorded in them.
    pub fn of_new_port(&self, spec: &PortSpec, others: &[PortSpec], messages: &Messages) -> Result<Recorder> {
        let name = name_of(spec);
        if name == "cpu" || others.iter().any(|other| name_of(other) == name) {
            bail!("another port is recorded as {name}: rename the interface");
        }
        let mut known = self.known.lock();
        if let Some(recorder) = known.get(&name) {
            return Ok(recorder.clone());
        }
        let recorder = create(&self.directory, spec.port, &name, messages)?;
        known.insert(name, recorder.clone());
        Ok(recorder)
    }
}

fn create(directory: &Path, port: u32, name: &str, messages: &Messages) -> Result<Recorder, IoError> {
    let messages = messages.clone();
    let ended = move |error: &IoError| messages.line(format!("port {port} is not recorded any more: {error}"));
    Recorder::create(directory, name, Box::new(ended))
}

/// The recorders of all ports, and what one worker knows of packets.
pub struct Recording {
    ports: Vec<(u32, Recorder)>,
    watcher: Watcher,
}

impl Recording {
    /// Of ports with their recorders.
    pub fn new(ports: Vec<(u32, Recorder)>) -> Self {
        Recording {
            ports,
            watcher: Watcher::default(),
        }
    }

    /// Records another port from now on.
    pub fn add(&mut self, port: u32, recorder: Recorder) {
        self.ports.push((port, recorder));
    }

    /// Records a port no longer.
    pub fn remove(&mut self, port: u32) {
        self.ports.retain(|(number, recorder)| {
            recorder.flush();
            *number != port
        });
    }

    fn recorder(&self, port: u32) -> Option<&Recorder> {
        let found = self.ports.iter().find(|(number, _)| *number == port);
        found.map(|(_, recorder)| recorder)
    }

    /// Records a packet that came in at a port, with a note.
    pub fn received(&self, port: u32, frame: Frame<'_>, note: &str) {
        if let Some(recorder) = self.recorder(port) {
            recorder.received(frame, note);
        }
    }

    /// Records a packet for a port that no device is connected to: that of the control plane.
    pub fn sent(&self, port: u32, data: &[u8]) {
        let time_ns = weir_io::now_ns();
        if let Some(recorder) = self.recorder(port) {
            recorder.sent(Frame { data, time_ns });
        }
    }

    /// Writes out what is buffered.
    pub fn flush(&self) {
        self.ports.iter().for_each(|(_, recorder)| recorder.flush());
    }

    /// The tracer that follows packets through queues.
    pub fn watcher(&mut self) -> &mut Watcher {
        &mut self.watcher
    }

    /// Records a packet that the watcher has followed up to here, and the drops of others that it
    /// saw since the packet came in.
    pub fn watched(&mut self, port: u32, frame: Frame<'_>, program: &Program) {
        let packet = self.watcher.last.clone();
        let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.watcher.dropped)
            .into_iter()
            .partition(|drop| is_same(drop.packet.as_ref(), packet.as_ref()));
        let own: Vec<String> = own.iter().map(|drop| drop.text(program)).collect();
        self.received(port, frame, &note(&own));
        self.record_late_drops(&others, program);
    }

    /// Records packets that were dropped after a queue.
    pub fn left_queues(&mut self, program: &Program) {
        if !self.watcher.dropped.is_empty() {
            let dropped = std::mem::take(&mut self.watcher.dropped);
            self.record_late_drops(&dropped, program);
        }
    }

    fn record_late_drops(&self, dropped: &[Dropped], program: &Program) {
        for drop in dropped {
            let Some(packet) = &drop.packet else { continue };
            let frame = Frame {
                data: &packet.data,
                time_ns: weir_io::now_ns(),
            };
            let text = format!("received before and queued; {}", note(&[drop.text(program)]));
            self.received(packet.port, frame, &text);
        }
    }
}

fn is_same(one: Option<&Arc<Received>>, other: Option<&Arc<Received>>) -> bool {
    one.zip(other).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
}

/// What a record says of drops: nothing, or their reasons.
fn note(reasons: &[String]) -> String {
    match reasons {
        [] => String::new(),
        reasons => format!("dropped: {}", reasons.join(", ")),
    }
}

/// The drops of a switch so far.
pub fn drops(switch: &Switch) -> Vec<DropCount> {
    switch.drops().collect()
}

/// What a record says of the drops that were counted after `before`.
pub fn note_since(before: &[DropCount], switch: &Switch) -> String {
    let mut reasons = Vec::new();
    for now in switch.drops() {
        let was = before.iter().find(|b| (b.reason, b.loc) == (now.reason, now.loc));
        let packets = now.packets.saturating_sub(was.map_or(0, |b| b.packets));
        let text = text(now.reason.name(), now.loc, switch.program());
        match packets {
            0 => {}
            1 => reasons.push(text),
            _ => reasons.push(format!("{text} ({packets} times)")),
        }
    }
    note(&reasons)
}

fn text(reason: &str, loc: Option<Loc>, program: &Program) -> String {
    match stats::place(program, loc) {
        place if place.is_empty() => reason.to_owned(),
        place => format!("{reason} at {place}"),
    }
}

/// A packet as it came in.
#[derive(Debug)]
struct Received {
    port: u32,
    data: Box<[u8]>,
}

/// A packet that was dropped.
#[derive(Debug)]
struct Dropped {
    /// The one that it came from. `None`: it is not known any more, or was made by a packet
    /// generator.
    packet: Option<Arc<Received>>,
    reason: String,
    loc: Loc,
}

impl Dropped {
    fn text(&self, program: &Program) -> String {
        text(&self.reason, Some(self.loc), program)
    }
}

/// Follows packets from where they came in to where they are dropped.
#[derive(Debug, Default)]
pub struct Watcher {
    /// The number of the last packet.
    number: u32,
    /// The one that events are about.
    current: PacketTag,
    /// The packet that comes in next.
    coming: Option<Arc<Received>>,
    /// The one that came in last.
    last: Option<Arc<Received>>,
    /// By number: the received packet that each comes from.
    origins: HashMap<u32, Arc<Received>>,
    /// Their numbers, oldest first.
    order: VecDeque<u32>,
    dropped: Vec<Dropped>,
    /// Where each variable was written last, of the packet that events are about.
    writes: HashMap<VarId, Loc>,
}

impl Watcher {
    /// The packet that is given to the switch next.
    pub fn expect(&mut self, port: u32, data: &[u8]) {
        let packet = Arc::new(Received {
            port,
            data: data.into(),
        });
        self.last = Some(Arc::clone(&packet));
        self.coming = Some(packet);
    }
}

impl Tracer for Watcher {
    fn event(&mut self, event: &Event<'_>, loc: Loc) {
        if let Event::Fate { text, dropped: true } = event {
            self.dropped.push(Dropped {
                packet: self.origins.get(&self.current.0).cloned(),
                reason: (*text).to_owned(),
                loc,
            });
        } else if let Event::Write { var, .. } = event {
            self.writes.insert(*var, loc);
        }
    }

    fn begin_packet(&mut self, parent: PacketTag, _: &str) -> PacketTag {
        self.number = self.number.wrapping_add(1).max(1);
        let origin = match parent {
            PacketTag::NONE => self.coming.take(),
            parent => self.origins.get(&parent.0).cloned(),
        };
        if let Some(origin) = origin {
            self.origins.insert(self.number, origin);
            self.order.push_back(self.number);
        }
        if self.order.len() > MAX_ORIGINS
            && let Some(oldest) = self.order.pop_front()
        {
            self.origins.remove(&oldest);
        }
        self.resume_packet(PacketTag(self.number));
        self.current
    }

    fn resume_packet(&mut self, packet: PacketTag) {
        self.current = packet;
        self.writes.clear();
    }

    fn last_write(&self, var: VarId) -> Option<Loc> {
        self.writes.get(&var).copied().filter(|loc| loc.line > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(text: &str) -> Event<'_> {
        Event::Fate { text, dropped: true }
    }

    #[test]
    fn a_copy_is_of_the_packet_that_came_in() {
        let mut watcher = Watcher::default();
        watcher.expect(3, &[1, 2]);
        let first = watcher.begin_packet(PacketTag::NONE, "received");
        let copy = watcher.begin_packet(first, "clone");
        watcher.expect(4, &[5]);
        watcher.begin_packet(PacketTag::NONE, "received");
        watcher.event(&fate("late"), Loc::default());
        watcher.resume_packet(copy);
        watcher.event(&fate("queue-full"), Loc::default());
        let seen: Vec<(u32, &str)> = watcher
            .dropped
            .iter()
            .map(|d| (d.packet.as_ref().unwrap().port, d.reason.as_str()))
            .collect();
        assert_eq!(seen, [(4, "late"), (3, "queue-full")]);
    }

    #[test]
    fn generated_packets_and_forgotten_ones_have_no_origin() {
        let mut watcher = Watcher::default();
        watcher.begin_packet(PacketTag::NONE, "generated");
        watcher.event(&fate("a"), Loc::default());
        watcher.expect(1, &[]);
        let first = watcher.begin_packet(PacketTag::NONE, "received");
        for _ in 0..MAX_ORIGINS {
            watcher.expect(1, &[]);
            watcher.begin_packet(PacketTag::NONE, "received");
        }
        watcher.resume_packet(first);
        watcher.event(&fate("b"), Loc::default());
        assert!(watcher.dropped.iter().all(|d| d.packet.is_none()));
        assert_eq!((watcher.origins.len(), watcher.order.len()), (MAX_ORIGINS, MAX_ORIGINS));
    }
}
