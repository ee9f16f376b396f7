//! The command line as scripts use it: exit codes, output for machines, errors for people.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .output()
        .unwrap()
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs")
}

fn router() -> String {
    programs().join("ipv4_router/ipv4_router.p4").display().to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn scratch(name: &str, content: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

#[test]
fn check_says_yes_with_exit_code_0() {
    assert_eq!(weir(&["check", &router()]).status.code(), Some(0));
}

#[test]
fn check_says_no_with_exit_code_1_and_names_the_place() {
    let (_folder, path) = scratch("bad.p4", "const bit<8> a = 16w1;\nconst bit<4> b = c;\n");
    let out = weir(&["check", &path, "--message-format", "short"]);
    assert_eq!(out.status.code(), Some(1));
    let err = text(&out.stderr);
    assert!(err.contains("bad.p4:1:18: error[type-error]: "), "{err}");
    assert!(err.contains("bad.p4:2:18: error[not-found]: "), "{err}");
    assert_eq!(err.lines().count(), 2, "one line per mistake: {err}");
}

#[test]
fn diagnostics_for_machines_are_one_json_object_per_line() {
    let (_folder, path) = scratch("bad.p4", "const bit<8> a = 16w1;\n");
    let out = weir(&["check", &path, "--message-format", "json"]);
    let value: serde_json::Value = serde_json::from_str(text(&out.stderr).lines().next().unwrap()).unwrap();
    assert_eq!((&value["line"], &value["severity"]), (&1.into(), &"error".into()));
}

#[test]
fn what_cannot_be_asked_has_exit_code_2() {
    for arguments in [
        vec!["check", "/no/such/file.p4"],
        vec!["check"],
        vec!["fly"],
        vec!["check", "--arch", "tofino9", &router()],
        vec!["test", &router(), "/no/such/test.stf"],
        vec!["trace", &router(), "--port", "1", "--packet", "zz"],
        vec!["run", &router(), "-i", "eth0"],
        vec!["run", &router(), "-i", "1@no_such_interface"],
    ] {
        let out = weir(&arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {}", text(&out.stderr));
        assert!(!out.stderr.is_empty(), "{arguments:?} says nothing");
    }
}

#[test]
fn a_failed_packet_test_shows_what_was_expected_and_what_came() {
    let (_folder, path) = scratch("wrong.stf", "packet 1 020000000101\nexpect 2 0200\n");
    let out = weir(&["test", &router(), &path]);
    assert_eq!(out.status.code(), Some(1));
    let shown = text(&out.stdout);
    assert!(
        shown.contains("wrong.stf:line 2") && shown.contains("expected"),
        "{shown}"
    );
}

#[test]
fn a_packet_test_of_a_program_that_does_not_compile_has_exit_code_2() {
    let (_folder, program) = scratch("bad.p4", "header h { string s; }");
    let (_other, test) = scratch("t.stf", "wait\n");
    assert_eq!(weir(&["test", &program, &test]).status.code(), Some(2));
}

#[test]
fn build_writes_p4info_a_loadable_program_and_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    assert_eq!(weir(&["build", &router(), "-o", &out]).status.code(), Some(0));
    let info = std::fs::read_to_string(folder.path().join("p4info.txtpb")).unwrap();
    assert!(info.contains("name: \"RouterIngress.ipv4_lpm\""));
    let svg = std::fs::read_to_string(folder.path().join("ipv4_router.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("neighbours"));
    // What was built can be run.
    let program = folder.path().join("ipv4_router.weir").display().to_string();
    let entries = programs().join("ipv4_router/demo.entries").display().to_string();
    let out = weir(&[
        "trace",
        &program,
        "--entries",
        &entries,
        "--port",
        "1",
        "--packet",
        "020000000101 020000000110 0806",
    ]);
    assert!(text(&out.stdout).contains("=> port 64"), "{}", text(&out.stdout));
}

#[test]
fn the_tables_of_the_device_are_those_of_the_program_s_chip() {
    let program = programs().join("l2_switch_tna/l2_switch_tna.p4").display().to_string();
    for (arch, own, other) in [
        ("tna", "tf1.pktgen.app_cfg", "tf2."),
        ("t2na", "tf2.pktgen.app_cfg", "tf1."),
    ] {
        let out = weir(&["build", &program, "--arch", arch, "--fixed-tables", "-"]);
        let found = text(&out.stdout);
        assert!(found.contains("\"$PORT_STR_INFO\"") && found.contains(own) && !found.contains(other));
    }
}

#[test]
fn programs_are_checked_for_what_their_chip_cannot_do() {
    let program = programs().join("../../crates/weir-compiler/tests/advice/accesses.p4");
    let program = program.display().to_string();
    let out = weir(&["check", &program, "--message-format", "short"]);
    assert_eq!(out.status.code(), Some(0));
    let said = text(&out.stderr);
    assert!(
        said.contains("accesses.p4:24:13: warning[tofino-access-twice]: "),
        "{said}"
    );
}

#[test]
fn build_describes_a_program_to_bf_runtime_clients() {
    let out = weir(&["build", &router(), "--bfrt-json", "-"]);
    assert_eq!(out.status.code(), Some(0));
    let info: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let tables = info["tables"].as_array().unwrap();
    let routes = tables
        .iter()
        .find(|t| t["name"] == "pipe.RouterIngress.ipv4_lpm")
        .unwrap();
    assert_eq!(routes["key"][0]["match_type"], "LPM");

    // What has no form there keeps nothing else from being written, unless it was asked for.
    let (folder, program) = scratch("odd.p4", ODD_DIGEST);
    let here = folder.path().join("out").display().to_string();
    let out = weir(&["build", &program, "-o", &here]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(
        said.contains("odd.p4:8: `odd_t` has a type that BF Runtime cannot show"),
        "{said}"
    );
    assert!(folder.path().join("out/p4info.txtpb").exists() && !folder.path().join("out/bfrt.json").exists());
    let out = weir(&["build", &program, "--bfrt-json", "-"]);
    assert_eq!((out.status.code(), out.stdout.as_slice()), (Some(1), &b""[..]));
}

const ODD_DIGEST: &str = "#include <v1model.p4>
struct odd_t { error e; }
struct H {}
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    apply { odd_t o = { error.NoError }; digest<odd_t>(1, o); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
";

#[test]
fn the_demo_forwards_real_packets_and_draws_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("demo.svg").display().to_string();
    let out = weir(&["demo", "--json", "--svg", &svg]);
    assert_eq!(out.status.code(), Some(0));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(value["checksums_right"], true);
    assert!(value["packets_out"].as_u64().unwrap() > 500);
    assert!(
        value["drops"]
            .as_array()
            .unwrap()
            .iter()
            .any(|d| d["reason"] == "ingress-drop")
    );
    assert!(std::fs::read_to_string(svg).unwrap().contains("ipv4_lpm"));
}

#[test]
fn run_plays_a_capture_into_another() {
    let folder = tempfile::tempdir().unwrap();
    let out_pcap = folder.path().join("out.pcap").display().to_string();
    let in_pcap = programs().join("ipv4_router/demo-port1.pcap").display().to_string();
    let entries = programs().join("ipv4_router/demo.entries").display().to_string();
    let source = format!("1@pcap:{in_pcap}");
    // Port 2 plays nothing worth routing and records what is sent to it.
    let sink = format!(
        "2@pcap:{},{out_pcap}",
        programs().join("ipv4_router/demo-port2.pcap").display()
    );
    let out = weir(&[
        "run",
        &router(),
        "--entries",
        &entries,
        "-i",
        &source,
        "-i",
        &sink,
        "--json",
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let sent = value["ports"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["port"] == 2)
        .unwrap()["tx_packets"]
        .as_u64()
        .unwrap();
    let mut reader = weir_io::pcap::PcapReader::new(std::fs::File::open(out_pcap).unwrap()).unwrap();
    let mut recorded = 0;
    while let Some(packet) = reader.next_packet().unwrap() {
        assert_eq!(
            &packet.data[..6],
            [2, 0, 0, 0, 2, 16],
            "addressed to the host behind port 2"
        );
        recorded += 1;
    }
    assert_eq!(recorded, sent);
    assert!(sent > 300);
}

/// `weir bench` with so few packets and so little time that it is quick; the figures mean nothing
/// then.
fn bench(arguments: &[&str]) -> Output {
    let quick = ["bench", "--seconds", "0.001", "--runs", "3", "--pool", "100"];
    weir(&[&quick, arguments].concat())
}

fn json(out: &Output) -> serde_json::Value {
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn bundled(name: &str) -> String {
    programs().join(format!("{name}/{name}.p4")).display().to_string()
}

#[test]
fn bench_reports_what_packets_cost() {
    let entries = programs().join("ipv4_router/demo.entries").display().to_string();
    let capture = programs().join("ipv4_router/demo-port1.pcap").display().to_string();
    let given = ["--entries", &entries, "--packet", &capture, "--json"];
    let value = json(&bench(&[&[router().as_str()], &given[..]].concat()));
    let result = &value["results"][0];
    assert_eq!((&value["pool"], &result["engine"]), (&100.into(), &"jit".into()));
    assert_eq!(result["runs"].as_array().unwrap().len(), 3);
    assert!(result["cycles_per_packet"].as_f64().unwrap() > 0.0);
    assert!(result["packets_per_second"].as_f64().unwrap() > 0.0);
    assert!(value["compile_ms"].as_f64().unwrap() > 0.0);
    assert!(value["sent_share"].as_f64().unwrap() > 0.5);
    let stages = value["profile"]["stages"].as_array().unwrap();
    // Its key does not depend on the lookup before, so both are one stage.
    let both = "RouterIngress.own_macs + RouterIngress.ipv4_lpm";
    assert!(stages.iter().any(|s| s["name"] == both));
    let out = text(&bench(&[&[router().as_str()], &given[..4]].concat()).stdout);
    for part in [
        "cycles per packet",
        "Mpps per core",
        "compiled in",
        "packets at a time",
        "lookups",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
}

#[test]
fn bench_compares_every_bundled_program_with_the_interpreter() {
    for (program, mix) in [
        ("l2_switch", "misses:0"),
        ("l2_switch_tna", "misses:0"),
        ("ipv4_router", "misses:30"),
        ("acl_firewall", "misses:30"),
        ("acl_firewall_tna", "misses:30"),
        ("acl_firewall_ternary", "misses:30"),
        ("int_md", "misses:30"),
        ("rina_router", "ipv4"),
        ("rina_router", "efcp,misses:30"),
        ("mixes", "misses:30,actions,extra"),
    ] {
        // That both make the same of every packet is checked before anything is measured.
        let made = ["--table-entries", "50", "--mix", mix, "--vs", "interp", "--json"];
        let value = json(&bench(&[&[bundled(program).as_str()], &made[..]].concat()));
        let engines: Vec<_> = value["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| &r["engine"])
            .collect();
        assert_eq!(engines, ["jit", "interp"], "{program}");
        let sent = value["sent_share"].as_f64().unwrap();
        assert_eq!(mix.contains(":30"), (0.5..0.9).contains(&sent), "{program}: {sent}");
        assert!(value["ratio"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn bench_compares_with_loops_written_by_hand() {
    for program in ["l2_switch", "ipv4_router"] {
        for mix in ["misses:0", "misses:50"] {
            for entries in ["20", "20000"] {
                let made = ["--table-entries", entries, "--mix", mix, "--vs", "ceiling", "--json"];
                let value = json(&bench(&[&[bundled(program).as_str()], &made[..]].concat()));
                assert_eq!(value["results"][1]["engine"], "ceiling");
                assert_eq!(value["entries"], entries.parse::<u64>().unwrap());
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn bits_that_are_summed_up_are_counted_by_an_instruction_also_of_a_field_that_is_read_again() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-stf/tests/vectors/behind_options.p4");
    let out = weir(&["build", program.to_str().unwrap(), "--emit", "asm"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    // Without knowing that fields read again are the same there is one.
    assert!(text(&out.stdout).matches("popcntq").count() >= 5);
}

#[test]
fn bench_sweeps_and_plots() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l2.svg").display().to_string();
    let l2 = bundled("l2_switch");
    let made = [
        l2.as_str(),
        "--table-entries",
        "50",
        "--vs",
        "ceiling",
        "--svg",
        &path,
        "--sweep",
    ];
    let out = bench(&[&made[..], &["table=50,1k"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("[2/2] l2_switch: 1000 entries"));
    assert!(text(&out.stdout).contains("ratio"), "{}", text(&out.stdout));
    let svg = std::fs::read_to_string(&path).unwrap();
    assert_eq!(svg.matches("<polyline").count(), 2);
    assert!(svg.contains("table entries") && svg.contains("ceiling"));
    for sweep in ["size=64,128", "pool=10,20", "vector=1,64"] {
        let value = json(&bench(&[&made[..], &[sweep, "--json"]].concat()));
        assert_eq!(value["points"].as_array().unwrap().len(), 2, "{sweep}");
    }
    let workers = [l2.as_str(), "--table-entries", "50", "--sweep", "workers=1", "--json"];
    let value = json(&bench(&workers));
    assert_eq!(value["points"][0]["report"]["workers"]["workers"], 1);
}

/// The figures mean nothing at debug speed, but every mode forwards, and plots are written.
#[test]
fn bench_measures_packets_that_wait_for_externs() {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().to_str().unwrap();
    let quick = ["bench", "async", "--seconds", "0.001", "--runs", "1"];
    let figures = ["--figure", "overhead", "--figure", "4", "--json", "--svg", svg];
    let value = json(&weir(&[&quick[..], &figures[..]].concat()));
    let overhead = value["overhead"].as_array().unwrap();
    assert_eq!(overhead.len(), 2);
    assert!(
        overhead
            .iter()
            .all(|row| row["coroutine_alone_cycles"].as_f64().unwrap() > 0.0)
    );
    let points = value["figure4"].as_array().unwrap();
    assert_eq!(points.len(), 9 * 4);
    for mode in points.iter().flat_map(|point| point["modes"].as_array().unwrap()) {
        // In so short a time a full lane may have let none through.
        let dropped = mode["dropped_share_of_calls"].as_f64().unwrap_or(0.0);
        assert!(mode["mpps"].as_f64().unwrap() > 0.0 || dropped > 0.0, "{mode}");
    }
    assert!(folder.path().join("figure4.svg").exists());
}

#[test]
fn bench_says_what_would_be_right() {
    let (router, l2) = (bundled("ipv4_router"), bundled("l2_switch"));
    let with = |first: &[&str], arguments: &[&str]| -> Vec<String> {
        first.iter().chain(arguments).map(ToString::to_string).collect()
    };
    let made = |arguments: &[&str]| with(&[&l2, "--table-entries", "50"], arguments);
    let given = |arguments: &[&str]| with(&[&router], arguments);
    for (arguments, right) in [
        (given(&["--mix", "misses:10"]), "--table-entries"),
        (given(&["--vs", "ceiling"]), "l2_switch and ipv4_router"),
        (given(&["--sweep", "table=1,2"]), "--table-entries"),
        (given(&["--svg", "x.svg"]), "--sweep"),
        (given(&["--packet", "nothing"]), "hexadecimal"),
        (given(&["--packet", ""]), "at least one byte"),
        (given(&["--port", "600"]), "0 to 511"),
        (given(&["--flows", "16777216", "--size", "9216"]), "a smaller --size"),
        (given(&["--flows", "16777216"]), "a smaller --size"),
        (made(&["--pool", "1048576", "--size", "9216"]), "a smaller --size"),
        (given(&["--suite"]), "cannot be used with"),
        (with(&["--suite"], &["--engine", "interp"]), "cannot be used with"),
        (with(&["--suite"], &["--pool", "64"]), "cannot be used with"),
        (with(&["--suite"], &["--mix", "misses:5"]), "cannot be used with"),
        (with(&["--suite"], &["-D", "X"]), "cannot be used with"),
        (made(&["--mix", "misses:1,misses:2"]), "misses twice"),
        (made(&["--entries", "x"]), "cannot be used with"),
        (made(&["--mix", "misses:200"]), "0 to 100"),
        (made(&["--mix", "efcp"]), "misses:PERCENT"),
        (made(&["--mix", "colours"]), "misses:PERCENT"),
        (made(&["--distribution", "normal"]), "zipf"),
        (made(&["--sweep", "colour=1"]), "vector=16"),
        (made(&["--sweep", "size=10"]), "42 to 9216"),
        (made(&["--sweep", "vector=65"]), "1 to 64"),
        (made(&["--size", "9216", "--sweep", "pool=1048576"]), "a smaller --size"),
        (made(&["--vector", "65"]), "1..=64"),
        (made(&["--seconds", "0"]), "--seconds"),
        (made(&["--workers", "200"]), "processor"),
        (made(&["--workers", "2", "--vs", "interp"]), "leave out --vs"),
        (
            vec![bundled("int_lab"), "--table-entries".into(), "5".into()],
            "--entries",
        ),
        (
            vec![bundled("int_md"), "--table-entries".into(), "100000".into()],
            "65536",
        ),
        (Vec::new(), "PROG.p4"),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let out = weir(&[&["bench"], &arguments[..]].concat());
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {}", text(&out.stdout));
        assert!(
            text(&out.stderr).contains(right),
            "{arguments:?}: {}",
            text(&out.stderr)
        );
    }
}

#[test]
fn every_command_explains_itself() {
    for command in ["demo", "check", "test", "trace", "build", "run", "bench"] {
        let out = weir(&[command, "--help"]);
        assert_eq!(out.status.code(), Some(0));
        assert!(text(&out.stdout).contains("Example"), "{command}");
    }
}

#[test]
fn run_does_not_write_over_what_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.pcap");
    std::fs::copy(programs().join("ipv4_router/demo-port1.pcap"), &path).unwrap();
    let before = std::fs::metadata(&path).unwrap().len();
    let port = format!("1@pcap:{0},{0}", path.display());
    let out = weir(&["run", &router(), "-i", &port]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("written over"), "{}", text(&out.stderr));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), before);
}

#[test]
fn outputs_that_are_files_in_use_are_refused_before_they_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text_of = |name: &str| std::fs::read(path(name)).unwrap();
    std::fs::copy(programs().join("ipv4_router/demo-port1.pcap"), path("in.pcap")).unwrap();
    std::fs::hard_link(path("in.pcap"), path("hard.pcap")).unwrap();
    std::os::unix::fs::symlink(path("in.pcap"), path("soft.pcap")).unwrap();
    std::os::unix::fs::symlink(folder.path(), path("folder")).unwrap();
    std::fs::copy(router(), path("p.p4")).unwrap();
    std::fs::write(path("entries"), "").unwrap();
    let (input, program) = (text_of("in.pcap"), text_of("p.p4"));
    for (name, part) in [
        ("hard.pcap", "the input of port 1"),
        ("soft.pcap", "the input of port 1"),
        ("p.p4", "the program"),
        ("entries", "the entries"),
        ("state", "the state"),
        ("folder/state", "the state"),
        ("new.pcap", "the output of port 3"),
        ("folder/new.pcap", "the output of port 3"),
    ] {
        let ports = [
            format!("1@pcap:{}", path("in.pcap")),
            format!("3@pcap:,{}", path("new.pcap")),
            format!("2@pcap:,{}", path(name)),
        ];
        let (program, entries, state) = (path("p.p4"), path("entries"), path("state"));
        let mut arguments = vec!["run", &program, "--entries", &entries, "--time", "1s"];
        arguments.extend(["--state", &state, "--p4runtime", "127.0.0.1:0"]);
        arguments.extend(ports.iter().flat_map(|port| ["-i", port]));
        let out = weir(&arguments);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains("written over") && said.contains(part), "{name}: {said}");
        assert!(!folder.path().join("new.pcap").exists(), "{name}: {said}");
    }
    let (saved, same) = (path("p.weir"), path("folder/p.p4"));
    let out = weir(&["build", &path("p.p4"), "-o", &path("built")]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    std::fs::rename(path("built/p.weir"), &saved).unwrap();
    for arguments in [
        &["build", &same, "--p4info", &path("p.p4")][..],
        &["build", &path("p.p4"), "--bfrt-json", &same],
        &["build", &path("p.p4"), "--fixed-tables", &same],
        &["build", &saved, "-o", &path("")],
        &["bmv2", "p4c-bm2-ss", &path("p.p4"), "-o", &same],
        &[
            "bmv2",
            "p4c-bm2-ss",
            &path("p.p4"),
            "--p4runtime-format",
            "text",
            "--p4runtime-files",
            &same,
        ],
    ] {
        let out = weir(arguments);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("found the source"), "{arguments:?}: {said}");
    }
    assert!(text_of("in.pcap") == input && text_of("p.p4") == program);
}

#[test]
fn what_a_truncated_capture_holds_is_forwarded_before_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let capture = std::fs::read(programs().join("ipv4_router/demo-port1.pcap")).unwrap();
    let cut = folder.path().join("cut.pcap");
    std::fs::write(&cut, &capture[..5000]).unwrap();
    let entries = programs().join("ipv4_router/demo.entries").display().to_string();
    let port = format!("1@pcap:{}", cut.display());
    let out = weir(&[
        "run",
        &router(),
        "--entries",
        &entries,
        "-i",
        &port,
        "-i",
        "2@null",
        "--json",
    ]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("byte 5000"), "{}", text(&out.stderr));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(value["ports"][0]["rx_packets"].as_u64().unwrap() > 10);
}

#[test]
fn ports_that_the_architecture_cannot_hold_are_refused() {
    assert_eq!(
        weir(&["trace", &router(), "--port", "600", "--packet", "00"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(weir(&["run", &router(), "-i", "600@null"]).status.code(), Some(2));
    let (_folder, path) = scratch("port.stf", "packet 600 00\n");
    assert_eq!(weir(&["test", &router(), &path]).status.code(), Some(1));
}

#[test]
fn directives_that_would_mean_something_else_are_refused() {
    for directive in [
        "add ipv4_lpm hdr.ipv4.dst_addr:10.0.0.0/40 route(next_hop:0, port:2)\n",
        "packet 1 00\nexpect 2 01 | 02\n",
    ] {
        let (_folder, path) = scratch("t.stf", directive);
        assert_ne!(weir(&["test", &router(), &path]).status.code(), Some(0), "{directive}");
    }
}

#[test]
fn the_fate_of_a_packet_in_an_endless_loop_is_told() {
    let program = "#include <core.p4>\n#include <v1model.p4>\n\
        struct h_t {} struct m_t { bit<8> x; }\n\
        parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) { state start { transition accept; } }\n\
        control V(inout h_t h, inout m_t m) { apply {} }\n\
        control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {\n\
            apply { for (bit<8> i = 0; i <= 255; i = i + 1) { m.x = m.x + 1; } s.egress_spec = 1; } }\n\
        control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply {} }\n\
        control D(packet_out p, in h_t h) { apply {} }\n\
        V1Switch(P(), V(), I(), E(), V(), D()) main;\n";
    let (_folder, path) = scratch("loop.p4", program);
    let out = weir(&["trace", &path, "--port", "1", "--packet", "00"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("so it was dropped: instruction-budget"));
}

/// Lines of stderr, each of which must be an object.
fn diagnostics(out: &Output) -> Vec<serde_json::Value> {
    let err = text(&out.stderr);
    let line = |l: &str| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"));
    err.lines().map(line).collect()
}

#[test]
fn what_cannot_be_run_is_a_diagnostic_for_machines_too() {
    let refused = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-stf/tests/tna/refused/itself.p4");
    let program = refused.display().to_string();
    let (_folder, stf) = scratch("any.stf", "packet 1 00\n");
    for (arguments, code, severity) in [
        (vec!["check", &program], 0, "warning"),
        (vec!["test", &program, &stf], 2, "error"),
        (vec!["trace", &program, "--port", "1", "--packet", "00"], 2, "error"),
        (vec!["run", &program, "-i", "1@null"], 2, "error"),
    ] {
        let out = weir(&[&arguments[..], &["--message-format", "json"]].concat());
        assert_eq!(out.status.code(), Some(code), "{arguments:?}");
        let found = diagnostics(&out);
        let [only] = &found[..] else {
            panic!("{arguments:?}: {found:?}")
        };
        assert_eq!(
            (&only["severity"], &only["code"]),
            (&severity.into(), &"not-runnable".into())
        );
        assert_eq!(
            (&only["line"], &only["message"]),
            (&9.into(), &"`I.again` executes itself".into())
        );
    }
}

#[test]
fn why_a_program_is_interpreted_is_said_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-stf/tests/tna");
    let file = |name: &str| folder.join(name).display().to_string();
    let program = file("interpreted/random.p4");
    let (_folder, stf) = scratch("nothing.stf", "# No packet is sent.\n");
    let out = weir(&["test", "--message-format", "json", &program, &stf, &stf]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let found = diagnostics(&out);
    assert_eq!(
        (found.len(), &found[0]["code"]),
        (1, &"interpreted".into()),
        "{found:?}"
    );
    let out = weir(&["test", &program, &stf, &stf]);
    assert_eq!(text(&out.stderr).matches("interpreted: ").count(), 1);
}

#[test]
fn an_architecture_that_the_program_is_not_for_is_an_error_that_says_so() {
    let out = weir(&["check", &router(), "--arch", "psa", "--message-format", "short"]);
    assert_eq!(out.status.code(), Some(1));
    let err = text(&out.stderr);
    let expected = "error[architecture]: the architecture psa was asked for, but the program includes `v1model.p4`, which is for v1model";
    assert!(err.contains(expected), "{err}");
    let (_folder, path) = scratch("declarations.p4", "#include <core.p4>\n");
    let out = weir(&["check", &path, "--arch", "psa"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("there is no `main` of the architecture psa"));
    let help = text(&weir(&["check", "--help"]).stdout);
    assert!(help.contains("v1model, psa, tna, t2na"), "{help}");
}

#[test]
fn a_program_that_is_too_large_to_be_compiled_is_interpreted_and_takes_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.p4");
    let program = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> f; }
struct H { h_t[4096] a; h_t[4096] b; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.a.next); transition select(h.a.last.f) { 0: two; default: start; } }
    state two { p.extract(h.b.next); transition select(h.b.last.f) { 0: accept; default: two; } }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) { apply { s.egress_spec = 2; h.a.push_front(1); } }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"#;
    std::fs::write(&path, program).unwrap();
    // The address space of the process is limited, beyond what the switch takes when it interprets.
    let script = "ulimit -v 4000000; exec \"$0\" run \"$1\" -i 1@null -i 2@null --time 10ms";
    let out = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_weir"), path.to_str().unwrap()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(
        said.contains("interpreted: the program is too large to be compiled"),
        "{said}"
    );
}

#[test]
fn bash_completes_commands_options_and_shells() {
    let (_, script, _) = {
        let out = weir(&["completion", "bash"]);
        (out.status, text(&out.stdout), text(&out.stderr))
    };
    let completed = |words: &str| {
        let last = words.split(' ').count() - 1;
        let test = format!(
            "compopt() {{ :; }}\n{script}\nCOMP_WORDS=({words}); COMP_CWORD={last}; \
             _weir_or_ctl weir \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[$(({last} - 1))]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        // The script is longer than an argument may be.
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), test).unwrap();
        let out = Command::new("bash").arg(file.path()).output().unwrap();
        text(&out.stdout).trim().to_owned()
    };
    assert_eq!(completed("weir che"), "check");
    assert_eq!(completed("weir run --p4rt"), "");
    assert_eq!(completed("weir run --p4runt"), "--p4runtime");
    assert_eq!(completed("weir completion f"), "fish");
}

#[test]
fn verdicts_of_tests_have_colours_where_they_are_asked_for_and_on_no_pipe() {
    let test = programs().join("ipv4_router");
    let stf = std::fs::read_dir(&test)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "stf"))
        .unwrap();
    let stf = stf.display().to_string();
    let with = |color: &str| text(&weir(&["test", &router(), &stf, "--color", color]).stdout);
    assert!(with("always").contains("\x1b[32mpassed\x1b[0m"));
    assert!(!with("auto").contains('\x1b') && with("auto").contains("passed"));
}
