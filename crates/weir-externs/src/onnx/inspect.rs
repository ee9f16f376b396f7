//! Which models are accepted: feed-forward networks with one input and one output.
//!
//! The checks stand before the library that executes models, so that neither its memory nor its
//! time depends on anything but the size of the file. They rest on two invariants:
//!
//! - A tensor of the file has as many elements as the file has data for it.
//! - Every operator depends on the input, so that nothing is computed while a model is loaded; the
//!   sizes of results are checked before the first is.

use std::collections::HashSet;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::tensor_shape_proto::dimension;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, type_proto};

/// Most operators of a model.
const MAX_NODES: usize = 1024;
/// Most fields of the input.
pub(super) const MAX_INPUTS: usize = 256;

/// The operators that are accepted, in the order of their names.
pub(super) const OPERATORS: &[&str] = &[
    "Abs",
    "Add",
    "BatchNormalization",
    "Clip",
    "Concat",
    "Constant",
    "Div",
    "Elu",
    "Exp",
    "Flatten",
    "Gemm",
    "HardSigmoid",
    "Identity",
    "LeakyRelu",
    "Log",
    "MatMul",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "Pow",
    "Relu",
    "Reshape",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Tanh",
    "Transpose",
    "Unsqueeze",
];

/// The input of a model that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    /// Numbers of which it consists.
    pub(super) count: usize,
    /// Its shape: `[count]`, or `[1, count]`.
    pub(super) shape: Vec<usize>,
}

/// Checks a model.
///
/// # Errors
/// What is found and what is expected.
pub(super) fn check(model: &ModelProto) -> Result<Input, String> {
    let Some(graph) = &model.graph else {
        return Err("it has no graph, so it is no ONNX model".into());
    };
    if !graph.sparse_initializer.is_empty() {
        return Err("it has sparse tensors, but only dense ones are possible".into());
    }
    for tensor in &graph.initializer {
        check_tensor(tensor)?;
    }
    let input = input(graph)?;
    check_nodes(graph)?;
    match graph.output.len() {
        1 => Ok(input),
        count => Err(format!(
            "it has {count} outputs, but one is expected: the scores of the classes"
        )),
    }
}

/// The one input that is not a tensor of the file.
fn input(graph: &GraphProto) -> Result<Input, String> {
    let given: HashSet<&str> = graph.initializer.iter().map(|t| t.name.as_str()).collect();
    let inputs: Vec<&ValueInfoProto> = graph
        .input
        .iter()
        .filter(|i| !given.contains(i.name.as_str()))
        .collect();
    let [input] = inputs.as_slice() else {
        return Err(format!(
            "it has {} inputs, but one is expected: the features",
            inputs.len()
        ));
    };
    let Some(type_proto::Value::TensorType(tensor)) = input.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
        return Err(format!("its input `{}` is no tensor", input.name));
    };
    if tensor.elem_type != DataType::Float as i32 {
        return Err(format!(
            "its input `{}` has elements of type {}, but float is expected",
            input.name,
            type_name(tensor.elem_type)
        ));
    }
    let dimensions = tensor.shape.as_ref().map_or(&[][..], |s| &s.dim);
    let sizes: Vec<Option<i64>> = dimensions
        .iter()
        .map(|d| match d.value {
            Some(dimension::Value::DimValue(size)) => Some(size),
            Some(dimension::Value::DimParam(_)) | None => None,
        })
        .collect();
    let (Some(&Some(count)), 1 | 2) = (sizes.last(), sizes.len()) else {
        return Err(wrong_shape(&input.name, &sizes));
    };
    // A first dimension that is open is the batch: here, one packet.
    if sizes.len() == 2 && !matches!(sizes[0], None | Some(1)) {
        return Err(wrong_shape(&input.name, &sizes));
    }
    let count = usize::try_from(count).ok().filter(|c| (1..=MAX_INPUTS).contains(c));
    let count = count.ok_or_else(|| wrong_shape(&input.name, &sizes))?;
    let mut shape = vec![1; sizes.len()];
    shape[sizes.len() - 1] = count;
    Ok(Input { count, shape })
}

fn wrong_shape(name: &str, sizes: &[Option<i64>]) -> String {
    let sizes: Vec<String> = sizes.iter().map(|s| s.map_or("?".into(), |s| s.to_string())).collect();
    format!(
        "its input `{name}` has the shape [{}], but [n] or [1, n] with n from 1 to {MAX_INPUTS} is expected",
        sizes.join(", ")
    )
}

/// Checks operators, in the order in which the file has them.
fn check_nodes(graph: &GraphProto) -> Result<(), String> {
    if graph.node.len() > MAX_NODES {
        return Err(format!(
            "it has {} operators, but at most {MAX_NODES} are possible",
            graph.node.len()
        ));
    }
    let mut constants: HashSet<&str> = graph.initializer.iter().map(|t| t.name.as_str()).collect();
    for node in &graph.node {
        let is_standard = matches!(node.domain.as_str(), "" | "ai.onnx");
        if !is_standard || OPERATORS.binary_search(&node.op_type.as_str()).is_err() {
            return Err(format!(
                "it has the operator `{}`, which is none of those that are possible: {}",
                operator_name(node),
                OPERATORS.join(", ")
            ));
        }
        for attribute in &node.attribute {
            if attribute.g.is_some() || !attribute.graphs.is_empty() || attribute.sparse_tensor.is_some() {
                return Err(format!(
                    "attribute `{}` of `{}` is a graph or sparse, which is not possible",
                    attribute.name, node.op_type
                ));
            }
            attribute
                .t
                .iter()
                .chain(&attribute.tensors)
                .try_for_each(check_tensor)?;
        }
        let mut inputs = node.input.iter().filter(|name| !name.is_empty());
        if node.op_type == "Constant" {
            constants.extend(node.output.iter().map(String::as_str));
        } else if inputs.all(|name| constants.contains(name.as_str())) {
            return Err(format!(
                "operator `{}` with the result `{}` does not depend on the input: export the model \
                 with its constants folded",
                node.op_type,
                node.output.first().map_or("", String::as_str)
            ));
        }
    }
    Ok(())
}

fn operator_name(node: &NodeProto) -> String {
    match node.domain.as_str() {
        "" => node.op_type.clone(),
        domain => format!("{domain}.{}", node.op_type),
    }
}

/// Checks that a tensor's data are in the file, and as many as its dimensions say.
fn check_tensor(tensor: &TensorProto) -> Result<(), String> {
    let name = &tensor.name;
    if tensor.data_location == Some(DataLocation::External as i32) || !tensor.external_data.is_empty() {
        return Err(format!(
            "the data of its tensor `{name}` are in another file: export the model as one file"
        ));
    }
    let (element_bytes, listed) = match DataType::try_from(tensor.data_type) {
        Ok(DataType::Float) => (4, tensor.float_data.len()),
        Ok(DataType::Int32) => (4, tensor.int32_data.len()),
        Ok(DataType::Int64) => (8, tensor.int64_data.len()),
        _ => {
            return Err(format!(
                "its tensor `{name}` has elements of type {}, but float, int32 or int64 is expected",
                type_name(tensor.data_type)
            ));
        }
    };
    let mut sizes = tensor.dims.iter().map(|d| usize::try_from(*d).ok());
    let expected = sizes.try_fold(1_usize, |product, size| product.checked_mul(size?));
    let found = match tensor.raw_data.len() {
        0 => Some(listed),
        bytes if bytes % element_bytes == 0 => Some(bytes / element_bytes),
        _ => None,
    };
    match (expected, found) {
        (Some(expected), Some(found)) if expected == found => Ok(()),
        _ => Err(format!(
            "its tensor `{name}` has the dimensions {:?}, but {} bytes of data",
            tensor.dims,
            tensor.raw_data.len().max(listed * element_bytes)
        )),
    }
}

fn type_name(code: i32) -> String {
    match DataType::try_from(code) {
        Ok(known) => known.as_str_name().to_lowercase(),
        Err(_) => format!("number {code}"),
    }
}
