//! Files of entries in the formats of other tools, as directives (docs/stf.md).
//!
//! A text that begins with `{` is a runtime file of the P4 tutorials ([`runtime_json`]); lines that
//! begin with `table_add` or `table_set_default` are those of `simple_switch_CLI` ([`switch_cli`]).
//! Everything else is what weir reads anyway, and is left as it is. [`configure`] executes any of
//! them on a switch.
//!
//! This crate opens no file: its caller has the text.
#![forbid(unsafe_code)]

mod error;
mod runtime_json;
mod switch_cli;

pub use error::{EntriesError, Result};
pub use runtime_json::RuntimeFile;

use error::{Context, bail, ensure};
use std::borrow::Cow;
use std::fmt::Write;
use weir_ir::{MatchKind, Program};
use weir_switch::Switch;

/// Directives, and where each line of them comes from.
pub struct Directives<'a> {
    /// One directive in each line.
    pub text: Cow<'a, str>,
    /// What each line is in the file; empty where the lines are those of the file.
    places: Vec<String>,
}

impl Directives<'_> {
    /// The place of a line, from 1, in the file; `None` where it is the line itself.
    pub fn place(&self, line: u32) -> Option<&str> {
        let at = usize::try_from(line).ok()?.checked_sub(1)?;
        self.places.get(at).map(String::as_str)
    }
}

/// The directives of a file, for a program.
///
/// # Errors
/// It is of a known format and has something that is none, or that the program does not have.
pub fn directives<'a>(program: &Program, text: &'a str) -> Result<Directives<'a>> {
    if text.trim_start().starts_with('{') {
        return RuntimeFile::parse(text)?.directives(program);
    }
    Ok(Directives {
        text: switch_cli::directives(program, text)?,
        places: Vec::new(),
    })
}

/// Executes what a text of any of these formats says on a switch. `name` is that of the file, for
/// errors.
///
/// # Errors
/// A line is no directive, or cannot be executed; all of these are named. The switch is lost then.
pub fn configure(switch: Switch, text: &str, name: &str) -> Result<Switch> {
    let directives = directives(switch.program(), text).with_context(|| name)?;
    let (switch, failures) = match weir_stf::configure(switch, &directives.text) {
        Ok(done) => done,
        Err(errors) => {
            let text = |e: &weir_stf::ParseError| match directives.place(e.line) {
                None => format!("{name}:{e}"),
                Some(place) => format!("{name}: {place}: expected {}, found {}", e.expected, e.found),
            };
            let list: Vec<String> = errors.iter().map(text).collect();
            bail!("{}", list.join("\n"));
        }
    };
    if failures.is_empty() {
        return Ok(switch);
    }
    let text = |f: &weir_stf::Failure| match directives.place(f.line) {
        None => format!("{name}:{f}"),
        Some(place) => format!("{name}: {place}: expected {}, got {}", f.expected, f.got),
    };
    let list: Vec<String> = failures.iter().map(text).collect();
    bail!("{}", list.join("\n"));
}

/// What a file's names stand for: a program, or a target that runs it.
pub trait Names {
    /// The table with this name or unique ending of it.
    ///
    /// # Errors
    /// There is none, or several.
    fn table(&self, name: &str) -> Result<Shape>;

    /// Names and widths of the parameters of a table's action.
    ///
    /// # Errors
    /// The table has no such action.
    fn parameters(&self, table: &Shape, action: &str) -> Result<Vec<(String, u32)>>;
}

/// A table, as far as entries are concerned.
pub struct Shape {
    /// Its full name.
    name: String,
    keys: Vec<Key>,
}

struct Key {
    name: String,
    kind: MatchKind,
    width: u32,
}

impl Shape {
    fn key(&self, name: &str) -> Result<&Key> {
        if let Some(key) = self.keys.iter().find(|key| key.name == name) {
            return Ok(key);
        }
        let known: Vec<&str> = self.keys.iter().map(|key| key.name.as_str()).collect();
        bail!(
            "table `{}` has no key `{name}`: it has {}",
            self.name,
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        )
    }

    /// Whether several entries can match, so that they have priorities.
    fn has_priorities(&self) -> bool {
        let is_ordered = |kind| matches!(kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
        self.keys.iter().any(|key| is_ordered(key.kind))
    }
}

impl Names for Program {
    fn table(&self, name: &str) -> Result<Shape> {
        let tables = self.tables.iter().map(|(_, table)| (table.name.as_str(), table));
        let found = weir_switch::resolve("table", name, tables)?;
        let key = |key: &weir_ir::Key| Key {
            name: key.name.clone(),
            kind: key.match_kind,
            width: key.width,
        };
        Ok(Shape {
            name: found.name.clone(),
            keys: found.keys.iter().map(key).collect(),
        })
    }

    fn parameters(&self, table: &Shape, action: &str) -> Result<Vec<(String, u32)>> {
        let found = self.tables.iter().find(|(_, known)| known.name == table.name);
        let actions = found.iter().flat_map(|(_, table)| &table.actions);
        let actions = actions.filter_map(|a| self.actions.get(a.action));
        let found = weir_switch::resolve("action", action, actions.map(|a| (a.name.as_str(), a)))?;
        Ok(found.parameters.iter().map(|p| (p.name.clone(), p.width)).collect())
    }
}

impl Names for weir_client::Schema {
    fn table(&self, name: &str) -> Result<Shape> {
        let found = weir_client::Schema::table(self, name)?;
        let key = |key: &weir_client::schema::Key| Key {
            name: key.name.clone(),
            kind: match key.kind {
                weir_client::schema::MatchKind::Exact => MatchKind::Exact,
                weir_client::schema::MatchKind::Lpm => MatchKind::Lpm,
                weir_client::schema::MatchKind::Ternary => MatchKind::Ternary,
                weir_client::schema::MatchKind::Range => MatchKind::Range,
                weir_client::schema::MatchKind::Optional => MatchKind::Optional,
            },
            width: key.ty.width().unwrap_or_default(),
        };
        Ok(Shape {
            name: found.name.clone(),
            keys: found.keys.iter().map(key).collect(),
        })
    }

    fn parameters(&self, table: &Shape, action: &str) -> Result<Vec<(String, u32)>> {
        let table = weir_client::Schema::table(self, &table.name)?;
        let params = &table.actions[table.action(action)?].params;
        let width = |field: &weir_client::schema::Field| field.ty.width().unwrap_or_default();
        Ok(params.iter().map(|field| (field.name.clone(), width(field))).collect())
    }
}

/// The highest priority that P4Runtime has.
const MAX_PRIORITY: u32 = i32::MAX as u32;

/// A name as a directive has it: in quotes, where it has characters that end a name.
fn quoted(name: &str) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '[' | ']');
    if !name.is_empty() && name.chars().all(is_plain) {
        return Ok(name.to_owned());
    }
    ensure!(!name.contains(['"', '\n']), "`{name}` is no name");
    Ok(format!("\"{name}\""))
}

/// An action with its arguments, as a directive has it.
fn action_text(name: &str, arguments: &[(String, String)]) -> Result<String> {
    let mut text = quoted(name)?;
    text.push('(');
    for (at, (parameter, value)) in arguments.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{}:{value}", quoted(parameter)?);
    }
    text.push(')');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const PROGRAM: &str = include_str!("test.p4");

    fn program() -> Arc<Program> {
        let options = weir_compiler::Options::default();
        let compilation = weir_compiler::compile_source("test.p4", PROGRAM, &options, weir_arch::targets());
        Arc::new(compilation.program.expect("the program of these tests"))
    }

    /// Loads a file; all entries of all tables as texts.
    fn load(text: &str) -> Result<Switch> {
        configure(Switch::new(program()).expect("it can be run"), text, "file")
    }

    fn error(text: &str) -> String {
        match load(text) {
            Ok(_) => "no error".to_owned(),
            Err(error) => format!("{error:#}"),
        }
    }

    /// The ports to which a packet with this EtherType goes.
    fn ports(switch: &mut Switch, ether_type: u16) -> Vec<u32> {
        let mut packet = vec![0, 0, 0, 0, 1, 0x11, 2, 0, 0, 0, 0, 1];
        packet.extend(ether_type.to_be_bytes());
        packet.extend([10, 0, 1, 7]);
        let mut ports: Vec<u32> = switch.inject(1, &packet, 0).iter().map(|out| out.port).collect();
        ports.sort_unstable();
        ports
    }

    #[test]
    fn every_match_kind_of_a_runtime_file_is_loaded() {
        let text = r#"{ "target": "bmv2", "p4info": "a", "bmv2_json": "b", "table_entries": [
            {"table": "I.by_mac", "match": {"h.e.dst": "00:00:00:00:01:11"}, "action_name": "I.next", "action_params": {"stage": 1}},
            {"table": "I.by_prefix", "match": {"h.p.address": ["10.0.1.0", 24]}, "action_name": "I.next", "action_params": {"stage": 2}},
            {"table": "I.by_mask", "match": {"h.e.type": [4096, 61440]}, "priority": 5, "action_name": "I.to", "action_params": {"port": 3}},
            {"table": "I.by_mask", "match": {}, "priority": 1, "action_name": "I.to", "action_params": {"port": 4}},
            {"table": "I.by_range", "match": {"h.e.type": [8192, 8200]}, "priority": 1, "action_name": "I.to", "action_params": {"port": 5}},
            {"table": "I.by_range", "default_action": true, "action_name": "NoAction", "action_params": {}}]}"#;
        let mut switch = load(text).expect("loads");
        assert_eq!(ports(&mut switch, 0x1001), [3]);
        assert_eq!(ports(&mut switch, 0x2002), [5]);
        assert_eq!(ports(&mut switch, 0x3003), [4]);
    }

    #[test]
    fn groups_and_sessions_of_a_runtime_file_are_set() {
        let text = r#"{ "target": "bmv2", "table_entries": [
            {"table": "by_mac", "default_action": true, "action_name": "I.flood", "action_params": {}}],
          "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [
            {"egress_port": 2, "instance": 1}, {"egress_port": 3, "instance": 1}, {"egress_port": 3, "instance": 2}]}],
          "clone_session_entries": [{"clone_session_id": 7, "replicas": [{"egress_port": 9, "instance": 1}]}]}"#;
        let mut switch = load(text).expect("loads");
        assert_eq!(ports(&mut switch, 0x0800), [2, 3, 3]);
        assert!(switch.replication().session(7).is_some());
    }

    #[test]
    fn mistakes_in_a_runtime_file_are_named_by_their_place() {
        let entry = |entry: &str| format!("{{\"target\": \"bmv2\", \"table_entries\": [{entry}]}}");
        let text = entry(r#"{"table": "by_mac", "match": {"h.e.src": 1}, "action_name": "to", "action_params": {}}"#);
        assert!(error(&text).contains("table_entries[0]: table `I.by_mac` has no key `h.e.src`: it has h.e.dst"));
        let text = entry(
            r#"{"table": "by_mask", "match": {"h.e.type": [1, 1]}, "action_name": "to", "action_params": {"port": 1}}"#,
        );
        assert!(
            error(&text).contains("table_entries[0]: expected a priority above 0"),
            "{}",
            error(&text)
        );
        let text = entry(
            r#"{"table": "by_mac", "match": {"h.e.dst": "10.0"}, "action_name": "to", "action_params": {"port": 1}}"#,
        );
        assert!(error(&text).contains("`10.0`"), "{}", error(&text));
        let text = entry(r#"{"table": "by_mac", "action_name": "to", "action_params": {"port": 512}}"#);
        assert!(error(&text).contains("table_entries[0]: "), "{}", error(&text));
        assert!(error(r#"{"target": "tofino"}"#).contains("target"));
        assert!(error(r#"{"target": "bmv2", "registers": []}"#).contains("unknown field `registers`"));
    }

    #[test]
    fn lines_of_simple_switch_cli_are_loaded() {
        let text = "# the rest is as in other files\n\
            table_set_default I.by_mac next 2\n\
            table_add by_prefix next 10.0.1.0/24 => 2\n\
            table_add by_mask I.to 0x1000&&&0xf000 => 3 1\n\
            table_add by_mask I.to 0&&&0 => 4 9\n\
            table_add by_range I.to 0x2000->0x2008 => 5 1\n\
            mirroring_add 7 2\n";
        let mut switch = load(text).expect("loads");
        assert_eq!(ports(&mut switch, 0x1001), [3]);
        assert_eq!(ports(&mut switch, 0x2002), [5]);
        assert_eq!(ports(&mut switch, 0x3003), [4]);
    }

    #[test]
    fn mistakes_in_lines_of_simple_switch_cli_are_named_by_their_line() {
        assert!(
            error("\ntable_add by_mac I.to 1 2 => 3").contains("line 2: table `I.by_mac`: expected 1 key, found 2")
        );
        assert!(error("table_add by_mac to 1 =>").contains("line 1: action `to`: expected 1 parameter, found 0"));
        assert!(error("table_add nothing to 1 => 1").contains("line 1: "));
        assert!(error("table_add by_mask to 1&&&1 => 1").contains("priority"));
    }
}
