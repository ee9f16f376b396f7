//! `$hash.crc16_custom`, `$hash.crc32_custom`, `$hash.calc_1`: the parameters of custom CRCs and of
//! calculations by them, for programs that hash so.
//!
//! A table without keys has one entry. That of a width always exists, and that of a calculation
//! once it has parameters of its own. Fields missing in a modification are unchanged. Deleting,
//! resetting and clearing restore the parameters of CRC-16 and CRC-32; a calculation has those of
//! its width again.

use super::{Op, Row, Source};
use crate::bfrt::change::Change;
use crate::bfrt::schema::Table;
use crate::bfrt::value::{self, Value};
use crate::refusal::Refusal;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::table_entry::Value as EntryKey;
use weir_proto::bfrt_proto::update::Type as Update;
use weir_proto::custom_crc::{INITIAL, POLYNOMIAL, REFLECT_IN, REFLECT_OUT, XOR_OUT};
use weir_switch::{CrcParameters, CrcScope, Transaction, Write};

/// Resolves an update. The entry may be addressed as the default entry, by an empty key, or not at
/// all.
///
/// # Errors
/// It has a key, or the operation is not supported.
pub(crate) fn decode(table: &Table, ty: Update, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    match &entry.value {
        None => {}
        Some(EntryKey::Key(key)) if key.fields.is_empty() => {}
        Some(EntryKey::Key(_) | EntryKey::HandleId(_)) => {
            return Err(Refusal::malformed(
                "the table has no key: its only entry is always there",
            ));
        }
    }
    match ty {
        Update::Modify | Update::InsertOrModify => {}
        Update::Delete | Update::Reset => return Ok(Change::Fixed(Op::Clear, Row::default())),
        Update::Insert | Update::ModifyInc | Update::Unspecified => {
            return Err(Refusal::unsupported(
                "the table's only entry is always there; use MODIFY, or DELETE for the parameters at first",
            ));
        }
    }
    let data = entry.data.as_ref().filter(|d| !d.fields.is_empty());
    let data = data.ok_or_else(|| Refusal::malformed("Table data cannot be empty"))?;
    let row = Row {
        data: value::decode_all(&table.data, &data.fields)?,
        ..Row::default()
    };
    Ok(Change::Fixed(Op::Modify, row))
}

/// Changes the parameters.
pub(crate) fn apply(
    scope: CrcScope,
    op: Op,
    row: &Row,
    table: &Table,
    t: &mut Transaction<'_>,
) -> Result<bool, Refusal> {
    // Where the program does not hash so, the write is refused.
    let was = t.switch().state().crc(scope).unwrap_or(CrcParameters::CRC32);
    let parameters = (op != Op::Clear).then(|| CrcParameters {
        polynomial: row.number(table, POLYNOMIAL).unwrap_or(was.polynomial),
        initial: row.number(table, INITIAL).unwrap_or(was.initial),
        xor_out: row.number(table, XOR_OUT).unwrap_or(was.xor_out),
        reflect_in: row.flag(table, REFLECT_IN).unwrap_or(was.reflect_in),
        reflect_out: row.flag(table, REFLECT_OUT).unwrap_or(was.reflect_out),
        ..was
    });
    t.write(Write::crc(scope, parameters))?;
    Ok(true)
}

/// Reads the only entry. There is none if the program does not use the CRC because nothing reads
/// the result, and none of a calculation without parameters of its own.
pub(crate) fn read(scope: CrcScope, table: &Table, source: &Source<'_>) -> Vec<Row> {
    let Some(parameters) = source.switch.state().readable_crc(scope) else {
        return Vec::new();
    };
    let mut row = Row::default();
    row.set(table, POLYNOMIAL, Value::Number(parameters.polynomial));
    row.set(table, INITIAL, Value::Number(parameters.initial));
    row.set(table, XOR_OUT, Value::Number(parameters.xor_out));
    row.set(table, REFLECT_IN, Value::Bool(parameters.reflect_in));
    row.set(table, REFLECT_OUT, Value::Bool(parameters.reflect_out));
    vec![row]
}
