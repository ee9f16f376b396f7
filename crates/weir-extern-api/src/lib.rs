//! The interface between a switch and externs that are not part of an architecture.
//!
//! An extern is a Rust type with the trait [`Extern`]. It is given a [`Call`]: the values of the
//! parameters, and the payload of the packet if the P4 declaration has a payload parameter. It may
//! run on the packet thread or on another one, on several packets at once. So it depends on nothing
//! but the call and state that it guards itself.
//!
//! A [`Registry`] says which names of a P4 program stand for which externs. Functions are
//! registered by name; objects by the name of their type, with a constructor that is called once
//! per instance. The constructor may read files that the program names ([`Files`]).
//!
//! This crate has no externs of its own, no threads, and knows neither programs nor packets'
//! headers.
//!
//! # Example
//!
//! ```
//! use weir_extern_api::{Call, Extern, Outcome, Parameter, Payload, Signature};
//!
//! /// `extern void rotate(in bit<8> by, payload_write data);`
//! struct Rotate;
//!
//! impl Extern for Rotate {
//!     fn call(&self, call: &mut Call<'_>) -> Outcome {
//!         let by = call.get(0) as u8;
//!         for byte in call.payload_mut() {
//!             *byte = byte.wrapping_add(by);
//!         }
//!         Outcome::Continue
//!     }
//! }
//!
//! let signature = Signature::new(vec![
//!     Parameter::input("by", &[8]),
//!     Parameter::payload("data", weir_extern_api::PayloadAccess::Write),
//! ], &[]);
//! let (mut words, mut packet) = ([0u64; 1], *b"headabc");
//! let payload = Payload::new(&mut packet, 4, 7).expect("the payload is in its memory");
//! let mut call = Call::new(&signature, &mut words, Some(payload));
//! call.set_input(0, 1);
//! assert_eq!(Rotate.call(&mut call), Outcome::Continue);
//! assert_eq!(&packet, b"headbcd");
//! ```
#![forbid(unsafe_code)]

mod call;
mod files;
mod keys;
mod payload;
mod registry;
mod signature;

pub use call::{Call, Outcome};
pub use files::{Files, Folder, NoFiles, ProgramFileError};
pub use keys::{KeyError, Keys};
pub use payload::{Payload, ResizeError};
pub use registry::{ConstructError, Constructor, Object, Registry};
pub use signature::{Parameter, ParameterKind, PayloadAccess, Signature};

/// An extern function, or a method of an extern object.
///
/// Calls may come from several threads at once.
pub trait Extern: Send + Sync {
    /// Checks that the P4 declaration is one that this extern can serve. Called once per call site
    /// when a program is loaded.
    ///
    /// # Errors
    /// What of the declaration is wrong, and what is expected: a sentence for the author of the
    /// program.
    fn check(&self, signature: &Signature) -> Result<(), String> {
        let _ = signature;
        Ok(())
    }

    /// The most bytes by which a payload of this length may grow. The switch provides that much
    /// room after the payload if it has it. Only for externs with a payload parameter of
    /// [`PayloadAccess::Resize`].
    fn growth(&self, payload_bytes: usize) -> usize {
        let _ = payload_bytes;
        0
    }

    /// Executes one call.
    fn call(&self, call: &mut Call<'_>) -> Outcome;

    /// Executes several calls in order, with an outcome for each. For externs that are faster in
    /// batches, such as devices.
    ///
    /// # Panics
    /// Callers pass as many outcomes as calls; an implementation may rely on it.
    fn call_batch(&self, calls: &mut [Call<'_>], outcomes: &mut [Outcome]) {
        for (call, outcome) in calls.iter_mut().zip(outcomes) {
            *outcome = self.call(call);
        }
    }
}
