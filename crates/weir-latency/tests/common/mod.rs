//! Programs for the tests.

use std::path::{Path, PathBuf};
use weir_ir::Program;

/// Names of the paper's test cases as files, and in its tables.
#[allow(dead_code)]
pub const CASES: &[(&str, &str)] = &[
    ("tc1", "TC1"),
    ("tc2", "TC2"),
    ("tc3", "TC3"),
    ("tc4", "TC4"),
    ("tc5", "TC5"),
    ("tc6a", "TC6A"),
    ("tc6b", "TC6B"),
];

#[allow(dead_code)]
pub fn program_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../p4/programs")
        .join(name)
}

#[allow(dead_code)]
pub fn case_path(file: &str) -> PathBuf {
    program_path(&format!("latency/{file}/{file}.p4"))
}

#[allow(dead_code)]
pub fn compile(path: &Path) -> Program {
    let options = weir_compiler::Options::default();
    let compilation = weir_compiler::compile_file(path, &options, weir_arch::targets());
    if let Some(d) = compilation.diagnostics.list().first() {
        panic!("{}: {}", path.display(), d.message);
    }
    compilation.program.unwrap()
}

#[allow(dead_code)]
pub fn compile_text(text: &str) -> Program {
    let options = weir_compiler::Options::default();
    let compilation = weir_compiler::compile_source("test.p4", text, &options, weir_arch::targets());
    if let Some(d) = compilation.diagnostics.list().first() {
        panic!("{}: {text}", d.message);
    }
    compilation.program.unwrap()
}

/// A committed table of the paper: its columns by name.
#[allow(dead_code)]
pub fn paper_table(number: u32) -> Vec<std::collections::HashMap<String, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/table{number}.csv"));
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

/// A program for v1model around a parser's states, headers and an ingress control.
#[allow(dead_code)]
pub fn v1(types: &str, fields: &str, states: &str, ingress: &str, apply: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\n\
         header ethernet_t {{ bit<48> dst; bit<48> src; bit<16> type; }}\n{types}\n\
         struct headers_t {{ ethernet_t ethernet; {fields} }}\n\
         struct meta_t {{ bit<8> a; bit<8> b; bit<8> c; }}\n\
         parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{\n{states}\n}}\n\
         control V(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
         control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{\n{ingress}\n\
         apply {{ {apply} }} }}\n\
         control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}\n\
         control C(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
         control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr); }} }}\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    )
}
