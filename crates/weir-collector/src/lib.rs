//! Analysis of INT telemetry reports: what they say of flows, paths, ports, queues, links and
//! clocks.
//!
//! A [`Collector`] takes datagrams of reports of any version ([`weir_int`] decodes them) and keeps,
//! in memory of bounded size,
//!
//! - of each flow its path, changes of it, end-to-end latency, jitter, drops;
//! - of each hop and link the latency, of each queue the occupancy, as [`Histogram`]s that merge;
//! - of each exporter which reports were lost, late or there twice;
//! - of each node the offset of its clock, estimated from links with traffic in both directions,
//!   and removed from latencies;
//! - [`Event`]s: limits with hysteresis, changes, microbursts, drops.
//!
//! [`Collector::end_interval`] gives the results of an interval. Those of collectors that each took
//! a part of the reports merge ([`Interval::merge`]); with the parts cut by flow they are equal to
//! those of one collector of all reports.
//!
//! The crate does no input or output, has no threads and no clock, and stores nothing: `weir int
//! collect` does, with weir-store. It does not choose what is worth a report; switches do.
//!
//! ```
//! use weir_collector::{Collector, Config};
//!
//! // Report 1.0 of node 9: 1500 ns, and 4096 in queue 3, for a packet that is cut.
//! let report = [
//!     0x16, 0x2c, 0, 0x43, 0, 0, 0, 9, 0, 0, 0, 44, 0x3b, 0x9a, 0xca, 0, 0, 0, 0x05, 0xdc, 3, 0, 0x10, 0,
//! ];
//! let mut collector = Collector::new(Config::default());
//! collector.take(1, [10, 0, 0, 9].into(), &report);
//! let interval = collector.end_interval(2, |_flow| ());
//! let (port, summary) = interval.ports.first_key_value().expect("a hop");
//! assert_eq!((port.node, summary.latency.max()), (Some(9), 1503));
//! assert_eq!(summary.queues[&3].count(), 1);
//! ```
#![forbid(unsafe_code)]

mod clock;
mod collector;
mod config;
mod event;
mod exporters;
mod flow;
mod histogram;
mod interval;
mod measure;
mod network;
mod path;
mod reception;
mod results;
mod running;
mod sequence;
pub mod synthetic;
mod watch;

pub use clock::{ClockOffset, LinkMinimum, estimate as estimate_clocks};
pub use collector::Collector;
pub use config::{Clocks, Config, Share, Watched};
pub use event::{Event, Quantity, Subject, What};
pub use histogram::{Histogram, HistogramError};
pub use interval::{ExporterKey, FlowSummary, Interval, LinkSummary, PathSummary, PortSummary, Totals, Unused};
pub use path::{LinkKey, Path, PathHop, PortKey};
pub use reception::Reception;
pub use running::Running;
pub use sequence::{Arrival, Sequence, SequenceCounts};
pub use watch::{Crossing, Limits, Watch};

/// The reasons for which a report is malformed, in the order of [`Totals::malformed`].
pub const REASONS: &[weir_int::Reason] = &weir_int::Reason::ALL;

use serde::Serializer;
use std::fmt::Display;

/// Serialises a value as the text that people read.
fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// The same of a value that may be absent.
fn optional_text<S: Serializer>(value: &Option<impl Display>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
