//! The commands of bmv2's users, by their names: `p4c-bm2-ss`, `p4c`, `simple_switch`,
//! `simple_switch_grpc` and `simple_switch_CLI`.
//!
//! `weir bmv2 install DIR` makes links of these names to this binary, which acts by the name that
//! it is called by; `weir bmv2 NAME ARGUMENTS` does without links. `compiler` writes a JSON file
//! that carries the program (`weir_server::container`), `server` translates bmv2's options to those
//! of `weir run`, `service` and `prompt` are the two ends of the runtime CLI, and `runtime` has its
//! commands.

mod compiler;
mod install;
mod log;
mod prompt;
mod runtime;
mod server;
mod service;

pub use server::Front;
pub use service::{Service, address, serve};

use crate::cli::CANNOT_ASK;
use crate::compile::Loaded;
use crate::lines::Lines;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_extern_api::Registry;

/// A command of bmv2's users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// The back end of the compiler.
    BackEnd,
    /// The driver of the compiler.
    Compiler,
    /// The switch.
    Switch,
    /// The switch with P4Runtime.
    SwitchGrpc,
    /// The runtime CLI.
    Cli,
}

impl Tool {
    /// All of them.
    const ALL: [Tool; 5] = [Tool::BackEnd, Tool::Compiler, Tool::Switch, Tool::SwitchGrpc, Tool::Cli];

    /// Its name.
    fn name(self) -> &'static str {
        match self {
            Tool::BackEnd => "p4c-bm2-ss",
            Tool::Compiler => "p4c",
            Tool::Switch => "simple_switch",
            Tool::SwitchGrpc => "simple_switch_grpc",
            Tool::Cli => "simple_switch_CLI",
        }
    }

    fn of(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

/// Arguments of `weir bmv2`.
#[derive(Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  weir bmv2 install ~/bin    links of these names to weir\n  weir bmv2 p4c-bm2-ss --p4runtime-files basic.p4info.txtpb -o basic.json basic.p4\n  weir bmv2 simple_switch_grpc -i 1@veth0 -i 2@veth2 basic.json\n  weir bmv2 simple_switch_CLI --thrift-port 9090 < commands.txt\n  weir bmv2 simple_switch_CLI --help\n\ndocs/bmv2.md says what is as in bmv2 and what is not."
)]
pub struct Bmv2 {
    /// install DIR, or a name (p4c-bm2-ss, p4c, simple_switch, simple_switch_grpc or
    /// simple_switch_CLI) and its arguments
    #[arg(
        value_name = "NAME ARGUMENT",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<String>,
}

/// The arguments of `weir bmv2` that this process has by the name it was called by; `None` where
/// that is a name of `weir`.
pub fn by_name(arguments: &[std::ffi::OsString]) -> Option<Tool> {
    let called = Path::new(arguments.first()?).file_name().and_then(OsStr::to_str)?;
    Tool::of(called)
}

/// Does what `weir bmv2` says.
pub fn bmv2(arguments: &Bmv2, externs: &Registry, messages: &Messages) -> Result<u8> {
    let (name, words) = match arguments.words.split_first() {
        Some((name, words)) => (name.as_str(), words),
        None => ("", &[][..]),
    };
    match (name, words) {
        ("install", [flag]) if flag == "--help" || flag == "-h" => {
            use std::io::Write;
            crate::output::stdout().write_all(install::HELP.as_bytes())?;
            Ok(0)
        }
        ("install", [flag]) if flag.starts_with('-') => {
            bail!("weir bmv2 install has no option `{flag}`: expected the directory of the links")
        }
        ("install", [directory]) => install::install(&PathBuf::from(directory), messages),
        ("install", _) => bail!("weir bmv2 install has one argument, the directory of the links"),
        ("--help" | "-h" | "help", _) => help(),
        _ => match Tool::of(name) {
            Some(tool) => run(tool, words, externs, messages),
            None => {
                let names: Vec<&str> = Tool::ALL.into_iter().map(Tool::name).collect();
                bail!(
                    "`{name}` is no command of bmv2 here; they are install, {}",
                    names.join(", ")
                )
            }
        },
    }
}

fn help() -> Result<u8> {
    use std::io::Write;
    let command = <Bmv2 as Args>::augment_args(clap::Command::new("weir bmv2"))
        .about("Act as a command of bmv2: p4c-bm2-ss, p4c, simple_switch, simple_switch_grpc, simple_switch_CLI");
    let mut out = crate::output::stdout();
    write!(out, "{}", command.clone().render_help())?;
    Ok(0)
}

/// The program that runs until a control plane sets one: it drops every packet.
const NO_PROGRAM: &str = include_str!("bmv2/no_program.p4");

/// [`NO_PROGRAM`], compiled.
pub fn no_program() -> Result<Loaded> {
    let options = weir_compiler::Options::default();
    let compiled =
        weir_compiler::compile_source("no_program.p4", NO_PROGRAM, &options, weir_arch::targets()).started()?;
    let program = compiled.program.context("the program that drops every packet")?;
    Ok(Loaded {
        program: Arc::new(program),
        lines: Lines::default(),
    })
}

/// Runs a command with its arguments.
pub fn run(tool: Tool, words: &[String], externs: &Registry, messages: &Messages) -> Result<u8> {
    let with_name = || {
        std::iter::once(tool.name().to_owned())
            .chain(words.iter().cloned())
            .collect::<Vec<_>>()
    };
    match tool {
        Tool::BackEnd | Tool::Compiler => {
            let name = match tool {
                Tool::Compiler => compiler::Name::Driver,
                _ => compiler::Name::BackEnd,
            };
            match parsed::<compiler::Arguments>(&with_name()) {
                Ok(arguments) => compiler::run(name, &arguments, externs, messages),
                Err(code) => Ok(code),
            }
        }
        Tool::Switch => server::run(server::Name::Plain, words, externs),
        Tool::SwitchGrpc => server::run(server::Name::Grpc, words, externs),
        Tool::Cli => match parsed::<prompt::Arguments>(&with_name()) {
            Ok(arguments) => prompt::run(&arguments, messages),
            Err(code) => Ok(code),
        },
    }
}

/// Parses a command line, its name first. Otherwise it prints help or what is wrong, and gives the
/// exit code.
fn parsed<P: Parser + CommandFactory + FromArgMatches>(words: &[String]) -> Result<P, u8> {
    let name = words.first().cloned().unwrap_or_default();
    let command = P::command().name(name.clone()).bin_name(name);
    let matches = command.try_get_matches_from(words);
    matches
        .and_then(|matches| P::from_arg_matches(&matches))
        .map_err(|error| {
            // clap prints help to stdout and mistakes to stderr; a closed pipe is no mistake.
            let _ = error.print();
            if error.use_stderr() { CANNOT_ASK } else { 0 }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_line_is_well_formed_and_shows_an_example() {
        compiler::Arguments::command().debug_assert();
        prompt::Arguments::command().debug_assert();
        assert!(compiler::Arguments::command().get_after_help().is_some());
        assert!(prompt::Arguments::command().get_after_help().is_some());
    }

    #[test]
    fn the_name_that_the_binary_is_called_by_chooses_the_command() {
        let called = |name: &str| by_name(&[name.into()]);
        assert_eq!(called("/usr/local/bin/simple_switch_grpc"), Some(Tool::SwitchGrpc));
        assert_eq!(called("p4c"), Some(Tool::Compiler));
        assert_eq!(called("weir"), None);
        assert_eq!(called("/opt/simple_switch/weir"), None);
    }
}
