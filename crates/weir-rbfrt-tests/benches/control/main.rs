//! How fast controllers write into a switch that runs: the figure 3 of the RBFRT paper, with weir
//! as the switch.
//!
//! `cargo build --release && cargo bench -p weir-rbfrt-tests --bench control [-- --quick] [-- --out
//! DIR] [-- --only METHOD]`
//!
//! Entries of two keys go into the firewall `acl_firewall_tna` that `weir run` processes. Every
//! method inserts the same entries in turn; before each the table is emptied. Medians of the
//! rounds.

#![allow(clippy::print_stdout)]

mod plot;
mod switch;

use rbfrt::SwitchConnection;
use rbfrt::table::{MatchValue, Request};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::Switch;
use tokio::runtime::Runtime;
use weir_client::blocking::Client;
use weir_client::{BULK_BATCH, BULK_IN_FLIGHT, Operation, Options, Query, ReadOptions, Table, Template};

/// By which connection entries are inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rbfrt,
    Tcp,
    Unix,
    P4Runtime,
}

/// How many at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Single,
    /// 64 in flight.
    Pipelined,
    /// All in one request.
    Batch,
    /// As weir-client writes many: requests of some thousand, a few in flight.
    Bulk,
}

use By::*;
use Way::*;

/// A way to insert entries.
type Method = (By, Way);

/// All of them, with what they are called.
const METHODS: [(&str, Method); 11] = [
    ("rbfrt, single", (Rbfrt, Single)),
    ("rbfrt, batch", (Rbfrt, Batch)),
    ("weir-client, single", (Tcp, Single)),
    ("weir-client, 64 in flight", (Tcp, Pipelined)),
    ("weir-client, batch", (Tcp, Batch)),
    ("weir-client, bulk", (Tcp, Bulk)),
    ("weir-client, single, Unix socket", (Unix, Single)),
    ("weir-client, 64 in flight, Unix socket", (Unix, Pipelined)),
    ("weir-client, batch, Unix socket", (Unix, Batch)),
    ("weir-client, bulk, Unix socket", (Unix, Bulk)),
    ("weir-client, batch, P4Runtime", (P4Runtime, Batch)),
];

/// The reads that are measured.
const READS: [&str; 2] = ["read with counters, BF Runtime", "read with counters, P4Runtime"];

/// The largest number of entries that is measured: single ones take long.
fn limit(method: Method) -> u32 {
    match method {
        (_, Single) => 10_000,
        (Rbfrt, _) | (_, Pipelined) => 100_000,
        (_, Batch | Bulk) => 1_000_000,
    }
}

/// Batches beyond this many entries are several requests, two in flight.
const PORTION: usize = 100_000;

/// What a controller needs of one connection.
struct Connection {
    client: Client,
    table: Arc<Table>,
    insert: Template,
}

impl Connection {
    fn new(options: Options) -> Result<Connection, Box<dyn Error>> {
        let client = Client::connect(options)?;
        let table = client.table("address_pairs")?;
        let insert = Template::new(&table, Operation::Insert, Some("allow"))?;
        Ok(Connection { client, table, insert })
    }

    fn empty(&self) -> Result<(), Box<dyn Error>> {
        Ok(self.client.clear(&self.table)?)
    }

    fn insert_by(&self, entries: u32, batch: usize, in_flight: usize) -> Result<Duration, Box<dyn Error>> {
        let begin = Instant::now();
        let mut pipeline = self.client.pipeline(batch, in_flight);
        for i in 0..entries {
            let [source, destination] = addresses(i);
            pipeline.push_numbers(&self.insert, &[source.into(), destination.into()])?;
        }
        let outcome = pipeline.finish()?;
        let time = begin.elapsed();
        assert_eq!(outcome.done, u64::from(entries), "{:?}", outcome.failed.first());
        Ok(time)
    }
}

/// The pair of addresses of an entry.
fn addresses(i: u32) -> [u32; 2] {
    [i.wrapping_mul(0x9e37_79b1), !i]
}

fn request(i: u32) -> Request {
    let [source, destination] = addresses(i);
    Request::new("FirewallIngress.address_pairs")
        .match_key("hdr.ipv4.src_addr", MatchValue::exact(source))
        .match_key("hdr.ipv4.dst_addr", MatchValue::exact(destination))
        .action("FirewallIngress.allow")
}

struct Bench {
    tcp: Connection,
    unix: Connection,
    p4runtime: Connection,
    rbfrt: SwitchConnection,
    /// Runs rbfrt.
    runtime: Runtime,
}

impl Bench {
    fn new(by_tcp: &Switch, by_unix: &Switch) -> Result<Bench, Box<dyn Error>> {
        let bfrt = by_tcp.bfrt.as_str();
        let port = bfrt.rsplit(':').next().unwrap_or("").parse()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let connected = SwitchConnection::builder("127.0.0.1", port)
            .device_id(0)
            .client_id(1)
            .p4_name("acl_firewall_tna")
            .connect();
        let rbfrt = runtime.block_on(connected).map_err(|e| format!("rbfrt: {e:?}"))?;
        // rbfrt is bound to the program; the others name it.
        Ok(Bench {
            tcp: Connection::new(Options::bfrt(bfrt)?.client(2).observer())?,
            unix: Connection::new(Options::bfrt(&by_unix.bfrt)?)?,
            p4runtime: Connection::new(Options::p4runtime(&by_tcp.p4runtime)?)?,
            rbfrt,
            runtime,
        })
    }

    fn time(&self, (by, way): Method, entries: u32) -> Result<Duration, Box<dyn Error>> {
        let connection = match by {
            Rbfrt | Tcp => &self.tcp,
            Unix => &self.unix,
            P4Runtime => &self.p4runtime,
        };
        connection.empty()?;
        match (by, way) {
            (Rbfrt, Single) => {
                let begin = Instant::now();
                self.runtime.block_on(async {
                    for i in 0..entries {
                        let written = self.rbfrt.write_table_entry(request(i)).await;
                        written.map_err(|e| format!("rbfrt: {e:?}"))?;
                    }
                    Ok(begin.elapsed())
                })
            }
            (Rbfrt, Batch) => {
                let begin = Instant::now();
                let requests: Vec<Request> = (0..entries).map(request).collect();
                let written = self.rbfrt.write_table_entries(requests);
                let written = self.runtime.block_on(written);
                written.map_err(|e| format!("rbfrt: {e:?}"))?;
                Ok(begin.elapsed())
            }
            (Rbfrt, Pipelined) => Err("rbfrt has one request in flight per connection".into()),
            (_, Single) => connection.insert_by(entries, 1, 1),
            (_, Pipelined) => connection.insert_by(entries, 1, 64),
            (_, Batch) => connection.insert_by(entries, PORTION, 2),
            (Rbfrt, Bulk) => Err("rbfrt has one request in flight per connection".into()),
            (_, Bulk) => connection.insert_by(entries, BULK_BATCH, BULK_IN_FLIGHT),
        }
    }

    /// Time to read all entries with their counters, and how many there were.
    fn read(&self, connection: &Connection) -> Result<(Duration, u64), Box<dyn Error>> {
        let begin = Instant::now();
        let queries = [Query::Table(Arc::clone(&connection.table))];
        let (mut rows, mut packets) = (0, 0);
        // $COUNTER_SPEC_PKTS
        let counter = 65554;
        connection.client.wait(async {
            let inner = connection.client.inner();
            let mut pages = inner.read_pages(&queries, &ReadOptions::default()).await?;
            while let Some(page) = pages.next().await? {
                page.rows(|row| {
                    rows += u64::from(!row.is_default);
                    packets += row.datum(counter).map_or(0, |d| d.number());
                })?;
            }
            Ok::<(), weir_client::Error>(())
        })?;
        // Nobody has sent a packet.
        assert_eq!(packets, 0);
        Ok((begin.elapsed(), rows))
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_quick = arguments.iter().any(|a| a == "--quick");
    let out = arguments
        .iter()
        .position(|a| a == "--out")
        .and_then(|i| arguments.get(i + 1))
        // Benches run in the folder of their crate; a relative path is of the project's.
        .map(|out| Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(out));
    let only = arguments
        .iter()
        .position(|a| a == "--only")
        .and_then(|i| arguments.get(i + 1));
    let rounds = if is_quick { 1 } else { 5 };
    let by_tcp = Switch::start("127.0.0.1:0")?;
    let socket = std::env::temp_dir().join(format!("weir-control-bench-{}.sock", std::process::id()));
    let by_unix = Switch::start(&format!("unix:{}", socket.display()))?;
    if let Some(only) = only {
        return again(&by_tcp, &by_unix, only);
    }
    run(&by_tcp, &by_unix, rounds, out)
}

/// Inserts 100,000 entries again and again by methods of this name, or reads 1,000,000, for a
/// profiler.
fn again(by_tcp: &Switch, by_unix: &Switch, name: &str) -> Result<(), Box<dyn Error>> {
    let bench = Bench::new(by_tcp, by_unix)?;
    if READS.contains(&name) {
        bench.time((Tcp, Batch), 1_000_000)?;
        let by = if name == READS[0] { &bench.tcp } else { &bench.p4runtime };
        for _ in 0..15 {
            println!("{:.6}", bench.read(by)?.0.as_secs_f64());
        }
    }
    for (_, method) in METHODS.into_iter().filter(|(n, _)| *n == name) {
        for _ in 0..50 {
            println!("{:.6}", bench.time(method, 100_000)?.as_secs_f64());
        }
    }
    Ok(())
}

fn run(by_tcp: &Switch, by_unix: &Switch, rounds: u32, out: Option<PathBuf>) -> Result<(), Box<dyn Error>> {
    let bench = Bench::new(by_tcp, by_unix)?;
    let counts = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
    let mut points = Vec::new();
    println!(
        "{:<40} {:>9} {:>12} {:>12}",
        "method", "entries", "seconds", "entries/s"
    );
    for count in counts {
        let methods: Vec<_> = METHODS.into_iter().filter(|(_, m)| count <= limit(*m)).collect();
        let mut times = vec![Vec::new(); methods.len()];
        for _ in 0..rounds {
            for ((_, method), times) in methods.iter().zip(&mut times) {
                times.push(bench.time(*method, count)?.as_secs_f64());
            }
        }
        for ((name, method), times) in methods.into_iter().zip(times) {
            let seconds = median(times);
            let rate = f64::from(count) / seconds;
            println!("{name:<40} {count:>9} {seconds:>12.6} {rate:>12.0}");
            points.push((method, count, seconds));
        }
    }
    let reads = reads(&bench, rounds)?;
    let at = |method: Method, count: u32| {
        let found = points.iter().find(|(m, c, _)| *m == method && *c == count);
        found.map_or(f64::NAN, |(_, _, seconds)| *seconds)
    };
    bars(&at, &reads);
    println!(
        "switch: {} MiB resident; this process, all clients: {} MiB",
        by_tcp.resident_mib(),
        switch::resident_mib("self")
    );
    if let Some(folder) = out {
        std::fs::create_dir_all(&folder)?;
        let mut csv = String::from("method,entries,seconds\n");
        for (method, count, seconds) in &points {
            let name = METHODS.iter().find(|(_, m)| m == method).map_or("", |(name, _)| name);
            csv += &format!("\"{name}\",{count},{seconds:.9}\n");
        }
        std::fs::write(folder.join("control.csv"), csv)?;
        let lines: Vec<(&str, Vec<(f64, f64)>)> = METHODS
            .iter()
            .map(|(name, method)| {
                let line = points.iter().filter(|(m, ..)| m == method);
                (*name, line.map(|(_, c, s)| (f64::from(*c), *s)).collect())
            })
            .collect();
        std::fs::write(folder.join("control.svg"), plot::svg(&lines))?;
    }
    Ok(())
}

/// Reads a million entries, by both protocols; seconds per million.
fn reads(bench: &Bench, rounds: u32) -> Result<[(&'static str, f64); 2], Box<dyn Error>> {
    bench.time((Tcp, Batch), 1_000_000)?;
    let mut result = READS.map(|name| (name, 0.0));
    for (connection, (name, seconds)) in [&bench.tcp, &bench.p4runtime].into_iter().zip(&mut result) {
        let mut times = Vec::new();
        for _ in 0..rounds {
            let (time, rows) = bench.read(connection)?;
            assert_eq!(rows, 1_000_000, "{name}");
            times.push(time.as_secs_f64());
        }
        *seconds = median(times);
        println!("{name:<40} {:>9} {seconds:>12.6} {:>12.0}", 1_000_000, 1e6 / *seconds);
    }
    Ok(result)
}

fn bars(at: &impl Fn(Method, u32) -> f64, reads: &[(&str, f64); 2]) {
    let ratio = |a: f64, b: f64| a / b;
    println!();
    for (name, way) in [("in one request", Batch), ("in requests of bulk", Bulk)] {
        println!(
            "batch of 100,000, {name}: {:.0} entries/s (bar 1,000,000), {:.1} x rbfrt (bar 6)",
            1e5 / at((Tcp, way), 100_000),
            ratio(at((Rbfrt, Batch), 100_000), at((Tcp, way), 100_000))
        );
    }
    println!(
        "single, 64 in flight: {:.0}/s (bar 30,000), {:.1} x rbfrt's single (bar 8)",
        1e4 / at((Tcp, Pipelined), 10_000),
        ratio(at((Rbfrt, Single), 10_000), at((Tcp, Pipelined), 10_000))
    );
    println!(
        "sequential single: {:.2} of rbfrt's time (bar 0.75)",
        ratio(at((Tcp, Single), 10_000), at((Rbfrt, Single), 10_000))
    );
    println!(
        "10,000 entries: {:.1} ms in one request, {:.1} ms in bulk (bar 8)",
        at((Tcp, Batch), 10_000) * 1e3,
        at((Tcp, Bulk), 10_000) * 1e3
    );
    println!(
        "read of 1,000,000 with counters: {:.0} entries/s (bar 1,000,000)",
        1e6 / reads[0].1
    );
}
