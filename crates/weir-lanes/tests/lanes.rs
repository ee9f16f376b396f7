//! Lanes as workers see them. Nothing here measures a time: where a test waits, a time-out makes it
//! fail instead of hang.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use weir_lanes::{Counters, Lane, LaneConfig, LaneOptions, Lost, Order, Pool, Port, Sequencer, Service, StartError};

/// After this, a test fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time limit of lanes whose tests hand in the time.
const LIMIT: Duration = Duration::from_secs(3600);

/// What a job makes the service do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Add,
    Panic,
    /// Does not return before the gate is open.
    Hang,
}

#[derive(Debug)]
struct Context {
    task: Task,
    worker: usize,
    number: u64,
    result: u64,
}

type Job = Box<Context>;

fn job(task: Task, number: u64) -> Job {
    Box::new(Context {
        task,
        worker: 0,
        number,
        result: 0,
    })
}

#[derive(Debug, Default)]
struct Adder {
    gate: AtomicBool,
    /// Calls that hang or have hung.
    hanging: AtomicUsize,
    finished: AtomicU64,
    threads_started: AtomicUsize,
}

impl Service<Job> for Adder {
    fn process(&self, jobs: &mut [Job]) {
        for job in jobs {
            match job.task {
                Task::Add => {}
                // Unlike `panic!`, this prints nothing.
                Task::Panic => std::panic::resume_unwind(Box::new("as requested")),
                Task::Hang => {
                    self.hanging.fetch_add(1, Ordering::SeqCst);
                    wait_until("the gate opens", || self.gate.load(Ordering::SeqCst));
                }
            }
            job.result = job.number + 1;
            self.finished.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn is_finished(&self, job: &Job) -> bool {
        job.result != 0
    }

    fn thread_started(&self, _: usize) {
        self.threads_started.fetch_add(1, Ordering::SeqCst);
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "timed out before {what}");
        std::thread::yield_now();
    }
}

struct Setup {
    service: Arc<Adder>,
    lane: Lane<Job>,
    ports: Vec<Port<Job>>,
}

fn start(workers: usize, change: impl FnOnce(&mut LaneOptions)) -> Setup {
    let mut options = LaneOptions {
        name: "test".to_owned(),
        depth: 64,
        batch: 4,
        time_limit: LIMIT,
        ..LaneOptions::default()
    };
    change(&mut options);
    let service = Arc::new(Adder::default());
    let config = LaneConfig::new(options).expect("valid options");
    let (lane, ports) = Lane::start(config, Arc::clone(&service) as Arc<dyn Service<_>>, workers).expect("starts");
    Setup { service, lane, ports }
}

fn submit_all(port: &mut Port<Job>, tasks: &[Task]) {
    for (number, &task) in (0..).zip(tasks) {
        port.submit(job(task, number), number).expect("has room");
    }
    port.flush();
}

/// Waits for this many completions.
fn collect(port: &mut Port<Job>, count: usize) -> Vec<Job> {
    let mut done = Vec::new();
    wait_until("all jobs are completed", || {
        port.complete(&mut done);
        done.len() >= count
    });
    done
}

/// Checks until something is lost.
fn lose(port: &mut Port<Job>, now: Instant) -> Lost<Job> {
    let mut lost = port.check(now);
    wait_until("the loss is noticed", || {
        if lost.is_empty() {
            lost = port.check(now);
        }
        !lost.is_empty()
    });
    lost
}

fn numbers(jobs: &[Job]) -> Vec<u64> {
    jobs.iter().map(|job| job.number).collect()
}

/// Submitted, completed and lost add up, and the lane works.
fn assert_works(port: &mut Port<Job>) {
    assert_eq!(port.in_flight(), 0);
    let before = port.counters();
    assert_eq!(before.submitted, before.completed + before.lost);
    submit_all(port, &[Task::Add; 50]);
    assert_eq!(collect(port, 50).len(), 50);
    let after = port.counters();
    assert_eq!((after.completed, after.lost), (before.completed + 50, before.lost));
}

/// Runs a worker that keeps its port busy, and checks that each job comes back once.
fn run_worker(port: &mut Port<Job>, worker: usize, jobs: u64) {
    let mut pool = Pool::new(64, || Context {
        task: Task::Add,
        worker,
        number: 0,
        result: 0,
    });
    let mut is_done = vec![false; jobs as usize];
    let (mut submitted, mut completed, mut done) = (0, 0, Vec::new());
    let start = Instant::now();
    while completed < jobs {
        while submitted < jobs
            && let Some(mut job) = pool.take()
        {
            (job.number, job.result) = (submitted, 0);
            port.submit(job, submitted)
                .expect("the pool is as large as the lane is deep");
            submitted += 1;
        }
        port.flush();
        if port.complete(&mut done) == 0 {
            assert!(start.elapsed() < PATIENCE, "{completed} of {jobs} came back");
            std::thread::yield_now();
        }
        for job in done.drain(..) {
            assert_eq!((job.worker, job.result), (worker, job.number + 1));
            assert!(
                !std::mem::replace(&mut is_done[job.number as usize], true),
                "came back twice"
            );
            completed += 1;
            pool.put(job);
        }
    }
    assert_eq!((pool.len(), port.in_flight()), (64, 0));
}

#[test]
fn every_job_comes_back_once_to_its_worker() {
    let setup = start(2, |o| (o.threads, o.batch) = (2, 32));
    std::thread::scope(|scope| {
        for (worker, mut port) in setup.ports.into_iter().enumerate() {
            scope.spawn(move || run_worker(&mut port, worker, 500_000));
        }
    });
    let expected = Counters {
        submitted: 1_000_000,
        completed: 1_000_000,
        ..Counters::default()
    };
    assert_eq!(setup.lane.counters(), expected);
    assert!(setup.lane.service_time().is_some());
}

#[test]
fn jobs_with_the_same_hint_stay_in_order() {
    let mut setup = start(1, |o| o.threads = 3);
    let port = &mut setup.ports[0];
    let mut used = [false; 3];
    for number in 0..64 {
        used[port.thread_for(number % 7)] = true;
        port.submit(job(Task::Add, number), number % 7).expect("has room");
    }
    port.flush();
    assert_eq!(used, [true; 3], "hints are spread");
    let mut last = HashMap::new();
    for number in numbers(&collect(port, 64)) {
        let before = last.insert(number % 7, number);
        assert!(before < Some(number));
    }
}

#[test]
fn a_full_port_gives_the_job_back() {
    let mut setup = start(1, |o| o.depth = 4);
    let port = &mut setup.ports[0];
    submit_all(port, &[Task::Add; 4]);
    assert!(!port.has_room());
    assert_eq!(port.load(), 1.0);
    // Completed or not: until it is collected, a job is in flight.
    wait_until("all are executed", || {
        setup.service.finished.load(Ordering::SeqCst) == 4
    });
    let refused = port.submit(job(Task::Add, 9), 0).expect_err("four are in flight");
    assert_eq!(refused.number, 9);
    assert_eq!(port.counters().submitted, 4);
    collect(port, 4);
    assert_eq!(port.load(), 0.0);
    submit_all(port, &[Task::Add; 3]);
    assert_eq!(numbers(&collect(port, 3)), [0, 1, 2]);
}

#[test]
fn a_panic_loses_what_its_batch_had_not_finished() {
    let mut setup = start(1, |_| {});
    let port = &mut setup.ports[0];
    submit_all(port, &[Task::Add, Task::Panic, Task::Add, Task::Add]);
    let lost = lose(port, Instant::now());
    assert_eq!((lost.count, lost.gone()), (3, 0));
    assert_eq!(numbers(&lost.returned), [1, 2, 3]);
    assert!(lost.threads.is_empty(), "the thread goes on");
    assert_eq!(numbers(&collect(port, 1)), [0]);
    assert_eq!(port.counters().lost, 3);
    assert_works(port);
    assert_eq!(setup.service.threads_started.load(Ordering::SeqCst), 1);
}

#[test]
fn a_thread_that_hangs_is_replaced_and_its_later_results_are_discarded() {
    let mut setup = start(1, |_| {});
    let port = &mut setup.ports[0];
    let now = Instant::now();
    submit_all(port, &[Task::Hang; 10]);
    wait_until("it hangs", || setup.service.hanging.load(Ordering::SeqCst) == 1);
    assert!(port.check(now).is_empty());
    assert!(port.check(now + LIMIT / 2).is_empty(), "the limit is not over");
    let lost = port.check(now + LIMIT);
    assert_eq!((lost.count, lost.gone(), lost.threads), (10, 10, vec![0]));
    assert_works(port);
    setup.service.gate.store(true, Ordering::SeqCst);
    // The abandoned thread finishes its batch, which must not come back.
    wait_until("it ends", || setup.service.finished.load(Ordering::SeqCst) == 54);
    assert_works(port);
    assert_eq!(port.complete(&mut Vec::new()), 0);
    let expected = Counters {
        submitted: 110,
        completed: 100,
        lost: 10,
        restarts: 1,
    };
    assert_eq!((port.counters(), setup.lane.counters()), (expected, expected));
}

#[test]
fn a_hanging_thread_disturbs_neither_other_threads_nor_other_workers() {
    let mut setup = start(2, |o| o.threads = 2);
    let (mut first, mut second) = (setup.ports.remove(0), setup.ports.remove(0));
    let hint = |thread| {
        (0..)
            .find(|&hint| first.thread_for(hint) == thread)
            .expect("each has hints")
    };
    let (to_first, to_second) = (hint(0), hint(1));
    let now = Instant::now();
    // The other worker's job has come back before the thread hangs.
    second.submit(job(Task::Add, 5), to_first).expect("has room");
    second.flush();
    assert_eq!(numbers(&collect(&mut second, 1)), [5]);
    first.submit(job(Task::Hang, 0), to_first).expect("has room");
    first.submit(job(Task::Add, 1), to_second).expect("has room");
    first.flush();
    wait_until("it hangs", || setup.service.hanging.load(Ordering::SeqCst) == 1);
    assert_eq!(numbers(&collect(&mut first, 1)), [1]);
    assert!(first.check(now).is_empty());
    let lost = first.check(now + LIMIT);
    assert_eq!((lost.count, lost.threads), (1, vec![0]));
    assert_works(&mut first);
    // The other worker moves to the new thread as well, and has lost nothing.
    let lost = second.check(now);
    assert_eq!((lost.count, lost.threads), (0, vec![0]));
    assert_works(&mut second);
    assert_eq!(setup.lane.counters().restarts, 1);
    setup.service.gate.store(true, Ordering::SeqCst);
}

#[test]
fn a_batch_that_was_not_sent_comes_back_when_its_thread_is_replaced() {
    let mut setup = start(1, |_| {});
    let port = &mut setup.ports[0];
    port.submit(job(Task::Add, 3), 0).expect("has room");
    assert!(setup.lane.kill(0) && !setup.lane.kill(1));
    let lost = lose(port, Instant::now());
    assert_eq!((lost.count, lost.gone()), (1, 0));
    assert_eq!(numbers(&lost.returned), [3]);
    assert_works(port);
}

#[test]
fn counts_add_up_when_busy_threads_are_killed() {
    let mut setup = start(1, |o| o.threads = 2);
    let port = &mut setup.ports[0];
    let mut pool = Pool::new(64, || *job(Task::Add, 0));
    let (mut done, mut restarts) = (Vec::new(), 0);
    for round in 0..40 {
        for number in 0..200 {
            if let Some(job) = pool.take() {
                port.submit(job, number)
                    .expect("the pool is as large as the lane is deep");
            }
            if number == 100 {
                setup.lane.kill(round % 2);
            }
            port.complete(&mut done);
            done.drain(..).for_each(|job| pool.put(job));
        }
        port.flush();
        let lost = lose(port, Instant::now());
        restarts += lost.threads.len() as u64;
        pool.replace_lost(lost.gone(), || *job(Task::Add, 0));
        lost.returned.into_iter().for_each(|job| pool.put(job));
    }
    wait_until("the rest is completed", || {
        port.complete(&mut done);
        port.in_flight() == 0
    });
    done.drain(..).for_each(|job| pool.put(job));
    assert_eq!(pool.len(), pool.capacity());
    assert_eq!(setup.lane.counters().restarts, restarts);
    assert_eq!(restarts, 40);
    assert_works(port);
}

#[test]
fn order_is_kept_and_nothing_waits_for_jobs_of_a_thread_that_was_replaced() {
    let mut setup = start(1, |o| o.threads = 2);
    let port = &mut setup.ports[0];
    let (mut sequencer, mut released) = (Sequencer::new(Order::PerKey, 64), Vec::new());
    let hints = [0, 1].map(|thread| {
        (0..)
            .find(|&hint| port.thread_for(hint) == thread)
            .expect("each has hints")
    });
    let mut tickets = Vec::new();
    // Jobs of one flow go to both threads; the first thread hangs.
    for number in 0..20 {
        let thread = number as usize % 2;
        let task = if thread == 0 { Task::Hang } else { Task::Add };
        tickets.push(sequencer.issue(7, thread as u32).expect("has room"));
        port.submit(job(task, number), hints[thread]).expect("has room");
    }
    port.flush();
    for job in collect(port, 10) {
        let ticket = tickets[job.number as usize];
        sequencer
            .complete(ticket, job.number, &mut released)
            .expect("outstanding");
    }
    assert!(released.is_empty(), "the first job is outstanding");
    let now = Instant::now();
    assert!(port.check(now).is_empty());
    for thread in port.check(now + LIMIT).threads {
        sequencer.forget_route(thread as u32, &mut released);
    }
    assert_eq!(released, (0..10).map(|i| 2 * i + 1).collect::<Vec<_>>());
    assert_eq!(sequencer.outstanding(), 0);
    setup.service.gate.store(true, Ordering::SeqCst);
}

#[test]
fn a_job_wakes_a_parked_thread() {
    let mut setup = start(1, |o| o.threads = 2);
    let port = &mut setup.ports[0];
    for round in 0..500 {
        // Long enough to spin, to yield or to be parked, or to be about to.
        for _ in 0..round % 100 {
            std::thread::yield_now();
        }
        if round % 25 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        port.submit(job(Task::Add, round), round).expect("has room");
        port.flush();
        assert_eq!(numbers(&collect(port, 1)), [round]);
    }
}

#[test]
fn a_check_wakes_threads_before_the_worker_sleeps() {
    let mut setup = start(1, |_| {});
    let port = &mut setup.ports[0];
    for round in 0..50 {
        if round % 2 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        port.submit(job(Task::Add, round), 0).expect("has room");
        port.flush();
        assert!(port.check(Instant::now()).is_empty());
        // No more calls of the port until the job is executed.
        wait_until("it is executed", || {
            setup.service.finished.load(Ordering::SeqCst) == round + 1
        });
        assert_eq!(collect(port, 1).len(), 1);
    }
}

#[test]
fn threads_that_hang_are_not_replaced_without_bound() {
    let mut setup = start(1, |_| {});
    let port = &mut setup.ports[0];
    let mut now = Instant::now();
    for _ in 0..40 {
        submit_all(port, &[Task::Hang]);
        let hanging = setup.lane.counters().restarts.min(16) as usize + 1;
        wait_until("it hangs", || setup.service.hanging.load(Ordering::SeqCst) >= hanging);
        assert!(port.check(now).is_empty());
        now += LIMIT;
        assert_eq!(port.check(now).count, 1);
    }
    assert_eq!(setup.lane.counters().restarts, 16);
    // When they have ended, the place gets a thread again.
    setup.service.gate.store(true, Ordering::SeqCst);
    wait_until("there is a thread again", || {
        submit_all(port, &[Task::Add]);
        assert!(port.check(now).is_empty());
        now += LIMIT;
        assert_eq!(port.check(now).count, 1);
        setup.lane.counters().restarts == 17
    });
    assert_works(port);
}

#[test]
fn a_port_outlives_its_lane() {
    let mut setup = start(1, |_| {});
    let port = &mut setup.ports[0];
    submit_all(port, &[Task::Add; 6]);
    drop(setup.lane);
    let mut done = Vec::new();
    let completed = port.complete(&mut done);
    let lost = port.check(Instant::now());
    assert_eq!(completed + lost.count, 6);
    assert!(port.is_closed() && !port.has_room());
    assert_eq!(port.submit(job(Task::Add, 1), 0).expect_err("closed").number, 1);
    assert_eq!(port.in_flight(), 0);
}

#[test]
fn dropping_a_lane_does_not_wait_for_a_thread_that_hangs() {
    let mut setup = start(1, |o| o.time_limit = Duration::from_millis(1));
    submit_all(&mut setup.ports[0], &[Task::Hang]);
    wait_until("it hangs", || setup.service.hanging.load(Ordering::SeqCst) == 1);
    let lane = setup.lane;
    let dropping = std::thread::spawn(move || drop(lane));
    wait_until("the lane is dropped", || dropping.is_finished());
    setup.service.gate.store(true, Ordering::SeqCst);
}

#[test]
fn a_lane_without_workers_does_not_start() {
    let config = LaneConfig::new(LaneOptions::default()).expect("valid");
    let service: Arc<dyn Service<Job>> = Arc::new(Adder::default());
    assert!(matches!(Lane::start(config, service, 0), Err(StartError::NoWorkers)));
}
