//! `tf1.pktgen.*`, `tf2.pktgen.*`: the packet generator of a pipe.

use super::Chip;
use super::field::{action, apis, data, dev_port_key, field, key, table, ty};
use weir_proto::bfrt_info::{ActionSpec, FieldType, KeyField, Table};

/// Parameters of operations on the device.
const DEVICE: &[&str] = &["dev_id"];
/// Parameters of operations on one pipe.
const ONE_PIPE: &[&str] = &["dev_id", "pipe_id"];
/// Parameters of operations on one pipe or on all.
const ONE_OR_ALL_PIPES: &[&str] = &["dev_id", "pipe_id", "pipe_all"];

/// A key that clients need not call mandatory: the reference does not.
fn plain_key(key: KeyField) -> KeyField {
    KeyField {
        mandatory: false,
        ..key
    }
}

/// What is read and written, and put back to what it was at the beginning.
fn changeable(table: Table) -> Table {
    Table {
        supported_apis: apis(&[
            ("tableEntryMod", ONE_OR_ALL_PIPES),
            ("tableEntryGet", ONE_PIPE),
            ("tableClear", ONE_OR_ALL_PIPES),
        ]),
        ..table
    }
}

/// Adds the family.
pub(super) fn add(chip: Chip, tables: &mut Vec<Table>) {
    tables.push(ports(chip));
    tables.push(applications(chip));
    let index = |id, name| plain_key(key(id, name, ty("uint32")));
    tables.push(changeable(Table {
        key: vec![index(1, "pkt_buffer_offset"), index(2, "pkt_buffer_size")],
        data: data([field(1, "buffer", FieldType::bytes(8)).list()]),
        ..table(
            0xff03_0003,
            &chip.named("pktgen.pkt_buffer"),
            "PktgenPktBufferCfg",
            1024,
        )
    }));
    if chip == Chip::Tofino2 {
        tables.push(changeable(Table {
            key: vec![index(1, "port_mask_sel")],
            data: data([field(1, "mask", FieldType::bytes(72))]),
            ..table(0xff03_0004, "tf2.pktgen.port_mask", "PktgenPortMaskCfg", 2)
        }));
    }
}

fn ports(chip: Chip) -> Table {
    let flags = [
        "recirculation_enable",
        "pktgen_enable",
        "pattern_matching_enable",
        "clear_port_down_enable",
    ];
    let target = chip.choose(ONE_PIPE, DEVICE);
    Table {
        key: vec![plain_key(dev_port_key("dev_port"))],
        data: data((1..).zip(flags).map(|(id, name)| field(id, name, ty("bool")))),
        supported_apis: apis(&[
            ("tableEntryMod", target),
            ("tableEntryGet", target),
            ("tableClear", ONE_OR_ALL_PIPES),
        ]),
        ..table(0xff03_0001, &chip.named("pktgen.port_cfg"), "PktgenPortCfg", 256)
    }
}

/// What starts an application.
fn triggers(chip: Chip) -> Vec<ActionSpec> {
    let timer = [(1, "timer_nanosec", ty("uint32"))];
    let down: &[_] = &[(3, "port_mask_sel", ty("uint32"))];
    let value = chip.choose(ty("uint32"), FieldType::bytes(128));
    let pattern = [(4, "pattern_value", value.clone()), (5, "pattern_mask", value)];
    let mut actions = vec![
        action(1, "trigger_timer_one_shot", &timer),
        action(2, "trigger_timer_periodic", &timer),
        action(3, "trigger_port_down", chip.choose(&[], down)),
        action(4, "trigger_recirc_pattern", &pattern),
    ];
    if chip == Chip::Tofino2 {
        actions.push(action(5, "trigger_dprsr", &pattern));
    }
    actions
}

fn applications(chip: Chip) -> Table {
    let length = chip.choose(ty("uint16"), FieldType::bytes(16));
    let of_length = |id, name| field(id, name, length.clone());
    let gap = |id, name| field(id, name, ty("uint32"));
    let counter = |id, name| field(id, name, ty("uint64"));
    let mut fields = vec![
        field(12, "app_enable", ty("bool")),
        of_length(13, "pkt_len"),
        of_length(14, "pkt_buffer_offset"),
        field(15, "pipe_local_source_port", ty("uint32")).port("dev_port"),
        field(16, "increment_source_port", ty("bool")),
        of_length(17, "batch_count_cfg"),
        of_length(18, "packets_per_batch_cfg"),
        gap(19, "ibg"),
        gap(20, "ibg_jitter"),
        gap(21, "ipg"),
        gap(22, "ipg_jitter"),
        counter(23, "batch_counter"),
        counter(24, "pkt_counter"),
        counter(25, "trigger_counter"),
    ];
    if chip == Chip::Tofino2 {
        fields.extend([
            field(26, "offset_len_from_recir_pkt_enable", ty("bool")),
            field(27, "source_port_wrap_max", FieldType::bytes(8)),
            field(28, "assigned_chnl_id", FieldType::bytes(8)),
        ]);
    }
    Table {
        key: vec![plain_key(key(1, "app_id", ty("uint32")))],
        action_specs: Some(triggers(chip)),
        data: data(fields),
        supported_apis: apis(&[
            ("tableEntryMod", ONE_OR_ALL_PIPES),
            ("tableEntryGet", ONE_PIPE),
            ("tableEntryGetFirst", ONE_PIPE),
            ("tableEntryGetNext_n", ONE_PIPE),
            ("tableUsageGet", &[]),
            ("tableClear", ONE_OR_ALL_PIPES),
        ]),
        ..table(
            0xff03_0002,
            &chip.named("pktgen.app_cfg"),
            "PktgenAppCfg",
            chip.choose(8, 16),
        )
    }
}
