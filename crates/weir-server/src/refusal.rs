//! [`Refusal`]: the error of a request or of one of its updates, with a [`Cause`].
//!
//! Each protocol maps causes to gRPC codes itself.

use std::borrow::Cow;
use weir_switch::{ControlError, ErrorKind, GeneratorError};
use weir_table::TableError;

/// The cause of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The request is malformed whatever the state is.
    Malformed,
    /// A value does not fit its type, or an index is beyond the end.
    OutOfRange,
    /// It is not there.
    NotFound,
    /// It is there already.
    Exists,
    /// A limit or a capacity is exceeded.
    Exhausted,
    /// The program or the role does not allow it.
    Forbidden,
    /// It cannot be done in this state.
    Precondition,
    /// Something else refers to it.
    InUse,
    /// This server does not do it.
    Unsupported,
    /// The update was rolled back because another one of its batch failed.
    RolledBack,
    /// The server, the switch or the client's session is not there (any more).
    Unavailable,
    /// The client was too slow.
    TooSlow,
}

/// Why a request, or one of its parts, was refused. Nothing has changed by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The cause.
    pub cause: Cause,
    /// An explanation for people.
    pub message: Cow<'static, str>,
}

macro_rules! constructors {
    ($($name:ident $cause:ident),* $(,)?) => {
        impl Refusal {
            $(pub(crate) fn $name(message: impl Into<Cow<'static, str>>) -> Self {
                Refusal { cause: Cause::$cause, message: message.into() }
            })*
        }
    };
}

constructors! {
    malformed Malformed,
    out_of_range OutOfRange,
    not_found NotFound,
    exists Exists,
    exhausted Exhausted,
    forbidden Forbidden,
    precondition Precondition,
    unsupported Unsupported,
    unavailable Unavailable,
    too_slow TooSlow,
}

impl Refusal {
    pub(crate) fn rolled_back() -> Self {
        Refusal {
            cause: Cause::RolledBack,
            message: "taken back, because another update of the batch failed".into(),
        }
    }

    /// The same, with the place of the error before the message.
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message).into();
        self
    }
}

impl From<ControlError> for Refusal {
    fn from(error: ControlError) -> Self {
        let cause = match &error {
            ControlError::IndexOutOfRange { .. } => Cause::OutOfRange,
            ControlError::Generator(GeneratorError::None | GeneratorError::Trigger) => Cause::Unsupported,
            ControlError::Table(TableError::ActionScope { .. }) => Cause::Forbidden,
            ControlError::Table(TableError::InUse { .. }) => Cause::InUse,
            other => match other.kind() {
                ErrorKind::InvalidArgument => Cause::Malformed,
                ErrorKind::AlreadyExists => Cause::Exists,
                ErrorKind::NotFound => Cause::NotFound,
                ErrorKind::ResourceExhausted => Cause::Exhausted,
                ErrorKind::PermissionDenied => Cause::Forbidden,
                ErrorKind::FailedPrecondition => Cause::Precondition,
            },
        };
        Refusal {
            cause,
            message: error.to_string().into(),
        }
    }
}

impl From<crate::Gone> for Refusal {
    fn from(gone: crate::Gone) -> Self {
        Refusal::unavailable(gone.to_string())
    }
}
