//! Errors: their cause, the responsible side, and whether a retry may succeed.

use std::fmt;
use tonic::{Code, Status};

/// The side that must resolve an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The caller: the request can never succeed as it is.
    Caller,
    /// The target: it refuses the request or does not support it.
    Target,
    /// The network between them.
    Network,
}

/// The error of one update of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateError {
    /// Its index in the batch, or in everything sent by a [`Pipeline`](crate::Pipeline).
    pub index: u64,
    /// `insert`, `modify`, …
    pub what: &'static str,
    /// Name of the table.
    pub table: String,
    /// The key, as [`crate::notation`] writes it.
    pub key: String,
    /// The cause.
    pub code: Code,
    /// The message of the target.
    pub message: String,
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if !self.table.is_empty() {
            write!(f, " {}", self.table)?;
        }
        if !self.key.is_empty() {
            write!(f, " [{}]", self.key)?;
        }
        write!(f, ": {}", code_name(self.code))?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

/// An error of this library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The target is unreachable.
    #[error("cannot reach {target}: {reason}")]
    Connect {
        /// Its address.
        target: String,
        /// The reason.
        reason: String,
    },
    /// The options are invalid, such as an address without a port.
    #[error("{0}")]
    Options(String),
    /// The target has refused a request as a whole.
    #[error("{what}: {}{}{message}", code_name(*.code), if message.is_empty() { "" } else { ": " })]
    Rpc {
        /// The request.
        what: &'static str,
        /// The cause.
        code: Code,
        /// The message of the target.
        message: String,
    },
    /// Updates of a batch have failed. Those not listed have been executed, unless the batch is
    /// atomic.
    #[error("{}", summary(.0))]
    Updates(Vec<UpdateError>),
    /// Another controller is primary.
    #[error("another controller controls the target{}", .0.map_or_else(String::new, |id| format!(", with election id {id}")))]
    NotPrimary(Option<u128>),
    /// The name is unknown or ambiguous.
    #[error("{}", unknown(what, owner, name, *is_ambiguous, candidates))]
    Name {
        /// The kind of name: `table`, `action`, …
        what: &'static str,
        /// The program or table that was searched.
        owner: String,
        /// The name.
        name: String,
        /// Several names match.
        is_ambiguous: bool,
        /// The matching names, or similar ones.
        candidates: Vec<String>,
    },
    /// A value does not fit its field.
    #[error("{table}: {field}: {reason}")]
    Value {
        /// Name of the table.
        table: String,
        /// Name of the key, parameter or data.
        field: String,
        /// What was expected.
        reason: String,
    },
    /// A message of the target is malformed.
    #[error("the target has sent what cannot be understood: {0}")]
    Malformed(String),
    /// The protocol or the table does not support the operation.
    #[error("{0}")]
    Unsupported(String),
    /// A file, or a line of it, cannot be read.
    #[error("{0}")]
    Input(String),
    /// The connection was closed by this side.
    #[error("the connection is closed")]
    Closed,
}

impl Error {
    /// The side that must resolve it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Error::Connect { .. } | Error::Closed => Fault::Network,
            Error::Options(_)
            | Error::Name { .. }
            | Error::Value { .. }
            | Error::Unsupported(_)
            | Error::Input(_)
            | Error::NotPrimary(_) => Fault::Caller,
            Error::Malformed(_) => Fault::Target,
            Error::Rpc { code, .. } => fault_of(*code),
            Error::Updates(errors) => {
                let faults = errors.iter().map(|e| fault_of(e.code));
                if faults.into_iter().any(|f| f == Fault::Target) {
                    Fault::Target
                } else {
                    Fault::Caller
                }
            }
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Connect { .. } => true,
            Error::Rpc { code, .. } => is_transient(*code),
            Error::Updates(errors) => errors.iter().all(|e| is_transient(e.code)),
            _ => false,
        }
    }

    /// The gRPC code, if the target has refused a whole request.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::Rpc { code, .. } => Some(*code),
            _ => None,
        }
    }

    pub(crate) fn rpc(what: &'static str, status: &Status) -> Error {
        Error::Rpc {
            what,
            code: status.code(),
            message: status.message().to_owned(),
        }
    }
}

fn is_transient(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded | Code::Cancelled
    )
}

fn fault_of(code: Code) -> Fault {
    match code {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Fault::Network,
        Code::Internal | Code::Unknown | Code::DataLoss | Code::Unimplemented | Code::ResourceExhausted => {
            Fault::Target
        }
        _ => Fault::Caller,
    }
}

/// The gRPC name of a code.
#[must_use]
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// Number of failed updates that a summary lists.
const SPELLED_OUT: usize = 5;

fn summary(errors: &[UpdateError]) -> String {
    if let [only] = errors {
        return only.to_string();
    }
    let mut text = format!("{} updates have failed", errors.len());
    for error in errors.iter().take(SPELLED_OUT) {
        text += &format!("\n  {}: {error}", error.index);
    }
    if errors.len() > SPELLED_OUT {
        text += &format!("\n  and {} more", errors.len() - SPELLED_OUT);
    }
    text
}

fn unknown(what: &str, owner: &str, name: &str, is_ambiguous: bool, candidates: &[String]) -> String {
    let within = if owner.is_empty() {
        String::new()
    } else {
        format!("{owner}: ")
    };
    let list = candidates.join(", ");
    if is_ambiguous {
        return format!("{within}{what} {name} could be any of {list}: say more of the name");
    }
    if candidates.is_empty() {
        return format!("{within}there is no {what} {name}");
    }
    format!("{within}there is no {what} {name}; did you mean {list}?")
}
