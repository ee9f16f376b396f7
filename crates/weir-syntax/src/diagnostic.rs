//! Diagnostics: what is wrong, where, what was expected and what to do.
//!
//! Every phase collects [`Diagnostic`]s in [`Diagnostics`] and goes on; nothing aborts at the first
//! mistake. Rendering is a separate step ([`crate::render`]).

use crate::source::Span;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The program is rejected.
    Error,
    /// The program is accepted, but probably does not do what its author means.
    Warning,
}

/// A second place that explains the first, e.g. a previous declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is there.
    pub message: String,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// A stable code in kebab-case, e.g. `type-error`, `not-found`, `duplicate`.
    pub code: &'static str,
    /// The place it is reported at.
    pub span: Span,
    /// One sentence: what was expected and what was found.
    pub message: String,
    /// Further places.
    pub labels: Vec<Label>,
    /// What to do about it, where known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error.
    #[must_use]
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            code,
            span,
            message: message.into(),
            labels: Vec::new(),
            help: None,
        }
    }

    /// A warning.
    #[must_use]
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Self::error(code, span, message)
        }
    }

    /// Adds a second place.
    #[must_use]
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label {
            span,
            message: message.into(),
        });
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A growing list of findings.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    dropped: usize,
}

impl Diagnostics {
    /// More findings than this are counted, not kept: nobody reads them and hostile input would
    /// exhaust memory.
    pub const LIMIT: usize = 1000;

    /// Adds a finding. One with the same code and place as an earlier one is dropped.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        let again = self
            .list
            .iter()
            .rev()
            .take(64)
            .any(|d| d.code == diagnostic.code && d.span == diagnostic.span && d.message == diagnostic.message);
        if again {
            return;
        }
        if self.list.len() < Self::LIMIT {
            self.list.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds everything another list holds.
    pub fn extend(&mut self, other: Diagnostics) {
        self.extend_if(other, |_| true);
    }

    /// Adds what of another list is wanted.
    pub fn extend_if(&mut self, other: Diagnostics, wanted: impl Fn(&Diagnostic) -> bool) {
        self.dropped += other.dropped;
        for diagnostic in other.list.into_iter().filter(wanted) {
            self.push(diagnostic);
        }
    }

    /// Whether any error was found.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All findings in the order they were made.
    #[must_use]
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// How many were not kept.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped
    }
}
