//! One line, taken apart.

use std::fmt;
use thiserror::Error;

/// A line that is no directive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{line}:{column}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Line number, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// Goes along a line.
pub(crate) struct Scanner {
    chars: Vec<char>,
    at: usize,
    line: u32,
}

/// Characters of a MAC address with separators.
const MAC_LENGTH: usize = 17;

/// Characters that end a word.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, ':' | '(' | ')' | ',' | '|' | '"') || is_comparison(c)
}

fn is_comparison(c: char) -> bool {
    matches!(c, '=' | '<' | '>' | '!')
}

impl Scanner {
    /// The line without its comment.
    pub(crate) fn new(text: &str, line: u32) -> Self {
        let mut quoted = false;
        let code = text.chars().take_while(|c| {
            quoted ^= *c == '"';
            *c != '#' || quoted
        });
        Scanner {
            chars: code.collect(),
            at: 0,
            line,
        }
    }

    fn skip_space(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    /// The next character that is no space.
    pub(crate) fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.chars.get(self.at).copied()
    }

    pub(crate) fn is_empty(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Takes this character if it is the next one.
    pub(crate) fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Takes a word: quoted, or up to a space or punctuation.
    pub(crate) fn word(&mut self) -> Option<String> {
        if self.eat('"') {
            let start = self.at;
            while self.chars.get(self.at).is_some_and(|c| *c != '"') {
                self.at += 1;
            }
            let word = self.chars[start..self.at].iter().collect();
            self.at += 1;
            return Some(word);
        }
        self.skip_space();
        let start = self.at;
        while self.chars.get(self.at).is_some_and(|c| !ends_word(*c)) {
            self.at += 1;
        }
        (self.at > start).then(|| self.chars[start..self.at].iter().collect())
    }

    /// Takes a word in which MAC addresses may be written with colons.
    pub(crate) fn value_word(&mut self) -> Option<String> {
        let start = self.mark();
        if self.peek() == Some('"') {
            return self.word();
        }
        let mut is_number_start = true;
        while let Some(&c) = self.chars.get(self.at) {
            if is_number_start && self.at_mac() {
                self.at += MAC_LENGTH;
                is_number_start = false;
            } else if ends_word(c) {
                break;
            } else {
                self.at += 1;
                // After the sign of a mask or a range another number begins.
                is_number_start = matches!(c, '&' | '.');
            }
        }
        (self.at > start).then(|| self.chars[start..self.at].iter().collect())
    }

    /// Whether six pairs of hexadecimal digits with colons between them come next, and end there.
    pub(crate) fn at_mac(&self) -> bool {
        let rest = self.chars.get(self.at..).unwrap_or(&[]);
        let follows = rest.get(MAC_LENGTH);
        rest.len() >= MAC_LENGTH
            && follows.is_none_or(|c| !c.is_ascii_alphanumeric() && *c != ':')
            && (0..MAC_LENGTH).all(|i| {
                if i % 3 == 2 {
                    rest[i] == ':'
                } else {
                    rest[i].is_ascii_hexdigit()
                }
            })
    }

    /// Takes `==`, `<` and so on.
    pub(crate) fn sign(&mut self) -> Option<String> {
        self.skip_space();
        let start = self.at;
        while self.chars.get(self.at).is_some_and(|c| is_comparison(*c)) {
            self.at += 1;
        }
        (self.at > start).then(|| self.chars[start..self.at].iter().collect())
    }

    /// Where the next word begins, to come back to.
    pub(crate) fn mark(&mut self) -> usize {
        self.skip_space();
        self.at
    }

    pub(crate) fn reset(&mut self, mark: usize) {
        self.at = mark;
    }

    /// An error at the next word.
    pub(crate) fn error(&mut self, expected: impl fmt::Display) -> ParseError {
        let start = self.mark();
        self.error_at(start, expected)
    }

    /// An error at an earlier place.
    pub(crate) fn error_at(&self, start: usize, expected: impl fmt::Display) -> ParseError {
        let rest = self.chars.get(start..).unwrap_or(&[]);
        let word: String = rest.iter().take_while(|c| !c.is_whitespace()).take(40).collect();
        ParseError {
            line: self.line,
            column: start as u32 + 1,
            expected: expected.to_string(),
            found: if word.is_empty() {
                "the end of the line".to_owned()
            } else {
                format!("`{word}`")
            },
        }
    }
}
