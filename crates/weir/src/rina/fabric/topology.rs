//! The nodes of a fabric and the links between them.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use weir_rina::arp::MacAddress;

/// The most nodes of a fabric: each is a process or two of this machine.
const MAX_NODES: usize = 250;
/// The most ports of a node.
const MAX_PORTS: usize = 60;

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A switch forwards, its IPC process controls it.
    Router,
    /// Applications use its IPC process; it has one link.
    Host,
    /// No process: the owner of the fabric uses the end of its link.
    Socket,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique in the fabric.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// Its row in pictures, from the top: spines 0, leaves 1, hosts 2.
    pub row: usize,
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// Index of the node.
    pub node: usize,
    /// Number of its port, from 1 on.
    pub port: u32,
}

/// Nodes and links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The DIF that all nodes belong to.
    pub dif: String,
    /// The nodes; the first one bootstraps the DIF.
    pub nodes: Vec<Node>,
    /// The links.
    pub links: Vec<[End; 2]>,
}

/// A topology as a file has it: either `[leaf_spine]`, or lists of names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "default_dif")]
    dif: String,
    leaf_spine: Option<LeafSpine>,
    #[serde(default)]
    routers: Vec<String>,
    #[serde(default)]
    hosts: Vec<String>,
    /// Pairs of names.
    #[serde(default)]
    links: Vec<[String; 2]>,
}

/// Every leaf is connected to every spine, and has hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Number of spines.
    pub spines: usize,
    /// Number of leaves.
    pub leaves: usize,
    /// Hosts of each leaf.
    pub hosts_per_leaf: usize,
}

fn default_dif() -> String {
    "fabric".to_owned()
}

impl Topology {
    /// Reads a topology in TOML.
    ///
    /// # Errors
    /// It is not TOML, has unknown fields, or is no fabric: names are not unique, a link has no
    /// such node, a host has several links, or nodes are not connected.
    pub fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text)?;
        match file.leaf_spine {
            Some(shape) => {
                let is_alone = file.routers.is_empty() && file.hosts.is_empty() && file.links.is_empty();
                ensure!(
                    is_alone,
                    "expected either [leaf_spine] or routers, hosts and links, found both"
                );
                Topology::leaf_spine(file.dif, shape)
            }
            None => Topology::listed(file),
        }
    }

    /// A leaf-spine fabric.
    ///
    /// # Errors
    /// It has no spine or no leaf, or too many nodes, or a node has too many links.
    pub fn leaf_spine(dif: String, shape: LeafSpine) -> Result<Self> {
        let LeafSpine {
            spines,
            leaves,
            hosts_per_leaf,
        } = shape;
        ensure!(
            spines > 0 && leaves > 0,
            "leaf_spine: expected at least one spine and one leaf"
        );
        let hosts = leaves.saturating_mul(hosts_per_leaf);
        let count = spines.saturating_add(leaves).saturating_add(hosts);
        ensure!(
            count <= MAX_NODES,
            "leaf_spine: expected at most {MAX_NODES} nodes, found {count}"
        );
        let node = |name: String, role, row| Node { name, role, row };
        let mut nodes: Vec<Node> = (1..=spines)
            .map(|n| node(format!("spine{n}"), Role::Router, 0))
            .collect();
        nodes.extend((1..=leaves).map(|n| node(format!("leaf{n}"), Role::Router, 1)));
        nodes.extend((1..=hosts).map(|n| node(format!("host{n}"), Role::Host, 2)));
        let leaf = |n: usize| spines + n;
        let up = (0..leaves).flat_map(|n| (0..spines).map(move |spine| (leaf(n), spine)));
        let down = (0..hosts).map(|n| (spines + leaves + n, leaf(n / hosts_per_leaf.max(1))));
        let links = with_ports(up.chain(down), nodes.len());
        Topology { dif, nodes, links }.checked()
    }

    fn listed(file: File) -> Result<Self> {
        ensure!(
            !file.routers.is_empty(),
            "expected [leaf_spine], or at least one name in `routers`"
        );
        let node = |(name, role, row): (String, Role, usize)| Node { name, role, row };
        let routers = file.routers.into_iter().map(|name| (name, Role::Router, 1));
        let hosts = file.hosts.into_iter().map(|name| (name, Role::Host, 2));
        let nodes: Vec<Node> = routers.chain(hosts).map(node).collect();
        let find = |name: &String| {
            let found = nodes.iter().position(|node| node.name == *name);
            found.with_context(|| format!("links: there is no router or host `{name}`"))
        };
        let pairs: Vec<(usize, usize)> = file
            .links
            .iter()
            .map(|[a, b]| Ok((find(a)?, find(b)?)))
            .collect::<Result<_>>()?;
        let links = with_ports(pairs.into_iter(), nodes.len());
        Topology {
            dif: file.dif,
            nodes,
            links,
        }
        .checked()
    }

    fn checked(self) -> Result<Self> {
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<()> {
        ensure!(is_name(&self.dif), "dif: {NAME}, found `{}`", self.dif);
        let count = self.nodes.len();
        ensure!(count <= MAX_NODES, "expected at most {MAX_NODES} nodes, found {count}");
        let mut names = BTreeSet::new();
        for node in &self.nodes {
            ensure!(is_name(&node.name), "{NAME}, found `{}`", node.name);
            ensure!(names.insert(&node.name), "the name `{}` is not unique", node.name);
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let ports = self.ports(at).len();
            ensure!(ports > 0, "{}: expected at least one link, found none", node.name);
            ensure!(
                ports <= MAX_PORTS,
                "{}: expected at most {MAX_PORTS} links, found {ports}",
                node.name
            );
            ensure!(
                node.role != Role::Host || ports == 1,
                "host {}: expected one link, found {ports}",
                node.name
            );
        }
        for [a, b] in &self.links {
            ensure!(a.node != b.node, "{}: a link to itself", self.nodes[a.node].name);
        }
        match self.unreachable() {
            Some(node) => bail!("{} is not connected to {}", node.name, self.nodes[0].name),
            None => Ok(()),
        }
    }

    /// A node without a path to the first one.
    fn unreachable(&self) -> Option<&Node> {
        let mut seen = BTreeSet::from([0]);
        let mut next = vec![0];
        while let Some(node) = next.pop() {
            let ends = self.ports(node).into_values();
            next.extend(ends.map(|peer| peer.node).filter(|peer| seen.insert(*peer)));
        }
        self.nodes
            .iter()
            .enumerate()
            .find(|(at, _)| !seen.contains(at))
            .map(|(_, node)| node)
    }

    /// Adds an end of a link to a node, which the owner of the fabric uses.
    ///
    /// # Errors
    /// There is no such node.
    pub fn add_socket(&mut self, name: &str, to: &str) -> Result<usize> {
        let peer = self.find(to).with_context(|| format!("there is no router `{to}`"))?;
        let port = self.ports(peer).keys().next_back().map_or(1, |last| last + 1);
        self.nodes.push(Node {
            name: name.to_owned(),
            role: Role::Socket,
            row: 2,
        });
        let node = self.nodes.len() - 1;
        self.links.push([End { node, port: 1 }, End { node: peer, port }]);
        Ok(node)
    }

    /// The ports of a node, and the other end of the link of each.
    pub fn ports(&self, node: usize) -> BTreeMap<u32, End> {
        let ends = self.links.iter().flat_map(|[a, b]| [(*a, *b), (*b, *a)]);
        ends.filter(|(own, _)| own.node == node)
            .map(|(own, peer)| (own.port, peer))
            .collect()
    }

    /// The indices of the links between two nodes.
    pub fn between(&self, a: usize, b: usize) -> Vec<usize> {
        let links = self.links.iter().enumerate();
        let is_between = |link: &[End; 2]| {
            let nodes = link.map(|end| end.node);
            nodes == [a, b] || nodes == [b, a]
        };
        links.filter(|(_, link)| is_between(link)).map(|(at, _)| at).collect()
    }

    /// The index of a node.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }
}

impl End {
    /// The MAC address of this port: locally administered, unique in the fabric.
    pub fn mac(self) -> MacAddress {
        let [high, low] = (self.node as u16).to_be_bytes();
        MacAddress([0x02, 0x52, 0x49, high, low, self.port as u8])
    }
}

const NAME: &str = "expected a name of 1 to 32 letters, digits, `.`, `_` and `-`";

fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=32).contains(&name.len()) && name.chars().all(is_allowed)
}

/// Links with the next free port of each node.
fn with_ports(pairs: impl Iterator<Item = (usize, usize)>, nodes: usize) -> Vec<[End; 2]> {
    let mut used = vec![0; nodes];
    let mut end = |node: usize| {
        used[node] += 1;
        End { node, port: used[node] }
    };
    pairs.map(|(a, b)| [end(a), end(b)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_spine_fabric_has_all_links() {
        let topology = Topology::parse("[leaf_spine]\nspines = 2\nleaves = 4\nhosts_per_leaf = 2\n").unwrap();
        assert_eq!((topology.nodes.len(), topology.links.len()), (14, 16));
        assert_eq!(topology.nodes.iter().filter(|node| node.role == Role::Host).count(), 8);
        let leaf = topology.find("leaf2").unwrap();
        let peers: Vec<&str> = topology
            .ports(leaf)
            .values()
            .map(|end| topology.nodes[end.node].name.as_str())
            .collect();
        assert_eq!(peers, ["spine1", "spine2", "host3", "host4"]);
    }

    #[test]
    fn any_graph_can_be_listed() {
        let text = "dif = \"line\"\nrouters = [\"a\", \"b\"]\nhosts = [\"x\"]\nlinks = [[\"a\", \"b\"], [\"a\", \"b\"], [\"b\", \"x\"]]\n";
        let topology = Topology::parse(text).unwrap();
        assert_eq!(topology.links[1], [End { node: 0, port: 2 }, End { node: 1, port: 2 }]);
        assert_eq!(topology.links[2][0], End { node: 1, port: 3 });
        assert_eq!((topology.between(1, 0), topology.between(0, 2)), (vec![0, 1], vec![]));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| format!("{:#}", Topology::parse(text).unwrap_err());
        assert!(error("").contains("at least one name in `routers`"));
        assert!(error("spines = 2").contains("unknown field `spines`"));
        assert!(error("routers = [\"a\", \"a\"]\nlinks = [[\"a\", \"b\"]]").contains("no router or host `b`"));
        assert!(error("routers = [\"a\", \"a\"]").contains("not unique"));
        let apart = "routers = [\"a\", \"b\", \"c\", \"d\"]\nlinks = [[\"a\", \"b\"], [\"c\", \"d\"]]";
        assert!(error(apart).contains("c is not connected to a"));
        assert!(error("routers = [\"a\"]").contains("a: expected at least one link"));
        assert!(error("routers = [\"a/b\"]").contains("expected a name"));
        assert!(error("routers = [\"a\"]\nlinks = [[\"a\", \"a\"]]").contains("a link to itself"));
        let twice = "routers = [\"a\"]\nhosts = [\"h\"]\nlinks = [[\"h\", \"a\"], [\"h\", \"a\"]]";
        assert!(error(twice).contains("host h: expected one link, found 2"));
        let shape = LeafSpine {
            spines: 1,
            leaves: 80,
            hosts_per_leaf: 0,
        };
        let direct = Topology::leaf_spine("d".to_owned(), shape).unwrap_err().to_string();
        assert_eq!(direct, "spine1: expected at most 60 links, found 80");
        assert!(error("[leaf_spine]\nspines = 100\nleaves = 100\nhosts_per_leaf = 100").contains("at most 250 nodes"));
    }
}
