//! Ports, multicast groups and clone sessions.

use std::collections::{HashMap, HashSet};
use weir_stf::Directive;

/// Where the clones of a session go.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Session {
    /// A port.
    pub port: Option<u32>,
    /// A multicast group.
    pub group: Option<u32>,
}

/// Ports, multicast groups and clone sessions.
#[derive(Debug, Default)]
pub(super) struct Replication {
    /// Nodes of a group.
    groups: HashMap<u32, Vec<u32>>,
    /// Replication id and ports of nodes, in the order in which they were made.
    nodes: Vec<(u32, Vec<u32>)>,
    sessions: HashMap<u32, Session>,
    down: HashSet<u32>,
}

fn once(ports: &[u32]) -> Vec<u32> {
    let mut ports = ports.to_vec();
    ports.sort_unstable();
    ports.dedup();
    ports
}

impl Replication {
    /// Does what a directive says if it is about these; `false`: it is about something else.
    pub fn directive(&mut self, directive: &Directive) -> bool {
        match directive {
            Directive::GroupCreate { group } => drop(self.groups.insert(*group, Vec::new())),
            Directive::NodeCreate { rid, ports } => self.nodes.push((*rid, once(ports))),
            Directive::NodeUpdate { handle, ports } => {
                if let Some(node) = self.nodes.get_mut(*handle as usize) {
                    node.1 = once(ports);
                }
            }
            Directive::NodeAssociate {
                group,
                handle,
                exclusion: None,
            } => self.groups.entry(*group).or_default().push(*handle),
            Directive::MirroringAdd { session, port } => {
                let to = Session {
                    port: Some(*port),
                    group: None,
                };
                self.sessions.insert(*session, to);
            }
            Directive::MirroringAddGroup { session, group } => {
                let to = Session {
                    port: None,
                    group: Some(*group),
                };
                self.sessions.insert(*session, to);
            }
            Directive::MirroringDelete { session } => drop(self.sessions.remove(session)),
            Directive::MirroringGet { .. } => {}
            Directive::Port { port, up } => {
                if *up {
                    self.down.remove(port);
                } else {
                    self.down.insert(*port);
                }
            }
            _ => return false,
        }
        true
    }

    /// Whether packets can come in and go out at a port.
    pub fn is_up(&self, port: u32) -> bool {
        !self.down.contains(&port)
    }

    /// Copies of a group: replication id and port.
    pub fn copies(&self, group: u32) -> Vec<(u32, u32)> {
        let nodes = self.groups.get(&group).into_iter().flatten();
        let nodes = nodes.filter_map(|n| self.nodes.get(*n as usize));
        nodes
            .flat_map(|(rid, ports)| ports.iter().map(|p| (*rid, *p)))
            .collect()
    }

    /// A session.
    pub fn session(&self, session: u32) -> Option<Session> {
        self.sessions.get(&session).copied()
    }
}
