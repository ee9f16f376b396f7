//! How tables are filled, and packets that hit them.

mod acl;
mod int;
mod ipv4;
mod l2_switch;
mod mixes;
mod rina;

use super::pool::Packet;
use super::random::Random;
use anyhow::{Result, bail, ensure};
use std::fmt;
use std::str::FromStr;
use weir_switch::Switch;

/// What is to be made.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Entries of the table that the program is about.
    pub entries: usize,
    /// Packets.
    pub pool: usize,
    /// Flows they belong to.
    pub flows: usize,
    /// Bytes of a packet, unless it needs more.
    pub size: usize,
    /// How packets are spread over flows.
    pub spread: Spread,
    /// What else there is to them.
    pub mix: Mix,
}

/// How packets are spread over flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Each flow as often as any other.
    Uniform,
    /// The `n`th flow `n^exponent` times less often than the first.
    Zipf(f64),
}

impl FromStr for Spread {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, exponent) = text.split_once(':').unwrap_or((text, "1"));
        match (name, exponent.parse()) {
            ("uniform", _) if text == "uniform" => Ok(Spread::Uniform),
            ("zipf", Ok(exponent)) if (0.0..=10.0).contains(&exponent) => Ok(Spread::Zipf(exponent)),
            _ => Err(format!(
                "`{text}` is no distribution; write uniform, zipf or zipf:EXPONENT with 0 to 10"
            )),
        }
    }
}

/// What there is to packets besides hitting a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mix {
    /// Of a hundred packets so many hit nothing.
    pub misses: u32,
    /// `mixes`: entries have four actions, by chance.
    pub actions: bool,
    /// `mixes`: half of the packets go through an extra table, by chance.
    pub extra: bool,
    /// `rina_router`: EFCP, not IPv4.
    pub efcp: bool,
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut mix = Mix::default();
        let mut seen = Vec::new();
        for part in text.split(',') {
            // IPv4 and EFCP are the two values of one thing.
            let what = match part.split(':').next().unwrap_or(part) {
                "ipv4" | "efcp" => "ipv4 or efcp",
                what => what,
            };
            if seen.contains(&what) {
                return Err(format!("`{text}` says {what} twice"));
            }
            seen.push(what);
            match part.split_once(':').unwrap_or((part, "")) {
                ("misses", percent) => match percent.parse() {
                    Ok(percent @ 0..=100) => mix.misses = percent,
                    _ => {
                        return Err(format!(
                            "`{part}`: write misses:PERCENT with 0 to 100, for example misses:50"
                        ));
                    }
                },
                ("actions", "") => mix.actions = true,
                ("extra", "") => mix.extra = true,
                ("efcp", "") => mix.efcp = true,
                ("ipv4", "") => mix.efcp = false,
                _ => {
                    return Err(format!(
                        "there is no mix `{part}`; there are misses:PERCENT, for rina_router ipv4 and efcp, for mixes actions and extra; several with commas between them"
                    ));
                }
            }
        }
        Ok(mix)
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.misses > 0 {
            parts.push(format!("misses:{}", self.misses));
        }
        let named = [(self.actions, "actions"), (self.extra, "extra"), (self.efcp, "efcp")];
        parts.extend(named.iter().filter(|n| n.0).map(|n| n.1.to_owned()));
        f.write_str(&parts.join(","))
    }
}

impl Wanted {
    /// Makes the packets: `make` is given the flow, and whether it is to miss.
    fn packets(&self, random: &mut Random, mut make: impl FnMut(&mut Random, usize, bool) -> Packet) -> Vec<Packet> {
        let flows = self.flows_of_packets(random);
        let packets = flows.into_iter().map(|flow| {
            let misses = random.below(100) < self.mix.misses as usize;
            make(random, flow, misses)
        });
        packets.collect()
    }

    /// The flow of each packet.
    fn flows_of_packets(&self, random: &mut Random) -> Vec<usize> {
        let mut flows: Vec<usize> = match self.spread {
            Spread::Uniform => (0..self.pool).map(|i| i % self.flows).collect(),
            Spread::Zipf(exponent) => {
                let mut sum = 0.0;
                let shares = (1..=self.flows).map(|n| {
                    sum += (n as f64).powf(-exponent);
                    sum
                });
                let shares: Vec<f64> = shares.collect();
                let flow = |_| {
                    let at = random.fraction() * sum;
                    shares.partition_point(|s| *s <= at).min(self.flows - 1)
                };
                (0..self.pool).map(flow).collect()
            }
        };
        random.shuffle(&mut flows);
        flows
    }
}

/// A program by hand.
pub enum ByHand {
    /// `l2_switch.p4`
    L2(Box<weir_baseline::L2Switch>),
    /// `ipv4_router.p4`
    Router(Box<weir_baseline::Router>),
}

/// Tables and packets for a program.
pub trait Workload {
    /// Fills the tables.
    fn fill(&self, switch: &mut Switch) -> Result<()>;

    /// The same program by hand, where we have it.
    fn by_hand(&self) -> Option<ByHand> {
        None
    }

    /// The packets.
    fn into_packets(self: Box<Self>) -> Vec<Packet>;
}

/// The tables and packets of another program, for a program without a version by hand.
struct Unwritten<W>(W);

impl<W: Workload> Workload for Unwritten<W> {
    fn fill(&self, switch: &mut Switch) -> Result<()> {
        self.0.fill(switch)
    }

    fn into_packets(self: Box<Self>) -> Vec<Packet> {
        Box::new(self.0).into_packets()
    }
}

/// A bundled program for which tables can be filled.
struct Known {
    name: &'static str,
    /// The most entries.
    entries: usize,
    /// Mixes besides misses.
    mixes: &'static [&'static str],
    make: fn(&Wanted) -> Box<dyn Workload>,
}

const KNOWN: &[Known] = &[
    Known {
        name: "l2_switch",
        entries: 1 << 20,
        mixes: &[],
        make: |w| Box::new(l2_switch::L2::new(w)),
    },
    Known {
        name: "l2_switch_tna",
        entries: 1 << 20,
        mixes: &[],
        make: |w| Box::new(Unwritten(l2_switch::L2::new(w))),
    },
    Known {
        name: "ipv4_router",
        entries: 1 << 20,
        mixes: &[],
        make: |w| Box::new(ipv4::Router::new(w)),
    },
    Known {
        name: "ipv4_router_psa",
        entries: 1 << 20,
        mixes: &[],
        make: |w| Box::new(Unwritten(ipv4::Router::new(w))),
    },
    Known {
        name: "acl_firewall",
        entries: 1 << 20,
        mixes: &[],
        make: |w| Box::new(acl::Exact::new(w)),
    },
    Known {
        name: "acl_firewall_tna",
        entries: 1 << 20,
        mixes: &[],
        make: |w| Box::new(Unwritten(acl::Exact::new(w))),
    },
    Known {
        name: "acl_firewall_ternary",
        entries: 65_536,
        mixes: &[],
        make: |w| Box::new(acl::Ternary::new(w)),
    },
    Known {
        name: "int_md",
        entries: 65_536,
        mixes: &[],
        make: |w| Box::new(int::Transit::new(w)),
    },
    Known {
        name: "rina_router",
        entries: 60_000,
        mixes: &["efcp"],
        make: |w| Box::new(rina::Rina::new(w)),
    },
    Known {
        name: "mixes",
        entries: 1 << 20,
        mixes: &["actions", "extra"],
        make: |w| Box::new(mixes::Mixes::new(w)),
    },
];

/// Says what is wrong with a number of entries or a mix for a program.
pub fn check(program: &str, entries: usize, mix: Mix) -> Result<()> {
    let names = || KNOWN.iter().map(|k| k.name).collect::<Vec<_>>().join(", ");
    let Some(known) = KNOWN.iter().find(|k| k.name == program) else {
        bail!(
            "--table-entries knows the tables of {}, not of `{program}`; for other programs give --entries FILE and --packet HEX|PCAP",
            names()
        );
    };
    ensure!(
        (2..=known.entries).contains(&entries),
        "{program} can be filled with 2 to {} entries, not {entries}",
        known.entries
    );
    let others = Mix { misses: 0, ..mix }.to_string();
    let unknown = others.split(',').find(|m| !m.is_empty() && !known.mixes.contains(m));
    if let Some(unknown) = unknown {
        let all = ["misses:PERCENT"]
            .iter()
            .chain(known.mixes)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        bail!("{program} has no mix `{unknown}`; it has {all}");
    }
    Ok(())
}

/// Makes the workload of a bundled program.
pub fn bundled(program: &str, wanted: &Wanted) -> Result<Box<dyn Workload>> {
    check(program, wanted.entries, wanted.mix)?;
    let known = KNOWN.iter().find(|k| k.name == program);
    Ok(known.map_or_else(|| unreachable!("it was checked"), |k| (k.make)(wanted)))
}

/// A port's number among those that are used.
const PORTS: u64 = 16;

/// The port that a number stands for: from 1.
fn port(number: u64) -> u64 {
    1 + number % PORTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_read_and_written() {
        let mix: Mix = "misses:50,actions".parse().unwrap();
        assert_eq!(
            (mix.misses, mix.actions, mix.to_string().as_str()),
            (50, true, "misses:50,actions")
        );
        assert!("misses:101".parse::<Mix>().unwrap_err().contains("0 to 100"));
        assert!("more".parse::<Mix>().unwrap_err().contains("extra"));
        assert!(
            check("l2_switch", 10, mix)
                .unwrap_err()
                .to_string()
                .contains("misses:PERCENT")
        );
        assert!(check("mixes", 10, mix).is_ok());
        assert!(
            check("int_md", 1 << 20, Mix::default())
                .unwrap_err()
                .to_string()
                .contains("65536")
        );
        assert!(check("int_lab", 10, mix).unwrap_err().to_string().contains("--entries"));
    }

    #[test]
    fn a_few_flows_have_most_of_the_packets() {
        let wanted = Wanted {
            entries: 2,
            pool: 10_000,
            flows: 1000,
            size: 64,
            spread: "zipf:1.2".parse().unwrap(),
            mix: Mix::default(),
        };
        let flows = wanted.flows_of_packets(&mut Random::new(1));
        let of_first = flows.iter().filter(|f| **f == 0).count();
        assert!((1500..3500).contains(&of_first), "{of_first}");
        assert!(flows.iter().all(|f| *f < 1000));
        assert!("zipf:x".parse::<Spread>().unwrap_err().contains("zipf:EXPONENT"));
    }

    #[test]
    fn every_program_gives_the_packets_that_were_asked_for() {
        for known in KNOWN {
            let case = super::super::case::Case::bundled(known.name, 100, Mix::default()).unwrap();
            let mut rig = case.with_pool(200).rig(&[super::super::rig::Side::Interp]).unwrap();
            assert_eq!(rig.pool.len(), 200);
            let sent = rig.check(&[super::super::rig::Side::Interp]).unwrap();
            assert!(sent > 0.99, "{}: {sent} of the packets leave", known.name);
        }
    }
}
