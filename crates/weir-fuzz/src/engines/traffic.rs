//! Tests made for a program: what its control plane might say, and packets.

use super::packets;
use super::pool::{Pool, random};
use crate::rng::Rng;
use std::fmt::Write;
use weir_arch::Resource;
use weir_ir::{Bits, MatchKind, Program, TableId};
use weir_switch::{Switch, VECTOR};
use weir_table::{ActionSpec, Implementation, TableSpec};

/// Ports that packets come in at and go to.
const PORTS: [u32; 10] = [0, 1, 2, 3, 4, 7, 8, 100, 510, 511];
/// Largest index of a resource that is written.
const CELLS: u64 = 16;

/// How much of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    /// Times that the control plane has its say.
    pub rounds: usize,
    /// Packets after each.
    pub packets: usize,
}

/// Makes a test.
pub(crate) struct Traffic<'a> {
    rng: &'a mut Rng,
    switch: &'a Switch,
    program: &'a Program,
    pool: Pool,
    out: String,
    /// Entries so far, by table: number and key.
    entries: Vec<Vec<(u32, String)>>,
    next_entry: u32,
    nodes: u32,
}

/// Whether its entries are kept in an array, so that changes of few of them meet many packets.
fn is_few_bits(spec: &TableSpec) -> bool {
    let exact = spec.match_keys().all(|k| k.kind == MatchKind::Exact);
    exact && spec.match_keys().map(|k| k.width).sum::<u32>() <= 12
}

fn hex(value: &Bits) -> String {
    format!("0x{:x}", value.to_biguint())
}

impl<'a> Traffic<'a> {
    /// A maker of tests for the program of a switch.
    pub fn new(rng: &'a mut Rng, switch: &'a Switch) -> Self {
        let program = switch.program();
        let pool = Pool::new(program, rng.number());
        Traffic {
            switch,
            program,
            pool,
            out: String::new(),
            entries: vec![Vec::new(); program.tables.len()],
            next_entry: 0,
            nodes: 0,
            rng,
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
    }

    /// A whole test. `given` are lines that come first, `frames` packets that are good to begin
    /// with.
    pub fn test(mut self, given: &str, frames: &[(u32, Vec<u8>)], amount: Amount) -> String {
        self.out.push_str(given);
        self.replication();
        for round in 0..amount.rounds {
            self.round(round == 0);
            let mut left = self.rng.between(1, amount.packets);
            while left > 0 {
                self.packet(frames);
                left -= 1;
                match self.rng.below(100) {
                    0..8 => self.line("wait"),
                    8..11 => self.one_table(),
                    _ => {}
                }
            }
            if self.rng.chance(30) {
                self.flow(frames);
            }
            if self.rng.chance(30) {
                let text = format!("now +{}us", self.rng.below(5000));
                self.line(&text);
            }
        }
        self.out
    }

    fn packet(&mut self, frames: &[(u32, Vec<u8>)]) {
        let (port, bytes) = self.made(frames);
        self.send(port, &bytes);
    }

    /// A vector of packets that differ in few places, so that perhaps all of them get to the same
    /// lookups.
    fn flow(&mut self, frames: &[(u32, Vec<u8>)]) {
        let (port, first) = self.made(frames);
        if first.is_empty() {
            return;
        }
        // They are not to be put together with those before.
        self.line("wait");
        let at = self.rng.below(first.len());
        let places = at..first.len().min(at + self.rng.between(1, 8));
        for _ in 0..VECTOR {
            let mut bytes = first.clone();
            // Whose checksum was right has a wrong one then.
            if self.rng.chance(50) {
                for byte in &mut bytes[places.clone()] {
                    if self.rng.chance(60) {
                        *byte = self.rng.number() as u8;
                    }
                }
            }
            self.send(port, &bytes);
        }
    }

    /// A packet and where it comes in.
    fn made(&mut self, frames: &[(u32, Vec<u8>)]) -> (u32, Vec<u8>) {
        let port = self.rng.one(PORTS);
        let (port, mut bytes) = match self.rng.pick(frames) {
            Some((port, bytes)) if self.rng.chance(50) => (*port, bytes.clone()),
            _ => (port, packets::parsed(self.rng, self.program, &self.pool)),
        };
        if self.rng.chance(15) {
            packets::spoil(self.rng, &mut bytes);
        }
        bytes.truncate(16 * 1024);
        (port, bytes)
    }

    fn send(&mut self, port: u32, bytes: &[u8]) {
        let mut text = format!("packet {port} ");
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        self.line(&text);
    }

    // -------------------------------------------------------------------------------- control
    // plane

    /// Multicast groups and clone sessions.
    fn replication(&mut self) {
        for group in 1..4 {
            if self.rng.chance(70) {
                let rid = self.rng.below(4);
                let ports: Vec<String> = (0..self.rng.between(1, 3))
                    .map(|_| self.rng.one(PORTS).to_string())
                    .collect();
                let node = self.nodes;
                self.nodes += 1;
                let text = format!(
                    "mc_mgrp_create {group}\nmc_node_create {rid} {}\nmc_node_associate {group} {node}",
                    ports.join(" ")
                );
                self.line(&text);
            }
        }
        for session in 0..4 {
            let text = match self.rng.below(4) {
                0 => continue,
                1 => format!("mirroring_add_mc {session} {}", self.rng.between(1, 3)),
                _ => format!("mirroring_add {session} {}", self.rng.one(PORTS)),
            };
            self.line(&text);
        }
    }

    fn round(&mut self, first: bool) {
        self.profiles(first);
        for (id, _) in self.program.tables.iter() {
            self.table(id, first);
        }
        if first {
            self.value_sets();
        }
        self.resources(first);
        if !first && self.rng.chance(10) {
            let (port, state) = (self.rng.one(PORTS), self.rng.one(["up", "down"]));
            let text = format!("port {port} {state}");
            self.line(&text);
        }
    }

    fn profiles(&mut self, first: bool) {
        if !first {
            return;
        }
        for (id, instance) in self.program.externs.iter() {
            let Some(profile) = self.switch.state().profile(id) else {
                continue;
            };
            let spec = profile.spec();
            for member in 1..5 {
                if let Some(call) = self.call(&spec.actions) {
                    let text = format!("member \"{}\" {member} {call}", instance.name);
                    self.line(&text);
                }
            }
            for group in 1..3 {
                let members: Vec<String> = (0..self.rng.between(1, 3))
                    .map(|_| format!("{}:{}", self.rng.between(1, 4), self.rng.between(1, 3)))
                    .collect();
                let text = format!("group \"{}\" {group} {}", instance.name, members.join(" "));
                self.line(&text);
            }
        }
    }

    /// An action with random data.
    fn call(&mut self, actions: &[ActionSpec]) -> Option<String> {
        let usable: Vec<&ActionSpec> = actions.iter().filter(|a| !a.default_only).collect();
        let action = (*self.rng.pick(&usable)?).clone();
        Some(self.call_of(&action))
    }

    fn call_of(&mut self, action: &ActionSpec) -> String {
        let arguments: Vec<String> = action
            .parameters
            .iter()
            .map(|(_, width)| {
                // Of none there is one.
                if *width == 0 {
                    return "0".to_owned();
                }
                // Nine bits are a port more often than not.
                if *width == 9 && self.rng.chance(80) {
                    self.rng.one(PORTS).to_string()
                } else {
                    hex(&self.pool.value(self.rng, *width))
                }
            })
            .collect();
        format!("\"{}\"({})", action.name, arguments.join(", "))
    }

    fn table(&mut self, id: TableId, first: bool) {
        let Ok(state) = self.switch.table_state(id) else { return };
        let spec = state.table.spec().clone();
        if !spec.const_default && self.rng.chance(if first { 40 } else { 10 }) {
            let usable: Vec<ActionSpec> = spec.actions.iter().filter(|a| !a.table_only).cloned().collect();
            if let Some(action) = self.rng.pick(&usable).cloned() {
                let text = format!("setdefault \"{}\" {}", spec.name, self.call_of(&action));
                self.line(&text);
            }
        }
        if spec.const_entries || spec.match_keys().next().is_none() {
            return;
        }
        let few = usize::from(is_few_bits(&spec));
        let changes = if first {
            self.rng.below(12 + 12 * few)
        } else {
            self.rng.below(4 + 4 * few)
        };
        for _ in 0..changes {
            let known = self.rng.pick(&self.entries[id.index()]).map(|e| e.0);
            match (self.rng.below(6), known) {
                (0, Some(entry)) if !first => {
                    let text = format!("delete \"{}\" e{entry}", spec.name);
                    self.entries[id.index()].retain(|e| e.0 != entry);
                    self.line(&text);
                }
                (1 | 2, Some(entry)) if !first => {
                    if let Some(action) = self.entry_action(&spec) {
                        let text = format!("modify \"{}\" e{entry} {action}", spec.name);
                        self.line(&text);
                    }
                }
                _ => self.add(id, &spec),
            }
        }
    }

    /// Changes a table between packets.
    fn one_table(&mut self) {
        let ids: Vec<TableId> = self.program.tables.ids().collect();
        if let Some(id) = self.rng.pick(&ids).copied() {
            self.table(id, false);
        }
    }

    fn entry_action(&mut self, spec: &TableSpec) -> Option<String> {
        if spec.implementation == Implementation::Direct {
            return self.call(&spec.actions);
        }
        Some(match self.rng.below(5) {
            0 => return self.call(&spec.actions),
            1 | 2 => format!("member({})", self.rng.between(1, 4)),
            _ => format!("group({})", self.rng.between(1, 2)),
        })
    }

    fn add(&mut self, id: TableId, spec: &TableSpec) {
        let Some(action) = self.entry_action(spec) else { return };
        let mut text = format!("add \"{}\" ", spec.name);
        if spec.has_priority() {
            let _ = write!(text, "{} ", self.rng.between(1, 1000));
        }
        for key in spec.match_keys() {
            let value = self.key(key.kind, key.width);
            let _ = write!(text, "\"{}\":{value} ", key.name);
        }
        let entries = &self.entries[id.index()];
        if let Some((entry, _)) = entries.iter().find(|e| e.1 == text)
            && self.rng.chance(85)
        {
            // What is there already would be refused.
            let text = format!("modify \"{}\" e{entry} {action}", spec.name);
            return self.line(&text);
        }
        let entry = self.next_entry;
        self.next_entry += 1;
        self.entries[id.index()].push((entry, text.clone()));
        let _ = write!(text, "{action} = e{entry}");
        self.line(&text);
    }

    fn key(&mut self, kind: MatchKind, width: u32) -> String {
        let value = self.pool.value(self.rng, width);
        match kind {
            MatchKind::Exact | MatchKind::Selector => hex(&value),
            MatchKind::Optional if self.rng.chance(30) => "*".to_owned(),
            MatchKind::Optional => hex(&value),
            MatchKind::Lpm => {
                let length = match self.rng.below(4) {
                    0 => width,
                    _ => self.rng.between(0, width as usize) as u32,
                };
                let mask = Bits::prefix_mask(width, length);
                format!("{}/{length}", hex(&value.and(&mask)))
            }
            MatchKind::Ternary => {
                let mask = match self.rng.below(4) {
                    0 => Bits::ones(width),
                    1 => random(self.rng, width),
                    2 => Bits::prefix_mask(width, self.rng.between(0, width as usize) as u32),
                    _ => return "*".to_owned(),
                };
                format!("{}&&&{}", hex(&value.and(&mask)), hex(&mask))
            }
            MatchKind::Range => {
                let other = self.pool.value(self.rng, width);
                let swapped = value.cmp_unsigned(&other).is_gt();
                let (low, high) = if swapped { (other, value) } else { (value, other) };
                format!("{}..{}", hex(&low), hex(&high))
            }
        }
    }

    fn value_sets(&mut self) {
        for (_, set) in self.program.value_sets.iter() {
            for _ in 0..self.rng.below(4) {
                let fields = set.fields.iter();
                let values: Vec<String> = fields.map(|f| self.key(f.match_kind, f.width)).collect();
                let text = format!("value_set \"{}\" {}", set.name, values.join(" "));
                self.line(&text);
            }
        }
    }

    fn resources(&mut self, first: bool) {
        for (id, instance) in self.program.externs.iter() {
            if !self.rng.chance(if first { 60 } else { 10 }) {
                continue;
            }
            let name = &instance.name;
            let text = match self.switch.state().resource(id) {
                Resource::Register(register) => {
                    let ([width], size) = (register.widths.as_slice(), register.cells.size()) else {
                        continue;
                    };
                    let index = self.rng.below(size.min(CELLS) as usize);
                    let value = hex(&self.pool.value(self.rng, *width));
                    format!("register_write \"{name}\" {index} {value}")
                }
                Resource::Counter(_, cells) => {
                    let index = self.rng.below(cells.size().min(CELLS) as usize);
                    format!("counter_write \"{name}\" {index} {} 7", self.rng.below(9))
                }
                Resource::Meter(..) => format!(
                    "meter_array_set_rates \"{name}\" 0.{}:{} 0.{}:{}",
                    self.rng.below(9),
                    self.rng.below(300),
                    self.rng.below(9),
                    self.rng.below(600)
                ),
                Resource::DirectMeter(..) => format!(
                    "meter_set_rates \"{name}\" {} 0.{}:{} 0.{}:{}",
                    self.rng.between(1, 5),
                    self.rng.below(9),
                    self.rng.below(300),
                    self.rng.below(9),
                    self.rng.below(600)
                ),
                _ => continue,
            };
            self.line(&text);
        }
    }
}
