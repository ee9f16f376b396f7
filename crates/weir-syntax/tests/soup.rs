//! Random programs: whatever the text, parsing neither panics nor loses its place.

use proptest::prelude::*;
use weir_syntax::preprocess::{Options, SystemFiles};
use weir_syntax::{parse_source, render};

const WORDS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{#}",
    ";",
    ":",
    ",",
    ".",
    "..",
    "...",
    "@",
    "?",
    "=",
    "==",
    "!",
    "!=",
    "~",
    "<",
    "<=",
    ">",
    ">=",
    ">>=",
    "<<",
    "<<=",
    "+",
    "++",
    "+=",
    "+:",
    "-",
    "*",
    "/",
    "%",
    "&",
    "&&",
    "&&&",
    "|",
    "||",
    "|+|",
    "|-|=",
    "^",
    "_",
    "abstract",
    "action",
    "actions",
    "apply",
    "bit",
    "bit<8>",
    "bool",
    "break",
    "const",
    "continue",
    "control",
    "default",
    "else",
    "entries",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "for",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "key",
    "list",
    "match_kind",
    "out",
    "package",
    "parser",
    "priority",
    "return",
    "select",
    "state",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "type",
    "typedef",
    "value_set",
    "varbit",
    "void",
    "a",
    "b",
    "T",
    "1",
    "8w255",
    "0x",
    "\"s\"",
    "\"",
    "é",
    "\0",
    "@pragma x",
    "control c() { apply {",
    "parser p() { state s {",
    "table t {",
    "struct S {",
    "extern E<T> {",
    "x = ",
    "T<a>(",
    "\n",
    "\n#if 1\n",
    "\n#else\n",
    "\n#endif\n",
    "\n#define M(a) a ## a #a\n",
    "M(",
    "\n#line 3\n",
    "/*",
    "*/",
    "//",
    "\n#define N N M\n",
    "N",
    "\\\n",
    "\n#include <x>\n",
    "defined",
];

fn check(text: &str) {
    let parsed = parse_source(
        "t.p4",
        text,
        &Options::default(),
        SystemFiles(&[("x", "const bit x = 1;")]),
    );
    for diagnostic in parsed.diagnostics.list() {
        assert!(!diagnostic.message.is_empty());
        assert!(!render::short(diagnostic, &parsed.sources).is_empty());
        assert!(!render::json(diagnostic, &parsed.sources).is_empty());
        assert!(!render::human(diagnostic, &parsed.sources, true).is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_soup_never_panics(words in prop::collection::vec(prop::sample::select(WORDS), 0..120)) {
        check(&words.join(" "));
    }

    #[test]
    fn glued_token_soup_never_panics(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
        check(&words.concat());
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn a_program_with_a_token_exchanged_never_panics(at in 0_usize..400, word in prop::sample::select(WORDS)) {
        let mut words: Vec<&str> = PROGRAM.split(' ').collect();
        let at = at % words.len();
        words[at] = word;
        check(&words.join(" "));
    }
}

const PROGRAM: &str = "header h { bit < 8 > a ; varbit < 32 > b ; } struct s { h [ 2 ] x ; } \
    enum bit < 8 > e { A = 1 , B = 2 } extern E < T > { E ( bit < 8 > n ) ; T get ( in T x ) ; } \
    parser p ( packet_in b , out s o ) { E < bit < 8 > > ( 1 ) i ; state start { b . extract ( o . x . next ) ; \
    transition select ( o . x [ 0 ] . a , 1 ) { ( 1 .. 2 , _ ) : accept ; ( 3 &&& 4 , default ) : start ; } } } \
    control c ( inout s x ) ( bit < 8 > n ) { action a ( bit < 8 > y ) { x . x [ 0 ] . a = y + ( bit < 8 > ) n ; } \
    table t { key = { x . x [ 0 ] . a : exact @name ( \"k\" ) ; } actions = { a ; } const entries = { 1 : a ( 2 ) ; } \
    default_action = a ( 3 ) ; } apply { if ( t . apply ( ) . hit ) { exit ; } else { return ; } \
    switch ( t . apply ( ) . action_run ) { a : { x . x [ 1 ] = { 1 , 2 } ; } default : { } } \
    for ( bit < 8 > k = 0 ; k < 3 ; k += 1 ) { x . x . push_front ( 1 ) ; } } }";

#[test]
fn the_program_that_is_mutated_is_right() {
    let parsed = parse_source("t.p4", PROGRAM, &Options::default(), SystemFiles::default());
    let list: Vec<_> = parsed
        .diagnostics
        .list()
        .iter()
        .map(|d| render::short(d, &parsed.sources))
        .collect();
    assert_eq!(list, Vec::<String>::new());
}
