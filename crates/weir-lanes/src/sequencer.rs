//! Restores the order of submission among jobs that are completed in any order.

/// Which jobs leave in the order of their submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// None: each leaves when it is completed.
    None,
    /// Those with the same key, such as a flow or an egress port.
    #[default]
    PerKey,
}

/// No entry: the end of a list.
const END: u32 = u32::MAX;

/// The place of a job in the order. The job carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The key, by which jobs are ordered.
    pub key: u64,
    /// The number among all tickets of the sequencer.
    pub sequence: u64,
    entry: u32,
}

#[derive(Debug)]
enum State<J> {
    /// In execution on this route.
    Waiting(u32),
    /// Completed before one of its predecessors.
    Done(J),
    /// Will not be completed.
    Lost,
}

#[derive(Debug)]
struct Entry<J> {
    sequence: u64,
    queue: u32,
    /// The next of the same queue, or of the free entries.
    next: u32,
    state: State<J>,
}

/// Entries in the order of submission. Each bucket of keys has one.
#[derive(Debug, Clone, Copy)]
struct Queue {
    first: u32,
    last: u32,
}

/// Releases jobs in the order of their submission per key.
///
/// Memory is bounded and allocated at the start. Keys are hashed to twice as many queues as jobs
/// may be outstanding; keys that share a queue, which is rare, are ordered as if they were the
/// same.
///
/// # Example
///
/// ```
/// use weir_lanes::{Order, Sequencer};
///
/// let mut sequencer = Sequencer::new(Order::PerKey, 8);
/// let (flow, route, mut released) = (7, 0, Vec::new());
/// let [first, second, third] = [(); 3].map(|()| sequencer.issue(flow, route).expect("has room"));
/// sequencer.complete(third, "third", &mut released)?;
/// sequencer.complete(first, "first", &mut released)?;
/// assert_eq!(released, ["first"]);
/// sequencer.forget(second, &mut released);
/// assert_eq!(released, ["first", "third"]);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Sequencer<J> {
    order: Order,
    entries: Vec<Entry<J>>,
    free: u32,
    queues: Vec<Queue>,
    next_sequence: u64,
    outstanding: usize,
}

impl<J> Sequencer<J> {
    /// A sequencer for at most `limit` outstanding jobs (at most 2²⁴).
    #[must_use]
    pub fn new(order: Order, limit: usize) -> Self {
        let limit = match order {
            Order::None => 0,
            Order::PerKey => limit.min(1 << 24) as u32,
        };
        let queues = (limit as usize * 2).next_power_of_two();
        let entry = |number: u32| Entry {
            sequence: 0,
            queue: 0,
            next: if number + 1 < limit { number + 1 } else { END },
            state: State::Lost,
        };
        Sequencer {
            order,
            entries: (0..limit).map(entry).collect(),
            free: if limit > 0 { 0 } else { END },
            queues: vec![Queue { first: END, last: END }; queues],
            next_sequence: 1,
            outstanding: 0,
        }
    }

    /// Gives the next job of this key its place. None if as many jobs are outstanding as the limit.
    ///
    /// `route` says where it executes, for [`forget_route`](Self::forget_route): such as a number
    /// for each lane and [thread](crate::Port::thread_for).
    ///
    /// A job that is executed at once needs a ticket too if its predecessors may be outstanding.
    #[inline]
    pub fn issue(&mut self, key: u64, route: u32) -> Option<Ticket> {
        let sequence = self.next_sequence;
        if self.order == Order::None {
            self.next_sequence += 1;
            return Some(Ticket {
                key,
                sequence,
                entry: END,
            });
        }
        let number = self.free;
        let queue = self.queue_of(key);
        let entry = self.entries.get_mut(number as usize)?;
        self.free = entry.next;
        *entry = Entry {
            sequence,
            queue,
            next: END,
            state: State::Waiting(route),
        };
        let queue = &mut self.queues[queue as usize];
        let last = std::mem::replace(&mut queue.last, number);
        if last == END {
            queue.first = number;
        } else {
            self.entries[last as usize].next = number;
        }
        self.next_sequence += 1;
        self.outstanding += 1;
        Some(Ticket {
            key,
            sequence,
            entry: number,
        })
    }

    /// Takes a job that is completed. Appends to `released` what may leave now: nothing if a
    /// predecessor is outstanding; else this job and those that were waiting for it.
    ///
    /// # Errors
    /// The job, if its ticket is not outstanding: it was completed or forgotten before.
    #[inline]
    pub fn complete(&mut self, ticket: Ticket, job: J, released: &mut impl Extend<J>) -> Result<(), J> {
        if self.order == Order::None {
            released.extend(Some(job));
            return Ok(());
        }
        match self.waiting(ticket) {
            Some(entry) => entry.state = State::Done(job),
            None => return Err(job),
        }
        self.release_behind(ticket, released);
        Ok(())
    }

    /// Skips a job that is lost. Appends to `released` those that were waiting for it. Returns
    /// whether the ticket was outstanding; without an order, none is.
    pub fn forget(&mut self, ticket: Ticket, released: &mut impl Extend<J>) -> bool {
        match self.waiting(ticket) {
            Some(entry) => entry.state = State::Lost,
            None => return false,
        }
        self.release_behind(ticket, released);
        true
    }

    /// Skips all jobs that execute on this route: their thread was replaced. Appends to `released`
    /// those that were waiting for them. Returns how many were skipped. It looks at every entry.
    ///
    /// Called after [`Port::check`](crate::Port::check) reported the thread, and before another job
    /// is submitted to it. Jobs that were collected before have to be completed here first.
    pub fn forget_route(&mut self, route: u32, released: &mut impl Extend<J>) -> usize {
        let mut forgotten = 0;
        for entry in &mut self.entries {
            if matches!(entry.state, State::Waiting(on) if on == route) {
                entry.state = State::Lost;
                forgotten += 1;
            }
        }
        for queue in 0..self.queues.len() {
            let first = self.queues[queue].first;
            if first != END {
                self.release(first, released);
            }
        }
        forgotten
    }

    /// Jobs that have a ticket and have not been released or forgotten.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// The order.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Spreads keys that differ in few bits over the queues, of which there is a power of two.
    fn queue_of(&self, key: u64) -> u32 {
        let bits = self.queues.len().trailing_zeros();
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 >> (32 - bits)) as u32
    }

    /// The entry of a ticket that is outstanding.
    #[inline]
    fn waiting(&mut self, ticket: Ticket) -> Option<&mut Entry<J>> {
        let entry = self.entries.get_mut(ticket.entry as usize)?;
        let is_waiting = entry.sequence == ticket.sequence && matches!(entry.state, State::Waiting(_));
        is_waiting.then_some(entry)
    }

    /// Releases this ticket's entry, and those after it, if it is the first of its queue.
    #[inline]
    fn release_behind(&mut self, ticket: Ticket, released: &mut impl Extend<J>) {
        let queue = self.entries[ticket.entry as usize].queue;
        if self.queues[queue as usize].first == ticket.entry {
            self.release(ticket.entry, released);
        }
    }

    /// Takes entries that do not wait from the front of a queue, of which `first` is the first.
    fn release(&mut self, first: u32, released: &mut impl Extend<J>) {
        let queue = self.entries[first as usize].queue as usize;
        let mut at = first;
        while at != END {
            let entry = &mut self.entries[at as usize];
            match std::mem::replace(&mut entry.state, State::Lost) {
                State::Done(job) => released.extend(Some(job)),
                State::Lost => {}
                waiting @ State::Waiting(_) => {
                    entry.state = waiting;
                    break;
                }
            }
            let next = std::mem::replace(&mut entry.next, self.free);
            self.free = at;
            self.outstanding -= 1;
            at = next;
        }
        self.queues[queue].first = at;
        if at == END {
            self.queues[queue].last = END;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issue<const N: usize>(sequencer: &mut Sequencer<u32>, key: u64, route: u32) -> [Ticket; N] {
        [(); N].map(|()| sequencer.issue(key, route).expect("has room"))
    }

    #[test]
    fn jobs_of_a_key_leave_in_the_order_of_their_submission() {
        let (mut sequencer, mut released) = (Sequencer::new(Order::PerKey, 64), Vec::new());
        let tickets = issue::<50>(&mut sequencer, 1, 0);
        // 37 and 50 have no common factor.
        for number in (0..50).map(|i| i * 37 % 50) {
            sequencer
                .complete(tickets[number], number as u32, &mut released)
                .expect("outstanding");
        }
        assert_eq!(released, (0..50).collect::<Vec<_>>());
        assert_eq!(sequencer.outstanding(), 0);
    }

    #[test]
    fn keys_do_not_wait_for_each_other() {
        let (mut sequencer, mut released) = (Sequencer::new(Order::PerKey, 8), Vec::new());
        let [slow] = issue(&mut sequencer, 1, 0);
        let [quick] = issue(&mut sequencer, 2, 0);
        sequencer.complete(quick, 2, &mut released).expect("outstanding");
        assert_eq!(released, [2]);
        sequencer.complete(slow, 1, &mut released).expect("outstanding");
        assert_eq!(released, [2, 1]);
    }

    #[test]
    fn without_order_a_job_leaves_when_it_is_completed() {
        let (mut sequencer, mut released) = (Sequencer::new(Order::None, 1), Vec::new());
        let [first, second] = issue(&mut sequencer, 1, 0);
        sequencer.complete(second, 2, &mut released).expect("always");
        sequencer.complete(first, 1, &mut released).expect("always");
        assert_eq!(released, [2, 1]);
    }

    #[test]
    fn nothing_waits_for_a_lost_job() {
        let (mut sequencer, mut released) = (Sequencer::new(Order::PerKey, 8), Vec::new());
        let [first, second, third] = issue(&mut sequencer, 1, 0);
        sequencer.complete(third, 3, &mut released).expect("outstanding");
        assert!(sequencer.forget(second, &mut released));
        assert!(released.is_empty());
        assert!(sequencer.forget(first, &mut released));
        assert_eq!((released, sequencer.outstanding()), (vec![3], 0));
    }

    #[test]
    fn all_jobs_of_a_route_are_skipped_at_once() {
        let (mut sequencer, mut released) = (Sequencer::new(Order::PerKey, 16), Vec::new());
        let mut done = Vec::new();
        for key in 0..5 {
            issue::<2>(&mut sequencer, key, 7);
            done.extend(issue::<1>(&mut sequencer, key, 8));
        }
        for ticket in done {
            sequencer
                .complete(ticket, ticket.key as u32, &mut released)
                .expect("outstanding");
        }
        assert!(released.is_empty());
        assert_eq!(sequencer.forget_route(7, &mut released), 10);
        released.sort_unstable();
        assert_eq!((released, sequencer.outstanding()), (vec![0, 1, 2, 3, 4], 0));
    }

    #[test]
    fn a_ticket_is_good_for_one_completion() {
        let (mut sequencer, mut released) = (Sequencer::new(Order::PerKey, 1), Vec::new());
        let [old] = issue(&mut sequencer, 1, 0);
        assert!(sequencer.forget(old, &mut released));
        assert_eq!(sequencer.complete(old, 1, &mut released), Err(1));
        // The entry is used again.
        let [new] = issue(&mut sequencer, 1, 0);
        assert_eq!(sequencer.complete(old, 1, &mut released), Err(1));
        assert!(!sequencer.forget(old, &mut released));
        assert_eq!(sequencer.complete(new, 2, &mut released), Ok(()));
        assert_eq!(released, [2]);
    }

    #[test]
    fn memory_is_bounded_and_used_again() {
        let (mut sequencer, mut released) = (Sequencer::new(Order::PerKey, 4), Vec::new());
        for round in 0..100 {
            let [a, b] = issue(&mut sequencer, round, 0);
            let [c, d] = issue(&mut sequencer, round + 1, 0);
            assert_eq!(sequencer.issue(9, 0), None, "four are outstanding");
            for ticket in [b, d, c, a] {
                sequencer.complete(ticket, 0, &mut released).expect("outstanding");
            }
            assert_eq!(sequencer.outstanding(), 0);
        }
        assert_eq!(released.len(), 400);
        assert_eq!(Sequencer::<u32>::new(Order::PerKey, 0).issue(1, 0), None);
    }
}
