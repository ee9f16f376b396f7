//! The command line of `weir rina`.

use super::percent::Percent;
use super::size::Sizes;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `weir rina`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir rina demo\n  weir rina fabric fabric.toml\n  weir rina ping host8 --socket host1.sock\n\ndocs/rina.md explains them."
)]
pub struct Rina {
    /// What to do
    #[command(subcommand)]
    pub task: Task,
}

/// The tasks.
#[derive(Subcommand)]
pub enum Task {
    /// Run an IPC process: of a router beside its P4Runtime switch, or of a host
    Ipcp(IpcpArguments),
    /// Query or command the management agent of an IPC process
    Ctl(CtlArguments),
    /// Measure round trips to an application, or answer them
    Ping(PingArguments),
    /// Measure the throughput of a flow, and check every SDU
    Perf(PerfArguments),
    /// Connect standard input and output to a flow
    Cat(CatArguments),
    /// Compare EFCP with IPv4 over routers of this machine, and a reliable flow with UDP
    Bench(BenchArguments),
    /// Simulate networks: how fast they converge, and what it costs
    Simulate(SimulateArguments),
    /// Run a fabric of routers and hosts on this machine, without root
    Fabric(FabricArguments),
    /// Demonstration: a fabric comes up, two applications talk, a spine dies, the flow survives
    Demo(DemoArguments),
}

/// Arguments of `weir rina ipcp`.
#[derive(Args)]
#[command(after_help = "Example:\n  weir rina ipcp --config leaf1.toml\n\ndocs/rina.md documents its keys.")]
pub struct IpcpArguments {
    /// File that describes the IPC process (TOML)
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Log as JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// Stop when the process that has started this one ends
    #[arg(long)]
    pub die_with_parent: bool,
}

/// The socket of an IPC process.
#[derive(Args)]
pub struct SocketArgument {
    /// Socket of the IPC process
    #[arg(long, value_name = "PATH")]
    pub socket: PathBuf,
}

/// Arguments of `weir rina ctl`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir rina ctl --socket leaf1.sock routes\n  weir rina ctl --socket leaf1.sock port-down 2\n\nCommands: status, neighbours, members, routes, link-states, directory, flows, counters, enrol N, port-up N, port-down N."
)]
pub struct CtlArguments {
    /// Where it is
    #[command(flatten)]
    pub socket: SocketArgument,
    /// The command and its argument
    #[arg(value_name = "COMMAND", required = true, num_args = 1..=2)]
    pub command: Vec<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir rina ping`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir rina ping --listen echo --socket host8.sock\n  weir rina ping echo --count 10 --socket host1.sock"
)]
pub struct PingArguments {
    /// Where the IPC process is
    #[command(flatten)]
    pub socket: SocketArgument,
    /// The application that answers
    #[arg(value_name = "NAME", required_unless_present = "listen", conflicts_with = "listen")]
    pub name: Option<String>,
    /// Answer at this name, until Ctrl-C
    #[arg(long, value_name = "NAME")]
    pub listen: Option<String>,
    /// How many SDUs
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Bytes of an SDU
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    pub size: usize,
    /// Time between two SDUs
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = crate::cli::duration)]
    pub interval: Duration,
    /// Time for an answer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = crate::cli::duration)]
    pub timeout: Duration,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir rina perf`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir rina perf --listen perf --socket host8.sock\n  weir rina perf perf --count 1000000 --size 1-1400 --socket host1.sock\n  weir rina perf perf --unreliable --duration 10s --socket host1.sock"
)]
pub struct PerfArguments {
    /// Where the IPC process is
    #[command(flatten)]
    pub socket: SocketArgument,
    /// The application that receives
    #[arg(value_name = "NAME", required_unless_present = "listen", conflicts_with = "listen")]
    pub name: Option<String>,
    /// Receive at this name, until Ctrl-C
    #[arg(long, value_name = "NAME")]
    pub listen: Option<String>,
    /// How many SDUs; without --duration 100000
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Stop after this long
    #[arg(long, value_name = "TIME", value_parser = crate::cli::duration)]
    pub duration: Option<Duration>,
    /// Bytes of an SDU: a number, or a range to cycle through
    #[arg(long, value_name = "BYTES[-BYTES]", default_value = "1400")]
    pub size: Sizes,
    /// A flow without retransmission
    #[arg(long)]
    pub unreliable: bool,
    /// Rate limit, in bytes per second
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: Option<u64>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir rina cat`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir rina cat --listen inbox --socket host8.sock > received\n  weir rina cat inbox --socket host1.sock < file"
)]
pub struct CatArguments {
    /// Where the IPC process is
    #[command(flatten)]
    pub socket: SocketArgument,
    /// The application to connect to
    #[arg(value_name = "NAME", required_unless_present = "listen", conflicts_with = "listen")]
    pub name: Option<String>,
    /// Wait for one flow at this name
    #[arg(long, value_name = "NAME")]
    pub listen: Option<String>,
}

/// Arguments of `weir rina bench`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir rina bench\n  weir rina bench --count 1000000 --size 1-1400 --loss 1 --reorder 1 --plots figures"
)]
pub struct BenchArguments {
    /// SDUs of the reliable flow, and datagrams
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Bytes of an SDU: a number, or a range to cycle through, at most 1400
    #[arg(long, value_name = "BYTES[-BYTES]", default_value = "1-1400", value_parser = datagram_sizes)]
    pub size: Sizes,
    /// Percent of frames that the link from the first to the second router loses
    #[arg(long, value_name = "PERCENT", default_value = "1")]
    pub loss: Percent,
    /// Percent of frames that the link from the second to the third router delays by one frame
    #[arg(long, value_name = "PERCENT", default_value = "1")]
    pub reorder: Percent,
    /// How long each size and interval is measured
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = crate::cli::duration)]
    pub time: Duration,
    /// Repetitions; the median is reported
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Save plots into this folder
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Sizes that fit a datagram of a link without fragments.
fn datagram_sizes(text: &str) -> Result<Sizes, String> {
    let sizes: Sizes = text.parse()?;
    let most = sizes.most();
    (most <= 1400)
        .then_some(sizes)
        .ok_or_else(|| format!("expected at most 1400 bytes, found {most}"))
}

/// Arguments of `weir rina simulate`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir rina simulate --routers 10,40,100 --plots figures\n  weir rina simulate --graph random --routers 300 --json"
)]
pub struct SimulateArguments {
    /// Only this kind of graph; without it both
    #[arg(long, value_enum)]
    pub graph: Option<GraphChoice>,
    /// Numbers of routers, at most 2000
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "10,20,40,70,100", value_parser = routers)]
    pub routers: Vec<usize>,
    /// Save plots into this folder
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Kinds of graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphChoice {
    /// Four spines, all other routers leaves
    FatTree,
    /// A ring, and as many random links again
    Random,
}

fn routers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=2000).contains(number));
    number.ok_or_else(|| format!("expected a number from 1 to 2000, found `{text}`"))
}

/// Arguments of `weir rina fabric`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir rina fabric fabric.toml\n  weir rina fabric --leaf-spine 2x4 --hosts 2 --picture fabric.svg\n\nfabric.toml:\n  [leaf_spine]\n  spines = 2\n  leaves = 4\n  hosts_per_leaf = 2\n\nWhile it runs, it takes commands on standard input: show, cut A B, mend A B, loss A B PERCENT,\nreorder A B PERCENT, kill NODE, start NODE, restart NODE, picture FILE, quit."
)]
pub struct FabricArguments {
    /// Topology (TOML)
    #[arg(
        value_name = "TOPOLOGY.toml",
        required_unless_present = "leaf_spine",
        conflicts_with = "leaf_spine"
    )]
    pub topology: Option<PathBuf>,
    /// A leaf-spine fabric, instead of a file
    #[arg(long, value_name = "SPINESxLEAVES")]
    pub leaf_spine: Option<String>,
    /// Hosts of each leaf, with --leaf-spine
    #[arg(long, value_name = "N", default_value_t = 2, conflicts_with = "topology")]
    pub hosts: usize,
    /// Folder for sockets, configurations and logs; without it a temporary one
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Save a picture once the fabric is up
    #[arg(long, value_name = "FILE.svg")]
    pub picture: Option<PathBuf>,
    /// Stop after this long
    #[arg(long, value_name = "TIME", value_parser = crate::cli::duration)]
    pub time: Option<Duration>,
}

/// Arguments of `weir rina demo`.
#[derive(Args)]
#[command(after_help = "Example:\n  weir rina demo --picture fabric.svg")]
pub struct DemoArguments {
    /// Where the picture is written
    #[arg(long, value_name = "FILE.svg", default_value = "fabric.svg")]
    pub picture: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}
