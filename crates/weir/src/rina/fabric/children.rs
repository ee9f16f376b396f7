//! The processes of a fabric: a switch and an IPC process of each router, an IPC process of each
//! host.

use super::topology::{Role, Topology};
use super::wire::Wire;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

/// The port by which the switch and its control plane exchange packets (rina_router.p4).
const CPU_PORT: &str = "64";
/// Intervals of IPC processes in a fabric, in ms: a lost link is noticed within 200 ms.
const KEEPALIVE: u32 = 50;

/// The processes, by node.
pub struct Children {
    folder: PathBuf,
    program: PathBuf,
    /// Entries that switches have from the start, by node.
    entries: BTreeMap<usize, String>,
    running: BTreeMap<usize, Vec<(String, Child)>>,
}

impl Children {
    /// Writes what all nodes need.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn prepare(folder: &Path, entries: BTreeMap<usize, String>) -> Result<Self> {
        Ok(Children {
            folder: folder.to_owned(),
            program: write_program(folder)?,
            entries,
            running: BTreeMap::new(),
        })
    }

    /// Starts the processes of a node, and connects its links to them.
    ///
    /// # Errors
    /// A process cannot be started, or a socket cannot be opened.
    pub fn start(&mut self, topology: &Topology, wires: &[Arc<Wire>], at: usize) -> Result<()> {
        let node = &topology.nodes[at];
        if node.role == Role::Socket {
            return Ok(());
        }
        let devices = devices(topology, wires, at)?;
        let mut children = Vec::new();
        let config = self.folder.join(format!("{}.toml", node.name));
        weir_files::write(&config, self.config(topology, at, &devices).as_bytes())?;
        if node.role == Role::Router {
            let mut command = crate::children::weir()?;
            command.arg("run").arg(&self.program);
            for (port, device) in &devices {
                command.arg("-i").arg(format!("{port}@{device}"));
            }
            command.args(["--p4runtime", &self.switch_address(&node.name), "--cpu-port", CPU_PORT]);
            command.arg("--die-with-parent");
            if let Some(entries) = self.entries.get(&at) {
                let path = self.folder.join(format!("{}.entries", node.name));
                weir_files::write(&path, entries.as_bytes())?;
                command.arg("--entries").arg(path);
            }
            children.push(self.spawn(&format!("{}.switch", node.name), command)?);
        }
        children.push(self.spawn_ipcp(&node.name)?);
        self.running.insert(at, children);
        Ok(())
    }

    fn spawn_ipcp(&self, name: &str) -> Result<(String, Child)> {
        let mut command = crate::children::weir()?;
        command
            .args(["rina", "ipcp", "--json", "--die-with-parent", "--config"])
            .arg(self.folder.join(format!("{name}.toml")));
        self.spawn(name, command)
    }

    /// Kills the IPC process of a node and starts it again, beside the switch of a router.
    ///
    /// # Errors
    /// The node does not run, or the process cannot be started.
    pub fn restart_ipcp(&mut self, topology: &Topology, at: usize) -> Result<()> {
        let name = &topology.nodes[at].name;
        let children = self.running.get_mut(&at);
        let ipcp = children.and_then(|children| children.iter_mut().find(|(child, _)| child == name));
        let (_, ipcp) = ipcp.with_context(|| format!("{name} does not run: `start {name}` starts it"))?;
        let _ = ipcp.kill();
        let _ = ipcp.wait();
        let started = self.spawn_ipcp(name)?;
        let children = self.running.get_mut(&at);
        if let Some(child) = children.and_then(|children| children.iter_mut().find(|(child, _)| child == name)) {
            *child = started;
        }
        Ok(())
    }

    fn spawn(&self, name: &str, mut command: Command) -> Result<(String, Child)> {
        let child = crate::children::spawn(&self.folder, name, &mut command)?;
        Ok((name.to_owned(), child))
    }

    fn switch_address(&self, name: &str) -> String {
        format!("unix:{}", self.folder.join(format!("{name}.p4rt")).display())
    }

    /// The configuration of a node's IPC process.
    fn config(&self, topology: &Topology, at: usize, devices: &BTreeMap<u32, String>) -> String {
        let node = &topology.nodes[at];
        let path = |ending: &str| {
            self.folder
                .join(format!("{}.{ending}", node.name))
                .display()
                .to_string()
        };
        let role = match node.role {
            Role::Router => "router",
            Role::Host | Role::Socket => "host",
        };
        let mut text = format!(
            "socket = {:?}\nstate = {:?}\n\n[ipcp]\nname = {:?}\ndif = {:?}\nrole = \"{role}\"\nfirst = {}\naddress = {}\n\n[ipcp.timers]\nkeepalive = {KEEPALIVE}\ndiscovery = 100\nenrolment = 300\n",
            path("sock"),
            path("state"),
            node.name,
            topology.dif,
            at == 0,
            at + 1,
        );
        for port in topology.ports(at).keys() {
            let mac = super::topology::End { node: at, port: *port }.mac();
            let _ = write!(text, "\n[[ipcp.port]]\nnumber = {port}\nmac = \"{mac}\"\n");
        }
        match node.role {
            Role::Router => {
                let _ = write!(text, "\n[switch]\naddress = {:?}\n", self.switch_address(&node.name));
            }
            Role::Host | Role::Socket => {
                text.push_str("\n[devices]\n");
                for (port, device) in devices {
                    let _ = writeln!(text, "{port} = {device:?}");
                }
            }
        }
        text
    }

    /// Whether a node runs.
    pub fn is_alive(&self, node: usize) -> bool {
        self.running.contains_key(&node)
    }

    /// A process that has ended by itself: its node and its name.
    pub fn ended(&mut self) -> Option<(usize, String)> {
        let all = self.running.iter_mut();
        let mut all = all.flat_map(|(node, children)| children.iter_mut().map(|child| (*node, child)));
        all.find_map(|(node, (name, child))| {
            let has_ended = child.try_wait().ok().flatten().is_some();
            has_ended.then(|| (node, name.clone()))
        })
    }

    /// Kills a node.
    pub fn kill(&mut self, node: usize) {
        for (_, mut child) in self.running.remove(&node).unwrap_or_default() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let nodes: Vec<usize> = self.running.keys().copied().collect();
        for node in nodes {
            self.kill(node);
        }
    }
}

/// Writes the program of routers to a folder.
///
/// # Errors
/// The folder cannot be written.
pub fn write_program(folder: &Path) -> Result<PathBuf> {
    let (name, text) = crate::bundled::PROGRAMS
        .iter()
        .find(|(name, _)| *name == "rina_router.p4")
        .context("rina_router is not bundled")?;
    let program = folder.join(name);
    weir_files::write(&program, text.as_bytes())?;
    Ok(program)
}

/// The device of each port of a node, with addresses that were free a moment before.
fn devices(topology: &Topology, wires: &[Arc<Wire>], at: usize) -> Result<BTreeMap<u32, String>> {
    let mut devices = BTreeMap::new();
    for (link, wire) in topology.links.iter().zip(wires) {
        for (end, place) in link.iter().enumerate().filter(|(_, place)| place.node == at) {
            let local = free_address()?;
            wire.connect(end, local);
            devices.insert(place.port, format!("udp:{local},{}", wire.address(end)?));
        }
    }
    Ok(devices)
}

/// An address that was free a moment before.
pub fn free_address() -> Result<SocketAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("a UDP port")?;
    Ok(socket.local_addr()?)
}
