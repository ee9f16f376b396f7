//! Table entries: what is written is what packets meet and what is read back.

use crate::common::*;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;

#[tokio::test(flavor = "multi_thread")]
async fn an_exact_entry_is_met_by_packets_and_read_back_as_it_was_written() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let entry = bench.entry("exact_table", vec![exact(1, &[0x12, 0x34])], 77);
    assert_eq!(bench.ask(1, 0, 0x1234), None);
    bench.insert(Entity::TableEntry(entry.clone())).await.expect("fits");
    assert_eq!(bench.ask(1, 0, 0x1234), Some(77));
    let all = pb::TableEntry {
        table_id: entry.table_id,
        ..pb::TableEntry::default()
    };
    assert_eq!(
        bench.read(Entity::TableEntry(all.clone())).await,
        [Entity::TableEntry(entry.clone())]
    );
    assert_eq!(
        bench.insert(Entity::TableEntry(entry.clone())).await,
        Err(Code::AlreadyExists)
    );
    let other = bench.entry("exact_table", vec![exact(1, &[0, 0, 0x12, 0x34])], 78);
    bench.modify(Entity::TableEntry(other)).await.expect("is there");
    assert_eq!(bench.ask(1, 0, 0x1234), Some(78));
    bench.delete(Entity::TableEntry(entry.clone())).await.expect("is there");
    assert_eq!(bench.ask(1, 0, 0x1234), None);
    assert_eq!(
        bench.delete(Entity::TableEntry(entry.clone())).await,
        Err(Code::NotFound)
    );
    assert_eq!(bench.modify(Entity::TableEntry(entry)).await, Err(Code::NotFound));
    assert!(bench.read(Entity::TableEntry(all)).await.is_empty());
}
