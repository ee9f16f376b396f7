//! `weir/externs.p4` and this crate say the same.

use super::*;
use shape::{Expected, Shape};
use weir_extern_api::{Extern, Parameter, Signature};
use weir_ir::{Bits, ConstValue, ExternInstance, Loc};

/// The text of the file without comments, and with single spaces.
fn text() -> String {
    let lines = DECLARATIONS.1.lines().map(|l| l.split("//").next().unwrap_or(l));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn shapes_of(extern_type: &object::Type) -> Vec<&'static Shape> {
    let members = (extern_type.make)(1);
    members.methods.iter().map(|(shape, _)| *shape).collect()
}

fn instance(type_name: &str, arguments: Vec<(String, ConstValue)>) -> ExternInstance {
    ExternInstance {
        name: "MyIngress.it".into(),
        type_name: type_name.into(),
        type_arguments: Vec::new(),
        arguments,
        methods: Vec::new(),
        annotations: Vec::new(),
        loc: Loc::default(),
    }
}

#[test]
fn statuses_have_the_names_and_codes_of_the_file() {
    let members: Vec<String> = (0..)
        .zip(Status::ALL)
        .map(|(code, status)| {
            assert_eq!(status.code(), code);
            format!("{} = 8w{code}", status.p4_name())
        })
        .collect();
    let declared = format!("enum bit<8> extern_status_t {{ {} }}", members.join(", "));
    assert!(text().contains(&declared), "{declared}");
}

#[test]
fn every_type_is_declared_as_it_is_checked() {
    for extern_type in TYPES {
        let (name, count) = (extern_type.name, extern_type.count);
        let methods: Vec<String> = shapes_of(extern_type).iter().map(|m| format!("{m};")).collect();
        let declared = format!("extern {name} {{ {name}(bit<32> {count}); {} }}", methods.join(" "));
        assert!(text().contains(&declared), "{declared}");
    }
}

#[test]
fn models_are_declared_as_they_are_checked() {
    let methods: Vec<String> = onnx::METHODS.iter().map(|m| format!("{m};")).collect();
    let name = onnx::TYPE_NAME;
    let declared = format!("extern {name} {{ {name}(string file); {} }}", methods.join(" "));
    assert!(text().contains(&declared), "{declared}");
}

#[test]
fn every_function_is_declared_as_it_is_checked() {
    let functions = functions();
    for (shape, _) in &functions {
        assert!(text().contains(&format!("extern {shape};")), "{shape}");
    }
    let declared = text().matches("extern void").count();
    let without_zstd = if cfg!(feature = "zstd") { 0 } else { 2 };
    assert_eq!(functions.len() + without_zstd, declared);
    // The three types of payloads have no objects. Models have a constructor of their own.
    let types = text().matches("extern ").count() - declared;
    assert_eq!(TYPES.len() + 3 + 1, types);
}

#[test]
fn objects_have_the_methods_that_their_types_declare() {
    let registry = registry();
    for extern_type in TYPES {
        let make = registry.find_type(extern_type.name).expect("registered");
        let three = ConstValue::Int(3.into());
        let object = make(
            &instance(extern_type.name, vec![("keys".into(), three)]),
            registry.files(),
        )
        .expect("an object");
        assert_eq!(object.keys().map(weir_extern_api::Keys::count), Some(3));
        assert!(object.method("read_key").is_none());
        for shape in shapes_of(extern_type) {
            let method = object.method(shape.name).expect("a method");
            assert_eq!(method.check(&signature(shape)), Ok(()));
            check_refusals(shape, &*method);
        }
    }
    for (shape, function) in functions() {
        assert_eq!(function.check(&signature(shape)), Ok(()));
        check_refusals(shape, &*function);
    }
}

/// A signature as a program that includes the file has it.
fn signature(shape: &Shape) -> Signature {
    Signature::new(parameters(shape), &[])
}

fn parameters(shape: &Shape) -> Vec<Parameter> {
    let of = |(name, expected): &(&str, Expected)| match expected {
        Expected::Payload(access) => Parameter::payload(name, *access),
        Expected::In(width) => Parameter::input(name, &[*width]),
        Expected::Fields(_) => Parameter::input(name, &[1, 48, 48, 16]),
        Expected::Out(width) => Parameter::output(name, &[*width]),
        Expected::Status => Parameter::output(name, &[8]),
    };
    shape.parameters.iter().map(of).collect()
}

/// Declarations that differ in one parameter, in the number of parameters or in the result.
fn check_refusals(shape: &Shape, method: &dyn Extern) {
    let refuses = |parameters: Vec<Parameter>, results: &[u32]| {
        let message = method.check(&Signature::new(parameters, results)).expect_err("refused");
        assert!(message.contains(&format!("`{shape}`")), "{message}");
    };
    refuses(parameters(shape), &[8]);
    refuses(parameters(shape)[1..].to_vec(), &[]);
    for (i, (name, expected)) in shape.parameters.iter().enumerate() {
        let mut wrong = vec![Parameter::text(name, "text")];
        match expected {
            Expected::Payload(_) => wrong.push(Parameter::input(name, &[32])),
            Expected::In(width) => {
                wrong.push(Parameter::input(name, &[width + 1]));
                wrong.push(Parameter::input(name, &[*width, *width]));
                wrong.push(Parameter::output(name, &[*width]));
            }
            Expected::Fields(_) => wrong.push(Parameter::output(name, &[8])),
            Expected::Out(width) => {
                wrong.push(Parameter::output(name, &[width - 1]));
                wrong.push(Parameter::input(name, &[*width]));
            }
            Expected::Status => wrong.push(Parameter::output(name, &[16])),
        }
        for parameter in wrong {
            let mut parameters = parameters(shape);
            parameters[i] = parameter;
            refuses(parameters, &[]);
        }
    }
}

#[test]
fn weaker_access_to_the_payload_is_refused() {
    let shape = shapes_of(&TYPES[0])[0];
    let mut parameters = parameters(shape);
    parameters[0] = Parameter::payload("p", weir_extern_api::PayloadAccess::Write);
    assert_eq!(
        shape.check(&Signature::new(parameters, &[])),
        Err(
            "parameter `p` of `seal` is `payload_write` here, but `payload_resize` is expected: \
             `void seal<A>(payload_resize p, in bit<32> key, in bit<96> nonce, in A aad, \
             out extern_status_t status)`"
                .into()
        )
    );
}

#[test]
fn constructors_refuse_what_is_no_count() {
    let registry = registry();
    let make = registry.find_type("aes_gcm").expect("registered");
    let of = |value| make(&instance("aes_gcm", vec![("keys".into(), value)]), registry.files()).err();
    let range = Some("`aes_gcm` can have from 1 to 1048576 keys".to_owned());
    assert_eq!(of(ConstValue::Bits(Bits::new(32, 1 << 20))), None);
    assert_eq!(of(ConstValue::Bits(Bits::new(32, 1 << 21))), range);
    assert_eq!(of(ConstValue::Bits(Bits::new(32, 0))), range);
    assert_eq!(of(ConstValue::Int((-1).into())), range);
    let one_number = Some("the constructor of `aes_gcm` takes one number: `aes_gcm(bit<32> keys)`".to_owned());
    assert_eq!(of(ConstValue::Bool(true)), one_number);
    assert_eq!(
        make(&instance("aes_gcm", Vec::new()), registry.files()).err(),
        one_number
    );
}
