//! Sources that want too much: each gets a program or an error, and soon. None may crash, hang or
//! exhaust memory.

mod common;

use common::{V1Model, compile, messages};
use std::fmt::Write;
use weir_compiler::{Cancellation, Options, compile_source};

/// It must be rejected; one of the messages contains `message`.
fn rejected(text: &str, message: &str) {
    let compiled = compile("hostile.p4", text);
    assert!(compiled.diagnostics.has_errors(), "accepted");
    let found = compiled.diagnostics.list().iter().any(|d| d.message.contains(message));
    assert!(found, "{:?}", messages(&compiled));
}

/// It must be accepted.
fn accepted(text: &str) {
    let compiled = compile("hostile.p4", text);
    assert!(!compiled.diagnostics.has_errors(), "{:?}", messages(&compiled));
}

/// A v1model program: declarations, the fields of its headers, and its ingress control.
fn v1model(declarations: &str, fields: &str, locals: &str, apply: &str) -> String {
    let program = V1Model {
        declarations,
        fields,
        locals,
        apply,
        ..V1Model::default()
    };
    program.text()
}

#[test]
fn a_compilation_ends_when_nobody_waits_for_it_any_more() {
    let text = v1model("", "", "", &"hdr.h.x = hdr.h.x + hdr.h.y;\n".repeat(100_000));
    let (cancellation, while_awaited) = Cancellation::new();
    let options = Options {
        cancellation,
        ..Options::default()
    };
    std::thread::scope(|scope| {
        let compiling = scope.spawn(|| compile_source("hostile.p4", &text, &options, weir_arch::targets()));
        drop(while_awaited);
        let compiled = compiling.join().unwrap();
        let codes: Vec<&str> = compiled.diagnostics.list().iter().map(|d| d.code).collect();
        assert_eq!(codes, ["cancelled"]);
        assert!(compiled.program.is_none());
    });
}

#[test]
fn functions_that_double_forty_times() {
    let mut text = String::from("bit<32> f0(in bit<32> x) { return x + 1; }\n");
    for i in 1..=40 {
        let f = i - 1;
        let _ = writeln!(text, "bit<32> f{i}(in bit<32> x) {{ return f{f}(f{f}(x)); }}");
    }
    rejected(&v1model(&text, "", "", "hdr.h.x = f40(hdr.h.x);"), "too large");
}

#[test]
fn controls_that_double_forty_times() {
    let mut text = String::from("control c0(inout bit<32> x) { apply { x = x + 1; } }\n");
    for i in 1..=40 {
        let c = i - 1;
        let _ = writeln!(
            text,
            "control c{i}(inout bit<32> x) {{ c{c}() a; c{c}() b; apply {{ a.apply(x); b.apply(x); }} }}"
        );
    }
    rejected(&v1model(&text, "", "c40() c;", "c.apply(hdr.h.x);"), "too large");
}

#[test]
fn actions_that_double_forty_times() {
    let mut locals = String::from("action a0() { hdr.h.x = hdr.h.x + 1; }\n");
    for i in 1..=40 {
        let a = i - 1;
        let _ = writeln!(locals, "action a{i}() {{ a{a}(); a{a}(); }}");
    }
    rejected(&v1model("", "", &locals, "a40();"), "too large");
}

#[test]
fn tables_that_inline_large_actions() {
    let mut locals = String::from("action a0() { hdr.h.x = hdr.h.x + 1; }\n");
    for i in 1..=18 {
        let a = i - 1;
        let _ = writeln!(locals, "action a{i}() {{ a{a}(); a{a}(); }}");
    }
    locals += "table t { key = { hdr.h.x: exact; } actions = { a18; NoAction; } }";
    let apply = "t.apply(); t.apply(); t.apply(); t.apply(); t.apply(); t.apply();".repeat(10);
    rejected(&v1model("", "", &locals, &apply), "too large");
}

#[test]
fn parsers_that_double_forty_times() {
    let mut text = String::from("parser p0(packet_in b) { state start { transition accept; } }\n");
    for i in 1..=40 {
        let p = i - 1;
        let _ = writeln!(
            text,
            "parser p{i}(packet_in b) {{ p{p}() x; p{p}() y; state start {{ x.apply(b); y.apply(b); transition accept; }} }}"
        );
    }
    let text =
        v1model(&text, "", "", "").replace("state start { b.extract(hdr.h);", "p40() p; state start { p.apply(b);");
    rejected(&text, "too large");
}

#[test]
fn types_that_double_forty_times() {
    let mut text = String::from("struct s0 { bit<32> a; bit<32> b; }\n");
    for i in 1..=40 {
        let s = i - 1;
        let _ = writeln!(text, "struct s{i} {{ s{s} a; s{s} b; }}");
    }
    rejected(&v1model(&text, "s40 big;", "", ""), "");
    rejected(&v1model(&text, "", "s40 big;", ""), "");
    rejected(&v1model(&text, "", "", "s40 big; s40 other; big = other;"), "");
    rejected(&text, "parts");
}

#[test]
fn generic_types_that_double_forty_times() {
    let mut text = String::from("struct s0<T> { T a; T b; }\n");
    for i in 1..=40 {
        let s = i - 1;
        let _ = writeln!(text, "struct s{i}<T> {{ s{s}<T> a; s{s}<T> b; }}");
    }
    rejected(&v1model(&text, "s40<bit<8>> big;", "", ""), "");
    let mut nested = String::from("struct pair<A, B> { A a; B b; }\ntypedef pair<bit<8>, bit<8>> t0;\n");
    for i in 1..=40 {
        let t = i - 1;
        let _ = writeln!(
            nested,
            "struct w{i}<A, B> {{ A a; B b; }} typedef w{i}<t{t}, t{t}> t{i};"
        );
    }
    rejected(&v1model(&nested, "t40 big;", "", ""), "");
    rejected(&v1model(&nested, "", "", "t40 big = 5;"), "");
}

#[test]
fn tuples_that_double_forty_times() {
    let mut text = String::from("typedef tuple<bit<8>, bit<8>> t0;\n");
    for i in 1..=40 {
        let t = i - 1;
        let _ = writeln!(text, "typedef tuple<t{t}, t{t}> t{i};");
    }
    rejected(&v1model(&text, "", "", "t40 big; t40 other; big = other;"), "");
    rejected(&v1model(&text, "", "", "t40 big; bool b = big == big;"), "");
    rejected(&v1model(&text, "", "", "t40 big = 5;"), "");
}

#[test]
fn expressions_that_double() {
    let mut apply = String::from("bit<4096> x0 = 0;\n");
    for i in 1..=40 {
        let x = i - 1;
        let _ = writeln!(apply, "tuple<bit<4096>> x{i} = {{ x{x}[0] ++ x{x}[0] }};");
    }
    rejected(&v1model("", "", "", &apply), "");
    let doubled = (0..24).fold("hdr.h.x".to_string(), |e, _| {
        if e.len() > 100_000 { e } else { format!("({e} ++ {e})") }
    });
    rejected(
        &v1model("", "", "", &format!("hdr.h.x = (bit<32>){doubled};")),
        "too many",
    );
}

#[test]
fn constants_that_double() {
    let mut text = String::from("const int c0 = 3;\n");
    for i in 1..=60 {
        let c = i - 1;
        let _ = writeln!(text, "const int c{i} = c{c} * c{c};");
    }
    rejected(&text, "more than");
    let mut strings = String::from("const string s0 = \"xxxxxxxxxxxxxxxx\";\n");
    for i in 1..=60 {
        let s = i - 1;
        let _ = writeln!(strings, "const string s{i} = s{s} ++ s{s};");
    }
    rejected(&strings, "");
    let mut lists = String::from("const tuple<bit<8>> l0 = { 1 };\n");
    let mut ty = "tuple<bit<8>>".to_string();
    for i in 1..=12 {
        ty = format!("tuple<{ty}, {ty}>");
        let l = i - 1;
        let _ = writeln!(lists, "const {ty} l{i} = {{ l{l}, l{l} }};");
    }
    accepted(&lists);
}

#[test]
fn stacks_of_a_million_headers() {
    rejected(&v1model("", "h_t[1000000] s;", "", ""), "too many");
    let stacks: String = (0..250).map(|i| format!("h_t[4096] s{i}; ")).collect();
    rejected(&v1model("", &stacks, "", ""), "parts");
}

#[test]
fn stacks_of_stacks() {
    let mut text = String::from("struct s0 { bit<8> x; }\n");
    for i in 1..=8 {
        let s = i - 1;
        let _ = writeln!(text, "struct s{i} {{ s{s}[4096] x; }}");
    }
    let v1 = v1model(&text, "", "", "s8 big; s8 other; big = other;");
    rejected(&v1, "parts");
    rejected(
        &v1model(&text, "", "", "s8 big; hdr.h.x = (bit<32>)big.minSizeInBits();"),
        "",
    );
    rejected(&text, "parts");
}

#[test]
fn large_stacks_indexed_at_run_time() {
    let apply = "hdr.s[hdr.h.x].x = hdr.s[hdr.h.y].x;".repeat(400);
    rejected(&v1model("", "h_t[4096] s;", "", &apply), "too large");
    let nested = "hdr.t[hdr.h.x].u[hdr.h.y].x = 1;".repeat(4);
    let fields = "inner_t[1000] t;";
    let declarations = "header hh_t { bit<8> x; } struct inner_t { hh_t[1000] u; }";
    let _ = compile("hostile.p4", &v1model(declarations, fields, "", &nested));
}

#[test]
fn a_struct_of_a_hundred_thousand_fields() {
    let fields: String = (0..100_000).map(|i| format!("bit<8> f{i};\n")).collect();
    let declarations = format!("struct large_t {{ {fields} }} header wide_t {{ {fields} }}");
    accepted(&v1model(
        &declarations,
        "",
        "",
        "large_t a; large_t b; a.f99999 = 1; b = a; hdr.h.x = (bit<32>)b.f5;",
    ));
    accepted(&v1model(
        &declarations,
        "wide_t w;",
        "",
        "hdr.w.f7 = 1; bool b = hdr.w == hdr.w;",
    ));
}

#[test]
fn lists_of_ten_thousand_elements() {
    let values: Vec<String> = (0..10_000).map(|i| format!("16w{i}")).collect();
    let list = values.join(", ");
    accepted(&v1model(
        "",
        "",
        "",
        &format!("for (bit<16> i in (list<bit<16>>){{ {list} }}) {{ hdr.h.x = hdr.h.x + (bit<32>)i; }}"),
    ));
    let entries: String = (0..10_000).map(|i| format!("{i}: NoAction();\n")).collect();
    let table = |kind: &str| {
        format!("table t {{ key = {{ hdr.h.x: {kind}; }} actions = {{ NoAction; }} const entries = {{ {entries} }} }}")
    };
    accepted(&v1model("", "", &table("exact"), "t.apply();"));
    accepted(&v1model("", "", &table("ternary"), "t.apply();"));
    let cases: String = (0..10_000).map(|i| format!("{i}: {{ hdr.h.y = {i}; }}\n")).collect();
    accepted(&v1model("", "", "", &format!("switch (hdr.h.x) {{ {cases} }}")));
    let cases: String = (0..10_000).map(|i| format!("{i}: accept;\n")).collect();
    let parser = format!("transition select(hdr.h.x) {{ {cases} }}");
    accepted(&v1model("", "", "", "").replace("transition accept;", &parser));
    let members: String = (0..10_000).map(|i| format!("m{i}, ")).collect();
    accepted(&format!(
        "enum e {{ {members} }} error {{ {} }}",
        members.trim_end_matches(", ")
    ));
}

#[test]
fn ten_thousand_of_everything() {
    let many = |f: &dyn Fn(usize) -> String| (0..10_000).map(f).collect::<String>();
    accepted(&many(&|i| format!("const bit<32> c{i} = {i};\n")));
    accepted(&many(&|i| format!("extern void f(in bit<{}> a{i});\n", i % 64 + 1)));
    accepted(&format!(
        "extern x {{ x(); {} }}",
        many(&|i| format!("void m(in bit<8> a{i}); "))
    ));
    let states = many(&|i| format!("state s{i} {{ transition s{}; }}\n", i + 1));
    let parser =
        format!("state start {{ transition s0; }} {states} state s10000 {{ b.extract(hdr.h); transition accept; }}");
    accepted(&v1model("", "", "", "").replace("state start { b.extract(hdr.h); transition accept; }", &parser));
    let actions = many(&|i| format!("action a{i}() {{ hdr.h.x = {i}; }}\n"));
    let names = many(&|i| format!("a{i}; "));
    let table = format!("table t {{ key = {{ hdr.h.x: exact; }} actions = {{ {names} NoAction; }} }}");
    accepted(&v1model("", "", &format!("{actions} {table}"), "t.apply();"));
    accepted(&v1model("", "", "", &many(&|i| format!("bit<32> v{i} = hdr.h.x; "))));
    accepted(&v1model(
        "",
        "",
        "",
        &many(&|i| format!("if (hdr.h.x == {i}) {{ hdr.h.y = {i}; }}\n")),
    ));
}

#[test]
fn deep_else_if_chains() {
    let chain = |n: usize| -> String {
        (0..n)
            .map(|i| format!("if (hdr.h.x == {i}) {{ hdr.h.y = {i}; }} else "))
            .collect::<String>()
            + "{ }"
    };
    accepted(&v1model("", "", "", &chain(100)));
    let _ = compile("hostile.p4", &v1model("", "", "", &chain(2_000)));
    let _ = compile("hostile.p4", &v1model("", "", "", &chain(200_000)));
}

#[test]
fn deep_nesting() {
    for (open, close) in [
        ("(", ")"),
        ("{", "}"),
        ("if (true) { ", "}"),
        ("-", ""),
        ("!", ""),
        ("(bit<8>)", ""),
    ] {
        for n in [200, 1_000_000] {
            let text = format!("hdr.h.x = {}hdr.h.y{};", open.repeat(n), close.repeat(n));
            let _ = compile("hostile.p4", &v1model("", "", "", &text));
            let text = format!("{}{}", open.repeat(n), close.repeat(n));
            let _ = compile("hostile.p4", &v1model("", "", "", &text));
        }
    }
    for n in [200, 100_000] {
        let _ = compile(
            "hostile.p4",
            &v1model("", "", "", &format!("hdr.h.x = hdr.h.x{};", " + hdr.h.y".repeat(n))),
        );
        let _ = compile(
            "hostile.p4",
            &v1model("", "", "", &format!("hdr.h.x = {}1;", "hdr.h.x == 1 ? 2 : ".repeat(n))),
        );
        let _ = compile(
            "hostile.p4",
            &v1model("", "", "", &format!("hdr.h.x = hdr.h{};", "[31:0]".repeat(n))),
        );
        let _ = compile(
            "hostile.p4",
            &format!("typedef {}bit<8>{} t;", "tuple<".repeat(n), ">".repeat(n)),
        );
    }
    rejected(&"(".repeat(10 << 20), "");
}

#[test]
fn recursion_of_every_kind() {
    rejected("bit<8> f(in bit<8> x) { return f(x); }", "f");
    rejected("control c() { c() again; apply { again.apply(); } }", "");
    rejected("control c() { apply { c.apply(); } }", "");
    rejected("struct s { s x; }", "");
    rejected("header_union u { u x; }", "");
    rejected("typedef t t;", "");
    rejected("const bit<8> c = c;", "");
    rejected("enum bit<8> e { a = e.b, b = e.a }", "");
    rejected("extern e { e(e x); }", "");
    rejected(
        "parser p(packet_in b) { p() q; state start { q.apply(b); transition accept; } }",
        "",
    );
    rejected(
        "#include <core.p4>\ncontrol c() { action a() { b(); } action b() { a(); } apply { } }",
        "",
    );
    rejected("#include \"hostile.p4\"", "");
    rejected("#define A A A\n#define B A(B) B\nconst bit<8> c = A B;", "");
}

#[test]
fn macros_that_double() {
    let mut text = String::from("#define M0 1 +\n");
    for i in 1..=60 {
        let _ = writeln!(text, "#define M{i} M{} M{}", i - 1, i - 1);
    }
    rejected(&format!("{text}const bit<8> c = M60 1;"), "");
}

#[test]
fn many_mistakes() {
    let text: String = (0..100_000).map(|i| format!("const bit<8> c = x{i};\n")).collect();
    rejected(&text, "");
    let text: String = (0..20_000)
        .map(|i| format!("const bit<8> name_number_{i} = nane_number_{i};\n"))
        .collect();
    rejected(&text, "");
}

#[test]
fn wide_values() {
    let apply =
        "bit<65536> a = 1; bit<65536> b = a << 65535; a = a * b; a = a / 3 + (bit<65536>)hdr.h.x; hdr.h.x = a[31:0];";
    accepted(&v1model("", "", "", &apply.replace("/ 3", "|+| 3")));
    let fields: String = (0..1000).map(|i| format!("w_t w{i}; ")).collect();
    accepted(&v1model(
        "header w_t { bit<65536> w; varbit<65536> v; }",
        &fields,
        "",
        "hdr.w0 = hdr.w999;",
    ));
    rejected(&format!("const int c = {};", "9".repeat(1 << 20)), "");
}

#[test]
fn loops_that_never_end() {
    let compiled = compile(
        "hostile.p4",
        &v1model("", "", "", "for (;;) { } for (;true;) { hdr.h.x = 1; }"),
    );
    drop(compiled);
    accepted(&v1model(
        "",
        "",
        "",
        "for (bit<32> i in 0..0xffffffff) { for (bit<32> j in 0..0xffffffff) { hdr.h.x = i + j; } }",
    ));
    let stacks = "for (h_t h in hdr.s) { for (h_t g in hdr.s) { hdr.h.x = h.x + g.x; } }";
    let _ = compile("hostile.p4", &v1model("", "h_t[4096] s;", "", stacks));
}
