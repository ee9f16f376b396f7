//! Custom CRCs, as externs of a type that P4Runtime leaves to the architecture.

use super::Generator;
use weir_ir::target::calculation_name;
use weir_proto::custom_crc::CustomCrc;
use weir_proto::p4::config::v1 as pb;

impl Generator<'_> {
    /// An extern type for each custom CRC that the program uses. Its first instance has its name,
    /// the others are the calculations by it.
    pub(super) fn custom_crcs(&mut self) {
        let Some(spec) = self.control.custom_crcs else { return };
        let calculations = spec.calculations(self.program);
        for crc in spec.widths(self.program).into_iter().filter_map(CustomCrc::of_width) {
            let by_it = calculations.iter().filter(|c| c.custom_width == Some(crc.width));
            let named = by_it.filter_map(|c| {
                let id = crc.calculation_id(c.number)?;
                Some(instance(id, &calculation_name(c.number)))
            });
            self.info.externs.push(pb::Extern {
                extern_type_id: crc.extern_type_id,
                extern_type_name: crc.name.to_owned(),
                instances: std::iter::once(instance(crc.extern_id, crc.name))
                    .chain(named)
                    .collect(),
            });
        }
    }
}

fn instance(id: u32, name: &str) -> pb::ExternInstance {
    pb::ExternInstance {
        preamble: Some(pb::Preamble {
            id,
            name: name.to_owned(),
            alias: name.to_owned(),
            ..pb::Preamble::default()
        }),
        info: None,
    }
}
