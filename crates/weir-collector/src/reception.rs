//! Sharing of datagrams among collectors.

use crate::config::{Config, Share};
use crate::event::Events;
use crate::exporters::Exporters;
use crate::interval::{Interval, Totals, Unused};
use std::net::IpAddr;
use weir_int::report::Decoder;

/// Stands before several collectors: follows the sequence numbers of exporters, which count over
/// all datagrams, and says which collectors a datagram is for. Each flow belongs to one of them.
#[derive(Debug)]
pub struct Reception {
    decoder: Decoder,
    share: Share,
    exporters: Exporters,
    events: Events,
    totals: Totals,
}

impl Reception {
    /// For collectors of this configuration, with these shares of the flows.
    #[must_use]
    pub fn new(config: &Config, share: Share) -> Self {
        Reception {
            decoder: config.decoder.clone(),
            share,
            exporters: Exporters::new(config.max_exporters),
            events: Events {
                most: config.max_events,
                ..Events::default()
            },
            totals: Totals::default(),
        }
    }

    /// Looks at a datagram; a bit for each collector that has a report in it, the first one's being
    /// the least significant.
    pub fn take(&mut self, now: u64, exporter: IpAddr, datagram: &[u8]) -> u64 {
        let mut collectors = 0;
        let mut is_first = true;
        for report in self.decoder.decode(datagram) {
            let Ok(report) = report else {
                // The first collector counts what is malformed.
                collectors |= 1;
                is_first = false;
                continue;
            };
            if std::mem::take(&mut is_first) && !self.exporters.take(now, exporter, &report, &mut self.events) {
                self.totals.unused(Unused::ExportersFull);
            }
            collectors |= 1 << self.share.owner(report.flow());
        }
        collectors
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
