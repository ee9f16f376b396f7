//! Topologies in the format of the P4 tutorials (`topology.json`).

use super::shape::{Shape, rate};
use super::topology::{Entries, Host, Link, Switch, Topology, address, counting_order};
use anyhow::{Context, Result, bail, ensure};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The bits of a network that the file does not say, as in Mininet.
const PREFIX: u8 = 8;
/// The priorities of a port's queue.
const PRIORITIES: u32 = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    hosts: Named<HostFields>,
    switches: Named<SwitchFields>,
    links: Vec<Vec<Value>>,
}

/// The members of a JSON object, whose names must differ.
struct Named<T>(BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedVisitor(PhantomData))
    }
}

struct NamedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a member for each name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Named<T>, A::Error> {
        let mut named = BTreeMap::new();
        while let Some((name, value)) = members.next_entry::<String, T>()? {
            if named.contains_key(&name) {
                return Err(A::Error::custom(format_args!("there are two members `{name}`")));
            }
            named.insert(name, value);
        }
        Ok(Named(named))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostFields {
    #[serde(default)]
    ip: Option<String>,
    #[serde(default)]
    mac: Option<String>,
    #[serde(default)]
    commands: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchFields {
    #[serde(default)]
    runtime_json: Option<PathBuf>,
    #[serde(default)]
    cli_input: Option<PathBuf>,
    #[serde(default)]
    program: Option<PathBuf>,
    #[serde(default)]
    cpu_port: Option<Number>,
    #[serde(default)]
    priority_queues: Option<Number>,
}

/// The tutorials write some numbers as strings.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Number(u32),
    Text(String),
}

impl Number {
    fn get(&self, name: &str) -> Result<u32> {
        match self {
            Number::Number(number) => Ok(*number),
            Number::Text(text) => text
                .parse()
                .with_context(|| format!("{name}: expected a number, found `{text}`")),
        }
    }
}

/// Reads a topology. Files that it names are those below the first of these folders that has them.
///
/// # Errors
/// It is not JSON, has unknown fields, or something in it is not right.
pub fn parse(text: &str, folders: &[PathBuf]) -> Result<Topology> {
    let file: File = serde_json::from_str(text)?;
    let mut topology = Topology::default();
    for (name, fields) in sorted(file.hosts) {
        let host = host(&name, fields).with_context(|| format!("hosts.{name}"))?;
        topology.hosts.push(host);
    }
    for (name, fields) in sorted(file.switches) {
        let switch = switch(&name, &fields, folders).with_context(|| format!("switches.{name}"))?;
        topology.switches.push(switch);
    }
    for (at, fields) in file.links.iter().enumerate() {
        let link = link(&topology, fields).with_context(|| format!("links[{at}]"))?;
        topology.links.push(link);
    }
    Ok(topology)
}

fn sorted<T>(Named(named): Named<T>) -> Vec<(String, T)> {
    let mut list: Vec<(String, T)> = named.into_iter().collect();
    list.sort_by_key(|(name, _)| counting_order(name));
    list
}

fn host(name: &str, fields: HostFields) -> Result<Host> {
    let network = fields.ip.as_deref().map(|ip| address(ip, PREFIX)).transpose();
    let network = network.context("ip")?;
    Ok(Host {
        name: name.to_owned(),
        address: network.map(|(address, _)| address),
        prefix: network.map_or(0, |(_, prefix)| prefix),
        mac: fields.mac,
        commands: fields.commands,
        ..Host::default()
    })
}

fn switch(name: &str, fields: &SwitchFields, folders: &[PathBuf]) -> Result<Switch> {
    let entries = match (&fields.runtime_json, &fields.cli_input) {
        (Some(_), Some(_)) => bail!("expected either runtime_json or cli_input, found both"),
        (Some(file), None) | (None, Some(file)) => Some(existing(file, folders)?),
        (None, None) => None,
    };
    let number = |field: &Option<Number>, name| field.as_ref().map(|number| number.get(name)).transpose();
    if let Some(queues) = number(&fields.priority_queues, "priority_queues")? {
        ensure!(
            (1..=PRIORITIES).contains(&queues),
            "priority_queues: expected 1 to {PRIORITIES}, as weir's ports have {PRIORITIES}; found {queues}"
        );
    }
    Ok(Switch {
        name: name.to_owned(),
        program: program(fields, entries.as_deref(), folders)?,
        is_own_program: fields.program.is_some(),
        entries: entries.map(Entries::File),
        cpu_port: number(&fields.cpu_port, "cpu_port")?,
    })
}

/// The first file of this name in the folders.
fn existing(file: &Path, folders: &[PathBuf]) -> Result<PathBuf> {
    let found = folders
        .iter()
        .map(|folder| folder.join(file))
        .find(|path| path.is_file());
    found.with_context(|| {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        format!("there is no file {} in {}", file.display(), folders.join(" or "))
    })
}

/// The program of a switch: that of the topology, else that of its runtime file.
fn program(fields: &SwitchFields, runtime: Option<&Path>, folders: &[PathBuf]) -> Result<Option<PathBuf>> {
    if let Some(program) = &fields.program {
        return source(program, folders).map(Some).context("program");
    }
    let Some(path) = runtime.filter(|_| fields.runtime_json.is_some()) else {
        return Ok(None);
    };
    let text = crate::input::entries(path)?;
    let file = crate::entry_files::RuntimeFile::parse(&text).with_context(|| path.display().to_string())?;
    // A program that is not there may be given by the command line.
    Ok(file.bmv2_json.and_then(|json| source(Path::new(&json), folders).ok()))
}

/// The source of a program that the topology calls by the name of its compiled form:
/// `build/basic.json` stands for `basic.p4` in the folder that has `build`.
fn source(program: &Path, folders: &[PathBuf]) -> Result<PathBuf> {
    if program.extension().is_none_or(|ending| ending != "json") {
        return existing(program, folders);
    }
    let name = program.with_extension("p4");
    let name = name.file_name().context("expected the name of a file")?;
    existing(Path::new(name), folders)
}

fn link(topology: &Topology, fields: &[Value]) -> Result<Link> {
    let (first, second, delay, rate) = match fields {
        [a, b] => (a, b, None, None),
        [a, b, delay] => (a, b, Some(delay), None),
        [a, b, delay, rate] => (a, b, Some(delay), Some(rate)),
        _ => bail!(
            "expected [END, END, LATENCY, BANDWIDTH], of which the last two may be left out; found {} values",
            fields.len()
        ),
    };
    let end = |value: &Value| {
        let text = value
            .as_str()
            .with_context(|| format!("expected the name of an end, found {value}"))?;
        topology.end(text)
    };
    let shape = Shape {
        rate: rate.map(megabits).transpose()?.flatten(),
        delay: delay.map(latency).transpose()?.unwrap_or_default(),
        loss: 0.0,
    };
    shape.check()?;
    Ok(Link {
        ends: [end(first)?, end(second)?],
        shape,
    })
}

/// A latency: a number of milliseconds, or a text as `tc` takes it, whose unit is a microsecond
/// where none is written.
fn latency(value: &Value) -> Result<Duration> {
    let wrong = || format!("expected a latency such as 5 or \"5ms\", found {value}");
    let seconds = match value {
        Value::Number(number) => number.as_f64().with_context(wrong)? / 1e3,
        Value::String(text) => {
            let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
            let (digits, unit) = text.split_at(split);
            let unit = match unit {
                "s" | "sec" | "secs" => 1.0,
                "ms" | "msec" | "msecs" => 1e-3,
                "" | "us" | "usec" | "usecs" => 1e-6,
                _ => bail!("{}", wrong()),
            };
            digits.parse::<f64>().ok().with_context(wrong)? * unit
        }
        _ => bail!("{}", wrong()),
    };
    Duration::try_from_secs_f64(seconds).ok().with_context(wrong)
}

/// A bandwidth in Mbit/s; `null`: no limit.
fn megabits(value: &Value) -> Result<Option<u64>> {
    let wrong = || format!("expected a bandwidth in Mbit/s, found {value}");
    match value {
        Value::Null => Ok(None),
        Value::Number(number) => {
            let rate = number.as_f64().map(|number| number * 1e6);
            let rate = rate.filter(|rate| (0.0..1e15).contains(rate)).with_context(wrong)?;
            Ok(Some(rate as u64))
        }
        Value::String(text) => Ok(Some(rate(&format!("{text}m")).ok().with_context(wrong)?)),
        _ => bail!("{}", wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
        "hosts": {"h2": {"ip": "10.0.2.2/24"}, "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["true"]}},
        "switches": {"s1": {"cpu_port": "510", "priority_queues": 8}, "s10": {}, "s2": {}},
        "links": [["h1", "s1-p1"], ["s1-p2", "s2-p1", "5ms", 10], ["h2", "s2-p2", "0", 0.5], ["s10-p1", "s1-p3", 2]]
    }"#;

    fn error(text: &str) -> String {
        format!("{:#}", parse(text, &[]).unwrap_err())
    }

    #[test]
    fn links_have_latencies_and_bandwidths() {
        let topology = parse(TEXT, &[]).unwrap();
        topology.check(&[]).unwrap();
        let names: Vec<&str> = topology.switches.iter().map(|switch| switch.name.as_str()).collect();
        assert_eq!(names, ["s1", "s2", "s10"]);
        assert_eq!(topology.switches[0].cpu_port, Some(510));
        assert_eq!(topology.hosts[0].commands, ["true"]);
        let shapes: Vec<(Option<u64>, u128)> = topology
            .links
            .iter()
            .map(|link| (link.shape.rate, link.shape.delay.as_micros()))
            .collect();
        assert_eq!(
            shapes,
            [(None, 0), (Some(10_000_000), 5000), (Some(500_000), 0), (None, 2000)]
        );
    }

    #[test]
    fn files_are_searched_in_folders() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("router.p4", "");
        write("s1.json", r#"{"target": "bmv2", "bmv2_json": "build/router.json"}"#);
        let text = r#"{"hosts": {}, "links": [], "switches": {"s1": {"runtime_json": "s1.json"}, "s2": {"program": "build/router.json"}}}"#;
        let topology = parse(text, &["/nonexistent".into(), folder.path().to_owned()]).unwrap();
        let program = Some(folder.path().join("router.p4"));
        assert_eq!(topology.switches[0].program, program);
        assert_eq!(topology.switches[1].program, program);
        assert!(error(text).contains("switches.s1: there is no file s1.json"));
    }

    #[test]
    fn mistakes_are_named() {
        let links =
            |links: &str| format!(r#"{{"hosts": {{"h1": {{}}}}, "switches": {{"s1": {{}}}}, "links": {links}}}"#);
        assert!(error("[]").contains("expected"));
        let twice = r#"{"hosts": {"h1": {}, "h1": {}}, "switches": {}, "links": []}"#;
        assert!(error(twice).contains("there are two members `h1`"));
        assert!(
            error(r#"{"hosts": {"h1": {"ipv4": "1"}}, "switches": {}, "links": []}"#).contains("unknown field `ipv4`")
        );
        assert!(error(&links(r#"[["h1"]]"#)).contains("links[0]: expected [END, END"));
        assert!(error(&links(r#"[["h1", "s2-p1"]]"#)).contains("links[0]: there is no host `s2-p1`"));
        assert!(error(&links(r#"[["h1", "s1-p1", "fast"]]"#)).contains("expected a latency"));
        assert!(error(&links(r#"[["h1", "s1-p1", 1, "wide"]]"#)).contains("expected a bandwidth"));
        let text = r#"{"hosts": {}, "switches": {"s1": {"priority_queues": 9}}, "links": []}"#;
        assert!(error(text).contains("priority_queues: expected 1 to 8"));
    }
}
