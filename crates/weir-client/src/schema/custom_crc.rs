//! Custom CRCs of v1model and PSA: tables without keys, the same in both protocols.

use super::{Field, Kind, Protocol, Table, Type};
use weir_proto::custom_crc::{CustomCrc, INITIAL, POLYNOMIAL, REFLECT_IN, REFLECT_OUT, XOR_OUT, calculation_table};
use weir_proto::p4::config::v1 as p4info;

/// The tables of a custom CRC that a P4Info lists as an extern: its own, and those of calculations
/// by it.
pub(super) fn tables(described: &p4info::Extern) -> Vec<Table> {
    let Some(crc) = CustomCrc::of_type(described.extern_type_id) else {
        return Vec::new();
    };
    let instances = described.instances.iter().filter_map(|i| i.preamble.as_ref());
    instances
        .map(|preamble| table(crc, preamble.id, calculation_table(&preamble.name)))
        .collect()
}

fn table(crc: &CustomCrc, id: u32, name: String) -> Table {
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
        id,
        name,
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
