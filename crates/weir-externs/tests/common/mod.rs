//! Calls of externs as a switch makes them.
#![allow(dead_code, reason = "not every test uses all")]

use std::sync::Arc;
use weir_extern_api::{Call, Extern, Object, Outcome, Parameter, Payload, PayloadAccess, Signature};
use weir_externs::Status;
use weir_ir::{Bits, ConstValue, ExternInstance, Loc};

/// Room after a payload, unless a test says otherwise.
pub const ROOM: usize = 64;
const HEADERS: [u8; 14] = [0x55; 14];

/// A parameter, with its value.
#[derive(Debug, Clone, Copy)]
pub enum Arg<'a> {
    /// The payload.
    Payload(PayloadAccess),
    /// A number and its width in bits.
    In(u32, u128),
    /// One field per byte.
    Bytes(&'a [u8]),
    /// The width in bits.
    Out(u32),
}

/// The payload, which may grow.
pub const RESIZE: Arg<'static> = Arg::Payload(PayloadAccess::Resize);

/// What a call left behind.
#[derive(Debug, PartialEq, Eq)]
pub struct Called {
    pub outputs: Vec<Bits>,
    pub payload: Vec<u8>,
}

impl Called {
    /// The last output.
    pub fn status(&self) -> Status {
        let code = self.outputs.last().and_then(Bits::to_u64);
        let found = Status::ALL.iter().find(|s| Some(u64::from(s.code())) == code);
        *found.expect("a status")
    }

    /// The payload of a call that did its work.
    pub fn ok(self) -> Vec<u8> {
        assert_eq!(self.status(), Status::Ok);
        self.payload
    }
}

/// An instance of a type with a count.
pub fn instance(type_name: &str, count: u32) -> Arc<dyn Object> {
    let declared = ExternInstance {
        name: "MyIngress.it".into(),
        type_name: type_name.into(),
        type_arguments: Vec::new(),
        arguments: vec![("count".into(), ConstValue::Bits(Bits::new(32, count.into())))],
        methods: Vec::new(),
        annotations: Vec::new(),
        loc: Loc::default(),
    };
    let registry = weir_externs::registry();
    let constructor = registry.find_type(type_name).expect("a type");
    constructor(&declared, registry.files()).expect("an instance")
}

/// An instance with this one key.
pub fn with_key(type_name: &str, key: &[u8]) -> Arc<dyn Object> {
    let object = instance(type_name, 1);
    object.keys().expect("keys").set(0, key).expect("a key of this length");
    object
}

/// Calls a method.
pub fn method(object: &Arc<dyn Object>, name: &str, arguments: &[Arg<'_>], payload: &[u8]) -> Called {
    let method = object.method(name).expect("a method");
    call(&*method, arguments, payload, ROOM)
}

/// Calls a function with this much room after the payload.
pub fn function(name: &str, arguments: &[Arg<'_>], payload: &[u8], room: usize) -> Called {
    let registry = weir_externs::registry();
    call(
        &**registry.find_function(name).expect("a function"),
        arguments,
        payload,
        room,
    )
}

/// Makes a call, and checks what holds for each.
pub fn call(callee: &dyn Extern, arguments: &[Arg<'_>], payload: &[u8], room: usize) -> Called {
    let parameter = |argument: &Arg<'_>| match argument {
        Arg::Payload(access) => Parameter::payload("p", *access),
        Arg::In(width, _) => Parameter::input("in", &[*width]),
        Arg::Bytes(bytes) => Parameter::input("data", &vec![8; bytes.len()]),
        Arg::Out(width) => Parameter::output("out", &[*width]),
    };
    let signature = Signature::new(arguments.iter().map(parameter).collect(), &[]);
    callee.check(&signature).expect("a declaration that fits");
    let mut words = Vec::new();
    for argument in arguments {
        match argument {
            Arg::Payload(_) => {}
            Arg::In(width, value) => words.extend(words_of(*width, *value)),
            Arg::Bytes(bytes) => words.extend(bytes.iter().map(|b| u64::from(*b))),
            // Externs have to write all of it.
            Arg::Out(width) => words.extend(vec![u64::MAX >> ((64 - width % 64) % 64); width.div_ceil(64) as usize]),
        }
    }
    let end = HEADERS.len() + payload.len();
    let mut memory = [&HEADERS[..], payload, &vec![0xee; room]].concat();
    let placed = Payload::new(&mut memory, HEADERS.len(), end).expect("inside");
    let mut call = Call::new(&signature, &mut words, Some(placed));
    assert_eq!(callee.call(&mut call), Outcome::Continue);
    let output = |(i, argument): (usize, &Arg<'_>)| match argument {
        Arg::Out(_) => call.bits(i, 0),
        Arg::Payload(_) | Arg::In(..) | Arg::Bytes(_) => None,
    };
    let called = Called {
        outputs: arguments.iter().enumerate().filter_map(output).collect(),
        payload: call.payload().to_vec(),
    };
    assert!(called.payload.len() <= payload.len() + callee.growth(payload.len()));
    assert_eq!(memory[..HEADERS.len()], HEADERS, "headers are not the payload");
    called
}

fn words_of(width: u32, value: u128) -> impl Iterator<Item = u64> {
    [value as u64, (value >> 64) as u64]
        .into_iter()
        .take(width.div_ceil(64) as usize)
}

/// A number of up to 16 bytes, the most significant first.
pub fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The bytes of a text of hexadecimal digits.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Pseudo-random bytes, which do not compress.
pub fn text(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}
