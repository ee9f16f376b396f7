//! Encoders and checked decoders of headers and metadata, one format at a time.
//!
//! Headers are plain values with `read` (from a [`Reader`](crate::Reader), which keeps the offset
//! for errors) and `to_bytes`. Parts of variable length are views that borrow the packet:
//! [`Stack`] and [`HopView`]. Nothing here panics, whatever the bytes.
//!
//! | Format | Items |
//! |---|---|
//! | INT 2.x over TCP/UDP | [`Shim`], [`MdHeader`], [`MxHeader`] |
//! | INT 2.x over GRE, VXLAN-GPE, Geneve | [`GreShim`], [`VxlanGpeShim`], [`GeneveOption`] |
//! | INT 1.0 | [`OldShim`], [`OldVxlanGpeShim`], [`GeneveOption`], [`V1Header`] |
//! | INT 0.4, 0.5 | [`OldShim`], [`OldVxlanGpeShim`], [`V0Header`], [`Tail`] |
//! | the lab format | [`Shim`], [`lab`] |
//! | metadata of all of these | [`HopLayout`], [`Stack`], [`HopView`] |
//! | INT with its stack, to encode | [`encode`] |
//! | telemetry reports | [`report`] |

mod encapsulation;
pub mod encode;
mod header;
pub mod lab;
pub(crate) mod metadata;
mod old;
pub mod report;
mod shim;
mod stack;

pub use encapsulation::{GeneveOption, GreShim, OldVxlanGpeShim, VxlanGpeShim};
pub use header::{Domain, MdHeader, MxHeader};
pub use old::{Replication, Tail, V0Header, V0Layout, V1Header};
pub use shim::{NextProtocol, OldShim, OldShimType, Shim, ShimType};
pub(crate) use stack::SourceOnly;
pub use stack::{HopLayout, HopView, Stack, V1Profile};
