//! AES-GCM and ChaCha20-Poly1305 over the payload.

use crate::Status;
use crate::bytes::{change_or_restore, number};
use crate::key_table::{KeyTable, Wiped};
use crate::object::{Members, Type};
use crate::sealing::{self, SealingKey};
use crate::shape::{Method, Shape};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};
use std::sync::Arc;
use weir_extern_api::Call;

/// Bytes of a tag.
pub(crate) const TAG: usize = 16;
/// Bytes of a nonce.
const NONCE: usize = 12;

static SEAL: Shape = Shape {
    name: "seal",
    parameters: &sealing::parameters("nonce", 8 * NONCE as u32),
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
    let seal = move |call: &mut Call<'_>| sealing::seal(&sealing, call, |_| &[]);
    let open = move |call: &mut Call<'_>| sealing::open(&opening, call, |text| Some(text.len()));
    Members::new(keys)
        .with(Method::growing(&SEAL, |_| TAG, seal))
        .with(Method::declared(&OPEN, open))
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
}

impl SealingKey for Cipher {
    type Iv = [u8; NONCE];

    fn iv(&self, call: &Call<'_>, parameter: usize) -> Self::Iv {
        number(call, parameter)
    }

    fn seal(&self, call: &mut Call<'_>, nonce: Self::Iv, aad: &[u8], trailer: &[u8]) -> Status {
        let before = call.payload().len();
        let Some((text, tag)) = sealing::append(call, trailer, TAG) else {
            return Status::NoRoom;
        };
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

    fn open<R>(
        &self,
        call: &mut Call<'_>,
        nonce: Self::Iv,
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
