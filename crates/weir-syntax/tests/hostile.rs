//! Inputs made to exhaust memory, stack or time. Each ends with few errors; none panics. The tests
//! run on threads with a stack of 2 MiB.

use weir_syntax::preprocess::{Options, SystemFiles};
use weir_syntax::{Parsed, parse_bytes, parse_source, render};

fn parse(text: &str) -> Parsed {
    parse_source("t.p4", text, &Options::default(), SystemFiles::default())
}

/// The codes of the errors.
fn codes(text: &str) -> Vec<&'static str> {
    parse(text).diagnostics.list().iter().map(|d| d.code).collect()
}

fn in_apply(text: &str) -> String {
    format!("control c() {{ apply {{ {text} }} }}")
}

#[test]
fn ten_megabytes_of_opening_brackets_are_one_error() {
    for bracket in ["(", "[", "{", "<", "a<", "-", "(bit<8>)", "f(", "a[", "{{#}", "?", "a?"] {
        let text = format!("const bit<8> x = {}", bracket.repeat(10_000_000 / bracket.len()));
        let parsed = parse(&text);
        assert!(parsed.diagnostics.has_errors());
        assert!(parsed.diagnostics.list().len() < 5, "{bracket}");
    }
    assert_eq!(
        codes(&format!("const bit x = {}", "(".repeat(1_000_000))),
        ["overlimit"]
    );
    assert_eq!(codes(&"(".repeat(10_000_000)), ["overlimit"], "too many tokens");
}

#[test]
fn long_chains_of_operators_are_one_error() {
    for (first, more) in [
        ("a", "+a"),
        ("a", ".b"),
        ("a", "[1]"),
        ("a", "()"),
        ("1", "?1:1"),
        ("a", "&&a==a"),
        ("", "-a+"),
    ] {
        let text = format!("const bit<8> x = {first}{};", more.repeat(300_000));
        assert_eq!(codes(&text), ["overlimit"], "{more}");
    }
}

#[test]
fn deep_types_are_one_error() {
    assert_eq!(codes(&format!("typedef {} t;", "list<".repeat(500_000))), ["overlimit"]);
    assert_eq!(codes(&format!("typedef a{} t;", "<a".repeat(500_000))), ["overlimit"]);
    assert_eq!(codes(&format!("typedef a{} t;", "[1]".repeat(500_000))), ["overlimit"]);
    assert_eq!(codes(&format!("typedef {} t;", "bit<(1 + (".repeat(500_000))).len(), 1);
}

#[test]
fn the_height_of_types_counts_in_the_expressions_that_hold_them() {
    let chain = "+1".repeat(300);
    let cast = |inner: &str| format!("((bit<({inner})>) 1{chain})");
    let call = |inner: &str| format!("(f<list<bit<({inner})>>>(1){chain})");
    assert_eq!(codes(&format!("const int a = {};", cast("8"))), Vec::<&str>::new());
    assert_eq!(codes(&format!("const int a = {};", cast(&cast("8")))), ["overlimit"]);
    assert_eq!(codes(&format!("const int a = {};", call(&call("8")))), ["overlimit"]);
}

#[test]
fn deep_statements_are_one_error() {
    for text in [
        "{",
        "if (a) ",
        "if (a) {} else ",
        "for (;a;) ",
        "for (bit x in y) ",
        "switch (a) { b: {",
        "@a {",
    ] {
        let parsed = parse(&in_apply(&text.repeat(500_000)));
        assert!(parsed.diagnostics.list().len() <= 3, "{text}");
    }
    assert_eq!(codes(&in_apply(&"if (a) {} else ".repeat(300))), ["overlimit"]);
}

#[test]
fn the_greatest_depths_are_parsed_and_dropped() {
    let deep = format!("{}1{}", "(1+".repeat(60), ")".repeat(60));
    assert_eq!(codes(&format!("const int a = {deep};")), Vec::<&str>::new());
    assert_eq!(
        codes(&format!("const int a = 1{};", "+1".repeat(390))),
        Vec::<&str>::new()
    );
    assert_eq!(
        codes(&in_apply(&format!("{}{}", "{".repeat(190), "}".repeat(190)))),
        Vec::<&str>::new()
    );
}

#[test]
fn nesting_all_rules_at_once_does_not_exhaust_the_stack() {
    let block =
        "if (f(a[b ? {c = (bit<(1 + 2)>) -(d || e && g == h < i | j ^ k & l << m + n * o)} : p])) { switch (q) { r: {";
    let parsed = parse(&in_apply(&block.repeat(100)));
    assert!(parsed.diagnostics.has_errors());
    let body = "E() e = { void f() { bit x = g(";
    assert!(parse(&body.repeat(1000)).diagnostics.has_errors());
    let body = "E() e = { ";
    assert_eq!(codes(&body.repeat(10_000)), ["overlimit"]);
}

#[test]
fn lookahead_is_bounded() {
    let parsed = parse(&in_apply(&format!("x = f({}a);", "a<a,".repeat(200_000))));
    assert!(parsed.diagnostics.list().len() <= 2);
    let parsed = parse(&in_apply(&"a<b,c,d,e> f;".repeat(100_000)));
    assert!(!parsed.diagnostics.has_errors());
    let parsed = parse(&in_apply(&"x = (a) b;".repeat(100_000)));
    assert!(!parsed.diagnostics.has_errors());
}

#[test]
fn many_mistakes_are_bounded_in_number() {
    for text in [
        "const;",
        "}",
        "x y z;",
        "@",
        "{ ",
        "control {",
        "é",
        "8x;",
        "\"",
        "\"\\\n",
        "#inlcude\n",
        "const bit a = b c",
    ] {
        let parsed = parse(&text.repeat(200_000));
        assert!(parsed.diagnostics.has_errors());
        assert!(parsed.diagnostics.list().len() <= 1000, "{text}");
    }
}

#[test]
fn lines_that_are_no_directives_are_warnings_bounded_in_number() {
    for text in ["#x\n", "# it's \"so\n", "####\n", "# 12 drummers\n"] {
        let parsed = parse(&text.repeat(200_000));
        assert!(!parsed.diagnostics.has_errors(), "{text}");
        let count = parsed.diagnostics.list().len();
        assert!(count > 0 && count <= 1000, "{text}: {count}");
    }
}

#[test]
fn unterminated_things_are_errors() {
    for text in [
        "/*",
        "\"",
        "@a(",
        "@a[",
        "@pragma",
        "@",
        "@pragma a b",
        "control c() { apply {",
        "parser p() { state s {",
        "struct s {",
        "enum e {",
        "error {",
        "extern e {",
        "const",
        "control c() { table t { key = {",
        "typedef",
        "control c() { table t { entries = { (1,",
        "parser p() { state s { transition select(a) {",
        "f(",
        "a<",
        "package p(",
    ] {
        let list = codes(text);
        assert_eq!(list.len(), 1, "{text}: {list:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_errors() {
    for bytes in [
        b"\0\0\0".to_vec(),
        b"\xff\xfe".to_vec(),
        vec![0x80; 1000],
        b"const bit x = \0;".to_vec(),
    ] {
        let options = Options::default();
        let loader = weir_syntax::preprocess::MemoryLoader::default();
        let parsed = parse_bytes("t.p4", bytes, &options, &loader, SystemFiles::default());
        assert!(parsed.diagnostics.has_errors());
        for diagnostic in parsed.diagnostics.list() {
            assert!(!render::human(diagnostic, &parsed.sources, false).is_empty());
        }
    }
}

#[test]
fn huge_integers_are_errors() {
    assert_eq!(
        codes(&format!("const int a = {};", "9".repeat(5_000_000))),
        ["overlimit"]
    );
    assert_eq!(codes("const int a = 99999999999w1;"), ["overlimit"]);
}

#[test]
fn preprocessor_conditions_do_not_exhaust_the_stack() {
    for text in ["(", "!", "1?", "1+(", "-"] {
        assert_eq!(
            codes(&format!("#if {}\n#endif", text.repeat(100_000))),
            ["preprocessor"],
            "{text}"
        );
    }
    assert_eq!(
        codes(&format!("#if 1{}\n#endif", " + 1".repeat(100_000))),
        Vec::<&str>::new()
    );
    assert_eq!(codes(&"#if 1\n".repeat(100_000)).len(), 1000);
}
