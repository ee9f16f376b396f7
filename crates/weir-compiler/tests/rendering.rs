//! What the most common mistakes look like to whoever makes them.

use insta::assert_snapshot;
use weir_compiler::{Options, compile_source};
use weir_syntax::render;

/// Every finding in `text`, as people see it.
fn rendered(text: &str) -> String {
    let compiled = compile_source("test.p4", text, &Options::default(), weir_arch::targets());
    let shown = compiled.diagnostics.list().iter();
    let shown: Vec<String> = shown.map(|d| render::human(d, &compiled.sources, false)).collect();
    shown.join("\n\n")
}

/// The same for statements on some variables.
fn in_control(statements: &str) -> String {
    rendered(&format!(
        "#include <core.p4>
header ipv4_t {{ bit<8> ttl; bit<32> src; bit<32> dst; }}
struct pair_t {{ bit<8> x; bit<16> y; }}
type bit<9> port_t;
bit<8> half(bit<8> v) {{ return v >> 1; }}
control c(inout ipv4_t ipv4, inout pair_t pair, inout bit<8> a, inout bit<16> b, in bit<8> limit, inout port_t port) {{
    action drop() {{ }}
    table t {{ key = {{ a: exact; }} actions = {{ drop; NoAction; }} }}
    apply {{
        {statements}
    }}
}}"
    ))
}

#[test]
fn a_missing_semicolon() {
    assert_snapshot!(in_control("a = 1\n        b = 2;"), @r#"
    error[syntax]: expected `;` after the statement, found name `b`
      --> test.p4:11:9
       |
    10 |         a = 1
       |              - `;` is missing here
    11 |         b = 2;
       |         ^
    "#);
}

#[test]
fn a_misspelt_name() {
    assert_snapshot!(in_control("a = limt;"), @r#"
    error[not-found]: there is no name `limt` here
      --> test.p4:10:13
       |
    10 |         a = limt;
       |             ^^^^
       |
       = help: did you mean `limit`?
    "#);
}

#[test]
fn a_misspelt_field() {
    assert_snapshot!(in_control("ipv4.tll = 1;"), @r#"
    error[type-error]: header ipv4_t has no field `tll`
      --> test.p4:10:14
       |
    10 |         ipv4.tll = 1;
       |              ^^^
       |
       = help: did you mean `ttl`?
    "#);
}

#[test]
fn a_field_that_does_not_exist() {
    assert_snapshot!(in_control("ipv4.options = 1;"), @r#"
    error[type-error]: header ipv4_t has no field `options`
      --> test.p4:10:14
       |
    10 |         ipv4.options = 1;
       |              ^^^^^^^
       |
       = help: its fields are ttl, src, dst
    "#);
}

#[test]
fn operands_of_different_widths() {
    assert_snapshot!(in_control("b = a + b;"), @r#"
    error[type-error]: the operands of `+` have different widths: 8 and 16 bits
      --> test.p4:10:13
       |
    10 |         b = a + b;
       |             ^^^^^
       |
       = help: cast one of them: `(bit<W>) e`
    "#);
}

#[test]
fn a_value_of_another_width() {
    assert_snapshot!(in_control("b = a;"), @r#"
    error[type-error]: the value is bit<8>, but bit<16> is expected
      --> test.p4:10:13
       |
    10 |         b = a;
       |             ^
       |
       = help: cast it: `(bit<16>) …`
    "#);
}

#[test]
fn a_number_as_condition() {
    assert_snapshot!(in_control("if (a) { drop(); }"), @r#"
    error[type-error]: the condition of `if` must be a bool, but it is bit<8>
      --> test.p4:10:13
       |
    10 |         if (a) { drop(); }
       |             ^
       |
       = help: compare it with a number, e.g. `!= 0`
    "#);
}

#[test]
fn a_struct_without_all_its_fields() {
    assert_snapshot!(in_control("pair = { x = 1 };"), @r#"
    error[type-error]: the value is { x = int }, but struct pair_t is expected
      --> test.p4:10:16
       |
    10 |         pair = { x = 1 };
       |                ^^^^^^^^^
       |
       = help: these fields have no value: y; give them one or end with `...`
    "#);
}

#[test]
fn a_list_of_the_wrong_length() {
    assert_snapshot!(in_control("pair = { 1 };"), @r#"
    error[type-error]: the value is { int }, but struct pair_t is expected
      --> test.p4:10:16
       |
    10 |         pair = { 1 };
       |                ^^^^^
       |
       = help: 2 fields need a value: x, y
    "#);
}

#[test]
fn a_field_of_the_wrong_type() {
    assert_snapshot!(in_control("pair = { a, a };"), @r#"
    error[type-error]: the value is { bit<8>, bit<8> }, but struct pair_t is expected
      --> test.p4:10:16
       |
    10 |         pair = { a, a };
       |                ^^^^^^^^
       |
       = help: the field `y` is bit<16>, but its value is bit<8>
    "#);
}

#[test]
fn a_type_of_its_own() {
    assert_snapshot!(in_control("port = 9w1;"), @r#"
    error[type-error]: the value is bit<9>, but port_t is expected
      --> test.p4:10:16
       |
    10 |         port = 9w1;
       |                ^^^
       |
       = help: a `type` does not convert by itself; cast it: `(port_t) …`
    "#);
}

#[test]
fn an_in_parameter_assigned_to() {
    assert_snapshot!(in_control("limit = 1;"), @r#"
    error[type-error]: this cannot be assigned to
      --> test.p4:10:9
       |
     6 | control c(inout ipv4_t ipv4, inout pair_t pair, inout bit<8> a, inout bit<16> b, in bit<8> limit, inout port_t port) {
       |                                                                                            ----- it is an `in` parameter
    ...
    10 |         limit = 1;
       |         ^^^^^
       |
       = help: copy it to a variable, or make the parameter `inout`
    "#);
}

#[test]
fn a_parameter_without_direction() {
    assert_snapshot!(in_control("a = half(a);"), @r#"
    error[type-error]: the argument `v` must be known to the compiler
      --> test.p4:10:18
       |
     5 | bit<8> half(bit<8> v) { return v >> 1; }
       |                    - this parameter has no direction
    ...
    10 |         a = half(a);
       |                  ^
       |
       = help: declare it `in` to pass values that only packets have
    "#);
}

#[test]
fn a_constant_for_an_out_parameter() {
    assert_snapshot!(rendered("void f(out bit<8> x) { x = 1; }\nvoid g() { f(2); }"), @r#"
    error[type-error]: the argument for `x` must be a variable: the parameter is `out`
     --> test.p4:2:14
      |
    1 | void f(out bit<8> x) { x = 1; }
      |                   - declared here
    2 | void g() { f(2); }
      |              ^
    "#);
}

#[test]
fn an_argument_left_out() {
    assert_snapshot!(rendered("void f(in bit<8> x, in bit<8> y) { }\nvoid g() { f(2); }"), @r#"
    error[uninitialized]: `f`: the parameter `y` has no value
     --> test.p4:2:12
      |
    1 | void f(in bit<8> x, in bit<8> y) { }
      |      - declared here
    2 | void g() { f(2); }
      |            ^
    "#);
}

#[test]
fn a_table_called_like_a_function() {
    assert_snapshot!(in_control("t();"), @r#"
    error[type-error]: `t` cannot be called
      --> test.p4:10:9
       |
    10 |         t();
       |         ^
       |
       = help: did you mean `t.apply(…)`?
    "#);
}

#[test]
fn action_run_outside_a_switch() {
    assert_snapshot!(in_control("if (t.apply().action_run == drop) { }"), @r#"
    error[type-error]: `action_run` can stand only as the whole expression of a switch
      --> test.p4:10:13
       |
    10 |         if (t.apply().action_run == drop) { }
       |             ^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn one_name_for_two_things() {
    assert_snapshot!(rendered("const bit<8> a = 1;\nconst bit<8> a = 2;"), @r#"
    error[duplicate]: `a` is declared twice
     --> test.p4:2:14
      |
    1 | const bit<8> a = 1;
      |              - first declared here
    2 | const bit<8> a = 2;
      |              ^
      |
      = help: give one of them another name
    "#);
}

#[test]
fn core_p4_not_included() {
    assert_snapshot!(rendered("parser p(packet_in b) {\n    state start { transition accept; }\n}"), @r#"
    error[not-found]: `#include <core.p4>` is missing: it declares `packet_in`
     --> test.p4:1:10
      |
    1 | parser p(packet_in b) {
      |          ^^^^^^^^^
      |
      = help: write it at the top of the program
    "#);
}

#[test]
fn a_number_that_does_not_fit() {
    assert_snapshot!(in_control("a = 300;"), @r#"
    warning[overflow]: 300 does not fit into bit<8> and becomes 44
      --> test.p4:10:13
       |
    10 |         a = 300;
       |             ^^^
    "#);
}

#[test]
fn a_header_without_the_length_of_its_varbit() {
    assert_snapshot!(
        rendered(
            "#include <core.p4>
header options_t { varbit<320> data; }
parser p(packet_in b, out options_t options) {
    state start { b.extract(options); transition accept; }
}"
        ),
        @r#"
    error[type-error]: a header with a varbit field cannot be extracted without its length
     --> test.p4:4:29
      |
    4 |     state start { b.extract(options); transition accept; }
      |                             ^^^^^^^
      |
      = help: pass the length of the varbit in bits as the second argument
    "#
    );
}

#[test]
fn a_block_that_does_not_fit_its_place() {
    let with = |parameters: &str| {
        rendered(&format!(
            "control C(inout bit<8> a, in bit<8> b);\npackage P(C first);\ncontrol D({parameters}) {{ apply {{}} }}\nP(D()) main;\n"
        ))
    };
    let direction = with("inout bit<8> a, inout bit<8> b");
    assert!(direction.contains("the argument is control D, but control C is expected for the block `first` of `P`"));
    assert!(
        direction.contains("parameter 2 of `D` is `inout bit<8> b`, of `C` it is `in bit<8> b`"),
        "{direction}"
    );
    let missing = with("inout bit<8> a");
    assert!(
        missing.contains("`C` has a further parameter `in bit<8> b`, `D` has none there"),
        "{missing}"
    );
    let further = with("inout bit<8> a, in bit<8> b, in bool c");
    assert!(
        further.contains("`D` has a further parameter `in bool c`, `C` has none there"),
        "{further}"
    );
}
