//! Hostile requests: they are refused, nothing panics, and nothing changes.

use crate::common::*;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_proto::prost::Message;

/// The next of a sequence of numbers that look random.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

async fn state(bench: &Bench) -> Vec<Entity> {
    let all = vec![
        Entity::TableEntry(pb::TableEntry::default()),
        Entity::ActionProfileMember(pb::ActionProfileMember::default()),
        Entity::ActionProfileGroup(pb::ActionProfileGroup::default()),
        Entity::CounterEntry(pb::CounterEntry::default()),
        Entity::MeterEntry(pb::MeterEntry::default()),
        Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry::default()),
        Entity::ValueSetEntry(pb::ValueSetEntry::default()),
        Entity::DigestEntry(pb::DigestEntry::default()),
    ];
    let (found, error) = bench.read_all(all).await;
    assert!(error.is_none(), "{error:?}");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn mutilated_requests_never_panic_and_refused_ones_change_nothing() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let id = |name: &str| bench.id(name);
    let seeds: Vec<Vec<u8>> = [
        Entity::TableEntry(bench.entry("exact_table", vec![exact(1, &[1])], 1)),
        Entity::TableEntry(pb::TableEntry {
            priority: 1,
            ..bench.entry("ternary_table", vec![ternary(1, &[1], &[1]), exact(2, &[1])], 1)
        }),
        Entity::TableEntry(bench.entry("lpm_table", vec![lpm(1, &[1], 32)], 1)),
        Entity::ActionProfileMember(pb::ActionProfileMember {
            action_profile_id: id("selector"),
            member_id: 1,
            action: Some(bench.answer(1)),
        }),
        Entity::ActionProfileGroup(pb::ActionProfileGroup {
            action_profile_id: id("selector"),
            group_id: 1,
            members: vec![],
            max_size: 8,
        }),
        Entity::CounterEntry(pb::CounterEntry {
            counter_id: id("counts"),
            index: Some(pb::Index { index: 1 }),
            data: Some(pb::CounterData::default()),
        }),
        Entity::MeterEntry(pb::MeterEntry {
            meter_id: id("meters"),
            index: Some(pb::Index { index: 1 }),
            config: Some(pb::MeterConfig {
                cir: 1,
                cburst: 1,
                pir: 1,
                pburst: 1,
                eburst: 0,
            }),
            counter_data: None,
        }),
        Entity::ValueSetEntry(pb::ValueSetEntry {
            value_set_id: id("specials"),
            members: vec![],
        }),
        Entity::DigestEntry(pb::DigestEntry {
            digest_id: id("seen_t"),
            config: Some(Default::default()),
        }),
    ]
    .into_iter()
    .map(|e| update(Type::Insert, e).encode_to_vec())
    .collect();
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    let mut before = state(&bench).await;
    for round in 0..1500 {
        let mut bytes = seeds[next(&mut seed) as usize % seeds.len()].clone();
        for _ in 0..1 + next(&mut seed) % 4 {
            let at = next(&mut seed) as usize % bytes.len();
            match next(&mut seed) % 3 {
                0 => bytes[at] = next(&mut seed) as u8,
                1 => bytes.insert(at, next(&mut seed) as u8),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let Ok(update) = pb::Update::decode(bytes.as_slice()) else {
            continue;
        };
        let atomicity = if round % 2 == 0 {
            Atomicity::ContinueOnError
        } else {
            Atomicity::DataplaneAtomic
        };
        let outcome = bench.write_with(vec![update.clone()], atomicity).await;
        let query = update.entity.into_iter().filter_map(|e| e.entity).collect();
        let (_, error) = bench.read_all(query).await;
        for status in outcome.as_ref().err().into_iter().chain(&error) {
            assert_eq!(status.code(), Code::Unknown, "{status:?}");
            assert!(codes(status).iter().all(|c| *c != Code::Internal), "{status:?}");
        }
        if round % 50 == 0 || outcome.is_ok() {
            let after = state(&bench).await;
            assert!(outcome.is_ok() || after == before);
            before = after;
        }
    }
}
