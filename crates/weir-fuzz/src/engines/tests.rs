//! That what is made up has what it is made up for.

use super::run::Built;
use super::traffic::{Amount, Traffic};
use crate::generate::{program, waiting_program};
use crate::rng::Rng;
use weir_table::TableSpec;

/// Numbers of programs that are looked through.
const NUMBERS: std::ops::Range<u64> = 1..400;
const AMOUNT: Amount = Amount { rounds: 3, packets: 90 };

fn built(source: &str) -> Built {
    Built::new(source).unwrap_or_else(|trouble| panic!("{trouble:?}\n{source}"))
}

fn test_of(built: &Built, number: u64) -> String {
    Traffic::new(&mut Rng::new(number), built.switch()).test("", &[], AMOUNT)
}

fn specs(built: &Built) -> Vec<TableSpec> {
    let switch = built.switch();
    let states = switch.program().tables.ids().map(|id| switch.table_state(id));
    states.map(|state| state.unwrap().table.spec().clone()).collect()
}

/// The deparser's code.
fn deparser(source: &str) -> &str {
    let code = source.split_once("control D(").unwrap().1;
    code.rsplit_once("    apply {").unwrap().1
}

/// The header whose checksum is the only one that is verified.
fn verified_header(source: &str) -> Option<&str> {
    if source.matches("verify_checksum").count() != 1 {
        return None;
    }
    let line = source
        .lines()
        .find(|l| l.contains("verify_checksum(") && l.contains(".sum, HashAlgorithm.csum16"))?;
    Some(line.split_once(".sum, HashAlgorithm")?.0.rsplit_once(' ')?.1)
}

/// How many packets with a header go out, if ingress lets out those alone whose checksum is right,
/// or those alone whose checksum is wrong.
fn passing(source: &str, header: &str, error: u32, number: u64) -> u64 {
    let (front, rest) = source.split_once("control I(").unwrap();
    let (state, code) = rest.split_once("    apply {\n").unwrap();
    let gate = format!(
        "if ({header}.isValid() && sm.checksum_error == {error}) {{ sm.egress_spec = 1; }} else {{ mark_to_drop(sm); }} exit;"
    );
    let built = built(&format!("{front}control I({state}    apply {{\n{gate}\n{code}"));
    let test = test_of(&built, number);
    let tally = built.run(&test).unwrap();
    tally.unwrap_or_else(|finding| panic!("{finding}")).outputs
}

#[test]
fn checksums_come_from_what_has_changed() {
    let is_short = |number| {
        let built = built(&program(number));
        built
            .machine_code()
            .is_some_and(|text| text.contains("a checksum by what may have changed"))
    };
    assert!(NUMBERS.clone().any(is_short));
}

#[test]
fn most_packets_have_the_checksum_that_is_verified() {
    let (mut right, mut wrong) = (0, 0);
    for number in NUMBERS {
        let source = program(number);
        let Some(header) = verified_header(&source) else {
            continue;
        };
        right += passing(&source, header, 0, number);
        wrong += passing(&source, header, 1, number);
    }
    assert!(2 * right > 3 * wrong && wrong > 0, "{right} right, {wrong} wrong");
}

#[test]
fn fields_are_copied_where_headers_are_rewritten_in_place() {
    let is_one = |number| {
        let source = program(number);
        let Some((_, control)) = source.split_once("control I(") else {
            return false;
        };
        let is_field = |path: &str| path.starts_with("hdr.") && !path.contains([' ', '[', '(']);
        let mut assigned = control
            .lines()
            .filter_map(|l| l.trim().strip_suffix(';')?.split_once(" = "));
        assigned.any(|(to, from)| is_field(to) && is_field(from) && to != from)
            && built(&source)
                .machine_code()
                .is_some_and(|text| text.starts_with("headers in place") && text.contains("keys in row"))
    };
    assert!(NUMBERS.clone().filter(|number| is_one(*number)).count() > 20);
}

#[test]
fn deparsers_have_tables_between_emits_and_after_them() {
    let between = |code: &str| {
        let parts: Vec<&str> = code.split(".apply()").collect();
        parts.len() > 1 && parts[0].contains("b.emit(") && parts[parts.len() - 1].contains("b.emit(")
    };
    let after = |code: &str| {
        let last = code.rsplit_once("b.emit(").map_or("", |c| c.1);
        last.contains(".apply()")
    };
    let has = |what: &dyn Fn(&str) -> bool| {
        NUMBERS.clone().any(|number| {
            let source = program(number);
            what(deparser(&source)) && built(&source).unsupported().is_none()
        })
    };
    assert!(has(&between) && has(&after));
}

#[test]
fn action_data_is_of_no_bits_and_fills_words() {
    let has = |what: &dyn Fn(&[u32]) -> bool| {
        NUMBERS.clone().any(|number| {
            let actions = specs(&built(&program(number))).into_iter().flat_map(|s| s.actions);
            let widths = actions.map(|a| a.parameters.iter().map(|p| p.1).collect::<Vec<u32>>());
            widths.into_iter().any(|widths| what(&widths))
        })
    };
    assert!(has(&|w| w.contains(&0) && w.iter().any(|w| *w > 0)));
    assert!(has(&|w| w.len() > 1 && w.iter().sum::<u32>() == 64));
    // One lies in two words.
    assert!(has(&|w| w.len() > 1 && w[0] < 64 && w[0] % 64 + w[1] > 64));
}

#[test]
fn keys_of_few_bits_have_entries_that_come_and_go() {
    let changes = |number| {
        let built = built(&program(number));
        let few = specs(&built).into_iter().filter(|s| {
            let exact = s.match_keys().all(|k| k.kind == weir_ir::MatchKind::Exact);
            let width: u32 = s.match_keys().map(|k| k.width).sum();
            exact && s.match_keys().count() > 1 && width <= 12
        });
        let test = test_of(&built, number);
        let after = test.split_once("packet ").map_or("", |t| t.1);
        few.into_iter().any(|spec| {
            let has = |what: &str| after.contains(&format!("{what} \"{}\"", spec.name));
            has("add") && has("modify") && has("delete")
        })
    };
    assert!(NUMBERS.clone().any(changes));
}

#[test]
fn lookups_of_prefixes_are_begun_before_others_and_twice_in_a_table() {
    let codes: Vec<String> = NUMBERS
        .filter_map(|number| built(&program(number)).machine_code())
        .collect();
    let begun: Vec<&str> = codes
        .iter()
        .flat_map(|code| code.lines().filter(|line| line.contains("one is started early")))
        .collect();
    let twice = |line: &&&str| {
        let Some((_, names)) = line.split_once("at a time: ") else {
            return false;
        };
        let names: Vec<&str> = names.trim_end_matches("; one is started early").split(", ").collect();
        (1..names.len()).any(|i| names[..i].contains(&names[i]))
    };
    let twice = begun.iter().filter(twice).count();
    assert!(begun.len() > 10 && twice > 2, "{} begun, {twice} twice", begun.len());
}

#[test]
fn whole_vectors_are_of_packets_that_differ_in_few_bytes() {
    let is_flow = |lines: &[&str]| {
        let first: Vec<char> = lines[1].chars().collect();
        let alike = |line: &&str| {
            let differing = first.iter().zip(line.chars()).filter(|(a, b)| **a != *b);
            line.len() == first.len() && differing.count() <= 16
        };
        // Short packets are alike anyway.
        lines[0] == "wait" && lines[1].len() > 40 && lines[1..].iter().all(|l| l.starts_with("packet ") && alike(l))
    };
    let flows = NUMBERS.filter(|number| {
        let test = test_of(&built(&program(*number)), *number);
        let lines: Vec<&str> = test.lines().collect();
        lines.windows(1 + weir_switch::VECTOR).any(is_flow)
    });
    assert!(flows.count() > 100);
}

#[test]
fn programs_whose_packets_wait_load_and_are_compiled() {
    let (mut held, mut in_order) = (0, 0);
    for number in 1..80 {
        let source = waiting_program(number);
        let built = built(&source);
        held += u32::from(built.is_held());
        in_order += u32::from(built.is_held() && source.contains(super::IN_ORDER));
    }
    assert!(held > 30 && in_order > 10, "{held} wait, {in_order} of them in order");
}
