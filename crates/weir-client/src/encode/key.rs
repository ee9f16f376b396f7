//! Matches in a canonical form, from which both protocols are encoded.

use crate::schema::{Key, MatchKind, Type};
use crate::value::{Match, Value};

/// A canonical match. Values have the bytes of the key's width; unmatched bits are 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Canonical {
    Any,
    Exact(Vec<u8>),
    Lpm(Vec<u8>, u32),
    Ternary(Vec<u8>, Vec<u8>),
    Range(Vec<u8>, Vec<u8>),
    Optional(Vec<u8>),
}

/// Converts a match of a key.
///
/// # Errors
/// The reason why it does not fit, for messages.
pub fn canonical(key: &Key, to: &Match) -> Result<Canonical, String> {
    if let Type::Text(_) = key.ty {
        return match (to, key.kind) {
            (Match::Exact(Value::Text(text)), MatchKind::Optional) => {
                Ok(Canonical::Optional(text.clone().into_bytes()))
            }
            (Match::Exact(Value::Text(text)), _) => Ok(Canonical::Exact(text.clone().into_bytes())),
            (Match::Any, kind) if kind != MatchKind::Exact => Ok(Canonical::Any),
            _ => Err("the key is a text".to_owned()),
        };
    }
    let width = match key.ty {
        Type::Bool => 1,
        ref ty => ty
            .width()
            .ok_or_else(|| "keys of this type are not supported".to_owned())?,
    };
    let bytes = |value: &Value| {
        value.fixed(width).ok_or_else(|| match value.bit_length() {
            Some(length) => format!("{value} has {length} bits, the field has {width}"),
            None => format!("{value} is no number of {width} bits"),
        })
    };
    let ones = || ones(width, width);
    Ok(match (key.kind, to) {
        (MatchKind::Exact, Match::Exact(value)) => Canonical::Exact(bytes(value)?),
        (MatchKind::Exact, Match::Any) => return Err("an exact key needs a value".to_owned()),
        (_, Match::Any) => Canonical::Any,
        (MatchKind::Lpm, Match::Exact(value)) => Canonical::Lpm(bytes(value)?, width),
        (MatchKind::Lpm, Match::Lpm { value, prefix_len }) => {
            let prefix_len = checked(*prefix_len, width)?;
            Canonical::Lpm(and(bytes(value)?, &self::ones(prefix_len, width)), prefix_len)
        }
        (MatchKind::Ternary, Match::Exact(value)) => Canonical::Ternary(bytes(value)?, ones()),
        (MatchKind::Ternary, Match::Ternary { value, mask }) => {
            let mask = bytes(mask)?;
            Canonical::Ternary(and(bytes(value)?, &mask), mask)
        }
        (MatchKind::Ternary, Match::Lpm { value, prefix_len }) => {
            let mask = self::ones(checked(*prefix_len, width)?, width);
            Canonical::Ternary(and(bytes(value)?, &mask), mask)
        }
        (MatchKind::Range, Match::Exact(value)) => Canonical::Range(bytes(value)?, bytes(value)?),
        (MatchKind::Range, Match::Range { low, high }) => {
            let (low, high) = (bytes(low)?, bytes(high)?);
            if low > high {
                return Err("the range ends before it begins".to_owned());
            }
            if low.iter().all(|b| *b == 0) && high == ones() {
                Canonical::Any
            } else {
                Canonical::Range(low, high)
            }
        }
        (MatchKind::Optional, Match::Exact(value)) => Canonical::Optional(bytes(value)?),
        (kind, _) => return Err(format!("that does not do for a key of the kind {}", kind.name())),
    })
}

fn checked(prefix_len: u32, width: u32) -> Result<u32, String> {
    if prefix_len > width {
        return Err(format!(
            "a prefix of {prefix_len} bits is longer than the {width} bits of the key"
        ));
    }
    Ok(prefix_len)
}

/// The first `count` of `width` bits.
pub fn ones(count: u32, width: u32) -> Vec<u8> {
    let length = width.div_ceil(8);
    let unused = length * 8 - width;
    let bit = |at: u32| at >= unused && at - unused < count;
    let byte = |i: u32| (0..8).fold(0, |byte, b| byte << 1 | u8::from(bit(i * 8 + b)));
    (0..length).map(byte).collect()
}

fn and(mut bytes: Vec<u8>, mask: &[u8]) -> Vec<u8> {
    bytes.iter_mut().zip(mask).for_each(|(byte, mask)| *byte &= mask);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_do_not_count_are_zero() {
        let key = |kind| Key {
            id: 1,
            name: "k".to_owned(),
            kind,
            ty: Type::Bits(12),
        };
        assert_eq!(
            canonical(&key(MatchKind::Lpm), &Match::lpm(0xfff_u16, 5)),
            Ok(Canonical::Lpm(vec![0xf, 0x80], 5))
        );
        assert_eq!(
            canonical(&key(MatchKind::Ternary), &Match::ternary(0xfff_u16, 0x0f0_u16)),
            Ok(Canonical::Ternary(vec![0, 0xf0], vec![0, 0xf0]))
        );
        assert_eq!(ones(0, 12), [0, 0]);
        assert_eq!(ones(12, 12), [0xf, 0xff]);
        assert!(canonical(&key(MatchKind::Range), &Match::range(5_u8, 4_u8)).is_err());
        assert!(canonical(&key(MatchKind::Exact), &Match::Any).is_err());
        assert!(canonical(&key(MatchKind::Lpm), &Match::lpm(0_u8, 13)).is_err());
    }
}
