use super::*;
use std::sync::Arc;
use weir_compiler::{Options, compile_source};

/// A switch with everything, and what is known of it.
struct Bench {
    switch: Switch,
    info: Info,
}

impl Bench {
    fn new() -> Self {
        let text = include_str!("tests.p4");
        let compiled = compile_source("tests.p4", text, &Options::default(), weir_arch::targets());
        assert!(!compiled.diagnostics.has_errors(), "{:?}", compiled.diagnostics.list());
        let program = Arc::new(compiled.program.unwrap());
        let port = |port| PortInfo {
            port,
            device: format!("packet:s1-eth{port}"),
        };
        Bench {
            switch: Switch::new(Arc::clone(&program)).unwrap(),
            info: Info {
                device_id: 7,
                runtime_port: 9090,
                ports: vec![port(1), port(2)],
                source: "tests.p4".to_owned(),
                program,
            },
        }
    }

    fn all(&mut self, line: &str) -> Result<String> {
        let (mut text, mut from) = (String::new(), 0);
        loop {
            let output = execute(&mut self.switch, &self.info, line, from)?;
            text += &output.text;
            match output.next {
                Some(next) => from = next,
                None => return Ok(text),
            }
        }
    }

    fn run(&mut self, line: &str) -> String {
        self.all(line).unwrap_or_else(|error| panic!("{line}: {error:#}"))
    }

    fn refusal(&mut self, line: &str) -> String {
        match self.all(line) {
            Ok(text) => panic!("{line}: {text}"),
            Err(error) => format!("{error:#}"),
        }
    }

    /// The port that a packet for this address leaves by.
    fn port_of(&mut self, destination: [u8; 6]) -> Option<u32> {
        let packet = [&destination[..], &[2, 0, 0, 0, 0, 9], &[8, 0], &[0; 46]].concat();
        self.switch.inject(1, &packet, 0).first().map(|out| out.port)
    }
}

#[test]
fn entries_are_added_changed_shown_and_deleted_by_handles_from_zero() {
    let mut bench = Bench::new();
    let added = bench.run("table_add MyIngress.lpm forward 10.0.1.0/24 => 08:00:00:00:01:11 3");
    assert!(added.contains("Entry has been added with handle 0\n"), "{added}");
    assert!(added.contains("LPM-0a:00:01:00/24"), "{added}");
    assert!(
        bench
            .run("table_add lpm MyIngress.forward 0x0a000200/24 => 1 4")
            .contains("handle 1")
    );
    assert_eq!(bench.port_of([0, 0, 10, 0, 1, 7]), Some(3));
    assert_eq!(bench.run("table_num_entries lpm"), "2\n");
    let twice = bench.refusal("table_add lpm forward 10.0.1.0/24 => 08:00:00:00:01:11 3");
    assert!(twice.contains("(handle 0)"), "{twice}");
    for line in [
        "table_delete lpm 7",
        "table_modify lpm forward 7 => 1 2",
        "table_dump_entry lpm 7",
    ] {
        let refusal = bench.refusal(line);
        assert!(refusal.contains("has no entry with handle 7"), "{line}: {refusal}");
    }
    bench.run("table_modify lpm forward 0 => 08:00:00:00:01:11 5");
    bench.run("table_set_timeout lpm 0 1500");
    assert_eq!(bench.port_of([0, 0, 10, 0, 1, 7]), Some(5));
    let entry = bench.run("table_dump_entry lpm 0");
    assert!(
        entry.starts_with("Dumping entry 0x0\nMatch key:\n* meta.address        : LPM       0a000100/24\n"),
        "{entry}"
    );
    assert!(
        entry.contains("Action entry: MyIngress.forward - 080000000111, 0005\n"),
        "{entry}"
    );
    assert!(entry.contains("timeout is 1500ms"), "{entry}");
    assert_eq!(bench.run("table_dump_entry_from_key lpm 10.0.1.0/24"), entry);
    bench.run("table_delete lpm 0");
    assert_eq!(bench.port_of([0, 0, 10, 0, 1, 7]), None);
    bench.run("table_set_default lpm forward 1 6");
    assert_eq!(bench.port_of([0, 0, 10, 0, 1, 7]), Some(6));
    let dump = bench.run("table_dump lpm");
    assert!(
        dump.contains("Dumping entry 0x1\n") && dump.ends_with("000000000001, 0006\n==========\n"),
        "{dump}"
    );
    bench.run("table_reset_default lpm");
    bench.run("table_clear lpm");
    assert_eq!(bench.run("table_num_entries lpm"), "0\n");
}

#[test]
fn of_priorities_the_smaller_wins_and_values_must_fit() {
    let mut bench = Bench::new();
    bench.run("table_add acl drop 02:00:00:00:00:00&&&ff:00:00:00:00:00 0x800->0x8ff => 20");
    bench.run("table_add acl NoAction 0&&&0 0->65535 => 10");
    bench.run("table_set_default lpm forward 1 6");
    assert_eq!(bench.port_of([0; 6]), Some(6));
    bench.run("table_add acl drop 0&&&0 0->65535 => 5");
    assert_eq!(bench.port_of([0; 6]), None);
    let dump = bench.run("table_dump acl");
    assert!(dump.contains("TERNARY   020000000000 &&& ff0000000000\n"), "{dump}");
    assert!(dump.contains("RANGE     0800 -> 08ff\nPriority: 20\n"), "{dump}");
    assert!(
        bench
            .run("counter_read hits 2")
            .contains("hits[2]= (60 bytes, 1 packets)\n")
    );
    for (line, word) in [
        ("table_add lpm forward 10.0.1.0 => 1 2", "VALUE/LENGTH"),
        ("table_add lpm forward 10.0.1.0/33 => 1 2", "0 to 32"),
        ("table_add lpm forward 10.0.1/24 => 1 2", "IPv4"),
        ("table_add lpm forward 10.0.1.0/24 => 1 512", "more than 9 bits"),
        ("table_add lpm forward 10.0.1.0/24 => 1", "2 parameters"),
        ("table_add lpm nothing 10.0.1.0/24 =>", "action"),
        ("table_add other drop 1 =>", "no table"),
        ("table_add acl drop 1&&&1 0->1 =>", "priority"),
        ("table_add acl drop 1&&&1 9->1 => 1", "ends before"),
        ("table_delete lpm 9", ""),
        ("table_delete lpm x", "handle"),
        ("counter_read hits 77", "no entry"),
        ("table_set_timeout acl 0 1", "support_timeout"),
        ("table_info", "table_info TABLE"),
        ("nothing", "help"),
    ] {
        let refusal = bench.refusal(line);
        assert!(refusal.contains(word), "{line}: {refusal}");
    }
}

#[test]
fn members_and_groups_of_a_selector_forward() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.run("act_prof_create_member paths to 3"),
        "Member has been created with handle 0\n"
    );
    assert_eq!(
        bench.run("table_indirect_create_member balance to 4"),
        "Member has been created with handle 1\n"
    );
    assert_eq!(
        bench.run("act_prof_create_group paths"),
        "Group has been created with handle 0\n"
    );
    bench.run("act_prof_add_member_to_group paths 1 0");
    assert!(
        bench
            .run("table_indirect_add_with_group balance 0 => 0")
            .contains("handle 0")
    );
    assert_eq!(bench.port_of([0; 6]), Some(4));
    assert!(bench.run("table_indirect_add balance 5 => 0").contains("handle 1"));
    assert_eq!(bench.port_of([0, 0, 0, 0, 0, 5]), Some(3));
    bench.run("act_prof_modify_member paths to 0 => 9");
    assert_eq!(bench.port_of([0, 0, 0, 0, 0, 5]), Some(9));
    let dump = bench.run("act_prof_dump paths");
    assert!(
        dump.contains("Dumping member 0\nAction entry: MyIngress.to - 0009\n"),
        "{dump}"
    );
    assert!(dump.contains("Dumping group 0\nMembers: [1]\n"), "{dump}");
    assert!(bench.run("table_dump balance").contains("Index: group(0)\n"));
    assert!(bench.refusal("act_prof_delete_member paths 1").contains("group"));
    bench.run("table_indirect_delete balance 0");
    bench.run("act_prof_remove_member_from_group paths 1 0");
    bench.run("act_prof_delete_group paths 0");
    bench.run("act_prof_delete_member paths 1");
    assert!(
        bench
            .refusal("table_add balance to 7 => 1")
            .contains("table_indirect_add")
    );
    assert!(
        bench
            .refusal("table_indirect_set_default balance 0")
            .contains("table_set_default")
    );
}

#[test]
fn counters_meters_and_registers_are_read_and_written() {
    let mut bench = Bench::new();
    bench.port_of([0; 6]);
    assert_eq!(bench.run("counter_read totals 0"), "totals[0]= (60 bytes, 1 packets)\n");
    bench.run("counter_write totals 1 5 700");
    assert_eq!(
        bench.run("counter_read MyIngress.totals 1"),
        "MyIngress.totals[1]= (700 bytes, 5 packets)\n"
    );
    bench.run("counter_reset totals");
    assert_eq!(bench.run("counter_read totals 1"), "totals[1]= (0 bytes, 0 packets)\n");
    assert_eq!(bench.run("register_read last 0"), "last[0]= 1\n");
    bench.run("register_write last 2 0x10");
    assert_eq!(bench.run("register_read last"), "last= 1, 0, 16, 0\n");
    bench.run("register_reset last");
    assert_eq!(bench.run("register_read last"), "last= 0, 0, 0, 0\n");
    assert!(bench.refusal("register_read last 4").contains("4 cells"));
    bench.run("meter_set_rates police 1 0.5:10 1:20");
    let rates = "0: info rate = 0.5, burst size = 10\n1: info rate = 1.0, burst size = 20\n";
    assert_eq!(bench.run("meter_get_rates police 1"), rates);
    bench.run("meter_array_set_rates police 0.5:10 1:20");
    assert_eq!(bench.run("meter_get_rates police 3"), rates);
    assert!(bench.refusal("meter_set_rates police 1 2:10 1:20").contains("peak"));
    assert!(bench.refusal("meter_set_rates police 1 x 1:20").contains("RATE:BURST"));
}

#[test]
fn multicast_and_mirroring_follow_the_commands() {
    let mut bench = Bench::new();
    bench.run("mc_mgrp_create 1");
    for line in [
        "mc_node_create 7 99999",
        "mirroring_add 1 99999",
        "mc_set_lag_membership 1 512",
    ] {
        let refusal = bench.refusal(line);
        assert!(refusal.contains("there is no port"), "{line}: {refusal}");
    }
    assert!(
        bench
            .refusal("mc_node_create 65536 1")
            .contains("replication id of 16 bits")
    );
    assert_eq!(bench.run("mc_node_create 7 2 1"), "node was created with handle 0\n");
    assert_eq!(bench.run("mc_node_create 8 3 | 4"), "node was created with handle 1\n");
    bench.run("mc_set_lag_membership 4 5 6");
    bench.run("mc_node_associate 1 0");
    bench.run("mc_node_associate 1 1");
    let dump = bench.run("mc_dump");
    assert!(
        dump.contains("mgrp(1)\n  -> (L1h=0, rid=7) -> (ports=[1, 2], lags=[])\n"),
        "{dump}"
    );
    assert!(dump.contains("(L1h=1, rid=8) -> (ports=[3], lags=[4])\n"), "{dump}");
    assert!(dump.contains("lag(4) -> ports=[5, 6]\n"), "{dump}");
    assert!(bench.refusal("mc_mgrp_create 1").contains("exists"));
    assert!(bench.refusal("mc_node_associate 1 0").contains("already"));
    assert!(bench.refusal("mc_node_create 1 2 2").contains("twice"));
    bench.run("mc_node_dissociate 1 1");
    bench.run("mc_node_destroy 0");
    bench.run("mc_mgrp_destroy 1");
    assert!(!bench.run("mc_dump").contains("mgrp"));
    bench.run("mirroring_add 100 2");
    assert_eq!(
        bench.run("mirroring_get 100"),
        "MirroringSessionConfig(port=2, mgid=None)\n"
    );
    bench.run("mirroring_add_mc 100 5");
    assert_eq!(
        bench.run("mirroring_get 100"),
        "MirroringSessionConfig(port=None, mgid=5)\n"
    );
    bench.run("mirroring_delete 100");
    assert!(bench.refusal("mirroring_get 100").contains("no mirroring session"));
}

#[test]
fn queues_hashes_value_sets_and_the_switch_itself() {
    let mut bench = Bench::new();
    bench.run("set_queue_rate 100");
    assert!(bench.switch.has_port_rate());
    bench.run("set_queue_rate 0");
    assert!(!bench.switch.has_port_rate());
    bench.run("set_queue_depth 5 1");
    assert!(bench.refusal("set_queue_rate 100 1 3").contains("priority"));
    bench.run("set_crc16_parameters crc16_custom 0x1021 0xffff 0 false false");
    assert_eq!(bench.switch.state().custom_crc(16).polynomial, 0x1021);
    bench.run("set_crc16_parameters calc 0x8bb7 0 0 false false");
    let own = bench.switch.state().given_calculation(0).expect("is set");
    assert_eq!(
        (own.polynomial, bench.switch.state().custom_crc(16).polynomial),
        (0x8bb7, 0x1021)
    );
    let unknown = bench.refusal("set_crc16_parameters calc_7 1 0 0 0 0");
    assert!(
        unknown.contains("no calculation `calc_7`") && unknown.contains("it has calc;"),
        "{unknown}"
    );
    assert!(
        bench
            .refusal("set_crc32_parameters calc 1 0 0 0 0")
            .contains("crc32_custom")
    );
    bench.run("pvs_add types 0x800");
    bench.run("pvs_add types 0x800");
    assert_eq!(bench.run("pvs_get types"), "0800\n");
    bench.run("pvs_remove types 2048");
    assert_eq!(bench.run("pvs_get types"), "");
    let ports = bench.run("show_ports");
    assert!(ports.contains("s1-eth2") && ports.contains("UP"), "{ports}");
    assert!(bench.run("switch_info").contains("device_id           : 7\n"));
    assert!(
        bench
            .run("show_tables")
            .contains("[implementation=None, mk=meta.address(lpm, 32)]")
    );
    assert!(bench.run("table_info acl").contains("ternary"));
    assert!(bench.run("show_actions").contains("[mac(48),\tport(9)]"));
    assert!(weir_server::container::decode(&bench.run("get_config")).is_ok());
    for line in ["swap_configs", "shell ls", "set_toeplitz_hash_key a b"] {
        assert!(bench.refusal(line).contains("is not supported"), "{line}");
    }
}

#[test]
fn a_reset_leaves_nothing_of_control_planes() {
    let mut bench = Bench::new();
    for line in [
        "table_add lpm forward 10.0.1.0/24 => 1 2",
        "table_set_default lpm forward 1 6",
        "act_prof_create_member paths to 3",
        "register_write last 2 9",
        "mc_mgrp_create 1",
        "mc_node_create 7 2 1",
        "mirroring_add 100 2",
        "pvs_add types 1",
        "reset_state",
    ] {
        bench.run(line);
    }
    assert_eq!(bench.run("table_num_entries lpm"), "0\n");
    assert_eq!(bench.run("register_read last 2"), "last[2]= 0\n");
    assert_eq!(bench.run("pvs_get types"), "");
    assert!(!bench.run("act_prof_dump paths").contains("Dumping"));
    assert!(!bench.run("mc_dump").contains("mgrp"));
    assert!(bench.refusal("mirroring_get 100").contains("no mirroring session"));
    assert_eq!(bench.port_of([0, 0, 10, 0, 1, 7]), None);
}

#[test]
fn long_outputs_come_in_parts() {
    let mut bench = Bench::new();
    for i in 0..1005 {
        bench.run(&format!("table_add lpm forward {i}/32 => 1 2"));
    }
    let first = execute(&mut bench.switch, &bench.info, "table_dump lpm", 0).unwrap();
    assert_eq!(first.next, Some(1000));
    let dump = bench.run("table_dump lpm");
    assert_eq!(dump.matches("Dumping entry ").count(), 1005);
    assert_eq!(dump.matches("Dumping default entry").count(), 1);
}

#[test]
fn names_are_those_of_the_program() {
    let bench = Bench::new();
    let names = Names::of(&bench.switch);
    assert_eq!(names.tables["MyIngress.lpm"], ["MyIngress.forward", "MyIngress.drop"]);
    assert_eq!(names.profiles.keys().collect::<Vec<_>>(), ["MyIngress.paths"]);
    assert_eq!(names.counters, ["MyIngress.totals", "MyIngress.hits"]);
    assert_eq!((names.meters.len(), names.registers.len(), names.sets.len()), (1, 1, 1));
}

#[test]
fn commands_have_names_of_their_own_and_no_line_panics() {
    let mut bench = Bench::new();
    let names: Vec<&str> = commands().map(|spec| spec.name).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), names.len());
    let words = [
        "lpm",
        "acl",
        "balance",
        "paths",
        "=>",
        "0",
        "1",
        "x",
        "4294967295",
        "1/1",
        "|",
        "0:0",
        "é&&&1",
    ];
    let mut random = 1u32;
    for name in names {
        for count in 0..5 {
            let mut line = name.to_owned();
            for _ in 0..count {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                line = format!("{line} {}", words[(random >> 8) as usize % words.len()]);
            }
            let _ = bench.all(&line);
        }
    }
}

#[test]
fn changes_of_ports_are_told_apart_from_other_commands() {
    use super::{PortChange, port_change};
    let add = PortChange::Add {
        port: 3,
        device: "veth6".to_owned(),
    };
    assert_eq!(port_change(" port_add veth6 3 ").unwrap().unwrap(), add);
    assert_eq!(port_change("port_remove 3").unwrap().unwrap(), PortChange::Remove(3));
    assert!(port_change("show_ports").is_none() && port_change("").is_none());
    for (line, expected) in [
        (
            "port_add veth6",
            "1 arguments are given; the command is `port_add INTERFACE PORT`",
        ),
        ("port_add veth6 x", "`x` is no number of a port"),
        ("port_remove", "0 arguments are given"),
    ] {
        let error = port_change(line).unwrap().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{line}: {error}");
    }
}
