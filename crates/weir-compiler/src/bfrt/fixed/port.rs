//! `$PORT` and what finds ports by their other names.

use super::Chip;
use super::field::{data, dev_port_key, field, key, port_key, table, ty};
use super::port_stat;
use weir_proto::bfrt_info::{FieldType, KeyField, Table};

/// Ports that the tables hold.
const PORTS: u64 = 256;

/// Speeds that a port can be given. weir's ports are as fast as what carries them.
const SPEEDS: [&str; 11] = [
    "BF_SPEED_NONE",
    "BF_SPEED_1G",
    "BF_SPEED_10G",
    "BF_SPEED_25G",
    "BF_SPEED_40G",
    "BF_SPEED_40G_NB",
    "BF_SPEED_40G_NON_BREAKABLE",
    "BF_SPEED_50G",
    "BF_SPEED_100G",
    "BF_SPEED_200G",
    "BF_SPEED_400G",
];

const CORRECTION: [&str; 5] = [
    "BF_FEC_TYP_NONE",
    "BF_FEC_TYP_FIRECODE",
    "BF_FEC_TYP_REED_SOLOMON",
    "BF_FEC_TYP_FC",
    "BF_FEC_TYP_RS",
];

const NEGOTIATION: [&str; 3] = ["PM_AN_DEFAULT", "PM_AN_FORCE_ENABLE", "PM_AN_FORCE_DISABLE"];

/// Ways to loop back; the first chip has all but the last.
const LOOPBACK: [&str; 7] = [
    "BF_LPBK_NONE",
    "BF_LPBK_MAC_NEAR",
    "BF_LPBK_MAC_FAR",
    "BF_LPBK_PCS_NEAR",
    "BF_LPBK_SERDES_NEAR",
    "BF_LPBK_SERDES_FAR",
    "BF_LPBK_PIPE",
];

const DIRECTIONS: [&str; 3] = ["PM_PORT_DIR_DEFAULT", "PM_PORT_DIR_TX_ONLY", "PM_PORT_DIR_RX_ONLY"];
const MEDIA: [&str; 3] = ["BF_MEDIA_TYPE_COPPER", "BF_MEDIA_TYPE_OPTICAL", "BF_MEDIA_TYPE_UNKNOWN"];

/// Adds the family.
pub(super) fn add(chip: Chip, tables: &mut Vec<Table>) {
    tables.push(port(chip));
    tables.push(port_stat::table(PORTS));
    let of_handle = |id, name, class| port_key(id, name, class, ty("uint32").or(0));
    let handle = vec![
        of_handle(1, "$CONN_ID", "port_hdl_conn_id"),
        of_handle(2, "$CHNL_ID", "port_hdl_chnl_id"),
    ];
    tables.push(finder(0xff01_0003, "$PORT_HDL_INFO", "PortHdlInfo", handle));
    let index = vec![of_handle(1, "$FP_IDX", "fp_port")];
    tables.push(finder(0xff01_0004, "$PORT_FP_IDX_INFO", "PortFpIdxInfo", index));
    let name = vec![port_key(1, "$PORT_NAME", "port_name", ty("string"))];
    tables.push(finder(0xff01_0005, "$PORT_STR_INFO", "PortStrInfo", name));
}

/// A table that says which port has a name.
fn finder(id: u32, name: &str, table_type: &str, keys: Vec<KeyField>) -> Table {
    Table {
        key: keys,
        data: data([field(1, "$DEV_PORT", ty("uint32")).port("dev_port").read_only()]),
        ..table(id, name, table_type, PORTS)
    }
}

fn port(chip: Chip) -> Table {
    let loopback = &LOOPBACK[..LOOPBACK.len() - chip.choose(1, 0)];
    let number = |id, name| field(id, name, ty("uint32").or(0));
    let signed = |id, name| field(id, name, ty("int32").or(0));
    let flag = |id, name| field(id, name, ty("bool").or(false));
    let choice = |id, name, of| field(id, name, FieldType::choice(of));
    let is = |id, name| field(id, name, ty("bool")).read_only();
    let mut fields = vec![
        choice(1, "$SPEED", &SPEEDS).shown(),
        choice(2, "$FEC", &CORRECTION).shown(),
        field(3, "$N_LANES", ty("uint32").or(1)),
        flag(4, "$PORT_ENABLE").shown(),
        choice(5, "$AUTO_NEGOTIATION", &NEGOTIATION).shown(),
        choice(6, "$LOOPBACK_MODE", loopback).shown(),
        field(7, "$TX_MTU", ty("uint32").or(10240)),
        field(8, "$RX_MTU", ty("uint32").or(10240)),
        number(9, "$TX_PFC_EN_MAP"),
        number(10, "$RX_PFC_EN_MAP"),
        flag(11, "$TX_PAUSE_FRAME_EN"),
        flag(12, "$RX_PAUSE_FRAME_EN"),
        flag(13, "$CUT_THROUGH_EN"),
        choice(14, "$PORT_DIR", &DIRECTIONS),
        choice(15, "$MEDIA_TYPE", &MEDIA).read_only(),
        number(16, "$SDS_TX_ATTN"),
        signed(17, "$SDS_TX_PRE"),
        signed(18, "$SDS_TX_PRE2"),
        signed(19, "$SDS_TX_POST"),
        signed(20, "$SDS_TX_POST2"),
        is(21, "$IS_VALID"),
        is(22, "$IS_INTERNAL"),
        field(23, "$CONN_ID", ty("uint32"))
            .port("port_hdl_conn_id")
            .shown()
            .read_only(),
        field(24, "$CHNL_ID", ty("uint32"))
            .port("port_hdl_chnl_id")
            .shown()
            .read_only(),
        is(25, "$PORT_UP").shown(),
        field(26, "$PORT_NAME", ty("string"))
            .port("port_name")
            .shown()
            .read_only(),
        field(27, "$RX_PRSR_PRI_THRESH", ty("uint32")),
        field(28, "$TIMESTAMP_1588_DELTA_TX", ty("uint16")),
    ];
    if chip == Chip::Tofino1 {
        fields.push(field(29, "$TIMESTAMP_1588_DELTA_RX", ty("uint16")));
    }
    fields.extend([
        is(30, "$TIMESTAMP_1588_VALID"),
        field(31, "$TIMESTAMP_1588_VALUE", ty("uint64")).read_only(),
        field(32, "$TIMESTAMP_1588_ID", ty("uint32")).read_only(),
        field(33, "$PLL_OVRCLK", ty("float").or(0)),
    ]);
    Table {
        key: vec![dev_port_key("$DEV_PORT")],
        data: data(fields),
        attributes: vec!["port_status_notif_cb".to_owned()],
        ..table(0xff01_0001, "$PORT", "PortConfigure", PORTS)
    }
}

/// Keys of a queue: the group of ports, and the queue within the group.
pub(super) fn queue_keys() -> Vec<KeyField> {
    vec![key(1, "pg_id", ty("uint8")), key(2, "pg_queue", ty("uint8"))]
}

/// Speeds that schedulers know.
pub(super) fn scheduler_speeds(chip: Chip) -> FieldType {
    let first: Vec<&str> = SPEEDS[..9].to_vec();
    let second = vec![
        "BF_SPEED_NONE",
        "BF_SPEED_1G",
        "BF_SPEED_10G",
        "BF_SPEED_25G",
        "BF_SPEED_40G",
        "BF_SPEED_40G_R2",
        "BF_SPEED_40G_NB",
        "BF_SPEED_40G_NON_BREAKABLE",
        "BF_SPEED_50G",
        "BF_SPEED_50G_CONS",
        "BF_SPEED_100G",
        "BF_SPEED_200G",
        "BF_SPEED_400G",
    ];
    FieldType::choice(&chip.choose(first, second))
}
