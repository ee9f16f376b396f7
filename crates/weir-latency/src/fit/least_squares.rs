//! Linear least squares.

use super::FitError;
use nalgebra::{DMatrix, DVector};

/// Singular values below this share of the largest are taken for 0: columns that depend on each
/// other then share their weight.
const RANK_TOLERANCE: f64 = 1e-10;

/// The coefficients that minimise the squared errors of equations; of several solutions that of
/// the least norm.
pub(super) fn solve(equations: &[(Vec<f64>, f64)]) -> Result<Vec<f64>, FitError> {
    let columns = equations.first().map_or(0, |(numbers, _)| numbers.len());
    if columns == 0 {
        return Err(FitError::Numeric("there are no equations"));
    }
    // Columns of equal norm, so that the tolerance means the same for each.
    let norm = |at: usize| {
        equations
            .iter()
            .map(|(numbers, _)| numbers[at] * numbers[at])
            .sum::<f64>()
            .sqrt()
    };
    // A column of zeros gets the coefficient 0.
    let norms: Vec<f64> = (0..columns).map(norm).map(|n| if n > 0.0 { n } else { 1.0 }).collect();
    if norms.iter().any(|norm| !norm.is_finite()) {
        return Err(FitError::Numeric("a value is too large beside what was measured"));
    }
    let matrix = DMatrix::from_fn(equations.len(), columns, |row, at| equations[row].0[at] / norms[at]);
    let right = DVector::from_fn(equations.len(), |row, _| equations[row].1);
    let svd = matrix.svd(true, true);
    let tolerance = RANK_TOLERANCE * svd.singular_values.max();
    let solution = svd.solve(&right, tolerance).map_err(FitError::Numeric)?;
    Ok(solution.iter().zip(&norms).map(|(x, norm)| x / norm).collect())
}
