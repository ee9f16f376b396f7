//! The table dependency graph, laid out in stages, as SVG.

use crate::features::{Chip, DependencyKind, Features, NodeKind, Placement};
use std::fmt::Write;

const COLUMN: f64 = 210.0;
const ROW: f64 = 58.0;
const BOX_WIDTH: f64 = 150.0;
const BOX_HEIGHT: f64 = 36.0;
const TOP: f64 = 84.0;
const LEFT: f64 = 24.0;
/// Characters of a name that fit in a box.
const NAME: usize = 22;

/// A picture: a column per stage, a box per table or group of statements, the critical path bold.
#[must_use]
pub fn svg(features: &Features, chip: &Chip, title: &str) -> String {
    let placement = features.placement(chip);
    let rows = placement.stages.iter().map(|s| s.nodes.len()).max().unwrap_or(0).max(1);
    let width = LEFT * 2.0 + COLUMN * placement.stages.len().max(2) as f64;
    let height = TOP + ROW * rows as f64 + 60.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{}</text>\n\
         <text x=\"{LEFT}\" y=\"44\" fill=\"#57606a\">{} of {} stages of a {} by dependencies alone; {} cycles, {:.1} ns</text>\n",
        escape(title),
        placement.needed(),
        placement.available,
        chip.title(),
        placement.cycles,
        f64::from(placement.cycles) / chip.clock_ghz
    );
    let places = places(features, &placement);
    headings(&mut out, &placement);
    edges(&mut out, features, &placement, &places);
    boxes(&mut out, features, &placement, &places);
    legend(&mut out, height);
    out.push_str("</svg>\n");
    out
}

/// The upper left corner of each node's box.
fn places(features: &Features, placement: &Placement) -> Vec<(f64, f64)> {
    let mut places = vec![(0.0, 0.0); features.dependencies.nodes.len()];
    for (column, stage) in placement.stages.iter().enumerate() {
        for (row, node) in stage.nodes.iter().enumerate() {
            places[*node] = (LEFT + COLUMN * column as f64, TOP + ROW * row as f64);
        }
    }
    places
}

fn headings(out: &mut String, placement: &Placement) {
    for (column, stage) in placement.stages.iter().enumerate() {
        let class = match stage.dependency {
            _ if column == 0 => "first",
            Some(DependencyKind::Match) => "match dependent",
            Some(_) => "action dependent",
            None => "concurrent",
        };
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"70\" fill=\"#57606a\">stage {column}, {class}, {} cycles</text>",
            LEFT + COLUMN * column as f64,
            stage.cycles
        );
    }
}

fn is_critical(placement: &Placement, from: usize, to: usize) -> bool {
    placement.critical.windows(2).any(|pair| pair == [from, to])
}

fn edges(out: &mut String, features: &Features, placement: &Placement, places: &[(f64, f64)]) {
    for edge in features
        .dependencies
        .edges
        .iter()
        .filter(|e| e.kind.needs_later_stage())
    {
        let ((x1, y1), (x2, y2)) = (places[edge.from], places[edge.to]);
        let (colour, _) = style(edge.kind);
        let thickness = if is_critical(placement, edge.from, edge.to) {
            3.5
        } else {
            1.2
        };
        let (begin, middle) = (x1 + BOX_WIDTH, BOX_HEIGHT / 2.0);
        let bend = (x2 - begin) / 2.0;
        let _ = writeln!(
            out,
            "<path d=\"M{begin},{} C{},{} {},{} {x2},{}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"{thickness}\"><title>{}: {}</title></path>",
            y1 + middle,
            begin + bend,
            y1 + middle,
            x2 - bend,
            y2 + middle,
            y2 + middle,
            edge.kind.name(),
            escape(&edge.because)
        );
    }
}

fn boxes(out: &mut String, features: &Features, placement: &Placement, places: &[(f64, f64)]) {
    for (i, node) in features.dependencies.nodes.iter().enumerate() {
        let (x, y) = places[i];
        let (fill, detail) = match &node.kind {
            NodeKind::Table(at) => {
                let keys: Vec<String> = features.tables[*at]
                    .keys
                    .iter()
                    .map(|k| format!("{}/{}", k.width, k.kind))
                    .collect();
                ("#ddf4ff", keys.join(" "))
            }
            NodeKind::Statements(_) => ("#f6f8fa", "statements".to_owned()),
        };
        let border = if placement.critical.contains(&i) { 2.5 } else { 1.0 };
        let short = |text: &str| -> String {
            let cut: String = text
                .chars()
                .rev()
                .take(NAME)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect();
            if cut.len() < text.len() {
                format!("…{cut}")
            } else {
                cut
            }
        };
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"4\" fill=\"{fill}\" \
             stroke=\"#24292f\" stroke-width=\"{border}\"><title>{} ({}) matches {}; writes {}</title></rect>\n\
             <text x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#57606a\">{}</text>",
            escape(&node.name),
            escape(&node.place.to_string()),
            escape(&node.matches.join(", ")),
            escape(&node.writes.join(", ")),
            x + 6.0,
            y + 15.0,
            escape(&short(&node.name)),
            x + 6.0,
            y + 29.0,
            escape(&short(&detail))
        );
    }
}

fn style(kind: DependencyKind) -> (&'static str, &'static str) {
    match kind {
        DependencyKind::Match => ("#d1242f", "match"),
        DependencyKind::Action => ("#1f6feb", "action"),
        DependencyKind::Successor | DependencyKind::ReverseMatch => ("#8c959f", "same stage"),
    }
}

fn legend(out: &mut String, height: f64) {
    for (i, kind) in [DependencyKind::Match, DependencyKind::Action].into_iter().enumerate() {
        let (colour, name) = style(kind);
        let x = LEFT + 190.0 * i as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{}\" width=\"14\" height=\"4\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\">{name} dependency</text>",
            height - 24.0,
            x + 20.0,
            height - 18.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\">bold: critical path</text>",
        LEFT + 380.0,
        height - 18.0
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
