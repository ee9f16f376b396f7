//! Tests of streams, bindings and independent clients.

use crate::common::{Bench, NAME, Session, details, everything, exact, read_request, update, write_request};
use std::sync::Arc;
use tonic::{Code, Request};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::mode::PredefinedMode;
use weir_proto::bfrt_proto::stream_message_request::Update as Said;
use weir_proto::bfrt_proto::write_request::Atomicity;
use weir_server::bfrt::Config;
use weir_server::{Command, Completion, DataPlane, Events, Gone, LoadFailure, PortInfo, Standalone};

#[tokio::test]
async fn a_subscription_is_answered_with_the_same_and_a_status() {
    let bench = Bench::new().await;
    let _session = bench.subscribed(7).await;
    assert_eq!(bench.server.clients(), 1);
}

#[tokio::test]
async fn a_number_that_is_taken_ends_the_stream() {
    let bench = Bench::new().await;
    let first = bench.subscribed(7).await;
    let mut second = Session::open(&bench.client, 7).await;
    second.subscribe(everything()).await;
    assert_eq!(second.next().await.unwrap_err().code(), Code::InvalidArgument);
    // The id is free again after its stream has ended.
    drop(first);
    for _ in 0..100 {
        if bench.server.clients() == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    bench.subscribed(7).await;
}

#[tokio::test]
async fn a_second_subscription_on_a_stream_is_ignored() {
    let bench = Bench::new().await;
    let mut session = bench.subscribed(7).await;
    session.subscribe(everything()).await;
    assert!(session.is_silent().await);
    assert_eq!(bench.server.clients(), 1);
}

#[tokio::test]
async fn acknowledging_a_digest_ends_the_stream() {
    let bench = Bench::new().await;
    let mut session = bench.subscribed(7).await;
    session.say(Some(Said::DigestAck(pb::DigestListAck::default()))).await;
    assert_eq!(session.next().await.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn binding_needs_a_client_one_config_and_an_unbound_program() {
    let bench = Bench::new().await;
    assert_eq!(bench.bind(7, NAME).await, Err(Code::Unavailable));
    let _session = bench.subscribed(7).await;
    let _other = bench.subscribed(8).await;
    let bind = pb::set_forwarding_pipeline_config_request::Action::Bind;
    assert_eq!(bench.set(7, bind, Vec::new()).await, Err(Code::InvalidArgument));
    let two = vec![pb::ForwardingPipelineConfig::default(); 2];
    assert_eq!(bench.set(7, bind, two).await, Err(Code::InvalidArgument));
    assert_eq!(bench.bind(7, "unknown").await, Err(Code::NotFound));
    assert_eq!(bench.bind(7, NAME).await, Ok(()));
    assert_eq!(bench.bind(7, NAME).await, Err(Code::AlreadyExists));
    assert_eq!(bench.bind(8, NAME).await, Err(Code::AlreadyExists));
}

#[tokio::test]
async fn a_client_that_goes_is_not_bound_any_more() {
    let bench = Bench::new().await;
    let session = bench.bound(7).await;
    drop(session);
    let _other = bench.subscribed(8).await;
    for _ in 0..100 {
        if bench.bind(8, NAME).await == Ok(()) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the program is still held");
}

#[tokio::test]
async fn without_a_name_requests_are_about_the_program_that_the_client_is_bound_to() {
    let bench = Bench::new().await;
    let unnamed = |client_id| pb::WriteRequest {
        p4_name: String::new(),
        client_id,
        ..write_request(Vec::new(), Atomicity::ContinueOnError)
    };
    let unknown = bench.write_request(Request::new(unnamed(7))).await.unwrap_err();
    assert_eq!((unknown.code(), details(&unknown).len()), (Code::Unavailable, 0));
    let _session = bench.subscribed(7).await;
    let unbound = bench.write_request(Request::new(unnamed(7))).await.unwrap_err();
    assert_eq!(unbound.code(), Code::Unavailable);
    bench.bind(7, NAME).await.expect("is bound");
    assert!(bench.write_request(Request::new(unnamed(7))).await.is_ok());
}

#[tokio::test]
async fn requests_that_name_the_program_need_no_subscription() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    assert_eq!(bench.entries("In.exact_keys").await.len(), 1);
    let other = pb::ReadRequest {
        p4_name: "other".to_owned(),
        ..read_request(Vec::new())
    };
    let (_, status) = bench.read_request(Request::new(other)).await;
    assert_eq!(status.map(|s| s.code()), Some(Code::NotFound));
}

#[tokio::test]
async fn the_shared_program_has_the_tables_of_the_device_only() {
    let bench = Bench::new().await;
    let _session = bench.subscribed(7).await;
    bench.bind(7, "$SHARED").await.expect("is bound");
    let _other = bench.subscribed(8).await;
    bench.bind(8, "$SHARED").await.expect("several may be");
    let of = |table: &str| pb::ReadRequest {
        p4_name: String::new(),
        client_id: 7,
        ..read_request(vec![Entity::TableEntry(bench.all(table))])
    };
    let (_, status) = bench.read_request(Request::new(of("$PORT"))).await;
    assert!(status.is_none());
    let (_, status) = bench.read_request(Request::new(of("In.exact_keys"))).await;
    assert_eq!(details(&status.expect("an error"))[0].canonical_code, 5);
    let request = pb::WriteRequest {
        p4_name: "$SHARED".to_owned(),
        ..write_request(
            vec![update(pb::update::Type::Insert, Entity::TableEntry(bench.entry(1, 2)))],
            Atomicity::ContinueOnError,
        )
    };
    assert!(bench.write_request(Request::new(request)).await.is_err());
}

#[tokio::test]
async fn a_target_is_this_device_and_all_pipes() {
    let bench = Bench::new().await;
    let at = |pipe_id, device_id| pb::TableEntry {
        entry_tgt: Some(pb::TargetDevice {
            device_id,
            ..crate::common::target(pipe_id)
        }),
        ..bench.entry(1, 2)
    };
    assert_eq!(bench.insert(at(0xffff, 9)).await, Err(Code::NotFound));
    assert_eq!(bench.insert(at(3, 0)).await, Err(Code::Unimplemented));
    assert_eq!(bench.insert(at(0, 0)).await, Err(Code::Unimplemented));
    assert_eq!(bench.insert(at(0xffff, 0)).await, Ok(()));
    // The answer repeats the target only if the request had one.
    let query = pb::TableEntry {
        entry_tgt: Some(crate::common::target(0xffff)),
        ..bench.keyed("In.exact_keys", vec![exact(1, &1u32.to_be_bytes())])
    };
    assert_eq!(
        bench.read(query).await.expect("is read")[0].entry_tgt,
        Some(crate::common::target(0xffff))
    );
    assert_eq!(bench.entries("In.exact_keys").await[0].entry_tgt, None);
}

#[tokio::test]
async fn the_direction_of_a_target_makes_no_difference() {
    let bench = Bench::new().await;
    for (key, direction) in [(1, 0), (2, 1), (3, 0xff), (4, 77)] {
        let target = pb::TargetDevice {
            direction,
            ..crate::common::target(0xffff)
        };
        let entry = pb::TableEntry {
            entry_tgt: Some(target),
            ..bench.entry(key, 2)
        };
        assert_eq!(bench.insert(entry).await, Ok(()));
        let query = pb::TableEntry {
            entry_tgt: Some(target),
            ..bench.keyed("In.exact_keys", vec![exact(1, &key.to_be_bytes())])
        };
        assert_eq!(bench.read(query).await.expect("is read")[0].entry_tgt, Some(target));
    }
    assert_eq!(bench.entries("In.exact_keys").await.len(), 4);
}

/// The attribute that sets the scope of entries: directions, pipes and parsers.
fn entry_scope(bench: &Bench, scopes: [pb::mode::Scope; 3]) -> Entity {
    let [gress_scope, pipe_scope, prsr_scope] = scopes.map(|scope| {
        Some(pb::Mode {
            scope: Some(scope),
            args: 0,
        })
    });
    Entity::TableAttribute(pb::TableAttribute {
        table_id: bench.table("In.exact_keys").id,
        attribute: Some(pb::table_attribute::Attribute::EntryScope(pb::EntryScope {
            gress_scope,
            pipe_scope,
            prsr_scope,
        })),
    })
}

fn predefined(mode: PredefinedMode) -> pb::mode::Scope {
    pb::mode::Scope::Predef(mode.into())
}

/// Pipes share their program's tables: setting another scope is an error, setting this one is not.
#[tokio::test]
async fn the_scope_of_entries_is_all_pipes() {
    let bench = Bench::new().await;
    let (all, single) = (predefined(PredefinedMode::All), predefined(PredefinedMode::Single));
    let own = pb::mode::Scope::UserDefined(0x0102);
    let set = |scopes| bench.one(pb::update::Type::Insert, entry_scope(&bench, scopes));
    for of_some in [
        [single; 3],
        [own; 3],
        [single, all, all],
        [all, single, all],
        [all, all, single],
    ] {
        assert_eq!(set(of_some).await, Err(Code::Unimplemented), "{of_some:?}");
    }
    assert_eq!(set([all; 3]).await, Ok(()));
    let found = bench.read_entities(entry_scope(&bench, [single; 3])).await;
    assert_eq!(found, Ok(vec![entry_scope(&bench, [all; 3])]));
}

/// A switch with a known list of ports.
struct WithPorts(Arc<Standalone>, Vec<u32>);

impl DataPlane for WithPorts {
    fn replicas(&self) -> usize {
        self.0.replicas()
    }

    fn submit(&self, command: Command) -> Completion<Gone> {
        self.0.submit(command)
    }

    fn load(&self, program: Arc<weir_ir::Program>, prepare: Command) -> Completion<LoadFailure> {
        self.0.load(program, prepare)
    }

    fn inject(&self, port: u32, packet: Vec<u8>) {
        self.0.inject(port, packet);
    }

    fn cpu_port(&self) -> Option<u32> {
        self.0.cpu_port()
    }

    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    fn connect(&self, events: Events) {
        self.0.connect(events);
    }

    fn ports(&self) -> Vec<PortInfo> {
        let port = |port: &u32| PortInfo {
            port: *port,
            device: format!("port{port}"),
        };
        self.1.iter().map(port).collect()
    }
}

#[tokio::test]
async fn where_all_ports_are_of_pipe_0_it_may_be_meant_alone() {
    let known = |ports: &[u32]| {
        let ports = ports.to_vec();
        move |switch: &Arc<Standalone>| Arc::new(WithPorts(switch.clone(), ports.clone()))
    };
    let (all, single) = (predefined(PredefinedMode::All), predefined(PredefinedMode::Single));
    let own = pb::mode::Scope::UserDefined(0x0e01);
    let bench = Bench::of(&crate::common::source(), Config::default(), known(&[1, 127])).await;
    for scope in [single, own] {
        let scope = entry_scope(&bench, [all, scope, all]);
        assert_eq!(bench.one(pb::update::Type::Insert, scope.clone()).await, Ok(()));
        assert_eq!(bench.read_entities(scope.clone()).await, Ok(vec![scope]));
    }
    let at = |pipe, entry| pb::TableEntry {
        entry_tgt: Some(crate::common::target(pipe)),
        ..entry
    };
    assert_eq!(bench.insert(at(0, bench.entry(1, 2))).await, Ok(()));
    assert_eq!(bench.insert(at(1, bench.entry(2, 2))).await, Err(Code::Unimplemented));
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(2));
    let found = bench
        .read(at(0, bench.exact("In.exact_keys", 1)))
        .await
        .expect("is read");
    assert_eq!(found[0].entry_tgt, Some(crate::common::target(0)));
    let register = bench.keyed("In.last", vec![exact(bench.table("In.last").key[0].id, &[0, 0, 0, 3])]);
    assert!(bench.read(at(0, register)).await.is_ok());

    // Packets of a port of another pipe meet the same entries, so entries of pipe 0 alone are
    // refused.
    let bench = Bench::of(&crate::common::source(), Config::default(), known(&[1, 130])).await;
    let entry = pb::TableEntry {
        entry_tgt: Some(crate::common::target(0)),
        ..bench.entry(1, 2)
    };
    for entity in [
        entry_scope(&bench, [all, single, all]),
        entry_scope(&bench, [all, own, all]),
        Entity::TableEntry(entry),
    ] {
        let refused = bench.write(vec![update(pb::update::Type::Insert, entity)]).await;
        let details = details(&refused.unwrap_err());
        assert_eq!(details[0].canonical_code, Code::Unimplemented as i32);
        assert!(
            details[0].message.contains("port 130 is of pipe 1"),
            "{}",
            details[0].message
        );
    }
}

#[tokio::test]
async fn snapshots_are_refused_with_the_reason() {
    let bench = Bench::new().await;
    let of = |table_id| pb::TableEntry {
        table_id,
        ..bench.all("In.exact_keys")
    };
    assert_eq!(bench.read(of(0x9100_0001)).await.err(), Some(Code::Unimplemented));
    assert_eq!(bench.read(of(0x0200_0001)).await.err(), Some(Code::NotFound));
}
