//! What a run of the rewrites came to.

use std::fmt;

/// How a rewrite did, counted in packet tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The rewrite.
    pub name: String,
    /// Tests of programs that it was applied to.
    pub applied: usize,
    /// Those that passed as before.
    pub passed: usize,
    /// Tests of programs that have no place for it.
    pub not_applicable: usize,
    /// Programs that had machine code before and have none after it.
    pub code_lost: usize,
}

/// A test that no longer does what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The program's path.
    pub program: String,
    /// The test.
    pub test: String,
    /// The rewrite, or the chain of them.
    pub rewrite: String,
    /// Why it should have kept the meaning.
    pub why: String,
    /// What is different.
    pub what: String,
    /// The lines that were changed.
    pub diff: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure {
            program,
            test,
            rewrite,
            why,
            what,
            ..
        } = self;
        writeln!(f, "{program} ({test}), {rewrite} ({why}): {what}")?;
        write!(f, "{}", self.diff)
    }
}

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Programs whose tests pass as they are.
    pub programs: usize,
    /// Their tests.
    pub tests: usize,
    /// Tests that do not pass as they are, and why: they are not counted.
    pub skipped: Vec<(String, String)>,
    /// Programs that had machine code before they were rewritten, the rewrite, and why there is
    /// none
    /// after it. Their tests count as any others.
    pub interpreted: Vec<(String, String)>,
    /// The rewrites, and the chain of several.
    pub rows: Vec<Row>,
    /// Tests that no longer do what they did.
    pub failures: Vec<Failure>,
}

impl Summary {
    /// Tests of rewritten programs, and those of them that passed.
    #[must_use]
    pub fn score(&self) -> (usize, usize) {
        let sum = |of: fn(&Row) -> usize| self.rows.iter().map(of).sum();
        (sum(|r| r.applied), sum(|r| r.passed))
    }

    /// Whether at least 99 % passed, and there were any.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let (applied, passed) = self.score();
        applied > 0 && passed * 100 >= applied * 99
    }

    pub(crate) fn add(&mut self, other: Summary) {
        self.programs += other.programs;
        self.tests += other.tests;
        self.skipped.extend(other.skipped);
        self.interpreted.extend(other.interpreted);
        self.failures.extend(other.failures);
        for row in other.rows {
            match self.rows.iter_mut().find(|r| r.name == row.name) {
                Some(sum) => {
                    sum.applied += row.applied;
                    sum.passed += row.passed;
                    sum.not_applicable += row.not_applicable;
                    sum.code_lost += row.code_lost;
                }
                None => self.rows.push(row),
            }
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} programs with {} packet tests that pass; {} tests do not pass as they are",
            self.programs,
            self.tests,
            self.skipped.len()
        )?;
        writeln!(
            f,
            "{:<22} {:>8} {:>8} {:>8} {:>15} {:>10}",
            "rewrite", "applied", "passed", "failed", "not applicable", "code lost"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:<22} {:>8} {:>8} {:>8} {:>15} {:>10}",
                row.name,
                row.applied,
                row.passed,
                row.applied - row.passed,
                row.not_applicable,
                row.code_lost
            )?;
        }
        let (applied, passed) = self.score();
        let percent = passed as f64 * 100.0 / applied.max(1) as f64;
        write!(f, "{passed} of {applied} passed ({percent:.2} %)")
    }
}
