//! Why evaluation ends before its end.

use std::fmt;
use weir_syntax::ast::Name;

/// Something that the oracle does not know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unknown(pub String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why evaluation ends before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// `exit`
    Exit,
    /// A parser has rejected the packet, with this error.
    Reject(Name),
    /// The packet is dropped at once.
    Abort,
    /// It cannot be said what happens.
    Unknown(Unknown),
}

/// A value, or why there is none.
pub(super) type Eval<T> = Result<T, Stop>;

/// It cannot be said what happens.
pub(super) fn unknown<T>(reason: impl Into<String>) -> Eval<T> {
    Err(Stop::Unknown(Unknown(reason.into())))
}
