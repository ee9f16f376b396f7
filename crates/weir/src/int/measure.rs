//! `weir int measure`: the delay of a device between two ports, as in the lab of Mazigh et al.
//!
//! A source sends numbered packets in the lab format of INT to the device, a sink receives them.
//! Drivers, kernel or hardware stamp each packet where it leaves and where it arrives; the delay is
//! the difference. The loopback, a path without the device, is the baseline.

mod arguments;
mod case;
mod demo;
mod device;
mod frame;
mod page;
mod path;
mod plots;
mod report;
mod stats;
mod table;

pub use arguments::{Delay, Measure};

use crate::cli::NO;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use case::{Case, Conduct};
use device::{Behaviour, Device};
use frame::Addresses;
use path::Path;
use report::{PathResult, Report};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{IsTerminal, Write};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_io::{Stamping, TimestampedReceiver, TimestampedSender};

/// Measures, and writes what was found.
pub fn measure(arguments: &Measure, messages: &Messages) -> Result<u8> {
    let stop = stop_by_signal()?;
    let plan = Plan::new(arguments);
    let addresses = addresses(arguments);
    let (report, recorded) = match (&arguments.source, &arguments.sink) {
        (Some(source), Some(sink)) => {
            let mut path = Path::between(source, sink, addresses, arguments.clocks)?;
            plan.check(&path)?;
            let baseline = baseline(arguments, &plan, addresses, messages, &stop)?;
            check_baseline(baseline.as_ref(), &path, &plan)?;
            let cases = plan.run(&mut path, &arguments.name, messages, &stop)?;
            let device = PathResult {
                name: arguments.name.clone(),
                source: source.clone(),
                sink: sink.clone(),
                clocks: path.clocks,
                cases,
            };
            (Report::new(device, baseline), Vec::new())
        }
        // The command line requires both or none.
        (Some(_) | None, _) => demo::run(&plan, messages, &stop)?,
    };
    if report.device.cases.iter().all(|measured| measured.delay.is_none()) {
        bail!("no packet has a delay: nothing was measured");
    }
    write_files(&arguments.output, &report)?;
    let mut out = crate::output::stdout();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        out.write_all(table::text(&report).as_bytes())?;
        out.write_all(demo::comparison(&report, &recorded).as_bytes())?;
        writeln!(
            out,
            "\nmeasure.html, measure.json, samples.csv and plots: {}",
            arguments.output.display()
        )?;
    }
    Ok(if report.is_clean() { 0 } else { NO })
}

fn stop_by_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot listen for signals")?;
    }
    Ok(stop)
}

fn addresses(arguments: &Measure) -> Addresses {
    let (given, default) = (&arguments.addresses, Addresses::default());
    Addresses {
        destination_mac: given.destination_mac.unwrap_or(default.destination_mac),
        source: given.source_address.unwrap_or(default.source),
        destination: given.destination_address.unwrap_or(default.destination),
        port: given.port,
        ..default
    }
}

/// What is measured of a path.
struct Plan {
    cases: Vec<(Case, Conduct)>,
    /// Number of the measurement, so that packets of others do not count.
    measurement: u32,
}

impl Plan {
    fn new(arguments: &Measure) -> Self {
        let mut cases = Vec::new();
        for rate in &arguments.rates.0 {
            let longest = arguments
                .duration
                .map(|time| (time.as_secs_f64() * f64::from(*rate)) as u64);
            let conduct = Conduct {
                warm_up: arguments.warm_up,
                samples: arguments.samples.min(longest.unwrap_or(u64::MAX)).max(1),
                patience: arguments.timeout,
                cores: arguments.cores,
            };
            let case = |size: &u32| {
                // The command line permits no more than 16 bits.
                let size = u16::try_from(*size).unwrap_or(u16::MAX);
                (Case { size, rate: *rate }, conduct)
            };
            cases.extend(arguments.sizes.0.iter().map(case));
        }
        Plan {
            cases,
            measurement: weir_io::now_ns() as u32 ^ std::process::id(),
        }
    }

    /// Checks that a path carries every size.
    fn check(&self, path: &Path) -> Result<()> {
        let longest = path.longest();
        let too_long = self.cases.iter().find(|(case, _)| usize::from(case.size) > longest);
        if let Some((case, _)) = too_long {
            bail!(
                "frames of {} bytes are too long: the source's interface has an MTU of {}",
                case.size,
                longest - 14
            );
        }
        Ok(())
    }

    /// Measures every case.
    fn run(&self, path: &mut Path, name: &str, messages: &Messages, stop: &AtomicBool) -> Result<Vec<case::Measured>> {
        let is_terminal = std::io::stderr().is_terminal();
        let mut all = Vec::new();
        for (case, conduct) in &self.cases {
            if stop.load(Ordering::Relaxed) {
                messages.line("stopped: what was measured is written");
                break;
            }
            let what = format!("{name}, {} B at {}/s", case.size, case.rate);
            let progress = |count: u64, of: u64| {
                if is_terminal {
                    crate::output::progress(format!("{what}: {count} of {of} "));
                }
            };
            let measured = case::measure(path, *case, conduct, self.measurement, &progress, stop)?;
            let median = measured.delay.as_ref().map(|delay| delay.median.value);
            let median = median.map_or_else(|| "none".to_owned(), table::nanoseconds);
            let packets = &measured.packets;
            if all.is_empty() && packets.received == 0 && !stop.load(Ordering::Relaxed) {
                bail!("no packet of {what} came back, of {}: {}", packets.sent, path.advice());
            }
            messages.line(format!(
                "{}{what}: {} sent, {} received, median {median} ns",
                if is_terminal { "\r" } else { "" },
                packets.sent,
                packets.received
            ));
            all.push(measured);
        }
        Ok(all)
    }
}

/// The results of the loopback, measured now or earlier.
fn baseline(
    arguments: &Measure,
    plan: &Plan,
    addresses: Addresses,
    messages: &Messages,
    stop: &AtomicBool,
) -> Result<Option<PathResult>> {
    if let Some(file) = &arguments.baseline {
        let report = Report::read(file)?;
        return Ok(Some(report.baseline.unwrap_or(report.device)));
    }
    let (Some(source), Some(sink)) = (&arguments.baseline_source, &arguments.baseline_sink) else {
        return Ok(None);
    };
    let mut path = Path::between(source, sink, addresses, arguments.clocks).context("the baseline's ports")?;
    plan.check(&path)?;
    let name = "Loopback".to_owned();
    let cases = plan.run(&mut path, &name, messages, stop).context("the baseline")?;
    Ok(Some(PathResult {
        name,
        source: source.clone(),
        sink: sink.clone(),
        clocks: path.clocks,
        cases,
    }))
}

/// Checks that a baseline is comparable with what is going to be measured.
fn check_baseline(baseline: Option<&PathResult>, path: &Path, plan: &Plan) -> Result<()> {
    let Some(baseline) = baseline else { return Ok(()) };
    if baseline.clocks != path.clocks {
        bail!(
            "the baseline has {}, the device's ports have {}: measure the baseline again, or choose the clocks by --stamps",
            baseline.clocks.describe(),
            path.clocks.describe()
        );
    }
    let missing = plan.cases.iter().find(|(case, _)| baseline.of(*case).is_none());
    if let Some((case, _)) = missing {
        bail!(
            "the baseline has no packets of {} bytes at {} per second: measure it with the same --size and --rate",
            case.size,
            case.rate
        );
    }
    Ok(())
}

fn write_files(folder: &FilePath, report: &Report) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the directory {}", folder.display()))?;
    let mut json = serde_json::to_vec_pretty(report)?;
    json.push(b'\n');
    weir_files::write(&folder.join("measure.json"), &json)?;
    weir_files::write(&folder.join("samples.csv"), table::csv(report).as_bytes())?;
    let plots = plots::plots(report);
    for (name, plot) in &plots {
        weir_files::write(&folder.join(format!("{name}.svg")), plot.svg().as_bytes())?;
    }
    let page = page::html(report, &plots);
    weir_files::write(&folder.join("measure.html"), page.as_bytes())?;
    Ok(())
}

/// Forwards with a known delay until a signal comes.
pub fn delay(arguments: &Delay, messages: &Messages) -> Result<u8> {
    if arguments.receiver == arguments.sender {
        bail!("`{}` cannot be both ports of the device", arguments.sender);
    }
    let stop = stop_by_signal()?;
    let behaviour = Behaviour {
        fixed: arguments.delay,
        link: arguments.link,
    };
    let receiver = TimestampedReceiver::open(&arguments.receiver, Stamping::Software)?;
    let sender = TimestampedSender::open(&arguments.sender, Stamping::Software)?;
    messages.line(format!(
        "running: {} to {}, {:?}{}",
        arguments.receiver,
        arguments.sender,
        arguments.delay,
        arguments
            .link
            .map_or_else(String::new, |rate| format!(" and a link of {rate} bit/s"))
    ));
    let recorded = Device::new(receiver, sender, behaviour, 0).run(&stop)?;
    let mut out = crate::output::stdout();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &recorded)?;
        writeln!(out)?;
    } else {
        out.write_all(table::recorded(&recorded).as_bytes())?;
    }
    Ok(0)
}
