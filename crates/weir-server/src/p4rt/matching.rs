//! The match fields of entries and of members of value sets (specification, section "Match
//! Format").

use super::refusal::Refusal;
use super::schema::Field;
use super::translation::Codec;
use smallvec::SmallVec;
use weir_ir::{Bits, KeyMatch, MatchKind};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};

/// A match as a request has it.
#[derive(Debug, Clone, Copy)]
pub enum Given<'a> {
    /// The value.
    Exact(&'a [u8]),
    /// Value and length of the prefix.
    Lpm(&'a [u8], i32),
    /// Value and mask.
    Ternary(&'a [u8], &'a [u8]),
    /// Low and high end.
    Range(&'a [u8], &'a [u8]),
    /// The value.
    Optional(&'a [u8]),
    /// Of a kind that only other architectures have.
    Other,
}

/// Matches with the ids of their fields. Some have no kind.
pub type AllGiven<'a> = SmallVec<[(u32, Option<Given<'a>>); 4]>;

/// As [`decode_given`], of messages.
///
/// # Errors
/// As there.
pub fn decode(fields: &[Field], given: &[pb::FieldMatch]) -> Result<Vec<KeyMatch>, Refusal> {
    // Of one more than there are keys, one is wrong: no more are looked at.
    let given: AllGiven<'_> = given
        .iter()
        .take(fields.len() + 1)
        .map(|g| (g.field_id, g.field_match_type.as_ref().map(of_message)))
        .collect();
    decode_given(fields, &given)
}

fn of_message(given: &FieldMatchType) -> Given<'_> {
    match given {
        FieldMatchType::Exact(m) => Given::Exact(&m.value),
        FieldMatchType::Lpm(m) => Given::Lpm(&m.value, m.prefix_len),
        FieldMatchType::Ternary(m) => Given::Ternary(&m.value, &m.mask),
        FieldMatchType::Range(m) => Given::Range(&m.low, &m.high),
        FieldMatchType::Optional(m) => Given::Optional(&m.value),
        FieldMatchType::Other(_) => Given::Other,
    }
}

/// One match per field, in the order of the fields. A field that is left out matches anything.
///
/// # Errors
/// A field is unknown, given twice, of another kind, not canonical, or missing where it must be
/// given.
pub fn decode_given(fields: &[Field], given: &[(u32, Option<Given<'_>>)]) -> Result<Vec<KeyMatch>, Refusal> {
    let mut used = 0;
    let mut matches = Vec::with_capacity(fields.len());
    for field in fields {
        let mut of_field = given.iter().filter(|g| g.0 == field.id);
        let first = of_field.next();
        if of_field.next().is_some() {
            return Err(Refusal::malformed(format!("key `{}` is given twice", field.name)));
        }
        used += usize::from(first.is_some());
        let value = match first {
            Some((_, value)) => one(field, *value),
            None => anything(field),
        };
        matches.push(value.map_err(|e| e.within(&format!("key `{}`", field.name)))?);
    }
    if used < given.len() {
        let unknown = given.iter().find(|g| !fields.iter().any(|f| f.id == g.0));
        let id = unknown.map_or(0, |g| g.0);
        let known: Vec<String> = fields.iter().map(|f| format!("{} `{}`", f.id, f.name)).collect();
        return Err(Refusal::malformed(format!(
            "there is no key with the id {id}; there are {}",
            known.join(", ")
        )));
    }
    Ok(matches)
}

/// The match of an omitted key.
fn anything(field: &Field) -> Result<KeyMatch, Refusal> {
    let width = field.codec.width;
    Ok(match field.kind {
        MatchKind::Exact | MatchKind::Selector => {
            return Err(Refusal::malformed("an exact key cannot be left out"));
        }
        MatchKind::Lpm => KeyMatch::Lpm {
            value: Bits::zero(width),
            prefix_length: 0,
        },
        MatchKind::Ternary => KeyMatch::Ternary {
            value: Bits::zero(width),
            mask: Bits::zero(width),
        },
        MatchKind::Range => KeyMatch::Range {
            low: Bits::zero(width),
            high: Bits::ones(width),
        },
        MatchKind::Optional => KeyMatch::Optional(None),
    })
}

fn one(field: &Field, given: Option<Given<'_>>) -> Result<KeyMatch, Refusal> {
    let codec = &field.codec;
    match (field.kind, given) {
        (MatchKind::Exact, Some(Given::Exact(value))) => Ok(KeyMatch::Exact(codec.decode(value)?)),
        (MatchKind::Optional, Some(Given::Optional(value))) => Ok(KeyMatch::Optional(Some(codec.decode(value)?))),
        (MatchKind::Lpm | MatchKind::Ternary | MatchKind::Range, Some(_)) if codec.is_text() => {
            Err(Refusal::unsupported(
                "values that are strings have no prefixes, masks and ranges; match them as exact or optional",
            ))
        }
        (MatchKind::Lpm, Some(Given::Lpm(value, prefix_length))) => lpm(codec, value, prefix_length),
        (MatchKind::Ternary, Some(Given::Ternary(value, mask))) => ternary(codec, value, mask),
        (MatchKind::Range, Some(Given::Range(low, high))) => range(codec, low, high),
        (_, None) => Err(Refusal::malformed("the match has no type")),
        (kind, Some(other)) => Err(Refusal::malformed(format!(
            "the program matches it as {}, the request as {}",
            kind.name(),
            kind_name(other)
        ))),
    }
}

fn kind_name(given: Given<'_>) -> &'static str {
    match given {
        Given::Exact(_) => "exact",
        Given::Ternary(..) => "ternary",
        Given::Lpm(..) => "lpm",
        Given::Range(..) => "range",
        Given::Optional(_) => "optional",
        Given::Other => "something else",
    }
}

fn dont_care() -> Refusal {
    Refusal::malformed("it matches anything: leave the key out")
}

fn lpm(codec: &Codec, value: &[u8], length: i32) -> Result<KeyMatch, Refusal> {
    let value = codec.decode(value)?;
    let prefix_length = u32::try_from(length).ok().filter(|p| *p <= codec.width);
    let prefix_length = prefix_length
        .ok_or_else(|| Refusal::malformed(format!("a prefix of {length} bits of a key of {}", codec.width)))?;
    if prefix_length == 0 {
        return Err(dont_care());
    }
    masked(&value, &Bits::prefix_mask(codec.width, prefix_length))?;
    Ok(KeyMatch::Lpm { value, prefix_length })
}

fn masked(value: &Bits, mask: &Bits) -> Result<(), Refusal> {
    if value.and(mask) == *value {
        return Ok(());
    }
    Err(Refusal::malformed(format!(
        "the value {value:#x} has bits outside of its mask {mask:#x}; clear the bits that are not matched"
    )))
}

fn ternary(codec: &Codec, value: &[u8], mask: &[u8]) -> Result<KeyMatch, Refusal> {
    let (value, mask) = (codec.decode(value)?, codec.decode(mask)?);
    if mask.is_zero() {
        return Err(dont_care());
    }
    masked(&value, &mask)?;
    Ok(KeyMatch::Ternary { value, mask })
}

fn range(codec: &Codec, low: &[u8], high: &[u8]) -> Result<KeyMatch, Refusal> {
    let (low, high) = (codec.decode(low)?, codec.decode(high)?);
    if low.cmp_unsigned(&high).is_gt() {
        return Err(Refusal::malformed(format!("the range {low:#x}..{high:#x} is empty")));
    }
    if low.is_zero() && high.is_ones() {
        return Err(dont_care());
    }
    Ok(KeyMatch::Range { low, high })
}

/// The fields of an entry; those that match anything are left out.
#[must_use]
pub fn encode(fields: &[Field], matches: &[KeyMatch]) -> Vec<pb::FieldMatch> {
    let encoded = fields.iter().zip(matches).filter_map(|(field, value)| {
        Some(pb::FieldMatch {
            field_id: field.id,
            field_match_type: Some(encode_one(&field.codec, value)?),
        })
    });
    encoded.collect()
}

fn encode_one(codec: &Codec, value: &KeyMatch) -> Option<FieldMatchType> {
    Some(match value {
        KeyMatch::Exact(value) => FieldMatchType::Exact(Exact {
            value: codec.encode(value),
        }),
        KeyMatch::Lpm { prefix_length: 0, .. } => return None,
        KeyMatch::Lpm { value, prefix_length } => FieldMatchType::Lpm(Lpm {
            value: codec.encode(value),
            prefix_len: i32::try_from(*prefix_length).unwrap_or(i32::MAX),
        }),
        KeyMatch::Ternary { mask, .. } if mask.is_zero() => return None,
        KeyMatch::Ternary { value, mask } => FieldMatchType::Ternary(Ternary {
            value: codec.encode(value),
            mask: codec.encode(mask),
        }),
        KeyMatch::Range { low, high } if low.is_zero() && high.is_ones() => return None,
        KeyMatch::Range { low, high } => FieldMatchType::Range(Range {
            low: codec.encode(low),
            high: codec.encode(high),
        }),
        KeyMatch::Optional(None) => return None,
        KeyMatch::Optional(Some(value)) => FieldMatchType::Optional(Optional {
            value: codec.encode(value),
        }),
    })
}
