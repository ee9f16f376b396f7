//! What is measured: how tables are filled, and packets that hit them.

mod ipv4;
mod l2_switch;

use super::pool::Packet;
use super::random::Random;
use anyhow::{Result, bail};
use weir_switch::Switch;

/// What `--table-entries` and its companions ask for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Entries of the table that the program is about.
    pub entries: usize,
    /// Packets.
    pub pool: usize,
    /// Flows they belong to.
    pub flows: usize,
    /// Bytes of a packet.
    pub size: usize,
    /// How packets are spread over flows.
    pub spread: Spread,
    /// Of a hundred packets so many are to destinations that are not known.
    pub misses: u32,
}

/// How packets are spread over flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Each flow as often as any other.
    Uniform,
    /// The `n`th flow `n^exponent` times less often than the first.
    Zipf(f64),
}

impl Wanted {
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
                (0..self.pool)
                    .map(|_| {
                        let at = random.fraction() * sum;
                        shares.partition_point(|s| *s <= at).min(self.flows - 1)
                    })
                    .collect()
            }
        };
        random.shuffle(&mut flows);
        flows
    }
}

/// A program by hand.
pub enum ByHand {
    /// `l2_switch.p4`
    L2(Box<weir_ceiling::L2Switch>),
    /// `ipv4_router.p4`
    Router(Box<weir_ceiling::Router>),
}

/// Tables and packets for a program.
pub trait Workload {
    /// Fills the tables.
    fn fill(&self, switch: &mut Switch) -> Result<()>;

    /// The packets.
    fn packets(&self) -> &[Packet];

    /// The same program by hand, where we have it.
    fn by_hand(&self) -> Option<ByHand> {
        None
    }
}

/// Programs that tables can be filled for.
pub const NAMES: &[&str] = &["l2_switch", "ipv4_router"];

/// Makes the workload of a bundled program.
pub fn bundled(program: &str, wanted: &Wanted) -> Result<Box<dyn Workload>> {
    Ok(match program {
        "l2_switch" => Box::new(l2_switch::L2::new(wanted)),
        "ipv4_router" => Box::new(ipv4::Router::new(wanted)),
        _ => bail!(
            "--table-entries can fill the tables of {}; for other programs give --entries FILE and --packet",
            NAMES.join(", ")
        ),
    })
}

/// A port's number among those that are used.
const PORTS: u64 = 16;

/// The port that a number stands for: from 1.
fn port(number: u64) -> u64 {
    1 + number % PORTS
}
