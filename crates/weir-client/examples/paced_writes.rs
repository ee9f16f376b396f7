//! Writes entries at a steady rate: inserts, modifies and deletes, each acknowledged by the target.
//!
//! `paced_writes p4runtime|bfrt ADDRESS TABLE ACTION [--rate N] [--seconds N] [--batch N] [--lanes
//! N] [--entries N] [--first N] [--atomic]`
//!
//! The keys of the table are exact, the parameters of the action numbers. Entries have the keys
//! `--first`, `--first` + 1, …; each is inserted with parameters of 1, modified once to 2 by the
//! next request, and deleted when about `--entries` later ones are there. Several lanes have one
//! request each in flight; each has keys of its own, so that what becomes of an entry does not
//! depend on the order in which the target does requests. What is left at the end is taken away.
//! Exits with 1 if an update failed.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use serde_json::json;
use std::collections::VecDeque;
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_client::{Atomicity, Batch, Client, Operation, Options, Table, Template};

struct Arguments {
    options: Options,
    table: String,
    action: String,
    rate: f64,
    seconds: f64,
    batch: usize,
    lanes: u64,
    entries: u64,
    first: u64,
    is_atomic: bool,
}

const USAGE: &str = "paced_writes p4runtime|bfrt ADDRESS TABLE ACTION [--rate N] [--seconds N] [--batch N] [--lanes N] \
                     [--entries N] [--first N] [--atomic]";

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let (mut names, mut numbers, mut is_atomic) = (Vec::new(), Vec::new(), false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            Some("atomic") => is_atomic = true,
            Some(flag) => numbers.push((flag.to_owned(), words.next().ok_or(USAGE)?.parse::<f64>()?)),
            None => names.push(word),
        }
    }
    let [protocol, address, table, action] = names.try_into().map_err(|_| USAGE)?;
    let mut arguments = Arguments {
        options: match protocol.as_str() {
            "p4runtime" => Options::p4runtime(&address)?,
            "bfrt" => Options::bfrt(&address)?,
            _ => return Err(USAGE.into()),
        },
        table,
        action,
        rate: 100_000.0,
        seconds: 10.0,
        batch: 1000,
        lanes: 2,
        entries: 10_000,
        first: 1,
        is_atomic,
    };
    for (flag, number) in numbers {
        match flag.as_str() {
            "rate" => arguments.rate = number,
            "seconds" => arguments.seconds = number,
            "batch" => arguments.batch = number as usize,
            "lanes" => arguments.lanes = number as u64,
            "entries" => arguments.entries = number as u64,
            "first" => arguments.first = number as u64,
            _ => return Err(USAGE.into()),
        }
    }
    match arguments.rate > 0.0 && arguments.batch > 0 && arguments.lanes > 0 {
        true => Ok(arguments),
        false => Err(USAGE.into()),
    }
}

/// The updates, encoded but for their numbers.
struct Templates {
    insert: Template,
    modify: Template,
    delete: Template,
    /// Widths of the keys, the most significant first.
    keys: Vec<u32>,
    params: usize,
}

impl Templates {
    fn new(table: &Arc<Table>, action: &str) -> Result<Templates, weir_client::Error> {
        let insert = Template::new(table, Operation::Insert, Some(action))?;
        let delete = Template::new(table, Operation::Delete, None)?;
        Ok(Templates {
            keys: delete.cells().iter().map(|c| c.width).collect(),
            params: insert.cells().len() - delete.cells().len(),
            modify: Template::new(table, Operation::Modify, Some(action))?,
            insert,
            delete,
        })
    }

    /// The numbers of an entry: its key, spread over the fields, and the same value for all
    /// parameters.
    fn numbers(&self, key: u64, params: usize, value: u128) -> Vec<u128> {
        let mut rest = u128::from(key);
        let mut numbers = vec![value; self.keys.len() + params];
        for (number, width) in numbers.iter_mut().zip(&self.keys).rev() {
            *number = rest & (u128::MAX >> (128 - width));
            rest = rest.checked_shr(*width).unwrap_or(0);
        }
        numbers
    }

    fn insert(&self, batch: &mut Batch, key: u64) -> Result<(), weir_client::Error> {
        batch
            .push_numbers(&self.insert, &self.numbers(key, self.params, 1))
            .map(|_| ())
    }

    fn modify(&self, batch: &mut Batch, key: u64) -> Result<(), weir_client::Error> {
        batch
            .push_numbers(&self.modify, &self.numbers(key, self.params, 2))
            .map(|_| ())
    }

    fn delete(&self, batch: &mut Batch, key: u64) -> Result<(), weir_client::Error> {
        batch.push_numbers(&self.delete, &self.numbers(key, 0, 0)).map(|_| ())
    }
}

/// What the lanes share.
struct Pace {
    started: Instant,
    rate: f64,
    seconds: f64,
    /// Updates that some lane has taken on itself.
    taken: AtomicU64,
}

impl Pace {
    /// Waits until this number of updates is due. Returns false at the end of the run.
    async fn take(&self, updates: usize) -> bool {
        let before = self.taken.fetch_add(updates as u64, Ordering::Relaxed);
        let due = before as f64 / self.rate;
        if due >= self.seconds || self.started.elapsed().as_secs_f64() >= self.seconds {
            return false;
        }
        tokio::time::sleep_until((self.started + Duration::from_secs_f64(due)).into()).await;
        true
    }
}

/// What a lane has done.
#[derive(Default)]
struct Done {
    /// Updates that were acknowledged: inserts, modifies, deletes.
    updates: [u64; 3],
    times: Vec<Duration>,
    /// When the last of them was, from the beginning.
    ended: Duration,
}

/// Sends one request after another until the time is over.
async fn lane(
    client: Client,
    templates: Arc<Templates>,
    pace: Arc<Pace>,
    arguments: Arc<Arguments>,
    number: u64,
) -> Result<Done, weir_client::Error> {
    let mut done = Done::default();
    let mut batch = client.batch();
    if arguments.is_atomic {
        batch = batch.atomicity(Atomicity::DataplaneAtomic);
    }
    // Of the entries that are there: those that were modified, the oldest first, and those that
    // only were inserted.
    let (mut settled, mut fresh) = (VecDeque::new(), Vec::new());
    let mut next = arguments.first + number;
    loop {
        let room = arguments.entries / arguments.lanes;
        let new = (arguments.batch / 3).max(1);
        let deletes = settled.len().saturating_sub(room as usize).min(new);
        let inserts = arguments
            .batch
            .saturating_sub(fresh.len() + deletes)
            .clamp(1, arguments.batch / 2 + 1);
        let updates = [inserts, fresh.len(), deletes];
        if !pace.take(updates.iter().sum()).await {
            break;
        }
        batch.clear();
        let modified = std::mem::take(&mut fresh);
        for key in &modified {
            templates.modify(&mut batch, *key)?;
        }
        for key in settled.drain(..deletes) {
            templates.delete(&mut batch, key)?;
        }
        for _ in 0..inserts {
            templates.insert(&mut batch, next)?;
            fresh.push(next);
            next += arguments.lanes;
        }
        settled.extend(modified);
        let begin = Instant::now();
        client.write(&batch).await?;
        done.times.push(begin.elapsed());
        done.ended = pace.started.elapsed();
        for (sum, more) in done.updates.iter_mut().zip(updates) {
            *sum += more as u64;
        }
    }
    settled.extend(fresh);
    for keys in settled.make_contiguous().chunks(1000) {
        let mut batch = client.batch();
        for key in keys {
            templates.delete(&mut batch, *key)?;
        }
        client.write(&batch).await?;
    }
    Ok(done)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let arguments = Arc::new(arguments()?);
    let client = Client::connect(arguments.options.clone()).await?;
    let table = client.table(&arguments.table)?;
    let templates = Arc::new(Templates::new(&table, &arguments.action)?);
    let pace = Arc::new(Pace {
        started: Instant::now(),
        rate: arguments.rate,
        seconds: arguments.seconds,
        taken: AtomicU64::new(0),
    });
    let lanes: Vec<_> = (0..arguments.lanes)
        .map(|number| {
            let (client, templates) = (client.clone(), Arc::clone(&templates));
            tokio::spawn(lane(
                client,
                templates,
                Arc::clone(&pace),
                Arc::clone(&arguments),
                number,
            ))
        })
        .collect();
    let (mut updates, mut times, mut seconds) = ([0; 3], Vec::new(), arguments.seconds);
    for lane in lanes {
        let done = lane.await??;
        updates
            .iter_mut()
            .zip(done.updates)
            .for_each(|(sum, more)| *sum += more);
        times.extend(done.times);
        seconds = seconds.max(done.ended.as_secs_f64());
    }
    times.sort_unstable();
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).or(times.last());
    let ms = |time: Option<&Duration>| time.map(|t| t.as_secs_f64() * 1e3);
    let acknowledged: u64 = updates.iter().sum();
    let report = json!({
        "seconds": seconds,
        "acknowledged": acknowledged,
        "per_second": acknowledged as f64 / seconds,
        "inserted": updates[0],
        "modified": updates[1],
        "deleted": updates[2],
        "requests": times.len(),
        "request_ms": {"median": ms(at(0.5)), "p99": ms(at(0.99)), "longest": ms(times.last())},
    });
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}
