//! Calls that must fail, and leave the payload unchanged.

mod common;

use common::{Arg, Called, RESIZE, ROOM, call, hex, instance, method, text, with_key};
use proptest::prelude::*;
use proptest::{collection, sample};
use std::sync::Arc;
use weir_extern_api::{KeyError, Object, PayloadAccess};
use weir_externs::Status;
use weir_ir::Bits;

const OUT_STATUS: Arg<'_> = Arg::Out(8);

/// A pair of methods that seal and open.
struct Pair {
    type_name: &'static str,
    key_bytes: usize,
    seal: &'static str,
    open: &'static str,
    /// The width of the nonce or IV.
    nonce: u32,
    is_esp: bool,
}

const PAIRS: [Pair; 5] = [
    Pair::new("aes_gcm", 16, ["seal", "open"], 96, false),
    Pair::new("chacha20_poly1305", 32, ["seal", "open"], 96, false),
    Pair::new("esp_gcm", 36, ["seal", "open"], 64, true),
    Pair::new("aes_cbc_hmac", 64, ["seal", "open"], 128, false),
    Pair::new("aes_cbc_hmac", 48, ["seal_esp", "open_esp"], 128, true),
];

/// What a call depends on besides key and payload.
#[derive(Clone, Copy)]
struct Inputs {
    key: u128,
    nonce: u128,
    aad: [u8; 2],
    room: usize,
}

const INPUTS: Inputs = Inputs {
    key: 0,
    nonce: 77,
    aad: [1, 2],
    room: ROOM,
};

impl Pair {
    const fn new(
        type_name: &'static str,
        key_bytes: usize,
        [seal, open]: [&'static str; 2],
        nonce: u32,
        is_esp: bool,
    ) -> Self {
        Pair {
            type_name,
            key_bytes,
            seal,
            open,
            nonce,
            is_esp,
        }
    }

    fn object(&self) -> Arc<dyn Object> {
        with_key(self.type_name, &text(self.key_bytes, 5))
    }

    fn run(&self, object: &Arc<dyn Object>, seals: bool, inputs: Inputs, payload: &[u8]) -> Called {
        let (key, nonce) = (Arg::In(32, inputs.key), Arg::In(self.nonce, inputs.nonce));
        let method = object
            .method(if seals { self.seal } else { self.open })
            .expect("a method");
        let [spi, sequence] = inputs.aad.map(|n| Arg::In(32, n.into()));
        let next_header = if seals { Arg::In(8, 17) } else { Arg::Out(8) };
        let arguments = if self.is_esp {
            vec![RESIZE, key, spi, sequence, nonce, next_header, OUT_STATUS]
        } else {
            vec![RESIZE, key, nonce, Arg::Bytes(&inputs.aad), OUT_STATUS]
        };
        call(&*method, &arguments, payload, inputs.room)
    }

    fn refuses(&self, object: &Arc<dyn Object>, seals: bool, inputs: Inputs, payload: &[u8], status: Status) {
        let called = self.run(object, seals, inputs, payload);
        assert_eq!(called.status(), status, "{} {}", self.type_name, self.open);
        assert_eq!(called.payload, payload, "{} {}", self.type_name, self.open);
    }
}

#[test]
fn every_length_comes_back() {
    for pair in &PAIRS {
        let object = pair.object();
        for length in (0..=300).chain([1400, 1500, 4095, 8999, 9000]) {
            let plain = text(length, length as u64);
            let sealed = pair.run(&object, true, INPUTS, &plain).ok();
            if length >= 16 {
                assert_ne!(sealed[..16], plain[..16]);
            }
            let opened = pair.run(&object, false, INPUTS, &sealed);
            if pair.is_esp {
                assert_eq!(opened.outputs[0], Bits::new(8, 17));
            }
            assert_eq!(opened.ok(), plain, "{} {length}", pair.open);
        }
    }
}

proptest! {
    #[test]
    fn random_packets_come_back_and_random_changes_are_found(
        (plain, change) in (collection::vec(any::<u8>(), 0..9000), 1u8..),
        (nonce, aad, place) in (any::<u64>(), any::<[u8; 2]>(), any::<sample::Index>()),
    ) {
        let inputs = Inputs { nonce: nonce.into(), aad, ..INPUTS };
        for pair in &PAIRS {
            let object = pair.object();
            let mut sealed = pair.run(&object, true, inputs, &plain).ok();
            prop_assert_eq!(&pair.run(&object, false, inputs, &sealed).ok(), &plain);
            let place = place.index(sealed.len());
            sealed[place] ^= change;
            pair.refuses(&object, false, inputs, &sealed, Status::Authentication);
        }
    }
}

#[test]
fn every_changed_bit_is_found() {
    for pair in &PAIRS {
        let object = pair.object();
        let sealed = pair.run(&object, true, INPUTS, &text(37, 1)).ok();
        for bit in 0..8 * sealed.len() {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            pair.refuses(&object, false, INPUTS, &changed, Status::Authentication);
        }
        let aad = [1, 3];
        pair.refuses(
            &object,
            false,
            Inputs { aad, ..INPUTS },
            &sealed,
            Status::Authentication,
        );
        let nonce = 78;
        pair.refuses(
            &object,
            false,
            Inputs { nonce, ..INPUTS },
            &sealed,
            Status::Authentication,
        );
        let other = with_key(pair.type_name, &text(pair.key_bytes, 6));
        pair.refuses(&other, false, INPUTS, &sealed, Status::Authentication);
    }
}

#[test]
fn short_payloads_are_refused() {
    for pair in &PAIRS {
        let object = pair.object();
        let sealed = pair.run(&object, true, INPUTS, &text(37, 1)).ok();
        for length in 0..sealed.len() {
            let status = pair.run(&object, false, INPUTS, &sealed[..length]).status();
            assert!(
                [Status::Malformed, Status::Authentication].contains(&status),
                "{length}"
            );
            pair.refuses(&object, false, INPUTS, &sealed[..length], status);
        }
        pair.refuses(&object, false, INPUTS, &sealed[..15], Status::Malformed);
    }
}

#[test]
fn calls_need_their_key() {
    for pair in &PAIRS {
        let object = instance(pair.type_name, 2);
        let keys = object.keys().expect("keys");
        let key = text(pair.key_bytes, 5);
        let sealed = pair.run(&pair.object(), true, INPUTS, b"text").ok();
        keys.set(1, &key).expect("set");
        assert_eq!((keys.is_set(0), keys.is_set(1)), (Ok(false), Ok(true)));
        for key in [0, 2, u128::from(u32::MAX)] {
            for seals in [true, false] {
                pair.refuses(&object, seals, Inputs { key, ..INPUTS }, &sealed, Status::NoKey);
            }
        }
        let inputs = Inputs { key: 1, ..INPUTS };
        assert_eq!(pair.run(&object, false, inputs, &sealed).ok(), b"text");
        keys.set(1, &[]).expect("removed");
        pair.refuses(&object, false, inputs, &sealed, Status::NoKey);
        assert!(matches!(keys.set(1, &key[1..]), Err(KeyError::Length { .. })));
        assert_eq!(keys.set(2, &key), Err(KeyError::Index { index: 2, last: 1 }));
    }
}

#[test]
fn seals_need_the_room_that_they_announce() {
    for pair in &PAIRS {
        let object = pair.object();
        let seal = object.method(pair.seal).expect("a method");
        for length in 0..40 {
            let plain = text(length, 3);
            let growth = seal.growth(length);
            let room = growth - 1;
            pair.refuses(&object, true, Inputs { room, ..INPUTS }, &plain, Status::NoRoom);
            let room = growth;
            let sealed = pair.run(&object, true, Inputs { room, ..INPUTS }, &plain).ok();
            assert_eq!(sealed.len(), length + growth);
        }
    }
}

/// Texts with an authentic tag and a wrong trailer, made with the mode that has none.
#[test]
fn wrong_trailers_behind_right_tags_are_refused() {
    let (key, salt) = (text(16, 1), [9, 9, 9, 9]);
    let plain_gcm = with_key("aes_gcm", &key);
    let pair = &PAIRS[2];
    let esp = with_key("esp_gcm", &[&key[..], &salt].concat());
    let nonce = common::number(&[&salt[..], &77u64.to_be_bytes()].concat());
    let aad = [0, 0, 0, 1, 0, 0, 0, 2];
    for (trailer, status) in [
        ("0102 0206", Status::Ok),
        ("0202 0206", Status::Malformed),
        ("0102 0906", Status::Malformed),
        ("0102 03", Status::Malformed),
        ("01", Status::Malformed),
        ("", Status::Malformed),
    ] {
        let arguments = [RESIZE, Arg::In(32, 0), Arg::In(96, nonce), Arg::Bytes(&aad), OUT_STATUS];
        let sealed = method(&plain_gcm, "seal", &arguments, &hex(trailer)).ok();
        if status == Status::Ok {
            assert_eq!(pair.run(&esp, false, INPUTS, &sealed).ok(), b"");
        } else {
            pair.refuses(&esp, false, INPUTS, &sealed, status);
        }
    }
}

#[test]
fn padding_of_blocks_is_checked() {
    let object = with_key("aes_cbc_hmac", &text(48, 5));
    let (generic, esp) = (&PAIRS[3], &PAIRS[4]);
    let aad = [0, 0, 0, 1, 0, 0, 0, 2];
    let arguments = [RESIZE, Arg::In(32, 0), Arg::In(128, 77), Arg::Bytes(&aad), OUT_STATUS];
    // 13 bytes and 3 3 3: not the trailer of ESP. The trailer 1 2 … 14 14 17: not the padding.
    let sealed = method(&object, "seal", &arguments, &[0; 13]).ok();
    esp.refuses(&object, false, INPUTS, &sealed, Status::Malformed);
    let sealed = esp.run(&object, true, INPUTS, b"").ok();
    let opened = method(&object, "open", &arguments, &sealed);
    assert_eq!((opened.status(), &opened.payload), (Status::Malformed, &sealed));
    for length in [16, 17, 31, 33] {
        generic.refuses(&object, false, INPUTS, &vec![0; length], Status::Malformed);
    }
}

#[test]
fn keyed_hashes_need_their_key_and_show_none() {
    for (type_name, width) in [("hmac_sha256", 256), ("siphash", 64)] {
        let object = instance(type_name, 1);
        let fields = [Arg::In(32, 0), Arg::Bytes(b"x"), Arg::Out(width), OUT_STATUS];
        let payload = Arg::Payload(PayloadAccess::Read);
        let over_payload = [payload, Arg::In(32, 0), Arg::Out(width), OUT_STATUS];
        for called in [
            method(&object, "compute", &fields, b"p"),
            method(&object, "compute_payload", &over_payload, b"p"),
        ] {
            assert_eq!(
                (called.status(), &called.outputs[0]),
                (Status::NoKey, &Bits::zero(width))
            );
        }
    }
}
