//! How fast a BF Runtime server takes entries: batches of pre-made requests over TCP loopback, into
//! the firewall of the bundled programs.
//!
//! `cargo run --release -p weir-server --example bfrt_load -- [ENTRIES [ROUNDS]]`
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpListener;
use weir_compiler::{Options, compile_file};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use weir_server::bfrt::{BfRuntime, Config, serve_on};
use weir_server::{Clock, Device, Standalone};

const TABLE: &str = "pipe.FirewallIngress.address_pairs";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let entries: u32 = arguments.next().map_or(Ok(100_000), |a| a.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(5), |a| a.parse())?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs/acl_firewall_tna/acl_firewall_tna.p4");
    let compiled = compile_file(&path, &Options::default(), weir_arch::targets());
    let program = Arc::new(compiled.program.ok_or("the program does not compile")?);
    let info = weir_compiler::bfrt::bfrt_info(&program, weir_arch::targets()).map_err(|_| "no description")?;
    let table = info.table(TABLE).ok_or("no table")?;
    let action = table.action_specs.iter().flatten().next().ok_or("no action")?.id;
    let switch = Standalone::new(Arc::clone(&program), None, Clock::real())?;
    let device = Device::new(Arc::new(switch), Some(program), "acl_firewall_tna", 1)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    tokio::spawn(serve_on(
        BfRuntime::on(&device, Config::default()),
        listener,
        std::future::pending(),
    ));
    let channel = tonic::transport::Channel::from_shared(address)?.connect().await?;
    let mut client = BfRuntimeClient::new(channel).max_decoding_message_size(1 << 30);
    let exact = |field_id, value: u32| pb::KeyField {
        field_id,
        match_type: Some(pb::key_field::MatchType::Exact(pb::key_field::Exact {
            value: value.to_be_bytes().to_vec().into(),
        })),
    };
    let entry = |key: Option<u32>| pb::TableEntry {
        table_id: table.id,
        value: key.map(|k| {
            let fields = vec![exact(1, k), exact(2, !k)];
            pb::table_entry::Value::Key(pb::TableKey { fields })
        }),
        data: Some(pb::TableData {
            action_id: action,
            fields: Vec::new(),
        }),
        ..pb::TableEntry::default()
    };
    let update = |ty: pb::update::Type, key| pb::Update {
        r#type: ty.into(),
        entity: Some(pb::Entity {
            entity: Some(pb::entity::Entity::TableEntry(entry(key))),
        }),
    };
    let request = |updates| pb::WriteRequest {
        updates,
        p4_name: "acl_firewall_tna".into(),
        ..pb::WriteRequest::default()
    };
    let inserts = request(
        (0..entries)
            .map(|k| update(pb::update::Type::Insert, Some(k)))
            .collect(),
    );
    let clear = request(vec![update(pb::update::Type::Delete, None)]);
    for round in 0..rounds {
        let batch = inserts.clone();
        let begin = Instant::now();
        client.write(batch).await?;
        let written = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let all = pb::ReadRequest {
            entities: vec![pb::Entity {
                entity: Some(pb::entity::Entity::TableEntry(pb::TableEntry {
                    data: None,
                    ..entry(None)
                })),
            }],
            p4_name: "acl_firewall_tna".into(),
            ..pb::ReadRequest::default()
        };
        let mut stream = client.read(all).await?.into_inner();
        let mut found = 0;
        while let Some(response) = stream.message().await? {
            found += response.entities.len();
        }
        let read = begin.elapsed().as_secs_f64();
        client.write(clear.clone()).await?;
        eprintln!(
            "round {round}: {entries} entries written in {:.1} ms ({:.0} entries/s), {found} read in {:.1} ms",
            written * 1e3,
            f64::from(entries) / written,
            read * 1e3
        );
    }
    Ok(())
}
