//! A thousand random batches with failing updates, compared with a model of the expected outcomes.

use crate::common::*;
use crate::shared::Numbers;
use crate::shared::batches::{BATCHES, batch_of};
use std::collections::BTreeMap;
use tonic::Code;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_proto::bfrt_proto::write_request::Atomicity;

const MEMBER: u32 = 65539;

/// An update, for the model.
#[derive(Debug, Clone, Copy)]
enum Op {
    Entry(Type, u32, u32),
    /// An entry of a table with space for four entries.
    Scoped(Type, u32, u32),
    Member(Type, u32, u32),
    /// An entry that references a member.
    Use(Type, u32, u32),
    Register(u32, u32),
    Default(u32),
    /// Removes all entries of the first table.
    Clear,
    /// Fails in any state; the index in `NEVER`.
    Never(usize),
}

/// The expected failure: its code, and its message up to weir's own reason.
type Failure = (Code, String);

/// The outcome of an update: a failure, or `Error::code` of a success, which is not 0 if the entry
/// existed already.
type Outcome = Result<i32, Failure>;

/// The expected state.
#[derive(Debug, Clone, PartialEq, Default)]
struct Model {
    entries: BTreeMap<u32, u32>,
    scoped: BTreeMap<u32, u32>,
    members: BTreeMap<u32, u32>,
    uses: BTreeMap<u32, u32>,
    registers: BTreeMap<u32, u32>,
    default: Option<u32>,
}

fn verb(ty: Type) -> &'static str {
    match ty {
        Type::Insert => "Table Add failed",
        Type::Modify => "Table Entry modify failed",
        Type::InsertOrModify => "Table AddOrMod failed",
        _ => "Table Entry delete failed",
    }
}

fn words(code: Code) -> &'static str {
    match code {
        Code::AlreadyExists => "Already exists",
        Code::NotFound => "Object not found",
        Code::ResourceExhausted => "Not enough space",
        Code::Unimplemented => "Operation not supported",
        _ => "Invalid arguments",
    }
}

fn fail(ty: Type, table: &str, code: Code) -> Outcome {
    Err((code, format!("{} table:pipe.{table} {}", verb(ty), words(code))))
}

/// Inserts, modifies or deletes, within the table size.
fn change(map: &mut BTreeMap<u32, u32>, ty: Type, key: u32, value: u32, table: &str, room: usize) -> Outcome {
    let is_there = map.contains_key(&key);
    match ty {
        Type::Insert if is_there => return fail(ty, table, Code::AlreadyExists),
        Type::Modify | Type::Delete if !is_there => return fail(ty, table, Code::NotFound),
        Type::Insert | Type::InsertOrModify if !is_there && map.len() >= room => {
            return fail(ty, table, Code::ResourceExhausted);
        }
        Type::Delete => map.remove(&key),
        _ => map.insert(key, value),
    };
    Ok(if ty == Type::InsertOrModify && is_there { 6 } else { 0 })
}

const NEVER: &[(Code, &str)] = &[
    (Code::Unimplemented, "Write failed Operation not supported"),
    (
        Code::InvalidArgument,
        "Table Add failed table:pipe.In.fixed_keys Invalid arguments",
    ),
    (
        Code::InvalidArgument,
        "Table Add failed table:pipe.In.exact_keys Invalid arguments",
    ),
    (
        Code::InvalidArgument,
        "Table Add failed table:pipe.In.scoped_keys Invalid arguments",
    ),
    (
        Code::Unimplemented,
        "INSERT of default entry is not supported. Please use MODIFY instead table:pipe.In.exact_keys Operation not supported",
    ),
    (Code::NotFound, "Table Entry delete failed Object not found"),
    (
        Code::InvalidArgument,
        "Table Add failed table:pipe.In.last Invalid arguments",
    ),
    (
        Code::Unimplemented,
        "Table Entry delete failed table:pipe.In.last Operation not supported",
    ),
];

impl Model {
    fn apply(&mut self, op: Op) -> Outcome {
        match op {
            Op::Entry(ty, key, value) => change(&mut self.entries, ty, key, value, "In.exact_keys", 1000),
            Op::Scoped(ty, key, value) => change(&mut self.scoped, ty, key, value, "In.scoped_keys", 4),
            Op::Member(ty, id, value) => {
                let user = self.uses.values().any(|m| *m == id);
                if ty == Type::Delete && self.members.contains_key(&id) && user {
                    let returned = "Action data entry is being referenced by match entries";
                    return Err((
                        Code::AlreadyExists,
                        format!("{} table:pipe.In.plain {returned}", verb(ty)),
                    ));
                }
                change(&mut self.members, ty, id, value, "In.plain", 8)
            }
            Op::Use(ty, key, member) => {
                // The action of an entry is checked before its existence.
                let comes_to_it = match ty {
                    Type::Insert => true,
                    Type::Modify => self.uses.contains_key(&key),
                    ty => ty == Type::InsertOrModify,
                };
                if comes_to_it && !self.members.contains_key(&member) {
                    return fail(ty, "In.member_keys", Code::NotFound);
                }
                change(&mut self.uses, ty, key, member, "In.member_keys", 64)
            }
            Op::Register(index, value) => {
                self.registers.insert(index, value);
                Ok(0)
            }
            Op::Default(value) => {
                self.default = Some(value);
                Ok(0)
            }
            Op::Clear => {
                self.entries.clear();
                // Clearing resets the default entry, too.
                self.default = None;
                Ok(0)
            }
            Op::Never(which) => Err((NEVER[which].0, NEVER[which].1.to_owned())),
        }
    }

    /// Applies a batch to the model; returns the expected outcome of every update.
    fn batch(&mut self, ops: &[Op], atomicity: Atomicity) -> Vec<Outcome> {
        if atomicity == Atomicity::ContinueOnError {
            return ops.iter().map(|op| self.apply(*op)).collect();
        }
        let mut after = self.clone();
        let mut returned = Vec::new();
        for op in ops {
            returned.push(after.apply(*op));
            if returned.last().is_some_and(Result::is_err) {
                return returned;
            }
        }
        *self = after;
        returned
    }
}

fn random(n: &mut Numbers) -> Op {
    let ty = [Type::Insert, Type::Modify, Type::Delete, Type::InsertOrModify][n.below(4) as usize];
    let value = n.below(1000) as u32;
    match n.below(32) {
        0..10 => Op::Entry(ty, n.below(40) as u32, value),
        10..14 => Op::Scoped(
            if n.below(2) == 0 { Type::Insert } else { ty },
            n.below(8) as u32,
            value,
        ),
        14..18 => Op::Member(
            if n.below(2) == 0 { Type::Insert } else { ty },
            1 + n.below(12) as u32,
            value,
        ),
        18..23 => Op::Use(ty, n.below(12) as u32, 1 + n.below(12) as u32),
        23..25 => Op::Register(n.below(4) as u32, value),
        25 => Op::Default(value),
        26 => Op::Clear,
        _ => Op::Never(n.below(NEVER.len() as u64) as usize),
    }
}

fn member(bench: &Bench, id: u32, value: u32) -> pb::TableEntry {
    let entry = bench.keyed("In.plain", vec![exact(MEMBER, &id.to_be_bytes())]);
    let fields = vec![stream(1, &value.to_be_bytes())];
    with_data(entry, bench.action("In.plain", "In.answer"), fields)
}

fn register(bench: &Bench, index: u32, value: u32) -> pb::TableEntry {
    let key = vec![exact(bench.table("In.last").key[0].id, &index.to_be_bytes())];
    with_data(bench.keyed("In.last", key), 0, vec![stream(1, &value.to_be_bytes())])
}

/// The entry, without its data if it is to be deleted.
fn entry_update(ty: Type, mut entry: pb::TableEntry) -> pb::Update {
    if ty == Type::Delete {
        entry.data = None;
    }
    update(ty, Entity::TableEntry(entry))
}

fn never(bench: &Bench, which: usize) -> pb::Update {
    let scoped = bench.action("In.scoped_keys", "only_default");
    match which {
        0 => pb::Update::default(),
        1 => entry_update(Type::Insert, bench.answer("In.fixed_keys", 5, "In.answer", 1)),
        // A key of five bytes.
        2 => {
            let key = vec![exact(bench.table("In.exact_keys").key[0].id, &[0; 5])];
            let action = bench.action("In.exact_keys", "answer_counted");
            let entry = with_data(bench.keyed("In.exact_keys", key), action, vec![stream(1, &[0; 4])]);
            entry_update(Type::Insert, entry)
        }
        3 => entry_update(
            Type::Insert,
            with_data(bench.exact("In.scoped_keys", 1), scoped, Vec::new()),
        ),
        4 => {
            let action = bench.action("In.exact_keys", "answer_counted");
            let entry = with_data(bench.default_entry("In.exact_keys"), action, vec![stream(1, &[0; 4])]);
            entry_update(Type::Insert, entry)
        }
        5 => {
            let entry = pb::TableEntry {
                table_id: 0x0200_0001,
                ..bench.exact("In.exact_keys", 1)
            };
            entry_update(Type::Delete, entry)
        }
        6 => entry_update(Type::Insert, register(bench, 256, 1)),
        _ => entry_update(Type::Delete, register(bench, 1, 1)),
    }
}

fn encoded(bench: &Bench, op: Op) -> pb::Update {
    match op {
        Op::Entry(ty, key, value) => entry_update(ty, bench.entry(key, value)),
        Op::Scoped(ty, key, value) => entry_update(ty, bench.answer("In.scoped_keys", key, "In.answer", value)),
        Op::Member(ty, id, value) => entry_update(ty, member(bench, id, value)),
        Op::Use(ty, key, member) => {
            let entry = bench.exact("In.member_keys", key);
            entry_update(ty, with_data(entry, 0, vec![stream(MEMBER, &member.to_be_bytes())]))
        }
        Op::Register(index, value) => entry_update(Type::Modify, register(bench, index, value)),
        Op::Default(value) => {
            let action = bench.action("In.exact_keys", "answer_counted");
            let entry = bench.default_entry("In.exact_keys");
            entry_update(
                Type::Modify,
                with_data(entry, action, vec![stream(1, &value.to_be_bytes())]),
            )
        }
        Op::Clear => entry_update(Type::Delete, bench.all("In.exact_keys")),
        Op::Never(which) => never(bench, which),
    }
}

fn key_of(entry: &pb::TableEntry) -> u32 {
    let Some(pb::table_entry::Value::Key(key)) = &entry.value else {
        panic!("{entry:?} has no key")
    };
    match &key.fields[0].match_type {
        Some(pb::key_field::MatchType::Exact(e)) => e.value.iter().fold(0, |n, b| n << 8 | u32::from(*b)),
        other => panic!("{other:?} is not exact"),
    }
}

/// Reads the state of the server in the model's form; registers that are 0 are left out.
async fn read(bench: &Bench) -> Model {
    let names = ["In.exact_keys", "In.scoped_keys", "In.plain", "In.member_keys"];
    let mut queries: Vec<_> = names.iter().map(|t| Entity::TableEntry(bench.all(t))).collect();
    for index in 0..4 {
        let cell = register(bench, index, 0);
        queries.push(Entity::TableEntry(pb::TableEntry { data: None, ..cell }));
    }
    let (responses, status) = bench.read_all(queries).await;
    assert!(status.is_none(), "{status:?}");
    let mut model = Model::default();
    let counted = bench.action("In.exact_keys", "answer_counted");
    for entity in responses.into_iter().flat_map(|r| r.entities).filter_map(|e| e.entity) {
        let Entity::TableEntry(entry) = entity else {
            panic!("{entity:?} is no entry")
        };
        let name = bench
            .info
            .tables
            .iter()
            .find(|t| t.id == entry.table_id)
            .map(|t| t.name.as_str());
        let data = entry.data.as_ref().expect("has data");
        match name.expect("is a table") {
            "pipe.In.exact_keys" if entry.is_default_entry => {
                model.default = (data.action_id == counted).then(|| number(&entry, 1) as u32);
            }
            _ if entry.is_default_entry => {}
            "pipe.In.exact_keys" => drop(model.entries.insert(key_of(&entry), number(&entry, 1) as u32)),
            "pipe.In.scoped_keys" => drop(model.scoped.insert(key_of(&entry), number(&entry, 1) as u32)),
            "pipe.In.plain" => drop(model.members.insert(key_of(&entry), number(&entry, 1) as u32)),
            "pipe.In.member_keys" => drop(model.uses.insert(key_of(&entry), number(&entry, MEMBER) as u32)),
            _ => match number(&entry, 1) as u32 {
                0 => {}
                value => drop(model.registers.insert(key_of(&entry), value)),
            },
        }
    }
    model
}

#[tokio::test]
async fn a_thousand_batches_of_mixed_failures_are_reported_exactly() {
    let bench = Bench::new().await;
    let mut n = Numbers(5);
    let mut model = Model::default();
    let mut reported_codes = BTreeMap::new();
    for batch in 0..BATCHES {
        let (ops, how) = batch_of(&mut n, batch, random);
        let atomicity = atomicity(how);
        let mut expected = model.batch(&ops, atomicity);
        let updates = ops.iter().map(|op| encoded(&bench, *op)).collect();
        let outcome = bench.write_with(updates, atomicity).await;
        // Details end at the last failure.
        let length = expected.iter().rposition(Result::is_err).map_or(0, |last| last + 1);
        expected.truncate(length);
        match outcome {
            Ok(_) => assert_eq!(length, 0, "batch {batch}: {expected:?}"),
            Err(status) => {
                assert_eq!((status.code(), status.message()), (Code::Unknown, "Write Error Status"));
                let returned = details(&status);
                assert_eq!(returned.len(), length, "batch {batch}: {status:?}");
                for ((op, returned), expected) in ops.iter().zip(&returned).zip(&expected) {
                    let (code, message) = match expected {
                        Err(failure) => failure,
                        Ok(code) => {
                            let found = (returned.canonical_code, returned.code, returned.message.is_empty());
                            assert_eq!(found, (0, *code, *code == 0), "batch {batch}, {op:?}");
                            continue;
                        }
                    };
                    assert_eq!(
                        returned.canonical_code, *code as i32,
                        "batch {batch}, {op:?}: {returned:?}"
                    );
                    // The rest is weir's own reason, which must not be empty.
                    let reason = returned.message.strip_prefix(message.as_str());
                    let has_reason = reason.is_some_and(|r| r.starts_with(" (") && r.ends_with(')') && r.len() > 3);
                    assert!(has_reason, "batch {batch}, {op:?}: {returned:?}, expected {message}");
                    *reported_codes.entry(returned.canonical_code).or_insert(0) += 1;
                }
            }
        }
        let mut expected = model.clone();
        expected.registers.retain(|_, value| *value != 0);
        assert_eq!(
            read(&bench).await,
            expected,
            "after batch {batch}, {atomicity:?}: {ops:?}"
        );
    }
    // Every kind of failure has occurred.
    assert_eq!(
        reported_codes.keys().copied().collect::<Vec<_>>(),
        [3, 5, 6, 8, 12],
        "{reported_codes:?}"
    );
}
