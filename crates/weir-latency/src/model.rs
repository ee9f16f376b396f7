//! Models: from features to nanoseconds or cycles. Each is one JSON file.

mod error;
mod feature;
mod linear;
mod plp;
mod shipped;

pub use error::ModelError;
pub(crate) use error::list;
pub use feature::{Feature, Part, Values};
pub use linear::{Linear, PortTerms, Term};
pub use plp::{Plp, expand, term_count};
pub use shipped::{shipped, shipped_names};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the JSON that this crate reads and writes.
pub const SCHEMA: u32 = 1;
/// The largest error of a model in percent. A model beyond it predicts nothing.
pub const MAX_ERROR_PCT: f64 = 1e6;
/// Bytes of the largest model file.
pub const MAX_BYTES: usize = 4 << 20;

/// What a model predicts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A Tofino.
    Tofino,
    /// A Tofino 2.
    Tofino2,
    /// weir's compiled engine.
    Weir,
}

impl Target {
    /// Its name in model files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Target::Tofino => "tofino",
            Target::Tofino2 => "tofino2",
            Target::Weir => "weir",
        }
    }
}

/// What a prediction is a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Cycles of the processor's time-stamp counter.
    Cycles,
}

impl Unit {
    /// Its symbol.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Cycles => "cycles",
        }
    }
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// Where it is from, for people.
    pub about: String,
    /// What it predicts for.
    pub target: Target,
    /// What it predicts.
    pub unit: Unit,
    /// The function.
    pub form: Form,
    /// What it was trained on.
    pub training: Training,
    /// How wrong it is on data that it was not trained on.
    pub error: ErrorEstimate,
}

/// The function of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A weighted sum of features.
    Linear(Linear),
    /// Polynomial features, principal components, lasso.
    Plp(Plp),
}

/// What a model was trained on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Rows of data.
    pub rows: usize,
    /// The least and the most value of each feature. A prediction outside is an extrapolation.
    pub ranges: BTreeMap<Feature, (f64, f64)>,
}

/// An estimate of a model's error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorEstimate {
    /// Mean absolute error in percent of the measured value.
    pub mean_pct: f64,
    /// The same of the worst row.
    pub worst_pct: f64,
    /// On which rows, and how they were kept apart from training.
    pub method: String,
}

/// A predicted value and its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// What every packet of this size costs.
    pub baseline: f64,
    /// Parser and deparser.
    pub parser: f64,
    /// Control block.
    pub control: f64,
    /// Cycles of TCAMs and state, and corrections.
    pub extras: f64,
}

impl Predicted {
    /// All parts.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.baseline + self.parser + self.control + self.extras
    }

    fn add(&mut self, part: Part, value: f64) {
        match part {
            Part::Baseline => self.baseline += value,
            Part::Parser => self.parser += value,
            Part::Control => self.control += value,
            Part::Extras => self.extras += value,
        }
    }
}

impl Model {
    /// Reads and checks a model.
    ///
    /// # Errors
    /// It is no JSON of this schema, or what it says does not fit together.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let model: Model = serde_json::from_str(text)?;
        model.check()?;
        Ok(model)
    }

    /// The model as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// A number of the model's whole content, as 16 hexadecimal digits (FNV-1a of its JSON). Two
    /// models that differ have different ones, short of chance.
    #[must_use]
    pub fn digest(&self) -> String {
        format!("{:016x}", fnv(self.to_json().bytes()))
    }

    pub(crate) fn check(&self) -> Result<(), ModelError> {
        if self.schema != SCHEMA {
            return Err(ModelError::Schema { found: self.schema });
        }
        let damaged = |what: &str| ModelError::Damaged { what: what.to_owned() };
        if self.name.is_empty() {
            return Err(damaged("`name` is empty"));
        }
        if [&self.name, &self.about, &self.error.method]
            .iter()
            .any(|text| text.chars().any(char::is_control))
        {
            return Err(damaged("`name`, `about` or `method` has a control character"));
        }
        let unit = match self.target {
            Target::Tofino | Target::Tofino2 => Unit::Ns,
            Target::Weir => Unit::Cycles,
        };
        if self.unit != unit {
            return Err(damaged(&format!(
                "a model for {} predicts {}, found {}",
                self.target.name(),
                unit.symbol(),
                self.unit.symbol()
            )));
        }
        let is_error = |value: f64| (0.0..=MAX_ERROR_PCT).contains(&value);
        if !is_error(self.error.mean_pct) || !is_error(self.error.worst_pct) {
            return Err(damaged(&format!(
                "`error` has a percentage that is not between 0 and {MAX_ERROR_PCT}"
            )));
        }
        for (feature, (least, most)) in &self.training.ranges {
            if !(least.is_finite() && most.is_finite() && least <= most) {
                return Err(damaged(&format!(
                    "the training range of `{}` is from {least} to {most}",
                    feature.name()
                )));
            }
        }
        match &self.form {
            Form::Linear(linear) => linear.check(),
            Form::Plp(plp) => plp.check(),
        }
    }

    /// Features that it looks at.
    #[must_use]
    pub fn features(&self) -> Vec<Feature> {
        match &self.form {
            Form::Linear(linear) => linear.features(),
            Form::Plp(plp) => plp.features.clone(),
        }
    }

    /// Port speeds that it knows, in Gbit/s; none: it holds for every speed.
    #[must_use]
    pub fn ports(&self) -> Vec<u32> {
        match &self.form {
            Form::Linear(linear) => linear.ports.iter().filter_map(|p| p.gbps).collect(),
            Form::Plp(plp) => plp.ports.clone(),
        }
    }

    /// Predicts.
    ///
    /// # Errors
    /// The model does not know the port's speed, or its numbers are too large to be added up.
    pub fn predict(&self, values: &Values) -> Result<Predicted, ModelError> {
        let known = self.ports();
        if !known.is_empty() && !known.contains(&values.port_gbps) {
            return Err(ModelError::Port {
                model: self.name.clone(),
                found: values.port_gbps,
                known,
            });
        }
        let predicted = match &self.form {
            Form::Linear(linear) => linear.predict(values),
            Form::Plp(plp) => plp.predict(values),
        };
        if predicted.total().is_finite() {
            return Ok(predicted);
        }
        Err(ModelError::Damaged {
            what: format!("{} predicts what is no finite number", self.name),
        })
    }

    /// Features whose values are outside of the training range, with the value and the range.
    #[must_use]
    pub fn outside(&self, values: &Values) -> Vec<(Feature, f64, (f64, f64))> {
        let look = |(feature, range): (&Feature, &(f64, f64))| {
            let value = values.get(*feature);
            let slack = 1e-9 * range.1.abs().max(1.0);
            (value < range.0 - slack || value > range.1 + slack).then_some((*feature, value, *range))
        };
        self.training.ranges.iter().filter_map(look).collect()
    }
}

/// The 64-bit FNV-1a hash of some bytes.
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
