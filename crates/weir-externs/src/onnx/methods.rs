//! The object of an instance, and its methods.

use super::model::{Model, Scores};
use super::{METHODS, SCORE};
use crate::Status;
use crate::shape::Shape;
use std::sync::Arc;
use weir_extern_api::{Call, ConstructError, Extern, Files, Object, Outcome, ParameterKind, Signature};

/// The parameter with the features, of every method.
const FEATURES: usize = 0;
/// The parameter with the class, of every method.
const CLASS: usize = 1;
/// The parameter with the score, of every method.
const SCORE_RESULT: usize = 2;
/// The parameter with the status, of every method.
const STATUS: usize = 3;
/// The widest field: a number beyond has no exact place in the model's arithmetic anyway.
const MAX_FIELD_BITS: u32 = 64;

/// An instance with its model.
pub(crate) struct Inference {
    model: Arc<Model>,
}

impl Inference {
    pub(crate) fn load(file: &str, files: &dyn Files) -> Result<Self, ConstructError> {
        let model = Arc::new(Model::load(file, files)?);
        Ok(Inference { model })
    }
}

impl Object for Inference {
    fn method(&self, name: &str) -> Option<Arc<dyn Extern>> {
        let shape = METHODS.into_iter().find(|shape| shape.name == name)?;
        let run: Run = if name == SCORE.name { score } else { classify };
        let model = Arc::clone(&self.model);
        Some(Arc::new(Method { shape, model, run }))
    }
}

/// Writes the results of a call.
type Run = fn(&mut Call<'_>, &Scores) -> Status;

/// A method of an instance.
struct Method {
    shape: &'static Shape,
    model: Arc<Model>,
    run: Run,
}

impl Extern for Method {
    fn check(&self, signature: &Signature) -> Result<(), String> {
        self.shape.check(signature)?;
        let Some(ParameterKind::Values { widths, .. }) = signature.parameters().get(FEATURES).map(|p| &p.kind) else {
            return Ok(());
        };
        if widths.len() != self.model.inputs() {
            return Err(format!(
                "`features` has {} fields here, but the model `{}` takes {}",
                widths.len(),
                self.model.file(),
                self.model.inputs()
            ));
        }
        match widths.iter().position(|w| *w > MAX_FIELD_BITS) {
            None => Ok(()),
            Some(at) => Err(format!(
                "field {} of `features` has {} bits, but at most {MAX_FIELD_BITS} are possible",
                at + 1,
                widths[at]
            )),
        }
    }

    fn call(&self, call: &mut Call<'_>) -> Outcome {
        let field = |at| call.bits(FEATURES, at).and_then(|bits| bits.to_u64());
        let features = (0..self.model.inputs()).map(|at| field(at).unwrap_or(0) as f32);
        let result = self.model.run(features);
        let status = match result {
            Ok(scores) => (self.run)(call, &scores),
            Err(status) => status,
        };
        if status != Status::Ok {
            // `score` has its class as an input, which a call cannot change.
            call.set(CLASS, 0);
            call.set(SCORE_RESULT, 0);
        }
        call.set(STATUS, status.code().into());
        Outcome::Continue
    }
}

fn classify(call: &mut Call<'_>, scores: &Scores) -> Status {
    let (class, score) = scores.best();
    call.set(CLASS, class as u64);
    call.set(SCORE_RESULT, fixed(score));
    Status::Ok
}

fn score(call: &mut Call<'_>, scores: &Scores) -> Status {
    match scores.of(call.get(CLASS)) {
        Some(score) => {
            call.set(SCORE_RESULT, fixed(score));
            Status::Ok
        }
        None => Status::OutOfRange,
    }
}

/// A score as the program sees it: in units of 1/65536, saturated.
fn fixed(score: f32) -> u64 {
    (score.clamp(0.0, 1.0) * 65_536.0).round().min(65_535.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_rounded_and_saturated() {
        let all = [
            -1.0,
            0.0,
            0.25,
            0.5 / 65_536.0,
            0.4 / 65_536.0,
            65_535.4 / 65_536.0,
            1.0,
            7.0,
        ]
        .map(fixed);
        assert_eq!(all, [0, 0, 16_384, 1, 0, 65_535, 65_535, 65_535]);
    }
}
