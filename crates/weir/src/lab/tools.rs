//! Programs of the system that a lab uses: `ip` and `tc` of iproute2, and a shell.

use super::namespace::Namespace;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use weir_compiler::NoThread;

/// Starts a command in a namespace; without one, in that of this process.
///
/// # Errors
/// It cannot be started.
pub fn spawn(namespace: Option<&Namespace>, mut command: Command) -> Result<Child> {
    let name = command.get_program().to_string_lossy().into_owned();
    let started = match namespace {
        Some(namespace) => namespace.spawn(command),
        None => command.spawn().with_context(|| format!("cannot start {name}")),
    };
    started.with_context(|| match name.as_str() {
        "ip" | "tc" => "a lab needs iproute2 (apt install iproute2)",
        _ => "a command of the lab",
    })
}

/// Runs a command, which must succeed; what it says otherwise is the error.
///
/// # Errors
/// It cannot be started, or it fails.
pub fn output(namespace: Option<&Namespace>, mut command: Command) -> Result<()> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = spawn(namespace, command)?;
    succeeded(&child.wait_with_output()?)
}

fn succeeded(output: &Output) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    if said.is_empty() {
        bail!("it ended with {}", output.status);
    }
    bail!("{said}")
}

/// Has `ip` do the lines of a batch.
///
/// # Errors
/// One of them fails.
pub fn ip_batch(namespace: Option<&Namespace>, lines: String) -> Result<()> {
    let mut command = Command::new("ip");
    command
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = spawn(namespace, command)?;
    let input = child.stdin.take().context("the standard input of ip")?;
    // In a thread: `ip` may stop reading, and say why.
    let writer = std::thread::Builder::new().name("ip".to_owned()).spawn(move || {
        let mut input = input;
        let _ = input.write_all(lines.as_bytes());
    });
    // Without the thread its input has ended.
    let output = child.wait_with_output()?;
    let _ = writer.map_err(|error| NoThread::new("the input of ip", &error))?.join();
    succeeded(&output)
}

/// Has the namespace of the calling thread send no IPv6 packets of its own accord. Where the kernel
/// has no IPv6, or does not allow it, nothing changes.
pub fn quiet_ipv6() {
    for interfaces in ["all", "default"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{interfaces}/disable_ipv6"), "1");
    }
}

/// Whether the kernel has netem.
pub fn has_netem() -> bool {
    let tc = |change: &str, rest: &[&str]| {
        let mut command = Command::new("tc");
        command.args(["qdisc", change, "dev", "lo", "root"]).args(rest);
        output(None, command).is_ok()
    };
    let is_there = tc("add", &["netem", "limit", "1000"]);
    if is_there {
        tc("del", &[]);
    }
    is_there
}

/// A command of a topology, without net-tools where they are not installed: the tutorials set
/// routes by `route` and neighbours by `arp`.
pub fn modern(command: &str) -> String {
    translated(command, is_installed).unwrap_or_else(|| command.to_owned())
}

fn translated(command: &str, is_installed: impl Fn(&str) -> bool) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    if is_installed(words.first()?) {
        return None;
    }
    match words[..] {
        ["route", "add", "default", "gw", gateway] => Some(format!("ip route replace default via {gateway}")),
        ["route", "add", "default", "gw", gateway, "dev", device] => {
            Some(format!("ip route replace default via {gateway} dev {device}"))
        }
        ["arp", "-i", device, "-s", address, mac] => Some(format!(
            "ip neigh replace {address} lladdr {mac} nud permanent dev {device}"
        )),
        _ => None,
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_net_tools_are_translated_where_there_are_none() {
        let none = |command: &str| translated(command, |_| false);
        assert_eq!(
            none("route add default gw 10.0.1.10 dev eth0").as_deref(),
            Some("ip route replace default via 10.0.1.10 dev eth0")
        );
        assert_eq!(
            none("arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00").as_deref(),
            Some("ip neigh replace 10.0.1.10 lladdr 08:00:00:00:01:00 nud permanent dev eth0")
        );
        assert_eq!(none("route -n"), None);
        assert_eq!(translated("route add default gw 10.0.1.10", |_| true), None);
    }
}
