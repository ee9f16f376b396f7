//! One small program per rule of the language, with the bytes that come out by the specification.
//!
//! The oracle alone is asked, not an engine: these are its tests.

use super::judge::sent_by_oracle;

/// A program of v1model: `top` before the controls, `locals` and `apply` of ingress. Packets are a
/// header `h` of the fields a, b, c and d, a byte each, and a stack `s` of up to three bytes if `a`
/// is 0x55.
fn program(top: &str, locals: &str, apply: &str) -> String {
    format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; bit<8> c; bit<8> d; }}
header s_t {{ bit<8> v; }}
struct headers_t {{ h_t h; s_t[3] s; h_t made; }}
struct meta_t {{ bit<8> m; }}
{top}
parser P(packet_in k, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    state start {{ k.extract(hdr.h); transition select(hdr.h.a) {{ 0x55: more; default: accept; }} }}
    state more {{ k.extract(hdr.s.next); transition more; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    {locals}
    apply {{ sm.egress_spec = 1; {apply} }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out k, in headers_t hdr) {{ apply {{ k.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|two| (two[0] << 4 | two[1]) as u8).collect()
}

/// That a program sends packets so.
#[track_caller]
fn sends(source: &str, packets: &[(&str, &str)]) {
    let test: Vec<String> = packets.iter().map(|(given, _)| format!("packet 0 {given}\n")).collect();
    let sent = sent_by_oracle(source, &test.concat()).unwrap_or_else(|e| panic!("{e}"));
    let expected: Vec<Vec<(u32, Vec<u8>)>> = packets.iter().map(|(_, sent)| vec![(1, hex(sent))]).collect();
    assert_eq!(sent, expected);
}

/// That ingress makes `given` into `sent`.
#[track_caller]
fn makes(top: &str, locals: &str, apply: &str, given: &str, sent: &str) {
    sends(&program(top, locals, apply), &[(given, sent)]);
}

#[test]
fn arguments_are_copied_out_in_the_order_in_which_they_are_written() {
    let f = "void f(out bit<8> x, out bit<8> y) { x = 0xaa; y = 0xbb; }";
    makes(
        f,
        "",
        "f(hdr.h.a, hdr.h.a); f(y = hdr.h.b, x = hdr.h.b);",
        "00000000",
        "bbaa0000",
    );
}

#[test]
fn arguments_are_evaluated_from_left_to_right() {
    let f = "bit<8> next(inout bit<8> n) { n = n + 1; return n; }
        bit<8> pair(in bit<8> x, in bit<8> y) { return (x << 4) | y; }";
    makes(
        f,
        "",
        "hdr.h.a = pair(next(hdr.h.b), next(hdr.h.b));",
        "00000000",
        "12020000",
    );
    makes(
        f,
        "",
        "hdr.h.a = pair(y = next(hdr.h.b), x = next(hdr.h.b));",
        "00000000",
        "21020000",
    );
    makes(f, "", "hdr.h.a = hdr.h.b + next(hdr.h.b);", "00010000", "03020000");
}

#[test]
fn a_parameter_is_a_variable_of_its_own() {
    let f = "void f(inout bit<8> x, inout bit<8> y) { x = x + 1; y = y + 0x10; x = x + y; }";
    makes(f, "", "f(hdr.h.a, hdr.h.a);", "01000000", "11000000");
    makes(f, "", "f(hdr.h.a, hdr.h.b);", "01020000", "14120000");
}

#[test]
fn l_values_are_worked_out_before_the_call() {
    let f = "void f(inout bit<8> i, out bit<8> x) { i = 1; x = 0xee; }";
    let apply = "bit<8> i = 0; f(i, hdr.s[i].v);";
    makes(f, "", apply, "55000000 0102", "55000000 ee02");
}

#[test]
fn out_parameters_begin_as_zero_and_invalid() {
    let f = "void f(out bit<8> x) { x = x + 1; }
        void g(out h_t h, out bit<8> was) { was = h.isValid() ? 8w1 : 8w2; }";
    makes(f, "", "hdr.h.a = 7; f(hdr.h.a);", "00000000", "01000000");
    makes(
        f,
        "",
        "bit<8> was; g(hdr.h, was); hdr.made.setValid(); hdr.made.a = was;",
        "01020304",
        "02000000",
    );
}

#[test]
fn an_exit_still_copies_out() {
    let c = "control S(inout bit<8> x) { apply { x = 0x77; exit; } }";
    makes(c, "S() s;", "s.apply(hdr.h.b); hdr.h.a = 1;", "00000000", "00770000");
    let f = "action a(inout bit<8> x) { x = 0x66; exit; }";
    makes("", f, "a(hdr.h.c); hdr.h.a = 1;", "00000000", "00006600");
}

#[test]
fn a_return_leaves_its_own_body_alone() {
    let c = "control S(inout bit<8> x) { apply { x = 1; if (x == 1) { return; } x = 2; } }";
    makes(c, "S() s;", "s.apply(hdr.h.b); hdr.h.a = 9;", "00000000", "09010000");
}

#[test]
fn bodies_see_the_parameters_of_this_application() {
    let c = "control S(in bit<8> by, inout bit<8> x)(bit<8> k) {
            bit<8> twice = by << 1;
            action add() { x = x + by + k; }
            action keep(bit<8> n) { x = x ^ n; }
            table t { key = { by: exact; } actions = { add; keep; } default_action = keep(0x80);
                const entries = { 1: add(); } }
            apply { t.apply(); twice = twice + 1; x = x + twice; }
        }";
    let apply = "s.apply(1, hdr.h.a); s.apply(2, hdr.h.b); r.apply(hdr.h.d, hdr.h.c);";
    makes(c, "S(0x10) s; S(0x20) r;", apply, "00000001", "14852401");
}

#[test]
fn a_type_is_applied_by_its_name_and_instances_are_nested() {
    let c = "control A(inout bit<8> x)(bit<8> k) { apply { x = x + k; } }
        control B(inout bit<8> x) { A(1) one; A(2) two; apply { one.apply(x); two.apply(x); one.apply(x); } }";
    makes(c, "", "B.apply(hdr.h.a); B.apply(x = hdr.h.b);", "00100000", "04140000");
}

#[test]
fn state_belongs_to_an_instance() {
    let c = "control S(out bit<8> x) {
            register<bit<8>>(1) r;
            apply { r.read(x, 0); x = x + 1; r.write(0, x); }
        }";
    let source = program(
        c,
        "S() s; S() t;",
        "s.apply(hdr.h.a); t.apply(hdr.h.b); s.apply(hdr.h.c);",
    );
    sends(&source, &[("00000000", "01010200"), ("00000000", "03020400")]);
}

#[test]
fn a_constructor_may_share_a_register() {
    let c = "control S(out bit<8> x)(register<bit<8>> r) { apply { r.read(x, 0); x = x + 1; r.write(0, x); } }";
    let locals = "register<bit<8>>(1) r; S(r) s; S(r) t;";
    makes(c, locals, "s.apply(hdr.h.a); t.apply(hdr.h.b);", "00000000", "01020000");
}

#[test]
fn a_header_that_becomes_valid_is_zero_and_one_that_is_stays() {
    makes("", "", "hdr.h.setInvalid(); hdr.h.setValid();", "01020304", "00000000");
    makes("", "", "hdr.h.setValid();", "01020304", "01020304");
    makes(
        "",
        "",
        "hdr.made.b = 7; hdr.made.setValid(); hdr.h = hdr.made;",
        "01020304",
        "0000000000000000",
    );
    makes("", "", "hdr.made = { 1, 2, 3, 4 };", "0a0b0c0d", "0a0b0c0d01020304");
}

#[test]
fn what_a_stack_makes_room_for_is_invalid_and_zero() {
    makes(
        "",
        "",
        "hdr.s.push_front(1); hdr.s[0].setValid();",
        "55000000 0a0b",
        "55000000 000a0b",
    );
    makes("", "", "hdr.s.push_front(1);", "55000000 0a0b", "55000000 0a0b");
    makes(
        "",
        "",
        "hdr.s.pop_front(1); hdr.s[2].setValid();",
        "55000000 0a0b0c",
        "55000000 0b0c00",
    );
}

#[test]
fn an_element_that_is_not_there_is_zero_and_takes_nothing() {
    let apply = "bit<8> i = 5; hdr.s[i].v = 9; hdr.h.b = hdr.s[i].v; i = 1; hdr.h.c = hdr.s[i].v;";
    makes("", "", apply, "55110000 0a0b", "55000b00 0a0b");
}

#[test]
fn errors_go_by_name() {
    let check = "if (sm.parser_error == error.NoError) { hdr.h.b = 1; }
        if (sm.parser_error == error.StackOutOfBounds) { hdr.h.b = 2; }
        if (sm.parser_error == error.PacketTooShort) { hdr.h.b = 3; }";
    let source = program("", "", check).replacen("#include", "error { Early }\n#include", 1);
    sends(
        &source,
        &[
            ("00000000", "00010000"),
            ("55000000 010203 04", "55020000 010203 04"),
            ("55000000 0102", "55030000 0102"),
        ],
    );
}

#[test]
fn selects_take_the_first_case_that_fits() {
    let parser = "parser Q(packet_in k, in bit<8> x, out bit<8> y) {
            state start { transition select(x, x[0:0]) {
                (0x10 &&& 0xf0, 0): one; (0x20 .. 0x2f, _): two; (0x30, 1): three; default: other; } }
            state one { y = 1; transition accept; }
            state two { y = 2; transition accept; }
            state three { y = 3; transition accept; }
            state other { transition accept; }
        }";
    let source = program(parser, "", "hdr.h.d = meta.m;");
    let source = source.replacen(
        "state start { k.extract(hdr.h);",
        "Q() q; state start { k.extract(hdr.h); q.apply(k, hdr.h.b, meta.m);",
        1,
    );
    for (given, sent) in [("12", 1), ("13", 0), ("25", 2), ("31", 0), ("30", 0)] {
        sends(
            &source,
            &[(&format!("00{given}00ff"), &format!("00{given}00{sent:02x}"))],
        );
    }
}

#[test]
fn the_longest_prefix_wins_and_the_larger_priority() {
    let locals = "action set(bit<8> v) { hdr.h.d = v; }
        table t { key = { hdr.h.a: lpm; } actions = { set; } }
        table u { key = { hdr.h.b: ternary; hdr.h.c: range; } actions = { set; } }";
    let source = program("", locals, "if (!t.apply().hit) { u.apply(); }");
    let test = "add t hdr.h.a:0x10/4 set(1)\nadd t hdr.h.a:0x18/5 set(2)
add u 5 hdr.h.b:0x1&&&0x1 hdr.h.c:0..9 set(3)\nadd u 7 hdr.h.b:0x3&&&0x3 set(4)
packet 0 12000000\npacket 0 19000000\npacket 0 00010900\npacket 0 00030900\npacket 0 00010a00\n";
    let sent = sent_by_oracle(&source, test).unwrap_or_else(|e| panic!("{e}"));
    let last: Vec<u8> = sent.iter().map(|s| s[0].1[3]).collect();
    assert_eq!(last, [1, 2, 3, 4, 0]);
}

#[test]
fn actions_of_tables_have_bound_arguments() {
    let locals = "action add(inout bit<8> x, in bit<8> y, bit<8> n) { x = x + y + n; }
        table t { key = { hdr.h.a: exact; } actions = { add(hdr.h.b, hdr.h.c); } \
        default_action = add(hdr.h.b, hdr.h.c, 0x10); }";
    makes("", locals, "t.apply(); t.apply();", "00010200", "00250200");
}

#[test]
fn numbers_wrap_saturate_and_shift() {
    makes(
        "",
        "",
        "hdr.h.a = hdr.h.a + 1; hdr.h.b = hdr.h.b |+| 1;",
        "ffff0000",
        "00ff0000",
    );
    makes(
        "",
        "",
        "hdr.h.c = 8w0 |-| 1; hdr.h.d = (bit<8>)((int<8>)hdr.h.d >> 3);",
        "00000080",
        "000000f0",
    );
    makes(
        "",
        "",
        "hdr.h.a = hdr.h.b << 9; hdr.h.c[6:3] = hdr.h.d[3:0];",
        "01020385",
        "00022b85",
    );
}

#[test]
fn clones_and_copies_keep_the_fields_of_their_list() {
    let source = program(
        "",
        "",
        "meta.m = 7; clone_preserving_field_list(CloneType.I2E, 5, 1); hdr.h.a = 1;",
    )
    .replacen(
        "struct meta_t { bit<8> m;",
        "struct meta_t { @field_list(1) bit<8> m;",
        1,
    )
    .replacen(
        "control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }",
        "control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { hdr.h.b = meta.m; \
             hdr.h.c = sm.instance_type[7:0]; } }",
        1,
    );
    let mut sent = sent_by_oracle(&source, "mirroring_add 5 9\npacket 0 00000000\n").unwrap_or_else(|e| panic!("{e}"));
    sent[0].sort();
    assert_eq!(sent[0], [(1, hex("01070000")), (9, hex("00070100"))]);
}

#[test]
fn register_actions_see_the_parameters_of_this_application() {
    let source = "#include <core.p4>
#include <tna.p4>
header b_h { bit<32> r; }
struct h_t { b_h b; }
struct m_t { bit<8> x; }
parser IgP(packet_in k, out h_t hdr, out m_t md, out ingress_intrinsic_metadata_t i) {
    state start { k.extract(i); k.advance(PORT_METADATA_SIZE); k.extract(hdr.b); transition accept; }
}
control Add(out bit<32> res, in bit<32> a)(bit<32> k) {
    Register<bit<32>, bit<1>>(2, 100) reg;
    bit<32> half = a >> 1;
    RegisterAction<bit<32>, bit<1>, bit<32>>(reg) add = {
        void apply(inout bit<32> v, out bit<32> r) { v = v + a + half + k; r = v; }
    };
    action run() { res = add.execute(1); }
    table t { actions = { run; } default_action = run; }
    apply { if (a == 2) { t.apply(); } else { run(); } }
}
control Ig(inout h_t hdr, inout m_t md, in ingress_intrinsic_metadata_t i,
           in ingress_intrinsic_metadata_from_parser_t p, inout ingress_intrinsic_metadata_for_deparser_t d,
           inout ingress_intrinsic_metadata_for_tm_t tm) {
    Add(1000) sum;
    apply {
        tm.ucast_egress_port = 1; tm.bypass_egress = 1;
        if (i.ingress_port == 0 && hdr.b.r == 0) { sum.apply(hdr.b.r, 2); } else { sum.apply(hdr.b.r, 20); }
    }
}
control IgD(packet_out k, inout h_t hdr, in m_t md, in ingress_intrinsic_metadata_for_deparser_t d) {
    apply { k.emit(hdr); }
}
parser EgP(packet_in k, out h_t hdr, out m_t md, out egress_intrinsic_metadata_t i) {
    state start { k.extract(i); transition accept; }
}
control Eg(inout h_t hdr, inout m_t md, in egress_intrinsic_metadata_t i,
           in egress_intrinsic_metadata_from_parser_t p, inout egress_intrinsic_metadata_for_deparser_t d,
           inout egress_intrinsic_metadata_for_output_port_t o) { apply { } }
control EgD(packet_out k, inout h_t hdr, in m_t md, in egress_intrinsic_metadata_for_deparser_t d) {
    apply { k.emit(hdr); }
}
Pipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) pipe;
Switch(pipe) main;
";
    sends(
        source,
        &[
            ("00000000", "0000044f"),
            ("00000001", "00000855"),
            ("00000000", "00000c40"),
        ],
    );
}

#[test]
fn what_it_does_not_know_it_says() {
    let unknown = |apply: &str| {
        let source = program("", "meter(1, MeterType.packets) m;", apply);
        sent_by_oracle(&source, "packet 0 00000000\n")
    };
    assert_eq!(unknown("m.execute_meter(0, meta.m);"), Err("a meter".to_owned()));
    assert_eq!(unknown("random(hdr.h.a, 1, 2);"), Err("a random number".to_owned()));
    assert_eq!(unknown("random(hdr.h.a, 2, 2);").map(|s| s[0][0].1[0]), Ok(2));
}
