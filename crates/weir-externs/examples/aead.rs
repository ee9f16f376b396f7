//! The cost of `aes_gcm`'s `seal` through `Call`, and of ring's own loop, in nanoseconds per
//! packet.
//!
//! `cargo run --release --example aead -p weir-externs`
#![allow(clippy::print_stdout, reason = "it prints a table")]

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use weir_extern_api::{Call, Extern, Parameter, Payload, PayloadAccess, Signature};
use weir_ir::{Bits, ConstValue, ExternInstance, Loc};

const LENGTHS: [usize; 3] = [64, 256, 1400];
const RUNS: usize = 9;
const PACKETS: u32 = 100_000;
const KEY: [u8; 16] = [7; 16];
const HEADERS: usize = 54;
const TAG: usize = 16;

fn main() -> Result<(), String> {
    let seal = seal()?;
    let key = UnboundKey::new(&AES_128_GCM, &KEY).map_err(|_| "a key of 16 bytes")?;
    let ring = LessSafeKey::new(key);
    println!("AES-128-GCM, ns per packet, medians of {RUNS} runs of {PACKETS} packets");
    println!("{:>6} {:>8} {:>8} {:>8}", "bytes", "ring", "extern", "ratio");
    for length in LENGTHS {
        let (mut direct, mut called) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            direct.push(ring_run(&ring, length));
            called.push(extern_run(&*seal, length)?);
        }
        let (direct, called) = (median(direct), median(called));
        let ratio = 100.0 * direct / called;
        println!("{length:>6} {direct:>8.1} {called:>8.1} {ratio:>6.0} %");
    }
    Ok(())
}

/// The method `seal` of an instance with one key.
fn seal() -> Result<Arc<dyn Extern>, String> {
    let instance = ExternInstance {
        name: "MyIngress.gcm".into(),
        type_name: "aes_gcm".into(),
        type_arguments: Vec::new(),
        arguments: vec![("keys".into(), ConstValue::Bits(Bits::new(32, 1)))],
        methods: Vec::new(),
        annotations: Vec::new(),
        loc: Loc::default(),
    };
    let registry = weir_externs::registry();
    let constructor = registry.find_type("aes_gcm").ok_or("no such type")?;
    let object = constructor(&instance, registry.files())?;
    let keys = object.keys().ok_or("no keys")?;
    keys.set(0, &KEY).map_err(|e| e.to_string())?;
    object.method("seal").ok_or_else(|| "no such method".to_owned())
}

fn ring_run(key: &LessSafeKey, length: usize) -> f64 {
    let mut packet = vec![0; HEADERS + length + TAG];
    per_packet(|number| {
        let mut nonce = [0; 12];
        nonce[8..].copy_from_slice(&number.to_be_bytes());
        let mut aad = [0; 8];
        aad[4..].copy_from_slice(&number.to_be_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (text, tag) = packet[HEADERS..].split_at_mut(length);
        if let Ok(made) = key.seal_in_place_separate_tag(nonce, Aad::from(aad), text) {
            tag.copy_from_slice(made.as_ref());
        }
        black_box(&mut packet);
    })
}

fn extern_run(seal: &dyn Extern, length: usize) -> Result<f64, String> {
    let signature = Signature::new(
        vec![
            Parameter::payload("p", PayloadAccess::Resize),
            Parameter::input("key", &[32]),
            Parameter::input("nonce", &[96]),
            Parameter::input("aad", &[32, 32]),
            Parameter::output("status", &[8]),
        ],
        &[],
    );
    seal.check(&signature)?;
    let mut packet = vec![0; HEADERS + length + TAG];
    let mut words = vec![0; signature.words()];
    let mut failures = 0;
    let time = per_packet(|number| {
        words.copy_from_slice(&[0, number.into(), 0, 0, number.into(), 0]);
        let payload = Payload::new(&mut packet, HEADERS, HEADERS + length);
        let mut call = Call::new(&signature, &mut words, payload);
        black_box(seal.call(&mut call));
        failures += call.get(4);
        black_box(&mut packet);
    });
    if failures == 0 {
        Ok(time)
    } else {
        Err("calls failed".into())
    }
}

/// Nanoseconds that `run` takes.
fn per_packet(mut run: impl FnMut(u32)) -> f64 {
    let start = Instant::now();
    (0..PACKETS).for_each(&mut run);
    start.elapsed().as_nanos() as f64 / f64::from(PACKETS)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
