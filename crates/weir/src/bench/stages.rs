//! Where the cycles go: a run of its own, with profiling on, so that what it costs is not in other
//! figures.

use super::rig::{Rig, Side};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{Duration, Instant};
use weir_switch::StageCount;

/// What a stage of compiled code took per packet of the pool.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Where it begins: the start, or the table that is looked up.
    pub name: String,
    /// Cycles of its code.
    pub code: f64,
    /// Cycles of the lookup before it.
    pub lookup: f64,
    /// Packets at a time.
    pub fill: f64,
}

/// All stages.
#[derive(Debug, Clone)]
pub struct Stages {
    /// One after the other.
    pub stages: Vec<Stage>,
    /// Cycles per packet of the whole, profiling included.
    pub total: f64,
}

impl Stages {
    /// Runs the packets with profiling for about this long.
    pub fn of(rig: &mut Rig, duration: Duration) -> Self {
        rig.switch.set_profiling(true);
        let (started, mut took, mut rounds) = (Instant::now(), 0, 0);
        while rounds == 0 || started.elapsed() < duration {
            took += rig.round(Side::Jit);
            rounds += 1;
        }
        let packets = (rounds * rig.pool.len()).max(1) as f64;
        let stages = rig.switch.stages().into_iter().map(|(name, code, lookup)| {
            let count: StageCount = code;
            Stage {
                name,
                code: count.cycles as f64 / packets,
                lookup: lookup.cycles as f64 / packets,
                fill: count.packets as f64 / count.runs.max(1) as f64,
            }
        });
        let stages = stages.collect();
        rig.switch.set_profiling(false);
        Stages {
            stages,
            total: took as f64 / packets,
        }
    }

    /// Cycles per packet of all lookups.
    pub fn lookups(&self) -> f64 {
        self.stages.iter().map(|s| s.lookup).sum()
    }

    /// Cycles per packet around the stages: taking packets in, counting, handing them over.
    pub fn around(&self) -> f64 {
        let stages: f64 = self.stages.iter().map(|s| s.code + s.lookup).sum();
        (self.total - stages).max(0.0)
    }

    fn share(&self, cycles: f64) -> f64 {
        100.0 * cycles / self.total.max(f64::MIN_POSITIVE)
    }

    /// As a table.
    pub fn text(&self) -> String {
        let width = self.stages.iter().map(|s| s.name.len()).max().unwrap_or(0).max(12);
        let mut text = format!(
            "with profiling, {:.1} cycles per packet:\n  {:width$}    code  lookup  packets at a time\n",
            self.total, "stage"
        );
        for s in &self.stages {
            let _ = writeln!(
                text,
                "  {:width$} {:7.1} {:7.1}  {:7.1}",
                s.name, s.code, s.lookup, s.fill
            );
        }
        let _ = writeln!(
            text,
            "  lookups {:.0} %; around the stages {:.1} cycles, {:.0} %",
            self.share(self.lookups()),
            self.around(),
            self.share(self.around())
        );
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let stage = |s: &Stage| json!({ "name": s.name, "code_cycles": s.code, "lookup_cycles": s.lookup, "packets_per_run": s.fill });
        json!({
            "total_cycles": self.total,
            "lookup_share": self.share(self.lookups()) / 100.0,
            "around_cycles": self.around(),
            "stages": self.stages.iter().map(stage).collect::<Vec<_>>(),
        })
    }
}
