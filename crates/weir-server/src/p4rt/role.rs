//! The permissions of a role (specification, section "Role Config"): `weir.v1.RoleConfig`.

use super::refusal::Refusal;
use crate::decoding::GROUP_REFUSAL;
use prost::Message;
use std::collections::BTreeSet;
use weir_proto::budget::{self, Excess};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::prost_types::Any;
use weir_proto::weir::v1::{RoleConfig, role_config::Filter};

/// The name of the configuration's type.
pub const TYPE_NAME: &str = "weir.v1.RoleConfig";

/// Ids and filters, with their fields, of a configuration: it is read where it comes in.
const MOST_FIELDS: usize = 1 << 14;

/// Bytes of a configuration, which is kept as it came, too: all ids that it may have take half of
/// them.
const MOST_BYTES: usize = 128 << 10;

/// The permissions of a role.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Scope {
    /// Everything.
    #[default]
    Everything,
    /// The listed objects.
    Listed(Box<Listed>),
}

/// The permissions of a role with a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    ids: BTreeSet<u32>,
    /// All but the ids.
    config: RoleConfig,
}

impl Scope {
    /// The scope that a configuration describes.
    ///
    /// # Errors
    /// It is no configuration that weir understands.
    pub fn decode(config: Option<&Any>) -> Result<Self, Refusal> {
        let Some(config) = config else {
            return Ok(Scope::Everything);
        };
        let name = config.type_url.rsplit('/').next().unwrap_or("");
        if name != TYPE_NAME {
            return Err(Refusal::malformed(format!(
                "role configurations are of the type {TYPE_NAME}, this one is of `{name}`"
            )));
        }
        budget::fields::<RoleConfig>(&config.value, MOST_FIELDS).map_err(|excess| match excess {
            Excess::Fields => Refusal::exhausted(format!(
                "the role's config has more than {MOST_FIELDS} fields: ids, and filters with what they have"
            )),
            Excess::Group => Refusal::malformed(GROUP_REFUSAL),
        })?;
        let bytes = config.type_url.len() + config.value.len();
        if bytes > MOST_BYTES {
            return Err(Refusal::exhausted(format!(
                "the role's config has {bytes} bytes; at most {MOST_BYTES} are taken"
            )));
        }
        let mut config = RoleConfig::decode(config.value.as_slice())
            .map_err(|e| Refusal::malformed(format!("the role's config is no {TYPE_NAME}: {e}")))?;
        let ids = std::mem::take(&mut config.ids).into_iter().collect();
        Ok(Scope::Listed(Box::new(Listed { ids, config })))
    }

    /// Whether an object of P4Info belongs to the role.
    #[must_use]
    pub fn has(&self, id: u32) -> bool {
        match self {
            Scope::Everything => true,
            Scope::Listed(listed) => listed.ids.contains(&id),
        }
    }

    /// Whether the role may write an entity.
    ///
    /// # Errors
    /// It may not.
    pub fn check_write(&self, entity: &pb::Entity) -> Result<(), Refusal> {
        let Scope::Listed(listed) = self else { return Ok(()) };
        let table = |entry: &Option<pb::TableEntry>| entry.as_ref().map_or(0, |e| e.table_id);
        let id = match &entity.entity {
            Some(Entity::TableEntry(e)) => e.table_id,
            Some(Entity::ActionProfileMember(e)) => e.action_profile_id,
            Some(Entity::ActionProfileGroup(e)) => e.action_profile_id,
            Some(Entity::MeterEntry(e)) => e.meter_id,
            Some(Entity::DirectMeterEntry(e)) => table(&e.table_entry),
            Some(Entity::CounterEntry(e)) => e.counter_id,
            Some(Entity::DirectCounterEntry(e)) => table(&e.table_entry),
            Some(Entity::ValueSetEntry(e)) => e.value_set_id,
            Some(Entity::RegisterEntry(e)) => e.register_id,
            Some(Entity::DigestEntry(e)) => e.digest_id,
            Some(Entity::ExternEntry(e)) => e.extern_id,
            Some(Entity::PacketReplicationEngineEntry(_)) if listed.config.replication => return Ok(()),
            Some(Entity::PacketReplicationEngineEntry(_)) => {
                return Err(Refusal::forbidden(
                    "the role may not write multicast groups and clone sessions",
                ));
            }
            // Requests without an entity are refused elsewhere.
            None => return Ok(()),
        };
        match listed.ids.contains(&id) {
            true => Ok(()),
            false => Err(Refusal::forbidden(format!("the object {id:#x} is outside of the role"))),
        }
    }

    /// Whether the role may load programs.
    ///
    /// # Errors
    /// It may not.
    pub fn check_pipeline(&self) -> Result<(), Refusal> {
        match self {
            Scope::Listed(listed) if !listed.config.pipeline => {
                Err(Refusal::forbidden("the role may not load programs"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the role is sent this packet.
    #[must_use]
    pub fn hears(&self, packet: &pb::PacketIn) -> bool {
        match self {
            Scope::Everything => true,
            Scope::Listed(l) => l.config.packet_in && admits(&l.config.packet_in_filters, &packet.metadata),
        }
    }

    /// Whether the role may send this packet.
    ///
    /// # Errors
    /// It may not.
    pub fn check_packet(&self, packet: &pb::PacketOut) -> Result<(), Refusal> {
        match self {
            Scope::Listed(l) if !l.config.packet_out || !admits(&l.config.packet_out_filters, &packet.metadata) => {
                Err(Refusal::forbidden("the role may not send this packet"))
            }
            _ => Ok(()),
        }
    }
}

fn admits(filters: &[Filter], metadata: &[pb::PacketMetadata]) -> bool {
    let shortest = |bytes: &[u8]| bytes.iter().copied().skip_while(|b| *b == 0).collect::<Vec<u8>>();
    let fits = |filter: &Filter, field: &pb::PacketMetadata| {
        field.metadata_id == filter.metadata_id && shortest(&field.value) == shortest(&filter.value)
    };
    filters
        .iter()
        .all(|filter| metadata.iter().any(|field| fits(filter, field)))
}
