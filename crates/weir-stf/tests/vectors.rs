//! Packets that machine code runs together come out as they would alone.

use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options, compile_file};
use weir_switch::{Fate, Frame, Switch, TAILROOM};

fn switch(name: &str) -> Switch {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let compiled = compile_file(&path, &Options::default(), weir_arch::targets());
    Switch::new(Arc::new(compiled.program.expect("it compiles"))).expect("loads")
}

/// Runs a vector of packets, which leave by port 1, and each of them alone in the interpreter.
fn check<const LENGTH: usize>(name: &str, packets: &[[u8; LENGTH]; 64]) {
    const HEAD: usize = 512;
    let plain = switch(name);
    let mut fast = plain.clone();
    fast.compile().expect("it can be compiled");
    assert!(fast.headroom() <= HEAD);
    let mut memory = vec![vec![0; HEAD + LENGTH + TAILROOM]; packets.len()];
    for (memory, packet) in memory.iter_mut().zip(packets) {
        memory[HEAD..HEAD + LENGTH].copy_from_slice(packet);
    }
    let frames = memory
        .iter_mut()
        .map(|memory| Frame::new(memory, HEAD, LENGTH).expect("room"));
    let mut frames: Vec<Frame<'_>> = frames.collect();
    let fates = fast.forward(&[0; 64], &mut frames, 0).to_vec();
    for ((packet, frame), fate) in packets.iter().zip(&frames).zip(fates) {
        let alone = plain.clone().inject(0, packet, 0);
        assert_eq!(fate, Fate::Transmit(1));
        assert_eq!(frame.bytes(), alone[0].bytes, "{packet:02x?}");
    }
}

#[test]
fn a_lookup_between_emits_does_not_mix_packets_up() {
    check(
        "lookup_between_emits.p4",
        &std::array::from_fn(|i| [i as u8 % 3, i as u8, 0xaa, 0xbb]),
    );
}

#[test]
fn what_is_read_again_by_an_address_that_is_computed_again_is_the_same() {
    let mut seed = 5u64;
    for _ in 0..20 {
        let packets = std::array::from_fn(|_| {
            std::array::from_fn(|_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 40) as u8
            })
        });
        check::<26>("behind_options.p4", &packets);
    }
}
