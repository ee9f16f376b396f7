//! The Tofino native architectures, of the first chip and of the second.

mod advice;
mod driver;
mod externs;
mod fields;
mod fuse;
mod hashes;
mod headers;
mod math;
mod registers;
mod runtime;
mod target;
mod transmit;

use crate::registry::{Observer, Registration};
use headers::Chip;
use weir_ir::Program;

pub use driver::Tna;
pub(crate) use runtime::DeferredCount;

/// How everyone else finds the first.
pub(crate) const TNA: Registration = Registration {
    target: target::TNA,
    ingress_port: INGRESS_PORT,
    observes,
    advise: |program| advice::advice(program, false),
    load: |engine, externs| Ok(Box::new(Tna::new(engine, externs, Chip::FIRST)?)),
};

/// How everyone else finds the second.
pub(crate) const T2NA: Registration = Registration {
    target: target::T2NA,
    ingress_port: INGRESS_PORT,
    observes,
    advise: |program| advice::advice(program, true),
    load: |engine, externs| Ok(Box::new(Tna::new(engine, externs, Chip::SECOND)?)),
};

const INGRESS_PORT: (&str, &str) = ("pipe0.ingress_intrinsic_metadata", "ingress_port");

/// The variables that the driver reads: the destination of packets, and whether a parser has
/// extracted the header in front of them. The driver only sets the others.
fn observes(_: &Program) -> Observer {
    const READ: [&str; 3] = ["_for_tm", "_for_deparser", "_for_output_port"];
    Box::new(|role, leaf| {
        let is_header = role.ends_with("ingress_intrinsic_metadata") || role.ends_with("egress_intrinsic_metadata");
        READ.iter().any(|end| role.ends_with(end)) || is_header && leaf.path == "$valid$"
    })
}
