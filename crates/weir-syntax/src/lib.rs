//! Front half of the `weir` P4_16 compiler: from source text to syntax tree.
//!
//! [`parse_file`] and [`parse_source`] run the [preprocessor](preprocess), the lexer and the
//! [parser] and return a [`Parsed`]: the [tree](ast), the [source map](source) that turns positions
//! into lines, and the [diagnostics](diagnostic). They always return a tree, however mistaken the
//! program is, and never panic. [`render`] turns diagnostics into text.
//!
//! Deliberately absent: names are not resolved, types not checked and constants not folded, except
//! that the parser remembers which names were declared as types, because the grammar of P4 needs
//! that. Whatever depends on more is accepted here and checked by `weir-compiler`.
//!
//! The depth of every tree is bounded by [`parser::MAX_EXPRESSION_DEPTH`] and
//! [`parser::MAX_STATEMENT_DEPTH`], so that later phases may recurse over it.
//!
//! ```
//! use weir_syntax::preprocess::{Options, SystemFiles};
//! use weir_syntax::{parse_source, render};
//!
//! let text = "header h { bit<8> a }";
//! let parsed = parse_source("a.p4", text, &Options::default(), SystemFiles(&[]));
//! let diagnostic = &parsed.diagnostics.list()[0];
//! assert_eq!(
//!     render::short(diagnostic, &parsed.sources),
//!     "a.p4:1:21: error[syntax]: expected `;` after the field, found `}`"
//! );
//! ```

#![deny(unsafe_code)]

pub mod ast;
pub mod diagnostic;
mod lexer;
mod literal;
pub mod parser;
pub mod preprocess;
pub mod render;
pub mod similar;
pub mod source;
mod token;

use std::path::Path;

use ast::{Expr, Program};
pub use diagnostic::{Diagnostic, Diagnostics, Label, Severity};
use parser::Parser;
use preprocess::{FileLoader, Include, MemoryLoader, Options, Preprocessor, SystemFiles};
use source::{SourceMap, Span};

/// A parsed program.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// The tree; of a mistaken program the parts that could be parsed.
    pub program: Program,
    /// All files read, the program's own first.
    pub sources: SourceMap,
    /// What is wrong.
    pub diagnostics: Diagnostics,
    /// Files included directly or indirectly, in the order they were.
    pub includes: Vec<Include>,
}

/// Reads and parses a file. Files it includes come from `loader`, then from `system`.
#[must_use]
pub fn parse_file(path: &Path, options: &Options, loader: &dyn FileLoader, system: SystemFiles<'_>) -> Parsed {
    let name = path.to_string_lossy();
    match loader.load_program(path) {
        Ok(bytes) => parse_bytes(&name, bytes, options, loader, system),
        Err(error) => {
            let mut parsed = Parsed::default();
            // An empty file of that name, so that the diagnostic has a place to name.
            let _ = parsed.sources.add(&name, "", false);
            let message = format!("cannot read `{name}`: {error}");
            parsed
                .diagnostics
                .push(Diagnostic::error("io", Span::default(), message));
            parsed
        }
    }
}

/// Parses a text that can include nothing but `system` files.
#[must_use]
pub fn parse_source(name: &str, text: &str, options: &Options, system: SystemFiles<'_>) -> Parsed {
    parse_bytes(name, text.into(), options, &MemoryLoader::default(), system)
}

/// Parses the bytes of a file called `name`.
#[must_use]
pub fn parse_bytes(
    name: &str,
    bytes: Vec<u8>,
    options: &Options,
    loader: &dyn FileLoader,
    system: SystemFiles<'_>,
) -> Parsed {
    let mut preprocessor = Preprocessor::new(options, loader, system);
    let tokens = preprocessor.run(name, bytes);
    let Preprocessor {
        sources,
        mut diagnostics,
        interner,
        includes,
        aborted,
        ..
    } = preprocessor;
    // What was cut short would only give a misleading error at its end.
    let mut program = Program::default();
    if !aborted {
        let (parsed, found) = Parser::new(tokens, &interner, &sources).program();
        program = parsed;
        // Nothing else that was found matters then: no part of the program is P4_16.
        if found.list().iter().any(|d| d.code == "p4-14") {
            diagnostics = Diagnostics::default();
        }
        for diagnostic in found.list() {
            diagnostics.push(diagnostic.clone());
        }
    }
    Parsed {
        program,
        sources,
        diagnostics,
        includes,
    }
}

/// Parses one expression, for tests and tools. `None` if it is mistaken.
#[must_use]
pub fn parse_expression(text: &str) -> (Option<Expr>, Diagnostics) {
    let options = Options::default();
    let loader = MemoryLoader::default();
    let mut preprocessor = Preprocessor::new(&options, &loader, SystemFiles::default());
    let tokens = preprocessor.run("expression", text.into());
    let (expression, found) = Parser::new(tokens, &preprocessor.interner, &preprocessor.sources).only_expression();
    let mut diagnostics = preprocessor.diagnostics;
    for diagnostic in found.list() {
        diagnostics.push(diagnostic.clone());
    }
    let expression = expression.filter(|_| !diagnostics.has_errors());
    (expression, diagnostics)
}
