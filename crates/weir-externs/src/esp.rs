//! The Encapsulating Security Payload with AES-GCM (RFC 4303, RFC 4106), and its trailer.

use crate::Status;
use crate::aead::{Cipher, TAG};
use crate::bytes::number;
use crate::key_table::KeyTable;
use crate::object::{Members, Type};
use crate::sealing::SealingKey;
use crate::shape::{Expected, Method, Shape};
use std::sync::Arc;
use weir_extern_api::{Call, PayloadAccess};
use zeroize::Zeroizing;

/// Bytes of the salt after the AES key.
const SALT: usize = 4;
/// The ciphertext's length is a multiple of this many bytes.
const ALIGNMENT: usize = 4;

/// Bytes of the IV.
const IV: usize = 8;

static SEAL: Shape = Shape {
    name: "seal",
    parameters: &parameters(8 * IV as u32, SEALED),
};
static OPEN: Shape = Shape {
    name: "open",
    parameters: &parameters(8 * IV as u32, OPENED),
};

/// The next header where a packet is encrypted.
pub(crate) const SEALED: Expected = Expected::In(8);
/// The next header where a packet is decrypted.
pub(crate) const OPENED: Expected = Expected::Out(8);

/// The parameters of [`seal`] and [`open`].
pub(crate) const fn parameters(iv_bits: u32, next_header: Expected) -> [(&'static str, Expected); 7] {
    [
        ("p", Expected::Payload(PayloadAccess::Resize)),
        ("key", Expected::In(32)),
        ("spi", Expected::In(32)),
        ("sequence", Expected::In(32)),
        ("iv", Expected::In(iv_bits)),
        ("next_header", next_header),
        ("status", Expected::Status),
    ]
}

/// `esp_gcm`
pub(crate) const ESP_GCM: Type = Type {
    name: "esp_gcm",
    count: "keys",
    make: |count| {
        members(KeyTable::new(
            count,
            "20 or 36 (an AES key and 4 bytes of salt)",
            Key::new,
        ))
    },
};

struct Key {
    cipher: Cipher,
    salt: Zeroizing<[u8; SALT]>,
}

impl Key {
    fn new(key: &[u8]) -> Option<Self> {
        let (key, salt) = key.split_last_chunk::<SALT>()?;
        Some(Key {
            cipher: Cipher::aes_gcm(key)?,
            salt: Zeroizing::new(*salt),
        })
    }
}

impl SealingKey for Key {
    type Iv = [u8; SALT + IV];

    /// The salt, then the IV of the packet.
    fn iv(&self, call: &Call<'_>, parameter: usize) -> Self::Iv {
        let mut nonce = [0; SALT + IV];
        nonce[..SALT].copy_from_slice(&*self.salt);
        nonce[SALT..].copy_from_slice(&number::<IV>(call, parameter));
        nonce
    }

    fn seal(&self, call: &mut Call<'_>, iv: Self::Iv, aad: &[u8], trailer: &[u8]) -> Status {
        self.cipher.seal(call, iv, aad, trailer)
    }

    fn open<R>(
        &self,
        call: &mut Call<'_>,
        iv: Self::Iv,
        aad: &[u8],
        accept: impl FnOnce(&[u8]) -> Option<(usize, R)>,
    ) -> Result<R, Status> {
        self.cipher.open(call, iv, aad, accept)
    }
}

fn members(keys: Arc<KeyTable<Key>>) -> Members {
    let (sealing, opening) = (Arc::clone(&keys), Arc::clone(&keys));
    let seal = move |call: &mut Call<'_>| seal(&sealing, call, ALIGNMENT);
    let open = move |call: &mut Call<'_>| open(&opening, call, ALIGNMENT);
    Members::new(keys)
        .with(Method::growing(&SEAL, |payload| growth(payload, ALIGNMENT, TAG), seal))
        .with(Method::declared(&OPEN, open))
}

/// The bytes by which encryption makes a payload longer.
pub(crate) fn growth(payload: usize, alignment: usize, tag: usize) -> usize {
    Trailer::new(payload, alignment, 0).bytes().len() + tag
}

/// Encrypts with the key of a call. The ciphertext is a multiple of `alignment` bytes.
pub(crate) fn seal<K: SealingKey>(keys: &KeyTable<K>, call: &mut Call<'_>, alignment: usize) -> Status {
    let key = keys.get(call.get(1));
    let Some(key) = key.get() else { return Status::NoKey };
    let trailer = Trailer::new(call.payload().len(), alignment, call.get(5) as u8);
    let (iv, aad) = (key.iv(call, 4), associated_data(call));
    key.seal(call, iv, &aad, trailer.bytes())
}

/// Decrypts with the key of a call.
pub(crate) fn open<K: SealingKey>(keys: &KeyTable<K>, call: &mut Call<'_>, alignment: usize) -> Status {
    call.set(5, 0);
    let key = keys.get(call.get(1));
    let Some(key) = key.get() else { return Status::NoKey };
    let (iv, aad) = (key.iv(call, 4), associated_data(call));
    match key.open(call, iv, &aad, |text| Trailer::parse(text, alignment)) {
        Ok(next_header) => {
            call.set(5, u64::from(next_header));
            Status::Ok
        }
        Err(status) => status,
    }
}

/// SPI and sequence number, which the tag covers.
fn associated_data(call: &Call<'_>) -> [u8; 8] {
    let mut aad = [0; 8];
    aad[..4].copy_from_slice(&number::<4>(call, 2));
    aad[4..].copy_from_slice(&number::<4>(call, 3));
    aad
}

/// Padding, pad length, next header (RFC 4303, 2.4 to 2.6).
struct Trailer {
    bytes: [u8; 17],
    length: usize,
}

impl Trailer {
    /// For a payload of this length. Payload and trailer are then a multiple of `alignment` bytes,
    /// which is at most 16.
    fn new(payload: usize, alignment: usize, next_header: u8) -> Self {
        let padding = (payload + 2).next_multiple_of(alignment) - payload - 2;
        let mut bytes = [0; 17];
        for (byte, value) in bytes.iter_mut().zip(1..=padding as u8) {
            *byte = value;
        }
        bytes[padding] = padding as u8;
        bytes[padding + 1] = next_header;
        Trailer {
            bytes,
            length: padding + 2,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The length of the payload before the trailer, and the next header. `None` if the padding is
    /// not 1, 2, 3, …, or the length is no multiple of `alignment`.
    fn parse(text: &[u8], alignment: usize) -> Option<(usize, u8)> {
        let (padded, &[pad_length, next_header]) = text.split_last_chunk::<2>()?;
        let payload = padded.len().checked_sub(usize::from(pad_length))?;
        let is_padding = padded[payload..]
            .iter()
            .zip(1..=u8::MAX)
            .all(|(byte, value)| *byte == value);
        (is_padding && text.len().is_multiple_of(alignment)).then_some((payload, next_header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_align_and_say_what_they_are() {
        for payload in 0..=70 {
            for alignment in [1, 4, 16] {
                let trailer = Trailer::new(payload, alignment, 41);
                let mut text = vec![0xaa; payload];
                text.extend(trailer.bytes());
                assert!(text.len().is_multiple_of(alignment) && trailer.bytes().len() <= alignment + 1);
                assert_eq!(Trailer::parse(&text, alignment), Some((payload, 41)));
            }
        }
        assert_eq!(Trailer::new(3, 4, 6).bytes(), [1, 2, 3, 3, 6]);
        assert_eq!(Trailer::new(2, 4, 6).bytes(), [0, 6]);
    }

    #[test]
    fn wrong_padding_is_refused() {
        for text in [
            &[][..],
            &[0],
            &[1, 2, 3, 4, 4, 6, 5, 6],
            &[1, 3, 2, 6],
            &[0, 0, 3, 6],
            &[0, 1, 2, 2, 6],
            &[9, 9, 9, 9, 9, 9, 255, 6],
        ] {
            assert_eq!(Trailer::parse(text, 4), None, "{text:?}");
        }
        assert_eq!(Trailer::parse(&[8, 1, 2, 2, 6], 1), Some((1, 6)));
        let longest: Vec<u8> = (1..=255).chain([255, 6]).collect();
        assert_eq!(Trailer::parse(&longest, 1), Some((0, 6)));
    }
}
