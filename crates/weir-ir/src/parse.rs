//! The printed form of the IR ([`crate::print`]) read back.

mod code;
mod cursor;
mod items;
mod tokens;
mod values;

use crate::program::Program;
use crate::verify::VerifyError;
use cursor::Parser;
use thiserror::Error;
pub(crate) use tokens::MAX_WIDTH;

/// Why a text is no program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// It is not in the printed form.
    #[error("line {line}: expected {expected}, found {found}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// The expected token.
        expected: String,
        /// The token found.
        found: String,
    },
    /// It breaks an invariant of the IR; the first one.
    #[error(transparent)]
    Broken(#[from] VerifyError),
}

type Parsed<T> = Result<T, ParseError>;

/// Reads a program. It is verified too ([`crate::verify`]): what this returns can be run.
///
/// # Errors
/// The text is not in the printed form, or the program breaks an invariant.
pub fn parse(text: &str) -> Parsed<Program> {
    let program = Parser::new(tokens::tokens(text)?).program()?;
    match crate::verify::verify_saved(&program).map_err(|errors| errors.into_iter().next()) {
        Err(Some(first)) => Err(first.into()),
        Err(None) | Ok(()) => Ok(program),
    }
}
