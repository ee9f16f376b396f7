//! Smaller cases with the same trouble.

use super::case::Case;
use std::time::{Duration, Instant};

/// How long is tried.
const PATIENCE: Duration = Duration::from_secs(90);

/// A case as small as can be had cheaply for which `fails` still holds.
pub(crate) fn reduce(case: &Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let end = Instant::now() + PATIENCE;
    for _ in 0..3 {
        let before = best.clone();
        let source = best.source.clone();
        best.test = lines(&best.test, end, &mut |test| {
            fails(&Case {
                source: source.clone(),
                test: test.to_owned(),
            })
        });
        let test = best.test.clone();
        let mut fails_with = |source: &str| {
            fails(&Case {
                source: source.to_owned(),
                test: test.clone(),
            })
        };
        best.source = blocks(&best.source, end, &mut fails_with);
        best.source = lines(&best.source, end, &mut fails_with);
        best.source = expressions(&best.source, end, &mut fails_with);
        best.test = shorter_packets(&best, end, fails);
        if best == before {
            break;
        }
    }
    best
}

fn joined(lines: &[&str]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// Leaves out runs of lines, long ones first.
fn lines(text: &str, end: Instant, fails: &mut dyn FnMut(&str) -> bool) -> String {
    let mut kept: Vec<&str> = text.lines().collect();
    let mut size = kept.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < kept.len() && Instant::now() < end {
            let stop = (at + size).min(kept.len());
            let mut shorter = kept.clone();
            shorter.drain(at..stop);
            if fails(&joined(&shorter)) {
                kept = shorter;
            } else {
                at = stop;
            }
        }
        if size == 1 || Instant::now() >= end {
            return joined(&kept);
        }
        size = size.div_ceil(2);
    }
}

/// Leaves out whole blocks: from a line that opens a brace to the one that closes it; or the two
/// lines alone.
fn blocks(text: &str, end: Instant, fails: &mut dyn FnMut(&str) -> bool) -> String {
    let mut kept: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < kept.len() && Instant::now() < end {
        if let Some(close) = closing(&kept, at) {
            let mut shorter = kept.clone();
            shorter.drain(at..=close);
            if fails(&joined(&shorter)) {
                kept = shorter;
                continue;
            }
            let mut unwrapped = kept.clone();
            unwrapped.remove(close);
            unwrapped.remove(at);
            if fails(&joined(&unwrapped)) {
                kept = unwrapped;
                continue;
            }
        }
        at += 1;
    }
    joined(&kept)
}

/// The line that closes what is opened on this one.
fn closing(lines: &[&str], at: usize) -> Option<usize> {
    let mut depth = 0i32;
    for (i, line) in lines.iter().enumerate().skip(at) {
        depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
        if i == at && depth <= 0 {
            return None;
        }
        if depth <= 0 {
            return Some(i);
        }
    }
    None
}

/// Puts something inside a pair of parentheses in the place of all of it.
fn expressions(text: &str, end: Instant, fails: &mut dyn FnMut(&str) -> bool) -> String {
    let mut best = text.to_owned();
    let mut at = 0;
    while let Some(open) = best[at..].find('(').map(|i| i + at) {
        if Instant::now() >= end {
            break;
        }
        let Some(close) = matching(&best, open) else { break };
        let inside = best[open + 1..close].to_owned();
        let smaller = parts(&inside).into_iter().find_map(|part| {
            let shorter = format!("{}{part}{}", &best[..open], &best[close + 1..]);
            fails(&shorter).then_some(shorter)
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => at = open + 1,
        }
    }
    best
}

fn matching(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, c) in text[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + i);
        }
    }
    None
}

/// What may stand for an expression: its operands.
fn parts(inside: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut depth, mut word) = (0, String::new());
    for c in inside.chars().chain([' ']) {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        if c == ' ' && depth == 0 {
            if word.chars().any(char::is_alphanumeric) && word.len() < inside.len() {
                found.push(std::mem::take(&mut word));
            }
            word.clear();
        } else {
            word.push(c);
        }
    }
    found.truncate(6);
    found
}

/// Cuts packets at their ends.
fn shorter_packets(case: &Case, end: Instant, fails: &mut dyn FnMut(&Case) -> bool) -> String {
    let mut all: Vec<String> = case.test.lines().map(str::to_owned).collect();
    for i in 0..all.len() {
        if !all[i].starts_with("packet") {
            continue;
        }
        for cut in [64, 16, 8, 4, 2] {
            while all[i].len() > cut + 12 && Instant::now() < end {
                let mut shorter = all.clone();
                let length = shorter[i].len() - cut;
                shorter[i].truncate(length);
                let text: Vec<&str> = shorter.iter().map(String::as_str).collect();
                let shorter_case = Case {
                    source: case.source.clone(),
                    test: joined(&text),
                };
                if !fails(&shorter_case) {
                    break;
                }
                all = shorter;
            }
        }
    }
    let text: Vec<&str> = all.iter().map(String::as_str).collect();
    joined(&text)
}
