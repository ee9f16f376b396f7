//! What rbfrt 0.1.11, unmodified, does with the server.

use rbfrt::table::{MatchValue, Request, TableOperation, ToBytes};
use rbfrt::util::{FEC, Port, PortManager, Speed};
use rbfrt::{SwitchConnection, register};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use weir_compiler::{Options, compile_file};
use weir_server::bfrt::{self, BfRuntime, Config};
use weir_server::{Clock, Device, Standalone};

/// A switch and its server.
struct Bench {
    switch: Arc<Standalone>,
    port: u16,
}

impl Bench {
    async fn new(path: &str, name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let compiled = compile_file(&path, &Options::default(), weir_arch::targets());
        let errors = compiled.diagnostics.list().iter();
        let errors: Vec<String> = errors
            .map(|d| weir_syntax::render::short(d, &compiled.sources))
            .collect();
        let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{}", errors.concat())));
        let switch = Arc::new(Standalone::new(Arc::clone(&program), None, Clock::real()).expect("runs"));
        let device = Device::new(switch.clone(), Some(program), name, 16).expect("is described");
        let server = BfRuntime::on(&device, Config::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(bfrt::serve_on(server, listener, std::future::pending()));
        Bench { switch, port }
    }

    async fn kinds() -> (Self, SwitchConnection) {
        let bench = Self::new("p4/kinds.p4", "kinds").await;
        let connection = bench.connect("kinds").await;
        (bench, connection)
    }

    async fn connect(&self, name: &str) -> SwitchConnection {
        let builder = SwitchConnection::builder("127.0.0.1", self.port);
        let builder = builder.device_id(0).client_id(1).p4_name(name);
        builder.connect().await.expect("connects")
    }

    /// What a packet at port 1 is answered.
    fn ask(&self, kind: u8, port: u8, key: u32) -> Option<u32> {
        let mut packet = vec![kind, port];
        packet.extend_from_slice(&key.to_be_bytes());
        packet.resize(64, 0);
        let out = self.switch.send(1, &packet);
        let bytes = &out.first()?.bytes;
        Some(u32::from_be_bytes([bytes[6], bytes[7], bytes[8], bytes[9]]))
    }
}

fn exact(table: &str, key: u32) -> Request {
    Request::new(table).match_key("hdr.question.key", MatchValue::exact(key))
}

async fn count(connection: &SwitchConnection, table: &str) -> usize {
    let entries = connection.get_table_entries(Request::new(table)).await;
    entries.expect("is read").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn exact_entries_are_added_read_changed_and_deleted() {
    let (bench, connection) = Bench::kinds().await;
    assert!(connection.has_table("pipe.In.exact_keys") && connection.has_table("$PORT"));
    let table = "In.exact_keys";
    let entry = || exact(table, 7).action("In.answer_counted");
    connection
        .write_table_entry(entry().action_data("value", 70u32))
        .await
        .expect("is added");
    assert_eq!(bench.ask(1, 0, 7), Some(70));
    // The entry and the default entry.
    assert_eq!(count(&connection, table).await, 2);
    let again = connection.write_table_entry(entry().action_data("value", 71u32)).await;
    assert!(again.is_err(), "it is there already");
    connection
        .update_table_entry(entry().action_data("value", 72u32))
        .await
        .expect("is changed");
    assert_eq!(bench.ask(1, 0, 7), Some(72));
    let read = connection.get_table_entries(exact(table, 7)).await.expect("is read");
    assert_eq!(read[0].get_action_name(), "In.answer_counted");
    assert_eq!(read[0].get_action_data("value").expect("has it").as_u32(), 72);
    connection
        .delete_table_entry(exact(table, 7))
        .await
        .expect("is deleted");
    let gone = connection
        .get_table_entries(exact(table, 7))
        .await
        .expect("the answer comes though the entry is missing");
    assert!(gone.is_empty());
    assert_eq!(bench.ask(1, 0, 7), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_entries_are_added_in_one_write_and_cleared() {
    let (bench, connection) = Bench::kinds().await;
    let entry = |key: u32| {
        let entry = exact("In.exact_keys", key).action("In.answer_counted");
        entry.action_data("value", key + 1)
    };
    let entries = (0..2000).map(entry).collect();
    connection.write_table_entries(entries).await.expect("are added");
    assert_eq!(count(&connection, "In.exact_keys").await, 2001);
    assert_eq!(bench.ask(1, 0, 1999), Some(2000));
    connection.clear_table("In.exact_keys").await.expect("is cleared");
    assert_eq!(count(&connection, "In.exact_keys").await, 1);
    connection
        .clear_tables(vec!["In.exact_keys", "In.lpm_keys", "In.range_keys"])
        .await
        .expect("are cleared in one write");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_prefix_wins() {
    let (bench, connection) = Bench::kinds().await;
    for (length, value) in [(8, 1u32), (16, 2)] {
        let entry = Request::new("In.lpm_keys")
            .match_key("hdr.question.key", MatchValue::lpm(vec![10u8, 1, 0, 0], length))
            .action("In.answer_lpm")
            .action_data("value", value);
        connection.write_table_entry(entry).await.expect("is added");
    }
    assert_eq!(bench.ask(2, 0, 0x0a01_0203), Some(2));
    assert_eq!(bench.ask(2, 0, 0x0aff_0203), Some(1));
    assert_eq!(bench.ask(2, 0, 0x0b00_0000), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ternary_entries_the_smaller_priority_wins() {
    let (bench, connection) = Bench::kinds().await;
    for (mask, priority, value) in [(0xff00_0000u32, 5u32, 1u32), (0xffff_0000, 1, 2)] {
        let entry = Request::new("In.ternary_keys")
            .match_key("hdr.question.key", MatchValue::ternary(0x0a01_0000u32, mask))
            .match_key("$MATCH_PRIORITY", MatchValue::exact(priority))
            .action("In.answer_metered")
            .action_data("value", value);
        connection.write_table_entry(entry).await.expect("is added");
    }
    assert_eq!(bench.ask(3, 0, 0x0a01_0001), Some(2));
    assert_eq!(bench.ask(3, 0, 0x0a02_0001), Some(1));
    let read = connection
        .get_table_entries(Request::new("In.ternary_keys"))
        .await
        .expect("is read");
    assert_eq!(read.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_and_exact_keys_go_together() {
    let (bench, connection) = Bench::kinds().await;
    let entry = Request::new("In.range_keys")
        .match_key("hdr.question.port", MatchValue::exact(3u8))
        .match_key("hdr.question.key[15:0]", MatchValue::range(100u16, 200u16))
        .match_key("$MATCH_PRIORITY", MatchValue::exact(0u32))
        .action("In.answer_both")
        .action_data("high", 1u16)
        .action_data("low", 2u16);
    connection.write_table_entry(entry).await.expect("is added");
    assert_eq!(bench.ask(4, 3, 100), Some(0x0001_0002));
    assert_eq!(bench.ask(4, 3, 200), Some(0x0001_0002));
    assert_eq!(bench.ask(4, 3, 201), Some(9));
    assert_eq!(bench.ask(4, 4, 150), Some(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_entry_is_changed_and_goes_back_with_a_clear() {
    let (bench, connection) = Bench::kinds().await;
    let default = Request::new("In.range_keys")
        .default(true)
        .action("In.answer")
        .action_data("value", 44u32);
    connection.update_table_entry(default).await.expect("is changed");
    assert_eq!(bench.ask(4, 0, 0), Some(44));
    connection.clear_table("In.range_keys").await.expect("is cleared");
    assert_eq!(bench.ask(4, 0, 0), Some(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_are_written_and_read() {
    let (bench, connection) = Bench::kinds().await;
    let request = register::Request::new("In.last").index(3).data("In.last.f1", 1234u32);
    connection.write_register_entry(request).await.expect("is written");
    assert_eq!(bench.ask(5, 3, 99), Some(1234));
    let read = connection
        .get_register_entry(register::Request::new("In.last").index(3))
        .await
        .expect("is read");
    let entry = read.get(3).expect("has the index");
    // One value per pipe, of which weir has one.
    assert_eq!(
        entry.get("In.last.f1").expect("has it"),
        &vec![99u32.to_be_bytes().to_vec()]
    );
    let fields = register::Request::new("In.pairs")
        .index(1)
        .data("In.pairs.low", 5u32)
        .data("In.pairs.high", 6u32);
    connection.write_register_entry(fields).await.expect("is written");
    assert_eq!(bench.ask(6, 1, 0), Some(5));
    let all = connection
        .get_register_entries(vec![register::Request::new("In.pairs")])
        .await;
    let all = all.expect("are read");
    assert_eq!(all.entries().len(), 16);
    assert_eq!(
        all.get(1).expect("there").get("In.pairs.high").expect("has it")[0].to_u32(),
        7
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_synchronized_and_read() {
    let (bench, connection) = Bench::kinds().await;
    let entry = exact("In.exact_keys", 5)
        .action("In.answer_counted")
        .action_data("value", 1u32);
    connection.write_table_entry(entry).await.expect("is added");
    for _ in 0..3 {
        bench.ask(1, 0, 5);
    }
    // The names that rbfrt has are those of tables with entries; arrays take them too.
    let sync = [
        Request::new("In.exact_keys").operation(TableOperation::SyncCounters),
        Request::new("In.by_kind").operation(TableOperation::SyncCounters),
        Request::new("In.last").operation(TableOperation::SyncRegister),
    ];
    for sync in sync {
        connection.execute_operation(sync).await.expect("is executed");
    }
    let read = connection
        .get_table_entries(exact("In.exact_keys", 5))
        .await
        .expect("is read");
    assert_eq!(
        read[0].get_action_data("$COUNTER_SPEC_PKTS").expect("has it").as_u64(),
        3
    );
    assert_eq!(
        read[0].get_action_data("$COUNTER_SPEC_BYTES").expect("has it").as_u64(),
        // The frame check sequence is counted.
        3 * (64 + 4)
    );
    let indirect = Request::new("In.by_kind").match_key("$COUNTER_INDEX", MatchValue::exact(1u32));
    let read = connection.get_table_entries(indirect).await.expect("is read");
    assert_eq!(
        read[0].get_action_data("$COUNTER_SPEC_PKTS").expect("has it").as_u64(),
        3
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_come_with_all_fields() {
    let (bench, connection) = Bench::kinds().await;
    bench.ask(7, 0, 0x1234);
    let queue = connection.digest_queue.clone();
    let next = tokio::task::spawn_blocking(move || queue.recv_timeout(Duration::from_secs(10)));
    let digest = next.await.expect("is waited for").expect("comes");
    assert_eq!(digest.name, "pipe.InDeparser.seen");
    let expected: HashMap<String, Vec<u8>> = HashMap::from([
        ("key".to_string(), vec![0, 0, 0x12, 0x34]),
        ("port".to_string(), vec![1, 0xff]),
        ("kind".to_string(), vec![7]),
    ]);
    assert_eq!(digest.data, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_added_found_and_deleted() {
    let (bench, connection) = Bench::kinds().await;
    let manager = PortManager::new(&connection).await;
    assert!(manager.get_ports(&connection).await.expect("are read").is_empty());
    // 2/0 is port 1.
    let port = Port::new(2, 0).speed(Speed::BF_SPEED_100G).fec(FEC::BF_FEC_TYP_NONE);
    manager.add_port(&connection, &port).await.expect("is added");
    let ports = manager.get_ports(&connection).await.expect("are read");
    assert_eq!((ports.len(), ports[0].get_dev_port()), (1, Some(1)));
    assert_eq!(
        (ports[0].get_speed(), ports[0].get_status()),
        (&Speed::BF_SPEED_100G, true)
    );
    assert_eq!(bench.ask(1, 0, 1), Some(0));
    manager.delete_port(&connection, &port).await.expect("is deleted");
    assert!(manager.get_ports(&connection).await.expect("are read").is_empty());
    assert_eq!(bench.ask(1, 0, 1), None, "a port that was deleted carries nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_firewall_of_the_paper_takes_entries() {
    let bench = Bench::new(
        "../../p4/programs/acl_firewall_tna/acl_firewall_tna.p4",
        "acl_firewall_tna",
    )
    .await;
    let connection = bench.connect("acl_firewall_tna").await;
    let table = "FirewallIngress.address_pairs";
    let pair = |at: u32| {
        Request::new(table)
            .match_key("hdr.ipv4.src_addr", MatchValue::exact(at))
            .match_key("hdr.ipv4.dst_addr", MatchValue::exact(!at))
            .action("FirewallIngress.allow")
    };
    connection
        .write_table_entries((0..5000).map(pair).collect())
        .await
        .expect("are added");
    assert_eq!(count(&connection, table).await, 5001);
    let default = Request::new(table).default(true).action("FirewallIngress.allow");
    connection.update_table_entry(default).await.expect("is changed");
    connection
        .delete_table_entries((0..5000).map(pair).collect())
        .await
        .expect("are deleted");
    assert_eq!(count(&connection, table).await, 1);
}

/// The files that hardware is configured with hold what its compiler made; the server takes them
/// for the program that it runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_with_a_config_file_begins_without_entries() {
    let (bench, connection) = Bench::kinds().await;
    let entry = exact("In.exact_keys", 7)
        .action("In.answer_counted")
        .action_data("value", 70u32);
    connection.write_table_entry(entry).await.expect("is added");
    drop(connection);
    let folder = std::env::temp_dir().join(format!("weir-rbfrt-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, content).expect("is written");
        path.display().to_string()
    };
    let (context, binary) = (file("context.json", b"{}"), file("tofino.bin", &[0xff, 0, 1]));
    let info = file(
        "bfrt.json",
        br#"{"schema_version": "1.0.0", "tables": [], "learn_filters": []}"#,
    );
    let config = format!(
        r#"{{"chip_list": [], "instance": 0, "p4_devices": [{{"device-id": 0, "p4_programs": [{{"program-name": "kinds",
        "bfrt-config": "{info}", "p4_pipelines": [{{"p4_pipeline_name": "pipe", "context": "{context}", "config": "{binary}",
        "pipe_scope": [0], "path": "."}}]}}]}}]}}"#
    );
    let config = file("kinds.conf", config.as_bytes());
    let builder = SwitchConnection::builder("127.0.0.1", bench.port)
        .device_id(0)
        .client_id(2);
    let connection = builder.config(&config).connect().await.expect("connects");
    assert_eq!(count(&connection, "In.exact_keys").await, 1);
    assert_eq!(bench.ask(1, 0, 7), Some(0));
    std::fs::remove_dir_all(&folder).expect("is removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_generator_is_configured_and_sends() {
    let bench = Bench::new("../weir-server/tests/p4/generated.p4", "generated").await;
    let connection = bench.connect("generated").await;
    assert!(connection.has_table("tf1.pktgen.app_cfg") && !connection.has_table("tf2.pktgen.app_cfg"));
    let port = Request::new("tf1.pktgen.port_cfg").match_key("dev_port", MatchValue::exact(68u32));
    connection
        .update_table_entry(port.action_data("pktgen_enable", true))
        .await
        .expect("the port generates");
    let packet: Vec<u8> = (0..64).collect();
    let buffer = Request::new("tf1.pktgen.pkt_buffer")
        .match_key("pkt_buffer_offset", MatchValue::exact(32u32))
        .match_key("pkt_buffer_size", MatchValue::exact(64u32));
    connection
        .update_table_entries(vec![
            buffer.clone().action_data_repeated("buffer", vec![packet.clone()]),
        ])
        .await
        .expect("the buffer is written");
    let app = || {
        let app = Request::new("tf1.pktgen.app_cfg").match_key("app_id", MatchValue::exact(1u32));
        app.action("trigger_timer_periodic")
    };
    let started = app()
        .action_data("app_enable", true)
        .action_data("pkt_len", 64u32)
        .action_data("timer_nanosec", 1_000_000u32)
        .action_data("packets_per_batch_cfg", 1u32)
        .action_data("pipe_local_source_port", 68u32)
        .action_data("pkt_buffer_offset", 32u32)
        .action_data("pkt_counter", 0u32);
    connection.update_table_entry(started).await.expect("it is configured");
    let mut sent = Vec::new();
    for _ in 0..500 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        sent.extend(bench.switch.take_sent());
        if sent.len() >= 6 {
            break;
        }
    }
    assert!(sent.len() >= 6 && sent.iter().all(|o| o.port == 5 && o.bytes == packet));
    let stopped = app().action_data("app_enable", false);
    connection.update_table_entry(stopped).await.expect("it is stopped");
    // What was due before that is sent by then. (rbfrt knows no fields of actions in answers about
    // such a table, so it does not read it.)
    let _ = bench.switch.send(2, &[0; 64]);
    let _ = bench.switch.take_sent();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(bench.switch.take_sent().is_empty(), "it has stopped");
    let read = connection.get_table_entries(buffer).await.expect("is read");
    assert_eq!(
        read[0].get_action_data("buffer").expect("has it").get_data(),
        packet.as_slice()
    );
}
