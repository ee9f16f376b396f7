//! The P4Runtime server as its clients see it: one module per part of the specification.

mod arbitration;
mod batches;
mod common;
mod limits;
mod pipelines;
mod resources;
mod shell;
mod streams;
mod tables;
