//! Files that commands read: what is no file of that sort is refused promptly, and pipes are read.

mod common;

use common::weir;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
# 1 \"MARKER\"
header h_t { bit<8> x; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.x == 1) { sm.egress_spec = 2; }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

fn made(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

fn fifo(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path.display().to_string()
}

#[test]
fn devices_and_directories_are_no_programs_entries_or_tests() {
    let folder = tempfile::tempdir().unwrap();
    let program = made(folder.path(), "a.p4", PROGRAM);
    let directory = folder.path().display().to_string();
    for (file, kind) in [("/dev/zero", "character device"), (&directory, "directory")] {
        for command in [
            vec!["check", file],
            vec!["build", "--emit", "ir", file],
            vec!["test", file, &program],
            vec!["test", &program, file],
            vec!["trace", &program, "--port", "1", "--entries", file, "--packet", "01"],
            vec!["run", &program, "-i", "1@null", "--entries", file],
        ] {
            let (code, _, messages) = weir(&command);
            assert_eq!(code, 2, "{command:?}: {messages}");
            let expected = format!("{file} is a {kind}; give a regular file");
            assert!(messages.contains(&expected), "{command:?}: {messages}");
        }
    }
}

#[test]
fn a_program_may_come_through_a_pipe_and_an_included_file_may_not() {
    let check = |path: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["check", path])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(PROGRAM.as_bytes()).unwrap();
        child.wait().unwrap().code()
    };
    assert_eq!(check("/dev/stdin"), Some(0));
    assert_eq!(check("/dev/fd/0"), Some(0));
    let folder = tempfile::tempdir().unwrap();
    let named = fifo(folder.path(), "fifo.p4");
    let writer = std::thread::spawn({
        let named = named.clone();
        move || std::fs::write(named, PROGRAM)
    });
    assert_eq!(weir(&["check", &named]).0, 0);
    writer.join().unwrap().unwrap();
    let including = made(folder.path(), "a.p4", "#include \"fifo.p4\"\n");
    let (code, _, messages) = weir(&["check", &including, "--message-format", "short"]);
    assert_eq!(code, 1);
    assert!(
        messages.contains("cannot include `fifo.p4`: it is a FIFO, not a regular file"),
        "{messages}"
    );
}

#[test]
fn a_trace_shows_lines_of_the_program_and_of_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let secret = made(folder.path(), "secret", &"the secret\n".repeat(30));
    let program = made(folder.path(), "a.p4", &PROGRAM.replace("MARKER", &secret));
    let trace = |program: &str| {
        let (code, shown, messages) = weir(&["trace", program, "--port", "1", "--packet", "01"]);
        assert_eq!(code, 0, "{messages}");
        assert!(shown.contains(&format!("{secret}:10")), "{shown}");
        assert!(!shown.contains("the secret"), "{shown}");
        shown
    };
    assert!(trace(&program).contains("if (hdr.h.x == 1)"));
    let folder = folder.path().display().to_string();
    assert_eq!(weir(&["build", &program, "-o", &folder]).0, 0);
    // A saved program has no lines.
    assert!(!trace(&format!("{folder}/a.weir")).contains("if (hdr.h.x == 1)"));
}

/// A switch that says on stderr what it does.
struct Traced(Child);

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_from_a_control_plane_names_and_shows_no_file_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let secret = made(folder.path(), "secret", &"the secret\n".repeat(30));
    let pushed = made(folder.path(), "pushed.p4", &PROGRAM.replace("MARKER", &secret));
    let bad = PROGRAM
        .replace("MARKER", &secret)
        .replace("hdr.h.x == 1", "hdr.h.x == y");
    let bad = made(folder.path(), "bad.p4", &bad);
    // The switch shows lines of its own program, and not where the next one names its file.
    let own = made(folder.path(), "own.p4", &PROGRAM.replace("MARKER", "own.p4"));
    let ports = ["-i", "0@gen:size=64,rate=200", "-i", "1@null", "--trace", "1"];
    let child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["run", &own, "--p4runtime", "127.0.0.1:0"])
        .args(ports)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut switch = Traced(child.unwrap());
    let lines = BufReader::new(switch.0.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let address = lines.find_map(|line| line.strip_prefix("P4Runtime at ").map(str::to_owned));
    let address = address.expect("it serves");
    assert!(lines.any(|line| line.contains("own.p4:10") && line.contains("if (hdr.h.x == 1)")));
    let load = |program: &str| weir(&["ctl", "--p4runtime", &address, "program", "--load", program]);
    let (code, _, messages) = load(&bad);
    assert_eq!(code, 1);
    assert!(
        messages.contains(&secret) && !messages.contains("the secret"),
        "{messages}"
    );
    let loading = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&pushed));
        // Until a packet has met the new program's branch, with the traces read so that they do not
        // fill the pipe.
        let mut some = lines.by_ref().take(100_000);
        let shown = some
            .find(|line| line.contains("p4_device_config:13:"))
            .expect("a trace");
        assert!(!shown.contains("secret"), "{shown}");
        loading.join().unwrap()
    });
    assert_eq!(loading.0, 0, "{}", loading.2);
    let mut more = lines.take(100);
    assert!(more.all(|line| !line.contains("secret")));
}
