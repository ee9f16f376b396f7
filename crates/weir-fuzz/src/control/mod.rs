//! Requests for the control-plane servers: well-formed ones with values at random, and such with
//! bytes that were changed.
//!
//! An input is a script, a list of calls and messages. It is run against a server of its own, in
//! process and without sockets, but through everything of gRPC that comes before weir's code. The
//! oracle: no task panics, every call is answered, and a request that was refused as a whole leaves
//! the state as it was.

mod bfrt;
mod p4runtime;
mod script;

pub(crate) use bfrt::{input as bfrt_input, run as bfrt};
pub(crate) use p4runtime::{input as p4runtime_input, run as p4runtime};

use crate::rng::Rng;
use std::sync::Arc;
use weir_compiler::{Options, compile_source};
use weir_ir::Program;

/// Compiles a program that is part of weir.
fn compiled(source: &str) -> Arc<Program> {
    let compilation = compile_source("fuzz.p4", source, &Options::default(), weir_arch::targets());
    Arc::new(compilation.program.expect("the program of the target compiles"))
}

/// Changes an encoded message, or leaves it alone.
fn mangled(rng: &mut Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    if rng.chance(75) {
        return bytes;
    }
    for _ in 0..rng.between(1, 4) {
        let at = rng.below(bytes.len());
        match rng.below(6) {
            _ if bytes.is_empty() => bytes.push(rng.number() as u8),
            0 => bytes[at] = rng.number() as u8,
            1 => bytes[at] ^= 1 << rng.below(8),
            2 => bytes.insert(at, rng.number() as u8),
            3 => bytes.truncate(at),
            4 => drop(bytes.remove(at)),
            _ => {
                let end = (at + rng.below(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = rng.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
    bytes
}

/// A number in the bytes of its width, mostly a small one, so that requests address the same
/// objects.
fn number(rng: &mut Rng, bits: usize) -> Vec<u8> {
    let length = bits.div_ceil(8).max(1);
    let mut bytes = vec![0; length];
    match rng.below(8) {
        0 => bytes.fill_with(|| rng.number() as u8),
        1 => bytes.fill(0xff),
        _ => bytes[length - 1] = rng.below(4) as u8,
    }
    if let Some(first) = bytes.first_mut()
        && !bits.is_multiple_of(8)
    {
        *first &= (1 << (bits % 8)) - 1;
    }
    bytes
}

/// The same, now and then of a wrong length.
fn odd_number(rng: &mut Rng, bits: usize) -> Vec<u8> {
    match rng.below(24) {
        0 => Vec::new(),
        1 => vec![1; bits.div_ceil(8) + 1],
        2 => vec![rng.number() as u8],
        _ => number(rng, bits),
    }
}
