//! Programs outside of the grid: the paper's test cases and bundled programs.

use crate::bench::{Case, Experiment, KeyAt, Mix, Plan, TableFill, bundled};
use crate::latency::counts::TableCount;
use crate::{load, packets};
use anyhow::{Context, Result, bail};
use std::sync::Arc;
use weir_ir::{MatchKind, Program};

/// A program that models are validated with.
pub struct Validation {
    /// Its name.
    pub name: &'static str,
    /// Headers of its packets, as the path is called.
    pub path: &'static str,
    what: What,
}

enum What {
    Paper(Paper),
    Bundled {
        entries: usize,
        size: u32,
        mix: &'static str,
    },
}

/// A test case of the paper.
struct Paper {
    packet: &'static str,
    size: u32,
    tables: &'static [Table],
}

struct Table {
    name: &'static str,
    action: &'static str,
    data: &'static [u64],
    keys: &'static [KeyAt],
    entries: usize,
    is_hit: bool,
}

/// A program, the entries of its tables, and the cycles of each repetition.
pub struct Outcome {
    /// The program as it is written.
    pub program: Arc<Program>,
    /// What its tables hold.
    pub counts: Vec<TableCount>,
    /// Bytes of the packets.
    pub size: u32,
    /// Median cycles per packet of each repetition.
    pub cycles: Vec<f64>,
}

/// A key of random values.
const fn exact(bit: usize, width: u32) -> KeyAt {
    KeyAt {
        bit,
        width,
        kind: MatchKind::Exact,
        value: None,
        masks: 1,
    }
}

/// Prefix lengths of LPM tables: those from a whole address to one of this many bits less.
const PREFIX_LENGTHS: u32 = 16;

/// A key of random prefixes.
const fn lpm(bit: usize, width: u32) -> KeyAt {
    KeyAt {
        kind: MatchKind::Lpm,
        masks: PREFIX_LENGTHS,
        ..exact(bit, width)
    }
}

/// A key that all entries have in common.
const fn fixed(bit: usize, width: u32, value: u64) -> KeyAt {
    KeyAt {
        value: Some(value),
        ..exact(bit, width)
    }
}

const fn paper(
    name: &'static str,
    path: &'static str,
    packet: &'static str,
    size: u32,
    tables: &'static [Table],
) -> Validation {
    Validation {
        name,
        path,
        what: What::Paper(Paper { packet, size, tables }),
    }
}

const fn table(
    name: &'static str,
    action: &'static str,
    data: &'static [u64],
    keys: &'static [KeyAt],
    entries: usize,
) -> Table {
    Table {
        name,
        action,
        data,
        keys,
        entries,
        is_hit: true,
    }
}

const fn case(name: &'static str, path: &'static str, entries: usize, size: u32, mix: &'static str) -> Validation {
    Validation {
        name,
        path,
        what: What::Bundled { entries, size, mix },
    }
}

/// Ethernet's addresses.
const MACS: &str = "020000000002 020000000001";

/// All of them.
pub const ALL: &[Validation] = &[
    paper(
        "tc1",
        "ethernet/vlan[0]/vlan[1]/ipv6/udp",
        "8100 0005 8100 0006 86dd 6000000000081140 20010db8000000000000000000000001 \
         20010db8000000000000000000000002 1388 1389 0008 0000",
        600,
        &[
            table("members", "forward", &[2], &[exact(0, 48), exact(116, 12)], 64),
            Table {
                // No packet matches: the next table's key is part of this one's.
                is_hit: false,
                ..table("pairs", "NoAction", &[], &[exact(240, 128), exact(368, 128)], 10_000)
            },
            table(
                "services",
                "forward_and_mark",
                &[2, 7],
                &[lpm(368, 128), exact(512, 16)],
                1000,
            ),
        ],
    ),
    paper(
        "tc2",
        "ethernet/ipv4/udp/vxlan/inner_ethernet",
        "0800 4500003200000000 40110000 0a000001 0a000002 1388 12b5 001e 0000 0800000000000100 \
         020000000004 020000000003 0800",
        900,
        &[table(
            "tunnels",
            "forward",
            &[2],
            &[exact(208, 32), exact(240, 32), exact(272, 16), fixed(288, 16, 4789)],
            5000,
        )],
    ),
    paper(
        "tc3",
        "ethernet/mpls[0]/mpls[1]/mpls[2]/mpls[3]/inner_ethernet",
        "8847 00001040 00002040 00003040 00004140 020000000004 020000000003 0800",
        700,
        &[table("labels", "forward_and_swap", &[2, 77], &[exact(112, 20)], 20_000)],
    ),
    paper(
        "tc4",
        "ethernet/mpls[0]/mpls[1]/mpls[2]/mpls[3]/mpls[4]/ipv4",
        "8847 00001040 00002040 00003040 00004040 00005140 4500001400000000 40110000 0a000001 0a000002",
        1300,
        &[
            table("labels", "forward", &[2], &[exact(112, 20)], 1000),
            table("routes", "route", &[2, 1, 2], &[lpm(400, 32)], 1000),
        ],
    ),
    paper(
        "tc5",
        "ethernet/ipv4/tcp/int_shim/int_header/int_metadata[0]/int_metadata[1]",
        "0800 455c006000000000 40060000 0a000001 0a000002 1388138900000000000000005000000000000000 01000700 \
         100000000000000000000000 0000000100000010 0000000200000020",
        1100,
        &[table("pairs", "forward", &[2], &[exact(208, 32), exact(240, 32)], 50)],
    ),
    paper(
        "tc6a",
        "ethernet/ipv4/gre/nvgre/inner_ethernet",
        "0800 4500002a00000000 402f0000 0a000001 0a000002 20006558 00000100 020000000004 020000000003 0800",
        200,
        &[
            table("hosts", "NoAction", &[], &[exact(0, 48), exact(48, 48)], 5000),
            table("segments", "forward", &[2], &[exact(240, 32), exact(304, 24)], 1000),
        ],
    ),
    paper(
        "tc6b",
        "ethernet/ipv6/udp",
        "86dd 6000000000081140 20010db8000000000000000000000001 20010db8000000000000000000000002 1388 1389 0008 0000",
        300,
        &[
            table("routes", "forward", &[2], &[lpm(304, 128)], 30_000),
            table("flows", "remember", &[9], &[exact(432, 32)], 1500),
        ],
    ),
    case("l2_switch", "ethernet", 1000, 200, ""),
    case("ipv4_router", "ethernet/ipv4", 1000, 200, ""),
    case("acl_firewall", "ethernet/ipv4", 1000, 200, ""),
    case("acl_firewall_ternary", "ethernet/ipv4/udp", 100, 200, ""),
    case("rina_router", "ethernet/efcp", 1000, 200, "efcp"),
];

impl Validation {
    /// Measures the program `repetitions` times, each time on a fresh switch.
    pub fn measure(&self, repetitions: u32, plan: Plan) -> Result<Outcome> {
        match &self.what {
            What::Paper(paper) => self.measure_paper(paper, repetitions, plan),
            What::Bundled { entries, size, mix } => {
                let program = Arc::new(compiled(self.name)?);
                let mix = match *mix {
                    "" => Mix::default(),
                    mix => mix.parse::<Mix>().map_err(anyhow::Error::msg)?,
                };
                let mut case = Case::bundled(self.name, *entries, mix)?;
                case.size = *size as usize;
                let (mut cycles, mut counts) = (Vec::new(), Vec::new());
                for _ in 0..repetitions {
                    let (median, held) = bundled(&case, plan)?;
                    cycles.push(median);
                    counts = held;
                }
                Ok(Outcome {
                    program,
                    counts,
                    size: *size,
                    cycles,
                })
            }
        }
    }

    fn measure_paper(&self, paper: &Paper, repetitions: u32, plan: Plan) -> Result<Outcome> {
        let program = Arc::new(compiled(self.name)?);
        let mut template = packets::from_hex(&format!("{MACS} {}", paper.packet))?;
        template.resize((paper.size as usize).max(template.len()), 0);
        let fill = |table: &Table| TableFill {
            table: table.name.to_owned(),
            action: table.action,
            data: table.data.to_vec(),
            keys: table.keys.to_vec(),
            entries: table.entries,
            is_hit: table.is_hit,
        };
        let experiment = Experiment {
            program: load::optimized(&program),
            fills: paper.tables.iter().map(fill).collect(),
            template,
            port: 1,
        };
        let (mut cycles, mut counts) = (Vec::new(), Vec::new());
        for _ in 0..repetitions {
            let (median, held) = experiment.run(plan).with_context(|| self.name)?;
            cycles.push(median);
            counts = held;
        }
        Ok(Outcome {
            program,
            counts,
            size: paper.size,
            cycles,
        })
    }
}

/// A bundled program as it is written.
fn compiled(name: &str) -> Result<Program> {
    let file = format!("{name}.p4");
    let Some((_, text)) = crate::bundled::PROGRAMS.iter().find(|(n, _)| *n == file) else {
        bail!("no program {name} is bundled");
    };
    super::compile(&file, text)
}
