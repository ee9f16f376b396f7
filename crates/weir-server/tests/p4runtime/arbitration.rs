//! Who may write (section "Client Arbitration and Controller Replication"); the rules one by one are tests of the state
//! machine.

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
    // Everybody but the last has gone; whoever is left hears it and can become primary.
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
