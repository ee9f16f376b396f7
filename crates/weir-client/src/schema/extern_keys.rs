//! Keys of externs: a table for each instance, with the number as key, the same in both protocols.

use super::{Field, Key, Kind, MatchKind, Protocol, Table, Type};
use weir_proto::extern_keys::{EXTERN_TYPES, INDEX, INDEX_ID, IS_SET, IS_SET_ID, KEY, KEY_ID};
use weir_proto::p4::config::v1 as pb;

/// The tables of an extern type of P4Info, if its instances have keys.
pub(super) fn tables(ty: &pb::Extern) -> impl Iterator<Item = Table> {
    let has_keys = u8::try_from(ty.extern_type_id).is_ok_and(|id| EXTERN_TYPES.contains(&id));
    let instances = ty.instances.iter().filter(move |_| has_keys);
    instances.filter_map(|i| i.preamble.as_ref()).map(table)
}

fn table(preamble: &pb::Preamble) -> Table {
    let key = Field {
        is_mandatory: true,
        ..Field::new(KEY_ID, KEY, Type::Bytes)
    };
    let is_set = Field {
        is_read_only: true,
        ..Field::new(IS_SET_ID, IS_SET, Type::Bool)
    };
    Table {
        protocol: Protocol::P4Runtime,
        id: preamble.id,
        name: preamble.name.clone(),
        kind: Kind::ExternKeys,
        size: 0,
        keys: vec![Key {
            id: INDEX_ID,
            name: INDEX.to_owned(),
            kind: MatchKind::Exact,
            ty: Type::Bits(64),
        }],
        priority: None,
        actions: Vec::new(),
        data: vec![key, is_set],
        elements: Vec::new(),
        is_const: false,
        has_const_default: false,
        const_default_action: None,
        operations: Vec::new(),
        attributes: Vec::new(),
    }
}

/// Makes the key's type bytes of any number: `bfrt.json` can only say the most.
pub(super) fn with_bytes(mut table: Table) -> Table {
    if table.kind == Kind::ExternKeys {
        let keys = table.data.iter_mut().filter(|f| f.id == KEY_ID);
        keys.for_each(|f| f.ty = Type::Bytes);
    }
    table
}
