//! Which pipelines may run their segments over many packets at once.
//!
//! Packets must come to a piece of state in the order in which they arrived. Within one segment they do: it takes
//! them lowest slot first. State that two segments touch, or that packets touch again after they have left the
//! pipeline for the driver, would be touched out of order: such a pipeline runs its packets one by one.

use crate::analysis::Analysis;
use crate::layout::{Layout, PointKind};
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::pipeline::Touched;
use weir_ir::{InstKind, Terminator};

/// Why packets run one by one; `None`: they need not.
pub(crate) fn why_serial(analysis: &Analysis<'_>, layout: &Layout) -> Option<String> {
    let pipeline = analysis.pipeline;
    let mut touched: BTreeMap<u32, (usize, String)> = BTreeMap::new();
    // Exits of packets that go on outside.
    let mut outside: BTreeSet<u32> = BTreeSet::new();
    for (segment, region) in layout.regions.iter().enumerate() {
        for &id in region {
            let block = &pipeline.body.blocks[id];
            if let Terminator::Exit(e) = block.terminator {
                outside.insert(e);
            }
            for step in analysis.steps(id) {
                if matches!(step.inst, InstKind::Advance { bits } if matches!(bits, weir_ir::Operand::Var(_))) {
                    outside.insert(pipeline.restart);
                }
                let (InstKind::Call(call), Some(kind)) = (step.inst, step.call_kind()) else {
                    continue;
                };
                let Some(state) = kind.state() else { continue };
                let name = match call.instance {
                    Some(x) => pipeline.program.externs[x].name.clone(),
                    None => call.function.clone(),
                };
                let first = touched.entry(state).or_insert((segment, name.clone()));
                if first.0 != segment {
                    return Some(format!("`{name}` is used before and after a table lookup"));
                }
                if !analysis.loops.is_empty() {
                    return Some(format!("`{name}` is used in a program with loops"));
                }
            }
        }
    }
    let outside: Vec<(&str, &Touched)> = outside
        .iter()
        .map(|e| &pipeline.exits[*e as usize])
        .filter_map(|e| Some((e.name, e.touches.as_ref()?)))
        .collect();
    for (state, (_, name)) in &touched {
        if let Some((exit, _)) = outside.iter().find(|(_, t)| t.states.contains(state)) {
            return Some(format!("`{name}` is used, and by packets that go on at {exit} too"));
        }
    }
    for (id, table) in pipeline.program.tables.iter() {
        let reads = pipeline.table_states.get(id.index()).copied().flatten();
        if let Some((_, name)) = reads.and_then(|state| touched.get(&state)) {
            let table = &table.name;
            return Some(format!(
                "`{name}` is changed by packets, and lookups of `{table}` depend on it"
            ));
        }
    }
    let comes_again = comes_again(analysis, layout);
    let mut seen = vec![0; pipeline.program.tables.len()];
    for (number, point) in layout.points.iter().enumerate() {
        let own = match point.kind {
            PointKind::Lookup { table, .. } => Some(table),
            _ => None,
        };
        let ahead = point.ahead.iter().map(|site| layout.sites[*site].table);
        for table in own.into_iter().chain(ahead) {
            if pipeline.ordered_tables.get(table.index()) != Some(&true) {
                continue;
            }
            seen[table.index()] += 1;
            let name = &pipeline.program.tables[table].name;
            if seen[table.index()] > 1 {
                return Some(format!("`{name}` has direct meters and is looked up at several places"));
            }
            if comes_again[number] {
                return Some(format!(
                    "`{name}` has direct meters and is looked up in or after a loop"
                ));
            }
            if let Some((exit, _)) = outside.iter().find(|(_, t)| t.tables.contains(&table)) {
                return Some(format!(
                    "`{name}` has direct meters and is looked up by packets that go on at {exit} too"
                ));
            }
        }
    }
    None
}

/// Points that packets may still come to after others of the vector have been there: a loop leads to them from a point
/// that is not before them.
fn comes_again(analysis: &Analysis<'_>, layout: &Layout) -> Vec<bool> {
    let mut found = vec![false; layout.points.len()];
    for start in 0..layout.points.len() {
        let (mut seen, mut work) = (vec![false; layout.points.len()], vec![start]);
        while let Some(at) = work.pop() {
            let lookups = layout.regions[at].iter().filter(|b| {
                let terminator = &analysis.pipeline.body.blocks[**b].terminator;
                matches!(terminator, Terminator::Lookup(_))
            });
            for &to in lookups.filter_map(|b| layout.of_block.get(b)) {
                found[to] |= to <= start;
                if !std::mem::replace(&mut seen[to], true) {
                    work.push(to);
                }
            }
        }
    }
    found
}
