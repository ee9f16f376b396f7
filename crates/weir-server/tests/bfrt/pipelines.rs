//! Tests of programs: reading them back, verifying, binding and replacing them.

use crate::common::{Bench, NAME, source};
use tonic::Code;
use weir_proto::bfrt_info::BfrtInfo;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::forwarding_pipeline_config::Profile;
use weir_proto::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use weir_proto::bfrt_proto::stream_message_response::Update as Notification;

const STARTED: i32 = 0;
const FINISHED: i32 = 1;

fn config(name: &str, context: &[u8], binary: &[u8]) -> Vec<pb::ForwardingPipelineConfig> {
    vec![pb::ForwardingPipelineConfig {
        p4_name: name.to_owned(),
        bfruntime_info: br#"{"schema_version": "1.0.0", "tables": [], "learn_filters": []}"#
            .to_vec()
            .into(),
        profiles: vec![Profile {
            profile_name: "pipe".to_owned(),
            context: context.to_vec().into(),
            binary: binary.to_vec().into(),
            pipe_scope: vec![0],
        }],
    }]
}

async fn notice(session: &mut crate::common::Session) -> i32 {
    match session.next().await {
        Ok(Notification::SetForwardingPipelineConfigResponse(n)) => n.set_forwarding_pipeline_config_response_type,
        other => panic!("{other:?} is no notice of a program"),
    }
}

#[tokio::test]
async fn the_program_and_the_device_are_described() {
    let bench = Bench::new().await;
    let returned = bench.config().await;
    assert_eq!((returned.config.len(), returned.config[0].p4_name.as_str()), (1, NAME));
    assert!(bench.info.table("pipe.In.exact_keys").is_some() && bench.fixed.table("$PORT").is_some());
    assert_eq!(bench.info.learn_filters.len(), 1);
}

#[tokio::test]
async fn a_new_program_clears_the_state_and_notifies_all_clients() {
    let bench = Bench::new().await;
    let mut bound = bench.bound(7).await;
    let mut other = bench.subscribed(8).await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    let answer = bench
        .set(
            99,
            Action::VerifyAndWarmInitBeginAndEnd,
            config(NAME, b"{}", &[0xff, 1]),
        )
        .await;
    assert_eq!(answer, Ok(FINISHED), "also of somebody who has not subscribed");
    for session in [&mut bound, &mut other] {
        assert_eq!((notice(session).await, notice(session).await), (STARTED, FINISHED));
    }
    assert!(bench.entries("In.exact_keys").await.is_empty());
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(0));
    // The program is unchanged, and so is the binding.
    assert_eq!(bench.bind(8, NAME).await, Err(Code::AlreadyExists));
    let returned = bench.config().await;
    let profile = &returned.config[0].profiles[0];
    assert_eq!(
        (profile.context.as_ref(), profile.binary.as_ref()),
        (&b"{}"[..], &[0xff, 1][..])
    );
}

#[tokio::test]
async fn a_program_of_another_name_ends_bindings() {
    let bench = Bench::new().await;
    let mut session = bench.bound(7).await;
    let set = bench.set(
        7,
        Action::VerifyAndWarmInitBeginAndEnd,
        config("other", b"", source().as_bytes()),
    );
    assert_eq!(set.await, Ok(FINISHED));
    assert_eq!(
        (notice(&mut session).await, notice(&mut session).await),
        (STARTED, FINISHED)
    );
    assert_eq!(bench.config().await.config[0].p4_name, "other");
    assert_eq!(bench.bind(7, NAME).await, Err(Code::NotFound));
    assert_eq!(bench.bind(7, "other").await, Ok(()));
}

#[tokio::test]
async fn a_config_that_was_read_can_be_set_again() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    let returned = bench.config().await.config;
    assert_eq!(
        bench
            .set(7, Action::VerifyAndWarmInitBeginAndEnd, returned.clone())
            .await,
        Ok(FINISHED)
    );
    assert!(bench.entries("In.exact_keys").await.is_empty());
    assert_eq!(bench.config().await.config, returned);
}

#[tokio::test]
async fn between_begin_and_end_requests_are_about_the_new_program() {
    let bench = Bench::new().await;
    let mut session = bench.bound(7).await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    let begin = bench
        .set(
            7,
            Action::VerifyAndWarmInitBegin,
            config(NAME, b"", source().as_bytes()),
        )
        .await;
    assert_eq!((begin, notice(&mut session).await), (Ok(STARTED), STARTED));
    assert!(bench.entries("In.exact_keys").await.is_empty());
    assert_eq!(bench.insert(bench.entry(1, 5)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(2), "packets meet the old one");
    let with_config = bench.set(7, Action::WarmInitEnd, config(NAME, b"", b"")).await;
    assert_eq!(with_config, Err(Code::InvalidArgument));
    assert_eq!(
        (
            bench.set(7, Action::WarmInitEnd, Vec::new()).await,
            notice(&mut session).await
        ),
        (Ok(FINISHED), FINISHED)
    );
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(5));
    assert_eq!(
        bench.set(7, Action::WarmInitEnd, Vec::new()).await,
        Err(Code::InvalidArgument)
    );
}

#[tokio::test]
async fn reconciling_keeps_the_state_of_the_program_before() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    let begin = bench
        .set(
            7,
            Action::VerifyAndWarmInitBegin,
            config(NAME, b"", source().as_bytes()),
        )
        .await;
    assert_eq!(begin, Ok(STARTED));
    assert_eq!(
        bench.set(7, Action::ReconcileAndWarmInitEnd, Vec::new()).await,
        Ok(FINISHED)
    );
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(2));
}

#[tokio::test]
async fn verifying_changes_nothing_and_refuses_what_cannot_run() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
    assert_eq!(
        bench
            .set(7, Action::Verify, config(NAME, b"", source().as_bytes()))
            .await,
        Ok(0)
    );
    for wrong in [
        Vec::new(),
        config("", b"", source().as_bytes()),
        config("other", b"", &[0xff, 0]),
        config(NAME, b"", b"control main { syntax error"),
    ] {
        assert_eq!(bench.set(7, Action::Verify, wrong).await, Err(Code::InvalidArgument));
    }
    let mut no_json = config(NAME, b"", b"");
    no_json[0].bfruntime_info = b"{".to_vec().into();
    assert_eq!(bench.set(7, Action::Verify, no_json).await, Err(Code::InvalidArgument));
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(2));
}

#[tokio::test]
async fn a_device_without_a_program_has_its_own_tables() {
    use weir_server::bfrt::{self, BfRuntime, Config};
    use weir_server::{Clock, Device, Standalone};
    let program = crate::common::compile(&source());
    let switch = std::sync::Arc::new(Standalone::new(program, None, Clock::manual()).expect("runs"));
    let device = Device::new(switch, None, NAME, 1).expect("is described");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = BfRuntime::on(&device, Config::default());
    tokio::spawn(bfrt::serve_on(server, listener, std::future::pending()));
    let mut client = crate::common::connect(address).await;
    let returned = client
        .get_forwarding_pipeline_config(pb::GetForwardingPipelineConfigRequest::default())
        .await;
    let returned = returned.expect("a config").into_inner();
    assert!(returned.config.is_empty());
    let device = returned.non_p4_config.expect("always there").bfruntime_info;
    let info = BfrtInfo::from_json(std::str::from_utf8(&device).expect("UTF-8")).expect("a description");
    assert!(info.table("$PORT").is_some());
}
