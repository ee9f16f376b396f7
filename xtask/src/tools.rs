//! What the tests need beyond cargo.

use anyhow::{Result, bail};
use std::process::Command;

/// A program and the Debian package that has it.
const TOOLS: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("ping", "iputils-ping"),
    ("iperf3", "iperf3"),
    ("ethtool", "ethtool"),
    ("editcap", "wireshark-common"),
    ("tshark", "tshark"),
];

/// Whether a program is on the PATH, or where root's programs are.
pub(crate) fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
        || std::path::Path::new("/usr/sbin").join(program).is_file()
        || std::path::Path::new("/sbin").join(program).is_file()
}

fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|s| {
        s.lines().any(|l| {
            l.strip_prefix("Uid:")
                .is_some_and(|u| u.split_whitespace().nth(1) == Some("0"))
        })
    })
}

/// Installs what is missing where that is possible, else says how to get it. In CI a missing tool
/// is an error; elsewhere the tests that need it say that they were left out.
pub fn provide() -> Result<()> {
    let missing: Vec<&str> = TOOLS
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if is_root() && is_installed("apt-get") {
        println!("── installing {list}");
        let update = Command::new("apt-get").args(["update", "-qq"]).status();
        let install = Command::new("apt-get")
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(&missing)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status();
        if update.is_ok_and(|s| s.success()) && install.is_ok_and(|s| s.success()) {
            return Ok(());
        }
    }
    let advice = format!("these packages are missing: {list}; install them, e.g. `sudo apt-get install {list}`");
    if std::env::var_os("CI").is_some() {
        bail!("{advice}");
    }
    println!("── {advice}");
    println!("── the tests that need them are left out");
    Ok(())
}
