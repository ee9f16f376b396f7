//! `$hash.crc16_custom`, `$hash.crc32_custom`: the parameters of custom CRCs, for programs that
//! hash by them.
//!
//! A table without keys has one entry, which always exists. Fields missing in a modification are
//! unchanged; deleting, resetting and clearing restore the parameters of CRC-16 and CRC-32.

use super::{Op, Row, Source};
use crate::bfrt::change::Change;
use crate::bfrt::schema::Table;
use crate::bfrt::value::{self, Value};
use crate::refusal::Refusal;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::table_entry::Value as EntryKey;
use weir_proto::bfrt_proto::update::Type as Update;
use weir_proto::custom_crc::{INITIAL, POLYNOMIAL, REFLECT_IN, REFLECT_OUT, XOR_OUT};
use weir_switch::{CrcParameters, Transaction, Write};

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
pub(crate) fn apply(width: u32, op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    let parameters = (op != Op::Clear).then(|| {
        let was = t.switch().state().custom_crc(width);
        CrcParameters {
            width,
            polynomial: row.number(table, POLYNOMIAL).unwrap_or(was.polynomial),
            initial: row.number(table, INITIAL).unwrap_or(was.initial),
            xor_out: row.number(table, XOR_OUT).unwrap_or(was.xor_out),
            reflect_in: row.flag(table, REFLECT_IN).unwrap_or(was.reflect_in),
            reflect_out: row.flag(table, REFLECT_OUT).unwrap_or(was.reflect_out),
        }
    });
    t.write(Write::CustomCrc(width, parameters))?;
    Ok(true)
}

/// Reads the only entry. There is none if the program does not use the CRC because nothing reads
/// the result.
pub(crate) fn read(width: u32, table: &Table, source: &Source<'_>) -> Vec<Row> {
    let state = source.switch.state();
    if !state.custom_crcs().contains(&width) {
        return Vec::new();
    }
    let parameters = state.custom_crc(width);
    let mut row = Row::default();
    row.set(table, POLYNOMIAL, Value::Number(parameters.polynomial));
    row.set(table, INITIAL, Value::Number(parameters.initial));
    row.set(table, XOR_OUT, Value::Number(parameters.xor_out));
    row.set(table, REFLECT_IN, Value::Bool(parameters.reflect_in));
    row.set(table, REFLECT_OUT, Value::Bool(parameters.reflect_out));
    vec![row]
}
