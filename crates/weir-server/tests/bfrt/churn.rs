//! Two hundred connections that open and die while others write: ids and bonds stay right, and
//! nothing is left of them.

use crate::common::*;
use crate::shared::Numbers;
use crate::shared::churn::{self, Churn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tonic::Code;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use weir_proto::bfrt_proto::update::Type;
use weir_server::bfrt::Config;

/// Numbers of clients, fewer than connections: some are taken.
const IDS: u64 = 150;

/// What all connections share.
struct Bonds {
    bench: Bench,
    /// Clients that hold the program.
    holders: AtomicU64,
    /// How often one has held it.
    held: AtomicU64,
}

async fn bind(client: &mut Client, id: u32) -> Result<(), Code> {
    let request = pb::SetForwardingPipelineConfigRequest {
        client_id: id,
        action: Action::Bind.into(),
        config: vec![pb::ForwardingPipelineConfig {
            p4_name: NAME.to_owned(),
            ..pb::ForwardingPipelineConfig::default()
        }],
        ..pb::SetForwardingPipelineConfigRequest::default()
    };
    let answer = client.set_forwarding_pipeline_config(request).await;
    answer.map(|_| ()).map_err(|s| s.code())
}

impl Churn for Bonds {
    fn address(&self) -> SocketAddr {
        self.bench.address
    }

    async fn live(&self, n: &mut Numbers) -> bool {
        let mut client = connect(self.bench.address).await;
        let id = n.below(IDS) as u32 + 1;
        let mut session = Session::open(&client, id).await;
        if n.below(8) == 0 {
            return false;
        }
        session.subscribe(everything()).await;
        if n.below(8) == 0 {
            return false;
        }
        let told = tokio::time::timeout(Duration::from_secs(60), session.incoming.message()).await;
        match told.expect("nobody stalls") {
            Err(status) => {
                assert_eq!(status.code(), Code::InvalidArgument, "the number is taken");
                return false;
            }
            Ok(message) => assert!(message.is_some_and(|m| m.update.is_some())),
        }
        match bind(&mut client, id).await {
            Ok(()) => {
                assert_eq!(self.holders.fetch_add(1, Ordering::SeqCst), 0, "two hold the program");
                self.held.fetch_add(1, Ordering::Relaxed);
                let key = 100 + n.below(100) as u32;
                let mut request = write_request(
                    vec![update(
                        Type::InsertOrModify,
                        Entity::TableEntry(self.bench.entry(key, 1)),
                    )],
                    pb::write_request::Atomicity::ContinueOnError,
                );
                // By the bond, not by the name.
                request.p4_name.clear();
                request.client_id = id;
                let written = client.write(request).await;
                assert!(written.is_ok(), "{written:?}");
                self.holders.fetch_sub(1, Ordering::SeqCst);
            }
            Err(code) => assert_eq!(code, Code::AlreadyExists),
        }
        if n.below(2) == 0 {
            tokio::time::sleep(Duration::from_millis(n.below(20))).await;
        }
        true
    }

    async fn write(&self, value: u32) {
        assert_eq!(self.bench.modify(self.bench.entry(1, value)).await, Ok(()));
    }

    fn written(&self) -> Option<u32> {
        self.bench.ask(1, 0, 1)
    }

    fn clients(&self) -> usize {
        self.bench.server.clients()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn while_connections_come_and_go_others_write_and_nothing_is_left() {
    let config = Config {
        max_streams: 1000,
        ..Config::default()
    };
    let bonds = Arc::new(Bonds {
        bench: Bench::with(config).await,
        holders: AtomicU64::new(0),
        held: AtomicU64::new(0),
    });
    assert_eq!(bonds.bench.insert(bonds.bench.entry(1, 0)).await, Ok(()));
    churn::come_and_go(&bonds, ()).await;
    assert!(bonds.held.load(Ordering::Relaxed) > 0);
    let _last = bonds.bench.bound(1).await;
}
