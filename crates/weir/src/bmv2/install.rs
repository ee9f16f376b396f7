//! `weir bmv2 install`: links by whose names this binary is called.

use super::Tool;
use crate::cli::NO;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;

/// The text of `weir bmv2 install --help`.
pub const HELP: &str = "\
Make links to this binary by whose names it acts as a command of bmv2: p4c-bm2-ss, p4c,
simple_switch, simple_switch_grpc, simple_switch_CLI

Usage: weir bmv2 install <DIR>

Arguments:
  <DIR>  The directory of the links; made if it does not exist. Links of weir are replaced, other
         files stay, and the exit code is then 1

Example:
  weir bmv2 install ~/bin && PATH=~/bin:$PATH simple_switch --version
";

/// What stands where a link is to be.
enum Place {
    /// Nothing.
    Free,
    /// A link to this binary, or to another weir.
    Own,
    /// Something else.
    Foreign,
}

fn place(link: &Path, binary: &Path) -> Place {
    let Ok(found) = std::fs::symlink_metadata(link) else {
        return Place::Free;
    };
    let target = match found.is_symlink() {
        true => std::fs::read_link(link).ok(),
        false => None,
    };
    match target {
        Some(target) if target == binary || target.file_name() == binary.file_name() => Place::Own,
        _ => Place::Foreign,
    }
}

/// Makes the links in a directory, which is made where it does not exist. Foreign files stay.
pub fn install(directory: &Path, messages: &Messages) -> Result<u8> {
    let binary = std::env::current_exe().context("the path of this binary is unknown")?;
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    if !directory.is_dir() {
        bail!("{} is no directory", directory.display());
    }
    let mut foreign = Vec::new();
    let mut out = crate::output::stdout();
    for tool in Tool::ALL {
        let link = directory.join(tool.name());
        match place(&link, &binary) {
            Place::Foreign => {
                foreign.push(link.display().to_string());
                continue;
            }
            Place::Own => std::fs::remove_file(&link).with_context(|| format!("cannot replace {}", link.display()))?,
            Place::Free => {}
        }
        std::os::unix::fs::symlink(&binary, &link).with_context(|| format!("cannot make {}", link.display()))?;
        writeln!(out, "{} -> {}", link.display(), binary.display())?;
    }
    if foreign.is_empty() {
        return Ok(0);
    }
    messages.line(format!(
        "error: {} exists and is no link of weir: move it away, or install into another directory",
        foreign.join(", ")
    ));
    Ok(NO)
}
