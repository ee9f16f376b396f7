//! The Portable Switch Architecture, version 1.2.

mod driver;
mod externs;
mod fields;
mod fuse;
mod runtime;
mod target;

use crate::registry::Registration;

pub use driver::Psa;

/// How everyone else finds it.
pub(crate) const REGISTRATION: Registration = Registration {
    target: target::TARGET,
    ingress_port: ("ingress_parser_input_metadata", "ingress_port"),
    // Where packets go; all other groups are read by code or not at all.
    observes: |_| Box::new(|role, _| matches!(role, "ingress_output_metadata" | "egress_output_metadata")),
    // Its devices are software.
    advise: |_| Vec::new(),
    load: |engine, externs| Ok(Box::new(Psa::new(engine, externs)?)),
};
