//! Tests of the BF Runtime server through its RPCs: one module per part of docs/bfrt-compliance.md.

mod batches;
mod churn;
mod clients;
mod common;
mod custom_crc;
mod device;
mod extern_keys;
mod generator;
mod hostile;
mod limits;
mod model;
mod notices;
mod pipelines;
mod profiles;
mod proofs;
mod replicas;
mod resources;
#[path = "../shared/mod.rs"]
mod shared;
mod tables;
