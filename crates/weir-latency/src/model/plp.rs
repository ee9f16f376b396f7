//! Polynomial features, principal components, lasso (the paper's section 6.3).

use super::{Feature, ModelError, Part, Predicted, Values};
use serde::{Deserialize, Serialize};

/// A PLP model: features are scaled, expanded to all products of up to two of them, projected on
/// principal components, and weighted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plp {
    /// Features in order.
    pub features: Vec<Feature>,
    /// Port speeds in Gbit/s that it was trained on; none: it holds for every speed.
    pub ports: Vec<u32>,
    /// Is subtracted from each feature.
    pub mean: Vec<f64>,
    /// What each feature is then divided by.
    pub scale: Vec<f64>,
    /// What each product of two features is multiplied by. A small one makes the first principal
    /// components those of the features themselves.
    pub product_weight: f64,
    /// Mean of each polynomial term.
    pub pca_mean: Vec<f64>,
    /// The principal components: one weight per polynomial term each.
    pub components: Vec<Vec<f64>>,
    /// Value where all components are 0.
    pub intercept: f64,
    /// Weight of each component.
    pub weights: Vec<f64>,
}

/// The polynomial terms of degree 1 and 2 of some numbers: each number, then the products of each
/// with itself and those after it, times a weight.
#[must_use]
pub fn expand(numbers: &[f64], product_weight: f64) -> Vec<f64> {
    let mut terms = numbers.to_vec();
    for (i, a) in numbers.iter().enumerate() {
        terms.extend(numbers[i..].iter().map(|b| a * b * product_weight));
    }
    terms
}

/// Number of polynomial terms of a number of features.
#[must_use]
pub fn term_count(features: usize) -> usize {
    features + features * (features + 1) / 2
}

impl Plp {
    pub(super) fn check(&self) -> Result<(), ModelError> {
        let damaged = |what: String| Err(ModelError::Damaged { what });
        let (n, terms) = (self.features.len(), term_count(self.features.len()));
        if n == 0 {
            return damaged("`features` is empty".to_owned());
        }
        let lists = [
            ("mean", &self.mean, n),
            ("scale", &self.scale, n),
            ("pca_mean", &self.pca_mean, terms),
        ];
        let weights = [("weights", &self.weights, self.components.len())];
        for (name, list, expected) in lists.into_iter().chain(weights) {
            if list.len() != expected {
                return damaged(format!("`{name}` has {} numbers, expected {expected}", list.len()));
            }
        }
        if let Some(bad) = self.components.iter().find(|c| c.len() != terms) {
            return damaged(format!("a component has {} numbers, expected {terms}", bad.len()));
        }
        let all = [&self.mean, &self.scale, &self.pca_mean, &self.weights];
        let mut numbers = all.into_iter().chain(&self.components).flatten();
        if numbers.any(|x| !x.is_finite()) || !self.intercept.is_finite() || !self.product_weight.is_finite() {
            return damaged("a number is not finite".to_owned());
        }
        if self.scale.iter().any(|scale| *scale <= 0.0) {
            return damaged("`scale` has a number that is not above 0".to_owned());
        }
        let repeated = |at: usize| self.features[..at].contains(&self.features[at]);
        if let Some(at) = (0..n).find(|at| repeated(*at)) {
            return damaged(format!("`features` has `{}` twice", self.features[at].name()));
        }
        if let Some(at) = (0..self.ports.len()).find(|at| self.ports[..*at].contains(&self.ports[*at])) {
            return damaged(format!("`ports` has {} twice", self.ports[at]));
        }
        Ok(())
    }

    /// The value for these features.
    #[must_use]
    pub fn value(&self, values: &Values) -> f64 {
        let scaled = self.features.iter().zip(&self.mean).zip(&self.scale);
        let scaled: Vec<f64> = scaled
            .map(|((f, mean), scale)| (values.get(*f) - mean) / scale)
            .collect();
        let centred: Vec<f64> = expand(&scaled, self.product_weight)
            .iter()
            .zip(&self.pca_mean)
            .map(|(t, mean)| t - mean)
            .collect();
        let project = |component: &Vec<f64>| component.iter().zip(&centred).map(|(c, t)| c * t).sum::<f64>();
        let parts = self
            .components
            .iter()
            .zip(&self.weights)
            .map(|(c, weight)| weight * project(c));
        self.intercept + parts.sum::<f64>()
    }

    /// The parts are differences: what the prediction loses when parser and control, then only the
    /// control, are taken away.
    pub(super) fn predict(&self, values: &Values) -> Predicted {
        let baseline = self.value(&values.without(&[Part::Parser, Part::Control, Part::Extras]));
        let with_parser = self.value(&values.without(&[Part::Control, Part::Extras]));
        let with_control = self.value(&values.without(&[Part::Extras]));
        Predicted {
            baseline,
            parser: with_parser - baseline,
            control: with_control - with_parser,
            extras: self.value(values) - with_control,
        }
    }
}
