//! Who does what: which worker owns which device, where packets are processed and by whom they are
//! sent.

/// Where a packet for a port goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// To a device of this worker, by its position.
    Own(usize),
    /// To another worker.
    Worker {
        /// Which.
        worker: usize,
        /// Position among its devices.
        end: usize,
    },
    /// No device is connected.
    Nowhere,
}

/// Where packets for each port go, as one worker sees it.
#[derive(Debug, Clone)]
pub struct Routes {
    /// By port.
    known: Vec<(u32, Route)>,
    last: (u32, Route),
}

impl Routes {
    fn new(mut known: Vec<(u32, Route)>) -> Self {
        known.sort_unstable_by_key(|(port, _)| *port);
        let last = known.first().copied().unwrap_or((0, Route::Nowhere));
        Routes { known, last }
    }

    /// Packets for a port go there from now on.
    pub fn set(&mut self, port: u32, route: Route) {
        self.remove(port);
        self.known.push((port, route));
        *self = Routes::new(std::mem::take(&mut self.known));
    }

    /// A port has no device any more.
    pub fn remove(&mut self, port: u32) {
        let known = std::mem::take(&mut self.known);
        *self = Routes::new(known.into_iter().filter(|(number, _)| *number != port).collect());
    }

    /// All ports with a device.
    pub fn all(&self) -> impl Iterator<Item = (u32, Route)> {
        self.known.iter().copied()
    }

    /// Where packets for a port go.
    pub fn to(&mut self, port: u32) -> Route {
        // Neighbours mostly go to the same port.
        if self.last.0 != port {
            let found = self.known.binary_search_by_key(&port, |(port, _)| *port);
            self.last = (port, found.map_or(Route::Nowhere, |i| self.known[i].1));
        }
        self.last.1
    }
}

/// Where packets are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// By all workers: where their hardware brings them, or by their flow.
    All,
    /// By the first worker alone.
    First,
}

/// A device of a plan: the receive queue of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Position of the port.
    pub port: usize,
    /// Its receive queue.
    pub queue: usize,
    /// The worker that owns it.
    pub worker: usize,
    /// Position among the devices of that worker.
    pub end: usize,
    /// It is the only queue of its port: its packets are spread by their flow.
    pub is_only: bool,
}

/// Which worker owns which device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Number of workers.
    pub workers: usize,
    /// Numbers of the ports.
    ports: Vec<u32>,
    /// All devices, ports and queues in order.
    pub places: Vec<Place>,
}

impl Plan {
    /// Gives the devices of ports, each with a number of queues, to workers in turn.
    pub fn new(ports: &[(u32, usize)], workers: usize) -> Self {
        let mut ends = vec![0; workers];
        let mut places = Vec::new();
        let mut next = 0;
        for (port, (_, queues)) in ports.iter().enumerate() {
            // Queues of equal number are of equal load, so each port begins with the worker after
            // the last one's.
            for queue in 0..*queues {
                let worker = next % workers;
                next += 1;
                places.push(Place {
                    port,
                    queue,
                    worker,
                    end: ends[worker],
                    is_only: *queues == 1,
                });
                ends[worker] += 1;
            }
        }
        Plan {
            workers,
            ports: ports.iter().map(|(number, _)| *number).collect(),
            places,
        }
    }

    /// The devices of a worker, in the order of their positions.
    pub fn of(&self, worker: usize) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(move |p| p.worker == worker)
    }

    /// Where packets for each port go, as a worker sees it.
    pub fn routes(&self, worker: usize) -> Routes {
        let route = |(position, number): (usize, &u32)| {
            let of_port = || self.places.iter().filter(move |p| p.port == position);
            let own = of_port().find(|p| p.worker == worker);
            let other = || {
                // Not all to the same one.
                let count = of_port().count().max(1);
                of_port().nth(worker % count)
            };
            let route = match (own, other()) {
                (Some(place), _) => Route::Own(place.end),
                (None, Some(place)) => Route::Worker {
                    worker: place.worker,
                    end: place.end,
                },
                (None, None) => Route::Nowhere,
            };
            (*number, route)
        };
        Routes::new(self.ports.iter().enumerate().map(route).collect())
    }

    /// Number of workers that send their packets for a port to this device.
    pub fn senders(&self, place: &Place) -> usize {
        let number = self.ports[place.port];
        let sends = |worker: &usize| {
            let route = self.routes(*worker).to(number);
            match route {
                Route::Own(end) => (*worker, end) == (place.worker, place.end),
                Route::Worker { worker, end } => (worker, end) == (place.worker, place.end),
                Route::Nowhere => false,
            }
        };
        (0..self.workers).filter(sends).count()
    }

    /// Whether a worker may have packets that another is to process.
    pub fn spreads(&self, from: usize, to: usize) -> bool {
        from != to && self.of(from).any(|place| to == 0 || place.is_only)
    }

    /// Whether a worker may have packets that another is to send.
    pub fn sends(&self, from: usize, to: usize) -> bool {
        from != to
            && self
                .routes(from)
                .known
                .iter()
                .any(|(_, route)| matches!(route, Route::Worker { worker, .. } if *worker == to))
    }

    /// Rings between workers.
    pub fn rings(&self) -> usize {
        let pairs = (0..self.workers).flat_map(|from| (0..self.workers).map(move |to| (from, to)));
        pairs
            .map(|(from, to)| usize::from(self.spreads(from, to)) + usize::from(self.sends(from, to)))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_devices_are_dealt_out_and_others_send_to_their_owners() {
        let plan = Plan::new(&[(1, 1), (2, 1), (7, 1)], 2);
        let owners: Vec<usize> = plan.places.iter().map(|p| p.worker).collect();
        assert_eq!(owners, [0, 1, 0]);
        let mut first = plan.routes(0);
        let seen = [1, 2, 7, 7, 3].map(|port| first.to(port));
        let expected = [
            Route::Own(0),
            Route::Worker { worker: 1, end: 0 },
            Route::Own(1),
            Route::Own(1),
            Route::Nowhere,
        ];
        assert_eq!(seen, expected);
        assert!(plan.spreads(0, 1) && plan.spreads(1, 0) && plan.sends(1, 0) && !plan.sends(0, 0));
        assert_eq!(plan.rings(), 4);
    }

    #[test]
    fn routes_of_single_ports_come_and_go() {
        let mut routes = Plan::new(&[(1, 1), (2, 1)], 1).routes(0);
        assert_eq!(routes.to(7), Route::Nowhere);
        routes.set(7, Route::Own(2));
        assert_eq!([1, 7, 2].map(|port| routes.to(port)), [0, 2, 1].map(Route::Own));
        routes.remove(1);
        routes.set(7, Route::Own(3));
        assert_eq!([1, 7].map(|port| routes.to(port)), [Route::Nowhere, Route::Own(3)]);
        routes.remove(2);
        routes.remove(7);
        assert_eq!([2, 7].map(|port| routes.to(port)), [Route::Nowhere; 2]);
    }

    #[test]
    fn queues_of_hardware_need_rings_to_the_first_worker_only() {
        let plan = Plan::new(&[(1, 4), (2, 4)], 4);
        for worker in 0..4 {
            assert_eq!(plan.of(worker).count(), 2);
            let mut routes = plan.routes(worker);
            assert!(matches!((routes.to(1), routes.to(2)), (Route::Own(_), Route::Own(_))));
        }
        assert_eq!(plan.rings(), 3, "for programs whose packets all go to the first");
    }

    #[test]
    fn every_worker_sends_to_one_device_of_a_port() {
        let plan = Plan::new(&[(1, 1), (2, 2), (3, 5)], 3);
        for port in 0..3 {
            let of_port = plan.places.iter().filter(|place| place.port == port);
            let senders: Vec<usize> = of_port.map(|place| plan.senders(place)).collect();
            assert_eq!(senders.iter().sum::<usize>(), 3, "{senders:?}");
        }
    }

    #[test]
    fn more_queues_than_workers_and_fewer() {
        let plan = Plan::new(&[(1, 3)], 2);
        assert_eq!((plan.of(0).count(), plan.of(1).count()), (2, 1));
        let plan = Plan::new(&[(1, 2)], 3);
        assert_eq!(plan.of(2).count(), 0);
        assert!(matches!(plan.clone().routes(2).to(1), Route::Worker { .. }));
        let alone = Plan::new(&[(1, 1), (2, 8)], 1);
        assert_eq!((alone.rings(), alone.of(0).count()), (0, 9));
    }
}
