//! The LZ4 block format.

use crate::Status;
use crate::compression::{self, MAX_ORIGINAL, compress, decompress};
use crate::object::Declared;
use crate::shape::{Expected, Method, Shape};
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use std::cell::RefCell;
use weir_extern_api::{Call, PayloadAccess};

/// The most bytes of text per byte of a block: a byte adds at most 255 to a length.
const MAX_RATIO: usize = 255;

static COMPRESS: Shape = Shape {
    name: "lz4_compress",
    parameters: &[
        ("p", Expected::Payload(PayloadAccess::Resize)),
        ("original_length", Expected::Out(32)),
        ("status", Expected::Status),
    ],
};
static DECOMPRESS: Shape = Shape {
    name: "lz4_decompress",
    parameters: &compression::DECOMPRESS,
};

thread_local! {
    static TABLE: RefCell<CompressTable> = RefCell::new(CompressTable::default());
}

pub(crate) fn compressor() -> Declared {
    let run = |from: &[u8], to: &mut [u8]| {
        let written = TABLE.with_borrow_mut(|table| compress_into_with_table(from, to, table));
        written.map_err(|_| Status::Incompressible)
    };
    Method::declared(&COMPRESS, move |call: &mut Call<'_>| {
        compress(call, 1, get_maximum_output_size, run)
    })
}

pub(crate) fn decompressor() -> Declared {
    let run = |from: &[u8], to: &mut [u8]| decompress_into(from, to).map_err(|_| Status::Malformed);
    Method::growing(&DECOMPRESS, growth, move |call: &mut Call<'_>| decompress(call, 1, run))
}

fn growth(payload: usize) -> usize {
    payload
        .saturating_mul(MAX_RATIO)
        .min(MAX_ORIGINAL)
        .saturating_sub(payload)
}
