//! `weir latency` as a user runs it: answers, exit codes, and what is said of wrong input.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["latency"].iter().chain(arguments))
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What a command with this exit code prints to stderr.
fn refused(arguments: &[&str]) -> String {
    let output = weir(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn case(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs/latency");
    root.join(name).join(format!("{name}.p4")).display().to_string()
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_prediction_names_paths_parts_error_and_scope() {
    let output = weir(&[
        "predict",
        &case("tc6b"),
        "--port",
        "100g",
        "--packet-size",
        "300",
        "--model",
        "paper-lr",
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    // Table 6's value for this row.
    for part in ["ethernet/ipv6/udp", "168.21", "±", "ingress only", "2.51 % on average"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn json_can_be_compared_and_a_limit_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let common = ["predict", "--packet-size", "600"];
    let ask = |program: &str, more: &[&str]| {
        let program = case(program);
        let arguments: Vec<&str> = common
            .iter()
            .copied()
            .chain([program.as_str()])
            .chain(more.iter().copied())
            .collect();
        weir(&arguments)
    };
    let before = ask("tc1", &["--json"]);
    let old = file(&folder, "old.json", &stdout(&before));
    let same = ask("tc1", &["--compare", &old]);
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    assert!(stdout(&same).contains("no path has changed"));
    let other = ask("tc2", &["--compare", &old]);
    assert!(stdout(&other).contains("gone: ethernet/vlan[0]"), "{other:?}");
    let allowed = ask("tc1", &["--max-ns", "1000"]);
    assert_eq!(allowed.status.code(), Some(0));
    let above = ask("tc1", &["--max-ns", "300"]);
    assert_eq!(above.status.code(), Some(1));
    assert!(
        stdout(&above).contains("above --max-ns: ethernet/vlan[0]/vlan[1]/ipv6/udp takes 3"),
        "{above:?}"
    );
    // A path that now takes longer, as if the earlier program had been faster.
    let mut earlier: serde_json::Value = serde_json::from_str(&stdout(&before)).unwrap();
    let total = earlier["paths"][0]["points"][0]["total"].as_f64().unwrap();
    earlier["paths"][0]["points"][0]["total"] = (total - 5.0).into();
    let old = file(&folder, "faster.json", &earlier.to_string());
    let slower = ask("tc1", &["--compare", &old]);
    assert_eq!(slower.status.code(), Some(1));
    assert!(
        stdout(&slower).contains("slower: ethernet/vlan[0]/vlan[1]/ipv6/udp"),
        "{slower:?}"
    );
}

#[test]
fn explanations_and_pictures_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("stages.svg").display().to_string();
    let output = weir(&["explain", &case("tc4"), "--svg", &picture]);
    let text = stdout(&output);
    for part in [
        "labels",
        "20/exact",
        "32/lpm",
        "Stages by dependencies alone",
        "tc4.p4:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        std::fs::read_to_string(&picture)
            .unwrap()
            .contains("stage 0, first, 22 cycles")
    );
    let output = weir(&["explain", &case("tc4"), "--json", "--chip", "tofino2", "--egress"]);
    let value: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(value["features"]["gress"], "egress");
    assert_eq!(value["placement"]["available"], 20);
    let plot = folder.path().join("size.svg").display().to_string();
    let output = weir(&["predict", &case("tc4"), "--packet-size", "100..1400", "--plot", &plot]);
    assert_eq!(output.status.code(), Some(0));
    assert!(std::fs::read_to_string(&plot).unwrap().contains("<polyline"));
}

#[test]
fn the_demo_compares_with_the_papers_measurements() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("demo.svg").display().to_string();
    let text = stdout(&weir(&["demo", "--svg", &picture]));
    for part in [
        "paper-lr: accuracy 97.49 %",
        "99.26 % (leave-one-case-out)",
        "99.03 %",
        "98.22 %",
        "small sample",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let models = stdout(&weir(&["models"]));
    assert!(models.contains("seven programs were measured"), "{models}");
    assert!(std::fs::read_to_string(&picture).unwrap().contains("<circle"));
}

#[test]
fn models_are_trained_evaluated_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = "case,states,header_bytes,cycles\n".to_owned();
    for states in 0..6 {
        for bytes in 0..6 {
            rows += &format!("{states}-{bytes},{states},{bytes},{}\n", 20 + 3 * states + bytes);
        }
    }
    let data = file(&folder, "rows.csv", &rows);
    let model = folder.path().join("mine.json").display().to_string();
    let plot = folder.path().join("residuals.svg").display().to_string();
    let text = stdout(&weir(&["fit", &data, "--model", "lr", "-o", &model]));
    assert!(
        text.contains("leave-one-case-out on 36 rows of 36 cases") && text.contains("accuracy 100.00 %"),
        "{text}"
    );
    let text = stdout(&weir(&["evaluate", &model, &data, "--plot", &plot]));
    assert!(text.contains("36 rows") && text.contains("bias"), "{text}");
    assert!(std::fs::read_to_string(&plot).unwrap().contains("<circle"));
    let text = stdout(&weir(&[
        "predict",
        &case("tc2"),
        "--model",
        &model,
        "--packet-size",
        "900",
    ]));
    // Four states with 50 bytes: 20 + 12 + 50 cycles, beyond the training range.
    assert!(
        text.contains("82.00") && text.contains("outside of the training range: header_bytes is 50"),
        "{text}"
    );
}

#[test]
fn wrong_input_is_refused_with_what_was_expected_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let (tc1, tc2) = (case("tc1"), case("tc2"));
    let has = |arguments: &[&str], part: &str| {
        let text = refused(arguments);
        assert!(text.contains(part), "{arguments:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    };
    has(&["predict", &tc1, "--port", "fast"], "write 10g or 100g");
    has(
        &["predict", &tc1, "--port", "25g"],
        "knows ports of 10 and 100 Gbit/s, not 25",
    );
    has(&["predict", &tc1, "--port", "100gg"], "write 10g or 100g");
    has(&["predict", &tc1, "--entries", &tc2], "looks at entries");
    has(&["predict", &tc1, "--packet-size", "0"], "1 to 16384 bytes");
    has(&["predict", &tc1, "--packet-size", "10"], "too small for every path");
    has(
        &["predict", &tc1, "--path", "ipv9"],
        "no path begins with the headers `ipv9`",
    );
    has(&["predict", &tc1, "--model", "papr-lr"], "there are cycles, paper-lr");
    let cut = file(&folder, "cut.json", "{\"schema\": 1, \"name\"");
    has(&["predict", &tc1, "--model", &cut], "cut.json");
    has(
        &["predict", &tc1, "--compare", &cut],
        "expected an answer of weir latency predict --json",
    );
    has(&["predict", "/dev/null"], "/dev/null");
    let declarations = file(&folder, "declarations.p4", "header h { bit<8> x; }\n");
    has(&["predict", &declarations], "no `main`");
    let nan = file(&folder, "nan.csv", "case,states,latency_ns\na,NaN,1\n");
    has(&["evaluate", "paper-lr", &nan], "line 2, column `states`");
    let short = file(&folder, "short.csv", "case,states,latency_ns\na,1,1\n");
    has(&["evaluate", "paper-lr", &short], "packet_size");
    has(&["fit", &short, "--model", "lr"], "at least 3");
    has(
        &["fit", &short, "--model", "lr", "--alpha", "1"],
        "--alpha goes with --model plp",
    );
    has(
        &["fit", &short, "--model", "plp", "--fixed"],
        "--fixed goes with --model cycles",
    );
    let huge = file(
        &folder,
        "huge.csv",
        "case,states,latency_ns\na,1,1e308\nb,2,1e-308\nc,3,30\n",
    );
    has(&["fit", &huge, "--model", "lr"], "huge.csv");
    let other = weir(&["predict", &tc2, "--json", "--port", "100g"]);
    let other = file(&folder, "other.json", &stdout(&other));
    has(
        &["predict", &tc1, "--compare", &other],
        "compare predictions of one model, port, --path and --pipe",
    );
}

/// A program for v1model with the states of its parser after Ethernet.
fn program(states: &str, headers: &str, apply: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\n\
         header ethernet_t {{ bit<48> dst; bit<48> src; bit<16> type; }} header part_t {{ bit<8> v; }}\n\
         struct headers_t {{ ethernet_t ethernet; {headers} }} struct meta_t {{ }}\n\
         parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{\n\
         state start {{ p.extract(hdr.ethernet); {states} }}\n\
         control V(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
         control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{\n\
         table t {{ key = {{ hdr.ethernet.dst: exact; }} actions = {{ NoAction; }} size = 100; }}\n\
         apply {{ {apply} }} }}\n\
         control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}\n\
         control C(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
         control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr); }} }}\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    )
}

#[test]
fn a_limit_is_not_kept_by_paths_that_were_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let states = "transition more; } state more { p.extract(hdr.parts.next);
        transition select(hdr.parts.last.v) { 0: accept; default: more; } }";
    let deep = file(&folder, "deep.p4", &program(states, "part_t[400] parts;", ""));
    let common = ["predict", &deep, "--packet-size", "1500"];
    let ask = |more: &[&str]| weir(&common.iter().chain(more).copied().collect::<Vec<_>>());
    let refused = ask(&["--max-ns", "100000"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(stdout(&refused).contains("--max-ns is not shown to be kept: the longest paths were left out"));
    assert_eq!(ask(&["--max-ns", "100000", "--allow-left-out"]).status.code(), Some(0));
    assert_eq!(ask(&[]).status.code(), Some(0));
    let mut earlier: serde_json::Value = serde_json::from_str(&stdout(&ask(&["--json"]))).unwrap();
    let whole = file(&folder, "old.json", &earlier.to_string());
    assert_eq!(ask(&["--compare", &whole]).status.code(), Some(0));
    earlier["is_cut_off"] = false.into();
    let old = file(&folder, "old.json", &earlier.to_string());
    let worse = ask(&["--compare", &old]);
    assert_eq!(worse.status.code(), Some(1));
    assert!(stdout(&worse).contains("left out: the longest paths"));
    assert_eq!(ask(&["--compare", &old, "--allow-left-out"]).status.code(), Some(0));
}

#[test]
fn a_program_of_two_pipes_needs_the_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(case("tc6b")).unwrap();
    let package = text.find("Pipeline(").unwrap();
    let blocks = "Pipeline(CaseIngressParser(), CaseIngress(), CaseIngressDeparser(), CaseEgressParser(), CaseEgress(), \
                  CaseEgressDeparser())";
    let two = format!(
        "{}{blocks} pipe0; {blocks} pipe1; Switch(pipe0, pipe1) main;",
        &text[..package]
    );
    let two = file(&folder, "two.p4", &two);
    for command in ["predict", "explain"] {
        assert!(refused(&[command, &two]).contains("the pipes pipe0, pipe1: choose one by --pipe"));
        assert!(refused(&[command, &two, "--pipe", "pipe7"]).contains("no pipe `pipe7`"));
        let one = weir(&[command, &two, "--pipe", "pipe1"]);
        assert!(stdout(&one).contains("pipe1.CaseIngress"), "{one:?}");
    }
    let old = weir(&["predict", &two, "--pipe", "pipe0", "--json"]);
    let old = file(&folder, "old.json", &stdout(&old));
    let text = refused(&["predict", &two, "--pipe", "pipe1", "--compare", &old]);
    assert!(text.contains("--pipe"), "{text}");
}

#[test]
fn no_file_is_written_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let source = program("transition accept; }", "", "t.apply();");
    let prog = file(&folder, "prog.p4", &source);
    let rows: String = (0..4).map(|i| format!("c{i},{i},{}\n", 10 + i)).collect();
    let data = file(&folder, "data.csv", &format!("case,states,cycles\n{rows}"));
    let link = folder.path().join("link.svg").display().to_string();
    std::os::unix::fs::symlink(&prog, &link).unwrap();
    for output in [&prog, &link] {
        assert!(refused(&["predict", &prog, "--plot", output]).contains("this file is read, too"));
        assert!(refused(&["explain", &prog, "--svg", output]).contains("this file is read, too"));
    }
    assert!(refused(&["fit", &data, "--model", "lr", "-o", &data]).contains("this file is read, too"));
    let model = folder.path().join("m.json").display().to_string();
    assert_eq!(
        weir(&["fit", &data, "--model", "lr", "-o", &model]).status.code(),
        Some(0)
    );
    assert!(refused(&["evaluate", &model, &data, "--plot", &model]).contains("this file is read, too"));
    let old = file(&folder, "old.json", &stdout(&weir(&["predict", &prog, "--json"])));
    assert!(refused(&["predict", &prog, "--compare", &old, "--plot", &old]).contains("this file is read, too"));
    assert_eq!(std::fs::read_to_string(&prog).unwrap(), source);
}

#[test]
fn flags_without_a_meaning_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tc2 = case("tc2");
    let text = refused(&["predict", &tc2, "--model", "weir-lr", "--port", "100g"]);
    assert!(text.contains("--port goes with a model that has port speeds"), "{text}");
    let prog = file(&folder, "prog.p4", &program("transition accept; }", "", "t.apply();"));
    let built = folder.path().join("built").display().to_string();
    let build = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["build", &prog, "-o", &built])
        .output()
        .unwrap();
    assert!(build.status.success(), "{build:?}");
    let compiled = format!("{built}/prog.weir");
    assert!(refused(&["predict", &compiled, "-D", "X=1"]).contains("-I and -D go with a P4 program"));
    assert!(refused(&["explain", &compiled, "--arch", "psa"]).contains("is compiled for v1model"));
    assert_eq!(
        weir(&["explain", &compiled, "--arch", "v1model"]).status.code(),
        Some(0)
    );
}

#[test]
fn a_path_may_end_with_a_slash() {
    let output = weir(&["predict", &case("tc6b"), "--path", "ethernet/ipv6/"]);
    assert!(stdout(&output).contains("\nethernet/ipv6/udp ("), "{output:?}");
}

#[test]
fn predictions_with_and_without_entries_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let prog = file(&folder, "prog.p4", &program("transition accept; }", "", "t.apply();"));
    let entries = file(&folder, "prog.entries", "");
    let ask = |more: &[&str]| {
        let common = ["predict", &prog, "--model", "weir-lr"];
        weir(&common.iter().chain(more).copied().collect::<Vec<_>>())
    };
    let counted = file(&folder, "old.json", &stdout(&ask(&["--entries", &entries, "--json"])));
    let other = ask(&["--compare", &counted]);
    assert_eq!(other.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&other.stderr).contains("made with --entries"),
        "{other:?}"
    );
    assert_eq!(
        ask(&["--entries", &entries, "--compare", &counted]).status.code(),
        Some(0)
    );
}
