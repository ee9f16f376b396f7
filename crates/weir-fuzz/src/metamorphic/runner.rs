//! Programs, rewrites, and what comes of them.

use super::diff::diff;
use super::engine::{self, Run, Trouble};
use super::find::{Subjects, programs};
use super::report::{Failure, Row, Summary};
use super::rewrites::{Context, REWRITES};
use super::text::Subject;
use crate::rng::Rng;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folders with programs and packet tests.
    pub folders: Vec<PathBuf>,
    /// Chooses the places that are rewritten.
    pub seed: u64,
    /// Only this rewrite, and no chain.
    pub rewrite: Option<String>,
    /// The most rewrites tried alone per program, other ones for each; the chain is tried anyway.
    pub most: Option<usize>,
}

/// Rewrites in a chain.
const CHAIN: usize = 6;
/// The name of the row of chains.
const CHAIN_NAME: &str = "a chain of several";
/// Stack of the threads that parse: as much as the compiler gives itself.
const STACK: usize = 256 << 20;

/// Runs the packet tests of rewritten programs.
///
/// # Panics
/// The system gives no thread.
#[must_use]
pub fn run(options: &Options) -> Summary {
    let programs: Vec<Subjects> = options.folders.iter().flat_map(|f| programs(f)).collect();
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Summary)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Relaxed);
            let Some(program) = programs.get(index) else { break };
            let summary = of_program(program, index, options);
            results.lock().unwrap_or_else(|e| e.into_inner()).push((index, summary));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, work).expect("a thread");
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.sort_by_key(|(index, _)| *index);
    let mut summary = Summary::default();
    let names = REWRITES.iter().map(|r| r.name).chain([CHAIN_NAME]);
    for name in names {
        summary.rows.push(Row {
            name: name.to_owned(),
            ..Row::default()
        });
    }
    results.into_iter().for_each(|(_, of_one)| summary.add(of_one));
    summary
}

/// A number for a text (FNV-1a), so that a program's rewrites do not depend on what else is run.
fn number(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Why a rewrite keeps the meaning; of a chain, why each does.
fn why(rewrite: &str) -> String {
    let found = REWRITES.iter().find(|r| r.name == rewrite);
    found.map_or("each keeps the meaning", |r| r.why).to_owned()
}

/// All that is done with a program.
fn of_program(program: &Subjects, index: usize, options: &Options) -> Summary {
    let name = program.path.display().to_string();
    let mut summary = Summary::default();
    let original = match engine::run(&program.source, &program.tests, &program.path) {
        Ok(original) => original,
        Err(trouble) => {
            let tests = program.tests.iter().map(|(test, _)| test);
            summary.skipped = tests.map(|t| (format!("{name} ({t})"), trouble.to_string())).collect();
            return summary;
        }
    };
    let mut passing = Vec::new();
    for (test, result) in program.tests.iter().zip(&original.tests) {
        match result {
            Ok(sent) => passing.push((test.clone(), sent.clone())),
            Err(trouble) => summary
                .skipped
                .push((format!("{name} ({})", test.0), trouble.to_string())),
        }
    }
    let subject = Subject::new(&program.source, program.tests.iter().map(|(_, t)| t.as_str()));
    let Some(subject) = subject.filter(|_| !passing.is_empty()) else {
        return summary;
    };
    summary.programs = 1;
    summary.tests = passing.len();
    let (tests, sent): (Vec<_>, Vec<_>) = passing.into_iter().unzip();
    let case = Case {
        name,
        tests,
        original: Run {
            tests: sent.into_iter().map(Ok).collect(),
            unsupported: original.unsupported,
        },
        seed: options.seed ^ number(program.path.file_name().and_then(|n| n.to_str()).unwrap_or("")),
    };
    case.rewrite_all(&subject, index, options, &mut summary);
    summary
}

/// A program whose tests pass.
struct Case {
    name: String,
    tests: Vec<(String, String)>,
    original: Run,
    seed: u64,
}

impl Case {
    fn rewrite_all(&self, subject: &Subject, index: usize, options: &Options, summary: &mut Summary) {
        let context = Context::new(subject);
        let count = REWRITES.len();
        for (i, rewrite) in REWRITES.iter().enumerate() {
            let most = options.most.unwrap_or(count);
            // Neighbours have other rewrites, so that few programs have all of them between them.
            let chosen = (i + count - index * most % count) % count < most;
            if options.rewrite.as_ref().map_or(!chosen, |name| name != rewrite.name) {
                continue;
            }
            let mut rng = Rng::new(self.seed ^ number(rewrite.name));
            let text = rewrite.text(&context, &mut rng);
            self.judge(subject, rewrite.name, rewrite.name, text.as_deref(), summary);
        }
        if options.rewrite.is_none() {
            let (names, text) = self.chain(subject);
            self.judge(subject, CHAIN_NAME, &names.join(", "), text.as_deref(), summary);
        }
    }

    /// Several rewrites, one after the other.
    fn chain(&self, subject: &Subject) -> (Vec<&'static str>, Option<String>) {
        let mut rng = Rng::new(self.seed ^ 0xc4a1);
        let mut names = Vec::new();
        let mut text: Option<String> = None;
        let tests = || self.tests.iter().map(|(_, t)| t.as_str());
        for _ in 0..CHAIN * 2 {
            let Some(rewrite) = rng.pick(REWRITES) else { break };
            let own = text.as_deref().and_then(|t| Subject::new(t, tests()));
            let next = rewrite.text(&Context::new(own.as_ref().unwrap_or(subject)), &mut rng);
            if let Some(next) = next {
                names.push(rewrite.name);
                // What does not parse is for the judge to find.
                let is_broken = Subject::new(&next, tests()).is_none();
                text = Some(next);
                if is_broken || names.len() == CHAIN {
                    break;
                }
            }
        }
        (names, text)
    }

    /// Runs a rewritten text and compares.
    fn judge(&self, subject: &Subject, row: &str, rewrite: &str, text: Option<&str>, summary: &mut Summary) {
        let mut row = Row {
            name: row.to_owned(),
            ..Row::default()
        };
        match text {
            None => row.not_applicable = self.tests.len(),
            Some(text) => {
                row.applied = self.tests.len();
                let run = engine::run(text, &self.tests, self.name.as_ref());
                let unsupported = run.as_ref().ok().and_then(|r| r.unsupported.as_ref());
                if let (None, Some(why)) = (&self.original.unsupported, unsupported) {
                    row.code_lost = 1;
                    summary
                        .interpreted
                        .push((format!("{}, {rewrite}", self.name), why.clone()));
                }
                for (i, (test, _)) in self.tests.iter().enumerate() {
                    match self.trouble(&run, i) {
                        None => row.passed += 1,
                        Some(trouble) => summary.failures.push(Failure {
                            program: self.name.clone(),
                            test: test.clone(),
                            rewrite: rewrite.to_owned(),
                            why: why(rewrite),
                            what: trouble.to_string(),
                            diff: diff(&subject.text, text),
                        }),
                    }
                }
            }
        }
        summary.add(Summary {
            rows: vec![row],
            ..Summary::default()
        });
    }

    /// What is wrong with a test of a rewritten program.
    fn trouble(&self, run: &Result<Run, Trouble>, test: usize) -> Option<Trouble> {
        let run = match run {
            Ok(run) => run,
            Err(trouble) => return Some(trouble.clone()),
        };
        let (Some(Ok(before)), Some(after)) = (self.original.tests.get(test), run.tests.get(test)) else {
            return None;
        };
        match after {
            Err(trouble) => Some(trouble.clone()),
            Ok(after) if after == before => None,
            Ok(after) => Some(Trouble::Packets(format!("{before:02x?} before, {after:02x?} after"))),
        }
    }
}
