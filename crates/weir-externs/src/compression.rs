//! Compression of the payload. The algorithms are in [`crate::lz4`] and `crate::zstd`.

use crate::Status;
use crate::shape::Expected;
use std::cell::RefCell;
use weir_extern_api::{Call, PayloadAccess};

/// The most bytes of a payload before compression. It bounds what a packet can expand to.
pub(crate) const MAX_ORIGINAL: usize = 65_535;

thread_local! {
    /// The output of an algorithm. Grows to the largest one.
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The parameters of decompression.
pub(crate) const DECOMPRESS: [(&str, Expected); 3] = [
    ("p", Expected::Payload(PayloadAccess::Resize)),
    ("original_length", Expected::In(32)),
    ("status", Expected::Status),
];

/// Passes on memory of this many bytes, with any content.
fn with_output<R>(bytes: usize, run: impl FnOnce(&mut [u8]) -> R) -> R {
    OUTPUT.with_borrow_mut(|output| {
        if output.len() < bytes {
            output.resize(bytes, 0);
        }
        run(&mut output[..bytes])
    })
}

/// Compresses the payload if it becomes smaller. Parameter `original` becomes its length before.
/// `run` compresses into memory of `bound(length)` bytes and returns the compressed length.
pub(crate) fn compress(
    call: &mut Call<'_>,
    original: usize,
    bound: fn(usize) -> usize,
    run: impl FnOnce(&[u8], &mut [u8]) -> Result<usize, Status>,
) -> Status {
    let before = call.payload().len();
    if before > MAX_ORIGINAL {
        call.set(original, 0);
        return Status::OutOfRange;
    }
    call.set(original, before as u64);
    with_output(bound(before), |output| {
        let after = match run(call.payload(), output) {
            Ok(after) if after < before => after,
            Ok(_) => return Status::Incompressible,
            Err(status) => return status,
        };
        replace(call, &output[..after])
    })
}

/// Decompresses the payload. Parameter `original` says its length before compression.
/// `run` decompresses into memory of that length and returns the bytes that it wrote.
pub(crate) fn decompress(
    call: &mut Call<'_>,
    original: usize,
    run: impl FnOnce(&[u8], &mut [u8]) -> Result<usize, Status>,
) -> Status {
    let length = usize::try_from(call.get(original)).unwrap_or(usize::MAX);
    if length > MAX_ORIGINAL {
        return Status::OutOfRange;
    }
    with_output(length, |output| match run(call.payload(), output) {
        Ok(written) if written == length => replace(call, output),
        Ok(_) => Status::Malformed,
        Err(status) => status,
    })
}

fn replace(call: &mut Call<'_>, bytes: &[u8]) -> Status {
    if call.resize_payload(bytes.len()).is_err() {
        return Status::NoRoom;
    }
    call.payload_mut().copy_from_slice(bytes);
    Status::Ok
}
