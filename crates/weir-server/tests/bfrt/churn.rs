//! Two hundred connections that open and close during writes: ids and bindings stay correct, and
//! nothing of closed connections remains.

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

/// Client ids, fewer than connections, so that some are in use.
const IDS: u64 = 150;

/// State shared by all connections.
struct Bindings {
    bench: Bench,
    /// Clients that are bound to the program.
    holders: AtomicU64,
    /// The number of successful bindings.
    bound_count: AtomicU64,
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

impl Churn for Bindings {
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
        let returned = tokio::time::timeout(Duration::from_secs(60), session.incoming.message()).await;
        match returned.expect("nobody stalls") {
            Err(status) => {
                assert_eq!(status.code(), Code::InvalidArgument, "the number is taken");
                return false;
            }
            Ok(message) => assert!(message.is_some_and(|m| m.update.is_some())),
        }
        match bind(&mut client, id).await {
            Ok(()) => {
                assert_eq!(self.holders.fetch_add(1, Ordering::SeqCst), 0, "two hold the program");
                self.bound_count.fetch_add(1, Ordering::Relaxed);
                let key = 100 + n.below(100) as u32;
                let mut request = write_request(
                    vec![update(
                        Type::InsertOrModify,
                        Entity::TableEntry(self.bench.entry(key, 1)),
                    )],
                    pb::write_request::Atomicity::ContinueOnError,
                );
                // Addressed by the binding, not by the name.
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
        self.bench.answer_to_packet(1, 0, 1)
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
    let bonds = Arc::new(Bindings {
        bench: Bench::with(config).await,
        holders: AtomicU64::new(0),
        bound_count: AtomicU64::new(0),
    });
    assert_eq!(bonds.bench.insert(bonds.bench.entry(1, 0)).await, Ok(()));
    churn::come_and_go(&bonds, ()).await;
    assert!(bonds.bound_count.load(Ordering::Relaxed) > 0);
    let _last = bonds.bench.bound(1).await;
}
