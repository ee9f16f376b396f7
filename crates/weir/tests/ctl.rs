//! `weir ctl` against a switch that runs.

#![cfg(target_os = "linux")]

mod common;

use common::{Running, weir};

const ROUTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/programs/ipv4_router/ipv4_router");

struct Switch(Running);

impl Switch {
    fn start() -> Self {
        Self::at("127.0.0.1:0")
    }

    fn at(address: &str) -> Self {
        let program = format!("{ROUTER}.p4");
        let ports = ["-i", "1@null", "-i", "2@null", "--cpu-port", "510"];
        let arguments = [&[program.as_str()], &ports[..], &["--p4runtime", address]].concat();
        Switch(Running::start(&arguments, "P4Runtime"))
    }

    /// Exit code, stdout, stderr.
    fn ctl(&self, arguments: &[&str]) -> (i32, String, String) {
        weir(&[&["ctl", "--p4runtime", &self.0.address], arguments].concat())
    }

    fn done(&self, arguments: &[&str]) -> String {
        let (code, out, error) = self.ctl(arguments);
        assert_eq!(code, 0, "{arguments:?}: {error}");
        out
    }
}

#[test]
fn entries_are_written_shown_and_deleted() {
    let switch = Switch::start();
    switch.done(&["load", &format!("{ROUTER}.entries")]);
    assert!(switch.done(&["count", "ipv4_lpm"]).trim().starts_with("6 "));
    let entry = ["ipv4_lpm", "10.0.3.0/24", "route", "next_hop=10.0.0.9", "port=1"];
    switch.done(&[&["insert"], &entry[..]].concat());
    assert_eq!(
        switch.done(&["show", "ipv4_lpm", "10.0.3.0/24"]),
        "RouterIngress.ipv4_lpm [hdr.ipv4.dst_addr=10.0.3.0/24] -> RouterIngress.route(next_hop=10.0.0.9, port=1) \
         $COUNTER_SPEC_BYTES=0 $COUNTER_SPEC_PKTS=0\n"
    );
    let (code, _, error) = switch.ctl(&[&["insert"], &entry[..]].concat());
    assert_eq!(code, 1);
    assert!(
        error.contains("[hdr.ipv4.dst_addr=10.0.3.0/24]: ALREADY_EXISTS"),
        "{error}"
    );
    switch.done(&["set", "ipv4_lpm", "10.0.3.0/24", "to_cpu"]);
    switch.done(&["delete", "ipv4_lpm", "10.0.3.0/24"]);
    let (code, _, error) = switch.ctl(&["show", "ipv4_lpm", "10.0.3.0/24"]);
    assert_eq!((code, error.contains("there is no entry")), (1, true), "{error}");
    let dumped = switch.done(&["dump"]);
    switch.done(&["clear", "own_macs", "ipv4_lpm", "neighbours", "port_macs"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.jsonl");
    std::fs::write(&file, &dumped).unwrap();
    switch.done(&["load", &file.display().to_string()]);
    // Handles are reused, and entries are read in the order of their handles.
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&switch.done(&["dump"])), sorted(&dumped));
}

#[test]
fn mistakes_are_told_before_anything_is_sent() {
    let switch = Switch::start();
    for (arguments, expected) in [
        (
            &["insert", "ipv4_lpm", "10.0.3.0/24", "rote", "0", "1"][..],
            "did you mean RouterIngress.route?",
        ),
        (
            &["insert", "ipv4_lmp", "10.0.3.0/24", "drop"],
            "did you mean RouterIngress.ipv4_lpm",
        ),
        (
            &["insert", "ipv4_lpm", "10.0.3.0/33", "drop"],
            "longer than the 32 bits",
        ),
        (
            &["insert", "ipv4_lpm", "10.0.3.0/24", "route", "next_hop=0", "port=512"],
            "the field has 9",
        ),
        (&["insert", "ipv4_lpm", "10.0.3.0/24", "route", "next_hop=0"], "port"),
        (&["insert", "own_macs", "1", "NoAction"], "an exact key needs a value"),
        (&["load", "/nonexistent"], "/nonexistent"),
        (&["packet-out", "0g"], "no packet in hex"),
    ] {
        let (code, _, error) = switch.ctl(arguments);
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn constant_default_actions_are_shown_and_not_sent() {
    let switch = Switch::start();
    let tables = switch.done(&["tables", "ipv4_lpm"]);
    assert!(
        tables.contains("    default RouterIngress.drop  (constant)\n"),
        "{tables}"
    );
    let (code, _, error) = switch.ctl(&["default", "ipv4_lpm", "drop"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("the default action of RouterIngress.ipv4_lpm, `RouterIngress.drop` is constant"),
        "{error}"
    );
}

#[test]
fn a_switch_of_any_number_is_driven_without_one() {
    let program = format!("{ROUTER}.p4");
    let ports = ["-i", "1@null", "--p4runtime", "127.0.0.1:0", "--device-id", "7"];
    let switch = Switch(Running::start(&[&[program.as_str()], &ports[..]].concat(), "P4Runtime"));
    switch.done(&["insert", "ipv4_lpm", "10.0.3.0/24", "to_cpu"]);
    switch.done(&["--device-id", "7", "delete", "ipv4_lpm", "10.0.3.0/24"]);
    assert_ne!(switch.ctl(&["--device-id", "8", "count"]).0, 0);
}

#[test]
fn all_tables_are_shown_and_cleared_at_once() {
    let switch = Switch::start();
    switch.done(&["load", &format!("{ROUTER}.entries")]);
    let shown = switch.done(&["show"]);
    for table in ["own_macs", "ipv4_lpm", "neighbours", "port_macs"] {
        assert!(shown.contains(&format!("{table} [")), "{table}: {shown}");
    }
    let (code, _, error) = switch.ctl(&["clear"]);
    assert_eq!((code, error.contains("--all")), (2, true), "{error}");
    switch.done(&["clear", "--all"]);
    let counts = switch.done(&["count"]);
    assert!(counts.lines().all(|line| line.trim().starts_with("0 ")), "{counts}");
}

#[test]
fn a_program_without_a_name_is_told_by_its_architecture() {
    let switch = Switch::start();
    let told = switch.done(&["program"]);
    assert!(
        told.starts_with("a program for v1model without @pkginfo(name=…): "),
        "{told}"
    );
}

#[test]
fn numbers_are_json_numbers_and_addresses_are_not() {
    let switch = Switch::start();
    switch.done(&[
        "insert",
        "ipv4_lpm",
        "10.0.3.0/24",
        "route",
        "next_hop=10.0.0.9",
        "port=1",
    ]);
    switch.done(&[
        "modify",
        "ipv4_lpm",
        "10.0.3.0/24",
        "route",
        "10.0.0.9",
        "1",
        "$COUNTER_SPEC_BYTES=100000",
    ]);
    let line = switch.done(&["--json", "show", "ipv4_lpm", "10.0.3.0/24"]);
    let entry: serde_json::Value = serde_json::from_str(&line).expect("is JSON");
    assert_eq!(entry["key"]["hdr.ipv4.dst_addr"], "10.0.3.0/24");
    assert_eq!(entry["data"]["next_hop"], "10.0.0.9");
    assert_eq!(entry["data"]["port"], 1);
    assert_eq!(entry["data"]["$COUNTER_SPEC_BYTES"], 100_000);
}

#[test]
fn a_controller_with_a_larger_election_id_is_not_disturbed() {
    let switch = Switch::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let options = weir_client::Options::p4runtime(&switch.0.address).unwrap().election(7);
    let controller = runtime.block_on(weir_client::Client::connect(options)).unwrap();
    let (code, _, error) = switch.ctl(&["clear", "ipv4_lpm"]);
    assert_eq!(code, 2);
    assert!(error.contains("its election id is 7"), "{error}");
    switch.done(&["--election-id", "8", "clear", "ipv4_lpm"]);
    drop(controller);
}

#[test]
fn shells_are_told_what_could_come_next() {
    let switch = Switch::start();
    let next = |words: &[&str]| switch.done(&[&["complete", "--", "--p4runtime", &switch.0.address], words].concat());
    assert_eq!(next(&["inse"]), "insert\n");
    assert_eq!(next(&["insert", "ipv4"]), "ipv4_lpm\n");
    assert_eq!(next(&["insert", "ipv4_lpm", "hdr"]), "hdr.ipv4.dst_addr=\n");
    assert_eq!(next(&["insert", "ipv4_lpm", "10.0.0.0/8", "rou"]), "route\n");
    assert!(next(&["insert", "ipv4_lpm", "10.0.0.0/8", "route", "next_hop=1", ""]).starts_with("port=\n"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(switch.done(&["completion", shell]).contains("weir ctl complete"));
    }
}

#[test]
fn a_socket_in_the_file_system_does_as_well() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.sock");
    let address = format!("unix:{}", path.display());
    // A switch that was killed leaves its socket behind, and the next one takes it over.
    for _ in 0..2 {
        let switch = Switch::at(&address);
        assert_eq!(switch.0.address, address);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        switch.done(&["insert", "ipv4_lpm", "10.0.3.0/24", "to_cpu"]);
        assert!(switch.done(&["count", "ipv4_lpm"]).trim().starts_with("1 "));
    }
}

#[test]
fn a_bf_runtime_target_is_driven_by_the_same_commands() {
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../p4/programs/acl_firewall_tna/acl_firewall_tna"
    );
    let source = format!("{program}.p4");
    let run = [source.as_str(), "-i", "0@null", "-i", "1@null", "--bfrt", "127.0.0.1:0"];
    let switch = Running::start(&run, "BF Runtime");
    let ctl = |arguments: &[&str]| {
        let (code, out, error) = weir(&[&["ctl", "--bfrt", &switch.address], arguments].concat());
        assert_eq!(code, 0, "{arguments:?}: {error}");
        out
    };
    ctl(&["load", &format!("{program}.entries")]);
    assert!(ctl(&["count", "address_pairs"]).trim().starts_with("3 "));
    let shown = ctl(&["show", "address_pairs", "10.0.0.5", "192.0.2.66"]);
    assert!(shown.contains("-> FirewallIngress.deny()"), "{shown}");
    ctl(&["set", "address_pairs", "10.0.0.5", "192.0.2.66", "allow"]);
    ctl(&["operation", "address_pairs", "SyncCounters"]);
    ctl(&["clear", "address_pairs"]);
    assert!(ctl(&["count", "address_pairs"]).trim().starts_with("0 "));
    ctl(&[
        "insert",
        "$PORT",
        "$DEV_PORT=0",
        "$SPEED=BF_SPEED_10G",
        "$FEC=BF_FEC_TYP_NONE",
        "$PORT_ENABLE=true",
    ]);
    assert!(ctl(&["ports"]).contains("BF_SPEED_10G"));
}

#[test]
fn a_bench_of_controllers_leaves_its_table_empty_and_those_with_entries_alone() {
    let switch = Switch::start();
    let bench = |arguments: &[&str]| {
        let all = [
            &["bench", "control", "--p4runtime", &switch.0.address, "--runs", "1"],
            arguments,
        ]
        .concat();
        weir(&all)
    };
    // A prefix, with parameters and counters.
    let (code, out, error) = bench(&["ipv4_lpm", "--action", "route", "--entries", "1,3k", "--json"]);
    assert_eq!(code, 0, "{error}");
    let rows: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("is JSON"))
        .collect();
    let of = |entries: u64| rows.iter().filter(|r| r["entries"] == entries).count();
    assert_eq!((of(1), of(3000), rows.len()), (5, 5, 10), "{out}");
    assert!(rows.iter().all(|r| r["seconds"].as_f64().is_some_and(|s| s > 0.0)));
    assert!(switch.done(&["count", "ipv4_lpm"]).trim().starts_with("0 "));

    switch.done(&["load", &format!("{ROUTER}.entries")]);
    let (code, _, error) = bench(&["ipv4_lpm", "--entries", "1"]);
    assert_ne!(code, 0);
    assert!(error.contains("has 6 entries, which would be deleted"), "{error}");
    assert!(switch.done(&["count", "ipv4_lpm"]).trim().starts_with("6 "));

    switch.done(&["clear", "port_macs"]);
    let (code, _, error) = bench(&["port_macs", "--entries", "1000"]);
    assert_ne!(code, 0);
    assert!(error.contains("have room for 512 entries, not 1000"), "{error}");
    let (code, _, error) = bench(&["no_table"]);
    assert_ne!(code, 0);
    assert!(error.contains("no_table"), "{error}");
}

#[test]
fn queues_are_set_while_the_switch_runs() {
    let switch = Switch::start();
    let listed = |switch: &Switch| {
        let text = switch.done(&["queue"]);
        let rows = text
            .lines()
            .skip(1)
            .map(|l| l.split_whitespace().map(str::to_owned).collect());
        rows.collect::<Vec<Vec<String>>>()
    };
    assert_eq!(listed(&switch), [["1", "-", "-", "64"], ["2", "-", "-", "64"]]);
    switch.done(&["queue", "set", "2", "--rate", "10M", "--depth", "16"]);
    switch.done(&["queue", "set", "1", "--rate", "50pps"]);
    assert_eq!(listed(&switch), [["1", "-", "50", "64"], ["2", "10000000", "-", "16"]]);
    switch.done(&["queue", "set", "2", "--rate", "none"]);
    assert_eq!(listed(&switch)[1], ["2", "-", "-", "16"]);
    // Another program leaves the ports as they are.
    switch.done(&["program", "--load", &format!("{ROUTER}.p4")]);
    assert_eq!(listed(&switch), [["1", "-", "50", "64"], ["2", "-", "-", "16"]]);
    switch.done(&["queue", "reset", "1"]);
    assert_eq!(listed(&switch)[0], ["1", "-", "-", "64"]);
    let (code, _, error) = switch.ctl(&["queue", "set", "70000", "--rate", "1M"]);
    assert_eq!((code, error.contains("70000")), (1, true), "{error}");
    let (code, _, error) = switch.ctl(&["queue", "set", "1", "--rate", "fast"]);
    assert_eq!((code, error.contains("`fast` is no rate")), (2, true), "{error}");
}
