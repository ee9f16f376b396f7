//! Which pipelines may run their segments over many packets at once.
//!
//! Packets must come to a piece of state in the order in which they arrived. Within one segment they do: it takes
//! them lowest slot first. State that two segments touch, or that packets touch again after they have left the
//! pipeline for the driver, would be touched out of order: such a pipeline runs its packets one by one.

use crate::analysis::Analysis;
use crate::layout::{Layout, PointKind};
use std::collections::BTreeMap;
use weir_ir::pipeline::CallKind;
use weir_ir::{InstKind, Terminator};

/// Why packets run one by one; `None`: they need not.
pub(crate) fn why_serial(analysis: &Analysis<'_>, layout: &Layout) -> Option<String> {
    let pipeline = analysis.pipeline;
    let mut touched: BTreeMap<u32, (usize, String)> = BTreeMap::new();
    let mut continues = None;
    for (segment, region) in layout.regions.iter().enumerate() {
        for &id in region {
            let block = &pipeline.body.blocks[id];
            if let Terminator::Exit(e) = block.terminator
                && pipeline.exits[e as usize].continues
            {
                continues = Some(pipeline.exits[e as usize].name);
            }
            for (i, inst) in block.insts.iter().enumerate() {
                if matches!(&inst.kind, InstKind::Advance { bits } if matches!(bits, weir_ir::Operand::Var(_))) {
                    continues = Some(pipeline.exits[pipeline.restart as usize].name);
                }
                let InstKind::Call(call) = &inst.kind else { continue };
                let CallKind::Host { state: Some(state), .. } = analysis.kind_of_call(id, i) else {
                    continue;
                };
                let name = match call.instance {
                    Some(x) => pipeline.program.externs[x].name.clone(),
                    None => call.function.clone(),
                };
                let first = touched.entry(*state).or_insert((segment, name.clone()));
                if first.0 != segment {
                    return Some(format!("`{name}` is used before and after a table lookup"));
                }
                if !analysis.loops.is_empty() {
                    return Some(format!("`{name}` is used in a program with loops"));
                }
            }
        }
    }
    if let (Some((_, name)), Some(exit)) = (touched.values().next(), continues) {
        return Some(format!("`{name}` is used, and packets may go on at {exit}"));
    }
    let mut seen = vec![0; pipeline.program.tables.len()];
    for point in &layout.points {
        if let PointKind::Lookup { table, .. } = point.kind {
            seen[table.index()] += 1;
            let ordered = pipeline.ordered_tables.get(table.index()) == Some(&true);
            if ordered && (seen[table.index()] > 1 || continues.is_some()) {
                let name = &pipeline.program.tables[table].name;
                return Some(format!(
                    "`{name}` has direct meters and is not looked up at one place alone"
                ));
            }
        }
    }
    None
}
