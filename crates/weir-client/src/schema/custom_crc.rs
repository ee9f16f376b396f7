//! Custom CRCs of v1model and PSA: tables without keys, the same in both protocols.

use super::{Field, Kind, Protocol, Table, Type};
use weir_proto::custom_crc::{CustomCrc, INITIAL, POLYNOMIAL, REFLECT_IN, REFLECT_OUT, XOR_OUT};

/// The table of a custom CRC that a P4Info lists as an extern.
pub(super) fn table(crc: &CustomCrc) -> Table {
    let number = Type::Bits(crc.width);
    let fields = [
        (POLYNOMIAL, number.clone()),
        (INITIAL, number.clone()),
        (XOR_OUT, number),
        (REFLECT_IN, Type::Bool),
        (REFLECT_OUT, Type::Bool),
    ];
    let fields = (1..).zip(fields);
    Table {
        protocol: Protocol::P4Runtime,
        id: crc.extern_id,
        name: crc.table.to_owned(),
        kind: Kind::CustomCrc,
        size: 1,
        keys: Vec::new(),
        priority: None,
        actions: Vec::new(),
        data: fields.map(|(id, (name, ty))| Field::new(id, name, ty)).collect(),
        elements: Vec::new(),
        is_const: false,
        has_const_default: false,
        const_default_action: None,
        operations: Vec::new(),
        attributes: Vec::new(),
    }
}
