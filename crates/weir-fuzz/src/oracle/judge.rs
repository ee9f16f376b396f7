//! Runs a packet test by the oracle and by the interpreter side by side.

use super::machine::Machine;
use super::stop::{Eval, Stop, Unknown, unknown};
use super::tna::Tna;
use super::v1model::{Outputs, V1};
use crate::engines::{Built, Trouble};
use std::fmt;
use weir_compiler::Options;
use weir_compiler::tools::{self, Checked, DefKind, TyKind};
use weir_stf::{Directive, Line, RunOptions, Session};
use weir_switch::Switch;
use weir_syntax::ast;

/// A packet that the oracle and the interpreter do not agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The line of the test.
    pub line: u32,
    /// What the oracle sends, and what the interpreter sends.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oracle, line {}: {}", self.line, self.what)
    }
}

/// What came of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Packets of the test.
    pub packets: u64,
    /// Those of them that the oracle knew the outcome of. After the first that it does not know
    /// there are none: the state of registers is not known either.
    pub judged: u64,
    /// What the oracle does not know.
    pub unknown: Option<Unknown>,
    /// The first difference.
    pub difference: Option<Difference>,
}

impl Verdict {
    /// Whether all packets were judged.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.unknown.is_none()
    }
}

/// Judges a program and a test.
///
/// # Errors
/// The program does not compile, or the test cannot be read.
pub fn judge(source: &str, test: &str) -> Result<Verdict, String> {
    let built = Built::new(source).map_err(|trouble| format!("{trouble:?}"))?;
    judge_on(source, built.switch(), test).map_err(|trouble| format!("{trouble:?}"))
}

/// Judges a test of a program that a switch runs.
pub(crate) fn judge_on(source: &str, switch: &Switch, test: &str) -> Result<Verdict, Trouble> {
    let parsed = weir_stf::parse(test).map_err(|e| Trouble::NoTest(format!("{e:?}")))?;
    let switch = switch.clone();
    let judged = tools::checked(
        "case.p4",
        source,
        &Options::default(),
        weir_arch::targets(),
        move |program, checked| {
            let sees_errors = source.contains("parser_err");
            side_by_side(Oracle::new(program, checked, sees_errors), switch, &parsed.lines)
        },
    );
    judged.map_err(|refused| Trouble::Rejected(format!("{:?}", refused.diagnostics.list())))
}

/// A switch as the oracle has it.
enum Oracle<'a> {
    V1(Box<V1<'a>>),
    Tna(Box<Tna<'a>>),
}

impl<'a> Oracle<'a> {
    fn new(program: &'a ast::Program, checked: Checked<'a>, sees_errors: bool) -> Eval<Self> {
        let mut machine = Machine::new(checked);
        let Some(DefKind::Instance { ty, .. }) = machine.checked.main.map(|main| machine.def(main)) else {
            return unknown("a program without `main`");
        };
        let ty = *ty;
        let TyKind::Package(package, _) = machine.kind(ty) else {
            return unknown("a program without `main`");
        };
        let package = machine.checked.def(package).name.clone();
        let main = machine.instantiate(program)?;
        match &*package {
            "V1Switch" => Ok(Oracle::V1(Box::new(V1::new(machine, &main)?))),
            "Switch" => Ok(Oracle::Tna(Box::new(Tna::new(machine, &main, sees_errors)?))),
            other => unknown(format!("the package {other}")),
        }
    }

    fn directive(&mut self, directive: &Directive) -> Eval<()> {
        match self {
            Oracle::V1(v1) => v1.directive(directive),
            Oracle::Tna(tna) => tna.directive(directive),
        }
    }

    fn inject(&mut self, port: u32, bytes: &[u8], now_ns: u64) -> Eval<Outputs> {
        match self {
            Oracle::V1(v1) => v1.inject(port, bytes, now_ns),
            Oracle::Tna(tna) => tna.inject(port, bytes),
        }
    }
}

fn side_by_side(oracle: Eval<Oracle<'_>>, switch: Switch, lines: &[Line]) -> Verdict {
    let is_packet = |l: &&Line| matches!(l.directive, Directive::Packet { .. } | Directive::Receive { .. });
    let mut verdict = Verdict {
        packets: lines.iter().filter(is_packet).count() as u64,
        ..Verdict::default()
    };
    let mut oracle = match oracle {
        Ok(oracle) => oracle,
        Err(stop) => {
            verdict.unknown = Some(reason(stop));
            return verdict;
        }
    };
    let mut session = Session::new(switch, RunOptions::default());
    for line in lines {
        let done = match &line.directive {
            Directive::Packet { port, bytes } if *port < 512 => {
                let now_ns = session.switch().now_ns();
                let sent = session.switch_mut().inject(*port, bytes, now_ns);
                let sent: Outputs = sent.into_iter().map(|o| (o.port, o.bytes)).collect();
                oracle.inject(*port, bytes, now_ns).map(|expected| {
                    verdict.judged += 1;
                    difference(line.number, expected, sent)
                })
            }
            // What the switch refuses it does not do.
            other => match session.line(line) {
                Ok(_) => oracle.directive(other).map(|()| None),
                Err(_) => Ok(None),
            },
        };
        match done {
            Ok(None) => {}
            Ok(found) => {
                verdict.difference = found;
                return verdict;
            }
            Err(stop) => {
                verdict.unknown = Some(reason(stop));
                return verdict;
            }
        }
    }
    verdict
}

/// What the oracle alone sends for each packet of a test, whose directives it takes as done.
#[cfg(test)]
pub(super) fn sent_by_oracle(source: &str, test: &str) -> Result<Vec<Outputs>, String> {
    let lines = weir_stf::parse(test).map_err(|e| format!("{e:?}"))?.lines;
    let options = Options::default();
    let found = tools::checked("case.p4", source, &options, weir_arch::targets(), |program, checked| {
        sent_for(Oracle::new(program, checked, false), &lines).map_err(|stop| reason(stop).to_string())
    });
    found.map_err(|refused| format!("{:?}", refused.diagnostics.list()))?
}

#[cfg(test)]
fn sent_for(oracle: Eval<Oracle<'_>>, lines: &[Line]) -> Eval<Vec<Outputs>> {
    let mut oracle = oracle?;
    let mut all = Vec::new();
    for line in lines {
        match &line.directive {
            Directive::Packet { port, bytes } => all.push(oracle.inject(*port, bytes, 0)?),
            other => oracle.directive(other)?,
        }
    }
    Ok(all)
}

fn reason(stop: Stop) -> Unknown {
    match stop {
        Stop::Unknown(unknown) => unknown,
        Stop::Exit | Stop::Reject(_) | Stop::Abort => Unknown("an end before any packet".to_owned()),
    }
}

/// Copies of a packet have no order that the language gives them: they are compared as they are
/// sorted.
fn difference(line: u32, mut expected: Outputs, mut sent: Outputs) -> Option<Difference> {
    expected.sort();
    sent.sort();
    (expected != sent).then(|| Difference {
        line,
        what: format!(
            "the oracle sends {}, the interpreter {}",
            shown(&expected),
            shown(&sent)
        ),
    })
}

fn shown(outputs: &Outputs) -> String {
    let one = |(port, bytes): &(u32, Vec<u8>)| {
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        format!("{port}:{hex}")
    };
    let all: Vec<String> = outputs.iter().map(one).collect();
    format!("[{}]", all.join(" "))
}
