//! Rates and capacities of queues that a control plane sets while packets wait.

use std::sync::Arc;
use weir_switch::{PortRate, QueueConfig, Switch, Write, testing};

fn rate(packets: u64) -> Write {
    let config = QueueConfig {
        rate: PortRate {
            packets_per_second: Some(packets),
            ..PortRate::default()
        },
        is_shaped: true,
        capacity: None,
    };
    Write::Queue(1, Some(config))
}

fn switch() -> Switch {
    Switch::new(Arc::new(testing::reflector())).unwrap()
}

#[test]
fn a_port_whose_rate_is_raised_does_not_wait_as_long_as_at_the_old_one() {
    let mut switch = switch();
    switch.write(rate(1)).unwrap();
    for _ in 0..3 {
        switch.receive(1, &[0; 60], 0);
    }
    assert_eq!(switch.advance(0).len(), 1);
    assert_eq!(switch.advance(999_999_999).len(), 0);
    switch.write(rate(1_000_000)).unwrap();
    assert_eq!(switch.advance(1_000_000_000).len(), 1);
    assert_eq!(switch.advance(1_000_001_000).len(), 1);
}

#[test]
fn a_rate_alone_leaves_the_capacity_as_it_was_at_the_start() {
    let mut switch = switch();
    switch.set_queue_capacity(1, 9);
    switch.write(rate(1)).unwrap();
    assert_eq!((switch.queue_config(1).capacity, switch.queue_capacity(1)), (None, 9));
    switch.set_queue_capacity(1, 12);
    assert_eq!(switch.queue_capacity(1), 12);
    switch.write(Write::Queue(1, None)).unwrap();
    assert!(!switch.has_port_rate());
}
