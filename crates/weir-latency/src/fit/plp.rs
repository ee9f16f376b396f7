//! Training of PLP models.

use super::FitError;
use super::cross_validation::{folds, validate};
use crate::data::Data;
use crate::evaluate::Evaluation;
use crate::model::{ErrorEstimate, Feature, Form, Model, Plp, SCHEMA, Target, Training, expand, term_count};
use nalgebra::{DMatrix, SymmetricEigen};

/// Folds of the search for hyper-parameters.
const SEARCH_FOLDS: usize = 6;
/// Numbers of components that are tried.
const COMPONENTS: [usize; 5] = [5, 10, 20, 40, 60];
/// What products of scaled features are multiplied by: features first, products where they explain
/// what features do not.
const PRODUCT_WEIGHT: f64 = 0.01;
/// Weights of the penalty that are tried.
const ALPHAS: [f64; 5] = [0.0, 1e-3, 3e-3, 1e-2, 3e-2];

/// Hyper-parameters. What is `None` is searched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlpOptions {
    /// Number of principal components.
    pub components: Option<usize>,
    /// Weight of the penalty on the sum of the weights' absolute values.
    pub alpha: Option<f64>,
    /// Features are not scaled before they are multiplied, and absolute errors count instead of
    /// relative ones: what the paper's script did (as its reproduction suggests).
    pub unscaled: bool,
}

impl PlpOptions {
    pub(super) fn searches(&self) -> bool {
        self.components.is_none() || self.alpha.is_none()
    }

    fn candidates(&self) -> Vec<(usize, f64)> {
        let components = self.components.map_or_else(|| COMPONENTS.to_vec(), |c| vec![c]);
        let alphas = self.alpha.map_or_else(|| ALPHAS.to_vec(), |a| vec![a]);
        components
            .iter()
            .flat_map(|c| alphas.iter().map(|a| (*c, *a)))
            .collect()
    }
}

/// Trains; also says with which hyper-parameters.
pub(super) fn train(data: &Data, options: &PlpOptions) -> Result<(Form, String), FitError> {
    let features = data.features.iter().filter(|f| **f != Feature::Constant).count();
    let most = term_count(features);
    if let Some(found) = options.components.filter(|found| *found > most) {
        return Err(FitError::Components { found, most, features });
    }
    let candidates = options.candidates();
    let (components, alpha) = match &candidates[..] {
        [only] => *only,
        _ => search(data, options, &candidates)?,
    };
    let prepared = Prepared::of(data, options.unscaled)?;
    let plp = prepared.plp(components, alpha);
    let used = plp.weights.iter().filter(|w| **w != 0.0).count();
    let about = format!(
        "polynomial features of degree 2, {} principal components, lasso with alpha {alpha} ({used} weights)",
        plp.components.len()
    );
    Ok((Form::Plp(plp), about))
}

/// The candidate with the least error on cases that it was not trained on.
fn search(data: &Data, options: &PlpOptions, candidates: &[(usize, f64)]) -> Result<(usize, f64), FitError> {
    let mut rows = vec![Vec::new(); candidates.len()];
    for cases in folds(data, SEARCH_FOLDS) {
        let (_, without) = data.split(&cases);
        let prepared = Prepared::of(&without, options.unscaled)?;
        for (candidate, rows) in candidates.iter().zip(&mut rows) {
            let model = bare(data, prepared.plp(candidate.0, candidate.1));
            let fold = [cases.clone()];
            rows.extend(validate(data, &fold, &|_| Ok(model.clone()))?.evaluation.rows);
        }
    }
    let errors = rows.into_iter().map(|rows| Evaluation { rows }.mean_error(None));
    let best = errors.zip(candidates).min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map(|(_, c)| *c)
        .ok_or(FitError::Numeric("there are no candidates"))
}

/// A model around a function, to evaluate it.
fn bare(data: &Data, plp: Plp) -> Model {
    Model {
        schema: SCHEMA,
        name: "candidate".to_owned(),
        about: String::new(),
        target: Target::Weir,
        unit: data.unit,
        form: Form::Plp(plp),
        training: Training::default(),
        error: ErrorEstimate::default(),
    }
}

/// Data projected on all principal components, in the order of their variance.
struct Prepared {
    features: Vec<Feature>,
    ports: Vec<u32>,
    mean: Vec<f64>,
    scale: Vec<f64>,
    product_weight: f64,
    pca_mean: Vec<f64>,
    components: Vec<Vec<f64>>,
    /// Products of each component's weighted scores with the centred target, and with themselves.
    products: Vec<(f64, f64)>,
    target_mean: f64,
    rows: usize,
    is_scaled: bool,
}

/// The mean by weights.
fn mean(values: impl Iterator<Item = f64>, weights: &[f64]) -> f64 {
    let (sum, total) = values.zip(weights).fold((0.0, 0.0), |(sum, total), (value, weight)| {
        (sum + value * weight, total + weight)
    });
    if total > 0.0 { sum / total } else { 0.0 }
}

/// Standard deviation; 1 where all values are equal.
fn deviation(values: impl Iterator<Item = f64> + Clone, weights: &[f64]) -> f64 {
    let middle = mean(values.clone(), weights);
    let variance = mean(values.map(|v| (v - middle) * (v - middle)), weights);
    if variance > 1e-12 * middle.abs().max(1e-12) {
        variance.sqrt()
    } else {
        1.0
    }
}

impl Prepared {
    fn of(data: &Data, unscaled: bool) -> Result<Self, FitError> {
        let features: Vec<Feature> = data
            .features
            .iter()
            .copied()
            .filter(|f| *f != Feature::Constant)
            .collect();
        if features.is_empty() || data.rows.is_empty() {
            return Err(FitError::Numeric("there are no columns to learn from"));
        }
        let even = vec![1.0; data.rows.len()];
        let column = |f: Feature| data.rows.iter().map(move |r| r.values.get(f));
        let (mean_of, scale_of): (Vec<f64>, Vec<f64>) = match unscaled {
            true => (vec![0.0; features.len()], vec![1.0; features.len()]),
            false => features
                .iter()
                .map(|f| (mean(column(*f), &even), deviation(column(*f), &even)))
                .unzip(),
        };
        let product_weight = if unscaled { 1.0 } else { PRODUCT_WEIGHT };
        let terms = |row: &crate::data::Row| {
            let scaled = features.iter().zip(&mean_of).zip(&scale_of);
            expand(
                &scaled
                    .map(|((f, mean), scale)| (row.values.get(*f) - mean) / scale)
                    .collect::<Vec<f64>>(),
                product_weight,
            )
        };
        let expanded: Vec<Vec<f64>> = data.rows.iter().map(terms).collect();
        // With weighted means for centres, weighted least squares needs no column for the constant.
        let weight = |r: &crate::data::Row| if unscaled { 1.0 } else { 1.0 / (r.measured * r.measured) };
        let weights: Vec<f64> = data.rows.iter().map(weight).collect();
        let width = expanded[0].len();
        let pca_mean: Vec<f64> = (0..width)
            .map(|at| mean(expanded.iter().map(|t| t[at]), &weights))
            .collect();
        let target_mean = mean(data.rows.iter().map(|r| r.measured), &weights);
        let centred = DMatrix::from_fn(expanded.len(), width, |row, at| {
            (expanded[row][at] - pca_mean[at]) * weights[row].sqrt()
        });
        let components = principal_components(&centred);
        let target: Vec<f64> = data
            .rows
            .iter()
            .zip(&weights)
            .map(|(r, w)| (r.measured - target_mean) * w.sqrt())
            .collect();
        let products = components.iter().map(|component| {
            let scores = centred
                .row_iter()
                .map(|row| row.iter().zip(component).map(|(a, b)| a * b).sum::<f64>());
            scores.zip(&target).fold((0.0, 0.0), |(with, own), (score, target)| {
                (with + score * target, own + score * score)
            })
        });
        Ok(Prepared {
            products: products.collect(),
            ports: data.ports(),
            features,
            mean: mean_of,
            scale: scale_of,
            product_weight,
            pca_mean,
            components,
            target_mean,
            rows: data.rows.len(),
            is_scaled: !unscaled,
        })
    }

    /// Lasso on the first components. Scores of different components are orthogonal, so the
    /// minimum is known in closed form: each weight is shrunk by the penalty. Where features are
    /// scaled, the penalty is on weights of scores of unit variance.
    fn plp(&self, components: usize, alpha: f64) -> Plp {
        let count = components.min(self.components.len());
        let penalty = alpha * self.rows as f64;
        let weight = |(with, own): &(f64, f64)| {
            let unit = if self.is_scaled {
                (own / self.rows as f64).sqrt()
            } else {
                1.0
            };
            let shrunk = (with.abs() - penalty * unit).max(0.0);
            if *own > 0.0 { shrunk.copysign(*with) / own } else { 0.0 }
        };
        Plp {
            features: self.features.clone(),
            ports: self.ports.clone(),
            mean: self.mean.clone(),
            scale: self.scale.clone(),
            product_weight: self.product_weight,
            pca_mean: self.pca_mean.clone(),
            components: self.components[..count].to_vec(),
            intercept: self.target_mean,
            weights: self.products[..count].iter().map(weight).collect(),
        }
    }
}

/// Eigenvectors of the covariance with variance above nothing, most first. Signs are chosen so
/// that the largest entry is positive: the same data give the same file.
fn principal_components(centred: &DMatrix<f64>) -> Vec<Vec<f64>> {
    let covariance = centred.transpose() * centred;
    let eigen = SymmetricEigen::new(covariance);
    let mut order: Vec<usize> = (0..eigen.eigenvalues.len()).collect();
    order.sort_by(|a, b| eigen.eigenvalues[*b].total_cmp(&eigen.eigenvalues[*a]));
    let largest = order.first().map_or(0.0, |first| eigen.eigenvalues[*first]);
    order.retain(|at| eigen.eigenvalues[*at] > 1e-12 * largest);
    let vector = |at: usize| {
        let vector: Vec<f64> = eigen.eigenvectors.column(at).iter().copied().collect();
        let largest = vector
            .iter()
            .copied()
            .reduce(|a, b| if b.abs() > a.abs() { b } else { a });
        let sign = if largest.unwrap_or(1.0) < 0.0 { -1.0 } else { 1.0 };
        // Six digits are beyond what any measurement warrants, and keep the file readable.
        vector.into_iter().map(|x| (x * sign * 1e6).round() / 1e6).collect()
    };
    order.into_iter().map(vector).collect()
}
