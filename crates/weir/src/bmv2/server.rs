//! `simple_switch` and `simple_switch_grpc`: bmv2's command line as a run of weir's switch.

use super::log::Stamped;
use crate::cli::Run;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::path::PathBuf;
use weir_extern_api::{Folder, Registry};
use weir_server::{Address, container};

/// Which of the two commands it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Without P4Runtime.
    Plain,
    /// With P4Runtime.
    Grpc,
}

/// The port of `mark_to_drop` in v1model.
const DROP_PORT: u32 = 511;
/// Queues of a port.
const PRIORITIES: u32 = weir_switch::PRIORITIES as u32;
/// Where P4Runtime is served unless something else is said.
const GRPC: &str = "0.0.0.0:9559";

/// What only the command line of bmv2 gives a run of weir.
#[derive(Debug, Clone, Default)]
pub struct Front {
    /// There is no program until a control plane sets one.
    pub without_program: bool,
    /// The port of `simple_switch_CLI`.
    pub runtime_port: Option<u16>,
}

/// Options of bmv2, before and after the program.
#[derive(Parser)]
#[command(
    disable_version_flag = true,
    about = "Run a program as a switch, with the command line of bmv2",
    after_help = "Examples:\n  simple_switch_grpc -i 1@s1-eth1 -i 2@s1-eth2 --thrift-port 9090 basic.json -- --grpc-server-addr 0.0.0.0:50051\n  simple_switch_grpc --no-p4 -i 0@veth0 -i 1@veth2 --log-file ss-log\n  simple_switch --log-console -i 0@veth0 -i 1@veth2 basic.json\n\nThe program is the JSON that weir's p4c-bm2-ss writes, or a P4 source. Options of the target stand behind --, and so does their help: simple_switch_grpc -- --help."
)]
struct Options {
    /// The JSON of weir's p4c-bm2-ss, a P4 source, or a program that `weir build` saved
    #[arg(value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Start without a program; a control plane sets one
    #[arg(long)]
    no_p4: bool,
    /// A port and its interface
    #[arg(short = 'i', long = "interface", value_name = "PORT@INTERFACE")]
    interfaces: Vec<String>,
    /// Record what each port receives and sends: INTERFACE_in.pcap, INTERFACE_out.pcap and, with
    /// both directions and reasons of drops, INTERFACE.pcapng
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    pcap: Option<PathBuf>,
    /// The port of simple_switch_CLI, on this machine only
    #[arg(long, value_name = "PORT", default_value_t = 9090)]
    thrift_port: u16,
    /// The number of the switch
    #[arg(long, value_name = "N", default_value_t = 0)]
    device_id: u64,
    /// Write the trace of every packet to stdout
    #[arg(long, conflicts_with = "log_file")]
    log_console: bool,
    /// Write the trace of every packet to FILE.txt
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Which messages are logged: trace and debug have packets, the others only messages of the
    /// switch
    #[arg(long, short = 'L', value_name = "LEVEL", default_value = "trace")]
    log_level: String,
    /// Has no effect: a log is always written at once
    #[arg(long)]
    log_flush: bool,
    /// Has no effect: a log is one file
    #[arg(long, value_name = "BYTES")]
    log_file_max_size: Option<u64>,
    /// Has no effect: a log is one file
    #[arg(long, value_name = "N")]
    log_file_max_files: Option<u64>,
    /// Has no effect: a trace shows whole packets
    #[arg(long, value_name = "BYTES")]
    dump_packet_data: Option<u64>,
    /// Not in weir
    #[arg(long, value_name = "ADDRESS")]
    nanolog: Option<String>,
    /// Not in weir
    #[arg(long, value_name = "ADDRESS")]
    notifications_addr: Option<String>,
    /// Not in weir
    #[arg(long)]
    debugger: bool,
    /// Not in weir
    #[arg(long, value_name = "ADDRESS")]
    debugger_addr: Option<String>,
    /// Has no effect: ports have any number that the program's metadata can hold
    #[arg(long, value_name = "N")]
    max_port_count: Option<u32>,
    /// Not in weir: use -i PORT@pcap:IN,OUT
    #[arg(long, value_name = "SECONDS")]
    use_files: Option<u32>,
    /// Not in weir: use -i PORT@udp:LOCAL,REMOTE
    #[arg(long, value_name = "ADDRESS")]
    packet_in: Option<String>,
    /// Not in weir: `weir run --state FILE` keeps state
    #[arg(long, value_name = "FILE")]
    restore_state: Option<PathBuf>,
    /// Show the version
    #[arg(long, short = 'v')]
    version: bool,
    /// Show the version of the JSON
    #[arg(long)]
    json_version: bool,
    /// Options of the target, behind --
    #[arg(last = true, value_name = "TARGET-OPTIONS", allow_hyphen_values = true)]
    target: Vec<String>,
}

/// Options of the target, behind `--`.
#[derive(Parser)]
#[command(
    name = "simple_switch … --",
    disable_version_flag = true,
    about = "Options of the target"
)]
struct TargetOptions {
    /// Serve P4Runtime at this address
    #[arg(long, value_name = "ADDRESS", default_value = GRPC)]
    grpc_server_addr: String,
    /// Speak TLS
    #[arg(long, requires = "grpc_server_cert", requires = "grpc_server_key")]
    grpc_server_ssl: bool,
    /// Authorities of clients, as PEM
    #[arg(long, value_name = "FILE")]
    grpc_server_cacert: Option<PathBuf>,
    /// Certificate, as PEM
    #[arg(long, value_name = "FILE")]
    grpc_server_cert: Option<PathBuf>,
    /// Private key, as PEM
    #[arg(long, value_name = "FILE")]
    grpc_server_key: Option<PathBuf>,
    /// Let in only clients with a certificate of the authorities
    #[arg(long, requires = "grpc_server_cacert")]
    grpc_server_with_client_auth: bool,
    /// The port of packets from and to the control plane
    #[arg(long, value_name = "PORT")]
    cpu_port: Option<u32>,
    /// The port that drops packets: 511
    #[arg(long, value_name = "PORT", default_value_t = DROP_PORT)]
    drop_port: u32,
    /// Queues of a port that the program may use, at most 8
    #[arg(long, value_name = "N", default_value_t = 1)]
    priority_queues: u32,
    /// Not in weir
    #[arg(long, value_name = "ADDRESS")]
    dp_grpc_server_addr: Option<String>,
    /// Has no effect: a controller may set a program at any time
    #[arg(long)]
    disable_swap: bool,
    /// Has no effect: a controller may set a program at any time
    #[arg(long)]
    enable_swap: bool,
    /// Has no effect: as many as the program's metadata can hold
    #[arg(long, value_name = "N")]
    max_mc_groups: Option<u32>,
    /// Has no effect: weir's limits are fixed
    #[arg(long, value_name = "N")]
    max_l1_entries: Option<u32>,
    /// Has no effect: weir's limits are fixed
    #[arg(long, value_name = "N")]
    max_l2_entries: Option<u32>,
}

/// `weir run` with its defaults.
#[derive(Parser)]
struct Defaults {
    #[command(flatten)]
    run: Run,
}

/// Runs the switch.
pub fn run(name: Name, words: &[String], externs: &Registry) -> Result<u8> {
    let command = match name {
        Name::Plain => "simple_switch",
        Name::Grpc => "simple_switch_grpc",
    };
    let with_name = |words: &[String]| {
        std::iter::once(command.to_owned())
            .chain(words.iter().cloned())
            .collect::<Vec<_>>()
    };
    // Its help is shown without a program.
    let behind = words
        .iter()
        .position(|word| word == "--")
        .map_or(&[][..], |at| &words[at + 1..]);
    let target = match super::parsed::<TargetOptions>(&with_name(behind)) {
        Ok(target) => target,
        Err(code) => return Ok(code),
    };
    let mut options = match super::parsed::<Options>(&with_name(words)) {
        Ok(options) => options,
        Err(code) => return Ok(code),
    };
    if options.version || options.json_version {
        return version(&options);
    }
    claim_program(&mut options)?;
    refuse(&options, &target)?;
    let messages = messages(&options)?;
    for note in notes(&options, &target) {
        messages.line(note);
    }
    let outcome = arguments(name, &options, &target, externs, &messages)
        .and_then(|arguments| crate::run::run(&arguments, &messages));
    let code = outcome.unwrap_or_else(|error| {
        messages.line(format!("error: {}", crate::cli::causes(&error)));
        crate::cli::CANNOT_ASK
    });
    messages.finish();
    Ok(code)
}

fn version(options: &Options) -> Result<u8> {
    use std::io::Write;
    let mut out = crate::output::stdout();
    match options.json_version {
        true => {
            let [major, minor] = container::JSON_VERSION;
            writeln!(out, "{major}.{minor}")?;
        }
        false => writeln!(out, "{} (weir)", env!("CARGO_PKG_VERSION"))?,
    }
    Ok(0)
}

/// `--pcap PROGRAM`: a directory may be left out, so that what stands there may be the program.
fn claim_program(options: &mut Options) -> Result<()> {
    let takes_program = options.program.is_none() && !options.no_p4;
    if takes_program && options.pcap.as_deref().is_some_and(std::path::Path::is_file) {
        options.program = options.pcap.replace(".".into());
    }
    if options.no_p4 && options.program.is_some() {
        bail!("--no-p4 starts without a program: leave out one of the two");
    }
    if options.program.is_none() && !options.no_p4 {
        bail!("no program is given: name the JSON of weir's p4c-bm2-ss, or say --no-p4");
    }
    Ok(())
}

/// What cannot be left out without changing what the switch does.
fn refuse(options: &Options, target: &TargetOptions) -> Result<()> {
    if options.use_files.is_some() {
        bail!("--use-files is not supported: use -i PORT@pcap:IN.pcap,OUT.pcap");
    }
    if options.packet_in.is_some() {
        bail!("--packet-in is not supported: use -i PORT@udp:LOCAL,REMOTE (a frame per datagram)");
    }
    if options.restore_state.is_some() {
        bail!("--restore-state is not supported: `weir run --state FILE` keeps state (docs/state.md)");
    }
    if target.drop_port != DROP_PORT {
        bail!(
            "--drop-port {} is not supported: mark_to_drop sets port {DROP_PORT}",
            target.drop_port
        );
    }
    if !(1..=PRIORITIES).contains(&target.priority_queues) {
        bail!(
            "--priority-queues {}: a port of weir has {PRIORITIES} queues",
            target.priority_queues
        );
    }
    if target.dp_grpc_server_addr.is_some() {
        bail!("--dp-grpc-server-addr is not supported: use -i PORT@udp:LOCAL,REMOTE (a frame per datagram)");
    }
    Ok(())
}

/// What is taken and has no effect here, a line for each.
fn notes(options: &Options, target: &TargetOptions) -> Vec<String> {
    let no_part = [
        (
            "--nanolog",
            options.nanolog.is_some(),
            "weir has no binary event log; --log-console traces packets",
        ),
        (
            "--notifications-addr",
            options.notifications_addr.is_some(),
            "notifications come by P4Runtime",
        ),
        (
            "--debugger",
            options.debugger,
            "weir has no debugger; `weir trace` shows what a packet meets",
        ),
        (
            "--debugger-addr",
            options.debugger_addr.is_some(),
            "weir has no debugger; `weir trace` shows what a packet meets",
        ),
        (
            "--log-file-max-size",
            options.log_file_max_size.is_some(),
            "a log is one file",
        ),
        (
            "--log-file-max-files",
            options.log_file_max_files.is_some(),
            "a log is one file",
        ),
        (
            "--dump-packet-data",
            options.dump_packet_data.is_some(),
            "traces show whole packets",
        ),
        (
            "--max-port-count",
            options.max_port_count.is_some(),
            "the number of ports has no limit",
        ),
        (
            "--disable-swap",
            target.disable_swap,
            "a controller may set a program at any time",
        ),
        (
            "--enable-swap",
            target.enable_swap,
            "a controller may set a program at any time",
        ),
        (
            "--max-mc-groups",
            target.max_mc_groups.is_some(),
            "the limits of weir are fixed",
        ),
        (
            "--max-l1-entries",
            target.max_l1_entries.is_some(),
            "the limits of weir are fixed",
        ),
        (
            "--max-l2-entries",
            target.max_l2_entries.is_some(),
            "the limits of weir are fixed",
        ),
    ];
    let given = no_part.into_iter().filter(|(_, is_given, _)| *is_given);
    given
        .map(|(name, _, why)| format!("{name} has no effect: {why}"))
        .collect()
}

/// Whether every packet is traced: a log is written, and its level has packets.
fn is_traced(options: &Options) -> bool {
    let logs = options.log_console || options.log_file.is_some();
    logs && matches!(options.log_level.to_ascii_lowercase().as_str(), "trace" | "debug")
}

/// Where messages go: to the log, or to stderr.
fn messages(options: &Options) -> Result<Messages> {
    let levels = ["trace", "debug", "info", "warn", "error", "off"];
    if !levels.contains(&options.log_level.to_ascii_lowercase().as_str()) {
        bail!("`{}` is no level of a log: {}", options.log_level, levels.join(", "));
    }
    let stream: Box<dyn std::io::Write + Send> = match &options.log_file {
        Some(file) => {
            // As in bmv2: a name without the ending.
            let mut path = file.clone().into_os_string();
            path.push(".txt");
            let path = PathBuf::from(path);
            let file = std::fs::File::create(&path);
            Box::new(file.with_context(|| format!("cannot write the log {}", path.display()))?)
        }
        None if options.log_console => Box::new(std::io::stdout()),
        None => return Ok(Messages::queued().unwrap_or_else(|_| Messages::direct())),
    };
    Messages::to(Box::new(Stamped::new(stream))).context("cannot start a thread for the log")
}

/// The port of an interface as weir writes it. An interface is opened by AF_PACKET, so that
/// tcpdump and tc act on it as they do with bmv2.
fn port(text: &str) -> Result<String> {
    let (number, device) = text
        .split_once('@')
        .with_context(|| format!("`{text}` is no port; write PORT@INTERFACE, for example 0@veth0"))?;
    Ok(format!("{number}@{}", self::device(device)))
}

/// A device as weir writes it: what has a colon is in weir's own notation.
pub fn device(text: &str) -> String {
    match text.contains(':') || text == "null" {
        true => text.to_owned(),
        false => format!("packet:{text}"),
    }
}

/// The arguments of `weir run` that do what bmv2's options say.
fn arguments(
    name: Name,
    options: &Options,
    target: &TargetOptions,
    externs: &Registry,
    messages: &Messages,
) -> Result<Run> {
    let program = options.program.clone().unwrap_or_else(|| PathBuf::from("no program"));
    // A port is required there and may be missing here.
    let mut run = Defaults::try_parse_from(["run", "program", "-i", "0@null"])
        .context("the defaults of weir run")?
        .run;
    run.source.front_end.externs = externs.clone();
    run.source.front_end.externs.set_files(Folder::of_program(&program));
    run.source.program = program;
    run.interfaces = options
        .interfaces
        .iter()
        .map(|text| port(text))
        .collect::<Result<_>>()?;
    run.device_id = options.device_id;
    run.trace = is_traced(options).then_some(1);
    run.bmv2 = Front {
        without_program: options.no_p4,
        runtime_port: Some(options.thrift_port),
    };
    run.pcap = options.pcap.clone();
    run.cpu_port = target.cpu_port;
    if target.cpu_port == Some(0) {
        bail!("--cpu-port 0 is no port of a control plane; it is 1 or more");
    }
    if name == Name::Grpc {
        let address = target.grpc_server_addr.as_str();
        run.p4runtime = Some(grpc_address(address)?);
        let is_given = [
            &target.grpc_server_cert,
            &target.grpc_server_key,
            &target.grpc_server_cacert,
        ];
        if target.grpc_server_ssl {
            run.tls_cert = target.grpc_server_cert.clone();
            run.tls_key = target.grpc_server_key.clone();
            let asks = target.grpc_server_with_client_auth;
            run.tls_client_ca = target.grpc_server_cacert.clone().filter(|_| asks);
        } else if is_given.iter().any(|file| file.is_some()) {
            messages.line("certificates have no effect without --grpc-server-ssl");
        }
    }
    Ok(run)
}

/// An address as gRPC has it: `0.0.0.0:9559`, `localhost:9559`, `unix:PATH`.
fn grpc_address(text: &str) -> Result<Address> {
    let text = text
        .strip_prefix("ipv4:")
        .or_else(|| text.strip_prefix("ipv6:"))
        .unwrap_or(text);
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mut found = std::net::ToSocketAddrs::to_socket_addrs(text)
        .with_context(|| format!("`{text}` is no address to serve P4Runtime at; write for example 0.0.0.0:9559"))?;
    let address = found.next().with_context(|| format!("`{text}` has no address"))?;
    Ok(Address::Tcp(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a command line becomes: the run and what is said of it.
    fn parsed(line: &str) -> Result<(Run, Vec<String>)> {
        let mut options = Options::try_parse_from(line.split_whitespace())?;
        let target = std::iter::once("target").chain(options.target.iter().map(String::as_str));
        let target = TargetOptions::try_parse_from(target)?;
        claim_program(&mut options)?;
        refuse(&options, &target)?;
        let run = arguments(Name::Grpc, &options, &target, &Registry::default(), &Messages::direct())?;
        Ok((run, notes(&options, &target)))
    }

    #[test]
    fn options_are_well_formed() {
        use clap::CommandFactory;
        Options::command().debug_assert();
        TargetOptions::command().debug_assert();
    }

    #[test]
    fn the_command_line_of_the_tutorials_is_understood() {
        let (run, notes) = parsed(
            "simple_switch_grpc -i 1@s1-eth1 -i 2@s1-eth2 --pcap /tmp/pcaps --nanolog ipc:///tmp/bm-0-log.ipc --device-id 0 \
             build/basic.json --log-console --thrift-port 9091 -- --grpc-server-addr 0.0.0.0:50051 --cpu-port 510 --priority-queues 8",
        )
        .unwrap();
        assert_eq!(run.interfaces, ["1@packet:s1-eth1", "2@packet:s1-eth2"]);
        assert_eq!(run.source.program, PathBuf::from("build/basic.json"));
        assert_eq!(
            run.p4runtime.as_ref().map(ToString::to_string).as_deref(),
            Some("0.0.0.0:50051")
        );
        assert_eq!((run.device_id, run.cpu_port, run.trace), (0, Some(510), Some(1)));
        assert_eq!(run.bmv2.runtime_port, Some(9091));
        assert_eq!(run.pcap, Some("/tmp/pcaps".into()));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("--nanolog has no effect"));
    }

    #[test]
    fn the_command_line_of_ptf_scripts_starts_without_a_program() {
        let (run, notes) = parsed(
            "simple_switch_grpc --log-file ss-log --log-flush --dump-packet-data 10000 -i 0@veth0 -i 1@veth2 --no-p4",
        )
        .unwrap();
        assert!(run.bmv2.without_program);
        assert_eq!(run.p4runtime.as_ref().map(ToString::to_string).as_deref(), Some(GRPC));
        assert_eq!((run.device_id, run.bmv2.runtime_port), (0, Some(9090)));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(parsed("simple_switch_grpc --no-p4 a.json").is_err());
        assert!(parsed("simple_switch_grpc").is_err());
    }

    #[test]
    fn what_would_change_packets_is_refused_and_says_why() {
        for (line, word) in [
            ("s a.json --use-files 3", "pcap:"),
            ("s a.json --packet-in ipc:///tmp/x", "udp:"),
            ("s a.json --restore-state f", "--state"),
            ("s a.json -- --drop-port 7", "511"),
            ("s a.json -- --priority-queues 9", "8 queues"),
            ("s a.json -i veth0", "PORT@INTERFACE"),
            ("s a.json -- --cpu-port 0", "1 or more"),
        ] {
            let error = parsed(line).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    #[test]
    fn a_program_behind_pcap_is_the_program() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let (run, _) = parsed(&format!("s --pcap {path}")).unwrap();
        assert_eq!(run.source.program, file.path());
        assert_eq!(run.pcap, Some(".".into()));
    }
}
