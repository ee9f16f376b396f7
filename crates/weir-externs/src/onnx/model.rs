//! A model, ready to be executed.

use super::inspect::{self, Input};
use crate::Status;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tract_onnx::pb::ModelProto;
use tract_onnx::prelude::*;
use weir_extern_api::Files;

/// The largest file of a model, in bytes.
const MAX_FILE: usize = 4 << 20;
/// Most elements of an intermediate result.
const MAX_ELEMENTS: usize = 1 << 16;
/// Most classes.
const MAX_CLASSES: usize = 256;

/// A model for one set of features at a time.
pub(super) struct Model {
    file: String,
    input: Input,
    plan: Arc<TypedRunnableModel>,
    /// Memory of executions that have ended, for the next ones: as many as threads call at once.
    idle: Mutex<Vec<TypedSimpleState>>,
}

/// The output of a model. All are numbers: none is NaN.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scores(TVec<f32>);

impl Model {
    /// Reads and prepares the model that a program names.
    ///
    /// # Errors
    /// The file, what is wrong with it, and what is expected.
    pub(super) fn load(file: &str, files: &dyn Files) -> Result<Self, String> {
        let bytes = files.read(file, MAX_FILE).map_err(|error| error.to_string())?;
        Model::from_bytes(file, &bytes).map_err(|problem| format!("the model `{file}` cannot be used: {problem}"))
    }

    fn from_bytes(file: &str, bytes: &[u8]) -> Result<Self, String> {
        let proto = onnx().proto_model_for_read(&mut &*bytes);
        let proto = proto.map_err(|error| format!("it is no ONNX file, or damaged: {error:#}"))?;
        Model::from_proto(file, &proto)
    }

    pub(super) fn from_proto(file: &str, proto: &ModelProto) -> Result<Self, String> {
        let input = inspect::check(proto)?;
        // A model that the checks accept and the library does not expect must not end the switch.
        let prepared = catch_unwind(AssertUnwindSafe(|| prepare(proto, &input)));
        let plan = prepared.unwrap_or_else(|_| Err("the library that executes models panics on it".into()))?;
        Ok(Model {
            file: file.to_owned(),
            input,
            plan,
            idle: Mutex::new(Vec::new()),
        })
    }

    /// The path that the program gives.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// How many features it takes.
    pub(super) fn inputs(&self) -> usize {
        self.input.count
    }

    fn idle(&self) -> MutexGuard<'_, Vec<TypedSimpleState>> {
        // A panic cannot leave the list half changed.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The scores for these features.
    ///
    /// # Errors
    /// `Unavailable`: the library fails. `OutOfRange`: a score is not a number.
    pub(super) fn run(&self, features: impl Iterator<Item = f32>) -> Result<Scores, Status> {
        let features: TVec<f32> = features.collect();
        let unavailable = |_| Status::Unavailable;
        let input = Tensor::from_shape(&self.input.shape, &features).map_err(unavailable)?;
        let idle = self.idle().pop();
        let mut state = idle.map_or_else(|| self.plan.spawn(), Ok).map_err(unavailable)?;
        // The state of a failed execution is dropped.
        let outputs = state.run(tvec!(input.into())).map_err(unavailable)?;
        self.idle().push(state);
        let output = outputs.first().ok_or(Status::Unavailable)?;
        let values = output.to_plain_array_view::<f32>().map_err(unavailable)?;
        let scores: TVec<f32> = values.iter().copied().collect();
        match scores.iter().any(|score| score.is_nan()) {
            true => Err(Status::OutOfRange),
            false => Ok(Scores(scores)),
        }
    }
}

/// Checks the sizes of results, and makes the plan.
fn prepare(proto: &ModelProto, input: &Input) -> Result<Arc<TypedRunnableModel>, String> {
    let sentence = |error: TractError| format!("{error:#}").replace('\n', " ");
    let reader = onnx().with_ignore_output_shapes(true).with_ignore_value_info(true);
    let model = reader.model_for_proto_model(proto).map_err(sentence)?;
    let fact = f32::fact(&input.shape).into();
    let model = model.with_input_fact(0, fact).map_err(sentence)?;
    let model = model.into_typed().map_err(sentence)?;
    for node in model.nodes() {
        for output in &node.outputs {
            let elements = output.fact.shape.as_concrete().map(elements);
            if elements.flatten().is_none_or(|count| count > MAX_ELEMENTS) && output.fact.konst.is_none() {
                return Err(format!(
                    "the result of `{}` has the shape {:?}, but at most {MAX_ELEMENTS} elements are possible",
                    node.name, output.fact.shape
                ));
            }
        }
    }
    let output = model.output_fact(0).map_err(sentence)?;
    let count = output.shape.as_concrete().and_then(elements).unwrap_or(0);
    if output.datum_type != f32::datum_type() || !(1..=MAX_CLASSES).contains(&count) {
        return Err(format!(
            "its output is {output:?}, but float with 1 to {MAX_CLASSES} scores is expected"
        ));
    }
    let optimized = model.into_optimized().map_err(sentence)?;
    optimized.into_runnable().map_err(sentence)
}

/// The elements of a tensor of these dimensions.
fn elements(sizes: &[usize]) -> Option<usize> {
    sizes
        .iter()
        .try_fold(1_usize, |product, size| product.checked_mul(*size))
}

impl Scores {
    /// The class with the greatest score, the first of several, and its score.
    pub(super) fn best(&self) -> (usize, f32) {
        let classes = (0..).map_while(|class| Some((class as usize, self.of(class)?)));
        let best = classes.reduce(|best, other| if other.1 > best.1 { other } else { best });
        best.unwrap_or_default()
    }

    /// The score of a class. A single score is that of class 1, and class 0 has the rest.
    pub(super) fn of(&self, class: u64) -> Option<f32> {
        match (self.0.as_slice(), class) {
            ([score], 0) => Some(1.0 - score),
            ([score], 1) => Some(*score),
            ([_], _) => None,
            (scores, class) => scores.get(usize::try_from(class).ok()?).copied(),
        }
    }
}
