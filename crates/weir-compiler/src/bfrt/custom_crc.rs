//! Tables of the parameters of custom CRCs, which are weir's own: the reference's chips have no
//! such algorithms.

use super::{Generator, fields};
use weir_proto::bfrt_info::{FieldType, Table};
use weir_proto::custom_crc::{CustomCrc, INITIAL, POLYNOMIAL, REFLECT_IN, REFLECT_OUT, TABLE_TYPE, XOR_OUT};

impl Generator<'_> {
    /// A table without keys for each custom CRC that the program uses.
    pub(super) fn custom_crcs(&mut self) {
        let Some(spec) = self.control.custom_crcs else { return };
        let widths = spec.widths(self.program).into_iter();
        let tables = widths.filter_map(CustomCrc::of_width).map(table);
        self.info.tables.extend(tables);
    }
}

fn table(crc: &CustomCrc) -> Table {
    let number = || FieldType::bytes(crc.width);
    let flag = || FieldType::named("bool");
    let data = [
        (POLYNOMIAL, number()),
        (INITIAL, number()),
        (XOR_OUT, number()),
        (REFLECT_IN, flag()),
        (REFLECT_OUT, flag()),
    ];
    let data = (1..).zip(data);
    Table {
        name: crc.table.to_owned(),
        id: crc.table_id,
        table_type: TABLE_TYPE.to_owned(),
        size: 1,
        annotations: Vec::new(),
        depends_on: Vec::new(),
        has_const_default_action: None,
        key: Vec::new(),
        action_specs: None,
        data: data
            .map(|(id, (name, ty))| fields::one(false, fields::value(id, name, ty)))
            .collect(),
        supported_operations: Vec::new(),
        attributes: Vec::new(),
        supported_apis: None,
        read_only: None,
    }
}
