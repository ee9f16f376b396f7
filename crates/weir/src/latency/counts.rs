//! Entries of the tables of a switch, counted.

use anyhow::Result;
use std::collections::HashSet;
use weir_ir::{Bits, KeyMatch};
use weir_latency::Features;
use weir_switch::Switch;

/// What a table holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCount {
    /// Its name.
    pub table: String,
    /// Entries.
    pub entries: u64,
    /// Different masks and prefix lengths of the entries.
    pub masks: u64,
}

/// What one key of an entry leaves open.
#[derive(PartialEq, Eq, Hash)]
enum Mask {
    All,
    Prefix(u32),
    Bits(Bits),
    Range,
    Any,
}

/// Counts what all tables hold.
pub fn of(switch: &Switch) -> Result<Vec<TableCount>> {
    let mut counts = Vec::new();
    for (id, table) in switch.program().tables.iter() {
        let state = switch.table_state(id)?;
        let masks: HashSet<Vec<Mask>> = state
            .table
            .entries()
            .map(|e| e.matches.iter().map(mask).collect())
            .collect();
        counts.push(TableCount {
            table: table.name.clone(),
            entries: state.table.len() as u64,
            masks: masks.len() as u64,
        });
    }
    Ok(counts)
}

fn mask(key: &KeyMatch) -> Mask {
    match key {
        KeyMatch::Exact(_) | KeyMatch::Optional(Some(_)) => Mask::All,
        KeyMatch::Lpm { prefix_length, .. } => Mask::Prefix(*prefix_length),
        KeyMatch::Ternary { mask, .. } => Mask::Bits(mask.clone()),
        KeyMatch::Range { .. } => Mask::Range,
        KeyMatch::Optional(None) => Mask::Any,
    }
}

/// Puts the counts where models look.
pub fn note(counts: &[TableCount], features: &mut Features) {
    for table in &mut features.tables {
        if let Some(count) = counts.iter().find(|c| is_it(&c.table, &table.name)) {
            (table.entries, table.masks) = (Some(count.entries), Some(count.masks));
        }
    }
}

/// Whether a table's name is meant, which may begin with that of its pipeline.
fn is_it(meant: &str, name: &str) -> bool {
    name.strip_suffix(meant)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}
