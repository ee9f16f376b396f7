//! State that has no entity of its own: custom CRCs, keys, and queues of ports.

use super::{Cursor, Portion, Progress, Reader};
use crate::p4rt::refusal::Refusal;
use crate::p4rt::{custom_crc, extern_keys, port_queues};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;

impl Reader<'_> {
    /// Reads the state of externs: of an instance, of a type, or of all. First come the parameters
    /// of the custom CRCs that the program uses, then the numbers of the keys that are set. Queues
    /// are read by their type only: they belong to no program, and P4Info does not list them.
    pub(super) fn externs(
        &self,
        query: &pb::ExternEntry,
        from: Cursor,
        out: &mut Portion,
    ) -> Result<Progress, Refusal> {
        let (type_id, id) = (query.extern_type_id, query.extern_id);
        if type_id == 0 && id != 0 {
            return Err(Refusal::malformed(format!(
                "the extern_type_id of the extern {id:#x} is missing; it is the first byte of the id"
            )));
        }
        if type_id == weir_proto::port_queues::EXTERN_TYPE {
            return self.queues(id, from, out);
        }
        if extern_keys::is_type(self.schema, type_id) {
            return self.keys(query, from, out);
        }
        match self.custom_crcs(type_id, id, from, out)? {
            Some(more) => Ok(Some(more)),
            None if type_id == 0 => self.keys(query, from, out),
            None => Ok(None),
        }
    }

    /// Calculations have an entry once they have parameters of their own.
    fn custom_crcs(&self, type_id: u32, id: u32, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        let of_type = match type_id {
            0 => None,
            _ => Some(custom_crc::of_type(self.schema, type_id)?),
        };
        if let Some(crc) = of_type
            && id != 0
        {
            custom_crc::instance(self.schema, crc, id)?;
        }
        for (&at, instance) in self.schema.crcs.range(from.id..) {
            let is_of_type = of_type.is_none_or(|crc| crc.width == instance.crc.width);
            if !is_of_type || (id != 0 && id != at) || !self.sees(at) {
                continue;
            }
            // There is none in the program as it runs if nothing reads the hash's result.
            let Some(parameters) = self.switch.state().readable_crc(instance.scope) else {
                continue;
            };
            if out.is_full() {
                return Ok(Some(Cursor { id: at, place: 0 }));
            }
            out.push(Entity::ExternEntry(custom_crc::encode(instance.crc, at, &parameters)));
        }
        Ok(None)
    }

    /// The queues of a port, or of all ports whose queues were set or used.
    fn queues(&self, id: u32, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        let ports: Vec<u32> = match id {
            0 => self.switch.queue_ports().collect(),
            id => vec![port_queues::port(id)?],
        };
        for port in ports {
            let entry = port_queues::encode(self.switch, port);
            let Some(entry) = entry.filter(|e| e.extern_id >= from.id && self.sees(e.extern_id)) else {
                continue;
            };
            if out.is_full() {
                let id = entry.extern_id;
                return Ok(Some(Cursor { id, place: 0 }));
            }
            out.push(Entity::ExternEntry(entry));
        }
        Ok(None)
    }

    /// The keys that are set. Ids of instances are greater than those of custom CRCs.
    fn keys(&self, query: &pb::ExternEntry, from: Cursor, out: &mut Portion) -> Result<Progress, Refusal> {
        let (type_id, only) = (query.extern_type_id, query.extern_id);
        if only != 0 {
            extern_keys::instance(self.schema, type_id, only)?;
        }
        let index = match type_id {
            0 => None,
            _ => extern_keys::index(query.entry.as_ref())?,
        };
        let of_query = |id: u32, ty: u32| (type_id == 0 || ty == type_id) && (only == 0 || id == only);
        for (&id, keyed) in self.schema.keyed.range(from.id..) {
            if !of_query(id, keyed.type_id) || !self.sees(id) {
                continue;
            }
            let first = if id == from.id { from.place } else { 0 };
            let (first, last) = index.map_or((first, u64::MAX), |index| (index.max(first), index));
            if first > last {
                continue;
            }
            let set = &self.switch.state().extern_keys;
            for ((_, place), _) in set.range((keyed.instance, first)..=(keyed.instance, last)) {
                if out.is_full() {
                    return Ok(Some(Cursor { id, place: *place }));
                }
                out.push(Entity::ExternEntry(extern_keys::encode(id, keyed, *place)));
            }
        }
        Ok(None)
    }
}
