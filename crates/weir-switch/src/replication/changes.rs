//! Changes of groups, nodes and sessions, and how each is taken back.
//!
//! A change costs what it is about: what replaces and is replaced, not what else there is. The same
//! is true of its [`Undo`].

use super::{
    CloneSession, GroupReplica, MAX_ALL_REPLICAS, MAX_REPLICAS, MulticastGroup, Node, Replication, ReplicationError,
    check,
};

/// How a change is taken back. It has what the change replaced, and is used on what the change
/// left.
#[derive(Debug)]
pub(crate) enum Undo {
    /// A group of replicas: what it was, the nodes that went with it, and the number that the next
    /// node was to have.
    Group(u32, Option<Former>, Vec<(u32, Node)>, u32),
    /// The nodes of a group were replaced.
    GroupNodes(u32, Option<Former>),
    /// So many nodes were put at the end of a group, after these were taken out of it.
    Joined(u32, usize, Vec<Place>),
    /// Nodes were taken out of a group.
    Left(u32, Vec<Place>),
    /// A node, with its places in groups if it left them.
    Node(u32, Option<Node>, Vec<(u32, Place)>),
    /// A clone session.
    Session(u32, Option<CloneSession>),
    /// Ports that are one.
    Lag(u32, Option<Vec<u32>>),
    /// Ports that packets exclude.
    PortList(u32, Vec<u32>),
    /// Everything.
    All(Box<Replication>),
}

/// A group that was.
#[derive(Debug)]
pub(crate) struct Former {
    nodes: Vec<u32>,
    /// Nodes with the numbers with which packets exclude them.
    exclusions: Vec<(u32, u32)>,
    note: Vec<u8>,
}

/// Where a node was in a group.
#[derive(Debug)]
pub(crate) struct Place {
    at: usize,
    node: u32,
    /// The number with which packets excluded it.
    exclusion: Option<u32>,
}

/// Elements of a list that are copied in the time of an entry.
pub(crate) const ELEMENTS: usize = 64;

/// Those that are looked at for one.
const SEARCHED: usize = 1024;

/// Copies that a node makes, and at least 1, as it takes memory.
fn weight(node: &Node) -> usize {
    (node.ports.len() + node.lags.len() + node.backups.len()).max(1)
}

fn check_room(what: &'static str, found: usize, limit: usize) -> Result<(), ReplicationError> {
    if found <= limit {
        Ok(())
    } else {
        Err(ReplicationError::Full { what, limit })
    }
}

/// As much of one list, and in all where `others` hold as much.
fn check_list(one: &'static str, all: &'static str, length: usize, others: usize) -> Result<(), ReplicationError> {
    check_room(one, length, MAX_REPLICAS)?;
    check_room(all, others + length, MAX_ALL_REPLICAS)
}

/// In ascending order; none may be there twice.
fn ordered(nodes: impl Iterator<Item = u32>) -> Result<Vec<u32>, ReplicationError> {
    let mut nodes: Vec<u32> = nodes.collect();
    nodes.sort_unstable();
    match nodes.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ReplicationError::Twice { node: pair[0] }),
        None => Ok(nodes),
    }
}

impl Replication {
    /// Makes a group of these replicas, as P4Runtime has them, in place of what it was. `None`
    /// removes it.
    ///
    /// # Errors
    /// The number is out of range, or there are too many replicas.
    pub(crate) fn write_group(&mut self, id: u32, config: Option<MulticastGroup>) -> Result<Undo, ReplicationError> {
        check("multicast group", id, &self.rules.groups)?;
        let replicas = config.iter().flat_map(|c| &c.replicas);
        let length = replicas.map(|r| 1 + r.backups.len()).sum();
        check_room("replicas of a multicast group, backups included", length, MAX_REPLICAS)?;
        let was = self.take_group(id);
        let mut gone = Vec::new();
        for node in was.iter().flat_map(|w| &w.nodes) {
            if self.groups_of(*node).next().is_none() {
                gone.extend(self.take_node(*node).map(|was| (*node, was)));
            }
        }
        let undo = Undo::Group(id, was, gone, self.next_node);
        if let Some(config) = config {
            let held = self.held.nodes.max(self.members.len());
            let what = "replicas of all multicast groups, backups included";
            if let Err(full) = check_room(what, held + length, MAX_ALL_REPLICAS) {
                self.take_back(undo);
                return Err(full);
            }
            let mut nodes = Vec::with_capacity(config.replicas.len());
            for GroupReplica { replica, backups } in config.replicas {
                nodes.push(self.add_node(Node {
                    rid: replica.rid,
                    ports: vec![replica.port],
                    backups,
                    form: replica.form,
                    ..Node::default()
                }));
            }
            let group = Former {
                nodes,
                exclusions: Vec::new(),
                note: config.note,
            };
            self.put_group(id, group);
        }
        Ok(undo)
    }

    /// Sets which nodes a group has, each with the number with which packets exclude it; `None`
    /// removes the group. Nodes that it had stay.
    ///
    /// # Errors
    /// The number is out of range, there is no such node, one is there twice, or there are too
    /// many.
    pub(crate) fn write_group_nodes(
        &mut self,
        id: u32,
        nodes: Option<Vec<(u32, Option<u32>)>>,
    ) -> Result<Undo, ReplicationError> {
        check("multicast group", id, &self.rules.groups)?;
        let Some(nodes) = nodes else {
            return Ok(Undo::GroupNodes(id, self.take_group(id)));
        };
        self.check_nodes(&nodes)?;
        ordered(nodes.iter().map(|(node, _)| *node))?;
        let before = self.groups.get(&id).map_or(0, Vec::len);
        self.check_members(nodes.len(), self.members.len().saturating_sub(before))?;
        let was = self.take_group(id);
        let exclusions = nodes.iter().filter_map(|(node, number)| Some((*node, (*number)?)));
        let group = Former {
            exclusions: exclusions.collect(),
            nodes: nodes.into_iter().map(|(node, _)| node).collect(),
            note: Vec::new(),
        };
        self.put_group(id, group);
        Ok(Undo::GroupNodes(id, was))
    }

    /// Puts nodes at the end of a group, each with the number with which packets exclude it. Those
    /// that are in it already move there.
    ///
    /// # Errors
    /// There is no such group or node, one is given twice, or there are too many.
    pub(crate) fn join_group(&mut self, id: u32, nodes: Vec<(u32, Option<u32>)>) -> Result<Undo, ReplicationError> {
        self.check_nodes(&nodes)?;
        let mut there = ordered(nodes.iter().map(|(node, _)| *node))?;
        there.retain(|node| self.is_member(id, *node));
        let length = self.groups.get(&id).ok_or(no_group(id))?.len() - there.len();
        self.check_members(length + nodes.len(), self.members.len() - there.len() - length)?;
        let was = self.take_out(id, &there);
        let count = nodes.len();
        if let Some(list) = self.groups.get_mut(&id) {
            list.extend(nodes.iter().map(|(node, _)| *node));
        }
        for (node, number) in nodes {
            self.members.insert((node, id));
            self.exclusions.extend(number.map(|number| ((id, node), number)));
        }
        Ok(Undo::Joined(id, count, was))
    }

    /// Takes nodes out of a group.
    ///
    /// # Errors
    /// There is no such group, a node is not in it, or one is given twice.
    pub(crate) fn leave_group(&mut self, id: u32, nodes: &[u32]) -> Result<Undo, ReplicationError> {
        if !self.groups.contains_key(&id) {
            return Err(no_group(id));
        }
        if let Some(node) = nodes.iter().find(|node| !self.is_member(id, **node)) {
            return Err(no_node(*node));
        }
        let nodes = ordered(nodes.iter().copied())?;
        Ok(Undo::Left(id, self.take_out(id, &nodes)))
    }

    /// Sets the node with a number of the control plane's choice; `None` removes it, also from its
    /// groups.
    ///
    /// # Errors
    /// It makes too many copies.
    pub(crate) fn write_node(&mut self, handle: u32, node: Option<Node>) -> Result<Undo, ReplicationError> {
        let Some(mut node) = node else {
            let groups: Vec<u32> = self.groups_of(handle).collect();
            let mut places = Vec::with_capacity(groups.len());
            for group in groups {
                let place = self.take_out(group, &[handle]);
                places.extend(place.into_iter().map(|place| (group, place)));
            }
            return Ok(Undo::Node(handle, self.take_node(handle), places));
        };
        for numbers in [&mut node.ports, &mut node.lags] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        let before = self.nodes.get(&handle).map_or(0, weight);
        check_list(
            "copies of a multicast node",
            "copies of all multicast nodes",
            weight(&node),
            self.held.nodes - before,
        )?;
        Ok(Undo::Node(handle, self.put_node(handle, node), Vec::new()))
    }

    /// Sets a clone session, or removes it.
    ///
    /// # Errors
    /// Its number is out of range, or it has too many replicas.
    pub(crate) fn write_session(&mut self, id: u32, session: Option<CloneSession>) -> Result<Undo, ReplicationError> {
        check("clone session", id, &self.rules.sessions)?;
        let length = |s: &CloneSession| s.replicas.len();
        let before = self.sessions.get(&id).map_or(0, length);
        let after = session.as_ref().map_or(0, length);
        let others = self.held.sessions - before;
        check_list(
            "replicas of a clone session",
            "replicas of all clone sessions",
            after,
            others,
        )?;
        Ok(Undo::Session(id, self.put_session(id, session)))
    }

    /// Sets or removes a clone session without checks; returns the one before.
    fn put_session(&mut self, id: u32, session: Option<CloneSession>) -> Option<CloneSession> {
        let is_classed = |s: &CloneSession| s.class_of_service > 0;
        self.held.sessions += session.as_ref().map_or(0, |s| s.replicas.len());
        self.held.classes += usize::from(session.as_ref().is_some_and(is_classed));
        let was = match session {
            Some(session) => self.sessions.insert(id, session),
            None => self.sessions.remove(&id),
        };
        self.held.sessions -= was.as_ref().map_or(0, |s| s.replicas.len());
        self.held.classes -= usize::from(was.as_ref().is_some_and(is_classed));
        was
    }

    /// Sets the ports of which one gets the copy of nodes with this number; `None`: there is no
    /// such number.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn write_lag(&mut self, number: u32, ports: Option<Vec<u32>>) -> Result<Undo, ReplicationError> {
        let before = self.lags.get(&number).map_or(0, Vec::len);
        self.check_ports(before, ports.as_ref().map_or(0, Vec::len))?;
        let was = match ports {
            Some(ports) => self.lags.insert(number, ports),
            None => self.lags.remove(&number),
        };
        Ok(Undo::Lag(number, was))
    }

    /// Sets the list of ports that packets exclude by this number.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn write_port_list(&mut self, number: u32, ports: Vec<u32>) -> Result<Undo, ReplicationError> {
        let before = self.port_list(number).len();
        self.check_ports(before, ports.len())?;
        let was = if ports.is_empty() {
            self.port_lists.remove(&number)
        } else {
            self.port_lists.insert(number, ports)
        };
        Ok(Undo::PortList(number, was.unwrap_or_default()))
    }

    /// What taking a node out of everything, or giving it another state, goes through besides the
    /// new one, in [plain entries](crate::Transaction::bound).
    pub(crate) fn extent_of_node(&self, handle: u32, is_removed: bool) -> usize {
        let own = self.nodes.get(&handle).map_or(0, weight) / ELEMENTS;
        match is_removed {
            true => {
                own + self
                    .groups_of(handle)
                    .map(|group| self.extent_of_place(group))
                    .sum::<usize>()
            }
            false => own,
        }
    }

    /// The same of a search for one node of a group.
    pub(crate) fn extent_of_place(&self, group: u32) -> usize {
        self.groups.get(&group).map_or(0, Vec::len) / SEARCHED
    }

    /// The same of a group that becomes another one, or none.
    pub(crate) fn extent_of_group(&self, group: u32) -> usize {
        self.groups.get(&group).map_or(0, Vec::len)
    }

    /// Takes the last change back that was not taken back yet.
    pub(crate) fn take_back(&mut self, undo: Undo) {
        match undo {
            Undo::Group(id, was, nodes, next_node) => {
                for node in self.take_group(id).into_iter().flat_map(|made| made.nodes) {
                    self.take_node(node);
                }
                self.next_node = next_node;
                for (handle, node) in nodes {
                    self.put_node(handle, node);
                }
                self.put_back(id, was);
            }
            Undo::GroupNodes(id, was) => {
                self.take_group(id);
                self.put_back(id, was);
            }
            Undo::Joined(id, count, was) => {
                let list = self.groups.get_mut(&id);
                let joined = list.map(|list| list.split_off(list.len().saturating_sub(count)));
                for node in joined.unwrap_or_default() {
                    self.members.remove(&(node, id));
                    self.exclusions.remove(&(id, node));
                }
                self.put_in(id, was);
            }
            Undo::Left(id, was) => self.put_in(id, was),
            Undo::Node(handle, was, places) => {
                match was {
                    Some(node) => self.put_node(handle, node),
                    None => self.take_node(handle),
                };
                for (group, place) in places {
                    self.put_in(group, vec![place]);
                }
            }
            Undo::Session(id, was) => drop(self.put_session(id, was)),
            // What was there before had room.
            Undo::Lag(number, was) => drop(self.write_lag(number, was)),
            Undo::PortList(number, was) => drop(self.write_port_list(number, was)),
            Undo::All(was) => drop(self.restore(*was)),
        }
    }

    /// Adds a node with the next free number.
    pub(super) fn add_node(&mut self, node: Node) -> u32 {
        let handle = self.taken.next_free(self.next_node);
        self.next_node = handle.wrapping_add(1);
        self.put_node(handle, node);
        handle
    }

    /// Sets a node, and gives what it was.
    pub(super) fn put_node(&mut self, handle: u32, node: Node) -> Option<Node> {
        self.held.nodes += weight(&node);
        let was = self.nodes.insert(handle, node);
        if was.is_none() {
            self.taken.insert(handle);
        }
        self.held.nodes -= was.as_ref().map_or(0, weight);
        was
    }

    /// Removes a node that is in no group.
    fn take_node(&mut self, handle: u32) -> Option<Node> {
        let was = self.nodes.remove(&handle)?;
        self.taken.remove(handle);
        self.held.nodes -= weight(&was);
        Some(was)
    }

    /// Removes a group; its nodes stay.
    pub(super) fn take_group(&mut self, id: u32) -> Option<Former> {
        let nodes = self.groups.remove(&id)?;
        for node in &nodes {
            self.members.remove(&(*node, id));
        }
        let exclusions = self.exclusions.range((id, 0)..=(id, u32::MAX));
        let exclusions: Vec<(u32, u32)> = exclusions.map(|((_, node), number)| (*node, *number)).collect();
        for (node, _) in &exclusions {
            self.exclusions.remove(&(id, *node));
        }
        let note = self.notes.remove(&id).unwrap_or_default();
        Some(Former {
            nodes,
            exclusions,
            note,
        })
    }

    /// Makes a group that is not there.
    fn put_group(&mut self, id: u32, group: Former) {
        self.members.extend(group.nodes.iter().map(|node| (*node, id)));
        let exclusions = group.exclusions.into_iter();
        self.exclusions
            .extend(exclusions.map(|(node, number)| ((id, node), number)));
        if !group.note.is_empty() {
            self.notes.insert(id, group.note);
        }
        self.groups.insert(id, group.nodes);
    }

    fn put_back(&mut self, id: u32, was: Option<Former>) {
        if let Some(was) = was {
            self.put_group(id, was);
        }
    }

    /// Takes nodes, in ascending order, out of a group. Where they were, the first place first.
    pub(super) fn take_out(&mut self, id: u32, nodes: &[u32]) -> Vec<Place> {
        let mut places = Vec::with_capacity(nodes.len());
        let Some(list) = self.groups.get_mut(&id) else {
            return places;
        };
        let place = |at, node| Place {
            at,
            node,
            exclusion: None,
        };
        match nodes {
            [] => {}
            // The most frequent case, in which a search for the number is much faster.
            [node] => {
                if let Some(at) = list.iter().position(|n| n == node) {
                    list.remove(at);
                    places.push(place(at, *node));
                }
            }
            _ => {
                let mut at = 0;
                list.retain(|node| {
                    let stays = nodes.binary_search(node).is_err();
                    if !stays {
                        places.push(place(at, *node));
                    }
                    at += 1;
                    stays
                });
            }
        }
        for place in &mut places {
            self.members.remove(&(place.node, id));
            place.exclusion = self.exclusions.remove(&(id, place.node));
        }
        places
    }

    /// Takes [`Replication::take_out`] back.
    fn put_in(&mut self, id: u32, places: Vec<Place>) {
        let Some(list) = self.groups.get_mut(&id) else { return };
        if let [place] = places.as_slice() {
            list.insert(place.at.min(list.len()), place.node);
        } else if !places.is_empty() {
            let mut all = Vec::with_capacity(list.len() + places.len());
            let mut others = std::mem::take(list).into_iter();
            for place in &places {
                let before = place.at.saturating_sub(all.len());
                all.extend(others.by_ref().take(before));
                all.push(place.node);
            }
            all.extend(others);
            *list = all;
        }
        for place in places {
            self.members.insert((place.node, id));
            let number = place.exclusion.map(|number| ((id, place.node), number));
            self.exclusions.extend(number);
        }
    }

    fn check_nodes(&self, nodes: &[(u32, Option<u32>)]) -> Result<(), ReplicationError> {
        match nodes.iter().find(|(node, _)| !self.nodes.contains_key(node)) {
            Some((node, _)) => Err(no_node(*node)),
            None => Ok(()),
        }
    }

    fn check_members(&self, length: usize, others: usize) -> Result<(), ReplicationError> {
        check_list(
            "nodes of a multicast group",
            "nodes of all multicast groups",
            length,
            others,
        )
    }

    /// Checks a list of ports that replaces one, and counts it.
    fn check_ports(&mut self, before: usize, after: usize) -> Result<(), ReplicationError> {
        let others = self.held.ports - before;
        check_list("ports of a list", "ports of all lists", after, others)?;
        self.held.ports = others + after;
        Ok(())
    }

    /// Finds what is not kept, as it follows from the rest. A node is in a group once.
    pub(super) fn index(&mut self) {
        self.members.clear();
        for (id, nodes) in &mut self.groups {
            nodes.retain(|node| self.members.insert((*node, *id)));
        }
        self.taken = self.nodes.keys().copied().collect();
        self.held = super::Held {
            nodes: self.nodes.values().map(weight).sum(),
            sessions: self.sessions.values().map(|s| s.replicas.len()).sum(),
            classes: self.sessions.values().filter(|s| s.class_of_service > 0).count(),
            ports: self.lags.values().chain(self.port_lists.values()).map(Vec::len).sum(),
        };
    }
}

fn no_group(id: u32) -> ReplicationError {
    ReplicationError::NotFound {
        what: "multicast group",
        id,
    }
}

fn no_node(id: u32) -> ReplicationError {
    ReplicationError::NotFound {
        what: "multicast node",
        id,
    }
}
