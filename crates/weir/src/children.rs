//! Processes of this program that a command starts and ends, each with a log file.

use anyhow::{Context, Result};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The file of this program.
///
/// # Errors
/// It is not known.
pub fn program() -> Result<PathBuf> {
    std::env::current_exe().context("this program")
}

/// This program, to be started with other arguments.
///
/// # Errors
/// Its file is not known.
pub fn weir() -> Result<Command> {
    Ok(Command::new(program()?))
}

/// The log of a process.
pub fn log(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// Starts a process that reads nothing and writes to the end of its log.
///
/// # Errors
/// The log cannot be written, or the process cannot be started.
pub fn spawn(folder: &Path, name: &str, command: &mut Command) -> Result<Child> {
    let log = log(folder, name);
    let log = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .with_context(|| log.display().to_string())?;
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start {name}"))
}
