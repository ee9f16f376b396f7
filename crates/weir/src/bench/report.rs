//! What a measurement gave, for people and for programs.

use super::case::Case;
use super::measure::{Measured, median, ratio};
use super::stages::Stages;
use super::workers::Together;
use serde_json::{Value, json};
use std::fmt::Write;

/// What a measurement gave.
pub struct Report {
    /// What was measured.
    pub case: Case,
    /// Of each side. With several workers there are none.
    pub measured: Vec<Measured>,
    /// Of several workers.
    pub together: Option<Together>,
    /// Hz of the counter that cycles are read from.
    pub frequency: f64,
    /// Share of packets that leave, by themselves.
    pub sent: f64,
    /// Compilation times in ms.
    pub compile: Vec<f64>,
    /// Where the cycles go.
    pub stages: Option<Stages>,
}

impl Report {
    /// Cycles per packet of the first side relative to the second, where there are two.
    pub fn ratio(&self) -> Option<f64> {
        match self.measured.as_slice() {
            [engine, other] => Some(ratio(&engine.runs, &other.runs)),
            _ => None,
        }
    }

    fn mpps(&self, cycles: f64) -> f64 {
        self.frequency / cycles.max(f64::MIN_POSITIVE) / 1e6
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.case.about());
        for m in &self.measured {
            let ((lowest, highest), median) = (m.range(), m.median());
            let _ = writeln!(
                text,
                "  {:8} {median:9.1} cycles per packet ({lowest:.1} to {highest:.1}) {:9.3} Mpps per core",
                m.side.name(),
                self.mpps(median)
            );
        }
        if let (Some(ratio), [engine, other]) = (self.ratio(), self.measured.as_slice()) {
            let (engine, other) = (engine.side.name(), other.side.name());
            let _ = if ratio >= 1.0 {
                writeln!(text, "  {engine} takes {ratio:.2} times as long as {other}")
            } else {
                writeln!(text, "  {engine} is {:.1} times as fast as {other}", 1.0 / ratio)
            };
        }
        if let Some(t) = &self.together {
            let _ = writeln!(
                text,
                "  {} workers {:.3} Mpps, one alone {:.3} Mpps: {:.2} times as much",
                t.workers,
                median(&t.together),
                median(&t.alone),
                t.speedup()
            );
        }
        let _ = write!(text, "  {:.1} % of packets leave", self.sent * 100.0);
        if !self.compile.is_empty() {
            let _ = write!(text, "; compiled in {:.1} ms", median(&self.compile));
        }
        text.push('\n');
        if let Some(stages) = &self.stages {
            text.push_str(&stages.text());
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let results = self.measured.iter().map(|m| {
            let ((lowest, highest), median) = (m.range(), m.median());
            json!({
                "engine": m.side.name(),
                "cycles_per_packet": median,
                "lowest": lowest,
                "highest": highest,
                "runs": m.runs,
                "packets_per_second": self.mpps(median) * 1e6,
            })
        });
        json!({
            "program": self.case.name,
            "entries": self.case.entries(),
            "pool": self.case.pool,
            "flows": self.case.entries().map(|_| self.case.flow_count()),
            "size": self.case.size,
            "vector": self.case.vector,
            "cycles_per_second": self.frequency,
            "results": results.collect::<Vec<_>>(),
            "ratio": self.ratio(),
            "workers": self.together.as_ref().map(|t| json!({
                "workers": t.workers,
                "mpps": median(&t.together),
                "mpps_alone": median(&t.alone),
                "speedup": t.speedup(),
                "runs": t.together,
                "runs_alone": t.alone,
            })),
            "sent_share": self.sent,
            "compile_ms": (!self.compile.is_empty()).then(|| median(&self.compile)),
            "profile": self.stages.as_ref().map(Stages::json),
        })
    }
}
