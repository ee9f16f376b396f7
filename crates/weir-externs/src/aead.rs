//! AES-GCM and ChaCha20-Poly1305 over the payload.

use crate::Status;
use crate::bytes::{change_or_restore, number, with_fields};
use crate::key_table::{KeyTable, Wiped};
use crate::object::{Members, Type};
use crate::shape::{Expected, Method, Shape};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};
use std::sync::Arc;
use weir_extern_api::{Call, PayloadAccess};

/// Bytes of a tag.
pub(crate) const TAG: usize = 16;
/// Bytes of a nonce.
const NONCE: usize = 12;

static SEAL: Shape = Shape {
    name: "seal",
    parameters: &[
        ("p", Expected::Payload(PayloadAccess::Resize)),
        ("key", Expected::In(32)),
        ("nonce", Expected::In(96)),
        ("aad", Expected::Fields("A")),
        ("status", Expected::Status),
    ],
};
static OPEN: Shape = Shape {
    name: "open",
    parameters: SEAL.parameters,
};

/// `aes_gcm`
pub(crate) const AES_GCM: Type = Type {
    name: "aes_gcm",
    count: "keys",
    make: |count| members(KeyTable::new(count, "16 or 32", Cipher::aes_gcm)),
};

/// `chacha20_poly1305`
pub(crate) const CHACHA: Type = Type {
    name: "chacha20_poly1305",
    count: "keys",
    make: |count| members(KeyTable::new(count, "32", |key| Cipher::new(&CHACHA20_POLY1305, key))),
};

fn members(keys: Arc<KeyTable<Cipher>>) -> Members {
    let (sealing, opening) = (Arc::clone(&keys), Arc::clone(&keys));
    Members::new(keys)
        .with(Method::growing(&SEAL, |_| TAG, move |call| seal(&sealing, call)))
        .with(Method::declared(&OPEN, move |call| open(&opening, call)))
}

fn seal(keys: &KeyTable<Cipher>, call: &mut Call<'_>) -> Status {
    let key = keys.get(call.get(1));
    let Some(cipher) = key.get() else { return Status::NoKey };
    let nonce = number(call, 2);
    with_fields(call, 3, |call, aad| cipher.seal(call, nonce, aad, &[]))
}

fn open(keys: &KeyTable<Cipher>, call: &mut Call<'_>) -> Status {
    let key = keys.get(call.get(1));
    let Some(cipher) = key.get() else { return Status::NoKey };
    let nonce = number(call, 2);
    let opened = with_fields(call, 3, |call, aad| {
        cipher.open(call, nonce, aad, |text| Some((text.len(), ())))
    });
    match opened {
        Ok(()) => Status::Ok,
        Err(status) => status,
    }
}

/// A key schedule.
pub(crate) struct Cipher(Wiped<LessSafeKey>);

impl Cipher {
    pub(crate) fn new(algorithm: &'static Algorithm, key: &[u8]) -> Option<Self> {
        let blank = |key: &LessSafeKey| schedule(key.algorithm(), &[0; 32][..key.algorithm().key_len()]);
        schedule(algorithm, key).map(|key| Cipher(Wiped::new(key, blank)))
    }

    /// AES-128 or AES-256, by the length of the key.
    pub(crate) fn aes_gcm(key: &[u8]) -> Option<Self> {
        let all = [&AES_128_GCM, &AES_256_GCM];
        let algorithm = all.into_iter().find(|a| a.key_len() == key.len())?;
        Cipher::new(algorithm, key)
    }

    /// Appends the trailer to the payload, encrypts both, and appends the tag.
    pub(crate) fn seal(&self, call: &mut Call<'_>, nonce: [u8; NONCE], aad: &[u8], trailer: &[u8]) -> Status {
        let before = call.payload().len();
        let text = before + trailer.len();
        if call.resize_payload(text + TAG).is_err() {
            return Status::NoRoom;
        }
        let (text, tag) = call.payload_mut().split_at_mut(text);
        text[before..].copy_from_slice(trailer);
        let nonce = Nonce::assume_unique_for_key(nonce);
        match self.0.get().seal_in_place_separate_tag(nonce, Aad::from(aad), text) {
            Ok(made) => {
                tag.copy_from_slice(made.as_ref());
                Status::Ok
            }
            // Only for texts of over 2^36 bytes; nothing is encrypted then.
            Err(ring::error::Unspecified) => {
                let shrunk = call.resize_payload(before);
                shrunk.map_or(Status::NoRoom, |()| Status::OutOfRange)
            }
        }
    }

    /// Verifies the tag and decrypts. `accept` says how many bytes of the text the payload keeps,
    /// and a result; `None` if the text is malformed. On failure the payload is as before.
    pub(crate) fn open<R>(
        &self,
        call: &mut Call<'_>,
        nonce: [u8; NONCE],
        aad: &[u8],
        accept: impl FnOnce(&[u8]) -> Option<(usize, R)>,
    ) -> Result<R, Status> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        change_or_restore(call, |payload| {
            let (text, tag) = payload.split_last_chunk_mut::<TAG>().ok_or(Status::Malformed)?;
            let tag = Tag::from(*tag);
            // On failure ring overwrites the text.
            let key = self.0.get();
            let text = key.open_in_place_separate_tag(nonce, Aad::from(aad), tag, text, 0..);
            let text = text.map_err(|ring::error::Unspecified| Status::Authentication)?;
            accept(text).ok_or(Status::Malformed)
        })
    }
}

fn schedule(algorithm: &'static Algorithm, key: &[u8]) -> Option<LessSafeKey> {
    UnboundKey::new(algorithm, key).ok().map(LessSafeKey::new)
}
