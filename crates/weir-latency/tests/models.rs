//! Models as files, data as CSV, training, prediction and comparison.

mod common;

use common::compile_text;
use weir_latency::compare::{Change, compare};
use weir_latency::data::{Data, DataError, Row};
use weir_latency::evaluate::evaluate;
use weir_latency::fit::{FitError, Kind, PlpOptions, fit};
use weir_latency::model::{Feature, Form, Model, Target, Unit, Values, expand, shipped, term_count};
use weir_latency::predict::{Prediction, Question, predict};
use weir_latency::{Features, Gress, show};

fn program(tables: usize) -> Features {
    let mut control = String::new();
    let mut apply = String::new();
    for i in 0..tables {
        control += &format!("table t{i} {{ key = {{ hdr.ethernet.dst: exact; }} actions = {{ NoAction; }} }} ");
        apply += &format!("t{i}.apply(); ");
    }
    let text = format!(
        "#include <core.p4>\n#include <v1model.p4>\nheader ethernet_t {{ bit<48> dst; bit<48> src; bit<16> type; }}
         struct headers_t {{ ethernet_t ethernet; }} struct meta_t {{ }}
         parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{
             state start {{ p.extract(hdr.ethernet); transition accept; }} }}
         control V(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}
         control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{ {control} apply {{ {apply} }} }}
         control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}
         control C(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}
         control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr); }} }}
         V1Switch(P(), V(), I(), E(), C(), D()) main;"
    );
    Features::of(&compile_text(&text), Gress::Ingress).unwrap()
}

fn prediction(tables: usize) -> Prediction {
    let question = Question {
        port_gbps: 10,
        sizes: vec![64, 2000],
        path: None,
        ..Question::default()
    };
    predict(
        "p.p4",
        &program(tables),
        None,
        &shipped("paper-lr-lc").unwrap(),
        &question,
    )
    .unwrap()
}

#[test]
fn a_prediction_adds_up_and_names_what_lies_outside() {
    let one = prediction(1);
    let point = &one.paths[0].points[0];
    assert_eq!(point.packet_size, 64);
    assert!((point.parts.baseline - (0.237_622_8 * 64.0 + 152.421_65)).abs() < 1e-9);
    // A single key of 48 bits.
    assert!((point.parts.control - 0.601).abs() < 1e-9);
    assert!((point.total - point.parts.total()).abs() < 1e-9);
    let outside = &one.paths[0].outside;
    assert_eq!(
        (
            outside.len(),
            outside[0].feature.as_str(),
            outside[0].from,
            outside[0].to
        ),
        (1, "packet_size", 64.0, 2000.0)
    );
}

#[test]
fn comparison_names_the_path_and_what_has_changed() {
    let (one, two) = (prediction(1), prediction(2));
    assert!(compare(&one, &one).unwrap().is_empty());
    let changes = compare(&one, &two).unwrap();
    let [Change::Slower(slower)] = &changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!(slower.path, "ethernet");
    assert!((slower.new - slower.old - 0.601).abs() < 1e-6);
    assert!(
        slower.because.iter().any(|why| why.contains("I.t0 → I.t0, I.t1")),
        "{:?}",
        slower.because
    );
    assert!(matches!(&compare(&two, &one).unwrap()[..], [Change::Faster(_)]));
    let mut other = two;
    other.port_gbps = 100;
    assert!(compare(&one, &other).unwrap_err().to_string().contains("100 Gbit/s"));
    let mut other = one.clone();
    other.model_digest = "0123456789abcdef".to_owned();
    assert!(compare(&one, &other).is_err(), "another model of the same name");
}

#[test]
fn a_total_below_zero_is_named_as_impossible() {
    let mut model = shipped("cycles").unwrap();
    let Form::Linear(linear) = &mut model.form else {
        panic!("{model:?}")
    };
    for term in linear.ports.iter_mut().flat_map(|port| &mut port.terms) {
        term.coefficient = -term.coefficient;
    }
    let question = Question {
        port_gbps: 10,
        sizes: vec![64],
        path: None,
        ..Question::default()
    };
    let prediction = predict("p.p4", &program(0), None, &model, &question).unwrap();
    assert_eq!(prediction.paths[0].impossible().count(), 1);
    assert!(show::prediction(&prediction).contains("the model does not hold for this path"));
}

#[test]
fn an_unknown_port_a_small_packet_and_an_unknown_path_are_refused() {
    let ask = |port_gbps, size, path: Option<&str>| {
        let question = Question {
            port_gbps,
            sizes: vec![size],
            path: path.map(str::to_owned),
            ..Question::default()
        };
        predict("p.p4", &program(0), None, &shipped("cycles").unwrap(), &question)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        ask(25, 64, None),
        "model cycles knows ports of 10 and 100 Gbit/s, not 25"
    );
    assert!(ask(10, 13, None).contains("14 bytes of headers"));
    assert!(ask(10, 64, Some("ipv4")).contains("the paths are ethernet"));
}

#[test]
fn a_damaged_model_says_what_does_not_fit() {
    let good = shipped("cycles").unwrap().to_json();
    assert_eq!(Model::parse(&good).unwrap(), shipped("cycles").unwrap());
    let broken = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        Model::parse(&good.replacen(from, to, 1)).unwrap_err().to_string()
    };
    assert!(broken("\"schema\": 1", "\"schema\": 2").contains("expected schema 1, found 2"));
    assert!(broken("\"packet_size\"", "\"packet_length\"").contains("packet_length"));
    assert!(broken("\"target\": \"tofino\"", "\"target\": \"abacus\"").contains("abacus"));
    assert!(broken("\"coefficient\":", "\"weight\":").contains("weight"));
    assert!(broken("\"gbps\": 100", "\"gbps\": 10").contains("two lists"));
    assert!(broken("\"unit\": \"ns\"", "\"unit\": \"cycles\"").contains("predicts ns, found cycles"));
    assert!(broken("\"name\": \"", "\"name\": \"\\u001b").contains("control character"));
    assert!(broken("\"feature\": \"packet_size\"", "\"feature\": \"constant\"").contains("two terms"));
    for cut in (0..good.len()).step_by(97) {
        assert!(Model::parse(&good[..cut]).is_err(), "{cut}");
    }
    let plp = fitted_plp();
    let text = plp.to_json();
    assert_eq!(Model::parse(&text).unwrap(), plp);
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["form"]["plp"]["scale"][0] = 0.0.into();
    assert!(
        Model::parse(&value.to_string())
            .unwrap_err()
            .to_string()
            .contains("`scale` has a number that is not above 0")
    );
    value["form"]["plp"]["scale"] = serde_json::json!([1.0]);
    assert!(
        Model::parse(&value.to_string())
            .unwrap_err()
            .to_string()
            .contains("expected 2")
    );
}

#[test]
fn csv_that_is_wrong_is_refused_with_its_place() {
    let problem = |text: &str| Data::parse(text).unwrap_err().to_string();
    assert!(problem("case,states\na,1\n").contains("latency_ns` or `cycles"));
    assert!(problem("states,cycles\n1,2\n").contains("expected a column `case`"));
    assert!(problem("case,states,cycles\na,NaN,2\n").contains("line 2, column `states`"));
    assert!(problem("case,states,cycles\na,1,2\nb,x,2\n").contains("line 3"));
    assert!(problem("case,states,cycles\na,1,0\n").contains("above 0"));
    assert!(problem("case,colour,cycles\na,1,2\n").contains("`colour` is unknown"));
    assert!(problem("case,states,states,cycles\na,1,1,2\n").contains("twice"));
    assert!(problem("case,states,cycles\na,1\n").contains("CSV"));
    let data = Data::parse("# measured by hand\ncase, states, cycles\na, 1, 2.5\n").unwrap();
    assert_eq!((data.rows[0].measured, data.unit), (2.5, Unit::Cycles));
    assert_eq!(Data::parse(&data.to_csv()).unwrap(), data);
    let error = evaluate(&shipped("paper-lr").unwrap(), &data).unwrap_err().to_string();
    assert!(error.contains("predicts ns, but the data measure cycles"), "{error}");
    let ns = Data::parse("case,states,latency_ns\na,1,2\n").unwrap();
    let error = evaluate(&shipped("paper-lr").unwrap(), &ns).unwrap_err().to_string();
    assert!(error.contains("packet_size`, `header_bytes"), "{error}");
    assert!(matches!(ns.require(&[Feature::Tables]), Err(DataError::Missing { .. })));
    assert!(matches!(
        fit(&ns, &Kind::Lr, "lr", Target::Tofino),
        Err(FitError::Cases { found: 1, .. })
    ));
}

/// Rows of a function of two features.
fn rows(function: impl Fn(f64, f64) -> f64) -> Data {
    let mut rows = Vec::new();
    for a in 0..8_u8 {
        for b in 0..8_u8 {
            let mut values = Values::new(0);
            values.set(Feature::States, a.into());
            values.set(Feature::HeaderBytes, b.into());
            rows.push(Row {
                case: format!("{a}-{b}"),
                measured: function(a.into(), b.into()),
                values,
            });
        }
    }
    Data {
        features: vec![Feature::States, Feature::HeaderBytes],
        unit: Unit::Cycles,
        rows,
    }
}

fn fitted_plp() -> Model {
    let data = rows(|a, b| 50.0 + 3.0 * a + a * b);
    let options = PlpOptions {
        components: Some(5),
        alpha: Some(0.0),
        unscaled: false,
    };
    fit(&data, &Kind::Plp(options), "plp", Target::Weir).unwrap().model
}

#[test]
fn regression_finds_a_plane_and_lasso_a_surface() {
    let plane = rows(|a, b| 100.0 + 7.0 * a + 2.0 * b);
    let lr = fit(&plane, &Kind::Lr, "lr", Target::Weir).unwrap();
    assert!(lr.validation.evaluation.accuracy(None) > 99.999);
    // The oracle of a product is beyond a plane. All five terms, unscaled and without a penalty,
    // are the least-squares polynomial, so the surface is found exactly.
    let surface = rows(|a, b| 100.0 + 7.0 * a + 2.0 * b + a * b);
    let lr = fit(&surface, &Kind::Lr, "lr", Target::Weir)
        .unwrap()
        .validation
        .evaluation;
    let exact = PlpOptions {
        components: Some(5),
        alpha: Some(0.0),
        unscaled: true,
    };
    let plp = fit(&surface, &Kind::Plp(exact), "plp", Target::Weir)
        .unwrap()
        .validation
        .evaluation;
    assert!(plp.accuracy(None) > 99.999, "{}", plp.accuracy(None));
    assert!(lr.accuracy(None) < 99.0, "{}", lr.accuracy(None));
    let searched = fit(&surface, &Kind::Plp(PlpOptions::default()), "plp", Target::Weir).unwrap();
    assert!(searched.validation.evaluation.accuracy(None) > lr.accuracy(None));
    assert_eq!(searched.validation.chosen.len(), weir_latency::fit::MAX_FOLDS);
}

#[test]
fn a_large_penalty_leaves_only_the_mean() {
    let data = rows(|a, b| 100.0 + a + b);
    let options = PlpOptions {
        components: Some(3),
        alpha: Some(1e9),
        unscaled: true,
    };
    let model = fit(&data, &Kind::Plp(options), "plp", Target::Weir).unwrap().model;
    let mean = data.rows.iter().map(|r| r.measured).sum::<f64>() / data.rows.len() as f64;
    for row in &data.rows {
        assert!((model.predict(&row.values).unwrap().total() - mean).abs() < 1e-9);
    }
}

#[test]
fn training_twice_gives_the_same_file() {
    assert_eq!(fitted_plp().to_json(), fitted_plp().to_json());
}

#[test]
fn a_column_that_never_changes_does_no_harm() {
    let mut data = rows(|a, b| 100.0 + a + b);
    data.features.push(Feature::Tables);
    data.features.push(Feature::Selects);
    for row in &mut data.rows {
        row.values.set(Feature::Tables, 3.0);
    }
    for kind in [Kind::Lr, Kind::Plp(PlpOptions::default())] {
        let fitted = fit(&data, &kind, "m", Target::Weir).unwrap();
        assert!(fitted.validation.evaluation.accuracy(None) > 99.0, "{kind:?}");
    }
}

#[test]
fn terms_are_all_products_of_up_to_two() {
    assert_eq!(expand(&[2.0, 3.0], 0.5), [2.0, 3.0, 2.0, 3.0, 4.5]);
    assert_eq!(term_count(2), 5);
    assert_eq!(expand(&[1.0; 19], 1.0).len(), term_count(19));
}

#[test]
fn values_that_no_packet_has_are_refused_with_line_and_column() {
    let problem = |text: &str| Data::parse(text).unwrap_err().to_string();
    for value in ["10.5", "-10", "0", "2.9", "900"] {
        let text = problem(&format!("case,port_gbps,cycles\na,{value},2\n"));
        assert!(
            text.contains("line 2, column `port_gbps`: expected a whole number"),
            "{text}"
        );
    }
    assert!(problem("case,constant,cycles\na,5,2\n").contains("line 2, column `constant`: expected 1"));
    assert!(problem("case,states,cycles\na,-1,2\n").contains("line 2, column `states`: expected a number from 0"));
    assert!(problem("case,packet_size,cycles\na,-64,2\n").contains("column `packet_size`"));
    assert!(problem("case,states,cycles\na,1,2\n,1,2\n").contains("line 3, column `case`: expected a name"));
    for value in ["1e308", "1e-308", "0", "-1"] {
        let text = problem(&format!("case,states,cycles\na,1,{value}\n"));
        assert!(
            text.contains("line 2, column `cycles`: expected a number above 0"),
            "{text}"
        );
    }
    assert!(problem("case,states,cycles\na,1e308,1\n").contains("line 2, column `states`"));
}

#[test]
fn cycles_are_fitted_for_the_papers_ports_only() {
    let columns = "case,port_gbps,packet_size,states,header_bytes,exact_tables_8,exact_tables_16,tcam_tables_8,\
                   tcam_tables_16,tcam_cycles,state_cycles,latency_ns\n";
    let rows = |port: u32| -> String {
        let row = |i: u32| format!("c{i},{port},{},{i},{},0,0,0,0,0,0,{}\n", 100 * i, 7 * i, 170 + 21 * i);
        columns.to_owned() + &(0..4).map(row).collect::<String>()
    };
    let train = |port: u32| {
        let data = Data::parse(&rows(port)).unwrap();
        fit(&data, &Kind::Cycles(None), "cycles", Target::Tofino)
    };
    assert!(train(10).is_ok());
    let error = train(25).unwrap_err();
    assert!(matches!(error, FitError::Port { found: 25, .. }));
    assert!(error.to_string().contains("10 and 100 Gbit/s only"), "{error}");
}

#[test]
fn more_components_than_terms_are_refused() {
    let options = PlpOptions {
        components: Some(6),
        ..PlpOptions::default()
    };
    let error = fit(&rows(|a, b| 1.0 + a + b), &Kind::Plp(options), "plp", Target::Weir).unwrap_err();
    assert!(error.to_string().contains("at most 5 components, found 6"), "{error}");
}

#[test]
fn models_with_repeated_or_senseless_parts_are_refused() {
    let base: serde_json::Value = serde_json::from_str(&fitted_plp().to_json()).unwrap();
    let problem = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = base.clone();
        change(&mut value);
        Model::parse(&value.to_string()).unwrap_err().to_string()
    };
    assert!(problem(&|v| v["form"]["plp"]["scale"][0] = (-1.0).into()).contains("not above 0"));
    assert!(problem(&|v| v["form"]["plp"]["features"] = serde_json::json!(["states", "states"])).contains("twice"));
    assert!(problem(&|v| v["form"]["plp"]["ports"] = serde_json::json!([10, 10])).contains("10 twice"));
    assert!(problem(&|v| v["error"]["mean_pct"] = 1e300.into()).contains("between 0 and 1000000"));
}
