//! Tests of counters, meters, registers, filters, value sets and port metadata.

use crate::common::{Bench, exact, field, number, stream, ternary, text, value, with_data};
use tonic::Code;
use weir_proto::bfrt_info::DataChoice;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_server::bfrt::Config;

/// The entry of an array at an index.
fn cell(bench: &Bench, table: &str, index: u32, fields: Vec<pb::DataField>) -> pb::TableEntry {
    let key = vec![exact(bench.table(table).key[0].id, &index.to_be_bytes())];
    with_data(bench.keyed(table, key), 0, fields)
}

fn wide(id: u32, value: u64) -> pb::DataField {
    stream(id, &value.to_be_bytes())
}

#[tokio::test]
async fn counters_are_set_counted_and_cleared_and_their_cells_not_deleted() {
    let bench = Bench::new().await;
    let table = "In.by_kind";
    let (bytes, packets) = (
        bench.field(table, "$COUNTER_SPEC_BYTES"),
        bench.field(table, "$COUNTER_SPEC_PKTS"),
    );
    let set = cell(&bench, table, 5, vec![wide(packets, 100)]);
    assert_eq!(bench.insert(set).await, Ok(()));
    bench.answer_to_packet(5, 0, 0);
    let read = async || {
        let returned = bench.read(cell(&bench, table, 5, Vec::new())).await.expect("is read");
        (number(&returned[0], bytes), number(&returned[0], packets))
    };
    assert_eq!(read().await, (64 + 4, 101), "with the frame check sequence");
    let returned = bench.read(cell(&bench, table, 5, Vec::new())).await.expect("is read");
    assert!(matches!(value(&returned[0], bytes), Wire::Stream(b) if b.len() == 8));
    assert_eq!(
        bench.delete(cell(&bench, table, 5, Vec::new())).await,
        Err(Code::Unimplemented)
    );
    assert_eq!(bench.delete(bench.all(table)).await, Ok(()));
    assert_eq!(read().await, (0, 0));
    assert_eq!(bench.entries(table).await.len(), 256);
    let beyond = cell(&bench, table, 256, vec![wide(packets, 1)]);
    assert_eq!(bench.insert(beyond.clone()).await, Err(Code::InvalidArgument));
    assert_eq!(bench.read(beyond).await, Err(Code::InvalidArgument));
}

#[tokio::test]
async fn meters_have_no_limit_at_first_and_then_those_that_are_set() {
    let bench = Bench::new().await;
    let table = "In.rates";
    let id = |name| bench.field(table, name);
    let (cir, pir) = (id("$METER_SPEC_CIR_KBPS"), id("$METER_SPEC_PIR_KBPS"));
    let (cbs, pbs) = (id("$METER_SPEC_CBS_KBITS"), id("$METER_SPEC_PBS_KBITS"));
    let returned = bench.read(cell(&bench, table, 3, Vec::new())).await.expect("is read");
    assert_eq!(number(&returned[0], cir), u64::MAX);
    assert_eq!(bench.answer_to_packet(8, 3, 0), Some(0), "green");
    let none = vec![wide(cir, 0), wide(pir, 0), wide(cbs, 0), wide(pbs, 0)];
    assert_eq!(bench.insert(cell(&bench, table, 3, none)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(8, 3, 0), Some(3), "red");
    assert_eq!(
        bench
            .modify(cell(&bench, table, 3, vec![wide(cir, 1_000_000), wide(cbs, 1000)]))
            .await,
        Ok(())
    );
    let returned = bench.read(cell(&bench, table, 3, Vec::new())).await.expect("is read");
    let found = [cir, pir, cbs, pbs].map(|id| number(&returned[0], id));
    assert_eq!(found, [1_000_000, 0, 1000, 0]);
}

#[tokio::test]
async fn direct_resources_are_data_of_entries() {
    let bench = Bench::new().await;
    let table = "In.exact_keys";
    let packets = bench.field(table, "$COUNTER_SPEC_PKTS");
    let mut entry = bench.entry(1, 2);
    entry.data.as_mut().expect("has data").fields.push(wide(packets, 40));
    assert_eq!(bench.insert(entry).await, Ok(()));
    bench.answer_to_packet(1, 0, 1);
    assert_eq!(number(&bench.entries(table).await[0], packets), 41);
    // Without an action, only these fields change.
    assert_eq!(
        bench
            .modify(with_data(bench.exact(table, 1), 0, vec![wide(packets, 7)]))
            .await,
        Ok(())
    );
    assert_eq!(
        (
            number(&bench.entries(table).await[0], packets),
            bench.answer_to_packet(1, 0, 1)
        ),
        (7, Some(2))
    );

    let table = "In.ternary_keys";
    let key = vec![ternary(bench.key_id(table, "key"), &[0; 4], &[0; 4])];
    let limits = [
        "$METER_SPEC_CIR_PPS",
        "$METER_SPEC_PIR_PPS",
        "$METER_SPEC_CBS_PKTS",
        "$METER_SPEC_PBS_PKTS",
    ];
    let mut fields = vec![stream(1, &[0, 0, 0, 10])];
    fields.extend(limits.map(|name| wide(bench.field(table, name), 0)));
    let entry = with_data(bench.keyed(table, key), bench.action(table, "answer_metered"), fields);
    assert_eq!(bench.insert(entry).await, Ok(()));
    assert_eq!(bench.answer_to_packet(3, 0, 1), Some(13), "red is 3");
}

#[tokio::test]
async fn registers_are_read_and_written_by_their_fields() {
    let bench = Bench::new().await;
    assert_eq!(
        bench
            .insert(cell(&bench, "In.last", 3, vec![stream(1, &[0, 0, 0, 9])]))
            .await,
        Ok(())
    );
    assert_eq!(bench.answer_to_packet(5, 3, 77), Some(9));
    let returned = bench
        .read(cell(&bench, "In.last", 3, Vec::new()))
        .await
        .expect("is read");
    // One field per pipe, and there is one pipe.
    assert_eq!(
        (
            returned[0].data.as_ref().expect("has data").fields.len(),
            number(&returned[0], 1)
        ),
        (1, 77)
    );
    assert_eq!(
        bench
            .modify(cell(&bench, "In.pairs", 2, vec![stream(2, &[0, 0, 0, 5])]))
            .await,
        Ok(())
    );
    assert_eq!(
        bench
            .modify(cell(&bench, "In.pairs", 2, vec![stream(1, &[0, 0, 0, 4])]))
            .await,
        Ok(())
    );
    assert_eq!(bench.answer_to_packet(6, 2, 0), Some(4));
    let returned = bench
        .read(cell(&bench, "In.pairs", 2, Vec::new()))
        .await
        .expect("is read");
    assert_eq!((number(&returned[0], 1), number(&returned[0], 2)), (4, 6));
    assert_eq!(bench.entries("In.pairs").await.len(), 16);
    assert_eq!(bench.delete(bench.all("In.pairs")).await, Ok(()));
    assert_eq!(bench.answer_to_packet(6, 2, 0), Some(3), "the program's initial value");
    let long = cell(&bench, "In.last", 3, vec![stream(1, &[9])]);
    assert_eq!(bench.insert(long).await, Err(Code::InvalidArgument));
}

#[tokio::test]
async fn a_register_parameter_is_a_default_entry() {
    let bench = Bench::new().await;
    assert_eq!(bench.answer_to_packet(16, 1, 0), Some(5));
    let step = |value: u32| with_data(bench.default_entry("In.step"), 0, vec![stream(1, &value.to_be_bytes())]);
    assert_eq!(bench.modify(step(100)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(16, 1, 0), Some(105));
    let returned = bench.read(bench.default_entry("In.step")).await.expect("is read");
    assert_eq!((returned[0].is_default_entry, number(&returned[0], 1)), (true, 100));
    assert_eq!(bench.delete(bench.default_entry("In.step")).await, Ok(()));
    assert_eq!(bench.answer_to_packet(16, 1, 0), Some(110));
    assert_eq!(
        bench.insert(bench.default_entry("In.step")).await,
        Err(Code::Unimplemented)
    );
}

#[tokio::test]
async fn filters_take_floats_and_strings() {
    let bench = Bench::new().await;
    let table = "In.smooth";
    let id = |name| bench.field(table, name);
    let all = |gain: f32| {
        vec![
            text(id("$LPF_SPEC_TYPE"), "SAMPLE"),
            field(id("$LPF_SPEC_GAIN_TIME_CONSTANT_NS"), Wire::FloatVal(gain)),
            field(id("$LPF_SPEC_DECAY_TIME_CONSTANT_NS"), Wire::FloatVal(gain)),
            stream(id("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR"), &[0, 0, 0, 1]),
        ]
    };
    assert_eq!(bench.answer_to_packet(14, 2, 800), Some(800));
    let part = all(1000.0).into_iter().take(1).collect();
    assert_eq!(
        bench.insert(cell(&bench, table, 2, part)).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(
        bench.insert(cell(&bench, table, 2, all(-1.0))).await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(bench.insert(cell(&bench, table, 2, all(1000.0))).await, Ok(()));
    bench.switch.clock().advance(1_000_000_000);
    assert_eq!(bench.answer_to_packet(14, 2, 800), Some(400));
    let returned = bench.read(cell(&bench, table, 2, Vec::new())).await.expect("is read");
    assert_eq!(value(&returned[0], id("$LPF_SPEC_TYPE")), Wire::StrVal("SAMPLE".into()));
    assert_eq!(
        value(&returned[0], id("$LPF_SPEC_GAIN_TIME_CONSTANT_NS")),
        Wire::FloatVal(1000.0)
    );

    let table = "In.early";
    let id = |name| bench.field(table, name);
    let fields = vec![
        field(id("$WRED_SPEC_TIME_CONSTANT_NS"), Wire::FloatVal(0.0)),
        stream(id("$WRED_SPEC_MIN_THRESH_CELLS"), &[0, 0, 0, 1]),
        stream(id("$WRED_SPEC_MAX_THRESH_CELLS"), &[0, 0, 0, 2]),
        field(id("$WRED_SPEC_MAX_PROBABILITY"), Wire::FloatVal(0.5)),
    ];
    assert_eq!(
        bench.answer_to_packet(15, 1, 900),
        Some(0xf),
        "nothing is dropped at first"
    );
    assert_eq!(bench.insert(cell(&bench, table, 1, fields)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(15, 1, 900), Some(0xd));
    let returned = bench.read(cell(&bench, table, 1, Vec::new())).await.expect("is read");
    assert_eq!(
        value(&returned[0], id("$WRED_SPEC_MAX_PROBABILITY")),
        Wire::FloatVal(0.5)
    );
    assert_eq!(bench.delete(bench.all(table)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(15, 1, 900), Some(0xf));
}

#[tokio::test]
async fn value_sets_have_members_with_masks() {
    let bench = Bench::new().await;
    let table = "InParser.specials";
    let member = |kind: u8, mask: u8| bench.keyed(table, vec![ternary(bench.table(table).key[0].id, &[kind], &[mask])]);
    assert_eq!(bench.answer_to_packet(18, 0, 0), Some(0));
    assert_eq!(bench.insert(member(18, 0xff)).await, Ok(()));
    assert_eq!(bench.answer_to_packet(18, 0, 0), Some(1));
    assert_eq!(bench.insert(member(18, 0xff)).await, Err(Code::AlreadyExists));
    assert_eq!(
        bench.insert(member(18, 0x0f)).await,
        Err(Code::InvalidArgument),
        "the program matches exactly"
    );
    assert_eq!(bench.entries(table).await[0].value, member(18, 0xff).value);
    for kind in 1..4 {
        assert_eq!(bench.insert(member(kind, 0xff)).await, Ok(()));
    }
    assert_eq!(bench.insert(member(9, 0xff)).await, Err(Code::ResourceExhausted));
    assert_eq!(bench.delete(member(18, 0xff)).await, Ok(()));
    assert_eq!(bench.delete(member(18, 0xff)).await, Err(Code::NotFound));
    assert_eq!(bench.delete(bench.all(table)).await, Ok(()));
    assert!(bench.entries(table).await.is_empty());
}

#[tokio::test]
async fn port_metadata_is_what_parsers_see() {
    let bench = Bench::new().await;
    let table = "InParser.$PORT_METADATA";
    let entry = |fields| {
        with_data(
            bench.keyed(table, vec![exact(bench.table(table).key[0].id, &[0, 1])]),
            0,
            fields,
        )
    };
    let customer = |number: u32| vec![stream(1, &number.to_be_bytes())];
    assert_eq!(bench.answer_to_packet(17, 0, 0), Some(0));
    assert_eq!(bench.modify(entry(customer(7))).await, Err(Code::NotFound));
    assert_eq!(bench.insert(entry(customer(7))).await, Ok(()));
    assert_eq!(bench.answer_to_packet(17, 0, 0), Some(7));
    assert_eq!(bench.insert(entry(customer(8))).await, Err(Code::AlreadyExists));
    let returned = bench.entries(table).await;
    assert_eq!((number(&returned[0], 1), number(&returned[0], 2)), (7, 0));
    assert_eq!(bench.delete(entry(Vec::new())).await, Ok(()));
    assert_eq!(bench.answer_to_packet(17, 0, 0), Some(0));
}

#[tokio::test]
async fn operations_are_executed_by_their_names() {
    let bench = Bench::new().await;
    let operate = async |table: &str, name: &str| {
        let operation = pb::TableOperation {
            table_id: bench.table(table).id,
            table_operations_type: name.to_owned(),
        };
        bench.one(Type::Insert, Entity::TableOperation(operation)).await
    };
    assert_eq!(operate("In.exact_keys", "SyncCounters").await, Ok(()));
    assert_eq!(operate("In.timed_keys", "UpdateHitState").await, Ok(()));
    assert_eq!(operate("In.by_kind", "Sync").await, Ok(()));
    assert_eq!(operate("In.last", "Sync").await, Ok(()));
    // Clients may state the type, or not.
    assert_eq!(operate("In.exact_keys", "Sync").await, Ok(()));
    assert_eq!(operate("In.by_kind", "SyncCounters").await, Ok(()));
    assert_eq!(operate("In.last", "SyncRegisters").await, Ok(()));
    assert_eq!(operate("In.by_kind", "SyncRegisters").await, Err(Code::InvalidArgument));
    assert_eq!(
        operate("In.exact_keys", "SyncRegisters").await,
        Err(Code::InvalidArgument)
    );
    assert_eq!(operate("In.last", "SyncCounters").await, Err(Code::InvalidArgument));
    assert_eq!(operate("In.rates", "Sync").await, Err(Code::InvalidArgument));
}

/// The program with direct resources, shared with the packet tests.
fn direct_program() -> String {
    let all = [
        ("header.p4i", include_str!("../../../weir-stf/tests/tna/header.p4i")),
        ("skeleton.p4i", include_str!("../../../weir-stf/tests/tna/skeleton.p4i")),
    ];
    let program = include_str!("../../../weir-stf/tests/tna/direct.p4").to_owned();
    all.iter().fold(program, |program, (name, text)| {
        program.replace(&format!("#include \"{name}\""), text)
    })
}

/// The output of a packet for the tables of that program.
fn answered(bench: &Bench, op: u8, index: u8, value: u16) -> u16 {
    let [high, low] = value.to_be_bytes();
    let out = bench.switch.send(0, &[op, index, high, low]);
    u16::from_be_bytes([out[0].bytes[2], out[0].bytes[3]])
}

#[tokio::test]
async fn direct_registers_are_data_of_entries() {
    let bench = Bench::of(&direct_program(), Config::default(), Clone::clone).await;
    let table = "I.remembered";
    let seen = bench.table(table).data.iter().find_map(|d| match &d.field {
        DataChoice::One(field) if field.name.contains("seen") => Some(field.id),
        _ => None,
    });
    let seen = seen.expect("the register is data of the table");
    let entry = |index: u8, fields| {
        let key = vec![exact(bench.table(table).key[0].id, &[index])];
        with_data(bench.keyed(table, key), bench.action(table, "remember"), fields)
    };
    // Without a value, the cell has the program's initial value; with one, it has that.
    assert_eq!(bench.insert(entry(1, Vec::new())).await, Ok(()));
    assert_eq!(bench.insert(entry(2, vec![stream(seen, &[1, 0])])).await, Ok(()));
    assert_eq!((answered(&bench, 1, 1, 0), answered(&bench, 1, 2, 0)), (8, 0x101));
    assert_eq!(answered(&bench, 1, 2, 0), 0x102);
    let read = async |index| number(&bench.read(entry(index, Vec::new())).await.expect("is read")[0], seen);
    assert_eq!((read(1).await, read(2).await), (8, 0x102));
    assert_eq!(bench.modify(entry(2, vec![stream(seen, &[0, 5])])).await, Ok(()));
    assert_eq!((answered(&bench, 1, 2, 0), read(1).await), (6, 8));
    assert_eq!(
        bench.modify(entry(2, vec![stream(seen, &[0, 0, 5])])).await,
        Err(Code::InvalidArgument)
    );
}

#[tokio::test]
async fn direct_filters_are_data_of_entries() {
    let bench = Bench::of(&direct_program(), Config::default(), Clone::clone).await;
    let table = "I.filtered";
    let entry = |index: u8, fields| {
        let key = vec![exact(bench.table(table).key[0].id, &[index])];
        with_data(bench.keyed(table, key), bench.action(table, "filter"), fields)
    };
    let id = |name| bench.field(table, name);
    let float = |name, value| field(id(name), Wire::FloatVal(value));
    let fields = vec![
        text(id("$LPF_SPEC_TYPE"), "SAMPLE"),
        float("$LPF_SPEC_GAIN_TIME_CONSTANT_NS", 1000.0),
        float("$LPF_SPEC_DECAY_TIME_CONSTANT_NS", 1000.0),
        stream(id("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR"), &[0, 0, 0, 0]),
    ];
    assert_eq!(bench.insert(entry(1, fields)).await, Ok(()));
    assert_eq!(bench.insert(entry(2, Vec::new())).await, Ok(()));
    // The first entry averages; the second passes values unchanged.
    bench.switch.clock().advance(1000);
    assert_eq!(answered(&bench, 3, 1, 1000), 0x278);
    assert_eq!(answered(&bench, 3, 2, 1000), 1000);
    let returned = bench.read(entry(1, Vec::new())).await.expect("is read");
    assert_eq!(
        value(&returned[0], id("$LPF_SPEC_TYPE")),
        Wire::StrVal("SAMPLE".to_owned())
    );
    assert_eq!(
        value(&returned[0], id("$LPF_SPEC_GAIN_TIME_CONSTANT_NS")),
        Wire::FloatVal(1000.0)
    );

    let table = "I.dropped";
    let id = |name| bench.field(table, name);
    let fields = vec![
        field(id("$WRED_SPEC_TIME_CONSTANT_NS"), Wire::FloatVal(0.0)),
        stream(id("$WRED_SPEC_MIN_THRESH_CELLS"), &[0, 0, 0, 100]),
        stream(id("$WRED_SPEC_MAX_THRESH_CELLS"), &[0, 0, 0, 200]),
        field(id("$WRED_SPEC_MAX_PROBABILITY"), Wire::FloatVal(1.0)),
    ];
    let key = vec![exact(bench.table(table).key[0].id, &[1])];
    let entry = with_data(bench.keyed(table, key), bench.action(table, "drop_early"), fields);
    assert_eq!(bench.insert(entry).await, Ok(()));
    assert_eq!((answered(&bench, 4, 1, 50), answered(&bench, 4, 1, 250)), (0, 1));
}
