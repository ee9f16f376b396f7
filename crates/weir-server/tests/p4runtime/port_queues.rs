//! Queues of ports, by an `ExternEntry`.

use crate::common::*;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::prost::Message;
use weir_proto::prost_types::Any;
use weir_proto::weir::v1::PortQueues;
use weir_server::p4rt::Config;

const SOURCE: &str = include_str!("../p4/custom_crc.p4");

fn entry(extern_id: u32, queues: Option<PortQueues>) -> Entity {
    Entity::ExternEntry(pb::ExternEntry {
        extern_type_id: 0x83,
        extern_id,
        entry: queues.map(|queues| Any {
            type_url: "type.googleapis.com/weir.v1.PortQueues".to_owned(),
            value: queues.encode_to_vec(),
        }),
    })
}

fn queues(bits_per_second: u64, packets_per_second: u64, capacity: u32) -> Option<PortQueues> {
    Some(PortQueues {
        bits_per_second,
        packets_per_second,
        capacity,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_and_capacities_are_written_read_and_reset() {
    let bench = Bench::new(Some(compile(SOURCE)), Config::default()).await;
    let _primary = bench.primary().await;
    bench
        .modify(entry(0x8300_0002, queues(10_000_000, 0, 16)))
        .await
        .expect("fits");
    bench.modify(entry(0x8300_0001, queues(0, 50, 0))).await.expect("fits");
    let default = 64;
    let both = [
        entry(0x8300_0001, queues(0, 50, default)),
        entry(0x8300_0002, queues(10_000_000, 0, 16)),
    ];
    assert_eq!(bench.read(entry(0, None)).await, both);
    assert_eq!(bench.read(entry(0x8300_0002, None)).await, both[1..]);
    // Of a port that was not set: what it has.
    assert_eq!(
        bench.read(entry(0x8300_0005, None)).await,
        [entry(0x8300_0005, queues(0, 0, default))]
    );
    bench.delete(entry(0x8300_0002, None)).await.expect("is there");
    assert_eq!(
        bench.read(entry(0x8300_0002, None)).await,
        [entry(0x8300_0002, queues(0, 0, default))]
    );
    // Reads of all externs have what P4Info lists, and no queues.
    let all = Entity::ExternEntry(pb::ExternEntry::default());
    assert_eq!(bench.read(all).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_are_no_queues_are_refused() {
    let bench = Bench::new(Some(compile(SOURCE)), Config::default()).await;
    let _primary = bench.primary().await;
    let of_other_type = Entity::ExternEntry(pb::ExternEntry {
        extern_type_id: 0x83,
        extern_id: 0x8300_0001,
        entry: Some(Any {
            type_url: "type.googleapis.com/p4.v1.P4Data".to_owned(),
            value: Vec::new(),
        }),
    });
    for entity in [
        entry(0x8200_0001, queues(1, 0, 0)),
        entry(0x8300_0001, None),
        entry(0x8300_0001, queues(1, 0, (1 << 20) + 1)),
        // Ports of v1model have 9 bits.
        entry(0x8300_0200, queues(1, 0, 0)),
        of_other_type,
    ] {
        assert_eq!(bench.modify(entity).await, Err(Code::InvalidArgument));
    }
    assert_eq!(
        bench.insert(entry(0x8300_0001, queues(1, 0, 0))).await,
        Err(Code::InvalidArgument)
    );
}
