//! `tf1.tm.*`, `tf2.tm.*`: of the traffic manager what weir has, rates of ports and counters of
//! queues. weir counts packets where the fields say cells.

use super::Chip;
use super::field::{apis, data, dev_port_key, field, table, ty};
use super::port::{queue_keys, scheduler_speeds};
use weir_proto::bfrt_info::{FieldType, Table, TableData};

const PORTS: u64 = 288;
/// Parameters of operations on the device.
const DEVICE: &[&str] = &["dev_id"];
/// Parameters of operations on one pipe.
const ONE_PIPE: &[&str] = &["dev_id", "pipe_id"];
/// Parameters of operations on one pipe or on all.
const ONE_OR_ALL_PIPES: &[&str] = &["dev_id", "pipe_id", "pipe_all"];

/// Adds the family.
pub(super) fn add(chip: Chip, tables: &mut Vec<Table>) {
    tables.push(ports(chip));
    tables.push(scheduled(chip));
    tables.push(shaped(chip));
    tables.push(Table {
        key: vec![dev_port_key("dev_port")],
        data: counters(),
        supported_apis: apis(&[
            ("tableEntryMod", DEVICE),
            ("tableEntryGet", DEVICE),
            ("tableEntryGetFirst", DEVICE),
            ("tableEntryGetNext_n", DEVICE),
            ("tableUsageGet", &[]),
            ("tableClear", DEVICE),
        ]),
        ..table(0xff05_0042, &chip.named("tm.counter.eg_port"), "TmCounterEgPort", PORTS)
    });
    tables.push(Table {
        key: queue_keys(),
        data: counters(),
        supported_apis: apis(&[
            ("tableEntryMod", ONE_OR_ALL_PIPES),
            ("tableEntryGet", ONE_PIPE),
            ("tableEntryGetFirst", ONE_PIPE),
            ("tableEntryGetNext_n", ONE_PIPE),
            ("tableUsageGet", &[]),
            ("tableClear", ONE_OR_ALL_PIPES),
        ]),
        ..table(
            0xff05_0043,
            &chip.named("tm.counter.queue"),
            "TmCounterQueue",
            chip.choose(576, 1152),
        )
    });
}

fn counters() -> Vec<TableData> {
    data([
        field(1, "drop_count_packets", ty("uint64")),
        field(2, "usage_cells", ty("uint64")).read_only(),
        field(3, "watermark_cells", ty("uint64")).clear_only(),
    ])
}

/// Which queues a port has: needed to name a queue elsewhere.
fn ports(chip: Chip) -> Table {
    let number = |id, name| field(id, name, ty("uint8")).read_only();
    let flag = |id, name| field(id, name, ty("bool")).read_only();
    Table {
        key: vec![dev_port_key("dev_port")],
        data: data([
            number(1, "pg_id"),
            number(2, "pg_port_nr"),
            number(3, "port_queues_count"),
            number(4, "ingress_qid_map").list(),
            number(5, "egress_qid_queues").list(),
            flag(6, "copy_to_cpu"),
            flag(7, "mirror_drop_destination"),
            number(8, "mirror_drop_pg_queue"),
            field(9, "pkt_extraction_credits", ty("uint32")).read_only(),
        ]),
        supported_apis: apis(&[
            ("tableEntryGet", DEVICE),
            ("tableEntryGetFirst", DEVICE),
            ("tableEntryGetNext_n", DEVICE),
            ("tableUsageGet", DEVICE),
        ]),
        ..table(0xff05_0010, &chip.named("tm.port.cfg"), "TmPortCfg", PORTS)
    }
}

/// Tables of ports that can be changed.
fn of_ports(chip: Chip, id: u32, name: &str, table_type: &str, data: Vec<TableData>) -> Table {
    Table {
        key: vec![dev_port_key("dev_port")],
        data,
        supported_apis: apis(&[
            ("tableEntryGet", DEVICE),
            ("tableEntryGetFirst", DEVICE),
            ("tableEntryGetNext_n", DEVICE),
            ("tableEntryMod", DEVICE),
            ("tableClear", DEVICE),
            ("tableUsageGet", DEVICE),
        ]),
        ..table(id, &chip.named(name), table_type, PORTS)
    }
}

fn scheduled(chip: Chip) -> Table {
    let mut fields = vec![field(1, "max_rate_enable", ty("bool"))];
    if chip == Chip::Tofino2 {
        fields.push(field(2, "l1_nodes_count", ty("uint8")).read_only());
        fields.push(field(3, "l1_nodes", ty("uint8")).list().read_only());
    }
    fields.push(field(chip.choose(2, 4), "scheduling_speed", scheduler_speeds(chip)));
    of_ports(chip, 0xff05_0016, "tm.port.sched_cfg", "TmPortSchedCfg", data(fields))
}

fn shaped(chip: Chip) -> Table {
    let fields = [
        field(1, "unit", FieldType::choice(&["PPS", "BPS"])),
        field(2, "provisioning", FieldType::choice(&["UPPER", "LOWER", "MIN_ERROR"])),
        field(3, "max_rate", ty("uint32")),
        field(4, "max_burst_size", ty("uint32")),
    ];
    of_ports(
        chip,
        0xff05_0017,
        "tm.port.sched_shaping",
        "TmPortSchedShaping",
        data(fields),
    )
}
