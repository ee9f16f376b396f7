//! The client against weir's own BF Runtime server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use weir_client::bulk::{JsonEntries, LoadOptions, entry_to_json, parse_words};
use weir_client::{
    Atomicity, Client, Code, DigestConfig, Entry, Error, Operation, Options, Overflow, Query, ReadOptions, Standing,
    Table, Template, Value,
};
use weir_compiler::compile_file;
use weir_server::bfrt::{self, BfRuntime, Config};
use weir_server::{Clock, Device, Standalone};

struct Bench {
    switch: Arc<Standalone>,
    address: String,
}

async fn bench(path: &str, name: &str) -> Bench {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let compiled = compile_file(&path, &weir_compiler::Options::default(), weir_arch::targets());
    let program = Arc::new(compiled.program.expect("compiles"));
    let switch = Arc::new(Standalone::new(Arc::clone(&program), None, Clock::real()).expect("runs"));
    let device = Device::new(switch.clone(), Some(program), name, 16).expect("is described");
    let server = BfRuntime::on(&device, Config::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(bfrt::serve_on(server, listener, std::future::pending()));
    Bench { switch, address }
}

async fn kinds() -> Bench {
    bench("../weir-rbfrt-tests/p4/kinds.p4", "kinds").await
}

impl Bench {
    fn options(&self) -> Options {
        Options::bfrt(&self.address).expect("an address")
    }

    async fn client(&self) -> Client {
        Client::connect(self.options()).await.expect("connects")
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_every_kind_are_read_back_as_they_were_written() {
    let client = kinds().await.client().await;
    assert_eq!(
        (client.schema().program.as_str(), client.standing()),
        ("kinds", Standing::Primary)
    );
    for (line, shown) in [
        (
            "exact_keys hdr.question.key=7 answer_counted value=70",
            "[hdr.question.key=7] -> In.answer_counted(value=70)",
        ),
        (
            "lpm_keys hdr.question.key=10.0.0.0/8 answer_lpm 1",
            "[hdr.question.key=0xa000000/8] -> In.answer_lpm(value=1)",
        ),
        ("last $REGISTER_INDEX=3 f1=0x1234", "[$REGISTER_INDEX=3]"),
        (
            "by_kind $COUNTER_INDEX=9 $COUNTER_SPEC_PKTS=5 $COUNTER_SPEC_BYTES=320",
            "[$COUNTER_INDEX=9]",
        ),
    ] {
        let words = words(line);
        let table = client.table(&words[0]).expect("exists");
        let entry = parse_words(&table, &words[1..]).unwrap_or_else(|e| panic!("{line}: {e}"));
        client.insert(&entry).await.unwrap_or_else(|e| panic!("{line}: {e}"));
        let read = client
            .entry(&entry)
            .await
            .expect("can be read")
            .expect("is there")
            .to_string();
        assert!(read.contains(shown), "{read} is not {shown}");
    }
    let last = client.table("last").expect("exists");
    let read = client
        .entry(&Entry::of(&last).key("$REGISTER_INDEX", 3_u8))
        .await
        .expect("can be read");
    assert_eq!(read.expect("is there").get("f1"), Some(&Value::from(0x1234_u16)));
    let counter = client.table("by_kind").expect("exists");
    let read = client
        .entry(&Entry::of(&counter).key("$COUNTER_INDEX", 9_u8))
        .await
        .expect("can be read");
    assert_eq!(
        read.expect("is there").get("$COUNTER_SPEC_BYTES"),
        Some(&Value::from(320_u16))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_updates_are_named_by_table_key_and_cause() {
    let client = kinds().await.client().await;
    let table = client.table("exact_keys").expect("exists");
    let entry = |key: u32| {
        Entry::of(&table)
            .key("hdr.question.key", key)
            .action("answer_counted")
            .data("value", key)
    };
    let mut batch = client.batch();
    for key in [1, 2, 1, 3] {
        batch.insert(&entry(key)).expect("fits");
    }
    batch.delete(&entry(9)).expect("fits");
    batch.insert(&entry(4)).expect("fits");
    let Err(Error::Updates(errors)) = client.write(&batch).await else {
        panic!("two updates must fail");
    };
    let told: Vec<_> = errors
        .iter()
        .map(|e| (e.index, e.what, e.key.as_str(), e.code))
        .collect();
    assert_eq!(
        told,
        [
            (2, "insert", "hdr.question.key=1", Code::AlreadyExists),
            (4, "delete", "hdr.question.key=9", Code::NotFound)
        ]
    );
    // Four entries and the default entry.
    assert_eq!(client.entries(&table).await.expect("can be read").len(), 5);
    for atomicity in [Atomicity::Rollback, Atomicity::DataplaneAtomic] {
        let mut batch = client.batch().atomicity(atomicity);
        for key in [10, 11, 1] {
            batch.insert(&entry(key)).expect("fits");
        }
        assert!(client.write(&batch).await.is_err());
        assert_eq!(client.entries(&table).await.expect("can be read").len(), 5);
    }
    client.clear(&table).await.expect("is emptied");
    assert_eq!(client.entries(&table).await.expect("can be read").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_entries_are_written_by_templates_and_read_page_by_page() {
    let client = kinds().await.client().await;
    let table = client.table("exact_keys").expect("exists");
    let template = Template::new(&table, Operation::Insert, Some("answer_counted")).expect("fits");
    let mut pipeline = client.pipeline(1000, 4);
    for key in 0..50_000_u128 {
        pipeline
            .push_numbers(&template, &[key, key ^ 5])
            .await
            .expect("is sent");
    }
    let outcome = pipeline.finish().await.expect("all is answered");
    assert_eq!((outcome.done, outcome.failures), (50_000, 0));
    let queries = [Query::Table(Arc::clone(&table))];
    let mut pages = client
        .read_pages(&queries, &ReadOptions::default())
        .await
        .expect("can be read");
    let value = table.actions[table.action("answer_counted").expect("exists")].params[0].id;
    let (mut rows, mut page_count) = (0, 0);
    while let Some(page) = pages.next().await.expect("comes") {
        page_count += 1;
        page.rows(|row| {
            if row.is_default {
                return;
            }
            rows += 1;
            let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |sum, b| sum << 8 | u64::from(*b));
            let key = number(row.key(1).expect("has a key"));
            assert_eq!(row.datum(value).expect("has a value").number(), key ^ 5);
        })
        .expect("can be understood");
    }
    assert_eq!(rows, 50_000);
    assert!(page_count > 1, "a target that can send pages is asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn insert_or_modify_is_one_update() {
    let client = kinds().await.client().await;
    let table = client.table("exact_keys").expect("exists");
    let entry = |value: u32| {
        Entry::of(&table)
            .key("hdr.question.key", 1_u8)
            .action("answer_counted")
            .data("value", value)
    };
    for value in [1, 2] {
        client.insert_or_modify(&entry(value)).await.expect("is taken");
        let read = client.entry(&entry(0)).await.expect("can be read").expect("is there");
        assert_eq!(read.get("value"), Some(&Value::from(value)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn default_entries_are_set_and_reset() {
    let client = kinds().await.client().await;
    let table = client.table("exact_keys").expect("exists");
    let default = Entry::default_of(&table).action("answer_counted").data("value", 9_u8);
    client.modify(&default).await.expect("is taken");
    let read = client
        .default_entry(&table)
        .await
        .expect("can be read")
        .expect("is there");
    assert_eq!(read.get("value"), Some(&Value::from(9_u8)));
    client.delete(&default).await.expect("is taken");
    let read = client
        .default_entry(&table)
        .await
        .expect("can be read")
        .expect("is there");
    assert_eq!(read.chosen_action().map(|a| a.name.as_str()), Some("In.uncounted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_arrive() {
    let bench = bench("../../p4/programs/l2_switch_tna/l2_switch_tna.p4", "l2").await;
    let client = bench.client().await;
    let name = client.schema().digests[0].name.clone();
    let mut digests = client
        .digests(&name, DigestConfig::default(), 16, Overflow::Count)
        .await
        .expect("exists");
    let mut packet = vec![0xff; 6];
    packet.extend([2, 0, 0, 0, 0, 1, 8, 0]);
    packet.resize(64, 0);
    let _ = bench.switch.send(3, &packet);
    let list = tokio::time::timeout(Duration::from_secs(5), digests.next()).await;
    let list = list.expect("comes in time").expect("the client is there");
    let shown = list.data[0].to_string();
    assert!(shown.contains("0x20000000001"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_clients_write_though_one_is_bound() {
    let bench = kinds().await;
    let bound = bench.client().await;
    let error = Client::connect(bench.options().client(2)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::AlreadyExists), "{error}");
    let free = Client::connect(bench.options().client(3).observer())
        .await
        .expect("connects");
    let table = free.table("exact_keys").expect("exists");
    let entry = Entry::of(&table).key("hdr.question.key", 1_u8).action("uncounted");
    free.insert(&entry).await.expect("is taken");
    assert!(bound.entry(&entry).await.expect("can be read").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dumped_makes_another_switch_the_same() {
    let client = kinds().await.client().await;
    for line in [
        "exact_keys hdr.question.key=7 answer_counted value=70",
        "lpm_keys hdr.question.key=10.0.0.0/8 answer_lpm 1",
        "last $REGISTER_INDEX=3 f1=0x1234",
    ] {
        let words = words(line);
        let table = client.table(&words[0]).expect("exists");
        let entry = parse_words(&table, &words[1..]).expect("fits");
        client.insert(&entry).await.expect("is taken");
    }
    let dump = async |client: &Client| {
        let mut lines = String::new();
        let dumped = client.dump(|entry| {
            lines += &format!("{}\n", entry_to_json(entry));
            Ok(())
        });
        dumped.await.expect("can be dumped");
        lines
    };
    let state = dump(&client).await;
    assert!(state.contains("\"f1\"") || state.contains(".f1\""), "{state}");
    let other = kinds().await.client().await;
    let entries = JsonEntries::new(&other.schema(), state.as_bytes());
    let outcome = other
        .load(entries, &LoadOptions::default(), |_| {})
        .await
        .expect("can be loaded");
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    assert_eq!(dump(&other).await, state);
}

/// Port 1 with what is needed for it to be up.
fn enabled_port(ports: &Arc<Table>) -> Entry {
    Entry::of(ports)
        .key("$DEV_PORT", 1_u8)
        .data("$SPEED", "BF_SPEED_10G")
        .data("$FEC", "BF_FEC_TYP_NONE")
        .data("$PORT_ENABLE", true)
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_and_operations_of_tables_are_there() {
    let client = kinds().await.client().await;
    let exact = client.table("exact_keys").expect("exists");
    client.operation(&exact, "SyncCounters").await.expect("is done");
    let error = client.operation(&exact, "SyncAll").await.unwrap_err().to_string();
    assert!(error.contains("SyncCounters"), "{error}");
    let ports = client.table("$PORT").expect("exists");
    let port = enabled_port(&ports);
    client.insert(&port).await.expect("is added");
    let read = client.entry(&port).await.expect("can be read").expect("is there");
    assert_eq!(read.get("$SPEED").and_then(Value::as_str), Some("BF_SPEED_10G"));
    let wrong = Entry::of(&ports).key("$DEV_PORT", 2_u8).data("$SPEED", "10G");
    let error = client.insert(&wrong).await.unwrap_err().to_string();
    assert!(error.contains("BF_SPEED_10G"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_has_the_target_report_ports_and_idle_entries() {
    let patience = Duration::from_secs(30);
    let client = kinds().await.client().await;
    let mut changes = client.port_changes(16, Overflow::Count).await.expect("subscribed");
    let ports = client.table("$PORT").expect("exists");
    let port = enabled_port(&ports);
    client.insert(&port).await.expect("is added");
    let change = tokio::time::timeout(patience, changes.next()).await.expect("comes");
    assert_eq!(change.map(|c| (c.port, c.is_up)), Some((1, true)));

    let plain = client.table("exact_keys").expect("exists");
    let refused = client.idle_entries(Some(&plain), 16, Overflow::Count).await;
    assert!(refused.unwrap_err().to_string().contains("idle_timeout"));
    let mut idle = client
        .idle_entries(None, 16, Overflow::Count)
        .await
        .expect("subscribed");
    let timed = client.table("timed_keys").expect("exists");
    let entry = Entry::of(&timed)
        .key("hdr.question.key", 1_u8)
        .action("In.answer")
        .data("value", 7_u8)
        .data("$ENTRY_TTL", 20_u8);
    client.insert(&entry).await.expect("is added");
    let event = tokio::time::timeout(patience, idle.next())
        .await
        .expect("comes")
        .expect("is there");
    assert!(!event.is_active);
}
