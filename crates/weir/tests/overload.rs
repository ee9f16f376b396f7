//! Everything at once: ports that always have packets, a digest for each, packets for the control
//! plane, controllers that read slowly or not at all, and writes. All make progress, the switch
//! stops at SIGTERM, and every packet that it loses is counted.
//!
//! `WEIR_OVERLOAD_SECONDS` says for how long; 8 by default.
#![cfg(target_os = "linux")]

mod common;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_client::{Batch, Client, DigestConfig, Entry, Operation, Options, Overflow, Query, ReadOptions};

const PROGRAM: &str = "
    #include <core.p4>
    #include <v1model.p4>
    header h_t { bit<32> key; }
    struct headers { h_t h; }
    struct meta { }
    struct seen_t { bit<32> key; bit<9> port; }
    parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
        state start { p.extract(h.h); transition accept; }
    }
    control V(inout headers h, inout meta m) { apply { } }
    control I(inout headers h, inout meta m, inout standard_metadata_t s) {
        action to(bit<9> port) { s.egress_spec = port; }
        table t {
            key = { h.h.key : exact @name(\"key\"); }
            actions = { to; }
            default_action = to(2);
            size = 100000;
        }
        apply {
            digest<seen_t>(1, { h.h.key, s.ingress_port });
            t.apply();
            if (s.ingress_port == 3) { s.egress_spec = 510; }
            if (s.ingress_port == 510) { mark_to_drop(s); }
        }
    }
    control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
    control C(inout headers h, inout meta m) { apply { } }
    control D(packet_out p, in headers h) { apply { p.emit(h); } }
    V1Switch(P(), V(), I(), E(), C(), D()) main;
";

/// Entries of a write.
const BATCH: u32 = 50;

/// A switch with both servers.
struct Switch {
    child: Child,
    p4runtime: String,
    bfrt: String,
    statistics: Option<std::thread::JoinHandle<Vec<Value>>>,
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Switch {
    fn start(program: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["run", program, "--json", "--stats-interval", "1s", "--cpu-port", "510"])
            .args(["-i", "1@gen:size=64", "-i", "3@gen:size=64,rate=50000", "-i", "2@null"])
            .args(["--p4runtime", "127.0.0.1:0", "--bfrt", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let statistics = std::thread::spawn(move || {
            let lines = out.lines().map_while(Result::ok);
            lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
        });
        let mut said = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut address = |of: &str| {
            let line = said.find(|line| line.starts_with(of));
            line.and_then(|line| Some(line.split_once(" at ")?.1.to_owned()))
                .unwrap_or_else(|| panic!("no {of}"))
        };
        let (p4runtime, bfrt) = (address("P4Runtime at "), address("BF Runtime at "));
        std::thread::spawn(move || said.for_each(drop));
        Switch {
            child,
            p4runtime,
            bfrt,
            statistics: Some(statistics),
        }
    }

    /// Options of a client of P4Runtime.
    fn options(&self) -> Options {
        Options::p4runtime(&self.p4runtime).unwrap()
    }
}

/// Inserts and deletes entries until told to stop; counts the batches that were acknowledged.
async fn write(client: Arc<Client>, stop: Arc<AtomicBool>, written: Arc<AtomicU64>) {
    let table = client.table("t").unwrap();
    let entry = |key: u32| Entry::of(&table).key("key", key).action("to").data("port", 2_u16);
    while !stop.load(Ordering::Relaxed) {
        for operation in [Operation::Insert, Operation::Delete] {
            let mut batch = Batch::new(&client.schema());
            for key in 1..=BATCH {
                batch.push(operation, &entry(key)).unwrap();
            }
            client
                .write(&batch)
                .await
                .expect("a write is done, however much there is to do");
            written.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Gives a reader something to read.
async fn fill(client: &Client) {
    let table = client.table("t").unwrap();
    let mut batch = Batch::new(&client.schema());
    for key in 1000..21_000_u32 {
        let entry = Entry::of(&table).key("key", key).action("to").data("port", 2_u16);
        batch.insert(&entry).unwrap();
    }
    client.write(&batch).await.unwrap();
}

/// Reads the table page by page, with a pause after each.
async fn read_slowly(client: Client, stop: Arc<AtomicBool>) {
    let table = client.table("t").unwrap();
    while !stop.load(Ordering::Relaxed) {
        let query = [Query::Table(Arc::clone(&table))];
        let mut pages = client.read_pages(&query, &ReadOptions::default()).await.unwrap();
        while let Ok(Some(_)) = pages.next().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn packet_outs(client: Arc<Client>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        client.packet_out(vec![9; 64], &[]).await.expect("a packet is taken");
    }
}

fn seconds() -> u64 {
    let given = std::env::var("WEIR_OVERLOAD_SECONDS").ok();
    given.map_or(8, |text| text.parse().expect("a number of seconds"))
}

fn of_port(report: &Value, port: u64, what: &str) -> u64 {
    let ports = report["ports"].as_array().unwrap();
    let found = ports.iter().find(|p| p["port"] == port);
    found.map_or(0, |p| p[what].as_u64().unwrap())
}

/// Packets that the switch has dropped, and those that were lost on the way from and to
/// controllers, which it has not received or has sent.
fn dropped(report: &Value) -> u64 {
    let drops = report["drops"].as_array().unwrap().iter();
    let of_switch = drops.filter(|d| d["reason"] != "control-plane-full" && d["reason"] != "packet-out-full");
    of_switch.map(|d| d["packets"].as_u64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_writes_and_signals_get_on_under_overload_and_every_loss_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("overload.p4");
    std::fs::write(&program, PROGRAM).unwrap();
    let mut switch = Switch::start(program.to_str().unwrap());
    let client = Arc::new(Client::connect(switch.options()).await.unwrap());
    client.primary().await.unwrap();
    // These subscriptions are never read: one makes the switch wait, the others lose messages.
    let _packets = client.packets(1, Overflow::Count);
    let _digests = client
        .digests("seen_t", DigestConfig::default(), 1, Overflow::Count)
        .await
        .unwrap();
    let options = Options::bfrt(&switch.bfrt).unwrap().program("overload");
    let idle = Client::connect(options).await.unwrap();
    let _learned = idle
        .digests("seen_t", DigestConfig::default(), 1, Overflow::Wait)
        .await
        .unwrap();

    fill(&client).await;

    let reader = Client::connect(switch.options().observer()).await.unwrap();
    let (stop, written) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let tasks = [
        tokio::spawn(write(Arc::clone(&client), Arc::clone(&stop), Arc::clone(&written))),
        tokio::spawn(read_slowly(reader, Arc::clone(&stop))),
        tokio::spawn(packet_outs(Arc::clone(&client), Arc::clone(&stop))),
    ];
    let end = Instant::now() + Duration::from_secs(seconds());
    let mut before = 0;
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_secs(4)).await;
        let now = written.load(Ordering::Relaxed);
        assert!(now > before, "no write was acknowledged for four seconds, after {now}");
        before = now;
    }
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let pid = switch.child.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert_eq!(switch.child.wait().unwrap().code(), Some(0));

    let reports = switch.statistics.take().unwrap().join().unwrap();
    assert!(reports.len() > 2, "statistics were lost");
    for pair in reports.windows(2).filter(|pair| pair[1]["final"] == false) {
        for port in [1, 3] {
            let [then, now] = [0, 1].map(|i| of_port(&pair[i], port, "rx_packets"));
            assert!(now > then, "no packet of port {port} was received for a second");
        }
    }
    let last = reports.last().unwrap();
    assert_eq!(last["final"], true);
    let received: u64 = [1, 3, 510].iter().map(|port| of_port(last, *port, "rx_packets")).sum();
    let sent: u64 = [2, 510].iter().map(|port| of_port(last, *port, "tx_packets")).sum();
    assert_eq!(received, sent + dropped(last), "{last}");
}
