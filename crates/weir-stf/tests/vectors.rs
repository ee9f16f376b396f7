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

#[test]
fn a_lookup_between_emits_does_not_mix_packets_up() {
    const HEAD: usize = 512;
    let plain = switch("lookup_between_emits.p4");
    let mut fast = plain.clone();
    fast.compile().expect("it can be compiled");
    assert!(fast.headroom() <= HEAD);
    let packets: Vec<[u8; 4]> = (0..64).map(|i| [i % 3, i, 0xaa, 0xbb]).collect();
    let mut memory = vec![[0; HEAD + 4 + TAILROOM]; packets.len()];
    for (memory, packet) in memory.iter_mut().zip(&packets) {
        memory[HEAD..HEAD + 4].copy_from_slice(packet);
    }
    let frames = memory
        .iter_mut()
        .map(|memory| Frame::new(memory, HEAD, 4).expect("room"));
    let mut frames: Vec<Frame<'_>> = frames.collect();
    let fates = fast.forward(&[0; 64], &mut frames, 0).to_vec();
    for ((packet, frame), fate) in packets.iter().zip(&frames).zip(fates) {
        let alone = plain.clone().inject(0, packet, 0);
        assert_eq!(fate, Fate::Transmit(1));
        assert_eq!(frame.bytes(), alone[0].bytes, "{packet:02x?}");
    }
}
