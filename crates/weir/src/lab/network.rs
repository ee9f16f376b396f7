//! A network that runs: namespaces of hosts, links, and the processes of switches.

use super::namespace::Namespace;
use super::plan::Plan;
use super::switches::Switches;
use super::tools;
use super::topology::{End, Host, Link, Node, Topology};
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// A network that runs.
pub struct Network {
    /// Hosts, switches and links.
    pub topology: Topology,
    /// Where logs and sockets are.
    pub folder: PathBuf,
    /// The processes of switches.
    pub switches: Switches,
    /// Whether each link is up.
    pub is_up: Vec<bool>,
    hosts: Vec<Namespace>,
    /// The kernel delays and loses packets.
    has_netem: bool,
}

impl Network {
    /// Starts everything.
    ///
    /// # Errors
    /// A namespace, link or process cannot be had.
    pub fn start(plan: Plan, weir: PathBuf, folder: &Path, messages: &Messages) -> Result<Self> {
        let Plan { topology, programs } = plan;
        tools::quiet_ipv6();
        let needs_netem = topology.links.iter().any(|link| link.shape.needs_netem());
        let has_netem = needs_netem && tools::has_netem();
        if needs_netem && !has_netem {
            messages.line("the kernel has no netem: weir itself delays and loses packets");
        }
        let hosts = topology.hosts.iter().map(|host| Namespace::new(&host.name));
        let mut network = Network {
            hosts: hosts.collect::<Result<_>>()?,
            switches: Switches::new(folder, weir),
            is_up: vec![true; topology.links.len()],
            folder: folder.to_owned(),
            has_netem,
            topology,
        };
        network.add_links()?;
        network.add_addresses()?;
        network.shape_links()?;
        network.switches.start(&network.topology, &programs)?;
        network.name_hosts()?;
        network.run_commands(messages)?;
        Ok(network)
    }

    /// The namespace of a node; `None`: this process's own, which switches share.
    fn namespace(&self, node: Node) -> Option<&Namespace> {
        match node {
            Node::Host(at) => self.hosts.get(at),
            Node::Switch(_) => None,
        }
    }

    /// Starts a command of a shell at a node.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(&self, node: Option<Node>, command: Command) -> Result<Child> {
        tools::spawn(node.and_then(|node| self.namespace(node)), command)
    }

    fn add_links(&self) -> Result<()> {
        let mut batch = "link set lo up\n".to_owned();
        let place = |end: End| match self.namespace(end.node) {
            Some(namespace) => format!("{} netns {}", self.topology.interface(end), namespace.thread()),
            None => self.topology.interface(end),
        };
        for (at, link) in self.topology.links.iter().enumerate() {
            let [a, b] = link.ends.map(place);
            if self.is_wire(link) {
                for (end, wire) in [a, b].iter().zip(wire_interfaces(at)) {
                    let _ = writeln!(batch, "link add {end} type veth peer name {wire}");
                    let _ = writeln!(batch, "link set {wire} addrgenmode none up");
                }
            } else {
                let _ = writeln!(batch, "link add {a} type veth peer name {b}");
            }
            for end in link.ends.iter().filter(|end| matches!(end.node, Node::Switch(_))) {
                let name = self.topology.interface(*end);
                let _ = writeln!(batch, "link set {name} addrgenmode none up");
            }
        }
        tools::ip_batch(None, batch).context("cannot make the links")
    }

    fn add_addresses(&self) -> Result<()> {
        for (at, (host, namespace)) in self.topology.hosts.iter().zip(&self.hosts).enumerate() {
            namespace.run(tools::quiet_ipv6)?;
            let batch = addresses(host, at);
            tools::ip_batch(Some(namespace), batch).with_context(|| format!("host {}", host.name))?;
        }
        Ok(())
    }

    /// Whether a thread of weir carries the link's frames.
    fn is_wire(&self, link: &Link) -> bool {
        link.shape.needs_netem() && !self.has_netem
    }

    fn shape_links(&self) -> Result<()> {
        for (at, link) in self.topology.links.iter().enumerate() {
            self.shape(link)?;
            if self.is_wire(link) {
                super::wire::start(&wire_interfaces(at), &link.shape, at)?;
            }
        }
        Ok(())
    }

    fn shape(&self, link: &Link) -> Result<()> {
        for end in link.ends {
            let is_switch = matches!(end.node, Node::Switch(_));
            let shape = match self.is_wire(link) {
                false => link.shape,
                true => link.shape.only_rate(),
            };
            let Some(words) = shape.qdisc(is_switch) else {
                continue;
            };
            let mut command = Command::new("tc");
            let interface = self.topology.interface(end);
            command
                .args(["qdisc", "replace", "dev", &interface, "root"])
                .args(words);
            tools::output(self.namespace(end.node), command).with_context(|| {
                let [a, b] = link.ends.map(|end| self.topology.end_name(end));
                format!("cannot shape the link between {a} and {b}")
            })?;
        }
        Ok(())
    }

    /// Has programs at hosts find hosts by their names.
    fn name_hosts(&self) -> Result<()> {
        let mut text = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        for host in &self.topology.hosts {
            if let Some(address) = host.address {
                let _ = writeln!(text, "{address} {}", host.name);
            }
        }
        let path = self.folder.join("hosts");
        weir_files::write(&path, text.as_bytes())?;
        // Where there is no such file, names work in the prompt only.
        let _ = rustix::mount::mount_bind(&path, "/etc/hosts");
        Ok(())
    }

    fn run_commands(&self, messages: &Messages) -> Result<()> {
        for (host, namespace) in self.topology.hosts.iter().zip(&self.hosts) {
            for text in &host.commands {
                let mut command = Command::new("sh");
                command.args(["-c", &tools::modern(text)]);
                if let Err(error) = tools::output(Some(namespace), command) {
                    messages.line(format!("{}: `{text}`: {error:#}", host.name));
                }
            }
        }
        Ok(())
    }

    /// The links between two nodes.
    ///
    /// # Errors
    /// There is no such node, or no link between them.
    pub fn links_between(&self, a: &str, b: &str) -> Result<Vec<usize>> {
        let find = |name: &str| {
            let found = self.topology.find(name);
            found.with_context(|| format!("there is no host or switch `{name}`"))
        };
        let (first, second) = (find(a)?, find(b)?);
        let is_between = |link: &Link| {
            let nodes = link.ends.map(|end| end.node);
            nodes == [first, second] || nodes == [second, first]
        };
        let links = self.topology.links.iter().enumerate();
        let found: Vec<usize> = links.filter(|(_, link)| is_between(link)).map(|(at, _)| at).collect();
        if found.is_empty() {
            bail!("there is no link between {a} and {b}");
        }
        Ok(found)
    }

    /// Cuts a link, or mends it. The interfaces of a host stay up, as they lose their routes
    /// otherwise: they have no carrier while the other end is down.
    ///
    /// # Errors
    /// The interfaces do not change.
    pub fn set_link(&mut self, at: usize, is_up: bool) -> Result<()> {
        let link = self.topology.links.get(at).context("there is no such link")?;
        let state = if is_up { "up" } else { "down" };
        let is_switch = |end: &&End| matches!(end.node, Node::Switch(_));
        let has_switch = link.ends.iter().any(|end| is_switch(&end));
        for end in link.ends.iter().filter(|end| !has_switch || is_switch(end)) {
            let batch = format!("link set {} {state}\n", self.topology.interface(*end));
            tools::ip_batch(self.namespace(end.node), batch)?;
        }
        self.is_up[at] = is_up;
        Ok(())
    }

    /// Ends the switches, so that they can close their files.
    pub fn stop(&mut self) {
        self.switches.stop();
    }
}

/// The interfaces of the wire of a link.
fn wire_interfaces(link: usize) -> [String; 2] {
    [format!("wire{link}a"), format!("wire{link}b")]
}

/// What gives a host its addresses and routes.
fn addresses(host: &Host, at: usize) -> String {
    let mac = host.mac.clone();
    let mac = mac.unwrap_or_else(|| format!("02:00:00:00:{:02x}:{:02x}", (at + 1) / 256, (at + 1) % 256));
    let mut batch = format!("link set lo up\nlink set eth0 address {mac} addrgenmode none up\n");
    if let Some(address) = host.address {
        let _ = writeln!(batch, "addr add {address}/{} dev eth0", host.prefix);
    }
    if let Some(gateway) = host.gateway {
        let family = if gateway.is_ipv6() { "-6 " } else { "" };
        let _ = writeln!(batch, "{family}route add default via {gateway} dev eth0");
    }
    for (address, mac) in &host.neighbours {
        let _ = writeln!(batch, "neigh replace {address} lladdr {mac} dev eth0");
    }
    batch
}
