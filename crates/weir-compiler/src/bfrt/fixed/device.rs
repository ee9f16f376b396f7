//! `tf1.dev.*`, `tf2.dev.*`: what the device is, and how a program is put on it.

use super::Chip;
use super::field::{action, apis, container, data, field, table, ty};
use weir_proto::bfrt_info::{FieldType, Table};

const FIRST_CHIPS: [&str; 7] = [
    "UNKNOWN",
    "BFN-T10-064Q",
    "BFN-T10-032Q",
    "BFN-T10-032D",
    "BFN-T10-032D-020",
    "BFN-T10-032D-018",
    "BFN-T10-032D-012",
];

const SECOND_CHIPS: [&str; 7] = [
    "UNKNOWN",
    "BFN-T20-128Q",
    "BFN-T20-128QM",
    "BFN-T20-080T",
    "BFN-T20-080TM",
    "BFN-T20-064Q",
    "BFN-T20-064D",
];

/// Both tables have no keys: their only entry is the default one.
fn only_entry(table: Table) -> Table {
    let device: &[&str] = &["dev_id"];
    Table {
        supported_apis: apis(&[
            ("tableDefaultEntrySet", device),
            ("tableDefaultEntryGet", device),
            ("tableDefaultEntryReset", device),
            ("tableClear", device),
        ]),
        ..table
    }
}

/// Adds the family.
pub(super) fn add(chip: Chip, tables: &mut Vec<Table>) {
    tables.push(only_entry(configuration(chip)));
    tables.push(only_entry(warm_init(chip)));
}

fn configuration(chip: Chip) -> Table {
    let number = |id, name| field(id, name, ty("uint32")).read_only();
    let chips = chip.choose(FIRST_CHIPS, SECOND_CHIPS);
    Table {
        data: data([
            field(1, "sku", FieldType::choice(&chips).or("UNKNOWN")).read_only(),
            number(2, "num_pipes"),
            number(3, "num_stages"),
            number(4, "num_max_ports"),
            number(5, "num_front_ports"),
            number(6, "pcie_cpu_port"),
            number(7, "eth_cpu_port_list").list(),
            number(8, "internal_port_list").list(),
            number(9, "external_port_list").list(),
            number(10, "recirc_port_list").list(),
            field(11, "intr_based_link_monitoring", ty("bool")).read_only(),
            field(12, "flow_learn_intr_mode", ty("bool").or(false)),
            field(13, "lrt_dr_timeout_usec", ty("uint32").or(0)),
            field(14, "flow_learn_timeout_usec", ty("uint32").or(500)),
            field(15, "inactive_node_delete", ty("bool").or(false)),
            field(16, "selector_member_order", ty("bool").or(false)),
        ]),
        ..table(0xff06_0001, &chip.named("dev.device_configuration"), "DevConfigure", 1)
    }
}

fn warm_init(chip: Chip) -> Table {
    let text = |id, name| field(id, name, ty("string"));
    let pipelines = [
        text(7, "runtime_context_file"),
        text(8, "binary_path"),
        text(9, "pipeline_name"),
        field(10, "pipe_scope", ty("uint32")).list(),
    ];
    let programs = [
        text(5, "p4_name"),
        container(6, "p4_pipelines", pipelines),
        text(11, "bfrt_json_file"),
    ];
    let modes = FieldType::choice(&["INIT_COLD", "WARM_INIT_FAST_RECFG", "WARM_INIT_HITLESS"]);
    Table {
        action_specs: Some(vec![action(1, "begin", &[]), action(2, "completed", &[])]),
        data: data([
            field(1, "error", ty("bool").or(false)).read_only(),
            field(2, "init_mode", modes.or("INIT_COLD")),
            field(3, "upgrade_agents", ty("bool").or(false)),
            container(4, "p4_programs", programs),
        ]),
        ..table(0xff06_0002, &chip.named("dev.warm_init"), "WarmInit", 1)
    }
}
