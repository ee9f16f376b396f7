//! Fuzz targets: one function per kind of input that strangers can give weir.
//!
//! A [`Target`] takes bytes and must neither panic nor hang nor eat memory, whatever they are. The
//! [`Mutator`] makes such bytes out of good input: cut, spliced, flipped, with tokens of one file
//! in another. `cargo run --release -p weir-fuzz -- --seconds 3600` runs them for an hour and keeps
//! what broke; the tests run each for a moment.
//!
//! Two targets do not look for crashes but for mistakes of the front end: `ast` and `ast-tna` make
//! programs and have
//! them judged by a second evaluator ([`judge`]), which reads the checked tree by the text of the
//! specification.
//!
//! What this crate does not do: it does not measure coverage. The targets are plain functions, so
//! that a coverage-guided fuzzer can call them too.
//!
//! ```
//! use weir_fuzz::{Mutator, TARGETS};
//!
//! let mut mutator = Mutator::new(1, vec![b"const bit<8> a = 1;".to_vec()]);
//! let source = TARGETS.iter().find(|t| t.name == "source").unwrap();
//! for _ in 0..10 {
//!     (source.run)(&mutator.next_input());
//! }
//! ```
#![forbid(unsafe_code)]

mod arguments;
mod collecting;
mod control;
mod engines;
mod generate;
pub mod metamorphic;
mod mutate;
mod oracle;
mod rina;
mod rng;
mod saved;
mod state;
mod targets;
mod telemetry;

pub use arguments::binary;
pub use engines::totals::{judgements, totals};
pub use engines::{replay, with_includes};
pub use mutate::Mutator;
pub use oracle::{Difference, Unknown, Verdict, judge};
pub use targets::{TARGETS, Target, seeds};
