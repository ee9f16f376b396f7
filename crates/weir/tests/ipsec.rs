//! `ipsec_gateway` and the IPsec layer of scapy, from PyPI and unmodified, understand each other
//! byte for byte in both directions; what was changed, cut or sent twice is dropped.
#![allow(clippy::print_stderr, reason = "it says why it is skipped")]

mod common;

use common::weir;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PACKAGES: [&str; 2] = ["scapy==2.8.0", "cryptography==48.0.0"];
const PROGRAM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../p4/programs/ipsec_gateway/ipsec_gateway.p4"
);
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ipsec/peer.py");
/// A tenth of what was tried by hand, for the time that scapy takes.
const PACKETS: &str = "1000";

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// A Python with scapy, installed below the target folder once. `None`, with a loud message, where
/// that cannot be had; in CI that is a failure.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGES[0]);
    let python = folder.join("bin/python");
    let works = || succeeds(Command::new(&python).args(["-c", "import scapy.layers.ipsec, cryptography"]));
    if !works() && succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder)) {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        succeeds(Command::new(&python).args(install).args(PACKAGES));
    }
    if works() {
        return Some(python);
    }
    let message = format!("{PACKAGES:?} cannot be installed (python3 with venv and access to PyPI are needed)");
    assert!(std::env::var_os("CI").is_none(), "{message}");
    eprintln!("LEFT OUT: {message}");
    None
}

#[test]
fn scapy_understands_the_gateway_and_the_gateway_scapy() {
    let Some(python) = python() else { return };
    let made = Command::new(python).args([PEER, PACKETS, "1", "1430"]).output();
    let made = made.expect("python runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let test = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ipsec_gateway-peer.stf");
    std::fs::write(&test, &made.stdout).expect("is written");
    let test = test.to_str().expect("a path in UTF-8");
    for mode in ["sync", "async"] {
        let (code, out, err) = weir(&["test", PROGRAM, test, "--async", mode]);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert!(out.contains("passed (10"), "{out}");
    }
}
