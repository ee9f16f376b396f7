//! Text notation of keys and values.
//!
//! | | Written as |
//! |---|---|
//! | number | `17`, `0x11`, `0b10001`, `10.0.0.1`, `2001:db8::1`, `00:11:22:33:44:55`, `00-11-22-33-44-55` |
//! | prefix | `10.0.0.0/8` |
//! | under a mask | `0x10&&&0xf0` |
//! | range | `1..10`, both included |
//! | anything | `*` |
//!
//! Numbers are shown as addresses if the width is that of one (48 bits: MAC, 128 bits: IPv6). Those
//! of 32 bits are, if the name of the field indicates it with `addr` or `ip`.

use crate::error::Error;
use crate::schema::{Field, Key, Type};
use crate::value::{Match, Value};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A key as text.
#[must_use]
pub fn match_text(key: &Key, to: &Match) -> String {
    let show = |value: &Value| number_text(&key.name, &key.ty, value);
    match to {
        Match::Any => "*".to_owned(),
        Match::Exact(value) => show(value),
        Match::Lpm { value, prefix_len } => format!("{}/{prefix_len}", show(value)),
        // Masks are easier to read as bits than as addresses.
        Match::Ternary { value, mask } => format!("{}&&&{}", show(value), hexadecimal(mask)),
        Match::Range { low, high } => format!("{}..{}", show(low), show(high)),
    }
}

/// A value as text.
#[must_use]
pub fn value_text(field: &Field, value: &Value) -> String {
    number_text(&field.name, &field.ty, value)
}

fn hexadecimal(value: &Value) -> String {
    match value {
        Value::Bits(value) => format!("{value:#x}"),
        other => other.to_string(),
    }
}

fn number_text(name: &str, ty: &Type, value: &Value) -> String {
    match (ty, value) {
        (Type::Bits(48), Value::Bits(mac)) => {
            let bytes = mac.to_be_bytes();
            let parts: Vec<String> = bytes[10..].iter().map(|b| format!("{b:02x}")).collect();
            parts.join(":")
        }
        (Type::Bits(32), Value::Bits(address)) if is_address(name) => match u32::try_from(*address) {
            Ok(address) => Ipv4Addr::from(address).to_string(),
            Err(_) => value.to_string(),
        },
        (Type::Bits(128), Value::Bits(address)) => Ipv6Addr::from(*address).to_string(),
        (Type::Text(_), Value::Text(text)) if needs_quotes(text) => format!("{text:?}"),
        (Type::Record(parts), Value::List(values)) => {
            let records: Vec<String> = values.iter().map(|v| record_text(parts, v)).collect();
            format!("[{}]", records.join(", "))
        }
        (Type::Record(parts) | Type::Header(parts), value @ Value::Record(_)) => record_text(parts, value),
        _ => value.to_string(),
    }
}

fn record_text(parts: &[Field], value: &Value) -> String {
    let Value::Record(fields) = value else {
        return value.to_string();
    };
    let text = |(name, value): &(String, Value)| {
        let part = parts.iter().find(|p| p.name == *name);
        let shown = part.map_or_else(|| value.to_string(), |p| value_text(p, value));
        format!("{name}={shown}")
    };
    let fields: Vec<String> = fields.iter().map(text).collect();
    format!("{{{}}}", fields.join(", "))
}

/// Whether values of a field are written as MAC or IP addresses.
pub(crate) fn is_written_as_address(name: &str, ty: &Type) -> bool {
    match ty {
        Type::Bits(48 | 128) => true,
        Type::Bits(32) => is_address(name),
        _ => false,
    }
}

fn is_address(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    last.contains("addr")
        || last
            .split('_')
            .any(|part| part == "ip" || part == "ipv4" || part == "nexthop")
        || last.contains("next_hop")
}

fn needs_quotes(text: &str) -> bool {
    text.is_empty() || text.contains([' ', '"', '[', ']', '{', '}', ',', '='])
}

/// Parses a match.
///
/// # Errors
/// The key has no such match.
pub fn parse_match(key: &Key, text: &str) -> Result<Match, Error> {
    let value = |text: &str| parse_value(&key.name, &key.ty, text);
    let text = text.trim();
    if text == "*" {
        return Ok(Match::Any);
    }
    if matches!(key.ty, Type::Text(_)) {
        return Ok(Match::Exact(value(text)?));
    }
    if let Some((low, high)) = text.split_once("..").or_else(|| text.split_once("->")) {
        return Ok(Match::Range {
            low: value(low)?,
            high: value(high)?,
        });
    }
    if let Some((v, mask)) = text.split_once("&&&") {
        return Ok(Match::Ternary {
            value: value(v)?,
            mask: value(mask)?,
        });
    }
    if let Some((v, length)) = text.split_once('/') {
        let prefix_len = length
            .trim()
            .parse()
            .map_err(|_| wrong(&key.name, format!("`{length}` is no length of a prefix")))?;
        return Ok(Match::Lpm {
            value: value(v)?,
            prefix_len,
        });
    }
    value(text).map(Match::Exact)
}

/// Parses a value.
///
/// # Errors
/// It is not a value of that type.
pub fn parse_value(name: &str, ty: &Type, text: &str) -> Result<Value, Error> {
    let text = text.trim();
    match ty {
        Type::Text(choices) => {
            let text = unquoted(text);
            if choices.is_empty() || choices.contains(&text) {
                return Ok(Value::Text(text));
            }
            Err(wrong(name, format!("`{text}` is none of {}", choices.join(", "))))
        }
        Type::Enum(members) => {
            if members.iter().any(|m| m == text) {
                return Ok(Value::Text(text.to_owned()));
            }
            Err(wrong(name, format!("`{text}` is none of {}", members.join(", "))))
        }
        Type::Error => Ok(Value::Text(text.to_owned())),
        Type::Bool => match text {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err(wrong(name, format!("`{text}` is not true or false"))),
        },
        Type::Float => text
            .parse()
            .map(Value::Float)
            .map_err(|_| wrong(name, format!("`{text}` is no number"))),
        Type::Bytes => {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let bytes = hex_bytes(digits).ok_or_else(|| wrong(name, format!("`{text}` is no row of hex digits")))?;
            Ok(Value::Wide(bytes))
        }
        _ => parse_number(text).ok_or_else(|| {
            let what = "a number such as 17, 0x11, 10.0.0.1, 2001:db8::1 or 00:11:22:33:44:55";
            wrong(name, format!("`{text}` is not {what}"))
        }),
    }
}

/// Parses a number in any of the forms above.
#[must_use]
pub fn parse_number(text: &str) -> Option<Value> {
    let text = text.trim();
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    if let Some(digits) = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        let digits = if digits.len() % 2 == 1 {
            format!("0{digits}")
        } else {
            digits.to_owned()
        };
        return hex_bytes(&digits)
            .filter(|b| !b.is_empty())
            .map(|b| Value::from_bytes(&b));
    }
    if let Some(digits) = plain.strip_prefix("0b") {
        return u128::from_str_radix(digits, 2).ok().map(Value::Bits);
    }
    if !plain.is_empty() && plain.bytes().all(|b| b.is_ascii_digit()) {
        return plain.parse().ok().map(Value::Bits);
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(address.into());
    }
    let separator = if text.contains('-') { '-' } else { ':' };
    let parts: Vec<&str> = text.split(separator).collect();
    if parts.len() == 6 && parts.iter().all(|p| (1..=2).contains(&p.len())) {
        let bytes: Option<Vec<u8>> = parts.iter().map(|p| u8::from_str_radix(p, 16).ok()).collect();
        if let Some(bytes) = bytes {
            return Some(Value::from_bytes(&bytes));
        }
    }
    text.parse::<Ipv6Addr>().ok().map(Value::from)
}

/// Parses bytes from hexadecimal digits, two each.
#[must_use]
pub fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || digits.len() % 2 == 1 {
        return None;
    }
    let digits = digits.as_bytes().chunks(2);
    digits
        .map(|pair| {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            u8::try_from(high << 4 | low).ok()
        })
        .collect()
}

fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    inner.map_or_else(|| text.to_owned(), |t| t.replace("\\\"", "\"").replace("\\\\", "\\"))
}

fn wrong(field: &str, reason: String) -> Error {
    Error::Input(format!("{field}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::MatchKind;

    fn key(name: &str, kind: MatchKind, width: u32) -> Key {
        Key {
            id: 1,
            name: name.to_owned(),
            kind,
            ty: Type::Bits(width),
        }
    }

    #[test]
    fn what_is_shown_can_be_entered() {
        let cases = [
            (key("dst_addr", MatchKind::Lpm, 32), "10.1.0.0/16"),
            (key("mac", MatchKind::Exact, 48), "00:00:5e:00:53:01"),
            (key("a", MatchKind::Exact, 128), "2001:db8::1"),
            (key("flags", MatchKind::Ternary, 8), "16&&&0xf0"),
            (key("port", MatchKind::Range, 16), "80..443"),
            (key("x", MatchKind::Optional, 16), "*"),
            (
                key("wide", MatchKind::Exact, 200),
                "0x0102030405060708090a0b0c0d0e0f101112",
            ),
        ];
        for (key, text) in cases {
            let parsed = parse_match(&key, text).unwrap();
            assert_eq!(match_text(&key, &parsed), text);
        }
    }

    #[test]
    fn what_is_no_value_is_told_by_the_name_of_its_field() {
        let key = key("port", MatchKind::Range, 16);
        for text in ["", "ten", "0x", "1..", "1.2.3", "-1", "0xgg", "1/x", "é"] {
            let error = parse_match(&key, text).unwrap_err().to_string();
            assert!(error.starts_with("port:"), "{text}: {error}");
        }
    }
}
