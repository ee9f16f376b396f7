//! Decides which pipelines must run their packets one by one.
//!
//! Packets must access a piece of state in the order in which they arrived. Within one segment they
//! do, as it takes the lowest slot first. If two segments access the state, or punted packets
//! access it again in the driver, a vector would access it out of order. Such a pipeline is
//! *serial*: it runs its packets one by one.

use crate::analysis::Analysis;
use crate::layout::{Layout, PointKind};
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::pipeline::Touched;
use weir_ir::{InstKind, Terminator};

/// Why the pipeline is serial; `None`: it is not.
pub(crate) fn why_serial(analysis: &Analysis<'_>, layout: &Layout) -> Option<String> {
    let pipeline = analysis.pipeline;
    let mut touched: BTreeMap<u32, (usize, String)> = BTreeMap::new();
    // Exits that packets take, among them those that punt. The exit of packets whose parser nearly
    // times out is left out: such packets may meet a direct meter after the others of their vector.
    let mut punts: BTreeSet<u32> = BTreeSet::new();
    for (segment, region) in layout.regions.iter().enumerate() {
        for &id in region {
            let block = &pipeline.body.blocks[id];
            if let Terminator::Exit(e) = block.terminator {
                punts.insert(e);
            }
            for inst in analysis.annotated_insts(id) {
                if matches!(inst.kind, InstKind::Advance { bits } if matches!(bits, weir_ir::Operand::Var(_))) {
                    punts.insert(pipeline.punt_from_start);
                }
                let (InstKind::Call(call), Some(kind)) = (inst.kind, inst.call_kind()) else {
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
    let punts: Vec<(&str, &Touched)> = punts
        .iter()
        .map(|e| &pipeline.exits[*e as usize])
        .filter_map(|e| Some((e.name, e.touches.as_ref()?)))
        .collect();
    for (state, (_, name)) in &touched {
        if let Some((exit, _)) = punts.iter().find(|(_, t)| t.states.contains(state)) {
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
    let is_revisited = is_revisited(analysis, layout);
    let mut seen = vec![0; pipeline.program.tables.len()];
    for (number, point) in layout.points.iter().enumerate() {
        let suspended = match point.kind {
            PointKind::Lookup { table, .. } => Some(table),
            _ => None,
        };
        let hoisted = point.hoisted.iter().map(|site| layout.inline_lookups[*site].table);
        for table in suspended.into_iter().chain(hoisted) {
            if pipeline.ordered_tables.get(table.index()) != Some(&true) {
                continue;
            }
            seen[table.index()] += 1;
            let name = &pipeline.program.tables[table].name;
            if seen[table.index()] > 1 {
                return Some(format!("`{name}` has direct meters and is looked up at several places"));
            }
            if is_revisited[number] {
                return Some(format!(
                    "`{name}` has direct meters and is looked up in or after a loop"
                ));
            }
            if let Some((exit, _)) = punts.iter().find(|(_, t)| t.tables.contains(&table)) {
                return Some(format!(
                    "`{name}` has direct meters and is looked up by packets that go on at {exit} too"
                ));
            }
        }
    }
    None
}

/// By point: whether packets may arrive after others of the vector were there. It is in or after a
/// loop.
fn is_revisited(analysis: &Analysis<'_>, layout: &Layout) -> Vec<bool> {
    let mut found = vec![false; layout.points.len()];
    for start in 0..layout.points.len() {
        let (mut seen, mut work) = (vec![false; layout.points.len()], vec![start]);
        while let Some(point) = work.pop() {
            let lookups = layout.regions[point].iter().filter(|b| {
                let terminator = &analysis.pipeline.body.blocks[**b].terminator;
                matches!(terminator, Terminator::Lookup(_) | Terminator::Suspend(_))
            });
            for &to in lookups.filter_map(|b| layout.point_of_block.get(b)) {
                found[to] |= to <= start;
                if !std::mem::replace(&mut seen[to], true) {
                    work.push(to);
                }
            }
        }
    }
    found
}
