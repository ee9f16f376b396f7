//! Tests of limits, each with an error of its own.

use crate::common::{
    Bench, Client, NAME, Session, compile, exact, field, read_request, source, stream, update, with_data, write_request,
};
use crate::shared::claims::one_of_two_is_refused;
use crate::shared::tls::clients_need_a_certificate;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_stream::StreamExt;
use tonic::{Code, Request};
use weir_ir::Program;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_proto::bfrt_proto::write_request::Atomicity;
use weir_proto::bfrt_proto::{self as pb, GetForwardingPipelineConfigRequest};
use weir_proto::bfrt_raw::{self, bf_runtime_server::BfRuntime as _};
use weir_proto::prost::Message;
use weir_server::bfrt::{self, BfRuntime, Config};
use weir_server::{Clock, Command, Completion, DataPlane, Device, Events, Gone, LoadFailure, Standalone};

const EXACT: &str = "In.exact_keys";

#[tokio::test]
async fn too_many_updates_entities_and_bytes_are_refused() {
    let config = Config {
        max_updates: 3,
        max_queries: 2,
        max_read_bytes: 100,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let inserts = |keys: std::ops::Range<u32>| {
        keys.map(|k| update(Type::Insert, Entity::TableEntry(bench.entry(k, k))))
            .collect()
    };
    let refused = bench.write(inserts(0..4)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(bench.write(inserts(0..3)).await.is_ok());
    let (_, status) = bench
        .read_all(vec![Entity::TableEntry(bench.exact("In.exact_keys", 1)); 3])
        .await;
    assert_eq!(status.map(|s| s.code()), Some(Code::ResourceExhausted));
    let (_, status) = bench
        .read_all(vec![Entity::TableEntry(bench.all("In.exact_keys"))])
        .await;
    assert_eq!(status.map(|s| s.code()), Some(Code::ResourceExhausted));
}

#[tokio::test]
async fn a_read_that_selects_few_of_many_entries_takes_several_steps() {
    let config = Config {
        read_chunk: 2,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let (usual, rare) = ("answer_counted", "uncounted");
    for key in 0..200_u32 {
        let action = if key == 150 { rare } else { usual };
        let data = if key == 150 {
            Vec::new()
        } else {
            vec![stream(1, &key.to_be_bytes())]
        };
        let entry = with_data(
            bench.exact("In.exact_keys", key),
            bench.action("In.exact_keys", action),
            data,
        );
        bench.insert(entry).await.expect("there is room");
    }
    let found = async |action: &str| {
        let query = with_data(
            bench.all("In.exact_keys"),
            bench.action("In.exact_keys", action),
            Vec::new(),
        );
        bench.read(query).await.expect("is read")
    };
    let (rare, one) = (found(rare).await, bench.read(bench.exact("In.exact_keys", 150)).await);
    // And the default entry.
    assert_eq!((rare.len(), &rare[0]), (2, &one.expect("is there")[0]));
    assert_eq!(found(usual).await.len(), 199);
    // Many queries with one entity each.
    let one = Entity::TableEntry(bench.exact("In.exact_keys", 7));
    let (answers, status) = bench.read_all(vec![one; 3000]).await;
    let entities = answers.iter().map(|a| a.entities.len()).sum::<usize>();
    assert_eq!((entities, status.map(|s| s.code())), (3000, None));
}

#[tokio::test]
async fn large_fields_besides_the_list_are_refused() {
    let bench = Bench::new().await;
    let request = pb::WriteRequest {
        p4_name: "p".repeat(70_000),
        ..pb::WriteRequest::default()
    };
    let refused = bench.client.clone().write(request).await.expect_err("too long");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let config = pb::ForwardingPipelineConfig {
        p4_name: "other".to_owned(),
        profiles: vec![pb::forwarding_pipeline_config::Profile {
            context: vec![0; 20 << 20].into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let _client = bench.subscribed(1).await;
    // Fields for hardware may have any length: it is the name that is refused.
    let request = pb::SetForwardingPipelineConfigRequest {
        client_id: 1,
        config: vec![config],
        ..Default::default()
    };
    let set = bench.client.clone().set_forwarding_pipeline_config(request).await;
    assert_eq!(set.expect_err("there is none").code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_selected_many_times_is_returned_once() {
    let bench = Bench::new().await;
    for key in 0..2000 {
        bench.insert(bench.entry(key, key)).await.expect("there is room");
    }
    let select_repeatedly = async |times| {
        let field = pb::DataField {
            field_id: bench.field("In.exact_keys", "$COUNTER_SPEC_PKTS"),
            value: None,
        };
        let mut all = bench.all("In.exact_keys");
        all.data = Some(pb::TableData {
            fields: vec![field; times],
            ..pb::TableData::default()
        });
        bench.read_all(vec![Entity::TableEntry(all)]).await
    };
    let (once, status) = select_repeatedly(1).await;
    assert!(status.is_none() && once.iter().map(|r| r.entities.len()).sum::<usize>() >= 2000);
    // Some 3 MB of fields: searched per entry, they would block the switch for a minute.
    assert_eq!(select_repeatedly(400_000).await.0, once);
    let (_, status) = select_repeatedly(600_000).await;
    assert_eq!(
        status.map(|s| s.code()),
        Some(Code::ResourceExhausted),
        "more than 2^20 fields"
    );
    let (_, status) = select_repeatedly(2_000_000).await;
    assert_eq!(status.map(|s| s.code()), Some(Code::ResourceExhausted));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_beyond_the_budget_are_refused_while_writes_succeed() {
    let config = Config {
        max_message_bytes: 4 << 20,
        max_request_bytes: 4 << 20,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let claimed = one_of_two_is_refused(bench.address, "/bfrt_proto.BfRuntime/Write", 3 << 20).await;
    assert_eq!(bench.insert(bench.entry(1, 1)).await, Ok(()));
    claimed.abort();
}

#[tokio::test]
async fn there_are_no_more_streams_than_the_limit() {
    let config = Config {
        max_streams: 1,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let _first: Session = bench.subscribed(1).await;
    let (_out, requests) = tokio::sync::mpsc::channel(1);
    let refused = bench
        .client
        .clone()
        .stream_channel(tokio_stream::wrappers::ReceiverStream::new(requests))
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::ResourceExhausted);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_mutual_tls_clients_need_a_certificate() {
    let program = compile(&source());
    let serve = |tls, listener| {
        let config = Config {
            tls: Some(tls),
            ..Config::default()
        };
        let switch = Standalone::new(Arc::clone(&program), None, Clock::manual()).expect("runs");
        let device = Device::new(Arc::new(switch), Some(Arc::clone(&program)), NAME, 16).expect("is described");
        let server = BfRuntime::on(&device, config);
        tokio::spawn(bfrt::serve_on(server, listener, std::future::pending()));
    };
    let is_answered = async |channel| {
        let request = GetForwardingPipelineConfigRequest::default();
        let answer = Client::new(channel).get_forwarding_pipeline_config(request).await;
        answer.is_ok()
    };
    clients_need_a_certificate(serve, is_answered).await;
}

#[tokio::test]
async fn a_batch_that_packets_would_wait_long_for_is_refused() {
    let config = Config {
        max_atomic_updates: 2,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let batch = |keys: std::ops::Range<u32>| {
        keys.map(|k| update(Type::Insert, Entity::TableEntry(bench.entry(k, k))))
            .collect::<Vec<_>>()
    };
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let refused = bench.write_with(batch(1..4), atomicity).await;
        assert_eq!(refused.expect_err("too many").code(), Code::ResourceExhausted);
    }
    assert!(bench.write(batch(1..4)).await.is_ok(), "nothing was written");
    assert!(bench.write_with(batch(4..6), Atomicity::DataplaneAtomic).await.is_ok());
}

#[tokio::test]
async fn traversed_entries_count_in_an_atomic_batch() {
    let config = Config {
        max_atomic_updates: 2,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let inserts = (1..4).map(|k| update(Type::Insert, Entity::TableEntry(bench.entry(k, k))));
    bench.write(inserts.collect()).await.expect("are new");
    let clear = || {
        let all = pb::TableEntry {
            value: None,
            data: None,
            ..bench.entry(0, 0)
        };
        vec![update(Type::Delete, Entity::TableEntry(all))]
    };
    let refused = bench.write_with(clear(), Atomicity::RollbackOnError).await;
    let refused = refused.expect_err("there are three");
    let said = String::from_utf8_lossy(refused.details()).into_owned();
    assert!(said.contains("as 2 plain entries"), "{refused}: {said}");
    let again = (1..3).map(|k| update(Type::Delete, Entity::TableEntry(bench.entry(k, k))));
    bench.write(again.collect()).await.expect("nothing was cleared");
    let written = bench.write_with(clear(), Atomicity::RollbackOnError).await;
    written.expect("there is one");
}

#[tokio::test]
async fn too_many_updates_to_be_done_at_once_are_refused_before_they_are_looked_at() {
    let config = Config {
        max_atomic_updates: 2,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let empty = |many| vec![pb::Update::default(); many];
    for (many, code) in [(3, Code::ResourceExhausted), (2, Code::Unknown)] {
        let refused = bench.write_with(empty(many), Atomicity::RollbackOnError).await;
        assert_eq!(refused.expect_err("they say nothing").code(), code);
    }
}

#[tokio::test]
async fn a_batch_in_many_pieces_is_tried_in_order_and_its_only_failure_is_reported() {
    let bench = Bench::with(Config::default()).await;
    let of = |ty, key, value| update(ty, Entity::TableEntry(bench.entry(key, value)));
    // More updates than are submitted at a time, and more than the details have space for.
    let mut updates: Vec<_> = (0..40_000).map(|n| of(Type::InsertOrModify, 1, n)).collect();
    updates.push(of(Type::Insert, 1, 7));
    updates.push(of(Type::Insert, 2, 7));
    let mut request = Request::new(write_request(updates, Atomicity::ContinueOnError));
    let few = "4096".parse().expect("is plain");
    request.metadata_mut().insert("weir-max-error-bytes", few);
    let refused = bench.write_request(request).await.expect_err("one is there");
    assert_eq!(refused.code(), Code::Unknown);
    let said = String::from_utf8_lossy(refused.details()).into_owned();
    assert!(said.contains("number 40000: Table Add failed"), "{refused}: {said}");
    let again = update(Type::Insert, Entity::TableEntry(bench.entry(2, 7)));
    let again = bench.write(vec![again]).await;
    assert_eq!(
        again.map_err(|s| s.code()),
        Err(Code::Unknown),
        "those after it are tried"
    );
}

/// A switch that counts its commands.
struct Counted {
    switch: Arc<Standalone>,
    orders: Arc<AtomicUsize>,
}

impl DataPlane for Counted {
    fn replicas(&self) -> usize {
        self.switch.replicas()
    }

    fn submit(&self, command: Command) -> Completion<Gone> {
        self.orders.fetch_add(1, Ordering::SeqCst);
        self.switch.submit(command)
    }

    fn load(&self, program: Arc<Program>, prepare: Command) -> Completion<LoadFailure> {
        self.switch.load(program, prepare)
    }

    fn inject(&self, port: u32, packet: Vec<u8>) {
        self.switch.inject(port, packet);
    }

    fn cpu_port(&self) -> Option<u32> {
        self.switch.cpu_port()
    }

    fn now_ns(&self) -> u64 {
        self.switch.now_ns()
    }

    fn connect(&self, events: Events) {
        self.switch.connect(events);
    }
}

#[tokio::test]
async fn tables_of_the_device_are_read_in_steps() {
    const CHUNK: usize = 4;
    let config = Config {
        read_chunk: CHUNK,
        ..Config::default()
    };
    let orders = Arc::new(AtomicUsize::new(0));
    let bench = Bench::of(&source(), config, |switch| {
        Arc::new(Counted {
            switch: Arc::clone(switch),
            orders: Arc::clone(&orders),
        })
    })
    .await;
    let list = |table: &str, id: &[u8], fields: Vec<(&str, pb::data_field::Value)>| {
        let fields = fields
            .into_iter()
            .map(|(name, value)| field(bench.field(table, name), value))
            .collect();
        with_data(bench.keyed(table, vec![exact(1, id)]), 0, fields)
    };
    let ports = |count: u32| {
        let val = (0..count).map(|_| 1).collect();
        pb::data_field::Value::IntArrVal(pb::data_field::IntArray { val })
    };
    let rid = || pb::data_field::Value::Stream(vec![0, 1].into());
    for id in 0..10_u32 {
        let node = vec![
            ("$MULTICAST_RID", rid()),
            ("$MULTICAST_LAG_ID", ports(0)),
            ("$DEV_PORT", ports(1)),
        ];
        bench
            .insert(list("$pre.node", &id.to_be_bytes(), node))
            .await
            .expect("a node");
        let lag = list("$pre.lag", &[id as u8], vec![("$DEV_PORT", ports(9))]);
        bench.insert(lag).await.expect("a lag");
    }
    for (table, costs) in [("$pre.node", 2), ("$pre.lag", 10)] {
        let once = bench.entries(table).await;
        let queries = vec![Entity::TableEntry(bench.all(table)); 3];
        let before = orders.load(Ordering::SeqCst);
        let (answers, error) = bench.read_all(queries).await;
        let steps = orders.load(Ordering::SeqCst) - before;
        assert!(error.is_none(), "{error:?}");
        let found: Vec<_> = answers[0].entities.iter().filter_map(|e| e.entity.clone()).collect();
        let whole: Vec<_> = once.iter().cloned().map(Entity::TableEntry).collect();
        assert_eq!(found, [whole.clone(), whole.clone(), whole].concat());
        // The number of entries that a step can hold; the last one may exceed it.
        let of_step = usize::div_ceil(CHUNK, costs);
        assert!(steps >= found.len() / of_step, "{table}: {} in {steps}", found.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_answers_share_a_byte_budget_until_they_are_sent() {
    let config = Config {
        max_read_bytes: 5 << 20,
        max_answer_bytes: 5 << 20,
        ..Config::default()
    };
    let bench = Bench::with(config).await;
    let inserts = (0..50_000).map(|k| update(Type::Insert, Entity::TableEntry(bench.entry(k, k))));
    assert!(bench.write(inserts.collect()).await.is_ok());
    let all = || vec![Entity::TableEntry(bench.all(EXACT))];
    // An answer that is complete, and not sent yet.
    let request = read_request(all()).encode_to_vec();
    let request = bfrt_raw::ReadRequest::decode(request.as_slice()).expect("whole");
    let answer = bench.server.read(Request::new(request)).await;
    let mut not_sent = answer.expect("begins").into_inner();
    assert!(not_sent.next().await.expect("an answer").is_ok());
    let (_, refused) = bench.read_all(all()).await;
    let refused = refused.expect("is refused");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("answers of all clients"), "{refused}");
    // Streamed answers need no permit, and a cancelled answer returns its own.
    let mut several = Request::new(read_request(all()));
    several
        .metadata_mut()
        .insert("weir-stream", "1".parse().expect("is plain"));
    let (answers, status) = bench.read_request(several).await;
    assert!(status.is_none(), "{status:?}");
    assert_eq!(answers.iter().map(|a| a.entities.len()).sum::<usize>(), 50_001);
    drop(not_sent);
    let reads = async {
        loop {
            match bench.read_all(all()).await {
                (answers, None) => return answers,
                (_, Some(status)) => assert_eq!(status.code(), Code::ResourceExhausted),
            }
        }
    };
    let answers = tokio::time::timeout(std::time::Duration::from_secs(60), reads).await;
    assert_eq!(answers.expect("in time")[0].entities.len(), 50_001);
}
