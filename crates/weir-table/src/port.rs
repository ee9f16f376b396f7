//! Ports in control-plane requests.

use serde::{Deserialize, Serialize};

/// The notation in which a control plane wrote a port number. It is used only to give the number
/// back in the same notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum PortForm {
    /// As bytes, big-endian (P4Runtime since 1.4, and clients that have one form only).
    #[default]
    Bytes,
    /// As a number of 32 bits (P4Runtime's deprecated `egress_port` and `watch`).
    Number,
}

/// A port whose state decides whether a group's member can be chosen.
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
