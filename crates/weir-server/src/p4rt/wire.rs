//! The wire path: updates of entries read straight from the bytes of a request, without a decoded
//! message. Large batches mostly consist of them.
//!
//! Only plain updates are read here: an entry of a table whose entries have actions, with keys, an
//! action, a priority and `controller_metadata`. All other updates, and all
//! malformed ones, take the message path ([`super::change::decode`]). It gives the same results and
//! reports errors.

use super::action::{self, GivenParams};
use super::change::{self, Change, Direct, NewState};
use super::matching::{self, AllGiven, Given};
use super::role::Scope;
use super::schema::{Implementation, Schema};
use crate::fields::{Field, Fields, number, slots};
use weir_proto::p4::v1::update::Type;
use weir_table::{EntryAction, NewEntry};

/// Keys and parameters of an update that is read here; others have more.
const MOST: usize = 64;

/// Number of `table_entry` in an `Entity`.
const TABLE_ENTRY: u32 = 2;

/// The change that an update is, if it is plain and the role may make it.
pub fn change(schema: &Schema, scope: &Scope, update: &[u8]) -> Option<Change> {
    let [ty, entity] = slots::<2>(update)?;
    let ty = Type::try_from(i32::try_from(number(ty)?).ok()?).ok()?;
    let mut entity = Fields::of(entity?.bytes()?);
    let (TABLE_ENTRY, Field::Bytes(entry)) = entity.next()?? else {
        return None;
    };
    let entry = Entry::read(entry).filter(|_| entity.is_empty())?;
    let table = schema.table(entry.table).ok().filter(|_| scope.has(entry.table))?;
    if table.const_entries || table.implementation != Implementation::Direct || table.fields.is_empty() {
        return None;
    }
    let matches = matching::decode_given(&table.fields, &entry.matches).ok()?;
    let priority = change::priority(table, entry.priority).ok()?;
    if ty == Type::Delete {
        // An action of a deletion is nothing, but must be one.
        let is_all = entry.action.is_none();
        return is_all.then_some(Change::DeleteEntry(table.table, matches, priority));
    }
    let (id, params) = read_action(entry.action?)?;
    let action = EntryAction::Call(action::call_of(table, id, &params).ok()?);
    let direct = Direct {
        counter: None,
        // An entry that says nothing of its meter has one that marks nothing.
        meter: table.meter.map(|(_, instance)| (instance, None)),
    };
    let (metadata, note, idle_timeout_ns) = (entry.metadata, None, 0);
    match ty {
        Type::Insert => {
            let new = NewEntry {
                matches,
                priority,
                action,
                metadata,
                note,
                idle_timeout_ns,
            };
            Some(Change::InsertEntry(table.table, new, direct))
        }
        Type::Modify => {
            let state = NewState {
                action: Some(action),
                metadata,
                note,
                idle_timeout_ns,
                direct,
            };
            Some(Change::ModifyEntry(table.table, matches, priority, state))
        }
        _ => None,
    }
}

/// A `TableEntry` that has nothing but these.
#[derive(Default)]
struct Entry<'a> {
    table: u32,
    matches: AllGiven<'a>,
    /// A `TableAction`.
    action: Option<&'a [u8]>,
    priority: i32,
    /// `controller_metadata`
    metadata: u64,
}

impl<'a> Entry<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut entry = Entry::default();
        let mut fields = Fields::of(message);
        while let Some((tag, field)) = fields.next()? {
            match (tag, field) {
                // Of a number that is there twice the last counts.
                (1, Field::Number(id)) => entry.table = u32::try_from(id).ok()?,
                // No table has more key fields than that.
                (2, Field::Bytes(given)) if entry.matches.len() < MOST => entry.matches.push(read_match(given)?),
                // Two actions would be joined.
                (3, Field::Bytes(action)) if entry.action.is_none() => entry.action = Some(action),
                (4, Field::Number(priority)) => entry.priority = i32::try_from(priority).ok()?,
                (5, Field::Number(metadata)) => entry.metadata = metadata,
                _ => return None,
            }
        }
        Some(entry)
    }
}

/// A `FieldMatch`: the field's id, and what it matches.
fn read_match(message: &[u8]) -> Option<(u32, Option<Given<'_>>)> {
    let mut fields = Fields::of(message);
    let (1, Field::Number(id)) = fields.next()?? else {
        return None;
    };
    let (kind, Field::Bytes(given)) = fields.next()?? else {
        return None;
    };
    let two = || {
        let [first, second] = slots::<2>(given)?;
        Some((first?.bytes()?, second?.bytes()?))
    };
    let one = || {
        let [value] = slots::<1>(given)?;
        value?.bytes()
    };
    let given = match kind {
        2 => Given::Exact(one()?),
        3 => two().map(|(value, mask)| Given::Ternary(value, mask))?,
        4 => {
            let [value, length] = slots::<2>(given)?;
            Given::Lpm(value?.bytes()?, i32::try_from(number(length)?).ok()?)
        }
        6 => two().map(|(low, high)| Given::Range(low, high))?,
        7 => Given::Optional(one()?),
        _ => return None,
    };
    fields.is_empty().then_some((u32::try_from(id).ok()?, Some(given)))
}

/// A `TableAction` that is an action: its id and parameters.
fn read_action(message: &[u8]) -> Option<(u32, GivenParams<'_>)> {
    let [action] = slots::<1>(message)?;
    let mut fields = Fields::of(action?.bytes()?);
    let (1, Field::Number(id)) = fields.next()?? else {
        return None;
    };
    let mut params = GivenParams::new();
    while let Some(field) = fields.next()? {
        let (4, Field::Bytes(param)) = field else { return None };
        if params.len() == MOST {
            return None;
        }
        let [_, id, value] = slots::<3>(param)?;
        params.push((number(id)?, value?.bytes()?));
    }
    Some((u32::try_from(id).ok()?, params))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p4rt::program::LoadedProgram;
    use crate::p4rt::schema::Table;
    use prost::Message;
    use std::sync::Arc;
    use weir_compiler::{Options, compile_source};
    use weir_proto::p4::v1 as pb;
    use weir_proto::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};
    use weir_proto::prost_types::Any;
    use weir_proto::weir::v1::RoleConfig;

    fn loaded() -> LoadedProgram {
        let source = include_str!("../../tests/p4/everything.p4");
        let compiled = compile_source("everything.p4", source, &Options::default(), weir_arch::targets());
        let program = compiled.program.expect("compiles");
        LoadedProgram::running(Arc::new(program), "everything").expect("is described")
    }

    fn field(id: u32, kind: FieldMatchType) -> pb::FieldMatch {
        pb::FieldMatch {
            field_id: id,
            field_match_type: Some(kind),
        }
    }

    /// Right and wrong matches of a first field, and of two.
    fn matches() -> Vec<Vec<pb::FieldMatch>> {
        let value = vec![10, 0];
        let exact = |id, value: &[u8]| field(id, FieldMatchType::Exact(Exact { value: value.to_vec() }));
        let optional = |id| field(id, FieldMatchType::Optional(Optional { value: vec![7] }));
        let ternary = |mask: &[u8]| {
            let (value, mask) = (value.clone(), mask.to_vec());
            field(1, FieldMatchType::Ternary(Ternary { value, mask }))
        };
        let lpm = |prefix_len| {
            let value = value.clone();
            field(1, FieldMatchType::Lpm(Lpm { value, prefix_len }))
        };
        let range = |low, high| {
            let (low, high) = (vec![low], vec![high]);
            field(1, FieldMatchType::Range(Range { low, high }))
        };
        let untyped = pb::FieldMatch {
            field_id: 1,
            field_match_type: None,
        };
        vec![
            Vec::new(),
            vec![exact(1, &[0, 7])],
            vec![exact(1, &[])],
            vec![exact(1, &[1; 17])],
            vec![exact(1, b"17")],
            vec![exact(1, &[7]), exact(1, &[7])],
            vec![exact(3, &[7])],
            vec![ternary(&[255, 0]), exact(2, &[7])],
            vec![exact(2, &[7]), ternary(&[255, 0])],
            vec![ternary(&[0]), exact(2, &[7])],
            vec![exact(2, &[7])],
            [31, 32, 33, 0, -1].map(lpm).to_vec(),
            vec![lpm(31)],
            vec![lpm(16)],
            vec![lpm(0)],
            vec![lpm(-1)],
            vec![range(1, 9)],
            vec![range(9, 1)],
            vec![optional(1)],
            vec![optional(2), optional(1)],
            vec![untyped],
        ]
    }

    fn actions(table: &Table) -> Vec<Option<pb::TableAction>> {
        use pb::table_action::Type;
        let param = |param_id, value: &[u8]| pb::action::Param {
            param_id,
            value: value.to_vec(),
        };
        let all_params = [
            Vec::new(),
            vec![param(1, &[5])],
            vec![param(1, &[1, 0, 0, 0, 0])],
            vec![param(1, &[5]), param(1, &[5])],
            vec![param(2, &[5])],
        ];
        let ids = table.actions.iter().map(|a| a.id).chain([0, 9]);
        let calls = ids.flat_map(|action_id| {
            all_params.clone().map(|params| {
                let action = pb::Action { action_id, params };
                Some(Type::Action(action))
            })
        });
        let types = calls.chain([Some(Type::ActionProfileMemberId(1)), None]);
        let given = types.map(|r#type| Some(pb::TableAction { r#type }));
        given.chain([None]).collect()
    }

    /// The optional fields of an entry.
    fn extras() -> Vec<pb::TableEntry> {
        let none = pb::TableEntry::default();
        vec![
            pb::TableEntry {
                controller_metadata: u64::MAX,
                ..none.clone()
            },
            pb::TableEntry {
                metadata: vec![1],
                ..none.clone()
            },
            pb::TableEntry {
                idle_timeout_ns: 1000,
                ..none.clone()
            },
            pb::TableEntry {
                is_default_action: true,
                ..none.clone()
            },
            pb::TableEntry {
                counter_data: Some(pb::CounterData::default()),
                ..none.clone()
            },
            none,
        ]
    }

    fn updates(table: &Table) -> Vec<pb::Update> {
        let mut all = Vec::new();
        for r#match in matches() {
            for action in actions(table) {
                for (extra, priority, ty) in extras().into_iter().flat_map(|e| {
                    let of = move |priority| [0, 1, 2, 3].map(|ty| (e.clone(), priority, ty));
                    [0, 5, -1].into_iter().flat_map(of)
                }) {
                    let entry = pb::TableEntry {
                        table_id: table.id,
                        r#match: r#match.clone(),
                        action: action.clone(),
                        priority,
                        ..extra
                    };
                    let entity = Some(pb::entity::Entity::TableEntry(entry));
                    all.push(pb::Update {
                        r#type: ty,
                        entity: Some(pb::Entity { entity }),
                    });
                }
            }
        }
        all
    }

    /// Whether an update is plain; what it is then is what the messages say.
    fn is_plain(loaded: &LoadedProgram, update: &[u8]) -> bool {
        let Some(fast) = change(&loaded.schema, &Scope::Everything, update) else {
            return false;
        };
        let update = pb::Update::decode(update).expect("is a message");
        let slow = change::decode(&loaded.schema, &loaded.program.errors, &update);
        assert_eq!(Ok(fast), slow, "{update:?}");
        true
    }

    #[test]
    fn what_is_read_here_is_what_the_messages_say() {
        let loaded = loaded();
        let mut kinds = [0, 0];
        for table in loaded.schema.tables.values() {
            let all = updates(table);
            let plain = all.iter().filter(|u| is_plain(&loaded, &u.encode_to_vec())).count();
            let may_be = table.implementation == Implementation::Direct && !table.const_entries;
            let expected = may_be && !table.fields.is_empty();
            assert_eq!(plain > 0, expected, "{}", table.name);
            kinds[usize::from(expected)] += 1;
        }
        assert!(kinds[0] >= 4 && kinds[1] >= 6, "{kinds:?}");
    }

    /// A plain insertion, modification and deletion of each table that has some.
    fn plain(loaded: &LoadedProgram) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for table in loaded.schema.tables.values() {
            for ty in [1, 2, 3] {
                let of_type = updates(table).into_iter().filter(|u| u.r#type == ty);
                let mut bytes = of_type.map(|u| u.encode_to_vec());
                found.extend(bytes.find(|u| change(&loaded.schema, &Scope::Everything, u).is_some()));
            }
        }
        found
    }

    #[test]
    fn bytes_of_no_sense_are_left_to_the_messages() {
        let loaded = loaded();
        for good in plain(&loaded) {
            for length in 0..good.len() {
                assert!(!is_plain(&loaded, &good[..length]), "{length}");
            }
            for at in 0..good.len() {
                for value in 0..=255 {
                    let mut bytes = good.clone();
                    bytes[at] = value;
                    is_plain(&loaded, &bytes);
                }
            }
        }
    }

    /// A message with this field of bytes.
    fn with(number: u8, parts: &[&[u8]]) -> Vec<u8> {
        let bytes = parts.concat();
        [
            &[number << 3 | 2, u8::try_from(bytes.len()).expect("is short")],
            &*bytes,
        ]
        .concat()
    }

    #[test]
    fn what_is_there_twice_is_joined_as_in_messages() {
        let loaded = loaded();
        for good in plain(&loaded) {
            let update = pb::Update::decode(good.as_slice()).expect("is a message");
            let entity = update.entity.expect("is there").encode_to_vec();
            let pb::entity::Entity::TableEntry(entry) = pb::Entity::decode(entity.as_slice())
                .expect("is a message")
                .entity
                .expect("is there")
            else {
                panic!("is an entry")
            };
            let ty = [8, u8::try_from(update.r#type).expect("is small")];
            let action = entry.action.clone().unwrap_or_default().encode_to_vec();
            let bytes = &entity[2..];
            let doubled = [bytes, bytes].concat();
            let is_doubled_plain = is_plain(&loaded, &[&ty[..], &with(2, &[&with(2, &[&doubled])])].concat());
            assert_eq!(is_doubled_plain, entry.r#match.is_empty() && entry.action.is_none());
            for entry in [
                [bytes, &[4 << 3, 5]].concat(),
                [bytes, &[8, 9]].concat(),
                [bytes, &with(3, &[&action])].concat(),
                [bytes, &with(3, &[&action, &action])].concat(),
                // An action's id after its parameters.
                [bytes, &with(3, &[&with(1, &[&[8, 1]])])].concat(),
            ] {
                let update = [&ty[..], &with(2, &[&with(2, &[&entry])])].concat();
                is_plain(&loaded, &update);
                let twice = [&ty[..], &with(2, &[&with(2, &[&entry]), &with(2, &[&entry])])].concat();
                assert!(!is_plain(&loaded, &twice));
            }
        }
    }

    #[test]
    fn what_a_role_may_not_write_is_left_to_the_messages() {
        let loaded = loaded();
        let all = plain(&loaded);
        let first = all.first().expect("is there");
        let config = RoleConfig::default();
        let any = Any {
            type_url: "weir.v1.RoleConfig".to_owned(),
            value: config.encode_to_vec(),
        };
        let none = Scope::decode(Some(&any)).expect("is a configuration");
        assert!(change(&loaded.schema, &Scope::Everything, first).is_some());
        assert!(change(&loaded.schema, &none, first).is_none());
    }
}
