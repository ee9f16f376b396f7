//! Unsafe code by the letter: tests under Miri, and models under loom.

use crate::{root, step_with};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// `required`: Miri left out is an error.
const VARIABLE: &str = "WEIR_MIRI";

/// Tests that Miri runs: what has `unsafe` and runs no machine code of its own. Tests that are too
/// long for it say so themselves (`cfg_attr(miri, ignore)`).
const OF_TABLES: &[&str] = &[
    "--package",
    "weir-table",
    "--lib",
    "--test",
    "control",
    "--test",
    "soundness",
];
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

/// Runs Miri, or says that it is left out. The only reason is that there is no nightly toolchain
/// and that none can be installed. A nightly toolchain without Miri is an error; with
/// `WEIR_MIRI=required` the missing toolchain is one, too.
pub fn miri() -> Result<()> {
    if let Some(reason) = provide()? {
        if std::env::var_os(VARIABLE).is_some_and(|value| value == "required") {
            bail!("{reason}, and {VARIABLE} says that it is required");
        }
        println!("── miri: LEFT OUT: {reason}");
        return Ok(());
    }
    for arguments in [OF_TABLES, BESIDE_A_WRITER, OF_CODE] {
        let all = [&["run", "nightly", "cargo", "miri", "test"], arguments].concat();
        step_with("miri", "rustup", &all, |command| {
            // Property tests ask for the working directory.
            command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
            command.env("CARGO_TARGET_DIR", target("miri"));
        })?;
    }
    Ok(())
}

/// Installs Miri where it is missing. `Some`: why there is none.
fn provide() -> Result<Option<String>> {
    if is_successful("rustup", &["run", "nightly", "cargo", "miri", "--version"]) {
        return Ok(None);
    }
    println!("── installing miri");
    let had_nightly = is_successful("rustup", &["run", "nightly", "rustc", "--version"]);
    let install = [
        "toolchain",
        "install",
        "nightly",
        "--profile",
        "minimal",
        "--component",
        "miri,rust-src",
    ];
    if is_successful("rustup", &install) {
        return Ok(None);
    }
    let advice = format!("`rustup {}` failed", install.join(" "));
    if had_nightly {
        bail!("the nightly toolchain is there without miri: {advice}");
    }
    Ok(Some(format!("there is no nightly toolchain: {advice}")))
}

/// Runs the models of epochs and seqlocks.
pub fn loom() -> Result<()> {
    let arguments = ["test", "--package", "weir-table", "--lib", "loom_"];
    step_with("models", "cargo", &arguments, |command| {
        command.env("RUSTFLAGS", "--cfg loom");
        command.env("CARGO_TARGET_DIR", target("loom"));
    })
}
