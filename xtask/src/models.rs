//! Unsafe code by the letter: tests under Miri, and models under loom.

use crate::{root, step_with};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// `required`: Miri left out is an error.
const VARIABLE: &str = "WEIR_MIRI";

/// Tests that Miri runs: what has `unsafe` and runs no machine code of its own. Tests that are too
/// long for it say so themselves (`cfg_attr(miri, ignore)`).
const FROM_OUTSIDE: &[&str] = &["--package", "weir-table", "--test", "control", "--test", "soundness"];
/// The structures that compiled code looks into.
const STRUCTURES: &[&str] = &["--package", "weir-table", "--lib", "--", "fast::", "--skip", "writer"];
/// Those that write whole tables: each takes minutes.
const WRITERS: &[&str] = &["--package", "weir-table", "--lib", "--", "writer"];
/// Readers beside a writer: of one structure, as each takes minutes.
const BESIDE_A_WRITER: &[&str] = &["--package", "weir-table", "--test", "fast_concurrent", "exact_by_key"];
/// Packets in memory, contexts and results; the rest of the crate makes machine code.
const OF_CODE: &[&str] = &["--package", "weir-jit", "--lib", "--", "run::", "bits::"];

/// Where a build with other flags goes: beside the others, so that neither is built anew.
fn target(name: &str) -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    folder.join(name)
}

fn is_successful(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs Miri, or says that it is left out: where there is none and it cannot be installed. With
/// `WEIR_MIRI=required` that is an error.
///
/// `all`: also what takes many minutes.
pub fn miri(all: bool) -> Result<()> {
    if !provide() {
        let reason = "there is no Miri, and `rustup` cannot install one";
        if std::env::var_os(VARIABLE).is_some_and(|value| value == "required") {
            bail!("{reason}; {VARIABLE} says that it is required");
        }
        println!("── miri: LEFT OUT: {reason}");
        return Ok(());
    }
    let mut parts = vec![FROM_OUTSIDE, STRUCTURES];
    if all {
        parts.extend([WRITERS, BESIDE_A_WRITER, OF_CODE]);
    }
    for arguments in parts {
        let command = [&["run", "nightly", "cargo", "miri", "test"], arguments].concat();
        step_with("miri", "rustup", &command, |command| {
            // Property tests ask for the working directory.
            command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
            command.env("CARGO_TARGET_DIR", target("miri"));
        })?;
    }
    Ok(())
}

/// Installs Miri where it is missing. Whether there is one.
fn provide() -> bool {
    let is_there = || is_successful("rustup", &["run", "nightly", "cargo", "miri", "--version"]);
    if is_there() {
        return true;
    }
    println!("── installing miri");
    let component = ["component", "add", "miri", "rust-src", "--toolchain", "nightly"];
    let toolchain = [
        "toolchain",
        "install",
        "nightly",
        "--profile",
        "minimal",
        "--component",
        "miri,rust-src",
    ];
    // A nightly toolchain that is there is kept.
    is_successful("rustup", &component) || is_successful("rustup", &toolchain) && is_there()
}

/// Runs the models of epochs, of seqlocks and of parked lane threads.
pub fn loom() -> Result<()> {
    let arguments = [
        "test",
        "--package",
        "weir-table",
        "--package",
        "weir-lanes",
        "--lib",
        "loom_",
    ];
    step_with("models", "cargo", &arguments, |command| {
        command.env("RUSTFLAGS", "--cfg loom");
        command.env("CARGO_TARGET_DIR", target("loom"));
    })
}
