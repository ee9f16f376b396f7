//! The program of the figures, its tables and its packets.

use super::super::fill::{Filler, Match};
use crate::load;
use anyhow::{Result, bail};
use std::sync::Arc;
use weir_extern_api::{Files, Object, Registry};
use weir_interp::Interpreter;
use weir_ir::Program;
use weir_switch::{Frame, Switch, SwitchConfig, TAILROOM, Write};
use weir_table::TableOp;

/// Flows of the packets. A share is a number of tenths, so it is a number of flows.
const FLOWS: usize = 10;
/// Packets in memory: as many as a small receive ring.
const PACKETS: usize = 64 * FLOWS;
/// Bytes of a packet.
const SIZE: usize = 64;
/// Bytes from one packet's place to the next: an odd number of cache lines.
const STRIDE: usize = 33 * 64;
/// Bytes before a packet.
const HEADROOM: usize = 128;

/// What the extern is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// The paper's dummy: this many cycles.
    Cycles(u32),
    /// AES-GCM over the payload, which grows by its tag.
    AesGcm,
}

impl Work {
    pub fn name(self) -> String {
        match self {
            Work::Cycles(cycles) => format!("{cycles} cycles"),
            Work::AesGcm => "AES-GCM".to_owned(),
        }
    }

    fn cycles(self) -> u64 {
        match self {
            Work::Cycles(cycles) => cycles.into(),
            Work::AesGcm => 0,
        }
    }
}

/// The program, compiled for one kind of extern.
#[derive(Clone)]
pub struct Bench {
    program: Arc<Program>,
    grows: bool,
}

impl Bench {
    pub fn new(work: Work) -> Result<Self> {
        let grows = work == Work::AesGcm;
        let (instances, call) = match work {
            Work::Cycles(_) => ("", "busy_cycles(meta.cycles)"),
            Work::AesGcm => (
                "payload_resize() payload; aes_gcm(1) gcm; extern_status_t status = extern_status_t.OK;",
                "gcm.seal(payload, 0, 48w0 ++ hdr.ethernet.src_addr, hdr.ethernet.ether_type, status)",
            ),
        };
        let text = include_str!("l2_waiting.p4")
            .replace("INSTANCES", instances)
            .replace("CALL", call);
        let options = weir_compiler::Options::default();
        let compilation =
            weir_compiler::compile_source("l2_waiting.p4", &text, &options, weir_arch::targets()).started()?;
        let Some(program) = compilation.program else {
            bail!("the program of the figures does not compile");
        };
        Ok(Bench {
            program: load::optimized(&Arc::new(program)),
            grows,
        })
    }

    /// A switch whose program calls these externs, with full tables.
    pub fn switch(&self, externs: &Registry) -> Result<Switch> {
        let config = SwitchConfig {
            externs: with_key(externs),
            ..SwitchConfig::default()
        };
        let mut switch = Switch::with_engine(Arc::new(Interpreter::new(Arc::clone(&self.program))), config)?;
        let mut sources = Filler::new(&mut switch, "smac", "NoAction")?;
        for flow in 0..FLOWS {
            sources.add(&[Match::Is(source(flow))], &[])?;
        }
        switch.compile()?;
        Ok(switch)
    }

    pub fn packets(&self) -> Packets {
        let packets = (0..PACKETS).map(|i| {
            let mut bytes = Vec::with_capacity(SIZE);
            let flow = i % FLOWS;
            bytes.extend_from_slice(&destination(flow).to_be_bytes()[2..]);
            bytes.extend_from_slice(&source(flow).to_be_bytes()[2..]);
            bytes.extend_from_slice(&[0x88, 0xb5]);
            bytes.resize(SIZE, 0);
            bytes
        });
        Packets {
            memory: weir_table::memory::huge_vec(STRIDE * PACKETS, 0u8),
            originals: packets.collect(),
            ports: vec![1; PACKETS],
            change: self.grows,
        }
    }
}

/// The registry, with a key in every AES-GCM object that is made.
fn with_key(externs: &Registry) -> Registry {
    let mut registry = externs.clone();
    if let Some(make) = externs.find_type("aes_gcm").cloned() {
        let constructor = move |instance: &weir_ir::ExternInstance, files: &dyn Files| {
            let object: Arc<dyn Object> = make(instance, files)?;
            if let Some(keys) = object.keys() {
                keys.set(0, &[7; 16]).map_err(|error| error.to_string())?;
            }
            Ok(object)
        };
        registry.object("aes_gcm", Arc::new(constructor));
    }
    registry
}

fn source(flow: usize) -> u64 {
    0x0200_0000_0000 + flow as u64
}

fn destination(flow: usize) -> u64 {
    0x0200_0001_0000 + flow as u64
}

/// Has this percentage of the packets call the extern.
pub fn fill(switch: &mut Switch, share: u32, work: Work) -> Result<()> {
    let table = switch.table("dmac")?;
    switch.write(Write::Table(table, TableOp::Clear))?;
    let mut destinations = Filler::new(switch, "dmac", "forward")?;
    for flow in 0..FLOWS {
        let calls = flow * 100 < FLOWS * share as usize;
        destinations.add(
            &[Match::Is(destination(flow))],
            &[2 + flow as u64, u64::from(calls), work.cycles()],
        )?;
    }
    switch.load_tables();
    Ok(())
}

/// The packets in memory.
pub struct Packets {
    memory: Vec<u8>,
    originals: Vec<Vec<u8>>,
    ports: Vec<u32>,
    change: bool,
}

impl Packets {
    /// Ports and fresh frames of all packets.
    pub fn frames(&mut self) -> (&[u32], Vec<Frame<'_>>) {
        let places = self.memory.chunks_exact_mut(STRIDE).zip(&self.originals);
        let frames = places.filter_map(|(place, original)| {
            place[HEADROOM..HEADROOM + original.len()].copy_from_slice(original);
            debug_assert!(place.len() >= HEADROOM + original.len() + TAILROOM);
            Frame::new(place, HEADROOM, original.len())
        });
        (&self.ports, frames.collect())
    }

    /// Whether the extern changes packets, so that they have to be made again for each round.
    pub fn change(&self) -> bool {
        self.change
    }
}
