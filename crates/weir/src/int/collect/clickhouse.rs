//! Results to ClickHouse over HTTP, where weir is built with that feature.

use crate::output::Messages;
use anyhow::Result;
use weir_collector::{FlowSummary, Interval};

/// Sends results, if an address is given.
pub struct ClickHouse {
    #[cfg(feature = "clickhouse")]
    target: Option<sending::Target>,
}

#[cfg(not(feature = "clickhouse"))]
impl ClickHouse {
    /// Refuses an address.
    pub fn start(address: Option<&str>, _: &Messages) -> Result<Self> {
        anyhow::ensure!(
            address.is_none(),
            "this weir cannot send to ClickHouse: build it with `cargo build --release -p weir --features clickhouse`"
        );
        Ok(ClickHouse {})
    }

    /// Sends nothing.
    pub fn write(&mut self, _: &Interval, _: &[FlowSummary]) {}
}

#[cfg(feature = "clickhouse")]
impl ClickHouse {
    /// Makes the tables, if there is an address.
    pub fn start(address: Option<&str>, messages: &Messages) -> Result<Self> {
        let target = address.map(|address| sending::Target::start(address, messages.clone()));
        Ok(ClickHouse {
            target: target.transpose()?,
        })
    }

    /// Sends what an interval brought. Where that fails, it is said, and collecting continues.
    pub fn write(&mut self, interval: &Interval, flows: &[FlowSummary]) {
        if let Some(target) = &mut self.target {
            target.write(interval, flows);
        }
    }
}

#[cfg(feature = "clickhouse")]
mod sending {
    use crate::output::Messages;
    use anyhow::{Context, Result};
    use serde_json::{Value, json};
    use std::time::Duration;
    use weir_collector::{FlowSummary, Histogram, Interval};

    /// The longest time for one request: results of an interval are sent one after the other.
    const TIME: Duration = Duration::from_secs(10);

    const TABLES: [&str; 3] = [
        "CREATE TABLE IF NOT EXISTS weir_int_histograms (time DateTime64(9), kind LowCardinality(String), name String,
         values UInt64, mean Float64, p50 UInt64, p90 UInt64, p99 UInt64, p999 UInt64, p9999 UInt64, max UInt64)
         ENGINE = MergeTree ORDER BY (kind, name, time)",
        "CREATE TABLE IF NOT EXISTS weir_int_flows (time DateTime64(9), flow String, path String, reports UInt64,
         dropped UInt64, path_changes UInt64, latency_count UInt64, latency_sum UInt64, latency_max UInt64,
         jitter Float64, lost Int64) ENGINE = MergeTree ORDER BY (flow, time)",
        "CREATE TABLE IF NOT EXISTS weir_int_events (time DateTime64(9), what LowCardinality(String), subject String,
         detail String) ENGINE = MergeTree ORDER BY (what, time)",
    ];

    pub struct Target {
        agent: ureq::Agent,
        address: String,
        messages: Messages,
        failed: u64,
    }

    impl Target {
        pub fn start(address: &str, messages: Messages) -> Result<Self> {
            let config = ureq::Agent::config_builder().timeout_global(Some(TIME)).build();
            let target = Target {
                agent: config.into(),
                address: address.to_owned(),
                messages,
                failed: 0,
            };
            for table in TABLES {
                target
                    .post(table)
                    .with_context(|| format!("{address}: cannot make tables"))?;
            }
            Ok(target)
        }

        pub fn write(&mut self, interval: &Interval, flows: &[FlowSummary]) {
            let parts = [
                ("weir_int_histograms", histograms(interval)),
                (
                    "weir_int_flows",
                    flows.iter().map(|flow| flow_row(interval.end, flow)).collect(),
                ),
                ("weir_int_events", events(interval)),
            ];
            for (table, rows) in parts.into_iter().filter(|(_, rows)| !rows.is_empty()) {
                let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
                let request = format!("INSERT INTO {table} FORMAT JSONEachRow\n{}", lines.join("\n"));
                if let Err(error) = self.post(&request) {
                    self.failed += rows.len() as u64;
                    let failed = self.failed;
                    self.messages
                        .line(format!("ClickHouse: {error}; {failed} rows were not sent so far"));
                }
            }
        }

        fn post(&self, query: &str) -> Result<()> {
            let mut request = self.agent.post(&self.address);
            for (variable, header) in [
                ("CLICKHOUSE_USER", "X-ClickHouse-User"),
                ("CLICKHOUSE_PASSWORD", "X-ClickHouse-Key"),
            ] {
                if let Ok(value) = std::env::var(variable) {
                    request = request.header(header, value);
                }
            }
            request.send(query)?;
            Ok(())
        }
    }

    /// A time as ClickHouse reads it: seconds with nine digits after the point.
    fn time(nanoseconds: u64) -> String {
        format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
    }

    fn histograms(interval: &Interval) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut push = |kind: &str, name: String, histogram: &Histogram| {
            if !histogram.is_empty() {
                rows.push(json!({
                    "time": time(interval.end), "kind": kind, "name": name, "values": histogram.count(),
                    "mean": histogram.mean(), "p50": histogram.quantile(0.5), "p90": histogram.quantile(0.9),
                    "p99": histogram.quantile(0.99), "p999": histogram.quantile(0.999),
                    "p9999": histogram.quantile(0.9999), "max": histogram.max(),
                }));
            }
        };
        for (port, summary) in &interval.ports {
            push("port", port.to_string(), &summary.latency);
            for (queue, occupancy) in &summary.queues {
                push("queue", format!("{port} queue {queue}"), occupancy);
            }
        }
        interval
            .links
            .iter()
            .for_each(|(link, summary)| push("link", link.to_string(), &summary.latency));
        interval
            .paths
            .iter()
            .for_each(|(path, summary)| push("path", path.to_string(), &summary.latency));
        rows
    }

    fn flow_row(end: u64, flow: &FlowSummary) -> Value {
        json!({
            "time": time(end), "flow": flow.key.to_string(),
            "path": flow.path.as_ref().map(ToString::to_string).unwrap_or_default(),
            "reports": flow.reports, "dropped": flow.dropped, "path_changes": flow.path_changes,
            "latency_count": flow.latency.count, "latency_sum": flow.latency.sum, "latency_max": flow.latency.max,
            "jitter": flow.jitter, "lost": flow.sequence.map_or(0, |counts| counts.lost),
        })
    }

    fn events(interval: &Interval) -> Vec<Value> {
        let row = |event: &weir_collector::Event| {
            let detail = serde_json::to_string(&event.what).unwrap_or_default();
            json!({
                "time": time(event.time), "what": event.what.name(), "subject": event.subject.to_string(),
                "detail": detail,
            })
        };
        interval.events.iter().map(row).collect()
    }
}
