//! Flowcharts of Mermaid as SVG, so that the site needs no script and no network.
//!
//! The grammar is what the pages use: `graph TD` or `graph LR`, nodes `id`, `id[label]` and
//! `id["label"]`, lists `a & b`, edges `-->` and `-->|label|`. Everything else is an error.
//!
//! The layout has layers: a node stands one layer after the last one with an edge to it. An edge
//! over several layers gets a bend in each, which takes part in the order of the layer.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Height of a box; width of a letter; space within boxes, and between them.
const HEIGHT: f64 = 30.0;
const LETTER: f64 = 7.4;
const PADDING: f64 = 12.0;
const GAP: f64 = 22.0;
/// How far each of two edges between the same nodes is from the middle.
const PAIR: f64 = 5.0;
/// Distance between layers, without labels.
const LAYER_GAP: f64 = 44.0;
/// Sweeps over the layers when order and places are improved.
const SWEEPS: usize = 12;

#[derive(Debug, Default)]
struct Graph {
    is_horizontal: bool,
    labels: Vec<String>,
    edges: Vec<Edge>,
}

#[derive(Debug)]
struct Edge {
    from: usize,
    to: usize,
    label: String,
}

/// Draws a flowchart.
pub(crate) fn svg(text: &str) -> Result<String> {
    let graph = parse(text)?;
    Ok(Layout::of(&graph).draw(&graph))
}

// ---- reading

fn parse(text: &str) -> Result<Graph> {
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let mut graph = Graph {
        is_horizontal: match lines.next() {
            Some("graph LR") => true,
            Some("graph TD") => false,
            first => bail!("a flowchart begins with `graph TD` or `graph LR`, not {first:?}"),
        },
        ..Graph::default()
    };
    let mut names = BTreeMap::new();
    for line in lines {
        statement(line, &mut graph, &mut names).with_context(|| format!("in `{line}`"))?;
    }
    Ok(graph)
}

/// `a & b -->|label| c --> d`
fn statement<'a>(line: &'a str, graph: &mut Graph, names: &mut BTreeMap<&'a str, usize>) -> Result<()> {
    let (mut from, mut rest) = group(line, graph, names)?;
    while !rest.is_empty() {
        rest = rest.strip_prefix("-->").context("an arrow is `-->`")?.trim_start();
        let mut label = "";
        if let Some(behind) = rest.strip_prefix('|') {
            (label, rest) = behind.split_once('|').context("a label ends with `|`")?;
        }
        let (to, behind) = group(rest.trim_start(), graph, names)?;
        for &a in &from {
            for &b in &to {
                if a == b {
                    bail!("an edge from a node to itself");
                }
                let label = label.to_owned();
                graph.edges.push(Edge { from: a, to: b, label });
            }
        }
        (from, rest) = (to, behind);
    }
    Ok(())
}

fn group<'a>(text: &'a str, graph: &mut Graph, names: &mut BTreeMap<&'a str, usize>) -> Result<(Vec<usize>, &'a str)> {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        let (index, behind) = node(rest, graph, names)?;
        found.push(index);
        rest = behind.trim_start();
        match rest.strip_prefix('&') {
            Some(behind) => rest = behind.trim_start(),
            None => return Ok((found, rest)),
        }
    }
}

fn node<'a>(text: &'a str, graph: &mut Graph, names: &mut BTreeMap<&'a str, usize>) -> Result<(usize, &'a str)> {
    let bytes = text.as_bytes();
    let is_name = |i: usize| {
        let is_dash = bytes[i] == b'-' && bytes.get(i + 1) != Some(&b'-');
        bytes[i].is_ascii_alphanumeric() || bytes[i] == b'_' || is_dash
    };
    let length = (0..bytes.len()).take_while(|&i| is_name(i)).count();
    if length == 0 {
        bail!("a node is missing at `{text}`");
    }
    let (name, mut rest) = text.split_at(length);
    let index = *names.entry(name).or_insert_with(|| {
        graph.labels.push(name.to_owned());
        graph.labels.len() - 1
    });
    if let Some(behind) = rest.strip_prefix('[') {
        let (label, behind) = behind.split_once(']').context("a label ends with `]`")?;
        graph.labels[index] = label.trim_matches('"').to_owned();
        rest = behind;
    }
    Ok((index, rest))
}

// ---- layout

/// A node, or the bend of an edge.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    layer: usize,
    /// Its size across the layers' direction, and its centre there.
    size: f64,
    centre: f64,
}

#[derive(Debug)]
struct Layout {
    places: Vec<Place>,
    /// The places of a layer, in order.
    layers: Vec<Vec<usize>>,
    /// The places of each edge, from the upper layer to the lower one.
    routes: Vec<Vec<usize>>,
    /// Where each layer begins and how thick it is.
    starts: Vec<f64>,
    thickness: Vec<f64>,
}

impl Layout {
    fn of(graph: &Graph) -> Layout {
        let layer_of = layer_numbers(graph);
        let mut layout = Layout {
            places: Vec::new(),
            layers: vec![Vec::new(); layer_of.iter().max().map_or(0, |m| m + 1)],
            routes: Vec::new(),
            starts: Vec::new(),
            thickness: Vec::new(),
        };
        for (label, &layer) in graph.labels.iter().zip(&layer_of) {
            let size = if graph.is_horizontal { HEIGHT } else { width(label) };
            layout.add(layer, size);
        }
        for edge in &graph.edges {
            let (upper, lower) = match layer_of[edge.from] < layer_of[edge.to] {
                true => (edge.from, edge.to),
                false => (edge.to, edge.from),
            };
            let mut route = vec![upper];
            for layer in layer_of[upper] + 1..layer_of[lower] {
                route.push(layout.add(layer, 6.0));
            }
            route.push(lower);
            layout.routes.push(route);
        }
        layout.arrange();
        layout.measure(graph);
        layout
    }

    fn add(&mut self, layer: usize, size: f64) -> usize {
        let index = self.places.len();
        let centre = self.layers[layer].len() as f64 * 100.0;
        self.places.push(Place { layer, size, centre });
        self.layers[layer].push(index);
        index
    }

    /// Orders the layers by the means of their neighbours, then moves places towards these means.
    fn arrange(&mut self) {
        let mut neighbours = vec![Vec::new(); self.places.len()];
        for route in &self.routes {
            for pair in route.windows(2) {
                neighbours[pair[0]].push(pair[1]);
                neighbours[pair[1]].push(pair[0]);
            }
        }
        for sweep in 0..2 * SWEEPS {
            let is_down = sweep % 2 == 0;
            for step in 0..self.layers.len() {
                let layer = if is_down { step } else { self.layers.len() - 1 - step };
                let mean = |layout: &Layout, place: usize| {
                    let towards = |n: &&usize| (layout.places[**n].layer < layer) == is_down;
                    let near: Vec<f64> = neighbours[place]
                        .iter()
                        .filter(|n| sweep >= SWEEPS || towards(n))
                        .map(|&n| layout.places[n].centre)
                        .collect();
                    match near.len() {
                        0 => layout.places[place].centre,
                        n => near.iter().sum::<f64>() / n as f64,
                    }
                };
                let mut row: Vec<(f64, usize)> = self.layers[layer].iter().map(|&p| (mean(self, p), p)).collect();
                if sweep < SWEEPS {
                    row.sort_by(|a, b| a.0.total_cmp(&b.0));
                }
                self.put(&row);
                self.layers[layer] = row.into_iter().map(|(_, place)| place).collect();
            }
        }
    }

    /// Puts a row near its desired centres, without overlaps.
    fn put(&mut self, row: &[(f64, usize)]) {
        let mut end = f64::NEG_INFINITY;
        let mut excess = 0.0;
        for &(desired, place) in row {
            let half = self.places[place].size / 2.0;
            let centre = desired.max(end + GAP + half);
            self.places[place].centre = centre;
            excess += centre - desired;
            end = centre + half;
        }
        let shift = excess / row.len().max(1) as f64;
        for &(_, place) in row {
            self.places[place].centre -= shift;
        }
    }

    /// Places the layers one after the other, with room for the labels of edges.
    fn measure(&mut self, graph: &Graph) {
        let mut start = 0.0;
        for layer in 0..self.layers.len() {
            let nodes = self.layers[layer].iter().filter_map(|&p| graph.labels.get(p));
            let widest = nodes.map(|l| width(l)).fold(0.0, f64::max);
            let thickness = if graph.is_horizontal { widest } else { HEIGHT };
            let labels = graph
                .edges
                .iter()
                .zip(&self.routes)
                .filter(|(edge, route)| !edge.label.is_empty() && self.places[route[0]].layer == layer);
            let label = labels.map(|(edge, _)| width(&edge.label)).fold(0.0, f64::max);
            self.starts.push(start);
            self.thickness.push(thickness);
            start += thickness
                + if graph.is_horizontal {
                    LAYER_GAP.max(label + 24.0)
                } else {
                    LAYER_GAP
                };
        }
        let first = self
            .places
            .iter()
            .map(|p| p.centre - p.size / 2.0)
            .fold(f64::INFINITY, f64::min);
        for place in &mut self.places {
            place.centre -= first;
        }
    }

    fn draw(&self, graph: &Graph) -> String {
        let along = self.starts.last().unwrap_or(&0.0) + self.thickness.last().unwrap_or(&0.0);
        let across = self.places.iter().map(|p| p.centre + p.size / 2.0).fold(0.0, f64::max);
        let point = |along: f64, across: f64| match graph.is_horizontal {
            true => (along, across),
            false => (across, along),
        };
        let (w, h) = point(along, across);
        let mut out = format!(
            "<svg viewBox=\"-4 -4 {:.0} {:.0}\" width=\"{:.0}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">\
             <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
             markerHeight=\"8\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
            w + 8.0,
            h + 8.0,
            w + 8.0
        );
        let mut labels = String::new();
        for (edge, route) in graph.edges.iter().zip(&self.routes) {
            // Two edges between the same nodes are beside each other.
            let is_pair = graph.edges.iter().any(|e| (e.from, e.to) == (edge.to, edge.from));
            let is_forward = route[0] == edge.from;
            let shift = match (is_pair, is_forward) {
                (false, _) => 0.0,
                (true, true) => -PAIR,
                (true, false) => PAIR,
            };
            let path = self.path(graph, route, shift, &point);
            let arrow = if is_forward { "marker-end" } else { "marker-start" };
            let _ = writeln!(out, "<path class=\"edge\" d=\"{path}\" {arrow}=\"url(#arrow)\"/>");
            if !edge.label.is_empty() {
                let (a, b) = (self.places[route[0]], self.places[route[1]]);
                let middle = (self.span(graph, route[0]).1 + self.span(graph, route[1]).0) / 2.0;
                let (x, y) = point(middle, (a.centre + b.centre) / 2.0 + 2.0 * shift);
                let text = escape(&edge.label);
                let _ = writeln!(
                    labels,
                    "<text class=\"label\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>",
                    y + 4.0
                );
            }
        }
        for (label, place) in graph.labels.iter().zip(&self.places) {
            let (x, y) = point(
                self.starts[place.layer] + self.thickness[place.layer] / 2.0,
                place.centre,
            );
            let w = width(label);
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{w:.1}\" height=\"{HEIGHT}\" rx=\"4\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                x - w / 2.0,
                y - HEIGHT / 2.0,
                y + 4.0,
                escape(label)
            );
        }
        out + &labels + "</svg>"
    }

    /// Where a place begins and ends along the layers. A bend is as thick as its layer.
    fn span(&self, graph: &Graph, place: usize) -> (f64, f64) {
        let layer = self.places[place].layer;
        let (start, thickness) = (self.starts[layer], self.thickness[layer]);
        let own = match graph.labels.get(place) {
            Some(label) if graph.is_horizontal => width(label),
            _ => thickness,
        };
        let middle = start + thickness / 2.0;
        (middle - own / 2.0, middle + own / 2.0)
    }

    /// The curve of an edge, from layer to layer.
    fn path(&self, graph: &Graph, route: &[usize], shift: f64, point: &impl Fn(f64, f64) -> (f64, f64)) -> String {
        let mut path = String::new();
        for (i, pair) in route.windows(2).enumerate() {
            let (from, to) = (self.span(graph, pair[0]).1, self.span(graph, pair[1]).0);
            let (a, b) = (self.places[pair[0]].centre + shift, self.places[pair[1]].centre + shift);
            let middle = (from + to) / 2.0;
            let (x, y) = point(from, a);
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
            let points = [point(middle, a), point(middle, b), point(to, b)];
            let points = points.map(|(x, y)| format!("{x:.1} {y:.1}"));
            let _ = write!(path, "C{}", points.join(","));
        }
        path
    }
}

/// The layer of each node: after all nodes with an edge to it, but for edges that close a cycle.
fn layer_numbers(graph: &Graph) -> Vec<usize> {
    let mut next = vec![Vec::new(); graph.labels.len()];
    for edge in &graph.edges {
        next[edge.from].push(edge.to);
    }
    let mut order = Vec::new();
    let mut is_seen = vec![false; next.len()];
    for root in 0..next.len() {
        finish(root, &next, &mut is_seen, &mut order);
    }
    order.reverse();
    let mut rank = vec![0; next.len()];
    for (position, &node) in order.iter().enumerate() {
        rank[node] = position;
    }
    let mut layer = vec![0; next.len()];
    for &node in &order {
        for &to in next[node].iter().filter(|&&to| rank[to] > rank[node]) {
            layer[to] = layer[to].max(layer[node] + 1);
        }
        // An edge back must not stay within a layer.
        for &to in next[node].iter().filter(|&&to| rank[to] < rank[node]) {
            layer[node] = layer[node].max(layer[to] + 1);
        }
    }
    layer
}

fn finish(node: usize, next: &[Vec<usize>], is_seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut is_seen[node], true) {
        return;
    }
    for &to in &next[node] {
        finish(to, next, is_seen, order);
    }
    order.push(node);
}

fn width(label: &str) -> f64 {
    label.chars().count() as f64 * LETTER + 2.0 * PADDING
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLE: &str = "graph LR\n  a[First] -->|one & two| b & c\n  b --> c-d[\"Last (one)\"] --> a\n  e\n";

    #[test]
    fn nodes_lists_labels_and_edges_are_read() {
        let graph = parse(CYCLE).expect("a graph");
        assert_eq!(graph.labels, ["First", "b", "c", "Last (one)", "e"]);
        let edges: Vec<_> = graph.edges.iter().map(|e| (e.from, e.to, e.label.as_str())).collect();
        assert_eq!(
            edges,
            [(0, 1, "one & two"), (0, 2, "one & two"), (1, 3, ""), (3, 0, "")]
        );
    }

    #[test]
    fn no_boxes_overlap_and_each_is_drawn() {
        let graph = parse(CYCLE).expect("a graph");
        let layout = Layout::of(&graph);
        for row in &layout.layers {
            for pair in row.windows(2) {
                let (a, b) = (layout.places[pair[0]], layout.places[pair[1]]);
                assert!(b.centre - a.centre >= (a.size + b.size) / 2.0, "{a:?} {b:?}");
            }
        }
        let svg = layout.draw(&graph);
        assert_eq!(svg.matches("<rect").count(), 5);
        assert_eq!(svg.matches("class=\"edge\"").count(), 4);
        assert!(svg.contains("one &amp; two"));
    }

    #[test]
    fn what_is_not_drawn_is_an_error() {
        for text in [
            "pie\n",
            "graph TD\n a -.-> b\n",
            "graph TD\n a --> a\n",
            "graph TD\n a -->|x b\n",
        ] {
            assert!(svg(text).is_err(), "{text}");
        }
    }
}
