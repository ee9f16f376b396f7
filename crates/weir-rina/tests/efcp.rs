//! EFCP in all formats: vectors, and properties of encoders and decoders.

mod common;

use common::hex;
use proptest::prelude::*;
use weir_rina::efcp::{
    Address, CepId, Control, ControlFields, ControlType, Dialect, Flags, Irati, Kind, Paper, Pci, PduType, QosId,
    Rlite, RliteChecksum, Widths,
};
use weir_rina::{ByteOrder, EncodeError, Expected, Reason, Width};

const INET: Rlite = Rlite {
    checksum: RliteChecksum::Internet,
    order: ByteOrder::Little,
};

fn pci(kind: Kind) -> Pci {
    Pci {
        destination: Address(2),
        source: Address(1),
        qos: QosId(1),
        destination_cep: CepId(7),
        source_cep: CepId(5),
        flags: Flags::NONE,
        sequence: 1,
        ttl: None,
        kind,
    }
}

/// Encodes to the bytes, and decodes them to the same.
#[track_caller]
fn check(dialect: &dyn Dialect, pci: &Pci, payload: &[u8], bytes: &str) {
    let bytes = hex(bytes);
    let mut encoded = Vec::new();
    dialect.encode(pci, payload, &mut encoded).unwrap();
    assert_eq!(encoded, bytes, "encoded");
    let pdu = dialect.decode(&bytes).unwrap();
    assert_eq!((&pdu.pci, pdu.payload), (pci, payload), "decoded");
    let kind = pci.kind.pdu_type();
    assert_eq!(dialect.pci_bytes(kind), Some(bytes.len() - payload.len()));
}

#[test]
fn vectors_of_the_paper() {
    let data = Pci {
        flags: Flags::DRF,
        ..pci(Kind::Data)
    };
    let bytes = "0100020001010007000580800018000000017b5952494e41";
    check(&Paper, &data, b"RINA", bytes);
    let marked = Pci {
        flags: Flags::DRF.with(Flags::ECN),
        ..data
    };
    let bytes = "0100020001010007000580810018000000017b5852494e41";
    check(&Paper, &marked, b"RINA", bytes);
    // TRIA's vector: version, addresses, type and length only.
    let plain = Pci {
        qos: QosId(0),
        destination_cep: CepId(0),
        source_cep: CepId(0),
        sequence: 0,
        ..pci(Kind::Data)
    };
    check(&Paper, &plain, b"", "0100020001000000000080000014000000007beb");
}

/// Packet tests of `p4/programs/rina_router`.
#[test]
fn packets_of_the_p4_program() {
    let to_9 = Pci {
        source_cep: CepId(9),
        ..pci(Kind::Data)
    };
    let text = b"a weir in a stream, without IP..";
    let bytes =
        "0100020001010007000980000034000000017bb9 61207765697220696e20612073747265616d2c20776974686f75742049502e2e";
    check(&Paper, &to_9, text, bytes);
    // A short PDU in an Ethernet frame that is padded.
    let padded = hex("0100020001010007000980000014000000017bd9 0000000000000000");
    let pdu = Paper.decode(&padded).unwrap();
    assert_eq!((pdu.pci, pdu.payload), (to_9, &[][..]));
    let codes: Vec<u8> = PduType::all().filter_map(|kind| Paper.code(kind)).collect();
    let of_the_parser = [
        0x40, 0x80, 0xc0, 0xc1, 0xc2, 0xc4, 0xc5, 0xc6, 0xc9, 0xca, 0xcd, 0xce, 0xcf,
    ];
    assert_eq!(codes, of_the_parser);
}

#[test]
fn vectors_of_rlite() {
    let fields = ControlFields {
        acknowledged: 10,
        new_right: 520,
        new_left: 8,
        my_right: 512,
        ..ControlFields::default()
    };
    let kind = ControlType::AckFlow;
    let control = Pci {
        qos: QosId(0),
        sequence: 3,
        ttl: Some(64),
        ..pci(Kind::Control(Control { kind, fields }))
    };
    let tail = "00000000 0a000000 08020000 08000000 00000000 00020000";
    let head = |sum: &str| format!("00cc0000{sum}40000300000002000000010000000700050034000000{tail}");
    check(&INET, &control, b"", &head("5f2f"));
    check(&Rlite::default(), &control, b"", &head("0000"));
    let data = Pci {
        qos: QosId(0),
        sequence: 0,
        ttl: Some(64),
        flags: Flags::DRF,
        ..pci(Kind::Data)
    };
    let bytes = "008080006ff44000000000000200000001000000070005002000000052494e41";
    check(&INET, &data, b"RINA", bytes);
}

/// Sizes and order of fields as `shared/facts/rina.md` gives them; each field has its own value.
#[test]
fn vectors_of_irati() {
    let data = Pci {
        flags: Flags::DRF,
        ..pci(Kind::Data)
    };
    check(
        &Irati::default(),
        &data,
        b"RINA",
        "01 0200 0100 0100 0700 0500 80 80 1700 01000000 52494e41",
    );
    let fields = ControlFields {
        acknowledged: 1,
        last_control: 2,
        new_left: 3,
        new_right: 4,
        my_left: 5,
        my_right: 6,
        rate: 7,
        time_unit: 8,
    };
    let of = |kind: ControlType| {
        let known = Irati::default().control_fields(kind).unwrap();
        let fields = fields.only(known);
        pci(Kind::Control(Control { kind, fields }))
    };
    let start = "01 0200 0100 0100 0700 0500";
    for (kind, rest) in [
        (ControlType::Ack, "c1 00 1700 01000000 01000000"),
        (
            ControlType::Flow,
            "c4 00 2700 01000000 04000000 05000000 06000000 07000000 08000000",
        ),
        (
            ControlType::AckFlow,
            "c5 00 3300 01000000 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000",
        ),
        (
            ControlType::ControlAck,
            "c0 00 2f00 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000",
        ),
        (
            ControlType::Rendezvous,
            "cf 00 2f00 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000",
        ),
    ] {
        check(&Irati::default(), &of(kind), b"", &format!("{start}{rest}"));
    }
    let sizes = |kind| Irati::default().pci_bytes(kind);
    assert_eq!(sizes(PduType::Management), Some(19));
    assert_eq!(sizes(PduType::Control(ControlType::Ack)), Some(23));
}

#[test]
fn errors_name_field_offset_expected_and_found() {
    let good = hex("0100020001010007000580800018000000017b5952494e41");
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Paper.decode(&bytes).unwrap_err()
    };
    let version = with(0, 2);
    assert_eq!(version.to_string(), "EFCP version at byte 0: expected 1, found 2");
    let sum = with(11, 0);
    let (expected, found) = (Expected::Exactly(0x7bd9), 0x7b59);
    assert_eq!(
        (sum.reason, sum.offset, sum.expected, sum.found),
        (Reason::Checksum, 18, expected, found)
    );
    // Type 0x81 and length 0x19, with checksums that fit.
    let kind = Paper
        .decode(&hex("0100020001010007000581800018000000017a59"))
        .unwrap_err();
    assert_eq!((kind.reason, kind.offset, kind.found), (Reason::PduType, 10, 0x81));
    let length = Paper
        .decode(&hex("0100020001010007000580800019000000017b5852494e41"))
        .unwrap_err();
    assert_eq!(
        length.to_string(),
        "EFCP length at byte 12: expected at most 24, found 25"
    );
    let short = Paper
        .decode(&hex("0100020001010007000580800013000000017b5e"))
        .unwrap_err();
    assert_eq!((short.reason, short.expected), (Reason::Length, Expected::AtLeast(20)));
    let cut = Rlite::default().decode(&good).unwrap_err();
    assert_eq!(
        (cut.reason, cut.expected, cut.found),
        (Reason::Truncated, Expected::Bytes(28), 24)
    );
}

#[test]
fn values_that_exceed_a_field_are_refused_and_leave_nothing() {
    let wide = Pci {
        destination: Address(0x1_0000),
        ..pci(Kind::Data)
    };
    for dialect in [&Paper as &dyn Dialect, &Irati::default()] {
        let mut out = b"before".to_vec();
        let error = dialect.encode(&wide, b"", &mut out).unwrap_err();
        let limit = 0xffff;
        let expected = EncodeError::TooLarge {
            field: "EFCP destination",
            limit,
            found: 0x1_0000,
        };
        assert_eq!((error, &out[..]), (expected, &b"before"[..]));
        let error = dialect.encode(&pci(Kind::Data), &[0; 65_536], &mut out).unwrap_err();
        assert!(matches!(
            error,
            EncodeError::TooLarge {
                field: "EFCP length",
                ..
            }
        ));
    }
    let fields = ControlFields::default();
    let rendezvous = pci(Kind::Control(Control {
        kind: ControlType::Rendezvous,
        fields,
    }));
    let error = INET.encode(&rendezvous, b"", &mut Vec::new()).unwrap_err();
    let kind = "rendezvous";
    assert_eq!(error, EncodeError::NoSuchPdu { dialect: "rlite", kind });
}

#[test]
fn routers_of_rlite_decrement_the_ttl_and_patch_the_checksum() {
    for dialect in [
        INET,
        Rlite::default(),
        Rlite {
            order: ByteOrder::Big,
            ..INET
        },
    ] {
        let mut bytes = Vec::new();
        dialect.encode(&pci(Kind::Data), b"odd", &mut bytes).unwrap();
        for ttl in (1..64).rev() {
            assert_eq!(dialect.decrement_ttl(&mut bytes), Ok(ttl));
            assert_eq!(dialect.decode(&bytes).unwrap().pci.ttl, Some(ttl));
        }
        assert_eq!(dialect.decrement_ttl(&mut bytes).unwrap_err().reason, Reason::Ttl);
        assert_eq!(
            dialect.decrement_ttl(&mut bytes[..27]).unwrap_err().reason,
            Reason::Truncated
        );
    }
}

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::One), Just(Width::Two), Just(Width::Four)]
}

fn order() -> impl Strategy<Value = ByteOrder> {
    prop_oneof![Just(ByteOrder::Big), Just(ByteOrder::Little)]
}

prop_compose! {
    fn irati()(
        (address, cep, qos) in (width(), width(), width()),
        // A length of 1 byte cannot express control PDUs with payload.
        length in prop_oneof![Just(Width::Two), Just(Width::Four)],
        (sequence, control_sequence, rate, time_unit) in (width(), width(), width(), width()),
        order in order(),
    ) -> Irati {
        let widths = Widths { address, cep, qos, length, sequence, control_sequence, rate, time_unit };
        Irati { widths, order }
    }
}

/// Widths of a dialect's fields.
#[derive(Debug, Clone, Copy)]
struct Limits {
    widths: Widths,
    flags: u16,
    ttl: bool,
}

fn dialect() -> impl Strategy<Value = (Box<dyn Dialect>, Limits)> {
    let wide = Widths {
        qos: Width::One,
        ..Widths::default()
    };
    let paper = Limits {
        widths: wide,
        flags: 0xff,
        ttl: false,
    };
    let rlite_widths = Widths {
        address: Width::Four,
        ..Widths::default()
    };
    let rlite = Limits {
        widths: rlite_widths,
        flags: 0xffff,
        ttl: true,
    };
    prop_oneof![
        Just(()).prop_map(move |()| (Box::new(Paper) as Box<dyn Dialect>, paper)),
        irati().prop_map(|irati| {
            let limits = Limits {
                widths: irati.widths,
                flags: 0xff,
                ttl: false,
            };
            (Box::new(irati) as Box<dyn Dialect>, limits)
        }),
        (any::<bool>(), order()).prop_map(move |(sum, order)| {
            let checksum = if sum {
                RliteChecksum::Internet
            } else {
                RliteChecksum::None
            };
            (Box::new(Rlite { checksum, order }) as Box<dyn Dialect>, rlite)
        }),
    ]
}

/// A PCI that the dialect can express.
fn fitting(dialect: &dyn Dialect, limits: Limits, kind: usize, v: [u32; 8], c: [u32; 8]) -> Pci {
    let kinds: Vec<PduType> = PduType::all().filter(|kind| dialect.code(*kind).is_some()).collect();
    let w = limits.widths;
    let kind = match kinds[kind % kinds.len()] {
        PduType::Management => Kind::Management,
        PduType::Data => Kind::Data,
        PduType::Control(kind) => {
            let fields = ControlFields {
                acknowledged: c[0] & w.sequence.max(),
                last_control: c[1] & w.control_sequence.max(),
                new_left: c[2] & w.sequence.max(),
                new_right: c[3] & w.sequence.max(),
                my_left: c[4] & w.sequence.max(),
                my_right: c[5] & w.sequence.max(),
                rate: c[6] & w.rate.max(),
                time_unit: c[7] & w.time_unit.max(),
            };
            let fields = fields.only(dialect.control_fields(kind).unwrap());
            Kind::Control(Control { kind, fields })
        }
    };
    let sequence = match kind {
        Kind::Management | Kind::Data => w.sequence,
        Kind::Control(_) => w.control_sequence,
    };
    Pci {
        destination: Address(v[0] & w.address.max()),
        source: Address(v[1] & w.address.max()),
        qos: QosId(v[2] & w.qos.max()),
        destination_cep: CepId(v[3] & w.cep.max()),
        source_cep: CepId(v[4] & w.cep.max()),
        flags: Flags(v[5] as u16 & limits.flags),
        sequence: v[6] & sequence.max(),
        ttl: limits.ttl.then_some(v[7] as u16),
        kind,
    }
}

proptest! {
    #[test]
    fn decoding_is_the_inverse_of_encoding_in_every_dialect(
        (dialect, limits) in dialect(),
        kind in any::<usize>(),
        values in any::<[u32; 8]>(),
        control in any::<[u32; 8]>(),
        payload in prop::collection::vec(any::<u8>(), 0..40),
        padding in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let pci = fitting(&*dialect, limits, kind, values, control);
        let mut bytes = Vec::new();
        dialect.encode(&pci, &payload, &mut bytes).unwrap();
        prop_assert_eq!(Some(bytes.len() - payload.len()), dialect.pci_bytes(pci.kind.pdu_type()));
        for end in 0..bytes.len() {
            prop_assert!(dialect.decode(&bytes[..end]).is_err(), "{} bytes", end);
        }
        bytes.extend(padding);
        let pdu = dialect.decode(&bytes).unwrap();
        prop_assert_eq!(pdu.pci, pci);
        prop_assert_eq!(pdu.payload, &payload[..]);
    }

    #[test]
    fn bytes_that_are_decoded_are_encoded_again(
        (dialect, _) in dialect(),
        mut bytes in prop::collection::vec(any::<u8>(), 0..80),
        guide in any::<bool>(),
    ) {
        if guide && !bytes.is_empty() {
            bytes[0] = 1;
        }
        match dialect.decode(&bytes) {
            Ok(pdu) => {
                let mut again = Vec::new();
                dialect.encode(&pdu.pci, pdu.payload, &mut again).unwrap();
                let second = dialect.decode(&again).unwrap();
                prop_assert_eq!((second.pci, second.payload), (pdu.pci, pdu.payload));
            }
            Err(error) => prop_assert!(error.offset <= bytes.len()),
        }
    }

    #[test]
    fn a_changed_bit_of_a_checksummed_pdu_is_noticed(at in 0_usize..24, bit in 0_u8..8) {
        let mut bytes = Vec::new();
        Paper.encode(&pci(Kind::Data), b"RINA", &mut bytes).unwrap();
        if at < 20 {
            bytes[at] ^= 1 << bit;
            prop_assert!(Paper.decode(&bytes).is_err());
        }
        let mut bytes = Vec::new();
        INET.encode(&pci(Kind::Data), b"RINA", &mut bytes).unwrap();
        bytes[at + 8] ^= 1 << bit;
        prop_assert!(INET.decode(&bytes).is_err());
    }
}
