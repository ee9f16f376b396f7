//! Telemetry reports 0.5, 1.0 and 2.0: the headers in front of the reported packet.

mod flags;
pub mod v0_5;
pub mod v1;
pub mod v2;

pub use flags::Flags;
