//! EFCP: PDUs of `rina_router`'s packet tests, and of IRATI and rlite.

use super::frames::{ethernet, hex, of_tests, root};
use super::tshark::{Tshark, whole};

fn tshark() -> Option<Tshark> {
    Tshark::with_bundled(&["weir_efcp.lua"])
}

const FIELDS: [&str; 8] = [
    "weir_efcp.dst",
    "weir_efcp.src",
    "weir_efcp.qos",
    "weir_efcp.dst_cep",
    "weir_efcp.src_cep",
    "weir_efcp.type",
    "weir_efcp.length",
    "weir_efcp.sequence",
];

#[test]
fn a_pdu_of_the_paper_has_its_fields_and_its_checksum_is_checked() {
    let Some(tshark) = tshark() else { return };
    // rina_router-efcp_pdu_types.stf, and the vector of the prototype.
    let good = hex("01000200010100070009c10000140000000 13ad9");
    let vector = hex("0100020001000000000080000014000000007beb");
    let mut bad = good.clone();
    bad[2] = 3;
    let frames = [good, vector, bad].map(|pdu| ethernet(0xd1f0, &[&pdu[..], &[0; 26]].concat()));
    let values = tshark.values(&frames[0], &FIELDS);
    assert_eq!(values, ["2", "1", "1", "7", "9", "0xc1", "20", "1"]);
    let checks = tshark.fields(&frames, &["weir_efcp.checksum.good", "weir_efcp.checksum"]);
    assert_eq!(checks, [["1", "0x3ad9"], ["1", "0x7beb"], ["0", "0x3ad9"]]);
    assert_eq!(tshark.count(&frames, "weir_efcp.checksum.bad"), 1);
}

#[test]
fn an_ethertype_is_a_preference() {
    let Some(tshark) = tshark() else { return };
    let pdu = hex("0100020001000000000080000014000000007beb");
    let frames = [0xd1f0, 0x0d1f].map(|ethertype| ethernet(ethertype, &pdu));
    assert_eq!(tshark.count(&frames[..1], "weir_efcp"), 1);
    let tshark = tshark.preferring("weir_efcp.ethertypes:3359");
    assert_eq!(tshark.count(&frames[1..], "weir_efcp"), 1);
    assert_eq!(tshark.count(&frames[..1], "weir_efcp"), 0);
}

#[test]
fn an_acknowledgement_of_irati_has_its_tail() {
    let Some(tshark) = tshark() else { return };
    let tshark = tshark.preferring("weir_efcp.dialect:IRATI");
    // Version, dst 2, src 1, qos 3, CEP ids 7 and 9, type, flags, length, sequence number.
    let common = "01 0200 0100 0300 0700 0900";
    let ack = hex(&format!("{common} c1 80 1700 05000000 04000000"));
    let both = hex(&format!(
        "{common} c5 00 3300 06000000 04000000 01000000 02000000 03000000 04000000 05000000 06000000 07000000"
    ));
    assert_eq!((ack.len(), both.len()), (23, 51));
    let frames = [ack, both].map(|pdu| ethernet(0xd1f0, &pdu));
    let values = tshark.values(&frames[0], &FIELDS);
    assert_eq!(values, ["2", "1", "3", "7", "9", "0xc1", "23", "5"]);
    let tail = tshark.values(
        &frames[0],
        &["weir_efcp.acked", "weir_efcp.flags.drf", "weir_efcp.rate"],
    );
    assert_eq!(tail, ["4", "1", ""]);
    let names = [
        "acked",
        "last_control",
        "new_lwe",
        "new_rwe",
        "my_lwe",
        "my_rwe",
        "rate",
        "time_frame",
    ];
    let names: Vec<String> = names.iter().map(|name| format!("weir_efcp.{name}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(
        tshark.values(&frames[1], &names),
        ["4", "1", "2", "3", "4", "5", "6", "7"]
    );
    let wide = tshark
        .preferring("weir_efcp.address:4 bytes")
        .preferring("weir_efcp.qos:1 byte");
    let pdu = hex("01 02000000 01000000 03 0700 0900 80 00 1600 05000000 6869");
    assert_eq!(
        wide.values(&ethernet(0xd1f0, &pdu), &FIELDS),
        ["2", "1", "3", "7", "9", "0x80", "22", "5"]
    );
}

#[test]
fn pdus_of_rlite_have_a_format_of_their_own() {
    let Some(tshark) = tshark() else { return };
    let tshark = tshark.preferring("weir_efcp.dialect:rlite");
    let control = "01000000 02000000 03000000 04000000 05000000 06000000";
    let pdu = hex(&format!(
        "01 c4 0100 0000 4000 05000000 02000000 01000000 0700 0900 3400 0300 {control}"
    ));
    assert_eq!(pdu.len(), 52);
    let frame = ethernet(0xd1f0, &pdu);
    assert_eq!(
        tshark.values(&frame, &FIELDS),
        ["2", "1", "3", "7", "9", "0xc4", "52", "5"]
    );
    let others = [
        "weir_efcp.ttl",
        "weir_efcp.flags.ecn",
        "weir_efcp.acked",
        "weir_efcp.new_rwe",
    ];
    assert_eq!(tshark.values(&frame, &others), ["64", "1", "2", "3"]);
}

#[test]
fn truncated_and_foreign_pdus_give_expert_information() {
    let frames = of_tests(&root().join("p4/programs/rina_router"));
    let frames: Vec<Vec<u8>> = frames.into_iter().map(|frame| frame.bytes).collect();
    for dialect in ["rina_router", "IRATI", "rlite"] {
        let Some(tshark) = tshark() else { return };
        let tshark = tshark.preferring(&format!("weir_efcp.dialect:{dialect}"));
        tshark.raises_nothing(&whole(&frames));
        let pdu = hex("01 0200 0100 0300 0700 0900 c5 00 3300 06000000 04000000 01000000 02000000 03000000");
        let frame = ethernet(0xd1f0, &[&pdu[..], &[0; 30]].concat());
        tshark.survives_truncation(&[frame], "weir_efcp");
        let short = ethernet(0xd1f0, &pdu[..12]);
        assert_eq!(tshark.count(&[short], "weir_efcp.truncated"), 1, "{dialect}");
    }
}
