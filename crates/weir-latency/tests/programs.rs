//! What programs cost whose cost is easily misjudged: branches, filters, pipes, metadata in front
//! of packets, sums of sums, copies without effect.

mod common;

use common::{case_path, compile_text, v1};
use weir_latency::compare::{Change, compare};
use weir_latency::features::{Chip, DependencyKind, Operations, ParserPath};
use weir_latency::model::{Feature, Target, shipped};
use weir_latency::predict::{Prediction, Question, predict};
use weir_latency::workload::Workload;
use weir_latency::{FeatureError, Features, Gress, show};

const ETHERNET_ONLY: &str = "state start { p.extract(hdr.ethernet); transition accept; }";

fn ingress(text: &str) -> Features {
    Features::of(&compile_text(text), Gress::Ingress).unwrap()
}

/// A program that parses Ethernet only.
fn control(declarations: &str, apply: &str) -> String {
    v1("", "", ETHERNET_ONLY, declarations, apply)
}

fn predicted(text: &str, model: &str) -> Prediction {
    let program = compile_text(text);
    let model = shipped(model).unwrap();
    let features = |gress| Features::of(&program, gress).unwrap();
    let egress = (model.target == Target::Weir).then(|| features(Gress::Egress));
    let question = Question {
        port_gbps: 10,
        sizes: vec![200],
        ..Question::default()
    };
    predict("p.p4", &features(Gress::Ingress), egress.as_ref(), &model, &question).unwrap()
}

/// The TNA program of test case 6B with parts of its text replaced.
fn tna(replacements: &[(&str, &str)]) -> String {
    let mut text = std::fs::read_to_string(case_path("tc6b")).unwrap();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

fn path<'a>(features: &'a Features, headers: &str) -> &'a ParserPath {
    let is_it = |p: &&ParserPath| p.name == headers;
    features.parser.paths.iter().find(is_it).unwrap_or_else(|| {
        let names: Vec<&str> = features.parser.paths.iter().map(|p| p.name.as_str()).collect();
        panic!("{headers}: {names:?}")
    })
}

fn stages(features: &Features) -> u32 {
    features.placement(&Chip::TOFINO).needed()
}

const BRANCH: &str = "action none() { }
    table small { key = { hdr.ethernet.type: exact; } actions = { none; } size = 16; }
    table acl { key = { hdr.ethernet.dst: ternary; hdr.ethernet.src: ternary; } actions = { none; } size = 100000; }
    table plain { actions = { none; } }";

#[test]
fn the_costlier_branch_counts_even_if_both_look_up_one_table() {
    let both = "if (hdr.ethernet.src[0:0] == 1) { small.apply(); } else { acl.apply(); }";
    for model in ["weir-lr", "weir-plp"] {
        let alone = predicted(&control(BRANCH, "acl.apply();"), model);
        let branch = predicted(&control(BRANCH, both), model);
        assert_eq!(branch.paths[0].tables, ["I.acl"], "{model}");
        let (alone, branch) = (alone.worst().unwrap().1.total, branch.worst().unwrap().1.total);
        assert!((alone - branch).abs() < 1e-9, "{model}: {alone} {branch}");
    }
    let small = predicted(&control(BRANCH, "small.apply();"), "weir-lr");
    let changes = compare(&small, &predicted(&control(BRANCH, both), "weir-lr")).unwrap();
    assert!(matches!(&changes[..], [Change::Slower(_)]), "{changes:?}");
}

#[test]
fn tables_without_keys_do_not_hide_one_that_costs() {
    let declarations = BRANCH.replace(
        "table plain { actions = { none; } }",
        "table a { actions = { none; } } table b { actions = { none; } }",
    );
    let apply = "if (hdr.ethernet.src[0:0] == 1) { a.apply(); b.apply(); } else { acl.apply(); }";
    let found = predicted(&control(&declarations, apply), "weir-lr");
    assert_eq!(found.paths[0].tables, ["I.acl"]);
}

#[test]
fn what_happens_on_a_miss_counts_if_it_costs_more() {
    let apply = "if (!small.apply().hit) { acl.apply(); }";
    let found = predicted(&control(BRANCH, apply), "weir-lr");
    assert_eq!(found.paths[0].tables, ["I.small", "I.acl"]);
}

#[test]
fn operations_are_those_of_the_costliest_sequence() {
    let declarations = format!("{BRANCH} register<bit<32>>(16) r;");
    let total = |apply: &str| {
        let found = predicted(&control(&declarations, apply), "weir-lr");
        (found.worst().unwrap().1.total, found.paths[0].tables.clone())
    };
    // The registers stand beside the cheap table, and cost more than the other one.
    let registers = "small.apply(); bit<32> x; r.read(x, 0); r.write(0, x);";
    let branch = total(&format!(
        "if (hdr.ethernet.src[0:0] == 1) {{ {registers} }} else {{ acl.apply(); }}"
    ));
    assert_eq!(branch, total(registers));
    assert_eq!(branch.1, ["I.small"]);
    // Writes beside the cheap table cost less: they do not count.
    let writes = "small.apply(); m.a = 1; hdr.ethernet.src = 1;";
    let branch = total(&format!(
        "if (hdr.ethernet.src[0:0] == 1) {{ {writes} }} else {{ acl.apply(); }}"
    ));
    assert_eq!(branch, total("acl.apply();"));
}

#[test]
fn many_branches_are_judged_without_listing_them() {
    use std::fmt::Write;
    let (mut tables, mut apply) = (String::new(), String::new());
    for i in 0..60 {
        let kind = if i % 2 == 0 { "ternary" } else { "exact" };
        let _ = write!(
            tables,
            "table t{i} {{ key = {{ hdr.ethernet.dst: {kind}; }} actions = {{ NoAction; }} size = 100; }} "
        );
        let _ = write!(
            apply,
            "if (hdr.ethernet.src[{0}:{0}] == 1) {{ t{i}.apply(); }} ",
            i % 48
        );
    }
    let found = predicted(&control(&tables, &apply), "weir-lr");
    assert_eq!(found.paths[0].tables.len(), 60);
}

#[test]
fn a_huge_table_has_a_finite_cost() {
    for size in ["9223372036854775807", "99999999999999999999999999"] {
        let table =
            format!("table t {{ key = {{ hdr.ethernet.dst: ternary; }} actions = {{ NoAction; }} size = {size}; }}");
        let text = control(&table, "t.apply();");
        let total = predicted(&text, "weir-lr").worst().unwrap().1.total;
        assert!(total.is_finite() && total > 100.0, "{size}: {total}");
        let shown = show::explain(&ingress(&text), &Chip::TOFINO);
        let expected = if size.len() > 20 { "a size beyond 64 bits" } else { size };
        assert!(shown.contains(expected), "{shown}");
    }
}

const ROUTES: &str = "    action forward(PortId_t port) {\n        tm.ucast_egress_port = port;\n    }\n";

#[test]
fn filters_and_red_add_four_cycles_in_tables_and_in_statements() {
    let call = "seen.write(0, value);";
    for (object, execute) in [
        (
            "Lpf<bit<32>, bit<10>>(1024) filter;",
            "meta.flow = (bit<32>) filter.execute(value, value[9:0]);",
        ),
        (
            "DirectLpf<bit<32>>() filter;",
            "meta.flow = (bit<32>) filter.execute(value);",
        ),
        (
            "Wred<bit<19>, bit<32>>(1024, 1, 0) filter;",
            "meta.flow[7:0] = filter.execute(value[18:0], value);",
        ),
    ] {
        let with = format!("    {object}\n{ROUTES}");
        let size = "size = 1500;";
        let attached = if object.starts_with("Direct") {
            "size = 1500; filters = filter;"
        } else {
            size
        };
        let features = ingress(&tna(&[(ROUTES, &with), (call, execute), (size, attached)]));
        let placement = features.placement(&Chip::TOFINO);
        assert_eq!(placement.state_cycles, 4, "{object}");
        assert!(
            features
                .tables
                .iter()
                .any(|t| t.actions.iter().any(|a| a.operations.filter_calls == 1))
        );
    }
    let with = format!("    Lpf<bit<32>, bit<10>>(1024) filter;\n{ROUTES}");
    let features = ingress(&tna(&[
        (ROUTES, &with),
        (call, "meta.flow = value;"),
        (
            "tm.bypass_egress = 1;",
            "meta.flow = (bit<32>) filter.execute(hdr.ipv6.dst_addr[31:0], hdr.ipv6.dst_addr[9:0]);",
        ),
    ]));
    assert_eq!(features.placement(&Chip::TOFINO).state_cycles, 4);
}

#[test]
fn each_pipe_of_a_program_has_features_of_its_own() {
    let text = std::fs::read_to_string(case_path("tc6b")).unwrap();
    let package = text.find("Pipeline(").unwrap();
    let control = &text[text.find("control CaseIngress(").unwrap()..text.find("control CaseIngressDeparser").unwrap()];
    let other = control
        .replace("control CaseIngress(", "control OtherIngress(")
        .replace("flows.apply();", "");
    let blocks = |ingress: &str| {
        format!(
            "Pipeline(CaseIngressParser(), {ingress}(), CaseIngressDeparser(), CaseEgressParser(), CaseEgress(), \
             CaseEgressDeparser())"
        )
    };
    let two = format!(
        "{}{other}\n{} pipe0; {} pipe1; Switch(pipe0, pipe1) main;",
        &text[..package],
        blocks("CaseIngress"),
        blocks("OtherIngress")
    );
    let program = compile_text(&two);
    assert_eq!(Features::pipes(&program), ["pipe0", "pipe1"]);
    let tables = |pipe| {
        Features::of_pipe(&program, Gress::Ingress, Some(pipe))
            .unwrap()
            .tables
            .len()
    };
    assert_eq!((tables("pipe0"), tables("pipe1")), (2, 1));
    let error = Features::of_pipe(&program, Gress::Ingress, Some("pipe2")).unwrap_err();
    assert!(matches!(error, FeatureError::NoPipe { .. }) && error.to_string().contains("pipe0, pipe1"));
}

#[test]
fn each_sum_of_a_sum_takes_a_stage() {
    let sums = "m.b = m.a + 1; m.c = m.b + 1; m.a = m.c + 1; hdr.ethernet.dst[7:0] = m.a;";
    assert_eq!(stages(&ingress(&control("", sums))), 3);
    let apart = "m.b = m.a + 1; m.c = m.a + 2;";
    assert_eq!(stages(&ingress(&control("", apart))), 1);
    let copies = "m.b = m.a; m.c = m.b; hdr.ethernet.dst[7:0] = m.c;";
    assert_eq!(stages(&ingress(&control("", copies))), 1);
}

#[test]
fn a_key_that_is_computed_takes_a_stage_and_a_masked_one_does_not() {
    let table = |key: &str| format!("table t {{ key = {{ {key}: exact @name(\"k\"); }} actions = {{ NoAction; }} }}");
    let of = |key: &str| ingress(&control(&table(key), "t.apply();"));
    for (key, expected) in [("m.a & 0xf", 1), ("m.a + 1", 2), ("-m.a", 2), ("~m.a", 2), ("m.a", 1)] {
        assert_eq!(stages(&of(key)), expected, "{key}");
    }
    let computed = of("m.a + 1");
    let edge = computed
        .dependencies
        .edges
        .iter()
        .find(|e| e.kind == DependencyKind::Match)
        .unwrap();
    assert!(edge.because.starts_with("the value computed in line "), "{edge:?}");
    let names = computed
        .dependencies
        .nodes
        .iter()
        .flat_map(|n| n.matches.iter().chain(&n.writes));
    assert!(names.map(String::as_str).all(|name| !name.is_empty()));
}

#[test]
fn a_header_that_becomes_valid_is_one_write() {
    let action = "action a() { hdr.ethernet.setValid(); }
        table t { key = { m.a: exact; } actions = { a; } default_action = a(); }";
    let features = ingress(&control(action, "t.apply();"));
    let done = features.tables[0].actions[0].operations;
    assert_eq!(done.header_writes, 1, "{done:?}");
    assert_eq!(done.named(), [("header write", 1)]);
}

const PSA: &str = "#include <core.p4>\n#include <psa.p4>
    header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
    header ip_t { bit<8> ttl; bit<8> protocol; bit<16> sum; bit<32> src; bit<32> dst; }
    struct H { eth_t eth; ip_t ip; } struct M { } struct E0 { }
    parser IP(packet_in p, out H h, inout M m, in psa_ingress_parser_input_metadata_t i, in E0 r, in E0 c) {
        state start { p.extract(h.eth); p.extract(h.ip); transition accept; } }
    control I(inout H h, inout M m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {
        action service() { o.class_of_service = (ClassOfService_t) 1; }
        action forward(PortId_t port) { send_to_port(o, port); }
        table x { key = { h.eth.src: exact; } actions = { service; NoAction; } }
        table y { key = { h.eth.dst: exact; } actions = { forward; NoAction; } }
        apply { x.apply(); y.apply(); } }
    control ID(packet_out p, out E0 a, out E0 b, out E0 c, inout H h, in M m, in psa_ingress_output_metadata_t o) {
        InternetChecksum() sum;
        apply { sum.clear(); sum.add({ h.ip.ttl, h.ip.src, h.ip.dst }); h.ip.sum = sum.get(); p.emit(h); } }
    parser EP(packet_in p, out H h, inout M m, in psa_egress_parser_input_metadata_t i, in E0 a, in E0 b, in E0 c) {
        state start { p.extract(h.eth); transition accept; } }
    control EG(inout H h, inout M m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) {
        apply { } }
    control ED(packet_out p, out E0 a, out E0 b, inout H h, in M m, in psa_egress_output_metadata_t o,
        in psa_egress_deparser_input_metadata_t d) { apply { p.emit(h.eth); } }
    IngressPipeline(IP(), I(), ID()) ip; EgressPipeline(EP(), EG(), ED()) ep;
    PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;";

#[test]
fn parameters_that_are_copied_back_unchanged_are_not_written() {
    let features = ingress(PSA);
    assert!(!features.dependencies.edges.iter().any(|e| e.kind.needs_later_stage()));
    assert_eq!(stages(&features), 1);
    let forward: Operations = features.tables[1].actions[0].operations;
    assert_eq!(forward.intrinsic_writes, 3, "{forward:?}");
}

#[test]
fn checksums_of_deparsers_rewrite_headers() {
    assert_eq!(ingress(PSA).checksummed, ["h.ip"]);
    let declared = "    Checksum() sum;\n    apply {\n        hdr.udp.checksum = sum.update({ hdr.udp.src_port });\n";
    let text = tna(&[]);
    let deparser = text.find("control CaseIngressDeparser").unwrap();
    let (before, after) = text.split_at(deparser);
    let features = ingress(&format!("{before}{}", after.replacen("    apply {\n", declared, 1)));
    assert_eq!(features.checksummed, ["hdr.udp"]);
}

#[test]
fn ethernet_is_found_behind_another_header() {
    let states = "state start { transition select(s.ingress_port) { 255: cpu; default: ethernet; } }
        state cpu { p.extract(hdr.cpu); transition ethernet; }
        state ethernet { p.extract(hdr.ethernet); transition select(hdr.ethernet.type) { 1: skip; 2: part; default: accept; } }
        state skip { p.advance(8000); transition part; }
        state part { p.extract(hdr.part); transition accept; }";
    let types = "header cpu_t { bit<32> x; } header part_t { bit<160> x; }";
    let features = ingress(&v1(types, "cpu_t cpu; part_t part;", states, "", ""));
    let numbers = |name: &str| {
        let path = path(&features, name);
        (path.extracting_states, path.header_bytes, path.parsed_bytes)
    };
    assert_eq!(numbers("ethernet"), (0, 0, 14));
    assert_eq!(numbers("cpu/ethernet"), (1, 4, 18));
    // What is skipped is part of what a packet needs, and its state is shown.
    let skipping: Vec<&ParserPath> = features
        .parser
        .paths
        .iter()
        .filter(|p| p.headers() == "ethernet/part")
        .collect();
    let mut needed: Vec<u32> = skipping.iter().map(|p| p.parsed_bytes).collect();
    needed.sort_unstable();
    assert_eq!(needed, [34, 1034]);
    assert!(
        skipping
            .iter()
            .all(|p| (p.extracting_states, p.header_bytes) == (1, 20))
    );
    assert!(show::explain(&features, &Chip::TOFINO).contains("skips 1000 bytes"));
}

#[test]
fn a_path_without_ethernet_has_its_first_header_for_it() {
    let states = "state start { p.extract(hdr.first); transition next; }
        state next { p.extract(hdr.second); transition accept; }";
    let types = "header first_t { bit<160> x; } header second_t { bit<64> x; }";
    let features = ingress(&v1(types, "first_t first; second_t second;", states, "", ""));
    let path = path(&features, "first/second");
    assert_eq!((path.extracting_states, path.header_bytes), (1, 14));
}

#[test]
fn port_metadata_is_no_header_however_it_is_taken() {
    let usual = ingress(&tna(&[]));
    let extracted = ingress(&tna(&[
        (
            "struct headers_t {\n",
            "header port_t { bit<64> x; }\nstruct headers_t {\n    port_t port;\n",
        ),
        ("packet.advance(PORT_METADATA_SIZE);", "packet.extract(hdr.port);"),
    ]));
    for path_of in &usual.parser.paths {
        let same = path(&extracted, &path_of.name);
        assert_eq!(
            (same.extracting_states, same.header_bytes, same.parsed_bytes),
            (path_of.extracting_states, path_of.header_bytes, path_of.parsed_bytes)
        );
    }
}

#[test]
fn a_short_egress_is_padded_on_a_tofino_only() {
    let features = Features::of(&compile_text(&tna(&[])), Gress::Egress).unwrap();
    let placement = features.placement(&Chip::TOFINO);
    assert_eq!((placement.cycles, placement.padding), (160, 125));
    assert!(show::explain(&features, &Chip::TOFINO).contains("160 cycles (at least"));
    assert_eq!(features.placement(&Chip::TOFINO2).padding, 0);
    assert_eq!(ingress(&tna(&[])).placement(&Chip::TOFINO).padding, 0);
}

/// A program whose paths have one header, and differ in what the parser remembers.
fn diamonds(count: usize, condition: &str) -> String {
    use std::fmt::Write;
    let mut states = "state start { p.extract(hdr.ethernet); transition s0; }\n".to_owned();
    for i in 0..count {
        let _ = write!(
            states,
            "state s{i} {{ transition select(hdr.ethernet.src[{i}:{i}]) {{ 0: a{i}; default: b{i}; }} }}
             state a{i} {{ m.a = {}; transition s{}; }} state b{i} {{ m.b = {}; transition s{}; }}\n",
            i + 1,
            i + 1,
            i + 1,
            i + 1
        );
    }
    let _ = write!(states, "state s{count} {{ transition accept; }}");
    let acl = "table acl { key = { hdr.ethernet.src: ternary; } actions = { NoAction; } size = 100; }";
    v1("", "", &states, acl, &format!("if ({condition}) {{ acl.apply(); }}"))
}

#[test]
fn paths_that_cost_the_same_are_one_and_keep_their_names() {
    let features = ingress(&diamonds(6, "m.a == 6 && m.b == 1"));
    assert_eq!(features.parser.accepting, 64.0);
    assert_eq!(features.parser.paths.len(), 2, "{:?}", features.parser.paths);
    assert_eq!(features.parser.paths.iter().map(|p| p.count).sum::<f64>(), 64.0);
    let names = |f: &Features| -> Vec<String> { f.parser.paths.iter().map(|p| p.name.clone()).collect() };
    assert!(names(&features).iter().all(|name| name.starts_with("ethernet#")));
    // Another condition, so that other counts of paths reach the table: the names stay.
    let other = ingress(&diamonds(6, "m.a == 6"));
    let (mut before, mut after) = (names(&features), names(&other));
    before.sort();
    after.sort();
    assert_eq!(before, after);
}

#[test]
fn a_path_that_is_parsed_in_another_way_is_compared_with_what_it_was() {
    let parse = |more: &str| {
        let states = format!(
            "state start {{ p.extract(hdr.ethernet); transition select(hdr.ethernet.type) {{ 1: part; {more} default: accept; }} }}
             state skip {{ p.advance(80); transition part; }}
             state part {{ p.extract(hdr.part); transition accept; }}"
        );
        v1("header part_t { bit<32> x; }", "part_t part;", &states, "", "")
    };
    let (old, new) = (
        predicted(&parse(""), "paper-lr"),
        predicted(&parse("2: skip;"), "paper-lr"),
    );
    let changes = compare(&old, &new).unwrap();
    assert!(!changes.iter().any(Change::is_worse), "{changes:?}");
    assert!(!changes.iter().any(|c| matches!(c, Change::Gone { .. })), "{changes:?}");
}

#[test]
fn left_out_paths_and_entries_are_part_of_a_comparison() {
    let old = predicted(&control("", ""), "paper-lr");
    let mut new = old.clone();
    new.is_cut_off = true;
    let changes = compare(&old, &new).unwrap();
    assert!(matches!(&changes[..], [Change::LeftOut]) && changes[0].is_worse());
    assert!(compare(&new, &new).unwrap().is_empty());
    let mut counted = old.clone();
    counted.entries = Some("0123456789abcdef".to_owned());
    assert!(
        compare(&counted, &old)
            .unwrap_err()
            .to_string()
            .contains("with --entries")
    );
    let mut more = counted.clone();
    more.entries = Some("fedcba9876543210".to_owned());
    assert!(compare(&counted, &more).unwrap().is_empty());
}

#[test]
fn tables_without_a_size_count_as_p4info_does() {
    let table =
        |size: &str| format!("table t {{ key = {{ hdr.ethernet.dst: exact; }} actions = {{ NoAction; }} {size} }}");
    let features = |size: &str| ingress(&control(&table(size), "t.apply();"));
    let entries = |size: &str| features(size).tables[0].expected_entries();
    assert_eq!(
        (entries(""), entries("size = 0;"), entries("size = 7;")),
        (1024, 1024, 7)
    );
}

#[test]
fn rewritten_headers_of_a_sequence_are_counted_once() {
    let apply = "hdr.ethernet.src = 1; hdr.ethernet.dst = 2; if (hdr.ethernet.type == 1) { hdr.ethernet.type = 3; }";
    let features = ingress(&control("", apply));
    let workload = Workload {
        ingress: &features,
        egress: None,
        placement: features.placement(&Chip::TOFINO),
    };
    let values = workload.values(&features.parser.paths[0], 0);
    assert_eq!(values.get(Feature::RewrittenHeaders), 1.0);
    assert_eq!(values.get(Feature::HeaderWrites), 3.0);
}
