//! Tests of the tables that every device has.

use crate::common::{Bench, exact, field, flags, number, numbers, query_packet, stream, text, value, with_data};
use tonic::Code;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;

fn port(bench: &Bench, number: u32, fields: Vec<pb::DataField>) -> pb::TableEntry {
    with_data(bench.keyed("$PORT", vec![exact(1, &number.to_be_bytes())]), 0, fields)
}

fn usual(bench: &Bench, enabled: bool) -> Vec<pb::DataField> {
    vec![
        text(bench.field("$PORT", "$SPEED"), "BF_SPEED_100G"),
        text(bench.field("$PORT", "$FEC"), "BF_FEC_TYP_NONE"),
        field(bench.field("$PORT", "$PORT_ENABLE"), Wire::BoolVal(enabled)),
    ]
}

#[tokio::test]
async fn a_port_carries_packets_when_it_is_added_and_enabled() {
    let bench = Bench::new().await;
    assert!(bench.entries("$PORT").await.is_empty());
    assert_eq!(
        bench.answer_to_packet(1, 0, 1),
        Some(0),
        "before anybody adds ports they are as without a control plane"
    );
    assert_eq!(bench.insert(port(&bench, 1, usual(&bench, false))).await, Ok(()));
    assert_eq!(bench.answer_to_packet(1, 0, 1), None);
    assert_eq!(
        bench.insert(port(&bench, 1, usual(&bench, true))).await,
        Err(Code::AlreadyExists)
    );
    let enable = |on| vec![field(bench.field("$PORT", "$PORT_ENABLE"), Wire::BoolVal(on))];
    assert_eq!(bench.modify(port(&bench, 1, enable(true))).await, Ok(()));
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(0));
    assert_eq!(bench.delete(port(&bench, 1, Vec::new())).await, Ok(()));
    assert_eq!(bench.answer_to_packet(1, 0, 1), None);
    assert_eq!(bench.delete(port(&bench, 1, Vec::new())).await, Err(Code::NotFound));
    assert_eq!(bench.modify(port(&bench, 1, enable(true))).await, Err(Code::NotFound));
}

#[tokio::test]
async fn a_new_port_needs_speed_and_fec_and_known_choices() {
    let bench = Bench::new().await;
    let without = |at: usize| {
        let mut fields = usual(&bench, true);
        fields.remove(at);
        fields
    };
    assert_eq!(
        bench.insert(port(&bench, 1, without(0))).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.insert(port(&bench, 1, without(1))).await,
        Err(Code::InvalidArgument)
    );
    let mut odd = usual(&bench, true);
    odd[0] = text(bench.field("$PORT", "$SPEED"), "BF_SPEED_3G");
    assert_eq!(bench.insert(port(&bench, 1, odd)).await, Err(Code::InvalidArgument));
    let mut fixed = usual(&bench, true);
    fixed.push(field(bench.field("$PORT", "$PORT_UP"), Wire::BoolVal(true)));
    assert_eq!(bench.insert(port(&bench, 1, fixed)).await, Err(Code::InvalidArgument));
    assert_eq!(bench.insert(port(&bench, 1, usual(&bench, true))).await, Ok(()));
    let returned = bench.entries("$PORT").await;
    let of = |name| value(&returned[0], bench.field("$PORT", name));
    assert_eq!(of("$SPEED"), Wire::StrVal("BF_SPEED_100G".into()));
    assert_eq!(of("$AUTO_NEGOTIATION"), Wire::StrVal("PM_AN_DEFAULT".into()));
    assert_eq!(
        (of("$PORT_UP"), of("$PORT_NAME")),
        (Wire::BoolVal(true), Wire::StrVal("2/0".into()))
    );
    assert_eq!(bench.delete(bench.all("$PORT")).await, Ok(()));
    assert!(bench.entries("$PORT").await.is_empty());
}

#[tokio::test]
async fn a_port_takes_in_what_it_sends() {
    let bench = Bench::new().await;
    let mode = bench.field("$PORT", "$LOOPBACK_MODE");
    let with = |mode_is: &str| {
        let mut fields = usual(&bench, true);
        fields.push(text(mode, mode_is));
        port(&bench, 1, fields)
    };
    assert_eq!(bench.insert(with("BF_LPBK_MAC_FAR")).await, Err(Code::Unimplemented));
    assert_eq!(bench.insert(with("BF_LPBK_MAC_NEAR")).await, Ok(()));
    assert_eq!(
        bench.answer_to_packet(1, 0, 1),
        None,
        "it goes round until the switch has enough"
    );
}

#[tokio::test]
async fn a_batch_that_is_taken_back_changes_no_port() {
    let bench = Bench::new().await;
    let insert = |n| crate::common::update(Type::Insert, Entity::TableEntry(port(&bench, n, usual(&bench, false))));
    let rollback = pb::write_request::Atomicity::RollbackOnError;
    let failed = bench
        .write_with(vec![insert(1), insert(1)], rollback)
        .await
        .unwrap_err();
    assert_eq!(crate::common::codes(&failed), [0, 6]);
    assert!(bench.entries("$PORT").await.is_empty());
    assert_eq!(bench.answer_to_packet(1, 0, 1), Some(0));
    assert!(bench.write_with(vec![insert(1), insert(2)], rollback).await.is_ok());
    assert_eq!(
        (bench.entries("$PORT").await.len(), bench.answer_to_packet(1, 0, 1)),
        (2, None)
    );
}

#[tokio::test]
async fn ports_are_found_by_their_other_names() {
    let bench = Bench::new().await;
    let of = |table: &str, key| bench.keyed(table, key);
    let dev_port = async |entry: pb::TableEntry| bench.read(entry).await.map(|returned| number(&returned[0], 1));
    let name = vec![exact(1, b"2/0")];
    assert_eq!(dev_port(of("$PORT_STR_INFO", name)).await, Ok(1));
    assert_eq!(
        dev_port(of("$PORT_STR_INFO", vec![exact(1, b"2/1")])).await,
        Err(Code::NotFound)
    );
    let handle = vec![exact(1, &2u32.to_be_bytes()), exact(2, &[0; 4])];
    assert_eq!(dev_port(of("$PORT_HDL_INFO", handle)).await, Ok(1));
    assert_eq!(
        dev_port(of("$PORT_FP_IDX_INFO", vec![exact(1, &2u32.to_be_bytes())])).await,
        Ok(1)
    );
    assert_eq!(bench.entries("$PORT_STR_INFO").await.len(), 64);
    assert_eq!(
        bench.insert(of("$PORT_STR_INFO", vec![exact(1, b"9/9")])).await,
        Err(Code::Unimplemented)
    );
}

#[tokio::test]
async fn ports_count_frames() {
    let bench = Bench::new().await;
    bench.answer_to_packet(1, 0, 1);
    let returned = bench
        .read(bench.keyed("$PORT_STAT", vec![exact(1, &1u32.to_be_bytes())]))
        .await
        .expect("is read");
    let of = |name| number(&returned[0], bench.field("$PORT_STAT", name));
    assert_eq!(
        (
            of("$FramesReceivedOK"),
            of("$OctetsReceived"),
            of("$FramesTransmittedOK")
        ),
        (1, 64, 1)
    );
    assert_eq!(bench.delete(bench.all("$PORT_STAT")).await, Err(Code::Unimplemented));
}

fn node(bench: &Bench, id: u32, rid: u16, ports: &[u32], lags: &[u32]) -> pb::TableEntry {
    let table = "$pre.node";
    let fields = vec![
        stream(bench.field(table, "$MULTICAST_RID"), &rid.to_be_bytes()),
        numbers(bench.field(table, "$MULTICAST_LAG_ID"), lags),
        numbers(bench.field(table, "$DEV_PORT"), ports),
    ];
    with_data(bench.keyed(table, vec![exact(1, &id.to_be_bytes())]), 0, fields)
}

fn group(bench: &Bench, id: u16, nodes: &[u32]) -> pb::TableEntry {
    let table = "$pre.mgid";
    let fields = vec![
        numbers(bench.field(table, "$MULTICAST_NODE_ID"), nodes),
        flags(
            bench.field(table, "$MULTICAST_NODE_L1_XID_VALID"),
            &vec![false; nodes.len()],
        ),
        numbers(bench.field(table, "$MULTICAST_NODE_L1_XID"), &vec![0; nodes.len()]),
    ];
    with_data(bench.keyed(table, vec![exact(1, &id.to_be_bytes())]), 0, fields)
}

/// The ports that receive copies of a packet sent to a group.
fn copies(bench: &Bench, group: u32) -> Vec<u32> {
    let mut ports: Vec<u32> = bench
        .switch
        .send(1, &query_packet(11, 0, group))
        .iter()
        .map(|o| o.port)
        .collect();
    ports.sort_unstable();
    ports
}

#[tokio::test]
async fn groups_have_nodes_and_nodes_have_ports() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(group(&bench, 4, &[9])).await, Err(Code::NotFound));
    assert_eq!(bench.insert(node(&bench, 9, 1, &[2, 3], &[])).await, Ok(()));
    assert_eq!(
        bench.insert(node(&bench, 9, 1, &[2, 3], &[])).await,
        Err(Code::AlreadyExists)
    );
    assert_eq!(bench.insert(node(&bench, 10, 2, &[5], &[])).await, Ok(()));
    assert_eq!(bench.insert(group(&bench, 4, &[9])).await, Ok(()));
    assert_eq!(copies(&bench, 4), [2, 3]);
    let change = async |takes: bool| {
        let entry = pb::TableEntry {
            table_flags: Some(pb::TableFlags {
                mod_del: takes,
                ..pb::TableFlags::default()
            }),
            ..group(&bench, 4, &[10])
        };
        bench.one(Type::ModifyInc, Entity::TableEntry(entry)).await
    };
    assert_eq!(change(false).await, Ok(()));
    assert_eq!(copies(&bench, 4), [2, 3, 5]);
    assert_eq!(change(true).await, Ok(()));
    assert_eq!(copies(&bench, 4), [2, 3]);
    assert_eq!(bench.modify(node(&bench, 9, 1, &[7], &[])).await, Ok(()));
    assert_eq!(copies(&bench, 4), [7]);
    let returned = bench.entries("$pre.mgid").await;
    let ids = value(&returned[0], bench.field("$pre.mgid", "$MULTICAST_NODE_ID"));
    assert_eq!(ids, Wire::IntArrVal(pb::data_field::IntArray { val: vec![9] }));
    assert_eq!(bench.entries("$pre.node").await.len(), 2);
    assert_eq!(bench.delete(bench.all("$pre.mgid")).await, Ok(()));
    assert_eq!(bench.delete(bench.all("$pre.node")).await, Ok(()));
    assert!(copies(&bench, 4).is_empty() && bench.entries("$pre.node").await.is_empty());
}

#[tokio::test]
async fn a_group_has_a_node_once_and_loses_it_when_all_nodes_are_deleted() {
    let bench = Bench::new().await;
    for (id, port) in [(9, 2), (10, 5)] {
        assert_eq!(bench.insert(node(&bench, id, 1, &[port], &[])).await, Ok(()));
    }
    let twice = group(&bench, 4, &[9, 10, 9]);
    assert_eq!(bench.insert(twice).await, Err(Code::InvalidArgument));
    assert_eq!(bench.insert(group(&bench, 4, &[10, 9])).await, Ok(()));
    assert_eq!(bench.insert(group(&bench, 6, &[9])).await, Ok(()));
    assert_eq!(copies(&bench, 4), [2, 5]);
    assert_eq!(bench.delete(bench.all("$pre.node")).await, Ok(()));
    assert_eq!(bench.insert(node(&bench, 9, 1, &[2], &[])).await, Ok(()));
    assert!(copies(&bench, 4).is_empty() && copies(&bench, 6).is_empty());
    assert_eq!(bench.entries("$pre.mgid").await.len(), 2);
}

#[tokio::test]
async fn of_ports_that_are_one_the_first_that_is_up_gets_the_copy() {
    let bench = Bench::new().await;
    let lag = "$pre.lag";
    let ports = vec![numbers(bench.field(lag, "$DEV_PORT"), &[5, 6])];
    let entry = with_data(bench.keyed(lag, vec![exact(1, &[3])]), 0, ports);
    assert_eq!(bench.insert(entry).await, Ok(()));
    assert_eq!(bench.insert(node(&bench, 9, 1, &[2], &[3])).await, Ok(()));
    assert_eq!(bench.insert(group(&bench, 4, &[9])).await, Ok(()));
    assert_eq!(copies(&bench, 4), [2, 5]);
    bench.switch.set_port(5, false);
    assert_eq!(copies(&bench, 4), [2, 6]);
    assert_eq!(bench.entries(lag).await.len(), 1);
}

#[tokio::test]
async fn prune_lists_are_set_and_read() {
    let bench = Bench::new().await;
    let table = "$pre.prune";
    let entry = |ports: &[u32]| {
        let ports = vec![numbers(bench.field(table, "$DEV_PORT"), ports)];
        with_data(bench.keyed(table, vec![exact(1, &7u16.to_be_bytes())]), 0, ports)
    };
    assert_eq!(bench.modify(entry(&[1, 2])).await, Ok(()));
    let returned = bench.entries(table).await;
    let ports = value(&returned[0], bench.field(table, "$DEV_PORT"));
    assert_eq!(ports, Wire::IntArrVal(pb::data_field::IntArray { val: vec![1, 2] }));
    assert_eq!(bench.delete(entry(&[])).await, Ok(()));
    assert!(bench.entries(table).await.is_empty());
}

#[tokio::test]
async fn mirror_sessions_are_clone_sessions() {
    let bench = Bench::new().await;
    let table = "$mirror.cfg";
    let id = |name| bench.field(table, name);
    let entry = |port: u32| {
        let fields = vec![
            text(id("$direction"), "BOTH"),
            field(id("$session_enable"), Wire::BoolVal(true)),
            stream(id("$ucast_egress_port"), &port.to_be_bytes()),
            field(id("$ucast_egress_port_valid"), Wire::BoolVal(true)),
            stream(id("$max_pkt_len"), &128u16.to_be_bytes()),
        ];
        with_data(
            bench.keyed(table, vec![exact(1, &5u16.to_be_bytes())]),
            bench.action(table, "$normal"),
            fields,
        )
    };
    assert_eq!(bench.insert(entry(3)).await, Ok(()));
    assert_eq!(bench.insert(entry(3)).await, Err(Code::AlreadyExists));
    assert_eq!(bench.modify(entry(4)).await, Ok(()));
    let returned = bench.entries(table).await;
    let returned = returned.iter().find(|e| e.value == entry(4).value).expect("is there");
    assert_eq!(
        (
            number(returned, id("$ucast_egress_port")),
            number(returned, id("$max_pkt_len"))
        ),
        (4, 128)
    );
    let coalescing = with_data(entry(3), bench.action(table, "$coalescing"), Vec::new());
    assert_eq!(bench.modify(coalescing).await, Err(Code::Unimplemented));
    assert_eq!(bench.delete(entry(4)).await, Ok(()));
    assert_eq!(bench.read(entry(4)).await, Err(Code::NotFound));
}

#[tokio::test]
async fn the_device_configuration_is_read() {
    let bench = Bench::new().await;
    let table = "tf1.dev.device_configuration";
    let returned = bench.read(bench.default_entry(table)).await.expect("is read");
    assert_eq!(number(&returned[0], bench.field(table, "num_pipes")), 1);
    assert!(returned[0].is_default_entry);
    let write = with_data(bench.default_entry(table), 0, Vec::new());
    assert_eq!(bench.modify(write).await, Err(Code::Unimplemented));
}

#[tokio::test]
async fn unsupported_tables_are_unimplemented_with_a_reason() {
    let bench = Bench::new().await;
    for table in ["tf1.tm.port.cfg", "$pre.ecmp", "$pre.port"] {
        let (_, status) = bench.read_all(vec![Entity::TableEntry(bench.all(table))]).await;
        let details = crate::common::details(&status.expect("an error"));
        assert_eq!(details[0].canonical_code, Code::Unimplemented as i32);
        assert!(
            details[0].message.contains("weir has no such part"),
            "{}",
            details[0].message
        );
    }
}

#[tokio::test]
async fn the_rate_of_a_port_is_set_and_applies_when_it_is_enabled() {
    let bench = Bench::new().await;
    let (shaping, scheduling) = ("tf1.tm.port.sched_shaping", "tf1.tm.port.sched_cfg");
    let of = |table: &str, fields| with_data(bench.keyed(table, vec![exact(1, &2u32.to_be_bytes())]), 0, fields);
    let id = |table: &str, name: &str| bench.field(table, name);
    let rate = |unit: &str, rate: u32| {
        vec![
            text(id(shaping, "unit"), unit),
            stream(id(shaping, "max_rate"), &rate.to_be_bytes()),
        ]
    };
    let enable = |on| vec![field(id(scheduling, "max_rate_enable"), Wire::BoolVal(on))];
    assert_eq!(bench.modify(of(shaping, rate("BPS", 5000))).await, Ok(()));
    let shaped = bench.read(of(shaping, Vec::new())).await.expect("is there");
    assert_eq!(number(&shaped[0], id(shaping, "max_rate")), 5000);
    let is_enabled = |entry: &pb::TableEntry| value(entry, id(scheduling, "max_rate_enable"));
    let scheduled = bench.read(of(scheduling, Vec::new())).await.expect("is there");
    assert_eq!(is_enabled(&scheduled[0]), Wire::BoolVal(false));
    assert_eq!(bench.modify(of(scheduling, enable(true))).await, Ok(()));
    assert_eq!(bench.modify(of(shaping, rate("PPS", 7))).await, Ok(()));
    let scheduled = bench.read(of(scheduling, Vec::new())).await.expect("is there");
    assert_eq!(is_enabled(&scheduled[0]), Wire::BoolVal(true));
    let shaped = bench.read(of(shaping, Vec::new())).await.expect("is there");
    assert_eq!(value(&shaped[0], id(shaping, "unit")), Wire::StrVal("PPS".to_owned()));
    // What weir cannot do is an error.
    let burst = vec![stream(id(shaping, "max_burst_size"), &9u32.to_be_bytes())];
    assert_eq!(bench.modify(of(shaping, burst)).await, Err(Code::Unimplemented));
    assert_eq!(
        bench.insert(of(shaping, rate("PPS", 7))).await,
        Err(Code::Unimplemented)
    );
    assert_eq!(bench.entries(shaping).await.len(), 1);
}
