//! Checksums that machine code has from the one that the packet has come to what they are computed
//! anew, whatever changes and whatever the packet holds.

use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options, compile_file};
use weir_switch::Switch;

/// `checksums/changed.p4` with these changes, interpreted and compiled, and whether the checksum
/// comes from what has changed.
fn switches(changes: &str, unaligned: bool) -> (Switch, Switch, bool) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checksums/changed.p4");
    let options = Options {
        defines: std::iter::once(("CHANGES".to_owned(), Some(changes.to_owned())))
            .chain(unaligned.then(|| ("UNALIGNED".to_owned(), None)))
            .collect(),
        ..Options::default()
    };
    let compiled = compile_file(&path, &options, weir_arch::targets());
    let program = compiled.program.expect("it compiles");
    let plain = Switch::new(Arc::new(program)).expect("loads");
    let mut fast = plain.clone();
    fast.compile().expect("it can be compiled");
    let text = fast.compiled().expect("it is compiled").describe();
    (plain, fast, text.contains("a checksum by what may have changed"))
}

/// The checksum of a packet without its own (bytes 4 and 5).
fn checksum(packet: &[u8]) -> u16 {
    let data: Vec<u8> = packet[..4].iter().chain(&packet[6..]).copied().collect();
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u32 = data.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// Bytes of a packet; those of 0 and 255 make sums that are 0 modulo 65535.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0), 2 => Just(0xff), 1 => Just(1), 2 => any::<u8>()]
}

/// A packet with so many bytes of options. Most have the right checksum, perhaps as the other zero.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let bytes = (prop::collection::vec(byte(), 12), prop::collection::vec(byte(), 0..9));
    (bytes, 0..10u8, any::<u8>()).prop_map(|((mut packet, options), how, wrong)| {
        packet[11] = options.len() as u8;
        packet.extend(options);
        let sum = match how {
            0 => checksum(&packet) ^ u16::from(wrong),
            1 => !checksum(&packet),
            _ => checksum(&packet),
        };
        packet[4..6].copy_from_slice(&sum.to_be_bytes());
        packet
    })
}

fn agree(changes: &str, is_short: bool) {
    let (mut plain, mut fast, short) = switches(changes, false);
    assert_eq!(short, is_short, "{changes}");
    let mut right = 0;
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(3000));
    let result = runner.run(&packet(), |packet| {
        let sent = |switch: &mut Switch| -> Vec<Vec<u8>> {
            let out = switch.inject(0, &packet, 0);
            out.into_iter().map(|o| o.bytes).collect()
        };
        let expected = sent(&mut plain.clone());
        // Not where options were removed: the old fields of an invalid header are not compared.
        if let [out] = &expected[..]
            && out.len() == packet.len()
        {
            prop_assert_eq!(u16::from_be_bytes([out[4], out[5]]), checksum(out));
        }
        prop_assert_eq!(&sent(&mut fast.clone()), &expected);
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{changes}: {e}"));
    // Else nothing was compared.
    for ttl in 0..=255 {
        let mut packet = vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ttl, 0];
        let sum = checksum(&packet);
        packet[4..6].copy_from_slice(&sum.to_be_bytes());
        let [a, b] = [&mut plain, &mut fast].map(|switch| switch.inject(0, &packet, 0));
        assert_eq!(a[0].bytes, b[0].bytes, "{changes}: {packet:02x?}");
        right += a.len();
    }
    assert_eq!(right, 256);
}

/// The packet with its checksum in the middle of the second byte.
fn unaligned(packet: &[u8]) -> Vec<u8> {
    let (a, b) = (packet[1] >> 4, packet[1] & 15);
    let sum = u16::from_be_bytes([packet[4], packet[5]]);
    let middle = [a << 4 | (sum >> 12) as u8, (sum >> 4) as u8, (sum << 4) as u8 | b];
    [&packet[..1], &middle, &packet[2..4], &packet[6..]].concat()
}

#[test]
fn a_checksum_that_does_not_begin_at_a_byte_is_computed_anew() {
    let (plain, fast, short) = switches("hdr.h.ttl = hdr.h.ttl - 1;", true);
    assert!(!short);
    for ttl in 0..=255 {
        let mut packet = vec![1, 0x23, 4, 5, 0, 0, 6, 7, 8, 9, ttl, 0];
        let sum = checksum(&packet);
        packet[4..6].copy_from_slice(&sum.to_be_bytes());
        packet[10] = ttl.wrapping_sub(1);
        let sum_after = checksum(&packet);
        let received = {
            let mut packet = packet.clone();
            packet[10] = ttl;
            unaligned(&packet)
        };
        packet[4..6].copy_from_slice(&sum_after.to_be_bytes());
        for switch in [&plain, &fast] {
            let out = switch.clone().inject(0, &received, 0);
            assert_eq!(out[0].bytes, unaligned(&packet), "{received:02x?}");
        }
    }
}

#[test]
fn nothing_changes() {
    agree("", true);
}

#[test]
fn a_byte_changes() {
    agree("hdr.h.ttl = hdr.h.ttl - 1;", true);
}

#[test]
fn fields_change_that_are_no_whole_bytes() {
    agree("hdr.h.b = hdr.h.b + 3; hdr.h.c = ~hdr.h.c;", true);
}

#[test]
fn a_field_of_two_words_changes() {
    agree("hdr.h.e = hdr.h.e + 0x1fffe;", true);
}

#[test]
fn many_fields_change() {
    agree("hdr.h.op = 7; hdr.h.c = 0; hdr.h.e = 0; hdr.h.ttl = 0;", true);
    agree(
        "hdr.h.op = 7; hdr.h.a = 1; hdr.h.c = 0; hdr.h.e = 0; hdr.h.ttl = 0;",
        false,
    );
}

#[test]
fn fields_change_on_some_ways() {
    agree(
        "if (hdr.h.op == 0) { hdr.h.ttl = hdr.h.ttl - 1; } else { hdr.h.d = 1; }",
        true,
    );
}

#[test]
fn the_checksum_itself_changes() {
    agree("hdr.h.sum = 0x1234; hdr.h.ttl = 9;", true);
}

#[test]
fn a_header_goes_away() {
    // Where there is none to go, that is no change.
    agree("hdr.opt.setInvalid(); hdr.h.bytes = 0;", true);
}
