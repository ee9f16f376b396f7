//! RINA: EFCP.
#![forbid(unsafe_code)]
pub mod arp;
pub mod cdap;
pub mod checksum;
pub mod efcp;
mod error;
pub mod link_state;
mod name;
mod read;
pub mod routing;
mod time;
pub use error::{EncodeError, Expected, Reason, WireError};
pub use name::{ApplicationName, NameForm};
pub use read::{ByteOrder, Reader, Width};
pub use time::Time;
