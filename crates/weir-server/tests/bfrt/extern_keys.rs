//! Keys of externs.

use crate::common::{Bench, details, exact, field, stream, update, value, with_data};
use tonic::Code;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_proto::bfrt_proto::write_request::Atomicity;
use weir_proto::extern_keys::{INDEX, IS_SET, KEY, TABLE_TYPE};
use weir_server::bfrt::Config;

const SOURCE: &str = include_str!("../p4/extern_keys.p4");

/// The test vector of SipHash-2-4's authors: the hash of 00 to 0e with the key 00 to 0f.
const HASH: u64 = 0xa129_ca61_49be_45e5;

async fn bench() -> Bench {
    Bench::of(SOURCE, Config::default(), Clone::clone).await
}

/// The entry of a key by its number.
fn numbered(bench: &Bench, table: &str, index: u32) -> pb::TableEntry {
    bench.keyed(table, vec![exact(bench.key_id(table, INDEX), &index.to_be_bytes())])
}

fn key(bench: &Bench, table: &str, index: u32, bytes: &[u8]) -> pb::TableEntry {
    let data = vec![stream(bench.field(table, KEY), bytes)];
    with_data(numbered(bench, table, index), 0, data)
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

/// The numbers of the keys that are set; nothing but that is returned.
async fn set(bench: &Bench, table: &str) -> Vec<u32> {
    let rows = bench.read(bench.all(table)).await.expect("is read");
    let number = |row: &pb::TableEntry| {
        let data = row.data.as_ref().expect("has data");
        assert_eq!(data.fields.len(), 1, "{row:?}");
        assert_eq!(value(row, bench.field(table, IS_SET)), Wire::BoolVal(true));
        let Some(pb::table_entry::Value::Key(key)) = &row.value else {
            panic!("{row:?} has no key");
        };
        let Some(pb::key_field::MatchType::Exact(index)) = &key.fields[0].match_type else {
            panic!("{row:?} has no exact key");
        };
        u32::from_be_bytes(index.value.as_ref().try_into().expect("four bytes"))
    };
    rows.iter().map(number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_inserted_modified_and_deleted_and_no_read_returns_them() {
    let bench = bench().await;
    let _session = bench.bound(1).await;
    let table = "I.tags";
    assert_eq!(answer(&bench, 1), (1, 0, 1), "no key");
    let first = || key(&bench, table, 1, &siphash_key());
    assert_eq!(bench.modify(first()).await, Err(Code::NotFound));
    assert_eq!(bench.delete(numbered(&bench, table, 1)).await, Err(Code::NotFound));
    bench.insert(first()).await.expect("fits");
    assert_eq!(answer(&bench, 1), (0, HASH, 2));
    assert_eq!(bench.insert(first()).await, Err(Code::AlreadyExists));
    let upsert = |entry| bench.one(Type::InsertOrModify, Entity::TableEntry(entry));
    upsert(key(&bench, table, 3, &[7; 16])).await.expect("fits");
    upsert(key(&bench, table, 1, &[7; 16])).await.expect("fits");
    let (status, hash, _) = answer(&bench, 1);
    assert!(status == 0 && hash != HASH && hash != 0);
    assert_eq!(set(&bench, table).await, [1, 3]);
    assert!(set(&bench, "I.ciphers").await.is_empty());
    assert_eq!(bench.read(numbered(&bench, table, 3)).await.expect("is set").len(), 1);
    assert_eq!(bench.read(numbered(&bench, table, 2)).await, Err(Code::NotFound));
    // Asking for the key itself returns no more.
    let asked = with_data(
        numbered(&bench, table, 3),
        0,
        vec![field(bench.field(table, KEY), Wire::BoolVal(true))],
    );
    let found = bench.read(asked).await.expect("is set");
    assert!(
        found
            .iter()
            .all(|e| e.data.as_ref().is_none_or(|d| d.fields.is_empty())),
        "{found:?}"
    );
    bench.delete(numbered(&bench, table, 1)).await.expect("is set");
    assert_eq!(answer(&bench, 1).0, 1, "no key");
    assert_eq!(set(&bench, table).await, [3]);
    bench.delete(bench.all(table)).await.expect("is cleared");
    assert!(set(&bench, table).await.is_empty());
    // Removing the key of an association resets it.
    bench.delete(numbered(&bench, "I.numbers", 1)).await.expect("is reset");
    assert_eq!(answer(&bench, 1).2, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_instance_with_keys_has_a_table_and_hidden_ones_have_none() {
    let bench = bench().await;
    let tables = bench.info.tables.iter().filter(|t| t.table_type == TABLE_TYPE);
    let found: Vec<(&str, u64)> = tables.map(|t| (t.name.as_str(), t.size)).collect();
    assert_eq!(
        found,
        [("pipe.I.tags", 4), ("pipe.I.ciphers", 2), ("pipe.I.numbers", 4)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_keys_are_refused_by_their_place_and_never_shown() {
    let bench = bench().await;
    let _session = bench.bound(1).await;
    let (table, secret) = ("I.tags", [0xab; 17]);
    let is_set = field(bench.field(table, IS_SET), Wire::BoolVal(true));
    let text = field(bench.field(table, KEY), Wire::StrVal("abab".to_owned()));
    for (ty, entry, expected) in [
        (
            Type::Insert,
            key(&bench, table, 4, &[1; 16]),
            "there is no key 4: the instance has keys 0 to 3",
        ),
        (
            Type::Insert,
            key(&bench, table, 0, &secret),
            "a key of 17 bytes, but 16 are expected",
        ),
        (
            Type::Insert,
            key(&bench, table, 0, &[]),
            "field `$KEY` is empty; a key is removed by DELETE",
        ),
        (Type::Insert, numbered(&bench, table, 0), "field `$KEY` is missing"),
        (
            Type::Insert,
            with_data(numbered(&bench, table, 0), 0, vec![is_set]),
            "field `$IS_SET` cannot be written",
        ),
        (
            Type::Insert,
            with_data(numbered(&bench, table, 0), 0, vec![text]),
            "field `$KEY` is given as bytes",
        ),
        (
            Type::Insert,
            with_data(numbered(&bench, table, 0), 0, vec![stream(9, &secret)]),
            "no data field with the id 9",
        ),
        (
            Type::ModifyInc,
            key(&bench, table, 0, &[1; 16]),
            "a key is set by INSERT, MODIFY or INSERT_OR_MODIFY",
        ),
        (
            Type::Modify,
            bench.default_entry(table),
            "the table has no default entry",
        ),
        (
            Type::Insert,
            key(&bench, "I.numbers", 0, &secret),
            "but 0 (which resets the association) are expected",
        ),
    ] {
        let refused = bench.write(vec![update(ty, Entity::TableEntry(entry.clone()))]).await;
        let refused = refused.expect_err("is wrong");
        let shown = format!("{refused:?} {:?}", details(&refused));
        assert!(shown.contains(expected), "{entry:?}: {shown}");
        assert!(
            !shown.contains("171, 171") && !shown.to_ascii_lowercase().contains("abab"),
            "{shown}"
        );
    }
    assert!(set(&bench, table).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_fails_sets_no_key_and_resets_no_association() {
    let bench = bench().await;
    let _session = bench.bound(1).await;
    bench
        .insert(key(&bench, "I.tags", 0, &siphash_key()))
        .await
        .expect("fits");
    assert_eq!(answer(&bench, 0), (0, HASH, 1));
    let batch = |last: &[u8]| {
        vec![
            update(Type::Delete, Entity::TableEntry(numbered(&bench, "I.numbers", 0))),
            update(Type::Modify, Entity::TableEntry(key(&bench, "I.tags", 0, &[1; 16]))),
            update(Type::Insert, Entity::TableEntry(key(&bench, "I.tags", 1, last))),
        ]
    };
    assert!(
        bench
            .write_with(batch(&[1; 15]), Atomicity::RollbackOnError)
            .await
            .is_err()
    );
    assert_eq!(answer(&bench, 0), (0, HASH, 2));
    bench
        .write_with(batch(&[1; 16]), Atomicity::RollbackOnError)
        .await
        .expect("fits");
    let (status, hash, number) = answer(&bench, 0);
    assert!(status == 0 && hash != HASH && number == 1);
}
