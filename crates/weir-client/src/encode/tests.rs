//! Tests of the hand-written encoding: prost decodes it, templates and entries agree, and entries
//! are read back.

use super::*;
use crate::schema::{Field, Key, Kind, MatchKind, Schema, Scope, Type};
use proptest::prelude::*;
use prost::Message;
use weir_proto::bfrt_proto as bfrt;
use weir_proto::p4::v1 as p4;

const KEYS: [(MatchKind, u32); 6] = [
    (MatchKind::Exact, 48),
    (MatchKind::Lpm, 32),
    (MatchKind::Ternary, 12),
    (MatchKind::Range, 16),
    (MatchKind::Optional, 9),
    (MatchKind::Exact, 128),
];

fn schema(protocol: Protocol) -> Schema {
    let keys = KEYS.iter().zip(1..).map(|((kind, width), id)| Key {
        id,
        name: format!("k{id}"),
        kind: *kind,
        ty: Type::Bits(*width),
    });
    let action = crate::schema::Action {
        id: 0x0100_0007,
        name: "I.act".to_owned(),
        scope: Scope::Both,
        params: vec![
            Field::new(1, "port", Type::Bits(9)),
            Field::new(2, "address", Type::Bits(128)),
            Field::new(3, "flag", Type::Bits(1)),
        ],
    };
    let table = Table {
        protocol,
        id: 0x0200_1234,
        name: "I.table".to_owned(),
        kind: Kind::Match,
        size: 0,
        keys: keys.collect(),
        priority: Some(65537),
        actions: vec![action],
        data: Vec::new(),
        elements: Vec::new(),
        is_const: false,
        has_const_default: false,
        const_default_action: None,
        operations: Vec::new(),
        attributes: Vec::new(),
    };
    Schema::new(protocol, "p".to_owned(), vec![table], Vec::new())
}

/// Numbers for the cells of a template, some of them at the edges.
fn numbers(template: &Template) -> BoxedStrategy<Vec<u128>> {
    let cells: Vec<BoxedStrategy<u128>> = template
        .cells()
        .iter()
        .map(|cell| {
            let max = u128::MAX >> (128 - cell.width);
            match cell.kind {
                CellKind::PrefixLength => (0..=32_u128).boxed(),
                CellKind::Priority => (1..=0x7fff_ffff_u128).boxed(),
                _ => prop_oneof![Just(0), Just(max), 0..=max].boxed(),
            }
        })
        .collect();
    let kinds: Vec<CellKind> = template.cells().iter().map(|c| c.kind).collect();
    cells
        .prop_map(move |mut numbers| {
            // A range must not be empty.
            for (i, kind) in kinds.iter().enumerate() {
                if *kind == CellKind::Low && numbers[i] > numbers[i + 1] {
                    numbers.swap(i, i + 1);
                }
            }
            numbers
        })
        .boxed()
}

fn template(protocol: Protocol) -> Template {
    let schema = schema(protocol);
    Template::new(schema.table("table").unwrap(), Operation::Insert, Some("act")).unwrap()
}

fn by_template(template: &Template, numbers: &[u128]) -> Vec<u8> {
    let mut batch = crate::Batch::new(&Arc::new(schema(template.table().protocol)));
    batch.push_numbers(template, numbers).unwrap();
    batch.update(0).unwrap().to_vec()
}

fn by_entry(template: &Template, numbers: &[u128]) -> Vec<u8> {
    let mut writer = Writer::default();
    update(&mut writer, Operation::Insert, &template.entry(numbers)).unwrap();
    writer.out
}

/// P4Runtime: values without leading zeros.
fn shortened(mut update: p4::Update) -> p4::Update {
    use p4::field_match::FieldMatchType as M;
    let short = |bytes: &mut Vec<u8>| {
        let zeros = bytes.iter().take_while(|b| **b == 0).count();
        bytes.drain(..zeros.min(bytes.len() - 1));
    };
    let Some(p4::entity::Entity::TableEntry(entry)) = update.entity.as_mut().and_then(|e| e.entity.as_mut()) else {
        panic!("no entry");
    };
    for field in &mut entry.r#match {
        match field.field_match_type.as_mut().unwrap() {
            M::Exact(m) => short(&mut m.value),
            M::Lpm(m) => short(&mut m.value),
            M::Optional(m) => short(&mut m.value),
            M::Ternary(m) => {
                short(&mut m.value);
                short(&mut m.mask);
            }
            M::Range(m) => {
                short(&mut m.low);
                short(&mut m.high);
            }
            M::Other(_) => {}
        }
    }
    let action = entry.action.as_mut().and_then(|a| a.r#type.as_mut());
    if let Some(p4::table_action::Type::Action(action)) = action {
        action.params.iter_mut().for_each(|p| short(&mut p.value));
    }
    update
}

proptest! {
    #[test]
    fn templates_of_p4runtime_say_what_entries_say(numbers in numbers(&template(Protocol::P4Runtime))) {
        let template = template(Protocol::P4Runtime);
        let one = p4::Update::decode(&by_template(&template, &numbers)[..]).unwrap();
        let other = p4::Update::decode(&by_entry(&template, &numbers)[..]).unwrap();
        prop_assert_eq!(shortened(one), other);
    }

    #[test]
    fn templates_of_bf_runtime_say_what_entries_say(numbers in numbers(&template(Protocol::BfRuntime))) {
        let template = template(Protocol::BfRuntime);
        let one = bfrt::Update::decode(&by_template(&template, &numbers)[..]).unwrap();
        let other = bfrt::Update::decode(&by_entry(&template, &numbers)[..]).unwrap();
        prop_assert_eq!(one, other);
    }

    #[test]
    fn what_is_written_is_read_back(numbers in numbers(&template(Protocol::P4Runtime)), is_p4runtime: bool) {
        let protocol = if is_p4runtime { Protocol::P4Runtime } else { Protocol::BfRuntime };
        let template = template(protocol);
        let schema = Arc::new(schema(protocol));
        let update = by_template(&template, &numbers);
        let mut reader = crate::wire::Reader(&update);
        reader.next().unwrap();
        let (_, entity) = reader.next().unwrap().unwrap();
        let mut response = Writer::default();
        response.bytes(1, entity.bytes().unwrap());
        let page = crate::Page::new(&schema, response.out.into());
        let entries = page.entries().unwrap();
        prop_assert_eq!(entries.len(), 1);
        let mut again = Writer::default();
        self::update(&mut again, Operation::Insert, &entries[0]).unwrap();
        prop_assert_eq!(again.out, by_entry(&template, &numbers));
    }

    #[test]
    fn any_answer_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), is_p4runtime: bool) {
        let protocol = if is_p4runtime { Protocol::P4Runtime } else { Protocol::BfRuntime };
        let page = crate::Page::new(&Arc::new(schema(protocol)), bytes.into());
        let _ = page.entries();
        let _ = page.rows(|_| {});
    }
}

#[test]
fn a_batch_that_has_clones_or_is_under_way_changes_only_itself() {
    let template = template(Protocol::BfRuntime);
    let numbers: Vec<u128> = template.cells().iter().map(|_| 1).collect();
    let mut batch = crate::Batch::new(&Arc::new(schema(Protocol::BfRuntime)));
    batch.push_numbers(&template, &numbers).unwrap();
    let (mut clone, request) = (batch.clone(), batch.request(&[]));
    let [before, _] = request.0;
    batch.push_numbers(&template, &numbers).unwrap();
    assert_eq!((batch.bytes(), clone.bytes()), (2 * before.len(), before.len()));
    assert_eq!(batch.update(0), clone.update(0));
    let sent = before.to_vec();
    clone.clear();
    assert_eq!((batch.len(), clone.len(), clone.bytes()), (2, 0, 0));
    clone.push_numbers(&template, &numbers).unwrap();
    assert_eq!((clone.update(0), before.as_ref()), (batch.update(1), sent.as_slice()));
}

#[test]
fn numbers_that_do_not_fit_are_refused_and_the_batch_is_as_before() {
    let template = template(Protocol::BfRuntime);
    let mut numbers: Vec<u128> = template.cells().iter().map(|_| 1).collect();
    let mut batch = crate::Batch::new(&Arc::new(schema(Protocol::BfRuntime)));
    batch.push_numbers(&template, &numbers).unwrap();
    let before = batch.bytes();
    numbers[0] = 1 << 48;
    let error = batch
        .push_numbers(&template, &numbers)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert_eq!(error, "I.table: k1: 0x1000000000000 has more than 48 bits");
    assert!(batch.push_numbers(&template, &numbers[1..]).is_err());
    assert_eq!((batch.len(), batch.bytes()), (1, before));
}

#[test]
fn what_an_entry_lacks_is_told_by_its_name() {
    let schema = schema(Protocol::P4Runtime);
    let table = schema.table("I.table").unwrap();
    let check = |entry: Entry| {
        let mut writer = Writer::default();
        update(&mut writer, Operation::Insert, &entry).unwrap_err().to_string()
    };
    let all = |entry: Entry| entry.key("k1", 1_u8).key("k6", 1_u8).priority(1);
    assert_eq!(check(Entry::of(table)), "I.table: k1: an exact key needs a value");
    assert_eq!(
        check(all(Entry::of(table)).action("act").data("port", 1_u8)),
        "I.table: address: the parameter of I.act is missing"
    );
    assert_eq!(
        check(all(Entry::of(table)).action("acta")),
        "I.table: there is no action acta; did you mean I.act?"
    );
    assert_eq!(
        check(all(Entry::of(table)).action("act").data("prot", 1_u8)),
        "I.table with I.act: there is no data prot; did you mean port?"
    );
    assert_eq!(
        check(all(Entry::of(table)).key("k3", Match::lpm(1_u8, 13))),
        "I.table: k3: the prefix of 13 bits is longer than the 12 bits of the key"
    );
}

use crate::value::Match;
