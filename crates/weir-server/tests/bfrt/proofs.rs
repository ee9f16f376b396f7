//! Tests with concurrent clients and packets: no packet and no Read sees half of a batch, and
//! batches have one order.

use crate::common::*;
use crate::shared::batches::How;
use crate::shared::proofs::{self, CELLS, Cells};
use crate::shared::{ENTRIES, FLIPS, MEMBERS};
use tonic::Status;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_server::bfrt::Config;

const MEMBER: u32 = 65539;

fn calls(bench: &Bench, table: &str, action: &str, key: Vec<pb::KeyField>, value: u32) -> pb::TableEntry {
    let fields = vec![stream(1, &value.to_be_bytes())];
    with_data(bench.keyed(table, key), bench.action(table, action), fields)
}

fn of_exact(bench: &Bench, key: u16, value: u32) -> pb::TableEntry {
    calls(
        bench,
        "In.exact_keys",
        "set_exact",
        vec![exact(1, &key.to_be_bytes())],
        value,
    )
}

fn of_lpm(bench: &Bench, key: u16, value: u32) -> pb::TableEntry {
    calls(
        bench,
        "In.lpm_keys",
        "set_lpm",
        vec![lpm(1, &key.to_be_bytes(), 16)],
        value,
    )
}

/// All updates that give the five answers of a packet. Entries of the ternary table are deleted and
/// inserted with another priority.
fn flip(bench: &Bench, value: u32, is_first: bool) -> Vec<pb::Update> {
    let ty = if is_first { Type::Insert } else { Type::Modify };
    let with = |ty, entry| update(ty, Entity::TableEntry(entry));
    let mut updates = Vec::new();
    for key in 0..ENTRIES {
        updates.push(with(ty, of_exact(bench, key, value)));
        updates.push(with(ty, of_lpm(bench, key, value)));
        let of_ternary = |priority: u32| {
            let priority_id = bench.key_id("In.ternary_keys", "$MATCH_PRIORITY");
            let key = vec![
                ternary(1, &key.to_be_bytes(), &[0xff, 0xff]),
                exact(priority_id, &priority.to_be_bytes()),
            ];
            calls(bench, "In.ternary_keys", "set_ternary", key, value)
        };
        let priority = |value: u32| 1 + value % 2;
        if !is_first {
            let mut before = of_ternary(priority(value.wrapping_add(1)));
            before.data = None;
            updates.push(with(Type::Delete, before));
        }
        updates.push(with(Type::Insert, of_ternary(priority(value))));
    }
    for id in 1..=u32::from(MEMBERS) {
        let key = vec![exact(MEMBER, &id.to_be_bytes())];
        updates.push(with(ty, calls(bench, "In.profile", "set_member", key, value)));
        if is_first {
            let key = vec![exact(1, &(id as u16 - 1).to_be_bytes())];
            let entry = bench.keyed("In.member_keys", key);
            let entry = with_data(entry, 0, vec![stream(MEMBER, &id.to_be_bytes())]);
            updates.push(with(ty, entry));
        }
    }
    let action = bench.action("In.no_keys", "set_default");
    let default = with_data(
        bench.default_entry("In.no_keys"),
        action,
        vec![stream(1, &value.to_be_bytes())],
    );
    updates.push(with(Type::Modify, default));
    updates
}

#[tokio::test(flavor = "multi_thread")]
async fn no_packet_of_ten_thousand_sees_a_mixture_of_two_batches() {
    let bench = Bench::of(FLIPS, Config::default(), Clone::clone).await;
    let first = bench.write_with(flip(&bench, 1, true), atomicity(How::Atomic));
    first.await.expect("is new");
    let flipped = async |value, how, fails| {
        let mut batch = flip(&bench, value, false);
        if fails {
            // Executed last, after all else.
            batch.push(update(Type::Insert, Entity::TableEntry(of_exact(&bench, 1, 0))));
        }
        let length = batch.len();
        match bench.write_with(batch, atomicity(how)).await {
            Ok(_) => assert!(!fails, "the last is there already"),
            Err(status) => {
                let codes = codes(&status);
                assert!(fails && codes.len() == length && codes.last() == Some(&6), "{status:?}");
            }
        }
    };
    proofs::packets_meet_whole_batches(&bench.switch, flipped).await;
}

/// A batch that writes one value to entries of two tables.
fn cells(bench: &Bench, value: u32, ty: Type) -> Vec<pb::Update> {
    let entry = |cell| match cell % 2 {
        0 => of_exact(bench, cell, value),
        _ => of_lpm(bench, cell, value),
    };
    (0..CELLS)
        .map(|cell| update(ty, Entity::TableEntry(entry(cell))))
        .collect()
}

impl Cells for Bench {
    async fn write(&self, value: u32, how: How, fails: bool) -> Result<(), Status> {
        let mut updates = cells(self, value, Type::Modify);
        if fails {
            updates.extend(cells(self, value, Type::Insert));
        }
        self.write_with(updates, atomicity(how)).await.map(|_| ())
    }

    async fn read(&self) -> Vec<u32> {
        let tables = ["In.exact_keys", "In.lpm_keys"];
        let queries = tables.map(|t| Entity::TableEntry(self.all(t)));
        let (responses, status) = self.read_all(queries.to_vec()).await;
        assert!(status.is_none(), "{status:?}");
        let entities = responses.into_iter().flat_map(|r| r.entities).filter_map(|e| e.entity);
        let entries = entities.filter_map(|e| match e {
            Entity::TableEntry(entry) if !entry.is_default_entry => Some(entry),
            _ => None,
        });
        entries.map(|e| number(&e, 1) as u32).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_of_several_clients_have_one_order_and_reads_show_whole_ones() {
    // Reads of many steps, between which writes could be executed, or of one.
    for read_chunk in [8, 1024] {
        let config = Config {
            read_chunk,
            ..Config::default()
        };
        let bench = Bench::of(FLIPS, config, Clone::clone).await;
        bench.write(cells(&bench, 0, Type::Insert)).await.expect("is new");
        let client = async || Bench {
            client: connect(bench.address).await,
            ..bench.clone()
        };
        proofs::clients_see_one_order(client).await;
    }
}
