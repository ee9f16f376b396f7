//! Each rewrite on a small program.

use super::{Context, REWRITES};
use crate::metamorphic::text::Subject;
use crate::rng::Rng;

/// Seeds that are tried: places are chosen at random.
const SEEDS: u64 = 60;

/// The texts that a rewrite makes of a program.
fn texts<'t>(name: &str, program: &'t str, tests: &'t str) -> impl Iterator<Item = Option<String>> + 't {
    let rewrite = REWRITES.iter().find(|r| r.name == name).expect("a rewrite");
    let subject = Subject::new(program, [tests]).expect("a program");
    (0..SEEDS).map(move |seed| rewrite.text(&Context::new(&subject), &mut Rng::new(seed)))
}

/// A rewrite makes this text of a program, and others that differ only in the places chosen.
fn becomes_with(name: &str, before: &str, after: &str, tests: &str) {
    let made: Vec<String> = texts(name, before, tests).flatten().collect();
    for text in &made {
        assert!(
            Subject::new(text, [tests]).is_some(),
            "{name} makes something that does not parse:\n{text}"
        );
    }
    if !made.iter().any(|text| text == after) {
        assert_eq!(made.first().map_or("nothing", String::as_str), after, "{name}");
    }
}

fn becomes(name: &str, before: &str, after: &str) {
    becomes_with(name, before, after, "");
}

/// A rewrite has no place in a program.
fn stays(name: &str, program: &str) {
    assert_eq!(texts(name, program, "").flatten().next(), None, "{name}");
}

const HEAD: &str = "match_kind { exact } action NoAction() { }\n";

/// A control with a header's field `h.f` of 8 bits and this inside.
fn control(inside: &str) -> String {
    format!("struct H {{ bit<8> f; bit<8> g; }}\ncontrol C(inout H h) {{ {inside} }}")
}

/// A rewrite of a control.
fn inside(name: &str, before: &str, after: &str) {
    becomes(name, &control(before), &control(after));
}

#[test]
fn names_are_changed_everywhere() {
    becomes(
        "rename-locals",
        "control C(inout bit<8> x) { apply { x = x + 1; } }",
        "control C(inout bit<8> mm_x) { apply { mm_x = mm_x + 1; } }",
    );
    becomes(
        "rename-types",
        "struct S { bit<8> a; }\ncontrol C(inout S s) { apply { s.a = 1; } }",
        "struct mm_S { bit<8> a; }\ncontrol mm_C(inout mm_S s) { apply { s.a = 1; } }",
    );
    becomes(
        "rename-fields",
        "struct S { bit<8> a; }\nconst S s = { a = 1 };",
        "struct S { bit<8> mm_a; }\nconst S s = { mm_a = 1 };",
    );
}

#[test]
fn names_that_tests_use_are_kept() {
    let program = control("action a() { } table t { key = { h.f: exact; } actions = { a; } } apply { t.apply(); }");
    let program = format!("{HEAD}{program}");
    let made = texts("rename-control-plane", &program, "add t f:1 a()").flatten();
    for text in made {
        assert!(
            !text.contains("mm_a") || text.contains("@name(\"a\") action mm_a()"),
            "{text}"
        );
        assert!(
            !text.contains("mm_t") || text.contains("@name(\"t\") table mm_t"),
            "{text}"
        );
    }
    let made: Vec<String> = texts("rename-fields", &program, "").flatten().collect();
    assert!(
        made.iter().any(|t| t.contains("h.mm_f: exact @name(\"h.f\")")),
        "{made:?}"
    );
    let made: Vec<String> = texts("name-keys", &program, "").flatten().collect();
    assert!(made[0].contains("h.f: exact @name(\"h.f\");"));
}

#[test]
fn the_second_table_calls_a_copy() {
    let tables = |second: &str, copy: &str| {
        control(&format!(
            "action a(bit<8> x) {{ h.f = x; }}{copy} table t {{ actions = {{ a; }} }} \
             table u {{ actions = {{ {second}; }} default_action = {second}(1); }} \
             apply {{ t.apply(); switch (u.apply().action_run) {{ {second}: {{ }} default: {{ }} }} }}"
        ))
    };
    let copy = "\n@name(\"a\") action mm_copy0(bit<8> x) { h.f = x; }\n";
    becomes("copy-action", &tables("a", ""), &tables("mm_copy0", copy));
    stays(
        "copy-action",
        &control("action a() { } table t { actions = { a; } } apply { t.apply(); }"),
    );
}

#[test]
fn properties_of_tables_are_written_out() {
    inside(
        "table-size",
        "table t { actions = { } } apply { t.apply(); }",
        "table t { actions = { } size = 1024; } apply { t.apply(); }",
    );
    let program = "#include <core.p4>\ncontrol C() { table t { actions = { } } apply { t.apply(); } }";
    let after = program.replace(
        "actions = { }",
        "actions = { @defaultonly NoAction; } default_action = NoAction();",
    );
    becomes("default-action", program, &after);
}

#[test]
fn constants_are_unfolded_named_and_folded() {
    becomes(
        "unfold-constants",
        "const bit<1> a = 8w5[0:0];",
        "const bit<1> a = (8w2 + 8w3)[0:0];",
    );
    becomes(
        "name-constants",
        "const int a = 5;",
        "const int mm_c0 = 5;\nconst int a = mm_c0;",
    );
    stays("fold-constants", "const bit<8> a = 8w250 + 5;");
}

#[test]
fn folded_values_have_the_type_of_what_they_stand_for() {
    becomes("fold-constants", "const int a = 2 * 3;", "const int a = 6;");
    stays("fold-constants", "const bit<8> a = 8w250 + 8w6;");
    becomes(
        "fold-constants",
        "const bit<8> K = 5;\ncontrol C(inout bit<8> x) { apply { x = K; } }",
        "const bit<8> K = 5;\ncontrol C(inout bit<8> x) { apply { x = 8w5; } }",
    );
    becomes(
        "typedef",
        "struct S { bit<8> a; }",
        "typedef bit<8> mm_t0;\nstruct S { mm_t0  a; }",
    );
}

#[test]
fn expressions_are_written_another_way() {
    inside("parenthesize", "apply { h.f = h.g; }", "apply { h.f = (h.g); }");
    inside(
        "negate-twice",
        "apply { if (h.f == 1) { } }",
        "apply { if ((!(!(h.f == 1)))) { } }",
    );
    inside(
        "conditional",
        "apply { if (h.f == 1) { } }",
        "apply { if (((h.f == 1) ? true : false)) { } }",
    );
    inside(
        "commute",
        "apply { h.f = h.f + h.g; }",
        "apply { h.f = (h.g) + (h.f); }",
    );
    inside("compound", "apply { h.f = h.f | h.g; }", "apply { h.f |= h.g; }");
    inside(
        "compound",
        "apply { h.f -= h.g + 1; }",
        "apply { h.f = h.f - (h.g + 1); }",
    );
    stays("compound", &control("apply { h.f = h.g - h.f; }"));
}

#[test]
fn statements_are_wrapped() {
    inside("block", "apply { h.f = 1; }", "apply { { h.f = 1; } }");
    inside("if-true", "apply { h.f = 1; }", "apply { { if (true) { h.f = 1; } } }");
    inside(
        "empty-else",
        "apply { if (h.f == 1) h.f = 2; }",
        "apply { if (h.f == 1) { h.f = 2; } else { } }",
    );
    inside(
        "negate-if",
        "apply { if (h.f == 1) h.f = 2; else h.f = 3; }",
        "apply { if (!(h.f == 1)) { h.f = 3; } else { h.f = 2; } }",
    );
    let tables = "table t { actions = { } }";
    inside(
        "hit-or-miss",
        &format!("{tables} apply {{ if (t.apply().hit) {{ }} }}"),
        &format!("{tables} apply {{ if ((!t.apply().miss)) {{ }} }}"),
    );
}

#[test]
fn values_go_through_variables_and_bodies_through_actions_and_controls() {
    inside(
        "local",
        "apply { h.f = h.g; }",
        "apply { { bit<8> mm_v0 = h.g; h.f = mm_v0; } }",
    );
    inside(
        "outline-action",
        "apply { h.f = 1; }",
        "action mm_a0() { h.f = 1; }\n    apply { mm_a0(); }",
    );
    stays("outline-action", &control("apply { bit<8> x = 1; x = 2; }"));
    becomes(
        "sub-control",
        "control C(inout bit<8> x) { apply { x = 1; } }",
        "control mm_C0(inout bit<8> x) { apply { x = 1; } }\n\
         control C(inout bit<8> x) { mm_C0() mm_c1;\n    apply { mm_c1.apply(x); } }",
    );
    stays("sub-control", &control("action a() { } apply { a(); }"));
}

#[test]
fn arguments_are_named() {
    let call = |arguments: &str| {
        control(&format!(
            "action a(in bit<8> x, out bit<8> y) {{ y = x; }} apply {{ a({arguments}); }}"
        ))
    };
    // Both arguments have the same root, so that their order might matter.
    becomes("named-arguments", &call("h.f, h.g"), &call("x = h.f, y = h.g"));
    let two = |arguments: &str| {
        format!(
            "control C(inout bit<8> p, in bit<8> q) {{ action a(in bit<8> x, out bit<8> y) {{ y = x; }} \
             apply {{ a({arguments}); }} }}"
        )
    };
    becomes("named-arguments", &two("q, p"), &two("y = p, x = q"));
}

#[test]
fn selections_and_states_are_rewritten() {
    let state = |body: &str| format!("parser P(in bit<8> a, in bit<16> b) {{ state start {{ {body} }} }}");
    let select = |body: &str| state(&format!("transition select{body}"));
    becomes(
        "select-any",
        &select("(a) { default: accept; }"),
        &select("(a) { _: accept; }"),
    );
    becomes(
        "select-mask",
        &select("(a) { 5: accept; }"),
        &select("(a) { 5 &&& 255: accept; }"),
    );
    becomes(
        "select-order",
        &select("(a, b) { (1, 2): accept; default: reject; }"),
        &select("(b, a) { (2, 1): accept; default: reject; }"),
    );
    becomes(
        "split-state",
        &state("transition accept;"),
        &state("transition mm_s0; } state mm_s0 {  transition accept;"),
    );
}

#[test]
fn declarations_move_and_are_added() {
    becomes(
        "move-up",
        "#include <core.p4>\nconst bit<8> a = 1;\nerror { Mine }",
        "const bit<8> a = 1;\nerror { Mine }\n#include <core.p4>\n\n",
    );
    stays("move-up", "#include <core.p4>\nconst error a = error.NoError;");
    for name in ["unused", "unused-variable", "annotate", "comments"] {
        let program = control("apply { h.f = 1; }");
        let made: Vec<String> = texts(name, &program, "").flatten().collect();
        assert!(made.iter().any(|t| t.len() > program.len()), "{name}");
        for text in made {
            assert!(Subject::new(&text, []).is_some(), "{name}:\n{text}");
        }
    }
}

#[test]
fn structs_are_wrapped_and_flattened() {
    becomes(
        "wrap-fields",
        "struct M { bit<8> a; }\ncontrol C(inout M m) { apply { m.a = 1; } }",
        "struct mm_W0 { bit<8> a; }\nstruct M { mm_W0 mm_w1; }\ncontrol C(inout M m) { apply { m.mm_w1.a = 1; } }",
    );
    stays(
        "wrap-fields",
        "struct M { bit<8> a; }\ncontrol C(inout M m) { apply { m = { 1 }; } }",
    );
    becomes(
        "flatten-fields",
        "struct S { bit<8> a; }\nstruct M { S s; }\ncontrol C(inout M m) { apply { m.s.a = 1; } }",
        "struct S { bit<8> a; }\nstruct M { bit<8> mm_s_a;  }\ncontrol C(inout M m) { apply { m.mm_s_a = 1; } }",
    );
}

#[test]
fn what_macros_make_is_left_alone() {
    let program = "#define F(x) x == 1\ncontrol C(inout bit<8> a) { apply { if (F(a)) { } } }";
    stays("negate-twice", program);
    stays("commute", program);
}

#[test]
fn values_of_known_width_are_taken_apart() {
    let two_bits = |body: &str| format!("control C(inout bit<2> x, in bit<2> y) {{ apply {{ {body} }} }}");
    becomes("halves", &two_bits("x = y;"), &two_bits("x = (y[1:1] ++ y[0:0]);"));
    becomes("subtract", &two_bits("x = x - 3;"), &two_bits("x = (x + (~2w3 + 1));"));
    becomes(
        "assign-halves",
        &two_bits("x = y;"),
        &two_bits("{ bit<2> mm_v0 = y; x[1:1] = mm_v0[1:1]; x[0:0] = mm_v0[0:0]; }"),
    );
    becomes(
        "function",
        &two_bits("x = y;"),
        &format!(
            "bit<2> mm_f0(in bit<2> x) {{ return x; }}\n{}",
            two_bits("x = mm_f0(y);")
        ),
    );
    becomes(
        "once",
        &two_bits("x = y;"),
        &two_bits("for (bit<8> mm_i0 = 0; mm_i0 < 1; mm_i0 = mm_i0 + 1) { x = y; }"),
    );
    let made: Vec<String> = texts("widen", &two_bits("x = y;"), "").flatten().collect();
    assert!(made.iter().all(|t| t.contains("x = ((bit<2>)(bit<")), "{made:?}");
}
