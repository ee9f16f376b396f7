//! `weir rina simulate`: how fast networks converge in virtual time, and what it costs.

use super::arguments::{GraphChoice, SimulateArguments};
use crate::bench::{Line, Plot};
use crate::int::table;
use crate::output::Messages;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use weir_ipcp::sim::convergence::{self, Convergence, Graph};
use weir_store::Rows;

/// A network and its memory.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Measured {
    #[serde(flatten)]
    convergence: Convergence,
    /// Resident memory of a router once its network has converged, in kB (1000 bytes); 0 where the
    /// system does not say.
    memory_kb: f64,
}

/// Measures, prints, and draws.
pub fn simulate(arguments: &SimulateArguments, messages: &Messages) -> Result<u8> {
    let graphs: &[Graph] = match arguments.graph {
        Some(GraphChoice::FatTree) => &[Graph::FatTree],
        Some(GraphChoice::Random) => &[Graph::Random],
        None => &[Graph::FatTree, Graph::Random],
    };
    for graph in graphs {
        for routers in &arguments.routers {
            ensure!(
                *routers >= graph.fewest(),
                "--routers: expected at least {} for this graph, found {routers}",
                graph.fewest()
            );
        }
    }
    let cases = graphs
        .iter()
        .flat_map(|graph| arguments.routers.iter().map(move |n| (*graph, *n)));
    let cases: Vec<(Graph, usize)> = cases.collect();
    if let Some(folder) = &arguments.plots {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut all = Vec::new();
    for (graph, routers) in &cases {
        // A process each: memory that an earlier network has left is not counted.
        all.push(match cases.len() {
            1 => measure(*graph, *routers),
            _ => {
                messages.line(format!("{}: {routers} routers", name(*graph)));
                in_child(*graph, *routers)?
            }
        });
    }
    let mut out = crate::output::stdout();
    if arguments.json {
        writeln!(out, "{:#}", serde_json::to_value(&all)?)?;
    } else {
        write!(out, "{}", table::text(&rows(&all)?))?;
    }
    if let Some(folder) = &arguments.plots {
        draw(&all, folder)?;
    }
    Ok(0)
}

fn name(graph: Graph) -> &'static str {
    match graph {
        Graph::FatTree => "fat-tree",
        Graph::Random => "random",
    }
}

fn measure(graph: Graph, routers: usize) -> Measured {
    let before = resident().unwrap_or(0);
    let mut after = before;
    let convergence = convergence::measure(graph, routers, || after = resident().unwrap_or(0));
    Measured {
        convergence,
        memory_kb: after.saturating_sub(before) as f64 / 1000.0 / convergence.routers as f64,
    }
}

fn in_child(graph: Graph, routers: usize) -> Result<Measured> {
    let output = crate::children::weir()?
        .args(["rina", "simulate", "--json", "--graph", name(graph), "--routers"])
        .arg(routers.to_string())
        .output()
        .context("cannot start a simulation")?;
    ensure!(
        output.status.success(),
        "the simulation of {routers} routers has failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut all: Vec<Measured> = serde_json::from_slice(&output.stdout).context("a simulation's result")?;
    all.pop().context("a simulation without a result")
}

/// Resident memory of this process, in bytes.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn rows(all: &[Measured]) -> Result<Rows> {
    let mut rows = Rows {
        columns: Vec::new(),
        rows: Vec::new(),
        is_cut: false,
    };
    let shown = |value: &Value| match value.as_f64() {
        Some(number) if value.is_f64() => Value::from((number * 10.0).round() / 10.0),
        _ => value.clone(),
    };
    for measured in all {
        let Value::Object(fields) = serde_json::to_value(measured)? else {
            continue;
        };
        rows.columns = fields.keys().cloned().collect();
        rows.rows.push(fields.values().map(shown).collect());
    }
    Ok(rows)
}

/// A value of a network.
type Pick = fn(&Measured) -> f64;

/// A plot over the number of routers.
struct Figure {
    file: &'static str,
    title: &'static str,
    unit: &'static str,
    /// What is drawn of each graph, with a name for the legend.
    values: &'static [(&'static str, Pick)],
}

const FIGURES: [Figure; 4] = [
    Figure {
        file: "convergence.svg",
        title: "Until each router has a route to all others",
        unit: "ms",
        values: &[
            ("start", |m| m.convergence.start_ms),
            ("failure", |m| m.convergence.failure_ms),
        ],
    },
    Figure {
        file: "messages.svg",
        title: "Messages of a router at the start",
        unit: "messages",
        values: &[("", |m| m.convergence.messages as f64)],
    },
    Figure {
        file: "memory.svg",
        title: "Memory of a router",
        unit: "kB",
        values: &[("", |m| m.memory_kb)],
    },
    Figure {
        file: "processor.svg",
        title: "Time of the processor for the start of a router",
        unit: "ms",
        values: &[("", |m| m.convergence.cpu_ms)],
    },
];

/// Draws all plots.
fn draw(all: &[Measured], folder: &Path) -> Result<()> {
    for figure in &FIGURES {
        let mut lines = Vec::new();
        for graph in [Graph::FatTree, Graph::Random] {
            for (what, value) in figure.values {
                let of_graph = all.iter().filter(|m| m.convergence.graph == graph);
                let points: Vec<(f64, f64)> = of_graph.map(|m| (m.convergence.routers as f64, value(m))).collect();
                if !points.is_empty() {
                    lines.push(Line::new(format!("{} {what}", name(graph)).trim_end(), points));
                }
            }
        }
        let plot = Plot {
            title: figure.title.to_owned(),
            x: "routers".to_owned(),
            y: figure.unit.to_owned(),
            lines,
        };
        weir_files::write(&folder.join(figure.file), plot.svg().as_bytes())?;
    }
    Ok(())
}
