//! ARP of shim DIFs.

mod common;

use common::hex;
use proptest::prelude::*;
use weir_rina::arp::{ArpPacket, MacAddress, Operation, ShimDialect};
use weir_rina::{ApplicationName, Reason};

fn mac(last: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, last])
}

/// Computed by hand from RFC 826: types 1 and 0xD1F0, lengths 6 and 7, the shorter name padded.
const REQUEST: &str = "0001 d1f0 06 07 0001 020000000001 612e6469660000 000000000000 62622e646966 00";

#[test]
fn a_request_and_its_reply() {
    let request = ArpPacket {
        operation: Operation::Request,
        sender_mac: mac(1),
        sender: b"a.dif",
        target_mac: MacAddress::default(),
        target: b"bb.difs",
    };
    let bytes = hex("0001 d1f0 06 07 0001 020000000001 612e646966 0000 000000000000 62622e64696673");
    let mut encoded = Vec::new();
    request.encode(&mut encoded).unwrap();
    assert_eq!(encoded, bytes);
    assert_eq!(ArpPacket::decode(&bytes), Ok(request));
    let names = (ApplicationName::process("a.dif"), ApplicationName::process("bb.difs"));
    assert_eq!(request.names(ShimDialect::Rlite), Ok(names));

    let mut reply = Vec::new();
    request.reply(mac(2)).encode(&mut reply).unwrap();
    let bytes = hex("0001 d1f0 06 07 0002 020000000002 62622e64696673 020000000001 612e646966 0000");
    assert_eq!(reply, bytes);
}

#[test]
fn arp_of_other_protocols_and_operations_is_refused() {
    let good = hex(REQUEST);
    assert!(ArpPacket::decode(&good).is_ok());
    for (at, reason) in [
        (0, Reason::ArpType),
        (3, Reason::ArpType),
        (4, Reason::ArpType),
        (7, Reason::ArpOperation),
    ] {
        let mut bytes = good.clone();
        bytes[at] ^= 0x1f;
        assert_eq!(ArpPacket::decode(&bytes).unwrap_err().reason, reason, "byte {at}");
    }
    let ip = hex("0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002");
    let error = ArpPacket::decode(&ip).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ARP protocol type at byte 2: expected 53744, found 2048"
    );
}

#[test]
fn each_shim_has_its_ether_type_and_names() {
    for dialect in [ShimDialect::Rlite, ShimDialect::Irati] {
        assert_eq!(ShimDialect::from_ether_type(dialect.ether_type()), Some(dialect));
    }
    assert_eq!(ShimDialect::from_ether_type(0x0800), None);
    let name = ApplicationName {
        process: "r1".into(),
        process_instance: "1".into(),
        ..ApplicationName::default()
    };
    let packet = |text: &'static [u8]| ArpPacket {
        operation: Operation::Request,
        sender_mac: mac(1),
        sender: text,
        target_mac: mac(2),
        target: text,
    };
    let both = Ok((name.clone(), name));
    assert_eq!(packet(b"r1|1").names(ShimDialect::Rlite), both);
    assert_eq!(packet(b"r1/1//").names(ShimDialect::Irati), both);
    assert_eq!(packet(b"").names(ShimDialect::Irati).unwrap_err().reason, Reason::Name);
}

proptest! {
    #[test]
    fn decoding_is_the_inverse_of_encoding(
        is_reply in any::<bool>(),
        macs in any::<[[u8; 6]; 2]>(),
        sender in "[a-z|/]{0,40}",
        target in "[a-z|/]{0,40}",
    ) {
        let packet = ArpPacket {
            operation: if is_reply { Operation::Reply } else { Operation::Request },
            sender_mac: MacAddress(macs[0]),
            sender: sender.as_bytes(),
            target_mac: MacAddress(macs[1]),
            target: target.as_bytes(),
        };
        let mut bytes = Vec::new();
        packet.encode(&mut bytes).unwrap();
        for end in 0..bytes.len() {
            prop_assert!(ArpPacket::decode(&bytes[..end]).is_err());
        }
        bytes.extend([0; 18]);
        prop_assert_eq!(ArpPacket::decode(&bytes), Ok(packet));
    }

    #[test]
    fn bytes_make_no_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut bytes = bytes;
        for start in [&[][..], &[0, 1, 0xd1, 0xf0, 6]] {
            for (byte, value) in bytes.iter_mut().zip(start) {
                *byte = *value;
            }
            if let Ok(packet) = ArpPacket::decode(&bytes) {
                for dialect in [ShimDialect::Rlite, ShimDialect::Irati] {
                    let _ = packet.names(dialect);
                }
            }
        }
    }
}
