//! The bytes of parameters and payloads, without an allocation per call.

use crate::Status;
use std::cell::RefCell;
use weir_extern_api::Call;

thread_local! {
    /// The bytes of a parameter. Grows to the longest one.
    static FIELDS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// A payload before it was changed.
    static SAVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Passes on the bytes of all scalars of a parameter, each in whole bytes, most significant first.
pub(crate) fn with_fields<R>(call: &mut Call<'_>, parameter: usize, run: impl FnOnce(&mut Call<'_>, &[u8]) -> R) -> R {
    FIELDS.with_borrow_mut(|bytes| {
        bytes.clear();
        call.append_bytes(parameter, bytes);
        run(call, bytes)
    })
}

/// The bytes of a number of N bytes, most significant first. A number of another width: 0.
pub(crate) fn number<const N: usize>(call: &Call<'_>, parameter: usize) -> [u8; N] {
    let mut bytes = [0; N];
    if let Some(bits) = call.bits(parameter, 0).filter(|b| b.width() as usize == 8 * N) {
        bits.copy_to(&mut bytes);
    }
    bytes
}

/// Lets `change` work on the payload in place, which then keeps as many bytes from its start as the
/// result says. On failure the payload is as before.
pub(crate) fn change_or_restore<R>(
    call: &mut Call<'_>,
    change: impl FnOnce(&mut [u8]) -> Result<(usize, R), Status>,
) -> Result<R, Status> {
    SAVED.with_borrow_mut(|saved| {
        saved.clear();
        saved.extend_from_slice(call.payload());
        let result = change(call.payload_mut()).and_then(|(length, result)| {
            let resized = call.resize_payload(length);
            resized.map(|()| result).map_err(|_| Status::NoRoom)
        });
        if result.is_err() && call.payload_mut().len() == saved.len() {
            call.payload_mut().copy_from_slice(saved);
        }
        result
    })
}
