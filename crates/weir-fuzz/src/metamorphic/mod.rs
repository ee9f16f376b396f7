//! Metamorphic tests: programs rewritten so that they mean the same must pass the packet tests that
//! they passed.
//!
//! A rewrite is an edit of the program's text, at places that its tree shows. It is decided by the
//! text alone what a rewrite may touch, so that a mistake of weir's own checker cannot hide itself.
//! [`run`] finds programs and their tests below folders, runs each as it is, with each rewrite
//! alone, and with a chain of several, by both engines.
//!
//! What this module does not do: it does not look into the program that comes out of the compiler.

mod diff;
mod engine;
mod find;
mod names;
mod nodes;
mod report;
mod rewrites;
mod runner;
mod text;
mod tokens;

pub use report::{Failure, Row, Summary};
pub use runner::{Options, run};
