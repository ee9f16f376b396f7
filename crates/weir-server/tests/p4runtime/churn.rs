//! Two hundred connections that open and die while others write: who is primary stays right, and
//! nothing is left of them.

use crate::common::*;
use crate::shared::Numbers;
use crate::shared::churn::{self, Churn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tonic::Code;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_server::p4rt::Config;

/// The election id of the primary of the default role during the whole test: no other id is higher.
const STEADY: u64 = 1 << 40;

/// What all connections share.
struct Elections {
    bench: Bench,
    next: AtomicU64,
}

fn entry(bench: &Bench, key: u8, value: u32) -> Entity {
    Entity::TableEntry(bench.entry("exact_table", vec![exact(1, &[key])], value))
}

async fn write(client: &Client, role: &str, election: u64, of: Entity, ty: Type) -> Result<(), Code> {
    let request = pb::WriteRequest {
        role: role.to_owned(),
        election_id: Some(pb::Uint128 { high: 0, low: election }),
        ..write_request(vec![update(ty, of)], Atomicity::ContinueOnError)
    };
    client.clone().write(request).await.map(|_| ()).map_err(|s| s.code())
}

impl Churn for Elections {
    fn address(&self) -> SocketAddr {
        self.bench.address
    }

    async fn live(&self, n: &mut Numbers) -> bool {
        let client = connect(self.bench.address).await;
        let mut controller = Controller::open(&client).await;
        if n.below(8) == 0 {
            return false;
        }
        let is_steady_role = n.below(3) == 0;
        let role = match is_steady_role {
            true => String::new(),
            false => format!("role{}", n.below(4)),
        };
        let own = self.next.fetch_add(1, Ordering::Relaxed);
        controller.arbitrate(hello(&role, Some(own))).await;
        if n.below(8) == 0 {
            return false;
        }
        let told = tokio::time::timeout(Duration::from_secs(60), controller.incoming.message()).await;
        let told = told
            .expect("nobody stalls")
            .expect("the stream is good")
            .expect("goes on");
        let Some(pb::stream_message_response::Update::Arbitration(told)) = told.update else {
            panic!("{told:?} is not about who is primary")
        };
        let highest = told.election_id.map_or(0, |e| e.low);
        let code = told.status.map_or(-1, |s| s.code);
        match code {
            0 => assert!(highest == own && !is_steady_role, "{highest} {own} {role}"),
            // There is a higher one, whose stream lives or does not.
            5 | 6 => assert!(
                highest > own && (!is_steady_role || code == 6),
                "{highest} {own} {role} {code}"
            ),
            code => panic!("the status is {code}"),
        }
        assert!(!is_steady_role || highest == STEADY);
        let key = 100 + n.below(100) as u8;
        let ty = [Type::Insert, Type::Modify, Type::Delete][n.below(3) as usize];
        let written = write(&client, &role, own, entry(&self.bench, key, 1), ty).await;
        // Who was not primary then is not now: ids that have been seen only grow.
        let may = code == 0 && matches!(written, Ok(()) | Err(Code::Unknown | Code::PermissionDenied));
        assert!(
            may || written == Err(Code::PermissionDenied),
            "{written:?} with status {code}"
        );
        if n.below(2) == 0 {
            tokio::time::sleep(Duration::from_millis(n.below(20))).await;
        }
        true
    }

    async fn write(&self, value: u32) {
        let of = entry(&self.bench, 1, value);
        let written = write(&self.bench.client, "", STEADY, of, Type::Modify).await;
        assert_eq!(written, Ok(()), "the steady primary is primary all the time");
    }

    fn written(&self) -> Option<u32> {
        self.bench.ask(1, 0, 1)
    }

    fn clients(&self) -> usize {
        self.bench.server.streams()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn while_connections_come_and_go_the_primary_writes_and_nothing_is_left() {
    let config = Config {
        max_streams: 1000,
        max_streams_per_role: 1000,
        ..Config::default()
    };
    let bench = Bench::new(Some(compile(EVERYTHING)), config).await;
    let mut steady = Controller::open(&bench.client).await;
    steady.arbitrate(hello("", Some(STEADY))).await;
    assert_eq!(steady.code().await, 0);
    let first = write(&bench.client, "", STEADY, entry(&bench, 1, 0), Type::Insert).await;
    first.expect("the steady one writes");
    let next = AtomicU64::new(1);
    let elections = Arc::new(Elections { bench, next });
    churn::come_and_go(&elections, steady).await;
    // What was seen is remembered: a lower id is not primary, where there is none.
    for role in ["", "role0", "role1", "role2", "role3"] {
        let mut last = Controller::open(&elections.bench.client).await;
        last.arbitrate(hello(role, Some(0))).await;
        assert_eq!(last.code().await, 5);
        last.arbitrate(hello(role, Some(STEADY + 1))).await;
        assert_eq!(last.code().await, 0);
    }
}
