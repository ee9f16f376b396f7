//! Traces for people: indented lines with the source beside them.

use crate::tree::{NamedValue, NodeKind, TraceNode, TraceTree};
use std::fmt::Write;
use weir_ir::Loc;

/// How a trace is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderOptions {
    /// With ANSI colours.
    pub colors: bool,
    /// With the text of source lines, where the caller has it.
    pub source: bool,
}

impl Default for RenderOptions {
    fn default() -> Self {
        RenderOptions {
            colors: false,
            source: true,
        }
    }
}

const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";
/// Column at which places begin.
const PLACE_COLUMN: usize = 72;

impl TraceTree {
    /// The trees as text. `line` gives the text of a source line; it may know none.
    pub fn render(&self, options: RenderOptions, line: impl Fn(Loc) -> Option<String>) -> String {
        let mut out = String::new();
        let nodes = self.nodes();
        // A stack instead of recursion: the depth is the user's.
        let mut stack: Vec<(usize, &TraceNode)> = nodes.iter().rev().map(|n| (0, n)).collect();
        while let Some((depth, node)) = stack.pop() {
            render_line(&mut out, depth, node, options, &line);
            stack.extend(node.children.iter().rev().map(|c| (depth + 1, c)));
        }
        out
    }
}

fn render_line(
    out: &mut String,
    depth: usize,
    node: &TraceNode,
    options: RenderOptions,
    line: &impl Fn(Loc) -> Option<String>,
) {
    let (color, text) = describe(&node.event);
    let indent = "  ".repeat(depth);
    let (on, off) = if options.colors { (color, RESET) } else { ("", "") };
    let _ = write!(out, "{indent}{on}{text}{off}");
    if let Some(place) = &node.place {
        let used = indent.len() + text.chars().count();
        let padding = " ".repeat(PLACE_COLUMN.saturating_sub(used).max(2));
        let (on, off) = if options.colors { (DIM, RESET) } else { ("", "") };
        let file = place.file.rsplit('/').next().unwrap_or("");
        let _ = write!(out, "{padding}{on}{file}:{}:{}", place.line, place.column);
        if options.source
            && let Some(source) = line(node.loc)
        {
            let _ = write!(out, "  | {}", source.trim());
        }
        out.push_str(off);
    }
    out.push('\n');
}

fn values(values: &[NamedValue]) -> String {
    values
        .iter()
        .map(|v| format!("{}={}", v.name, v.value))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Colour and text of a node.
fn describe(event: &NodeKind) -> (&'static str, String) {
    match event {
        NodeKind::Packet { what } => (BOLD, what.clone()),
        NodeKind::Block { role, name } => (BOLD, format!("{role} {name}")),
        NodeKind::State { name } => (BOLD, format!("state {name}")),
        NodeKind::Extract { header, bits, fields } => {
            ("", format!("extract {header} ({bits} bits): {}", values(fields)))
        }
        NodeKind::ParserError { error } => (RED, format!("error.{error}")),
        NodeKind::Lookahead { value } => ("", format!("lookahead {value}")),
        NodeKind::Advance { bits } => ("", format!("advance {bits} bits")),
        NodeKind::Select { keys, case, cases } => ("", select_text(&keys.join(", "), *case, *cases)),
        NodeKind::Branch { taken } => ("", format!("if: {taken}")),
        NodeKind::Switch { value, case } => (
            "",
            case.map_or_else(
                || format!("switch {value}: default"),
                |c| format!("switch {value}: case {}", c + 1),
            ),
        ),
        NodeKind::Table { .. } => table_text(event),
        NodeKind::Action { name } => ("", format!("action {name}")),
        NodeKind::Body { name } => ("", format!("in {name}")),
        NodeKind::Extern { .. } => extern_text(event),
        NodeKind::Set { variable, old, new } => ("", format!("{variable}: {old} -> {new}")),
        NodeKind::Header { header, valid } => ("", format!("{header}: {}", if *valid { "valid" } else { "invalid" })),
        NodeKind::Emit { header, bits } => ("", format!("emit {header} ({bits} bits)")),
        NodeKind::ParserEnd { accepted: true, .. } => (GREEN, "accept".to_owned()),
        NodeKind::ParserEnd { error, .. } => (YELLOW, format!("reject: error.{error}")),
        NodeKind::Stopped { reason } => (RED, format!("stopped: {reason}")),
        NodeKind::Note { text } => ("", text.clone()),
        NodeKind::Fate { text, dropped: true } => (RED, format!("dropped: {text}")),
        NodeKind::Fate { text, .. } => (GREEN, format!("=> {text}")),
    }
}

fn select_text(keys: &str, case: Option<usize>, cases: usize) -> String {
    match case {
        Some(case) => format!("select ({keys}): case {} of {cases}", case + 1),
        None => format!("select ({keys}): none of {cases} cases"),
    }
}

fn table_text(event: &NodeKind) -> (&'static str, String) {
    let NodeKind::Table {
        table,
        keys,
        hit,
        entry,
        action,
        arguments,
        note,
    } = event
    else {
        return ("", String::new());
    };
    let mut text = format!("table {table} [{}]: ", values(keys));
    match entry {
        Some(e) => {
            let _ = write!(text, "hit entry {} ({}", e.handle, e.matches.join(", "));
            if e.priority > 0 {
                let _ = write!(text, ", priority {}", e.priority);
            }
            text.push(')');
        }
        None => text.push_str(if *hit { "hit" } else { "miss" }),
    }
    let _ = write!(text, " -> {action}({})", values(arguments));
    if let Some(note) = note {
        let _ = write!(text, "; {note}");
    }
    (if *hit { GREEN } else { YELLOW }, text)
}

fn extern_text(event: &NodeKind) -> (&'static str, String) {
    let NodeKind::Extern {
        name,
        arguments,
        results,
        aborted,
    } = event
    else {
        return ("", String::new());
    };
    let arguments: Vec<_> = arguments
        .iter()
        .map(|a| match &a.after {
            Some(after) => format!("{}: {} -> {after}", a.name, a.before),
            None => format!("{}: {}", a.name, a.before),
        })
        .collect();
    let mut text = format!("{name}({})", arguments.join(", "));
    if !results.is_empty() {
        let _ = write!(text, " = {}", results.join(", "));
    }
    if *aborted {
        text.push_str(" stops the packet");
    }
    (if *aborted { RED } else { "" }, text)
}
