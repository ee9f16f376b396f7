//! The cycle-augmented model: the paper's linear regression, its control term, cycles of the chip,
//! and one fitted number per port speed.

use super::cross_validation::leave_one_case_out;
use super::{FitError, rows_of, speeds, train as train_model};
use crate::data::{Data, Row};
use crate::features::Chip;
use crate::fit::Kind;
use crate::model::{Feature, Form, Linear, Part, PortTerms, Target, Term, Unit, shipped};

/// The model whose terms are corrected.
const PAPER: &str = "paper-lr-lc";

/// What is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Correction {
    /// Nothing.
    None,
    /// A number.
    Constant,
    /// A factor for the whole.
    Ratio,
    /// A slope by packet size.
    PacketSize,
    /// A slope by parser states.
    States,
    /// A slope by bytes of headers.
    HeaderBytes,
}

impl Correction {
    /// All.
    pub const ALL: [Correction; 6] = [
        Correction::None,
        Correction::Constant,
        Correction::Ratio,
        Correction::PacketSize,
        Correction::States,
        Correction::HeaderBytes,
    ];

    fn feature(self) -> Option<Feature> {
        match self {
            Correction::None | Correction::Ratio => None,
            Correction::Constant => Some(Feature::Constant),
            Correction::PacketSize => Some(Feature::PacketSize),
            Correction::States => Some(Feature::States),
            Correction::HeaderBytes => Some(Feature::HeaderBytes),
        }
    }

    /// What it adds, for people.
    fn describe(self) -> &'static str {
        match self {
            Correction::None => "no correction",
            Correction::Constant => "a constant per port speed",
            Correction::Ratio => "a factor per port speed",
            Correction::PacketSize => "a slope by packet size per port speed",
            Correction::States => "a slope by parser states per port speed",
            Correction::HeaderBytes => "a slope by header bytes per port speed",
        }
    }
}

/// Which terms the model has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CyclesVariant {
    /// The paper's control term.
    pub control: bool,
    /// The chip's cycles for TCAMs.
    pub tcam: bool,
    /// The chip's cycles for registers, selectors and filters.
    pub state: bool,
    /// What is fitted.
    pub correction: Correction,
}

impl CyclesVariant {
    /// The one that ships.
    pub const DEFAULT: CyclesVariant = CyclesVariant {
        control: true,
        tcam: true,
        state: true,
        correction: Correction::PacketSize,
    };

    /// Every variant: what a search chooses from.
    #[must_use]
    pub fn all() -> Vec<CyclesVariant> {
        let mut all = Vec::new();
        for flags in 0..8_u8 {
            for correction in Correction::ALL {
                all.push(CyclesVariant {
                    control: flags & 1 != 0,
                    tcam: flags & 2 != 0,
                    state: flags & 4 != 0,
                    correction,
                });
            }
        }
        all
    }

    fn describe(self) -> String {
        let mut parts = vec!["the paper's baseline and parser terms"];
        for (is_there, name) in [
            (self.control, "its control term"),
            (self.tcam, "TCAM cycles"),
            (self.state, "register and selector cycles"),
        ] {
            if is_there {
                parts.push(name);
            }
        }
        parts.push(self.correction.describe());
        parts.join(", ")
    }

    /// The terms before anything is fitted.
    fn terms(self, gbps: Option<u32>) -> Vec<Term> {
        let paper = shipped(PAPER).and_then(|model| match model.form {
            Form::Linear(linear) => Some(linear.terms(gbps.unwrap_or_default()).to_vec()),
            Form::Plp(_) => None,
        });
        let mut terms = paper.unwrap_or_default();
        terms.retain(|t| self.control || t.feature.part() != Part::Control);
        let cycle = 1.0 / Chip::TOFINO.clock_ghz;
        let cycles = [(self.tcam, Feature::TcamCycles), (self.state, Feature::StateCycles)];
        for (_, feature) in cycles.into_iter().filter(|(is_there, _)| *is_there) {
            terms.push(Term {
                feature,
                coefficient: cycle,
                part: None,
            });
        }
        terms
    }
}

fn sum(terms: &[Term], row: &Row) -> f64 {
    terms.iter().map(|t| t.coefficient * row.values.get(t.feature)).sum()
}

/// The terms with the correction that fits these rows best in the sense of least squares.
fn corrected(variant: CyclesVariant, gbps: Option<u32>, rows: &[&Row]) -> Vec<Term> {
    let mut terms = variant.terms(gbps);
    let slope = |value: &dyn Fn(&Row) -> f64, left: &dyn Fn(&Row) -> f64| {
        let products: f64 = rows.iter().map(|r| value(r) * left(r)).sum();
        let squares: f64 = rows.iter().map(|r| value(r) * value(r)).sum();
        if squares > 0.0 { products / squares } else { 0.0 }
    };
    if let Some(feature) = variant.correction.feature() {
        let coefficient = slope(&|r| r.values.get(feature), &|r| r.measured - sum(&terms, r));
        terms.push(Term {
            feature,
            coefficient,
            part: Some(Part::Extras),
        });
    } else if variant.correction == Correction::Ratio {
        let ratio = slope(&|r| sum(&terms, r), &|r| r.measured);
        terms.iter_mut().for_each(|t| t.coefficient *= ratio);
    }
    terms
}

/// Trains a variant, or the one that does best in leave-one-case-out on these rows.
pub(super) fn train(data: &Data, variant: Option<CyclesVariant>) -> Result<(Form, String), FitError> {
    data.require(&[
        Feature::PortGbps,
        Feature::PacketSize,
        Feature::States,
        Feature::HeaderBytes,
        Feature::ExactTablesNarrow,
        Feature::ExactTablesWide,
        Feature::TcamTablesNarrow,
        Feature::TcamTablesWide,
        Feature::TcamCycles,
        Feature::StateCycles,
    ])?;
    if data.unit != Unit::Ns {
        return Err(FitError::Numeric(
            "the cycle-augmented model predicts ns, the data measure cycles",
        ));
    }
    let known = shipped(PAPER).map(|model| model.ports()).unwrap_or_default();
    if let Some(found) = data.ports().into_iter().find(|port| !known.contains(port)) {
        return Err(FitError::Port { found, known });
    }
    let variant = match variant {
        Some(variant) => variant,
        None => search(data)?,
    };
    let port = |gbps: Option<u32>| {
        let rows: Vec<&Row> = rows_of(data, gbps).collect();
        PortTerms {
            gbps,
            terms: corrected(variant, gbps, &rows),
        }
    };
    let ports = speeds(data).into_iter().map(port).collect();
    Ok((Form::Linear(Linear { ports }), variant.describe()))
}

fn search(data: &Data) -> Result<CyclesVariant, FitError> {
    let mut best = (f64::INFINITY, CyclesVariant::DEFAULT);
    for variant in CyclesVariant::all() {
        let kind = Kind::Cycles(Some(variant));
        let validation = leave_one_case_out(data, &|rows| train_model(rows, &kind, "cycles", Target::Tofino))?;
        let error = validation.evaluation.mean_error(None);
        if error < best.0 {
            best = (error, variant);
        }
    }
    Ok(best.1)
}
