//! Zstandard frames (RFC 8878).

use crate::Status;
use crate::compression::{self, MAX_ORIGINAL, compress, decompress};
use crate::object::Declared;
use crate::shape::{Expected, Method, Shape};
use std::cell::RefCell;
use std::ops::RangeInclusive;
use weir_extern_api::{Call, PayloadAccess};
use zstd_safe::{CCtx, DCtx, compress_bound};

/// Levels above need memory for windows that no packet fills.
const LEVELS: RangeInclusive<u64> = 1..=19;

static COMPRESS: Shape = Shape {
    name: "zstd_compress",
    parameters: &[
        ("p", Expected::Payload(PayloadAccess::Resize)),
        ("level", Expected::In(8)),
        ("original_length", Expected::Out(32)),
        ("status", Expected::Status),
    ],
};
static DECOMPRESS: Shape = Shape {
    name: "zstd_decompress",
    parameters: &compression::DECOMPRESS,
};

thread_local! {
    static COMPRESSION: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSION: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

pub(crate) fn compressor() -> Declared {
    Method::declared(&COMPRESS, |call: &mut Call<'_>| {
        let level = call.get(1);
        if !LEVELS.contains(&level) {
            call.set(2, 0);
            return Status::OutOfRange;
        }
        compress(call, 2, compress_bound, |from, to| compress_at(level as i32, from, to))
    })
}

fn compress_at(level: i32, from: &[u8], to: &mut [u8]) -> Result<usize, Status> {
    COMPRESSION.with_borrow_mut(|context| {
        let context = existing_or(context, CCtx::try_create)?;
        context.compress(to, from, level).map_err(|_| Status::Unavailable)
    })
}

pub(crate) fn decompressor() -> Declared {
    let growth = |payload: usize| MAX_ORIGINAL.saturating_sub(payload);
    Method::growing(&DECOMPRESS, growth, |call: &mut Call<'_>| {
        decompress(call, 1, |from, to| {
            DECOMPRESSION.with_borrow_mut(|context| {
                let context = existing_or(context, DCtx::try_create)?;
                context.decompress(to, from).map_err(|_| Status::Malformed)
            })
        })
    })
}

/// The context of the thread, which is made at its first call.
fn existing_or<C>(context: &mut Option<C>, make: fn() -> Option<C>) -> Result<&mut C, Status> {
    if context.is_none() {
        *context = make();
    }
    context.as_mut().ok_or(Status::Unavailable)
}
