//! Metrics of an IPC process for Prometheus.

use std::fmt::{Display, Write};
use weir_ipcp::{IpcProcess, Refused};
use weir_rina::enrolment::Failure;
use weir_rina::link_state::Rejection;

/// The text.
pub fn text(process: &IpcProcess, dropped: u64) -> String {
    let mut text = String::new();
    let counters = process.counters();
    let summary = process.link_state_summary();
    for (name, help, value) in [
        (
            "frames_received_total",
            "Frames that arrived.",
            counters.frames_received,
        ),
        ("frames_sent_total", "Frames that were sent.", counters.frames_sent),
        ("bytes_sent_total", "Their bytes.", counters.bytes_sent),
        (
            "messages_received_total",
            "Messages of layer management that arrived.",
            counters.messages_received,
        ),
        (
            "messages_sent_total",
            "Messages of layer management that were sent.",
            counters.messages_sent,
        ),
        (
            "pdus_received_total",
            "Data and control PDUs for connections here.",
            counters.pdus_received,
        ),
        (
            "pdus_sent_total",
            "Data and control PDUs of connections here.",
            counters.pdus_sent,
        ),
        (
            "pdus_forwarded_total",
            "PDUs of others that were forwarded here.",
            counters.pdus_forwarded,
        ),
        (
            "enrolments_total",
            "Enrolments that have succeeded.",
            counters.enrolments,
        ),
        (
            "route_computations_total",
            "Computations of routes.",
            counters.route_computations,
        ),
        (
            "link_states_accepted_total",
            "Link states that were news.",
            summary.accepted,
        ),
        ("link_states_sent_total", "Link states that were sent.", summary.sent),
        (
            "switch_frames_dropped_total",
            "Frames dropped between the IPC process and its switch.",
            dropped,
        ),
    ] {
        head(&mut text, name, "counter", help);
        line(&mut text, name, &[], value);
    }
    let neighbours = process.neighbours().iter().filter(|n| n.state == "enrolled").count();
    for (name, help, value) in [
        ("neighbours", "Links to enrolled neighbours.", neighbours),
        (
            "routes",
            "Destinations with a route.",
            process.forwarding().routes.len(),
        ),
        ("members", "Members of the DIF that are known.", process.members().len()),
        ("link_states", "Entries of the link-state database.", summary.states),
        (
            "directory_entries",
            "Applications in the directory.",
            process.directory().count(),
        ),
        ("flows", "Flows.", process.flows().len()),
    ] {
        head(&mut text, name, "gauge", help);
        line(&mut text, name, &[], value);
    }
    head(&mut text, "refused_total", "counter", "What was refused, by reason.");
    for (reason, count) in Refused::ALL.iter().zip(counters.refused) {
        line(&mut text, "refused_total", &[("reason", reason.name())], count);
    }
    head(
        &mut text,
        "link_states_rejected_total",
        "counter",
        "Link states that were refused, by reason.",
    );
    for (reason, count) in Rejection::ALL.iter().zip(summary.rejected) {
        line(
            &mut text,
            "link_states_rejected_total",
            &[("reason", reason.name())],
            count,
        );
    }
    head(
        &mut text,
        "enrolments_failed_total",
        "counter",
        "Enrolments that have failed, by reason.",
    );
    for (reason, count) in Failure::ALL.iter().zip(counters.enrolments_failed) {
        line(
            &mut text,
            "enrolments_failed_total",
            &[("reason", reason.name())],
            count,
        );
    }
    text
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP weir_rina_{name} {help}\n# TYPE weir_rina_{name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &[(&str, &str)], value: impl Display) {
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\""))
        .collect();
    let labels = if labels.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", labels.join(","))
    };
    let _ = writeln!(text, "weir_rina_{name}{labels} {value}");
}

#[cfg(test)]
mod tests {
    use weir_ipcp::sim::Simulation;
    use weir_rina::Time;

    #[test]
    fn counters_and_gauges_are_in_prometheus_format() {
        let mut sim = Simulation::new(1);
        let (a, b) = (sim.router("a"), sim.router("b"));
        sim.link(a, b);
        sim.start();
        sim.run_until(Time::from_secs(2));
        let text = super::text(sim.process(a).unwrap(), 3);
        for line in [
            "weir_rina_neighbours 1",
            "weir_rina_routes 1",
            "weir_rina_enrolments_total 1",
            "weir_rina_switch_frames_dropped_total 3",
            "weir_rina_refused_total{reason=\"malformed\"} 0",
            "# TYPE weir_rina_link_states gauge",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
    }
}
