//! Packets of random bytes.

use crate::common::{compile, folder};
use std::sync::Arc;
use weir_switch::Switch;

/// A 64-bit generator; the same seed gives the same bytes.
pub fn bytes(seed: &mut u64, length: usize) -> Vec<u8> {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Sends packets of random bytes through programs of a folder: whatever they are, they are
/// forwarded or dropped.
pub fn survive(of: &str, names: impl IntoIterator<Item: AsRef<str>>) {
    const PACKETS: u64 = 1000;
    let mut seed = 0x1234_5678_9abc_def1;
    for name in names {
        let name = name.as_ref();
        let mut switch = Switch::new(Arc::new(compile(&folder(of), name))).expect("loads");
        for i in 0..PACKETS {
            let mut packet = bytes(&mut seed, i as usize % 24);
            // Most tests look at small values of the first byte.
            if let Some(first) = packet.first_mut() {
                *first %= 16;
            }
            switch.inject(i as u32 % 600, &packet, i);
        }
        let sent: u64 = switch.active_ports().map(|(_, s)| s.tx.packets).sum();
        let dropped: u64 = switch.drops().map(|d| d.packets).sum();
        assert!(sent + dropped >= PACKETS, "{name}: {sent} sent, {dropped} dropped");
    }
}
