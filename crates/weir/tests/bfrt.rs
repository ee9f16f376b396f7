//! `weir run --bfrt`: real workers, a BF Runtime client, both servers at once.

#![cfg(target_os = "linux")]

mod common;

use common::{Running, weir};
use std::path::Path;
use std::time::Duration;
use tonic::transport::Channel;
use weir_proto::bfrt_info::{BfrtInfo, DataChoice, Table};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use weir_proto::bfrt_proto::data_field::Value;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;

/// The first byte of a packet is looked up: it says where to. What is not known goes nowhere.
const PROGRAM: &str = "#include <v1model.p4>
header kind_t { bit<8> kind; }
struct H { kind_t kind; }
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.kind); transition accept; }
}
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets) seen;
    action to(bit<9> port) { s.egress_spec = port; }
    action nowhere() { mark_to_drop(s); }
    table ports { key = { h.kind.kind: exact; } actions = { to; nowhere; } default_action = nowhere(); counters = seen; }
    apply { ports.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h.kind); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
";

/// Starts a switch whose port 2 makes packets that begin with 2; where its BF Runtime server
/// listens.
fn start(folder: &Path, output: &Path, more: &[&str]) -> Running {
    let path = folder.join("kinds.p4");
    std::fs::write(&path, PROGRAM).unwrap();
    let input = folder.join("in.pcap");
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1];
    std::fs::write(&input, head.map(u32::to_le_bytes).concat()).unwrap();
    let one = format!("1@pcap:{},{}", input.display(), output.display());
    let arguments = [
        path.to_str().unwrap(),
        "-i",
        &one,
        "-i",
        "2@gen:size=64,rate=1000,dmac=02:00:00:00:00:01",
        "--bfrt",
        "127.0.0.1:0",
        "--p4runtime",
        "127.0.0.1:0",
    ];
    let run = Running::start(&[&arguments, more].concat(), "BF Runtime");
    let has_both = run.said.iter().any(|line| line.starts_with("P4Runtime at "));
    assert!(has_both, "both servers run: {:?}", run.said);
    run
}

struct Controller {
    client: BfRuntimeClient<Channel>,
    info: BfrtInfo,
    fixed: BfrtInfo,
}

impl Controller {
    async fn connect(address: &str) -> Self {
        let channel = Channel::from_shared(format!("http://{address}")).unwrap();
        let mut client = BfRuntimeClient::new(channel.connect().await.unwrap());
        let request = pb::GetForwardingPipelineConfigRequest::default();
        let told = client
            .get_forwarding_pipeline_config(request)
            .await
            .unwrap()
            .into_inner();
        let parse = |bytes: &[u8]| BfrtInfo::from_json(std::str::from_utf8(bytes).unwrap()).unwrap();
        assert_eq!(told.config[0].p4_name, "kinds");
        Controller {
            client,
            info: parse(&told.config[0].bfruntime_info),
            fixed: parse(&told.non_p4_config.unwrap().bfruntime_info),
        }
    }

    async fn write(&mut self, ty: Type, entry: pb::TableEntry) -> Result<(), tonic::Status> {
        let entity = Some(Entity::TableEntry(entry));
        let request = pb::WriteRequest {
            updates: vec![pb::Update {
                r#type: ty.into(),
                entity: Some(pb::Entity { entity }),
            }],
            p4_name: "kinds".to_owned(),
            ..pb::WriteRequest::default()
        };
        self.client.write(request).await.map(|_| ())
    }

    async fn read(&mut self, entry: pb::TableEntry) -> Vec<pb::TableEntry> {
        let entity = Some(Entity::TableEntry(entry));
        let request = pb::ReadRequest {
            entities: vec![pb::Entity { entity }],
            p4_name: "kinds".to_owned(),
            ..pb::ReadRequest::default()
        };
        let mut stream = self.client.read(request).await.unwrap().into_inner();
        let told = stream.message().await.unwrap().unwrap();
        let entries = told.entities.into_iter().filter_map(|e| match e.entity {
            Some(Entity::TableEntry(entry)) => Some(entry),
            _ => None,
        });
        entries.collect()
    }

    fn port(&self, number: u32, enabled: bool) -> pb::TableEntry {
        let table = self.fixed.table("$PORT").unwrap();
        let text = |name, value: &str| data(field(table, name), Value::StrVal(value.to_owned()));
        let fields = vec![
            text("$SPEED", "BF_SPEED_10G"),
            text("$FEC", "BF_FEC_TYP_NONE"),
            data(field(table, "$PORT_ENABLE"), Value::BoolVal(enabled)),
        ];
        entry(table.id, &number.to_be_bytes(), 0, fields)
    }
}

fn field(table: &Table, name: &str) -> u32 {
    let fields = table.data.iter().filter_map(|d| match &d.field {
        DataChoice::One(field) => Some(field),
        DataChoice::OneOf(_) => None,
    });
    fields.clone().find(|f| f.name == name).unwrap().id
}

fn data(field_id: u32, value: Value) -> pb::DataField {
    pb::DataField {
        field_id,
        value: Some(value),
    }
}

fn entry(table_id: u32, key: &[u8], action_id: u32, fields: Vec<pb::DataField>) -> pb::TableEntry {
    let exact = pb::key_field::Exact {
        value: key.to_vec().into(),
    };
    let key = pb::KeyField {
        field_id: 1,
        match_type: Some(pb::key_field::MatchType::Exact(exact)),
    };
    pb::TableEntry {
        table_id,
        value: Some(pb::table_entry::Value::Key(pb::TableKey { fields: vec![key] })),
        data: Some(pb::TableData { action_id, fields }),
        ..pb::TableEntry::default()
    }
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

/// Waits until more packets are sent to a capture.
async fn grows(path: &Path) {
    let before = length(path);
    for _ in 0..400 {
        tokio::time::sleep(Duration::from_millis(25)).await;
        if length(path) > before {
            return;
        }
    }
    panic!("nothing is sent any more");
}

/// Waits until no more packets are sent to a capture.
async fn stands(path: &Path) {
    for _ in 0..100 {
        let before = length(path);
        tokio::time::sleep(Duration::from_millis(200)).await;
        if length(path) == before {
            return;
        }
    }
    panic!("packets are still sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_and_ports_govern_running_workers() {
    for workers in ["1", "2"] {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.pcap");
        let switch = start(folder.path(), &output, &["--workers", workers]);
        let mut controller = Controller::connect(&switch.address).await;
        let table = controller.info.table("pipe.I.ports").unwrap().clone();
        let action = table
            .action_specs
            .iter()
            .flatten()
            .find(|a| a.name == "I.to")
            .unwrap()
            .id;
        let to = |port: u8| {
            entry(
                table.id,
                &[2],
                action,
                vec![data(1, Value::Stream(vec![0, port].into()))],
            )
        };
        stands(&output).await;
        controller.write(Type::Insert, to(1)).await.unwrap();
        grows(&output).await;
        assert!(controller.write(Type::Insert, to(1)).await.is_err());

        // A port that was added is as it is said; one that there is not cannot be added.
        controller.write(Type::Insert, controller.port(1, false)).await.unwrap();
        stands(&output).await;
        controller.write(Type::Modify, controller.port(1, true)).await.unwrap();
        grows(&output).await;
        assert!(controller.write(Type::Insert, controller.port(9, true)).await.is_err());
        controller.write(Type::Delete, controller.port(1, true)).await.unwrap();
        stands(&output).await;

        // Counts are those of all workers.
        let told = controller.read(entry(table.id, &[2], 0, Vec::new())).await;
        let packets = field(&table, "$COUNTER_SPEC_PKTS");
        let fields = &told[0].data.as_ref().unwrap().fields;
        let Some(Value::Stream(bytes)) = &fields.iter().find(|f| f.field_id == packets).unwrap().value else {
            panic!("{told:?} has no count")
        };
        assert!(bytes.iter().any(|b| *b != 0), "{workers} workers");
    }
}

#[test]
fn what_bf_runtime_needs_is_said() {
    let (code, _, said) = weir(&["run", "x.p4", "-i", "1@null", "--p4-name", "x"]);
    assert_eq!(code, 2);
    assert!(said.contains("--bfrt"), "{said}");
    let (code, _, said) = weir(&["run", "x.p4", "-i", "1@null", "--bfrt", "here"]);
    assert_eq!(code, 2);
    assert!(said.contains("an IP address with a port"), "{said}");
}
