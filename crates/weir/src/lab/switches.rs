//! The processes of switches.

use super::plan::Program;
use super::topology::{Entries, Node, Topology};
use anyhow::{Context, Result, bail};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long switches may take to compile their programs.
const START: Duration = Duration::from_secs(120);
/// How long they may take to end.
const END: Duration = Duration::from_secs(2);
/// Between two looks at them.
const LOOK: Duration = Duration::from_millis(10);
/// Lines of a log that an error shows.
const SHOWN: usize = 20;

/// The processes of switches, in the order of the topology.
pub struct Switches {
    /// The file of this program.
    pub weir: PathBuf,
    folder: PathBuf,
    running: Vec<(String, Child)>,
}

impl Switches {
    /// None yet. They will be processes of the program `weir`, with their files in `folder`.
    pub fn new(folder: &Path, weir: PathBuf) -> Self {
        Switches {
            weir,
            folder: folder.to_owned(),
            running: Vec::new(),
        }
    }

    /// Starts the switches, and waits until all of them forward packets.
    ///
    /// # Errors
    /// One does not, within a time; the error has its messages.
    pub fn start(&mut self, topology: &Topology, programs: &[Program]) -> Result<()> {
        for (at, program) in programs.iter().enumerate() {
            self.spawn(topology, at, program)?;
        }
        let deadline = Instant::now() + START;
        for at in 0..self.running.len() {
            while !self.log(at, 0)?.contains("running;") {
                let (name, child) = &mut self.running[at];
                let has_ended = child.try_wait()?.is_some();
                if has_ended || Instant::now() > deadline {
                    let name = name.clone();
                    bail!("switch {name} does not start:\n{}", self.last_words(&name));
                }
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    fn spawn(&mut self, topology: &Topology, at: usize, program: &Program) -> Result<()> {
        let switch = topology.switches.get(at).context("there is no such switch")?;
        let name = &switch.name;
        let mut command = Command::new(&self.weir);
        command.arg("run").arg(self.program(program)?);
        command
            .arg("--p4runtime")
            .arg(format!("unix:{}", self.socket(name).display()));
        command.args(["--device-id", &at.to_string()]);
        if let Some(port) = switch.cpu_port {
            command.args(["--cpu-port", &port.to_string()]);
        }
        match &switch.entries {
            None => {}
            Some(Entries::File(path)) => {
                command.arg("--entries").arg(std::path::absolute(path)?);
            }
            Some(Entries::Text(text)) => {
                let path = self.folder.join(format!("{name}.entries"));
                weir_files::write(&path, text.as_bytes())?;
                command.arg("--entries").arg(path);
            }
        }
        for (end, link) in topology.links_of(Node::Switch(at)) {
            let interface = topology.interface(end);
            command.arg("-i").arg(format!("{}@packet:{interface}", end.port));
            if let Some(rate) = link.shape.rate {
                command.arg("--port-rate").arg(format!("{}={rate}", end.port));
            }
        }
        // Ctrl-C in the terminal is for commands.
        command.process_group(0);
        let child = crate::children::spawn(&self.folder, name, &mut command)?;
        self.running.push((name.clone(), child));
        Ok(())
    }

    /// The file of a program.
    fn program(&self, program: &Program) -> Result<PathBuf> {
        let name = match program {
            Program::File(path) => return Ok(path.clone()),
            Program::Bundled(name) => *name,
        };
        let folder = self.folder.join("programs");
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        for (known, bytes) in crate::bundled::files() {
            weir_files::write(&folder.join(known), bytes)?;
        }
        Ok(folder.join(name))
    }

    /// The socket at which a switch serves P4Runtime.
    pub fn socket(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.p4rt"))
    }

    /// What a switch has said from a place of its log on.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self, at: usize, from: u64) -> Result<String> {
        let (name, _) = self.running.get(at).context("there is no such switch")?;
        let path = crate::children::log(&self.folder, name);
        let mut bytes = Vec::new();
        let mut file = std::fs::File::open(&path).with_context(|| path.display().to_string())?;
        file.seek(SeekFrom::Start(from))?;
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The last lines of a switch's log.
    pub fn last_words(&self, name: &str) -> String {
        let path = crate::children::log(&self.folder, name);
        let bytes = std::fs::read(path).unwrap_or_default();
        let log = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(SHOWN)..].join("\n")
    }

    /// The length of a switch's log.
    pub fn log_length(&self, at: usize) -> u64 {
        let name = self
            .running
            .get(at)
            .map(|(name, _)| crate::children::log(&self.folder, name));
        let length = name
            .and_then(|path| path.metadata().ok())
            .map(|metadata| metadata.len());
        length.unwrap_or_default()
    }

    /// Has a switch begin or end to write traces to its log.
    ///
    /// # Errors
    /// It has ended.
    pub fn toggle_trace(&self, at: usize) -> Result<()> {
        let (name, child) = self.running.get(at).context("there is no such switch")?;
        let process = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(process, rustix::process::Signal::USR1)
            .with_context(|| format!("switch {name} has ended"))
    }

    /// The process of a switch.
    pub fn process(&self, at: usize) -> Option<u32> {
        self.running.get(at).map(|(_, child)| child.id())
    }

    /// The names of switches that have ended.
    pub fn ended(&mut self) -> Vec<String> {
        let all = self.running.iter_mut();
        all.filter_map(|(name, child)| child.try_wait().ok().flatten().map(|_| name.clone()))
            .collect()
    }

    /// Ends all of them.
    pub fn stop(&mut self) {
        for (_, child) in &self.running {
            let process = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let deadline = Instant::now() + END;
        for (_, child) in &mut self.running {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(LOOK);
            }
        }
    }
}
