//! What a switch has done, for people and for machines.

use serde_json::{Value, json};
use std::fmt::Write;
use weir_ir::{Loc, Program};
use weir_switch::Switch;

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

/// Hits, misses and size of every table.
pub fn tables(switch: &Switch) -> Vec<(String, u64, u64, usize)> {
    let program = switch.program().clone();
    program
        .tables
        .iter()
        .filter_map(|(id, t)| {
            let state = switch.table_state(id).ok()?;
            Some((t.name.clone(), state.hits, state.misses, state.table.entries().count()))
        })
        .collect()
}

/// Everything as JSON.
pub fn json(switch: &Switch) -> Value {
    let program = switch.program();
    let ports: Vec<Value> = switch
        .active_ports()
        .map(|(port, s)| {
            json!({ "port": port, "rx_packets": s.rx.packets, "rx_bytes": s.rx.bytes, "tx_packets": s.tx.packets, "tx_bytes": s.tx.bytes })
        })
        .collect();
    let tables: Vec<Value> = tables(switch)
        .into_iter()
        .map(|(name, hits, misses, entries)| json!({ "table": name, "entries": entries, "hits": hits, "misses": misses }))
        .collect();
    let drops: Vec<Value> = switch
        .drops()
        .map(|d| json!({ "reason": d.reason.to_string(), "place": place(program, d.loc), "packets": d.packets }))
        .collect();
    json!({ "ports": ports, "tables": tables, "drops": drops })
}

/// Everything as tables of text.
pub fn text(switch: &Switch) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "port        rx packets      rx bytes    tx packets      tx bytes");
    for (port, s) in switch.active_ports() {
        let _ = writeln!(
            out,
            "{port:<8}{:>14}{:>14}{:>14}{:>14}",
            s.rx.packets, s.rx.bytes, s.tx.packets, s.tx.bytes
        );
    }
    let tables = tables(switch);
    if !tables.is_empty() {
        let width = tables.iter().map(|t| t.0.len()).max().unwrap_or(0).max(5) + 2;
        let _ = writeln!(out, "\n{:<width$}   entries      hits    misses", "table");
        for (name, hits, misses, entries) in tables {
            let _ = writeln!(out, "{name:<width$}{entries:>10}{hits:>10}{misses:>10}");
        }
    }
    let mut drops = switch.drops().peekable();
    if drops.peek().is_none() {
        out.push_str("\nno packet was dropped\n");
    } else {
        let _ = writeln!(out, "\ndropped because of        packets  where");
        for d in drops {
            let _ = writeln!(
                out,
                "{:<24}{:>9}  {}",
                d.reason.to_string(),
                d.packets,
                place(switch.program(), d.loc)
            );
        }
    }
    out
}
