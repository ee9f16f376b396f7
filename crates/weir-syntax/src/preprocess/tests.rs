use std::path::Path;

use super::*;
use crate::render;

/// Preprocesses files; the first is the program. Returns the tokens' texts and the diagnostics.
fn run_with(options: &Options, files: &[(&str, &str)]) -> (String, Vec<String>) {
    let loader: MemoryLoader = files.iter().map(|&(name, text)| (name, text)).collect();
    let system = SystemFiles(&[
        ("core.p4", "core"),
        ("d/a.p4", "#include \"../core.p4\"\n#include \"b.p4\""),
        ("d/b.p4", "b"),
    ]);
    let mut preprocessor = Preprocessor::new(options, &loader, system);
    let bytes = loader.load(Path::new(files[0].0)).unwrap();
    let tokens = preprocessor.run(files[0].0, bytes);
    let texts: Vec<_> = tokens
        .iter()
        .filter(|t| !matches!(t.tok, Tok::Eof | Tok::Error))
        .map(|t| {
            if t.tok == Tok::PragmaEnd {
                "END"
            } else {
                t.text(&preprocessor.interner)
            }
        })
        .collect();
    let list = preprocessor.diagnostics.list().iter();
    let diagnostics = list.map(|d| render::short(d, &preprocessor.sources)).collect();
    (texts.join(" "), diagnostics)
}

fn run(text: &str) -> (String, Vec<String>) {
    run_with(&Options::default(), &[("a.p4", text)])
}

#[track_caller]
fn good(text: &str) -> String {
    let (tokens, diagnostics) = run(text);
    assert_eq!(diagnostics, Vec::<String>::new(), "{text}");
    tokens
}

fn bad(text: &str) -> Vec<String> {
    run(text).1
}

// ------------------------------------------------------------------------------------------ macros

#[test]
fn object_macros_are_replaced_and_forgotten() {
    assert_eq!(good("#define A 1 + B\n#define B 2\nA;\n#undef B\nA"), "1 + 2 ; 1 + B");
}

#[test]
fn function_macros_need_parentheses() {
    assert_eq!(good("#define F(x) <x>\nF(1) F F (2) F"), "< 1 > F < 2 > F");
}

#[test]
fn a_space_before_the_parenthesis_makes_an_object_macro() {
    assert_eq!(good("#define F (x)\nF(1)"), "( x ) ( 1 )");
}

#[test]
fn arguments_nest_and_extend_over_lines() {
    assert_eq!(good("#define F(a, b) b a\nF((1, 2),\n 3)"), "3 ( 1 , 2 )");
    assert_eq!(good("#define F(a) [a]\nF(F(F(1)))"), "[ [ [ 1 ] ] ]");
    assert_eq!(good("#define F() x\n#define G(a) y a\nF() G()"), "x y");
}

#[test]
fn macros_do_not_expand_themselves() {
    assert_eq!(good("#define A A B\n#define B A\nA"), "A A");
    assert_eq!(good("#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)"), "2 * 9 * g");
    assert_eq!(good("#define f(x) f(x + 1)\nf(f(1))"), "f ( f ( 1 + 1 ) + 1 )");
}

#[test]
fn the_standards_rescanning_example_holds() {
    let text = "#define x 3
#define f(a) f(x * (a))
#undef x
#define x 2
#define g f
#define z z[0]
#define h g(~
#define m(a) a(w)
#define w 0,1
#define t(a) a
#define p() int
#define q(x) x
#define r(x,y) x ## y
#define str(x) # x
f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);
g(x+(3,4)-w) | h 5) & m
(f)^m(m);
p() i[q()] = { q(1), r(2,3), r(4,), r(,5), r(,) };
str(hello) str(a \"b\\n\")";
    assert_eq!(
        good(text),
        "f ( 2 * ( y + 1 ) ) + f ( 2 * ( f ( 2 * ( z [ 0 ] ) ) ) ) % f ( 2 * ( 0 ) ) + t ( 1 ) ; \
         f ( 2 * ( 2 + ( 3 , 4 ) - 0 , 1 ) ) | f ( 2 * ( ~ 5 ) ) & f ( 2 * ( 0 , 1 ) ) ^ m ( 0 , 1 ) ; \
         int i [ ] = { 1 , 23 , 4 , 5 , } ; \
         \"hello\" \"a \\\"b\\\\n\\\"\""
    );
}

#[test]
fn pasting_makes_one_token() {
    assert_eq!(good("#define W(n, v) n##w##v\nW(8, 0xFF) W(8,) W(,3)"), "8w0xFF 8w w3");
    assert_eq!(good("#define A x ## y\nA"), "xy");
    // What is not one token stays two.
    assert_eq!(good("#define P(a, b) a##b\nP(+, x) v[P(7:, 1)]"), "+ x v [ 7 : 1 ]");
}

#[test]
fn variadic_macros_take_the_rest() {
    assert_eq!(
        good("#define V(a, ...) a: __VA_ARGS__;\nV(1) V(1, 2, 3)"),
        "1 : ; 1 : 2 , 3 ;"
    );
    assert_eq!(
        good("#define V(a, r...) f(a, ## r)\nV(1) V(1, 2, 3)"),
        "f ( 1 ) f ( 1 , 2 , 3 )"
    );
}

#[test]
fn mistakes_in_definitions_and_uses_are_reported() {
    for text in [
        "#define",
        "#define 1",
        "#define F(",
        "#define F(a a) a",
        "#define F(a, a) a",
        "#define F(1) a",
        "#define A ## b",
        "#define A b ##",
        "#define defined 1",
        "#undef",
        "#define F(a) a\nF(1, 2)",
        "#define F(a, b) a\nF(1)",
        "#define F(a) a\nF(1",
        "#nonsense",
        "#define X /* never closed",
    ] {
        assert_eq!(bad(text).len(), 1, "{text}: {:?}", bad(text));
    }
}

#[test]
fn a_different_second_definition_is_a_warning() {
    assert_eq!(good("#define A 1 + 2\n#define A 1  +  2\nA"), "1 + 2");
    assert_eq!(
        bad("#define A 1\n#define A 2"),
        ["a.p4:2:9: warning[preprocessor]: macro `A` is defined again, differently"]
    );
}

#[test]
fn tokens_of_a_macro_stand_where_it_is_used() {
    let loader = MemoryLoader::default();
    let options = Options::default();
    let mut preprocessor = Preprocessor::new(&options, &loader, SystemFiles::default());
    let tokens = preprocessor.run("a.p4", "#define B 1 2\n#define A B\n\nA;".into());
    let lines: Vec<_> = tokens
        .iter()
        .map(|t| preprocessor.sources.place(t.span.lo).line)
        .collect();
    assert_eq!(lines, [4, 4, 4, 4]);
}

#[test]
fn lines_and_files_have_macros() {
    assert_eq!(
        good("__LINE__\n#line 100 \"x.p4\"\n__LINE__ __FILE__\n\n__LINE__"),
        "1 100 \"x.p4\" 102"
    );
    assert_eq!(good("# 7 \"y.p4\" 2\n__LINE__ __FILE__"), "7 \"y.p4\"");
    assert_eq!(bad("#line x").len(), 1);
}

#[test]
fn predefined_macros_can_be_overridden() {
    let options = Options {
        defines: vec![
            ("__p4c_minor__".into(), Some("9".into())),
            ("X".into(), None),
            ("F(a)".into(), Some("a a".into())),
        ],
        undefines: vec!["__TARGET_BMV2__".into()],
        ..Options::default()
    };
    let text = "__p4c__ __p4c_minor__ X F(z)\n#ifdef __TARGET_BMV2__\nno\n#endif";
    assert_eq!(
        run_with(&options, &[("a.p4", text)]),
        ("1 9 1 z z".to_string(), Vec::new())
    );
}

// ------------------------------------------------------------------------------------ conditionals

#[test]
fn the_first_group_whose_condition_holds_is_taken() {
    let text =
        |a: u32| format!("#define A {a}\n#if A == 1\none\n#elif A == 2\ntwo\n#elif 1/0\n#else\nother\n#endif\nend");
    assert_eq!(good(&text(1)), "one end");
    assert_eq!(good(&text(2)), "two end");
    assert_eq!(
        bad(&text(3)),
        ["a.p4:6:8: error[preprocessor]: bad preprocessor condition: division by zero"]
    );
}

#[test]
fn skipped_groups_nest_and_may_hold_anything() {
    assert_eq!(
        good(
            "#ifndef X\n#else\n#if 1\n#elif (((\n#else\n#endif\n#error no\n#nonsense it's \"open\n/* #endif\n */ #endif\ny"
        ),
        "y"
    );
}

#[test]
fn conditions_have_the_operators_of_c() {
    for condition in [
        "defined A && !defined(B)",
        "1 + 2 * 3 == 7 && 7 / 2 == 3 && 7 % 4 == 3",
        "(1 ? 2 : 3) == 2 && (0 ? 1 : 0 ? 2 : 3) == 3",
        "0 || 1 && 1",
        "!0 && ~0 == -1 && +1",
        "1 << 4 == 16 && 16 >> 2 == 4",
        "(6 & 3) == 2 && (6 | 1) == 7 && (6 ^ 3) == 5",
        "0x10 == 16 && 0b11 == 3 && 20200408L >= 20200408",
        "unknown == 0",
        "0 && 1/0 || 1",
        "F(2) == 4",
        "2 <= 2 && 3 != 2 && 1 < 2 && 2 > 1",
    ] {
        let text = format!("#define A\n#define F(x) x * 2\n#if {condition}\nyes\n#endif");
        assert_eq!(good(&text), "yes", "{condition}");
    }
}

#[test]
fn mistaken_conditions_are_reported_and_do_not_hold() {
    for condition in [
        "",
        "1 +",
        "(1",
        "1 2",
        "defined",
        "defined(A",
        "\"x\"",
        "1 ? 2",
        "12ab",
        "= 1",
    ] {
        let (tokens, diagnostics) = run(&format!("#if {condition}\nyes\n#else\nno\n#endif"));
        assert_eq!(
            (tokens.as_str(), diagnostics.len()),
            ("no", 1),
            "{condition}: {diagnostics:?}"
        );
    }
}

#[test]
fn unbalanced_conditionals_are_reported_where_they_begin() {
    assert_eq!(
        bad("x\n#if 1\ny\n"),
        ["a.p4:2:1: error[preprocessor]: this conditional has no `#endif`"]
    );
    assert_eq!(
        bad("#if 0\ny\n"),
        ["a.p4:1:1: error[preprocessor]: this conditional has no `#endif`"]
    );
    for text in [
        "#endif",
        "#else",
        "#elif 1",
        "#if 1\n#else\n#else\n#endif",
        "#ifdef\n#endif",
    ] {
        assert_eq!(bad(text).len(), 1, "{text}");
    }
}

#[test]
fn messages_of_the_program_are_passed_on() {
    assert_eq!(bad("#error it's  over"), ["a.p4:1:1: error[preprocessor]: it's  over"]);
    assert_eq!(bad("#warning careful"), ["a.p4:1:1: warning[preprocessor]: careful"]);
}

#[test]
fn pragmas_are_skipped_but_those_of_p4_get_an_end() {
    assert_eq!(good("#pragma once\n@pragma a b\nc"), "@ pragma a b END c");
}

// ---------------------------------------------------------------------------------------- includes

#[test]
fn included_files_are_found_beside_then_in_directories_then_in_the_system() {
    let options = Options {
        include_dirs: vec!["inc".into()],
        ..Options::default()
    };
    let files = [
        (
            "dir/main.p4",
            "#include \"x.p4\"\n#include <x.p4>\n#include <core.p4>\n#define N \"x.p4\"\n#include N\n#define M <core.p4>\n#include M",
        ),
        ("dir/x.p4", "beside"),
        ("inc/x.p4", "inc"),
    ];
    assert_eq!(
        run_with(&options, &files),
        ("beside inc core beside core".to_string(), Vec::new())
    );
}

#[test]
fn of_a_program_that_was_sent_no_text_is_lost_and_lines_are_its_own() {
    let options = Options {
        origin: Origin::Sent,
        ..Options::default()
    };
    let text = "#include <core.p4> lost\n#line 7 \"/etc/passwd\"\n# 9 \"/etc/shadow\"\n__LINE__\n#endif";
    let (tokens, diagnostics) = run_with(&options, &[("sent", text)]);
    assert_eq!(tokens, "core 4");
    assert_eq!(
        diagnostics,
        [
            "sent:1:20: error[preprocessor]: expected the end of the line behind `#include`, found text that would \
             be ignored",
            "sent:5:1: error[preprocessor]: `#endif` without `#if`"
        ]
    );
}

#[test]
fn system_files_find_each_other() {
    assert_eq!(good("#include <d/a.p4>"), "core b");
}

#[test]
fn a_missing_file_is_reported_with_the_places_searched() {
    let options = Options {
        include_dirs: vec!["inc".into()],
        ..Options::default()
    };
    let loader: MemoryLoader = [("s/a.p4", "#include \"no.p4\"\nx")].into_iter().collect();
    let mut preprocessor = Preprocessor::new(&options, &loader, SystemFiles::default());
    preprocessor.run("s/a.p4", loader.load(Path::new("s/a.p4")).unwrap());
    let diagnostic = &preprocessor.diagnostics.list()[0];
    assert_eq!(
        render::short(diagnostic, &preprocessor.sources),
        "s/a.p4:1:10: error[preprocessor]: `no.p4` is not found"
    );
    assert_eq!(
        diagnostic.help.as_deref(),
        Some("searched: `s/no.p4`, `inc/no.p4`, the files that come with weir")
    );
}

#[test]
fn malformed_includes_are_reported() {
    for text in ["#include", "#include core", "#include <core.p4", "#include \"core.p4\n"] {
        assert_eq!(bad(text).len(), 1, "{text}");
    }
}

#[test]
fn an_inclusion_cycle_ends_with_one_error() {
    let (_, diagnostics) = run_with(
        &Options::default(),
        &[("a.p4", "#include \"a.p4\"\n#include \"a.p4\"\nx")],
    );
    assert_eq!(
        diagnostics,
        ["a.p4:1:10: error[overlimit]: files are included more than 64 deep: `a.p4` includes itself"]
    );
}

#[test]
fn a_conditional_ends_in_its_own_file() {
    let (tokens, diagnostics) = run_with(
        &Options::default(),
        &[
            ("a.p4", "#if 1\n#include \"b.p4\"\nx\n#endif"),
            ("b.p4", "#endif\n#if 1\ny"),
        ],
    );
    assert_eq!(tokens, "y x");
    assert_eq!(diagnostics.len(), 2);
}

#[test]
fn a_macro_bomb_ends_with_one_error() {
    let mut text = String::from("#define A0 x x\n");
    for i in 1..64 {
        text += &format!("#define A{i} A{} A{}\n", i - 1, i - 1);
    }
    let (_, diagnostics) = run(&(text + "A63"));
    assert_eq!(diagnostics.len(), 1);
    assert!(diagnostics[0].contains("error[overlimit]"), "{diagnostics:?}");
}

#[test]
fn a_bomb_of_function_macros_ends_with_one_error() {
    let nested = format!("#define F(x) x x x x\n{}1{}", "F(".repeat(60), ")".repeat(60));
    assert!(bad(&nested)[0].contains("error[overlimit]"));
    let deep = format!("#define F(x) x\n{}1{}", "F(".repeat(100_000), ")".repeat(100_000));
    assert!(bad(&deep)[0].contains("error[overlimit]"));
}

#[test]
fn files_that_are_not_utf8_are_reported_with_the_place() {
    let loader = MemoryLoader::default();
    let options = Options::default();
    let mut preprocessor = Preprocessor::new(&options, &loader, SystemFiles::default());
    preprocessor.run("a.p4", b"ok\nab\xff".to_vec());
    let diagnostic = &preprocessor.diagnostics.list()[0];
    assert!(render::short(diagnostic, &preprocessor.sources).starts_with("a.p4:2:3: error[lexical]"));
}

// ------------------------------------------------------------------------------- text that is not
// read

#[test]
fn text_behind_a_directive_is_warned_of() {
    let ignored = |text: &str, place: &str, name: &str| {
        let expected = format!("a.p4:{place}: warning[preprocessor]: the text behind `#{name}` on its line is ignored");
        assert_eq!(bad(text), [expected], "{text}");
    };
    ignored("#include <core.p4> header h {}", "1:20", "include");
    ignored("#include \"core.p4\" /* a */ x // y", "1:28", "include");
    ignored("#ifdef A B\n#endif", "1:10", "ifdef");
    ignored("#ifndef A B\n#endif", "1:11", "ifndef");
    ignored("#if 1\n#else if 0\n#endif", "2:7", "else");
    ignored("#if 0\n#else if 0\n#endif", "2:7", "else");
    ignored("#if 0\n#endif A", "2:8", "endif");
    ignored("#undef A B", "1:10", "undef");
    let marker = bad("# 1 \"b.p4\" 1 3 header h {}");
    assert_eq!(
        marker,
        ["a.p4:1:16: warning[preprocessor]: the text behind `#line` on its line is ignored"]
    );
    good("# 1 \"b.p4\" 2 3 4\n#include <core.p4> // a\n#ifdef A /* b */\n#else // c\n#endif /* d */");
    good("#if 0\n#ifdef A B\n#else C\n#endif D\n#endif");
}

#[test]
fn a_carriage_return_ends_a_line() {
    for end in ["\n", "\r\n", "\r"] {
        let text = [
            "// a",
            "#define A b",
            "A /* c",
            "*/ d",
            "#if 0",
            "e",
            "#endif",
            "f __LINE__",
            "#line",
            "",
        ]
        .join(end);
        let (tokens, diagnostics) = run(&text);
        assert_eq!(tokens, "b d f 8", "{end:?}");
        let expected = "a.p4:9:1: error[preprocessor]: `#line` needs a line number and perhaps a file name in quotes";
        assert_eq!(diagnostics, [expected], "{end:?}");
    }
    assert_eq!(good("#define A 1 + \\\r2\rA // x \\\ry\r3"), "1 + 2 3");
    assert_eq!(good("// a\r\r\n\rb __LINE__"), "b 4");
}

#[test]
fn every_line_is_shown_as_its_own() {
    let text = "a\r#line 7 \"b.p4\"\rc\r\nd";
    let parsed = crate::parse_source("a.p4", text, &Options::default(), SystemFiles(&[]));
    let lines: Vec<_> = parsed
        .sources
        .shown_lines()
        .map(|(p, text)| format!("{}:{} {text}", p.file, p.line))
        .collect();
    assert_eq!(lines, ["a.p4:1 a", "a.p4:2 #line 7 \"b.p4\"", "b.p4:7 c", "b.p4:8 d"]);
}

#[test]
fn only_regular_files_are_included() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let made = std::process::Command::new("mkfifo").arg(path("fifo.p4")).status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(path("socket.p4")).unwrap();
    std::fs::create_dir(path("folder.p4")).unwrap();
    std::os::unix::fs::symlink(path("fifo.p4"), path("link.p4")).unwrap();
    std::fs::write(path("file.p4"), "").unwrap();
    std::os::unix::fs::symlink(path("file.p4"), path("good.p4")).unwrap();
    for (name, kind) in [
        ("fifo.p4", "FIFO"),
        ("link.p4", "FIFO"),
        ("socket.p4", "socket"),
        ("folder.p4", "directory"),
        ("/dev/zero", "character device"),
    ] {
        std::fs::write(path("a.p4"), format!("#include \"{name}\"\n#include \"good.p4\"")).unwrap();
        let parsed = crate::parse_file(&path("a.p4"), &Options::default(), &DiskLoader, SystemFiles(&[]));
        let messages: Vec<_> = parsed.diagnostics.list().iter().map(|d| &*d.message).collect();
        assert_eq!(
            messages,
            [format!("cannot include `{name}`: it is a {kind}, not a regular file")]
        );
    }
    let large = std::fs::File::create(path("file.p4")).unwrap();
    large.set_len(MAX_FILE_BYTES as u64 + 1).unwrap();
    let parsed = crate::parse_file(&path("good.p4"), &Options::default(), &DiskLoader, SystemFiles(&[]));
    let message = &parsed.diagnostics.list()[0].message;
    assert!(message.ends_with("good.p4`: it has more than 64 MiB"), "{message}");
}

#[test]
fn a_file_that_is_not_regular_hides_none_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("core.p4")).unwrap();
    let options = Options {
        include_dirs: vec![folder.path().to_owned()],
        ..Options::default()
    };
    let system = SystemFiles(&[("core.p4", "")]);
    let parsed = crate::parse_bytes("a.p4", "#include <core.p4>".into(), &options, &DiskLoader, system);
    assert_eq!(parsed.diagnostics.list(), []);
}

#[test]
fn a_line_marker_names_a_file_and_reads_none() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "the secret\n").unwrap();
    let text = format!("# 1 \"{}\"\nheader h {{ bit<8> a }}", secret.display());
    let parsed = crate::parse_source("a.p4", &text, &Options::default(), SystemFiles(&[]));
    let diagnostic = &parsed.diagnostics.list()[0];
    for shown in [
        render::human(diagnostic, &parsed.sources, false),
        render::short(diagnostic, &parsed.sources),
        render::json(diagnostic, &parsed.sources),
    ] {
        assert!(shown.contains(&*secret.to_string_lossy()), "{shown}");
        assert!(!shown.contains("the secret"), "{shown}");
    }
}
