//! What a command line of `weir lab` is about: a topology, and a program for each switch.

use super::Lab;
use super::topology::{Entries, Topology};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// Name, subject and text of each bundled topology.
pub const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "basic",
        "three IPv4 routers in a triangle, with a host at each",
        include_str!("examples/basic.toml"),
    ),
    (
        "line",
        "two hosts behind two IPv4 routers, with a link of 2 Mbit/s between them",
        include_str!("examples/line.toml"),
    ),
];

/// A topology whose switches all have a program.
pub struct Plan {
    /// Hosts, switches and links.
    pub topology: Topology,
    /// The program of each switch.
    pub programs: Vec<Program>,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A file.
    File(PathBuf),
    /// A bundled one.
    Bundled(&'static str),
}

impl Plan {
    /// Reads the files that a command line names.
    ///
    /// # Errors
    /// One is not there or not right, or a switch has no program.
    pub fn read(arguments: &Lab) -> Result<Self> {
        let mut topology = match (&arguments.topology, &arguments.example) {
            (Some(path), _) => read(path).with_context(|| path.display().to_string())?,
            (None, Some(name)) => {
                let found = EXAMPLES.iter().find(|(known, ..)| known == name);
                let (_, _, text) =
                    found.with_context(|| format!("there is no example `{name}`: weir lab --list-examples"))?;
                super::toml_file::parse(text, Path::new(""))?
            }
            (None, None) => bail!("expected a topology, or --example NAME"),
        };
        topology.check(super::commands::RESERVED)?;
        for program in &arguments.program {
            set_program(&mut topology, program)?;
        }
        let mut programs = Vec::new();
        for switch in &topology.switches {
            let program = switch.program.as_deref();
            let program = program.with_context(|| {
                format!(
                    "switch {0} has no program: --program FILE.p4, or --program {0}=FILE.p4",
                    switch.name
                )
            })?;
            programs.push(find(program).with_context(|| format!("switch {}", switch.name))?);
            if let Some(Entries::File(path)) = &switch.entries {
                ensure!(
                    path.is_file(),
                    "switch {}: there is no file {}",
                    switch.name,
                    path.display()
                );
            }
        }
        Ok(Plan { topology, programs })
    }
}

fn read(path: &Path) -> Result<Topology> {
    let text = crate::input::text(path)?;
    let path = std::path::absolute(path)?;
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    if path.extension().is_some_and(|ending| ending == "toml") {
        return super::toml_file::parse(&text, &folder);
    }
    // The tutorials start everything in the folder of an exercise, which has the topology or a
    // folder with it.
    let mut folders = vec![std::env::current_dir()?, folder.clone()];
    folders.extend(folder.parent().map(Path::to_owned));
    folders.dedup();
    super::json::parse(&text, &folders)
}

/// `SWITCH=FILE` sets the program of one switch, `FILE` that of all for which the topology names
/// none of their own.
fn set_program(topology: &mut Topology, text: &str) -> Result<()> {
    let named = text.split_once('=').map(|(name, file)| {
        let at = topology.switches.iter().position(|switch| switch.name == name);
        at.map(|at| (at, file))
            .with_context(|| format!("--program {text}: there is no switch `{name}`"))
    });
    match named {
        Some(named) => {
            let (at, file) = named?;
            topology.switches[at].program = Some(std::path::absolute(file)?);
        }
        None => {
            let path = std::path::absolute(text)?;
            for switch in topology.switches.iter_mut().filter(|switch| !switch.is_own_program) {
                switch.program = Some(path.clone());
            }
        }
    }
    Ok(())
}

fn find(path: &Path) -> Result<Program> {
    // The paths of bundled topologies are relative: they mean bundled programs, whatever the
    // current folder has.
    if path.is_absolute() && path.is_file() {
        return Ok(Program::File(std::path::absolute(path)?));
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let bundled = crate::bundled::PROGRAMS.iter().find(|(known, _)| *known == name);
    let (name, _) = bundled.with_context(|| format!("there is no file {}", path.display()))?;
    Ok(Program::Bundled(name))
}
