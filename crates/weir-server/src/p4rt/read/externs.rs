//! Externs that have no entity of their own: custom CRCs.

use super::{Cursor, Portion, Progress, Reader};
use crate::p4rt::custom_crc;
use crate::p4rt::refusal::Refusal;
use weir_proto::custom_crc::CustomCrc;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;

impl Reader<'_> {
    /// Reads the parameters of custom CRCs: of an instance, of a type, or of all that the program
    /// uses.
    pub(super) fn externs(
        &self,
        query: &pb::ExternEntry,
        from: Cursor,
        out: &mut Portion,
    ) -> Result<Progress, Refusal> {
        let only = match (query.extern_type_id, query.extern_id) {
            (0, 0) => None,
            (0, id) => {
                return Err(Refusal::malformed(format!(
                    "the extern_type_id of the extern {id:#x} is missing; it is the first byte of the id"
                )));
            }
            (ty, id) => {
                let crc = custom_crc::of_type(self.schema, ty)?;
                custom_crc::check_instance(crc, id, true)?;
                Some(crc.width)
            }
        };
        // Those that the program as it runs uses: a hash whose result nothing reads has no
        // parameters.
        let widths = self.switch.state().custom_crcs().iter().copied();
        let wanted = widths.filter(|w| only.is_none_or(|only| only == *w));
        for crc in wanted.filter_map(CustomCrc::of_width) {
            if crc.extern_id < from.id || !self.sees(crc.extern_id) {
                continue;
            }
            if out.is_full() {
                let id = crc.extern_id;
                return Ok(Some(Cursor { id, place: 0 }));
            }
            let parameters = self.switch.state().custom_crc(crc.width);
            out.push(Entity::ExternEntry(custom_crc::encode(crc, &parameters)));
        }
        Ok(None)
    }
}
