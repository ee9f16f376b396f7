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

/// Publishes how many packets a device takes now from each worker that sends to it.
#[derive(Debug)]
pub struct Gauge {
    /// The upper half counts the updates, so that each worker spends a credit once. The lower half
    /// is the credit of each worker, [`Gauge::ALL`] if the device does not fall behind.
    state: AtomicU64,
    /// Workers that send to the device, at least 1.
    senders: u32,
}

impl Gauge {
    const ALL: u32 = u32::MAX;

    /// For a device to which a number of workers send.
    pub fn new(senders: usize) -> Self {
        Gauge {
            state: AtomicU64::new(0),
            senders: u32::try_from(senders).unwrap_or(u32::MAX).max(1),
        }
    }

    /// Publishes the free slots before the device; `None`: it does not fall behind. Returns the
    /// share of one worker.
    fn publish(&self, room: Option<u32>) -> Option<u32> {
        let update = ((self.state.load(Ordering::Relaxed) >> 32) as u32)
            .wrapping_add(1)
            .max(1);
        // Rounded up, so that one free slot is enough for every worker to proceed: the device's
        // own buffer takes the excess.
        let credit = room.map(|room| room.div_ceil(self.senders));
        let state = u64::from(update) << 32 | u64::from(credit.unwrap_or(Self::ALL));
        self.state.store(state, Ordering::Relaxed);
        credit
    }

    /// The number of the update and the credit of one worker.
    fn read(&self) -> (u32, Option<u32>) {
        let value = self.state.load(Ordering::Relaxed);
        let (update, credit) = ((value >> 32) as u32, value as u32);
        // Before the first update there is no credit.
        (update, (update != 0 && credit != Self::ALL).then_some(credit))
    }
}

/// Gauges of all workers' devices, by worker and position among its devices.
pub type Gauges = Vec<Vec<Arc<Gauge>>>;

/// A device of this worker.
#[derive(Debug)]
struct Own {
    gauge: Arc<Gauge>,
    is_behind: bool,
    /// This worker sends its packets for the port to this device. Of several receive queues of a
    /// port it sends to one.
    is_target: bool,
}

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
    own: Vec<Own>,
    others: Vec<Other>,
}

impl Pressure {
    /// For a worker, with the routes of its packets.
    pub fn new(worker: usize, gauges: &Gauges, routes: &Routes) -> Self {
        let own = gauges
            .get(worker)
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(end, gauge)| Own {
                gauge: Arc::clone(gauge),
                is_behind: false,
                is_target: routes.all().any(|(_, route)| route == Route::Own(end)),
            });
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
            own: own.collect(),
            others: others.collect(),
        }
    }

    /// This worker owns another device from now on, and only it sends to it.
    pub fn add_own(&mut self) {
        self.own.push(Own {
            gauge: Arc::new(Gauge::new(1)),
            is_behind: false,
            is_target: true,
        });
    }

    /// Switches to a new program's switch.
    pub fn change(&mut self, switch: &Switch) {
        self.is_active = switch.observes_queues();
        self.own.iter_mut().for_each(|own| {
            own.is_behind = false;
            own.gauge.publish(None);
        });
        self.others.iter_mut().for_each(|other| other.is_behind = false);
    }

    /// Whether a device falls behind for which there may be packets in queues.
    pub fn is_on(&self) -> bool {
        self.own.iter().any(|own| own.is_behind) || self.others.iter().any(|o| o.is_behind)
    }

    /// Gives credit for the devices that fall behind, after they have been offered what waits.
    pub fn update(&mut self, ends: &[End], switch: &mut Switch, now_ns: u64) {
        // A control plane may have changed it.
        let was_active = std::mem::replace(&mut self.is_active, switch.observes_queues());
        if !self.is_active {
            if was_active {
                self.lift(ends, switch, now_ns);
            }
            return;
        }
        for (end, own) in ends.iter().zip(&mut self.own) {
            let held = end.held();
            let was_behind = own.is_behind;
            own.is_behind = match was_behind {
                true => held > 0 || (own.is_target && switch.queue_depth(end.port) > 0),
                false => held >= BEHIND,
            };
            if own.is_behind || was_behind {
                let room = READY.saturating_sub(u32::try_from(held).unwrap_or(READY));
                let credit = own.gauge.publish(own.is_behind.then_some(room));
                if own.is_target {
                    switch.set_port_credit(end.port, credit, now_ns);
                }
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
        for (end, own) in ends.iter().zip(&mut self.own) {
            own.is_behind = false;
            own.gauge.publish(None);
            switch.set_port_credit(end.port, None, now_ns);
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
    use crate::run::plan::Plan;

    #[test]
    fn a_gauge_publishes_every_update_once() {
        let gauge = Gauge::new(1);
        assert_eq!(gauge.read(), (0, None));
        gauge.publish(Some(0));
        assert_eq!(gauge.read(), (1, Some(0)));
        gauge.publish(Some(0));
        assert_eq!(gauge.read(), (2, Some(0)));
        gauge.publish(None);
        assert_eq!(gauge.read(), (3, None));
    }

    #[test]
    fn the_workers_that_send_to_a_device_share_its_credit() {
        let gauge = Gauge::new(3);
        assert_eq!(gauge.publish(Some(7)), Some(3));
        assert_eq!(gauge.publish(Some(1)), Some(1));
        assert_eq!(gauge.publish(Some(0)), Some(0));
    }

    #[test]
    fn of_several_queues_of_a_port_one_is_the_target() {
        let plan = Plan::new(&[(5, 4)], 2);
        let gauges: Gauges = (0..2)
            .map(|worker| {
                let senders = plan.of(worker).map(|place| plan.senders(place));
                senders.map(|count| Arc::new(Gauge::new(count))).collect()
            })
            .collect();
        let pressure = Pressure::new(0, &gauges, &plan.routes(0));
        let targets: Vec<bool> = pressure.own.iter().map(|own| own.is_target).collect();
        assert_eq!(targets, [true, false]);
    }
}
