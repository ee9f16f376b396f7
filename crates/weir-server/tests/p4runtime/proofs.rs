//! Several clients and packets at a time: no packet and no read meets half of a batch, and batches have one order.

use crate::common::*;
use crate::shared::{ENTRIES, FLIPS, MEMBERS, NEVER, Operation, Watcher, serialisable};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_server::p4rt::Config;

fn action(bench: &Bench, name: &str, value: u32) -> pb::Action {
    pb::Action {
        action_id: bench.action(name),
        params: vec![pb::action::Param {
            param_id: 1,
            value: shortest(value),
        }],
    }
}

fn entry(bench: &Bench, table: &str, key: pb::FieldMatch, action: pb::table_action::Type) -> pb::TableEntry {
    pb::TableEntry {
        table_id: bench.table(table),
        r#match: vec![key],
        action: Some(pb::TableAction { r#type: Some(action) }),
        ..pb::TableEntry::default()
    }
}

fn calls(bench: &Bench, name: &str, value: u32) -> pb::table_action::Type {
    pb::table_action::Type::Action(action(bench, name, value))
}

/// Everything that gives the five answers of a packet. Those of the ternary table are removed and added with another priority.
fn flip(bench: &Bench, value: u32, is_first: bool) -> Vec<pb::Update> {
    let ty = if is_first { Type::Insert } else { Type::Modify };
    let mut updates = Vec::new();
    for key in 0..ENTRIES {
        let bytes = shortest(key.into());
        let of_exact = entry(bench, "exact_keys", exact(1, &bytes), calls(bench, "set_exact", value));
        updates.push(update(ty, Entity::TableEntry(of_exact)));
        let of_lpm = entry(bench, "lpm_keys", lpm(1, &bytes, 16), calls(bench, "set_lpm", value));
        updates.push(update(ty, Entity::TableEntry(of_lpm)));
        let of_ternary = |priority| pb::TableEntry {
            priority,
            ..entry(
                bench,
                "ternary_keys",
                ternary(1, &bytes, &[0xff, 0xff]),
                calls(bench, "set_ternary", value),
            )
        };
        // Each value has a priority of its own; a batch that fails comes between two values, and has the next one's.
        let priority = |value: u32| 1 + (value % 2) as i32;
        if !is_first {
            let before = priority(value.wrapping_add(1));
            updates.push(update(Type::Delete, Entity::TableEntry(of_ternary(before))));
        }
        updates.push(update(Type::Insert, Entity::TableEntry(of_ternary(priority(value)))));
    }
    for id in 1..=u32::from(MEMBERS) {
        let member = pb::ActionProfileMember {
            action_profile_id: bench.id("profile"),
            member_id: id,
            action: Some(action(bench, "set_member", value)),
        };
        updates.push(update(ty, Entity::ActionProfileMember(member)));
        if is_first {
            let of_member = pb::table_action::Type::ActionProfileMemberId(id);
            let entry = entry(bench, "member_keys", exact(1, &shortest(id - 1)), of_member);
            updates.push(update(ty, Entity::TableEntry(entry)));
        }
    }
    let default = pb::TableEntry {
        table_id: bench.table("no_keys"),
        is_default_action: true,
        action: Some(pb::TableAction {
            r#type: Some(calls(bench, "set_default", value)),
        }),
        ..pb::TableEntry::default()
    };
    updates.push(update(Type::Modify, Entity::TableEntry(default)));
    updates
}

/// A batch that fails at its very end, when everything else is done.
fn failing(bench: &Bench, before: u32) -> Vec<pb::Update> {
    // As odd or even as the value after `before` would be.
    let never = if before.is_multiple_of(2) { NEVER } else { NEVER - 1 };
    let mut updates = flip(bench, never, false);
    let there = entry(bench, "exact_keys", exact(1, &[1]), calls(bench, "set_exact", 0));
    updates.push(update(Type::Insert, Entity::TableEntry(there)));
    updates
}

#[tokio::test(flavor = "multi_thread")]
async fn no_packet_of_ten_thousand_meets_a_mixture_of_two_batches() {
    let bench = Bench::new(Some(compile(FLIPS)), Config::default()).await;
    let _primary = bench.primary().await;
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
            let failed = bench.write_with(failing(&bench, value), atomicity).await;
            assert!(codes(&failed.expect_err("the last fails")).contains(&tonic::Code::AlreadyExists));
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

const CELLS: u32 = 64;

/// A batch that writes a value to entries of two tables.
fn cells(bench: &Bench, value: u32, ty: Type) -> Vec<pb::Update> {
    (0..CELLS)
        .map(|cell| {
            let bytes = shortest(cell);
            let entry = match cell % 2 {
                0 => entry(bench, "exact_keys", exact(1, &bytes), calls(bench, "set_exact", value)),
                _ => entry(bench, "lpm_keys", lpm(1, &bytes, 16), calls(bench, "set_lpm", value)),
            };
            update(ty, Entity::TableEntry(entry))
        })
        .collect()
}

/// The value that all entries have.
fn value_of(found: &[Entity]) -> u32 {
    let values: Vec<u32> = found
        .iter()
        .map(|entity| {
            let Entity::TableEntry(entry) = entity else {
                panic!("{entity:?} is no entry")
            };
            let action = entry.action.as_ref().and_then(|a| a.r#type.as_ref());
            let Some(pb::table_action::Type::Action(action)) = action else {
                panic!("{entry:?} has no action")
            };
            action.params[0].value.iter().fold(0, |n, b| n << 8 | u32::from(*b))
        })
        .collect();
    assert_eq!(values.len(), CELLS as usize);
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
    let bench = Arc::new(Bench::new(Some(compile(FLIPS)), config).await);
    let _primary = bench.primary().await;
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
    for number in 0..6 {
        let channel = tonic::transport::Channel::from_shared(format!("http://{}", bench.address)).expect("a URI");
        let channel = channel.connect().await.expect("connects");
        let client = pb::p4_runtime_client::P4RuntimeClient::new(channel);
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
                    let request = pb::WriteRequest {
                        device_id: 1,
                        election_id: Some(pb::Uint128 { high: 0, low: 1 }),
                        updates,
                        atomicity: atomicity.into(),
                        ..pb::WriteRequest::default()
                    };
                    let written = client.clone().write(request).await;
                    assert_eq!(written.is_err(), fails, "{written:?}");
                    if fails {
                        // Whoever reads this value later reads what nobody has written.
                        continue;
                    }
                    (value, true)
                } else {
                    let query = |table| {
                        Entity::TableEntry(pb::TableEntry {
                            table_id: table,
                            ..pb::TableEntry::default()
                        })
                    };
                    let tables = [bench.table("exact_keys"), bench.table("lpm_keys")];
                    let (found, error) = bench.read_all(tables.map(query).to_vec()).await;
                    assert!(error.is_none(), "{error:?}");
                    (value_of(&found), false)
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

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_with_twenty_thousand_errors_arrives_in_order() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let there = update(
        Type::Insert,
        Entity::TableEntry(bench.entry("exact_table", vec![exact(1, &[1])], 1)),
    );
    bench.write(vec![there.clone()]).await.expect("is new");
    let missing = update(
        Type::Delete,
        Entity::TableEntry(bench.entry("exact_table", vec![exact(1, &[2])], 1)),
    );
    let updates = (0..20_000).map(|n| match n % 3 {
        0 => there.clone(),
        1 => missing.clone(),
        _ => pb::Update::default(),
    });
    let status = bench.write(updates.collect()).await.expect_err("all fail");
    let codes = codes(&status);
    let expected = [
        tonic::Code::AlreadyExists,
        tonic::Code::NotFound,
        tonic::Code::InvalidArgument,
    ];
    assert_eq!(codes.len(), 20_000);
    assert!(codes.iter().enumerate().all(|(n, code)| *code == expected[n % 3]));
}
