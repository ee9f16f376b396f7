//! A fabric as a picture (SVG).

use super::topology::{Role, Topology};
use super::wire::Wire;
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

const COLUMN: f64 = 128.0;
const ROW: f64 = 120.0;
const BOX: (f64, f64) = (112.0, 44.0);

/// Draws it: rows of nodes with their addresses, and links, all in the box of their DIF.
pub fn svg(topology: &Topology, statuses: &[Option<Value>], wires: &[Arc<Wire>]) -> String {
    let places = places(topology);
    let width = places.iter().map(|place| place.0).fold(0.0, f64::max) + COLUMN;
    let height = places.iter().map(|place| place.1).fold(0.0, f64::max) + BOX.1;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect x=\"6\" y=\"6\" width=\"{}\" height=\"{}\" rx=\"14\" fill=\"#f4f7fb\" stroke=\"#8aa4c0\"/>\n<text x=\"18\" y=\"26\" fill=\"#38506b\">DIF {}: {} members, {} links (each a shim DIF)</text>\n",
        width - 12.0,
        height - 12.0,
        topology.dif,
        topology.nodes.len(),
        topology.links.len()
    );
    for (link, wire) in topology.links.iter().zip(wires) {
        let [(x1, y1), (x2, y2)] = [places[link[0].node], places[link[1].node]];
        let is_dead = link
            .iter()
            .any(|end| statuses.get(end.node).is_none_or(Option::is_none));
        let (colour, dash) = match (wire.is_cut(), is_dead) {
            (true, _) => ("#c0392b", "6 5"),
            (false, true) => ("#b9c4cf", "2 4"),
            (false, false) => ("#5b7a99", "none"),
        };
        let counters = wire.counters();
        let _ = writeln!(
            svg,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"><title>{} - {}: {} frames carried, {} lost</title></line>",
            topology.nodes[link[0].node].name, topology.nodes[link[1].node].name, counters.carried, counters.lost
        );
    }
    for ((node, place), status) in topology.nodes.iter().zip(&places).zip(statuses) {
        let (x, y) = (place.0 - BOX.0 / 2.0, place.1 - BOX.1 / 2.0);
        let radius = match node.role {
            Role::Router => 4,
            Role::Host | Role::Socket => 22,
        };
        let number = |name: &str| {
            status
                .as_ref()
                .and_then(|status| status.get(name))
                .and_then(Value::as_u64)
        };
        let (fill, line) = match (number("address"), number("routes")) {
            (Some(address), Some(routes)) => ("#ffffff", format!("address {address}, {routes} routes")),
            _ => ("#f2c9c4", "dead".to_owned()),
        };
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"{radius}\" fill=\"{fill}\" stroke=\"#38506b\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text><text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"9\">{line}</text>",
            BOX.0,
            BOX.1,
            place.0,
            place.1 - 3.0,
            node.name,
            place.0,
            place.1 + 13.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The centre of each node: rows centred above each other.
fn places(topology: &Topology) -> Vec<(f64, f64)> {
    let in_row = |row: usize| topology.nodes.iter().filter(|node| node.row == row).count();
    let rows: Vec<usize> = (0..3).filter(|row| in_row(*row) > 0).collect();
    let widest = rows.iter().map(|row| in_row(*row)).max().unwrap_or(1) as f64;
    let mut used = [0.0; 3];
    let place = |node: &super::topology::Node| {
        let height = rows.iter().position(|row| *row == node.row).unwrap_or(0) as f64;
        let margin = (widest - in_row(node.row) as f64) / 2.0;
        let at = used[node.row] + margin;
        used[node.row] += 1.0;
        (COLUMN * (at + 0.75), ROW * (height + 0.7))
    };
    topology.nodes.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_nodes_and_links_are_drawn_and_the_dead_are_named() {
        let topology = Topology::parse("[leaf_spine]\nspines = 2\nleaves = 4\nhosts_per_leaf = 1\n").unwrap();
        let wires: Vec<Arc<Wire>> = topology.links.iter().map(|_| Arc::new(Wire::new().unwrap())).collect();
        wires[0].set_cut(true);
        let mut statuses = vec![Some(serde_json::json!({ "address": 7, "routes": 9 })); 10];
        statuses[0] = None;
        let svg = svg(&topology, &statuses, &wires);
        assert_eq!(svg.matches("<line ").count(), 12);
        assert_eq!(svg.matches("address 7, 9 routes").count(), 9);
        assert_eq!((svg.matches(">dead<").count(), svg.matches("#c0392b").count()), (1, 1));
    }
}
