//! The command line of `weir int`.

use super::measure::{Delay, Measure};
use clap::{Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use weir_collector::Limits;
use weir_int::Uint;
use weir_int::packet::DscpMatch;
use weir_io::DeviceSpec;

/// Arguments of `weir int`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir int collect --listen 0.0.0.0:5900 -o int.db        reports from switches, until Ctrl-C\n  weir int show links int.db                              latency of each link\n  weir int show flows int.db --sort latency --limit 20\n  weir int query int.db \"SELECT port, quantile(merged(histogram), 0.99) FROM ports GROUP BY port\"\n  weir int report int.db -o report.html                   all of it as one page\n  weir int demo                                           three switches, a slow hop and a lossy link\n  weir int measure --demo                                 the delay of a device, a simulated one here\n\ndocs/int.md is the guide."
)]
pub struct Int {
    #[command(subcommand)]
    pub task: Task,
}

/// What is done.
#[derive(Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is not moved often")]
pub enum Task {
    /// Collect telemetry reports (0.5, 1.0, 2.0) into a file
    Collect(Collect),
    /// Answer a query in SQL from a file of results
    Query(Query),
    /// Show flows, paths, ports, queues, links, events, exporters, clocks, or intervals
    Show(Show),
    /// Write a page (HTML, one file) of a file of results
    Report(Report),
    /// Run three switches with a slow hop and a lossy link, and let INT find both
    Demo(Demo),
    /// Measure how many reports per second the collector takes
    Bench(Bench),
    /// Measure the delay of a device between two ports
    Measure(Measure),
    /// Be a device with a known delay, to check `measure` against
    #[command(hide = true)]
    Delay(Delay),
    /// Write dissectors for Wireshark: INT, telemetry reports, EFCP
    Wireshark(Wireshark),
}

/// Arguments of `weir int collect`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir int collect --listen 0.0.0.0:5900 -o int.db --dscp 0x17\n  weir int collect --capture reports.pcap -o int.db --dscp 0x17\n  sudo weir int collect --interface eth1 -o int.db --int-port 5000 --threads 4\n  weir int collect --listen 0.0.0.0:5900 -o int.db --queue-limit 1000:500 --flow-limit 2ms --http 127.0.0.1:9100\n\nSay how packets in your network signal INT: --dscp, --int-port, --lab-port or --probe-marker. Without any,\nreports are still used for what they say of the node that sent them.\n\nExit codes: 0 collected, 1 collected but reports were lost or malformed, 2 wrong input."
)]
pub struct Collect {
    /// Take reports from UDP at this address
    #[arg(long, value_name = "ADDRESS", required_unless_present_any = ["interface", "capture"], conflicts_with_all = ["interface", "capture"])]
    pub listen: Option<SocketAddr>,
    /// Take reports from frames of an interface (or xdp:NAME, tap:NAME)
    #[arg(long, value_name = "NAME", conflicts_with = "capture", value_parser = device)]
    pub interface: Option<DeviceSpec>,
    /// Take reports from a capture (pcap, pcapng)
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// UDP destination ports of reports, with --interface and --capture; all if not given
    #[arg(long, value_name = "PORT", value_delimiter = ',', conflicts_with = "listen")]
    pub report_port: Vec<u16>,
    /// File of the results (SQLite); an existing one is continued
    #[arg(short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write all reports, one row per hop, to this new file (needs the cargo feature parquet)
    #[arg(long, value_name = "FILE.parquet")]
    pub raw: Option<PathBuf>,
    /// Also send results to ClickHouse at this URL; user and password by the variables
    /// CLICKHOUSE_USER and CLICKHOUSE_PASSWORD (needs the cargo feature clickhouse)
    #[arg(long, value_name = "URL")]
    pub clickhouse: Option<String>,
    /// Length of an interval
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    pub interval: Duration,
    /// Delete results older than this
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub retention: Option<Duration>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub format: Format,
    #[command(flatten)]
    pub limits: WatchLimits,
    /// Estimate clock offsets between nodes, or trust clocks to be synchronised
    #[arg(long, value_enum, default_value_t = ClockChoice::Estimated)]
    pub clocks: ClockChoice,
    /// The most flows at a time
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = flows)]
    pub flows: usize,
    /// Threads that analyse; each has its share of the flows
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub threads: u8,
    /// Bytes of the socket's buffer in the kernel, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer: u32,
    /// Serve counters and quantiles to Prometheus at this address
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
    /// The totals as JSON at the end
    #[arg(long)]
    pub json: bool,
}

/// How reports and packets are read.
#[derive(Args)]
pub struct Format {
    /// DSCP value, with a mask after a slash, of packets with INT
    #[arg(long, value_name = "VALUE[/MASK]", value_parser = dscp)]
    pub dscp: Option<DscpMatch>,
    /// UDP destination ports of packets with INT
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub int_port: Vec<u16>,
    /// UDP destination ports of packets with INT in the format of int_lab
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub lab_port: Vec<u16>,
    /// First 8 bytes (hexadecimal) behind the TCP or UDP header of packets with INT
    #[arg(long, value_name = "HEX", value_parser = marker)]
    pub probe_marker: Option<u64>,
    /// Version of the reports
    #[arg(long, value_enum, default_value_t = ReportVersionChoice::Detect)]
    pub report_version: ReportVersionChoice,
    /// INT domain whose sources number the packets of flows (int_md does): what is missing is lost
    #[arg(long, value_name = "DOMAIN", value_parser = domain)]
    pub flow_numbers: Option<u16>,
    /// Unit of timestamps
    #[arg(long, value_enum, default_value_t = Unit::Ns)]
    pub timestamp_unit: Unit,
    /// Unit of hop latencies
    #[arg(long, value_enum, default_value_t = Unit::Ns)]
    pub latency_unit: Unit,
}

/// Limits of watched quantities.
#[derive(Args)]
pub struct WatchLimits {
    /// Event if a flow's end-to-end latency reaches this, and when it falls to FALL (80 % of it if
    /// not given)
    #[arg(long, value_name = "TIME[:FALL]", value_parser = time_limits)]
    pub flow_limit: Option<Limits>,
    /// Event if a hop's latency reaches this, and when it falls to FALL
    #[arg(long, value_name = "TIME[:FALL]", value_parser = time_limits)]
    pub hop_limit: Option<Limits>,
    /// The same of the occupancy of a queue, in the node's unit
    #[arg(long, value_name = "N[:FALL]", value_parser = number_limits)]
    pub queue_limit: Option<Limits>,
    /// The same of the utilisation of a port, in the node's unit
    #[arg(long, value_name = "N[:FALL]", value_parser = number_limits)]
    pub utilisation_limit: Option<Limits>,
    /// Event if a watched quantity changes by this share of its limit, in percent
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub delta: Option<u8>,
    /// Repeat the value of a watched quantity after this time without an event
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub keepalive: Option<Duration>,
}

/// Whether clocks are compared.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum ClockChoice {
    /// Offsets are estimated where links have traffic in both directions
    Estimated,
    /// All clocks are equal
    Trusted,
}

/// A version of reports.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum ReportVersionChoice {
    /// By the first byte of each datagram
    Detect,
    /// Always 0.5
    #[value(name = "0.5")]
    V0_5,
    /// Always 1.0
    #[value(name = "1.0")]
    V1_0,
    /// Always 2.0
    #[value(name = "2.0")]
    V2_0,
}

/// A unit of time.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
}

impl Unit {
    /// ns per unit.
    pub fn nanoseconds(self) -> u32 {
        match self {
            Unit::Ns => 1,
            Unit::Us => 1000,
        }
    }
}

/// Arguments of `weir int query`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir int query int.db \"SELECT name FROM sqlite_schema WHERE type = 'table'\"\n  weir int query int.db \"SELECT link, quantile(merged(histogram), 0.99) AS p99 FROM links GROUP BY link\"\n  weir int query int.db \"SELECT flow, latency_max FROM flows ORDER BY latency_max DESC LIMIT 5\" --json\n\nFunctions over histograms: merged(histogram) (an aggregate), quantile(histogram, share), mean, total, minimum, maximum.\ndocs/int.md lists the tables."
)]
pub struct Query {
    /// File of results
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The query
    #[arg(value_name = "SQL")]
    pub sql: String,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// What is shown.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum View {
    /// Flows: path, latency, jitter, drops
    Flows,
    /// Paths: end-to-end latency
    Paths,
    /// Egress ports: latency of the node, utilisation
    Ports,
    /// Queues: occupancy
    Queues,
    /// Links: latency
    Links,
    /// Events, latest last
    Events,
    /// Senders of reports: lost, late and doubled ones
    Exporters,
    /// Offsets of clocks
    Clocks,
    /// Intervals with their totals
    Intervals,
    /// Reports that were malformed or not used, by reason
    Unused,
}

/// Arguments of `weir int show`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir int show flows int.db --sort latency --limit 10\n  weir int show links int.db --since 10m\n  weir int show events int.db --json"
)]
pub struct Show {
    /// What is shown
    #[arg(value_enum)]
    pub view: View,
    /// File of results
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only results of the last TIME; of `flows` those with a report in it, with their totals
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<Duration>,
    /// Column by which rows are sorted, largest first
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// The most rows
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir int report`.
#[derive(Args)]
#[command(after_help = "Example:\n  weir int report int.db -o report.html --since 1h")]
pub struct Report {
    /// File of results
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where the page is written
    #[arg(short = 'o', value_name = "FILE.html", default_value = "report.html")]
    pub output: PathBuf,
    /// Only results of the last TIME
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<Duration>,
}

/// Arguments of `weir int demo`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  weir int demo -o demo.html --results demo.db --captures demo\n  weir int show links demo.db\n  tcpdump -vv -r demo/hosts.pcap"
)]
pub struct Demo {
    /// Where the page is written
    #[arg(short = 'o', value_name = "FILE.html", default_value = "weir-int.html")]
    pub output: PathBuf,
    /// Keep the results in this file
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// How long traffic is sent, by the clock of the network
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub duration: Duration,
    /// Write captures to this folder: hosts.pcap, links.pcap (with INT), reports.pcap
    #[arg(long, value_name = "DIR")]
    pub captures: Option<PathBuf>,
    /// The outcome as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir int bench`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir int bench\n  weir int bench --hops 5 --flows 1000000 --reports 2000000\n  weir int bench --udp"
)]
pub struct Bench {
    /// Hops of each report
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub hops: u32,
    /// Flows, in a random order
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub flows: u32,
    /// Distinct reports in memory
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    pub reports: u32,
    /// Also over UDP on loopback
    #[arg(long)]
    pub udp: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir int wireshark`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  weir int wireshark -o ~/.local/lib/wireshark/plugins    Wireshark loads what is there\n\ndocs/wireshark.md says more."
)]
pub struct Wireshark {
    /// Where the Lua scripts are written
    #[arg(short = 'o', value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
}

/// A time with a unit.
pub fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = UNITS.iter().find(|(name, _)| *name == unit);
    let seconds = unit.and_then(|(_, seconds)| Some(number.parse::<f64>().ok()? * seconds));
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| format!("`{text}` is no time: write a number with ns, us, ms, s, m, h or d"))
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    let range = Duration::from_millis(100)..=Duration::from_secs(86_400);
    if range.contains(&time) {
        Ok(time)
    } else {
        Err(format!("`{text}` is no interval: 100ms to 1d"))
    }
}

fn flows(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=100_000_000).contains(n));
    number.ok_or_else(|| format!("`{text}` is no number of flows: 1 to 100000000"))
}

fn device(text: &str) -> Result<DeviceSpec, String> {
    text.parse().map_err(|error: weir_io::SpecError| error.to_string())
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn domain(text: &str) -> Result<u16, String> {
    let domain = number(text).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0);
    domain.ok_or_else(|| format!("`{text}` is no INT domain: 1 to 65535"))
}

fn dscp(text: &str) -> Result<DscpMatch, String> {
    let error = || format!("`{text}` is no DSCP value: 0 to 63, with a mask after a slash");
    let (value, mask) = text.split_once('/').unwrap_or((text, "63"));
    let part = |text| {
        number(text)
            .and_then(|n| Uint::new(u32::try_from(n).ok()?))
            .ok_or_else(error)
    };
    Ok(DscpMatch {
        value: part(value)?,
        mask: part(mask)?,
    })
}

fn marker(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_whole = digits.len() == 16;
    let marker = u64::from_str_radix(digits, 16).ok().filter(|_| is_whole);
    marker.ok_or_else(|| format!("`{text}` is no probe marker: 16 hexadecimal digits"))
}

fn limits<T>(text: &str, part: impl Fn(&str) -> Result<T, String>, value: impl Fn(T) -> u64) -> Result<Limits, String> {
    let Some((rise, fall)) = text.split_once(':') else {
        return Ok(Limits::at(value(part(text)?)));
    };
    let (rise, fall) = (value(part(rise)?), value(part(fall)?));
    if fall >= rise {
        return Err(format!("`{text}`: the second value must be less than the first"));
    }
    Ok(Limits {
        rise,
        fall,
        delta: None,
    })
}

fn time_limits(text: &str) -> Result<Limits, String> {
    limits(text, time, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn number_limits(text: &str) -> Result<Limits, String> {
    let part = |text: &str| {
        let known = number(text).filter(|n| *n > 0);
        known.ok_or_else(|| format!("`{text}` is no number above 0"))
    };
    limits(text, part, |n| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("1.5ms").unwrap(), Duration::from_micros(1500));
        assert_eq!(time("2d").unwrap(), Duration::from_secs(172_800));
        for text in ["", "5", "ms", "-1s", "1e400s", "0s", "1 s", "nans"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_have_hysteresis() {
        let parsed = time_limits("2ms:1ms").unwrap();
        assert_eq!((parsed.rise, parsed.fall), (2_000_000, 1_000_000));
        let parsed = number_limits("100").unwrap();
        assert_eq!((parsed.rise, parsed.fall), (100, 80));
        assert!(number_limits("1:2").unwrap_err().contains("less than the first"));
        assert!(number_limits("0").is_err());
    }

    #[test]
    fn signals_are_read_in_hexadecimal_and_decimal() {
        assert_eq!(dscp("0x17").unwrap(), dscp("23/0x3f").unwrap());
        assert!(dscp("64").is_err());
        assert_eq!(marker("00000000000000ff").unwrap(), 255);
        assert!(marker("ff").is_err());
    }
}
