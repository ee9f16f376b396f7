//! AES-CBC, then HMAC-SHA-256-128 over the ciphertext (RFC 3602, RFC 4868).

use crate::Status;
use crate::bytes::{change_or_restore, number};
use crate::esp;
use crate::key_table::KeyTable;
use crate::mac::{HMAC_TAG, MacKey};
use crate::object::{Members, Type};
use crate::sealing::{self, SealingKey};
use crate::shape::{Method, Shape};
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit};
use aes::cipher::{KeyInit, consts::U16};
use aes::{Aes128, Aes256};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use weir_extern_api::Call;

/// Bytes of a block and of an IV.
const BLOCK: usize = 16;
/// Bytes of a tag: the first half of an HMAC-SHA-256.
const TAG: usize = HMAC_TAG / 2;
/// Bytes of an HMAC key (RFC 4868, 2.1.1).
const MAC_KEY: usize = 32;

/// Bits of an IV.
const IV_BITS: u32 = 8 * BLOCK as u32;

static SEAL: Shape = Shape {
    name: "seal",
    parameters: &sealing::parameters("iv", IV_BITS),
};
static OPEN: Shape = Shape {
    name: "open",
    parameters: SEAL.parameters,
};
static SEAL_ESP: Shape = Shape {
    name: "seal_esp",
    parameters: &esp::parameters(IV_BITS, esp::SEALED),
};
static OPEN_ESP: Shape = Shape {
    name: "open_esp",
    parameters: &esp::parameters(IV_BITS, esp::OPENED),
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
    let seal = move |call: &mut Call<'_>| sealing::seal(&seals, call, padding);
    let open = move |call: &mut Call<'_>| sealing::open(&opens, call, unpadded);
    let seal_esp = move |call: &mut Call<'_>| esp::seal(&seals_esp, call, BLOCK);
    let open_esp = move |call: &mut Call<'_>| esp::open(&opens_esp, call, BLOCK);
    Members::new(keys)
        .with(Method::growing(&SEAL, |payload| padding(payload).len() + TAG, seal))
        .with(Method::declared(&OPEN, open))
        .with(Method::growing(
            &SEAL_ESP,
            |payload| esp::growth(payload, BLOCK, TAG),
            seal_esp,
        ))
        .with(Method::declared(&OPEN_ESP, open_esp))
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
fn unpadded(text: &[u8]) -> Option<usize> {
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
}

impl SealingKey for Key {
    type Iv = [u8; BLOCK];

    fn iv(&self, call: &Call<'_>, parameter: usize) -> Self::Iv {
        number(call, parameter)
    }

    /// Payload and trailer are whole blocks. The tag covers `aad`, IV and ciphertext.
    fn seal(&self, call: &mut Call<'_>, iv: Self::Iv, aad: &[u8], trailer: &[u8]) -> Status {
        let Some((text, tag)) = sealing::append(call, trailer, TAG) else {
            return Status::NoRoom;
        };
        let (blocks, _) = Array::slice_as_chunks_mut(text);
        match &self.cipher {
            Schedule::Aes128(aes) => encrypt(aes, iv, blocks),
            Schedule::Aes256(aes) => encrypt(aes, iv, blocks),
        }
        tag.copy_from_slice(&self.mac.tag(&[aad, &iv, text]).as_ref()[..TAG]);
        Status::Ok
    }

    fn open<R>(
        &self,
        call: &mut Call<'_>,
        iv: Self::Iv,
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
