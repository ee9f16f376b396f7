//! Comparing what went out with what was expected.

use crate::ast::{Alternative, Pattern};
use crate::report::{Failure, side_by_side};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use weir_switch::Output;

/// Bytes as digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

/// Position of the first digit that does not fit; `None` if all fits.
fn difference(pattern: &Pattern, got: &str) -> Option<usize> {
    let mut digits = got.chars();
    for (i, wanted) in pattern.digits.chars().enumerate() {
        match digits.next() {
            Some(digit) if wanted == '*' || wanted == digit => {}
            _ => return Some(i),
        }
    }
    (pattern.exact && digits.next().is_some()).then_some(pattern.digits.len())
}

fn shown(pattern: Option<&Pattern>) -> String {
    match pattern {
        None => "any packet".to_owned(),
        Some(p) => format!("{}{}", p.digits, if p.exact { " $" } else { "" }),
    }
}

/// What went out per port, and what a test says about it.
#[derive(Debug, Default)]
pub(crate) struct Expectations {
    /// Ports that a `packet` or `expect` names.
    pub named: BTreeSet<u32>,
    /// In the order of the test, with its line.
    pub expected: Vec<(u32, Vec<Alternative>)>,
}

/// Packets of each port that nobody has expected yet.
type Waiting = BTreeMap<u32, VecDeque<String>>;

impl Expectations {
    /// Compares everything at the end of a test.
    pub(crate) fn check(&self, outputs: &[Output]) -> Vec<Failure> {
        let mut waiting = Waiting::new();
        for output in outputs {
            waiting.entry(output.port).or_default().push_back(hex(&output.bytes));
        }
        let mut failures = Vec::new();
        for (line, alternatives) in &self.expected {
            failures.extend(check_one(*line, alternatives, &mut waiting));
        }
        for (port, packets) in waiting {
            if self.named.contains(&port) && !packets.is_empty() {
                let list: Vec<_> = packets.iter().map(String::as_str).collect();
                let got = format!("{}: {}", packets.len(), list.join(", "));
                failures.push(Failure::new(0, format!("no more packets on port {port}"), got));
            }
        }
        failures.sort_by_key(|f| if f.line == 0 { u32::MAX } else { f.line });
        failures
    }
}

fn check_one(line: u32, alternatives: &[Alternative], waiting: &mut Waiting) -> Option<Failure> {
    for alternative in alternatives {
        if let Alternative::Packet(port, pattern) = alternative
            && let Some(queue) = waiting.get_mut(port)
            && queue
                .front()
                .is_some_and(|got| pattern.as_ref().is_none_or(|p| difference(p, got).is_none()))
        {
            queue.pop_front();
            return None;
        }
    }
    if alternatives.contains(&Alternative::Drop) {
        return None;
    }
    let expected: Vec<_> = alternatives
        .iter()
        .map(|a| match a {
            Alternative::Packet(port, pattern) => {
                format!("on port {port} {}", shown(pattern.as_ref()))
            }
            Alternative::Drop => "a drop".to_owned(),
        })
        .collect();
    // The packet that stands at the place of the first alternative is taken for the wrong one.
    let Some(Alternative::Packet(port, pattern)) = alternatives.first() else {
        return None;
    };
    let got = waiting.get_mut(port).and_then(VecDeque::pop_front);
    Some(match (got, pattern) {
        (None, _) => Failure::new(line, expected.join(" or "), format!("no packet on port {port}")),
        (Some(got), Some(pattern)) => Failure {
            detail: difference(pattern, &got).map(|at| side_by_side(&pattern.digits, &got, at)),
            ..Failure::new(line, expected.join(" or "), got)
        },
        (Some(got), None) => Failure::new(line, expected.join(" or "), got),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(digits: &str, exact: bool) -> Pattern {
        Pattern {
            digits: digits.to_owned(),
            exact,
        }
    }

    #[test]
    fn a_pattern_is_a_prefix_unless_it_ends_with_a_dollar() {
        assert_eq!(difference(&pattern("0a*b", false), "0acb99"), None);
        assert_eq!(difference(&pattern("0a*b", true), "0acb99"), Some(4));
        assert_eq!(difference(&pattern("0a*b", true), "0acb"), None);
        assert_eq!(difference(&pattern("0a*b", false), "0ac"), Some(3));
        assert_eq!(difference(&pattern("0b", false), "0a"), Some(1));
        assert_eq!(difference(&pattern("", true), ""), None);
    }

    #[test]
    fn a_caret_points_at_the_first_wrong_digit() {
        let output = Output {
            port: 1,
            bytes: vec![0x0a, 0xbb, 0x01],
            time_ns: 0,
        };
        let expectations = Expectations {
            named: BTreeSet::from([1]),
            expected: vec![(7, vec![Alternative::Packet(1, Some(pattern("0abc", false)))])],
        };
        let failures = expectations.check(&[output]);
        let lines: Vec<&str> = failures[0].detail.as_deref().expect("packets").lines().collect();
        assert_eq!(
            lines,
            ["  expected  0a bc", "  got       0a bb 01", "                ^ byte 1"]
        );
    }
}
