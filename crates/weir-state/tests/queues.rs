//! Rates and capacities of queues in state files.

use std::sync::Arc;
use weir_state::{Begin, Claim, Contents, Keeper, Options, Saved};
use weir_switch::testing::V1Builder;
use weir_switch::{PortRate, QueueConfig, Switch, Write};

#[test]
fn what_was_set_is_in_the_journal_and_in_the_whole_state() {
    let program = Arc::new(V1Builder::new().finish());
    let fresh = || Switch::new(Arc::clone(&program)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let restored = |path: &std::path::Path| {
        let saved = Saved::of(path, std::fs::read(path).unwrap()).expect("is whole");
        let mut switch = fresh();
        saved.restore(0, &mut switch).expect("fits");
        switch.queue_configs().collect::<Vec<_>>()
    };
    let config = |packets| QueueConfig {
        rate: PortRate {
            packets_per_second: Some(packets),
            ..PortRate::default()
        },
        is_shaped: true,
        capacity: Some(16),
    };
    let path = folder.path().join("state");
    let begin = Begin::of(&program);
    let mut switch = fresh();
    let keeper = Keeper::start(Claim::new(&path).unwrap(), Options::default(), Contents::new(&begin)).unwrap();
    switch.set_journal(Some(keeper.journal()));
    switch.write(Write::Queue(1, Some(config(50)))).expect("fits");
    switch.write(Write::Queue(2, Some(config(70)))).expect("fits");
    switch.write(Write::Queue(1, None)).expect("fits");
    keeper.kept_blocking().unwrap();
    assert_eq!(restored(&path), [(2, config(70))]);

    let again = folder.path().join("again");
    let contents = Contents::new(&begin).switch(&switch);
    let keeper = Keeper::start(Claim::new(&again).unwrap(), Options::default(), contents).unwrap();
    keeper.kept_blocking().unwrap();
    assert_eq!(restored(&again), [(2, config(70))]);
}
