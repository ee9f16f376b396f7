//! What a run has done: of one worker, or of all together.

use crate::stats::Snapshot;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use weir_io::Counters;

/// What a device has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndReport {
    /// The port.
    pub port: u32,
    /// The device, for people.
    pub device: String,
    /// Its own counters.
    pub counters: Counters,
    /// Frames that it did not take.
    pub refused: u64,
    /// Why it is of no use any more.
    pub failure: Option<String>,
}

/// What a run has done.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What the switches have counted.
    pub counts: Snapshot,
    /// By port and queue.
    pub ends: Vec<EndReport>,
    /// Digest messages that nobody was there to take.
    pub digests: u64,
    /// Packets for ports that no device is connected to.
    pub unconnected: BTreeMap<u32, u64>,
    /// Packets that each worker has processed.
    pub workers: Vec<(usize, u64)>,
}

/// What a report says of the run as a whole.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Since the start.
    pub seconds: f64,
    /// Machine code, or the interpreter.
    pub engine: &'static str,
    /// How often the program was replaced.
    pub reloads: u64,
    /// Nothing will be counted any more.
    pub is_final: bool,
}

impl Report {
    /// Adds what another worker has done.
    pub fn add(&mut self, other: Report) {
        self.counts.add(&other.counts);
        self.ends.extend(other.ends);
        self.ends.sort_by_key(|end| end.port);
        self.digests += other.digests;
        for (port, packets) in other.unconnected {
            *self.unconnected.entry(port).or_default() += packets;
        }
        self.workers.extend(other.workers);
        self.workers.sort_unstable();
    }

    /// Whether a device has failed.
    pub fn has_failure(&self) -> bool {
        self.ends.iter().any(|end| end.failure.is_some())
    }

    /// Frames that devices did not take, by port.
    fn refused(&self) -> BTreeMap<u32, u64> {
        let mut refused = BTreeMap::new();
        for end in &self.ends {
            *refused.entry(end.port).or_default() += end.refused;
        }
        refused
    }

    /// As one JSON object.
    pub fn json(&self, about: About) -> Value {
        let by_port = |counts: &BTreeMap<u32, u64>| -> Value {
            let rows = counts.iter();
            rows.map(|(port, packets)| json!({ "port": port, "packets": packets }))
                .collect()
        };
        let workers = self.workers.iter();
        let mut value = self.counts.json();
        value["queues"] = self.counts.queues_json();
        value["externs"] = self.counts.externs_json();
        value["stages"] = self.counts.stages_json();
        value["devices"] = self.ends.iter().map(EndReport::json).collect();
        value["workers"] = workers
            .map(|(worker, packets)| json!({ "worker": worker, "packets": packets }))
            .collect();
        value["unconnected"] = by_port(&self.unconnected);
        value["refused"] = by_port(&self.refused());
        value["digests"] = self.digests.into();
        value["engine"] = about.engine.into();
        value["reloads"] = about.reloads.into();
        value["seconds"] = about.seconds.into();
        value["final"] = about.is_final.into();
        value
    }

    /// For people.
    pub fn text(&self, about: About) -> String {
        let packets = self.counts.total().rx.packets;
        let mut out = format!("{packets} packets in {:.1} s\n{}", about.seconds, self.counts.text());
        out.push_str(&self.counts.details());
        if self.workers.len() > 1 {
            let shares: Vec<String> = self.workers.iter().map(|(w, n)| format!("{w}: {n}")).collect();
            let _ = writeln!(out, "\npackets by worker: {}", shares.join(", "));
        }
        self.write_losses(&mut out);
        out
    }

    /// What was lost, or went nowhere, outside of the program.
    fn write_losses(&self, out: &mut String) {
        if self.digests > 0 {
            let _ = writeln!(out, "{} digest messages had no control plane to go to", self.digests);
        }
        for (port, count) in &self.unconnected {
            let _ = writeln!(out, "{count} packets went to port {port}, which has no device");
        }
        for end in &self.ends {
            let (port, device) = (end.port, &end.device);
            let lines = [
                (
                    end.counters.receive_dropped,
                    "were lost before they could be received from",
                ),
                (end.counters.send_dropped, "could not be sent by"),
                (end.refused, "were not taken by"),
            ];
            for (count, what) in lines.iter().filter(|(count, _)| *count > 0) {
                let _ = writeln!(out, "{count} packets {what} {device}, port {port}");
            }
            if let Some(failure) = &end.failure {
                let _ = writeln!(out, "port {port} failed: {failure}");
            }
        }
    }
}

impl EndReport {
    fn json(&self) -> Value {
        let c = &self.counters;
        json!({
            "port": self.port,
            "device": self.device,
            "rx_packets": c.received,
            "rx_bytes": c.received_bytes,
            "tx_packets": c.sent,
            "tx_bytes": c.sent_bytes,
            "rx_dropped": c.receive_dropped,
            "tx_dropped": c.send_dropped,
            "refused": self.refused,
            "checksums_finished": c.checksums_finished,
            "segmented": c.segmented,
            "failure": self.failure,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About = About {
        seconds: 1.0,
        engine: "jit",
        reloads: 0,
        is_final: true,
    };

    fn report(worker: usize, dropped: u64) -> Report {
        let end = EndReport {
            port: 2 - worker as u32,
            device: "null".to_string(),
            counters: Counters {
                receive_dropped: dropped,
                ..Counters::default()
            },
            refused: 3,
            failure: None,
        };
        Report {
            ends: vec![end],
            unconnected: BTreeMap::from([(9, 5)]),
            workers: vec![(worker, 10)],
            ..Report::default()
        }
    }

    #[test]
    fn workers_are_summed_and_every_loss_is_told() {
        let mut sum = Report::default();
        sum.add(report(0, 7));
        sum.add(report(1, 0));
        let value = sum.json(ABOUT);
        assert_eq!(value["unconnected"], json!([{ "port": 9, "packets": 10 }]));
        assert_eq!(value["refused"][0], json!({ "port": 1, "packets": 3 }));
        assert_eq!(
            (&value["devices"][1]["rx_dropped"], &value["workers"][1]["packets"]),
            (&json!(7), &json!(10))
        );
        let text = sum.text(ABOUT);
        for line in [
            "7 packets were lost before",
            "3 packets were not taken",
            "10 packets went to port 9",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
