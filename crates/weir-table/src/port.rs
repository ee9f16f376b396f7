//! Ports as control planes write them.

use serde::{Deserialize, Serialize};

/// How a control plane has written the number of a port. It reads it back in that form; nothing
/// else looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum PortForm {
    /// As bytes, big-endian (P4Runtime since 1.4, and clients that have one form only).
    #[default]
    Bytes,
    /// As a number of 32 bits (P4Runtime's deprecated `egress_port` and `watch`).
    Number,
}

/// A port whose being up or down a member of a group depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedPort {
    /// The port.
    pub port: u32,
    /// How it was written.
    pub form: PortForm,
}

impl From<u32> for WatchedPort {
    fn from(port: u32) -> Self {
        WatchedPort {
            port,
            form: PortForm::Bytes,
        }
    }
}
