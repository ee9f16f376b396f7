//! v1model as simple_switch runs it.

mod driver;
mod externs;
mod fields;
mod runtime;

pub use driver::V1Model;
