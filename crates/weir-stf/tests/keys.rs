//! Keys of externs in switches that share the objects of one program, as workers do.

mod common;

use common::{compile, folder};
use std::sync::Arc;
use weir_interp::Interpreter;
use weir_ir::ExternId;
use weir_switch::{BatchMode, ControlError, KeyBytes, Switch, SwitchConfig, Write};

fn switch() -> Switch {
    let config = SwitchConfig {
        externs: weir_externs::registry(),
        ..SwitchConfig::default()
    };
    let program = Arc::new(compile(&folder("../../weir-server/tests/p4"), "extern_keys"));
    Switch::with_engine(Arc::new(Interpreter::new(program)), config).expect("loads")
}

fn find(switch: &Switch, name: &str) -> ExternId {
    switch.extern_with_keys(name).expect("has keys")
}

/// The status, hash and sequence number for key 0.
fn answer(switch: &mut Switch) -> (u8, u64, u32) {
    let packet: Vec<u8> = std::iter::once(0).chain(0..15).collect();
    let bytes = switch.inject(1, &packet, 0).remove(0).bytes;
    let hash = u64::from_be_bytes(bytes[1..9].try_into().expect("eight bytes"));
    (
        bytes[0],
        hash,
        u32::from_be_bytes(bytes[9..13].try_into().expect("four bytes")),
    )
}

#[test]
fn a_follower_keeps_account_of_keys_and_sets_none() {
    let mut leader = switch();
    let mut follower = leader.clone();
    follower.follow_keys();
    let (tags, numbers) = (find(&leader, "tags"), find(&leader, "numbers"));
    let key = |byte| Write::Key(tags, 0, KeyBytes::new(vec![byte; 16]));
    // The order of the workers does not matter.
    follower.write(key(1)).expect("fits");
    assert_eq!((follower.is_key_set(tags, 0), answer(&mut follower).0), (Ok(true), 1));
    leader.write(key(1)).expect("fits");
    let (status, hash, number) = answer(&mut follower);
    assert_eq!((status, number), (0, 2));
    // The association is reset by the leader alone: its number 1 is used once.
    let reset = || Write::Key(numbers, 0, KeyBytes::default());
    leader.write(reset()).expect("fits");
    assert_eq!(answer(&mut leader), (0, hash, 1));
    follower.write(reset()).expect("fits");
    assert_eq!(answer(&mut follower), (0, hash, 2));
    // Both refuse the same.
    let long = || Write::Key(tags, 0, KeyBytes::new(vec![1; 17]));
    assert_eq!(leader.write(long()), follower.write(long()));
    assert!(matches!(leader.write(long()), Err(ControlError::Key { .. })));
}

#[test]
fn a_transaction_sets_keys_when_it_is_committed() {
    let mut switch = switch();
    let tags = find(&switch, "tags");
    let key = |index, length| Write::Key(tags, index, KeyBytes::new(vec![1; length]));
    let refused = switch.write_all(vec![key(0, 16), key(1, 16), key(2, 3)], BatchMode::Rollback);
    assert!(refused.is_err());
    assert_eq!((switch.is_key_set(tags, 0), answer(&mut switch).0), (Ok(false), 1));
    let partly = switch.write_all(vec![key(0, 16), key(1, 16), key(2, 3)], BatchMode::Continue);
    assert!(partly.is_err());
    assert_eq!((switch.is_key_set(tags, 0), answer(&mut switch).0), (Ok(true), 0));
    assert!(switch.is_key_set(tags, 4).is_err());
}
