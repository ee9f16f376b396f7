//! Custom CRCs, as externs of a type that P4Runtime leaves to the architecture.

use super::Generator;
use weir_proto::custom_crc::CustomCrc;
use weir_proto::p4::config::v1 as pb;

impl Generator<'_> {
    /// An extern type with one instance for each custom CRC that the program uses.
    pub(super) fn custom_crcs(&mut self) {
        let Some(spec) = self.control.custom_crcs else { return };
        let widths = spec.widths(self.program).into_iter();
        let externs = widths.filter_map(CustomCrc::of_width).map(|crc| pb::Extern {
            extern_type_id: crc.extern_type_id,
            extern_type_name: crc.name.to_owned(),
            instances: vec![pb::ExternInstance {
                preamble: Some(pb::Preamble {
                    id: crc.extern_id,
                    name: crc.name.to_owned(),
                    alias: crc.name.to_owned(),
                    ..pb::Preamble::default()
                }),
                info: None,
            }],
        });
        self.info.externs.extend(externs);
    }
}
