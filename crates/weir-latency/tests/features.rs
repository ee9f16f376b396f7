//! What is extracted from programs that were written for one property each.

mod common;

use common::{compile, compile_text, program_path, v1};
use std::fmt::Write;
use weir_latency::features::{Chip, DependencyKind, NodeKind, Placement};
use weir_latency::{FeatureError, Features, Gress};

fn ingress(text: &str) -> Features {
    Features::of(&compile_text(text), Gress::Ingress).unwrap()
}

const ETHERNET_ONLY: &str = "state start { p.extract(hdr.ethernet); transition accept; }";

#[test]
fn a_stack_is_followed_as_far_as_it_goes() {
    let states = "state start { p.extract(hdr.ethernet); transition select(hdr.ethernet.type) {
            0x8847: label; default: accept; } }
        state label { p.extract(hdr.labels.next); transition select(hdr.labels.last.end) { 0: label; 1: accept; } }";
    let features = ingress(&v1(
        "header label_t { bit<31> label; bit<1> end; }",
        "label_t[3] labels;",
        states,
        "",
        "",
    ));
    let names: Vec<&str> = features.parser.paths.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ethernet/labels[0]/labels[1]/labels[2]",
            "ethernet/labels[0]/labels[1]",
            "ethernet/labels[0]",
            "ethernet"
        ]
    );
    let bytes: Vec<u32> = features.parser.paths.iter().map(|p| p.header_bytes).collect();
    assert_eq!(bytes, [12, 8, 4, 0]);
    assert_eq!(features.parser.accepting, 4.0);
    assert!(!features.parser.is_merged && !features.parser.is_cut_off);
}

#[test]
fn a_million_paths_are_counted_and_their_extremes_kept() {
    const DIAMONDS: u32 = 20;
    let mut states = "state start { p.extract(hdr.ethernet); transition ask0; }\n".to_owned();
    let mut fields = String::new();
    for i in 0..DIAMONDS {
        let next = if i + 1 == DIAMONDS {
            "accept".to_owned()
        } else {
            format!("ask{}", i + 1)
        };
        let _ = write!(
            states,
            "state ask{i} {{ transition select(p.lookahead<bit<8>>()) {{ {i}: take{i}; default: {next}; }} }}\n\
             state take{i} {{ p.extract(hdr.part{i}); transition {next}; }}\n"
        );
        let _ = write!(fields, "part_t part{i}; ");
    }
    let features = ingress(&v1("header part_t { bit<32> x; }", &fields, &states, "", ""));
    assert_eq!(features.parser.accepting, f64::from(1_u32 << DIAMONDS));
    assert!(features.parser.is_merged);
    assert!(features.parser.paths.len() <= 96);
    assert_eq!(features.parser.paths[0].extracting_states, DIAMONDS);
    assert_eq!(features.parser.paths[0].header_bytes, 4 * DIAMONDS);
    assert_eq!(features.parser.paths.last().unwrap().least_header_bytes, 0);
    let counted: f64 = features.parser.paths.iter().map(|p| p.count).sum();
    assert_eq!(counted, features.parser.accepting);
}

#[test]
fn a_loop_without_a_stack_ends() {
    let states = "state start { p.extract(hdr.ethernet); transition options; }
        state options { p.extract(hdr.option); transition select(hdr.option.x) { 0: accept; default: options; } }";
    let features = ingress(&v1("header option_t { bit<8> x; }", "option_t option;", states, "", ""));
    assert!(features.parser.is_cut_off);
    assert!(features.parser.accepting > 100.0);
}

#[test]
fn many_loops_over_a_long_stack_end() {
    let states = "state start { p.extract(hdr.ethernet); transition first; }
        state first { p.extract(hdr.parts.next); transition select(hdr.parts.last.x) {
            0: first; 1: second; 2: third; default: accept; } }
        state second { p.extract(hdr.parts.next); transition select(hdr.parts.last.x) {
            3: first; 4: second; 5: third; default: accept; } }
        state third { p.extract(hdr.parts.next); transition select(hdr.parts.last.x) {
            6: first; 7: second; 8: third; default: accept; } }";
    let features = ingress(&v1("header part_t { bit<8> x; }", "part_t[200] parts;", states, "", ""));
    assert!(features.parser.is_merged);
    assert!(features.parser.paths.len() <= 96 * 3);
}

#[test]
fn a_counter_bounds_the_loop_that_it_counts() {
    let states = "state start { p.extract(hdr.ethernet); m.a = 2; transition more; }
        state more { transition select(m.a) { 0: accept; default: take; } }
        state take { p.extract(hdr.option); m.a = m.a - 1; transition more; }";
    let features = ingress(&v1("header option_t { bit<8> x; }", "option_t option;", states, "", ""));
    assert_eq!(features.parser.accepting, 1.0);
    assert_eq!(features.parser.paths[0].extracting_states, 2);
}

#[test]
fn a_varbit_makes_a_range() {
    let states = "state start { p.extract(hdr.ethernet); transition options; }
        state options { p.extract(hdr.options, (bit<32>) hdr.ethernet.type); transition accept; }";
    let types = "header options_t { bit<8> kind; varbit<320> rest; }";
    let path = &ingress(&v1(types, "options_t options;", states, "", "")).parser.paths[0];
    assert_eq!((path.least_header_bytes, path.header_bytes), (1, 41));
}

#[test]
fn tables_behind_conditions_on_headers_are_only_on_their_paths() {
    let states = "state start { p.extract(hdr.ethernet); transition select(hdr.ethernet.type) {
            1: one; 2: two; default: accept; } }
        state one { p.extract(hdr.one); transition accept; }
        state two { p.extract(hdr.two); transition accept; }";
    let control = "action a() { } table for_one { key = { hdr.one.x: exact; } actions = { a; } }
        table for_two { key = { hdr.two.x: exact; } actions = { a; } }
        table for_type { key = { m.a: exact; } actions = { a; } }";
    let apply = "if (hdr.one.isValid()) { for_one.apply(); } else if (hdr.two.isValid()) { for_two.apply(); }
        if (hdr.ethernet.type == 2) { for_type.apply(); }";
    let features = ingress(&v1(
        "header part_t { bit<32> x; }",
        "part_t one; part_t two;",
        states,
        control,
        apply,
    ));
    let tables = |path: &str| -> Vec<&str> {
        let path = features.parser.paths.iter().find(|p| p.name == path).unwrap();
        let reached = features.controls[path.control].tables();
        reached
            .into_iter()
            .map(|at| features.tables[at].name.rsplit('.').next().unwrap())
            .collect()
    };
    assert_eq!(tables("ethernet/one"), ["for_one"]);
    assert_eq!(tables("ethernet/two"), ["for_two", "for_type"]);
    // What else the type may be is unknown there.
    assert_eq!(tables("ethernet"), ["for_type"]);
}

#[test]
fn the_costliest_sequence_takes_one_branch() {
    let control = "action a() { } table x { key = { m.a: exact; } actions = { a; } }
        table y { key = { m.b: exact; } actions = { a; } } table z { key = { m.c: exact; } actions = { a; } }";
    let apply = "if (hdr.ethernet.type == 1) { x.apply(); } else { y.apply(); z.apply(); }";
    let features = ingress(&v1("", "", ETHERNET_ONLY, control, apply));
    let (total, tables) = features.controls[0].costliest(&|_| 1.0);
    assert_eq!((total, tables), (2.0, vec![1, 2]));
    let (total, tables) = features.controls[0].costliest(&|at| if at == 0 { 5.0 } else { 1.0 });
    assert_eq!((total, tables), (5.0, vec![0]));
}

/// The kind of dependency of the second table on the first, and the stages that both need.
fn dependency(control: &str, apply: &str) -> (Option<DependencyKind>, u32) {
    let features = ingress(&v1("", "", ETHERNET_ONLY, control, apply));
    let node = |name: &str| {
        let is_it = |n: &&weir_latency::features::Node| matches!(n.kind, NodeKind::Table(_)) && n.name.ends_with(name);
        let found = features.dependencies.nodes.iter().find(is_it).unwrap();
        features.dependencies.nodes.iter().position(|n| n == found).unwrap()
    };
    let (first, second) = (node(".x"), node(".y"));
    let edge = features
        .dependencies
        .edges
        .iter()
        .find(|e| (e.from, e.to) == (first, second));
    let placement = Placement::of(&features.dependencies, &features.tables, &Chip::TOFINO);
    (edge.map(|e| e.kind), placement.needed())
}

#[test]
fn dependencies_are_of_four_kinds() {
    let tables = |first: &str, second: &str, key: &str| {
        format!(
            "action first(bit<8> v) {{ {first} }} action second(bit<8> v) {{ {second} }} action none() {{ }}
             table x {{ key = {{ hdr.ethernet.dst: exact; }} actions = {{ first; none; }} default_action = none(); }}
             table y {{ key = {{ {key}: exact; }} actions = {{ second; none; }} default_action = none(); }}"
        )
    };
    let both = "x.apply(); y.apply();";
    let of = |first, second, key| dependency(&tables(first, second, key), both);
    assert_eq!(of("m.a = v;", "m.b = v;", "hdr.ethernet.src"), (None, 1));
    assert_eq!(of("m.a = v;", "m.b = v;", "m.a"), (Some(DependencyKind::Match), 2));
    assert_eq!(of("m.a = v;", "m.b = m.a;", "m.c"), (Some(DependencyKind::Action), 2));
    assert_eq!(of("m.a = v;", "m.a = v;", "m.c"), (Some(DependencyKind::Action), 2));
    assert_eq!(
        of("m.a = v;", "hdr.ethernet.dst = 1;", "m.c"),
        (Some(DependencyKind::ReverseMatch), 1)
    );
    let by_hit = dependency(
        &tables("m.a = v;", "m.b = v;", "m.c"),
        "if (x.apply().hit) { y.apply(); }",
    );
    assert_eq!(by_hit, (Some(DependencyKind::Successor), 1));
    let by_gateway = dependency(
        &tables("m.a = v;", "m.b = v;", "m.c"),
        "x.apply(); if (m.a == 1) { y.apply(); }",
    );
    assert_eq!(by_gateway, (Some(DependencyKind::Match), 2));
    let exclusive = "if (hdr.ethernet.type == 1) { x.apply(); } else { y.apply(); }";
    assert_eq!(dependency(&tables("m.a = v;", "m.a = v;", "m.a"), exclusive), (None, 1));
}

#[test]
fn a_sum_before_a_table_takes_a_stage_and_a_copy_does_not() {
    let tables = |key: &str| {
        format!(
            "action none() {{ }} table x {{ key = {{ hdr.ethernet.dst: exact; }} actions = {{ none; }} }}
             table y {{ key = {{ {key}: exact @name(\"k\"); }} actions = {{ none; }} }}"
        )
    };
    assert_eq!(
        dependency(&tables("hdr.ethernet.src[7:0]"), "x.apply(); y.apply();").1,
        1
    );
    assert_eq!(dependency(&tables("m.a + m.b"), "x.apply(); y.apply();").1, 2);
}

#[test]
fn an_empty_and_a_full_pipeline_cost_what_the_assembler_says() {
    let empty = ingress(&v1("", "", ETHERNET_ONLY, "", ""));
    let placement = Placement::of(&empty.dependencies, &empty.tables, &Chip::TOFINO);
    assert_eq!((placement.needed(), placement.cycles), (0, 35));
    // Each of twelve tables matches what the one before it writes.
    let (mut tables, mut apply) = (String::new(), String::new());
    for i in 0..12 {
        let to = if i % 2 == 0 { "m.b" } else { "m.a" };
        let from = if i % 2 == 0 { "m.a" } else { "m.b" };
        let _ = write!(
            tables,
            "action set{i}(bit<8> v) {{ {to} = v; }} table t{i} {{ key = {{ {from}: exact; }} actions = {{ set{i}; }} \
             default_action = set{i}(0); }} "
        );
        let _ = write!(apply, "t{i}.apply(); ");
    }
    let full = ingress(&v1("", "", ETHERNET_ONLY, &tables, &apply));
    let placement = Placement::of(&full.dependencies, &full.tables, &Chip::TOFINO);
    assert_eq!(
        (placement.needed(), placement.cycles, placement.fits()),
        (12, 244, true)
    );
    assert_eq!(placement.critical.len(), 12);
}

#[test]
fn operations_of_actions_are_counted() {
    let control = "register<bit<32>>(16) r; counter(4, CounterType.packets) c;
        action a(bit<8> v) { hdr.ethernet.src = hdr.ethernet.dst; m.a = m.a + v; s.egress_spec = 1; c.count(0);
            bit<32> old; r.read(old, 0); r.write(0, old + 1); }
        table x { key = { m.b: exact; } actions = { a; } default_action = a(0); }";
    let features = ingress(&v1("", "", ETHERNET_ONLY, control, "x.apply();"));
    let done = features.tables[0].actions[0].operations;
    assert_eq!((done.header_writes, done.intrinsic_writes), (1, 1));
    assert_eq!((done.arithmetic, done.register_accesses, done.counter_calls), (2, 2, 1));
    let placement = Placement::of(&features.dependencies, &features.tables, &Chip::TOFINO);
    assert_eq!((placement.tcam_cycles, placement.state_cycles), (0, 4));
}

#[test]
fn all_three_architectures_have_features_of_both_directions() {
    for (name, headers) in [
        ("ipv4_router/ipv4_router.p4", "ethernet/ipv4"),
        ("ipv4_router_psa/ipv4_router_psa.p4", "ethernet/ipv4"),
        ("heavy_hitter_tna/heavy_hitter_tna.p4", "ethernet/ipv4/ports"),
    ] {
        let program = compile(&program_path(name));
        let features = Features::of(&program, Gress::Ingress).unwrap();
        assert!(
            features.parser.paths.iter().any(|p| p.name == headers),
            "{name}: {:?}",
            features.parser.paths
        );
        assert!(
            !features.tables.is_empty() && !features.dependencies.nodes.is_empty(),
            "{name}"
        );
        Features::of(&program, Gress::Egress).unwrap();
    }
}

#[test]
fn a_program_without_blocks_is_refused_by_name() {
    let error = Features::of(&weir_ir::Program::default(), Gress::Ingress).unwrap_err();
    assert!(matches!(error, FeatureError::NoBlock { what: "parser", .. }));
    assert!(error.to_string().contains("no ingress parser"));
    let rejects = v1("", "", "state start { transition reject; }", "", "");
    let error = Features::of(&compile_text(&rejects), Gress::Ingress).unwrap_err();
    assert!(error.to_string().starts_with("test.p4:"), "{error}");
}
