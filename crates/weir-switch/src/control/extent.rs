//! How much of what is there a change goes through, which its request does not say.

use super::{Cell, Write};
use crate::replication::ELEMENTS;
use crate::switch::Switch;
use weir_arch::Resource;
use weir_ir::ExternId;
use weir_table::{Implementation, ProfileOp, TableOp};

/// Entries that are searched for one action in the time in which one is changed.
const SEARCHED: usize = 32;

impl Switch {
    /// The existing state that a change visits besides its own data, in plain entries whose
    /// insertion costs as much.
    pub(super) fn extent(&self, write: &Write) -> usize {
        let replication = self.replication();
        match write {
            Write::Table(table, TableOp::Clear) => self.state().table(*table).map_or(0, |t| t.table.len()),
            Write::ValueSet(set, TableOp::Clear) => self.state().value_set(*set).map_or(0, weir_table::Table::len),
            Write::Profile(profile, op) => self.extent_of_profile(*profile, op),
            Write::Counter(id, Cell::All, _)
            | Write::Meter(id, Cell::All, _)
            | Write::Register(id, Cell::All, _)
            | Write::Lpf(id, Cell::All, _)
            | Write::Wred(id, Cell::All, _) => self.cells(*id) / ELEMENTS,
            Write::Group(id, _) | Write::GroupNodes(id, _) => replication.extent_of_group(*id).max(1),
            Write::Session(id, _) => replication.session(*id).map_or(0, |s| s.replicas.len()) / ELEMENTS,
            Write::Node(id, node) => 1 + replication.extent_of_node(*id, node.is_none()),
            Write::Lag(id, _) => 1 + replication.lag(*id).map_or(0, <[u32]>::len) / ELEMENTS,
            Write::PortList(id, _) => 1 + replication.port_list(*id).len() / ELEMENTS,
            Write::JoinGroup(id, nodes) => {
                let moves = nodes.iter().any(|(node, _)| replication.is_member(*id, *node));
                let length = replication.extent_of_group(*id) / ELEMENTS;
                nodes.len() + if moves { length } else { 0 }
            }
            Write::LeaveGroup(id, nodes) => match nodes.len() {
                1 => 1 + replication.extent_of_place(*id),
                many => many + replication.extent_of_group(*id) / ELEMENTS,
            },
            Write::PortMetadata(..) => 1,
            _ => 0,
        }
    }

    fn extent_of_profile(&self, id: ExternId, op: &ProfileOp) -> usize {
        let Some(profile) = self.state().profile(id) else {
            return 0;
        };
        let members = |group| profile.group(group).map_or(0, |g| g.members.len());
        match op {
            ProfileOp::InsertMember(..) | ProfileOp::ModifyMember(..) => 1,
            ProfileOp::InsertGroup(_, group) => 1 + group.members.len(),
            ProfileOp::ModifyGroup(id, group) => 1 + group.members.len() + members(*id),
            ProfileOp::DeleteMember(_) => 1 + self.users_of(id) / SEARCHED,
            ProfileOp::DeleteGroup(group) => 1 + members(*group) + self.users_of(id) / SEARCHED,
        }
    }

    /// Entries of the tables that use a profile, which are searched for a member or a group that is
    /// to go.
    fn users_of(&self, profile: ExternId) -> usize {
        let tables = self
            .program()
            .tables
            .iter()
            .filter_map(|(id, _)| self.state().table(id));
        let users = tables.filter(|t| match t.table.spec().implementation {
            Implementation::Profile(id) | Implementation::Selector(id) => id == profile,
            Implementation::Direct => false,
        });
        users.map(|t| t.table.len()).sum()
    }

    /// Cells of an array.
    fn cells(&self, id: ExternId) -> usize {
        if self.program().externs.get(id).is_none() {
            return 0;
        }
        let size = match self.state().resource(id) {
            Resource::Counter(_, cells) | Resource::DirectCounter(_, cells) => cells.size(),
            Resource::Meter(_, cells) | Resource::DirectMeter(_, cells) => cells.size(),
            Resource::Register(register) => register.cells.size(),
            Resource::Lpf(cells) => cells.size(),
            Resource::Wred(cells) => cells.size(),
            _ => 0,
        };
        usize::try_from(size).unwrap_or(usize::MAX)
    }
}
