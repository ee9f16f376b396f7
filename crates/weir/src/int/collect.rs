//! `weir int collect`: from reports to a file of results.

mod analysis;
mod clickhouse;
mod metrics;
mod raw;
mod source;
mod writer;

use super::arguments::{ClockChoice, Collect, Format, ReportVersionChoice, WatchLimits};
use crate::cli::NO;
use crate::output::Messages;
use analysis::Analysis;
use anyhow::{Context, Result, ensure};
use clickhouse::ClickHouse;
use metrics::Metrics;
use raw::Raw;
use signal_hook::consts::{SIGINT, SIGTERM};
use source::{Source, Taken};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_collector::{Clocks, Config, Interval, Limits, Totals, Unused, Watched};
use weir_int::packet::Detection;
use weir_int::report::{Decoder, ReportVersion, VersionChoice};
use writer::Writer;

/// The longest wait for reports: within it a signal is noticed.
const WAIT: Duration = Duration::from_millis(100);

/// Collects until the time is over, a signal comes, or the capture ends.
pub fn collect(arguments: &Collect, messages: &Messages) -> Result<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A second one ends the process, whatever it waits for.
        signal_hook::flag::register_conditional_shutdown(signal, NO.into(), Arc::clone(&stop))
            .context("cannot listen for signals")?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot listen for signals")?;
    }
    let limits = &arguments.limits;
    let has_limit = limits.flow_limit.is_some()
        || limits.hop_limit.is_some()
        || limits.queue_limit.is_some()
        || limits.utilisation_limit.is_some();
    ensure!(
        has_limit || (limits.delta.is_none() && limits.keepalive.is_none()),
        "--delta and --keepalive go with a limit, such as --queue-limit"
    );
    let source = Source::open(arguments, messages)?;
    let clickhouse = ClickHouse::start(arguments.clickhouse.as_deref(), messages)?;
    let writer = Writer::start(arguments.output.as_deref(), arguments.retention, clickhouse, messages)?;
    let metrics = arguments
        .http
        .map(|address| Metrics::start(address, messages))
        .transpose()?;
    let config = config(arguments);
    let raw = Raw::create(arguments.raw.as_deref(), &config.decoder)?;
    let mut run = Run {
        analysis: Analysis::start(config, arguments.threads.into())?,
        raw,
        interval: nanoseconds(arguments.interval),
        start: None,
        totals: Totals::default(),
        reports_lost: 0,
        kernel: 0,
        kernel_written: 0,
        is_ended: false,
        messages: messages.clone(),
        writer,
        metrics,
    };
    run.until_end(source, arguments.duration, &stop)?;
    run.writer.finish()?;
    run.raw.finish()?;
    answer(arguments, &run.outcome(), messages)
}

/// The configuration of collectors.
pub fn config(arguments: &Collect) -> Config {
    Config {
        decoder: decoder(&arguments.format),
        clocks: match arguments.clocks {
            ClockChoice::Estimated => Clocks::Estimated,
            ClockChoice::Trusted => Clocks::Trusted,
        },
        sequence_domain: arguments.format.flow_numbers,
        timestamp_ns: arguments.format.timestamp_unit.nanoseconds(),
        latency_ns: arguments.format.latency_unit.nanoseconds(),
        watched: watched(&arguments.limits),
        max_flows: arguments.flows,
        ..Config::default()
    }
}

fn decoder(format: &Format) -> Decoder {
    Decoder {
        version: match format.report_version {
            ReportVersionChoice::Detect => VersionChoice::Detect,
            ReportVersionChoice::V0_5 => VersionChoice::Fixed(ReportVersion::V0_5),
            ReportVersionChoice::V1_0 => VersionChoice::Fixed(ReportVersion::V1_0),
            ReportVersionChoice::V2_0 => VersionChoice::Fixed(ReportVersion::V2_0),
        },
        detection: Detection {
            udp_ports: format.int_port.clone(),
            lab_ports: format.lab_port.clone(),
            dscp: format.dscp,
            probe_marker: format.probe_marker,
            ..Detection::default()
        },
    }
}

fn watched(limits: &WatchLimits) -> Watched {
    let with_delta = |limits_of: Option<Limits>| {
        let add = |found: Limits| Limits {
            delta: limits
                .delta
                .map(|percent| ((u128::from(found.rise) * u128::from(percent) / 100) as u64).max(1)),
            ..found
        };
        limits_of.map(add)
    };
    Watched {
        flow_latency: with_delta(limits.flow_limit),
        hop_latency: with_delta(limits.hop_limit),
        queue_occupancy: with_delta(limits.queue_limit),
        tx_utilisation: with_delta(limits.utilisation_limit),
        keepalive: limits.keepalive.map(nanoseconds),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A collection at work.
struct Run {
    analysis: Analysis,
    raw: Raw,
    /// Length of an interval, ns.
    interval: u64,
    /// Begin of the interval, by the time of reports.
    start: Option<u64>,
    totals: Totals,
    reports_lost: i64,
    /// Datagrams that the kernel has dropped.
    kernel: u64,
    /// Those of them that are in the results of an interval.
    kernel_written: u64,
    /// An interval has ended since the kernel's counter was read.
    is_ended: bool,
    messages: Messages,
    writer: Writer,
    metrics: Option<Metrics>,
}

impl Run {
    fn until_end(&mut self, mut source: Source, longest: Option<Duration>, stop: &AtomicBool) -> Result<()> {
        let end = longest.map(|time| Instant::now() + time);
        let (mut latest, mut failed) = (0, None);
        loop {
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            if is_over || stop.load(Ordering::Relaxed) {
                break;
            }
            let taken = match source.take(WAIT, |now, datagrams| {
                latest = now;
                self.tick(now)?;
                self.raw.write(now, datagrams)?;
                self.analysis.take(now, datagrams)
            }) {
                Ok(taken) => taken,
                // What came before is kept.
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            match taken {
                Taken::Some => {}
                Taken::Nothing(now) => {
                    latest = now;
                    self.tick(now)?;
                }
                Taken::End => break,
            }
            if std::mem::take(&mut self.is_ended) {
                self.note_dropped(source.dropped()?);
            }
        }
        self.kernel = source.dropped()?;
        if self.start.is_some() {
            self.end_interval(latest)?;
        }
        if let Some(error) = failed {
            self.writer.finish()?;
            return Err(error);
        }
        Ok(())
    }

    fn outcome(&self) -> Outcome<'_> {
        Outcome {
            totals: &self.totals,
            lost: self.reports_lost,
            kernel: self.kernel,
            unwritten: self.writer.unwritten(),
        }
    }

    /// Ends the interval if its time is over.
    fn tick(&mut self, now: u64) -> Result<()> {
        let start = *self.start.get_or_insert(now);
        // A clock that was set back begins a new interval.
        let is_back = start.saturating_sub(now) >= self.interval;
        if now.saturating_sub(start) >= self.interval || is_back {
            self.end_interval(now)?;
        }
        Ok(())
    }

    /// Says it when the kernel has dropped datagrams.
    fn note_dropped(&mut self, dropped: u64) {
        let new = dropped - self.kernel.min(dropped);
        self.kernel = dropped;
        if new > 0 {
            self.messages.line(format!(
                "the kernel has dropped {new} datagrams: more --threads, a larger --buffer, or fewer reports would help"
            ));
        }
    }

    fn end_interval(&mut self, now: u64) -> Result<()> {
        self.is_ended = true;
        let (mut interval, flows) = self.analysis.end_interval(now)?;
        interval.start = self.start.replace(now).unwrap_or(now);
        interval.totals.dropped_by_kernel = self.kernel.saturating_sub(self.kernel_written);
        self.kernel_written = self.kernel;
        self.totals.add(&interval.totals);
        self.reports_lost += lost(&interval);
        if let Some(metrics) = &self.metrics {
            metrics.update(&interval, &self.outcome());
        }
        self.writer.write(interval, flows)
    }
}

fn lost(interval: &Interval) -> i64 {
    interval.exporters.values().map(|counts| counts.lost).sum()
}

/// The counters of a collection.
pub struct Outcome<'a> {
    pub totals: &'a Totals,
    /// Reports that are missing.
    pub lost: i64,
    /// Datagrams that the kernel dropped.
    pub kernel: u64,
    /// Intervals whose results could not be written.
    pub unwritten: u64,
}

fn answer(arguments: &Collect, outcome: &Outcome<'_>, messages: &Messages) -> Result<u8> {
    let Outcome {
        totals,
        lost,
        kernel,
        unwritten,
    } = *outcome;
    let malformed: u64 = totals.malformed.iter().sum();
    let named = |names: &mut dyn Iterator<Item = &'static str>, counts: &[u64]| {
        let all = names.zip(counts).filter(|(_, count)| **count > 0);
        all.map(|(name, count)| (name.to_owned(), serde_json::Value::from(*count)))
            .collect::<serde_json::Map<_, _>>()
    };
    let reasons = named(&mut weir_collector::REASONS.iter().map(|r| r.name()), &totals.malformed);
    let unused = named(&mut Unused::ALL.iter().map(|u| u.name()), &totals.unused);
    if arguments.json {
        let value = serde_json::json!({
            "datagrams": totals.datagrams,
            "bytes": totals.bytes,
            "reports": totals.reports,
            "lost": lost,
            "dropped_by_kernel": kernel,
            "malformed": reasons,
            "unused": unused,
            "flows_evicted": totals.flows_evicted,
            "events_left_out": totals.events_left_out,
            "intervals_not_written": unwritten,
        });
        writeln!(crate::output::stdout(), "{value:#}")?;
    } else {
        let list = |map: &serde_json::Map<String, serde_json::Value>| -> String {
            map.iter().map(|(name, count)| format!("; {count} {name}")).collect()
        };
        messages.line(format!(
            "{} reports in {} datagrams; {lost} lost on the way, {kernel} dropped by the kernel, {malformed} malformed, \
             {} flows evicted, {} events left out, {unwritten} intervals not written{}{}",
            totals.reports,
            totals.datagrams,
            totals.flows_evicted,
            totals.events_left_out,
            list(&reasons),
            list(&unused)
        ));
    }
    let is_complete = lost <= 0 && kernel == 0 && malformed == 0 && unwritten == 0;
    Ok(if is_complete { 0 } else { NO })
}
