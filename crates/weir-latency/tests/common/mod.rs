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
