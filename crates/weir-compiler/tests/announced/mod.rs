//! Programs that say in comments what is found in them: `//~ KIND[CODE] MESSAGE` on the line itself
//! or `//~^ KIND[CODE] MESSAGE` below it.

use std::collections::BTreeMap;

/// Findings by line: `error[CODE] MESSAGE`.
pub type Findings = BTreeMap<u32, Vec<String>>;

/// What the comments of a program announce. A `//~^` is about the last line before it that holds no
/// `//~^`.
pub fn announced(text: &str) -> Findings {
    let mut findings = Findings::new();
    let mut line_of_code = 0;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(message) = line.trim_start().strip_prefix("//~^ ") {
            findings.entry(line_of_code).or_default().push(message.trim().into());
            continue;
        }
        line_of_code = number;
        if let Some((_, message)) = line.split_once("//~ ") {
            findings.entry(number).or_default().push(message.trim().into());
        }
    }
    findings
}

/// The lines on which the two disagree. Announced messages may be parts of those found.
pub fn differences(announced: &Findings, found: &Findings) -> Vec<String> {
    let mut differences = Vec::new();
    let lines: std::collections::BTreeSet<u32> = announced.keys().chain(found.keys()).copied().collect();
    for line in lines {
        let mut wanted: Vec<&String> = announced.get(&line).into_iter().flatten().collect();
        for finding in found.get(&line).into_iter().flatten() {
            match wanted.iter().position(|w| finding.starts_with(w.as_str())) {
                Some(i) => drop(wanted.remove(i)),
                None => differences.push(format!("{line}: not announced: {finding}")),
            }
        }
        differences.extend(wanted.iter().map(|w| format!("{line}: not found: {w}")));
    }
    differences
}
