//! The text in tokens.

use super::{ParseError, Parsed};
use crate::bits::Bits;
use num_bigint::{BigInt, BigUint};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Word(String),
    String(String),
    Number(BigInt),
    Bits(Bits),
    /// `%3:name`
    Var(usize),
    Punctuation(char),
    End,
}

/// Widest number the parser makes.
pub(crate) const MAX_WIDTH: u32 = 1 << 20;

/// All tokens of a text, each with its line.
pub(super) fn tokens(text: &str) -> Parsed<Vec<(Token, usize)>> {
    let mut out = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let mut rest = line.trim_start();
        while let Some(c) = rest.chars().next() {
            let (token, length) = token(rest, c, number)?;
            out.push((token, number));
            rest = rest[length..].trim_start();
        }
    }
    Ok(out)
}

fn token(rest: &str, c: char, line: usize) -> Parsed<(Token, usize)> {
    let fail = |expected: &str| ParseError::Syntax {
        line,
        expected: expected.into(),
        found: rest.chars().take(20).collect(),
    };
    if c == '"' {
        let mut value = String::new();
        let mut escaped = false;
        for (i, c) in rest.char_indices().skip(1) {
            match (escaped, c) {
                (true, 'n') => value.push('\n'),
                (true, 'r') => value.push('\r'),
                (true, c) => value.push(c),
                (false, '"') => return Ok((Token::String(value), i + 1)),
                (false, '\\') => {}
                (false, c) => value.push(c),
            }
            escaped = !escaped && c == '\\';
        }
        return Err(fail("a closing quote"));
    }
    if c == '%' {
        let digits = rest[1..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest.len(), |e| e + 1);
        let id: u32 = rest[1..digits].parse().map_err(|_| fail("the number of a variable"))?;
        let mut end = digits;
        if rest[digits..].starts_with(':') {
            let name = rest[digits + 1..].find(|c: char| !(c.is_ascii_alphanumeric() || "._$[]".contains(c)));
            end = name.map_or(rest.len(), |e| digits + 1 + e);
        }
        return Ok((Token::Var(id as usize), end));
    }
    if c.is_ascii_digit() || c == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
        let end = rest[1..]
            .find(|c: char| !c.is_ascii_alphanumeric())
            .map_or(rest.len(), |e| e + 1);
        let word = &rest[..end];
        if let Some((width, value)) = word.split_once("w0x") {
            let width: u32 = width
                .parse()
                .ok()
                .filter(|&w| w <= MAX_WIDTH)
                .ok_or_else(|| fail("a width"))?;
            let value = BigUint::parse_bytes(value.as_bytes(), 16).ok_or_else(|| fail("a hexadecimal number"))?;
            return Ok((Token::Bits(Bits::from_biguint(width, &value)), end));
        }
        let value = word.parse().map_err(|_| fail("a number"))?;
        return Ok((Token::Number(value), end));
    }
    if c.is_ascii_alphabetic() || c == '_' {
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        return Ok((Token::Word(rest[..end].to_string()), end));
    }
    Ok((Token::Punctuation(c), c.len_utf8()))
}
