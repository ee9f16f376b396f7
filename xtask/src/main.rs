//! Tasks of this repository.
//!
//! `cargo xtask test` runs everything that must hold before a change lands and installs what the
//! tests need beyond cargo, or says what is missing. `cargo xtask conformance` scores weir against
//! the reference corpus. `cargo xtask tidy` checks house rules that no lint knows. `cargo xtask
//! miri` and `cargo xtask loom` look for undefined behaviour and for interleavings that break an
//! invariant. `cargo xtask deb` and `cargo xtask docs` make the Debian package and the site.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its output is for whoever runs it"
)]

mod deb;
mod links;
mod mermaid;
mod models;
mod pages;
mod prose;
mod site;
mod tidy;
mod tools;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use tools::is_installed;

/// Tasks of the weir repository
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Formatting, lints, house rules and every test
    Test,
    /// House rules that no lint knows
    Tidy,
    /// Tests of unsafe code under Miri, on a nightly toolchain; those of many minutes, too
    Miri,
    /// Models of epochs, seqlocks and parked threads under loom
    Loom,
    /// Score weir against the P4 reference corpus
    Conformance {
        /// The reference compiler's testdata folder
        #[arg(long)]
        corpus: PathBuf,
        /// Suites; all where none is named
        suites: Vec<String>,
    },
    /// The Debian package, in target/debian; needs cargo-deb
    Deb,
    /// The documentation as a site, in target/site/book; needs mdbook, and no network
    Docs,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Test => test(),
        Task::Tidy => tidy::check(&root()),
        Task::Miri => models::miri(true),
        Task::Loom => models::loom(),
        Task::Conformance { corpus, suites } => conformance(&corpus, &suites),
        Task::Deb => deb::build(),
        Task::Docs => site::build(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

fn step(what: &str, program: &str, arguments: &[&str]) -> Result<()> {
    step_with(what, program, arguments, |_| {})
}

/// As [`step`], in an environment of its own.
fn step_with(what: &str, program: &str, arguments: &[&str], prepare: impl FnOnce(&mut Command)) -> Result<()> {
    println!("── {what}: {program} {}", arguments.join(" "));
    let started = Instant::now();
    let mut command = Command::new(program);
    prepare(command.args(arguments).current_dir(root()));
    let status = command.status()?;
    if !status.success() {
        bail!("{what} failed");
    }
    println!("── {what}: good, {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// What is optional, and tests build: inference, raw reports as Parquet, results to ClickHouse.
const OPTIONAL: &str = "weir/onnx,weir/parquet,weir/clickhouse";

fn test() -> Result<()> {
    tools::provide()?;
    step("formatting", "cargo", &["fmt", "--all", "--check"])?;
    println!("── house rules");
    tidy::check(&root())?;
    step(
        "lints",
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            OPTIONAL,
            "--",
            "-D",
            "warnings",
        ],
    )?;
    // In the workspace another crate always asks for its features.
    step(
        "messages without services",
        "cargo",
        &["clippy", "--package", "weir-proto", "--", "-D", "warnings"],
    )?;
    step(
        "lints without inference",
        "cargo",
        &[
            "clippy",
            "--package",
            "weir-externs",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    step("tests", "cargo", &["test", "--workspace", "--features", OPTIONAL])?;
    step(
        "externs without inference",
        "cargo",
        &["test", "--package", "weir-externs"],
    )?;
    models::loom()?;
    models::miri(false)
}

fn conformance(corpus: &Path, suites: &[String]) -> Result<()> {
    step("build", "cargo", &["build", "--release", "-p", "weir"])?;
    let tool = root().join("../shared/tools/p4-conformance");
    if !tool.is_file() {
        bail!(
            "{} is not there: it comes with the project's shared folder",
            tool.display()
        );
    }
    let (tool, corpus) = (tool.display().to_string(), corpus.display().to_string());
    let mut arguments = vec![
        tool.as_str(),
        "--corpus",
        &corpus,
        "--weir",
        "target/release/weir",
        "--engine",
        "interp",
        "--show-failures",
    ];
    arguments.extend(suites.iter().map(String::as_str));
    step("conformance", "python3", &arguments)
}
