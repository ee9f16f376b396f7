//! Multicast groups and clone sessions.

mod changes;
mod numbers;

pub(crate) use changes::{ELEMENTS, Undo};

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{RangeBounds, RangeInclusive};
use thiserror::Error;
use weir_arch::{Exclusion, ReplicationRules};
use weir_table::PortForm;

/// Replicas that a multicast group or a clone session has at most, backups included; also nodes of
/// a group and copies of a node.
pub const MAX_REPLICAS: usize = 65_536;

/// Replicas that all multicast groups have at most, backups included, and all clone sessions; also
/// copies of all nodes.
pub const MAX_ALL_REPLICAS: usize = 1_048_576;

/// One copy to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Replica {
    /// Egress port.
    pub port: u32,
    /// Replication id, which the program sees (v1model's `egress_rid`, PSA's `instance`).
    pub rid: u32,
    /// How the port was written.
    pub form: PortForm,
}

impl Replica {
    /// A copy for this port, with this replication id.
    #[must_use]
    pub fn new(port: u32, rid: u32) -> Self {
        Replica {
            port,
            rid,
            form: PortForm::Bytes,
        }
    }
}

/// A node: a replication id and the ports that get a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Node {
    /// Replication id.
    pub rid: u32,
    /// Ports in ascending order.
    pub ports: Vec<u32>,
    /// Groups of ports, by number, that are one port: one of each group gets a copy. In ascending
    /// order.
    pub lags: Vec<u32>,
    /// Copies to make instead where the port is down: the first whose own port is up. Only of nodes
    /// with one port.
    pub backups: Vec<Replica>,
    /// How the ports were written.
    pub form: PortForm,
}

/// A copy that a multicast group makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReplica {
    /// The copy.
    pub replica: Replica,
    /// Copies to make instead while its port is down: the first whose own port is up.
    pub backups: Vec<Replica>,
}

/// A multicast group as P4Runtime has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MulticastGroup {
    /// The copies.
    pub replicas: Vec<GroupReplica>,
    /// The controller's; not looked at.
    pub note: Vec<u8>,
}

impl From<Vec<Replica>> for MulticastGroup {
    fn from(replicas: Vec<Replica>) -> Self {
        let alone = |replica| GroupReplica {
            replica,
            backups: Vec::new(),
        };
        MulticastGroup {
            replicas: replicas.into_iter().map(alone).collect(),
            note: Vec::new(),
        }
    }
}

/// What a clone session does with a clone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CloneSession {
    /// Copies to single ports.
    pub replicas: Vec<Replica>,
    /// Copies to the ports of this group, made first.
    pub group: Option<u32>,
    /// Longest clone in bytes; 0: no limit. Headers that were parsed are not cut.
    pub truncate_bytes: u32,
    /// Priority of the queue, the larger is served first; 0: as the program says.
    pub class_of_service: u8,
}

/// A request about groups or sessions was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplicationError {
    /// The number is out of range.
    #[error("{what} {found} is out of range; use {low} to {high}")]
    OutOfRange {
        /// `multicast group` or `clone session`.
        what: &'static str,
        /// The number.
        found: u32,
        /// Smallest allowed.
        low: u32,
        /// Largest allowed.
        high: u32,
    },
    /// It is not there.
    #[error("no {what} {id}; create it first")]
    NotFound {
        /// `multicast group`, `multicast node` or `clone session`.
        what: &'static str,
        /// The number.
        id: u32,
    },
    /// It is there already.
    #[error("{what} {id} exists already")]
    AlreadyExists {
        /// `multicast group` or `clone session`.
        what: &'static str,
        /// The number.
        id: u32,
    },
    /// A group is to have a node twice.
    #[error("multicast node {node} is in the group twice")]
    Twice {
        /// The node.
        node: u32,
    },
    /// There is no room for so much.
    #[error("the {what} are {limit} at most")]
    Full {
        /// What there is too much of.
        what: &'static str,
        /// The most that there may be.
        limit: usize,
    },
}

/// How much there is of what is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Held {
    /// Copies of all nodes.
    nodes: usize,
    /// Replicas of all sessions.
    sessions: usize,
    /// Sessions with a class of service.
    classes: usize,
    /// Ports of all lists of ports.
    ports: usize,
}

/// Groups, nodes and sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Replication {
    nodes: BTreeMap<u32, Node>,
    groups: BTreeMap<u32, Vec<u32>>,
    /// Notes of groups that have one.
    notes: BTreeMap<u32, Vec<u8>>,
    /// Ports that are down.
    #[serde(skip)]
    down: BTreeSet<u32>,
    sessions: BTreeMap<u32, CloneSession>,
    /// By group and node: the number with which packets exclude the node.
    exclusions: BTreeMap<(u32, u32), u32>,
    /// Lists of ports that packets exclude by number.
    port_lists: BTreeMap<u32, Vec<u32>>,
    /// Ports that are one, by number.
    lags: BTreeMap<u32, Vec<u32>>,
    next_node: u32,
    /// The numbers of the nodes.
    #[serde(skip)]
    taken: numbers::Numbers,
    /// Each node with each group that it is in: where `groups` would be searched for a node.
    #[serde(skip)]
    members: BTreeSet<(u32, u32)>,
    #[serde(skip)]
    held: Held,
    #[serde(skip)]
    rules: ReplicationRules,
}

fn check(what: &'static str, found: u32, range: &RangeInclusive<u32>) -> Result<(), ReplicationError> {
    if range.contains(&found) {
        Ok(())
    } else {
        Err(ReplicationError::OutOfRange {
            what,
            found,
            low: *range.start(),
            high: *range.end(),
        })
    }
}

impl Replication {
    /// Becomes what was kept of another one of the same program, and gives what it was. Which ports
    /// are down stays as it is.
    pub fn restore(&mut self, kept: Replication) -> Replication {
        let mut restored = Replication {
            down: self.down.clone(),
            rules: self.rules.clone(),
            ..kept
        };
        restored.index();
        std::mem::replace(self, restored)
    }

    /// No groups, and the sessions that an architecture begins with.
    #[must_use]
    pub fn new(rules: ReplicationRules) -> Self {
        let to_port = |&(session, port): &(u32, u32)| {
            let replicas = vec![Replica::new(port, 0)];
            let config = CloneSession {
                replicas,
                ..CloneSession::default()
            };
            (session, config)
        };
        let mut replication = Replication {
            sessions: rules.initial.iter().map(to_port).collect(),
            rules,
            ..Replication::default()
        };
        replication.index();
        replication
    }

    /// Adds an empty group.
    ///
    /// # Errors
    /// Its number is out of range or taken.
    pub fn create_group(&mut self, group: u32) -> Result<(), ReplicationError> {
        check("multicast group", group, &self.rules.groups)?;
        if self.groups.contains_key(&group) {
            return Err(ReplicationError::AlreadyExists {
                what: "multicast group",
                id: group,
            });
        }
        self.groups.insert(group, Vec::new());
        Ok(())
    }

    /// Removes a group; its nodes stay.
    ///
    /// # Errors
    /// There is no such group.
    pub fn delete_group(&mut self, group: u32) -> Result<(), ReplicationError> {
        let gone = self.take_group(group);
        gone.map(|_| ()).ok_or(ReplicationError::NotFound {
            what: "multicast group",
            id: group,
        })
    }

    /// Adds a node and gives its handle: 0, 1, 2, … in the order of creation.
    pub fn create_node(&mut self, rid: u32, mut ports: Vec<u32>) -> u32 {
        ports.sort_unstable();
        ports.dedup();
        self.add_node(Node {
            rid,
            ports,
            ..Node::default()
        })
    }

    /// The number with which packets exclude a node of a group.
    #[must_use]
    pub fn exclusion(&self, group: u32, node: u32) -> Option<u32> {
        self.exclusions.get(&(group, node)).copied()
    }

    /// The ports of which one gets the copy of nodes with this number.
    #[must_use]
    pub fn lag(&self, number: u32) -> Option<&[u32]> {
        self.lags.get(&number).map(Vec::as_slice)
    }

    /// All groups of ports of which one gets a copy.
    pub fn lags(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.lags_in(..)
    }

    /// Those of them whose numbers are in a range.
    pub fn lags_in(&self, numbers: impl RangeBounds<u32>) -> impl Iterator<Item = (u32, &[u32])> {
        let lags = self.lags.range(numbers);
        lags.map(|(number, ports)| (*number, ports.as_slice()))
    }

    /// All lists of ports that packets exclude.
    pub fn port_lists(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.port_lists_in(..)
    }

    /// Those of them whose numbers are in a range.
    pub fn port_lists_in(&self, numbers: impl RangeBounds<u32>) -> impl Iterator<Item = (u32, &[u32])> {
        let lists = self.port_lists.range(numbers);
        lists.map(|(number, ports)| (*number, ports.as_slice()))
    }

    /// All nodes by number.
    pub fn nodes(&self) -> impl Iterator<Item = (u32, &Node)> {
        self.nodes_in(..)
    }

    /// The nodes whose numbers are in a range.
    pub fn nodes_in(&self, handles: impl RangeBounds<u32>) -> impl Iterator<Item = (u32, &Node)> {
        self.nodes.range(handles).map(|(handle, node)| (*handle, node))
    }

    /// Gives a node other ports.
    ///
    /// # Errors
    /// There is no such node.
    pub fn update_node(&mut self, handle: u32, mut ports: Vec<u32>) -> Result<(), ReplicationError> {
        ports.sort_unstable();
        ports.dedup();
        let node = self.nodes.get(&handle).cloned().ok_or(ReplicationError::NotFound {
            what: "multicast node",
            id: handle,
        })?;
        self.put_node(handle, Node { ports, ..node });
        Ok(())
    }

    /// Removes a node from the switch and all groups.
    ///
    /// # Errors
    /// There is no such node.
    pub fn delete_node(&mut self, handle: u32) -> Result<(), ReplicationError> {
        if !self.nodes.contains_key(&handle) {
            return Err(ReplicationError::NotFound {
                what: "multicast node",
                id: handle,
            });
        }
        self.write_node(handle, None).map(drop)
    }

    /// Puts a node in a group. A node may be in several groups.
    ///
    /// # Errors
    /// There is no such group or node.
    pub fn associate(&mut self, group: u32, node: u32) -> Result<(), ReplicationError> {
        if !self.nodes.contains_key(&node) {
            return Err(ReplicationError::NotFound {
                what: "multicast node",
                id: node,
            });
        }
        let nodes = self.groups.get_mut(&group).ok_or(ReplicationError::NotFound {
            what: "multicast group",
            id: group,
        })?;
        if self.members.insert((node, group)) {
            nodes.push(node);
        }
        Ok(())
    }

    /// Packets with this exclusion number get no copies of a node in a group; `None`: all packets
    /// do.
    ///
    /// # Errors
    /// There is no such group, or the node is not in it.
    pub fn set_exclusion(&mut self, group: u32, node: u32, number: Option<u32>) -> Result<(), ReplicationError> {
        let missing = |what, id| ReplicationError::NotFound { what, id };
        if !self.groups.contains_key(&group) {
            return Err(missing("multicast group", group));
        }
        if !self.is_member(group, node) {
            return Err(missing("multicast node", node));
        }
        match number {
            Some(number) => self.exclusions.insert((group, node), number),
            None => self.exclusions.remove(&(group, node)),
        };
        Ok(())
    }

    /// How many numbers packets have to exclude ports or nodes by; 0: they exclude nothing.
    #[must_use]
    pub fn exclusions(&self) -> u32 {
        self.rules.exclusions
    }

    /// Whether packets may ask to be deflected where their queue is full.
    #[must_use]
    pub fn deflects(&self) -> bool {
        self.rules.deflects
    }

    /// Sets the list of ports that packets exclude by this number.
    pub fn set_port_list(&mut self, number: u32, ports: Vec<u32>) {
        let before = self.port_list(number).len();
        self.held.ports = self.held.ports - before + ports.len();
        if ports.is_empty() {
            self.port_lists.remove(&number);
        } else {
            self.port_lists.insert(number, ports);
        }
    }

    /// The list of ports that packets exclude by this number.
    #[must_use]
    pub fn port_list(&self, number: u32) -> &[u32] {
        self.port_lists.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Takes a node out of a group.
    ///
    /// # Errors
    /// There is no such group, or the node is not in it.
    pub fn dissociate(&mut self, group: u32, node: u32) -> Result<(), ReplicationError> {
        self.leave_group(group, &[node]).map(drop)
    }

    /// Makes a group of these replicas, as P4Runtime has them, in place of what it was. `None`
    /// removes it.
    ///
    /// # Errors
    /// The number is out of range, or there are too many replicas.
    pub fn set_group(&mut self, group: u32, config: Option<MulticastGroup>) -> Result<(), ReplicationError> {
        self.write_group(group, config).map(drop)
    }

    /// The group as P4Runtime has it, whichever ports are down. `None` if there is no such group.
    #[must_use]
    pub fn group(&self, group: u32) -> Option<MulticastGroup> {
        let nodes = self.groups.get(&group)?.iter().filter_map(|n| self.nodes.get(n));
        let of_node = |n: &Node| -> Vec<GroupReplica> {
            let of_port = |&port: &u32| GroupReplica {
                replica: Replica {
                    port,
                    rid: n.rid,
                    form: n.form,
                },
                backups: n.backups.clone(),
            };
            n.ports.iter().map(of_port).collect()
        };
        Some(MulticastGroup {
            replicas: nodes.flat_map(of_node).collect(),
            note: self.notes.get(&group).cloned().unwrap_or_default(),
        })
    }

    /// A port came up or went down: copies with backups go elsewhere or come back.
    pub(crate) fn port_changed(&mut self, port: u32, is_down: bool) {
        if is_down {
            self.down.insert(port);
        } else {
            self.down.remove(&port);
        }
    }

    /// The copies that a group makes: nodes in the order they were put in, ports ascending. A copy
    /// for a port that is down is made for the first of its backups whose port is up, else for that
    /// port, where it is dropped. `None` if there is no such group.
    #[must_use]
    pub fn replicas(&self, group: u32) -> Option<Vec<Replica>> {
        self.replicas_except(group, None)
    }

    /// The same, without those that a packet excludes.
    #[must_use]
    pub fn replicas_except(&self, group: u32, exclusion: Option<&Exclusion>) -> Option<Vec<Replica>> {
        let excludes_node = |node: u32| {
            let number = self.exclusions.get(&(group, node));
            number.is_some() && number == exclusion.map(|e| &e.node)
        };
        let excludes_port = |node: &Node, port: u32| {
            exclusion.is_some_and(|e| e.rid == node.rid && self.port_list(e.ports).contains(&port))
        };
        let nodes = self.groups.get(&group)?.iter().filter(|n| !excludes_node(**n));
        let replicas = nodes.filter_map(|n| self.nodes.get(n)).flat_map(|node| {
            let of_lags = node.lags.iter().filter_map(|lag| self.lag_port(*lag));
            let ports = node.ports.iter().copied().chain(of_lags);
            let ports = ports.filter(move |p| !excludes_port(node, *p));
            ports.map(|port| self.choose(port, node))
        });
        Some(replicas.collect())
    }

    /// The port of a group of ports that gets a copy: the first that is up, else the first.
    fn lag_port(&self, number: u32) -> Option<u32> {
        let ports = self.lags.get(&number)?;
        let up = ports.iter().find(|p| !self.down.contains(p));
        up.or(ports.first()).copied()
    }

    /// The copy of a node for a port, or its backup.
    fn choose(&self, port: u32, node: &Node) -> Replica {
        let first = Replica::new(port, node.rid);
        if !self.down.contains(&port) {
            return first;
        }
        let up = node.backups.iter().find(|b| !self.down.contains(&b.port));
        up.copied().unwrap_or(first)
    }

    /// All groups with the handles of their nodes.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.groups_in(..)
    }

    /// The groups whose numbers are in a range, with the handles of their nodes.
    pub fn groups_in(&self, ids: impl RangeBounds<u32>) -> impl Iterator<Item = (u32, &[u32])> {
        self.groups.range(ids).map(|(id, nodes)| (*id, nodes.as_slice()))
    }

    /// The handles of a group's nodes.
    #[must_use]
    pub fn group_nodes(&self, group: u32) -> Option<&[u32]> {
        self.groups.get(&group).map(Vec::as_slice)
    }

    /// Whether a node is in a group.
    #[must_use]
    pub fn is_member(&self, group: u32, node: u32) -> bool {
        self.members.contains(&(node, group))
    }

    /// The groups that a node is in.
    pub fn groups_of(&self, node: u32) -> impl Iterator<Item = u32> {
        self.members
            .range((node, 0)..=(node, u32::MAX))
            .map(|(_, group)| *group)
    }

    /// The node with this handle.
    #[must_use]
    pub fn node(&self, handle: u32) -> Option<&Node> {
        self.nodes.get(&handle)
    }

    /// Sets a clone session, or removes it.
    ///
    /// # Errors
    /// Its number is out of range, or it has too many replicas.
    pub fn set_session(&mut self, id: u32, session: Option<CloneSession>) -> Result<(), ReplicationError> {
        self.write_session(id, session).map(drop)
    }

    /// The numbers that groups may have.
    #[must_use]
    pub fn group_range(&self) -> RangeInclusive<u32> {
        self.rules.groups.clone()
    }

    /// The numbers that sessions may have.
    #[must_use]
    pub fn session_range(&self) -> RangeInclusive<u32> {
        self.rules.sessions.clone()
    }

    /// The clone session with this number.
    #[must_use]
    pub fn session(&self, id: u32) -> Option<&CloneSession> {
        self.sessions.get(&id)
    }

    /// Whether a clone session chooses the priority of its copies.
    #[must_use]
    pub fn has_classes(&self) -> bool {
        self.held.classes > 0
    }

    /// All clone sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (u32, &CloneSession)> {
        self.sessions_in(..)
    }

    /// The clone sessions whose numbers are in a range.
    pub fn sessions_in(&self, ids: impl RangeBounds<u32>) -> impl Iterator<Item = (u32, &CloneSession)> {
        self.sessions.range(ids).map(|(id, s)| (*id, s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_come_by_node_and_then_by_port() {
        let mut r = Replication::default();
        r.create_group(1).expect("new");
        let (a, b) = (r.create_node(7, vec![9, 3, 3]), r.create_node(5, vec![1]));
        assert_eq!((a, b), (0, 1));
        r.associate(1, b).expect("both there");
        r.associate(1, a).expect("both there");
        let ports: Vec<_> = r.replicas(1).expect("there").iter().map(|r| (r.rid, r.port)).collect();
        assert_eq!(ports, [(5, 1), (7, 3), (7, 9)]);
        r.delete_node(b).expect("there");
        assert_eq!(r.replicas(1).map(|r| r.len()), Some(2));
        assert_eq!(r.replicas(2), None);
    }

    #[test]
    fn packets_exclude_nodes_and_ports() {
        let mut r = Replication::default();
        r.create_group(1).expect("new");
        let (a, b) = (r.create_node(7, vec![3, 9]), r.create_node(5, vec![3, 1]));
        r.associate(1, a).expect("both there");
        r.associate(1, b).expect("both there");
        r.set_exclusion(1, b, Some(0)).expect("it is in the group");
        r.set_port_list(2, vec![3]);
        let ports = |r: &Replication, node, rid, ports| -> Vec<u32> {
            let found = r.replicas_except(1, Some(&Exclusion { node, rid, ports }));
            found.expect("there").iter().map(|r| r.port).collect()
        };
        assert_eq!(ports(&r, 1, 7, 0), [3, 9, 1, 3]);
        assert_eq!(ports(&r, 0, 7, 2), [9]);
        assert_eq!(ports(&r, 1, 5, 2), [3, 9, 1]);
        assert_eq!(r.replicas(1).map(|r| r.len()), Some(4));
        r.dissociate(1, b).expect("it is in the group");
        assert!(matches!(
            r.set_exclusion(1, b, Some(1)),
            Err(ReplicationError::NotFound { .. })
        ));
        r.associate(1, b).expect("both there");
        assert_eq!(ports(&r, 0, 0, 0), [3, 9, 1, 3]);
    }

    #[test]
    fn numbers_have_ranges() {
        let mut r = Replication::default();
        assert!(matches!(r.create_group(0), Err(ReplicationError::OutOfRange { .. })));
        assert!(matches!(
            r.set_session(0x8000, None),
            Err(ReplicationError::OutOfRange { .. })
        ));
        assert!(matches!(r.associate(1, 0), Err(ReplicationError::NotFound { .. })));
    }

    #[test]
    fn a_copy_goes_to_the_first_backup_whose_port_is_up_and_comes_back() {
        let replica = |port, rid| Replica::new(port, rid);
        let mut r = Replication::default();
        let config = MulticastGroup {
            replicas: vec![GroupReplica {
                replica: replica(1, 5),
                backups: vec![replica(2, 6), replica(3, 7)],
            }],
            note: vec![9],
        };
        r.set_group(4, Some(config.clone())).expect("in range");
        let copies = |r: &Replication| r.replicas(4).expect("there");
        assert_eq!(copies(&r), [replica(1, 5)]);
        r.port_changed(1, true);
        r.port_changed(2, true);
        assert_eq!(copies(&r), [replica(3, 7)]);
        assert_eq!(r.group(4), Some(config));
        r.port_changed(2, false);
        assert_eq!(copies(&r), [replica(2, 6)]);
        r.port_changed(1, false);
        assert_eq!(copies(&r), [replica(1, 5)]);
    }
}
