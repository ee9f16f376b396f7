//! A build without inference says how to get it.
#![cfg(not(feature = "onnx"))]

use weir_ir::{ConstValue, ExternInstance, Loc};

#[test]
fn a_model_is_refused_with_the_build_option() {
    let instance = ExternInstance {
        name: "MyIngress.model".into(),
        type_name: "onnx_model".into(),
        type_arguments: Vec::new(),
        arguments: vec![("file".into(), ConstValue::String("m.onnx".into()))],
        methods: Vec::new(),
        annotations: Vec::new(),
        loc: Loc::default(),
    };
    let registry = weir_externs::registry();
    let made = registry.find_type("onnx_model").expect("a type")(&instance, registry.files());
    assert_eq!(
        made.err().as_deref(),
        Some("this weir is built without inference, which the model `m.onnx` needs: build it with `--features onnx`")
    );
}
