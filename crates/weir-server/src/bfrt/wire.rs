//! The wire path of updates: reads plain updates of entries from the bytes of a request, without a
//! protobuf message, because large batches mostly consist of them.
//!
//! A plain update is of an entry of a table whose entries have actions, by its key, with all
//! parameters of the action and nothing else. All other updates, and all errors, are left to the
//! message path (`change::decode`). It resolves a plain update to the same step, and states the
//! error of a malformed one.

mod shape;

use super::change::{Change, NewState, Resets, Step};
use super::entry::{self, GivenAction};
use super::schema::{Action, Key, Kind, MatchTable, Schema, Style, Table};
use super::target::Scopes;
use super::value;
use crate::fields::{Field, Fields, number, slots};
use shape::Shape;
use smallvec::SmallVec;
use std::ops::Range;
use weir_ir::{Bits, KeyMatch, MatchKind};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::update::Type;
use weir_table::{EntryAction, EntryRef, NewEntry};

/// The most keys, or parameters, of an update that is read here.
const MAX_FIELDS: usize = 16;

/// Field numbers of `table_entry` and `table_attribute` in an `Entity`.
const ENTRY: u32 = 1;
const ATTRIBUTE: u32 = 3;

/// Reads the plain updates of a request.
///
/// Updates of a large batch are alike except for their values. After reading one, its [`Shape`]
/// gives the offsets of the values in the next ones.
#[derive(Default)]
pub(crate) struct Reader {
    shapes: Vec<Shape>,
    /// The number of shapes learned so far.
    learned: usize,
}

impl Reader {
    /// Shapes that are kept at a time; a new one replaces the oldest.
    const MAX_SHAPES: usize = 4;
    /// After this number of shapes no more are learned: the updates are not alike.
    const MAX_LEARNED: usize = 64;

    /// Reads an update, if it is plain. All updates of a `Reader` must be of one request.
    pub fn step(
        &mut self,
        schema: &Schema,
        scopes: &Scopes,
        request: Option<&pb::TargetDevice>,
        update: &[u8],
    ) -> Option<Step> {
        let known = self.shapes.iter().find_map(|shape| shape.read(update));
        if let Some(plain) = known {
            return to_step(schema, &plain);
        }
        let plain = read(schema, scopes, request, update)?;
        if self.learned < Self::MAX_LEARNED {
            let shape = Shape::of(update, &plain);
            match self.shapes.get_mut(self.learned % Self::MAX_SHAPES) {
                Some(oldest) => *oldest = shape,
                None => self.shapes.push(shape),
            }
            self.learned += 1;
        }
        to_step(schema, &plain)
    }
}

/// The contents of a plain update.
struct PlainUpdate<'a> {
    ty: Type,
    /// Index of the table in the schema.
    table: usize,
    /// Index of the action in the table; `None` for deletions.
    action: Option<usize>,
    /// Prefix lengths of the LPM keys, in the order of the keys.
    prefixes: SmallVec<[u32; 2]>,
    /// All values: of each key in order (value and mask, or low and high end), then the priority if
    /// the table has one, then the parameters in order.
    values: SmallVec<[&'a [u8]; 8]>,
}

/// Reads the fields of a plain update; `None` leaves it to the message path.
fn read<'a>(
    schema: &Schema,
    scopes: &Scopes,
    request: Option<&pb::TargetDevice>,
    update: &'a [u8],
) -> Option<PlainUpdate<'a>> {
    let [ty, entity] = slots::<2>(update)?;
    let ty = Type::try_from(i32::try_from(number(ty)?).ok()?).ok()?;
    // Only `table_entry` has number 1 in an `Entity`.
    let [entry] = slots::<1>(entity?.bytes()?)?;
    let [id, key, data] = slots::<3>(entry?.bytes()?)?;
    let index = schema.index_of(number(id)?).ok()?;
    let table = &*schema.tables[index];
    let Kind::Match(match_table) = &table.kind else {
        return None;
    };
    if match_table.const_entries || match_table.style != Style::Direct || table.keys.is_empty() {
        return None;
    }
    scopes.check(table, request).ok()?;
    let mut plain = PlainUpdate {
        ty,
        table: index,
        action: None,
        prefixes: SmallVec::new(),
        values: SmallVec::new(),
    };
    read_key(table, match_table, key?.bytes()?, &mut plain)?;
    match (ty, data) {
        (Type::Insert | Type::Modify | Type::InsertOrModify, Some(data)) => {
            read_action(table, data.bytes()?, &mut plain)?
        }
        // The message path checks the data of a deletion.
        (Type::Delete, None) => {}
        _ => return None,
    }
    Some(plain)
}

/// Resolves a plain update, if its values are valid for its table.
fn to_step(schema: &Schema, plain: &PlainUpdate<'_>) -> Option<Step> {
    let table = &*schema.tables[plain.table];
    let Kind::Match(match_table) = &table.kind else {
        return None;
    };
    let (mut values, mut prefixes) = (plain.values.iter(), plain.prefixes.iter());
    let mut matches = Vec::with_capacity(table.keys.len());
    for key in &table.keys {
        let mut bits = || value::bits(key.width, values.next()?).ok();
        matches.push(match key.kind {
            MatchKind::Exact => KeyMatch::Exact(bits()?),
            MatchKind::Ternary => {
                let (value, mask) = (bits()?, bits()?);
                let value = value.and(&mask);
                KeyMatch::Ternary { value, mask }
            }
            MatchKind::Lpm => {
                let prefix_length = Some(*prefixes.next()?).filter(|p| *p <= key.width)?;
                let value = bits()?.and(&Bits::prefix_mask(key.width, prefix_length));
                KeyMatch::Lpm { value, prefix_length }
            }
            MatchKind::Range => {
                let (low, high) = (bits()?, bits()?);
                if low.cmp_unsigned(&high).is_gt() {
                    return None;
                }
                KeyMatch::Range { low, high }
            }
            _ => return None,
        });
    }
    let priority = match match_table.priority {
        Some(_) => Some(value::number(32, values.next()?).ok()?),
        None => None,
    };
    let priority = entry::switch_priority(match_table, priority).ok()?;
    let mut call = || {
        let action = table.actions.get(plain.action?)?;
        let mut arguments = Vec::with_capacity(action.params.len());
        for param in &action.params {
            arguments.push(value::bits(param.width, values.next()?).ok()?);
        }
        Some(EntryAction::call(*action.numbers.first()?, arguments))
    };
    let (verb, change) = match plain.ty {
        Type::Insert => {
            let new = entry_of(matches, priority, call()?);
            ("Table Add failed", Change::InsertEntry(new, None))
        }
        Type::Modify => {
            let state = state(call()?);
            let which = EntryRef::Key { matches, priority };
            ("Table Entry modify failed", Change::ModifyEntry(which, state))
        }
        Type::InsertOrModify => {
            let action = call()?;
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
        table: Some(plain.table),
        verb,
        change: Ok(change),
    })
}

/// Whether any of the updates may change settings that the server stores: attributes of tables and
/// settings of ports.
pub(crate) fn may_any_change_settings<'a>(schema: &Schema, updates: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut known: Option<TableTag<'a>> = None;
    for update in updates {
        if known.as_ref().is_some_and(|k| k.is_like(update)) {
            continue;
        }
        match table_tag(schema, update) {
            Some(tag) => known = Some(tag),
            None if may_change_settings(schema, update) => return true,
            None => {}
        }
    }
    false
}

/// The bytes of an update that identify its table, which is one of the program's own. They are the
/// fields up to the contents of the key, and those between the contents of key and data. Each field
/// occurs once.
struct TableTag<'a> {
    update: &'a [u8],
    key: usize,
    data: Range<usize>,
}

impl TableTag<'_> {
    /// Whether another update has the same bytes there, and so the same table.
    fn is_like(&self, other: &[u8]) -> bool {
        let is_same = |range: Range<usize>| other[range.clone()] == self.update[range];
        other.len() == self.update.len() && is_same(0..self.key) && is_same(self.data.clone())
    }
}

fn table_tag<'a>(schema: &Schema, update: &'a [u8]) -> Option<TableTag<'a>> {
    let mut fields = Fields::of(update);
    let (1, Field::Number(_)) = fields.next()?? else {
        return None;
    };
    let (2, Field::Bytes(entity)) = fields.next()?? else {
        return None;
    };
    let mut of_entity = Fields::of(entity);
    let (ENTRY, Field::Bytes(entry)) = of_entity.next()?? else {
        return None;
    };
    // Therefore the rest of the entry is the end of the update.
    if !fields.is_empty() || !of_entity.is_empty() {
        return None;
    }
    let mut of_entry = Fields::of(entry);
    let place = |rest: &Fields<'_>| update.len() - rest.len();
    let (1, Field::Number(id)) = of_entry.next()?? else {
        return None;
    };
    let (2, Field::Bytes(key)) = of_entry.next()?? else {
        return None;
    };
    let after = place(&of_entry);
    let data = match of_entry.next()? {
        Some((3, Field::Bytes(data))) => after..place(&of_entry) - data.len(),
        None => after..after,
        Some(_) => return None,
    };
    let table = schema.table(u32::try_from(id).ok()?).ok()?;
    let is_tag = of_entry.is_empty() && !matches!(&table.kind, Kind::Fixed(_));
    is_tag.then_some(TableTag {
        update,
        key: after - key.len(),
        data,
    })
}

/// Whether an update may change settings that the server stores. Of repeated fields the last
/// counts, or both are merged; an update with such fields may.
fn may_change_settings(schema: &Schema, update: &[u8]) -> bool {
    let answer = || {
        let [_, entity] = slots::<2>(update)?;
        let mut of_entity = Fields::of(entity?.bytes()?);
        let (kind, message) = of_entity.next()??;
        if !of_entity.is_empty() {
            return None;
        }
        if kind == ENTRY {
            let [id, ..] = slots::<16>(message.bytes()?)?;
            let table = schema.table(number(id)?).ok()?;
            return Some(matches!(&table.kind, Kind::Fixed(fixed) if fixed.is_port()));
        }
        Some(kind == ATTRIBUTE)
    };
    answer().unwrap_or(true)
}

fn entry_of(matches: Vec<KeyMatch>, priority: u32, action: EntryAction) -> NewEntry {
    NewEntry::new(matches, action).with_priority(priority)
}

fn state(action: EntryAction) -> Box<NewState> {
    Box::new(NewState {
        given: GivenAction::Action(action),
        patch: None,
        resets: Resets::default(),
    })
}

/// Reads the matches and the priority of a key.
fn read_key<'a>(table: &Table, match_table: &MatchTable, message: &'a [u8], plain: &mut PlainUpdate<'a>) -> Option<()> {
    let mut given: [(u32, (u32, &[u8])); MAX_FIELDS] = [(0, (0, &[])); MAX_FIELDS];
    let mut count = 0;
    let mut fields = Fields::of(message);
    while let Some(field) = fields.next()? {
        let (1, Field::Bytes(field)) = field else { return None };
        *given.get_mut(count)? = key_field(field)?;
        count += 1;
    }
    if count != table.keys.len() + usize::from(match_table.priority.is_some()) {
        return None;
    }
    let given = &given[..count];
    for (at, key) in table.keys.iter().enumerate() {
        let (kind, message) = by_number(given, at, key.id)?;
        read_match(key, kind, message, plain)?;
    }
    if let Some(id) = match_table.priority {
        let (_, (kind, message)) = *given.iter().find(|g| g.0 == id)?;
        let [value] = slots::<1>(message).filter(|_| kind == 2)?;
        plain.values.push(value?.bytes()?);
    }
    Some(())
}

/// The element of `given` with an id, usually the one at the same index.
#[inline]
fn by_number<T: Copy>(given: &[(u32, T)], index: usize, id: u32) -> Option<T> {
    let expected = given.get(index).filter(|g| g.0 == id);
    let found = expected.or_else(|| given.iter().find(|g| g.0 == id));
    found.map(|g| g.1)
}

/// Reads a key field: its id, the field number of its match type, and the match.
fn key_field(message: &[u8]) -> Option<(u32, (u32, &[u8]))> {
    let mut fields = Fields::of(message);
    let (1, Field::Number(id)) = fields.next()?? else {
        return None;
    };
    let (kind, Field::Bytes(found)) = fields.next()?? else {
        return None;
    };
    fields.is_empty().then_some((u32::try_from(id).ok()?, (kind, found)))
}

fn read_match<'a>(key: &Key, kind: u32, message: &'a [u8], plain: &mut PlainUpdate<'a>) -> Option<()> {
    let bytes = |slot: Option<Field<'a>>| slot?.bytes();
    match (key.kind, kind) {
        (MatchKind::Exact, 2) => {
            let [value] = slots::<1>(message)?;
            plain.values.push(bytes(value)?);
        }
        // Value and mask, or low and high end.
        (MatchKind::Ternary, 3) | (MatchKind::Range, 5) => {
            let [first, second] = slots::<2>(message)?;
            plain.values.extend([bytes(first)?, bytes(second)?]);
        }
        (MatchKind::Lpm, 4) => {
            let [value, prefix] = slots::<2>(message)?;
            plain.values.push(bytes(value)?);
            plain.prefixes.push(number(prefix)?);
        }
        _ => return None,
    }
    Some(())
}

/// Reads the action in the data of an entry, with all of its parameters.
fn read_action<'a>(table: &Table, message: &'a [u8], plain: &mut PlainUpdate<'a>) -> Option<()> {
    let mut fields = Fields::of(message);
    let (1, Field::Number(id)) = fields.next()?? else {
        return None;
    };
    let has_id = |a: &Action| u64::from(a.id) == id && id != 0;
    let place = table.actions.iter().position(has_id)?;
    let params = &table.actions[place].params;
    plain.action = Some(place);
    let mut given: [(u32, &[u8]); MAX_FIELDS] = [(0, &[]); MAX_FIELDS];
    let mut count = 0;
    while let Some(field) = fields.next()? {
        let (2, Field::Bytes(field)) = field else { return None };
        let [id, value] = slots::<2>(field)?;
        *given.get_mut(count)? = (number(id)?, value?.bytes()?);
        count += 1;
    }
    if count != params.len() {
        return None;
    }
    for (at, param) in params.iter().enumerate() {
        plain.values.push(by_number(&given[..count], at, param.id)?);
    }
    Some(())
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

    /// Updates of a table of many kinds, valid and invalid.
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
    fn wire_path_and_message_path_resolve_updates_alike() {
        let schema = schema();
        let scopes = Scopes::default();
        for name in ["exact_keys", "lpm_keys", "ternary_keys", "range_keys", "fixed_keys"] {
            let table = schema.table_named(&format!("pipe.In.{name}")).expect("is there");
            let mut plain = 0;
            let mut reader = Reader::default();
            for update in updates(table) {
                let slow = change::decode(&schema, &scopes, None, &update);
                let bytes = update.encode_to_vec();
                let alone = Reader::default().step(&schema, &scopes, None, &bytes);
                // Once with the shapes of earlier updates, and once with its own.
                for _ in 0..2 {
                    let fast = reader.step(&schema, &scopes, None, &bytes);
                    assert_eq!(fast.is_some(), alone.is_some(), "{update:?}");
                    if let Some(fast) = fast {
                        assert_eq!(
                            (fast.table, fast.verb, &fast.change),
                            (slow.table, slow.verb, &slow.change),
                            "{update:?}"
                        );
                        plain += 1;
                    }
                }
            }
            assert_eq!(plain > 0, name != "fixed_keys", "{name}");
        }
    }

    fn varint(number: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        prost::encoding::encode_varint(number.into(), &mut bytes);
        bytes
    }

    /// The entry of an update.
    fn entry_bytes(update: &[u8]) -> Vec<u8> {
        let update = pb::Update::decode(update).expect("is a message");
        match update.entity.and_then(|e| e.entity) {
            Some(pb::entity::Entity::TableEntry(entry)) => entry.encode_to_vec(),
            other => panic!("{other:?} is no entry"),
        }
    }

    #[test]
    fn ports_and_attributes_are_recognized_before_they_are_read() {
        let schema = schema();
        let entry = |table: &str| {
            let table_id = schema.table_named(table).expect("is there").id;
            pb::entity::Entity::TableEntry(pb::TableEntry {
                table_id,
                ..pb::TableEntry::default()
            })
        };
        let attribute = pb::entity::Entity::TableAttribute(pb::TableAttribute {
            table_id: 5,
            ..pb::TableAttribute::default()
        });
        let mut all = Vec::new();
        for (entity, expected) in [
            (entry("$PORT"), true),
            (attribute, true),
            (entry("pipe.In.exact_keys"), false),
        ] {
            let update = pb::Update {
                r#type: 1,
                entity: Some(pb::Entity { entity: Some(entity) }),
            };
            assert_eq!(
                may_change_settings(&schema, &update.encode_to_vec()),
                expected,
                "{update:?}"
            );
            all.push((update.encode_to_vec(), expected));
        }
        assert!(may_change_settings(&schema, &[0xff]));
        // The last of several tables counts, and the last of several entities.
        let port = schema.table_named("$PORT").expect("is there").id;
        let twice = [entry_bytes(&all[2].0), vec![8], varint(port)].concat();
        let entity = [vec![10], varint(twice.len() as u32), twice].concat();
        let renamed = [vec![8, 1, 18], varint(entity.len() as u32), entity].concat();
        let decoded = pb::Update::decode(renamed.as_slice()).expect("is a message");
        let step = change::decode(&schema, &Scopes::default(), None, &decoded);
        assert_eq!(step.table, schema.index_of(port).ok());
        assert!(may_change_settings(&schema, &renamed) && table_tag(&schema, &renamed).is_none());
        // The harmless update precedes each of them, and precedes variants of itself in which one
        // byte differs.
        let check = |update: &[u8]| {
            let harmless = all[2].0.as_slice();
            may_any_change_settings(&schema, [harmless, harmless, update].into_iter())
        };
        for (update, expected) in &all {
            assert_eq!(check(update), *expected, "{update:?}");
        }
        let harmless = &all[2].0;
        assert!(!may_any_change_settings(&schema, [harmless.as_slice(); 3].into_iter()));
        for at in 0..harmless.len() {
            let mut other = harmless.clone();
            other[at] ^= 0x7f;
            assert_eq!(check(&other), may_change_settings(&schema, &other), "{other:?}");
        }
    }

    #[test]
    fn malformed_bytes_are_left_to_the_message_path() {
        let schema = schema();
        let table = schema.table_named("pipe.In.exact_keys").expect("is there");
        let insert = updates(table)[0].clone();
        let mut delete = insert.clone();
        delete.r#type = Type::Delete.into();
        let entry = delete.entity.as_mut().and_then(|e| e.entity.as_mut());
        if let Some(pb::entity::Entity::TableEntry(entry)) = entry {
            entry.data = None;
        }
        assert!(
            Reader::default()
                .step(&schema, &Scopes::default(), None, &delete.encode_to_vec())
                .is_some()
        );
        for good in [insert, delete] {
            check_malformed_variants(&schema, &good.encode_to_vec());
        }
    }

    #[test]
    fn an_action_that_is_named_again_after_its_parameters_is_left_to_the_message_path() {
        let schema = schema();
        let table = schema.table_named("pipe.In.exact_keys").expect("is there");
        let mut is_plain = updates(table).into_iter().filter(|update| {
            let bytes = update.encode_to_vec();
            let step = Reader::default().step(&schema, &Scopes::default(), None, &bytes);
            step.is_some_and(|s| s.change.is_ok())
        });
        let good = is_plain.next().expect("is there").encode_to_vec();
        let entry = entry_bytes(&good);
        let data = pb::TableEntry::decode(entry.as_slice()).expect("is a message").data;
        let data = [data.expect("is there").encode_to_vec(), vec![8, 9]].concat();
        let start = entry.len() - (data.len() - 2) - 1;
        let length_delimited =
            |number: u8, bytes: &[u8]| [vec![number << 3 | 2], varint(bytes.len() as u32), bytes.to_vec()].concat();
        let entry = [&entry[..start], &[data.len() as u8], &data].concat();
        let update = [good[..2].to_vec(), length_delimited(2, &length_delimited(1, &entry))].concat();
        pb::Update::decode(update.as_slice()).expect("is a message");
        assert!(
            Reader::default()
                .step(&schema, &Scopes::default(), None, &update)
                .is_none()
        );
    }

    fn check_malformed_variants(schema: &Schema, good: &[u8]) {
        for length in 0..good.len() {
            let cut = Reader::default().step(schema, &Scopes::default(), None, &good[..length]);
            assert!(cut.is_none(), "{length}");
        }
        for at in 0..good.len() {
            for value in [0, 0x7f, 0x80, 0xff] {
                let mut bytes = good.to_vec();
                bytes[at] = value;
                // Any bytes: no panic, and nothing that the message path would refuse.
                let mut reader = Reader::default();
                let _ = reader.step(schema, &Scopes::default(), None, good);
                if let Some(fast) = reader.step(schema, &Scopes::default(), None, &bytes) {
                    let update = pb::Update::decode(bytes.as_slice()).expect("is a message");
                    assert_eq!(
                        fast.change,
                        change::decode(schema, &Scopes::default(), None, &update).change
                    );
                }
            }
        }
    }
}
