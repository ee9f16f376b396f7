//! Externs that programs of the fuzzer call: pure functions of their inputs and the payload, so
//! that neither the order nor the thread of a call can be seen.

use std::sync::Arc;
use weir_extern_api::{Call, Extern, Object, Outcome, Registry};
use weir_ir::{Bits, ConstValue};

/// Their declarations, one a line, without annotations.
pub(crate) const DECLARATIONS: [&str; 7] = [
    "extern void fuzz_mix(in bit<32> by, inout bit<48> value, out bit<8> fold);",
    "extern void fuzz_wide(in int<20> by, in bool flip, inout bit<200> value);",
    "extern bit<32> fuzz_sum(payload_read data, in bit<32> start);",
    "extern void fuzz_scramble(payload_write data, in bit<16> by, out bit<32> sum);",
    "extern void fuzz_stretch(payload_resize data, in bit<8> by, out bit<16> length);",
    "extern void fuzz_gate(in bit<8> number);",
    "extern fuzz_box { fuzz_box(bit<32> start); void turn(inout bit<64> value); }",
];

/// A function as an extern.
struct Function<F>(F);

impl<F: Fn(&mut Call<'_>) -> Outcome + Send + Sync> Extern for Function<F> {
    fn growth(&self, _payload_bytes: usize) -> usize {
        MOST_GROWTH
    }

    fn call(&self, call: &mut Call<'_>) -> Outcome {
        (self.0)(call)
    }
}

/// The most bytes that a payload grows by.
const MOST_GROWTH: usize = 40;

fn mixed(a: u64, b: u64) -> u64 {
    let z = (a ^ b.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z ^ z >> 29
}

fn sum(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |sum, byte| mixed(sum, u64::from(*byte)))
}

fn mix(call: &mut Call<'_>) -> Outcome {
    let value = mixed(call.get(1), call.get(0));
    call.set(1, value);
    call.set(2, value >> 50);
    Outcome::Continue
}

fn wide(call: &mut Call<'_>) -> Outcome {
    let Some(value) = call.bits(2, 0) else {
        return Outcome::Continue;
    };
    let added = Bits::new(200, u128::from(mixed(call.get(0), 7)) << 60 | 3);
    let value = match call.get(1) {
        0 => value.add(&added),
        _ => value.not().add(&added),
    };
    call.set_bits(2, 0, &value);
    Outcome::Continue
}

fn payload_sum(call: &mut Call<'_>) -> Outcome {
    let sum = sum(call.get(1), call.payload());
    call.set_result(0, sum);
    Outcome::Continue
}

fn scramble(call: &mut Call<'_>) -> Outcome {
    let by = call.get(1);
    for (at, byte) in call.payload_mut().iter_mut().enumerate() {
        *byte ^= mixed(by, at as u64) as u8;
    }
    let sum = sum(by, call.payload());
    call.set(2, sum);
    Outcome::Continue
}

/// Appends or removes some bytes.
fn stretch(call: &mut Call<'_>) -> Outcome {
    let (by, length) = (call.get(1) as usize, call.payload().len());
    let wanted = match by % 3 {
        0 => length.saturating_sub(by),
        _ => length + by % (MOST_GROWTH + 1),
    };
    if call.resize_payload(wanted).is_ok()
        && let Some(behind) = call.payload_mut().get_mut(length..)
    {
        behind.fill(by as u8);
    }
    let length = call.payload().len() as u64;
    call.set(2, length);
    Outcome::Continue
}

fn gate(call: &mut Call<'_>) -> Outcome {
    match call.get(0) % 9 {
        8 => Outcome::Drop,
        _ => Outcome::Continue,
    }
}

/// An object that only has what it was constructed with.
struct Turning(u64);

impl Object for Turning {
    fn method(&self, name: &str) -> Option<Arc<dyn Extern>> {
        let start = self.0;
        (name == "turn").then(|| -> Arc<dyn Extern> {
            Arc::new(Function(move |call: &mut Call<'_>| {
                let value = mixed(call.get(0), start);
                call.set(0, value);
                Outcome::Continue
            }))
        })
    }
}

/// The externs of the fuzzer, and those of weir that keep nothing.
pub(super) fn registry() -> Registry {
    let mut registry = Registry::default();
    let of_weir = weir_externs::registry();
    for name in [
        "busy_cycles",
        "lz4_compress",
        "lz4_decompress",
        "payload_length",
        "payload_truncate",
    ] {
        if let Some(function) = of_weir.find_function(name) {
            registry.function(name, Arc::clone(function));
        }
    }
    registry
        .function("fuzz_mix", Arc::new(Function(mix)))
        .function("fuzz_wide", Arc::new(Function(wide)))
        .function("fuzz_sum", Arc::new(Function(payload_sum)))
        .function("fuzz_scramble", Arc::new(Function(scramble)))
        .function("fuzz_stretch", Arc::new(Function(stretch)))
        .function("fuzz_gate", Arc::new(Function(gate)))
        .object(
            "fuzz_box",
            Arc::new(|instance, _| {
                let start = instance.arguments.first().map(|(_, value)| value);
                let Some(ConstValue::Bits(start)) = start else {
                    return Err("`fuzz_box` is constructed with a number".to_owned());
                };
                Ok(Arc::new(Turning(start.to_u64_saturating())) as Arc<dyn Object>)
            }),
        );
    registry
}
