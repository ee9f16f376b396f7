//! The command line: what can be asked, and the exit code of the answer.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "weir", version, about = "Compile, run, trace and measure P4_16 programs")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check a program: 0 accepted, 1 rejected with diagnostics on stderr
    Check(Check),
    /// Run packet tests (STF): 0 passed, 1 failed, 2 does not compile
    Test(Test),
}

/// Which engine runs the program.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Engine {
    /// The interpreter
    Interp,
}

#[derive(Args)]
pub struct Test {
    /// The program
    #[command(flatten)]
    pub source: Source,
    /// The tests
    #[arg(value_name = "TEST.stf", required = true)]
    pub tests: Vec<PathBuf>,
    /// Which engine runs them
    #[arg(long, value_enum, default_value_t = Engine::Interp)]
    pub engine: Engine,
    /// Show what each packet met
    #[arg(long)]
    pub trace: bool,
}

/// Where the program and its includes are.
#[derive(Args, Clone)]
pub struct Source {
    /// The P4_16 program
    #[arg(value_name = "PROG.p4")]
    pub program: PathBuf,
    /// Search this directory for included files
    #[arg(short = 'I', value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Define a macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
    /// The architecture, where the includes do not tell
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,
    /// How diagnostics are written
    #[arg(long, value_enum, default_value_t = MessageFormat::Human)]
    pub message_format: MessageFormat,
}

/// How diagnostics are written.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum MessageFormat {
    /// With the source line and what to do
    Human,
    /// FILE:LINE:COL: error[CODE]: MESSAGE
    Short,
    /// One JSON object per line
    Json,
}

#[derive(Args)]
struct Check {
    #[command(flatten)]
    source: Source,
}

/// Parses the arguments, does what they say, and tells how it went.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match cli.command {
        Command::Check(check) => crate::compile::check(&check.source),
        Command::Test(test) => crate::test::test(&test),
    }
}
