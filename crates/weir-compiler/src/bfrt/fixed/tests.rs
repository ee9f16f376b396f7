use super::*;
use std::collections::BTreeSet;
use weir_proto::bfrt_info::{DataChoice, Table};

fn numbers(table: &Table) -> Vec<u32> {
    let common = table.data.iter().map(|d| match &d.field {
        DataChoice::One(field) => field.id,
        DataChoice::OneOf(_) => unreachable!("no fixed table has alternatives"),
    });
    common.collect()
}

#[test]
fn numbers_of_tables_and_fields_are_each_there_once() {
    for chip in [Chip::Tofino1, Chip::Tofino2] {
        let info = fixed_info(chip);
        let tables: BTreeSet<_> = info.tables.iter().map(|t| t.id).collect();
        assert_eq!(tables.len(), info.tables.len());
        for table in &info.tables {
            let found = numbers(table);
            assert_eq!(
                found.iter().collect::<BTreeSet<_>>().len(),
                found.len(),
                "{}",
                table.name
            );
            for action in table.action_specs.iter().flatten() {
                assert!(action.data.iter().all(|d| !found.contains(&d.id)), "{}", table.name);
            }
        }
    }
}

#[test]
fn the_document_is_read_back_as_it_was_written() {
    let info = fixed_info(Chip::Tofino2);
    assert_eq!(BfrtInfo::from_json(&info.to_json()).unwrap(), info);
}

#[test]
fn fields_have_the_numbers_that_clients_of_the_reference_know() {
    let first = fixed_info(Chip::Tofino1);
    let port = first.table("$PORT").unwrap();
    assert_eq!(numbers(port), (1..=33).collect::<Vec<_>>());
    assert_eq!(
        numbers(first.table("$PORT_STAT").unwrap()),
        (1..=95).collect::<Vec<_>>()
    );
    assert_eq!(
        numbers(first.table("$mirror.cfg").unwrap()),
        (5..=23).collect::<Vec<_>>()
    );
    let second = fixed_info(Chip::Tofino2);
    assert_eq!(
        numbers(second.table("$mirror.cfg").unwrap()),
        (6..=32).collect::<Vec<_>>()
    );
    assert_eq!(
        numbers(second.table("tf2.pktgen.app_cfg").unwrap()),
        (12..=28).collect::<Vec<_>>()
    );
}
