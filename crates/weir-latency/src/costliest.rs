//! The costliest sequence of lookups and statements on a path, as a model judges it.
//!
//! A control has too many sequences to evaluate all. Candidates are those that are costliest if
//! each piece of the control costs what the model adds for it alone; the model then evaluates them
//! whole. For a linear model the first candidate is exact but for terms that pieces do not add to
//! (`table_log_kib`, `rewritten_headers`), which is why several are evaluated.

use crate::features::{Control, Cost, Features, ParserPath, Piece, Sequence, length};
use crate::model::{Feature, Model, ModelError, Values};
use crate::workload::Workload;
use std::collections::HashMap;

/// Sequences of a control that a model evaluates whole.
const CANDIDATES: usize = 16;
/// Differences below this are rounding.
const NEGLIGIBLE: f64 = 1e-9;

/// A path's features on its costliest sequence, and the tables of the ingress on it.
pub(crate) struct Costliest {
    pub(crate) values: Values,
    pub(crate) tables: Vec<usize>,
}

/// Finds the costliest sequences of the paths of a workload.
pub(crate) struct Judge<'a> {
    workload: &'a Workload<'a>,
    model: &'a Model,
    port_gbps: u32,
    /// Sizes of the smallest and the largest packet.
    sizes: [u32; 2],
    /// Candidates by control, of the ingress and of the egress.
    known: HashMap<(bool, usize), Vec<Sequence>>,
}

/// What a sequence is added to.
#[derive(Clone, Copy)]
struct Base<'b> {
    path: &'b ParserPath,
    /// The sequence of the ingress where that of the egress is looked for.
    ingress: Option<&'b Sequence>,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(workload: &'a Workload<'a>, model: &'a Model, port_gbps: u32, sizes: &[u32]) -> Self {
        let least = sizes.iter().copied().min().unwrap_or(0);
        let most = sizes.iter().copied().max().unwrap_or(0);
        Judge {
            workload,
            model,
            port_gbps,
            sizes: [least, most],
            known: HashMap::new(),
        }
    }

    /// The costliest sequence of a path. Of several as costly the one with most tables.
    ///
    /// # Errors
    /// The model cannot predict.
    pub(crate) fn of(&mut self, path: &ParserPath) -> Result<Costliest, ModelError> {
        let workload = self.workload;
        let ingress = self.choose(
            Base { path, ingress: None },
            (false, path.control),
            workload.ingress,
            &workload.ingress.controls[path.control],
        )?;
        let egress = match workload.egress_control(path) {
            Some((features, there, control)) => {
                let base = Base {
                    path,
                    ingress: Some(&ingress),
                };
                Some(self.choose(base, (true, there.control), features, control)?)
            }
            None => None,
        };
        Ok(Costliest {
            values: workload.values_of(path, self.port_gbps, &ingress, egress.as_ref()),
            tables: ingress.tables,
        })
    }

    fn choose(
        &mut self,
        base: Base<'_>,
        key: (bool, usize),
        features: &Features,
        control: &Control,
    ) -> Result<Sequence, ModelError> {
        if !self.known.contains_key(&key) {
            let found = self.candidates(base, features, control)?;
            self.known.insert(key, found);
        }
        let candidates = &self.known[&key];
        // Candidates stand in order, so that of several as costly the first is meant.
        let mut best: Option<(f64, &Sequence)> = None;
        for sequence in candidates {
            let cost = self.cost(base, sequence)?;
            if best.is_none_or(|(most, _)| cost > most + NEGLIGIBLE) {
                best = Some((cost, sequence));
            }
        }
        Ok(best.map(|(_, sequence)| sequence.clone()).unwrap_or_default())
    }

    fn candidates(&self, base: Base<'_>, features: &Features, control: &Control) -> Result<Vec<Sequence>, ModelError> {
        let nothing = self.cost(base, &Sequence::default())?;
        let mut costs = Vec::with_capacity(control.pieces.len());
        for piece in &control.pieces {
            costs.push(match piece.is_empty() {
                true => 0.0,
                false => self.cost(base, &alone(piece))? - nothing,
            });
        }
        let cost = |at: usize| {
            let Cost(tables, operations) = length(&control.pieces[at], &features.tables);
            Cost(costs[at], tables + operations * 1e-6)
        };
        Ok(control.sequences(CANDIDATES, &cost))
    }

    /// The larger of what the smallest and the largest packet cost.
    fn cost(&self, base: Base<'_>, sequence: &Sequence) -> Result<f64, ModelError> {
        let mut values = match base.ingress {
            None => self.workload.values_of(base.path, self.port_gbps, sequence, None),
            Some(ingress) => self
                .workload
                .values_of(base.path, self.port_gbps, ingress, Some(sequence)),
        };
        let mut most = f64::NEG_INFINITY;
        for size in self.sizes {
            values.set(Feature::PacketSize, size.into());
            most = most.max(self.model.predict(&values)?.total());
        }
        Ok(most)
    }
}

/// A piece as a sequence of its own.
fn alone(piece: &Piece) -> Sequence {
    Sequence {
        tables: piece.table.into_iter().collect(),
        operations: piece.operations,
        rewritten: piece.rewritten.clone(),
    }
}
