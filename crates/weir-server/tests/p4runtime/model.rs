//! A thousand batches of which some updates fail, and a model of what must come of each.

use crate::common::*;
use crate::shared::Numbers;
use crate::shared::batches::{BATCHES, batch_of};
use std::collections::BTreeMap;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_proto::p4::v1::write_request::Atomicity;

/// An update, for the model.
#[derive(Debug, Clone, Copy)]
enum Op {
    Entry(Type, u8, u32),
    Member(Type, u32, u32),
    /// An entry that names a member.
    Use(Type, u8, u32),
    Counter(i64, i64),
    Default(u32),
    /// Fails whatever the state is; which.
    Never(usize),
}

/// The expected error: the code, and the start of the message.
type Failure = (Code, String);

/// What is there.
#[derive(Debug, Clone, PartialEq, Default)]
struct Model {
    entries: BTreeMap<u8, u32>,
    members: BTreeMap<u32, u32>,
    uses: BTreeMap<u8, u32>,
    counters: [i64; 8],
    default: Option<u32>,
}

fn fail<T>(code: Code, message: impl Into<String>) -> Result<T, Failure> {
    Err((code, message.into()))
}

/// Inserts, modifies or deletes; `name` begins the messages.
fn change<K: Ord>(map: &mut BTreeMap<K, u32>, ty: Type, key: K, value: u32, told: [String; 2]) -> Result<(), Failure> {
    let [exists, missing] = told;
    match (ty, map.contains_key(&key)) {
        (Type::Insert, true) => return fail(Code::AlreadyExists, exists),
        (Type::Modify | Type::Delete, false) => return fail(Code::NotFound, missing),
        (Type::Delete, true) => map.remove(&key),
        _ => map.insert(key, value),
    };
    Ok(())
}

fn entry_messages(table: &str) -> [String; 2] {
    [
        format!("table `I.{table}`: an entry with this match and priority exists already (handle "),
        format!("table `I.{table}`: no entry "),
    ]
}

const NEVER: &[(Code, &str)] = &[
    (Code::InvalidArgument, "the update has no type"),
    (
        Code::PermissionDenied,
        "table `I.const_table`: the entries are const in the program",
    ),
    (Code::OutOfRange, "table `I.exact_table`: key `key`: "),
    (Code::InvalidArgument, "table `I.exact_table`: "),
    (Code::InvalidArgument, "table `I.exact_table`: "),
    (Code::InvalidArgument, "the program has no table with the id 0x2ffffff"),
    (
        Code::PermissionDenied,
        "table `I.ternary_table`: the default action is const in the program",
    ),
    (Code::InvalidArgument, "a counter can only be modified"),
    (Code::InvalidArgument, "the id of a member is not 0"),
    (
        Code::InvalidArgument,
        "table `I.exact_table`: the default entry can only be modified",
    ),
];

impl Model {
    fn apply(&mut self, op: Op) -> Result<(), Failure> {
        match op {
            Op::Entry(ty, key, value) => change(&mut self.entries, ty, key, value, entry_messages("exact_table")),
            Op::Member(ty, id, value) => {
                let user = self.uses.values().any(|m| *m == id);
                if ty == Type::Delete && self.members.contains_key(&id) && user {
                    let message = format!("action profile `I.profile`: member {id} is still used by ");
                    return fail(Code::FailedPrecondition, message);
                }
                if ty == Type::Insert && !self.members.contains_key(&id) && self.members.len() == 16 {
                    return fail(
                        Code::ResourceExhausted,
                        "action profile `I.profile` is full: at most 16 members",
                    );
                }
                let told = [
                    format!("action profile `I.profile`: member {id} exists already; modify it instead"),
                    format!("action profile `I.profile`: no member {id}; insert it first"),
                ];
                change(&mut self.members, ty, id, value, told)
            }
            Op::Use(ty, key, member) => {
                let is_there = self.uses.contains_key(&key);
                // What an entry is to be is looked at before whether it is there.
                let comes_to_it = match ty {
                    Type::Insert => true,
                    Type::Modify => is_there,
                    _ => false,
                };
                if comes_to_it && !self.members.contains_key(&member) {
                    let message = format!("action profile `I.profile`: no member {member}; insert it first");
                    return fail(Code::NotFound, message);
                }
                change(&mut self.uses, ty, key, member, entry_messages("profile_table"))
            }
            Op::Counter(index, value) => match usize::try_from(index).ok().filter(|i| *i < 8) {
                Some(at) => {
                    self.counters[at] = value;
                    Ok(())
                }
                None => fail(
                    Code::OutOfRange,
                    format!("`I.counts` has 8 cells, index {index} is beyond its end"),
                ),
            },
            Op::Default(value) => {
                self.default = Some(value);
                Ok(())
            }
            Op::Never(which) => fail(NEVER[which].0, NEVER[which].1),
        }
    }

    /// Applies a batch to the state; returns the expected outcome of every update.
    fn batch(&mut self, ops: &[Op], atomicity: Atomicity) -> Vec<Result<(), Failure>> {
        if atomicity == Atomicity::ContinueOnError {
            return ops.iter().map(|op| self.apply(*op)).collect();
        }
        let aborted = || fail(Code::Aborted, "taken back, because another update of the batch failed");
        if ops.iter().any(|op| matches!(op, Op::Never(_))) {
            let told = |op: &Op| match op {
                Op::Never(_) => Model::default().apply(*op),
                _ => aborted(),
            };
            return ops.iter().map(told).collect();
        }
        let mut after = self.clone();
        for (at, op) in ops.iter().enumerate() {
            if let Err(failure) = after.apply(*op) {
                let mut told: Vec<_> = ops.iter().map(|_| aborted()).collect();
                told[at] = Err(failure);
                return told;
            }
        }
        *self = after;
        ops.iter().map(|_| Ok(())).collect()
    }
}

fn random(n: &mut Numbers) -> Op {
    let ty = [Type::Insert, Type::Modify, Type::Delete][n.below(3) as usize];
    let value = n.below(1000) as u32;
    match n.below(16) {
        0..5 => Op::Entry(ty, n.below(40) as u8, value),
        // Members come more often than they go, so that the profile is full now and then.
        5..8 => Op::Member(
            if n.below(2) == 0 { Type::Insert } else { ty },
            1 + n.below(24) as u32,
            value,
        ),
        8..11 => Op::Use(ty, n.below(12) as u8, 1 + n.below(24) as u32),
        11..13 => Op::Counter(n.below(10) as i64, i64::from(value)),
        13 => Op::Default(value),
        _ => Op::Never(n.below(NEVER.len() as u64) as usize),
    }
}

fn never(bench: &Bench, which: usize) -> pb::Update {
    let entry = |table, key: &[u8]| bench.entry(table, vec![exact(1, key)], 1);
    let default = |table| pb::TableEntry {
        is_default_action: true,
        ..bench.entry(table, Vec::new(), 1)
    };
    let mut of_another = entry("exact_table", &[1]);
    of_another.action = Some(pb::TableAction {
        r#type: Some(pb::table_action::Type::Action(pb::Action {
            action_id: bench.action("metered"),
            ..bench.answer(1)
        })),
    });
    let unknown = pb::TableEntry {
        table_id: 0x02ff_ffff,
        ..entry("exact_table", &[1])
    };
    let (ty, of) = match which {
        0 => return pb::Update::default(),
        1 => (Type::Insert, Entity::TableEntry(entry("const_table", &[9]))),
        2 => (Type::Insert, Entity::TableEntry(entry("exact_table", &[1, 0, 0, 0, 0]))),
        3 => (
            Type::Modify,
            Entity::TableEntry(bench.entry("exact_table", Vec::new(), 1)),
        ),
        4 => (Type::Insert, Entity::TableEntry(of_another)),
        5 => (Type::Delete, Entity::TableEntry(unknown)),
        6 => (Type::Modify, Entity::TableEntry(default("ternary_table"))),
        7 => (Type::Insert, counter(bench, 1, 1)),
        8 => (Type::Insert, member(bench, 0, 1)),
        _ => (Type::Insert, Entity::TableEntry(default("exact_table"))),
    };
    update(ty, of)
}

fn counter(bench: &Bench, index: i64, packets: i64) -> Entity {
    Entity::CounterEntry(pb::CounterEntry {
        counter_id: bench.id("counts"),
        index: Some(pb::Index { index }),
        data: Some(pb::CounterData {
            packet_count: packets,
            byte_count: 0,
        }),
    })
}

fn member(bench: &Bench, id: u32, value: u32) -> Entity {
    Entity::ActionProfileMember(pb::ActionProfileMember {
        action_profile_id: bench.id("profile"),
        member_id: id,
        action: Some(bench.answer(value)),
    })
}

fn encoded(bench: &Bench, op: Op) -> pb::Update {
    match op {
        Op::Entry(ty, key, value) => {
            let entry = bench.entry("exact_table", vec![exact(1, &[key])], value);
            update(ty, Entity::TableEntry(entry))
        }
        Op::Member(ty, id, value) => update(ty, member(bench, id, value)),
        Op::Use(ty, key, member) => {
            let mut entry = bench.entry("profile_table", vec![exact(1, &[key])], 0);
            entry.action = Some(pb::TableAction {
                r#type: Some(pb::table_action::Type::ActionProfileMemberId(member)),
            });
            update(ty, Entity::TableEntry(entry))
        }
        Op::Counter(index, value) => update(Type::Modify, counter(bench, index, value)),
        Op::Default(value) => {
            let entry = pb::TableEntry {
                is_default_action: true,
                ..bench.entry("keyless_table", Vec::new(), value)
            };
            update(Type::Modify, Entity::TableEntry(entry))
        }
        Op::Never(which) => never(bench, which),
    }
}

fn argument(action: Option<&pb::Action>) -> u32 {
    let params = action.into_iter().flat_map(|a| &a.params);
    params.flat_map(|p| &p.value).fold(0, |n, b| n << 8 | u32::from(*b))
}

/// The state of the server in the model's form.
async fn read(bench: &Bench) -> Model {
    let of_table = |name| pb::TableEntry {
        table_id: bench.table(name),
        ..pb::TableEntry::default()
    };
    let queries = vec![
        Entity::TableEntry(of_table("exact_table")),
        Entity::TableEntry(of_table("profile_table")),
        Entity::TableEntry(pb::TableEntry {
            is_default_action: true,
            ..of_table("keyless_table")
        }),
        Entity::ActionProfileMember(pb::ActionProfileMember {
            action_profile_id: bench.id("profile"),
            ..pb::ActionProfileMember::default()
        }),
        Entity::CounterEntry(pb::CounterEntry {
            counter_id: bench.id("counts"),
            ..pb::CounterEntry::default()
        }),
    ];
    let (found, error) = bench.read_all(queries).await;
    assert!(error.is_none(), "{error:?}");
    let mut model = Model::default();
    for entity in found {
        match entity {
            Entity::TableEntry(entry) => {
                use pb::table_action::Type as Kind;
                let key = entry.r#match.first().and_then(|m| match &m.field_match_type {
                    Some(pb::field_match::FieldMatchType::Exact(exact)) => exact.value.first().copied(),
                    _ => None,
                });
                match (key, entry.action.and_then(|a| a.r#type)) {
                    (Some(key), Some(Kind::ActionProfileMemberId(id))) => drop(model.uses.insert(key, id)),
                    (Some(key), Some(Kind::Action(a))) => drop(model.entries.insert(key, argument(Some(&a)))),
                    (None, Some(Kind::Action(a))) if a.params.is_empty() => {}
                    (None, Some(Kind::Action(a))) => model.default = Some(argument(Some(&a))),
                    other => panic!("{other:?} was never written"),
                }
            }
            Entity::ActionProfileMember(m) => drop(model.members.insert(m.member_id, argument(m.action.as_ref()))),
            Entity::CounterEntry(c) => {
                let at = c.index.expect("has an index").index as usize;
                model.counters[at] = c.data.expect("has a value").packet_count;
            }
            other => panic!("{other:?} was not asked for"),
        }
    }
    model
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_batches_of_mixed_failures_are_told_exactly() {
    let bench = Bench::everything().await;
    let _primary = bench.primary().await;
    let mut n = Numbers(5);
    let mut model = Model::default();
    let mut told_codes = BTreeMap::new();
    for batch in 0..BATCHES {
        let (ops, how) = batch_of(&mut n, batch, random);
        let atomicity = atomicity(how);
        let expected = model.batch(&ops, atomicity);
        let updates = ops.iter().map(|op| encoded(&bench, *op)).collect();
        let mut request = tonic::Request::new(write_request(updates, atomicity));
        let all = "1000000".parse().expect("a number");
        request.metadata_mut().insert("weir-max-error-bytes", all);
        let outcome = bench.client.clone().write(request).await;
        match (outcome, expected.iter().all(Result::is_ok)) {
            (Ok(_), true) => {}
            (Err(status), false) => {
                assert_eq!(status.code(), Code::Unknown, "batch {batch}: {status:?}");
                let told = details(&status);
                assert_eq!(told.len(), expected.len(), "batch {batch}: {status:?}");
                for ((op, told), expected) in ops.iter().zip(&told).zip(&expected) {
                    let Err((code, message)) = expected else {
                        assert_eq!(*told, pb::Error::default(), "batch {batch}, {op:?}");
                        continue;
                    };
                    assert_eq!(
                        Code::from_i32(told.canonical_code),
                        *code,
                        "batch {batch}, {op:?}: {told:?}"
                    );
                    assert!(
                        told.message.starts_with(message),
                        "batch {batch}, {op:?}: {told:?}, expected {message}"
                    );
                    *told_codes.entry(told.canonical_code).or_insert(0) += 1;
                }
            }
            (outcome, _) => panic!("batch {batch}: {outcome:?}, expected {expected:?}"),
        }
        assert_eq!(read(&bench).await, model, "after batch {batch}, {atomicity:?}: {ops:?}");
    }
    // Every kind of failure has been among them.
    let all = [3, 5, 6, 7, 8, 9, 10, 11];
    assert_eq!(told_codes.keys().copied().collect::<Vec<_>>(), all, "{told_codes:?}");
}
