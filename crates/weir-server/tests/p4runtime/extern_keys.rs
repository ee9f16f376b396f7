//! Keys of externs.

use crate::common::*;
use tonic::Code;
use weir_proto::extern_keys::{EXTERN_TYPES, TYPE_URL};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use weir_proto::p4::v1::update::Type;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_proto::prost::Message;
use weir_proto::prost_types::Any;
use weir_proto::weir::v1::ExternKey;
use weir_server::p4rt::Config;

const SOURCE: &str = include_str!("../p4/extern_keys.p4");

/// The test vector of SipHash-2-4's authors: the hash of 00 to 0e with the key 00 to 0f.
const HASH: u64 = 0xa129_ca61_49be_45e5;

async fn bench() -> Bench {
    Bench::new(Some(compile(SOURCE)), Config::default()).await
}

/// The ids of an instance and of its type.
fn ids(bench: &Bench, alias: &str) -> (u32, u32) {
    let all = bench.info.externs.iter().flat_map(|e| {
        let instances = e.instances.iter().filter_map(|i| i.preamble.as_ref());
        instances.map(move |p| (e.extern_type_id, p))
    });
    let mut found = all.filter(|(_, p)| p.alias == alias);
    let (ty, preamble) = found.next().unwrap_or_else(|| panic!("no extern {alias}"));
    (ty, preamble.id)
}

fn entry((extern_type_id, extern_id): (u32, u32), key: Option<ExternKey>) -> Entity {
    Entity::ExternEntry(pb::ExternEntry {
        extern_type_id,
        extern_id,
        entry: key.map(|key| Any {
            type_url: TYPE_URL.to_owned(),
            value: key.encode_to_vec(),
        }),
    })
}

fn key(bench: &Bench, alias: &str, index: u64, bytes: &[u8]) -> Entity {
    let key = ExternKey {
        index,
        key: bytes.to_vec(),
        is_set: false,
    };
    entry(ids(bench, alias), Some(key))
}

/// What a read returns of a key that is set.
fn set(bench: &Bench, alias: &str, index: u64) -> Entity {
    let key = ExternKey {
        index,
        key: Vec::new(),
        is_set: true,
    };
    entry(ids(bench, alias), Some(key))
}

fn siphash_key() -> Vec<u8> {
    (0..16).collect()
}

/// The status, hash and sequence number for a packet with this number of a key.
fn answer(bench: &Bench, key: u8) -> (u8, u64, u32) {
    let packet: Vec<u8> = std::iter::once(key).chain(0..15).collect();
    let bytes = bench.switch.send(1, &packet).remove(0).bytes;
    let hash = u64::from_be_bytes(bytes[1..9].try_into().expect("eight bytes"));
    let number = u32::from_be_bytes(bytes[9..13].try_into().expect("four bytes"));
    (bytes[0], hash, number)
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_inserted_modified_and_deleted_and_no_read_returns_them() {
    let bench = bench().await;
    let _primary = bench.primary().await;
    assert_eq!(answer(&bench, 1), (1, 0, 1), "no key");
    let first = key(&bench, "tags", 1, &siphash_key());
    assert_eq!(bench.modify(first.clone()).await, Err(Code::NotFound));
    assert_eq!(bench.delete(key(&bench, "tags", 1, &[])).await, Err(Code::NotFound));
    bench.insert(first.clone()).await.expect("fits");
    assert_eq!(answer(&bench, 1), (0, HASH, 2));
    assert_eq!(answer(&bench, 2).0, 1, "another key");
    assert_eq!(bench.insert(first).await, Err(Code::AlreadyExists));
    bench.insert(key(&bench, "tags", 3, &[7; 16])).await.expect("fits");
    bench.insert(key(&bench, "ciphers", 0, &[7; 32])).await.expect("fits");
    // By key, by instance, by type, and all of them.
    let ones = |found: Vec<Entity>| {
        let mut found = found;
        found.sort_by_key(|e| format!("{e:?}"));
        found
    };
    let (tags, ciphers) = (ids(&bench, "tags"), ids(&bench, "ciphers"));
    let both = [set(&bench, "tags", 1), set(&bench, "tags", 3)];
    assert_eq!(bench.read(key(&bench, "tags", 3, &[])).await, both[1..]);
    assert_eq!(bench.read(key(&bench, "tags", 2, &[])).await, []);
    assert_eq!(bench.read(entry(tags, None)).await, both);
    assert_eq!(bench.read(entry((tags.0, 0), None)).await, both);
    assert_eq!(bench.read(entry(ciphers, None)).await, [set(&bench, "ciphers", 0)]);
    let all = [both[0].clone(), both[1].clone(), set(&bench, "ciphers", 0)];
    assert_eq!(ones(bench.read(entry((0, 0), None)).await), ones(all.to_vec()));
    bench.modify(key(&bench, "tags", 1, &[9; 16])).await.expect("fits");
    let (status, hash, _) = answer(&bench, 1);
    assert!(status == 0 && hash != HASH && hash != 0);
    bench.delete(key(&bench, "tags", 1, &[])).await.expect("is set");
    assert_eq!(answer(&bench, 1).0, 1, "no key");
    assert_eq!(bench.read(entry(tags, None)).await, both[1..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn p4info_lists_the_instances_with_keys_and_not_hidden_ones() {
    let bench = bench().await;
    let names = bench.info.externs.iter().map(|e| {
        let instances = e.instances.iter().filter_map(|i| i.preamble.as_ref());
        (
            e.extern_type_name.as_str(),
            instances.map(|p| p.alias.as_str()).collect(),
        )
    });
    let names: Vec<(&str, Vec<&str>)> = names.collect();
    assert_eq!(
        names,
        [
            ("aes_gcm", vec!["ciphers"]),
            ("sequence", vec!["numbers"]),
            ("siphash", vec!["tags"])
        ]
    );
    for described in &bench.info.externs {
        let ty = u8::try_from(described.extern_type_id).expect("a byte");
        assert!(EXTERN_TYPES.contains(&ty));
        let instances = described.instances.iter().filter_map(|i| i.preamble.as_ref());
        assert!(instances.into_iter().all(|p| p.id >> 24 == u32::from(ty)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_keys_are_refused_by_their_place_and_never_shown() {
    let bench = bench().await;
    let _primary = bench.primary().await;
    let tags = ids(&bench, "tags");
    let secret = [0xab; 17];
    let given = |key: &[u8], is_set| ExternKey {
        index: 0,
        key: key.to_vec(),
        is_set,
    };
    let typed = |type_url: &str, value: Vec<u8>| {
        Entity::ExternEntry(pb::ExternEntry {
            extern_type_id: tags.0,
            extern_id: tags.1,
            entry: Some(Any {
                type_url: type_url.to_owned(),
                value,
            }),
        })
    };
    for (ty, entity, text) in [
        (
            Type::Insert,
            key(&bench, "tags", 4, &[1; 16]),
            "`I.tags`: there is no key 4: the instance has keys 0 to 3",
        ),
        (
            Type::Insert,
            key(&bench, "tags", 0, &secret),
            "`I.tags`: a key of 17 bytes, but 16 are expected",
        ),
        (Type::Insert, key(&bench, "tags", 0, &[]), "the key is empty"),
        (Type::Delete, key(&bench, "tags", 0, &secret), "DELETE takes no key"),
        (
            Type::Insert,
            entry(tags, None),
            "the entry is missing; it is a weir.v1.ExternKey",
        ),
        (
            Type::Insert,
            entry(tags, Some(given(&secret, true))),
            "is_set is not written",
        ),
        (
            Type::Insert,
            entry((tags.0, 7), Some(given(&secret, false))),
            "has no instance with the id 0x7",
        ),
        (
            Type::Insert,
            entry((0xfe, 7), Some(given(&secret, false))),
            "there is no extern type with the id 0xfe",
        ),
        (
            Type::Insert,
            typed("type.googleapis.com/p4.v1.P4Data", Vec::new()),
            "found the type `p4.v1.P4Data`",
        ),
        (
            Type::Insert,
            typed(TYPE_URL, vec![0x12, 0x7f, 0xab]),
            "the entry is no weir.v1.ExternKey",
        ),
        (
            Type::Insert,
            key(&bench, "numbers", 0, &secret),
            "but 0 (which resets the association) are expected",
        ),
    ] {
        let refused = bench
            .write(vec![update(ty, entity.clone())])
            .await
            .expect_err("is wrong");
        let shown = format!("{refused:?} {:?}", details(&refused));
        assert!(shown.contains(text), "{entity:?}: {shown}");
        assert!(
            !shown.contains("171, 171") && !shown.to_ascii_lowercase().contains("abab"),
            "{shown}"
        );
    }
    assert_eq!(bench.read(entry((0, 0), None)).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_fails_sets_no_key_and_resets_no_association() {
    let bench = bench().await;
    let _primary = bench.primary().await;
    bench
        .insert(key(&bench, "tags", 0, &siphash_key()))
        .await
        .expect("fits");
    assert_eq!(answer(&bench, 0), (0, HASH, 1));
    let batch = |last: &[u8]| {
        vec![
            update(Type::Delete, key(&bench, "numbers", 0, &[])),
            update(Type::Modify, key(&bench, "tags", 0, &[1; 16])),
            update(Type::Insert, key(&bench, "tags", 1, last)),
        ]
    };
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        assert!(bench.write_with(batch(&[1; 15]), atomicity).await.is_err());
    }
    // The sequence is as it was: a number that is used twice with a key breaks ciphers.
    assert_eq!(answer(&bench, 0), (0, HASH, 2));
    bench
        .write_with(batch(&[1; 16]), Atomicity::RollbackOnError)
        .await
        .expect("fits");
    let (status, hash, number) = answer(&bench, 0);
    assert!(status == 0 && hash != HASH && number == 1);
    // Without atomicity the others are made.
    let updates = vec![
        update(Type::Modify, key(&bench, "tags", 0, &siphash_key())),
        update(Type::Insert, key(&bench, "tags", 9, &[1; 16])),
    ];
    assert!(bench.write(updates).await.is_err());
    assert_eq!(answer(&bench, 0), (0, HASH, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_with_externs_is_loaded_and_keys_are_given_to_it_before_it_runs() {
    let bench = bench().await;
    let _primary = bench.primary().await;
    let set_program = |action: Action, with_program: bool| {
        let config = pb::ForwardingPipelineConfig {
            p4info: Some(bench.info.clone()),
            p4_device_config: SOURCE.as_bytes().to_vec(),
            cookie: None,
        };
        let request = pb::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: Some(pb::Uint128 { high: 0, low: 1 }),
            action: action.into(),
            config: with_program.then_some(config),
            ..Default::default()
        };
        let mut client = bench.client.clone();
        async move { client.set_forwarding_pipeline_config(request).await.expect("is right") }
    };
    bench
        .insert(key(&bench, "tags", 0, &siphash_key()))
        .await
        .expect("fits");
    assert_eq!(answer(&bench, 0), (0, HASH, 1));
    set_program(Action::VerifyAndSave, true).await;
    bench
        .insert(key(&bench, "tags", 2, &siphash_key()))
        .await
        .expect("fits");
    assert_eq!(answer(&bench, 2), (1, 0, 1), "the program before still runs");
    set_program(Action::Commit, false).await;
    assert_eq!(answer(&bench, 2), (0, HASH, 1));
    assert_eq!(answer(&bench, 0).0, 1, "no key");
    // Sequence numbers begin anew, so that no key is taken over.
    set_program(Action::ReconcileAndCommit, true).await;
    assert_eq!(answer(&bench, 2), (1, 0, 1));
    assert_eq!(bench.read(entry((0, 0), None)).await, []);
}
