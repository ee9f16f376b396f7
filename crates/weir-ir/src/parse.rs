//! The printed form of the IR ([`crate::print`]) read back.

mod code;
mod cursor;
mod items;
mod tokens;
mod values;

use crate::program::Program;
use cursor::Parser;
use thiserror::Error;

/// Why a text is no program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What would have been right.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

type Parsed<T> = Result<T, ParseError>;

/// Reads a program. It is verified too ([`crate::verify`]): what this returns can be run.
///
/// # Errors
/// The text is not in the printed form, or the program breaks an invariant.
pub fn parse(text: &str) -> Parsed<Program> {
    let program = Parser::new(tokens::tokens(text)?).program()?;
    crate::verify::verify(&program).map_err(|errors| ParseError {
        line: 0,
        expected: "a program that keeps the invariants of the IR".into(),
        found: errors.first().map_or_else(String::new, ToString::to_string),
    })?;
    Ok(program)
}
