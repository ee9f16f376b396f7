//! Exceptions: the classes are those of `weir._errors`, in Python.

use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_switch::ControlError;
use weir_table::ErrorKind;

/// An exception of a class of `weir._errors`.
fn raise<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("weir._errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call1(arguments)?))
    };
    made().unwrap_or_else(|error| error)
}

/// What the switch refuses.
pub fn refused(py: Python<'_>, code: &str, text: &str) -> PyErr {
    raise(py, "SwitchError", (code, text))
}

/// A value that does not fit, or a name that does not exist.
pub fn invalid(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}

/// The name of a sort of failure, as gRPC has it.
fn code_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidArgument => "INVALID_ARGUMENT",
        ErrorKind::NotFound => "NOT_FOUND",
        ErrorKind::AlreadyExists => "ALREADY_EXISTS",
        ErrorKind::ResourceExhausted => "RESOURCE_EXHAUSTED",
        ErrorKind::FailedPrecondition => "FAILED_PRECONDITION",
        ErrorKind::PermissionDenied => "PERMISSION_DENIED",
    }
}

/// The exception of a refused change.
pub fn control(py: Python<'_>, error: &ControlError) -> PyErr {
    refused(py, code_of(error.kind()), &error.to_string())
}

/// The exception of an unknown or ambiguous name.
pub fn name(py: Python<'_>, error: &weir_switch::NameError) -> PyErr {
    refused(py, "NOT_FOUND", &error.to_string())
}

/// The exception of an error of the client.
pub fn client(py: Python<'_>, error: &weir_client::Error) -> PyErr {
    use weir_client::Error;
    let code = match error {
        Error::Rpc { code, .. } => weir_client::code_name(*code),
        Error::Updates(updates) => match updates.first() {
            Some(first) if updates.iter().all(|u| u.code == first.code) => weir_client::code_name(first.code),
            _ => "UNKNOWN",
        },
        Error::Connect { .. } | Error::Closed => "UNAVAILABLE",
        Error::NotPrimary(_) => "PERMISSION_DENIED",
        Error::Name { .. } => "NOT_FOUND",
        Error::Options(_) | Error::Value { .. } | Error::Input(_) => "INVALID_ARGUMENT",
        Error::Unsupported(_) => "UNIMPLEMENTED",
        Error::Malformed(_) => "DATA_LOSS",
    };
    let updates: Vec<(u64, &str, &str, &str, &str, &str)> = match error {
        Error::Updates(updates) => updates
            .iter()
            .map(|u| {
                (
                    u.index,
                    u.what,
                    &*u.table,
                    &*u.key,
                    weir_client::code_name(u.code),
                    &*u.message,
                )
            })
            .collect(),
        _ => Vec::new(),
    };
    raise(
        py,
        "ClientError",
        (code, error.to_string(), updates, error.is_retryable()),
    )
}

/// Does something without Python's lock. A panic becomes an exception.
pub fn outside<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)))
        .map_err(|panic| PyRuntimeError::new_err(format!("an internal error of weir: {}", text_of(&*panic))))
}

/// The message of a panic.
pub fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given")
}

/// The exception of a refused change, with a text of its own.
pub fn coded(py: Python<'_>, error: &ControlError, text: &str) -> PyErr {
    refused(py, code_of(error.kind()), text)
}
