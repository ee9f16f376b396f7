//! What a run tells Prometheus. docs/run.md lists the names.

use super::report::{About, EndReport, Report};
use super::serve::ServersReport;
use crate::extern_rows::ExternRow;
use std::fmt::{Display, Write};
use weir_server::CallCount;

/// A family: its name, its help, and what a row gives.
type Family<T> = (&'static str, &'static str, fn(&T) -> u64);

/// Metrics of one text.
struct Text(String);

impl Text {
    /// Begins a family: its help and its type.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.0.push_str(name);
        for (i, (label, value)) in labels.iter().enumerate() {
            let value = value.to_string();
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{escaped}\"", if i == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }

    /// A family of counters or gauges, one sample per row.
    fn rows<'a, T: 'a>(
        &mut self,
        (name, kind, help): (&str, &str, &str),
        rows: impl Iterator<Item = T>,
        mut sample: impl FnMut(&mut Text, &str, T),
    ) {
        self.family(name, kind, help);
        rows.for_each(|row| sample(self, name, row));
    }
}

/// A report as Prometheus' text, format 0.0.4.
pub fn text(report: &Report, about: About, servers: Option<&ServersReport>) -> String {
    let mut out = Text(String::new());
    switch(&mut out, report, about);
    ports(&mut out, report);
    queues(&mut out, report);
    tables(&mut out, report);
    externs(&mut out, report);
    losses(&mut out, report);
    if let Some(report) = servers {
        calls(&mut out, report);
    }
    out.0
}

fn of_call(out: &mut Text, name: &str, call: &CallCount, value: impl Display) {
    let code = format!("{:?}", call.code);
    let labels: [(&str, &dyn Display); 3] = [("service", &call.service), ("method", &call.method), ("code", &code)];
    out.sample(name, &labels, value);
}

fn calls(out: &mut Text, report: &ServersReport) {
    let calls = || report.calls.iter();
    out.rows(
        (
            "weir_rpc_calls_total",
            "counter",
            "Calls of the control plane's servers, by outcome.",
        ),
        calls(),
        |out, name, call| of_call(out, name, call, call.calls),
    );
    out.rows(
        (
            "weir_rpc_seconds_total",
            "counter",
            "Time until these calls were answered.",
        ),
        calls(),
        |out, name, call| of_call(out, name, call, call.nanos as f64 / 1e9),
    );
    out.rows(
        (
            "weir_controller_streams",
            "gauge",
            "Streams of controllers that have said who they are.",
        ),
        report.streams.iter(),
        |out, name, (service, streams, _)| out.sample(name, &[("service", service)], streams),
    );
    out.rows(
        (
            "weir_controller_missed_messages_total",
            "counter",
            "Messages that were not sent because a controller was slow.",
        ),
        report.streams.iter(),
        |out, name, (service, _, missed)| out.sample(name, &[("service", service)], missed),
    );
    out.family(
        "weir_controller_lost_packets_total",
        "counter",
        "Packets for controllers that came faster than they could be sent.",
    );
    out.sample("weir_controller_lost_packets_total", &[], report.lost_packets);
}

fn switch(out: &mut Text, report: &Report, about: About) {
    out.family("weir_info", "gauge", "What runs.");
    out.sample(
        "weir_info",
        &[("version", &env!("CARGO_PKG_VERSION")), ("engine", &about.engine)],
        1,
    );
    out.family("weir_uptime_seconds", "gauge", "Time since the start.");
    out.sample("weir_uptime_seconds", &[], about.seconds);
    out.family("weir_reloads_total", "counter", "How often the program was replaced.");
    out.sample("weir_reloads_total", &[], about.reloads);
    out.rows(
        (
            "weir_worker_packets_total",
            "counter",
            "Packets that each worker has processed.",
        ),
        report.workers.iter(),
        |out, name, (worker, packets)| out.sample(name, &[("worker", worker)], packets),
    );
}

fn ports(out: &mut Text, report: &Report) {
    let ports = &report.counts.ports;
    let families: [Family<weir_switch::PortStats>; 4] = [
        (
            "weir_port_received_packets_total",
            "Packets received at the port.",
            |p| p.rx.packets,
        ),
        ("weir_port_received_bytes_total", "Bytes received at the port.", |p| {
            p.rx.bytes
        }),
        ("weir_port_sent_packets_total", "Packets sent by the port.", |p| {
            p.tx.packets
        }),
        ("weir_port_sent_bytes_total", "Bytes sent by the port.", |p| p.tx.bytes),
    ];
    for (name, help, value) in families {
        out.rows((name, "counter", help), ports.iter(), |out, name, (port, stats)| {
            out.sample(name, &[("port", port)], value(stats));
        });
    }
}

fn queues(out: &mut Text, report: &Report) {
    let families: [Family<weir_switch::QueueStats>; 4] = [
        ("weir_queue_depth_packets", "Packets in the queue.", |q| q.depth),
        (
            "weir_queue_highest_packets",
            "Most packets that were in the queue at once.",
            |q| q.highest,
        ),
        (
            "weir_queue_capacity_packets",
            "Packets that the queue has room for.",
            |q| q.capacity,
        ),
        (
            "weir_queue_dropped_packets_total",
            "Packets dropped because the queue was full.",
            |q| q.refused,
        ),
    ];
    for (name, help, value) in families {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        out.rows((name, kind, help), report.counts.queues.values(), |out, name, queue| {
            out.sample(
                name,
                &[("port", &queue.port), ("priority", &queue.priority)],
                value(queue),
            );
        });
    }
}

fn tables(out: &mut Text, report: &Report) {
    let tables = || report.counts.tables.iter();
    out.rows(
        ("weir_table_entries", "gauge", "Entries of the table."),
        tables(),
        |out, name, row| out.sample(name, &[("table", &row.name)], row.entries),
    );
    out.rows(
        ("weir_table_hits_total", "counter", "Lookups that found an entry."),
        tables(),
        |out, name, row| out.sample(name, &[("table", &row.name)], row.hits),
    );
    out.rows(
        ("weir_table_misses_total", "counter", "Lookups that found none."),
        tables(),
        |out, name, row| out.sample(name, &[("table", &row.name)], row.misses),
    );
}

fn externs(out: &mut Text, report: &Report) {
    let rows = || report.counts.externs.iter();
    let sample = |out: &mut Text, name: &str, row: &ExternRow, more: (&str, &dyn Display), value: &dyn Display| {
        let labels: [(&str, &dyn Display); 4] = [
            ("call", &row.call.name),
            ("place", &row.place),
            ("worker", &row.worker),
            more,
        ];
        out.sample(name, &labels, value);
    };
    out.rows(
        (
            "weir_extern_calls_total",
            "counter",
            "Calls of externs for which packets may wait, by execution.",
        ),
        rows(),
        |out, name, row| {
            sample(out, name, row, ("execution", &"inline"), &row.call.inline);
            sample(out, name, row, ("execution", &"handed-over"), &row.call.handed_over);
        },
    );
    out.rows(
        (
            "weir_extern_cost_cycles",
            "gauge",
            "Cycles of the worker per call, by execution: moving averages.",
        ),
        rows(),
        |out, name, row| {
            let costs = [
                ("inline", row.call.inline_cycles),
                ("handed-over", row.call.suspension_cycles),
            ];
            for (execution, cost) in costs {
                if let Some(cost) = cost {
                    sample(out, name, row, ("execution", &execution), &cost);
                }
            }
        },
    );
    out.rows(
        (
            "weir_extern_handed_over",
            "gauge",
            "1: most calls are handed over at the moment; 0: they are inline. The cause says why.",
        ),
        rows(),
        |out, name, row| {
            sample(
                out,
                name,
                row,
                ("cause", &row.call.cause),
                &u8::from(row.call.is_handed_over),
            )
        },
    );
}

fn losses(out: &mut Text, report: &Report) {
    out.rows(
        (
            "weir_dropped_packets_total",
            "counter",
            "Packets dropped by the switch, by reason and place in the source.",
        ),
        report.counts.drops.iter(),
        |out, name, (reason, place, packets)| out.sample(name, &[("reason", reason), ("place", place)], packets),
    );
    out.rows(
        (
            "weir_unconnected_packets_total",
            "counter",
            "Packets for ports that no device is connected to.",
        ),
        report.unconnected.iter(),
        |out, name, (port, packets)| out.sample(name, &[("port", port)], packets),
    );
    let devices: [Family<EndReport>; 3] = [
        (
            "weir_device_receive_dropped_packets_total",
            "Packets lost before they could be received.",
            |e| e.counters.receive_dropped,
        ),
        (
            "weir_device_send_dropped_packets_total",
            "Packets that the device could not send.",
            |e| e.counters.send_dropped,
        ),
        (
            "weir_device_refused_packets_total",
            "Packets that the device did not take.",
            |e| e.refused,
        ),
    ];
    for (name, help, value) in devices {
        // A device with several queues has an end for each.
        let mut sums: std::collections::BTreeMap<(u32, &str), u64> = std::collections::BTreeMap::new();
        for end in &report.ends {
            *sums.entry((end.port, &end.device)).or_default() += value(end);
        }
        out.rows(
            (name, "counter", help),
            sums.iter(),
            |out, name, ((port, device), packets)| {
                out.sample(name, &[("port", port), ("device", device)], packets);
            },
        );
    }
    out.rows(
        ("weir_device_failed", "gauge", "1: the device is of no use any more."),
        report.ends.iter(),
        |out, name, end| {
            let failed = u8::from(end.failure.is_some());
            out.sample(name, &[("port", &end.port), ("device", &end.device)], failed);
        },
    );
    out.family(
        "weir_digests_unheard_total",
        "counter",
        "Digest messages that nobody was there to take.",
    );
    out.sample("weir_digests_unheard_total", &[], report.digests);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        let mut out = Text(String::new());
        out.sample("x", &[("a", &"q\"\\\n"), ("b", &7)], 1);
        assert_eq!(out.0, "x{a=\"q\\\"\\\\\\n\",b=\"7\"} 1\n");
    }
}
