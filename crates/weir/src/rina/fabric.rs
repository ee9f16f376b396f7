//! `weir rina fabric`: routers and hosts as processes of this machine, with links between them.

mod children;
mod commands;
mod demo;
mod picture;
mod topology;
mod wire;

pub use demo::demo;

use super::arguments::FabricArguments;
use crate::output::Messages;
use anyhow::{Context, Result};
use children::Children;
pub use children::{free_address, write_program};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use topology::LeafSpine;
pub use topology::Topology;
use weir_io::UdpTunnel;
use weir_rina_host::Ipcp;
pub use wire::Wire;
use wire::Wires;

/// How long a fabric may take until every node has a route to every other one.
const CONVERGENCE: Duration = Duration::from_secs(60);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a fabric until a signal comes, its time is over, or `quit`.
pub fn fabric(arguments: &FabricArguments, messages: &Messages) -> Result<u8> {
    // Before the signals are taken: a file may be a pipe that nothing writes.
    let topology = read(arguments)?;
    arguments.picture.as_deref().map_or(Ok(()), check_picture)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot listen for signals")?;
    }
    let temporary = tempfile::tempdir().context("cannot make a folder")?;
    let folder = arguments.folder.clone().unwrap_or_else(|| temporary.path().to_owned());
    let mut fabric = Fabric::start(topology, &folder)?;
    messages.line(format!(
        "{} nodes and {} links; sockets, configurations and logs in {}",
        fabric.topology.nodes.len(),
        fabric.topology.links.len(),
        folder.display()
    ));
    let Some(time) = fabric.wait(CONVERGENCE, &stop)? else {
        return Ok(0);
    };
    messages.line(format!(
        "every node has a route to every other one, {:.1} s after the start",
        time.as_secs_f64()
    ));
    if let Some(path) = &arguments.picture {
        fabric.save_picture(path)?;
        messages.line(format!("picture: {}", path.display()));
    }
    let end = arguments.time.map(|time| Instant::now() + time);
    let lines = commands::lines();
    loop {
        if stop.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(0);
        }
        if let Some((node, process)) = fabric.children.ended() {
            // Such as by `kill -9`: the others go around it.
            fabric.kill(node);
            let name = &fabric.topology.nodes[node].name;
            messages.line(format!(
                "the process {process} has ended, its log is in {}; `start {name}` starts {name} again",
                folder.display()
            ));
        }
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => match commands::run(&mut fabric, &line) {
                Ok(commands::Answer::Text(text)) => messages.line(text),
                Ok(commands::Answer::Quit) => return Ok(0),
                Err(error) => messages.line(format!("error: {error:#}")),
            },
            // Without input it runs on.
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn read(arguments: &FabricArguments) -> Result<Topology> {
    if let Some(shape) = &arguments.leaf_spine {
        let numbers = shape.split_once('x');
        let numbers = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (spines, leaves) =
            numbers.with_context(|| format!("--leaf-spine: expected two numbers such as 2x4, found `{shape}`"))?;
        let hosts_per_leaf = arguments.hosts;
        return Topology::leaf_spine(
            "fabric".to_owned(),
            LeafSpine {
                spines,
                leaves,
                hosts_per_leaf,
            },
        );
    }
    let path = arguments.topology.as_deref().context("a topology")?;
    let text = crate::input::text(path)?;
    Topology::parse(&text).with_context(|| path.display().to_string())
}

/// Takes a folder for this process alone: two fabrics in it would use each other's sockets.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("fabric.lock");
    let named = || path.display().to_string();
    let file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path);
    let mut file = file.with_context(named)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let owner = std::fs::read_to_string(&path).unwrap_or_default();
            let owner: String = owner.chars().filter(char::is_ascii_digit).take(10).collect();
            anyhow::bail!(
                "{}: the fabric of process {owner} uses this folder: end it, or take another --folder",
                folder.display()
            );
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(named),
    }
    file.set_len(0).with_context(named)?;
    writeln!(file, "{}", std::process::id()).with_context(named)?;
    Ok(file)
}

/// A picture can be written there: said before the work, not after it.
fn check_picture(path: &Path) -> Result<()> {
    anyhow::ensure!(
        !path.is_dir(),
        "--picture {}: expected a file, found a directory",
        path.display()
    );
    let into = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    anyhow::ensure!(
        into.is_none_or(Path::is_dir),
        "--picture {}: there is no such folder",
        path.display()
    );
    Ok(())
}

/// A fabric that runs. Its processes end when this is dropped.
pub struct Fabric {
    topology: Topology,
    folder: PathBuf,
    wires: Vec<Arc<Wire>>,
    children: Children,
    started: Instant,
    _carrier: Wires,
    /// Locked until the fabric has ended.
    _lock: File,
}

impl Fabric {
    /// Starts all nodes.
    ///
    /// # Errors
    /// A process cannot be started, or a socket cannot be opened.
    pub fn start(topology: Topology, folder: &Path) -> Result<Self> {
        Fabric::start_with(topology, folder, BTreeMap::new())
    }

    /// Starts all nodes; some switches have entries from the start.
    ///
    /// # Errors
    /// A process cannot be started, or a socket cannot be opened.
    pub fn start_with(topology: Topology, folder: &Path, entries: BTreeMap<usize, String>) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let lock = lock(folder)?;
        let wires: Vec<Arc<Wire>> = topology
            .links
            .iter()
            .map(|_| Wire::new().map(Arc::new))
            .collect::<Result<_>>()?;
        let carrier = Wires::start(wires.clone())?;
        let mut children = Children::prepare(folder, entries)?;
        let started = Instant::now();
        for node in 0..topology.nodes.len() {
            children.start(&topology, &wires, node)?;
        }
        Ok(Fabric {
            topology,
            folder: folder.to_owned(),
            wires,
            children,
            started,
            _carrier: carrier,
            _lock: lock,
        })
    }

    /// The socket of a node's IPC process.
    pub fn socket(&self, node: usize) -> PathBuf {
        self.folder.join(format!("{}.sock", self.topology.nodes[node].name))
    }

    /// The end of a link that no process uses.
    ///
    /// # Errors
    /// The node has no link, or a socket cannot be opened.
    pub fn open_socket(&self, node: usize) -> Result<UdpTunnel> {
        for (link, wire) in self.topology.links.iter().zip(&self.wires) {
            if let Some(end) = link.iter().position(|end| end.node == node) {
                let local = free_address()?;
                wire.connect(end, local);
                return Ok(UdpTunnel::open(local, wire.address(end)?)?);
            }
        }
        anyhow::bail!("{} has no link", self.topology.nodes[node].name)
    }

    /// What the IPC process of a node says of itself; `None` while it is not there.
    pub fn status(&self, node: usize) -> Option<Value> {
        let ipcp = Ipcp::connect(&self.socket(node)).ok()?;
        serde_json::from_str(&ipcp.manage("status").ok()?).ok()
    }

    /// Whether each node that lives has a route to all others that do.
    pub fn is_converged(&self) -> bool {
        let alive = self.alive().count() as u64;
        self.alive().all(|node| self.routes(node) == Some(alive - 1))
    }

    /// Waits until the fabric has converged; the time since its start.
    ///
    /// # Errors
    /// It has not in this time.
    pub fn wait_until_converged(&mut self, longest: Duration) -> Result<Duration> {
        let never = AtomicBool::new(false);
        let time = self.wait(longest, &never)?;
        time.context("the fabric was not waited for")
    }

    /// The same; `None` if it is to stop before.
    fn wait(&mut self, longest: Duration, stop: &AtomicBool) -> Result<Option<Duration>> {
        let end = Instant::now() + longest;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            // First of all: a process of another fabric may answer in its place.
            if let Some((_, process)) = self.children.ended() {
                anyhow::bail!(
                    "the process {process} has ended: its log is {}",
                    self.folder.join(format!("{process}.log")).display()
                );
            }
            if self.is_converged() {
                return Ok(Some(self.started.elapsed()));
            }
            if Instant::now() >= end {
                anyhow::bail!(
                    "after {} s there are nodes without a route to all others: {}; logs are in {}",
                    longest.as_secs(),
                    self.without_routes().join(", "),
                    self.folder.display()
                );
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The names of living nodes that do not have routes to all others.
    fn without_routes(&self) -> Vec<&str> {
        let alive: Vec<usize> = self.alive().collect();
        let is_lacking = |node: &&usize| self.routes(**node) != Some(alive.len() as u64 - 1);
        let lacking = alive.iter().filter(is_lacking);
        lacking.map(|node| self.topology.nodes[*node].name.as_str()).collect()
    }

    fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.topology.nodes.len()).filter(|node| self.children.is_alive(*node))
    }

    fn routes(&self, node: usize) -> Option<u64> {
        self.status(node)?.get("routes")?.as_u64()
    }

    /// The links between two nodes, at least one.
    ///
    /// # Errors
    /// There is no such node or link.
    pub fn wires(&self, a: &str, b: &str) -> Result<Vec<&Arc<Wire>>> {
        let at = self.topology.between(self.node(a)?, self.node(b)?);
        anyhow::ensure!(!at.is_empty(), "there is no link between {a} and {b}");
        Ok(at.into_iter().filter_map(|at| self.wires.get(at)).collect())
    }

    /// The index of a node.
    ///
    /// # Errors
    /// There is no such node.
    pub fn node(&self, name: &str) -> Result<usize> {
        self.topology
            .find(name)
            .with_context(|| format!("there is no node `{name}`"))
    }

    /// Kills a node, as `kill -9` does: its switch and its IPC process.
    pub fn kill(&mut self, node: usize) {
        self.children.kill(node);
        // Frames to it are lost.
        for (link, wire) in self.topology.links.iter().zip(&self.wires) {
            link.iter()
                .enumerate()
                .filter(|(_, end)| end.node == node)
                .for_each(|(end, _)| wire.disconnect(end));
        }
    }

    /// Kills the IPC process of a node and starts it again; the switch of a router keeps running.
    ///
    /// # Errors
    /// The node does not run, or the process cannot be started.
    pub fn restart_ipcp(&mut self, node: usize) -> Result<()> {
        self.children.restart_ipcp(&self.topology, node)
    }

    /// Starts a node that was killed.
    ///
    /// # Errors
    /// It runs, or its processes cannot be started.
    pub fn start_node(&mut self, node: usize) -> Result<()> {
        anyhow::ensure!(
            !self.children.is_alive(node),
            "{} runs already",
            self.topology.nodes[node].name
        );
        self.children.start(&self.topology, &self.wires, node)
    }

    /// Frames that links have lost, because they were cut or are lossy.
    pub fn lost(&self) -> u64 {
        self.wires.iter().map(|wire| wire.counters().lost).sum()
    }

    /// Draws the fabric as it is now.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_picture(&self, path: &Path) -> Result<()> {
        let statuses: Vec<Option<Value>> = (0..self.topology.nodes.len()).map(|node| self.status(node)).collect();
        let picture = picture::svg(&self.topology, &statuses, &self.wires);
        Ok(weir_files::write(path, picture.as_bytes())?)
    }
}
