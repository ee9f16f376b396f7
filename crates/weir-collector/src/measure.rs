//! From the hops of a report to values of ports, queues, links, paths and the flow.

use crate::Collector;
use crate::config::Watched;
use crate::event::{Events, Quantity, Subject, What};
use crate::flow::FlowAt;
use crate::interval::Unused;
use crate::network::{PortState, QueueState};
use crate::path::{Path, PathHop, PortKey};
use crate::sequence::{Sequence, SequenceCounts};
use crate::watch::{Crossing, Limits, Watch};
use weir_int::FlowKey;
use weir_int::packet::IntHeader;
use weir_int::report::Report;
use weir_int::{Hop, Timestamp};

/// The domain-specific instruction of packets that their source has numbered.
const NUMBERED: u16 = 0x8000;

/// A queue that is above its limit for less than this has had a microburst, ns.
const MICROBURST: u64 = 1_000_000_000;

/// Whether hops are those of a path.
pub(crate) fn is_path(path: &Path, hops: &[Hop]) -> bool {
    path.0.len() == hops.len() && path.0.iter().zip(hops).all(|(known, hop)| *known == PathHop::of(hop))
}

/// The time from one timestamp to another in units of the clock, as a signed number: it may be
/// negative between different clocks. `None` if their widths differ.
fn difference(later: Timestamp, earlier: Timestamp) -> Option<i64> {
    let forth = later.since(earlier)?;
    let shift = u64::BITS - later.width.bits();
    // The sign of a number of this width.
    Some(((forth << shift) as i64) >> shift)
}

/// The time between two timestamps of a node, ns. `arrival`: the time between the arrivals of the
/// reports. `None` if it was so long that the timestamps may have wrapped, or if they decrease.
fn time_above(end: Timestamp, begin: Timestamp, unit: u32, arrival: u64) -> Option<u64> {
    let time = u64::try_from(in_ns(difference(end, begin)?, unit)).ok()?;
    let half = u128::from(end.width.mask() / 2) * u128::from(unit);
    (u128::from(arrival) < half).then_some(time)
}

/// A time in ns, from units of `unit` ns.
fn in_ns(value: i64, unit: u32) -> i64 {
    value.saturating_mul(i64::from(unit))
}

/// What is watched, and where events go.
struct Watcher<'a> {
    now: u64,
    /// Unit of the nodes' timestamps, ns.
    timestamp_ns: u32,
    watched: &'a Watched,
    events: &'a mut Events,
}

impl Watcher<'_> {
    fn look(
        &mut self,
        watch: &mut Watch,
        limits: Option<Limits>,
        quantity: Quantity,
        value: u64,
        subject: impl Fn() -> Subject,
    ) -> Option<Crossing> {
        let limits = limits?;
        let crossing = watch.observe(&limits, self.watched.keepalive, self.now, value)?;
        self.note(crossing, limits, quantity, value, self.now, subject());
        Some(crossing)
    }

    /// Makes an event of a crossing. `end`: the time from which durations count.
    fn note(&mut self, crossing: Crossing, limits: Limits, quantity: Quantity, value: u64, end: u64, subject: Subject) {
        let what = match crossing {
            Crossing::Rose => What::Above {
                quantity,
                value,
                limit: limits.rise,
            },
            Crossing::Fell { since, peak, .. } => What::Below {
                quantity,
                value,
                duration: end.saturating_sub(since),
                peak,
            },
            Crossing::Moved { from } => What::Changed { quantity, value, from },
            Crossing::Alive => What::Alive { quantity, value },
        };
        self.events.push(self.now, subject, what);
    }

    fn queue(&mut self, queue: &mut QueueState, port: PortKey, hop: &Hop, occupancy: u64, flow: Option<FlowKey>) {
        let Some(limits) = self.watched.queue_occupancy else {
            return;
        };
        let subject = Subject::Queue { port, queue: queue.id };
        let peak = queue.watch.peak();
        let quantity = Quantity::QueueOccupancy;
        let crossing = queue
            .watch
            .observe(&limits, self.watched.keepalive, self.now, occupancy);
        let is_peak = crossing == Some(Crossing::Rose) || occupancy > peak;
        if queue.watch.is_above() && is_peak {
            queue.peak_flow = flow;
        }
        let Some(crossing) = crossing else {
            return;
        };
        let time = hop.egress_timestamp.or(hop.ingress_timestamp);
        if crossing == Crossing::Rose {
            queue.rose_at = time;
        }
        let Crossing::Fell { since, peak, values } = crossing else {
            self.note(crossing, limits, quantity, occupancy, self.now, subject);
            return;
        };
        let arrival = self.now.saturating_sub(since);
        let measured = time.zip(queue.rose_at.take());
        let measured = measured.and_then(|(end, begin)| time_above(end, begin, self.timestamp_ns, arrival));
        let duration = measured.unwrap_or(arrival);
        let end = since.saturating_add(duration);
        self.note(crossing, limits, quantity, occupancy, end, subject.clone());
        if duration < MICROBURST {
            let what = What::Microburst {
                duration,
                peak,
                reports: values,
                flow: queue.peak_flow.take(),
            };
            self.events.push(self.now, subject, what);
        }
    }

    fn port(&mut self, port: &mut PortState, hop: &Hop, latency: Option<u64>, flow: Option<FlowKey>) {
        let key = port.key;
        let subject = || Subject::Port { port: key };
        if let Some(latency) = latency {
            port.latency.record(latency);
            let limits = self.watched.hop_latency;
            self.look(&mut port.latency_watch, limits, Quantity::HopLatency, latency, subject);
        }
        if let Some(utilisation) = hop.tx_utilisation.map(u64::from) {
            port.tx_utilisation.record(utilisation);
            let limits = self.watched.tx_utilisation;
            self.look(
                &mut port.tx_watch,
                limits,
                Quantity::TxUtilisation,
                utilisation,
                subject,
            );
        }
        if let Some(occupancy) = hop.buffer_occupancy {
            port.buffer_occupancy.record(occupancy.into());
        }
        if let Some(occupancy) = hop.queue_occupancy.map(u64::from) {
            let queue = port.queue(hop.queue_id.unwrap_or(0));
            queue.occupancy.record(occupancy);
            self.queue(queue, key, hop, occupancy, flow);
        }
    }
}

impl Collector {
    /// Records what hops say of ports, queues and the links between them.
    pub(crate) fn measure_hops(&mut self, now: u64, segment: u32, hops: &[Hop], flow: Option<FlowKey>) {
        let mut watcher = Watcher {
            now,
            timestamp_ns: self.config.timestamp_ns,
            watched: &self.config.watched,
            events: &mut self.events,
        };
        let Some(state) = self.network.paths.get(segment) else {
            return;
        };
        for (hop, port) in hops.iter().zip(&state.ports) {
            let latency = hop_latency(hop, self.config.timestamp_ns, self.config.latency_ns);
            if latency.is_none() && hop.ingress_timestamp.is_some() && hop.egress_timestamp.is_some() {
                self.totals.unused(Unused::NegativeLatency);
            }
            if let Some(port) = self.network.ports.get_mut(*port) {
                watcher.port(port, hop, latency, flow);
            }
        }
        for (pair, link) in hops.windows(2).zip(&state.links) {
            let Some(times) = pair[0].egress_timestamp.zip(pair[1].ingress_timestamp) else {
                continue;
            };
            match (difference(times.1, times.0), self.network.links.get_mut(*link)) {
                (Some(value), Some(link)) => link.record(in_ns(value, self.config.timestamp_ns)),
                (None, _) => self.totals.unused(Unused::TimestampWidths),
                (_, None) => {}
            }
        }
    }

    /// Records the latency of a path; it may be negative where clocks differ.
    pub(crate) fn measure_path(&mut self, path: u32, hops: &[Hop]) -> Option<i64> {
        let (timestamp_ns, latency_ns) = (self.config.timestamp_ns, self.config.latency_ns);
        let state = self.network.paths.get_mut(path)?;
        let (first, last) = (hops.first()?, hops.last()?);
        let begin = first.ingress_timestamp.or(first.egress_timestamp);
        let end = last.egress_timestamp.or(last.ingress_timestamp);
        let transit = match begin.zip(end) {
            Some((begin, end)) if hops.len() > 1 => match difference(end, begin) {
                Some(value) => {
                    state.has_links = true;
                    Some(in_ns(value, timestamp_ns).saturating_sub(state.correction.offset))
                }
                None => {
                    self.totals.unused(Unused::TimestampWidths);
                    None
                }
            },
            Some(_) | None => {
                let mut all = hops.iter().map(|hop| hop_latency(hop, timestamp_ns, latency_ns));
                let sum = all.try_fold(0_u64, |sum, latency| Some(sum.saturating_add(latency?)));
                sum.and_then(|sum| i64::try_from(sum).ok())
            }
        };
        match transit.map(u64::try_from) {
            Some(Ok(latency)) => state.latency.record(latency),
            Some(Err(_)) => {
                state.negative += 1;
                self.totals.unused(Unused::NegativeLatency);
            }
            None => {}
        }
        transit
    }

    /// Records what a report says of its flow.
    pub(crate) fn update_flow(
        &mut self,
        now: u64,
        at: FlowAt,
        report: &Report<'_>,
        path: Option<u32>,
        transit: Option<i64>,
    ) {
        let state = path.and_then(|path| self.network.paths.get_mut(path));
        let epoch = state.map_or(0, |state| {
            state.reports += 1;
            state.correction.epoch
        });
        let Some(flow) = self.flows.at(at) else {
            return;
        };
        flow.last_seen = now;
        flow.is_changed = true;
        let interval = &mut flow.interval;
        interval.reports = interval.reports.saturating_add(1);
        interval.dropped = interval.dropped.saturating_add(report.flags.dropped.into());
        interval.congested = interval.congested.saturating_add(report.flags.congested_queue.into());
        if path.is_some() {
            flow.path = path;
        }
        if let Some(number) = self
            .config
            .sequence_domain
            .and_then(|domain| flow_number(report, domain))
        {
            let rare = flow.rare.get_or_insert_default();
            let start = || (Sequence::new(u32::BITS), SequenceCounts::default());
            rare.sequence.get_or_insert_with(start).0.arrive(number.into());
        }
        let Some(transit) = transit else {
            return;
        };
        flow.recalibrate(epoch);
        flow.transit(transit);
        let Ok(latency) = u64::try_from(transit) else {
            return;
        };
        flow.interval.latency.record(latency);
        let limits = self.config.watched.flow_latency;
        if limits.is_none() {
            return;
        }
        let mut watcher = Watcher {
            now,
            timestamp_ns: self.config.timestamp_ns,
            watched: &self.config.watched,
            events: &mut self.events,
        };
        let key = flow.key;
        let subject = || Subject::Flow { flow: key };
        let watch = &mut flow.rare.get_or_insert_default().watch;
        watcher.look(watch, limits, Quantity::FlowLatency, latency, subject);
    }
}

/// The number of a packet within its flow, which the source of this INT domain gave it.
fn flow_number(report: &Report<'_>, domain: u16) -> Option<u32> {
    let Some(IntHeader::Md(header)) = report.int() else {
        return None;
    };
    if header.domain.id != domain || header.domain.instructions & NUMBERED == 0 || report.flags.dropped {
        return None;
    }
    let stack = report.packet.int.as_ref()?.stack;
    let source = stack.get(stack.announced().checked_sub(1)?)?;
    let metadata = source.domain_metadata().get(stack.layout().domain_bytes()..)?;
    Some(u32::from_be_bytes(*metadata.first_chunk()?))
}

/// The time that a packet spent in a node, ns.
fn hop_latency(hop: &Hop, timestamp_ns: u32, latency_ns: u32) -> Option<u64> {
    if let Some(latency) = hop.latency {
        return Some(u64::from(latency) * u64::from(latency_ns));
    }
    let (ingress, egress) = hop.ingress_timestamp.zip(hop.egress_timestamp)?;
    let time = difference(egress, ingress)?;
    u64::try_from(in_ns(time, timestamp_ns)).ok()
}

#[cfg(test)]
mod tests {
    use super::{difference, time_above};
    use weir_int::{Timestamp, TimestampWidth};

    #[test]
    fn time_above_a_limit_is_that_of_the_node_unless_its_clock_may_have_wrapped() {
        let at = |value| Timestamp {
            value,
            width: TimestampWidth::Bits32,
        };
        assert_eq!(time_above(at(40_000), at(10_000), 1, 900_000), Some(30_000));
        assert_eq!(time_above(at(5), at(u64::from(u32::MAX)), 1, 0), Some(6));
        assert_eq!(time_above(at(1), at(2), 1, 0), None);
        assert_eq!(time_above(at(40_000), at(10_000), 1, 2_200_000_000), None);
        assert_eq!(
            time_above(at(40_000), at(10_000), 1000, 2_200_000_000),
            Some(30_000_000)
        );
    }

    #[test]
    fn differences_are_signed_at_every_width() {
        for width in [TimestampWidth::Bits32, TimestampWidth::Bits48, TimestampWidth::Bits64] {
            let at = |value: u64| Timestamp {
                value: value & width.mask(),
                width,
            };
            assert_eq!(difference(at(5), at(2)), Some(3));
            assert_eq!(difference(at(2), at(5)), Some(-3));
            assert_eq!(difference(at(2), at(u64::MAX - 1)), Some(4));
        }
    }
}
