//! Topologies in TOML, the format of our own (docs/lab.md).

use super::shape::{Shape, rate};
use super::topology::{Entries, Host, Link, Switch, Topology, address, counting_order};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    program: Option<PathBuf>,
    #[serde(default)]
    hosts: BTreeMap<String, HostFields>,
    #[serde(default)]
    switches: BTreeMap<String, SwitchFields>,
    #[serde(default)]
    links: Vec<LinkFields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostFields {
    #[serde(default)]
    ip: Option<String>,
    #[serde(default)]
    mac: Option<String>,
    #[serde(default)]
    gateway: Option<IpAddr>,
    #[serde(default)]
    neighbours: BTreeMap<IpAddr, String>,
    #[serde(default)]
    commands: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchFields {
    #[serde(default)]
    program: Option<PathBuf>,
    #[serde(default)]
    entries: Option<PathBuf>,
    #[serde(default)]
    directives: Option<String>,
    #[serde(default)]
    cpu_port: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkFields {
    ends: [String; 2],
    #[serde(default)]
    rate: Option<String>,
    #[serde(default)]
    delay: Option<String>,
    #[serde(default)]
    loss: f64,
}

/// Reads a topology. Files that it names are in this folder.
///
/// # Errors
/// It is not TOML, has unknown fields, or something in it is not right.
pub fn parse(text: &str, folder: &Path) -> Result<Topology> {
    let file: File = toml::from_str(text)?;
    let mut topology = Topology::default();
    for (name, fields) in file.hosts {
        let host = host(&name, fields).with_context(|| format!("hosts.{name}"))?;
        topology.hosts.push(host);
    }
    for (name, fields) in file.switches {
        let entries = match (fields.entries, fields.directives) {
            (Some(_), Some(_)) => bail!("switches.{name}: expected either entries or directives, found both"),
            (Some(path), None) => Some(Entries::File(folder.join(path))),
            (None, Some(text)) => Some(Entries::Text(text)),
            (None, None) => None,
        };
        let is_own_program = fields.program.is_some();
        let program = fields.program.or_else(|| file.program.clone());
        topology.switches.push(Switch {
            name,
            program: program.map(|program| folder.join(program)),
            is_own_program,
            entries,
            cpu_port: fields.cpu_port,
        });
    }
    topology.hosts.sort_by_key(|host| counting_order(&host.name));
    topology.switches.sort_by_key(|switch| counting_order(&switch.name));
    for (at, fields) in file.links.iter().enumerate() {
        let link = link(&topology, fields).with_context(|| format!("links[{at}]"))?;
        topology.links.push(link);
    }
    Ok(topology)
}

fn host(name: &str, fields: HostFields) -> Result<Host> {
    let network = fields.ip.as_deref().map(|ip| match ip.contains('/') {
        true => address(ip, 0),
        false => bail!("expected an address and the bits of its network, such as 10.0.1.1/24; found `{ip}`"),
    });
    let network = network.transpose().context("ip")?;
    Ok(Host {
        name: name.to_owned(),
        address: network.map(|(address, _)| address),
        prefix: network.map_or(0, |(_, prefix)| prefix),
        mac: fields.mac,
        gateway: fields.gateway,
        neighbours: fields.neighbours.into_iter().collect(),
        commands: fields.commands,
    })
}

fn link(topology: &Topology, fields: &LinkFields) -> Result<Link> {
    let delay = match &fields.delay {
        None => Duration::ZERO,
        Some(text) => crate::cli::duration(text).map_err(|error| anyhow::anyhow!("delay: {error}"))?,
    };
    let shape = Shape {
        rate: fields.rate.as_deref().map(rate).transpose().context("rate")?,
        delay,
        loss: fields.loss,
    };
    shape.check()?;
    let [a, b] = &fields.ends;
    Ok(Link {
        ends: [topology.end(a)?, topology.end(b)?],
        shape,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        format!("{:#}", parse(text, Path::new("/lab")).unwrap_err())
    }

    #[test]
    fn everything_that_a_file_can_say_is_read() {
        let text = r#"
            program = "router.p4"
            [hosts.h1]
            ip = "10.0.1.10/24"
            mac = "08:00:00:00:01:10"
            gateway = "10.0.1.1"
            neighbours = { "10.0.1.1" = "08:00:00:00:01:01" }
            commands = ["true"]
            [switches.s1]
            entries = "s1.entries"
            [switches.s2]
            program = "other.p4"
            directives = "add t k:1 a()"
            cpu_port = 64
            [[links]]
            ends = ["h1", "s1-p1"]
            [[links]]
            ends = ["s1-p2", "s2-p1"]
            rate = "10Mbit"
            delay = "5ms"
            loss = 0.5
        "#;
        let topology = parse(text, Path::new("/lab")).unwrap();
        topology.check(&[]).unwrap();
        assert_eq!(topology.hosts[0].neighbours[0].1, "08:00:00:00:01:01");
        assert_eq!(topology.switches[0].program, Some("/lab/router.p4".into()));
        assert_eq!(
            topology.switches[0].entries,
            Some(Entries::File("/lab/s1.entries".into()))
        );
        assert_eq!(topology.switches[1].program, Some("/lab/other.p4".into()));
        assert_eq!(
            topology.switches[1].entries,
            Some(Entries::Text("add t k:1 a()".to_owned()))
        );
        assert_eq!(topology.links[1].shape.text(), "10 Mbit/s, 5 ms, 0.5 % lost");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(error("[hosts.h1]\nip = \"10.0.1.10\"").contains("hosts.h1: ip: expected an address and the bits"));
        assert!(error("[hosts.h1]\nipv4 = \"1\"").contains("unknown field `ipv4`"));
        assert!(error("[[links]]\nends = [\"h1\", \"h2\"]").contains("links[0]: there is no host `h1`"));
        assert!(error("[switches.s1]\nentries = \"a\"\ndirectives = \"b\"").contains("found both"));
        let link = |more: &str| format!("[hosts.h1]\n[hosts.h2]\n[[links]]\nends = [\"h1\", \"h2\"]\n{more}");
        assert!(error(&link("loss = 101.0")).contains("loss: expected 0 to 100"));
        assert!(error(&link("delay = \"soon\"")).contains("delay: "));
        assert!(error(&link("rate = \"fast\"")).contains("rate: "));
    }
}
