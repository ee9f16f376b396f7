//! Tables of the keys of externs, which are weir's own.

use super::ids::Kind;
use super::{Generator, fields};
use crate::p4info::extern_keys::is_shown;
use weir_proto::bfrt_info::{DataField, FieldType, TableData};
use weir_proto::extern_keys::{INDEX, INDEX_ID, IS_SET, IS_SET_ID, KEY, KEY_ID, MAX_KEY_BYTES, TABLE_TYPE};

impl Generator<'_> {
    /// A table for each instance that has keys, in the order of the source.
    pub(super) fn extern_keys(&mut self) {
        let (program, control) = (self.program, self.control);
        for (_, instance) in program.externs.iter().filter(|(_, e)| is_shown(control, e)) {
            let count = instance.key_count().unwrap_or(0);
            let (name, list) = (&instance.name, &instance.annotations);
            let mut table = self.table(Kind::ExternKeys, name, TABLE_TYPE, count, list);
            table.key = vec![fields::key(INDEX_ID, INDEX, FieldType::named("uint32"), true)];
            let bits = u32::try_from(MAX_KEY_BYTES * 8).unwrap_or(u32::MAX);
            let key = fields::value(KEY_ID, KEY, FieldType::bytes(bits));
            let is_set: DataField = fields::value(IS_SET_ID, IS_SET, FieldType::named("bool"));
            let is_set = TableData {
                read_only: true,
                ..fields::one(false, is_set)
            };
            table.data = vec![fields::one(true, key), is_set];
            self.push(table);
        }
    }
}
