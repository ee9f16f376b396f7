//! Programs and traces for people: pictures of a pipeline, and what a packet met as text.
//!
//! [`graph`] draws parser states and tables as DOT or SVG. [`render`] writes a trace with the
//! source lines that [`lines::Lines`] finds, and the decisions in short ([`why`]).
//!
//! This crate runs no packet, and reads and writes no file.
#![forbid(unsafe_code)]

pub mod graph;
pub mod lines;
pub mod why;
pub mod xml;

use lines::Lines;
use weir_interp::{RenderOptions, TraceTree};
use weir_ir::Loc;

/// A trace as text, with the source lines that are known.
#[must_use]
pub fn render(tree: &TraceTree, lines: &Lines, colors: bool) -> String {
    let line = |loc: Loc| lines.get(tree.program(), loc);
    let mut text = tree.render(RenderOptions { colors, source: true }, line);
    text.push_str("why:\n");
    for fact in why::why(tree, &line) {
        text.push_str(&format!("  {fact}\n"));
    }
    text
}
