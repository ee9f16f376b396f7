//! What tests with network namespaces have in common.

use std::process::Command;

/// Why the tests cannot run here, if they cannot.
fn obstacle() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let root = status
        .lines()
        .any(|l| l.starts_with("Uid:") && l.split_whitespace().nth(2) == Some("0"));
    if !root {
        return Some("not root".into());
    }
    for tool in ["ip", "ping", "iperf3", "ethtool"] {
        let found = Command::new("sh")
            .args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin command -v {tool}")])
            .output();
        if !found.is_ok_and(|o| o.status.success()) {
            return Some(format!("{tool} is missing: cargo xtask test installs it"));
        }
    }
    let probe = Command::new("ip").args(["netns", "add", "weir-probe"]).output();
    match probe {
        Ok(o) if o.status.success() => {
            let _ = Command::new("ip").args(["netns", "del", "weir-probe"]).output();
            None
        }
        Ok(o) => Some(format!(
            "no network namespaces: {}",
            String::from_utf8_lossy(&o.stderr).trim()
        )),
        Err(e) => Some(format!("no network namespaces: {e}")),
    }
}

/// Whether the tests can run here. In CI they must.
pub fn can_run() -> bool {
    // Asked once: the tests run side by side and would trip over each other's probe.
    static OBSTACLE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    match OBSTACLE.get_or_init(obstacle) {
        None => true,
        Some(why) => {
            assert!(std::env::var_os("CI").is_none(), "this test must run in CI, but: {why}");
            eprintln!("left out: {why}");
            false
        }
    }
}

/// Runs a command of a shell, which must succeed.
pub fn sh(command: &str) {
    let out = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(
        out.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
}
