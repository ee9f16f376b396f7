//! Every bundled program compiles without a word and passes its packet tests, as written and
//! optimised.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_stf::RunOptions;

fn files(folder: &Path, extension: &str, to: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, extension, to);
        } else if path.extension().is_some_and(|e| e == extension) {
            to.push(path);
        }
    }
}

fn programs() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs"),
        "p4",
        &mut found,
    );
    found
}

/// Whether this build executes a program: some need externs that are optional.
fn is_executable(path: &Path) -> bool {
    cfg!(feature = "onnx") || !path.ends_with("anomaly_filter.p4")
}

/// A switch whose program, from this file, may call the externs that weir brings.
fn switch(program: &Arc<weir_ir::Program>, path: &Path) -> weir_switch::Switch {
    let mut externs = weir::externs();
    externs.set_files(weir::extern_api::Folder::of_program(path));
    let config = weir_switch::SwitchConfig {
        externs,
        ..weir_switch::SwitchConfig::default()
    };
    let engine = Arc::new(weir_interp::Interpreter::new(program.clone()));
    weir_switch::Switch::with_engine(engine, config).unwrap()
}

fn compile(path: &Path) -> Arc<weir_ir::Program> {
    let compilation = weir_compiler::compile_file(path, &weir_compiler::Options::default(), weir_arch::targets());
    if let Some(d) = compilation.diagnostics.list().first() {
        panic!("{}", weir_syntax::render::human(d, &compilation.sources, false));
    }
    Arc::new(compilation.program.unwrap())
}

/// Whether only the interpreter follows a program: its parser sums up checksums.
fn is_interpreted(path: &Path) -> bool {
    path.file_stem().is_some_and(|name| name == "int_lab_tna")
}

#[test]
fn bundled_programs_pass_their_packet_tests() {
    let mut failures = Vec::new();
    for path in programs().into_iter().filter(|path| is_executable(path)) {
        let program = compile(&path);
        let mut optimized = weir_ir::Program::clone(&program);
        let observes = weir_arch::observes(&optimized);
        weir_ir::passes::optimize(&mut optimized, &observes);
        let optimized = Arc::new(optimized);
        let mut tests = Vec::new();
        files(path.parent().unwrap(), "stf", &mut tests);
        assert!(!tests.is_empty(), "{} has no packet tests", path.display());
        for test in tests {
            let text = std::fs::read_to_string(&test).unwrap();
            let mut ways = vec![
                ("as written", switch(&program, &path)),
                ("optimised", switch(&optimized, &path)),
            ];
            let mut compiled = switch(&optimized, &path);
            match compiled.compile() {
                Ok(()) => {
                    let mut by_eights = compiled.clone();
                    by_eights.set_lanes(weir_switch::LaneUse::Always);
                    ways.push(("machine code for eight packets", by_eights));
                    ways.push(("machine code", compiled));
                }
                Err(error) => assert!(is_interpreted(&path), "{}: {error}", path.display()),
            }
            for (form, switch) in ways {
                match weir_stf::run_on(switch, &text, &RunOptions::default()) {
                    Ok(report) => {
                        assert!(
                            report.packets > 0 && report.checks > 0,
                            "{} tests nothing",
                            test.display()
                        );
                        failures.extend(
                            report
                                .failures
                                .iter()
                                .map(|f| format!("{} ({form}): {f}", test.display())),
                        );
                    }
                    Err(error) => failures.push(format!("{} ({form}): {error}", test.display())),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn bundled_programs_have_documentation_entries_and_p4info() {
    for path in programs() {
        let folder = path.parent().unwrap();
        assert!(
            folder.join("README.md").is_file(),
            "{} has no README.md",
            folder.display()
        );
        let entries = path.with_extension("entries");
        let program = compile(&path);
        let text = std::fs::read_to_string(&entries).unwrap_or_else(|e| panic!("{}: {e}", entries.display()));
        if is_executable(&path) {
            let (_, failures) = weir_stf::configure(switch(&program, &path), &text).unwrap();
            assert!(failures.is_empty(), "{}: {failures:?}", entries.display());
        }
        weir_compiler::p4info::p4info(&program, weir_arch::targets()).unwrap();
    }
}

#[test]
fn the_saved_form_of_every_program_is_accepted() {
    let mut paths = programs();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-stf/tests"),
        "p4",
        &mut paths,
    );
    let mut saved = 0;
    // What no switch loads is no program to be saved.
    paths.retain(|path| !path.components().any(|part| part.as_os_str() == "refused"));
    for path in paths {
        let options = weir_compiler::Options::default();
        let compilation = weir_compiler::compile_file(&path, &options, weir_arch::targets());
        let Some(program) = compilation.program else { continue };
        let text = weir_ir::print::print(&program);
        let again = weir_ir::parse::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let found = weir_arch::nonconformities(&again);
        assert!(found.is_empty(), "{}: {}", path.display(), found[0]);
        saved += 1;
    }
    assert!(saved > 100, "{saved}");
}
