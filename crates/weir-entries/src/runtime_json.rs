//! The runtime files of the P4 tutorials (`s1-runtime.json`): entries, multicast groups and clone
//! sessions by the names of P4Info.

use super::{Directives, Key, MAX_PRIORITY, Names, action_text, quoted};
use crate::error::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_ir::MatchKind;

/// A runtime file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeFile {
    target: String,
    /// P4Info of the program. The program itself says the same, so that the file is not read.
    #[serde(default, rename = "p4info")]
    _p4info: Option<String>,
    /// The compiled program.
    #[serde(default)]
    pub bmv2_json: Option<String>,
    #[serde(default)]
    table_entries: Vec<TableEntry>,
    #[serde(default)]
    multicast_group_entries: Vec<GroupEntry>,
    #[serde(default)]
    clone_session_entries: Vec<SessionEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableEntry {
    table: String,
    #[serde(default, rename = "match")]
    matches: Option<Map<String, Value>>,
    #[serde(default)]
    priority: Option<u32>,
    #[serde(default)]
    default_action: Option<bool>,
    action_name: String,
    #[serde(default)]
    action_params: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupEntry {
    multicast_group_id: u32,
    replicas: Vec<Replica>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionEntry {
    clone_session_id: u32,
    replicas: Vec<Replica>,
    #[serde(default)]
    packet_length_bytes: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replica {
    egress_port: u32,
    #[serde(default)]
    instance: u32,
}

/// Groups of clone sessions with several copies have numbers from here on: programs use lower ones.
const SESSION_GROUPS: u32 = 0x8000;

impl RuntimeFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It is no JSON, has unknown fields, or is for another target.
    pub fn parse(text: &str) -> Result<Self> {
        let file: RuntimeFile = serde_json::from_str(text).context("a runtime file of the P4 tutorials")?;
        ensure!(
            file.target == "bmv2",
            "target: expected bmv2, whose file format this is, found `{}`",
            file.target
        );
        Ok(file)
    }

    /// What it sets, as directives.
    ///
    /// # Errors
    /// The program has no such table, key, action or parameter, or a value does not have the form
    /// that its place requires.
    pub fn directives(&self, names: &impl Names) -> Result<Directives<'static>> {
        let mut lines = self.entry_lines(names)?;
        for (at, group) in self.multicast_group_entries.iter().enumerate() {
            lines.group(
                format!("multicast_group_entries[{at}]"),
                group.multicast_group_id,
                &group.replicas,
            );
        }
        for (at, session) in self.clone_session_entries.iter().enumerate() {
            let place = format!("clone_session_entries[{at}]");
            ensure!(
                session.packet_length_bytes == 0,
                "{place}: packet_length_bytes: expected 0, as sessions of entries files copy whole packets; found {}. \
                 A P4Runtime controller can set it",
                session.packet_length_bytes
            );
            lines.session(place, session)?;
        }
        Ok(lines.directives())
    }

    /// Its table entries alone, as directives.
    ///
    /// # Errors
    /// As of [`RuntimeFile::directives`], or it has something else.
    pub fn entries(&self, names: &impl Names) -> Result<Directives<'static>> {
        let others = [
            ("multicast_group_entries", self.multicast_group_entries.is_empty()),
            ("clone_session_entries", self.clone_session_entries.is_empty()),
        ];
        if let Some((other, _)) = others.iter().find(|(_, is_empty)| !is_empty) {
            bail!("{other}: expected table entries only; --entries of weir run reads all");
        }
        Ok(self.entry_lines(names)?.directives())
    }

    fn entry_lines(&self, names: &impl Names) -> Result<Lines> {
        let mut lines = Lines::default();
        for (at, entry) in self.table_entries.iter().enumerate() {
            let place = format!("table_entries[{at}]");
            let text = entry.directive(names).with_context(|| place.clone())?;
            lines.add(place, &text);
        }
        Ok(lines)
    }
}

/// Directives under construction.
#[derive(Default)]
struct Lines {
    text: String,
    places: Vec<String>,
    nodes: u32,
}

impl Lines {
    fn directives(self) -> Directives<'static> {
        Directives {
            text: Cow::Owned(self.text),
            places: self.places,
        }
    }

    fn add(&mut self, place: String, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.places.push(place);
    }

    /// A multicast group: one node for the copies of each instance, as often as a port has copies
    /// of the same instance.
    fn group(&mut self, place: String, id: u32, replicas: &[Replica]) {
        self.add(place.clone(), &format!("mc_mgrp_create {id}"));
        let mut nodes: BTreeMap<(u32, usize), Vec<u32>> = BTreeMap::new();
        let mut seen: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for replica in replicas {
            let copies = seen.entry((replica.instance, replica.egress_port)).or_default();
            nodes
                .entry((replica.instance, *copies))
                .or_default()
                .push(replica.egress_port);
            *copies += 1;
        }
        for ((instance, _), ports) in nodes {
            let ports: Vec<String> = ports.iter().map(u32::to_string).collect();
            self.add(place.clone(), &format!("mc_node_create {instance} {}", ports.join(" ")));
            self.add(place.clone(), &format!("mc_node_associate {id} {}", self.nodes));
            self.nodes += 1;
        }
    }

    fn session(&mut self, place: String, session: &SessionEntry) -> Result<()> {
        let id = session.clone_session_id;
        match &session.replicas[..] {
            [] => bail!("{place}: replicas: expected at least one"),
            [one] => self.add(place, &format!("mirroring_add {id} {}", one.egress_port)),
            several => {
                let group = id
                    .checked_add(SESSION_GROUPS)
                    .context("clone_session_id is too large")?;
                self.group(place.clone(), group, several);
                self.add(place, &format!("mirroring_add_mc {id} {group}"));
            }
        }
        Ok(())
    }
}

impl TableEntry {
    fn directive(&self, names: &impl Names) -> Result<String> {
        let table = names.table(&self.table)?;
        let widths = names.parameters(&table, &self.action_name)?;
        let mut arguments = Vec::new();
        for (name, value) in self.action_params.iter().flatten() {
            let width = widths.iter().find(|(known, _)| known == name).map(|(_, width)| *width);
            let width = width.with_context(|| format!("action `{}` has no parameter `{name}`", self.action_name))?;
            arguments.push((name.clone(), number(value, width).with_context(|| name.clone())?));
        }
        let action = action_text(&self.action_name, &arguments)?;
        let name = quoted(&table.name)?;
        let matches = self.matches.iter().flatten();
        if self.default_action == Some(true) {
            ensure!(matches.count() == 0, "expected no `match` of a default action");
            return Ok(format!("setdefault {name} {action}"));
        }
        let mut text = format!("add {name}");
        match self.priority {
            None | Some(0) if table.has_priorities() => bail!(
                "expected a priority above 0, as table `{}` has keys of which several entries can match",
                table.name
            ),
            Some(priority) if table.has_priorities() => {
                ensure!(
                    priority <= MAX_PRIORITY,
                    "priority: expected at most {MAX_PRIORITY}, found {priority}"
                );
                let _ = write!(text, " {priority}");
            }
            None | Some(0) => {}
            Some(priority) => bail!(
                "priority {priority}: table `{}` has no keys of which several entries can match: leave it out",
                table.name
            ),
        }
        for (name, value) in matches {
            let key = table.key(name)?;
            let value = match_text(key, value).with_context(|| format!("key `{name}`"))?;
            let _ = write!(text, " {}:{value}", quoted(name)?);
        }
        Ok(format!("{text} {action}"))
    }
}

/// The value of a key, as a directive has it.
fn match_text(key: &Key, value: &Value) -> Result<String> {
    let pair = || match value {
        Value::Array(two) => match &two[..] {
            [a, b] => Ok((a, b)),
            _ => bail!("expected two values in the list, found {}", two.len()),
        },
        other => bail!("expected a list of two values, found {other}"),
    };
    let width = key.width;
    Ok(match key.kind {
        MatchKind::Exact | MatchKind::Selector | MatchKind::Optional => number(value, width)?,
        MatchKind::Lpm => {
            let (address, length) = pair()?;
            let length = length.as_u64().filter(|length| *length <= u64::from(width));
            let length = length.with_context(|| format!("expected a length of a prefix from 0 to {width}"))?;
            format!("{}/{length}", number(address, width)?)
        }
        MatchKind::Ternary => {
            let (value, mask) = pair()?;
            format!("{}&&&{}", number(value, width)?, number(mask, width)?)
        }
        MatchKind::Range => {
            let (low, high) = pair()?;
            format!("{}..{}", number(low, width)?, number(high, width)?)
        }
    })
}

/// A number of a width: an integer, of which negative ones are two's complements, an address,
/// or digits after `0x`. A list of one value is that value.
fn number(value: &Value, width: u32) -> Result<String> {
    match value {
        Value::Array(one) if one.len() == 1 => number(&one[0], width),
        Value::Number(_) => match (value.as_u64(), value.as_i64()) {
            (Some(number), _) => Ok(number.to_string()),
            (None, Some(negative)) => {
                ensure!(width <= 64, "expected a number that is not negative, found {negative}");
                let least = -(1_i128 << width.saturating_sub(1));
                ensure!(i128::from(negative) >= least, "{negative} does not fit in {width} bits");
                Ok(((1_i128 << width) + i128::from(negative)).to_string())
            }
            (None, None) => bail!("expected an integer of at most 64 bits, found {value}"),
        },
        Value::String(text) => address(text)
            .with_context(|| format!("expected an IPv4, IPv6 or MAC address, or digits behind 0x; found `{text}`")),
        other => bail!("expected a number or an address, found {other}"),
    }
}

/// An address, or digits after `0x`, as hexadecimal digits.
fn address(text: &str) -> Option<String> {
    let hex = |bytes: &[u8]| {
        bytes.iter().fold("0x".to_owned(), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
    };
    if let Some(digits) = text.strip_prefix("0x") {
        let is_hex = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
        return is_hex.then(|| text.to_owned());
    }
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() == 6 && parts.iter().all(|part| part.len() == 2) {
        let bytes: Option<Vec<u8>> = parts.iter().map(|part| u8::from_str_radix(part, 16).ok()).collect();
        return bytes.map(|bytes| hex(&bytes));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(hex(&address.octets()));
    }
    text.parse::<Ipv6Addr>().ok().map(|address| hex(&address.octets()))
}
