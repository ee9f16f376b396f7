//! Hosts, switches and the links between them.

use super::shape::Shape;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

/// The most nodes: each host is a thread, each switch a process of this machine.
const MAX_NODES: usize = 250;
/// The highest port of a switch: v1model has 9 bits, and drops what is for the last port.
const MAX_PORT: u32 = 510;
/// The longest name: `NAME-eth510` is an interface, whose name has 15 characters at most.
const MAX_NAME: usize = 8;

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: Option<IpAddr>,
    /// The bits of its network.
    pub prefix: u8,
    /// Its MAC address, with colons.
    pub mac: Option<String>,
    /// The next hop of everything that is not in its network.
    pub gateway: Option<IpAddr>,
    /// Neighbours that ARP need not resolve, with their MAC addresses.
    pub neighbours: Vec<(IpAddr, String)>,
    /// Commands that a shell of the host executes at the start.
    pub commands: Vec<String>,
}

/// The state that a switch begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entries {
    /// A file, in any format that `--entries` reads.
    File(PathBuf),
    /// Directives.
    Text(String),
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Its program; `None`: the command line has to say it.
    pub program: Option<PathBuf>,
    /// The topology names the program at this switch, so that the command line's program for all
    /// switches is not for it.
    pub is_own_program: bool,
    /// What its tables begin with.
    pub entries: Option<Entries>,
    /// The port of the control plane.
    pub cpu_port: Option<u32>,
}

/// A host or a switch, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// A host.
    Host(usize),
    /// A switch.
    Switch(usize),
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The node.
    pub node: Node,
    /// The port of a switch; 0 at a host.
    pub port: u32,
}

/// A link.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Its ends.
    pub ends: [End; 2],
    /// What it does with packets, in each direction.
    pub shape: Shape,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topology {
    /// Its hosts.
    pub hosts: Vec<Host>,
    /// Its switches.
    pub switches: Vec<Switch>,
    /// Its links.
    pub links: Vec<Link>,
}

impl Topology {
    /// The node with this name.
    pub fn find(&self, name: &str) -> Option<Node> {
        let host = self.hosts.iter().position(|host| host.name == name).map(Node::Host);
        let switch = || self.switches.iter().position(|switch| switch.name == name);
        host.or_else(|| switch().map(Node::Switch))
    }

    /// The name of a node.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(at) => &self.hosts[at].name,
            Node::Switch(at) => &self.switches[at].name,
        }
    }

    /// The end of a link as files name it: `h1`, or `s1-p2`.
    pub fn end_name(&self, end: End) -> String {
        match end.node {
            Node::Host(_) => self.name(end.node).to_owned(),
            Node::Switch(_) => format!("{}-p{}", self.name(end.node), end.port),
        }
    }

    /// The end that a file names.
    ///
    /// # Errors
    /// There is no such host or switch, or a switch without a port.
    pub fn end(&self, text: &str) -> Result<End> {
        if let Some(node @ Node::Host(_)) = self.find(text) {
            return Ok(End { node, port: 0 });
        }
        let parts = text
            .split_once("-p")
            .map(|(name, port)| (self.find(name), port.parse()));
        match parts {
            Some((Some(node @ Node::Switch(_)), Ok(port))) => Ok(End { node, port }),
            _ if matches!(self.find(text), Some(Node::Switch(_))) => {
                bail!("`{text}` is a switch: write its port, too, for example {text}-p1")
            }
            _ => bail!("there is no host `{text}`, nor is it the port of a switch, such as s1-p1"),
        }
    }

    /// The interface of an end, in the namespace of its node.
    pub fn interface(&self, end: End) -> String {
        match end.node {
            Node::Host(_) => "eth0".to_owned(),
            Node::Switch(_) => format!("{}-eth{}", self.name(end.node), end.port),
        }
    }

    /// The links of a node: its own end and the link.
    pub fn links_of(&self, node: Node) -> impl Iterator<Item = (End, &Link)> {
        let ends = self.links.iter().flat_map(|link| link.ends.map(|end| (end, link)));
        ends.filter(move |(end, _)| end.node == node)
    }

    /// Checks what every format must hold.
    ///
    /// # Errors
    /// Something does not.
    pub fn check(&self, reserved: &[&str]) -> Result<()> {
        let nodes = self.hosts.len() + self.switches.len();
        ensure!(nodes > 0, "expected at least one host or switch");
        ensure!(
            nodes <= MAX_NODES,
            "expected at most {MAX_NODES} hosts and switches, found {nodes}"
        );
        let mut names = BTreeSet::new();
        let switches = self.switches.iter().map(|switch| &switch.name);
        for name in self.hosts.iter().map(|host| &host.name).chain(switches) {
            check_name(name, reserved)?;
            ensure!(names.insert(name), "the name `{name}` is not unique");
        }
        for host in &self.hosts {
            check_host(host).with_context(|| format!("host {}", host.name))?;
        }
        let mut ends = BTreeSet::new();
        for link in &self.links {
            for end in link.ends {
                let name = self.end_name(end);
                ensure!(end.port <= MAX_PORT, "{name}: expected a port from 0 to {MAX_PORT}");
                ensure!(
                    ends.insert(end),
                    "{name} has two links: a port of a switch has one, and so has a host"
                );
            }
            let [a, b] = link.ends;
            let is_same_switch = a.node == b.node;
            ensure!(!is_same_switch, "{}: a link to itself", self.name(a.node));
        }
        for (at, switch) in self.switches.iter().enumerate() {
            let name = &switch.name;
            ensure!(
                self.links_of(Node::Switch(at)).next().is_some(),
                "switch {name} has no link"
            );
            if let Some(port) = switch.cpu_port {
                let is_linked = self.links_of(Node::Switch(at)).any(|(end, _)| end.port == port);
                ensure!(
                    !is_linked,
                    "switch {name}: port {port} is the control plane's, and has a link"
                );
            }
        }
        for (at, host) in self.hosts.iter().enumerate() {
            let is_linked = self.links_of(Node::Host(at)).next().is_some();
            ensure!(is_linked, "host {} has no link", host.name);
        }
        Ok(())
    }
}

fn check_name(name: &str, reserved: &[&str]) -> Result<()> {
    let is_fine = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    ensure!(
        is_fine,
        "expected a name of at most {MAX_NAME} letters, digits and `_` that begins with a letter, found `{name}`"
    );
    ensure!(
        !reserved.contains(&name),
        "`{name}` is a command of the lab's prompt: name the node otherwise"
    );
    Ok(())
}

fn check_host(host: &Host) -> Result<()> {
    let longest = |address: &IpAddr| if address.is_ipv4() { 32 } else { 128 };
    if let Some(address) = &host.address {
        ensure!(
            host.prefix <= longest(address),
            "expected a prefix of at most {} bits, found {}",
            longest(address),
            host.prefix
        );
    }
    let macs = host.neighbours.iter().map(|(_, mac)| mac);
    for mac in host.mac.iter().chain(macs) {
        let parts: Vec<&str> = mac.split(':').collect();
        let is_byte = |part: &&str| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit());
        ensure!(
            parts.len() == 6 && parts.iter().all(is_byte),
            "expected a MAC address such as 08:00:00:00:01:11, found `{mac}`"
        );
    }
    Ok(())
}

/// An address with the bits of its network: `10.0.1.1/24`.
///
/// # Errors
/// It is none.
pub fn address(text: &str, default_prefix: u8) -> Result<(IpAddr, u8)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, prefix.parse().ok()),
        None => (text, Some(default_prefix)),
    };
    let both = address.parse().ok().zip(prefix);
    both.with_context(|| format!("expected an address such as 10.0.1.1/24, found `{text}`"))
}

/// Sorts names as people count: s2 before s10.
pub fn counting_order(name: &str) -> (String, u64) {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (letters.to_owned(), name[letters.len()..].parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology() -> Topology {
        let host = |name: &str| Host {
            name: name.to_owned(),
            ..Host::default()
        };
        let switch = |name: &str| Switch {
            name: name.to_owned(),
            ..Switch::default()
        };
        let mut topology = Topology {
            hosts: vec![host("h1"), host("h2")],
            switches: vec![switch("s1")],
            links: Vec::new(),
        };
        for (a, b) in [("h1", "s1-p1"), ("h2", "s1-p2")] {
            let ends = [topology.end(a).unwrap(), topology.end(b).unwrap()];
            let shape = Shape::default();
            topology.links.push(Link { ends, shape });
        }
        topology
    }

    fn error(change: impl FnOnce(&mut Topology)) -> String {
        let mut topology = topology();
        change(&mut topology);
        format!("{:#}", topology.check(&["ctl"]).unwrap_err())
    }

    #[test]
    fn ends_have_interfaces() {
        let topology = topology();
        topology.check(&["ctl"]).unwrap();
        let end = topology.end("s1-p2").unwrap();
        assert_eq!(topology.interface(end), "s1-eth2");
        assert_eq!(topology.end_name(end), "s1-p2");
        assert_eq!(topology.interface(topology.end("h1").unwrap()), "eth0");
        assert!(
            topology
                .end("s1")
                .unwrap_err()
                .to_string()
                .contains("write its port, too")
        );
        assert!(
            topology
                .end("s2-p1")
                .unwrap_err()
                .to_string()
                .contains("no host `s2-p1`")
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert!(error(|t| t.hosts[1].name = "h1".to_owned()).contains("not unique"));
        assert!(error(|t| t.hosts[1].name = "ctl".to_owned()).contains("a command of the lab's prompt"));
        assert!(error(|t| t.hosts[1].name = "h-2".to_owned()).contains("expected a name"));
        assert!(error(|t| t.links[1].ends[1].port = 1).contains("s1-p1 has two links"));
        assert!(error(|t| t.links[1].ends[1].port = 511).contains("expected a port from 0 to 510"));
        assert!(error(|t| t.links[1].ends[0] = t.links[0].ends[0]).contains("h1 has two links"));
        assert!(error(|t| t.links.clear()).contains("switch s1 has no link"));
        assert!(error(|t| t.switches[0].cpu_port = Some(2)).contains("port 2 is the control plane's"));
        assert!(error(|t| t.hosts[0].mac = Some("08:00".to_owned())).contains("host h1: expected a MAC address"));
    }

    #[test]
    fn addresses_have_prefixes() {
        assert_eq!(address("10.0.1.1/31", 8).unwrap(), ("10.0.1.1".parse().unwrap(), 31));
        assert_eq!(address("10.0.1.1", 8).unwrap().1, 8);
        assert!(address("10.0.1/24", 8).is_err());
        assert!(address("10.0.1.1/x", 8).is_err());
    }
}
