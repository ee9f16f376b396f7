//! The native part of the Python package `weir`: the compiler, a switch that packets run through in
//! process, and the client of both control protocols.
//!
//! Python sees plain values here: numbers, bytes, tuples, and JSON texts for what is read rarely.
//! The classes that users see are in `python/weir`. No call holds Python's lock while it compiles,
//! runs packets or waits for a target. A panic is caught and raised as an exception.
#![deny(unsafe_code)]

mod bridge;
mod client;
mod control;
mod convert;
mod entries;
mod errors;
mod packets;
mod program;
mod switch;

use pyo3::prelude::*;

/// The native part of the package `weir`.
#[pymodule]
mod _weir {
    #[pymodule_export]
    use crate::bridge::{Gate, Task};
    #[pymodule_export]
    use crate::client::{Client, Subscription, connect};
    #[pymodule_export]
    use crate::program::{Program, compile, load};
    #[pymodule_export]
    use crate::switch::Switch;
}
