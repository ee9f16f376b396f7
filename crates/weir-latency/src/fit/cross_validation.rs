//! Predictions of rows by models that were trained without them.

use super::FitError;
use crate::data::Data;
use crate::evaluate::{Evaluation, evaluate};
use crate::model::Model;

/// Predictions of every row, each by a model that was trained without its case.
#[derive(Debug, Clone)]
pub struct CrossValidation {
    /// The predictions.
    pub evaluation: Evaluation,
    /// What each fold chose: the case, and what its model says of itself.
    pub chosen: Vec<(String, String)>,
}

/// Most trainings of a cross-validation. Of more cases several are left out together.
pub const MAX_FOLDS: usize = 50;

/// Trains once for each case, on all others, and predicts the case; with more than [`MAX_FOLDS`]
/// cases once for each group of them.
///
/// # Errors
/// A training fails.
pub fn leave_one_case_out(
    data: &Data,
    train: &dyn Fn(&Data) -> Result<Model, FitError>,
) -> Result<CrossValidation, FitError> {
    validate(data, &folds(data, MAX_FOLDS), train)
}

/// Cases dealt out to at most this many folds.
pub(super) fn folds(data: &Data, most: usize) -> Vec<Vec<&str>> {
    let cases = data.cases();
    let count = most.min(cases.len()).max(1);
    let mut folds = vec![Vec::new(); count];
    for (i, case) in cases.into_iter().enumerate() {
        folds[i % count].push(case);
    }
    folds
}

/// Trains once for each fold, on all others, and predicts the fold.
pub(super) fn validate(
    data: &Data,
    folds: &[Vec<&str>],
    train: &dyn Fn(&Data) -> Result<Model, FitError>,
) -> Result<CrossValidation, FitError> {
    let mut rows = Vec::with_capacity(data.rows.len());
    let mut chosen = Vec::with_capacity(folds.len());
    for cases in folds {
        let (within, without) = data.split(cases);
        let model = train(&without)?;
        let Ok(found) = evaluate(&model, &within) else {
            return Err(FitError::Numeric("a port speed appears in one case only"));
        };
        rows.extend(found.rows);
        chosen.push((cases.join(", "), model.about));
    }
    Ok(CrossValidation {
        evaluation: Evaluation { rows },
        chosen,
    })
}
