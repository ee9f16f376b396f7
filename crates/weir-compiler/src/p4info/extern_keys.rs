//! Instances that have keys, as externs of types that P4Runtime leaves to the architecture.

use super::annotations::is_hidden;
use super::symbols::{Kind, one_at_a_time};
use super::{Generator, P4InfoError};
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::target::ControlSpec;
use weir_ir::{ExternInstance, Program};
use weir_proto::extern_keys::EXTERN_TYPES;
use weir_proto::p4::config::v1 as pb;

/// Whether an instance's keys are exposed to control planes.
pub(crate) fn is_shown(control: ControlSpec, instance: &ExternInstance) -> bool {
    let is_own = control.resource(&instance.type_name).is_some();
    instance.key_count().is_some() && !is_own && !is_hidden(&instance.annotations)
}

/// The ids of extern types with keys: what their name hashes to, or the next one that is free.
pub(super) fn types<'p>(
    control: ControlSpec,
    program: &'p Program,
    errors: &mut Vec<P4InfoError>,
) -> BTreeMap<&'p str, u8> {
    let shown = program.externs.iter().filter(|(_, e)| is_shown(control, e));
    let places: BTreeMap<&str, _> = shown.map(|(_, e)| (e.type_name.as_str(), e.loc)).collect();
    let (first, last) = EXTERN_TYPES.into_inner();
    let count = u32::from(last - first) + 1;
    let mut taken = BTreeSet::new();
    let mut ids = BTreeMap::new();
    for (name, loc) in places {
        let hash = one_at_a_time(name.as_bytes()) % count;
        let mut candidates = (0..count).map(|i| first + ((hash + i) % count) as u8);
        match candidates.find(|id| taken.insert(*id)) {
            Some(id) => {
                ids.insert(name, id);
            }
            None => errors.push(P4InfoError::TooManyExternTypes { limit: count, loc }),
        }
    }
    ids
}

impl Generator<'_> {
    /// An extern type for each that has keys, with its instances.
    pub(super) fn extern_keys(&mut self) {
        // Whoever numbered the instances has reported the errors.
        for (type_name, id) in types(self.control, self.program, &mut Vec::new()) {
            let (program, control) = (self.program, self.control);
            let all = program.externs.iter().map(|(_, e)| e);
            let of_type = all.filter(|e| e.type_name == type_name && is_shown(control, e));
            let instances = of_type.map(|instance| pb::ExternInstance {
                preamble: Some(self.preamble(Kind::Extern(id), &instance.name, &instance.annotations)),
                info: None,
            });
            let instances = instances.collect();
            self.info.externs.push(pb::Extern {
                extern_type_id: id.into(),
                extern_type_name: type_name.to_owned(),
                instances,
            });
        }
    }
}
