//! Values of integer and string literals.

use num_bigint::BigInt;

/// Longest integer literal in digits; reading one costs the square of its length.
pub(crate) const MAX_DIGITS: usize = 4096;

/// An integer literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Integer {
    pub value: BigInt,
    pub width: Option<(u32, bool)>,
    pub base: u32,
}

/// Why a text is not an integer literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadInteger {
    /// Not of the form of an integer.
    Malformed,
    /// More than [`MAX_DIGITS`] digits, or a width beyond 32 bits.
    TooLarge,
}

/// Reads `255`, `8w0xFF`, `4s7`, `0b1010_1010` and the like.
pub(crate) fn integer(text: &str) -> Result<Integer, BadInteger> {
    let width_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (width, digits) = match text.as_bytes().get(width_end) {
        Some(sign @ (b'w' | b's')) if width_end > 0 => {
            let width: u32 = text[..width_end].parse().map_err(|_| BadInteger::TooLarge)?;
            (Some((width, *sign == b's')), &text[width_end + 1..])
        }
        _ => (None, text),
    };
    let prefix = digits.get(..2).unwrap_or("");
    let (base, digits) = match prefix {
        "0x" | "0X" => (16, &digits[2..]),
        "0o" | "0O" => (8, &digits[2..]),
        "0b" | "0B" => (2, &digits[2..]),
        "0d" | "0D" => (10, &digits[2..]),
        _ => (10, digits),
    };
    let digits: Vec<u8> = digits.bytes().filter(|&b| b != b'_').collect();
    if digits.is_empty() || !digits.iter().all(|&b| char::from(b).is_digit(base)) {
        return Err(BadInteger::Malformed);
    }
    if digits.len() > MAX_DIGITS {
        return Err(BadInteger::TooLarge);
    }
    let value = BigInt::parse_bytes(&digits, base).ok_or(BadInteger::Malformed)?;
    Ok(Integer { value, width, base })
}

/// The value of a string literal given with its quotes. Escapes that P4 does not define stay as
/// they are written.
pub(crate) fn string(quoted: &str) -> String {
    let inner = quoted.strip_prefix('"').unwrap_or(quoted);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut value = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some(c @ ('"' | '\\')) => value.push(c),
            Some(c) => value.extend(['\\', c]),
            None => value.push('\\'),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> (i64, Option<(u32, bool)>, u32) {
        let integer = integer(text).unwrap();
        (i64::try_from(integer.value).unwrap(), integer.width, integer.base)
    }

    #[test]
    fn integers_have_bases_widths_and_underscores() {
        assert_eq!(value("255"), (255, None, 10));
        assert_eq!(value("8w0xFF"), (255, Some((8, false)), 16));
        assert_eq!(value("4s7"), (7, Some((4, true)), 10));
        assert_eq!(value("0b1010_1010"), (0xaa, None, 2));
        assert_eq!(value("16w0d12"), (12, Some((16, false)), 10));
        assert_eq!(value("0O17"), (15, None, 8));
    }

    #[test]
    fn malformed_and_oversized_integers_are_told_apart() {
        for text in ["0x", "8w", "12ab", "0b2", "8w0xw", "1w2w3"] {
            assert_eq!(integer(text), Err(BadInteger::Malformed), "{text}");
        }
        assert_eq!(integer("99999999999w1"), Err(BadInteger::TooLarge));
        assert_eq!(integer(&"9".repeat(MAX_DIGITS + 1)), Err(BadInteger::TooLarge));
        assert!(integer(&"9".repeat(MAX_DIGITS)).is_ok());
    }

    #[test]
    fn strings_lose_quotes_and_known_escapes() {
        assert_eq!(string(r#""a\"b\\c\n\q""#), "a\"b\\c\n\\q");
        assert_eq!(string("\"é\nü\""), "é\nü");
    }
}
