//! RINA: EFCP.
#![forbid(unsafe_code)]
pub mod arp;
pub mod cdap;
pub mod checksum;
pub mod efcp;
mod error;
mod name;
mod read;
pub use error::{EncodeError, Expected, Reason, WireError};
pub use name::{ApplicationName, NameForm};
pub use read::{ByteOrder, Reader, Width};
