//! Errors of files of entries.

use std::fmt::Display;
use thiserror::Error;

/// A file of entries cannot be used: where, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct EntriesError(pub(crate) String);

impl From<weir_switch::NameError> for EntriesError {
    fn from(error: weir_switch::NameError) -> Self {
        EntriesError(error.to_string())
    }
}

impl From<weir_client::Error> for EntriesError {
    fn from(error: weir_client::Error) -> Self {
        EntriesError(error.to_string())
    }
}

/// The result of reading such a file.
pub type Result<T> = std::result::Result<T, EntriesError>;

/// Puts a place before an error.
pub(crate) trait Context<T> {
    fn context(self, place: impl Display) -> Result<T>;
    fn with_context<D: Display>(self, place: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, place: impl Display) -> Result<T> {
        self.map_err(|error| EntriesError(format!("{place}: {error}")))
    }

    fn with_context<D: Display>(self, place: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| EntriesError(format!("{}: {error}", place())))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, place: impl Display) -> Result<T> {
        self.ok_or_else(|| EntriesError(place.to_string()))
    }

    fn with_context<D: Display>(self, place: impl FnOnce() -> D) -> Result<T> {
        self.ok_or_else(|| EntriesError(place().to_string()))
    }
}

/// Returns an error with this text.
macro_rules! bail {
    ($($text:tt)*) => {
        return Err($crate::error::EntriesError(format!($($text)*)))
    };
}

/// Returns an error with this text, unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => {
        if !$condition {
            $crate::error::bail!($($text)*);
        }
    };
}

pub(crate) use {bail, ensure};
