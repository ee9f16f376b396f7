//! How a test went.

use std::fmt;
use weir_interp::TraceTree;
use weir_switch::Output;

/// Something was not as the test says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Line of the test, from 1; 0: the whole test.
    pub line: u32,
    /// What should have been.
    pub expected: String,
    /// What was.
    pub got: String,
    /// Both packets with a caret at the first difference, where packets were compared.
    pub detail: Option<String>,
}

impl Failure {
    /// A failure without packets.
    #[must_use]
    pub fn new(line: u32, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Failure {
            line,
            expected: expected.into(),
            got: got.into(),
            detail: None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "expected {}, got {}", self.expected, self.got)?;
        if let Some(detail) = &self.detail {
            write!(f, "\n{detail}")?;
        }
        Ok(())
    }
}

/// How a test went.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was not as the test says, in the order of lines.
    pub failures: Vec<Failure>,
    /// Every packet that went out, in order.
    pub outputs: Vec<Output>,
    /// Packets that were sent in.
    pub packets: usize,
    /// Expectations that were checked.
    pub checks: usize,
    /// What reads without comparison gave, by line.
    pub notes: Vec<(u32, String)>,
    /// What happened to each packet, by line, where that was asked for.
    pub traces: Vec<(u32, TraceTree)>,
    /// What the test should perhaps have set and did not.
    pub warnings: Vec<String>,
}

impl Report {
    /// Whether all was as the test says.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Digits in groups of a byte.
fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 3 / 2);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && i % 2 == 0 {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

/// Two packets below each other with a caret at digit `at`.
pub(crate) fn side_by_side(expected: &str, got: &str, at: usize) -> String {
    let caret = " ".repeat(at + at / 2);
    format!(
        "  expected  {}\n  got       {}\n            {caret}^ byte {}",
        grouped(expected),
        grouped(got),
        at / 2
    )
}
