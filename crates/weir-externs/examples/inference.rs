//! Time of a call of `onnx_model` with the model of anomaly_filter:
//! `cargo run --release -p weir-externs --features onnx --example inference`.
#![allow(clippy::print_stdout, reason = "it prints a measurement")]

use std::path::Path;
use std::time::Instant;
use weir_extern_api::{Call, Folder, Parameter, Signature};
use weir_ir::{ConstValue, ExternInstance, Loc};

const CALLS: u64 = 100_000;
const RUNS: usize = 7;

fn main() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs/anomaly_filter");
    let instance = ExternInstance {
        name: "MyIngress.model".into(),
        type_name: "onnx_model".into(),
        type_arguments: Vec::new(),
        arguments: vec![("file".into(), ConstValue::String("anomaly_filter.onnx".into()))],
        methods: Vec::new(),
        annotations: Vec::new(),
        loc: Loc::default(),
    };
    let registry = weir_externs::registry();
    let constructor = registry.find_type("onnx_model").ok_or("no such type")?;
    let model = constructor(&instance, &Folder::new(&folder))?;
    let score = model.method("score").ok_or("no such method")?;
    let parameters = vec![
        Parameter::input("features", &[16, 16, 16, 16, 24, 16, 16, 1]),
        Parameter::input("class", &[8]),
        Parameter::output("score", &[16]),
        Parameter::output("status", &[8]),
    ];
    let signature = Signature::new(parameters, &[]);
    score.check(&signature)?;
    let mut words = vec![1; signature.words()];
    let runs = (0..RUNS).map(|_| {
        let started = Instant::now();
        for number in 0..CALLS {
            words[0] = number & 0xffff;
            score.call(&mut Call::new(&signature, &mut words, None));
        }
        started.elapsed().as_nanos() / u128::from(CALLS)
    });
    let best = runs.min().unwrap_or_default();
    println!("{best} ns per call, the best of {RUNS} runs");
    Ok(())
}
