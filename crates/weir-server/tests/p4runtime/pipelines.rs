//! Forwarding pipeline configs (sections "SetForwardingPipelineConfig RPC" and
//! "GetForwardingPipelineConfig RPC").

use crate::common::*;
use tonic::{Code, Status};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::forwarding_pipeline_config::Cookie;
use weir_proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use weir_proto::p4::v1::set_forwarding_pipeline_config_request::Action;

async fn set(bench: &Bench, action: Action, config: Option<pb::ForwardingPipelineConfig>) -> Result<(), Status> {
    let request = pb::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: Some(pb::Uint128 { high: 0, low: 1 }),
        action: action.into(),
        config,
        ..Default::default()
    };
    bench
        .client
        .clone()
        .set_forwarding_pipeline_config(request)
        .await
        .map(|_| ())
}

async fn get(bench: &Bench, ty: ResponseType) -> Option<pb::ForwardingPipelineConfig> {
    let request = pb::GetForwardingPipelineConfigRequest {
        device_id: 1,
        response_type: ty.into(),
    };
    let answer = bench.client.clone().get_forwarding_pipeline_config(request).await;
    answer.expect("an answer").into_inner().config
}

fn config(bench: &Bench, source: &str, cookie: u64) -> pb::ForwardingPipelineConfig {
    pb::ForwardingPipelineConfig {
        p4info: Some(bench.info.clone()),
        p4_device_config: source.as_bytes().to_vec(),
        cookie: Some(Cookie { cookie }),
    }
}

async fn fill(bench: &Bench, key: u8, value: u32) {
    let entry = bench.entry("exact_table", vec![exact(1, &[key])], value);
    bench.insert(Entity::TableEntry(entry)).await.expect("fits");
}

async fn error(result: Result<(), Status>) -> Code {
    result.expect_err("refused").code()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_joins_a_program_that_runs() {
    let bench = Bench::everything().await;
    let running = get(&bench, ResponseType::All).await.expect("a config");
    assert!(running.cookie.is_none() && running.p4info.is_some() && running.p4_device_config.starts_with(b"weir "));
    let _primary = bench.primary().await;
    // No program means the one that runs; what comes back is what was given.
    let empty = config(&bench, "", 5);
    set(&bench, Action::VerifyAndCommit, Some(empty.clone()))
        .await
        .expect("is the same");
    assert_eq!(get(&bench, ResponseType::All).await, Some(empty));
    // A saved program is one, too.
    set(&bench, Action::VerifyAndCommit, Some(running))
        .await
        .expect("loads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_committed_with_its_cookie_and_fresh_state() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    fill(&bench, 1, 1).await;
    let given = config(&bench, EVERYTHING, 7);
    set(&bench, Action::Verify, Some(given.clone()))
        .await
        .expect("is right");
    assert_eq!(bench.ask(1, 0, 1), Some(1));
    set(&bench, Action::VerifyAndCommit, Some(given.clone()))
        .await
        .expect("is right");
    assert_eq!(bench.ask(1, 0, 1), None);
    assert_eq!(get(&bench, ResponseType::All).await, Some(given.clone()));
    let part = |p4info, program: bool| pb::ForwardingPipelineConfig {
        p4info,
        p4_device_config: if program {
            given.p4_device_config.clone()
        } else {
            Vec::new()
        },
        cookie: given.cookie,
    };
    assert_eq!(get(&bench, ResponseType::CookieOnly).await, Some(part(None, false)));
    assert_eq!(
        get(&bench, ResponseType::P4infoAndCookie).await,
        Some(part(given.p4info.clone(), false))
    );
    assert_eq!(
        get(&bench, ResponseType::DeviceConfigAndCookie).await,
        Some(part(None, true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sent_source_loses_no_text_and_names_no_file_of_the_machine() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let mut refused = Vec::new();
    for source in [
        EVERYTHING.replacen(
            "#include <v1model.p4>",
            "#include <v1model.p4> control Lost() { apply {} }",
            1,
        ),
        format!("# 1 \"/etc/passwd\"\nheader h {{ missing a; }}\n{EVERYTHING}"),
        format!("#line 1 \"/etc/passwd\"\nheader h {{ missing a; }}\n{EVERYTHING}"),
    ] {
        assert_ne!(source, EVERYTHING);
        let given = config(&bench, &source, 1);
        let refusal = set(&bench, Action::Verify, Some(given)).await.expect_err("a mistake");
        assert_eq!(refusal.code(), Code::InvalidArgument);
        refused.push(refusal.message().to_owned());
    }
    assert!(refused[0].contains("behind `#include`"), "{}", refused[0]);
    for message in &refused[1..] {
        assert!(message.contains("p4_device_config:2:"), "{message}");
        assert!(!message.contains("passwd"), "{message}");
    }
    let marked = config(&bench, &format!("# 7 \"/etc/passwd\"\n{EVERYTHING}"), 1);
    set(&bench, Action::Verify, Some(marked)).await.expect("is right");
}

#[tokio::test(flavor = "multi_thread")]
async fn configs_that_cannot_be_realised_are_refused_and_change_nothing() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    fill(&bench, 1, 1).await;
    let good = config(&bench, EVERYTHING, 7);
    let mut other_info = good.clone();
    if let Some(info) = &mut other_info.p4info {
        info.tables[0].match_fields[0].bitwidth += 1;
    }
    let bad = [
        None,
        Some(pb::ForwardingPipelineConfig {
            p4info: None,
            ..good.clone()
        }),
        Some(config(&bench, "{\"program\": \"bmv2\"}", 1)),
        Some(config(&bench, "control c() { apply { x = 1; } }", 1)),
        Some(config(&bench, "weir 2 target \"v1model\" nonsense", 1)),
        Some(pb::ForwardingPipelineConfig {
            p4_device_config: vec![0xff, 0],
            ..good.clone()
        }),
        Some(other_info),
    ];
    for config in bad {
        for action in [
            Action::Verify,
            Action::VerifyAndSave,
            Action::VerifyAndCommit,
            Action::ReconcileAndCommit,
        ] {
            let status = set(&bench, action, config.clone()).await.expect_err("is wrong");
            assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        }
    }
    assert_eq!(
        error(set(&bench, Action::Unspecified, Some(good.clone())).await).await,
        Code::InvalidArgument
    );
    assert_eq!(
        error(set(&bench, Action::Commit, Some(good)).await).await,
        Code::InvalidArgument
    );
    assert_eq!(error(set(&bench, Action::Commit, None).await).await, Code::NotFound);
    assert_eq!(bench.ask(1, 0, 1), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_primary_loads_programs() {
    let bench = Bench::everything().await;
    let good = config(&bench, EVERYTHING, 7);
    assert_eq!(
        error(set(&bench, Action::Verify, Some(good)).await).await,
        Code::PermissionDenied
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_after_a_save_takes_effect_with_the_commit() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    fill(&bench, 1, 1).await;
    let given = config(&bench, EVERYTHING, 7);
    set(&bench, Action::VerifyAndSave, Some(given.clone()))
        .await
        .expect("is right");
    // Packets meet the old state, requests the new one.
    fill(&bench, 2, 2).await;
    assert_eq!([bench.ask(1, 0, 1), bench.ask(1, 0, 2)], [Some(1), None]);
    let all = Entity::TableEntry(pb::TableEntry {
        table_id: bench.table("exact_table"),
        ..Default::default()
    });
    assert_eq!(bench.read(all).await.len(), 1);
    assert_eq!(get(&bench, ResponseType::CookieOnly).await.and_then(|c| c.cookie), None);
    set(&bench, Action::Commit, None).await.expect("was saved");
    assert_eq!([bench.ask(1, 0, 1), bench.ask(1, 0, 2)], [None, Some(2)]);
    assert_eq!(get(&bench, ResponseType::All).await, Some(given));
    assert_eq!(error(set(&bench, Action::Commit, None).await).await, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn reconciling_keeps_the_state_and_refuses_where_it_cannot() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    fill(&bench, 1, 1).await;
    let register = Entity::RegisterEntry(pb::RegisterEntry {
        register_id: bench.id("words"),
        index: Some(pb::Index { index: 2 }),
        data: Some(pb::P4Data {
            data: Some(pb::p4_data::Data::Bitstring(vec![9])),
        }),
    });
    bench.modify(register).await.expect("in range");
    bench.ask(20, 0, 1);
    // The same objects, another behaviour.
    let changed = EVERYTHING.replace(
        "h.query.answer = value;\n        s.egress_spec",
        "h.query.answer = value + 100;\n        s.egress_spec",
    );
    set(&bench, Action::ReconcileAndCommit, Some(config(&bench, &changed, 8)))
        .await
        .expect("the state fits");
    assert_eq!(
        [bench.ask(1, 0, 1), bench.ask(22, 0, 2), bench.ask(8, 0, 1)],
        [Some(101), Some(109), Some(0x31 + 100)]
    );
    let counter = Entity::CounterEntry(pb::CounterEntry {
        counter_id: bench.id("counts"),
        index: Some(pb::Index { index: 1 }),
        data: None,
    });
    assert!(
        matches!(&bench.read(counter).await[0], Entity::CounterEntry(c) if c.data.is_some_and(|d| d.packet_count == 1))
    );
    // A table that was renamed has no place for the entry.
    let renamed = EVERYTHING.replace("exact_table", "other_table");
    let program = compile(&renamed);
    let info = weir_compiler::p4info::p4info(&program, weir_arch::targets()).expect("a P4Info");
    let config = pb::ForwardingPipelineConfig {
        p4info: Some(info),
        p4_device_config: renamed.into_bytes(),
        cookie: None,
    };
    assert_eq!(
        error(set(&bench, Action::ReconcileAndCommit, Some(config)).await).await,
        Code::InvalidArgument
    );
    assert_eq!(bench.ask(1, 0, 1), Some(101));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_may_start_without_a_config() {
    let mut bench = Bench::new(None, Default::default()).await;
    assert_eq!(get(&bench, ResponseType::All).await, None);
    let _primary = bench.primary().await;
    let info = weir_compiler::p4info::p4info(&compile(EVERYTHING), weir_arch::targets());
    bench.info = info.expect("a P4Info");
    let given = config(&bench, EVERYTHING, 1);
    set(&bench, Action::VerifyAndCommit, Some(given))
        .await
        .expect("is right");
    fill(&bench, 1, 1).await;
    assert_eq!(bench.ask(1, 0, 1), Some(1));
}
