//! Who may write (section "Client Arbitration and Controller Replication"); the rules one by one
//! are tests of the state machine.

use crate::common::*;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_proto::prost::Message;
use weir_proto::prost_types::Any;
use weir_proto::weir::v1::RoleConfig;

fn request(bench: &Bench, device_id: u64, role: &str, election: Option<u64>) -> pb::WriteRequest {
    let entry = bench.entry("exact_table", vec![exact(1, &[1])], 1);
    pb::WriteRequest {
        device_id,
        role: role.to_string(),
        election_id: election.map(|low| pb::Uint128 { high: 0, low }),
        updates: vec![update(Type::Insert, Entity::TableEntry(entry))],
        ..pb::WriteRequest::default()
    }
}

async fn code(bench: &Bench, request: pb::WriteRequest) -> Code {
    let written = bench.client.clone().write(request).await;
    written.err().map_or(Code::Ok, |status| status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_primary_writes_and_the_checks_come_in_order() {
    let bench = Bench::everything().await;
    assert_eq!(code(&bench, request(&bench, 9, "", Some(1))).await, Code::NotFound);
    assert_eq!(
        code(&bench, request(&bench, 1, "nobody", Some(1))).await,
        Code::NotFound
    );
    assert_eq!(
        code(&bench, request(&bench, 1, "", Some(1))).await,
        Code::PermissionDenied
    );
    let mut first = bench.primary().await;
    assert_eq!(code(&bench, request(&bench, 1, "", None)).await, Code::PermissionDenied);
    assert_eq!(
        code(&bench, request(&bench, 1, "", Some(2))).await,
        Code::PermissionDenied
    );
    let mut second = Controller::open(&bench.client).await;
    second.arbitrate(hello("", Some(2))).await;
    assert_eq!((second.code().await, first.code().await), (0, 6));
    assert_eq!(
        code(&bench, request(&bench, 1, "", Some(1))).await,
        Code::PermissionDenied
    );
    assert_eq!(code(&bench, request(&bench, 1, "", Some(2))).await, Code::Ok);
    drop(second);
    assert_eq!(first.code().await, 5);
    assert_eq!(
        code(&bench, request(&bench, 1, "", Some(2))).await,
        Code::PermissionDenied
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn before_a_config_is_set_writes_and_reads_fail() {
    let bench = Bench::new(None, Default::default()).await;
    let _primary = bench.primary().await;
    let request = pb::WriteRequest {
        device_id: 1,
        election_id: Some(pb::Uint128 { high: 0, low: 1 }),
        ..pb::WriteRequest::default()
    };
    let written = bench.client.clone().write(request).await.expect_err("no config");
    assert_eq!(written.code(), Code::FailedPrecondition);
    let (_, error) = bench
        .read_all(vec![Entity::TableEntry(pb::TableEntry::default())])
        .await;
    assert_eq!(error.expect("no config").code(), Code::FailedPrecondition);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_the_rules_is_ended_with_the_code() {
    let bench = Bench::everything().await;
    let mut wrong_device = Controller::open(&bench.client).await;
    wrong_device
        .arbitrate(pb::MasterArbitrationUpdate {
            device_id: 5,
            ..hello("", Some(1))
        })
        .await;
    assert_eq!(wrong_device.next().await.expect_err("ended").code(), Code::NotFound);
    let mut primary = bench.primary().await;
    let mut same_id = Controller::open(&bench.client).await;
    same_id.arbitrate(hello("", Some(1))).await;
    assert_eq!(same_id.next().await.expect_err("ended").code(), Code::InvalidArgument);
    primary.arbitrate(hello("other", Some(1))).await;
    assert_eq!(
        primary.next().await.expect_err("ended").code(),
        Code::FailedPrecondition
    );
    // Nothing of them is left.
    let mut next = Controller::open(&bench.client).await;
    next.arbitrate(hello("", Some(1))).await;
    assert_eq!(next.code().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_with_a_config_writes_and_sees_what_is_listed_there() {
    let bench = Bench::everything().await;
    let config = RoleConfig {
        ids: vec![bench.table("exact_table")],
        ..RoleConfig::default()
    };
    let mut update = hello("exact", Some(1));
    if let Some(role) = &mut update.role {
        role.config = Some(Any {
            type_url: format!("type.googleapis.com/{}", weir_server::p4rt::ROLE_CONFIG),
            value: config.encode_to_vec(),
        });
    }
    let mut controller = Controller::open(&bench.client).await;
    controller.arbitrate(update.clone()).await;
    let told = controller.arbitration().await;
    assert_eq!(told.role, update.role);
    let mut request = request(&bench, 1, "exact", Some(1));
    let foreign = bench.entry("const_table", vec![exact(1, &[1])], 1);
    request
        .updates
        .push(self::update(Type::Modify, Entity::TableEntry(foreign)));
    let status = bench.client.clone().write(request).await.expect_err("one is foreign");
    assert_eq!(codes(&status), [Code::Ok, Code::PermissionDenied]);
    let query = pb::ReadRequest {
        device_id: 1,
        role: "exact".to_string(),
        entities: vec![entity(Entity::TableEntry(pb::TableEntry::default()))],
    };
    let mut found = bench.client.clone().read(query).await.expect("reads").into_inner();
    let response = found.message().await.expect("reads").expect("an entry");
    assert_eq!(response.entities.len(), 1);
    let set = pb::SetForwardingPipelineConfigRequest {
        device_id: 1,
        role: "exact".to_string(),
        election_id: Some(pb::Uint128 { high: 0, low: 1 }),
        action: 1,
        ..Default::default()
    };
    let status = bench.client.clone().set_forwarding_pipeline_config(set).await;
    assert_eq!(status.expect_err("not this role").code(), Code::PermissionDenied);
}

fn role(name: &str, config: &RoleConfig) -> pb::MasterArbitrationUpdate {
    let mut update = hello(name, Some(1));
    if let Some(role) = &mut update.role {
        role.config = Some(Any {
            type_url: format!("type.googleapis.com/{}", weir_server::p4rt::ROLE_CONFIG),
            value: config.encode_to_vec(),
        });
    }
    update
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_sends_and_hears_the_packets_that_its_filters_admit() {
    use pb::stream_message_request::Update as Say;
    use pb::stream_message_response::Update as Hear;
    use weir_proto::weir::v1::role_config::Filter;
    let bench = Bench::everything().await;
    let mut all = bench.primary().await;
    let filter = |metadata_id, value: &[u8]| Filter {
        metadata_id,
        value: value.to_vec(),
    };
    // Reason 5 of packets in, port 3 of packets out; zeros before a value mean nothing.
    let config = RoleConfig {
        packet_in: true,
        packet_in_filters: vec![filter(2, &[0, 5])],
        packet_out: true,
        packet_out_filters: vec![filter(1, &[3])],
        ..RoleConfig::default()
    };
    let mut some = Controller::open(&bench.client).await;
    some.arbitrate(role("some", &config)).await;
    assert_eq!(some.code().await, 0);
    let none_config = RoleConfig::default();
    let mut none = Controller::open(&bench.client).await;
    none.arbitrate(role("none", &none_config)).await;
    assert_eq!(none.code().await, 0);
    for reason in [6, 5] {
        assert!(bench.switch.send(1, &question(33, 0, reason)).is_empty());
        assert!(matches!(all.next().await, Ok(Hear::Packet(_))));
    }
    match some.next().await {
        Ok(Hear::Packet(packet)) => assert_eq!(packet.metadata[1].value, [5]),
        other => panic!("{other:?}"),
    }
    assert!(some.is_silent().await && none.is_silent().await);
    let out = |port: &[u8]| {
        Say::Packet(pb::PacketOut {
            payload: question(0, 0, 5),
            metadata: vec![pb::PacketMetadata {
                metadata_id: 1,
                value: port.to_vec(),
            }],
        })
    };
    some.say(out(&[0, 3])).await;
    for (controller, port) in [(&mut some, [4]), (&mut none, [3])] {
        controller.say(out(&port)).await;
        match controller.next().await {
            Ok(Hear::Error(error)) => assert_eq!(error.canonical_code, Code::PermissionDenied as i32),
            other => panic!("{other:?}"),
        }
    }
    // Packets go in order, so those that were refused would have been sent by now.
    all.say(out(&[7])).await;
    let mut sent = Vec::new();
    while sent.last() != Some(&7) {
        sent.extend(bench.switch.take_sent().into_iter().map(|o| o.port));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(sent, [3, 7]);
}

/// Old primaries write as fast as they can while new ones connect. Once the new one has received
/// its notice, no write of an old one takes effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_an_old_primary_has_in_flight_is_done_before_the_new_one_is_told() {
    let bench = std::sync::Arc::new(Bench::everything().await);
    let mut controllers = vec![bench.primary().await];
    let entry = |value: u32| bench.entry("exact_table", vec![exact(1, &[1])], value);
    bench.insert(Entity::TableEntry(entry(0))).await.expect("fits");
    let mut in_flight = 0;
    for round in 1..40u64 {
        let writers: Vec<_> = (0..4u64)
            .map(|writer| {
                let bench = std::sync::Arc::clone(&bench);
                tokio::spawn(async move {
                    let mut written = 0u32;
                    loop {
                        written += 1;
                        let value = (round as u32) << 24 | (writer as u32) << 20 | written;
                        let entry = bench.entry("exact_table", vec![exact(1, &[1])], value);
                        let request = pb::WriteRequest {
                            device_id: 1,
                            election_id: Some(pb::Uint128 { high: 0, low: round }),
                            // More than one step of the switch.
                            updates: vec![update(Type::Modify, Entity::TableEntry(entry)); 300],
                            ..pb::WriteRequest::default()
                        };
                        match bench.client.clone().write(request).await {
                            Ok(_) => {}
                            Err(status) => {
                                assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
                                return written;
                            }
                        }
                    }
                })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_millis(round % 7)).await;
        let mut next = Controller::open(&bench.client).await;
        next.arbitrate(hello("", Some(round + 1))).await;
        assert_eq!(next.code().await, 0);
        let before = bench.ask(1, 0, 1);
        for writer in writers {
            in_flight += writer.await.expect("the code is right") - 1;
        }
        assert_eq!(
            bench.ask(1, 0, 1),
            before,
            "an old primary has written after the new one was told"
        );
        controllers.push(next);
        // Few streams are enough.
        controllers.drain(..controllers.len() - 2);
    }
    assert!(in_flight > 40, "nothing was in flight");
}

#[tokio::test(flavor = "multi_thread")]
async fn capabilities_tell_the_version() {
    let bench = Bench::everything().await;
    let ask = |device_id| {
        let mut client = bench.client.clone();
        async move { client.capabilities(pb::CapabilitiesRequest { device_id }).await }
    };
    let answer = ask(0).await.expect("an answer").into_inner();
    assert_eq!(answer.p4runtime_api_version, "1.5.0");
    assert!(ask(1).await.is_ok());
    assert_eq!(ask(2).await.expect_err("no such device").code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_open_and_die_leave_nothing() {
    let bench = Bench::everything().await;
    let mut last = bench.primary().await;
    for round in 0..40u64 {
        let mut one = Controller::open(&bench.client).await;
        one.arbitrate(hello("", (round % 2 == 0).then_some(round + 10))).await;
        one.arbitration().await;
    }
    // All but the last have left; the remaining one is notified and can become primary.
    while bench.server.streams() > 1 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    last.arbitrate(hello("", Some(1000))).await;
    loop {
        let update = last.arbitration().await;
        if update.status.is_some_and(|s| s.code == 0) && update.election_id.is_some_and(|e| e.low == 1000) {
            return;
        }
    }
}
