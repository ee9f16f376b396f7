//! The entries that the source gives tables, as requests to write them.

use super::P4InfoError;
use super::annotations::{self, Field};
use super::externs;
use super::symbols::{self, Kind, Symbols};
use weir_ir::target::Target;
use weir_ir::{Bits, Entry, KeyMatch, MatchKind, Program, Table};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};

/// The entries of the source as one request, by the ids of [`super::p4info`].
///
/// A key that matches anything is left out, as P4Runtime demands.
///
/// # Errors
///
/// As [`super::p4info`].
pub fn entries(program: &Program, targets: &[Target]) -> Result<pb::WriteRequest, Vec<P4InfoError>> {
    let mut errors = Vec::new();
    let owners = externs::owners(program);
    let symbols = symbols::of_program(super::control(program, targets), program, &owners, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let shown = program
        .tables
        .iter()
        .map(|(_, t)| t)
        .filter(|t| !annotations::is_hidden(&t.annotations));
    let updates = shown
        .flat_map(|table| table.entries.iter().map(|e| update(program, &symbols, table, e)))
        .collect();
    Ok(pb::WriteRequest {
        updates,
        ..pb::WriteRequest::default()
    })
}

fn update(program: &Program, symbols: &Symbols, table: &Table, entry: &Entry) -> pb::Update {
    let entry = pb::TableEntry {
        table_id: symbols.id(Kind::Table, &table.name),
        r#match: matches(table, entry),
        action: action(program, symbols, table, entry),
        priority: i32::try_from(entry.priority).unwrap_or(i32::MAX),
        is_const: entry.is_const,
        ..pb::TableEntry::default()
    };
    let entity = pb::Entity {
        entity: Some(pb::entity::Entity::TableEntry(entry)),
    };
    pb::Update {
        r#type: pb::update::Type::Insert.into(),
        entity: Some(entity),
    }
}

fn matches(table: &Table, entry: &Entry) -> Vec<pb::FieldMatch> {
    let fields: Vec<_> = table.keys.iter().map(|k| Field(&k.annotations)).collect();
    let ids = annotations::field_ids(&fields, &mut Vec::new());
    let matched = table
        .keys
        .iter()
        .zip(ids)
        .filter(|(key, _)| key.match_kind != MatchKind::Selector);
    let matches = matched.zip(&entry.matches).filter_map(|((_, field_id), value)| {
        let field_match_type = Some(field_match(value)?);
        Some(pb::FieldMatch {
            field_id,
            field_match_type,
        })
    });
    matches.collect()
}

/// `None` for what matches anything.
fn field_match(value: &KeyMatch) -> Option<FieldMatchType> {
    Some(match value {
        KeyMatch::Exact(value) => FieldMatchType::Exact(Exact {
            value: value.to_bytes(),
        }),
        KeyMatch::Lpm { prefix_length: 0, .. } => return None,
        KeyMatch::Lpm { value, prefix_length } => {
            let prefix_len = i32::try_from(*prefix_length).unwrap_or(i32::MAX);
            FieldMatchType::Lpm(Lpm {
                value: value.to_bytes(),
                prefix_len,
            })
        }
        KeyMatch::Ternary { mask, .. } if mask.is_zero() => return None,
        KeyMatch::Ternary { value, mask } => FieldMatchType::Ternary(Ternary {
            value: value.to_bytes(),
            mask: mask.to_bytes(),
        }),
        KeyMatch::Range { low, high } if low.is_zero() && high.is_ones() => return None,
        KeyMatch::Range { low, high } => FieldMatchType::Range(Range {
            low: low.to_bytes(),
            high: high.to_bytes(),
        }),
        KeyMatch::Optional(None) => return None,
        KeyMatch::Optional(Some(value)) => FieldMatchType::Optional(Optional {
            value: value.to_bytes(),
        }),
    })
}

fn action(program: &Program, symbols: &Symbols, table: &Table, entry: &Entry) -> Option<pb::TableAction> {
    let action = &program.actions[table.actions.get(entry.action.action)?.action];
    let fields: Vec<_> = action.parameters.iter().map(|p| Field(&p.annotations)).collect();
    let ids = annotations::field_ids(&fields, &mut Vec::new());
    let param = |(param_id, value): (u32, &Bits)| pb::action::Param {
        param_id,
        value: value.to_bytes(),
    };
    let params = ids.into_iter().zip(&entry.action.arguments).map(param).collect();
    let call = pb::Action {
        action_id: symbols.id(Kind::Action, &action.name),
        params,
    };
    Some(pb::TableAction {
        r#type: Some(pb::table_action::Type::Action(call)),
    })
}
