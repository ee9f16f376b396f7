//! Dissectors of `weir build --emit lua` show the values that the interpreter extracts.

use super::common::weir;
use super::frames::{Frame, hex, of_tests, root};
use super::tshark::{Tshark, whole};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A generated script, and what its tables say.
struct Script {
    folder: tempfile::TempDir,
    name: String,
    /// Abbreviation, kind, and the values of members of an enum by name.
    fields: Vec<(String, String, BTreeMap<String, String>)>,
    /// By name: bits of the fixed fields, and the numbers of all fields.
    headers: BTreeMap<String, (u64, Vec<usize>)>,
    /// The numbers of varbits.
    varbits: Vec<usize>,
}

/// What is between the first `start` and the next `end`.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split_once(end).map(|(found, _)| found)
}

impl Script {
    fn of(program: &Path, options: &[&str]) -> Self {
        let program = program.display().to_string();
        let (code, text, errors) = weir(&[&["build", &program, "--emit", "lua"], options].concat());
        assert_eq!((code, &*errors), (0, ""), "{program}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("test.lua"), &text).unwrap();
        let tables = text.split_once("\nregister({").expect("it registers a parser").1;
        let mut script = Script {
            folder,
            name: between(tables, "name = \"", "\"").unwrap().to_owned(),
            fields: Vec::new(),
            headers: BTreeMap::new(),
            varbits: Vec::new(),
        };
        let mut header = String::new();
        for line in tables.lines() {
            if let Some(abbreviation) = between(line, "{ abbr = \"", "\"") {
                let kind = between(line, "kind = \"", "\"").unwrap().to_owned();
                let members = between(line, "names = { ", " }").unwrap_or_default();
                let members = members.split(", ").filter_map(|member| {
                    let (value, name) = member.split_once(" = ")?;
                    Some((
                        name.trim_matches('"').to_owned(),
                        value.trim_matches(['[', ']']).to_owned(),
                    ))
                });
                script.fields.push((abbreviation.to_owned(), kind, members.collect()));
            } else if let Some(label) = between(line, "{ label = \"", " (") {
                header = label.to_owned();
                let width = between(line, ", width = ", ",").map_or(0, |width| width.parse().unwrap());
                script.headers.insert(header.clone(), (width, Vec::new()));
            } else if let Some(number) = between(line, "field = ", ",") {
                let number = number.parse().unwrap();
                script.headers.get_mut(&header).unwrap().1.push(number);
                if line.contains("varbit = true") {
                    script.varbits.push(number);
                }
            }
        }
        assert!(!script.fields.is_empty(), "{program}");
        script
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("test.lua")
    }

    /// tshark, in which the parser takes all frames.
    fn tshark(&self) -> Option<Tshark> {
        let tshark = Tshark::with(&[self.path()])?;
        Some(tshark.preferring(&format!("{}.frames:In place of Wireshark's dissectors", self.name)))
    }
}

/// A value as digits without leading zeros: decimal and signed where Wireshark and the trace have
/// it so, hexadecimal for the rest.
fn canonical(kind: &str, text: &str) -> String {
    let hexadecimal = |digits: &str| {
        let digits = digits.trim_start_matches('0').to_ascii_lowercase();
        if digits.is_empty() { "0".to_owned() } else { digits }
    };
    match (text, kind) {
        ("true" | "True", _) => "1".to_owned(),
        ("false" | "False", _) => "0".to_owned(),
        (_, "int" | "int64" | "bool") => text.to_owned(),
        _ => match text.strip_prefix("0x") {
            Some(digits) => hexadecimal(digits),
            None => hexadecimal(&match kind {
                "ether" => text.replace(':', ""),
                "ipv4" => format!("{:x}", u32::from(text.parse::<std::net::Ipv4Addr>().unwrap())),
                "ipv6" => format!("{:x}", u128::from(text.parse::<std::net::Ipv6Addr>().unwrap())),
                "bytes" => text.to_owned(),
                _ => format!("{:x}", text.parse::<u64>().unwrap_or_else(|_| panic!("{kind} {text}"))),
            }),
        },
    }
}

/// What a parser did: its states, and the values of the fields it extracted, by their numbers.
#[derive(Debug, Default, PartialEq)]
struct Parsed {
    states: Vec<String>,
    values: BTreeMap<usize, Vec<String>>,
    has_failed: bool,
}

impl Parsed {
    /// What the interpreter says.
    fn by_trace(script: &Script, program: &Path, options: &[&str], frame: &Frame) -> Self {
        let digits: String = frame.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (program, port) = (program.display().to_string(), frame.port.unwrap_or(0).to_string());
        let arguments = ["trace", &program, "--port", &port, "--packet", &digits, "--json"];
        let (code, text, errors) = weir(&[&arguments, options].concat());
        assert_eq!(code, 0, "{errors}");
        let trace: Value = serde_json::from_str(&text).unwrap();
        let mut parsed = Parsed::default();
        let parser = first_parser(&trace["trace"]).expect("a parser");
        parsed.add(script, &parser["children"]);
        parsed
    }

    fn add(&mut self, script: &Script, nodes: &Value) {
        for node in nodes.as_array().into_iter().flatten() {
            match node["kind"].as_str().unwrap() {
                "state" => self.states.push(node["name"].as_str().unwrap().to_owned()),
                "parser-error" => self.has_failed = true,
                "parser-end" => {
                    self.has_failed |= node["error"].as_str() != Some("NoError") || node["accepted"] == false
                }
                "extract" => self.add_header(script, node),
                _ => {}
            }
            self.add(script, &node["children"]);
        }
    }

    fn add_header(&mut self, script: &Script, node: &Value) {
        let name = node["header"].as_str().unwrap();
        // Headers that are before the frame have no fields in the script.
        let (fixed, numbers) = &script.headers[name];
        let has_varbit = node["bits"].as_u64().unwrap() > *fixed;
        for (number, value) in numbers.iter().zip(node["fields"].as_array().unwrap()) {
            let (_, kind, members) = &script.fields[number - 1];
            let text = value["value"].as_str().unwrap();
            let text = members.get(text).map_or(text, String::as_str);
            if has_varbit || !script.varbits.contains(number) {
                self.values.entry(*number).or_default().push(canonical(kind, text));
            }
        }
    }

    /// What Wireshark shows.
    fn by_wireshark(script: &Script, row: &[String]) -> Self {
        let mut parsed = Parsed::default();
        for (index, text) in row[2..].iter().enumerate().filter(|(_, text)| !text.is_empty()) {
            let kind = &script.fields[index].1;
            let values = text.split(',').map(|value| canonical(kind, value));
            parsed.values.insert(index + 1, values.collect());
        }
        parsed.states = row[0].split(' ').filter(|s| !s.is_empty()).map(str::to_owned).collect();
        parsed.has_failed = !row[1].is_empty();
        parsed
    }
}

fn first_parser(nodes: &Value) -> Option<&Value> {
    nodes.as_array()?.iter().find_map(|node| {
        let is_parser = node["kind"] == "block" && node["role"].as_str().is_some_and(|role| role.ends_with("parser"));
        if is_parser {
            Some(node)
        } else {
            first_parser(&node["children"])
        }
    })
}

/// Compares both for each frame; how many headers and failures there were.
fn compare(program: &Path, frames: &[Frame], preferences: &[&str], options: &[&str]) -> Option<(usize, usize)> {
    let script = Script::of(program, &[]);
    let (mut headers, mut failures) = (0, 0);
    let mut ports: Vec<Option<u32>> = frames.iter().map(|frame| frame.port).collect();
    ports.sort_unstable();
    ports.dedup();
    let failed = format!("{}.failed", script.name);
    let states = format!("{}.states", script.name);
    let mut names = vec![states.as_str(), failed.as_str()];
    names.extend(script.fields.iter().map(|(name, ..)| name.as_str()));
    for port in ports {
        let mut tshark = script.tshark()?;
        for preference in preferences {
            tshark = tshark.preferring(&format!("{}.{preference}", script.name));
        }
        if let Some(port) = port.filter(|_| has_port(&script)) {
            tshark = tshark.preferring(&format!("{}.ingress_port:{port}", script.name));
        }
        let frames: Vec<&Frame> = frames.iter().filter(|frame| frame.port == port).collect();
        let bytes: Vec<Vec<u8>> = frames.iter().map(|frame| frame.bytes.clone()).collect();
        for (frame, row) in frames.iter().zip(tshark.fields(&bytes, &names)) {
            let traced = Parsed::by_trace(&script, program, options, frame);
            let shown = Parsed::by_wireshark(&script, &row);
            assert_eq!(shown, traced, "{}: {:02x?}", program.display(), frame.bytes);
            headers += shown.values.len();
            failures += usize::from(shown.has_failed);
        }
    }
    let bytes: Vec<Vec<u8>> = frames.iter().map(|frame| frame.bytes.clone()).collect();
    let tshark = script.tshark()?;
    tshark.raises_nothing(&whole(&bytes));
    tshark.survives_truncation(&bytes[..1], &script.name);
    Some((headers, failures))
}

/// Whether the script has a preference for the ingress port.
fn has_port(script: &Script) -> bool {
    let text = std::fs::read_to_string(script.path()).unwrap();
    text.contains("pref = \"ingress_port\"")
}

/// Compares both for some frames of a program's packet tests.
fn compare_bundled(name: &str, preferences: &[&str]) {
    let folder = root().join("p4/programs").join(name);
    let program = folder.join(format!("{name}.p4"));
    let mut frames = of_tests(&folder);
    // Traces take a process each.
    frames.retain(|frame| frame.port.is_some());
    let step = frames.len().div_ceil(12);
    let frames: Vec<Frame> = frames.into_iter().step_by(step).collect();
    let entries = folder.join(format!("{name}.entries")).display().to_string();
    if let Some((fields, _)) = compare(&program, &frames, preferences, &["--entries", &entries]) {
        assert!(fields >= frames.len(), "{name}: {fields}");
    }
}

#[test]
fn the_routers_parsers_are_dissectors() {
    compare_bundled("ipv4_router", &[]);
    compare_bundled("ipv4_router_psa", &[]);
    compare_bundled("rina_router", &[]);
}

#[test]
fn parsers_of_int_with_value_sets_are_dissectors() {
    // The domain of int_md.entries, 0x5745.
    compare_bundled(
        "int_md",
        &["intparser_outside_ports:1 4", "intparser_int_domains:22341"],
    );
    compare_bundled("int_lab", &["labparser_outside_ports:1,4"]);
}

#[test]
fn parsers_of_tofino_skip_what_is_before_the_frame() {
    compare_bundled("l2_switch_tna", &[]);
    compare_bundled("acl_firewall_tna", &[]);
    compare_bundled("int_lab_tna", &["labingressparser_outside_ports:1,4"]);
}

#[test]
fn further_bundled_programs_are_dissectors() {
    for name in ["acl_firewall", "acl_firewall_ternary", "l2_switch", "ipsec_gateway"] {
        compare_bundled(name, &[]);
    }
}

fn small(name: &str) -> PathBuf {
    root().join("crates/weir/tests/wireshark").join(format!("{name}.p4"))
}

/// Compares both for frames of a program of this folder.
fn compare_small(name: &str, frames: &[(u32, &str)], preferences: &[&str], options: &[&str]) {
    let frames = frames.iter().map(|(port, bytes)| Frame {
        port: Some(*port),
        bytes: hex(bytes),
    });
    let frames: Vec<Frame> = frames.collect();
    if let Some((headers, failures)) = compare(&small(name), &frames, preferences, options) {
        assert!(
            headers > 0 && failures > 0,
            "{name}: {headers} fields, {failures} failures"
        );
    }
}

#[test]
fn stacks_and_unions_have_a_value_for_each_element() {
    let frames = [
        (1, "00010140 0141 00"),
        (1, "00010040 00020142 00"),
        (1, "00010040 00020040 00030140 0107 02000009 ff"),
        // Too many labels, too many options, too short.
        (1, "00010040 00020040 00030040 00040140"),
        (1, "00010140 0107 0108 0109"),
        (1, "000101"),
    ];
    compare_small("stacks", &frames, &[], &[]);
}

#[test]
fn fields_of_any_width_have_their_values() {
    let fixed = "19ff8 0123456789abcdef012345678 0a000001 020304050607 ffffffffff 8000000000";
    let wide = format!("{} 20010db8000000000000000000000001 fedcba9876543210", "5a".repeat(40));
    let first = |nibble: &str| format!("{nibble}{}", &fixed[1..]);
    let frames = [
        format!("{} 34", first("1")),
        format!("{} a1122334455667 b {wide}", first("e")),
        format!("{} a11223344 5 {wide}", first("9")),
        format!("{} a11223344 5 {}", first("8"), &wide[..20]),
        format!("{} 3a {wide}", first("0")),
    ];
    let frames = frames.map(|frame| {
        let digits: String = frame.chars().filter(|c| !c.is_whitespace()).collect();
        if digits.len() % 2 == 1 { digits + "0" } else { digits }
    });
    let frames: Vec<(u32, &str)> = frames.iter().map(|frame| (1, frame.as_str())).collect();
    compare_small("widths", &frames, &[], &[]);
}

#[test]
fn decisions_are_those_of_the_parser() {
    let frames = [
        (1, "1234 0000 abcd"),
        (1, "2345 0002 0000 abcd"),
        (2, "2345 0002 0000 abcd"),
        (1, "2345 0009 0000 abcd"),
        (1, "3001 0000 abcd"),
        (1, "3002 0000 abcd"),
        (1, "4000 0000 0f0005 00"),
        (1, "4000 0000 0f000a 00"),
        (1, "4000 0000 0f"),
        (1, "5000 0000 abcd"),
        (1, "5000 0002 abcd"),
        (1, "1234 ffff abcd"),
    ];
    let entries = tempfile::tempdir().unwrap();
    let path = entries.path().join("decisions.entries");
    std::fs::write(&path, "value_set known 0x3001\n").unwrap();
    let options = ["--entries", path.to_str().unwrap()];
    compare_small("decisions", &frames, &["parse_known:0x3001"], &options);
}

#[test]
fn members_of_value_sets_may_have_masks_and_ranges_and_wrong_ones_are_shown() {
    let script = Script::of(&small("decisions"), &[]);
    let frames = ["3001 0000 abcd", "3002 0000 abcd", "3010 0000 abcd"].map(hex);
    for (members, expected) in [
        ("12289..12290", 2),
        ("0x3000&&&0xfff0", 2),
        ("0x3001, 0x3010", 2),
        ("7", 0),
        ("", 0),
    ] {
        let Some(tshark) = script.tshark() else { return };
        let tshark = tshark.preferring(&format!("{}.parse_known:{members}", script.name));
        assert_eq!(
            tshark.count(&frames, &format!("{}.value.value", script.name)),
            expected,
            "{members}"
        );
    }
    for wrong in ["no", "0x10000", "1:2", "1.."] {
        let Some(tshark) = script.tshark() else { return };
        let tshark = tshark.preferring(&format!("{}.parse_known:{wrong}", script.name));
        assert_eq!(
            tshark.count(&frames, &format!("{}.preference", script.name)),
            3,
            "{wrong}"
        );
    }
}

#[test]
fn a_dissector_takes_the_frames_that_a_preference_says() {
    let script = Script::of(&root().join("p4/programs/ipv4_router/ipv4_router.p4"), &[]);
    let Some(tshark) = Tshark::with(&[script.path()]) else {
        return;
    };
    let frames = [super::frames::datagram(53, b"")];
    let (own, theirs) = ("p4_ipv4_router.ipv4.ttl", "ip.ttl");
    assert_eq!(tshark.count(&frames, own), 0);
    let tshark = tshark.preferring("p4_ipv4_router.frames:Beside Wireshark's dissectors");
    assert_eq!(tshark.values(&frames[0], &[own, theirs]), ["64", "64"]);
    let tshark = tshark.preferring("p4_ipv4_router.frames:In place of Wireshark's dissectors");
    assert_eq!(tshark.values(&frames[0], &[own, theirs]), ["64", ""]);
    // From another state, for payloads that Decode As hands over.
    let tshark = tshark.preferring("p4_ipv4_router.start:parse_ipv4");
    assert_eq!(tshark.values(&frames[0][14..], &[own, theirs]), ["64", ""]);
}

#[test]
fn a_parser_that_depends_on_an_extern_is_refused() {
    let text = std::fs::read_to_string(small("decisions")).unwrap();
    let text = text
        .replace("transition parse_value;\n    }\n\n    state look", "random(meta.sum, 0, 9);\n        transition select(meta.sum) {\n            1: look;\n            default: accept;\n        }\n    }\n\n    state look");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("random.p4");
    std::fs::write(&path, text).unwrap();
    let (code, out, errors) = weir(&["build", path.to_str().unwrap(), "--emit", "lua"]);
    assert_eq!((code, &*out), (1, ""));
    let message = "random.p4:66:9: the parser depends on the extern call `random`, which";
    assert!(errors.contains(message), "{errors}");
}
