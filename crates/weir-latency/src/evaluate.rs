//! How well predictions agree with measurements.

use crate::data::{Data, DataError};
use crate::model::{Model, ModelError};
use serde::Serialize;

/// A row with its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Residual {
    /// The case.
    pub case: String,
    /// Speed of the port in Gbit/s; 0 where the data do not say.
    pub port_gbps: u32,
    /// What was measured.
    pub measured: f64,
    /// What was predicted.
    pub predicted: f64,
}

impl Residual {
    /// The error in percent of what was measured; negative where too little was predicted.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * (self.predicted - self.measured) / self.measured
    }
}

/// How well a model does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Every row.
    pub rows: Vec<Residual>,
}

impl Evaluation {
    /// Mean absolute error in percent (MAPE) of the rows with this port speed, or of all.
    #[must_use]
    pub fn mean_error(&self, port: Option<u32>) -> f64 {
        let fits = |r: &&Residual| port.is_none_or(|p| p == r.port_gbps);
        mean(self.rows.iter().filter(fits).map(|r| r.percent().abs()))
    }

    /// 100 − MAPE: what the paper calls accuracy.
    #[must_use]
    pub fn accuracy(&self, port: Option<u32>) -> f64 {
        100.0 - self.mean_error(port)
    }

    /// Mean signed error in percent.
    #[must_use]
    pub fn bias(&self) -> f64 {
        mean(self.rows.iter().map(Residual::percent))
    }

    /// The row that is worst.
    #[must_use]
    pub fn worst(&self) -> Option<&Residual> {
        self.rows
            .iter()
            .max_by(|a, b| a.percent().abs().total_cmp(&b.percent().abs()))
    }

    /// The absolute error in percent that this share of the rows does not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let mut errors: Vec<f64> = self.rows.iter().map(|r| r.percent().abs()).collect();
        errors.sort_by(f64::total_cmp);
        let at = (share * errors.len() as f64).ceil() as usize;
        errors
            .get(at.saturating_sub(1).min(errors.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0.0)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values {
        sum += value;
        count += 1;
    }
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// Why a model is not evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The data do not fit the model.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The model does not fit the data.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model predicts one unit, the data measure another.
    #[error("model {model} predicts {predicts}, but the data measure {measured}")]
    Unit {
        /// Its name.
        model: String,
        /// Symbol of its unit.
        predicts: &'static str,
        /// Symbol of the data's.
        measured: &'static str,
    },
}

/// Predicts every row.
///
/// # Errors
/// The data lack a feature that the model looks at, measure something else, have no row, or have a
/// port speed that the model does not know.
pub fn evaluate(model: &Model, data: &Data) -> Result<Evaluation, EvaluateError> {
    if model.unit != data.unit {
        return Err(EvaluateError::Unit {
            model: model.name.clone(),
            predicts: model.unit.symbol(),
            measured: data.unit.symbol(),
        });
    }
    let mut needed = model.features();
    if !model.ports().is_empty() {
        needed.push(crate::model::Feature::PortGbps);
    }
    data.require(&needed)?;
    if data.rows.is_empty() {
        let expected = "at least 1".to_owned();
        return Err(DataError::Rows { expected, found: 0 }.into());
    }
    let mut rows = Vec::with_capacity(data.rows.len());
    for row in &data.rows {
        rows.push(Residual {
            case: row.case.clone(),
            port_gbps: row.values.port_gbps,
            measured: row.measured,
            predicted: model.predict(&row.values)?.total(),
        });
    }
    Ok(Evaluation { rows })
}
