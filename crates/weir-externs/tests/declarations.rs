//! `weir/externs.p4` as the compiler sees it.

use std::path::Path;
use weir_compiler::{Options, compile_bytes};
use weir_syntax::preprocess::DiskLoader;
use weir_syntax::render;

const PROGRAM: &str = include_str!("p4/all.p4");

/// What the compiler says of a program.
fn messages(program: &str) -> String {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/include");
    let options = Options {
        include_dirs: vec![include],
        ..Options::default()
    };
    let compiled = compile_bytes("all.p4", program.into(), &options, &DiskLoader, &[]);
    let found: Vec<_> = compiled.diagnostics.list().iter().collect();
    let shown: Vec<_> = found.iter().map(|d| render::short(d, &compiled.sources)).collect();
    shown.join("\n")
}

#[test]
fn a_program_with_every_extern_is_checked_without_a_word() {
    assert_eq!(messages(PROGRAM), "");
}

#[test]
fn arguments_of_other_types_are_refused() {
    for (right, wrong) in [
        ("lz4_compress(payload,", "lz4_compress(bytes,"),
        ("compute_payload(bytes, 1,", "compute_payload(payload, 1,"),
        ("extern_status_t status = extern_status_t.OK", "bit<8> status = 0"),
        ("bit<64> cookie", "bit<32> cookie"),
        ("esp.seal(payload, 5, ", "esp.seal(payload, "),
        ("siphash(1) cookies", "siphash() cookies"),
    ] {
        assert!(PROGRAM.contains(right), "{right}");
        assert!(messages(&PROGRAM.replace(right, wrong)).contains("error"), "{wrong}");
    }
}
