//! The command line of `weir int measure` and `weir int delay`.

use super::frame::{LONGEST, Mac, SHORTEST};
use super::path::ClockChoice;
use crate::int::arguments::time;
use clap::Args;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// Most sizes, and most rates.
const MOST: usize = 256;

/// Arguments of `weir int measure`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir int measure --demo                                    no device, no privileges: a simulated one\n  sudo weir int measure --out eth1 --in eth2 --name AS4610 --baseline-out eth3 --baseline-in eth4\n  sudo weir int measure --out eth1 --in eth2 -o loopback     the loopback alone: ports joined by a cable\n  sudo weir int measure --out eth1 --in eth2 --baseline loopback/measure.json --size 64..1514:50 --rate 1000,100000\n\nThe result: a table, and measure.json, samples.csv, measure.html and plots (SVG) in the directory of -o.\ndocs/measure.md says what is measured where, and what the errors are.\n\nExit codes: 0 measured, 1 measured but packets were lost, duplicated or reordered, 2 nothing measured."
)]
pub struct Measure {
    /// Interface that sends to the device
    #[arg(long = "out", value_name = "IF", required_unless_present = "demo")]
    pub source: Option<String>,
    /// Interface that receives from the device
    #[arg(long = "in", value_name = "IF", required_unless_present = "demo")]
    pub sink: Option<String>,
    /// Measure a simulated device (100 us, store-and-forward at 1 Gbit/s) over UDP of this machine
    #[arg(long, conflicts_with_all = ["source", "sink", "baseline", "baseline_source", "clocks"])]
    pub demo: bool,
    /// Interface that sends to the loopback, which is measured first
    #[arg(long = "baseline-out", value_name = "IF", requires = "baseline_sink")]
    pub baseline_source: Option<String>,
    /// Interface that receives from the loopback
    #[arg(long = "baseline-in", value_name = "IF", requires = "baseline_source")]
    pub baseline_sink: Option<String>,
    /// The loopback's results of an earlier measurement, with the same sizes, rates and clocks
    #[arg(long, value_name = "FILE.json", conflicts_with = "baseline_source")]
    pub baseline: Option<PathBuf>,
    /// Sizes of frames in bytes, without the checksum of Ethernet: numbers and ranges FROM..TO:STEP
    #[arg(long = "size", value_name = "SIZES", default_value = "106,256,512,1024,1514", value_parser = sizes)]
    pub sizes: Numbers,
    /// Packets per second: numbers and ranges
    #[arg(long = "rate", value_name = "RATES", default_value = "2000", value_parser = rates)]
    pub rates: Numbers,
    /// Packets that count, for each size and rate
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub samples: u64,
    /// Longest time for each size and rate; fewer packets count if it is too short for all
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Packets before those that count
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub warm_up: u64,
    /// How long the sink waits for the last packets
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time)]
    pub timeout: Duration,
    /// Name of the device in the results
    #[arg(long, value_name = "NAME", default_value = "Device")]
    pub name: String,
    /// Directory of the results
    #[arg(short = 'o', value_name = "DIR", default_value = "weir-measure")]
    pub output: PathBuf,
    /// The results as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Clocks of the timestamps
    #[arg(long = "stamps", value_enum, default_value_t = ClockChoice::Auto)]
    pub clocks: ClockChoice,
    /// Cores of source and sink
    #[arg(long, value_name = "SOURCE,SINK", value_parser = cores)]
    pub cores: Option<(usize, usize)>,
    #[command(flatten)]
    pub addresses: AddressArguments,
}

/// Addresses of the packets.
#[derive(Args)]
#[command(next_help_heading = "Packets")]
pub struct AddressArguments {
    /// Destination address of Ethernet: that of the router, if the device is one
    #[arg(long, value_name = "MAC", value_parser = mac)]
    pub destination_mac: Option<Mac>,
    /// Source address of IPv4
    #[arg(long, value_name = "IP")]
    pub source_address: Option<Ipv4Addr>,
    /// Destination address of IPv4
    #[arg(long, value_name = "IP")]
    pub destination_address: Option<Ipv4Addr>,
    /// UDP destination port, which signals INT in the lab format
    #[arg(long, value_name = "PORT", default_value_t = 5000, value_parser = clap::value_parser!(u16).range(10..))]
    pub port: u16,
}

/// Arguments of `weir int delay`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  sudo weir int delay --in veth1 --out veth2 --delay 50us --link 1G --json\n\nIt forwards from one interface to another with a known delay, until it gets SIGINT or SIGTERM. Then it writes the\ndelays that it recorded. weir int measure, on the other ends, must find the same: docs/measure.md."
)]
pub struct Delay {
    /// Interface that receives
    #[arg(long = "in", value_name = "IF")]
    pub receiver: String,
    /// Interface that sends
    #[arg(long = "out", value_name = "IF")]
    pub sender: String,
    /// Delay of every packet
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = time)]
    pub delay: Duration,
    /// Bits per second (with K, M or G) of a link that a packet must have passed before it is
    /// forwarded
    #[arg(long, value_name = "RATE", value_parser = link)]
    pub link: Option<u64>,
    /// What it recorded as JSON
    #[arg(long)]
    pub json: bool,
}

/// Numbers, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers(pub Vec<u32>);

/// Numbers and ranges `FROM..TO:STEP`, with commas between them; both ends of a range are in.
fn numbers(text: &str, least: usize, most: usize) -> Result<Numbers, String> {
    let number = |text: &str| {
        let number = text.parse::<u32>().ok();
        let number = number.filter(|n| (least..=most).contains(&(*n as usize)));
        number.ok_or_else(|| format!("`{text}` is no number from {least} to {most}"))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let Some((from, rest)) = part.split_once("..") else {
            all.push(number(part)?);
            continue;
        };
        let (to, step) = rest
            .split_once(':')
            .ok_or_else(|| format!("`{part}` has no step: write {from}..{rest}:STEP"))?;
        let step = step.parse::<usize>().ok().filter(|step| *step > 0);
        let step = step.ok_or_else(|| format!("`{part}`: the step is no number above 0"))?;
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(format!("`{part}`: {from} is more than {to}"));
        }
        all.extend((from..=to).step_by(step).take(MOST + 1));
        if all.len() <= MOST && all.last() != Some(&to) {
            all.push(to);
        }
    }
    all.sort_unstable();
    all.dedup();
    if all.len() > MOST {
        return Err(format!("`{text}` has more than {MOST} values: make the step larger"));
    }
    Ok(Numbers(all))
}

fn sizes(text: &str) -> Result<Numbers, String> {
    numbers(text, SHORTEST, LONGEST)
}

fn rates(text: &str) -> Result<Numbers, String> {
    numbers(text, 1, 10_000_000)
}

fn cores(text: &str) -> Result<(usize, usize), String> {
    let both = text
        .split_once(',')
        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let both = both.ok_or_else(|| format!("`{text}` is no pair of cores, as 2,3"))?;
    let known = weir_io::cores();
    for core in [both.0, both.1] {
        if !known.contains(&core) {
            return Err(format!("there is no core {core} for this process"));
        }
    }
    Ok(both)
}

fn mac(text: &str) -> Result<Mac, String> {
    let parts: Vec<u8> = text
        .split(':')
        .filter_map(|part| u8::from_str_radix(part, 16).ok())
        .collect();
    let mac = Mac::try_from(parts).ok().filter(|_| text.len() == 17);
    mac.ok_or_else(|| format!("`{text}` is no Ethernet address, as 02:00:00:00:00:01"))
}

fn link(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1e3),
        Some((at, 'M' | 'm')) => (&text[..at], 1e6),
        Some((at, 'G' | 'g')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let rate = digits.parse::<f64>().ok().map(|number| number * unit);
    let rate = rate.filter(|rate| (1e3..=1e12).contains(rate));
    rate.map(|rate| rate as u64)
        .ok_or_else(|| format!("`{text}` is no speed from 1K to 1000G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_both_ends() {
        assert_eq!(sizes("64..200:50").unwrap(), Numbers(vec![64, 114, 164, 200]));
        assert_eq!(sizes("1514,106,106").unwrap(), Numbers(vec![106, 1514]));
        for wrong in ["", "59", "9019", "64..128", "64..128:0", "128..64:1", "64..9018:1", "a"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
        assert!(rates("1..10000000:1").is_err());
    }

    #[test]
    fn links_have_units() {
        assert_eq!(link("1G").unwrap(), 1_000_000_000);
        assert_eq!(link("2.5M").unwrap(), 2_500_000);
        for wrong in ["", "G", "0", "-1G", "1T", "nanG"] {
            assert!(link(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_have_six_bytes() {
        assert_eq!(mac("02:00:00:00:00:0a").unwrap(), [2, 0, 0, 0, 0, 10]);
        for wrong in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:0a:0b",
            "2:0:0:0:0:1",
            "zz:00:00:00:00:0a",
        ] {
            assert!(mac(wrong).is_err(), "{wrong}");
        }
    }
}
