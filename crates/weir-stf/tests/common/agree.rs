//! Packets that the interpreter and machine code are given alike.

use crate::common::{compile, folder};
use crate::malformed::bytes;
use std::sync::Arc;
use weir_arch::{Resource, Unit};
use weir_ir::ExternId;
use weir_switch::{LaneUse, Switch};

/// What the control plane does in a program's test, without packets, meters and what is read.
fn state_of(of: &str, name: &str) -> String {
    let path = folder(of).join(format!("{name}.stf"));
    let text = std::fs::read_to_string(path).expect("a test beside the program");
    let words = [
        "add",
        "member",
        "group",
        "mc_",
        "mirroring_add",
        "value_set",
        "register_write",
        "wred_set",
    ];
    let lines = text
        .lines()
        .filter(|l| words.iter().any(|w| l.starts_with(w)) || l.starts_with("port ") && l.ends_with("loopback"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Sends packets through programs of a folder, interpreted and as machine code: both do the same.
pub fn check(of: &str, names: &[String]) {
    let mut seed = 0x2545_f491_4f6c_dd1d;
    for name in names {
        let switch = Switch::new(Arc::new(compile(&folder(of), name))).expect("loads");
        let (mut plain, failures) = weir_stf::configure(switch, &state_of(of, name)).expect("directives");
        assert!(failures.is_empty(), "{name}: {failures:?}");
        let mut compiled = plain.clone();
        if compiled.compile().is_err() {
            continue;
        }
        for i in 0..4000 {
            // One packet is by far too few for code for eight, which is to do the same all the
            // more.
            compiled.set_lanes([LaneUse::Never, LaneUse::Always][i % 2]);
            let mut packet = bytes(&mut seed, i % 14);
            for (at, byte) in packet.iter_mut().enumerate().take(3) {
                // Small values are what tests are about; the second byte is the index of most
                // tables.
                *byte %= [16, 8, 4][at];
            }
            let port = port(of, bytes(&mut seed, 1)[0]);
            let (a, b) = (
                plain.inject(port, &packet, i as u64 * 1000),
                compiled.inject(port, &packet, i as u64 * 1000),
            );
            let sent = |out: Vec<weir_switch::Output>| -> Vec<(u32, Vec<u8>)> {
                out.into_iter().map(|o| (o.port, o.bytes)).collect()
            };
            assert_eq!(sent(a), sent(b), "{name}: {packet:02x?} at port {port}");
            let fields = |switch: &mut Switch| switch.next_digest().map(|d| (d.name, d.fields));
            assert_eq!(fields(&mut plain), fields(&mut compiled), "{name}: {packet:02x?}");
        }
        let drops = |switch: &Switch| {
            let mut all = std::collections::BTreeMap::<_, u64>::new();
            switch
                .drops()
                .for_each(|d| *all.entry(d.reason).or_default() += d.packets);
            all
        };
        assert_eq!(drops(&plain), drops(&compiled), "{name}");
        for (id, _) in plain.program().externs.iter() {
            for index in 0..8 {
                let (a, b) = (counted(&plain, id, index), counted(&compiled, id, index));
                assert_eq!(a, b, "{name}: counter at {index}");
                let (a, b) = (plain.register(id, index).ok(), compiled.register(id, index).ok());
                assert_eq!(a, b, "{name}: register at {index}");
            }
        }
    }
}

/// A port that a byte chooses; of TNA one of any pipe.
fn port(of: &str, byte: u8) -> u32 {
    let pipe = if of == "tna" { u32::from(byte >> 6) } else { 0 };
    pipe << 7 | u32::from(byte % 8)
}

/// What a counter says: one of packets has nothing to say of bytes.
fn counted(switch: &Switch, id: ExternId, index: u64) -> Option<(u64, u64)> {
    let count = switch.counter(id, index).ok()?;
    let of_packets = matches!(
        switch.state().resource(id),
        Resource::Counter(Unit::Packets, _) | Resource::DirectCounter(Unit::Packets, _)
    );
    Some((count.packets, if of_packets { 0 } else { count.bytes }))
}
