//! The command line: what can be asked, with help that teaches, and the exit code of the answer.

use crate::output::Messages;
use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_extern_api::{Folder, Registry};
use weir_ir::WhenFull;

/// Exit code where the answer is no.
pub const NO: u8 = 1;
/// Exit code where the question could not be asked: usage, a missing file, a program that does not
/// compile.
pub const CANNOT_ASK: u8 = 2;

/// Most workers of a switch.
const MAX_WORKERS: usize = 64;

#[derive(Parser)]
#[command(
    name = "weir",
    version,
    about = "A P4 switch in software: compile, run, test, trace and measure P4_16 programs",
    after_help = "Start here:\n  weir demo                              a router at work, no root needed\n  weir check router.p4                   is the program right?\n  weir test router.p4 router.stf         does it do what the test says?\n  weir trace router.p4 --port 1 --packet 0a0b…   why did my packet do this?\n  sudo weir run router.p4 -i 1@eth0 -i 2@eth1    be a switch\n\nExit codes: 0 good, 1 the answer is no, 2 it cannot run (usage, missing file, does not compile)."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a bundled IPv4 router forwarding captured traffic
    Demo(Demo),
    /// Check a program: 0 accepted, 1 rejected with diagnostics on stderr
    Check(Check),
    /// Run packet tests (STF): 0 passed, 1 failed, 2 does not compile
    Test(Test),
    /// Show what one packet meets on its way, and why
    Trace(Trace),
    /// Compile: P4Info, a loadable program, the IR, a picture
    Build(Build),
    /// Run the program as a switch
    Run(Run),
    /// Measure packets per second without I/O
    Bench(Bench),
    /// Predict from the source what a program costs: nanoseconds on a Tofino, cycles on weir
    Latency(crate::latency::Latency),
    /// Measure networks and devices by in-band telemetry (INT): collect reports, show results
    Int(crate::int::Int),
    /// Run routers, hosts and fabrics of RINA: enrolment, routing, flows between applications
    Rina(crate::rina::Rina),
    /// Run a network of hosts and switches on this machine: a laboratory with a prompt
    Lab(crate::lab::Lab),
    /// Control a P4Runtime or BF Runtime target: tables, entries, counters, digests
    Ctl(crate::ctl::Ctl),
    /// Act as a command of bmv2: p4c-bm2-ss, p4c, simple_switch, simple_switch_grpc,
    /// simple_switch_CLI
    Bmv2(crate::bmv2::Bmv2),
    /// Print what makes a shell complete weir's command lines
    Completion(crate::shell::Completion),
    /// Write man pages
    Man(crate::shell::ManPages),
}

impl Command {
    /// The part of its arguments that the front end needs, if it compiles a program, and the
    /// program, if one is named.
    fn front_end(&mut self) -> Option<(&mut FrontEnd, Option<&Path>)> {
        let source = match self {
            Command::Check(arguments) => &mut arguments.source,
            Command::Test(arguments) => &mut arguments.source,
            Command::Trace(arguments) => &mut arguments.source,
            Command::Build(arguments) => &mut arguments.source,
            Command::Run(arguments) => &mut arguments.source,
            Command::Bench(arguments) => return Some((&mut arguments.front_end, arguments.program.as_deref())),
            Command::Latency(arguments) => arguments.source()?,
            Command::Demo(_)
            | Command::Int(_)
            | Command::Rina(_)
            | Command::Lab(_)
            | Command::Ctl(_)
            | Command::Bmv2(_)
            | Command::Completion(_)
            | Command::Man(_) => {
                return None;
            }
        };
        Some((&mut source.front_end, Some(&source.program)))
    }
}

/// What the front end needs besides the program.
#[derive(Args, Clone)]
pub struct FrontEnd {
    /// Search this directory for included files
    #[arg(short = 'I', value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Define a macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
    /// Architecture, if it cannot be inferred from `main`; also defines its macros
    #[arg(long, value_name = "NAME", help = arch_help())]
    pub arch: Option<String>,
    /// The externs that programs may call besides those of their architecture
    #[arg(skip)]
    pub externs: Registry,
}

/// What `--arch` is, with the architectures there are.
fn arch_help() -> String {
    format!(
        "Architecture ({}), if it cannot be inferred from `main`; also defines its macros",
        weir_arch::known()
    )
}

/// Where the program is, and how it is compiled.
#[derive(Args, Clone)]
pub struct Source {
    /// The P4_16 program, a .weir file that `weir build` made, or a .json file of `weir bmv2
    /// p4c-bm2-ss`
    #[arg(value_name = "PROG.p4")]
    pub program: PathBuf,
    #[command(flatten)]
    pub front_end: FrontEnd,
    /// How diagnostics are written
    #[arg(long, value_enum, default_value_t = MessageFormat::Human)]
    pub message_format: MessageFormat,
}

/// How `@async` calls of externs are executed.
#[derive(Args, Clone)]
#[command(next_help_heading = "Externs")]
pub struct Externs {
    /// How calls marked @async are executed: auto (by measured cost), sync (at once, by the
    /// packet's worker), or async (by the lane)
    #[arg(long = "async", value_name = "MODE", value_enum, default_value_t = AsyncMode::Auto)]
    pub mode: AsyncMode,
    /// What happens to a packet when no more can wait: inline, wait or drop. The program may say
    /// otherwise by @async(full=…)
    #[arg(long, value_name = "POLICY", value_parser = when_full, default_value = "inline")]
    pub async_full: WhenFull,
    /// The most packets that wait, per worker: a power of two
    #[arg(long, value_name = "PACKETS", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub async_depth: u32,
    /// Threads of the lane that executes calls
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub async_threads: u32,
    /// The time after which a thread of the lane that makes no progress is replaced, in
    /// milliseconds. A batch of 32 calls must take less
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub async_limit: u64,
}

fn when_full(text: &str) -> Result<WhenFull, String> {
    WhenFull::from_word(text).ok_or_else(|| "it is inline, wait or drop".to_owned())
}

/// How calls marked `@async` are executed.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum AsyncMode {
    /// By measured cost
    Auto,
    /// At once, by the packet's worker
    Sync,
    /// By the lane
    Async,
}

/// How diagnostics are written.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum MessageFormat {
    /// With the source line and what to do
    Human,
    /// FILE:LINE:COL: error[CODE]: MESSAGE
    Short,
    /// One JSON object per line
    Json,
}

/// Which engine runs the program.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum Engine {
    /// The interpreter
    Interp,
    /// Machine code; what cannot be compiled is interpreted, and a message says why
    Jit,
    /// Every engine there is, compared with each other
    Both,
}

impl Engine {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Interp => "interp",
            Engine::Jit => "jit",
            Engine::Both => "both",
        }
    }
}

#[derive(Args)]
#[command(after_help = "Example:\n  weir demo --svg router.svg")]
pub struct Demo {
    /// Save a picture of the pipeline, with what each table did
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The results as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Example:\n  weir check -I include -D PORTS=32 router.p4 --message-format short")]
pub struct Check {
    #[command(flatten)]
    pub source: Source,
}

#[derive(Args)]
#[command(
    after_help = "Example:\n  weir test router.p4 router.stf --trace\n\nThe language of the tests is described in docs/stf.md."
)]
pub struct Test {
    #[command(flatten)]
    pub source: Source,
    /// The tests
    #[arg(value_name = "TEST.stf", required = true)]
    pub tests: Vec<PathBuf>,
    /// Which engine runs them
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    pub engine: Engine,
    #[command(flatten)]
    pub externs: Externs,
    /// Show what each packet met
    #[arg(long)]
    pub trace: bool,
    /// Results as JSON
    #[arg(long)]
    pub json: bool,
    /// Colours: auto, always or never
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir trace router.p4 --entries router.entries --port 1 --packet 'ffffffffffff 020000000110 0800 …'\n  weir trace router.p4 --port 1 --packet capture.pcap --number 3\n  weir trace balance.p4 --port 1 --packet packet.hex --all"
)]
pub struct Trace {
    #[command(flatten)]
    pub source: Source,
    /// Port the packet comes in at
    #[arg(long)]
    pub port: u32,
    /// The packet: hexadecimal digits, or a pcap or pcapng file
    #[arg(long, value_name = "HEX|PCAP")]
    pub packet: String,
    /// Which packet of the capture, from 1
    #[arg(long, default_value_t = 1)]
    pub number: usize,
    /// Control-plane state to start from
    #[arg(long, value_name = "FILE")]
    pub entries: Option<PathBuf>,
    /// Every outcome that hashing, selectors, randomness and meters could give
    #[arg(long)]
    pub all: bool,
    /// At most this many outcomes
    #[arg(long, default_value_t = 64)]
    pub limit: usize,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Colours: auto, always or never
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// When to use colours.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Whether output to stdout has colours. `NO_COLOR` in the environment turns `auto` off.
    pub fn is_on(self) -> bool {
        match self {
            Color::Auto => {
                let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                std::io::stdout().is_terminal() && !is_off
            }
            Color::Always => true,
            Color::Never => false,
        }
    }
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir build router.p4 -o out          out/p4info.txtpb, out/p4info.bin, out/bfrt.json,\n                                       out/router.weir, out/router.svg\n  weir build router.p4 --bfrt-json -    bfrt.json on stdout\n  weir build switch.p4 --fixed-tables - what the device has besides: $PORT, $pre.*, $mirror.cfg, …\n  weir build router.p4 --emit ir       the IR on stdout\n  weir build router.p4 --emit rust > router.rs    types for controllers (docs/client.md)\n  weir build router.p4 --emit lua > router.lua    a dissector for Wireshark (docs/wireshark.md)\n  weir build router.p4 --emit dot | dot -Tpng -o router.png"
)]
pub struct Build {
    #[command(flatten)]
    pub source: Source,
    /// Write everything into this directory
    #[arg(short = 'o', value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Write P4Info: text, or binary where the name ends in .bin or .pb
    #[arg(long, value_name = "FILE")]
    pub p4info: Option<PathBuf>,
    /// Write what BF Runtime clients name, as bfrt.json
    #[arg(long, value_name = "FILE")]
    pub bfrt_json: Option<PathBuf>,
    /// Write the tables that the program's device has whatever the program, in the form of
    /// bfrt.json
    #[arg(long, value_name = "FILE")]
    pub fixed_tables: Option<PathBuf>,
    /// Print to stdout
    #[arg(long, value_enum)]
    pub emit: Option<Emit>,
}

/// What `weir build --emit` prints.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Emit {
    /// Rust types of tables, keys, actions, digests and registers, for controllers with weir-client
    Rust,
    /// The IR, and after it as comments the pipeline that is compiled: its code, segments and
    /// contexts
    Ir,
    /// The machine code
    Asm,
    /// The parser as a dissector for Wireshark (docs/wireshark.md)
    Lua,
    /// The pipeline as DOT
    Dot,
    /// The pipeline as SVG
    Svg,
}

/// What is after the options of `weir run`.
const RUN_HELP: &str = "\
Examples:
  sudo weir run router.p4 -i 1@eth0 -i 2@eth1 --entries router.entries
  sudo weir run router.p4 -i 1@eth0 -i 2@eth1 --workers 4 --watch
  sudo weir run router.p4 -i 1@eth0 -i 2@eth1 --p4runtime 127.0.0.1:9559 --cpu-port 510
  sudo weir run switch_tna.p4 -i 1@eth0 -i 2@eth1 --bfrt 127.0.0.1:50052 --state switch.state
  weir run router.p4 -i 1@pcap:in.pcap,out.pcap -i 2@null
  weir run l2.p4 -i 1@gen:size=64,rate=1000,count=5000 -i 2@null --json

A port is PORT@DEVICE, for example 1@eth0. DEVICE is one of:
  NAME           a Linux interface: by AF_XDP where that is faster and does no
                 harm, else by AF_PACKET; it says which at the start, and why
  xdp:NAME       the interface by AF_XDP: fastest. All its packets come here and
                 none to this machine's own network; where its peer is a local
                 interface (veth), run `ethtool -K PEER tx off` there
  packet:NAME[,bypass]  the interface by AF_PACKET (a raw socket): works on every one;
                 bypass: past its queueing discipline (tc)
  tap:NAME       a TAP: an interface of this name whose wire is this port
  udp:LOCAL,REMOTE
                 a link to another process: a frame per UDP datagram; needs no root
  pcap:IN[,OUT]  plays the capture IN; records what is sent to the port in OUT
  pcap:,OUT      receives nothing; records what is sent to the port in OUT
  gen:KEY=VALUE,…  makes packets: size, rate, count, smac, dmac, vlan, src, dst,
                 sport, dport, flows, seed and proto (udp, tcp), all optional
  null           takes everything, gives nothing

Signals: INT and TERM stop it, with statistics; HUP compiles the program and
its entries anew and goes on with them, or with the old ones where the new ones
are not right; with a control plane, which gives the program, HUP stops it.
USR1 begins to write the trace of every packet to stderr, and ends it again.
docs/run.md tells the rest.";

#[derive(Args, Clone)]
#[command(after_help = RUN_HELP, group(clap::ArgGroup::new("servers").multiple(true)))]
pub struct Run {
    #[command(flatten)]
    pub source: Source,
    /// A port and its device
    #[arg(short = 'i', value_name = "PORT@DEVICE", required = true)]
    pub interfaces: Vec<String>,
    /// Control-plane state to start from
    #[arg(long, value_name = "FILE")]
    pub entries: Option<PathBuf>,
    /// Which engine: jit (machine code; what cannot be compiled is interpreted, and a message says
    /// why) or interp
    #[arg(long, default_value = "jit", value_parser = run_engine)]
    pub engine: Engine,
    #[command(flatten)]
    pub externs: Externs,
    /// Threads that forward, each on a core of its own; at most 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = workers)]
    pub workers: usize,
    /// Stop after this long, e.g. 10s or 500ms; without it at Ctrl-C, or when all inputs have ended
    /// and no control plane is served
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time: Option<std::time::Duration>,
    /// Show the trace of every Nth packet on stderr
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub trace: Option<u64>,
    /// Trace only packets that come in at this port
    #[arg(long, value_name = "PORT")]
    pub trace_port: Option<u32>,
    /// Serve P4Runtime (gRPC) at this address, e.g. 127.0.0.1:9559 or unix:/run/weir.sock
    #[arg(long, value_name = "ADDR", group = "servers")]
    pub p4runtime: Option<weir_server::Address>,
    /// Serve BF Runtime (gRPC) at this address, e.g. 127.0.0.1:50052
    #[arg(long, value_name = "ADDR", group = "servers")]
    pub bfrt: Option<weir_server::Address>,
    /// What BF Runtime's clients call the program; without it the name of its file without the
    /// ending
    #[arg(long, value_name = "NAME", requires = "bfrt")]
    pub p4_name: Option<String>,
    /// The port by which packets come from the control plane and go there
    #[arg(long, value_name = "PORT", requires = "servers")]
    pub cpu_port: Option<u32>,
    /// The number that control planes call this switch by; 0 means it, too
    #[arg(long, value_name = "N", default_value_t = 1, requires = "servers")]
    pub device_id: u64,
    /// Certificate of the servers, as PEM: with it, they speak TLS
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "servers")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Authorities of clients, as PEM: with it, only clients with a certificate of theirs are let
    /// in
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// Keep what control planes change in this file, and go on with it at the next start: whatever
    /// was acknowledged is there again, even after kill -9 (docs/state.md)
    #[arg(long, value_name = "FILE", requires = "servers")]
    pub state: Option<PathBuf>,
    /// Acknowledge nothing before it has reached the disk: then the loss of power costs nothing
    /// either
    #[arg(long, requires = "state")]
    pub state_sync: bool,
    /// Serve counters over HTTP at this address, e.g. 127.0.0.1:9600: /metrics for Prometheus,
    /// /healthz, /readyz
    #[arg(long, value_name = "ADDR")]
    pub http: Option<std::net::SocketAddr>,
    /// Stop, as by TERM, when the process that has started this one ends: no switch is left behind
    /// by a script
    #[arg(long)]
    pub die_with_parent: bool,
    /// Packets per queue
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub queue_capacity: u32,
    /// Packets for which each interface has room until a worker takes them (with AF_XDP each
    /// receive queue), 64 to 32768; without it some 8000. More where others may have a worker's
    /// core for long (docs/run.md)
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(64..=i64::from(weir_io::PortsOptions::MAX_RING)))]
    pub ring: Option<u32>,
    /// Rate of a port: bits per second, e.g. 2=10M or 2=512kbit, or packets per second, e.g.
    /// 2=50pps
    #[arg(long, value_name = "PORT=RATE")]
    pub port_rate: Vec<String>,
    /// Record in this directory what each port receives and sends: INTERFACE.pcapng (or
    /// portN.pcapng, cpu.pcapng) with directions and, as comments, the reasons of drops; also
    /// INTERFACE_in.pcap and INTERFACE_out.pcap
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Statistics as JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// Statistics not only at the end but also this often, e.g. 1s
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub stats_interval: Option<std::time::Duration>,
    /// Measure the cycles that each stretch of machine code takes
    #[arg(long)]
    pub profile: bool,
    /// Draw on the terminal what the switch does now
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
    /// What only the command line of bmv2 gives
    #[arg(skip)]
    pub bmv2: crate::bmv2::Front,
}

impl Run {
    /// Whether packets are traced from the start.
    #[must_use]
    pub fn is_traced(&self) -> bool {
        self.trace.is_some() || self.trace_port.is_some()
    }

    /// Whether any control plane is served.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.p4runtime.is_some() || self.bfrt.is_some() || self.bmv2.runtime_port.is_some()
    }
}

/// What `weir bench` compares the engine with.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum Versus {
    /// The interpreter
    Interp,
    /// The same work as a loop written by hand (l2_switch and ipv4_router, with --table-entries)
    #[value(alias = "ceiling")]
    Baseline,
}

#[derive(Args, Clone)]
#[command(
    after_help = "Examples:\n  weir bench router.p4 --entries router.entries --port 1 --packet '020000000101 …' --seconds 2\n  weir bench l2_switch.p4 --table-entries 1000 --vs interp\n  weir bench ipv4_router.p4 --table-entries 900000 --pool 65536 --vs baseline\n  weir bench rina_router.p4 --table-entries 1000 --mix efcp\n  weir bench mixes.p4 --table-entries 1000 --pool 65536 --mix misses:50,actions\n  weir bench l2_switch.p4 --table-entries 1000 --pool 65536 --vs baseline --sweep table=1k,10k,100k,1M --svg l2.svg\n  weir bench ipv4_router.p4 --table-entries 1000 --workers 2\n  weir bench --suite\n  weir bench control address_pairs --p4runtime 127.0.0.1:9559\n  chrt -f 50 weir bench async\n\nPackets lie in memory, each in a place of its own; there is no I/O. Only the program is timed: before each round\nthrough the pool all packets are made again from their originals, and that is not in the figures. Packets of the\nnext vector are fetched into the cache meanwhile, for whoever runs them. Cycles are those of the time-stamp\ncounter. With --table-entries the tables of a bundled program are filled and packets are made that hit them.\n\nOn a shared machine: chrt -f 50 taskset -c 1 weir bench … (docs/performance.md says why)."
)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Bench {
    /// The P4_16 program, or a .weir file that `weir build` made
    #[arg(value_name = "PROG.p4", required_unless_present = "suite")]
    pub program: Option<PathBuf>,
    #[command(flatten)]
    pub front_end: FrontEnd,
    /// Control-plane state to start from
    #[arg(long, value_name = "FILE", conflicts_with = "table_entries")]
    pub entries: Option<PathBuf>,
    /// Fill the tables of a bundled program with this many entries, and make packets that hit them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1 << 20))]
    pub table_entries: Option<u32>,
    /// With --table-entries: misses:PERCENT (packets that hit nothing and are dropped); for
    /// rina_router ipv4 or efcp; for mixes actions (four, by chance) and extra (half of the
    /// packets, by chance, through one table more); several with commas between them
    #[arg(long, value_name = "MIX", requires = "table_entries")]
    pub mix: Option<crate::bench::Mix>,
    /// Port the packets come in at, where they are not made for tables
    #[arg(long, default_value_t = 1)]
    pub port: u32,
    /// The packets: hexadecimal digits or a capture, used over and over; without it a generated mix
    #[arg(long, value_name = "HEX|PCAP", conflicts_with = "table_entries")]
    pub packet: Option<String>,
    /// Bytes of packets that are made; they have more where their headers need it
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(42..=9216))]
    pub size: u32,
    /// Packets in memory
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub pool: u32,
    /// Flows that the packets belong to; as many as packets where not given
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub flows: Option<u32>,
    /// How packets are spread over flows: uniform or zipf[:EXPONENT]
    #[arg(long, value_name = "HOW", default_value = "uniform")]
    pub distribution: crate::bench::Spread,
    /// Packets handed to the engine at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub vector: u32,
    /// How long one run takes, to the end of a round through the pool. Short ones beside each other
    /// have the same neighbours on a shared machine
    #[arg(long, default_value_t = 0.03)]
    pub seconds: f64,
    /// How many runs; the median is reported
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Which engine; both is the same as --vs interp
    #[arg(long, value_enum, default_value_t = Engine::Jit)]
    pub engine: Engine,
    /// Measure this as well, in turns with the engine, and print the ratio
    #[arg(long, value_enum)]
    pub vs: Option<Versus>,
    /// Threads, each on a processor of its own with a switch and packets of its own
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: u32,
    /// Measure once for each value: size=64,128,…, table=1000,10k,1M, pool=…, vector=… or
    /// workers=1,2
    #[arg(long, value_name = "WHAT=VALUES")]
    pub sweep: Option<crate::bench::Sweep>,
    /// Save a plot of the sweep
    #[arg(long, value_name = "FILE", requires = "sweep")]
    pub svg: Option<PathBuf>,
    /// Measure the bundled programs against their bars; exit code 1 if one does not hold
    #[arg(long, conflicts_with_all = [
        "program", "include", "define", "arch", "sweep", "table_entries", "entries", "packet", "vs", "workers", "engine", "mix", "port", "size", "pool",
        "flows", "distribution",
    ])]
    pub suite: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(subcommand)]
    pub what: Option<BenchWhat>,
}

/// What is measured instead of a program's forwarding.
#[derive(Subcommand, Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is not moved often")]
pub enum BenchWhat {
    /// Measure how fast a target of weir ctl takes entries: one after another, in flight, in
    /// batches
    Control(crate::bench::Control),
    /// Measure what it costs and brings that packets wait for externs while others go on
    Async(crate::bench::Waiting),
}

pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let wrong = || format!("`{text}` is no time; write for example 10s, 500ms or 2m");
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "" | "s" => number,
        "ms" => number / 1e3,
        "us" => number / 1e6,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(wrong()),
    };
    std::time::Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

pub fn interval(text: &str) -> Result<std::time::Duration, String> {
    let time = duration(text)?;
    if time < std::time::Duration::from_millis(10) {
        return Err(format!("`{text}` is too often; 10ms is the least"));
    }
    Ok(time)
}

fn run_engine(text: &str) -> Result<Engine, String> {
    match Engine::from_str(text, false) {
        Ok(engine) if engine != Engine::Both => Ok(engine),
        _ => Err(format!("`{text}` is no engine of a switch: jit or interp")),
    }
}

fn workers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=MAX_WORKERS).contains(n));
    number.ok_or_else(|| format!("`{text}` is no number of workers: 1 to {MAX_WORKERS}, as many as there are cores"))
}

/// Parses the arguments, does what they say, and tells how it went.
/// Runs the command line of the process, with these externs.
pub fn main(externs: &Registry) -> ExitCode {
    if let Err(error) = survive_file_limits() {
        return finish(Err(error), &Messages::direct());
    }
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if let Some(tool) = crate::bmv2::by_name(&arguments) {
        return called_as(tool, &arguments, externs);
    }
    let mut cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // clap prints help to stdout and mistakes to stderr; a closed pipe is nobody's mistake.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { CANNOT_ASK } else { 0 });
        }
    };
    if let Some((front_end, program)) = cli.command.front_end() {
        front_end.externs = externs.clone();
        if let Some(program) = program {
            front_end.externs.set_files(Folder::of_program(program));
        }
    }
    let messages = match &cli.command {
        // Packets do not wait for a reader.
        Command::Run(_) => Messages::queued().unwrap_or_else(|_| Messages::direct()),
        _ => Messages::direct(),
    };
    let result = match cli.command {
        Command::Demo(arguments) => crate::demo::demo(&arguments, &messages),
        Command::Check(arguments) => crate::compile::check(&arguments.source, &messages),
        Command::Test(arguments) => crate::test::test(&arguments, &messages),
        Command::Trace(arguments) => crate::trace::trace(&arguments, &messages),
        Command::Build(arguments) => crate::build::build(&arguments, &messages),
        Command::Run(arguments) => crate::run::run(&arguments, &messages),
        Command::Bench(arguments) => crate::bench::bench(&arguments, &messages),
        Command::Latency(arguments) => crate::latency::latency(arguments, &messages),
        Command::Int(arguments) => crate::int::int(arguments, &messages),
        Command::Rina(arguments) => crate::rina::rina(arguments, &messages),
        Command::Lab(arguments) => crate::lab::lab(&arguments, &messages),
        Command::Ctl(arguments) => crate::ctl::ctl(&arguments),
        Command::Bmv2(arguments) => crate::bmv2::bmv2(&arguments, externs, &messages),
        Command::Completion(arguments) => crate::shell::completion(&arguments),
        Command::Man(arguments) => crate::shell::man(&arguments),
    };
    finish(result, &messages)
}

/// Has writes beyond the limit of a file's size (`ulimit -f`) fail, as on a full disk, in place of
/// ending the process. It is a handler: programs that this one starts have the system's default.
fn survive_file_limits() -> anyhow::Result<()> {
    let nothing = Arc::<AtomicBool>::default();
    let id = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, nothing);
    id.context("cannot handle the signal XFSZ")?;
    Ok(())
}

/// Acts as the command of bmv2 that the binary was called by.
fn called_as(tool: crate::bmv2::Tool, arguments: &[std::ffi::OsString], externs: &Registry) -> ExitCode {
    let messages = Messages::direct();
    let words = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    finish(crate::bmv2::run(tool, &words, externs, &messages), &messages)
}

/// Says what went wrong, and gives the exit code.
fn finish(result: anyhow::Result<u8>, messages: &Messages) -> ExitCode {
    let code = result.unwrap_or_else(|error| {
        messages.line(format!("error: {}", causes(&error)));
        CANNOT_ASK
    });
    messages.finish();
    ExitCode::from(code)
}

/// An error and its causes, those left out that are part of what has been said.
pub fn causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed_and_every_command_shows_an_example() {
        let command = Cli::command();
        command.clone().debug_assert();
        for sub in command.get_subcommands() {
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("weir "), "{} has no example", sub.get_name());
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("500ms").unwrap().as_millis(), 500);
        assert_eq!(duration("2m").unwrap().as_secs(), 120);
        assert!(duration("soon").unwrap_err().contains("10s"));
        assert!(duration("-1s").is_err());
    }
}
