//! Features and predictions as text and pictures.

mod explain;
mod graph;
mod prediction;

pub use explain::explain;
pub use graph::svg;
pub use prediction::{changes, prediction};

/// A count of paths: exact as long as a floating-point number holds it.
#[must_use]
pub fn count(paths: f64) -> String {
    if paths < 1e6 {
        format!("{paths:.0}")
    } else {
        format!("{paths:.3e}")
    }
}

/// `1 path`, `2 paths`.
pub(crate) fn plural(count: usize, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}
