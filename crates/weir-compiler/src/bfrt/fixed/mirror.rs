//! `$mirror.cfg`: what becomes of mirrored packets.

use super::Chip;
use super::field::{action, data, field, key, table, ty};
use weir_proto::bfrt_info::{FieldType, Table};

/// Fields of every session that both chips have, in order; their numbers follow those of the chip's
/// own fields.
const COMMON: [(&str, &str); 18] = [
    ("$direction", "direction"),
    ("$ucast_egress_port", "uint32"),
    ("$ucast_egress_port_valid", "bool"),
    ("$egress_port_queue", "uint32"),
    ("$ingress_cos", "uint32"),
    ("$packet_color", "color"),
    ("$level1_mcast_hash", "uint32"),
    ("$level2_mcast_hash", "uint32"),
    ("$mcast_grp_a", "uint16"),
    ("$mcast_grp_a_valid", "bool"),
    ("$mcast_grp_b", "uint16"),
    ("$mcast_grp_b_valid", "bool"),
    ("$mcast_l1_xid", "uint16"),
    ("$mcast_l2_xid", "uint16"),
    ("$mcast_rid", "uint16"),
    ("$icos_for_copy_to_cpu", "uint32"),
    ("$copy_to_cpu", "bool"),
    ("$max_pkt_len", "uint16"),
];

/// What comes before them; the second chip has more.
const FLAGS: [&str; 9] = [
    "$session_enable",
    "$session_priority",
    "$hash_cfg_flag",
    "$hash_cfg_flag_p",
    "$icos_cfg_flag",
    "$dod_cfg_flag",
    "$c2c_cfg_flag",
    "$mc_cfg_flag",
    "$epipe_cfg_flag",
];

fn of(kind: &str) -> FieldType {
    match kind {
        "direction" => FieldType::choice(&["INGRESS", "EGRESS", "BOTH"]),
        "color" => FieldType::choice(&["GREEN", "YELLOW", "RED"]),
        plain => ty(plain),
    }
}

/// Adds the table.
pub(super) fn add(chip: Chip, tables: &mut Vec<Table>) {
    let mut coalescing = vec![
        (1, "$internal_header", FieldType::bytes(128)),
        (2, "$internal_header_length", ty("uint32")),
        (3, "$timeout_usec", ty("uint32")),
        (4, "$extract_len", ty("uint32")),
    ];
    if chip == Chip::Tofino2 {
        coalescing.push((5, "$session_coal_mode", ty("bool")));
    }
    let flags = FLAGS
        .iter()
        .take(chip.choose(1, FLAGS.len()))
        .map(|name| (*name, "bool"));
    let first = coalescing.len() as u32 + 1;
    let fields = (first..).zip(flags.chain(COMMON));
    tables.push(Table {
        key: vec![key(1, "$sid", ty("uint16"))],
        action_specs: Some(vec![action(1, "$coalescing", &coalescing), action(2, "$normal", &[])]),
        data: data(fields.map(|(id, (name, kind))| field(id, name, of(kind)))),
        ..table(0xff04_0001, "$mirror.cfg", "MirrorCfg", chip.choose(1024, 256))
    });
}
