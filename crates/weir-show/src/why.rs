//! The end of a trace in a few lines: what decided where the packet went.

use weir_interp::{NodeKind, TraceNode, TraceTree};
use weir_ir::Loc;

/// Scalars whose change decides where a packet goes.
const DECISIVE: &[&str] = &["egress_spec", "mcast_grp", "parser_error", "checksum_error"];

/// What decided, in order. `line` gives the text of a source line.
pub fn why(tree: &TraceTree, line: &impl Fn(Loc) -> Option<String>) -> Vec<String> {
    let nodes = tree.nodes();
    let mut facts = Vec::new();
    let mut condition = None;
    let mut stack: Vec<&TraceNode> = nodes.iter().rev().collect();
    while let Some(node) = stack.pop() {
        fact(node, line, &mut condition, &mut facts);
        stack.extend(node.children.iter().rev());
    }
    facts
}

fn place(node: &TraceNode) -> String {
    node.place
        .as_ref()
        .map_or(String::new(), |p| format!(" ({}:{})", p.file, p.line))
}

fn fact(
    node: &TraceNode,
    line: &impl Fn(Loc) -> Option<String>,
    condition: &mut Option<String>,
    facts: &mut Vec<String>,
) {
    match &node.event {
        NodeKind::Branch { taken: true } => {
            let source = line(node.loc).map(|l| {
                let code = l.trim().trim_start_matches("} else ").trim_end_matches('{');
                code.trim().to_string()
            });
            *condition = source.map(|s| format!("`{s}` held{}", place(node)));
        }
        NodeKind::ParserError { error } => facts.push(format!("parsing failed: {error}{}", place(node))),
        NodeKind::ParserEnd { accepted: false, error } => facts.push(format!("the parser rejected: {error}")),
        NodeKind::Table {
            table,
            hit,
            entry,
            action,
            note,
            ..
        } => {
            *condition = None;
            let how = match (hit, entry) {
                (true, Some(entry)) => format!("hit entry {} ({})", entry.handle, entry.matches.join(", ")),
                (true, None) => "hit".to_string(),
                (false, _) => format!("missed{}", note.as_ref().map_or(String::new(), |n| format!(" ({n})"))),
            };
            facts.push(format!("table {table} {how} and ran {action}"));
        }
        NodeKind::Set { variable, old, new } if DECISIVE.iter().any(|d| variable.ends_with(d)) => {
            facts.extend(condition.take());
            facts.push(format!("{variable} went from {old} to {new}{}", place(node)));
        }
        NodeKind::Fate { text, dropped: true } => facts.push(format!("so it was dropped: {text}")),
        NodeKind::Fate { text, dropped: false } => facts.push(format!("so it left: {text}")),
        _ => {}
    }
}
