//! A second evaluator of programs, which shares nothing with the engines but the parser and the
//! checker.
//!
//! It walks the checked tree by the text of the language specification: values are trees, names
//! have values, parameters are copied in and out. Nothing is lowered, inlined or optimised, so that
//! what weir's front end does wrong, and both engines with it, shows. It is slow, and what it does
//! not know it says ([`Unknown`]).
//!
//! Where P4 leaves a value undefined it has weir's: everything begins as zero, a field of an
//! invalid header keeps what it has until the header becomes valid, when all its fields are zero;
//! an element that a stack does not have reads as zero.

mod block;
mod call;
mod control;
mod expr;
mod externs;
mod hash;
mod instance;
mod judge;
mod machine;
mod marks;
mod operator;
mod packet;
mod place;
mod replication;
mod statement;
mod stop;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod tna;
mod v1model;
mod value;

pub use judge::{Difference, Verdict, judge};
pub use stop::Unknown;
pub(crate) use target::{keep, keep_tna, made_up, made_up_tna};
