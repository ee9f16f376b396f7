//! What is measured: a program with its tables and packets.

use super::pool::{Packet, Pool};
use super::rig::{Rig, Side};
use super::workload::{self, Mix, Spread, Wanted};
use crate::load;
use crate::output::Messages;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::sync::Arc;
use weir_extern_api::Registry;
use weir_interp::Interpreter;
use weir_ir::Program;
use weir_switch::{Switch, SwitchConfig};

/// A program with its tables and packets.
#[derive(Clone)]
pub struct Case {
    /// Name of the program, without `.p4`.
    pub name: String,
    /// The program, optimised.
    pub program: Arc<Program>,
    /// Tables and packets.
    pub load: Load,
    /// The externs that it may call besides those of its architecture.
    pub externs: Registry,
    /// Packets in memory.
    pub pool: usize,
    /// Flows that they belong to; as many as packets where not said.
    pub flows: Option<usize>,
    /// Bytes of packets that are made.
    pub size: usize,
    /// How packets are spread over flows.
    pub spread: Spread,
    /// Packets at a time.
    pub vector: usize,
    /// Where warnings go.
    pub messages: Messages,
}

/// Where tables and packets come from.
#[derive(Clone)]
pub enum Load {
    /// Made for the program: this many entries, and packets that meet them in this way.
    Made {
        /// Entries of the table that the program is about.
        entries: usize,
        /// What else there is to packets.
        mix: Mix,
    },
    /// Given by the user.
    Given {
        /// Directives for the control plane.
        entries: Option<PathBuf>,
        /// The packets, which are used over and over.
        packets: Arc<Vec<Vec<u8>>>,
        /// The port they come in at.
        port: u32,
    },
}

impl Case {
    /// A bundled program of this name (without `.p4`), with 4,096 packets of 64 bytes.
    pub fn bundled(name: &str, entries: usize, mix: Mix) -> Result<Self> {
        let file = format!("{name}.p4");
        let Some((_, text)) = crate::bundled::PROGRAMS.iter().find(|(n, _)| *n == file) else {
            bail!("no program {name} is bundled");
        };
        let options = weir_compiler::Options::default();
        let included = crate::bundled::included();
        let text = text.as_bytes().to_vec();
        let compilation =
            weir_compiler::compile_bytes(&file, text, &options, &included, weir_arch::targets()).started()?;
        let Some(program) = compilation.program else {
            bail!("the bundled {name} does not compile");
        };
        let mut externs = crate::externs();
        externs.set_files(Arc::new(crate::bundled::BundledFiles));
        Ok(Case {
            name: name.to_owned(),
            program: load::optimized(&Arc::new(program)),
            load: Load::Made { entries, mix },
            externs,
            pool: 4096,
            flows: None,
            size: 64,
            spread: Spread::Uniform,
            vector: 32,
            messages: Messages::direct(),
        })
    }

    /// The same with so many packets, each a flow of its own.
    pub fn with_pool(mut self, pool: usize) -> Self {
        self.pool = pool;
        self
    }

    /// One line about it.
    pub fn about(&self) -> String {
        let tables = match &self.load {
            Load::Made { entries, mix } => {
                let mix = if *mix == Mix::default() {
                    String::new()
                } else {
                    format!(" ({mix})")
                };
                format!(
                    "{entries} entries{mix}, {} packets in {} flows",
                    self.pool,
                    self.flow_count()
                )
            }
            Load::Given { packets, port, .. } => {
                format!(
                    "{} packets at port {port}, {} different",
                    self.pool,
                    packets.len().min(self.pool)
                )
            }
        };
        format!("{}: {tables}, {} at a time", self.name, self.vector)
    }

    /// Flows that the packets belong to.
    pub fn flow_count(&self) -> usize {
        self.flows.unwrap_or(self.pool)
    }

    /// Entries, where they are made.
    pub fn entries(&self) -> Option<usize> {
        match &self.load {
            Load::Made { entries, .. } => Some(*entries),
            Load::Given { .. } => None,
        }
    }

    fn config(&self) -> SwitchConfig {
        SwitchConfig {
            externs: self.externs.clone(),
            ..SwitchConfig::default()
        }
    }

    /// Compiles the program so many times: what that took, in ms.
    pub fn compile_times(&self, times: usize) -> Result<Vec<f64>> {
        let mut took = Vec::with_capacity(times);
        for _ in 0..times {
            let mut switch = Switch::with_engine(Arc::new(Interpreter::new(Arc::clone(&self.program))), self.config())?;
            switch.compile()?;
            took.push(switch.compile_time().unwrap_or_default().as_secs_f64() * 1e3);
        }
        Ok(took)
    }

    /// Everything ready to be run by these sides.
    ///
    /// # Errors
    /// Tables cannot be filled, or a side cannot run the program.
    pub fn rig(&self, sides: &[Side]) -> Result<Rig> {
        let file = match &self.load {
            Load::Given { entries, .. } => entries.as_deref(),
            Load::Made { .. } => None,
        };
        let mut switch = load::switch(Arc::clone(&self.program), self.config(), file, &self.messages)?;
        let mut by_hand = None;
        let packets = match &self.load {
            Load::Given { packets, port, .. } => {
                let packets = packets.iter().cycle().take(self.pool);
                packets.map(|bytes| Packet::new(*port, bytes.clone())).collect()
            }
            Load::Made { entries, mix } => {
                let made = workload::bundled(&self.name, &self.wanted(*entries, *mix))?;
                made.fill(&mut switch)?;
                if sides.contains(&Side::Baseline) {
                    by_hand = made.by_hand();
                }
                made.into_packets()
            }
        };
        if sides.contains(&Side::Baseline) && by_hand.is_none() {
            bail!("--vs baseline goes with l2_switch and ipv4_router and --table-entries: these are written by hand");
        }
        if sides.contains(&Side::Jit) {
            switch.compile()?;
            switch.load_tables();
        }
        let pool = Pool::new(&packets, switch.headroom());
        Ok(Rig::new(switch, by_hand, pool, self.vector))
    }

    fn wanted(&self, entries: usize, mix: Mix) -> Wanted {
        Wanted {
            entries,
            pool: self.pool,
            flows: self.flow_count(),
            size: self.size,
            spread: self.spread,
            mix,
        }
    }
}
