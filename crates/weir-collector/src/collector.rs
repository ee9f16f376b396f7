//! The collector: takes reports, keeps what they say of flows and the network.

use crate::config::{Clocks, Config};
use crate::event::{Events, Subject, What};
use crate::exporters::Exporters;
use crate::flow::{FlowAt, Flows};
use crate::interval::{FlowSummary, Interval, Totals, Unused};
use crate::network::{Named, Network};
use crate::path::{Path, PathHop};
use crate::{clock, measure, results};
use std::net::IpAddr;
use weir_int::FlowKey;
use weir_int::Hop;
use weir_int::report::Report;

/// The most hops of a report that are looked at: as many as a stack has room for.
const MAX_HOPS: usize = 64;

/// How often clocks are compared, ns.
const CLOCK_PERIOD: u64 = 100_000_000;

/// Takes reports and keeps what they say, in memory of bounded size.
///
/// Times are ns since the Unix epoch, by the clock of the caller.
#[derive(Debug)]
pub struct Collector {
    pub(crate) config: Config,
    pub(crate) totals: Totals,
    exporters: Exporters,
    pub(crate) flows: Flows,
    pub(crate) network: Network,
    pub(crate) events: Events,
    /// Flows that made room for others since the last interval.
    evicted: Vec<FlowSummary>,
    interval_start: Option<u64>,
    clocks_compared: u64,
    /// Flows of a batch's reports, where they are known; kept for its allocation.
    hints: Vec<Option<FlowAt>>,
    /// Of the report at hand; kept for their allocation.
    hops: Vec<Hop>,
    path_hops: Vec<PathHop>,
}

/// What the hops of a report are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coverage {
    /// All hops of the packet's path.
    Whole,
    /// Some of them, one after the other.
    Part,
    /// The hop that sent the report (INT-MX, INT-XD).
    Postcard,
}

impl Collector {
    /// A collector without any report.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Collector {
            totals: Totals::default(),
            exporters: Exporters::new(config.max_exporters),
            flows: Flows::new(config.max_flows),
            network: Network {
                ports: Named::new(config.max_ports),
                links: Named::new(config.max_links),
                paths: Named::new(config.max_paths),
            },
            events: Events {
                most: config.max_events,
                ..Events::default()
            },
            evicted: Vec::new(),
            interval_start: None,
            clocks_compared: 0,
            hints: Vec::new(),
            hops: Vec::with_capacity(MAX_HOPS),
            path_hops: Vec::with_capacity(MAX_HOPS),
            config,
        }
    }

    /// Takes a datagram of telemetry reports: the payload of UDP, and the address that it came
    /// from.
    pub fn take(&mut self, now: u64, exporter: IpAddr, datagram: &[u8]) {
        self.take_batch(now, &[(exporter, datagram)]);
    }

    /// Takes several datagrams. All their flows are looked up before the first one is used, so that
    /// cache misses of one lookup overlap those of others: some 30 datagrams are a good number.
    pub fn take_batch(&mut self, now: u64, datagrams: &[(IpAddr, &[u8])]) {
        let decoder = std::mem::take(&mut self.config.decoder);
        let mut reports = Vec::with_capacity(datagrams.len());
        for (exporter, datagram) in datagrams {
            let mut is_first = true;
            let mut is_mine = self.config.share.is_none();
            let mut items = decoder.decode(datagram);
            loop {
                // Decoded in its place: a report is not moved.
                let report = reports.push_mut(Report::empty());
                match items.next_into(report) {
                    Some(Ok(())) => {
                        let is_first = std::mem::take(&mut is_first);
                        match &self.config.share {
                            Some(share) if share.owner(report.flow()) != share.index => {
                                reports.pop();
                            }
                            Some(_) => is_mine |= is_first,
                            None if is_first && !self.exporters.take(now, *exporter, report, &mut self.events) => {
                                self.totals.unused(Unused::ExportersFull);
                            }
                            None => {}
                        }
                    }
                    Some(Err(error)) => {
                        // The first collector counts for all.
                        if self.config.share.as_ref().is_none_or(|share| share.index == 0) {
                            self.totals.malformed[error.reason.index()] += 1;
                            is_mine |= std::mem::take(&mut is_first);
                        }
                        is_first = false;
                        reports.pop();
                    }
                    None => {
                        reports.pop();
                        break;
                    }
                }
            }
            if is_mine {
                self.totals.datagrams += 1;
                self.totals.bytes += datagram.len() as u64;
            }
        }
        let mut hints = std::mem::take(&mut self.hints);
        hints.clear();
        hints.extend(reports.iter().map(|report| self.flows.find(&report.flow()?)));
        self.flows.warm(&hints);
        for (report, hint) in reports.iter().zip(&hints) {
            self.take_report(now, report, *hint);
        }
        self.hints = hints;
        self.config.decoder = decoder;
    }

    fn take_report(&mut self, now: u64, report: &Report<'_>, hint: Option<FlowAt>) {
        self.totals.reports += 1;
        self.interval_start.get_or_insert(now);
        if now.saturating_sub(self.clocks_compared) >= CLOCK_PERIOD {
            self.compare_clocks(now);
        }
        let mut hops = std::mem::take(&mut self.hops);
        hops.clear();
        hops.extend(report.hops().iter().take(MAX_HOPS));
        self.take_hops(now, report, &hops, hint);
        self.hops = hops;
    }

    /// The number of flows that are known.
    #[must_use]
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Ends an interval: what it brought, but for its flows, each of which goes to `flow`.
    pub fn end_interval(&mut self, now: u64, mut flow: impl FnMut(FlowSummary)) -> Interval {
        self.compare_clocks(now);
        let start = self.interval_start.replace(now).unwrap_or(now);
        self.evicted.drain(..).for_each(&mut flow);
        for changed in self.flows.iter_mut().filter(|flow| flow.is_changed) {
            flow(results::flow(changed, &self.network));
        }
        self.totals.events_left_out += std::mem::take(&mut self.events.left_out);
        let interval = Interval {
            start,
            end: now,
            totals: std::mem::take(&mut self.totals),
            exporters: self.exporters.end_interval(),
            events: std::mem::take(&mut self.events.kept),
            clocks: self.clocks(now),
            minima: self.network.minima(now),
            ..results::network(&mut self.network, now)
        };
        if self.network.is_crowded() {
            self.network.clear();
            self.flows.iter_mut().for_each(|flow| flow.path = None);
        }
        interval
    }

    fn clocks(&self, now: u64) -> Vec<clock::ClockOffset> {
        match self.config.clocks {
            Clocks::Estimated => clock::estimate(&self.network.minima(now)),
            Clocks::Trusted | Clocks::Given => Vec::new(),
        }
    }

    fn compare_clocks(&mut self, now: u64) {
        self.clocks_compared = now;
        if self.config.clocks == Clocks::Estimated {
            let minima = self.network.minima(now);
            self.correct(&clock::estimate(&minima), &minima);
        }
    }

    /// Takes offsets of clocks that were estimated from the [`Interval::minima`] of several
    /// collectors, where [`Config::clocks`] is [`Clocks::Given`].
    pub fn set_clocks(&mut self, minima: &[clock::LinkMinimum]) {
        if self.config.clocks == Clocks::Given {
            self.correct(&clock::estimate(minima), minima);
        }
    }

    fn correct(&mut self, offsets: &[clock::ClockOffset], minima: &[clock::LinkMinimum]) {
        let discarded = self.network.correct(offsets, minima);
        self.totals.unused[Unused::OffsetUnknown as usize] += discarded;
    }

    fn take_hops(&mut self, now: u64, report: &Report<'_>, hops: &[Hop], hint: Option<FlowAt>) {
        if report.hops().len() > MAX_HOPS {
            self.totals.unused(Unused::TooManyHops);
        }
        let coverage = self.coverage(report);
        let flow = report.flow().map(|key| (key, self.flow(now, &key, hint)));
        let known = flow.and_then(|(_, at)| self.flows.at(at)?.path);
        let segment = self.segment(known, hops);
        if let Some(segment) = segment {
            self.measure_hops(now, segment, hops, report.flow());
        }
        let path = match coverage {
            Coverage::Whole => segment,
            Coverage::Part => None,
            Coverage::Postcard => self.postcard(known, hops),
        };
        let transit = match coverage {
            Coverage::Whole => path.and_then(|path| self.measure_path(path, hops)),
            Coverage::Part | Coverage::Postcard => None,
        };
        match flow {
            Some((key, at)) => {
                if let (Some(from), Some(to)) = (known, path)
                    && from != to
                {
                    self.note_path_change(now, (key, at), from, to);
                }
                self.update_flow(now, at, report, path, transit);
            }
            None => self.totals.unused(Unused::NoFlow),
        }
        if report.flags.dropped {
            self.note_drop(now, report);
        }
    }

    fn coverage(&mut self, report: &Report<'_>) -> Coverage {
        if report.hops().is_empty() {
            self.totals.unused(Unused::NoHops);
            return Coverage::Part;
        }
        if report.hops().missing() > 0 {
            self.totals.unused(Unused::TruncatedStack);
            return Coverage::Part;
        }
        if report.flags.dropped || report.flags.intermediate || report.hops().len() > MAX_HOPS {
            return Coverage::Part;
        }
        if report.hops().stack().is_empty() {
            return Coverage::Postcard;
        }
        Coverage::Whole
    }

    /// Finds or adds a flow.
    fn flow(&mut self, now: u64, key: &FlowKey, hint: Option<FlowAt>) -> FlowAt {
        let (at, evicted) = self.flows.find_or_add(key, hint, now);
        if let Some(mut evicted) = evicted {
            self.totals.flows_evicted += 1;
            if !evicted.is_changed {
                return at;
            }
            if self.evicted.len() < self.config.max_events {
                self.evicted.push(results::flow(&mut evicted, &self.network));
            } else {
                self.totals.unused(Unused::EvictedFlow);
            }
        }
        at
    }

    /// The index of a sequence of hops. `known`: that of the flow's last report, which is mostly
    /// the same.
    fn segment(&mut self, known: Option<u32>, hops: &[Hop]) -> Option<u32> {
        if hops.is_empty() {
            return None;
        }
        let state = known.and_then(|at| self.network.paths.get(at));
        if state.is_some_and(|state| measure::is_path(&state.path, hops)) {
            return known;
        }
        let mut path_hops = std::mem::take(&mut self.path_hops);
        path_hops.clear();
        path_hops.extend(hops.iter().map(PathHop::of));
        let segment = self.network.path(&path_hops);
        self.path_hops = path_hops;
        if segment.is_none() {
            self.totals.unused(Unused::NetworkFull);
        }
        segment
    }

    /// The path of a flow whose hops report one by one: all that did, by node id. A hop takes the
    /// place of an earlier one of the same node.
    fn postcard(&mut self, known: Option<u32>, hops: &[Hop]) -> Option<u32> {
        let new = PathHop::of(hops.first()?);
        let before = known.and_then(|at| self.network.paths.get(at));
        let before: &[PathHop] = before.map_or(&[], |state| &state.path.0);
        if before.contains(&new) {
            return known;
        }
        let mut all = before.to_vec();
        all.retain(|hop| hop.node != new.node);
        all.push(new);
        all.sort_unstable();
        all.truncate(MAX_HOPS);
        self.network.path(&all)
    }

    fn note_path_change(&mut self, now: u64, (flow, at): (FlowKey, FlowAt), from: u32, to: u32) {
        let path = |at| self.network.paths.get(at).map(|state| state.path.clone());
        let (Some(from), Some(to)) = (path(from), path(to)) else {
            return;
        };
        // A path to which postcards add a hop has not changed.
        let is_longer = |a: &Path, b: &Path| a.0.len() < b.0.len() && a.0.iter().all(|hop| b.0.contains(hop));
        if !is_longer(&from, &to) {
            if let Some(flow) = self.flows.at(at) {
                flow.interval.path_changes = flow.interval.path_changes.saturating_add(1);
            }
            self.events
                .push(now, Subject::Flow { flow }, What::PathChanged { from, to });
        }
    }

    fn note_drop(&mut self, now: u64, report: &Report<'_>) {
        let Some(flow) = report.flow() else {
            return;
        };
        let what = What::Dropped {
            node: report.node_id,
            reason: report.drop_reason,
        };
        self.events.push(now, Subject::Flow { flow }, what);
    }
}
