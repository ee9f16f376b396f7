//! The P4Runtime server as its clients see it: one module per part of the specification.
#![allow(
    deprecated,
    reason = "controllers of older versions use fields that newer ones should not"
)]
#![allow(
    clippy::cloned_ref_to_slice_refs,
    reason = "what is read is compared with lists of what was written"
)]

mod arbitration;
mod batches;
mod churn;
mod common;
mod direct;
mod extern_keys;
mod externs;
mod floods;
mod hostile;
mod limits;
mod model;
mod pipelines;
mod port_queues;
mod proofs;
mod resources;
#[path = "../shared/mod.rs"]
mod shared;
mod shell;
mod streams;
mod tables;
