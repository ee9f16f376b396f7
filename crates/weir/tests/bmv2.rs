//! The commands of bmv2's users, by links and by `weir bmv2`.

#![cfg(target_os = "linux")]

mod common;

use common::weir;
use prost::Message;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use tonic::Code;
use tonic::transport::Endpoint;
use weir_proto::p4::config::v1::P4Info;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use weir_proto::p4::v1::set_forwarding_pipeline_config_request::Action;

const COMPILER_OUTPUT_OF_P4C: &str = r#"{"program": "a.p4", "__meta__": {"version": [2, 23], "compiler": "p4c"},
    "header_types": [], "pipelines": [{"name": "ingress", "tables": []}]}"#;

/// A folder with the links.
struct Links(TempDir);

impl Links {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (code, out, err) = weir(&["bmv2", "install", &folder.path().display().to_string()]);
        assert_eq!((code, out.lines().count()), (0, 5), "{err}");
        Links(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.path(name));
        command.args(arguments).current_dir(self.0.path()).output().unwrap()
    }

    /// Compiles a program to `l2.json` and `l2.bin`.
    fn compile(&self) {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs/l2_switch/l2_switch.p4");
        let arguments = ["--p4v", "16", "--p4runtime-files", "l2.txtpb,l2.bin", "-o", "l2.json"];
        let program = program.display().to_string();
        let out = self.run("p4c-bm2-ss", &[&arguments[..], &[&program]].concat());
        assert!(out.status.success(), "{}", text(&out.stderr));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A switch that runs, killed with this, and where it serves.
struct Switch {
    child: Child,
    said: Vec<String>,
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Switch {
    fn start(links: &Links, arguments: &[&str]) -> Self {
        let mut child = Command::new(links.path("simple_switch_grpc"))
            .args(arguments)
            .args(["--thrift-port", "0", "--", "--grpc-server-addr", "127.0.0.1:0"])
            .current_dir(links.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut said = Vec::new();
        for line in lines.by_ref() {
            let is_running = line.contains("running");
            said.push(line);
            if is_running {
                break;
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        Switch { child, said }
    }

    fn address(&self, server: &str) -> String {
        let prefix = format!("{server} at ");
        let found = self.said.iter().find_map(|line| line.strip_prefix(&prefix));
        found.unwrap_or_else(|| panic!("{server}: {:?}", self.said)).to_owned()
    }

    /// What the runtime CLI prints for these lines.
    fn cli(&self, links: &Links, lines: &str) -> String {
        let address = self.address("simple_switch_CLI");
        let port = address.rsplit(':').next().unwrap();
        let mut child = Command::new(links.path("simple_switch_CLI"))
            .args(["--thrift-port", port])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success());
        text(&out.stdout)
    }
}

/// `p4.tmp.P4DeviceConfig` around data.
fn wrapped(data: &[u8]) -> Vec<u8> {
    let mut config = vec![0x08, 0x01, 0x1a];
    prost::encode_length_delimiter(data.len(), &mut config).unwrap();
    config.extend_from_slice(data);
    config
}

#[test]
fn install_leaves_foreign_files_alone_and_replaces_its_own_links() {
    let links = Links::new();
    std::fs::remove_file(links.path("p4c")).unwrap();
    std::fs::write(links.path("p4c"), "the other one").unwrap();
    let (code, out, err) = weir(&["bmv2", "install", &links.0.path().display().to_string()]);
    assert_eq!((code, out.lines().count()), (1, 4), "{err}");
    assert!(err.contains("p4c exists and is no link of weir"), "{err}");
    assert_eq!(std::fs::read_to_string(links.path("p4c")).unwrap(), "the other one");
    let (code, out, _) = weir(&["bmv2", "--help"]);
    assert!(code == 0 && out.contains("weir bmv2 install"), "{out}");
    let (code, _, err) = weir(&["bmv2", "simple_switch_cli"]);
    assert!(code == 2 && err.contains("simple_switch_CLI"), "{err}");
}

#[test]
fn the_compilers_write_json_and_p4info_where_p4c_would() {
    let links = Links::new();
    links.compile();
    let json = std::fs::read_to_string(links.path("l2.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["program"].as_str().unwrap().ends_with("l2_switch.p4"));
    let binary = P4Info::decode(std::fs::read(links.path("l2.bin")).unwrap().as_slice()).unwrap();
    let read = weir_proto::text::from_text::<P4Info>(&std::fs::read_to_string(links.path("l2.txtpb")).unwrap());
    assert_eq!(read.unwrap(), binary);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs/l2_switch/l2_switch.p4");
    let program = program.display().to_string();
    let driver = [
        "--target",
        "bmv2",
        "--arch",
        "v1model",
        "--std",
        "p4-16",
        "-o",
        "build",
        "--p4runtime-files",
        "i.json",
    ];
    let out = links.run("p4c", &[&driver[..], &[&program]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(links.path("build/l2_switch.json").is_file());
    let info: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(links.path("i.json")).unwrap()).unwrap();
    assert!(info["tables"][0]["matchFields"].is_array(), "{info}");
    let out = links.run("p4c", &["--p4v", "14", &program]);
    assert_eq!(out.status.code(), Some(2));
    std::fs::write(links.path("wrong.p4"), "control c() { apply { x = 1; } }").unwrap();
    let out = links.run("p4c-bm2-ss", &["wrong.p4", "-o", "wrong.json"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(!links.path("wrong.json").exists());
}

#[test]
fn the_json_of_p4c_is_refused_with_what_to_do() {
    let links = Links::new();
    std::fs::write(links.path("p4c.json"), COMPILER_OUTPUT_OF_P4C).unwrap();
    let out = links.run("simple_switch", &["-i", "1@null", "--thrift-port", "0", "p4c.json"]);
    let err = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        err.contains("it is the JSON of p4c") && err.contains("weir bmv2 p4c-bm2-ss"),
        "{err}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_without_a_program_takes_one_from_a_controller() {
    let links = Links::new();
    links.compile();
    let switch = Switch::start(&links, &["-i", "1@null", "-i", "2@null", "--no-p4"]);
    assert!(
        switch
            .cli(&links, "show_tables\n")
            .contains("Error: no forwarding pipeline config")
    );
    let address = format!("http://{}", switch.address("P4Runtime"));
    let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
    let mut client = P4RuntimeClient::new(channel);
    let election = Some(pb::Uint128 { high: 0, low: 1 });
    let (hello, stream) = tokio::sync::mpsc::channel(1);
    let arbitration = pb::MasterArbitrationUpdate {
        device_id: 0,
        election_id: election,
        ..pb::MasterArbitrationUpdate::default()
    };
    let hello_message = pb::StreamMessageRequest {
        update: Some(pb::stream_message_request::Update::Arbitration(arbitration)),
    };
    hello.send(hello_message).await.unwrap();
    let stream = tokio_stream::wrappers::ReceiverStream::new(stream);
    let mut answers = client.stream_channel(stream).await.unwrap().into_inner();
    answers.message().await.unwrap().unwrap();
    let read = pb::ReadRequest::default();
    let refused = match client.read(read).await {
        Ok(answers) => answers.into_inner().message().await.unwrap_err(),
        Err(refused) => refused,
    };
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let info = P4Info::decode(std::fs::read(links.path("l2.bin")).unwrap().as_slice()).unwrap();
    let set = |device_config: Vec<u8>| pb::SetForwardingPipelineConfigRequest {
        device_id: 0,
        election_id: election,
        action: Action::VerifyAndCommit.into(),
        config: Some(pb::ForwardingPipelineConfig {
            p4info: Some(info.clone()),
            p4_device_config: device_config,
            cookie: None,
        }),
        ..pb::SetForwardingPipelineConfigRequest::default()
    };
    let json = std::fs::read(links.path("l2.json")).unwrap();
    for p4c in [
        COMPILER_OUTPUT_OF_P4C.as_bytes().to_vec(),
        wrapped(COMPILER_OUTPUT_OF_P4C.as_bytes()),
    ] {
        let refused = client.set_forwarding_pipeline_config(set(p4c)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("it is the JSON of p4c"), "{refused}");
    }
    for config in [wrapped(&json), json] {
        client.set_forwarding_pipeline_config(set(config)).await.unwrap();
        assert!(switch.cli(&links, "show_tables\n").contains("destination_macs"));
    }
}

#[test]
fn the_runtime_cli_changes_a_running_switch() {
    let links = Links::new();
    links.compile();
    let switch = Switch::start(
        &links,
        &[
            "-i",
            "1@null",
            "l2.json",
            "--nanolog",
            "ipc:///tmp/x",
            "--device-id",
            "3",
        ],
    );
    assert!(
        switch
            .said
            .iter()
            .any(|line| line.starts_with("--nanolog has no effect"))
    );
    let printed = switch.cli(
        &links,
        "# a comment\ntable_add destination_macs forward 08:00:00:00:01:11 => 1\ntable_add x y 1 =>\n\nhelp table_add\n\
         table_num_entries destination_macs\nshow_ports\nswitch_info\nwrite_config_to_file /nonexistent/x\n",
    );
    for expected in [
        "Entry has been added with handle 0\n",
        "RuntimeCmd: Error: no table is called `x`",
        "table_add TABLE ACTION",
        "RuntimeCmd: 1\n",
        "device_id           : 3\n",
        "/nonexistent",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    // As the prompt does where a name is completed before the first command.
    let address = switch.address("simple_switch_CLI");
    let mut stream = std::net::TcpStream::connect(&address).unwrap();
    stream.write_all(b"\"names\"\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    let (greeting, names) = (lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap());
    assert!(greeting.contains("weir_runtime"), "{greeting}");
    assert!(names.contains("destination_macs"), "{names}");
    let saved = links.path("saved.json");
    switch.cli(&links, &format!("write_config_to_file {}\n", saved.display()));
    let again = Switch::start(&links, &["-i", "1@null", &saved.display().to_string()]);
    assert!(again.cli(&links, "show_tables").contains("destination_macs"));
    let idle: Vec<_> = (0..64)
        .map(|_| std::net::TcpStream::connect(&address).unwrap())
        .collect();
    let mut last = BufReader::new(std::net::TcpStream::connect(&address).unwrap()).lines();
    let refused = last.next().unwrap().unwrap();
    assert!(refused.contains("64 clients are connected"), "{refused}");
    drop(idle);
}

#[test]
fn without_a_switch_the_runtime_cli_says_so() {
    let links = Links::new();
    let out = links.run("simple_switch_CLI", &["--thrift-port", "1"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("--thrift-port 1"), "{}", text(&out.stderr));
}

#[test]
fn a_log_has_traces_with_times_and_captures_have_both_directions() {
    let links = Links::new();
    links.compile();
    let arguments = [
        "-i",
        "1@gen:count=3,rate=1000",
        "-i",
        "2@null",
        "--log-file",
        "log",
        "--pcap",
        "pcaps",
        "l2.json",
    ];
    let mut child = Command::new(links.path("simple_switch"))
        .args(arguments)
        .args(["--thrift-port", "0"])
        .current_dir(links.0.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = || std::fs::read_to_string(links.path("log.txt")).unwrap_or_default();
    let begin = std::time::Instant::now();
    while !log().contains("packet 3 at port 1") && begin.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(
        Command::new("kill")
            .arg(child.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    child.wait().unwrap();
    let log = log();
    assert!(log.contains("packet 3 at port 1"), "{log}");
    assert!(
        log.lines()
            .all(|line| line.starts_with('[') && line.contains("] [bmv2] ")),
        "{log}"
    );
    let count = |name: &str| {
        let file = std::fs::read(links.path("pcaps").join(name)).unwrap();
        let mut reader = weir_io::pcap::PcapReader::new(file.as_slice()).unwrap();
        let mut count = 0;
        while reader.next_packet().unwrap().is_some() {
            count += 1;
        }
        count
    };
    assert_eq!(
        (count("port1_in.pcap"), count("port1.pcapng"), count("port2_in.pcap")),
        (3, 3, 0)
    );
}
