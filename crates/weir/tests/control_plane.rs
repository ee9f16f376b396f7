//! `weir run` with a control plane: real workers, a real P4Runtime client.

#![cfg(target_os = "linux")]

mod common;

use common::weir;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use weir_proto::p4::config::v1::P4Info;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use weir_proto::p4::v1::stream_message_request::Update as Ask;
use weir_proto::p4::v1::stream_message_response::Update as Told;

/// The first byte of a packet is looked up: it says where to. What is not known goes to the CPU
/// port 9; what comes from there goes to the port that its header names.
const PROGRAM: &str = "#include <v1model.p4>
@controller_header(\"packet_out\") header out_t { bit<9> port; bit<7> pad; }
@controller_header(\"packet_in\") header in_t { bit<9> port; bit<7> pad; }
header kind_t { bit<8> kind; }
struct H { out_t from_cpu; in_t to_cpu; kind_t kind; }
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { transition select(s.ingress_port) { 9: from_cpu; default: kind; } }
    state from_cpu { p.extract(h.from_cpu); transition kind; }
    state kind { p.extract(h.kind); transition accept; }
}
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    counter(4, CounterType.packets) seen;
    action to(bit<9> port) { s.egress_spec = port; }
    action ask() { h.to_cpu.setValid(); h.to_cpu.port = s.ingress_port; s.egress_spec = 9; }
    table ports { key = { h.kind.kind: exact; } actions = { to; ask; } default_action = ask(); size = 65536; }
    apply {
        seen.count(1);
        if (h.from_cpu.isValid()) {
            if (h.from_cpu.port == 9) { ask(); } else { s.egress_spec = h.from_cpu.port; }
            h.from_cpu.setInvalid();
        }
        else { ports.apply(); }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h.to_cpu); p.emit(h.kind); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
";

/// A switch that runs, killed with this.
struct Switch {
    child: Child,
    address: String,
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

impl Switch {
    fn start(folder: &Path, program: &str, more: &[&str]) -> Self {
        let path = folder.join("program.p4");
        std::fs::write(&path, program).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args([
                "run",
                &path.display().to_string(),
                "--p4runtime",
                "127.0.0.1:0",
                "--cpu-port",
                "9",
                "--json",
            ])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut address = None;
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(at) = line.strip_prefix("P4Runtime at ") {
                address = Some(at.to_owned());
            }
            if line.starts_with("running") {
                break;
            }
        }
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Switch {
            child,
            address: address.expect("it says where it listens"),
        }
    }

    /// Stops it; its last statistics.
    fn stop(mut self) -> serde_json::Value {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(out.lines().last().unwrap()).unwrap()
    }
}

struct Controller {
    client: P4RuntimeClient<Channel>,
    out: mpsc::Sender<pb::StreamMessageRequest>,
    incoming: tonic::Streaming<pb::StreamMessageResponse>,
    info: P4Info,
}

impl Controller {
    async fn connect(switch: &Switch) -> Self {
        let channel = Channel::from_shared(format!("http://{}", switch.address)).unwrap();
        let mut client = P4RuntimeClient::new(channel.connect().await.unwrap());
        let (out, requests) = mpsc::channel(16);
        let hello = pb::MasterArbitrationUpdate {
            device_id: 1,
            election_id: Some(pb::Uint128 { high: 0, low: 1 }),
            ..pb::MasterArbitrationUpdate::default()
        };
        let update = Some(Ask::Arbitration(hello));
        out.send(pb::StreamMessageRequest { update }).await.unwrap();
        let incoming = client.stream_channel(ReceiverStream::new(requests)).await.unwrap();
        let mut controller = Controller {
            client,
            out,
            incoming: incoming.into_inner(),
            info: P4Info::default(),
        };
        assert!(matches!(controller.next().await, Told::Arbitration(_)));
        let request = pb::GetForwardingPipelineConfigRequest {
            device_id: 1,
            ..pb::GetForwardingPipelineConfigRequest::default()
        };
        let config = controller.client.get_forwarding_pipeline_config(request).await.unwrap();
        controller.info = config.into_inner().config.unwrap().p4info.unwrap();
        controller
    }

    async fn next(&mut self) -> Told {
        let next = tokio::time::timeout(Duration::from_secs(20), self.incoming.message()).await;
        next.expect("in time").unwrap().unwrap().update.unwrap()
    }

    fn entry(&self, kind: u8, port: u8) -> Entity {
        let table = &self.info.tables[0];
        let to = self
            .info
            .actions
            .iter()
            .find(|a| a.preamble.as_ref().unwrap().alias == "to")
            .unwrap();
        let exact = pb::field_match::Exact { value: vec![kind] };
        let action = pb::Action {
            action_id: to.preamble.as_ref().unwrap().id,
            params: vec![pb::action::Param {
                param_id: 1,
                value: vec![port],
            }],
        };
        Entity::TableEntry(pb::TableEntry {
            table_id: table.preamble.as_ref().unwrap().id,
            r#match: vec![pb::FieldMatch {
                field_id: 1,
                field_match_type: Some(pb::field_match::FieldMatchType::Exact(exact)),
            }],
            action: Some(pb::TableAction {
                r#type: Some(pb::table_action::Type::Action(action)),
            }),
            ..pb::TableEntry::default()
        })
    }

    async fn insert(&mut self, entities: Vec<Entity>) -> Result<(), tonic::Status> {
        let update = |entity| pb::Update {
            r#type: pb::update::Type::Insert.into(),
            entity: Some(pb::Entity { entity: Some(entity) }),
        };
        let request = pb::WriteRequest {
            device_id: 1,
            election_id: Some(pb::Uint128 { high: 0, low: 1 }),
            updates: entities.into_iter().map(update).collect(),
            ..pb::WriteRequest::default()
        };
        self.client.write(request).await.map(|_| ())
    }

    async fn read(&mut self, entity: Entity) -> Vec<Entity> {
        let request = pb::ReadRequest {
            device_id: 1,
            entities: vec![pb::Entity { entity: Some(entity) }],
            ..pb::ReadRequest::default()
        };
        let mut stream = self.client.read(request).await.unwrap().into_inner();
        let mut found = Vec::new();
        while let Some(response) = stream.message().await.unwrap() {
            found.extend(response.entities.into_iter().filter_map(|e| e.entity));
        }
        found
    }

    async fn send(&self, port: u8, payload: &[u8]) {
        let metadata = pb::PacketMetadata {
            metadata_id: 1,
            value: vec![port],
        };
        let pad = pb::PacketMetadata {
            metadata_id: 2,
            value: vec![0],
        };
        let packet = pb::PacketOut {
            payload: payload.to_vec(),
            metadata: vec![metadata, pad],
        };
        let update = Some(Ask::Packet(packet));
        self.out.send(pb::StreamMessageRequest { update }).await.unwrap();
    }

    async fn load(&mut self, program: &str) -> Result<(), tonic::Status> {
        let request = pb::SetForwardingPipelineConfigRequest {
            device_id: 1,
            election_id: Some(pb::Uint128 { high: 0, low: 1 }),
            action: pb::set_forwarding_pipeline_config_request::Action::VerifyAndCommit.into(),
            config: Some(pb::ForwardingPipelineConfig {
                p4info: Some(self.info.clone()),
                p4_device_config: program.as_bytes().to_vec(),
                ..pb::ForwardingPipelineConfig::default()
            }),
            ..pb::SetForwardingPipelineConfigRequest::default()
        };
        self.client.set_forwarding_pipeline_config(request).await.map(|_| ())
    }
}

/// Waits until a capture holds this many packets; they.
async fn captured(path: &Path, count: usize) -> Vec<Vec<u8>> {
    for _ in 0..400 {
        let bytes = std::fs::read(path).unwrap_or_default();
        let mut rest = bytes.get(24..).unwrap_or_default();
        let mut packets = Vec::new();
        while let Some((head, after)) = rest.split_at_checked(16) {
            let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
            let Some((packet, after)) = after.split_at_checked(length) else {
                break;
            };
            packets.push(packet.to_vec());
            rest = after;
        }
        if packets.len() >= count {
            return packets;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} never holds {count} packets", path.display())
}

/// An empty capture.
fn empty_capture(path: &Path) {
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1];
    std::fs::write(path, head.map(u32::to_le_bytes).concat()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_writes_reads_counts_and_exchanges_packets_with_running_workers() {
    for workers in ["1", "2"] {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("in.pcap"), folder.path().join("out.pcap"));
        empty_capture(&input);
        let one = format!("1@pcap:{},{}", input.display(), output.display());
        let switch = Switch::start(
            folder.path(),
            PROGRAM,
            &["-i", &one, "-i", "2@null", "--workers", workers],
        );
        let mut controller = Controller::connect(&switch).await;
        let entities: Vec<Entity> = (0..200).map(|kind| controller.entry(kind, 1)).collect();
        controller.insert(entities).await.unwrap();
        let again = controller.insert(vec![controller.entry(7, 2)]).await.unwrap_err();
        assert_eq!(again.code(), tonic::Code::Unknown, "{again}");
        let any = Entity::TableEntry(pb::TableEntry {
            table_id: controller.info.tables[0].preamble.as_ref().unwrap().id,
            ..pb::TableEntry::default()
        });
        assert_eq!(controller.read(any).await.len(), 200);

        // Out of a port, through the program.
        controller.send(1, &[0x55, 1, 2, 3]).await;
        assert_eq!(captured(&output, 1).await[0][..4], [0x55, 1, 2, 3]);
        // To the CPU port itself, and from there as a packet-in.
        controller.send(9, &[0x66, 9]).await;
        let Told::Packet(packet) = controller.next().await else {
            panic!("no packet came")
        };
        assert!(
            packet.payload.ends_with(&[0x66, 9]) || packet.payload.is_empty(),
            "{packet:?}"
        );

        let counter = pb::CounterEntry {
            counter_id: controller.info.counters[0].preamble.as_ref().unwrap().id,
            index: Some(pb::Index { index: 1 }),
            data: None,
        };
        let counted = controller.read(Entity::CounterEntry(counter)).await;
        let [Entity::CounterEntry(counted)] = counted.as_slice() else {
            panic!("{counted:?}")
        };
        assert_eq!(counted.data.as_ref().unwrap().packet_count, 2, "{workers} workers");
        let statistics = switch.stop();
        assert!(statistics["drops"].as_array().is_none_or(Vec::is_empty), "{statistics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_replaces_the_program_and_what_is_wrong_with_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::start(folder.path(), PROGRAM, &["-i", "1@null", "--workers", "2"]);
    let mut controller = Controller::connect(&switch).await;
    controller.insert(vec![controller.entry(1, 1)]).await.unwrap();
    let wrong = controller.load("control C() {").await.unwrap_err();
    assert_eq!(wrong.code(), tonic::Code::InvalidArgument, "{wrong}");
    let any = || Entity::TableEntry(pb::TableEntry::default());
    assert_eq!(controller.read(any()).await.len(), 1);
    controller
        .load(&PROGRAM.replace("seen.count(1)", "seen.count(2)"))
        .await
        .unwrap();
    assert!(
        controller.read(any()).await.is_empty(),
        "the new program begins without entries"
    );
    controller.insert(vec![controller.entry(1, 1)]).await.unwrap();
    assert_eq!(switch.stop()["reloads"], 1);
}

#[test]
fn flags_of_the_control_plane_say_what_they_need() {
    let (code, _, said) = weir(&["run", "x.p4", "-i", "1@null", "--cpu-port", "3"]);
    assert_eq!(code, 2);
    assert!(said.contains("--p4runtime"), "{said}");
    let (code, _, said) = weir(&["run", "x.p4", "-i", "1@null", "--p4runtime", "here"]);
    assert_eq!(code, 2);
    assert!(said.contains("an IP address with a port"), "{said}");
}
