//! v1model as simple_switch runs it.

mod driver;
mod externs;
mod fields;
mod fuse;
mod runtime;

pub use driver::V1Model;
pub(crate) use externs::Op;
pub(crate) use runtime::Marks;
