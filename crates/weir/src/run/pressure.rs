//! Back-pressure: what a device does not take waits in the traffic manager's queues.
//!
//! A device that falls behind gets a credit: the number of free slots before it. Its queues release
//! no more packets than that. Then the depth of queues is what the link makes it, as on a switch
//! with one queue per port. Programs that cannot tell queues from a device's own buffer keep the
//! compiled code, which bypasses queues ([`Switch::observes_queues`]).

use super::end::End;
use super::plan::{Route, Routes};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_switch::{Switch, VECTOR};

/// Frames that are kept ready for a device that falls behind.
const READY: u32 = VECTOR as u32;
/// Backlog from which a device counts as behind.
const BEHIND: usize = VECTOR / 2;

/// Tells other workers how many packets a device takes now.
///
/// The upper half counts the updates, so that a credit is spent once; the lower half is the credit,
/// [`Gauge::ALL`] if the device does not fall behind.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    const ALL: u32 = u32::MAX;

    fn tell(&self, credit: Option<u32>) {
        let update = ((self.0.load(Ordering::Relaxed) >> 32) as u32).wrapping_add(1).max(1);
        let credit = credit.unwrap_or(Self::ALL);
        self.0
            .store(u64::from(update) << 32 | u64::from(credit), Ordering::Relaxed);
    }

    /// The number of the update and the credit.
    fn read(&self) -> (u32, Option<u32>) {
        let value = self.0.load(Ordering::Relaxed);
        let (update, credit) = ((value >> 32) as u32, value as u32);
        // Nothing has been told yet.
        (update, (update != 0 && credit != Self::ALL).then_some(credit))
    }
}

/// Gauges of all workers' devices, by worker and position among its devices.
pub type Gauges = Vec<Vec<Arc<Gauge>>>;

/// A device of another worker, for which this one has packets.
#[derive(Debug)]
struct Other {
    port: u32,
    gauge: Arc<Gauge>,
    /// Number of the last update.
    update: u32,
    is_behind: bool,
}

/// Back-pressure as one worker sees it.
#[derive(Debug)]
pub struct Pressure {
    is_active: bool,
    /// Whether each of the worker's devices falls behind, and its gauge.
    own: Vec<(bool, Arc<Gauge>)>,
    others: Vec<Other>,
}

impl Pressure {
    /// For a worker, with the routes of its packets.
    pub fn new(worker: usize, gauges: &Gauges, routes: &Routes) -> Self {
        let own = gauges.get(worker).into_iter().flatten();
        let others = routes.all().filter_map(|(port, route)| {
            let Route::Worker { worker, end } = route else {
                return None;
            };
            let gauge = Arc::clone(gauges.get(worker)?.get(end)?);
            Some(Other {
                port,
                gauge,
                update: 0,
                is_behind: false,
            })
        });
        Pressure {
            is_active: false,
            own: own.map(|gauge| (false, Arc::clone(gauge))).collect(),
            others: others.collect(),
        }
    }

    /// Switches to a new program's switch.
    pub fn change(&mut self, switch: &Switch) {
        self.is_active = switch.observes_queues();
        self.own.iter_mut().for_each(|(is_behind, gauge)| {
            *is_behind = false;
            gauge.tell(None);
        });
        self.others.iter_mut().for_each(|other| other.is_behind = false);
    }

    /// Whether a device falls behind for which there may be packets in queues.
    pub fn is_on(&self) -> bool {
        self.own.iter().any(|(is_behind, _)| *is_behind) || self.others.iter().any(|o| o.is_behind)
    }

    /// Gives credit for the devices that fall behind, after they have been offered what waits.
    pub fn update(&mut self, ends: &[End], switch: &mut Switch, now_ns: u64) {
        if !self.is_active {
            return;
        }
        for (end, (is_behind, gauge)) in ends.iter().zip(&mut self.own) {
            let held = end.held();
            let was_behind = *is_behind;
            *is_behind = match was_behind {
                true => held > 0 || switch.queue_depth(end.port) > 0,
                false => held >= BEHIND,
            };
            if *is_behind || was_behind {
                let room = READY.saturating_sub(u32::try_from(held).unwrap_or(READY));
                let credit = is_behind.then_some(room);
                switch.set_port_credit(end.port, credit, now_ns);
                gauge.tell(credit);
            }
        }
        for other in &mut self.others {
            let (update, credit) = other.gauge.read();
            if update != other.update {
                other.update = update;
                other.is_behind = credit.is_some();
                switch.set_port_credit(other.port, credit, now_ns);
            }
        }
    }

    /// Lifts back-pressure: all queued packets may leave.
    pub fn lift(&mut self, ends: &[End], switch: &mut Switch, now_ns: u64) {
        for (end, (is_behind, gauge)) in ends.iter().zip(&mut self.own) {
            *is_behind = false;
            switch.set_port_credit(end.port, None, now_ns);
            gauge.tell(None);
        }
        for other in &mut self.others {
            other.is_behind = false;
            switch.set_port_credit(other.port, None, now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_tells_every_update_once() {
        let gauge = Gauge::default();
        assert_eq!(gauge.read(), (0, None));
        gauge.tell(Some(0));
        assert_eq!(gauge.read(), (1, Some(0)));
        gauge.tell(Some(0));
        assert_eq!(gauge.read(), (2, Some(0)));
        gauge.tell(None);
        assert_eq!(gauge.read(), (3, None));
    }
}
