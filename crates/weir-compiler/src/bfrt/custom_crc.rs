//! Tables of the parameters of custom CRCs, which are weir's own: the reference's chips have no
//! such algorithms.

use super::{Generator, fields};
use weir_ir::target::calculation_name;
use weir_proto::bfrt_info::{FieldType, Table};
use weir_proto::custom_crc::{
    CustomCrc, INITIAL, POLYNOMIAL, REFLECT_IN, REFLECT_OUT, TABLE_TYPE, XOR_OUT, calculation_table,
    calculation_table_id,
};

impl Generator<'_> {
    /// A table without keys for each custom CRC that the program uses, and for each calculation by
    /// one.
    pub(super) fn custom_crcs(&mut self) {
        let Some(spec) = self.control.custom_crcs else { return };
        let widths = spec.widths(self.program).into_iter();
        let widths = widths.filter_map(CustomCrc::of_width);
        let of_widths = widths.map(|crc| table(crc.width, crc.table.to_owned(), crc.table_id));
        let calculations = spec.calculations(self.program).into_iter();
        let of_calculations = calculations.filter_map(|c| {
            let name = calculation_table(&calculation_name(c.number));
            Some(table(c.custom_width?, name, calculation_table_id(c.number)?))
        });
        self.info.tables.extend(of_widths.chain(of_calculations));
    }
}

fn table(width: u32, name: String, id: u32) -> Table {
    let number = || FieldType::bytes(width);
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
        name,
        id,
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
