//! Inference of ONNX models.

#[cfg(feature = "onnx")]
mod inspect;
#[cfg(feature = "onnx")]
mod model;
#[cfg(all(test, feature = "onnx"))]
mod tests;

#[cfg(any(test, feature = "onnx"))]
use crate::shape::{Expected, Shape};
use weir_extern_api::{ConstructError, Constructor};
use weir_ir::ExternInstance;
use weir_ir::program::ConstValue;

/// The name of the type in P4.
pub(crate) const TYPE_NAME: &str = "onnx_model";

#[cfg(any(test, feature = "onnx"))]
static CLASSIFY: Shape = Shape {
    name: "classify",
    parameters: &[
        ("features", Expected::Fields("T")),
        ("class", Expected::Out(8)),
        ("score", Expected::Out(16)),
        ("status", Expected::Status),
    ],
};
#[cfg(any(test, feature = "onnx"))]
static SCORE: Shape = Shape {
    name: "score",
    parameters: &[
        ("features", Expected::Fields("T")),
        ("class", Expected::In(8)),
        ("score", Expected::Out(16)),
        ("status", Expected::Status),
    ],
};
/// The methods.
#[cfg(any(test, feature = "onnx"))]
pub(crate) const METHODS: [&Shape; 2] = [&CLASSIFY, &SCORE];

/// The file that the constructor names.
fn file_of(instance: &ExternInstance) -> Result<&str, ConstructError> {
    match instance.arguments.as_slice() {
        [(_, ConstValue::String(file))] => Ok(file),
        _ => Err(format!(
            "the constructor of `{TYPE_NAME}` takes the path of a model: `{TYPE_NAME}(string file)`"
        )),
    }
}

/// Makes the object of an instance.
#[cfg(feature = "onnx")]
pub(crate) fn constructor() -> Constructor {
    use std::sync::Arc;
    Arc::new(|instance, files| {
        let object = methods::Inference::load(file_of(instance)?, files)?;
        Ok(Arc::new(object) as Arc<dyn weir_extern_api::Object>)
    })
}

/// Refuses every instance: the program is right, but this build cannot execute it.
#[cfg(not(feature = "onnx"))]
pub(crate) fn constructor() -> Constructor {
    std::sync::Arc::new(|instance, _| {
        Err(format!(
            "this weir is built without inference, which the model `{}` needs: build it with \
             `--features onnx`",
            file_of(instance)?
        ))
    })
}

#[cfg(feature = "onnx")]
mod methods;
