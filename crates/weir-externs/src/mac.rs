//! HMAC-SHA-256 and SipHash-2-4, over fields and over the payload.

use crate::Status;
use crate::bytes::with_fields;
use crate::key_table::{KeyTable, Wiped};
use crate::object::{Members, Type};
use crate::shape::{Expected, Method, Shape};
use ring::hmac;
use siphasher::sip::SipHasher24;
use std::sync::Arc;
use weir_extern_api::{Call, PayloadAccess};
use weir_ir::Bits;
use zeroize::Zeroizing;

/// Bytes of an HMAC-SHA-256 tag.
pub(crate) const HMAC_TAG: usize = 32;
/// The most bytes of an HMAC key.
const MAX_HMAC_KEY: usize = 1024;
/// Bytes of a SipHash key.
const SIPHASH_KEY: usize = 16;

static HMAC: Shape = Shape {
    name: "compute",
    parameters: &of_fields("tag", 8 * HMAC_TAG as u32),
};
static HMAC_PAYLOAD: Shape = Shape {
    name: "compute_payload",
    parameters: &of_payload("tag", 8 * HMAC_TAG as u32),
};
static SIPHASH: Shape = Shape {
    name: "compute",
    parameters: &of_fields("hash", 64),
};
static SIPHASH_PAYLOAD: Shape = Shape {
    name: "compute_payload",
    parameters: &of_payload("hash", 64),
};

/// The parameters of a code over fields, with its name and its bits.
const fn of_fields(code: &'static str, bits: u32) -> [(&'static str, Expected); 4] {
    [
        ("key", Expected::In(32)),
        ("data", Expected::Fields("T")),
        (code, Expected::Out(bits)),
        ("status", Expected::Status),
    ]
}

/// The parameters of a code over the payload, with its name and its bits.
const fn of_payload(code: &'static str, bits: u32) -> [(&'static str, Expected); 4] {
    [
        ("p", Expected::Payload(PayloadAccess::Read)),
        ("key", Expected::In(32)),
        (code, Expected::Out(bits)),
        ("status", Expected::Status),
    ]
}

/// `hmac_sha256`
pub(crate) const HMAC_SHA256: Type = Type {
    name: "hmac_sha256",
    count: "keys",
    make: |count| {
        let keys = KeyTable::new(count, "1 to 1024", |key| {
            let fits = (1..=MAX_HMAC_KEY).contains(&key.len());
            fits.then(|| MacKey::new(key))
        });
        members([&HMAC, &HMAC_PAYLOAD], &keys, |key, bytes| {
            Bits::from_bytes(256, key.tag(&[bytes]).as_ref())
        })
    },
};

/// `siphash`
pub(crate) const SIPHASH_2_4: Type = Type {
    name: "siphash",
    count: "keys",
    make: |count| {
        let keys = KeyTable::new(count, "16", |key| {
            <[u8; SIPHASH_KEY]>::try_from(key).ok().map(Zeroizing::new)
        });
        members([&SIPHASH, &SIPHASH_PAYLOAD], &keys, |key, bytes| {
            Bits::new(64, SipHasher24::new_with_key(key).hash(bytes).into())
        })
    },
};

/// The two methods of a function over bytes. Parameter 2 of both is its result.
fn members<K: Send + Sync + 'static>(
    [fields, payload]: [&'static Shape; 2],
    keys: &Arc<KeyTable<K>>,
    compute: fn(&K, &[u8]) -> Bits,
) -> Members {
    let (of_fields, of_payload) = (Arc::clone(keys), Arc::clone(keys));
    let over_fields = Method::declared(fields, move |call| {
        let key = of_fields.get(call.get(0));
        let result = key
            .get()
            .map(|key| with_fields(call, 1, |_, bytes| compute(key, bytes)));
        report(call, result)
    });
    let over_payload = Method::declared(payload, move |call| {
        let key = of_payload.get(call.get(1));
        let result = key.get().map(|key| compute(key, call.payload()));
        report(call, result)
    });
    let keys = Arc::clone(keys);
    Members::new(keys).with(over_fields).with(over_payload)
}

fn report(call: &mut Call<'_>, result: Option<Bits>) -> Status {
    match result {
        Some(result) => {
            call.set_bits(2, 0, &result);
            Status::Ok
        }
        None => {
            call.set_bits(2, 0, &Bits::zero(64));
            Status::NoKey
        }
    }
}

/// A key of HMAC-SHA-256: the states of the hash after the inner and the outer padded key.
pub(crate) struct MacKey(Wiped<hmac::Key>);

impl MacKey {
    pub(crate) fn new(key: &[u8]) -> Self {
        let blank = |_: &hmac::Key| Some(hmac::Key::new(hmac::HMAC_SHA256, &[0; HMAC_TAG]));
        MacKey(Wiped::new(hmac::Key::new(hmac::HMAC_SHA256, key), blank))
    }

    /// The tag of the parts, one after the other.
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(self.0.get());
        for part in parts {
            context.update(part);
        }
        context.sign()
    }
}
