//! AES-CBC, then HMAC-SHA-256-128 over the ciphertext (RFC 3602, RFC 4868).

use crate::Status;
use crate::bytes::{change_or_restore, number, with_fields};
use crate::esp::{Trailer, associated_data};
use crate::key_table::KeyTable;
use crate::mac::{HMAC_TAG, MacKey};
use crate::object::{Members, Type};
use crate::shape::{Expected, Method, Shape};
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit};
use aes::cipher::{KeyInit, consts::U16};
use aes::{Aes128, Aes256};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use weir_extern_api::{Call, PayloadAccess};

/// Bytes of a block and of an IV.
const BLOCK: usize = 16;
/// Bytes of a tag: the first half of an HMAC-SHA-256.
const TAG: usize = HMAC_TAG / 2;
/// Bytes of an HMAC key (RFC 4868, 2.1.1).
const MAC_KEY: usize = 32;

static SEAL: Shape = Shape {
    name: "seal",
    parameters: &[
        ("p", Expected::Payload(PayloadAccess::Resize)),
        ("key", Expected::In(32)),
        ("iv", Expected::In(128)),
        ("aad", Expected::Fields("A")),
        ("status", Expected::Status),
    ],
};
static OPEN: Shape = Shape {
    name: "open",
    parameters: SEAL.parameters,
};
static SEAL_ESP: Shape = Shape {
    name: "seal_esp",
    parameters: &[
        ("p", Expected::Payload(PayloadAccess::Resize)),
        ("key", Expected::In(32)),
        ("spi", Expected::In(32)),
        ("sequence", Expected::In(32)),
        ("iv", Expected::In(128)),
        ("next_header", Expected::In(8)),
        ("status", Expected::Status),
    ],
};
static OPEN_ESP: Shape = Shape {
    name: "open_esp",
    parameters: &[
        ("p", Expected::Payload(PayloadAccess::Resize)),
        ("key", Expected::In(32)),
        ("spi", Expected::In(32)),
        ("sequence", Expected::In(32)),
        ("iv", Expected::In(128)),
        ("next_header", Expected::Out(8)),
        ("status", Expected::Status),
    ],
};

/// `aes_cbc_hmac`
pub(crate) const AES_CBC_HMAC: Type = Type {
    name: "aes_cbc_hmac",
    count: "keys",
    make: |count| {
        let lengths = "48 or 64 (an AES key and 32 bytes for HMAC)";
        members(KeyTable::new(count, lengths, Key::new))
    },
};

fn members(keys: Arc<KeyTable<Key>>) -> Members {
    let of = || Arc::clone(&keys);
    let (seals, opens, seals_esp, opens_esp) = (of(), of(), of(), of());
    Members::new(keys)
        .with(Method::growing(&SEAL, growth, move |call| seal(&seals, call)))
        .with(Method::declared(&OPEN, move |call| open(&opens, call)))
        .with(Method::growing(&SEAL_ESP, esp_growth, move |call| {
            seal_esp(&seals_esp, call)
        }))
        .with(Method::declared(&OPEN_ESP, move |call| open_esp(&opens_esp, call)))
}

fn growth(payload: usize) -> usize {
    padding(payload).len() + TAG
}

fn esp_growth(payload: usize) -> usize {
    Trailer::new(payload, BLOCK, 0).bytes().len() + TAG
}

fn seal(keys: &KeyTable<Key>, call: &mut Call<'_>) -> Status {
    let key = keys.get(call.get(1));
    let Some(key) = key.get() else { return Status::NoKey };
    let (iv, padding) = (number(call, 2), padding(call.payload().len()));
    with_fields(call, 3, |call, aad| key.seal(call, iv, aad, padding))
}

fn open(keys: &KeyTable<Key>, call: &mut Call<'_>) -> Status {
    let key = keys.get(call.get(1));
    let Some(key) = key.get() else { return Status::NoKey };
    let iv = number(call, 2);
    let opened = with_fields(call, 3, |call, aad| {
        key.open(call, iv, aad, |text| Some((without_padding(text)?, ())))
    });
    match opened {
        Ok(()) => Status::Ok,
        Err(status) => status,
    }
}

fn seal_esp(keys: &KeyTable<Key>, call: &mut Call<'_>) -> Status {
    let key = keys.get(call.get(1));
    let Some(key) = key.get() else { return Status::NoKey };
    let trailer = Trailer::new(call.payload().len(), BLOCK, call.get(5) as u8);
    key.seal(call, number(call, 4), &associated_data(call), trailer.bytes())
}

fn open_esp(keys: &KeyTable<Key>, call: &mut Call<'_>) -> Status {
    call.set(5, 0);
    let key = keys.get(call.get(1));
    let Some(key) = key.get() else { return Status::NoKey };
    let (iv, aad) = (number(call, 4), associated_data(call));
    let opened = key.open(call, iv, &aad, |text| Trailer::parse(text, BLOCK));
    match opened {
        Ok(next_header) => {
            call.set(5, u64::from(next_header));
            Status::Ok
        }
        Err(status) => status,
    }
}

/// The padding of a payload of this length: 1 to 16 bytes, each their number (RFC 5652, 6.3).
fn padding(payload: usize) -> &'static [u8] {
    static PADDING: [[u8; BLOCK]; BLOCK + 1] = {
        let mut all = [[0; BLOCK]; BLOCK + 1];
        let mut length = 0;
        while length <= BLOCK {
            all[length] = [length as u8; BLOCK];
            length += 1;
        }
        all
    };
    let length = BLOCK - payload % BLOCK;
    &PADDING[length][..length]
}

/// The length of a text without its padding.
fn without_padding(text: &[u8]) -> Option<usize> {
    let length = text.len().checked_sub(usize::from(*text.last()?))?;
    (text[length..] == *padding(length)).then_some(length)
}

enum Schedule {
    Aes128(Aes128),
    Aes256(Aes256),
}

struct Key {
    cipher: Schedule,
    mac: MacKey,
}

impl Key {
    fn new(key: &[u8]) -> Option<Self> {
        let (key, mac) = key.split_last_chunk::<MAC_KEY>()?;
        let cipher = match key.len() {
            16 => Schedule::Aes128(Aes128::new_from_slice(key).ok()?),
            32 => Schedule::Aes256(Aes256::new_from_slice(key).ok()?),
            _ => return None,
        };
        let mac = MacKey::new(mac);
        Some(Key { cipher, mac })
    }

    /// Appends the trailer to the payload, encrypts both, and appends the tag of `aad`, IV and
    /// ciphertext. Payload and trailer are whole blocks.
    fn seal(&self, call: &mut Call<'_>, iv: [u8; BLOCK], aad: &[u8], trailer: &[u8]) -> Status {
        let before = call.payload().len();
        let text = before + trailer.len();
        if call.resize_payload(text + TAG).is_err() {
            return Status::NoRoom;
        }
        let (text, tag) = call.payload_mut().split_at_mut(text);
        text[before..].copy_from_slice(trailer);
        let (blocks, _) = Array::slice_as_chunks_mut(text);
        match &self.cipher {
            Schedule::Aes128(aes) => encrypt(aes, iv, blocks),
            Schedule::Aes256(aes) => encrypt(aes, iv, blocks),
        }
        tag.copy_from_slice(&self.mac.tag(&[aad, &iv, text]).as_ref()[..TAG]);
        Status::Ok
    }

    /// Verifies the tag, then decrypts. `accept` says how many bytes of the text the payload keeps,
    /// and a result; `None` if the text is malformed. On failure the payload is as before.
    fn open<R>(
        &self,
        call: &mut Call<'_>,
        iv: [u8; BLOCK],
        aad: &[u8],
        accept: impl FnOnce(&[u8]) -> Option<(usize, R)>,
    ) -> Result<R, Status> {
        change_or_restore(call, |payload| {
            let (text, tag) = payload.split_last_chunk_mut::<TAG>().ok_or(Status::Malformed)?;
            if text.is_empty() || !text.len().is_multiple_of(BLOCK) {
                return Err(Status::Malformed);
            }
            let expected = self.mac.tag(&[aad, &iv, text]);
            if !bool::from(expected.as_ref()[..TAG].ct_eq(tag)) {
                return Err(Status::Authentication);
            }
            let (blocks, _) = Array::slice_as_chunks_mut(text);
            match &self.cipher {
                Schedule::Aes128(aes) => decrypt(aes, iv, blocks),
                Schedule::Aes256(aes) => decrypt(aes, iv, blocks),
            }
            accept(text).ok_or(Status::Malformed)
        })
    }
}

fn encrypt<C>(aes: &C, iv: [u8; BLOCK], blocks: &mut [Array<u8, U16>])
where
    C: BlockCipherEncrypt<BlockSize = U16>,
{
    cbc::Encryptor::inner_iv_init(aes, &iv.into()).encrypt_blocks(blocks);
}

fn decrypt<C>(aes: &C, iv: [u8; BLOCK], blocks: &mut [Array<u8, U16>])
where
    C: BlockCipherDecrypt<BlockSize = U16>,
{
    cbc::Decryptor::inner_iv_init(aes, &iv.into()).decrypt_blocks(blocks);
}
