//! Action profiles and selectors: actions that entries share, and groups of them.
//!
//! Not here: the hash by which a selector chooses a member, and the check whether table entries
//! still refer to a member or group.

use crate::check;
use crate::error::TableError;
use crate::port::WatchedPort;
use crate::spec::ActionSpec;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::{ActionCall, ActionId};

/// The fixed properties of an action profile or selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSpec {
    /// Control-plane name.
    pub name: String,
    /// Actions of the tables that use it.
    pub actions: Vec<ActionSpec>,
    /// Largest number of members; 0: no limit.
    pub size: u64,
    /// It is a selector: it can have groups.
    pub selector: bool,
    /// Largest size of a group; 0: no limit.
    pub max_group_size: u64,
    /// The size of a group is the number of its members, not the sum of their weights.
    pub counts_members: bool,
}

impl ProfileSpec {
    /// Index of an action of the program.
    #[must_use]
    pub fn action_of(&self, id: ActionId) -> Option<usize> {
        self.actions.iter().position(|a| a.id == Some(id))
    }
}

/// A member: an action and its data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Index into [`ProfileSpec::actions`], and one value per parameter.
    pub action: ActionCall,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMember {
    /// The member's id.
    pub member: u32,
    /// Relative probability of being chosen, 1 or more.
    pub weight: u32,
    /// It is not chosen while this port is down.
    pub watch: Option<WatchedPort>,
    /// Its port is down. The switch sets this; control planes write `false`.
    pub is_down: bool,
    /// The control plane has disabled it.
    pub is_off: bool,
}

impl GroupMember {
    /// A member that watches no port.
    #[must_use]
    pub fn new(member: u32, weight: u32) -> Self {
        GroupMember {
            member,
            weight,
            watch: None,
            is_down: false,
            is_off: false,
        }
    }

    /// The weight, or 0 while it cannot be chosen.
    #[must_use]
    pub fn live_weight(&self) -> u32 {
        if self.is_down || self.is_off { 0 } else { self.weight }
    }
}

/// A group of members.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Group {
    /// Its members, by id.
    pub members: Vec<GroupMember>,
    /// Largest size; 0: the profile's limit.
    pub max_size: u64,
}

impl Group {
    /// Sum of the weights.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.members.iter().map(|m| u64::from(m.weight)).sum()
    }

    /// Sum of the weights of members that can be chosen: the number of outcomes of a selector's
    /// hash.
    #[must_use]
    pub fn live_weight(&self) -> u64 {
        self.members.iter().map(|m| u64::from(m.live_weight())).sum()
    }

    /// The member at a position in `0..live_weight()`: members by id, each repeated by its weight.
    #[must_use]
    pub fn at(&self, position: u64) -> Option<u32> {
        let mut left = position;
        for m in &self.members {
            if left < u64::from(m.live_weight()) {
                return Some(m.member);
            }
            left -= u64::from(m.live_weight());
        }
        None
    }
}

/// An action profile or selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionProfile {
    spec: ProfileSpec,
    members: BTreeMap<u32, Member>,
    groups: BTreeMap<u32, Group>,
}

/// A change of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProfileOp {
    /// Adds a member.
    InsertMember(u32, Member),
    /// Gives a member another action.
    ModifyMember(u32, Member),
    /// Removes a member that no group uses.
    DeleteMember(u32),
    /// Adds a group.
    InsertGroup(u32, Group),
    /// Replaces a group's members.
    ModifyGroup(u32, Group),
    /// Removes a group.
    DeleteGroup(u32),
}

/// The undo record of a change of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileUndo {
    /// The member's previous state.
    Member(u32, Option<Member>),
    /// The group's previous state.
    Group(u32, Option<Group>),
}

impl ActionProfile {
    /// An empty profile.
    #[must_use]
    pub fn new(spec: ProfileSpec) -> Self {
        ActionProfile {
            spec,
            members: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }

    /// The fixed properties of the profile.
    #[must_use]
    pub fn spec(&self) -> &ProfileSpec {
        &self.spec
    }

    /// The member with this id.
    #[must_use]
    pub fn member(&self, id: u32) -> Option<&Member> {
        self.members.get(&id)
    }

    /// The group with this id.
    #[must_use]
    pub fn group(&self, id: u32) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// All members by id.
    pub fn members(&self) -> impl Iterator<Item = (u32, &Member)> {
        self.members.iter().map(|(id, m)| (*id, m))
    }

    /// All groups by id.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(id, g)| (*id, g))
    }

    /// Makes a change, and returns its undo record.
    ///
    /// # Errors
    /// The id is taken or unknown, the action is not the profile's, a limit is exceeded, a group
    /// names unknown members, or a member is still in a group. The caller checks whether table
    /// entries still use it.
    pub fn apply(&mut self, op: ProfileOp) -> Result<ProfileUndo, TableError> {
        match op {
            ProfileOp::InsertMember(id, member) => {
                self.absent("member", id, self.members.contains_key(&id))?;
                self.check_action(&member.action)?;
                if self.spec.size > 0 && self.members.len() as u64 >= self.spec.size {
                    return Err(self.full("members", self.spec.size));
                }
                Ok(ProfileUndo::Member(id, self.members.insert(id, member)))
            }
            ProfileOp::ModifyMember(id, member) => {
                self.present("member", id, self.members.contains_key(&id))?;
                self.check_action(&member.action)?;
                Ok(ProfileUndo::Member(id, self.members.insert(id, member)))
            }
            ProfileOp::DeleteMember(id) => {
                self.present("member", id, self.members.contains_key(&id))?;
                if let Some((group, _)) = self
                    .groups
                    .iter()
                    .find(|(_, g)| g.members.iter().any(|m| m.member == id))
                {
                    return Err(self.in_use("member", id, format!("group {group}")));
                }
                Ok(ProfileUndo::Member(id, self.members.remove(&id)))
            }
            ProfileOp::InsertGroup(id, group) => {
                self.absent("group", id, self.groups.contains_key(&id))?;
                let group = self.check_group(group)?;
                Ok(ProfileUndo::Group(id, self.groups.insert(id, group)))
            }
            ProfileOp::ModifyGroup(id, group) => {
                self.present("group", id, self.groups.contains_key(&id))?;
                let group = self.check_group(group)?;
                Ok(ProfileUndo::Group(id, self.groups.insert(id, group)))
            }
            ProfileOp::DeleteGroup(id) => {
                self.present("group", id, self.groups.contains_key(&id))?;
                Ok(ProfileUndo::Group(id, self.groups.remove(&id)))
            }
        }
    }

    /// A port came up or went down: members of groups that watch it can be chosen, or not.
    pub fn port_changed(&mut self, port: u32, is_down: bool) {
        let members = self.groups.values_mut().flat_map(|g| &mut g.members);
        for member in members.filter(|m| m.watch.is_some_and(|w| w.port == port)) {
            member.is_down = is_down;
        }
    }

    /// Whether a member can be chosen in any group; `None`: it is in no group.
    #[must_use]
    pub fn is_member_enabled(&self, member: u32) -> Option<bool> {
        let all = self.groups.values().flat_map(|g| &g.members);
        let mut occurrences = all.filter(|m| m.member == member).peekable();
        occurrences.peek()?;
        Some(occurrences.any(|m| !m.is_down))
    }

    /// Enables or disables a member in all its groups, as if its port had come up or gone down. In
    /// a group that is rewritten all members are enabled again.
    pub fn set_member_enabled(&mut self, member: u32, on: bool) {
        let members = self.groups.values_mut().flat_map(|g| &mut g.members);
        members.filter(|m| m.member == member).for_each(|m| m.is_down = !on);
    }

    /// Reverts a change. Undo records must be given in the reverse order of the changes.
    pub fn revert(&mut self, undo: ProfileUndo) {
        match undo {
            ProfileUndo::Member(id, Some(member)) => {
                self.members.insert(id, member);
            }
            ProfileUndo::Member(id, None) => {
                self.members.remove(&id);
            }
            ProfileUndo::Group(id, Some(group)) => {
                self.groups.insert(id, group);
            }
            ProfileUndo::Group(id, None) => {
                self.groups.remove(&id);
            }
        }
    }

    /// The error for a member or group that something still refers to.
    #[must_use]
    pub fn in_use(&self, what: &'static str, id: u32, user: String) -> TableError {
        TableError::InUse {
            profile: self.spec.name.clone(),
            what,
            id,
            user,
        }
    }

    /// Checks that a member or group exists.
    ///
    /// # Errors
    /// It does not.
    pub fn require(&self, what: &'static str, id: u32) -> Result<(), TableError> {
        let there = if what == "group" {
            self.groups.contains_key(&id)
        } else {
            self.members.contains_key(&id)
        };
        self.present(what, id, there)
    }

    fn absent(&self, what: &'static str, id: u32, there: bool) -> Result<(), TableError> {
        if there {
            Err(TableError::MemberExists {
                profile: self.spec.name.clone(),
                what,
                id,
            })
        } else {
            Ok(())
        }
    }

    fn present(&self, what: &'static str, id: u32, there: bool) -> Result<(), TableError> {
        if there {
            Ok(())
        } else {
            Err(TableError::MemberNotFound {
                profile: self.spec.name.clone(),
                what,
                id,
            })
        }
    }

    fn full(&self, what: &'static str, size: u64) -> TableError {
        TableError::ProfileFull {
            profile: self.spec.name.clone(),
            what,
            size,
        }
    }

    fn check_action(&self, call: &ActionCall) -> Result<(), TableError> {
        let action = self
            .spec
            .actions
            .get(call.action)
            .ok_or_else(|| TableError::UnknownAction {
                table: self.spec.name.clone(),
                found: format!("number {}", call.action),
                names: self
                    .spec
                    .actions
                    .iter()
                    .map(|a| format!("`{}`", a.name))
                    .collect::<Vec<_>>()
                    .join(", "),
            })?;
        check::arguments(&self.spec.name, action, &call.arguments)
    }

    /// Checks a group, and sorts its members by id.
    fn check_group(&self, mut group: Group) -> Result<Group, TableError> {
        let problem = |problem: String| TableError::Selector {
            name: self.spec.name.clone(),
            problem,
        };
        if !self.spec.selector {
            return Err(problem(
                "an action profile without selector has no groups; use members".to_owned(),
            ));
        }
        let mut seen = BTreeSet::new();
        for m in &group.members {
            self.require("member", m.member)?;
            if m.weight == 0 {
                return Err(problem(format!(
                    "member {} has weight 0; weights are 1 or more",
                    m.member
                )));
            }
            if !seen.insert(m.member) {
                return Err(problem(format!(
                    "member {} is in the group twice; give it a larger weight",
                    m.member
                )));
            }
        }
        let limit = if group.max_size > 0 {
            group.max_size
        } else {
            self.spec.max_group_size
        };
        if self.spec.counts_members {
            if limit > 0 && group.members.len() as u64 > limit {
                return Err(self.full("members in one group", limit));
            }
        } else if limit > 0 && group.weight() > limit {
            return Err(self.full("members (weights added up) in one group", limit));
        }
        group.members.sort_by_key(|m| m.member);
        Ok(group)
    }
}
