//! Predictions for the paths of a program.

use crate::costliest::{Costliest, Judge};
use crate::features::{Chip, Features, Placement};
use crate::model::{Feature, Model, ModelError, Predicted, Target, Unit, fnv};
use crate::workload::Workload;
use serde::{Deserialize, Serialize};

/// The most packet sizes of one prediction.
pub const MAX_SIZES: usize = 2_000;
/// Bytes of the largest packet that is predicted for.
pub const MAX_PACKET_SIZE: u32 = 16_384;

/// What to predict.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Speed of the port in Gbit/s; 0 for a model that has no port speed.
    pub port_gbps: u32,
    /// Bytes of the packets, without their checksum sequence (FCS), in order.
    pub sizes: Vec<u32>,
    /// Only paths that begin with these headers, with slashes between them.
    pub path: Option<String>,
    /// The pipe of the program that is predicted, where it has several.
    pub pipe: Option<String>,
    /// The entries of tables are those of a control plane, not what the program declares.
    pub has_entries: bool,
}

/// Why nothing is predicted.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// The model cannot answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// No path has this name.
    #[error("no path begins with the headers `{wanted}`; the paths are {known}")]
    NoPath {
        /// The requested path.
        wanted: String,
        /// Names of some paths.
        known: String,
    },
    /// All packets are too small.
    #[error("packets of {largest} bytes are too small for every path: the shortest takes {needed} bytes of headers")]
    TooSmall {
        /// Bytes of the largest requested packet.
        largest: u32,
        /// Bytes of headers of the path with the fewest.
        needed: u32,
    },
}

/// A prediction for a path and a packet size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes of the packet.
    pub packet_size: u32,
    /// The parts.
    #[serde(flatten)]
    pub parts: Predicted,
    /// Their sum.
    pub total: f64,
    /// The model's mean error at this size: the total is this much too high or too low on average.
    pub error: f64,
}

/// A feature outside of the model's training range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outside {
    /// Its name.
    pub feature: String,
    /// The least of its values that are outside.
    pub from: f64,
    /// The most of them.
    pub to: f64,
    /// The least value in training.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// Predictions for a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathPrediction {
    /// Its name: its headers.
    pub name: String,
    /// Paths that it stands for.
    pub count: f64,
    /// States that extract, without the one that extracts Ethernet.
    pub states: u32,
    /// Bytes of headers, without the 14 of Ethernet.
    pub header_bytes: u32,
    /// The costliest sequence of tables that packets of this path may be looked up in.
    pub tables: Vec<String>,
    /// One point per packet size that the path's headers fit in.
    pub points: Vec<Point>,
    /// What lies outside of the model's training range, for some size.
    pub outside: Vec<Outside>,
}

impl PathPrediction {
    /// Points whose total is not above 0: the model does not hold for this path.
    pub fn impossible(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| point.total <= 0.0)
    }

    /// The costliest point.
    #[must_use]
    pub fn worst(&self) -> Option<&Point> {
        self.points.iter().max_by(|a, b| a.total.total_cmp(&b.total))
    }
}

/// All predictions for a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The program, as it was given.
    pub program: String,
    /// Name of the model.
    pub model: String,
    /// [`Model::digest`]: tells models of one name apart.
    pub model_digest: String,
    /// What it predicts for.
    pub target: Target,
    /// What it predicts.
    pub unit: Unit,
    /// Speed of the port in Gbit/s; 0 of a model that has no port speed.
    pub port_gbps: u32,
    /// The pipe, where the program has several.
    #[serde(default)]
    pub pipe: Option<String>,
    /// A number of the entries that a control plane's state has in each table (FNV-1a,
    /// hexadecimal); `null`: declared sizes count.
    #[serde(default)]
    pub entries: Option<String>,
    /// What the numbers mean, and what they leave out.
    pub scope: String,
    /// The model's mean error in percent, and how that was estimated.
    pub error_pct: f64,
    /// How the error was estimated.
    pub error_method: String,
    /// Paths of the parser that accept.
    pub accepting_paths: f64,
    /// Some paths were merged: one that is listed stands for several.
    pub is_merged: bool,
    /// The longest paths, of more states than are followed, are left out.
    pub is_cut_off: bool,
    /// Paths that are left out because their headers do not fit in any of the packets.
    pub too_long: usize,
    /// The header prefix of the requested paths; `null`: all.
    pub only: Option<String>,
    /// The paths, costliest first.
    pub paths: Vec<PathPrediction>,
}

impl Prediction {
    /// The costliest path with its costliest point.
    #[must_use]
    pub fn worst(&self) -> Option<(&PathPrediction, &Point)> {
        self.paths.iter().find_map(|path| Some((path, path.worst()?)))
    }
}

/// What predictions for a target mean.
#[must_use]
pub fn scope(target: Target) -> &'static str {
    match target {
        Target::Tofino | Target::Tofino2 => {
            "ingress only: mean time from the parser's time stamp to the queue (enq_tstamp - global_tstamp); \
             no queueing, no egress, no wire"
        }
        Target::Weir => {
            "ingress and egress of the compiled engine on the machine that the model was trained on: mean cycles per \
             packet, in vectors of 32; no I/O, no queueing"
        }
    }
}

/// The chip whose stages count for a target.
#[must_use]
pub fn chip(target: Target) -> Chip {
    match target {
        Target::Tofino | Target::Weir => Chip::TOFINO,
        Target::Tofino2 => Chip::TOFINO2,
    }
}

/// Predicts for all paths of a program's ingress. `egress` is looked at where the target counts it.
///
/// # Errors
/// The model does not know the port, no path fits, or packets are too small for all.
pub fn predict(
    program: &str,
    ingress: &Features,
    egress: Option<&Features>,
    model: &Model,
    question: &Question,
) -> Result<Prediction, PredictError> {
    let chip = chip(model.target);
    let egress = egress.filter(|_| model.target == Target::Weir);
    let workload = Workload {
        ingress,
        egress,
        placement: Placement::of(&ingress.dependencies, &ingress.tables, &chip),
    };
    let (mut paths, mut too_long) = (Vec::new(), 0);
    let mut judge = Judge::new(&workload, model, question.port_gbps, &question.sizes);
    for path in chosen(ingress, question)? {
        let Costliest { mut values, tables } = judge.of(path)?;
        let mut predicted = PathPrediction {
            name: path.name.clone(),
            count: path.count,
            states: path.extracting_states,
            header_bytes: path.header_bytes,
            tables: tables.into_iter().map(|at| ingress.tables[at].name.clone()).collect(),
            points: Vec::new(),
            outside: Vec::new(),
        };
        for size in question.sizes.iter().filter(|size| **size >= path.least_parsed_bytes) {
            values.set(Feature::PacketSize, (*size).into());
            // Headers of variable length are at most as long as the packet allows.
            let before = path.parsed_bytes.saturating_sub(path.header_bytes);
            values.set(
                Feature::HeaderBytes,
                path.header_bytes.min(size.saturating_sub(before)).into(),
            );
            let parts = model.predict(&values)?;
            predicted.points.push(point(*size, parts, model));
            predicted.note_outside(model.outside(&values));
        }
        match predicted.points.is_empty() {
            true => too_long += 1,
            false => paths.push(predicted),
        }
    }
    if paths.is_empty() {
        return Err(PredictError::TooSmall {
            largest: question.sizes.iter().copied().max().unwrap_or(0),
            needed: ingress
                .parser
                .paths
                .iter()
                .map(|p| p.least_parsed_bytes)
                .min()
                .unwrap_or(0),
        });
    }
    let total = |p: &PathPrediction| p.worst().map_or(0.0, |point| point.total);
    paths.sort_by(|a, b| total(b).total_cmp(&total(a)).then_with(|| a.name.cmp(&b.name)));
    Ok(Prediction {
        program: program.to_owned(),
        model: model.name.clone(),
        model_digest: model.digest(),
        target: model.target,
        unit: model.unit,
        port_gbps: question.port_gbps,
        pipe: question.pipe.clone(),
        entries: question.has_entries.then(|| entries_digest(ingress, egress)),
        scope: scope(model.target).to_owned(),
        error_pct: model.error.mean_pct,
        error_method: model.error.method.clone(),
        accepting_paths: ingress.parser.accepting,
        is_merged: ingress.parser.is_merged,
        is_cut_off: ingress.parser.is_cut_off,
        too_long,
        only: question.path.clone(),
        paths,
    })
}

/// A number of the entries and masks of all tables.
fn entries_digest(ingress: &Features, egress: Option<&Features>) -> String {
    let tables = ingress.tables.iter().chain(egress.into_iter().flat_map(|e| &e.tables));
    let counts = tables.map(|t| format!("{} {:?} {:?}\n", t.name, t.entries, t.masks));
    format!("{:016x}", fnv(counts.collect::<String>().bytes()))
}

/// The requested paths.
fn chosen<'a>(
    features: &'a Features,
    question: &Question,
) -> Result<Vec<&'a crate::features::ParserPath>, PredictError> {
    let all = &features.parser.paths;
    let Some(wanted) = question.path.as_deref().map(|path| path.trim_end_matches('/')) else {
        return Ok(all.iter().collect());
    };
    let is_wanted = |name: &str| {
        let rest = name.strip_prefix(wanted);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#']))
    };
    let begins: Vec<_> = all.iter().filter(|p| is_wanted(&p.name)).collect();
    if begins.is_empty() {
        const SHOWN: usize = 20;
        let names: Vec<&str> = all.iter().take(SHOWN).map(|p| p.name.as_str()).collect();
        let more = if all.len() > SHOWN { ", …" } else { "" };
        return Err(PredictError::NoPath {
            wanted: wanted.to_owned(),
            known: format!("{}{more}", names.join(", ")),
        });
    }
    Ok(begins)
}

fn point(packet_size: u32, parts: Predicted, model: &Model) -> Point {
    let total = parts.total();
    Point {
        packet_size,
        parts,
        total,
        error: total.abs() * model.error.mean_pct / 100.0,
    }
}

impl PathPrediction {
    /// Remembers the least and the most value outside of each range.
    fn note_outside(&mut self, found: Vec<(Feature, f64, (f64, f64))>) {
        for (feature, value, (least, most)) in found {
            match self.outside.iter_mut().find(|o| o.feature == feature.name()) {
                Some(known) => (known.from, known.to) = (known.from.min(value), known.to.max(value)),
                None => self.outside.push(Outside {
                    feature: feature.name().to_owned(),
                    from: value,
                    to: value,
                    least,
                    most,
                }),
            }
        }
    }
}
