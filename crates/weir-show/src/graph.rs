//! Pictures of a pipeline: parser states and tables and how control goes between them, as DOT for
//! Graphviz or as a self-contained SVG.

use crate::xml::escape;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use weir_ir::{BlockId, Body, Program, TableId, Terminator};

/// What is drawn as a box.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    State(String),
    Table(TableId),
    End(&'static str),
}

/// One block of the program, reduced to its boxes.
struct Panel {
    role: String,
    name: String,
    nodes: Vec<Node>,
    edges: BTreeSet<(usize, usize)>,
    layers: Vec<Vec<usize>>,
}

/// A line of text below the name of a table: how often it hit, say.
pub type Notes = BTreeMap<TableId, String>;

fn panel(program: &Program, index: usize) -> Panel {
    let block = &program.blocks[index];
    let body = &block.body;
    let mut nodes = Vec::new();
    let mut of_block: BTreeMap<BlockId, usize> = BTreeMap::new();
    for id in weir_ir::passes::reachable(body) {
        let b = &body.blocks[id];
        let node = match (&b.state, &b.terminator) {
            (Some(state), _) => Node::State(state.clone()),
            (None, Terminator::Lookup(l)) => Node::Table(l.table),
            (None, Terminator::Accept) => Node::End("accept"),
            (None, Terminator::Reject) => Node::End("reject"),
            _ => continue,
        };
        // A table that is applied at several places is one box.
        let place = nodes.iter().position(|n| *n == node).unwrap_or(nodes.len());
        if place == nodes.len() {
            nodes.push(node);
        }
        of_block.insert(id, place);
    }
    let mut edges = BTreeSet::new();
    for (&id, &from) in &of_block {
        for to in successors(body, id, &of_block) {
            if to != from {
                edges.insert((from, to));
            }
        }
    }
    let layers = layers(nodes.len(), &edges);
    Panel {
        role: block.role.clone(),
        name: block.name.clone(),
        nodes,
        edges,
        layers,
    }
}

/// The boxes that control can come to next.
fn successors(body: &Body, from: BlockId, of_block: &BTreeMap<BlockId, usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut work = body.blocks[from].terminator.targets();
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        match of_block.get(&id) {
            Some(&node) => {
                found.insert(node);
            }
            None => work.extend(body.blocks[id].terminator.targets()),
        }
    }
    found
}

/// Rows: each box below everything it comes after; edges that go back are ignored.
fn layers(count: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<Vec<usize>> {
    let mut depth = vec![0usize; count];
    // As many rounds as there can be rows; a cycle stops growing at the number of boxes.
    for _ in 0..count {
        let mut changed = false;
        for &(a, b) in edges {
            if depth[b] < depth[a] + 1 && depth[a] + 1 < count && !reaches(b, a, edges) {
                depth[b] = depth[a] + 1;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let rows = depth.iter().max().map_or(0, |m| m + 1);
    let mut layers = vec![Vec::new(); rows];
    for (node, d) in depth.into_iter().enumerate() {
        layers[d].push(node);
    }
    layers
}

fn reaches(from: usize, to: usize, edges: &BTreeSet<(usize, usize)>) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![from];
    while let Some(n) = work.pop() {
        if n == to {
            return true;
        }
        if seen.insert(n) {
            work.extend(edges.range((n, 0)..(n + 1, 0)).map(|&(_, b)| b));
        }
    }
    false
}

fn label(program: &Program, node: &Node) -> String {
    match node {
        Node::State(s) => s.clone(),
        Node::Table(t) => {
            let name = &program.tables[*t].name;
            name.split_once('.').map_or(name.clone(), |(_, n)| n.to_string())
        }
        Node::End(s) => (*s).to_string(),
    }
}

/// Text within the quotes of DOT.
fn in_quotes(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The pipeline as DOT.
pub fn dot(program: &Program) -> String {
    let mut out = String::from("digraph pipeline {\n  rankdir=TB;\n  node [fontname=\"sans-serif\"];\n");
    for index in 0..program.blocks.len() {
        let panel = panel(program, index);
        let _ = writeln!(
            out,
            "  subgraph cluster_{index} {{\n    label=\"{} ({})\";",
            panel.role,
            in_quotes(&panel.name)
        );
        for (i, node) in panel.nodes.iter().enumerate() {
            let shape = match node {
                Node::State(_) => "ellipse",
                Node::Table(_) => "box",
                Node::End(_) => "doublecircle",
            };
            let _ = writeln!(
                out,
                "    n{index}_{i} [label=\"{}\", shape={shape}];",
                in_quotes(&label(program, node))
            );
        }
        for (a, b) in &panel.edges {
            let _ = writeln!(out, "    n{index}_{a} -> n{index}_{b};");
        }
        out.push_str("  }\n");
    }
    out.push_str("}\n");
    out
}

const BOX_HEIGHT: f64 = 40.0;
const GAP_X: f64 = 18.0;
const GAP_Y: f64 = 34.0;
const MARGIN: f64 = 24.0;
const TITLE: f64 = 44.0;

fn box_width(text: &str, note: Option<&String>) -> f64 {
    let characters = text.chars().count().max(note.map_or(0, |n| n.chars().count()));
    (characters as f64 * 7.4 + 22.0).max(70.0)
}

struct Placed {
    x: f64,
    y: f64,
    width: f64,
}

fn place(program: &Program, panel: &Panel, notes: &Notes) -> (Vec<Placed>, f64, f64) {
    let note = |node: &Node| match node {
        Node::Table(t) => notes.get(t),
        _ => None,
    };
    let widths: Vec<f64> = panel
        .nodes
        .iter()
        .map(|n| box_width(&label(program, n), note(n)))
        .collect();
    let row_width =
        |row: &Vec<usize>| row.iter().map(|&n| widths[n]).sum::<f64>() + GAP_X * row.len().saturating_sub(1) as f64;
    let title_width = (panel.role.len().max(panel.name.len()) as f64) * 8.0;
    let width = panel
        .layers
        .iter()
        .map(row_width)
        .fold(title_width.max(110.0), f64::max);
    let mut placed: Vec<Placed> = panel
        .nodes
        .iter()
        .map(|_| Placed {
            x: 0.0,
            y: 0.0,
            width: 0.0,
        })
        .collect();
    for (r, row) in panel.layers.iter().enumerate() {
        let mut x = (width - row_width(row)) / 2.0;
        for &n in row {
            placed[n] = Placed {
                x,
                y: TITLE + r as f64 * (BOX_HEIGHT + GAP_Y),
                width: widths[n],
            };
            x += widths[n] + GAP_X;
        }
    }
    let height = TITLE + panel.layers.len() as f64 * (BOX_HEIGHT + GAP_Y);
    (placed, width, height)
}

/// The pipeline as SVG, the blocks from left to right; `notes` stand in the boxes of tables,
/// `footer` below.
pub fn svg(program: &Program, title: &str, notes: &Notes, footer: &[String]) -> String {
    let panels: Vec<Panel> = (0..program.blocks.len()).map(|i| panel(program, i)).collect();
    let laid: Vec<_> = panels.iter().map(|p| place(program, p, notes)).collect();
    let height = laid.iter().map(|(_, _, h)| *h).fold(120.0, f64::max);
    let total_width = laid.iter().map(|(_, w, _)| w + 2.0 * MARGIN + 20.0).sum::<f64>() + MARGIN;
    let top = 64.0;
    let total_height = top + height + 2.0 * MARGIN + 22.0 * footer.len() as f64 + 20.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total_width:.0}\" height=\"{total_height:.0}\" viewBox=\"0 0 {total_width:.0} {total_height:.0}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#667\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"36\" font-size=\"20\" font-weight=\"bold\" fill=\"#223\">{}</text>\n",
        escape(title)
    );
    let mut left = MARGIN;
    for (i, (panel, (placed, width, _))) in panels.iter().zip(&laid).enumerate() {
        draw_panel(&mut out, program, panel, placed, notes, (left, top), (*width, height));
        let right = left + width + 2.0 * MARGIN;
        if i + 1 < panels.len() {
            let y = top + 22.0;
            let _ = writeln!(
                out,
                "<path d=\"M{right:.1} {y:.1}h18\" stroke=\"#667\" stroke-width=\"2\" marker-end=\"url(#a)\"/>"
            );
        }
        left = right + 20.0;
    }
    for (i, line) in footer.iter().enumerate() {
        let y = top + height + 2.0 * MARGIN + 22.0 * (i + 1) as f64;
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{y:.1}\" fill=\"#334\">{}</text>",
            escape(line)
        );
    }
    out.push_str("</svg>\n");
    out
}

fn draw_panel(
    out: &mut String,
    program: &Program,
    panel: &Panel,
    placed: &[Placed],
    notes: &Notes,
    at: (f64, f64),
    size: (f64, f64),
) {
    let (left, top) = at;
    let (width, height) = (size.0 + 2.0 * MARGIN, size.1 + MARGIN);
    let _ = writeln!(
        out,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"10\" fill=\"#f6f7fb\" stroke=\"#c9cede\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" font-weight=\"bold\" fill=\"#223\">{}</text><text x=\"{:.1}\" y=\"{:.1}\" fill=\"#778\" font-size=\"11\">{}</text>",
        left + 14.0,
        top + 20.0,
        escape(&panel.role),
        left + 14.0,
        top + 35.0,
        escape(&panel.name)
    );
    let center = |n: usize| left + MARGIN + placed[n].x + placed[n].width / 2.0;
    let y_of = |n: usize| top + 6.0 + placed[n].y;
    for &(a, b) in &panel.edges {
        let (x1, y1, x2, y2) = (center(a), y_of(a) + BOX_HEIGHT, center(b), y_of(b));
        if y2 > y1 {
            let bend = (y2 - y1) / 2.0;
            let _ = writeln!(
                out,
                "<path d=\"M{x1:.1} {y1:.1}C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {:.1}\" fill=\"none\" stroke=\"#99a\" marker-end=\"url(#a)\"/>",
                y1 + bend,
                y2 - bend,
                y2 - 1.0
            );
        } else {
            // A loop goes round the side.
            let side = left + width - 8.0;
            let (y1, y2) = (y1 - BOX_HEIGHT / 2.0, y2 + BOX_HEIGHT / 2.0);
            let _ = writeln!(
                out,
                "<path d=\"M{x1:.1} {y1:.1}C{side:.1} {y1:.1} {side:.1} {y2:.1} {:.1} {y2:.1}\" fill=\"none\" stroke=\"#c96\" stroke-dasharray=\"4 3\" marker-end=\"url(#a)\"/>",
                x2 + placed[b].width / 2.0
            );
        }
    }
    for (n, node) in panel.nodes.iter().enumerate() {
        let (x, y, w) = (left + MARGIN + placed[n].x, y_of(n), placed[n].width);
        let (fill, stroke, radius) = match node {
            Node::State(_) => ("#e3f0ff", "#6a9bd8", 18),
            Node::Table(_) => ("#fff3d6", "#d8a846", 4),
            Node::End(_) => ("#e6f6e6", "#7ab87a", 18),
        };
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{BOX_HEIGHT}\" rx=\"{radius}\" fill=\"{fill}\" stroke=\"{stroke}\"/>"
        );
        let note = match node {
            Node::Table(t) => notes.get(t),
            _ => None,
        };
        let dy = if note.is_some() { 17.0 } else { 25.0 };
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#223\">{}</text>",
            x + w / 2.0,
            y + dy,
            escape(&label(program, node))
        );
        if let Some(note) = note {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#667\" font-size=\"11\">{}</text>",
                x + w / 2.0,
                y + 32.0,
                escape(note)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router() -> Program {
        let text = include_str!("../../../p4/programs/ipv4_router/ipv4_router.p4");
        let compilation = weir_compiler::compile_source(
            "ipv4_router.p4",
            text,
            &weir_compiler::Options::default(),
            weir_arch::targets(),
        );
        compilation.program.unwrap()
    }

    #[test]
    fn every_state_and_table_is_drawn_once() {
        let program = router();
        let picture = svg(&program, "router", &Notes::new(), &[]);
        for name in ["parse_ipv4_options", "ipv4_lpm", "neighbours", "port_macs"] {
            assert_eq!(picture.matches(&format!(">{name}<")).count(), 1, "{name}");
        }
        assert!(dot(&program).contains("label=\"ipv4_lpm\", shape=box"));
    }

    #[test]
    fn names_with_quotes_are_quoted_in_dot() {
        let mut program = router();
        for (_, table) in program.tables.iter_mut() {
            if table.name.ends_with("ipv4_lpm") {
                table.name = "RouterIngress.a\"b\\c".to_owned();
            }
        }
        assert!(dot(&program).contains("label=\"a\\\"b\\\\c\", shape=box"));
    }

    #[test]
    fn tables_stand_below_the_tables_before_them() {
        let program = router();
        let ingress = panel(&program, 2);
        let row = |name: &str| {
            ingress
                .layers
                .iter()
                .position(|l| l.iter().any(|&n| label(&program, &ingress.nodes[n]) == name))
                .unwrap()
        };
        assert!(row("own_macs") < row("ipv4_lpm"));
        assert!(row("ipv4_lpm") < row("neighbours"));
    }
}
