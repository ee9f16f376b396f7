//! Why a pipeline cannot be compiled.

use thiserror::Error;

/// A feature of a program that compiled code lacks; the interpreter has it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("compiled code cannot do this yet: {what}")]
pub struct Unsupported {
    what: String,
}

impl Unsupported {
    /// `what`: the feature.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Unsupported { what: what.into() }
    }
}

/// Why there is no machine code.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The program uses a feature that compiled code lacks.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// Compiling would take more memory than the budget allows.
    #[error(
        "the program is too large to be compiled: {blocks} blocks, {instructions} instructions, {headers} headers and {patterns} words of patterns would take some {megabytes} MiB, and {} MiB are allowed",
        crate::budget::LIMIT >> 20
    )]
    TooLarge {
        /// Blocks of the pipeline.
        blocks: u64,
        /// Instructions in them.
        instructions: u64,
        /// Headers, each element of a stack counted.
        headers: u64,
        /// 64-bit words of the patterns of `select`s.
        patterns: u64,
        /// Memory that compiling would take, in MiB, as estimated.
        megabytes: u64,
    },
    /// A packet may do more work outside of loops than the interpreter allows: arithmetic on more
    /// than 64 bits, lists of patterns, lookups with masks or ranges in large tables.
    #[error(
        "arithmetic on more than 64 bits, lists of patterns and lookups with masks or ranges may cost a packet up to {words} units, and {} are allowed in machine code",
        weir_interp::INSTRUCTION_BUDGET
    )]
    TooMuchWork {
        /// Units of [`weir_ir::cost`].
        words: u32,
    },
    /// The code generator refused; a bug in weir.
    #[error("no machine code could be made: {0}")]
    Codegen(String),
}

impl CompileError {
    /// An error of the code generator.
    pub(crate) fn codegen(error: impl std::fmt::Display) -> Self {
        CompileError::Codegen(error.to_string())
    }
}
