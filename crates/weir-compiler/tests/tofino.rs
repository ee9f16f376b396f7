//! Programs for the Tofino architectures: each of `tests/tofino` compiles without a word, and
//! becomes the blocks and the objects of control planes that it should.

use std::fmt::Write;
use std::path::Path;
use weir_compiler::{Options, bfrt, compile_file, p4info};
use weir_ir::Program;
use weir_ir::target::Target;
use weir_proto::bfrt_info::{BfrtInfo, DataChoice, DataField, DataShape, FieldType};
use weir_proto::p4::config::v1::P4Info;
use weir_syntax::render;

fn compile(name: &str, defines: &[(&str, &str)], targets: &[Target]) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tofino").join(name);
    let defines = defines.iter().map(|(n, v)| ((*n).into(), Some((*v).into()))).collect();
    let options = Options {
        defines,
        ..Options::default()
    };
    let compiled = compile_file(&path, &options, targets);
    let found: Vec<_> = compiled.diagnostics.list().iter().collect();
    let shown: Vec<_> = found.iter().map(|d| render::short(d, &compiled.sources)).collect();
    assert!(shown.is_empty(), "{name}: {}", shown.join("\n"));
    compiled
        .program
        .unwrap_or_else(|| panic!("{name}: no package of an architecture"))
}

fn roles(program: &Program) -> Vec<&str> {
    program.blocks.iter().map(|b| b.role.as_str()).collect()
}

fn described(program: &Program) -> P4Info {
    p4info::p4info(program, weir_arch::targets()).expect("a description")
}

const PIPE: [&str; 6] = [
    "pipe0.ingress_parser",
    "pipe0.egress_parser",
    "pipe0.ingress",
    "pipe0.ingress_deparser",
    "pipe0.egress",
    "pipe0.egress_deparser",
];

#[test]
fn packages_become_the_blocks_of_their_pipes() {
    let all = weir_arch::targets();
    let switch = compile("switch.p4", &[], all);
    assert_eq!((switch.target.as_str(), roles(&switch)), ("tna", PIPE.to_vec()));
    assert_eq!(roles(&compile("same_pipe.p4", &[], all)), PIPE);
    let two = compile("two_pipes.p4", &[], all);
    assert_eq!(roles(&two)[6..].len(), 6);
    assert!(roles(&two)[6..].iter().all(|r| r.starts_with("pipe1.")));
    let multi = compile("multi_parser.p4", &[], all);
    assert_eq!(
        roles(&multi)[..3],
        ["pipe0.ingress_parser0", "pipe0.ingress_parser1", "pipe0.egress_parser0"]
    );
    let ghost = compile("ghost.p4", &[], all);
    assert_eq!((ghost.target.as_str(), roles(&ghost)[6]), ("t2na", "pipe0.ghost"));
}

/// One made in place is called after the parameter that it is given for. Actions have no pipe, as
/// with one.
#[test]
fn names_of_several_pipelines_begin_with_theirs() {
    let program = compile("shared_control.p4", &[], weir_arch::targets());
    let tables: Vec<&str> = program.tables.iter().map(|(_, t)| t.name.as_str()).collect();
    assert_eq!(tables, ["first.Ingress.forward", "pipe2.Ingress.forward"]);
    let text = weir_ir::print::print(&program);
    assert_eq!(weir_ir::parse::parse(&text).expect("what was printed"), program);
    let info = bfrt::bfrt_info(&program, weir_arch::targets()).expect("a description");
    let names: Vec<&str> = info.tables.iter().map(|t| t.name.as_str()).collect();
    let expected = [
        "first.Ingress.forward",
        "pipe2.Ingress.forward",
        "first.IngressParser.$PORT_METADATA",
        "pipe2.IngressParser.$PORT_METADATA",
    ];
    assert_eq!(names, expected);
    let actions = info.tables.iter().flat_map(|t| t.action_specs.iter().flatten());
    let actions: Vec<&str> = actions.map(|a| a.name.as_str()).collect();
    assert_eq!(
        actions,
        ["Ingress.send", "Ingress.drop", "Ingress.send", "Ingress.drop"]
    );
    assert_eq!(described(&program).tables.len(), 2);
    let one = compile("same_pipe.p4", &[], weir_arch::targets());
    let info = bfrt::bfrt_info(&one, weir_arch::targets()).expect("a description");
    assert!(info.tables.iter().all(|t| t.name.starts_with("pipe.")));
}

/// The blocks of a pipe share the intrinsic metadata, the ingress port among them.
#[test]
fn the_ingress_port_is_where_the_architecture_says() {
    for name in ["switch.p4", "ghost.p4"] {
        let program = compile(name, &[], weir_arch::targets());
        assert_eq!(weir_arch::port_bits(&program), 9, "{name}");
    }
}

#[test]
fn every_extern_is_accepted() {
    let all = weir_arch::targets();
    compile("parsers.p4", &[], all);
    assert_eq!(compile("externs.p4", &[], all).target, "tna");
    assert_eq!(compile("externs.p4", &[("SECOND", "1")], all).target, "t2na");
    assert_eq!(compile("second.p4", &[], all).target, "t2na");
}

#[test]
fn a_program_of_the_first_architecture_may_be_for_the_second_chip() {
    let second: Vec<_> = weir_arch::targets()
        .iter()
        .filter(|t| t.name == "t2na")
        .copied()
        .collect();
    assert_eq!(compile("for_second_chip.p4", &[], &second).target, "t2na");
}

#[test]
fn control_planes_are_told_of_what_p4info_has_a_place_for() {
    let info = described(&compile("externs.p4", &[], weir_arch::targets()));
    let sizes: Vec<_> = info.counters.iter().map(|c| c.size).collect();
    assert_eq!(sizes, [512]);
    assert_eq!((info.direct_counters.len(), info.direct_meters.len()), (1, 1));
    assert_eq!((info.meters.len(), info.registers.len()), (2, 3));
    let profiles: Vec<_> = info.action_profiles.iter().map(|p| (p.size, p.with_selector)).collect();
    assert!(profiles.contains(&(32, false)), "{profiles:?}");
    assert!(profiles.iter().any(|(_, selector)| *selector), "{profiles:?}");
    let table = |name: &str| {
        let has = |t: &&weir_proto::p4::config::v1::Table| t.preamble.as_ref().is_some_and(|p| p.alias == name);
        info.tables.iter().find(has).expect("the table")
    };
    assert_ne!(table("selected").implementation_id, 0);
    assert_ne!(table("profiled").implementation_id, 0);
    assert_eq!(table("routed").idle_timeout_behavior, 1);
    assert_eq!(table("counts").direct_resource_ids.len(), 1);
    let info = described(&compile("parsers.p4", &[], weir_arch::targets()));
    assert_eq!(info.digests.len(), 1);
}

/// A document in a few lines per table.
fn brief(info: &BfrtInfo) -> String {
    let ty = |ty: &FieldType| match ty.width {
        Some(width) => format!("{}{width}", ty.kind),
        None => ty.kind.clone(),
    };
    let field = |f: &DataField| {
        let shape = match &f.shape {
            DataShape::Value(of) => ty(of),
            DataShape::Container(fields) => format!("{} fields", fields.len()),
        };
        format!("{} {} {shape}{}", f.id, f.name, if f.repeated { " list" } else { "" })
    };
    let mut out = String::new();
    for table in &info.tables {
        let (operations, attributes) = (table.supported_operations.join(" "), table.attributes.join(" "));
        let _ = writeln!(
            out,
            "{} {:#010x} {} size {} [{operations}] [{attributes}] after {:x?}",
            table.name, table.id, table.table_type, table.size, table.depends_on
        );
        for key in &table.key {
            let _ = writeln!(out, "  key {} {} {} {}", key.id, key.name, key.match_type, ty(&key.ty));
        }
        for action in table.action_specs.iter().flatten() {
            let data: Vec<String> = action
                .data
                .iter()
                .map(|d| format!("{} {} {}", d.id, d.name, ty(&d.ty)))
                .collect();
            let (id, scope) = (action.id, &action.action_scope);
            let _ = writeln!(out, "  action {id:#010x} {} {scope} ({})", action.name, data.join(", "));
        }
        for data in &table.data {
            let text = match &data.field {
                DataChoice::One(one) => field(one),
                DataChoice::OneOf(several) => several.iter().map(field).collect::<Vec<_>>().join(" or "),
            };
            let _ = writeln!(out, "  data {text}{}", if data.mandatory { "" } else { "?" });
        }
    }
    for filter in &info.learn_filters {
        let fields: Vec<String> = filter.fields.iter().map(field).collect();
        let _ = writeln!(out, "{} {:#010x} learn ({})", filter.name, filter.id, fields.join(", "));
    }
    out
}

#[test]
fn bf_runtime_is_told_of_every_table_extern_and_parser() {
    for (name, defines) in [
        ("externs.p4", &[][..]),
        ("externs.p4", &[("SECOND", "1")][..]),
        ("parsers.p4", &[][..]),
    ] {
        let info = bfrt::bfrt_info(&compile(name, defines, weir_arch::targets()), weir_arch::targets());
        let info = info.expect("a description");
        assert_eq!(BfrtInfo::from_json(&info.to_json()).expect("what was written"), info);
        let number = if defines.is_empty() { 1 } else { 2 };
        insta::assert_snapshot!(format!("bfrt_{}_{number}", name.trim_end_matches(".p4")), brief(&info));
    }
}

#[test]
fn numbers_are_those_that_other_compilers_give() {
    let info = bfrt::bfrt_info(&compile("externs.p4", &[], weir_arch::targets()), weir_arch::targets())
        .expect("a description");
    let actions = info.tables.iter().flat_map(|t| t.action_specs.iter().flatten());
    let no_action = actions.clone().find(|a| a.name == "NoAction").expect("it is there");
    assert_eq!(no_action.id, 21_257_015);
    let tables: Vec<u32> = info.tables.iter().map(|t| t.id).collect();
    let distinct: std::collections::BTreeSet<u32> = tables.iter().copied().collect();
    assert_eq!(tables.len(), distinct.len());
}
