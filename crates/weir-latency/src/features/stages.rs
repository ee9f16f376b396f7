//! Tables laid out in the stages of a chip, by their dependencies alone, and what the stages cost.

use super::block::Gress;
use super::dependency::{Dependencies, DependencyKind, NodeKind};
use super::tables::{StatefulKind, TableFeatures};
use serde::{Deserialize, Serialize};

/// What is known of a chip's match-action pipeline. Cycles are from the assembler of p4c's Tofino
/// back end (backends/tofino/bf-asm, commit 34b86e9).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Chip {
    /// Its name in models: `tofino`, `tofino2`.
    pub name: &'static str,
    /// Stages of a pipeline.
    pub stages: u32,
    /// Cycles of a stage that matches what one before it has written.
    pub match_dependent: u32,
    /// Cycles that a stage adds whose actions use what one before it has written.
    pub action_dependent: u32,
    /// Cycles that any other stage adds.
    pub concurrent: u32,
    /// Cycles between the two halves of the pipeline.
    pub corner_turn: u32,
    /// Cycles more where a stage uses a TCAM or a wide selector.
    pub tcam: u32,
    /// Cycles more where it uses a selector.
    pub selector: u32,
    /// Cycles more where it uses a register.
    pub stateful: u32,
    /// Cycles more where it uses a low-pass filter or RED.
    pub low_pass_filter: u32,
    /// Cycles that the compiler pads an egress to.
    pub least_egress: u32,
    /// Clock in GHz.
    pub clock_ghz: f64,
}

impl Chip {
    /// Its name for people.
    #[must_use]
    pub fn title(&self) -> &'static str {
        if self.name == Chip::TOFINO2.name {
            "Tofino 2"
        } else {
            "Tofino"
        }
    }

    /// Tofino.
    pub const TOFINO: Chip = Chip {
        name: "tofino",
        stages: 12,
        match_dependent: 20,
        action_dependent: 2,
        concurrent: 1,
        corner_turn: 4,
        tcam: 2,
        selector: 8,
        stateful: 4,
        low_pass_filter: 4,
        least_egress: 160,
        clock_ghz: 1.22,
    };
    /// Tofino 2. It has no concurrent stages.
    pub const TOFINO2: Chip = Chip {
        name: "tofino2",
        stages: 20,
        match_dependent: 23,
        concurrent: 2,
        corner_turn: 0,
        least_egress: 0,
        clock_ghz: 1.35,
        ..Chip::TOFINO
    };

    /// The chip of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Chip> {
        [Chip::TOFINO, Chip::TOFINO2].into_iter().find(|chip| chip.name == name)
    }
}

/// A stage with what is in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Nodes of [`Dependencies`].
    pub nodes: Vec<usize>,
    /// How it depends on those before it; `None`: not, or it is the first.
    pub dependency: Option<DependencyKind>,
    /// Cycles that it adds to the pipeline, extras included.
    pub cycles: u32,
    /// Cycles of these because of a TCAM.
    pub tcam_cycles: u32,
    /// Cycles of these because of a selector, a register or a filter.
    pub state_cycles: u32,
}

/// A layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The stages that hold something.
    pub stages: Vec<Stage>,
    /// Stages of the chip.
    pub available: u32,
    /// Cycles of the whole pipeline, empty stages and padding included.
    pub cycles: u32,
    /// Cycles of these that the compiler adds to an egress.
    #[serde(default)]
    pub padding: u32,
    /// Cycles of these because of TCAMs.
    pub tcam_cycles: u32,
    /// Cycles of these because of selectors, registers and filters.
    pub state_cycles: u32,
    /// Nodes of a longest chain of dependencies, in order.
    pub critical: Vec<usize>,
}

impl Placement {
    /// Lays the nodes out: each in the first stage that its dependencies allow. Memory and other
    /// limits of a stage are not looked at, so a compiler may need more stages; it may need fewer
    /// where it removes code without effect. An egress needs [`Placement::padded`], too.
    #[must_use]
    pub fn of(dependencies: &Dependencies, tables: &[TableFeatures], chip: &Chip) -> Self {
        let count = dependencies.nodes.len();
        let mut stage_of = vec![0_usize; count];
        let mut because: Vec<Option<usize>> = vec![None; count];
        for edge in &dependencies.edges {
            let least = stage_of[edge.from] + usize::from(edge.kind.needs_later_stage());
            if least > stage_of[edge.to] {
                stage_of[edge.to] = least;
                because[edge.to] = Some(edge.from);
            }
        }
        let needed = stage_of.iter().max().map_or(0, |last| last + 1);
        let mut stages: Vec<Stage> = (0..needed).map(|_| Stage::default()).collect();
        for (node, stage) in stage_of.iter().enumerate() {
            stages[*stage].nodes.push(node);
        }
        classify(dependencies, &stage_of, &mut stages);
        cost(dependencies, tables, chip, &mut stages);
        let empty = (chip.stages as usize).saturating_sub(needed) as u32;
        let first = if needed == 0 { chip.match_dependent } else { 0 };
        let empty = empty - u32::from(needed == 0);
        let filled: u32 = stages.iter().map(|s| s.cycles).sum();
        Placement {
            available: chip.stages,
            cycles: filled + first + empty * chip.concurrent + chip.corner_turn,
            padding: 0,
            tcam_cycles: stages.iter().map(|s| s.tcam_cycles).sum(),
            state_cycles: stages.iter().map(|s| s.state_cycles).sum(),
            critical: critical(&stage_of, &because),
            stages,
        }
    }

    /// With the cycles that the compiler adds to a short pipeline of this direction.
    #[must_use]
    pub fn padded(mut self, gress: Gress, chip: &Chip) -> Self {
        self.padding = match gress {
            Gress::Ingress => 0,
            Gress::Egress => chip.least_egress.saturating_sub(self.cycles),
        };
        self.cycles += self.padding;
        self
    }

    /// Stages that hold something.
    #[must_use]
    pub fn needed(&self) -> u32 {
        self.stages.len() as u32
    }

    /// Whether the chip has enough of them.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.needed() <= self.available
    }
}

/// A stage is match dependent where it matches what was written since the last match-dependent
/// stage, else action dependent where its actions use that.
fn classify(dependencies: &Dependencies, stage_of: &[usize], stages: &mut [Stage]) {
    let mut since = 0;
    for (at, stage) in stages.iter_mut().enumerate().skip(1) {
        let edges = dependencies
            .edges
            .iter()
            .filter(|edge| stage_of[edge.to] == at && stage_of[edge.from] < at && stage_of[edge.from] >= since);
        let strongest = edges
            .map(|edge| edge.kind)
            .filter(|kind| kind.needs_later_stage())
            .max();
        stage.dependency = strongest;
        if strongest == Some(DependencyKind::Match) {
            since = at;
        }
    }
}

/// Cycles of each stage. What a stage needs beyond the base delays all stages that run with it, so
/// it counts once for each match-dependent stage together with those after it.
fn cost(dependencies: &Dependencies, tables: &[TableFeatures], chip: &Chip, stages: &mut [Stage]) {
    let mut leader = 0;
    let mut extra = Extra::default();
    for at in 0..stages.len() {
        let is_leader = at == 0 || stages[at].dependency == Some(DependencyKind::Match);
        if is_leader {
            (leader, extra) = (at, Extra::default());
        }
        stages[at].cycles = match stages[at].dependency {
            _ if is_leader => chip.match_dependent,
            Some(DependencyKind::Action) => chip.action_dependent,
            _ => chip.concurrent,
        };
        extra = stages[at].nodes.iter().fold(extra, |extra, node| {
            extra.or(Extra::of(&dependencies.nodes[*node].kind, tables, chip))
        });
        let first = &mut stages[leader];
        first.cycles += extra.tcam + extra.other - first.tcam_cycles - first.state_cycles;
        (first.tcam_cycles, first.state_cycles) = (extra.tcam, extra.other);
    }
}

/// Cycles beyond the base.
#[derive(Debug, Clone, Copy, Default)]
struct Extra {
    tcam: u32,
    /// The most of selectors, state and filters.
    other: u32,
}

impl Extra {
    fn or(self, other: Extra) -> Extra {
        Extra {
            tcam: self.tcam.max(other.tcam),
            other: self.other.max(other.other),
        }
    }

    fn of(kind: &NodeKind, tables: &[TableFeatures], chip: &Chip) -> Extra {
        let only = |is_there: bool, cycles: u32| if is_there { cycles } else { 0 };
        match kind {
            NodeKind::Table(at) => {
                let table = &tables[*at];
                let selector = only(table.has_selector, chip.selector);
                let stateful = only(table.keeps(StatefulKind::Register), chip.stateful);
                let filter = only(table.keeps(StatefulKind::LowPassFilter), chip.low_pass_filter);
                Extra {
                    tcam: only(table.needs_tcam(), chip.tcam),
                    other: selector.max(stateful).max(filter),
                }
            }
            NodeKind::Statements(operations) => Extra {
                tcam: 0,
                other: only(operations.register_accesses > 0, chip.stateful)
                    .max(only(operations.filter_calls > 0, chip.low_pass_filter)),
            },
        }
    }
}

/// The chain that ends in the last stage.
fn critical(stage_of: &[usize], because: &[Option<usize>]) -> Vec<usize> {
    let last = stage_of.iter().max();
    let mut at = last.and_then(|last| stage_of.iter().position(|stage| stage == last));
    let mut chain = Vec::new();
    while let Some(node) = at {
        chain.push(node);
        at = because[node];
    }
    chain.reverse();
    chain
}
