//! Tests with two replicas of a switch, as workers have them: counts are summed over replicas.

use crate::common::{Bench, number, query_packet, source, update};
use std::sync::Arc;
use tokio::sync::oneshot;
use weir_ir::Program;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_server::bfrt::Config;
use weir_server::{Command, Completion, DataPlane, Events, Gone, LoadFailure, Standalone};
use weir_switch::Switch;

/// A switch and a replica without timers.
struct Pair {
    first: Arc<Standalone>,
    second: Arc<Standalone>,
}

fn numbered(command: Command, number: usize) -> Command {
    Arc::new(move |_, switch: &mut Switch| command(number, switch))
}

/// Makes a switch a replica without timers.
pub fn follows(switch: &mut Switch) {
    if let Ok(generators) = switch.generators_mut() {
        generators.set_leader(false);
    }
}

impl DataPlane for Pair {
    fn replicas(&self) -> usize {
        2
    }

    fn submit(&self, command: Command) -> Completion<Gone> {
        let both = [
            self.first.submit(Arc::clone(&command)),
            self.second.submit(numbered(command, 1)),
        ];
        let (reply, done) = oneshot::channel();
        tokio::spawn(async move {
            for one in both {
                let _ = one.await;
            }
            let _ = reply.send(());
        });
        Box::pin(async move { done.await.map_err(|_| Gone) })
    }

    fn load(&self, _: Arc<Program>, _: Command) -> Completion<LoadFailure> {
        Box::pin(async { Err(LoadFailure::Unfit("it has its program".to_owned())) })
    }

    fn inject(&self, port: u32, packet: Vec<u8>) {
        self.first.inject(port, packet);
    }

    fn cpu_port(&self) -> Option<u32> {
        self.first.cpu_port()
    }

    fn now_ns(&self) -> u64 {
        self.first.now_ns()
    }

    fn connect(&self, events: Events) {
        self.first.connect(events);
    }
}

/// A bench of such a pair that reads `read_chunk` entries per step, and its second switch.
pub async fn pair(source: &str, read_chunk: usize) -> (Bench, Arc<Standalone>) {
    let config = Config {
        read_chunk,
        ..Config::default()
    };
    let program = crate::common::compile(source);
    let other = Standalone::new(program, Some(64), weir_server::Clock::manual()).expect("runs");
    let other = Arc::new(other);
    let bench = Bench::of(source, config, |first| {
        Arc::new(Pair {
            first: Arc::clone(first),
            second: Arc::clone(&other),
        })
    });
    (bench.await, other)
}

const TABLE: &str = "In.exact_keys";

#[tokio::test]
async fn counters_of_entries_are_summed_over_replicas() {
    let (bench, other) = pair(&source(), 3).await;
    for key in 1..=8 {
        assert_eq!(bench.insert(bench.entry(key, 100)).await, Ok(()));
    }
    for key in 1..=8_u32 {
        for _ in 0..key {
            let _ = bench.switch.send(1, &query_packet(1, 0, key));
        }
        for _ in 0..300 * key {
            let _ = other.send(1, &query_packet(1, 0, key));
        }
    }
    let packets = bench.field(TABLE, "$COUNTER_SPEC_PKTS");
    let bytes = bench.field(TABLE, "$COUNTER_SPEC_BYTES");
    let entries = bench.entries(TABLE).await;
    let found: Vec<u64> = entries.iter().map(|e| number(e, packets)).collect();
    assert_eq!(found, [301, 602, 903, 1204, 1505, 1806, 2107, 2408]);
    assert_eq!(
        number(&entries[0], bytes),
        301 * (64 + 4),
        "with the frame check sequence"
    );
    // A single entry is read as a message of its own.
    let one = bench.read(bench.exact(TABLE, 3)).await.expect("is there");
    assert_eq!(number(&one[0], packets), 903);
}

#[tokio::test]
async fn counters_are_added_up_in_steps_of_many_entries() {
    let (bench, other) = pair(&source(), 1500).await;
    let insert = |key| update(Type::Insert, Entity::TableEntry(bench.entry(key, 100)));
    let written = bench.write((0..2000).map(insert).collect()).await;
    assert!(written.is_ok(), "{written:?}");
    for key in 0..2000 {
        let _ = bench.switch.send(1, &query_packet(1, 0, key));
        let _ = other.send(1, &query_packet(1, 0, key));
    }
    let packets = bench.field(TABLE, "$COUNTER_SPEC_PKTS");
    let entries = bench.entries(TABLE).await;
    assert_eq!(entries.len(), 2000);
    assert!(entries.iter().all(|e| number(e, packets) == 2));
}
