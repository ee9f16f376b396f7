//! Tests with malformed requests: every one gets an error or a valid answer, and the server keeps
//! serving.

use crate::common::{Bench, target, update, write_request};
use tonic::Request;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::key_field::MatchType;
use weir_proto::bfrt_proto::write_request::Atomicity;

/// Random numbers with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 27)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self) -> prost_bytes::Bytes {
        let length = [0, 1, 2, 4, 8, 16, 17][self.below(7)];
        (0..length)
            .map(|_| if self.below(2) == 0 { 0 } else { self.next() as u8 })
            .collect()
    }
}

use weir_proto::prost::bytes as prost_bytes;

fn odd_key(n: &mut Numbers, ids: &[u32]) -> pb::KeyField {
    use pb::key_field::{Exact, Lpm, Optional, Range, Ternary};
    let field_id = ids[n.below(ids.len())];
    let match_type = match n.below(6) {
        0 => None,
        1 => Some(MatchType::Exact(Exact { value: n.bytes() })),
        2 => Some(MatchType::Lpm(Lpm {
            value: n.bytes(),
            prefix_len: n.next() as i32 % 70,
        })),
        3 => Some(MatchType::Ternary(Ternary {
            value: n.bytes(),
            mask: n.bytes(),
        })),
        4 => Some(MatchType::Range(Range {
            low: n.bytes(),
            high: n.bytes(),
        })),
        _ => Some(MatchType::Optional(Optional {
            value: n.bytes(),
            is_valid: true,
        })),
    };
    pb::KeyField { field_id, match_type }
}

fn odd_field(n: &mut Numbers, ids: &[u32]) -> pb::DataField {
    let value = match n.below(9) {
        0 => None,
        1 => Some(Wire::FloatVal(f32::from_bits(n.next() as u32))),
        2 => Some(Wire::StrVal("BF_SPEED_100G".into())),
        3 => Some(Wire::IntArrVal(pb::data_field::IntArray {
            val: (0..n.below(4)).map(|_| n.next() as u32).collect(),
        })),
        4 => Some(Wire::BoolArrVal(pb::data_field::BoolArray {
            val: vec![true; n.below(4)],
        })),
        5 => Some(Wire::ContainerArrVal(pb::data_field::ContainerArray::default())),
        6 => Some(Wire::BoolVal(n.below(2) == 0)),
        7 => Some(Wire::StrArrVal(pb::data_field::StrArray::default())),
        _ => Some(Wire::Stream(n.bytes())),
    };
    pb::DataField {
        field_id: ids[n.below(ids.len())],
        value,
    }
}

#[tokio::test]
async fn malformed_requests_get_errors_and_the_server_keeps_serving() {
    let bench = Bench::new().await;
    let mut n = Numbers(1);
    let tables: Vec<&weir_proto::bfrt_info::Table> = bench.info.tables.iter().chain(&bench.fixed.tables).collect();
    for round in 0..60 {
        let mut updates = Vec::new();
        let mut queries = Vec::new();
        for _ in 0..100 {
            let table = tables[n.below(tables.len())];
            let mut ids: Vec<u32> = table.key.iter().map(|k| k.id).collect();
            ids.extend([0, 1, 2, 3, 65537, 65539, 65540, u32::MAX]);
            let mut fields: Vec<u32> = (0..34).collect();
            fields.extend(65537..65582);
            let actions: Vec<u32> = table
                .action_specs
                .iter()
                .flatten()
                .map(|a| a.id)
                .chain([0, 1, 7])
                .collect();
            let key = (0..n.below(4)).map(|_| odd_key(&mut n, &ids)).collect();
            let data = (0..n.below(5)).map(|_| odd_field(&mut n, &fields)).collect();
            let entry = pb::TableEntry {
                table_id: if n.below(20) == 0 { n.next() as u32 } else { table.id },
                value: match n.below(8) {
                    0 => None,
                    1 => Some(pb::table_entry::Value::HandleId(n.next() as u32 % 5)),
                    _ => Some(pb::table_entry::Value::Key(pb::TableKey { fields: key })),
                },
                is_default_entry: n.below(6) == 0,
                data: (n.below(8) > 0).then(|| pb::TableData {
                    action_id: actions[n.below(actions.len())],
                    fields: data,
                }),
                ..pb::TableEntry::default()
            };
            queries.push(Entity::TableEntry(entry.clone()));
            updates.push(pb::Update {
                r#type: n.below(9) as i32,
                entity: Some(pb::Entity {
                    entity: Some(Entity::TableEntry(entry)),
                }),
            });
        }
        let atomicity = [
            Atomicity::ContinueOnError,
            Atomicity::RollbackOnError,
            Atomicity::DataplaneAtomic,
        ][round % 3];
        let _ = bench.write_with(updates, atomicity).await;
        let (responses, _) = bench.read_all(queries).await;
        assert_eq!(responses.len(), 1);
        let returned = responses
            .iter()
            .flat_map(|r| &r.entities)
            .filter_map(|e| e.entity.as_ref());
        for entity in returned {
            let Entity::TableEntry(entry) = entity else { continue };
            let fields = entry.data.iter().flat_map(|d| &d.fields);
            assert!(
                fields.clone().all(|f| f.value.is_some()),
                "a field without a value: {entry:?}"
            );
        }
    }
    for table in ["In.exact_keys", "In.group_keys", "In.selector"] {
        let _ = bench.delete(bench.all(table)).await;
    }
    assert_eq!(bench.insert(bench.entry(1, 2)).await, Ok(()));
}

#[tokio::test]
async fn updates_of_no_sort_are_refused_one_by_one() {
    let bench = Bench::new().await;
    let entry = Entity::TableEntry(bench.entry(1, 2));
    let unspecified = pb::Update {
        r#type: 0,
        ..update(pb::update::Type::Insert, entry.clone())
    };
    let unknown = pb::Update {
        r#type: 99,
        ..unspecified.clone()
    };
    let empty = pb::Update::default();
    let usage = update(pb::update::Type::Insert, Entity::TableUsage(pb::TableUsage::default()));
    let refused = bench.write(vec![unspecified, unknown, empty, usage]).await.unwrap_err();
    assert_eq!(crate::common::codes(&refused), [3, 3, 12, 12]);
    let request = pb::WriteRequest {
        atomicity: 9,
        ..write_request(Vec::new(), Atomicity::ContinueOnError)
    };
    assert_eq!(
        bench.write_request(Request::new(request)).await.unwrap_err().code(),
        tonic::Code::InvalidArgument
    );
    let request = pb::WriteRequest {
        target: Some(pb::TargetDevice {
            device_id: 5,
            ..target(0xffff)
        }),
        ..write_request(Vec::new(), Atomicity::ContinueOnError)
    };
    assert_eq!(
        bench.write_request(Request::new(request)).await.unwrap_err().code(),
        tonic::Code::NotFound
    );
}
