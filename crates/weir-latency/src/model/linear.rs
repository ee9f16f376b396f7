//! Weighted sums.

use super::{Feature, ModelError, Part, Predicted, Values};
use serde::{Deserialize, Serialize};

/// A weighted sum of features, one for each port speed or one for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// The sums.
    pub ports: Vec<PortTerms>,
}

/// The terms of a port speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortTerms {
    /// The speed in Gbit/s; `null`: the terms hold for every speed.
    pub gbps: Option<u32>,
    /// What is added up.
    pub terms: Vec<Term>,
}

/// A feature times a coefficient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The feature.
    pub feature: Feature,
    /// The coefficient, in the model's unit per unit of the feature.
    pub coefficient: f64,
    /// The part of the prediction; without it that of the feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

impl Linear {
    pub(super) fn check(&self) -> Result<(), ModelError> {
        let damaged = |what: String| Err(ModelError::Damaged { what });
        if self.ports.is_empty() {
            return damaged("`ports` is empty".to_owned());
        }
        for (i, port) in self.ports.iter().enumerate() {
            if self.ports[..i].iter().any(|other| other.gbps == port.gbps) {
                return damaged(format!("two lists of terms for the port speed {:?}", port.gbps));
            }
            if port.gbps.is_none() && self.ports.len() > 1 {
                return damaged("terms for every speed beside terms for one".to_owned());
            }
            if let Some(bad) = port.terms.iter().find(|t| !t.coefficient.is_finite()) {
                return damaged(format!("the coefficient of `{}` is not finite", bad.feature.name()));
            }
            let key = |t: &Term| (t.feature, t.part.unwrap_or_else(|| t.feature.part()));
            for (at, term) in port.terms.iter().enumerate() {
                if port.terms[..at].iter().any(|other| key(other) == key(term)) {
                    return damaged(format!("two terms of `{}` for one port and part", term.feature.name()));
                }
            }
        }
        Ok(())
    }

    pub(super) fn features(&self) -> Vec<Feature> {
        let all = self.ports.iter().flat_map(|p| p.terms.iter().map(|t| t.feature));
        let mut features: Vec<Feature> = all.collect();
        features.sort_unstable();
        features.dedup();
        features
    }

    /// The terms of a port speed.
    #[must_use]
    pub fn terms(&self, gbps: u32) -> &[Term] {
        let fits = |p: &&PortTerms| p.gbps.is_none() || p.gbps == Some(gbps);
        self.ports.iter().find(fits).map_or(&[], |p| &p.terms)
    }

    pub(super) fn predict(&self, values: &Values) -> Predicted {
        let mut predicted = Predicted::default();
        for term in self.terms(values.port_gbps) {
            let part = term.part.unwrap_or_else(|| term.feature.part());
            predicted.add(part, term.coefficient * values.get(term.feature));
        }
        predicted
    }
}
