//! Training: linear regression, the cycle-augmented model, and PLP.

mod cross_validation;
mod cycles;
mod least_squares;
mod plp;

pub use cross_validation::{CrossValidation, MAX_FOLDS, leave_one_case_out};
pub use cycles::{Correction, CyclesVariant};
pub use plp::PlpOptions;

use crate::data::{Data, DataError};
use crate::model::{ErrorEstimate, Feature, Form, Linear, Model, PortTerms, SCHEMA, Target, Term, Training};
use std::collections::BTreeMap;

/// What to train.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Linear regression on every column, one for each port speed. Rows are weighted so that
    /// relative errors count.
    Lr,
    /// The paper's terms, the chip's cycles, and a slope by packet size for each port speed, which
    /// is what is fitted. The variant is searched where it is `None`.
    Cycles(Option<CyclesVariant>),
    /// Polynomial features, principal components, lasso. What is not given is searched.
    Plp(PlpOptions),
}

impl Kind {
    /// Whether training chooses hyper-parameters.
    #[must_use]
    pub fn searches(&self) -> bool {
        match self {
            Kind::Lr => false,
            Kind::Cycles(variant) => variant.is_none(),
            Kind::Plp(options) => options.searches(),
        }
    }
}

/// Why nothing is trained.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The data do not suffice.
    #[error(transparent)]
    Data(#[from] DataError),
    /// There are too few cases.
    #[error("expected rows of at least {expected} cases, found {found}: leave-one-case-out needs others to train on")]
    Cases {
        /// How many.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// The paper has no terms for a port speed.
    #[error(
        "the paper measured ports of {} Gbit/s only, the data have {found}",
        crate::model::list(known)
    )]
    Port {
        /// The speed in Gbit/s.
        found: u32,
        /// What the paper measured.
        known: Vec<u32>,
    },
    /// There are fewer principal components than requested.
    #[error("expected at most {most} components, found {found}: {features} features have {most} polynomial terms")]
    Components {
        /// The requested number.
        found: usize,
        /// How many there can be.
        most: usize,
        /// Columns of the data.
        features: usize,
    },
    /// What was trained is no model that could be used.
    #[error("the data cannot be learnt from: {0}")]
    Model(#[from] crate::model::ModelError),
    /// The equations have no solution.
    #[error("the columns cannot be solved for: {0}")]
    Numeric(&'static str),
}

/// A trained model and how it does.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The model, trained on all rows.
    pub model: Model,
    /// Every row predicted by a model that was trained without its case. Where hyper-parameters
    /// are searched, they are searched again within each fold (nested), so that no row has any
    /// part in what predicts it.
    pub validation: CrossValidation,
}

/// Trains a model and estimates its error.
///
/// # Errors
/// The data lack columns, rows or cases.
pub fn fit(data: &Data, kind: &Kind, name: &str, target: Target) -> Result<Fitted, FitError> {
    let found = data.cases().len();
    if found < 3 {
        return Err(FitError::Cases { expected: 3, found });
    }
    let mut model = train(data, kind, name, target)?;
    let validation = leave_one_case_out(data, &|rows| train(rows, kind, name, target))?;
    let evaluation = &validation.evaluation;
    let how = match found > MAX_FOLDS {
        true => format!("cross-validation in {MAX_FOLDS} folds"),
        false => "leave-one-case-out".to_owned(),
    };
    let how = if kind.searches() { format!("nested {how}") } else { how };
    model.error = ErrorEstimate {
        mean_pct: evaluation.mean_error(None),
        worst_pct: evaluation.worst().map_or(0.0, |worst| worst.percent().abs()),
        method: format!("{how} on {} rows of {found} cases", data.rows.len()),
    };
    model.check()?;
    Ok(Fitted { model, validation })
}

/// Trains without estimating the error.
fn train(data: &Data, kind: &Kind, name: &str, target: Target) -> Result<Model, FitError> {
    let (form, about) = match kind {
        Kind::Lr => (Form::Linear(linear(data)?), "linear regression".to_owned()),
        Kind::Cycles(variant) => cycles::train(data, *variant)?,
        Kind::Plp(options) => plp::train(data, options)?,
    };
    Ok(Model {
        schema: SCHEMA,
        name: name.to_owned(),
        about,
        target,
        unit: data.unit,
        form,
        training: Training {
            rows: data.rows.len(),
            ranges: ranges(data),
        },
        error: ErrorEstimate::default(),
    })
}

/// The least and the most value of each column.
fn ranges(data: &Data) -> BTreeMap<Feature, (f64, f64)> {
    let range = |feature: Feature| {
        let values = data.rows.iter().map(|r| r.values.get(feature));
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| {
            (least.min(v), most.max(v))
        })
    };
    data.features.iter().map(|f| (*f, range(*f))).collect()
}

/// Rows with this port speed; all where speed is no column.
fn rows_of(data: &Data, port: Option<u32>) -> impl Iterator<Item = &crate::data::Row> {
    data.rows
        .iter()
        .filter(move |r| port.is_none_or(|p| p == r.values.port_gbps))
}

/// The port speeds to train apart.
fn speeds(data: &Data) -> Vec<Option<u32>> {
    let ports = data.ports();
    if ports.is_empty() {
        vec![None]
    } else {
        ports.into_iter().map(Some).collect()
    }
}

fn linear(data: &Data) -> Result<Linear, FitError> {
    let columns: Vec<Feature> = std::iter::once(Feature::Constant)
        .chain(
            data.features
                .iter()
                .copied()
                .filter(|f| !matches!(f, Feature::Constant | Feature::PortGbps)),
        )
        .collect();
    let mut ports = Vec::new();
    for gbps in speeds(data) {
        let rows: Vec<_> = rows_of(data, gbps).collect();
        let equations = rows.iter().map(|row| {
            let numbers = columns.iter().map(|f| row.values.get(*f) / row.measured);
            (numbers.collect::<Vec<f64>>(), 1.0)
        });
        let coefficients = least_squares::solve(&equations.collect::<Vec<_>>())?;
        let term = |(feature, coefficient): (&Feature, f64)| Term {
            feature: *feature,
            coefficient,
            part: None,
        };
        let terms = columns.iter().zip(coefficients).map(term).collect();
        ports.push(PortTerms { gbps, terms });
    }
    Ok(Linear { ports })
}
