//! The keys of an extern instance, by number.
//!
//! `$KEY` is written only. A read returns the numbers of the keys that are set, with `$IS_SET`.

use super::{NumberQuery, Op, Rows};
use crate::bfrt::change::Change;
use crate::bfrt::schema::Table;
use crate::bfrt::value::Value;
use crate::refusal::Refusal;
use weir_ir::ExternId;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::table_entry::Value as EntryKey;
use weir_proto::bfrt_proto::update::Type as Update;
use weir_proto::extern_keys::{IS_SET, KEY};
use weir_switch::{KeyBytes, Transaction, Write};

/// Resolves an update.
///
/// # Errors
/// It is invalid in any state.
pub(crate) fn decode(table: &Table, ty: Update, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    if entry.is_default_entry {
        return Err(Refusal::unsupported("the table has no default entry"));
    }
    let index = match &entry.value {
        Some(EntryKey::Key(given)) => super::key(table, given)?.first().and_then(|(_, v)| v.as_number()),
        Some(EntryKey::HandleId(_)) => return Err(Refusal::unsupported("entries of this table have no handles")),
        None if ty == Update::Delete => return Ok(Change::Key(Op::Clear, 0, KeyBytes::default())),
        None => return Err(Refusal::malformed("Table key cannot be empty")),
    };
    let index = index.unwrap_or(0);
    let op = match ty {
        Update::Insert => Op::Insert,
        Update::Modify => Op::Modify,
        Update::InsertOrModify => Op::Upsert,
        Update::Delete => return Ok(Change::Key(Op::Delete, index, KeyBytes::default())),
        Update::ModifyInc | Update::Reset | Update::Unspecified => {
            return Err(Refusal::unsupported(
                "a key is set by INSERT, MODIFY or INSERT_OR_MODIFY, and removed by DELETE",
            ));
        }
    };
    Ok(Change::Key(op, index, key_bytes(table, entry)?))
}

/// The key in the data of an entry.
fn key_bytes(table: &Table, entry: &pb::TableEntry) -> Result<KeyBytes, Refusal> {
    let mut found = None;
    for given in entry.data.iter().flat_map(|d| &d.fields) {
        let field = table.data.iter().find(|f| f.id == given.field_id);
        match field.map(|f| f.name.as_str()) {
            Some(KEY) => found = Some(given),
            Some(name) => return Err(Refusal::malformed(format!("field `{name}` cannot be written"))),
            None => {
                return Err(Refusal::malformed(format!(
                    "there is no data field with the id {}; the key is the field `{KEY}`",
                    given.field_id
                )));
            }
        }
    }
    let missing = || Refusal::malformed(format!("field `{KEY}` is missing: it is the key"));
    match &found.ok_or_else(missing)?.value {
        Some(Wire::Stream(bytes)) if bytes.is_empty() => Err(Refusal::malformed(format!(
            "field `{KEY}` is empty; a key is removed by DELETE"
        ))),
        Some(Wire::Stream(bytes)) => Ok(KeyBytes::new(bytes.to_vec())),
        _ => Err(Refusal::malformed(format!("field `{KEY}` is given as bytes"))),
    }
}

/// Sets or removes a key, or removes all of them; whether there was one.
///
/// # Errors
/// There is no such key, it has the wrong length, or it is there and must not, or the reverse.
pub(crate) fn apply(
    instance: ExternId,
    op: Op,
    index: u64,
    key: &KeyBytes,
    t: &mut Transaction<'_>,
) -> Result<bool, Refusal> {
    if op == Op::Clear {
        let state = t.switch().state();
        let all = state.extern_keys.keys().filter(|(id, _)| *id == instance);
        let all: Vec<u64> = all.map(|(_, index)| *index).collect();
        for index in all {
            t.write(Write::Key(instance, index, KeyBytes::default()))?;
        }
        return Ok(true);
    }
    let is_set = t.switch().is_key_set(instance, index)?;
    let is_reset = op == Op::Delete && t.switch().only_resets(instance)?;
    let modifies = is_reset || op.check(is_set)?;
    t.write(Write::Key(instance, index, key.clone()))?;
    Ok(modifies)
}

/// The keys that are set.
///
/// # Errors
/// The only selected one is not.
pub(crate) fn read(instance: ExternId, query: NumberQuery<'_>) -> Result<Rows<'_>, Refusal> {
    let numbers = query.numbers();
    let range = (instance, u64::from(*numbers.start()))..=(instance, u64::from(*numbers.end()));
    let found = query.switch.state().extern_keys.range(range);
    let numbers = found.filter_map(|((_, index), _)| u32::try_from(*index).ok());
    query.rows(numbers, move |_, row| row.set(query.table, IS_SET, Value::Bool(true)))
}
