//! Interfaces that go and come back, queueing disciplines, and how a run ends with its
//! surroundings.
//!
//! What needs interfaces needs root, iproute2 and network namespaces. In CI it must run; elsewhere
//! a test that cannot run passes.
#![cfg(target_os = "linux")]

mod common;

use common::weir;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

fn program() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs/l2_switch/l2_switch.p4");
    path.to_str().unwrap().to_owned()
}

/// A switch in a network of its own, with a shell beside it.
struct Switch {
    child: Child,
    said: std::sync::mpsc::Receiver<String>,
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn in_namespace(command: &str) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["-n", "--kill-child", "sh", "-c", command]);
    unshare.stdin(Stdio::null());
    unshare
}

fn can_run() -> bool {
    let made = in_namespace("ip link add va type veth peer name vb && tc qdisc show").output();
    let can = made.is_ok_and(|o| o.status.success());
    assert!(
        can || std::env::var_os("CI").is_none(),
        "this test must run in CI: it needs root, unshare, ip and tc"
    );
    can
}

impl Switch {
    /// Runs a switch between `va` (of a pair with `vb`) and a generator; `$WEIR` and `$DEVICE` are
    /// set.
    fn start(device: &str, script: &str) -> Self {
        let script =
            format!("ip link add va type veth peer name vb; ip link set va up; ip link set vb up\n{script}\nwait");
        let mut command = in_namespace(&script);
        command
            .env("WEIR", env!("CARGO_BIN_EXE_weir"))
            .env("DEVICE", device)
            .env("PROGRAM", program());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let (sender, said) = std::sync::mpsc::channel();
        std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        Switch { child, said }
    }

    fn wait_for(&self, words: &str) {
        let start = Instant::now();
        let mut all = Vec::new();
        while start.elapsed() < LONG {
            if let Ok(line) = self.said.recv_timeout(LONG) {
                if line.contains(words) {
                    return;
                }
                all.push(line);
            }
        }
        panic!("it does not say `{words}`: {all:?}");
    }
}

#[test]
fn an_interface_that_is_deleted_is_reported_and_opened_again_when_it_is_back() {
    if !can_run() {
        return;
    }
    for device in ["packet:va", "xdp:va"] {
        // What a new interface sends by itself is traced.
        let script = "$WEIR run $PROGRAM -i 0@$DEVICE -i 1@null --trace 1 --die-with-parent &\n\
             sleep 2; ip link del va; sleep 1.5\n\
             ip link add va type veth peer name vb; ip link set va up; ip link set vb up";
        let switch = Switch::start(device, script);
        switch.wait_for("running");
        switch.wait_for("the interface `va` has gone; it is opened again when it is back");
        switch.wait_for("is back");
        switch.wait_for("at port 0");
    }
}

#[test]
fn a_port_does_not_take_over_the_interface_of_another_port_that_was_given_its_name() {
    if !can_run() {
        return;
    }
    // `va` is deleted and `vc`, which port 1 has, becomes `va`; then it is renamed again.
    let script = "ip link add vc type veth peer name vd\n\
         $WEIR run $PROGRAM -i 0@$DEVICE -i 1@packet:vc --die-with-parent &\n\
         sleep 2; ip link del va; sleep 1; ip link set vc down; ip link set vc name va\n\
         ip link set va up; sleep 3; ip link set va down; ip link set va name vx\n\
         ip link add va type veth peer name vb; ip link set va up; ip link set vb up; sleep 5";
    let switch = Switch::start("packet:va", script);
    switch.wait_for("running");
    switch.wait_for("port 0: the interface `va` has gone");
    switch.wait_for("port 0: `va` is the interface of port 1 now");
    switch.wait_for("is back");
}

#[test]
fn an_interface_by_two_names_is_refused_at_the_start() {
    if !can_run() {
        return;
    }
    let script = "ip link property add dev va altname other_name\n\
         exec $WEIR run $PROGRAM -i 0@packet:va -i 1@packet:other_name --time 1s";
    let switch = Switch::start("packet:va", script);
    switch.wait_for("ports 0 and 1 have the same interface: `other_name` is another name of it");
}

#[test]
fn what_is_sent_goes_through_the_queueing_discipline_unless_it_is_bypassed() {
    if !can_run() {
        return;
    }
    let program = tempfile::tempdir().unwrap();
    let path = program.path().join("to_0.p4");
    std::fs::write(&path, TO_PORT_0).unwrap();
    let sent_by_discipline = |device: &str| {
        let script = format!(
            "ip link add va type veth peer name vb; ip link set va up; ip link set vb up\n\
             tc qdisc add dev va root pfifo limit 1000\n\
             '{}' run '{}' -i 0@{device} -i 1@gen:size=64,count=500 --time 2s >/dev/null 2>&1\n\
             tc -s qdisc show dev va | grep -o 'Sent [0-9]* bytes [0-9]* pkt'",
            env!("CARGO_BIN_EXE_weir"),
            path.display(),
        );
        let out = in_namespace(&script).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let packets = text.split_whitespace().nth(3).and_then(|n| n.parse::<u64>().ok());
        packets.unwrap_or_else(|| panic!("no count: {text} {}", String::from_utf8_lossy(&out.stderr)))
    };
    // The interface sends some packets of its own.
    assert!(sent_by_discipline("packet:va") >= 500);
    assert!(sent_by_discipline("packet:va,bypass") < 100);
}

#[test]
fn packets_for_a_shaped_link_wait_in_queues_and_see_their_depth() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, marks) = (folder.path().join("to_0.p4"), folder.path().join("marks.p4"));
    std::fs::write(&source, TO_PORT_0).unwrap();
    // Packets that find more than ten before them are dropped in egress, where that is counted.
    let deep = "if (s.enq_qdepth > 10) { mark_to_drop(s); }";
    std::fs::write(
        &marks,
        TO_PORT_0.replace(
            "control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }",
            &format!("control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{ {deep} }} }}"),
        ),
    )
    .unwrap();
    let drops = |shaping: &str| {
        let script = format!(
            "ip link add va type veth peer name vb; ip link add wa type veth peer name wb\n\
             for i in va vb wa wb; do ip link set $i up; done; {shaping}\n\
             '{weir}' run '{marks}' -i 0@packet:va -i 1@packet:wa --time 3s --die-with-parent --json 2>/dev/null &\n\
             sleep 1\n\
             '{weir}' run '{source}' -i 0@packet:wb -i 1@gen:size=1000,count=2000,rate=4000 --time 1500ms \
             >/dev/null 2>&1; wait",
            weir = env!("CARGO_BIN_EXE_weir"),
            marks = marks.display(),
            source = source.display(),
        );
        let out = in_namespace(&script).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let last = text.lines().last().expect("statistics");
        let report: serde_json::Value = serde_json::from_str(last).unwrap();
        let of = |reason: &str| {
            let drops = report["drops"].as_array().unwrap().iter();
            let of_reason = drops.filter(|d| d["reason"] == reason);
            of_reason.map(|d| d["packets"].as_u64().unwrap()).sum::<u64>()
        };
        (of("egress-drop"), of("queue-full"))
    };
    let (deep, full) = drops("tc qdisc add dev va root tbf rate 1mbit burst 5kb limit 4mb");
    assert!(
        deep > 0 && full > 0,
        "{deep} packets found a deep queue, {full} a full one"
    );
    assert_eq!(drops("true"), (0, 0), "a link that is not shaped");
}

const TO_PORT_0: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct H {}
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) { apply { s.egress_spec = 0; } }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"#;

#[test]
fn an_interface_is_one_port_whatever_kind_of_device_it_is() {
    let program = program();
    for second in ["lo", "xdp:lo", "packet:lo", "packet:lo,bypass", "tap:lo"] {
        for first in ["lo", "xdp:lo", "packet:lo", "tap:lo"] {
            let (first, second) = (format!("0@{first}"), format!("4@{second}"));
            let (code, _, said) = weir(&["run", &program, "-i", &first, "-i", &second]);
            assert_eq!(code, 2);
            assert!(said.contains("ports 0 and 4 have the same interface `lo`"), "{said}");
        }
    }
}

#[test]
fn the_port_of_the_control_plane_is_checked_like_others() {
    let program = program();
    let run = |port: &str| {
        weir(&[
            "run",
            &program,
            "-i",
            "1@null",
            "--p4runtime",
            "127.0.0.1:0",
            "--cpu-port",
            port,
            "--time",
            "10ms",
        ])
    };
    let (code, _, said) = run("1");
    assert!(code == 2 && said.contains("port 1 is the control plane's"), "{said}");
    let (code, _, said) = run("512");
    assert!(code == 2 && said.contains("there is no port 512"), "{said}");
    assert_eq!(run("510").0, 0);
}

fn served(before: &str) -> Command {
    // Without `exec` the shell stays, as the parent.
    let after = if before.contains("exec") { "" } else { " & wait" };
    let mut command = Command::new("sh");
    let script = format!(
        "{before} '{}' run '{}' -i 0@null --p4runtime 127.0.0.1:0 --die-with-parent{after}",
        env!("CARGO_BIN_EXE_weir"),
        program()
    );
    command
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Reads what a child says until it runs.
fn until_running(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(lines.any(|line| line.contains("running")));
    lines
}

#[test]
fn hup_ends_a_switch_that_has_no_program_to_reload_unless_it_was_started_with_nohup() {
    let signal = |child: &Child, name: &str| {
        let status = Command::new("kill").args([name, &child.id().to_string()]).status();
        assert!(status.unwrap().success());
    };
    // The tests themselves may have been started with nohup.
    let mut child = served("exec env --default-signal=HUP").spawn().unwrap();
    let _said = until_running(&mut child);
    signal(&child, "-HUP");
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let mut child = served("trap '' HUP; exec").spawn().unwrap();
    let _said = until_running(&mut child);
    signal(&child, "-HUP");
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none());
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_switch_that_is_to_die_with_its_parent_does() {
    // The shell is the parent.
    let mut shell = served("").spawn().unwrap();
    let rest = until_running(&mut shell);
    shell.kill().unwrap();
    shell.wait().unwrap();
    // Its messages end when it has ended.
    assert_eq!(rest.filter(|line| line.contains("error")).count(), 0);
}

#[test]
fn ports_are_added_and_removed_while_the_switch_runs() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (code, _, error) = weir(&["bmv2", "install", &folder.path().display().to_string()]);
    assert_eq!(code, 0, "{error}");
    // The pair va and vb, of which va is added; each command's outcome and what a new port does.
    let script = r#"
        cd $FOLDER; ip link set lo up
        ./simple_switch --thrift-port 9090 -i 0@null $PROGRAM --log-console > log 2>&1 &
        switch=$!
        for i in $(seq 100); do ./simple_switch_CLI </dev/null >/dev/null 2>&1 && break; sleep 0.1; done
        cli() { echo "$1" | ./simple_switch_CLI | sed -n 's/RuntimeCmd: *//gp' | head -1; }
        echo "none: $(cli 'port_remove 3')" >&2
        echo "absent: $(cli 'port_add nowhere 3')" >&2
        echo "added: [$(cli 'port_add va 3')]" >&2
        echo "again: $(cli 'port_add vb 3')" >&2
        echo "twice: $(cli 'port_add va 4')" >&2
        for i in $(seq 100); do ip link set vb down; ip link set vb up; grep -q 'at port 3' log && break; sleep 0.1; done
        grep -c 'packet .* at port 3' log | sed 's/^/packets: /; s/: [1-9].*/: some/' >&2
        echo "ports: $(echo show_ports | ./simple_switch_CLI | grep -c va)" >&2
        echo "removed: [$(cli 'port_remove 3')]" >&2
        echo "ports: $(echo show_ports | ./simple_switch_CLI | grep -c va)" >&2
        echo "back: [$(cli 'port_add va 3')]" >&2
        echo "wide: $(cli 'port_add vb 600')" >&2
        printf 'port_remove 3\nport_add va 3\n%.0s' $(seq 20) | ./simple_switch_CLI | grep -c Error | sed 's/^/errors: /' >&2
        ip link del va; sleep 0.5; echo "gone: [$(cli 'port_remove 3')]" >&2
        ip link add va type veth peer name vb; sleep 1; echo "other: [$(cli 'port_add va 4')]" >&2
        kill $switch; wait $switch; echo "end: $?" >&2
    "#;
    let mut command = in_namespace(&format!(
        "ip link add va type veth peer name vb; ip link set va up\n{script}"
    ));
    command.env("FOLDER", folder.path()).env("PROGRAM", program());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    let expected = [
        "none: Error: there is no port 3",
        "absent: Error: port 3: there is no interface",
        "added: []",
        "again: Error: there is a port 3 already",
        "twice: Error: `va` is the interface of port 3",
        "packets: some",
        "ports: 1",
        "removed: []",
        "ports: 0",
        "back: []",
        "wide: Error: ",
        "errors: 0",
        "gone: []",
        "other: []",
        "end: 0",
    ];
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{said}\n{log}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}; expected {expected}\n{log}");
    }
}
