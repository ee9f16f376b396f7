//! `weir`: the command line of the P4 platform. See `weir --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    weir::main(&weir::externs())
}
