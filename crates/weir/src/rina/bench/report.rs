//! What `weir rina bench` prints and draws.

use super::flow::Compared;
use crate::bench::{Line, Plot};
use crate::int::table;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use weir_store::Rows;

/// Throughput of one size.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Throughput {
    /// Bytes of a frame.
    pub bytes: usize,
    /// Mbit/s of frames that arrived, the median.
    pub efcp: f64,
    /// The same of IPv4.
    pub ipv4: f64,
}

/// Loss at one interval.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Loss {
    /// Microseconds between two packets.
    pub interval: f64,
    /// Percent that was lost, the median.
    pub efcp: f64,
    /// The same of IPv4.
    pub ipv4: f64,
}

/// All results.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// A flow beside UDP.
    pub flow: Compared,
    /// By size.
    pub throughput: Vec<Throughput>,
    /// By interval.
    pub loss: Vec<Loss>,
}

/// Figure 15 of the paper, in Mbit/s: "limited to around 60 Mbps and slightly higher for the IP
/// tests". Its curves have no numbers.
const PAPER_VM: f64 = 60.0;
/// Figure 17: around 1 Gbit/s of IP, around 400 Mbit/s of EFCP.
const PAPER_AWS: [f64; 2] = [400.0, 1000.0];

impl Report {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let flow = &self.flow.flow;
        let udp = &self.flow.udp;
        let percent = |lost: u64, of: u64| 100.0 * lost as f64 / of.max(1) as f64;
        let mbit = |bytes: u64, seconds: f64| bytes as f64 * 8e-6 / seconds.max(f64::MIN_POSITIVE);
        let row =
            |name: &str, values: [Value; 6]| -> Vec<Value> { [Value::from(name)].into_iter().chain(values).collect() };
        let tenth = |value: f64| Value::from((value * 10.0).round() / 10.0);
        let lost = |sent: u64, arrived: u64| sent.saturating_sub(arrived);
        let rows = Rows {
            columns: [
                "",
                "sent",
                "lost",
                "lost_percent",
                "not_in_order",
                "damaged",
                "mbit_per_s",
            ]
            .map(str::to_owned)
            .into(),
            rows: vec![
                row(
                    "reliable flow",
                    [
                        flow.sent.into(),
                        lost(flow.sent, flow.received.sdus).into(),
                        tenth(percent(lost(flow.sent, flow.received.sdus), flow.sent)),
                        flow.received.out_of_order.into(),
                        flow.received.damaged.into(),
                        tenth(mbit(flow.received.bytes, flow.seconds)),
                    ],
                ),
                row(
                    "UDP, same rate",
                    [
                        udp.sent.into(),
                        lost(udp.sent, udp.arrived).into(),
                        tenth(percent(lost(udp.sent, udp.arrived), udp.sent)),
                        udp.out_of_order.into(),
                        udp.damaged.into(),
                        tenth(mbit(udp.bytes, udp.seconds)),
                    ],
                ),
            ],
            is_cut: false,
        };
        let _ = writeln!(text, "{}", table::text(&rows));
        let by_size = Rows {
            columns: ["bytes", "efcp_mbit_per_s", "ipv4_mbit_per_s"]
                .map(str::to_owned)
                .into(),
            rows: self
                .throughput
                .iter()
                .map(|t| vec![t.bytes.into(), tenth(t.efcp), tenth(t.ipv4)])
                .collect(),
            is_cut: false,
        };
        let _ = writeln!(text, "{}", table::text(&by_size));
        let by_interval = Rows {
            columns: ["interval_us", "efcp_lost_percent", "ipv4_lost_percent"]
                .map(str::to_owned)
                .into(),
            rows: self
                .loss
                .iter()
                .map(|l| vec![l.interval.into(), tenth(l.efcp), tenth(l.ipv4)])
                .collect(),
            is_cut: false,
        };
        let _ = write!(text, "{}", table::text(&by_interval));
        text
    }

    /// The plots, with names for files.
    pub fn plots(&self) -> [(&'static str, Plot); 2] {
        let sizes = |value: &dyn Fn(&Throughput) -> f64| -> Vec<(f64, f64)> {
            self.throughput.iter().map(|t| (t.bytes as f64, value(t))).collect()
        };
        let intervals = |value: &dyn Fn(&Loss) -> f64| -> Vec<(f64, f64)> {
            self.loss.iter().map(|l| (l.interval, value(l))).collect()
        };
        let throughput = Plot {
            title: "Throughput over three routers (Figures 15 and 17)".to_owned(),
            x: "bytes of a frame".to_owned(),
            y: "Mbit/s".to_owned(),
            lines: vec![
                Line::new("EFCP", sizes(&|t| t.efcp)),
                Line::new("IPv4", sizes(&|t| t.ipv4)),
                Line::new("paper, EFCP", sizes(&|_| PAPER_AWS[0])),
                Line::new("paper, IPv4", sizes(&|_| PAPER_AWS[1])),
            ],
        };
        let loss = Plot {
            title: "Loss of packets of 500 bytes (Figures 16 and 18)".to_owned(),
            x: "microseconds between two packets".to_owned(),
            y: "percent lost".to_owned(),
            lines: vec![
                Line::new("EFCP", intervals(&|l| l.efcp)),
                Line::new("IPv4", intervals(&|l| l.ipv4)),
            ],
        };
        [("throughput.svg", throughput), ("loss.svg", loss)]
    }

    /// What the paper has, for people.
    pub fn paper() -> String {
        format!(
            "The paper's switch (bmv2, one router): about {PAPER_VM} Mbit/s in a VM with 2 cores, and {} (EFCP) and {} \
             (IPv4) Mbit/s on 8 cores; over 25 % lost below 10 us between packets in the VM, none above 5 us on 8 cores.",
            PAPER_AWS[0], PAPER_AWS[1]
        )
    }
}
