//! Externs without entities of their own: custom CRCs.

use crate::common::*;
use tonic::Code;
use weir_proto::custom_crc::CustomCrc;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::p4_data::Data;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_proto::prost::Message;
use weir_proto::prost_types::Any;
use weir_server::p4rt::Config;

const SOURCE: &str = include_str!("../p4/custom_crc.p4");

async fn bench(defines: &str) -> Bench {
    let source = format!("{defines}\n{SOURCE}");
    Bench::new(Some(compile(&source)), Config::default()).await
}

fn bits(bytes: &[u8]) -> Data {
    Data::Bitstring(bytes.to_vec())
}

fn of(members: Vec<Data>) -> pb::P4Data {
    let members = members.into_iter().map(|data| pb::P4Data { data: Some(data) });
    pb::P4Data {
        data: Some(Data::Struct(pb::P4StructLike {
            members: members.collect(),
        })),
    }
}

fn entry(extern_type_id: u32, extern_id: u32, data: Option<pb::P4Data>) -> Entity {
    Entity::ExternEntry(pb::ExternEntry {
        extern_type_id,
        extern_id,
        entry: data.map(|data| Any {
            type_url: "type.googleapis.com/p4.v1.P4Data".to_owned(),
            value: data.encode_to_vec(),
        }),
    })
}

/// CRC-32C, or what a client might take for it.
fn castagnoli(polynomial: Data) -> pb::P4Data {
    let ones = || bits(&[0xff; 4]);
    of(vec![polynomial, ones(), ones(), Data::Bool(true), Data::Bool(true)])
}

fn crc32(data: pb::P4Data) -> Entity {
    entry(0x82, 0x8200_0001, Some(data))
}

/// CRC-16/CCITT-FALSE.
fn ccitt() -> Entity {
    let members = vec![
        bits(&[0x10, 0x21]),
        bits(&[0xff, 0xff]),
        bits(&[0]),
        Data::Bool(false),
        Data::Bool(false),
    ];
    entry(0x81, 0x8100_0001, Some(of(members)))
}

fn answer(bench: &Bench) -> Vec<u8> {
    bench.switch.send(1, b"123456789").remove(0).bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_of_custom_crcs_are_written_and_read() {
    let bench = bench("#define CRC16\n#define CRC32").await;
    let _primary = bench.primary().await;
    assert_eq!(answer(&bench), [0xbb, 0x3d, 0xcb, 0xf4, 0x39, 0x26]);
    let written = crc32(castagnoli(bits(&[0x1e, 0xdc, 0x6f, 0x41])));
    bench.modify(written.clone()).await.expect("fits");
    bench.modify(ccitt()).await.expect("fits");
    assert_eq!(answer(&bench), [0x29, 0xb1, 0xe3, 0x06, 0x92, 0x83]);
    // By instance, by type, and all of them; ids that are 0 are any.
    assert_eq!(bench.read(entry(0x82, 0x8200_0001, None)).await, [written.clone()]);
    assert_eq!(bench.read(entry(0x82, 0, None)).await, [written.clone()]);
    assert_eq!(bench.read(entry(0, 0, None)).await, [ccitt(), written]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calculations_are_instances_with_parameters_of_their_own() {
    let source = include_str!("../p4/calculations.p4");
    let bench = Bench::new(Some(compile(source)), Config::default()).await;
    let _primary = bench.primary().await;
    let listed = bench.info.externs.iter().flat_map(|e| &e.instances);
    let listed: Vec<(u32, &str)> = listed
        .filter_map(|i| i.preamble.as_ref())
        .map(|p| (p.id, p.name.as_str()))
        .collect();
    let expected = [
        (0x8100_0001, "crc16_custom"),
        (0x8100_0006, "calc_3"),
        (0x8100_0007, "calc_4"),
        (0x8100_0008, "calc_5"),
        (0x8200_0001, "crc32_custom"),
        (0x8200_0002, "calc"),
        (0x8200_0004, "calc_1"),
        (0x8200_0005, "calc_2"),
    ];
    assert_eq!(listed, expected);
    // The file in the place of bmv2's JSON lists them for clients of Thrift.
    let json = weir_server::container::encode(&compile(source), "calculations.p4");
    let listed = "{\n      \"name\": \"calc_1\",\n      \"id\": 2,\n      \"algo\": \"crc32_custom\"\n    }";
    assert!(json.contains(listed), "{json}");
    // Without parameters of its own it has no entry.
    assert_eq!(bench.read(entry(0x82, 0x8200_0004, None)).await, []);
    let before = answer(&bench);
    let written = entry(0x82, 0x8200_0004, Some(castagnoli(bits(&[0x1e, 0xdc, 0x6f, 0x41]))));
    bench.modify(written.clone()).await.expect("fits");
    let after = answer(&bench);
    assert_eq!(after[8..12], [0xe3, 0x06, 0x92, 0x83]);
    assert_eq!((&after[..8], &after[12..]), (&before[..8], &before[12..]));
    assert_eq!(bench.read(entry(0x82, 0x8200_0004, None)).await, [written.clone()]);
    assert_eq!(bench.read(entry(0x82, 0, None)).await.len(), 2);
    assert!(bench.read(entry(0, 0, None)).await.contains(&written));
    // `calc_0` hashes by no custom CRC, and `calc_3` by one of another width.
    for id in [0x8200_0003, 0x8200_0006] {
        let parameters = castagnoli(bits(&[1]));
        assert_eq!(
            bench.modify(entry(0x82, id, Some(parameters))).await,
            Err(Code::InvalidArgument)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p4info_lists_the_custom_crcs_that_the_program_uses() {
    for (defines, names) in [
        ("#define CRC16", &["crc16_custom"][..]),
        ("#define CRC16\n#define CRC32", &["crc16_custom", "crc32_custom"]),
        ("", &[]),
    ] {
        let bench = bench(defines).await;
        let listed: Vec<&str> = bench.info.externs.iter().map(|e| e.extern_type_name.as_str()).collect();
        assert_eq!(listed, names);
        for described in &bench.info.externs {
            let crc = CustomCrc::of_type(described.extern_type_id).expect("is known");
            let preamble = described.instances[0].preamble.as_ref().expect("is there");
            assert_eq!((preamble.id, preamble.name.as_str()), (crc.extern_id, crc.name));
            assert_eq!(preamble.id >> 24, described.extern_type_id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_are_no_parameters_are_refused_and_change_nothing() {
    let bench = bench("#define CRC32").await;
    let _primary = bench.primary().await;
    let good = || castagnoli(bits(&[1]));
    let other_type = Entity::ExternEntry(pb::ExternEntry {
        extern_type_id: 0x82,
        extern_id: 0x8200_0001,
        entry: Some(Any {
            type_url: "type.googleapis.com/p4.v1.P4Ids".to_owned(),
            value: Vec::new(),
        }),
    });
    for (entity, code) in [
        (entry(0, 0, Some(good())), Code::InvalidArgument),
        (entry(0x84, 0x8400_0001, Some(good())), Code::InvalidArgument),
        // The program does not use this one.
        (ccitt(), Code::InvalidArgument),
        (entry(0x82, 0, Some(good())), Code::InvalidArgument),
        (entry(0x82, 0x8200_0009, Some(good())), Code::InvalidArgument),
        (entry(0x82, 0x8200_0001, None), Code::InvalidArgument),
        (other_type, Code::InvalidArgument),
        (crc32(castagnoli(bits(&[1, 0, 0, 0, 0]))), Code::OutOfRange),
        (crc32(castagnoli(Data::Bool(true))), Code::InvalidArgument),
        (crc32(of(vec![bits(&[1]); 4])), Code::InvalidArgument),
        (crc32(of(vec![bits(&[1]); 400])), Code::InvalidArgument),
        (crc32(pb::P4Data { data: Some(bits(&[1])) }), Code::InvalidArgument),
    ] {
        assert_eq!(bench.modify(entity.clone()).await, Err(code), "{entity:?}");
    }
    assert_eq!(bench.insert(crc32(good())).await, Err(Code::InvalidArgument));
    assert_eq!(bench.delete(crc32(good())).await, Err(Code::InvalidArgument));
    for query in [
        entry(0x81, 0, None),
        entry(0x84, 0, None),
        entry(0x82, 7, None),
        entry(0, 0x8200_0001, None),
    ] {
        assert_eq!(bench.read_error(query).await, Code::InvalidArgument);
    }
    // A batch that is all or nothing takes parameters back, too.
    let updates = vec![
        update(pb::update::Type::Modify, crc32(good())),
        update(pb::update::Type::Modify, ccitt()),
    ];
    let refused = bench.write_with(updates, Atomicity::RollbackOnError).await;
    assert!(refused.is_err());
    assert_eq!(answer(&bench), [0xcb, 0xf4, 0x39, 0x26]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_p4info_without_the_externs_is_as_good_and_parameters_are_kept_with_the_state() {
    use pb::set_forwarding_pipeline_config_request::Action;
    let bench = bench("#define CRC32").await;
    let _primary = bench.primary().await;
    let mut p4info = bench.info.clone();
    let set = |p4info, action: Action| {
        let request = pb::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: Some(pb::Uint128 { high: 0, low: 1 }),
            action: action.into(),
            config: Some(pb::ForwardingPipelineConfig {
                p4info: Some(p4info),
                p4_device_config: format!("#define CRC32\n{SOURCE}").into_bytes(),
                cookie: None,
            }),
            ..Default::default()
        };
        let mut client = bench.client.clone();
        async move { client.set_forwarding_pipeline_config(request).await }
    };
    p4info.externs[0].extern_type_id = 0x90;
    let error = set(p4info.clone(), Action::VerifyAndCommit)
        .await
        .expect_err("is another");
    assert!(error.message().contains("0x90"), "{error}");
    p4info.externs.clear();
    set(p4info.clone(), Action::VerifyAndCommit).await.expect("will do");
    let written = crc32(castagnoli(bits(&[0x1e, 0xdc, 0x6f, 0x41])));
    bench.modify(written).await.expect("by its id");
    assert_eq!(answer(&bench), [0xe3, 0x06, 0x92, 0x83]);
    set(p4info, Action::ReconcileAndCommit).await.expect("is the same");
    assert_eq!(answer(&bench), [0xe3, 0x06, 0x92, 0x83]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hash_whose_result_nothing_reads_has_no_parameters() {
    use pb::set_forwarding_pipeline_config_request::Action;
    let bench = bench("#define UNREAD").await;
    let _primary = bench.primary().await;
    let written = crc32(castagnoli(bits(&[1])));
    assert_eq!(bench.modify(written).await, Err(Code::FailedPrecondition));
    assert!(bench.read(entry(0, 0, None)).await.is_empty());
    // Nothing of it is in the way of another program.
    let request = pb::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: Some(pb::Uint128 { high: 0, low: 1 }),
        action: Action::ReconcileAndCommit.into(),
        config: Some(pb::ForwardingPipelineConfig {
            p4info: Some(bench.info.clone()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let set = bench.client.clone().set_forwarding_pipeline_config(request).await;
    set.expect("is the same program");
}
