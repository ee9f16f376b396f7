//! `weir lab`: hosts, switches and links on this machine, in network namespaces, with a prompt.
//!
//! Two processes run a lab. The outer one has the terminal, and makes the namespaces that rights
//! depend on ([`outside`]). The inner one is the first process of a PID namespace ([`inside`]): it
//! starts a thread with a network namespace for each host ([`namespace`]), the links and the
//! switches ([`network`]), and executes commands ([`commands`]).

#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod input;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod json;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod outside;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod shape;
#[cfg(target_os = "linux")]
mod switches;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod toml_file;
#[cfg(target_os = "linux")]
mod tools;
#[cfg(target_os = "linux")]
mod topology;
#[cfg(target_os = "linux")]
mod wire;

use crate::output::Messages;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  weir lab --example basic                         three routers and three hosts, no root needed
  echo pingall | weir lab --example basic --run -
  weir lab pod-topo/topology.json --program solution/basic.p4     an exercise of p4lang/tutorials
  weir lab topology.toml --run test.lab            exit code 1 when a command fails

At the prompt: h1 ping h2, pingall, h1 sh, trace s1 h1 ping -c 1 h2, link s1 s2 down, ctl s1 show, help, exit.
docs/lab.md has the formats of topologies, and says what the machine must have.";

/// Arguments of `weir lab`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Lab {
    /// The topology: JSON in the format of the P4 tutorials, or TOML
    #[arg(
        value_name = "TOPOLOGY",
        required_unless_present_any = ["example", "list_examples"],
        conflicts_with = "example"
    )]
    pub topology: Option<PathBuf>,
    /// A bundled topology
    #[arg(long, value_name = "NAME")]
    pub example: Option<String>,
    /// List the bundled topologies
    #[arg(long)]
    pub list_examples: bool,
    /// Execute the commands of a file (`-`: of standard input) and end; exit code 1 when one fails
    #[arg(long, value_name = "SCRIPT")]
    pub run: Option<PathBuf>,
    /// The program of a switch, or of all switches for which the topology names none of their own
    #[arg(long, value_name = "[SWITCH=]PROG.p4")]
    pub program: Vec<String>,
    /// Keep logs and the P4Runtime sockets of switches (s1.log, s1.p4rt) in this folder; without
    /// it, only the lab's own commands see them
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Serve P4Runtime of the first switch at this address of the machine, too, e.g.
    /// 127.0.0.1:50051, of the second one at the next port, and so on
    #[arg(long, value_name = "ADDR")]
    pub p4runtime: Option<std::net::SocketAddr>,
    /// The outer process of this inner one
    #[arg(long, hide = true)]
    pub inside: Option<String>,
}

impl Lab {
    /// Whether someone types the commands, and has the terminal.
    #[cfg(target_os = "linux")]
    fn is_interactive(&self) -> bool {
        use std::io::IsTerminal;
        self.run.is_none() && std::io::stdin().is_terminal()
    }
}

/// Does what the command line says.
#[cfg(target_os = "linux")]
pub fn lab(arguments: &Lab, messages: &Messages) -> Result<u8> {
    use std::io::Write;
    if arguments.list_examples {
        let mut out = crate::output::stdout();
        for (name, subject, _) in plan::EXAMPLES {
            writeln!(out, "{name:<10} {subject}")?;
        }
        return Ok(0);
    }
    match &arguments.inside {
        None => outside::run(arguments, messages),
        Some(parent) => inside::run(arguments, parent, messages),
    }
}

/// Says that there is no lab.
#[cfg(not(target_os = "linux"))]
pub fn lab(_: &Lab, _: &Messages) -> Result<u8> {
    anyhow::bail!("a lab is made of network namespaces, which only Linux has")
}
