//! Values as tests write them, and what they mean for a key.

use num_bigint::BigUint;
use num_traits::{Num, One, Zero};
use thiserror::Error;
use weir_ir::{Bits, KeyMatch, MatchKind};

/// A number, or a set of numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Digits of a base, some of them `*`.
    Digits {
        /// Bits per digit: 4, 3 or 1; 0 for decimal.
        digit_bits: u32,
        /// The digits, `*` for any.
        digits: String,
    },
    /// A value and the length of its prefix in bits.
    Prefix(BigUint, u32),
    /// A value and its mask.
    Masked(BigUint, BigUint),
    /// From, to, both included.
    Range(BigUint, BigUint),
    /// Anything.
    Any,
}

/// A value does not fit where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// It has more bits.
    #[error("`{value}` does not fit in {width} bits")]
    TooWide {
        /// The value.
        value: String,
        /// The width.
        width: u32,
    },
    /// It stands for several numbers where one is needed.
    #[error("`{value}` stands for several numbers, but {place} takes one")]
    NotOne {
        /// The value.
        value: String,
        /// Where it stands.
        place: String,
    },
    /// It is of the wrong form.
    #[error("`{value}` cannot be matched as {kind}; write {instead}")]
    WrongForm {
        /// The value.
        value: String,
        /// The match kind.
        kind: &'static str,
        /// What to write.
        instead: &'static str,
    },
}

fn number(text: &str) -> Option<BigUint> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let (radix, digits) = match text.get(..2) {
        Some("0x") => (16, &text[2..]),
        Some("0b") => (2, &text[2..]),
        Some("0o") => (8, &text[2..]),
        _ => (10, text.as_str()),
    };
    // A sign would be accepted otherwise.
    digits
        .chars()
        .all(|c| c.is_digit(radix))
        .then(|| BigUint::from_str_radix(digits, radix).ok())?
}

/// A dotted IPv4 address or a MAC address with colons or dashes.
fn address(text: &str) -> Option<BigUint> {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() == 4 {
        let bytes: Option<Vec<u8>> = parts.iter().map(|p| p.parse().ok()).collect();
        return Some(BigUint::from_bytes_be(&bytes?));
    }
    let separator = if text.contains(':') { ':' } else { '-' };
    let parts: Vec<&str> = text.split(separator).collect();
    if parts.len() == 6 && parts.iter().all(|p| p.len() == 2) {
        let bytes: Option<Vec<u8>> = parts.iter().map(|p| u8::from_str_radix(p, 16).ok()).collect();
        return Some(BigUint::from_bytes_be(&bytes?));
    }
    None
}

impl Value {
    /// Reads a value; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Value::Any);
        }
        let one = |t: &str| number(t).or_else(|| address(t));
        if let Some((value, mask)) = text.split_once("&&&") {
            return Some(Value::Masked(one(value)?, one(mask)?));
        }
        if let Some((low, high)) = text.split_once("..").or_else(|| text.split_once("->"))
            && let (Some(low), Some(high)) = (one(low), one(high))
        {
            return Some(Value::Range(low, high));
        }
        if let Some((value, length)) = text.split_once('/') {
            return Some(Value::Prefix(one(value)?, length.parse().ok()?));
        }
        if let Some(address) = address(text) {
            return Some(Value::Digits {
                digit_bits: 0,
                digits: address.to_string(),
            });
        }
        let lower = text.replace('_', "").to_ascii_lowercase();
        let (digit_bits, radix, digits) = match lower.get(..2) {
            Some("0x") => (4, 16, &lower[2..]),
            Some("0o") => (3, 8, &lower[2..]),
            Some("0b") => (1, 2, &lower[2..]),
            _ => (0, 10, lower.as_str()),
        };
        let fine = |c: char| c.is_digit(radix) || (c == '*' && digit_bits > 0);
        (!digits.is_empty() && digits.chars().all(fine)).then(|| Value::Digits {
            digit_bits,
            digits: digits.to_owned(),
        })
    }

    /// The one number it stands for.
    #[must_use]
    pub fn single(&self) -> Option<BigUint> {
        match self {
            Value::Digits { digits, .. } if digits.contains('*') => None,
            Value::Digits { .. } => Some(self.pattern().0),
            _ => None,
        }
    }

    /// The one number it stands for, in `width` bits.
    ///
    /// # Errors
    /// It stands for several, or it does not fit.
    pub fn bits(&self, width: u32, place: &str) -> Result<Bits, ValueError> {
        let not_one = || ValueError::NotOne {
            value: self.to_string(),
            place: place.to_owned(),
        };
        self.fit(&self.single().ok_or_else(not_one)?, width)
    }

    fn fit(&self, value: &BigUint, width: u32) -> Result<Bits, ValueError> {
        if value.bits() > u64::from(width) {
            return Err(ValueError::TooWide {
                value: self.to_string(),
                width,
            });
        }
        Ok(Bits::from_biguint(width, value))
    }

    /// The value of its digits, `*` read as 0, and a mask with ones where there are digits. A
    /// decimal's mask is 0.
    fn pattern(&self) -> (BigUint, BigUint) {
        let Value::Digits { digit_bits, digits } = self else {
            return (BigUint::zero(), BigUint::zero());
        };
        if *digit_bits == 0 {
            return (BigUint::from_str_radix(digits, 10).unwrap_or_default(), BigUint::zero());
        }
        let (mut value, mut mask) = (BigUint::zero(), BigUint::zero());
        for c in digits.chars() {
            value <<= *digit_bits;
            mask <<= *digit_bits;
            if let Some(digit) = c.to_digit(16) {
                value |= BigUint::from(digit);
                mask |= (BigUint::one() << *digit_bits) - 1u32;
            }
        }
        (value, mask)
    }

    /// What it means for a key of this kind and width.
    ///
    /// # Errors
    /// It cannot be matched so, or it does not fit.
    pub fn key_match(&self, kind: MatchKind, width: u32, key: &str) -> Result<KeyMatch, ValueError> {
        match kind {
            MatchKind::Exact | MatchKind::Selector => Ok(KeyMatch::Exact(self.bits(width, &format!("key `{key}`"))?)),
            MatchKind::Optional => match self {
                Value::Any => Ok(KeyMatch::Optional(None)),
                _ => Ok(KeyMatch::Optional(Some(self.bits(width, &format!("key `{key}`"))?))),
            },
            MatchKind::Lpm => self.lpm(width),
            MatchKind::Ternary => self.ternary(width),
            MatchKind::Range => self.range(width),
        }
    }

    fn wrong(&self, kind: &'static str, instead: &'static str) -> ValueError {
        ValueError::WrongForm {
            value: self.to_string(),
            kind,
            instead,
        }
    }

    fn lpm(&self, width: u32) -> Result<KeyMatch, ValueError> {
        let (value, length) = match self {
            Value::Any => (BigUint::zero(), 0),
            Value::Prefix(value, length) => (value.clone(), *length),
            Value::Digits { digit_bits: 0, .. } => (self.pattern().0, width),
            Value::Digits { digit_bits, digits } => {
                let fixed = digits.chars().filter(|c| *c != '*').count();
                (
                    self.pattern().0,
                    u32::try_from(fixed).unwrap_or(u32::MAX).saturating_mul(*digit_bits),
                )
            }
            _ => return Err(self.wrong("a prefix", "VALUE/LENGTH, or digits that end in `*`")),
        };
        if matches!(self, Value::Prefix(..)) && length > width {
            return Err(self.wrong("a prefix", "a length that is no more than the key's bits"));
        }
        let prefix_length = length.min(width);
        let value = self.fit(&value, width)?.and(&Bits::prefix_mask(width, prefix_length));
        Ok(KeyMatch::Lpm { value, prefix_length })
    }

    fn ternary(&self, width: u32) -> Result<KeyMatch, ValueError> {
        let (value, mask) = match self {
            Value::Any => (BigUint::zero(), Bits::zero(width)),
            Value::Masked(value, mask) => (value.clone(), self.fit(mask, width)?),
            Value::Prefix(_, length) if *length > width => {
                return Err(self.wrong("ternary", "a prefix that is no longer than the key"));
            }
            Value::Prefix(value, length) => (value.clone(), Bits::prefix_mask(width, *length)),
            Value::Digits { digit_bits: 0, .. } => (self.pattern().0, Bits::ones(width)),
            Value::Digits { .. } => {
                // Digits beyond the width may be written as long as they are 0 or `*`.
                let (value, mask) = self.pattern();
                (value, Bits::from_biguint(width, &mask))
            }
            Value::Range(..) => {
                return Err(self.wrong("ternary", "VALUE&&&MASK, or digits with `*`"));
            }
        };
        let value = self.fit(&value, width)?.and(&mask);
        Ok(KeyMatch::Ternary { value, mask })
    }

    fn range(&self, width: u32) -> Result<KeyMatch, ValueError> {
        match self {
            Value::Any => Ok(KeyMatch::Range {
                low: Bits::zero(width),
                high: Bits::ones(width),
            }),
            Value::Range(low, high) => Ok(KeyMatch::Range {
                low: self.fit(low, width)?,
                high: self.fit(high, width)?,
            }),
            Value::Digits { .. } => {
                let one = self.bits(width, "a range")?;
                Ok(KeyMatch::Range {
                    low: one.clone(),
                    high: one,
                })
            }
            _ => Err(self.wrong("a range", "LOW..HIGH")),
        }
    }
}

/// What a key that a test leaves out matches: anything; of an exact key 0.
pub(crate) fn omitted(kind: MatchKind, width: u32) -> KeyMatch {
    let zero = Bits::zero(width);
    match kind {
        MatchKind::Exact | MatchKind::Selector => KeyMatch::Exact(zero),
        MatchKind::Lpm => KeyMatch::Lpm {
            value: zero,
            prefix_length: 0,
        },
        MatchKind::Ternary => KeyMatch::Ternary {
            value: zero.clone(),
            mask: zero,
        },
        MatchKind::Range => KeyMatch::Range {
            low: zero,
            high: Bits::ones(width),
        },
        MatchKind::Optional => KeyMatch::Optional(None),
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Digits { digit_bits, digits } => {
                let prefix = match digit_bits {
                    4 => "0x",
                    3 => "0o",
                    1 => "0b",
                    _ => "",
                };
                write!(f, "{prefix}{digits}")
            }
            Value::Prefix(value, length) => write!(f, "{value:#x}/{length}"),
            Value::Masked(value, mask) => write!(f, "{value:#x}&&&{mask:#x}"),
            Value::Range(low, high) => write!(f, "{low}..{high}"),
            Value::Any => f.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str, kind: MatchKind, width: u32) -> Result<KeyMatch, ValueError> {
        Value::parse(text).expect("a value").key_match(kind, width, "k")
    }

    fn b(width: u32, value: u128) -> Bits {
        Bits::new(width, value)
    }

    #[test]
    fn digits_and_stars_become_prefixes_and_masks() {
        let lpm = |v, prefix_length| {
            Ok(KeyMatch::Lpm {
                value: b(32, v),
                prefix_length,
            })
        };
        assert_eq!(key("0x0a01****", MatchKind::Lpm, 32), lpm(0x0a01_0000, 16));
        assert_eq!(key("0x0a010065", MatchKind::Lpm, 32), lpm(0x0a01_0065, 32));
        assert_eq!(key("10.1.0.0/16", MatchKind::Lpm, 32), lpm(0x0a01_0000, 16));
        let ternary = |v, m| {
            Ok(KeyMatch::Ternary {
                value: b(16, v),
                mask: b(16, m),
            })
        };
        assert_eq!(key("0x25**", MatchKind::Ternary, 16), ternary(0x2500, 0xff00));
        assert_eq!(key("0x25", MatchKind::Ternary, 16), ternary(0x25, 0xff));
        assert_eq!(key("37", MatchKind::Ternary, 16), ternary(37, 0xffff));
        assert_eq!(key("0b1*1", MatchKind::Ternary, 16), ternary(5, 5));
        assert_eq!(key("0xf&&&0x3", MatchKind::Ternary, 16), ternary(3, 3));
    }

    #[test]
    fn what_does_not_fit_says_so() {
        assert!(matches!(
            key("0x100", MatchKind::Exact, 8),
            Err(ValueError::TooWide { .. })
        ));
        assert!(matches!(
            key("0x1*", MatchKind::Exact, 8),
            Err(ValueError::NotOne { .. })
        ));
        assert!(matches!(
            key("1..2", MatchKind::Lpm, 8),
            Err(ValueError::WrongForm { .. })
        ));
        for text in ["00:11:22:33:44", "00:11:22-33-44-55", "00:11:22:33:44:5g"] {
            assert_eq!(Value::parse(text), None, "{text}");
        }
        for text in ["", "0x", "0xg", "1*", "-1", "+1", "a..b", "1/x", "0x+1/3", "__"] {
            assert_eq!(Value::parse(text), None, "{text}");
        }
    }
}
