//! Tests of the tables of custom CRCs.

use crate::common::{Bench, field, stream, value, with_data};
use tonic::Code;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_server::bfrt::Config;

const TABLE: &str = "$hash.crc32_custom";

async fn bench(defines: &str) -> Bench {
    let source = format!("{defines}\n{}", include_str!("../p4/custom_crc.p4"));
    Bench::of(&source, Config::default(), Clone::clone).await
}

fn answer(bench: &Bench) -> Vec<u8> {
    bench.switch.send(1, b"123456789").remove(0).bytes
}

fn polynomial(bench: &Bench, bytes: &[u8]) -> pb::DataField {
    stream(bench.field(TABLE, "polynomial"), bytes)
}

/// The entry with these fields, addressed as the default entry.
fn default(bench: &Bench, fields: Vec<pb::DataField>) -> pb::TableEntry {
    pb::TableEntry {
        is_default_entry: true,
        ..with_data(bench.all(TABLE), 0, fields)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_modified_read_and_put_back() {
    let bench = bench("#define CRC32").await;
    let _session = bench.bound(1).await;
    assert_eq!(answer(&bench), [0xcb, 0xf4, 0x39, 0x26]);
    // Missing fields are unchanged.
    let castagnoli = polynomial(&bench, &[0x1e, 0xdc, 0x6f, 0x41]);
    bench
        .modify(default(&bench, vec![castagnoli.clone()]))
        .await
        .expect("fits");
    assert_eq!(answer(&bench), [0xe3, 0x06, 0x92, 0x83]);
    let read = bench.read(bench.all(TABLE)).await.expect("is read");
    assert_eq!(read.len(), 1);
    let returned = |name: &str| value(&read[0], bench.field(TABLE, name));
    assert_eq!(Some(returned("polynomial")), castagnoli.value);
    assert_eq!(returned("initial"), Wire::Stream(vec![0xff; 4].into()));
    assert_eq!(returned("reflect_out"), Wire::BoolVal(true));
    // Without the final exclusive or, the result is the complement. An empty key is equivalent to
    // none.
    let off = stream(bench.field(TABLE, "xor_out"), &[0; 4]);
    let keyed = with_data(bench.keyed(TABLE, Vec::new()), 0, vec![off]);
    bench
        .one(Type::InsertOrModify, Entity::TableEntry(keyed))
        .await
        .expect("fits");
    assert_eq!(answer(&bench), [0x1c, 0xf9, 0x6d, 0x7c]);
    // Deleting the entry, and clearing the table.
    bench.delete(default(&bench, Vec::new())).await.expect("is put back");
    assert_eq!(answer(&bench), [0xcb, 0xf4, 0x39, 0x26]);
    bench.modify(default(&bench, vec![castagnoli])).await.expect("fits");
    bench.delete(bench.all(TABLE)).await.expect("is cleared");
    assert_eq!(answer(&bench), [0xcb, 0xf4, 0x39, 0x26]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calculations_have_tables_with_an_entry_once_they_are_set() {
    const OWN: &str = "$hash.calc_1";
    let bench = Bench::of(include_str!("../p4/calculations.p4"), Config::default(), Clone::clone).await;
    let _session = bench.bound(1).await;
    let before = answer(&bench);
    assert_eq!(bench.read(bench.all(OWN)).await.expect("is read").len(), 0);
    let castagnoli = stream(bench.field(OWN, "polynomial"), &[0x1e, 0xdc, 0x6f, 0x41]);
    let entry = |fields| pb::TableEntry {
        is_default_entry: true,
        ..with_data(bench.all(OWN), 0, fields)
    };
    bench.modify(entry(vec![castagnoli.clone()])).await.expect("fits");
    let after = answer(&bench);
    assert_eq!(after[8..12], [0xe3, 0x06, 0x92, 0x83]);
    assert_eq!((&after[..8], &after[12..]), (&before[..8], &before[12..]));
    let read = bench.read(bench.all(OWN)).await.expect("is read");
    assert_eq!(Some(value(&read[0], bench.field(OWN, "polynomial"))), castagnoli.value);
    bench.delete(entry(Vec::new())).await.expect("is put back");
    assert_eq!(answer(&bench), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_programs_that_use_a_custom_crc_have_its_table() {
    for (defines, expected) in [("#define CRC16", &["$hash.crc16_custom", "$hash.calc"][..]), ("", &[])] {
        let bench = bench(defines).await;
        let tables = bench.info.tables.iter().map(|t| t.name.as_str());
        let found: Vec<&str> = tables.filter(|n| n.starts_with("$hash.")).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_parameters_are_refused() {
    let bench = bench("#define CRC32").await;
    let _session = bench.bound(1).await;
    let one = || polynomial(&bench, &[0, 0, 0, 1]);
    assert_eq!(
        bench.insert(with_data(bench.all(TABLE), 0, vec![one()])).await,
        Err(Code::Unimplemented)
    );
    for entry in [
        default(&bench, Vec::new()),
        default(&bench, vec![polynomial(&bench, &[1, 0, 0, 0, 0])]),
        default(&bench, vec![field(99, Wire::BoolVal(true))]),
        with_data(bench.keyed(TABLE, vec![crate::common::exact(1, &[0])]), 0, vec![one()]),
    ] {
        assert_eq!(bench.modify(entry).await, Err(Code::InvalidArgument));
    }
    assert_eq!(answer(&bench), [0xcb, 0xf4, 0x39, 0x26]);
}
