//! Direct resources of actions that execute them, and of actions that do not.

use crate::common::{Bench, compile, exact};
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_server::p4rt::Config;

/// A table with a direct counter and a direct meter.
const DIRECT: &str = include_str!("../p4/direct_psa.p4");

const COUNT: pb::CounterData = pb::CounterData {
    byte_count: 60,
    packet_count: 1,
};
const RATES: pb::MeterConfig = pb::MeterConfig {
    cir: 1,
    cburst: 2,
    pir: 3,
    pburst: 4,
    eburst: 0,
};

async fn bench() -> Bench {
    Bench::new(Some(compile(DIRECT)), Config::default()).await
}

/// An entry with an action and values for the counter and the meter.
fn entry(bench: &Bench, key: u8, action: &str, counts: bool, meters: bool) -> pb::TableEntry {
    pb::TableEntry {
        table_id: bench.table("t"),
        r#match: vec![exact(1, &[key])],
        action: Some(pb::TableAction {
            r#type: Some(pb::table_action::Type::Action(pb::Action {
                action_id: bench.action(action),
                params: Vec::new(),
            })),
        }),
        counter_data: counts.then_some(COUNT),
        meter_config: meters.then_some(RATES),
        ..pb::TableEntry::default()
    }
}

/// All entries with their counters and meters.
async fn entries(bench: &Bench) -> Vec<pb::TableEntry> {
    let query = pb::TableEntry {
        table_id: bench.table("t"),
        counter_data: Some(pb::CounterData::default()),
        meter_config: Some(pb::MeterConfig::default()),
        ..pb::TableEntry::default()
    };
    let found = bench.read(Entity::TableEntry(query)).await.into_iter();
    let entries = found.map(|e| match e {
        Entity::TableEntry(e) => e,
        other => panic!("{other:?}"),
    });
    entries.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_resources_are_configured_only_by_entries_whose_action_executes_them() {
    let bench = bench().await;
    let _primary = bench.primary().await;
    let of = |key, action, counts, meters| Entity::TableEntry(entry(&bench, key, action, counts, meters));
    let can = [
        ("count", true, false),
        ("police", false, true),
        ("both", true, true),
        ("neither", false, false),
    ];
    for (key, (action, counts, meters)) in (1..).zip(can) {
        for (counter, meter) in [(true, false), (false, true), (true, true)] {
            if counter && !counts || meter && !meters {
                let refused = bench.insert(of(key, action, counter, meter)).await;
                assert_eq!(refused, Err(Code::InvalidArgument), "{action}, {counter}, {meter}");
            }
        }
        bench
            .insert(of(key, action, counts, meters))
            .await
            .expect("executes what it sets");
        for (counter, meter) in [(!counts, false), (false, !meters)] {
            let outcome = bench.modify(of(key, action, counter, meter)).await;
            let is_refused = counter || meter;
            assert_eq!(
                outcome,
                if is_refused { Err(Code::InvalidArgument) } else { Ok(()) },
                "{action}"
            );
        }
    }
    let default = |counter| {
        Entity::TableEntry(pb::TableEntry {
            r#match: Vec::new(),
            is_default_action: true,
            ..entry(&bench, 0, if counter { "count" } else { "police" }, true, false)
        })
    };
    assert_eq!(bench.modify(default(false)).await, Err(Code::InvalidArgument));
    assert_eq!(bench.modify(default(true)).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_with_counters_and_meters_can_be_written_as_it_is() {
    let bench = bench().await;
    let _primary = bench.primary().await;
    for (key, action) in (1..).zip(["count", "police", "both", "neither"]) {
        let plain = entry(&bench, key, action, false, false);
        bench.insert(Entity::TableEntry(plain)).await.expect("fits");
    }
    let found = entries(&bench).await;
    assert_eq!(
        found.iter().map(|e| e.counter_data.is_some()).collect::<Vec<_>>(),
        [true, false, true, false]
    );
    for entry in &found {
        bench
            .modify(Entity::TableEntry(entry.clone()))
            .await
            .expect("was read so");
    }
    assert_eq!(entries(&bench).await, found);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_takes_the_state_over_has_counts_of_actions_that_do_not_count() {
    let bench = bench().await;
    let _primary = bench.primary().await;
    let plain = entry(&bench, 1, "neither", false, false);
    bench.insert(Entity::TableEntry(plain.clone())).await.expect("fits");
    let counter = |data| {
        Entity::DirectCounterEntry(pb::DirectCounterEntry {
            table_entry: Some(pb::TableEntry {
                action: None,
                ..plain.clone()
            }),
            data,
        })
    };
    bench.modify(counter(Some(COUNT))).await.expect("is there");
    let request = pb::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: Some(pb::Uint128 { high: 0, low: 1 }),
        action: pb::set_forwarding_pipeline_config_request::Action::ReconcileAndCommit.into(),
        config: Some(pb::ForwardingPipelineConfig {
            p4info: Some(bench.info.clone()),
            p4_device_config: DIRECT.as_bytes().to_vec(),
            cookie: None,
        }),
        ..pb::SetForwardingPipelineConfigRequest::default()
    };
    let mut client = bench.client.clone();
    client
        .set_forwarding_pipeline_config(request)
        .await
        .expect("the state fits");
    assert_eq!(bench.read(counter(None)).await, [counter(Some(COUNT))]);
}
