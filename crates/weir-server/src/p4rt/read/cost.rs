//! The cost of entities that are read, in plain entries: packets wait while entities are made, and
//! entities take memory until they are sent.

use super::Entity;
use crate::reading::cost_of_bytes;
use weir_proto::p4::v1 as pb;

/// The cost of an entity, at least one.
pub(super) fn of(entity: &Entity) -> usize {
    use pb::packet_replication_engine_entry::Type;
    1 + match entity {
        Entity::TableEntry(entry) => cost_of_bytes(entry.metadata.len()) + one_shot(entry),
        Entity::ActionProfileGroup(group) => group.members.len(),
        Entity::ValueSetEntry(set) => set.members.len(),
        Entity::PacketReplicationEngineEntry(entry) => match &entry.r#type {
            Some(Type::MulticastGroupEntry(group)) => {
                let backups = group.replicas.iter().map(|r| r.backup_replicas.len());
                group.replicas.len() + backups.sum::<usize>() + cost_of_bytes(group.metadata.len())
            }
            Some(Type::CloneSessionEntry(session)) => session.replicas.len(),
            None => 0,
        },
        _ => 0,
    }
}

/// Actions of an entry that has a set of its own.
fn one_shot(entry: &pb::TableEntry) -> usize {
    use pb::table_action::Type;
    match entry.action.as_ref().and_then(|a| a.r#type.as_ref()) {
        Some(Type::ActionProfileActionSet(set)) => set.action_profile_actions.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_costs_what_its_elements_would() {
        use pb::packet_replication_engine_entry::Type;
        let replication =
            |ty| Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry { r#type: Some(ty) });
        let replica = pb::Replica {
            backup_replicas: vec![pb::BackupReplica::default(); 2],
            ..pb::Replica::default()
        };
        let group = pb::MulticastGroupEntry {
            replicas: vec![replica; 5],
            metadata: vec![0; 640],
            ..pb::MulticastGroupEntry::default()
        };
        let session = pb::CloneSessionEntry {
            replicas: vec![pb::Replica::default(); 3],
            ..pb::CloneSessionEntry::default()
        };
        let set = pb::ActionProfileActionSet {
            action_profile_actions: vec![pb::ActionProfileAction::default(); 8],
            ..pb::ActionProfileActionSet::default()
        };
        let entry = pb::TableEntry {
            action: Some(pb::TableAction {
                r#type: Some(pb::table_action::Type::ActionProfileActionSet(set)),
            }),
            metadata: vec![0; 64],
            ..pb::TableEntry::default()
        };
        let members = pb::ActionProfileGroup {
            members: vec![pb::action_profile_group::Member::default(); 7],
            ..pb::ActionProfileGroup::default()
        };
        let costs = [
            (replication(Type::MulticastGroupEntry(group)), 1 + 5 + 10 + 10),
            (replication(Type::CloneSessionEntry(session)), 1 + 3),
            (Entity::TableEntry(entry), 1 + 8 + 1),
            (Entity::ActionProfileGroup(members), 1 + 7),
            (Entity::TableEntry(pb::TableEntry::default()), 1),
            (Entity::CounterEntry(pb::CounterEntry::default()), 1),
        ];
        for (entity, cost) in costs {
            assert_eq!(of(&entity), cost, "{entity:?}");
        }
    }
}
