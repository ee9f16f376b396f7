//! Updates of entries read straight from the wire: no message is made of what a large batch mostly consists of.
//!
//! Only plain updates are read here: an entry of a table whose entries have actions, by its key, with all parameters of the action and nothing
//! else. Whatever is otherwise, and all that is wrong, is left to the messages (`change::decode`), which find the same
//! and say what is wrong.

use super::change::{Change, NewState, Resets, Step};
use super::entry::{self, Given};
use super::schema::{Key, Kind, Match, Schema, Style, Table};
use super::target::Scopes;
use super::value;
use weir_ir::{Bits, KeyMatch, MatchKind};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::update::Type;
use weir_table::{EntryAction, EntryRef, NewEntry};

/// Keys and parameters of an update that is read here; others have more.
const MOST: usize = 16;

/// Numbers of `table_entry` and `table_attribute` in an `Entity`.
const ENTRY: u32 = 1;
const ATTRIBUTE: u32 = 3;

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Field::Bytes(bytes) => Some(bytes),
            Field::Number(_) => None,
        }
    }

    fn number(self) -> Option<u32> {
        match self {
            Field::Number(number) => u32::try_from(number).ok(),
            Field::Bytes(_) => None,
        }
    }
}

/// The fields of a message, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    #[inline]
    fn varint(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        if *first < 0x80 {
            self.0 = rest;
            return Some(u64::from(*first));
        }
        let mut value = 0;
        for (at, byte) in self.0.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Some(value);
            }
        }
        None
    }

    /// The next field with its number: `Some(None)` at the end, `None` where it is of another form.
    #[inline]
    fn next(&mut self) -> Option<Option<(u32, Field<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok()?;
        match tag & 7 {
            0 => Some(Some((number, Field::Number(self.varint()?)))),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Some(Some((number, Field::Bytes(bytes))))
            }
            _ => None,
        }
    }
}

/// Reads a message whose fields are each there at most once: a slot per number from 1.
fn slots<const N: usize>(message: &[u8]) -> Option<[Option<Field<'_>>; N]> {
    let mut found = [const { None }; N];
    let mut fields = Fields(message);
    while let Some((number, field)) = fields.next()? {
        let slot = found.get_mut((number as usize).checked_sub(1)?)?;
        if slot.replace(field).is_some() {
            return None;
        }
    }
    Some(found)
}

/// A number of a message: 0 where it is left out.
fn number(slot: Option<Field<'_>>) -> Option<u32> {
    slot.map_or(Some(0), Field::number)
}

/// The step that an update is, if it is plain.
pub(crate) fn step(
    schema: &Schema,
    scopes: &Scopes,
    request: Option<&pb::TargetDevice>,
    update: &[u8],
) -> Option<Step> {
    let [ty, entity] = slots::<2>(update)?;
    let ty = Type::try_from(i32::try_from(number(ty)?).ok()?).ok()?;
    // Only a table entry has number 1.
    let [entry] = slots::<1>(entity?.bytes()?)?;
    let [id, key, data] = slots::<3>(entry?.bytes()?)?;
    let place = schema.place(number(id)?).ok()?;
    let table = &*schema.tables[place];
    let Kind::Match(of) = &table.kind else { return None };
    if of.const_entries || of.style != Style::Direct || table.keys.is_empty() {
        return None;
    }
    scopes.check(table, request).ok()?;
    let (matches, priority) = keys(table, of, key?.bytes()?)?;
    let (verb, change) = match ty {
        Type::Insert => {
            let new = entry_of(matches, priority, action(table, data?.bytes()?)?);
            ("Table Add failed", Change::InsertEntry(new, None))
        }
        Type::Modify => {
            let state = state(action(table, data?.bytes()?)?);
            let which = EntryRef::Key { matches, priority };
            ("Table Entry modify failed", Change::ModifyEntry(which, state))
        }
        Type::InsertOrModify => {
            let action = action(table, data?.bytes()?)?;
            let new = entry_of(matches, priority, action.clone());
            ("Table AddOrMod failed", Change::UpsertEntry(new, state(action)))
        }
        Type::Delete => (
            "Table Entry delete failed",
            Change::DeleteEntry(EntryRef::Key { matches, priority }),
        ),
        _ => return None,
    };
    Some(Step {
        table: Some(place),
        verb,
        change: Ok(change),
    })
}

/// Whether an update may change what the server keeps itself: attributes of tables and settings of ports.
pub(crate) fn may_set(schema: &Schema, update: &[u8]) -> bool {
    let asks = || {
        let [_, entity] = slots::<2>(update)?;
        let (kind, message) = Fields(entity?.bytes()?).next()??;
        if kind == ENTRY {
            let (1, Field::Number(id)) = Fields(message.bytes()?).next()?? else {
                return None;
            };
            let table = schema.table(u32::try_from(id).ok()?).ok()?;
            return Some(matches!(&table.kind, Kind::Fixed(fixed) if fixed.is_port()));
        }
        Some(kind == ATTRIBUTE)
    };
    asks().unwrap_or(true)
}

fn entry_of(matches: Vec<KeyMatch>, priority: u32, action: EntryAction) -> NewEntry {
    NewEntry::new(matches, action).with_priority(priority)
}

fn state(action: EntryAction) -> Box<NewState> {
    Box::new(NewState {
        given: Given::Action(action),
        patch: None,
        resets: Resets::default(),
    })
}

/// What a key matches, and the switch's priority.
fn keys(table: &Table, of: &Match, message: &[u8]) -> Option<(Vec<KeyMatch>, u32)> {
    let mut given: [(u32, u32, &[u8]); MOST] = [(0, 0, &[]); MOST];
    let mut count = 0;
    let mut fields = Fields(message);
    while let Some((1, Field::Bytes(field))) = fields.next()? {
        *given.get_mut(count)? = key_field(field)?;
        count += 1;
    }
    if !fields.0.is_empty() || count != table.keys.len() + usize::from(of.priority.is_some()) {
        return None;
    }
    let given = &given[..count];
    let mut matches = Vec::with_capacity(table.keys.len());
    for (at, key) in table.keys.iter().enumerate() {
        let in_order = given[at].0 == key.id;
        let found = if in_order {
            given[at]
        } else {
            *given.iter().find(|g| g.0 == key.id)?
        };
        matches.push(key_match(key, found.1, found.2)?);
    }
    let priority = match of.priority {
        Some(id) => {
            let (_, kind, message) = *given.iter().find(|g| g.0 == id)?;
            let [value] = slots::<1>(message).filter(|_| kind == 2)?;
            Some(value::number(32, value?.bytes()?).ok()?)
        }
        None => None,
    };
    Some((matches, entry::switch_priority(of, priority).ok()?))
}

/// Number of the key, number of the kind of match, and the match.
fn key_field(message: &[u8]) -> Option<(u32, u32, &[u8])> {
    let mut fields = Fields(message);
    let (1, Field::Number(id)) = fields.next()?? else {
        return None;
    };
    let (kind, Field::Bytes(found)) = fields.next()?? else {
        return None;
    };
    fields.0.is_empty().then_some((u32::try_from(id).ok()?, kind, found))
}

fn key_match(key: &Key, kind: u32, message: &[u8]) -> Option<KeyMatch> {
    let bits = |slot: Option<Field<'_>>| value::bits(key.width, slot?.bytes()?).ok();
    match (key.kind, kind) {
        (MatchKind::Exact, 2) => {
            let [value] = slots::<1>(message)?;
            Some(KeyMatch::Exact(bits(value)?))
        }
        (MatchKind::Ternary, 3) => {
            let [value, mask] = slots::<2>(message)?;
            let mask = bits(mask)?;
            Some(KeyMatch::Ternary {
                value: bits(value)?.and(&mask),
                mask,
            })
        }
        (MatchKind::Lpm, 4) => {
            let [value, prefix] = slots::<2>(message)?;
            let prefix_length = Some(number(prefix)?).filter(|p| *p <= key.width)?;
            let value = bits(value)?.and(&Bits::prefix_mask(key.width, prefix_length));
            Some(KeyMatch::Lpm { value, prefix_length })
        }
        (MatchKind::Range, 5) => {
            let [low, high] = slots::<2>(message)?;
            let (low, high) = (bits(low)?, bits(high)?);
            (!low.cmp_unsigned(&high).is_gt()).then_some(KeyMatch::Range { low, high })
        }
        _ => None,
    }
}

/// The action of an entry's data, with all of its parameters.
fn action(table: &Table, message: &[u8]) -> Option<EntryAction> {
    let mut fields = Fields(message);
    let (1, Field::Number(id)) = fields.next()?? else {
        return None;
    };
    let action = table.actions.iter().find(|a| u64::from(a.id) == id && id != 0)?;
    let mut given: [(u32, &[u8]); MOST] = [(0, &[]); MOST];
    let mut count = 0;
    while let Some((2, Field::Bytes(field))) = fields.next()? {
        let [id, value] = slots::<2>(field)?;
        *given.get_mut(count)? = (number(id)?, value?.bytes()?);
        count += 1;
    }
    if !fields.0.is_empty() || count != action.params.len() {
        return None;
    }
    let mut arguments = Vec::with_capacity(count);
    for (at, param) in action.params.iter().enumerate() {
        let in_order = given[at].0 == param.id;
        let (_, bytes) = if in_order {
            given[at]
        } else {
            *given[..count].iter().find(|g| g.0 == param.id)?
        };
        arguments.push(value::bits(param.width, bytes).ok()?);
    }
    Some(EntryAction::call(*action.numbers.first()?, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfrt::change;
    use crate::bfrt::program::Program;
    use prost::Message;
    use weir_compiler::{Options, compile_source};
    use weir_proto::bfrt_proto::key_field::MatchType;

    fn schema() -> std::sync::Arc<Schema> {
        let source = include_str!("../../../weir-rbfrt-tests/p4/kinds.p4");
        let compiled = compile_source("kinds.p4", source, &Options::default(), weir_arch::targets());
        let program = compiled.program.expect("compiles");
        Program::new(&program, "kinds").expect("is described").schema
    }

    fn exact(field_id: u32, value: &[u8]) -> pb::KeyField {
        let value = value.to_vec().into();
        pb::KeyField {
            field_id,
            match_type: Some(MatchType::Exact(pb::key_field::Exact { value })),
        }
    }

    /// All sorts of updates of a table, right and wrong ones.
    fn updates(table: &Table) -> Vec<pb::Update> {
        let ternary = pb::KeyField {
            field_id: 1,
            match_type: Some(MatchType::Ternary(pb::key_field::Ternary {
                value: vec![10, 1, 2, 3].into(),
                mask: vec![255, 255, 0, 0].into(),
            })),
        };
        let lpm = pb::KeyField {
            field_id: 1,
            match_type: Some(MatchType::Lpm(pb::key_field::Lpm {
                value: vec![10, 1, 2, 3].into(),
                prefix_len: 9,
            })),
        };
        let range = |low, high| pb::KeyField {
            field_id: 2,
            match_type: Some(MatchType::Range(pb::key_field::Range {
                low: vec![0, low].into(),
                high: vec![0, high].into(),
            })),
        };
        let priority = exact(65537, &[0, 0, 0, 5]);
        let keys = [
            vec![exact(1, &[0, 0, 0, 7])],
            vec![exact(1, &[7])],
            vec![exact(1, &[0, 0, 0, 7]), exact(1, &[0, 0, 0, 7])],
            vec![ternary.clone(), priority.clone()],
            vec![priority.clone(), ternary],
            vec![lpm],
            vec![exact(1, &[3]), range(1, 9), priority.clone()],
            vec![range(1, 9), priority.clone(), exact(1, &[3])],
            vec![exact(1, &[3]), range(9, 1), priority],
            Vec::new(),
        ];
        let field = |field_id, bytes: &[u8]| pb::DataField {
            field_id,
            value: Some(pb::data_field::Value::Stream(bytes.to_vec().into())),
        };
        let fields = [
            vec![field(1, &[0, 0, 0, 1])],
            vec![field(1, &[0, 1]), field(2, &[0, 2])],
            vec![field(2, &[0, 2]), field(1, &[0, 1])],
            vec![field(1, &[1])],
            Vec::new(),
        ];
        let mut all = Vec::new();
        for key in keys {
            for fields in &fields {
                for action in table.actions.iter().map(|a| a.id).chain([0, 9]) {
                    for ty in [1, 2, 4, 5, 6, 0] {
                        let entry = pb::TableEntry {
                            table_id: table.id,
                            value: Some(pb::table_entry::Value::Key(pb::TableKey { fields: key.clone() })),
                            data: Some(pb::TableData {
                                action_id: action,
                                fields: fields.clone(),
                            }),
                            ..pb::TableEntry::default()
                        };
                        let entity = Some(pb::entity::Entity::TableEntry(entry));
                        all.push(pb::Update {
                            r#type: ty,
                            entity: Some(pb::Entity { entity }),
                        });
                    }
                }
            }
        }
        all
    }

    #[test]
    fn what_is_read_here_is_what_the_messages_say() {
        let schema = schema();
        let scopes = Scopes::default();
        for name in ["exact_keys", "lpm_keys", "ternary_keys", "range_keys", "fixed_keys"] {
            let table = schema.named(&format!("pipe.In.{name}")).expect("is there");
            let mut plain = 0;
            for update in updates(table) {
                let slow = change::decode(&schema, &scopes, None, &update);
                if let Some(fast) = step(&schema, &scopes, None, &update.encode_to_vec()) {
                    assert_eq!(
                        (fast.table, fast.verb, &fast.change),
                        (slow.table, slow.verb, &slow.change),
                        "{update:?}"
                    );
                    plain += 1;
                }
            }
            assert_eq!(plain > 0, name != "fixed_keys", "{name}");
        }
    }

    #[test]
    fn ports_and_attributes_are_recognized_before_they_are_read() {
        let schema = schema();
        let entry = |table: &str| {
            let table_id = schema.named(table).expect("is there").id;
            pb::entity::Entity::TableEntry(pb::TableEntry {
                table_id,
                ..pb::TableEntry::default()
            })
        };
        let attribute = pb::entity::Entity::TableAttribute(pb::TableAttribute {
            table_id: 5,
            ..pb::TableAttribute::default()
        });
        for (entity, expected) in [
            (entry("$PORT"), true),
            (attribute, true),
            (entry("pipe.In.exact_keys"), false),
        ] {
            let update = pb::Update {
                r#type: 1,
                entity: Some(pb::Entity { entity: Some(entity) }),
            };
            assert_eq!(may_set(&schema, &update.encode_to_vec()), expected, "{update:?}");
        }
        assert!(may_set(&schema, &[0xff]));
    }

    #[test]
    fn bytes_of_no_sense_are_left_to_the_messages() {
        let schema = schema();
        let table = schema.named("pipe.In.exact_keys").expect("is there");
        let good = updates(table)[0].encode_to_vec();
        for length in 0..good.len() {
            let cut = step(&schema, &Scopes::default(), None, &good[..length]);
            assert!(cut.is_none(), "{length}");
        }
        for at in 0..good.len() {
            for value in [0, 0x7f, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = value;
                // Whatever it is: no panic, and nothing that the messages would refuse.
                if let Some(fast) = step(&schema, &Scopes::default(), None, &bytes) {
                    let update = pb::Update::decode(bytes.as_slice()).expect("is a message");
                    assert_eq!(
                        fast.change,
                        change::decode(&schema, &Scopes::default(), None, &update).change
                    );
                }
            }
        }
    }
}
