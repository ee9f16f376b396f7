//! How tables depend on those before them: match, action, successor, reverse match (Jose et al.,
//! "Compiling Packet Programs to Reconfigurable Switches", NSDI 2015, section 3.2).
//!
//! Statements of a control outside of tables are nodes, too: a Tofino executes them as tables
//! without keys. Variables that only the compiler knows are looked through: what a copy of a field
//! is matched with is the field.

mod code;

pub(super) use code::{action_operations, sites};

use super::Place;
use super::effects::Effects;
use super::operations::Operations;
use code::{Flow, Names, collect};
use serde::{Deserialize, Serialize};
use weir_ir::{Block, Program, VarId};

/// What executes: a table, or statements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// A table's name; of statements the source line.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Where it is applied.
    pub place: Place,
    /// Names of what it matches, the conditions around it included.
    pub matches: Vec<String>,
    /// Names of what its actions read.
    pub reads: Vec<String>,
    /// Names of what its actions write.
    pub writes: Vec<String>,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// Index into [`super::Features::tables`].
    Table(usize),
    /// Statements outside of tables, and what they do.
    Statements(Operations),
}

/// Why a node comes after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependencyKind {
    /// It writes what the other matches: the same stage will do.
    ReverseMatch,
    /// The other's outcome decides whether it executes: the same stage will do.
    Successor,
    /// It reads or writes in an action what the other writes: a later stage.
    Action,
    /// It matches what the other writes: a later stage, which waits for the other to end.
    Match,
}

impl DependencyKind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DependencyKind::ReverseMatch => "reverse match",
            DependencyKind::Successor => "successor",
            DependencyKind::Action => "action",
            DependencyKind::Match => "match",
        }
    }

    /// Whether the later one needs a later stage.
    #[must_use]
    pub fn needs_later_stage(self) -> bool {
        matches!(self, DependencyKind::Action | DependencyKind::Match)
    }
}

/// That a node depends on one before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The earlier node.
    pub from: usize,
    /// The later node.
    pub to: usize,
    /// The strongest reason.
    pub kind: DependencyKind,
    /// The variable that is the reason; of successors the earlier table.
    pub because: String,
}

/// All nodes in the order in which packets come to them, and their dependencies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Dependencies {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The edges, by their later nodes.
    pub edges: Vec<Edge>,
}

/// Finds the dependencies of a control.
pub(super) fn of(program: &Program, control: &Block, effects: &Effects, tables: &[Option<usize>]) -> Dependencies {
    let collected = collect(program, control, effects, tables);
    let names = Names::new(program, &control.body);
    let flow = Flow::of(&control.body);
    let mut edges = Vec::new();
    for (to, later) in collected.iter().enumerate() {
        for (from, earlier) in collected.iter().enumerate().take(to) {
            if !flow.precedes(earlier.at, later.at) {
                continue;
            }
            if let Some((kind, because)) = strongest(&|var| names.of(program, var), &flow, earlier, later) {
                edges.push(Edge {
                    from,
                    to,
                    kind,
                    because,
                });
            }
        }
    }
    let nodes = collected.into_iter().map(|c| c.into_node(program, &names)).collect();
    Dependencies { nodes, edges }
}

fn strongest(
    name: &dyn Fn(VarId) -> String,
    flow: &Flow,
    earlier: &code::Collected,
    later: &code::Collected,
) -> Option<(DependencyKind, String)> {
    let shared = |a: &std::collections::BTreeSet<VarId>, b: &std::collections::BTreeSet<VarId>| {
        a.intersection(b).next().map(|var| name(*var))
    };
    let conditions = later.conditions.iter().filter(|c| flow.precedes(earlier.at, c.at));
    let by_condition = conditions.clone().find_map(|c| shared(&earlier.writes, &c.reads));
    if let Some(var) = shared(&earlier.writes, &later.matches).or(by_condition) {
        return Some((DependencyKind::Match, var));
    }
    let by_action = shared(&earlier.writes, &later.reads).or_else(|| shared(&earlier.writes, &later.writes));
    if let Some(var) = by_action {
        return Some((DependencyKind::Action, var));
    }
    if conditions
        .clone()
        .any(|c| earlier.outcome.is_some() && c.outcomes.contains(&earlier.outcome))
    {
        return Some((DependencyKind::Successor, earlier.name.clone()));
    }
    shared(&later.writes, &earlier.matches).map(|var| (DependencyKind::ReverseMatch, var))
}
