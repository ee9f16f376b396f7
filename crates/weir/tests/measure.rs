//! `weir int measure` against devices whose delay is known, between ports of namespaces, and
//! against a bridge of the kernel. The simulated device needs no privileges.
//!
//! Tests with interfaces need root and iproute2. In CI they must run; elsewhere a test that cannot
//! run says so and passes.
//!
//! Delays are what is measured here, not how long code takes. The truth is what the device
//! recorded: ingress and egress timestamps of its own ports, of each packet. Medians are compared,
//! which single interruptions of a loaded machine do not change.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "figures for the reader of the test")]

mod common;
#[path = "common/namespaces.rs"]
mod namespaces;

use common::weir;
use namespaces::{can_run, sh};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A namespace with the ports of the instrument (`m0`, `n0`, and the loopback `l0`, `l1`), and one
/// with those of the device (`m1`, `n1`).
struct Lab {
    name: &'static str,
}

impl Lab {
    fn new(name: &'static str) -> Self {
        let lab = Lab { name };
        lab.remove();
        for side in ["i", "d"] {
            sh(&format!("ip netns add {name}-{side}"));
            // Its own packets would be among those that are measured.
            let quiet = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
            sh(&format!("ip netns exec {name}-{side} {quiet}"));
        }
        for link in ["m", "n"] {
            sh(&format!(
                "ip -n {name}-i link add {link}0 type veth peer name {link}1 netns {name}-d"
            ));
            sh(&format!(
                "ip -n {name}-i link set {link}0 up && ip -n {name}-d link set {link}1 up"
            ));
        }
        sh(&format!("ip -n {name}-i link add l0 type veth peer name l1"));
        sh(&format!(
            "ip -n {name}-i link set l0 up && ip -n {name}-i link set l1 up"
        ));
        lab
    }

    fn remove(&self) {
        for side in ["i", "d"] {
            let _ = Command::new("ip")
                .args(["netns", "del", &format!("{}-{side}", self.name)])
                .output();
        }
    }

    /// A command in one of the namespaces.
    fn command(&self, side: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &format!("{}-{side}", self.name),
            env!("CARGO_BIN_EXE_weir"),
        ]);
        command.args(arguments);
        command
    }

    /// Measures from `m0` to `n0`: exit code, what was said, and the results.
    fn measure(&self, folder: &Path, arguments: &[&str]) -> (i32, String, Option<Value>) {
        let out = self
            .command("i", &["int", "measure", "--out", "m0", "--in", "n0", "-o"])
            .arg(folder)
            .args(arguments)
            .output()
            .unwrap();
        let said = [out.stdout, out.stderr].concat();
        let results = std::fs::read(folder.join("measure.json")).ok();
        let results = results.map(|bytes| serde_json::from_slice(&bytes).unwrap());
        (
            out.status.code().unwrap(),
            String::from_utf8_lossy(&said).into_owned(),
            results,
        )
    }

    /// Measures and prints what was found.
    fn measured(&self, folder: &Path, arguments: &[&str]) -> Value {
        let (code, said, results) = self.measure(folder, arguments);
        eprintln!("{said}");
        assert!(code == 0 || code == 1, "{code}: {said}");
        results.expect("measure.json")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The device with a known delay.
struct Device {
    child: Child,
}

impl Device {
    fn start(lab: &Lab, arguments: &[&str]) -> Self {
        let mut child = lab
            .command("d", &["int", "delay", "--in", "m1", "--out", "n1", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.starts_with("running"), "{line}");
        Device { child }
    }

    /// Ends it; what it recorded.
    fn recorded(mut self) -> Value {
        sh(&format!("kill {}", self.child.id()));
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number(value: &Value, path: &str) -> f64 {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {path} of {value:#}"))
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Compares the medians of each size with those that the device recorded: within 1 % or 1 µs.
fn assert_as_recorded(results: &Value, recorded: &Value) {
    let delays = list(results, "/device_delay");
    assert!(!delays.is_empty());
    for delay in delays {
        let size = number(delay, "/size");
        let own = list(recorded, "").iter().find(|one| number(one, "/size") == size);
        let own = number(own.expect("the device has seen this size"), "/delay/median/value");
        let found = number(delay, "/median/value");
        eprintln!(
            "{size} B: measured {found} ns, recorded {own} ns, difference {:.0} ns",
            found - own
        );
        assert!(
            (found - own).abs() <= (own / 100.0).max(1000.0),
            "{size} B: {found} and {own}"
        );
    }
}

const BASELINE: [&str; 4] = ["--baseline-out", "l0", "--baseline-in", "l1"];

#[test]
fn a_known_delay_is_found_within_1_percent_or_1_microsecond() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("weir-m1");
    let folder = tempfile::tempdir().unwrap();
    let device = Device::start(&lab, &["--delay", "150us"]);
    let plan = ["--size", "60,106,1514", "--rate", "1000", "--samples", "3000"];
    let results = lab.measured(folder.path(), &[&BASELINE[..], &plan].concat());
    assert_as_recorded(&results, &device.recorded());
    for measured in list(&results, "/device/cases") {
        assert_eq!(number(measured, "/packets/lost"), 0.0);
        assert_eq!(number(measured, "/packets/unstamped"), 0.0);
    }
    assert_eq!(results["device"]["clocks"], "software");
    assert!(number(&results, "/timestamp_error/offset") > 0.0);
    for file in [
        "measure.html",
        "samples.csv",
        "delay-by-packet.svg",
        "distribution.svg",
        "delay-by-size.svg",
    ] {
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.len() > 500 && !text.contains("NaN"), "{file}");
    }
}

#[test]
fn the_slope_of_a_store_and_forward_device_is_found() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("weir-m2");
    let folder = tempfile::tempdir().unwrap();
    let device = Device::start(&lab, &["--delay", "150us", "--link", "100M"]);
    let plan = ["--size", "106..1514:352", "--rate", "1000", "--samples", "3000"];
    let results = lab.measured(folder.path(), &[&BASELINE[..], &plan].concat());
    assert_as_recorded(&results, &device.recorded());
    let fit = &list(&results, "/fits")[0];
    assert_eq!(fit["dependence"]["kind"], "store-and-forward", "{fit:#}");
    let speed = number(fit, "/dependence/bits_per_second/value");
    assert!((speed / 1e8 - 1.0).abs() < 0.1, "{speed}");
}

#[test]
fn the_cases_of_the_paper_are_one_table() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("weir-m3");
    let folder = tempfile::tempdir().unwrap();
    sh("ip -n weir-m3-d link add bridge type bridge && ip -n weir-m3-d link set bridge up");
    sh("ip -n weir-m3-d link set m1 master bridge && ip -n weir-m3-d link set n1 master bridge");
    let plan = [
        "--size",
        "106",
        "--rate",
        "1000",
        "--samples",
        "2000",
        "--name",
        "Bridge",
    ];
    let results = lab.measured(folder.path(), &[&BASELINE[..], &plan].concat());
    let (loopback, bridge) = (&results["baseline"]["cases"][0], &results["device"]["cases"][0]);
    assert!(number(bridge, "/delay/median/value") > number(loopback, "/delay/median/value"));

    // The same baseline from its file.
    let (file, again) = (folder.path().join("measure.json"), tempfile::tempdir().unwrap());
    let file = file.display().to_string();
    let results = lab.measured(again.path(), &[&["--baseline", &file][..], &plan].concat());
    assert_eq!(&results["baseline"]["cases"][0], loopback);
    let (code, said, _) = lab.measure(again.path(), &["--baseline", &file, "--size", "60", "--rate", "1000"]);
    assert_eq!(code, 2);
    assert!(said.contains("no packets of 60 bytes at 1000 per second"), "{said}");
    let other = std::fs::read_to_string(&file)
        .unwrap()
        .replace("\"software\"", "\"hardware\"");
    std::fs::write(&file, other).unwrap();
    let (code, said, _) = lab.measure(again.path(), &[&["--baseline", &file][..], &plan].concat());
    assert_eq!(code, 2);
    assert!(said.contains("the baseline has hardware timestamps"), "{said}");
}

#[test]
fn without_a_way_back_the_message_says_where_to_look() {
    if !can_run() {
        return;
    }
    let lab = Lab::new("weir-m4");
    let folder = tempfile::tempdir().unwrap();
    let (code, said, _) = lab.measure(folder.path(), &["--size", "106"]);
    assert_eq!(code, 2);
    assert!(
        said.contains("106 B at 2000/s came back") && said.contains("UDP port 5000"),
        "{said}"
    );
    let (code, said, _) = lab.measure(folder.path(), &["--stamps", "hardware"]);
    assert_eq!(code, 2);
    assert!(said.contains("no common hardware clock"), "{said}");
    let (code, said, _) = lab.measure(folder.path(), &["--size", "1515"]);
    assert_eq!(code, 2);
    assert!(said.contains("an MTU of 1500"), "{said}");
    sh("ip -n weir-m4-d link set n1 down");
    let (code, said, _) = lab.measure(folder.path(), &[]);
    assert_eq!(code, 2);
    assert!(said.contains("`n0` is down"), "{said}");
}

#[test]
fn the_simulated_device_needs_no_privileges() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("results").display().to_string();
    let arguments = [
        "int",
        "measure",
        "--demo",
        "--samples",
        "400",
        "--rate",
        "1000",
        "-o",
        &output,
    ];
    let (code, out, said) = weir(&arguments);
    eprintln!("{out}");
    assert!(code == 0 || code == 1, "{code}: {said}");
    for part in [
        "Mean delay in ns  Std. Dev. in ns",
        "Loopback",
        "The simulated device's own record",
        "store-and-forward",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
    assert!(folder.path().join("results/measure.html").exists());
}

#[test]
fn wrong_input_is_refused() {
    let cases: [(&[&str], &str); 4] = [
        (&["--out", "x0", "--in", "x0"], "cannot be both ends"),
        (
            &["--out", "no-such-a", "--in", "no-such-b"],
            "there is no interface `no-such-a`",
        ),
        (&["--out", "lo"], "--in <IF>"),
        (
            &["--out", "lo", "--in", "x", "--size", "1"],
            "no number from 60 to 9018",
        ),
    ];
    for (arguments, expected) in cases {
        let (code, _, said) = weir(&[&["int", "measure"], arguments].concat());
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains(expected), "{expected} in {said}");
    }
}
