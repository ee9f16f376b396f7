//! Values as they are typed and shown.

use anyhow::{Context, Result, bail};
use num_bigint::BigUint;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};
use weir_table::{ActionSpec, EntryHandle, KeySpec, TableSpec};

/// What bmv2 subtracts a priority of P4Runtime from: there the smaller number wins.
const PRIORITIES: u32 = i32::MAX as u32;

/// A number: decimal, or with the prefix 0x, 0o or 0b.
fn number(text: &str) -> Option<BigUint> {
    let (radix, digits) = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &text[2..]),
        Some("0o") => (8, &text[2..]),
        Some("0b") => (2, &text[2..]),
        _ => (10, text),
    };
    BigUint::parse_bytes(digits.as_bytes(), radix)
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

/// A value of a width: a number; for 32, 48 and 128 bits also an address. `what` it is, for
/// messages.
pub fn bits(text: &str, width: u32, what: &str) -> Result<Bits> {
    if width == 32 && text.contains('.') {
        let address: Ipv4Addr = text
            .parse()
            .with_context(|| format!("{what}: `{text}` is no IPv4 address"))?;
        return Ok(Bits::from_bytes(32, &address.octets()));
    }
    if width == 48 && text.contains(':') {
        let address = mac(text).with_context(|| format!("{what}: `{text}` is no MAC address"))?;
        return Ok(Bits::from_bytes(48, &address));
    }
    if width == 128 && text.contains(':') {
        let address: Ipv6Addr = text
            .parse()
            .with_context(|| format!("{what}: `{text}` is no IPv6 address"))?;
        return Ok(Bits::from_bytes(128, &address.octets()));
    }
    let value = match text {
        "true" | "True" => BigUint::from(1u8),
        "false" | "False" => BigUint::ZERO,
        _ => number(text).with_context(|| format!("{what}: `{text}` is no number; hexadecimal ones begin with 0x"))?,
    };
    if value.bits() > u64::from(width) {
        bail!("{what}: {text} has more than {width} bits");
    }
    Ok(Bits::from_biguint(width, &value))
}

/// The match of a key as it is typed: a value, `VALUE/LENGTH`, `VALUE&&&MASK` or `LOW->HIGH`.
pub fn key_match(text: &str, key: &KeySpec) -> Result<KeyMatch> {
    let (width, what) = (key.width, format!("key {}", key.name));
    let value = |text: &str| bits(text, width, &what);
    Ok(match key.kind {
        MatchKind::Lpm => {
            let (address, length) = text
                .rsplit_once('/')
                .with_context(|| format!("{what}: `{text}` is no prefix; write VALUE/LENGTH"))?;
            let length = length.parse().ok().filter(|length| *length <= width);
            let prefix_length =
                length.with_context(|| format!("{what}: `{text}` has a length that is none of 0 to {width}"))?;
            KeyMatch::Lpm {
                value: value(address)?.and(&Bits::prefix_mask(width, prefix_length)),
                prefix_length,
            }
        }
        MatchKind::Ternary => {
            let (value, mask) = masked(text, width, &what)?;
            KeyMatch::Ternary { value, mask }
        }
        MatchKind::Range => {
            let (low, high) = text.split_once("->").unwrap_or((text, text));
            let (low, high) = (value(low)?, value(high)?);
            if low.cmp_unsigned(&high).is_gt() {
                bail!("{what}: the range {text} ends before its begin");
            }
            KeyMatch::Range { low, high }
        }
        // bmv2 has these as ternary keys.
        MatchKind::Optional => {
            let (value, mask) = masked(text, width, &what)?;
            match (mask.is_zero(), mask.is_ones()) {
                (true, _) => KeyMatch::Optional(None),
                (_, true) => KeyMatch::Optional(Some(value)),
                _ => bail!("{what}: an optional key has a mask of all ones or zero"),
            }
        }
        MatchKind::Exact | MatchKind::Selector => KeyMatch::Exact(value(text)?),
    })
}

/// `VALUE&&&MASK`, or a value with a mask of all ones.
fn masked(text: &str, width: u32, what: &str) -> Result<(Bits, Bits)> {
    match text.split_once("&&&") {
        Some((value, mask)) => {
            let mask = bits(mask, width, what)?;
            Ok((bits(value, width, what)?.and(&mask), mask))
        }
        None => Ok((bits(text, width, what)?, Bits::ones(width))),
    }
}

/// The matches of all keys of a table.
pub fn matches(spec: &TableSpec, texts: &[&str]) -> Result<Vec<KeyMatch>> {
    let keys = spec.match_keys().count();
    if texts.len() != keys {
        bail!("table {} has {keys} keys, not {}", spec.name, texts.len());
    }
    spec.match_keys()
        .zip(texts)
        .map(|(key, text)| key_match(text, key))
        .collect()
}

/// An action with its data, among these.
pub fn call(actions: &[ActionSpec], name: &str, data: &[&str]) -> Result<ActionCall> {
    let names = actions.iter().map(|a| a.name.as_str());
    let index: usize = weir_switch::resolve("action of the table", name, names.zip(0..))?;
    let action = &actions[index];
    if data.len() != action.parameters.len() {
        bail!(
            "action {} has {} parameters, not {}",
            action.name,
            action.parameters.len(),
            data.len()
        );
    }
    let values = action.parameters.iter().zip(data);
    let arguments = values.map(|((name, width), text)| bits(text, *width, &format!("parameter {name}")));
    Ok(ActionCall {
        action: index,
        arguments: arguments.collect::<Result<_>>()?,
    })
}

/// The handle of an entry: from 0 as bmv2 counts.
pub fn handle(text: &str) -> Result<EntryHandle> {
    let number = text.parse::<u32>().ok().and_then(|n| n.checked_add(1));
    let handle = number.and_then(EntryHandle::new);
    handle.with_context(|| format!("expected a number for the handle of an entry, found `{text}`"))
}

/// The priority in weir of one in bmv2.
pub fn priority(text: &str) -> Result<u32> {
    let number = text.parse::<u32>().ok().filter(|n| *n < PRIORITIES);
    number.map(|n| PRIORITIES - n).with_context(|| {
        format!("`{text}` is no priority; the table has keys with masks or ranges, so that one stands at the end: the smaller wins")
    })
}

/// The priority in bmv2 of one in weir.
pub fn shown_priority(priority: u32) -> u32 {
    PRIORITIES.saturating_sub(priority)
}

/// How a kind of match is called.
pub fn kind_name(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        // bmv2 has no kind of its own for optional keys.
        MatchKind::Ternary | MatchKind::Optional => "ternary",
        MatchKind::Range => "range",
        MatchKind::Selector => "selector",
    }
}

/// How bmv2 calls the match of a table.
pub fn table_kind(spec: &TableSpec) -> &'static str {
    let has = |kinds: &[MatchKind]| spec.match_keys().any(|k| kinds.contains(&k.kind));
    if has(&[MatchKind::Range]) {
        "range"
    } else if has(&[MatchKind::Ternary, MatchKind::Optional]) {
        "ternary"
    } else if has(&[MatchKind::Lpm]) {
        "lpm"
    } else {
        "exact"
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(value: &Bits) -> String {
    value.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes as hexadecimal digits with colons.
pub fn colons(value: &Bits) -> String {
    let bytes: Vec<String> = value.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// A match, with values as `show` writes them.
pub fn shown_match(key: &KeyMatch, width: u32, show: fn(&Bits) -> String) -> String {
    match key {
        KeyMatch::Exact(value) => show(value),
        KeyMatch::Lpm { value, prefix_length } => format!("{}/{prefix_length}", show(value)),
        KeyMatch::Ternary { value, mask } => format!("{} &&& {}", show(value), show(mask)),
        KeyMatch::Range { low, high } => format!("{} -> {}", show(low), show(high)),
        KeyMatch::Optional(Some(value)) => format!("{} &&& {}", show(value), show(&Bits::ones(width))),
        KeyMatch::Optional(None) => {
            let zero = Bits::zero(width);
            format!("{} &&& {}", show(&zero), show(&zero))
        }
    }
}

/// A list of numbers, for people and scripts.
pub fn list(numbers: impl IntoIterator<Item = u32>) -> String {
    let texts: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
    texts.join(", ")
}
