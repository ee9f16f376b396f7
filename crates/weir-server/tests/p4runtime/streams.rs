//! Packets and digests (sections "Packet I/O", "DigestEntry", "Stream Error Reporting").

use crate::common::*;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::p4_data::Data;
use weir_proto::p4::v1::stream_message_request::Update as Say;
use weir_proto::p4::v1::stream_message_response::Update as Hear;

fn metadata(fields: &[(u32, &[u8])]) -> Vec<pb::PacketMetadata> {
    let one = |&(metadata_id, value): &(u32, &[u8])| pb::PacketMetadata {
        metadata_id,
        value: value.to_vec(),
    };
    fields.iter().map(one).collect()
}

async fn sent(bench: &Bench) -> Vec<(u32, Vec<u8>)> {
    for _ in 0..100 {
        let sent = bench.switch.take_sent();
        if !sent.is_empty() {
            return sent.into_iter().map(|o| (o.port, o.bytes)).collect();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    Vec::new()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_out_leaves_where_its_metadata_says() {
    let bench = Bench::everything().await;
    let primary = bench.primary().await;
    // Padding may be given or left out.
    for fields in [metadata(&[(1, &[1, 0x2c]), (2, &[0])]), metadata(&[(1, &[1, 0x2c])])] {
        let packet = pb::PacketOut {
            payload: question(0, 0, 5),
            metadata: fields,
        };
        primary.say(Say::Packet(packet)).await;
        assert_eq!(sent(&bench).await, [(300, question(0, 0, 5))]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_out_that_is_not_as_p4info_says_is_dropped_with_an_error() {
    let bench = Bench::everything().await;
    let mut primary = bench.primary().await;
    for (fields, code) in [
        (metadata(&[(1, &[2, 0])]), Code::OutOfRange),
        (metadata(&[(7, &[1])]), Code::InvalidArgument),
        (metadata(&[(1, &[1]), (1, &[1])]), Code::InvalidArgument),
        (metadata(&[]), Code::InvalidArgument),
    ] {
        let packet = pb::PacketOut {
            payload: vec![1],
            metadata: fields,
        };
        primary.say(Say::Packet(packet.clone())).await;
        let error = match primary.next().await {
            Ok(Hear::Error(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(error.canonical_code, code as i32);
        let details = pb::PacketOutError {
            packet_out: Some(packet),
        };
        assert_eq!(error.details, Some(pb::stream_error::Details::PacketOut(details)));
    }
    let mut backup = Controller::open(&bench.client).await;
    backup.arbitrate(hello("", None)).await;
    backup.arbitration().await;
    backup.say(Say::Packet(pb::PacketOut::default())).await;
    assert!(matches!(backup.next().await, Ok(Hear::Error(e)) if e.canonical_code == Code::PermissionDenied as i32));
    backup
        .say(Say::DigestAck(pb::DigestListAck {
            digest_id: 1,
            list_id: 1,
        }))
        .await;
    assert!(matches!(backup.next().await, Ok(Hear::Error(e)) if e.canonical_code == Code::PermissionDenied as i32));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_for_the_controller_reaches_the_primary_with_its_metadata() {
    let bench = Bench::everything().await;
    let mut primary = bench.primary().await;
    let mut backup = Controller::open(&bench.client).await;
    backup.arbitrate(hello("", None)).await;
    backup.arbitration().await;
    assert!(bench.switch.send(0x102, &question(33, 0, 0x55)).is_empty());
    let packet = match primary.next().await {
        Ok(Hear::Packet(packet)) => packet,
        other => panic!("{other:?}"),
    };
    assert_eq!(packet.payload, question(33, 0, 0x55));
    assert_eq!(packet.metadata, metadata(&[(1, &[1, 2]), (2, &[0x55])]));
    assert!(backup.is_silent().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_come_in_lists_without_duplicates_until_they_are_acknowledged() {
    let bench = Bench::everything().await;
    let mut primary = bench.primary().await;
    let digest_id = bench.id("seen_t");
    let config = |max_timeout_ns, max_list_size, ack_timeout_ns| {
        Entity::DigestEntry(pb::DigestEntry {
            digest_id,
            config: Some(pb::digest_entry::Config {
                max_timeout_ns,
                max_list_size,
                ack_timeout_ns,
            }),
        })
    };
    // There are no notifications before they are enabled.
    bench.ask(32, 0, 1);
    assert_eq!(bench.modify(config(0, 1, 0)).await, Err(Code::NotFound));
    bench
        .insert(config(1_000_000_000, 2, 1_000_000_000))
        .await
        .expect("fits");
    assert_eq!(bench.insert(config(0, 1, 0)).await, Err(Code::AlreadyExists));
    assert_eq!(bench.insert(config(-1, 1, 0)).await, Err(Code::InvalidArgument));
    assert_eq!(
        bench.read(Entity::DigestEntry(pb::DigestEntry::default())).await,
        [config(1_000_000_000, 2, 1_000_000_000)]
    );
    bench.ask(32, 0, 5);
    bench.ask(32, 0, 5);
    assert!(primary.is_silent().await);
    bench.ask(32, 0, 6);
    let list = |update| match update {
        Ok(Hear::Digest(list)) => list,
        other => panic!("{other:?}"),
    };
    let first = list(primary.next().await);
    let seen = |key: u8| {
        let part = |b: Vec<u8>| pb::P4Data {
            data: Some(Data::Bitstring(b)),
        };
        let members = vec![part(vec![key]), part(vec![1])];
        pb::P4Data {
            data: Some(Data::Struct(pb::P4StructLike { members })),
        }
    };
    assert_eq!((first.digest_id, &first.data), (digest_id, &vec![seen(5), seen(6)]));
    assert!(first.timestamp > 0 && first.list_id > 0);
    // What is not acknowledged does not come again.
    bench.ask(32, 0, 5);
    bench.ask(32, 0, 6);
    assert!(primary.is_silent().await);
    let ack = pb::DigestListAck {
        digest_id,
        list_id: first.list_id,
    };
    primary.say(Say::DigestAck(ack)).await;
    primary
        .say(Say::DigestAck(pb::DigestListAck {
            digest_id: 77,
            list_id: 1,
        }))
        .await;
    assert!(matches!(primary.next().await, Ok(Hear::Error(e)) if e.canonical_code == Code::InvalidArgument as i32));
    bench.ask(32, 0, 5);
    assert!(primary.is_silent().await);
    bench.switch.clock().advance(1_000_000_000);
    assert_eq!(list(primary.next().await).data, [seen(5)]);
    bench.delete(config(0, 0, 0)).await.expect("is there");
    bench.ask(32, 0, 9);
    assert!(primary.is_silent().await);
}

/// A program whose digests have a header union, a varbit and a header with a struct.
const UNIONS: &str = include_str!("../p4/unions.p4");

#[tokio::test(flavor = "multi_thread")]
async fn digests_tell_which_header_of_a_union_is_valid_and_how_long_a_varbit_is() {
    let bench = Bench::new(Some(compile(UNIONS)), weir_server::p4rt::Config::default()).await;
    let mut primary = bench.primary().await;
    let enable = Entity::DigestEntry(pb::DigestEntry {
        digest_id: bench.id("seen_t"),
        config: Some(pb::digest_entry::Config {
            max_timeout_ns: 0,
            max_list_size: 1,
            ack_timeout_ns: 0,
        }),
    });
    bench.insert(enable).await.expect("fits");
    let header = |bitstrings: &[&[u8]]| pb::P4Header {
        is_valid: true,
        bitstrings: bitstrings.iter().map(|b| b.to_vec()).collect(),
    };
    let union = |name: &str, bitstrings: &[&[u8]]| pb::P4HeaderUnion {
        valid_header_name: name.to_owned(),
        valid_header: Some(header(bitstrings)),
    };
    let nothing = pb::P4HeaderUnion::default;
    let invalid = pb::P4Header::default;
    let cases: [(&[u8], pb::P4HeaderUnion, pb::P4Header, pb::P4Header); 5] = [
        (&[1, 0x11], union("one", &[&[0x11]]), invalid(), invalid()),
        (
            &[2, 0x22, 0x33, 0xff],
            union("two", &[&[0x22, 0x33], &[0xff]]),
            invalid(),
            invalid(),
        ),
        (&[3, 9, 0, 0, 7], nothing(), header(&[&[9], &[0, 0, 7]]), invalid()),
        (&[4, 0x1e, 5], nothing(), invalid(), header(&[&[1], &[0xfe], &[5]])),
        (&[5], nothing(), invalid(), invalid()),
    ];
    for (packet, either, varying, nested) in cases {
        assert!(bench.switch.send(1, packet).is_empty(), "it is dropped");
        let Ok(Hear::Digest(list)) = primary.next().await else {
            panic!("no digest of {packet:?}");
        };
        let members = [
            Data::HeaderUnion(either),
            Data::Header(varying),
            Data::Header(nested),
            Data::Bitstring(vec![1]),
        ];
        let members = members.map(|data| pb::P4Data { data: Some(data) }).to_vec();
        let data = Some(Data::Struct(pb::P4StructLike { members }));
        assert_eq!(list.data, [pb::P4Data { data }], "{packet:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_register_of_headers_with_structs_has_a_value_for_each_of_their_fields() {
    let program = compile(UNIONS);
    let bench = Bench::new(Some(program), weir_server::p4rt::Config::default()).await;
    let _primary = bench.primary().await;
    let register = |bitstrings: &[&[u8]]| {
        let header = pb::P4Header {
            is_valid: true,
            bitstrings: bitstrings.iter().map(|b| b.to_vec()).collect(),
        };
        Entity::RegisterEntry(pb::RegisterEntry {
            register_id: bench.id("structs"),
            index: Some(pb::Index { index: 0 }),
            data: Some(pb::P4Data {
                data: Some(Data::Header(header)),
            }),
        })
    };
    assert!(bench.switch.send(1, &[4, 0x1e, 5]).is_empty(), "it is dropped");
    assert_eq!(bench.read(register(&[])).await, [register(&[&[1], &[0xfe], &[5]])]);
    let other = register(&[&[0xf], &[1], &[0xff]]);
    bench.modify(other.clone()).await.expect("it fits");
    assert_eq!(bench.read(register(&[])).await, [other]);
    let outcome = bench.modify(register(&[&[1], &[5]])).await;
    assert_eq!(outcome, Err(Code::InvalidArgument), "a field is missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_of_header_unions_and_varbits_are_refused() {
    let bench = Bench::new(Some(compile(UNIONS)), weir_server::p4rt::Config::default()).await;
    let _primary = bench.primary().await;
    for name in ["unions", "varbits"] {
        let register = |data| {
            Entity::RegisterEntry(pb::RegisterEntry {
                register_id: bench.id(name),
                index: Some(pb::Index { index: 0 }),
                data,
            })
        };
        assert_eq!(bench.read_error(register(None)).await, Code::Unimplemented, "{name}");
        let union = Some(Data::HeaderUnion(pb::P4HeaderUnion::default()));
        let outcome = bench.modify(register(Some(pb::P4Data { data: union }))).await;
        assert_eq!(outcome, Err(Code::Unimplemented), "{name}");
    }
}
