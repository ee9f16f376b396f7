//! The inner process of a lab: the first process of its PID namespace.

use super::network::Network;
use super::outside::Identity;
use super::plan::Plan;
use super::relay::Relay;
use super::{Lab, commands, terminal};
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use nix::sched::CloneFlags;
use rustix::mount::{MountFlags, MountPropagationFlags};
use std::path::{Path, PathBuf};

/// Runs the lab.
pub fn run(arguments: &Lab, parent: &str, messages: &Messages) -> Result<u8> {
    follow(parent)?;
    if arguments.is_interactive() {
        terminal::allow_taking()?;
        terminal::end_with_it()?;
        terminal::take();
    }
    let plan = Plan::read(arguments)?;
    let count = plan.topology.switches.len();
    let relay = arguments.p4runtime.map(|address| Relay::start(address, count));
    let relay = relay.transpose()?;
    // In a chroot the kernel no longer knows its name once mounts are separate.
    let weir = crate::children::program()?;
    separate()?;
    let folder = Folder::new(arguments)?;
    let mut network = Network::start(plan, weir, folder.path(), messages)?;
    if let Some(relay) = relay {
        let switches = network.topology.switches.iter();
        relay.connect(switches.map(|switch| network.switches.socket(&switch.name)));
    }
    let code = commands::run(&mut network, arguments, messages)?;
    network.stop();
    Ok(code)
}

/// Has the kernel kill this process, and thereby the lab, when the outer one ends.
fn follow(parent: &str) -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .context("cannot be ended with the outer process")?;
    // It may have ended before.
    match Identity::parse(parent) {
        Some(parent) if parent.lives() => Ok(()),
        Some(_) => bail!("the outer process of the lab has ended"),
        None => bail!("--inside is for weir lab itself: leave it out"),
    }
}

/// Has namespaces of its own for the network, whose interfaces are those of switches, for mounts
/// and for what processes share.
fn separate() -> Result<()> {
    let flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    nix::sched::unshare(flags)
        .map_err(std::io::Error::from)
        .with_context(|| format!("the kernel gives no network namespaces: {}", super::outside::REMEDY))?;
    let propagation = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", propagation).context("cannot have mounts of its own")?;
    // Commands see the processes of the lab. Some containers do not allow it, and they see all.
    let _ = rustix::mount::mount("proc", "/proc", "proc", MountFlags::empty(), None);
    Ok(())
}

/// Where logs, sockets and configurations of the lab are.
enum Folder {
    /// Where the user has it.
    Named(PathBuf),
    /// In memory that only the lab's processes see.
    Memory(PathBuf),
    /// On disk; it is removed at the end.
    Disk(tempfile::TempDir),
}

impl Folder {
    fn new(arguments: &Lab) -> Result<Self> {
        if let Some(path) = &arguments.folder {
            std::fs::create_dir_all(path).with_context(|| path.display().to_string())?;
            return Ok(Folder::Named(std::path::absolute(path)?));
        }
        let used: Vec<PathBuf> = std::env::current_dir()
            .into_iter()
            .chain(
                arguments
                    .topology
                    .as_deref()
                    .map(std::path::absolute)
                    .into_iter()
                    .flatten(),
            )
            .collect();
        for place in ["/dev/shm", "/mnt", "/media", "/srv"] {
            let is_free = !used.iter().any(|path| path.starts_with(place));
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            if is_free && Path::new(place).is_dir() && rustix::mount::mount("lab", place, "tmpfs", flags, None).is_ok()
            {
                let path = Path::new(place).join("weir-lab");
                std::fs::create_dir(&path).with_context(|| path.display().to_string())?;
                return Ok(Folder::Memory(path));
            }
        }
        Ok(Folder::Disk(tempfile::tempdir().context("cannot make a folder")?))
    }

    fn path(&self) -> &Path {
        match self {
            Folder::Named(path) | Folder::Memory(path) => path,
            Folder::Disk(folder) => folder.path(),
        }
    }
}
