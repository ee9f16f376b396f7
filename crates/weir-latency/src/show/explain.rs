//! `weir latency explain` as text.

use super::{count, plural};
use crate::features::{
    Chip, DEFAULT_SIZE, DependencyKind, Features, NodeKind, Operations, Placement, State, TableFeatures,
};
use std::fmt::Write;

/// Paths that are shown with their states.
const SHOWN_PATHS: usize = 12;

/// All features with source lines, and the stages of a chip.
#[must_use]
pub fn explain(features: &Features, chip: &Chip) -> String {
    let mut text = String::new();
    let parser = &features.parser;
    let _ = writeln!(
        text,
        "{} of a program for {}: parser {} ({}), {}, {} accept",
        features.gress,
        features.architecture,
        parser.name,
        parser.place,
        plural(parser.states as usize, "state"),
        paths_of(parser.accepting),
    );
    if parser.is_merged {
        text.push_str(
            "There are too many to list: paths of similar cost are merged, and one line stands for several.\n",
        );
    }
    if parser.is_cut_off {
        text.push_str("The longest paths, of more states than are followed, are left out.\n");
    }
    paths(&mut text, features);
    tables(&mut text, features);
    let placement = features.placement(chip);
    dependencies(&mut text, features);
    stages(&mut text, features, &placement, chip);
    text
}

/// `1 path`, `2 paths`, of counts beyond integers.
pub(super) fn paths_of(accepting: f64) -> String {
    if accepting == 1.0 {
        "1 path".to_owned()
    } else {
        format!("{} paths", count(accepting))
    }
}

fn paths(text: &mut String, features: &Features) {
    text.push_str("\nPaths, with states after Ethernet and the bytes that they extract:\n");
    let all = &features.parser.paths;
    for path in all.iter().take(SHOWN_PATHS) {
        let bytes = if path.least_header_bytes == path.header_bytes {
            plural(path.header_bytes as usize, "byte")
        } else {
            format!("{} to {} bytes", path.least_header_bytes, path.header_bytes)
        };
        let times = if path.count > 1.0 {
            format!(", stands for {} paths", count(path.count))
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "  {}: {}, {bytes}{times}",
            path.name,
            plural(path.extracting_states as usize, "state")
        );
        for state in &path.states {
            let _ = writeln!(text, "    {}", state_line(state));
        }
        let control = &features.controls[path.control];
        let tables = control.longest(&features.tables).tables;
        let names: Vec<&str> = tables.iter().map(|at| features.tables[*at].name.as_str()).collect();
        let reachable = control.tables().len();
        let others = if reachable > names.len() {
            format!(" (longest sequence; {reachable} tables may be reached)")
        } else {
            String::new()
        };
        let names = if names.is_empty() {
            "no table".to_owned()
        } else {
            names.join(" → ")
        };
        let _ = writeln!(text, "    then {names}{others}");
    }
    if all.len() > SHOWN_PATHS {
        let _ = writeln!(text, "  and {} more; --json lists all", all.len() - SHOWN_PATHS);
    }
}

fn state_line(state: &State) -> String {
    let mut parts = Vec::new();
    if state.metadata_bytes > 0 {
        parts.push(format!("{} of metadata", plural(state.metadata_bytes as usize, "byte")));
    }
    if !state.headers.is_empty() {
        let bytes = plural(state.bytes as usize, "byte");
        parts.push(format!("{bytes}: {}", state.headers.join(", ")));
    }
    if state.lookahead_bytes > 0 {
        parts.push(format!(
            "looks {} ahead",
            plural(state.lookahead_bytes as usize, "byte")
        ));
    }
    if state.advances {
        let skipped = match state.advanced_bytes {
            0 => "advances".to_owned(),
            bytes => format!("skips {}", plural(bytes as usize, "byte")),
        };
        parts.push(skipped);
    }
    if state.select_keys > 0 {
        parts.push(format!("selects by {}", plural(state.select_keys as usize, "key")));
    }
    if state.windows > 1 {
        parts.push(format!("{} windows of 32 bytes", state.windows));
    }
    if parts.is_empty() {
        parts.push("extracts nothing".to_owned());
    }
    let name = if state.name.is_empty() {
        "(within a state)"
    } else {
        &state.name
    };
    format!(
        "{name} ({}:{}): {}",
        state.place.file,
        state.place.line,
        parts.join("; ")
    )
}

fn operations(operations: &Operations) -> String {
    let named: Vec<String> = operations
        .named()
        .into_iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    if named.is_empty() {
        "nothing".to_owned()
    } else {
        named.join(", ")
    }
}

fn tables(text: &mut String, features: &Features) {
    if features.tables.is_empty() {
        return;
    }
    text.push_str("\nTables:\n");
    for table in &features.tables {
        let _ = writeln!(
            text,
            "  {} ({}:{}): {}",
            table.name,
            table.place.file,
            table.place.line,
            keys(table)
        );
        for action in &table.actions {
            let data = if action.data_bits > 0 {
                format!(", {} of data", plural(action.data_bits as usize, "bit"))
            } else {
                String::new()
            };
            let _ = writeln!(text, "    {}: {}{data}", action.name, operations(&action.operations));
        }
    }
}

fn keys(table: &TableFeatures) -> String {
    let keys: Vec<String> = table.keys.iter().map(|k| format!("{}/{}", k.width, k.kind)).collect();
    let mut parts = vec![if keys.is_empty() {
        "no key".to_owned()
    } else {
        keys.join(" ")
    }];
    if table.is_mixed() {
        parts.push("kinds are mixed".to_owned());
    }
    parts.push(match (table.size, table.entries) {
        (_, Some(1)) => "1 entry".to_owned(),
        (_, Some(entries)) => format!("{entries} entries"),
        (Some(u64::MAX), _) => "a size beyond 64 bits".to_owned(),
        (Some(size), _) => format!("size {size}"),
        (None, _) => format!("no size declared: {DEFAULT_SIZE}"),
    });
    if table.has_selector {
        parts.push("selector".to_owned());
    }
    parts.join(", ")
}

fn dependencies(text: &mut String, features: &Features) {
    let all = &features.dependencies;
    if all.nodes.is_empty() {
        return;
    }
    text.push_str("\nDependencies, each on what comes before it:\n");
    for (to, node) in all.nodes.iter().enumerate() {
        let what = match &node.kind {
            NodeKind::Table(_) => String::new(),
            NodeKind::Statements(done) => format!(" (statements: {})", operations(done)),
        };
        let mut needed = all
            .edges
            .iter()
            .filter(|e| e.to == to && e.kind.needs_later_stage())
            .peekable();
        let _ = writeln!(text, "  {}{what}", node.name);
        if needed.peek().is_none() {
            text.push_str("    none that needs a later stage\n");
        }
        for edge in needed {
            let from = &all.nodes[edge.from].name;
            let _ = writeln!(text, "    {} on {from}: {}", edge.kind.name(), edge.because);
        }
    }
}

fn stages(text: &mut String, features: &Features, placement: &Placement, chip: &Chip) {
    let fits = if placement.fits() { "fits" } else { "does not fit" };
    let _ = writeln!(
        text,
        "\nStages by dependencies alone: {} of the {} of a {} ({fits}); memory may take more.\n\
         Pipeline: {}{}, {:.1} ns at {} GHz.",
        placement.needed(),
        placement.available,
        chip.title(),
        plural(placement.cycles as usize, "cycle"),
        match placement.padding {
            0 => String::new(),
            padding => format!(" (at least: the compiler adds {padding} or more to a short egress)"),
        },
        f64::from(placement.cycles) / chip.clock_ghz,
        chip.clock_ghz
    );
    for (number, stage) in placement.stages.iter().enumerate() {
        let names: Vec<&str> = stage
            .nodes
            .iter()
            .map(|n| features.dependencies.nodes[*n].name.as_str())
            .collect();
        let class = match stage.dependency {
            _ if number == 0 => "first",
            Some(DependencyKind::Match) => "match dependent",
            Some(_) => "action dependent",
            None => "concurrent",
        };
        let extra = stage.tcam_cycles + stage.state_cycles;
        let extra = if extra > 0 {
            format!(", {extra} of them for TCAM and state")
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "  {number}: {} ({class}{extra}): {}",
            plural(stage.cycles as usize, "cycle"),
            names.join(", ")
        );
    }
    if placement.critical.len() > 1 {
        let names = placement
            .critical
            .iter()
            .map(|n| features.dependencies.nodes[*n].name.as_str());
        let _ = writeln!(text, "Critical path: {}", names.collect::<Vec<_>>().join(" → "));
    }
}
