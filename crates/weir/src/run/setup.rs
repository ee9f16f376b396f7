//! From the command line to switches: ports, rates, and the program with its state.

use super::plan::Spread;
use super::sharing;
use crate::cli::Run;
use crate::compile::Loaded;
use crate::lines::Lines;
use crate::load;
use crate::output::Messages;
use crate::overwriting::InUse;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_io::{DeviceSpec, PortSpec};
use weir_server::StateFile;
use weir_switch::{PortRate, Switch, SwitchConfig};

/// The ports that were asked for, each once.
pub fn port_specs(texts: &[String]) -> Result<Vec<PortSpec>> {
    let mut specs: Vec<PortSpec> = Vec::new();
    for text in texts {
        let spec: PortSpec = text.parse()?;
        if specs.iter().any(|s| s.port == spec.port) {
            bail!("port {} has two devices", spec.port);
        }
        if let Some(name) = spec.device.interface()
            && let Some(other) = specs.iter().find(|s| s.device.interface() == Some(name))
        {
            bail!(
                "ports {} and {} have the same interface `{name}`",
                other.port,
                spec.port
            );
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// A capture that is written must be no file that is read or written otherwise: opening it for
/// writing empties it.
fn distinct_files(arguments: &Run, specs: &[PortSpec], recorded: &[PathBuf]) -> Result<()> {
    let mut files = InUse::new();
    files.read(&arguments.source.program, "the program");
    for (path, part) in [
        (&arguments.entries, "the entries (--entries)"),
        (&arguments.state, "the state (--state)"),
        (&arguments.tls_cert, "the certificate (--tls-cert)"),
        (&arguments.tls_key, "the key (--tls-key)"),
        (&arguments.tls_client_ca, "the authorities (--tls-client-ca)"),
    ] {
        if let Some(path) = path {
            files.read(path, part);
        }
    }
    let mut written = Vec::new();
    for spec in specs {
        match &spec.device {
            DeviceSpec::Pcap { input, output } => {
                files.read(input, format!("the input of port {}", spec.port));
                written.extend(output.as_ref().map(|output| (spec.port, output)));
            }
            DeviceSpec::PcapRecord(output) => written.push((spec.port, output)),
            DeviceSpec::Interface(_)
            | DeviceSpec::Xdp(_)
            | DeviceSpec::Packet(..)
            | DeviceSpec::Tap(_)
            | DeviceSpec::Udp { .. }
            | DeviceSpec::Generator(_)
            | DeviceSpec::Null => {}
        }
    }
    for path in recorded {
        files.write(path, "a recording (--pcap)")?;
    }
    for (port, path) in written {
        files.write(path, format!("the output of port {port}"))?;
    }
    Ok(())
}

/// `2=10M` or `3=50pps`: a port and its rate.
fn port_rate(text: &str) -> Result<(u32, PortRate)> {
    let parsed = text
        .split_once('=')
        .and_then(|(port, rate)| Some((port.parse().ok()?, rate_of(rate)?)));
    parsed.with_context(|| {
        format!(
            "`{text}` is no rate of a port; write PORT=RATE, for example 2=10M or 2=10Mbit for ten million \
             bits per second at port 2, 2=50pps for packets per second"
        )
    })
}

/// Bits per second, which may be written out as `bit` or `bps`, or packets per second (`pps`), with
/// a factor of k, M or G.
pub fn rate_of(text: &str) -> Option<PortRate> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let (factor, unit) = match unit.chars().next() {
        Some('k' | 'K') => (1e3, &unit[1..]),
        Some('M' | 'm') => (1e6, &unit[1..]),
        Some('G' | 'g') => (1e9, &unit[1..]),
        _ => (1.0, unit),
    };
    let rate = digits.parse::<f64>().ok()? * factor;
    let rate = (1.0..1e15).contains(&rate).then_some(rate as u64)?;
    match unit.to_ascii_lowercase().as_str() {
        "" | "bit" | "bps" => Some(PortRate {
            bits_per_second: Some(rate),
            ..PortRate::default()
        }),
        "pps" => Some(PortRate {
            packets_per_second: Some(rate),
            ..PortRate::default()
        }),
        _ => None,
    }
}

/// What cannot be asked together.
pub fn check(arguments: &Run, specs: &[PortSpec]) -> Result<()> {
    distinct_files(arguments, specs, &super::recording::files(arguments, specs)?)?;
    if arguments.is_traced() && arguments.workers > 1 {
        bail!("traces are of one worker: leave out --workers, or --trace and --trace-port");
    }
    if let Some(cpu) = arguments.cpu_port
        && specs.iter().any(|s| s.port == cpu)
    {
        bail!("port {cpu} is the control plane's (--cpu-port) and has a device (-i)");
    }
    Ok(())
}

/// A program, ready to run.
pub struct Program {
    /// A switch for each worker, all with the same tables.
    pub switches: Vec<Switch>,
    /// Which workers may process packets.
    pub spread: Spread,
    /// What runs it: `jit` or `interp`.
    pub engine: &'static str,
    /// It, as the compiler made it.
    pub source: Arc<weir_ir::Program>,
    /// Its source lines; none of a program from a control plane.
    pub lines: Lines,
    /// Where what control planes change is to be kept.
    pub state: Option<StateFile>,
}

/// What a program begins with.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Nothing.
    Fresh,
    /// What a file of entries says.
    Entries(&'a Path),
    /// What was kept.
    State(&'a StateFile),
}

/// Compiles the program and loads its entries, or gives the exit code that says why there is none.
pub fn program(arguments: &Run, specs: &[PortSpec], messages: &Messages) -> Result<Result<Program, u8>> {
    let loaded = match arguments.bmv2.without_program {
        true => Ok(crate::bmv2::no_program()?),
        false => crate::compile::runnable(&arguments.source, messages)?,
    };
    let Loaded { program, lines } = match loaded {
        Ok(loaded) => loaded,
        Err(code) => return Ok(Err(code)),
    };
    let state = match &arguments.state {
        Some(path) => Some(open_state(arguments, path, &program, messages)?),
        None => None,
    };
    let entries = arguments.entries.as_deref();
    let (program, lines, start) = match &state {
        // Its program may have come from a control plane.
        Some(state) if state.is_restored() => {
            let program = Arc::clone(state.program());
            (program, Lines::default(), Start::State(state))
        }
        _ => (program, lines, entries.map_or(Start::Fresh, Start::Entries)),
    };
    let program = switches(arguments, program, specs, start, messages)?;
    Ok(Ok(Program {
        state,
        lines,
        ..program
    }))
}

/// Opens the file in which a state is kept, and says what becomes of it.
fn open_state(arguments: &Run, path: &Path, program: &Arc<weir_ir::Program>, messages: &Messages) -> Result<StateFile> {
    let state = StateFile::open(path, program)?;
    if let Some(finding) = state.finding() {
        messages.line(finding);
    }
    if state.is_restored() {
        let ignored = match &arguments.entries {
            Some(entries) => format!("; {} is left out", entries.display()),
            None => String::new(),
        };
        messages.line(format!("going on with the state in {}{ignored}", path.display()));
    }
    Ok(state)
}

/// A switch for each worker, with the ports' rates and what it begins with.
pub fn switches(
    arguments: &Run,
    program: Arc<weir_ir::Program>,
    specs: &[PortSpec],
    start: Start<'_>,
    messages: &Messages,
) -> Result<Program> {
    let source = Arc::clone(&program);
    for port in specs.iter().map(|s| s.port).chain(arguments.cpu_port) {
        load::check_port(&program, port)?;
    }
    let config = SwitchConfig {
        explicit_ports: false,
        queue_capacity: arguments.queue_capacity as usize,
        externs: arguments.source.front_end.externs.clone(),
        ..SwitchConfig::default()
    };
    // Whoever wants to see every step gets every step.
    let is_traced = arguments.trace.is_some() || arguments.trace_port.is_some();
    let program = if is_traced { program } else { load::optimized(&program) };
    let entries = match start {
        Start::Entries(entries) => Some(entries),
        Start::Fresh | Start::State(_) => None,
    };
    let mut switch = load::switch(program, config, entries, messages)?;
    for spec in specs {
        // So that control planes see the queues of every port.
        switch.set_queue_capacity(spec.port, arguments.queue_capacity as usize);
    }
    for rate in &arguments.port_rate {
        let (port, rate) = port_rate(rate)?;
        switch.set_port_rate(port, rate);
    }
    if !is_traced {
        load::compile(&mut switch, arguments.engine, arguments.source.message_format, messages);
    }
    let engine = if switch.compiled().is_some() { "jit" } else { "interp" };
    let obstacle = sharing::obstacle(&switch);
    let queue = "a port has a rate, and workers do not share its queue";
    // Workers check for rates with each vector.
    let why = obstacle
        .clone()
        .or_else(|| switch.has_port_rate().then(|| queue.to_owned()));
    if let Some(why) = why.filter(|_| arguments.workers > 1) {
        messages.line(format!(
            "worker 0 processes all packets, the others only receive and send: {why}"
        ));
    }
    let spread = match obstacle {
        Some(_) => Spread::First,
        None => Spread::All,
    };
    let mut switches: Vec<Switch> = (1..arguments.workers).map(|_| switch.clone()).collect();
    switches.push(switch);
    for follower in switches.iter_mut().skip(1) {
        follower.follow_keys();
    }
    for (replica, switch) in switches.iter_mut().enumerate() {
        if let Start::State(state) = start {
            state.restore(replica, switch)?;
        }
        switch.set_profiling(arguments.profile);
        switch.load_tables();
    }
    crate::lanes::attach(&mut switches, &arguments.externs)?;
    Ok(Program {
        switches,
        spread,
        engine,
        source,
        lines: Lines::default(),
        state: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units() {
        let bits = |rate| PortRate {
            bits_per_second: Some(rate),
            ..PortRate::default()
        };
        let packets = |rate| PortRate {
            packets_per_second: Some(rate),
            ..PortRate::default()
        };
        assert_eq!(port_rate("2=10M").unwrap(), (2, bits(10_000_000)));
        assert_eq!(port_rate("0=1.5k").unwrap(), (0, bits(1500)));
        assert_eq!(port_rate("1=512kbit").unwrap(), (1, bits(512_000)));
        assert_eq!(port_rate("1=1Gbps").unwrap(), (1, bits(1_000_000_000)));
        assert_eq!(port_rate("3=50pps").unwrap(), (3, packets(50)));
        assert_eq!(port_rate("3=2kpps").unwrap(), (3, packets(2000)));
        for wrong in [
            "10M", "2=", "2=fast", "2=0", "x=1", "2=5kilo", "2=0.5pps", "2=pps", "2=é",
        ] {
            assert!(port_rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_port_has_one_device() {
        let texts = ["1@null".to_string(), "1@null".to_string()];
        assert!(port_specs(&texts).unwrap_err().to_string().contains("two devices"));
    }
}
