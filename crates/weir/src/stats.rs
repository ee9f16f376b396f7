//! What a switch has done, for people and for machines.

use crate::extern_rows::{self, ExternRow};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use weir_ir::{Loc, Program};
use weir_switch::{Count, PortStats, QueueStats, StageCount, Switch};

/// A place as people write it; nothing where it is not known.
pub fn place(program: &Program, loc: Option<Loc>) -> String {
    match loc {
        Some(loc) if loc.line > 0 => {
            let file = program.files.get(loc.file as usize).map_or("", String::as_str);
            format!("{file}:{}", loc.line)
        }
        _ => String::new(),
    }
}

/// A table's counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    /// Its name.
    pub name: String,
    /// Entries in it.
    pub entries: usize,
    /// Lookups that found one.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
}

/// Packets and cycles of a stretch of compiled code: from one suspension point to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageRow {
    /// Where it begins.
    pub name: String,
    /// The code.
    pub segment: StageCount,
    /// The lookup before it.
    pub lookup: StageCount,
}

/// What switches have counted: one of them, or several workers together.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// By port.
    pub ports: BTreeMap<u32, PortStats>,
    /// By port and priority.
    pub queues: BTreeMap<(u32, u32), QueueStats>,
    /// In the program's order.
    pub tables: Vec<TableRow>,
    /// Reason, place, packets.
    pub drops: Vec<(String, String, u64)>,
    /// In the program's order; none where nobody measures.
    pub stages: Vec<StageRow>,
    /// Calls of externs for which packets may wait, by worker.
    pub externs: Vec<ExternRow>,
}

fn add_count(to: &mut Count, count: Count) {
    to.packets = to.packets.wrapping_add(count.packets);
    to.bytes = to.bytes.wrapping_add(count.bytes);
}

fn add_stage(to: &mut StageCount, count: StageCount) {
    to.packets += count.packets;
    to.runs += count.runs;
    to.cycles += count.cycles;
}

impl Snapshot {
    /// What a switch has counted so far.
    pub fn of(switch: &Switch) -> Self {
        let program = switch.program();
        let tables = program.tables.iter().filter_map(|(id, t)| {
            let state = switch.table_state(id).ok()?;
            Some(TableRow {
                name: t.name.clone(),
                entries: state.table.len(),
                hits: state.hits,
                misses: state.misses,
            })
        });
        let drops = switch.drops();
        let stages = switch.stages().into_iter();
        Snapshot {
            ports: switch.active_ports().collect(),
            queues: switch.queue_stats().map(|q| ((q.port, q.priority), q)).collect(),
            tables: tables.collect(),
            drops: drops
                .map(|d| (d.reason.to_string(), place(program, d.loc), d.packets))
                .collect(),
            stages: stages
                .map(|(name, segment, lookup)| StageRow { name, segment, lookup })
                .collect(),
            externs: ExternRow::of(switch),
        }
    }

    /// What stays true when another program goes on: ports and drops.
    pub fn lasting(self) -> Self {
        Snapshot {
            ports: self.ports,
            drops: self.drops,
            ..Snapshot::default()
        }
    }

    /// Adds what another worker of the same program has counted.
    pub fn add(&mut self, other: &Snapshot) {
        for (port, stats) in &other.ports {
            let sum = self.ports.entry(*port).or_default();
            add_count(&mut sum.rx, stats.rx);
            add_count(&mut sum.tx, stats.tx);
        }
        for (key, queue) in &other.queues {
            let entry = self.queues.entry(*key);
            let sum = entry
                .and_modify(|sum| {
                    sum.depth += queue.depth;
                    sum.highest = sum.highest.max(queue.highest);
                    sum.refused += queue.refused;
                })
                .or_insert(*queue);
            sum.capacity = queue.capacity;
        }
        if self.tables.is_empty() {
            self.tables.clone_from(&other.tables);
        } else {
            for (sum, table) in self.tables.iter_mut().zip(&other.tables) {
                sum.hits += table.hits;
                sum.misses += table.misses;
            }
        }
        for (reason, place, packets) in &other.drops {
            self.add_drops(reason, place, *packets);
        }
        if self.stages.is_empty() {
            self.stages.clone_from(&other.stages);
        } else {
            for (sum, stage) in self.stages.iter_mut().zip(&other.stages) {
                add_stage(&mut sum.segment, stage.segment);
                add_stage(&mut sum.lookup, stage.lookup);
            }
        }
        self.externs.extend(other.externs.iter().cloned());
        // The workers of one call beside each other; the sort keeps the program's order.
        self.externs
            .sort_by_key(|row| (row.call.loc.file, row.call.loc.line, row.call.loc.column, row.worker));
    }

    /// Says which worker's calls of externs these are.
    pub fn set_worker(&mut self, worker: usize) {
        self.externs.iter_mut().for_each(|row| row.worker = worker);
    }

    /// Adds packets that were dropped.
    pub fn add_drops(&mut self, reason: &str, place: &str, packets: u64) {
        match self.drops.iter_mut().find(|d| d.0 == reason && d.1 == place) {
            Some(row) => row.2 += packets,
            None => self.drops.push((reason.to_string(), place.to_string(), packets)),
        }
    }

    /// All ports together.
    pub fn total(&self) -> PortStats {
        let mut total = PortStats::default();
        for stats in self.ports.values() {
            add_count(&mut total.rx, stats.rx);
            add_count(&mut total.tx, stats.tx);
        }
        total
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let ports: Vec<Value> = self
            .ports
            .iter()
            .map(|(port, s)| {
                json!({ "port": port, "rx_packets": s.rx.packets, "rx_bytes": s.rx.bytes, "tx_packets": s.tx.packets, "tx_bytes": s.tx.bytes })
            })
            .collect();
        let tables: Vec<Value> = self
            .tables
            .iter()
            .map(|t| json!({ "table": t.name, "entries": t.entries, "hits": t.hits, "misses": t.misses }))
            .collect();
        let drops: Vec<Value> = self
            .drops
            .iter()
            .map(|(reason, place, packets)| json!({ "reason": reason, "place": place, "packets": packets }))
            .collect();
        json!({ "ports": ports, "tables": tables, "drops": drops })
    }

    /// The queues as JSON.
    pub fn queues_json(&self) -> Value {
        let row = |q: &QueueStats| json!({ "port": q.port, "priority": q.priority, "depth": q.depth, "highest": q.highest, "capacity": q.capacity, "full": q.refused });
        self.queues.values().map(row).collect()
    }

    /// The calls of externs as JSON.
    pub fn externs_json(&self) -> Value {
        self.externs.iter().map(ExternRow::json).collect()
    }

    /// The stages of compiled code as JSON.
    pub fn stages_json(&self) -> Value {
        let count = |c: StageCount| json!({ "packets": c.packets, "runs": c.runs, "cycles": c.cycles });
        let stages = self.stages.iter();
        stages
            .map(|s| json!({ "stage": s.name, "segment": count(s.segment), "lookup": count(s.lookup) }))
            .collect()
    }

    /// Ports, tables and drops as tables of text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "port        rx packets      rx bytes    tx packets      tx bytes");
        for (port, s) in &self.ports {
            let _ = writeln!(
                out,
                "{port:<8}{:>14}{:>14}{:>14}{:>14}",
                s.rx.packets, s.rx.bytes, s.tx.packets, s.tx.bytes
            );
        }
        if !self.tables.is_empty() {
            let width = self.tables.iter().map(|t| t.name.len()).max().unwrap_or(0).max(5) + 2;
            let _ = writeln!(out, "\n{:<width$}   entries      hits    misses", "table");
            for t in &self.tables {
                let _ = writeln!(out, "{:<width$}{:>10}{:>10}{:>10}", t.name, t.entries, t.hits, t.misses);
            }
        }
        if self.drops.is_empty() {
            out.push_str("\nno packet was dropped\n");
        } else {
            let _ = writeln!(out, "\ndropped because of        packets  where");
            for (reason, place, packets) in &self.drops {
                let _ = writeln!(out, "{reason:<24}{packets:>9}  {place}");
            }
        }
        out
    }

    /// Calls of externs, queues that were used and stages that were measured, as tables of text;
    /// nothing where there are none.
    pub fn details(&self) -> String {
        let mut out = extern_rows::text(&self.externs);
        if !self.queues.is_empty() {
            let _ = writeln!(out, "\nport  priority     depth   highest  capacity      full");
            for q in self.queues.values() {
                let _ = writeln!(
                    out,
                    "{:<6}{:>8}{:>10}{:>10}{:>10}{:>10}",
                    q.port, q.priority, q.depth, q.highest, q.capacity, q.refused
                );
            }
        }
        if !self.stages.is_empty() {
            let width = self.stages.iter().map(|s| s.name.len()).max().unwrap_or(0).max(5) + 2;
            let _ = writeln!(
                out,
                "\n{:<width$}     packets  lookup cycles  code cycles  (per packet)",
                "stage"
            );
            for s in &self.stages {
                let per = |c: StageCount| c.cycles as f64 / c.packets.max(1) as f64;
                let _ = writeln!(
                    out,
                    "{:<width$}{:>12}{:>15.1}{:>13.1}",
                    s.name,
                    s.segment.packets,
                    per(s.lookup),
                    per(s.segment)
                );
            }
        }
        out
    }
}

/// Everything of one switch as JSON.
pub fn json(switch: &Switch) -> Value {
    Snapshot::of(switch).json()
}

/// Everything of one switch as tables of text.
pub fn text(switch: &Switch) -> String {
    Snapshot::of(switch).text()
}
