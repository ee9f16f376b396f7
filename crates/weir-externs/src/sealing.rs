//! What all keys have that encrypt and authenticate payload.

use crate::Status;
use crate::bytes::with_fields;
use crate::key_table::KeyTable;
use crate::shape::Expected;
use weir_extern_api::{Call, PayloadAccess};

/// A key that encrypts and authenticates payload.
pub(crate) trait SealingKey: Send + Sync + 'static {
    /// The IV or nonce of a packet.
    type Iv;

    /// The IV in this parameter.
    fn iv(&self, call: &Call<'_>, parameter: usize) -> Self::Iv;

    /// Appends the trailer to the payload, encrypts both, and appends the tag, which covers `aad`
    /// too.
    fn seal(&self, call: &mut Call<'_>, iv: Self::Iv, aad: &[u8], trailer: &[u8]) -> Status;

    /// Verifies the tag and decrypts. `accept` says how many bytes of the text the payload keeps,
    /// and a result; `None` if the text is malformed. On failure the payload is as before.
    fn open<R>(
        &self,
        call: &mut Call<'_>,
        iv: Self::Iv,
        aad: &[u8],
        accept: impl FnOnce(&[u8]) -> Option<(usize, R)>,
    ) -> Result<R, Status>;
}

/// The parameters of [`seal`] and [`open`], with the name and the bits of the IV.
pub(crate) const fn parameters(iv: &'static str, iv_bits: u32) -> [(&'static str, Expected); 5] {
    [
        ("p", Expected::Payload(PayloadAccess::Resize)),
        ("key", Expected::In(32)),
        (iv, Expected::In(iv_bits)),
        ("aad", Expected::Fields("A")),
        ("status", Expected::Status),
    ]
}

/// Encrypts with the key of a call. `padding`: what is appended to a payload of a length.
pub(crate) fn seal<K: SealingKey>(
    keys: &KeyTable<K>,
    call: &mut Call<'_>,
    padding: fn(usize) -> &'static [u8],
) -> Status {
    let key = keys.get(call.get(1));
    let Some(key) = key.get() else { return Status::NoKey };
    let (iv, padding) = (key.iv(call, 2), padding(call.payload().len()));
    with_fields(call, 3, |call, aad| key.seal(call, iv, aad, padding))
}

/// Decrypts with the key of a call. `unpadded`: the length of a text without its padding.
pub(crate) fn open<K: SealingKey>(
    keys: &KeyTable<K>,
    call: &mut Call<'_>,
    unpadded: fn(&[u8]) -> Option<usize>,
) -> Status {
    let key = keys.get(call.get(1));
    let Some(key) = key.get() else { return Status::NoKey };
    let iv = key.iv(call, 2);
    let opened = with_fields(call, 3, |call, aad| {
        key.open(call, iv, aad, |text| Some((unpadded(text)?, ())))
    });
    match opened {
        Ok(()) => Status::Ok,
        Err(status) => status,
    }
}

/// Appends the trailer and room for a tag to the payload: text and tag. `None` if there is no room.
pub(crate) fn append<'c>(call: &'c mut Call<'_>, trailer: &[u8], tag: usize) -> Option<(&'c mut [u8], &'c mut [u8])> {
    let before = call.payload().len();
    let text = before + trailer.len();
    call.resize_payload(text + tag).ok()?;
    let (text, tag) = call.payload_mut().split_at_mut(text);
    text[before..].copy_from_slice(trailer);
    Some((text, tag))
}
