//! The atomics, locks and fences of epochs and seqlocks: those of the standard library, or those of
//! loom, which runs a model in every order that the memory model allows.
//!
//! `RUSTFLAGS="--cfg loom"` selects loom's; `cargo xtask loom` sets it. Only what the models in
//! `fast/loom_tests.rs` exercise is written with these types.

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, fence},
    },
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, fence},
    },
};
