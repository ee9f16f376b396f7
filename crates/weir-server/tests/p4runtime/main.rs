//! The P4Runtime server as its clients see it: one module per part of the specification.

mod common;
mod tables;
