//! `$pre.*`: groups of copies, their nodes, and which ports get none.

use super::Chip;
use super::field::{Field, data, dev_port_key, field, key, table, ty};
use weir_proto::bfrt_info::Table;

/// Nodes, and groups of alternative nodes.
const NODES: u64 = 1 << 24;
/// Ports of four pipes.
const PORTS: u64 = 288;

fn ports(id: u32) -> Field {
    field(id, "$DEV_PORT", ty("uint32")).port("dev_port").list()
}

/// Adds the family.
pub(super) fn add(chip: Chip, tables: &mut Vec<Table>) {
    let list = |id, name, kind: &str| field(id, name, ty(kind)).list();
    tables.push(Table {
        key: vec![key(1, "$MGID", ty("uint16"))],
        data: data([
            list(1, "$MULTICAST_NODE_ID", "uint32"),
            list(2, "$MULTICAST_NODE_L1_XID_VALID", "bool"),
            list(3, "$MULTICAST_NODE_L1_XID", "uint16"),
            list(4, "$MULTICAST_ECMP_ID", "uint32"),
            list(5, "$MULTICAST_ECMP_L1_XID_VALID", "bool"),
            list(6, "$MULTICAST_ECMP_L1_XID", "uint16"),
        ]),
        attributes: vec!["pre_device_config".to_owned()],
        ..table(0xff02_0001, "$pre.mgid", "PreMgid", 1 << 16)
    });
    tables.push(Table {
        key: vec![key(1, "$MULTICAST_NODE_ID", ty("uint32"))],
        data: data([
            field(1, "$MULTICAST_RID", ty("uint16")).mandatory(),
            list(2, "$MULTICAST_LAG_ID", "uint8").mandatory(),
            ports(3).mandatory(),
        ]),
        ..table(0xff02_0002, "$pre.node", "PreNode", NODES)
    });
    tables.push(Table {
        key: vec![key(1, "$MULTICAST_ECMP_ID", ty("uint32"))],
        data: data([list(1, "$MULTICAST_NODE_ID", "uint32").mandatory()]),
        ..table(0xff02_0003, "$pre.ecmp", "PreEcmp", NODES)
    });
    tables.push(Table {
        key: vec![key(1, "$MULTICAST_LAG_ID", ty("uint8"))],
        data: data([
            ports(1),
            field(2, "$MULTICAST_LAG_REMOTE_MSB_COUNT", ty("uint32").or(0)),
            field(3, "$MULTICAST_LAG_REMOTE_LSB_COUNT", ty("uint32").or(0)),
        ]),
        ..table(0xff02_0004, "$pre.lag", "PreLag", chip.choose(255, 256))
    });
    tables.push(Table {
        key: vec![key(1, "$MULTICAST_L2_XID", ty("uint16"))],
        data: data([ports(1).mandatory()]),
        ..table(0xff02_0005, "$pre.prune", "PrePrune", PORTS)
    });
    tables.push(Table {
        key: vec![dev_port_key("$DEV_PORT")],
        data: data([
            field(1, "$MULTICAST_BACKUP_PORT", ty("uint32")).port("dev_port"),
            field(2, "$MULTICAST_FORWARD_STATE", ty("bool")),
            field(3, "$MULTICAST_CLEAR_FAST_FAILOVER", ty("bool")),
            field(4, "$COPY_TO_CPU_PORT_ENABLE", ty("bool")),
        ]),
        ..table(0xff02_0006, "$pre.port", "PrePort", PORTS)
    });
}
