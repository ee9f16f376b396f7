//! What can go wrong with a device.

use crate::pcap::PcapError;
use std::io;
use std::path::PathBuf;

/// What can go wrong with a device.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// The process may not do this.
    #[error(
        "{doing} needs {right}: run as root, or give the program the right once with `setcap {}+ep {program}`", capabilities(.right)
    )]
    MissingRight {
        /// What was tried.
        doing: String,
        /// The name of the right.
        right: &'static str,
        /// Path of this program.
        program: String,
    },
    /// There is no such interface.
    #[error("there is no interface `{name}`; there are {}", list(.existing))]
    NoInterface {
        /// The name asked for.
        name: String,
        /// Those there are.
        existing: Vec<String>,
    },
    /// Not a name that an interface can have.
    #[error("`{name}` cannot be the name of an interface: 1 to 15 characters, no blank, no slash")]
    InvalidName {
        /// The name asked for.
        name: String,
    },
    /// The interface carries no packets.
    #[error("the interface `{name}` is down: `ip link set {name} up`, and connect its cable")]
    Down {
        /// Its name.
        name: String,
    },
    /// The interface does not stamp packets as the caller has specified.
    #[error("`{name}` has no {what}: `ethtool -T {name}` lists its capabilities")]
    NoTimestamps {
        /// Its name.
        name: String,
        /// What it lacks.
        what: &'static str,
    },
    /// The interface has gone while it was in use.
    #[error("the interface `{name}` has gone")]
    Gone {
        /// Its name.
        name: String,
    },
    /// The interface cannot be used with AF_XDP.
    #[error("AF_XDP does not work on `{name}`: {why}; packet:{name} is slower and works on every interface")]
    NoXdp {
        /// The name of the interface.
        name: String,
        /// Why not.
        why: String,
    },
    /// Another process has the device.
    #[error("{name} is in use by another process")]
    Busy {
        /// The device.
        name: String,
    },
    /// The capture file is not one, or ends too early.
    #[error("{}: {source}", .path.display())]
    Pcap {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: PcapError,
    },
    /// The capture is of another medium.
    #[error(
        "{}: the packets are of link type {found}, and a port takes Ethernet (1)",
        .path.display()
    )]
    LinkType {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: u16,
    },
    /// This kind of device exists on Linux only.
    #[error("{kind} needs Linux; pcap:, gen: and null work everywhere")]
    NotHere {
        /// The kind of device.
        kind: &'static str,
    },
    /// The system refused.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// Its answer.
        source: io::Error,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_string();
    }
    names.join(", ")
}

/// The capabilities that a sentence names, as `setcap` takes them. `setcap` replaces all of
/// the file, so CAP_NET_RAW, which AF_PACKET needs, is always listed.
fn capabilities(right: &str) -> String {
    let mut all = vec!["cap_net_raw".to_owned()];
    let words = right.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    for word in words.filter(|word| word.starts_with("CAP_")) {
        let word = word.to_ascii_lowercase();
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all.join(",")
}

impl IoError {
    /// An error of the system while doing something that needs `right`.
    pub(crate) fn system(doing: impl Into<String>, right: &'static str, source: io::Error) -> Self {
        let doing = doing.into();
        match source.kind() {
            io::ErrorKind::PermissionDenied => {
                let program = std::env::current_exe();
                let program = program.map_or("PROGRAM".to_string(), |p| p.display().to_string());
                IoError::MissingRight { doing, right, program }
            }
            _ => IoError::System { doing, source },
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_a_missing_right_gives_all_that_it_names() {
        let message = |right| IoError::MissingRight {
            doing: "opening".to_owned(),
            right,
            program: "/bin/weir".to_owned(),
        };
        let message = |right| message(right).to_string();
        assert!(message("CAP_NET_RAW").contains("`setcap cap_net_raw+ep /bin/weir`"));
        assert!(message("CAP_NET_ADMIN").contains("`setcap cap_net_raw,cap_net_admin+ep /bin/weir`"));
        let xdp = message(crate::sys::xdp::RIGHTS);
        assert!(
            xdp.contains("`setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep /bin/weir`"),
            "{xdp}"
        );
    }
}
