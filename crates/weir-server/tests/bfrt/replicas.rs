//! Two replicas of a switch, as workers have them: what one counts is added to what the other does.

use crate::common::{Bench, number, question, source};
use std::sync::Arc;
use tokio::sync::oneshot;
use weir_ir::Program;
use weir_server::bfrt::Config;
use weir_server::{DataPlane, Done, Events, Gone, LoadFailure, Order, Standalone};
use weir_switch::Switch;

/// The switch and a replica of it, which has no timers, as workers have it.
pub struct Pair {
    pub first: Arc<Standalone>,
    pub second: Arc<Standalone>,
}

fn numbered(order: Order, number: usize) -> Order {
    Arc::new(move |_, switch: &mut Switch| order(number, switch))
}

/// Makes a switch one that has no timers.
pub fn follows(switch: &mut Switch) {
    if let Ok(generators) = switch.generators_mut() {
        generators.set_leader(false);
    }
}

impl DataPlane for Pair {
    fn replicas(&self) -> usize {
        2
    }

    fn order(&self, order: Order) -> Done<Gone> {
        let both = [
            self.first.order(Arc::clone(&order)),
            self.second.order(numbered(order, 1)),
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

    fn load(&self, _: Arc<Program>, _: Order) -> Done<LoadFailure> {
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

#[tokio::test]
async fn counters_of_entries_are_the_sum_of_what_replicas_have() {
    let program = crate::common::compile(&source());
    let other = Standalone::new(program, Some(64), weir_server::Clock::manual()).expect("runs");
    let other = Arc::new(other);
    // Read in several steps, and in one message after another.
    let config = Config {
        read_chunk: 3,
        ..Config::default()
    };
    let bench = Bench::of(&source(), config, |first| {
        Arc::new(Pair {
            first: Arc::clone(first),
            second: Arc::clone(&other),
        })
    })
    .await;
    let table = "In.exact_keys";
    for key in 1..=8 {
        assert_eq!(bench.insert(bench.entry(key, 100)).await, Ok(()));
    }
    for key in 1..=8_u32 {
        for _ in 0..key {
            let _ = bench.switch.send(1, &question(1, 0, key));
        }
        for _ in 0..300 * key {
            let _ = other.send(1, &question(1, 0, key));
        }
    }
    let packets = bench.field(table, "$COUNTER_SPEC_PKTS");
    let bytes = bench.field(table, "$COUNTER_SPEC_BYTES");
    let entries = bench.entries(table).await;
    let found: Vec<u64> = entries.iter().map(|e| number(e, packets)).collect();
    assert_eq!(found, [301, 602, 903, 1204, 1505, 1806, 2107, 2408]);
    assert_eq!(number(&entries[0], bytes), 301 * 64);
    // One entry is read as a message of its own.
    let one = bench.read(bench.exact(table, 3)).await.expect("is there");
    assert_eq!(number(&one[0], packets), 903);
}
