//! `weir`: the command line of the P4 platform. See `weir --help`.
#![forbid(unsafe_code)]

mod bench;
mod build;
mod bundled;
mod cli;
mod compile;
mod ctl;
mod demo;
mod graph;
mod load;
mod packets;
mod run;
mod stats;
mod test;
mod trace;
mod why;
mod xml;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
