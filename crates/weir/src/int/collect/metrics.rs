//! Counters and quantiles for Prometheus.

use super::Outcome;
use crate::exposition::Exposition;
use crate::output::Messages;
use anyhow::Result;
use std::fmt::{Display, Write};
use std::net::SocketAddr;
use weir_collector::{Histogram, Interval, Totals, Unused};

/// The most ports, links, paths and exporters that are given out, each.
const MOST: usize = 1000;
/// Quantiles that are given out.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// What is given out.
pub struct Metrics(Exposition);

impl Metrics {
    /// Starts the server; it listens when this returns.
    pub fn start(address: SocketAddr, messages: &Messages) -> Result<Self> {
        let metrics = Metrics(Exposition::start(address, messages)?);
        let outcome = Outcome {
            totals: &Totals::default(),
            lost: 0,
            kernel: 0,
            unwritten: 0,
        };
        metrics.update(&Interval::default(), &outcome);
        Ok(metrics)
    }

    /// Gives out the totals, and the quantiles of the last interval.
    pub fn update(&self, interval: &Interval, outcome: &Outcome<'_>) {
        self.0.set(text(interval, outcome));
    }
}

fn text(interval: &Interval, outcome: &Outcome<'_>) -> String {
    let totals = outcome.totals;
    let mut text = String::new();
    counter(&mut text, "datagrams", "Datagrams of reports.", totals.datagrams);
    counter(&mut text, "reports", "Reports that were decoded.", totals.reports);
    let lost = u64::try_from(outcome.lost).unwrap_or(0);
    counter(
        &mut text,
        "reports_missing",
        "Reports whose sequence numbers are missing.",
        lost,
    );
    counter(
        &mut text,
        "datagrams_dropped",
        "Datagrams that the kernel dropped.",
        outcome.kernel,
    );
    counter(
        &mut text,
        "intervals_not_written",
        "Intervals whose results could not be written to the file.",
        outcome.unwritten,
    );
    counter(
        &mut text,
        "flows_evicted",
        "Flows that made room for others.",
        totals.flows_evicted,
    );
    counter(
        &mut text,
        "events_left_out",
        "Events that did not fit.",
        totals.events_left_out,
    );
    head(
        &mut text,
        "reports_malformed_total",
        "counter",
        "Reports that were malformed.",
    );
    for (reason, count) in weir_collector::REASONS.iter().zip(totals.malformed) {
        line(
            &mut text,
            "reports_malformed_total",
            &[("reason", &reason.name())],
            count,
        );
    }
    head(
        &mut text,
        "reports_unused_total",
        "counter",
        "Reports of which a part was not used.",
    );
    for (why, count) in Unused::ALL.iter().zip(totals.unused) {
        line(&mut text, "reports_unused_total", &[("reason", &why.name())], count);
    }
    head(
        &mut text,
        "reports_lost",
        "gauge",
        "Reports that were lost in the last interval.",
    );
    for (key, counts) in interval.exporters.iter().take(MOST) {
        let labels: [(&str, &dyn Display); 3] = [("address", &key.address), ("node", &key.node), ("part", &key.hw_id)];
        line(&mut text, "reports_lost", &labels, counts.lost);
    }
    let ports = interval.ports.iter().take(MOST);
    let ports = ports.map(|(port, summary)| (port.to_string(), &summary.latency));
    summaries(
        &mut text,
        "hop_latency_ns",
        "Latency of a node by egress port, last interval.",
        "port",
        ports,
    );
    let links = interval.links.iter().take(MOST);
    let links = links.map(|(link, summary)| (link.to_string(), &summary.latency));
    summaries(
        &mut text,
        "link_latency_ns",
        "Latency of a link, last interval.",
        "link",
        links,
    );
    let paths = interval.paths.iter().take(MOST);
    let paths = paths.map(|(path, summary)| (path.to_string(), &summary.latency));
    summaries(
        &mut text,
        "path_latency_ns",
        "End-to-end latency of a path, last interval.",
        "path",
        paths,
    );
    let queues = interval.ports.iter().take(MOST).flat_map(|(port, summary)| {
        let of_port = summary.queues.iter();
        of_port.map(move |(queue, occupancy)| (format!("{port} queue {queue}"), occupancy))
    });
    summaries(
        &mut text,
        "queue_occupancy",
        "Occupancy of a queue, last interval.",
        "queue",
        queues,
    );
    text
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP weir_int_{name} {help}\n# TYPE weir_int_{name} {kind}");
}

fn counter(text: &mut String, name: &str, help: &str, value: u64) {
    let name = format!("{name}_total");
    head(text, &name, "counter", help);
    line(text, &name, &[], value);
}

fn line(text: &mut String, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\""))
        .collect();
    let labels = if labels.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", labels.join(","))
    };
    let _ = writeln!(text, "weir_int_{name}{labels} {value}");
}

fn summaries<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    label: &str,
    all: impl Iterator<Item = (String, &'a Histogram)>,
) {
    head(text, name, "summary", help);
    for (key, histogram) in all.filter(|(_, histogram)| !histogram.is_empty()) {
        for share in QUANTILES {
            let labels: [(&str, &dyn Display); 2] = [(label, &key), ("quantile", &share)];
            line(text, name, &labels, histogram.quantile(share));
        }
        line(text, &format!("{name}_sum"), &[(label, &key)], histogram.sum());
        line(text, &format!("{name}_count"), &[(label, &key)], histogram.count());
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, text};
    use weir_collector::{Interval, PortKey, PortSummary, Totals};

    #[test]
    fn quantiles_and_counters_are_in_prometheus_format() {
        let mut interval = Interval::default();
        let mut summary = PortSummary::default();
        summary.latency.record(100);
        let port = PortKey {
            node: Some(1),
            port: Some(2),
        };
        interval.ports.insert(port, summary);
        let totals = Totals {
            reports: 7,
            ..Totals::default()
        };
        let outcome = Outcome {
            totals: &totals,
            lost: 3,
            kernel: 0,
            unwritten: 2,
        };
        let text = text(&interval, &outcome);
        for line in [
            "weir_int_reports_total 7",
            "weir_int_reports_missing_total 3",
            "weir_int_intervals_not_written_total 2",
            "weir_int_reports_malformed_total{reason=\"truncated\"} 0",
            "weir_int_hop_latency_ns{port=\"1:2\",quantile=\"0.99\"} 100",
            "weir_int_hop_latency_ns_count{port=\"1:2\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
    }
}
