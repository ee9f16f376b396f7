//! Models that are made here: each operator, each form of input and output, and what is refused.

use super::inspect::OPERATORS;
use super::model::Model;
use crate::Status;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::type_proto;
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto,
};

const FLOAT: i32 = DataType::Float as i32;
// `AttributeProto.type` of a number, an integer and a list of integers.
const ATTRIBUTE_FLOAT: i32 = 1;
const ATTRIBUTE_INT: i32 = 2;
const ATTRIBUTE_INTS: i32 = 7;

fn tensor(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: FLOAT,
        float_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn integers(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: vec![values.len() as i64],
        data_type: DataType::Int64 as i32,
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: operator.into(),
        name: output.into(),
        input: inputs.iter().map(|&name| name.into()).collect(),
        output: vec![output.into()],
        ..NodeProto::default()
    }
}

fn attribute(name: &str, kind: i32) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: kind,
        ..AttributeProto::default()
    }
}

fn float_attribute(name: &str, f: f32) -> AttributeProto {
    AttributeProto {
        f,
        ..attribute(name, ATTRIBUTE_FLOAT)
    }
}

fn int_attribute(name: &str, i: i64) -> AttributeProto {
    AttributeProto {
        i,
        ..attribute(name, ATTRIBUTE_INT)
    }
}

fn ints_attribute(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto {
        ints: ints.to_vec(),
        ..attribute(name, ATTRIBUTE_INTS)
    }
}

/// A tensor of float that is not in the file; a size that is `None` is open.
fn value(name: &str, sizes: &[Option<i64>]) -> ValueInfoProto {
    let dim = |size: &Option<i64>| Dimension {
        value: Some(match size {
            Some(size) => dimension::Value::DimValue(*size),
            None => dimension::Value::DimParam("batch".into()),
        }),
        ..Dimension::default()
    };
    let tensor = type_proto::Tensor {
        elem_type: FLOAT,
        shape: Some(TensorShapeProto {
            dim: sizes.iter().map(dim).collect(),
        }),
    };
    ValueInfoProto {
        name: name.into(),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}

/// A model from `x` to `y`.
fn model(shape: &[Option<i64>], nodes: Vec<NodeProto>, tensors: Vec<TensorProto>) -> ModelProto {
    ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: 13,
        }],
        graph: Some(GraphProto {
            node: nodes,
            initializer: tensors,
            input: vec![value("x", shape)],
            output: vec![value("y", &[])],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

fn run(model: &Model, features: &[f32]) -> Result<Vec<f32>, Status> {
    let scores = model.run(features.iter().copied())?;
    Ok((0..).map_while(|class| scores.of(class)).collect())
}

const X: [f32; 3] = [0.5, 2.0, 3.0];

/// The function of operators that need nothing but their input.
fn of_each(operator: &str) -> Option<fn(f32) -> f32> {
    Some(match operator {
        "Abs" => f32::abs,
        "Elu" => |x| if x < 0.0 { x.exp() - 1.0 } else { x },
        "Exp" => f32::exp,
        "Flatten" | "Identity" => |x| x,
        "HardSigmoid" => |x| (0.2 * x + 0.5).clamp(0.0, 1.0),
        "LeakyRelu" => |x| if x < 0.0 { 0.01 * x } else { x },
        "Log" => f32::ln,
        "Neg" => |x| -x,
        "Relu" => |x| x.max(0.0),
        "Selu" => |x| 1.050_701 * if x < 0.0 { 1.673_263_2 * (x.exp() - 1.0) } else { x },
        "Sigmoid" => |x| 1.0 / (1.0 + (-x).exp()),
        "Softplus" => |x| x.exp().ln_1p(),
        "Sqrt" => f32::sqrt,
        "Tanh" => f32::tanh,
        _ => return None,
    })
}

/// The function of operators that take a second operand.
fn of_pair(operator: &str) -> Option<fn(f32, f32) -> f32> {
    Some(match operator {
        "Add" => |x, y| x + y,
        "Div" => |x, y| x / y,
        "Max" => f32::max,
        "Min" => f32::min,
        "Mul" => |x, y| x * y,
        "Pow" => f32::powf,
        "Sub" => |x, y| x - y,
        _ => return None,
    })
}

/// Operators that are neither: nodes, tensors, and the expected output for [`X`].
fn special(operator: &str) -> (Vec<NodeProto>, Vec<TensorProto>, Vec<f32>) {
    let one = |inputs: &[&str]| vec![node(operator, inputs, "y")];
    let with = |inputs: &[&str], attribute: AttributeProto| {
        let mut node = node(operator, inputs, "y");
        node.attribute.push(attribute);
        vec![node]
    };
    let weights = || tensor("w", &[3, 2], &[1.0, 0.0, 0.5, 1.0, 0.0, -1.0]);
    let three = |name: &str, values: [f32; 3]| tensor(name, &[3], &values);
    match operator {
        "BatchNormalization" => {
            let tensors = vec![
                three("s", [1.0, 2.0, 1.0]),
                three("b", [0.0, 1.0, 0.0]),
                three("m", [0.5, 1.0, 1.0]),
                three("v", [1.0, 4.0, 0.25]),
            ];
            let nodes = with(&["x", "s", "b", "m", "v"], float_attribute("epsilon", 1e-9));
            (nodes, tensors, vec![0.0, 2.0, 4.0])
        }
        "Clip" => {
            let bounds = vec![tensor("low", &[], &[1.0]), tensor("high", &[], &[2.5])];
            (one(&["x", "low", "high"]), bounds, vec![1.0, 2.0, 2.5])
        }
        "Concat" => {
            let nodes = with(&["x", "x"], int_attribute("axis", 1));
            (nodes, Vec::new(), [X, X].concat())
        }
        "Constant" => {
            let mut constant = node("Constant", &[], "c");
            constant.attribute.push(AttributeProto {
                t: Some(tensor("", &[1], &[4.0])),
                ..attribute("value", 4)
            });
            let nodes = vec![constant, node("Add", &["x", "c"], "y")];
            (nodes, Vec::new(), vec![4.5, 6.0, 7.0])
        }
        "Gemm" => {
            let tensors = vec![weights(), tensor("b", &[2], &[1.0, -1.0])];
            (one(&["x", "w", "b"]), tensors, vec![2.5, -2.0])
        }
        "MatMul" => (one(&["x", "w"]), vec![weights()], vec![1.5, -1.0]),
        "Reshape" => (one(&["x", "s"]), vec![integers("s", &[3, 1])], X.to_vec()),
        "Unsqueeze" => (one(&["x", "a"]), vec![integers("a", &[2])], X.to_vec()),
        "Squeeze" => (one(&["x", "a"]), vec![integers("a", &[0])], X.to_vec()),
        "Softmax" => {
            let sum: f32 = X.iter().map(|x| x.exp()).sum();
            (
                with(&["x"], int_attribute("axis", 1)),
                Vec::new(),
                X.map(|x| x.exp() / sum).to_vec(),
            )
        }
        "Transpose" => (with(&["x"], ints_attribute("perm", &[1, 0])), Vec::new(), X.to_vec()),
        other => panic!("no test for {other}"),
    }
}

#[test]
fn every_operator_computes_what_it_stands_for() {
    assert!(OPERATORS.is_sorted());
    for operator in OPERATORS {
        let (nodes, tensors, expected) = if let Some(function) = of_each(operator) {
            (vec![node(operator, &["x"], "y")], Vec::new(), X.map(function).to_vec())
        } else if let Some(function) = of_pair(operator) {
            let other = [2.0, 0.5, 3.0];
            let expected = X.iter().zip(other).map(|(x, y)| function(*x, y)).collect();
            (
                vec![node(operator, &["x", "o"], "y")],
                vec![tensor("o", &[3], &other)],
                expected,
            )
        } else {
            special(operator)
        };
        let proto = model(&[Some(1), Some(3)], nodes, tensors);
        let model = Model::from_proto("m", &proto).unwrap_or_else(|error| panic!("{operator}: {error}"));
        let found = run(&model, &X).unwrap_or_else(|status| panic!("{operator}: {status:?}"));
        assert_eq!(found.len(), expected.len(), "{operator}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                (found - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                "{operator}: {found} {expected}"
            );
        }
    }
}

#[test]
fn inputs_have_one_dimension_or_a_batch_of_one() {
    let relu = || vec![node("Relu", &["x"], "y")];
    for shape in [&[Some(2)][..], &[Some(1), Some(2)], &[None, Some(2)]] {
        let model = Model::from_proto("m", &model(shape, relu(), Vec::new())).expect("accepted");
        assert_eq!(run(&model, &[1.0, 2.0]), Ok(vec![1.0, 2.0]));
    }
    for (shape, found) in [
        (&[][..], "[]"),
        (&[None][..], "[?]"),
        (&[Some(2), Some(2)], "[2, 2]"),
        (&[Some(1), None], "[1, ?]"),
        (&[Some(1), Some(1), Some(2)], "[1, 1, 2]"),
        (&[Some(257)], "[257]"),
        (&[Some(0)], "[0]"),
        (&[Some(-1)], "[-1]"),
    ] {
        let error = Model::from_proto("m", &model(shape, relu(), Vec::new()))
            .err()
            .expect("refused");
        let expected =
            format!("its input `x` has the shape {found}, but [n] or [1, n] with n from 1 to 256 is expected");
        assert_eq!(error, expected);
    }
}

#[test]
fn a_single_score_is_that_of_class_1_and_ties_go_to_the_first_class() {
    let sigmoid = model(&[Some(1)], vec![node("Sigmoid", &["x"], "y")], Vec::new());
    let one = Model::from_proto("m", &sigmoid).expect("accepted");
    assert_eq!(run(&one, &[0.0]), Ok(vec![0.5, 0.5]));
    assert_eq!(one.run([0.0].into_iter()).expect("scores").best(), (0, 0.5));
    assert_eq!(one.run([9.0].into_iter()).expect("scores").best().0, 1);
    let same = model(&[Some(3)], vec![node("Identity", &["x"], "y")], Vec::new());
    let three = Model::from_proto("m", &same).expect("accepted");
    let best = |features: [f32; 3]| three.run(features.into_iter()).expect("scores").best();
    assert_eq!(best([1.0, 3.0, 3.0]), (1, 3.0));
    assert_eq!(three.run([f32::NAN, 1.0, 1.0].into_iter()), Err(Status::OutOfRange));
}

/// The message of a model that is refused.
fn refusal(change: impl FnOnce(&mut GraphProto)) -> String {
    let weights = tensor("w", &[2, 2], &[1.0; 4]);
    let mut proto = model(
        &[Some(1), Some(2)],
        vec![node("MatMul", &["x", "w"], "y")],
        vec![weights],
    );
    assert!(Model::from_proto("m", &proto).is_ok());
    change(proto.graph.as_mut().expect("a graph"));
    Model::from_proto("m", &proto).err().expect("refused")
}

#[test]
fn models_of_another_form_are_refused_with_the_reason() {
    let starts = |message: String, expected: &str| assert!(message.starts_with(expected), "{message}");
    starts(
        refusal(|g| g.node[0].op_type = "Loop".into()),
        "it has the operator `Loop`, which is none of",
    );
    starts(
        refusal(|g| g.node[0].domain = "com.example".into()),
        "it has the operator `com.example.MatMul`",
    );
    starts(
        refusal(|g| g.output.push(value("z", &[]))),
        "it has 2 outputs, but one is expected",
    );
    starts(
        refusal(|g| g.input.push(value("z", &[Some(1)]))),
        "it has 2 inputs, but one is expected",
    );
    starts(
        refusal(|g| g.initializer[0].dims = vec![1 << 40, 1 << 40]),
        "its tensor `w` has the dimensions [1099511627776, 1099511627776], but 16 bytes of data",
    );
    starts(
        refusal(|g| g.initializer[0].data_location = Some(DataLocation::External as i32)),
        "the data of its tensor `w` are in another file",
    );
    starts(
        refusal(|g| g.initializer[0].data_type = DataType::Double as i32),
        "its tensor `w` has elements of type double",
    );
    starts(
        refusal(|g| g.node.insert(0, node("Relu", &["w"], "z"))),
        "operator `Relu` with the result `z` does not depend on the input",
    );
    starts(
        refusal(|g| {
            g.node[0].attribute.push(AttributeProto {
                g: Some(GraphProto::default()),
                ..attribute("body", 5)
            })
        }),
        "attribute `body` of `MatMul` is a graph or sparse",
    );
    starts(
        refusal(|g| g.node.extend((0..1024).map(|i| node("Relu", &["x"], &format!("z{i}"))))),
        "it has 1025 operators, but at most 1024 are possible",
    );
    let message = refusal(|g| g.initializer[0] = tensor("w", &[3, 2], &[1.0; 6]));
    assert!(message.contains("MatMul") || message.contains("y"), "{message}");
    assert!(refusal(|g| g.node[0].input[0] = "missing".into()).contains("missing"));
}

#[test]
fn results_that_would_take_much_memory_are_refused() {
    let column = tensor("c", &[40_000, 1], &[1.0; 40_000]);
    let row = tensor("r", &[1, 40_000], &[1.0; 40_000]);
    let nodes = vec![node("Add", &["x", "c"], "a"), node("Mul", &["a", "r"], "y")];
    let error = Model::from_proto("m", &model(&[Some(1), Some(1)], nodes, vec![column, row])).err();
    let error = error.expect("refused");
    assert!(error.contains("but at most 65536 elements are possible"), "{error}");
    let many = tensor("c", &[257], &[1.0; 257]);
    let nodes = vec![node("Add", &["x", "c"], "y")];
    let error = Model::from_proto("m", &model(&[Some(1)], nodes, vec![many]))
        .err()
        .expect("refused");
    assert!(error.contains("float with 1 to 256 scores is expected"), "{error}");
}
