//! Tests of the packet generators' tables.

use crate::common::{Bench, exact, field, number, numbers, stream, value, with_data};
use crate::replicas::{follows, pair};
use std::sync::Arc;
use tonic::Code;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_server::DataPlane;
use weir_server::bfrt::Config;

/// A program that forwards generated packets without their six-byte header.
fn source(second: bool) -> String {
    let (files, ports) = match second {
        false => ("#include <tna.p4>", "68 &&& 0x7f"),
        true => ("#include <t2na.p4>", "6 &&& 0x7f"),
    };
    include_str!("../p4/generated.p4")
        .replace("#include <tna.p4>", files)
        .replace("68 &&& 0x7f", ports)
}

async fn bench() -> Bench {
    Bench::of(&source(false), Config::default(), Clone::clone).await
}

async fn second() -> Bench {
    Bench::of(&source(true), Config::default(), Clone::clone).await
}

fn table(bench: &Bench, name: &str) -> String {
    let first = bench.fixed.tables.iter().any(|t| t.name == "tf1.pktgen.app_cfg");
    format!("tf{}.pktgen.{name}", if first { 1 } else { 2 })
}

fn flag(bench: &Bench, of: &str, name: &str, on: bool) -> pb::DataField {
    field(bench.field(&table(bench, of), name), Wire::BoolVal(on))
}

fn port(bench: &Bench, port: u32, fields: Vec<pb::DataField>) -> pb::TableEntry {
    let keyed = bench.keyed(&table(bench, "port_cfg"), vec![exact(1, &port.to_be_bytes())]);
    with_data(keyed, 0, fields)
}

fn generates(bench: &Bench, of: u32) -> pb::TableEntry {
    port(bench, of, vec![flag(bench, "port_cfg", "pktgen_enable", true)])
}

fn place(bench: &Bench, offset: u32, size: u32) -> pb::TableEntry {
    let key = vec![exact(1, &offset.to_be_bytes()), exact(2, &size.to_be_bytes())];
    bench.keyed(&table(bench, "pkt_buffer"), key)
}

fn buffer(bench: &Bench, offset: u32, bytes: &[u8]) -> pb::TableEntry {
    with_data(place(bench, offset, bytes.len() as u32), 0, vec![stream(1, bytes)])
}

fn app_key(bench: &Bench, app: u32) -> pb::TableEntry {
    bench.keyed(&table(bench, "app_cfg"), vec![exact(1, &app.to_be_bytes())])
}

/// An application. `fields` are its 16-bit and 32-bit fields that are not zero; `trigger` is its
/// action, `own` the fields of that.
fn app(
    bench: &Bench,
    number: u32,
    (trigger, own): (&str, Vec<pb::DataField>),
    fields: Vec<pb::DataField>,
) -> pb::TableEntry {
    let action = bench.action(&table(bench, "app_cfg"), trigger);
    with_data(app_key(bench, number), action, [own, fields].concat())
}

fn timer(ns: u32) -> Vec<pb::DataField> {
    vec![stream(1, &ns.to_be_bytes())]
}

fn usual(bench: &Bench, enabled: bool) -> Vec<pb::DataField> {
    let id = |name| bench.field(&table(bench, "app_cfg"), name);
    vec![
        field(id("app_enable"), Wire::BoolVal(enabled)),
        stream(id("pkt_len"), &4u16.to_be_bytes()),
        stream(id("pkt_buffer_offset"), &16u16.to_be_bytes()),
        stream(id("pipe_local_source_port"), &68u32.to_be_bytes()),
        field(id("increment_source_port"), Wire::BoolVal(false)),
        stream(id("batch_count_cfg"), &0u16.to_be_bytes()),
        stream(id("packets_per_batch_cfg"), &1u16.to_be_bytes()),
        stream(id("ibg"), &[0; 4]),
        stream(id("ipg"), &100u32.to_be_bytes()),
        stream(id("batch_counter"), &[0; 8]),
        stream(id("pkt_counter"), &[0; 8]),
        stream(id("trigger_counter"), &[0; 8]),
    ]
}

fn enable(bench: &Bench, number: u32, on: bool) -> pb::TableEntry {
    with_data(
        app_key(bench, number),
        0,
        vec![flag(bench, "app_cfg", "app_enable", on)],
    )
}

/// Advances the clock and returns the packets sent until then.
async fn later(bench: &Bench, ns: u64) -> Vec<Vec<u8>> {
    // The switch handles earlier events, such as of a port, before the clock advances.
    bench.switch.submit(Arc::new(|_, _| ())).await.expect("runs");
    bench.switch.clock().advance(ns);
    // Before any command, the switch executes timers that are due.
    bench.switch.submit(Arc::new(|_, _| ())).await.expect("runs");
    let sent = bench.switch.take_sent();
    sent.into_iter().map(|o| o.bytes).collect()
}

/// Sets a port up or down, before the clock advances.
async fn set_port(bench: &Bench, port: u32, up: bool) {
    bench.switch.set_port(port, up);
    bench.switch.submit(Arc::new(|_, _| ())).await.expect("runs");
}

/// Counts of triggers, batches and packets.
async fn counts(bench: &Bench, number_of: u32) -> [u64; 3] {
    let returned = bench.read(app_key(bench, number_of)).await.expect("is read");
    ["trigger_counter", "batch_counter", "pkt_counter"]
        .map(|name| number(&returned[0], bench.field(&table(bench, "app_cfg"), name)))
}

#[tokio::test]
async fn a_one_shot_timer_sends_its_packets_once() {
    let bench = bench().await;
    assert_eq!(bench.insert(generates(&bench, 68)).await, Ok(()));
    assert_eq!(
        bench.insert(buffer(&bench, 16, &[0xde, 0xad, 0xbe, 0xef])).await,
        Ok(())
    );
    let entry = app(&bench, 3, ("trigger_timer_one_shot", timer(1000)), usual(&bench, true));
    assert_eq!(bench.insert(entry).await, Ok(()));
    assert!(later(&bench, 999).await.is_empty());
    assert_eq!(later(&bench, 1).await, [[0xde, 0xad, 0xbe, 0xef]]);
    assert_eq!(later(&bench, 100).await, [[0xde, 0xad, 0xbe, 0xef]]);
    assert!(later(&bench, 1_000_000).await.is_empty());
    assert_eq!(counts(&bench, 3).await, [1, 1, 2]);
    // Disabled and enabled again, it is a new application.
    assert_eq!(bench.modify(enable(&bench, 3, false)).await, Ok(()));
    assert_eq!(bench.modify(enable(&bench, 3, true)).await, Ok(()));
    assert_eq!(later(&bench, 2000).await.len(), 2);
    assert_eq!(counts(&bench, 3).await, [2, 2, 4]);
}

#[tokio::test]
async fn the_configuration_of_p4tg_sends_until_it_is_disabled() {
    let bench = bench().await;
    let enabled = ["recirculation_enable", "pktgen_enable", "pattern_matching_enable"];
    let fields = enabled.map(|name| flag(&bench, "port_cfg", name, true)).to_vec();
    assert_eq!(bench.modify(port(&bench, 68, fields)).await, Ok(()));
    assert_eq!(bench.modify(buffer(&bench, 16, &[1, 2, 3, 4])).await, Ok(()));
    let entry = |on| app(&bench, 1, ("trigger_timer_periodic", timer(1000)), usual(&bench, on));
    assert_eq!(bench.modify(entry(false)).await, Ok(()));
    assert!(later(&bench, 10_000).await.is_empty());
    assert_eq!(bench.modify(entry(true)).await, Ok(()));
    assert_eq!(later(&bench, 3500).await.len(), 6);
    assert_eq!(counts(&bench, 1).await, [3, 3, 6]);
    let off = || {
        let only = vec![flag(&bench, "app_cfg", "app_enable", false)];
        app(&bench, 1, ("trigger_timer_periodic", Vec::new()), only)
    };
    assert_eq!(bench.modify(off()).await, Ok(()));
    assert!(later(&bench, 10_000).await.is_empty());
    // Counts persist. They restart with the next configuration, which sets them.
    assert_eq!(counts(&bench, 1).await, [3, 3, 6]);
    assert_eq!(bench.modify(entry(true)).await, Ok(()));
    assert_eq!(later(&bench, 1100).await.len(), 2);
    assert_eq!(counts(&bench, 1).await, [1, 1, 2]);
    assert_eq!(bench.delete(app_key(&bench, 1)).await, Ok(()));
    assert!(later(&bench, 10_000).await.is_empty());
    assert_eq!(counts(&bench, 1).await, [0, 0, 0]);
}

#[tokio::test]
async fn a_count_is_set_without_touching_the_timer() {
    let bench = bench().await;
    assert_eq!(bench.modify(generates(&bench, 68)).await, Ok(()));
    let entry = app(&bench, 1, ("trigger_timer_periodic", timer(1000)), usual(&bench, true));
    assert_eq!(bench.modify(entry.clone()).await, Ok(()));
    assert!(later(&bench, 900).await.is_empty());
    let name = table(&bench, "app_cfg");
    let counter = stream(bench.field(&name, "pkt_counter"), &40u64.to_be_bytes());
    let set = with_data(app_key(&bench, 1), 0, vec![counter]);
    assert_eq!(bench.modify(set).await, Ok(()));
    assert_eq!(later(&bench, 250).await.len(), 2);
    assert_eq!(counts(&bench, 1).await, [1, 1, 42]);
    // The same entry again changes nothing but the counts that it sets.
    assert_eq!(bench.modify(entry).await, Ok(()));
    assert_eq!(later(&bench, 850).await.len(), 1);
}

#[tokio::test]
async fn each_pipe_has_a_generator() {
    let bench = bench().await;
    for of in [68, 196] {
        assert_eq!(bench.modify(generates(&bench, of)).await, Ok(()));
    }
    assert_eq!(bench.modify(buffer(&bench, 16, &[7, 7, 7, 7])).await, Ok(()));
    let pipe = |entry: pb::TableEntry, pipe_id| pb::TableEntry {
        entry_tgt: Some(crate::common::target(pipe_id)),
        ..entry
    };
    assert_eq!(bench.modify(pipe(buffer(&bench, 16, &[8, 8, 8, 8]), 1)).await, Ok(()));
    let entry = app(&bench, 0, ("trigger_timer_one_shot", timer(0)), usual(&bench, true));
    assert_eq!(bench.modify(entry).await, Ok(()));
    let mut sent = later(&bench, 10).await;
    sent.sort();
    assert_eq!(sent, [[7, 7, 7, 7], [8, 8, 8, 8]]);
    later(&bench, 1000).await;
    assert_eq!(counts(&bench, 0).await, [2, 2, 4], "of all pipes");
    let returned = bench.read(pipe(app_key(&bench, 0), 1)).await.expect("is read");
    assert_eq!(
        number(&returned[0], bench.field("tf1.pktgen.app_cfg", "pkt_counter")),
        2
    );
    assert_eq!(
        bench.modify(pipe(enable(&bench, 0, true), 4)).await,
        Err(Code::InvalidArgument)
    );
    let beyond = bench.read(pipe(app_key(&bench, 0), 4)).await;
    assert_eq!(beyond, Err(Code::InvalidArgument));
}

#[tokio::test]
async fn written_entries_are_read_back() {
    let bench = bench().await;
    let name = "tf1.pktgen.app_cfg";
    let pattern = vec![stream(4, &[0xff, 0, 0, 1]), stream(5, &[0xff; 4])];
    let entry = app(&bench, 5, ("trigger_recirc_pattern", pattern), usual(&bench, true));
    assert_eq!(bench.insert(entry.clone()).await, Ok(()));
    let returned = bench.read(app_key(&bench, 5)).await.expect("is read");
    let given = entry.data.expect("has data");
    assert_eq!(returned[0].data.as_ref().map(|d| d.action_id), Some(given.action_id));
    for one in given.fields {
        assert_eq!(value(&returned[0], one.field_id), one.value.expect("is set"));
    }
    assert_eq!(bench.entries(name).await.len(), 8);
    assert_eq!(bench.entries("tf1.pktgen.port_cfg").await.len(), 16);
    assert_eq!(bench.modify(generates(&bench, 69)).await, Ok(()));
    let returned = bench.read(port(&bench, 69, Vec::new())).await.expect("is read");
    let of = |name| value(&returned[0], bench.field("tf1.pktgen.port_cfg", name));
    assert_eq!(
        ["pktgen_enable", "pattern_matching_enable", "recirculation_enable"].map(of),
        [true, false, true].map(Wire::BoolVal)
    );
    // Bytes are written as a byte string or as a list of numbers, and read as a byte string.
    let list = with_data(place(&bench, 100, 3), 0, vec![numbers(1, &[4, 5, 6])]);
    assert_eq!(bench.insert(list).await, Ok(()));
    let returned = bench.read(place(&bench, 99, 5)).await.expect("is read");
    assert_eq!(value(&returned[0], 1), Wire::Stream(vec![0, 4, 5, 6, 0].into()));
    assert_eq!(bench.delete(place(&bench, 100, 2)).await, Ok(()));
    let returned = bench.read(place(&bench, 99, 5)).await.expect("is read");
    assert_eq!(value(&returned[0], 1), Wire::Stream(vec![0, 0, 0, 6, 0].into()));
    for of in ["app_cfg", "port_cfg", "pkt_buffer"] {
        assert_eq!(bench.delete(bench.all(&table(&bench, of))).await, Ok(()));
    }
    let returned = bench.read(bench.all("tf1.pktgen.pkt_buffer")).await.expect("is read");
    assert_eq!(value(&returned[0], 1), Wire::Stream(vec![0; 16384].into()));
    let returned = bench.read(app_key(&bench, 5)).await.expect("is read");
    assert_eq!(
        value(&returned[0], bench.field(name, "app_enable")),
        Wire::BoolVal(false)
    );
}

#[tokio::test]
async fn invalid_values_are_refused_and_change_nothing() {
    let bench = bench().await;
    let bad = Err(Code::InvalidArgument);
    assert_eq!(bench.modify(generates(&bench, 67)).await, bad);
    assert_eq!(bench.modify(generates(&bench, 600)).await, bad);
    assert_eq!(bench.modify(buffer(&bench, 16384, &[1])).await, bad);
    assert_eq!(bench.modify(place(&bench, 0, u32::MAX)).await, bad);
    assert_eq!(bench.delete(place(&bench, 0, u32::MAX)).await, bad);
    assert_eq!(bench.read(place(&bench, u32::MAX, 1)).await, Err(Code::InvalidArgument));
    let uneven = with_data(place(&bench, 0, 4), 0, vec![stream(1, &[1, 2, 3])]);
    assert_eq!(bench.modify(uneven).await, bad);
    assert_eq!(bench.modify(enable(&bench, 8, true)).await, bad);
    assert_eq!(bench.read(app_key(&bench, 8)).await, Err(Code::InvalidArgument));
    assert_eq!(bench.insert(enable(&bench, 1, true)).await, bad, "nothing triggers it");
    let source = stream(
        bench.field("tf1.pktgen.app_cfg", "pipe_local_source_port"),
        &128u32.to_be_bytes(),
    );
    let entry = with_data(app_key(&bench, 1), 0, vec![source]);
    assert_eq!(bench.modify(entry).await, bad);
    let unable = Err(Code::Unimplemented);
    let off = |name, on| port(&bench, 68, vec![flag(&bench, "port_cfg", name, on)]);
    assert_eq!(bench.modify(off("recirculation_enable", false)).await, unable);
    assert_eq!(bench.modify(off("clear_port_down_enable", true)).await, unable);
    assert_eq!(
        bench
            .one(Type::ModifyInc, Entity::TableEntry(generates(&bench, 68)))
            .await,
        unable
    );
    let returned = bench.read(app_key(&bench, 1)).await.expect("is read");
    assert_eq!(
        value(&returned[0], bench.field("tf1.pktgen.app_cfg", "app_enable")),
        Wire::BoolVal(false)
    );
}

#[tokio::test]
async fn a_batch_that_is_taken_back_changes_no_generator() {
    let bench = bench().await;
    assert_eq!(bench.modify(generates(&bench, 68)).await, Ok(()));
    let entry = |ns| app(&bench, 1, ("trigger_timer_periodic", timer(ns)), usual(&bench, true));
    assert_eq!(bench.modify(entry(1000)).await, Ok(()));
    later(&bench, 500).await;
    let update = |entry| crate::common::update(Type::Modify, Entity::TableEntry(entry));
    let batch = vec![
        update(buffer(&bench, 16, &[9; 4])),
        update(entry(7)),
        update(generates(&bench, 1)),
    ];
    let rollback = pb::write_request::Atomicity::RollbackOnError;
    assert!(bench.write_with(batch, rollback).await.is_err());
    assert_eq!(later(&bench, 600).await, [[0; 4], [0; 4]], "at its old time");
}

#[tokio::test]
async fn the_second_chip_has_channels_masks_and_wider_patterns() {
    let bench = second().await;
    let name = "tf2.pktgen.app_cfg";
    let id = |field| bench.field(name, field);
    assert_eq!(bench.modify(generates(&bench, 6)).await, Ok(()));
    assert_eq!(bench.modify(generates(&bench, 68)).await, Err(Code::InvalidArgument));
    let with = |more: Vec<pb::DataField>| {
        let mut fields = usual(&bench, true);
        fields[3] = stream(id("pipe_local_source_port"), &6u32.to_be_bytes());
        [fields, more].concat()
    };
    let channel = |n: u8| vec![stream(id("assigned_chnl_id"), &[n])];
    let entry = |more| app(&bench, 15, ("trigger_timer_one_shot", timer(10)), with(more));
    assert_eq!(bench.insert(entry(channel(8))).await, Err(Code::InvalidArgument));
    assert_eq!(bench.insert(entry(channel(7))).await, Ok(()));
    assert!(later(&bench, 1000).await.is_empty(), "that one does not generate");
    assert_eq!(bench.insert(entry(channel(6))).await, Ok(()));
    assert_eq!(later(&bench, 1000).await.len(), 2);
    let taken = vec![flag(&bench, "app_cfg", "offset_len_from_recir_pkt_enable", true)];
    assert_eq!(bench.modify(entry(taken)).await, Err(Code::Unimplemented));
    let wrap = vec![stream(id("source_port_wrap_max"), &[200])];
    assert_eq!(bench.modify(entry(wrap)).await, Err(Code::InvalidArgument));
    // A port of the mask goes down.
    let mask = |ports: u8| {
        let mut bytes = [0; 9];
        bytes[7] = ports;
        let keyed = bench.keyed("tf2.pktgen.port_mask", vec![exact(1, &1u32.to_be_bytes())]);
        with_data(keyed, 0, vec![stream(1, &bytes)])
    };
    assert_eq!(bench.modify(mask(2)).await, Ok(()));
    let returned = bench.read(mask(0)).await.expect("is read");
    assert_eq!(
        value(&returned[0], 1),
        Wire::Stream(vec![0, 0, 0, 0, 0, 0, 0, 2, 0].into())
    );
    let down = ("trigger_port_down", vec![stream(3, &1u32.to_be_bytes())]);
    assert_eq!(bench.insert(app(&bench, 2, down, with(Vec::new()))).await, Ok(()));
    set_port(&bench, 10, false).await;
    assert!(later(&bench, 1000).await.is_empty());
    set_port(&bench, 9, false).await;
    assert_eq!(later(&bench, 1000).await.len(), 2);
    let wide = vec![stream(4, &[0xab; 16]), stream(5, &[0xff; 16])];
    assert_eq!(
        bench
            .insert(app(&bench, 4, ("trigger_dprsr", wide), with(Vec::new())))
            .await,
        Ok(())
    );
    let returned = bench.read(app_key(&bench, 4)).await.expect("is read");
    assert_eq!(value(&returned[0], 4), Wire::Stream(vec![0xab; 16].into()));
    assert_eq!(bench.entries("tf2.pktgen.port_cfg").await.len(), 32);
}

#[tokio::test]
async fn of_several_replicas_one_has_timers_and_counts_are_added_up() {
    let (bench, other) = pair(&source(false), Config::default().read_chunk).await;
    other.submit(Arc::new(|_, s| follows(s))).await.expect("runs");
    let fields = ["pktgen_enable", "pattern_matching_enable"].map(|name| flag(&bench, "port_cfg", name, true));
    assert_eq!(bench.modify(port(&bench, 68, fields.to_vec())).await, Ok(()));
    let entry = app(&bench, 1, ("trigger_timer_periodic", timer(1000)), usual(&bench, true));
    assert_eq!(bench.modify(entry).await, Ok(()));
    let pattern = vec![stream(4, &[0xff, 0, 0, 1]), stream(5, &[0xff; 4])];
    let entry = app(&bench, 2, ("trigger_recirc_pattern", pattern), usual(&bench, true));
    assert_eq!(bench.modify(entry).await, Ok(()));
    other.clock().advance(5500);
    assert_eq!(later(&bench, 5500).await.len(), 10);
    other.submit(Arc::new(|_, _| ())).await.expect("runs");
    assert!(other.take_sent().is_empty(), "the second has no timers");
    assert_eq!(counts(&bench, 1).await, [5, 5, 10]);
    // Recirculated packets trigger in the replica in which they are.
    let looping = [0xff, 0, 0, 1, 0xff];
    for (switch, times) in [(&bench.switch, 1), (&other, 2)] {
        for _ in 0..times {
            let _ = switch.send(1, &looping);
        }
        switch.clock().advance(400);
    }
    assert_eq!(counts(&bench, 2).await, [3, 3, 6]);
    let set = stream(bench.field("tf1.pktgen.app_cfg", "pkt_counter"), &100u64.to_be_bytes());
    assert_eq!(bench.modify(with_data(app_key(&bench, 2), 0, vec![set])).await, Ok(()));
    assert_eq!(counts(&bench, 2).await, [3, 3, 100]);
}
