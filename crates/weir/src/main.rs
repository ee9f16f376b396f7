//! The command line.
mod cli;
mod compile;
mod test;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
