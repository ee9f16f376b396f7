//! RINA: EFCP.
#![forbid(unsafe_code)]
pub mod checksum;
pub mod efcp;
mod error;
mod read;
pub use error::{EncodeError, Expected, Reason, WireError};
pub use read::{ByteOrder, Reader, Width};
