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
mod input;
mod lines;
mod load;
mod output;
mod packets;
mod run;
mod shell;
mod stats;
mod test;
mod trace;
mod why;
mod xml;

use mimalloc::MiMalloc;
use std::process::ExitCode;

/// Requests are taken in by one thread and done by another, which frees what they were read into:
/// with the system's allocator the two wait for each other, and a server does a tenth fewer of them
/// (see docs/internals/lab-notes.md).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
