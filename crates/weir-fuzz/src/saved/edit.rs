//! Edits of a saved program that mostly leave its syntax as it is.

use crate::rng::Rng;
use std::ops::Range;

/// Numbers that are worth a try anywhere.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "2",
    "7",
    "8",
    "9",
    "31",
    "32",
    "33",
    "64",
    "65",
    "129",
    "65536",
    "4294967295",
];

/// Sorts of tokens that may stand for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Variable,
    /// A letter and a number: `h3`.
    Id(u8),
    Number,
    /// `8w0x2a`
    Bits,
    Text,
    Word,
}

/// The sort and the place of each token of a text.
fn tokens(text: &str) -> Vec<(Sort, Range<usize>)> {
    let bytes = text.as_bytes();
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || b"_$.".contains(b);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = bytes.get(at) {
        let run = |from: usize| bytes[from..].iter().take_while(|b| is_word(b)).count();
        let (sort, length) = match first {
            b'"' => {
                let length = bytes[at + 1..].iter().take_while(|b| !b"\"\n".contains(b)).count() + 2;
                (Some(Sort::Text), length)
            }
            b'%' => {
                let number = 1 + bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
                let name = match bytes.get(at + number) {
                    Some(b':') => {
                        1 + bytes[at + number + 1..]
                            .iter()
                            .take_while(|b| is_word(b) || b"[]".contains(b))
                            .count()
                    }
                    _ => 0,
                };
                (Some(Sort::Variable), number + name)
            }
            b'0'..=b'9' => {
                let length = run(at);
                let is_bits = bytes[at..at + length].windows(3).any(|w| w == b"w0x");
                (Some(if is_bits { Sort::Bits } else { Sort::Number }), length)
            }
            b if b.is_ascii_alphabetic() => {
                let length = run(at);
                let is_id = length > 1 && bytes[at + 1..at + length].iter().all(u8::is_ascii_digit);
                (Some(if is_id { Sort::Id(*b) } else { Sort::Word }), length)
            }
            _ => (None, 1),
        };
        let end = (at + length).min(bytes.len());
        found.extend(sort.map(|sort| (sort, at..end)));
        at = end;
    }
    // What is cut within a character is no token.
    found.retain(|(_, place)| text.get(place.clone()).is_some());
    found
}

/// A text with a few edits.
pub(super) fn edited(text: &str, rng: &mut Rng) -> String {
    let mut text = text.to_owned();
    let edits = match rng.below(10) {
        0..6 => 1,
        6..9 => 2,
        _ => rng.between(3, 6),
    };
    for _ in 0..edits {
        text = match rng.below(12) {
            0..8 => other_token(&text, rng),
            8 => other_number(&text, rng),
            9 => other_line(&text, rng),
            _ => other_section(&text, rng),
        };
    }
    text
}

fn replaced(text: &str, place: &Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..place.start], &text[place.end..])
}

/// Puts a token of the same sort in place of one, or swaps the two.
fn other_token(text: &str, rng: &mut Rng) -> String {
    let tokens = tokens(text);
    let Some((sort, place)) = rng.pick(&tokens) else {
        return text.to_owned();
    };
    // Neighbours are of the same width, header or block more often than others.
    let near = |other: &Range<usize>| other.start.abs_diff(place.start) < 400;
    let only_near = rng.chance(50);
    let same: Vec<&Range<usize>> = tokens
        .iter()
        .filter(|(s, p)| s == sort && (!only_near || near(p)) && text[p.clone()] != text[place.clone()])
        .map(|(_, p)| p)
        .collect();
    let Some(other) = rng.pick(&same) else {
        return text.to_owned();
    };
    let (one, two) = (&text[place.clone()], &text[(*other).clone()]);
    let once = replaced(text, place, two);
    if rng.chance(75) {
        return once;
    }
    let (first, second) = if place.start < other.start {
        (place, *other)
    } else {
        (*other, place)
    };
    let (a, b) = if place.start < other.start {
        (two, one)
    } else {
        (one, two)
    };
    let later = replaced(text, second, b);
    replaced(&later, first, a)
}

/// Another number, or a constant of another width or value.
fn other_number(text: &str, rng: &mut Rng) -> String {
    let tokens = tokens(text);
    let numbers: Vec<_> = tokens
        .iter()
        .filter(|(sort, _)| matches!(sort, Sort::Number | Sort::Bits))
        .collect();
    let Some((sort, place)) = rng.pick(&numbers).copied() else {
        return text.to_owned();
    };
    let old = &text[place.clone()];
    let number = rng.one(NUMBERS);
    let new = match (sort, old.split_once("w0x")) {
        (Sort::Bits, Some((width, _))) if rng.chance(60) => format!("{width}w0x{:x}", rng.number() >> rng.below(64)),
        (Sort::Bits, Some((_, value))) => format!("{number}w0x{value}"),
        _ => number.to_owned(),
    };
    replaced(text, place, &new)
}

/// Leaves out a line, has it twice, or has it elsewhere.
fn other_line(text: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let at = rng.below(lines.len());
    if lines.is_empty() {
        return String::new();
    }
    let line = lines[at];
    match rng.below(3) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, line),
        _ => {
            lines.remove(at);
            let to = at.saturating_sub(3) + rng.below(7);
            lines.insert(to.min(lines.len()), line);
        }
    }
    joined(&lines)
}

fn joined(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Leaves out a section that ends in a brace, has it twice, or swaps it with another.
fn other_section(text: &str, rng: &mut Rng) -> String {
    let mut sections: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match sections.last_mut() {
            Some(section) if open => section.extend([line, "\n"]),
            _ => sections.push(format!("{line}\n")),
        }
        let begins = !line.starts_with([' ', '}']) && line.ends_with('{');
        open = (open || begins) && line != "}";
    }
    let long: Vec<usize> = (0..sections.len())
        .filter(|i| sections[*i].lines().count() > 1)
        .collect();
    let (Some(&a), Some(&b)) = (rng.pick(&long), rng.pick(&long)) else {
        return text.to_owned();
    };
    match rng.below(4) {
        0 => drop(sections.remove(a)),
        1 => sections.insert(a, sections[a].clone()),
        2 => sections[a] = sections[b].clone(),
        _ => sections.swap(a, b),
    }
    sections.concat()
}

/// The lines that differ, one by one where there are as many.
pub(super) fn changes(before: &str, after: &str) -> Vec<(String, String)> {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let ends = a[start..].iter().rev().zip(b[start..].iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..a.len() - end], &b[start..b.len() - end]);
    if a.len() == b.len() {
        let pairs = a.iter().zip(b).filter(|(a, b)| a != b);
        return pairs.map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    }
    vec![(a.join("\n- "), b.join("\n+ "))]
}
