//! Sharing of datagrams among collectors.

use crate::config::Config;
use crate::event::Events;
use crate::exporters::Exporters;
use crate::interval::{Interval, Totals, Unused};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use weir_int::report::Decoder;

/// Stands before several collectors: follows the sequence numbers of exporters, which count over
/// all datagrams, and says which collector a datagram is for. That is decided by the flow of its
/// first report, so that mostly each flow is known to one collector.
#[derive(Debug)]
pub struct Reception {
    decoder: Decoder,
    exporters: Exporters,
    events: Events,
    totals: Totals,
    hasher: RandomState,
}

impl Reception {
    /// For collectors of this configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Reception {
            decoder: config.decoder.clone(),
            exporters: Exporters::new(config.max_exporters),
            events: Events {
                most: config.max_events,
                ..Events::default()
            },
            totals: Totals::default(),
            hasher: RandomState::default(),
        }
    }

    /// Looks at a datagram; the number (below `collectors`) of the collector that it is for.
    pub fn take(&mut self, now: u64, exporter: IpAddr, datagram: &[u8], collectors: usize) -> usize {
        let Some(Ok(report)) = self.decoder.decode(datagram).next() else {
            return 0;
        };
        if !self.exporters.take(now, exporter, &report, &mut self.events) {
            self.totals.unused(Unused::ExportersFull);
        }
        let hash = report.flow().map_or(0, |flow| self.hasher.hash_one(flow));
        (hash % collectors.max(1) as u64) as usize
    }

    /// Ends an interval: exporters and their events. The rest of it is with the collectors.
    pub fn end_interval(&mut self, start: u64, now: u64) -> Interval {
        self.totals.events_left_out += std::mem::take(&mut self.events.left_out);
        Interval {
            start,
            end: now,
            totals: std::mem::take(&mut self.totals),
            exporters: self.exporters.end_interval(),
            events: std::mem::take(&mut self.events.kept),
            ..Interval::default()
        }
    }
}
