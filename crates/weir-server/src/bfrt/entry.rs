//! Keys and data of match-action table entries: converts between protobuf messages and the types of
//! `weir_table`.

use super::cells::Patch;
use super::schema::{Action, Key, MatchTable, Role, Style, Table};
use super::value;
use crate::refusal::Refusal;
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::key_field::MatchType;
use weir_table::{Entry, EntryAction};

/// The switch's largest priority: BF Runtime's 0, which takes precedence. P4Runtime shows the same
/// entries in its own order, in which the larger number takes precedence, and has 31 bits for it.
const FIRST_PRIORITY: u32 = i32::MAX as u32;

/// The priority of entries in tables that need one but have no priority key.
const ONLY_PRIORITY: u32 = 1;

/// Converts BF Runtime's priority, where the smaller number takes precedence, to the switch's.
fn from_wire_priority(priority: u64) -> Result<u32, Refusal> {
    let priority = u32::try_from(priority).ok().filter(|p| *p < FIRST_PRIORITY);
    priority
        .map(|p| FIRST_PRIORITY - p)
        .ok_or_else(|| Refusal::malformed(format!("key `$MATCH_PRIORITY` is 0 to {}", FIRST_PRIORITY - 1)))
}

/// The switch's priority of an entry whose key has the priority `given`, if any.
///
/// # Errors
/// It is too large.
pub(crate) fn switch_priority(match_table: &MatchTable, given: Option<u64>) -> Result<u32, Refusal> {
    match (given, match_table.priority, match_table.is_ranked) {
        (Some(priority), ..) => from_wire_priority(priority),
        (None, Some(_), _) => Ok(FIRST_PRIORITY),
        (None, None, true) => Ok(ONLY_PRIORITY),
        (None, None, false) => Ok(0),
    }
}

/// Converts the switch's priority to BF Runtime's.
pub(crate) fn to_wire_priority(priority: u32) -> u32 {
    FIRST_PRIORITY.saturating_sub(priority)
}

/// Decodes a key: one match per key field in order, and the switch's priority.
///
/// Missing fields match anything; missing exact fields match 0, as on hardware.
///
/// # Errors
/// A field is unknown, given twice, of another kind, or has a value that does not fit.
pub(crate) fn matches(
    table: &Table,
    match_table: &MatchTable,
    given: &pb::TableKey,
) -> Result<(Vec<KeyMatch>, u32), Refusal> {
    let mut priority = None;
    let mut found: Vec<KeyMatch> = Vec::with_capacity(table.keys.len());
    let mut used = 0;
    for (at, key) in table.keys.iter().enumerate() {
        // Clients usually send fields in the order of the description.
        let field = match given.fields.get(at) {
            Some(field) if field.field_id == key.id => Some(field),
            _ => given.fields.iter().find(|f| f.field_id == key.id),
        };
        used += usize::from(field.is_some());
        found.push(match field {
            Some(field) => key_match(key, field).map_err(|e| e.within(&format!("key `{}`", key.name)))?,
            None => match_any(key),
        });
    }
    if let Some(id) = match_table.priority
        && let Some(field) = given.fields.iter().find(|f| f.field_id == id)
    {
        used += 1;
        let Some(MatchType::Exact(m)) = &field.match_type else {
            return Err(Refusal::malformed("key `$MATCH_PRIORITY` is given exactly"));
        };
        let number = value::number(32, &m.value).map_err(|e| e.within("key `$MATCH_PRIORITY`"))?;
        priority = Some(number);
    }
    if used < given.fields.len() {
        return Err(surplus_key(table, match_table, given));
    }
    Ok((found, switch_priority(match_table, priority)?))
}

/// The refusal of a key with more fields than the table has.
#[cold]
fn surplus_key(table: &Table, match_table: &MatchTable, given: &pb::TableKey) -> Refusal {
    let known = |id: u32| table.keys.iter().any(|k| k.id == id) || match_table.priority == Some(id);
    match given.fields.iter().find(|f| !known(f.field_id)) {
        Some(field) => Refusal::malformed(format!("there is no key with the id {}", field.field_id)),
        None => Refusal::malformed("a key is given twice"),
    }
}

fn match_any(key: &Key) -> KeyMatch {
    let zero = Bits::zero(key.width);
    match key.kind {
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
            high: Bits::ones(key.width),
        },
        MatchKind::Optional => KeyMatch::Optional(None),
    }
}

/// Decodes one key field. Unmatched bits of a value are cleared.
///
/// # Errors
/// It is of another kind, or does not fit.
pub(crate) fn key_match(key: &Key, given: &pb::KeyField) -> Result<KeyMatch, Refusal> {
    let width = key.width;
    match (key.kind, &given.match_type) {
        (MatchKind::Exact, Some(MatchType::Exact(m))) => Ok(KeyMatch::Exact(value::bits(width, &m.value)?)),
        (MatchKind::Exact, Some(MatchType::Ternary(m))) => {
            // Members of value sets always have masks, even for fields that the program matches
            // exactly.
            if !value::bits(width, &m.mask)?.is_ones() {
                return Err(Refusal::malformed(
                    "the program matches it exactly: all bits of the mask must be set",
                ));
            }
            Ok(KeyMatch::Exact(value::bits(width, &m.value)?))
        }
        (MatchKind::Ternary, Some(MatchType::Ternary(m))) => {
            let mask = value::bits(width, &m.mask)?;
            let value = value::bits(width, &m.value)?.and(&mask);
            Ok(KeyMatch::Ternary { value, mask })
        }
        (MatchKind::Lpm, Some(MatchType::Lpm(m))) => {
            let prefix = u32::try_from(m.prefix_len).ok().filter(|p| *p <= width);
            let prefix_length = prefix
                .ok_or_else(|| Refusal::malformed(format!("a prefix of {} bits of a key of {width}", m.prefix_len)))?;
            let value = value::bits(width, &m.value)?;
            let value = value.and(&Bits::prefix_mask(width, prefix_length));
            Ok(KeyMatch::Lpm { value, prefix_length })
        }
        (MatchKind::Range, Some(MatchType::Range(m))) => {
            let (low, high) = (value::bits(width, &m.low)?, value::bits(width, &m.high)?);
            if low.cmp_unsigned(&high).is_gt() {
                return Err(Refusal::malformed(format!("the range {low:#x}..{high:#x} is empty")));
            }
            Ok(KeyMatch::Range { low, high })
        }
        (MatchKind::Optional, Some(MatchType::Optional(m))) => match m.is_valid {
            true => Ok(KeyMatch::Optional(Some(value::bits(width, &m.value)?))),
            false => Ok(KeyMatch::Optional(None)),
        },
        (_, None) => Err(Refusal::malformed("the match has no type")),
        (kind, Some(other)) => Err(Refusal::malformed(format!(
            "the table matches it as {}, the request as {}",
            kind.name(),
            match other {
                MatchType::Exact(_) => "exact",
                MatchType::Ternary(_) => "ternary",
                MatchType::Lpm(_) => "lpm",
                MatchType::Range(_) => "range",
                MatchType::Optional(_) => "optional",
            }
        ))),
    }
}

/// Encodes one match. With `as_ternary`, exact matches have a mask, as in value sets.
pub(crate) fn encode_match(key: &Key, found: &KeyMatch, as_ternary: bool) -> pb::KeyField {
    use pb::key_field::{Exact, Lpm, Optional, Range, Ternary};
    let match_type = match found {
        KeyMatch::Exact(v) if as_ternary => MatchType::Ternary(Ternary {
            value: value::bytes(v),
            mask: value::bytes(&Bits::ones(key.width)),
        }),
        KeyMatch::Exact(v) => MatchType::Exact(Exact { value: value::bytes(v) }),
        KeyMatch::Ternary { value, mask } => MatchType::Ternary(Ternary {
            value: value::bytes(value),
            mask: value::bytes(mask),
        }),
        KeyMatch::Lpm { value, prefix_length } => MatchType::Lpm(Lpm {
            value: value::bytes(value),
            prefix_len: i32::try_from(*prefix_length).unwrap_or(i32::MAX),
        }),
        KeyMatch::Range { low, high } => MatchType::Range(Range {
            low: value::bytes(low),
            high: value::bytes(high),
        }),
        KeyMatch::Optional(found) => MatchType::Optional(Optional {
            is_valid: found.is_some(),
            value: value::bytes(found.as_ref().unwrap_or(&Bits::zero(key.width))),
        }),
    };
    pb::KeyField {
        field_id: key.id,
        match_type: Some(match_type),
    }
}

/// Encodes the key of an entry, with its priority.
pub(crate) fn encode_key(table: &Table, match_table: &MatchTable, entry: &Entry) -> pb::TableKey {
    let matches = table.keys.iter().zip(&entry.matches);
    let mut fields: Vec<pb::KeyField> = matches.map(|(key, m)| encode_match(key, m, false)).collect();
    if let Some(id) = match_table.priority {
        fields.push(pb::KeyField {
            field_id: id,
            match_type: Some(MatchType::Exact(pb::key_field::Exact {
                value: value::number_bytes(32, to_wire_priority(entry.priority).into()),
            })),
        });
    }
    pb::TableKey { fields }
}

/// The action in the data of an entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GivenAction {
    /// No action: the entry keeps its own.
    Nothing,
    /// A complete action.
    Action(EntryAction),
    /// An action (its number) with missing parameters, which are taken from the entry if it has the
    /// same action.
    Partial(usize, Vec<Option<Bits>>),
}

/// Decodes the data of an entry: its action, and values of its resources.
///
/// # Errors
/// A field is unknown, given twice or does not fit, or the action is not the table's.
pub(crate) fn data(
    table: &Table,
    match_table: &MatchTable,
    given: &pb::TableData,
) -> Result<(GivenAction, Option<Box<Patch>>), Refusal> {
    let action = match (match_table.style, given.action_id) {
        (_, 0) => None,
        (Style::Direct, id) => Some(table.action(id)?),
        (_, _) => {
            return Err(Refusal::malformed(
                "its entries have no actions of their own; leave out the action_id",
            ));
        }
    };
    let mut values: Vec<Option<Bits>> = vec![None; action.map_or(0, |a| a.params.len())];
    let mut patch: Option<Box<Patch>> = None;
    let mut reference = None;
    let mut missing = values.len();
    for (at, field) in given.fields.iter().enumerate() {
        if let Some(action) = action
            && let Some(at) = param_index(action, at, field.field_id)
        {
            if values[at].is_some() {
                return Err(twice(&action.params[at].name));
            }
            values[at] = Some(param(action, at, field)?);
            missing -= 1;
            continue;
        }
        let known = table.data.iter().find(|f| f.id == field.field_id);
        let known = known.ok_or_else(|| no_field(action, field.field_id))?;
        if given.fields[..at].iter().any(|f| f.field_id == field.field_id) {
            return Err(twice(&known.name));
        }
        if patch.get_or_insert_default().add(known, field)? {
            continue;
        }
        let number = value::decode(&known.ty, known.repeated, field);
        let number = number.map_err(|e| e.within(&format!("field `{}`", known.name)))?;
        let number = number.as_number().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let action = match known.role {
            Role::Member => EntryAction::Member(number),
            Role::Group => EntryAction::Group(number),
            _ => return Err(no_field(action, field.field_id)),
        };
        if reference.replace(action).is_some() {
            return Err(Refusal::malformed("an entry has a member or a group, not both"));
        }
    }
    let patch = patch.filter(|p| **p != Patch::default());
    if let Some(reference) = reference {
        return Ok((GivenAction::Action(reference), patch));
    }
    let Some(action) = action else {
        return Ok((GivenAction::Nothing, patch));
    };
    let number = *action
        .numbers
        .first()
        .ok_or_else(|| Refusal::malformed("the action is not the table's"))?;
    if missing > 0 {
        return Ok((GivenAction::Partial(number, values), patch));
    }
    let arguments = values.into_iter().flatten().collect();
    Ok((
        GivenAction::Action(EntryAction::Call(ActionCall {
            action: number,
            arguments,
        })),
        patch,
    ))
}

/// The index of the parameter with an id; clients usually send them in order, so `at` is tried
/// first.
#[inline]
fn param_index(action: &Action, at: usize, id: u32) -> Option<usize> {
    if action.params.get(at).is_some_and(|p| p.id == id) {
        return Some(at);
    }
    action.params.iter().position(|p| p.id == id)
}

fn param(action: &Action, at: usize, field: &pb::DataField) -> Result<Bits, Refusal> {
    let param = &action.params[at];
    let within = |e: Refusal| e.within(&format!("field `{}`", param.name));
    match &field.value {
        Some(pb::data_field::Value::Stream(bytes)) => value::bits(param.width, bytes).map_err(within),
        Some(_) => Err(within(Refusal::malformed("the value must be a byte string"))),
        None => Err(within(Refusal::malformed("the value is missing"))),
    }
}

#[cold]
fn twice(name: &str) -> Refusal {
    Refusal::malformed(format!("the field `{name}` is given twice"))
}

#[cold]
fn no_field(action: Option<&Action>, id: u32) -> Refusal {
    Refusal::malformed(match action {
        Some(action) => format!(
            "neither the action `{}` nor the table has a field with the id {id}",
            action.name
        ),
        None => format!("the table has no field with the id {id}; fields of actions need an action_id"),
    })
}

/// Encodes the `selected` parameters of a call (all if `selected` is empty). `instance` selects the
/// profile instance whose action numbers apply.
pub(crate) fn encode_call(
    actions: &[Action],
    call: &ActionCall,
    instance: usize,
    selected: &[u32],
) -> (u32, Vec<pb::DataField>) {
    let Some(action) = actions.iter().find(|a| a.numbers.get(instance) == Some(&call.action)) else {
        return (0, Vec::new());
    };
    let values = action.params.iter().zip(&call.arguments);
    let values = values.filter(|(p, _)| selected.is_empty() || selected.contains(&p.id));
    let fields = values.map(|(param, value)| pb::DataField {
        field_id: param.id,
        value: Some(pb::data_field::Value::Stream(value::bytes(value))),
    });
    (action.id, fields.collect())
}
