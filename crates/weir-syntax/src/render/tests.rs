use super::*;
use crate::preprocess::{Options, SystemFiles};
use crate::{Parsed, parse_source};

fn parse(text: &str) -> Parsed {
    parse_source("t.p4", text, &Options::default(), SystemFiles::default())
}

#[test]
fn human_form_shows_the_line_the_label_and_the_help() {
    let parsed = parse("control c() {\n  bit<8> x\n}\n");
    let text = human(&parsed.diagnostics.list()[0], &parsed.sources, false);
    assert!(
        text.contains("error[syntax]: expected `;` after the declaration, found `}`"),
        "{text}"
    );
    assert!(text.contains("--> t.p4:3:1"), "{text}");
    assert!(text.contains("bit<8> x"), "{text}");
    assert!(text.contains("`;` is missing here"), "{text}");
    let help = human(
        &parsed.diagnostics.list().last().unwrap().clone().help("do it"),
        &parsed.sources,
        false,
    );
    assert!(help.contains("help: do it"), "{help}");
}

#[test]
fn colours_are_optional() {
    let parsed = parse("x");
    let diagnostic = &parsed.diagnostics.list()[0];
    assert!(human(diagnostic, &parsed.sources, true).contains("\x1b["));
    assert!(!human(diagnostic, &parsed.sources, false).contains("\x1b["));
}

#[test]
fn json_form_is_one_line_with_all_fields() {
    let parsed = parse("struct s { bit<8> é\t}");
    let text = json(&parsed.diagnostics.list()[0], &parsed.sources);
    assert!(!text.contains('\n'));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["severity"], "error");
    assert_eq!(value["code"], "lexical");
    assert_eq!((value["line"].as_u64(), value["column"].as_u64()), (Some(1), Some(19)));
    assert_eq!(
        (value["end_line"].as_u64(), value["end_column"].as_u64()),
        (Some(1), Some(20))
    );
    assert_eq!(value["source"], "struct s { bit<8> é\t}");
    assert!(value["labels"].is_array());
}

#[test]
fn huge_lines_are_cut_around_the_place() {
    let text = format!("const bit x = {}é é;", "1 + ".repeat(10_000));
    let parsed = parse(&text);
    for diagnostic in parsed.diagnostics.list() {
        assert!(human(diagnostic, &parsed.sources, false).len() < 2000);
        let value: Value = serde_json::from_str(&json(diagnostic, &parsed.sources)).unwrap();
        let source = value["source"].as_str().unwrap();
        assert!(source.len() < 300 && source.starts_with('…'), "{source}");
    }
}

#[test]
fn a_program_cannot_write_control_characters_to_the_terminal() {
    let parsed = parse("const bit x = 1 \x1b[31m;\n#error \x1b[0m");
    for diagnostic in parsed.diagnostics.list() {
        assert!(!human(diagnostic, &parsed.sources, false).contains('\x1b'));
        assert!(!short(diagnostic, &parsed.sources).contains('\x1b'));
    }
}

#[test]
fn labels_in_other_files_and_spans_beyond_lines_are_shown() {
    let mut parsed = parse("struct s {\n  bit<8> a;\n}\n");
    let start = parsed.sources.files()[0].start;
    let whole = Span {
        lo: start,
        hi: start + 25,
    };
    let far = Span {
        lo: u32::MAX - 1,
        hi: u32::MAX,
    };
    let diagnostic = Diagnostic::error("duplicate", whole, "twice")
        .label(far, "nowhere")
        .label(whole, "here");
    assert!(human(&diagnostic, &parsed.sources, false).contains("struct s {"));
    parsed.sources = SourceMap::default();
    assert!(human(&diagnostic, &parsed.sources, false).contains("twice"));
    assert!(short(&diagnostic, &parsed.sources).contains("twice"));
    assert!(json(&diagnostic, &parsed.sources).contains("twice"));
}

#[test]
fn places_on_near_lines_are_shown_in_the_order_of_the_source() {
    let parsed = parse("struct s {\n  bit<8> a\n}\n");
    let text = human(&parsed.diagnostics.list()[0], &parsed.sources, false);
    let label = text.find("is missing here").unwrap();
    let line = text.find("3 | }").unwrap();
    assert!(label < line, "{text}");
}
