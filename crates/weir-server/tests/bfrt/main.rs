//! The BF Runtime server as its clients see it: one module per part of docs/bfrt-compliance.md.

mod batches;
mod clients;
mod common;
mod device;
mod generator;
mod hostile;
mod limits;
mod notices;
mod pipelines;
mod profiles;
mod resources;
mod tables;
