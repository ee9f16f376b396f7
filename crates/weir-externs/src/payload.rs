//! The length of the payload.

use crate::Status;
use crate::object::Declared;
use crate::shape::{Expected, Method, Shape};
use weir_extern_api::{Call, PayloadAccess};

static LENGTH: Shape = Shape {
    name: "payload_length",
    parameters: &[
        ("p", Expected::Payload(PayloadAccess::Read)),
        ("bytes", Expected::Out(32)),
    ],
};
static TRUNCATE: Shape = Shape {
    name: "payload_truncate",
    parameters: &[
        ("p", Expected::Payload(PayloadAccess::Resize)),
        ("bytes", Expected::In(32)),
    ],
};

pub(crate) fn length() -> Declared {
    Method::declared(&LENGTH, |call: &mut Call<'_>| {
        let bytes = call.payload().len();
        call.set(1, bytes as u64);
        Status::Ok
    })
}

/// A payload that is no longer than that stays as it is.
pub(crate) fn truncate() -> Declared {
    Method::declared(&TRUNCATE, |call: &mut Call<'_>| {
        let bytes = usize::try_from(call.get(1)).unwrap_or(usize::MAX);
        if bytes < call.payload().len() {
            // Shorter always fits.
            let _ = call.resize_payload(bytes);
        }
        Status::Ok
    })
}
