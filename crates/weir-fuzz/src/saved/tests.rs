//! Edits of saved programs, and the errors that they give.

use super::*;
use std::sync::Arc;
use weir_switch::Switch;

fn saved(source: &str) -> String {
    weir_ir::print::print(&engines::compiled(source).expect("it compiles"))
}

const ROUTER: &str = include_str!("../../../../p4/programs/ipv4_router/ipv4_router.p4");
const L2_TNA: &str = include_str!("../../../../p4/programs/l2_switch_tna/l2_switch_tna.p4");

fn nonconformities(program: &Program) -> Vec<weir_arch::LoadError> {
    weir_arch::nonconformities(program)
}

/// Why a text is not run.
fn refusal(text: &str) -> String {
    match weir_ir::parse::parse(text) {
        Err(error) => error.to_string(),
        Ok(program) if !nonconformities(&program).is_empty() => nonconformities(&program)[0].to_string(),
        Ok(program) => match Switch::new(Arc::new(program)) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it is run"),
        },
    }
}

/// What is said of a program with something else in place of the first `from`.
fn says(text: &str, from: &str, to: &str, message: &str) {
    assert!(text.contains(from), "the program has no {from}");
    let said = refusal(&text.replacen(from, to, 1));
    assert!(said.contains(message), "{said}");
}

#[test]
fn every_seed_is_run() {
    for seed in seeds() {
        let Case { source, .. } = Case::from_bytes(&seed);
        let program = weir_ir::parse::parse(&source).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(nonconformities(&program), []);
        Switch::new(Arc::new(program)).unwrap_or_else(|e| panic!("{e}\n{source}"));
    }
}

#[test]
fn blocks_are_those_of_the_architecture() {
    let text = saved(ROUTER);
    says(
        &text,
        "block \"egress\"",
        "block \"eggress\"",
        "no package has the blocks",
    );
    says(&text, "block \"egress\"", "block \"ingress\"", "no block `egress`");
    let second = format!("{text}block \"egress\" control \"Second\" {{\n  b0:\n    return\n}}\n");
    let said = refusal(&second);
    assert!(said.contains("two blocks `egress`"), "{said}");
    says(
        &text,
        "target \"v1model\"",
        "target \"psa\"",
        "no package has the blocks",
    );
    let start = text.find("block \"egress\"").expect("a block");
    let end = start + text[start..].find("\n}\n").expect("its end") + 3;
    let without = format!("{}{}", &text[..start], &text[end..]);
    let said = refusal(&without);
    assert!(said.contains("no block `egress`"), "{said}");
}

#[test]
fn shared_variables_belong_to_the_parameters_of_blocks() {
    let text = saved(ROUTER);
    says(&text, "shared \"metadata\"", "shared \"meta\"", "`meta`");
    // The deparser has no metadata.
    let deparser = "block \"deparser\" control \"MyDeparser\"";
    let name = if text.contains(deparser) {
        deparser
    } else {
        "block \"deparser\""
    };
    let at = text.find(name).expect("a deparser");
    let first = at + text[at..].find("b0:\n").expect("its code") + 4;
    let egress_spec = text
        .lines()
        .find(|l| l.starts_with("var ") && l.contains("standard_metadata.egress_spec"))
        .and_then(|l| l.split_whitespace().nth(1))
        .expect("a variable");
    let edited = format!("{}    {egress_spec} = 9w0x1\n{}", &text[..first], &text[first..]);
    let said = refusal(&edited);
    assert!(said.contains("has no parameter that"), "{said}");
}

#[test]
fn calls_are_those_that_the_architecture_declares() {
    let text = saved(ROUTER);
    says(
        &text,
        "\"checksum\" = inout",
        "\"checksum\" = out",
        "no call of `update_checksum`",
    );
    says(&text, "\"algo\" = in", "\"algorithm\" = in", "this is no call of");
    let tna = saved(L2_TNA);
    says(&tna, "\"pack\"", "\"send\"", "send");
}

#[test]
fn what_follows_an_error_ends() {
    let text = saved(ROUTER);
    let on_error = text.find("on_error b").expect("a parser");
    let line = text[on_error..].lines().next().expect("a line").to_owned();
    says(&text, &line, "on_error b0", "follows an error");
}

#[test]
fn headers_are_shared_with_their_validity_and_places_have_lines() {
    let text = saved(ROUTER);
    let leaf = text
        .lines()
        .find(|l| l.starts_with("  %") && l.ends_with("ipv4.$valid$\""));
    says(&text, &format!("{}\n", leaf.expect("a validity")), "", "its validity");
    let place = text.find(" @").expect("a place") + 2;
    let line = text[place..].split(':').next().expect("a line").to_owned();
    says(&text, &format!(" @{line}:"), " @0:", "a line, counted from 1");
}
