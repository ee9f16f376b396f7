//! The figures of Franco et al. 2024 ("A comprehensive latency profiling study of the Tofino P4
//! programmable ASIC-based hardware"): the features of its test cases, its linear regression, and
//! the cycle-augmented model. The oracle is the paper's Tables 4, 5 and 6 in `data/`.

mod common;

use common::{CASES, case_path, compile, paper_table};
use weir_latency::data::{Data, Row};
use weir_latency::evaluate::evaluate;
use weir_latency::features::{Chip, Placement};
use weir_latency::fit::{CyclesVariant, Kind, fit};
use weir_latency::model::{Feature, Target, Unit, shipped};
use weir_latency::workload::Workload;
use weir_latency::{Features, Gress};

fn features(file: &str) -> Features {
    Features::of(&compile(&case_path(file)), Gress::Ingress).unwrap()
}

/// Table 6's measured rows, with features extracted from our programs and the sizes of Table 4.
fn measured() -> Data {
    let (sizes, results) = (paper_table(4), paper_table(6));
    let mut rows = Vec::new();
    for (file, case) in CASES {
        let features = features(file);
        let chip = Chip::TOFINO;
        let workload = Workload {
            ingress: &features,
            egress: None,
            placement: Placement::of(&features.dependencies, &features.tables, &chip),
        };
        let size = sizes.iter().find(|r| r["test_case"] == *case).unwrap();
        for result in results.iter().filter(|r| r["test_case"] == *case) {
            let gbps = result["port_gbps"].parse().unwrap();
            let mut values = workload.values(longest(&features), gbps);
            values.set(Feature::PacketSize, size["packet_size_bytes"].parse().unwrap());
            rows.push(Row {
                case: (*case).to_owned(),
                values,
                measured: result["measured_ns"].parse().unwrap(),
            });
        }
    }
    Data {
        features: Feature::ALL
            .iter()
            .copied()
            .filter(|f| *f != Feature::Constant)
            .collect(),
        unit: Unit::Ns,
        rows,
    }
}

/// The path that the paper measured: in each program the one that all tables are on.
fn longest(features: &Features) -> &weir_latency::features::ParserPath {
    let path = features.busiest_path().unwrap();
    assert_eq!(features.controls[path.control].tables().len(), features.tables.len());
    path
}

#[test]
fn features_of_the_parsers_are_those_of_table_4() {
    for row in paper_table(4) {
        let (file, case) = CASES.iter().find(|(_, case)| row["test_case"] == **case).unwrap();
        let features = features(file);
        let path = longest(&features);
        let extracting = path.states.iter().filter(|s| s.bytes > 0);
        let bytes: Vec<String> = extracting.map(|s| s.bytes.to_string()).collect();
        assert_eq!(bytes[0], "14", "{case}: Ethernet");
        assert_eq!(bytes[1..].join(" "), row["hdr_bytes_after_ethernet"], "{case}");
        assert_eq!(
            path.extracting_states.to_string(),
            row["states_listed_after_ethernet"],
            "{case}"
        );
        assert_eq!(path.header_bytes.to_string(), row["sum_bytes"], "{case}");
    }
}

/// Keys and entries of Table 5. Where its column and the authors' P4 source differ, our programs
/// follow the source, and these are all such places.
#[test]
fn features_of_the_tables_are_those_of_table_5() {
    let corrected = [
        ("TC1", "1", "48/exact 12/exact", "64"),
        ("TC4", "2", "32/lpm", "1000"),
        ("TC5", "2", "4/exact", "2"),
    ];
    let mut differences = 0;
    for row in paper_table(5) {
        let (file, case) = CASES.iter().find(|(_, case)| row["test_case"] == **case).unwrap();
        let features = features(file);
        let number: usize = row["table"].parse().unwrap();
        let table = &features.tables[number - 1];
        let keys: Vec<String> = table.keys.iter().map(|k| format!("{}/{}", k.width, k.kind)).collect();
        let found = (keys.join(" "), table.size.unwrap().to_string());
        let printed = (row["keys_bits_type"].to_lowercase(), row["entries_inserted"].clone());
        match corrected.iter().find(|c| (c.0, c.1) == (*case, row["table"].as_str())) {
            Some((_, _, keys, entries)) => {
                assert_eq!(
                    found,
                    ((*keys).to_owned(), (*entries).to_owned()),
                    "{case} table {number}"
                );
                assert_ne!(found, printed, "{case} table {number} needs no correction");
                differences += 1;
            }
            None => assert_eq!(found, printed, "{case} table {number}"),
        }
    }
    assert_eq!(differences, corrected.len());
}

#[test]
fn the_papers_regression_gives_its_table_6() {
    let evaluation = evaluate(&shipped("paper-lr").unwrap(), &measured()).unwrap();
    let printed = paper_table(6);
    let mut to_three_decimals = 0;
    for (row, printed) in evaluation.rows.iter().zip(&printed) {
        assert_eq!(row.case, printed["test_case"]);
        let value = format!("{:.3}", row.predicted);
        let published: f64 = printed["lr_ns"].parse().unwrap();
        if value == format!("{published:.3}") {
            to_three_decimals += 1;
        } else {
            // Printed as 240.09; the deviation that is printed beside it belongs to 240.097.
            assert_eq!(
                (row.case.as_str(), row.port_gbps, value.as_str()),
                ("TC6B", 10, "240.097")
            );
            assert_eq!(printed["lr_ns"], "240.09");
            assert_eq!(format!("{:.3}", row.percent().abs()), printed["lr_deviation_pct"]);
        }
    }
    println!("{to_three_decimals} of 14 published values to three decimals");
    assert_eq!(to_three_decimals, 13);
    println!("accuracy {:.3} %", evaluation.accuracy(None));
    assert_eq!(format!("{:.2}", evaluation.accuracy(None)), "97.49");
    // The aggregates are of the numbers as printed.
    assert_eq!(format!("{:.2}", evaluation.accuracy(Some(10))), "97.26");
    assert_eq!(format!("{:.2}", evaluation.accuracy(Some(100))), "97.73");
}

#[test]
fn the_control_term_of_the_text_makes_it_worse() {
    let evaluation = evaluate(&shipped("paper-lr-lc").unwrap(), &measured()).unwrap();
    assert_eq!(format!("{:.2}", evaluation.accuracy(None)), "97.23");
}

#[test]
fn cycles_are_closer_than_the_papers_best_on_cases_left_out() {
    let data = measured();
    let fixed = Kind::Cycles(Some(CyclesVariant::DEFAULT));
    let fixed = fit(&data, &fixed, "cycles", Target::Tofino).unwrap();
    let nested = fit(&data, &Kind::Cycles(None), "cycles", Target::Tofino).unwrap();
    let (fixed_accuracy, nested_accuracy) = (
        fixed.validation.evaluation.accuracy(None),
        nested.validation.evaluation.accuracy(None),
    );
    println!("cycles: {fixed_accuracy:.2} % leave-one-case-out, {nested_accuracy:.2} % nested");
    assert!(fixed_accuracy >= 99.0, "{fixed_accuracy}");
    assert!(nested_accuracy >= 98.9, "{nested_accuracy}");
    // The model that ships is the one that training on all rows gives.
    let ships = shipped("cycles").unwrap();
    let (ships, fitted) = (evaluate(&ships, &data).unwrap(), evaluate(&fixed.model, &data).unwrap());
    for (a, b) in ships.rows.iter().zip(&fitted.rows) {
        assert!((a.predicted - b.predicted).abs() < 1e-3, "{a:?} {b:?}");
    }
    let error = shipped("cycles").unwrap().error;
    assert!(
        (error.mean_pct - nested.model.error.mean_pct).abs() < 0.01,
        "{error:?} {:?}",
        nested.model.error
    );
    assert!(
        (error.worst_pct - nested.model.error.worst_pct).abs() < 0.01,
        "{error:?}"
    );
}
