//! Several clients and packets at a time: no packet and no read meets half of a batch, and batches
//! have one order.

use crate::common::*;
use crate::shared::batches::How;
use crate::shared::proofs::{self, CELLS, Cells};
use crate::shared::{ENTRIES, FLIPS, MEMBERS};
use tonic::{Code, Status};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
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

/// Everything that gives the five answers of a packet. Those of the ternary table are removed and
/// added with another priority.
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
        // Each value has a priority of its own; a batch that fails comes between two values, and
        // has the next one's.
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

#[tokio::test(flavor = "multi_thread")]
async fn no_packet_of_ten_thousand_meets_a_mixture_of_two_batches() {
    let bench = Bench::new(Some(compile(FLIPS)), Config::default()).await;
    let _primary = bench.primary().await;
    let first = bench.write_with(flip(&bench, 1, true), atomicity(How::Atomic));
    first.await.expect("is new");
    let flipped = async |value, how, fails| {
        let mut batch = flip(&bench, value, false);
        if fails {
            // At its very end, when everything else is done.
            let there = entry(&bench, "exact_keys", exact(1, &[1]), calls(&bench, "set_exact", 0));
            batch.push(update(Type::Insert, Entity::TableEntry(there)));
        }
        match bench.write_with(batch, atomicity(how)).await {
            Ok(()) => assert!(!fails, "the last is there already"),
            Err(status) => assert!(fails && codes(&status).contains(&Code::AlreadyExists), "{status:?}"),
        }
    };
    proofs::packets_meet_whole_batches(&bench.switch, flipped).await;
}

/// A batch that writes a value to entries of two tables.
fn cells(bench: &Bench, value: u32, ty: Type) -> Vec<pb::Update> {
    (0..CELLS)
        .map(|cell| {
            let bytes = shortest(cell.into());
            let entry = match cell % 2 {
                0 => entry(bench, "exact_keys", exact(1, &bytes), calls(bench, "set_exact", value)),
                _ => entry(bench, "lpm_keys", lpm(1, &bytes, 16), calls(bench, "set_lpm", value)),
            };
            update(ty, Entity::TableEntry(entry))
        })
        .collect()
}

/// The value of an entry.
fn value_of(entity: &Entity) -> u32 {
    let Entity::TableEntry(entry) = entity else {
        panic!("{entity:?} is no entry")
    };
    let action = entry.action.as_ref().and_then(|a| a.r#type.as_ref());
    let Some(pb::table_action::Type::Action(action)) = action else {
        panic!("{entry:?} has no action")
    };
    action.params[0].value.iter().fold(0, |n, b| n << 8 | u32::from(*b))
}

impl Cells for Bench {
    async fn write(&self, value: u32, how: How, fails: bool) -> Result<(), Status> {
        let mut updates = cells(self, value, Type::Modify);
        if fails {
            updates.extend(cells(self, value, Type::Insert));
        }
        self.write_with(updates, atomicity(how)).await
    }

    async fn read(&self) -> Vec<u32> {
        let tables = [self.table("exact_keys"), self.table("lpm_keys")];
        let query = |table_id| {
            Entity::TableEntry(pb::TableEntry {
                table_id,
                ..pb::TableEntry::default()
            })
        };
        let found = self.read_all(tables.map(query).to_vec()).await;
        assert!(found.1.is_none(), "{found:?}");
        found.0.iter().map(value_of).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_of_several_clients_have_one_order_and_reads_show_whole_ones() {
    // Reads take many steps, so that writes could come in between, or one.
    for read_chunk in [8, 1024] {
        let config = Config {
            read_chunk,
            ..Config::default()
        };
        let bench = Bench::new(Some(compile(FLIPS)), config).await;
        let _primary = bench.primary().await;
        bench.write(cells(&bench, 0, Type::Insert)).await.expect("is new");
        let client = async || Bench {
            client: connect(bench.address).await,
            ..bench.clone()
        };
        proofs::clients_see_one_order(client).await;
    }
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
    let expected = [Code::AlreadyExists, Code::NotFound, Code::InvalidArgument];
    assert_eq!(codes.len(), 20_000);
    assert!(codes.iter().enumerate().all(|(n, code)| *code == expected[n % 3]));
}
