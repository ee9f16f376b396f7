//! The externs that come with the switch: ciphers, authentication, sequence numbers, compression,
//! inference.
//!
//! [`registry`] has all of them; [`DECLARATIONS`] is the file `weir/externs.p4` that declares and
//! documents them for programs. Each refuses declarations that do not fit.
//!
//! Common to all:
//! - A call that cannot do its work reports a [`Status`] and leaves the payload unchanged.
//! - Keys come from the control plane ([`weir_extern_api::Keys`]). No call and no message shows
//!   them, and their memory is overwritten when they are replaced.
//! - Calls may come from several threads. Scratch memory is per thread, and stays: after the first
//!   calls of a thread the ciphers and the compression by LZ4 do not allocate.
//!
//! # Example
//!
//! ```
//! use weir_extern_api::{Call, Parameter, Payload, PayloadAccess, Signature};
//! use weir_ir::{Bits, ConstValue, ExternInstance, Loc};
//!
//! let instance = ExternInstance {
//!     name: "MyIngress.cipher".into(),
//!     type_name: "aes_gcm".into(),
//!     type_arguments: Vec::new(),
//!     arguments: vec![("keys".into(), ConstValue::Bits(Bits::new(32, 1)))],
//!     methods: Vec::new(),
//!     annotations: Vec::new(),
//!     loc: Loc::default(),
//! };
//! let registry = weir_externs::registry();
//! let cipher = registry.find_type("aes_gcm").expect("it is registered")(&instance, registry.files())?;
//! cipher.keys().expect("it has keys").set(0, &[7; 16]).expect("16 bytes");
//!
//! // seal(payload, key, nonce, aad, status)
//! let signature = Signature::new(vec![
//!     Parameter::payload("p", PayloadAccess::Resize),
//!     Parameter::input("key", &[32]),
//!     Parameter::input("nonce", &[96]),
//!     Parameter::input("aad", &[16, 16]),
//!     Parameter::output("status", &[8]),
//! ], &[]);
//! let seal = cipher.method("seal").expect("a method");
//! seal.check(&signature)?;
//! let (mut words, mut packet) = (vec![0; signature.words()], *b"headerhello................");
//! let payload = Payload::new(&mut packet, 6, 11).expect("it lies in the packet");
//! let mut call = Call::new(&signature, &mut words, Some(payload));
//! seal.call(&mut call);
//! assert_eq!(call.get(4), u64::from(weir_externs::Status::Ok.code()));
//! assert_eq!(call.payload().len(), 5 + 16);
//! # Ok::<(), String>(())
//! ```
#![forbid(unsafe_code)]

mod aead;
mod busy;
mod bytes;
mod cbc;
mod compression;
mod esp;
mod key_table;
mod lz4;
mod mac;
mod object;
mod onnx;
mod payload;
mod sealing;
mod sequence;
mod shape;
mod status;
#[cfg(feature = "zstd")]
mod zstd;

pub use status::Status;
use weir_extern_api::Registry;

/// The include file that declares these externs: its name, and its text.
pub const DECLARATIONS: (&str, &str) = ("weir/externs.p4", include_str!("../../../p4/include/weir/externs.p4"));

const TYPES: &[object::Type] = &[
    aead::AES_GCM,
    aead::CHACHA,
    cbc::AES_CBC_HMAC,
    esp::ESP_GCM,
    mac::HMAC_SHA256,
    mac::SIPHASH_2_4,
    sequence::REPLAY_WINDOW,
    sequence::SEQUENCE,
];

/// All functions.
fn functions() -> Vec<object::Declared> {
    vec![
        lz4::compressor(),
        lz4::decompressor(),
        #[cfg(feature = "zstd")]
        zstd::compressor(),
        #[cfg(feature = "zstd")]
        zstd::decompressor(),
        payload::length(),
        payload::truncate(),
        busy::busy_cycles(),
    ]
}

/// All externs of this crate.
#[must_use]
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    for (shape, function) in functions() {
        registry.function(shape.name, function);
    }
    for extern_type in TYPES {
        registry.object(extern_type.name, extern_type.constructor());
    }
    registry.object(onnx::TYPE_NAME, onnx::constructor());
    registry
}

#[cfg(test)]
mod declaration_tests;
