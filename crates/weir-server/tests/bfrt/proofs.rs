//! Several clients and packets at a time: no packet and no read meets half of a batch, and batches have one order.

use crate::common::*;
use crate::shared::{ENTRIES, FLIPS, MEMBERS, NEVER, Operation, Watcher, serialisable};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_proto::bfrt_proto::write_request::Atomicity;
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

/// Everything that gives the five answers of a packet. Those of the ternary table are removed and added with another priority.
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

/// A batch that fails at its very end, when everything else is done.
fn failing(bench: &Bench, before: u32) -> Vec<pb::Update> {
    // As odd or even as the value after `before` would be.
    let never = if before.is_multiple_of(2) { NEVER } else { NEVER - 1 };
    let mut updates = flip(bench, never, false);
    updates.push(update(Type::Insert, Entity::TableEntry(of_exact(bench, 1, 0))));
    updates
}

#[tokio::test(flavor = "multi_thread")]
async fn no_packet_of_ten_thousand_meets_a_mixture_of_two_batches() {
    let bench = Bench::of(FLIPS, Config::default(), Clone::clone).await;
    let first = bench.write_with(flip(&bench, 1, true), Atomicity::DataplaneAtomic);
    first.await.expect("is new");
    let watcher = Watcher::start(bench.switch.clone());
    let mut value = 1u32;
    while !watcher.is_done() || value < 200 {
        let atomicity = match value % 4 / 2 {
            0 => Atomicity::DataplaneAtomic,
            _ => Atomicity::RollbackOnError,
        };
        if value.is_multiple_of(3) {
            let batch = failing(&bench, value);
            let length = batch.len();
            let failed = bench.write_with(batch, atomicity).await.expect_err("the last fails");
            let codes = codes(&failed);
            assert_eq!((codes.len(), codes.last()), (length, Some(&6)));
        }
        value += 1;
        let flipped = bench.write_with(flip(&bench, value, false), atomicity).await;
        flipped.expect("is there");
    }
    let seen = watcher.stop();
    assert!(
        seen.changes > 100 && seen.last > 100,
        "packets and batches did not meet: {seen:?}"
    );
}

const CELLS: u16 = 64;

/// A batch that writes a value to entries of two tables.
fn cells(bench: &Bench, value: u32, ty: Type) -> Vec<pb::Update> {
    let entry = |cell| match cell % 2 {
        0 => of_exact(bench, cell, value),
        _ => of_lpm(bench, cell, value),
    };
    (0..CELLS)
        .map(|cell| update(ty, Entity::TableEntry(entry(cell))))
        .collect()
}

/// The value that all entries have.
async fn read_value(bench: &Bench) -> u32 {
    let tables = ["In.exact_keys", "In.lpm_keys"];
    let queries = tables.map(|t| Entity::TableEntry(bench.all(t)));
    let (responses, status) = bench.read_all(queries.to_vec()).await;
    assert!(status.is_none(), "{status:?}");
    let entities = responses.into_iter().flat_map(|r| r.entities).filter_map(|e| e.entity);
    let entries = entities.filter_map(|e| match e {
        Entity::TableEntry(entry) if !entry.is_default_entry => Some(entry),
        _ => None,
    });
    let values: Vec<u32> = entries.map(|e| number(&e, 1) as u32).collect();
    assert_eq!(values.len(), usize::from(CELLS));
    assert!(
        values.iter().all(|v| *v == values[0]),
        "half of a Write is read: {values:?}"
    );
    values[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_of_several_clients_have_one_order_and_reads_show_whole_ones() {
    // Reads take many steps, so that writes could come in between.
    let config = Config {
        read_chunk: 8,
        ..Config::default()
    };
    let bench = Arc::new(Bench::of(FLIPS, config, Clone::clone).await);
    let begin = Instant::now();
    bench.write(cells(&bench, 0, Type::Insert)).await.expect("is new");
    let mut history = vec![Operation {
        value: 0,
        is_write: true,
        begin,
        end: Instant::now(),
    }];
    let values = Arc::new(AtomicU32::new(1));
    let mut clients = Vec::new();
    for number in 0..6usize {
        let client = connect(bench.address).await;
        let (bench, values) = (Arc::clone(&bench), Arc::clone(&values));
        clients.push(tokio::spawn(async move {
            let mut history = Vec::new();
            for round in 0..60 {
                let begin = Instant::now();
                let (value, is_write) = if (number + round) % 2 == 0 {
                    let value = values.fetch_add(1, Ordering::Relaxed);
                    let mut updates = cells(&bench, value, Type::Modify);
                    let fails = round % 5 == 0;
                    if fails {
                        updates.extend(cells(&bench, value, Type::Insert));
                    }
                    // With CONTINUE_ON_ERROR too: the batch is one step of the switch.
                    let atomicity = [
                        Atomicity::DataplaneAtomic,
                        Atomicity::RollbackOnError,
                        Atomicity::ContinueOnError,
                    ];
                    let atomicity = if fails {
                        atomicity[round % 2]
                    } else {
                        atomicity[round % 3]
                    };
                    let written = client.clone().write(write_request(updates, atomicity)).await;
                    assert_eq!(written.is_err(), fails, "{written:?}");
                    if fails {
                        // Whoever reads this value later reads what nobody has written.
                        continue;
                    }
                    (value, true)
                } else {
                    (read_value(&bench).await, false)
                };
                let end = Instant::now();
                history.push(Operation {
                    value,
                    is_write,
                    begin,
                    end,
                });
            }
            history
        }));
    }
    for client in clients {
        history.extend(client.await.expect("no client has met half of a Write"));
    }
    let writes = history.iter().filter(|o| o.is_write).count();
    assert!(writes > 100 && history.len() > 250);
    assert_eq!(serialisable(&history), Ok(()));
}
