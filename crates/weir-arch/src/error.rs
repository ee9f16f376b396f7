//! Why a program cannot be run.

use thiserror::Error;
use weir_ir::{Call, Loc, Program};

/// A program was refused before any packet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// No architecture runs programs for this target.
    #[error("cannot run programs for `{target}`: there is no such architecture here; there are {known}")]
    Target {
        /// [`Program::target`]
        target: String,
        /// Targets that can be run.
        known: String,
    },
    /// A programmable block is missing.
    #[error("the program has no block `{role}`, which {target} needs")]
    MissingBlock {
        /// The block's role.
        role: &'static str,
        /// The target.
        target: &'static str,
    },
    /// A programmable block that the architecture does not run.
    #[error("{place}: the block `{role}` cannot be run: {problem}")]
    BadBlock {
        /// The block's role.
        role: String,
        /// The problem and its remedy.
        problem: &'static str,
        /// `file:line:column`
        place: String,
    },
    /// An extern that the architecture does not have.
    #[error("{place}: {target} has no extern {what}, and none was registered under that name")]
    UnknownExtern {
        /// The function, method or type.
        what: String,
        /// `file:line:column`
        place: String,
        /// The target.
        target: &'static str,
    },
    /// It is no program of its target: a compiler would not have made it.
    #[error("{place}: this is no program for {target}: {problem}")]
    NotOfTarget {
        /// The problem.
        problem: String,
        /// `file:line:column`
        place: String,
        /// The target.
        target: &'static str,
    },
    /// An extern is used in a way that the architecture does not allow.
    #[error("{place}: {problem}")]
    BadExtern {
        /// The problem and its remedy.
        problem: String,
        /// `file:line:column`
        place: String,
    },
}

impl LoadError {
    /// The problem, without the place.
    #[must_use]
    pub fn problem(&self) -> String {
        let text = self.to_string();
        let place = self.place().map(|place| format!("{place}: ")).unwrap_or_default();
        text.strip_prefix(&place).unwrap_or(&text).to_owned()
    }

    /// `file:line:column` of the problem, if it has a place in the program.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        match self {
            LoadError::Target { .. } | LoadError::MissingBlock { .. } => None,
            LoadError::BadBlock { place, .. }
            | LoadError::UnknownExtern { place, .. }
            | LoadError::NotOfTarget { place, .. }
            | LoadError::BadExtern { place, .. } => Some(place),
        }
    }
}

/// A program has no compiled form; the interpreter can run it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}; only the interpreter can follow it")]
pub struct NotCompiled {
    /// The construct that cannot be compiled.
    pub problem: String,
    /// `file:line:column`
    pub place: String,
}

impl NotCompiled {
    /// Something at a place of a program.
    #[must_use]
    pub fn new(program: &Program, loc: Loc, problem: impl Into<String>) -> Self {
        NotCompiled {
            problem: problem.into(),
            place: place(program, loc),
        }
    }

    /// Something about a programmable block, by its index in [`Program::blocks`].
    #[must_use]
    pub fn block(program: &Program, block: usize, problem: &str) -> Self {
        let block = program.blocks.get(block);
        let name = block.map_or("", |b| b.name.as_str());
        let loc = block.map_or(Loc::default(), |b| b.loc);
        NotCompiled::new(program, loc, format!("`{name}`: {problem}"))
    }

    /// A call of an extern.
    #[must_use]
    pub fn call(program: &Program, call: &Call, loc: Loc) -> Self {
        let instance = call.instance.and_then(|id| program.externs.get(id));
        let problem = match instance {
            Some(x) => format!(
                "`{}` of {} `{}` has no compiled form here",
                call.function, x.type_name, x.name
            ),
            None => format!("`{}` has no compiled form here", call.function),
        };
        NotCompiled::new(program, loc, problem)
    }
}

/// A part of a compiled program that is left to the interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}: {why}")]
pub struct LeftOut {
    /// The packets, or the part of their processing.
    pub what: &'static str,
    /// Why.
    pub why: String,
}

impl LeftOut {
    /// Something that is interpreted for a reason.
    #[must_use]
    pub fn new(what: &'static str, why: &dyn std::fmt::Display) -> Self {
        LeftOut {
            what,
            why: why.to_string(),
        }
    }
}

/// `file:line:column` of a place in a program.
#[must_use]
pub fn place(program: &Program, loc: Loc) -> String {
    let file = program.files.get(loc.file as usize).map_or("?", String::as_str);
    format!("{file}:{}:{}", loc.line, loc.column)
}
