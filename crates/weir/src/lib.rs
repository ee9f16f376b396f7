//! The command line of the P4 platform, as a library: a program of one's own that brings externs
//! along calls [`main`] with them, and is then `weir` with these externs.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use std::sync::Arc;
//! use weir::extern_api::{Call, Extern, Outcome, Registry};
//!
//! /// `extern void double(out bit<32> twice, in bit<32> number);`
//! struct Double;
//!
//! impl Extern for Double {
//!     fn call(&self, call: &mut Call<'_>) -> Outcome {
//!         call.set(0, call.get(1).wrapping_mul(2));
//!         Outcome::Continue
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     let mut externs = weir::externs();
//!     externs.function("double", Arc::new(Double));
//!     weir::main(&externs)
//! }
//! ```
//!
//! What the subcommands do is in `weir --help`; the crates behind them are for programs that embed
//! a switch.
#![forbid(unsafe_code)]

mod bench;
mod bmv2;
mod build;
mod bundled;
mod children;
mod cli;
mod compile;
mod ctl;
mod demo;
#[cfg(test)]
mod documented;
mod exposition;
mod extern_rows;
mod input;
mod int;
mod lab;
mod lanes;
mod latency;
mod load;
mod lua;
mod output;
mod overwriting;
mod packets;
mod prompt;
mod rina;
mod run;
mod shell;
mod stats;
mod test;
mod threads;
mod trace;

pub use weir_extern_api as extern_api;

use weir_entries as entry_files;
use weir_show::{graph, lines, xml};

use mimalloc::MiMalloc;
use std::process::ExitCode;

/// Requests are taken in by one thread and done by another, which frees what they were read into:
/// with the system's allocator the two wait for each other, and a server does a tenth fewer of them
/// (see docs/internals/lab-notes.md).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The externs that weir brings.
#[must_use]
pub fn externs() -> extern_api::Registry {
    weir_externs::registry()
}

/// Runs the command line of the process: what `weir` does, where programs may call these externs.
#[must_use]
pub fn main(externs: &extern_api::Registry) -> ExitCode {
    cli::main(externs)
}
