use crate::ast::*;
use crate::preprocess::{Options, SystemFiles};
use crate::{Parsed, parse_expression, parse_source, render};

fn parse(text: &str) -> Parsed {
    parse_source("t.p4", text, &Options::default(), SystemFiles::default())
}

/// The declarations of a program without mistakes.
#[track_caller]
fn good(text: &str) -> Vec<Declaration> {
    let parsed = parse(text);
    assert_eq!(shown(&parsed), Vec::<String>::new(), "{text}");
    parsed.program.declarations
}

fn shown(parsed: &Parsed) -> Vec<String> {
    let list = parsed.diagnostics.list().iter();
    list.map(|d| render::short(d, &parsed.sources).replace("t.p4:", ""))
        .collect()
}

/// The mistakes of a program.
fn bad(text: &str) -> Vec<String> {
    shown(&parse(text))
}

/// The statements of a control's `apply` block.
#[track_caller]
fn statements(text: &str) -> Vec<Statement> {
    let program = good(&format!(
        "struct S {{ bit<8> f; }} control c() {{ apply {{ {text} }} }}"
    ));
    match program.into_iter().last().map(|d| d.kind) {
        Some(DeclarationKind::Control(control)) => control.apply.statements,
        other => panic!("{other:?}"),
    }
}

/// An expression in prefix form.
#[track_caller]
fn expression(text: &str) -> String {
    let (expression, diagnostics) = parse_expression(text);
    assert!(!diagnostics.has_errors(), "{text}: {:?}", diagnostics.list());
    show(&expression.unwrap())
}

fn show(e: &Expr) -> String {
    let all = |list: &[Expr]| list.iter().map(show).collect::<Vec<_>>().join(" ");
    match &e.kind {
        ExprKind::Bool(b) => b.to_string(),
        ExprKind::Int { value, .. } => value.to_string(),
        ExprKind::String(s) => format!("{s:?}"),
        ExprKind::This => "this".to_string(),
        ExprKind::Name { absolute, name } => {
            format!("{}{}", if *absolute { "." } else { "" }, name.name)
        }
        ExprKind::Type(t) => show_type(t),
        ExprKind::Index(a, b) => format!("(index {} {})", show(a), show(b)),
        ExprKind::Slice(a, b, c) => format!("(slice {} {} {})", show(a), show(b), show(c)),
        ExprKind::PlusSlice(a, b, c) => format!("(plus-slice {} {} {})", show(a), show(b), show(c)),
        ExprKind::Member(a, m) => format!("{}.{}", show(a), m.name),
        ExprKind::Unary(op, a) => format!("({op:?} {})", show(a)),
        ExprKind::Binary(op, a, b) => format!("({op:?} {} {})", show(a), show(b)),
        ExprKind::Conditional(a, b, c) => format!("(if {} {} {})", show(a), show(b), show(c)),
        ExprKind::Cast(t, a) => format!("(cast {} {})", show_type(t), show(a)),
        ExprKind::List(list) => format!("{{{}}}", all(list)),
        ExprKind::Struct(fields, dots) => {
            let fields: Vec<_> = fields.iter().map(|(n, e)| format!("{}={}", n.name, show(e))).collect();
            format!("{{{}{}}}", fields.join(" "), if *dots { " ..." } else { "" })
        }
        ExprKind::InvalidHeader => "{#}".to_string(),
        ExprKind::Call {
            callee,
            type_arguments,
            arguments,
        } => {
            let types: Vec<_> = type_arguments.iter().map(show_type).collect();
            let types = if types.is_empty() {
                String::new()
            } else {
                format!("<{}>", types.join(" "))
            };
            let arguments: Vec<_> = arguments
                .iter()
                .map(|a| match &a.name {
                    Some(name) => format!("{}={}", name.name, show(&a.value)),
                    None => show(&a.value),
                })
                .collect();
            format!("({}{types} {})", show(callee), arguments.join(" "))
        }
        ExprKind::Mask(a, b) => format!("(mask {} {})", show(a), show(b)),
        ExprKind::Range(a, b) => format!("(range {} {})", show(a), show(b)),
        ExprKind::Default => "default".to_string(),
        ExprKind::DontCare => "_".to_string(),
        ExprKind::Dots => "...".to_string(),
        ExprKind::Error => "ERROR".to_string(),
    }
}

fn show_type(t: &Type) -> String {
    let all = |list: &[Type]| list.iter().map(show_type).collect::<Vec<_>>().join(",");
    match &t.kind {
        TypeKind::Bit(None) => "bit".to_string(),
        TypeKind::Bit(Some(w)) => format!("bit<{}>", show(w)),
        TypeKind::Int(w) => format!("int<{}>", show(w)),
        TypeKind::Varbit(w) => format!("varbit<{}>", show(w)),
        TypeKind::Named {
            absolute,
            name,
            arguments,
        } => {
            let arguments = arguments.as_ref().map_or(String::new(), |a| format!("<{}>", all(a)));
            format!("{}{}{arguments}", if *absolute { "." } else { "" }, name.name)
        }
        TypeKind::Stack(element, size) => format!("{}[{}]", show_type(element), show(size)),
        TypeKind::Tuple(list) => format!("tuple<{}>", all(list)),
        TypeKind::List(element) => format!("list<{}>", show_type(element)),
        other => format!("{other:?}"),
    }
}

// ---------------------------------------------------------------------------------- expressions

#[test]
fn multiplication_binds_tighter_than_addition_and_both_associate_to_the_left() {
    assert_eq!(expression("a + b * c - d"), "(Sub (Add a (Mul b c)) d)");
}

#[test]
fn bit_operators_bind_tighter_than_comparisons() {
    assert_eq!(expression("a & b == c | d"), "(Eq (BitAnd a b) (BitOr c d))");
    assert_eq!(
        expression("a | b ^ c & d << 1"),
        "(BitOr a (BitXor b (BitAnd c (Shl d 1))))"
    );
}

#[test]
fn concatenation_and_saturating_operators_share_the_level_of_addition() {
    assert_eq!(expression("a ++ b |+| c |-| d"), "(SubSat (AddSat (Concat a b) c) d)");
}

#[test]
fn conditional_binds_loosest_and_to_the_right() {
    assert_eq!(expression("a || b ? c : d ? e : f"), "(if (Or a b) c (if d e f))");
}

#[test]
fn two_adjacent_angles_are_a_shift_and_two_separate_ones_a_mistake() {
    assert_eq!(expression("a >> b"), "(Shr a b)");
    assert!(parse_expression("a > > b").1.has_errors());
}

#[test]
fn prefix_operators_and_casts_bind_tighter_than_binary_operators() {
    assert_eq!(expression("-a + ~b"), "(Add (Negate a) (Complement b))");
    assert_eq!(expression("(bit<8>) a + b"), "(Add (cast bit<8> a) b)");
    assert_eq!(expression("(bit<8>) a.b[1]"), "(cast bit<8> (index a.b 1))");
}

#[test]
fn parenthesis_after_a_value_name_is_no_cast_and_after_a_type_name_is() {
    let of = |text: &str| match &statements(text).last().unwrap().kind {
        StatementKind::Assign { value, .. } => show(value),
        other => panic!("{other:?}"),
    };
    assert_eq!(of("bit<8> a; a = (a) - 1;"), "(Sub a 1)");
    assert_eq!(of("bit<8> a; a = (S) - 1;"), "(cast S (Negate 1))");
    assert_eq!(of("bit<8> a; a = (a) + (a);"), "(Add a a)");
    assert_eq!(of("bit<8> S; S = (S) - 1;"), "(Sub S 1)", "a local name hides the type");
}

#[test]
fn type_arguments_of_a_call_are_told_from_comparisons() {
    assert_eq!(expression("f<bit<8>>(x)"), "(f<bit<8>> x)");
    assert_eq!(expression("p.lookahead<H>().x"), "(p.lookahead<H> ).x");
    assert_eq!(expression("a < b"), "(Lt a b)");
    assert_eq!(expression("a < b && c > d"), "(And (Lt a b) (Gt c d))");
    assert_eq!(
        expression("f<tuple<bit<8>, _>, T[3]>(x)"),
        "(f<tuple<bit<8>,DontCare>,T[3]> x)".replace(">,T", "> T")
    );
}

#[test]
fn widths_are_expressions_that_end_at_an_angle() {
    assert_eq!(expression("(bit<8>) 1"), "(cast bit<8> 1)");
    assert_eq!(
        expression("(bit<(W > 1 ? 2 : 3)>) 1"),
        "(cast bit<(if (Gt W 1) 2 3)> 1)"
    );
    assert_eq!(expression("(bit<W + 1>) 1"), "(cast bit<(Add W 1)> 1)");
    assert_eq!(
        expression("(int<4>) (varbit<32>) x"),
        "(cast int<4> (cast varbit<32> x))"
    );
}

#[test]
fn slices_come_in_two_forms() {
    assert_eq!(expression("a[7:0]"), "(slice a 7 0)");
    assert_eq!(expression("a[b +: 4]"), "(plus-slice a b 4)");
}

#[test]
fn braces_hold_lists_structs_and_invalid_headers() {
    assert_eq!(expression("{ 1, {2}, }"), "{1 {2}}");
    assert_eq!(expression("{ a = 1, b = 2 }"), "{a=1 b=2}");
    assert_eq!(expression("{ a = 1, ... }"), "{a=1 ...}");
    assert_eq!(expression("{ 1, ... }"), "{1 ...}");
    assert_eq!(expression("(H) {#}"), "(cast H {#})");
    assert_eq!(expression("{}"), "{}");
}

#[test]
fn dots_stand_last() {
    assert!(parse_expression("{ ..., 1 }").1.has_errors());
    assert!(parse_expression("{ a = 1, ..., b = 2 }").1.has_errors());
}

#[test]
fn errors_of_the_core_library_and_absolute_names_are_expressions() {
    assert_eq!(expression("error.NoMatch == e"), "(Eq Error.NoMatch e)");
    assert_eq!(expression(".x + this.y"), "(Add .x this.y)");
}

#[test]
fn arguments_may_be_named_or_left_open() {
    assert_eq!(expression("f(a = 1, b = _)"), "(f a=1 b=_)");
    assert_eq!(expression("f(_)"), "(f _)");
}

#[test]
fn contextual_keywords_are_names() {
    assert_eq!(
        expression("key.apply.state + list - type * priority"),
        "(Sub (Add key.apply.state list) (Mul type priority))"
    );
    assert!(parse_expression("table").1.has_errors());
}

#[test]
fn a_type_where_a_value_is_expected_is_a_mistake() {
    assert!(parse_expression("bit<32>(0)").1.has_errors());
    assert_eq!(
        bad("struct S {} const bit x = 1 + S;"),
        ["1:31: error[syntax]: expected a value, found type `S`"]
    );
}

#[test]
fn malformed_integers_are_reported_and_parsing_goes_on() {
    assert_eq!(
        bad("const bit<8> a = 0xZZ;\nconst bit b = 1;"),
        ["1:18: error[lexical]: `0xZZ` is not an integer"]
    );
}

#[test]
fn every_expression_has_its_own_identity() {
    let parsed = parse("const int a = f(1 + 2, {3, x = 4}) ? -5 : b[6:7];");
    assert!(parsed.diagnostics.has_errors());
    let parsed = parse("const int a = f(1 + 2, {3, 4}) ? -5 : b[6:7];");
    assert!(!parsed.diagnostics.has_errors());
    let debug = format!("{:?}", parsed.program);
    let mut ids: Vec<u32> = debug
        .split("ExprId(")
        .skip(1)
        .map(|s| s.split(')').next().unwrap().parse().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..parsed.program.expr_count).collect::<Vec<_>>());
}

// ----------------------------------------------------------------------------------- statements

#[test]
fn all_assignment_operators_are_known() {
    for (text, operator) in [
        ("=", None),
        ("+=", Some(BinaryOp::Add)),
        ("-=", Some(BinaryOp::Sub)),
        ("*=", Some(BinaryOp::Mul)),
        ("/=", Some(BinaryOp::Div)),
        ("%=", Some(BinaryOp::Mod)),
        ("&=", Some(BinaryOp::BitAnd)),
        ("|=", Some(BinaryOp::BitOr)),
        ("^=", Some(BinaryOp::BitXor)),
        ("<<=", Some(BinaryOp::Shl)),
        (">>=", Some(BinaryOp::Shr)),
        ("|+|=", Some(BinaryOp::AddSat)),
        ("|-|=", Some(BinaryOp::SubSat)),
    ] {
        match &statements(&format!("a {text} 1;"))[0].kind {
            StatementKind::Assign { operator: found, .. } => assert_eq!(*found, operator, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn declarations_are_told_from_calls_and_assignments() {
    let kinds: Vec<_> = statements(
        "S s; S[2] t; E(1) e; f(1); a[2] = 1; .S u; bit<8> v = 1; list<S> l; x.y.apply(); G<S>(2) g; G<S>.apply();",
    )
    .into_iter()
    .map(|s| match s.kind {
        StatementKind::Declaration(d) => match d.kind {
            DeclarationKind::Variable(_) => "variable",
            DeclarationKind::Instantiation(_) => "instance",
            _ => "?",
        },
        StatementKind::Call(_) => "call",
        StatementKind::Assign { .. } => "assign",
        _ => "?",
    })
    .collect();
    assert_eq!(
        kinds,
        [
            "variable", "variable", "instance", "call", "assign", "variable", "variable", "variable", "call",
            "instance", "call"
        ]
    );
}

#[test]
fn sizes_may_follow_the_declared_name() {
    let StatementKind::Declaration(d) = &statements("bit<8> a[2][3];")[0].kind else {
        panic!()
    };
    let DeclarationKind::Variable(v) = &d.kind else {
        panic!()
    };
    assert_eq!(show_type(&v.ty), "bit<8>[3][2]");
}

#[test]
fn loops_have_two_forms() {
    let loops = statements(
        "for (bit<8> i = 0, j = 1; i < 3; i = i + 1, j += 1) { } for (S x in s) f(); @unroll for (bit<8> x in 1..3) {}",
    );
    let StatementKind::For { init, update, .. } = &loops[0].kind else {
        panic!("{loops:?}")
    };
    assert_eq!((init.len(), update.len()), (2, 2));
    let StatementKind::ForIn {
        collection,
        annotations,
        ..
    } = &loops[2].kind
    else {
        panic!("{loops:?}")
    };
    assert_eq!(show(collection), "(range 1 3)");
    assert_eq!(annotations.len(), 1);
}

#[test]
fn a_loop_variable_needs_a_type() {
    let mistakes = bad("control c() { apply { for (i in 1..6) { n = i; } } }");
    assert_eq!(
        mistakes,
        ["1:30: error[syntax]: expected an assignment or a call, found `in`"]
    );
}

#[test]
fn switch_cases_fall_through_without_a_block() {
    let switch = statements("switch (t.apply().action_run) { a: b: { x = 1; } default: {} }");
    let StatementKind::Switch { cases, .. } = &switch[0].kind else {
        panic!()
    };
    let shape: Vec<_> = cases.iter().map(|c| (show(&c.label), c.body.is_some())).collect();
    assert_eq!(
        shape,
        [("a".into(), false), ("b".into(), true), ("default".into(), true)]
    );
}

#[test]
fn an_else_belongs_to_the_nearest_if() {
    let statements = statements("if (a) if (b) f(); else g();");
    let StatementKind::If {
        then, otherwise: None, ..
    } = &statements[0].kind
    else {
        panic!()
    };
    assert!(matches!(&then.kind, StatementKind::If { otherwise: Some(_), .. }));
}

#[test]
fn the_result_of_a_call_is_not_called_in_a_statement() {
    assert_eq!(
        bad("control c() { apply { t.apply()(); } }"),
        ["1:32: error[syntax]: expected `;` after the statement, found `(`"]
    );
}

// --------------------------------------------------------------------------------- declarations

#[test]
fn all_kinds_of_types_are_declared() {
    let kinds = good(
        "header h { bit<8> a; varbit<(8 * 4)> b; } struct s<T> { T t; tuple<bit, error> u; }
         header_union u { h a; } enum e { A, B, } enum bit<8> f { A = 1, B = A + 1 }
         typedef bit<8> t; type t n; typedef struct q { bit x; } r; error { X, Y } match_kind { m, }
         extern E<T> { E(bit x); T get(); abstract void f<U>(in U u); } extern void g<T>(in T t); extern F;
         parser P<H>(packet_in b, out H h); control C<H>(inout H h); package K<H>(P<H> p, @optional C<H> c = d);",
    );
    assert_eq!(kinds.len(), 16);
}

#[test]
fn functions_actions_and_instances_stand_at_the_top_level() {
    let program = good(
        "bit<8> f<T>(in T x) { return 1; } action a(bit<8> x) { exit; } E(1, y = 2) e;
         A<bit>() g = { void h(in bit x) { return; } E(2) i; }; const bit<8> c = 8w255; ;",
    );
    let DeclarationKind::Instantiation(instance) = &program[3].kind else {
        panic!()
    };
    assert_eq!(instance.body.as_ref().unwrap().len(), 2);
}

#[test]
fn parsers_have_locals_states_and_selections() {
    let program = good(
        "parser p(packet_in b)(bit x) { bit<8> v = 1; value_set<bit<8>>(4) vs; E() e;
           state start { b.extract(h); if (v == 1) { v = 2; } transition select(v, h.x) {
             (1, 2 &&& 3): a; (vs, _): b; default: accept; (4): b; 5 .. 6: a; _: reject; } }
           @name(\"x\") state a { transition b; } state b { } }",
    );
    let DeclarationKind::Parser(parser) = &program[0].kind else {
        panic!()
    };
    assert_eq!(
        (
            parser.locals.len(),
            parser.states.len(),
            parser.constructor_parameters.len()
        ),
        (3, 3, 1)
    );
    let Some(Transition::Select { cases, expressions, .. }) = &parser.states[0].transition else {
        panic!()
    };
    assert_eq!(expressions.len(), 2);
    let keysets: Vec<_> = cases.iter().map(|c| show(&c.keyset)).collect();
    assert_eq!(
        keysets,
        ["{1 (mask 2 3)}", "{vs _}", "default", "4", "(range 5 6)", "_"]
    );
    assert!(parser.states[2].transition.is_none());
}

#[test]
fn return_is_no_statement_of_a_state() {
    assert_eq!(bad("parser p() { state start {\nreturn; } }").len(), 1);
}

#[test]
fn tables_have_keys_actions_entries_and_other_properties() {
    let program = good(
        "control c() { action a(bit x) {} table t {
           key = { h.x: exact @name(\"x\"); h.y & 1: lpm; }
           @note actions = { @defaultonly a; .b; d(1); }
           const entries = { (1, _): a(2) @x; const priority = 3: 4 &&& 5: b; default: b(); }
           const default_action = a(1); size = 1024; largest_priority_wins = false; } apply { t.apply(); } }",
    );
    let DeclarationKind::Control(control) = &program[0].kind else {
        panic!()
    };
    let DeclarationKind::Table(table) = &control.locals[1].kind else {
        panic!()
    };
    assert_eq!(table.properties.len(), 6);
    let TablePropertyValue::Entries(entries) = &table.properties[2].value else {
        panic!()
    };
    assert_eq!(entries[0].annotations.len(), 1);
    assert!(entries[1].priority.is_some() && entries[1].is_const);
    assert_eq!(show(&entries[1].keyset), "(mask 4 5)");
}

#[test]
fn annotations_are_kept_as_tokens_or_expressions() {
    let program = good(
        "@atomic @name(\"a\\\"b\") @odd((1, 0x10) ;x é) @list[1, 2 + 3,] @pairs[k=1, l=\"x\"]
         const bit a = 1;
         @pragma alpm 1 x
         const bit b = 1;",
    );
    let bodies: Vec<_> = program[0].annotations.iter().map(|a| &a.body).collect();
    assert!(matches!(bodies[0], AnnotationBody::Empty));
    let AnnotationBody::Unstructured(tokens) = bodies[1] else {
        panic!()
    };
    assert_eq!(
        (&*tokens[0].text, &tokens[0].kind),
        ("a\"b", &AnnotationTokenKind::String)
    );
    let AnnotationBody::Unstructured(tokens) = bodies[2] else {
        panic!()
    };
    let texts: Vec<_> = tokens.iter().map(|t| &*t.text).collect();
    assert_eq!(texts, ["(", "1", ",", "0x10", ")", ";", "x", "é"]);
    assert_eq!(tokens[3].kind, AnnotationTokenKind::Integer(16.into()));
    assert!(matches!(bodies[3], AnnotationBody::Expressions(list) if list.len() == 2));
    assert!(matches!(bodies[4], AnnotationBody::KeyValues(list) if list.len() == 2));
    let pragma = &program[1].annotations[0];
    assert_eq!(&*pragma.name.name, "alpm");
    assert!(matches!(&pragma.body, AnnotationBody::Unstructured(tokens) if tokens.len() == 2));
}

#[test]
fn values_and_pairs_do_not_mix_in_an_annotation() {
    assert_eq!(bad("@a[k=1, 2] const bit x = 1;").len(), 1);
}

#[test]
fn translations_have_a_fixed_form() {
    for body in ["\"u\", bit<8>", "\"u\", string", "\"u\", 32"] {
        good(&format!("@p4runtime_translation({body}) type bit<8> t;"));
    }
    for body in [
        "",
        "\"u\"",
        "\"u\", bool",
        "\"u\", bit<5+3>",
        "u, string",
        "\"u\", string, 1",
    ] {
        assert_eq!(
            bad(&format!("@p4runtime_translation({body}) type bit<8> t;")).len(),
            1,
            "{body}"
        );
    }
}

// ------------------------------------------------------------------------------------- mistakes

#[test]
fn a_missing_semicolon_is_reported_once_at_the_next_token_with_a_label_where_it_belongs() {
    let parsed = parse("struct s {\n  bit<8> a\n  bit<8> b;\n}\nconst bit x = 1;");
    assert_eq!(
        shown(&parsed),
        ["3:3: error[syntax]: expected `;` after the field, found `bit`"]
    );
    let label = &parsed.diagnostics.list()[0].labels[0];
    assert_eq!(parsed.sources.place(label.span.lo).line, 2);
    let DeclarationKind::Struct(s) = &parsed.program.declarations[0].kind else {
        panic!()
    };
    assert_eq!(s.fields.len(), 2, "the field before and the one after are kept");
    assert_eq!(parsed.program.declarations.len(), 2);
}

#[test]
fn each_mistake_is_reported_once_and_the_rest_is_parsed() {
    let parsed = parse(
        "control k() {
           bit<8> = 3;
           table t { key = { a b; } actions = { x, y; } }
           apply { a = + ; b = 1; if x { } c = 2; }
         }
         const bit d = ;
         const bit e = 1;",
    );
    let lines: Vec<_> = shown(&parsed)
        .iter()
        .map(|s| s.split(':').next().unwrap().to_string())
        .collect();
    assert_eq!(lines, ["2", "3", "3", "4", "4", "6"], "{:#?}", shown(&parsed));
    assert_eq!(parsed.program.declarations.len(), 2);
    let DeclarationKind::Control(control) = &parsed.program.declarations[0].kind else {
        panic!()
    };
    assert_eq!(control.apply.statements.len(), 2, "{:#?}", control.apply.statements);
}

#[test]
fn a_missing_brace_ends_at_the_next_top_level_keyword() {
    let parsed = parse("control a() { apply { x = 1; }\ncontrol b() { apply { } }");
    assert_eq!(
        shown(&parsed),
        ["2:1: error[syntax]: expected `}` after the `apply` block, found `control`"]
    );
    assert_eq!(parsed.program.declarations.len(), 1);
}

#[test]
fn the_end_of_the_file_is_where_its_text_ends() {
    assert_eq!(bad("\nx\n\n\n").len(), 1);
    assert!(bad("\nx\n\n\n")[0].starts_with("2:2: "));
}

#[test]
fn control_without_apply_is_explained() {
    let parsed = parse("control c() { bit x; }");
    assert!(parsed.diagnostics.list()[0].help.as_ref().unwrap().contains("apply"));
}

#[test]
fn misplaced_things_are_reported_at_the_top_level() {
    for text in [
        "table t {}",
        "state s {}",
        "entries = {}",
        "return;",
        "}",
        "foo",
        "€",
        "extern void _();",
    ] {
        assert_eq!(bad(text).len(), 1, "{text}: {:?}", bad(text));
    }
}

#[test]
fn variables_at_the_top_level_are_left_to_the_checker() {
    let declarations = good("bit x; bit<8> y = 1;");
    let is_variable = |d: &Declaration| matches!(d.kind, DeclarationKind::Variable(_));
    assert!(declarations.len() == 2 && declarations.iter().all(is_variable));
}

#[test]
fn declarations_that_look_like_p4_14_are_not_taken_for_it() {
    good("header_type(1) counter; const bit meter = 1; metadata f(register r) { return x; }");
    assert!(bad("parser p { state start { } }")[0].contains("expected `(`"));
    assert!(bad("table t { actions { a; } }")[0].contains("expected a declaration, found `table`"));
    assert!(bad("table t { reads { a : exact; } }")[0].contains("this is P4_14"));
}

#[test]
fn names_like_else_if_may_be_called() {
    let text = "void elif(in bit<8> x) { } control c(in bit<8> x) { apply { if (x == 1) elif(x); elif(x); } }";
    good(text);
    good("extern void elsif(in bit<8> x); control c(in bit<8> x) { apply { elsif(x); } }");
}

#[test]
fn assignments_stand_only_outside_of_conditions() {
    let named = "bool f(in bit<8> a) { return true; } control c(in bit<8> x) { apply { if (f(a = x)) { } } }";
    good(named);
    let list = "struct s { bit a; } control c() { apply { if (s2 == { a = 1 }) { } if (true) { x = 1; } } }";
    good(list);
}

#[test]
fn constructors_carry_the_name_of_their_extern() {
    assert_eq!(
        bad("extern Z { m(); }"),
        ["1:12: error[syntax]: method `m` has no result type"]
    );
    assert_eq!(bad("extern Y { Y<T>(in T a); }").len(), 1);
}

#[test]
fn characters_beyond_ascii_stand_only_in_comments_and_strings() {
    good("const string s = \"é\"; // ü");
    assert_eq!(
        bad("const bit é = 1;"),
        ["1:11: error[lexical]: expected the name of a constant, found the character \"é\""]
    );
}

#[test]
fn an_unterminated_string_is_one_error() {
    assert_eq!(
        bad("const string s = \"abc;\nconst bit x = 1;"),
        ["1:18: error[lexical]: this string has no closing `\"`"]
    );
    assert_eq!(
        bad("const bit x = 1; /* abc"),
        ["1:18: error[lexical]: this comment has no closing `*/`"]
    );
}

#[test]
fn a_keyword_for_a_field_is_one_mistake() {
    let mistakes = bad("struct s { bit<8> a; bit<8> header; bit<8> b; } struct t { s x; }");
    assert_eq!(
        mistakes,
        ["1:29: error[syntax]: expected the name of a field, found `header`"]
    );
}
